/* Modified Bessel functions I0 and I1 over e^|x|: the power series, whose terms are all positive, and Hankel's series from 40 on. */
#include <math.h>

#include "base/special.h"

/* The sum of (x/2)^2k / (k! (k + order)!), times e^-x. */
static long double power_series(int order, long double x) {
  const long double z = x * x / 4;
  long double term = 1, sum = 1;
  for (int k = 1; term > sum * 0x1p-70L; k++) {
    term *= z / ((long double)k * (k + order));
    sum += term;
  }
  return sum * expl(-x);
}

static long double hankel_series(int order, long double x) {
  long double term = 1, sum = 1;
  for (int k = 1; k < 40 && fabsl(term) > 0x1p-70L; k++) {
    const long double odd = 2 * k - 1;
    term *= (odd * odd - 4 * order * order) / (8 * x * k);
    sum += term;
  }
  return sum / sqrtl(6.28318530717958647692528676655900577L * x);
}

long double ax_special_bessel_i0e(long double x) {
  const long double size = fabsl(x);
  if (isnan(x)) return x;
  return size < 40 ? power_series(0, size) : isinf(size) ? 0 : hankel_series(0, size);
}

long double ax_special_bessel_i1e(long double x) {
  const long double size = fabsl(x);
  if (isnan(x)) return x;
  return size < 40 ? x / 2 * power_series(1, size) : copysignl(isinf(size) ? 0 : hankel_series(1, size), x);
}
