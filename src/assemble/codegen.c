/* Machine code. Kernels, the members of groups of rows, fused loops, and the kernels by which exchanges combine are compiled
   together; then each instruction gets its code. */
#include "assemble/assembly.h"
#include "assemble/flat.h"
#include "assemble/moved.h"

static bool combines(const ax_instr *instr) {
  return instr->kind == AX_INSTR_PUSH && instr->push->exchange->combine != AX_SCALAR_NONE;
}

static bool widens(const ax_assembly *a, const ax_instr *instr) {
  const ax_exchange *x = instr->push->exchange;
  return a->plan->buffers[x->in].type.dtype != a->plan->buffers[x->out].type.dtype;
}

/* Kernels and fused loops to be compiled, and where their code goes. */
typedef struct wanted {
  const ax_loop_kernel **kernels;
  const ax_fused_loop **fused_loops;
  ax_kernel_code *code, *fused_loop_code;
  uint32_t *loops; /* by fused loop */
  uint32_t count, fused_loop_count;
} wanted;

static uint32_t row_members(const ax_instr *instr) { return instr->kind == AX_INSTR_ROWS ? instr->rows->rows->count : 0; }
static bool is_kernel(const ax_instr *rows, uint32_t k) { return rows->rows->rows->members[k].kind == AX_OP_KERNEL; }

static bool allocate_wanted(ax_assembly *a, wanted *w) {
  size_t most = 3 * (size_t)a->instr_count;
  for (uint32_t i = 0; i < a->instr_count; i++) most += row_members(&a->instrs[i]);
  w->kernels = ax_arena_alloc(&a->scratch, most * sizeof w->kernels[0]);
  w->code = ax_arena_alloc(&a->scratch, most * sizeof w->code[0]);
  w->fused_loops = ax_arena_alloc(&a->scratch, a->instr_count * sizeof w->fused_loops[0]);
  w->fused_loop_code = ax_arena_alloc(&a->scratch, a->instr_count * sizeof w->fused_loop_code[0]);
  w->loops = ax_arena_alloc(&a->scratch, a->instr_count * sizeof w->loops[0]);
  return w->kernels != NULL && w->code != NULL && w->fused_loops != NULL && w->fused_loop_code != NULL && w->loops != NULL;
}

/* Instructions inside a fused loop are never reached. */
static uint32_t after(const ax_instr *instr, uint32_t i) {
  return instr->kind == AX_INSTR_LOOP && instr->fused_loop != NULL ? instr->target : i + 1;
}

/* Returns the kernel that is compiled for this instruction, which many may share; NULL: no memory. */
static const ax_loop_kernel *shared_kernel(ax_assembly *a, ax_instr *instr, const ax_loop_kernel *kernel) {
  int64_t later[AX_MAX_SLOTS];
  bool moves = false;
  const ax_loop_kernel *shared = ax_kernel_flat(&a->scratch, kernel, &instr->kernel.scale);
  if (shared != kernel) return shared;
  shared = ax_kernel_moved(&a->scratch, kernel, later);
  for (uint32_t k = 0; shared != NULL && k < kernel->slot_count; k++) {
    instr->refs[k].offset += later[k];
    moves = moves || later[k] != 0;
  }
  if (!moves) return shared;
  instr->kernel.later = ax_arena_copy(&a->plan->arena, later, kernel->slot_count * sizeof later[0]);
  return instr->kernel.later != NULL ? shared : NULL;
}

static ax_status list_kernels(ax_assembly *a, wanted *w) {
  for (uint32_t i = 0; i < a->instr_count; i = after(&a->instrs[i], i)) {
    ax_instr *instr = &a->instrs[i];
    for (uint32_t k = 0; k < row_members(instr); k++)
      if (is_kernel(instr, k)) w->kernels[w->count++] = instr->rows->rows->members[k].kernel.kernel;
    if (instr->kind == AX_INSTR_KERNEL &&
        (w->kernels[w->count++] = shared_kernel(a, instr, a->ops[i]->kernel.kernel)) == NULL)
      return ax_out_of_memory(0);
    for (int first = 0; combines(instr) && first <= widens(a, instr); first++)
      if ((w->kernels[w->count++] = ax_combine_kernel(a, instr->push, first)) == NULL)
        return ax_out_of_memory(0);
    if (combines(instr) && instr->push->at_once && (w->kernels[w->count++] = ax_combine_all_kernel(a, instr->push)) == NULL)
      return ax_out_of_memory(0);
  }
  return AX_OK;
}

ax_status ax_instrs_codegen(ax_assembly *a) {
  wanted w = {0};
  if (!allocate_wanted(a, &w)) return ax_out_of_memory(a->instr_count * sizeof w.code[0]);
  AX_TRY(ax_find_fused_loops(a, w.fused_loops, w.loops, &w.fused_loop_count));
  AX_TRY(list_kernels(a, &w));
  if (w.count + w.fused_loop_count == 0) return AX_OK;
  AX_TRY(ax_jit_compile_all(a->jit, w.kernels, w.count, w.code, w.fused_loops, w.fused_loop_count,
                            w.fused_loop_code, &a->compiled->jit_use));
  for (uint32_t i = 0; i < w.fused_loop_count; i++) a->instrs[w.loops[i]].fused_loop->code = w.fused_loop_code[i];
  uint32_t count = 0;
  for (uint32_t i = 0; i < a->instr_count; i = after(&a->instrs[i], i)) {
    ax_instr *instr = &a->instrs[i];
    for (uint32_t k = 0; k < row_members(instr); k++) instr->rows->code[k] = is_kernel(instr, k) ? w.code[count++] : NULL;
    if (instr->kind == AX_INSTR_KERNEL) instr->kernel.code = w.code[count++];
    if (!combines(instr)) continue;
    instr->push->combine = w.code[count++];
    if (widens(a, instr)) instr->push->widen = w.code[count++];
    if (instr->push->at_once) instr->push->all = w.code[count++];
  }
  return AX_OK;
}
