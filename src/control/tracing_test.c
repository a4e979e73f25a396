/* Loops, branches and calls traced by opening and closing their bodies, as blocks of C are: they make the programs that the public
   functions make. And small functions that these share. */
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "control/block.h"
#include "control/closed_call.h"
#include "control/custom.h"
#include "control/custom_linear.h"
#include "control/fori_loop.h"
#include "control/host_call.h"
#include "control/name.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_type scalar(ax_dtype dtype) { return ax_array_type(dtype, AX_DIMS()); }

/* Both functions make the same program. */
static void same(ax_function by_hand, ax_function by_function, const ax_type *types, uint32_t in_count, uint32_t out_count) {
  ax_program *one = test_trace(by_hand, NULL, types, in_count, out_count),
             *other = test_trace(by_function, NULL, types, in_count, out_count);
  assert_true(ax_program_equal(one, other));
  ax_program_release(one);
  ax_program_release(other);
}

/* Runs `function` as the only thing in a trace, on an f32[4] and an s32[]. It gives one result. */
static void inside_a_trace(ax_function function) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), scalar(AX_S32)};
  ax_program_release(test_trace(function, NULL, types, 2, 1));
}

/* --- scan --- */

static AX_BODY(step) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = ax_mul(in[0], in[1]);
}
static AX_BODY(scan_by_function) { (ax_scan)(AX_FN(step, 2, 2), 1, -1, true, 2, in, 2, out); }
static AX_BODY(scan_by_hand) {
  ax_value made[2], *at;
  ax_type types[] = {ax_typeof(in[0]), ax_typeof(in[1])};
  types[1] = ax_scan_slice_type(&types[1]);
  ax_scan_tracing t = {.params = {.length = 5, .reverse = true, .num_carry = 1},
                       .types = types,
                       .options = {.owner = "scan", .part = "body", .function = AX_FN(step, 2, 2)}};
  assert_true(ax_scan_begin(&t, step));
  while (t.settling.changed) {
    TEST_OK(ax_scan_open(&t, &at));
    step(at, made, NULL);
    TEST_OK(ax_scan_close(&t, made));
  }
  ax_settle_end(&t.settling);
  ax_scan_bind(&t, in, 2, out, 2);
  ax_body_deinit(&t.body);
}

static void a_scan_by_its_rounds(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 5, 4)};
  same(scan_by_hand, scan_by_function, types, 2, 2);
}

static void a_slice_lacks_the_first_dimension(void **state) {
  (void)state;
  const ax_type stack = TEST_TYPE(AX_S16, 7, 2, 3), slice = TEST_TYPE(AX_S16, 2, 3), got = ax_scan_slice_type(&stack);
  assert_true(ax_type_equal(&got, &slice));
}

/* --- while --- */

static AX_BODY(below) { out[0] = ax_lt(in[0], ax_integer(10)); }
static AX_BODY(more) { out[0] = ax_add(in[0], ax_integer(3)); }
static AX_BODY(while_by_function) { (ax_while)(AX_FN(below, 1, 1), AX_FN(more, 1, 1), 1, in, 1, out); }
static AX_BODY(while_by_hand) {
  ax_value made, *at;
  ax_type type = ax_typeof(in[0]);
  ax_while_tracing t = {.owner = "while", .part = "body", .count = 1, .types = &type};
  assert_true(ax_while_begin(&t, more));
  while (t.settling.changed) {
    TEST_OK(ax_while_open_test(&t, &at));
    below(at, &made, NULL);
    TEST_OK(ax_while_close_test(&t, &made));
    TEST_OK(ax_while_open(&t, &at));
    more(at, &made, NULL);
    TEST_OK(ax_while_close(&t, &made));
  }
  ax_settle_end(&t.settling);
  ax_while_bind(&t, in, out);
  ax_while_deinit(&t);
}

static void a_while_by_its_rounds(void **state) {
  (void)state;
  const ax_type type = scalar(AX_S32);
  same(while_by_hand, while_by_function, &type, 1, 1);
}

/* --- cond --- */

static AX_BODY(kept) { out[0] = in[0]; }
static AX_BODY(turned) { out[0] = ax_neg(in[0]); }
static AX_BODY(switch_by_function) {
  const ax_fn branches[] = {AX_FN(kept, 1, 1), AX_FN(turned, 1, 1)};
  (ax_switch)(in[1], 2, branches, 1, in, 1, out);
}
static AX_BODY(switch_by_hand) {
  ax_value made, *at;
  ax_cond_tracing t = {.owner = "switch", .branch_count = 2, .in_count = 1, .out_count = 1};
  assert_true(ax_cond_begin(&t, in[1], in));
  for (uint32_t b = 2; b-- > 0;) { /* in any order */
    TEST_OK(ax_cond_open(&t, b, &at));
    (b == 0 ? kept : turned)(at, &made, NULL);
    TEST_OK(ax_cond_close(&t, b, &made));
  }
  TEST_OK(ax_cond_join(&t));
  ax_cond_bind(&t, in[1], in, out);
  ax_cond_deinit(&t);
}

