/* The loops are the same C code for all processors; on x86-64 it is compiled three times, for those with AVX2 and with AVX-512 too.
   Extremes of floats of 16 bits are those of integers that have their order. */
#include "ops/combine.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/complex_numbers.h"
#include "ir/dtype.h"
#include "machine/caches.h"
#include "machine/features.h"
#include "ops/combine_bytes.h"
#include "ops/combine_kept.h"

#define INLINED __attribute__((always_inline))
#define SELDOM(holds) __builtin_expect(holds, 0)

/* --- Rows --- */

static inline INLINED void *to_row(const ax_combined *r, int64_t i) { return r->to + r->place[i] * r->to_pitch; }
static inline INLINED const void *from_row(const ax_combined *r, int64_t i) { return r->from + r->row[i] * r->from_pitch; }

/* How later rows of `from` are fetched. */
typedef enum fetching { NONE_FETCHED, RUN_FETCHED, ROWS_FETCHED } fetching;
static inline INLINED fetching fetching_of(const ax_combined *r) {
  if (!r->far || r->rows == 0) return NONE_FETCHED;
  return r->row[r->rows - 1] - r->row[0] == r->rows - 1 ? RUN_FETCHED : ROWS_FETCHED;
}

static inline INLINED void fetch_row(const char *at, int64_t bytes, int to_write) {
  for (int64_t i = 0; i < bytes; i += AX_LINE_BYTES) to_write ? __builtin_prefetch(at + i, 1) : __builtin_prefetch(at + i, 0);
}

/* Fetches what a later row is added to, because processors do not foresee where it lies. If rows of `from` lie in memory, they are
   fetched too: of a run, what processors foresee comes too late among so many other lines; of other rows they foresee nothing. */
static inline INLINED void fetch(const ax_combined *r, int64_t i, int64_t element_bytes, fetching from) {
  enum { ahead = 8, from_ahead = 16, from_bytes = 4096, most = 512 }; /* rows, and rows; of a run, bytes; bytes of each */
  const int64_t bytes = r->count * element_bytes < most ? r->count * element_bytes : most;
  if (i + ahead < r->rows) fetch_row(to_row(r, i + ahead), bytes, 1);
  if (from == RUN_FETCHED) fetch_row((const char *)from_row(r, i) + from_bytes, bytes, 0);
  if (from == ROWS_FETCHED && i + from_ahead < r->rows) fetch_row(from_row(r, i + from_ahead), bytes, 0);
}

/* The element at which row `i` goes, at so many numbers, a constant; false: nowhere. Numbers outside their limits are taken to be
   few, so what comes after them waits for no comparison. */
static inline INLINED bool find_place(const ax_short_rows *r, int64_t i, uint32_t numbers, int64_t *place) {
  *place = 0;
  for (uint32_t k = 0; k < numbers; k++) {
    int64_t start = r->at[i * r->at_step + k];
    if (SELDOM((uint64_t)start > (uint64_t)r->limit[k])) {
      if (!r->clips) return false;
      start = start < 0 ? 0 : r->limit[k];
    }
    *place += start * r->pitch[k];
  }
  return true;
}

enum { placed_ahead = 4096 }; /* bytes that are fetched ahead of rows that lie in memory */

/* What combine_template.h's functions are called. */
#define NAME_OF(type, part) type##_##part
#define NAME_BY(type, part) NAME_OF(type, part)
#define NAME(part) NAME_BY(TYPE, part)

/* --- Integers --- */

#define TYPE s8
#define ELEMENT int8_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE u8
#define ELEMENT uint8_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE s16
#define ELEMENT int16_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE u16
#define ELEMENT uint16_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE s32
#define ELEMENT int32_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE u32
#define ELEMENT uint32_t
#define WIDE uint32_t
#include "ops/combine_template.h"

#define TYPE s64
#define ELEMENT int64_t
#define WIDE uint64_t
#include "ops/combine_template.h"

#define TYPE u64
#define ELEMENT uint64_t
#define WIDE uint64_t
#include "ops/combine_template.h"

