/* Functions of f32, in the operations of vector_lanes.h. Coefficients belong to the polynomials, or quotients of polynomials, of
   least largest relative error over the range given with them, rounded to f32; math_errors.def has the resulting errors. NaN
   passes through each function: if one operand is NaN, f32_min and f32_max give the second. */
#include "jit/math/large_angle.h"
#include "jit/math/vector_lanes.h"

/* --- Exponentials: e^x = 2^n e^r, |r| <= log(2)/2 --- */

static inline f32s f32_exponent(f32s x) { return f32_round(x * f32_all(1.44269504f)); }
/* x - n log 2, the logarithm in two parts: n times the first is exact */
static inline f32s f32_remainder(f32s x, f32s n) {
  return f32_fnma(n, f32_all(-0.000212194442f), f32_fnma(n, f32_all(0.693359375f), x));
}

/* (e^r - 1) / r */
static inline f32s f32_exp_slope(f32s r) {
  f32s p = f32_all(0.00138638774f);
  p = f32_fma(p, r, f32_all(0.0083666835f));
  p = f32_fma(p, r, f32_all(0.0416675098f));
  p = f32_fma(p, r, f32_all(0.16666542f));
  p = f32_fma(p, r, f32_all(0.49999997f));
  return f32_fma(p, r, f32_all(1));
}

/* From -104 to 90. */
static inline f32s f32_exp_bounded(f32s x) {
  f32s n = f32_exponent(x), r = f32_remainder(x, n);
  return f32_scale(f32_fma(f32_exp_slope(r), r, f32_all(1)), n);
}

/* x at most 90, whose result is infinite as that of all above it. Where the result is 0, nothing is computed that underflows: an
   instruction whose result does takes 40 to 60 ns on some processors, and all masked elements of a softmax come here. */
static AX_APART f32s f32_exp_below(f32s x) {
  f32_mask alive = f32_not_less(x, f32_all(-103.98f));
  return f32_keep(alive, f32_exp_bounded(f32_keep(alive, x)));
}

static f32s f32_exp(f32s x) {
  f32s below = f32_min(f32_all(90), x);
  return f32_any_less(x, f32_all(-87)) ? f32_exp_below(below) : f32_exp_bounded(below);
}

/* 2^n (e^r - 1) + 2^n - 1. With 2^(n-1), as 2^128 is none, and doubled; not where n = 0, for the sake of the smallest numbers. */
static f32s f32_expm1(f32s x) {
  f32s inside = f32_max(f32_all(-20), f32_min(f32_all(89), x)), half = f32_all(0.5f);
  f32s n = f32_exponent(inside), r = f32_remainder(inside, n), small = r * f32_exp_slope(r);
  f32s scale = f32_scale(half, n), sum = f32_fma(scale, small, scale - half);
  return f32_pick(f32_equal(n, f32_all(0)), f32_pick(f32_equal(x, f32_all(0)), x + x, small), sum + sum);
}

/* 1 / (1 + e^-x), as e / (1 + e) with e = e^x below 0, where e^-x would overflow. From 60 on it is rounded to 1. */
static f32s f32_logistic(f32s x) {
  f32s one = f32_all(1), size = (f32s)((u32s)x | 0x80000000u); /* less its sign */
  f32s bounded = (f32s)((u32s)f32_min(f32_all(60), x) | 0x80000000u);
  f32s e = f32_any_less(size, f32_all(-60)) ? f32_exp_below(bounded) : f32_exp_bounded(size);
  return f32_pick(f32_less(x, f32_all(0)), e, one) / (one + e);
}

/* --- Logarithms: x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2) --- */

/* log(1 + f) + k log 2. g: f, or 0 where the square of f is too small to count */
static inline f32s f32_log_sum(f32s f, f32s g, f32s k) {
  f32s p = f32_all(-0.0777307153f);
  p = f32_fma(p, f, f32_all(0.127880737f));
  p = f32_fma(p, f, f32_all(-0.131217867f));
  p = f32_fma(p, f, f32_all(0.14194873f));
  p = f32_fma(p, f, f32_all(-0.166259378f));
  p = f32_fma(p, f, f32_all(0.200016692f));
  p = f32_fma(p, f, f32_all(-0.250008315f));
  p = f32_fma(p, f, f32_all(0.333333254f));
  p = f32_fma(p, f, f32_all(-0.49999997f));
  f32s low = f32_fma(k, f32_all(-0.000212194442f), g * g * p);
  return f32_fma(k, f32_all(0.693359375f), f + low);
}

