/* Shared by the kernels for registers of 64 bytes: vectors, and the operations on f32 and 32-bit integers from which the other
   kinds are made. Each file compiles one kind or two, so that a build compiles them in parallel; table.c chooses among them.
   The header is empty if the compiler does not target AVX-512. */
#ifndef AX_PRODUCT_KERNELS_512_H
#define AX_PRODUCT_KERNELS_512_H

#include "product/table.h"

/* As in table.h. */
const ax_product_kernels *ax_product_512_f32(void);
const ax_product_kernels *ax_product_512_f64(void);
const ax_product_kernels *ax_product_512_s32(void);
const ax_product_kernels *ax_product_512_s8(void);
const ax_product_kernels *ax_product_512_u8(void);
const ax_product_kernels *ax_product_512_bf16(void);  /* converted to f32 when packed */
const ax_product_kernels *ax_product_512_f16(void);   /* likewise */
const ax_product_kernels *ax_product_512_pairs(void); /* bf16, by the processor's products of pairs */
const ax_product_kernels *ax_product_512_fours(void); /* s8, and u8, by the processor's products of fours */
const ax_product_kernels *ax_product_512_u8_fours(void);

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define AX_HAS_512 1

#include <immintrin.h>
#include <string.h>

typedef float floats __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));

static inline __mmask16 first_16(int count) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)count); }
static inline __mmask32 first_32(int count) { return (__mmask32)_bzhi_u32(0xffffffff, (unsigned)count); }
static inline __m256i short_lanes(const char *p, int count) { return _mm256_maskz_loadu_epi16(first_16(count), p); }

/* --- f32 --- */

static inline floats f32_multiply_add(floats sum, floats a, floats b) {
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}
static inline floats f32_broadcast(const char *p) { return (floats)_mm512_set1_ps(*(const float *)(const void *)p); }
static inline floats f32_load(const char *p) { return (floats)_mm512_loadu_ps(p); }
static inline floats f32_load_some(const char *p, int count) { return (floats)_mm512_maskz_loadu_ps(first_16(count), p); }
static inline void f32_store(char *p, floats x) { _mm512_storeu_ps(p, (__m512)x); }
static inline void f32_store_some(char *p, floats x, int count) { _mm512_mask_storeu_ps(p, first_16(count), (__m512)x); }
static inline floats f32_unit_along(const char *p, int count) { return count == 16 ? f32_load(p) : f32_load_some(p, count); }

/* --- s32 and u32 --- */

static inline words s32_multiply_add(words sum, words a, words b) { return sum + a * b; }
static inline words s32_broadcast(const char *p) {
  int x;
  memcpy(&x, p, sizeof x); /* a pair need not be aligned */
  return (words)_mm512_set1_epi32(x);
}
static inline words s32_load(const char *p) { return (words)_mm512_loadu_si512(p); }
static inline words s32_load_some(const char *p, int count) { return (words)_mm512_maskz_loadu_epi32(first_16(count), p); }
static inline void s32_store(char *p, words x) { _mm512_storeu_si512(p, (__m512i)x); }
static inline void s32_store_some(char *p, words x, int count) { _mm512_mask_storeu_epi32(p, first_16(count), (__m512i)x); }
static inline words s32_unit_along(const char *p, int count) { return s32_load_some(p, count); }

/* --- pairs of bf16 --- */

static inline words pair_unit_across(const char *p, int64_t number, int count, int lanes) {
  __m512i low = _mm512_cvtepu16_epi32(short_lanes(p, lanes));
  __m512i high = count == 2 ? _mm512_cvtepu16_epi32(short_lanes(p + number, lanes)) : _mm512_setzero_si512();
  return (words)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
static inline words pair_unit_along(const char *p, int count) {
  return (words)_mm512_maskz_loadu_epi16(first_32(count < 32 ? count : 32), p);
}

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

/* As ax_bf16_of, of 16. The processor's own instruction flushes subnormal numbers. */
static inline words bf16_rounded(floats x) {
  const words bits = (words)x, odd = bits >> 16 & 1, up = ((bits | odd) + 0x7fffu) >> 16;
  const __mmask16 is_nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
  return (words)_mm512_mask_blend_epi32(is_nan, (__m512i)up, (__m512i)((bits | 0x400000u) >> 16));
}
static inline void bf16_round_row(const char *sums, char *to, int64_t count) {
  for (; count >= 16; count -= 16, sums += 64, to += 32)
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16((__m512i)bf16_rounded(f32_load(sums))));
  if (count > 0)
    _mm512_mask_cvtepi32_storeu_epi16(to, first_16((int)count), (__m512i)bf16_rounded(f32_load_some(sums, (int)count)));
}
static inline void bf16_round(const ax_rounding *r) { ax_round_rows(r, bf16_round_row); }

/* --- fours of s8, and of u8 --- */

#if defined(__AVX512VNNI__)
/* The left numbers of both are shifted (kernels.h). The instruction's first factor is unsigned, its second is signed. */
static inline words four_multiply_add(words sum, words a, words b) {
  return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}
static inline words u8_four_multiply_add(words sum, words a, words b) {
  return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)b, (__m512i)a);
}
#endif
/* Numbers of 16 lines, or fewer, as 32 bits each. */
static inline words wide_bytes(const char *p, int lanes) {
  const __m128i some = lanes == 16 ? _mm_loadu_si128((const __m128i *)(const void *)p) : _mm_maskz_loadu_epi8(first_16(lanes), p);
  return (words)_mm512_cvtepu8_epi32(some);
}
static inline words four_unit_across(const char *p, int64_t number, int count, int lanes) {
  words units = {0};
  if (count == 4)
    return wide_bytes(p, lanes) | wide_bytes(p + number, lanes) << 8 | wide_bytes(p + 2 * number, lanes) << 16 |
           wide_bytes(p + 3 * number, lanes) << 24;
  for (int i = 0; i < count; i++) units |= wide_bytes(p + i * number, lanes) << (8 * i);
  return units;
}
static inline words four_unit_along(const char *p, int count) {
  return (words)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, (unsigned)(count < 64 ? count : 64)), p);
}
static inline words u8_four_unit_across(const char *p, int64_t number, int count, int lanes) {
  return four_unit_across(p, number, count, lanes);
}
static inline words u8_four_unit_along(const char *p, int count) { return four_unit_along(p, count); }

#endif
#endif
