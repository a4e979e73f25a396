/* Exchanges of many short pieces, which are put by blocks: how each is put, and that results are those of reference evaluation
   under every policy. Operands are arguments of the run, or made in it; in loops, each step's pieces follow those of the step
   before. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "code/compiled.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef enum kind { PSUM_SCATTER, ALL_TO_ALL, ALL_GATHER } kind;

typedef struct exchange {
  kind kind;
  const char *mesh, *axes;
  ax_dtype dtype;
  int64_t dims[3]; /* of a device's operand; 0 ends them */
  int64_t split, concat;
  bool made;       /* the operand is made in the run */
  int steps;       /* 0: no loop */
} exchange;

static ax_value put(const exchange *x, ax_value in) {
  switch (x->kind) {
    case PSUM_SCATTER: return ax_psum_scatter(in, x->axes, x->split, true);
    case ALL_GATHER: return ax_all_gather(in, x->axes, x->concat, true);
    default: return ax_all_to_all(in, x->axes, x->split, x->concat, true);
  }
}

/* The exchange and what undoes it, so that the result has the operand's shape. */
static ax_value there_and_back(const exchange *x, ax_value in) {
  ax_value y = put(x, in);
  switch (x->kind) {
    case PSUM_SCATTER: return ax_pvary(ax_all_gather(y, x->axes, x->split, true), x->axes);
    case ALL_GATHER: return ax_psum_scatter(y, x->axes, x->concat, true);
    default: return ax_all_to_all(y, x->axes, x->concat, x->split, true);
  }
}

static void step(const ax_value *in, ax_value *out, void *context) {
  const exchange *x = context;
  const double factor = ax_is_float(x->dtype) ? 0.0625 : 1;
  out[0] = ax_mul(ax_add(there_and_back(x, ax_add(in[0], in[0])), in[0]), ax_full_like(in[0], factor));
}

static void body(const ax_value *in, ax_value *out, void *context) {
  const exchange *x = context;
  if (x->steps > 0) ax_scan(AX_CLOSURE(step, 1, 1, context), 1, x->steps, false, in, out);
  else out[0] = put(x, x->made ? ax_add(in[0], in[0]) : in[0]);
}

/* All axes of the mesh cut the first dimension. */
static ax_program *trace(exchange *x) {
  char all[64] = "";
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(x->mesh, &mesh));
  for (uint32_t i = 0; i < mesh.count; i++) {
    if (i > 0) strcat(all, "+");
    strcat(all, mesh.axis[i].name);
  }
  int64_t dims[] = {x->dims[0] * ax_mesh_devices(&mesh), x->dims[1], x->dims[2]};
  const ax_type type = ax_array_type(x->dtype, AX_LIST(x->dims[1] == 0 ? 1 : x->dims[2] == 0 ? 2 : 3, dims));
  return test_trace_map(&(test_map){x->mesh, {all}, {all}, .unchecked = true, .body = body, .context = x}, &type);
}

/* --- How they are put --- */

