/* reduce_window_sum, reduce_window_max, reduce_window_min: T[d..] -> T[n..]
     y[o..] = the sum, largest or smallest of x[(o * stride + k * window_dilation - low) / base_dilation ..] over the window's
   places k, where there is such an element; other places are ignored.
   Parameters: window_dimensions, window_strides, padding_low, padding_high (negative: cut), base_dilation, window_dilation; one
   entry a dimension.
   Errors: bool; a window, stride or dilation below 1; padding that cuts off more than there is. A window without elements gives 0,
   or the least or greatest T.
   Numerics: eval adds floats in f64 and rounds once; compiled sums of bf16 and f16 are made in f32; they are added along one
   dimension after the other, short windows element by element, long ones by halves. Windows that see all elements up to their
   place, or from it on, along one dimension alone are done in one pass, with the errors of cumsum. Integers wrap. NaN wins in
   max and min.
   reduce_window_sum is linear; its transpose is a reduce_window_sum of the cotangent, with base_dilation and strides exchanged. The
   tangent of a max or min is that of the first place, in row-major order, that holds it.
   Sharding: a dimension that windows move along is cut with the result's; devices exchange the elements that their windows need
   from neighbours' blocks. One whose windows see all elements up to their place is not cut. */
#include <math.h>
#include <string.h>

#include "axle/transform.h"
#include "hlo/read.h"
#include "machine/float_mode.h"
#include "ops/pointwise.h"
#include "ops/window.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/prims.h"

typedef ax_window_params window_params;

static ax_scalar combination(const ax_prim *prim) { return prim->form->reducer; }

static ax_window window_of(const window_params *p, const int64_t *dims, uint32_t d) {
  return (ax_window){.array = dims[d], .base = p->base_dilation.v[d], .low = p->padding_low.v[d], .high = p->padding_high.v[d],
                     .size = p->window_dimensions.v[d], .dilation = p->window_dilation.v[d], .stride = p->window_strides.v[d]};
}

/* Each element is a window. */
static bool is_whole(const ax_window *w) { return w->size == 1 && w->stride == 1 && w->base == 1 && w->low == 0 && w->high == 0; }

/* Each window is all elements up to its place, or all from it on. */
static bool runs_forward(const ax_window *w) { return w->size >= w->array && w->low == w->size - 1 && w->high == 0; }
static bool runs_back(const ax_window *w) { return w->size >= w->array && w->high == w->size - 1 && w->low == 0; }
static bool runs(const ax_window *w) {
  return w->array > 1 && w->stride == 1 && w->base == 1 && w->dilation == 1 && (runs_forward(w) || runs_back(w));
}

/* Whether windows run along one dimension, *d, and are single elements along all others. */
static bool is_running(const window_params *p, const ax_type *x, uint32_t *d, bool *reverse) {
  bool found = false;
  for (uint32_t i = 0; i < x->rank; i++) {
    const ax_window w = window_of(p, x->dims, i);
    if (is_whole(&w)) continue;
    if (found || !runs(&w)) return false;
    found = true;
    *d = i, *reverse = !runs_forward(&w);
  }
  return found;
}

