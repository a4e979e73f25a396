/* Binomial and multinomial draws. Up to 10 successes: how many geometric steps fit. Above: W. Hoermann, The generation of binomial random
   variates (1993), BTRS. The probability q is at most 1/2; of one above, failures are counted. */
#include <math.h>

#include "axle/transform.h"
#include "ir/dtype.h"
#include "random/rejection.h"

/* --- Few successes: keys, how many, the trials that they took --- */

typedef struct trials {
  const ax_draw *draw;
  ax_value count, log_failure;
} trials;

static AX_BODY(trials_left) {
  const trials *t = context;
  out[0] = ax_draw_any(ax_le(in[2], t->count));
}

static AX_BODY(next_success) {
  const trials *t = context;
  const ax_value keys = ax_draw_keys_of(t->draw, in[0], 2), more = ax_le(in[2], t->count);
  out[0] = ax_at(keys, 1, 0);
  out[1] = ax_where(more, ax_add(in[1], ax_real(1)), in[1]);
  out[2] = ax_add(in[2], ax_ceil(ax_div(ax_log(ax_draw_unit_of(t->draw, keys, 0)), t->log_failure)));
}

static ax_value few_successes(const ax_draw *draw, ax_value count, ax_value q) {
  trials t = {draw, count, ax_log1p(ax_neg(q))};
  ax_value state[] = {draw->key, ax_draw_filled(draw, 0), ax_draw_filled(draw, 0)};
  ax_while(AX_CLOSURE(trials_left, 3, 1, &t), AX_CLOSURE(next_success, 3, 3, &t), state, state);
  return ax_sub(state[1], ax_real(1));
}

/* --- Many successes --- */

/* What Stirling's formula for log k! lacks. */
static ax_value stirling_rest(ax_value k) {
  static const double first[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                 0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  const ax_value is_small = ax_le(k, ax_real(9)), least = ax_clamp(ax_real(0), k, ax_real(9));
  const ax_value next = ax_add(least, ax_real(1)), square = ax_mul(next, next), whole = ax_floor(least);
  const ax_value inner = ax_div(ax_sub(ax_real(1. / 360), ax_div(ax_full_like(k, 1. / 1260), square)), square);
  ax_value known = ax_full_like(k, first[9]);
  for (int i = 8; i >= 0; i--) known = ax_where(ax_le(whole, ax_real(i)), ax_real(first[i]), known);
  return ax_where(is_small, known, ax_div(ax_sub(ax_real(1. / 12), inner), next));
}

typedef struct hat {
  const ax_draw *draw;
  ax_value count, odds, top, shift, a, b, alpha, limit;
} hat;

/* log of the binomial probability of k by that of the most likely number. */
static ax_value log_share(const hat *h, ax_value k) {
  const ax_value one = ax_real(1), half = ax_real(0.5), rest = ax_add(ax_sub(h->count, k), one);
  const ax_value top_rest = ax_add(ax_sub(h->count, h->top), one);
  const ax_value first = ax_mul(ax_add(h->top, half), ax_log(ax_div(ax_add(h->top, one), ax_mul(h->odds, top_rest))));
  const ax_value second = ax_mul(ax_add(h->count, one), ax_log(ax_div(top_rest, rest)));
  const ax_value third = ax_mul(ax_add(k, half), ax_log(ax_div(ax_mul(h->odds, rest), ax_add(k, one))));
  const ax_value of_top = ax_add(stirling_rest(h->top), stirling_rest(ax_sub(h->count, h->top)));
  const ax_value sum = ax_add(ax_add(first, second), third);
  return ax_sub(ax_sub(ax_add(sum, of_top), stirling_rest(k)), stirling_rest(ax_sub(h->count, k)));
}

static AX_BODY(next_draw) {
  const hat *h = context;
  const ax_value keys = ax_draw_keys_of(h->draw, in[0], 3), v = ax_draw_unit_of(h->draw, keys, 2);
  const ax_value u = ax_sub(ax_draw_unit_of(h->draw, keys, 1), ax_real(0.5)), us = ax_sub(ax_real(0.5), ax_abs(u));
  const ax_value at_once = ax_and(ax_ge(us, ax_real(0.07)), ax_le(v, h->limit));
  const ax_value k = ax_floor(ax_add(ax_mul(ax_add(ax_div(ax_mul(ax_real(2), h->a), us), h->b), u), h->shift));
  const ax_value never = ax_or(ax_lt(k, ax_real(0)), ax_gt(k, h->count));
  const ax_value logs = ax_log(ax_div(ax_mul(v, h->alpha), ax_add(ax_div(h->a, ax_mul(us, us)), h->b)));
  ax_draw_accept(in, out, ax_at(keys, 0, 0), k, ax_or(at_once, ax_and(ax_not(never), ax_le(logs, log_share(h, k)))));
}

static ax_value many_successes(const ax_draw *draw, ax_value needed, ax_value count, ax_value q) {
  const ax_value one = ax_full_like(q, 1), failure = ax_sub(one, q), deviation = ax_sqrt(ax_mul(ax_mul(count, q), failure));
  hat h = {.draw = draw, .count = count, .odds = ax_div(q, failure), .top = ax_floor(ax_mul(ax_add(count, one), q))};
  h.b = ax_add(ax_real(1.15), ax_mul(ax_real(2.53), deviation));
  h.a = ax_add(ax_add(ax_real(-0.0873), ax_mul(ax_real(0.0248), h.b)), ax_mul(ax_real(0.01), q));
  h.shift = ax_add(ax_mul(count, q), ax_real(0.5));
  h.limit = ax_sub(ax_real(0.92), ax_div(ax_real(4.2), h.b));
  h.alpha = ax_mul(ax_add(ax_real(2.83), ax_div(ax_real(5.1), h.b)), deviation);
  return ax_draw_until_accepted(draw, needed, AX_CLOSURE(next_draw, 3, 3, &h));
}

/* --- Either way: NaN where the count is negative or a parameter no number; infinite counts have infinitely many successes --- */

static ax_value binomial(const ax_draw *draw, const ax_value *p) {
  const ax_value count = ax_stop_gradient(ax_draw_spread(draw, p[0])), prob = ax_stop_gradient(ax_draw_spread(draw, p[1]));
  const ax_value below_half = ax_lt(prob, ax_real(0.5)), share = ax_where(below_half, prob, ax_sub(ax_real(1), prob));
  const ax_value no_count = ax_or(ax_ne(count, count), ax_lt(count, ax_real(0))), endless = ax_eq(ax_abs(count), ax_real(INFINITY));
  const ax_value no_share = ax_or(ax_ne(share, share), ax_lt(share, ax_real(0)));
  const ax_value q = ax_where(no_share, ax_full_like(share, 0.01), share), whole = ax_floor(count);
  const ax_value few = ax_or(no_count, ax_le(ax_mul(count, q), ax_real(10))), other = ax_or(few, endless);
  const ax_value small = few_successes(draw, ax_where(few, whole, ax_real(0)), q);
  const ax_value large =
      many_successes(draw, ax_not(few), ax_where(other, ax_full_like(whole, 1e4), whole), ax_where(other, ax_full_like(q, 0.5), q));
  const ax_value wrong = ax_or(no_share, no_count);
  ax_value drawn = ax_where(wrong, ax_full_like(q, NAN), ax_where(few, small, large));
  drawn = ax_where(ax_and(endless, ax_not(wrong)), ax_full_like(q, INFINITY), drawn);
  const ax_value as_drawn = ax_or(ax_or(below_half, no_count), ax_or(ax_ne(share, share), endless));
  return ax_where(as_drawn, drawn, ax_sub(whole, drawn));
}

ax_value (ax_random_binomial)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value n, ax_value p) {
  return ax_draw_call("random_binomial", key, dtype, rank, dims, 2, (ax_value[]){n, p}, binomial);
}

