/* Kernels traced: what each function makes, as text that reads back to the same. */
#undef AXLE_NO_LINES /* as users have it */
#include <string.h>

#include "axle/kernel.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "kernel/kernel.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Help --- */

/* The program's text has each part; it reads back to an equal program, which is sound. */
static void check_text(ax_program *program, const char *const *parts) {
  char *text, *again;
  ax_program *read;
  TEST_OK(ax_program_print(program, &text));
  for (; *parts != NULL; parts++)
    if (strstr(text, *parts) == NULL) fail_msg("no \"%s\" in\n%s", *parts, text);
  TEST_OK(ax_program_verify(program));
  ax_status status = ax_program_parse(text, strlen(text), "text", &read);
  if (status != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  TEST_OK(ax_program_verify(read));
  assert_true(ax_program_equal(program, read));
  TEST_OK(ax_program_print(read, &again));
  assert_string_equal(text, again);
  ax_string_free(text);
  ax_string_free(again);
  ax_program_release(read);
  ax_program_release(program);
}

#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- The smallest --- */

static AX_BODY(add_refs) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }

static AX_BODY(call_add) {
  ax_kernel_call(&(ax_kernel){.outs = {AX_TYPES(AX_TYPE(AX_F32, 8))}}, AX_FN(add_refs, 3, 0), AX_LIST(2, in), out);
}

static void without_a_grid(void **state) {
  (void)state;
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(call_add, 2, 1), AX_TYPES(AX_TYPE(AX_F32, 8), AX_TYPE(AX_F32, 8)), &program));
  check_text(program, PARTS("kernel_call", "ref<f32[8] vmem>", "ref_load[masked=false] a", "ref_store[masked=false] c"));
}

/* --- Blocks, grids, scratch --- */

static AX_BODY(row_of) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

/* Rows of x are added up into a squeezed row of y; the sum of all so far stands in scratch. */
static AX_BODY(sum_rows) {
  ax_value first = ax_eq(ax_program_id(0), 0);
  ax_value total = ax_ref_load(in[2]);
  ax_ref_store(in[2], ax_where(first, 0, total));
  ax_ref_add(in[2], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(0), false));
  ax_ref_store(in[1], ax_mul(ax_ref_load(in[2]), ax_convert_element_type(ax_num_programs(0), AX_F32)));
}

static AX_BODY(call_rows) {
  const ax_block_spec x = {.block = {AX_DIMS(2, 8)}, .index_map = row_of}, y = {.block = {AX_DIMS(0, 8)}, .index_map = row_of};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 8)}};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(4)},
                              .semantics = {AX_SEMANTICS(AX_ARBITRARY)},
                              .in_specs = {AX_BLOCK_SPECS(x)},
                              .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 4, 8))},
                              .options = {.name = "rows", .scratch = {AX_LIST(1, scratch)}, .flops = 1e6}}),
                 AX_FN(sum_rows, 3, 0), AX_LIST(1, in), out);
}

static void over_a_grid(void **state) {
  (void)state;
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(call_rows, 1, 1), AX_TYPES(AX_TYPE(AX_F32, 8, 8)), &program));
  check_text(program, PARTS("name=\"rows\"", "grid=(4,)", "semantics=(0,)", "blocks=(ref<f32[2,8] vmem>, ref<f32[8] vmem>)",
                            "blocked=((0, 0), (1, 1))", "block_shapes=(f32[2,8], f32[1,8])", "scratch=(ref<f32[8] vmem>,)",
                            "flops=1000000", "program_id[dimension=0]", "4:s32[]"));
}

/* --- What bodies capture is an operand, along whatever axes it varies --- */

static AX_BODY(scale_body) { ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), *(const ax_value *)context)); }

static AX_BODY(call_scale) {
  ax_value factor = ax_add(in[1], 1);
  ax_kernel_call((&(ax_kernel){.outs = {AX_TYPES(AX_TYPE(AX_F32, 8))}, .options = {.aliases = {AX_ALIASES({0, 0})}}}),
                 AX_CLOSURE(scale_body, 2, 0, &factor), AX_LIST(1, in), out);
}

