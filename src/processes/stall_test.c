/* What is said of processes that others wait for. Each process is a thread; its clock stands, or goes on by a second whenever it is
   looked at, so nothing here depends on how long anything takes. */
#include "processes/stall.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processes/together.h"
#include "processes/within.h"
#include "support/cmocka.h"

enum { COUNT = 3 };

static double same_second(void *context) { return *(double *)context; }
static double next_second(void *context) { return (*(double *)context)++; }

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  char text[COUNT][4096]; /* by process: what it has reported */
  uint32_t reports[COUNT];
  double now[COUNT];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void note(const char *lines, void *context) {
  const uint32_t process = *(const uint32_t *)context;
  pthread_mutex_lock(&said.lock);
  strncat(said.text[process], lines, sizeof said.text[process] - strlen(said.text[process]) - 1);
  said.reports[process]++;
  pthread_cond_broadcast(&said.change);
  pthread_mutex_unlock(&said.lock);
}

static void await_reports(uint32_t process, uint32_t count) {
  pthread_mutex_lock(&said.lock);
  while (said.reports[process] < count) pthread_cond_wait(&said.change, &said.lock);
  pthread_mutex_unlock(&said.lock);
}

typedef struct party {
  ax_transport *transport;
  uint32_t number;
  ax_status (*job)(ax_processes *processes);
  pthread_t thread;
  ax_status status;
} party;

static void *be_party(void *context) {
  party *p = context;
  ax_processes *processes;
  p->status = ax_processes_create(p->transport, NULL, 0, &processes);
  if (p->status == AX_OK) p->status = ax_stall_set(&processes->stalls, 10, note, &p->number);
  processes->stalls.clock = same_second;
  processes->stalls.context_of_clock = &said.now[p->number];
  processes->left = 0; /* it was made by the system's clock */
  if (p->status == AX_OK) p->status = p->job(processes);
  ax_processes_destroy(processes);
  return NULL;
}

static uint64_t coming, going; /* bytes between process 1 and the one that looks */

static void look_at(ax_transport *transport, uint32_t process, ax_process_seen *out) {
  (void)transport;
  *out = (ax_process_seen){.pid = (int32_t)(100 + process), .stopped = process == 2};
  if (process == 1) out->coming = coming, out->going = going;
}

static void in_all(uint32_t count, ax_status (*job)(ax_processes *processes)) {
  ax_transport *transports[COUNT];
  party parties[COUNT];
  memset(said.text, 0, sizeof said.text);
  memset(said.reports, 0, sizeof said.reports);
  memset(said.now, 0, sizeof said.now);
  assert_int_equal(ax_within_create(count, transports), AX_OK);
  for (uint32_t p = 0; p < count; p++) {
    parties[p] = (party){.number = p, .transport = transports[p], .job = job};
    assert_int_equal(pthread_create(&parties[p].thread, NULL, be_party, &parties[p]), 0);
  }
  for (uint32_t p = 0; p < count; p++) pthread_join(parties[p].thread, NULL);
  for (uint32_t p = 0; p < count; p++) assert_int_equal(parties[p].status, AX_OK);
}

static void describe_nothing(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "nothing");
}

static ax_status agree(ax_processes *processes, const char *what) {
  return ax_agree(processes, &(ax_doing){7, describe_nothing, NULL, what}, AX_OK);
}

/* --- One that comes late --- */

static ax_status last_is_late(ax_processes *p) {
  AX_TRY(agree(p, "ax_compile"));
  p->stalls.clock = next_second;
  if (p->rule.process == 1) await_reports(0, 3);
  return agree(p, "ax_run");
}

/* The times between reports double. */
static void reports_come_ever_more_rarely(void **state) {
  (void)state;
  in_all(2, last_is_late);
  const char *line = said.text[0];
  uint32_t reports = 0;
  for (double seconds, since = 10; *line != 0; reports++, since *= 2) {
    int length = 0;
    if (sscanf(line, "axle: process 0 waits in ax_run for process 1, which has sent nothing since it left ax_compile %lf s ago\n%n",
               &seconds, &length) != 1 || length == 0)
      fail_msg("%s", line);
    assert_true(seconds == since); /* the look that began the wait was in second 0 */
    line += length;
  }
  assert_true(reports >= 3);
  assert_string_equal(said.text[1], "");
}

static ax_status never_late(ax_processes *p) {
  assert_int_equal(ax_stall_set(&p->stalls, -1, note, p), AX_OK);
  assert_true(p->stalls.seconds == 0);
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  for (int i = 0; i < 100; i++) ax_stall_look(&stall, p, 1, 0, NULL, NULL); /* there is no list to call */
  return agree(p, "ax_run");
}

