/* Parts along one dimension, dimensions put elsewhere, arrays beside one another, bounds: parts.py says the same in JAX. */
#include <math.h>

#include "vectors/vectors.h"

#define MOVE "f32 bf16 s32 bool"
#define FLOAT "f32 f64 bf16"
#define DIVIDED "f32 f64 bf16 s32 s8 u8"

BODY(slice_in_dim) {
  out[0] = ax_slice_in_dim(in[0], 1, 4, 1, 0);
  out[1] = ax_slice_in_dim(in[0], -5, AX_END, 2, -1);
  out[2] = ax_slice_in_dim(in[0], 0, -1, 3, 1);
  out[3] = ax_slice_in_dim(in[0], 2, 2, 1, 0);
}

enum { text_count = 37, set_count = 10 };
static const char *const texts[text_count] = { /* those of parts.py */
    "4::1", "3, -5::, None, None", "::3, None, -4:0", ":2:-2,None,None", "-3:5:3, None, 1, 1:", "-5::-1", "None, ::2",
    "None, ::1, -3, None, -6:2:", "...", "-1,-2,...,:-3", "0, 6::-2, None, :0", ":2, 6:-6:1", "None, None",
    "-5::-3,-6:2:-2,2::3", "None", "4:-8,-3,0", ":2:-1", "-3", "None,-1,-1:-3,None,4:-5:", "5:-6,3,5:0", "1, None, None",
    "-1::-2, :-9:-3, :1", "2,-8::-3,4:-6:-1", "None, None, -4:-5:-3, ::", "-3,...", "-4, :", "3,0", ":-6, 0:-1:-3, ..., :-6",
    ":1,6::3,1", "None,-2,None,-3", "2:,:-7:1", "4::2,None,None,-4::-1,:-4", "-5", "..., 1:", "1:-1, ::2, ::-1", "2, 3, -1",
    "::-1, ..., None",
};
static const char *const sets[set_count] = {
    "1:-1", ":, 2", "-1, ::2", "::-2, 1:5", "..., None, :", "3:3", "2, 3", "::3, ::-1", "1::2, -2::-3", "...",
};

BODY(index_all) {
  for (int i = 0; i < text_count; i++) out[i] = ax_index(in[0], texts[i]);
}

BODY(index_set_all) {
  for (int i = 0; i < set_count; i++) out[i] = ax_index_set(in[0], sets[i], in[1]);
  out[set_count] = ax_index_set(in[0], "1:-1, ::-2", in[2]);
  out[set_count + 1] = ax_index_set(in[0], "..., 0", ax_typeof(in[0]).dtype == AX_BOOL ? ax_integer(1) : ax_integer(2));
}

BODY(matrix_transpose) {
  out[0] = ax_matrix_transpose(in[0]);
  out[1] = ax_matrix_transpose(ax_at(in[0], 0, 0));
}

BODY(at) {
  out[0] = ax_at(in[0], 1, 0);
  out[1] = ax_at(in[0], -2, 1);
  out[2] = ax_at(in[0], 0, -1);
}

static ax_value at_vector(ax_value x) { return ax_at(x, -1, 0); }

BODY(dynamic_at) {
  out[0] = ax_dynamic_at(in[0], in[1], 0);
  out[1] = ax_dynamic_at(in[0], in[2], -1);
}

static ax_value dynamic_at_u8(ax_value x, ax_value index) { return ax_dynamic_at(x, index, 0); }

BODY(dynamic_put) { out[0] = ax_dynamic_at_set(in[0], in[1], in[2], 1); }

BODY(dynamic_parts) {
  out[0] = ax_dynamic_slice_in_dim(in[0], in[2], 3, 1);
  out[1] = ax_dynamic_update_slice_in_dim(in[0], in[1], in[2], -1);
}

BODY(row) { out[0] = ax_dynamic_at(in[0], in[1], 0); }

BODY(rows) { ax_vmap(AX_FN(row, 2, 1), in, out, NULL); }

BODY(split) { ax_split(in[0], DIMS(2, 0, 3, 1), 1, out); }

BODY(squeeze) {
  out[0] = ax_squeeze(in[0], AX_ALL_DIMS);
  out[1] = ax_squeeze(in[0], DIMS(0));
  out[2] = ax_squeeze(in[0], DIMS(-1, 2));
}

BODY(moveaxis) {
  out[0] = ax_moveaxis(in[0], 0, -1);
  out[1] = ax_moveaxis(in[0], 3, 1);
}

BODY(swapaxes) {
  out[0] = ax_swapaxes(in[0], 0, -1);
  out[1] = ax_swapaxes(in[0], 1, 1);
}

BODY(stack) {
  out[0] = ax_stack(AX_LIST(3, in), 0);
  out[1] = ax_stack(AX_LIST(2, in), -1);
  out[2] = ax_stack(AX_LIST(1, in + 2), 1);
}

BODY(clamp) {
  out[0] = ax_clamp(in[1], in[0], in[2]);
  out[1] = ax_clamp(in[2], in[0], in[1]);
}

