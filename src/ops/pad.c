/* pad: T[d..], value T[] -> T[n..]         n = low + high + d + max(d - 1, 0) * interior
   y[low + i * (interior + 1) ..] = x[i..], `value` everywhere else. A negative low or high cuts elements off.
   Parameters: low, high, interior; one entry a dimension.
   Errors: a negative interior or result; a value of another dtype or not a scalar.
   Linear in both; x's transpose cuts and takes the strided slice, the value's sums the rest. */
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct pad_params {
  ax_dims low, high, interior;
} pad_params;

enum { most_log2 = 60, small_elems = 4096 }; /* amounts stay below 2^60: no sum of them overflows */

static ax_status infer_dim(const pad_params *p, uint32_t d, int64_t size, int64_t *out) {
  const int64_t most = (int64_t)1 << most_log2;
  int64_t low = p->low.v[d], high = p->high.v[d], interior = p->interior.v[d], between = 0;
  if (interior < 0) return ax_error(AX_INVALID_ARGUMENT, "interior of dimension %u is %lld", d, (long long)interior);
  bool fits = low > -most && low < most && high > -most && high < most && interior < most && size < most;
  if (size > 1) fits = fits && ax_mul_i64(size - 1, interior, &between) && between < most;
  if (!fits) return ax_error(AX_INVALID_ARGUMENT, "the padding of dimension %u is too large", d);
  *out = low + high + size + between;
  if (*out < 0)
    return ax_error(AX_INVALID_ARGUMENT, "low %lld and high %lld cut more than dimension %u has, %lld", (long long)low,
                    (long long)high, d, (long long)(size + between));
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const pad_params *p = args->params;
  const ax_type *x = &args->in[0], *value = &args->in[1];
  if (value->rank != 0 || value->dtype != x->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "the padding value is %s, not %s[]", ax_type_string(value, args->axes),
                    ax_dtype_name(x->dtype));
  AX_TRY(ax_infer_one_each("low", &p->low, x->rank));
  AX_TRY(ax_infer_one_each("high", &p->high, x->rank));
  AX_TRY(ax_infer_one_each("interior", &p->interior, x->rank));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  for (uint32_t d = 0; d < x->rank; d++) AX_TRY(infer_dim(p, d, x->dims[d], &args->out[0].dims[d]));
  return AX_OK;
}

/* The part of x that is in the result: in each dimension, count elements from `first` on. The first of them lies at `place` of the
   result, the others `step` apart. */
typedef struct window {
  int64_t first[AX_MAX_RANK], count[AX_MAX_RANK], place[AX_MAX_RANK], step[AX_MAX_RANK];
} window;

static window window_of(const pad_params *p, uint32_t rank, const int64_t *x_dims, const int64_t *out_dims) {
  window w = {0};
  for (uint32_t d = 0; d < rank; d++) {
    int64_t low = p->low.v[d], step = p->interior.v[d] + 1;
    int64_t first = low < 0 ? (-low + step - 1) / step : 0;
    int64_t end = low < out_dims[d] ? (out_dims[d] - 1 - low) / step + 1 : 0;
    if (end > x_dims[d]) end = x_dims[d];
    if (end <= first) continue;
    w.first[d] = first;
    w.count[d] = end - first;
    w.place[d] = low + first * step;
    w.step[d] = w.count[d] > 1 ? step : 1;
  }
  return w;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0], *value = args->in[1], *out = args->out[0];
  size_t bytes = ax_dtype_bytes(out->dtype);
  window w = window_of(args->eqn->params, x->rank, x->dims, out->dims);
  ax_strided to = ax_strided_dense(out), everywhere = {.data = value->data}, from = ax_strided_dense(x);
  ax_strided_copy(out->rank, out->dims, bytes, &to, &everywhere);
  for (uint32_t d = 0; d < x->rank; d++) {
    from.offset += w.first[d] * from.strides[d];
    to.offset += w.place[d] * to.strides[d];
    to.strides[d] *= w.step[d];
  }
  ax_strided_copy(x->rank, w.count, bytes, &to, &from);
  return AX_OK;
}

