/* Kernels as plain programs, batched and pruned, where each allocation in turn fails: an error, and nothing left behind. And how
   their cost grows. */
#include "axle/axle.h"
#include "ir/program.h"
#include "kernel/discharge.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static AX_BODY(nothing) {}
static AX_BODY(clear) { ax_ref_store(((const ax_value *)context)[2], ax_real(0)); }

static AX_BODY(add_row) {
  const ax_value *refs = context;
  ax_ref_add(ax_ref_at(refs[2], ax_integer(0)),
             ax_mul(ax_ref_load(ax_ref_at(refs[0], in[0])), ax_ref_load(ax_ref_at(refs[0], in[0]))));
}

/* x: [2,3] of [5,3], y: [2,3] of [5,3], scratch [1,3]; a captured value */
static AX_BODY(body) {
  ax_value i = ax_program_id(0);
  const ax_value *captured = context;
  ax_if(ax_eq(i, ax_integer(0)), AX_CLOSURE(clear, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(add_row, 1, 0, in), NULL, NULL);
  ax_ref_store(in[1], ax_add(ax_broadcast_to(ax_ref_load(in[2]), AX_DIMS(2, 3)), *captured));
}

static AX_BODY(at_row) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

static AX_BODY(kernel) {
  const ax_block_spec spec = {.block = {AX_DIMS(2, 3)}, .index_map = at_row};
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 1, 3)};
  const ax_value captured = in[1];
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(3)},
                              .in_specs = {AX_BLOCK_SPECS(spec)},
                              .out_specs = {AX_BLOCK_SPECS(spec)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 5, 3))},
                              .options = {.scratch = {AX_SCRATCH(scratch)}}}),
                 AX_CLOSURE(body, 3, 0, (void *)(uintptr_t)&captured), AX_LIST(1, in), out);
}

static ax_status derive(void *context) {
  ax_program *jvp, *primal, *tangent;
  uint32_t residuals;
  AX_TRY(ax_program_jvp(context, AX_ALL_ARGS, &jvp));
  ax_program_release(jvp);
  AX_TRY(ax_program_linearize(context, AX_ALL_ARGS, &primal, &tangent, &residuals));
  ax_program_release(primal);
  ax_program_release(tangent);
  return AX_OK;
}

static ax_status map(void *context) {
  ax_program *mapped;
  AX_TRY(ax_program_vmap(context, &(ax_vmap_options){.size = 2}, &mapped));
  ax_program_release(mapped);
  return AX_OK;
}

static ax_status sweep(void *context) {
  ax_program *left;
  AX_TRY(ax_program_dce(context, &left));
  ax_program_release(left);
  return AX_OK;
}

static ax_status export(void *context) {
  char *text;
  AX_TRY(ax_program_stablehlo(context, &text));
  ax_free(text);
  return AX_OK;
}

static void test_no_memory(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 5, 3), TEST_SCALAR(AX_F32)};
  ax_program *program = test_trace(kernel, NULL, types, 2, 1);
  assert_true(test_each_allocation(derive, program) > 0);
  assert_true(test_each_allocation(map, program) > 0);
  assert_true(test_each_allocation(sweep, program) > 0);
  assert_true(test_each_allocation(export, program) > 0);
  ax_program_release(program);
}

/* --- Cost --- */

static AX_BODY(steps) { /* each reads what the last one stored */
  const int64_t *count = context;
  for (int64_t i = 0; i < *count; i++)
    ax_ref_store(ax_ref_at(in[1], ax_integer(i % 4)),
                 ax_add(ax_ref_load(ax_ref_at(in[1], ax_integer((i + 1) % 4))), ax_ref_load(in[0])));
}

static AX_BODY(stepping) {
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2)}, .outs = {AX_TYPES(AX_TYPE(AX_F32, 4, 2))}}), AX_CLOSURE(steps, 2, 0, context), AX_LIST(1,
                 in), out);
}

/* Of as many equations as the body has steps, whatever the grid. */
static void test_size(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  uint32_t sizes[2];
  for (int k = 0; k < 2; k++) {
    const int64_t count = k == 0 ? 100 : 200;
    ax_program *program = test_trace(stepping, (void *)(uintptr_t)(const void *)&count, &type, 1, 1), *plain;
    const ax_eqn *eqn = &program->eqns[program->eqn_count - 1];
    TEST_OK(ax_kernel_discharge_run(eqn, &(ax_discharge_options){.in = &type, .in_count = 1, .zeros = true}, &plain));
    const ax_program *loop = NULL;
    for (uint32_t i = 0; i < plain->eqn_count; i++)
      if (ax_eqn_program(&plain->eqns[i], 0) != NULL) loop = ax_eqn_program(&plain->eqns[i], 0);
    assert_non_null(loop);
    sizes[k] = loop->eqn_count;
    ax_program_release(plain);
    ax_program_release(program);
  }
  assert_true(sizes[1] > 100 && sizes[1] <= 2 * sizes[0] + 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory), cmocka_unit_test(test_size)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
