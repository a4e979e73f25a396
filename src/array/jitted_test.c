/* Functions compiled by their calls: what is traced and compiled once, what is kept, and what is refused. */
#include "axle/jitted.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "axle/ops.h"
#include "axle/sharding.h"
#include "axle/stages.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

enum { most_elems = 64 };

static ax_runtime *runtime;
static ax_mesh mesh;
static float data[most_elems];
static atomic_uint traces; /* of the functions below */

static int begin(void **state) {
  (void)state;
  for (int i = 0; i < most_elems; i++) data[i] = (float)i;
  TEST_OK(ax_mesh_parse("i=4", &mesh));
  return ax_runtime_create(NULL, &runtime) == AX_OK ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

static ax_array *put(const ax_mesh *on, const char *spec, ax_type type) {
  ax_array *array;
  TEST_OK(ax_device_put_data(runtime, on, spec, &type, type.dtype == AX_F32 ? data : NULL, &array));
  return array;
}

static ax_array *vector(int64_t elems) { return put(NULL, "", ax_array_type(AX_F32, AX_LIST(1, &elems))); }

static float first_of(const ax_array *array) {
  float got[most_elems];
  TEST_OK(ax_array_read(array, got, (size_t)ax_type_elems(ax_array_typeof(array)) * sizeof got[0]));
  return got[0];
}

static AX_BODY(plus_one) {
  atomic_fetch_add(&traces, 1);
  out[0] = ax_add(in[0], ax_integer(1));
}

static AX_BODY(product) {
  atomic_fetch_add(&traces, 1);
  out[0] = ax_mul(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_reduce_sum(in[1], AX_ALL_DIMS, false));
}

static ax_jitted *jitted(ax_fn function, const ax_jitted_options *options) {
  ax_jitted *j;
  TEST_OK(ax_jitted_create(runtime, function, options, &j));
  atomic_store(&traces, 0);
  return j;
}

static void counted(ax_jitted *j, uint64_t found, uint64_t missed, uint64_t traced, uint64_t compiled, uint32_t kept) {
  const ax_jitted_counters c = ax_jitted_count(j);
  assert_int_equal(c.found, found);
  assert_int_equal(c.missed, missed);
  assert_int_equal(c.traced, traced);
  assert_int_equal(c.compiled, compiled);
  assert_int_equal(c.kept, kept);
}

static void run(ax_jitted *j, ax_array *x, float wanted) {
  ax_array *y;
  TEST_OK(ax_jitted_run(j, AX_ARRAYS(x), &y));
  assert_true(first_of(y) == wanted);
  ax_array_release(y);
}

/* --- Keys --- */

static void types_are_told_apart(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), NULL);
  ax_array *in[] = {vector(4), vector(8), put(NULL, "", TEST_TYPE(AX_F32, 2, 4)), put(NULL, "", TEST_TYPE(AX_F32, 4, 2)),
                    put(NULL, "", TEST_SCALAR(AX_F32))};
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < AX_COUNT(in); i++) run(j, in[i], 1);
  counted(j, 10, 5, 5, 5, 5);
  assert_int_equal(atomic_load(&traces), 5);
  ax_array *y;
  TEST_OK(ax_jitted_run_start(j, AX_ARRAYS(in[0]), &y)); /* finds what run made */
  ax_jitted_release(j);
  assert_true(first_of(y) == 1); /* runs go on without it */
  ax_array_release(y);
  for (size_t i = 0; i < AX_COUNT(in); i++) ax_array_release(in[i]);
}

