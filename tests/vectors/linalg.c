/* Linear algebra: see linalg.py. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "vectors.h"

#define FLOAT "f32 f64"
#define COMPLEX "c64 c128"
#define NUMBER FLOAT " " COMPLEX
#define UNSTEADY 1024 /* on two processors JAX itself gives what is 275 epsilons apart */

BODY(cholesky) { out[0] = ax_cholesky(in[0], true); }
BODY(cholesky_lower) { out[0] = ax_cholesky(in[0], false); }
BODY(cholesky_one) { out[0] = ax_cholesky(ax_add(ax_mul(in[0], in[0]), ax_integer(1)), true); }

BODY(lu) { ax_lu(in[0], AX_LIST(3, out)); }
BODY(lu_singular) { ax_lu(ax_mul(in[0], ax_integer(0)), AX_LIST(3, out)); }

BODY(solve_lower) { out[0] = ax_triangular_solve(in[0], in[1], true, true, false, false, false); }
BODY(solve_upper) { out[0] = ax_triangular_solve(in[0], in[1], true, false, false, false, false); }
BODY(solve_transposed) { out[0] = ax_triangular_solve(in[0], in[1], true, true, true, false, false); }
BODY(solve_right) { out[0] = ax_triangular_solve(in[0], in[1], false, true, false, false, false); }
BODY(solve_right_transposed) { out[0] = ax_triangular_solve(in[0], in[1], false, false, true, true, false); }
BODY(solve_unit) { out[0] = ax_triangular_solve(in[0], in[1], true, true, false, false, true); }

BODY(qr) { ax_qr(in[0], false, false, AX_LIST(2, out)); }
BODY(qr_full) { ax_qr(in[0], true, false, AX_LIST(2, out)); }
BODY(qr_pivoting) { ax_qr(in[0], false, true, AX_LIST(3, out)); }
BODY(geqrf) { ax_geqrf(in[0], AX_LIST(2, out)); }
BODY(geqp3) {
  const ax_type type = ax_array_type(AX_S32, DIMS(3));
  ax_geqp3(in[0], ax_constant(&type, ((const int32_t[]){0, 1, 0})), AX_LIST(3, out));
}
BODY(householder_product) { out[0] = ax_householder_product(in[0], in[1]); }
BODY(ormqr) { out[0] = ax_ormqr(in[0], in[1], in[2], true, false); }
BODY(ormqr_right) { out[0] = ax_ormqr(in[0], in[1], in[2], false, true); }
BODY(eigh) { ax_eigh(in[0], true, true, AX_LIST(2, out)); }
BODY(eigh_other) { ax_eigh(in[0], false, true, AX_LIST(2, out)); }
BODY(eigh_upper) { ax_eigh(in[0], false, false, AX_LIST(2, out)); }
BODY(eigh_nan) { ax_eigh(ax_mul(in[0], ax_real(NAN)), true, true, AX_LIST(2, out)); }
BODY(eigvalsh) { out[0] = ax_eigvalsh(in[0], true, true); }
BODY(eig) { ax_eig(in[0], true, true, AX_LIST(3, out)); }
BODY(eig_right) { ax_eig(in[0], false, true, AX_LIST(2, out)); }
BODY(eig_left) { ax_eig(in[0], true, false, AX_LIST(2, out)); }
BODY(eig_nan) { ax_eig(ax_mul(in[0], ax_real(NAN)), true, true, AX_LIST(3, out)); }
BODY(eigvals) { out[0] = ax_eigvals(in[0]); }
BODY(svd) { ax_svd(in[0], false, true, AX_LIST(3, out)); }
BODY(svd_full) { ax_svd(in[0], true, true, AX_LIST(3, out)); }
BODY(svd_values) { ax_svd(in[0], true, false, AX_LIST(1, out)); }
BODY(svd_nan) { ax_svd(ax_mul(in[0], ax_real(NAN)), true, true, AX_LIST(3, out)); }

BODY(tridiagonal_solve) { out[0] = ax_tridiagonal_solve(in[0], in[1], in[2], in[3]); }
BODY(tridiagonal_solve_singular) {
  out[0] = ax_tridiagonal_solve(ax_mul(in[0], ax_integer(0)), ax_mul(in[1], ax_integer(0)), in[2], in[3]);
}
BODY(tridiagonal) { ax_tridiagonal(in[0], true, AX_LIST(4, out)); }
BODY(tridiagonal_upper) { ax_tridiagonal(in[0], false, AX_LIST(4, out)); }
BODY(hessenberg) { ax_hessenberg(in[0], AX_LIST(2, out)); }
BODY(schur) { ax_schur(in[0], true, AX_LIST(2, out)); }
BODY(schur_alone) { ax_schur(in[0], false, AX_LIST(1, out)); }
BODY(schur_complex) {
  ax_value made[2];
  ax_schur(in[0], true, AX_LIST(2, made));
  out[0] = ax_abs(made[0]);
  out[1] = ax_abs(made[1]);
  out[2] = ax_matmul(ax_matmul(made[1], made[0]), ax_conj(ax_swapaxes(made[1], 1, 2)));
}
BODY(schur_complex_alone) {
  ax_schur(in[0], false, AX_LIST(1, out));
  out[0] = ax_abs(out[0]);
}

