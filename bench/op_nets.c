/* Cases for b9 that are networks as users write them: training steps and passes of transformers for images and text, of networks of
   convolutions, of recurrent ones, of graphs, and of densities. bench/jax_nets.py has the same in JAX. */
#include <math.h>
#include <string.h>

#include "axle/axle.h"
#include "ops.h"

static ax_value mean_all(ax_value x) { return ax_reduce_mean(x, AX_ALL_DIMS, false); }
static ax_value sum_all(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static bool is_step(const op_case *c) { return strcmp(c->words[0], "sgd") == 0; }
static uint32_t inputs_of(const void *context) { return ((const op_case *)context)->in_count; }

/* --- What networks share --- */

static ax_value layer_norm(ax_value x, ax_value gain, ax_value bias) {
  ax_value d = ax_sub(x, ax_reduce_mean(x, AX_DIMS(-1), true)), variance = ax_reduce_mean(ax_square(d), AX_DIMS(-1), true);
  return ax_add(ax_mul(ax_mul(d, ax_rsqrt(ax_add(variance, 1e-5))), gain), bias);
}
static ax_value two_layers(ax_value x, ax_value w1, ax_value w2) {
  return ax_matmul(ax_gelu(ax_matmul(x, op_scaled(w1, 0.03))), op_scaled(w2, 0.03));
}
/* Attention of all places to all, or to those before; wqkv[w, 3w] has all three projections. */
static ax_value attend(ax_value x, ax_value wqkv, ax_value wo, int64_t heads, bool causal) {
  const ax_type t = ax_typeof(x); /* [b, t, w] */
  const int64_t key = t.dims[2] / heads;
  ax_value all = ax_reshape(ax_matmul(x, op_scaled(wqkv, 0.03)), AX_DIMS(t.dims[0], t.dims[1], 3, heads, key)), part[3];
  for (int i = 0; i < 3; i++) part[i] = ax_transpose(ax_at(all, i, 2), AX_DIMS(0, 2, 1, 3));
  ax_value scores = op_scaled(ax_einsum("bhqd,bhkd->bhqk", AX_VALUES(part[0], part[1])), 1 / sqrt((double)key));
  const int64_t square[] = {t.dims[1], t.dims[1]};
  ax_value past = ax_ge(ax_iota(AX_S32, AX_LIST(2, square), 0), ax_iota(AX_S32, AX_LIST(2, square), 1));
  if (causal) scores = ax_where(past, scores, op_number(t.dtype, -1e9));
  ax_value seen = ax_einsum("bhqk,bhkd->bqhd", AX_VALUES(ax_softmax(scores, -1), part[2]));
  return ax_matmul(ax_reshape(seen, AX_LIST(3, t.dims)), op_scaled(wo, 0.03));
}
static void transformer_weights(op_case *c, ax_dtype dtype, int64_t width) {
  OP_IN(c, dtype, width);
  OP_IN(c, dtype, width);
  OP_IN(c, dtype, width, 3 * width);
  OP_IN(c, dtype, width, width);
  OP_IN(c, dtype, width);
  OP_IN(c, dtype, width);
  OP_IN(c, dtype, width, 4 * width);
  OP_IN(c, dtype, 4 * width, width);
}
enum { of_transformer = 8 };
static ax_value transformer_layer(ax_value x, const ax_value *w, int64_t heads, bool causal) {
  x = ax_add(x, attend(layer_norm(x, w[0], w[1]), w[2], w[3], heads, causal));
  return ax_add(x, two_layers(layer_norm(x, w[4], w[5]), w[6], w[7]));
}
/* A step or a pass of `loss`, whose inputs from `first` on are weights. */
static void finish(op_case *c, uint32_t first, ax_function loss, ax_function step) {
  c->body = is_step(c) ? step : loss;
  c->out_count = is_step(c) ? 1 + c->in_count - first : 1;
}

/* --- Images in patches (ViT) --- */

static AX_BODY(vit_loss) { /* images, labels, patches' weights, places, layers.., classes' weights */
  const int64_t batch = op_int(context, 1), side = op_int(context, 2), patch = op_int(context, 3), along = side / patch,
                heads = op_int(context, 5), layers = op_int(context, 6);
  ax_value split = ax_reshape(in[0], AX_DIMS(batch, along, patch, along, patch, 3));
  ax_value patches = ax_reshape(ax_transpose(split, AX_DIMS(0, 1, 3, 2, 4, 5)), AX_DIMS(batch, along * along, patch * patch * 3));
  ax_value x = ax_add(ax_matmul(patches, op_scaled(in[2], 0.03)), in[3]);
  for (int64_t i = 0; i < layers; i++) x = transformer_layer(x, in + 4 + of_transformer * i, heads, false);
  ax_value logits = ax_matmul(ax_reduce_mean(x, AX_DIMS(1), false), op_scaled(in[4 + of_transformer * layers], 0.05));
  out[0] = op_cross_entropy(logits, in[1]);
}
static AX_BODY(vit_step) { op_descend(AX_CLOSURE(vit_loss, inputs_of(context), 1, context), in, 2, out); }
static void vit(op_case *c) { /* fwd|sgd BATCH SIDE PATCH WIDTH HEADS LAYERS */
  const int64_t batch = op_int(c, 1), side = op_int(c, 2), patch = op_int(c, 3), width = op_int(c, 4), layers = op_int(c, 6),
                places = side / patch * (side / patch), classes = 10;
  OP_IN(c, AX_F32, batch, side, side, 3);
  OP_IN(c, AX_S32, batch);
  OP_IN(c, AX_F32, patch * patch * 3, width);
  OP_IN(c, AX_F32, places, width);
  for (int64_t i = 0; i < layers; i++) transformer_weights(c, AX_F32, width);
  OP_IN(c, AX_F32, width, classes);
  c->below = classes;
  const double rows = (is_step(c) ? 3 : 1) * (double)(batch * places), w = (double)width;
  op_product(c, AX_F32, rows, w, (double)layers * (12 * w + 2 * (double)places) + (double)(patch * patch * 3));
  finish(c, 2, vit_loss, vit_step);
}

/* --- A decoder of text trained by Adam, with masks of dropout that are given --- */

enum { dropouts = 2, adam_data = 1 + dropouts };

static ax_value dropped(ax_value x, ax_value mask) { return ax_mul(x, ax_where(ax_gt(mask, 0.4), op_number(AX_F32, 1 / 0.9), 0)); }
static AX_BODY(dropout_loss) { /* x[b, t, w], masks of both branches, a layer's weights */
  const ax_value *w = in + adam_data;
  ax_value x = in[0];
  x = ax_add(x, dropped(attend(layer_norm(x, w[0], w[1]), w[2], w[3], op_int(context, 3), true), in[1]));
  x = ax_add(x, dropped(two_layers(layer_norm(x, w[4], w[5]), w[6], w[7]), in[2]));
  out[0] = mean_all(ax_square(x));
}
static AX_BODY(dropout_step) { /* then the weights' means and mean squares; out: the loss, weights, both means */
  enum { n = of_transformer, inputs = adam_data + n };
  ax_value slopes[1 + n];
  const ax_fn loss = AX_CLOSURE(dropout_loss, inputs, 1, context);
  ax_value_and_grad(loss, AX_RANGE(adam_data, n), AX_LIST(inputs, in), AX_LIST(1 + n, slopes));
  out[0] = slopes[0];
  for (int i = 0; i < n; i++) {
    ax_value g = slopes[1 + i], m = ax_add(ax_mul(in[inputs + i], 0.9), ax_mul(g, 0.1)),
             v = ax_add(ax_mul(in[inputs + n + i], 0.999), ax_mul(ax_square(g), 0.001));
    out[1 + i] = ax_sub(in[adam_data + i], ax_div(ax_mul(m, 0.01), ax_add(ax_sqrt(v), 1e-8)));
    out[1 + n + i] = m;
    out[1 + 2 * n + i] = v;
  }
}
static void dropout(op_case *c) { /* BATCH LENGTH WIDTH HEADS */
  const int64_t batch = op_int(c, 0), length = op_int(c, 1), width = op_int(c, 2);
  for (int i = 0; i < adam_data; i++) OP_IN(c, AX_F32, batch, length, width);
  for (int i = 0; i < 3; i++) transformer_weights(c, AX_F32, width);
  op_product(c, AX_F32, 3 * (double)(batch * length), (double)width, 12 * (double)width + 2 * (double)length);
  c->body = dropout_step;
  c->out_count = 1 + 3 * of_transformer;
}

/* --- Layers over places and over features in turn (MLP-mixer) --- */

enum { of_mixer = 8 };

static ax_value mixer_layer(ax_value x, const ax_value *w) {
  ax_value turned = ax_transpose(layer_norm(x, w[0], w[1]), AX_DIMS(0, 2, 1));
  x = ax_add(x, ax_transpose(two_layers(turned, w[2], w[3]), AX_DIMS(0, 2, 1)));
  return ax_add(x, two_layers(layer_norm(x, w[4], w[5]), w[6], w[7]));
}
static AX_BODY(mixer_loss) { /* x[b, p, w], layers.. */
  ax_value x = in[0];
  for (uint32_t i = 0; i < (inputs_of(context) - 1) / of_mixer; i++) x = mixer_layer(x, in + 1 + i * of_mixer);
  out[0] = mean_all(ax_square(x));
}
static AX_BODY(mixer_step) { op_descend(AX_CLOSURE(mixer_loss, inputs_of(context), 1, context), in, 1, out); }
static void mixer(op_case *c) { /* fwd|sgd BATCH PLACES WIDTH LAYERS */
  const int64_t batch = op_int(c, 1), places = op_int(c, 2), width = op_int(c, 3), layers = op_int(c, 4);
  OP_IN(c, AX_F32, batch, places, width);
  for (int64_t i = 0; i < layers; i++) {
    for (int k = 0; k < 2; k++) OP_IN(c, AX_F32, width);
    OP_IN(c, AX_F32, places, 2 * places);
    OP_IN(c, AX_F32, 2 * places, places);
    for (int k = 0; k < 2; k++) OP_IN(c, AX_F32, width);
    OP_IN(c, AX_F32, width, 4 * width);
    OP_IN(c, AX_F32, 4 * width, width);
  }
  const double each = (is_step(c) ? 3 : 1) * (double)(layers * batch * places);
  op_product(c, AX_F32, each, (double)width, 4 * (double)places + 8 * (double)width);
  finish(c, 1, mixer_loss, mixer_step);
}

/* --- A U-net: two halvings, two doublings, each joined with what had its size before --- */

static ax_value conv_relu(ax_value x, ax_value w) {
  const ax_conv_options options = {.lhs = "NHWC", .rhs = "HWIO", .padding = "SAME"};
  const double taps = 9 * (double)ax_typeof(w).dims[2];
  return ax_relu(ax_conv_general_dilated(x, op_scaled(w, 1 / taps), &options));
}
static ax_value halved(ax_value x) { return ax_max_pool(x, AX_DIMS(2, 2), AX_DIMS(2, 2), NULL); }
static ax_value doubled(ax_value x) {
  const ax_type t = ax_typeof(x);
  ax_value apart = ax_reshape(x, AX_DIMS(t.dims[0], t.dims[1], 1, t.dims[2], 1, t.dims[3]));
  return ax_reshape(ax_broadcast_to(apart, AX_DIMS(t.dims[0], t.dims[1], 2, t.dims[2], 2, t.dims[3])),
                    AX_DIMS(t.dims[0], 2 * t.dims[1], 2 * t.dims[2], t.dims[3]));
}
static AX_BODY(unet_loss) { /* images, targets, weights */
  const ax_value *w = in + 2;
  ax_value whole = conv_relu(conv_relu(in[0], w[0]), w[1]), half = conv_relu(conv_relu(halved(whole), w[2]), w[3]),
           quarter = conv_relu(conv_relu(halved(half), w[4]), w[5]);
  half = conv_relu(ax_concatenate(AX_VALUES(doubled(quarter), half), 3), w[6]);
  whole = conv_relu(ax_concatenate(AX_VALUES(doubled(half), whole), 3), w[7]);
  ax_value made = ax_matmul(whole, op_scaled(w[8], 0.03));
  out[0] = mean_all(ax_square(ax_sub(made, in[1])));
}
static AX_BODY(unet_step) { op_descend(AX_CLOSURE(unet_loss, inputs_of(context), 1, context), in, 2, out); }
static void unet(op_case *c) { /* fwd|sgd BATCH SIDE WIDTH */
  const int64_t batch = op_int(c, 1), side = op_int(c, 2), w = op_int(c, 3);
  const int64_t convs[][3] = {{3, w, 1},         {w, w, 1},         {w, 2 * w, 2},     {2 * w, 2 * w, 2},
                              {2 * w, 4 * w, 4}, {4 * w, 4 * w, 4}, {6 * w, 2 * w, 2}, {3 * w, w, 1}}; /* from, to, of the side */
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, batch, side, side, 3);
  for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
    const double along = (double)side / (double)convs[i][2], places = (double)batch * along * along;
    OP_IN(c, AX_F32, 3, 3, convs[i][0], convs[i][1]);
    op_product(c, AX_F32, (is_step(c) ? 3 : 1) * places, (double)convs[i][1], 9 * (double)convs[i][0]);
  }
  OP_IN(c, AX_F32, w, 3);
  finish(c, 2, unet_loss, unet_step);
}

