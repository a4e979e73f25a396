/* Shape primitives, reductions, argmax and products: arrays.py says the same in JAX. */
#include "vectors/vectors.h"

#define MOVE "f32 bf16 s32"
#define SUMS "f32 f64 bf16 s32"

BODY(constant) {
  static const double numbers[] = {-2, -1, 0, 1, 2, 3};
  ax_type type = ax_array_type(AX_F64, DIMS(2, 3));
  out[0] = ax_mul(in[0], ax_convert_element_type(ax_constant(&type, numbers), ax_typeof(in[0]).dtype));
}

BODY(full) {
  out[0] = ax_full(ax_typeof(in[0]).dtype, DIMS(2, 2), 3);
  out[1] = ax_full_like(in[0], -1);
}

static ax_value reshape(ax_value x) { return ax_reshape(x, DIMS(4, 1, 3)); }
static ax_value reshape_scalar(ax_value x) { return ax_reshape(x, AX_DIMS()); }
static ax_value transpose(ax_value x) { return ax_transpose(x, LIST(2, 0, 1)); }
static ax_value broadcast_in_dim(ax_value x) { return ax_broadcast_in_dim(x, DIMS(2, 3, 4), LIST(0, 2)); }
static ax_value slice(ax_value x) { return ax_slice(x, LIST(1, 0), LIST(4, 5), NULL); }
static ax_value slice_strided(ax_value x) { return ax_slice(x, LIST(0, 1), LIST(5, 6), LIST(2, 3)); }
static ax_value pad(ax_value x, ax_value v) { return ax_pad(x, v, LIST(1, 0), LIST(2, 1), LIST(0, 2)); }
static ax_value pad_negative(ax_value x, ax_value v) { return ax_pad(x, v, LIST(-1, 2), LIST(3, -2), LIST(1, 0)); }

BODY(concatenate) { out[0] = ax_concatenate(AX_LIST(3, in), 1); }

BODY(iota) {
  for (int d = 0; d < 2; d++) out[d] = ax_iota(ax_typeof(in[0]).dtype, DIMS(2, 3), d);
}

BODY(dynamic_slice) { out[0] = ax_dynamic_slice(in[0], in + 1, LIST(2, 3)); }

BODY(dynamic_update_slice) { out[0] = ax_dynamic_update_slice(in[0], in[1], in + 2); }

BODY(expand_dims) {
  for (int d = 0; d < 3; d++) out[d] = ax_expand_dims(in[0], d);
}

/* --- Reductions --- */

BODY(reduce_sum) {
  out[0] = ax_reduce_sum(in[0], AX_LIST(1, LIST(0)), false);
  out[1] = ax_reduce_sum(in[0], AX_LIST(2, LIST(0, -1)), false);
  out[2] = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
}

BODY(reduce_max) {
  out[0] = ax_reduce_max(in[0], AX_LIST(1, LIST(0)), false);
  out[1] = ax_reduce_max(in[0], AX_LIST(2, LIST(0, 2)), false);
  out[2] = ax_reduce_max(in[0], AX_ALL_DIMS, false);
}

BODY(reduce_min) {
  out[0] = ax_reduce_min(in[0], AX_LIST(1, LIST(0)), false);
  out[1] = ax_reduce_min(in[0], AX_LIST(2, LIST(0, 2)), false);
  out[2] = ax_reduce_min(in[0], AX_ALL_DIMS, false);
}

BODY(reduce_ties) {
  out[0] = ax_reduce_max(in[0], AX_LIST(1, LIST(1)), false);
  out[1] = ax_reduce_min(in[0], AX_LIST(1, LIST(0)), false);
}

BODY(reduce_edges) {
  ax_value x = ax_reshape(in[0], DIMS(6, 4));
  out[0] = ax_reduce_max(x, AX_LIST(1, LIST(1)), false);
  out[1] = ax_reduce_min(x, AX_LIST(1, LIST(1)), false);
}

BODY(argmax) {
  out[0] = ax_argmax(in[0], 0, AX_S32);
  out[1] = ax_argmax(in[0], 1, AX_U8);
}

BODY(argmin) {
  out[0] = ax_argmin(in[0], 0, AX_S32);
  out[1] = ax_argmin(in[0], 1, AX_U8);
}
static ax_value argmin_ties(ax_value x) { return ax_argmin(x, 1, AX_S32); }
static ax_value argmin_edges(ax_value x) { return ax_argmin(ax_reshape(x, DIMS(6, 4)), 1, AX_S32); }

static ax_value reduce_none(ax_value x) { return ax_reduce_sum(x, AX_LIST(1, LIST(0)), false); }
static ax_value argmax_ties(ax_value x) { return ax_argmax(x, 1, AX_S32); }
static ax_value argmax_edges(ax_value x) { return ax_argmax(ax_reshape(x, DIMS(6, 4)), 1, AX_S32); }

/* --- Products --- */

static ax_value dot(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_LIST(1, LIST(1)), AX_LIST(1, LIST(0)), AX_DIMS(),
                                                                    AX_DIMS()); }