/* x without a row: singular. */
static ax_value without(ax_value x, int row) {
  const ax_type type = ax_typeof(x);
  const ax_value kept = ax_ne(ax_iota(AX_S32, DIMS(type.dims[type.rank - 1], 1), 0), ax_integer(row));
  return ax_mul(x, ax_convert_element_type(kept, type.dtype));
}
static ax_value places(void) {
  const ax_type type = ax_array_type(AX_S32, DIMS(4));
  return ax_constant(&type, ((const int32_t[]){2, 3, 2, 3}));
}

BODY(solve) { out[0] = ax_solve(in[0], in[1]); }
BODY(cholesky_solve) { out[0] = ax_cholesky_solve(in[0], in[1], true); }
BODY(cholesky_solve_upper) { out[0] = ax_cholesky_solve(in[0], in[1], false); }
BODY(lu_solve) { out[0] = ax_lu_solve(in[0], places(), in[1], false); }
BODY(lu_solve_transposed) { out[0] = ax_lu_solve(in[0], places(), in[1], true); }
BODY(lstsq) { ax_lstsq(in[0], in[1], -1, AX_LIST(4, out)); }
BODY(lstsq_wide) { ax_lstsq(in[0], in[1], 0.1, AX_LIST(4, out)); }
BODY(lstsq_alike) {
  ax_value all[4];
  ax_lstsq(in[0], in[1], 0.1, AX_LIST(4, all));
  out[0] = all[0];
}
BODY(inv) { out[0] = ax_inv(in[0]); }
BODY(pinv) { out[0] = ax_pinv(in[0], -1); }
BODY(pinv_alike) { out[0] = ax_pinv(in[0], 0.1); }
BODY(pinvh) { out[0] = ax_pinvh(in[0], -1); }
BODY(pinvh_alike) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const ax_value turned = ax_matrix_transpose(dtype == AX_C64 || dtype == AX_C128 ? ax_conj(in[0]) : in[0]);
  const ax_value corner = ax_pad(ax_full(dtype, DIMS(1, 1), 4), ax_integer(0), DIMS(0, 0), DIMS(2, 2), DIMS(0, 0));
  out[0] = ax_pinvh(ax_sub(ax_matmul(in[0], turned), corner), 0.1);
}
BODY(tensorinv) { out[0] = ax_tensorinv(ax_reshape(in[0], DIMS(2, 3, 1, 6)), 2); }
BODY(tensorsolve) { out[0] = ax_tensorsolve(ax_reshape(in[0], DIMS(2, 2, 4)), in[1]); }
BODY(vecdot) { out[0] = ax_vecdot(in[0], in[1], -2); }
BODY(svdvals) { out[0] = ax_svdvals(in[0]); }
BODY(cond) { out[0] = ax_cond(in[0], NULL); }
BODY(cond_least_2) { out[0] = ax_cond(in[0], "-2"); }
BODY(cond_orders) {
  const char *const orders[] = {"1", "-1", "inf", "-inf", "fro"};
  for (int i = 0; i < 5; i++) out[i] = ax_cond(in[0], orders[i]);
}
BODY(cond_singular) {
  const ax_value second = ax_eq(ax_iota(AX_S32, DIMS(2, 3, 3), 0), ax_integer(1));
  const ax_value x = ax_where(second, ax_real(NAN), ax_mul(in[0], ax_integer(0)));
  out[0] = ax_cond(x, "-2"), out[1] = ax_cond(x, "1");
}
BODY(det) { out[0] = ax_det(in[0]); }
BODY(det_singular) { out[0] = ax_det(without(in[0], 1)); }
BODY(slogdet) { ax_slogdet(in[0], AX_LIST(2, out)); }
BODY(slogdet_singular) { ax_slogdet(without(in[0], 0), AX_LIST(2, out)); }
BODY(matrix_rank) { out[0] = ax_matrix_rank(without(in[0], 2), -1); }
BODY(matrix_rank_alike) { out[0] = ax_matrix_rank(in[0], 0.01); }
BODY(matrix_power) { out[0] = ax_matrix_power(in[0], 5); }
BODY(matrix_power_inverse) { out[0] = ax_matrix_power(in[0], -2); }
BODY(matrix_power_zero) { out[0] = ax_matrix_power(in[0], 0); }
BODY(expm) { out[0] = ax_expm(in[0]); }
BODY(expm_batch) {
  const double sizes[] = {0.001, 1, 1.75};
  ax_value parts[3];
  for (int i = 0; i < 3; i++) parts[i] = ax_mul(ax_at(in[0], i, 0), ax_real(sizes[i]));
  out[0] = ax_expm(ax_stack(AX_LIST(3, parts), 0));
}
BODY(expm_too_large) { out[0] = ax_expm(ax_mul(in[0], ax_real(1e9))); }
BODY(multi_dot) { out[0] = ax_multi_dot(AX_LIST(4, in)); }
BODY(norm) { out[0] = ax_norm(in[0], AX_ALL_DIMS, false); }
BODY(norm_rows) { out[0] = ax_norm(in[0], DIMS(1), true); }
BODY(vector_norm_1) { out[0] = ax_vector_norm(in[0], 1, DIMS(0), false); }
BODY(vector_norm_3) { out[0] = ax_vector_norm(in[0], 3, AX_ALL_DIMS, false); }
BODY(vector_norm_0) { out[0] = ax_vector_norm(without(in[0], 1), 0, AX_ALL_DIMS, false); }
BODY(vector_norm_largest) { out[0] = ax_vector_norm(in[0], INFINITY, DIMS(1), false); }
BODY(vector_norm_smallest) { out[0] = ax_vector_norm(in[0], -INFINITY, DIMS(1), false); }
BODY(matrix_norm) { out[0] = ax_matrix_norm(in[0], NULL, false); }
BODY(matrix_norm_nuclear) { out[0] = ax_matrix_norm(in[0], "nuc", false); }
BODY(matrix_norm_1) { out[0] = ax_matrix_norm(in[0], "1", false); }
BODY(matrix_norm_least_1) { out[0] = ax_matrix_norm(in[0], "-1", false); }
BODY(matrix_norm_2) { out[0] = ax_matrix_norm(in[0], "2", true); }
BODY(matrix_norm_least_2) { out[0] = ax_matrix_norm(in[0], "-2", false); }
BODY(matrix_norm_rows) { out[0] = ax_matrix_norm(in[0], "inf", false); }
BODY(matrix_norm_least_rows) { out[0] = ax_matrix_norm(in[0], "-inf", false); }

