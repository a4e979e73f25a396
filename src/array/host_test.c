/* Host arrays put down, read back and run: as the same through ax_device_put_data, ax_run and ax_array_read; and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/axle.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

static ax_runtime *runtime;

static int set_up(void **state) {
  (void)state;
  return ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime) != AX_OK;
}

static int tear_down(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

static void views(void **state) {
  (void)state;
  float data[6] = {1, 2, 3, 4, 5, 6};
  ax_host_array view = ax_host_view(AX_F32, AX_DIMS(2, 3), data), wrong = ax_host_view(AX_F32, AX_DIMS(-1), data);
  assert_true(view.data == data && view.view && view.rank == 2 && view.dims[0] == 2 && view.dims[1] == 3);
  assert_int_equal(wrong.dtype, AX_NO_DTYPE);
  assert_int_equal(ax_host_view(AX_F32, AX_LIST(17, (int64_t[17]){0}), data).dtype, AX_NO_DTYPE);
  ax_host_array_release(&view); /* and `data` stays */
  assert_true(view.data == NULL && view.dtype == AX_NO_DTYPE && data[5] == 6);
  ax_host_array_release(&view);
  ax_host_array_release(NULL);
}

/* What ax_print prints of the view. */
static void check_printed(const ax_host_array *view, const char *wanted) {
  char line[64] = "";
  fflush(stdout);
  FILE *file = tmpfile();
  const int out = dup(1);
  assert_true(file != NULL && out >= 0 && dup2(fileno(file), 1) == 1);
  ax_print("x", view);
  fflush(stdout);
  assert_true(dup2(out, 1) == 1);
  close(out);
  rewind(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  assert_string_equal(line, wanted);
}

/* A key is held as two words, and is no number. */
static void keys(void **state) {
  (void)state;
  const uint32_t words[2][2] = {{1, 2}, {UINT32_MAX, 0}};
  const uint64_t numbers[2] = {0};
  const ax_host_array view = ax_host_view(AX_KEY, AX_DIMS(2), &words[0][0]);
  assert_int_equal(view.dtype, AX_KEY);
  assert_true(isnan(ax_host_at(&view, 0)));
  assert_int_equal(ax_host_view(AX_KEY, AX_DIMS(2), numbers).dtype, AX_NO_DTYPE);
  check_printed(&view, "x nan nan\n");
}

/* An array whose rank or dimensions are none has no elements, and prints as nothing. */
static void unsound(void **state) {
  (void)state;
  float data[2] = {1, 2};
  ax_host_array *view = malloc(sizeof *view);
  *view = ax_host_view(AX_F32, AX_DIMS(2), data);
  assert_true(ax_host_at(view, 1) == 2);
  view->dims[0] = INT64_C(1) << 40, view->dims[1] = INT64_C(1) << 40, view->rank = 2;
  assert_true(isnan(ax_host_at(view, -1)));
  view->rank = 99;
  assert_true(isnan(ax_host_at(view, 0)));
  check_printed(view, "x nothing\n");
  free(view);
}

static void put_and_read(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_array *array;
  ax_host_array back;
  int16_t data[4][6];
  for (int i = 0; i < 24; i++) data[i / 6][i % 6] = (int16_t)(i * 37 - 300);
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  ax_host_array view = ax_host_view(AX_S16, AX_DIMS(4, 6), data);
  static const char *const specs[] = {"", "a", "_,b", "a,b", "_,a+b"};
  for (size_t i = 0; i < AX_COUNT(specs); i++) {
    TEST_OK(ax_device_put(runtime, &mesh, specs[i], &view, &array));
    TEST_OK(ax_array_to_host(array, &back));
    assert_true(back.dtype == AX_S16 && back.rank == 2 && back.dims[0] == 4 && back.dims[1] == 6 && !back.view);
    assert_memory_equal(back.data, data, sizeof data);
    ax_host_array_release(&back);
    ax_array_release(array);
  }
  TEST_OK(ax_device_put(runtime, NULL, "", &(ax_host_array){.dtype = AX_F64, .rank = 2, .dims = {0, 5}}, &array)); /* nothing in it */
  TEST_OK(ax_array_to_host(array, &back));
  assert_true(back.rank == 2 && back.dims[1] == 5 && back.data != NULL);
  ax_host_array_release(&back);
  ax_array_release(array);
}

static void refused(void **state) {
  (void)state;
  ax_mesh mesh;
  float data[6] = {0};
  ax_array *array;
  ax_host_array view = ax_host_view(AX_F32, AX_DIMS(6), data), none = {0}, back = {.rank = 3};
  TEST_OK(ax_mesh_parse("a=4", &mesh));
  TEST_FAILS(ax_device_put(runtime, NULL, "", NULL, &array), AX_INVALID_ARGUMENT, "no host array");
  assert_null(array);
  TEST_FAILS(ax_device_put(NULL, NULL, "", &view, &array), AX_INVALID_ARGUMENT, "no runtime");
  TEST_FAILS(ax_device_put(runtime, NULL, "", &none, &array), AX_INVALID_ARGUMENT, "device_put: ");
  TEST_FAILS(ax_device_put(runtime, &mesh, "a", &view, &array), AX_INVALID_ARGUMENT, "f32[6]");
  TEST_FAILS(ax_device_put(runtime, NULL, "", &(ax_host_array){.dtype = AX_F32}, &array), AX_INVALID_ARGUMENT, "no data");
  TEST_FAILS(ax_device_put(runtime, NULL, "", &(ax_host_array){.dtype = AX_F32, .rank = 99, .data = data}, &array),
             AX_INVALID_ARGUMENT, "");
  TEST_FAILS(ax_array_to_host(NULL, &back), AX_INVALID_ARGUMENT, "no array");
  assert_int_equal(back.rank, 0);
}

/* --- Runs --- */

/* (w, x) -> (w + sum of x over the devices, x's doubles) */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_psum(in[1], "d"));
  out[1] = ax_add(in[1], in[1]);
}

