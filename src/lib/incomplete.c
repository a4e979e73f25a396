/* Incomplete gamma and beta functions, in f64 on whole arrays: a loop goes on until each element has converged. Elements of the other
   branch are given operands with which theirs ends at once. */
#include <math.h>

#include "axle/special.h"
#include "axle/transform.h"
#include "lib/checked.h"
#include "ops/large_gamma.h"

enum { STEPS = 1000000 }; /* some 20 times the square root of the parameters. Gamma's, where they are large, have an expansion */
static const double EPSILON = 0x1p-53, TINY = 1e-300;

typedef struct operands {
  ax_value a, b, x; /* b: of the beta function alone */
} operands;

static ax_value number(double value) { return (ax_full)(AX_F64, 0, NULL, value); }
static ax_value any(ax_value x) { return ax_reduce_or(x, AX_ALL_DIMS, false); }
static ax_value not_tiny(ax_value x) { return ax_where(ax_lt(ax_abs(x), ax_real(TINY)), ax_real(TINY), x); }
static ax_value plus(ax_value x, double value) { return ax_add(x, ax_real(value)); }

/* --- The series s = 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + .. --- */

enum { SERIES_A, SERIES_TERM, SERIES_SUM, SERIES_STEP, SERIES_COUNT };

static AX_BODY(series_goes_on) {
  const ax_value more = ax_gt(ax_abs(in[SERIES_TERM]), ax_mul(ax_abs(in[SERIES_SUM]), ax_real(EPSILON / 1024)));
  out[0] = ax_and(any(more), ax_lt(in[SERIES_STEP], ax_integer(STEPS)));
}

static AX_BODY(series_step) {
  const operands *o = context;
  out[SERIES_A] = plus(in[SERIES_A], 1);
  out[SERIES_TERM] = ax_div(ax_mul(in[SERIES_TERM], o->x), out[SERIES_A]);
  out[SERIES_SUM] = ax_add(in[SERIES_SUM], out[SERIES_TERM]);
  out[SERIES_STEP] = ax_add(in[SERIES_STEP], ax_integer(1));
}

static ax_value series(operands o) {
  const ax_value one = ax_full_like(o.a, 1);
  const ax_value start[] = {o.a, one, one, (ax_full)(AX_S32, 0, NULL, 0)};
  ax_value made[SERIES_COUNT] = {ax_poison, ax_poison, ax_poison, ax_poison};
  (ax_while)(AX_FN(series_goes_on, SERIES_COUNT, 1), AX_CLOSURE(series_step, SERIES_COUNT, SERIES_COUNT, &o), SERIES_COUNT, start,
             SERIES_COUNT, made);
  return made[SERIES_SUM];
}

/* --- Continued fractions from the front (Lentz): numerators and denominators by their ratios to the ones before. --- */

enum { FRACTION_C, FRACTION_D, FRACTION_VALUE, FRACTION_CHANGE, FRACTION_STEP, FRACTION_COUNT };

static AX_BODY(fraction_goes_on) {
  const ax_value more = ax_gt(ax_abs(plus(in[FRACTION_CHANGE], -1)), ax_real(2 * EPSILON));
  out[0] = ax_and(any(more), ax_lt(in[FRACTION_STEP], ax_integer(STEPS)));
}

/* One more part, numerator / (denominator + ..). */
static void extend(ax_value numerator, ax_value denominator, ax_value *state) {
  state[FRACTION_D] = ax_div(ax_real(1), not_tiny(ax_add(ax_mul(numerator, state[FRACTION_D]), denominator)));
  state[FRACTION_C] = not_tiny(ax_add(denominator, ax_div(numerator, state[FRACTION_C])));
  state[FRACTION_CHANGE] = ax_mul(state[FRACTION_C], state[FRACTION_D]);
  state[FRACTION_VALUE] = ax_mul(state[FRACTION_VALUE], state[FRACTION_CHANGE]);
}