/* --- Extremes of floats. A subnormal number is 0 where the thread flushes them; f16's never are. --- */

static inline INLINED bool thread_flushes(void) {
  static const volatile float least = 0x1p-149f;
  return least == 0;
}

static const volatile float hidden_one = 1;

/* One to four floats by the processor's instructions for four; the count is a constant. Compilers would move the bits of single numbers
   to other registers and back. */
#if defined(__x86_64__)
#define HAS_PACKED 1

/* As NAME(one) of extremes. Where either is NaN the comparison gives all bits, which is one, too. */
static inline INLINED __m128 extreme_of_four(ax_scalar combine, __m128 a, __m128 b, float one) {
  const __m128 least = _mm_or_ps(_mm_min_ps(a, b), _mm_min_ps(b, a)), greatest = _mm_and_ps(_mm_max_ps(a, b), _mm_max_ps(b, a));
  return _mm_mul_ps(_mm_or_ps(combine == AX_SCALAR_MIN ? least : greatest, _mm_cmpunord_ps(a, b)), _mm_set1_ps(one));
}

static inline INLINED __m128 load_f32(const float *from, int64_t count) {
  const __m128 pair = count >= 2 ? _mm_castsi128_ps(_mm_loadl_epi64((const void *)from)) : _mm_load_ss(from);
  if (count == 4) return _mm_loadu_ps(from);
  return count == 3 ? _mm_movelh_ps(pair, _mm_load_ss(from + 2)) : pair;
}

static inline INLINED void store_f32(float *to, int64_t count, __m128 numbers) {
  if (count == 4) _mm_storeu_ps(to, numbers);
  else if (count >= 2) _mm_storel_epi64((void *)to, _mm_castps_si128(numbers));
  else _mm_store_ss(to, numbers);
  if (count == 3) _mm_store_ss(to + 2, _mm_movehl_ps(numbers, numbers));
}

static inline INLINED void f32_extreme_packed(ax_scalar combine, float *to, const float *from, int64_t count, float one) {
  store_f32(to, count, extreme_of_four(combine, load_f32(to, count), load_f32(from, count), one));
}

static inline INLINED void f64_extreme_packed(ax_scalar combine, double *to, const double *from, int64_t count, double one) {
  const __m128d a = count == 2 ? _mm_loadu_pd(to) : _mm_load_sd(to), b = count == 2 ? _mm_loadu_pd(from) : _mm_load_sd(from);
  const __m128d least = _mm_or_pd(_mm_min_pd(a, b), _mm_min_pd(b, a)), greatest = _mm_and_pd(_mm_max_pd(a, b), _mm_max_pd(b, a));
  const __m128d made = _mm_mul_pd(_mm_or_pd(combine == AX_SCALAR_MIN ? least : greatest, _mm_cmpunord_pd(a, b)), _mm_set1_pd(one));
  if (count == 2) _mm_storeu_pd(to, made);
  else _mm_store_sd(to, made);
}

static inline INLINED __m128 load_bf16(const void *from, int64_t count) {
  const uint16_t *at = from;
  int32_t two = 0;
  if (count >= 2) memcpy(&two, at, sizeof two);
  const __m128i pair = count >= 2 ? _mm_cvtsi32_si128(two) : _mm_cvtsi32_si128(at[0]);
  const __m128i some = count == 4 ? _mm_loadl_epi64(from) : count == 3 ? _mm_insert_epi16(pair, at[2], 2) : pair;
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), some)); /* the upper halves of f32 */
}

/* The upper halves. */
static inline INLINED void store_bf16(void *to, int64_t count, __m128i bits) {
  const __m128i halves = _mm_srai_epi32(bits, 16), made = _mm_packs_epi32(halves, halves);
  uint16_t *at = to;
  const int32_t two = _mm_cvtsi128_si32(made);
  if (count == 4) _mm_storel_epi64(to, made);
  else if (count >= 2) memcpy(at, &two, sizeof two);
  else at[0] = (uint16_t)two;
  if (count == 3) at[2] = (uint16_t)_mm_extract_epi16(made, 2);
}