static void below_0_is_never(void **state) {
  (void)state;
  in_all(1, never_late);
  assert_string_equal(said.text[0], "");
}

/* --- By hand: process 0 of three waits in number 1 --- */

static ax_processes *hand[COUNT];
static double now;
static char *lines; /* of the last report; NULL: none */
static bool awaited[COUNT];

static double hand_clock(void *context) { return *(const double *)context; }
static void keep_lines(const char *text, void *context) {
  (void)context;
  free(lines);
  lines = strdup(text);
}
static void drop(void *context, ax_delivery *delivery) {
  (void)context;
  ax_delivery_free(delivery);
}
static ax_receiver receivers[COUNT];

static int set_up(void **state) {
  (void)state;
  ax_transport *transports[COUNT];
  assert_int_equal(ax_within_create(COUNT, transports), AX_OK);
  now = 100;
  for (uint32_t p = 0; p < COUNT; p++) {
    transports[p]->look_at = look_at;
    assert_int_equal(ax_processes_create(transports[p], NULL, 0, &hand[p]), AX_OK);
    assert_int_equal(ax_stall_set(&hand[p]->stalls, 8, keep_lines, NULL), AX_OK);
    hand[p]->stalls.clock = hand_clock;
    hand[p]->stalls.context_of_clock = &now;
    hand[p]->left = now;
    hand[p]->left = now;
    receivers[p] = (ax_receiver){.what = "ax_run", .deliver = drop};
    ax_processes_begin(hand[p], &receivers[p]);
    awaited[p] = p > 0;
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (uint32_t p = 0; p < COUNT; p++) {
    ax_processes_end(hand[p], &receivers[p]);
    ax_processes_destroy(hand[p]);
  }
  free(lines);
  lines = NULL;
  return 0;
}

static void send(uint32_t from, ax_message_kind kind) {
  bool any;
  const ax_envelope envelope = {.run = 1, .kind = kind, .member = 2};
  assert_int_equal(ax_processes_send(hand[from], 0, &envelope, NULL, NULL, NULL), AX_OK);
  assert_int_equal(ax_processes_poll(hand[0], &any), AX_OK);
  assert_true(any);
}

static void list(void *context, ax_stall_report *report) {
  (void)context;
  ax_stall_add(report, "in psum", awaited);
}
static void look(ax_stall *stall, uint64_t moves, double seconds) {
  now += seconds;
  ax_stall_look(stall, hand[0], 1, moves, list, NULL);
}

static void says_what_each_did_last(void **state) {
  (void)state;
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  send(1, AX_MESSAGE_PART);
  look(&stall, 0, 1);
  look(&stall, 0, 7);
  assert_null(lines);
  look(&stall, 0, 1);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, which has come there too, and has sent nothing for 8 s "
                             "(pid 101); for process 2, which has sent nothing since it left ax_runtime_create 9 s ago; it is stopped "
                             "(pid 102)\n");
}

static void one_that_waits_is_not_to_blame(void **state) {
  (void)state;
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  look(&stall, 0, 0);
  send(1, AX_MESSAGE_WAITS);
  look(&stall, 0, 7);
  look(&stall, 0, 1);
  assert_string_equal(lines, "axle: process 0 and 1 more wait in psum for process 2, which has sent nothing since it left "
                             "ax_runtime_create 8 s ago; it is stopped (pid 102)\n");
  awaited[2] = false;
  send(1, AX_MESSAGE_WAITS);
  look(&stall, 0, 8);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, which waits too (pid 101)\n");
  send(1, AX_MESSAGE_WAITS);
  send(1, AX_MESSAGE_LETTER); /* it goes on */
  look(&stall, 0, 15);
  look(&stall, 0, 1);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, which has come there too, and has sent nothing for 1 s "
                             "(pid 101)\n");
}

/* A payload may take longer than the time after which something is said: that is no deadlock, and does not look like one. */
static void payloads_on_their_way_are_named(void **state) {
  (void)state;
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  awaited[2] = false;
  coming = 644245094;
  look(&stall, 0, 0);
  send(1, AX_MESSAGE_WAITS);
  look(&stall, 0, 8);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, from which 644 MB are on their way (pid 101)\n");
  going = 20000;
  send(1, AX_MESSAGE_WAITS);
  look(&stall, 0, 8);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, from which 644 MB are on their way, and to which 20 kB are "
                             "on their way (pid 101)\n");
  coming = 0;
  look(&stall, 0, 16);
  assert_string_equal(lines, "axle: process 0 waits in psum for process 1, which has come there too, and has sent nothing for 16 s, and "
                             "to which 20 kB are on their way (pid 101)\n");
  going = 0;
}