/* --- A variational autoencoder --- */

static AX_BODY(vae_loss) { /* x[b, n], noise[b, l], w1[n, h], wm[h, l], wv[h, l], w3[l, h], w4[h, n] */
  ax_value h = ax_tanh(ax_matmul(in[0], op_scaled(in[2], 0.003)));
  ax_value mean = ax_matmul(h, op_scaled(in[3], 0.01)), log_variance = ax_matmul(h, op_scaled(in[4], 0.001));
  ax_value z = ax_add(mean, ax_mul(ax_exp(ax_mul(log_variance, 0.5)), in[1]));
  ax_value logits = ax_matmul(ax_tanh(ax_matmul(z, op_scaled(in[5], 0.01))), op_scaled(in[6], 0.003));
  ax_value missed = sum_all(ax_sub(ax_softplus(logits), ax_mul(in[0], logits)));
  ax_value apart = sum_all(ax_sub(ax_add(ax_square(mean), ax_exp(log_variance)), ax_add(log_variance, 1)));
  out[0] = ax_div(ax_add(missed, ax_mul(apart, 0.5)), (double)op_int(context, 1));
}
static AX_BODY(vae_step) { op_descend(AX_CLOSURE(vae_loss, 7, 1, context), in, 2, out); }
static void vae(op_case *c) { /* fwd|sgd BATCH INPUTS HIDDEN LATENT */
  const int64_t batch = op_int(c, 1), n = op_int(c, 2), hidden = op_int(c, 3), latent = op_int(c, 4);
  OP_IN(c, AX_F32, batch, n);
  OP_IN(c, AX_F32, batch, latent);
  OP_IN(c, AX_F32, n, hidden);
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, hidden, latent);
  OP_IN(c, AX_F32, latent, hidden);
  OP_IN(c, AX_F32, hidden, n);
  op_product(c, AX_F32, (is_step(c) ? 3 : 1) * (double)batch, (double)hidden, 2 * (double)n + 3 * (double)latent);
  finish(c, 2, vae_loss, vae_step);
}

