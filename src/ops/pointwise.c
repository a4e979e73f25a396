/* The pointwise arithmetic family: one element of the result from the elements at the same place in the operands.

     op: T[d..] .. -> T[d..]        operands of one dtype and one shape (broadcasting is done before, by broadcast_in_dim)

     op             T         result                                                   its tangent, for tangents dx and dy
     add            numeric   x + y                                                    dx + dy
     sub            numeric   x - y                                                    dx - dy
     mul            numeric   x * y                                                    y dx + x dy
     div            numeric   x / y; integers truncate, x/0 has all bits set           dx / y - (x/y) / y dy
     max, min       numeric   the larger, the smaller; NaN if either is                the winner's, half of each on ties
     pow            float     x to the power y                                         y x^(y-1) dx + log(x) x^y dy, log(0) as 0
     rem            numeric   x - y trunc(x / y), exact, with the sign of x; x rem 0   dx - round((x - x rem y) / y) dy
                              is x of integers, NaN of floats
     integer_pow    numeric   x to the power of the parameter y; below 0: T float      y x^(y-1) dx
     neg            numeric   -x                                                       -dx
     abs            numeric   |x|, of complex x real                                   dx where x >= 0, -dx elsewhere;
                                                                                       of complex x Re(conj(sign(x)) dx)
     sign           numeric   -1, 0 or 1; keeps NaN and both zeros; x / |x|            none; of complex x, with the result s,
                                                                                       i s Im(conj(s) dx) / |x|
     floor, ceil    float     the whole number next below, next above; keeps -0        none
     round_nearest_even  float  the nearest whole number, of two the even one          none
     exp, log       float     e^x, the natural logarithm                               e^x dx, dx / x
     log1p, expm1   float     log(1 + x), e^x - 1, exact near 0                        dx / (1 + x), e^x dx
     sin, cos       float     of x in radians                                          cos(x) dx, -sin(x) dx
     tanh           float     the hyperbolic tangent                                   (1 - tanh(x)^2) dx
     logistic       float     1 / (1 + e^-x)                                           y (1 - y) dx, with y the result
     sqrt, rsqrt    float     x^(1/2), x^(-1/2)                                        dx / (2 sqrt(x)), -rsqrt(x) / (2 x) dx
     erf            float     the error function                                       2 / sqrt(pi) e^(-x^2) dx

   exp to erf have one parameter, accuracy: how far results may be from the exact ones, in units of their last place, or "highest"
   for as near as there is; printed where it is not the default, which is within 4 (f32, f64). The page of primitives lists each
   function's bound below. The parameter chooses the compiled code; the reference evaluation is equally exact either way.
   Derivatives have the accuracy of their function.

   add, sub and neg are linear, mul in either operand, div (of floats) in the first; max takes operands that are unreduced by max,
   min operands that are unreduced by min.
   Complex numbers are taken by all but rem, floor, ceil, round and erf, where `numeric` and `float` then mean them too. max and min go
   by real parts, then by imaginary ones. Products are the four real ones; quotients by zero and of infinities are those of C (C17,
   G.5.1). Functions have the branch cuts of C, and no bounds of accuracy; logarithms and inverses of c64 take f64.
   Errors: shapes or dtypes that differ; a dtype the operation has no meaning for.
   pow by 0.5, 2, .. becomes a root, a product, .. (known_power.c).
   Sharding: cuts of every dimension are kept.
   A member is a scalar operation (ir/scalar.def), its dtypes and its derivative; all else is the family's.
   Derivatives are those of jax.lax, at the kinks too (max shares equally on ties). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "machine/float_mode.h"
#include "ops/complex.h"
#include "ops/known_power.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status infer_same(const ax_infer_args *args) {
  for (uint32_t i = 1; i < args->in_count; i++)
    if (args->in[i].dtype != args->in[0].dtype)
      return ax_error(AX_INVALID_ARGUMENT, "operand dtypes differ: %s and %s", ax_dtype_name(args->in[0].dtype),
                      ax_dtype_name(args->in[i].dtype));
  for (uint32_t i = 1; i < args->in_count; i++)
    if (!ax_same_shape(&args->in[i], &args->in[0]))
      return ax_error(AX_INVALID_ARGUMENT, "operand shapes differ: %s and %s", ax_type_string(&args->in[0], args->axes),
                      ax_type_string(&args->in[i], args->axes));
  args->out[0] = ax_array_type(args->in[0].dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
  return AX_OK;
}

static ax_status infer_numeric(const ax_infer_args *args) {
  if (args->in[0].dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  return infer_same(args);
}

ax_status ax_infer_float(const ax_infer_args *args) {
  if (!ax_rounds(args->in[0].dtype))
    return ax_error(AX_INVALID_ARGUMENT, "needs a float dtype, got %s", ax_dtype_name(args->in[0].dtype));
  return infer_same(args);
}

/* The absolute value of a complex number is real. */
static ax_status infer_abs(const ax_infer_args *args) {
  AX_TRY(infer_numeric(args));
  args->out[0].dtype = ax_part_dtype(args->in[0].dtype);
  return AX_OK;
}