/* One trace for all layouts; each is computed where it lies, and results lie like that. */
static void layouts_are_told_apart(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), NULL);
  ax_array *whole = put(&mesh, "", TEST_TYPE(AX_F32, 8)), *cut = put(&mesh, "i", TEST_TYPE(AX_F32, 8)), *alone = vector(8);
  ax_array *in[] = {whole, cut, alone}, *y;
  const uint64_t copied = ax_runtime_counters(runtime).arguments_copied;
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < AX_COUNT(in); i++) {
      TEST_OK(ax_jitted_run(j, AX_ARRAYS(in[i]), &y));
      assert_int_equal(ax_spec_set(ax_array_spec(y)), in[i] == cut ? 1 : 0);
      assert_int_equal(ax_array_mesh(y)->count, in[i] == alone ? 0 : 1);
      ax_array_release(y);
    }
  assert_int_equal(ax_runtime_counters(runtime).arguments_copied, copied);
  counted(j, 3, 3, 1, 3, 3);
  assert_int_equal(atomic_load(&traces), 1);
  ax_jitted_release(j);
  j = jitted(AX_FN(plus_one, 1, 1), &(ax_jitted_options){.compile = {.mesh = &mesh, .shardings = "? -> _"}});
  TEST_OK(ax_jitted_run(j, AX_ARRAYS(cut), &y)); /* what the options say stays */
  assert_int_equal(ax_spec_set(ax_array_spec(y)), 0);
  ax_array_release(y);
  ax_jitted_release(j);
  for (size_t i = 0; i < AX_COUNT(in); i++) ax_array_release(in[i]);
}

typedef struct power {
  int32_t n;
  float scale;
} power;

static AX_BODY(to_power) { /* context: static, but where it scales by 7 */
  power *p = context;
  atomic_fetch_add(&traces, 1);
  if (p->scale != 7) assert_true((uintptr_t)context % _Alignof(max_align_t) == 0);
  out[0] = ax_full_like(in[0], p->scale);
  for (int i = 0; i < p->n; i++) out[0] = ax_mul(out[0], in[0]);
  p->n = 100; /* a copy of its own */
}

static void statics_are_told_apart(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_CLOSURE(to_power, 1, 1, &(power){0, 7}), NULL);
  const power powers[] = {{0, 1}, {3, 1}, {3, 2}};
  ax_array *x = vector(2), *y;
  float got[2];
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < AX_COUNT(powers); i++) {
      power own = powers[i]; /* bytes, not an address */
      TEST_OK(ax_jitted_run_static(j, AX_STATIC(own), AX_ARRAYS(x), &y));
      TEST_OK(ax_array_read(y, got, sizeof got));
      assert_true(got[1] == powers[i].scale);
      ax_array_release(y);
    }
  counted(j, 3, 3, 3, 3, 3);
  run(j, x, 7); /* the function's own context */
  counted(j, 3, 4, 4, 4, 4);
  ax_executable *e, *again;
  TEST_OK(ax_jitted_executable(j, AX_STATIC(powers[1]), AX_ARRAYS(x), &e));
  TEST_OK(ax_jitted_executable(j, AX_STATIC(powers[1]), AX_ARRAYS(x), &again));
  assert_ptr_equal(e, again);
  ax_jitted_release(j);
  TEST_OK(ax_run(e, AX_ARRAYS(x), &y));
  assert_true(first_of(y) == 0);
  ax_array_release(y);
  ax_executable_release(e), ax_executable_release(again);
  ax_array_release(x);
}

static void host_arrays(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(product, 2, 1), NULL);
  const float x[] = {1, 2}, w[] = {3, 4, 5};
  for (int round = 0; round < 2; round++) {
    ax_host_array out;
    TEST_OK(ax_jitted_run_host(j, AX_HOST_ARRAYS(ax_host_view(AX_F32, AX_DIMS(2), x), ax_host_view(AX_F32, AX_DIMS(3), w)), &out));
    assert_true(ax_host_at(&out, 0) == 36);
    ax_host_array_release(&out);
  }
  ax_array *in[] = {vector(2), vector(3)}, *y; /* lie as these do */
  TEST_OK(ax_jitted_run(j, in, &y));
  counted(j, 2, 1, 1, 1, 1);
  ax_array_release(y);
  ax_array_release(in[0]), ax_array_release(in[1]);
  ax_jitted_release(j);
}

static AX_BODY(swap) { out[0] = in[1], out[1] = ax_add(in[0], ax_integer(1)); }

