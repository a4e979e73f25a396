/* Kernels for pairs of bf16, which the processor multiplies and adds in one instruction. For numbers that this instruction takes
   as 0 (subnormal ones) there is a tile that makes the same additions in f32. */
#include "product/kernels_512.h"

#if AX_HAS_512 && defined(__AVX512BF16__)

static inline floats pair_multiply_add(floats sum, words a, words b) {
  return (floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
static inline words pair_unit_across(const char *p, int64_t number, int count, int lanes) {
  __m512i low = _mm512_cvtepu16_epi32(short_lanes(p, lanes));
  __m512i high = count == 2 ? _mm512_cvtepu16_epi32(short_lanes(p + number, lanes)) : _mm512_setzero_si512();
  return (words)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
static inline words pair_unit_along(const char *p, int count) {
  return (words)_mm512_maskz_loadu_epi16(first_32(count < 32 ? count : 32), p);
}

/* The same additions in f32: the processor adds the second product of a pair first. */
static inline floats careful_multiply_add(floats sum, words a, words b) {
  const words second = (words){0} + 0xffff0000u;
  return f32_multiply_add(f32_multiply_add(sum, (floats)(a & second), (floats)(b & second)), (floats)(a << 16), (floats)(b << 16));
}
#define careful_unit_across pair_unit_across
#define careful_unit_along pair_unit_along

#define KIND(name) careful_##name
#define UNITS(name) s32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD careful_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 2
#define SOME 1
#define FACTOR words
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

/* For each half of a unit, keeps the least magnitude less 1. So 0 wraps to the largest value and never counts. */
static inline words pair_none(void) { return (words){0} - 1; }
static inline words pair_least(words least, words units) {
  __m512i size = _mm512_and_si512((__m512i)units, _mm512_set1_epi16(0x7fff));
  return (words)_mm512_min_epu16((__m512i)least, _mm512_sub_epi16(size, _mm512_set1_epi16(1)));
}
static inline int pair_exponent(words least) {
  __m256i half = _mm256_min_epu16(_mm512_castsi512_si256((__m512i)least), _mm512_extracti64x4_epi64((__m512i)least, 1));
  __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  int smallest = _mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
  if (smallest == 0xffff) return no_exponent;
  return smallest + 1 < 1 << 7 ? -no_exponent : (smallest + 1) >> 7; /* below any: subnormal */
}

#define KIND(name) pair_##name
#define UNITS(name) s32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD pair_multiply_add
#define CAREFUL 1
#define CAREFUL_KIND(name) careful_##name
#define LANES 16
#define ROWS 14
#define UNIT 2
#define SOME 1
#define FACTOR words
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_pairs(void) { return &pair_kernels; }

#else

const ax_product_kernels *ax_product_512_pairs(void) { return NULL; }

#endif
