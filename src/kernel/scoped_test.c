/* Scratch of scopes: what it may be. */
#include "axle/kernel.h"
#include "kernel/scratch.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* A ref, a semaphore and two barriers. */
static ax_types scratch(ax_type *types) {
  types[0] = ax_ref_type(AX_SPACE_VMEM, AX_F32, AX_DIMS(4));
  types[1] = ax_semaphore_type(AX_DIMS());
  types[2] = types[3] = ax_semaphore_type(AX_DIMS());
  types[2].form = types[3].form = AX_BARRIER;
  return (ax_types){4, types};
}

static void barriers_say_how_many_arrivals_they_take(void **state) {
  (void)state;
  ax_type types[4];
  int64_t both[][2] = {{2, 3}, {3, 1}};
  const ax_types all = scratch(types);
  TEST_OK(ax_scratch_check(&all, &(ax_pairs){2, both}));
  TEST_OK(ax_scratch_check(&(ax_types){2, types}, &(ax_pairs){0, NULL}));
}

static void refused(int64_t (*arrivals)[2], uint32_t count, const char *why) {
  ax_type types[4];
  const ax_types all = scratch(types);
  TEST_FAILS(ax_scratch_check(&all, &(ax_pairs){count, arrivals}), AX_INVALID_ARGUMENT, why);
}

static void arrivals_belong_to_barriers_alone(void **state) {
  (void)state;
  refused((int64_t[][2]){{3, 1}}, 1, "scratch 2 is barrier[], and nothing says how many arrivals complete a phase");
  refused((int64_t[][2]){{1, 2}, {2, 3}, {3, 1}}, 3, "scratch 1 is semaphore[], but arrivals complete a phase of barriers alone");
  refused((int64_t[][2]){{2, 0}, {3, 1}}, 2, "scratch 2: 0 arrivals complete a phase; it is at least 1");
  refused((int64_t[][2]){{2, 1}, {3, 1}, {4, 1}}, 3, "arrivals of scratch 4: there is none of that number, or not in this order");
  refused((int64_t[][2]){{3, 1}, {2, 1}}, 2, "arrivals of scratch 2: there is none of that number, or not in this order");
}

static void an_array_is_no_scratch(void **state) {
  (void)state;
  ax_type array = TEST_TYPE(AX_F32, 4);
  TEST_FAILS(ax_scratch_check(&(ax_types){1, &array}, &(ax_pairs){0, NULL}), AX_INVALID_ARGUMENT,
             "scratch 0 is f32[4], an array; a ref, semaphores or barriers are made");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers_say_how_many_arrivals_they_take),
      cmocka_unit_test(arrivals_belong_to_barriers_alone),
      cmocka_unit_test(an_array_is_no_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
