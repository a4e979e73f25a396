/* A sum of four members in two processes, of which this one has 1 and 3: what waits, and in which order it is taken. */
#include <string.h>

#include "run/crossing.h"
#include "run/crossing_group.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { MEMBERS = 4, OWN = 0, OTHER = 1 };

typedef struct waiting {
  ax_exchange exchange;
  ax_push push;
  ax_instr instr;
  ax_crossing crossing;
  ax_counter counter;
  ax_execution run;
  ax_deliveries lists[2];
  ax_open_round *rounds[2];
  ax_crossing_group group;
} waiting;

static uint32_t begin[] = {0, 2}, held[] = {1, 3, 0, 2}, here[] = {AX_NONE, 1, AX_NONE, 3};
static ax_party parties[] = {{.process = OWN, .first = 0, .count = 2}, {.process = OTHER, .first = 2, .count = 2}};

/* Rounds 1 and 2 are open. */
static void set_up(waiting *w, ax_scalar combine) {
  *w = (waiting){.exchange.combine = combine, .group.latest = 2};
  w->crossing = (ax_crossing){.groups = 1, .members = MEMBERS, .begin = begin, .parties = parties, .held = held, .here = here};
  w->push = (ax_push){.exchange = &w->exchange, .crossing = &w->crossing, .members = MEMBERS};
  w->instr = (ax_instr){.kind = AX_INSTR_PUSH, .push = &w->push};
  w->run.counters = &w->counter;
  static ax_open_round first, second;
  first = (ax_open_round){.round = 1, .next = &second};
  second = (ax_open_round){.round = 2};
  w->rounds[0] = &first;
  w->rounds[1] = &second;
  w->group.instr = &w->instr;
  w->group.own = &parties[OWN];
  w->group.waiting = w->lists;
  w->group.rounds = w->rounds[0];
}

static void add(waiting *w, uint32_t from, uint64_t round, uint32_t member) {
  const ax_envelope envelope = {.bytes = 4, .member = member, .words = {round}};
  ax_delivery *delivery;
  TEST_OK(ax_delivery_make(&envelope, from, true, &(float){1}, &delivery));
  ax_crossing_wait(&w->group, delivery);
}

/* Takes the next, which must be that one; AX_NONE: none may be taken. */
static void take(waiting *w, uint64_t round, uint32_t member) {
  ax_open_round *found = NULL;
  ax_delivery *one = ax_crossing_take_ready(&w->run, &w->group, &found);
  if (member == AX_NONE) assert_null(one);
  if (member == AX_NONE) return;
  assert_non_null(one);
  assert_int_equal(one->envelope.words[0], round);
  assert_int_equal(one->envelope.member, member);
  assert_ptr_equal(found, w->rounds[round - 1]);
  ax_delivery_free(one);
  atomic_fetch_add(&w->counter.count, 1);
}

static void members_take_turns(void **state) {
  (void)state;
  waiting w;
  set_up(&w, AX_SCALAR_ADD);
  add(&w, OTHER, 1, 2);
  take(&w, 1, AX_NONE);
  add(&w, OTHER, 1, 0);
  take(&w, 1, 0);
  take(&w, 1, AX_NONE);               /* it is the turn of member 1, of this process */
  atomic_fetch_add(&w.counter.count, 1); /* which comes */
  take(&w, 1, 2);
  take(&w, 1, AX_NONE);
}

static void what_members_here_have_left_takes_turns_too(void **state) {
  (void)state;
  waiting w;
  set_up(&w, AX_SCALAR_ADD);
  add(&w, OWN, 1, 3);
  add(&w, OWN, 1, 1);
  take(&w, 1, AX_NONE);
  assert_int_equal(w.group.left, 2);
  add(&w, OTHER, 1, 0);
  add(&w, OTHER, 1, 2);
  for (uint32_t m = 0; m < MEMBERS; m++) take(&w, 1, m);
  assert_int_equal(w.group.left, 0);
  assert_int_equal(w.group.waiting_count, 0);
}

/* Also those of rounds that are not open yet, which came first. */
static void rounds_follow_one_another(void **state) {
  (void)state;
  waiting w;
  set_up(&w, AX_SCALAR_ADD);
  add(&w, OTHER, 3, 0);
  add(&w, OWN, 2, 1);
  add(&w, OTHER, 2, 0);
  add(&w, OTHER, 1, 2);
  add(&w, OTHER, 1, 0);
  take(&w, 1, 0);
  take(&w, 1, AX_NONE);
  add(&w, OWN, 1, 1);
  take(&w, 1, 1);
  take(&w, 1, 2);
  take(&w, 1, AX_NONE);
  atomic_fetch_add(&w.counter.count, 1);
  take(&w, 2, 0);
  take(&w, 2, 1);
  take(&w, 3, AX_NONE);
  assert_int_equal(w.group.waiting_count, 1);
  for (int i = 0; i < 2; i++) ax_deliveries_free(&w.lists[i]);
}

static void what_is_only_copied_has_no_turns(void **state) {
  (void)state;
  waiting w;
  set_up(&w, AX_SCALAR_NONE);
  add(&w, OTHER, 1, 2);
  take(&w, 1, 2);
  add(&w, OTHER, 2, 0);
  take(&w, 2, 0);
}

/* A run that fails leaves copies behind. The next one begins without them, and knows it: what waits for the turn of a member here is not
   looked at then. */
static void what_a_failed_run_has_left_is_forgotten(void **state) {
  (void)state;
  waiting w;
  set_up(&w, AX_SCALAR_ADD);
  const ax_compiled compiled = {.crossing_groups = 1};
  ax_remote remote = {.run = &w.run, .groups = &w.group};
  w.run.compiled = &compiled;
  w.group.rounds = NULL;
  add(&w, OWN, 1, 3);
  ax_crossing_reset(&remote);
  assert_null(w.lists[0].first);
  assert_int_equal(w.group.waiting_count, 0);
  assert_int_equal(w.group.left, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_take_turns),
      cmocka_unit_test(what_members_here_have_left_takes_turns_too),
      cmocka_unit_test(rounds_follow_one_another),
      cmocka_unit_test(what_is_only_copied_has_no_turns),
      cmocka_unit_test(what_a_failed_run_has_left_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
