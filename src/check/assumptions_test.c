/* What a search assumes of acts, and which acts contradict it. */
#include "check/assumptions.h"

#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct setting { /* two semaphores, two regions */
  ax_act_objects objects;
  ax_touches pool;
  ax_assumptions assumed;
} setting;

static setting begin(void) {
  setting s = {0};
  for (int i = 0; i < 2; i++) TEST_OK(ax_act_objects_add_semaphore(&s.objects, (ax_act_semaphore){0}));
  for (int i = 0; i < 2; i++) TEST_OK(ax_act_objects_add_region(&s.objects, (ax_act_region){0}));
  TEST_OK(ax_assumptions_grow(&s.assumed, &s.objects));
  return s;
}

static void end(setting *s) {
  ax_assumptions_deinit(&s->assumed);
  ax_touches_deinit(&s->pool);
  ax_act_objects_deinit(&s->objects);
}

static ax_act touching(setting *s, uint32_t region, bool write, int64_t from, int64_t to) {
  const ax_act act = {.kind = AX_ACT_LOCAL, .touch_first = s->pool.touch_count, .touch_count = 1};
  TEST_OK(ax_touches_add(&s->pool, region, write, false, 1, &(ax_bytes){from, to}));
  return act;
}

static void note(setting *s, uint32_t agent, bool alike, const ax_act *act) {
  ax_assumptions_note(&s->assumed, agent, alike, act, &s->pool);
}

static void one_waits_on_a_semaphore(void **state) {
  (void)state;
  setting s = begin();
  const ax_act wait = {.kind = AX_ACT_WAIT, .object = 1};
  note(&s, 3, false, &wait);
  note(&s, 3, false, &wait);
  assert_false(s.assumed.refuted);
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &wait));
  note(&s, 4, false, &wait);
  assert_true(s.assumed.refuted);
  assert_false(s.assumed.again); /* an exhaustive search does not assume it */
  assert_true(ax_assumptions_dropped(&s.assumed, &s.pool, &wait));
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &(ax_act){.kind = AX_ACT_WAIT, .object = 0}));
  end(&s);
}

static void one_of_many_that_are_alike_counts_as_several(void **state) {
  (void)state;
  setting s = begin();
  note(&s, 3, true, &(ax_act){.kind = AX_ACT_WAIT, .object = 0});
  assert_true(s.assumed.refuted);
  end(&s);
}

static void counts_that_are_read(void **state) {
  (void)state;
  setting s = begin();
  const ax_act read = {.kind = AX_ACT_READ, .object = 0}, signal = {.kind = AX_ACT_SIGNAL, .object = 0};
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &signal));
  note(&s, 1, false, &read);
  assert_true(s.assumed.refuted && s.assumed.again && s.assumed.reads);
  assert_true(ax_assumptions_dropped(&s.assumed, &s.pool, &signal));
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &(ax_act){.kind = AX_ACT_SIGNAL, .object = 1}));
  end(&s);
}

static void bytes_that_acts_race_about(void **state) {
  (void)state;
  setting s = begin();
  const ax_act a = touching(&s, 1, true, 0, 40), b = touching(&s, 1, false, 32, 64), other = touching(&s, 0, true, 32, 64);
  const ax_act before = touching(&s, 1, true, 0, 32), within = touching(&s, 1, false, 39, 41);
  note(&s, 0, false, &a);
  assert_false(ax_is_touched_by_several(&s.assumed, 1));
  note(&s, 1, false, &b);
  assert_true(ax_is_touched_by_several(&s.assumed, 1) && !ax_is_touched_by_several(&s.assumed, 0));
  s.assumed.refuted = false;
  TEST_OK(ax_assumptions_contend(&s.assumed, &s.pool, &b, &within)); /* both read */
  TEST_OK(ax_assumptions_contend(&s.assumed, &s.pool, &a, &other));
  assert_false(s.assumed.refuted);
  TEST_OK(ax_assumptions_contend(&s.assumed, &s.pool, &a, &b));
  assert_true(s.assumed.refuted);
  assert_true(ax_assumptions_dropped(&s.assumed, &s.pool, &a));
  assert_true(ax_assumptions_dropped(&s.assumed, &s.pool, &within)); /* 32 to 40 are contended */
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &before));
  assert_false(ax_assumptions_dropped(&s.assumed, &s.pool, &other));
  s.assumed.refuted = false;
  TEST_OK(ax_assumptions_contend(&s.assumed, &s.pool, &b, &a)); /* known */
  assert_false(s.assumed.refuted);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_waits_on_a_semaphore),
      cmocka_unit_test(one_of_many_that_are_alike_counts_as_several),
      cmocka_unit_test(counts_that_are_read),
      cmocka_unit_test(bytes_that_acts_race_about),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