typedef struct f32_parts { /* of x > 0 and normal, its bits moved so that the exponent changes at sqrt(1/2) */
  u32s moved;
  f32s k; /* the exponent, plus `more` */
} f32_parts;

static inline f32_parts f32_split(f32s x, float more) {
  u32s moved = (u32s)x + (0x3f800000u - 0x3f3504f3u);
  return (f32_parts){moved, (f32s)(moved >> 23 | 0x4b000000u) - f32_all(8388608.0f + 127 - more)};
}

static inline f32s f32_log_fraction(f32_parts parts) { return (f32s)((parts.moved & 0x007fffffu) + 0x3f3504f3u) - f32_all(1); }

static inline f32s f32_log_normal(f32s x, float more) {
  f32_parts parts = f32_split(x, more);
  f32s f = f32_log_fraction(parts);
  return f32_log_sum(f, f, parts.k);
}

static AX_APART f32s f32_log_of_any(f32s x) {
  f32s zero = f32_all(0), least = f32_all(0x1p-126f), result = f32_log_normal(x, 0);
  if (f32_any_less(f32_pick(f32_less(zero, x), x, least), least)) /* subnormal */
    result = f32_pick(f32_less(x, least), f32_log_normal(x * f32_all(0x1p32f), -32), result);
  result = f32_pick(f32_equal(x, zero), f32_all(-__builtin_inff()), result);
  result = f32_pick(f32_less(x, zero), f32_all(__builtin_nanf("")), result);
  return f32_pick(f32_less(x, f32_all(__builtin_inff())), result, x + x);
}

static f32s f32_log(f32s x) {
  return f32_any_not_inside(x, f32_all(0x1p-126f), f32_all(0x1.fffffep127f)) ? f32_log_of_any(x) : f32_log_normal(x, 0);
}

/* 1 + f = 2^-k (1 + x) with one rounding: f = 2^-k x + (2^-k - 1). For large x the lost part of the 1 does not count. */
static inline f32s f32_log1p_fraction(f32s x, f32_parts parts) {
  f32s shrink = (f32s)(0x7f000000u - (parts.moved & 0x7f800000u)); /* 2^-k */
  return f32_fma(shrink, x, shrink - f32_all(1));
}

static inline f32s f32_log1p_sum(f32s x, f32s f, f32s k) {
  f32s g = f32_keep(f32_not_less(f32_sized(f), f32_all(0x1p-40f)), f); /* f f may underflow */
  return (f32s)((u32s)f32_log_sum(f, g, k) | ((u32s)x & 0x80000000u)); /* of -0 too */
}

static AX_APART f32s f32_log1p_of_any(f32s x) {
  f32s u = f32_all(1) + x;
  f32_parts parts = f32_split(u, 0);
  f32s large = f32_log_fraction(parts); /* where 2^-k may be subnormal */
  f32s f = f32_pick(f32_less(f32_all(0x1p60f), x), large, f32_log1p_fraction(x, parts));
  f32s result = f32_log1p_sum(x, f, parts.k);
  result = f32_pick(f32_equal(u, f32_all(0)), f32_all(-__builtin_inff()), result);
  result = f32_pick(f32_less(u, f32_all(0)), f32_all(__builtin_nanf("")), result);
  return f32_pick(f32_less(x, f32_all(__builtin_inff())), result, x + x);
}

static f32s f32_log1p(f32s x) {
  f32s u = f32_all(1) + x;
  f32_parts parts = f32_split(u, 0);
  if (f32_any_not_inside(u, f32_all(0x1p-30f), f32_all(0x1p100f))) return f32_log1p_of_any(x);
  return f32_log1p_sum(x, f32_log1p_fraction(x, parts), parts.k);
}

/* --- tanh, from e^y - 1, which keeps the digits of small results and of results near 1 --- */

/* y / (y + 2) with y = e^(2x) - 1. One constant will do for n log(2)/2: what it lacks counts for less as y grows. */
static f32s f32_tanh(f32s x) {
  f32s one = f32_all(1), inside = f32_max(f32_all(-9.1f), f32_min(f32_all(9.1f), x));
  f32s n = f32_round(inside * f32_all(2.88539008f)), r = f32_fnma(n, f32_all(0.34657359f), inside);
  f32s p = f32_all(0.0887288153f); /* (e^2r - 1) / r */
  p = f32_fma(p, r, f32_all(0.267733872f));
  p = f32_fma(p, r, f32_all(0.666680157f));
  p = f32_fma(p, r, f32_all(1.33332336f));
  p = f32_fma(p, r, f32_all(1.99999988f));
  p = f32_fma(p, r, f32_all(2));
  f32s scale = f32_scale(one, n), y = f32_fma(scale, p * r, scale - one);
  f32s result = y / (y + f32_all(2));
  return (f32s)((u32s)result | ((u32s)x & 0x80000000u)); /* of -0 too */
}

