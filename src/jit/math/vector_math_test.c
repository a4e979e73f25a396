/* Functions of whole registers at their special values, and what a register of 32 bytes can do by itself. ir/accuracy.def states
   their errors, which jit/accuracy_test.c measures. */
#include "jit/math/vector_math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/random.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define AX_VECTOR_BYTES 32
#include "jit/math/vector_lanes.h"

typedef f32s of_f32(f32s);
typedef f64s of_f64(f64s);
typedef f64s of_two(f64s, f64s);

static bool skipped(void) {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && ax_vector_math_32.f32[AX_SCALAR_EXP] != NULL) return false;
  skip();
  return true;
}

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

/* The same at both precisions, and beside whatever neighbours. */
static void gives(ax_scalar op, double x, double wanted) {
  of_f32 *narrow = (of_f32 *)ax_vector_math_32.f32[op];
  of_f64 *wide = (of_f64 *)ax_vector_math_32.f64[op];
  for (int lane = 0; lane < 4; lane++) {
    f32s xs = {1, -2, INFINITY, NAN, 0.5f, 1e30f, -0.0f, 7};
    f64s xd = {1, -2, INFINITY, NAN};
    xs[lane] = (float)x;
    xd[lane] = x;
    const f32s ys = narrow(xs);
    const f64s yd = wide(xd);
    if (!same(ys[lane], (float)wanted)) fail_msg("%s of f32 %g: %g, want %g", ax_scalar_name(op), x, (double)ys[lane], wanted);
    if (!same(yd[lane], wanted)) fail_msg("%s of f64 %g: %g, want %g", ax_scalar_name(op), x, yd[lane], wanted);
  }
}

static void exponentials_at_their_ends(void **state) {
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_EXP, 0, 1);
  gives(AX_SCALAR_EXP, -INFINITY, 0);
  gives(AX_SCALAR_EXP, INFINITY, INFINITY);
  gives(AX_SCALAR_EXP, NAN, NAN);
  gives(AX_SCALAR_EXP, 800, INFINITY);
  gives(AX_SCALAR_EXP, -800, 0);
  gives(AX_SCALAR_EXPM1, -0.0, -0.0);
  gives(AX_SCALAR_EXPM1, -INFINITY, -1);
  gives(AX_SCALAR_EXPM1, INFINITY, INFINITY);
  gives(AX_SCALAR_EXPM1, 0x1p-60, 0x1p-60); /* 1 is never added and taken off again */
}

static void logarithms_at_their_ends(void **state) {
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_LOG, 1, 0);
  gives(AX_SCALAR_LOG, 0, -INFINITY);
  gives(AX_SCALAR_LOG, -1, NAN);
  gives(AX_SCALAR_LOG, INFINITY, INFINITY);
  gives(AX_SCALAR_LOG, NAN, NAN);
  gives(AX_SCALAR_LOG1P, -0.0, -0.0);
  gives(AX_SCALAR_LOG1P, -1, -INFINITY);
  gives(AX_SCALAR_LOG1P, -2, NAN);
  gives(AX_SCALAR_LOG1P, 0x1p-60, 0x1p-60);
}

static void steps_at_their_ends(void **state) {
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_LOGISTIC, 0, 0.5);
  gives(AX_SCALAR_LOGISTIC, INFINITY, 1);
  gives(AX_SCALAR_LOGISTIC, -INFINITY, 0);
  gives(AX_SCALAR_TANH, -0.0, -0.0);
  gives(AX_SCALAR_TANH, 100, 1);
  gives(AX_SCALAR_TANH, -INFINITY, -1);
  gives(AX_SCALAR_TANH, NAN, NAN);
  gives(AX_SCALAR_ERF, -0.0, -0.0);
  gives(AX_SCALAR_ERF, 100, 1);
  gives(AX_SCALAR_ERF, -INFINITY, -1);
}

static void circles_at_their_ends(void **state) {
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_SIN, -0.0, -0.0);
  gives(AX_SCALAR_COS, -0.0, 1);
  gives(AX_SCALAR_SIN, INFINITY, NAN);
  gives(AX_SCALAR_COS, -INFINITY, NAN);
}

