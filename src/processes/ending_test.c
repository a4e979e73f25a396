/* How something that processes do together ends: all well, one failed, none can go on. All processes are looked at by one thread.
   */
#include "processes/ending.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "processes/within.h"
#include "support/cmocka.h"

enum { COUNT = 3, MANY = 40 };

typedef struct party {
  ax_processes *processes;
  ax_receiver receiver;
  ax_ending ending;
  ax_delivery *inbox[4 * MANY];
  uint32_t count, messages; /* in the inbox; in all */
} party;

static party parties[MANY];
static uint32_t present = COUNT; /* of them */

static void keep(void *context, ax_delivery *delivery) {
  party *p = context;
  p->messages++;
  p->inbox[p->count++] = delivery;
}

static void begin(void) {
  ax_transport *transports[MANY];
  memset(parties, 0, sizeof parties);
  assert_int_equal(ax_within_create(present, transports), AX_OK);
  for (uint32_t p = 0; p < present; p++) {
    assert_int_equal(ax_processes_create(transports[p], NULL, 0, &parties[p].processes), AX_OK);
    assert_int_equal(ax_ending_init(&parties[p].ending, parties[p].processes), AX_OK);
    ax_ending_reset(&parties[p].ending);
    parties[p].receiver = (ax_receiver){.deliver = keep, .context = &parties[p]};
    ax_processes_begin(parties[p].processes, &parties[p].receiver);
    parties[p].ending.number = parties[p].receiver.number;
  }
}

static void end(void) {
  for (uint32_t p = 0; p < present; p++) {
    ax_processes_end(parties[p].processes, &parties[p].receiver);
    ax_ending_deinit(&parties[p].ending);
    for (uint32_t i = 0; i < parties[p].count; i++) ax_delivery_free(parties[p].inbox[i]);
    ax_processes_destroy(parties[p].processes);
  }
}

/* Handles what has come to one of them. */
static bool handle_at(uint32_t p) {
  bool moved;
  assert_int_equal(ax_processes_poll(parties[p].processes, &moved), AX_OK);
  for (uint32_t i = 0; i < parties[p].count; i++) {
    assert_int_equal(ax_ending_handle(&parties[p].ending, parties[p].inbox[i]), AX_OK);
    ax_delivery_free(parties[p].inbox[i]);
  }
  parties[p].count = 0;
  return moved;
}

/* Moves and handles messages until there are none. */
static void settle(void) {
  for (bool any = true; any;) {
    any = false;
    for (uint32_t p = 0; p < present; p++) any = handle_at(p) || any;
  }
}

static void count(uint32_t p, uint64_t sent, uint64_t received) {
  atomic_store(&parties[p].ending.sent, sent);
  atomic_store(&parties[p].ending.received, received);
}
static void tell(uint32_t p) {
  atomic_store(&parties[p].ending.idle, true);
  assert_int_equal(ax_ending_tell(&parties[p].ending), AX_OK);
}
static uint32_t stuck(void) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < present; p++) n += atomic_load(&parties[p].ending.stuck);
  return n;
}

static void all_end_well(void **state) {
  (void)state;
  begin();
  for (uint32_t p = 0; p < present; p++) {
    assert_false(ax_ending_over(&parties[0].ending));
    assert_int_equal(ax_ending_say(&parties[p].ending, AX_OK, NULL), AX_OK);
    settle();
  }
  for (uint32_t p = 0; p < present; p++) {
    assert_true(ax_ending_over(&parties[p].ending));
    assert_int_equal(ax_ending_result(&parties[p].ending), AX_OK);
  }
  end();
}

static void a_failure_is_everyones(void **state) {
  (void)state;
  begin();
  assert_int_equal(ax_ending_say(&parties[2].ending, AX_OUT_OF_MEMORY, "no room"), AX_OK);
  assert_int_equal(ax_ending_say(&parties[1].ending, AX_NOT_FINITE, "a NaN"), AX_OK);
  settle();
  assert_true(atomic_load(&parties[0].ending.failed));
  assert_int_equal(ax_ending_say(&parties[0].ending, AX_OK, NULL), AX_OK);
  settle();
  for (uint32_t p = 0; p < present; p++) {
    assert_int_equal(ax_ending_result(&parties[p].ending), AX_NOT_FINITE);
    assert_string_equal(ax_message(), "process 1: a NaN");
  }
  end();
}

