#include "support/host.h"

#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

static ax_status copy(ax_callback_call *call, void *context) {
  (void)context;
  for (uint32_t k = 0; k < call->out_count; k++) {
    ax_type type = ax_array_type(call->out[k].dtype, AX_LIST(call->out[k].rank, call->out[k].dims));
    size_t bytes = (size_t)ax_type_elems(&type) * ax_dtype_bytes(type.dtype);
    if (bytes > 0) memcpy(call->out[k].data, call->in[k].data, bytes);
  }
  return AX_OK;
}

static ax_callbacks callbacks;
static ax_hooks hooks = {.callbacks = &callbacks};

static void release(void) { ax_callbacks_deinit(&callbacks); }

const ax_hooks *test_hooks(void) {
  ax_callback *made;
  if (callbacks.count > 0) return &hooks;
  ax_callbacks_init(&callbacks);
  atexit(release);
  TEST_OK(ax_callback_create("copy", copy, NULL, NULL, &made));
  TEST_OK(ax_callbacks_add(&callbacks, made));
  ax_callback_release(made);
  return &hooks;
}

/* --- What is printed and called is written down --- */

void test_log_begin(test_log *log) {
  *log = (test_log){.calls = 0};
  pthread_mutex_init(&log->lock, NULL);
}

void test_log_end(test_log *log) {
  ax_text_deinit(&log->text);
  pthread_mutex_destroy(&log->lock);
}

static void print_to_log(const char *text, void *context) {
  test_log *log = context;
  pthread_mutex_lock(&log->lock);
  ax_text_add(&log->text, "%s", text);
  pthread_mutex_unlock(&log->lock);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

const char *test_log_text(const test_log *log) { return log->text.data != NULL ? log->text.data : ""; }

void test_log_sort(test_log *log) {
  char *lines[4096], *text = log->text.data;
  uint32_t count = 0;
  ax_text sorted = {0};
  for (char *line = text != NULL ? strtok(text, "\n") : NULL; line != NULL; line = strtok(NULL, "\n")) {
    assert_true(count < AX_COUNT(lines));
    lines[count++] = line;
  }
  qsort(lines, count, sizeof lines[0], by_text);
  for (uint32_t i = 0; i < count; i++) ax_text_add(&sorted, "%s\n", lines[i]);
  ax_text_deinit(&log->text);
  log->text = sorted;
}

/* --- Callbacks --- */

ax_status test_count_call(ax_callback_call *call, void *context) {
  test_log *log = context;
  pthread_mutex_lock(&log->lock);
  log->calls++;
  ax_text_add(&log->text, "device %lld: %s(", (long long)call->device, call->name);
  for (uint32_t i = 0; i < call->in_count; i++) ax_text_add(&log->text, "%s%g", i > 0 ? ", " : "", ax_host_at(&call->in[i], 0));
  ax_text_add(&log->text, ")\n");
  pthread_mutex_unlock(&log->lock);
  for (uint32_t k = 0; k < call->out_count; k++) {
    const ax_type type = ax_array_type(call->out[k].dtype, AX_LIST(call->out[k].rank, call->out[k].dims));
    for (int64_t i = 0; i < ax_type_elems(&type); i++) {
      assert_true(ax_host_at(&call->out[k], i) == 0);
      double value = call->in_count > 0 ? ax_host_at(&call->in[0], i) + 1 : 1;
      if (type.dtype == AX_F32) ((float *)call->out[k].data)[i] = (float)value;
      else ((int32_t *)call->out[k].data)[i] = (int32_t)value;
    }
  }
  return AX_OK;
}

ax_callback *test_callback(const char *name, ax_callback_function function, void *context) {
  ax_callback *made;
  TEST_OK(ax_callback_create(name, function, context, NULL, &made));
  return made;
}

ax_runtime *test_host_runtime(ax_runtime_options options, test_log *log) {
  ax_runtime *runtime;
  options.print = print_to_log;
  options.print_context = log;
  TEST_OK(ax_runtime_create(&options, &runtime));
  ax_callback *count = test_callback("count", test_count_call, log);
  TEST_OK(ax_runtime_register(runtime, count));
  ax_callback_release(count);
  return runtime;
}

/* --- Programs as texts --- */

ax_program *test_parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  return program;
}

ax_status test_run_calls(ax_runtime *runtime, ax_program *program, double *first) {
  ax_executable *executable;
  ax_array *in[8] = {NULL}, *out[8] = {NULL};
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  AX_TRY(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  for (uint32_t i = 0; i < in_count; i++) {
    double values[64];
    for (int v = 0; v < 64; v++) values[v] = v + 1;
    ax_tensor *tensor = test_tensor(*ax_program_in_type(program, i), values);
    TEST_OK(ax_executable_put(executable, i, tensor->data, &in[i]));
    ax_tensor_release(tensor);
  }
  ax_status status = ax_run(executable, AX_LIST(in_count, in), AX_LIST(out_count, out));
  for (uint32_t k = 0; k < out_count && status == AX_OK && first != NULL; k++) {
    ax_host_array host = {0};
    TEST_OK(ax_array_to_host(out[k], &host));
    first[k] = ax_host_at(&host, 0);
    ax_host_array_release(&host);
  }
  for (uint32_t i = 0; i < 8; i++) ax_array_release(in[i]), ax_array_release(out[i]);
  ax_executable_release(executable);
  return status;
}

void test_evaluate_calls(ax_program *program, test_log *log) {
  ax_tensor *in[8] = {NULL}, *out[8] = {NULL};
  ax_callbacks callbacks = {.count = 0};
  ax_callbacks_init(&callbacks);
  ax_callback *count = test_callback("count", test_count_call, log);
  TEST_OK(ax_callbacks_add(&callbacks, count));
  const ax_hooks hooks = {.callbacks = &callbacks, .print = print_to_log, .print_context = log};
  for (uint32_t i = 0; i < program->in_count; i++) {
    double values[64];
    for (int v = 0; v < 64; v++) values[v] = v + 1;
    in[i] = test_tensor(program->types[i], values);
  }
  TEST_OK(ax_evaluate_on(&hooks, program, in, out));
  test_release(in, program->in_count);
  test_release(out, program->out_count);
  ax_callback_release(count);
  ax_callbacks_deinit(&callbacks);
}

const ax_runtime_options test_orders[] = {
    {.policy = AX_POLICY_FIXED},           {.policy = AX_POLICY_SEEDED, .seed = 1}, {.policy = AX_POLICY_SEEDED, .seed = 2},
    {.policy = AX_POLICY_SEEDED, .seed = 3}, {.workers = 1},                          {.workers = 2},
    {.workers = 5}};
const size_t test_order_count = AX_COUNT(test_orders);