static const vector_case linalg_cases[] = {
    {"cholesky", NUMBER, .body = cholesky, .scaled = true},
    {"cholesky_batch", NUMBER, .body = cholesky, .scaled = true},
    {"cholesky_lower", NUMBER, .body = cholesky_lower, .scaled = true, .modes = "v"},
    {"cholesky_indefinite", NUMBER, .body = cholesky, .modes = "v"},
    {"cholesky_one", FLOAT, .body = cholesky_one, .scaled = true},
    {"cholesky_none", NUMBER, .body = cholesky, .modes = "v"},
    {"solve_lower", NUMBER, .body = solve_lower, .in = 2, .scaled = true},
    {"solve_upper", NUMBER, .body = solve_upper, .in = 2, .scaled = true},
    {"solve_transposed", NUMBER, .body = solve_transposed, .in = 2, .scaled = true},
    {"solve_right", NUMBER, .body = solve_right, .in = 2, .scaled = true},
    {"solve_right_transposed", NUMBER, .body = solve_right_transposed, .in = 2, .scaled = true},
    {"solve_unit", NUMBER, .body = solve_unit, .in = 2, .scaled = true},
    {"lu", NUMBER, .body = lu, .out = 3, .scaled = true},
    {"lu_batch", NUMBER, .body = lu, .out = 3, .scaled = true},
    {"lu_wide", NUMBER, .body = lu, .out = 3, .scaled = true},
    {"lu_tall", NUMBER, .body = lu, .out = 3, .scaled = true},
    {"lu_singular", NUMBER, .body = lu_singular, .out = 3, .modes = "v"},
    {"qr", NUMBER, .body = qr, .out = 2, .scaled = true},
    {"qr_full", NUMBER, .body = qr_full, .out = 2, .scaled = true},
    {"qr_wide", NUMBER, .body = qr_full, .out = 2, .scaled = true},
    {"qr_pivoting", NUMBER, .body = qr_pivoting, .out = 3, .scaled = true},
    {"qr_none", NUMBER, .body = qr_full, .out = 2, .modes = "v"},
    {"geqrf", NUMBER, .body = geqrf, .out = 2, .scaled = true, .modes = "v"},
    {"geqp3", NUMBER, .body = geqp3, .out = 3, .scaled = true, .modes = "v"},
    {"householder_product", NUMBER, .body = householder_product, .in = 2, .scaled = true, .modes = "v"},
    {"ormqr", NUMBER, .body = ormqr, .in = 3, .scaled = true, .modes = "v"},
    {"ormqr_right", NUMBER, .body = ormqr_right, .in = 3, .scaled = true, .modes = "v"},
    {"eigh", NUMBER, .body = eigh, .out = 2, .scaled = true},
    {"eigh_batch", NUMBER, .body = eigh_other, .out = 2, .scaled = true},
    {"eigh_upper", NUMBER, .body = eigh_upper, .out = 2, .scaled = true, .modes = "v"},
    {"eigh_nan", NUMBER, .body = eigh_nan, .out = 2, .modes = "v"},
    {"eigvalsh", NUMBER, .body = eigvalsh, .scaled = true},
    {"eig", NUMBER, .body = eig, .out = 3, .scaled = true, .ulps = UNSTEADY},
    {"eig_batch", NUMBER, .body = eig, .out = 3, .scaled = true, .ulps = UNSTEADY},
    {"eig_right", NUMBER, .body = eig_right, .out = 2, .scaled = true, .ulps = UNSTEADY},
    {"eig_left", NUMBER, .body = eig_left, .out = 2, .scaled = true, .ulps = UNSTEADY},
    {"eig_nan", NUMBER, .body = eig_nan, .out = 3, .modes = "v"},
    {"eigvals", NUMBER, .body = eigvals, .scaled = true, .ulps = UNSTEADY},
    {"svd", NUMBER, .body = svd, .out = 3, .scaled = true},
    {"svd_wide", NUMBER, .body = svd, .out = 3, .scaled = true},
    {"svd_square", NUMBER, .body = svd_full, .out = 3, .scaled = true},
    {"svd_full", NUMBER, .body = svd_full, .out = 3, .scaled = true, .modes = "v"},
    {"svd_values", NUMBER, .body = svd_values, .scaled = true},
    {"svd_nan", NUMBER, .body = svd_nan, .out = 3, .modes = "v"},
    {"svd_none", NUMBER, .body = svd_full, .out = 3, .modes = "v"},
    {"tridiagonal_solve", NUMBER, .body = tridiagonal_solve, .in = 4, .scaled = true},
    {"tridiagonal_solve_batch", NUMBER, .body = tridiagonal_solve, .in = 4, .scaled = true},
    {"tridiagonal_solve_singular", NUMBER, .body = tridiagonal_solve_singular, .in = 4, .modes = "v"},
    {"tridiagonal", NUMBER, .body = tridiagonal, .out = 4, .scaled = true, .modes = "v"},
    {"tridiagonal_upper", NUMBER, .body = tridiagonal_upper, .out = 4, .scaled = true, .modes = "v"},
    {"hessenberg", NUMBER, .body = hessenberg, .out = 2, .scaled = true, .modes = "v"},
    {"schur", FLOAT, .body = schur, .out = 2, .scaled = true, .modes = "v"},
    {"schur_alone", FLOAT, .body = schur_alone, .scaled = true, .modes = "v"},
    {"schur_complex", COMPLEX, .body = schur_complex, .out = 3, .scaled = true, .modes = "v"},
    {"schur_complex_alone", COMPLEX, .body = schur_complex_alone, .scaled = true, .modes = "v"},
    {"linear_solve", NUMBER, .body = solve, .in = 2, .scaled = true},
    {"linear_solve_vector", NUMBER, .body = solve, .in = 2, .scaled = true},
    {"linear_solve_batches", NUMBER, .body = solve, .in = 2, .scaled = true},
    {"linear_solve_together", NUMBER, .body = solve, .in = 2, .scaled = true},
    {"linear_solve_none", NUMBER, .body = solve, .in = 2, .scaled = true, .modes = "v"},
    {"cholesky_solve", NUMBER, .body = cholesky_solve, .in = 2, .scaled = true},
    {"cholesky_solve_upper", NUMBER, .body = cholesky_solve_upper, .in = 2, .scaled = true},
    {"lu_solve", NUMBER, .body = lu_solve, .in = 2, .scaled = true},
    {"lu_solve_transposed", NUMBER, .body = lu_solve_transposed, .in = 2, .scaled = true},
    {"lstsq", NUMBER, .body = lstsq, .in = 2, .out = 4, .scaled = true},
    {"lstsq_wide", NUMBER, .body = lstsq_wide, .in = 2, .out = 4, .scaled = true, .modes = "v"},
    {"lstsq_alike", NUMBER, .body = lstsq_alike, .in = 2, .scaled = true, .modes = "v"},
    {"inv", NUMBER, .body = inv, .scaled = true},
    {"pinv", NUMBER, .body = pinv, .scaled = true},
    {"pinv_wide", NUMBER, .body = pinv, .scaled = true},
    {"pinv_alike", NUMBER, .body = pinv_alike, .scaled = true},
    {"pinvh", NUMBER, .body = pinvh, .scaled = true, .ulps = 128},
    {"pinvh_alike", NUMBER, .body = pinvh_alike, .scaled = true, .modes = "v"},
    {"tensorinv", NUMBER, .body = tensorinv, .scaled = true},
    {"tensorsolve", NUMBER, .body = tensorsolve, .in = 2, .scaled = true},
    {"vecdot", NUMBER, .body = vecdot, .in = 2, .scaled = true},
    {"svdvals", NUMBER, .body = svdvals, .scaled = true},
    {"cond", NUMBER, .body = cond, .scaled = true},
    {"cond_least_2", NUMBER, .body = cond_least_2, .scaled = true},
    {"cond_orders", NUMBER, .body = cond_orders, .out = 5, .scaled = true},
    {"cond_singular", FLOAT, .body = cond_singular, .out = 2, .modes = "v"},
    {"det_1", NUMBER, .body = det, .scaled = true},
    {"det_2", NUMBER, .body = det, .scaled = true},
    {"det_3", NUMBER, .body = det, .scaled = true},
    {"det", NUMBER, .body = det, .scaled = true},
    {"det_singular", NUMBER, .body = det_singular, .scaled = true},
    {"det_none", NUMBER, .body = det, .scaled = true, .modes = "v"},
    {"slogdet", NUMBER, .body = slogdet, .out = 2, .scaled = true},
    {"slogdet_singular", NUMBER, .body = slogdet_singular, .out = 2, .scaled = true, .modes = "v"},
    {"matrix_rank", NUMBER, .body = matrix_rank, .scaled = true, .modes = "v"},
    {"matrix_rank_alike", NUMBER, .body = matrix_rank_alike, .scaled = true, .modes = "v"},
    {"matrix_power", NUMBER, .body = matrix_power, .scaled = true},
    {"matrix_power_inverse", NUMBER, .body = matrix_power_inverse, .scaled = true},
    {"matrix_power_zero", NUMBER, .body = matrix_power_zero, .scaled = true, .modes = "v"},
    {"expm", NUMBER, .body = expm, .scaled = true},
    {"expm_large", FLOAT, .body = expm, .scaled = true},
    {"expm_large_complex", COMPLEX, .body = expm, .scaled = true, .ulps = 64},
    {"expm_batch", NUMBER, .body = expm_batch, .scaled = true},
    {"expm_too_large", NUMBER, .body = expm_too_large, .scaled = true, .modes = "v"},
    {"multi_dot", NUMBER, .body = multi_dot, .in = 4, .scaled = true},
    {"norm", NUMBER, .body = norm, .scaled = true},
    {"norm_rows", NUMBER, .body = norm_rows, .scaled = true},
    {"vector_norm_1", NUMBER, .body = vector_norm_1, .scaled = true},
    {"vector_norm_3", NUMBER, .body = vector_norm_3, .scaled = true},
    {"vector_norm_0", NUMBER, .body = vector_norm_0, .scaled = true, .modes = "v"},
    {"vector_norm_largest", NUMBER, .body = vector_norm_largest, .scaled = true},
    {"vector_norm_smallest", NUMBER, .body = vector_norm_smallest, .scaled = true},
    {"matrix_norm", NUMBER, .body = matrix_norm, .scaled = true},
    {"matrix_norm_nuclear", NUMBER, .body = matrix_norm_nuclear, .scaled = true},
    {"matrix_norm_1", NUMBER, .body = matrix_norm_1, .scaled = true},
    {"matrix_norm_least_1", NUMBER, .body = matrix_norm_least_1, .scaled = true},
    {"matrix_norm_2", NUMBER, .body = matrix_norm_2, .scaled = true},
    {"matrix_norm_least_2", NUMBER, .body = matrix_norm_least_2, .scaled = true},
    {"matrix_norm_rows", NUMBER, .body = matrix_norm_rows, .scaled = true},
    {"matrix_norm_least_rows", NUMBER, .body = matrix_norm_least_rows, .scaled = true},
};

const VECTOR_GROUP(linalg);