static void say_at(uint32_t p, ax_place place, const char *message) {
  parties[p].ending.place = place;
  assert_int_equal(ax_ending_say(&parties[p].ending, AX_NOT_FINITE, message), AX_OK);
}
static void check_all(ax_status status, const char *message) {
  settle();
  for (uint32_t p = 0; p < present; p++) {
    assert_int_equal(ax_ending_result(&parties[p].ending), status);
    assert_string_equal(ax_message(), message);
  }
  end();
}

/* Whoever says it first; those that waited for it are in no deadlock of their own; but what befell a process itself is said
   first. */
static void the_first_failure_in_the_program_is_everyones(void **state) {
  (void)state;
  const ax_place early = {4, {7, 1, 9, 2}}, later = {4, {7, 2, 8, 0}}, same_place = {4, {7, 1, 9, 5}}, shorter = {2, {7, 1}};
  begin();
  say_at(0, later, "a later one"), say_at(2, early, "the first"), say_at(1, same_place, "of another device");
  check_all(AX_NOT_FINITE, "process 2: the first");
  begin();
  say_at(0, early, "inside"), say_at(1, shorter, "before"), say_at(2, later, "a later one");
  check_all(AX_NOT_FINITE, "process 1: before");
  begin();
  assert_int_equal(ax_ending_say(&parties[0].ending, AX_DEADLOCK, "waits"), AX_OK);
  say_at(1, later, "found"), say_at(2, later, "found too");
  check_all(AX_NOT_FINITE, "process 1: found");
  begin();
  say_at(0, early, "found"), say_at(1, later, "found too");
  assert_int_equal(ax_ending_say(&parties[2].ending, AX_OUT_OF_MEMORY, "no room"), AX_OK);
  check_all(AX_OUT_OF_MEMORY, "process 2: no room");
}

/* A process that hears of a failure knows whether all had come to rest before, even if it has not been told. */
static void a_failure_tells_that_none_could_go_on(void **state) {
  (void)state;
  for (int rest = 0; rest < 2; rest++) {
    begin();
    atomic_store(&parties[1].ending.stuck, rest == 1);
    say_at(1, (ax_place){1, {3}}, "found");
    settle();
    assert_int_equal(atomic_load(&parties[2].ending.stuck), rest == 1);
    assert_true(atomic_load(&parties[2].ending.failed));
    end();
  }
}

static void none_can_go_on(void **state) {
  (void)state;
  begin();
  count(0, 3, 2), count(1, 1, 1), count(2, 1, 2);
  tell(0), tell(1);
  settle();
  assert_int_equal(stuck(), 0); /* process 2 has not told */
  tell(2);
  settle();
  assert_int_equal(stuck(), COUNT);
  assert_int_equal(ax_ending_say(&parties[0].ending, AX_DEADLOCK, "waits at a"), AX_OK);
  assert_int_equal(ax_ending_say(&parties[1].ending, AX_OK, NULL), AX_OK);
  assert_int_equal(ax_ending_say(&parties[2].ending, AX_DEADLOCK, "waits at b"), AX_OK);
  settle();
  for (uint32_t p = 0; p < present; p++) {
    assert_int_equal(ax_ending_result(&parties[p].ending), AX_DEADLOCK);
    assert_string_equal(ax_message(), "process 0: waits at a\nprocess 2: waits at b");
  }
  end();
}

static void a_message_on_its_way_is_no_deadlock(void **state) {
  (void)state;
  begin();
  count(0, 3, 2), count(1, 1, 1), count(2, 1, 1); /* one that 2 has not received */
  tell(0), tell(1), tell(2);
  settle();
  assert_int_equal(stuck(), 0);
  count(2, 1, 2);
  tell(2);
  settle();
  assert_int_equal(stuck(), COUNT);
  end();
}

