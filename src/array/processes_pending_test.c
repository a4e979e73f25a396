/* Runs that processes start together and do not wait for: several in flight, each made in the order of their starts; what fails
   in one of them; calls of other kinds in between. The processes are threads of this one. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array/joint.h"
#include "array/pending.h"
#include "array/runtime.h"
#include "axle/callback.h"
#include "axle/collectives.h"
#include "axle/npy.h"
#include "axle/ops.h"
#include "axle/processes.h"
#include "axle/sharding.h"
#include "support/cmocka.h"
#include "support/jobs.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 8, COLUMNS = 3, ELEMS = ROWS * COLUMNS };

static const uint32_t alternating[] = {0, 1, 0, 1}, scattered[] = {2, 0, 1, 1}, with_empty_ones[] = {3, 1, 1, 3};
static const test_spread spreads[] = {
    {.processes = 1, .workers = 2},
    {.processes = 2, .workers = 2},
    {.processes = 2, .workers = 1},
    {.processes = 3, .workers = 3, .listed = 4, .of = scattered, .delays = true, .seed = 1},
    {.processes = 2, .workers = 2, .listed = 4, .of = alternating, .delays = true, .seed = 2},
    {.processes = 4, .workers = 2, .listed = 4, .of = with_empty_ones, .delays = true, .seed = 3},
};

/* --- Programs: x -> sum over devices, less a share; x -> x of the device before --- */

static ax_callback *refusing;
static ax_status refuse(ax_callback_call *call, void *context) {
  (void)context;
  if (((const float *)call->in[0].data)[0] < 1e6f) return AX_OK;
  strcpy(call->message, "too much");
  return AX_INVALID_ARGUMENT;
}

static void mix(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sub(ax_mul(in[0], ax_full_like(in[0], 0.5)), ax_mul(ax_psum(in[0], "x"), ax_full_like(in[0], 0.125)));
}
static void turn(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pshift(in[0], "x", 1, true);
}
static void check(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  (ax_io_callback)(refusing, true, 1, in, 0, NULL, 0, NULL);
  out[0] = ax_add(in[0], ax_psum(in[0], "x"));
}
static void times(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_full_like(in[0], 1e9));
}

typedef enum kind { MIX, TURN, CHECK, TIMES, KINDS } kind;
static ax_program *programs[KINDS];

static int make_programs(void **state) {
  static const ax_function bodies[KINDS] = {mix, turn, check, times};
  const ax_type type = TEST_TYPE(AX_F32, ROWS, COLUMNS);
  (void)state;
  TEST_OK(ax_callback_create("refuse", refuse, NULL, NULL, &refusing));
  for (int k = 0; k < KINDS; k++)
    programs[k] = test_trace_map(&(test_map){"x=4", {"x"}, {"x"}, .unchecked = true, .body = bodies[k]}, &type);
  return 0;
}
static int release_programs(void **state) {
  (void)state;
  for (int k = 0; k < KINDS; k++) ax_program_release(programs[k]);
  ax_callback_release(refusing);
  return 0;
}

typedef struct set_up {
  ax_runtime *runtime;
  ax_executable *run[KINDS];
} set_up;

static ax_status compile_all(ax_runtime *runtime, set_up *s) {
  *s = (set_up){.runtime = runtime};
  for (int k = 0; k < KINDS; k++) AX_TRY(ax_compile(runtime, programs[k], NULL, &s->run[k]));
  return AX_OK;
}
static ax_status end(set_up *s, ax_status status) {
  for (int k = 0; k < KINDS; k++) ax_executable_release(s->run[k]);
  return status;
}

static ax_status put(const set_up *s, float first, ax_array **out) {
  float data[ELEMS];
  for (int i = 0; i < ELEMS; i++) data[i] = first + (float)i;
  return (ax_executable_put)(s->run[MIX], 0, AX_F32, data, sizeof data, out);
}

/* --- Starts that do not wait --- */

static _Atomic uint32_t all_started;

