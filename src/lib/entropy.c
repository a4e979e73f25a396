/* Functions made of logarithms, as jax.scipy.special has them: products with 0 are 0, and so are their derivatives' parts. */
#include <math.h>

#include "axle/special.h"
#include "axle/transform.h"
#include "lib/checked.h"

/* Two operands of one float dtype and one shape. */
static bool paired(const char *name, ax_value *pair) {
  ax_type types[2];
  ax_give_dtype(name, pair, 2);
  if (!ax_operands(name, 2, pair, types) || !ax_float_operand(name, pair[0])) return false;
  if (!ax_broadcast_together(pair, 2)) return ax_reject_as(name, "the operands have no common shape"), false;
  return !ax_failed();
}

static ax_value with_rule(ax_function f, ax_function rule, const ax_value *in, uint32_t count) {
  ax_value made = ax_poison;
  (ax_custom_jvp)(AX_FN(f, count, 1), AX_FN(rule, 2 * count, 2), count, in, 1, &made);
  return made;
}

static ax_value unless_zero(ax_value x, ax_value y) { return ax_where(ax_ne(x, ax_real(0)), ax_mul(x, y), ax_real(0)); }

static AX_BODY(xlogy) { out[0] = unless_zero(in[0], ax_log(in[1])); }
static AX_BODY(xlogy_rule) {
  xlogy(in, out, NULL);
  out[1] = ax_add(ax_mul(in[2], ax_log(in[1])), ax_mul(in[3], ax_div(in[0], in[1])));
}
ax_value(ax_xlogy)(ax_value x, ax_value y) {
  ax_value in[] = {x, y};
  return paired("xlogy", in) ? with_rule(xlogy, xlogy_rule, in, 2) : ax_poison;
}

static AX_BODY(xlog1py) { out[0] = unless_zero(in[0], ax_log1p(in[1])); }
static AX_BODY(xlog1py_rule) {
  xlog1py(in, out, NULL);
  out[1] = ax_add(ax_mul(in[2], ax_log1p(in[1])), ax_mul(in[3], ax_div(in[0], ax_add(in[1], ax_real(1)))));
}
ax_value(ax_xlog1py)(ax_value x, ax_value y) {
  ax_value in[] = {x, y};
  return paired("xlog1py", in) ? with_rule(xlog1py, xlog1py_rule, in, 2) : ax_poison;
}

static AX_BODY(entr) {
  ax_value made = ax_neg(unless_zero(in[0], ax_log(in[0])));
  out[0] = ax_where(ax_lt(in[0], ax_real(0)), ax_real(-INFINITY), made);
}
static AX_BODY(entr_rule) {
  entr(in, out, NULL);
  ax_value slope = ax_sub(ax_real(-1), ax_log(in[0]));
  out[1] = ax_mul(in[1], ax_where(ax_lt(in[0], ax_real(0)), ax_real(0), slope));
}
ax_value ax_entr(ax_value x) { return ax_float_operand("entr", x) ? with_rule(entr, entr_rule, &x, 1) : ax_poison; }

static AX_BODY(logit) { out[0] = ax_log(ax_div(in[0], ax_sub(ax_real(1), in[0]))); }
static AX_BODY(logit_rule) {
  logit(in, out, NULL);
  out[1] = ax_div(in[1], ax_mul(in[0], ax_sub(ax_real(1), in[0])));
}
ax_value ax_logit(ax_value x) { return ax_float_operand("logit", x) ? with_rule(logit, logit_rule, &x, 1) : ax_poison; }

ax_value(ax_rel_entr)(ax_value p, ax_value q) {
  ax_value in[] = {p, q};
  if (!paired("rel_entr", in)) return ax_poison;
  const ax_value both = ax_and(ax_gt(in[0], ax_real(0)), ax_gt(in[1], ax_real(0)));
  const ax_value none = ax_and(ax_eq(in[0], ax_real(0)), ax_ge(in[1], ax_real(0)));
  const ax_value safe_p = ax_where(both, in[0], ax_real(1)), safe_q = ax_where(both, in[1], ax_real(1));
  const ax_value made = ax_mul(safe_p, ax_sub(ax_log(safe_p), ax_log(safe_q)));
  return ax_where(none, ax_real(0), ax_where(both, made, ax_real(INFINITY)));
}

ax_value(ax_kl_div)(ax_value p, ax_value q) {
  ax_value in[] = {p, q};
  if (!paired("kl_div", in)) return ax_poison;
  return ax_add(ax_sub((ax_rel_entr)(in[0], in[1]), in[0]), in[1]);
}

ax_value ax_ndtr(ax_value x) {
  if (!ax_float_operand("ndtr", x)) return ax_poison;
  const ax_value w = ax_mul(x, ax_real(0.70710678118654752440)), z = ax_abs(w);
  const ax_value outside = ax_where(ax_gt(w, ax_real(0)), ax_sub(ax_real(2), ax_erfc(z)), ax_erfc(z));
  return ax_mul(ax_where(ax_lt(z, ax_real(0.70710678118654752440)), ax_add(ax_erf(w), ax_real(1)), outside), ax_real(0.5));
}

/* Sums and differences of large logarithms, in f64. */
ax_value(ax_betaln)(ax_value a, ax_value b) {
  ax_value in[] = {a, b};
  if (!paired("betaln", in)) return ax_poison;
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const ax_value p = ax_convert_element_type(in[0], AX_F64), q = ax_convert_element_type(in[1], AX_F64);
  return ax_convert_element_type(ax_sub(ax_add(ax_lgamma(p), ax_lgamma(q)), ax_lgamma(ax_add(p, q))), dtype);
}