static ax_value floor_divide_odd(ax_value x, ax_value y) { return ax_floor_divide(x, ax_add(ax_add(y, y), ax_full_like(y, 1))); }
static ax_value clamp_scalar(ax_value x, ax_value low) { return ax_clamp(low, x, ax_full_like(low, 0.5)); }

BODY(broadcast_to) {
  out[0] = ax_broadcast_to(in[0], AX_DIMS(4, 3, 2));
  out[1] = ax_broadcast_to(in[0], AX_DIMS(3, 1));
}

BODY(take) {
  for (int axis = 0; axis < 3; axis++) out[axis] = ax_take(in[0], in[1], axis < 2 ? axis : -1);
}

static ax_value take_u8(ax_value x, ax_value indices) { return ax_take(x, indices, 0); }

BODY(cumsum) {
  for (int axis = 0; axis < 3; axis++) out[axis] = ax_cumsum(in[0], axis < 2 ? axis : -1, axis == 1);
}

BODY(cumsum_long) {
  for (int reverse = 0; reverse < 2; reverse++) out[reverse] = ax_cumsum(in[0], 0, reverse);
}

BODY(logsumexp) {
  out[0] = ax_logsumexp(in[0], AX_ALL_DIMS, false);
  out[1] = ax_logsumexp(in[0], AX_DIMS(0), false);
  out[2] = ax_logsumexp(in[0], AX_DIMS(-1, 0), true);
}

static ax_value logsumexp_edges(ax_value x) { return ax_logsumexp(ax_reshape(x, AX_DIMS(12, 2)), AX_DIMS(1), false); }
static ax_value logsumexp_none(ax_value x) { return ax_logsumexp(ax_sub(x, ax_real(INFINITY)), AX_DIMS(1), false); }

BODY(reduce_bools) {
  out[0] = ax_reduce_or(in[0], AX_DIMS(1), false);
  out[1] = ax_reduce_and(in[0], AX_DIMS(1), false);
  out[2] = ax_reduce_or(in[0], AX_ALL_DIMS, false);
  out[3] = ax_reduce_and(in[0], AX_DIMS(0, 1), true);
}

static const vector_case parts_cases[] = {
    {"broadcast_to", MOVE, .body = broadcast_to, .out = 2, .scaled = true},
    {"take", MOVE, .body = take, .in = 2, .out = 3, .scaled = true},
    {"take_u8", "f32", .binary = take_u8},
    {"cumsum", "f32 f64 bf16 s32 u8", .body = cumsum, .out = 3, .scaled = true},
    {"cumsum_long", FLOAT, .body = cumsum_long, .out = 2, .scaled = true},
    {"logsumexp", FLOAT, .body = logsumexp, .out = 3, .scaled = true},
    {"logsumexp_edges", "f32 f64", .unary = logsumexp_edges, .modes = "v"},
    {"logsumexp_none", "f32", .unary = logsumexp_none, .modes = "v"},
    {"reduce_bools", "bool", .body = reduce_bools, .out = 4},
    {"slice_in_dim", MOVE, .body = slice_in_dim, .out = 4},
    {"index", MOVE, .body = index_all, .out = text_count},
    {"index_set", MOVE, .body = index_set_all, .in = 3, .out = set_count + 2},
    {"matrix_transpose", MOVE, .body = matrix_transpose, .out = 2},
    {"at", MOVE, .body = at, .out = 3},
    {"at_vector", "f32", .unary = at_vector},
    {"dynamic_at", MOVE, .body = dynamic_at, .in = 3, .out = 2},
    {"dynamic_at_u8", "f32", .binary = dynamic_at_u8},
    {"dynamic_put", MOVE, .body = dynamic_put, .in = 3},
    {"dynamic_parts", MOVE, .body = dynamic_parts, .in = 3, .out = 2},
    {"rows", "f32", .body = rows, .in = 2},
    {"split", MOVE, .body = split, .out = 4},
    {"squeeze", MOVE, .body = squeeze, .out = 3},
    {"moveaxis", MOVE, .body = moveaxis, .out = 2},
    {"swapaxes", MOVE, .body = swapaxes, .out = 2},
    {"stack", MOVE, .body = stack, .in = 3, .out = 3},
    {"mod", DIVIDED, .binary = ax_mod, .modes = "v"},
    {"floor_divide", FLOAT, .binary = ax_floor_divide, .modes = "v"},
    {"floor_divide_odd", "s32 s8 u8", .binary = floor_divide_odd},
    {"mod_rows", DIVIDED, .binary = ax_mod},
    {"floor_divide_rows", FLOAT, .binary = ax_floor_divide},
    {"square", "f32 f64 bf16 s32", .unary = ax_square},
    {"clamp", "f32 bf16 s32", .body = clamp, .in = 3, .out = 2},
    {"clamp_scalar", FLOAT, .binary = clamp_scalar, .scaled = true},
};

const VECTOR_GROUP(parts);
