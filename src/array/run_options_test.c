/* What runs are given for their callbacks, and how their end is told: over workers, for runs that are pending and for runs that are not. Which
   runs are over when they have been started. */
#include <stdatomic.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

static const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {2}};

typedef struct told {
  ax_run_options options;
  ax_user_data data[2];
  double factor;
  atomic_int calls, over, failed;
} told;

/* y = factor * x, or a failure where the run has no factor, or one that is no number. */
static ax_status scale(ax_callback_call *call, void *context) {
  const ax_user_data *found = NULL;
  (void)context;
  for (uint32_t i = 0; i < call->user_data_count; i++)
    if (call->user_data[i].type == 7) found = &call->user_data[i];
  if (found == NULL) return AX_INVALID_ARGUMENT;
  told *t = found->data;
  atomic_fetch_add(&t->calls, 1);
  for (int i = 0; i < 2; i++) ((float *)call->out[0].data)[i] = (float)t->factor * ((const float *)call->in[0].data)[i];
  return t->factor < 0 ? AX_INVALID_ARGUMENT : AX_OK;
}

static void body(const ax_value *in, ax_value *out, void *callback) {
  (ax_io_callback)(callback, false, 1, in, 1, &type, 1, out);
}

static void told_over(ax_status status, const char *message, void *context) {
  told *t = context;
  assert_int_equal(atomic_load(&t->calls), 1);
  assert_true((status == AX_OK) == (message == NULL));
  if (status != AX_OK) atomic_fetch_add(&t->failed, 1);
  atomic_fetch_add(&t->over, 1);
}

static void begin(told *t, double factor) {
  *t = (told){.factor = factor, .data = {{3, NULL}, {7, t}}};
  t->options = (ax_run_options){.user_data_count = 2, .user_data = t->data, .over = told_over, .context = t};
}

static void chain(ax_executable *e, ax_array *x) {
  enum { count = 8 };
  told all[count];
  ax_array *last = ax_array_retain(x), *next;
  float back[2];
  for (int i = 0; i < count; i++) {
    begin(&all[i], i + 1);
    TEST_OK(ax_run_start_with(e, &last, &next, &all[i].options));
    ax_array_release(last);
    last = next;
  }
  TEST_OK((ax_array_read)(last, AX_F32, back, sizeof back));
  assert_float_equal(back[1], 2 * 40320, 0);
  ax_array_release(last);
  ax_runtime_wait(e->runtime);
  for (int i = 0; i < count; i++) assert_int_equal(atomic_load(&all[i].over), 1);
}

static void failing(ax_executable *e, ax_array *x) {
  told t;
  ax_array *y;
  begin(&t, -1);
  ax_status status = ax_run_start_with(e, &x, &y, &t.options);
  if (status == AX_OK) {
    status = ax_array_wait(y);
    ax_runtime_wait(e->runtime);
    assert_int_equal(atomic_load(&t.failed), 1);
  } else {
    assert_int_equal(atomic_load(&t.over), 0); /* this call has told it */
  }
  assert_int_equal(status, AX_INVALID_ARGUMENT);
  ax_array_release(y);
  TEST_FAILS(ax_run_start_with(e, &x, &y, NULL), AX_INVALID_ARGUMENT, "options");
  assert_null(y);
}

static ax_executable *compiled(ax_runtime *runtime, ax_fn function, const ax_compile_options *options) {
  ax_program *program;
  ax_executable *e;
  TEST_OK((ax_trace)(function, 1, &type, &program));
  TEST_OK(ax_compile(runtime, program, options, &e));
  ax_program_release(program);
  return e;
}

/* Calls `function`, which finds `context`. */
static ax_executable *calling(ax_runtime *runtime, ax_callback_function function, void *context) {
  ax_callback *callback;
  TEST_OK(ax_callback_create("called", function, context, NULL, &callback));
  ax_executable *e = compiled(runtime, AX_CLOSURE(body, 1, 1, callback), NULL);
  ax_callback_release(callback);
  return e;
}

static void options(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 3; workers++)
    for (int threads = 0; threads < 2; threads++) {
      ax_runtime *runtime;
      ax_array *x;
      TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
      ax_executable *e = calling(runtime, scale, NULL);
      TEST_OK(ax_device_put_data(runtime, NULL, "", &type, ((const float[]){1, 2}), &x));
      if (threads) test_use_threads(e);
      chain(e, x);
      failing(e, x);
      ax_array_release(x);
      ax_executable_release(e);
      ax_runtime_release(runtime);
    }
}

static AX_BODY(twice) { out[0] = ax_add(in[0], in[0]); }
static AX_BODY(is_small) { out[0] = ax_lt(ax_reduce_max(in[0], AX_ALL_DIMS, false), ax_real(100)); }
static AX_BODY(until_large) { (ax_while)(AX_FN(is_small, 1, 1), AX_FN(twice, 1, 1), 1, in, 1, out); }

static void count_over(ax_status status, const char *message, void *context) {
  (void)message;
  atomic_fetch_add((atomic_int *)context, status == AX_OK ? 1 : 100);
}

