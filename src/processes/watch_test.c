/* Processes of this node: one that ends is named, once; one that cannot be watched is not. */
#include "processes/watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"

static void one_that_is_killed_is_named(void **state) {
  (void)state;
  ax_node_watch *watch;
  bool stopped;
  ax_node_watch_name names[3] = {ax_node_watch_name_of_me(0), ax_node_watch_name_of_me(0), ax_node_watch_name_of_me(0)};
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  names[1] = (ax_node_watch_name){.space = names[0].space, .pid = child, .process = 1};
  names[2] = (ax_node_watch_name){.space = names[0].space + 1, .pid = child, .process = 2}; /* a number of another namespace */
  assert_int_equal(ax_node_watch_create(names, 3, 0, &watch), AX_OK);
  assert_int_equal(ax_node_watch_ended(watch), AX_NONE);
  assert_true(ax_node_watch_pid(watch, 1, &stopped) == child && !stopped);
  kill(child, SIGSTOP);
  waitpid(child, NULL, WUNTRACED); /* it is stopped */
  assert_true(ax_node_watch_pid(watch, 1, &stopped) == child && stopped);
  assert_true(ax_node_watch_pid(watch, 2, &stopped) == 0 && !stopped);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_int_equal(ax_node_watch_ended(watch), 1);
  assert_int_equal(ax_node_watch_ended(watch), AX_NONE);
  assert_int_equal(ax_node_watch_pid(watch, 1, &stopped), 0);
  ax_node_watch_destroy(watch);
  ax_node_watch_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_is_killed_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
