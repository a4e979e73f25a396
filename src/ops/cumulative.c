/* cumsum, cumprod, cummax, cummin, cumlogsumexp: T[d..] -> T[d..]
     y[i..] = the sum, product, largest, smallest or logsumexp of x[0 .. i] along the axis; reverse: of x[i .. n)
   Parameters: axis, reverse.
   Errors: bool; for cumlogsumexp any dtype that is no float; an axis outside the rank.
   Numerics: eval combines floats in f64 and rounds each result once. Compiled, all but cumlogsumexp are one pass (two of a few long
   rows), with the errors of ax_reduce_sum for sums; cumlogsumexp combines halves of halves by max(a, b) + log1p(exp(-|a - b|)).
   bf16 and f16 are combined in f32. The order follows from shapes alone. Integers wrap. NaN wins in max and min.
   cumsum is linear; its transpose runs the other way. The others' tangents are those of ax_associative_scan of mul, max, min and
   logaddexp: of equal elements each takes half, pair by pair.
   Sharding: all dimensions are cut with the result's. Along the axis each device combines its block; the blocks' totals are
   gathered, and what stands before a block is combined with each of its elements. */
#include <math.h>

#include "hlo/hlo.h"
#include "ops/pointwise.h"
#include "ops/window.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef struct cumulative_params {
  int64_t axis;
  bool reverse;
} cumulative_params;

/* NONE: logaddexp, which is no scalar operation. */
static ax_scalar combination(const ax_prim *prim) {
  if (prim == &ax_prim_cumsum) return AX_SCALAR_ADD;
  if (prim == &ax_prim_cumprod) return AX_SCALAR_MUL;
  if (prim == &ax_prim_cummax) return AX_SCALAR_MAX;
  return prim == &ax_prim_cummin ? AX_SCALAR_MIN : AX_SCALAR_NONE;
}

/* The neutral element of a combination; logaddexp's is that of max. */
static ax_scalar identity_of(ax_scalar op) { return op == AX_SCALAR_NONE ? AX_SCALAR_MAX : op; }

/* The dtype in which elements are combined. */
static ax_dtype made_in(ax_scalar op, ax_dtype dtype) {
  return ax_is_narrow_float(dtype) && op != AX_SCALAR_MAX && op != AX_SCALAR_MIN ? AX_F32 : dtype;
}

