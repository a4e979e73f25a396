/* fori_loop: how it is made, what its index is, and what it refuses. */
#include <math.h>
#include <string.h>

#include "axle/bodies.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "control/fori_loop.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

static void add_index(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[1], in[0]);
}

/* The sum of the indices, as bounds[0] and [1] say, which may be numbers. */
typedef struct loop {
  ax_value lower, upper;
  ax_dtype dtype; /* of the carry; AX_NO_DTYPE: that of a value at in[0] */
} loop;

static void sum_indices(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  ax_value zero = ax_full(l->dtype, AX_DIMS(), 0);
  (void)in;
  ax_fori_loop(l->lower, l->upper, AX_FN(add_index, 2, 1), &zero, out);
}

static void numbers(void **state) {
  (void)state;
  const struct {
    loop loop;
    double sum;
  } rows[] = {
      {{ax_integer(0), ax_integer(5), AX_S32}, 10},
      {{ax_real(-3), ax_integer(2), AX_S32}, -5},
      {{ax_integer(7), ax_integer(7), AX_S32}, 0},
      {{ax_integer(7), ax_integer(-7), AX_S32}, 0},
      {{ax_integer(INT32_MAX - 2), ax_integer(INT32_MAX), AX_S32}, 2.0 * INT32_MAX - 3},
      {{ax_integer(INT32_MAX - 1), ax_integer((int64_t)INT32_MAX + 2), AX_S64}, 3.0 * INT32_MAX},
      {{ax_unsigned(3000000000), ax_unsigned(3000000002), AX_S64}, 6000000001.0},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_tensor *out;
    bool wraps = rows[i].loop.dtype == AX_S32 && rows[i].sum > INT32_MAX;
    ax_program *program = test_trace(sum_indices, (void *)&rows[i].loop, NULL, 0, 1);
    test_run(program, NULL, &out);
    assert_true(test_get(out, 0) == (wraps ? rows[i].sum - 0x1p32 : rows[i].sum));
    TEST_EVERY_WAY(program, NULL, 0);
    test_release(&out, 1);
    ax_program_release(program);
  }
}

/* One bound is a number, and takes the other's dtype; an index comes to the largest number and stops. */
static void value_bounds(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value zero = ax_full(AX_U8, AX_DIMS(), 0);
  ax_fori_loop(ax_integer(250), in[0], AX_FN(add_index, 2, 1), &zero, out);
  ax_fori_loop(in[0], ax_integer(3), AX_FN(add_index, 2, 1), &zero, out + 1);
}

static void values(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_U8);
  ax_tensor *in = test_tensor(type, (double[]){255}), *out[2];
  ax_program *program = test_trace(value_bounds, NULL, &type, 1, 2);
  test_run(program, &in, out);
  assert_true(test_get(out[0], 0) == (250 + 251 + 252 + 253 + 254) % 256 && test_get(out[1], 0) == 0);
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, 2);
  ax_program_release(program);
}

/* --- Bounds that are made of constants --- */

/* x^n, n being the number of indices between the bounds of a row; and the index has the dtype of the row. */
typedef struct power {
  int row;
  ax_dtype index;
  uint32_t n;
} power;

static AX_BODY(times) { /* context: x */
  const ax_value *x = context;
  out[0] = ax_mul(in[1], *x);
}

static AX_BODY(times_index) {
  const power *p = context;
  assert_int_equal(ax_typeof(in[0]).dtype, p->index);
  out[0] = ax_add(in[1], ax_convert_element_type(in[0], AX_F64));
}

static void bounds_of(int row, ax_value *lower, ax_value *upper) {
  const ax_value nine = ax_full(AX_S64, AX_DIMS(), 9);
  *lower = ax_integer(0);
  switch (row) {
    case 0:
      *lower = ax_full_i64(AX_S32, AX_DIMS(), 2), *upper = ax_integer(6);
      break;
    case 1:
      *upper = ax_div(nine, ax_full(AX_S64, AX_DIMS(), 2));
      break;
    case 2:
      *upper = ax_convert_element_type(ax_full(AX_F32, AX_DIMS(), 4.7), AX_U8);
      break;
    case 3:
      *lower = nine, *upper = ax_sub(nine, ax_integer(3));
      break;
    case 4:
      *lower = ax_neg(nine), *upper = ax_where(ax_gt(nine, ax_integer(3)), ax_integer(-6), nine);
      break;
    default:
      *upper = ax_max(ax_full(AX_S8, AX_DIMS(), 3), ax_full(AX_S8, AX_DIMS(), -2));
      break;
  }
}

