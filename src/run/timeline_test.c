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
  ax_type type = ax_array_type(AX_F32, AX_DIMS(4 * 64, 64));
  ax_array *in, *out;
  assert_int_equal(ax_device_put_data(runtime, mesh, "d", &type, data, &in), AX_OK);
  ax_status status = ax_run(executable, &in, &out);
  ax_array_release(in);
  ax_array_release(out);
  return status;
}

typedef struct spans { /* of a run, as they are told */
  int psums, others;
  int64_t last; /* when the latest began */
  uint32_t devices;
} spans;

static void see(const ax_timeline_span *span, void *context) {
  spans *s = context;
  assert_true(span->begin >= s->last && span->end >= span->begin);
  s->last = span->begin;
  s->devices |= 1u << span->device;
  *(strcmp(span->primitive, "psum") == 0 ? &s->psums : &s->others) += 1;
}

static void check_spans(ax_executable *plain, ax_executable *timed) {
  spans s = {0};
  TEST_FAILS(ax_executable_visit_timeline(plain, see, &s), AX_INVALID_ARGUMENT, "without ax_compile_options.timeline");
  TEST_FAILS(ax_executable_visit_timeline(NULL, see, &s), AX_INVALID_ARGUMENT, "no executable");
  TEST_OK(ax_executable_visit_timeline(timed, see, &s));
  assert_in_range(s.psums, 1, 4);
  assert_true(s.others >= 4 && s.devices == 15);
}

static void check(ax_policy policy) {
  const ax_runtime_options options = {.workers = 3, .policy = policy};
  const test_map map = {"d=4", {"d"}, {"d"}, body, false, NULL};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(4 * 64, 64));
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
  check_spans(plain, timed);
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
  assert_non_null(strstr(text, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":3,\"args\":{\"name\":\"device 3\"}},\n"));
  assert_non_null(strstr(text, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"thread 0\"}},\n"));
  assert_null(strstr(text, "\"device 4\""));
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

static void see_alone(const ax_timeline_span *span, void *context) {
  int64_t *end = context;
  assert_true(span->begin >= *end);
  *end = span->end;
}

/* Of three threads one works on a run: no two spans are at the same time. */
static void test_run_workers(void **state) {
  (void)state;
  const test_map map = {"d=4", {"d"}, {"d"}, body, false, NULL};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(4 * 64, 64));
  ax_program *program = test_trace_map(&map, &type);
  ax_runtime *runtime;
  ax_executable *timed;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 3, .run_workers = 1}, &runtime));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.timeline = true}, &timed));
  for (int i = 0; i < 10; i++) {
    int64_t end = 0;
    TEST_OK(run_once(timed, runtime, &mesh));
    TEST_OK(ax_executable_visit_timeline(timed, see_alone, &end));
  }
  ax_executable_release(timed);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

/* An equation that exchanges several times, at a place whose name JSON has to escape. */
static void nothing_sent(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value none = ax_full(AX_S32, AX_DIMS(4), 0);
  out[0] = (ax_ragged_all_to_all)(in[0], in[0], none, none, none, none, "d");
  ax_stamp("a\\b.c:3: ragged_all_to_all");
}

static void test_several_exchanges(void **state) {
  (void)state;
  const test_map map = {"d=4", {"d"}, {"d"}, nothing_sent, false, NULL};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(4 * 64, 64));
  ax_program *program = test_trace_map(&map, &type);
  ax_runtime *runtime;
  ax_executable *timed;
  ax_mesh mesh;
  char *text;
  assert_int_equal(ax_mesh_parse("d=4", &mesh), AX_OK);
  assert_int_equal(ax_runtime_create(NULL, &runtime), AX_OK);
  assert_int_equal(ax_compile(runtime, program, &(ax_compile_options){.timeline = true}, &timed), AX_OK);
  assert_int_equal(run_once(timed, runtime, &mesh), AX_OK);
  assert_int_equal(ax_executable_timeline(timed, AX_TIMELINE_TEXT, &text), AX_OK);
  const char *way = strstr(text, " under way  ");
  assert_non_null(way);
  assert_null(strstr(way + 1, " under way  "));
  ax_string_free(text);
  assert_int_equal(ax_executable_timeline(timed, AX_TIMELINE_JSON, &text), AX_OK);
  assert_non_null(strstr(text, "\"ragged_all_to_all (a\\\\b.c:3)\""));
  ax_string_free(text);
  ax_executable_release(timed);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_timeline), cmocka_unit_test(test_run_workers), cmocka_unit_test(test_several_exchanges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
