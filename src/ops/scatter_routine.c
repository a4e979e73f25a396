/* Applies updates window after window, in the order of the indices, so that sums are the same on any number of threads. The threads
   share the work by the place that is written:

     batching dimensions      each part has some coordinates along one, and goes through the windows that lie there
     the window's dimensions  each part has some coordinates of the operand along one, and does its part of every window; a window
                              that an index moves along it may miss the part

   A batching dimension is cut if there is one; then a dimension of the window that no index moves, if its runs are long; then one
   that an index moves; then any. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "machine/caches.h"
#include "machine/features.h"
#include "ops/combine.h"
#include "ops/pointwise.h"
#include "ops/scatter.h"
#include "plan/lower.h"
#include "plan/plan.h"

typedef struct loop { /* a dimension: strides in elements */
  int64_t extent, operand, updates, indices;
} loop;

typedef struct scatter {
  ax_scalar combine;
  ax_dtype dtype, index_dtype;
  bool clips, far; /* far: the updates lie in memory, as no cache holds them */
  int64_t bytes;
  uint32_t batch_rank, number_count, window_rank;
  loop batch[AX_MAX_RANK], window[AX_MAX_RANK];
  int64_t limit[AX_MAX_RANK],
      pitch[AX_MAX_RANK]; /* by number of an index: the largest start of a window, and the distance between places */
  /* The dimension that is cut into parts: a batch dimension, or else a dimension of the operand: */
  int cut_batch, cut_window, cut_number; /* the window's dimension that moves along it and the index's number that moves the window
                                            there; -1: none */
  int64_t cut_extent;
  uint32_t parts;
  int window_of[AX_MAX_RANK]; /* by operand dimension, before windows are joined; -1: a batching dimension, or of size 1 */
} scatter;

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

static void combine_any(const scatter *s, const run *r) {
  for (int64_t i = 0; i < r->count; i++) {
    int64_t at = i * r->to_stride;
    ax_number x[] = {ax_number_load(s->dtype, r->to, at), ax_number_load(s->dtype, r->from, i * r->from_stride)};
    ax_number_store(s->dtype, r->to, at, ax_scalar_eval(s->combine, s->dtype, x, 0));
  }
}

static void combine_together(const scatter *s, char *to, const char *from, int64_t count, ax_combine *combine) {
  static const int64_t first = 0;
  combine(s->combine, s->dtype, &(ax_combined){to, from, 0, 0, &first, &first, 1, count, false});
}

