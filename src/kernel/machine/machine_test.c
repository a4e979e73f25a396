/* The machine: what kernels do, by reference evaluation, and under random schedules. */
#include "kernel/machine/machine.h"

#include <string.h>

#include "axle/axle.h"
#include "kernel/machine/state.h"
#include "support/cmocka.h"
#include "support/kernels.h"
#include "support/schedules.h"

/* --- One core --- */

static void evaluates(ax_fn fn, const ax_type *types, const float *const *in, const float *want, int64_t count) {
  ax_program *program;
  ax_tensor *given[4] = {NULL}, *made[4] = {NULL};
  ax_status status = ax_trace(fn, types, &program);
  if (status != AX_OK) fail_msg("%s", ax_message());
  for (uint32_t i = 0; i < fn.in_count; i++) {
    assert_int_equal(ax_tensor_create(&types[i], &given[i]), AX_OK);
    memcpy(given[i]->data, in[i], (size_t)ax_type_elems(&types[i]) * sizeof(float));
  }
  test_schedules(program, given, made, 100, 1);
  for (int64_t i = 0; i < count; i++)
    if (((float *)made[0]->data)[i] != want[i])
      fail_msg("element %lld is %g, not %g", (long long)i, ((float *)made[0]->data)[i], want[i]);
  for (uint32_t i = 0; i < fn.in_count; i++) ax_tensor_release(given[i]);
  for (uint32_t k = 0; k < fn.out_count; k++) ax_tensor_release(made[k]);
  ax_program_release(program);
}

static void test_plain_kernel(void **state) {
  (void)state;
  const float x[] = {1, 2, 3, 4}, want[] = {2, 3, 4, 5};
  evaluates(AX_FN(test_plain, 1, 1), (const ax_type[]){AX_TYPE(AX_F32, 4)}, (const float *const[]){x}, want, 4);
}

/* --- Copies in scopes, in a loop --- */

static void test_copies(void **state) {
  (void)state;
  const float x[] = {1, 2, 3, 4, 5, 6}, want[] = {2, 4, 6, 8, 10, 12};
  evaluates(AX_FN(test_doubled, 1, 1), (const ax_type[]){AX_TYPE(AX_F32, 3, 2)}, (const float *const[]){x}, want, 6);
}

/* --- A ring of devices: each sends its block to the right --- */

static AX_BODY(send_right) {
  ax_value me = ax_axis_index("d"), next = ax_add(me, ax_integer(1)),
           right = ax_where(ax_eq(next, ax_integer(4)), ax_integer(0), next), barrier = ax_barrier_semaphore();
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}};
  ax_semaphore_signal(barrier, ax_integer(1), &to);
  ax_semaphore_wait(barrier, ax_integer(1));
  ax_copy_start(in[0], in[1], &(ax_copy_options){.received = (ax_value *)&in[2], .sent = (ax_value *)&in[3], .to = &to});
  ax_copy_wait(in[3], in[0]);
  ax_copy_wait(in[2], in[1]);
}

static AX_BODY(shift) {
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}};
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(send_right, 4, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static AX_BODY(shifted) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "d -> d", AX_FN(shift, 1, 1), in, out);
}

static void test_ring(void **state) {
  (void)state;
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, want[] = {7, 8, 1, 2, 3, 4, 5, 6};
  evaluates(AX_FN(shifted, 1, 1), (const ax_type[]){AX_TYPE(AX_F32, 8)}, (const float *const[]){x}, want, 8);
}

/* --- Faults: found under some schedule --- */

static AX_BODY(hasty) { /* stores what the copy is still to read */
  ax_copy_start(in[0], in[2], &(ax_copy_options){.received = (ax_value *)&in[3]});
  ax_copy_wait(in[3], in[2]);
  ax_value x = ax_ref_load(in[2]);
  ax_copy_start(in[2], in[1], &(ax_copy_options){.received = (ax_value *)&in[3]});
  ax_ref_store(in[2], ax_add(x, ax_real(1)));
  ax_copy_wait(in[3], in[2]);
}

static AX_BODY(racing) {
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 4)}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}};
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(hasty, 4, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static AX_BODY(impatient) { /* waits for bytes that nobody sends */
  ax_copy_wait(in[2], in[1]);
  ax_copy(in[0], in[1]);
}

static AX_BODY(stuck) {
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(1, scratch)}};
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(impatient, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static void goes_wrong(ax_fn fn, const char *part) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program;
  ax_tensor *in = test_tensor(type, (const double[]){1, 2, 3, 4}), *out = NULL;
  TEST_OK(ax_trace(fn, &type, &program));
  const char *wrong = test_schedules_try(program, &in, &out, 100, 1);
  assert_non_null(wrong);
  if (strstr(wrong, part) == NULL) fail_msg("%s", wrong);
  ax_tensor_release(in);
  ax_tensor_release(out);
  ax_program_release(program);
}

static void test_faults(void **state) {
  (void)state;
  goes_wrong(AX_FN(racing, 1, 1), "another outcome");
  goes_wrong(AX_FN(stuck, 1, 1), "deadlock in the kernel: device 0 waits in copy_wait for 16, of which there are 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_kernel), cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_ring), cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
