/* Extremes of many elements at few places: most leave their place as it is, as of elements in any order the k-th at a place is a new extreme
   once in k. Sixteen are looked at together, and only those that may change their place are combined, one by one.

   What a place has only grows (or falls), so an element that would not change what was there before the sixteen changes nothing later.
   If many change their places, as sorted elements do, the next thousands are combined one by one. */
#include "ops/combine_kept.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "machine/features.h"

#define INLINED __attribute__((always_inline))
#define WIDE __attribute__((target("avx512f")))

enum { at_once = 16, chunk = 256, few = chunk / 16, patience = 64 }; /* rows; chunks until it is tried again */

/* Of f32 and f64 a zero does not stay: it has a sign, and may be a subnormal number that is to become one. */
WIDE static inline INLINED __mmask16 floats_stay(bool least, const float *to, const float *from, __m512i at, __mmask16 inside) {
  const __m512 zero = _mm512_setzero_ps(), a = _mm512_mask_i32gather_ps(zero, inside, at, to, 4), b = _mm512_loadu_ps(from);
  const __mmask16 kept = least ? _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ) : _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
  return kept & _mm512_cmp_ps_mask(a, zero, _CMP_NEQ_OQ);
}

WIDE static inline INLINED __mmask8 doubles_stay(bool least, const double *to, const double *from, __m256i at, __mmask8 inside) {
  const __m512d zero = _mm512_setzero_pd(), a = _mm512_mask_i32gather_pd(zero, inside, at, to, 8), b = _mm512_loadu_pd(from);
  const __mmask8 kept = least ? _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ) : _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ);
  return kept & _mm512_cmp_pd_mask(a, zero, _CMP_NEQ_OQ);
}

WIDE static inline INLINED __mmask16 words_stay(bool least, const int32_t *to, const int32_t *from, __m512i at, __mmask16 inside) {
  const __m512i a = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), inside, at, to, 4), b = _mm512_loadu_si512(from);
  return least ? _mm512_cmple_epi32_mask(a, b) : _mm512_cmpge_epi32_mask(a, b);
}

/* dtype, least: constants. */
WIDE static inline INLINED __mmask16 stay(ax_dtype dtype, bool least, const ax_short_rows *r, int64_t i, __m512i at, __mmask16 inside) {
  const void *to = r->to;
  if (dtype == AX_F32) return floats_stay(least, to, (const float *)(const void *)r->from + i, at, inside);
  if (dtype == AX_S32) return words_stay(least, to, (const int32_t *)(const void *)r->from + i, at, inside);
  const double *from = (const double *)(const void *)r->from + i;
  const __mmask8 low = doubles_stay(least, to, from, _mm512_castsi512_si256(at), (__mmask8)inside);
  const __mmask8 high = doubles_stay(least, to, from + 8, _mm512_extracti64x4_epi64(at, 1), (__mmask8)(inside >> 8));
  return (__mmask16)(low | high << 8);
}

/* Apart from what has registers of 64 bytes: gcc 12 places what a function has in memory at 64 bytes then, which
   AddressSanitizer's frames do not keep to (gcc's PR 110027). */
__attribute__((noinline)) static void combine_row(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r, int64_t row,
                                                  ax_combine_rows *plain) {
  ax_short_rows one = *r;
  one.at += row, one.from += row * (int64_t)ax_dtype_bytes(dtype), one.rows = 1;
  plain(combine, &one);
}

/* Combines a chunk of rows from row i on; returns how many changed their place, or might have. */
WIDE static inline INLINED int64_t go_through(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r, int64_t i, ax_combine_rows *plain) {
  const __m512i limit = _mm512_set1_epi32((int32_t)r->limit[0]), zero = _mm512_setzero_si512();
  const bool least = combine == AX_SCALAR_MIN;
  int64_t changed = 0;
  for (const int64_t end = i + chunk; i < end; i += at_once) {
    const __m512i number = _mm512_loadu_si512(r->at + i);
    __mmask16 inside = _mm512_cmple_epu32_mask(number, limit);
    const __m512i at = r->clips ? _mm512_min_epi32(_mm512_max_epi32(number, zero), limit) : number;
    if (r->clips) inside = 0xffff;
    for (uint32_t left = inside & ~stay(dtype, least, r, i, at, inside); left != 0; left &= left - 1) {
      combine_row(combine, dtype, r, i + __builtin_ctz(left), plain);
      changed++;
    }
  }
  return changed;
}

WIDE static int64_t chunk_of(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r, int64_t i, ax_combine_rows *plain) {
  const bool least = combine == AX_SCALAR_MIN;
  if (dtype == AX_F32) return least ? go_through(AX_SCALAR_MIN, AX_F32, r, i, plain) : go_through(AX_SCALAR_MAX, AX_F32, r, i, plain);
  if (dtype == AX_S32) return least ? go_through(AX_SCALAR_MIN, AX_S32, r, i, plain) : go_through(AX_SCALAR_MAX, AX_S32, r, i, plain);
  return least ? go_through(AX_SCALAR_MIN, AX_F64, r, i, plain) : go_through(AX_SCALAR_MAX, AX_F64, r, i, plain);
}

bool ax_combines_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r) {
  enum { often = 8 }; /* at each place */
  const bool extreme = combine == AX_SCALAR_MIN || combine == AX_SCALAR_MAX, known = dtype == AX_F32 || dtype == AX_F64 || dtype == AX_S32;
  const bool dense = r->count == 1 && r->numbers == 1 && r->at_step == 1 && r->from_step == 1 && r->pitch[0] == 1;
  return extreme && known && dense && r->rows >= 16 * chunk && r->rows / often > r->limit[0] && r->limit[0] < INT32_MAX &&
         ax_machine_has(AX_FEATURE_AVX512);
}

void ax_combine_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r, ax_combine_rows *plain) {
  int64_t i = 0, waits = 0;
  while (i < r->rows) {
    ax_short_rows some = *r;
    some.at += i, some.from += i * (int64_t)ax_dtype_bytes(dtype);
    some.rows = r->rows - i < chunk ? r->rows - i : chunk;
    if (waits > 0 || some.rows < chunk) {
      plain(combine, &some);
      waits -= waits > 0;
    } else if (chunk_of(combine, dtype, r, i, plain) > few) {
      waits = patience;
    }
    i += some.rows;
  }
}
#else
bool ax_combines_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r) {
  (void)combine, (void)dtype, (void)r;
  return false;
}
void ax_combine_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *r, ax_combine_rows *plain) {
  (void)dtype;
  plain(combine, r);
}
#endif