/* A number is subnormal as bf16 where it is as f32. */
static inline INLINED void bf16_extreme_packed(ax_scalar combine, int16_t *to, const int16_t *from, int64_t count, int16_t least_normal) {
  (void)least_normal;
  store_bf16(to, count, _mm_castps_si128(extreme_of_four(combine, load_bf16(to, count), load_bf16(from, count), hidden_one)));
}

/* Sums, rounded to the nearest, to even. */
static inline INLINED void bf16_packed(ax_scalar combine, uint16_t *to, const uint16_t *from, int64_t count, uint16_t none) {
  (void)combine, (void)none;
  const __m128 sums = _mm_add_ps(load_bf16(to, count), load_bf16(from, count));
  const __m128i bits = _mm_castps_si128(sums), odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1)),
                rounded = _mm_add_epi32(_mm_add_epi32(bits, _mm_set1_epi32(0x7fff)), odd);
  store_bf16(to, count, _mm_or_si128(rounded, _mm_castps_si128(_mm_cmpunord_ps(sums, sums))));
}
#endif

#define TYPE bf16_extreme
#define ELEMENT int16_t
#if defined(HAS_PACKED)
#define PACKED 4
#endif
#define MOST INT16_MAX
#define INFINITE 0x7f80
#define QUIET 0x7fc0
#define FLUSHING (thread_flushes() ? 0x80 : 0)
#include "ops/combine_template.h"

#define TYPE f16_extreme
#define ELEMENT int16_t
#define MOST INT16_MAX
#define INFINITE 0x7c00
#define QUIET 0x7e00
#define FLUSHING 0
#include "ops/combine_template.h"

#define TYPE f32_extreme
#define ELEMENT float
#if defined(HAS_PACKED)
#define PACKED 4
#endif
#define BITS uint32_t
#define QUIET 0x7fc00000u
#define FLUSHING hidden_one
#include "ops/combine_template.h"

#define TYPE f64_extreme
#define ELEMENT double
#if defined(HAS_PACKED)
#define PACKED 2
#endif
#define BITS uint64_t
#define QUIET 0x7ff8000000000000u
#define FLUSHING hidden_one
#include "ops/combine_template.h"

/* --- Sums and products of floats --- */

static inline INLINED float f32_one(ax_scalar combine, float a, float b) { return combine == AX_SCALAR_ADD ? a + b : a * b; }
#define TYPE f32
#define ELEMENT float
#include "ops/combine_template.h"

static inline INLINED double f64_one(ax_scalar combine, double a, double b) { return combine == AX_SCALAR_ADD ? a + b : a * b; }
#define TYPE f64
#define ELEMENT double
#include "ops/combine_template.h"

static inline INLINED float widened(uint16_t bf16) {
  uint32_t bits = (uint32_t)bf16 << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The bits of a number, whose upper half is then the nearest, to even. */
static inline INLINED uint32_t rounded_bits(uint32_t bits) { return bits + 0x7fff + (bits >> 16 & 1); }

/* To the nearest even; NaN stays one. */
static inline INLINED uint16_t narrowed(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = rounded_bits(bits), nan = bits | 0x400000;
  return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16);
}

/* Rounds to f32, inexact results to the neighbour with an odd last digit: then rounding again, to bf16, is as rounding once. */
static inline INLINED float odd_neighbour(double value) {
  float near = (float)value;
  uint32_t bits;
  if (value != value || (double)near == value) return near;
  memcpy(&bits, &near, sizeof bits);
  if ((bits & 1) == 0) bits += __builtin_fabs(value) > __builtin_fabs((double)near) ? 1u : -1u;
  memcpy(&near, &bits, sizeof near);
  return near;
}