static void angles_at_their_ends(void **state) {
  const double quarter = 1.5707963267948966;
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_TAN, -0.0, -0.0);
  gives(AX_SCALAR_TAN, INFINITY, NAN);
  gives(AX_SCALAR_TAN, NAN, NAN);
  gives(AX_SCALAR_TAN, -0x1p-60, -0x1p-60);
  gives(AX_SCALAR_ATAN, -0.0, -0.0);
  gives(AX_SCALAR_ATAN, INFINITY, quarter);
  gives(AX_SCALAR_ATAN, -INFINITY, -quarter);
  gives(AX_SCALAR_ATAN, NAN, NAN);
  gives(AX_SCALAR_ATAN, 0x1p-120, 0x1p-120);
  gives(AX_SCALAR_ASIN, -0.0, -0.0);
  gives(AX_SCALAR_ASIN, 1, quarter);
  gives(AX_SCALAR_ASIN, -1, -quarter);
  gives(AX_SCALAR_ASIN, -1.5, NAN);
  gives(AX_SCALAR_ASIN, INFINITY, NAN);
  gives(AX_SCALAR_ASIN, NAN, NAN);
  gives(AX_SCALAR_ASIN, 0x1p-120, 0x1p-120);
  gives(AX_SCALAR_ACOS, 1, 0);
  gives(AX_SCALAR_ACOS, -1, 2 * quarter);
  gives(AX_SCALAR_ACOS, -0.0, quarter);
  gives(AX_SCALAR_ACOS, 1.5, NAN);
  gives(AX_SCALAR_ACOS, -INFINITY, NAN);
  gives(AX_SCALAR_ACOS, NAN, NAN);
}

static void roots_and_powers_of_two_at_their_ends(void **state) {
  (void)state;
  if (skipped()) return;
  gives(AX_SCALAR_ATANH, -0.0, -0.0);
  gives(AX_SCALAR_ATANH, 1, INFINITY);
  gives(AX_SCALAR_ATANH, -1, -INFINITY);
  gives(AX_SCALAR_ATANH, 2, NAN);
  gives(AX_SCALAR_ATANH, -INFINITY, NAN);
  gives(AX_SCALAR_ATANH, NAN, NAN);
  gives(AX_SCALAR_ATANH, 0x1p-120, 0x1p-120);
  gives(AX_SCALAR_CBRT, -0.0, -0.0);
  gives(AX_SCALAR_CBRT, -0x1p120, -0x1p40);
  gives(AX_SCALAR_CBRT, 0x1p-147, 0x1p-49); /* subnormal as f32 */
  gives(AX_SCALAR_CBRT, -INFINITY, -INFINITY);
  gives(AX_SCALAR_CBRT, NAN, NAN);
  gives(AX_SCALAR_EXP2, -0.0, 1);
  gives(AX_SCALAR_EXP2, 127, 0x1p127);
  gives(AX_SCALAR_EXP2, -149, 0x1p-149);
  gives(AX_SCALAR_EXP2, 1024, INFINITY);
  gives(AX_SCALAR_EXP2, INFINITY, INFINITY);
  gives(AX_SCALAR_EXP2, -1075, 0);
  gives(AX_SCALAR_EXP2, -INFINITY, 0);
  gives(AX_SCALAR_EXP2, NAN, NAN);
  gives(AX_SCALAR_EXP2, 0x1p-60, 1);
}

static double power(double x, double y) {
  const f64s result = ((of_two *)ax_vector_math_32.f64[AX_SCALAR_POW])((f64s){2, x, NAN, 0}, (f64s){3, y, 1, -1});
  return result[1];
}

static void powers_of_special_values(void **state) {
  (void)state;
  if (skipped()) return;
  assert_true(power(2, 10) == 1024);
  assert_true(power(NAN, 0) == 1 && power(1, NAN) == 1);
  assert_true(power(-8, 3) == -512);
  assert_true(isnan(power(-8, 0.5)));
  assert_true(same(power(-0.0, -3), -INFINITY));
  assert_true(power(2, -1074) == 0x1p-1074);
}

/* Next to 0, and around the ends of its polynomials: within 2.35 units of the last place. */
static void erf_of_f32(void **state) {
  of_f32 *function = (of_f32 *)ax_vector_math_32.f32[AX_SCALAR_ERF];
  (void)state;
  if (skipped()) return;
  for (int i = 0; i < 4000; i++) {
    const float near = 0x1.af03b2p-13f + (float)i * 0x1p-36f, size = 0.001f * (float)i;
    const f32s x = {near, -near, size, -size, 0.25390625f * ((float)(i % 16) + 0.5f), 3.93f, 1, 2}, got = function(x);
    for (int k = 0; k < 8; k++) {
      int exponent;
      const double exact = erf((double)x[k]);
      frexp(exact, &exponent);
      if (fabs((double)got[k] - exact) > 2.35 * ldexp(1, exponent - 24))
        fail_msg("erf of %a: %a, not %a", (double)x[k], (double)got[k], exact);
    }
  }
}