/* Says whether there is code with this accuracy. */
static ax_status accuracy_check(const ax_prim *prim, ax_dtype dtype, int64_t accuracy) {
  if (accuracy == AX_ACCURACY_DEFAULT || accuracy == AX_ACCURACY_HIGHEST) return AX_OK;
  if (ax_is_complex(dtype)) return ax_error(AX_INVALID_ARGUMENT, "functions of complex numbers have no bounds in units of the last place");
  if (accuracy < 0) return ax_error(AX_INVALID_ARGUMENT, "an accuracy of %lld units of the last place", (long long)accuracy);
  double least = ax_scalar_error(prim->scalar, dtype, true), usual = ax_scalar_error(prim->scalar, dtype, false);
  if ((double)accuracy >= (least < usual ? least : usual)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s of %s is within %g units of the last place at best, not %lld", prim->name,
                  ax_dtype_name(dtype), least, (long long)accuracy);
}

ax_status ax_infer_function(const ax_infer_args *args) {
  AX_TRY(ax_infer_float(args));
  return accuracy_check(args->prim, args->in[0].dtype, *(const int64_t *)args->params);
}

/* Integers have no reciprocal. */
static ax_status infer_integer_pow(const ax_infer_args *args) {
  int64_t exponent = *(const int64_t *)args->params;
  if (exponent < 0 && !ax_rounds(args->in[0].dtype))
    return ax_error(AX_INVALID_ARGUMENT, "%s has no negative powers: exponent %lld", ax_dtype_name(args->in[0].dtype),
                    (long long)exponent);
  return infer_numeric(args);
}

ax_status ax_infer_bits(const ax_infer_args *args) {
  if (ax_rounds(args->in[0].dtype))
    return ax_error(AX_INVALID_ARGUMENT, "needs bool or an integer dtype, got %s", ax_dtype_name(args->in[0].dtype));
  return infer_same(args);
}

ax_status ax_infer_compare(const ax_infer_args *args) {
  AX_TRY(infer_same(args));
  args->out[0].dtype = AX_BOOL;
  return AX_OK;
}

/* --- eval, lower, hlo: the family's --- */

/* The immediate of the scalar operation: the equation's one number, or its precision. */
static int64_t imm_of(const ax_eqn *eqn) {
  if (eqn->prim->scalar != AX_SCALAR_REDUCE_PRECISION) return eqn->params != NULL ? *(const int64_t *)eqn->params : 0;
  const ax_precision_params *p = eqn->params;
  return ax_precision_imm(p->exponent_bits, p->mantissa_bits);
}

/* The operation moves or changes bits, and keeps subnormal numbers in every mode. */
static bool is_on_bits(ax_scalar op) {
  return op == AX_SCALAR_NEG || op == AX_SCALAR_ABS || op == AX_SCALAR_NEXTAFTER || op == AX_SCALAR_REDUCE_PRECISION;
}

ax_status ax_eval_pointwise(const ax_eval_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_scalar op = eqn->prim->scalar;
  int64_t imm = imm_of(eqn);
  const ax_tensor *out = args->out[0], *first = args->in[0];
  int64_t elems = ax_dims_elems(out->rank, out->dims);
  const bool moves = is_on_bits(op);
  ax_float_mode mode = {0};
  if (moves) mode = ax_float_mode_enter(false);
  for (int64_t i = 0; i < elems; i++) {
    ax_number x[3] = {0};
    for (uint32_t k = 0; k < eqn->in_count; k++) x[k] = ax_number_load(args->in[k]->dtype, args->in[k]->data, i);
    ax_number_store(out->dtype, out->data, i, ax_scalar_eval(op, first->dtype, x, imm));
  }
  if (moves) ax_float_mode_leave(mode);
  return AX_OK;
}

