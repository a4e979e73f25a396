/* Applies updates window after window, in the order of the indices, so that sums are the same on any number of threads. scatter_cut.c
   says how the threads share the work. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "machine/caches.h"
#include "machine/features.h"
#include "ops/combine.h"
#include "ops/pointwise.h"
#include "ops/scatter_routine.h"

/* --- One run of elements --- */

typedef struct run { /* strides in elements */
  char *to;
  const char *from;
  int64_t count, to_stride, from_stride;
} run;

/* Copies elements of so many bytes, a constant. */
static inline __attribute__((always_inline)) void put_some(const run *r, int64_t bytes) {
  for (int64_t i = 0; i < r->count; i++)
    memcpy(r->to + i * r->to_stride * bytes, r->from + i * r->from_stride * bytes, (size_t)bytes);
}

static void put(const run *r, int64_t bytes) {
  if (r->to_stride == 1 && r->from_stride == 1) {
    memcpy(r->to, r->from, (size_t)(r->count * bytes));
    return;
  }
  switch (bytes) {
    case 1: put_some(r, 1); return;
    case 2: put_some(r, 2); return;
    case 4: put_some(r, 4); return;
    case 8: put_some(r, 8); return;
    default: put_some(r, 16); return;
  }
}

static void combine_any(const ax_scattering *s, const run *r) {
  for (int64_t i = 0; i < r->count; i++) {
    int64_t at = i * r->to_stride;
    ax_number x[] = {ax_number_load(s->dtype, r->to, at), ax_number_load(s->dtype, r->from, i * r->from_stride)};
    ax_number_store(s->dtype, r->to, at, ax_scalar_eval(s->combine, s->dtype, x, 0));
  }
}

static void combine_together(const ax_scattering *s, char *to, const char *from, int64_t count, ax_combine *combine) {
  static const int64_t first = 0;
  combine(s->combine, s->dtype, &(ax_combined){to, from, 0, 0, &first, &first, 1, count, false});
}

/* Elements some distance apart, a buffer at a time. */
static void combine_strided(const ax_scattering *s, const run *r, ax_combine *combine) {
  enum { most = 64 };
  _Alignas(16) char buffers[2][most * 16];
  for (int64_t i = 0; i < r->count; i += most) {
    const int64_t count = r->count - i < most ? r->count - i : most;
    char *to = r->to + i * r->to_stride * s->bytes;
    put(&(run){buffers[0], to, count, 1, r->to_stride}, s->bytes);
    put(&(run){buffers[1], r->from + i * r->from_stride * s->bytes, count, 1, r->from_stride}, s->bytes);
    combine_together(s, buffers[0], buffers[1], count, combine);
    put(&(run){to, buffers[0], count, r->to_stride, 1}, s->bytes);
  }
}

/* `combine`: how the elements are combined; NULL: one by one. */
static void do_run(const ax_scattering *s, const run *r, ax_combine *combine) {
  if (s->combine == AX_SCALAR_NONE) put(r, s->bytes);
  else if (combine == NULL) combine_any(s, r);
  else if (r->count > 1 && (r->to_stride != 1 || r->from_stride != 1)) combine_strided(s, r, combine);
  else combine_together(s, r->to, r->from, r->count, combine);
}

/* --- One window --- */

typedef struct memory {
  const char *indices, *updates;
  char *operand;
  ax_combine *combine; /* as do_run's */
} memory;

typedef struct range {
  int64_t begin, end;
} range;

/* The innermost dimension of the indices, whose windows are done one after the other. */
static const ax_scatter_loop *inner_loop(const ax_scattering *s) { return &s->batch[s->batch_rank - 1]; }

