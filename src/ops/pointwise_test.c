/* The semantics of scalar operations, row by row: what reference evaluation, machine code and exports are all compared with. */
#include <math.h>
#include <string.h>

#include "ops/pointwise.h"
#include "support/cmocka.h"

#define ROW_NAME "row %zu: %s %s"

/* --- Floats: results are compared bit by bit, but any NaN is any NaN --- */

typedef struct float_row {
  ax_scalar op;
  ax_dtype dtype;
  double a, b;
  int64_t imm;
  double expected;
} float_row;

static const float_row float_rows[] = {
    {AX_SCALAR_ADD, AX_F32, 0x1p24, 1, 0, 0x1p24},
    {AX_SCALAR_ADD, AX_BF16, 256, 1, 0, 256},
    {AX_SCALAR_ADD, AX_F16, 65504, 65504, 0, INFINITY},
    {AX_SCALAR_SUB, AX_F64, INFINITY, INFINITY, 0, NAN},
    {AX_SCALAR_MUL, AX_F32, -0.0, 3, 0, -0.0},
    {AX_SCALAR_MUL, AX_F32, 0x1p-149, 0.5, 0, 0},
    {AX_SCALAR_DIV, AX_F32, 1, -0.0, 0, -INFINITY},
    {AX_SCALAR_DIV, AX_F32, 0, 0, 0, NAN},
    {AX_SCALAR_MAX, AX_F32, NAN, 1, 0, NAN},
    {AX_SCALAR_MAX, AX_F32, 1, NAN, 0, NAN},
    {AX_SCALAR_MAX, AX_F32, -0.0, 0.0, 0, 0.0},
    {AX_SCALAR_MAX, AX_F32, 0.0, -0.0, 0, 0.0},
    {AX_SCALAR_MAX, AX_F64, -INFINITY, -1, 0, -1},
    {AX_SCALAR_MIN, AX_F32, NAN, 1, 0, NAN},
    {AX_SCALAR_MIN, AX_F32, -1, NAN, 0, NAN},
    {AX_SCALAR_MIN, AX_F32, -0.0, 0.0, 0, -0.0},
    {AX_SCALAR_MIN, AX_F32, 0.0, -0.0, 0, -0.0},
    {AX_SCALAR_MIN, AX_F64, 2, -3, 0, -3},
    {AX_SCALAR_POW, AX_F64, 2, 0.5, 0, 0x1.6a09e667f3bcdp+0},
    {AX_SCALAR_POW, AX_F32, 0, 0, 0, 1},
    {AX_SCALAR_POW, AX_F32, -8, 1.0 / 3, 0, NAN},
    {AX_SCALAR_REM, AX_F32, 7.5, -2, 0, 1.5},
    {AX_SCALAR_REM, AX_F32, -7.5, 2, 0, -1.5},
    {AX_SCALAR_REM, AX_F32, -6, 3, 0, -0.0},
    {AX_SCALAR_REM, AX_F32, 0x1p127, 3, 0, 2},
    {AX_SCALAR_REM, AX_F64, 0x1p1023, 0x1.8p-1074, 0, 0},
    {AX_SCALAR_REM, AX_F32, 5, INFINITY, 0, 5},
    {AX_SCALAR_REM, AX_F32, INFINITY, 5, 0, NAN},
    {AX_SCALAR_REM, AX_F32, 5, 0, 0, NAN},
    {AX_SCALAR_NEG, AX_F32, 0.0, 0, 0, -0.0},
    {AX_SCALAR_ABS, AX_F16, -0.0, 0, 0, 0.0},
    {AX_SCALAR_ABS, AX_F32, -INFINITY, 0, 0, INFINITY},
    {AX_SCALAR_SIGN, AX_F32, -0.0, 0, 0, -0.0},
    {AX_SCALAR_SIGN, AX_F32, 0.0, 0, 0, 0.0},
    {AX_SCALAR_SIGN, AX_F32, NAN, 0, 0, NAN},
    {AX_SCALAR_SIGN, AX_F32, -0x1p-149, 0, 0, -1},
    {AX_SCALAR_FLOOR, AX_F32, -0.5, 0, 0, -1},
    {AX_SCALAR_FLOOR, AX_F32, -0.0, 0, 0, -0.0},
    {AX_SCALAR_FLOOR, AX_F64, 0x1p52, 0, 0, 0x1p52},
    {AX_SCALAR_CEIL, AX_F32, -0.5, 0, 0, -0.0},
    {AX_SCALAR_CEIL, AX_F16, 0x1p-24, 0, 0, 1},
    {AX_SCALAR_CEIL, AX_F32, NAN, 0, 0, NAN},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F32, 0.5, 0, 0, 0},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F32, 1.5, 0, 0, 2},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F32, -2.5, 0, 0, -2},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F32, -0.5, 0, 0, -0.0},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F64, 0x1.fffffffffffffp-2, 0, 0, 0},
    {AX_SCALAR_ROUND_NEAREST_EVEN, AX_F32, -INFINITY, 0, 0, -INFINITY},
    {AX_SCALAR_ROUND_NEAREST_AFZ, AX_F32, -2.5, 0, 0, -3},
    {AX_SCALAR_ROUND_NEAREST_AFZ, AX_F64, 0x1.fffffffffffffp-2, 0, 0, 0},
    {AX_SCALAR_ROUND_NEAREST_AFZ, AX_F32, -0.25, 0, 0, -0.0},
    {AX_SCALAR_NEXTAFTER, AX_F32, 0, -1, 0, -0x1p-149},
    {AX_SCALAR_NEXTAFTER, AX_BF16, 1, 2, 0, 1.0078125},
    {AX_SCALAR_NEXTAFTER, AX_F16, INFINITY, 0, 0, 65504},
    {AX_SCALAR_NEXTAFTER, AX_F64, -0.0, 0.0, 0, 0.0},
    {AX_SCALAR_NEXTAFTER, AX_F32, 1, NAN, 0, NAN},
    {AX_SCALAR_REDUCE_PRECISION, AX_F32, 65520, 0, 5 << 8 | 10, INFINITY},
    {AX_SCALAR_REDUCE_PRECISION, AX_F32, -0x1p-20, 0, 5 << 8 | 10, -0.0},
    {AX_SCALAR_REDUCE_PRECISION, AX_F32, 1.0625, 0, 4 << 8 | 3, 1},
    {AX_SCALAR_EXP, AX_F32, -INFINITY, 0, 0, 0},
    {AX_SCALAR_EXP, AX_F32, 89, 0, 0, INFINITY},
    {AX_SCALAR_LOG, AX_F32, 0, 0, 0, -INFINITY},
    {AX_SCALAR_LOG, AX_F32, -1, 0, 0, NAN},
    {AX_SCALAR_LOG1P, AX_F32, 0x1p-40, 0, 0, 0x1p-40},
    {AX_SCALAR_LOG1P, AX_F32, -0.0, 0, 0, -0.0},
    {AX_SCALAR_EXPM1, AX_F32, 0x1p-40, 0, 0, 0x1p-40},
    {AX_SCALAR_TANH, AX_F32, 100, 0, 0, 1},
    {AX_SCALAR_LOGISTIC, AX_F32, 0, 0, 0, 0.5},
    {AX_SCALAR_LOGISTIC, AX_F64, -INFINITY, 0, 0, 0},
    {AX_SCALAR_SQRT, AX_F32, -0.0, 0, 0, -0.0},
    {AX_SCALAR_SQRT, AX_F32, -1, 0, 0, NAN},
    {AX_SCALAR_RSQRT, AX_F32, 0, 0, 0, INFINITY},
    {AX_SCALAR_RSQRT, AX_F32, 16, 0, 0, 0.25},
    {AX_SCALAR_ERF, AX_F32, INFINITY, 0, 0, 1},
    {AX_SCALAR_ERF, AX_F64, -0.0, 0, 0, -0.0},
    {AX_SCALAR_INTEGER_POW, AX_F32, -2, 0, 3, -8},
    {AX_SCALAR_INTEGER_POW, AX_F32, -2, 0, -3, -0.125},
    {AX_SCALAR_INTEGER_POW, AX_F32, NAN, 0, 0, 1},
    {AX_SCALAR_INTEGER_POW, AX_F32, -0.0, 0, -1, -INFINITY},
    {AX_SCALAR_INTEGER_POW, AX_F64, 1, 0, INT64_MIN, 1},
    {AX_SCALAR_INTEGER_POW, AX_F64, -1, 0, INT64_MAX, -1},
};

