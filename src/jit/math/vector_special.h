/* Special functions, in the operations of vector_lanes.h, behind vector_f32.h and vector_f64.h. Polynomials are by pieces of the range
   (special_tables.h), so that all lanes do the same. Those of f32 are computed in f64, but erf_inv, which random numbers need, and those
   that SLEEF has slowly. */
#include "base/special.h"
#include "jit/math/special_tables.h"

/* Half a register of f32 at a time in f64. */
static inline f32s f32_in_f64(f32s x, f64s (*function)(f64s)) { return f32_join(function(f64_low(x)), function(f64_high(x))); }

static inline f64s f64_piece(const double (*coefficients)[16], int degree, u64s piece, f64s t) {
  f64s p = f64_look_up(coefficients[degree], piece);
  for (int k = degree - 1; k >= 0; k--) p = f64_fma(p, t, f64_look_up(coefficients[k], piece));
  return p;
}

/* --- The inverse of erf: x p(s) with s = sqrt(-log(1 - x^2)), at most 4 of f32 and 6.01 of f64. 1 - x^2 is rounded once; p is even, so
   that the digits s lacks near 0 do not count. --- */

static f32s f32_erf_inv(f32s x) {
  const f32s one = f32_all(1), s = f32_root(-f32_log(f32_fnma(x, x, one)));
  const f32s whole = f32_round(f32_fma(s, f32_all(4), f32_all(-0.5f)));
  const u32s piece = (u32s)(whole + f32_all(0x1p23f));
  const f32s d = f32_fnma(whole, f32_all(0.25f), s) - f32_all(0.125f);
  f32s p = f32_look_up(erf_inv_f32[5], piece);
  for (int k = 4; k >= 0; k--) p = f32_fma(p, d, f32_look_up(erf_inv_f32[k], piece));
  return x * f32_pick(f32_equal(f32_sized(x), one), f32_all(__builtin_inff()), p);
}

/* --- 1 - erf: exp(-x^2) times a function of small slope. What the rounding of x^2 leaves off goes into the exponential's remainder.
   From 10.06 on the result is 0, and below 0 it is 2 less that of -x. --- */

static f32s f32_erfc(f32s x) {
  const f32s size = f32_sized(x);
  const f32_mask alive = f32_not_less(f32_all(10.06f), size);
  const f32s inside = f32_keep(alive, size), square = inside * inside, n = f32_exponent(-square);
  const f32s r = f32_remainder(-square, n) - f32_fma(inside, inside, -square);
  const u32s piece = ((u32s)(inside + f32_all(1)) >> 21) - 0x1fcu;
  const f32s d = inside - f32_look_up(erfc_middle_f32, piece);
  f32s p = f32_look_up(erfc_f32[6], piece);
  for (int k = 5; k >= 0; k--) p = f32_fma(p, d, f32_look_up(erfc_f32[k], piece));
  const f32s result = f32_keep(alive, f32_scale(f32_fma(f32_exp_slope(r), r, f32_all(1)) * p, n));
  return f32_pick(f32_less(x, f32_all(0)), f32_all(2) - result, result);
}

/* That of f64 is SLEEF's, which loses digits from 25.8 on where subnormal numbers are flushed: such lanes are computed one by one. */
f64s AX_SLEEF_ERFC(f64s x);

static AX_APART f64s f64_erfc_small(f64s x, f64s result) {
  for (int i = 0; i < AX_VECTOR_BYTES / 8; i++)
    if (x[i] > 25 && x[i] < 28) {
      const double exact = (double)erfcl((long double)x[i]);
      result[i] = exact == 0 ? 0 : exact; /* flushed */
    }
  return result;
}

static f64s f64_erfc(f64s x) {
  const f64s result = AX_SLEEF_ERFC(x);
  return f64_any_less(f64_all(25), x) ? f64_erfc_small(x, result) : result;
}

/* --- Hyperbolic cosine, and the inverse functions: e^|x| / 2 is made as such, since e^|x| is infinite before it; logarithms of 1 + u
   keep the digits of small u. From 2^60 on they are log(2 |x|). --- */