/* Elements some distance apart, a buffer at a time. */
static void combine_strided(const scatter *s, const run *r, ax_combine *combine) {
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
static void do_run(const scatter *s, const run *r, ax_combine *combine) {
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
static void do_window(const scatter *s, const memory *m, int64_t operand, int64_t updates, range own) {
  const uint32_t rank = s->window_rank;
  const loop scalar = {1, 1, 1, 0}, *last = rank > 0 ? &s->window[rank - 1] : &scalar;
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
      const loop *l = &s->window[d - 1];
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
static void do_index(const scatter *s, const memory *m, int64_t indices, int64_t operand, int64_t updates, range part) {
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

typedef float four __attribute__((vector_size(16), aligned(4), may_alias)); /* floats, added at once */

static inline __attribute__((always_inline)) void add_to(float *to, const float *from, int64_t width) {
  int64_t k = 0;
  for (; k + 4 <= width; k += 4) *(four *)(void *)(to + k) += *(const four *)(const void *)(from + k);
  for (; k < width; k++) to[k] += from[k];
}

/* Sums of f32 in rows of so few elements, a constant, at one number of 32 bits each. */
static inline __attribute__((always_inline)) void add_some(const scatter *s, const memory *m, range part, int64_t width) {
  enum { ahead = 4096 }; /* bytes of updates */
  const loop l = s->batch[0];
  const int32_t *at = (const int32_t *)(const void *)m->indices;
  const float *from = (const float *)(const void *)m->updates;
  float *to = (float *)(void *)m->operand;
  const int64_t limit = s->limit[0], pitch = s->pitch[0];
  const bool clips = s->clips, fetches = s->far && width >= 4;
  for (int64_t i = 0; i < l.extent; i++, at += l.indices, from += l.updates) {
    int64_t start = *at;
    if (start < 0 || start > limit) {
      if (!clips) continue;
      start = start < 0 ? 0 : limit;
    }
    if (fetches) __builtin_prefetch((const char *)from + ahead);
    if (start >= part.begin && start < part.end) add_to(to + start * pitch, from, width);
  }
}

/* Whether sums are so simple, and one part makes them: of several, each would skip rows that cannot be foreseen. */
static bool adds_some(const scatter *s) {
  const loop *row = &s->window[0];
  const int64_t width = s->window_rank > 0 ? row->extent : 1;
  if (s->combine != AX_SCALAR_ADD || s->dtype != AX_F32 || s->index_dtype != AX_S32 || s->window_rank > 1) return false;
  return s->window_rank == 0 || (s->parts == 1 && row->operand == 1 && row->updates == 1 &&
                                 (width == 2 || width == 4 || width == 8 || width == 16));
}

static void add_rows(const scatter *s, const memory *m, range part) {
  switch (s->window_rank > 0 ? s->window[0].extent : 1) {
    case 1: add_some(s, m, part, 1); return;
    case 2: add_some(s, m, part, 2); return;
    case 4: add_some(s, m, part, 4); return;
    case 8: add_some(s, m, part, 8); return;
    default: add_some(s, m, part, 16); return;
  }
}

/* One number an index, and of windows that have pieces in several parts only runs. */
static bool has_rows(const scatter *s) {
  const bool pieces = s->cut_window >= 0;
  return s->batch_rank == 1 && s->batch[0].operand == 0 && s->number_count == 1 &&
         (!pieces || (s->window_rank == 1 && s->cut_number < 0));
}

enum { listed = 256, at_once = 8, fetched_ahead = 8, fetched_bytes = 512 }; /* rows; of each */

typedef struct listing { /* rows of the part, and where they go */
  int64_t count, row[listed + at_once], place[listed + at_once];
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
static bool lists_eights(void) { return ax_machine_has(AX_FEATURE_AVX512); }
#else
static int64_t list_eights(listing *list, const int32_t *at, int64_t i, int64_t end, accepting a) {
  (void)list, (void)at, (void)end, (void)a;
  return i;
}
static bool lists_eights(void) { return false; }
#endif

/* Lists rows [i, end) that this part accepts. No branch depends on a row's index, as it could not be predicted. */
static void list_rows(const scatter *s, const memory *m, range places, int64_t i, int64_t end, listing *list) {
  const int32_t *at = (const int32_t *)(const void *)m->indices;
  const int64_t step = s->batch[0].indices, limit = s->limit[0], last = places.end <= limit ? places.end : limit + 1;
  const accepting a = {places.begin, limit, last > places.begin ? (uint64_t)(last - places.begin) : 0, s->clips};
  list->count = 0;
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

static void fetch_row(const char *to, int64_t bytes) {
  for (int64_t at = 0; at < bytes && at < fetched_bytes; at += AX_LINE_BYTES) __builtin_prefetch(to + at, 1);
}

/* The part's columns of rows that are listed. */
static void do_listed(const scatter *s, const memory *m, const listing *list, range columns) {
  const loop scalar = {1, 1, 1, 0}, *row = s->window_rank > 0 ? &s->window[0] : &scalar;
  const int64_t count = columns.end - columns.begin, pitch = s->pitch[0] * s->bytes, from = s->batch[0].updates * s->bytes;
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
    if (s->window_rank > 1) do_window(s, m, list->place[i] * s->pitch[0], list->row[i] * s->batch[0].updates, (range){0, 1});
    else do_run(s, &r, m->combine);
  }
}

/* Rows at one number each: those in places of the part, and of these its columns. */
static void do_rows(const scatter *s, const memory *m, range places, range columns) {
  const int64_t extent = s->batch[0].extent;
  listing list;
  for (int64_t i = 0; i < extent; i += listed) {
    list_rows(s, m, places, i, extent - i < listed ? extent : i + listed, &list);
    do_listed(s, m, &list, columns);
  }
}

static ax_status do_part(const void *data, void *const *memories, uint32_t part) {
  const scatter *s = data;
  const memory m = {memories[0], memories[1], memories[2], ax_combiner(s->combine, s->dtype)};
  range own = {s->cut_extent * part / s->parts, s->cut_extent * (part + 1) / s->parts}, all = {0, 1};
  int64_t index[AX_MAX_RANK], first[AX_MAX_RANK], end[AX_MAX_RANK], operand = 0, updates = 0, indices = 0;
  if (has_rows(s)) {
    const range places = s->cut_number == 0 ? own : (range){0, INT64_MAX};
    const range columns = s->cut_window == 0 ? own : (range){0, s->window_rank > 0 ? s->window[0].extent : 1};
    if (adds_some(s)) add_rows(s, &m, places);
    else do_rows(s, &m, places, columns);
    return AX_OK;
  }
  for (uint32_t d = 0; d < s->batch_rank; d++) {
    bool cut = (int)d == s->cut_batch;
    index[d] = first[d] = cut ? own.begin : 0;
    end[d] = cut ? own.end : s->batch[d].extent;
    operand += first[d] * s->batch[d].operand;
    updates += first[d] * s->batch[d].updates;
    indices += first[d] * s->batch[d].indices;
  }
  for (;;) {
    do_index(s, &m, indices, operand, updates, s->cut_batch >= 0 ? all : own);
    uint32_t d = s->batch_rank;
    for (; d > 0; d--) {
      const loop *l = &s->batch[d - 1];
      operand += l->operand;
      updates += l->updates;
      indices += l->indices;
      if (++index[d - 1] < end[d - 1]) break;
      int64_t back = index[d - 1] - first[d - 1];
      operand -= back * l->operand;
      updates -= back * l->updates;
      indices -= back * l->indices;
      index[d - 1] = first[d - 1];
    }
    if (d == 0) return AX_OK;
  }
}

/* --- Before --- */

typedef struct arrays {
  const ax_type *operand, *indices, *updates;
} arrays;

static void find_loops(scatter *s, const ax_index_windows *w, const arrays *a) {
  int64_t operand[AX_MAX_RANK], indices[AX_MAX_RANK], updates[AX_MAX_RANK];
  bool is_batch[AX_MAX_RANK] = {false};
  ax_dense_strides(a->operand->rank, a->operand->dims, operand);
  ax_dense_strides(a->indices->rank, a->indices->dims, indices);
  ax_dense_strides(a->updates->rank, a->updates->dims, updates);
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) {
    s->batch[s->batch_rank++] = (loop){a->indices->dims[d], 0, updates[w->wide_of_index[d]], indices[d]};
    is_batch[w->wide_of_index[d]] = true;
  }
  for (uint32_t d = 0; d < w->rank; d++) {
    int wide = w->wide_of[d], number = w->component_of[d];
    s->window_of[d] = -1;
    if (number >= 0) {
      s->limit[number] = w->limit[d];
      s->pitch[number] = operand[d];
      s->number_count++;
    }
    for (uint32_t b = 0; wide >= 0 && is_batch[wide] && b < s->batch_rank; b++)
      if (w->wide_of_index[b] == wide) s->batch[b].operand = operand[d];
    if (wide < 0 || is_batch[wide]) continue;
    s->window_of[d] = (int)s->window_rank;
    s->window[s->window_rank++] = (loop){w->sizes[d], operand[d], updates[wide], 0};
  }
}

enum { run_bytes = 128, long_bytes = 16 << 10, most_parts = 16, few_parts = 4, enough_bytes = 64, short_bytes = 128 };

static uint32_t fewer(double wanted, int64_t most) {
  return (double)most < wanted ? (uint32_t)(most > 1 ? most : 1) : (uint32_t)wanted;
}

static void try_cut(scatter *s, int batch, int window, int number, int64_t extent, uint32_t parts) {
  if (parts <= s->parts) return;
  s->cut_batch = batch, s->cut_window = window, s->cut_number = number;
  s->cut_extent = extent;
  s->parts = parts;
}

/* Along a dimension of the window that has runs so long. */
static void cut_windows(scatter *s, const ax_index_windows *w, int64_t least, double wanted) {
  for (uint32_t d = 0; d < w->rank; d++) {
    if (s->window_of[d] < 0 || w->component_of[d] >= 0) continue;
    const loop *own = &s->window[s->window_of[d]];
    const int64_t bytes = own->extent * own->operand * s->bytes, runs = bytes / run_bytes;
    if (bytes >= least) try_cut(s, -1, s->window_of[d], -1, own->extent, fewer(wanted, runs < own->extent ? runs : own->extent));
  }
}

/* Every part looks at every index, and at other updates than those that lie in order. Updates that lie in memory come from
   there once for each part, since processors fetch what lies behind and whole lines. So these parts are few, and short ones one. */
static void cut_places(scatter *s, const ax_index_windows *w, const arrays *a, double wanted) {
  int64_t elems = 1;
  if (wanted > few_parts) wanted = few_parts;
  if (s->far && wanted > 2) wanted = 2;
  for (uint32_t d = 0; d < s->window_rank; d++) elems *= s->window[d].extent;
  const bool few = elems * s->bytes < enough_bytes || (s->far && elems * s->bytes <= short_bytes);
  if (few && ax_type_elems(a->operand) * s->bytes <= ax_caches_here()->second) return;
  for (uint32_t d = 0; d < w->rank; d++) {
    const int window = s->window_of[d];
    const bool whole = window < 0 || s->window[window].extent == 1; /* it has no pieces */
    if (w->component_of[d] >= 0)
      try_cut(s, -1, whole ? -1 : window, w->component_of[d], a->operand->dims[d], fewer(wanted, a->operand->dims[d]));
  }
}

/* By shapes alone. Short windows stay whole if that can be: threads that go through them at the same time would meet at the ends of
   their pieces, in one line of the cache, window after window. */
static void find_cut(scatter *s, const ax_index_windows *w, const arrays *a, double wanted) {
  try_cut(s, -1, -1, -1, 1, 1);
  if (wanted > most_parts) wanted = most_parts;
  for (uint32_t b = 0; b < s->batch_rank; b++)
    if (s->batch[b].operand != 0) try_cut(s, (int)b, -1, -1, s->batch[b].extent, fewer(wanted, s->batch[b].extent));
  cut_windows(s, w, long_bytes, wanted);
  if (s->parts == 1) cut_places(s, w, a, wanted);
  if (s->parts == 1) cut_windows(s, w, 0, wanted);
}

/* Window dimensions that lie behind one another are one. The one that is cut stays by itself. */
static void join_window(scatter *s) {
  uint32_t rank = 0;
  int cut = -1;
  for (uint32_t d = 0; d < s->window_rank; d++) {
    const loop here = s->window[d];
    loop *last = rank > 0 ? &s->window[rank - 1] : NULL;
    bool own = (int)d == s->cut_window, free = !own && (cut < 0 || cut != (int)rank - 1);
    if (here.extent == 1 && !own) continue;
    if (last != NULL && free && last->operand == here.operand * here.extent && last->updates == here.updates * here.extent) {
      *last = (loop){last->extent * here.extent, here.operand, here.updates, 0};
      continue;
    }
    if (own) cut = (int)rank;
    s->window[rank++] = here;
  }
  s->window_rank = rank;
  s->cut_window = cut;
}

/* Likewise those of the indices, of which none is cut. */
static void join_batch(scatter *s) {
  uint32_t rank = 0;
  for (uint32_t b = 0; b < s->batch_rank; b++) {
    const loop here = s->batch[b];
    loop *last = rank > 0 ? &s->batch[rank - 1] : NULL;
    if (last != NULL && last->operand == here.operand * here.extent && last->updates == here.updates * here.extent &&
        last->indices == here.indices * here.extent)
      *last = (loop){last->extent * here.extent, here.operand, here.updates, here.indices};
    else
      s->batch[rank++] = here;
  }
  s->batch_rank = rank;
}

ax_status ax_lower_scatter(ax_lower *lower, ax_scalar combine, const ax_index_windows *w, bool clips, const uint32_t *in,
                           uint32_t out) {
  const ax_type operand = *ax_lower_type(lower, out), indices = *ax_lower_type(lower, in[0]),
                updates = *ax_lower_type(lower, in[1]);
  const arrays a = {&operand, &indices, &updates};
  scatter s = {.combine = combine,
               .dtype = operand.dtype,
               .index_dtype = indices.dtype,
               .clips = clips,
               .bytes = (int64_t)ax_dtype_bytes(operand.dtype)};
  s.far = ax_type_elems(&updates) * s.bytes > ax_caches_here()->shared;
  find_loops(&s, w, &a);
  int64_t windows = 1;
  for (uint32_t b = 0; b < s.batch_rank; b++) windows *= s.batch[b].extent;
  double time = 0.1 * (double)ax_type_elems(&updates) + 5 * (double)windows;
  find_cut(&s, w, &a, time / 30000);
  join_window(&s);
  if (s.cut_batch < 0) join_batch(&s);
  uint32_t buffers[] = {in[0], in[1], out};
  const ax_routine routine = {.run = do_part,
                              .data = &s,
                              .in_count = 2,
                              .out_count = 1,
                              .parts = s.parts,
                              .buffers = buffers,
                              .updates = true,
                              .time = time};
  return ax_lower_routine(lower, &routine, sizeof s);
}