static ax_executable *compiled(const bool *donate) {
  static const test_map map = {.mesh = "d=2", .in_specs = {"", "d"}, .out_specs = {"", "d"}, .body = step};
  const ax_type types[] = {TEST_TYPE(AX_F32, 3), TEST_TYPE(AX_F32, 6)};
  ax_executable *executable;
  ax_program *program = test_trace_map(&map, types);
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = test_args(donate, 2)}, &executable));
  ax_program_release(program);
  return executable;
}

static void runs(void **state) {
  (void)state;
  const float w[3] = {100, 200, 300}, x[6] = {1, 2, 3, 10, 20, 30};
  for (int donated = 0; donated < 2; donated++) {
    ax_executable *executable = compiled(donated ? (const bool[]){true, true} : NULL);
    const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(3), w), ax_host_view(AX_F32, AX_DIMS(6), x)};
    for (int again = 0; again < 2; again++) {
      ax_host_array out[2];
      TEST_OK(ax_run_host(executable, in, out));
      assert_true(out[0].dtype == AX_F32 && out[0].rank == 1 && out[0].dims[0] == 3 && out[1].dims[0] == 6);
      assert_memory_equal(out[0].data, ((float[]){111, 222, 333}), sizeof w);
      assert_memory_equal(out[1].data, ((float[]){2, 4, 6, 20, 40, 60}), sizeof x);
      for (int k = 0; k < 2; k++) ax_host_array_release(&out[k]);
    }
    ax_executable_release(executable);
  }
}

/* --- A function, compiled at once --- */

static void scaled(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_mul(in[0], ax_real(*(const double *)context));
}

static void jitted(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 3)};
  double scale = 3;
  ax_executable *executable = NULL, *again;
  ax_host_array out;
  TEST_OK(ax_jit(runtime, AX_CLOSURE(scaled, 1, 1, &scale), types, NULL, &executable));
  TEST_OK(ax_jit(runtime, AX_CLOSURE(scaled, 1, 1, &scale), types, NULL, &again));
  assert_ptr_equal(executable, again); /* equal programs share one */
  const float data[] = {1, 2, 3};
  TEST_OK(ax_run_host(executable, AX_HOST_ARRAYS(ax_host_view(AX_F32, AX_DIMS(3), data)), &out));
  assert_memory_equal(out.data, ((float[]){3, 6, 9}), 3 * sizeof(float));
  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_executable_release(again);
  scale = 1e39;
  TEST_FAILS(ax_jit(runtime, AX_CLOSURE(scaled, 1, 1, &scale), types, NULL, &executable), AX_INVALID_ARGUMENT, "f32 cannot hold");
  assert_null(executable);
  TEST_FAILS(ax_jit(NULL, AX_CLOSURE(scaled, 1, 1, &scale), types, NULL, &executable), AX_INVALID_ARGUMENT, "no runtime");
}

