/* Which processes a launcher has started: those of a folder made like the system's, and those of this machine. */
#include "processes/siblings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"

static char folder[64];

static void write_file(int pid, const char *name, const char *bytes, size_t count) {
  char path[256];
  snprintf(path, sizeof path, "%s/proc/%d/%s", folder, pid, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

/* number: what the variable says; NULL: it is not set. thread: the name of its one thread. */
static void add_process(int pid, int parent, const char *name, char state, const char *number, const char *thread) {
  char path[256], text[128];
  snprintf(path, sizeof path, "mkdir -p %s/proc/%d/task/%d", folder, pid, pid);
  assert_int_equal(system(path), 0);
  write_file(pid, "stat", text, (size_t)snprintf(text, sizeof text, "%d (%s) %c %d 0 0", pid, name, state, parent));
  size_t bytes = (size_t)snprintf(text, sizeof text, "HOME=/%cNOT_RANK=7%c", 0, 0);
  if (number != NULL) bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "RANK=%s%c", number, 0);
  write_file(pid, "environ", text, bytes);
  snprintf(path, sizeof path, "task/%d/comm", pid);
  write_file(pid, path, text, (size_t)snprintf(text, sizeof text, "%s\n", thread));
}

static void make_folder(void) {
  strcpy(folder, "/tmp/axle_siblings_XXXXXX");
  assert_non_null(mkdtemp(folder));
  add_process(10, 1, "hydra (2)", 'S', NULL, "hydra");
  add_process(20, 10, "sh", 'S', "0", "sh"); /* a wrapper, and what it started */
  add_process(21, 20, "a) b", 'R', "0", AX_OPENING_THREAD);
  add_process(22, 10, "train", 'R', "1", "train");
  add_process(23, 10, "train", 'T', "2", AX_OPENING_THREAD);
  add_process(24, 10, "train", 'Z', "3", "train");
  add_process(25, 10, "train", 'R', "9", "train"); /* more than are asked for */
  add_process(30, 1, "hydra", 'S', NULL, "hydra"); /* another job */
  add_process(31, 30, "train", 'R', "3", "train");
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void those_of_a_launcher_are_found_by_number(void **state) {
  (void)state;
  ax_sibling of[5];
  make_folder();
  assert_true(ax_siblings_find(folder, "RANK", 21, of, 5));
  assert_true(of[0].state == AX_SIBLING_COME && of[0].pid == 21 && !of[0].stopped);
  assert_string_equal(of[0].program, "a) b");
  assert_true(of[1].state == AX_SIBLING_ELSEWHERE && of[1].pid == 22);
  assert_true(of[2].state == AX_SIBLING_COME && of[2].stopped);
  assert_int_equal(of[3].state, AX_SIBLING_UNSEEN);
  assert_int_equal(of[4].state, AX_SIBLING_UNSEEN);
  assert_true(ax_siblings_find(folder, "RANK", 31, of, 5)); /* the other job has one */
  assert_true(of[3].state == AX_SIBLING_ELSEWHERE && of[0].state == AX_SIBLING_UNSEEN);
  assert_false(ax_siblings_find(folder, "RANK", 10, of, 5));
  assert_false(ax_siblings_find(folder, "NO_RANK", 21, of, 5));
  assert_int_equal(of[3].state, AX_SIBLING_UNSEEN);
  remove_folder();
  assert_false(ax_siblings_find(folder, "RANK", 21, of, 5));
}

/* A process of this machine, by what the system says: its environment is that of its start. */
static void this_machine_says_the_same(void **state) {
  (void)state;
  ax_sibling of[2];
  char *const one[] = {"sleep", "100", NULL}, *const set[] = {"AXLE_TEST_NUMBER=1", NULL};
  const pid_t child = fork();
  if (child == 0) {
    execve("/bin/sleep", one, set);
    _exit(1);
  }
  for (int tries = 0; tries < 1000 && !ax_siblings_find("", "AXLE_TEST_NUMBER", child, of, 2); tries++) usleep(10000);
  assert_true(of[1].state == AX_SIBLING_ELSEWHERE && of[1].pid == child && !of[1].stopped);
  assert_string_equal(of[1].program, "sleep");
  assert_int_equal(of[0].state, AX_SIBLING_UNSEEN);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_false(ax_siblings_find("", "AXLE_TEST_NUMBER", child, of, 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(those_of_a_launcher_are_found_by_number),
      cmocka_unit_test(this_machine_says_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
