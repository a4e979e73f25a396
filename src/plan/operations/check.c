/* A check of a result for NaNs and infinities as an operation (plan/check.c). */
#include "ir/prim.h"
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  for (uint32_t k = 0; k < op->check.count; k++) visit(context, op->check.buffers[k], false);
}

static double time_of(const ax_plan *plan, const ax_op *op) {
  return 20 + 0.1 * (double)ax_buffer_bytes(&plan->buffers[op->check.buffers[0]]);
}

static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  return ax_op_rename_list(r, r->arena, &op->check.buffers, op->check.count);
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)plan, (void)indent;
  ax_text_add(text, "check %s b%u", op->eqn->prim->name, op->check.buffers[0]);
  ax_buffers_text(text, " of", op->check.buffers + 1, op->check.count - 1);
  ax_text_add(text, "\n");
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  (void)v;
  return op->eqn != NULL && op->program != NULL && op->check.count > 0 ? AX_OK : ax_error(AX_INTERNAL, "checks nothing");
}

const ax_op_rules ax_op_check_rules = {.name = "check",
                                       .is_ordered = true,
                                       .visit = visit_all,
                                       .time = time_of,
                                       .rename = rename_all,
                                       .text = text_of,
                                       .verify = verify};
