/* Memory for copies: what is given back is taken again if its size fits, and no more is kept than was in use. */
#include "processes/copies.h"

#include <string.h>

#include "processes/shared_memory.h"
#include "support/cmocka.h"

enum { mib = 1 << 20 };

static int shared(void **state) {
  (void)state;
  (void)ax_shared_memory_begin(); /* where the system refuses it, copies are other memory */
  return 0;
}

static void *take(ax_copies *copies, size_t bytes) {
  void *memory = ax_copies_take(copies, bytes);
  assert_non_null(memory);
  assert_int_equal((uintptr_t)memory % 64, 0);
  memset(memory, 7, bytes);
  return memory;
}

static void memory_is_used_again(void **state) {
  (void)state;
  ax_copies copies;
  ax_copies_init(&copies);
  void *a = take(&copies, 3 * mib), *b = take(&copies, 2 * mib);
  assert_ptr_not_equal(a, b);
  ax_copies_give(&copies, a);
  ax_copies_give(&copies, b);
  assert_ptr_equal(take(&copies, 2 * mib - 5), b); /* the smaller of those that are large enough */
  void *other = take(&copies, mib);                /* none is so small */
  assert_ptr_not_equal(other, a);
  ax_copies_give(&copies, b);
  ax_copies_give(&copies, other);
  ax_copies_give(&copies, NULL);
  ax_copies_deinit(&copies);
}

static size_t bytes_kept(ax_copies *copies, size_t bytes) { /* in copies of this size */
  void *taken[64], *again[64];
  size_t count = 0, same = 0;
  for (; count < 64; count++) taken[count] = take(copies, bytes);
  for (size_t i = 0; i < count; i++) ax_copies_give(copies, taken[i]);
  for (size_t i = 0; i < count; i++) {
    again[i] = take(copies, bytes);
    for (size_t k = 0; k < count; k++) same += again[i] == taken[k];
  }
  for (size_t i = 0; i < count; i++) ax_copies_give(copies, again[i]);
  return same * bytes;
}

/* What was given back first is freed first. */
static void no_more_than_was_in_use(void **state) {
  (void)state;
  ax_copies copies;
  ax_copies_init(&copies);
  void *large = take(&copies, 4 * mib);
  ax_copies_give(&copies, large);
  void *small = take(&copies, mib);
  assert_int_equal(copies.bytes_most, 4 * mib);
  ax_copies_give(&copies, small); /* 5 MiB: the large one goes */
  assert_ptr_equal(take(&copies, mib), small);
  ax_copies_give(&copies, small);
  assert_int_equal(bytes_kept(&copies, mib), 64 * mib);
  assert_int_equal(copies.bytes_most, 64 * mib);
  assert_int_equal(copies.bytes_used, 0);
  assert_null(ax_copies_take(&copies, SIZE_MAX));
  ax_copies_deinit(&copies);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_used_again), cmocka_unit_test(no_more_than_was_in_use)};
  return cmocka_run_group_tests(tests, shared, NULL);
}
