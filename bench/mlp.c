/* Written as a user would: no rewriting by hand, psum and pmean where the mathematics has a sum over devices. */
#include "mlp.h"

#include "axle/collectives.h"
#include "axle/ops.h"

#define DIMS(...) \
  sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) { __VA_ARGS__ }

/* The hidden layer lies over "model": each device has its columns of w1 and rows of w2. */
static void mlp_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value w1 = in[0], w2 = in[1], x = in[2], y = in[3];
  ax_value hidden = ax_relu(ax_matmul(x, w1));
  ax_value logits = ax_psum(ax_matmul(hidden, w2), "model");
  ax_value likelihood = ax_reduce_sum(ax_mul(ax_log_softmax(logits, -1), y), AX_DIMS(-1), false);
  out[0] = ax_pmean(ax_neg(ax_reduce_mean(likelihood, AX_ALL_DIMS, false)), "data");
}

model *mlp_model(const mlp_sizes *s) {
  model *m = model_create("data=4,model=2", mlp_loss, s, 2, 4);
  model_input(m, "_,model", AX_F32, DIMS(s->in, s->hidden), "w1", 0);
  model_input(m, "model", AX_F32, DIMS(s->hidden, s->classes), "w2", 0);
  model_input(m, "data", AX_F32, DIMS(s->batch, s->in), "x", 0);
  model_input(m, "data", AX_F32, DIMS(s->batch, s->classes), "y", 0);
  return m;
}

static void linear_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(error, error), AX_ALL_DIMS, false), "data");
}

model *linear_model(const char *mesh, int64_t devices, int64_t batch, int64_t in, int64_t out) {
  model *m = model_create(mesh, linear_loss, NULL, 1, 3);
  model_input(m, "", AX_F32, DIMS(in, out), "w", 0);
  model_input(m, "data", AX_F32, DIMS(devices * batch, in), "x", 0);
  model_input(m, "data", AX_F32, DIMS(devices * batch, out), "y", 0);
  return m;
}