static ax_value sum_all(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

static void transpose(const ax_transpose_args *args) {
  const pad_params *p = args->eqn->params;
  const ax_type *x = &args->in_types[0];
  pad_params cut = {.low = p->low, .high = p->high, .interior = p->low};
  int64_t start[AX_MAX_RANK] = {0}, step[AX_MAX_RANK];
  for (uint32_t d = 0; d < x->rank; d++) {
    cut.low.v[d] = -p->low.v[d];
    cut.high.v[d] = -p->high.v[d];
    cut.interior.v[d] = 0;
    step[d] = p->interior.v[d] + 1;
  }
  ax_value zero = ax_zero_like(args->cotangent[0]);
  ax_value inside = ax_pad(args->cotangent[0], zero, cut.low.v, cut.high.v, cut.interior.v);
  inside = ax_slice(inside, start, ax_typeof(inside).dims, step);
  if (args->linear[0]) args->out[0] = inside;
  if (args->linear[1]) args->out[1] = ax_sub(sum_all(args->cotangent[0]), sum_all(inside));
}

/* --- simplify --- */

static bool pads_at(const pad_params *p, uint32_t d) { return p->low.v[d] != 0 || p->high.v[d] != 0 || p->interior.v[d] != 0; }

static bool pads_any(const pad_params *p) {
  for (uint32_t d = 0; d < p->low.count; d++)
    if (pads_at(p, d)) return true;
  return false;
}

static void simplify(const ax_simplify_args *args) {
  if (!pads_any(args->eqn->params)) args->same[0] = args->eqn->in[0];
}

/* --- batch --- */

/* A padding value of each batch element's own: padded with zeros, then chosen where the padding is. */
static ax_value batch_values(const ax_prim *prim, const pad_params *p, ax_value x, ax_value values) {
  ax_type type = ax_typeof(x);
  int64_t batch_dim = 0;
  ax_value zero = ax_zero_like(x), inside = ax_full(AX_BOOL, AX_LIST(type.rank, type.dims), 1);
  ax_value padded[] = {x, zero}, mask[] = {inside, ax_full(AX_BOOL, AX_DIMS(), 0)};
  ax_value y = ax_bind1(prim, p, padded, 2);
  ax_type wide = ax_typeof(y);
  const ax_value all = ax_broadcast_in_dim(values, AX_LIST(wide.rank, wide.dims), &batch_dim);
  return ax_select_n(ax_bind1(prim, p, mask, 2), all, y);
}

static void batch(const ax_batch_args *args) {
  pad_params p = *(const pad_params *)args->eqn->params;
  const ax_prim *prim = args->eqn->prim;
  bool own_values = args->in_dim[1] >= 0;
  uint32_t at = own_values ? 0 : (uint32_t)args->in_dim[0];
  if (!ax_dims_insert(prim, &p.low, at, 0) || !ax_dims_insert(prim, &p.high, at, 0) ||
      !ax_dims_insert(prim, &p.interior, at, 0))
    return;
  args->out_dim[0] = (int)at;
  if (own_values)
    args->out[0] = batch_values(prim, &p, ax_batch_front(args->in[0], args->in_dim[0], args->size), args->in[1]);
  else
    args->out[0] = ax_bind1(prim, &p, args->in, 2);
}

/* Writes the padding value over the result, or over `extent` of it along one dimension from `begin` on. */
static ax_status lower_value(ax_lower *lower, uint32_t out, uint32_t value, uint32_t dim, int64_t begin, int64_t extent) {
  ax_type type = *ax_lower_type(lower, out);
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type.rank);
  if (type.rank > 0) {
    type.dims[dim] = extent;
    at[dim].offset = begin;
  }
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_lower_store(lower, out, at, ax_lower_load_scalar(lower, value), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* The one dimension along which there is padding, in front and behind; AX_NONE: several, or between elements. */
static uint32_t padded_dim(const window *w, const ax_type *type) {
  uint32_t dim = AX_NONE;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (w->place[d] == 0 && w->step[d] == 1 && w->count[d] == type->dims[d]) continue;
    if (dim != AX_NONE || w->step[d] != 1) return AX_NONE;
    dim = d;
  }
  return dim;
}

/* If only one dimension is padded, the value is written in front of and behind x, and the result is put together from such parts
   (plan/pieces.c). Otherwise the value is written over the whole result, and x over that. */
static ax_status lower_values(ax_lower *lower, uint32_t out, uint32_t value, const window *w, const ax_type *type, int64_t moved) {
  uint32_t dim = moved > 0 ? padded_dim(w, type) : AX_NONE;
  if (dim == AX_NONE) return lower_value(lower, out, value, 0, 0, type->rank > 0 ? type->dims[0] : 1);
  int64_t end = w->place[dim] + w->count[dim];
  if (w->place[dim] > 0) AX_TRY(lower_value(lower, out, value, dim, 0, w->place[dim]));
  return end < type->dims[dim] ? lower_value(lower, out, value, dim, end, type->dims[dim] - end) : AX_OK;
}

/* Each index of a padded dimension of the result reads one element of the operand, or the value. */
static void shard(const ax_shard_args *args) {
  const pad_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < x->rank; d++) {
    const bool pads = pads_at(p, d);
    if (pads && (x->dims[d] == 0 || y->dims[d] == 0)) continue;
    uint32_t factor = ax_factor(args, y->dims[d], AX_FACTOR_ALONG);
    if (pads) ax_factor_reaches(&args->in[0], d, factor, (ax_reach){-p->low.v[d], 1, 1, p->interior.v[d] + 1, AX_FILL_OPERAND});
    else ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

static void block(const ax_block_args *args) {
  pad_params p = *(const pad_params *)args->eqn->params;
  for (uint32_t d = 0; d < p.low.count; d++)
    if ((args->reached[0] >> d & 1) != 0) p.low.v[d] = p.high.v[d] = p.interior.v[d] = 0;
  args->out[0] = pads_any(&p) ? ax_bind1(args->eqn->prim, &p, args->in, 2) : args->in[0];
}

/* Each element of the result is one of the operand's, or the value: one kernel, that others take in. */
static ax_status lower_choice(ax_lower *lower, const ax_type *type, const window *w, const uint32_t *in, uint32_t out) {
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  int64_t bits = 1;
  ax_at_identity(to, type->rank);
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_loop_kernel *kernel = lower->kernel;
  ax_ex guard = AX_NONE;
  for (uint32_t d = 0; d < type->rank; d++) {
    from[d] = (ax_position){.dim = (int)d, .coef = 1, .offset = w->first[d] - w->place[d], .dynamic = AX_NONE};
    bool all = w->place[d] == 0 && w->count[d] == type->dims[d];
    if (!all) guard = ax_kernel_both(kernel, guard, ax_kernel_inside(kernel, (int)d, 1, -w->place[d], w->count[d]));
  }
  ax_ex value = ax_lower_load_where(lower, in[0], from, guard);
  if (guard != AX_NONE && (!ax_lower_constant(ax_lower_get(lower, in[1]), &bits) || bits != 0))
    value = ax_kernel_op(kernel, AX_SCALAR_SELECT, type->dtype, guard, value, ax_lower_load_scalar(lower, in[1]));
  ax_lower_store(lower, out, to, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* Says whether each element chooses between x and the value in one kernel. Not if there is padding between elements. Not if the
   padding along one dimension is long either: kernels that read the result are better cut where the padding begins. */
static bool is_choice(const window *w, const ax_type *type) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (w->step[d] != 1) return false;
  uint32_t dim = padded_dim(w, type);
  return dim == AX_NONE || ax_type_elems(type) < small_elems || (type->dims[dim] - w->count[dim]) * 8 <= type->dims[dim];
}

/* Into how many places each row of x is spread, of which it takes one and the value the others, if there is no padding but this
   between rows; 1: there is other padding, or between the elements of a row, or so much that it is better written at once. */
static int64_t spread_of(const window *w, const ax_type *type) {
  enum { most_places = 4 };
  int64_t places = 1;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (w->place[d] >= w->step[d] || w->count[d] * w->step[d] != type->dims[d]) return 1;
    places *= w->step[d];
    if (w->step[d] > 1 && d + 1 == type->rank) return 1;
  }
  return places <= most_places ? places : 1;
}

/* A kernel over x that stores each element, and the value beside it: all of the result is written once. */
static ax_status lower_spread(ax_lower *lower, const ax_type *type, const window *w, int64_t places, const uint32_t *in,
                              uint32_t out) {
  ax_position at[AX_MAX_RANK];
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, w->count));
  for (uint32_t d = 0; d < type->rank; d++) at[d] = (ax_position){.dim = (int)d, .coef = 1, .offset = w->first[d], .dynamic = AX_NONE};
  const ax_ex element = ax_lower_load(lower, in[0], at), value = ax_lower_load_scalar(lower, in[1]);
  for (int64_t i = 0; i < places; i++) {
    bool own = true;
    int64_t rest = i;
    for (uint32_t d = type->rank; d-- > 0; rest /= w->step[d]) {
      const int64_t place = rest % w->step[d];
      at[d].coef = w->step[d];
      at[d].offset = place;
      own = own && place == w->place[d];
    }
    ax_lower_store(lower, out, at, own ? element : value, AX_SCALAR_NONE);
  }
  return ax_lower_kernel_end(lower);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  window w = window_of(eqn->params, x->rank, x->dims, type->dims);
  int64_t moved = ax_dims_elems(x->rank, w.count);
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  for (uint32_t d = 0; d < x->rank; d++) {
    from[d] = (ax_position){.dim = (int)d, .coef = 1, .offset = w.first[d], .dynamic = AX_NONE};
    to[d] = (ax_position){.dim = (int)d, .coef = w.step[d], .offset = w.place[d], .dynamic = AX_NONE};
  }
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (moved > 0 && is_choice(&w, type)) return lower_choice(lower, type, &w, in, out[0]);
  const int64_t places = moved > 0 ? spread_of(&w, type) : 1;
  if (places > 1) return lower_spread(lower, type, &w, places, in, out[0]);
  if (moved < ax_type_elems(type) || moved == 0) AX_TRY(lower_values(lower, out[0], in[1], &w, type, moved));
  return moved > 0 ? ax_lower_move(lower, x->rank, w.count, out[0], to, in[0], from) : AX_OK;
}

