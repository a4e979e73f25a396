/* The context of traces: what is set in one is found in those inside it and nowhere else, and what it owns is released with it. */
#include "ir/context.h"

#include <string.h>

#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static int releases;
static void count(void *value) {
  releases++;
  ax_free(value);
}

static const ax_context_key plain = {.name = "plain"}, other = {.name = "other"}, owned = {.name = "owned", .release = count};

static void inside_a_trace(void **state) {
  (void)state;
  int a, b;
  ax_builder outer, inner;
  ax_builder_begin(&outer, NULL);
  assert_null(ax_context_get(&plain));
  assert_true(ax_context_set(&plain, &a));
  ax_builder_begin(&inner, NULL);
  assert_ptr_equal(ax_context_get(&plain), &a);
  assert_null(ax_context_get(&other));
  assert_null(ax_context_own(&inner, &plain));
  assert_ptr_equal(ax_context_own(&outer, &plain), &a);
  assert_true(ax_context_set(&plain, &b));
  assert_ptr_equal(ax_context_get(&plain), &b);
  assert_ptr_equal(ax_context_own(&outer, &plain), &a);
  assert_true(ax_context_set(&plain, NULL)); /* hides that of the trace around */
  assert_null(ax_context_get(&plain));
  ax_builder_cancel(&inner);
  assert_ptr_equal(ax_context_get(&plain), &a);
  ax_builder_cancel(&outer);
  assert_null(ax_context_get(&plain));
}

static void of_the_thread(void **state) {
  (void)state;
  int a, b, c;
  ax_context first, second;
  ax_builder builder;
  ax_context_enter(&first, &plain, &a);
  assert_ptr_equal(ax_context_get(&plain), &a);
  ax_builder_begin(&builder, NULL);
  ax_context_enter(&second, &other, &b); /* also for a trace that has begun before */
  assert_ptr_equal(ax_context_get(&other), &b);
  assert_ptr_equal(ax_context_get(&plain), &a);
  assert_null(ax_context_own(&builder, &plain));
  assert_true(ax_context_set(&plain, &c));
  assert_ptr_equal(ax_context_get(&plain), &c);
  ax_builder_cancel(&builder);
  assert_ptr_equal(ax_context_get(&plain), &a);
  ax_context_leave(&second);
  assert_null(ax_context_get(&other));
  ax_context_leave(&first);
  assert_null(ax_context_get(&plain));
}

static void released_with_the_trace(void **state) {
  (void)state;
  ax_builder outer, inner;
  releases = 0;
  ax_builder_begin(&outer, NULL);
  assert_true(ax_context_set(&owned, ax_alloc(8)));
  ax_builder_begin(&inner, NULL);
  assert_true(ax_context_set(&plain, &releases));
  ax_builder_cancel(&inner);
  assert_int_equal(releases, 0);
  assert_true(ax_context_set(&owned, ax_context_own(&outer, &owned))); /* the same value stays */
  assert_int_equal(releases, 0);
  assert_true(ax_context_set(&owned, ax_alloc(8)));
  assert_int_equal(releases, 1);
  ax_builder_cancel(&outer);
  assert_int_equal(releases, 2);
}

static const ax_builder *told; /* in which trace a value was told that another one is given up, and of how many equations */
static uint32_t told_equations;
static void tell(void *value, const ax_builder *trace) {
  *(int *)value += 1;
  told = ax_builder_current();
  told_equations = trace->eqn_count;
}
static const ax_context_key heard = {.name = "heard", .given_up = tell};

/* Only what the trace itself has set hears of it, in the trace around; a value that was taken back does not. */
static void told_that_the_trace_is_given_up(void **state) {
  (void)state;
  int times[] = {0, 0};
  ax_builder outer, inner;
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_builder_begin(&outer, NULL);
  assert_true(ax_context_set(&heard, &times[0]));
  ax_builder_begin(&inner, NULL);
  (void)ax_neg(ax_builder_input(&inner, &type));
  assert_true(ax_context_set(&heard, &times[1]));
  ax_context_give_up(&inner);
  assert_ptr_equal(told, &inner);
  ax_builder_cancel(&inner);
  assert_ptr_equal(told, &outer);
  assert_int_equal(told_equations, 1);
  assert_true(ax_context_set(&heard, NULL));
  ax_builder_cancel(&outer);
  assert_int_equal(times[0], 0);
  assert_int_equal(times[1], 2);
}

/* out[0] = x * x + x, of which the product is equation 1. */
static AX_BODY(square_and_x) { out[0] = ax_add(ax_mul(in[0], in[0]), in[0]); }

static uint32_t number_of_copy(const ax_program *program, uint32_t number) {
  ax_builder builder;
  ax_value x, made;
  ax_program *copy;
  ax_eqn eqn = program->eqns[0];
  eqn.number = number;
  ax_builder_begin(&builder, &program->axes);
  x = ax_builder_input(&builder, &program->types[0]);
  ax_builder_stem(&builder, &eqn);
  made = ax_mul(x, x);
  TEST_OK(ax_builder_finish(&builder, &made, 1, &copy, NULL, NULL));
  const uint32_t found = copy->eqns[0].number;
  ax_program_release(copy);
  return found;
}

static void numbers_are_kept(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program = test_trace(square_and_x, NULL, &type, 1, 1);
  ax_context numbers;
  assert_int_equal(number_of_copy(program, 7), 1);
  ax_keep_numbers(&numbers);
  assert_int_equal(number_of_copy(program, 7), 7);
  ax_context_leave(&numbers);
  assert_int_equal(number_of_copy(program, 7), 1);
  ax_program_release(program);
}

/* The equation that others are made from may be gone before these are made. */
static void locations_are_copied(void **state) {
  (void)state;
  char location[] = "prog.c:12";
  ax_eqn eqn = {.location = location};
  ax_builder builder;
  ax_program *program;
  ax_builder_begin(&builder, &(ax_mesh){0});
  const ax_type type = AX_TYPE(AX_F32, 4);
  const ax_value x = ax_builder_input(&builder, &type);
  ax_builder_stem(&builder, &eqn);
  memset(location, 'x', sizeof location - 1);
  const ax_value made = ax_mul(x, x);
  TEST_OK(ax_builder_finish(&builder, &made, 1, &program, NULL, NULL));
  assert_string_equal(program->eqns[0].location, "prog.c:12");
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(inside_a_trace),          cmocka_unit_test(of_the_thread),
                                     cmocka_unit_test(released_with_the_trace), cmocka_unit_test(told_that_the_trace_is_given_up),
                                     cmocka_unit_test(numbers_are_kept),        cmocka_unit_test(locations_are_copied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
