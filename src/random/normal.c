/* Normal draws, and what is made of them. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "random/draw.h"
#include "random/erf_inv.h"

/* The next number of the dtype from x, which is normal and not 0, towards 0. */
static double towards_zero(ax_dtype dtype, double x) {
  const double apart = ldexp(1, ilogb(x) - (int)ax_dtype_get(dtype)->fraction);
  const bool is_power = fabs(x) == ldexp(1, ilogb(x));
  return x - copysign(is_power ? apart / 2 : apart, x);
}

ax_value ax_draw_normal(const ax_draw *draw) {
  const ax_value u = ax_draw_uniform(draw, ax_real(towards_zero(draw->dtype, -1)), ax_real(1));
  return ax_mul(ax_real(sqrt(2)), ax_draw_erf_inv(u));
}

static ax_value truncated_normal(const ax_draw *draw, const ax_value *bounds) {
  const ax_value root = ax_full_like(bounds[0], sqrt(2)), lower = bounds[0], upper = bounds[1];
  const ax_value u = ax_draw_uniform(draw, ax_erf(ax_div(lower, root)), ax_erf(ax_div(upper, root)));
  const ax_value least = ax_nextafter(ax_stop_gradient(lower), ax_real(INFINITY)), most = ax_nextafter(ax_stop_gradient(upper), ax_real(-INFINITY));
  const ax_value x = ax_mul(ax_real(sqrt(2)), ax_draw_erf_inv_of(u));
  return ax_min(ax_max(x, least), most);
}

static ax_value lognormal(const ax_draw *draw, const ax_value *sigma) { return ax_exp(ax_mul(ax_draw_normal(draw), sigma[0])); }

/* The length of a vector of three. */
static ax_value maxwell_of(const ax_draw *draw) {
  const int64_t last[] = {-1};
  const ax_draw three = ax_draw_wider(draw, 0, 3);
  const ax_value x = ax_draw_normal(&three);
  return ax_sqrt((ax_reduce_sum)(ax_mul(x, x), 1, last, false));
}
static ax_value maxwell(const ax_draw *draw, const ax_value *none) { return (void)none, maxwell_of(draw); }

static ax_value wald(const ax_draw *draw, const ax_value *p) {
  const ax_value keys = ax_draw_keys(draw, 2), mean = p[0], square = ax_square(mean);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  const ax_value y = ax_square(ax_draw_normal(&first)), z = ax_draw_unit(&second);
  const ax_value root = ax_sqrt(ax_add(ax_mul(ax_mul(ax_real(4), mean), y), ax_mul(square, ax_square(y))));
  const ax_value away = ax_div(ax_mul(square, y), ax_real(2)), x = ax_sub(ax_add(mean, away), ax_mul(ax_div(mean, ax_real(2)), root));
  return ax_where(ax_le(z, ax_div(mean, ax_add(mean, x))), x, ax_div(square, x));
}

/* Of complex numbers both parts, so that the square of the size has the mean 1. */
static ax_value complex_normal(const ax_draw *draw) {
  const ax_draw of_parts = ax_draw_as(draw, ax_part_dtype(draw->dtype));
  const ax_value keys = ax_draw_keys(&of_parts, 2);
  const ax_draw first = ax_draw_from(&of_parts, keys, 0), second = ax_draw_from(&of_parts, keys, 1);
  const ax_value x = ax_draw_normal(&first), y = ax_draw_normal(&second);
  return ax_complex(ax_div(x, ax_real(sqrt(2))), ax_div(y, ax_real(sqrt(2))));
}

ax_value (ax_random_normal)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_draw draw;
  if (!ax_draw_of("random_normal", key, AX_DRAW_FLOAT_OR_COMPLEX, dtype, rank, dims, &draw)) return ax_poison;
  return ax_is_complex(dtype) ? complex_normal(&draw) : ax_draw_normal(&draw);
}
ax_value (ax_random_maxwell)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_draw_call("random_maxwell", key, dtype, rank, dims, 0, NULL, maxwell);
}
ax_value (ax_random_lognormal)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value sigma) {
  return ax_draw_call("random_lognormal", key, dtype, rank, dims, 1, &sigma, lognormal);
}
ax_value (ax_random_wald)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value mean) {
  return ax_draw_call("random_wald", key, dtype, rank, dims, 1, &mean, wald);
}
ax_value (ax_random_truncated_normal)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value lower, ax_value upper) {
  return ax_draw_call("random_truncated_normal", key, dtype, rank, dims, 2, (ax_value[]){lower, upper}, truncated_normal);
}

