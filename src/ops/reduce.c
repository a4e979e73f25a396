/* reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_and, reduce_or, reduce_xor: T[d..] -> T[the dimensions that are left]
   Parameters: axes.
   Errors: bool; for and, or, xor a float; an axis outside the rank or named twice. Over nothing at all the result is 0, 1, the least or
   greatest T, all bits set, 0, or 0.
   Numerics: eval adds and multiplies floats in f64 and rounds once; compiled products do so too, and sums where more than a few
   numbers meet; they add short runs of bf16, f16 and f32 in f32 (the bounds are in axle/ops.h). Integers wrap. NaN wins in max and
   min. and, or, xor are those of the bits of integers, and of the truth of bools.
   reduce_sum and reduce_prod take complex numbers.
   reduce_sum is linear; its transpose repeats the cotangent. The tangent of a max or min is shared equally by all places that
   hold it; that of a product is made in halves, as the product would be, and divides by nothing (ops/reduce_prod.c). */
#include "ops/reduce.h"

#include <math.h>
#include <string.h>

#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef ax_reduce_params reduce_params;

static ax_scalar combination(const ax_prim *prim) { return prim->form->reducer; }

/* Whether the operation is one of bits, which floats do not have. */
static bool is_bitwise(ax_scalar op) { return op == AX_SCALAR_AND || op == AX_SCALAR_OR || op == AX_SCALAR_XOR; }

/* Whether a reduction begins with a number that changes the bits of a float. */
static bool begins_anew(ax_scalar op) { return op == AX_SCALAR_ADD; }

static ax_status infer(const ax_infer_args *args) {
  const reduce_params *p = args->params;
  const ax_type *x = &args->in[0];
  const bool bitwise = is_bitwise(combination(args->prim));
  if (x->dtype == AX_BOOL && !bitwise) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  if (ax_is_float(x->dtype) && bitwise)
    return ax_error(AX_INVALID_ARGUMENT, "needs bool or an integer dtype, got %s", ax_dtype_name(x->dtype));
  AX_TRY(ax_infer_distinct("axes", &p->axes, x->rank));
  ax_dims left = ax_dims_left(x, &p->axes);
  args->out[0] = ax_array_type(x->dtype, AX_LIST(left.count, left.v));
  return AX_OK;
}

/* --- eval --- */

ax_number ax_reduce_identity(ax_scalar op, ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  uint64_t ones = UINT64_MAX >> (info->bits < 64 ? 64 - info->bits : 0);
  bool least = op == AX_SCALAR_MAX;
  if (op == AX_SCALAR_ADD || op == AX_SCALAR_OR || op == AX_SCALAR_XOR) return (ax_number){0};
  if (op == AX_SCALAR_MUL) return ax_rounds(dtype) ? (ax_number){.f = 1} : (ax_number){.u = 1};
  if (op == AX_SCALAR_AND && info->kind == AX_KIND_SIGNED) return (ax_number){.i = -1};
  if (info->kind == AX_KIND_FLOAT && !ax_has_infinity(dtype))
    return (ax_number){.f = least ? ax_float_least(dtype) : ax_float_largest(dtype)};
  if (ax_rounds(dtype)) return (ax_number){.f = least ? -INFINITY : INFINITY};
  if (info->kind == AX_KIND_SIGNED) return (ax_number){.i = least ? -(int64_t)(ones >> 1) - 1 : (int64_t)(ones >> 1)};
  if (info->kind == AX_KIND_BOOL) ones = 1;
  return (ax_number){.u = least ? 0 : ones};
}

