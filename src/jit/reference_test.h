/* For tests: runs a kernel the plain way, one element and one operation at a time, with C's own arithmetic and libm.
   Floats are held in f64 and rounded to their dtype after every operation; integers in 64 bits. */
#ifndef AX_JIT_REFERENCE_TEST_H
#define AX_JIT_REFERENCE_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/special.h"
#include "ir/dtype.h"
#include "ir/program.h"
#include "plan/kernel.h"

typedef union number {
  double f;
  int64_t i;
  uint64_t u;
} number;

static inline double f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* --- Narrow floats, by brute definition: `mantissa` explicit bits, exponents from `least`. --- */

static inline double round_to_bits(double x, int mantissa, int least, double greatest) {
  if (isnan(x) || isinf(x) || x == 0) return x;
  int exponent;
  frexp(x, &exponent);
  int unit = exponent - 1 - mantissa < least ? least : exponent - 1 - mantissa; /* the value of the last bit is 2^unit */
  double rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
  return fabs(rounded) > greatest ? copysign(INFINITY, x) : rounded;
}

static inline double round_dtype(ax_dtype dtype, double x) {
  switch (dtype) {
    case AX_F16: return round_to_bits(x, 10, -24, 65504);
    case AX_BF16: return round_to_bits(x, 7, -133, ldexp(255, 120));
    case AX_F32: return (double)(float)x;
    default: return x;
  }
}

static inline double f16_of_bits(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = ldexp(exponent ? 1024 + mantissa : mantissa, (exponent ? exponent : 1) - 25);
  if (exponent == 31) value = mantissa ? NAN : INFINITY;
  return bits >> 15 ? -value : value;
}

static inline uint16_t bits_of_f16(double x) {
  uint16_t sign = signbit(x) ? 0x8000 : 0;
  double a = fabs(x);
  if (isnan(x)) return sign | 0x7e00;
  if (isinf(x)) return sign | 0x7c00;
  if (a < ldexp(1, -14)) return sign | (uint16_t)ldexp(a, 24);
  int exponent;
  double fraction = frexp(a, &exponent);
  return sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)(ldexp(fraction, 11) - 1024);
}

/* --- Memory --- */

static inline int64_t wrap(ax_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case AX_BOOL: return bits != 0;
    case AX_S8: return (int8_t)bits;
    case AX_S16: return (int16_t)bits;
    case AX_S32: return (int32_t)bits;
    case AX_U8: return (uint8_t)bits;
    case AX_U16: return (uint16_t)bits;
    case AX_U32: return (uint32_t)bits;
    default: return (int64_t)bits;
  }
}

static inline number number_of_bits(ax_dtype dtype, uint64_t bits) {
  double f64;
  memcpy(&f64, &bits, sizeof f64);
  switch (dtype) {
    case AX_F64: return (number){.f = f64};
    case AX_F32: return (number){.f = f32_of_bits((uint32_t)bits)};
    case AX_BF16: return (number){.f = f32_of_bits((uint32_t)bits << 16)};
    case AX_F16: return (number){.f = f16_of_bits((uint16_t)bits)};
    default: return (number){.i = wrap(dtype, bits)};
  }
}

static inline uint64_t bits_of_number(ax_dtype dtype, number x) {
  float f32 = (float)x.f;
  uint32_t bits;
  memcpy(&bits, &f32, sizeof bits);
  switch (dtype) {
    case AX_F32: return bits;
    case AX_BF16: return bits >> 16;
    case AX_F16: return bits_of_f16(x.f);
    default: return x.u;
  }
}

static inline number load_number(ax_dtype dtype, const void *array, int64_t at) {
  uint64_t bits = 0;
  size_t bytes = ax_dtype_bytes(dtype);
  memcpy(&bits, (const char *)array + (size_t)at * bytes, bytes);
  return number_of_bits(dtype, bits);
}