static void expect_way(exchange *x, ax_push_way way, uint32_t batch) {
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = trace(x);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  const ax_instr *instr = test_compiled(executable)->codes[0].instrs;
  while (instr->kind != AX_INSTR_PUSH) instr++;
  assert_int_equal(instr->push->way, way);
  if (way == AX_PUSH_IN_BATCHES) assert_int_equal(instr->push->batch, batch);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void many_short_pieces_are_put_by_blocks(void **state) {
  (void)state;
  expect_way(&(exchange){PSUM_SCATTER, "d=64", "d", AX_F32, .dims = {64}}, AX_PUSH_AS_WHOLE, 0);
  expect_way(&(exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {16, 64}, .split = 1}, AX_PUSH_AS_WHOLE, 0);
  expect_way(&(exchange){ALL_TO_ALL, "d=64", "d", AX_F32, .dims = {64}}, AX_PUSH_IN_BATCHES, 0); /* operands stay */
  expect_way(&(exchange){ALL_TO_ALL, "d=64", "d", AX_F32, .dims = {64}, .made = true}, AX_PUSH_IN_BATCHES, 64);
  expect_way(&(exchange){ALL_TO_ALL, "d=64", "d", AX_F32, .dims = {64, 16}, .made = true}, AX_PUSH_IN_BATCHES, 64);
  expect_way(&(exchange){ALL_TO_ALL, "d=64", "d", AX_F32, .dims = {64, 100}, .made = true}, AX_PUSH_IN_BATCHES, 10);
  expect_way(&(exchange){ALL_GATHER, "d=8", "d", AX_F32, .dims = {32, 2}, .concat = 1, .made = true}, AX_PUSH_IN_BATCHES, 8);
}

static bool is_at_once(exchange x) {
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = trace(&x);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  const ax_instr *instr = test_compiled(executable)->codes[0].instrs;
  while (instr->kind != AX_INSTR_PUSH) instr++;
  const bool at_once = instr->push->at_once;
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return at_once;
}

static void few_elements_in_a_loop_are_put_at_once(void **state) {
  (void)state;
  assert_true(is_at_once((exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {8}, .made = true, .steps = 3}));
  assert_true(is_at_once((exchange){PSUM_SCATTER, "d=2", "d", AX_F32, .dims = {2}, .made = true, .steps = 3}));
  assert_false(is_at_once((exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {8}, .made = true}));
  assert_false(is_at_once((exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {16}, .made = true, .steps = 3}));
}

static void long_pieces_are_put_apart(void **state) {
  (void)state;
  expect_way(&(exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {8192}}, AX_PUSH_APART, 0);
  expect_way(&(exchange){ALL_TO_ALL, "d=3", "d", AX_F32, .dims = {3}, .made = true}, AX_PUSH_APART, 0); /* few */
  expect_way(&(exchange){ALL_TO_ALL, "d=64", "d", AX_F32, .dims = {64, 2048}, .made = true}, AX_PUSH_APART, 0);
  expect_way(&(exchange){ALL_GATHER, "d=8", "d", AX_F32, .dims = {32}}, AX_PUSH_APART, 0);
}

/* --- What they give --- */

static void run(exchange x) {
  ax_program *program = trace(&x);
  test_random_run(program, 1, false, 1e-5);
  ax_program_release(program);
}

/* Of arguments, of values made in the run, and in a loop. */
static void run_all(exchange x) {
  run(x);
  x.made = true;
  run(x);
  x.steps = 3;
  run(x);
}

static void along_one_axis(void **state) {
  (void)state;
  run_all((exchange){PSUM_SCATTER, "d=20", "d", AX_F32, .dims = {20}});
  run_all((exchange){PSUM_SCATTER, "d=6", "d", AX_F32, .dims = {3, 12, 2}, .split = 1});
  run_all((exchange){PSUM_SCATTER, "d=5", "d", AX_BF16, .dims = {4, 10}, .split = 1});
  run_all((exchange){ALL_TO_ALL, "d=20", "d", AX_F32, .dims = {20}});
  run_all((exchange){ALL_TO_ALL, "d=33", "d", AX_S16, .dims = {66}});
  run_all((exchange){ALL_TO_ALL, "d=18", "d", AX_F64, .dims = {18, 3}});
  run_all((exchange){ALL_TO_ALL, "d=6", "d", AX_F32, .dims = {12, 5}, .concat = 1});
  run_all((exchange){ALL_TO_ALL, "d=6", "d", AX_S8, .dims = {5, 18}, .split = 1});
  run_all((exchange){ALL_TO_ALL, "d=6", "d", AX_F32, .dims = {5, 18, 2}, .split = 1, .concat = 1});
  run_all((exchange){ALL_GATHER, "d=6", "d", AX_F32, .dims = {9, 2}, .concat = 1});
  run_all((exchange){ALL_GATHER, "d=6", "d", AX_F32, .dims = {3, 2, 5}, .concat = 2});
}

static void in_groups(void **state) {
  (void)state;
  run_all((exchange){PSUM_SCATTER, "a=3,b=8", "b", AX_F32, .dims = {8, 2}});
  run_all((exchange){PSUM_SCATTER, "a=3,b=8", "a", AX_F32, .dims = {6, 2}});
  run_all((exchange){ALL_TO_ALL, "a=20,b=2", "a", AX_F32, .dims = {20}});
  run_all((exchange){ALL_TO_ALL, "a=2,b=20", "b", AX_F32, .dims = {20, 3}});
  run_all((exchange){ALL_TO_ALL, "a=5,b=4", "b,a", AX_F32, .dims = {20}});
  run_all((exchange){ALL_GATHER, "a=2,b=6", "b", AX_F32, .dims = {18, 1}, .concat = 1});
}

static void at_once(void **state) {
  (void)state;
  run_all((exchange){PSUM_SCATTER, "d=8", "d", AX_F32, .dims = {8}});
  run_all((exchange){PSUM_SCATTER, "d=5", "d", AX_BF16, .dims = {5}});
  run_all((exchange){PSUM_SCATTER, "a=3,b=4", "b", AX_F32, .dims = {4}});
  run_all((exchange){PSUM_SCATTER, "a=4,b=3", "a", AX_S32, .dims = {4}});
}

/* More than a batch holds, and more than a tile. */
static void in_several_batches(void **state) {
  (void)state;
  run((exchange){ALL_TO_ALL, "d=150", "d", AX_F32, .dims = {150}, .made = true});
  run((exchange){ALL_TO_ALL, "d=260", "d", AX_S8, .dims = {260}});
  run((exchange){ALL_TO_ALL, "d=40", "d", AX_F32, .dims = {40, 101}, .made = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_short_pieces_are_put_by_blocks), cmocka_unit_test(long_pieces_are_put_apart),
      cmocka_unit_test(few_elements_in_a_loop_are_put_at_once), cmocka_unit_test(at_once),
      cmocka_unit_test(along_one_axis), cmocka_unit_test(in_groups), cmocka_unit_test(in_several_batches),
  };
  return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
