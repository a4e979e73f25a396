#include <math.h>

#include <axle/axle.h>

enum { SEQ = 32, DIM = 16, HEADS = 4, HEAD = 8, HIDDEN = 64 };
enum { WQ, WK, WV, WO, W1, W2, X, OPERANDS, PARAMS = X };
static const ax_mesh mesh = {.count = 1, .axis = {{.name = "model", .size = 4}}};

static ax_value chirp(double freq, ax_type type) {
  ax_value k = ax_iota(AX_F64, AX_DIMS(ax_type_elems(&type)), 0);
  ax_value wave = ax_sin(ax_mul(ax_mul(freq, k), k));
  return ax_reshape(ax_convert_element_type(wave, type.dtype), AX_LIST(type.rank, type.dims));
}

static ax_value layer_norm(ax_value x) {
  ax_value centered = ax_sub(x, ax_reduce_mean(x, AX_DIMS(-1), true));
  ax_value variance = ax_reduce_mean(ax_square(centered), AX_DIMS(-1), true);
  return ax_mul(centered, ax_rsqrt(ax_add(variance, 1e-5)));
}

/* Causal; of as many heads as the weights have. */
static ax_value attend(ax_value x, const ax_value *w) {
  ax_value row = ax_iota(AX_S32, AX_DIMS(SEQ, 1), 0), column = ax_iota(AX_S32, AX_DIMS(SEQ), 0), qkv[3];
  for (int i = 0; i < 3; i++)
    qkv[i] = ax_einsum("sd,dhe->she", AX_VALUES(x, w[i]));
  ax_value scores = ax_div(ax_einsum("she,the->hst", AX_VALUES(qkv[0], qkv[1])), sqrt(HEAD));
  ax_value weights = ax_softmax(ax_where(ax_ge(row, column), scores, -INFINITY), -1);
  return ax_reshape(ax_einsum("hst,the->she", AX_VALUES(weights, qkv[2])), AX_DIMS(SEQ, -1));
}

static ax_value gather(ax_value x, bool cut) { return cut ? ax_all_gather(x, "model", 0, true) : x; }
static ax_value scatter(ax_value x, bool cut) { return cut ? ax_psum_scatter(x, "model", 0, true) : x; }

/* Heads and hidden units are cut; between the products each device has some rows of the sequence. */
static ax_value block(const ax_value *in, bool cut) {
  ax_value mixed = attend(gather(layer_norm(in[X]), cut), in + WQ);
  ax_value x = ax_add(in[X], scatter(ax_matmul(mixed, in[WO]), cut));
  ax_value hidden = ax_gelu(ax_matmul(gather(layer_norm(x), cut), in[W1]));
  return ax_add(x, scatter(ax_matmul(hidden, in[W2]), cut));
}

static AX_BODY(cut_block) { out[0] = block(in, true); }
static AX_BODY(whole_block) { out[0] = block(in, false); }

/* params, x -> the mean square */
static AX_BODY(loss_fn) {
  ax_closed_call(*(ax_fn *)context, in, out);
  out[0] = ax_reduce_mean(ax_square(out[0]), AX_ALL_DIMS, false);
}

/* -> loss, norms of the gradients; the context is the block */
static AX_BODY(derive) {
  ax_type heads = AX_TYPE(AX_F32, DIM, HEADS, HEAD), wo = AX_TYPE(AX_F32, HEADS * HEAD, DIM),
          w1 = AX_TYPE(AX_F32, DIM, HIDDEN), w2 = AX_TYPE(AX_F32, HIDDEN, DIM);
  ax_value args[] = {ax_div(chirp(0.31, heads), 4), ax_div(chirp(0.37, heads), 4), ax_div(chirp(0.43, heads), 4),
                     ax_div(chirp(0.49, wo), 4), ax_div(chirp(0.55, w1), 4), ax_div(chirp(0.61, w2), 4),
                     chirp(0.29, AX_TYPE(AX_F32, SEQ, DIM))};
  ax_value_and_grad(AX_CLOSURE(loss_fn, OPERANDS, 1, context), AX_FIRST(PARAMS), args, out);
  for (int i = 1; i <= PARAMS; i++)
    out[i] = ax_global_norm(AX_VALUES(out[i]));
}

int main(void) {
  ax_fn blocks[] = {AX_SHARDED(&mesh, "_,model; _,model; _,model; model; _,model; model; model -> model",
                               AX_FN(cut_block, OPERANDS, 1)), AX_FN(whole_block, OPERANDS, 1)};
  ax_host_array out[1 + PARAMS];
  for (int k = 0; k < 2; k++) {
    ax_must(ax_apply(NULL, AX_CLOSURE(derive, 0, 1 + PARAMS, &blocks[k]), NULL, out));
    for (int i = 0; i <= PARAMS; i++)
      ax_print(i > 0 ? "norm" : k == 0 ? "cut: loss" : "whole: loss", &out[i]);
  }
}
