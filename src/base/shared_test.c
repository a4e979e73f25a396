/* Memory with several owners: it goes with the last one; what was lent is given back once. */
#include "base/shared.h"

#include <stdint.h>
#include <string.h>

#include "support/cmocka.h"

static void count_release(void *context) { ++*(int *)context; }

static void the_last_owner_frees(void **state) {
  (void)state;
  ax_shared *shared;
  assert_int_equal(ax_shared_create(100, &shared), AX_OK);
  unsigned char *data = ax_shared_data(shared);
  assert_int_equal((uintptr_t)data % 64, 0);
  memset(data, 7, 100);
  assert_ptr_equal(ax_shared_retain(shared), shared);
  ax_shared_release(shared);
  assert_int_equal(data[99], 7);
  ax_shared_release(shared);
  assert_null(ax_shared_retain(NULL));
  ax_shared_release(NULL);
  assert_int_equal(ax_shared_create(SIZE_MAX, &shared), AX_OUT_OF_MEMORY);
  assert_null(shared);
}

static void what_was_lent_is_given_back_once(void **state) {
  (void)state;
  int released = 0;
  ax_shared *shared;
  assert_int_equal(ax_shared_lend(count_release, &released, &shared), AX_OK);
  ax_shared_release(ax_shared_retain(shared));
  assert_int_equal(released, 0);
  ax_shared_release(shared);
  assert_int_equal(released, 1);
}

typedef struct lender {
  const void *start;
  size_t bytes;
} lender;

static void forget_all(void *context) { *(lender *)context = (lender){0}; }

static void note_forgotten(void *context, const void *start, size_t bytes) { *(lender *)context = (lender){start, bytes}; }

static void a_lender_is_told_what_is_not_needed(void **state) {
  (void)state;
  lender told = {0};
  int released = 0;
  ax_shared *shared;
  assert_int_equal(ax_shared_lend(count_release, &released, &shared), AX_OK);
  ax_shared_forget(shared, &told, 4); /* without a function */
  ax_shared_forget(NULL, &told, 4);
  ax_shared_release(shared);
  assert_int_equal(ax_shared_lend(forget_all, &told, &shared), AX_OK);
  ax_shared_set_forget(shared, note_forgotten);
  ax_shared_forget(shared, &released, 8);
  assert_true(told.start == &released && told.bytes == 8);
  ax_shared_release(shared);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_owner_frees), cmocka_unit_test(what_was_lent_is_given_back_once),
                                     cmocka_unit_test(a_lender_is_told_what_is_not_needed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