/* f32 has digits enough for rounding a sum twice as if once. Products near the least bf16 need f64, which has them all. */
static inline INLINED uint16_t bf16_one(ax_scalar combine, uint16_t a, uint16_t b) {
  const float x = widened(a), y = widened(b);
  return narrowed(combine == AX_SCALAR_ADD ? x + y : odd_neighbour((double)x * (double)y));
}

#define TYPE bf16
#define ELEMENT uint16_t
#if defined(HAS_PACKED)
#define PACKED 4
#endif
#include "ops/combine_template.h"

/* --- Complex numbers, the real part first --- */

#define TYPE c64
#define ELEMENT float _Complex
#define PART float
#define REAL crealf
#define IMAG cimagf
#define MADE CMPLXF
#define EXTREME f32_extreme_one
#define FLUSHING hidden_one
#include "ops/combine_template.h"

#define TYPE c128
#define ELEMENT double _Complex
#define PART double
#define REAL creal
#define IMAG cimag
#define MADE CMPLX
#define EXTREME f64_extreme_one
#define FLUSHING hidden_one
#include "ops/combine_template.h"

/* --- Sums and products of f16: in f32, which has all products, and digits enough for rounding sums twice as if once --- */

#if defined(__x86_64__)
enum { halves = 8 };
#define WITH_HALVES __attribute__((target("avx2,f16c")))

WITH_HALVES static inline void f16_eight(ax_scalar combine, uint16_t *to, const uint16_t *from) {
  const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)to)),
               b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
  const __m256 y = combine == AX_SCALAR_ADD ? _mm256_add_ps(a, b) : _mm256_mul_ps(a, b);
  _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
}

WITH_HALVES static void f16_some(ax_scalar combine, uint16_t *to, const uint16_t *from, int64_t count) {
  uint16_t last[2][halves] = {{0}};
  int64_t i = 0;
  for (; i + halves <= count; i += halves) f16_eight(combine, to + i, from + i);
  for (int64_t k = i; k < count; k++) last[0][k - i] = to[k], last[1][k - i] = from[k];
  if (i < count) f16_eight(combine, last[0], last[1]);
  for (int64_t k = i; k < count; k++) to[k] = last[0][k - i];
}

WITH_HALVES static void f16_singles(ax_scalar combine, const ax_combined *r) {
  for (int64_t i = 0; i < r->rows; i++) {
    uint16_t *to = to_row(r, i);
    const float a = _cvtsh_ss(*to), b = _cvtsh_ss(*(const uint16_t *)from_row(r, i));
    *to = _cvtss_sh(combine == AX_SCALAR_ADD ? a + b : a * b, _MM_FROUND_TO_NEAREST_INT);
  }
}

WITH_HALVES static void f16_run(ax_scalar combine, const ax_combined *r) {
  const fetching from = fetching_of(r);
  if (r->count == 1) {
    f16_singles(combine, r);
    return;
  }
  for (int64_t i = 0; i < r->rows; i++) {
    fetch(r, i, sizeof(uint16_t), from);
    f16_some(combine, to_row(r, i), from_row(r, i), r->count);
  }
}

static bool has_halves(void) { return ax_machine_has(AX_FEATURE_AVX2) && ax_machine_has(AX_FEATURE_F16C); }

/* Sixteen sums or products at once in f32. Where the processor computes with f16, thirty-two, which have the same bits, and extremes
   likewise. The last of a row go by masks. */
#define WITH_SIXTEEN __attribute__((target("avx512f,avx512bw,avx512vl")))
WITH_SIXTEEN static inline INLINED void f16_sixteen(ax_scalar combine, uint16_t *to, const uint16_t *from, __mmask16 lanes) {
  const __m512 a = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, to)), b = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, from));
  const __m512 y = combine == AX_SCALAR_ADD ? _mm512_add_ps(a, b) : _mm512_mul_ps(a, b);
  _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
}

