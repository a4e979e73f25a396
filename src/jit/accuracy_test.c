/* The errors that ir/accuracy.def states, measured: on operands of all sizes, at each width of registers, with subnormal numbers kept
   and flushed, against long double. And that a result has nothing to do with its neighbours, nor with the width where the functions
   are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "base/special.h"
#include "jit/jit.h"
#include "jit/widths_test.h"
#include "machine/float_mode.h"

enum { count = 4096 };
static uint32_t rounds = 24; /* of `count` operands, for each function, dtype, width, mode and accuracy; AXLE_ACCURACY_ROUNDS: as many */

typedef long double (*exact_function)(long double);
static long double logistic(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static long double rsqrt(long double x) { return 1 / sqrtl(x); }

static const struct {
  ax_scalar op;
  exact_function exact;
} functions[] = {
    {AX_SCALAR_EXP, expl},   {AX_SCALAR_LOG, logl},    {AX_SCALAR_LOG1P, log1pl}, {AX_SCALAR_EXPM1, expm1l},
    {AX_SCALAR_SIN, sinl},   {AX_SCALAR_COS, cosl},    {AX_SCALAR_TANH, tanhl},   {AX_SCALAR_LOGISTIC, logistic},
    {AX_SCALAR_SQRT, sqrtl}, {AX_SCALAR_RSQRT, rsqrt}, {AX_SCALAR_ERF, erfl},
    {AX_SCALAR_EXP2, exp2l},   {AX_SCALAR_CBRT, cbrtl},   {AX_SCALAR_TAN, tanl},   {AX_SCALAR_ASIN, asinl},   {AX_SCALAR_ACOS, acosl},   {AX_SCALAR_ATAN, atanl},
    {AX_SCALAR_ERF_INV, ax_special_erf_inv}, {AX_SCALAR_LGAMMA, ax_special_lgamma}, {AX_SCALAR_DIGAMMA, ax_special_digamma},
    {AX_SCALAR_BESSEL_I0E, ax_special_bessel_i0e}, {AX_SCALAR_BESSEL_I1E, ax_special_bessel_i1e},
    {AX_SCALAR_SINH, sinhl},   {AX_SCALAR_COSH, coshl},   {AX_SCALAR_ASINH, asinhl},   {AX_SCALAR_ACOSH, acoshl},   {AX_SCALAR_ATANH, atanhl},   {AX_SCALAR_ERFC, erfcl},
};

/* --- Operands --- */

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* By turns: any bits; about 1; of sizes from 2^-12 to 2^12; between -20 and 20. */
static double operand(ax_dtype dtype, uint32_t turn) {
  double unit = (double)(draw() >> 11) * 0x1p-52 - 1;
  if (turn % 4 == 1) return 1 + unit * 0.6;
  if (turn % 4 == 2) return ldexp(unit, (int)(draw() % 25) - 12);
  if (turn % 4 == 3) return unit * 20;
  uint64_t bits = draw();
  double wide;
  float narrow;
  memcpy(&wide, &bits, sizeof wide);
  memcpy(&narrow, &bits, sizeof narrow);
  return dtype == AX_F64 ? wide : (double)narrow;
}

static double load(ax_dtype dtype, const void *array, int64_t i) {
  return dtype == AX_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}
static void store(ax_dtype dtype, void *array, int64_t i, double x) {
  if (dtype == AX_F64) ((double *)array)[i] = x;
  else ((float *)array)[i] = (float)x;
}

/* --- Kernels --- */

static ax_kernel_code compile(ax_compiler *jit, ax_scalar op, ax_dtype dtype, int64_t accuracy, int64_t elems) {
  ax_arena arena = {0};
  ax_position at[1];
  ax_kernel_code code;
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &elems);
  ax_at_identity(at, 1);
  uint32_t in = ax_kernel_slot(k, dtype, 1, &elems), out = ax_kernel_slot(k, dtype, 1, &elems);
  ax_kernel_store(k, out, at, ax_kernel_op_imm(k, op, dtype, ax_kernel_load(k, in, at), accuracy), AX_SCALAR_NONE);
  const ax_loop_kernel *kernel = k;
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  ax_arena_deinit(&arena);
  return code;
}