static void captured_values(void **state) {
  (void)state;
  ax_program *program;
  ax_mesh mesh;
  const ax_type x = AX_TYPE(AX_F32, 8);
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_type varying = x;
  varying.spread.varying = 1;
  TEST_OK(ax_trace_on(&mesh, AX_FN(call_scale, 2, 1), AX_TYPES(x, varying), &program));
  check_text(program, PARTS("e:f32[8]{V:d} = add b d", "f:f32[8]{V:d} = kernel_call", "consts=1", "aliases=((0, 0),)",
                            "{ axes d=4? ; lambda a:f32[8] b:ref<f32[8] vmem>", "] e a"));
}

/* --- Several meshes --- */

static AX_BODY(produce) {
  ax_value last[] = {ax_integer(0)};
  ax_copy_start(in[0], in[2], &(ax_copy_options){.received = &in[3]});
  ax_copy_wait(in[3], in[2]);
  ax_semaphore_signal(ax_ref_at(in[4], 1), 1, &(ax_target_core){.axes = "x", .coordinates = {AX_LIST(1, last)}});
}

static AX_BODY(consume) {
  ax_value me = ax_axis_index("wg");
  ax_semaphore_wait(ax_ref_at(in[4], me), 1);
  ax_copy(in[2], in[1]);
  ax_set_max_registers(40, false);
  ax_kernel_trace_begin("end");
  ax_barrier_arrive(in[5]);
  ax_barrier_wait(in[5]);
  ax_kernel_trace_end();
}

static AX_BODY(call_both) {
  ax_core_mesh meshes[] = {{.core = "tensorcore"}, {.core = "vector_subcore", .threads = "wg"}};
  ax_mesh wgs;
  if (ax_mesh_parse("wg=2", &wgs) != AX_OK) ax_trace_fail("mesh");
  meshes[1].mesh = wgs;
  const ax_scratch scratch[] = {{.type = AX_HBM(AX_F32, 8)},
                                {.type = ax_dma_semaphore_type(AX_DIMS()), .core = "tensorcore"},
                                {.type = ax_semaphore_type(AX_DIMS(2)), .core = "vector_subcore"},
                                {.type = ax_barrier_type(AX_DIMS()), .arrivals = 2, .core = "vector_subcore"}};
  const ax_fn bodies[] = {AX_FN(produce, 6, 0), AX_FN(consume, 6, 0)};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, (&(ax_kernel_options){.scratch = {AX_LIST(4, scratch)}, .collective_id = 3, .metadata = "a=b"}), AX_LIST(1,
              in), AX_TYPES(AX_TYPE(AX_F32, 8)), out);
}

static void several_meshes(void **state) {
  (void)state;
  ax_program *program;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("x=2", &mesh));
  TEST_OK(ax_trace_on(&mesh, AX_FN(call_both, 1, 1), AX_TYPES(AX_TYPE(AX_F32, 8)), &program));
  assert_true(program->effects == AX_EFFECT_EXCHANGE &&
              program->named == 1); /* that of the signal to another device, and none of a core's own */
  check_text(program, PARTS("cores=(tensorcore, vector_subcore)", "core_axes=(0, 1)", "threads=(wg,)", "arrivals=((3, 2),)",
                            "scratch_cores=(device, tensorcore, vector_subcore, vector_subcore)", "axes x=2? wg=2? ;",
                            "semaphore_signal[axes=(x,) logical=false]", "b:f32[8]{V:x} = kernel_call", "collective_id=3",
                            "metadata=\"a=b\"", "trace_begin[name=\"end\"]", "run_scoped["));
}

/* --- Control flow, scopes, copies of all kinds --- */

