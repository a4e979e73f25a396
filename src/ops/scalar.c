/* The reference semantics of every scalar operation (ir/scalar.def) on every dtype.

   Integers are computed as unsigned 64-bit numbers, so they wrap; ax_number_store keeps the low bits. Floats are computed in f64
   and rounded once, when they are stored. Bools are the numbers 0 and 1.

                     special cases
     div             integers truncate; x/0 has all bits set; the least signed number / -1 is itself
     max, min        NaN if either is; -0 < +0 here
     sign            keeps NaN and both zeros
     rem             x rem 0 is x of integers, NaN of floats; the least signed number rem -1 is 0
     integer_pow     exact modulo 2^bits on integers; x^-n = 1 / x^n on floats
     eq lt le gt ge  false on NaN; ne true
     convert         imm is the dtype it converts to
     shifts          by as many bits as there are, or by an amount with the sign bit: 0, or the sign in all bits
     bitcast         imm is the dtype; a NaN of bf16 and f16 is the default one here
     nextafter       the second operand where both are equal; NaN if either is
     reduce_precision  imm: ax_precision_imm; keeps NaN

   Where the thread flushes subnormal numbers (machine/float_mode.h), all but neg, abs, select and the last three read them as zeros
   and give zeros for them. The caller keeps them for those (ops/pointwise.c). */
#include <math.h>
#include <string.h>

#include "base/special.h"
#include "base/threefry.h"
#include "ops/complex.h"
#include "ops/pointwise.h"

/* --- Floats --- */

