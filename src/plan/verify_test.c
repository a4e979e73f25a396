/* Each invariant of plans broken once, in a plan that has one of everything: the verifier says which. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { N = 64 };

static void first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(in[0]);
}

static void second(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

/* A product, a sum over the devices, and a choice; rows of y are views. */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_add(ax_matmul(in[0], in[0]), ax_pvary(ax_psum(ax_mul(in[0], in[0]), "d"), "d"));
  ax_switch(ax_axis_index("d"), AX_FNS(AX_FN(first, 1, 1), AX_FN(second, 1, 1)), &x, &out[0]);
  out[1] = ax_tanh(in[1]);
}

static void device(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step, 2, 2), 1, 3, false, in, out);
}

static void until(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], ax_full(AX_F32, AX_DIMS(), 3));
}

static void twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

static void repeat(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_while(AX_FN(until, 1, 1), AX_FN(twice, 1, 1), in, out);
}

/* --- Looking for what is to be broken --- */

/* Of kernels, one that computes something. */
static bool is_wanted(const ax_op *op, ax_op_kind kind) {
  return op->kind == kind && (kind != AX_OP_KERNEL || op->kernel.kernel->expr_count > 1);
}

static ax_op *find(ax_block *block, ax_op_kind kind) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i], *inside = NULL;
    if (is_wanted(op, kind)) return op;
    for (uint32_t k = 0; ax_op_block(op, k) != NULL && inside == NULL; k++) inside = find(ax_op_block(op, k), kind);
    if (inside != NULL) return inside;
  }
  return NULL;
}

static ax_op *need(ax_plan *plan, ax_op_kind kind) {
  ax_op *op = find(&plan->block, kind);
  assert_non_null(op);
  return op;
}

static ax_loop_kernel *kernel(ax_plan *plan) { return need(plan, AX_OP_KERNEL)->kernel.kernel; }

static ax_buffer *view(ax_plan *plan) { /* of a loop */
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].loop != AX_NONE) return &plan->buffers[i];
  fail_msg("no view");
  return NULL;
}

/* --- Breaking it --- */

static void view_ends_outside(ax_plan *plan) { view(plan)->step *= 2; }
static void view_begins_outside(ax_plan *plan) { view(plan)->offset = -4; }
static void allocation_is_a_view(ax_plan *plan) { view(plan)->allocation = (uint32_t)(view(plan) - plan->buffers); }
static void axes_of_no_mesh(ax_plan *plan) { plan->buffers[0].axes |= 1u << 5; }
static void other_slot(ax_plan *plan) { kernel(plan)->slots[0].dims[0]++; }
static void early_use(ax_plan *plan) {
  for (ax_ex e = 0; e < kernel(plan)->expr_count; e++)
    if (ax_scalar_arity(kernel(plan)->exprs[e].op) > 0) kernel(plan)->exprs[e].arg[0] = e;
}
static void place_outside(ax_plan *plan) { ((ax_position *)kernel(plan)->stores[0].at)->offset = 1; }
static void nothing_stored(ax_plan *plan) { kernel(plan)->store_count = 0; }
static void wide_product(ax_plan *plan) { need(plan, AX_OP_GEMM)->gemm->lda++; }
static void product_elsewhere(ax_plan *plan) { need(plan, AX_OP_GEMM)->axes = 0; }
static void long_part(ax_plan *plan) { need(plan, AX_OP_START)->exchange->dims[0]++; }
static void done_first(ax_plan *plan) { need(plan, AX_OP_DONE)->exchange->id++; }
static void no_writer(ax_plan *plan) {
  plan->block.ops[0].kind = AX_OP_NONE;
  ax_block_sweep(&plan->block);
}
static void loop_twice(ax_plan *plan) { plan->block.ops[0] = *need(plan, AX_OP_LOOP); }
static void view_escapes(ax_plan *plan) {
  view(plan)->loop = plan->loop_count++;
}
static void index_of_another_kind(ax_plan *plan) { need(plan, AX_OP_BRANCH)->branch.index = 0; }
static void taken_out(ax_plan *plan) { need(plan, AX_OP_GEMM)->kind = AX_OP_NONE; }
static void result_of_nothing(ax_plan *plan) { plan->out[0] = plan->buffer_count; }

static void test_broken(void **state) {
  (void)state;
  static const struct {
    void (*break_it)(ax_plan *plan);
    const char *message;
  } rows[] = {
      {view_ends_outside, " bytes"},
      {view_begins_outside, "is at -4 to"},
      {allocation_is_a_view, " bytes"},
      {axes_of_no_mesh, "b0 is stored along axes that the mesh has not"},
      {other_slot, "slot 0 is not like"},
      {early_use, " uses e"},
      {place_outside, " goes from 1 to 64 of 64"},
      {nothing_stored, "nothing is stored"},
      {wide_product, "elements 0 to "},
      {product_elsewhere, "runs along {}, but"},
      {long_part, "elements 0 to "},
      {done_first, "exchange 1 is "},
      {no_writer, "is read before it is written"},
      {loop_twice, "is there twice"},
      {view_escapes, "is used outside of loop 1"},
      {index_of_another_kind, "b0 is no s32 scalar"},
      {taken_out, "was taken out"},
      {result_of_nothing, "result 0 is not written"},
  };
  const test_map map = {"d=2", {"d", "_,d"}, {"d", "_,d"}, .body = device};
  const ax_type types[] = {TEST_TYPE(AX_F32, 2 * N, N), TEST_TYPE(AX_F32, 3, 2 * N)};
  ax_program *program = test_trace_map(&map, types);
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_plan *plan = test_plan(program);
    TEST_OK(ax_plan_verify(plan));
    rows[i].break_it(plan);
    ax_status status = ax_plan_verify(plan);
    if (status != AX_INTERNAL || strstr(ax_message(), rows[i].message) == NULL)
      fail_msg("row %zu: %s, where \"%s\" is wanted", i, status == AX_OK ? "nothing" : ax_message(), rows[i].message);
    ax_plan_destroy(plan);
  }
  ax_program_release(program);
}

static void test_condition(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_F32);
  ax_program *program = test_trace(repeat, NULL, &type, 1, 1);
  ax_plan *plan = test_plan(program);
  TEST_OK(ax_plan_verify(plan));
  plan->buffers[need(plan, AX_OP_LOOP)->loop.condition].type.rank = 1;
  TEST_FAILS(ax_plan_verify(plan), AX_INTERNAL, "");
  ax_plan_destroy(plan);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_condition)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
