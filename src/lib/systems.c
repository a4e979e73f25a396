/* Systems of equations, inverses and determinants, made of factorisations: axle/linalg.h. */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/transform.h"
#include "lib/checked.h"
#include "lib/linear.h"
#include "linalg/matrices.h"
#include "ops/sort.h"

/* --- Operands --- */

bool ax_matrix_operand(const char *name, ax_value x, bool square, ax_type *type) {
  if (!ax_operand(name, x, type)) return false;
  const ax_dtype part = ax_part_dtype(type->dtype);
  if (part != AX_F32 && part != AX_F64)
    ax_reject_as(name, "%s must be of f32, f64 or complex numbers", ax_operand_string(type));
  else if (type->rank < 2)
    ax_reject_as(name, "%s is no matrix", ax_operand_string(type));
  else if (square && type->dims[type->rank - 1] != type->dims[type->rank - 2])
    ax_reject_as(name, "the matrices of %s must be square", ax_operand_string(type));
  return !ax_failed();
}

/* A system: matrices, and right sides, which are matrices of as many rows, or one vector. */
typedef struct equations {
  const char *name;
  ax_type a, b;
  ax_dims batch; /* of both, broadcast */
  bool vector;
} equations;

static bool batch_of(equations *e) {
  const uint32_t a = e->a.rank - 2, b = e->b.rank - 2, rank = a > b ? a : b;
  e->batch.count = rank;
  for (uint32_t i = 1; i <= rank; i++) {
    const int64_t da = i <= a ? e->a.dims[a - i] : 1, db = i <= b ? e->b.dims[b - i] : 1;
    if (da != db && da != 1 && db != 1) return false;
    e->batch.v[rank - i] = da == 1 ? db : da;
  }
  return true;
}

/* *b becomes matrices. */
static bool equations_of(equations *e, const char *name, ax_value a, ax_value *b) {
  *e = (equations){.name = name};
  if (!ax_matrix_operand(name, a, true, &e->a) || !ax_operands(name, 2, (ax_value[]){a, *b}, (ax_type[2]){{0}})) return false;
  e->b = ax_typeof(*b);
  e->vector = e->b.rank == 1;
  const ax_type given = e->b;
  if (e->vector) *b = ax_expand_dims(*b, -1), e->b = ax_typeof(*b);
  if (e->b.rank < 2 || e->b.dims[e->b.rank - 2] != e->a.dims[e->a.rank - 1] || !batch_of(e))
    ax_reject_as(name, "%s and %s do not fit", ax_operand_string(&e->a), ax_operand_string(&given));
  return !ax_failed();
}

static ax_value solution(const equations *e, ax_value x) { return e->vector ? ax_squeeze(x, AX_DIMS(-1)) : x; }

/* x, of whose dimensions the last `own` are not the batch's, for all of the batch. */
static ax_value for_all(const equations *e, ax_value x, uint32_t own) {
  const ax_type type = ax_typeof(x);
  ax_dims dims = e->batch;
  if (ax_failed()) return ax_poison;
  memcpy(dims.v + dims.count, type.dims + type.rank - own, own * sizeof dims.v[0]);
  return ax_broadcast_to(x, AX_LIST(dims.count + own, dims.v));
}

/* --- Solutions --- */

/* One matrix and a batch of right sides: their columns become those of one. */
static ax_value solve_together(ax_value a, ax_value b, const ax_type *type) {
  ax_dims moved = {.count = type->rank};
  int64_t columns = 1;
  moved.v[0] = type->dims[type->rank - 2];
  for (uint32_t d = 1; d < type->rank; d++) columns *= moved.v[d] = d + 1 == type->rank ? type->dims[d] : type->dims[d - 1];
  const ax_value wide = ax_reshape(ax_moveaxis(b, -2, 0), AX_DIMS(moved.v[0], columns));
  return ax_moveaxis(ax_reshape(ax_solve(a, wide), AX_LIST(moved.count, moved.v)), 0, -2);
}