static ax_status infer(const ax_infer_args *args) {
  const cumulative_params *p = args->params;
  const ax_type *x = &args->in[0];
  if (combination(args->prim) == AX_SCALAR_NONE && !ax_rounds(x->dtype))
    return ax_error(AX_INVALID_ARGUMENT, "needs a float dtype, got %s", ax_dtype_name(x->dtype));
  if (x->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  if (p->axis < 0 || p->axis >= (int64_t)x->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the axis is %lld, but there are %u dimensions", (long long)p->axis, x->rank);
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* --- eval --- */

static double log_of_sum(double a, double b) {
  const double apart = a - b;
  return isnan(apart) ? a + b : fmax(a, b) + log1p(exp(-fabs(apart)));
}

/* The same of complex numbers, the greater one by its real part; the angle lies between -pi and pi. */
static ax_number complex_log_of_sum(const ax_number *pair) {
  const ax_number most = ax_scalar_eval(AX_SCALAR_MAX, AX_C128, pair, 0), least = ax_scalar_eval(AX_SCALAR_MIN, AX_C128, pair, 0);
  ax_number more = {.f = least.f - most.f, .imag = least.imag - most.imag};
  const bool equal = isnan(more.f); /* infinities of one sign, or NaN */
  more = ax_scalar_eval(AX_SCALAR_EXP, AX_C128, &more, 0);
  more = ax_scalar_eval(AX_SCALAR_LOG1P, AX_C128, &more, 0);
  return (ax_number){.f = equal ? pair[0].f + pair[1].f : most.f + more.f,
                     .imag = remainder(equal ? most.imag : most.imag + more.imag, 2 * 3.14159265358979323846)};
}

static ax_number combined(ax_scalar op, ax_dtype wide, ax_number total, ax_number x) {
  ax_number pair[] = {total, x};
  if (op == AX_SCALAR_NONE && ax_is_complex(wide)) return complex_log_of_sum(pair);
  if (op == AX_SCALAR_NONE) return (ax_number){.f = log_of_sum(total.f, x.f)};
  return ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
}

static ax_status eval(const ax_eval_args *args) {
  const cumulative_params *p = args->eqn->params;
  const ax_scalar op = combination(args->eqn->prim);
  const ax_tensor *x = args->in[0], *out = args->out[0];
  const ax_dtype wide = ax_partial_dtype(op, x->dtype);
  /* No complex number is below all others, and logaddexp has no neutral element in a dtype without infinity. */
  const bool begins = (ax_is_complex(wide) && op != AX_SCALAR_ADD && op != AX_SCALAR_MUL) ||
                      (op == AX_SCALAR_NONE && !ax_has_infinity(x->dtype));
  const uint32_t d = (uint32_t)p->axis;
  const int64_t length = x->dims[d], inner = ax_dims_elems(x->rank - d - 1, x->dims + d + 1), rows = ax_dims_elems(d, x->dims) * inner;
  for (int64_t row = 0; row < rows; row++) {
    ax_number total = ax_reduce_identity(identity_of(op), x->dtype);
    for (int64_t i = 0; i < length; i++) {
      const int64_t at = (row / inner * length + (p->reverse ? length - 1 - i : i)) * inner + row % inner;
      const ax_number element = ax_number_load(x->dtype, x->data, at);
      total = i > 0 || !begins ? combined(op, wide, total, element)
              : ax_is_complex(wide) ? element : (ax_number){.f = element.f + 0.0}; /* -0 gives 0, as by logaddexp */
      ax_number_store(out->dtype, out->data, at, total);
    }
  }
  return AX_OK;
}

/* --- Values combined, a before b --- */

/* With m the greater of a and b, m + log1p(exp(the other - m)), whose angle is brought between -pi and pi. */
static ax_value complex_logaddexp(ax_value a, ax_value b) {
  const double turn = 6.283185307179586477;
  ax_value most = ax_max(a, b), apart = ax_sub(ax_min(a, b), most), sum = ax_add(most, ax_log1p(ax_exp(apart)));
  ax_value x = ax_real_part(sum), y = ax_imag_part(sum), equal = ax_ne(ax_real_part(apart), ax_real_part(apart));
  x = ax_where(equal, ax_add(ax_real_part(a), ax_real_part(b)), x); /* infinities of one sign, or NaN */
  y = ax_where(equal, ax_imag_part(most), y);
  y = ax_sub(y, ax_mul(ax_round(ax_div(y, ax_real(turn))), ax_real(turn)));
  return ax_complex(x, y);
}

/* max(a, b) + log1p(exp(-|a - b|)); where a - b is NaN, infinities of one sign or a NaN, which a + b gives. */
static ax_value logaddexp(ax_value a, ax_value b) {
  if (!ax_failed() && ax_is_complex(ax_typeof(a).dtype)) return complex_logaddexp(a, b);
  ax_value apart = ax_sub(a, b), sum = ax_add(ax_max(a, b), ax_log1p(ax_exp(ax_neg(ax_abs(apart)))));
  return ax_where(ax_ne(apart, apart), ax_add(a, b), sum);
}

static ax_value joined(ax_scalar op, ax_value a, ax_value b) {
  switch (op) {
    case AX_SCALAR_ADD: return ax_add(a, b);
    case AX_SCALAR_MUL: return ax_mul(a, b);
    case AX_SCALAR_MAX: return ax_max(a, b);
    case AX_SCALAR_MIN: return ax_min(a, b);
    default: return logaddexp(a, b);
  }
}

/* --- Derivatives --- */

/* How much of x's tangent the tangent of y = joined(x, other) has. */
static ax_value share_of(ax_scalar op, ax_value x, ax_value other, ax_value y) {
  if (op == AX_SCALAR_MUL) return other;
  if (op == AX_SCALAR_NONE && !ax_failed() && ax_is_complex(ax_typeof(x).dtype)) { /* the same, by the real part */
    ax_value size = ax_real_part(y), nothing = ax_eq(size, ax_real(-INFINITY));
    return ax_exp(ax_sub(x, ax_where(nothing, ax_integer(0), y)));
  }
  if (op == AX_SCALAR_NONE && !ax_failed() && !ax_has_infinity(ax_typeof(x).dtype)) return ax_exp(ax_sub(x, y));
  if (op == AX_SCALAR_NONE) { /* exp(x - y); of infinite elements, 1. Where nothing is above -inf, 0. */
    ax_value below = ax_where(ax_eq(y, ax_real(-INFINITY)), ax_real(0), y);
    return ax_where(ax_eq(y, ax_real(INFINITY)), ax_convert_element_type(ax_eq(x, y), ax_typeof(x).dtype), ax_exp(ax_sub(x, below)));
  }
  ax_value is_it = ax_is_complex(ax_typeof(x).dtype) ? ax_eq(x, y) : op == AX_SCALAR_MAX ? ax_gt(x, other) : ax_lt(x, other);
  is_it = ax_convert_element_type(is_it, ax_typeof(x).dtype);
  return ax_where(ax_eq(x, other), ax_real(0.5), is_it);
}

/* in: a, b's tangents behind them: (a, da, b, db) -> (c, dc) */
static AX_BODY(with_tangents) {
  const ax_scalar op = *(const ax_scalar *)context;
  ax_value a = in[0], b = in[2], c = joined(op, a, b);
  out[0] = c;
  out[1] = ax_add(ax_mul(in[1], share_of(op, a, b, c)), ax_mul(in[3], share_of(op, b, a, c)));
}

static void jvp(const ax_jvp_args *args) {
  const cumulative_params *p = args->eqn->params;
  const ax_scalar op = combination(args->eqn->prim);
  ax_value pair[] = {ax_own_parts(args->in[0]), args->tangent_in[0]};
  args->out[0] = ax_bind1(args->eqn->prim, p, args->in, 1);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0])) return;
  ax_associative_scan(AX_CLOSURE(with_tangents, 4, 2, &op), p->axis, p->reverse, pair, pair);
  args->tangent_out[0] = pair[1];
}

