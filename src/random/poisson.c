/* Poisson draws. Of a rate below 10: how many exponential times fit. From 10 on: W. Hoermann, The transformed rejection method for
   generating Poisson random variables (1993). */
#include "axle/transform.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "random/rejection.h"

/* --- Few events: keys, how many, the time that they took --- */

typedef struct steps {
  const ax_draw *draw;
  ax_value rate;
} steps;

static AX_BODY(time_left) {
  const steps *s = context;
  out[0] = ax_draw_any(ax_gt(in[2], ax_neg(s->rate)));
}

static AX_BODY(next_event) {
  const steps *s = context;
  const ax_value keys = ax_draw_keys_of(s->draw, in[0], 2), more = ax_gt(in[2], ax_neg(s->rate));
  out[0] = ax_at(keys, 0, 0);
  out[1] = ax_where(more, ax_add(in[1], ax_real(1)), in[1]);
  out[2] = ax_add(in[2], ax_log(ax_draw_unit_of(s->draw, keys, 1)));
}

static ax_value few_events(const ax_draw *draw, ax_value rate) {
  steps s = {draw, rate};
  ax_value state[] = {draw->key, ax_draw_filled(draw, 0), ax_draw_filled(draw, 0)};
  ax_while(AX_CLOSURE(time_left, 3, 1, &s), AX_CLOSURE(next_event, 3, 3, &s), state, state);
  return ax_sub(state[1], ax_real(1));
}

/* --- Many events --- */

typedef struct hat {
  const ax_draw *draw;
  ax_value rate, log_rate, a, b, inverse_alpha, limit;
} hat;

static AX_BODY(next_draw) {
  const hat *h = context;
  const ax_value keys = ax_draw_keys_of(h->draw, in[0], 3), v = ax_draw_unit_of(h->draw, keys, 2);
  const ax_value u = ax_sub(ax_draw_unit_of(h->draw, keys, 1), ax_real(0.5)), us = ax_sub(ax_real(0.5), ax_abs(u));
  const ax_value wide = ax_mul(ax_add(ax_div(ax_mul(ax_real(2), h->a), us), h->b), u);
  const ax_value k = ax_floor(ax_add(ax_add(wide, h->rate), ax_real(0.43)));
  const ax_value s = ax_log(ax_div(ax_mul(v, h->inverse_alpha), ax_add(ax_div(h->a, ax_mul(us, us)), h->b)));
  const ax_value t = ax_sub(ax_add(ax_neg(h->rate), ax_mul(k, h->log_rate)), ax_lgamma(ax_add(k, ax_real(1))));
  const ax_value at_once = ax_and(ax_ge(us, ax_real(0.07)), ax_le(v, h->limit));
  const ax_value never = ax_or(ax_lt(k, ax_real(0)), ax_and(ax_lt(us, ax_real(0.013)), ax_gt(v, us)));
  ax_draw_accept(in, out, ax_at(keys, 0, 0), k, ax_or(at_once, ax_and(ax_not(never), ax_le(s, t))));
}

static ax_value many_events(const ax_draw *draw, ax_value needed, ax_value rate) {
  hat h = {.draw = draw, .rate = rate, .log_rate = ax_log(rate)};
  h.b = ax_add(ax_real(0.931), ax_mul(ax_real(2.53), ax_sqrt(rate)));
  h.a = ax_add(ax_real(-0.059), ax_mul(ax_real(0.02483), h.b));
  h.inverse_alpha = ax_add(ax_real(1.1239), ax_div(ax_real(1.1328), ax_sub(h.b, ax_real(3.4))));
  h.limit = ax_sub(ax_real(0.9277), ax_div(ax_real(3.6224), ax_sub(h.b, ax_real(2))));
  return ax_draw_until_accepted(draw, needed, AX_CLOSURE(next_draw, 3, 3, &h));
}

/* In f32, as JAX. The rate of elements that the other way draws is one at which nothing is drawn again for long. */
ax_value (ax_random_poisson)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value lam) {
  static const char name[] = "random_poisson";
  ax_draw draw;
  ax_type type = {.dtype = AX_F32};
  if (!ax_is_number(lam) && !ax_operand(name, lam, &type)) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_INTEGER, dtype, rank, dims, &draw)) return ax_poison;
  if (!ax_is_float(type.dtype)) return ax_reject_as(name, "the rate is %s; it must be a float", ax_operand_string(&type));
  draw.dtype = AX_F32;
  if (!ax_is_number(lam)) lam = ax_convert_element_type(lam, AX_F32);
  if (!ax_draw_with(&draw, AX_F32, 1, &lam)) return ax_poison;
  lam = ax_stop_gradient(ax_draw_spread(&draw, lam));
  const ax_value few = ax_or(ax_ne(lam, lam), ax_lt(lam, ax_real(10)));
  const ax_value small = few_events(&draw, ax_where(few, lam, ax_real(0)));
  const ax_value large = many_events(&draw, ax_not(few), ax_where(few, ax_full_like(lam, 1e5), lam));
  const ax_value drawn = ax_convert_element_type(ax_where(few, small, large), dtype);
  return ax_where(ax_eq(lam, ax_real(0)), ax_full_like(drawn, 0), drawn);
}