ax_status ax_lower_pointwise(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  ax_position at[AX_MAX_RANK];
  ax_ex arg[3] = {AX_NONE, AX_NONE, AX_NONE};
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  for (uint32_t k = 0; k < eqn->in_count; k++) arg[k] = ax_lower_load(lower, in[k], at);
  ax_scalar op = eqn->prim->scalar;
  ax_ex value = eqn->params != NULL
                    ? ax_kernel_op_imm(lower->kernel, op, type->dtype, arg[0], imm_of(eqn))
                    : ax_kernel_op(lower->kernel, op, type->dtype, arg[0], arg[1], arg[2]);
  ax_lower_store(lower, out[0], at, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static uint32_t one_hlo(ax_hlo *hlo, const ax_type *type) {
  ax_element element = {0};
  ax_number_store(type->dtype, &element, 0, ax_number_of(type->dtype, 1));
  return ax_hlo_splat(hlo, type, &element);
}

static uint32_t binary_hlo(ax_hlo *hlo, const char *name, uint32_t a, uint32_t b, const ax_type *type) {
  uint32_t operands[] = {a, b};
  return ax_hlo_op(hlo, name, operands, 2, NULL, type, 1);
}

static bool is_unsigned(const ax_hlo *hlo, const ax_eqn *eqn) {
  return ax_dtype_get(hlo->program->types[eqn->out].dtype)->kind == AX_KIND_UNSIGNED;
}

/* StableHLO has these for signed numbers only. */
static ax_status abs_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  if (!is_unsigned(hlo, eqn)) return ax_hlo_by_form(hlo, eqn, in, out);
  out[0] = in[0];
  return AX_OK;
}

/* StableHLO's order of complex numbers is not that of every compiler. */
static ax_status max_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const bool is_complex = ax_is_complex(hlo->program->types[eqn->out].dtype);
  return is_complex ? ax_complex_pointwise_hlo(hlo, eqn, in, out) : ax_hlo_by_form(hlo, eqn, in, out);
}

static ax_status sign_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  if (!is_unsigned(hlo, eqn)) return ax_hlo_by_form(hlo, eqn, in, out);
  const ax_type *type = &hlo->program->types[eqn->out];
  out[0] = binary_hlo(hlo, "stablehlo.minimum", in[0], one_hlo(hlo, type), type);
  return AX_OK;
}

/* StableHLO has no erf; XLA knows it under this name, as JAX's older exports write it. */
static ax_status erf_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_hlo_attributes attributes = {.hlo = hlo}, none = {.hlo = hlo};
  ax_hlo_add_string(&attributes, "call_target_name", "mhlo.erf");
  ax_hlo_add_group(&attributes, "mhlo.attributes", "", &none);
  ax_hlo_add_integer(&attributes, "mhlo.version", 1);
  return ax_hlo_simple(hlo, eqn, "stablehlo.custom_call", in, &attributes, out);
}

ax_status ax_function_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const int64_t accuracy = *(const int64_t *)eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo}, group = {.hlo = hlo};
  if (accuracy == AX_ACCURACY_DEFAULT) return ax_hlo_by_form(hlo, eqn, in, out);
  if (accuracy != AX_ACCURACY_HIGHEST) ax_hlo_add_integer(&group, "ulps", accuracy);
  ax_hlo_add_word(&group, "mode", accuracy == AX_ACCURACY_HIGHEST ? "HIGHEST" : "TOLERANCE");
  ax_hlo_add_group(&attributes, "result_accuracy", "stablehlo.result_accuracy", &group);
  return ax_hlo_simple(hlo, eqn, eqn->prim->form->op, in, &attributes, out);
}

/* By squaring, and a division for a negative exponent. */
static ax_status integer_pow_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  int64_t exponent = *(const int64_t *)eqn->params;
  const ax_type *type = &hlo->program->types[eqn->out];
  uint32_t square = in[0], product = AX_NONE;
  for (uint64_t n = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent; n > 0; n >>= 1) {
    if (n & 1) product = product == AX_NONE ? square : binary_hlo(hlo, "stablehlo.multiply", product, square, type);
    if (n > 1) square = binary_hlo(hlo, "stablehlo.multiply", square, square, type);
  }
  if (exponent == 0) product = one_hlo(hlo, type);
  if (exponent < 0) product = binary_hlo(hlo, "stablehlo.divide", one_hlo(hlo, type), product, type);
  out[0] = product;
  return AX_OK;
}

/* --- jvp: one call that adds equations in an argument list at most, as C leaves their order open --- */

static ax_value one_in(const ax_jvp_args *a) {
  a->out[0] = ax_bind1(a->eqn->prim, a->eqn->params, a->in, a->eqn->in_count);
  return a->out[0];
}

/* tangent * factor, where the tangent may be the symbolic zero. */
static ax_value times(ax_value tangent, ax_value factor) {
  return ax_is_zero(tangent) ? tangent : ax_mul(tangent, factor);
}

static ax_value plus_constant(ax_value x, double c) { return ax_add(x, ax_full_like(x, c)); }
static ax_value times_constant(ax_value x, double c) { return ax_mul(x, ax_full_like(x, c)); }