static inline void store_number(ax_dtype dtype, void *array, int64_t at, number x) {
  uint64_t bits = bits_of_number(dtype, x);
  size_t bytes = ax_dtype_bytes(dtype);
  memcpy((char *)array + (size_t)at * bytes, &bits, bytes);
}

/* --- Operations --- */

static inline double float_max(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == 0 && b == 0) return signbit(a) ? b : a;
  return a > b ? a : b;
}

/* f32 arithmetic is done in f32, where that makes a difference: compositions. */
static inline double in_dtype(ax_dtype dtype, double x) { return dtype == AX_F64 ? x : (double)(float)x; }

static inline double float_power(ax_dtype dtype, double x, int64_t exponent) {
  double result = 1;
  bool first = true;
  for (uint64_t n = (uint64_t)llabs(exponent); n > 0; n >>= 1) {
    if (n & 1) result = first ? x : in_dtype(dtype, result * x);
    if (n & 1) first = false;
    if (n > 1) x = in_dtype(dtype, x * x);
  }
  return exponent < 0 ? 1 / result : result;
}

static inline double float_op(ax_scalar op, ax_dtype dtype, double a, double b, int64_t imm) {
  switch ((int)op) {
    case AX_SCALAR_ADD: return a + b;
    case AX_SCALAR_SUB: return a - b;
    case AX_SCALAR_MUL: return a * b;
    case AX_SCALAR_DIV: return a / b;
    case AX_SCALAR_MAX: return float_max(a, b);
    case AX_SCALAR_MIN: return -float_max(-a, -b);
    case AX_SCALAR_POW: return pow(a, b);
    case AX_SCALAR_REM: return fmod(a, b);
    case AX_SCALAR_NEG: return -a;
    case AX_SCALAR_ABS: return fabs(a);
    case AX_SCALAR_SIGN: return isnan(a) || a == 0 ? a : a > 0 ? 1 : -1;
    case AX_SCALAR_FLOOR: return floor(a);
    case AX_SCALAR_CEIL: return ceil(a);
    case AX_SCALAR_ROUND_NEAREST_EVEN: return rint(a);
    case AX_SCALAR_ROUND_NEAREST_AFZ: return round(a);
    case AX_SCALAR_EXP: return exp(a);
    case AX_SCALAR_LOG: return log(a);
    case AX_SCALAR_LOG1P: return log1p(a);
    case AX_SCALAR_EXPM1: return expm1(a);
    case AX_SCALAR_SIN: return sin(a);
    case AX_SCALAR_COS: return cos(a);
    case AX_SCALAR_TANH: return tanh(a);
    case AX_SCALAR_LOGISTIC: return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case AX_SCALAR_SQRT: return sqrt(a);
    case AX_SCALAR_RSQRT: return 1 / in_dtype(dtype, sqrt(a));
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
    case AX_SCALAR_INTEGER_POW: return float_power(dtype, a, imm);
    default: abort();
  }
}

static inline int64_t integer_div(bool is_signed, number a, number b) {
  if (b.u == 0) return -1;
  if (!is_signed) return (int64_t)(a.u / b.u);
  return b.i == -1 ? (int64_t)(0 - a.u) : a.i / b.i;
}

static inline uint64_t integer_pow(uint64_t x, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, x *= x)
    if (exponent & 1) result *= x;
  return result;
}

static inline uint64_t signed_pow(number a, number b) {
  if (b.i >= 0) return integer_pow(a.u, b.u);
  return a.i == 1 ? 1 : a.i == -1 ? (b.i & 1 ? UINT64_MAX : 1) : 0;
}