ax_value ax_solve(ax_value a, ax_value b) {
  equations e;
  ax_value factors[3];
  if (!equations_of(&e, "solve", a, &b)) return ax_poison;
  if (e.a.rank == 2 && e.b.rank > 2) return solve_together(a, b, &e.b);
  ax_lu(ax_stop_gradient(a), AX_LIST(3, factors));
  const ax_value lu = for_all(&e, factors[0], 2), pivots = for_all(&e, factors[1], 1);
  return solution(&e, ax_linear_solve(for_all(&e, a, 2), lu, pivots, for_all(&e, b, 2), false));
}

ax_value ax_inv(ax_value a) {
  ax_type type;
  if (!ax_matrix_operand("inv", a, true, &type)) return ax_poison;
  const int64_t n = type.dims[type.rank - 1];
  return ax_solve(a, ax_broadcast_to(ax_matrix_eye(a, n, n), AX_LIST(type.rank, type.dims)));
}

ax_value ax_cholesky_solve(ax_value factor, ax_value b, bool lower) {
  equations e;
  if (!equations_of(&e, "cholesky_solve", factor, &b)) return ax_poison;
  factor = for_all(&e, factor, 2), b = for_all(&e, b, 2);
  b = ax_triangular_solve(factor, b, true, lower, !lower, !lower, false);
  return solution(&e, ax_triangular_solve(factor, b, true, lower, lower, lower, false));
}

ax_value ax_lu_solve(ax_value lu, ax_value pivots, ax_value b, bool transpose_a) {
  static const char name[] = "lu_solve";
  equations e;
  ax_type type;
  if (!equations_of(&e, name, lu, &b) || !ax_operand(name, pivots, &type)) return ax_poison;
  if (type.dtype != AX_S32 || type.rank + 1 != e.a.rank || memcmp(type.dims, e.a.dims, type.rank * sizeof type.dims[0]) != 0)
    return ax_reject_as(name, "%s are no pivots of %s", ax_operand_string(&type), ax_operand_string(&e.a));
  return solution(&e, ax_solve_by_factors(for_all(&e, lu, 2), for_all(&e, pivots, 1), for_all(&e, b, 2), transpose_a));
}

/* --- Tensors as matrices --- */

static int64_t product_of(const int64_t *dims, uint32_t count) {
  int64_t elems = 1;
  for (uint32_t d = 0; d < count; d++) elems *= dims[d];
  return elems;
}

/* The tensor as a matrix of its first `rows` dimensions by the others, which must be square. */
static ax_value as_square(const char *name, ax_value a, const ax_type *type, uint32_t rows) {
  const int64_t m = product_of(type->dims, rows), n = product_of(type->dims + rows, type->rank - rows);
  if (m != n)
    return ax_reject_as(name, "%s has %lld elements in the first %u dimensions and %lld in the others", ax_operand_string(type),
                        (long long)m, rows, (long long)n);
  return ax_reshape(a, AX_DIMS(m, n));
}

ax_value ax_tensorinv(ax_value a, int64_t ind) {
  static const char name[] = "tensorinv";
  ax_type type;
  if (!ax_operand(name, a, &type)) return ax_poison;
  if (ind < 1 || ind > type.rank) return ax_reject_as(name, "ind is %lld, of %s", (long long)ind, ax_operand_string(&type));
  const uint32_t rows = (uint32_t)ind, columns = type.rank - rows;
  const ax_value square = as_square(name, a, &type, rows);
  if (ax_failed() || !ax_matrix_operand(name, square, true, &(ax_type){0})) return ax_poison;
  int64_t dims[AX_MAX_RANK];
  memcpy(dims, type.dims + rows, columns * sizeof dims[0]);
  memcpy(dims + columns, type.dims, rows * sizeof dims[0]);
  return ax_reshape(ax_inv(square), AX_LIST(type.rank, dims));
}