/* Between the two rounds, process 1 has gone on: it was woken by a message that 2 received later than it told. */
static void who_has_gone_on_since_is_asked_again(void **state) {
  (void)state;
  begin();
  count(0, 1, 1), count(1, 1, 1), count(2, 1, 1);
  tell(1), tell(2);
  settle();
  atomic_store(&parties[1].ending.idle, false);
  tell(0); /* the second round begins, and meets a process that is not idle */
  settle();
  assert_int_equal(stuck(), 0);
  count(1, 2, 1), count(2, 1, 2);
  tell(1), tell(2);
  settle();
  assert_int_equal(stuck(), COUNT);
  end();
}

/* The others wait for process 2, which has failed: that is what is reported. */
static void who_waits_for_one_that_failed_is_in_no_deadlock(void **state) {
  (void)state;
  begin();
  assert_int_equal(ax_ending_say(&parties[2].ending, AX_OUT_OF_MEMORY, "no room"), AX_OK);
  tell(2), tell(1);
  assert_true(handle_at(0));
  tell(0);
  settle();
  assert_int_equal(stuck(), 0);
  end();
}

/* Process 1 is asked while it handles a message, and is idle again before all others have answered. It says so once, so that must
   not be lost. */
static void who_is_idle_again_during_a_round_says_it_once(void **state) {
  (void)state;
  begin();
  tell(0), tell(1), tell(2);
  assert_true(handle_at(0)); /* the second round begins */
  atomic_store(&parties[1].ending.idle, false);
  assert_true(handle_at(1));
  tell(1);
  assert_true(handle_at(2));
  assert_true(handle_at(0));
  settle();
  assert_int_equal(stuck(), COUNT);
  end();
}

/* --- Many processes --- */

static uint32_t messages(void) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < present; p++) n += parties[p].messages;
  return n;
}

static void well(uint32_t p) { assert_int_equal(ax_ending_say(&parties[p].ending, AX_OK, NULL), AX_OK); }

/* Two messages for each process but one, whoever is the last; nobody is over before. */
static void many_end_well_by_a_tree(void **state) {
  (void)state;
  for (present = AX_ENDING_FEW + 1; present <= MANY; present += present < 18 ? 1 : 11) {
    for (uint32_t last = 0; last < present; last++) {
      begin();
      for (uint32_t p = 0; p < present; p++)
        if (p != last) well(p);
      settle();
      for (uint32_t p = 0; p < present; p++) assert_false(ax_ending_over(&parties[p].ending));
      well(last);
      settle();
      for (uint32_t p = 0; p < present; p++) assert_true(ax_ending_over(&parties[p].ending) && ax_ending_result(&parties[p].ending) == AX_OK);
      assert_int_equal(messages(), 2 * (present - 1));
      end();
    }
  }
}

/* Those that had ended well before hear of it too, and wait for all others. */
static void a_failure_among_many(void **state) {
  (void)state;
  present = 21;
  for (uint32_t fails = 0; fails < present; fails++) {
    const uint32_t last = (fails + 7) % present;
    begin();
    for (uint32_t p = 0; p < present; p++)
      if (p != fails && p != last) well(p);
    settle();
    assert_int_equal(ax_ending_say(&parties[fails].ending, AX_OUT_OF_MEMORY, "no room"), AX_OK);
    settle();
    for (uint32_t p = 0; p < present; p++) assert_true(p == fails || atomic_load(&parties[p].ending.failed));
    for (uint32_t p = 0; p < present; p++) assert_false(ax_ending_over(&parties[p].ending));
    well(last);
    char message[64];
    snprintf(message, sizeof message, "process %u: no room", fails);
    settle();
    for (uint32_t p = 0; p < present; p++) assert_true(ax_ending_over(&parties[p].ending));
    check_all(AX_OUT_OF_MEMORY, message);
  }
}

