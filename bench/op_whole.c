/* Cases for b9 that are whole programs: training steps of a decoder of text with a mask, of a residual network, of a mixture of
   experts and of a recommender, a step of decoding with caches, and three simulations. bench/jax_ops.py has the same in JAX. */
#include <math.h>
#include <string.h>

#include "axle/transform.h"
#include "ops.h"

static const double rate = 0.1; /* of descent */

ax_value op_scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }
/* Masks of places that attention must not look at, as models write them. */
static ax_value masked_out(ax_dtype dtype) { return op_number(dtype, dtype == AX_F16 ? -6e4 : -1e9); }
static ax_value mean_all(ax_value x) { return ax_reduce_mean(x, AX_ALL_DIMS, false); }
static bool is_step(const op_case *c) { return strcmp(c->words[0], "sgd") == 0; }

void op_descend(ax_fn loss, const ax_value *in, uint32_t first, ax_value *out) {
  const uint32_t weights = loss.in_count - first;
  ax_value_and_grad(loss, AX_RANGE(first, weights), in, out);
  for (uint32_t i = 0; i < weights; i++) out[1 + i] = ax_sub(in[first + i], op_scaled(out[1 + i], rate));
}
ax_value op_cross_entropy(ax_value logits, ax_value labels) {
  const ax_type t = ax_typeof(logits);
  ax_value shares = ax_mul(ax_log_softmax(logits, -1), ax_one_hot(labels, t.dims[1], t.dtype));
  return op_scaled(ax_reduce_sum(shares, AX_ALL_DIMS, false), -1.0 / (double)t.dims[0]);
}

/* --- A block of a decoder: attention to what came before, and a layer of four times the width --- */

static ax_value root_mean_square_norm(ax_value x) {
  return ax_mul(x, ax_rsqrt(ax_add(ax_reduce_mean(ax_square(x), AX_DIMS(-1), true), op_number(ax_typeof(x).dtype, 1e-5))));
}
static ax_value heads_first(ax_value x, int64_t heads) { /* [b, t, w] as [b, h, t, k] */
  const ax_type t = ax_typeof(x);
  return ax_transpose(ax_reshape(x, AX_DIMS(t.dims[0], t.dims[1], heads, t.dims[2] / heads)), AX_DIMS(0, 2, 1, 3));
}
static ax_value attend_before(ax_value q, ax_value k, ax_value v) {
  const ax_type t = ax_typeof(q);
  ax_value scores = op_scaled(ax_einsum("bhqd,bhkd->bhqk", AX_VALUES(q, k)), 1 / sqrt((double)t.dims[3]));
  const int64_t square[] = {t.dims[2], t.dims[2]};
  ax_value past = ax_ge(ax_iota(AX_S32, AX_LIST(2, square), 0), ax_iota(AX_S32, AX_LIST(2, square), 1));
  ax_value seen = ax_where(past, scores, masked_out(t.dtype));
  return ax_einsum("bhqk,bhkd->bhqd", AX_VALUES(ax_softmax(seen, -1), v));
}
static AX_BODY(gpt_loss) { /* x[b, t, w], wq, wk, wv, wo, w1[w, 4w], w2[4w, w] */
  const int64_t heads = op_int(context, 5);
  const ax_type t = ax_typeof(in[0]);
  ax_value x = in[0], h = root_mean_square_norm(x), part[3];
  for (int i = 0; i < 3; i++) part[i] = heads_first(ax_matmul(h, op_scaled(in[1 + i], 0.03)), heads);
  ax_value seen = ax_transpose(attend_before(part[0], part[1], part[2]), AX_DIMS(0, 2, 1, 3));
  x = ax_add(x, ax_matmul(ax_reshape(seen, AX_LIST(3, t.dims)), op_scaled(in[4], 0.03)));
  x = ax_add(x, ax_matmul(ax_gelu(ax_matmul(root_mean_square_norm(x), op_scaled(in[5], 0.03))), op_scaled(in[6], 0.03)));
  out[0] = mean_all(ax_square(x));
}
static AX_BODY(gpt_step) { op_descend(AX_CLOSURE(gpt_loss, 7, 1, context), in, 1, out); }
static void gpt(op_case *c) { /* fwd|sgd DTYPE BATCH LENGTH WIDTH HEADS */
  const ax_dtype dtype = op_dtype(c->words[1]);
  const int64_t batch = op_int(c, 2), length = op_int(c, 3), width = op_int(c, 4);
  OP_IN(c, dtype, batch, length, width);
  for (int i = 0; i < 4; i++) OP_IN(c, dtype, width, width);
  OP_IN(c, dtype, width, 4 * width);
  OP_IN(c, dtype, 4 * width, width);
  const double rows = (double)(batch * length), w = (double)width, times = is_step(c) ? 3 : 1;
  op_product(c, dtype, times * rows, w, 12 * w);
  op_product(c, dtype, times * rows, 2 * (double)length, w);
  c->body = is_step(c) ? gpt_step : gpt_loss;
  c->out_count = is_step(c) ? 7 : 1;
}