static inline uint64_t integer_op(ax_scalar op, ax_dtype dtype, number a, number b, int64_t imm) {
  bool is_signed = ax_dtype_get(dtype)->kind == AX_KIND_SIGNED, is_bool = dtype == AX_BOOL;
  bool less = is_signed ? a.i < b.i : a.u < b.u;
  switch ((int)op) {
    case AX_SCALAR_ADD: return is_bool ? a.u | b.u : a.u + b.u;
    case AX_SCALAR_SUB: return a.u - b.u;
    case AX_SCALAR_MUL: return a.u * b.u;
    case AX_SCALAR_DIV: return (uint64_t)integer_div(is_signed, a, b);
    case AX_SCALAR_MAX: return less ? b.u : a.u;
    case AX_SCALAR_MIN: return less ? a.u : b.u;
    case AX_SCALAR_POW: return is_signed ? signed_pow(a, b) : integer_pow(a.u, b.u);
    case AX_SCALAR_REM: return b.u == 0 ? a.u : !is_signed ? a.u % b.u : b.i == -1 ? 0 : (uint64_t)(a.i % b.i);
    case AX_SCALAR_NEG: return 0 - a.u;
    case AX_SCALAR_ABS: return is_signed && a.i < 0 ? 0 - a.u : a.u;
    case AX_SCALAR_SIGN: return is_signed && a.i < 0 ? UINT64_MAX : a.u != 0;
    case AX_SCALAR_INTEGER_POW: return integer_pow(a.u, (uint64_t)imm);
    case AX_SCALAR_AND: return a.u & b.u;
    case AX_SCALAR_OR: return a.u | b.u;
    case AX_SCALAR_NOT: return is_bool ? !a.u : ~a.u;
    default: abort();
  }
}

/* --- Bits: one bit after the other, and floats by their places in the order of all --- */

static inline uint64_t bit_op(ax_scalar op, ax_dtype dtype, number a, number b) {
  const int count = dtype == AX_BOOL ? 1 : 8 * (int)ax_dtype_bytes(dtype);
  const int by = b.u >= (uint64_t)count ? count : (int)b.u;
  uint64_t result = 0;
  int first = count, last = count, ones = 0;
  for (int i = 0; i < count; i++) {
    const bool x = a.u >> i & 1;
    ones += x;
    if (x) first = count - 1 - i;
    if (x && last == count) last = i;
    const int from = op == AX_SCALAR_SHIFT_LEFT ? i - by : i + by;
    const bool sign = op == AX_SCALAR_SHIFT_RIGHT_ARITHMETIC && (a.u >> (count - 1) & 1);
    const bool bit = op == AX_SCALAR_XOR ? x != (b.u >> i & 1) : from >= 0 && from < count ? a.u >> from & 1 : sign;
    result |= (uint64_t)bit << i;
  }
  if (op == AX_SCALAR_POPULATION_COUNT) return (uint64_t)ones;
  return op == AX_SCALAR_CLZ ? (uint64_t)first : op == AX_SCALAR_CTZ ? (uint64_t)last : result;
}