ax_value ax_reduce_neutral(ax_scalar op, ax_dtype dtype) {
  if (ax_failed()) return ax_poison; /* after a failure x has no dtype */
  const ax_number number = ax_reduce_identity(op, dtype);
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return ax_as("reduce",
               ax_rounds(dtype)         ? ax_real(number.f)
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

ax_dtype ax_partial_dtype(ax_scalar op, ax_dtype dtype) {
  if (op != AX_SCALAR_MAX && op != AX_SCALAR_MIN) return ax_widest_dtype(dtype);
  return ax_is_narrow_float(dtype) ? AX_F32 : dtype;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0], *out = args->out[0];
  rows r = rows_of(x, &((const reduce_params *)args->eqn->params)->axes);
  ax_scalar op = combination(args->eqn->prim);
  const ax_dtype wide = ax_partial_dtype(op, x->dtype);
  int64_t count = ax_dims_elems(r.kept_rank, r.kept_dims), length = ax_dims_elems(r.reduced_rank, r.reduced_dims);
  const bool moves = r.reduced_rank == 0 || (!begins_anew(op) && length == 1); /* the extreme of one element is that element */
  const bool begins = ax_is_complex(x->dtype) && (op == AX_SCALAR_MAX || op == AX_SCALAR_MIN); /* none is below all others */
  if (moves) memmove(out->data, x->data, (size_t)count * ax_dtype_bytes(x->dtype));
  for (int64_t i = 0; i < count && !moves; i++) {
    int64_t base = ax_strided_at(i, r.kept_rank, r.kept_dims, r.kept_strides);
    ax_number total = ax_reduce_identity(op, x->dtype);
    for (int64_t j = 0; j < length; j++) {
      int64_t at = base + ax_strided_at(j, r.reduced_rank, r.reduced_dims, r.reduced_strides);
      ax_number pair[] = {total, ax_number_load(x->dtype, x->data, at)};
      total = j == 0 && begins ? pair[1] : ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
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
  ax_factor_kind combined = op == AX_SCALAR_ADD   ? AX_FACTOR_SUM
                            : op == AX_SCALAR_MUL ? AX_FACTOR_PROD
                            : op == AX_SCALAR_MAX ? AX_FACTOR_MAX
                            : op == AX_SCALAR_MIN ? AX_FACTOR_MIN
                            : op == AX_SCALAR_AND ? AX_FACTOR_AND
                            : op == AX_SCALAR_OR  ? AX_FACTOR_OR
                                                  : AX_FACTOR_XOR;
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

/* Products of short floats are made in f64 and rounded once, so that none overflows on the way. */
static ax_status lower_wide(ax_lower *lower, const ax_eqn *eqn, uint32_t x, const ax_reduction *r, uint32_t out) {
  ax_type type = *ax_lower_type(lower, out);
  const ax_dtype dtype = type.dtype;
  ax_position to[AX_MAX_RANK];
  uint32_t wide;
  type.dtype = AX_F64;
  ax_at_identity(to, r->kept.count);
  AX_TRY(ax_lower_buffer(lower, &type, lower->differs[eqn->out], &wide));
  AX_TRY(ax_lower_kernel_begin(lower, r->rank, r->reduced.count, r->dims));
  ax_ex factor = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, AX_F64, ax_lower_load(lower, x, r->at), AX_NONE, AX_NONE);
  ax_lower_store(lower, wide, to, factor, AX_SCALAR_MUL);
  AX_TRY(ax_lower_kernel_end(lower));
  AX_TRY(ax_lower_kernel_begin(lower, r->kept.count, 0, r->dims));
  ax_ex product = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, dtype, ax_lower_load(lower, wide, to), AX_NONE, AX_NONE);
  ax_lower_store(lower, out, to, product, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]];
  ax_scalar op = combination(eqn->prim);
  ax_reduction r = ax_reduction_of(x->rank, x->dims, &((const reduce_params *)eqn->params)->axes);
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, r.kept.count);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (ax_type_elems(x) == 0) return ax_lower_fill(lower, out[0], ax_reduce_identity(op, x->dtype));
  const bool moves = !begins_anew(op) && ax_dims_elems(r.reduced.count, r.dims + r.kept.count) == 1; /* sums of -0 are 0 */
  if (op == AX_SCALAR_MUL && !moves && ax_rounds(x->dtype) && x->dtype != AX_F64) return lower_wide(lower, eqn, in[0], &r, out[0]);
  AX_TRY(ax_lower_kernel_begin(lower, r.rank, moves ? 0 : r.reduced.count, r.dims));
  ax_lower_store(lower, out[0], to, ax_lower_load(lower, in[0], r.at), moves || r.reduced.count == 0 ? AX_SCALAR_NONE : op);
  return ax_lower_kernel_end(lower);
}