/* --- Messages along the edges of a graph --- */

static AX_BODY(graph_loss) { /* x[n, w], from[e], for each layer own[w, w], others'[w, w] */
  const ax_type t = ax_typeof(in[0]);
  const int64_t edges = op_int(context, 2), layers = op_int(context, 4);
  ax_value to = ax_rem(ax_add(ax_mul(in[1], 3), ax_iota(AX_S32, AX_LIST(1, &edges), 0)), t.dims[0]), h = in[0];
  for (int64_t i = 0; i < layers; i++) {
    const ax_value *w = in + 2 + 2 * i;
    ax_value sent = ax_take(ax_matmul(h, op_scaled(w[1], 0.01)), in[1], 0);
    ax_value heard = ax_at_add(ax_full(AX_F32, AX_LIST(2, t.dims), 0), to, sent, 0, NULL);
    h = ax_relu(ax_add(ax_matmul(h, op_scaled(w[0], 0.01)), heard));
  }
  out[0] = mean_all(ax_square(h));
}
static AX_BODY(graph_step) { op_descend(AX_CLOSURE(graph_loss, inputs_of(context), 1, context), in, 2, out); }
static void graph(op_case *c) { /* fwd|sgd NODES EDGES WIDTH LAYERS */
  const int64_t nodes = op_int(c, 1), edges = op_int(c, 2), width = op_int(c, 3), layers = op_int(c, 4);
  OP_IN(c, AX_F32, nodes, width);
  OP_IN(c, AX_S32, edges);
  for (int64_t i = 0; i < 2 * layers; i++) OP_IN(c, AX_F32, width, width);
  c->below = nodes;
  op_product(c, AX_F32, (is_step(c) ? 3 : 1) * (double)nodes, (double)width, 2 * (double)(layers * width));
  finish(c, 2, graph_loss, graph_step);
}

