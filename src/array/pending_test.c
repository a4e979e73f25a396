/* Runs that are not over when they are started: what may be done with their results meanwhile, failures that are passed on,
   donation, references given up early; several threads that do all of this at once, on workers that serve all; a caller's
   floating-point environment, and a fork. */
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "array/executable.h"
#include "array/pending.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

enum { elems = 8, slots = 6, programs = 4 };

static const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {elems}};

/* --- Programs, over d=4 --- */

static void turn(const ax_value *in, ax_value *out, void *factor) {
  out[0] =
      ax_sub(ax_mul(in[0], ax_full_like(in[0], *(const double *)factor)), ax_mul(ax_psum(in[0], "d"), ax_full_like(in[0], 0.125)));
}

static void turns(const ax_value *in, ax_value *out, void *factor) {
  ax_scan(AX_CLOSURE(turn, 1, 1, factor), 1, 6, false, in, out);
}

static void mix(const ax_value *in, ax_value *out, void *factor) {
  out[0] = ax_add(ax_mul(in[0], ax_full_like(in[0], *(const double *)factor)),
                  ax_psum_scatter(ax_all_gather(in[1], "d", 0, true), "d", 0, true));
}

static void nothing(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}

static void never(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value first = ax_eq(ax_axis_index("d"), ax_full(AX_S32, AX_DIMS(), 0));
  ax_if(first, AX_FN(nothing, 1, 1), AX_FN(sum, 1, 1), in, out);
}

/* Bodies take a factor, so that equal ones are different programs. */
static ax_executable *compile_with(ax_runtime *runtime, ax_function body, uint32_t in_count, bool donate, double factor) {
  const ax_type types[] = {type, type};
  const test_map map = {.mesh = "d=4",
                        .in_specs = {"d", in_count > 1 ? "d" : NULL},
                        .out_specs = {"d"},
                        .body = body,
                        .unchecked = true,
                        .context = &factor};
  ax_program *program = test_trace_map(&map, types);
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program,
                     &(ax_compile_options){.donate = test_args((const bool[]){donate, false}, ax_program_in_count(program))},
                     &executable));
  ax_program_release(program);
  test_use_threads(executable);
  return executable;
}

static ax_executable *compile(ax_runtime *runtime, ax_function body, uint32_t in_count, bool donate) {
  return compile_with(runtime, body, in_count, donate, 0.5);
}

static ax_runtime *new_runtime(uint32_t workers) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  return runtime;
}

static ax_array *put(ax_runtime *runtime, const float *data) {
  ax_array *array;
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, data, &array));
  return array;
}

static const float known[elems] = {1, -2, 3, 0.5f, 7, -0.25f, 11, 13};

/* --- Alone --- */

/* Each run takes the result of the one before, which need not be there; all but the last reference are given up at once. */
static void chain(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 3; workers++) {
    ax_runtime *runtime = new_runtime(workers);
    ax_executable *keeps = compile(runtime, turns, 1, false), *donates = compile(runtime, turns, 1, true);
    float results[2][elems];
    for (int started = 0; started < 2; started++) {
      ax_array *x = put(runtime, known), *y;
      for (int i = 0; i < 40; i++) {
        ax_executable *executable = i % 3 == 2 ? donates : keeps;
        if (started) TEST_OK(ax_run_start(executable, &x, &y));
        else TEST_OK(ax_run(executable, &x, &y));
        ax_array_release(x);
        x = y;
      }
      TEST_OK(ax_array_wait(x));
      assert_true(ax_array_is_ready(x));
      TEST_OK(ax_array_read(x, results[started], sizeof results[0]));
      ax_array_release(x);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    ax_executable_release(keeps);
    ax_executable_release(donates);
    ax_runtime_release(runtime);
  }
}

