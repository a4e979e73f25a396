/* A plugin that fails where the test says (tests/plugins/fake.c): each failure is a status with the plugin's message, and nothing is left. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static void fail_at(const char *where) { setenv("AXLE_FAKE_PLUGIN", where, 1); }

#define NEGATED "{ lambda x:f32[2]. let y:f32[2] = neg x in (y,) }"

static ax_client *create(void) {
  ax_client *client;
  fail_at("");
  TEST_OK(ax_client_create(AXLE_FAKE_PLUGIN_FILE, NULL, &client));
  return client;
}

static void refuse(const char *where, ax_status status, const char *message) {
  ax_client *client = NULL;
  fail_at(where);
  TEST_FAILS(ax_client_create(AXLE_FAKE_PLUGIN_FILE, NULL, &client), status, message);
  assert_null(client);
}

static void opening(void **state) {
  (void)state;
  refuse("initialize", AX_INVALID_ARGUMENT, "PJRT_Plugin_Initialize: no driver"); /* first, since it is done once */
  refuse("old", AX_UNAVAILABLE, "it has version 0.30 of PJRT's interface, and 0.54 or later, before 1.0, is needed");
  refuse("major", AX_UNAVAILABLE, "it has version 1.114");
  refuse("short", AX_ABSENT, "the plugin has no PJRT_Client_Create");
  refuse("quiet", AX_UNAVAILABLE, "its errors have no messages");
  refuse("null", AX_UNAVAILABLE, "GetPjrtApi gives nothing");
  refuse("create", AX_UNAVAILABLE, "PJRT_Client_Create: no device of this kind");
  refuse("none", AX_UNAVAILABLE, "the plugin has no devices");
}

static void options(void **state) {
  (void)state;
  ax_client *client;
  char *words, *bytes;
  uint32_t names;
  size_t count;
  TEST_OK(ax_client_words(" a=1\tb=x=y ", &words, &names));
  assert_int_equal(names, 2);
  assert_memory_equal(words, "a=1\0b=x=y\0", 11);
  ax_free(words);
  TEST_FAILS(ax_client_words("a=1 b", &words, &names), AX_INVALID_ARGUMENT, "is NAME=VALUE, and not \"b\"");
  ax_free(words);
  TEST_FAILS(ax_client_create(AXLE_FAKE_PLUGIN_FILE, "=1", &client), AX_INVALID_ARGUMENT, "is NAME=VALUE, and not \"=1\"");
  fail_at("");
  static const char *const kinds[] = {"fraction=0.5", "fraction=5e-1", "visible=3,5", "visible=3,5,", "one=7,", "text=0.5x", "text=3,x", "text=nan",
                                      "text=", "text=,", "one=7, visible=3,5 fraction=0.5 text=a,b"};
  for (size_t i = 0; i < AX_COUNT(kinds); i++) {
    TEST_OK(ax_client_create(AXLE_FAKE_PLUGIN_FILE, kinds[i], &client));
    ax_client_destroy(client);
  }
  TEST_FAILS(ax_client_create(AXLE_FAKE_PLUGIN_FILE, "fraction=1", &client), AX_INVALID_ARGUMENT, "an option of another kind");
  TEST_OK(ax_client_create(AXLE_FAKE_PLUGIN_FILE, "n=3 xla_fast=true name=me xla_level=2", &client));
  assert_memory_equal(client->overrides, "xla_fast=true\0xla_level=2\0", 26);
  assert_string_equal(client->version, ""); /* it has no attributes, so modules are written as text */
  TEST_OK(ax_client_options(client, 2, (const int64_t[]){3, 4}, true, &bytes, &count));
  assert_true(count > 40);
  ax_free(bytes);
  ax_client_destroy(client);
}

static void described(void **state) {
  (void)state;
  ax_text text = {0};
  ax_client *client = create();
  TEST_OK(ax_client_describe(client, &text));
  assert_string_equal(text.data, "platform   fake\nversion    1\ninterface  PJRT 0.114, modules as text\ndevices    1\n"
                                 "  0     fake one, Fake(id=7)\n");
  ax_text_deinit(&text);
  ax_client_destroy(client);
}