static AX_BODY(then) { ax_ref_store(((const ax_value *)context)[1], 1.5); }
static AX_BODY(otherwise) {}
static AX_BODY(count_up) {
  const ax_value *refs = context;
  ax_ref_add(ax_ref_slice(refs[0], AX_VALUES(in[0]), AX_DIMS(2)), 1);
  out[0] = ax_add(in[1], 1);
}

static AX_BODY(scope) {
  const ax_value *refs = context;
  ax_ref_store(in[0], ax_ref_swap(refs[0], 2));
  out[0] = ax_ref_load_masked(in[0], ax_gt(ax_ref_load(refs[0]), 1), 7);
}

static AX_BODY(flow) {
  ax_value count[] = {ax_full_i64(AX_S32, AX_DIMS(), 0)}, counted[1], made[1];
  ax_if(ax_eq(ax_program_id(0), 1), AX_CLOSURE(then, 0, 0, in), AX_CLOSURE(otherwise, 0, 0, in), NULL, NULL);
  ax_fori_loop(0, 3, AX_CLOSURE(count_up, 2, 1, in), count, counted);
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 8)}), NULL, AX_CLOSURE(scope, 1, 1, in), made);
  ax_ref_store_masked(in[1], ax_lt(made[0], ax_convert_element_type(counted[0], AX_F32)), made[0]);
  ax_ref_swap_masked(in[1], ax_lt(made[0], 0), 1, 2);
}

static AX_BODY(call_flow) {
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2, 3)}, .outs = {AX_TYPES(AX_TYPE(AX_F32, 8))}}), AX_FN(flow, 2, 0), AX_LIST(1, in), out);
}

static void control_flow(void **state) {
  (void)state;
  ax_program *program, *simple;
  TEST_OK(ax_trace(AX_FN(call_flow, 1, 1), AX_TYPES(AX_TYPE(AX_F32, 8)), &program));
  assert_true(program->effects == 0);
  TEST_OK(ax_program_simplify(program, &simple));
  check_text(simple, PARTS("ref_add", "ref_store", "run_scoped", "cond")); /* nothing that a core does is dropped */
  check_text(program, PARTS("cond[", "scan[", "ref<f32[8] vmem>", "run_scoped[", "ref_load[masked=true]", "ref_swap[masked=true]",
                            "ref_store[masked=true]"));
}

/* --- A kernel that nobody needs may go --- */

static AX_BODY(call_unused) {
  ax_value unused[1];
  call_add(in, unused, NULL);
  out[0] = ax_neg(in[0]);
}

static void dropped(void **state) {
  (void)state;
  ax_program *program, *simple;
  TEST_OK(ax_trace(AX_FN(call_unused, 2, 1), AX_TYPES(AX_TYPE(AX_F32, 8), AX_TYPE(AX_F32, 8)), &program));
  TEST_OK(ax_program_dce(program, &simple));
  assert_int_equal(simple->eqn_count, 1);
  ax_program_release(program);
  ax_program_release(simple);
}

/* --- A trace that fails leaves no grid behind --- */

static AX_BODY(failing) {
  (void)ax_program_id(0);
  ax_trace_fail("enough");
}

static AX_BODY(call_failing) {
  ax_kernel_call(&(ax_kernel){.grid = {AX_DIMS(2)}}, AX_FN(failing, 0, 0), AX_VALUES(), NULL);
  out[0] = in[0];
}

static AX_BODY(id_outside) { out[0] = ax_program_id(0); }

static void grids_end(void **state) {
  (void)state;
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(call_failing, 1, 1), AX_TYPES(AX_TYPE(AX_F32)), &program), AX_INVALID_ARGUMENT, "enough");
  TEST_FAILS(ax_trace(AX_FN(id_outside, 0, 1), NULL, &program), AX_INVALID_ARGUMENT, "program_id: there is no grid around");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_grid), cmocka_unit_test(over_a_grid),  cmocka_unit_test(captured_values),
      cmocka_unit_test(several_meshes), cmocka_unit_test(control_flow), cmocka_unit_test(dropped),
      cmocka_unit_test(grids_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
