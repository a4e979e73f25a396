/* Bits by base/threefry.h. The inverse of erf: Giles, Approximating the erfinv function (2010), his polynomials for single
   precision; in double precision Newton's method goes on from there.

   Everything is computed in double and rounded to the dtype after each operation: the sum, product, quotient and root of two floats
   rounded to double, and then to f32 or less, are those rounded once. */
#include "tree/random.h"

#include <math.h>

#include "base/threefry.h"
#include "ir/number.h"

/* --- Bits --- */

static uint64_t of_key(ax_fill_key key) { return (uint64_t)key.word[0] << 32 | key.word[1]; }
static ax_fill_key threefry(ax_fill_key key, uint64_t count) {
  const uint64_t made = ax_threefry_bits(of_key(key), count);
  return (ax_fill_key){{(uint32_t)(made >> 32), (uint32_t)made}};
}

ax_fill_key ax_fill_key_of(uint64_t seed) { return (ax_fill_key){{(uint32_t)(seed >> 32), (uint32_t)seed}}; }
ax_fill_key ax_fill_key_fold_in(ax_fill_key key, uint32_t number) { return threefry(key, number); }

/* How many bits of a float are drawn: its mantissa's, the upper ones of those that jax draws for the dtype. */
static double fraction(ax_fill_key key, ax_dtype dtype, uint64_t index) {
  ax_fill_key bits = threefry(key, index);
  uint32_t folded = bits.word[0] ^ bits.word[1];
  const int digits = (int)ax_dtype_get(dtype)->fraction, drawn = digits < 8 ? 8 : 8 * (int)ax_dtype_bytes(dtype);
  if (dtype == AX_F64) return (double)(((uint64_t)bits.word[0] << 32 | bits.word[1]) >> 12) * 0x1p-52;
  return ldexp((double)((folded & UINT32_MAX >> (32 - drawn)) >> (drawn - digits)), -digits);
}

/* --- Distributions --- */

double ax_rounded(ax_dtype dtype, double x) {
  if (dtype == AX_F64) return x;
  return dtype == AX_F32 ? (double)(float)x : ax_number_round(dtype, (ax_number){.f = x}).f;
}

static double uniform(ax_fill_key key, ax_dtype dtype, uint64_t index, double low, double high) {
  double width = ax_rounded(dtype, high - low);
  double x = ax_rounded(dtype, ax_rounded(dtype, fraction(key, dtype, index) * width) + low);
  return x > low ? x : low;
}

static float inverse_erf_single(float x) {
  static const float near[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                               -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  static const float far[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  float w = -(float)log1p(-(double)x * (double)x);
  bool middle = w < 5;
  const float *coefficients = middle ? near : far;
  w = middle ? w - 2.5f : sqrtf(w) - 3;
  float p = coefficients[0];
  for (int i = 1; i < 9; i++) p = coefficients[i] + p * w;
  return p * x;
}

/* Newton's steps double the digits, of which single precision has six. What is left of erf(y) - x is found from the side of 1 where
   it has digits. */
static double inverse_erf_double(double x) {
  const double slope = 1.1283791670955126; /* 2 / sqrt(pi) */
  double magnitude = fabs(x), y = (double)inverse_erf_single((float)magnitude);
  if (!(y < 27)) y = 5.5; /* the float was 1 */
  for (int i = 0; i < 3; i++) {
    double miss = magnitude < 0.5 ? erf(y) - magnitude : (1 - magnitude) - erfc(y);
    double step = miss / (slope * exp(-y * y));
    y -= step / (1 + y * step); /* Halley's */
  }
  return x < 0 ? -y : y;
}

static double inverse_erf(ax_dtype dtype, double x) {
  if (dtype == AX_F64) return inverse_erf_double(x);
  return ax_rounded(dtype, (double)inverse_erf_single((float)x));
}

/* The next number of the dtype above x, towards 0 or away from it. */
static double next_up(ax_dtype dtype, double x) {
  if (dtype == AX_F64) return nextafter(x, HUGE_VAL);
  if (dtype == AX_F32) return (double)nextafterf((float)x, HUGE_VALF);
  double step = ldexp(1, ilogb(x) - (int)ax_dtype_get(dtype)->fraction);
  return x < 0 && x == -ldexp(1, ilogb(x)) ? x + step / 2 : x + step;
}

static double normal(ax_fill_key key, ax_dtype dtype, uint64_t index) {
  double u = uniform(key, dtype, index, next_up(dtype, -1), 1);
  return ax_rounded(dtype, ax_rounded(dtype, sqrt(2)) * inverse_erf(dtype, u));
}

typedef struct truncated {
  double low, high;     /* the numbers nearest the bounds inside */
  double from, to, root; /* erf of the bounds over root, which is that of 2 */
} truncated;

static truncated truncated_between(ax_dtype dtype, double low, double high) {
  truncated t = {.root = ax_rounded(dtype, sqrt(2)), .low = next_up(dtype, low), .high = -next_up(dtype, -high)};
  t.from = ax_rounded(dtype, erf(ax_rounded(dtype, low / t.root)));
  t.to = ax_rounded(dtype, erf(ax_rounded(dtype, high / t.root)));
  return t;
}

static double truncated_normal(ax_fill_key key, ax_dtype dtype, uint64_t index, const truncated *t) {
  double x = ax_rounded(dtype, t->root * inverse_erf(dtype, uniform(key, dtype, index, t->from, t->to)));
  return x < t->low ? t->low : x > t->high ? t->high : x;
}

void ax_random_fill(ax_fill_key key, ax_distribution distribution, double low, double high, double factor, ax_dtype dtype,
                    int64_t elems, void *data) {
  truncated t = {0};
  if (distribution == AX_TRUNCATED_NORMAL) t = truncated_between(dtype, low, high);
  factor = ax_rounded(dtype, factor);
  for (int64_t i = 0; i < elems; i++) {
    double x;
    switch (distribution) {
      case AX_UNIFORM: x = uniform(key, dtype, (uint64_t)i, low, high); break;
      case AX_NORMAL: x = normal(key, dtype, (uint64_t)i); break;
      default: x = truncated_normal(key, dtype, (uint64_t)i, &t); break;
    }
    ax_number_store(dtype, data, i, (ax_number){.f = x * factor});
  }
}