static f32s f32_cosh(f32s x) {
  const f32s size = f32_min(f32_all(90), f32_sized(x)), n = f32_exponent(size), r = f32_remainder(size, n);
  const f32s half = f32_scale(f32_fma(f32_exp_slope(r), r, f32_all(1)), n - f32_all(1));
  return half + f32_all(0.25f) / f32_min(f32_all(0x1p60f), half);
}

static AX_APART f32s f32_where_large(f32s size, f32s otherwise) {
  const f32_mask large = f32_less(f32_all(0x1p60f), size);
  return f32_pick(large, f32_log(f32_pick(large, size, f32_all(1))) + f32_all(0.693147182f), otherwise);
}

static f32s f32_asinh(f32s x) {
  const f32s one = f32_all(1), size = f32_sized(x), s = f32_max(f32_all(0x1p-20f), f32_min(f32_all(0x1p60f), size)), square = s * s;
  f32s result = f32_log1p(s + square / (one + f32_root(one + square)));
  if (f32_any_less(f32_all(0x1p60f), size)) result = f32_where_large(size, result);
  return f32_pick(f32_less(size, f32_all(0x1p-12f)), x, f32_signed(f32_sized(result), x));
}

static f32s f32_acosh(f32s x) {
  const f32s t = f32_min(f32_all(0x1p60f), x - f32_all(1));
  f32s result = f32_log1p(t + f32_root(t * (t + f32_all(2))));
  if (f32_any_less(f32_all(0x1p60f), x)) result = f32_where_large(x, result);
  return f32_pick(f32_less(x, f32_all(1)), f32_all(__builtin_nanf("")), result);
}

static f64s f64_erf_inv(f64s x) {
  const f64s one = f64_all(1), s = f64_root(-f64_log(f64_fnma(x, x, one)));
  const f64s whole = f64_round(f64_fma(s, f64_all(2048.0 / 769), f64_all(-0.5)));
  const f64s d = f64_fnma(whole, f64_all(769.0 / 2048), s) - f64_all(769.0 / 4096);
  const f64s p = f64_piece(erf_inv_f64, 12, (u64s)(whole + f64_all(0x1p52)), d);
  return x * f64_pick(f64_equal(f64_sized(x), one), f64_all(__builtin_inf()), p);
}

/* --- The logarithm of gamma --- */

/* Four pieces an octave of 1 .. 16, and where x stands in its own, from -1 to 1. */
static inline u64s f64_octave_piece(f64s x) { return ((u64s)x >> 50) - 0xffcu; }
static inline f64s f64_octave_place(f64s x) {
  const f64s low = (f64s)(((u64s)x & 0x3ffffffffffffu) | 0x3ff0000000000000u);
  return f64_fma(low, f64_all(8), f64_all(-9));
}

/* Stirling's series, from 16 on: (x - 1/2) (log x - 1) + log(2 pi) / 2 - 1/2 + .., log x in two parts for the sake of the difference. */
static inline f64s f64_lgamma_large(f64s x) {
  const f64_parts parts = f64_split(x, 0);
  const f64s f = f64_log_fraction(parts), whole = parts.k * f64_all(0x1.62e42feep-1), sum = whole + f;
  const f64s low = (f - (sum - whole)) + f64_log_rest(f, parts.k), m = x - f64_all(0.5), r = f64_all(1) / x, z = r * r;
  f64s p = f64_all(0.00084175084175084175);
  p = f64_fma(p, z, f64_all(-0.00059523809523809528));
  p = f64_fma(p, z, f64_all(0.00079365079365079365));
  p = f64_fma(p, z, f64_all(-0.0027777777777777779));
  p = f64_fma(p, z, f64_all(0.083333333333333329));
  return f64_fma(m, sum - f64_all(1), f64_fma(m, low, f64_fma(p, r, f64_all(0.41893853320467274178))));
}

