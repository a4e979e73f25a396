/* Loans: the owner moves what is lent, or the receiver begins to read it; slots are used again. */
#include "processes/loans.h"

#include <pthread.h>

#include "support/cmocka.h"

static ax_loan_slot slots[AX_LOAN_SLOTS];

static ax_loans make(void) {
  ax_loan_slots_clear(slots);
  return (ax_loans){.slots = slots};
}

static void read_where_it_lies(void **state) {
  (void)state;
  ax_loans loans = make();
  uint64_t address = 77;
  const uint64_t loan = ax_loans_begin(&loans);
  assert_int_equal(ax_loan_look(slots, loan), AX_LOAN_LENT);
  assert_int_equal(ax_loan_read(slots, loan, &address), AX_LOAN_READING);
  assert_int_equal(ax_loan_read(slots, loan, &address), AX_LOAN_READING); /* its next part */
  assert_int_equal(address, 77);
  assert_false(ax_loan_move(slots, loan, 99));
  ax_loan_return(slots, loan);
  assert_int_equal(ax_loan_look(slots, loan), AX_LOAN_OVER);
  ax_loans_end(&loans, loan);
}

static void read_where_it_was_moved(void **state) {
  (void)state;
  ax_loans loans = make();
  uint64_t address = 77;
  const uint64_t loan = ax_loans_begin(&loans);
  assert_true(ax_loan_move(slots, loan, 99));
  assert_false(ax_loan_move(slots, loan, 99));
  assert_int_equal(ax_loan_read(slots, loan, &address), AX_LOAN_MOVED);
  assert_int_equal(address, 99);
  ax_loans_end(&loans, loan);
  assert_int_equal(ax_loan_read(slots, loan, &address), AX_LOAN_OVER);
}

/* A loan that is over is not taken for a later one in its slot. */
static void slots_are_used_again(void **state) {
  (void)state;
  ax_loans loans = make();
  uint64_t all[AX_LOAN_SLOTS], address;
  for (int i = 0; i < AX_LOAN_SLOTS; i++) assert_int_not_equal(all[i] = ax_loans_begin(&loans), 0);
  assert_int_equal(ax_loans_begin(&loans), 0);
  ax_loans_end(&loans, all[7]);
  const uint64_t later = ax_loans_begin(&loans);
  assert_int_not_equal(later, 0);
  assert_int_equal(ax_loan_read(slots, all[7], &address), AX_LOAN_OVER);
  assert_int_equal(ax_loan_look(slots, later), AX_LOAN_LENT);
  assert_int_equal(ax_loans_begin(&(ax_loans){.slots = NULL}), 0);
}

/* Both at once: one of them is first. */
static uint64_t contested;
static void *move(void *moved) {
  *(bool *)moved = ax_loan_move(slots, contested, 5);
  return NULL;
}
static void one_is_first(void **state) {
  (void)state;
  ax_loans loans = make();
  for (int i = 0; i < 500; i++) {
    pthread_t owner;
    bool moved;
    uint64_t address = 0;
    contested = ax_loans_begin(&loans);
    assert_int_equal(pthread_create(&owner, NULL, move, &moved), 0);
    const ax_loan_state got = ax_loan_read(slots, contested, &address);
    pthread_join(owner, NULL);
    assert_int_equal(got, moved ? AX_LOAN_MOVED : AX_LOAN_READING);
    assert_int_equal(address, moved ? 5 : 0);
    ax_loans_end(&loans, contested);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(read_where_it_lies),
      cmocka_unit_test(read_where_it_was_moved),
      cmocka_unit_test(slots_are_used_again),
      cmocka_unit_test(one_is_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