static ax_status infer(const ax_infer_args *args) {
  const window_params *p = args->params;
  const ax_type *x = &args->in[0];
  if (x->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(ax_infer_one_each("window_dimensions", &p->window_dimensions, x->rank));
  AX_TRY(ax_infer_one_each("window_strides", &p->window_strides, x->rank));
  AX_TRY(ax_infer_one_each("padding_low", &p->padding_low, x->rank));
  AX_TRY(ax_infer_one_each("padding_high", &p->padding_high, x->rank));
  AX_TRY(ax_infer_one_each("base_dilation", &p->base_dilation, x->rank));
  AX_TRY(ax_infer_one_each("window_dilation", &p->window_dilation, x->rank));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  for (uint32_t d = 0; d < x->rank; d++) {
    const ax_window w = window_of(p, x->dims, d);
    if (w.size < 1) return ax_error(AX_INVALID_ARGUMENT, "the window of dimension %u is %lld: at least 1 is needed", d, (long long)w.size);
    AX_TRY(ax_window_positions(&w, "the operand", d, &args->out[0].dims[d]));
  }
  return AX_OK;
}

/* --- eval --- */

static ax_number element(const ax_eval_args *args, ax_scalar op, const int64_t *index, const int64_t *strides) {
  const window_params *p = args->eqn->params;
  const ax_tensor *x = args->in[0];
  const ax_dtype wide = ax_partial_dtype(op, x->dtype);
  ax_number total = ax_reduce_identity(op, x->dtype);
  for (int64_t tap = 0, count = ax_dims_elems(x->rank, p->window_dimensions.v); tap < count; tap++) {
    int64_t at = 0, rest = tap, here = 0;
    for (uint32_t d = x->rank; d-- > 0 && here >= 0; rest /= p->window_dimensions.v[d]) {
      const ax_window w = window_of(p, x->dims, d);
      here = ax_window_element(&w, index[d], rest % w.size);
      at += here * strides[d];
    }
    if (here < 0) continue;
    ax_number pair[] = {total, ax_number_load(x->dtype, x->data, at)};
    if (count == 1) return pair[1]; /* a complex number of which one part is NaN, too */
    total = ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
  }
  return total;
}

/* Row by row, in one pass. */
static void eval_running(const ax_eval_args *args, ax_scalar op, uint32_t d, bool reverse) {
  const ax_tensor *x = args->in[0], *out = args->out[0];
  const ax_dtype wide = ax_partial_dtype(op, x->dtype);
  const int64_t length = x->dims[d], inner = ax_dims_elems(x->rank - d - 1, x->dims + d + 1),
                rows = ax_dims_elems(d, x->dims) * inner;
  for (int64_t row = 0; row < rows; row++) {
    ax_number total = ax_reduce_identity(op, x->dtype);
    for (int64_t i = 0; i < length; i++) {
      const int64_t at = (row / inner * length + (reverse ? length - 1 - i : i)) * inner + row % inner;
      ax_number pair[] = {total, ax_number_load(x->dtype, x->data, at)};
      total = ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
      ax_number_store(out->dtype, out->data, at, total);
    }
  }
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *out = args->out[0];
  const ax_type type = ax_array_type(args->in[0]->dtype, AX_LIST(args->in[0]->rank, args->in[0]->dims));
  uint32_t d;
  bool reverse;
  if (is_running(args->eqn->params, &type, &d, &reverse)) {
    eval_running(args, combination(args->eqn->prim), d, reverse);
    return AX_OK;
  }
  int64_t strides[AX_MAX_RANK], index[AX_MAX_RANK];
  ax_dense_strides(out->rank, args->in[0]->dims, strides);
  const bool moves = ax_dims_elems(out->rank, ((const window_params *)args->eqn->params)->window_dimensions.v) == 1;
  ax_float_mode mode = {0};
  if (moves) mode = ax_float_mode_enter(false); /* windows of one element: subnormal numbers are kept in every mode */
  for (int64_t i = 0, count = ax_dims_elems(out->rank, out->dims); i < count; i++) {
    int64_t rest = i;
    for (uint32_t d = out->rank; d-- > 0; rest /= out->dims[d]) index[d] = rest % out->dims[d];
    ax_number_store(out->dtype, out->data, i, element(args, combination(args->eqn->prim), index, strides));
  }
  if (moves) ax_float_mode_leave(mode);
  return AX_OK;
}

/* --- Windows along one dimension after the other --- */

/* The content of windows: one value, or, with a tangent, the extreme and the tangent of its first place. */
typedef struct held {
  ax_value x, tangent;
  bool has_tangent;
} held;

static held part(const held *h, uint32_t d, int64_t start, int64_t count, int64_t stride) {
  held made = {.x = ax_window_part(h->x, d, start, count, stride), .has_tangent = h->has_tangent};
  if (h->has_tangent) made.tangent = ax_window_part(h->tangent, d, start, count, stride);
  return made;
}

/* Whether b is beyond a. */
static ax_value is_beyond(ax_scalar op, ax_value b, ax_value a) {
  const bool larger = op == AX_SCALAR_MAX;
  if (ax_failed() || !ax_is_complex(ax_typeof(a).dtype)) return larger ? ax_gt(b, a) : ax_lt(b, a);
  ax_value best = larger ? ax_max(a, b) : ax_min(a, b), differs = ax_ne(a, b);
  return ax_and(differs, ax_eq(best, b));
}

/* `a` stands before `b`. */
static held combined(ax_scalar op, const held *a, const held *b) {
  held made = {.has_tangent = a->has_tangent};
  if (!a->has_tangent) {
    made.x = op == AX_SCALAR_ADD ? ax_add(a->x, b->x) : op == AX_SCALAR_MAX ? ax_max(a->x, b->x) : ax_min(a->x, b->x);
    return made;
  }
  ax_value later = is_beyond(op, b->x, a->x);
  made.x = ax_select_n(later, a->x, b->x);
  made.tangent = ax_select_n(later, a->tangent, b->tangent);
  return made;
}

/* A short window, place after place. */
static held along_short(ax_scalar op, const held *h, uint32_t d, const ax_window *w) {
  const int64_t count = ax_window_count(w);
  held made = part(h, d, 0, count, w->stride);
  for (int64_t k = 1; k < w->size && !ax_failed(); k++) {
    held place = part(h, d, k * w->dilation, count, w->stride);
    made = combined(op, &made, &place);
  }
  return made;
}

/* A long one: of windows of 1, 2, 4, .. places at each position, those that it is made of. */
static held along_long(ax_scalar op, const held *h, uint32_t d, const ax_window *w) {
  const int64_t all = w->array, positions = (ax_window_count(w) - 1) * w->stride + 1;
  held power = *h, made = {0};
  int64_t taken = 0;
  for (int64_t size = 1; size <= w->size && !ax_failed(); size *= 2) {
    if ((w->size & size) != 0) {
      held next = part(&power, d, taken * w->dilation, positions, 1);
      made = taken == 0 ? next : combined(op, &made, &next);
      taken += size;
    }
    const int64_t left = all - (2 * size - 1) * w->dilation;
    if (2 * size > w->size) break;
    held first = part(&power, d, 0, left, 1), second = part(&power, d, size * w->dilation, left, 1);
    power = combined(op, &first, &second);
  }
  return part(&made, d, 0, ax_window_count(w), w->stride);
}

static held along(ax_scalar op, const held *h, uint32_t d, const ax_window *w) {
  enum { short_window = 16 };
  if (w->size <= short_window) return along_short(op, h, d, w);
  if (h->has_tangent || ax_window_count(w) > 1) return along_long(op, h, d, w);
  const int64_t axis = d;
  held all = part(h, d, 0, w->size, w->dilation);
  all.x = op == AX_SCALAR_ADD   ? ax_reduce_sum(all.x, AX_LIST(1, &axis), true)
          : op == AX_SCALAR_MAX ? ax_reduce_max(all.x, AX_LIST(1, &axis), true)
                                : ax_reduce_min(all.x, AX_LIST(1, &axis), true);
  return all;
}

/* The last dimension first, so that of equals the first in row-major order comes first. */
static held reduced(const window_params *p, ax_scalar op, held h) {
  const ax_type type = ax_typeof(h.x);
  ax_window windows[AX_MAX_RANK], same[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) same[d] = windows[d] = window_of(p, type.dims, d);
  h.x = ax_window_padded(h.x, op == AX_SCALAR_ADD ? ax_zero_like(h.x) : ax_reduce_neutral(op, type.dtype), 0, type.rank, windows);
  if (h.has_tangent) h.tangent = ax_window_padded(h.tangent, ax_zero_like(h.tangent), 0, type.rank, same);
  for (uint32_t d = type.rank; d-- > 0 && !ax_failed();) h = along(op, &h, d, &windows[d]);
  return h;
}

/* --- Derivatives --- */

static void max_jvp(const ax_jvp_args *args) {
  ax_value x = ax_own_parts(args->in[0]), dx = args->tangent_in[0];
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  ax_type type = ax_typeof(x), result = ax_typeof(args->out[0]);
  if (ax_is_zero(dx) || ax_type_elems(&type) == 0 || ax_type_elems(&result) == 0) return;
  args->tangent_out[0] =
      reduced(args->eqn->params, combination(args->eqn->prim), (held){.x = x, .tangent = dx, .has_tangent = true}).tangent;
}

static void sum_transpose(const ax_transpose_args *args) {
  const window_params *p = args->eqn->params;
  const ax_type *x = &args->in_types[0];
  ax_type y = ax_typeof(args->cotangent[0]);
  window_params t = *p;
  if (ax_type_elems(x) == 0 || ax_type_elems(&y) == 0) return;
  for (uint32_t d = 0; d < x->rank; d++) {
    const ax_window w = window_of(p, x->dims, d), back = ax_window_transposed(&w);
    t.window_strides.v[d] = back.stride;
    t.padding_low.v[d] = back.low;
    t.padding_high.v[d] = back.high;
    t.base_dilation.v[d] = back.base;
  }
  args->out[0] = ax_bind1(args->eqn->prim, &t, args->cotangent, 1);
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  window_params p = *(const window_params *)args->eqn->params;
  const ax_prim *prim = args->eqn->prim;
  uint32_t at = (uint32_t)args->in_dim[0];
  if (!ax_dims_insert(prim, &p.window_dimensions, at, 1) || !ax_dims_insert(prim, &p.window_strides, at, 1) ||
      !ax_dims_insert(prim, &p.padding_low, at, 0) || !ax_dims_insert(prim, &p.padding_high, at, 0) ||
      !ax_dims_insert(prim, &p.base_dilation, at, 1) || !ax_dims_insert(prim, &p.window_dilation, at, 1))
    return;
  args->out[0] = ax_bind1(prim, &p, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* --- shard --- */

static void shard(const ax_shard_args *args) {
  const window_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  const ax_scalar op = combination(args->eqn->prim);
  const ax_fill fill = op == AX_SCALAR_ADD ? AX_FILL_ZERO : op == AX_SCALAR_MAX ? AX_FILL_LEAST : AX_FILL_GREATEST;
  for (uint32_t d = 0; d < x->rank; d++) {
    const ax_window w = window_of(p, x->dims, d);
    if (w.array == 0 || y->dims[d] == 0 || runs(&w)) continue;
    const uint32_t factor = ax_factor(args, y->dims[d], AX_FACTOR_ALONG);
    if (is_whole(&w)) ax_factor_of(&args->in[0], d, factor);
    else ax_factor_reaches(&args->in[0], d, factor, (ax_reach){-w.low, w.stride, ax_dilated(w.size, w.dilation), w.base, fill});
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* The exchange between devices has padded and dilated the blocks already. */
static void block(const ax_block_args *args) {
  window_params p = *(const window_params *)args->eqn->params;
  for (uint32_t d = 0; d < p.window_dimensions.count; d++) {
    if ((args->reached[0] >> d & 1) == 0) continue;
    p.padding_low.v[d] = p.padding_high.v[d] = 0;
    p.base_dilation.v[d] = 1;
  }
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
}

/* --- lower --- */

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_scalar op = combination(eqn->prim);
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const bool narrow = op == AX_SCALAR_ADD && ax_is_narrow_float(dtype);
  ax_value made = reduced(eqn->params, op, (held){.x = narrow ? ax_convert_element_type(in[0], AX_F32) : in[0]}).x;
  /* A sum begins with 0, so one whose terms are all -0 is 0. Adding 0 at the end gives the same bits. */
  if (op == AX_SCALAR_ADD && ax_rounds(dtype)) made = ax_add(made, ax_real(0.0));
  return narrow ? ax_convert_element_type(made, dtype) : made;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  uint32_t d;
  bool reverse;
  if (ax_type_elems(x) > 0 && is_running(eqn->params, x, &d, &reverse))
    return ax_window_lower_running(lower, eqn, combination(eqn->prim), d, reverse, in[0], out);
  if (ax_type_elems(x) > 0 && ax_type_elems(type) > 0) return ax_lower_expanded(lower, eqn, expand, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_fill(lower, out[0], ax_reduce_identity(combination(eqn->prim), x->dtype));
}

static ax_status extreme_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  if (ax_type_elems(&lower->program->types[eqn->in[0]]) > 0 && ax_type_elems(type) > 0) return ax_lower_expanded(lower, eqn, expand, in, out);
  return ax_lower_eval(lower, eqn, in, out);
}

/* --- hlo --- */

/* bf16 and f16 sums are made in f32. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_type x = hlo->program->types[eqn->in[0]], result = hlo->program->types[eqn->out], wide = result;
  const ax_scalar op = combination(eqn->prim);
  ax_hlo_attributes attributes = {.hlo = hlo};
  const bool narrow = op == AX_SCALAR_ADD && ax_is_narrow_float(x.dtype);
  if (narrow) x.dtype = wide.dtype = AX_F32;
  const ax_type scalar = ax_array_type(x.dtype, AX_DIMS());
  ax_element bits = {0};
  ax_number_store(x.dtype, &bits, 0, ax_reduce_identity(op, x.dtype));
  const uint32_t wider = narrow ? ax_hlo_op(hlo, "stablehlo.convert", in, 1, NULL, &x, 1) : in[0];
  const uint32_t operands[] = {wider, ax_hlo_splat(hlo, &scalar, &bits)};
  ax_hlo_add_fields(&attributes, eqn->prim, eqn->params);
  out[0] = ax_hlo_begin(hlo, "stablehlo.reduce_window", operands, 2, &wide, 1);
  ax_hlo_combination(hlo, op, x.dtype);
  ax_hlo_end(hlo, &attributes);
  if (narrow) out[0] = ax_hlo_op(hlo, "stablehlo.convert", &out[0], 1, NULL, &result, 1);
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {
    {"window_dimensions", AX_PARAM_DIMS, offsetof(window_params, window_dimensions)},
    {"window_strides", AX_PARAM_DIMS, offsetof(window_params, window_strides)},
    {"padding_low", AX_PARAM_DIMS, offsetof(window_params, padding_low)},
    {"padding_high", AX_PARAM_DIMS, offsetof(window_params, padding_high)},
    {"base_dilation", AX_PARAM_DIMS, offsetof(window_params, base_dilation)},
    {"window_dilation", AX_PARAM_DIMS, offsetof(window_params, window_dilation)},
};

/* --- Reading StableHLO --- */

/* The primitive for a body that is one operation, if the start is neutral; NULL: there is none. */
static const ax_prim *known_reduction(const ax_hlo_read_args *args, ax_dtype dtype) {
  static const ax_prim *const family[] = {&ax_prim_reduce_window_sum, &ax_prim_reduce_window_max, &ax_prim_reduce_window_min};
  const ax_prim *prim = dtype != AX_BOOL ? ax_hlo_reducer_of(family, AX_COUNT(family), ax_hlo_body_scalar(args->op, 0)) : NULL;
  return prim != NULL && ax_hlo_starts_neutral(args, prim->form->reducer) ? prim : NULL;
}

/* is_running, of parameters that the module may have left out. */
static bool reads_running(const window_params *p, const ax_type *type, uint32_t *d, bool *reverse) {
  const ax_dims *const lists[] = {&p->window_strides, &p->padding_low, &p->padding_high, &p->base_dilation, &p->window_dilation};
  for (size_t i = 0; i < AX_COUNT(lists); i++)
    if (lists[i]->count != type->rank) return false;
  return ax_type_elems(type) > 0 && is_running(p, type, d, reverse);
}

/* Windows that see all elements up to their place, or all from it on, by a body that is one operation or logaddexp: JAX's cumsum and the
   like. Where blocks of that dimension lie on several devices, these exchange totals, and not elements. */
static bool read_running(const ax_hlo_read_args *args, const window_params *p, const ax_type *type) {
  const bool logs = ax_dtype_get(type->dtype)->kind == AX_KIND_FLOAT && ax_dtype_bytes(type->dtype) > 1 && ax_hlo_is_logaddexp(args->op);
  const ax_scalar op = logs ? AX_SCALAR_MAX : ax_hlo_body_scalar(args->op, 0); /* for logs, the one that has the same start */
  ax_value (*const made)(ax_value x, int64_t axis, bool reverse) = logs                  ? (ax_cumlogsumexp)
                                                                   : op == AX_SCALAR_ADD ? (ax_cumsum)
                                                                   : op == AX_SCALAR_MUL ? (ax_cumprod)
                                                                   : op == AX_SCALAR_MAX ? (ax_cummax)
                                                                   : op == AX_SCALAR_MIN ? (ax_cummin)
                                                                                         : NULL;
  uint32_t d;
  bool reverse;
  if (made == NULL || type->dtype == AX_BOOL || !ax_hlo_starts_neutral(args, op) || !reads_running(p, type, &d, &reverse)) return false;
  args->out[0] = made(args->in[0], d, reverse);
  return true;
}

typedef struct running_body {
  ax_fn scalars;
  bool reverse; /* the second operand stands in front of the first */
} running_body;

static AX_BODY(on_elements) {
  const running_body *body = context;
  const ax_type type = ax_typeof(in[0]);
  const int64_t elems = ax_type_elems(&type);
  ax_value flat[2];
  for (int i = 0; i < 2; i++) flat[i] = (ax_reshape)(in[body->reverse ? 1 - i : i], 1, &elems);
  (ax_vmap)(body->scalars, 2, flat, 1, out, NULL);
  out[0] = (ax_reshape)(out[0], type.rank, type.dims);
}

/* JAX's cumlogsumexp of complex numbers: windows as above, by a body of several operations, from -inf. Such a start is neutral beside a
   finite number, but two of them give NaN by that body. The specification leaves open how often a start is combined, so that here
   padding is not, as on XLA: each window is the start and its elements. */
static bool read_running_from_below(const ax_hlo_read_args *args, const window_params *p, const ax_type *type, ax_fn function) {
  const ax_hlo_attribute *start = args->op->operand_count == 2 ? ax_hlo_constant_operand(args, 1) : NULL;
  running_body body = {.scalars = function};
  uint32_t d;
  if (!ax_is_complex(type->dtype) || start == NULL || start->type->dtype != type->dtype) return false;
  const ax_number least = ax_number_load(type->dtype, start->data, 0);
  if (!isinf(least.f) || least.f > 0 || least.imag != 0 || ax_hlo_body_scalar(args->op, 0) != AX_SCALAR_NONE ||
      !reads_running(p, type, &d, &body.reverse))
    return false;
  ax_value both[2] = {(ax_broadcast_to)(args->in[1], type->rank, type->dims)};
  (ax_associative_scan)(AX_CLOSURE(on_elements, 2, 1, &body), d, body.reverse, 1, args->in, 1, &both[1]);
  body.reverse = false;
  on_elements(both, args->out, &body);
  return true;
}

static ax_status read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->operand_count / 2;
  window_params p = {0};
  ax_hlo_body body;
  ax_fn function;
  if (count == 0 || args->op->operand_count != 2 * count || args->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes operands and as many starts, and has as many results");
  const ax_type type = ax_typeof(args->in[0]);
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_reduce_window_sum, &p)); /* all of the family have the same */
  if (p.window_dimensions.count != type.rank)
    return ax_error(AX_INVALID_ARGUMENT, "window_dimensions has %u entries, and must have %u", p.window_dimensions.count, type.rank);
  AX_TRY(ax_hlo_body_of(args, 0, count, &body, &function));
  if (read_running(args, &p, &type) || read_running_from_below(args, &p, &type, function)) return AX_OK;
  const ax_prim *known = known_reduction(args, type.dtype);
  if (known != NULL) {
    args->out[0] = ax_bind1(known, &p, args->in, 1);
    return AX_OK;
  }
  const ax_window_options options = {.strides = {type.rank, p.window_strides.v},
                                     .low = {type.rank, p.padding_low.v},
                                     .high = {type.rank, p.padding_high.v},
                                     .base_dilation = {type.rank, p.base_dilation.v},
                                     .window_dilation = {type.rank, p.window_dilation.v}};
  (ax_reduce_window)(count, args->in, count, args->in + count, function, AX_LIST(type.rank, p.window_dimensions.v), count, args->out,
                     &options);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.reduce_window", read}, {0}};

#define WINDOW_FIELDS                                                                                                  \
  AX_HLO_FIELDS({"window_dimensions", "window_dimensions"}, {"window_strides", "window_strides"},                      \
                {"base_dilations", "base_dilation"}, {"window_dilations", "window_dilation"},                         \
                {"padding.low", "padding_low"}, {"padding.high", "padding_high"})
#define WINDOW_RECORD(name_, reducer_, kinds_, jvp_, ...)                                                                  \
  static const ax_hlo_form name_##_form = {.op = "stablehlo.reduce_window", .reducer = reducer_, .fields = WINDOW_FIELDS}; \
  const ax_prim ax_prim_##name_ = {                                                                              \
      .name = #name_, .kind = AX_LOCAL, .linear = AX_LINEAR_ALL, .kinds = kinds_, .in_count = 1, .out_count = 1, \
      AX_PARAMS(params, window_params), .form = &name_##_form,                  \
      .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union,                      \
      .jvp = jvp_, .linearize = jvp_, .batch = batch, .simplify = ax_simplify_nothing,                             \
      .shard = shard, .block = block, .lower = lower, .hlo = hlo, .transpose = __VA_ARGS__, /* and further slots */               \
  }
WINDOW_RECORD(reduce_window_sum, AX_SCALAR_ADD, AX_KINDS_SUM, ax_jvp_linear, sum_transpose, .complex = ax_complex_parts,
              .reads = readers);
WINDOW_RECORD(reduce_window_max, AX_SCALAR_MAX, AX_KINDS_MAX, max_jvp, ax_absent_transpose, .complex = extreme_complex);
WINDOW_RECORD(reduce_window_min, AX_SCALAR_MIN, AX_KINDS_MIN, max_jvp, ax_absent_transpose, .complex = extreme_complex);

/* --- The public functions --- */

/* False: the trace has failed. */
static bool take(const ax_prim *prim, const char *option, const ax_dim_list *list, uint32_t rank, int64_t otherwise, ax_dims *out) {
  out->count = rank;
  if (!ax_option_fits(prim->name, option, list->count, list->v, rank, "dimension")) return false;
  for (uint32_t d = 0; d < rank; d++) out->v[d] = ax_option_at(list, d, otherwise);
  return true;
}

static bool take_lists(const ax_prim *prim, const ax_window_options *options, uint32_t rank, window_params *p) {
  return take(prim, "strides", &options->strides, rank, 1, &p->window_strides) &&
         take(prim, "low", &options->low, rank, 0, &p->padding_low) &&
         take(prim, "high", &options->high, rank, 0, &p->padding_high) &&
         take(prim, "base_dilation", &options->base_dilation, rank, 1, &p->base_dilation) &&
         take(prim, "window_dilation", &options->window_dilation, rank, 1, &p->window_dilation);
}

static ax_value reduce_window(const ax_prim *prim, ax_value x, uint32_t count, const int64_t *window,
                              const ax_window_options *options) {
  static const ax_window_options none = {0};
  window_params p;
  ax_type type;
  if (options == NULL) options = &none;
  if (!ax_operand(prim->name, x, &type)) return ax_poison;
  if (!ax_list_fits(prim->name, "the array has", "dimension", count, type.rank)) return ax_poison;
  if (window == NULL && type.rank > 0) return ax_reject_as(prim->name, "there is no window");
  if (!ax_dims_take(prim, type.rank, window, &p.window_dimensions) || !take_lists(prim, options, type.rank, &p)) return ax_poison;
  if (options->padding != NULL && (options->low.count > 0 || options->high.count > 0))
    return ax_reject_as(prim->name, "padding is \"%.40s\", and low or high is given too", options->padding);
  for (uint32_t d = 0; d < type.rank && options->padding != NULL; d++) {
    ax_window w = window_of(&p, type.dims, d);
    if (!ax_window_pads(prim->name, options->padding, &w)) return ax_poison;
    p.padding_low.v[d] = w.low;
    p.padding_high.v[d] = w.high;
  }
  return ax_bind1(prim, &p, &x, 1);
}

ax_value (ax_reduce_window_sum)(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options) {
  return reduce_window(&ax_prim_reduce_window_sum, x, count, window, options);
}
ax_value (ax_reduce_window_max)(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options) {
  return reduce_window(&ax_prim_reduce_window_max, x, count, window, options);
}
ax_value (ax_reduce_window_min)(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options) {
  return reduce_window(&ax_prim_reduce_window_min, x, count, window, options);
}

/* Checks a pooling of [N, s.., C] and widens its lists: windows over the spatial dimensions alone. False: the trace has failed. */
static bool pool(const char *function, ax_value x, uint32_t window_count, const int64_t *window, uint32_t stride_count,
                 const int64_t *strides, int64_t *all, int64_t *by, ax_type *type) {
  if (!ax_operand(function, x, type)) return false;
  uint32_t count = ax_list_entries(window_count, type->rank < 2 ? 0 : type->rank - 2);
  if (count == 0 || type->rank != count + 2 || window == NULL)
    return ax_reject_as(
               function,
               "a window of %u dimensions for %s, which must have a batch dimension in front of these, and features behind them",
               count, ax_operand_string(type)),
           false;
  if (strides != NULL && !ax_list_fits(function, "the window has", "dimension", stride_count, count)) return false;
  for (uint32_t d = 0; d < type->rank; d++) {
    bool spatial = d > 0 && d <= count;
    all[d] = spatial ? window[d - 1] : 1;
    by[d] = spatial && strides != NULL ? strides[d - 1] : 1;
  }
  return true;
}

ax_value (ax_max_pool)(ax_value x, uint32_t window_count, const int64_t *window, uint32_t stride_count, const int64_t *strides,
                       const char *padding) {
  int64_t all[AX_MAX_RANK], by[AX_MAX_RANK];
  ax_type type;
  if (!pool("max_pool", x, window_count, window, stride_count, strides, all, by, &type)) return ax_poison;
  return ax_reduce_window_max(x, all,
                              (&(ax_window_options){.strides = {type.rank, by}, .padding = padding != NULL ? padding : "VALID"}));
}

ax_value (ax_avg_pool)(ax_value x, uint32_t window_count, const int64_t *window, uint32_t stride_count, const int64_t *strides,
                       const char *padding) {
  int64_t all[AX_MAX_RANK], by[AX_MAX_RANK];
  ax_type type;
  double places = 1;
  if (!pool("avg_pool", x, window_count, window, stride_count, strides, all, by, &type)) return ax_poison;
  if (!ax_rounds(type.dtype)) return ax_reject_as("avg_pool", "the operand is %s; it must be a float", ax_operand_string(&type));
  for (uint32_t d = 0; d < type.rank; d++) places *= (double)all[d];
  return ax_div(ax_reduce_window_sum(
                    x, all, (&(ax_window_options){.strides = {type.rank, by}, .padding = padding != NULL ? padding : "VALID"})),
                ax_real(places));
}
