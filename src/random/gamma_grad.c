/* The share of gamma(a) numbers below x is P(a, x), the regularised incomplete gamma function. Where a draw keeps its share, x moves
   with a by -(dP/da) / p(x), p the density. P = s(a, x) x^a e^-x / gamma(a + 1), s a power series, for x up to 1 or a; above,
   1 - P = f(a, x) x^a e^-x / gamma(a), f a continued fraction. Both are summed together with their derivatives by a until these have
   all digits, for all elements at once. */
#include <math.h>

#include "axle/special.h"
#include "ops/large_gamma.h"
#include "prim/composite.h"
#include "random/rejection.h"

static const double EPSILON = 0x1p-52;
enum { STEPS = 2000 }; /* large parameters would take more, and have an expansion */

typedef struct operands {
  ax_value a, x;
} operands;

/* --- The series: sum of x^k / ((a + 1) .. (a + k)) --- */

enum { SERIES_R, SERIES_TERM, SERIES_SUM, SERIES_TERM_GRAD, SERIES_GRAD, SERIES_STEP, SERIES_COUNT };

static AX_BODY(series_goes_on) {
  const ax_value some = ax_draw_any(ax_gt(ax_abs(in[SERIES_TERM_GRAD]), ax_mul(ax_abs(in[SERIES_GRAD]), ax_real(EPSILON))));
  out[0] = ax_and(some, ax_lt(in[SERIES_STEP], ax_integer(STEPS)));
}

static AX_BODY(series_step) {
  const operands *o = context;
  const ax_value r = ax_add(in[SERIES_R], ax_real(1)), by = ax_div(o->x, r), term = in[SERIES_TERM];
  out[SERIES_R] = r;
  out[SERIES_TERM_GRAD] = ax_sub(ax_mul(in[SERIES_TERM_GRAD], by), ax_div(ax_mul(term, by), r));
  out[SERIES_GRAD] = ax_add(in[SERIES_GRAD], out[SERIES_TERM_GRAD]);
  out[SERIES_TERM] = ax_mul(term, by);
  out[SERIES_SUM] = ax_add(in[SERIES_SUM], out[SERIES_TERM]);
  out[SERIES_STEP] = ax_add(in[SERIES_STEP], ax_integer(1));
}

static ax_value by_series(operands *o) {
  const ax_value zero = ax_full_like(o->a, 0), one = ax_full_like(o->a, 1), log_x = ax_log(o->x);
  ax_value s[SERIES_COUNT] = {o->a, one, one, zero, zero, ax_full(AX_S32, AX_DIMS(), 0)}, first[SERIES_COUNT];
  series_step(s, first, o);
  ax_while(AX_FN(series_goes_on, SERIES_COUNT, 1), AX_CLOSURE(series_step, SERIES_COUNT, SERIES_COUNT, o), first, s);
  const ax_value slope = ax_sub(log_x, ax_digamma(ax_add(o->a, one)));
  return ax_neg(ax_div(ax_mul(ax_add(s[SERIES_GRAD], ax_mul(s[SERIES_SUM], slope)), o->x), o->a));
}

/* --- The continued fraction, from the front: numerators p and denominators q of its last two parts, and their derivatives --- */

enum { P1, P2, Q1, Q2, DP1, DP2, DQ1, DQ2, STEP, VALUE, GRAD, MISS, FRACTION_COUNT };

static AX_BODY(fraction_goes_on) {
  out[0] = ax_and(ax_draw_any(ax_gt(in[MISS], ax_real(EPSILON))), ax_lt(in[STEP], ax_real(STEPS)));
}

