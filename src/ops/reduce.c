/* reduce_sum, reduce_max, reduce_min: T[d..] -> T[the dimensions that are left]
   Parameters: axes.
   Errors: bool; an axis outside the rank or named twice. Over nothing at all the result is 0, or the least or greatest T.
   Numerics: eval adds floats in f64 and rounds once; compiled sums do so too where more than a few numbers meet, and add short runs
   of bf16, f16 and f32 in f32 (the bounds are in axle/ops.h). Integers wrap. NaN wins in max and min.
   reduce_sum is linear; its transpose repeats the cotangent. The tangent of a max or min is shared equally by all places that
   hold it. */
#include <math.h>
#include <string.h>

#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct reduce_params {
  ax_dims axes;
} reduce_params;

static ax_scalar combination(const ax_prim *prim) {
  if (prim == &ax_prim_reduce_sum) return AX_SCALAR_ADD;
  return prim == &ax_prim_reduce_max ? AX_SCALAR_MAX : AX_SCALAR_MIN;
}

static ax_status infer(const ax_infer_args *args) {
  const reduce_params *p = args->params;
  const ax_type *x = &args->in[0];
  if (x->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(ax_infer_distinct("axes", &p->axes, x->rank));
  ax_dims left = ax_dims_left(x, &p->axes);
  args->out[0] = ax_array_type(x->dtype, AX_LIST(left.count, left.v));
  return AX_OK;
}

/* --- eval --- */

ax_number ax_reduce_identity(ax_scalar op, ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  uint64_t ones = UINT64_MAX >> (64 - 8 * info->bytes);
  bool least = op == AX_SCALAR_MAX;
  if (op == AX_SCALAR_ADD) return (ax_number){0};
  if (info->kind == AX_KIND_FLOAT) return (ax_number){.f = least ? -INFINITY : INFINITY};
  if (info->kind == AX_KIND_SIGNED) return (ax_number){.i = least ? -(int64_t)(ones >> 1) - 1 : (int64_t)(ones >> 1)};
  if (info->kind == AX_KIND_BOOL) ones = 1;
  return (ax_number){.u = least ? 0 : ones};
}

ax_value ax_reduce_neutral(ax_scalar op, ax_dtype dtype) {
  if (ax_failed()) return ax_poison; /* after a failure x has no dtype */
  const ax_number number = ax_reduce_identity(op, dtype);
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return ax_as("reduce",
               kind == AX_KIND_FLOAT    ? ax_real(number.f)
               : kind == AX_KIND_SIGNED ? ax_integer(number.i)
                                        : ax_unsigned(number.u),
               dtype);
}

/* Rows: the elements of x that make one result, and where each result's begin. */
typedef struct rows {
  uint32_t kept_rank, reduced_rank;
  int64_t kept_dims[AX_MAX_RANK], kept_strides[AX_MAX_RANK], reduced_dims[AX_MAX_RANK], reduced_strides[AX_MAX_RANK];
} rows;

static rows rows_of(const ax_tensor *x, const ax_dims *axes) {
  rows r = {0};
  int64_t strides[AX_MAX_RANK];
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t d = 0; d < x->rank; d++) {
    bool reduced = ax_dims_has(axes, d);
    uint32_t at = reduced ? r.reduced_rank++ : r.kept_rank++;
    (reduced ? r.reduced_dims : r.kept_dims)[at] = x->dims[d];
    (reduced ? r.reduced_strides : r.kept_strides)[at] = strides[d];
  }
  return r;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0], *out = args->out[0];
  rows r = rows_of(x, &((const reduce_params *)args->eqn->params)->axes);
  ax_scalar op = combination(args->eqn->prim);
  ax_dtype wide = ax_rounds(x->dtype) ? AX_F64 : x->dtype;
  int64_t count = ax_dims_elems(r.kept_rank, r.kept_dims), length = ax_dims_elems(r.reduced_rank, r.reduced_dims);
  const bool moves = r.reduced_rank == 0 || (op != AX_SCALAR_ADD && length == 1); /* the extreme of one element is that element */
  if (moves) memmove(out->data, x->data, (size_t)count * ax_dtype_bytes(x->dtype));
  for (int64_t i = 0; i < count && !moves; i++) {
    int64_t base = ax_strided_at(i, r.kept_rank, r.kept_dims, r.kept_strides);
    ax_number total = ax_reduce_identity(op, x->dtype);
    for (int64_t j = 0; j < length; j++) {
      int64_t at = base + ax_strided_at(j, r.reduced_rank, r.reduced_dims, r.reduced_strides);
      ax_number pair[] = {total, ax_number_load(x->dtype, x->data, at)};
      total = ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
    }
    ax_number_store(out->dtype, out->data, i, total);
  }
  return AX_OK;
}

/* --- jvp --- */

