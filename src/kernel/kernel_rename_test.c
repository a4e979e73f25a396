/* Kernels among other shard_maps: compiled, they stand on the mesh that is all of these put together, whose axes are parts of
   theirs. */
#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/run.h"

/* A ring: each device's block goes to the next, by its coordinate or by its number. `context` non-NULL: by its number. */
static AX_BODY(send_right) {
  const bool *logical = context;
  ax_value next = ax_add(ax_axis_index("d"), ax_integer(1)), right = ax_where(ax_eq(next, ax_integer(4)), ax_integer(0), next),
           barrier = ax_barrier_semaphore();
  const ax_target_core to = *logical ? (ax_target_core){.logical = true, .device = right}
                                     : (ax_target_core){.axes = "d", .coordinates = {AX_VALUES(right)}};
  ax_semaphore_signal(barrier, ax_integer(1), &to);
  ax_semaphore_wait(barrier, ax_integer(1));
  ax_copy_start(in[0], in[1], &(ax_copy_options){.received = (ax_value *)&in[2], .sent = (ax_value *)&in[3], .to = &to});
  ax_copy_wait(in[3], in[0]);
  ax_copy_wait(in[2], in[1]);
}

static AX_BODY(shift) {
  const ax_core_mesh core = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 1}}}};
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}};
  ax_fn body = AX_CLOSURE(send_right, 4, 0, context);
  ax_mpmd_map(AX_LIST(1, &core), &body, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static AX_BODY(sum_both) { out[0] = ax_psum(in[0], "a,b"); }

static AX_BODY(negate) { out[0] = ax_neg(in[0]); }

static AX_BODY(among_others) {
  static const ax_mesh ring = {.count = 1, .axis = {{.name = "d", .size = 4}}},
                       square = {.count = 2, .axis = {{.name = "a", .size = 2}, {.name = "b", .size = 2}}};
  static const ax_mesh more = {.count = 1, .axis = {{.name = "all", .size = 8}}};
  ax_value shifted, sum, total;
  ax_shard_map(&ring, "d -> d", AX_CLOSURE(shift, 1, 1, context), in, &shifted);
  ax_shard_map(&square, "a+b -> ", AX_FN(sum_both, 1, 1), &shifted, &sum);
  ax_value both = ax_mul(shifted, shifted);
  ax_shard_map(&more, "all -> all", AX_FN(negate, 1, 1), &both, &total);
  out[0] = ax_add(shifted, total);
  out[1] = sum;
}

static void test_among_others(void **state) {
  (void)state;
  static const bool ways[] = {false, true};
  const ax_type type = AX_TYPE(AX_F32, 8);
  const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int k = 0; k < 2; k++) {
    ax_program *program = test_trace(among_others, (void *)(uintptr_t)(const void *)&ways[k], &type, 1, 2);
    ax_tensor *in = test_tensor(type, x), *out[2];
    test_run(program, &in, out);
    for (int i = 0; i < 8; i++) TEST_NEAR(test_get(out[0], i), x[(i + 6) % 8] - x[(i + 6) % 8] * x[(i + 6) % 8], 0);
    TEST_NEAR(test_get(out[1], 0), 16, 0);
    TEST_EVERY_WAY(program, &in, 0);
    test_release(&in, 1);
    test_release(out, 2);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_among_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
