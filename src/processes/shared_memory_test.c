/* Memory that other processes of a node map: what one allocates, another sees; what is freed goes back to the system and is joined;
   a forked process leaves it alone. */
#include "processes/shared_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/random.h"

enum { page = 4096 };

static ax_shared_memory_name begin(void) {
  const ax_shared_memory_name name = ax_shared_memory_begin();
  if (name.bytes == 0) skip(); /* a system without memfd_create, or one that limits addresses */
  return name;
}

static void another_process_sees_it(void **state) {
  (void)state;
  const ax_shared_memory_name name = begin();
  const size_t bytes = 5 * page + 100;
  char *memory = ax_shared_memory_alloc(bytes);
  assert_non_null(memory);
  memset(memory, 0x3c, bytes);
  const pid_t child = fork();
  if (child == 0) {
    ax_shared_view view = ax_shared_view_open(&name);
    const char *seen = ax_shared_view_at(&view, (uint64_t)(uintptr_t)memory, bytes);
    bool right = seen != NULL && seen != memory;
    for (size_t i = 0; right && i < bytes; i++) right = seen[i] == 0x3c;
    right = right && ax_shared_view_at(&view, name.address + name.bytes - 1, 1) != NULL;
    right = right && ax_shared_view_at(&view, name.address + name.bytes - 1, 2) == NULL;
    right = right && ax_shared_view_at(&view, name.address - 1, 1) == NULL;
    right = right && ax_shared_view_at(&view, name.address + 1, SIZE_MAX) == NULL;
    ax_shared_view_close(&view);
    right = right && ax_shared_view_at(&view, name.address, 1) == NULL;
    _exit(right ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_true(ax_shared_memory_free(memory, bytes));
}

static void another_file_is_not_opened(void **state) {
  (void)state;
  ax_shared_memory_name name = begin();
  name.number++;
  assert_null(ax_shared_view_open(&name).at);
  name.number--;
  name.bytes += page;
  assert_null(ax_shared_view_open(&name).at);
  name.bytes = 0;
  assert_null(ax_shared_view_open(&name).at);
  name.bytes = page;
  name.descriptor = 1 << 20;
  assert_null(ax_shared_view_open(&name).at);
}

static void other_memory_is_not_freed(void **state) {
  (void)state;
  char *other = malloc(page);
  begin();
  assert_non_null(other);
  assert_false(ax_shared_memory_free(other, page));
  free(other);
}

static void it_is_not_larger_than_the_machine(void **state) {
  (void)state;
  const ax_shared_memory_name name = begin();
  assert_null(ax_shared_memory_alloc(name.bytes + 1));
  assert_null(ax_shared_memory_alloc(SIZE_MAX));
  assert_null(ax_shared_memory_alloc(SIZE_MAX / 2));
  char *all = ax_shared_memory_alloc(name.bytes); /* what was freed before has been joined again */
  assert_non_null(all);
  assert_null(ax_shared_memory_alloc(1));
  assert_true(ax_shared_memory_free(all, name.bytes));
}

static bool is_resident(char *memory) {
  unsigned char seen = 0;
  assert_int_equal(mincore(memory, page, &seen), 0);
  return seen & 1;
}

/* Blocks of all sizes in any order: none overlaps another, and in the end all of it is one piece again. */
static void blocks_at_random(void **state) {
  (void)state;
  enum { most = 40 };
  const ax_shared_memory_name name = begin();
  struct {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
  } block[most] = {0};
  test_random random = {7};
  for (uint32_t i = 0; i < 3000; i++) {
    const uint32_t k = (uint32_t)test_random_below(&random, most);
    if (block[k].at != NULL) {
      for (size_t b = 0; b < block[k].bytes; b += 97) assert_int_equal(block[k].at[b], block[k].mark);
      assert_true(ax_shared_memory_free(block[k].at, block[k].bytes));
      block[k].at = NULL;
    } else {
      block[k].bytes = 1 + (size_t)test_random_below(&random, 9 * page);
      block[k].mark = (unsigned char)(1 + i % 255);
      block[k].at = ax_shared_memory_alloc(block[k].bytes);
      assert_non_null(block[k].at);
      assert_int_equal((uintptr_t)block[k].at % page, 0);
      memset(block[k].at, block[k].mark, block[k].bytes);
    }
  }
  for (uint32_t k = 0; k < most; k++)
    if (block[k].at != NULL) assert_true(ax_shared_memory_free(block[k].at, block[k].bytes));
  char *all = ax_shared_memory_alloc(name.bytes);
  assert_non_null(all);
  assert_true(ax_shared_memory_free(all, name.bytes));
}

static void freed_memory_goes_back(void **state) {
  (void)state;
  begin();
  char *memory = ax_shared_memory_alloc(4 * page);
  assert_non_null(memory);
  memset(memory, 1, 4 * page);
  assert_true(is_resident(memory + page));
  assert_true(ax_shared_memory_free(memory, 4 * page));
  assert_false(is_resident(memory + page));
}

static void a_forked_process_leaves_it(void **state) {
  (void)state;
  begin();
  char *memory = ax_shared_memory_alloc(page);
  int status;
  assert_non_null(memory);
  memset(memory, 9, page);
  const pid_t child = fork();
  if (child == 0) {
    const bool none = ax_shared_memory_alloc(page) == NULL, known = ax_shared_memory_free(memory, page);
    _exit(none && known ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(memory[page - 1], 9);
  assert_true(ax_shared_memory_free(memory, page));
}

static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory;
  return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}
static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static void hooks_get_all_memory(void **state) {
  (void)state;
  begin();
  ax_set_allocator(&(ax_allocator){allocate, release, NULL});
  assert_null(ax_shared_memory_alloc(page));
  ax_set_allocator(NULL);
  char *memory = ax_shared_memory_alloc(page);
  assert_non_null(memory);
  assert_true(ax_shared_memory_free(memory, page));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_process_sees_it),   cmocka_unit_test(another_file_is_not_opened),
      cmocka_unit_test(other_memory_is_not_freed), cmocka_unit_test(it_is_not_larger_than_the_machine),
      cmocka_unit_test(blocks_at_random),          cmocka_unit_test(freed_memory_goes_back),
      cmocka_unit_test(a_forked_process_leaves_it), cmocka_unit_test(hooks_get_all_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