static double greater(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

static double sign_of(double x) {
  if (isnan(x) || x == 0) return x;
  return x > 0 ? 1 : -1;
}

static double power(double x, int64_t exponent) {
  double result = 1;
  for (uint64_t n = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent; n > 0; n >>= 1) {
    if (n & 1) result *= x;
    if (n > 1) x *= x;
  }
  return exponent < 0 ? 1 / result : result;
}

/* If the thread flushes subnormal numbers, its comparisons say that one equals 0. Functions of C may look at bits. */
static double flushed(double x) { return x == 0 ? copysign(0, x) : x; }

static double float_op(ax_scalar op, double a, double b, int64_t imm) {
  switch (op) {
    case AX_SCALAR_ADD: return a + b;
    case AX_SCALAR_SUB: return a - b;
    case AX_SCALAR_MUL: return a * b;
    case AX_SCALAR_DIV: return a / b;
    case AX_SCALAR_MAX: return greater(a, b);
    case AX_SCALAR_MIN: return -greater(-a, -b);
    case AX_SCALAR_POW: return pow(a, b);
    case AX_SCALAR_REM: return fmod(a, b); /* exact, and a number of every dtype that a and b are numbers of */
    case AX_SCALAR_NEG: return -a;
    case AX_SCALAR_ABS: return fabs(a);
    case AX_SCALAR_SIGN: return sign_of(a);
    case AX_SCALAR_FLOOR: return floor(a);
    case AX_SCALAR_CEIL: return ceil(a);
    case AX_SCALAR_ROUND_NEAREST_EVEN: return nearbyint(a);
    case AX_SCALAR_EXP: return exp(a);
    case AX_SCALAR_LOG: return log(a);
    case AX_SCALAR_LOG1P: return log1p(a);
    case AX_SCALAR_EXPM1: return expm1(a);
    case AX_SCALAR_SIN: return sin(a);
    case AX_SCALAR_COS: return cos(a);
    case AX_SCALAR_TANH: return tanh(a);
    case AX_SCALAR_LOGISTIC: return 1 / (1 + exp(-a));
    case AX_SCALAR_SQRT: return sqrt(a);
    case AX_SCALAR_RSQRT: return 1 / sqrt(a);
    case AX_SCALAR_ERF: return erf(a);
    case AX_SCALAR_EXP2: return exp2(a);
    case AX_SCALAR_CBRT: return cbrt(a);
    case AX_SCALAR_TAN: return tan(a);
    case AX_SCALAR_ASIN: return asin(a);
    case AX_SCALAR_ACOS: return acos(a);
    case AX_SCALAR_ATAN: return atan(a);
    case AX_SCALAR_SINH: return sinh(a);
    case AX_SCALAR_COSH: return cosh(a);
    case AX_SCALAR_ASINH: return asinh(a);
    case AX_SCALAR_ACOSH: return acosh(a);
    case AX_SCALAR_ATANH: return atanh(a);
    case AX_SCALAR_ERFC: return erfc(a);
    case AX_SCALAR_ATAN2: return atan2(a, b);
    case AX_SCALAR_ERF_INV: return (double)ax_special_erf_inv((long double)a);
    case AX_SCALAR_LGAMMA: return (double)ax_special_lgamma((long double)a);
    case AX_SCALAR_DIGAMMA: return (double)ax_special_digamma((long double)a);
    case AX_SCALAR_BESSEL_I0E: return (double)ax_special_bessel_i0e((long double)a);
    case AX_SCALAR_BESSEL_I1E: return (double)ax_special_bessel_i1e((long double)a);
    case AX_SCALAR_POLYGAMMA: return (double)ax_special_polygamma((long double)a, (long double)b);
    case AX_SCALAR_ZETA: return (double)ax_special_zeta((long double)a, (long double)b);
    case AX_SCALAR_INTEGER_POW: return power(a, imm);
    case AX_SCALAR_ROUND_NEAREST_AFZ: return round(a);
    default: assert(!"no operation on floats"); return NAN;
  }
}

static double float_eval(ax_scalar op, double a, double b, int64_t imm) {
  if (op == AX_SCALAR_NEG || op == AX_SCALAR_ABS) return float_op(op, a, b, imm); /* bits */
  return flushed(float_op(op, flushed(a), flushed(b), imm));
}

static bool float_compare(ax_scalar op, double a, double b) {
  switch (op) {
    case AX_SCALAR_EQ: return a == b;
    case AX_SCALAR_NE: return a != b;
    case AX_SCALAR_LT: return a < b;
    case AX_SCALAR_LE: return a <= b;
    case AX_SCALAR_GT: return a > b;
    default: return a >= b;
  }
}

/* --- Integers and bools; `is_signed` says how the 64 bits are read --- */

static bool less(bool is_signed, ax_number a, ax_number b) { return is_signed ? a.i < b.i : a.u < b.u; }

static uint64_t quotient(bool is_signed, ax_number a, ax_number b) {
  if (b.u == 0) return UINT64_MAX;
  if (!is_signed) return a.u / b.u;
  return b.i == -1 ? -a.u : (uint64_t)(a.i / b.i);
}

static uint64_t integer_power(uint64_t x, int64_t exponent) {
  uint64_t result = 1;
  for (int64_t n = exponent; n > 0; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

static uint64_t integer_eval(ax_scalar op, ax_dtype_kind kind, ax_number a, ax_number b, int64_t imm) {
  bool is_signed = kind == AX_KIND_SIGNED, negative = is_signed && a.i < 0;
  switch (op) {
    case AX_SCALAR_ADD: return a.u + b.u;
    case AX_SCALAR_SUB: return a.u - b.u;
    case AX_SCALAR_MUL: return a.u * b.u;
    case AX_SCALAR_DIV: return quotient(is_signed, a, b);
    case AX_SCALAR_REM: return a.u - quotient(is_signed, a, b) * b.u;
    case AX_SCALAR_MAX: return less(is_signed, a, b) ? b.u : a.u;
    case AX_SCALAR_MIN: return less(is_signed, a, b) ? a.u : b.u;
    case AX_SCALAR_NEG: return -a.u;
    case AX_SCALAR_ABS: return negative ? -a.u : a.u;
    case AX_SCALAR_SIGN: return negative ? UINT64_MAX : a.u != 0;
    case AX_SCALAR_INTEGER_POW: return integer_power(a.u, imm);
    case AX_SCALAR_AND: return a.u & b.u;
    case AX_SCALAR_OR: return a.u | b.u;
    case AX_SCALAR_NOT: return kind == AX_KIND_BOOL ? !a.u : ~a.u;
    default: assert(!"no operation on integers"); return 0;
  }
}

static bool integer_compare(ax_scalar op, bool is_signed, ax_number a, ax_number b) {
  switch (op) {
    case AX_SCALAR_EQ: return a.u == b.u;
    case AX_SCALAR_NE: return a.u != b.u;
    case AX_SCALAR_LT: return less(is_signed, a, b);
    case AX_SCALAR_LE: return !less(is_signed, b, a);
    case AX_SCALAR_GT: return less(is_signed, b, a);
    default: return !less(is_signed, a, b);
  }
}

/* --- Bits --- */

static uint64_t bits_of(ax_dtype dtype, ax_number x) {
  uint64_t bits = 0;
  ax_number_store(dtype, &bits, 0, x);
  return bits;
}

/* The bits of an integer dtype, of bool one; the integer's sign in all bits above. */
static uint64_t bit_count(ax_dtype dtype) { return ax_dtype_get(dtype)->bits; }
static int64_t with_sign(uint64_t bits, uint64_t count) { return (int64_t)(bits << (64 - count)) >> (64 - count); }

static uint64_t shifted(ax_scalar op, uint64_t bits, uint64_t amount, uint64_t count) {
  if (op == AX_SCALAR_SHIFT_RIGHT_ARITHMETIC) return (uint64_t)(with_sign(bits, count) >> (amount < count ? amount : count - 1));
  if (amount >= count) return 0;
  return op == AX_SCALAR_SHIFT_LEFT ? bits << amount : bits >> amount;
}

/* Gives the bits of the result, those above the dtype's undefined. */
static uint64_t bit_op(ax_scalar op, ax_dtype dtype, ax_number a, ax_number b) {
  const uint64_t count = bit_count(dtype), x = bits_of(dtype, a);
  switch (op) {
    case AX_SCALAR_XOR: return x ^ b.u;
    case AX_SCALAR_POPULATION_COUNT: return (uint64_t)__builtin_popcountll(x);
    case AX_SCALAR_CLZ: return x == 0 ? count : (uint64_t)__builtin_clzll(x) - (64 - count);
    case AX_SCALAR_CTZ: return x == 0 ? count : (uint64_t)__builtin_ctzll(x);
    default: return shifted(op, x, bits_of(dtype, b), count);
  }
}

/* Sizes of floats are in the order of their bits without the sign. */
static uint64_t next_bits(ax_float_form form, uint64_t x, uint64_t y) {
  const uint64_t sign = (uint64_t)1 << (form.exponent + form.fraction), infinity = sign - ((uint64_t)1 << form.fraction);
  const uint64_t size_x = x & ~sign, size_y = y & ~sign;
  if (size_x > infinity || size_y > infinity) return infinity | (uint64_t)1 << (form.fraction - 1);
  if (x == y || (size_x | size_y) == 0) return y;
  if (size_x == 0) return (y & sign) | 1;
  return ((x ^ y) & sign) == 0 && size_x < size_y ? x + 1 : x - 1;
}

/* The fraction is rounded to the nearest, of two the even one, and may carry into the exponent; then exponents beyond the range are
   infinity and 0, without subnormal numbers. */
static uint64_t reduced_bits(ax_float_form form, uint64_t x, int64_t exponent_bits, int64_t mantissa_bits) {
  const uint64_t sign = (uint64_t)1 << (form.exponent + form.fraction), infinity = sign - ((uint64_t)1 << form.fraction);
  uint64_t size = x & ~sign;
  if (size > infinity) return x;
  if (mantissa_bits < form.fraction) {
    const uint64_t unit = (uint64_t)1 << (form.fraction - mantissa_bits);
    size = (size + (unit >> 1) - 1 + ((size & unit) != 0)) & ~(unit - 1);
  }
  if (exponent_bits < form.exponent) {
    const uint64_t bias = ((uint64_t)1 << (form.exponent - 1)) - 1, reach = ((uint64_t)1 << (exponent_bits - 1)) - 1;
    if (size >> form.fraction > bias + reach) size = infinity;
    else if (size >> form.fraction <= bias - reach) size = 0;
  }
  return (x & sign) | size;
}

static ax_number float_bits_op(ax_scalar op, ax_dtype dtype, ax_number a, ax_number b, int64_t imm) {
  const ax_float_form form = ax_float_form_of(dtype);
  const uint64_t x = bits_of(dtype, a);
  const uint64_t made = op == AX_SCALAR_NEXTAFTER
                            ? next_bits(form, x, bits_of(dtype, b))
                            : reduced_bits(form, x, ax_precision_exponent(imm), ax_precision_mantissa(imm));
  return ax_number_load(dtype, &made, 0);
}

static ax_number bitcast(ax_dtype from, ax_dtype to, ax_number x) {
  const uint64_t bits = bits_of(from, x);
  return ax_number_load(to, &bits, 0);
}

/* --- All --- */

/* What is beyond f32 overflows or underflows there, before it is rounded to a float of a byte. A NaN has no sign that counts. */
static double computed(ax_dtype dtype, double value) {
  if (!ax_is_byte_float(dtype)) return value;
  if (isnan(value)) return (double)NAN;
  const double held = (double)(float)value;
  return isinf(held) || held == 0 ? held : value;
}

ax_number ax_scalar_eval(ax_scalar op, ax_dtype dtype, const ax_number *x, int64_t imm) {
  ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  ax_number a = x[0], b = ax_scalar_arity(op) > 1 ? x[1] : a;
  if (op == AX_SCALAR_SELECT) return a.u != 0 ? b : x[2];
  if (op == AX_SCALAR_CONVERT) return ax_number_convert(dtype, (ax_dtype)imm, a);
  if (kind == AX_KIND_COMPLEX) return ax_complex_eval(op, dtype, x, imm);
  bool is_float = kind == AX_KIND_FLOAT, compares = op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE;
  if (compares)
    return (ax_number){.u = is_float ? float_compare(op, a.f, b.f) : integer_compare(op, kind == AX_KIND_SIGNED, a, b)};
  if (op == AX_SCALAR_BITCAST) return bitcast(dtype, (ax_dtype)imm, a);
  if (op == AX_SCALAR_IS_FINITE) return (ax_number){.u = isfinite(a.f)};
  if (op == AX_SCALAR_NEXTAFTER || op == AX_SCALAR_REDUCE_PRECISION) return float_bits_op(op, dtype, a, b, imm);
  if (op == AX_SCALAR_THREEFRY) return (ax_number){.u = ax_threefry_bits(a.u, b.u)};
  if (op >= AX_SCALAR_XOR && op <= AX_SCALAR_CTZ) return (ax_number){.u = bit_op(op, dtype, a, b)};
  if (is_float) return (ax_number){.f = computed(dtype, float_eval(op, a.f, b.f, imm))};
  return (ax_number){.u = integer_eval(op, kind, a, b, imm)};
}
