/* Scheduling policys: a recorded run played again is the same run, step by step; a prefix of it begins alike. Counters that others
   than the devices signal, from outside or by another code: waiting for them is no deadlock. */
#include "run/policy.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "run/execution.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Recorded and replayed --- */

static void step(const ax_value *in, ax_value *out, void *context) {
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}};
  (void)context;
  ax_value next = ax_ppermute(in[0], "d", 6, ring);
  out[0] = ax_tanh(ax_add(ax_mul(ax_psum(in[0], "d"), next), in[0]));
}

static void steps(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step, 1, 1), 1, 3, false, in, out);
}

enum { most_steps = 4096 };

/* Which activations ran, in order, and where they made way: what a scheduling policy's decisions came to. */
typedef struct log_of_run {
  const ax_scheduling_policy *scheduling_policy;
  uint32_t steps[most_steps], count;
} log_of_run;

static void add_step(log_of_run *log, uint32_t what) {
  assert_true(log->count < most_steps);
  log->steps[log->count++] = what;
}

static uint32_t pick_and_log(void *state, const uint32_t *ready, uint32_t count) {
  log_of_run *log = state;
  uint32_t place = log->scheduling_policy->pick(log->scheduling_policy->state, ready, count);
  add_step(log, ready[place]);
  return place;
}

static bool yields_and_log(void *state, const ax_instr *instr) {
  log_of_run *log = state;
  bool yields = log->scheduling_policy->yields(log->scheduling_policy->state, instr);
  add_step(log, 1000 + 2 * (uint32_t)instr->kind + yields);
  return yields;
}

static void run_with(ax_executable *executable, ax_array *x, const ax_scheduling_policy *scheduling_policy,
                     log_of_run *log, float *result) {
  ax_array *y;
  *log = (log_of_run){.scheduling_policy = scheduling_policy};
  ax_executor *executor = test_runner(executable)->executor;
  executor->scheduling_policy = &(ax_scheduling_policy){pick_and_log, yields_and_log, log};
  TEST_OK(ax_run(executable, &x, &y));
  executor->scheduling_policy = NULL;
  TEST_OK(ax_array_read(y, result, 12 * sizeof result[0]));
  ax_array_release(y);
}

static void replayed(void **state) {
  (void)state;
  static log_of_run first, again, other;
  const ax_type type = TEST_TYPE(AX_F32, 12);
  float values[12], results[3][12];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x;
  for (int i = 0; i < 12; i++) values[i] = (float)i * 0.1f;
  ax_program *program = test_trace_map(&(test_map){"d=6", {"d"}, {"d"}, .body = steps}, &type);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_FIXED}, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, values, &x));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  ax_seeded seed = {11}, other_seed = {12};
  const ax_scheduling_policy seeded = ax_choose_seeded(&seed), other_seeded = ax_choose_seeded(&other_seed);
  ax_record record = {0};
  const ax_scheduling_policy recorded = ax_choose_recorded(&record, &seeded);
  run_with(executable, x, &recorded, &first, results[0]);
  assert_int_equal(record.status, AX_OK);
  assert_int_equal(record.count, first.count);
  ax_replay whole = {record.decisions, record.count, 0, NULL}, half = {record.decisions, record.count / 2, 0, &other_seeded};
  const ax_scheduling_policy replay = ax_choose_replayed(&whole), begins_alike = ax_choose_replayed(&half);
  run_with(executable, x, &replay, &again, results[1]);
  assert_int_equal(again.count, first.count);
  assert_memory_equal(again.steps, first.steps, first.count * sizeof first.steps[0]);
  run_with(executable, x, &begins_alike, &other, results[2]);
  assert_memory_equal(other.steps, first.steps, record.count / 2 * sizeof first.steps[0]);
  assert_true(other.count != first.count || memcmp(other.steps, first.steps, first.count * sizeof first.steps[0]) != 0);
  for (int i = 1; i < 3; i++) assert_memory_equal(results[i], results[0], sizeof results[0]);
  ax_record_deinit(&record);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* --- From outside --- */

static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(in[0], "d"), ax_full_like(in[0], 0.5));
}

