/* Guards: conditions on loop indices (INSIDE nodes) under which loads are done. A condition changes at most twice along its
   loop. In most of a kernel's steps no condition differs from its usual value. So there is a box of *settled* steps, in which
   the code knows of each condition whether it holds.

        i1:   0 1                    n-1
     i0 0     g g g g g g g g g g g g g
        1     g . . . . . . . . . . . g         . settled: whole vectors, each loaded without a mask or not at all
              g . . . . . . . . . . . g         g not settled: the conditions are tested, and loads have masks
      n-1     g g g g g g g g g g g g g

   In a row inside the box, the settled steps go from settled_first to before settled_end along the vector loop. The box belongs
   to the kernel: along each loop it is the longest stretch in which no condition changes. */
#include "jit/emit/nest.h"

enum { most_changes = 32 }; /* along one loop; with more, nothing is settled */

static bool is_live_guard(const ax_nest_schedule *schedule, ax_ex node) {
  return schedule->live[node] && schedule->kernel->exprs[node].op == AX_LEAF_INSIDE;
}

static int loop_of(const ax_nest_schedule *schedule, ax_ex node) {
  int dim = schedule->kernel->exprs[node].at->dim;
  return dim < 0 ? -1 : schedule->loop_of_dim[dim];
}

/* `places`, in order, and one more; places outside of the loop are no change. */
static bool add_change(int64_t *places, uint32_t *count, int64_t place, int64_t extent) {
  uint32_t i;
  if (place <= 0 || place >= extent) return true;
  if (*count == most_changes) return false;
  for (i = (*count)++; i > 0 && places[i - 1] > place; i--) places[i] = places[i - 1];
  places[i] = place;
  return true;
}

static bool longest_stretch(const ax_nest_schedule *schedule, uint32_t loop, int64_t *first, int64_t *end) {
  int64_t places[most_changes + 2], extent = schedule->loops[loop].extent;
  uint32_t count = 0;
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++) {
    if (!is_live_guard(schedule, node) || loop_of(schedule, node) != (int)loop) continue;
    const ax_stretch *holds = &schedule->stretches[node];
    if (!add_change(places, &count, holds->first, extent) || !add_change(places, &count, holds->end, extent)) return false;
  }
  places[count] = extent;
  *first = 0;
  *end = places[0];
  for (uint32_t i = 0; i < count; i++)
    if (places[i + 1] - places[i] > *end - *first) {
      *first = places[i];
      *end = places[i + 1];
    }
  return true;
}

bool ax_nest_find_settled(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  int64_t first[AX_MAX_LOOPS], end[AX_MAX_LOOPS];
  bool any = false;
  for (uint32_t l = 0; l < schedule->loop_count; l++)
    if (!longest_stretch(schedule, l, &first[l], &end[l])) return false;
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++) {
    if (!is_live_guard(schedule, node)) continue;
    int loop = loop_of(schedule, node);
    const int64_t index = loop < 0 ? 0 : first[loop];
    nest->holds[node] = schedule->stretches[node].first <= index && index < schedule->stretches[node].end;
    any = true;
  }
  nest->settled_first = first[schedule->vector];
  nest->settled_end = end[schedule->vector];
  return any;
}

bool ax_nest_has_guards(const ax_nest *nest) {
  for (ax_ex node = 0; node < nest->schedule->kernel->expr_count; node++)
    if (is_live_guard(nest->schedule, node)) return true;
  return false;
}

void ax_nest_settled_rows(const ax_nest *nest, int64_t *first, int64_t *end) {
  if (!longest_stretch(nest->schedule, nest->schedule->outer, first, end)) *first = *end = 0;
}

/* Whether conditions on the loops before `end`, but for the vector loop, are as in settled steps. */
static LLVMValueRef settled_before(ax_nest *nest, uint32_t end) {
  const ax_nest_schedule *schedule = nest->schedule;
  LLVMValueRef all = LLVMConstInt(LLVMInt1TypeInContext(nest->cg.context), 1, false);
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++) {
    const int loop = is_live_guard(schedule, node) ? loop_of(schedule, node) : -1;
    if (loop < 0 || loop >= (int)end || loop == (int)schedule->vector) continue;
    LLVMValueRef here = ax_nest_value(nest, node, 0, 1);
    if (!nest->holds[node]) here = LLVMBuildNot(nest->cg.builder, here, "");
    all = LLVMBuildAnd(nest->cg.builder, all, here, "");
  }
  return all;
}

LLVMValueRef ax_nest_row_settled(ax_nest *nest) { return settled_before(nest, nest->schedule->loop_count); }
LLVMValueRef ax_nest_outer_settled(ax_nest *nest) { return settled_before(nest, nest->schedule->outer); }

/* Conditions on the vector loop are known of settled steps; all others of the whole row. In a block of rows that are settled,
   those on rows and on the loops around them are. */
ax_guard_state ax_nest_known(const ax_nest *nest, ax_ex node, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_expr *expr = &schedule->kernel->exprs[node];
  if (!nest->row_settled && !nest->narrow) return AX_KNOWN_NOT;
  if (expr->op == AX_LEAF_INSIDE) {
    const int loop = loop_of(schedule, node);
    const bool known =
        nest->narrow ? loop <= (int)schedule->outer : loop != (int)schedule->vector || (nest->settled >> instance & 1) != 0;
    return !known ? AX_KNOWN_NOT : nest->holds[node] ? AX_KNOWN_TRUE : AX_KNOWN_FALSE;
  }
  if (expr->op != AX_SCALAR_AND || expr->dtype != AX_BOOL) return AX_KNOWN_NOT;
  ax_guard_state a = ax_nest_known(nest, expr->arg[0], instance), b = ax_nest_known(nest, expr->arg[1], instance);
  if (a == AX_KNOWN_FALSE || b == AX_KNOWN_FALSE) return AX_KNOWN_FALSE;
  return a == AX_KNOWN_TRUE && b == AX_KNOWN_TRUE ? AX_KNOWN_TRUE : AX_KNOWN_NOT;
}

/* 32 bits do where the loop is not longer: an unsigned comparison finds what comes before the stretch too. */
LLVMValueRef ax_nest_guard(ax_nest *nest, ax_ex node, LLVMValueRef index, uint32_t lanes) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_codegen *cg = &nest->cg;
  const ax_stretch holds = schedule->stretches[node];
  int loop = loop_of(schedule, node);
  bool near = loop < 0 || schedule->loops[loop].extent < INT32_MAX / 2;
  uint32_t bits = near ? 32 : 64;
  LLVMValueRef at = LLVMBuildSub(cg->builder, index, ax_cg_i64(cg, holds.first), "");
  if (near) at = LLVMBuildTrunc(cg->builder, at, ax_cg_int(cg, 32, 1), "");
  at = ax_cg_broadcast(cg, at, lanes);
  if (lanes > 1) at = LLVMBuildAdd(cg->builder, at, ax_cg_iota(cg, bits, lanes, 1), "");
  LLVMValueRef count = ax_cg_broadcast(cg, LLVMConstInt(ax_cg_int(cg, bits, 1), (uint64_t)(holds.end - holds.first), false), lanes);
  return LLVMBuildICmp(cg->builder, LLVMIntULT, at, count, "");
}