/* The first one that waits for a process speaks for the others, if it has told them since their last report. */
static void one_speaks_for_all(void **state) {
  (void)state;
  ax_stall stall = {0}, before = {0};
  bool any;
  ax_stall_begin(&stall);
  ax_stall_begin(&before);
  memcpy(awaited, (bool[COUNT]){false, false, true}, sizeof awaited);
  ax_stall_look(&stall, hand[1], 1, 0, list, NULL);
  look(&before, 0, 0);
  look(&before, 0, 4);
  assert_int_equal(ax_processes_poll(hand[1], &any), AX_OK);
  assert_true(any);
  now += 4;
  ax_stall_look(&stall, hand[1], 1, 0, list, NULL);
  assert_null(lines);
  now += 8;
  ax_stall_look(&stall, hand[1], 1, 0, list, NULL);
  assert_string_equal(lines, "axle: process 1 waits in psum for process 2, which has sent nothing since it left "
                             "ax_runtime_create 16 s ago; it is stopped (pid 102)\n");
}

static void others_are_told_in_half_the_time(void **state) {
  (void)state;
  bool any;
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  look(&stall, 0, 0);
  look(&stall, 0, 3);
  assert_int_equal(ax_processes_poll(hand[1], &any), AX_OK);
  assert_false(any);
  look(&stall, 0, 1);
  for (uint32_t p = 1; p < COUNT; p++) {
    assert_int_equal(ax_processes_poll(hand[p], &any), AX_OK);
    assert_int_equal(hand[p]->heard[0].waits, 1);
    assert_int_equal(hand[p]->heard[0].waits_for, 1);
  }
}

static void what_goes_on_is_no_stall(void **state) {
  (void)state;
  ax_stall stall = {0};
  ax_stall_begin(&stall);
  for (uint64_t moves = 0; moves < 10; moves++) look(&stall, moves, 7);
  assert_null(lines);
}

static void others_are_awaited_in_the_end(void **state) {
  (void)state;
  ax_stall_linger(hand[0], "in ax_runtime_release", 0, 1);
  now += 9;
  ax_stall_linger(hand[0], "in ax_runtime_release", 0, 1);
  assert_string_equal(lines, "axle: process 0 waits in ax_runtime_release for process 1, which has sent nothing since it left "
                             "ax_runtime_create 9 s ago (pid 101)\n");
}

/* Each loan is waited for anew. */
static void readers_are_awaited(void **state) {
  (void)state;
  for (uint64_t loan = 1; loan < 4; loan++) {
    ax_stall_linger(hand[0], "with an operand that is being read", loan, 1);
    now += 9;
  }
  assert_null(lines);
  ax_stall_linger(hand[0], "with an operand that is being read", 3, 1);
  assert_non_null(strstr(lines, "axle: process 0 waits with an operand that is being read for process 1, which has sent nothing "));
}

/* --- Settings --- */

static void settings(void **state) {
  (void)state;
  setenv("AXLE_WATCH_SECONDS", "2.5", 1);
  assert_int_equal(ax_stall_set(&hand[0]->stalls, 0, NULL, NULL), AX_OK);
  assert_true(hand[0]->stalls.seconds == 2.5);
  assert_int_equal(ax_stall_set(&hand[0]->stalls, 3, NULL, NULL), AX_OK);
  assert_true(hand[0]->stalls.seconds == 3);
  setenv("AXLE_WATCH_SECONDS", "0", 1);
  assert_int_equal(ax_stall_set(&hand[0]->stalls, 0, NULL, NULL), AX_OK);
  assert_true(hand[0]->stalls.seconds == 0);
  setenv("AXLE_WATCH_SECONDS", "soon", 1);
  assert_int_equal(ax_stall_set(&hand[0]->stalls, 0, NULL, NULL), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "AXLE_WATCH_SECONDS is \"soon\"; it is a number of seconds, or 0 for never");
  unsetenv("AXLE_WATCH_SECONDS");
  assert_int_equal(ax_stall_set(&hand[0]->stalls, 0, NULL, NULL), AX_OK);
  assert_true(hand[0]->stalls.seconds == 10);
  const double then = ax_stall_clock(NULL);
  assert_true(ax_stall_clock(NULL) >= then);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reports_come_ever_more_rarely),
      cmocka_unit_test(below_0_is_never),
      cmocka_unit_test_setup_teardown(says_what_each_did_last, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_that_waits_is_not_to_blame, set_up, tear_down),
      cmocka_unit_test_setup_teardown(payloads_on_their_way_are_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_speaks_for_all, set_up, tear_down),
      cmocka_unit_test_setup_teardown(others_are_told_in_half_the_time, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_goes_on_is_no_stall, set_up, tear_down),
      cmocka_unit_test_setup_teardown(others_are_awaited_in_the_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(readers_are_awaited, set_up, tear_down),
      cmocka_unit_test_setup_teardown(settings, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
