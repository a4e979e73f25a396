/* What two processes have of one run besides activations, by hand: messages that come to the inbox, long payloads that are fetched, ends
   that both agree on. The program has no instructions; a link leads from the device of process 0 to that of process 1. */
#include "run/remote.h"

#include <pthread.h>
#include <string.h>

#include "processes/within.h"
#include "run/arrivals.h"
#include "run/crossing.h"
#include "run/mail.h"
#include "run/turns.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { COUNT = 2 };

typedef struct side {
  ax_process_map *map;
  ax_processes *processes;
  ax_executor executor;
  ax_compiled compiled;
  ax_execution run;
  ax_status status;
  char message[256];
} side;

static side sides[COUNT];
static ax_mesh mesh;
static ax_code code = {.mesh = &mesh};
static ax_link links[] = {{0, 1}};

static int set_up(void **state) {
  (void)state;
  ax_transport *transports[COUNT];
  TEST_OK(ax_mesh_parse("x=2", &mesh));
  TEST_OK(ax_within_create(COUNT, transports));
  memset(sides, 0, sizeof sides);
  for (uint32_t p = 0; p < COUNT; p++) {
    side *s = &sides[p];
    TEST_OK(ax_processes_create(transports[p], NULL, 0, &s->processes));
    TEST_OK(ax_process_map_create(&s->processes->rule, 2, &s->map));
    s->executor.processes = s->processes;
    s->compiled = (ax_compiled){.devices = 2, .map = s->map, .codes = &code, .code_count = 1, .links = links, .link_count = 1};
    s->run.compiled = &s->compiled;
    s->run.executor = &s->executor;
    pthread_mutex_init(&s->run.lock, NULL);
    pthread_cond_init(&s->run.change, NULL);
    TEST_OK(ax_mail_init(&s->run));
    TEST_OK(ax_remote_create(&s->run));
    ax_remote_begin(s->run.remote, &(ax_doing){0});
    assert_int_equal(ax_processes_begun(s->processes), 1);
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (uint32_t p = 0; p < COUNT; p++) {
    side *s = &sides[p];
    ax_mail_deinit(&s->run);
    ax_remote_destroy(&s->run);
    pthread_mutex_destroy(&s->run.lock);
    pthread_cond_destroy(&s->run.change);
    ax_processes_destroy(s->processes);
    ax_free(s->map);
  }
  return 0;
}

static void *end_one(void *context) {
  side *s = context;
  atomic_store(&s->run.over, true);
  if (s->status != AX_OK) s->status = ax_error(s->status, "%s", s->message);
  s->status = ax_remote_end(s->run.remote, s->status);
  strncpy(s->message, s->status != AX_OK ? ax_message() : "", sizeof s->message - 1);
  return NULL;
}
static void *refuse_one(void *context) {
  side *s = context;
  s->status = ax_agree(s->processes, &(ax_doing){0}, ax_error(s->status, "%s", s->message));
  strncpy(s->message, ax_message(), sizeof s->message - 1);
  return NULL;
}

/* Process 0 does one thing on a thread of its own, process 1 another here. */
static void both(void *(*first)(void *), void *(*second)(void *)) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, first, &sides[0]), 0);
  second(&sides[1]);
  pthread_join(thread, NULL);
}

static void devices_are_named_with_their_process(void **state) {
  (void)state;
  ax_text text = {0};
  ax_execution_device_name(&text, &sides[1].run, 1);
  ax_text_add(&text, ", ");
  ax_execution_device_name(&text, &sides[1].run, 0);
  assert_string_equal(text.data, "device 1 (x=1), device 0 (x=0) of process 0");
  ax_text_deinit(&text);
  both(end_one, end_one);
}

static void senders_say_that_no_more_comes(void **state) {
  (void)state;
  ax_remote *receiver = sides[1].run.remote;
  assert_int_equal(ax_mail_senders(&sides[0].run), 0);
  assert_int_equal(ax_mail_senders(&sides[1].run), 1);
  assert_int_equal(atomic_load(&receiver->senders), 1);
  assert_false(ax_remote_poll(receiver));
  TEST_OK(ax_mail_close(&sides[1].run)); /* no link leads from there */
  TEST_OK(ax_mail_close(&sides[0].run));
  assert_true(ax_remote_poll(receiver));
  assert_int_equal(atomic_load(&receiver->senders), 0);
  assert_int_equal(atomic_load(&receiver->together.ending.received), 1);
  atomic_store(&receiver->senders, 1); /* both say it again when they end */
  both(end_one, end_one);
  assert_true(sides[0].status == AX_OK && sides[1].status == AX_OK);
}

/* Only where nothing else is to be done. */
static void a_counter_is_awaited(void **state) {
  (void)state;
  ax_remote *r = sides[1].run.remote;
  ax_counter counter;
  ax_worker_slot slot = {.first = AX_NONE};
  sides[1].run.counters = &counter;
  ax_counter_reset(&counter);
  TEST_OK(ax_mail_close(&sides[0].run));
  sides[1].run.threaded = true;
  assert_false(ax_remote_await(r, &slot, 0, 1));
  sides[1].run.threaded = false;
  atomic_store(&r->held_back, 1);
  assert_false(ax_remote_await(r, &slot, 0, 1));
  atomic_store(&r->held_back, 0);
  slot.first = 0;
  assert_false(ax_remote_await(r, &slot, 0, 1));
  assert_int_equal(atomic_load(&r->together.ending.received), 0);
  slot.first = AX_NONE;
  assert_false(ax_remote_await(r, &slot, 0, 1)); /* a message comes, but what is awaited does not */
  assert_int_equal(atomic_load(&r->together.ending.received), 1);
  atomic_store(&counter.count, 1);
  assert_true(ax_remote_await(r, &slot, 0, 1));
  atomic_store(&r->senders, 1); /* both say it again when they end */
  both(end_one, end_one);
}