static void nothing(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

static void all_but_the_last(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value last = ax_eq(ax_axis_index("d"), ax_full(AX_S32, AX_DIMS(), 3));
  ax_if(last, AX_FN(nothing, 1, 1), AX_FN(sum, 1, 1), in, out);
}

typedef struct flight {
  ax_execution *run;
  uint32_t counter;
} flight;

static void *post_later(void *context) {
  const flight *f = context;
  nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
  ax_execution_post(f->run, f->counter, 1);
  return NULL;
}

static uint32_t counter_of_push(const ax_compiled *c) {
  const ax_instr *instrs = c->codes[0].instrs;
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++)
    if (instrs[i].kind == AX_INSTR_PUSH) return instrs[i].push->first + instrs[i].push->counter[0];
  fail_msg("no push");
  return 0;
}

typedef enum helper { NOBODY, SOMEBODY_OUTSIDE, ANOTHER_CODE } helper;

/* An activation of a code of its own, which signals a counter of the devices'. */
static void add_code(ax_compiled *c, uint32_t counter) {
  static const ax_mesh mesh = {0};
  static const uint32_t own = 0;
  static ax_instr instrs[2] = {{.kind = AX_INSTR_SIGNAL, .sync = {.counter = &own}}, {.kind = AX_INSTR_END}};
  static ax_code codes[2];
  instrs[0].sync.first = counter;
  codes[0] = c->codes[0];
  codes[1] =
      (ax_code){.mesh = &mesh, .first_activation = c->activation_count, .activation_count = 1, .instr_count = 2, .instrs = instrs};
  c->codes = codes;
  c->code_count = 2;
  c->activation_count++;
}

static void let_run(ax_executable *executable, ax_array *x, ax_array *y, helper who) {
  ax_execution *run;
  pthread_t thread;
  bool outside = who == SOMEBODY_OUTSIDE;
  ax_runner *runner = test_runner(executable);
  uint32_t counter = counter_of_push(runner->compiled);
  if (who == ANOTHER_CODE) add_code((ax_compiled *)runner->compiled, counter); /* the cast: nothing else runs it */
  ax_parts *in = test_parts(x), *out = test_parts(y);
  TEST_OK(ax_execution_create(runner, &run));
  TEST_OK(ax_execution_reset(run, &in, &out));
  flight f = {run, counter};
  if (outside) TEST_OK(ax_execution_begin_flight(run));
  if (outside) assert_int_equal(pthread_create(&thread, NULL, post_later, &f), 0);
  ax_execution_run(run, 0);
  if (outside) pthread_join(thread, NULL);
  assert_int_equal(run->status, who == NOBODY ? AX_DEADLOCK : AX_OK);
  ax_execution_destroy(run);
}

/* The last of four devices stays away from a psum: a deadlock, unless somebody else signals in its place. Each device adds when its
   turn has come; of fewer elements the last to come would add all. */
static void stand_in(uint32_t workers, helper who) {
  enum { devices = 4, each = 32 };
  const ax_type type = TEST_TYPE(AX_F32, devices * each);
  float values[devices * each], results[devices * each] = {0};
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  ax_mesh mesh;
  for (int i = 0; i < devices * each; i++) values[i] = (float)(1 + i / each);
  ax_program *program = test_trace_map(&(test_map){"d=4", {"d"}, {"d"}, .body = all_but_the_last, .unchecked = true}, &type);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_PARALLEL, .workers = workers}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_OK(ax_device_put_data(runtime, &mesh, "d", &type, values, &x));
  TEST_OK(ax_device_put_data(runtime, &mesh, "d", &type, results, &y));
  let_run(executable, x, y, who);
  TEST_OK(ax_array_read(y, results, sizeof results));
  for (int i = 0; i < 3 * each && who != NOBODY; i++) assert_true(results[i] == 3);
  ax_array_release(x);
  ax_array_release(y);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void signalled_by_others(void **state) {
  (void)state;
  static const helper helpers[] = {NOBODY, SOMEBODY_OUTSIDE, ANOTHER_CODE};
  for (size_t i = 0; i < AX_COUNT(helpers); i++) stand_in(1, helpers[i]);
  /* Another code signals at any time there: with several threads also before the first device, whose turn the count then denies. */
  for (size_t i = 0; i < AX_COUNT(helpers); i++)
    if (helpers[i] != ANOTHER_CODE) stand_in(3, helpers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replayed), cmocka_unit_test(signalled_by_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
