/* Lists carry their counts: those that are written out, C arrays, variables. A list that is too short, or one that is written out
   and too long, is an error at the line of its call, with both numbers. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static AX_BODY(sum) { out[0] = ax_add(in[0], in[1]); }
static AX_BODY(total) { out[0] = ax_reduce_sum(ax_mul(in[0], in[1]), AX_ALL_DIMS, false); }
static AX_BODY(both) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = ax_sub(in[0], in[1]);
}
static AX_BODY(next) {
  out[0] = ax_add(in[1], 1);
  out[1] = ax_mul(in[2], 2);
}
static AX_BODY(step) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = in[0];
}
static AX_BODY(is_small) { out[0] = ax_lt(in[0], 10); }
static AX_BODY(doubled) { out[0] = ax_mul(in[0], 2); }

/* The error of a call, without the folders in front of its file. */
static const char *told(void) {
  const char *text = strstr(ax_message(), "lists_test.c:");
  return text != NULL ? text : ax_message();
}

/* Expects the last message to name the file and this line, and to end with `rest`. */
static void expect_at(int line, const char *rest) {
  char wanted[300];
  snprintf(wanted, sizeof wanted, "lists_test.c:%d: ", line);
  if (strstr(told(), wanted) == NULL || strstr(told(), rest) == NULL) fail_msg("%s and %s are not in: %s", wanted, rest, told());
}

static void types_are_counted(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4), types[] = {type, type, type}, *unknown = types;
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type, type), &program));
  ax_program_release(program);
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), types, &program)); /* it may be longer */
  ax_program_release(program);
  TEST_OK(ax_trace(AX_FN(sum, 2, 1), AX_LIST(2, unknown), &program));
  ax_program_release(program);
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 1");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 1");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(type, type, type), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "trace: the function takes 2 inputs, but the list has 3");
  assert_int_equal(ax_trace(AX_FN(sum, 2, 1), AX_LIST(1, unknown), &program), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "the list has 1");
}

/* Each is a body over in[0], in[1]: f32[4], with one list that is wrong; `line` is that of the call. */
static int line;
#define AT (line = __LINE__)

static AX_BODY(short_operands) { AT, ax_grad(AX_FN(total, 2, 1), AX_ARGS(0), AX_VALUES(in[0]), out); }
static AX_BODY(long_operands) { AT, ax_grad(AX_FN(total, 2, 1), AX_ARGS(0), AX_VALUES(in[0], in[1], in[0]), out); }
static AX_BODY(one_operand) {
  ax_value x = in[0];
  AT, ax_closed_call(AX_FN(sum, 2, 1), &x, out);
}
static AX_BODY(short_results) {
  ax_value found[1];
  AT, ax_value_and_grad(AX_FN(total, 2, 1), AX_ALL_ARGS, in, found);
  out[0] = found[0];
}
static AX_BODY(short_pair) {
  ax_value found[2];
  AT, ax_closed_call(AX_FN(both, 2, 2), in, &found[1]);
  out[0] = found[1];
}
/* A member of a struct ends where the next begins. */
static AX_BODY(short_member) {
  struct { ax_value gradient, kept; } found = {.kept = in[1]};
  AT, ax_grad(AX_FN(total, 2, 1), AX_FIRST(2), in, &found.gradient);
  out[0] = found.kept;
}
static AX_BODY(short_carries) {
  ax_value end[1];
  AT, ax_fori_loop(0, 3, AX_FN(next, 3, 2), in, end);
  out[0] = end[0];
}
static AX_BODY(short_scan) {
  ax_value end[1];
  AT, ax_scan(AX_FN(step, 2, 2), 1, 4, false, AX_VALUES(ax_reduce_sum(in[0], AX_ALL_DIMS, false), in[1]), end);
  out[0] = end[0];
}
static AX_BODY(short_while) { AT, ax_while(AX_FN(is_small, 1, 1), AX_FN(doubled, 1, 1), AX_VALUES(), out); }
static AX_BODY(short_if) { AT, ax_if(ax_full(AX_BOOL, 0, NULL, 1), AX_FN(sum, 2, 1), AX_FN(sum, 2, 1), AX_VALUES(in[0]), out); }
static AX_BODY(short_tangents) {
  ax_value y, dy;
  AT, ax_jvp(AX_FN(sum, 2, 1), AX_FIRST(2), in, AX_VALUES(in[0]), &y, &dy);
  out[0] = dy;
}
static AX_BODY(short_gradients) {
  ax_value y, gradient;
  AT, ax_vjp(AX_FN(sum, 2, 1), AX_FIRST(2), in, AX_VALUES(in[0]), &y, &gradient);
  out[0] = gradient;
}
static AX_BODY(short_vmap) { AT, ax_vmap(AX_FN(sum, 2, 1), AX_VALUES(in[0]), out, NULL); }
static AX_BODY(short_permutation) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  AT, out[0] = ax_transpose(x, AX_DIMS(0));
}
static AX_BODY(long_permutation) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  AT, out[0] = ax_transpose(x, AX_DIMS(1, 0, 2));
}
static AX_BODY(short_start) { AT, out[0] = ax_slice(in[0], AX_DIMS(), AX_DIMS(1), NULL); }
static AX_BODY(short_limit) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, 2));
  const int64_t start[2] = {0}, limit[1] = {1};
  AT, out[0] = ax_slice(x, start, limit, NULL);
}
static AX_BODY(no_count) {
  const ax_fn *branches = context;
  AT, ax_switch(ax_full(AX_S32, 0, NULL, 0), branches, in, out);
}