/* The number of the index at `at`. A number beyond s64 becomes the largest s64. */
static int64_t number_at(ax_dtype dtype, const char *indices, int64_t at) {
  switch (dtype) {
    case AX_S32: return ((const int32_t *)(const void *)indices)[at];
    case AX_S64: return ((const int64_t *)(const void *)indices)[at];
    case AX_U64: {
      uint64_t number = ((const uint64_t *)(const void *)indices)[at];
      return number <= INT64_MAX ? (int64_t)number : INT64_MAX;
    }
    default: return ax_number_load(dtype, indices, at).i;
  }
}

/* Coordinates `own` of the window's dimension that is cut; all of the others. */
static void do_window(const ax_scattering *s, const memory *m, int64_t operand, int64_t updates, range own) {
  const uint32_t rank = s->window_rank;
  const ax_scatter_loop scalar = {1, 1, 1, 0}, *last = rank > 0 ? &s->window[rank - 1] : &scalar;
  run r = {.count = s->cut_window >= 0 && s->cut_window + 1 == (int)rank ? own.end - own.begin : last->extent,
           .to_stride = last->operand,
           .from_stride = last->updates};
  if (s->cut_window >= 0) {
    operand += own.begin * s->window[s->cut_window].operand;
    updates += own.begin * s->window[s->cut_window].updates;
  }
  if (rank <= 1) {
    r.to = m->operand + operand * s->bytes;
    r.from = m->updates + updates * s->bytes;
    do_run(s, &r, m->combine);
    return;
  }
  int64_t extent[AX_MAX_RANK], index[AX_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    extent[d] = (int)d == s->cut_window ? own.end - own.begin : s->window[d].extent;
    index[d] = 0;
  }
  for (;;) {
    r.to = m->operand + operand * s->bytes;
    r.from = m->updates + updates * s->bytes;
    do_run(s, &r, m->combine);
    uint32_t d = rank - 1;
    for (; d > 0; d--) {
      const ax_scatter_loop *l = &s->window[d - 1];
      operand += l->operand;
      updates += l->updates;
      if (++index[d - 1] < extent[d - 1]) break;
      operand -= index[d - 1] * l->operand;
      updates -= index[d - 1] * l->updates;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

/* The window of the index at `indices`, as far as it lies in the part's coordinates. */
static void do_index(const ax_scattering *s, const memory *m, int64_t indices, int64_t operand, int64_t updates, range part) {
  int64_t moved = 0;
  for (uint32_t k = 0; k < s->number_count; k++) {
    int64_t start = number_at(s->index_dtype, m->indices, indices + k), limit = s->limit[k];
    if (!s->clips && (start < 0 || start > limit)) return;
    start = start < 0 ? 0 : start > limit ? limit : start;
    operand += start * s->pitch[k];
    if ((int)k == s->cut_number) moved = start;
  }
  range own = {part.begin - moved, part.end - moved};
  int64_t extent = s->cut_window >= 0 ? s->window[s->cut_window].extent : 1;
  if (own.begin < 0) own.begin = 0;
  if (own.end > extent) own.end = extent;
  if (own.begin < own.end) do_window(s, m, operand, updates, own);
}

/* Whether each window is a short row of elements that lie next to each other, at numbers of 32 bits, and one part makes those of an
   operand: of several, each would skip rows that cannot be foreseen. */
static bool has_short_rows(const ax_scattering *s) {
  const ax_scatter_loop *row = &s->window[0];
  if (s->batch_rank == 0 || s->index_dtype != AX_S32 || s->window_rank > 1) return false;
  if ((s->parts > 1 && s->cut_batch < 0) || inner_loop(s)->operand != 0) return false;
  if (s->window_rank > 0 && (row->operand != 1 || row->updates != 1)) return false;
  return ax_has_short_rows(s->combine, s->dtype, s->window_rank > 0 ? row->extent : 1, s->number_count);
}

static void place_short_rows(const ax_scattering *s, const memory *m) {
  const ax_scatter_loop l = *inner_loop(s);
  const ax_short_rows rows = {.to = m->operand,
                              .from = m->updates,
                              .at = (const int32_t *)(const void *)m->indices,
                              .at_step = l.indices,
                              .from_step = l.updates,
                              .limit = {s->limit[0], s->limit[1]},
                              .pitch = {s->pitch[0], s->pitch[1]},
                              .rows = l.extent,
                              .count = s->window_rank > 0 ? s->window[0].extent : 1,
                              .numbers = s->number_count,
                              .clips = s->clips,
                              .far = s->far};
  ax_combine_short_rows(s->combine, s->dtype, &rows);
}

/* Whether lists of indices can be gone through: of windows that have pieces in several parts, only if these are runs. Short lists of
   short windows are not worth it, unless they are the whole batch. */
static bool has_rows(const ax_scattering *s) {
  enum { least = 4 };
  const bool pieces = s->cut_window >= 0;
  if (s->batch_rank == 0 || s->number_count == 0 || (s->batch_rank > 1 && inner_loop(s)->extent < least)) return false;
  return !pieces || (s->window_rank == 1 && s->cut_number < 0);
}

enum { listed = 256, at_once = 8, fetched_ahead = 8, fetched_bytes = 512 }; /* rows; of each */

typedef struct listing { /* rows of the part, and where they go: places `pitch` elements apart */
  const char *of;        /* the indices that have been listed last, of rows `rows`; NULL: none */
  range rows;
  int64_t count, pitch, row[listed + at_once], place[listed + at_once];
} listing;

typedef struct accepting { /* places of the part, and the last there is */
  int64_t begin, limit;
  uint64_t count;
  bool clips;
} accepting;

/* Without branches. */
static inline void list_row(listing *list, int64_t *count, int64_t row, int64_t start, accepting a) {
  const int64_t low = start < 0 ? 0 : start, place = a.clips ? (low > a.limit ? a.limit : low) : start;
  list->row[*count] = row;
  list->place[*count] = place;
  *count += (uint64_t)place - (uint64_t)a.begin < a.count;
}

/* Lists rows from i on while there are eight, and returns the next. What is stored behind those accepted does not count. */
#if defined(__x86_64__)
__attribute__((target("avx512f,popcnt"))) static int64_t list_eights(listing *list, const int32_t *at, int64_t i, int64_t end,
                                                                     accepting a) {
  const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), zero = _mm512_setzero_si512(), limit = _mm512_set1_epi64(a.limit),
                begin = _mm512_set1_epi64(a.begin), all = _mm512_set1_epi64((int64_t)a.count);
  int64_t count = 0;
  for (; i + at_once <= end; i += at_once) {
    const __m512i start = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(at + i)));
    const __m512i place = a.clips ? _mm512_min_epi64(_mm512_max_epi64(start, zero), limit) : start;
    const __mmask8 taken = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(place, begin), all);
    _mm512_storeu_si512(list->row + count, _mm512_maskz_compress_epi64(taken, _mm512_add_epi64(lane, _mm512_set1_epi64(i))));
    _mm512_storeu_si512(list->place + count, _mm512_maskz_compress_epi64(taken, place));
    count += __builtin_popcount(taken);
  }
  list->count = count;
  return i;
}

