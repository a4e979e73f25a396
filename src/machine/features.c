/* See features.h. The processor's identity is made of the words of the CPUID instruction that LLVM looks at too, and without LLVM,
   which is not loaded yet when the identity is needed. Words that differ between cores or moments (say a core's number) are
   left out. */
#include "machine/features.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

enum { /* XCR0 */
  saved_vectors = 0x6,    /* registers of 16 and 32 bytes */
  saved_512 = 0xe6,       /* and of 64, and their masks */
  saved_tiles = 3 << 17,  /* tiles' shapes and contents */
};

static bool has_bits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }
static uint32_t feature_if(bool has, ax_feature feature) { return has ? 1u << feature : 0; }

uint32_t ax_features_of(const ax_processor_words *w) {
  enum { fma = 1 << 12, osxsave = 1 << 27, avx = 1 << 28, f16c = 1 << 29 };                 /* 1, ECX */
  enum { avx2 = 1 << 5, bmi2 = 1 << 8, avx512f = 1 << 16, dq = 1 << 17, bw = 1 << 30 };     /* 7, EBX */
  enum { vnni = 1 << 11, amx_bf16 = 1 << 22, fp16 = 1 << 23, tiles = 1 << 24, int8 = 1 << 25 }; /* 7, ECX and EDX */
  enum { avx_vnni = 1 << 4, bf16 = 1 << 5 };                                                /* 7.1, EAX */
  const uint32_t vl = 1u << 31;
  const bool vectors = has_bits(w->leaf_1_ecx, osxsave | avx) && has_bits(w->saved, saved_vectors),
             wide = vectors && has_bits(w->leaf_7_ebx, avx2) && has_bits(w->leaf_1_ecx, fma),
             widest = wide && has_bits(w->saved, saved_512) && has_bits(w->leaf_7_ebx, vl | bw | dq | bmi2 | avx512f),
             pairs = widest && has_bits(w->leaf_7_1_eax, bf16), fours = widest && has_bits(w->leaf_7_ecx, vnni),
             amx = fours && has_bits(w->saved, saved_tiles) && has_bits(w->leaf_7_edx, tiles);
  return feature_if(vectors, AX_FEATURE_AVX) | feature_if(wide, AX_FEATURE_AVX2) |
         feature_if(vectors && has_bits(w->leaf_1_ecx, f16c), AX_FEATURE_F16C) | feature_if(widest, AX_FEATURE_AVX512) |
         feature_if(widest && has_bits(w->leaf_7_edx, fp16), AX_FEATURE_AVX512_FP16) |
         feature_if(fours, AX_FEATURE_AVX512_VNNI) | feature_if(pairs, AX_FEATURE_AVX512_BF16) |
         feature_if(pairs && !w->intel, AX_FEATURE_FAST_AVX512_BF16) |
         feature_if(wide && has_bits(w->leaf_7_1_eax, avx_vnni), AX_FEATURE_AVX_VNNI) |
         feature_if(wide && w->intel && has_bits(w->leaf_7_1_eax, avx_vnni), AX_FEATURE_FAST_GATHERS) |
         feature_if(amx && has_bits(w->leaf_7_edx, amx_bf16), AX_FEATURE_AMX_BF16) |
         feature_if(amx && has_bits(w->leaf_7_edx, int8), AX_FEATURE_AMX_INT8);
}

#if defined(__x86_64__)

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

static ax_processor_words words_of_this(void) {
  unsigned r[4] = {0};
  ax_processor_words w = {.saved = saved_registers()};
  if (__get_cpuid(0, &r[0], &r[1], &r[2], &r[3]) != 0) w.intel = memcmp(&r[1], "Genu", 4) == 0;
  if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) != 0) w.leaf_1_ecx = r[2];
  if (__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) != 0)
    w.leaf_7_ebx = r[1], w.leaf_7_ecx = r[2], w.leaf_7_edx = r[3];
  if (__get_cpuid_count(7, 1, &r[0], &r[1], &r[2], &r[3]) != 0) w.leaf_7_1_eax = r[0];
  return w;
}

/* Asks the system for leave to use tiles. Several threads may ask at once: all get the same answer. */
static bool may_use_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  enum { request_permission = 0x1023, tiles = 18 };
  return syscall(SYS_arch_prctl, request_permission, tiles) == 0;
#else
  return false;
#endif
}

enum { needs_leave = 1 << AX_FEATURE_AMX_BF16 | 1 << AX_FEATURE_AMX_INT8, known = 1 << 29, asked = 1 << 30 };

bool ax_machine_has(ax_feature feature) {
  static atomic_uint found;
  uint32_t has = atomic_load_explicit(&found, memory_order_relaxed);
  if (has == 0) {
    const ax_processor_words words = words_of_this();
    has = ax_features_of(&words) | known;
    atomic_store_explicit(&found, has, memory_order_relaxed);
  }
  if ((1u << feature & needs_leave & has) != 0 && (has & asked) == 0) {
    has = (may_use_tiles() ? has : has & ~(uint32_t)needs_leave) | asked;
    atomic_store_explicit(&found, has, memory_order_relaxed);
  }
  return (has >> feature & 1) != 0;
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
