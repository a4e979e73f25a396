/* SLEEF's functions in registers of 16 bytes, where they end too early: its exp and pow of f64 are infinite from 1.79769e308 on, a
   little before the largest f64. Such lanes are computed again by the C library. What is not here is called as SLEEF has it
   (math.c). */
#include "jit/math/vector_math.h"

#include <math.h>

typedef double f64s __attribute__((vector_size(16)));

#if defined(__x86_64__)
#define SLEEF_EXP Sleef_expd2_u10sse2
#define SLEEF_POW Sleef_powd2_u10sse2
#else
#define SLEEF_EXP Sleef_expd2_u10
#define SLEEF_POW Sleef_powd2_u10
#endif
f64s SLEEF_EXP(f64s x);
f64s SLEEF_POW(f64s x, f64s y);

static f64s f64_exp(f64s x) {
  f64s result = SLEEF_EXP(x);
  for (int i = 0; i < 2; i++)
    if (isinf(result[i]) && isfinite(x[i])) result[i] = exp(x[i]);
  return result;
}

static f64s f64_pow(f64s x, f64s y) {
  f64s result = SLEEF_POW(x, y);
  for (int i = 0; i < 2; i++)
    if (isinf(result[i]) && isfinite(x[i]) && isfinite(y[i])) result[i] = pow(x[i], y[i]);
  return result;
}

const ax_vector_math ax_vector_math_16 = {
    .f64 = {[AX_SCALAR_EXP] = (ax_vector_function)f64_exp, [AX_SCALAR_POW] = (ax_vector_function)f64_pow}};
