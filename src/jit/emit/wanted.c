/* Look-ups that some lanes alone want. In (mask and table[index]) or select(mask, table[index], other) an element is of no use where the
   mask is false. A processor gathers lane by lane, whether it is wanted or not; so where no lane of a vector wants any, nothing is read.
   Of lists that are padded, and of masks that seldom hold, few vectors are left:

     bad:   all lanes of table[index], 30 cycles                 and mask
     good:  if any lane of the mask: the same; otherwise zeros   and mask

   A mask that only says whether the index lies inside of the table holds nearly always; it is not asked. */
#include "jit/emit/nest.h"

enum { unused = UINT32_MAX - 1 }; /* beside AX_NONE: no use was seen yet */

/* What a use asks for: nothing (AX_NONE), or a condition. */
static void note(ax_ex *wanted, ax_ex node, ax_ex condition) {
  if (wanted[node] == unused) wanted[node] = condition;
  else if (wanted[node] != condition) wanted[node] = AX_NONE;
}

/* The operands of an operation, whose own value is wanted where `own` holds. */
static void note_operands(const ax_loop_kernel *kernel, ax_ex *wanted, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  const ax_ex own = wanted[node];
  const int arity = ax_scalar_arity(expr->op);
  for (int i = 0; i < arity; i++) {
    ax_ex condition = own;
    if (expr->op == AX_SCALAR_SELECT && i == 1) condition = expr->arg[0];
    if (expr->op == AX_SCALAR_AND && expr->dtype == AX_BOOL && expr->arg[1 - i] < expr->arg[i]) condition = expr->arg[1 - i];
    note(wanted, expr->arg[i], condition);
  }
}

static void note_starts(const ax_loop_kernel *kernel, ax_ex *wanted, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  const ax_slot *slot = &kernel->slots[expr->slot];
  if (expr->arg[0] != AX_NONE) note(wanted, expr->arg[0], AX_NONE);
  for (uint32_t d = 0; d < slot->rank; d++)
    if (expr->at[d].dynamic != AX_NONE) note(wanted, expr->at[d].dynamic, wanted[node]);
}

static bool compares(const ax_loop_kernel *kernel, ax_ex node) {
  const ax_scalar op = kernel->exprs[node].op;
  return op == AX_SCALAR_LT || op == AX_SCALAR_LE || op == AX_SCALAR_GT || op == AX_SCALAR_GE;
}

/* Two comparisons, of an index with the ends of a table; or one, of the index without a sign (plan/kernel_known.c). */
static bool checks_bounds(const ax_loop_kernel *kernel, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->op == AX_SCALAR_LE && kernel->exprs[expr->arg[0]].op == AX_SCALAR_BITCAST) return true;
  return expr->op == AX_SCALAR_AND && compares(kernel, expr->arg[0]) && compares(kernel, expr->arg[1]);
}

/* Whether the condition is there, a truth value for each lane, when the look-up is done. */
static bool is_there(const ax_nest_schedule *s, ax_ex condition, ax_ex node) {
  return condition < node && s->live[condition] && !ax_is_guard(s, condition) &&
         ax_nest_schedule_depends(s, condition, s->vector) &&
         ax_nest_schedule_level(s->deps[condition]) <= ax_nest_schedule_level(s->deps[node]);
}

static bool enters_levels(const ax_nest_schedule *s) {
  return s->shape == AX_NEST_LANES || s->shape == AX_NEST_BLOCK || s->shape == AX_NEST_STRIP || s->shape == AX_NEST_TILE;
}

void ax_nest_find_wanted(ax_nest *nest) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_loop_kernel *kernel = s->kernel;
  ax_ex *wanted = nest->wanted;
  for (ax_ex node = 0; node < kernel->expr_count; node++) wanted[node] = unused;
  for (uint32_t i = 0; i < kernel->store_count; i++) note(wanted, kernel->stores[i].expr, AX_NONE);
  for (ax_ex node = kernel->expr_count; node-- > 0;) {
    if (!s->live[node] || wanted[node] == unused) continue;
    if (kernel->exprs[node].op < AX_SCALAR_COUNT) note_operands(kernel, wanted, node);
    else if (kernel->exprs[node].op == AX_LEAF_LOAD) note_starts(kernel, wanted, node);
  }
  for (ax_ex node = 0; node < kernel->expr_count; node++) {
    const bool looks_up = kernel->exprs[node].op == AX_LEAF_LOAD && s->live[node] && ax_access_is_moved(&s->accesses[node], s->vector);
    if (!looks_up || !enters_levels(s) || s->lanes < 2 || wanted[node] >= unused || !is_there(s, wanted[node], node) ||
        checks_bounds(kernel, wanted[node]))
      wanted[node] = AX_NONE;
  }
}
