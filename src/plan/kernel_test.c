/* Kernels as data: what adding to them gives. */
#include "plan/kernel.h"
#include "support/cmocka.h"

/* One slot too many is remembered, not written. */
static void too_many_slots(void **state) {
  (void)state;
  const int64_t dims[] = {4};
  ax_arena arena = {0};
  ax_position at[1];
  ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, dims);
  ax_at_identity(at, 1);
  for (uint32_t i = 0; i < AX_MAX_SLOTS; i++) assert_int_equal(ax_kernel_slot(kernel, AX_F32, 1, dims), i);
  assert_false(kernel->failed);
  uint32_t slot = ax_kernel_slot(kernel, AX_F32, 1, dims);
  assert_true(kernel->failed);
  ax_kernel_store(kernel, slot, at, ax_kernel_load(kernel, slot, at), AX_SCALAR_NONE);
  assert_true(kernel->slot_count == AX_MAX_SLOTS && kernel->store_count == 0 && kernel->failed);
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(too_many_slots)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