static void options_hold(void **state) {
  (void)state;
  uint32_t list[] = {0};
  char name[] = "weights";
  ax_jitted *j =
      jitted(AX_FN(swap, 2, 2), &(ax_jitted_options){.compile = {.donate = {list, 0, 1}, .names = {AX_NAMES(name, NULL)}}});
  memset(name, 'x', 3), list[0] = 1; /* they were copied */
  ax_array *in[] = {vector(2), vector(2)}, *out[2];
  TEST_OK(ax_jitted_run(j, in, out));
  ax_array_release(out[0]), ax_array_release(out[1]);
  TEST_FAILS(ax_jitted_run(j, in, out), AX_INVALID_ARGUMENT, "weights");
  assert_null(out[0]), assert_null(out[1]);
  ax_array_release(in[0]), ax_array_release(in[1]);
  ax_jitted_release(j);
}

/* --- What is kept --- */

static void few_are_kept(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), &(ax_jitted_options){.most_kept = 2});
  ax_array *a = vector(1), *b = vector(2), *c = vector(3);
  run(j, a, 1), run(j, b, 1), run(j, a, 1);
  counted(j, 1, 2, 2, 2, 2);
  run(j, c, 1); /* b goes: a was used later */
  run(j, a, 1);
  counted(j, 2, 3, 3, 3, 2);
  run(j, b, 1); /* c goes */
  run(j, a, 1);
  counted(j, 3, 4, 4, 4, 2);
  assert_int_equal(ax_jitted_count(j).dropped, 2);
  ax_jitted_clear(j);
  assert_int_equal(ax_jitted_count(j).dropped, 4);
  run(j, a, 1);
  counted(j, 3, 5, 5, 5, 1);
  ax_array_release(a), ax_array_release(b), ax_array_release(c);
  ax_jitted_release(j);
}

/* More than one table has room for at first. */
static void many_are_kept(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), NULL);
  for (int round = 0; round < 2; round++)
    for (int n = 1; n <= 40; n++) {
      ax_array *x = vector(n);
      run(j, x, 1);
      ax_array_release(x);
    }
  counted(j, 40, 40, 40, 40, 40);
  ax_jitted_release(j);
}

/* --- What a call costs that finds its executable --- */

static double seconds_of(ax_executable *e, ax_jitted *j, ax_array *x) {
  enum { calls = 100 };
  const double start = ax_seconds();
  for (int i = 0; i < calls; i++) {
    ax_array *y;
    if (e != NULL)
      TEST_OK(ax_run(e, AX_ARRAYS(x), &y));
    else
      TEST_OK(ax_jitted_run(j, AX_ARRAYS(x), &y));
    ax_array_release(y);
  }
  return (ax_seconds() - start) / calls;
}

/* Little beside ax_run, however many are kept: by the best of many rounds, as others use the processor too. */
static void little_is_added(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), NULL);
  ax_array *x = vector(8);
  ax_executable *e;
  double run_alone = 1, found = 1;
  for (int n = 9; n <= most_elems; n++) {
    ax_array *other = vector(n);
    run(j, other, 1);
    ax_array_release(other);
  }
  TEST_OK(ax_jitted_executable(j, ((ax_static){0}), AX_ARRAYS(x), &e));
  for (int round = 0; round < 100; round++) {
    run_alone = fmin(run_alone, seconds_of(e, NULL, x));
    found = fmin(found, seconds_of(NULL, j, x));
  }
  if (found > 2 * run_alone + 1e-7) fail_msg("%.0f ns, where ax_run takes %.0f", found * 1e9, run_alone * 1e9);
  ax_executable_release(e);
  ax_array_release(x);
  ax_jitted_release(j);
}

/* --- Threads --- */

enum { thread_count = 4, kinds = 3, rounds = 200 };

typedef struct shared {
  ax_jitted *j;
  ax_array *in[kinds];
  pthread_barrier_t start;
  atomic_int failures;
} shared;

static void *calls(void *context) {
  shared *s = context;
  pthread_barrier_wait(&s->start);
  for (int i = 0; i < rounds; i++) {
    ax_array *y;
    float got[kinds + 1] = {0};
    const int kind = i % kinds;
    if (ax_jitted_run(s->j, AX_ARRAYS(s->in[kind]), &y) != AX_OK)
      atomic_fetch_add(&s->failures, 1);
    else if (ax_array_read(y, got, (size_t)(kind + 1) * sizeof got[0]) != AX_OK || got[0] != 1)
      atomic_fetch_add(&s->failures, 1);
    ax_array_release(y);
  }
  return NULL;
}