static ax_value run(ax_fn step, const ax_value *start) {
  ax_value made[FRACTION_COUNT];
  for (int i = 0; i < FRACTION_COUNT; i++) made[i] = ax_poison;
  (ax_while)(AX_FN(fraction_goes_on, FRACTION_COUNT, 1), step, FRACTION_COUNT, start, FRACTION_COUNT, made);
  return made[FRACTION_VALUE];
}

/* 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ..))) */
static AX_BODY(gamma_step) {
  const operands *o = context;
  ax_value state[FRACTION_COUNT] = {in[0], in[1], in[2], in[3], ax_add(in[4], ax_integer(1))};
  const ax_value i = ax_convert_element_type(state[FRACTION_STEP], AX_F64);
  extend(ax_mul(i, ax_sub(o->a, i)), ax_add(plus(ax_sub(o->x, o->a), 1), ax_mul(i, ax_real(2))), state);
  for (int k = 0; k < FRACTION_COUNT; k++) out[k] = state[k];
}

static ax_value gamma_fraction(operands o) {
  const ax_value d = ax_div(ax_real(1), not_tiny(plus(ax_sub(o.x, o.a), 1)));
  const ax_value start[] = {ax_full_like(o.x, 1 / TINY), d, d, ax_full_like(o.x, 0), (ax_full)(AX_S32, 0, NULL, 0)};
  return run(AX_CLOSURE(gamma_step, FRACTION_COUNT, FRACTION_COUNT, &o), start);
}

/* --- The gamma function's --- */

/* below: the share below x, else the share above. */
static ax_value gamma_share(ax_value a, ax_value x, bool below) {
  const ax_value valid = ax_and(ax_gt(a, ax_real(0)), ax_gt(x, ax_real(0))), infinite = ax_eq(x, ax_real(INFINITY));
  const ax_value sound = ax_and(valid, ax_and(ax_lt(x, ax_real(INFINITY)), ax_lt(a, ax_real(INFINITY))));
  const ax_value large = ax_and(sound, ax_large_gamma_has(a, x)), inside = ax_and(sound, ax_not(large));
  const ax_value small = ax_or(ax_le(x, ax_real(1)), ax_le(x, a)), by_series = ax_and(inside, small);
  const ax_value by_fraction = ax_and(inside, ax_not(small)), safe_a = ax_where(inside, a, ax_real(1)),
                 safe_x = ax_where(inside, x, ax_real(1));
  const ax_value weight = ax_exp(ax_sub(ax_sub(ax_mul(safe_a, ax_log(safe_x)), safe_x), ax_lgamma(safe_a)));
  const ax_value lower = ax_mul(
      ax_div(weight, safe_a), series((operands){.a = ax_where(by_series, a, ax_real(1)), .x = ax_where(by_series, x, ax_real(0))}));
  const ax_value upper = ax_mul(
      weight, gamma_fraction((operands){.a = ax_where(by_fraction, a, ax_real(1)), .x = ax_where(by_fraction, x, ax_real(1))}));
  const ax_value one = number(1);
  const ax_value share = below ? ax_where(small, lower, ax_sub(one, upper)) : ax_where(small, ax_sub(one, lower), upper);
  const ax_value nan = ax_or(ax_ne(a, a), ax_ne(x, x));
  /* All of gamma(0) numbers are 0. */
  const ax_value full = number(below ? 1 : 0), empty = number(below ? 0 : 1), positive = ax_gt(a, ax_real(0));
  const ax_value all = ax_or(ax_and(infinite, positive), ax_and(ax_eq(a, ax_real(0)), ax_gt(x, ax_real(0))));
  const ax_value edge = ax_where(all, full, ax_where(ax_and(ax_eq(x, ax_real(0)), positive), empty, ax_real(NAN)));
  const ax_value of_sound = ax_where(large, ax_large_gamma_share(a, x, below), share);
  return ax_where(nan, ax_real(NAN), ax_where(sound, of_sound, edge));
}

