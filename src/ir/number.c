/* Conversions of bf16 and f16, which no C type has, are written out; all others are a widening load and a rounding store. */
#include "ir/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A small binary float: `fraction` bits of fraction, `exponent` bits of exponent, in 16 bits with the sign. */
static double widen(uint16_t bits, int fraction, int exponent) {
  int bias = (1 << (exponent - 1)) - 1, e = (bits >> fraction) & ((1 << exponent) - 1);
  int f = bits & ((1 << fraction) - 1);
  double magnitude;
  if (e == (1 << exponent) - 1)
    magnitude = f != 0 ? NAN : INFINITY;
  else
    magnitude = e == 0 ? ldexp(f, 1 - bias - fraction) : ldexp(f + (1 << fraction), e - bias - fraction);
  return bits >> 15 ? -magnitude : magnitude;
}

/* One rounding, to nearest even: the value is scaled so that its last kept bit is 1, where nearbyint rounds. */
static uint16_t narrow(double value, int fraction, int exponent) {
  int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1, e;
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return (uint16_t)(sign | top << fraction | 1 << (fraction - 1));
  if (isinf(value)) return (uint16_t)(sign | top << fraction);
  value = fabs(value);
  if (value == 0 || (exponent == 8 && (float)value == 0)) return sign; /* the second: f32 holds every bf16, and may flush it */
  (void)frexp(value, &e);
  e--; /* value = 1.x * 2^e */
  int unit = (e < 1 - bias ? 1 - bias : e) - fraction;
  int64_t units = (int64_t)nearbyint(ldexp(value, -unit));
  int64_t coded = e < 1 - bias ? units : units + ((int64_t)(e + bias - 1) << fraction);
  int64_t infinity = (int64_t)top << fraction;
  return (uint16_t)(sign | (coded > infinity ? infinity : coded));
}

static uint16_t f64_to_bf16(double value) { return narrow(value, 7, 8); }
static uint16_t f64_to_f16(double value) { return narrow(value, 10, 5); }
/* Through f32, which flushes subnormal numbers if the thread does. */
static double bf16_to_f64(uint16_t bits) { return (double)(float)widen(bits, 7, 8); }
static double f16_to_f64(uint16_t bits) { return widen(bits, 10, 5); }

ax_number ax_number_load(ax_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
    case AX_BOOL: return (ax_number){.u = ((const uint8_t *)data)[index] != 0};
    case AX_S8: return (ax_number){.i = ((const int8_t *)data)[index]};
    case AX_S16: return (ax_number){.i = ((const int16_t *)data)[index]};
    case AX_S32: return (ax_number){.i = ((const int32_t *)data)[index]};
    case AX_S64: return (ax_number){.i = ((const int64_t *)data)[index]};
    case AX_U8: return (ax_number){.u = ((const uint8_t *)data)[index]};
    case AX_U16: return (ax_number){.u = ((const uint16_t *)data)[index]};
    case AX_U32: return (ax_number){.u = ((const uint32_t *)data)[index]};
    case AX_U64: return (ax_number){.u = ((const uint64_t *)data)[index]};
    case AX_BF16: return (ax_number){.f = bf16_to_f64(((const uint16_t *)data)[index])};
    case AX_F16: return (ax_number){.f = f16_to_f64(((const uint16_t *)data)[index])};
    case AX_F32: return (ax_number){.f = ((const float *)data)[index]};
    case AX_F64: return (ax_number){.f = ((const double *)data)[index]};
    default: return (ax_number){.u = 0};
  }
}

void ax_number_store(ax_dtype dtype, void *data, int64_t index, ax_number number) {
  switch (dtype) {
    case AX_BOOL: ((uint8_t *)data)[index] = number.u != 0; break;
    case AX_S8:
    case AX_U8: ((uint8_t *)data)[index] = (uint8_t)number.u; break;
    case AX_S16:
    case AX_U16: ((uint16_t *)data)[index] = (uint16_t)number.u; break;
    case AX_S32:
    case AX_U32: ((uint32_t *)data)[index] = (uint32_t)number.u; break;
    case AX_S64:
    case AX_U64: ((uint64_t *)data)[index] = number.u; break;
    case AX_BF16: ((uint16_t *)data)[index] = f64_to_bf16(number.f); break;
    case AX_F16: ((uint16_t *)data)[index] = f64_to_f16(number.f); break;
    case AX_F32: ((float *)data)[index] = (float)number.f; break;
    case AX_F64: ((double *)data)[index] = number.f; break;
    default: break;
  }
}

