/* What a ring knows before tracing: how many parts arrive on each side, in how many slots. */
#include "kernels/ring.h"

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct asked {
  int64_t members, buffering, left, right, left_slots, right_slots;
} asked;

static AX_BODY(ask) {
  const asked *a = context;
  ax_ring ring;
  assert_true(ax_ring_init(&ring, "f", "x", NULL, a->buffering));
  assert_true(ring.members == a->members && ring.length == a->members && ring.everybody);
  assert_int_equal(ring.arrivals[AX_LEFT], a->left);
  assert_int_equal(ring.arrivals[AX_RIGHT], a->right);
  assert_int_equal(ring.slots[AX_LEFT], a->left_slots);
  assert_int_equal(ring.slots[AX_RIGHT], a->right_slots);
  out[0] = in[0];
}

static AX_BODY(on_members) {
  const asked *a = context;
  ax_mesh mesh = {.count = 1, .axis = {{.name = "x", .size = a->members}}};
  ax_shard_map_unchecked(&mesh, "x -> x", AX_CLOSURE(ask, 1, 1, context), in, out);
}

static void on(asked a) {
  const ax_type type = TEST_TYPE(AX_F32, a.members);
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(on_members, 1, 1, &a), &type, &program));
  ax_program_release(program);
}

static void half_of_the_others_parts_come_from_each_side(void **state) {
  (void)state;
  on((asked){.members = 5, .left = 2, .right = 2, .left_slots = 2, .right_slots = 2});
  on((asked){.members = 4, .left = 2, .right = 1, .left_slots = 2, .right_slots = 1});
  on((asked){.members = 2, .left = 1, .right = 0, .left_slots = 1, .right_slots = 0});
  on((asked){.members = 1});
}

static void there_are_two_slots_at_least_and_no_more_than_arrivals(void **state) {
  (void)state;
  on((asked){.members = 16, .buffering = 0, .left = 8, .right = 7, .left_slots = 2, .right_slots = 2});
  on((asked){.members = 16, .buffering = 1, .left = 8, .right = 7, .left_slots = 2, .right_slots = 2});
  on((asked){.members = 16, .buffering = 3, .left = 8, .right = 7, .left_slots = 3, .right_slots = 3});
  on((asked){.members = 16, .buffering = 99, .left = 8, .right = 7, .left_slots = 8, .right_slots = 7});
}

static void a_stream_has_slots_and_three_kinds_of_semaphores(void **state) {
  (void)state;
  ax_scratch scratch[AX_RING_SCRATCH];
  const int64_t dims[] = {6, 4};
  const ax_ring one_sided = {.arrivals = {1, 0}, .slots = {1, 0}}, both = {.arrivals = {3, 2}, .slots = {3, 2}};
  assert_int_equal(ax_ring_scratch(&one_sided, AX_BF16, 2, dims, scratch), 4);
  assert_int_equal(ax_ring_scratch(&both, AX_BF16, 2, dims, scratch), 8);
  const ax_type *slots = &scratch[4].type, *received = &scratch[7].type;
  assert_true(slots->form == AX_REF && slots->dtype == AX_BF16 && slots->rank == 3 && slots->dims[0] == 2 && slots->dims[2] == 4);
  assert_true(scratch[5].type.form == AX_SEMAPHORE && scratch[6].type.form == AX_DMA_SEMAPHORE && scratch[6].type.rank == 0);
  assert_true(received->form == AX_DMA_SEMAPHORE && received->dims[0] == 2); /* one for each slot */
}

static AX_BODY(negative) {
  ax_ring ring;
  (void)context;
  assert_false(ax_ring_init(&ring, "f", "x", NULL, -1));
  out[0] = in[0];
}

static AX_BODY(on_two) {
  ax_mesh mesh;
  (void)context;
  TEST_OK(ax_mesh_parse("x=2", &mesh));
  ax_shard_map_unchecked(&mesh, "x -> x", AX_FN(negative, 1, 1), in, out);
}

static void wrong_buffering_is_refused(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(on_two, 1, 1), &type, &program), AX_INVALID_ARGUMENT,
             "f: buffering is -1; it is the number of slots, or 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(half_of_the_others_parts_come_from_each_side),
      cmocka_unit_test(there_are_two_slots_at_least_and_no_more_than_arrivals),
      cmocka_unit_test(a_stream_has_slots_and_three_kinds_of_semaphores),
      cmocka_unit_test(wrong_buffering_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