/* Threefry2x32, a word at a time, and rotated a bit at a time. */
static inline uint64_t threefry(uint64_t key, uint64_t count) {
  static const int by[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {(uint32_t)(key >> 32), (uint32_t)key, 0x1bd11bda ^ (uint32_t)(key >> 32) ^ (uint32_t)key};
  uint32_t x[2] = {(uint32_t)(count >> 32) + keys[0], (uint32_t)count + keys[1]};
  for (uint32_t round = 0; round < 20; round++) {
    x[0] += x[1];
    for (int i = 0; i < by[round % 8]; i++) x[1] = x[1] << 1 | x[1] >> 31;
    x[1] ^= x[0];
    if (round % 4 != 3) continue;
    x[0] += keys[(round / 4 + 1) % 3];
    x[1] += keys[(round / 4 + 2) % 3] + round / 4 + 1;
  }
  return (uint64_t)x[0] << 32 | x[1];
}

static inline double next_float(ax_dtype dtype, double x, double y) {
  if (isnan(x) || isnan(y)) return NAN;
  if (x == y) return y;
  const uint64_t sign = 1ull << (8 * ax_dtype_bytes(dtype) - 1), size = bits_of_number(dtype, (number){.f = fabs(x)}) & ~sign;
  int64_t place = (int64_t)(x < 0 ? 0 - size : size);
  place += y > x ? 1 : -1;
  const double next = number_of_bits(dtype, (uint64_t)(place < 0 ? -place : place)).f;
  return place == 0 ? copysign(0, x) : place < 0 ? -next : next;
}

static inline double fewer_bits(ax_dtype dtype, double x, int64_t imm) {
  const ax_float_form form = ax_float_form_of(dtype);
  const int exponent_bits = (int)ax_precision_exponent(imm), mantissa_bits = (int)ax_precision_mantissa(imm);
  const int kept = mantissa_bits < form.fraction ? mantissa_bits : form.fraction, least = 2 - (1 << (form.exponent - 1));
  if (isnan(x) || isinf(x) || x == 0) return x;
  const double greatest = ldexp(2 - ldexp(1, -form.fraction), (1 << (form.exponent - 1)) - 1);
  const double unit = ldexp(1, ilogb(x));
  if (kept == 0 && fabs(x) == 1.5 * unit) x = copysign((ilogb(x) - least + 1) % 2 != 0 ? 2 * unit : unit, x); /* even exponents */
  x = round_to_bits(x, kept, least - kept, greatest);
  if (exponent_bits >= form.exponent || isinf(x) || x == 0) return x;
  const int reach = (1 << (exponent_bits - 1)) - 1, exponent = ilogb(x);
  return exponent > reach ? copysign(INFINITY, x) : exponent <= -reach ? copysign(0, x) : x;
}

static inline bool compare_op(ax_scalar op, ax_dtype dtype, number a, number b) {
  ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  bool is_float = kind == AX_KIND_FLOAT, is_signed = kind == AX_KIND_SIGNED;
  bool less = is_float ? a.f < b.f : is_signed ? a.i < b.i : a.u < b.u;
  bool equal = is_float ? a.f == b.f : a.u == b.u, greater = is_float ? a.f > b.f : !less && !equal;
  switch ((int)op) {
    case AX_SCALAR_EQ: return equal;
    case AX_SCALAR_NE: return !equal;
    case AX_SCALAR_LT: return less;
    case AX_SCALAR_LE: return less || equal;
    case AX_SCALAR_GT: return greater;
    default: return greater || equal;
  }
}

/* --- Conversions --- */

static inline int64_t saturate(ax_dtype dtype, double x) {
  bool is_signed = ax_dtype_get(dtype)->kind == AX_KIND_SIGNED;
  int bits = (int)ax_dtype_bytes(dtype) * 8;
  double top = ldexp(1, is_signed ? bits - 1 : bits), bottom = is_signed ? -top : 0;
  if (isnan(x)) return 0;
  if (trunc(x) >= top) return is_signed ? INT64_MAX >> (64 - bits) : (int64_t)(UINT64_MAX >> (64 - bits));
  if (trunc(x) <= bottom) return is_signed ? INT64_MIN >> (64 - bits) : 0;
  return x >= ldexp(1, 63) ? (int64_t)(uint64_t)x : (int64_t)x;
}

/* Directly to a float of at most 24 bits: long double holds every 64-bit integer. */
static inline double integer_to_float(ax_dtype from, ax_dtype to, number x) {
  bool is_signed = ax_dtype_get(from)->kind == AX_KIND_SIGNED;
  if (to == AX_F64) return is_signed ? (double)x.i : (double)x.u;
  if (to == AX_F32) return is_signed ? (float)x.i : (float)x.u;
  uint64_t magnitude = is_signed && x.i < 0 ? 0 - x.u : x.u;
  uint64_t sticky = magnitude & 4095 ? 4096 : 0; /* far below the last bit that is kept, far above what f64 drops */
  if (magnitude >> 52) magnitude = (magnitude & ~4095ull) | sticky;
  double value = round_dtype(to, (double)magnitude);
  return is_signed && x.i < 0 ? -value : value;
}

static inline number convert_number(ax_dtype from, ax_dtype to, number x) {
  bool from_float = ax_is_float(from), to_float = ax_is_float(to);
  if (to == AX_BOOL) return (number){.u = from_float ? x.f != 0 : x.u != 0};
  if (from_float && to_float) return (number){.f = round_dtype(to, x.f)};
  if (from_float) return (number){.i = saturate(to, x.f)};
  if (to_float) return (number){.f = integer_to_float(from, to, x)};
  return (number){.i = wrap(to, x.u)};
}

static inline number apply(ax_scalar op, ax_dtype dtype, ax_dtype operand, const number *x, int64_t imm) {
  if (op == AX_SCALAR_SELECT) return x[0].u ? x[1] : x[2];
  if (op == AX_SCALAR_CONVERT) return convert_number(operand, dtype, x[0]);
  if (op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE) return (number){.u = compare_op(op, operand, x[0], x[1])};
  if (op == AX_SCALAR_BITCAST) return number_of_bits(dtype, bits_of_number(operand, x[0]));
  if (op == AX_SCALAR_IS_FINITE) return (number){.u = !isnan(x[0].f) && !isinf(x[0].f)};
  if (op == AX_SCALAR_NEXTAFTER) return (number){.f = next_float(dtype, x[0].f, x[1].f)};
  if (op == AX_SCALAR_REDUCE_PRECISION) return (number){.f = fewer_bits(dtype, x[0].f, imm)};
  if (op == AX_SCALAR_THREEFRY) return (number){.u = threefry(x[0].u, x[1].u)};
  if (op >= AX_SCALAR_XOR && op <= AX_SCALAR_CTZ) return (number){.i = wrap(dtype, bit_op(op, dtype, x[0], x[1]))};
  if (ax_is_float(operand)) return (number){.f = round_dtype(dtype, float_op(op, dtype, x[0].f, x[1].f, imm))};
  return (number){.i = wrap(dtype, integer_op(op, dtype, x[0], x[1], imm))};
}

/* --- Kernels --- */

typedef struct reference {
  const ax_loop_kernel *kernel;
  void *const *slots;
  const int64_t *coordinates;
  int64_t index[2 * AX_MAX_RANK];
  number *values; /* by node */
} reference;

static inline int64_t position(const reference *r, uint32_t slot, const ax_position *at) {
  const ax_slot *s = &r->kernel->slots[slot];
  int64_t position = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t here = at[d].offset + (at[d].dim >= 0 ? at[d].coef * r->index[at[d].dim] : 0);
    if (at[d].dynamic != AX_NONE) {
      int64_t start = r->values[at[d].dynamic].i;
      here += start < 0 ? 0 : start > at[d].limit ? at[d].limit : start;
    }
    if (here < 0 || here >= s->dims[d]) abort(); /* the test itself is wrong */
    position = position * s->dims[d] + here;
  }
  return position;
}

