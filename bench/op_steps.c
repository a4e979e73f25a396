/* Cases for b9 that go step by step, as users write them: filters, flows, samplers, search, and learning from rewards.
   bench/jax_nets.py has the same in JAX. */
#include <math.h>
#include <string.h>

#include "axle/axle.h"
#include "ops.h"

static ax_value zeros(int64_t a, int64_t b) { return ax_full(AX_F32, AX_DIMS(a, b), 0); }
static ax_value mean_all(ax_value x) { return ax_reduce_mean(x, AX_ALL_DIMS, false); }

/* --- A Kalman filter with one measurement a step, of one track or of many --- */

static AX_BODY(kalman_one) { /* z[t], f[n, n]; gives the last state */
  const int64_t n = ax_typeof(in[1]).dims[0], dims[] = {n, n};
  ax_value same = ax_eq(ax_iota(AX_S32, AX_LIST(2, dims), 0), ax_iota(AX_S32, AX_LIST(2, dims), 1));
  ax_value unit = ax_where(same, op_number(AX_F32, 1), 0);
  ax_value f = ax_add(ax_mul(unit, 0.5), op_scaled(in[1], 0.25 / (double)n)), noise = ax_mul(unit, 0.01);
  ax_value x = ax_full(AX_F32, AX_DIMS(n), 0), p = unit;
  AX_SCAN (z, in[0], &x, &p) {
    x = ax_matmul(f, x);
    p = ax_add(ax_matmul(ax_matmul(f, p), ax_transpose(f, AX_DIMS(1, 0))), noise);
    ax_value seen = ax_at(p, 0, 1), sure = ax_add(ax_at(seen, 0, 0), 0.1), gain = ax_div(seen, sure);
    x = ax_add(x, ax_mul(gain, ax_sub(z, ax_at(x, 0, 0))));
    p = ax_sub(p, ax_mul(ax_expand_dims(gain, 1), ax_expand_dims(seen, 0)));
  }
  out[0] = x;
  (void)context;
}
static AX_BODY(kalman_many) {
  ax_vmap(AX_CLOSURE(kalman_one, 2, 1, context), AX_LIST(2, in), AX_LIST(1, out),
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}});
}
static void kalman(op_case *c) { /* STEPS STATES TRACKS */
  const int64_t steps = op_int(c, 0), n = op_int(c, 1), tracks = op_int(c, 2);
  if (tracks > 1) OP_IN(c, AX_F32, tracks, steps);
  else OP_IN(c, AX_F32, steps);
  OP_IN(c, AX_F32, n, n);
  c->moved = 8.0 * (double)(tracks * steps * n * n);
  c->body = tracks > 1 ? kalman_many : kalman_one;
}

/* --- A flow on a torus: vorticity is carried along, and a Poisson equation gives the stream --- */

static ax_value rolled(ax_value x, int64_t by, int64_t axis) { /* as jnp.roll, by 1 or -1 */
  ax_value first = ax_slice_in_dim(x, 0, by > 0 ? -1 : 1, 1, axis), rest = ax_slice_in_dim(x, by > 0 ? -1 : 1, AX_END, 1, axis);
  return ax_concatenate(AX_VALUES(rest, first), axis);
}
static ax_value around(ax_value x) {
  return ax_add(ax_add(rolled(x, 1, 0), rolled(x, -1, 0)), ax_add(rolled(x, 1, 1), rolled(x, -1, 1)));
}
static ax_value slope(ax_value x, int64_t axis) { return ax_mul(ax_sub(rolled(x, -1, axis), rolled(x, 1, axis)), 0.5); }
static AX_BODY(flow_body) { /* vorticity */
  ax_value w = ax_sub(in[0], 1), stream = ax_full_like(w, 0);
  AX_LOOP (i, 0, op_int(context, 0), &w, &stream) {
    AX_LOOP (k, 0, op_int(context, 2), &stream) stream = ax_mul(ax_add(around(stream), w), 0.25);
    ax_value carried = ax_sub(ax_mul(slope(stream, 0), slope(w, 1)), ax_mul(slope(stream, 1), slope(w, 0)));
    w = ax_add(w, ax_mul(ax_add(carried, ax_mul(ax_sub(around(w), ax_mul(w, 4)), 0.1)), 0.05));
  }
  out[0] = w;
}
static void flow(op_case *c) { /* STEPS SIDE ROUNDS */
  const int64_t side = op_int(c, 1);
  OP_IN(c, AX_F32, side, side);
  c->moved = 12.0 * (double)(op_int(c, 0) * (op_int(c, 2) + 1) * side * side);
  c->body = flow_body;
}

/* --- Images drawn from noise by a network of convolutions that takes noise away --- */

static AX_BODY(diffusion_body) { /* x[b, s, s, 3], w1[3, 3, 3, w], time[steps, w], w2[3, 3, w, w], w3[3, 3, w, 3] */
  const ax_conv_options options = {.lhs = "NHWC", .rhs = "HWIO", .padding = "SAME"};
  const double width = (double)op_int(context, 3);
  ax_value w1 = op_scaled(in[1], 0.03), w2 = op_scaled(in[3], 0.1 / width), w3 = op_scaled(in[4], 0.1 / width), x = in[0];
  AX_SCAN (now, in[2], &x) {
    ax_value h = ax_add(ax_conv_general_dilated(x, w1, &options), now);
    h = ax_mul(h, ax_logistic(h));
    h = ax_conv_general_dilated(h, w2, &options);
    h = ax_mul(h, ax_logistic(h));
    x = ax_sub(ax_mul(x, 1.01), ax_mul(ax_conv_general_dilated(h, w3, &options), 0.05));
  }
  out[0] = x;
}
static void diffusion(op_case *c) { /* STEPS BATCH SIDE WIDTH */
  const int64_t steps = op_int(c, 0), batch = op_int(c, 1), side = op_int(c, 2), width = op_int(c, 3);
  OP_IN(c, AX_F32, batch, side, side, 3);
  OP_IN(c, AX_F32, 3, 3, 3, width);
  OP_IN(c, AX_F32, steps, width);
  OP_IN(c, AX_F32, 3, 3, width, width);
  OP_IN(c, AX_F32, 3, 3, width, 3);
  op_product(c, AX_F32, (double)(steps * batch * side * side), (double)width, 9 * (6 + (double)width));
  c->body = diffusion_body;
}

