#include <math.h>

#include <axle/axle.h>

enum { TOKENS = 128, DIM = 16, HIDDEN = 32, EXPERTS = 8, CAPACITY = 3 };
static const double AUX_WEIGHT = 0.01;
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "expert", .size = 8}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* router, x -> one-hot dispatch [token, expert, slot], gates, balance loss, dropped tokens */
static AX_BODY(route) {
  ax_value probs = ax_softmax(ax_matmul(in[1], in[0]), -1);
  ax_value chosen = ax_one_hot(ax_argmax(probs, -1, AX_S32), EXPERTS, AX_F32);
  ax_value before = ax_mul(ax_sub(ax_cumsum(chosen, 0, false), 1), chosen);
  ax_value slot = ax_convert_element_type(ax_reduce_sum(before, AX_DIMS(-1), false), AX_S32);
  out[0] = ax_einsum("te,tc->tec", AX_VALUES(chosen, ax_one_hot(slot, CAPACITY, AX_F32)));
  out[1] = ax_reduce_sum(ax_mul(probs, chosen), AX_DIMS(-1), true);
  ax_value load = ax_pmean(ax_reduce_mean(chosen, AX_DIMS(0), false), "expert");
  ax_value importance = ax_pmean(ax_reduce_mean(probs, AX_DIMS(0), false), "expert");
  out[2] = ax_mul(EXPERTS, ax_matmul(load, importance));
  ax_value over = ax_convert_element_type(ax_ge(slot, CAPACITY), AX_S32);
  out[3] = ax_psum(ax_reduce_sum(over, AX_ALL_DIMS, false), "expert");
}

/* router, w_in, w_out, x, y -> loss, balance, dropped */
static AX_BODY(loss_fn) {
  ax_value x = in[3], y = in[4], routed[4];
  route((ax_value[]){in[0], x}, routed, NULL);
  ax_value slots = ax_einsum("tec,td->ecd", AX_VALUES(routed[0], x));
  slots = ax_all_to_all(slots, "expert", 0, 1, true);
  ax_value hidden = ax_gelu(ax_matmul(slots, in[1]));
  slots = ax_all_to_all(ax_matmul(hidden, in[2]), "expert", 1, 0, true);
  ax_value moe = ax_mul(routed[1], ax_einsum("tec,ecd->td", AX_VALUES(routed[0], slots)));
  ax_value error = ax_reduce_mean(ax_square(ax_sub(ax_add(x, moe), y)), AX_ALL_DIMS, false);
  out[0] = ax_add(ax_pmean(error, "expert"), ax_mul(AUX_WEIGHT, routed[2]));
  out[1] = routed[2];
  out[2] = routed[3];
}

/* -> loss, balance, dropped, norms of grads: router, w_in and w_out by expert; router's [0, :4] */
static AX_BODY(everything) {
  ax_value w_in = chirp(0.37, AX_TYPE(AX_F32, EXPERTS, DIM, HIDDEN));
  ax_value w_out = chirp(0.53, AX_TYPE(AX_F32, EXPERTS, HIDDEN, DIM));
  ax_value x = chirp(0.29, AX_TYPE(AX_F32, TOKENS, DIM));
  ax_value args[] = {chirp(0.61, AX_TYPE(AX_F32, DIM, EXPERTS)), ax_div(w_in, sqrt(DIM)),
                     ax_div(w_out, sqrt(HIDDEN)), x, ax_cos(ax_mul(2, x))};
  ax_fn loss = AX_SHARDED(&mesh, "; expert; expert; expert; expert -> ", AX_FN(loss_fn, 5, 3));
  ax_value_and_grad(loss, AX_FIRST(3), args, out);
  out[6] = ax_index(out[3], "0, :4");
  out[3] = ax_global_norm(AX_VALUES(out[3]));
  for (int i = 4; i < 6; i++)
    out[i] = ax_sqrt(ax_reduce_sum(ax_square(out[i]), AX_DIMS(1, 2), false));
}

int main(void) {
  ax_host_array out[7];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, 7), NULL, out));
  ax_print("loss", &out[0]);
  ax_print("balance", &out[1]);
  ax_print("dropped", &out[2]);
  ax_print("router grad norm", &out[3]);
  ax_print("router grad [0, :4]", &out[6]);
  ax_print("w_in grad norm by expert", &out[4]);
  ax_print("w_out grad norm by expert", &out[5]);
}