/* Of x > 0. Below 1 it is lgamma(1 + x) - log x. */
static inline f64s f64_lgamma_positive(f64s x) {
  const f64s one = f64_all(1);
  const f64_mask below = f64_less(x, one);
  const f64s y = f64_max(one, f64_min(f64_all(0x1.fffffffffffffp3), f64_pick(below, x + one, x)));
  const f64s p = f64_piece(lgamma_f64, 12, f64_octave_piece(y), f64_octave_place(y));
  const f64s here = (x - one) * (x - f64_all(2)) * p + f64_all(0); /* no -0 at 1 */
  const f64s near = f64_pick(below, f64_fma(x * (x - one), p, -f64_log(f64_min(one, x))), here);
  return f64_pick(f64_less(x, f64_all(16)), near, f64_lgamma_large(f64_max(f64_all(16), x)));
}

/* log(pi / |x sin(pi x)|) - lgamma(|x|) of x < 0: near zeros with as many digits as f32 needs. */
static AX_APART f64s f64_lgamma_of_any(f64s x) {
  const f64s size = f64_sized(x), infinity = f64_all(__builtin_inf()), pi = f64_all(3.141592653589793);
  const f64s sine = f64_sized(f64_sine(pi * (size - f64_round(size)), f64_all(0)));
  const f64s positive = f64_lgamma_positive(size), reflected = f64_log(pi / (size * sine)) - positive;
  const f64s result = f64_pick(f64_less(x, f64_all(0)), reflected, positive);
  return f64_pick(f64_equal(size, f64_all(0)), infinity, f64_pick(f64_equal(size, infinity), infinity, result));
}

static f64s f64_lgamma_for_f32(f64s x) {
  return f64_any_not_inside(x, f64_all(0x1p-200), f64_all(0x1p200)) ? f64_lgamma_of_any(x) : f64_lgamma_positive(x);
}

static f32s f32_lgamma(f32s x) { return f32_in_f64(x, f64_lgamma_for_f32); }

/* Below 0: lgamma(1 + x) - log |x| down to -1, of which neither is negative, and then log(pi / |x sin(pi x)|) - lgamma(|x|) where
   that is above 2 and cancels by a quarter at most. `good` is 1 there; otherwise 0. */
typedef struct f64_below {
  f64s value, good;
} f64_below;
static inline f64_below f64_lgamma_below(f64s x) {
  const f64s none = f64_all(0), one = f64_all(1), rest = f64_sized(x - f64_round(x));
  f64s good = f64_pick(f64_less(rest, f64_all(0x1p-40)), none, f64_pick(f64_less(x, none), one, none));
  good = f64_pick(f64_less(f64_all(-0x1p40), x), good, none);
  const f64_mask taken = f64_less(none, good), near = f64_less(f64_all(-1), x);
  const f64s size = f64_pick(taken, f64_sized(x), f64_all(0.5)), part = f64_pick(taken, rest, f64_all(0.5));
  const f64s sine = f64_sine(f64_all(3.141592653589793) * part, none);
  const f64s first = f64_log(f64_pick(near, one / size, f64_all(3.141592653589793) / (size * sine)));
  const f64s second = f64_lgamma_positive(f64_pick(near, one - size, size)), value = f64_pick(near, first + second, first - second);
  const f64s all = f64_max(f64_all(2), f64_all(0.75) * (f64_sized(first) + f64_sized(second)));
  return (f64_below){value, f64_pick(near, good, f64_pick(f64_less(all, f64_sized(value)), good, none))};
}

/* Other negative operands, whose results have no digits left near zeros, lane by lane. */
static AX_BESIDE f64s f64_lgamma_each(f64s x) {
  const f64s flushed = f64_pick(f64_equal(x, f64_all(0)), f64_all(0), x);
  const f64_below below = f64_lgamma_below(x);
  f64s result = f64_pick(f64_less(f64_all(0), below.good), below.value, f64_lgamma_positive(f64_max(flushed, f64_all(0x1p-1022))));
  const f64s infinity = f64_all(__builtin_inf()), size = f64_sized(flushed);
  const f64_mask whole = f64_equal(f64_pick(f64_less(f64_all(0), x), f64_all(1), size - f64_round(size)), f64_all(0));
  result = f64_pick(f64_equal(size, infinity), infinity, f64_pick(whole, infinity, result));
  for (int i = 0; i < AX_VECTOR_BYTES / 8; i++)
    if (flushed[i] < 0x1p-1022 && flushed[i] != 0 && !(below.good[i] > 0) && result[i] != __builtin_inf())
      result[i] = (double)ax_special_lgamma((long double)flushed[i]);
  return f64_pick(f64_equal(x, x), result, x);
}

