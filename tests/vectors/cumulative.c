#include "vectors.h"

#define FLOAT "f32 bf16"
#define NUMBER "f32 bf16 s32 u8"

typedef ax_value cumulative(ax_value x, int64_t axis, bool reverse);

static void ways(cumulative *function, const ax_value *in, ax_value *out) {
  for (int axis = 0; axis < 3; axis++) out[axis] = function(in[0], axis < 2 ? axis : -1, axis == 1);
}
static void both_ways(cumulative *function, const ax_value *in, ax_value *out) {
  for (int reverse = 0; reverse < 2; reverse++) out[reverse] = function(in[0], 0, reverse);
}

BODY(cumprod) { ways((ax_cumprod), in, out); }
BODY(cummax) { ways((ax_cummax), in, out); }
BODY(cummin) { ways((ax_cummin), in, out); }
BODY(cummax_ties) { both_ways((ax_cummax), in, out); }
BODY(cummin_ties) { both_ways((ax_cummin), in, out); }
BODY(cumlogsumexp) { ways((ax_cumlogsumexp), in, out); }
BODY(cumlogsumexp_long) { both_ways((ax_cumlogsumexp), in, out); }

static ax_value cumprod_zeros(ax_value x) { return ax_cumprod(ax_where(ax_lt(ax_abs(x), ax_real(0.4)), ax_real(0), x), 1, false); }
static ax_value fours(ax_value x) { return ax_reshape(x, AX_DIMS(12, 4)); }
static ax_value cumsum_edges(ax_value x) { return ax_cumsum(fours(x), 1, false); }
static ax_value cumlogsumexp_edges(ax_value x) { return ax_cumlogsumexp(fours(x), 1, false); }

BODY(cummax_edges) {
  out[0] = ax_cummax(in[0], 0, false);
  out[1] = ax_cummin(fours(in[0]), 1, false);
}

BODY(adds) { out[0] = ax_add(in[0], in[1]); }
BODY(larger) { out[0] = ax_max(in[0], in[1]); }
BODY(affine) {
  out[0] = ax_mul(in[0], in[2]);
  out[1] = ax_add(ax_mul(in[1], in[2]), in[3]);
}
BODY(counts) {
  out[0] = ax_add(in[0], in[2]);
  out[1] = ax_max(ax_add(in[1], in[2]), in[3]);
}

BODY(associative_scan) {
  (ax_associative_scan)(AX_FN(adds, 2, 1), 1, false, 1, in, 1, out);
  (ax_associative_scan)(AX_FN(larger, 2, 1), -1, true, 1, in, 1, out + 1);
}
BODY(associative_scan_affine) { (ax_associative_scan)(AX_FN(affine, 4, 2), 0, true, 2, in, 2, out); }
BODY(associative_scan_counts) { (ax_associative_scan)(AX_FN(counts, 4, 2), 1, false, 2, in, 2, out); }

static const vector_case cumulative_cases[] = {
    {"cumprod", NUMBER, .body = cumprod, .out = 3, .scaled = true},
    {"cumprod_zeros", "f32", .unary = cumprod_zeros, .scaled = true},
    {"cummax", NUMBER, .body = cummax, .out = 3, .scaled = true},
    {"cummin", NUMBER, .body = cummin, .out = 3, .scaled = true},
    {"cummax_ties", "f32", .body = cummax_ties, .out = 2, .scaled = true},
    {"cummin_ties", "f32", .body = cummin_ties, .out = 2, .scaled = true},
    {"cumlogsumexp", FLOAT, .body = cumlogsumexp, .out = 3, .scaled = true},
    {"cumlogsumexp_long", "f32", .body = cumlogsumexp_long, .out = 2, .modes = "v", .scaled = true},
    {"cumsum_edges", NUMBER, .unary = cumsum_edges, .modes = "v", .scaled = true},
    {"cummax_edges", NUMBER, .body = cummax_edges, .out = 2, .modes = "v"},
    {"cumlogsumexp_edges", "f32", .unary = cumlogsumexp_edges, .modes = "v"},
    {"associative_scan", "f32 s32", .body = associative_scan, .out = 2, .scaled = true},
    {"associative_scan_affine", "f32", .body = associative_scan_affine, .in = 2, .out = 2, .scaled = true},
    {"associative_scan_counts", "f32 s32", .body = associative_scan_counts, .in = 2, .out = 2, .scaled = true},
};

const VECTOR_GROUP(cumulative);
