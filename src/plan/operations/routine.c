/* A primitive's own code as an operation.

   Invariants: it writes something, and its results have no memory in common with each other or with operands, but for the first result
   with the first operand of a routine that may be done in place. */
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  const ax_routine *routine = op->routine;
  for (uint32_t k = 0; k < routine->in_count + (routine->updates ? routine->out_count : 0); k++)
    visit(context, routine->buffers[k], false);
  for (uint32_t k = 0; k < routine->out_count; k++) visit(context, routine->buffers[routine->in_count + k], true);
}

static void visit_updated(const ax_op *op, ax_visit visit, void *context) {
  const ax_routine *routine = op->routine;
  for (uint32_t k = 0; routine->updates && k < routine->out_count; k++)
    visit(context, routine->buffers[routine->in_count + k], true);
}

static uint32_t *operand(ax_op *op, uint32_t index) { return index < op->routine->in_count ? &op->routine->buffers[index] : NULL; }

static double time_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return 100 + op->routine->time;
}

static ax_amount amount_of(const ax_plan *plan, const ax_op *op) {
  ax_amount out = ax_op_touched(plan, op);
  out.core_ns = op->routine->time;
  return out;
}

static bool does_equation(const ax_op *op) { return !op->routine->moves; }
static const char *label(const ax_op *op) { return op->routine->moves ? op->routine->name : NULL; }

static bool makes_nonfinite(const ax_op *op) {
  (void)op;
  return true;
}

static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  ax_routine *made = op->routine = ax_routine_copy(r->arena, op->routine);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  for (uint32_t k = 0; k < made->in_count + made->out_count; k++) AX_TRY(r->buffer(r->context, &made->buffers[k]));
  return AX_OK;
}

static uint32_t stored(const ax_op *op) { return op->routine->buffers[op->routine->in_count]; }

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  const ax_routine *routine = op->routine;
  (void)plan, (void)indent;
  ax_text_add(text, "%s%s of", routine->name != NULL ? routine->name : "routine", routine->updates ? ", updating," : "");
  ax_buffers_text(text, "", routine->buffers, routine->in_count);
  ax_buffers_text(text, " to", routine->buffers + routine->in_count, routine->out_count);
  ax_text_add(text, ", in %u parts\n", routine->parts);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  const ax_routine *routine = op->routine;
  if (routine->out_count == 0 || routine->parts == 0) return ax_error(AX_INTERNAL, "nothing is written");
  for (uint32_t k = 0; k < routine->in_count + routine->out_count; k++) {
    AX_TRY(ax_verify_buffer(v, routine->buffers[k]));
    for (uint32_t i = 0; i < k && k >= routine->in_count; i++)
      if (!(routine->in_place && i == 0 && k == routine->in_count) &&
          v->plan->buffers[routine->buffers[i]].allocation == v->plan->buffers[routine->buffers[k]].allocation)
        return ax_error(AX_INTERNAL, "b%u is written and has memory in common with b%u", routine->buffers[k], routine->buffers[i]);
  }
  return AX_OK;
}

const ax_op_rules ax_op_routine_rules = {.name = "routine",
                                         .only_computes = true,
                                         .makes_results = true,
                                         .visit = visit_all,
                                         .stored = stored,
                                         .visit_updated = visit_updated,
                                         .operand = operand,
                                         .time = time_of,
                                         .amount = amount_of,
                                         .does_equation = does_equation,
                                         .label = label,
                                         .makes_nonfinite = makes_nonfinite,
                                         .rename = rename_all,
                                         .text = text_of,
                                         .verify = verify};