static ax_buffers *filled(const ax_client *client, float *data) {
  ax_buffers *buffers;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  TEST_OK(ax_buffers_create(client, 1, &buffers));
  TEST_OK(ax_buffers_fill(buffers, &type, (unsigned char *[]){(unsigned char *)data}));
  return buffers;
}

static void buffers(void **state) {
  (void)state;
  float data[] = {1, 2}, got[2] = {0};
  const uint32_t first = 0;
  ax_client *client = create();
  ax_buffers *made = filled(client, data), *empty;
  TEST_OK(ax_buffers_read(made, 1, 1, &first, (unsigned char *[]){(unsigned char *)got}, sizeof got));
  assert_memory_equal(got, data, sizeof got);
  TEST_FAILS(ax_buffers_read(made, 1, 1, &first, (unsigned char *[]){(unsigned char *)got}, 4), AX_INVALID_ARGUMENT, "too little room");
  assert_false(ax_buffers_shared(made));
  ax_buffers_release(ax_buffers_retain(made));
  TEST_OK(ax_buffers_create(client, 1, &empty));
  const ax_type large = TEST_TYPE(AX_F32, 100), keys = TEST_TYPE(AX_KEY, 1);
  TEST_FAILS(ax_buffers_fill(empty, &large, (unsigned char *[]){NULL}), AX_OUT_OF_MEMORY, "the device is full");
  TEST_FAILS(ax_buffers_fill(empty, &keys, (unsigned char *[]){NULL}), AX_ABSENT, "plugins have no arrays of key");
  ax_buffers_release(empty);
  ax_buffers_release(made);
  ax_client_destroy(client);
}

static ax_status run(const ax_client_program *program, ax_buffers *in, bool given, ax_buffers **out, bool *began) {
  ax_client_going going;
  ax_status status = ax_client_launch(program, &in, &given, out, &going);
  *began = status == AX_OK;
  if (*began) status = ax_client_finish(&going);
  if (status == AX_OK) return AX_OK;
  ax_buffers_release(*out);
  *out = NULL;
  return status;
}

static void programs(void **state) {
  (void)state;
  static const char module[] = "module {}";
  float data[] = {1, 2};
  bool began, given = true;
  ax_client_program *program;
  ax_client *client = create();
  ax_buffers *in = filled(client, data), *out;
  TEST_FAILS(ax_client_compile(client, module, sizeof module, &(ax_client_shape){2, 1, 1, false}, &program), AX_INVALID_ARGUMENT, "for 2 devices, and the plugin has 1");
  fail_at("compile");
  TEST_FAILS(ax_client_compile(client, module, sizeof module, &(ax_client_shape){1, 1, 1, false}, &program), AX_ABSENT, "an operation that there is not");
  fail_at("results");
  TEST_FAILS(ax_client_compile(client, module, sizeof module, &(ax_client_shape){1, 1, 1, false}, &program), AX_UNAVAILABLE, "has 3 results, and the module 1");
  fail_at("");
  TEST_OK(ax_client_compile(client, module, sizeof module, &(ax_client_shape){1, 1, 1, false}, &program));
  fail_at("execute");
  TEST_FAILS(run(program, in, given, &out, &began), AX_INVALID_ARGUMENT, "PJRT_LoadedExecutable_Execute: not this argument");
  assert_false(began);
  fail_at("later");
  TEST_FAILS(run(program, in, given, &out, &began), AX_UNAVAILABLE, "the device was taken away");
  assert_true(began);
  assert_null(out);
  fail_at("");
  TEST_OK(run(program, in, given, &out, &began));
  ax_buffers_release(out);
  ax_buffers_release(in);
  ax_client_program_destroy(program);
  ax_client_destroy(client);
}