/* Whole numbers within 0 .. limit, and which of them were. */
__attribute__((target("avx512f"))) static inline __m512i inside(__m512i start, int64_t limit, __mmask8 *taken) {
  const __m512i low = _mm512_setzero_si512(), high = _mm512_set1_epi64(limit);
  *taken = (__mmask8)(_mm512_cmpge_epi64_mask(start, low) & _mm512_cmple_epi64_mask(start, high));
  return _mm512_min_epi64(_mm512_max_epi64(start, low), high);
}

/* Rows at two numbers of 32 bits each, that lie next to each other, likewise: pitches and limits have 31 bits. */
__attribute__((target("avx512f,popcnt"))) static int64_t list_pairs(listing *list, const int32_t *at, int64_t i, int64_t end,
                                                                    const ax_scattering *s, range places) {
  const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), pitch_0 = _mm512_set1_epi64(s->pitch[0]), pitch_1 = _mm512_set1_epi64(s->pitch[1]),
                begin = _mm512_set1_epi64(places.begin), last = _mm512_set1_epi64(places.end - 1);
  const int64_t limit_0 = s->limit[0], limit_1 = s->limit[1];
  const bool clips = s->clips, cuts = s->cut_number >= 0, by_first = s->cut_number == 0;
  int64_t count = 0;
  for (; i + at_once <= end; i += at_once) {
    const __m512i both = _mm512_loadu_si512(at + 2 * i);
    __mmask8 first_in, second_in;
    const __m512i first = inside(_mm512_srai_epi64(_mm512_slli_epi64(both, 32), 32), limit_0, &first_in),
                  second = inside(_mm512_srai_epi64(both, 32), limit_1, &second_in), cut = by_first ? first : second;
    __mmask8 taken = clips ? 0xff : (__mmask8)(first_in & second_in);
    if (cuts) taken &= (__mmask8)(_mm512_cmpge_epi64_mask(cut, begin) & _mm512_cmple_epi64_mask(cut, last));
    const __m512i place = _mm512_add_epi64(_mm512_mul_epi32(first, pitch_0), _mm512_mul_epi32(second, pitch_1));
    _mm512_storeu_si512(list->row + count, _mm512_maskz_compress_epi64(taken, _mm512_add_epi64(lane, _mm512_set1_epi64(i))));
    _mm512_storeu_si512(list->place + count, _mm512_maskz_compress_epi64(taken, place));
    count += __builtin_popcount(taken);
  }
  list->count = count;
  return i;
}
static bool lists_eights(void) { return ax_machine_has(AX_FEATURE_AVX512); }
#else
static int64_t list_pairs(listing *list, const int32_t *at, int64_t i, int64_t end, const ax_scattering *s, range places) {
  (void)list, (void)at, (void)end, (void)s, (void)places;
  return i;
}
static int64_t list_eights(listing *list, const int32_t *at, int64_t i, int64_t end, accepting a) {
  (void)list, (void)at, (void)end, (void)a;
  return i;
}
static bool lists_eights(void) { return false; }
#endif

