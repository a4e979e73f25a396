/* Timelines of several processes, which are threads of this one, as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/processes.h"
#include "support/cmocka.h"
#include "support/jobs.h"
#include "support/run.h"

static AX_BODY(sum) { out[0] = ax_psum(in[0], "x"); }

typedef struct timed {
  ax_program *program;
  ax_timeline_form form;
  bool is_timed, is_run, is_hostile;
} timed;

static uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text++) count++;
  return count;
}

static ax_status check_json(ax_runtime *runtime, const char *text) {
  const uint32_t processes = ax_process_count(runtime);
  char name[160];
  for (uint32_t p = 0; p < processes; p++) {
    snprintf(name, sizeof name, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"process %u on ", p, p);
    TEST_HERE(strstr(text, name) != NULL);
  }
  for (uint32_t d = 0; d < 4; d++) {
    uint32_t process;
    ax_mesh mesh;
    AX_TRY(ax_mesh_parse("x=4", &mesh));
    AX_TRY(ax_runtime_process_of(runtime, &mesh, d, &process));
    snprintf(name, sizeof name, "\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"device %u\"}}", process, (1u << 16) + d, d);
    TEST_HERE(strstr(text, name) != NULL);
  }
  TEST_HERE(count_of(text, "\"process_name\"") == processes);
  TEST_HERE(count_of(text, "times to within") == processes - 1);
  TEST_HERE(count_of(text, "{\"name\":\"psum\"") >= 2);
  TEST_HERE(count_of(text, "\"ts\":-") == 0 && count_of(text, "\"ts\":0.000") > 0); /* the first begins at 0 */
  TEST_HERE(count_of(text, "{") == count_of(text, "}") && strcmp(text + strlen(text) - 3, "]}\n") == 0);
  TEST_HERE(count_of(text, "}\n{") == 0 && count_of(text, "\n\n") == 0 && count_of(text, ",\n,") == 0);
  return AX_OK;
}

static ax_status check(ax_runtime *runtime, const timed *t, const char *text) {
  char name[160];
  if (ax_process_index(runtime) > 0) TEST_HERE(text == NULL);
  if (ax_process_index(runtime) > 0) return AX_OK;
  TEST_HERE(text != NULL);
  if (t->form == AX_TIMELINE_JSON) return check_json(runtime, text);
  const char *lasted = strchr(text, '\n');
  uint32_t columns = 0;
  for (uint32_t p = 0; p < ax_process_count(runtime); p++) {
    snprintf(name, sizeof name, "process %u on ", p);
    TEST_HERE(count_of(text, name) == 1);
  }
  for (const char *at = text; (at = strstr(at, " ms, a column is ")) != NULL; at++) columns++;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(lasted + 1, "\n") + 1, lasted);
  TEST_HERE(columns > 0 && count_of(text, name) == columns); /* of the same time in all */
  TEST_HERE(count_of(text, "\ndevice 0 ") == 1 && count_of(text, "\ndevice 3 ") == 1);
  return AX_OK;
}

static ax_status run_once(ax_runtime *runtime, ax_executable *executable) {
  const float data[8] = {1, 2, 3};
  const ax_type type = TEST_TYPE(AX_F32, 8);
  ax_array *in, *out = NULL;
  AX_TRY((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &in));
  ax_status status = (ax_run)(executable, 1, &in, 1, &out);
  ax_array_release(in);
  ax_array_release(out);
  return status;
}

static ax_status gather(ax_runtime *runtime, const void *context) {
  const timed *t = context;
  ax_executable *executable;
  char *text = NULL;
  AX_TRY(ax_compile(runtime, t->program, &(ax_compile_options){.timeline = t->is_timed, .reference = t->is_hostile}, &executable));
  ax_status status = AX_OK;
  for (int i = 0; i < 2 && t->is_run && status == AX_OK; i++) status = run_once(runtime, executable);
  test_be_hostile(t->is_hostile && ax_process_index(runtime) == 1);
  if (status == AX_OK) status = ax_executable_gather_timeline(executable, t->form, &text);
  test_be_hostile(false);
  if (status == AX_OK) status = check(runtime, t, text);
  ax_string_free(text);
  ax_executable_release(executable);
  return status;
}

static ax_program *program(void) {
  const ax_type type = TEST_TYPE(AX_F32, 8);
  return test_trace_map(&(test_map){"x=4", {"x"}, {""}, .body = sum}, &type);
}

static void all_processes_are_shown(void **state) {
  timed t = {program(), AX_TIMELINE_JSON, true, true, false};
  (void)state;
  for (size_t s = 1; s < TEST_SPREADS; s++) {
    t.form = AX_TIMELINE_JSON;
    assert_int_equal(test_in_all(&test_spreads[s], gather, &t, NULL), AX_OK);
    t.form = AX_TIMELINE_TEXT;
    assert_int_equal(test_in_all(&test_spreads[s], gather, &t, NULL), AX_OK);
  }
  ax_program_release(t.program);
}

static void nothing_to_show(void **state) {
  timed t = {program(), AX_TIMELINE_JSON, true, false, false};
  char message[8192];
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[2], gather, &t, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "no run has ended"));
  t.is_timed = false;
  assert_int_equal(test_in_all(&test_spreads[2], gather, &t, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "without ax_compile_options.timeline"));
  t.is_timed = t.is_run = true;
  t.form = (ax_timeline_form)7;
  assert_int_equal(test_in_all(&test_spreads[2], gather, &t, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "the form is 7"));
  ax_program_release(t.program);
}

static void out_of_memory_in_one_process_is_everyones(void **state) {
  timed t = {program(), AX_TIMELINE_JSON, true, true, true};
  (void)state;
  test_each_allocation_in_one(gather, &t, 1, NULL);
  ax_program_release(t.program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_processes_are_shown),
      cmocka_unit_test(nothing_to_show),
      cmocka_unit_test(out_of_memory_in_one_process_is_everyones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
