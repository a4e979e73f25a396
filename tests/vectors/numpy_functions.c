/* Functions of jax.numpy: numpy_functions.py says the same in JAX. */
#include "axle/numpy.h"

#include <math.h>

#include "vectors/vectors.h"

#define WIDE "f32 f64"
#define ALL AX_ALL_DIMS
static const ax_value none = {0};

static ax_dtype dtype_of(ax_value x) { return ax_typeof(x).dtype; }

BODY(linspace) {
  out[0] = ax_linspace(dtype_of(in[0]), in[0], in[1], 7, true);
  out[1] = ax_linspace(dtype_of(in[0]), in[0], in[1], 5, false);
  out[2] = ax_linspace(dtype_of(in[0]), in[0], in[1], 1, true);
}
BODY(arange) {
  out[0] = ax_add(in[0], ax_arange(AX_F32, 0.5, 3, 0.3));
  out[1] = ax_arange(AX_S32, -3, 20, 4);
  out[2] = ax_arange(AX_U8, 5, 0, -2);
}
BODY(eye) {
  out[0] = ax_mul(in[0], ax_eye(AX_F32, 3, 4, 0));
  out[1] = ax_mul(in[0], ax_eye(AX_F32, 3, 4, -1));
  out[2] = ax_mul(in[0], ax_tri(AX_F32, 3, 4, 1));
}
BODY(triangles) {
  out[0] = ax_tril(in[0], 0);
  out[1] = ax_tril(in[0], -1);
  out[2] = ax_triu(in[0], 0);
  out[3] = ax_triu(in[0], 2);
}
BODY(diag) {
  static const int64_t of_vector[] = {0, 2, -1}, of_matrix[] = {0, 3, -1};
  for (int i = 0; i < 3; i++) out[i] = ax_diag(in[0], of_vector[i]), out[3 + i] = ax_diag(in[1], of_matrix[i]);
}
BODY(diagonal) {
  out[0] = ax_diagonal(in[0], 1, 0, 2);
  out[1] = ax_diagonal(in[0], -1, 2, 1);
  out[2] = ax_matrix_trace(in[0], 0, 1, 2);
  out[3] = ax_diagonal(in[0], 9, 0, 1);
}
BODY(meshgrid) {
  ax_meshgrid(AX_LIST(3, in), false, AX_LIST(3, out));
  ax_meshgrid(AX_LIST(3, in), true, AX_LIST(3, out + 3));
}
BODY(tile) {
  out[0] = ax_tile(in[0], DIMS(2, 3));
  out[1] = ax_tile(in[0], DIMS(2));
  out[2] = ax_tile(in[0], DIMS(2, 1, 1));
  out[3] = ax_repeat_elements(in[0], 3, 1);
  out[4] = ax_repeat_elements(in[0], 2, 0);
}
BODY(roll) {
  out[0] = ax_roll(in[0], LIST(2), ALL);
  out[1] = ax_roll(in[0], LIST(-1), DIMS(1));
  out[2] = ax_roll(in[0], LIST(1, 5), DIMS(0, 1));
}
BODY(flip) {
  out[0] = ax_flip(in[0], ALL);
  out[1] = ax_flip(in[0], DIMS(2));
  out[2] = ax_fliplr(in[0]);
  out[3] = ax_flipud(in[0]);
  out[4] = ax_rot90(in[0], 1, 0, 1);
  out[5] = ax_rot90(in[0], 2, 0, 1);
  out[6] = ax_rot90(in[0], -1, 0, 2);
}
BODY(stacks) {
  out[0] = ax_hstack(AX_LIST(2, in));
  out[1] = ax_hstack(AX_VALUES(in[2], in[2]));
  out[2] = ax_vstack(AX_LIST(2, in));
  out[3] = ax_vstack(AX_VALUES(in[2], in[2]));
  out[4] = ax_dstack(AX_LIST(2, in));
  out[5] = ax_dstack(AX_VALUES(in[2], in[2]));
  out[6] = ax_column_stack(AX_VALUES(in[2], in[2]));
}
BODY(array_split) { ax_array_split(in[0], 3, 1, AX_LIST(3, out)); }
BODY(select_first) {
  const ax_value choices[] = {in[1], in[0]};
  out[0] = ax_select(AX_VALUES(ax_gt(in[0], ax_integer(1)), ax_gt(in[0], ax_integer(0))), choices, ax_integer(7));
}
BODY(clip) { out[0] = ax_clip(in[0], in[1], in[2]); }
BODY(isclose) {
  out[0] = ax_isclose(in[0], in[1], 0.1, 0.01, false);
  out[1] = ax_isclose(in[0], in[1], 1e-5, 1e-8, true);
}
BODY(nan_to_num) {
  out[0] = ax_nan_to_num(in[0], 0, INFINITY, -INFINITY);
  out[1] = ax_nan_to_num(in[0], 1, 2, 3);
}
BODY(diff) {
  out[0] = ax_diff(in[0], 1, -1);
  out[1] = ax_diff(in[0], 2, 0);
  out[2] = ax_diff(in[0], 9, -1);
}
BODY(outer) {
  out[0] = ax_outer(in[0], in[1]);
  out[1] = ax_inner(in[0], in[0]);
  out[2] = ax_inner(in[1], in[1]);
  out[3] = ax_vdot(in[0], in[0]);
  out[4] = ax_kron(in[1], in[1]);
}
BODY(tensordot) { out[0] = ax_tensordot(in[0], in[1], DIMS(0, 2), LIST(1, 0)); }
BODY(cross) {
  out[0] = ax_cross(in[0], in[1], -1);
  out[1] = ax_cross(ax_swapaxes(in[0], 0, 1), ax_swapaxes(in[0], 0, 1), 0);
}
BODY(convolve) {
  out[0] = ax_convolve(in[0], in[1], NULL);
  out[1] = ax_convolve(in[1], in[0], "same");
  out[2] = ax_convolve(in[0], in[1], "valid");
  out[3] = ax_correlate(in[0], in[1], NULL);
  out[4] = ax_correlate(in[1], in[0], "full");
  out[5] = ax_correlate(in[0], in[1], "same");
}