static void sum_transpose(const ax_transpose_args *args) {
  cumulative_params p = *(const cumulative_params *)args->eqn->params;
  p.reverse = !p.reverse;
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->cotangent, 1);
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  cumulative_params p = *(const cumulative_params *)args->eqn->params;
  if (p.axis >= args->in_dim[0]) p.axis++;
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* --- shard --- */

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0; d < x->rank; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

static ax_value places(ax_value x, int64_t axis) {
  const ax_type type = ax_typeof(x);
  return ax_iota(AX_S64, AX_LIST(type.rank, type.dims), axis);
}

/* The last element that is combined along the axis, in an array of one. */
static ax_value total_of(ax_value y, const cumulative_params *p) {
  const int64_t size = ax_typeof(y).dims[p->axis], at = p->reverse ? 0 : size - 1;
  return ax_slice_in_dim(y, at, at + 1, 1, p->axis);
}

/* What stands before this device's block along the axis, from the totals of all blocks. */
static ax_value before_block(const ax_block_args *args, ax_value total, const ax_axes *names, ax_value neutral) {
  const cumulative_params *p = args->eqn->params;
  const ax_axes_list list = ax_axes_listed(names);
  ax_value totals = ax_all_gather(total, list.text, p->axis, true), at = places(totals, p->axis),
           here = ax_convert_element_type(ax_axis_index(list.text), AX_S64);
  totals = ax_where(p->reverse ? ax_gt(at, here) : ax_lt(at, here), totals, neutral);
  return total_of(ax_bind1(args->eqn->prim, p, &totals, 1), p);
}

/* The last blocks may have elements behind the array's end. They stand behind all others, but in reverse before them, where they
   become the neutral element. */