static void call_at_once(uint32_t most_kept, ax_jitted_counters *out) {
  pthread_t threads[thread_count];
  shared s = {.j = jitted(AX_FN(plus_one, 1, 1), &(ax_jitted_options){.most_kept = most_kept})};
  for (int i = 0; i < kinds; i++) s.in[i] = vector(i + 1);
  pthread_barrier_init(&s.start, NULL, thread_count);
  for (int i = 0; i < thread_count; i++) assert_int_equal(pthread_create(&threads[i], NULL, calls, &s), 0);
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&s.failures), 0);
  *out = ax_jitted_count(s.j);
  assert_int_equal(out->found + out->missed, thread_count * rounds);
  assert_int_equal(out->traced, atomic_load(&traces));
  pthread_barrier_destroy(&s.start);
  for (int i = 0; i < kinds; i++) ax_array_release(s.in[i]);
  ax_jitted_release(s.j);
}

/* Threads that miss together compile once. Where too few are kept, executables go while others run them. */
static void threads_share(void **state) {
  (void)state;
  ax_jitted_counters c;
  call_at_once(0, &c);
  assert_int_equal(c.compiled, kinds);
  assert_in_range(c.traced, kinds, kinds * thread_count);
  call_at_once(1, &c);
  assert_int_equal(c.kept, 1);
  assert_true(c.dropped >= kinds - 1);
}

/* --- A function that calls what it is compiled by --- */

static AX_BODY(calls_itself) { /* context: the object, and how deep it goes */
  struct {
    ax_jitted *j;
    int depth;
  } *self = context;
  ax_array *x = vector(4), *y;
  if (self->depth-- > 0) {
    TEST_OK(ax_jitted_run(self->j, AX_ARRAYS(x), &y));
    ax_array_release(y);
  }
  ax_array_release(x);
  out[0] = ax_add(in[0], ax_integer(1));
}

static void itself(void **state) {
  (void)state;
  struct {
    ax_jitted *j;
    int depth;
  } self = {NULL, 2};
  self.j = jitted(AX_CLOSURE(calls_itself, 1, 1, &self), NULL);
  ax_array *x = vector(4);
  run(self.j, x, 1);
  run(self.j, x, 1);
  counted(self.j, 1, 3, 3, 1, 1);
  ax_array_release(x);
  ax_jitted_release(self.j);
}

/* --- Forking --- */

/* A forked process releases the object as if it were its own. */
static void in_a_forked_process(void **state) {
  (void)state;
  ax_jitted *j = jitted(AX_FN(plus_one, 1, 1), NULL);
  ax_array *x = vector(4);
  run(j, x, 1);
  int ended;
  const pid_t child = fork();
  if (child == 0) {
    ax_jitted_release(j);
    _exit(7);
  }
  assert_true(child > 0 && waitpid(child, &ended, 0) == child);
  assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
  run(j, x, 1);
  counted(j, 1, 1, 1, 1, 1);
  ax_array_release(x);
  ax_jitted_release(j);
}

/* --- What is refused, and when there is no memory --- */

static AX_BODY(sum_of_two) { out[0] = ax_add(in[0], in[1]); }

