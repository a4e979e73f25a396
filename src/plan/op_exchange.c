/* The two sides of an exchange as operations: START begins it, DONE ends it.

   Invariants: each exchange is started once and done once, in that order; the parts that are put lie inside both buffers. */
#include "plan/op.h"

static void visit_start(const ax_op *op, ax_visit visit, void *context) {
  visit(context, op->exchange->in, false);
  visit(context, op->exchange->out, true);
}

static void visit_done(const ax_op *op, ax_visit visit, void *context) {
  if (op->exchange->peers == AX_PEERS_PAIRS) visit(context, op->exchange->out, true); /* zeros, where no member sends */
}

static void start_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  const ax_exchange *x = op->exchange;
  (void)indent;
  ax_text_add(text, "start %u: %s over %s, b%u to b%u\n", x->id, ax_scalar_name(x->combine),
              ax_axis_set_string(x->axes, &plan->mesh), x->in, x->out);
}

static void done_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)plan, (void)indent;
  ax_text_add(text, "done %u\n", op->exchange->id);
}

static ax_status verify_start(ax_plan_verifier *v, const ax_op *op) {
  const ax_exchange *x = op->exchange;
  int64_t members = ax_axis_set_size(x->axes, &v->plan->mesh);
  if (x->id >= v->plan->exchange_count || v->exchanges[x->id] != 0)
    return ax_error(AX_INTERNAL, "exchange %u is started again", x->id);
  AX_TRY(ax_verify_box(v, x->in, 0, x->rank, x->dims, x->src_stride));
  AX_TRY(ax_verify_box(v, x->in, (members - 1) * x->src_step, x->rank, x->dims, x->src_stride));
  AX_TRY(ax_verify_box(v, x->out, 0, x->rank, x->dims, x->dst_stride));
  AX_TRY(ax_verify_box(v, x->out, (members - 1) * x->dst_step, x->rank, x->dims, x->dst_stride));
  v->exchanges[x->id] = 1;
  return AX_OK;
}

static ax_status verify_done(ax_plan_verifier *v, const ax_op *op) {
  const ax_exchange *x = op->exchange;
  if (x->id >= v->plan->exchange_count || v->exchanges[x->id] != 1)
    return ax_error(AX_INTERNAL, "exchange %u is %s", x->id,
                    x->id < v->plan->exchange_count && v->exchanges[x->id] == 2 ? "done again" : "not started");
  v->exchanges[x->id] = 2;
  return AX_OK;
}

const ax_op_rules ax_op_start_rules = {.name = "start", .visit = visit_start, .text = start_text, .verify = verify_start};
const ax_op_rules ax_op_done_rules = {.name = "done", .visit = visit_done, .text = done_text, .verify = verify_done};