static void test_floats(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(float_rows); i++) {
    const float_row *row = &float_rows[i];
    ax_number x[3] = {{.f = row->a}, {.f = row->b}};
    double got = ax_number_round(row->dtype, ax_scalar_eval(row->op, row->dtype, x, row->imm)).f;
    bool same = isnan(row->expected) ? isnan(got) : memcmp(&got, &row->expected, sizeof got) == 0;
    if (!same)
      fail_msg(ROW_NAME " %g %g: got %a, not %a", i, ax_scalar_name(row->op), ax_dtype_name(row->dtype), row->a, row->b,
               got, row->expected);
  }
}

/* --- Integers and bools; a u64 stands as its bits --- */

typedef struct integer_row {
  ax_scalar op;
  ax_dtype dtype;
  int64_t a, b, imm, expected;
} integer_row;

static const integer_row integer_rows[] = {
    {AX_SCALAR_ADD, AX_S8, 127, 1, 0, -128},
    {AX_SCALAR_ADD, AX_U8, 255, 1, 0, 0},
    {AX_SCALAR_ADD, AX_S64, INT64_MAX, 1, 0, INT64_MIN},
    {AX_SCALAR_SUB, AX_U32, 0, 1, 0, UINT32_MAX},
    {AX_SCALAR_MUL, AX_S16, 256, 256, 0, 0},
    {AX_SCALAR_MUL, AX_S64, INT64_MIN, -1, 0, INT64_MIN},
    {AX_SCALAR_DIV, AX_S32, -7, 2, 0, -3},
    {AX_SCALAR_DIV, AX_S32, 7, 0, 0, -1},
    {AX_SCALAR_DIV, AX_U16, 7, 0, 0, UINT16_MAX},
    {AX_SCALAR_DIV, AX_U64, -1, 2, 0, INT64_MAX},
    {AX_SCALAR_DIV, AX_S8, -128, -1, 0, -128},
    {AX_SCALAR_DIV, AX_S32, INT32_MIN, -1, 0, INT32_MIN},
    {AX_SCALAR_DIV, AX_S64, INT64_MIN, -1, 0, INT64_MIN},
    {AX_SCALAR_REM, AX_S32, -7, 2, 0, -1},
    {AX_SCALAR_REM, AX_S32, 7, -2, 0, 1},
    {AX_SCALAR_REM, AX_S32, 7, 0, 0, 7},
    {AX_SCALAR_REM, AX_U64, -1, 10, 0, 5},
    {AX_SCALAR_REM, AX_S8, -128, -1, 0, 0},
    {AX_SCALAR_REM, AX_S64, INT64_MIN, -1, 0, 0},
    {AX_SCALAR_MAX, AX_S8, -1, 1, 0, 1},
    {AX_SCALAR_MAX, AX_U64, -1, 1, 0, -1},
    {AX_SCALAR_MIN, AX_S8, -1, 1, 0, -1},
    {AX_SCALAR_MIN, AX_U64, -1, 1, 0, 1},
    {AX_SCALAR_NEG, AX_S8, -128, 0, 0, -128},
    {AX_SCALAR_NEG, AX_U8, 1, 0, 0, 255},
    {AX_SCALAR_ABS, AX_S8, -128, 0, 0, -128},
    {AX_SCALAR_ABS, AX_S64, INT64_MIN, 0, 0, INT64_MIN},
    {AX_SCALAR_ABS, AX_U64, -5, 0, 0, -5},
    {AX_SCALAR_SIGN, AX_S32, INT32_MIN, 0, 0, -1},
    {AX_SCALAR_SIGN, AX_S32, 0, 0, 0, 0},
    {AX_SCALAR_SIGN, AX_U64, -5, 0, 0, 1},
    {AX_SCALAR_INTEGER_POW, AX_S8, 3, 0, 5, -13},
    {AX_SCALAR_INTEGER_POW, AX_U32, 3, 0, 20, 3486784401},
    {AX_SCALAR_INTEGER_POW, AX_S64, 0, 0, 0, 1},
    {AX_SCALAR_INTEGER_POW, AX_S32, -1, 0, INT64_MAX, -1},
    {AX_SCALAR_AND, AX_U8, 0xf0, 0x3c, 0, 0x30},
    {AX_SCALAR_AND, AX_BOOL, 1, 0, 0, 0},
    {AX_SCALAR_OR, AX_S8, -128, 1, 0, -127},
    {AX_SCALAR_OR, AX_BOOL, 1, 0, 0, 1},
    {AX_SCALAR_NOT, AX_S16, 0, 0, 0, -1},
    {AX_SCALAR_NOT, AX_U16, 0, 0, 0, UINT16_MAX},
    {AX_SCALAR_NOT, AX_BOOL, 1, 0, 0, 0},
    {AX_SCALAR_NOT, AX_BOOL, 0, 0, 0, 1},
};

