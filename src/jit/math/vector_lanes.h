/* The operations that vector_f32.h and vector_f64.h are written in. The file that includes this one defines AX_VECTOR_BYTES
   first: 64 (AVX-512) or 32 (AVX2 with FMA).

   + - * / and integer operations are the compiler's own on its vector types. This file adds those that they lack: fused
   multiply-add, minimum and maximum, rounding, scaling by powers of two, choosing by lane. Fused operations are written out, so
   that both widths round alike. */
#ifndef AX_JIT_MATH_VECTOR_LANES_H
#define AX_JIT_MATH_VECTOR_LANES_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

typedef float f32s __attribute__((vector_size(AX_VECTOR_BYTES)));
typedef double f64s __attribute__((vector_size(AX_VECTOR_BYTES)));
typedef uint32_t u32s __attribute__((vector_size(AX_VECTOR_BYTES)));
typedef uint64_t u64s __attribute__((vector_size(AX_VECTOR_BYTES)));

/* A way for rare operands, as a function of its own: in one function with the usual way the compiler would load the constants of
   both into registers before it knows which way is taken, and log took twice as long. */
#define AX_APART __attribute__((noinline, cold))
#define AX_BESIDE __attribute__((noinline)) /* rare, but to be fast */

#if AX_VECTOR_BYTES == 64

typedef __mmask16 f32_mask;
typedef __mmask8 f64_mask;

static inline f32s f32_all(float x) { return _mm512_set1_ps(x); }
static inline f32s f32_fma(f32s a, f32s b, f32s c) { return _mm512_fmadd_ps(a, b, c); }    /* a b + c */
static inline f32s f32_fnma(f32s a, f32s b, f32s c) { return _mm512_fnmadd_ps(a, b, c); }  /* c - a b */
static inline f32s f32_min(f32s a, f32s b) { return _mm512_min_ps(a, b); } /* b where either is NaN */
static inline f32s f32_max(f32s a, f32s b) { return _mm512_max_ps(a, b); } /* likewise */
static inline f32s f32_round(f32s x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline f32s f32_root(f32s x) { return _mm512_sqrt_ps(x); }
static inline f32s f32_scale(f32s x, f32s n) { return _mm512_scalef_ps(x, n); } /* x 2^n, rounded once */
static inline f32_mask f32_less(f32s a, f32s b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline f32_mask f32_equal(f32s a, f32s b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline f32s f32_pick(f32_mask mask, f32s yes, f32s no) { return _mm512_mask_blend_ps(mask, no, yes); }
static inline f32_mask f32_not_less(f32s a, f32s b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); } /* where either is NaN too */
static inline f32s f32_keep(f32_mask mask, f32s x) { return _mm512_maskz_mov_ps(mask, x); }            /* 0 elsewhere */
/* Whether some lane is outside. */
static inline int f32_any_not_inside(f32s x, f32s low, f32s high) {
  return (_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ) & _mm512_cmp_ps_mask(x, high, _CMP_LE_OQ)) != 0xffff;
}
static inline int f32_any_less(f32s a, f32s b) { return f32_less(a, b) != 0; }
static inline int f32_any_not_less(f32s a, f32s b) { return f32_not_less(a, b) != 0; }

/* table[index], of 16 entries; the low bits of index count. */
static inline f32s f32_look_up(const float *table, u32s index) {
  return _mm512_permutexvar_ps((__m512i)index, _mm512_load_ps(table));
}

static inline f64s f64_all(double x) { return _mm512_set1_pd(x); }
static inline f64s f64_fma(f64s a, f64s b, f64s c) { return _mm512_fmadd_pd(a, b, c); }
static inline f64s f64_fnma(f64s a, f64s b, f64s c) { return _mm512_fnmadd_pd(a, b, c); }
static inline f64s f64_min(f64s a, f64s b) { return _mm512_min_pd(a, b); }
static inline f64s f64_max(f64s a, f64s b) { return _mm512_max_pd(a, b); }
static inline f64s f64_round(f64s x) { return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline f64s f64_root(f64s x) { return _mm512_sqrt_pd(x); }
static inline f64s f64_scale(f64s x, f64s n) { return _mm512_scalef_pd(x, n); }
static inline f64_mask f64_less(f64s a, f64s b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
static inline f64_mask f64_equal(f64s a, f64s b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
static inline f64s f64_pick(f64_mask mask, f64s yes, f64s no) { return _mm512_mask_blend_pd(mask, no, yes); }
static inline f64_mask f64_not_less(f64s a, f64s b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ); }
static inline f64s f64_keep(f64_mask mask, f64s x) { return _mm512_maskz_mov_pd(mask, x); }
static inline int f64_any_not_inside(f64s x, f64s low, f64s high) {
  return (_mm512_cmp_pd_mask(x, low, _CMP_GE_OQ) & _mm512_cmp_pd_mask(x, high, _CMP_LE_OQ)) != 0xff;
}
static inline int f64_any_less(f64s a, f64s b) { return f64_less(a, b) != 0; }
static inline int f64_any_not_less(f64s a, f64s b) { return f64_not_less(a, b) != 0; }
/* table[index], of 4 entries, behind which there are 4 more */
static inline f64s f64_look_up_4(const double *table, u64s index) {
  return _mm512_permutexvar_pd((__m512i)index, _mm512_load_pd(table));
}
static inline f64s f64_look_up(const double *table, u64s index) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), (__m512i)index, _mm512_load_pd(table + 8));
}

#else

typedef __m256 f32_mask; /* all bits of a lane, or none */
typedef __m256d f64_mask;

