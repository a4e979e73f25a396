/* The processor is identified by the CPUID instruction, as LLVM does it, because LLVM is not loaded yet. Words that differ
   between cores or moments (the number of this core, say) are left out. */
#include "jit/llvm/target.h"

#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <string.h>

#include "jit/llvm/code_digest.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* A leaf of CPUID, and which of EAX, EBX, ECX and EDX count, a bit each. */
static const struct {
  unsigned leaf, part, registers;
} leaves[] = {{0, 0, 15},   {1, 0, 13},   {7, 0, 15},          {7, 1, 15},           {0xd, 1, 1},        {0x14, 0, 2},
              {0x19, 0, 2}, {0x24, 0, 2}, {0x80000000u, 0, 1}, {0x80000001u, 0, 12}, {0x80000008u, 0, 2}};

/* The register state that the operating system saves for processes (XCR0). 0: it saves none. */
static uint64_t saved_registers(void) {
  unsigned a, b, c, d, low, high;
  enum { osxsave = 1 << 27 };
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & osxsave) == 0) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool add_processor(ax_digester *digester) {
  const uint64_t saved = saved_registers();
  for (size_t i = 0; i < AX_COUNT(leaves); i++) {
    unsigned r[4] = {0};
    if (__get_cpuid_count(leaves[i].leaf, leaves[i].part, &r[0], &r[1], &r[2], &r[3]) == 0) memset(r, 0, sizeof r);
    for (int k = 0; k < 4; k++) r[k] = leaves[i].registers >> k & 1 ? r[k] : 0;
    ax_digester_add(digester, r, sizeof r);
  }
  ax_digester_add(digester, &saved, sizeof saved);
  return true;
}
#else
static bool add_processor(ax_digester *digester) {
  (void)digester;
  return false;
}
#endif

bool ax_jit_target(uint32_t most_vector_bytes, const char *instead, ax_digest *out) {
  ax_digester digester;
  char text[128];
  ax_digester_init(&digester);
  const int length = snprintf(text, sizeof text, "LLVM %s, axle %s, registers %u;", LLVM_VERSION_STRING, AX_CODE_DIGEST,
                              (unsigned)most_vector_bytes);
  ax_digester_add(&digester, text, (size_t)length + 1);
  if (instead != NULL) ax_digester_add(&digester, instead, strlen(instead) + 1);
  if (instead == NULL && !add_processor(&digester)) return false;
  *out = ax_digester_finish(&digester);
  return true;
}
