/* The reference semantics of scalar operations on complex numbers: those of C, in f64, but for products, whose parts are the plain
   sums of products (infinities times numbers of two parts are NaN, as in XLA), each rounded to the parts' dtype. */
#include "ops/complex.h"
#include "ops/pointwise.h"

#include <assert.h>
#include <math.h>

#include "base/complex_numbers.h" /* after the record, which has a slot of its macro's name */

typedef double _Complex number;

static double kept(ax_dtype part, double x) { return part == AX_F32 ? (double)(float)x : x; }

static number times(ax_dtype part, number a, number b) {
  const double xx = kept(part, creal(a) * creal(b)), yy = kept(part, cimag(a) * cimag(b));
  const double xy = kept(part, creal(a) * cimag(b)), yx = kept(part, cimag(a) * creal(b));
  return CMPLX(kept(part, xx - yy), kept(part, xy + yx));
}

static number sign_of(number a) {
  const double size = cabs(a);
  return size == 0 ? a : CMPLX(creal(a) / size, cimag(a) / size);
}

static number integer_power(ax_dtype part, number a, int64_t exponent) {
  number result = 1;
  bool any = false;
  for (uint64_t n = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent; n > 0; n >>= 1) {
    if (n & 1) result = any ? times(part, result, a) : a;
    any = any || (n & 1) != 0;
    if (n > 1) a = times(part, a, a);
  }
  return exponent < 0 ? 1 / result : result;
}

static number expm1_of(number a) {
  const double x = creal(a), y = cimag(a), half = sin(y / 2);
  return CMPLX(expm1(x) * cos(y) - 2 * half * half, y == 0 ? y : exp(x) * sin(y));
}

static number log1p_of(number a) {
  const long double x = creal(a), y = cimag(a);
  if (fabsl(x) > 0.5L || fabsl(y) > 0.5L) return clog(CMPLX(1 + creal(a), cimag(a)));
  return CMPLX((double)(log1pl(x * (2 + x) + y * y) / 2), (double)atan2l(y, 1 + x));
}

static double extreme_of(ax_scalar op, double a, double b) {
  return ax_scalar_eval(op, AX_F64, (ax_number[]){{.f = a}, {.f = b}}, 0).f;
}

/* By the real parts, and where they are equal by the imaginary ones. */
static number extreme(ax_scalar op, number a, number b) {
  const bool larger = op == AX_SCALAR_MAX;
  if (isnan(creal(a)) || isnan(cimag(a)) || isnan(creal(b)) || isnan(cimag(b))) return CMPLX(NAN, NAN);
  const double none = larger ? -INFINITY : INFINITY;
  const bool first = larger ? creal(a) >= creal(b) : creal(a) <= creal(b), second = larger ? creal(b) >= creal(a) : creal(b) <= creal(a);
  return CMPLX(extreme_of(op, creal(a), creal(b)), extreme_of(op, first ? cimag(a) : none, second ? cimag(b) : none));
}

/* -i log((x + i y) / sqrt(x^2 + y^2)) */
static number angle_of_both(number y, number x) {
  const number along = CMPLX(creal(x) - cimag(y), cimag(x) + creal(y)), size = csqrt(times(AX_F64, x, x) + times(AX_F64, y, y));
  const number made = clog(along / size);
  return CMPLX(cimag(made), 0 - creal(made));
}

static number power(number a, number b) {
  if (b == 0) return 1;
  if (a == 0 && creal(b) > 0) return 0;
  return cpow(a, b);
}

static number function(ax_scalar op, number a) {
  switch (op) {
    case AX_SCALAR_EXP: return cexp(a);
    case AX_SCALAR_EXP2: return cexp(CMPLX(creal(a) * log(2), cimag(a) * log(2)));
    case AX_SCALAR_EXPM1: return expm1_of(a);
    case AX_SCALAR_LOG: return clog(a);
    case AX_SCALAR_LOG1P: return log1p_of(a);
    case AX_SCALAR_LOGISTIC: return 1 / (1 + cexp(-a));
    case AX_SCALAR_SQRT: return csqrt(a);
    case AX_SCALAR_RSQRT: return CMPLX(1, -0.0) / csqrt(a); /* so an imaginary part that vanishes keeps its sign */
    case AX_SCALAR_SIN: return csin(a);
    case AX_SCALAR_COS: return ccos(a);
    case AX_SCALAR_TAN: return ctan(a);
    case AX_SCALAR_SINH: return csinh(a);
    case AX_SCALAR_COSH: return ccosh(a);
    case AX_SCALAR_TANH: return ctanh(a);
    case AX_SCALAR_ASIN: return casin(a);
    case AX_SCALAR_ACOS: return cacos(a);
    case AX_SCALAR_ATAN: return catan(a);
    case AX_SCALAR_ASINH: return casinh(a);
    case AX_SCALAR_ACOSH: return cacosh(a);
    case AX_SCALAR_ATANH: return catanh(a);
    default: assert(!"no operation on complex numbers"); return 0;
  }
}

static number apply(ax_scalar op, ax_dtype part, number a, number b, int64_t imm) {
  switch (op) {
    case AX_SCALAR_ADD: return CMPLX(creal(a) + creal(b), cimag(a) + cimag(b));
    case AX_SCALAR_SUB: return CMPLX(creal(a) - creal(b), cimag(a) - cimag(b));
    case AX_SCALAR_MUL: return times(part, a, b);
    case AX_SCALAR_DIV: return a / b;
    case AX_SCALAR_POW: return power(a, b);
    case AX_SCALAR_ATAN2: return angle_of_both(a, b);
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN: return extreme(op, a, b);
    case AX_SCALAR_NEG: return CMPLX(-creal(a), -cimag(a));
    case AX_SCALAR_ABS: return CMPLX(cabs(a), 0);
    case AX_SCALAR_SIGN: return sign_of(a);
    case AX_SCALAR_INTEGER_POW: return integer_power(part, a, imm);
    default: return function(op, a);
  }
}

ax_number ax_complex_eval(ax_scalar op, ax_dtype dtype, const ax_number *x, int64_t imm) {
  const number a = CMPLX(x[0].f, x[0].imag), b = ax_scalar_arity(op) > 1 ? CMPLX(x[1].f, x[1].imag) : a;
  if (op == AX_SCALAR_EQ) return (ax_number){.u = a == b};
  if (op == AX_SCALAR_NE) return (ax_number){.u = a != b};
  const number made = apply(op, ax_part_dtype(dtype), a, b, imm);
  return (ax_number){.f = creal(made), .imag = cimag(made)};
}
