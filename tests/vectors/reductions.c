/* Reductions by one operation beyond sums and extremes, and by functions of several arrays: reductions.py says the same in JAX. */
#include "vectors/vectors.h"

#define NUMBERS "f32 f64 bf16 s32 u8"
#define BITS "bool s32 u8 s64"

BODY(reduce_prod) {
  out[0] = ax_reduce_prod(in[0], DIMS(0), false);
  out[1] = ax_reduce_prod(in[0], DIMS(0, 2), false);
  out[2] = ax_reduce_prod(in[0], AX_ALL_DIMS, false);
}
static ax_value reduce_prod_long(ax_value x) { return ax_reduce_prod(ax_add(ax_div(x, ax_integer(16)), ax_integer(1)), DIMS(0), false); }
static ax_value reduce_prod_zeros(ax_value x) { return ax_reduce_prod(ax_where(ax_lt(x, ax_real(0.4)), ax_integer(0), x), DIMS(1), false); }
static ax_value reduce_prod_edges(ax_value x) { return ax_reduce_prod(ax_reshape(x, DIMS(12, 2)), DIMS(1), false); }
static ax_value reduce_prod_none(ax_value x) { return ax_reduce_prod(x, DIMS(0), false); }

BODY(reduce_bits) {
  out[0] = ax_reduce_and(in[0], DIMS(0), false);
  out[1] = ax_reduce_and(in[0], DIMS(0, 2), false);
  out[2] = ax_reduce_or(in[0], DIMS(0), false);
  out[3] = ax_reduce_or(in[0], DIMS(0, 2), false);
  out[4] = ax_reduce_xor(in[0], DIMS(0), false);
  out[5] = ax_reduce_xor(in[0], DIMS(0, 2), false);
}
BODY(reduce_bits_none) {
  out[0] = ax_reduce_and(in[0], DIMS(0), false);
  out[1] = ax_reduce_or(in[0], DIMS(0), false);
}

BODY(dual) { out[0] = ax_add(ax_add(ax_mul(in[0], in[1]), in[0]), in[1]); }
static ax_value by_dual(ax_value x, uint32_t count, const int64_t *axes) {
  ax_value made, start = ax_integer(0);
  ax_reduce(AX_VALUES(x), AX_VALUES(start), AX_FN(dual, 2, 1), AX_LIST(count, axes), AX_LIST(1, &made));
  return made;
}
BODY(reduce_dual) {
  out[0] = by_dual(in[0], DIMS(0));
  out[1] = by_dual(in[0], DIMS(1));
  out[2] = by_dual(in[0], DIMS(0, 2));
  out[3] = by_dual(in[0], AX_ALL_DIMS);
}
static ax_value reduce_dual_long(ax_value x) { return by_dual(x, DIMS(1)); }
static ax_value reduce_dual_none(ax_value x) { return by_dual(x, DIMS(1)); }
BODY(along_0) { out[0] = by_dual(in[0], DIMS(0)); }
static ax_value reduce_dual_mapped(ax_value x) {
  ax_value made;
  ax_vmap(AX_FN(along_0, 1, 1), AX_LIST(1, &x), AX_LIST(1, &made), &(ax_vmap_options){.in_axes = {AX_DIMS(1)}});
  return made;
}

BODY(later_of_equals) {
  ax_value first = ax_or(ax_gt(in[0], in[2]), ax_ne(in[0], in[0]));
  out[0] = ax_where(first, in[0], in[2]);
  out[1] = ax_where(first, in[1], in[3]);
}
static void places_of(ax_value x, ax_value *out) {
  const ax_type type = ax_typeof(x);
  ax_value least = type.dtype == AX_S32 ? ax_integer(INT32_MIN) : ax_real(-__builtin_inf());
  ax_value at = ax_iota(AX_S32, AX_LIST(type.rank, type.dims), 1);
  ax_reduce(AX_VALUES(x, at), AX_VALUES(least, ax_integer(-1)), AX_FN(later_of_equals, 4, 2), DIMS(1), AX_LIST(2, out));
}
BODY(reduce_places) { places_of(in[0], out); }
BODY(reduce_places_edges) { places_of(ax_reshape(in[0], DIMS(3, 8)), out); }

BODY(moments) {
  ax_value n = ax_add(in[0], in[3]), safe = ax_max(n, ax_real(1e-30)), d = ax_sub(in[4], in[1]);
  out[0] = n;
  out[1] = ax_add(in[1], ax_div(ax_mul(d, in[3]), safe));
  out[2] = ax_add(ax_add(in[2], in[5]), ax_div(ax_mul(ax_mul(ax_mul(d, d), in[0]), in[3]), safe));
}
BODY(reduce_moments) {
  ax_value zero = ax_integer(0);
  ax_reduce(AX_VALUES(ax_abs(in[1]), in[0], ax_mul(in[0], ax_integer(0))), AX_VALUES(zero, zero, zero), AX_FN(moments, 6, 3), DIMS(0),
            AX_LIST(3, out));
}

BODY(sum) { out[0] = ax_add(in[0], in[1]); }
BODY(most) { out[0] = ax_max(in[0], in[1]); }
BODY(product) { out[0] = ax_mul(in[0], in[1]); }
BODY(reduce_start) {
  ax_reduce(AX_LIST(1, in), AX_VALUES(ax_integer(3)), AX_FN(sum, 2, 1), DIMS(0), AX_LIST(1, out));
  ax_reduce(AX_LIST(1, in), AX_VALUES(ax_integer(1)), AX_FN(most, 2, 1), DIMS(1), AX_LIST(1, out + 1));
  ax_reduce(AX_LIST(1, in), AX_VALUES(ax_integer(2)), AX_FN(product, 2, 1), AX_ALL_DIMS, AX_LIST(1, out + 2));
}

static const vector_case reductions_cases[] = {
    {"reduce_prod", NUMBERS, .body = reduce_prod, .out = 3},
    {"reduce_prod_long", "f32 f64", .unary = reduce_prod_long},
    {"reduce_prod_zeros", "f32", .unary = reduce_prod_zeros},
    {"reduce_prod_edges", "f32 f64", .unary = reduce_prod_edges, .modes = "v"},
    {"reduce_prod_none", "f32 s32", .unary = reduce_prod_none},
    {"reduce_bits", BITS, .body = reduce_bits, .out = 6},
    {"reduce_bits_none", "bool s32", .body = reduce_bits_none, .out = 2},
    {"reduce_dual", "f32 f64 s32", .body = reduce_dual, .out = 4, .scaled = true},
    {"reduce_dual_long", "f32 s32", .unary = reduce_dual_long, .scaled = true},
    {"reduce_dual_none", "f32", .unary = reduce_dual_none},
    {"reduce_dual_mapped", "f32", .unary = reduce_dual_mapped, .scaled = true},
    {"reduce_places", "f32 bf16 s32", .body = reduce_places, .out = 2, .modes = "v"},
    {"reduce_places_edges", "f32 f64 s32", .body = reduce_places_edges, .out = 2, .modes = "v"},
    {"reduce_moments", "f32 f64", .body = reduce_moments, .in = 2, .out = 3, .modes = "v", .scaled = true},
    {"reduce_start", "f32 s32", .body = reduce_start, .out = 3, .modes = "v"},
};

const VECTOR_GROUP(reductions);
