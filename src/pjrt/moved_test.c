/* Buffers in memory of the caller's that does not begin at a line of the cache: after some runs they lie elsewhere, unless somebody knows
   where they are. */
#include <pthread.h>
#include <stdint.h>

#include "support/plugin.h"

enum { count = 1024, enough = 8 }; /* elements; runs after which a buffer has moved */

static char twice[] = MODULE("1", "func.func public @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n"
                                  "  %0 = stablehlo.add %x, %x : tensor<1024xf32>\n  return %0 : tensor<1024xf32>\n}\n");

typedef struct lent {
  ax_pjrt_client *client;
  ax_pjrt_loaded_executable *loaded;
  ax_pjrt_buffer *buffer;
  ax_pjrt_event *done; /* of the lending */
  float *data;
} lent;

static _Alignas(64) float memory[2 * count + 16];

/* strides: NULL: dense. */
static lent lend_by(size_t offset, ax_pjrt_host_semantics semantics, const int64_t *strides) {
  static const int64_t dims[] = {count};
  lent l = {.client = create(1), .data = memory + offset};
  for (int i = 0; i < count; i++) l.data[i] = (float)i;
  CALL(client_buffer_from_host_buffer, .of = l.client, .data = l.data, .element = AX_PJRT_F32, .dims = dims, .rank = 1, .semantics = semantics,
       .strides = strides, .stride_count = strides != NULL, .device = device_of(l.client, 0));
  l.buffer = client_buffer_from_host_buffer_args.value;
  l.done = client_buffer_from_host_buffer_args.done;
  expect_no_error("compile", compile(l.client, twice, "", 0, &l.loaded));
  return l;
}

static lent lend(size_t offset, ax_pjrt_host_semantics semantics) { return lend_by(offset, semantics, NULL); }

static void end(lent l) {
  drop(l.buffer);
  CALL(loaded_destroy, .of = l.loaded);
  CALL(event_destroy, .of = l.done);
  destroy(l.client);
}

static void run_once(const lent *l, float *back) {
  ax_pjrt_buffer *result, *const *const lists[] = {&l->buffer};
  ax_pjrt_buffer **const outputs[] = {&result};
  CALL(loaded_execute, .of = l->loaded, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs);
  read_buffer(result, back, count * sizeof *back);
  drop(result);
}

static void run_any(const lent *l, int times) {
  for (float back[count]; times > 0; times--) run_once(l, back);
}

static void run(const lent *l, int times) {
  for (float back[count]; times > 0; times--) {
    run_once(l, back);
    for (int i = 0; i < count; i++) assert_float_equal(back[i], 2 * i, 0);
  }
}

static bool is_given_back(const lent *l) {
  CALL(event_is_ready, .of = l->done);
  return event_is_ready_args.value;
}

static void *address_of(const lent *l) {
  CALL(buffer_device_pointer, .of = l->buffer);
  return buffer_device_pointer_args.value;
}

static void hold(const lent *l) { CALL(buffer_increase_references, .of = l->buffer); }
static void let_go(const lent *l) { CALL(buffer_decrease_references, .of = l->buffer); }

static void after_some_runs(void **state) {
  (void)state;
  const lent l = lend(4, AX_PJRT_SHARED);
  run(&l, enough - 1);
  assert_false(is_given_back(&l));
  run(&l, 1);
  assert_true(is_given_back(&l));
  for (int i = 0; i < count; i++) l.data[i] = -1; /* it is the caller's again */
  run(&l, 2);
  assert_int_equal((uintptr_t)address_of(&l) % 64, 0);
  end(l);
}

/* As NumPy's views do: they hold the buffer, and ask where it is. */
static void not_while_it_is_held(void **state) {
  (void)state;
  const lent l = lend(4, AX_PJRT_SHARED);
  hold(&l);
  assert_ptr_equal(address_of(&l), l.data);
  run(&l, 3 * enough);
  assert_ptr_equal(address_of(&l), l.data);
  let_go(&l);
  run(&l, enough);
  assert_true(is_given_back(&l));
  hold(&l);
  assert_ptr_not_equal(address_of(&l), l.data);
  let_go(&l);
  end(l);
}

static void never_once_the_address_is_known(void **state) {
  (void)state;
  const lent l = lend(4, AX_PJRT_SHARED);
  CALL(buffer_unsafe_pointer, .of = l.buffer);
  run(&l, 2 * enough);
  assert_false(is_given_back(&l));
  end(l);
}

static void not_where_it_gains_nothing(void **state) {
  (void)state;
  const lent aligned = lend(0, AX_PJRT_SHARED);
  run(&aligned, 2 * enough);
  assert_false(is_given_back(&aligned));
  end(aligned);
  const lent copied = lend_by(4, AX_PJRT_SHARED, (const int64_t[]){8}); /* every second number: the buffer has memory of its own */
  hold(&copied);
  const void *own = address_of(&copied);
  let_go(&copied);
  run_any(&copied, 2 * enough);
  hold(&copied);
  assert_ptr_equal(address_of(&copied), own);
  let_go(&copied);
  end(copied);
  const lent changing = lend(4, AX_PJRT_SHARED_MUTABLE);
  run(&changing, 2 * enough);
  assert_false(is_given_back(&changing));
  end(changing);
}

static void *run_often(void *context) {
  run(context, 2 * enough);
  return NULL;
}

static void while_threads_run(void **state) {
  (void)state;
  enum { threads = 4 };
  lent l = lend(4, AX_PJRT_SHARED);
  pthread_t thread[threads];
  for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_often, &l), 0);
  for (int i = 0; i < 100; i++) {
    hold(&l);
    const float *at = address_of(&l);
    for (int k = 0; k < count; k += 100) assert_float_equal(at[k], k, 0);
    let_go(&l);
  }
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  run(&l, enough); /* the buffer may have been held each time that it was to move */
  assert_true(is_given_back(&l));
  end(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(after_some_runs),
      cmocka_unit_test(not_while_it_is_held),
      cmocka_unit_test(never_once_the_address_is_known),
      cmocka_unit_test(not_where_it_gains_nothing),
      cmocka_unit_test(while_threads_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
