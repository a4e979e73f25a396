/* Kernels for fours of s8 or u8 in registers of 32 bytes, for processors that have AVX-VNNI and no AVX-512. Only the low 8 bits of
   results are used. */
#include "product/kernels_256.h"

#if defined(__AVX2__) && defined(__AVXVNNI__)

/* The instruction takes the left numbers as unsigned, which changes a product by a multiple of 256. */
static inline words four_multiply_add(words sum, words a, words b) {
  return (words)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
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

#define KIND(name) four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD four_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 4
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_256_fours(void) { return &four_kernels; }

#else

const ax_product_kernels *ax_product_256_fours(void) { return NULL; }

#endif
