/* Functions in registers of 16 bytes. SLEEF's exp and pow of f64 are infinite from 1.79769e308 on, a little before the largest f64:
   such lanes are computed again by the C library, and so are those of erfc whose results are near the smallest f64. tan of several
   sizes is computed lane by lane. Special functions, which SLEEF does not have, or not as exactly, are computed lane by lane
   (base/special.h). What is not here is called as SLEEF has it (math.c). */
#include "jit/math/vector_math.h"

#include <math.h>

#include "base/special.h"

typedef float f32s __attribute__((vector_size(16)));
typedef double f64s __attribute__((vector_size(16)));

#if defined(__x86_64__)
#define SLEEF_EXP Sleef_expd2_u10sse2
#define SLEEF_POW Sleef_powd2_u10sse2
#define SLEEF_ERFC Sleef_erfcd2_u15sse2
#define SLEEF_TAN_F32 Sleef_tanf4_u10sse2
#define SLEEF_TAN_F64 Sleef_tand2_u10sse2
#else
#define SLEEF_EXP Sleef_expd2_u10
#define SLEEF_POW Sleef_powd2_u10
#define SLEEF_ERFC Sleef_erfcd2_u15
#define SLEEF_TAN_F32 Sleef_tanf4_u10
#define SLEEF_TAN_F64 Sleef_tand2_u10
#endif
f64s SLEEF_EXP(f64s x);
f64s SLEEF_POW(f64s x, f64s y);
f64s SLEEF_ERFC(f64s x);
f32s SLEEF_TAN_F32(f32s x);
f64s SLEEF_TAN_F64(f64s x);

static f64s f64_exp(f64s x) {
  f64s result = SLEEF_EXP(x);
  for (int i = 0; i < 2; i++)
    if (isinf(result[i]) && isfinite(x[i])) result[i] = exp(x[i]);
  return result;
}

/* From 25.8 on it loses digits where subnormal numbers are flushed. */
static f64s f64_erfc(f64s x) {
  f64s result = SLEEF_ERFC(x);
  for (int i = 0; i < 2; i++)
    if (x[i] > 25 && x[i] < 28) {
      const double exact = (double)erfcl((long double)x[i]);
      result[i] = exact == 0 ? 0 : exact; /* flushed */
    }
  return result;
}

static f64s f64_pow(f64s x, f64s y) {
  f64s result = SLEEF_POW(x, y);
  for (int i = 0; i < 2; i++)
    if (isinf(result[i]) && isfinite(x[i]) && isfinite(y[i])) result[i] = pow(x[i], y[i]);
  return result;
}

/* SLEEF's tan goes one of several ways by the sizes of all lanes: where they do not all go the first, each lane is alone. */
static f32s f32_tan(f32s x) {
  f32s result = SLEEF_TAN_F32(x);
  for (int i = 0; i < 4; i++)
    if (!(fabsf(x[i]) < 125))
      for (int k = 0; k < 4; k++) result[k] = SLEEF_TAN_F32((f32s){x[k], x[k], x[k], x[k]})[0];
  return result;
}

static f64s f64_tan(f64s x) {
  f64s result = SLEEF_TAN_F64(x);
  for (int i = 0; i < 2; i++)
    if (!(fabs(x[i]) < 15))
      for (int k = 0; k < 2; k++) result[k] = SLEEF_TAN_F64((f64s){x[k], x[k]})[0];
  return result;
}

/* --- Special functions. long double has subnormal numbers in every mode: where they are flushed, they compare as zeros. --- */

static double flushed(double x) { return x == 0 ? copysign(0, x) : x; }
static float flushed_f32(float x) { return x == 0 ? copysignf(0, x) : x; }

typedef long double (*of_one)(long double);
typedef long double (*of_two)(long double, long double);

static inline f64s f64_each(f64s x, of_one function) {
  for (int i = 0; i < 2; i++) x[i] = flushed((double)function((long double)flushed(x[i])));
  return x;
}