/* --- Statistics --- */

BODY(var) {
  out[0] = ax_var(in[0], ALL, 0, false);
  out[1] = ax_var(in[0], DIMS(1), 1, false);
  out[2] = ax_std(in[0], DIMS(0, 2), 0, true);
  out[3] = ax_std(in[0], DIMS(0), 2, false);
}
BODY(reduced_where) {
  out[0] = ax_reduce_sum_where(in[0], in[1], DIMS(0), false);
  out[1] = ax_reduce_mean_where(in[0], in[1], DIMS(0), false);
  out[2] = ax_var_where(in[0], in[1], DIMS(0), 1, false);
  out[3] = ax_reduce_max_where(in[0], in[1], DIMS(1), false);
  out[4] = ax_reduce_min_where(in[0], in[1], DIMS(1), true);
}
BODY(nan_reduced) {
  out[0] = ax_nansum(in[0], DIMS(1), false), out[4] = ax_nansum(in[0], ALL, false);
  out[1] = ax_nanmean(in[0], DIMS(1), false), out[5] = ax_nanmean(in[0], ALL, false);
  out[2] = ax_nanmax(in[0], DIMS(1), false), out[6] = ax_nanmax(in[0], ALL, false);
  out[3] = ax_nanmin(in[0], DIMS(1), false), out[7] = ax_nanmin(in[0], ALL, false);
}
BODY(nanvar) {
  out[0] = ax_nanvar(in[0], DIMS(0), 0, false);
  out[1] = ax_nanstd(in[0], DIMS(0), 1, false);
  out[2] = ax_nanvar(in[0], DIMS(1), 0, true);
}
BODY(average) {
  out[0] = ax_average(in[0], in[1], DIMS(1), false);
  out[1] = ax_average(in[0], none, ALL, false);
  out[2] = ax_ptp(in[0], DIMS(0), false);
}
BODY(cov) {
  out[0] = ax_cov(in[0], true, 1);
  out[1] = ax_cov(in[0], false, 0);
  out[2] = ax_cov(ax_at(in[0], 0, 0), true, 1);
  out[3] = ax_corrcoef(in[0], true);
}
BODY(quantile) {
  static const char *const methods[] = {"linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"};
  static const double q[] = {0, 0.3, 0.75};
  for (int i = 0; i < 18; i++) out[i] = ax_quantile(in[0], ax_real(q[i % 3]), DIMS(1), methods[i / 3], false);
}
BODY(quantiles) {
  out[0] = ax_quantile(in[0], in[1], ALL, NULL, false);
  out[1] = ax_quantile(in[0], in[1], DIMS(0, 2), "inverted_cdf", true);
  out[2] = ax_percentile(in[0], ax_mul(in[1], ax_integer(100)), DIMS(1), NULL, false);
}
BODY(median) {
  out[0] = ax_median(in[0], ALL, false);
  out[1] = ax_median(in[0], DIMS(1), false);
  out[2] = ax_median(in[1], DIMS(1), true);
  out[3] = ax_nanmedian(in[1], DIMS(1), false);
  out[4] = ax_nanquantile(in[1], 0.3, DIMS(1), NULL, false);
}
BODY(median_bf16) {
  out[0] = ax_median(in[0], DIMS(1), false);
  out[1] = ax_quantile(in[0], ax_real(0.25), ALL, NULL, false);
}