/* --- ResNet-18: a convolution, four stages of two blocks of two, the mean of each feature, a layer --- */

enum { stages = 4, blocks = 2, most_weights = 64 };

typedef struct network {
  op_case *declared;  /* where weights are inputs to be; or */
  const ax_value *in; /* the weights that come next */
  ax_value x;
  int64_t side, features;
} network;

static ax_value next_weight(network *n, uint32_t rank, const int64_t *dims) {
  if (n->declared == NULL) return *n->in++;
  op_input(n->declared, AX_F32, rank, dims);
  return (ax_value){0};
}
/* A convolution, each feature brought to mean 0 and deviation 1 over the batch, times a gain plus a bias. */
static ax_value normed_conv(network *n, ax_value x, int64_t from, int64_t to, int64_t window, int64_t stride, int64_t side) {
  ax_value w = next_weight(n, 4, (const int64_t[]){window, window, from, to}), gain = next_weight(n, 1, &to),
           bias = next_weight(n, 1, &to);
  if (n->declared != NULL) {
    const double places = (double)(side * side * op_int(n->declared, 1)), times = is_step(n->declared) ? 3 : 1;
    op_product(n->declared, AX_F32, times * places, (double)to, (double)(window * window * from));
    return x;
  }
  const ax_conv_options options = {.lhs = "NHWC", .rhs = "HWIO", .strides = {AX_DIMS(stride, stride)}, .padding = "SAME"};
  ax_value y = ax_conv_general_dilated(x, op_scaled(w, 0.05), &options);
  y = ax_sub(y, ax_reduce_mean(y, AX_DIMS(0, 1, 2), true));
  ax_value variance = ax_reduce_mean(ax_square(y), AX_DIMS(0, 1, 2), true);
  return ax_add(ax_mul(ax_mul(y, ax_rsqrt(ax_add(variance, op_number(AX_F32, 1e-5)))), gain), bias);
}
static void residual_block(network *n, int64_t to, int64_t stride) {
  const int64_t side = (n->side + stride - 1) / stride;
  const bool drawn = n->declared == NULL;
  ax_value y = normed_conv(n, n->x, n->features, to, 3, stride, side);
  y = normed_conv(n, drawn ? ax_relu(y) : y, to, to, 3, 1, side);
  ax_value past = to == n->features ? n->x : normed_conv(n, n->x, n->features, to, 1, stride, side);
  if (drawn) n->x = ax_relu(ax_add(y, past));
  n->side = side, n->features = to;
}
static ax_value resnet_through(network *n, const op_case *c) {
  const int64_t classes = op_int(c, 3), width = op_int(c, 4);
  const bool large = n->side > 64, drawn = n->declared == NULL; /* images of 32 x 32 have no stem that makes them smaller */
  if (large) n->side = (n->side + 1) / 2;
  n->x = normed_conv(n, n->x, 3, width, large ? 7 : 3, large ? 2 : 1, n->side);
  if (drawn) n->x = ax_relu(n->x);
  if (large && drawn) n->x = ax_max_pool(n->x, AX_DIMS(3, 3), AX_DIMS(2, 2), "SAME");
  if (large) n->side = (n->side + 1) / 2;
  n->features = width;
  for (int64_t s = 0; s < stages; s++)
    for (int64_t b = 0; b < blocks; b++) residual_block(n, width << s, s > 0 && b == 0 ? 2 : 1);
  ax_value w = next_weight(n, 2, (const int64_t[]){n->features, classes});
  return drawn ? ax_matmul(ax_reduce_mean(n->x, AX_DIMS(1, 2), false), op_scaled(w, 0.05)) : (ax_value){0};
}
static AX_BODY(resnet_loss) { /* images, labels, weights */
  network n = {.in = in + 2, .x = in[0], .side = op_int(context, 2)};
  out[0] = op_cross_entropy(resnet_through(&n, context), in[1]);
}
static AX_BODY(resnet_step) { op_descend(AX_CLOSURE(resnet_loss, ((const op_case *)context)->in_count, 1, context), in, 2, out); }
static void resnet(op_case *c) { /* fwd|sgd BATCH SIDE CLASSES WIDTH */
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2), op_int(c, 2), 3);
  OP_IN(c, AX_S32, op_int(c, 1));
  c->below = op_int(c, 3);
  network n = {.declared = c, .side = op_int(c, 2)};
  resnet_through(&n, c);
  c->body = is_step(c) ? resnet_step : resnet_loss;
  c->out_count = is_step(c) ? c->in_count - 1 : 1;
}

