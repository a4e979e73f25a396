/* What processes do together: messages short and long, how it ends, and what differs. Each process is a thread. */
#include "processes/together.h"

#include <stdlib.h>

#include "support/parties.h"

enum { COUNT = 3, LONG = 20000 };

static void ends(ax_status (*job)(ax_processes *processes), ax_status status, const char *message) {
  char said[512];
  const ax_status ended = in_parties(COUNT, job, said);
  if (ended != status) print_error("%s\n", said);
  assert_int_equal(ended, status);
  assert_string_equal(said, message);
}

/* --- Messages --- */

typedef struct ring { /* each sends a short message and a long one to the next process */
  ax_together *together;
  uint32_t own, missing;
  bool wrong;
} ring;

static ax_status take(ring *r, ax_delivery *delivery) {
  const ax_envelope *envelope = &delivery->envelope;
  if (envelope->kind != AX_MESSAGE_PART) return ax_together_handle(r->together, delivery);
  ax_status status = ax_together_count(r->together, delivery);
  if (status == AX_OK && delivery->payload == NULL) return ax_together_fetch(r->together, delivery);
  const unsigned char *payload = delivery->payload;
  r->wrong = r->wrong || delivery->from != (r->own + COUNT - 1) % COUNT || payload[0] != delivery->from ||
             payload[envelope->bytes - 1] != delivery->from || delivery->fetched != (envelope->bytes == LONG);
  r->missing--;
  ax_delivery_free(delivery);
  return status;
}

static bool handle(void *context) {
  ring *r = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(r->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    r->wrong = take(r, one) != AX_OK || r->wrong;
  }
  return any;
}

static bool all_has_come(void *context) { return ((const ring *)context)->missing == 0; }

static void describe_nothing(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "nothing");
}

static ax_status send_both(ring *r) {
  const uint32_t next = (r->own + 1) % COUNT;
  unsigned char payload[LONG];
  memset(payload, (int)r->own, sizeof payload);
  AX_TRY(ax_together_send(r->together, next, &(ax_envelope){.kind = AX_MESSAGE_PART, .bytes = 8}, payload, NULL, NULL));
  return ax_together_send(r->together, next, &(ax_envelope){.kind = AX_MESSAGE_PART, .bytes = LONG}, payload, NULL, NULL);
}

static ax_status pass_on(ax_processes *processes, ax_together *together) {
  ring r = {together, processes->rule.process, 2, false};
  ax_together_begin(together, &(ax_doing){7, describe_nothing, NULL, NULL});
  ax_status status = send_both(&r);
  if (status == AX_OK) status = ax_together_until(together, &(ax_waiting){all_has_come, handle, &r, NULL});
  if (status == AX_OK && r.wrong) status = ax_error(AX_INTERNAL, "wrong");
  ax_together_pause(0);
  if (status == AX_OK && ax_together_idle(together)) status = ax_error(AX_INTERNAL, "stuck");
  return ax_together_end(together, status, handle, &r);
}

static ax_status send_round(ax_processes *processes) {
  ax_together *own;
  AX_TRY(ax_together_create(processes, &own));
  ax_status status = pass_on(processes, own);
  if (status == AX_OK) status = pass_on(processes, own);
  ax_together_destroy(own);
  if (status != AX_OK) return status;
  status = pass_on(processes, ax_together_borrow(processes));
  ax_together_give_back(processes);
  return status;
}

static void messages_go_round(void **state) {
  (void)state;
  ends(send_round, AX_OK, "");
}

enum { MANY = 5000 };

typedef struct numbered {
  ax_together *together;
  uint64_t next; /* number to come */
  uint32_t here; /* those that were taken where they lay */
  bool wrong;
} numbered;

static bool take_numbered(void *context) {
  numbered *n = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(n->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    if (one->envelope.kind != AX_MESSAGE_PART) {
      n->wrong = ax_together_handle(n->together, one) != AX_OK || n->wrong;
      continue;
    }
    n->wrong = n->wrong || ax_together_count(n->together, one) != AX_OK || one->envelope.words[0] != n->next++;
    ax_delivery_free(one);
  }
  return any;
}

static bool has_many(void *context) { return ((const numbered *)context)->next == MANY; }