static AX_BODY(to_power) {
  const power *p = context;
  ax_value lower, upper, one = ax_full(AX_F64, AX_DIMS(), 1), sum, x = in[0];
  bounds_of(p->row, &lower, &upper);
  ax_fori_loop(lower, upper, AX_CLOSURE(times, 2, 1, &x), AX_LIST(1, &one), AX_LIST(1, out));
  ax_fori_loop(lower, upper, AX_CLOSURE(times_index, 2, 1, p), AX_LIST(1, &one), AX_LIST(1, &sum));
}
static AX_BODY(power_by_block) {
  ax_value lower, upper, stacked = ax_poison;
  bounds_of(((const power *)context)->row, &lower, &upper);
  out[0] = ax_full(AX_F64, AX_DIMS(), 1);
  AX_LOOP (i, lower, upper, &out[0]) {
    out[0] = ax_mul(out[0], in[0]);
    ax_collect(&stacked, ax_mul(in[0], ax_convert_element_type(i, AX_F64)));
  }
  assert_int_equal(ax_typeof(stacked).dims[0], ((const power *)context)->n);
}
static AX_BODY(power_slope) {
  ax_value_and_grad(AX_CLOSURE(to_power, 1, 1, context), AX_FIRST(1), AX_LIST(1, in), AX_LIST(2, out));
}
static AX_BODY(block_slope) {
  ax_value_and_grad(AX_CLOSURE(power_by_block, 1, 1, context), AX_FIRST(1), AX_LIST(1, in), AX_LIST(2, out));
}

static void constants(void **state) {
  (void)state;
  const power rows[] = {{0, AX_S32, 4}, {1, AX_S64, 4}, {2, AX_U8, 4}, {3, AX_S64, 0}, {4, AX_S64, 3}, {5, AX_S8, 3}};
  const ax_function functions[] = {power_slope, block_slope};
  const ax_type type = TEST_SCALAR(AX_F64);
  ax_tensor *x = test_tensor(type, (const double[]){3}), *out[2];
  for (size_t i = 0; i < AX_COUNT(rows); i++)
    for (size_t f = 0; f < AX_COUNT(functions); f++) {
      ax_program *program = test_trace(functions[f], (void *)(uintptr_t)&rows[i], &type, 1, 2);
      test_run(program, &x, out);
      assert_true(test_get(out[0], 0) == pow(3, rows[i].n));
      assert_true(test_get(out[1], 0) == (rows[i].n == 0 ? 0 : rows[i].n * pow(3, rows[i].n - 1)));
      TEST_EVERY_WAY(program, &x, 0);
      test_release(out, 2);
      ax_program_release(program);
    }
  test_release(&x, 1);
}

/* A bound that depends on an operand is no constant, however little: the loop is a while, and has no derivative backwards. */
static AX_BODY(to_operand) {
  ax_value one = ax_full(AX_F64, AX_DIMS(), 1), x = in[0];
  ax_value upper = ax_add(ax_full(AX_S32, AX_DIMS(), 3), ax_mul(ax_convert_element_type(x, AX_S32), ax_integer(0)));
  ax_fori_loop(ax_integer(0), upper, AX_CLOSURE(times, 2, 1, &x), AX_LIST(1, &one), AX_LIST(1, out));
}
static AX_BODY(to_far) { /* 64 equations are looked at, no more */
  ax_value one = ax_full(AX_F64, AX_DIMS(), 1), x = in[0], upper = ax_full(AX_S32, AX_DIMS(), 3);
  for (int i = 0; i < 64; i++) upper = ax_neg(upper);
  ax_fori_loop(ax_integer(0), upper, AX_CLOSURE(times, 2, 1, &x), AX_LIST(1, &one), AX_LIST(1, out));
}
static void no_constants(void **state) {
  (void)state;
  const ax_function functions[] = {to_operand, to_far};
  const ax_type type = TEST_SCALAR(AX_F64);
  for (size_t f = 0; f < AX_COUNT(functions); f++) {
    ax_program *program = test_trace(functions[f], NULL, &type, 1, 1), *none;
    TEST_FAILS(ax_program_grad(program, AX_ALL_ARGS, &none), AX_ABSENT,
               "while has no reverse-mode derivative: how many steps there are to go back is known only after it has run; scan has "
               "one, so has fori_loop where both bounds are numbers or constants");
    ax_program_release(program);
  }
}

/* --- What is refused --- */