static void test_integers(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(integer_rows); i++) {
    const integer_row *row = &integer_rows[i];
    ax_number x[3] = {{.i = row->a}, {.i = row->b}};
    int64_t got = ax_number_round(row->dtype, ax_scalar_eval(row->op, row->dtype, x, row->imm)).i;
    if (got != row->expected)
      fail_msg(ROW_NAME " %lld %lld: got %lld, not %lld", i, ax_scalar_name(row->op), ax_dtype_name(row->dtype),
               (long long)row->a, (long long)row->b, (long long)got, (long long)row->expected);
  }
}

/* --- Comparisons: eq ne lt le gt ge, in this order, as bits from the left --- */

typedef struct compare_row {
  ax_dtype dtype;
  ax_number a, b;
  const char *expected;
} compare_row;

static const compare_row compare_rows[] = {
    {AX_F32, {.f = 1}, {.f = 2}, "011100"},        {AX_F32, {.f = -0.0}, {.f = 0.0}, "100101"},
    {AX_F64, {.f = NAN}, {.f = NAN}, "010000"},    {AX_BF16, {.f = 1}, {.f = NAN}, "010000"},
    {AX_S8, {.i = -1}, {.i = 1}, "011100"},        {AX_U64, {.u = UINT64_MAX}, {.u = 1}, "010011"},
    {AX_BOOL, {.u = 0}, {.u = 1}, "011100"},       {AX_S64, {.i = INT64_MIN}, {.i = INT64_MIN}, "100101"},
    {AX_F16, {.f = INFINITY}, {.f = 1}, "010011"},
};