static ax_value double_sided_maxwell(const ax_draw *draw, const ax_value *p) {
  const ax_value keys = ax_draw_keys(draw, 2);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  return ax_add(ax_mul(ax_mul(ax_draw_signs(&second), maxwell_of(&first)), p[1]), p[0]);
}
ax_value (ax_random_double_sided_maxwell)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value loc, ax_value scale) {
  return ax_draw_call("random_double_sided_maxwell", key, dtype, rank, dims, 2, (ax_value[]){loc, scale}, double_sided_maxwell);
}

/* --- Many at once: mean T[.., n], covariance T[.., n, n] --- */

static bool is_normal_type(const char *name, const ax_type *mean, const ax_type *covariance) {
  const uint32_t rank = covariance->rank;
  const bool fits = mean->rank >= 1 && rank >= 2 && covariance->dims[rank - 1] == mean->dims[mean->rank - 1] &&
                    covariance->dims[rank - 2] == covariance->dims[rank - 1];
  if (!fits)
    ax_reject_as(name, "the mean is %s and the covariance %s; they must be T[.., n] and T[.., n, n]", ax_operand_string(mean),
                 ax_operand_string(covariance));
  return fits;
}

/* The F for which F F^T is the covariance. */
static ax_value factor_of(ax_value covariance, ax_random_method method) {
  ax_value made[3] = {ax_poison, ax_poison, ax_poison};
  if (method == AX_RANDOM_CHOLESKY) return ax_cholesky(covariance, true);
  if (method == AX_RANDOM_SVD)
    (ax_svd)(covariance, false, true, 3, made);
  else
    (ax_eigh)(covariance, true, true, 2, made);
  return ax_mul(made[0], ax_expand_dims(ax_sqrt(made[1]), -2));
}

ax_value (ax_random_multivariate_normal)(ax_value key, uint32_t rank, const int64_t *dims, ax_value mean, ax_value cov,
                                         ax_random_method method) {
  static const char name[] = "random_multivariate_normal";
  const ax_value both[] = {mean, cov};
  ax_type types[2];
  ax_draw draw;
  if ((unsigned)method > AX_RANDOM_EIGH) return ax_reject_as(name, "there is no method %d", (int)method);
  if (!ax_operands(name, 2, both, types) || !is_normal_type(name, &types[0], &types[1])) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, types[0].dtype, rank, dims, &draw)) return ax_poison;
  const int64_t n = types[0].dims[types[0].rank - 1];
  types[0].rank -= 1, types[1].rank -= 2; /* what is left is a batch */
  if (!ax_draw_shape(&draw, 2, types)) return ax_poison;
  const ax_draw wide = ax_draw_wider(&draw, 0, n);
  const ax_value x = ax_expand_dims(ax_draw_normal(&wide), -1), factor = factor_of(cov, method);
  return ax_add(mean, (ax_squeeze)(ax_matmul(factor, x), 1, (int64_t[]){-1}));
}

/* The orthogonal factor of a matrix of normal numbers; with signs for which r's diagonal is positive, it is unique, and so all
   matrices are as likely (arXiv:math-ph/0609050). */
ax_value (ax_random_orthogonal)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t n, int64_t m) {
  static const char name[] = "random_orthogonal";
  ax_draw draw;
  if (n < 1 || m < 0) return ax_reject_as(name, "n is %lld and m %lld; they must be at least 1 and 0", (long long)n, (long long)m);
  if (m == 0) m = n;
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, dtype, rank, dims, &draw)) return ax_poison;
  const ax_draw rows = ax_draw_wider(&draw, 0, n > m ? n : m), wide = ax_draw_wider(&rows, 0, n > m ? m : n);
  ax_value made[2] = {ax_poison, ax_poison};
  (ax_qr)(ax_draw_normal(&wide), false, false, 2, made);
  const ax_value signs = ax_sign(ax_diagonal(made[1], 0, -2, -1)), x = ax_mul(made[0], ax_expand_dims(signs, -2));
  return n < m ? ax_matrix_transpose(x) : x;
}