/* --- erf: 16 polynomials of degree 5, whose centres lie 65/256 apart, up to 3.93, where erf(x) rounds to 1 --- */

/* [degree][interval]; in |x| less the interval's centre. The first has no constant, so that small results keep their
   digits. */
static const float f32_erf_coefficients[6][16] __attribute__((aligned(64))) = {
    {0, 0.28046301f, 0.527338505f, 0.718623817f, 0.849086046f, 0.927408159f, 0.968796372f, 0.988047481f, 0.995929182f,
     0.998769462f, 0.999670327f, 0.999921799f, 0.999983609f, 0.99999696f, 0.999999523f, 0.99999994f},
    {1.12837923f, 1.05792975f, 0.871890664f, 0.631641567f, 0.402237773f, 0.225163758f, 0.110794343f, 0.047922574f, 0.0182207488f,
     0.00608969759f, 0.00178907579f, 0.000462024705f, 0.000104883009f, 2.09290029e-05f, 3.67109351e-06f, 5.66038239e-07f},
    {-1.46308785e-05f, -0.268610954f, -0.442762166f, -0.48113364f, -0.408529043f, -0.285860896f, -0.168800324f, -0.0851659402f,
     -0.037010517f, -0.0139294211f, -0.0045524477f, -0.00128900481f, -0.000325966277f, -6.97808064e-05f, -2.342261e-05f,
     -8.52348876e-06f},
    {-0.375556588f, -0.30719763f, -0.140761405f, 0.0337708034f, 0.142520264f, 0.166875988f, 0.13449356f, 0.0849504769f,
     0.0440457202f, 0.0191700887f, 0.0070927972f, 0.00224865531f, 0.000614110846f, 0.000145021651f, 2.96952094e-05f,
     3.00162787e-06f},
    {-0.00707017491f, 0.127649352f, 0.182841212f, 0.147130221f, 0.0642882735f, -0.0097702546f, -0.0451387838f, -0.0475277752f,
     -0.0324233547f, -0.0164771918f, -0.00692191487f, -0.00282152928f, -0.000442903605f, -0.000176480229f, 0.000592703233f,
     0.000404252292f},
    {0.13989222f, 0.0800468177f, 0.00649762014f, -0.0543184653f, -0.0681682453f, -0.0445012264f, -0.0122527769f, 0.00782588031f,
     0.0130367801f, 0.010025355f, 0.00549555337f, 0.00236749998f, 0.000834552513f, 0.000245531643f, 6.10554343e-05f,
     0.00030904467f},
};

static f32s f32_erf(f32s x) {
  const f32s size = f32_min(f32_all(3.93f), f32_sized(x)), shift = f32_all(12582912.0f);
  const f32s moved = f32_fma(size, f32_all(3.93846154f), shift), d = f32_fnma(moved - shift, f32_all(0.25390625f), size);
  const u32s interval = (u32s)moved;
  f32s p = f32_look_up(f32_erf_coefficients[5], interval);
  for (int k = 4; k >= 0; k--) p = f32_fma(p, d, f32_look_up(f32_erf_coefficients[k], interval));
  return f32_signed(p, x);
}

/* --- sin and cos: x = n pi + r, |r| <= pi/2, and half a pi on for cos. pi in three parts, of which the first leaves no rounding.
   --- */

/* The sine of x - n pi, less its sign */
static inline f32s f32_sine(f32s x, f32s n) {
  f32s r = f32_fnma(n, f32_all(3.14159274f), x);
  r = f32_fnma(n, f32_all(-3.43024902e-15f), f32_fnma(n, f32_all(-8.74227766e-08f), r));
  f32s t = r * r;
  f32s p = f32_all(2.63247102e-06f);
  p = f32_fma(p, t, f32_all(-0.000198217967f));
  p = f32_fma(p, t, f32_all(0.00833323132f));
  p = f32_fma(p, t, f32_all(-0.166666657f));
  return f32_max(f32_all(-1), f32_min(f32_all(1), f32_fma(r * t, p, r)));
}

/* x with the sign turned where n, a whole number, is odd */
static inline f32s f32_turned(f32s x, f32s n) { return (f32s)((u32s)x ^ (u32s)(n + f32_all(12582912.0f)) << 31); }