static void sub_jvp(const ax_jvp_args *a) {
  one_in(a);
  ax_value minus = ax_is_zero(a->tangent_in[1]) ? ax_zero : ax_neg(a->tangent_in[1]);
  bool both = !ax_is_zero(a->tangent_in[0]) && !ax_is_zero(minus);
  a->tangent_out[0] = both ? ax_sub(a->tangent_in[0], a->tangent_in[1]) : ax_add_any(a->tangent_in[0], minus);
}

static void add_jvp(const ax_jvp_args *a) {
  one_in(a);
  a->tangent_out[0] = ax_add_any(a->tangent_in[0], a->tangent_in[1]);
}

static void mul_jvp(const ax_jvp_args *a) {
  one_in(a);
  ax_value left = times(a->tangent_in[0], a->in[1]), right = times(a->tangent_in[1], a->in[0]);
  a->tangent_out[0] = ax_add_any(left, right);
}

/* d(x/y) = dx/y - dy * (x/y)/y */
static void div_jvp(const ax_jvp_args *a) {
  ax_value y = one_in(a);
  ax_value left = ax_is_zero(a->tangent_in[0]) ? ax_zero : ax_div(a->tangent_in[0], a->in[1]);
  ax_value right = ax_is_zero(a->tangent_in[1]) ? ax_zero : ax_mul(a->tangent_in[1], ax_neg(ax_div(y, a->in[1])));
  a->tangent_out[0] = ax_add_any(left, right);
}

/* The share of operand k: 1 where it is the result, 1/2 where both are, 0 elsewhere. */
static ax_value balanced(ax_value mine, ax_value other, ax_value result) {
  ax_value one = ax_full_like(result, 1), half = ax_full_like(result, 0.5), zero = ax_full_like(result, 0);
  ax_value share = ax_select_n(ax_eq(mine, other), one, half);
  return ax_select_n(ax_eq(mine, result), zero, share);
}

static void max_jvp(const ax_jvp_args *a) {
  ax_value y = ax_own_parts(one_in(a)), in[] = {ax_own_parts(a->in[0]), ax_own_parts(a->in[1])};
  a->tangent_out[0] = ax_zero;
  for (int k = 0; k < 2; k++) {
    if (ax_is_zero(a->tangent_in[k])) continue;
    a->tangent_out[0] = ax_add_any(a->tangent_out[0], ax_mul(a->tangent_in[k], balanced(in[k], in[1 - k], y)));
  }
}

/* x^y: dx * y x^(y-1); dy * log(x) x^y, with log(0) taken as 0. */
static void pow_jvp(const ax_jvp_args *a) {
  ax_value x = a->in[0], y = a->in[1], result = one_in(a), left = ax_zero, right = ax_zero;
  if (!ax_is_zero(a->tangent_in[0])) left = ax_mul(a->tangent_in[0], ax_mul(y, ax_pow(x, plus_constant(y, -1))));
  if (!ax_is_zero(a->tangent_in[1])) {
    ax_value safe = ax_select_n(ax_eq(x, ax_full_like(x, 0)), x, ax_full_like(x, 1));
    right = ax_mul(a->tangent_in[1], ax_mul(ax_log(safe), result));
  }
  a->tangent_out[0] = ax_add_any(left, right);
}

/* x rem y is x - n y with a whole number n, and n does not change near x and y. It is (x - x rem y) / y but for rounding. */
static void rem_jvp(const ax_jvp_args *a) {
  ax_value rest = one_in(a), right = ax_zero;
  if (!ax_is_zero(a->tangent_in[1])) {
    ax_value times_in = ax_round(ax_div(ax_sub(a->in[0], rest), a->in[1]));
    right = ax_mul(a->tangent_in[1], ax_neg(times_in));
  }
  a->tangent_out[0] = ax_add_any(a->tangent_in[0], right);
}

/* One operand: tangent times a factor of x and y = f(x). */
void ax_jvp_factor(const ax_jvp_args *a, ax_factor_function factor) {
  ax_value y = one_in(a);
  a->tangent_out[0] = ax_is_zero(a->tangent_in[0]) ? ax_zero : ax_mul(a->tangent_in[0], factor(a->in[0], y));
}

/* 1 at both zeros, as in jax.lax */
static ax_value abs_factor(ax_value x, ax_value y) {
  ax_value zero = ax_full_like(x, 0), one = ax_full_like(y, 1), minus = ax_full_like(y, -1);
  return ax_select_n(ax_ge(x, zero), minus, one);
}
static ax_value itself_factor(ax_value x, ax_value y) { return (void)x, y; }
static ax_value log_factor(ax_value x, ax_value y) { return (void)y, ax_div(ax_full_like(x, 1), x); }
static ax_value log1p_factor(ax_value x, ax_value y) {
  ax_value above = ((void)y, plus_constant(x, 1));
  return ax_div(ax_full_like(x, 1), above);
}
static ax_value expm1_factor(ax_value x, ax_value y) { return (void)x, plus_constant(y, 1); }
/* 1 - y^2, which keeps its digits where y is near 1 */
static ax_value tanh_factor(ax_value x, ax_value y) {
  ax_value above = ((void)x, plus_constant(y, 1)), below = ax_sub(ax_full_like(y, 1), y);
  return ax_mul(above, below);
}
static ax_value logistic_factor(ax_value x, ax_value y) { return (void)x, ax_mul(y, ax_sub(ax_full_like(y, 1), y)); }
static ax_value sqrt_factor(ax_value x, ax_value y) { return (void)x, ax_div(ax_full_like(y, 0.5), y); }
static ax_value rsqrt_factor(ax_value x, ax_value y) { return times_constant(ax_div(y, x), -0.5); }