/* --- A mixture of experts: each token goes to one, which takes twice its share at most --- */

static AX_BODY(moe_loss) { /* x[t, w], gate[w, e], w1[e, w, h], w2[e, h, w] */
  const ax_type x = ax_typeof(in[0]), w1 = ax_typeof(in[2]);
  const int64_t tokens = x.dims[0], experts = w1.dims[0], room = 2 * tokens / experts;
  ax_value shares = ax_softmax(ax_matmul(in[0], op_scaled(in[1], 0.03)), -1);
  ax_value mine = ax_one_hot(ax_argmax(shares, 1, AX_S32), experts, AX_F32);                                /* [t, e] */
  ax_value place = ax_reduce_sum(ax_mul(ax_sub(ax_cumsum(mine, 0, false), mine), mine), AX_DIMS(1), false); /* among its expert's */
  ax_value seat = ax_one_hot(ax_convert_element_type(place, AX_S32), room, AX_F32); /* [t, c], zeros where none is left */
  ax_value sent = ax_einsum("te,tc->tec", AX_VALUES(mine, seat));
  ax_value taken = ax_einsum("tec,tw->ecw", AX_VALUES(sent, in[0]));
  ax_value hidden = ax_gelu(ax_einsum("ecw,ewh->ech", AX_VALUES(taken, op_scaled(in[2], 0.03))));
  ax_value made = ax_einsum("ech,ehw->ecw", AX_VALUES(hidden, op_scaled(in[3], 0.03)));
  ax_value weights = ax_mul(sent, ax_reshape(shares, AX_DIMS(tokens, experts, 1)));
  out[0] = mean_all(ax_square(ax_add(in[0], ax_einsum("tec,ecw->tw", AX_VALUES(weights, made)))));
}
static AX_BODY(moe_step) { op_descend(AX_CLOSURE(moe_loss, 4, 1, context), in, 1, out); }
static void moe(op_case *c) { /* fwd|sgd TOKENS WIDTH EXPERTS HIDDEN */
  const int64_t tokens = op_int(c, 1), width = op_int(c, 2), experts = op_int(c, 3), hidden = op_int(c, 4);
  OP_IN(c, AX_F32, tokens, width);
  OP_IN(c, AX_F32, width, experts);
  OP_IN(c, AX_F32, experts, width, hidden);
  OP_IN(c, AX_F32, experts, hidden, width);
  const double rows = (is_step(c) ? 3 : 1) * 2.0 * (double)tokens;
  op_product(c, AX_F32, 2 * rows, (double)width, (double)hidden);
  op_product(c, AX_F32, 2 * rows, (double)tokens, (double)width);
  c->body = is_step(c) ? moe_step : moe_loss;
  c->out_count = is_step(c) ? 4 : 1;
}

/* --- Decoding: one more position of text, with what was made of the ones before --- */

enum { layer_weights = 6, decode_first = 2 }; /* behind the caches: x, the position */