/* --- Search and counts --- */

BODY(searchsorted) {
  out[0] = ax_searchsorted(in[0], in[1], false);
  out[1] = ax_searchsorted(in[0], in[1], true);
  out[2] = ax_digitize(in[1], in[0], false);
  out[3] = ax_digitize(in[1], ax_flip(in[0], ALL), true);
}
BODY(searchsorted_both) {
  out[0] = ax_searchsorted(in[0], in[1], false);
  out[1] = ax_searchsorted(in[0], in[1], true);
}
BODY(bincount) {
  out[0] = ax_bincount(in[0], none, 6);
  out[1] = ax_bincount(in[0], in[1], 4);
}
BODY(histogram) {
  static const double edges[] = {-1, 0, 0.5, 2};
  out[1] = ax_histogram_bin_edges(in[0], 5);
  out[0] = ax_histogram(in[0], out[1], none);
  const ax_type type = ax_array_type(AX_F64, DIMS(4));
  out[2] = ax_histogram(in[0], ax_convert_element_type(ax_constant(&type, edges), dtype_of(in[0])), in[1]);
}
BODY(interp) { out[0] = ax_interp(in[0], in[1], in[2]); }
BODY(unique) {
  ax_value all[4];
  ax_unique(in[0], 6, none, AX_LIST(4, all));
  out[0] = all[0], out[1] = all[1];
  ax_unique(in[0], 9, ax_integer(7), AX_LIST(4, all));
  out[2] = all[0];
}
BODY(unique_inverse) {
  ax_value all[4];
  ax_unique(in[0], 5, none, AX_LIST(4, all));
  out[0] = all[2], out[1] = all[3];
}
BODY(nonzero) {
  ax_nonzero(in[0], 8, -1, AX_LIST(2, out));
  ax_nonzero(in[0], 3, 0, AX_LIST(2, out + 2));
}
BODY(resize) {
  static const char *const methods[] = {"linear", "cubic", "lanczos3", "lanczos5"};
  for (int i = 0; i < 4; i++) out[i] = ax_image_resize(in[0], DIMS(2, 3, 8), methods[i], true);
}
BODY(resize_sharp) {
  out[0] = ax_image_resize(in[0], DIMS(3, 9), "linear", false);
  out[1] = ax_image_resize(in[0], DIMS(9, 3), "cubic", false);
  out[2] = ax_image_resize(in[0], DIMS(3, 13), "nearest", true);
}

