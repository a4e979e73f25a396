/* The runtime used from several threads at once: runs of one executable, compiles of equal programs, arrays passed around,
   references given up anywhere. What TSan looks at, above all. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { threads = 4, rounds = 15, elems = 24 };

static const double known_factor = 0.5;

typedef struct shared {
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_array *x, *uniform;
  float wanted;
  int failures; /* cmocka's assertions are for the test's own thread */
  pthread_mutex_t lock;
} shared;

/* Uniform values, exchanges, and values of one device alone, in a loop. */
static void step(const ax_value *in, ax_value *out, void *context) {
  ax_value uniform = ax_mul(in[0], ax_full_like(in[0], *(const double *)context));
  out[0] = ax_add(uniform, ax_psum(in[1], "d"));
  out[1] = ax_sub(in[1], ax_psum_scatter(ax_all_gather(in[1], "d", 0, true), "d", 0, true));
}

static void body(const ax_value *in, ax_value *out, void *context) {
  ax_value results[2];
  ax_scan(AX_CLOSURE(step, 2, 2, context), 2, 5, false, in, results);
  out[0] = ax_add(results[0], ax_psum(results[1], "d"));
}

static void map(const ax_value *in, ax_value *out, void *factor) {
  static const char *const in_specs[] = {"", "d"}, *const out_specs[] = {""};
  ax_mesh mesh;
  if (ax_mesh_parse("d=6", &mesh) == AX_OK)
    test_shard_map(&mesh, in_specs, out_specs, false, AX_CLOSURE(body, 2, 1, factor), in, out);
}

static void fails(shared *s) {
  pthread_mutex_lock(&s->lock);
  s->failures++;
  pthread_mutex_unlock(&s->lock);
}

static ax_status first_result(const shared *s, ax_executable *executable, float *first) {
  ax_array *y, *in[] = {s->uniform, s->x};
  float got[elems / 6];
  AX_TRY(ax_run(executable, in, &y));
  ax_status status = ax_array_read(y, got, sizeof got);
  ax_array_release(y);
  *first = got[0];
  return status;
}

static void *runs(void *context) {
  shared *s = context;
  float got = 0;
  for (int i = 0; i < rounds; i++)
    if (first_result(s, s->executable, &got) != AX_OK || got != s->wanted) fails(s);
  return NULL;
}

/* Every other time a program that is compiled already. */
static void *compiles(void *context) {
  shared *s = context;
  ax_type types[] = {TEST_TYPE(AX_F32, elems / 6), TEST_TYPE(AX_F32, elems)};
  for (int i = 0; i < rounds; i++) {
    ax_program *program = NULL;
    ax_executable *executable = NULL;
    float got = 0;
    double factor = i % 2 == 0 ? known_factor : i * 0.01;
    ax_status status = ax_trace(AX_CLOSURE(map, 2, 1, &factor), types, &program);
    if (status == AX_OK) status = ax_compile(s->runtime, program, NULL, &executable);
    ax_program_release(program);
    if (status == AX_OK) status = first_result(s, executable, &got);
    ax_executable_release(executable);
    if (status != AX_OK || (i % 2 == 0 && got != s->wanted)) fails(s);
  }
  return NULL;
}

/* Every thread makes, shares and drops arrays and references. */
static void *passes_around(void *context) {
  shared *s = context;
  ax_type type = *ax_array_typeof(s->x);
  float data[elems] = {1, 2, 3};
  for (int i = 0; i < rounds; i++) {
    ax_array *mine, *again = ax_array_retain(s->x);
    size_t now, peak;
    float got[elems];
    if (ax_device_put_data(s->runtime, NULL, "", &type, data, &mine) != AX_OK) fails(s);
    if (ax_array_read(mine, got, sizeof got) != AX_OK || memcmp(got, data, sizeof got) != 0) fails(s);
    ax_program_release(ax_program_retain(s->program));
    ax_array_release(mine);
    ax_array_release(again);
    ax_runtime_memory(s->runtime, &now, &peak);
    if (i % 8 == 0) ax_runtime_trim(s->runtime);
    if (now > peak) fails(s);
  }
  return NULL;
}

static void at_once(const ax_runtime_options *options, void *(*work[])(void *), int kinds) {
  shared s = {0};
  ax_type types[] = {TEST_TYPE(AX_F32, elems / 6), TEST_TYPE(AX_F32, elems)};
  float data[elems];
  pthread_t ids[threads];
  for (int i = 0; i < elems; i++) data[i] = (float)i * 0.125f;
  pthread_mutex_init(&s.lock, NULL);
  TEST_OK(ax_runtime_create(options, &s.runtime));
  s.program = test_trace(map, (void *)&known_factor, types, 2, 1);
  TEST_OK(ax_compile(s.runtime, s.program, NULL, &s.executable));
  test_use_threads(s.executable);
  TEST_OK(ax_device_put_data(s.runtime, NULL, "", &types[0], data, &s.uniform));
  TEST_OK(ax_device_put_data(s.runtime, NULL, "", &types[1], data, &s.x));
  TEST_OK(first_result(&s, s.executable, &s.wanted));
  for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&ids[i], NULL, work[i % kinds], &s), 0);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  assert_int_equal(s.failures, 0);
  ax_array_release(s.uniform);
  ax_array_release(s.x);
  ax_executable_release(s.executable);
  ax_program_release(s.program);
  ax_runtime_release(s.runtime);
  pthread_mutex_destroy(&s.lock);
}

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},
    {.policy = AX_POLICY_SEEDED, .seed = 5},
    {.policy = AX_POLICY_PARALLEL, .workers = 2},
    {.policy = AX_POLICY_PARALLEL, .workers = 6},
};

