/* Reports of C programs say the C line, through derivatives, batching and partitioning: of NaNs, of deadlocks, of what cannot be
   compiled, and in listings of plans and instructions. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

/* The text with the lines counted from `base`: "reports_test.c:+2". */
static void expect_line(const char *text, int base, int line, const char *rest) {
  char wanted[300];
  snprintf(wanted, sizeof wanted, "reports_test.c:%d%s", base + line, rest);
  if (text == NULL || strstr(text, wanted) == NULL) fail_msg("%s is not in: %s", wanted, text != NULL ? text : "nothing");
}

static const int of_root = __LINE__;
static void root(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sqrt(ax_sub(in[0], 1));
}
static void loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value root_of;
  ax_scan(AX_FN(root, 1, 1), 1, 4, false, in, &root_of);
  out[0] = ax_psum(ax_reduce_sum(root_of, AX_ALL_DIMS, false), "d");
}
static void on_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  if (ax_mesh_parse("d=2", &mesh) == AX_OK) ax_shard_map(&mesh, "d -> ", AX_FN(loss, 1, 1), in, out);
}
static void gradient(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(on_two, 1, 1), AX_FIRST(1), in, out);
}
static void gradients(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(gradient, 1, 1), in, out, NULL);
}

/* Runs it; the message is then of `status`. */
static void fails(ax_fn fn, const ax_type *type, const float *data, const ax_compile_options *options, ax_status status,
                  char **listing) {
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_array *in, *out;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_trace(fn, type, &program));
  TEST_OK(ax_compile(runtime, program, options, &executable));
  if (listing != NULL) TEST_OK(ax_executable_text(executable, listing));
  TEST_OK(ax_device_put_data(runtime, NULL, "", type, data, &in));
  assert_int_equal(ax_run(executable, &in, &out), status);
  ax_array_release(in);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void nans(void **state) {
  (void)state;
  const float data[] = {30, 40, 3, 40, 50, 60, 70, 80};
  const ax_fn fns[] = {AX_FN(on_two, 1, 1), AX_FN(gradient, 1, 1), AX_FN(gradients, 1, 1)};
  for (int k = 0; k < 3; k++) {
    const ax_type type = k < 2 ? AX_TYPE(AX_F32, 4) : AX_TYPE(AX_F32, 2, 4);
    char *listing;
    fails(fns[k], &type, data, &(ax_compile_options){.check_numerics = AX_CHECK_NAN}, AX_NOT_FINITE, &listing);
    assert_non_null(strstr(ax_message(), "sqrt f32["));
    expect_line(ax_message(), of_root, 3, ") makes 1 NaN in f32[");
    assert_non_null(strstr(ax_message(), "in iteration 2 of scan on device 1 (d=1)"));
    expect_line(strstr(listing, ", sqrt, "), of_root, 3, ": ");
    expect_line(strstr(listing, "   ; sqrt, "), of_root, 3, "\n");
    ax_string_free(listing);
  }
}

static const int of_logs = __LINE__;
static AX_BODY(first_log) { out[0] = ax_log(ax_cumsum(in[0], 0, false)); } /* not so short that it is written out */
static AX_BODY(second_log) { out[0] = ax_log(ax_cumsum(in[0], 0, false)); }
static AX_BODY(logs) {
  ax_value a, b, c;
  ax_closed_call(AX_FN(first_log, 1, 1), in, &a);
  ax_closed_call(AX_FN(second_log, 1, 1), AX_VALUES(ax_sub(in[0], 2)), &b);
  ax_closed_call(AX_FN(second_log, 1, 1), AX_VALUES(ax_sub(in[0], 3)), &c);
  out[0] = ax_add(ax_add(a, b), c);
}

/* Equal bodies that stand in different lines are not taken for one another; those of one line are one. */
static void equal_bodies(void **state) {
  (void)state;
  const float data[] = {2.5f};
  const ax_type type = AX_TYPE(AX_F32, 1);
  fails(AX_FN(logs, 1, 1), &type, data, &(ax_compile_options){.check_numerics = AX_CHECK_NAN}, AX_NOT_FINITE, NULL);
  expect_line(ax_message(), of_logs, 2, ") makes 1 NaN in f32[1]");
  assert_non_null(strstr(ax_message(), "one of 2 that hold it"));
}

