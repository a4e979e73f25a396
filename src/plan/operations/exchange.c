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

static uint32_t arrival(const ax_op *op) { return op->exchange->out; }

static uint32_t *operand(ax_op *op, uint32_t index) { return index == 0 ? &op->exchange->in : NULL; }

static double start_time(const ax_plan *plan, const ax_op *op) {
  return 30 + 0.2 * (double)ax_type_elems(&plan->buffers[op->exchange->in].type);
}

static bool sums(const ax_plan *plan, const ax_op *op, ax_op_sum *out) {
  const ax_exchange *x = op->exchange;
  *out = (ax_op_sum){&x->names, x->in, AX_NONE};
  return x->combine == AX_SCALAR_ADD && ax_is_float(plan->buffers[x->in].type.dtype);
}

static ax_status rename_start(const ax_op_renaming *r, ax_op *op) {
  const ax_exchange *from = op->exchange;
  ax_exchange *made = op->exchange = ax_arena_copy(r->arena, from, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  AX_TRY(r->buffer(r->context, &made->in));
  AX_TRY(r->buffer(r->context, &made->out));
  r->start(r->context, from, made);
  return AX_OK;
}

static ax_status rename_done(const ax_op_renaming *r, ax_op *op) {
  op->exchange = r->started(r->context, op->exchange);
  return AX_OK;
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

const ax_op_rules ax_op_start_rules = {.name = "start",
                                       .is_exchange = true,
                                       .waits = true,
                                       .visit = visit_start,
                                       .arrival = arrival,
                                       .operand = operand,
                                       .time = start_time,
                                       .sums = sums,
                                       .rename = rename_start,
                                       .text = start_text,
                                       .verify = verify_start};
const ax_op_rules ax_op_done_rules = {
    .name = "done", .is_exchange = true, .visit = visit_done, .rename = rename_done, .text = done_text, .verify = verify_done};