/* In units of the last place of an exact result, which is no NaN; 0 where both are infinite once rounded, or both are NaN. */
static double error_of(ax_dtype dtype, double got, long double exact) {
  int exponent, digits = dtype == AX_F64 ? 53 : 24, least = dtype == AX_F64 ? -1021 : -125;
  double rounded = dtype == AX_F64 ? (double)exact : (double)(float)exact;
  if (isnan(rounded) || isnan(got)) return isnan(rounded) && isnan(got) ? 0 : INFINITY;
  if (isinf(rounded) || isinf(got))
    return rounded == got ? 0 : fabsl(exact) < (dtype == AX_F64 ? 1.79769313e308L : 3.40282e38L) ? INFINITY : 1;
  if (signbit(rounded) != signbit(got)) return INFINITY;
  frexpl(exact, &exponent);
  return (double)fabsl(ldexpl(got - exact, digits - (exponent < least ? least : exponent)));
}

static void run(ax_kernel_code code, void *const *slots, bool flush) {
  const ax_float_mode caller = ax_float_mode_enter(flush);
  code(slots, NULL, 0, count);
  ax_float_mode_leave(caller);
}

/* As error_of. Where subnormal numbers are flushed, an operand that is one has the error 0, and a result that is one may be 0. */
static double error_in(bool flush, ax_dtype dtype, double x, double got, long double exact) {
  const double least = dtype == AX_F64 ? 0x1p-1022 : 0x1p-126;
  if (flush && (x != 0 && fabs(x) < least)) return 0;
  if (flush && got == 0 && fabsl(exact) < (long double)least) return 0;
  return error_of(dtype, got, exact);
}

static void measure(int f, ax_dtype dtype, int64_t accuracy, int w, bool flush) {
  static _Alignas(64) double in[count], out[count];
  ax_kernel_code code = compile(jits[w], functions[f].op, dtype, accuracy, count);
  const double most = ax_scalar_error(functions[f].op, dtype, accuracy == AX_ACCURACY_HIGHEST);
  double worst = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    for (uint32_t i = 0; i < count; i++) store(dtype, in, i, operand(dtype, i));
    run(code, (void *[]){in, out}, flush);
    for (uint32_t i = 0; i < count; i++) {
      double x = load(dtype, in, i), error = error_in(flush, dtype, x, load(dtype, out, i), functions[f].exact(x));
      if (error > worst) worst = error;
      if (error > most)
        fail_msg("%s of %s at %a, %u bytes, accuracy %lld: %a is off by %g units of the last place, more than %g",
                 ax_scalar_name(functions[f].op), ax_dtype_name(dtype), x, widths[w], (long long)accuracy, load(dtype, out, i),
                 error, most);
    }
  }
  assert_true(worst > 0.4); /* something was measured */
}

static void errors(void **unused) {
  (void)unused;
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int w = 0; w < width_count; w++)
      for (int d = AX_F32; d <= AX_F64; d++) {
        for (int flush = 0; flush < 2; flush++) {
          measure(f, (ax_dtype)d, AX_ACCURACY_DEFAULT, w, flush);
          measure(f, (ax_dtype)d, AX_ACCURACY_HIGHEST, w, flush);
        }
      }
}

/* --- Where results end: the largest operand whose result is finite, the smallest whose result is not 0, and the operands around
   them --- */

static bool has_result(int f, ax_dtype dtype, double x, bool flush) {
  const long double exact = functions[f].exact(x);
  const double result = dtype == AX_F64 ? (double)exact : (double)(float)exact, least = dtype == AX_F64 ? 0x1p-1022 : 0x1p-126;
  return isfinite(result) && (x == 0 || (flush ? fabs(result) >= least : result != 0));
}

/* Finite operands in order as integers: neighbours differ by 1. */
static double operand_of(ax_dtype dtype, int64_t order) {
  uint64_t bits = (uint64_t)(order < 0 ? -order : order);
  double wide;
  float narrow;
  uint32_t few = (uint32_t)bits;
  memcpy(&wide, &bits, sizeof wide);
  memcpy(&narrow, &few, sizeof narrow);
  const double size = dtype == AX_F64 ? wide : (double)narrow;
  return order < 0 ? -size : size;
}

