/* What is said of processes that do not come to ax_runtime_create, by whom, and how often. */
#include "processes/opening_watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

static const ax_sibling come = {AX_SIBLING_COME, 50, false, "train"}, stopped = {AX_SIBLING_COME, 51, true, "train"},
                        elsewhere = {AX_SIBLING_ELSEWHERE, 52, false, "sh"}, unseen = {0};

/* expected "": this process says nothing. */
static void expect(ax_opening opening, const ax_sibling *of, const char *expected) {
  ax_text text = {0};
  ax_opening_say(&opening, of, &text);
  assert_string_equal(text.data != NULL ? text.data : "", expected);
  ax_text_deinit(&text);
}

static void those_that_have_not_come_are_named(void **state) {
  (void)state;
  const ax_sibling of[5] = {unseen, come, elsewhere, come, stopped};
  expect((ax_opening){1, 5, 5, false}, of,
         "axle: process 1 and 1 more wait in ax_runtime_create for process 0 of 5, which is not seen: it has ended, or hides its environment; for process 2 of 5, which has not come "
         "(pid 52, sh); for process 4 of 5, which is stopped (pid 51, train)\n");
  expect((ax_opening){3, 5, 5, false}, of, ""); /* process 1 has said it */
  const ax_sibling two[2] = {come, unseen};
  expect((ax_opening){0, 2, 2, false}, two, "axle: process 0 waits in ax_runtime_create for process 1 of 2, which is not seen: it has ended, or hides its environment\n");
}

static void many_are_counted(void **state) {
  (void)state;
  ax_sibling of[12];
  for (int i = 0; i < 12; i++) of[i] = i == 11 ? come : elsewhere;
  ax_text text = {0};
  ax_opening_say(&(ax_opening){11, 12, 12, false}, of, &text);
  assert_non_null(strstr(text.data, "for process 7 of 12, which has not come (pid 52, sh); and for 3 more\n"));
  assert_null(strstr(text.data, "process 8"));
  ax_text_deinit(&text);
}

/* On another machine a process is not seen, whether it runs or not: one machine says so, and each what it knows of its own. */
static void other_machines_are_spoken_of_once(void **state) {
  (void)state;
  const ax_sibling first[4] = {come, come, unseen, unseen}, second[4] = {unseen, unseen, come, come};
  const ax_sibling lacking[4] = {unseen, unseen, come, unseen}, late[4] = {unseen, unseen, come, elsewhere};
  expect((ax_opening){0, 4, 2, false}, first,
         "axle: process 0 and 1 more wait in ax_runtime_create for some of the 4 processes, which are on other machines or are not seen\n");
  expect((ax_opening){2, 4, 2, false}, second, "");
  expect((ax_opening){2, 4, 2, false}, lacking,
         "axle: process 2 waits in ax_runtime_create for 1 of the 2 processes of this machine, which are not seen\n");
  expect((ax_opening){2, 4, 0, false}, lacking, ""); /* how many there were is not known */
  expect((ax_opening){2, 4, 2, false}, late,
         "axle: process 2 waits in ax_runtime_create for process 3 of 4, which has not come (pid 52, sh)\n");
}

static void a_communicator_may_leave_some_out(void **state) {
  (void)state;
  const ax_sibling of[3] = {elsewhere, come, come};
  expect((ax_opening){1, 3, 3, true}, of, "axle: process 1 waits in ax_runtime_create for others of its communicator\n");
  expect((ax_opening){2, 3, 3, true}, of, "");
  const ax_sibling all[2] = {come, come};
  expect((ax_opening){0, 2, 2, false}, all, "axle: process 0 and 1 more wait in ax_runtime_create for others to be ready, or for MPI: all 2 processes have come\n");
}

typedef struct heard {
  atomic_int count;
  char lines[256];
} heard;

static void hear(const char *lines, void *context) {
  heard *h = context;
  if (h->count == 0) snprintf(h->lines, sizeof h->lines, "%s", lines);
  h->count++;
}

static void a_thread_says_it_until_the_wait_is_over(void **state) {
  (void)state;
  heard h = {0};
  setenv("PMI_SIZE", "2", 1); /* what this process began with has no number, and so none is seen */
  ax_opening_watch *watch = ax_opening_watch_begin(&(ax_stalls){.seconds = 0.01, .write = hear, .context = &h}, false);
  assert_non_null(watch);
  while (h.count < 3) usleep(1000);
  ax_opening_watch_end(watch);
  char expected[128];
  snprintf(expected, sizeof expected, "axle: a process waits in ax_runtime_create for the others (pid %d)\n", (int)getpid());
  assert_string_equal(h.lines, expected);
  watch = ax_opening_watch_begin(&(ax_stalls){.seconds = 0, .write = hear, .context = &h}, false); /* never */
  ax_opening_watch_end(watch);
  ax_opening_watch_end(NULL);
  setenv("PMI_SIZE", "1", 1);
  assert_null(ax_opening_watch_begin(&(ax_stalls){.seconds = 0.01, .write = hear, .context = &h}, false));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(those_that_have_not_come_are_named),
      cmocka_unit_test(many_are_counted),
      cmocka_unit_test(other_machines_are_spoken_of_once),
      cmocka_unit_test(a_communicator_may_leave_some_out),
      cmocka_unit_test(a_thread_says_it_until_the_wait_is_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
