/* Floats and integers that no C type has are written out, by the columns of their dtype; all others are a widening load and a
   rounding store. */
#include "ir/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number that the bits of a narrow float stand for. */
static double widen(ax_dtype dtype, uint64_t bits) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const int fraction = (int)f->fraction, exponent = (int)(bits >> fraction & (((uint64_t)1 << f->exponent) - 1));
  const uint64_t unit = (uint64_t)1 << fraction, rest = bits & (unit - 1);
  const bool negative = ax_has_sign(dtype) && (bits >> (f->exponent + f->fraction) & 1) != 0;
  double size;
  if (ax_float_is_nan(dtype, bits)) size = NAN;
  else if (f->specials == AX_SPECIALS_IEEE && exponent == (1 << f->exponent) - 1) size = INFINITY;
  else if (exponent == 0 && f->specials != AX_SPECIALS_POWERS) size = ldexp((double)rest, 1 - f->bias - fraction);
  else size = ldexp((double)(unit + rest), exponent - f->bias - fraction);
  return negative ? -size : size;
}

/* As ml_dtypes does: halfway between two powers of 2 the larger one is taken, and everywhere between the two smallest ones. f32 holds
   every power, and what it has not is 0. */
static uint64_t narrow_to_power(ax_dtype dtype, double value) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  int e;
  if (!(value > 0) || isinf(value) || value <= 0x1p-150) return ax_float_nan_bits(dtype);
  const double part = frexp(value, &e);
  const int64_t below = (int64_t)e - 1 + f->bias, coded = below + (part >= 0.75 || (below == 0 && part > 0.5));
  return coded < 0 ? 0 : coded > (int64_t)ax_float_largest_bits(dtype) ? ax_float_nan_bits(dtype) : (uint64_t)coded;
}

/* The bits of a size, which is not NaN. One rounding, to nearest even: the value is scaled so that its last kept bit is 1, where
   nearbyint rounds. */
static uint64_t narrow_size(ax_dtype dtype, double size) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const int fraction = (int)f->fraction, least = 1 - f->bias;
  int e;
  if (size == 0 || (f->exponent == 8 && (float)size == 0)) return 0; /* the second: f32 holds every bf16, and may flush it */
  if (isinf(size)) return ax_float_infinity_bits(dtype);
  (void)frexp(size, &e);
  e--; /* size = 1.x * 2^e */
  const int unit = (e < least ? least : e) - fraction;
  const uint64_t units = (uint64_t)nearbyint(ldexp(size, -unit));
  const uint64_t coded = e < least ? units : units + ((uint64_t)(e + f->bias - 1) << fraction);
  return coded > ax_float_largest_bits(dtype) ? ax_float_infinity_bits(dtype) : coded;
}

static uint64_t narrow(ax_dtype dtype, double value) {
  const ax_dtype_info *f = ax_dtype_get(dtype);
  const uint64_t sign = (uint64_t)1 << (f->exponent + f->fraction), nan = ax_float_nan_bits(dtype);
  if (f->specials == AX_SPECIALS_POWERS) return narrow_to_power(dtype, value);
  const uint64_t bits = isnan(value) ? nan : narrow_size(dtype, fabs(value));
  if (f->specials == AX_SPECIALS_ONE_ZERO && (bits == 0 || bits == nan)) return bits;
  return signbit(value) ? bits ^ sign : bits;
}

/* bf16 goes through f32, which flushes subnormal numbers if the thread does; so do powers of 2. */
static double load_narrow(ax_dtype dtype, uint64_t bits) {
  const double value = widen(dtype, bits);
  return ax_dtype_get(dtype)->exponent == 8 ? (double)(float)value : value;
}

static uint8_t low_bits(ax_dtype dtype, uint64_t number) {
  return (uint8_t)(number & UINT64_MAX >> (64 - ax_dtype_get(dtype)->bits));
}

static ax_number load_byte(ax_dtype dtype, uint8_t byte) {
  const unsigned above = 64 - ax_dtype_get(dtype)->bits;
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_BOOL: return (ax_number){.u = byte != 0};
    case AX_KIND_SIGNED: return (ax_number){.i = (int64_t)((uint64_t)byte << above) >> above};
    case AX_KIND_UNSIGNED: return (ax_number){.u = low_bits(dtype, byte)};
    case AX_KIND_FLOAT: return (ax_number){.f = load_narrow(dtype, low_bits(dtype, byte))};
    case AX_KIND_COMPLEX:
    case AX_KIND_KEY: break; /* none has a byte */
  }
  return (ax_number){0};
}

static uint8_t byte_of(ax_dtype dtype, ax_number number) {
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_BOOL: return number.u != 0;
    case AX_KIND_FLOAT: return (uint8_t)narrow(dtype, number.f);
    default: return low_bits(dtype, number.u);
  }
}