static void refused(void **state) {
  (void)state;
  ax_jitted *j;
  ax_array *x = vector(4), *w = vector(3), *out = x;
  ax_runtime *other;
  TEST_FAILS(ax_jitted_create(NULL, AX_FN(plus_one, 1, 1), NULL, &j), AX_INVALID_ARGUMENT, "runtime");
  TEST_FAILS(ax_jitted_create(runtime, AX_FN(NULL, 1, 1), NULL, &j), AX_INVALID_ARGUMENT, "jitted: there is no function");
  assert_null(j);
  TEST_FAILS(ax_jitted_create(runtime, AX_FN(plus_one, 1, 1), &(ax_jitted_options){.compile = {.like = {AX_ARRAYS(x)}}}, &j),
             AX_INVALID_ARGUMENT, "each call's arguments say how they lie");
  TEST_FAILS(ax_jitted_create(runtime, AX_FN(plus_one, 1, 1), &(ax_jitted_options){.compile = {.shardings = "? -> ?"}}, &j),
             AX_INVALID_ARGUMENT, "shardings and no mesh");
  TEST_FAILS(ax_jitted_create(runtime, AX_FN(plus_one, 1, 1), &(ax_jitted_options){.compile = {.names = {AX_NAMES("a", "b")}}}, &j),
             AX_INVALID_ARGUMENT, "names has 2 entries");
  TEST_FAILS(ax_jitted_run(NULL, AX_ARRAYS(x), &out), AX_INVALID_ARGUMENT, "jitted");
  j = jitted(AX_FN(sum_of_two, 2, 1), NULL);
  TEST_FAILS(ax_jitted_run(j, AX_ARRAYS(x), &out), AX_INVALID_ARGUMENT,
             "jitted_run: the function takes 2 arguments, but the list has 1");
  TEST_FAILS(ax_jitted_run(j, AX_ARRAYS(x, NULL), &out), AX_INVALID_ARGUMENT, "jitted_run: argument 1 is missing");
  TEST_FAILS(ax_jitted_run_static(j, ((ax_static){NULL, 4}), AX_ARRAYS(x, x), &out), AX_INVALID_ARGUMENT, "no data");
  for (int i = 0; i < 2; i++) { /* not kept: tried again */
    TEST_FAILS(ax_jitted_run(j, AX_ARRAYS(x, w), &out), AX_INVALID_ARGUMENT, "f32[4]");
    assert_null(out);
  }
  counted(j, 0, 2, 2, 0, 0);
  TEST_OK(ax_runtime_create(NULL, &other));
  ax_array *foreign;
  const ax_type four = TEST_TYPE(AX_F32, 4);
  TEST_OK(ax_device_put_data(other, NULL, "", &four, data, &foreign));
  TEST_FAILS(ax_jitted_run(j, AX_ARRAYS(x, foreign), &out), AX_INVALID_ARGUMENT, "argument 1, f32[4], is of another runtime");
  ax_array_release(foreign);
  ax_runtime_release(other);
  ax_host_array none[2] = {{0}}, made;
  TEST_FAILS(ax_jitted_run_host(j, none, &made), AX_INVALID_ARGUMENT, "argument 0");
  TEST_OK(ax_jitted_run(j, AX_ARRAYS(x, x), &out)); /* none of it harmed the object */
  ax_array_release(out), ax_array_release(x), ax_array_release(w);
  ax_jitted_release(j);
  ax_jitted_release(NULL);
  ax_jitted_clear(NULL);
  assert_null(ax_jitted_retain(NULL));
  assert_int_equal(ax_jitted_count(NULL).found, 0);
}

static ax_status with_little_memory(void *context) {
  ax_array *x = context, *y = NULL;
  ax_jitted *j;
  const uint32_t list[] = {0};
  const int n = 3;
  const ax_jitted_options options = {
      .compile = {.names = {AX_NAMES("x")}, .mesh = &mesh, .shardings = "? -> ?", .donate = {list, 0, 0}}, .most_kept = 1};
  AX_TRY(ax_jitted_create(runtime, AX_FN(plus_one, 1, 1), &options, &j));
  ax_status status = ax_jitted_run_static(j, AX_STATIC(n), AX_ARRAYS(x), &y);
  ax_array_release(y);
  if (status == AX_OK) status = ax_jitted_run(j, AX_ARRAYS(x), &y);
  if (status == AX_OK) ax_array_release(y);
  ax_jitted_release(j);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  ax_array *x = vector(4);
  assert_true(test_each_allocation(with_little_memory, x) > 10);
  ax_array_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(types_are_told_apart),   cmocka_unit_test(layouts_are_told_apart),
                                     cmocka_unit_test(statics_are_told_apart), cmocka_unit_test(host_arrays),
                                     cmocka_unit_test(options_hold),           cmocka_unit_test(few_are_kept),
                                     cmocka_unit_test(many_are_kept),          cmocka_unit_test(little_is_added),
                                     cmocka_unit_test(threads_share),          cmocka_unit_test(itself),
                                     cmocka_unit_test(in_a_forked_process),    cmocka_unit_test(refused),
                                     cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, begin, end);
}