static void sets_nothing(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

static void sets_more(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = in[0];
}

static void other_shape(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_stack(AX_VALUES(in[1], in[1]), 0);
}

static void refused_loop(const ax_value *in, ax_value *out, void *context) { /* in: s32[], f32[], s32[2], u8[] */
  const ax_fn sum = AX_FN(add_index, 2, 1);
  switch (*(const int *)context) {
    case 0: ax_fori_loop(ax_real(0.5), ax_integer(2), sum, in, out); break;
    case 1: ax_fori_loop(ax_integer(0), ax_real(0x1p60), sum, in, out); break;
    case 2: ax_fori_loop(ax_real(0.0 / 0.0), ax_integer(2), sum, in, out); break;
    case 3: ax_fori_loop(ax_integer(0), in[1], sum, in, out); break;
    case 4: ax_fori_loop(in[2], in[0], sum, in, out); break;
    case 5: ax_fori_loop(in[0], in[3], sum, in, out); break;
    case 6: ax_fori_loop(ax_integer(0), ax_integer(2), AX_FN(add_index, 1, 1), in, out); break;
    case 7: ax_fori_loop(ax_integer(0), ax_integer(2), AX_FN(sets_nothing, 2, 1), in, out); break;
    case 8: ax_fori_loop(ax_integer(0), ax_integer(2), AX_FN(sets_more, 2, 1), in, out); break;
    case 9: ax_fori_loop(ax_integer(0), ax_integer(2), AX_FN(NULL, 2, 1), in, out); break;
    case 10: ax_fori_loop(ax_integer(0), ax_integer(2), AX_FN(other_shape, 2, 1), in, out); break;
    default: ax_fori_loop(ax_integer(-1), in[3], sum, in, out); break;
  }
}

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_SCALAR(AX_S32), TEST_SCALAR(AX_F32), TEST_TYPE(AX_S32, 2), TEST_SCALAR(AX_U8)};
  static const char *const messages[] = {
      "fori_loop: the lower bound is 0.5; it must be an integer below 2^53 in size",
      "fori_loop: the upper bound is 1.152921504606847e+18; it must be an integer",
      "fori_loop: the lower bound is ",
      "fori_loop: the upper bound is f32[]; it must be an integer scalar",
      "fori_loop: the lower bound is s32[2]; it must be an integer scalar",
      "fori_loop: the bounds are s32[] and u8[]; they need one dtype",
      "fori_loop: the body takes 1 operands and gives 1 results; it takes an index, and as many carries as it gives",
      "body: out[0] was never set, but there is 1 result",
      "body: out[1] was set, but there is 1 result",
      "body: there is no function",
      "carry 0 is s32[], but the body returns s32[2]",
      "fori_loop: u8 cannot hold -1",
  };
  for (int i = 0; i < (int)AX_COUNT(messages); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(refused_loop, 4, 1, &i), types, &program), AX_INVALID_ARGUMENT, messages[i]);
    assert_null(program);
  }
}

/* --- Bounds, by hand --- */

static AX_BODY(bounds_by_hand) {
  int64_t length;
  ax_value start, bounds[] = {ax_integer(3), in[0]};
  (void)context;
  assert_true(ax_fori_numbers("f", ax_integer(-2), ax_integer(5), &start, &length));
  assert_true(length == 7 && ax_typeof(start).dtype == AX_S32);
  assert_true(ax_fori_numbers("f", ax_integer(5), ax_integer(-2), &start, &length) && length == 0);
  assert_true(ax_fori_numbers("f", ax_integer(0), ax_integer(INT64_C(1) << 40), &start, &length));
  assert_true(length == INT64_C(1) << 40 && ax_typeof(start).dtype == AX_S64);
  assert_true(ax_fori_values("f", bounds));
  assert_int_equal(ax_typeof(bounds[0]).dtype, AX_U8); /* the other's */
  out[0] = ax_fori_next("f", bounds[0]);
}

static void bounds_and_indices(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_U8);
  ax_program *program = test_trace(bounds_by_hand, NULL, &type, 1, 1);
  ax_tensor *x = test_tensor(type, (const double[]){9}), *y;
  test_run(program, &x, &y);
  assert_true(test_get(y, 0) == 4 && y->dtype == AX_U8);
  test_release(&x, 1), test_release(&y, 1);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers),      cmocka_unit_test(values),  cmocka_unit_test(constants),
      cmocka_unit_test(no_constants), cmocka_unit_test(refused), cmocka_unit_test(bounds_and_indices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
