/* References that are given up while a run goes on: by its callbacks, by other threads, and by what is released as the run ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { elems = 4, times = 20 };

static const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {elems}};

/* What a callback gives up, once, and what it has seen. */
typedef struct scene {
  ax_runtime *runtime; /* its own reference; of one that the callback is to release, `given` has it alone */
  ax_executable *executable;
  ax_array *in[2];
  ax_array *made;
  ax_runtime *given;
  bool slow, by_thread;
  atomic_bool gave_up, busy;
  atomic_int contexts, parts, runtimes; /* gone so far */
  int contexts_inside, parts_inside;    /* gone when the callback had given up all */
} scene;

static void context_gone(void *context) { atomic_fetch_add(&((scene *)context)->contexts, 1); }
static void part_gone(void *context) { atomic_fetch_add(&((scene *)context)->parts, 1); }
static void runtime_gone(void *context) { atomic_fetch_add(&((scene *)context)->runtimes, 1); }
static void release_runtime(void *context) { ax_runtime_release(((scene *)context)->given); }

static void *give_up(void *context) {
  scene *s = context;
  ax_executable_release(s->executable);
  ax_array_release(s->in[1]);
  ax_array_release(s->made);
  ax_runtime_release(s->given);
  s->executable = NULL;
  s->in[1] = NULL; /* in the list that the call was given */
  s->made = NULL;
  s->given = NULL;
  return NULL;
}

static ax_status giving_up(ax_callback_call *call, void *context) {
  scene *s = context;
  pthread_t thread;
  if (s->slow) usleep(2000);
  for (int i = 0; call->out_count > 0 && i < elems; i++) ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + 1;
  if (atomic_exchange(&s->gave_up, true)) return AX_OK;
  if (s->by_thread) {
    pthread_create(&thread, NULL, give_up, s);
    pthread_join(thread, NULL);
  } else {
    give_up(s);
  }
  s->contexts_inside = atomic_load(&s->contexts);
  s->parts_inside = atomic_load(&s->parts);
  return AX_OK;
}

static ax_status nothing(ax_callback_call *call, void *context) {
  (void)call;
  (void)context;
  return AX_OK;
}

/* Tells of the runtime's end. */
static ax_runtime *new_runtime(uint32_t workers, scene *s) {
  ax_runtime *runtime;
  ax_callback *witness;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  TEST_OK(ax_callback_create("witness", nothing, s, runtime_gone, &witness));
  TEST_OK(ax_runtime_register(runtime, witness));
  ax_callback_release(witness);
  return runtime;
}

static ax_array *put(ax_runtime *runtime, float first) {
  float data[elems];
  ax_array *array;
  for (int i = 0; i < elems; i++) data[i] = first + (float)i;
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, data, &array));
  return array;
}

static _Alignas(64) float lent[elems] = {20, 20, 20, 20};

static ax_array *lend(ax_runtime *runtime, void (*release)(void *context), scene *s) {
  ax_array *array;
  const ax_part part = {.data = lent, .bytes = sizeof lent, .release = release, .context = s};
  TEST_OK(ax_array_from_parts(runtime, NULL, "", &type, AX_LIST(1, &part), &array));
  return array;
}

static void expect(const ax_array *array, float first) {
  float data[elems];
  TEST_OK(ax_array_read(array, data, sizeof data));
  for (int i = 0; i < elems; i++) TEST_NEAR(data[i], first + (float)i, 0);
}

/* What releases it may be another thread, that goes on for a moment. */
static void expect_gone(const scene *s) {
  for (int i = 0; i < 20000 && atomic_load(&s->runtimes) == 0; i++) usleep(1000);
  assert_int_equal(s->runtimes, 1);
}

/* callback(x) + y, and some work after it */
static void body(const ax_value *in, ax_value *out, void *context) {
  ax_io_callback(context, false, AX_LIST(1, in), AX_LIST(1, &type), out);
  out[0] = ax_add(out[0], in[1]);
  for (int i = 0; i < 4; i++) out[0] = ax_mul(ax_neg(out[0]), ax_real(-1));
}

/* The executable holds the callback alone, and the callback what `release` gives up. */
static ax_executable *compile(ax_runtime *runtime, ax_function function, uint32_t in_count, ax_callback_function called, scene *s,
                              void (*release)(void *context)) {
  const ax_type types[] = {type, type};
  ax_callback *callback;
  ax_executable *e;
  TEST_OK(ax_callback_create("called", called, s, release, &callback));
  TEST_OK(ax_jit(runtime, AX_CLOSURE(function, in_count, 1, callback), types, NULL, &e));
  ax_callback_release(callback);
  return e;
}