static ax_value decoded(ax_value x, ax_value position, ax_value *cache, const ax_value *w, int64_t heads) {
  const ax_type t = ax_typeof(x), kept = ax_typeof(cache[0]); /* [1, w]; [t, h, k] */
  const int64_t key = kept.dims[2];
  ax_value h = op_scaled(root_mean_square_norm(x), 0.02), zero = ax_full_i64(AX_S32, AX_DIMS(), 0);
  ax_value q = ax_reshape(ax_matmul(h, w[0]), AX_DIMS(heads, key));
  for (int i = 0; i < 2; i++)
    cache[i] = ax_dynamic_update_slice(cache[i], ax_reshape(ax_matmul(h, w[1 + i]), AX_DIMS(1, heads, key)),
                                       AX_VALUES(position, zero, zero));
  ax_value scores = op_scaled(ax_einsum("hk,thk->ht", AX_VALUES(q, cache[0])), 1 / sqrt((double)key));
  ax_value past = ax_le(ax_iota(AX_S32, AX_DIMS(heads, kept.dims[0]), 1), position);
  ax_value shares = ax_softmax(ax_where(past, scores, masked_out(t.dtype)), -1);
  x = ax_add(x, ax_matmul(ax_reshape(ax_einsum("ht,thk->hk", AX_VALUES(shares, cache[1])), AX_LIST(2, t.dims)), w[3]));
  h = ax_gelu(ax_matmul(op_scaled(root_mean_square_norm(x), 0.02), w[4]));
  return ax_add(x, ax_matmul(op_scaled(h, 0.001), w[5]));
}
static AX_BODY(decode_body) { /* caches, x, position, each layer's weights; gives x, the caches */
  const int64_t layers = op_int(context, 1), heads = op_int(context, 3);
  const ax_value position = in[2 * layers + 1], *w = in + 2 * layers + decode_first;
  ax_value x = op_scaled(in[2 * layers], 0.5);
  for (int64_t i = 0; i < layers; i++, w += layer_weights) {
    ax_value cache[] = {in[2 * i], in[2 * i + 1]};
    x = decoded(x, position, cache, w, heads);
    out[1 + 2 * i] = cache[0], out[2 + 2 * i] = cache[1];
  }
  out[0] = x;
}
static void decode(op_case *c) { /* DTYPE LAYERS WIDTH HEADS LENGTH */
  const ax_dtype dtype = op_dtype(c->words[0]);
  const int64_t layers = op_int(c, 1), width = op_int(c, 2), heads = op_int(c, 3), length = op_int(c, 4);
  for (int64_t i = 0; i < 2 * layers; i++) OP_IN(c, dtype, length, heads, width / heads);
  OP_IN(c, dtype, 1, width);
  op_input(c, AX_S32, 0, NULL);
  c->below = length;
  for (int64_t i = 0; i < layers; i++) {
    for (int j = 0; j < 4; j++) OP_IN(c, dtype, width, width);
    OP_IN(c, dtype, width, 4 * width);
    OP_IN(c, dtype, 4 * width, width);
  }
  c->carried = (uint32_t)(2 * layers);
  c->moved = (double)ax_dtype_bytes(dtype) * (double)layers * (double)width * (12.0 * (double)width + 2.0 * (double)length);
  c->body = decode_body;
  c->out_count = 1 + c->carried;
}

/* --- A recommender: rows of tables side by side through two layers, a step of everything --- */

enum { most_tables = 64, recommended_hidden = 128 };

static AX_BODY(recommend_loss) { /* ids[tables, n], y[n], w1, w2, tables.. */
  const int64_t tables = op_int(context, 0), batch = op_int(context, 3);
  ax_value rows[most_tables];
  for (int64_t i = 0; i < tables; i++)
    rows[i] = ax_take(in[4 + i], ax_reshape(ax_slice(in[0], AX_DIMS(i, 0), AX_DIMS(i + 1, batch), NULL), AX_DIMS(batch)), 0);
  ax_value x = ax_concatenate(AX_LIST((uint32_t)tables, rows), 1);
  ax_value z = ax_reshape(ax_matmul(ax_relu(ax_matmul(x, op_scaled(in[2], 0.03))), op_scaled(in[3], 0.03)), AX_DIMS(batch));
  out[0] = mean_all(ax_square(ax_sub(ax_logistic(z), in[1])));
}
static AX_BODY(recommend_step) {
  op_descend(AX_CLOSURE(recommend_loss, ((const op_case *)context)->in_count, 1, context), in, 2, out);
}
static void recommend(op_case *c) { /* TABLES ROWS WIDTH BATCH */
  const int64_t tables = op_int(c, 0), rows = op_int(c, 1), width = op_int(c, 2), batch = op_int(c, 3);
  OP_IN(c, AX_S32, tables, batch);
  OP_IN(c, AX_F32, batch);
  OP_IN(c, AX_F32, tables * width, recommended_hidden);
  OP_IN(c, AX_F32, recommended_hidden, 1);
  for (int64_t i = 0; i < tables && i < most_tables; i++) OP_IN(c, AX_F32, rows, width);
  c->below = rows;
  op_product(c, AX_F32, 3 * (double)batch, (double)(tables * width), recommended_hidden);
  c->body = recommend_step;
  c->out_count = c->in_count - 1;
}

/* --- Simulations --- */

