/* Timelines: what is kept, shown, and refused. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/exec.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

static void body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value sum = ax_psum(in[0], "d");
  out[0] = ax_mul(ax_matmul(in[0], in[0]), ax_pvary(sum, "d"));
}

static ax_status run_once(ax_executable *executable, ax_runtime *runtime, const ax_mesh *mesh) {
  float data[4 * 64 * 64] = {0};
  ax_type type = ax_array_type(AX_F32, 2, (int64_t[]){4 * 64, 64});
  ax_array *in, *out;
  assert_int_equal(ax_device_put(runtime, mesh, "d", &type, data, &in), AX_OK);
  ax_status status = ax_run(executable, 1, &in, 1, &out);
  ax_array_release(in);
  ax_array_release(out);
  return status;
}

static void check(ax_policy policy) {
  const ax_runtime_options options = {.workers = 3, .policy = policy};
  const test_map map = {"d=4", {"d"}, {"d"}, body, false, NULL};
  ax_type type = ax_array_type(AX_F32, 2, (int64_t[]){4 * 64, 64});
  ax_program *program = test_trace_map(&map, &type);
  ax_runtime *runtime;
  ax_executable *timed, *plain;
  ax_mesh mesh;
  char *text;
  assert_int_equal(ax_mesh_parse("d=4", &mesh), AX_OK);
  assert_int_equal(ax_runtime_create(&options, &runtime), AX_OK);
  assert_int_equal(ax_compile(runtime, program, NULL, &plain), AX_OK);
  assert_int_equal(ax_compile(runtime, program, &(ax_compile_options){.timeline = true}, &timed), AX_OK);
  assert_ptr_not_equal(plain, timed);
  test_use_threads(timed);
  TEST_FAILS(ax_executable_timeline(plain, AX_TIMELINE_TEXT, &text), AX_INVALID_ARGUMENT, "without ax_compile_options.timeline");
  TEST_FAILS(ax_executable_timeline(timed, AX_TIMELINE_TEXT, &text), AX_INVALID_ARGUMENT, "no run has ended");
  for (int i = 0; i < 3; i++) assert_int_equal(run_once(timed, runtime, &mesh), AX_OK);
  TEST_FAILS(ax_executable_timeline(timed, (ax_timeline_form)7, &text), AX_INVALID_ARGUMENT, "the form is 7");
  TEST_FAILS(ax_executable_timeline(NULL, AX_TIMELINE_TEXT, &text), AX_INVALID_ARGUMENT, "no executable");
  assert_int_equal(ax_executable_timeline(timed, AX_TIMELINE_TEXT, &text), AX_OK);
  assert_non_null(strstr(text, "\ndevice 3     "));
  assert_non_null(strstr(text, " under way  "));
  assert_non_null(strstr(text, "psum f32[64,64]{V:d} over d"));
  assert_non_null(strstr(text, "dot_general f32[64,64]"));
  ax_string_free(text);
  assert_int_equal(ax_executable_timeline(timed, AX_TIMELINE_JSON, &text), AX_OK);
  uint32_t pushes = 0; /* one a device in each of the two processes */
  for (const char *at = text; (at = strstr(at, "{\"name\":\"psum\"")) != NULL; at++) pushes++;
  assert_in_range(pushes, 2, 8); /* of several devices that wait in turn, the first carries all */
  assert_string_equal(text + strlen(text) - 3, "]}\n");
  ax_string_free(text);
  ax_executable_release(timed);
  ax_executable_release(plain);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

static void test_timeline(void **state) {
  (void)state;
  check(AX_POLICY_PARALLEL);
  check(AX_POLICY_FIXED);
  check(AX_POLICY_SEEDED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_timeline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
