/* One member's work in an exchange of ragged slices, over tables written by hand; tests/ragged_test.c has the whole exchange. */
#include "plan/ragged.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Numbers of members --- */

static void members_are_devices_where_no_axis_is_batched(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_ragged_shape shape = {.local = 1, .devices = 3, .members = 3};
  TEST_OK(ax_ragged_number(&arena, 0, NULL, NULL, &shape));
  for (uint32_t m = 0; m < 3; m++) assert_true(shape.number[m] == m && shape.where[m] == m);
  ax_arena_deinit(&arena);
}

/* A batched axis of two before an axis of three devices: members of one device are three apart. Behind it: side by side. */
static void local_members_are_numbered_in_the_order_of_the_axes(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_ragged_shape shape = {.local = 2, .devices = 3, .members = 6};
  TEST_OK(ax_ragged_number(&arena, 1, (int64_t[]){3}, (int64_t[]){2}, &shape));
  assert_memory_equal(shape.number, ((uint32_t[]){0, 3, 1, 4, 2, 5}), 6 * sizeof(uint32_t));
  assert_memory_equal(shape.where, ((uint32_t[]){0, 2, 4, 1, 3, 5}), 6 * sizeof(uint32_t));
  TEST_OK(ax_ragged_number(&arena, 1, (int64_t[]){1}, (int64_t[]){2}, &shape));
  assert_memory_equal(shape.number, ((uint32_t[]){0, 1, 2, 3, 4, 5}), 6 * sizeof(uint32_t));
  ax_arena_deinit(&arena);
}

/* --- Tables --- */

static const uint32_t plain[] = {0, 1};

/* Two devices, one slice from each to each, of operands of four rows and outputs of five, each row two numbers. */
static ax_ragged_shape pair(void) {
  return (ax_ragged_shape){.batch = 1, .local = 1, .devices = 2, .members = 2, .each = 1, .from_rows = 4, .to_rows = 5,
                           .row_elems = 2, .dtype = AX_F32, .number = plain, .where = plain};
}

static ax_counts counts(const int32_t *numbers) { return (ax_counts){AX_S32, numbers}; }

static void slices_for_one_device_lie_side_by_side(void **state) {
  (void)state;
  ax_ragged_shape shape = pair();
  ax_piece table[4];
  shape.each = 2; /* slices 0 and 1 are for device 0 */
  const ax_counts from = counts((int32_t[]){0, 1, 2, 3}), size = counts((int32_t[]){1, 1, 1, 0}),
                  to = counts((int32_t[]){4, 3, 2, 1});
  ax_ragged_pack(&shape, &from, &size, &to, table);
  const ax_piece wanted[] = {{0, 1, 4}, {1, 1, 3}, {2, 1, 2}, {3, 0, 1}};
  assert_memory_equal(table, wanted, sizeof wanted);
}

/* --- Taking --- */

static const float operands[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {10, 11, 12, 13, 14, 15, 16, 17}};
static const void *operand(const void *context, uint32_t device) {
  (void)context;
  return operands[device];
}

/* What device 1 makes of the slices that come from both. */
static bool take(const ax_piece *received, const int32_t *expected, float *out, ax_fault *fault) {
  static ax_ragged_shape shape;
  shape = pair();
  int64_t work[2][2];
  const ax_taking taking = {.shape = &shape, .device = 1, .received = received, .expected = counts(expected),
                            .agree = expected != NULL, .work = work, .operand = operand, .out = out};
  return ax_ragged_take(&taking, fault);
}

static void rows_are_copied_to_where_slices_say(void **state) {
  (void)state;
  float out[10] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const float wanted[10] = {12, 13, 14, 15, -1, -1, 6, 7, -1, -1};
  ax_fault fault;
  assert_true(take((ax_piece[]){{3, 1, 3}, {1, 2, 0}}, NULL, out, &fault));
  assert_memory_equal(out, wanted, sizeof wanted);
}

