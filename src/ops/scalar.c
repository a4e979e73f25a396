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

   Where the thread flushes subnormal numbers (machine/float_mode.h), all but neg, abs and select read them as zeros and give zeros
   for them. */
#include <math.h>
#include <string.h>

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
    case AX_SCALAR_INTEGER_POW: return power(a, imm);
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

/* --- Both --- */

ax_number ax_scalar_eval(ax_scalar op, ax_dtype dtype, const ax_number *x, int64_t imm) {
  ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  ax_number a = x[0], b = ax_scalar_arity(op) > 1 ? x[1] : a;
  if (op == AX_SCALAR_SELECT) return a.u != 0 ? b : x[2];
  if (op == AX_SCALAR_CONVERT) return ax_number_convert(dtype, (ax_dtype)imm, a);
  bool is_float = kind == AX_KIND_FLOAT, compares = op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE;
  if (compares)
    return (ax_number){.u = is_float ? float_compare(op, a.f, b.f) : integer_compare(op, kind == AX_KIND_SIGNED, a, b)};
  if (is_float) return (ax_number){.f = float_eval(op, a.f, b.f, imm)};
  return (ax_number){.u = integer_eval(op, kind, a, b, imm)};
}