static AX_BODY(fraction_step) {
  const operands *o = context;
  const ax_value c = ax_add(in[STEP], ax_real(1)), y = ax_add(ax_sub(ax_real(1), o->a), c), yc = ax_mul(y, c);
  const ax_value z = ax_add(ax_add(o->x, y), ax_add(c, ax_real(1)));
  const ax_value p = ax_sub(ax_mul(in[P1], z), ax_mul(in[P2], yc)), q = ax_sub(ax_mul(in[Q1], z), ax_mul(in[Q2], yc));
  const ax_value dp = ax_add(ax_sub(ax_sub(ax_mul(in[DP1], z), in[P1]), ax_mul(in[DP2], yc)), ax_mul(in[P2], c));
  const ax_value dq = ax_add(ax_sub(ax_sub(ax_mul(in[DQ1], z), in[Q1]), ax_mul(in[DQ2], yc)), ax_mul(in[Q2], c));
  const ax_value value = ax_div(p, q), grad = ax_div(ax_sub(dp, ax_mul(value, dq)), q);
  const ax_value scale = ax_where(ax_gt(ax_abs(p), ax_real(1 / EPSILON)), ax_full_like(p, EPSILON), ax_real(1));
  const ax_value now[] = {p, in[P1], q, in[Q1], dp, in[DP1], dq, in[DQ1]};
  const ax_value going = ax_gt(in[MISS], ax_real(EPSILON)); /* a lane that has all its digits stays as it is */
  const ax_value miss = ax_max(ax_abs(ax_div(ax_sub(in[VALUE], value), value)), ax_abs(ax_sub(grad, in[GRAD])));
  for (int i = P1; i <= DQ2; i++) out[i] = ax_mul(now[i], scale);
  out[STEP] = c;
  out[VALUE] = ax_where(going, value, in[VALUE]), out[GRAD] = ax_where(going, grad, in[GRAD]), out[MISS] = ax_where(going, miss, in[MISS]);
}

static ax_value by_fraction(operands *o) {
  const ax_value zero = ax_full_like(o->a, 0), one = ax_full_like(o->a, 1), minus = ax_neg(o->x);
  const ax_value q = ax_mul(ax_add(ax_sub(ax_add(o->x, one), o->a), one), o->x), p = ax_add(o->x, one), value = ax_div(p, q);
  ax_value s[FRACTION_COUNT] = {p, one, q, o->x, zero, zero, minus, zero, ax_full(AX_F64, AX_DIMS(), 0), value, ax_div(ax_mul(value, o->x), q), one};
  ax_while(AX_FN(fraction_goes_on, FRACTION_COUNT, 1), AX_CLOSURE(fraction_step, FRACTION_COUNT, FRACTION_COUNT, o), s, s);
  const ax_value slope = ax_sub(ax_log(o->x), ax_digamma(o->a));
  return ax_mul(ax_add(s[GRAD], ax_mul(s[VALUE], slope)), o->x);
}

static ax_value of_f64(ax_value a, ax_value x) {
  const ax_value low = ax_or(ax_le(x, ax_real(1)), ax_le(x, a)), sound = ax_and(ax_gt(a, ax_real(0)), ax_gt(x, ax_real(0)));
  const ax_value large = ax_large_gamma_has(a, x), other = ax_and(sound, ax_not(large));
  const ax_value series = ax_and(low, other), fraction = ax_and(ax_not(low), other);
  operands near = {ax_where(series, a, ax_real(1)), ax_where(series, x, ax_real(0.5))};
  operands far = {ax_where(fraction, a, ax_real(1)), ax_where(fraction, x, ax_real(2))};
  const ax_value of_sound = ax_where(large, ax_large_gamma_move(a, x), ax_where(low, by_series(&near), by_fraction(&far)));
  return ax_where(sound, of_sound, ax_where(ax_eq(x, ax_real(0)), ax_full_like(x, 0), ax_real(NAN)));
}

ax_value (ax_random_gamma_grad)(ax_value a, ax_value x) {
  static const char name[] = "random_gamma_grad";
  ax_value in[] = {a, x};
  ax_type types[2];
  ax_give_dtype(name, in, 2);
  if (!ax_operands(name, 2, in, types)) return ax_poison;
  if (!ax_is_float(types[0].dtype)) return ax_reject_as(name, "the operands are %s; they must be floats", ax_operand_string(&types[0]));
  if (!ax_broadcast_together(in, 2)) return ax_reject_as(name, "the operands have no common shape");
  return ax_convert_element_type(of_f64(ax_convert_element_type(in[0], AX_F64), ax_convert_element_type(in[1], AX_F64)), types[0].dtype);
}