/* Taken one at a time or many at once, as it comes. */
static ax_status send_many(ax_processes *processes) {
  ax_together *t = ax_together_borrow(processes);
  numbered n = {.together = t};
  ax_status status = AX_OK;
  ax_together_begin(t, &(ax_doing){7, describe_nothing, NULL, NULL});
  for (uint64_t i = 0; i < MANY && status == AX_OK; i++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = 8, .words = {i}};
    status = ax_together_send(t, (processes->rule.process + 1) % COUNT, &envelope, &i, NULL, NULL);
    if (i % 7 == 0) (void)take_numbered(&n);
  }
  if (status == AX_OK) status = ax_together_until(t, &(ax_waiting){has_many, take_numbered, &n, NULL});
  if (status == AX_OK && n.wrong) status = ax_error(AX_INTERNAL, "in another order");
  status = ax_together_end(t, status, take_numbered, &n);
  ax_together_give_back(processes);
  return status;
}

/* Some where they lie, by a thread that polls for its receiver, and the others from the inbox: in the order in which they were sent. */
static bool take_numbered_here(void *context, uint32_t from, const ax_envelope *envelope, const void *payload) {
  numbered *n = context;
  const bool takes = envelope->kind == AX_MESSAGE_PART && envelope->words[0] % 3 == 0 && !ax_together_has_come(n->together);
  if (!takes) return false;
  const ax_delivery here = {.envelope = *envelope, .from = from};
  n->wrong = n->wrong || ax_together_count(n->together, &here) != AX_OK || envelope->words[0] != n->next++ ||
             memcmp(payload, &envelope->words[0], sizeof envelope->words[0]) != 0;
  n->here++;
  return true;
}

/* What comes before one has begun is kept by whoever polls, and what comes after a message that stays in the inbox (that another
   has ended) goes there too: so all begin, then all send their first message. */
static pthread_barrier_t all_are_here;

static ax_status send_and_take_here(ax_processes *processes) {
  ax_together *t = ax_together_borrow(processes);
  numbered n = {.together = t};
  ax_status status = AX_OK;
  bool any;
  ax_together_begin(t, &(ax_doing){7, describe_nothing, NULL, NULL});
  ax_receiver receiver = t->receiver;
  receiver.context = &n;
  receiver.take_here = take_numbered_here;
  (void)pthread_barrier_wait(&all_are_here);
  for (uint64_t i = 0; i < MANY && status == AX_OK; i++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = 8, .words = {i}};
    status = ax_together_send(t, (processes->rule.process + 1) % COUNT, &envelope, &i, NULL, NULL);
    if (i == 0) (void)pthread_barrier_wait(&all_are_here);
  }
  while (status == AX_OK && n.next < MANY) {
    status = ax_processes_poll_for(processes, &receiver, &any);
    (void)take_numbered(&n);
  }
  if (status == AX_OK && (n.wrong || n.here == 0)) status = ax_error(AX_INTERNAL, "in another order, or none where it lay");
  const uint32_t from = (processes->rule.process + COUNT - 1) % COUNT;
  const ax_heard heard = ax_processes_heard(processes, from);
  if (status == AX_OK && (heard.number != t->receiver.number || heard.messages < MANY || heard.messages > ax_processes_came(processes, from)))
    status = ax_error(AX_INTERNAL, "%llu messages were heard", (unsigned long long)heard.messages);
  status = ax_together_end(t, status, take_numbered, &n);
  ax_together_give_back(processes);
  return status;
}

static void messages_are_taken_where_they_lie(void **state) {
  (void)state;
  pthread_barrier_init(&all_are_here, NULL, COUNT);
  ends(send_and_take_here, AX_OK, "");
  pthread_barrier_destroy(&all_are_here);
}

static void messages_come_in_order(void **state) {
  (void)state;
  ends(send_many, AX_OK, "");
}

/* --- Ends --- */

static void describe(const void *context, ax_text *text) {
  ax_text_add(text, "first line\n");
  for (uint32_t i = 0; i < 2000; i++) ax_text_add(text, "line %u\n", i); /* long */
  ax_text_add(text, "process %u\n", ((const ax_processes *)context)->rule.process);
}

static ax_status agree_on_all(ax_processes *processes) {
  return ax_agree(processes, &(ax_doing){9, describe, processes, NULL}, AX_OK);
}
static ax_status fail_in_one(ax_processes *processes) {
  const bool fails = processes->rule.process == 1;
  return ax_agree(processes, &(ax_doing){fails ? 0 : 9, describe, processes, NULL}, fails ? ax_error(AX_IO_ERROR, "no file") : AX_OK);
}
static ax_status differ(ax_processes *processes) {
  const uint32_t own = processes->rule.process;
  return ax_agree(processes, &(ax_doing){own == 2 ? 8 : 9, describe, processes, NULL}, AX_OK);
}