/* --- Executables and arguments --- */

typedef ax_status (*call)(ax_executable *executable, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out);

static void give_up_in_call(call run, uint32_t workers, bool by_thread) {
  scene s = {.by_thread = by_thread};
  ax_runtime *runtime = new_runtime(workers, &s);
  s.executable = compile(runtime, body, 2, giving_up, &s, context_gone);
  s.in[0] = put(runtime, 10);
  s.in[1] = lend(runtime, part_gone, &s);
  ax_array *out;
  TEST_OK(run(s.executable, 2, s.in, 1, &out));
  expect(out, 31);
  assert_true(s.gave_up);
  assert_int_equal(s.contexts_inside, 0);
  assert_int_equal(s.parts_inside, 0);
  ax_array_release(out);
  ax_array_release(s.in[0]);
  ax_runtime_release(runtime);
  expect_gone(&s);
  assert_int_equal(s.contexts, 1);
  assert_int_equal(s.parts, 1);
}

static void test_in_calls(void **state) {
  (void)state;
  for (int by_thread = 0; by_thread < 2; by_thread++) {
    give_up_in_call(ax_run, 1, by_thread);
    give_up_in_call(ax_run, 3, by_thread);
    give_up_in_call(ax_run_start, 1, by_thread);
    give_up_in_call(ax_run_start, 3, by_thread);
  }
}

/* Keeps its thread until the other callback has given up what it has. */
static ax_status keeping(ax_callback_call *call, void *context) {
  scene *s = context;
  memcpy(call->out[0].data, call->in[0].data, elems * sizeof(float));
  atomic_store(&s->busy, true);
  while (!atomic_load(&s->gave_up)) usleep(100);
  return AX_OK;
}

static void plus_callback(const ax_value *in, ax_value *out, void *context) {
  ax_io_callback(context, false, AX_LIST(1, in), AX_LIST(1, &type), out);
}

/* The callback releases the last reference to the result that this thread waits for or reads. The other thread of the team is kept
   busy, so that this one runs the callback. */
static void test_result_in_wait(void **state) {
  (void)state;
  for (int i = 0; i < times; i++) {
    scene s = {.by_thread = i % 2 > 0};
    float data[elems];
    ax_array *kept, *made;
    ax_runtime *runtime = new_runtime(2, &s);
    ax_executable *keeper = compile(runtime, plus_callback, 1, keeping, &s, NULL);
    s.executable = compile(runtime, body, 2, giving_up, &s, context_gone);
    s.in[0] = put(runtime, 10);
    s.in[1] = lend(runtime, part_gone, &s);
    TEST_OK(ax_run_start(keeper, s.in, &kept));
    while (!atomic_load(&s.busy)) usleep(100);
    TEST_OK(ax_run_start(s.executable, s.in, &made));
    s.made = made;
    if (i % 4 < 2) {
      TEST_OK(ax_array_read(made, data, sizeof data));
      TEST_NEAR(data[0], 31, 0);
    } else {
      TEST_OK(ax_array_wait(made));
    }
    assert_null(s.made);
    ax_array_release(kept);
    ax_executable_release(keeper);
    ax_array_release(s.in[0]);
    ax_runtime_release(runtime);
    expect_gone(&s);
  }
}

static void test_in_run_host(void **state) {
  (void)state;
  scene s = {0};
  float data[elems] = {1, 2, 3, 4};
  ax_host_array host = ax_host_view(AX_F32, AX_LIST(1, type.dims), data), made;
  ax_runtime *runtime = new_runtime(1, &s);
  s.executable = compile(runtime, plus_callback, 1, giving_up, &s, context_gone);
  TEST_OK(ax_run_host(s.executable, &host, &made));
  assert_int_equal(s.contexts_inside, 0);
  assert_int_equal(s.contexts, 1);
  TEST_NEAR(((float *)made.data)[3], 5, 0);
  ax_host_array_release(&made);
  ax_runtime_release(runtime);
}

/* --- The runtime --- */

