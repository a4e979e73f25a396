/* Addresses of operands, and instructions that compute, on memory by hand. */
#include "run/compute.h"

#include "ir/prim.h"
#include "run/gemm.h"
#include "run/inside.h"
#include "run/push.h"
#include "run/stage_test.h"
#include "support/tensor.h"

enum { elems = 8 };

static stage s;
static int32_t memory[devices][elems];
static unsigned char *parts[] = {(unsigned char *)memory[0], (unsigned char *)memory[1], (unsigned char *)memory[2]};
static const uint32_t own[devices] = {0, 1, 2};

static int set_up(void **state) {
  (void)state;
  stage_set_up(&s, false);
  for (int f = 0; f < devices; f++) {
    s.activations[f].part = parts;
    for (int i = 0; i < elems; i++) memory[f][i] = 10 * f + i;
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  stage_tear_down(&s);
  return 0;
}

/* A device's own part, at an offset that grows with each round of a loop; and the part of a neighbour. */
static void addresses_follow_devices_and_loops(void **state) {
  (void)state;
  const ax_ref ref = {.place = own, .offset = 4, .step = 8};
  assert_ptr_equal(ax_address(&s.activations[1], &ref), &memory[1][1]);
  s.activations[1].iteration[0] = 2;
  assert_ptr_equal(ax_address(&s.activations[1], &ref), &memory[1][5]);
  assert_ptr_equal(ax_address_away(&s.activations[1], &ref, 1), &memory[2][5]);
  assert_ptr_equal(ax_address_away(&s.activations[1], &ref, -1), &memory[0][5]);
}

/* As a kernel: adds 100 to the elements of its range, and the device's coordinate. */
static void hundred_more(void *const *slots, const int64_t *coordinates, int64_t begin, int64_t end) {
  int32_t *x = slots[0];
  for (int64_t i = begin; i < end; i++) x[i] += 100 + (int32_t)coordinates[0];
}

static ax_ref whole = {.place = own};
static ax_instr kernel = {.kind = AX_INSTR_KERNEL, .refs = &whole, .ref_count = 1, .parts = 2,
                          .kernel = {.code = hundred_more, .extent = elems, .scale = 1}};

static void a_kernel_computes_a_range(void **state) {
  (void)state;
  ax_compute_range(&s.activations[2], &kernel, 3, 5);
  const int32_t wanted[] = {20, 21, 22, 125, 126, 25, 26, 27};
  assert_memory_equal(memory[2], wanted, sizeof wanted);
}

/* All parts together are the whole, and each begins where the one before it ends. */
static void parts_of_a_kernel(void **state) {
  (void)state;
  assert_int_equal(ax_part_begin(elems, 0, 2), 0);
  assert_int_equal(ax_part_begin(elems, 1, 2), 4);
  assert_int_equal(ax_part_begin(elems, 2, 2), elems);
  assert_int_equal(ax_part_begin(4100, 1, 2), 2048); /* rounded down to whole lines of a cache */
  TEST_OK(ax_compute_part(&s.activations[0], &kernel, 1));
  const int32_t wanted[] = {0, 1, 2, 3, 104, 105, 106, 107};
  assert_memory_equal(memory[0], wanted, sizeof wanted);
}

static void a_whole_kernel(void **state) {
  (void)state;
  TEST_OK(ax_compute(&s.activations[1], &kernel, NULL, NULL));
  for (int i = 0; i < elems; i++) assert_int_equal(memory[1][i], 10 + i + 101);
}

/* Devices that do not own its results pass it by. */
static void a_fused_loop_is_done_by_its_owners(void **state) {
  (void)state;
  const ax_fused_loop_instr loop = {.code = hundred_more, .skip = 1, .ref_count = 1, .refs = &whole};
  ax_compute_fused_loop(&s.activations[1], &loop);
  assert_int_equal(memory[1][0], 10);
  ax_compute_fused_loop(&s.activations[0], &loop);
  assert_int_equal(memory[0][0], 100);
}

static ax_status refuses(const void *data, void *const *buffers, uint32_t part) {
  (void)data, (void)buffers, (void)part;
  return AX_OUT_OF_MEMORY;
}

/* Its status has no message, as it may come from another thread; the thread that reports it makes one. */
static void a_routine_that_fails(void **state) {
  (void)state;
  const ax_routine routine = {.run = refuses, .parts = 1};
  const ax_eqn eqn = {.prim = ax_prim_find("sort", 4)};
  const ax_instr instr = {.kind = AX_INSTR_ROUTINE, .parts = 1, .routine = &routine, .eqn = &eqn};
  const ax_status status = ax_compute(&s.activations[0], &instr, NULL, NULL);
  assert_int_equal(status, AX_OUT_OF_MEMORY);
  assert_int_equal(ax_compute_failed(&instr, status), AX_OUT_OF_MEMORY);
  assert_non_null(strstr(ax_message(), "sort found no memory"));
  assert_int_equal(ax_compute_failed(&instr, AX_OK), AX_OK);
}

/* A result of a ppermute that no device sends to is zero; one that is sent to is left alone. */
static void results_without_a_source_are_cleared(void **state) {
  (void)state;
  uint32_t sources[] = {AX_NONE, 0, 1}, number[] = {0, 1, 2};
  ax_push push = {.sources = sources, .number = number};
  ax_ref refs[] = {{.place = own}, {.place = own}};
  const ax_instr clear = {.kind = AX_INSTR_CLEAR, .refs = refs, .ref_count = 2, .push = &push, .bytes = sizeof memory[0]};
  for (int f = 0; f < devices; f++) ax_push_clear(&s.activations[f], &clear);
  for (int i = 0; i < elems; i++) assert_int_equal(memory[0][i], 0);
  assert_int_equal(memory[1][1], 11);
}

/* Product (1, 2) of a batch of 2 by 3. */
static void where_a_product_of_a_batch_begins(void **state) {
  (void)state;
  int64_t at[3];
  const ax_gemm gemm = {.batch_rank = 2, .batch = {2, 3}, .a_offset = 1, .b_offset = 2, .c_offset = 3,
                        .a_stride = {100, 10}, .b_stride = {0, 7}, .c_stride = {30, 4}};
  ax_gemm_begin(&gemm, 5, at);
  assert_int_equal(at[0], 1 + 100 + 20);
  assert_int_equal(at[1], 2 + 14);
  assert_int_equal(at[2], 3 + 30 + 8);
}

/* Runs inside runs, as of a callback that runs another program: a thread knows all that it is inside of. */
static void a_thread_knows_the_runs_it_is_inside_of(void **state) {
  (void)state;
  static ax_executor outer, inner;
  ax_inside first, second;
  assert_false(ax_inside_run(&outer));
  ax_inside_enter(&first, &outer);
  ax_inside_enter(&second, &inner);
  assert_true(ax_inside_run(&outer));
  assert_true(ax_inside_run(&inner));
  ax_inside_leave(&second);
  assert_true(ax_inside_run(&outer));
  assert_false(ax_inside_run(&inner));
  ax_inside_leave(&first);
  assert_false(ax_inside_run(&outer));
}

/* A span of the thread's own, in the worker slot that did it. */
static void a_span_of_work_is_noted(void **state) {
  (void)state;
  const int64_t begin = ax_timeline_now();
  ax_timeline_add(&s.run, &s.slots[0], 2, 7, begin);
  assert_int_equal(s.slots[0].span_count, 1);
  const ax_span span = s.slots[0].spans[0];
  assert_true(span.begin == begin && span.end >= begin && span.end <= ax_timeline_now());
  assert_true(span.activation == 2 && span.instr == 7 && span.worker_slot == 0);
}

/* A thread comes to the same place each time. */
static void places_of_threads(void **state) {
  (void)state;
  const uint32_t place = ax_thread_place(16);
  assert_true(place < 16);
  assert_int_equal(ax_thread_place(16), place);
  assert_int_equal(ax_thread_place(1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(addresses_follow_devices_and_loops, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_kernel_computes_a_range, set_up, tear_down),
      cmocka_unit_test_setup_teardown(parts_of_a_kernel, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_whole_kernel, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_fused_loop_is_done_by_its_owners, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_routine_that_fails, set_up, tear_down),
      cmocka_unit_test_setup_teardown(results_without_a_source_are_cleared, set_up, tear_down),
      cmocka_unit_test_setup_teardown(where_a_product_of_a_batch_begins, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_thread_knows_the_runs_it_is_inside_of, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_span_of_work_is_noted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(places_of_threads, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