static f64s f64_lgamma(f64s x) {
  return f64_any_not_inside(x, f64_all(0x1p-1022), f64_all(0x1.fffffffffffffp1023)) ? f64_lgamma_each(x) : f64_lgamma_positive(x);
}

/* --- digamma, the derivative of log gamma --- */

/* Its zero, as two numbers. */
#define AX_DIGAMMA_ZERO 0x1.762d86356be3fp+0
#define AX_DIGAMMA_ZERO_REST 0x1.b86a722197829p-54

static inline f64s f64_digamma_large(f64s x) {
  const f64s r = f64_all(1) / x, z = r * r;
  f64s p = f64_all(-0.083333333333333329);
  p = f64_fma(p, z, f64_all(0.021092796092796094));
  p = f64_fma(p, z, f64_all(-0.0075757575757575760));
  p = f64_fma(p, z, f64_all(0.0041666666666666666));
  p = f64_fma(p, z, f64_all(-0.0039682539682539680));
  p = f64_fma(p, z, f64_all(0.0083333333333333332));
  p = f64_fma(p, z, f64_all(-0.083333333333333329));
  return f64_log(x) + r * f64_fma(p, r, f64_all(-0.5));
}

/* Of x > 0. Below 1 it is digamma(1 + x) - 1 / x. */
static inline f64s f64_digamma_positive(f64s x) {
  const f64s one = f64_all(1);
  const f64_mask below = f64_less(x, one);
  const f64s y = f64_max(one, f64_min(f64_all(0x1.fffffffffffffp3), f64_pick(below, x + one, x)));
  const f64s zero = (y - f64_all(AX_DIGAMMA_ZERO)) - f64_all(AX_DIGAMMA_ZERO_REST);
  const f64s near = zero * f64_piece(digamma_f64, 13, f64_octave_piece(y), f64_octave_place(y));
  return f64_pick(f64_less(x, f64_all(16)), f64_pick(below, near - one / x, near), f64_digamma_large(f64_max(f64_all(16), x)));
}

/* digamma(|x|) + 1 / |x| + pi cot(pi |x|) of x < 0, for f32 as lgamma. */
static AX_APART f64s f64_digamma_of_any(f64s x) {
  const f64s size = f64_sized(x), rest = size - f64_round(size), angle = f64_sized(rest);
  const f64s sine = f64_signed(f64_sized(f64_sine(f64_all(3.141592653589793) * angle, f64_all(0))), rest);
  const f64s cosine = f64_sine(f64_all(3.141592653589793) * (f64_all(0.5) - angle), f64_all(0));
  const f64s positive = f64_digamma_positive(size), cotangent = f64_all(3.141592653589793) * cosine / sine;
  f64s result = f64_pick(f64_less(x, f64_all(0)), positive + f64_all(1) / size + cotangent, positive);
  result = f64_pick(f64_equal(f64_pick(f64_less(x, f64_all(0x1p-200)), rest, x), f64_all(0)), f64_all(__builtin_nan("")), result);
  return f64_pick(f64_equal(x, f64_all(__builtin_inf())), x, result);
}

static f64s f64_digamma_for_f32(f64s x) {
  return f64_any_not_inside(x, f64_all(0x1p-200), f64_all(0x1p200)) ? f64_digamma_of_any(x) : f64_digamma_positive(x);
}

static f32s f32_digamma(f32s x) { return f32_in_f64(x, f64_digamma_for_f32); }

