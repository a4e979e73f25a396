/* Draws that are functions of uniform ones. Each is made of the operations that JAX makes it of, in its order. */
#include <math.h>

#include "ir/dtype.h"
#include "random/draw.h"

static const double PI = 3.14159265358979323846;

static ax_value one_less(ax_value x) { return ax_sub(ax_real(1), x); }
static ax_value log_one_less(ax_value x) { return ax_log1p(ax_neg(x)); } /* log(1 - x) */

/* --- Without parameters --- */

ax_value ax_draw_exponential(const ax_draw *draw) { return ax_neg(log_one_less(ax_draw_unit(draw))); }

static ax_value exponential(const ax_draw *draw, const ax_value *none) { return (void)none, ax_draw_exponential(draw); }

static ax_value laplace(const ax_draw *draw, const ax_value *none) {
  (void)none;
  const ax_value u = ax_draw_uniform(draw, ax_real(-1 + ax_dtype_epsilon(draw->dtype) / 2), ax_real(1));
  return ax_mul(ax_sign(u), log_one_less(ax_abs(u)));
}

static ax_value logistic(const ax_draw *draw, const ax_value *none) {
  (void)none;
  const ax_value x = ax_draw_uniform(draw, ax_real(ax_dtype_tiny(draw->dtype)), ax_real(1));
  return ax_sub(ax_log(x), log_one_less(x));
}

static ax_value cauchy(const ax_draw *draw, const ax_value *none) {
  (void)none;
  const ax_value u = ax_draw_uniform(draw, ax_real(ax_dtype_epsilon(draw->dtype)), ax_real(1));
  return ax_tan(ax_mul(ax_real(PI), ax_sub(u, ax_real(0.5))));
}

/* --- With parameters --- */

static ax_value pareto(const ax_draw *draw, const ax_value *b) { return ax_exp(ax_div(ax_draw_exponential(draw), b[0])); }

static ax_value rayleigh(const ax_draw *draw, const ax_value *scale) {
  const ax_value u = ax_draw_unit(draw);
  return ax_mul(scale[0], ax_sqrt(ax_mul(ax_log(u), ax_real(-2))));
}

static ax_value weibull_min(const ax_draw *draw, const ax_value *p) {
  const ax_value u = ax_draw_unit(draw);
  return ax_mul(ax_pow(ax_neg(log_one_less(u)), ax_div(ax_full_like(p[1], 1), p[1])), p[0]);
}

static ax_value triangular(const ax_draw *draw, const ax_value *p) {
  const ax_value left = p[0], mode = p[1], right = p[2], width = ax_sub(right, left), rise = ax_sub(mode, left);
  const ax_value u = ax_draw_unit(draw);
  const ax_value low = ax_add(left, ax_sqrt(ax_mul(ax_mul(u, width), rise)));
  const ax_value high = ax_sub(right, ax_sqrt(ax_mul(ax_mul(one_less(u), width), ax_sub(right, mode))));
  return ax_where(ax_lt(u, ax_div(rise, width)), low, high);
}

ax_value (ax_random_exponential)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_draw_call("random_exponential", key, dtype, rank, dims, 0, NULL, exponential);
}
ax_value (ax_random_laplace)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_draw_call("random_laplace", key, dtype, rank, dims, 0, NULL, laplace);
}
ax_value (ax_random_logistic)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_draw_call("random_logistic", key, dtype, rank, dims, 0, NULL, logistic);
}
ax_value (ax_random_cauchy)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ax_draw_call("random_cauchy", key, dtype, rank, dims, 0, NULL, cauchy);
}
ax_value (ax_random_pareto)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value b) {
  return ax_draw_call("random_pareto", key, dtype, rank, dims, 1, &b, pareto);
}
ax_value (ax_random_rayleigh)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value scale) {
  return ax_draw_call("random_rayleigh", key, dtype, rank, dims, 1, &scale, rayleigh);
}
ax_value (ax_random_weibull_min)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value scale, ax_value concentration) {
  return ax_draw_call("random_weibull_min", key, dtype, rank, dims, 2, (ax_value[]){scale, concentration}, weibull_min);
}
ax_value (ax_random_triangular)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value left, ax_value mode, ax_value right) {
  return ax_draw_call("random_triangular", key, dtype, rank, dims, 3, (ax_value[]){left, mode, right}, triangular);
}