ax_value ax_tensorsolve(ax_value a, ax_value b) {
  static const char name[] = "tensorsolve";
  ax_type t[2];
  if (!ax_operands(name, 2, (ax_value[]){a, b}, t)) return ax_poison;
  if (t[1].rank > t[0].rank || memcmp(t[0].dims, t[1].dims, t[1].rank * sizeof t[0].dims[0]) != 0)
    return ax_reject_as(name, "%s does not begin with the dimensions of %s", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  const ax_value square = as_square(name, a, &t[0], t[1].rank);
  if (ax_failed() || !ax_matrix_operand(name, square, true, &(ax_type){0})) return ax_poison;
  const int64_t length = product_of(t[1].dims, t[1].rank);
  return ax_reshape(ax_solve(square, ax_reshape(b, AX_DIMS(length))), AX_LIST(t[0].rank - t[1].rank, t[0].dims + t[1].rank));
}

/* --- Determinants --- */

static ax_value trace(ax_value x) { return ax_reduce_sum(ax_diagonal_to_vector(x), AX_DIMS(-1), false); }

static ax_value count(ax_value x) { return ax_reduce_sum(ax_convert_element_type(x, AX_S32), AX_DIMS(-1), false); }

/* 1 or -1 of the dtype: the sign of the permutation that the pivots make, and of as many more factors as are negative, s32[..]. */
static ax_value sign_of(ax_value pivots, ax_value negative, ax_dtype dtype) {
  const ax_type type = ax_typeof(pivots);
  if (ax_failed()) return ax_poison;
  const ax_value places = ax_iota(AX_S32, AX_LIST(type.rank, type.dims), type.rank - 1);
  const ax_value odd = ax_and(ax_add(count(ax_ne(pivots, places)), negative), ax_integer(1));
  return ax_convert_element_type(ax_sub(ax_integer(1), ax_mul(odd, ax_integer(2))), dtype);
}

/* The sign of the product of u's diagonal, and of the permutation. */
static ax_value sign_by_factors(ax_value diagonal, ax_value pivots) {
  const ax_dtype dtype = ax_typeof(diagonal).dtype;
  if (ax_failed()) return ax_poison;
  if (!ax_is_complex(dtype)) return sign_of(pivots, count(ax_lt(diagonal, ax_integer(0))), dtype);
  return ax_mul(ax_reduce_prod(ax_sign(diagonal), AX_DIMS(-1), false), sign_of(pivots, ax_integer(0), dtype));
}

static AX_BODY(sign_and_log) {
  ax_value factors[3];
  (void)context;
  ax_lu(in[0], AX_LIST(3, factors));
  const ax_value diagonal = ax_diagonal_to_vector(factors[0]);
  const ax_value none = ax_gt(count(ax_eq(diagonal, ax_integer(0))), ax_integer(0));
  out[0] = ax_where(none, ax_integer(0), sign_by_factors(diagonal, factors[1]));
  out[1] = ax_where(none, ax_real(-INFINITY), ax_reduce_sum(ax_log(ax_abs(diagonal)), AX_DIMS(-1), false));
}

/* a, da -> sign, log, and their tangents */
static AX_BODY(sign_and_log_rule) {
  sign_and_log(in, out, context);
  const ax_value both = trace(ax_solve(in[0], in[1]));
  out[2] = ax_mul(ax_matrix_imaginary(both), out[0]);
  out[3] = ax_matrix_reals(both);
}

void(ax_slogdet)(ax_value a, uint32_t out_count, ax_value *out) {
  ax_type type;
  if (!ax_lists_fit("slogdet", 1, 1, out_count, 2, out) || !ax_matrix_operand("slogdet", a, true, &type)) return;
  ax_custom_jvp(AX_FN(sign_and_log, 1, 2), AX_FN(sign_and_log_rule, 2, 4), AX_LIST(1, &a), AX_LIST(2, out));
}

static ax_value element(ax_value x, int64_t row, int64_t column) { return ax_at(ax_at(x, row, -2), column, -1); }

static ax_value times(ax_value x, int i, int j, int k) {
  return ax_mul(ax_mul(element(x, 0, i), element(x, 1, j)), element(x, 2, k));
}

static ax_value small_det(ax_value a, int64_t n) {
  if (n == 1) return element(a, 0, 0);
  if (n == 2) return ax_sub(ax_mul(element(a, 0, 0), element(a, 1, 1)), ax_mul(element(a, 0, 1), element(a, 1, 0)));
  const ax_value even = ax_add(ax_add(times(a, 0, 1, 2), times(a, 1, 2, 0)), times(a, 2, 0, 1));
  return ax_sub(ax_sub(ax_sub(even, times(a, 2, 1, 0)), times(a, 1, 0, 2)), times(a, 0, 2, 1));
}

static AX_BODY(det) {
  ax_value parts[2];
  sign_and_log(in, parts, context);
  out[0] = ax_mul(parts[0], ax_matrix_as(ax_exp(parts[1]), in[0]));
}

/* x where row is the last; y elsewhere */
static ax_value last_row(ax_value x, ax_value y, int64_t n) {
  return ax_where(ax_eq(ax_iota(AX_S32, AX_DIMS(n, 1), 0), ax_integer((int)n - 1)), x, y);
}

static ax_value finite_parts(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed() || !ax_is_complex(type.dtype)) return ax_is_finite(x);
  return ax_and(ax_is_finite(ax_real_part(x)), ax_is_finite(ax_imag_part(x)));
}

