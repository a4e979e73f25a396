/* The inverse of erf, and the logarithm of gamma and its derivatives.

   erf_inv: Halley's steps on erf, whose digits triple with each. lgamma is the C library's. digamma: the recurrence up to where
   Stirling's series has all digits; near its zero Taylor's series. zeta: the first terms, and Euler and Maclaurin's formula for the
   others; for q < 0, where s is a whole number, terms on both sides of 0. */
#include "base/special.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static const long double pi = 3.14159265358979323846264338327950288L;

/* --- erf_inv --- */

/* A first guess, by Winitzki's formula, within 2e-3. */
static long double guess(long double size) {
  const long double a = 0.147L, log = logl((1 - size) * (1 + size)), half = 2 / (pi * a) + log / 2;
  return sqrtl(sqrtl(half * half - log / a) - half);
}

/* What is left of erf(y) - x is found from the side of 1 where it has digits. */
long double ax_special_erf_inv(long double x) {
  const long double slope = 1.12837916709551257390L, size = fabsl(x); /* 2 / sqrt(pi) */
  if (size == 1) return copysignl(HUGE_VALL, x);
  if (!(size < 1)) return (long double)NAN;
  if (size < 0x1p-40L) return x / slope;
  long double y = guess(size);
  for (int i = 0; i < 4; i++) {
    const long double miss = size < 0.5L ? erfl(y) - size : (1 - size) - erfcl(y), step = miss / (slope * expl(-y * y));
    y -= step / (1 + y * step);
  }
  return copysignl(y, x);
}

/* --- lgamma, digamma --- */

long double ax_special_lgamma(long double x) {
  int sign; /* of gamma, which is not asked for */
  return lgammal_r(x, &sign);
}

/* Around the zero of digamma, by powers of the distance from the first on. */
static long double around_zero(long double d) {
  static const long double taylor[] = {
      0.967672245447621170427445L,   -0.442763168983592106092865L,   0.258499760955651010624401L,  -0.163942705442406527504251L,
      0.107824050691262365757183L,   -0.0721995612564547109261218L,  0.0488042881641431072250925L, -0.0331611264748473592922584L,
      0.0225976482322181046596248L,  -0.0154247659049489591388003L,  0.010538791616612175388124L,  -0.00720453438635686824097047L,
      0.00492678139572985344635427L, -0.00336980165543932808279286L, 0.00230512632673492783693838L};
  long double sum = 0;
  for (int k = 14; k >= 0; k--) sum = sum * d + taylor[k];
  return sum * d;
}

/* log x - 1 / (2 x) - the sum of B(2k) / (2k x^2k), from 16 on. */
static long double digamma_large(long double x) {
  static const long double series[] = {1 / 12.0L,       -1 / 120.0L, 1 / 252.0L,      -1 / 240.0L,      1 / 132.0L,
                                       -691 / 32760.0L, 1 / 12.0L,   -3617 / 8160.0L, 43867 / 14364.0L, -174611 / 6600.0L};
  const long double z = 1 / (x * x);
  long double sum = 0;
  for (int k = 9; k >= 0; k--) sum = (sum + series[k]) * z;
  return logl(x) - 1 / (2 * x) - sum;
}

/* The zero of digamma is at 1.46163.., which this splits into a double and what it lacks. */
static long double digamma_positive(long double x) {
  const long double d = (x - 0x1.762d86356be3fp+0L) - 9.549995429965697715184199e-17L;
  if (fabsl(d) < 0.06L) return around_zero(d);
  long double sum = 0;
  for (; x < 16; x++) sum += 1 / x;
  return digamma_large(x) - sum;
}

long double ax_special_digamma(long double x) {
  if (x > 0) return isinf(x) ? x : digamma_positive(x);
  const long double rest = x - roundl(x); /* exact */
  if (isnan(rest) || rest == 0) return (long double)NAN;
  return digamma_positive(1 - x) - pi / tanl(pi * rest);
}

/* --- zeta, polygamma --- */