/* Lists rows [i, end) that this part accepts. No branch depends on a row's index, as it could not be predicted. */
static void list_rows(const ax_scattering *s, const memory *m, range places, int64_t i, int64_t end, listing *list) {
  const int32_t *at = (const int32_t *)(const void *)m->indices;
  const int64_t step = inner_loop(s)->indices, limit = s->limit[0], last = places.end <= limit ? places.end : limit + 1;
  const accepting a = {places.begin, limit, last > places.begin ? (uint64_t)(last - places.begin) : 0, s->clips};
  list->count = 0;
  list->pitch = s->pitch[0];
  if (s->index_dtype == AX_S32 && step == 1 && lists_eights()) i = list_eights(list, at, i, end, a);
  int64_t count = list->count;
  if (s->index_dtype == AX_S32 && a.clips)
    for (; i < end; i++) list_row(list, &count, i, at[i * step], (accepting){a.begin, a.limit, a.count, true});
  else if (s->index_dtype == AX_S32)
    for (; i < end; i++) list_row(list, &count, i, at[i * step], (accepting){a.begin, a.limit, a.count, false});
  else
    for (; i < end; i++) list_row(list, &count, i, number_at(s->index_dtype, m->indices, i * step), a);
  list->count = count;
}

/* Likewise rows at several numbers each, of which one says whether the part accepts them, or rows of which each has a part of the
   operand for itself. Their places are elements. */