/* Re(conj(z) / |z| dz) of complex z, which is 0 at 0. */
static void complex_abs_jvp(const ax_jvp_args *a) {
  ax_value y = one_in(a);
  a->tangent_out[0] = ax_zero;
  if (ax_is_zero(a->tangent_in[0])) return;
  ax_value direction = ax_conj(ax_sign(a->in[0]));
  a->tangent_out[0] = ((void)y, ax_real_part(ax_mul(a->tangent_in[0], direction)));
}

static void abs_jvp(const ax_jvp_args *a) {
  if (ax_is_complex(ax_typeof(a->in[0]).dtype)) complex_abs_jvp(a);
  else ax_jvp_factor(a, abs_factor);
}

/* Of complex z, s = z / |z|: i s Im(conj(s) dz) / |z|, the turn. Real numbers have none. */
static void sign_jvp(const ax_jvp_args *a) {
  ax_jvp_zero(a);
  if (ax_is_zero(a->tangent_in[0]) || !ax_is_complex(ax_typeof(a->in[0]).dtype)) return;
  ax_value s = a->out[0], size = ax_abs(a->in[0]), nothing = ax_eq(size, ax_full_like(size, 0));
  ax_value turn = ax_imag_part(ax_mul(ax_conj(s), a->tangent_in[0]));
  turn = ax_div(turn, ax_select_n(nothing, size, ax_full_like(size, 1)));
  a->tangent_out[0] = ax_mul(s, ax_complex(ax_full_like(turn, 0), turn));
}
static void exp_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, itself_factor); }
static void log_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, log_factor); }
static void log1p_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, log1p_factor); }
static void expm1_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, expm1_factor); }
/* Another function of the operand, as accurate. */
static ax_value also(const ax_jvp_args *a, const ax_prim *prim) { return ax_bind1(prim, a->eqn->params, a->in, 1); }
static void sin_jvp(const ax_jvp_args *a) {
  one_in(a);
  a->tangent_out[0] = ax_is_zero(a->tangent_in[0]) ? ax_zero : ax_mul(a->tangent_in[0], also(a, &ax_prim_cos));
}
static void cos_jvp(const ax_jvp_args *a) {
  one_in(a);
  a->tangent_out[0] = ax_is_zero(a->tangent_in[0]) ? ax_zero : ax_mul(a->tangent_in[0], ax_neg(also(a, &ax_prim_sin)));
}
static void tanh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, tanh_factor); }
static void logistic_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, logistic_factor); }
static void sqrt_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, sqrt_factor); }
static void rsqrt_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, rsqrt_factor); }
static void erf_jvp(const ax_jvp_args *a) {
  one_in(a);
  a->tangent_out[0] = ax_zero;
  if (ax_is_zero(a->tangent_in[0])) return;
  ax_value minus = ax_neg(ax_mul(a->in[0], a->in[0])), bell = ax_bind1(&ax_prim_exp, a->eqn->params, &minus, 1);
  a->tangent_out[0] = ax_mul(a->tangent_in[0], times_constant(bell, 2 / sqrt(3.14159265358979323846)));
}

/* n x^(n-1), without an equation for x^1 */
static void integer_pow_jvp(const ax_jvp_args *a) {
  int64_t n = *(const int64_t *)a->eqn->params;
  ax_value x = a->in[0], tangent = a->tangent_in[0];
  one_in(a);
  a->tangent_out[0] = n == 0 ? ax_zero : tangent;
  if (n == 0 || n == 1 || ax_is_zero(tangent)) return;
  ax_value lowered = n == 2 ? x : ax_integer_pow(x, n > INT64_MIN ? n - 1 : n);
  a->tangent_out[0] = ax_mul(tangent, times_constant(lowered, (double)n));
}

/* --- transpose --- */

static void add_transpose(const ax_transpose_args *a) {
  for (int k = 0; k < 2; k++)
    if (a->linear[k]) a->out[k] = a->cotangent[0];
}