/* Products of complex numbers: the reduced dimensions as one, the halves of which are multiplied until there is one number. */
static ax_value prod_expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_type type = ax_typeof(in[0]);
  if (ax_failed()) return ax_poison;
  const ax_reduction r = ax_reduction_of(type.rank, type.dims, &((const reduce_params *)eqn->params)->axes);
  int64_t permutation[AX_MAX_RANK], dims[AX_MAX_RANK], count = ax_dims_elems(r.reduced.count, r.dims + r.kept.count),
          kept = ax_dims_elems(r.kept.count, r.dims);
  for (uint32_t d = 0; d < type.rank; d++) permutation[d] = d < r.kept.count ? r.kept.v[d] : r.reduced.v[d - r.kept.count];
  memcpy(dims, r.dims, r.kept.count * sizeof dims[0]);
  if (count == 0) return ax_full(type.dtype, AX_LIST(r.kept.count, dims), 1);
  ax_value x = ax_reshape(ax_transpose(in[0], AX_LIST(type.rank, permutation)), AX_DIMS(kept, count));
  for (; count > 1 && !ax_failed(); count = (count + 1) / 2) {
    const int64_t half = count / 2;
    ax_value left = ax_slice_in_dim(x, 0, half, 1, 1), right = ax_slice_in_dim(x, half, 2 * half, 1, 1);
    ax_value made = ax_mul(left, right);
    x = count % 2 == 0 ? made : ax_concatenate(AX_VALUES(made, ax_slice_in_dim(x, count - 1, count, 1, 1)), 1);
  }
  return ax_reshape(x, AX_LIST(r.kept.count, dims));
}

static ax_status prod_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, prod_expand, in, out);
}

/* Extremes of complex numbers: of the real parts, and of the imaginary parts that stand beside that. NaN in either part wins. */
static ax_value extreme_expand(const ax_eqn *eqn, const ax_value *in) {
  const reduce_params *p = eqn->params;
  const ax_type type = ax_typeof(in[0]);
  if (ax_failed()) return ax_poison;
  const ax_dims left = ax_dims_left(&type, &p->axes);
  const double none = eqn->prim == &ax_prim_reduce_max ? -INFINITY : INFINITY;
  if (ax_type_elems(&type) == 0) return ax_full(type.dtype, AX_LIST(left.count, left.v), none);
  if (ax_type_elems(&type) == ax_dims_elems(left.count, left.v)) return ax_reshape(in[0], AX_LIST(left.count, left.v));
  ax_value x = ax_real_part(in[0]), y = ax_imag_part(in[0]);
  x = ax_where(ax_eq(y, y), x, ax_real(NAN));
  ax_value most = ax_bind1(eqn->prim, p, &x, 1), beside = ax_where(ax_eq(x, ax_repeat(most, &type, &p->axes)), y, ax_real(none));
  ax_value second = ax_bind1(eqn->prim, p, &beside, 1);
  return ax_complex(most, ax_where(ax_eq(most, most), second, most));
}

static ax_status extreme_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, extreme_expand, in, out);
}

/* --- hlo --- */

static uint32_t hlo_convert(ax_hlo *hlo, uint32_t x, const ax_type *from, ax_dtype dtype) {
  ax_type to = ax_array_type(dtype, AX_LIST(from->rank, from->dims));
  return ax_hlo_op(hlo, "stablehlo.convert", &x, 1, NULL, &to, 1);
}

