/* Scatters that combine by any function of scalars, of one array or several: no primitive, but made of others. Where no two windows
   overlap, or there is only one, all windows are read, combined and put back at once. Otherwise one after the other, in the order of the
   indices, each reading what those before it have left.

     carry xs;   scanned: where the window begins, whether it is inside, the updates
       current = dynamic_slice(x, starts)
       x = dynamic_update_slice(x, where(inside, body(current.., update..), current), starts) */
#include <string.h>

#include "ops/gather.h"
#include "ops/scatter.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "prim/scalars.h"

typedef struct scatter_by {
  const ax_scatter_params *params;
  ax_program *body;
  uint32_t count; /* of arrays */
  const ax_value *xs, *updates;
  ax_value indices;
  ax_type x, index, wide; /* the types of the first array, of the indices and of the first updates */
  int64_t sizes[AX_MAX_RANK];
} scatter_by;

/* --- Checks --- */

static ax_status check_arrays(const scatter_by *s) {
  for (uint32_t k = 0; k < s->count; k++) {
    ax_type types[3] = {ax_typeof(s->xs[k]), s->index, ax_typeof(s->updates[k])}, out = {0};
    if (!ax_same_shape(&types[0], &s->x) || !ax_same_shape(&types[2], &s->wide))
      return ax_error(AX_INVALID_ARGUMENT, "array %u and its updates must have the shapes of the first", k);
    types[2].dtype = types[0].dtype; /* what the body makes of both has the array's */
    AX_TRY(ax_prim_scatter.infer(&(ax_infer_args){
        .prim = &ax_prim_scatter, .params = s->params, .axes = &ax_builder_current()->axes, .in = types, .in_count = 3, .out_count = 1, .out = &out}));
  }
  return AX_OK;
}

static ax_status trace_body(scatter_by *s, ax_fn body) {
  const uint32_t count = s->count;
  ax_dtype *dtypes = ax_trace_alloc(2 * (size_t)count * sizeof dtypes[0]);
  if (dtypes == NULL) return ax_out_of_memory(2 * count * sizeof dtypes[0]);
  for (uint32_t k = 0; k < count; k++)
    dtypes[k] = ax_typeof(s->xs[k]).dtype, dtypes[count + k] = ax_typeof(s->updates[k]).dtype;
  if (body.in_count != 2 * count || body.out_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "the body must take %u scalars and give %u", 2 * count, count);
  AX_TRY(ax_scalars_trace("scatter", "body", body, dtypes, &s->body));
  for (uint32_t k = 0; k < count; k++) {
    const ax_dtype made = s->body->types[s->body->outs[k]].dtype;
    if (made != dtypes[k])
      return ax_error(AX_INVALID_ARGUMENT, "result %u of the body is %s, and the array is %s", k, ax_dtype_name(made), ax_dtype_name(dtypes[k]));
  }
  return AX_OK;
}

/* --- All at once --- */

static void scatter_together(const scatter_by *s, ax_value *out) {
  const ax_indexing *at = &s->params->at;
  ax_value *in = ax_trace_alloc(2 * (size_t)s->count * sizeof in[0]), *made = ax_trace_alloc(s->count * sizeof made[0]);
  if (in == NULL || made == NULL) return;
  for (uint32_t k = 0; k < s->count; k++) {
    in[k] = ax_gather_of(s->xs[k], s->indices, at, s->sizes);
    in[s->count + k] = s->updates[k];
  }
  if (!ax_failed()) ax_scalars_call(s->body, in, made);
  for (uint32_t k = 0; k < s->count && !ax_failed(); k++) out[k] = ax_scatter_of(s->xs[k], s->indices, made[k], at);
}

/* --- One after the other --- */

/* T[b.., ..] as T[n, ..], n being the number of windows. */
static ax_value flat(ax_value x, int64_t windows, uint32_t rank, const int64_t *sizes) {
  int64_t dims[AX_MAX_RANK + 1] = {windows};
  memcpy(dims + 1, sizes, rank * sizeof dims[0]);
  if (rank == AX_MAX_RANK) return ax_reject_as("scatter", "a window of %u dimensions is too large to be applied one after the other", rank);
  return (ax_reshape)(x, AX_LIST(rank + 1, dims));
}

/* s64[n]: where windows begin along dimension d of the arrays. */
static ax_value starts_along(const scatter_by *s, const ax_index_windows *w, uint32_t d, int64_t windows) {
  const ax_indexing *at = &s->params->at;
  const uint32_t last = s->index.rank - 1;
  const ax_dims none = {0};
  if (w->component_of[d] >= 0)
    return flat(ax_at(ax_convert_element_type(s->indices, AX_S64), w->component_of[d], last), windows, 0, none.v);
  for (uint32_t i = 0; i < at->batching.count; i++)
    if (at->batching.v[i] == d) return flat((ax_iota)(AX_S64, AX_LIST(last, s->index.dims), at->index_batching.v[i]), windows, 0, none.v);
  return (ax_full)(AX_S64, AX_LIST(1, &windows), 0);
}