/* --- Recurrent networks of text --- */

static ax_value gru(ax_value x, ax_value h, ax_value u) { /* x: what the input gives to all three gates */
  const int64_t w = ax_typeof(h).dims[1];
  ax_value all = ax_matmul(h, u), gate[3], own[3];
  ax_split(x, AX_DIMS(w, w, w), 1, AX_LIST(3, gate));
  ax_split(all, AX_DIMS(w, w, w), 1, AX_LIST(3, own));
  ax_value r = ax_logistic(ax_add(gate[0], own[0])), z = ax_logistic(ax_add(gate[1], own[1])),
           made = ax_tanh(ax_add(gate[2], ax_mul(r, own[2])));
  return ax_add(made, ax_mul(z, ax_sub(h, made)));
}
/* Text is read by one cell and written by another, which looks at all that was read. */
static AX_BODY(seq2seq_loss) { /* read[t, b], written[t, b], table[v, w], wr[w, 3w], ur, ww[2w, 3w], uw, classes[w, v] */
  const int64_t length = op_int(context, 1), batch = op_int(context, 2), width = op_int(context, 3);
  const int64_t dims[] = {batch, width};
  ax_value ur = op_scaled(in[4], 0.01), uw = op_scaled(in[6], 0.01), ww = op_scaled(in[5], 0.01);
  ax_value h = ax_full(AX_F32, AX_LIST(2, dims), 0), read, written;
  AX_SCAN (x, ax_matmul(ax_take(in[2], in[0], 0), op_scaled(in[3], 0.01)), &h) {
    h = gru(x, h, ur);
    ax_collect(&read, h);
  }
  AX_SCAN (x, ax_take(in[2], in[1], 0), &h) {
    ax_value shares = ax_softmax(ax_einsum("bw,tbw->bt", AX_VALUES(h, read)), -1);
    ax_value looked_at = ax_einsum("bt,tbw->bw", AX_VALUES(shares, read));
    h = gru(ax_matmul(ax_concatenate(AX_VALUES(x, looked_at), 1), ww), h, uw);
    ax_collect(&written, h);
  }
  ax_value logits = ax_matmul(ax_reshape(written, AX_DIMS(length * batch, width)), op_scaled(in[7], 0.05));
  out[0] = op_cross_entropy(logits, ax_reshape(in[0], AX_DIMS(length * batch)));
}
static AX_BODY(seq2seq_step) { op_descend(AX_CLOSURE(seq2seq_loss, 8, 1, context), in, 2, out); }
static void seq2seq(op_case *c) { /* fwd|sgd LENGTH BATCH WIDTH VOCABULARY */
  const int64_t length = op_int(c, 1), batch = op_int(c, 2), width = op_int(c, 3), words = op_int(c, 4);
  for (int i = 0; i < 2; i++) OP_IN(c, AX_S32, length, batch);
  OP_IN(c, AX_F32, words, width);
  for (int i = 0; i < 4; i++) OP_IN(c, AX_F32, (i == 2 ? 2 : 1) * width, 3 * width);
  OP_IN(c, AX_F32, width, words);
  c->below = words;
  const double each = 15 * (double)width + (double)words + 2 * (double)length;
  op_product(c, AX_F32, (is_step(c) ? 3 : 1) * (double)(length * batch), (double)width, each);
  finish(c, 2, seq2seq_loss, seq2seq_step);
}