/* Process 1 takes no part before process 0 has started all its runs. */
static ax_status started_alone(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x[5] = {NULL};
  (void)context;
  AX_TRY(compile_all(runtime, &s));
  while (ax_process_index(runtime) == 1 && atomic_load(&all_started) == 0) ax_relax();
  ax_status status = put(&s, 1, &x[0]);
  for (int i = 0; i < 4 && status == AX_OK; i++) status = (ax_run_start)(s.run[i % 2 == 0 ? MIX : TURN], 1, &x[i], 1, &x[i + 1]);
  if (ax_process_index(runtime) == 0) {
    TEST_HERE(!ax_array_is_ready(x[4]));
    atomic_store(&all_started, 1);
  }
  if (status == AX_OK) status = ax_array_wait(x[4]);
  TEST_HERE(status != AX_OK || ax_array_is_ready(x[1]));
  for (int i = 0; i < 5; i++) ax_array_release(x[i]);
  return end(&s, status);
}

static void a_start_does_not_wait_for_other_processes(void **state) {
  (void)state;
  TEST_OK(test_in_all(&(test_spread){.processes = 2, .workers = 2}, started_alone, NULL, NULL));
}

/* --- Many at random --- */

enum { arrays = 6, acts = 24 };

static ax_status lay_as(const ax_array *array, const ax_array *other, ax_array **out) {
  ax_sharding *as;
  AX_TRY(ax_array_sharding(other, &as));
  ax_status status = ax_array_reshard(array, as, out);
  ax_sharding_release(as);
  return status;
}

/* What processes do follows from the seed alone; the way in which they wait follows from the process too. */
static ax_status act(const set_up *s, test_random *common, test_random *own, ax_array **x) {
  const int64_t what = test_random_below(common, 8), from = test_random_below(common, arrays);
  const int64_t to = test_random_below(common, arrays);
  ax_array *made = NULL;
  if (what < 5) AX_TRY((ax_run_start)(s->run[what == 4 ? CHECK : what % 2 == 0 ? MIX : TURN], 1, &x[from], 1, &made));
  else if (what == 5) AX_TRY((ax_run)(s->run[TURN], 1, &x[from], 1, &made));
  else if (what == 6) AX_TRY(lay_as(x[from], x[to], &made));
  else AX_TRY(put(s, (float)test_random_below(common, 9), &made));
  ax_array_release(x[to]);
  x[to] = made;
  return test_random_below(own, 4) == 0 ? ax_array_wait(x[test_random_below(own, arrays)]) : AX_OK;
}

static ax_status do_acts(ax_runtime *runtime, uint64_t seed, float (*out)[ELEMS]) {
  set_up s;
  test_random common = {seed}, own = {seed * 16 + ax_process_index(runtime)};
  ax_array *x[arrays] = {NULL};
  AX_TRY(compile_all(runtime, &s));
  ax_status status = AX_OK;
  for (int i = 0; i < arrays && status == AX_OK; i++) status = put(&s, (float)i, &x[i]);
  for (int i = 0; i < acts && status == AX_OK; i++) status = act(&s, &common, &own, x);
  for (int i = 0; i < arrays && status == AX_OK; i++) {
    ax_host_array whole;
    status = ax_array_gather(x[i], AX_EVERY_PROCESS, &whole);
    if (status == AX_OK) memcpy(out[i], whole.data, sizeof out[i]);
    ax_host_array_release(&whole);
  }
  for (int i = 0; i < arrays; i++) ax_array_release(x[i]);
  return end(&s, status);
}

static float wanted[arrays][ELEMS];

static ax_status at_random(ax_runtime *runtime, const void *context) {
  float got[arrays][ELEMS];
  AX_TRY(do_acts(runtime, *(const uint64_t *)context, got));
  TEST_HERE(memcmp(got, wanted, sizeof got) == 0);
  return AX_OK;
}

static void runs_pair_in_the_order_of_their_starts(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
    TEST_OK(do_acts(runtime, seed, wanted));
    ax_runtime_release(runtime);
    for (size_t i = 0; i < AX_COUNT(spreads); i++)
      if (test_in_all(&spreads[i], at_random, &seed, NULL) != AX_OK) fail_msg("seed %llu, spread %zu", (unsigned long long)seed, i);
  }
}