/* B(2k) / (2k)! */
static const long double maclaurin[] = {
    0.0833333333333333333333333L,    -0.00138888888888888888888889L,  0.0000330687830687830687830688L,
    -8.2671957671957671957672e-7L,   2.08767569878680989792101e-8L,   -5.28419013868749318484768e-10L,
    1.3382536530684678832827e-11L,   -3.3896802963225828668302e-13L,  8.58606205627784456413591e-15L,
    -2.17486869855806187304152e-16L, 5.50900282836022951520265e-18L,  -1.39544646858125233407077e-19L,
    3.53470703962946747169323e-21L,  -8.95351742703754685040261e-23L, 2.26795245233768306031095e-24L};

/* x^-s; products take a tenth of powl's time, and of whole s up to 16 they are within 2^-60. */
static long double negative_power(long double x, long double s) {
  if (s > 16 || s != roundl(s)) return powl(x, -s);
  long double product = 1, square = x;
  for (int n = (int)s; n > 0; n >>= 1, square *= square)
    if (n & 1) product *= square;
  return 1 / product;
}

/* For q > 0: terms before q + k reaches 12, or until they do not count any more, and the formula for the others. */
static long double zeta_positive(long double s, long double q) {
  long double sum = 0, power = negative_power(q, s);
  if (isinf(power) || power == 0) return power;
  int k = 0;
  for (; k < 12 || q + k < 12; k++) {
    sum += power;
    power = negative_power(q + k + 1, s);
    if (power < sum * 0x1p-70L && (q + k + 1) * power < sum * 0x1p-70L) return sum;
  }
  const long double a = q + k;
  sum += a * power / (s - 1) + power / 2;
  const long double z = 1 / (a * a);
  long double factor = s * power / a;
  for (size_t j = 0; j < sizeof maclaurin / sizeof maclaurin[0]; j++) {
    const long double term = maclaurin[j] * factor;
    sum += term;
    if (fabsl(term) < fabsl(sum) * 0x1p-70L) break;
    factor *= (s + 2 * (long double)j + 1) * (s + 2 * (long double)j + 2) * z;
  }
  return sum;
}

/* The sum of (k - rest)^-s for k from 1 to -round(q): all k, less what is beyond; or few terms one by one. */
static long double terms_below(long double s, long double q, long double rest) {
  enum { few = 24 };
  const long double last = -roundl(q);
  if (last > few) return zeta_positive(s, 1 - rest) - zeta_positive(s, 1 - q);
  long double sum = 0;
  for (long double k = last; k >= 1; k--) sum += negative_power(k - rest, s);
  return sum;
}

/* For q < 0 and a whole number s: with r the distance from the nearest whole number, (r + k)^-s for k from round(q) on. */
static long double zeta_negative(long double s, long double q) {
  const long double rest = q - roundl(q);
  const bool even = fmodl(s, 2) == 0;
  if (rest == 0) return even ? HUGE_VALL : (long double)NAN;
  if (fabsl(rest) == 0.5L && !even) return zeta_positive(s, 1 - q); /* the sum over all whole k is 0 */
  const long double size = negative_power(fabsl(rest), s);
  if (isinf(size)) return even || rest > 0 ? size : -size;
  const long double above = zeta_positive(s, 1 + rest), below = terms_below(s, q, rest);
  return even ? size + (above + below) : (rest > 0 ? size : -size) + (above - below);
}

long double ax_special_zeta(long double s, long double q) {
  if (isnan(s) || isnan(q) || s < 1) return (long double)NAN;
  if (s == 1) return HUGE_VALL;
  if (isinf(s)) return q == 1 ? 1 : q > 1 ? 0 : q > 0 ? HUGE_VALL : (long double)NAN;
  if (q > 0) return isinf(q) ? 0 : zeta_positive(s, q);
  const bool pole = q == roundl(q);
  if (pole) return fmodl(s, 2) == 0 ? HUGE_VALL : (long double)NAN;
  return s == roundl(s) ? zeta_negative(s, q) : (long double)NAN;
}

long double ax_special_polygamma(long double n, long double x) {
  if (!(n >= 0) || isinf(n) || n != roundl(n)) return (long double)NAN;
  if (n == 0) return ax_special_digamma(x);
  const long double zeta = ax_special_zeta(n + 1, x), sign = fmodl(n, 2) == 0 ? -1 : 1;
  if (n <= 1700) return sign * tgammal(n + 1) * zeta;
  return copysignl(expl(ax_special_lgamma(n + 1) + logl(fabsl(zeta))), sign * zeta);
}
