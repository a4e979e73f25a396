/* A folder of one's own: what may be used, whole files replaced and appended to, locks, lists. */
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static char root[64], path[128];
static ax_folder folder = {-1};

static int set_up(void **state) {
  (void)state;
  strcpy(root, "/tmp/axle_folder_XXXXXX");
  if (mkdtemp(root) == NULL) return 1;
  snprintf(path, sizeof path, "%s/a/b", root);
  return ax_folder_open(path, &folder) == AX_OK ? 0 : 1;
}

static int tear_down(void **state) {
  (void)state;
  ax_folder_file *files;
  uint32_t count;
  char above[128];
  if (ax_folder_list(&folder, &files, &count) != AX_OK) return 1;
  for (uint32_t i = 0; i < count; i++) ax_folder_remove(&folder, files[i].name);
  ax_free(files);
  ax_folder_close(&folder);
  snprintf(above, sizeof above, "%s/a", root);
  return rmdir(path) != 0 || rmdir(above) != 0 || rmdir(root) != 0;
}

static bool write_text(const char *name, const char *text) {
  return ax_folder_write(&folder, name, &(struct iovec){(void *)(uintptr_t)text, strlen(text)}, 1);
}

static void reads(const char *name, const char *text) {
  size_t bytes = 0;
  char *data = ax_folder_read(&folder, name, 1000, false, &bytes);
  assert_non_null(data);
  assert_int_equal(bytes, strlen(text));
  assert_memory_equal(data, text, bytes);
  ax_free(data);
}

static void folders_are_made_for_the_user_alone(void **state) {
  (void)state;
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0700);
}

static void a_folder_that_others_can_write_is_refused(void **state) {
  (void)state;
  ax_folder other;
  assert_int_equal(chmod(path, 0720), 0);
  TEST_FAILS(ax_folder_open(path, &other), AX_INVALID_ARGUMENT, "others can write in it");
  assert_int_equal(other.fd, -1);
  assert_int_equal(chmod(path, 0700), 0);
  TEST_OK(ax_folder_open(path, &other));
  ax_folder_close(&other);
}

static void a_file_is_no_folder(void **state) {
  (void)state;
  char name[160];
  ax_folder other;
  assert_true(write_text("file", "1"));
  snprintf(name, sizeof name, "%s/file", path);
  TEST_FAILS(ax_folder_open(name, &other), AX_INVALID_ARGUMENT, "Not a directory");
}

static void a_file_is_written_in_parts(void **state) {
  (void)state;
  const struct iovec parts[] = {{"one ", 4}, {"two", 3}};
  assert_true(ax_folder_write(&folder, "file", parts, 2));
  reads("file", "one two");
}

/* Who has the old file open reads it to its end. */
static void a_file_is_replaced_and_not_changed(void **state) {
  (void)state;
  char old[4] = "";
  assert_true(write_text("file", "old"));
  const int fd = openat(folder.fd, "file", O_RDONLY);
  assert_true(write_text("file", "younger"));
  reads("file", "younger");
  assert_int_equal(read(fd, old, 3), 3);
  assert_string_equal(old, "old");
  close(fd);
}

static void a_file_is_appended_to(void **state) {
  (void)state;
  assert_true(ax_folder_append(&folder, "log", "a", 1));
  assert_true(ax_folder_append(&folder, "log", "bc", 2));
  reads("log", "abc");
}

static void what_is_too_long_empty_or_missing_is_not_read(void **state) {
  (void)state;
  size_t bytes;
  assert_true(write_text("file", "12345") && write_text("nothing", ""));
  assert_null(ax_folder_read(&folder, "file", 4, false, &bytes));
  assert_null(ax_folder_read(&folder, "nothing", 1000, false, &bytes));
  assert_null(ax_folder_read(&folder, "absent", 1000, false, &bytes));
  ax_folder_remove(&folder, "file");
  assert_null(ax_folder_read(&folder, "file", 1000, false, &bytes));
}

static void a_link_is_not_followed(void **state) {
  (void)state;
  size_t bytes;
  assert_true(write_text("file", "1"));
  assert_int_equal(symlinkat("file", folder.fd, "link"), 0);
  assert_null(ax_folder_read(&folder, "link", 1000, false, &bytes));
  assert_false(ax_folder_append(&folder, "link", "2", 1));
  assert_int_equal(unlinkat(folder.fd, "link", 0), 0);
}

static time_t written_at(const char *name) {
  struct stat s;
  assert_int_equal(fstatat(folder.fd, name, &s, 0), 0);
  return s.st_mtime;
}

static void a_file_that_is_used_is_marked_after_an_hour(void **state) {
  (void)state;
  const time_t now = time(NULL);
  size_t bytes;
  assert_true(write_text("file", "1"));
  const struct timespec old[] = {{now - 4000, 0}, {now - 4000, 0}}, new[] = {{now - 3000, 0}, {now - 3000, 0}};
  assert_int_equal(utimensat(folder.fd, "file", old, 0), 0);
  ax_free(ax_folder_read(&folder, "file", 10, false, &bytes));
  assert_true(written_at("file") == now - 4000); /* it was only looked at */
  ax_free(ax_folder_read(&folder, "file", 10, true, &bytes));
  assert_true(written_at("file") >= now);
  assert_int_equal(utimensat(folder.fd, "file", new, 0), 0);
  ax_free(ax_folder_read(&folder, "file", 10, true, &bytes));
  assert_true(written_at("file") == now - 3000);
}

static void a_lock_has_one_holder(void **state) {
  (void)state;
  const int lock = ax_folder_lock(&folder, "lock");
  assert_true(lock >= 0);
  assert_int_equal(ax_folder_lock(&folder, "lock"), -1);
  ax_folder_unlock(lock);
  const int again = ax_folder_lock(&folder, "lock");
  assert_true(again >= 0);
  ax_folder_unlock(again);
}

static void files_are_listed_with_their_sizes(void **state) {
  (void)state;
  ax_folder_file *files;
  uint32_t count;
  TEST_OK(ax_folder_list(&folder, &files, &count));
  assert_int_equal(count, 0);
  ax_free(files);
  assert_true(write_text("file", "12345"));
  assert_int_equal(mkdirat(folder.fd, "folder", 0700), 0);
  TEST_OK(ax_folder_list(&folder, &files, &count));
  assert_int_equal(count, 1); /* no folders, and nothing temporary is left */
  assert_string_equal(files[0].name, "file");
  assert_int_equal(files[0].bytes, 5);
  assert_true(files[0].seconds == written_at("file"));
  ax_free(files);
  assert_int_equal(unlinkat(folder.fd, "folder", AT_REMOVEDIR), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(folders_are_made_for_the_user_alone, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_folder_that_others_can_write_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_is_no_folder, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_is_written_in_parts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_is_replaced_and_not_changed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_is_appended_to, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_too_long_empty_or_missing_is_not_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_link_is_not_followed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_that_is_used_is_marked_after_an_hour, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_lock_has_one_holder, set_up, tear_down),
      cmocka_unit_test_setup_teardown(files_are_listed_with_their_sizes, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