uint32_t ax_hlo_reduce_axes(ax_hlo *hlo, ax_scalar op, uint32_t x, const ax_type *type, const ax_dims *axes) {
  ax_type scalar = ax_array_type(type->dtype, AX_DIMS());
  ax_dims left = ax_dims_left(type, axes);
  ax_type result = ax_array_type(type->dtype, AX_LIST(left.count, left.v));
  ax_element bits = {0};
  ax_number_store(type->dtype, &bits, 0, ax_reduce_identity(op, type->dtype));
  uint32_t in[] = {x, ax_hlo_splat(hlo, &scalar, &bits)};
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, &ax_prim_reduce_sum, &(reduce_params){*axes}); /* all of the family have the same */
  const uint32_t made = ax_hlo_begin(hlo, "stablehlo.reduce", in, 2, &result, 1);
  ax_hlo_combination(hlo, op, type->dtype);
  ax_hlo_end(hlo, &attributes);
  return made;
}

/* Sums and products of bf16 and f16 are made in f32. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_dims *axes = &((const reduce_params *)eqn->params)->axes;
  ax_type type = hlo->program->types[eqn->in[0]], result = hlo->program->types[eqn->out];
  ax_scalar op = combination(eqn->prim);
  bool narrow = (op == AX_SCALAR_ADD || op == AX_SCALAR_MUL) && ax_is_narrow_float(type.dtype);
  const uint32_t x = narrow ? hlo_convert(hlo, in[0], &type, AX_F32) : in[0];
  if (narrow) type.dtype = AX_F32;
  out[0] = ax_hlo_reduce_axes(hlo, op, x, &type, axes);
  if (narrow) out[0] = hlo_convert(hlo, out[0], &result, result.dtype);
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {{"axes", AX_PARAM_DIMS, offsetof(reduce_params, axes)}};

/* Reading: reduce_by.c finds the one of them that has the region's reducer. */
#define REDUCE_RECORD(name_, reducer_, linear_, kinds_, jvp_, ...) /* the transpose, and further slots */                           \
  static const ax_hlo_form name_##_form = {                                                                      \
      .op = "stablehlo.reduce", .reducer = reducer_, .fields = AX_HLO_FIELDS({"dimensions", "axes"})};               \
  const ax_prim ax_prim_##name_ = {                                                                              \
      .name = #name_, .kind = AX_LOCAL, .linear = linear_, .kinds = kinds_, .in_count = 1, .out_count = 1, .form = &name_##_form, \
      AX_PARAMS(params, reduce_params),                  \
      .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union,                        \
      .jvp = jvp_, .linearize = jvp_,                                                                              \
      .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .hlo = hlo, .transpose = __VA_ARGS__, \
  }
REDUCE_RECORD(reduce_sum, AX_SCALAR_ADD, AX_LINEAR_ALL, AX_KINDS_SUM, ax_jvp_linear, sum_transpose, .complex = ax_complex_parts);
REDUCE_RECORD(reduce_max, AX_SCALAR_MAX, AX_LINEAR_ALL, AX_KINDS_MAX, max_jvp, ax_absent_transpose, .complex = extreme_complex);
REDUCE_RECORD(reduce_min, AX_SCALAR_MIN, AX_LINEAR_ALL, AX_KINDS_MIN, max_jvp, ax_absent_transpose, .complex = extreme_complex);
REDUCE_RECORD(reduce_prod, AX_SCALAR_MUL, AX_LINEAR_NOT, 0, ax_reduce_prod_jvp, ax_absent_transpose, .complex = prod_complex);
REDUCE_RECORD(reduce_and, AX_SCALAR_AND, AX_LINEAR_NOT, 0, ax_jvp_zero, ax_absent_transpose);
REDUCE_RECORD(reduce_or, AX_SCALAR_OR, AX_LINEAR_NOT, 0, ax_jvp_zero, ax_absent_transpose);
REDUCE_RECORD(reduce_xor, AX_SCALAR_XOR, AX_LINEAR_NOT, 0, ax_jvp_zero, ax_absent_transpose);

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
ax_value (ax_reduce_prod)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_prod, x, count, axes, keepdims);
}
ax_value (ax_reduce_or)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_or, x, count, axes, keepdims);
}
ax_value (ax_reduce_xor)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_xor, x, count, axes, keepdims);
}
ax_value (ax_reduce_and)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return reduce(&ax_prim_reduce_and, x, count, axes, keepdims);
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