static ax_number float_to_integer(const ax_dtype_info *to, double value) {
  int bits = (int)to->bytes * 8;
  if (isnan(value)) return (ax_number){.u = 0};
  if (to->kind == AX_KIND_UNSIGNED) {
    if (value <= 0) return (ax_number){.u = 0};
    return (ax_number){.u = value >= ldexp(1, bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)value};
  }
  double limit = ldexp(1, bits - 1);
  int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
  if (value >= limit) return (ax_number){.i = most};
  return (ax_number){.i = value <= -limit ? -most - 1 : (int64_t)value};
}

/* Rounded once. Rounding to the nearest f64 and then to a smaller float would round twice: a 64-bit integer next to a tie of bf16
   could become the tie. Therefore the bits that f64 lacks are cut off, and the last bit kept says whether any of them was 1: it is
   far below the smaller float's last bit, so that the second step rounds as if all bits were there. */
static double integer_to_float(ax_dtype to, uint64_t size) {
  if (to == AX_F64) return (double)size;
  if (size >> 53 != 0) {
    const int lost = 64 - 53 - __builtin_clzll(size);
    const uint64_t unit = (uint64_t)1 << lost, rest = size & (unit - 1);
    size = (size - rest) | (rest != 0 ? unit : 0);
  }
  return ax_number_round(to, (ax_number){.f = (double)size}).f;
}

ax_number ax_number_convert(ax_dtype from, ax_dtype to, ax_number number) {
  const ax_dtype_info *source = ax_dtype_get(from), *target = ax_dtype_get(to);
  bool is_float = source->kind == AX_KIND_FLOAT;
  if (target->kind == AX_KIND_BOOL) return (ax_number){.u = is_float ? number.f != 0 : number.u != 0};
  if (target->kind == AX_KIND_FLOAT) {
    if (is_float) return number;
    bool is_negative = source->kind == AX_KIND_SIGNED && number.i < 0;
    double size = integer_to_float(to, is_negative ? 0 - number.u : number.u);
    return (ax_number){.f = is_negative ? -size : size};
  }
  return is_float ? float_to_integer(target, number.f) : number;
}

ax_number ax_number_of(ax_dtype dtype, double value) { return ax_number_convert(AX_F64, dtype, (ax_number){.f = value}); }

ax_number ax_number_round(ax_dtype dtype, ax_number number) {
  uint64_t element;
  ax_number_store(dtype, &element, 0, number);
  return ax_number_load(dtype, &element, 0);
}

/* --- Decimals --- */

/* A decimal that is not 0: its digits, of which the first is not 0 (among them may be a point), and the power of ten of the
   first. */
typedef struct decimal {
  const char *digits;
  int64_t power;
} decimal;

static decimal decimal_of(const char *word) {
  word += *word == '-';
  const char *point = word + strspn(word, "0123456789"), *end = word + strspn(word, "0123456789."),
             *first = word + strspn(word, "0.");
  int64_t power = first < point ? point - first - 1 : point - first;
  return (decimal){first, *end == 'e' || *end == 'E' ? power + strtol(end + 1, NULL, 10) : power};
}

static int next_digit(const char **digits) {
  *digits += **digits == '.';
  return **digits >= '0' && **digits <= '9' ? *(*digits)++ - '0' : -1; /* -1: there are no more */
}

/* < 0, 0 or > 0, as |a| is below, equal to or above |b|. */
static int decimal_compare(decimal a, decimal b) {
  if (a.power != b.power) return a.power < b.power ? -1 : 1;
  for (;;) {
    const int x = next_digit(&a.digits), y = next_digit(&b.digits);
    if (x < 0 && y < 0) return 0;
    if ((x < 0 ? 0 : x) != (y < 0 ? 0 : y)) return (x < 0 ? 0 : x) - (y < 0 ? 0 : y);
  }
}

/* The f64 nearest to a decimal can be a tie between two numbers of a smaller float without the decimal being one. It is moved off
   the tie, to where the decimal lies. A tie has at most 25 bits of the 53, and in f32 at most 113 digits, in bf16 and f16 fewer. */
static double off_tie(ax_dtype dtype, const char *word, double nearest) {
  char exact[192];
  uint64_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  if (!isfinite(nearest) || nearest == 0 || (bits & 0xfffffff) != 0) return nearest;
  const double below = nextafter(nearest, -INFINITY), above = nextafter(nearest, INFINITY);
  if (ax_number_round(dtype, (ax_number){.f = below}).f == ax_number_round(dtype, (ax_number){.f = above}).f) return nearest;
  snprintf(exact, sizeof exact, "%.150e", fabs(nearest));
  const int order = decimal_compare(decimal_of(word), decimal_of(exact));
  return order == 0 ? nearest : (order > 0) == (nearest > 0) ? above : below;
}

ax_number ax_number_decimal(ax_dtype dtype, const char *word, char **end) {
  const double nearest = strtod(word, end);
  return ax_number_round(dtype, (ax_number){.f = dtype == AX_F64 ? nearest : off_tie(dtype, word, nearest)});
}
