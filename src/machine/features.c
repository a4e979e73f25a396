/* See features.h. The processor's identity is made of the words of the CPUID instruction that LLVM looks at too, and without LLVM,
   which is not loaded yet when the identity is needed. Words that differ between cores or moments (say a core's number) are
   left out. */
#include "machine/features.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool converts_halves(void) {
#if defined(__clang__) && __clang_major__ < 19
  return __builtin_cpu_supports("avx2") != 0; /* the compiler has no name for this; processors with AVX2 have it */
#else
  return __builtin_cpu_supports("f16c") != 0;
#endif
}

/* Bit 23 of EDX in leaf 7: not every compiler that we use has a name for it. */
static bool computes_halves(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
}

bool ax_machine_has(ax_feature feature) {
  switch (feature) {
    case AX_FEATURE_AVX: return __builtin_cpu_supports("avx") != 0;
    case AX_FEATURE_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case AX_FEATURE_F16C: return converts_halves();
    case AX_FEATURE_AVX512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq");
    case AX_FEATURE_AVX512_FP16: return ax_machine_has(AX_FEATURE_AVX512) && computes_halves();
    case AX_FEATURE_AVX512_VNNI: return __builtin_cpu_supports("avx512vnni") != 0;
    case AX_FEATURE_AVX512_BF16: return __builtin_cpu_supports("avx512bf16") != 0;
    case AX_FEATURE_FAST_AVX512_BF16: return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
  }
  return false;
}

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

uint32_t ax_machine_tile_bytes(void) {
  enum { tiles = 1 << 24, state = 3 << 17, largest_palette = 1 };
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & tiles) == 0 || (saved_registers() & state) != state) return 0;
  return __get_cpuid_count(0x1d, largest_palette, &a, &b, &c, &d) != 0 ? a >> 16 : 0;
}

bool ax_machine_add_identity(ax_digester *digester) {
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

uint32_t ax_machine_tile_bytes(void) { return 0; }

bool ax_machine_has(ax_feature feature) {
  (void)feature;
  return false;
}

bool ax_machine_add_identity(ax_digester *digester) {
  (void)digester;
  return false;
}

#endif

uint32_t ax_machine_register_bytes(void) {
  return ax_machine_has(AX_FEATURE_AVX512) ? 64 : ax_machine_has(AX_FEATURE_AVX2) ? 32 : 16;
}
