/* Threefry2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (2011), whose published
   numbers the tests have. The inverse of erf: Giles, Approximating the erfinv function (2010), his polynomials for single
   precision; in double precision Newton's method goes on from there.

   Everything is computed in double and rounded to the dtype after each operation: the sum, product, quotient and root of two floats
   rounded to double, and then to f32 or less, are those rounded once. */
#include "tree/random.h"

#include <math.h>

#include "ir/number.h"

/* --- Bits --- */

static uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

static ax_random_key threefry(ax_random_key key, uint32_t x0, uint32_t x1) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t schedule[3] = {key.word[0], key.word[1], key.word[0] ^ key.word[1] ^ 0x1bd11bdau};
  x0 += schedule[0];
  x1 += schedule[1];
  for (uint32_t group = 0; group < 5; group++) {
    for (int i = 0; i < 4; i++) {
      x0 += x1;
      x1 = rotated(x1, rotations[group % 2][i]) ^ x0;
    }
    x0 += schedule[(group + 1) % 3];
    x1 += schedule[(group + 2) % 3] + group + 1;
  }
  return (ax_random_key){{x0, x1}};
}

ax_random_key ax_random_key_of(uint64_t seed) { return (ax_random_key){{(uint32_t)(seed >> 32), (uint32_t)seed}}; }
ax_random_key ax_random_fold_in(ax_random_key key, uint32_t number) { return threefry(key, 0, number); }

/* How many bits of a float are drawn: its mantissa's, the upper ones of those that jax draws for the dtype. */
static double fraction(ax_random_key key, ax_dtype dtype, uint64_t index) {
  ax_random_key bits = threefry(key, (uint32_t)(index >> 32), (uint32_t)index);
  uint32_t folded = bits.word[0] ^ bits.word[1];
  switch (dtype) {
    case AX_F64: return (double)(((uint64_t)bits.word[0] << 32 | bits.word[1]) >> 12) * 0x1p-52;
    case AX_F32: return (double)(folded >> 9) * 0x1p-23;
    case AX_F16: return (double)((folded & 0xffff) >> 6) * 0x1p-10;
    default: return (double)((folded & 0xff) >> 1) * 0x1p-7; /* bf16 */
  }
}

/* --- Distributions --- */

double ax_rounded(ax_dtype dtype, double x) {
  if (dtype == AX_F64) return x;
  return dtype == AX_F32 ? (double)(float)x : ax_number_round(dtype, (ax_number){.f = x}).f;
}

static double uniform(ax_random_key key, ax_dtype dtype, uint64_t index, double low, double high) {
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
  double step = ldexp(1, ilogb(x) - (dtype == AX_F16 ? 10 : 7));
  return x < 0 && x == -ldexp(1, ilogb(x)) ? x + step / 2 : x + step;
}

static double normal(ax_random_key key, ax_dtype dtype, uint64_t index) {
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

static double truncated_normal(ax_random_key key, ax_dtype dtype, uint64_t index, const truncated *t) {
  double x = ax_rounded(dtype, t->root * inverse_erf(dtype, uniform(key, dtype, index, t->from, t->to)));
  return x < t->low ? t->low : x > t->high ? t->high : x;
}

void ax_random_fill(ax_random_key key, ax_distribution distribution, double low, double high, double factor, ax_dtype dtype,
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