typedef f32s of_two_f32(f32s, f32s);

/* Within 0.6 units of the last place; zeros, infinities and NaN are those of C. */
static void expect_power(float x, float y, float got) {
  const double exact = pow(x, y);
  const float wanted = (float)exact;
  int exponent;
  frexp(exact, &exponent);
  const bool is_plain = isfinite(wanted) && wanted != 0 && isfinite(got);
  const double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
  if (is_plain ? fabs((double)got - exact) > 0.6 * unit : !same(got, wanted))
    fail_msg("%a to the power %a: %a, not %a", (double)x, (double)y, (double)got, (double)wanted);
}

static void powers_of_f32(void **state) {
  static const float strange[] = {0,     -0.0f,     1,         -1,         2,          -2,   0.5f, -0.5f,        3,
                                  -3,    INFINITY,  -INFINITY, NAN,        0x1p-126f,  1e38f, -7,  0x1p-140f,    -0x1p-140f,
                                  1e30f, -1e30f,    127,       16777217.0f, -0x1p-149f, 0.1f, -24.5f, 0x1.fffffep127f, -149};
  enum { count = sizeof strange / sizeof strange[0], rounds = 4000 };
  of_two_f32 *power_f32 = (of_two_f32 *)ax_vector_math_32.f32[AX_SCALAR_POW];
  test_random random = {5};
  (void)state;
  if (skipped()) return;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) {
      const f32s x = {2, strange[i], NAN, 0, -1, 3, 0.5f, 7}, y = {3, strange[j], 1, -1, 0.5f, 2, 100, INFINITY};
      const f32s got = power_f32(x, y);
      expect_power(strange[i], strange[j], got[1]);
      assert_true(got[0] == 8 && isnan(got[2]) && got[3] == INFINITY && isnan(got[4]) && got[5] == 9 && got[6] == 0x1p-100f);
    }
  for (int r = 0; r < rounds; r++) {
    f32s x, y;
    for (int i = 0; i < 8; i++) {
      x[i] = (float)(r % 2 == 0 ? test_random_uniform(&random, 0, 8) : test_random_uniform(&random, 0.999, 1.001));
      y[i] = (float)(r % 2 == 0 ? test_random_uniform(&random, -40, 40) : test_random_uniform(&random, -9e4, 9e4));
    }
    const f32s got = power_f32(x, y);
    for (int i = 0; i < 8; i++) expect_power(x[i], y[i], got[i]);
  }
}

/* Of all pairs of special numbers: as C's, in each lane and beside whatever neighbours. */
static void atan2_of_special_values(void **state) {
  static const double some[] = {0,   -0.0,     1,     -1,        INFINITY,               -INFINITY,
                                NAN, 0x1p-126, -3e38, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1p-149};
  enum { count = sizeof some / sizeof some[0] };
  of_two *wide = (of_two *)ax_vector_math_32.f64[AX_SCALAR_ATAN2];
  of_two_f32 *narrow = (of_two_f32 *)ax_vector_math_32.f32[AX_SCALAR_ATAN2];
  (void)state;
  if (skipped()) return;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++)
      for (int lane = 0; lane < 4; lane++) {
        f64s y = {3, NAN, -0.0, INFINITY}, x = {-4, 1, 0, -INFINITY};
        f32s v = {3, NAN, -0.0f, INFINITY, 0, 1, 2, 1e-30f}, u = {-4, 1, 0, -INFINITY, 0, INFINITY, 1, -1};
        y[lane] = some[i], x[lane] = some[j], v[lane] = (float)some[i], u[lane] = (float)some[j];
        const double got = wide(y, x)[lane], wanted = atan2(y[lane], x[lane]), got_f32 = (double)narrow(v, u)[lane],
                     wanted_f32 = (double)(float)atan2((double)v[lane], (double)u[lane]);
        if (!same(got, wanted)) fail_msg("atan2 of %a, %a: %a, not %a", y[lane], x[lane], got, wanted);
        if (!same(got_f32, wanted_f32))
          fail_msg("atan2 of f32 %a, %a: %a, not %a", (double)v[lane], (double)u[lane], got_f32, wanted_f32);
      }
}