static void runs_refused(void **state) {
  (void)state;
  const float data[6] = {0};
  ax_executable *executable = compiled(NULL);
  ax_host_array out[2] = {{.rank = 5}, {.rank = 5}},
                in[2] = {ax_host_view(AX_F32, AX_DIMS(3), data), ax_host_view(AX_S32, AX_DIMS(6), (const void *)data)};
  TEST_FAILS(ax_run_host(NULL, in, AX_LIST(2, out)), AX_INVALID_ARGUMENT, "no executable");
  assert_true(out[0].rank == 0 && out[1].rank == 0);
  TEST_FAILS(ax_run_host(executable, AX_LIST(1, in), out), AX_INVALID_ARGUMENT,
             "run_host: the program takes 2 arguments, but the list has 1");
  TEST_FAILS(ax_run_host(executable, in, out), AX_INVALID_ARGUMENT,
             "run_host: 1 of 2 arguments do not match:\n  argument 1: the program takes f32[6], got s32[6]");
  in[1] = (ax_host_array){.dtype = AX_F32, .rank = 1, .dims = {6}};
  TEST_FAILS(ax_run_host(executable, in, out), AX_INVALID_ARGUMENT,
             "argument 1: the program takes f32[6], got f32[6] without data");
  TEST_FAILS(ax_run_host(executable, NULL, out), AX_INVALID_ARGUMENT,
             "run_host: 2 of 2 arguments do not match:\n  argument 0: the program takes f32[3], got nothing\n  argument 1: ");
  ax_executable_release(executable);
}

static ax_status run_once(void *context) {
  const float data[6] = {0};
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(3), data), ax_host_view(AX_F32, AX_DIMS(6), data)};
  ax_host_array out[2] = {{.rank = 5}, {.rank = 5}};
  ax_status status = ax_run_host(context, in, out);
  assert_true(status == AX_OK || (out[0].data == NULL && out[1].data == NULL && out[0].rank == 0));
  for (int k = 0; k < 2; k++) ax_host_array_release(&out[k]);
  ax_runtime_trim(runtime);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  ax_executable *executable = compiled(NULL);
  TEST_OK(run_once(executable));
  assert_true(test_each_allocation(run_once, executable) > 3);
  ax_executable_release(executable);
}

/* --- Once --- */

static void scaled_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(ax_mul(in[0], in[1]), AX_ALL_DIMS, false);
  out[1] = ax_gt(in[0], ax_integer(2));
}
static void mismatched(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[0]);
}

static void applied_once(void **state) {
  (void)state;
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(3), ((float[]){1, 2, 3})),
                              ax_host_view(AX_F32, AX_DIMS(), (float[]){0.5f})};
  ax_host_array out[2];
  ax_runtime *of_two[] = {NULL, runtime};
  for (int i = 0; i < 2; i++) {
    TEST_OK(ax_apply(of_two[i], AX_FN(scaled_sum, 2, 2), in, out));
    assert_true(ax_host_at(&out[0], 0) == 3);
    assert_true(ax_host_at(&out[1], 1) == 0 && ax_host_at(&out[1], 2) == 1);
    assert_true(isnan(ax_host_at(&out[1], 3)) && isnan(ax_host_at(&out[1], -1)) && isnan(ax_host_at(NULL, 0)));
    for (int k = 0; k < 2; k++) ax_host_array_release(&out[k]);
    assert_true(isnan(ax_host_at(&out[0], 0)));
  }
  out[0] = in[0];
  const ax_host_array matrix = ax_host_view(AX_F32, AX_DIMS(1, 3), ((float[]){1, 2, 3})), none = {0};
  TEST_FAILS(ax_apply(runtime, AX_FN(mismatched, 1, 1), &matrix, out), AX_INVALID_ARGUMENT, "matmul: f32[1,3] and f32[1,3]");
  assert_null(out[0].data);
  TEST_FAILS(ax_apply(runtime, AX_FN(mismatched, 1, 1), &none, out), AX_INVALID_ARGUMENT, "input 0");
  TEST_FAILS(ax_apply(NULL, AX_FN(mismatched, 1, 1), NULL, out), AX_INVALID_ARGUMENT, "host array");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(applied_once),   cmocka_unit_test(views),  cmocka_unit_test(put_and_read),
                                     cmocka_unit_test(refused),        cmocka_unit_test(runs),   cmocka_unit_test(runs_refused),
                                     cmocka_unit_test(without_memory), cmocka_unit_test(jitted), cmocka_unit_test(unsound), cmocka_unit_test(keys)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