/* The operand of this sign that is farthest from 0 and has a result, the one of 1 or -1 being known to be one. */
static int64_t last_with_result(int f, ax_dtype dtype, int sign, bool flush) {
  int64_t low = dtype == AX_F64 ? 0x3ff0000000000000 : 0x3f800000, high = dtype == AX_F64 ? 0x7fefffffffffffff : 0x7f7fffff;
  if (has_result(f, dtype, operand_of(dtype, sign * high), flush)) return sign * high;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (has_result(f, dtype, operand_of(dtype, sign * middle), flush)) low = middle;
    else high = middle;
  }
  return sign * low;
}

static void try_around(int f, ax_dtype dtype, int64_t accuracy, int w, int64_t end, bool flush) {
  static _Alignas(64) double in[count], out[count];
  const double most = ax_scalar_error(functions[f].op, dtype, accuracy == AX_ACCURACY_HIGHEST);
  const int64_t largest = dtype == AX_F64 ? 0x7fefffffffffffff : 0x7f7fffff;
  for (uint32_t i = 0; i < count; i++) { /* one by one near the end, then farther and farther from it */
    const int64_t away = i % 2 == 0 ? (int64_t)(i / 2) - count / 4 : ((int64_t)(i / 2) - count / 4) * (dtype == AX_F64 ? 16001 : 7);
    const int64_t order = end + away;
    store(dtype, in, i, operand_of(dtype, order > largest ? largest : order < -largest ? -largest : order));
  }
  run(compile(jits[w], functions[f].op, dtype, accuracy, count), (void *[]){in, out}, flush);
  for (uint32_t i = 0; i < count; i++) {
    const double x = load(dtype, in, i), error = error_in(flush, dtype, x, load(dtype, out, i), functions[f].exact(x));
    if (error > most)
      fail_msg("%s of %s at %a (%.17g), %u bytes, accuracy %lld: %a is off by %g units of the last place, more than %g",
               ax_scalar_name(functions[f].op), ax_dtype_name(dtype), x, x, widths[w], (long long)accuracy, load(dtype, out, i),
               error, most);
  }
}

static void ends(void **unused) {
  (void)unused;
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int w = 0; w < width_count; w++)
      for (int d = AX_F32; d <= AX_F64; d++)
        for (int sign = -1; sign <= 1; sign += 2)
          for (int highest = 0; highest <= 1; highest++)
            for (int flush = 0; flush <= 1; flush++)
              try_around(f, (ax_dtype)d, highest ? AX_ACCURACY_HIGHEST : AX_ACCURACY_DEFAULT, w,
                         last_with_result(f, (ax_dtype)d, sign, flush), flush);
}

/* --- Narrow floats: all operands there are --- */

static double wide(ax_dtype dtype, uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  if (dtype == AX_BF16) return (double)value;
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                               : ldexp(exponent == 0 ? fraction : 1024 + fraction, (exponent == 0 ? 1 : exponent) - 25);
  return bits >> 15 ? -size : size;
}

/* As error_of. What rounds to the largest finite number or to infinity may be either, where it is that near. */
static double narrow_error(ax_dtype dtype, double got, long double exact) {
  const int digits = dtype == AX_BF16 ? 8 : 11, least = dtype == AX_BF16 ? -125 : -13;
  const long double limit = dtype == AX_BF16 ? 0x1p128L : 0x1p16L;
  int exponent;
  if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
  if (exact == 0 || isinf(exact)) return got == (double)exact && !signbit(got) == !signbit(exact) ? 0 : INFINITY;
  if (isinf(got)) got = copysign((double)limit, got); /* where the next number would be */
  if (!signbit(got) != !signbit(exact)) return INFINITY;
  if (fabsl(exact) >= limit) return fabs(got) == (double)limit ? 0 : INFINITY;
  frexpl(exact, &exponent);
  return (double)fabsl(ldexpl(got - exact, digits - (exponent < least ? least : exponent)));
}