static void tables_differ_only_in_their_width(void **state) {
  (void)state;
  if (skipped()) return;
  if (ax_vector_math_64.f32[AX_SCALAR_EXP] == NULL) skip();
  for (int op = 0; op < AX_SCALAR_COUNT; op++) {
    assert_true((ax_vector_math_32.f32[op] == NULL) == (ax_vector_math_64.f32[op] == NULL));
    assert_true((ax_vector_math_32.f64[op] == NULL) == (ax_vector_math_64.f64[op] == NULL));
    assert_true((ax_vector_math_32.precise_f64[op] == NULL) == (ax_vector_math_64.precise_f64[op] == NULL));
  }
}

/* --- Lanes --- */

static void fused_products_are_rounded_once(void **state) {
  (void)state;
  if (skipped()) return;
  const float x = 1 + 0x1p-23f;
  assert_true(f32_fma(f32_all(x), f32_all(x), f32_all(-1))[7] == 0x1p-22f + 0x1p-46f);
  assert_true(f32_fnma(f32_all(3), f32_all(4), f32_all(5))[0] == -7);
  assert_true(f64_fnma(f64_all(3), f64_all(4), f64_all(5))[3] == -7);
}

static void ties_are_rounded_to_even(void **state) {
  (void)state;
  if (skipped()) return;
  const f32s y = f32_round((f32s){0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f, 2.6f, -7});
  const float wanted[] = {0, 2, 2, -0.0f, -2, 2, 3, -7};
  for (int i = 0; i < 8; i++) assert_true(same(y[i], wanted[i]));
}

static void scaling_rounds_once_into_the_subnormals(void **state) {
  (void)state;
  if (skipped()) return;
  const float x = 1 + 0x1.8p-22f;
  assert_true(f32_scale(f32_all(1.5f), f32_all(-149))[0] == 0x1p-148f); /* a tie, to even */
  assert_true(f32_scale(f32_all(x), f32_all(-149))[0] == 0x1p-149f);
  assert_true(f32_scale(f32_all(1), f32_all(127))[1] == 0x1p127f);
  assert_true(f32_scale(f32_all(1), f32_all(200))[1] == INFINITY);
  assert_true(f64_scale(f64_all(1.5), f64_all(-1074))[0] == 0x1p-1073);
}

static void the_second_wins_where_either_is_nan(void **state) {
  (void)state;
  if (skipped()) return;
  assert_true(f32_min(f32_all(NAN), f32_all(3))[0] == 3 && isnan(f32_min(f32_all(3), f32_all(NAN))[0]));
  assert_true(f64_max(f64_all(NAN), f64_all(3))[0] == 3 && isnan(f64_max(f64_all(3), f64_all(NAN))[0]));
}

static void lanes_are_picked_by_a_mask(void **state) {
  (void)state;
  if (skipped()) return;
  const f64s x = {-1, 0, 1, NAN}, y = f64_pick(f64_less(x, f64_all(0)), f64_all(10), f64_all(20));
  assert_true(y[0] == 10 && y[1] == 20 && y[2] == 20 && y[3] == 20);
  assert_true(f64_pick(f64_equal(x, f64_all(0)), f64_all(10), f64_all(20))[1] == 10);
}

static void one_lane_outside_is_found(void **state) {
  (void)state;
  if (skipped()) return;
  f32s x = f32_all(0.5f);
  assert_false(f32_any_not_inside(x, f32_all(0), f32_all(1)));
  x[6] = 1;
  assert_false(f32_any_not_inside(x, f32_all(0), f32_all(1)));
  x[6] = NAN;
  assert_true(f32_any_not_inside(x, f32_all(0), f32_all(1)));
  f64s y = f64_all(0.5);
  y[3] = -0.1;
  assert_true(f64_any_not_inside(y, f64_all(0), f64_all(1)));
}

static void signs_are_taken_off_and_put_on(void **state) {
  (void)state;
  if (skipped()) return;
  assert_true(same(f32_sized(f32_all(-0.0f))[0], 0) && f64_sized(f64_all(-3))[0] == 3);
  assert_true(f32_signed(f32_all(2), f32_all(-0.0f))[0] == -2 && f64_signed(f64_all(2), f64_all(5))[0] == 2);
}