/* --- Failures --- */

/* The second run fails; the third takes its result, and may hear of that already where it is started; the fourth does not. */
static ax_status second_fails(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x[5] = {NULL};
  char message[4096], third[4096];
  (void)context;
  AX_TRY(compile_all(runtime, &s));
  AX_TRY(put(&s, 1, &x[0]));
  AX_TRY((ax_run_start)(s.run[TIMES], 1, &x[0], 1, &x[1]));
  AX_TRY((ax_run_start)(s.run[CHECK], 1, &x[1], 1, &x[2]));
  const bool begun = (ax_run_start)(s.run[TURN], 1, &x[2], 1, &x[3]) == AX_OK;
  snprintf(third, sizeof third, "%s", begun ? "" : ax_message());
  AX_TRY((ax_run_start)(s.run[TURN], 1, &x[0], 1, &x[4]));
  TEST_HERE(ax_array_wait(x[2]) == AX_INVALID_ARGUMENT);
  snprintf(message, sizeof message, "%s", ax_message());
  if (begun) TEST_HERE(ax_array_wait(x[3]) == AX_INVALID_ARGUMENT && strcmp(message, ax_message()) == 0);
  TEST_HERE(begun || strcmp(message, third) == 0);
  TEST_HERE(ax_array_wait(x[4]) == AX_OK);
  for (int i = 0; i < 5; i++) ax_array_release(x[i]);
  return end(&s, ax_error(AX_INVALID_ARGUMENT, "%s", message));
}

static void a_failure_comes_with_the_results_in_all(void **state) {
  char message[8192];
  (void)state;
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    if (spreads[i].workers == 1) continue; /* without threads it is the start that fails */
    assert_int_equal(test_in_all(&spreads[i], second_fails, NULL, message), AX_INVALID_ARGUMENT);
    assert_non_null(strstr(message, "callback \"refuse\" failed (AX_INVALID_ARGUMENT): too much"));
  }
}

/* Process 1 gives no argument to the second of three runs. It hears so at once, the others with the result; the third run is all
   well. */
static ax_status one_gives_nothing(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x[4] = {NULL}, *none = NULL;
  const bool gives = ax_process_index(runtime) != 1;
  char message[4096];
  (void)context;
  AX_TRY(compile_all(runtime, &s));
  AX_TRY(put(&s, 1, &x[0]));
  AX_TRY((ax_run_start)(s.run[MIX], 1, &x[0], 1, &x[1]));
  ax_status status = (ax_run_start)(s.run[TURN], 1, gives ? &x[1] : &none, 1, &x[2]);
  if (gives && status == AX_OK) status = ax_array_wait(x[2]);
  TEST_HERE(status == AX_INVALID_ARGUMENT);
  TEST_HERE(gives || x[2] == NULL);
  snprintf(message, sizeof message, "%s", ax_message());
  TEST_HERE((ax_run_start)(s.run[TURN], 1, &x[1], 1, &x[3]) == AX_OK && ax_array_wait(x[3]) == AX_OK);
  for (int i = 0; i < 4; i++) ax_array_release(x[i]);
  return end(&s, ax_error(status, "%s", message));
}

static void a_start_that_fails_in_one_process_fails_in_its_place(void **state) {
  char message[8192];
  (void)state;
  for (size_t i = 1; i < AX_COUNT(spreads); i++) {
    assert_int_equal(test_in_all(&spreads[i], one_gives_nothing, NULL, message), AX_INVALID_ARGUMENT);
    assert_non_null(strstr(message, "process 1: run: 1 of 1 arguments do not match"));
  }
}

/* --- Ends --- */