/* |x| / pi less the nearest whole number, of x, an f32 of 2^17 or more, as an f64: see large_angle.h. Gives the latter too, less an
   even one: from -1 to 1. */
static inline f64s f64_large_part(f64s x, f64s *n) {
  enum { bias = 1023, shift = 52 };
  const u64s bits = (u64s)x, place = 2 * ((bits >> shift & 0x7ff) - (bias + 17));
  const f64s m = (f64s)((bits & 0xfffffffffffff) | (uint64_t)(bias + 23) << shift); /* 24 bits, a whole number */
  const f64s first = m * f64_gather(&large_angle_table[0][0], place), second = m * f64_gather(&large_angle_table[0][1], place);
  const f64s whole = f64_all(2) * f64_round(f64_all(0.5) * first), near = first - whole;
  *n = f64_round(near + second);
  return near - *n + second;
}

/* An angle from -pi/2 to pi/2 whose sine is that of x, or its cosine. */
static inline f64s f64_large_angle(f64s x, const int of_cosine) {
  f64s n;
  const f64s part = f64_large_part(x, &n), pi = f64_all(3.141592653589793);
  const f64s angle = pi * (of_cosine ? f64_all(0.5) - f64_sized(part) : (f64s)((u64s)part ^ ((u64s)x & 0x8000000000000000u)));
  return f64_pick(f64_equal(n, f64_all(0)), angle, -angle);
}

/* Lanes too large for the above, which are reduced by a table: 2^17 stands in the others' places. Which they are does not depend on
   their neighbours. Infinities are none of them; they have no sine. */
typedef struct f32_large_lanes {
  f32s x, result; /* result: of the others */
  f32_mask are;
  int any;
} f32_large_lanes;

static inline f32_large_lanes f32_find_large(f32s x, f32s result) {
  const f32s most = f32_all(131072.0f), size = f32_sized(x);
  const f32_mask finite = f32_less(size, f32_all(__builtin_inff()));
  const f32s reach = f32_keep(finite, size);
  const f32_mask are = f32_less(most, reach);
  return (f32_large_lanes){f32_pick(are, x, most), f32_pick(finite, result, x - x), are, f32_any_less(most, reach)};
}

static AX_BESIDE f32s f32_large(f32s x, f32s result, int of_cosine) {
  const f32_large_lanes large = f32_find_large(x, result);
  if (!large.any) return large.result;
  const f64s low = f64_low(large.x), high = f64_high(large.x);
  const f32s angle = of_cosine ? f32_join(f64_large_angle(low, 1), f64_large_angle(high, 1))
                               : f32_join(f64_large_angle(low, 0), f64_large_angle(high, 0));
  return f32_pick(large.are, f32_sine(angle, f32_all(0)), large.result);
}

static f32s f32_sin(f32s x) {
  f32s n = f32_round(x * f32_all(0.318309873f)), result = f32_turned(f32_sine(x, n), n);
  result = f32_pick(f32_equal(x, f32_all(0)), x + x, result); /* -0; subnormal numbers that are flushed */
  return f32_any_not_inside(x, f32_all(-131072.0f), f32_all(131072.0f)) ? f32_large(x, result, 0) : result;
}

static f32s f32_cos(f32s x) {
  f32s half = f32_all(0.5), n = f32_round(f32_fma(x, f32_all(0.318309873f), -half));
  f32s result = -f32_turned(f32_sine(x, n + half), n);
  return f32_any_not_inside(x, f32_all(-131072.0f), f32_all(131072.0f)) ? f32_large(x, result, 1) : result;
}

/* --- Powers, in f64: 2^(y log2 |x|). Where x is not normal and positive, or y not finite, they are put right afterwards. --- */

/* a + b x; the sum of 4, of 7 and of 8 terms c[k] x^k, of x and its powers. No part of it waits for more than two others. */
static inline f64s f64_pair(f64s x, double a, double b) { return f64_fma(f64_all(b), x, f64_all(a)); }
static inline f64s f64_four(const double *c, f64s x, f64s x2) {
  return f64_fma(x2, f64_pair(x, c[2], c[3]), f64_pair(x, c[0], c[1]));
}
static inline f64s f64_seven(const double *c, f64s x, f64s x2, f64s x4) {
  return f64_fma(x4, f64_fma(x2, f64_all(c[6]), f64_pair(x, c[4], c[5])), f64_four(c, x, x2));
}
static inline f64s f64_eight(const double *c, f64s x, f64s x2, f64s x4) {
  return f64_fma(x4, f64_four(c + 4, x, x2), f64_four(c, x, x2));
}