/* --- Multinomial: of what the outcomes before have left, a binomial draw each --- */

static AX_BODY(next_outcome) {
  ax_draw draw = *(const ax_draw *)context;
  draw.key = in[2];
  const ax_value one = ax_full_like(in[1], 1), share = ax_clamp(ax_full_like(one, 0), in[1], one);
  out[1] = binomial(&draw, (ax_value[]){in[0], share});
  out[0] = ax_sub(in[0], out[1]);
}

ax_value (ax_random_multinomial)(ax_value key, uint32_t rank, const int64_t *dims, ax_value n, ax_value p) {
  static const char name[] = "random_multinomial";
  ax_type types[2];
  ax_draw draw;
  if (!ax_operand(name, p, &types[1]) || !ax_draw_of(name, key, AX_DRAW_FLOAT, types[1].dtype, rank, dims, &draw)) return ax_poison;
  n = ax_as(name, n, types[1].dtype);
  if (ax_failed() || !ax_operand(name, n, &types[0])) return ax_poison;
  if (types[1].rank == 0) return ax_reject_as(name, "the probabilities are %s; they must have a dimension", ax_operand_string(&types[1]));
  if (types[0].dtype != types[1].dtype)
    return ax_reject_as(name, "the number of trials is %s; it must be of %s", ax_operand_string(&types[0]), ax_dtype_name(types[1].dtype));
  const int64_t k = types[1].dims[--types[1].rank];
  if (!ax_draw_shape(&draw, 2, types)) return ax_poison;
  const ax_draw wide = ax_draw_wider(&draw, 0, k);
  const ax_value shares = ax_moveaxis(ax_draw_spread(&wide, p), -1, 0), left = ax_cumsum(shares, 0, true);
  const ax_value ratios = ax_div(shares, ax_where(ax_eq(left, ax_real(0)), ax_full_like(left, 1), left));
  ax_value in[] = {ax_draw_spread(&draw, n), ax_stop_gradient(ratios), ax_draw_keys(&draw, k)}, out[2];
  ax_scan(AX_CLOSURE(next_outcome, 3, 2, &draw), 1, k, false, in, out);
  return ax_moveaxis(out[1], 0, -1);
}
