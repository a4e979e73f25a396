/* Gamma draws, and what is made of them.

   A simple method for generating gamma variables, G. Marsaglia and W. W. Tsang (2000): d v^3 with v = 1 + c x, x normal, is accepted or
   drawn again. Each element has its own key, so its draws do not depend on how often others are drawn again. Below 1 the parameter is
   raised by one, and the draw multiplied by a uniform number to the power 1 / a. */
#include <math.h>

#include "axle/special.h"
#include "axle/transform.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "random/rejection.h"

/* --- The draw of each key --- */

typedef struct gamma {
  ax_draw draw; /* of shape (): one draw of each key */
  ax_value c, d;
} gamma_of;

static ax_draw with_key(const gamma_of *g, ax_value keys) {
  ax_draw made = g->draw;
  made.key = keys;
  return made;
}

/* keys, x, v: x is drawn again where v is not positive. */
static AX_BODY(some_not_positive) { out[0] = ax_draw_any(ax_le(in[2], ax_real(0))); }

static AX_BODY(next_normal) {
  const gamma_of *g = context;
  const ax_draw of = with_key(g, in[0]);
  const ax_value keys = ax_draw_keys(&of, 2), again = ax_le(in[2], ax_real(0));
  const ax_draw second = ax_draw_from(&of, keys, 1);
  const ax_value x = ax_draw_normal(&second);
  out[0] = ax_at(keys, 0, -2);
  out[1] = ax_where(again, x, in[1]);
  out[2] = ax_where(again, ax_add(ax_mul(x, g->c), ax_real(1)), in[2]);
}

/* keys, X = x^2, V = v^3, U: what is drawn again. */
static ax_value rejected(const gamma_of *g, ax_value X, ax_value V, ax_value U) {
  const ax_value quickly = ax_ge(U, ax_sub(ax_real(1), ax_mul(ax_real(0.0331), ax_mul(X, X))));
  const ax_value bound = ax_add(ax_mul(X, ax_real(0.5)), ax_mul(g->d, ax_add(ax_sub(ax_real(1), V), ax_log(V))));
  return ax_and(quickly, ax_ge(ax_log(U), bound));
}

static AX_BODY(some_rejected) { out[0] = ax_draw_any(rejected(context, in[1], in[2], in[3])); }

static AX_BODY(next_draw) {
  gamma_of *g = context;
  const ax_draw of = with_key(g, in[0]);
  const ax_value keys = ax_draw_keys(&of, 3), again = rejected(g, in[1], in[2], in[3]);
  const ax_draw third = ax_draw_from(&of, keys, 2);
  const ax_value v = ax_where(again, ax_full_like(in[2], -1), ax_real(1));
  ax_value found[] = {ax_at(keys, 1, -2), ax_full_like(in[1], 0), v};
  ax_while(AX_FN(some_not_positive, 3, 1), AX_CLOSURE(next_normal, 3, 3, g), found, found);
  out[0] = ax_at(keys, 0, -2);
  out[1] = ax_where(again, ax_mul(found[1], found[1]), in[1]);
  out[2] = ax_where(again, ax_mul(ax_mul(found[2], found[2]), found[2]), in[2]);
  out[3] = ax_where(again, ax_draw_unit(&third), in[3]);
}

/* The factor of draws whose parameter was raised. */
static ax_value boosted(const ax_draw *draw, ax_value a, ax_value whole, bool in_log) {
  if (in_log) {
    const ax_value logs = ax_neg(ax_draw_exponential(draw)), none = ax_or(whole, ax_eq(logs, ax_real(0)));
    return ax_where(none, ax_full_like(a, 0), ax_mul(logs, ax_div(ax_full_like(a, 1), a)));
  }
  const ax_value share = ax_sub(ax_real(1), ax_draw_unit(draw));
  return ax_where(whole, ax_full_like(a, 1), ax_pow(share, ax_div(ax_full_like(a, 1), a)));
}