static void sub_transpose(const ax_transpose_args *a) {
  if (a->linear[0]) a->out[0] = a->cotangent[0];
  if (a->linear[1]) a->out[1] = ax_neg(a->cotangent[0]);
}

static void neg_transpose(const ax_transpose_args *a) { a->out[0] = ax_neg(a->cotangent[0]); }

static void mul_transpose(const ax_transpose_args *a) {
  if (!ax_linear_in_one(a)) return;
  for (int k = 0; k < 2; k++)
    if (a->linear[k]) a->out[k] = ax_mul(a->cotangent[0], a->in[1 - k]);
}

static void div_transpose(const ax_transpose_args *a) {
  if (a->linear[1])
    ax_absent_transpose(a); /* not linear in what it divides by */
  else
    a->out[0] = ax_div(a->cotangent[0], a->in[1]);
}

/* --- simplify: what holds for every number, NaN, both zeros and integers that wrap --- */

static bool is_float(const ax_simplify_args *args) { return ax_rounds(args->types[args->eqn->out].dtype); }

/* x + -0 = x; x + +0 is not, when x is -0 */
static void add_simplify(const ax_simplify_args *args) {
  for (uint32_t k = 0; k < 2; k++)
    if (ax_simplify_is(args, 1 - k, is_float(args) ? -0.0 : 0)) args->same[0] = args->eqn->in[k];
}

static void sub_simplify(const ax_simplify_args *args) {
  if (ax_simplify_is(args, 1, 0)) args->same[0] = args->eqn->in[0];
}

static void mul_simplify(const ax_simplify_args *args) {
  for (uint32_t k = 0; k < 2; k++)
    if (ax_simplify_is(args, 1 - k, 1)) args->same[0] = args->eqn->in[k];
}

static void div_simplify(const ax_simplify_args *args) {
  if (ax_simplify_is(args, 1, 1)) args->same[0] = args->eqn->in[0];
}

static void neg_simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_neg);
  if (inner != NULL && !(is_float(args) && !ax_has_sign(args->types[args->eqn->out].dtype))) args->same[0] = inner->in[0];
}

/* --- The records --- */

const ax_param ax_function_params[] = {{"accuracy", AX_PARAM_ACCURACY, 0}};
static const ax_param integer_pow_params[] = {{"y", AX_PARAM_I64, 0}};

/* Whether operand k is a truth value that was converted to a number. */
static bool is_mask(const ax_hlo_read_args *args, uint32_t k) {
  const ax_hlo_operation *maker = ax_hlo_maker_of(args, args->op->operands[k]);
  return maker != NULL && ax_hlo_slice_is(maker->name, "stablehlo.convert") && maker->operand_count == 1 &&
         ax_hlo_is_truth(args, maker->operands[0]);
}

/* A mask times x chooses x or 0, as XLA has it: programs rely on what is masked not being NaN where x is infinite. */
static bool is_masked(const ax_hlo_read_args *args) {
  if (!ax_hlo_slice_is(args->op->name, "stablehlo.multiply") || !ax_is_float(args->out_types[0].dtype)) return false;
  for (uint32_t k = 0; k < 2; k++) {
    if (!is_mask(args, k)) continue;
    const ax_value mask = args->in[k], x = args->in[1 - k];
    const ax_type type = ax_typeof(x);
    const ax_value zero = (ax_full)(type.dtype, AX_LIST(type.rank, type.dims), 0);
    args->out[0] = ax_select_n(ax_ne(mask, zero), zero, x);
    return true;
  }
  return false;
}

/* Of booleans, which StableHLO takes for numbers: or and and. */
static ax_status arithmetic_read(const ax_hlo_read_args *args) {
  static const struct {
    const char *op;
    const ax_prim *prim, *of_bool;
  } known[] = {{"stablehlo.add", &ax_prim_add, &ax_prim_or},
               {"stablehlo.multiply", &ax_prim_mul, &ax_prim_and},
               {"stablehlo.maximum", &ax_prim_max, &ax_prim_or},
               {"stablehlo.minimum", &ax_prim_min, &ax_prim_and}};
  size_t i = 0;
  while (!ax_hlo_slice_is(args->op->name, known[i].op)) i++;
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  if (is_masked(args)) return AX_OK;
  args->out[0] = ax_bind1(args->out_types[0].dtype == AX_BOOL ? known[i].of_bool : known[i].prim, NULL, args->in, 2);
  return AX_OK;
}

static const ax_hlo_reader arithmetic_readers[] = {{"stablehlo.add", arithmetic_read},
                                                   {"stablehlo.multiply", arithmetic_read},
                                                   {"stablehlo.maximum", arithmetic_read},
                                                   {"stablehlo.minimum", arithmetic_read},
                                                   {0}};