static AX_BODY(igamma_value) { out[0] = gamma_share(in[0], in[1], true); }
static AX_BODY(igammac_value) { out[0] = gamma_share(in[0], in[1], false); }

/* The derivative by operand `which` of a plain function of count operands, by its loops' derivatives; NaN where the function is. */
static ax_value slope(ax_fn f, uint32_t count, const ax_value *in, uint32_t which) {
  const ax_value tangent = ax_full_like(in[which], 1);
  ax_value value = ax_poison, made = ax_poison;
  (ax_jvp)(f, AX_RANGE(which, 1), count, in, 1, &tangent, 1, &value, 1, &made);
  return ax_where(ax_ne(value, value), ax_real(NAN), made);
}

static ax_value gamma_density(ax_value a, ax_value x) {
  const ax_value by_logarithms = ax_exp(ax_sub(ax_sub(ax_mul(plus(a, -1), ax_log(x)), x), ax_lgamma(a)));
  return ax_where(ax_large_gamma_has(a, x), ax_large_gamma_density(a, x), by_logarithms);
}

static ax_value gamma_tangent(const ax_value *in) {
  return ax_add(ax_mul(slope(AX_FN(igamma_value, 2, 1), 2, in, 0), in[2]), ax_mul(gamma_density(in[0], in[1]), in[3]));
}

static AX_BODY(igamma_rule) {
  igamma_value(in, out, NULL);
  out[1] = gamma_tangent(in);
}
static AX_BODY(igammac_rule) {
  igammac_value(in, out, NULL);
  out[1] = ax_neg(gamma_tangent(in));
}

/* --- The beta function's --- */

static AX_BODY(beta_step) {
  const operands *o = context;
  ax_value state[FRACTION_COUNT] = {in[0], in[1], in[2], in[3], ax_add(in[4], ax_integer(1))};
  const ax_value m = ax_convert_element_type(state[FRACTION_STEP], AX_F64), twice = ax_add(o->a, ax_mul(m, ax_real(2))),
                 one = number(1);
  const ax_value even = ax_div(ax_mul(ax_mul(m, ax_sub(o->b, m)), o->x), ax_mul(plus(twice, -1), twice));
  const ax_value odd = ax_div(ax_mul(ax_mul(ax_add(o->a, m), ax_add(ax_add(o->a, o->b), m)), o->x), ax_mul(twice, plus(twice, 1)));
  extend(even, one, state);
  extend(ax_neg(odd), one, state);
  for (int k = 0; k < FRACTION_COUNT; k++) out[k] = state[k];
}

static ax_value beta_fraction(operands o) {
  const ax_value first = ax_div(ax_mul(ax_add(o.a, o.b), o.x), plus(o.a, 1));
  const ax_value d = ax_div(ax_real(1), not_tiny(ax_sub(ax_real(1), first)));
  const ax_value start[] = {ax_full_like(o.x, 1), d, d, ax_full_like(o.x, 0), (ax_full)(AX_S32, 0, NULL, 0)};
  return run(AX_CLOSURE(beta_step, FRACTION_COUNT, FRACTION_COUNT, &o), start);
}

static ax_value log_beta(ax_value a, ax_value b) { return ax_sub(ax_add(ax_lgamma(a), ax_lgamma(b)), ax_lgamma(ax_add(a, b))); }

