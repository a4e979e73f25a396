/* Kernels for fours of s8, and of u8, in registers of 32 bytes, for processors that have AVX-VNNI and no AVX-512. */
#include "product/kernels_256.h"

#if defined(__AVX2__) && defined(__AVXVNNI__)

/* The left numbers of both are shifted (kernels.h). The instruction's first factor is unsigned, its second is signed. */
static inline words four_multiply_add(words sum, words a, words b) {
  return (words)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
}
static inline words u8_four_multiply_add(words sum, words a, words b) {
  return (words)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)b, (__m256i)a);
}

static inline words four_unit_across(const char *p, int64_t number, int count, int lanes) {
  words units = {0};
  for (int i = 0; i < count; i++) {
    int64_t bytes = 0;
    memcpy(&bytes, p + i * number, (size_t)lanes);
    units |= (words)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes)) << (8 * i);
  }
  return units;
}

static inline words four_unit_along(const char *p, int count) {
  words units = {0};
  if (count >= 32) return s32_load(p);
  memcpy(&units, p, (size_t)count);
  return units;
}

static inline words u8_four_unit_across(const char *p, int64_t number, int count, int lanes) {
  return four_unit_across(p, number, count, lanes);
}
static inline words u8_four_unit_along(const char *p, int count) { return four_unit_along(p, count); }

#define KIND(name) four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD four_multiply_add
#define SHIFTED 1
#define LANES 8
#define ROWS 6
#define UNIT 4
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

#define KIND(name) u8_four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD u8_four_multiply_add
#define SHIFTED 1
#define LANES 8
#define ROWS 6
#define UNIT 4
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_256_fours(void) { return &four_kernels; }
const ax_product_kernels *ax_product_256_u8_fours(void) { return &u8_four_kernels; }

#else

const ax_product_kernels *ax_product_256_fours(void) { return NULL; }
const ax_product_kernels *ax_product_256_u8_fours(void) { return NULL; }

#endif