static ax_value dot_vectors(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_LIST(1, LIST(0)), AX_LIST(1, LIST(0)),
                                                                            AX_DIMS(), AX_DIMS()); }
static ax_value dot_outer(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_DIMS(), AX_DIMS(), AX_DIMS(), AX_DIMS()); }
static ax_value dot_transposed(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_LIST(1, LIST(0)), AX_LIST(1, LIST(1)),
                                                                               AX_DIMS(), AX_DIMS()); }
static ax_value dot_two_contracted(ax_value x, ax_value y) {
  return ax_dot_general(x, y, AX_LIST(2, LIST(1, 2)), AX_LIST(2, LIST(2, 0)), AX_DIMS(), AX_DIMS());
}
static ax_value dot_batch(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_LIST(1, LIST(2)), AX_LIST(1, LIST(1)),
                                                                          AX_LIST(1, LIST(0)), AX_LIST(1, LIST(0))); }
static ax_value dot_batch_inside(ax_value x, ax_value y) { return ax_dot_general(x, y, AX_LIST(1, LIST(2)), AX_LIST(1, LIST(0)),
                                                                                 AX_LIST(1, LIST(1)), AX_LIST(1, LIST(2))); }
static ax_value dot_two_batches(ax_value x, ax_value y) {
  return ax_dot_general(x, y, AX_LIST(1, LIST(2)), AX_LIST(1, LIST(3)), AX_LIST(2, LIST(0, 1)), AX_LIST(2, LIST(0, 2)));
}

static const vector_case arrays_cases[] = {
    {"constant", MOVE, .body = constant},
    {"full", "f32 s32", .body = full, .out = 2},
    {"reshape", MOVE, .unary = reshape},
    {"reshape_scalar", "f32", .unary = reshape_scalar},
    {"transpose", MOVE, .unary = transpose},
    {"broadcast_in_dim", MOVE, .unary = broadcast_in_dim},
    {"slice", MOVE, .unary = slice},
    {"slice_strided", "f32", .unary = slice_strided},
    {"pad", MOVE, .binary = pad},
    {"pad_negative", "f32", .binary = pad_negative},
    {"concatenate", MOVE, .body = concatenate, .in = 3},
    {"iota", "f32 bf16 s32 u8", .body = iota, .out = 2},
    {"dynamic_slice", MOVE, .body = dynamic_slice, .in = 3},
    {"dynamic_update_slice", MOVE, .body = dynamic_update_slice, .in = 4},
    {"expand_dims", "f32", .body = expand_dims, .out = 3},
    {"reduce_sum", SUMS, .body = reduce_sum, .out = 3, .scaled = true},
    {"reduce_max", SUMS, .body = reduce_max, .out = 3},
    {"reduce_min", SUMS, .body = reduce_min, .out = 3},
    {"reduce_ties", "f32", .body = reduce_ties, .out = 2},
    {"reduce_edges", "f32 f64", .body = reduce_edges, .out = 2, .modes = "v"},
    {"reduce_none", "f32", .unary = reduce_none},
    {"argmax", SUMS, .body = argmax, .out = 2},
    {"argmax_ties", "f32 s32", .unary = argmax_ties},
    {"argmax_edges", "f32 f64", .unary = argmax_edges},
    {"argmin", SUMS " u8 bool", .body = argmin, .out = 2},
    {"argmin_ties", "f32 s32", .unary = argmin_ties},
    {"argmin_edges", "f32 f64 s32 u8", .unary = argmin_edges},
    {"dot", SUMS, .binary = dot, .scaled = true},
    {"dot_vectors", SUMS, .binary = dot_vectors, .scaled = true},
    {"dot_outer", SUMS, .binary = dot_outer, .scaled = true},
    {"dot_transposed", SUMS, .binary = dot_transposed, .scaled = true},
    {"dot_two_contracted", "f32 f64 bf16", .binary = dot_two_contracted, .scaled = true},
    {"dot_batch", SUMS, .binary = dot_batch, .scaled = true},
    {"dot_batch_inside", "f32 f64 bf16", .binary = dot_batch_inside, .scaled = true},
    {"dot_two_batches", "f32 f64", .binary = dot_two_batches, .scaled = true},
    {"dot_empty", "f32", .binary = dot},
    {"dot_large", "f32", .binary = dot, .scaled = true},
    {"matmul_vector_matrix", "f32 bf16", .binary = ax_matmul, .scaled = true},
    {"matmul_matrix_vector", "f32 bf16", .binary = ax_matmul, .scaled = true},
    {"matmul_vectors", "f32 bf16", .binary = ax_matmul, .scaled = true},
    {"matmul_batched", "f32 bf16", .binary = ax_matmul, .scaled = true},
    {"matmul_broadcast", "f32 bf16", .binary = ax_matmul, .scaled = true},
    {"matmul_one_batched", "f32 bf16 f64", .binary = ax_matmul, .scaled = true},
};

const VECTOR_GROUP(arrays);