AX_POINTWISE_RECORD(add, ADD, AX_FORM("add"), 2, AX_LINEAR_ALL, AX_KINDS_SUM, infer_numeric, add_jvp, add_transpose, add_simplify,
                    ax_hlo_by_form, .complex = ax_complex_pointwise, .reads = arithmetic_readers);
AX_POINTWISE_RECORD(sub, SUB, AX_FORM("subtract"), 2, AX_LINEAR_ALL, AX_KINDS_SUM, infer_numeric, sub_jvp, sub_transpose,
                    sub_simplify, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_POINTWISE_RECORD(mul, MUL, AX_FORM("multiply"), 2, AX_LINEAR_ONE, AX_KINDS_SUM, infer_numeric, mul_jvp, mul_transpose,
                    mul_simplify, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_POINTWISE_RECORD(div, DIV, AX_FORM("divide"), 2, AX_LINEAR_FIRST, AX_KINDS_FLOAT_SUM, infer_numeric, div_jvp, div_transpose,
                    div_simplify, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_POINTWISE_RECORD(max, MAX, AX_FORM("maximum"), 2, AX_LINEAR_SOME, AX_KINDS_MAX, infer_numeric, max_jvp, ax_absent_transpose,
                    ax_simplify_nothing, max_hlo, .complex = ax_complex_pointwise);
AX_POINTWISE_RECORD(min, MIN, AX_FORM("minimum"), 2, AX_LINEAR_SOME, AX_KINDS_MIN, infer_numeric, max_jvp, ax_absent_transpose,
                    ax_simplify_nothing, max_hlo, .complex = ax_complex_pointwise);
AX_POINTWISE_HLO(pow, POW, AX_FORM("power"), 2, ax_infer_float, pow_jvp, ax_absent_transpose, ax_hlo_by_form,
                 .complex = ax_complex_pointwise, .rewrite = ax_rewrite_power);
AX_POINTWISE(rem, REM, AX_FORM("remainder"), 2, infer_numeric, rem_jvp, ax_absent_transpose);
AX_POINTWISE_RECORD(neg, NEG, AX_FORM("negate"), 1, AX_LINEAR_ALL, AX_KINDS_SUM, infer_numeric, ax_jvp_linear, neg_transpose,
                    neg_simplify, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_POINTWISE_HLO(abs, ABS, AX_FORM("abs"), 1, infer_abs, abs_jvp, ax_absent_transpose, abs_hlo, .complex = ax_complex_pointwise);
AX_POINTWISE_HLO(sign, SIGN, AX_FORM("sign"), 1, infer_numeric, sign_jvp, ax_absent_transpose, sign_hlo,
                 .complex = ax_complex_pointwise);
AX_POINTWISE(floor, FLOOR, AX_FORM("floor"), 1, ax_infer_float, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(ceil, CEIL, AX_FORM("ceil"), 1, ax_infer_float, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(round_nearest_even, ROUND_NEAREST_EVEN, AX_FORM("round_nearest_even"), 1, ax_infer_float, ax_jvp_zero,
             ax_absent_transpose);
AX_FUNCTION(exp, EXP, AX_FORM("exponential"), exp_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(log, LOG, AX_FORM("log"), log_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(log1p, LOG1P, AX_FORM("log_plus_one"), log1p_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(expm1, EXPM1, AX_FORM("exponential_minus_one"), expm1_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(sin, SIN, AX_FORM("sine"), sin_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(cos, COS, AX_FORM("cosine"), cos_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(tanh, TANH, AX_FORM("tanh"), tanh_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(logistic, LOGISTIC, AX_FORM("logistic"), logistic_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(sqrt, SQRT, AX_FORM("sqrt"), sqrt_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(rsqrt, RSQRT, AX_FORM("rsqrt"), rsqrt_jvp, ax_function_hlo, .complex = ax_complex_pointwise);
/* Read by its form; written as other operations, since XLA has none for it in all dtypes. */
AX_FUNCTION(erf, ERF, (&(const ax_hlo_form){.op = "chlo.erf"}), erf_jvp, erf_hlo);

const ax_prim ax_prim_integer_pow = {
    .name = "integer_pow", .kind = AX_LOCAL, .cheap = true, .scalar = AX_SCALAR_INTEGER_POW, .in_count = 1, .out_count = 1,
    .params = integer_pow_params, .param_count = 1, .params_bytes = sizeof(int64_t),
    .infer = infer_integer_pow, .spread = ax_spread_local, .eval = ax_eval_pointwise, .differs = ax_differs_union,
    .jvp = integer_pow_jvp, .linearize = integer_pow_jvp, .transpose = ax_absent_transpose,
    .batch = ax_batch_pointwise,
    .simplify = ax_simplify_nothing, .shard = ax_shard_pointwise, .lower = ax_lower_pointwise, .complex = ax_complex_pointwise,
    .hlo = integer_pow_hlo,
};

/* --- The functions --- */

static ax_value unary(const ax_prim *prim, ax_value x) { return ax_bind1(prim, NULL, &x, 1); }
static ax_value function(const ax_prim *prim, ax_value x) {
  const int64_t accuracy = AX_ACCURACY_DEFAULT;
  return ax_bind1(prim, &accuracy, &x, 1);
}

ax_value ax_bind_binary(const ax_prim *prim, ax_value a, ax_value b) {
  ax_value in[] = {a, b};
  if (prim->linear == AX_LINEAR_ALL) ax_give_parts(prim->name, in);
  ax_give_dtype(prim->name, in, 2);
  if (!ax_broadcast_together(in, 2)) {
    ax_type types[] = {ax_typeof(in[0]), ax_typeof(in[1])};
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s %s %s: the shapes do not broadcast to one", prim->name, ax_operand_string(&types[0]),
                     ax_operand_string(&types[1])));
    return ax_poison;
  }
  return ax_bind1(prim, NULL, in, 2);
}

ax_value ax_add(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_add, a, b); }
ax_value ax_sub(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_sub, a, b); }
ax_value ax_mul(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_mul, a, b); }
ax_value ax_div(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_div, a, b); }
ax_value ax_max(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_max, a, b); }
ax_value ax_min(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_min, a, b); }
ax_value ax_pow(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_pow, a, b); }
ax_value ax_rem(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_rem, a, b); }
ax_value ax_neg(ax_value x) { return unary(&ax_prim_neg, x); }
ax_value ax_abs(ax_value x) { return unary(&ax_prim_abs, x); }
ax_value ax_sign(ax_value x) { return unary(&ax_prim_sign, x); }
ax_value ax_floor(ax_value x) { return unary(&ax_prim_floor, x); }
ax_value ax_ceil(ax_value x) { return unary(&ax_prim_ceil, x); }
ax_value ax_round(ax_value x) { return unary(&ax_prim_round_nearest_even, x); }
ax_value ax_exp(ax_value x) { return function(&ax_prim_exp, x); }
ax_value ax_log(ax_value x) { return function(&ax_prim_log, x); }
ax_value ax_log1p(ax_value x) { return function(&ax_prim_log1p, x); }
ax_value ax_expm1(ax_value x) { return function(&ax_prim_expm1, x); }
ax_value ax_sin(ax_value x) { return function(&ax_prim_sin, x); }
ax_value ax_cos(ax_value x) { return function(&ax_prim_cos, x); }
ax_value ax_tanh(ax_value x) { return function(&ax_prim_tanh, x); }
ax_value ax_logistic(ax_value x) { return function(&ax_prim_logistic, x); }
ax_value ax_sqrt(ax_value x) { return function(&ax_prim_sqrt, x); }
ax_value ax_rsqrt(ax_value x) { return function(&ax_prim_rsqrt, x); }
ax_value ax_erf(ax_value x) { return function(&ax_prim_erf, x); }
ax_value ax_integer_pow(ax_value x, int64_t exponent) { return ax_bind1(&ax_prim_integer_pow, &exponent, &x, 1); }

/* The equation in progress that gives it; NULL: it is an operand of the trace. */
static ax_eqn *made_by(ax_builder *builder, uint32_t id) {
  uint32_t low = 0, high = builder->eqn_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (builder->eqns[middle].out + builder->eqns[middle].out_count <= id) low = middle + 1;
    else high = middle;
  }
  return low < builder->eqn_count && builder->eqns[low].out <= id ? &builder->eqns[low] : NULL;
}

static ax_status make_accurate(ax_builder *builder, ax_value y, uint32_t id, int64_t ulps) {
  ax_eqn *eqn = made_by(builder, id);
  if (eqn == NULL || eqn->prim->params != ax_function_params)
    return ax_error(AX_INVALID_ARGUMENT,
                    "accurate: its operand is %s, and no result of exp, tanh or another function that has an accuracy",
                    eqn == NULL ? "no equation's result" : eqn->prim->name);
  AX_TRY(accuracy_check(eqn->prim, ax_typeof(y).dtype, ulps));
  const void *params = ax_arena_copy(&builder->arena, &ulps, sizeof ulps);
  if (params == NULL) return ax_out_of_memory(sizeof ulps);
  eqn->params = params;
  return AX_OK;
}

ax_value ax_accurate(ax_value y, int64_t ulps) {
  uint32_t id = ax_value_id(y);
  if (id == AX_NONE) return ax_poison;
  ax_status status = make_accurate(ax_builder_current(), y, id, ulps);
  if (status == AX_OK) return y;
  ax_fail(status);
  return ax_poison;
}
