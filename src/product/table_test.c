/* Which kernels processors of several kinds take, by the words that they say of themselves. */
#include "product/table.h"

#include <string.h>

#include "machine/features.h"
#include "support/cmocka.h"

enum { /* as in features.c */
  avx_words = 1 << 28 | 1 << 27 | 1 << 12 | 1 << 29, /* AVX, OSXSAVE, FMA, F16C */
  avx2_word = 1 << 5 | 1 << 8,
  vnni_word = 1 << 11,
  tile_words = 1 << 22 | 1 << 24 | 1 << 25,
  all_saved = 0x600e7, /* tiles, 64 bytes, 32 bytes */
};
static const uint32_t avx512_words = 1u << 31 | 1 << 30 | 1 << 17 | 1 << 16 | avx2_word;

static const struct {
  const char *what;
  ax_processor_words words;
  const char *f32, *bf16, *s8, *u8, *f16, *s32;
} processors[] = {
    {"one without AVX", {0}, "f32_128", "bf16_128", "s8_128", "u8_128", "f16_128", "s32_128"},
    {"AVX2", {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx2_word, .saved = 7},
     "f32_256", "bf16_256", "s8_256", "u8_256", "f16_256", "s32_256"},
    {"AVX2 without registers saved", {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx2_word, .saved = 3},
     "f32_128", "bf16_128", "s8_128", "u8_128", "f16_128", "s32_128"},
    {"AVX2 and AVX-VNNI", {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx2_word, .leaf_7_1_eax = 1 << 4, .saved = 7},
     "f32_256", "bf16_256", "fours_256", "u8_fours_256", "f16_256", "s32_256"},
    {"AVX10 of 32 bytes, which has no AVX-512 by name", /* but its kinds of instructions */
     {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx2_word, .leaf_7_ecx = vnni_word, .leaf_7_1_eax = 1 << 4 | 1 << 5, .saved = 0xe7},
     "f32_256", "bf16_256", "fours_256", "u8_fours_256", "f16_256", "s32_256"},
    {"AVX-512 (Skylake)", {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .saved = 0xe7, .intel = true},
     "f32_512", "bf16_512", "s8_512", "u8_512", "f16_512", "s32_512"},
    {"AVX-512 of which masks are not saved", {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .saved = 7},
     "f32_256", "bf16_256", "s8_256", "u8_256", "f16_256", "s32_256"},
    {"VNNI and slow pairs (Cooper Lake)",
     {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .leaf_7_ecx = vnni_word, .leaf_7_1_eax = 1 << 5, .saved = 0xe7,
      .intel = true},
     "f32_512", "bf16_512", "fours_512", "u8_fours_512", "f16_512", "s32_512"},
    {"VNNI and fast pairs (Zen 4)",
     {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .leaf_7_ecx = vnni_word, .leaf_7_1_eax = 1 << 5, .saved = 0xe7},
     "f32_512", "pairs_512", "fours_512", "u8_fours_512", "f16_512", "s32_512"},
    {"tiles (Sapphire Rapids)",
     {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .leaf_7_ecx = vnni_word, .leaf_7_edx = tile_words,
      .leaf_7_1_eax = 1 << 4 | 1 << 5, .saved = all_saved, .intel = true},
     "f32_512", "amx_bf16", "amx_int8", "amx_uint8", "f16_512", "s32_512"},
    {"tiles that the system does not save",
     {.leaf_1_ecx = avx_words, .leaf_7_ebx = avx512_words, .leaf_7_ecx = vnni_word, .leaf_7_edx = tile_words,
      .leaf_7_1_eax = 1 << 4 | 1 << 5, .saved = 0x200e7, .intel = true},
     "f32_512", "bf16_512", "fours_512", "u8_fours_512", "f16_512", "s32_512"},
};

static void expect(size_t i, ax_dtype dtype, const char *wanted) {
  const uint32_t features = ax_features_of(&processors[i].words);
  const ax_product_entry *entry = ax_product_entry_of(dtype, 64, features);
  assert_non_null(entry);
  if (strcmp(entry->name, wanted) != 0) fail_msg("%s: %s, not %s", processors[i].what, entry->name, wanted);
}

static void processors_take_the_kernels_of_their_kind(void **state) {
  (void)state;
#if defined(__x86_64__)
  for (size_t i = 0; i < AX_COUNT(processors); i++) {
    expect(i, AX_F32, processors[i].f32);
    expect(i, AX_BF16, processors[i].bf16);
    expect(i, AX_S8, processors[i].s8);
    expect(i, AX_U8, processors[i].u8);
    expect(i, AX_F16, processors[i].f16);
    expect(i, AX_S32, processors[i].s32);
    expect(i, AX_U32, processors[i].s32);
  }
#endif
}

static void registers_are_no_wider_than_asked_for(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    const ax_product_entry *entry = ax_product_entry_of(AX_BF16, bytes, UINT32_MAX);
    assert_non_null(entry);
    assert_true(entry->bytes <= bytes);
  }
  assert_null(ax_product_entry_of(AX_BOOL, 64, UINT32_MAX));
}

/* This processor is one of them: what it says is what the library takes. */
static void features_can_be_hidden(void **state) {
  (void)state;
  const ax_product_kernels *all = ax_product_kernels_of(AX_F32, 64);
  ax_product_hidden = UINT32_MAX;
  const ax_product_kernels *least = ax_product_kernels_of(AX_F32, 64);
  ax_product_hidden = 0;
  assert_ptr_equal(least, ax_product_kernels_of(AX_F32, 16));
  assert_int_equal(all->lanes * 4, ax_machine_register_bytes());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(processors_take_the_kernels_of_their_kind),
      cmocka_unit_test(registers_are_no_wider_than_asked_for),
      cmocka_unit_test(features_can_be_hidden),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
