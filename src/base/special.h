/* Special functions in long double, to all but its last few digits, or those of 1 near zeros that digamma and zeta have below 0: the
   reference that evaluation rounds, and the way of compiled code for rare operands. NaN where an operand is NaN or the function has no
   value. No thread sees another's call. */
#ifndef AX_BASE_SPECIAL_H
#define AX_BASE_SPECIAL_H

long double ax_special_erf_inv(long double x);                  /* NaN outside -1 .. 1 */
long double ax_special_lgamma(long double x);                   /* log |gamma(x)|; infinite at 0, -1, -2 .. and both infinities */
long double ax_special_digamma(long double x);                  /* the derivative of log gamma(x); NaN at 0, -1, -2 .. */
long double ax_special_polygamma(long double n, long double x); /* its n-th derivative; NaN unless n is a whole number >= 0 */
/* The sum of (q + k)^-s over k >= 0. Infinite for s = 1, NaN below. Of q <= 0 only where s is a whole number; at q = 0, -1, -2 ..
   infinite if s is even, otherwise NaN. */
long double ax_special_zeta(long double s, long double q);
long double ax_special_bessel_i0e(long double x); /* I0(x) e^-|x| */
long double ax_special_bessel_i1e(long double x); /* I1(x) e^-|x| */

#endif