static void narrow_errors(void **unused) {
  enum { every = 1 << 16 };
  static _Alignas(64) uint16_t in[every], out[every], first[every];
  (void)unused;
  for (uint32_t i = 0; i < every; i++) in[i] = (uint16_t)(i * 25173); /* neighbours that have nothing to do with each other */
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int d = AX_BF16; d <= AX_F16; d++)
      for (int w = 0; w < width_count; w++) {
        ax_kernel_code code = compile(jits[w], functions[f].op, (ax_dtype)d, AX_ACCURACY_DEFAULT, every);
        const double most = ax_scalar_error(functions[f].op, (ax_dtype)d, false);
        code((void *[]){in, out}, NULL, 0, every);
        for (uint32_t i = 0; i < every; i++) {
          const double x = wide((ax_dtype)d, in[i]), got = wide((ax_dtype)d, out[i]),
                       error = narrow_error((ax_dtype)d, got, functions[f].exact(x));
          if (error > most)
            fail_msg("%s of %s at %a, %u bytes: %a is off by %g units of the last place, more than %g",
                     ax_scalar_name(functions[f].op), ax_dtype_name((ax_dtype)d), x, widths[w], got, error, most);
          if (w == 1 && out[i] != first[i] && !isnan(got))
            fail_msg("%s of %s at %a depends on the size of registers", ax_scalar_name(functions[f].op), ax_dtype_name((ax_dtype)d),
                     x);
        }
        if (w == 0) memcpy(first, out, sizeof first);
      }
}

/* --- Of two operands: zeta and polygamma of whole and other orders, on both sides of 0; atan2 of all numbers; powers --- */

typedef long double (*exact_of_two)(long double, long double);
static const struct {
  ax_scalar op;
  exact_of_two exact;
  double least; /* order that has values */
} pairs[] = {{AX_SCALAR_ZETA, ax_special_zeta, 2}, {AX_SCALAR_POLYGAMMA, ax_special_polygamma, 0}, {AX_SCALAR_ATAN2, atan2l, 0},
             {AX_SCALAR_POW, powl, 0}};

static ax_kernel_code compile_pair(ax_compiler *jit, ax_scalar op, ax_dtype dtype, int64_t elems) {
  ax_arena arena = {0};
  ax_position at[1];
  ax_kernel_code code;
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &elems);
  ax_at_identity(at, 1);
  uint32_t a = ax_kernel_slot(k, dtype, 1, &elems), b = ax_kernel_slot(k, dtype, 1, &elems);
  uint32_t out = ax_kernel_slot(k, dtype, 1, &elems);
  const ax_ex order = ax_kernel_load(k, a, at), x = ax_kernel_load(k, b, at);
  ax_kernel_store(k, out, at, ax_kernel_op(k, op, dtype, order, x, AX_NONE), AX_SCALAR_NONE);
  const ax_loop_kernel *kernel = k;
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  ax_arena_deinit(&arena);
  return code;
}

/* Mostly whole, from 0 on; of zeta others too, and any bits. */
static double order_of(double least, ax_dtype dtype, uint32_t turn) {
  if (turn % 8 == 0 && least > 0) return 1 + fabs(operand(dtype, 3));
  if (turn % 64 == 1) return operand(dtype, 0);
  return least + (double)(draw() % (turn % 8 == 2 ? 40 : 9));
}

/* Of all sizes, in pairs of like and of unlike ones; zeros and infinities with both signs. */
static void store_coordinates(ax_dtype dtype, void *y, void *x, uint32_t i) {
  static const double ends[] = {0, -0.0, INFINITY, -INFINITY, 1, -1};
  const bool is_end = i % 16 == 15, is_like = i % 4 == 0;
  store(dtype, y, i, is_end ? ends[draw() % AX_COUNT(ends)] : operand(dtype, (uint32_t)draw()));
  const double factor = is_like ? load(dtype, y, i) : 1, other = operand(dtype, is_like ? 3 : (uint32_t)draw());
  store(dtype, x, i, is_end ? ends[draw() % AX_COUNT(ends)] : factor * other);
}