/* key u32[2], a T[d..] -> T[d..] */
static ax_value sample(const ax_draw *draw, ax_value a, bool in_log) {
  gamma_of g = {.draw = *draw};
  g.draw.key = ax_keys_split(draw->key, draw->shape.count, draw->shape.v);
  g.draw.shape = (ax_dims){.count = 0};
  const ax_value whole = ax_ge(a, ax_real(1)), raised = ax_where(whole, a, ax_add(a, ax_real(1)));
  g.d = ax_sub(raised, ax_real(1. / 3));
  g.c = ax_div(ax_full_like(a, 1. / 3), ax_sqrt(g.d));
  const ax_value keys = ax_draw_keys(&g.draw, 2);
  const ax_draw rest = ax_draw_from(&g.draw, keys, 1);
  ax_value state[] = {ax_at(keys, 0, -2), ax_full_like(a, 0), ax_full_like(a, 1), ax_full_like(a, 2)};
  ax_while(AX_CLOSURE(some_rejected, 4, 1, &g), AX_CLOSURE(next_draw, 4, 4, &g), state, state);
  const ax_value boost = boosted(&rest, a, whole, in_log);
  return in_log ? ax_add(ax_add(ax_log(g.d), ax_log(state[2])), boost) : ax_mul(ax_mul(g.d, state[2]), boost);
}

/* --- With its derivative: a draw keeps its share of those below it --- */

typedef struct way {
  const ax_draw *draw;
  bool in_log;
} way;

static AX_BODY(value_of) {
  const way *w = context;
  ax_draw draw = *w->draw;
  draw.key = in[0];
  out[0] = sample(&draw, in[1], w->in_log);
}

/* In f64, because log x - digamma(a) leaves few digits of large numbers. */
static ax_value derivative(const way *w, ax_value a, ax_value drawn) {
  const ax_dtype dtype = w->draw->dtype;
  const ax_value b = ax_convert_element_type(a, AX_F64), made = ax_convert_element_type(drawn, AX_F64);
  if (!w->in_log) return ax_convert_element_type(ax_random_gamma_grad(b, made), dtype);
  const ax_value x = ax_exp(made), some = ax_where(ax_eq(x, ax_real(0)), ax_full_like(x, ax_dtype_tiny(dtype)), x);
  return ax_convert_element_type(ax_div(ax_random_gamma_grad(b, some), some), dtype);
}

static AX_BODY(rule_of) {
  value_of(in, out, context);
  out[1] = ax_mul(in[2], derivative(context, in[1], out[0]));
}

ax_value ax_draw_gamma(const ax_draw *draw, ax_value a, bool in_log) {
  way w = {draw, in_log};
  ax_value in[] = {draw->key, ax_draw_spread(draw, a)}, out;
  (ax_custom_jvp)(AX_CLOSURE(value_of, 2, 1, &w), AX_CLOSURE(rule_of, 3, 2, &w), 2, in, 1, &out);
  return out;
}

/* --- Distributions --- */

static ax_value half(ax_value x) { return ax_div(x, ax_real(2)); }

static ax_value gamma_draw(const ax_draw *draw, const ax_value *a) { return ax_draw_gamma(draw, a[0], false); }
static ax_value loggamma(const ax_draw *draw, const ax_value *a) { return ax_draw_gamma(draw, a[0], true); }

static ax_value chisquare(const ax_draw *draw, const ax_value *df) {
  return ax_mul(ax_exp(ax_draw_gamma(draw, half(df[0]), true)), ax_real(2));
}

/* Of the logarithms, so that small parameters keep their digits. */
static ax_value beta(const ax_draw *draw, const ax_value *p) {
  const ax_value keys = ax_draw_keys(draw, 2);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  const ax_value a = ax_draw_gamma(&first, p[0], true), b = ax_draw_gamma(&second, p[1], true), most = ax_max(a, b);
  const ax_value share = ax_exp(ax_sub(a, most));
  return ax_div(share, ax_add(share, ax_exp(ax_sub(b, most))));
}

static ax_value f(const ax_draw *draw, const ax_value *p) {
  const ax_value keys = ax_draw_keys(draw, 2);
  const ax_draw below = ax_draw_from(draw, keys, 0), above = ax_draw_from(draw, keys, 1);
  return ax_div(ax_div(chisquare(&above, &p[0]), p[0]), ax_div(chisquare(&below, &p[1]), p[1]));
}

