/* Loops and branches as operations: those with blocks of operations inside.

   Invariants: each loop has an id of its own, and its views are used inside it alone; conditions and indices are scalars. */
#include "plan/op.h"

/* --- Loops --- */

static void visit_loop(const ax_op *op, ax_visit visit, void *context) {
  if (op->loop.trips < 0) visit(context, op->loop.condition, false);
}

static ax_block *loop_block(ax_op *op, uint32_t index) { return index == 0 ? &op->loop.test : index == 1 ? &op->loop.body : NULL; }

static ax_status rename_loop(const ax_op_renaming *r, ax_op *op) {
  op->loop.id = r->loop(r->context, op->loop.id);
  return op->loop.trips < 0 ? r->buffer(r->context, &op->loop.condition) : AX_OK;
}

static void loop_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  ax_text_add(text, "loop %u, %lld times\n", op->loop.id, (long long)op->loop.trips);
  ax_block_text(text, plan, &op->loop.test, indent + 4);
  if (op->loop.trips < 0) ax_text_add(text, "%*swhile b%u\n", indent + 2, "", op->loop.condition);
  ax_block_text(text, plan, &op->loop.body, indent + 4);
}

static ax_status verify_loop(ax_plan_verifier *v, const ax_op *op) {
  return op->loop.trips == v->trips[op->loop.id] ? AX_OK : ax_error(AX_INTERNAL, "loop %u is there twice", op->loop.id);
}

/* The test's results are read after each test; so are those of the body by the next. */
static ax_status verify_inside_loop(ax_plan_verifier *v, ax_op *op) {
  v->open[op->loop.id] = true;
  AX_TRY(ax_verify_block(v, &op->loop.test));
  if (op->loop.trips < 0) {
    AX_TRY(ax_verify_touch(v, op->loop.condition, false));
    AX_TRY(ax_verify_scalar(v, op->loop.condition, AX_BOOL));
  }
  AX_TRY(ax_verify_block(v, &op->loop.body));
  v->open[op->loop.id] = false;
  return AX_OK;
}

const ax_op_rules ax_op_loop_rules = {.name = "loop",
                                      .visit = visit_loop,
                                      .block = loop_block,
                                      .rename = rename_loop,
                                      .text = loop_text,
                                      .verify = verify_loop,
                                      .verify_inside = verify_inside_loop};

/* --- Branches --- */

static void visit_branch(const ax_op *op, ax_visit visit, void *context) { visit(context, op->branch.index, false); }

static ax_block *branch_block(ax_op *op, uint32_t index) { return index < op->branch.count ? &op->branch.blocks[index] : NULL; }

static ax_status rename_branch(const ax_op_renaming *r, ax_op *op) {
  op->branch.blocks = ax_arena_alloc(r->arena, op->branch.count * sizeof op->branch.blocks[0]);
  if (op->branch.blocks == NULL) return ax_out_of_memory(op->branch.count * sizeof op->branch.blocks[0]);
  return r->buffer(r->context, &op->branch.index);
}

static void branch_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  ax_text_add(text, "branch on b%u\n", op->branch.index);
  for (uint32_t k = 0; k < op->branch.count; k++) {
    ax_text_add(text, "%*scase %u\n", indent + 2, "", k);
    ax_block_text(text, plan, &op->branch.blocks[k], indent + 4);
  }
}

static ax_status verify_branch(ax_plan_verifier *v, const ax_op *op) {
  (void)v;
  return op->branch.count > 0 ? AX_OK : ax_error(AX_INTERNAL, "there are no cases");
}

static ax_status verify_inside_branch(ax_plan_verifier *v, ax_op *op) {
  AX_TRY(ax_verify_touch(v, op->branch.index, false));
  AX_TRY(ax_verify_scalar(v, op->branch.index, AX_S32));
  for (uint32_t k = 0; k < op->branch.count; k++) AX_TRY(ax_verify_block(v, &op->branch.blocks[k]));
  return AX_OK;
}

const ax_op_rules ax_op_branch_rules = {.name = "branch",
                                        .visit = visit_branch,
                                        .block = branch_block,
                                        .rename = rename_branch,
                                        .text = branch_text,
                                        .verify = verify_branch,
                                        .verify_inside = verify_inside_branch};