static void block(const ax_block_args *args) {
  const cumulative_params *p = args->eqn->params;
  const ax_scalar op = combination(args->eqn->prim);
  const uint32_t d = (uint32_t)p->axis;
  const ax_axes names = ax_spec_names(&args->specs[0], &ax_builder_current()->axes, d, 0);
  const ax_type *block = &args->blocks[0];
  const ax_dtype dtype = block->dtype, wide = made_in(op, dtype);
  if (names.count == 0 || block->dims[d] == 0) {
    args->out[0] = ax_bind1(args->eqn->prim, p, args->in, 1);
    return;
  }
  ax_value x = ax_convert_element_type(args->in[0], wide), neutral = ax_reduce_neutral(identity_of(op), wide);
  const int64_t size = args->types[args->eqn->in[0]].dims[d];
  if (p->reverse && ax_axis_size(ax_axes_listed(&names).text) * block->dims[d] != size) {
    ax_value at = ax_add(places(x, d), ax_block_start(args, 0, d, AX_S64));
    x = ax_where(ax_lt(at, ax_integer(size)), x, neutral);
  }
  ax_value y = ax_bind1(args->eqn->prim, p, &x, 1), before = before_block(args, total_of(y, p), &names, neutral);
  args->out[0] = ax_convert_element_type(joined(op, before, y), dtype);
}

/* --- lower --- */

static AX_BODY(two_logs) { out[0] = logaddexp(in[0], in[1]); }

/* Nothing and -0 give 0, which adding 0 at the end does too: only the first element can be -0. */
static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const cumulative_params *p = eqn->params;
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  ax_value x[] = {ax_convert_element_type(in[0], made_in(AX_SCALAR_NONE, dtype))};
  ax_associative_scan(AX_FN(two_logs, 2, 1), p->axis, p->reverse, x, x);
  return ax_convert_element_type(ax_add(x[0], ax_real(0.0)), dtype);
}

static AX_BODY(two_joined) { out[0] = joined(*(const ax_scalar *)context, in[0], in[1]); }

/* Sums are those of the parts, in one pass each; other combinations have parts that depend on each other. */
static ax_value complex_expand(const ax_eqn *eqn, const ax_value *in) {
  const cumulative_params *p = eqn->params;
  const ax_scalar op = combination(eqn->prim);
  if (op == AX_SCALAR_ADD) {
    ax_value re = ax_real_part(in[0]), im = ax_imag_part(in[0]);
    re = ax_bind1(eqn->prim, p, &re, 1);
    return ax_complex(re, ax_bind1(eqn->prim, p, &im, 1));
  }
  ax_value x[] = {in[0]};
  ax_associative_scan(AX_CLOSURE(two_joined, 2, 1, &op), p->axis, p->reverse, x, x);
  return x[0];
}

static ax_status lower_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, complex_expand, in, out);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const cumulative_params *p = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]];
  const ax_scalar op = combination(eqn->prim);
  if (ax_type_elems(x) == 0) {
    AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
    return ax_lower_fill(lower, out[0], (ax_number){0});
  }
  if (op == AX_SCALAR_NONE) return ax_lower_expanded(lower, eqn, expand, in, out);
  return ax_window_lower_running(lower, eqn, op, (uint32_t)p->axis, p->reverse, in[0], out);
}

/* --- hlo: a window that ends, or begins, at its place and sees everything up to there, as JAX exports it --- */

static ax_window_params hlo_window(const ax_type *x, const cumulative_params *p) {
  ax_window_params w = {.window_dimensions = {.count = x->rank}, .padding_low = {.count = x->rank}};
  for (uint32_t d = 0; d < x->rank; d++) w.window_dimensions.v[d] = 1;
  w.window_strides = w.base_dilation = w.window_dilation = w.window_dimensions;
  w.padding_high = w.padding_low;
  w.window_dimensions.v[p->axis] = x->dims[p->axis];
  (p->reverse ? &w.padding_high : &w.padding_low)->v[p->axis] = x->dims[p->axis] - 1;
  return w;
}

static uint32_t hlo_binary(ax_hlo *hlo, const char *name, uint32_t a, uint32_t b, const ax_type *scalar) {
  return ax_hlo_op(hlo, name, (uint32_t[]){a, b}, 2, NULL, scalar, 1);
}