/* Negative operands lane by lane, since near zeros no digits are left. */
static AX_APART f64s f64_digamma_each(f64s x) {
  const double nan = __builtin_nan("");
  f64s result = f64_pick(f64_equal(x, f64_all(__builtin_inf())), x, f64_digamma_positive(f64_max(x, f64_all(0x1p-1022))));
  result = f64_pick(f64_less(f64_sized(x), f64_all(0x1p-1022)), f64_all(nan), result);
  result = f64_pick(f64_equal(x, f64_all(-__builtin_inf())), f64_all(nan), result);
  for (int i = 0; i < AX_VECTOR_BYTES / 8; i++)
    if (x[i] < 0x1p-1022 && x[i] != 0 && x[i] > -__builtin_inf()) result[i] = (double)ax_special_digamma((long double)x[i]);
  return f64_pick(f64_equal(x, x), result, f64_all(nan));
}

static f64s f64_digamma(f64s x) {
  return f64_any_not_inside(x, f64_all(0x1p-1022), f64_all(0x1.fffffffffffffp1023)) ? f64_digamma_each(x) : f64_digamma_positive(x);
}

/* --- Bessel functions I0 and I1 over e^|x|: pieces of |x| below 8, of 8 / |x| above --- */

typedef struct f64_bessel {
  f64s size, root; /* |x|, its root */
  f64s near, far;  /* polynomials: of |x|, if it is less than 8; of 8 / |x|, if it is more */
} f64_bessel;

static inline f64s f64_sixteenths(const double (*coefficients)[16], int degree, f64s u) {
  const f64s whole = f64_min(f64_all(15), f64_round(u - f64_all(0.5)));
  return f64_piece(coefficients, degree, (u64s)(whole + f64_all(0x1p52)), f64_fma(u - whole, f64_all(2), f64_all(-1)));
}

static inline f64_bessel f64_bessel_of(f64s x, const double (*near)[16], int degree, const double (*far)[16]) {
  const f64s size = f64_sized(x), eight = f64_all(8), beyond = f64_max(eight, size);
  return (f64_bessel){size, f64_root(beyond), f64_sixteenths(near, degree, f64_min(eight, size) * f64_all(2)),
                      f64_sixteenths(far, 8, f64_all(128) / beyond)};
}

static f64s f64_bessel_i0e(f64s x) {
  const f64_bessel b = f64_bessel_of(x, i0e_near, 12, i0e_far);
  return f64_pick(f64_less(b.size, f64_all(8)), b.near, b.far / b.root);
}

static f64s f64_bessel_i1e(f64s x) {
  const f64_bessel b = f64_bessel_of(x, i1e_near, 11, i1e_far);
  return f64_pick(f64_less(b.size, f64_all(8)), x * b.near, f64_signed(b.far / b.root, x));
}

static inline f32s f32_sixteenths(const float (*coefficients)[16], int degree, f32s u) {
  const f32s whole = f32_min(f32_all(15), f32_round(u - f32_all(0.5f))), t = f32_fma(u - whole, f32_all(2), f32_all(-1));
  const u32s piece = (u32s)(whole + f32_all(0x1p23f));
  f32s p = f32_look_up(coefficients[degree], piece);
  for (int k = degree - 1; k >= 0; k--) p = f32_fma(p, t, f32_look_up(coefficients[k], piece));
  return p;
}

static inline f32s f32_bessel_near(const float (*coefficients)[16], f32s size) {
  return f32_sixteenths(coefficients, 6, f32_min(f32_all(8), size) * f32_all(2));
}

static inline f32s f32_bessel_far(const float (*coefficients)[16], f32s size) {
  const f32s beyond = f32_max(f32_all(8), size);
  return f32_sixteenths(coefficients, 3, f32_all(128) / beyond) / f32_root(beyond);
}

static f32s f32_bessel_i0e(f32s x) {
  const f32s size = f32_sized(x);
  return f32_pick(f32_less(size, f32_all(8)), f32_bessel_near(i0e_near_f32, size), f32_bessel_far(i0e_far_f32, size));
}

