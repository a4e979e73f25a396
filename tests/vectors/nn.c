/* Activations, normalisation and attention: nn.py says the same in JAX. */
#include "axle/nn.h"

#include "vectors/vectors.h"

#define FLOAT "f32 f64 bf16"
#define WIDE "f32 f64"
static const ax_value none = {0};

static ax_value elu_half(ax_value x) { return ax_elu(x, 0.5); }
static ax_value celu(ax_value x) { return ax_celu(x, 1.5); }
static ax_value leaky_relu(ax_value x) { return ax_leaky_relu(x, 0.01); }
static ax_value squareplus(ax_value x) { return ax_squareplus(x, 4); }

BODY(glu) {
  out[0] = ax_glu(in[0], -1);
  out[1] = ax_glu(in[0], 0);
}
BODY(softmax_where) {
  out[0] = ax_softmax_where(in[0], in[1], DIMS(0, 1));
  out[1] = ax_softmax_where(in[0], ax_or(in[1], ax_eq(in[0], in[0])), DIMS(-1));
}
static ax_value softmax_together(ax_value x) { return ax_softmax_where(x, none, DIMS(0, 2)); }
static ax_value log_softmax_where(ax_value x, ax_value m) { return ax_log_softmax_where(x, m, DIMS(0, 1)); }
BODY(logsumexp_where) { out[0] = ax_logsumexp_where(in[0], in[1], in[2], DIMS(1), false); }
static ax_value logsumexp_mask(ax_value x, ax_value m) { return ax_logsumexp_where(x, none, m, DIMS(0, 1), true); }
static ax_value logsumexp_factors(ax_value x, ax_value b) { return ax_logsumexp_where(x, b, none, AX_ALL_DIMS, false); }

BODY(standardize) {
  out[0] = ax_standardize(in[0], NULL);
  out[1] = ax_standardize(in[0], &(ax_standardize_options){.axes = {DIMS(0, 1)}, .epsilon = 1e-3, .stable = true});
}
BODY(standardize_where) {
  out[0] = ax_standardize(in[0], &(ax_standardize_options){.axes = {DIMS(1)}, .where = in[1]});
  out[1] = ax_standardize(in[0], &(ax_standardize_options){.axes = {DIMS(1)}, .mean = in[2], .variance = in[3]});
}
BODY(layer_norm) { out[0] = ax_layer_norm(in[0], in[1], in[2], DIMS(-1), 1e-6); }
BODY(layer_norm_images) { out[0] = ax_layer_norm(in[0], in[1], in[2], DIMS(1, 2), 1e-3); }
static ax_value rms_norm(ax_value x, ax_value scale) { return ax_rms_norm(x, scale, DIMS(-1), 1e-6); }

static ax_value attend(const ax_value *in, ax_attention_options options) {
  return ax_dot_product_attention(in[0], in[1], in[2], &options);
}
BODY(attention) { out[0] = ax_dot_product_attention(in[0], in[1], in[2], NULL); }
BODY(attention_causal) { out[0] = attend(in, (ax_attention_options){.is_causal = true}); }
BODY(attention_mask) { out[0] = attend(in, (ax_attention_options){.bias = in[3], .mask = in[4]}); }
BODY(attention_grouped) {
  out[0] = attend(in, (ax_attention_options){.bias = in[3], .mask = in[4], .is_causal = true, .scale = 0.3});
}
BODY(attention_window) {
  out[0] = attend(in, (ax_attention_options){.local_window = {DIMS(2, 1)}});
  out[1] = attend(in, (ax_attention_options){.local_window = {DIMS(1, 1)}, .is_causal = true});
}
BODY(attention_lengths) {
  out[0] = attend(in, (ax_attention_options){.query_seq_lengths = in[3], .key_value_seq_lengths = in[4]});
}

static const vector_case nn_cases[] = {
    {"relu6", FLOAT, .unary = ax_relu6},
    {"elu_half", FLOAT, .unary = elu_half},
    {"selu", FLOAT, .unary = ax_selu},
    {"celu", FLOAT, .unary = celu},
    {"silu", FLOAT, .unary = ax_silu, .scaled = true},
    {"mish", FLOAT, .unary = ax_mish, .scaled = true},
    {"leaky_relu", FLOAT, .unary = leaky_relu},
    {"hard_tanh", FLOAT, .unary = ax_hard_tanh},
    {"hard_sigmoid", FLOAT, .unary = ax_hard_sigmoid},
    {"hard_silu", FLOAT, .unary = ax_hard_silu},
    {"log_sigmoid", FLOAT, .unary = ax_log_sigmoid, .scaled = true},
    {"squareplus", FLOAT, .unary = squareplus, .scaled = true},
    {"soft_sign", FLOAT, .unary = ax_soft_sign, .scaled = true},
    {"sparse_plus", FLOAT, .unary = ax_sparse_plus},
    {"sparse_sigmoid", FLOAT, .unary = ax_sparse_sigmoid},
    {"log1mexp", WIDE, .unary = ax_log1mexp},
    {"glu", FLOAT, .body = glu, .out = 2, .scaled = true},
    {"softmax_where", FLOAT, .body = softmax_where, .in = 2, .out = 2, .scaled = true},
    {"softmax_together", FLOAT, .unary = softmax_together, .scaled = true},
    {"log_softmax_where", FLOAT, .binary = log_softmax_where, .modes = "v", .scaled = true},
    {"logsumexp_where", WIDE, .body = logsumexp_where, .in = 3, .modes = "v", .scaled = true},
    {"logsumexp_mask", WIDE, .binary = logsumexp_mask, .scaled = true},
    {"logsumexp_factors", WIDE, .binary = logsumexp_factors, .scaled = true},
    {"standardize", WIDE, .body = standardize, .out = 2, .scaled = true},
    {"standardize_where", WIDE, .body = standardize_where, .in = 4, .out = 2, .scaled = true},
    {"layer_norm", FLOAT, .body = layer_norm, .in = 3, .scaled = true},
    {"layer_norm_images", WIDE, .body = layer_norm_images, .in = 3, .scaled = true},
    {"rms_norm", FLOAT, .binary = rms_norm, .scaled = true},
    {"attention", FLOAT, .body = attention, .in = 3, .scaled = true},
    {"attention_causal", FLOAT, .body = attention_causal, .in = 3, .scaled = true},
    {"attention_mask", WIDE, .body = attention_mask, .in = 5, .scaled = true},
    {"attention_grouped", "f32 bf16", .body = attention_grouped, .in = 5, .scaled = true},
    {"attention_one_key_head", "f32", .body = attention, .in = 3, .scaled = true},
    {"attention_window", "f32", .body = attention_window, .in = 3, .out = 2, .scaled = true},
    {"attention_lengths", "f32", .body = attention_lengths, .in = 5, .scaled = true},
    {"attention_no_batch", "f32", .body = attention, .in = 3, .scaled = true},
};

const VECTOR_GROUP(nn);