WITH_SIXTEEN static inline INLINED void f16_rows_of_sixteen(ax_scalar combine, const ax_combined *r) {
  const fetching from = fetching_of(r);
  const int64_t count = r->count, rows = r->rows;
  const __mmask16 last = (__mmask16)((1u << count % 16) - 1);
  for (int64_t i = 0; i < rows; i++) {
    uint16_t *a = to_row(r, i);
    const uint16_t *b = from_row(r, i), *end = b + (count - count % 16);
    fetch(r, i, sizeof(uint16_t), from);
    for (; b < end; a += 16, b += 16) f16_sixteen(combine, a, b, 0xffff);
    if (last != 0) f16_sixteen(combine, a, b, last);
  }
}

WITH_SIXTEEN static void f16_rows_by_sixteen(ax_scalar combine, const ax_combined *rows) {
  if (combine == AX_SCALAR_ADD) f16_rows_of_sixteen(AX_SCALAR_ADD, rows);
  else f16_rows_of_sixteen(AX_SCALAR_MUL, rows);
}

#if !defined(__clang__) && __GNUC__ >= 12 /* GCC before it has not the instructions, clang 14 not for single functions */
#define WITH_F16 __attribute__((target("avx512fp16,avx512bw,avx512vl")))

/* As extreme_of_four. */
WITH_F16 static inline INLINED __m512i f16_extreme_of(ax_scalar combine, __m512h a, __m512h b) {
  const __m512i quiet = _mm512_set1_epi16(0x7e00);
  const __m512i y = combine == AX_SCALAR_MIN
                        ? _mm512_or_si512(_mm512_castph_si512(_mm512_min_ph(a, b)), _mm512_castph_si512(_mm512_min_ph(b, a)))
                        : _mm512_and_si512(_mm512_castph_si512(_mm512_max_ph(a, b)), _mm512_castph_si512(_mm512_max_ph(b, a)));
  return _mm512_mask_mov_epi16(y, _mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q), quiet);
}

WITH_F16 static inline INLINED void f16_thirty_two(ax_scalar combine, uint16_t *to, const uint16_t *from, __mmask32 lanes) {
  const __m512h a = _mm512_castsi512_ph(_mm512_maskz_loadu_epi16(lanes, to)), b = _mm512_castsi512_ph(_mm512_maskz_loadu_epi16(lanes, from));
  __m512i y;
  switch (combine) {
    case AX_SCALAR_ADD: y = _mm512_castph_si512(_mm512_add_ph(a, b)); break;
    case AX_SCALAR_MUL: y = _mm512_castph_si512(_mm512_mul_ph(a, b)); break;
    default: y = f16_extreme_of(combine, a, b); break;
  }
  _mm512_mask_storeu_epi16(to, lanes, y);
}

WITH_F16 static inline INLINED void f16_rows_of_thirty_two(ax_scalar combine, const ax_combined *r) {
  const fetching from = fetching_of(r);
  const int64_t count = r->count, rows = r->rows;
  const __mmask32 last = (__mmask32)((1u << count % 32) - 1);
  for (int64_t i = 0; i < rows; i++) {
    uint16_t *a = to_row(r, i);
    const uint16_t *b = from_row(r, i), *end = b + (count - count % 32);
    fetch(r, i, sizeof(uint16_t), from);
    for (; b < end; a += 32, b += 32) f16_thirty_two(combine, a, b, 0xffffffff);
    if (last != 0) f16_thirty_two(combine, a, b, last);
  }
}

WITH_F16 static void f16_rows_by_thirty_two(ax_scalar combine, const ax_combined *rows) {
  switch (combine) {
    case AX_SCALAR_ADD: f16_rows_of_thirty_two(AX_SCALAR_ADD, rows); return;
    case AX_SCALAR_MUL: f16_rows_of_thirty_two(AX_SCALAR_MUL, rows); return;
    case AX_SCALAR_MIN: f16_rows_of_thirty_two(AX_SCALAR_MIN, rows); return;
    default: f16_rows_of_thirty_two(AX_SCALAR_MAX, rows); return;
  }
}
static bool computes_f16(void) { return ax_machine_has(AX_FEATURE_AVX512_FP16); }
#else
static void f16_rows_by_thirty_two(ax_scalar combine, const ax_combined *r) { (void)combine, (void)r; }
static bool computes_f16(void) { return false; }
#endif