ax_value ax_repeat(ax_value y, const ax_type *like, const ax_dims *axes) {
  ax_dims kept = ax_dims_others(like->rank, axes, NULL);
  return ax_broadcast_in_dim(y, AX_LIST(like->rank, like->dims), kept.v);
}

static void max_jvp(const ax_jvp_args *args) {
  const ax_dims *axes = &((const reduce_params *)args->eqn->params)->axes;
  ax_value x = ax_own_parts(args->in[0]), dx = args->tangent_in[0];
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  ax_type type = ax_typeof(x);
  if (ax_is_zero(dx) || ax_type_elems(&type) == 0) return;
  ax_value holds = ax_eq(x, ax_repeat(ax_own_parts(args->out[0]), &type, axes));
  ax_value share = ax_convert_element_type(holds, type.dtype);
  const ax_value count = ax_reduce_sum(share, AX_LIST(axes->count, axes->v), false);
  args->tangent_out[0] = ax_div(ax_reduce_sum(ax_mul(dx, share), AX_LIST(axes->count, axes->v), false), count);
}

/* --- transpose --- */

static void sum_transpose(const ax_transpose_args *args) {
  const reduce_params *p = args->eqn->params;
  args->out[0] = ax_repeat(args->cotangent[0], &args->in_types[0], &p->axes);
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  reduce_params p = *(const reduce_params *)args->eqn->params;
  int dim = args->in_dim[0];
  args->out_dim[0] = dim;
  for (uint32_t i = 0; i < p.axes.count; i++)
    if (p.axes.v[i] < dim) args->out_dim[0]--;
  ax_dims_shift(&p.axes, dim);
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
}

/* --- shard --- */

static void shard(const ax_shard_args *args) {
  const ax_dims *axes = &((const reduce_params *)args->eqn->params)->axes;
  const ax_type *x = &args->types[args->eqn->in[0]];
  ax_scalar op = combination(args->eqn->prim);
  ax_factor_kind combined = op == AX_SCALAR_ADD ? AX_FACTOR_SUM : op == AX_SCALAR_MAX ? AX_FACTOR_MAX : AX_FACTOR_MIN;
  for (uint32_t d = 0, kept = 0; d < x->rank; d++) {
    bool reduced = ax_dims_has(axes, d);
    uint32_t factor = ax_factor(args, x->dims[d], reduced ? combined : AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    if (!reduced) ax_factor_of(&args->out[0], kept++, factor);
  }
}

/* --- lower --- */

ax_reduction ax_reduction_of(uint32_t rank, const int64_t *dims, const ax_dims *axes) {
  ax_reduction r = {.kept = ax_dims_others(rank, axes, NULL), .rank = rank};
  r.reduced = ax_dims_others(rank, &r.kept, NULL);
  for (uint32_t i = 0; i < rank; i++) {
    int64_t d = i < r.kept.count ? r.kept.v[i] : r.reduced.v[i - r.kept.count];
    r.dims[i] = dims[d];
    r.at[d] = (ax_position){.dim = (int)i, .coef = 1, .dynamic = AX_NONE};
  }
  return r;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]];
  ax_scalar op = combination(eqn->prim);
  ax_reduction r = ax_reduction_of(x->rank, x->dims, &((const reduce_params *)eqn->params)->axes);
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, r.kept.count);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (ax_type_elems(x) == 0) return ax_lower_fill(lower, out[0], ax_reduce_identity(op, x->dtype));
  const bool moves = op != AX_SCALAR_ADD && ax_dims_elems(r.reduced.count, r.dims + r.kept.count) == 1; /* sums of -0 are 0 */
  AX_TRY(ax_lower_kernel_begin(lower, r.rank, moves ? 0 : r.reduced.count, r.dims));
  ax_lower_store(lower, out[0], to, ax_lower_load(lower, in[0], r.at), moves || r.reduced.count == 0 ? AX_SCALAR_NONE : op);
  return ax_lower_kernel_end(lower);
}

/* --- hlo --- */

static uint32_t hlo_convert(ax_hlo *hlo, uint32_t x, const ax_type *from, ax_dtype dtype) {
  ax_type to = ax_array_type(dtype, AX_LIST(from->rank, from->dims));
  return ax_hlo_op(hlo, "stablehlo.convert", &x, from, 1, NULL, &to, 1);
}

ax_status ax_hlo_reduce_axes(ax_hlo *hlo, ax_scalar op, uint32_t x, const ax_type *type, const ax_dims *axes,
                             uint32_t *out) {
  ax_type scalar = ax_array_type(type->dtype, AX_DIMS()), types[] = {*type, scalar};
  ax_dims left = ax_dims_left(type, axes);
  ax_type result = ax_array_type(type->dtype, AX_LIST(left.count, left.v));
  uint64_t bits = 0;
  ax_number_store(type->dtype, &bits, 0, ax_reduce_identity(op, type->dtype));
  uint32_t in[] = {x, ax_hlo_splat(hlo, &scalar, &bits)};
  ax_text attributes = {0};
  ax_hlo_dims(&attributes, "dimensions = ", axes);
  out[0] = ax_hlo_begin(hlo, "stablehlo.reduce", in, 2, 1);
  ax_hlo_combination(hlo, op, type->dtype);
  ax_hlo_end(hlo, attributes.data, types, 2, &result, 1);
  return ax_hlo_attributes_end(&attributes);
}