static void one_executable(void **state) {
  (void)state;
  for (size_t w = 0; w < AX_COUNT(ways); w++) at_once(&ways[w], (void *(*[])(void *)){runs}, 1);
}

static void everything(void **state) {
  (void)state;
  for (size_t w = 0; w < AX_COUNT(ways); w++) at_once(&ways[w], (void *(*[])(void *)){runs, compiles, passes_around}, 3);
}

/* --- Work large enough to be done in parts by threads that have nothing else to do: what one device computes for all --- */

enum { rows = 512, inner = 1024, columns = 1024 };

static void large_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value product = ax_matmul(in[0], in[1]), row_sums = ax_reduce_sum(ax_mul(product, product), AX_DIMS(1), false);
  out[0] = ax_tanh(ax_mul(product, ax_full_like(product, 0.01)));
  out[1] = ax_add(ax_mul(row_sums, row_sums), ax_psum(ax_reduce_sum(in[2], AX_DIMS(0), false), "d"));
  out[2] = ax_transpose(ax_exp(ax_neg(out[0])), AX_DIMS(1, 0));
}

static void map_large(const ax_value *in, ax_value *out, void *context) {
  static const char *const in_specs[] = {"", "", "d"}, *const out_specs[] = {"", "", ""};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=3", &mesh));
  test_shard_map(&mesh, in_specs, out_specs, false, AX_CLOSURE(large_body, 3, 3, context), in, out);
}

static void large_work(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, rows, inner), TEST_TYPE(AX_F32, inner, columns), TEST_TYPE(AX_F32, 3)};
  test_random random = {3};
  ax_program *program = test_trace(map_large, NULL, types, 3, 3);
  ax_tensor *in[3], *first[3], *again[3];
  for (int i = 0; i < 3; i++) in[i] = test_random_tensor(&random, types[i], -1, 1);
  for (size_t w = 0; w < AX_COUNT(ways); w++) {
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(&ways[w], &runtime));
    for (int time = 0; time < 3; time++) {
      ax_tensor **out = w == 0 && time == 0 ? first : again;
      test_execute(runtime, program, in, out);
      if (out == first) continue;
      for (int k = 0; k < 3; k++)
        assert_memory_equal(again[k]->data, first[k]->data, (size_t)test_elems(first[k]) * sizeof(float));
      test_release(again, 3);
    }
    ax_runtime_release(runtime);
  }
  test_release(first, 3);
  test_release(in, 3);
  ax_program_release(program);
}

/* --- Small runs, once warm, wait for nobody: they go on while every lock there is is held by another thread --- */

typedef struct small_runs {
  ax_executable *executable;
  ax_array *x;
  _Atomic int done; /* rounds */
  _Atomic bool held;
  _Atomic bool failed;
} small_runs;

enum { warm_rounds = 3, small_rounds = 100 };

static void *run_small(void *context) {
  small_runs *s = context;
  for (int i = 0; i < warm_rounds + small_rounds; i++) {
    ax_array *y[2];
    while (i == warm_rounds && !s->held) usleep(100);
    if (ax_run(s->executable, &s->x, y) != AX_OK) s->failed = true;
    ax_array_release(y[0]);
    ax_array_release(y[1]);
    s->done++;
  }
  return NULL;
}

static void two_of_it(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
  out[1] = ax_add(in[0], out[0]);
}

static void small_runs_lock_nothing(void **state) {
  (void)state;
  const test_map map = {"d=8", {"d"}, {"", "d"}, .body = two_of_it};
  const ax_type type = TEST_TYPE(AX_F32, 8);
  const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ax_runtime *runtime;
  small_runs s = {0};
  pthread_t thread;
  ax_program *program = test_trace_map(&map, &type);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &s.executable));
  TEST_OK(ax_executable_put(s.executable, 0, data, &s.x));
  assert_int_equal(pthread_create(&thread, NULL, run_small, &s), 0);
  while (s.done < warm_rounds) usleep(100);
  pthread_mutex_t *locks[] = {&runtime->executor.pool.lock, &runtime->cache.lock, &runtime->order, &s.executable->lock,
                              &s.executable->runner.lock};
  for (size_t i = 0; i < AX_COUNT(locks); i++) pthread_mutex_lock(locks[i]);
  s.held = true;
  for (int i = 0; s.done < warm_rounds + small_rounds && i < 100000; i++) usleep(100);
  int done = s.done;
  for (size_t i = 0; i < AX_COUNT(locks); i++) pthread_mutex_unlock(locks[i]);
  pthread_join(thread, NULL);
  assert_int_equal(done, warm_rounds + small_rounds);
  assert_false(s.failed);
  ax_array_release(s.x);
  ax_executable_release(s.executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_executable),
      cmocka_unit_test(everything),
      cmocka_unit_test(large_work),
      cmocka_unit_test(small_runs_lock_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
