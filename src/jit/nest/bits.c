/* Narrow floats that are only moved, or of which the largest or the smallest is looked for, need no arithmetic in f32: their
   kernels take them as integers of 16 bits, of which a register has twice as many, and whose bits stay as they are. */
#include "jit/nest/schedule.h"

#include "ir/program.h"

static bool is_moved(ax_scalar op) { return op == AX_LEAF_LOAD || op == AX_LEAF_CONST || op == AX_SCALAR_SELECT; }

static bool computes(const ax_nest_schedule *s, ax_dtype dtype) {
  const ax_loop_kernel *kernel = s->kernel;
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_expr *expr = &kernel->exprs[id];
    if (!s->live[id]) continue;
    if (expr->dtype == dtype ? !is_moved(expr->op) : expr->dtype == AX_U16) return true;
    for (int i = 0; expr->dtype != dtype && i < ax_scalar_arity(expr->op); i++)
      if (kernel->exprs[expr->arg[i]].dtype == dtype) return true;
  }
  return false;
}

static bool sums(const ax_loop_kernel *kernel, ax_dtype dtype) {
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const bool here = kernel->slots[store->slot].dtype == dtype,
               extreme = store->reduce == AX_SCALAR_MAX || store->reduce == AX_SCALAR_MIN;
    if (here != (kernel->exprs[store->expr].dtype == dtype)) return true;
    if (here && store->reduce != AX_SCALAR_NONE && !extreme) return true;
  }
  return false;
}

static bool has(const ax_loop_kernel *kernel, ax_dtype dtype) {
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if (kernel->slots[i].dtype == dtype) return true;
  return false;
}

static ax_status take_bits(ax_nest_schedule *s, ax_arena *arena, ax_dtype dtype) {
  const ax_loop_kernel *from = s->kernel;
  ax_loop_kernel *kernel = ax_arena_copy(arena, from, sizeof *kernel);
  if (kernel == NULL) return ax_out_of_memory(sizeof *kernel);
  kernel->exprs = ax_arena_copy(arena, from->exprs, from->expr_count * sizeof from->exprs[0]);
  kernel->slots = ax_arena_copy(arena, from->slots, from->slot_count * sizeof from->slots[0]);
  if (kernel->exprs == NULL || kernel->slots == NULL) return ax_out_of_memory(from->expr_count * sizeof from->exprs[0]);
  for (ax_ex id = 0; id < kernel->expr_count; id++)
    if (kernel->exprs[id].dtype == dtype) kernel->exprs[id].dtype = AX_U16;
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if (kernel->slots[i].dtype == dtype) kernel->slots[i].dtype = AX_U16;
  s->kernel = kernel;
  s->bits_of = dtype;
  return AX_OK;
}

ax_status ax_nest_schedule_take_bits(ax_nest_schedule *s, ax_arena *arena) {
  static const ax_dtype narrow[] = {AX_BF16, AX_F16};
  for (uint32_t i = 0; i < AX_COUNT(narrow) && s->bits_of == AX_NO_DTYPE; i++)
    if (has(s->kernel, narrow[i]) && !has(s->kernel, AX_U16) && !computes(s, narrow[i]) && !sums(s->kernel, narrow[i]))
      AX_TRY(take_bits(s, arena, narrow[i]));
  return AX_OK;
}
