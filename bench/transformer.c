/* Heads and the hidden layer lie over "model": each block has a psum after attention and one after the gelu layer. */
#include "transformer.h"

#include <math.h>

#include "axle/ops.h"

#define AXES(...) ((const int64_t[]){__VA_ARGS__})
#define DIMS(...) AX_DIMS(__VA_ARGS__)

/* One layer's weights, as they stand among the inputs. */
typedef struct layer {
  ax_value wqkv, wo, w1, w2, g1, g2;
} layer;
enum { weights_per_layer = 6 };

static layer layer_of(const ax_value *in, int64_t index) {
  const ax_value *w = in + weights_per_layer * index;
  return (layer){w[0], w[1], w[2], w[3], w[4], w[5]};
}

static ax_value rms_norm(ax_value x, ax_value gain) {
  ax_value square = ax_expand_dims(ax_reduce_mean(ax_mul(x, x), AX_LIST(1, AXES(-1)), false), -1);
  ax_value scale = ax_rsqrt(ax_add(square, ax_full_like(square, 1e-5)));
  return ax_mul(ax_mul(x, scale), gain);
}

/* a[.., n] b[n, ..] */
static ax_value contract(ax_value a, ax_value b, uint32_t count) {
  int64_t last = ax_typeof(a).rank, from[2] = {0, 1}, of[2] = {last - count, last - 1};
  return ax_dot_general(a, b, AX_LIST(count, of), AX_LIST(count, from), AX_DIMS(), AX_DIMS());
}

/* Part `index` of queries, keys and values: [batch, length, 3, heads, key] -> [batch, length, heads, key] */
static ax_value part(ax_value qkv, int64_t index) {
  ax_type t = ax_typeof(qkv);
  int64_t start[5] = {0, 0, index, 0, 0}, limit[5] = {t.dims[0], t.dims[1], index + 1, t.dims[3], t.dims[4]};
  return ax_reshape(ax_slice(qkv, start, limit, NULL), DIMS(t.dims[0], t.dims[1], t.dims[3], t.dims[4]));
}

/* Row t is true up to column t. */
static ax_value causal_mask(int64_t length) {
  ax_value row = ax_iota(AX_S32, DIMS(length, length), 0), column = ax_iota(AX_S32, DIMS(length, length), 1);
  return ax_ge(row, column);
}

static ax_value attention(const model *m, ax_value x, layer w, ax_value mask) {
  ax_value qkv = contract(x, w.wqkv, 1);
  ax_value query = part(qkv, 0), key = part(qkv, 1), value = part(qkv, 2);
  double root = sqrt((double)ax_typeof(w.wqkv).dims[3]);
  /* batch, heads, length, length */
  ax_value scores = ax_dot_general(query, key, AX_DIMS(3), AX_DIMS(3), AX_DIMS(0, 2),
                                   AX_DIMS(0, 2));
  scores = ax_div(scores, ax_full_like(scores, root));
  scores = ax_where(mask, scores, ax_full(AX_F32, AX_DIMS(), -1e9));
  /* batch, heads, length, key */
  ax_value seen = ax_dot_general(ax_softmax(scores, -1), value, AX_DIMS(3), AX_DIMS(1), AX_DIMS(0, 1),
                                 AX_DIMS(0, 2));
  seen = ax_transpose(seen, AXES(0, 2, 1, 3));
  return model_sum(m, contract(seen, w.wo, 2), "model");
}

static ax_value feed_forward(const model *m, ax_value x, layer w) {
  return model_sum(m, ax_matmul(ax_gelu(ax_matmul(x, w.w1)), w.w2), "model");
}

/* Logits: [batch, length, vocabulary] */
static ax_value forward(const model *m, const ax_value *in, ax_value embedding, ax_value one_hot) {
  const transformer_sizes *s = m->sizes;
  ax_value h = ax_matmul(one_hot, embedding), mask = causal_mask(s->length);
  for (int64_t l = 0; l < s->layers; l++) {
    layer w = layer_of(in, l);
    h = ax_add(h, attention(m, rms_norm(h, w.g1), w, mask));
    h = ax_add(h, feed_forward(m, rms_norm(h, w.g2), w));
  }
  return ax_matmul(h, ax_transpose(embedding, AXES(1, 0)));
}

/* x[:, from : until] */
static ax_value positions(ax_value x, int64_t from, int64_t until) {
  ax_type t = ax_typeof(x);
  return ax_slice(x, AXES(0, from, 0), AXES(t.dims[0], until, t.dims[2]), NULL);
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  const transformer_sizes *s = m->sizes;
  ax_value embedding = in[weights_per_layer * s->layers], tokens = in[weights_per_layer * s->layers + 1];
  ax_value one_hot = ax_one_hot(tokens, s->vocabulary, AX_F32);
  ax_value logits = forward(m, in, embedding, one_hot);
  ax_value guess = ax_log_softmax(positions(logits, 0, s->length - 1), -1);
  ax_value likelihood = ax_reduce_sum(ax_mul(guess, positions(one_hot, 1, s->length)), AX_DIMS(-1), false);
  out[0] = model_mean(m, ax_neg(ax_reduce_mean(likelihood, AX_ALL_DIMS, false)), "data");
}

model *transformer_model(const transformer_sizes *s) {
  uint32_t weight_count = (uint32_t)(weights_per_layer * s->layers + 1);
  model *m = model_create("data=4,model=2", loss, s, weight_count, weight_count + 1);
  int64_t key = s->width / s->heads;
  for (int l = 0; l < s->layers; l++) {
    model_input(m, "_,_,model", AX_F32, DIMS(s->width, 3, s->heads, key), "wqkv%d", l);
    model_input(m, "model", AX_F32, DIMS(s->heads, key, s->width), "wo%d", l);
    model_input(m, "_,model", AX_F32, DIMS(s->width, s->hidden), "w1%d", l);
    model_input(m, "model", AX_F32, DIMS(s->hidden, s->width), "w2%d", l);
    model_input(m, "", AX_F32, DIMS(s->width), "g1%d", l);
    model_input(m, "", AX_F32, DIMS(s->width), "g2%d", l);
  }
  model_input(m, "", AX_F32, DIMS(s->vocabulary, s->width), "e", 0);
  model_input(m, "data", AX_S32, DIMS(s->batch, s->length), "tok", 0);
  return m;
}