static f32s f32_bessel_i1e(f32s x) {
  const f32s size = f32_sized(x);
  const f32s near = x * f32_bessel_near(i1e_near_f32, size), far = f32_signed(f32_bessel_far(i1e_far_f32, size), x);
  return f32_pick(f32_less(size, f32_all(8)), near, far);
}

/* --- zeta(s, q), the sum of (q + k)^-s: ten terms, and Euler and Maclaurin's formula for the others; polygamma by it --- */

/* (q + k)^-s, also where q + k is rounded, which its power multiplies by s. */
typedef f64s (*f64_power)(f64s q, f64s k, f64s s);
static f64s f64_power_for_f32(f64s q, f64s k, f64s s) { return f64_exp(-s * f64_log(q + k)); }
static f64s f64_power_exactly(f64s q, f64s k, f64s s) {
  const f64s x = q + k, added = x - q, lost = (q - (x - added)) + (k - added), power = f64_pow(x, -s);
  return f64_pick(f64_equal(lost, f64_all(0)), power, f64_fnma(power, s * lost / x, power)); /* power may be infinite */
}

/* The terms from the first-th on, of s > 1 and q + first > 0; of f64 that are usual (below). */
static inline f64s f64_zeta_from(f64s s, f64s q, int first, f64_power power_of) {
  static const double maclaurin[] = {0.083333333333333329,    -0.0013888888888888889,  3.3068783068783071e-05,
                                     -8.2671957671957675e-07, 2.0876756987868100e-08,  -5.2841901386874932e-10,
                                     1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
                                     -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812524e-19};
  f64s sum = f64_all(0), rest = f64_all(0), a = q + f64_all(first + 10);
  const f64s power = power_of(q, f64_all(first + 10), s), z = f64_all(1) / (a * a);
  f64s factor = s * power / a;
  for (int j = 0; j < 12; j++) {
    const f64s at = s + f64_all(2 * j);
    rest = f64_fma(f64_all(maclaurin[j]), factor, rest);
    factor = factor * ((at + f64_all(1)) * (at + f64_all(2)) * z);
  }
  rest = rest + power * f64_all(0.5) + a * power / (s - f64_all(1));
  for (int k = 9; k >= 0; k--) sum = sum + power_of(q, f64_all(first + k), s);
  return sum + rest;
}
static inline f64s f64_zeta_usual(f64s s, f64s q, f64_power power_of) { return f64_zeta_from(s, q, 0, power_of); }

/* Lanes that are not usual, one by one; no function of theirs has subnormal operands where those are flushed. */
typedef long double (*special_of_two)(long double a, long double b);
static AX_APART f64s f64_pairs(f64s a, f64s b, f64s usual, f64s result, special_of_two function) {
  for (int i = 0; i < AX_VECTOR_BYTES / 8; i++)
    if (!(usual[i] > 0)) {
      const double held = (double)function(a[i] == 0 ? 0 : (long double)a[i], b[i] == 0 ? 0 : (long double)b[i]);
      result[i] = held == 0 ? copysign(0, held) : held;
    }
  return result;
}

/* Whether lanes are usual, as a number above 0. Of f64 where (q + 10)^-s is above 2^-950, so that no term that counts loses digits by
   underflow; its size is estimated by q's exponent. f32 has less range than f64, so there all but the ends are usual. A first term that
   overflows is the result. */
typedef f64s (*f64_usual)(f64s s, f64s q);

static f64s f64_zeta_is_usual(f64s s, f64s q) {
  const f64s none = f64_all(0), one = f64_all(1);
  const f64s exponent = (f64s)((u64s)q >> 52 | 0x4330000000000000u) - f64_all(0x1p52 + 1021); /* 2 q < 2^exponent */
  const f64s low = f64_pick(f64_less(q, f64_all(0x1p-1022)), none, f64_pick(f64_less(one, s), one, none));
  return f64_pick(f64_less(s * f64_max(f64_all(5), exponent), f64_all(950)), low, none);
}

