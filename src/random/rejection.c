/* The loop of draws that are made again. */
#include "random/rejection.h"

ax_value ax_draw_any(ax_value x) { return ax_reduce_or(x, AX_ALL_DIMS, false); }

ax_value ax_draw_keys_of(const ax_draw *draw, ax_value key, int64_t n) {
  ax_draw of = *draw;
  of.key = key;
  return ax_draw_keys(&of, n);
}

ax_value ax_draw_unit_of(const ax_draw *draw, ax_value keys, int64_t k) {
  const ax_draw of = ax_draw_from(draw, keys, k);
  return ax_draw_unit(&of);
}

ax_value ax_draw_filled(const ax_draw *draw, double value) { return ax_full(draw->dtype, AX_LIST(draw->shape.count, draw->shape.v), value); }

static AX_BODY(some_left) { out[0] = ax_draw_any(ax_not(in[2])); }

ax_value ax_draw_until_accepted(const ax_draw *draw, ax_value needed, ax_fn body) {
  const ax_value accepted = ax_draw_spread(draw, ax_not(ax_draw_any(needed)));
  ax_value state[] = {draw->key, ax_draw_filled(draw, -1), accepted};
  ax_while(AX_FN(some_left, 3, 1), body, state, state);
  return state[1];
}

/* As in JAX, a result that was accepted before is replaced when another is: the last accepted one counts. */
void ax_draw_accept(const ax_value *in, ax_value *out, ax_value key, ax_value k, ax_value accepted) {
  out[0] = key;
  out[1] = ax_where(accepted, k, in[1]);
  out[2] = ax_or(in[2], accepted);
}