/* bf16 and f16 sums are made in f32. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_dims *axes = &((const reduce_params *)eqn->params)->axes;
  ax_type type = hlo->program->types[eqn->in[0]], result = hlo->program->types[eqn->out];
  ax_scalar op = combination(eqn->prim);
  bool narrow = op == AX_SCALAR_ADD && ax_is_narrow_float(type.dtype);
  if (!narrow) return ax_hlo_reduce_axes(hlo, op, in[0], &type, axes, out);
  uint32_t wide = hlo_convert(hlo, in[0], &type, AX_F32);
  type.dtype = AX_F32;
  AX_TRY(ax_hlo_reduce_axes(hlo, op, wide, &type, axes, &wide));
  result.dtype = AX_F32;
  out[0] = hlo_convert(hlo, wide, &result, hlo->program->types[eqn->out].dtype);
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {{"axes", AX_PARAM_DIMS, offsetof(reduce_params, axes)}};

#define REDUCE_RECORD(name_, kinds_, jvp_, transpose_)                                                           \
  const ax_prim ax_prim_##name_ = {                                                                              \
      .name = #name_, .kind = AX_LOCAL, .linear = AX_LINEAR_ALL, .kinds = kinds_, .in_count = 1, .out_count = 1, \
      AX_PARAMS(params, reduce_params),                  \
      .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union,                        \
      .jvp = jvp_, .linearize = jvp_,                                                                              \
      .transpose = transpose_, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .hlo = hlo,\
  }
REDUCE_RECORD(reduce_sum, AX_KINDS_SUM, ax_jvp_linear, sum_transpose);
REDUCE_RECORD(reduce_max, AX_KINDS_MAX, max_jvp, ax_absent_transpose);
REDUCE_RECORD(reduce_min, AX_KINDS_MIN, max_jvp, ax_absent_transpose);

/* The axes, counted from 0. */
static bool take_axes(const ax_prim *prim, uint32_t rank, uint32_t count, const int64_t *axes, ax_dims *out) {
  *out = (ax_dims){0};
  if (axes == NULL && count == 0) {
    for (; out->count < rank; out->count++) out->v[out->count] = out->count;
    return true;
  }
  if (!ax_dims_take(prim, count, axes, out)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!ax_dimension(prim->name, "axis", &out->v[i], rank)) return false;
  return true;
}

static ax_value reduce(const ax_prim *prim, ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  reduce_params p;
  ax_type type = ax_typeof(x);
  if (ax_failed() || !take_axes(prim, type.rank, count, axes, &p.axes)) return ax_poison;
  if (p.axes.count == 0) return x;
  ax_value made = ax_bind1(prim, &p, &x, 1);
  for (uint32_t i = 0; i < p.axes.count; i++) type.dims[p.axes.v[i]] = 1;
  return keepdims && !ax_failed() ? ax_reshape(made, AX_LIST(type.rank, type.dims)) : made;
}

ax_value (ax_reduce_sum)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_sum, x, count, axes, keepdims);
}
ax_value (ax_reduce_max)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_max, x, count, axes, keepdims);
}
ax_value (ax_reduce_min)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_min, x, count, axes, keepdims);
}

/* bf16 and f16 are added and divided in f32. */
ax_value (ax_reduce_mean)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  static const char name[] = "reduce_mean";
  ax_type type;
  ax_dims all;
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (!ax_rounds(type.dtype)) return ax_reject_as(name, "the operand is %s; it must be a float", ax_operand_string(&type));
  for (uint32_t i = 0; i < count && axes != NULL; i++) {
    int64_t axis = axes[i];
    if (!ax_dimension(name, "axis", &axis, type.rank)) return ax_poison;
  }
  if (!take_axes(&ax_prim_reduce_sum, type.rank, count, axes, &all)) return ax_poison;
  const bool narrow = ax_is_narrow_float(type.dtype);
  ax_value sum = ax_reduce_sum(narrow ? ax_convert_element_type(x, AX_F32) : x, AX_LIST(count, axes), keepdims);
  double summed = 1; /* how many elements go into one */
  for (uint32_t i = 0; i < all.count; i++) summed *= (double)type.dims[all.v[i]];
  ax_value mean = ax_div(sum, ax_full_like(sum, summed));
  return narrow ? ax_convert_element_type(mean, type.dtype) : mean;
}