static uint32_t hlo_unary(ax_hlo *hlo, const char *name, uint32_t a, const ax_type *scalar) {
  return ax_hlo_op(hlo, name, &a, 1, NULL, scalar, 1);
}

/* The region of logaddexp, as above. */
static void hlo_logaddexp(ax_hlo *hlo, ax_dtype dtype) {
  const ax_type scalar = ax_array_type(dtype, AX_DIMS()), pair[] = {scalar, scalar};
  const uint32_t a = ax_hlo_region_begin(hlo, pair, 2), b = a + 1, greater = hlo_binary(hlo, "stablehlo.maximum", a, b, &scalar),
                 apart = hlo_binary(hlo, "stablehlo.subtract", a, b, &scalar);
  const uint32_t nan = ax_hlo_compare(hlo, "NE", NULL, apart, apart, &scalar);
  const uint32_t sum = hlo_binary(hlo, "stablehlo.add", a, b, &scalar);
  uint32_t more = hlo_unary(hlo, "stablehlo.negate", hlo_unary(hlo, "stablehlo.abs", apart, &scalar), &scalar);
  more = hlo_unary(hlo, "stablehlo.log_plus_one", hlo_unary(hlo, "stablehlo.exponential", more, &scalar), &scalar);
  more = hlo_binary(hlo, "stablehlo.add", greater, more, &scalar);
  const uint32_t made = ax_hlo_op(hlo, "stablehlo.select", (uint32_t[]){nan, sum, more}, 3, NULL, &scalar, 1);
  ax_hlo_region_end(hlo, &made, 1);
}

bool ax_hlo_is_logaddexp(const ax_hlo_operation *op) {
  /* The operations that hlo_logaddexp writes, as JAX does. Operands: 0 and 1 are the arguments, 2 is what the first operation makes, .. */
  static const struct {
    const char *name;
    uint8_t count, operands[3];
  } wanted[] = {{"stablehlo.maximum", 2, {0, 1}}, {"stablehlo.subtract", 2, {0, 1}},     {"stablehlo.compare", 2, {3, 3}},
                {"stablehlo.add", 2, {0, 1}},     {"stablehlo.abs", 1, {3}},             {"stablehlo.negate", 1, {6}},
                {"stablehlo.exponential", 1, {7}}, {"stablehlo.log_plus_one", 1, {8}},   {"stablehlo.add", 2, {2, 9}},
                {"stablehlo.select", 3, {4, 5, 10}}, {"stablehlo.return", 1, {11}}};
  const ax_hlo_block *block = op->region_count == 1 && op->regions[0].block_count == 1 ? &op->regions[0].blocks[0] : NULL;
  if (block == NULL || op->opaque || block->argument_count != 2 || block->operation_count != AX_COUNT(wanted)) return false;
  uint32_t made[2 + AX_COUNT(wanted)] = {block->argument, block->argument + 1};
  for (uint32_t i = 0; i < AX_COUNT(wanted); i++) {
    const ax_hlo_operation *here = block->operations[i];
    if (!ax_hlo_slice_is(here->name, wanted[i].name) || here->operand_count != wanted[i].count) return false;
    for (uint32_t k = 0; k < wanted[i].count; k++)
      if (here->operands[k] != made[wanted[i].operands[k]]) return false;
    made[2 + i] = here->result;
  }
  const ax_hlo_attribute *direction = ax_hlo_find(block->operations[2], "comparison_direction");
  return direction != NULL && ax_hlo_slice_is(direction->text, "NE");
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type type = hlo->program->types[eqn->in[0]], result = ax_array_type(type.dtype, AX_LIST(type.rank, type.dims));
  const ax_scalar op = combination(eqn->prim);
  const ax_type x = ax_array_type(made_in(op, type.dtype), AX_LIST(type.rank, type.dims)), scalar = ax_array_type(x.dtype, AX_DIMS());
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_element bits = {0};
  uint32_t id = in[0];
  if (type.dims[((const cumulative_params *)eqn->params)->axis] == 0) return ax_hlo_same(hlo, eqn, in, out);
  if (op == AX_SCALAR_NONE && ax_is_complex(type.dtype)) return ax_hlo_expanded(hlo, eqn, complex_expand, in, out);
  if (x.dtype != type.dtype) id = ax_hlo_op(hlo, "stablehlo.convert", &id, 1, NULL, &x, 1);
  ax_number_store(x.dtype, &bits, 0, ax_reduce_identity(identity_of(op), x.dtype));
  const uint32_t operands[] = {id, ax_hlo_splat(hlo, &scalar, &bits)};
  const ax_window_params window = hlo_window(&type, eqn->params);
  ax_hlo_add_fields(&attributes, &ax_prim_reduce_window_sum, &window);
  id = ax_hlo_begin(hlo, "stablehlo.reduce_window", operands, 2, &x, 1);
  if (op == AX_SCALAR_NONE) hlo_logaddexp(hlo, x.dtype);
  else ax_hlo_combination(hlo, op, x.dtype);
  ax_hlo_end(hlo, &attributes);
  if (x.dtype != type.dtype) id = ax_hlo_op(hlo, "stablehlo.convert", &id, 1, NULL, &result, 1);
  out[0] = id;
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {
    {"axis", AX_PARAM_I64, offsetof(cumulative_params, axis)},
    {"reverse", AX_PARAM_BOOL, offsetof(cumulative_params, reverse)},
};

#define CUMULATIVE_RECORD(name_, linear_, kinds_, jvp_, ...) /* the transpose, and further slots */                          \
  const ax_prim ax_prim_##name_ = {                                                                                          \
      .name = #name_, .kind = AX_LOCAL, .linear = linear_, .kinds = kinds_, .in_count = 1, .out_count = 1,                   \
      AX_PARAMS(params, cumulative_params), .infer = infer, .spread = ax_spread_local, .eval = eval,                         \
      .differs = ax_differs_union, .jvp = jvp_, .linearize = jvp_, .batch = batch,                                           \
      .simplify = ax_simplify_nothing, .shard = shard, .block = block, .lower = lower, .hlo = hlo, .transpose = __VA_ARGS__, \
  }