/* Of all sizes; and exponents whose results are about the ends, of numbers above 0 that are about 1 or of any size. */
static void store_power(ax_dtype dtype, void *x, void *y, uint32_t i) {
  store_coordinates(dtype, x, y, i);
  if (i % 4 != 1 && i % 4 != 2) return;
  const double size = fabs(operand(dtype, i % 8 == 1 ? 0 : 1)), end = dtype == AX_F64 ? 1080 : 152;
  store(dtype, x, i, size);
  store(dtype, y, i, end * (operand(dtype, 3) / 20) / log2(size));
}

/* The operand of most is above 0; of some it is below, where orders that are odd have zeros near halves. */
static double second_operand(ax_dtype dtype, uint32_t turn) {
  const double x = operand(dtype, turn / 8);
  if (turn % 5 == 4) return turn % 3 == 0 ? -floor(fabs(x)) - 0.5 + ldexp(operand(dtype, 1), -12) : -fabs(x);
  return fabs(x);
}

static void measure_pair(size_t f, ax_dtype dtype, int w, bool flush) {
  static _Alignas(64) double order[count], x[count], out[count];
  ax_kernel_code code = compile_pair(jits[w], pairs[f].op, dtype, count);
  const double most = ax_scalar_error(pairs[f].op, dtype, false), least = dtype == AX_F64 ? 0x1p-1022 : 0x1p-126;
  double worst = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    for (uint32_t i = 0; i < count; i++) {
      if (pairs[f].op == AX_SCALAR_ATAN2) store_coordinates(dtype, order, x, i);
      else if (pairs[f].op == AX_SCALAR_POW) store_power(dtype, order, x, i);
      else store(dtype, order, i, order_of(pairs[f].least, dtype, i)), store(dtype, x, i, second_operand(dtype, i));
    }
    run(code, (void *[]){order, x, out}, flush);
    for (uint32_t i = 0; i < count; i++) {
      const double s = load(dtype, order, i), q = load(dtype, x, i), got = load(dtype, out, i);
      if (flush && s != 0 && fabs(s) < least) continue;
      const double error = error_in(flush, dtype, q, got, pairs[f].exact((long double)s, (long double)q));
      if (error > worst) worst = error;
      if (error > most)
        fail_msg("%s of %s at %a, %a (%.17g, %.17g), %u bytes: %a is off by %g units of the last place, more than %g",
                 ax_scalar_name(pairs[f].op), ax_dtype_name(dtype), s, q, s, q, widths[w], got, error, most);
    }
  }
  assert_true(worst > 0.4);
}

static void errors_of_pairs(void **unused) {
  (void)unused;
  for (size_t f = 0; f < AX_COUNT(pairs); f++)
    for (int w = 0; w < width_count; w++)
      for (int d = AX_F32; d <= AX_F64; d++)
        for (int flush = 0; flush < 2; flush++) measure_pair(f, (ax_dtype)d, w, flush);
}

/* Whole units of the last place: the default where that does, what is more precise elsewhere. */
static void tolerances(void **unused) {
  (void)unused;
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int d = AX_F32; d <= AX_F64; d++) {
      const double usual = ax_scalar_error(functions[f].op, (ax_dtype)d, false),
                   least = ax_scalar_error(functions[f].op, (ax_dtype)d, true);
      assert_true(usual <= 4 && least <= usual && usual > 0);
      assert_false(ax_scalar_precise(functions[f].op, (ax_dtype)d, AX_ACCURACY_DEFAULT));
      assert_false(ax_scalar_precise(functions[f].op, (ax_dtype)d, 4));
      assert_int_equal(ax_scalar_precise(functions[f].op, (ax_dtype)d, AX_ACCURACY_HIGHEST), least < usual);
      assert_int_equal(ax_scalar_precise(functions[f].op, (ax_dtype)d, 1), usual > 1);
      assert_true(ax_scalar_error(functions[f].op, AX_BF16, false) == 0.51);
    }
}