static void refused(ax_piece first, ax_piece second, const int32_t *expected, ax_fault_kind kind, const char *wanted) {
  float out[10];
  ax_fault fault;
  ax_mesh mesh;
  ax_text text = {0};
  const ax_ragged_shape shape = pair();
  assert_false(take((ax_piece[]){first, second}, expected, out, &fault));
  assert_int_equal(fault.kind, kind);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_fault_text(&text, &fault, &shape, &mesh, fault.sent.device, fault.other.device, 1);
  assert_string_equal(text.data, wanted);
  ax_text_deinit(&text);
}

static void what_is_wrong_with_a_slice_is_said(void **state) {
  (void)state;
  const ax_piece good = {0, 1, 0};
  refused((ax_piece){-1, 1, 0}, good, NULL, AX_FAULT_FROM, "input_offsets[1] is -1 on device 0 (d=0)");
  refused(good, (ax_piece){0, -2, 0}, NULL, AX_FAULT_SIZE, "send_sizes[1] is -2 on device 1 (d=1)");
  refused((ax_piece){0, 1, -3}, good, NULL, AX_FAULT_TO, "output_offsets[1] is -3 on device 0 (d=0)");
  refused((ax_piece){3, 2, 1}, good, NULL, AX_FAULT_OPERAND,
          "slice 1 of device 0 (d=0) (offset 3, size 2, output offset 1) leaves its 4 rows");
  refused((ax_piece){0, 3, 3}, good, NULL, AX_FAULT_OUTPUT,
          "slice 1 of device 0 (d=0) (offset 0, size 3, output offset 3) leaves the 5 rows of the output on device 1 (d=1)");
  refused((ax_piece){0, 2, 1}, good, (int32_t[]){3, 1}, AX_FAULT_EXPECTED,
          "slice 1 of device 0 (d=0) (offset 0, size 2, output offset 1) is not of the size that recv_sizes[0] is, 3, on device 1 "
          "(d=1)");
  refused((ax_piece){0, 2, 1}, (ax_piece){0, 1, 2}, NULL, AX_FAULT_OVERLAP,
          "slice 1 of device 0 (d=0) (offset 0, size 2, output offset 1) and slice 1 of device 1 (d=1) (offset 0, size 1, output "
          "offset 2) overlap in the output on device 1 (d=1)");
}

/* A slice of no rows lies on nothing, wherever it is. */
static void empty_slices_do_not_overlap(void **state) {
  (void)state;
  float out[10] = {0};
  ax_fault fault;
  assert_true(take((ax_piece[]){{4, 0, 1}, {0, 3, 0}}, NULL, out, &fault));
  assert_true(out[0] == 10 && out[5] == 15);
}

/* --- Backwards, and where the memory of the other is out of reach --- */

/* Device 1 sent two slices, the second of which leaves its own rows. Where that comes to, the fault is found; here nothing may be
   written for it. */
static void a_slice_of_ones_own_that_leaves_its_rows_takes_nothing_back(void **state) {
  (void)state;
  const ax_piece wrong[] = {{-1, 1, 0}, {4, 1, 0}, {0, 2, 4}, {0, -1, 0}, {0, INT64_MAX, 0}};
  for (size_t i = 0; i < AX_COUNT(wrong); i++) {
    ax_ragged_shape shape = pair();
    float room[12] = {0}, *out = room + 2; /* rows before and behind those of the device */
    int64_t work[2][2];
    ax_fault fault;
    const ax_taking taking = {.shape = &shape, .device = 1, .received = (ax_piece[]){{0, 0, 0}, {0, 0, 0}}, .back = true,
                              .work = work, .packed = (ax_piece[]){{1, 1, 2}, wrong[i]}, .operand = operand, .out = out};
    const float wanted[12] = {0, 0, 0, 0, 4, 5};
    assert_true(ax_ragged_take(&taking, &fault));
    assert_memory_equal(room, wanted, sizeof wanted);
  }
}