/* Who sees that a result is ready, and releases all, has all memory back: the thread that ended the run holds none of it any more. */
static void holds_nothing(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime(3);
  ax_executable *executable = compile(runtime, turns, 1, false);
  size_t kept = 0, bytes, peak;
  for (int i = 0; i < 6000; i++) {
    ax_array *x = put(runtime, known), *y, *z;
    TEST_OK(ax_run_start(executable, &x, &y));
    TEST_OK(ax_run_start(executable, &y, &z));
    while (!ax_array_is_ready(z)) sched_yield(); /* another thread makes it */
    ax_array_release(x);
    ax_array_release(y);
    ax_array_release(z);
    ax_runtime_trim(runtime);
    ax_runtime_memory(runtime, &bytes, &peak);
    if (i == 0) kept = bytes; /* by the executable, for its next run */
    assert_int_equal(bytes, kept);
  }
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* Thousands that wait for one another and for their turn; waited for from the last to the first. */
static void thousands(void **state) {
  (void)state;
  enum { count = 2000 };
  static ax_array *results[count];
  ax_runtime *runtime = new_runtime(2);
  ax_executable *executable = compile(runtime, mix, 2, false);
  ax_array *x = put(runtime, known);
  for (int i = 0; i < count; i++)
    TEST_OK(ax_run_start(executable, AX_ARRAYS(x, i % 4 == 0 ? x : results[i - 1]), &results[i]));
  for (int i = count; i-- > 0;) TEST_OK(ax_array_wait(results[i]));
  float first[elems], got[elems];
  for (int i = 0; i < count; i++) {
    TEST_OK(ax_array_read(results[i], i < 4 ? first : got, sizeof got));
    if (i >= 4 && i % 4 == 3) assert_memory_equal(got, first, sizeof got);
    ax_array_release(results[i]);
  }
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void failures(void **state) {
  (void)state;
  static const char wanted[] = "run 1 failed: deadlock: 3 of 4 devices wait for what never comes";
  ax_runtime *runtime = new_runtime(2);
  ax_executable *fails = compile(runtime, never, 1, false), *goes = compile(runtime, mix, 2, true);
  ax_array *x = put(runtime, known), *bad, *after, *out;
  float got[elems];
  TEST_OK(ax_run_start(fails, &x, &bad));
  TEST_OK(ax_run_start(goes, AX_ARRAYS(x, bad), &after)); /* x is donated to a run that never comes */
  TEST_FAILS(ax_array_wait(bad), AX_DEADLOCK, wanted);
  TEST_FAILS(ax_array_wait(after), AX_DEADLOCK, wanted);
  assert_true(ax_array_is_ready(after));
  TEST_FAILS(ax_array_read(after, got, sizeof got), AX_DEADLOCK, wanted);
  TEST_FAILS(ax_run(goes, AX_ARRAYS(after, x), &out), AX_DEADLOCK, wanted);
  assert_null(out);
  TEST_OK(ax_array_read(x, got, sizeof got)); /* it did not begin, so x was not taken */
  assert_memory_equal(got, known, sizeof got);
  ax_array *other = put(runtime, known);
  TEST_OK(ax_run(goes, AX_ARRAYS(x, other), &out));
  ax_array_release(other);
  ax_array_release(out);
  ax_array_release(x);
  ax_array_release(bad);
  ax_array_release(after);
  ax_executable_release(fails);
  ax_executable_release(goes);
  ax_runtime_release(runtime);
}

typedef struct told { /* what callbacks hear */
  _Atomic int well, badly;
  char message[200];
} told;

static void hear(ax_status status, const char *message, void *context) {
  told *t = context;
  if (status == AX_OK) {
    t->well++;
    return;
  }
  snprintf(t->message, sizeof t->message, "%s", message);
  t->badly++;
}

/* Callbacks are told once each, whether they come before the run is over or after; the array may be gone by then. */
static void told_when_ready(void **state) {
  (void)state;
  enum { count = 500 };
  for (uint32_t workers = 1; workers <= 3; workers++) {
    ax_runtime *runtime = new_runtime(workers);
    ax_executable *goes = compile(runtime, turns, 1, true), *fails = compile(runtime, never, 1, false);
    ax_array *x = put(runtime, known), *y;
    told t = {0};
    TEST_OK(ax_array_when_ready(x, hear, &t));
    assert_int_equal(t.well, 1);
    for (int i = 0; i < count; i++) {
      TEST_OK(ax_run_start(goes, &x, &y));
      ax_array_release(x);
      x = y;
      TEST_OK(ax_array_when_ready(x, hear, &t));
      if (i % 2 == 0) TEST_OK(ax_array_when_ready(x, hear, &t));
    }
    TEST_OK(ax_array_wait(x));
    ax_runtime_wait(runtime);
    assert_int_equal(t.well, 1 + count + count / 2);
    assert_int_equal(t.badly, 0);
    if (workers > 1) { /* one alone makes the run at once, and says itself that it failed */
      TEST_OK(ax_run_start(fails, &x, &y));
      TEST_OK(ax_array_when_ready(y, hear, &t));
      ax_array_release(y);
      ax_runtime_wait(runtime);
      assert_int_equal(t.badly, 1);
      assert_non_null(strstr(t.message, "deadlock: 3 of 4 devices wait"));
    }
    TEST_OK(ax_run_start(goes, &x, &y));
    TEST_OK(ax_array_when_ready(x, hear, &t)); /* given away */
    assert_non_null(strstr(t.message, "donated"));
    TEST_FAILS(ax_array_when_ready(NULL, hear, &t), AX_INVALID_ARGUMENT, "array");
    ax_array_release(x);
    ax_array_release(y);
    ax_executable_release(goes);
    ax_executable_release(fails);
    ax_runtime_release(runtime);
  }
}

static void note_release(void *context) { *(_Atomic int *)context += 1; }

/* Whoever gives up the runtime's last reference waits for what is in flight; and when only runs in flight hold it, the last one
   ends it. */
static void given_up(void **state) {
  (void)state;
  for (int round = 0; round < 12; round++) {
    ax_runtime *runtime = new_runtime(3);
    ax_executable *executable = compile(runtime, turns, 1, round % 3 == 0);
    _Atomic int released = 0;
    float data[elems];
    memcpy(data, known, sizeof data);
    ax_part part = {.data = data, .bytes = sizeof data, .release = note_release, .context = &released};
    ax_array *x, *y;
    TEST_OK(ax_array_from_parts(runtime, NULL, "", &type, AX_LIST(1, &part), &x));
    bool runtime_first = round % 2 == 0;
    if (runtime_first) ax_runtime_release(runtime);
    for (int i = 0; i < 5; i++) {
      TEST_OK(ax_run_start(executable, &x, &y));
      ax_array_release(x);
      x = y;
    }
    ax_array_release(x);
    ax_executable_release(executable);
    if (!runtime_first) ax_runtime_release(runtime);
    for (int i = 0; runtime_first && released == 0 && i < 1000000; i++) usleep(10);
    assert_int_equal(released, 1);
  }
}

static void twice(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime(2);
  ax_executable *executable = compile(runtime, mix, 2, true);
  ax_array *x = put(runtime, known), *y = NULL;
  TEST_FAILS(ax_run_start(executable, AX_ARRAYS(x, x), &y), AX_INVALID_ARGUMENT,
             "argument 0 is donated, but the same array is argument 1 too: f32[8]");
  assert_null(y);
  ax_array *other = put(runtime, known);
  TEST_OK(ax_run_start(executable, AX_ARRAYS(x, other), &y));
  ax_array_release(other);
  ax_array_release(x);
  ax_array_release(y);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* --- Each allocation failed in turn: what was held is let go, what was lent comes back --- */

typedef struct attempt {
  ax_runtime *runtime;
  ax_program *program;
} attempt;

static ax_status started_late(void *context) {
  const attempt *a = context;
  _Atomic int released = 0;
  float data[elems], got[elems];
  memcpy(data, known, sizeof data);
  ax_part part = {.data = data, .bytes = sizeof data, .release = note_release, .context = &released};
  ax_executable *executable = NULL;
  ax_array *x = NULL, *y = NULL, *z = NULL;
  ax_status status = ax_compile(a->runtime, a->program, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable);
  if (status == AX_OK) status = ax_array_from_parts(a->runtime, NULL, "", &type, AX_LIST(1, &part), &x);
  if (x != NULL) {
    assert_true(ax_array_use(x)); /* so that the run waits */
    status = ax_run_start(executable, &x, &y);
    assert_true((status == AX_OK) == ax_array_gone(x));
    if (status == AX_OK) status = ax_run_start(executable, &y, &z);
    ax_array_leave(x);
  }
  if (z != NULL) status = ax_array_read(z, got, sizeof got);
  bool lent = x != NULL;
  ax_array_release(x);
  ax_array_release(y);
  ax_array_release(z);
  ax_executable_release(executable);
  ax_pending_wait_for_all(a->runtime);
  ax_runtime_trim(a->runtime);
  assert_int_equal(released, lent);
  return status;
}

static void out_of_memory(void **state) {
  (void)state;
  const test_map map = {
      .mesh = "d=4", .in_specs = {"d"}, .out_specs = {"d"}, .body = turns, .unchecked = true, .context = &(double){0.5}};
  attempt a = {new_runtime(1), test_trace_map(&map, &type)};
  TEST_OK(started_late(&a)); /* machine code stays in the runtime */
  assert_true(test_each_allocation(started_late, &a) > 20);
  ax_program_release(a.program);
  ax_runtime_release(a.runtime);
}

/* --- Threads --- */

typedef struct slot {
  ax_array *array, *sequential; /* the second is made by a runtime that runs one after another */
} slot;

typedef struct player {
  ax_runtime *runtime, *alone;
  ax_executable *executables[programs], *sequential[programs];
  uint64_t seed;
  int steps, failures;
} player;

static const struct {
  ax_function body;
  uint32_t in_count;
  bool donate;
} kinds[programs] = {{turns, 1, false}, {turns, 1, true}, {mix, 2, false}, {mix, 2, true}};

static void release_slot(slot *s) {
  ax_array_release(s->array);
  ax_array_release(s->sequential);
}

static bool refill(player *p, slot *s, test_random *random) {
  float data[elems];
  for (int i = 0; i < elems; i++) data[i] = (float)test_random_uniform(random, -1, 1);
  return ax_device_put_data(p->runtime, NULL, "", &type, data, &s->array) == AX_OK &&
         ax_device_put_data(p->alone, NULL, "", &type, data, &s->sequential) == AX_OK;
}

static bool same(const slot *s) {
  float got[elems], wanted[elems];
  return ax_array_read(s->array, got, sizeof got) == AX_OK && ax_array_read(s->sequential, wanted, sizeof wanted) == AX_OK &&
         memcmp(got, wanted, sizeof got) == 0;
}

/* A run of some slots; its result takes the place of the first, which may be donated, or of another. */
static bool run_one(player *p, slot *s, test_random *random) {
  int64_t kind = test_random_below(random, programs), a = test_random_below(random, slots),
          b = test_random_below(random, slots - 1);
  if (b >= a) b++;
  slot result;
  ax_array *in[] = {s[a].array, s[b].array}, *sequential[] = {s[a].sequential, s[b].sequential};
  bool start = test_random_below(random, 4) != 0;
  ax_status (*run)(ax_executable *, uint32_t, ax_array *const *, uint32_t, ax_array **) = start ? ax_run_start : ax_run;
  if (run(p->executables[kind], kinds[kind].in_count, in, 1, &result.array) != AX_OK) return false;
  if (ax_run(p->sequential[kind], AX_LIST(kinds[kind].in_count, sequential), &result.sequential) != AX_OK) return false;
  int64_t place = kinds[kind].donate ? a : test_random_below(random, slots);
  release_slot(&s[place]);
  s[place] = result;
  return true;
}

static void *plays(void *context) {
  player *p = context;
  test_random random = {p->seed};
  slot s[slots];
  for (int i = 0; i < slots; i++) p->failures += !refill(p, &s[i], &random);
  for (int i = 0; i < p->steps && p->failures == 0; i++) {
    slot *one = &s[test_random_below(&random, slots)];
    switch (test_random_below(&random, 8)) {
      case 0: p->failures += !same(one); break;
      case 1: p->failures += ax_array_wait(one->array) != AX_OK; break;
      case 2:
        release_slot(one);
        p->failures += !refill(p, one, &random);
        break;
      default: p->failures += !run_one(p, s, &random);
    }
  }
  for (int i = 0; i < slots; i++) {
    p->failures += p->failures == 0 && !same(&s[i]);
    release_slot(&s[i]);
  }
  return NULL;
}

static void play(uint32_t workers, int threads, int steps, uint64_t seed) {
  player p[8];
  pthread_t ids[8];
  ax_runtime *runtime = new_runtime(workers);
  for (int i = 0; i < threads; i++) {
    p[i] = (player){.runtime = runtime, .seed = seed + (uint64_t)i, .steps = steps};
    TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_FIXED}, &p[i].alone));
    for (int k = 0; k < programs; k++) {
      double factor = 0.5 + i / 2 * 0.03125; /* two threads each share their programs */
      p[i].executables[k] = compile_with(runtime, kinds[k].body, kinds[k].in_count, kinds[k].donate, factor);
      p[i].sequential[k] = compile_with(p[i].alone, kinds[k].body, kinds[k].in_count, kinds[k].donate, factor);
    }
  }
  for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&ids[i], NULL, plays, &p[i]), 0);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  for (int i = 0; i < threads; i++) {
    assert_int_equal(p[i].failures, 0);
    for (int k = 0; k < programs; k++) {
      ax_executable_release(p[i].executables[k]);
      ax_executable_release(p[i].sequential[k]);
    }
    ax_runtime_release(p[i].alone);
  }
  ax_pending_wait_for_all(runtime); /* a run whose results are ready may still be giving up its references */
  ax_runtime_trim(runtime);
  size_t now, peak;
  ax_runtime_memory(runtime, &now, &peak);
  assert_int_equal(now, 0);
  ax_runtime_release(runtime);
}