static void lists_in_traces_are_counted(void **state) {
  (void)state;
  ax_fn branch = AX_FN(sum, 2, 1);
  const struct {
    ax_function body;
    const char *message;
  } slips[] = {
      {short_operands, "grad: the function takes 2 operands, but the list has 1"},
      {long_operands, "grad: the function takes 2 operands, but the list has 3"},
      {one_operand, "closed_call: the function takes 2 operands, but the list has 1"},
      {short_results, "value_and_grad: the call gives 3 results, but the list has 1"},
      {short_member, "grad: the call gives 2 results, but the list has 1"},
      {short_pair, "closed_call: the call gives 2 results, but the list has 1"},
      {short_carries, "fori_loop: the call gives 2 results, but the list has 1"},
      {short_scan, "scan: the call gives 2 results, but the list has 1"},
      {short_while, "while: the function takes 1 operand, but the list has 0"},
      {short_if, "if: the function takes 2 operands, but the list has 1"},
      {short_tangents, "jvp: it takes 2 tangents, but the list has 1"},
      {short_gradients, "vjp: the call gives 2 results, but the list has 1"},
      {short_vmap, "vmap: the function takes 2 operands, but the list has 1"},
      {short_permutation, "transpose: the array has 2 dimensions, but the list has 1"},
      {long_permutation, "transpose: the array has 2 dimensions, but the list has 3"},
      {short_start, "slice: the array has 1 dimension, but the list has 0"},
      {short_limit, "slice: the array has 2 dimensions, but the list has 1"},
      {no_count, "switch: nothing says how many branches there are: AX_LIST(count, pointer) does"},
  };
  const ax_type type = AX_TYPE(AX_F32, 4);
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program;
    void *volatile context = &branch; /* what it points to is not known where it is used */
    assert_int_equal(ax_trace(AX_CLOSURE(slips[i].body, 2, 1, context), AX_TYPES(type, type), &program), AX_INVALID_ARGUMENT);
    expect_at(line, slips[i].message);
  }
}

/* Longer arrays, pointers that nothing is known of, and lists from the middle of arrays are as good as ever. */
static AX_BODY(roomy) {
  ax_value found[5] = {in[0], in[1]}, pair[] = {in[0], in[1]};
  ax_value *volatile at = &found[2];
  ax_closed_call(AX_FN(both, 2, 2), pair, &found[1]);
  ax_closed_call(AX_FN(both, 2, 2), found, at);
  ax_closed_call(AX_FN(both, 2, 2), AX_LIST(2, found + 1), AX_LIST(2, found + 3));
  ax_closed_call(AX_FN(sum, 2, 1), &found[3], out);
}

static void what_is_long_enough_passes(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_trace(AX_FN(roomy, 2, 1), AX_TYPES(type, type), &program));
  ax_program_release(program);
}

static void runs_are_counted(void **state) {
  (void)state;
  float x[4] = {1, 2, 3, 4}, y[4] = {4, 3, 2, 1}, z[4];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_host_array hosts[3], given[2] = {ax_host_view(AX_F32, AX_DIMS(4), x), ax_host_view(AX_F32, AX_DIMS(4), y)};
  ax_array *in[2], *out[2], *one;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(both, 2, 2), AX_TYPES(type, type), NULL, &executable));
  TEST_OK(ax_executable_put(executable, 0, x, &in[0]));
  TEST_OK(ax_executable_put(executable, 1, y, &in[1]));
  assert_int_equal(ax_run(executable, in, &one), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run: the program gives 2 results, but the list has 1");
  assert_null(one);
  assert_int_equal(ax_run(executable, AX_ARRAYS(in[0]), out), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run: the program takes 2 arguments, but the list has 1");
  assert_null(out[0]);
  assert_null(out[1]);
  assert_int_equal(ax_run_host(executable, given, &hosts[2]), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "run_host: the program gives 2 results, but the list has 1");
  assert_int_equal(ax_apply(runtime, AX_FN(both, 2, 2), AX_HOST_ARRAYS(given[0]), hosts), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "apply: the function takes 2 operands, but the list has 1");
  assert_int_equal(ax_jit_host(runtime, AX_FN(both, 2, 2), &given[1], NULL, &executable), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "jit_host: the function takes 2 inputs, but the list has 1");
  TEST_OK(ax_jit(runtime, AX_FN(both, 2, 2), AX_TYPES(type, type), NULL, &executable));
  TEST_OK(ax_run(executable, in, out));
  TEST_OK(ax_array_read(out[1], z, sizeof z));
  assert_true(z[0] == -3 && z[3] == 3);
  for (int i = 0; i < 2; i++) {
    ax_array_release(in[i]);
    ax_array_release(out[i]);
  }
  ax_executable_release(executable);
  ax_executable_release(executable); /* equal programs are one executable, of which this is the first reference */
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(types_are_counted),
      cmocka_unit_test(lists_in_traces_are_counted),
      cmocka_unit_test(what_is_long_enough_passes),
      cmocka_unit_test(runs_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
