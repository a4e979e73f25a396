/* Kernels for fours of s8 or u8, which the processor multiplies and adds in one instruction. Only the low 8 bits of results are
   used. */
#include "product/kernels_512.h"

#if AX_HAS_512 && defined(__AVX512VNNI__)

/* The instruction takes the left numbers as unsigned, which changes a product by a multiple of 256. */
static inline words four_multiply_add(words sum, words a, words b) {
  return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}
static inline words four_unit_across(const char *p, int64_t number, int count, int lanes) {
  words units = {0};
  for (int i = 0; i < count; i++)
    units |= (words)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_16(lanes), p + i * number)) << (8 * i);
  return units;
}
static inline words four_unit_along(const char *p, int count) {
  return (words)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, (unsigned)(count < 64 ? count : 64)), p);
}

#define KIND(name) four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD four_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 4
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_fours(void) { return &four_kernels; }

#else

const ax_product_kernels *ax_product_512_fours(void) { return NULL; }

#endif