CUMULATIVE_RECORD(cumsum, AX_LINEAR_ALL, AX_KINDS_SUM, ax_jvp_linear, sum_transpose, .complex = ax_complex_parts);
CUMULATIVE_RECORD(cumprod, AX_LINEAR_NOT, 0, jvp, ax_absent_transpose, .complex = lower_complex);
CUMULATIVE_RECORD(cummax, AX_LINEAR_ALL, AX_KINDS_MAX, jvp, ax_absent_transpose, .complex = lower_complex);
CUMULATIVE_RECORD(cummin, AX_LINEAR_ALL, AX_KINDS_MIN, jvp, ax_absent_transpose, .complex = lower_complex);
CUMULATIVE_RECORD(cumlogsumexp, AX_LINEAR_NOT, 0, jvp, ax_absent_transpose, .complex = lower_complex);

/* --- The public functions --- */

static ax_value cumulative(const ax_prim *prim, ax_value x, int64_t axis, bool reverse) {
  cumulative_params p = {.axis = axis, .reverse = reverse};
  ax_type type;
  if (!ax_operand(prim->name, x, &type) || !ax_dimension(prim->name, "the axis", &p.axis, type.rank)) return ax_poison;
  return ax_bind1(prim, &p, &x, 1);
}

ax_value (ax_cumsum)(ax_value x, int64_t axis, bool reverse) { return cumulative(&ax_prim_cumsum, x, axis, reverse); }
ax_value (ax_cumprod)(ax_value x, int64_t axis, bool reverse) { return cumulative(&ax_prim_cumprod, x, axis, reverse); }
ax_value (ax_cummax)(ax_value x, int64_t axis, bool reverse) { return cumulative(&ax_prim_cummax, x, axis, reverse); }
ax_value (ax_cummin)(ax_value x, int64_t axis, bool reverse) { return cumulative(&ax_prim_cummin, x, axis, reverse); }
ax_value (ax_cumlogsumexp)(ax_value x, int64_t axis, bool reverse) { return cumulative(&ax_prim_cumlogsumexp, x, axis, reverse); }
