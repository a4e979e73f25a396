/* Contraction: x y + z with one rounding, where the caller asks for it (ax_compile_options.contraction).

     e2 = mul e0 e1
     e3 = add e2 e4 1        the product e2, the first operand, is not rounded: code has a fused multiplication and addition

   It is decided on the graph of a kernel, when no pass changes kernels any more, and by the graph alone: neither registers, nor
   ranges, nor threads have a say in it. A product with a second use is rounded, since it would have to be computed twice. Of two
   products that are added the first is contracted. Kernels are shared by operations, so those that change are copied. */
#include "plan/contract.h"

#include <string.h>

#include "base/choice.h"
#include "plan/passes.h"

/* --- What is asked for --- */

static const ax_choice choice = {"contraction", "AXLE_CONTRACTION", {"exact", "fused"}};

bool ax_contraction_find(const char *word, ax_contraction *out) {
  int value;
  const bool found = ax_choice_find(&choice, word, &value);
  if (found) *out = (ax_contraction)value;
  return found;
}

ax_status ax_contraction_fused(ax_contraction asked, bool *fused) {
  int value;
  AX_TRY(ax_choice_decide(&choice, (int)asked, &value));
  *fused = value == AX_CONTRACTION_FUSED;
  return AX_OK;
}

/* --- One kernel --- */

int ax_expr_contracted(const ax_expr *expr) {
  const bool sums = expr->op == AX_SCALAR_ADD || expr->op == AX_SCALAR_SUB;
  return sums ? (int)expr->imm - 1 : -1;
}

static bool is_sum(const ax_expr *expr) {
  return (expr->op == AX_SCALAR_ADD || expr->op == AX_SCALAR_SUB) && (expr->dtype == AX_F32 || expr->dtype == AX_F64);
}

/* How often each node is read: by other nodes, by positions, and by stores. */
static void count_uses(const ax_loop_kernel *k, uint32_t *uses) {
  for (ax_ex id = 0; id < k->expr_count; id++) {
    const ax_expr *expr = &k->exprs[id];
    for (int i = 0; i < ax_scalar_arity(expr->op); i++) uses[expr->arg[i]]++;
    for (uint32_t d = 0; d < ax_expr_positions(k, expr); d++)
      if (expr->at[d].dynamic != AX_NONE) uses[expr->at[d].dynamic]++;
  }
  for (uint32_t s = 0; s < k->store_count; s++) uses[k->stores[s].expr]++;
}

ax_status ax_kernel_contract(ax_loop_kernel *kernel, bool *any) {
  uint32_t *uses = ax_calloc((size_t)kernel->expr_count + 1, sizeof *uses);
  *any = false;
  if (uses == NULL) return ax_out_of_memory(kernel->expr_count * sizeof *uses);
  count_uses(kernel, uses);
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    ax_expr *expr = &kernel->exprs[id];
    expr->imm = is_sum(expr) ? 0 : expr->imm;
    for (int i = 1; is_sum(expr) && i >= 0; i--)
      if (kernel->exprs[expr->arg[i]].op == AX_SCALAR_MUL && uses[expr->arg[i]] == 1) expr->imm = i + 1;
    *any = *any || (is_sum(expr) && expr->imm != 0);
  }
  ax_free(uses);
  return AX_OK;
}

/* --- The pass --- */

static ax_status contract_kernel(ax_plan *plan, ax_bound *bound) {
  ax_loop_kernel *copy = ax_arena_copy(&plan->arena, bound->kernel, sizeof *copy);
  if (copy != NULL) copy->exprs = ax_arena_copy(&plan->arena, copy->exprs, copy->expr_count * sizeof copy->exprs[0]);
  if (copy == NULL || copy->exprs == NULL) return ax_out_of_memory(sizeof *copy);
  bool any;
  AX_TRY(ax_kernel_contract(copy, &any));
  if (any) bound->kernel = copy;
  return AX_OK;
}

static bool has_sums(const ax_loop_kernel *kernel) {
  for (ax_ex id = 0; id < kernel->expr_count; id++)
    if (is_sum(&kernel->exprs[id])) return true;
  return false;
}

static ax_status contract_op(ax_plan *plan, ax_op *op) {
  return op->kind == AX_OP_KERNEL && has_sums(op->kernel.kernel) ? contract_kernel(plan, &op->kernel) : AX_OK;
}

static ax_status contract_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    AX_TRY(contract_op(plan, op));
    for (uint32_t m = 0; op->kind == AX_OP_ROWS && m < op->rows->count; m++) AX_TRY(contract_op(plan, &op->rows->members[m]));
  }
  return AX_OK;
}

ax_status ax_plan_contract(ax_plan *plan) {
  return plan->options.contract ? ax_blocks_visit(&plan->block, contract_block, plan) : AX_OK;
}
