/* An equation that is run by its primitive's reference code, as an operation. */
#include "ir/prim.h"
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  for (uint32_t k = 0; k < op->eqn->in_count; k++) visit(context, op->eval.in[k], false);
  for (uint32_t k = 0; k < op->eqn->out_count; k++) visit(context, op->eval.out[k], true);
}

static uint32_t *operand(ax_op *op, uint32_t index) { return index < op->eqn->in_count ? &op->eval.in[index] : NULL; }

static double time_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return ax_op_is_ordered(op) || op->eval.callback != NULL ? 20000 : 1000; /* the time of a callback is unknown */
}

static bool always(const ax_op *op) {
  (void)op;
  return true;
}

static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  AX_TRY(ax_op_rename_list(r, r->arena, &op->eval.in, op->eqn->in_count));
  return ax_op_rename_list(r, r->arena, &op->eval.out, op->eqn->out_count);
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)plan, (void)indent;
  ax_text_add(text, "eval %s", op->eqn->prim->name);
  ax_buffers_text(text, " of", op->eval.in, op->eqn->in_count);
  ax_buffers_text(text, " to", op->eval.out, op->eqn->out_count);
  ax_text_add(text, "\n");
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  (void)v;
  return op->eqn != NULL && op->program != NULL ? AX_OK : ax_error(AX_INTERNAL, "has no equation");
}

const ax_op_rules ax_op_eval_rules = {.name = "eval",
                                      .makes_results = true,
                                      .visit = visit_all,
                                      .operand = operand,
                                      .time = time_of,
                                      .does_equation = always,
                                      .makes_nonfinite = always,
                                      .rename = rename_all,
                                      .text = text_of,
                                      .verify = verify};