static const vector_case numpy_functions_cases[] = {
    {"linspace", WIDE, .body = linspace, .in = 2, .out = 3, .scaled = true},
    {"arange", "f32", .body = arange, .out = 3},
    {"eye", "f32", .body = eye, .out = 3},
    {"triangles", "f32 s32 bool", .body = triangles, .out = 4},
    {"diag", "f32 s32", .body = diag, .in = 2, .out = 6},
    {"diagonal", "f32", .body = diagonal, .out = 4, .scaled = true},
    {"meshgrid", "f32", .body = meshgrid, .in = 3, .out = 6},
    {"tile", "f32", .body = tile, .out = 5, .scaled = true},
    {"roll", "f32 bool", .body = roll, .out = 3},
    {"flip", "f32", .body = flip, .out = 7},
    {"stacks", "f32", .body = stacks, .in = 3, .out = 7},
    {"array_split", "f32", .body = array_split, .out = 3},
    {"select", "f32", .body = select_first, .in = 2},
    {"clip", WIDE, .body = clip, .in = 3},
    {"isclose", "f32", .body = isclose, .in = 2, .out = 2},
    {"nan_to_num", "f32 f64 bf16 f16", .body = nan_to_num, .out = 2},
    {"diff", "f32 s32", .body = diff, .out = 3, .scaled = true},
    {"outer", "f32 s32", .body = outer, .in = 2, .out = 5, .scaled = true},
    {"tensordot", "f32", .body = tensordot, .in = 2, .scaled = true},
    {"cross", WIDE, .body = cross, .in = 2, .out = 2, .scaled = true},
    {"convolve", "f32", .body = convolve, .in = 2, .out = 6, .scaled = true},
    {"var", "f32 f64 bf16", .body = var, .out = 4, .scaled = true},
    {"reduced_where", WIDE, .body = reduced_where, .in = 2, .out = 5, .scaled = true},
    {"nan_reduced", WIDE, .body = nan_reduced, .out = 8, .scaled = true},
    {"nanvar", "f32", .body = nanvar, .out = 3, .modes = "v", .scaled = true},
    {"average", "f32", .body = average, .in = 2, .out = 3, .scaled = true},
    {"cov", WIDE, .body = cov, .out = 4, .scaled = true},
    {"quantile", WIDE, .body = quantile, .out = 18, .scaled = true},
    {"quantiles", WIDE, .body = quantiles, .in = 2, .out = 3, .scaled = true},
    {"median", WIDE, .body = median, .in = 2, .out = 5, .modes = "v", .scaled = true},
    {"median_bf16", "bf16", .body = median_bf16, .out = 2},
    {"searchsorted", "f32 bf16", .body = searchsorted, .in = 2, .out = 4},
    {"searchsorted_long", "f32", .body = searchsorted_both, .in = 2, .out = 2},
    {"searchsorted_integers", "s32", .body = searchsorted_both, .in = 2, .out = 2},
    {"bincount", "f32", .body = bincount, .in = 2, .out = 2, .scaled = true},
    {"histogram", WIDE, .body = histogram, .in = 2, .out = 3, .modes = "v", .scaled = true},
    {"interp", WIDE, .body = interp, .in = 3, .scaled = true},
    {"unique", "f32 s32", .body = unique, .out = 3, .modes = "v"},
    {"unique_inverse", "f32", .body = unique_inverse, .out = 2},
    {"nonzero", "f32", .body = nonzero, .out = 4},
    {"resize", WIDE, .body = resize, .out = 4, .ulps = 64, .scaled = true},
    {"resize_sharp", "f32", .body = resize_sharp, .out = 3, .ulps = 64, .scaled = true},
};

const VECTOR_GROUP(numpy_functions);