/* --- Text found by keeping the likeliest of many beginnings --- */

static AX_BODY(beam_body) { /* table[v, w], u[w, w] */
  const int64_t steps = op_int(context, 0), beams = op_int(context, 1), width = op_int(context, 2), words = op_int(context, 3);
  ax_value u = op_scaled(in[1], 0.03 / sqrt((double)width)), table = op_scaled(in[0], 0.1);
  ax_value h = ax_slice_in_dim(table, 0, beams, 1, 0), likely = ax_mul(ax_iota(AX_F32, AX_LIST(1, &beams), 0), -1e-3), text;
  AX_LOOP (i, 0, steps, &h, &likely) {
    ax_value logs = ax_log_softmax(ax_einsum("bw,vw->bv", AX_VALUES(h, table)), -1), best[2];
    ax_top_k(ax_reshape(ax_add(logs, ax_expand_dims(likely, 1)), AX_DIMS(beams * words)), beams, AX_LIST(2, best));
    likely = best[0];
    ax_value word = ax_rem(best[1], words);
    h = ax_tanh(ax_add(ax_matmul(ax_take(h, ax_div(best[1], words), 0), u), ax_take(table, word, 0)));
    ax_collect(&text, word);
  }
  out[0] = likely;
  out[1] = h;
  (void)text;
}
static void beam(op_case *c) { /* STEPS BEAMS WIDTH VOCABULARY */
  const int64_t steps = op_int(c, 0), beams = op_int(c, 1), width = op_int(c, 2), words = op_int(c, 3);
  OP_IN(c, AX_F32, words, width);
  OP_IN(c, AX_F32, width, width);
  op_product(c, AX_F32, (double)(steps * beams), (double)width, (double)(width + words));
  c->body = beam_body;
  c->out_count = 2;
}

/* --- A policy and values learned from rewards (PPO): advantages backward over time, then a clipped step --- */

enum { acts = 8 };

static AX_BODY(policy_loss) { /* seen[t, b, o], acts[t, b], rewards[t, b], w1[o, h], wp[h, acts], wv[h] */
  const int64_t batch = op_int(context, 1), hidden = op_int(context, 3);
  ax_value h = ax_tanh(ax_matmul(in[0], op_scaled(in[3], 0.01)));
  ax_value logs = ax_log_softmax(ax_matmul(h, op_scaled(in[4], 0.03)), -1);
  ax_value values = ax_matmul(h, op_scaled(in[5], 1 / (double)hidden));
  ax_value chosen = ax_reduce_sum(ax_mul(logs, ax_one_hot(in[1], acts, AX_F32)), AX_DIMS(2), false);
  ax_value next = ax_concatenate(AX_VALUES(ax_slice_in_dim(values, 1, AX_END, 1, 0), zeros(1, batch)), 0);
  ax_value off = ax_sub(ax_add(in[2], ax_mul(next, 0.99)), values), advantage = ax_full(AX_F32, AX_DIMS(batch), 0), all;
  AX_SCAN_REVERSED (delta, off, &advantage) {
    advantage = ax_add(delta, ax_mul(advantage, 0.99 * 0.95));
    ax_collect(&all, advantage);
  }
  ax_value aim = ax_stop_gradient(ax_add(all, values)), apart = ax_sub(all, mean_all(all));
  ax_value worth = ax_stop_gradient(ax_mul(apart, ax_rsqrt(ax_add(mean_all(ax_square(apart)), 1e-8))));
  ax_value times = ax_exp(ax_sub(chosen, ax_stop_gradient(ax_mul(chosen, 1.01))));
  ax_value gained = ax_min(ax_mul(times, worth), ax_mul(ax_clamp(0.8, times, 1.2), worth));
  out[0] = ax_sub(mean_all(ax_mul(ax_square(ax_sub(values, aim)), 0.5)), mean_all(gained));
}
static AX_BODY(policy_step) { op_descend(AX_CLOSURE(policy_loss, 6, 1, context), in, 3, out); }
static void policy(op_case *c) { /* STEPS BATCH SEEN HIDDEN */
  const int64_t steps = op_int(c, 0), batch = op_int(c, 1), seen = op_int(c, 2), hidden = op_int(c, 3);
  OP_IN(c, AX_F32, steps, batch, seen);
  OP_IN(c, AX_S32, steps, batch);
  OP_IN(c, AX_F32, steps, batch);
  OP_IN(c, AX_F32, seen, hidden);
  OP_IN(c, AX_F32, hidden, acts);
  OP_IN(c, AX_F32, hidden);
  c->below = acts;
  op_product(c, AX_F32, 3 * (double)(steps * batch), (double)hidden, (double)(seen + acts + 1));
  c->body = policy_step;
  c->out_count = 4;
}

const op_family op_step_families[] = {
    {"kalman", kalman}, {"flow", flow}, {"diffusion", diffusion}, {"beam", beam}, {"policy", policy}, {NULL, NULL},
};
