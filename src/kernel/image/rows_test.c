/* Rows of views, integers of rank 0, and the places of values and roots, by hand. */
#include <string.h>

#include "kernel/image/run.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* 0 .. 11 as three rows of four; a view of its columns 1 and 2, turned: [[1 5 9] [2 6 10]]. */
static int32_t memory[12];
static const int64_t turned[] = {4, 16}; /* bytes */
static int32_t *const view = &memory[1];

static int set_up(void **state) {
  (void)state;
  for (int i = 0; i < 12; i++) memory[i] = i;
  return 0;
}

static void a_view_is_taken_to_dense_memory(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 2, 3);
  int32_t got[6];
  ax_rows_take(&type, turned, view, NULL, got);
  const int32_t wanted[] = {1, 5, 9, 2, 6, 10};
  assert_memory_equal(got, wanted, sizeof wanted);
}

static void masked_elements_are_left_alone(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 2, 3);
  const unsigned char mask[] = {1, 0, 0, 0, 1, 1};
  int32_t got[6] = {-1, -1, -1, -1, -1, -1};
  ax_rows_take(&type, turned, view, mask, got);
  const int32_t wanted[] = {1, -1, -1, -1, 6, 10};
  assert_memory_equal(got, wanted, sizeof wanted);
}

static void dense_memory_is_put_into_a_view(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 2, 3);
  const int32_t from[] = {-1, -2, -3, -4, -5, -6};
  ax_rows_put(&type, turned, view, NULL, from);
  const int32_t wanted[] = {0, -1, -4, 3, 4, -2, -5, 7, 8, -3, -6, 11};
  assert_memory_equal(memory, wanted, sizeof wanted);
}

static void a_masked_put(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 2, 3);
  const int32_t from[] = {-1, -2, -3, -4, -5, -6};
  ax_rows_put(&type, turned, view, (const unsigned char[]){0, 0, 1, 1, 0, 0}, from);
  const int32_t wanted[] = {0, 1, -4, 3, 4, 5, 6, 7, 8, -3, 10, 11};
  assert_memory_equal(memory, wanted, sizeof wanted);
}

static void one_view_is_copied_to_another(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 2, 3);
  int32_t got[2][4] = {{0}};
  ax_rows_copy(&type, turned, view, (const int64_t[]){16, 4}, got, false);
  const int32_t wanted[2][4] = {{1, 5, 9, 0}, {2, 6, 10, 0}};
  assert_memory_equal(got, wanted, sizeof wanted);
}

/* Large rows that no core reads soon go past the caches: the same bytes, whatever address they begin at. */
static void large_rows_go_past_the_caches(void **state) {
  enum { elems = 5000 };
  (void)state;
  static int32_t from[2 * elems], to[2 * elems + 3];
  const ax_type type = TEST_TYPE(AX_S32, 2, elems);
  const int64_t dense[] = {4 * elems, 4};
  for (int i = 0; i < 2 * elems; i++) from[i] = i;
  for (int first = 0; first < 3; first++) {
    memset(to, 0, sizeof to);
    ax_rows_copy(&type, dense, from, dense, to + first, true);
    assert_memory_equal(to + first, from, sizeof from);
    assert_int_equal(to[2 * elems + first], 0);
  }
}

static void dense_slots(void **state) {
  (void)state;
  ax_image_slot slot = {.type = TEST_TYPE(AX_S32, 2, 3), .strides = {12, 4}};
  assert_true(ax_slot_is_dense(&slot));
  slot.strides[0] = 16;
  assert_false(ax_slot_is_dense(&slot));
  slot.type.dims[0] = 1; /* its one row begins nowhere else */
  assert_true(ax_slot_is_dense(&slot));
}

/* Refs of the kernel are shared by all bodies; each body numbers its own behind them. */
static void roots_of_bodies_are_numbered(void **state) {
  (void)state;
  ax_machine machine = {.ref_count = 3};
  ax_image_body bodies[] = {{.first_own = 3}, {.first_own = 5}};
  const ax_image image = {.machine = &machine, .bodies = bodies};
  assert_int_equal(ax_image_root_number(&image, 1, 2), 2);
  assert_int_equal(ax_image_root_number(&image, 0, 3), 3);
  assert_int_equal(ax_image_root_number(&image, 1, 4), 6);
}

static void integers_are_read(void **state) {
  (void)state;
  const int32_t numbers[] = {1, -7};
  const char booleans[] = {0, 1, 0, 0};
  assert_int_equal(ax_image_integer((const char *)numbers, &(ax_image_place){.at = 4}), -7);
  assert_int_equal(ax_image_integer(booleans, &(ax_image_place){.at = 1, .narrow = true}), 1);
  assert_int_equal(ax_image_integer(booleans, &(ax_image_place){.at = 2, .narrow = true}), 0);
}

/* A value is the core's own, the plan's memory, or a constant. */
static void places_of_values(void **state) {
  (void)state;
  char values[64];
  int32_t operand, constant;
  ax_run_device *device = ax_calloc(1, sizeof *device + 2 * sizeof device->memory[0]);
  device->memory[1] = &operand;
  const ax_run_core core = {.values = values, .device = device};
  assert_ptr_equal(ax_core_value(&core, &(ax_image_slot){.source = AX_SLOT_OWN, .at = 16}), values + 16);
  assert_ptr_equal(ax_core_value(&core, &(ax_image_slot){.source = AX_SLOT_OPERAND, .at = 1}), &operand);
  assert_ptr_equal(ax_core_value(&core, &(ax_image_slot){.source = AX_SLOT_CONSTANT, .constant = &constant}), &constant);
  ax_free(device);
}

/* A view begins at its offset in its root; in scratch that aliases its source, in the unit that the root's table has. */
static void places_of_views(void **state) {
  (void)state;
  char root[32], first[8], second[8], *table[] = {first, second};
  ax_image_slot slots[] = {{.source = AX_SLOT_VIEW, .root = 0}, {.source = AX_SLOT_VIEW, .root = 1, .unit = 8}};
  uint32_t view_of[] = {0, 1};
  const ax_image_body body = {.slots = slots, .view_of = view_of};
  int64_t views[] = {12, 11};
  void *roots[] = {root, table};
  const ax_run_core core = {.body = &body, .views = views, .roots = roots};
  assert_ptr_equal(ax_core_view(&core, 0), root + 12);
  assert_ptr_equal(ax_core_unit(&core, &slots[1], 11), &table[1]);
  assert_ptr_equal(ax_core_view(&core, 1), second + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_view_is_taken_to_dense_memory, set_up),
      cmocka_unit_test_setup(masked_elements_are_left_alone, set_up),
      cmocka_unit_test_setup(dense_memory_is_put_into_a_view, set_up),
      cmocka_unit_test_setup(a_masked_put, set_up),
      cmocka_unit_test_setup(one_view_is_copied_to_another, set_up),
      cmocka_unit_test(large_rows_go_past_the_caches),
      cmocka_unit_test(dense_slots),
      cmocka_unit_test(roots_of_bodies_are_numbered),
      cmocka_unit_test(integers_are_read),
      cmocka_unit_test(places_of_values),
      cmocka_unit_test(places_of_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