static void mixes(void **state) {
  (void)state;
  play(1, 1, 300, 1);
  play(2, 1, 300, 2);
  play(3, 4, 100, 3);
  play(5, 8, 60, 4);
}

/* --- The floating-point environment --- */

/* In parts, so that workers do some of them. */
enum { many = 1 << 18 };

static void thirds(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_div(ax_mul(in[0], in[0]), ax_full_like(in[0], 3));
}

static void float_environment(void **state) {
  (void)state;
  const ax_type large = TEST_TYPE(AX_F32, many);
  static float data[many], wanted[many], got[many];
  for (int i = 0; i < many; i++) data[i] = i % 2 == 0 ? 1e-20f * (float)i : (float)i; /* some squares are subnormal */
  ax_runtime *runtime = new_runtime(3);
  for (int time = 0; time < 4; time++) {
    ax_program *program = test_trace(thirds, NULL, &large, 1, 1);
    ax_executable *executable;
    ax_array *x, *y;
    fenv_t caller;
    fegetenv(&caller);
    if (time % 2 == 1) fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    unsigned mode = __builtin_ia32_stmxcsr() | (time == 3 ? 0x8040 : 0); /* flush to zero, denormals are zero */
    __builtin_ia32_ldmxcsr(mode);
#endif
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    test_use_threads(executable);
    TEST_OK(ax_device_put_data(runtime, NULL, "", &large, data, &x));
    TEST_OK(ax_run(executable, &x, &y));
    assert_int_equal(fegetround(), time % 2 == 1 ? FE_DOWNWARD : FE_TONEAREST);
#if defined(__x86_64__)
    assert_int_equal(__builtin_ia32_stmxcsr() & 0xffc0, mode & 0xffc0);
#endif
    fesetenv(&caller);
    TEST_OK(ax_array_read(y, time == 0 ? wanted : got, sizeof got));
    if (time > 0) assert_memory_equal(got, wanted, sizeof got);
    ax_array_release(x);
    ax_array_release(y);
    ax_executable_release(executable);
    ax_program_release(program);
  }
  ax_runtime_release(runtime);
}