/* What is short and waited for is over when the call returns; if its argument is not there yet, it is when that is. */
static void is_over_at_once(ax_runtime *runtime, ax_array *x) {
  atomic_int over = 0;
  const ax_run_options waits = {.over = count_over, .context = &over, .awaited = true}, goes_on = {.over = count_over, .context = &over};
  ax_executable *e = compiled(runtime, AX_FN(twice, 1, 1), NULL);
  ax_array *y, *z, *w;
  test_use_threads(e);
  assert_true(e->compiled.ends_soon);
  TEST_OK(ax_run_start_with(e, &x, &y, &waits));
  assert_true(ax_array_is_ready(y));
  assert_int_equal(atomic_load(&over), 1);
  TEST_OK(ax_run_start_with(e, &y, &z, &goes_on));
  TEST_OK(ax_run_start_with(e, &z, &w, &waits));
  float back[2];
  TEST_OK((ax_array_read)(w, AX_F32, back, sizeof back));
  assert_float_equal(back[1], 16, 0);
  ax_runtime_wait(runtime);
  assert_int_equal(atomic_load(&over), 3);
  ax_array_release(y), ax_array_release(z), ax_array_release(w);
  ax_executable_release(e);
}

/* Then the call fails as the run does, whether its argument is donated or not. */
static void fails_at_once(ax_runtime *runtime) {
  for (int donates = 0; donates < 2; donates++) {
    atomic_int over = 0;
    const ax_run_options waits = {.over = count_over, .context = &over, .awaited = true};
    ax_compile_options options = {.check_numerics = AX_CHECK_INF};
    if (donates == 1) options = (ax_compile_options){.check_numerics = AX_CHECK_INF, .donate = AX_FIRST(1)};
    ax_executable *e = compiled(runtime, AX_FN(twice, 1, 1), &options);
    ax_array *x, *y;
    test_use_threads(e);
    TEST_OK(ax_device_put_data(runtime, NULL, "", &type, ((const float[]){1, 3e38f}), &x));
    TEST_FAILS(ax_run_start_with(e, &x, &y, &waits), AX_NOT_FINITE, "add");
    assert_null(y);
    assert_int_equal(atomic_load(&over), 0);
    ax_array_release(x);
    ax_executable_release(e);
  }
}

typedef struct inner {
  ax_executable *e;
  ax_array *x;
  atomic_int calls;
} inner;

/* Starts a run, and does not wait for it in any way that this library knows of. */
static ax_status starts_another(ax_callback_call *call, void *context) {
  inner *i = context;
  ax_array *y;
  memcpy(call->out[0].data, call->in[0].data, 2 * sizeof(float));
  AX_TRY(ax_run_start(i->e, &i->x, &y));
  if (ax_array_is_ready(y)) atomic_fetch_add(&i->calls, 1);
  ax_array_release(y);
  return AX_OK;
}

/* What a callback starts is over then, since no thread of the team may be left for it. */
static void nested(void **state) {
  (void)state;
  ax_runtime *runtime;
  inner i = {0};
  ax_array *y[4];
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, ((const float[]){1, 2}), &i.x));
  i.e = compiled(runtime, AX_FN(twice, 1, 1), NULL);
  ax_executable *outer = calling(runtime, starts_another, &i);
  test_use_threads(i.e), test_use_threads(outer);
  for (int k = 0; k < 4; k++) TEST_OK(ax_run_start(outer, &i.x, &y[k]));
  ax_runtime_wait(runtime);
  assert_int_equal(atomic_load(&i.calls), 4);
  for (int k = 0; k < 4; k++) ax_array_release(y[k]);
  ax_array_release(i.x);
  ax_executable_release(outer), ax_executable_release(i.e);
  ax_runtime_release(runtime);
}

/* How long its loop goes on is not known before it has run. */
static void ends_as_last_time(ax_executable *loops, ax_array *x) {
  const ax_run_options waits = {.awaited = true};
  ax_array *y;
  test_use_threads(loops);
  assert_int_equal(atomic_load(&loops->took), 0);
  TEST_OK(ax_run(loops, &x, &y));
  assert_true(atomic_load(&loops->took) > 0);
  ax_array_release(y);
  for (int k = 0; k < 8; k++) {
    atomic_store(&loops->took, 5000);
    TEST_OK(ax_run_start_with(loops, &x, &y, &waits));
    assert_true(ax_array_is_ready(y));
    ax_array_release(y);
  }
}

static void awaited(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 3; workers++) {
    ax_runtime *runtime;
    ax_array *x;
    TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
    TEST_OK(ax_device_put_data(runtime, NULL, "", &type, ((const float[]){1, 2}), &x));
    is_over_at_once(runtime, x);
    fails_at_once(runtime);
    ax_executable *loops = compiled(runtime, AX_FN(until_large, 1, 1), NULL), *calls = calling(runtime, scale, NULL);
    assert_false(loops->compiled.ends_soon);
    assert_true(calls->compiled.ends_soon); /* who waits for a call of the host can make it as well */
    ends_as_last_time(loops, x);
    ax_executable_release(loops), ax_executable_release(calls);
    ax_array_release(x);
    ax_runtime_release(runtime);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(options), cmocka_unit_test(awaited), cmocka_unit_test(nested)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