/* The determinant of a times a^-1 b, which is finite where one singular value of a is 0: u's last element, by which the solution
   is divided in the end, takes no part but in the product. As jax.numpy.linalg's _cofactor_solve. */
static ax_value cofactor_solve(ax_value a, ax_value b, int64_t n, ax_value *det) {
  ax_value factors[3];
  const ax_dtype dtype = ax_typeof(a).dtype;
  ax_lu(a, AX_LIST(3, factors));
  const ax_type type = ax_typeof(b);
  if (ax_failed()) return ax_poison;
  const ax_value sign = sign_of(factors[1], ax_integer(0), dtype);
  const ax_value products = ax_mul(ax_cumprod(ax_diagonal_to_vector(factors[0]), -1, false), ax_expand_dims(sign, -1));
  *det = ax_at(products, n - 1, -1);
  const ax_value whole = ax_expand_dims(ax_expand_dims(*det, -1), -1);
  const ax_value rest = ax_expand_dims(ax_expand_dims(ax_at(products, n - 2, -1), -1), -1);
  const ax_value corner = ax_eq(ax_add(ax_iota(AX_S32, AX_DIMS(n, n), 0), ax_iota(AX_S32, AX_DIMS(n, n), 1)), ax_integer(2 * (int)n - 2));
  const ax_value lu = ax_where(corner, ax_div(ax_real(1), rest), factors[0]);
  const ax_value ones = ax_full_like(ax_matrix_part(b, 0, n, 0, 1), 1);
  const ax_value finite = finite_parts(ax_triangular_solve(lu, ones, true, false, false, false, false));
  const ax_value regular = ax_reduce_and(finite, AX_DIMS(-1, -2), true);
  const ax_value order = ax_broadcast_to(ax_expand_dims(factors[2], -1), AX_LIST(type.rank, type.dims));
  ax_value x = ax_taken_in_order(ax_where(regular, b, ax_integer(0)), order, type.rank - 2);
  x = ax_triangular_solve(lu, x, true, true, false, false, true);
  x = last_row(x, ax_mul(x, whole), n);
  x = ax_triangular_solve(lu, x, true, false, false, false, false);
  return ax_where(regular, x, ax_integer(0));
}

static AX_BODY(det_rule) {
  const ax_type type = ax_typeof(in[0]);
  (void)context;
  if (ax_failed()) return;
  const ax_value solved = cofactor_solve(in[0], in[1], type.dims[type.rank - 1], &out[0]);
  out[1] = trace(solved);
}

ax_value ax_det(ax_value a) {
  ax_type type;
  ax_value y = ax_poison;
  if (!ax_matrix_operand("det", a, true, &type)) return ax_poison;
  const int64_t n = type.dims[type.rank - 1];
  if (n > 0 && n <= 3) return small_det(a, n);
  if (n == 0) return ax_full(type.dtype, AX_LIST(type.rank - 2, type.dims), 1);
  ax_custom_jvp(AX_FN(det, 1, 1), AX_FN(det_rule, 2, 2), AX_LIST(1, &a), AX_LIST(1, &y));
  return y;
}

/* --- By singular values --- */

static ax_value column(ax_value x) { return ax_expand_dims(x, -1); }
static double epsilon(ax_dtype dtype) { return ax_part_dtype(dtype) == AX_F32 ? 0x1p-23 : 0x1p-52; }