static inline number evaluate(const reference *r, const ax_expr *expr) {
  number x[3] = {{0}};
  for (int i = 0; i < ax_scalar_arity(expr->op); i++) x[i] = r->values[expr->arg[i]];
  switch ((int)expr->op) {
    case AX_LEAF_CONST: return number_of_bits(expr->dtype, (uint64_t)expr->imm);
    case AX_LEAF_GIVEN: {
      uint64_t bits;
      memcpy(&bits, &r->slots[r->kernel->slot_count + (uint32_t)expr->imm], sizeof bits);
      return number_of_bits(expr->dtype, bits);
    }
    case AX_LEAF_INDEX: return (number){.i = r->index[expr->imm]};
    case AX_LEAF_AXIS: return (number){.i = r->coordinates[expr->imm]};
    case AX_LEAF_INSIDE: {
      int64_t here = expr->at->offset + (expr->at->dim >= 0 ? expr->at->coef * r->index[expr->at->dim] : 0);
      return (number){.i = here >= 0 && here < expr->imm};
    }
    case AX_LEAF_LOAD:
      if (expr->arg[0] != AX_NONE && r->values[expr->arg[0]].i == 0) return number_of_bits(expr->dtype, 0);
      return load_number(expr->dtype, r->slots[expr->slot], position(r, expr->slot, expr->at));
    default: break;
  }
  ax_ex operand = expr->arg[expr->op == AX_SCALAR_SELECT ? 1 : 0];
  return apply(expr->op, expr->dtype, r->kernel->exprs[operand].dtype, x, expr->imm);
}