/* log2(1 + f) / f, 1 + f between sqrt(1/2) and sqrt(2): even and odd powers apart, so that one need not wait for the other */
static inline f64s f64_log2_slope(f64s f) {
  static const double even[7] = {1.4426950408865733,  0.4808983488029502,  0.2885387957230982, 0.2061071230639812,
                                 0.16021667059794842, 0.13027556326294373, 0.13251225857945292};
  static const double odd[7] = {-0.7213475203275436,  -0.3606737931392959,  -0.24044643345620065, -0.1804367533694987,
                                -0.14249861422653953, -0.13462934317671824, -0.06973935302989454};
  const f64s z = f * f, z2 = z * z, z4 = z2 * z2;
  return f64_fma(f64_seven(odd, z, z2, z4), f, f64_seven(even, z, z2, z4));
}

/* 2^t, to the digits of an f32. It is 0 or infinite for those as f32 from 200 on. t is no NaN. */
static inline f64s f64_exp2_short(f64s t) {
  const f64s bounded = f64_min(f64_all(200), f64_max(f64_all(-200), t)), shift = f64_all(6755399441055744.0);
  const f64s moved = bounded + shift, r = bounded - (moved - shift), r2 = r * r;
  return (f64s)((u64s)f64_seven(ax_exp2_terms, r, r2, r2 * r2) + ((u64s)moved << 52));
}

static inline f64s f64_log2_of(f64s f, f64s k) { return f64_fma(f64_log2_slope(f), f, k); }

static double log2_of_f32(float x) {
  const f32_parts parts = f32_split(f32_all(x), 0);
  return f64_log2_of(f64_low(f32_log_fraction(parts)), f64_low(parts.k))[0];
}

/* |x| normal, y finite; the logarithm of |x| is `more` than it seems */
static inline f32s f32_pow_plain(f32s size, f32s y, f32s more) {
  const f32_parts parts = f32_split(size, 0);
  const f32s f = f32_log_fraction(parts), k = parts.k + more;
  const f64s low = f64_log2_of(f64_low(f), f64_low(k)), high = f64_log2_of(f64_high(f), f64_high(k));
  return f32_join(f64_exp2_short(low * f64_low(y)), f64_exp2_short(high * f64_high(y)));
}

static inline f32s f32_where(u32s mask, f32s yes, f32s no) { return (f32s)((mask & (u32s)yes) | (~mask & (u32s)no)); }

/* Zeros, infinities, NaNs, negative and subnormal numbers among x; infinities and NaNs among y. */
static f32s f32_pow_strange(f32s x, f32s y) {
  const f32s zero = f32_all(0), one = f32_all(1), infinity = f32_all(__builtin_inff()), size = f32_sized(x);
  const u32s whole = (u32s)(f32_round(y) == y), odd = whole & (u32s)(f32_round(y * f32_all(0.5f)) != y * f32_all(0.5f));
  const u32s below = (u32s)(size < f32_all(0x1p-126f)), none = (u32s)(size == zero), endless = (u32s)(size == infinity);
  const u32s finite = (u32s)(size < infinity) & ~none, bounded = (u32s)(f32_sized(y) < infinity);
  f32s normal = f32_where(finite, f32_where(below, size * f32_all(0x1p32f), size), one);
  const f32s result = f32_pow_plain(normal, f32_where(bounded, y, zero), f32_where(below & finite, f32_all(-32), zero));
  /* of 0, of infinities, and by infinities: 0 or infinite, as the logarithm and y have the same sign or not */
  const u32s grows = (u32s)(size > one) ^ (u32s)(y < zero), far = none | endless | (~bounded & (u32s)(size != one));
  f32s made = f32_where(far, f32_where(grows, infinity, zero), result);
  made = (f32s)((u32s)made | ((u32s)x & 0x80000000u & odd));
  made = f32_where((u32s)(x < zero) & finite & ~whole, f32_all(__builtin_nanf("")), made);
  made = f32_where((u32s)(x != x) | (u32s)(y != y), x + y, made);
  return f32_where((u32s)(x == one) | (u32s)(y == zero), one, made);
}

static f32s f32_pow(f32s x, f32s y) {
  const f32s most = f32_all(0x1.fffffep127f);
  if (f32_any_not_inside(x, f32_all(0x1p-126f), most) || f32_any_not_inside(y, -most, most)) return f32_pow_strange(x, y);
  return f32_pow_plain(x, y, f32_all(0));
}