static f64s f64_zeta_is_usual_for_f32(f64s s, f64s q) {
  const f64s none = f64_all(0), one = f64_all(1), infinity = f64_all(__builtin_inf());
  const f64s low = f64_pick(f64_less(none, q), f64_pick(f64_less(one, s), one, none), none);
  return f64_pick(f64_less(q, infinity), f64_pick(f64_less(s, infinity), low, none), none);
}

/* Below 0, of whole s: with r how far q is from a whole number, the term r^-s, those above it, and those below, which are (-1)^s
   times zeta(s, 1 - r) - zeta(s, 1 - q). `good` is 1 where s and q are so and at least the part `least` of all sizes is left, as
   the terms of odd s cancel; otherwise 0. */
typedef struct f64_left {
  f64s value, good;
} f64_left;
static inline f64_left f64_zeta_left(f64s s, f64s q, f64_power power_of, double least) {
  const f64s none = f64_all(0), one = f64_all(1), rest = q - f64_round(q), size = f64_sized(rest);
  f64s good = f64_pick(f64_less(s, f64_all(64.5)), f64_pick(f64_less(f64_all(1.5), s), one, none), none);
  good = f64_pick(f64_equal(s, f64_round(s)), f64_pick(f64_less(size, f64_all(0x1p-10)), none, good), none);
  good = f64_pick(f64_less(q, none), f64_pick(f64_less(f64_all(-0x1p40), q), good, none), none);
  const f64_mask taken = f64_less(none, good);
  const f64s order = f64_pick(taken, s, f64_all(2)), r = f64_pick(taken, rest, f64_all(0.25));
  const f64s x = f64_pick(taken, q, f64_all(-1.75));
  const f64s near = power_of(f64_sized(r), none, order), above = f64_zeta_from(order, r, 1, power_of);
  const f64s below = f64_zeta_from(order, -r, 1, power_of), beyond = f64_zeta_from(order, -x, 1, power_of);
  const f64s half = order * f64_all(0.5), even = near + (above + (below - beyond));
  const f64s value = f64_pick(f64_equal(half, f64_round(half)), even, f64_signed(near, r) + (above - (below - beyond)));
  const f64s all = near + above + below + beyond;
  return (f64_left){value, f64_pick(f64_less(f64_all(least) * all, f64_sized(value)), good, none)};
}

/* So roundings of f64 are at most doubled, and f32 has all its digits. */
#define AX_ZETA_LEFT_F64 0.5
#define AX_ZETA_LEFT_F32 0x1p-19

/* Lanes that are not usual: those below 0 together, the others one by one. */
static inline f64s f64_zeta_others(f64s s, f64s q, f64s usual, f64s result, f64_power power_of, double least) {
  const f64_left left = f64_zeta_left(s, q, power_of, least);
  const f64_mask good = f64_less(f64_all(0), left.good);
  return f64_pairs(s, q, f64_pick(good, f64_all(1), usual), f64_pick(good, left.value, result), ax_special_zeta);
}
typedef f64s (*f64_others)(f64s a, f64s b, f64s usual, f64s result);
static AX_BESIDE f64s f64_zeta_others_exactly(f64s s, f64s q, f64s usual, f64s result) {
  return f64_zeta_others(s, q, usual, result, f64_power_exactly, AX_ZETA_LEFT_F64);
}
static AX_BESIDE f64s f64_zeta_others_for_f32(f64s s, f64s q, f64s usual, f64s result) {
  return f64_zeta_others(s, q, usual, result, f64_power_for_f32, AX_ZETA_LEFT_F32);
}

/* The operands of lanes that are not usual are replaced. */
static inline f64s f64_zeta_by(f64s s, f64s q, f64_usual is_usual, f64_power power_of, f64_others others) {
  const f64s usual = is_usual(s, q), one = f64_all(1);
  const f64_mask rare = f64_less(usual, one);
  if (!f64_any_less(f64_all(0), usual)) return others(s, q, usual, one);
  const f64s result = f64_zeta_usual(f64_pick(rare, f64_all(2), s), f64_pick(rare, one, q), power_of);
  return f64_any_less(usual, one) ? others(s, q, usual, result) : result;
}