/* The fraction converges fast for x below the mean; above it the share is one less that of 1 - x with a and b exchanged. */
static AX_BODY(betainc_value) {
  const ax_value a = in[0], b = in[1], x = in[2];
  const ax_value valid =
      ax_and(ax_and(ax_gt(a, ax_real(0)), ax_gt(b, ax_real(0))), ax_and(ax_ge(x, ax_real(0)), ax_le(x, ax_real(1))));
  const ax_value inside = ax_and(valid, ax_and(ax_gt(x, ax_real(0)), ax_lt(x, ax_real(1))));
  const ax_value p = ax_where(inside, a, ax_real(1)), q = ax_where(inside, b, ax_real(1)), y = ax_where(inside, x, ax_real(0.25));
  const ax_value other = ax_sub(ax_real(1), y), turn = ax_gt(y, ax_div(plus(p, 1), plus(ax_add(p, q), 2)));
  const operands o = {ax_where(turn, q, p), ax_where(turn, p, q), ax_where(turn, other, y)};
  const ax_value log_weight = ax_sub(ax_add(ax_mul(p, ax_log(y)), ax_mul(q, ax_log1p(ax_neg(y)))), log_beta(p, q));
  const ax_value share = ax_mul(ax_div(ax_exp(log_weight), o.a), beta_fraction(o));
  const ax_value sound = ax_and(ax_ge(x, ax_real(0)), ax_le(x, ax_real(1)));
  const ax_value all = ax_and(sound, ax_and(ax_eq(a, ax_real(0)), ax_gt(b, ax_real(0)))),
                 none = ax_and(sound, ax_and(ax_eq(b, ax_real(0)), ax_gt(a, ax_real(0))));
  const ax_value edge = ax_where(all, number(1), ax_where(none, ax_real(0), ax_where(valid, x, ax_real(NAN))));
  out[0] = ax_where(inside, ax_where(turn, ax_sub(ax_real(1), share), share), edge);
}

static AX_BODY(betainc_rule) {
  const ax_value a = in[0], b = in[1], x = in[2];
  const ax_fn f = AX_FN(betainc_value, 3, 1);
  const ax_value density =
      ax_exp(ax_sub(ax_add(ax_mul(plus(a, -1), ax_log(x)), ax_mul(plus(b, -1), ax_log1p(ax_neg(x)))), log_beta(a, b)));
  betainc_value(in, out, NULL);
  out[1] = ax_add(ax_add(ax_mul(slope(f, 3, in, 0), in[3]), ax_mul(slope(f, 3, in, 1), in[4])), ax_mul(density, in[5]));
}

/* --- The functions --- */

/* Operands of one float dtype and one shape, in f64. *dtype: theirs. */
static bool widened(const char *name, ax_value *values, uint32_t count, ax_dtype *dtype) {
  ax_type types[3];
  ax_give_dtype(name, values, count);
  if (!ax_operands(name, count, values, types) || !ax_float_operand(name, values[0])) return false;
  *dtype = types[0].dtype;
  if (!ax_broadcast_together(values, count)) return ax_reject_as(name, "the operands have no common shape"), false;
  for (uint32_t i = 0; i < count; i++) values[i] = ax_convert_element_type(values[i], AX_F64);
  return !ax_failed();
}

static ax_value by_rule(const char *name, ax_function f, ax_function rule, ax_value *values, uint32_t count) {
  ax_dtype dtype;
  ax_value made = ax_poison;
  if (!widened(name, values, count, &dtype)) return ax_poison;
  (ax_custom_jvp)(AX_FN(f, count, 1), AX_FN(rule, 2 * count, 2), count, values, 1, &made);
  return ax_convert_element_type(made, dtype);
}

ax_value(ax_igamma)(ax_value a, ax_value x) { return by_rule("igamma", igamma_value, igamma_rule, (ax_value[]){a, x}, 2); }
ax_value(ax_igammac)(ax_value a, ax_value x) { return by_rule("igammac", igammac_value, igammac_rule, (ax_value[]){a, x}, 2); }
ax_value(ax_betainc)(ax_value a, ax_value b, ax_value x) {
  return by_rule("betainc", betainc_value, betainc_rule, (ax_value[]){a, b, x}, 3);
}

ax_value(ax_igamma_grad_a)(ax_value a, ax_value x) {
  ax_value in[] = {a, x};
  ax_dtype dtype;
  if (!widened("igamma_grad_a", in, 2, &dtype)) return ax_poison;
  return ax_convert_element_type(slope(AX_FN(igamma_value, 2, 1), 2, in, 0), dtype);
}