/* Each operand between others that are small, large, subnormal and not a number: the same bits as alone. */
static void neighbours(void **unused) {
  enum { some = 1 << 12 };
  static _Alignas(64) double in[some], out[some], alone[1], result[1];
  static const double others[] = {0.5, 1e30, 1e-40, NAN, -3e5, 40000, INFINITY, -0.0, 14.9, 20, 126, 1e15};
  (void)unused;
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int w = 0; w < 2; w++)
      for (int d = AX_F32; d <= AX_F64; d++) {
        size_t bytes = ax_dtype_bytes((ax_dtype)d);
        ax_kernel_code many = compile(jits[w], functions[f].op, (ax_dtype)d, AX_ACCURACY_DEFAULT, some);
        ax_kernel_code one = compile(jits[w], functions[f].op, (ax_dtype)d, AX_ACCURACY_DEFAULT, 1);
        for (uint32_t i = 0; i < some; i++)
          store((ax_dtype)d, in, i, i % 2 == 0 ? operand((ax_dtype)d, i / 2) : others[draw() % AX_COUNT(others)]);
        many((void *[]){in, out}, NULL, 0, some);
        for (uint32_t i = 0; i < some; i++) {
          memcpy(alone, (char *)in + i * bytes, bytes);
          one((void *[]){alone, result}, NULL, 0, 1);
          if (isnan(load((ax_dtype)d, out, i)) && isnan(load((ax_dtype)d, result, 0))) continue;
          if (memcmp(result, (char *)out + i * bytes, bytes) != 0)
            fail_msg("%s of %s at %a depends on its neighbours", ax_scalar_name(functions[f].op), ax_dtype_name((ax_dtype)d),
                     load((ax_dtype)d, in, i));
        }
      }
}

/* Registers of 64 and of 32 bytes: the same bits. */
static void widths_agree(void **unused) {
  static _Alignas(64) double in[count], more[count], out[2][count];
  (void)unused;
  for (int f = 0; f < (int)AX_COUNT(functions) + 2; f++)
    for (int d = AX_F32; d <= AX_F64; d++) {
      const bool is_pair = f >= (int)AX_COUNT(functions);
      const ax_scalar op = !is_pair ? functions[f].op : f == (int)AX_COUNT(functions) ? AX_SCALAR_ATAN2 : AX_SCALAR_POW;
      for (uint32_t i = 0; i < count; i++) {
        if (is_pair) store_power((ax_dtype)d, in, more, i);
        else store((ax_dtype)d, in, i, operand((ax_dtype)d, i));
      }
      for (int w = 0; w < 2; w++) {
        if (is_pair) compile_pair(jits[w], op, (ax_dtype)d, count)((void *[]){in, more, out[w]}, NULL, 0, count);
        else compile(jits[w], op, (ax_dtype)d, AX_ACCURACY_DEFAULT, count)((void *[]){in, out[w]}, NULL, 0, count);
      }
      for (uint32_t i = 0; i < count; i++) {
        const double got = load((ax_dtype)d, out[0], i), other = load((ax_dtype)d, out[1], i);
        if (memcmp(&got, &other, sizeof got) != 0 && !(isnan(got) && isnan(other)))
          fail_msg("%s of %s at %a depends on the size of registers: %a, %a", ax_scalar_name(op), ax_dtype_name((ax_dtype)d),
                   load((ax_dtype)d, in, i), got, other);
      }
    }
}

/* --- exp of f32 in line --- */

/* Kernels of many vectors compute exp of f32 in line, others call it: the same bits for operands of all sizes, where results underflow,
   overflow and are subnormal, of special values, and in the vectors that remain. */
static void exp_in_line_has_the_bits_of_calls(void **state) {
  enum { many = (1 << 15) * 2 + 7, few = 64 };
  static _Alignas(64) float in[many], out[many], called[few];
  static const float special[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, -103.98f, -103.97f, -87, 88.7228f, 90, 91, 0x1p-140f};
  (void)state;
  for (int w = 0; w < width_count; w++) {
    ax_kernel_code in_line = compile(jits[w], AX_SCALAR_EXP, AX_F32, AX_ACCURACY_DEFAULT, many);
    ax_kernel_code call = compile(jits[w], AX_SCALAR_EXP, AX_F32, AX_ACCURACY_DEFAULT, few);
    for (uint32_t round = 0; round < 8; round++) {
      for (uint32_t i = 0; i < many; i++) in[i] = (float)(i % 3 == 0 ? operand(AX_F32, i) : (double)(draw() >> 11) * 0x1p-53 * 196 - 105);
      for (uint32_t i = 0; i < many; i += 23) in[i] = special[i / 23 % AX_COUNT(special)];
      in_line((void *[]){in, out}, NULL, 0, many);
      for (uint32_t i = 0; i + few <= many; i += few) {
        call((void *[]){in + i, called}, NULL, 0, few);
        for (uint32_t k = 0; k < few; k++)
          if (memcmp(&called[k], &out[i + k], sizeof called[k]) != 0 && !(isnan(called[k]) && isnan(out[i + k])))
            fail_msg("exp of %a, %u bytes: %a in line, %a called", (double)in[i + k], widths[w], (double)out[i + k], (double)called[k]);
      }
    }
  }
}

