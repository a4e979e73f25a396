/* The table of kinds of operations, from op_kinds.def, and the questions about an operation that its rules answer. */
#include "plan/op.h"

#include "ir/path.h"
#include "ir/prim.h"

/* --- Operations that a pass has dropped --- */

static void none_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)text, (void)plan, (void)op, (void)indent;
}

static ax_status verify_none(ax_plan_verifier *v, const ax_op *op) {
  (void)v, (void)op;
  return ax_error(AX_INTERNAL, "was taken out");
}

static const ax_op_rules none_rules = {.name = "none", .text = none_text, .verify = verify_none};

/* --- The table --- */

const ax_op_rules *const ax_op_table[AX_OP_KINDS] = {
    [AX_OP_NONE] = &none_rules,
#define AX_OP_KIND(kind, rules) [AX_OP_##kind] = &ax_op_##rules##_rules,
#include "plan/op_kinds.def"
#undef AX_OP_KIND
};

/* --- Buffers and blocks --- */

void ax_op_visit(const ax_op *op, ax_visit visit, void *context) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  if (rules->visit != NULL) rules->visit(op, visit, context);
}

ax_block *ax_op_block(ax_op *op, uint32_t index) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->block != NULL ? rules->block(op, index) : NULL;
}

uint32_t *ax_op_operand(ax_op *op, uint32_t index) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->operand != NULL ? rules->operand(op, index) : NULL;
}

/* --- What it is, and what it takes --- */

bool ax_op_is_ordered(const ax_op *op) {
  if (ax_op_rules_of(op)->is_ordered) return true;
  return op->eqn != NULL && (op->eqn->prim->effects & (AX_EFFECT_ORDER | AX_EFFECT_STATE)) != 0;
}

bool ax_op_only_computes(const ax_op *op) { return ax_op_rules_of(op)->only_computes && !ax_op_is_ordered(op); }

bool ax_op_takes_turns(const ax_op *op) {
  return op->kind == AX_OP_EVAL && op->eqn != NULL && (op->eqn->prim->effects & AX_EFFECT_ORDER) != 0;
}

bool ax_op_has_messages(const ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  if (rules->is_message) return true;
  return rules->block != NULL && op->eqn != NULL && (ax_eqn_effects(op->eqn) & AX_EFFECT_MESSAGE) != 0;
}

double ax_op_time(const ax_plan *plan, const ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->time != NULL ? rules->time(plan, op) : 0;
}

/* --- Copies --- */

ax_status ax_op_rename(const ax_op_renaming *renaming, ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->rename != NULL ? rules->rename(renaming, op) : ax_error(AX_INTERNAL, "an operation '%s' is copied", rules->name);
}

ax_status ax_op_rename_buffer(const ax_op_renaming *renaming, uint32_t *buffer) {
  return *buffer != AX_NONE ? renaming->buffer(renaming->context, buffer) : AX_OK;
}

ax_status ax_op_rename_list(const ax_op_renaming *renaming, ax_arena *arena, uint32_t **list, uint32_t count) {
  *list = ax_arena_copy(arena, *list, count * sizeof **list);
  if (*list == NULL) return ax_out_of_memory(count * sizeof **list);
  for (uint32_t i = 0; i < count; i++) AX_TRY(renaming->buffer(renaming->context, &(*list)[i]));
  return AX_OK;
}

/* --- Text --- */

void ax_buffers_text(ax_text *text, const char *lead, const uint32_t *buffers, uint32_t count) {
  ax_text_add(text, "%s", lead);
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, " b%u", buffers[i]);
}

void ax_op_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  ax_text_add(text, "%*son %s", indent, "", ax_axis_set_string(op->axes, &plan->mesh));
  if (op->eqn != NULL) {
    ax_text_add(text, ", ");
    ax_origin_text(text, op->eqn);
  }
  ax_text_add(text, ": ");
  ax_op_rules_of(op)->text(text, plan, op, indent);
}

void ax_block_text(ax_text *text, const ax_plan *plan, const ax_block *block, int indent) {
  for (uint32_t i = 0; i < block->count; i++) ax_op_text(text, plan, &block->ops[i], indent);
}
