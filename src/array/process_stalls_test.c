/* What process 0 of two says when process 1 comes late to each of the calls that all make together. Each process is a thread, and
   process 1 comes once process 0 has said so: nothing depends on how long anything takes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "array/runtime.h"
#include "axle/bodies.h"
#include "axle/callback.h"
#include "axle/collectives.h"
#include "axle/processes.h"
#include "axle/sharding.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/run.h"

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  char last[4096]; /* report of process 0 */
} said = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void note(const char *lines, void *context) {
  (void)context;
  pthread_mutex_lock(&said.lock);
  strncpy(said.last, lines, sizeof said.last - 1);
  pthread_cond_broadcast(&said.change);
  pthread_mutex_unlock(&said.lock);
}
static void ignore(const char *lines, void *context) { (void)lines, (void)context; }

/* Waits until process 0 says that it waits there for process 1, which was last at `last`. */
static void until_said(const char *there, const char *last) {
  char start[128];
  snprintf(start, sizeof start, "axle: process 0 waits in %s", there);
  pthread_mutex_lock(&said.lock);
  while (strncmp(said.last, start, strlen(start)) != 0) pthread_cond_wait(&said.change, &said.lock);
  if (strstr(said.last, " for process 1, ") == NULL || strstr(said.last, last) == NULL) fail_msg("not expected: %s", said.last);
  memset(said.last, 0, sizeof said.last);
  pthread_mutex_unlock(&said.lock);
}

/* A clock that goes on by a second whenever it is looked at. */
static double next_second(void *context) { return (double)atomic_fetch_add((_Atomic uint64_t *)context, 1); }

/* --- Runs: device 1, of process 1, makes a call that returns once process 0 has said that it waits --- */

enum { ELEMS = 4 };

static ax_status pass_late(ax_callback_call *call, void *there) {
  memcpy(call->out[0].data, call->in[0].data, ELEMS * sizeof(float));
  if (call->device == 1) until_said(there, "which has sent nothing since it left ax_compile ");
  return AX_OK;
}

static ax_value call(ax_value x, void *callback) {
  ax_value called;
  ax_io_callback(callback, false, AX_VALUES(x), AX_TYPES(ax_typeof(x)), &called);
  return called;
}
static AX_BODY(late_sum) { out[0] = ax_psum(call(in[0], context), "x"); }
static AX_BODY(late_message) {
  (void)ax_psend(call(in[0], context), "x", AX_PAIRS({1, 0}));
  out[0] = ax_precv(ax_create_token(), ax_typeof(in[0]), "x", AX_PAIRS({1, 0}));
}
/* Process 0 is through with its device when the other has not sent its part. */
static AX_BODY(late_part) { out[0] = ax_all_gather(call(in[0], context), "x", 0, true); }

static void run_late(ax_runtime *runtime, ax_program *program) {
  static const float data[2][ELEMS];
  const ax_type type = TEST_TYPE(AX_F32, 2, ELEMS);
  ax_array *in, *out;
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, data, &in));
  TEST_OK(ax_run(executable, AX_LIST(1, &in), AX_LIST(1, &out)));
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
}

static ax_program *programs[3];

static void runs(ax_runtime *runtime) {
  for (size_t i = 0; i < AX_COUNT(programs); i++) run_late(runtime, programs[i]);
}

/* --- Other calls --- */

static void other_calls(ax_runtime *runtime) {
  const bool late = ax_process_index(runtime) == 1;
  float data[2][ELEMS] = {{0}};
  ax_host_array host = AX_HOST(data), whole;
  ax_array *in, *out;
  ax_mesh mesh;
  ax_sharding *sharding;
  ax_executable *executable;
  TEST_OK(ax_mesh_parse("x=2", &mesh));
  if (late) until_said("ax_device_put_same ", "which has sent nothing since it left ax_runtime_create ");
  TEST_OK(ax_device_put_same(runtime, &mesh, "x", &host, &in));
  if (late) until_said("ax_compile ", "since it left ax_device_put_same ");
  TEST_OK(ax_compile(runtime, programs[0], NULL, &executable));
  ax_executable_release(executable);
  if (late) until_said("ax_array_gather ", "since it left ax_compile ");
  TEST_OK(ax_array_gather(in, AX_EVERY_PROCESS, &whole));
  ax_host_array_release(&whole);
  TEST_OK(ax_sharding_named(&mesh, "", NULL, &sharding));
  if (late) until_said("the laying out of an array ", "since it left ax_array_gather ");
  TEST_OK(ax_array_reshard(in, sharding, &out));
  ax_sharding_release(sharding);
  ax_array_release(in);
  ax_array_release(out);
}

/* --- Two processes --- */

typedef struct party {
  uint32_t number;
  ax_transport *transport;
  void (*job)(ax_runtime *runtime);
  _Atomic uint64_t now;
  pthread_t thread;
} party;

static void *be_party(void *context) {
  party *p = context;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create_over(&(ax_runtime_options){.workers = 2, .watch_seconds = 10, .watch = p->number == 0 ? note : ignore},
                                 p->transport, 0, NULL, &runtime));
  ax_stalls *stalls = &runtime->executor.processes->stalls;
  stalls->clock = next_second;
  stalls->context_of_clock = &p->now;
  p->job(runtime);
  ax_runtime_release(runtime);
  return NULL;
}

static void in_both(void (*job)(ax_runtime *runtime)) {
  ax_transport *transports[2];
  party parties[2];
  assert_int_equal(ax_within_create(2, transports), AX_OK);
  for (uint32_t p = 0; p < 2; p++) {
    parties[p] = (party){.number = p, .transport = transports[p], .job = job};
    assert_int_equal(pthread_create(&parties[p].thread, NULL, be_party, &parties[p]), 0);
  }
  for (uint32_t p = 0; p < 2; p++) pthread_join(parties[p].thread, NULL);
}

static ax_program *trace(ax_function body, const char *there) {
  const ax_type type = TEST_TYPE(AX_F32, 2, ELEMS);
  ax_callback *callback;
  TEST_OK(ax_callback_create("late", pass_late, (void *)there, NULL, &callback));
  ax_program *program =
      test_trace_map(&(test_map){"x=2", {"x"}, {"x"}, .unchecked = true, .body = body, .context = callback}, &type);
  ax_callback_release(callback);
  return program;
}

static void late_in_runs(void **state) {
  (void)state;
  in_both(runs);
}
static void late_to_calls(void **state) {
  (void)state;
  in_both(other_calls);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(late_in_runs), cmocka_unit_test(late_to_calls)};
  programs[0] = trace(late_sum, "psum f32[1,4] over x (equation ");
  programs[1] = trace(late_message, "precv token over x (equation ");
  programs[2] = trace(late_part, "all_gather f32[1,4] over x (equation ");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (size_t i = 0; i < AX_COUNT(programs); i++) ax_program_release(programs[i]);
  return failed;
}
