/* Events come out by time, whatever the order they went in by; those of one instant in that order. */
#include "sim/early.h"
#include "sim/queue.h"

#include "support/cmocka.h"
#include "support/tensor.h"

static uint64_t draw(uint64_t *random, uint64_t below) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (*random >> 33) % below;
}

static void put(ax_sim_queue *q, double time, ax_sim_event_kind kind, uint32_t number) {
  TEST_OK(ax_sim_queue_push(q, &(ax_sim_event){.time = time, .kind = kind, .image = number}));
}

static void comes_next(ax_sim_queue *q, uint32_t number) {
  const ax_sim_event event = ax_sim_queue_pop(q);
  assert_int_equal(event.image, number);
}

/* Takes events out as long as there are more than `left`. Returns the time of the last. */
static double take(ax_sim_queue *q, uint32_t *count, uint32_t left, double last) {
  for (; *count > left; --*count) {
    const double next = ax_sim_queue_time(q);
    assert_true(next >= last);
    last = next;
    const ax_sim_event event = ax_sim_queue_pop(q);
    TEST_NEAR(event.time, next, 0);
  }
  return last;
}

static void come_out_by_time(void **state) {
  (void)state;
  ax_sim_queue q = {0};
  uint64_t random = 7;
  uint32_t count = 0;
  double now = 0;
  for (int round = 0; round < 200; round++) {
    for (uint64_t n = draw(&random, 300); n > 0; n--, count++) /* some at a few instants, others at one of their own each */
      put(&q, now + (double)draw(&random, round % 2 == 0 ? 5 : 1u << 20), AX_EVENT_SEND, count);
    now = take(&q, &count, (uint32_t)draw(&random, count + 1), now);
  }
  (void)take(&q, &count, 0, now);
  assert_true(ax_sim_queue_is_empty(&q));
  ax_sim_queue_deinit(&q);
}

static void stay_in_order_within_an_instant(void **state) {
  (void)state;
  ax_sim_queue q = {0};
  for (uint32_t i = 0; i < 100; i++) put(&q, i % 2, AX_EVENT_SEND, i);
  for (uint32_t i = 0; i < 100; i++) comes_next(&q, i < 50 ? 2 * i : 2 * (i - 50) + 1);
  ax_sim_queue_deinit(&q);
}

static void later_ones_are_delayed(void **state) {
  (void)state;
  ax_sim_queue q = {0};
  put(&q, 1, AX_EVENT_ARRIVE, 0);
  put(&q, 2, AX_EVENT_WALK, 1);
  put(&q, 3, AX_EVENT_SEND, 2);
  TEST_OK(ax_sim_queue_delay(&q, AX_EVENT_SEND, 10));
  uint32_t seen = 0;
  AX_SIM_QUEUE_EACH(&q, i, queued) seen |= 1u << queued->event.image;
  assert_int_equal(seen, 7);
  comes_next(&q, 1);
  TEST_NEAR(ax_sim_queue_time(&q), 11, 0);
  comes_next(&q, 0);
  comes_next(&q, 2);
  ax_sim_queue_deinit(&q);
}

/* Lists of one pool, beside counts in plain tables. */
static void early_messages_are_counted(void **state) {
  (void)state;
  enum { lists = 3, keys = 5 };
  ax_sim_early_pool pool = {0};
  uint32_t first[lists] = {0};
  int64_t counts[lists][keys] = {0};
  uint64_t random = 7;
  for (int i = 0; i < 2000; i++) {
    const uint32_t list = (uint32_t)draw(&random, lists), key = (uint32_t)draw(&random, keys);
    ax_sim_early *kept = NULL;
    if (draw(&random, 3) == 0) {
      assert_int_equal(ax_sim_early_take(&pool, &first[list], key), counts[list][key]);
      counts[list][key] = 0;
    } else {
      TEST_OK(ax_sim_early_keep(&pool, &first[list], key, i % 2 == 0 ? &kept : NULL));
      counts[list][key]++;
      assert_true(i % 2 == 1 || (kept->key == key && kept->count == counts[list][key]));
    }
    const ax_sim_early *found = ax_sim_early_find(&pool, first[list], key);
    assert_true(found == NULL ? counts[list][key] == 0 : found->count == counts[list][key]);
  }
  assert_true(pool.count <= lists * keys);
  ax_sim_early_deinit(&pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(come_out_by_time),
      cmocka_unit_test(stay_in_order_within_an_instant),
      cmocka_unit_test(later_ones_are_delayed),
      cmocka_unit_test(early_messages_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
