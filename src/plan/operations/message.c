/* The two sides of a message between devices as operations. */
#include "plan/op.h"

static void visit_send(const ax_op *op, ax_visit visit, void *context) { visit(context, op->message->buffer, false); }
static void visit_receive(const ax_op *op, ax_visit visit, void *context) { visit(context, op->message->buffer, true); }

static uint32_t arrival(const ax_op *op) { return op->message->buffer; }

static uint32_t *operand(ax_op *op, uint32_t index) { return index == 0 ? &op->message->buffer : NULL; }

static double time_of(const ax_plan *plan, const ax_op *op) {
  return 100 + 0.1 * (double)ax_buffer_bytes(&plan->buffers[op->message->buffer]);
}

static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  op->message = ax_arena_copy(r->arena, op->message, sizeof *op->message);
  return op->message != NULL ? r->buffer(r->context, &op->message->buffer) : ax_out_of_memory(sizeof *op->message);
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)indent;
  ax_text_add(text, "%s b%u over %s, link %lld\n", ax_op_rules_of(op)->name, op->message->buffer,
              ax_axis_set_string(op->message->axes, &plan->mesh), (long long)op->message->link);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  (void)v;
  return op->message != NULL && op->eqn != NULL ? AX_OK : ax_error(AX_INTERNAL, "has no message");
}

const ax_op_rules ax_op_send_rules = {.name = "send",
                                      .is_message = true,
                                      .visit = visit_send,
                                      .operand = operand,
                                      .time = time_of,
                                      .rename = rename_all,
                                      .text = text_of,
                                      .verify = verify};
const ax_op_rules ax_op_receive_rules = {.name = "receive",
                                         .is_message = true,
                                         .waits = true,
                                         .visit = visit_receive,
                                         .arrival = arrival,
                                         .time = time_of,
                                         .rename = rename_all,
                                         .text = text_of,
                                         .verify = verify};
