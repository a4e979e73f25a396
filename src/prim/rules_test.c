/* The small functions that rules are made of: each traced on a few numbers and evaluated by reference. */
#include "prim/rules.h"

#include <string.h>

#include "prim/shape.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- On values --- */

typedef ax_value (*on_one)(ax_value x);
typedef struct call {
  on_one function;
} call;
static AX_BODY(call_one) { out[0] = ((const call *)context)->function(in[0]); }

/* The function of x, f32[2,3] = [[0, 1, 2], [3, 4, 5]], as the type and the elements. */
static void gives(on_one function, const char *wanted) {
  call c = {function};
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  ax_program *program = test_trace(call_one, &c, &type, 1, 1);
  ax_tensor *x = test_tensor(type, (const double[]){0, 1, 2, 3, 4, 5}), *y;
  ax_text text = {0};
  test_run(program, &x, &y);
  ax_text_add(&text, "%s:", ax_type_string(ax_program_out_type(program, 0), NULL));
  for (int64_t i = 0; i < test_elems(y); i++) ax_text_add(&text, " %g", test_get(y, i));
  assert_string_equal(text.data, wanted);
  ax_text_deinit(&text);
  test_release(&x, 1);
  test_release(&y, 1);
  ax_program_release(program);
}

static ax_value last_first(ax_value x) { return ax_move_dim(x, 1, 0); }
static ax_value first_to_the_end(ax_value x) { return ax_move_dim(ax_reshape(x, AX_DIMS(1, 2, 3)), 0, 2); }
static ax_value unmoved(ax_value x) { return ax_move_dim(x, 1, 1); }

static void a_dimension_is_moved_among_the_others(void **state) {
  (void)state;
  gives(last_first, "f32[3,2]: 0 3 1 4 2 5");
  gives(first_to_the_end, "f32[2,3,1]: 0 1 2 3 4 5");
  gives(unmoved, "f32[2,3]: 0 1 2 3 4 5");
}

static ax_value batch_last(ax_value x) { return ax_batch_front(x, 1, 3); }
static ax_value no_batch(ax_value x) { return ax_batch_front(ax_reduce_sum(x, AX_DIMS(1), false), -1, 2); }

static void a_batch_goes_in_front(void **state) {
  (void)state;
  gives(batch_last, "f32[3,2]: 0 3 1 4 2 5");
  gives(no_batch, "f32[2,2]: 3 12 3 12");
}

static ax_value repeated(ax_value x) {
  const ax_type like = TEST_TYPE(AX_F32, 2, 3);
  return ax_repeat(ax_reduce_max(x, AX_DIMS(0), false), &like, &(ax_dims){1, {0}});
}

static void what_was_reduced_is_repeated(void **state) {
  (void)state;
  gives(repeated, "f32[2,3]: 3 4 5 3 4 5");
}

static ax_value least(ax_value x) { return ax_max(x, ax_reduce_neutral(AX_SCALAR_MAX, AX_F32)); }
static ax_value sum_of_none(ax_value x) { return ax_mul(ax_reduce_neutral(AX_SCALAR_ADD, AX_F32), x); }

static void a_neutral_element_changes_nothing(void **state) {
  (void)state;
  gives(least, "f32[2,3]: 0 1 2 3 4 5");
  gives(sum_of_none, "f32[2,3]: 0 0 0 0 0 0");
}

static ax_value with_zero(ax_value x) { return ax_add_any(ax_zero, ax_add_any(x, ax_zero)); }
static ax_value twice(ax_value x) { return ax_add_any(x, x); }
static ax_value real_zeros(ax_value x) { return ax_instantiate(ax_zero, x); }
static ax_value own_tangent(ax_value x) { return ax_instantiate(x, x); }

static void a_symbolic_zero_adds_nothing(void **state) {
  (void)state;
  gives(with_zero, "f32[2,3]: 0 1 2 3 4 5");
  gives(twice, "f32[2,3]: 0 2 4 6 8 10");
  gives(real_zeros, "f32[2,3]: 0 0 0 0 0 0");
  gives(own_tangent, "f32[2,3]: 0 1 2 3 4 5");
}

static ax_value filled(ax_value x) {
  const ax_type type = ax_typeof(x);
  return ax_add(ax_filled(&type, 2.5), ax_zeros_of(&type));
}
static ax_value scalar_zero(ax_value x) { return ax_zero_like(x); }

static void arrays_are_filled_by_their_type(void **state) {
  (void)state;
  gives(filled, "f32[2,3]: 2.5 2.5 2.5 2.5 2.5 2.5");
  gives(scalar_zero, "f32[]: 0");
}

static ax_value tripled_number(ax_value x) { return ax_mul(x, ax_number_times("f", ax_integer(2), 3)); }
static ax_value number_of_dtype(ax_value x) { return ax_add(x, ax_as("f", ax_real(0.5), AX_F32)); }
static ax_value given_dtype(ax_value x) {
  ax_value pair[] = {ax_integer(7), x};
  ax_give_dtype("f", pair, 2);
  return ax_typeof(pair[0]).dtype == AX_F32 && ax_typeof(pair[0]).rank == 0 ? pair[0] : x;
}
static ax_value broadcast(ax_value x) {
  ax_value pair[] = {x, ax_reshape(ax_reduce_sum(x, AX_DIMS(1), false), AX_DIMS(2, 1))};
  return ax_broadcast_together(pair, 2) ? pair[1] : x;
}