/* --- part --- */

/* What is between elements stays whole. A box of padding alone is the value. */
static bool part(const ax_part_args *args) {
  pad_params p = *(const pad_params *)args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]];
  int64_t dims[AX_MAX_RANK];
  bool none = false;
  for (uint32_t d = 0; d < x->rank; d++) {
    const int64_t size = x->dims[d], low = args->box->low[d] - p.low.v[d], high = args->box->high[d] - p.low.v[d];
    if (p.interior.v[d] != 0) return false;
    const int64_t first = ax_most(ax_least(low, size), 0), end = ax_most(ax_least(high, size), 0);
    args->in[0].low[d] = first, args->in[0].high[d] = end;
    p.low.v[d] = first - low, p.high.v[d] = high - end;
    dims[d] = high - low;
    none = none || first == end;
  }
  if (args->values == NULL) return true;
  if (none) args->out[0] = ax_broadcast_in_dim(args->values[1], AX_LIST(x->rank, dims), NULL);
  else args->out[0] = ax_bind1(args->eqn->prim, &p, args->values, 2);
  return true;
}

static const ax_hlo_form form = {
    .op = "stablehlo.pad",
    .fields = AX_HLO_FIELDS({"edge_padding_low", "low"}, {"edge_padding_high", "high"}, {"interior_padding", "interior"})};

