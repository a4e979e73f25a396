/* Cuts a scatter into parts for threads, by the place that is written:

     batching dimensions      each part has some coordinates along one, and goes through the windows that lie there
     the window's dimensions  each part has some coordinates of the operand along one, and does its part of every window; a window
                              that an index moves along it may miss the part

   A batching dimension is cut if there is one; then a dimension of the window that no index moves, if its runs are long; then one
   that an index moves; then any. */
#include <string.h>

#include "machine/caches.h"
#include "machine/features.h"
#include "ops/scatter.h"
#include "ops/scatter_routine.h"
#include "plan/lower.h"
#include "plan/plan.h"

typedef struct arrays {
  const ax_type *operand, *indices, *updates;
} arrays;

static void find_loops(ax_scattering *s, const ax_index_windows *w, const arrays *a) {
  int64_t operand[AX_MAX_RANK], indices[AX_MAX_RANK], updates[AX_MAX_RANK];
  bool is_batch[AX_MAX_RANK] = {false};
  ax_dense_strides(a->operand->rank, a->operand->dims, operand);
  ax_dense_strides(a->indices->rank, a->indices->dims, indices);
  ax_dense_strides(a->updates->rank, a->updates->dims, updates);
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) {
    s->batch[s->batch_rank++] = (ax_scatter_loop){a->indices->dims[d], 0, updates[w->wide_of_index[d]], indices[d]};
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
    s->window[s->window_rank++] = (ax_scatter_loop){w->sizes[d], operand[d], updates[wide], 0};
  }
}

/* Windows whose elements lie apart, at indices whose updates lie next to each other, as those that add to columns: each of a window's places
   becomes a batch of its own, of single elements at these indices. Each place is still met in the order of the indices, unless they move windows
   over one another. */
static void turn_windows(ax_scattering *s, const ax_index_windows *w) {
  enum { least_put = 48, least_combined = 8 };
  const int64_t least = s->combine == AX_SCALAR_NONE ? least_put : least_combined;
  const ax_scatter_loop *list = s->batch_rank > 0 ? &s->batch[s->batch_rank - 1] : NULL;
  if (list == NULL || s->window_rank == 0 || s->number_count == 0 || list->extent < least || list->updates != 1 || list->operand != 0) return;
  for (uint32_t d = 0; d < s->window_rank; d++)
    if (s->window[d].operand == 1 && s->window[d].extent > 1) return;
  for (uint32_t d = 0; d < w->rank; d++)
    if (w->component_of[d] >= 0 && w->sizes[d] > 1) return;
  memmove(s->batch + s->window_rank, s->batch, s->batch_rank * sizeof s->batch[0]);
  memcpy(s->batch, s->window, s->window_rank * sizeof s->batch[0]);
  s->batch_rank += s->window_rank;
  s->window_rank = 0;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) s->window_of[d] = -1;
}

enum { run_bytes = 128, long_bytes = 16 << 10, most_parts = 16, few_parts = 4, enough_bytes = 64, short_bytes = 128 };

static uint32_t fewer(double wanted, int64_t most) {
  return (double)most < wanted ? (uint32_t)(most > 1 ? most : 1) : (uint32_t)wanted;
}

static void try_cut(ax_scattering *s, int batch, int window, int number, int64_t extent, uint32_t parts) {
  if (parts <= s->parts) return;
  s->cut_batch = batch, s->cut_window = window, s->cut_number = number;
  s->cut_extent = extent;
  s->parts = parts;
}

/* Along a dimension of the window that has runs so long. */
static void cut_windows(ax_scattering *s, const ax_index_windows *w, int64_t least, double wanted) {
  for (uint32_t d = 0; d < w->rank; d++) {
    if (s->window_of[d] < 0 || w->component_of[d] >= 0) continue;
    const ax_scatter_loop *own = &s->window[s->window_of[d]];
    const int64_t bytes = own->extent * own->operand * s->bytes, runs = bytes / run_bytes;
    if (bytes >= least) try_cut(s, -1, s->window_of[d], -1, own->extent, fewer(wanted, runs < own->extent ? runs : own->extent));
  }
}

/* Every part looks at every index, and at other updates than those that lie in order. Updates that lie in memory come from
   there once for each part, since processors fetch what lies behind and whole lines. So these parts are few, and short ones one: a
   thread that takes all rows of a line or less, as they come, is as fast as two that each look for their own. */