/* --- A forked process has none of the threads --- */

static void forked(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime(3);
  ax_executable *executable = compile(runtime, turns, 1, false);
  ax_array *x = put(runtime, known), *y;
  TEST_OK(ax_run(executable, &x, &y));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(20);
    ax_array_release(y);
    ax_array_release(x);
    ax_executable_release(executable);
    ax_runtime_release(runtime);
    _exit(7);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  ax_array_release(y);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

typedef struct compiler {
  ax_runtime *runtime;
  atomic_bool over;
} compiler;

static void *compile_on(void *context) {
  compiler *c = context;
  while (!atomic_load(&c->over)) ax_executable_release(compile(c->runtime, turns, 1, false));
  return NULL;
}

/* The child is forked while another thread looks for programs, finds them and gives them back. */
static void forked_while_compiling(void **state) {
  (void)state;
  compiler c = {.runtime = new_runtime(1)};
  ax_executable *executable = compile(c.runtime, turns, 1, false);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, compile_on, &c), 0);
  for (int i = 0; i < 100; i++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(20);
      ax_executable_release(executable);
      _exit(7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  atomic_store(&c.over, true);
  pthread_join(thread, NULL);
  ax_executable_release(executable);
  ax_runtime_release(c.runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chain), cmocka_unit_test(holds_nothing), cmocka_unit_test(thousands), cmocka_unit_test(failures), cmocka_unit_test(told_when_ready),
      cmocka_unit_test(given_up), cmocka_unit_test(twice), cmocka_unit_test(mixes),
      cmocka_unit_test(float_environment), cmocka_unit_test(forked), cmocka_unit_test(forked_while_compiling), cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