static inline __attribute__((always_inline)) void list_numbers(const ax_scattering *s, const memory *m, range places, int64_t i, int64_t end,
                                                               listing *list, ax_dtype dtype) {
  const ax_scatter_loop row = *inner_loop(s);
  int64_t count = list->count;
  for (; i < end; i++) {
    uint64_t place = (uint64_t)i * (uint64_t)row.operand, accepted = 1;
    for (uint32_t k = 0; k < s->number_count; k++) {
      const int64_t limit = s->limit[k], start = number_at(dtype, m->indices, i * row.indices + k), low = start < 0 ? 0 : start,
                    inside = low > limit ? limit : low;
      accepted &= (uint64_t)(s->clips | ((start >= 0) & (start <= limit)));
      if ((int)k == s->cut_number) accepted &= (uint64_t)((inside >= places.begin) & (inside < places.end));
      place += (uint64_t)inside * (uint64_t)s->pitch[k];
    }
    list->row[count] = i;
    list->place[count] = (int64_t)place;
    count += (int64_t)accepted;
  }
  list->count = count;
}

static bool has_pairs(const ax_scattering *s) {
  bool narrow = s->number_count == 2 && s->index_dtype == AX_S32 && inner_loop(s)->indices == 2 && inner_loop(s)->operand == 0;
  for (int k = 0; k < 2; k++) narrow = narrow && s->pitch[k] <= INT32_MAX && s->limit[k] <= INT32_MAX;
  return narrow;
}

static void list_any(const ax_scattering *s, const memory *m, range places, int64_t i, int64_t end, listing *list) {
  if (s->number_count == 1 && inner_loop(s)->operand == 0) {
    list_rows(s, m, places, i, end, list);
    return;
  }
  list->count = 0;
  list->pitch = 1;
  if (has_pairs(s) && lists_eights()) i = list_pairs(list, (const int32_t *)(const void *)m->indices, i, end, s, places);
  if (s->index_dtype == AX_S32) list_numbers(s, m, places, i, end, list, AX_S32);
  else list_numbers(s, m, places, i, end, list, s->index_dtype);
}

/* Sums of single f32. */
static void add_listed(const ax_scattering *s, const memory *m, const listing *list) {
  float *to = (float *)(void *)m->operand;
  const float *from = (const float *)(const void *)m->updates;
  const int64_t updates = inner_loop(s)->updates;
  for (int64_t i = 0; i < list->count; i++) to[list->place[i] * list->pitch] += from[list->row[i] * updates];
}

static void fetch_row(const char *to, int64_t bytes) {
  for (int64_t at = 0; at < bytes && at < fetched_bytes; at += AX_LINE_BYTES) __builtin_prefetch(to + at, 1);
}

/* The part's columns of rows that are listed. */
static void do_listed(const ax_scattering *s, const memory *m, const listing *list, range columns) {
  const ax_scatter_loop scalar = {1, 1, 1, 0}, *row = s->window_rank > 0 ? &s->window[0] : &scalar;
  const int64_t count = columns.end - columns.begin, pitch = list->pitch * s->bytes, from = inner_loop(s)->updates * s->bytes;
  const char *updates = m->updates + columns.begin * row->updates * s->bytes;
  char *operand = m->operand + columns.begin * row->operand * s->bytes;
  if (m->combine != NULL && s->window_rank <= 1 && row->operand == 1 && row->updates == 1) {
    const ax_combined rows = {operand, updates, pitch, from, list->place, list->row, list->count, count, s->far};
    m->combine(s->combine, s->dtype, &rows);
    return;
  }
  for (int64_t i = 0; i < list->count; i++) {
    if (i + fetched_ahead < list->count) {
      fetch_row(operand + list->place[i + fetched_ahead] * pitch, count * s->bytes);
      if (s->far) fetch_row(updates + list->row[i + fetched_ahead] * from, count * s->bytes);
    }
    const run r = {.to = operand + list->place[i] * pitch, .from = updates + list->row[i] * from, .count = count,
                   .to_stride = row->operand, .from_stride = row->updates};
    if (s->window_rank > 1) do_window(s, m, list->place[i] * list->pitch, list->row[i] * inner_loop(s)->updates, (range){0, 1});
    else do_run(s, &r, m->combine);
  }
}

