/* libzip allocates with malloc. Each of its allocations fails in turn: a file is then written and read whole, or the status is
   AX_OUT_OF_MEMORY, and nothing is left behind. This program's own malloc stands before the C library's. */
#include <errno.h>

#include "bridge/files_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
int main(void) { return 0; } /* a sanitizer has a malloc of its own */
#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static bool counts;
static long calls, fail_at;

static bool fails(void) {
  if (!counts || ++calls != fail_at) return false;
  errno = ENOMEM;
  return true;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes) {
  return fails() ? NULL : __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes) {
  return fails() ? NULL : __libc_realloc(memory, bytes);
}

static const char *const names[] = {"w", "b\xc3\xa9"};
static const float numbers[] = {1, 2, 3, 4};
static const ax_host_array arrays[] = {{AX_F32, 1, {4}, (void *)numbers, false, {0}}, {AX_F32, 2, {2, 2}, (void *)numbers, false, {0}}};

typedef ax_status (*work)(const char *path, ax_npz **out);

static ax_status write_file(const char *path, ax_npz **out) {
  *out = NULL;
  return ax_npz_write(path, AX_LIST(2, names), arrays);
}

/* With the n-th allocation failing. False: there were fewer. */
static bool try_with(long n, work do_it, const char *path, ax_npz **out, ax_status *status) {
  calls = 0;
  fail_at = n;
  counts = true;
  *status = do_it(path, out);
  counts = false;
  return calls >= n;
}

static void check_whole(const ax_npz *npz) {
  assert_int_equal(ax_npz_count(npz), 2);
  for (uint32_t i = 0; i < 2; i++) {
    assert_string_equal(ax_npz_name(npz, i), names[i]);
    assert_memory_equal(ax_npz_array(npz, i)->data, numbers, sizeof numbers);
  }
}

static void test_writing(void **state) {
  (void)state;
  const char *path = in_folder("a.npz");
  ax_npz *npz;
  ax_status status;
  long n = 1;
  for (; try_with(n, write_file, path, &npz, &status); n++) {
    assert_int_equal(folder_entries(), status == AX_OK);
    if (status != AX_OK) {
      if (status != AX_OUT_OF_MEMORY) fail_msg("allocation %ld: %s", n, ax_message());
      continue;
    }
    assert_int_equal(ax_npz_read(path, &npz), AX_OK);
    check_whole(npz);
    ax_npz_release(npz);
    remove(path);
  }
  assert_true(n > 20);
}

static void test_reading(void **state) {
  (void)state;
  const char *path = in_folder("a.npz");
  ax_npz *npz;
  ax_status status;
  long n = 1;
  assert_int_equal(ax_npz_write(path, AX_LIST(2, names), arrays), AX_OK);
  for (; try_with(n, ax_npz_read, path, &npz, &status); n++) {
    if (status == AX_OK) check_whole(npz);
    else if (status != AX_OUT_OF_MEMORY) fail_msg("allocation %ld: %s", n, ax_message());
    else assert_null(npz);
    ax_npz_release(npz);
  }
  ax_npz_release(npz);
  assert_true(n > 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_before, files_after)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_writing), TEST(test_reading)};
  return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
#endif