static void a_branch_by_its_cases(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), scalar(AX_S32)};
  same(switch_by_hand, switch_by_function, types, 2, 1);
}

/* --- Calls --- */

static AX_BODY(call_by_function) { (ax_closed_call)(AX_FN(turned, 1, 1), 1, in, 1, out); }
static AX_BODY(call_by_hand) {
  const ax_prim *prim = ax_prim_find("closed_call", 11);
  const ax_closed_call_params params = {0};
  ax_called_function(prim, &params, AX_FN(turned, 1, 1), in, out);
}
static AX_BODY(call_by_binding) {
  const ax_type type = ax_typeof(in[0]);
  ax_program *body = test_trace(turned, NULL, &type, 1, 1);
  const ax_closed_call_params params = {.body = body};
  assert_int_equal(ax_called_outs(&params), 1);
  ax_value *made = ax_called_bind(ax_prim_find("closed_call", 11), &(ax_closed_call_params){0}, body, in);
  assert_non_null(made);
  out[0] = made[0];
  ax_program_release(body);
}

static void a_call_of_a_body(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  same(call_by_hand, call_by_function, &type, 1, 1);
  same(call_by_binding, call_by_function, &type, 1, 1);
}

/* --- Functions with derivatives of their own --- */

static AX_BODY(scaled) { out[0] = ax_mul(in[0], *(ax_value *)context), out[1] = in[1]; }

/* Two functions of an f32[4] and an s32[], each with one captured value. */
static AX_BODY(custom_by_hand) {
  ax_custom c;
  ax_value around = ax_exp(in[0]), made[2];
  assert_true(ax_custom_init(&c, "custom", AX_CLOSURE(scaled, 2, 2, &around), in, made));
  assert_true(ax_custom_trace(&c, "other", AX_CLOSURE(scaled, 2, 2, &around), c.types, NULL));
  assert_true(ax_custom_join(&c, "other"));
  assert_int_equal(ax_custom_float_operands(&c), 1);
  assert_int_equal(ax_custom_float_results(&c), 1);
  assert_int_equal(ax_custom_captured(&c), 2);
  const ax_type type = ax_custom_result(&c, 1), wanted = scalar(AX_S32);
  assert_true(ax_type_equal(&type, &wanted));
  /* All captured values come first, of both functions. */
  ax_program *program = ax_custom_program(&c, &(ax_custom_part){.body = 1, .keeps = AX_NONE});
  assert_non_null(program);
  assert_int_equal(program->in_count, 4);
  assert_int_equal(program->out_count, 2);
  TEST_OK(ax_custom_linear_check(program));
  ax_program_release(program);
  ax_custom_deinit(&c);
  out[0] = in[0];
}
static void functions_are_joined(void **state) {
  (void)state;
  inside_a_trace(custom_by_hand);
}

static AX_BODY(other_result) { out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false); }
static AX_BODY(join_others) {
  ax_custom c;
  ax_value made;
  assert_true(ax_custom_init(&c, "custom", AX_FN(turned, 1, 1), in, &made));
  assert_true(ax_custom_trace(&c, "other", AX_FN(other_result, 1, 1), c.types, NULL));
  assert_false(ax_custom_join(&c, "rule"));
  ax_custom_deinit(&c);
  out[0] = in[0];
}
static void functions_that_do_not_join(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(join_others, 1, 1), &type, &program), AX_INVALID_ARGUMENT,
             "custom: result 0 is f32[4], but rule gives f32[]");
}

/* --- Blocks --- */

static void variables_are_named_as_the_head_names_them(void **state) {
  (void)state;
  char text[64];
  const ax_block_state b = {.listed = "n(1, 2), &x, & state.sums[0] , &\"a,b\"[i]"};
  assert_string_equal(ax_block_variable_name(&b, 0, text), "x");
  assert_string_equal(ax_block_variable_name(&b, 1, text), "state.sums[0]");
  assert_string_equal(ax_block_variable_name(&b, 2, text), "\"a,b\"[i]");
}

static void values_of_two_runs_are_compared(void **state) {
  (void)state;
  const ax_value a[] = {{7, 1}, {7, 2}}, b[] = {{7, 1}, {7, 3}}, c[] = {{8, 1}, {7, 2}};
  assert_true(ax_block_same_values(a, a, 2));
  assert_false(ax_block_same_values(a, b, 2));
  assert_true(ax_block_same_values(a, b, 1));
  assert_false(ax_block_same_values(a, c, 2));
}

