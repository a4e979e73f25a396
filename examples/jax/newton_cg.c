#include <stdio.h>

#include <axle/axle.h>

enum { SAMPLES = 256, FEATURES = 12, ITERATIONS = 6, CG_MAX = 50 };
static const double L2 = 1e-2, CG_TOL = 1e-3;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "data", .size = 8}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* w, x, y, on each device -> loss */
static AX_BODY(loss_fn) {
  ax_value losses = ax_softplus(ax_neg(ax_mul(in[2], ax_matmul(in[1], in[0]))));
  ax_value loss = ax_pmean(ax_reduce_mean(losses, AX_ALL_DIMS, false), "data");
  out[0] = ax_add(loss, ax_mul(0.5 * L2, ax_matmul(in[0], in[0])));
}

/* w, x, y, on each device -> the next w, loss, |grad|, CG's steps */
static AX_BODY(newton_step) {
  ax_value_and_grad(AX_FN(loss_fn, 3, 1), AX_FIRST(1), in, &out[1]);
  ax_value r = out[2], p = r, rr = ax_matmul(r, r), bound = ax_mul(CG_TOL * CG_TOL, rr), ap;
  ax_value x = ax_full_like(r, 0), count = ax_full(AX_S32, AX_DIMS(), 0);
  out[2] = ax_sqrt(rr);
  AX_WHILE (ax_and(ax_gt(rr, bound), ax_lt(count, CG_MAX)), &x, &r, &p, &rr, &count) {
    ax_hvp(AX_FN(loss_fn, 3, 1), AX_FIRST(1), in, &p, NULL, &ap);
    ax_value alpha = ax_div(rr, ax_matmul(p, ap)), before = rr;
    x = ax_add(x, ax_mul(alpha, p));
    r = ax_sub(r, ax_mul(alpha, ap));
    rr = ax_matmul(r, r);
    p = ax_add(r, ax_mul(ax_div(rr, before), p));
    count = ax_add(count, 1);
  }
  out[0] = ax_sub(in[0], x);
  out[3] = count;
}

/* -> all losses, norms and CG's steps, the final loss, accuracy, w[:4] */
static AX_BODY(everything) {
  ax_value x = chirp(0.29, AX_TYPE(AX_F32, SAMPLES, FEATURES));
  ax_value noise = chirp(0.41, AX_TYPE(AX_F32, SAMPLES));
  ax_value true_w = ax_mul(2, ax_cos(ax_iota(AX_F32, AX_DIMS(FEATURES), 0)));
  ax_value y = ax_sign(ax_add(ax_matmul(x, true_w), ax_mul(2, noise)));
  ax_value state[] = {ax_full_like(true_w, 0), x, y}, made[4];
  AX_LOOP (i, 0, ITERATIONS, &state[0]) {
    ax_shard_map(&mesh, "; data*2 -> ; *3", AX_FN(newton_step, 3, 4), state, made);
    state[0] = made[0];
    for (int k = 0; k < 3; k++)
      ax_collect(&out[k], made[1 + k]);
  }
  ax_shard_map(&mesh, "; data*2 -> ", AX_FN(loss_fn, 3, 1), state, &out[3]);
  ax_value right = ax_eq(ax_sign(ax_matmul(x, state[0])), y);
  out[4] = ax_reduce_mean(ax_convert_element_type(right, AX_F32), AX_ALL_DIMS, false);
  out[5] = ax_index(state[0], ":4");
}

int main(void) {
  ax_host_array out[6];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 6), NULL, out));
  for (int i = 0; i < ITERATIONS; i++)
    printf("iteration %d loss %.6f grad norm %.2e cg steps %g\n", i, ax_host_at(&out[0], i),
           ax_host_at(&out[1], i), ax_host_at(&out[2], i));
  ax_print("final loss", &out[3]);
  ax_print("accuracy", &out[4]);
  ax_print("w[:4]", &out[5]);
}