static AX_BODY(wave_step) { /* u, and u one step before */
  const ax_type t = ax_typeof(in[0]);
  int64_t ones[3] = {1, 1, 1}, none[3] = {0};
  ax_value edged = ax_pad(in[0], op_number(AX_F32, 0), AX_LIST(t.rank, ones), AX_LIST(t.rank, ones), AX_LIST(t.rank, none));
  ax_value next = ax_sub(op_scaled(in[0], 2 - 0.2 * t.rank), in[1]);
  for (uint32_t d = 0; d < t.rank; d++)
    for (int64_t way = 0; way <= 2; way += 2) {
      int64_t low[3] = {1, 1, 1}, high[3];
      low[d] = way;
      for (uint32_t i = 0; i < t.rank; i++) high[i] = low[i] + t.dims[i];
      next = ax_add(next, op_scaled(ax_slice(edged, AX_LIST(t.rank, low), AX_LIST(t.rank, high), NULL), 0.1));
    }
  out[0] = next, out[1] = in[0];
}
static AX_BODY(wave_body) {
  ax_value first[] = {in[0], in[0]}, last[2];
  ax_scan(AX_FN(wave_step, 2, 2), 2, op_int(context, 2), false, first, last);
  out[0] = last[0];
}
static void wave(op_case *c) { /* RANK SIDE STEPS */
  const int64_t side = op_int(c, 1), dims[] = {side, side, side};
  op_input(c, AX_F32, (uint32_t)op_int(c, 0), dims);
  c->moved = 12.0 * (double)op_int(c, 2) * pow((double)side, (double)op_int(c, 0));
  c->body = wave_body;
}

static AX_BODY(attraction_step) { /* places and speeds [n, 3] */
  const int64_t n = ax_typeof(in[0]).dims[0];
  ax_value apart = ax_sub(ax_reshape(in[0], AX_DIMS(1, n, 3)), ax_reshape(in[0], AX_DIMS(n, 1, 3)));
  ax_value far = ax_add(ax_reduce_sum(ax_square(apart), AX_DIMS(2), true), op_number(AX_F32, 0.01)), pull = ax_rsqrt(far);
  ax_value forces = ax_reduce_sum(ax_mul(apart, ax_mul(pull, ax_mul(pull, pull))), AX_DIMS(1), false);
  out[1] = ax_add(in[1], op_scaled(forces, 1e-5));
  out[0] = ax_add(in[0], op_scaled(out[1], 0.01));
}
static AX_BODY(nbody_body) {
  ax_value first[] = {in[0], ax_full_like(in[0], 0)}, last[2];
  ax_scan(AX_FN(attraction_step, 2, 2), 2, op_int(context, 1), false, first, last);
  out[0] = last[0];
}
static void nbody(op_case *c) { /* BODIES STEPS */
  OP_IN(c, AX_F32, op_int(c, 0), 3);
  c->body = nbody_body;
}

static AX_BODY(kmeans_body) { /* x[n, d], centres[k, d]: a round of Lloyd's algorithm */
  const int64_t k = ax_typeof(in[1]).dims[0];
  ax_value far =
      ax_sub(ax_reduce_sum(ax_square(in[1]), AX_DIMS(1), false), op_scaled(ax_einsum("nd,kd->nk", AX_VALUES(in[0], in[1])), 2));
  ax_value nearest = ax_argmin(far, 1, AX_S32), zeros = ax_full(AX_F32, AX_DIMS(k), 0);
  ax_value sums = ax_at_add(ax_full_like(in[1], 0), nearest, in[0], 0, NULL);
  ax_value counts = ax_at_add(zeros, nearest, ax_full(AX_F32, AX_DIMS(ax_typeof(in[0]).dims[0]), 1), 0, NULL);
  out[0] = ax_div(sums, ax_max(ax_reshape(counts, AX_DIMS(k, 1)), op_number(AX_F32, 1)));
  (void)context;
}
static void kmeans(op_case *c) { /* N D K */
  OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 1));
  OP_IN(c, AX_F32, op_int(c, 2), op_int(c, 1));
  op_product(c, AX_F32, (double)op_int(c, 0), (double)op_int(c, 1), (double)op_int(c, 2));
  c->body = kmeans_body;
}

const op_family op_whole_families[] = {
    {"gpt", gpt},   {"resnet", resnet}, {"moe", moe},       {"decode", decode}, {"recommend", recommend},
    {"wave", wave}, {"nbody", nbody},   {"kmeans", kmeans}, {NULL, NULL},
};