static ax_value t(const ax_draw *draw, const ax_value *df) {
  const ax_value keys = ax_draw_keys(draw, 2), degrees = half(df[0]);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  return ax_mul(ax_draw_normal(&first), ax_sqrt(ax_div(degrees, ax_draw_gamma(&second, degrees, false))));
}

static ax_value one_over(ax_value p) { return ax_div(ax_full_like(p, 1), p); }

/* A sign, times a gamma draw of 1 / p to the power 1 / p. */
static ax_value generalized_normal(const ax_draw *draw, const ax_value *p) {
  const ax_value keys = ax_draw_keys(draw, 2), power = one_over(p[0]);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  return ax_mul(ax_draw_signs(&second), ax_pow(ax_draw_gamma(&first, power, false), power));
}

ax_value (ax_random_gamma)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a) {
  return ax_draw_call("random_gamma", key, dtype, rank, dims, 1, &a, gamma_draw);
}
ax_value (ax_random_loggamma)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a) {
  return ax_draw_call("random_loggamma", key, dtype, rank, dims, 1, &a, loggamma);
}
ax_value (ax_random_chisquare)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value df) {
  return ax_draw_call("random_chisquare", key, dtype, rank, dims, 1, &df, chisquare);
}
ax_value (ax_random_t)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value df) {
  return ax_draw_call("random_t", key, dtype, rank, dims, 1, &df, t);
}
ax_value (ax_random_generalized_normal)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value p) {
  return ax_draw_call("random_generalized_normal", key, dtype, rank, dims, 1, &p, generalized_normal);
}
ax_value (ax_random_beta)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a, ax_value b) {
  return ax_draw_call("random_beta", key, dtype, rank, dims, 2, (ax_value[]){a, b}, beta);
}
ax_value (ax_random_f)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value dfnum, ax_value dfden) {
  return ax_draw_call("random_f", key, dtype, rank, dims, 2, (ax_value[]){dfnum, dfden}, f);
}

/* --- Several numbers at once --- */

ax_value (ax_random_dirichlet)(ax_value key, uint32_t rank, const int64_t *dims, ax_value alpha) {
  static const char name[] = "random_dirichlet";
  ax_type type;
  ax_draw draw;
  if (!ax_operand(name, alpha, &type) || !ax_draw_of(name, key, AX_DRAW_FLOAT, type.dtype, rank, dims, &draw)) return ax_poison;
  if (type.rank == 0) return ax_reject_as(name, "the parameters are %s; they must have a dimension", ax_operand_string(&type));
  const int64_t n = type.dims[--type.rank];
  if (!ax_draw_shape(&draw, 1, &type)) return ax_poison;
  const ax_draw wide = ax_draw_wider(&draw, 0, n);
  return ax_softmax(ax_draw_gamma(&wide, alpha, true), -1);
}

ax_value (ax_random_ball)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t d, ax_value p) {
  static const char name[] = "random_ball";
  ax_draw draw;
  ax_type type;
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, dtype, rank, dims, &draw)) return ax_poison;
  p = ax_as(name, p, dtype);
  if (ax_failed() || !ax_operand(name, p, &type)) return ax_poison;
  if (type.rank != 0 || type.dtype != dtype)
    return ax_reject_as(name, "p is %s; it must be a scalar of %s", ax_operand_string(&type), ax_dtype_name(dtype));
  if (d < 1) return ax_reject_as(name, "a ball of %lld dimensions is none", (long long)d);
  const ax_value keys = ax_draw_keys(&draw, 2);
  const ax_draw wide = ax_draw_wider(&draw, 0, d), first = ax_draw_from(&wide, keys, 0), second = ax_draw_from(&draw, keys, 1);
  const ax_value x = generalized_normal(&first, &p), sums = ax_reduce_sum(ax_pow(ax_abs(x), p), AX_DIMS(-1), false);
  const ax_value size = ax_pow(ax_add(sums, ax_draw_exponential(&second)), one_over(p));
  return ax_div(x, ax_expand_dims(size, -1));
}