/* n! (-1)^(n+1) */
static inline f64s f64_polygamma_factor(f64s n) {
  static const double factors[16] __attribute__((aligned(64))) = {
      -1.0,     1.0,      -2.0,       6.0,        -24.0,        120.0,        -720.0,         5040.0,
      -40320.0, 362880.0, -3628800.0, 39916800.0, -479001600.0, 6227020800.0, -87178291200.0, 1307674368000.0};
  return f64_look_up(factors, (u64s)(n + f64_all(0x1p52)));
}

static inline f64s f64_polygamma_others(f64s n, f64s x, f64s usual, f64s result, f64_power power_of, double least) {
  const f64s one = f64_all(1), none = f64_all(0);
  const f64_mask whole = f64_equal(n, f64_round(n));
  const f64s order = f64_pick(whole, f64_pick(f64_less(n, f64_all(16)), f64_pick(f64_less(n, one), none, n), none), none);
  const f64_left left = f64_zeta_left(order + one, x, power_of, least); /* not good for order 0 */
  const f64_mask good = f64_less(none, left.good);
  const f64s value = f64_polygamma_factor(order) * left.value;
  return f64_pairs(n, x, f64_pick(good, one, usual), f64_pick(good, value, result), ax_special_polygamma);
}
static AX_BESIDE f64s f64_polygamma_others_exactly(f64s n, f64s x, f64s usual, f64s result) {
  return f64_polygamma_others(n, x, usual, result, f64_power_exactly, AX_ZETA_LEFT_F64);
}
static AX_BESIDE f64s f64_polygamma_others_for_f32(f64s n, f64s x, f64s usual, f64s result) {
  return f64_polygamma_others(n, x, usual, result, f64_power_for_f32, AX_ZETA_LEFT_F32);
}

static inline f64s f64_polygamma_by(f64s n, f64s x, f64_usual is_usual, f64_power power_of, f64_others others) {
  const f64s one = f64_all(1), none = f64_all(0);
  f64s usual = f64_pick(f64_less(n, f64_all(16)), is_usual(n + one, x), none);
  usual = f64_pick(f64_equal(n, f64_round(n)), f64_pick(f64_less(n, one), none, usual), none);
  const f64_mask rare = f64_less(usual, one);
  if (!f64_any_less(none, usual)) return others(n, x, usual, one);
  const f64s order = f64_pick(rare, one, n);
  const f64s result = f64_polygamma_factor(order) * f64_zeta_usual(order + one, f64_pick(rare, one, x), power_of);
  return f64_any_less(usual, one) ? others(n, x, usual, result) : result;
}

static f64s f64_zeta(f64s s, f64s q) {
  return f64_zeta_by(s, q, f64_zeta_is_usual, f64_power_exactly, f64_zeta_others_exactly);
}
static f64s f64_polygamma(f64s n, f64s x) {
  return f64_polygamma_by(n, x, f64_zeta_is_usual, f64_power_exactly, f64_polygamma_others_exactly);
}

static inline f64s f64_zeta_for_f32(f64s s, f64s q) {
  return f64_zeta_by(s, q, f64_zeta_is_usual_for_f32, f64_power_for_f32, f64_zeta_others_for_f32);
}
static inline f64s f64_polygamma_for_f32(f64s n, f64s x) {
  return f64_polygamma_by(n, x, f64_zeta_is_usual_for_f32, f64_power_for_f32, f64_polygamma_others_for_f32);
}
static f32s f32_zeta(f32s s, f32s q) {
  return f32_join(f64_zeta_for_f32(f64_low(s), f64_low(q)), f64_zeta_for_f32(f64_high(s), f64_high(q)));
}
static f32s f32_polygamma(f32s n, f32s x) {
  return f32_join(f64_polygamma_for_f32(f64_low(n), f64_low(x)), f64_polygamma_for_f32(f64_high(n), f64_high(x)));
}