/* Nothing is waited for: the runtime is released with all runs in flight. */
static ax_status leaves(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x = NULL, *next;
  (void)context;
  AX_TRY(compile_all(runtime, &s));
  ax_status status = put(&s, 1, &x);
  for (int i = 0; i < 20 && status == AX_OK; i++) {
    status = (ax_run_start)(s.run[i % 2], 1, &x, 1, &next);
    ax_array_release(x);
    x = next;
  }
  ax_array_release(x);
  return end(&s, status);
}

static void runs_in_flight_outlive_what_they_need(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(spreads); i++) TEST_OK(test_in_all(&spreads[i], leaves, NULL, NULL));
}

/* A call that does nothing with others waits for those that do, and keeps the message of the thread. */
static ax_status waits(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x = NULL, *y = NULL;
  ax_joint joint;
  (void)context;
  AX_TRY(compile_all(runtime, &s));
  const ax_doing doing = ax_call_doing(s.run[MIX]);
  TEST_HERE((doing.check & 1) != 0);
  AX_TRY(put(&s, 1, &x));
  AX_TRY((ax_run_start)(s.run[MIX], 1, &x, 1, &y));
  (void)!ax_error(AX_INTERNAL, "kept");
  ax_joint_begin(&joint, runtime, false, &doing);
  TEST_HERE(joint.processes == NULL);
  ax_pending_wait_together(runtime);
  TEST_HERE(ax_array_is_ready(y) && strcmp(ax_message(), "kept") == 0);
  ax_joint_enter(&joint, runtime, &doing);
  ax_status status = ax_joint_end(&joint, AX_OK);
  ax_array_release(x);
  ax_array_release(y);
  return end(&s, status);
}

static void other_calls_come_behind_started_runs(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(spreads); i++) TEST_OK(test_in_all(&spreads[i], waits, NULL, NULL));
}

/* These have numbers of their own, without a joint call around them. */
static ax_status writes(ax_runtime *runtime, const void *context) {
  set_up s;
  ax_array *x = NULL, *y[3] = {NULL};
  ax_executable *timed = NULL, *again = NULL;
  char *text = NULL;
  AX_TRY(compile_all(runtime, &s));
  AX_TRY(ax_compile(runtime, programs[MIX], &(ax_compile_options){.timeline = true}, &timed));
  AX_TRY(put(&s, 1, &x));
  AX_TRY((ax_run_start)(timed, 1, &x, 1, &y[0]));
  AX_TRY(ax_array_write_npy(x, context));
  TEST_HERE(ax_array_is_ready(y[0]));
  AX_TRY((ax_run_start)(s.run[TURN], 1, &x, 1, &y[1]));
  AX_TRY(ax_executable_gather_timeline(timed, AX_TIMELINE_TEXT, &text));
  TEST_HERE(ax_array_is_ready(y[1]));
  AX_TRY((ax_run_start)(s.run[TURN], 1, &x, 1, &y[2]));
  AX_TRY(ax_compile(runtime, programs[TIMES], &(ax_compile_options){.timeline = true}, &again));
  TEST_HERE(ax_array_is_ready(y[2]));
  ax_string_free(text);
  for (int i = 0; i < 3; i++) ax_array_release(y[i]);
  ax_array_release(x);
  ax_executable_release(timed);
  ax_executable_release(again);
  return end(&s, AX_OK);
}

static void so_do_files_timelines_and_compiling(void **state) {
  (void)state;
  char path[4096];
  const char *base = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/axle_pending_XXXXXX", base != NULL ? base : "/tmp");
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (size_t i = 1; i < AX_COUNT(spreads); i++) TEST_OK(test_in_all(&spreads[i], writes, path, NULL));
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_start_does_not_wait_for_other_processes),
      cmocka_unit_test(runs_pair_in_the_order_of_their_starts),
      cmocka_unit_test(a_failure_comes_with_the_results_in_all),
      cmocka_unit_test(a_start_that_fails_in_one_process_fails_in_its_place),
      cmocka_unit_test(runs_in_flight_outlive_what_they_need),
      cmocka_unit_test(other_calls_come_behind_started_runs),
      cmocka_unit_test(so_do_files_timelines_and_compiling),
  };
  return cmocka_run_group_tests(tests, make_programs, release_programs);
}