static AX_BODY(lm_loss) { /* text[t, b], table[v, w], w[w, 4w], u[w, 4w] */
  const int64_t length = op_int(context, 2), batch = op_int(context, 3), width = op_int(context, 4), dims[] = {batch, width};
  const ax_dtype dtype = ax_typeof(in[1]).dtype;
  ax_value h = ax_full(dtype, AX_LIST(2, dims), 0), cell = h, u = op_scaled(in[3], 0.01), states;
  AX_SCAN (x, ax_matmul(ax_take(in[1], in[0], 0), op_scaled(in[2], 0.01)), &h, &cell) {
    ax_value gate[4];
    ax_split(ax_add(x, ax_matmul(h, u)), AX_DIMS(width, width, width, width), 1, AX_LIST(4, gate));
    cell = ax_add(ax_mul(ax_logistic(gate[1]), cell), ax_mul(ax_logistic(gate[0]), ax_tanh(gate[2])));
    h = ax_mul(ax_logistic(gate[3]), ax_tanh(cell));
    ax_collect(&states, h);
  }
  ax_value rows = ax_reshape(states, AX_DIMS(length * batch, width));
  ax_value logits = op_scaled(ax_einsum("nw,vw->nv", AX_VALUES(rows, in[1])), 0.05);
  out[0] = op_cross_entropy(logits, ax_reshape(in[0], AX_DIMS(length * batch)));
}
static AX_BODY(lm_step) { op_descend(AX_CLOSURE(lm_loss, 4, 1, context), in, 1, out); }
static void lm(op_case *c) { /* fwd|sgd DTYPE LENGTH BATCH WIDTH VOCABULARY */
  const ax_dtype dtype = op_dtype(c->words[1]);
  const int64_t length = op_int(c, 2), batch = op_int(c, 3), width = op_int(c, 4), words = op_int(c, 5);
  OP_IN(c, AX_S32, length, batch);
  OP_IN(c, dtype, words, width);
  for (int i = 0; i < 2; i++) OP_IN(c, dtype, width, 4 * width);
  c->below = words;
  op_product(c, dtype, (is_step(c) ? 3 : 1) * (double)(length * batch), (double)width, 8 * (double)width + (double)words);
  finish(c, 1, lm_loss, lm_step);
}