/* One whose subtree did the same and one that did not meet somewhere in the tree; then all learn who did what. */
static void many_that_did_not_do_the_same(void **state) {
  (void)state;
  present = 21;
  for (uint32_t other = 0; other < present; other++) {
    begin();
    for (uint32_t p = 0; p < present; p++) parties[p].ending.check = p == other ? 6 : p % 3 == 1 ? 0 : 5;
    for (uint32_t p = 0; p < present; p++) well(p);
    settle();
    for (uint32_t p = 0; p < present; p++) {
      assert_true(ax_ending_over(&parties[p].ending));
      assert_int_equal(parties[p].ending.ended[other].check, 6);
      assert_int_equal(parties[p].ending.ended[other == 3 ? 9 : 3].check, 5);
    }
    end();
  }
}

/* Each then knows who has not come. It is over for all when that one comes, by whichever word is first. */
static void many_wait_long(void **state) {
  (void)state;
  present = 21;
  for (int late = 0; late < 2; late++) { /* the last one comes before it hears from the others, or after */
    begin();
    for (uint32_t p = 0; p < present; p++)
      if (p != 10) well(p);
    settle();
    assert_int_equal(ax_ending_tell_all(&parties[5].ending), AX_OK);
    if (late == 0) well(10);
    settle();
    for (uint32_t p = 0; p < present && late == 1; p++)
      for (uint32_t q = 0; q < present; q++) assert_true(parties[p].ending.ended[q].done == (q != 10));
    if (late == 1) well(10);
    settle();
    for (uint32_t p = 0; p < present; p++) assert_true(ax_ending_over(&parties[p].ending) && ax_ending_result(&parties[p].ending) == AX_OK);
    end();
  }
  present = COUNT;
}

static void messages_for_what_has_not_begun_wait(void **state) {
  (void)state;
  ax_transport *transports[2];
  ax_processes *two[2];
  party later = {0};
  bool any;
  assert_int_equal(ax_within_create(2, transports), AX_OK);
  for (uint32_t p = 0; p < 2; p++) assert_int_equal(ax_processes_create(transports[p], NULL, 0, &two[p]), AX_OK);
  for (uint64_t n = 1; n <= 2; n++)
    for (uint32_t i = 0; i < 2; i++)
      assert_int_equal(ax_processes_send(two[0], 1, &(ax_envelope){.run = n, .kind = i}, NULL, NULL, NULL), AX_OK);
  assert_int_equal(ax_processes_poll(two[1], &any), AX_OK);
  later.receiver = (ax_receiver){.deliver = keep, .context = &later};
  ax_processes_begin(two[1], &later.receiver);
  assert_int_equal(later.count, 2);
  assert_int_equal(later.inbox[1]->envelope.kind, 1);
  ax_processes_end(two[1], &later.receiver);
  assert_int_equal(ax_processes_send(two[0], 1, &(ax_envelope){.run = 1}, NULL, NULL, NULL), AX_OK); /* dropped: 1 has ended */
  assert_int_equal(ax_processes_poll(two[1], &any), AX_OK);
  assert_int_equal(later.count, 2);
  for (uint32_t i = 0; i < later.count; i++) ax_delivery_free(later.inbox[i]);
  for (uint32_t p = 0; p < 2; p++) ax_processes_destroy(two[p]);
  assert_int_equal(ax_within_create(1, transports), AX_OK);
  assert_int_equal(ax_processes_create(transports[0], (const uint32_t[]){0, 1}, 2, two), AX_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_end_well),
      cmocka_unit_test(a_failure_is_everyones),
      cmocka_unit_test(the_first_failure_in_the_program_is_everyones),
      cmocka_unit_test(a_failure_tells_that_none_could_go_on),
      cmocka_unit_test(none_can_go_on),
      cmocka_unit_test(a_message_on_its_way_is_no_deadlock),
      cmocka_unit_test(who_has_gone_on_since_is_asked_again),
      cmocka_unit_test(who_waits_for_one_that_failed_is_in_no_deadlock),
      cmocka_unit_test(who_is_idle_again_during_a_round_says_it_once),
      cmocka_unit_test(many_end_well_by_a_tree),
      cmocka_unit_test(a_failure_among_many),
      cmocka_unit_test(many_that_did_not_do_the_same),
      cmocka_unit_test(many_wait_long),
      cmocka_unit_test(messages_for_what_has_not_begun_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
