/* Kernels for registers of 32 bytes: AVX2 with its fused multiply-adds. This file is compiled for such a processor, so nothing
   in it is called before table.c has asked the processor. */
#include "product/kernels_256.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

typedef float floats __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(32)));

static inline __m256i first_4(int count) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)); }

/* --- f32 --- */

static inline floats f32_multiply_add(floats sum, floats a, floats b) {
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
static inline floats f32_broadcast(const char *p) { return (floats)_mm256_broadcast_ss((const float *)(const void *)p); }
static inline floats f32_load(const char *p) { return (floats)_mm256_loadu_ps((const float *)(const void *)p); }
static inline floats f32_load_some(const char *p, int count) {
  return (floats)_mm256_maskload_ps((const float *)(const void *)p, first_8(count));
}
static inline void f32_store(char *p, floats x) { _mm256_storeu_ps((float *)(void *)p, (__m256)x); }
static inline void f32_store_some(char *p, floats x, int count) {
  _mm256_maskstore_ps((float *)(void *)p, first_8(count), (__m256)x);
}
static inline floats f32_unit_along(const char *p, int count) { return count == 8 ? f32_load(p) : f32_load_some(p, count); }

#define KIND(name) f32_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- f64 --- */

static inline doubles f64_multiply_add(doubles sum, doubles a, doubles b) {
  return (doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
}
static inline doubles f64_broadcast(const char *p) { return (doubles)_mm256_broadcast_sd((const double *)(const void *)p); }
static inline doubles f64_load(const char *p) { return (doubles)_mm256_loadu_pd((const double *)(const void *)p); }
static inline doubles f64_load_some(const char *p, int count) {
  return (doubles)_mm256_maskload_pd((const double *)(const void *)p, first_4(count));
}
static inline void f64_store(char *p, doubles x) { _mm256_storeu_pd((double *)(void *)p, (__m256d)x); }
static inline void f64_store_some(char *p, doubles x, int count) {
  _mm256_maskstore_pd((double *)(void *)p, first_4(count), (__m256d)x);
}
static inline doubles f64_unit_along(const char *p, int count) { return count == 4 ? f64_load(p) : f64_load_some(p, count); }

#define KIND(name) f64_##name
#define UNITS(name) f64_##name
#define RESULTS(name) f64_##name
#define MULTIPLY_ADD f64_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR doubles
#define SUM doubles
#define NUMBER_BYTES 8
#include "product/tile_template.h"

/* --- s32 and u32 --- */

#define KIND(name) s32_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- bf16 and f16 made f32 when they are packed --- */

static inline __m128i short_lanes(const char *p, int count) {
  uint16_t lanes[8] = {0};
  if (count >= 8) return _mm_loadu_si128((const __m128i *)(const void *)p);
  memcpy(lanes, p, (size_t)count * sizeof lanes[0]);
  return _mm_loadu_si128((const __m128i *)(const void *)lanes);
}

static inline floats bf16_unit_along(const char *p, int count) {
  return (floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(short_lanes(p, count)), 16);
}

/* As ax_bf16_of, of eight. */
static inline __m128i bf16_rounded(floats x) {
  const words bits = (words)x, up = ((bits | (bits >> 16 & 1)) + 0x7fffu) >> 16;
  const __m256i is_nan = (__m256i)_mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q);
  const __m256i whole = _mm256_blendv_epi8((__m256i)up, (__m256i)((bits | 0x400000u) >> 16), is_nan);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(whole, whole), 0xd8));
}
static void bf16_round_row(const char *sums, char *to, int64_t count) {
  for (; count >= 8; count -= 8, sums += 32, to += 16) _mm_storeu_si128((__m128i *)(void *)to, bf16_rounded(f32_load(sums)));
  if (count > 0) ax_bf16_round_row(sums, to, count);
}
static void bf16_round(const ax_rounding *r) { ax_round_rows(r, bf16_round_row); }

#define KIND(name) bf16_##name
#define ROUND bf16_round
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

static inline floats f16_unit_along(const char *p, int count) { return (floats)_mm256_cvtph_ps(short_lanes(p, count)); }

#define KIND(name) f16_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

/* --- s8 and u8 made 32 bits when they are packed --- */

static inline words s8_unit_along(const char *p, int count) {
  int64_t lanes = 0;
  memcpy(&lanes, p, (size_t)(count < 8 ? count : 8));
  return (words)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(lanes));
}

#define KIND(name) s8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

static inline words u8_unit_along(const char *p, int count) {
  int64_t lanes = 0;
  memcpy(&lanes, p, (size_t)(count < 8 ? count : 8));
  return (words)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(lanes));
}

#define KIND(name) u8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 8
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_256_f32(void) { return &f32_kernels; }
const ax_product_kernels *ax_product_256_f64(void) { return &f64_kernels; }
const ax_product_kernels *ax_product_256_s32(void) { return &s32_kernels; }
const ax_product_kernels *ax_product_256_s8(void) { return &s8_kernels; }
const ax_product_kernels *ax_product_256_u8(void) { return &u8_kernels; }
const ax_product_kernels *ax_product_256_bf16(void) { return &bf16_kernels; }
const ax_product_kernels *ax_product_256_f16(void) { return &f16_kernels; }

#else

const ax_product_kernels *ax_product_256_f32(void) { return NULL; }
const ax_product_kernels *ax_product_256_f64(void) { return NULL; }
const ax_product_kernels *ax_product_256_s32(void) { return NULL; }
const ax_product_kernels *ax_product_256_s8(void) { return NULL; }
const ax_product_kernels *ax_product_256_u8(void) { return NULL; }
const ax_product_kernels *ax_product_256_bf16(void) { return NULL; }
const ax_product_kernels *ax_product_256_f16(void) { return NULL; }

#endif
