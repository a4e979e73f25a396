/* The training step of a two-layer classifier: mlp.py says the same in JAX. */
#include "vectors/vectors.h"

enum { CLASSES = 4, STEPS = 3 };

/* in: the weights; context: x and y. */
BODY(loss) {
  const ax_value *data = context;
  ax_value product = ax_matmul(data[0], in[0]), hidden = ax_max(product, ax_full_like(product, 0));
  ax_value logits = ax_psum(ax_matmul(hidden, in[1]), "model");
  ax_value each = ax_reduce_sum(ax_mul(ax_log_softmax(logits, -1), data[1]), AX_DIMS(-1), false);
  out[0] = ax_pmean(ax_neg(ax_reduce_mean(each, AX_ALL_DIMS, false)), "data");
}

/* in: w1, w2, x, labels; out: the loss before each step, then the weights. */
BODY(train) {
  ax_value w[] = {in[0], in[1]}, data[] = {in[2], ax_one_hot(in[3], CLASSES, AX_F32)};
  for (int step = 0; step < STEPS; step++) {
    ax_value made[3];
    ax_value_and_grad(AX_CLOSURE(loss, 2, 1, data), AX_FIRST(2), w, made);
    out[step] = made[0];
    for (int i = 0; i < 2; i++) w[i] = ax_sub(w[i], ax_mul(ax_full_like(w[i], 0.1), made[1 + i]));
  }
  out[STEPS] = w[0];
  out[STEPS + 1] = w[1];
}

static const vector_case mlp_cases[] = {
    {"mlp", "data=4,model=2 data=8,model=1 data=2,model=4 data=1,model=2 data=1,model=1",
     "_/model model data data > . . . _/model model", .body = train, .in = 4, .out = 5, .modes = "v", .scaled = true},
};

const VECTOR_GROUP(mlp);
