/* Narrow floats that are only moved, or of which the largest or the smallest is looked for, need no arithmetic in f32: their
   kernels take them as integers of as many bits, of which a register has more, and whose bits stay as they are. Floats of a byte, and
   integers of fewer bits, are so taken only where they are moved. */
#include "jit/nest/schedule.h"

#include "ir/program.h"

static ax_dtype word_of(ax_dtype dtype) { return ax_dtype_bytes(dtype) == 1 ? AX_U8 : AX_U16; }

static bool is_moved(ax_scalar op) { return op == AX_LEAF_LOAD || op == AX_LEAF_CONST || op == AX_SCALAR_SELECT; }

static bool computes(const ax_nest_schedule *s, ax_dtype dtype) {
  const ax_loop_kernel *kernel = s->kernel;
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_expr *expr = &kernel->exprs[id];
    if (!s->live[id]) continue;
    if (expr->dtype == dtype ? !is_moved(expr->op) : expr->dtype == word_of(dtype)) return true;
    for (int i = 0; expr->dtype != dtype && i < ax_scalar_arity(expr->op); i++)
      if (kernel->exprs[expr->arg[i]].dtype == dtype) return true;
  }
  return false;
}

static bool sums(const ax_loop_kernel *kernel, ax_dtype dtype) {
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const bool here = kernel->slots[store->slot].dtype == dtype,
               extreme = ax_dtype_bytes(dtype) == 2 && (store->reduce == AX_SCALAR_MAX || store->reduce == AX_SCALAR_MIN);
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
    if (kernel->exprs[id].dtype == dtype) kernel->exprs[id].dtype = word_of(dtype);
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if (kernel->slots[i].dtype == dtype) kernel->slots[i].dtype = word_of(dtype);
  s->kernel = kernel;
  s->bits_of = dtype;
  return AX_OK;
}

ax_status ax_nest_schedule_take_bits(ax_nest_schedule *s, ax_arena *arena) {
  for (int i = AX_NO_DTYPE + 1; i < AX_DTYPE_COUNT && s->bits_of == AX_NO_DTYPE; i++) {
    const ax_dtype dtype = (ax_dtype)i;
    if (!ax_is_narrow_float(dtype) && !ax_is_short_integer(dtype)) continue;
    if (has(s->kernel, dtype) && !has(s->kernel, word_of(dtype)) && !computes(s, dtype) && !sums(s->kernel, dtype))
      AX_TRY(take_bits(s, arena, dtype));
  }
  return AX_OK;
}
