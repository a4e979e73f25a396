/* Kernels for registers of 64 bytes: AVX-512, and its products of bf16 where the processor has them. Compiled for that processor, so nothing here
   is called before ax_product_kernels_512 has looked. */
#include "product/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#include <immintrin.h>
#include <string.h>

typedef float floats __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));

static inline __mmask16 first_16(int count) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)count); }
static inline __mmask32 first_32(int count) { return (__mmask32)_bzhi_u32(0xffffffff, (unsigned)count); }

/* --- f32 --- */

static inline floats f32_multiply_add(floats sum, floats a, floats b) { return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum); }
static inline floats f32_broadcast(const char *p) { return (floats)_mm512_set1_ps(*(const float *)(const void *)p); }
static inline floats f32_load(const char *p) { return (floats)_mm512_loadu_ps(p); }
static inline floats f32_load_some(const char *p, int count) { return (floats)_mm512_maskz_loadu_ps(first_16(count), p); }
static inline void f32_store(char *p, floats x) { _mm512_storeu_ps(p, (__m512)x); }
static inline void f32_store_some(char *p, floats x, int count) { _mm512_mask_storeu_ps(p, first_16(count), (__m512)x); }
static inline floats f32_unit_along(const char *p, int count) { return count == 16 ? f32_load(p) : f32_load_some(p, count); }

#define KIND(name) f32_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- f64 --- */

static inline doubles f64_multiply_add(doubles sum, doubles a, doubles b) { return (doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum); }
static inline doubles f64_broadcast(const char *p) { return (doubles)_mm512_set1_pd(*(const double *)(const void *)p); }
static inline doubles f64_load(const char *p) { return (doubles)_mm512_loadu_pd(p); }
static inline doubles f64_load_some(const char *p, int count) { return (doubles)_mm512_maskz_loadu_pd((__mmask8)first_16(count), p); }
static inline void f64_store(char *p, doubles x) { _mm512_storeu_pd(p, (__m512d)x); }
static inline void f64_store_some(char *p, doubles x, int count) { _mm512_mask_storeu_pd(p, (__mmask8)first_16(count), (__m512d)x); }
static inline doubles f64_unit_along(const char *p, int count) { return count == 8 ? f64_load(p) : f64_load_some(p, count); }

#define KIND(name) f64_##name
#define UNITS(name) f64_##name
#define RESULTS(name) f64_##name
#define MULTIPLY_ADD f64_multiply_add
#define LANES 8
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR doubles
#define SUM doubles
#define NUMBER_BYTES 8
#include "product/tile_template.h"

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

#define KIND(name) s32_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- bf16 and f16 made f32 when they are packed --- */

static inline __m256i short_lanes(const char *p, int count) { return _mm256_maskz_loadu_epi16(first_16(count), p); }

static inline floats bf16_unit_along(const char *p, int count) {
  return (floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(short_lanes(p, count < 16 ? count : 16)), 16);
}

#define KIND(name) bf16_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

static inline floats f16_unit_along(const char *p, int count) { return (floats)_mm512_cvtph_ps(short_lanes(p, count < 16 ? count : 16)); }

#define KIND(name) f16_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

/* --- Pairs of bf16 --- */

#if defined(__AVX512BF16__)

static inline floats pair_multiply_add(floats sum, words a, words b) {
  return (floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
static inline words pair_unit_across(const char *p, int64_t number, int count, int lanes) {
  __m512i low = _mm512_cvtepu16_epi32(short_lanes(p, lanes));
  __m512i high = count == 2 ? _mm512_cvtepu16_epi32(short_lanes(p + number, lanes)) : _mm512_setzero_si512();
  return (words)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
static inline words pair_unit_along(const char *p, int count) { return (words)_mm512_maskz_loadu_epi16(first_32(count < 32 ? count : 32), p); }

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

/* Of each half the least magnitude less 1, so that 0 is the largest. */
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
  return smallest + 1 < 1 << 7 ? -no_exponent : (smallest + 1) >> 7; /* a subnormal number is below anything */
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

#endif

/* --- Fours of s8 or u8, of which the last 8 bits are wanted --- */

#if defined(__AVX512VNNI__)

/* The left ones count as unsigned: that is another multiple of 256. */
static inline words four_multiply_add(words sum, words a, words b) { return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b); }
static inline words four_unit_across(const char *p, int64_t number, int count, int lanes) {
  words units = {0};
  for (int i = 0; i < count; i++) units |= (words)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_16(lanes), p + i * number)) << (8 * i);
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

#endif

static inline words s8_unit_along(const char *p, int count) {
  return (words)_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_16(count < 16 ? count : 16), p));
}

#define KIND(name) s8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_kernels_512(ax_dtype dtype) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return NULL;
#if defined(__AVX512VNNI__)
  if ((dtype == AX_S8 || dtype == AX_U8) && __builtin_cpu_supports("avx512vnni")) return &four_kernels;
#endif
#if defined(__AVX512BF16__)
  if (dtype == AX_BF16) return __builtin_cpu_supports("avx512bf16") ? &pair_kernels : &bf16_kernels;
#endif
  switch ((int)dtype) {
    case AX_F32: return &f32_kernels;
    case AX_F64: return &f64_kernels;
    case AX_S32:
    case AX_U32: return &s32_kernels;
    case AX_S8:
    case AX_U8: return &s8_kernels;
    case AX_BF16: return &bf16_kernels;
    case AX_F16: return &f16_kernels;
    default: return NULL;
  }
}

#else

const ax_product_kernels *ax_product_kernels_512(ax_dtype dtype) {
  (void)dtype;
  return NULL;
}

#endif