typedef struct far { /* what other devices gave */
  const char *at[2];
} far;
static const void *nothing(const void *context, uint32_t device) {
  (void)context, (void)device;
  return NULL;
}
static const void *next_rows(const void *context, uint32_t device, int64_t bytes) {
  const char **at = &((far *)(size_t)context)->at[device], *rows = *at;
  *at += bytes;
  return rows;
}

static const void *data_of(const void *context, uint32_t device) {
  return (const float(*)[64])context + device;
}

/* Two devices with two members each, two independent exchanges, two slices from each member to each; batched behind the devices,
   and in front of them. */
static void rows_that_are_given_are_those_that_are_taken(void **state) {
  (void)state;
  enum { batch = 2, local = 2, devices = 2, members = 4, each = 2, rows = 16, of_a_device = batch * local * rows,
         slices = batch * local * members * each, from_one = slices / devices };
  for (int64_t at = 1; at <= 2; at++)
    for (int back = 0; back < 2; back++) {
      ax_arena arena = {0};
      ax_ragged_shape shape = {.batch = batch, .local = local, .devices = devices, .members = members, .each = each,
                               .from_rows = rows, .to_rows = rows, .row_elems = 1, .dtype = AX_F32};
      ax_piece packed[devices][slices], received[devices][slices];
      float data[devices][of_a_device], near[of_a_device], got[of_a_device], given[devices][of_a_device];
      int64_t work[members * each][2];
      ax_fault fault;
      TEST_OK(ax_ragged_number(&arena, 1, &at, (int64_t[]){local}, &shape));
      for (int d = 0; d < devices; d++) {
        int32_t from[slices], size[slices], to[slices];
        for (int i = 0; i < slices; i++) { /* each receiver has two rows for each of its slices */
          const int sender = (int)shape.number[d * local + i / (members * each) % local];
          from[i] = (7 * i + d) % (rows - 1);
          size[i] = i % 3;
          to[i] = 2 * (sender * each + i % each);
        }
        const ax_counts tables[] = {counts(from), counts(size), counts(to)};
        ax_ragged_pack(&shape, &tables[0], &tables[1], &tables[2], packed[d]);
        for (int i = 0; i < of_a_device; i++) data[d][i] = (float)(100 * d + i);
      }
      for (int d = 0; d < devices; d++)
        for (int e = 0; e < devices; e++)
          memcpy(received[d] + e * from_one, packed[e] + d * from_one, from_one * sizeof(ax_piece));
      for (uint32_t d = 0; d < devices; d++) {
        far from = {0};
        for (uint32_t e = 0; e < devices; e++) {
          const ax_giving giving = {&shape, e, received[e], packed[e], back == 1, data[e]};
          const int64_t bytes = ax_ragged_give(&giving, d, NULL);
          assert_true(bytes > 0 && bytes <= (int64_t)sizeof given[e]);
          assert_int_equal(ax_ragged_give(&giving, d, given[e]), bytes);
          from.at[e] = (const char *)given[e];
        }
        memset(near, 0, sizeof near);
        memset(got, 0, sizeof got);
        ax_taking taking = {.shape = &shape, .device = d, .received = received[d], .packed = packed[d], .back = back == 1,
                            .work = work, .operand = data_of, .context = data, .out = near};
        assert_true(ax_ragged_take(&taking, &fault));
        taking.operand = nothing;
        taking.rows = next_rows;
        taking.context = &from;
        taking.out = got;
        assert_true(ax_ragged_take(&taking, &fault));
        assert_memory_equal(near, got, sizeof got);
      }
      ax_arena_deinit(&arena);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_are_devices_where_no_axis_is_batched),
      cmocka_unit_test(local_members_are_numbered_in_the_order_of_the_axes),
      cmocka_unit_test(slices_for_one_device_lie_side_by_side),
      cmocka_unit_test(rows_are_copied_to_where_slices_say),
      cmocka_unit_test(what_is_wrong_with_a_slice_is_said),
      cmocka_unit_test(empty_slices_do_not_overlap),
      cmocka_unit_test(a_slice_of_ones_own_that_leaves_its_rows_takes_nothing_back),
      cmocka_unit_test(rows_that_are_given_are_those_that_are_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