static inline f32s f32_all(float x) { return _mm256_set1_ps(x); }
static inline f32s f32_fma(f32s a, f32s b, f32s c) { return _mm256_fmadd_ps(a, b, c); }
static inline f32s f32_fnma(f32s a, f32s b, f32s c) { return _mm256_fnmadd_ps(a, b, c); }
static inline f32s f32_min(f32s a, f32s b) { return _mm256_min_ps(a, b); }
static inline f32s f32_max(f32s a, f32s b) { return _mm256_max_ps(a, b); }
static inline f32s f32_round(f32s x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline f32s f32_root(f32s x) { return _mm256_sqrt_ps(x); }
/* In two steps, each by a normal power of two: for normal x and n of -250 .. 250 the first is exact where the second rounds. */
static inline f32s f32_scale(f32s x, f32s n) {
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return x * (f32s)a * (f32s)b;
}
static inline f32_mask f32_less(f32s a, f32s b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline f32_mask f32_equal(f32s a, f32s b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline f32s f32_pick(f32_mask mask, f32s yes, f32s no) { return _mm256_blendv_ps(no, yes, mask); }
static inline f32_mask f32_not_less(f32s a, f32s b) { return _mm256_cmp_ps(a, b, _CMP_NLT_UQ); }
static inline f32s f32_keep(f32_mask mask, f32s x) { return _mm256_and_ps(mask, x); }
static inline int f32_any_not_inside(f32s x, f32s low, f32s high) {
  return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(x, low, _CMP_GE_OQ), _mm256_cmp_ps(x, high, _CMP_LE_OQ))) != 0xff;
}
static inline int f32_any_less(f32s a, f32s b) { return _mm256_movemask_ps(f32_less(a, b)) != 0; }
static inline int f32_any_not_less(f32s a, f32s b) { return _mm256_movemask_ps(f32_not_less(a, b)) != 0; }
static inline f32s f32_look_up(const float *table, u32s index) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), (__m256i)index),
               high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), (__m256i)index);
  return _mm256_blendv_ps(low, high, (__m256)(index << 28)); /* by bit 3 */
}

static inline f64s f64_all(double x) { return _mm256_set1_pd(x); }
static inline f64s f64_fma(f64s a, f64s b, f64s c) { return _mm256_fmadd_pd(a, b, c); }
static inline f64s f64_fnma(f64s a, f64s b, f64s c) { return _mm256_fnmadd_pd(a, b, c); }
static inline f64s f64_min(f64s a, f64s b) { return _mm256_min_pd(a, b); }
static inline f64s f64_max(f64s a, f64s b) { return _mm256_max_pd(a, b); }
static inline f64s f64_round(f64s x) { return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline f64s f64_root(f64s x) { return _mm256_sqrt_pd(x); }
static inline f64s f64_scale(f64s x, f64s n) {
  __m128i whole = _mm256_cvtpd_epi32(n), half = _mm_srai_epi32(whole, 1), bias = _mm_set1_epi32(1023);
  __m256i a = _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(half, bias)), 52);
  __m256i b = _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(_mm_sub_epi32(whole, half), bias)), 52);
  return x * (f64s)a * (f64s)b;
}
static inline f64_mask f64_less(f64s a, f64s b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
static inline f64_mask f64_equal(f64s a, f64s b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
static inline f64s f64_pick(f64_mask mask, f64s yes, f64s no) { return _mm256_blendv_pd(no, yes, mask); }
static inline f64_mask f64_not_less(f64s a, f64s b) { return _mm256_cmp_pd(a, b, _CMP_NLT_UQ); }
static inline f64s f64_keep(f64_mask mask, f64s x) { return _mm256_and_pd(mask, x); }
static inline int f64_any_not_inside(f64s x, f64s low, f64s high) {
  return _mm256_movemask_pd(_mm256_and_pd(_mm256_cmp_pd(x, low, _CMP_GE_OQ), _mm256_cmp_pd(x, high, _CMP_LE_OQ))) != 0xf;
}
static inline int f64_any_less(f64s a, f64s b) { return _mm256_movemask_pd(f64_less(a, b)) != 0; }
static inline int f64_any_not_less(f64s a, f64s b) { return _mm256_movemask_pd(f64_not_less(a, b)) != 0; }
static inline f64s f64_look_up_4(const double *table, u64s index) { /* in halves of 32 bits */
  const u64s twice = index + index, halves = (twice | twice << 32) + (1ull << 32);
  return (f64s)_mm256_permutevar8x32_ps((__m256)_mm256_load_pd(table), (__m256i)halves);
}
static inline f64s f64_look_up(const double *table, u64s index) {
  return _mm256_i64gather_pd(table, (__m256i)(index & 15), 8);
}

#endif

/* Half of the lanes as f64, and two halves rounded. */
#if AX_VECTOR_BYTES == 64
static inline f64s f64_gather(const double *table, u64s index) { return _mm512_i64gather_pd((__m512i)index, table, 8); }
static inline f64s f64_low(f32s x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
static inline f64s f64_high(f32s x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
static inline f32s f32_join(f64s low, f64s high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}
#else
static inline f64s f64_gather(const double *table, u64s index) { return _mm256_i64gather_pd(table, (__m256i)index, 8); }
static inline f64s f64_low(f32s x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
static inline f64s f64_high(f32s x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
static inline f32s f32_join(f64s low, f64s high) { return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)); }
#endif

static inline f32s f32_sized(f32s x) { return (f32s)((u32s)x & 0x7fffffffu); } /* |x| */
static inline f32s f32_signed(f32s size, f32s sign) { return (f32s)((u32s)size | ((u32s)sign & 0x80000000u)); } /* of a size >= 0 */
static inline f64s f64_sized(f64s x) { return (f64s)((u64s)x & 0x7fffffffffffffffu); }
static inline f64s f64_signed(f64s size, f64s sign) { return (f64s)((u64s)size | ((u64s)sign & 0x8000000000000000u)); }

#endif