#else
static void f16_run(ax_scalar combine, const ax_combined *r) { (void)combine, (void)r; }
static bool has_halves(void) { return false; }
#endif

/* --- Copies, of any type --- */

/* `size` bytes at once, a constant; the last of them end with the row, which is at least as long. */
static inline INLINED void copy_by(char *to, const char *from, int64_t bytes, int64_t size) {
  for (int64_t i = 0; i + size < bytes; i += size) memcpy(to + i, from + i, (size_t)size);
  memcpy(to + bytes - size, from + bytes - size, (size_t)size);
}

static inline INLINED void copy_row(char *to, const char *from, int64_t bytes) {
  enum { many = 256 };
  if (bytes > many) memcpy(to, from, (size_t)bytes);
  else if (bytes >= 32) copy_by(to, from, bytes, 32);
  else if (bytes >= 16) copy_by(to, from, bytes, 16);
  else if (bytes >= 8) copy_by(to, from, bytes, 8);
  else if (bytes >= 4) copy_by(to, from, bytes, 4);
  else copy_by(to, from, bytes, 1);
}

static inline INLINED void copy_rows(const ax_combined *rows, int64_t bytes) {
  const ax_combined r = *rows;
  const fetching from = fetching_of(rows);
  for (int64_t i = 0; i < r.rows; i++) {
    fetch(&r, i, bytes / r.count, from);
    copy_row(to_row(&r, i), from_row(&r, i), bytes);
  }
}

/* Rows are often so long; then their loop needs no other inside. */
static inline INLINED void copy_run(const ax_combined *rows, int64_t bytes) {
  switch (bytes) {
    case 0: return;
    case 1: copy_rows(rows, 1); return;
    case 2: copy_rows(rows, 2); return;
    case 4: copy_rows(rows, 4); return;
    case 8: copy_rows(rows, 8); return;
    case 16: copy_rows(rows, 16); return;
    case 32: copy_rows(rows, 32); return;
    case 64: copy_rows(rows, 64); return;
    case 128: copy_rows(rows, 128); return;
    default: copy_rows(rows, bytes); return;
  }
}

/* --- All --- */

static bool is_extreme(ax_scalar combine) { return combine == AX_SCALAR_MIN || combine == AX_SCALAR_MAX; }

static bool is_known(ax_scalar combine) { return is_extreme(combine) || combine == AX_SCALAR_ADD || combine == AX_SCALAR_MUL; }

static inline INLINED void run_extremes(ax_scalar combine, ax_dtype dtype, const ax_combined *r) {
  switch (dtype) {
    case AX_BF16: bf16_extreme_run(combine, r); return;
    case AX_F16: f16_extreme_run(combine, r); return;
    case AX_F32: f32_extreme_run(combine, r); return;
    default: f64_extreme_run(combine, r); return;
  }
}

static inline INLINED void run_floats(ax_scalar combine, ax_dtype dtype, const ax_combined *r) {
  switch (dtype) {
    case AX_BF16: bf16_run(combine, r); return;
    case AX_F16: f16_run(combine, r); return;
    case AX_F32: f32_run(combine, r); return;
    default: f64_run(combine, r); return;
  }
}

static inline INLINED void run_any(ax_scalar combine, ax_dtype dtype, const ax_combined *r) {
  if (combine == AX_SCALAR_NONE) {
    copy_run(r, r->count * (int64_t)ax_dtype_bytes(dtype));
    return;
  }
  switch (dtype) {
    case AX_S8: s8_run(combine, r); return;
    case AX_U8: u8_run(combine, r); return;
    case AX_S16: s16_run(combine, r); return;
    case AX_U16: u16_run(combine, r); return;
    case AX_S32: s32_run(combine, r); return;
    case AX_U32: u32_run(combine, r); return;
    case AX_S64: s64_run(combine, r); return;
    case AX_U64: u64_run(combine, r); return;
    default: break;
  }
  if (is_extreme(combine)) run_extremes(combine, dtype, r);
  else run_floats(combine, dtype, r);
}

