/* The two sides of a message between devices as operations. */
#include "plan/op.h"

static void visit_send(const ax_op *op, ax_visit visit, void *context) { visit(context, op->message->buffer, false); }
static void visit_receive(const ax_op *op, ax_visit visit, void *context) { visit(context, op->message->buffer, true); }

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)indent;
  ax_text_add(text, "%s b%u over %s, link %lld\n", ax_op_rules_of(op)->name, op->message->buffer,
              ax_axis_set_string(op->message->axes, &plan->mesh), (long long)op->message->link);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  (void)v;
  return op->message != NULL && op->eqn != NULL ? AX_OK : ax_error(AX_INTERNAL, "has no message");
}

const ax_op_rules ax_op_send_rules = {.name = "send", .visit = visit_send, .text = text_of, .verify = verify};
const ax_op_rules ax_op_receive_rules = {.name = "receive", .visit = visit_receive, .text = text_of, .verify = verify};