static inline number identity_number(ax_scalar reduce, ax_dtype dtype) {
  bool is_float = ax_is_float(dtype);
  double infinity = reduce == AX_SCALAR_MAX ? -INFINITY : INFINITY;
  switch ((int)reduce) {
    case AX_SCALAR_MUL: return is_float ? (number){.f = 1} : (number){.i = 1};
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN:
      if (dtype == AX_BOOL) return (number){.i = reduce == AX_SCALAR_MIN};
      return is_float ? (number){.f = infinity} : (number){.i = wrap(dtype, (uint64_t)saturate(dtype, infinity))};
    case AX_SCALAR_AND: return (number){.i = wrap(dtype, UINT64_MAX)};
    default: return is_float ? (number){.f = 0} : (number){.i = 0};
  }
}

static inline ax_dtype sum_dtype(ax_dtype dtype) { return ax_is_narrow_float(dtype) ? AX_F32 : dtype; }

static inline void reference_store_sum(reference *r, uint32_t s, number sum) {
  const ax_store *store = &r->kernel->stores[s];
  const ax_dtype dtype = r->kernel->slots[store->slot].dtype;
  if (ax_is_float(dtype)) sum.f = round_dtype(dtype, sum.f);
  store_number(dtype, r->slots[store->slot], position(r, store->slot, store->at), sum);
}

static inline void reference_leaf(reference *r, number *sums) {
  for (ax_ex id = 0; id < r->kernel->expr_count; id++) r->values[id] = evaluate(r, &r->kernel->exprs[id]);
  for (uint32_t s = 0; s < r->kernel->store_count; s++) {
    const ax_store *store = &r->kernel->stores[s];
    ax_dtype dtype = r->kernel->slots[store->slot].dtype;
    number x[2] = {sums[s], r->values[store->expr]};
    if (store->reduce != AX_SCALAR_NONE) sums[s] = apply(store->reduce, sum_dtype(dtype), sum_dtype(dtype), x, 0);
    else store_number(dtype, r->slots[store->slot], position(r, store->slot, store->at), x[1]);
    if (r->kernel->running) reference_store_sum(r, s, sums[s]);
  }
}

static inline void reference_nest(reference *r, uint32_t dim, int64_t begin, int64_t end, number *sums) {
  const ax_loop_kernel *kernel = r->kernel;
  if (dim == kernel->rank - kernel->reduce_rank)
    for (uint32_t s = 0; s < kernel->store_count; s++)
      sums[s] = identity_number(kernel->stores[s].reduce, kernel->slots[kernel->stores[s].slot].dtype);
  if (dim == kernel->rank) {
    reference_leaf(r, sums);
  } else {
    for (int64_t i = dim ? 0 : begin; i < (dim ? kernel->dims[dim] : end); i++) {
      r->index[dim] = i;
      reference_nest(r, dim + 1, 0, 0, sums);
    }
  }
  if (dim != kernel->rank - kernel->reduce_rank || kernel->running) return;
  for (uint32_t s = 0; s < kernel->store_count; s++)
    if (kernel->stores[s].reduce != AX_SCALAR_NONE) reference_store_sum(r, s, sums[s]);
}

/* Runs the kernel over [begin, end) of dimension 0. */
static inline void reference_run(const ax_loop_kernel *kernel, void *const *slots, const int64_t *coordinates, int64_t begin,
                                 int64_t end) {
  reference r = {.kernel = kernel, .slots = slots, .coordinates = coordinates};
  number *sums = calloc(kernel->store_count + 1, sizeof *sums);
  r.values = calloc(kernel->expr_count + 1, sizeof *r.values);
  reference_nest(&r, 0, begin, end, sums);
  free(sums);
  free(r.values);
}

#endif