/* GCC 12 makes vfmaddsub of the products of complex numbers where processors have it, though it may not, and that rounds once less.
   So there is no other function for them. */
static void combine_plain(ax_scalar combine, ax_dtype dtype, const ax_combined *rows) {
  if (combine == AX_SCALAR_NONE || !ax_is_complex(dtype)) run_any(combine, dtype, rows);
  else if (dtype == AX_C64) c64_run(combine, rows);
  else c128_run(combine, rows);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void combine_wide(ax_scalar combine, ax_dtype dtype, const ax_combined *rows) {
  run_any(combine, dtype, rows);
}
#if defined(__clang__) /* has no such word, and would leave out all others with it */
#define WIDEST "avx512f,avx512vl,avx512bw,avx512dq"
#else
#define WIDEST "avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"
#endif
__attribute__((target(WIDEST))) static void combine_widest(ax_scalar combine, ax_dtype dtype, const ax_combined *rows) {
  const bool halves_combined = dtype == AX_F16 && combine != AX_SCALAR_NONE && rows->count > 1;
  if (halves_combined && computes_f16()) f16_rows_by_thirty_two(combine, rows);
  else if (halves_combined && !is_extreme(combine)) f16_rows_by_sixteen(combine, rows);
  else run_any(combine, dtype, rows);
}

static ax_combine *of_registers(uint32_t bytes) {
  if (bytes == 64) return ax_machine_has(AX_FEATURE_AVX512) ? combine_widest : NULL;
  if (bytes == 32) return ax_machine_has(AX_FEATURE_AVX2) ? combine_wide : NULL;
  return bytes == 16 ? combine_plain : NULL;
}
#else
static ax_combine *of_registers(uint32_t bytes) { return bytes == 16 ? combine_plain : NULL; }
#endif

ax_combine *ax_combiner_of(ax_scalar combine, ax_dtype dtype, uint32_t bytes) {
  if (combine == AX_SCALAR_NONE) return of_registers(bytes);
  /* The least powers of two of f8e8m0fnu are subnormal in f32, and a thread may flush these, which a table would not know. */
  if (!is_known(combine) || dtype == AX_BOOL || dtype == AX_F8E8M0FNU) return NULL;
  if (ax_is_complex(dtype)) return bytes == 16 ? combine_plain : NULL;
  if (ax_is_byte_float(dtype) || ax_is_short_integer(dtype)) return bytes == 16 ? ax_combine_bytes : NULL;
  if (dtype == AX_F16 && !is_extreme(combine) && !has_halves()) return NULL;
  return of_registers(bytes);
}

ax_combine *ax_combiner(ax_scalar combine, ax_dtype dtype) {
  ax_combine *found = NULL;
  for (uint32_t bytes = AX_REGISTER_BYTES; bytes >= 16 && found == NULL; bytes /= 2) found = ax_combiner_of(combine, dtype, bytes);
  return found;
}

/* --- Rows of 5 to 16 elements, each at a place of its own --- */

static inline INLINED void place_floats(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) {
  switch (dtype) {
    case AX_BF16: bf16_short_rows(combine, rows, true); return;
    case AX_F32: f32_short_rows(combine, rows, true); return;
    default: f64_short_rows(combine, rows, true); return;
  }
}

static inline INLINED void place_extremes(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) {
  switch (dtype) {
    case AX_BF16: bf16_extreme_short_rows(combine, rows, true); return;
    case AX_F16: f16_extreme_short_rows(combine, rows, true); return;
    case AX_F32: f32_extreme_short_rows(combine, rows, true); return;
    default: f64_extreme_short_rows(combine, rows, true); return;
  }
}

static inline INLINED void place_copies(ax_dtype dtype, const ax_short_rows *rows) {
  switch (ax_dtype_bytes(dtype)) {
    case 2: s16_short_rows(AX_SCALAR_NONE, rows, true); return;
    case 4: s32_short_rows(AX_SCALAR_NONE, rows, true); return;
    default: s64_short_rows(AX_SCALAR_NONE, rows, true); return;
  }
}

static inline INLINED void place_any(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) {
  if (combine == AX_SCALAR_NONE) place_copies(dtype, rows);
  else if (dtype == AX_S32) s32_short_rows(combine, rows, true);
  else if (dtype == AX_U32) u32_short_rows(combine, rows, true);
  else if (is_extreme(combine)) place_extremes(combine, dtype, rows);
  else place_floats(combine, dtype, rows);
}

static bool is_placed(ax_scalar combine, ax_dtype dtype, int64_t count) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(dtype);
  const bool some = (count >= 5 && count <= 8) || count == 12 || count == 16;
  if (!some || bytes * count > 64) return false;
  if (combine == AX_SCALAR_NONE) return bytes >= 2 && bytes <= 8;
  if (!is_known(combine)) return false;
  return dtype == AX_S32 || dtype == AX_U32 || dtype == AX_F32 || dtype == AX_F64 || dtype == AX_BF16 ||
         (dtype == AX_F16 && is_extreme(combine));
}

