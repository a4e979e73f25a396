/* Calls of an object that is released meanwhile: exactly one of all, the last call or the release, is told to destroy it. */
#include "run/callers.h"

#include <pthread.h>

#include "support/cmocka.h"

enum { threads = 6, rounds = 300, calls = 40 };

static void none_goes_on(void **state) {
  (void)state;
  ax_callers callers;
  ax_callers_init(&callers);
  assert_false(ax_callers_leave(&callers, ax_callers_enter(&callers)));
  assert_true(ax_callers_end(&callers));
}

static void the_last_call_destroys(void **state) {
  (void)state;
  ax_callers callers;
  ax_callers_init(&callers);
  const uint32_t first = ax_callers_enter(&callers), second = ax_callers_enter(&callers);
  assert_false(ax_callers_leave(&callers, first));
  assert_false(ax_callers_end(&callers));
  assert_true(ax_callers_leave(&callers, second));
}

/* A call of an object that has ended may begin another, such as a pending run, which may leave on another thread. */
static void a_call_begins_another(void **state) {
  (void)state;
  ax_callers callers;
  ax_callers_init(&callers);
  const uint32_t first = ax_callers_enter(&callers);
  assert_false(ax_callers_end(&callers));
  const uint32_t second = ax_callers_enter(&callers);
  assert_false(ax_callers_leave(&callers, first));
  assert_true(ax_callers_leave(&callers, second));
}

typedef struct scene {
  ax_callers callers;
  atomic_uint references, destroyed;
} scene;

/* Holds a reference while it begins its calls, and releases it before it leaves the last one. */
static void *call(void *context) {
  scene *s = context;
  uint32_t place = 0;
  for (int i = 0; i < calls; i++) {
    place = ax_callers_enter(&s->callers);
    if (i + 1 < calls && ax_callers_leave(&s->callers, place)) atomic_fetch_add(&s->destroyed, 1);
  }
  if (atomic_fetch_sub(&s->references, 1) == 1 && ax_callers_end(&s->callers)) atomic_fetch_add(&s->destroyed, 1);
  if (ax_callers_leave(&s->callers, place)) atomic_fetch_add(&s->destroyed, 1);
  return NULL;
}

static void threads_leave_and_end(void **state) {
  (void)state;
  for (int round = 0; round < rounds; round++) {
    scene s = {.references = threads};
    pthread_t thread[threads];
    ax_callers_init(&s.callers);
    for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&thread[i], NULL, call, &s), 0);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&s.destroyed), 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(none_goes_on),
      cmocka_unit_test(the_last_call_destroys),
      cmocka_unit_test(a_call_begins_another),
      cmocka_unit_test(threads_leave_and_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