static inline f32s f32_each(f32s x, of_one function) {
  for (int i = 0; i < 4; i++) x[i] = flushed_f32((float)function((long double)flushed_f32(x[i])));
  return x;
}

static inline f64s f64_pairs(f64s a, f64s b, of_two function) {
  for (int i = 0; i < 2; i++) a[i] = flushed((double)function((long double)flushed(a[i]), (long double)flushed(b[i])));
  return a;
}

static inline f32s f32_pairs(f32s a, f32s b, of_two function) {
  for (int i = 0; i < 4; i++) a[i] = flushed_f32((float)function((long double)flushed_f32(a[i]), (long double)flushed_f32(b[i])));
  return a;
}

static f32s f32_erf_inv(f32s x) { return f32_each(x, ax_special_erf_inv); }
static f64s f64_erf_inv(f64s x) { return f64_each(x, ax_special_erf_inv); }
static f32s f32_lgamma(f32s x) { return f32_each(x, ax_special_lgamma); }
static f64s f64_lgamma(f64s x) { return f64_each(x, ax_special_lgamma); }
static f32s f32_digamma(f32s x) { return f32_each(x, ax_special_digamma); }
static f64s f64_digamma(f64s x) { return f64_each(x, ax_special_digamma); }
static f32s f32_bessel_i0e(f32s x) { return f32_each(x, ax_special_bessel_i0e); }
static f64s f64_bessel_i0e(f64s x) { return f64_each(x, ax_special_bessel_i0e); }
static f32s f32_bessel_i1e(f32s x) { return f32_each(x, ax_special_bessel_i1e); }
static f64s f64_bessel_i1e(f64s x) { return f64_each(x, ax_special_bessel_i1e); }
static f32s f32_polygamma(f32s a, f32s b) { return f32_pairs(a, b, ax_special_polygamma); }
static f64s f64_polygamma(f64s a, f64s b) { return f64_pairs(a, b, ax_special_polygamma); }
static f32s f32_zeta(f32s a, f32s b) { return f32_pairs(a, b, ax_special_zeta); }
static f64s f64_zeta(f64s a, f64s b) { return f64_pairs(a, b, ax_special_zeta); }

const ax_vector_math ax_vector_math_16 = {
    .f32 =
        {
            [AX_SCALAR_TAN] = (ax_vector_function)f32_tan,
            [AX_SCALAR_ERF_INV] = (ax_vector_function)f32_erf_inv,
            [AX_SCALAR_LGAMMA] = (ax_vector_function)f32_lgamma,
            [AX_SCALAR_DIGAMMA] = (ax_vector_function)f32_digamma,
            [AX_SCALAR_BESSEL_I0E] = (ax_vector_function)f32_bessel_i0e,
            [AX_SCALAR_BESSEL_I1E] = (ax_vector_function)f32_bessel_i1e,
            [AX_SCALAR_POLYGAMMA] = (ax_vector_function)f32_polygamma,
            [AX_SCALAR_ZETA] = (ax_vector_function)f32_zeta,
        },
    .f64 =
        {
            [AX_SCALAR_EXP] = (ax_vector_function)f64_exp,
            [AX_SCALAR_POW] = (ax_vector_function)f64_pow,
            [AX_SCALAR_ERFC] = (ax_vector_function)f64_erfc,
            [AX_SCALAR_TAN] = (ax_vector_function)f64_tan,
            [AX_SCALAR_ERF_INV] = (ax_vector_function)f64_erf_inv,
            [AX_SCALAR_LGAMMA] = (ax_vector_function)f64_lgamma,
            [AX_SCALAR_DIGAMMA] = (ax_vector_function)f64_digamma,
            [AX_SCALAR_BESSEL_I0E] = (ax_vector_function)f64_bessel_i0e,
            [AX_SCALAR_BESSEL_I1E] = (ax_vector_function)f64_bessel_i1e,
            [AX_SCALAR_POLYGAMMA] = (ax_vector_function)f64_polygamma,
            [AX_SCALAR_ZETA] = (ax_vector_function)f64_zeta,
        },
};