/* A run's failure is that of its results, and an array that a run that failed was given is gone only if the run began. */
static void failures_of_runs(void **state) {
  (void)state;
  const float data[] = {1, 2};
  float got[2];
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_array *x, *y;
  fail_at("");
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2, .plugin = AXLE_FAKE_PLUGIN_FILE}, &runtime));
  TEST_OK(ax_program_parse(NEGATED, strlen(NEGATED), NULL, &program));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_ARGS(0)}, &executable));
  TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &x));
  fail_at("execute");
  TEST_FAILS((ax_run)(executable, 1, &x, 1, &y), AX_INVALID_ARGUMENT, "not this argument");
  TEST_OK((ax_array_read)(x, AX_F32, got, sizeof got));
  fail_at("later");
  TEST_OK((ax_run_start)(executable, 1, &x, 1, &y));
  TEST_FAILS(ax_array_wait(y), AX_UNAVAILABLE, "the device was taken away");
  TEST_FAILS((ax_array_read)(x, AX_F32, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
  ax_array_release(x), ax_array_release(y);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Runs of which each takes the result of the one before are handed over before that is over. */
static void handed_over_at_once(void **state) {
  (void)state;
  const float data[] = {1, 2};
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_runtime *runtime;
  ax_program *program;
  ax_array *x, *next;
  fail_at("slow");
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 5, .plugin = AXLE_FAKE_PLUGIN_FILE}, &runtime));
  TEST_OK(ax_program_parse(NEGATED, strlen(NEGATED), NULL, &program));
  for (uint32_t donated = 0; donated < 2; donated++) {
    float got[2] = {0};
    ax_executable *executable;
    TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_RANGE(0, donated)}, &executable));
    TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &x));
    for (int i = 0; i < 4; i++) {
      TEST_OK((ax_run_start)(executable, 1, &x, 1, &next));
      ax_array_release(x);
      x = next;
    }
    TEST_OK((ax_array_read)(x, AX_F32, got, sizeof got));
    assert_memory_equal(got, data, sizeof data); /* this plugin's programs give back what they get */
    ax_array_release(x);
    ax_executable_release(executable);
  }
  fail_at("later"); /* then each fails that takes a result of one that fails */
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &x));
  TEST_OK((ax_run_start)(executable, 1, &x, 1, &next));
  ax_array_release(x);
  x = next;
  TEST_OK((ax_run_start)(executable, 1, &x, 1, &next));
  TEST_FAILS(ax_array_wait(next), AX_UNAVAILABLE, "the device was taken away");
  TEST_FAILS(ax_array_wait(x), AX_UNAVAILABLE, "the device was taken away");
  ax_array_release(x), ax_array_release(next);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  fail_at("");
}

static ax_status compile_and_run(void *context) {
  const float data[] = {1, 2};
  float got[2];
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_runtime *runtime = NULL;
  ax_program *program = NULL;
  ax_executable *executable = NULL;
  ax_array *x = NULL, *y = NULL;
  (void)context;
  ax_status status = ax_runtime_create(&(ax_runtime_options){.workers = 1, .plugin = AXLE_FAKE_PLUGIN_FILE, .plugin_options = "xla_a=1"}, &runtime);
  if (status == AX_OK) status = ax_program_parse(NEGATED, strlen(NEGATED), NULL, &program);
  if (status == AX_OK) status = ax_compile(runtime, program, NULL, &executable);
  if (status == AX_OK) status = (ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &x);
  if (status == AX_OK) status = (ax_run)(executable, 1, &x, 1, &y);
  if (status == AX_OK) status = (ax_array_read)(y, AX_F32, got, sizeof got);
  ax_array_release(x), ax_array_release(y);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return status;
}

static void each_allocation(void **state) {
  (void)state;
  fail_at("");
  test_each_allocation(compile_and_run, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(opening),  cmocka_unit_test(options),          cmocka_unit_test(described), cmocka_unit_test(buffers),
                                     cmocka_unit_test(programs), cmocka_unit_test(failures_of_runs), cmocka_unit_test(handed_over_at_once), cmocka_unit_test(each_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