static ax_status fail_twice(ax_processes *processes) {
  if (differ(processes) == AX_OK || fail_in_one(processes) == AX_OK) return ax_error(AX_INTERNAL, "no failure");
  return agree_on_all(processes);
}

static void all_end_the_same(void **state) {
  (void)state;
  ends(agree_on_all, AX_OK, "");
  ends(fail_in_one, AX_IO_ERROR, "process 1: no file");
  ends(fail_twice, AX_OK, "");
}

static void the_first_line_that_differs_is_told(void **state) {
  (void)state;
  ends(differ, AX_INVALID_ARGUMENT, "processes 0 and 2 do not do the same, line 2002:\n  process 0: process 0\n  process 2: process 2");
}

/* Whose a device is, all must say alike: here the last process says something else of the second. */
static ax_status differ_in_devices(ax_processes *processes) {
  static const uint32_t lists[][2] = {{0, 1}, {0, 2}};
  const uint32_t own = processes->rule.process;
  processes->rule.listed = 2;
  processes->rule.of = lists[own == 2];
  processes->digest = 5 + (own == 2);
  return ax_agree(processes, &(ax_doing){7, describe_nothing, NULL, NULL}, AX_OK);
}

static void lists_of_processes_are_compared(void **state) {
  (void)state;
  ends(differ_in_devices, AX_INVALID_ARGUMENT,
       "processes 0 and 2 do not do the same, line 3:\n  process 0: takes device 1 for one of process 1\n"
       "  process 2: takes device 1 for one of process 2");
}

/* --- Processes that have left --- */

static bool is_set(void *flag) { return *(bool *)flag; }
static bool set_flag(void *flag) { return *(bool *)flag = true; }
static bool nothing_has_come(void *flag) {
  (void)flag;
  return false;
}

/* One that has all it waited for may leave at once. What it has sent comes by the poll that says it is gone. */
static ax_status wait_for_what_was_sent(ax_processes *processes) {
  if (processes->rule.process == COUNT - 1) return AX_OK; /* it has left */
  ax_together *t = ax_together_borrow(processes);
  bool here = false, never = false;
  ax_together_begin(t, &(ax_doing){7, describe_nothing, NULL, NULL});
  ax_within_lose(processes->transport, COUNT - 1);
  ax_status status = ax_together_until(t, &(ax_waiting){is_set, set_flag, &here, NULL});
  if (status == AX_OK && ax_together_until(t, &(ax_waiting){is_set, nothing_has_come, &never, NULL}) != AX_UNAVAILABLE)
    status = ax_error(AX_INTERNAL, "waits for one that is gone");
  ax_processes_end(processes, &t->receiver);
  ax_together_give_back(processes);
  return status;
}

static void what_was_sent_by_one_that_left_counts(void **state) {
  (void)state;
  ends(wait_for_what_was_sent, AX_OK, "");
}

/* Of those that go on, each is told, and what was sent before counts. */
static ax_status wait_for_one_that_released(ax_processes *processes) {
  if (processes->rule.process == 1) return AX_OK;
  ax_together *t = ax_together_borrow(processes);
  const ax_status before = ax_together_check_released(t);
  ax_together_give_back(processes);
  processes->transport->released(processes->transport->deliver_context, 1);
  if (before != AX_OK) return before;
  const ax_status status = ax_agree(processes, &(ax_doing){7, describe_nothing, NULL, NULL}, AX_OK);
  if (status != AX_UNAVAILABLE || strcmp(ax_message(), "process 1 has released the runtime, and does not come to this") != 0)
    return ax_error(AX_INTERNAL, "waits for one that has released the runtime, or says: %s", ax_message());
  return AX_OK;
}

static void one_that_released_is_not_awaited(void **state) {
  (void)state;
  ends(wait_for_one_that_released, AX_OK, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_go_round),
      cmocka_unit_test(messages_come_in_order),
      cmocka_unit_test(messages_are_taken_where_they_lie),
      cmocka_unit_test(all_end_the_same),
      cmocka_unit_test(the_first_line_that_differs_is_told),
      cmocka_unit_test(lists_of_processes_are_compared),
      cmocka_unit_test(what_was_sent_by_one_that_left_counts),
      cmocka_unit_test(one_that_released_is_not_awaited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