/* floor(log u / log(1 - p)) + 1, in p's dtype. */
ax_value (ax_random_geometric)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value p) {
  static const char name[] = "random_geometric";
  ax_draw draw;
  ax_type type = {.dtype = AX_F32};
  if (!ax_is_number(p) && !ax_operand(name, p, &type)) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_INTEGER, dtype, rank, dims, &draw)) return ax_poison;
  if (!ax_is_float(type.dtype)) return ax_reject_as(name, "the probability is %s; it must be a float", ax_operand_string(&type));
  draw.dtype = type.dtype;
  if (!ax_draw_with(&draw, type.dtype, 1, &p)) return ax_poison;
  ax_value u = ax_draw_unit(&draw);
  u = ax_where(ax_eq(u, ax_real(0)), ax_real(1), u);
  const ax_value whole = ax_floor(ax_div(ax_log(u), ax_draw_spread(&draw, log_one_less(p))));
  return ax_convert_element_type(ax_add(whole, ax_real(1)), dtype);
}

/* --- Gumbel --- */

static ax_value log_of_log(ax_value x) { return ax_neg(ax_log(ax_neg(ax_log(x)))); }
static ax_value log_of_log1p(ax_value x) { return ax_neg(ax_log(ax_neg(log_one_less(x)))); }

/* The number of 64 bits, of which the first stands behind the point, as an f32: with all the bits that it has room for. */
static ax_value fraction_of(ax_value high, ax_value low) {
  const ax_value zeros = ax_clz(high), more = ax_clz(low), none = ax_eq(zeros, ax_unsigned(32));
  const ax_value rest = ax_where(none, ax_shift_left(low, more), ax_shift_right_logical(low, ax_sub(ax_full_like(zeros, 32), zeros)));
  ax_value fraction = ax_shift_right_logical(ax_or(ax_shift_left(high, zeros), rest), ax_integer(32 - 23 - 1));
  fraction = ax_and(fraction, ax_unsigned((1u << 23) - 1));
  const ax_value places = ax_where(none, ax_add(more, ax_unsigned(32)), zeros);
  ax_value exponent = ax_shift_left(ax_sub(ax_full_like(places, 126), places), ax_integer(23));
  exponent = ax_and(exponent, ax_unsigned((1u << 30) - (1u << 22)));
  return ax_bitcast_convert_type(ax_or(exponent, fraction), AX_F32);
}

/* 64 random bits; those from a half on by their distance from 1. */
static ax_value gumbel_highest(const ax_draw *draw) {
  const ax_draw two = ax_draw_wider(draw, 2, 0);
  const ax_value bits = ax_draw_bits(&two, AX_U32), high = ax_at(bits, 0, 0), low = ax_at(bits, 1, 0);
  const ax_value all = ax_eq(ax_not(low), ax_unsigned(UINT32_MAX));
  const ax_value other_high = ax_add(ax_not(high), ax_convert_element_type(all, AX_U32)), other_low = ax_add(ax_not(low), ax_unsigned(1));
  const ax_value below = ax_lt(high, ax_unsigned(1u << 31));
  const ax_value x = fraction_of(ax_where(below, high, other_high), ax_where(below, low, other_low));
  return ax_where(below, log_of_log1p(x), log_of_log(x));
}

static ax_value gumbel_high(const ax_draw *draw) {
  const ax_draw two = ax_draw_wider(draw, 2, 0);
  const ax_value u = ax_draw_unit(&two), high = ax_at(u, 0, 0), low = ax_at(u, 1, 0);
  const ax_value finer = ax_add(ax_add(high, ax_mul(ax_real(ax_dtype_epsilon(draw->dtype)), low)), ax_real(ax_dtype_tiny(draw->dtype)));
  return log_of_log1p(ax_where(ax_ge(high, ax_real(0.5)), high, finer));
}

ax_value ax_draw_gumbel(const ax_draw *draw, ax_random_mode mode) {
  if (mode == AX_RANDOM_LOW) return log_of_log(ax_draw_uniform(draw, ax_real(ax_dtype_tiny(draw->dtype)), ax_real(1)));
  return mode == AX_RANDOM_HIGHEST && draw->dtype == AX_F32 ? gumbel_highest(draw) : gumbel_high(draw);
}

ax_value (ax_random_gumbel)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_random_mode mode) {
  ax_draw draw;
  if (!ax_draw_of("random_gumbel", key, AX_DRAW_FLOAT, dtype, rank, dims, &draw)) return ax_poison;
  if (mode > AX_RANDOM_HIGHEST) return ax_reject_as(draw.name, "there is no mode %d", (int)mode);
  return ax_draw_gumbel(&draw, mode);
}
