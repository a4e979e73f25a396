/* Long payloads by number: slots are used again, and a number of an earlier use finds nothing. */
#include "processes/transfers.h"

#include "support/cmocka.h"

static int ended;
static void end(void *context) {
  (void)context;
  ended++;
}

static ax_transfer *add(ax_transfers *table, uint64_t run) {
  ax_transfer *one;
  assert_int_equal(ax_transfers_add(table, &(ax_transfer){.run = run, .done = end}, 3, &one), AX_OK);
  return one;
}

static void old_tickets_find_nothing(void **state) {
  (void)state;
  ax_transfers table = {0};
  ax_transfer *a = add(&table, 1), *b = add(&table, 2);
  const uint64_t old = a->ticket;
  assert_ptr_equal(ax_transfers_find(&table, b->ticket), b);
  ax_transfers_remove(&table, a);
  ax_transfer_end(a);
  assert_int_equal(ended, 1);
  ax_transfer *c = add(&table, 3);
  assert_int_equal(ax_transfer_slot(c->ticket), ax_transfer_slot(old));
  assert_null(ax_transfers_find(&table, old));
  assert_null(ax_transfers_find(&table, 77));
  add(&table, 4);
  assert_int_equal(table.used, 3);
  assert_int_equal(ax_transfers_add(&table, &(ax_transfer){0}, 3, &a), AX_UNAVAILABLE); /* 3 tags */
  ax_transfers_deinit(&table);
}

static bool is_odd(const ax_transfer *one, const void *context) {
  (void)context;
  return one->run % 2 == 1;
}

static void some_are_taken(void **state) {
  (void)state;
  ax_transfers table = {0};
  for (uint64_t run = 0; run < 3; run++) add(&table, run);
  ended = 0;
  ax_transfer *list = ax_transfers_take(&table, is_odd, NULL, NULL);
  assert_non_null(list);
  assert_int_equal(list->run, 1);
  assert_null(list->next);
  assert_int_equal(table.used, 2);
  ax_transfer_end(list);
  ax_transfers_deinit(&table);
  assert_int_equal(ended, 1);
}

/* Bytes that are on their way to a process, or from it: of those that have started alone. */
static void what_has_started(void **state) {
  (void)state;
  ax_transfers table = {0};
  for (uint32_t i = 0; i < 3; i++) {
    ax_transfer *one = add(&table, i);
    one->bytes = 10u << i;
    one->peer = i / 2;
  }
  assert_int_equal(ax_transfers_started(&table, 0), 0);
  table.slots[1]->started = table.slots[2]->started = true;
  assert_int_equal(ax_transfers_started(&table, 0), 20);
  assert_int_equal(ax_transfers_started(&table, 1), 40);
  ax_transfers_deinit(&table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(old_tickets_find_nothing),
      cmocka_unit_test(some_are_taken),
      cmocka_unit_test(what_has_started),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