static const int of_sum = __LINE__;
static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}
static void itself(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], 2);
}
static void some_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]);
  ax_if(ax_eq(ax_axis_index("d"), 1), AX_FN(itself, 1, 1), AX_FN(sum, 1, 1), &x, out);
}
static void some_sum_on_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  if (ax_mesh_parse("d=2", &mesh) == AX_OK) ax_shard_map_unchecked(&mesh, "d -> d", AX_FN(some_sum, 1, 1), in, out);
}

static void deadlocks(void **state) {
  (void)state;
  const float data[4] = {1, 2, 3, 4};
  const ax_type type = AX_TYPE(AX_F32, 4);
  fails(AX_FN(some_sum_on_two, 1, 1), &type, data, NULL, AX_DEADLOCK, NULL);
  expect_line(ax_message(), of_sum, 3, "): device 0 (d=0)");
  assert_non_null(strstr(ax_message(), "of branch 0 of cond, equation "));
}

static const int of_maps = __LINE__;
static void two_meshes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh four, six;
  if (ax_mesh_parse("a=4", &four) != AX_OK || ax_mesh_parse("b=6", &six) != AX_OK) return;
  ax_shard_map(&four, "a -> a", AX_FN(itself, 1, 1), in, out);
  ax_shard_map(&six, "b -> b", AX_FN(itself, 1, 1), out, out);
}

static void compiling(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  const ax_type type = AX_TYPE(AX_F32, 12);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_trace(AX_FN(two_meshes, 1, 1), &type, &program));
  assert_int_equal(ax_compile(runtime, program, NULL, &executable), AX_ABSENT);
  expect_line(strstr(ax_message(), "(a=4,) ("), of_maps, 5, ") and (b=6,) (");
  expect_line(strstr(ax_message(), "(b=6,) ("), of_maps, 6, ")");
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static const int of_two_sums = __LINE__;
static void twice_done(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value future = ax_psum_start(in[0], "");
  out[0] = ax_add(ax_done(future), ax_done(future));
}

static void futures(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 4);
  assert_int_equal(ax_trace(AX_FN(twice_done, 1, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_line(strstr(ax_message(), "start at "), of_two_sums, 3, ", is done twice");
}

/* --- Compiling while a trace is in progress --- */

/* What the compiler made of a program: a listing with lines and numbers of equations. */
static char *compiled(ax_fn fn) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  char *listing;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_trace(fn, &type, &program));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.check_numerics = AX_CHECK_NAN}, &executable));
  TEST_OK(ax_executable_text(executable, &listing));
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return listing;
}

typedef struct around {
  bool fails;
  char *listing;
} around;
static void compiles_inside(const ax_value *in, ax_value *out, void *context) {
  around *a = context;
  out[0] = ax_mul(in[0], in[0]);
  if (a->fails) ax_trace_fail("it was to fail");
  a->listing = compiled(AX_FN(gradient, 1, 1));
  out[0] = ax_add(out[0], in[0]);
}

/* A trace in progress, whether it has failed or not, is nothing to the compiler; nor is the compiler anything to the trace. */
static void compiled_inside_a_trace(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  char *alone = compiled(AX_FN(gradient, 1, 1));
  for (int fails = 0; fails < 2; fails++) {
    around a = {.fails = fails == 1};
    ax_program *program;
    const ax_status status = ax_trace(AX_CLOSURE(compiles_inside, 1, 1, &a), &type, &program);
    assert_int_equal(status, fails == 1 ? AX_INVALID_ARGUMENT : AX_OK);
    if (fails == 1) assert_non_null(strstr(ax_message(), "it was to fail"));
    assert_string_equal(a.listing, alone);
    free(a.listing);
    ax_program_release(program);
  }
  free(alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nans), cmocka_unit_test(equal_bodies), cmocka_unit_test(deadlocks),
                                     cmocka_unit_test(compiling), cmocka_unit_test(futures),
                                     cmocka_unit_test(compiled_inside_a_trace)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