static void lanes_are_kept_by_a_mask(void **state) {
  (void)state;
  if (skipped()) return;
  const f32s x = {-1, 0, 1, NAN, -INFINITY, 5, -0.0f, 2}, y = f32_keep(f32_not_less(x, f32_all(0)), x);
  const float wanted[] = {0, 0, 1, NAN, 0, 5, -0.0f, 2};
  for (int i = 0; i < 8; i++) assert_true(same(y[i], wanted[i]) || (isnan(y[i]) && isnan(wanted[i])));
  const f64s z = f64_keep(f64_not_less((f64s){-1, NAN, 3, -0.5}, f64_all(0)), f64_all(7));
  assert_true(z[0] == 0 && z[1] == 7 && z[2] == 7 && z[3] == 0);
}

#pragma GCC pop_options
#endif

/* Of a function's code, up to where it returns. */
static int instructions_to_return(ax_vector_function function) {
  enum { code_bytes = 1024, header_lines = 7 };
  char file[] = "/tmp/axle_vector_XXXXXX", command[192], number[32] = "";
  const int descriptor = mkstemp(file);
  assert_true(descriptor >= 0 && write(descriptor, (const void *)(uintptr_t)function, code_bytes) == code_bytes);
  close(descriptor);
  snprintf(command, sizeof command, "objdump -D --no-show-raw-insn -b binary -m i386:x86-64 %s | grep -n -m1 'ret *$'", file);
  FILE *found = popen(command, "r");
  assert_non_null(found);
  assert_non_null(fgets(number, sizeof number, found));
  pclose(found);
  unlink(file);
  return atoi(number) - header_lines;
}

/* The usual operands meet nothing of what rare ones need: neither their code nor their constants. */
static void rare_ways_stand_apart(void **state) {
  (void)state;
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const ax_vector_math *const tables[] = {&ax_vector_math_32, &ax_vector_math_64};
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
    if (tables[t]->f32[AX_SCALAR_LOG] == NULL) continue;
    assert_in_range(instructions_to_return(tables[t]->f32[AX_SCALAR_LOG]), 20, 50);
    assert_in_range(instructions_to_return(tables[t]->f64[AX_SCALAR_LOG]), 20, 50);
    assert_in_range(instructions_to_return(tables[t]->f32[AX_SCALAR_LOG1P]), 20, 64);
    assert_in_range(instructions_to_return(tables[t]->f64[AX_SCALAR_LOG1P]), 20, 64);
  }
#endif
}

/* Which every processor has. */
static void registers_of_16_bytes_reach_the_largest_numbers(void **state) {
  (void)state;
  typedef double pair __attribute__((vector_size(16)));
  pair (*const exponential)(pair) = (pair(*)(pair))ax_vector_math_16.f64[AX_SCALAR_EXP];
  const pair y = exponential((pair){709.782712893383973, 710});
  assert_true(y[0] > 1.79769e308 && y[0] < 1.0 / 0.0);
  assert_true(y[1] == 1.0 / 0.0);
  assert_null(ax_vector_math_16.f32[AX_SCALAR_EXP]); /* SLEEF's is right */
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
      cmocka_unit_test(exponentials_at_their_ends),
      cmocka_unit_test(logarithms_at_their_ends),
      cmocka_unit_test(steps_at_their_ends),
      cmocka_unit_test(circles_at_their_ends),
      cmocka_unit_test(angles_at_their_ends),
      cmocka_unit_test(roots_and_powers_of_two_at_their_ends),
      cmocka_unit_test(powers_of_special_values),
      cmocka_unit_test(atan2_of_special_values),
      cmocka_unit_test(powers_of_f32),
      cmocka_unit_test(erf_of_f32),
      cmocka_unit_test(tables_differ_only_in_their_width),
      cmocka_unit_test(fused_products_are_rounded_once),
      cmocka_unit_test(lanes_are_kept_by_a_mask),
      cmocka_unit_test(ties_are_rounded_to_even),
      cmocka_unit_test(scaling_rounds_once_into_the_subnormals),
      cmocka_unit_test(the_second_wins_where_either_is_nan),
      cmocka_unit_test(lanes_are_picked_by_a_mask),
      cmocka_unit_test(one_lane_outside_is_found),
      cmocka_unit_test(signs_are_taken_off_and_put_on),
#endif
      cmocka_unit_test(rare_ways_stand_apart),
      cmocka_unit_test(registers_of_16_bytes_reach_the_largest_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