/* The callback releases the runtime's last reference, while another run waits for this one's result. */
static void test_runtime_in_callback(void **state) {
  (void)state;
  for (int i = 0; i < times; i++) {
    const bool starts = i % 2 == 0;
    scene s = {.slow = starts};
    s.given = new_runtime(i % 4 < 2 ? 3 : 1, &s);
    s.executable = compile(s.given, body, 2, giving_up, &s, context_gone);
    s.in[0] = put(s.given, 10);
    s.in[1] = lend(s.given, part_gone, &s);
    ax_executable *e = ax_executable_retain(s.executable);
    ax_array *first = s.in[0], *second = ax_array_retain(s.in[1]), *made, *then;
    TEST_OK((starts ? ax_run_start : ax_run)(e, 2, s.in, 1, &made));
    TEST_OK(ax_run_start(e, AX_ARRAYS(made, second), &then));
    ax_executable_release(e);
    ax_array_release(second);
    if (i % 3 == 0) expect(then, 52);
    ax_array_release(first);
    ax_array_release(made);
    ax_array_release(then);
    expect_gone(&s);
  }
}

/* All references are dropped while the callback is under way: the run's end releases its context, which has the runtime's last
   one. */
static void test_runtime_in_context(void **state) {
  (void)state;
  for (int i = 0; i < times; i++) {
    scene s = {.slow = true, .gave_up = true};
    s.given = new_runtime(3, &s);
    ax_executable *e = compile(s.given, plus_callback, 1, giving_up, &s, release_runtime);
    ax_array *x = put(s.given, 10), *made;
    TEST_OK(ax_run_start(e, &x, &made));
    ax_executable_release(e);
    ax_array_release(x);
    if (i % 2 == 0) TEST_OK(ax_array_wait(made));
    ax_array_release(made);
    expect_gone(&s);
  }
}

/* Likewise by the release of an argument's memory. */
static void test_runtime_in_part(void **state) {
  (void)state;
  for (int i = 0; i < times; i++) {
    scene s = {.slow = true, .gave_up = true};
    s.given = new_runtime(i % 4 < 2 ? 3 : 1, &s);
    ax_executable *e = compile(s.given, plus_callback, 1, giving_up, &s, NULL);
    ax_array *x = lend(s.given, release_runtime, &s), *made;
    TEST_OK(ax_run_start(e, &x, &made));
    ax_executable_release(e);
    ax_array_release(x);
    if (i % 2 == 0) TEST_OK(ax_array_wait(made));
    ax_array_release(made);
    expect_gone(&s);
  }
}

static void on_devices(const ax_value *in, ax_value *out, void *context) {
  ax_io_callback(context, false, AX_LIST(1, in), AX_TYPES(), NULL);
  out[0] = ax_add(in[0], ax_real(1));
}

static void mapped(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_shard_map(&mesh, "d -> d", ((ax_fn){on_devices, 1, 1, context}), in, out);
}

/* Devices that several threads run, one of which releases the runtime's last reference. */
static void test_runtime_in_helper(void **state) {
  (void)state;
  for (int i = 0; i < times; i++) {
    scene s = {.slow = true};
    s.given = new_runtime(3, &s);
    ax_executable *e = compile(s.given, mapped, 1, giving_up, &s, context_gone);
    test_use_threads(e);
    ax_array *x = put(s.given, 10), *made, *then;
    TEST_OK(ax_run_start(e, &x, &made));
    TEST_OK((i % 2 == 0 ? ax_run : ax_run_start)(e, 1, &made, 1, &then));
    ax_executable_release(e);
    ax_array_release(x);
    ax_array_release(made);
    if (i % 3 > 0) expect(then, 12);
    ax_array_release(then);
    expect_gone(&s);
  }
}

/* A thread that is in no run waits for all of them. */
static void test_runtime_outside(void **state) {
  (void)state;
  scene s = {.slow = true, .gave_up = true};
  s.given = new_runtime(3, &s);
  ax_executable *e = compile(s.given, plus_callback, 1, giving_up, &s, NULL);
  ax_array *x = put(s.given, 10), *made;
  TEST_OK(ax_run_start(e, &x, &made));
  ax_runtime_release(s.given);
  assert_true(ax_array_is_ready(made));
  ax_executable_release(e);
  ax_array_release(x);
  ax_array_release(made);
  assert_int_equal(s.runtimes, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_in_calls),           cmocka_unit_test(test_in_run_host),     cmocka_unit_test(test_runtime_in_callback),
      cmocka_unit_test(test_runtime_in_context), cmocka_unit_test(test_runtime_in_part), cmocka_unit_test(test_runtime_in_helper),
      cmocka_unit_test(test_runtime_outside),    cmocka_unit_test(test_result_in_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