/* The function of each of a few elements, and the function of that, in a kernel of one step; in vectors, element by element. */
static ax_kernel_code compile_scalars(ax_compiler *jit, ax_scalar op, ax_dtype dtype, int64_t accuracy, int64_t elems) {
  ax_arena arena = {0};
  ax_kernel_code code;
  ax_loop_kernel *k = ax_kernel_create(&arena, 0, 0, NULL);
  uint32_t in = ax_kernel_slot(k, dtype, 1, &elems),
           slots[] = {ax_kernel_slot(k, dtype, 1, &elems), ax_kernel_slot(k, dtype, 1, &elems)};
  for (int64_t i = 0; i < elems; i++) {
    const ax_position at = {.dim = -1, .offset = i, .dynamic = AX_NONE};
    ax_ex x = ax_kernel_load(k, in, &at);
    for (int twice = 0; twice < 2; twice++)
      ax_kernel_store(k, slots[twice], &at, x = ax_kernel_op_imm(k, op, dtype, x, accuracy), AX_SCALAR_NONE);
  }
  const ax_loop_kernel *kernel = k;
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  ax_arena_deinit(&arena);
  return code;
}

/* Scalars of which one function is computed go into one register, and more than that into several. */
static void scalars_together_have_the_bits_of_vectors(void **state) {
  enum { many = 19 };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  static _Alignas(64) double in[many], once[many], twice[many], wanted[2][many];
  (void)state;
  for (int f = 0; f < (int)AX_COUNT(functions); f++)
    for (int w = 0; w < width_count; w++)
      for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
        const int64_t accuracy = f % 2 == 0 ? AX_ACCURACY_DEFAULT : AX_ACCURACY_HIGHEST;
        ax_kernel_code scalars = compile_scalars(jits[w], functions[f].op, dtypes[d], accuracy, many),
                       vector = compile(jits[w], functions[f].op, dtypes[d], accuracy, many);
        for (uint32_t i = 0; i < many; i++) store(dtypes[d], in, i, i % 7 == 3 ? NAN : operand(AX_F32, i));
        scalars((void *[]){in, once, twice}, NULL, 0, 1);
        vector((void *[]){in, wanted[0]}, NULL, 0, many);
        vector((void *[]){wanted[0], wanted[1]}, NULL, 0, many);
        for (uint32_t i = 0; i < many; i++)
          for (int k = 0; k < 2; k++) {
            const double got = load(dtypes[d], k == 0 ? once : twice, i), w = load(dtypes[d], wanted[k], i);
            if (memcmp(&got, &w, sizeof w) != 0 && !(isnan(got) && isnan(w)))
              fail_msg("%s of %s, element %u, %d times: %a, and %a in vectors", ax_scalar_name(functions[f].op),
                       ax_dtype_name(dtypes[d]), i, k + 1, got, w);
          }
      }
}

int main(void) {
  const char *given = getenv("AXLE_ACCURACY_ROUNDS");
  if (given != NULL) rounds = (uint32_t)strtoul(given, NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exp_in_line_has_the_bits_of_calls),
      cmocka_unit_test(scalars_together_have_the_bits_of_vectors),
      cmocka_unit_test(errors),
      cmocka_unit_test(errors_of_pairs),
      cmocka_unit_test(ends),
      cmocka_unit_test(narrow_errors),
      cmocka_unit_test(tolerances),
      cmocka_unit_test(neighbours),
      cmocka_unit_test(widths_agree),
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
