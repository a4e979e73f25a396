/* Composites: composites.py says the same in JAX. */
#include "vectors/vectors.h"

#define FLOAT "f32 f64 bf16"

BODY(mean) {
  out[0] = ax_reduce_mean(in[0], AX_ALL_DIMS, false);
  out[1] = ax_reduce_mean(in[0], AX_LIST(1, LIST(0)), false);
  out[2] = ax_reduce_mean(in[0], AX_LIST(2, LIST(0, 2)), false);
}

BODY(sum) {
  out[0] = ax_reduce_sum(in[0], AX_DIMS(1), false);
  out[1] = ax_reduce_sum(in[0], AX_DIMS(-1), false);
}

BODY(softmax) {
  out[0] = ax_softmax(in[0], 0);
  out[1] = ax_softmax(in[0], -1);
}

BODY(log_softmax) {
  out[0] = ax_log_softmax(in[0], 0);
  out[1] = ax_log_softmax(in[0], -1);
}

BODY(where) { out[0] = ax_where(in[0], in[1], in[2]); }

static ax_value softmax_far(ax_value x) { return ax_softmax(x, -1); }
static ax_value one_hot(ax_value x, ax_value i) { return ax_mul(x, ax_one_hot(i, 4, ax_typeof(x).dtype)); }
static ax_value one_hot_u8(ax_value x, ax_value i) {
  ax_value hot = ax_one_hot(i, 300, ax_typeof(x).dtype);
  return ax_mul(x, ax_slice(hot, LIST(0, 0), LIST(3, 300), LIST(1, 60)));
}

static ax_value cross_entropy(ax_value logits, ax_value labels) {
  ax_value hot = ax_one_hot(labels, 5, ax_typeof(logits).dtype);
  return ax_neg(ax_reduce_mean(ax_reduce_sum(ax_mul(ax_log_softmax(logits, -1), hot), AX_DIMS(-1), false), AX_ALL_DIMS, false));
}

static ax_value layer_norm(ax_value x, ax_value gain) {
  ax_value centred = ax_sub(x, ax_expand_dims(ax_reduce_mean(x, AX_LIST(1, LIST(-1)), false), 1));
  ax_value square = ax_expand_dims(ax_reduce_mean(ax_mul(x, x), AX_LIST(1, LIST(-1)), false), 1);
  return ax_mul(ax_mul(centred, ax_rsqrt(ax_add(square, ax_full_like(square, 1e-5)))), gain);
}

BODY(two_layers) { out[0] = ax_matmul(ax_tanh(ax_add(ax_matmul(in[0], in[1]), in[2])), in[3]); }

BODY(attention) {
  ax_value scores = ax_matmul(in[0], ax_transpose(in[1], LIST(0, 2, 1)));
  out[0] = ax_matmul(ax_softmax(ax_mul(scores, ax_full_like(scores, 0.5)), -1), in[2]);
}

static const vector_case composites_cases[] = {
    {"mean", FLOAT, .body = mean, .out = 3, .scaled = true},
    {"sum", FLOAT, .body = sum, .out = 2, .scaled = true},
    {"softmax", FLOAT, .body = softmax, .out = 2, .scaled = true},
    {"softmax_far", "f32 f64", .unary = softmax_far, .scaled = true},
    {"log_softmax", FLOAT, .body = log_softmax, .out = 2, .scaled = true},
    {"one_hot", "f32 bf16 s32", .binary = one_hot},
    {"one_hot_u8", "f32", .binary = one_hot_u8},
    {"relu", FLOAT, .unary = ax_relu},
    {"softplus", "f32 f64", .unary = ax_softplus, .scaled = true},
    {"softplus_wide", "f32 f64", .unary = ax_softplus},
    {"gelu", "f32 f64", .unary = ax_gelu, .ulps = 64, .scaled = true},
    {"gelu", "bf16", .unary = ax_gelu, .scaled = true},
    {"where", "f32 bf16 s32", .body = where, .in = 3},
    {"cross_entropy", FLOAT, .binary = cross_entropy, .scaled = true},
    {"layer_norm", "f32 f64", .binary = layer_norm, .scaled = true},
    {"two_layers", FLOAT, .body = two_layers, .in = 4, .scaled = true},
    {"attention", "f32 f64", .body = attention, .in = 3, .scaled = true},
};

const VECTOR_GROUP(composites);