static void place_plain(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) { place_any(combine, dtype, rows); }
#if defined(__x86_64__)
/* Still wider registers gain nothing. */
__attribute__((target("avx2"))) static void place_wide(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) {
  place_any(combine, dtype, rows);
}
#else
#define place_wide place_plain
#endif

/* --- Shorter ones. Wider registers gain nothing. --- */

static ax_combine_rows *copier_of_short_rows(ax_dtype dtype) {
  switch (ax_dtype_bytes(dtype)) {
    case 1: return s8_at;
    case 2: return s16_at;
    case 4: return s32_at;
    case 8: return s64_at;
    default: return NULL;
  }
}

static ax_combine_rows *combiner_of_short_rows_floats(ax_scalar combine, ax_dtype dtype) {
  switch (dtype) {
    case AX_BF16: return is_extreme(combine) ? bf16_extreme_at : bf16_at;
    case AX_F16: return is_extreme(combine) ? f16_extreme_at : NULL;
    case AX_F32: return is_extreme(combine) ? f32_extreme_at : f32_at;
    case AX_F64: return is_extreme(combine) ? f64_extreme_at : f64_at;
    case AX_C64: return c64_at;
    case AX_C128: return c128_at;
    default: return NULL;
  }
}

static ax_combine_rows *combiner_of_short_rows(ax_scalar combine, ax_dtype dtype) {
  if (combine == AX_SCALAR_NONE) return copier_of_short_rows(dtype);
  if (!is_known(combine)) return NULL;
  switch (dtype) {
    case AX_S8: return s8_at;
    case AX_U8: return u8_at;
    case AX_S16: return s16_at;
    case AX_U16: return u16_at;
    case AX_S32: return s32_at;
    case AX_U32: return u32_at;
    case AX_S64: return s64_at;
    case AX_U64: return u64_at;
    default: return combiner_of_short_rows_floats(combine, dtype);
  }
}

bool ax_has_short_rows(ax_scalar combine, ax_dtype dtype, int64_t count, uint32_t numbers) {
  if (numbers == 2) return count == 1 && combiner_of_short_rows(combine, dtype) != NULL;
  if (numbers != 1 || count < 1) return false;
  return count <= 4 ? combiner_of_short_rows(combine, dtype) != NULL : is_placed(combine, dtype, count);
}

void ax_combine_short_rows(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows) {
  if (ax_combines_kept(combine, dtype, rows)) ax_combine_kept(combine, dtype, rows, combiner_of_short_rows(combine, dtype));
  else if (rows->count <= 4) combiner_of_short_rows(combine, dtype)(combine, rows);
  else if (ax_machine_has(AX_FEATURE_AVX2)) place_wide(combine, dtype, rows);
  else place_plain(combine, dtype, rows);
}