/* bool[n]: whether windows are inside the arrays. */
static ax_value windows_inside(const scatter_by *s, const ax_index_windows *w, const ax_value *starts, int64_t windows) {
  ax_value inside = (ax_full)(AX_BOOL, AX_LIST(1, &windows), 1);
  for (uint32_t d = 0; d < s->x.rank; d++) {
    const ax_value above = ax_ge(starts[d], ax_integer(0)), below = ax_le(starts[d], ax_integer(w->limit[d]));
    inside = ax_and(inside, ax_and(above, below));
  }
  return inside;
}

/* The updates with the windows' dimensions behind the others, and those of 1 that they leave out. */
static ax_value updates_in_order(const scatter_by *s, ax_value updates, int64_t windows) {
  const ax_dims *window = &s->params->at.window;
  const ax_dims others = ax_dims_others(s->wide.rank, window, NULL);
  int64_t order[AX_MAX_RANK];
  memcpy(order, others.v, others.count * sizeof order[0]);
  memcpy(order + others.count, window->v, window->count * sizeof order[0]);
  return flat((ax_transpose)(updates, AX_LIST(s->wide.rank, order)), windows, s->x.rank, s->sizes);
}

/* carries: arrays; slices: starts, whether the window is inside, updates. */
static AX_BODY(apply) {
  const scatter_by *s = context;
  const uint32_t n = s->count, rank = s->x.rank;
  const ax_value *starts = in + n, inside = starts[rank], *updates = starts + rank + 1;
  ax_value *pair = ax_trace_alloc(2 * (size_t)n * sizeof pair[0]), *made = ax_trace_alloc(n * sizeof made[0]);
  if (pair == NULL || made == NULL) return;
  for (uint32_t k = 0; k < n; k++) {
    pair[k] = (ax_dynamic_slice)(in[k], AX_LIST(rank, starts), AX_LIST(rank, s->sizes));
    pair[n + k] = updates[k];
  }
  if (!ax_failed()) ax_scalars_call(s->body, pair, made);
  for (uint32_t k = 0; k < n && !ax_failed(); k++)
    out[k] = (ax_dynamic_update_slice)(in[k], ax_where(inside, made[k], pair[k]), AX_LIST(rank, starts));
}

static void scatter_in_order(scatter_by *s, int64_t windows, ax_value *out) {
  const uint32_t n = s->count, rank = s->x.rank, ins = 2 * n + rank + 1;
  const ax_index_windows w = ax_windows_of(&s->params->at, &s->x, &s->index, s->sizes);
  ax_value *in = ax_trace_alloc(ins * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t k = 0; k < n; k++) in[k] = s->xs[k];
  for (uint32_t d = 0; d < rank; d++) in[n + d] = starts_along(s, &w, d, windows);
  in[n + rank] = windows_inside(s, &w, in + n, windows);
  for (uint32_t k = 0; k < n; k++) in[n + rank + 1 + k] = updates_in_order(s, s->updates[k], windows);
  if (!ax_failed()) (ax_scan)((ax_fn){apply, ins, n, s}, n, windows, false, ins, in, n, out);
}

/* No window is inside an array that is shorter than a window, as one without elements is. */
static bool is_too_short(const scatter_by *s) {
  for (uint32_t d = 0; d < s->x.rank; d++)
    if (s->sizes[d] > s->x.dims[d]) return true;
  return false;
}

ax_status ax_scatter_by(uint32_t count, const ax_value *xs, ax_value indices, const ax_value *updates, const ax_scatter_params *params,
                        ax_fn body, ax_value *out) {
  scatter_by s = {.params = params, .count = count, .xs = xs, .updates = updates, .indices = indices};
  if (count == 0) return ax_error(AX_INVALID_ARGUMENT, "there is no array");
  s.x = ax_typeof(xs[0]), s.index = ax_typeof(indices), s.wide = ax_typeof(updates[0]);
  if (ax_failed()) return AX_OK;
  AX_TRY(check_arrays(&s));
  const ax_status status = trace_body(&s, body);
  if (status == AX_OK) {
    const int64_t windows = ax_dims_elems(s.index.rank - 1, s.index.dims);
    ax_window_sizes(&params->at, &s.x, &s.wide, s.sizes);
    if (is_too_short(&s)) memcpy(out, xs, count * sizeof out[0]);
    else if (params->at.unique || windows <= 1) scatter_together(&s, out);
    else scatter_in_order(&s, windows, out);
  }
  ax_program_release(s.body);
  return status;
}
