/* Values that are the same in all lanes: constants, scalars, what outer loops compute.

     y[i] = 0.5 * x[i] + 1        0.5 and 1 are put into all lanes of a register before the loop

   The code generator runs no pass that would take them out of the loop, and would load and spread them again for each vector: a
   loop of two operations took 1.2 to 1.5 times as long. A few values are treated so, which leaves registers for the loop. */
#include "jit/emit/nest.h"

/* Functions that are called need all registers for themselves. So do those in line, nearly; and roots count as functions, since
   Adam over arrays of 256 elements took a tenth longer with its constants spread. */
static bool has_functions(const ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->live[id] && ax_scalar_is_function(s->kernel->exprs[id].op)) return true;
  return false;
}

static uint32_t registers_left(const ax_nest_schedule *s) {
  if (s->shape == AX_NEST_NARROW || s->shape == AX_NEST_TRANSPOSE || s->lanes == 1 || has_functions(s)) return 0;
  return (s->vector_bytes == 64 ? 8 : s->vector_bytes == 32 ? 4 : 2) / s->unroll;
}

/* Whether vectors use a node that is no vector. Constants of integers stay constants: some operations do better by one. */
static bool can_spread(const ax_nest_schedule *s, ax_ex node) {
  const ax_expr *expr = &s->kernel->exprs[node];
  return s->live[node] && expr->dtype != AX_BOOL && (expr->op != AX_LEAF_CONST || ax_is_float(expr->dtype)) &&
         !ax_nest_schedule_depends(s, node, s->vector) && !ax_nest_schedule_depends(s, node, s->unrolled);
}

/* Given numbers are always spread: they are no constants that instructions could take from memory. Where they are more than
   registers hold, LLVM would keep them on the stack, spread, and take long to choose which (a quarter of the time for a chain of
   79 additions). With registers of 64 bytes a load that spreads them does as well: such a chain takes as long on Zen 4 and on
   Emerald Rapids. With fewer bytes there are more vectors for each, and the stack is better. */
static void spread_given(ax_nest *nest) {
  enum { most_held = 20 };
  const ax_nest_schedule *s = nest->schedule;
  uint32_t count = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    nest->is_spread[id] = s->live[id] && s->lanes > 1 && s->kernel->exprs[id].op == AX_LEAF_GIVEN;
    count += nest->is_spread[id];
  }
  if (count <= most_held || s->vector_bytes < 64) return;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_dtype dtype = s->kernel->exprs[id].dtype;
    nest->is_fetched[id] = nest->is_spread[id] && (dtype == AX_F32 || dtype == AX_F64);
    nest->is_spread[id] = nest->is_spread[id] && !nest->is_fetched[id];
  }
}

void ax_nest_find_spread(ax_nest *nest) {
  const ax_nest_schedule *s = nest->schedule;
  uint32_t left = registers_left(s);
  spread_given(nest);
  for (ax_ex user = 0; user < s->kernel->expr_count; user++) {
    const ax_expr *expr = &s->kernel->exprs[user];
    if (!s->live[user] || !ax_nest_schedule_depends(s, user, s->vector) || expr->op >= AX_LEAF_CONST) continue;
    for (int i = 0; i < ax_scalar_arity(expr->op) && left > 0; i++) {
      if (nest->is_spread[expr->arg[i]] || !can_spread(s, expr->arg[i])) continue;
      nest->is_spread[expr->arg[i]] = true;
      left--;
    }
  }
}

/* Frozen, a constant is a value that a register keeps. */
void ax_nest_spread(ax_nest *nest, ax_ex node, LLVMValueRef value) {
  LLVMValueRef all = ax_cg_broadcast(&nest->cg, value, nest->schedule->lanes);
  nest->spread_values[node] = LLVMIsConstant(all) ? LLVMBuildFreeze(nest->cg.builder, all, "") : all;
}