static void test_comparisons(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(compare_rows); i++) {
    const compare_row *row = &compare_rows[i];
    ax_number x[] = {row->a, row->b};
    for (int k = 0; k < 6; k++) {
      ax_scalar op = (ax_scalar)(AX_SCALAR_EQ + k);
      if (ax_scalar_eval(op, row->dtype, x, 0).u != (uint64_t)(row->expected[k] - '0'))
        fail_msg(ROW_NAME " is wrong", i, ax_scalar_name(op), ax_dtype_name(row->dtype));
    }
  }
}

static void test_select_and_convert(void **state) {
  (void)state;
  ax_number x[] = {{.u = 1}, {.f = 2.5}, {.f = 3.5}};
  assert_true(ax_scalar_eval(AX_SCALAR_SELECT, AX_BOOL, x, 0).f == 2.5);
  x[0].u = 0;
  assert_true(ax_scalar_eval(AX_SCALAR_SELECT, AX_BOOL, x, 0).f == 3.5);
  ax_number big = {.f = 300}, negative = {.f = -1.5}, nan = {.f = NAN};
  assert_int_equal(ax_scalar_eval(AX_SCALAR_CONVERT, AX_F32, &big, AX_S8).i, 127);
  assert_int_equal(ax_scalar_eval(AX_SCALAR_CONVERT, AX_F32, &negative, AX_U8).u, 0);
  assert_int_equal(ax_scalar_eval(AX_SCALAR_CONVERT, AX_F32, &negative, AX_S32).i, -1);
  assert_int_equal(ax_scalar_eval(AX_SCALAR_CONVERT, AX_F32, &nan, AX_S32).i, 0);
  assert_int_equal(ax_scalar_eval(AX_SCALAR_CONVERT, AX_F32, &nan, AX_BOOL).u, 1);
}

static void test_names(void **state) {
  (void)state;
  uint32_t pointwise = 0;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    if (ax_prims[i]->scalar == AX_SCALAR_NONE) continue;
    assert_string_equal(ax_scalar_name(ax_prims[i]->scalar), ax_prims[i]->name);
    assert_int_equal(ax_scalar_arity(ax_prims[i]->scalar), ax_prims[i]->in_count);
    pointwise++;
  }
  assert_int_equal(pointwise, AX_SCALAR_COUNT - 1 - 4); /* all but SELECT, CONVERT and BITCAST, which need more than elements, and THREEFRY */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_floats),      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_comparisons), cmocka_unit_test(test_select_and_convert),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
