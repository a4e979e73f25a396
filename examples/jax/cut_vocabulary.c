#include <axle/axle.h>

enum { TOKENS = 64, DIM = 16, VOCAB = 96 };
static const ax_mesh mesh = {.count = 2, .axis = {{.name = "data", .size = 2},
                                                  {.name = "vocab", .size = 4}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

/* x, w, labels -> loss. No device has more than its rows and columns of the logits. */
static AX_BODY(cut_loss) {
  ax_value logits = ax_matmul(in[0], in[1]);
  int64_t columns = ax_typeof(logits).dims[1];
  ax_value top = ax_pmax(ax_stop_gradient(ax_reduce_max(logits, AX_DIMS(-1), true)), "vocab");
  ax_value total = ax_psum(ax_reduce_sum(ax_exp(ax_sub(logits, top)), AX_DIMS(-1), true), "vocab");
  /* All zeros on the devices that do not have the label's column. */
  ax_value place = ax_sub(in[2], ax_mul(ax_axis_index("vocab"), columns));
  ax_value mine = ax_mul(logits, ax_one_hot(place, columns, AX_F32));
  ax_value label = ax_psum(ax_reduce_sum(mine, AX_DIMS(-1), true), "vocab");
  ax_value losses = ax_sub(ax_add(ax_log(total), top), label);
  out[0] = ax_pmean(ax_reduce_mean(losses, AX_ALL_DIMS, false), "data");
}

static AX_BODY(full_loss) {
  ax_value log_probs = ax_log_softmax(ax_matmul(in[0], in[1]), -1);
  ax_value chosen = ax_take_along_axis(log_probs, ax_index(in[2], ":, None"), 1, NULL);
  out[0] = ax_neg(ax_reduce_mean(chosen, AX_ALL_DIMS, false));
}

/* -> what main prints */
static AX_BODY(compare) {
  ax_value labels = ax_rem(ax_mul(7, ax_square(ax_iota(AX_S32, AX_DIMS(TOKENS), 0))), VOCAB);
  ax_value found[3], expected[3], args[] = {chirp(0.29, AX_TYPE(AX_F32, TOKENS, DIM)),
                                            chirp(0.37, AX_TYPE(AX_F32, DIM, VOCAB)), labels};
  ax_fn cut = AX_SHARDED(&mesh, "data; _,vocab; data -> ", AX_FN(cut_loss, 3, 1));
  ax_value_and_grad(cut, AX_FIRST(2), args, found);
  ax_value_and_grad(AX_FN(full_loss, 3, 1), AX_FIRST(2), args, expected);
  for (int i = 0; i < 3; i++) {
    out[2 * i] = i == 0 ? found[0] : ax_global_norm(AX_VALUES(found[i]));
    out[2 * i + 1] = ax_allclose(found[i], expected[i], i == 0 ? 1e-5 : 1e-4, 1e-6);
  }
  out[6] = ax_index(found[2], ":2, -3:");
}

int main(void) {
  const char *labels[] = {"loss", "loss matches", "x grad norm", "x grad matches", "w grad norm",
                          "w grad matches", "w grad [:2, -3:]"};
  ax_host_array out[7];
  ax_must(ax_apply(NULL, AX_FN(compare, 0, 7), NULL, out));
  for (int i = 0; i < 7; i++)
    ax_print(labels[i], &out[i]);
}