/* Batches of updates may have their indices in common: these are listed once, if all fit in a list. */
static void list_once(const ax_scattering *s, const memory *m, range places, range rows, listing *list) {
  if (list->of == m->indices && list->rows.begin == rows.begin && list->rows.end == rows.end) return;
  list_any(s, m, places, rows.begin, rows.end, list);
  list->of = m->indices;
  list->rows = rows;
}

/* Of a list of indices the windows `rows`, in places of the part, and of these its columns. */
static void do_rows(const ax_scattering *s, const memory *m, range rows, range places, range columns, listing *list) {
  const bool singles = s->combine == AX_SCALAR_ADD && s->dtype == AX_F32 && s->window_rank == 0;
  for (int64_t i = rows.begin; i < rows.end; i += listed) {
    list_once(s, m, places, (range){i, rows.end - i < listed ? rows.end : i + listed}, list);
    if (singles) add_listed(s, m, list);
    else do_listed(s, m, list, columns);
  }
}

/* --- One part --- */

typedef struct offsets { /* elements */
  int64_t operand, updates, indices;
} offsets;

static void move(offsets *at, const ax_scatter_loop *loop, int64_t steps) {
  at->operand += steps * loop->operand;
  at->updates += steps * loop->updates;
  at->indices += steps * loop->indices;
}

/* The part's windows of the list of indices at `at`. */
static void do_list(const ax_scattering *s, const memory *m, offsets at, range own, listing *list) {
  const memory here = {m->indices + at.indices * (int64_t)ax_dtype_bytes(s->index_dtype), m->updates + at.updates * s->bytes,
                       m->operand + at.operand * s->bytes, m->combine};
  const range rows = s->cut_batch >= 0 && s->cut_batch + 1 == (int)s->batch_rank ? own : (range){0, inner_loop(s)->extent};
  const range places = s->cut_number >= 0 ? own : (range){0, INT64_MAX};
  const range columns = s->cut_window == 0 ? own : (range){0, s->window_rank > 0 ? s->window[0].extent : 1};
  if (has_short_rows(s)) place_short_rows(s, &here);
  else do_rows(s, &here, rows, places, columns, list);
}

ax_status ax_scatter_part(const void *data, void *const *memories, uint32_t part) {
  const ax_scattering *s = data;
  const memory m = {memories[0], memories[1], memories[2], ax_combiner(s->combine, s->dtype)};
  const range own = {s->cut_extent * part / s->parts, s->cut_extent * (part + 1) / s->parts}, all = {0, 1};
  const bool lists = has_rows(s);
  const uint32_t rank = lists ? s->batch_rank - 1 : s->batch_rank;
  int64_t index[AX_MAX_RANK], first[AX_MAX_RANK], end[AX_MAX_RANK];
  offsets at = {0, 0, 0};
  listing list;
  list.of = NULL;
  for (uint32_t d = 0; d < rank; d++) {
    bool cut = (int)d == s->cut_batch;
    index[d] = first[d] = cut ? own.begin : 0;
    end[d] = cut ? own.end : s->batch[d].extent;
    move(&at, &s->batch[d], first[d]);
  }
  for (;;) {
    if (lists) do_list(s, &m, at, own, &list);
    else do_index(s, &m, at.indices, at.operand, at.updates, s->cut_batch >= 0 ? all : own);
    uint32_t d = rank;
    for (; d > 0; d--) {
      move(&at, &s->batch[d - 1], 1);
      if (++index[d - 1] < end[d - 1]) break;
      move(&at, &s->batch[d - 1], first[d - 1] - index[d - 1]);
      index[d - 1] = first[d - 1];
    }
    if (d == 0) return AX_OK;
  }
}