static AX_BODY(pseudo_inverse) { /* context: the tolerance */
  ax_value f[3];
  ax_svd(in[0], false, true, AX_LIST(3, f));
  const ax_value largest = ax_slice_in_dim(f[1], 0, 1, 1, -1);
  const ax_value kept = ax_gt(f[1], ax_mul(largest, ax_real(*(const double *)context)));
  const ax_value scale = ax_where(kept, ax_div(ax_real(1), ax_where(kept, f[1], ax_integer(1))), ax_integer(0));
  out[0] = ax_matmul(ax_mul(ax_matrix_adjoint(f[2]), ax_expand_dims(ax_matrix_as(scale, in[0]), -2)), ax_matrix_adjoint(f[0]));
}

/* G. H. Golub, V. Pereyra, SIAM Journal on Numerical Analysis 10 (1973), 413-432. */
static ax_value inverse_tangent(ax_value a, ax_value a_tangent, ax_value p) {
  const ax_value da = ax_matrix_adjoint(a_tangent), pt = ax_matrix_adjoint(p);
  const ax_value s = ax_matmul(ax_matmul(p, pt), da), t = ax_matmul(da, ax_matmul(pt, p));
  const ax_value outer = ax_add(ax_sub(s, ax_matmul(ax_matmul(s, a), p)), ax_sub(t, ax_matmul(p, ax_matmul(a, t))));
  return ax_sub(outer, ax_matmul(ax_matmul(p, a_tangent), p));
}

static AX_BODY(pseudo_inverse_rule) {
  pseudo_inverse(in, out, context);
  out[1] = inverse_tangent(in[0], in[1], out[0]);
}

static AX_BODY(hermitian_inverse) { /* context: the tolerance */
  ax_value f[2];
  ax_eigh(in[0], true, false, AX_LIST(2, f));
  const ax_value sizes = ax_abs(f[1]), largest = ax_reduce_max(sizes, AX_DIMS(-1), true);
  const ax_value kept = ax_gt(sizes, ax_mul(largest, ax_real(*(const double *)context)));
  const ax_value scale = ax_where(kept, ax_div(ax_real(1), ax_where(kept, f[1], ax_integer(1))), ax_integer(0));
  out[0] = ax_matmul(ax_mul(f[0], ax_expand_dims(ax_matrix_as(scale, in[0]), -2)), ax_matrix_adjoint(f[0]));
}

static AX_BODY(hermitian_inverse_rule) {
  hermitian_inverse(in, out, context);
  out[1] = inverse_tangent(in[0], in[1], out[0]);
}

/* The tolerance if none is given. */
static double tolerance_of(const ax_type *type, double rtol) {
  const int64_t m = type->dims[type->rank - 2], n = type->dims[type->rank - 1];
  return rtol < 0 ? 10 * (double)(m > n ? m : n) * epsilon(type->dtype) : rtol;
}

ax_value ax_pinvh(ax_value a, double rtol) {
  ax_type type;
  ax_value y = ax_poison;
  if (!ax_matrix_operand("pinvh", a, true, &type) || !ax_matrix_symmetrized("pinvh", &a)) return ax_poison;
  if (type.dims[type.rank - 1] == 0) return a;
  rtol = tolerance_of(&type, rtol);
  ax_custom_jvp(AX_CLOSURE(hermitian_inverse, 1, 1, &rtol), AX_CLOSURE(hermitian_inverse_rule, 2, 2, &rtol), AX_LIST(1, &a),
                AX_LIST(1, &y));
  return y;
}

ax_value ax_pinv(ax_value a, double rtol) {
  ax_type type;
  ax_value y = ax_poison;
  if (!ax_matrix_operand("pinv", a, false, &type)) return ax_poison;
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1];
  if (m == 0 || n == 0) return ax_matrix_transpose(a);
  rtol = tolerance_of(&type, rtol);
  ax_custom_jvp(AX_CLOSURE(pseudo_inverse, 1, 1, &rtol), AX_CLOSURE(pseudo_inverse_rule, 2, 2, &rtol), AX_LIST(1, &a), AX_LIST(1, &y));
  return y;
}