static bool never(ax_execution *run) {
  (void)run;
  return false;
}

/* A message wakes a process that waits, and it is not idle while the payload is on its way. */
static void a_long_payload_is_fetched(void **state) {
  (void)state;
  static char sent[2 * AX_SHORT_PAYLOAD];
  ax_remote *from = sides[0].run.remote, *to = sides[1].run.remote;
  ax_envelope envelope = {.kind = AX_MESSAGE_LETTER, .bytes = sizeof sent};
  memset(sent, 7, sizeof sent);
  assert_false(ax_remote_idle(to));
  assert_true(atomic_load(&to->together.ending.idle));
  TEST_OK(ax_remote_send(from, 1, &envelope, sent));
  ax_remote_wait(to, never);
  assert_true(ax_together_has_come(&to->together));
  assert_false(ax_remote_idle(to));
  assert_false(atomic_load(&to->together.ending.idle)); /* it has not handled the message */
  ax_delivery *delivery = ax_together_take(&to->together);
  assert_null(delivery->next);
  assert_null(delivery->payload);
  TEST_OK(ax_remote_fetch(to, delivery));
  assert_false(ax_remote_idle(to));
  assert_false(atomic_load(&to->together.ending.idle)); /* the payload has not come */
  ax_remote_wait(to, never);
  delivery = ax_together_take(&to->together);
  assert_non_null(delivery);
  assert_memory_equal(delivery->payload, sent, sizeof sent);
  ax_delivery_free(delivery);
  both(end_one, end_one);
}

static void a_failure_is_everyones(void **state) {
  (void)state;
  sides[1].status = AX_NOT_FINITE;
  strcpy(sides[1].message, "a NaN");
  both(end_one, end_one);
  for (uint32_t p = 0; p < COUNT; p++) {
    assert_int_equal(sides[p].status, AX_NOT_FINITE);
    assert_string_equal(sides[p].message, "process 1: a NaN");
  }
}

/* The next run of process 0 cannot begin; that of process 1 fails with its message. */
static void *begin_and_end(void *context) {
  side *s = context;
  ax_remote_begin(s->run.remote, &(ax_doing){0});
  return end_one(context);
}
static void a_run_that_cannot_begin_fails_everywhere(void **state) {
  (void)state;
  both(end_one, end_one);
  sides[0].status = AX_OUT_OF_MEMORY;
  strcpy(sides[0].message, "no room");
  both(refuse_one, begin_and_end);
  for (uint32_t p = 0; p < COUNT; p++) {
    assert_int_equal(ax_processes_begun(sides[p].processes), 2);
    assert_int_equal(sides[p].status, AX_OUT_OF_MEMORY);
    assert_string_equal(sides[p].message, "process 0: no room");
  }
}

static void no_group_of_the_program_crosses(void **state) {
  (void)state;
  ax_text text = {0};
  ax_crossing_deinit(sides[0].run.remote);
  TEST_OK(ax_crossing_init(sides[0].run.remote));
  assert_int_equal(ax_crossing_missing(&text, &sides[0].run, 0, 1, NULL, 3), 3);
  assert_int_equal(ax_crossing_report(sides[0].run.remote), AX_DEADLOCK);
  ax_crossing_reset(sides[0].run.remote);
  assert_false(ax_crossing_take_here(&sides[0].run, &(ax_delivery){.from = 1, .envelope = {.kind = AX_MESSAGE_PART, .place = 4}}));
  ax_delivery *delivery;
  TEST_OK(ax_delivery_make(&(ax_envelope){.kind = AX_MESSAGE_PART, .place = 4}, 1, true, NULL, &delivery));
  assert_int_equal(ax_crossing_take(&sides[0].run, delivery), AX_INTERNAL);
  assert_string_equal(ax_message(), "process 1 sends what this program does not exchange");
  both(end_one, end_one);
}

static void no_calls_are_made_by_the_program(void **state) {
  (void)state;
  ax_delivery *delivery;
  sides[0].compiled.turns = AX_NONE;
  TEST_OK(ax_delivery_make(&(ax_envelope){.kind = AX_MESSAGE_TURN}, 1, true, NULL, &delivery));
  TEST_FAILS(ax_turn_told(&sides[0].run, delivery), AX_INTERNAL, "process 1 makes ordered calls that this program does not have");
  both(end_one, end_one);
}

static void no_rows_are_exchanged_by_the_program(void **state) {
  (void)state;
  ax_delivery *delivery;
  ax_arrivals_reset(sides[0].run.remote);
  ax_arrivals_deinit(sides[0].run.remote);
  TEST_OK(ax_arrivals_init(sides[0].run.remote));
  TEST_OK(ax_delivery_make(&(ax_envelope){.kind = AX_MESSAGE_ROWS, .place = 0}, 1, true, NULL, &delivery));
  TEST_FAILS(ax_arrivals_take(&sides[0].run, delivery), AX_INTERNAL, "process 1 sends rows that this program does not exchange");
  both(end_one, end_one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(devices_are_named_with_their_process, set_up, tear_down),
      cmocka_unit_test_setup_teardown(senders_say_that_no_more_comes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_counter_is_awaited, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_long_payload_is_fetched, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_failure_is_everyones, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_run_that_cannot_begin_fails_everywhere, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_group_of_the_program_crosses, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_calls_are_made_by_the_program, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_rows_are_exchanged_by_the_program, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