/* --- Densities; numbers of 8 bits --- */

static AX_BODY(density_loss) { /* x[b, n], y[b, d], w[n, h], shares[h, k], means[h, k d], deviations[h, k d] */
  const ax_type y = ax_typeof(in[1]);
  const int64_t kinds = op_int(context, 4), dims[] = {y.dims[0], kinds, y.dims[1]};
  ax_value h = ax_tanh(ax_matmul(in[0], op_scaled(in[2], 0.01)));
  ax_value shares = ax_log_softmax(ax_matmul(h, op_scaled(in[3], 0.03)), -1);
  ax_value means = ax_reshape(ax_matmul(h, op_scaled(in[4], 0.01)), AX_LIST(3, dims));
  ax_value logs = ax_reshape(ax_matmul(h, op_scaled(in[5], 0.001)), AX_LIST(3, dims));
  ax_value off = ax_mul(ax_sub(ax_expand_dims(in[1], 1), means), ax_exp(ax_neg(logs)));
  ax_value each = ax_sub(shares, ax_reduce_sum(ax_add(ax_mul(ax_square(off), 0.5), logs), AX_DIMS(2), false));
  out[0] = ax_neg(mean_all(ax_logsumexp(each, AX_DIMS(1), false)));
}
static AX_BODY(density_step) { op_descend(AX_CLOSURE(density_loss, 6, 1, context), in, 2, out); }
static void density(op_case *c) { /* fwd|sgd BATCH INPUTS HIDDEN KINDS DIMENSIONS */
  const int64_t batch = op_int(c, 1), n = op_int(c, 2), hidden = op_int(c, 3), kinds = op_int(c, 4), d = op_int(c, 5);
  OP_IN(c, AX_F32, batch, n);
  OP_IN(c, AX_F32, batch, d);
  OP_IN(c, AX_F32, n, hidden);
  OP_IN(c, AX_F32, hidden, kinds);
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, hidden, kinds * d);
  op_product(c, AX_F32, (is_step(c) ? 3 : 1) * (double)batch, (double)hidden, (double)(n + kinds + 2 * kinds * d));
  finish(c, 2, density_loss, density_step);
}

/* Rows are scaled to 8 bits before each layer, whose weights have 8 bits; sums have 32. */
static AX_BODY(quantised_body) { /* x[b, w], weights s8[w, w].. */
  ax_value x = in[0];
  for (uint32_t i = 1; i < inputs_of(context); i++) {
    ax_value step = ax_div(ax_reduce_max(ax_abs(x), AX_DIMS(1), true), 127);
    ax_value whole = ax_convert_element_type(ax_convert_element_type(ax_round(ax_div(x, step)), AX_S8), AX_S32);
    ax_value sums = ax_matmul(whole, ax_convert_element_type(in[i], AX_S32));
    x = ax_relu(ax_sub(ax_mul(ax_convert_element_type(sums, AX_F32), ax_mul(step, 0.001)), 0.25));
  }
  out[0] = x;
}
static void quantised(op_case *c) { /* BATCH WIDTH LAYERS */
  const int64_t batch = op_int(c, 0), width = op_int(c, 1), layers = op_int(c, 2);
  OP_IN(c, AX_F32, batch, width);
  for (int64_t i = 0; i < layers; i++) OP_IN(c, AX_S8, width, width);
  op_product(c, AX_S8, (double)batch, (double)width, (double)(layers * width));
  c->body = quantised_body;
}

const op_family op_net_families[] = {
    {"vit", vit},         {"dropout", dropout}, {"mixer", mixer},     {"unet", unet},           {"vae", vae}, {"graph", graph},
    {"seq2seq", seq2seq}, {"lm", lm},           {"density", density}, {"quantised", quantised}, {NULL, NULL},
};
