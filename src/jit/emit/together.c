/* Functions of scalars, together. A function is computed of a whole register, so that one lane takes as long as all of them, and a
   call saves and restores what other registers hold. Scalars that do not wait for each other go into the lanes of one register:

     e0 = exp(a)                                  v = exp([a b c ..])
     e1 = exp(b)               ->                 e0, e1, e2 = v[0], v[1], v[2]
     e2 = exp(c)

   What comes first is found by depth: how many functions a node waits for, one after another. Nodes are computed in the order of
   their depths, and of one depth the functions first. Results have the same bits: they do not depend on the lane. */
#include "jit/emit/nest.h"

#include "ir/program.h"

enum { most_lanes = 16 }; /* of a register of 64 bytes */

static bool is_taken(const ax_nest_schedule *s, ax_ex node) {
  const ax_expr *expr = &s->kernel->exprs[node];
  if (!s->live[node] || s->deps[node] != 0 || expr->op >= AX_SCALAR_COUNT || !ax_is_float(expr->dtype)) return false;
  return ax_scalar_is_function(expr->op) && expr->op != AX_SCALAR_SQRT && expr->op != AX_SCALAR_RSQRT;
}

static uint32_t deeper(const uint32_t *depth, ax_ex node, uint32_t than) {
  return node != AX_NONE && depth[node] > than ? depth[node] : than;
}

/* depth: of the nodes before this one. */
static uint32_t depth_of(const ax_nest_schedule *s, const uint32_t *depth, ax_ex node) {
  const ax_expr *expr = &s->kernel->exprs[node];
  uint32_t most = 0;
  for (int i = 0; i < 3; i++) most = deeper(depth, expr->arg[i], most);
  for (uint32_t d = 0; expr->op == AX_LEAF_LOAD && d < ax_expr_positions(s->kernel, expr); d++)
    most = deeper(depth, expr->at[d].dynamic, most);
  return most + is_taken(s, node);
}

void ax_nest_find_together(ax_nest *nest) {
  const ax_nest_schedule *s = nest->schedule;
  uint32_t *depth = nest->depth, deepest = 0, count = 0, functions = 0;
  for (ax_ex node = 0; node < s->kernel->expr_count; node++) {
    functions += is_taken(s, node);
    depth[node] = depth_of(s, depth, node);
    deepest = depth[node] > deepest ? depth[node] : deepest;
  }
  if (functions < 2) deepest = 0;                      /* in the order that they have */
  for (uint32_t step = 0; step <= 2 * deepest; step++) /* depth 0; functions of depth 1, others of depth 1; .. */
    for (ax_ex node = 0; node < s->kernel->expr_count; node++)
      if (s->live[node] && s->deps[node] == 0 && (deepest == 0 || step == 2 * depth[node] - is_taken(s, node)))
        nest->order[count++] = node;
  nest->ordered = count;
}

/* Whether both are the same function, and neither waits for the other. */
static bool goes_with(const ax_nest *nest, ax_ex a, ax_ex b) {
  const ax_expr *x = &nest->schedule->kernel->exprs[a], *y = &nest->schedule->kernel->exprs[b];
  return x->op == y->op && x->dtype == y->dtype && x->imm == y->imm && nest->depth[a] == nest->depth[b] &&
         is_taken(nest->schedule, b);
}

/* The next ones of the order that go with the first. */
static uint32_t find(const ax_nest *nest, uint32_t first, uint32_t most, ax_ex *out) {
  uint32_t count = 0;
  for (uint32_t i = first; i < nest->ordered && count < most; i++)
    if (nest->values[nest->order[i]] == NULL && goes_with(nest, nest->order[first], nest->order[i])) out[count++] = nest->order[i];
  return count;
}

/* Operand `i` of each, in the lanes; the first one's in those left over, so that no other number takes a longer way. */
static LLVMValueRef operands(ax_nest *nest, const ax_ex *nodes, uint32_t count, int i, uint32_t lanes) {
  const ax_expr *exprs = nest->schedule->kernel->exprs;
  LLVMValueRef all = ax_cg_broadcast(&nest->cg, nest->values[exprs[nodes[0]].arg[i]], lanes);
  for (uint32_t k = 1; k < count; k++)
    all = LLVMBuildInsertElement(nest->cg.builder, all, nest->values[exprs[nodes[k]].arg[i]], ax_cg_i64(&nest->cg, k), "");
  return all;
}

bool ax_nest_emit_together(ax_nest *nest, uint32_t first) {
  const ax_ex node = nest->order[first];
  ax_ex nodes[most_lanes];
  LLVMValueRef args[2] = {NULL};
  if (!is_taken(nest->schedule, node)) return false;
  if (nest->values[node] != NULL) return true; /* with an earlier one */
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  const uint32_t lanes = nest->cg.vector_bytes / (expr->dtype == AX_F64 ? 8 : 4), count = find(nest, first, lanes, nodes);
  if (count < 2) return false;
  for (int i = 0; i < ax_scalar_arity(expr->op); i++) args[i] = operands(nest, nodes, count, i, lanes);
  LLVMValueRef all = ax_cg_scalar(&nest->cg, expr, nest->schedule->kernel->exprs[expr->arg[0]].dtype, args, lanes);
  for (uint32_t k = 0; k < count; k++)
    nest->values[nodes[k]] = LLVMBuildExtractElement(nest->cg.builder, all, ax_cg_i64(&nest->cg, k), "");
  return true;
}