static void cut_places(ax_scattering *s, const ax_index_windows *w, const arrays *a, double wanted) {
  int64_t elems = 1;
  if (wanted > few_parts) wanted = few_parts;
  if (s->far && wanted > 2) wanted = 2;
  for (uint32_t d = 0; d < s->window_rank; d++) elems *= s->window[d].extent;
  const bool few = elems * s->bytes <= enough_bytes || (s->far && elems * s->bytes <= short_bytes);
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
static void find_cut(ax_scattering *s, const ax_index_windows *w, const arrays *a, double wanted) {
  try_cut(s, -1, -1, -1, 1, 1);
  if (wanted > most_parts) wanted = most_parts;
  for (uint32_t b = 0; b < s->batch_rank; b++)
    if (s->batch[b].operand != 0) try_cut(s, (int)b, -1, -1, s->batch[b].extent, fewer(wanted, s->batch[b].extent));
  cut_windows(s, w, long_bytes, wanted);
  if (s->parts == 1) cut_places(s, w, a, wanted);
  if (s->parts == 1) cut_windows(s, w, 0, wanted);
}

/* Window dimensions that lie behind one another are one. The one that is cut stays by itself. */
static void join_window(ax_scattering *s) {
  uint32_t rank = 0;
  int cut = -1;
  for (uint32_t d = 0; d < s->window_rank; d++) {
    const ax_scatter_loop here = s->window[d];
    ax_scatter_loop *last = rank > 0 ? &s->window[rank - 1] : NULL;
    bool own = (int)d == s->cut_window, free = !own && (cut < 0 || cut != (int)rank - 1);
    if (here.extent == 1 && !own) continue;
    if (last != NULL && free && last->operand == here.operand * here.extent && last->updates == here.updates * here.extent) {
      *last = (ax_scatter_loop){last->extent * here.extent, here.operand, here.updates, 0};
      continue;
    }
    if (own) cut = (int)rank;
    s->window[rank++] = here;
  }
  s->window_rank = rank;
  s->cut_window = cut;
}

/* Likewise those of the indices, of which none is cut. */
static void join_batch(ax_scattering *s) {
  uint32_t rank = 0;
  for (uint32_t b = 0; b < s->batch_rank; b++) {
    const ax_scatter_loop here = s->batch[b];
    ax_scatter_loop *last = rank > 0 ? &s->batch[rank - 1] : NULL;
    if (last != NULL && last->operand == here.operand * here.extent && last->updates == here.updates * here.extent &&
        last->indices == here.indices * here.extent)
      *last = (ax_scatter_loop){last->extent * here.extent, here.operand, here.updates, here.indices};
    else
      s->batch[rank++] = here;
  }
  s->batch_rank = rank;
}

/* Nanoseconds an element: sums of bytes and of f16 are vectors of more of them, where registers have 64 bytes. */
static double element_time(ax_dtype dtype) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(dtype);
  const bool in_f32 = dtype == AX_BF16 || (dtype == AX_F16 && ax_machine_register_bytes() < 64);
  if (ax_is_byte_float(dtype) || ax_is_short_integer(dtype)) return 1; /* by a table */
  return in_f32 || bytes > 4 ? 0.1 : 0.025 * (double)bytes;
}

ax_status ax_lower_scatter(ax_lower *lower, ax_scalar combine, const ax_index_windows *w, bool clips, const uint32_t *in,
                           uint32_t out) {
  const ax_type operand = *ax_lower_type(lower, out), indices = *ax_lower_type(lower, in[0]),
                updates = *ax_lower_type(lower, in[1]);
  const arrays a = {&operand, &indices, &updates};
  ax_scattering s = {.combine = combine,
               .dtype = operand.dtype,
               .index_dtype = indices.dtype,
               .clips = clips,
               .bytes = (int64_t)ax_dtype_bytes(operand.dtype)};
  s.far = ax_type_elems(&updates) * s.bytes > ax_caches_here()->shared;
  find_loops(&s, w, &a);
  int64_t windows = 1;
  for (uint32_t b = 0; b < s.batch_rank; b++) windows *= s.batch[b].extent;
  turn_windows(&s, w);
  double time = element_time(operand.dtype) * (double)ax_type_elems(&updates) + 5 * (double)windows;
  find_cut(&s, w, &a, time / 25000);
  join_window(&s);
  if (s.cut_batch < 0) join_batch(&s);
  uint32_t buffers[] = {in[0], in[1], out};
  const ax_routine routine = {.run = ax_scatter_part,
                              .data = &s,
                              .in_count = 2,
                              .out_count = 1,
                              .parts = s.parts,
                              .buffers = buffers,
                              .updates = true,
                              .adds = combine == AX_SCALAR_ADD && !ax_is_narrow_float(operand.dtype),
                              .time = time};
  return ax_lower_routine(lower, &routine, sizeof s);
}