static const ax_param params[] = {
    {"low", AX_PARAM_DIMS, offsetof(pad_params, low)},
    {"high", AX_PARAM_DIMS, offsetof(pad_params, high)},
    {"interior", AX_PARAM_DIMS, offsetof(pad_params, interior)},
};

const ax_prim ax_prim_pad = {
    .name = "pad",
    .kind = AX_LOCAL,
    .in_count = 2,
    .out_count = 1,
    AX_PARAMS(params, pad_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .part = part,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_words,
    .form = &form, .hlo = ax_hlo_by_form,
};

ax_value (ax_pad)(ax_value x, ax_value value, uint32_t low_count, const int64_t *low, uint32_t high_count, const int64_t *high,
                  uint32_t interior_count, const int64_t *interior) {
  pad_params p;
  uint32_t rank = ax_typeof(x).rank;
  ax_value in[] = {x, value};
  ax_give_parts("pad", in);
  ax_give_dtype("pad", in, 2);
  if (ax_failed() || !ax_list_fits("pad", "the array has", "dimension", low_count, rank) ||
      !ax_list_fits("pad", "the array has", "dimension", high_count, rank) ||
      !ax_list_fits("pad", "the array has", "dimension", interior_count, rank) || !ax_dims_take(&ax_prim_pad, rank, low, &p.low) ||
      !ax_dims_take(&ax_prim_pad, rank, high, &p.high) || !ax_dims_take(&ax_prim_pad, rank, interior, &p.interior))
    return ax_poison;
  return ax_bind1(&ax_prim_pad, &p, in, 2);
}