ax_number ax_number_load(ax_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
    case AX_NO_DTYPE:
    case AX_DTYPE_COUNT: return (ax_number){.u = 0};
    case AX_S16: return (ax_number){.i = ((const int16_t *)data)[index]};
    case AX_S32: return (ax_number){.i = ((const int32_t *)data)[index]};
    case AX_S64: return (ax_number){.i = ((const int64_t *)data)[index]};
    case AX_U16: return (ax_number){.u = ((const uint16_t *)data)[index]};
    case AX_U32: return (ax_number){.u = ((const uint32_t *)data)[index]};
    case AX_U64:
    case AX_KEY: return (ax_number){.u = ((const uint64_t *)data)[index]};
    case AX_BF16:
    case AX_F16: return (ax_number){.f = load_narrow(dtype, ((const uint16_t *)data)[index])};
    case AX_F32: return (ax_number){.f = ((const float *)data)[index]};
    case AX_F64: return (ax_number){.f = ((const double *)data)[index]};
    case AX_C64: return (ax_number){.f = ((const float *)data)[2 * index], .imag = ((const float *)data)[2 * index + 1]};
    case AX_C128: return (ax_number){.f = ((const double *)data)[2 * index], .imag = ((const double *)data)[2 * index + 1]};
    default: return load_byte(dtype, ((const uint8_t *)data)[index]);
  }
}

void ax_number_store(ax_dtype dtype, void *data, int64_t index, ax_number number) {
  switch (dtype) {
    case AX_NO_DTYPE:
    case AX_DTYPE_COUNT: break;
    case AX_S16:
    case AX_U16: ((uint16_t *)data)[index] = (uint16_t)number.u; break;
    case AX_S32:
    case AX_U32: ((uint32_t *)data)[index] = (uint32_t)number.u; break;
    case AX_S64:
    case AX_U64:
    case AX_KEY: ((uint64_t *)data)[index] = number.u; break;
    case AX_BF16:
    case AX_F16: ((uint16_t *)data)[index] = (uint16_t)narrow(dtype, number.f); break;
    case AX_F32: ((float *)data)[index] = (float)number.f; break;
    case AX_F64: ((double *)data)[index] = number.f; break;
    case AX_C64:
      ((float *)data)[2 * index] = (float)number.f;
      ((float *)data)[2 * index + 1] = (float)number.imag;
      break;
    case AX_C128:
      ((double *)data)[2 * index] = number.f;
      ((double *)data)[2 * index + 1] = number.imag;
      break;
    default: ((uint8_t *)data)[index] = byte_of(dtype, number);
  }
}

static ax_number float_to_integer(const ax_dtype_info *to, double value) {
  int bits = (int)to->bits;
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
  if (ax_is_complex(from) && ax_is_complex(to)) return number;
  if (ax_is_complex(from)) {
    if (to == AX_BOOL) return (ax_number){.u = number.f != 0 || number.imag != 0};
    return ax_number_convert(ax_part_dtype(from), to, (ax_number){.f = number.f});
  }
  if (ax_is_complex(to)) return (ax_number){.f = ax_number_convert(from, ax_part_dtype(to), number).f};
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

bool ax_number_holds(ax_dtype dtype, double value) {
  dtype = ax_part_dtype(dtype);
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (isnan(value)) return ax_has_nan(dtype);
  if (isinf(value)) return ax_has_infinity(dtype);
  const double rounded = ax_number_round(dtype, (ax_number){.f = value}).f, largest = ax_float_largest(dtype);
  if (info->specials != AX_SPECIALS_SATURATED) return isfinite(rounded);
  return fabs(value) < largest + ldexp(1, ilogb(largest) - (int)info->fraction - 1);
}

ax_number ax_number_of(ax_dtype dtype, double value) { return ax_number_convert(AX_F64, dtype, (ax_number){.f = value}); }

ax_number ax_number_round(ax_dtype dtype, ax_number number) {
  ax_element element;
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

/* Digits, perhaps with a sign and a point, that are an f64 as they stand: their digits are an integer that f64 has, over a power of ten
   that it has too, and the quotient comes out even. So no rounding is left but that to the dtype. */
static bool is_short_decimal(const char *word, char **end, double *out) {
  enum { most = 15 };
  static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *p = word + (*word == '-');
  int64_t digits = 0;
  int count = 0, behind = 0;
  bool point = false;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    digits = 10 * digits + (*p - '0');
    behind += point;
    if (++count > most) return false;
  }
  if (count == 0 || *p != '\0') return false;
  const double quotient = (double)digits / powers[behind];
  if (fma(quotient, powers[behind], -(double)digits) != 0) return false;
  *out = *word == '-' ? -quotient : quotient;
  *end = (char *)(uintptr_t)p;
  return true;
}

ax_number ax_number_decimal(ax_dtype dtype, const char *word, char **end) {
  double exact;
  if (is_short_decimal(word, end, &exact)) return ax_number_round(dtype, (ax_number){.f = exact});
  const double nearest = strtod(word, end);
  return ax_number_round(dtype, (ax_number){.f = dtype == AX_F64 ? nearest : off_tie(dtype, word, nearest)});
}
