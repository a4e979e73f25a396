#include <stdio.h>

#include <axle/axle.h>

enum { SAMPLES = 256, FEATURES = 12, ITERATIONS = 6, CG_MAX = 50 };
static const double L2 = 1e-2, CG_TOL = 1e-3;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "data", .size = 8}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), type.rank, type.dims);
}

/* w, x, y, on each device -> loss */
static AX_BODY(loss_fn) {
  ax_value losses = ax_softplus(ax_neg(ax_mul(in[2], ax_matmul(in[1], in[0]))));
  ax_value loss = ax_pmean(ax_reduce_mean(losses, AX_ALL_DIMS, false), "data");
  out[0] = ax_add(loss, ax_mul(0.5 * L2, ax_matmul(in[0], in[0])));
}

/* x, r, p, rr, count; the context is the bound for rr */
static AX_BODY(unfinished) {
  out[0] = ax_and(ax_gt(in[3], *(ax_value *)context), ax_lt(in[4], CG_MAX));
}

/* x, r, p, rr, count -> the next; the context is where the Hessian is taken: w, x, y */
static AX_BODY(cg_step) {
  ax_value p = in[2], ap;
  ax_hvp(AX_FN(loss_fn, 3, 1), AX_FIRST(1), context, &p, NULL, &ap);
  ax_value alpha = ax_div(in[3], ax_matmul(p, ap));
  out[0] = ax_add(in[0], ax_mul(alpha, p));
  out[1] = ax_sub(in[1], ax_mul(alpha, ap));
  out[3] = ax_matmul(out[1], out[1]);
  out[2] = ax_add(out[1], ax_mul(ax_div(out[3], in[3]), p));
  out[4] = ax_add(in[4], 1);
}

/* w, x, y, on each device -> the next w, x, y, loss, |grad|, CG's steps */
static AX_BODY(newton_step) {
  ax_value_and_grad(AX_FN(loss_fn, 3, 1), AX_FIRST(1), in, &out[3]);
  ax_value b = out[4], bb = ax_matmul(b, b), bound = ax_mul(CG_TOL * CG_TOL, bb);
  ax_value cg[] = {ax_full_like(b, 0), b, b, bb, ax_full(AX_S32, AX_DIMS(), 0)};
  ax_while(AX_CLOSURE(unfinished, 5, 1, &bound), AX_CLOSURE(cg_step, 5, 5, in), cg, cg);
  out[0] = ax_sub(in[0], cg[0]);
  out[1] = in[1];
  out[2] = in[2];
  out[4] = ax_sqrt(bb);
  out[5] = cg[4];
}

/* -> w, x, y, all losses, norms and CG's steps, the final loss, accuracy, w[:4] */
static AX_BODY(everything) {
  ax_value x = chirp(0.29, AX_TYPE(AX_F32, SAMPLES, FEATURES));
  ax_value noise = chirp(0.41, AX_TYPE(AX_F32, SAMPLES));
  ax_value true_w = ax_mul(2, ax_cos(ax_iota(AX_F32, AX_DIMS(FEATURES), 0)));
  ax_value y = ax_sign(ax_add(ax_matmul(x, true_w), ax_mul(2, noise)));
  ax_value init[] = {ax_full_like(true_w, 0), x, y};
  ax_fn step = AX_SHARDED(&mesh, "; data*2 -> ; data*2; *3", AX_FN(newton_step, 3, 6));
  ax_scan(step, 3, ITERATIONS, false, init, out);
  ax_shard_map(&mesh, "; data*2 -> ", AX_FN(loss_fn, 3, 1), out, &out[6]);
  ax_value right = ax_eq(ax_sign(ax_matmul(x, out[0])), y);
  out[7] = ax_reduce_mean(ax_convert_element_type(right, AX_F32), AX_ALL_DIMS, false);
  out[8] = ax_slice_in_dim(out[0], 0, 4, 1, 0);
}

int main(void) {
  ax_host_array out[9];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 9), NULL, out));
  for (int i = 0; i < ITERATIONS; i++)
    printf("iteration %d loss %.6f grad norm %.2e cg steps %g\n", i, ax_host_at(&out[3], i),
           ax_host_at(&out[4], i), ax_host_at(&out[5], i));
  ax_print("final loss", &out[6]);
  ax_print("accuracy", &out[7]);
  ax_print("w[:4]", &out[8]);
}