static void numbers_become_scalars_of_a_dtype(void **state) {
  (void)state;
  gives(tripled_number, "f32[2,3]: 0 6 12 18 24 30");
  gives(number_of_dtype, "f32[2,3]: 0.5 1.5 2.5 3.5 4.5 5.5");
  gives(given_dtype, "f32[]: 7");
  gives(broadcast, "f32[2,3]: 3 3 3 12 12 12");
}

/* --- What is refused --- */

static void fails(on_one function, const char *message) {
  call c = {function};
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_CLOSURE(call_one, 1, 1, &c), &type, &program), AX_INVALID_ARGUMENT, message);
}

static ax_value counted_from_the_end(ax_value x) {
  int64_t last = -1, first = -2, beyond = 2;
  assert_true(ax_dimension("f", "axis", &last, 2) && last == 1);
  assert_true(ax_dimension("f", "axis", &first, 2) && first == 0);
  assert_false(ax_dimension("f", "axis", &beyond, 2));
  return x;
}
static ax_value too_large(ax_value x) {
  int64_t bits;
  assert_false(ax_number_bits("f", ax_integer(300), AX_S8, &bits));
  return x;
}
static ax_value rejected(ax_value x) {
  (void)x;
  return ax_reject_as("my_function", "wants %d", 7);
}

static void failures_name_the_function_that_was_called(void **state) {
  (void)state;
  fails(counted_from_the_end, "f: axis is 2, but there are 2 dimensions");
  fails(too_large, "f: ");
  fails(rejected, "my_function: wants 7");
}

/* --- Spreads --- */

static void a_value_is_in_one_state_along_an_axis(void **state) {
  (void)state;
  const ax_spread on = {.varying = 1, .reduced = 2, .unreduced = 4, .kind = AX_UNREDUCED_MAX};
  assert_int_equal(ax_spread_state(&on, 0), AX_IS_VARYING);
  assert_int_equal(ax_spread_state(&on, 1), AX_IS_REDUCED);
  assert_int_equal(ax_spread_state(&on, 2), AX_IS_UNREDUCED);
  assert_int_equal(ax_spread_state(&on, 3), AX_IS_INVARIANT);
  assert_string_equal(ax_state_name(&on, 0), "varying");
  assert_string_equal(ax_state_name(&on, 2), "unreduced by max");
  assert_string_equal(ax_state_name(&on, 3), "invariant");
}

static void operands_must_spread_alike(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_spread common;
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  ax_type in[2] = {TEST_SCALAR(AX_F32), TEST_SCALAR(AX_F32)};
  const ax_infer_args args = {.axes = &mesh, .in = in, .in_count = 2};
  in[0].spread.varying = in[1].spread.varying = 1;
  in[0].spread.reduced = in[1].spread.reduced = 2;
  TEST_OK(ax_spread_join(&args, 3, &common));
  assert_true(common.varying == 1 && common.reduced == 2 && common.unreduced == 0);
  in[1].spread.varying = 0;
  assert_int_equal(ax_spread_join(&args, 3, &common), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "pvary makes what is invariant vary"));
  TEST_OK(ax_spread_join(&args, 2, &common)); /* only b is asked for */
  assert_true(common.varying == 0 && common.reduced == 2);
}

static void partners_are_cast_to_what_any_of_them_is(void **state) {
  (void)state;
  ax_spread all = {0};
  ax_spread_meet(&all, &(ax_spread){.varying = 1});
  ax_spread_meet(&all, &(ax_spread){.reduced = 2});
  assert_true(all.varying == 1 && all.reduced == 2);
}

/* --- Tensors --- */

static void elements_are_copied_under_another_type(void **state) {
  (void)state;
  ax_tensor *from = test_tensor(TEST_TYPE(AX_F32, 2, 3), (const double[]){0, 1, 2, 3, 4, 5}),
            *to = test_tensor(TEST_TYPE(AX_F32, 6), (const double[]){9, 9, 9, 9, 9, 9});
  ax_tensor_assign(to, from);
  assert_true(to->rank == 1 && test_get(to, 0) == 0 && test_get(to, 5) == 5);
  test_release(&from, 1);
  test_release(&to, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dimension_is_moved_among_the_others),
      cmocka_unit_test(a_batch_goes_in_front),
      cmocka_unit_test(what_was_reduced_is_repeated),
      cmocka_unit_test(a_neutral_element_changes_nothing),
      cmocka_unit_test(a_symbolic_zero_adds_nothing),
      cmocka_unit_test(arrays_are_filled_by_their_type),
      cmocka_unit_test(numbers_become_scalars_of_a_dtype),
      cmocka_unit_test(failures_name_the_function_that_was_called),
      cmocka_unit_test(a_value_is_in_one_state_along_an_axis),
      cmocka_unit_test(operands_must_spread_alike),
      cmocka_unit_test(partners_are_cast_to_what_any_of_them_is),
      cmocka_unit_test(elements_are_copied_under_another_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