static void solve_least(ax_value a, ax_value b, double rcond, ax_value *out) {
  ax_value f[3];
  ax_svd(a, false, true, AX_LIST(3, f));
  const ax_value s = out[3] = f[1], least = ax_mul(ax_slice_in_dim(s, 0, 1, 1, 0), ax_real(rcond));
  const ax_value kept = ax_and(ax_gt(s, ax_integer(0)), ax_ge(s, least));
  const ax_value inverse = ax_where(kept, ax_div(ax_real(1), ax_where(kept, s, ax_integer(1))), ax_integer(0));
  const ax_value scaled = ax_mul(column(ax_matrix_as(inverse, a)), ax_matmul(ax_matrix_adjoint(f[0]), b));
  out[0] = ax_matmul(ax_matrix_adjoint(f[2]), scaled);
  out[2] = count(kept);
}

void(ax_lstsq)(ax_value a, ax_value b, double rcond, uint32_t out_count, ax_value *out) {
  static const char name[] = "lstsq";
  ax_type t[2];
  if (!ax_lists_fit(name, 1, 1, out_count, 4, out) || !ax_matrix_operand(name, a, false, &t[0]) ||
      !ax_operands(name, 2, (ax_value[]){a, b}, t))
    return;
  const bool vector = t[1].rank == 1;
  if (t[0].rank != 2 || t[1].rank < 1 || t[1].rank > 2 || t[0].dims[0] != t[1].dims[0]) {
    ax_reject_as(name, "%s and %s do not fit", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
    return;
  }
  const int64_t m = t[0].dims[0], n = t[0].dims[1];
  if (vector) b = column(b);
  if (rcond < 0) rcond = epsilon(t[0].dtype) * (double)(m > n ? m : n);
  if (m == 0 || n == 0) {
    out[0] = ax_full(t[0].dtype, AX_DIMS(n, vector ? 1 : t[1].dims[1]), 0);
    out[2] = ax_full(AX_S32, AX_DIMS(), 0), out[3] = ax_full(ax_part_dtype(t[0].dtype), AX_DIMS(0), 0);
  } else {
    solve_least(a, b, rcond, out);
  }
  const ax_value off = ax_sub(b, ax_matmul(a, out[0]));
  out[1] = ax_reduce_sum(ax_matrix_reals(ax_mul(off, ax_conjugated(off))), AX_DIMS(0), false);
  if (vector) out[0] = ax_squeeze(out[0], AX_DIMS(-1));
}

ax_value ax_matrix_rank(ax_value x, double tolerance) {
  ax_type type;
  ax_value s;
  if (!ax_matrix_operand("matrix_rank", x, false, &type)) return ax_poison;
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1];
  if (m == 0 || n == 0) return ax_full(AX_S32, AX_LIST(type.rank - 2, type.dims), 0);
  ax_svd(x, false, false, AX_LIST(1, &s));
  const ax_value relative = ax_mul(ax_slice_in_dim(s, 0, 1, 1, -1), ax_real((double)(m > n ? m : n) * epsilon(type.dtype)));
  return count(tolerance < 0 ? ax_gt(s, relative) : ax_gt(s, ax_real(tolerance)));
}

/* --- Eigenvalues alone --- */

ax_value ax_eigvals(ax_value x) {
  ax_type type;
  ax_value w = ax_poison;
  if (ax_matrix_operand("eigvals", x, true, &type)) ax_eig(x, false, false, AX_LIST(1, &w));
  return w;
}

ax_value ax_eigvalsh(ax_value x, bool lower, bool symmetrize_input) {
  ax_type type;
  ax_value f[2] = {ax_poison, ax_poison};
  if (ax_matrix_operand("eigvalsh", x, true, &type)) ax_eigh(x, lower, symmetrize_input, AX_LIST(2, f));
  return f[1];
}

ax_value ax_svdvals(ax_value x) {
  ax_type type;
  ax_value s = ax_poison;
  if (ax_matrix_operand("svdvals", x, false, &type)) ax_svd(x, false, false, AX_LIST(1, &s));
  return s;
}