/* The programs, and the values captured for them. */
static void bodies_of_two_runs_are_compared(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  const ax_block_state b = {.name = "AX_LOOP"};
  ax_value x = {7, 1}, y = {7, 2};
  ax_program *first = test_trace(turned, NULL, &type, 1, 1), *again = test_trace(turned, NULL, &type, 1, 1),
             *other = test_trace(kept, NULL, &type, 1, 1);
  const ax_body earlier = {first, &x, 1}, same_body = {again, &x, 1}, of_other = {other, &x, 1}, captures_other = {again, &y, 1};
  TEST_OK(ax_block_compare(&b, &earlier, &same_body));
  TEST_FAILS(ax_block_compare(&b, &earlier, &of_other), AX_INVALID_ARGUMENT, "AX_LOOP: the block makes something else each time");
  TEST_FAILS(ax_block_compare(&b, &earlier, &captures_other), AX_INVALID_ARGUMENT, "AX_LOOP: ");
  ax_program_release(first);
  ax_program_release(again);
  ax_program_release(other);
}

static AX_BODY(variables_by_hand) {
  ax_value x = in[0], n = in[1], *variables[] = {&x, &n}, starts[] = {in[0], in[1]};
  ax_block_state b = {.name = "AX_LOOP", .listed = "10, &x, &n", .variables = variables, .starts = starts, .count = 2};
  assert_null(ax_block_of(ax_builder_current()));
  assert_true(ax_block_check_starts(&b));
  ax_value *taken = ax_block_take(&b, NULL, 1);
  assert_non_null(taken);
  assert_true(ax_block_same_values(taken, starts, 2));
  const ax_value swapped[] = {in[1], in[0]};
  ax_block_give(&b, swapped);
  assert_true(x.id == in[1].id && n.id == in[0].id);
  ax_block_give(&b, NULL);
  assert_int_equal(x.trace, ax_poison.trace);
  out[0] = in[0];
}
static void variables_are_taken_and_given(void **state) {
  (void)state;
  inside_a_trace(variables_by_hand);
}

static AX_BODY(starts_as_number) {
  ax_value x = ax_integer(3), *variables[] = {&x}, starts[] = {x};
  const ax_block_state b = {.name = "AX_LOOP", .listed = "10, &x", .variables = variables, .starts = starts, .count = 1};
  assert_false(ax_block_check_starts(&b));
  out[0] = in[0];
}
static void a_variable_starts_as_an_array(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(starts_as_number, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "AX_LOOP: x starts as a number");
}

/* --- Words, axes of calls, bounds --- */

static AX_BODY(parse_words) {
  ax_axes words;
  assert_true(ax_parse_words("checkpoint_name", "attention,ffn", &words));
  assert_int_equal(words.count, 2);
  assert_string_equal(words.name[1], "ffn");
  out[0] = in[0];
}
static AX_BODY(parse_no_words) {
  ax_axes words;
  assert_false(ax_parse_words("checkpoint_name", "attention,,", &words));
  out[0] = in[0];
}
static void words_are_parsed(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program;
  inside_a_trace(parse_words);
  TEST_FAILS(ax_trace(AX_FN(parse_no_words, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "checkpoint_name: ");
}

static AX_BODY(axes_by_hand) {
  ax_axes axes;
  assert_true(ax_host_call_axes(&axes));
  assert_int_equal(axes.count, 2);
  assert_string_equal(axes.name[0], "a");
  assert_string_equal(axes.name[1], "b");
  out[0] = in[0];
}
static void a_call_is_made_along_all_axes(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_mesh axes;
  ax_program *program;
  TEST_OK(ax_mesh_parse("a=2,b=3", &axes));
  TEST_OK(ax_trace_on(&axes, AX_FN(axes_by_hand, 1, 1), &type, &program));
  ax_program_release(program);
}

static AX_BODY(bounds_by_hand) {
  ax_value start, bounds[] = {ax_integer(2), in[1]};
  int64_t length;
  assert_true(ax_fori_numbers("fori_loop", ax_integer(-2), ax_integer(5), &start, &length));
  assert_int_equal(length, 7);
  assert_true(ax_fori_values("fori_loop", bounds)); /* a number gets the other's dtype */
  assert_int_equal(ax_typeof(bounds[0]).dtype, AX_S32);
  assert_int_equal(ax_typeof(ax_fori_next("fori_loop", bounds[1])).dtype, AX_S32);
  out[0] = in[0];
}
static void bounds_of_counting_loops(void **state) {
  (void)state;
  inside_a_trace(bounds_by_hand);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scan_by_its_rounds),
      cmocka_unit_test(a_slice_lacks_the_first_dimension),
      cmocka_unit_test(a_while_by_its_rounds),
      cmocka_unit_test(a_branch_by_its_cases),
      cmocka_unit_test(a_call_of_a_body),
      cmocka_unit_test(functions_are_joined),
      cmocka_unit_test(functions_that_do_not_join),
      cmocka_unit_test(variables_are_named_as_the_head_names_them),
      cmocka_unit_test(values_of_two_runs_are_compared),
      cmocka_unit_test(bodies_of_two_runs_are_compared),
      cmocka_unit_test(variables_are_taken_and_given),
      cmocka_unit_test(a_variable_starts_as_an_array),
      cmocka_unit_test(words_are_parsed),
      cmocka_unit_test(a_call_is_made_along_all_axes),
      cmocka_unit_test(bounds_of_counting_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
