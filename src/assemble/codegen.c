/* Machine code. Kernels, the members of groups of rows, fused loops, and the kernels by which exchanges combine are compiled
   together; then each instruction gets its code. */
#include <stdlib.h>
#include <string.h>

#include "assemble/assembly.h"
#include "assemble/flat.h"
#include "assemble/given.h"
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

/* --- Numbers given --- */

/* Kernels of which fewer than these differ in numbers alone keep them: a number that stands in the code takes no register. */
enum { least_alike = 4 };

typedef struct candidate {
  uint64_t shared, own; /* hashes: of the kernel that is given its numbers, and of the kernel that has them */
  ax_instr *instr;
  uint32_t at; /* in wanted.kernels */
} candidate;

static int by_hashes(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->shared != b->shared) return a->shared < b->shared ? -1 : 1;
  if (a->own != b->own) return a->own < b->own ? -1 : 1;
  return a->at < b->at ? -1 : a->at > b->at;
}

/* Hashes the candidate's kernel, and keeps the candidate, as all[*count], if the kernel has numbers that could be given. */
static ax_status keep_candidate(const wanted *w, candidate c, candidate *all, uint32_t *count) {
  ax_arena scratch = {0};
  uint64_t bits[AX_MAX_GIVEN];
  uint32_t numbers;
  const ax_loop_kernel *kernel = w->kernels[c.at], *given = ax_kernel_given(&scratch, kernel, bits, &numbers);
  if (given != NULL && given != kernel) {
    c.shared = ax_kernel_hash(given);
    c.own = ax_kernel_hash(kernel);
    all[(*count)++] = c;
  }
  ax_arena_deinit(&scratch);
  return given != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status give(ax_assembly *a, wanted *w, const candidate *c) {
  uint64_t bits[AX_MAX_GIVEN];
  uint32_t count;
  const ax_loop_kernel *kernel = ax_kernel_given(&a->scratch, w->kernels[c->at], bits, &count);
  ax_given_numbers *given = ax_arena_alloc(&a->plan->arena, sizeof *given + count * sizeof bits[0]);
  if (kernel == NULL || given == NULL) return ax_out_of_memory(sizeof *given);
  given->count = count;
  memcpy(given->bits, bits, count * sizeof bits[0]);
  c->instr->kernel.given = given;
  w->kernels[c->at] = kernel;
  return AX_OK;
}

/* Gives the kernels of each group that differ in numbers alone. If two hashes are equal by chance, kernels are given numbers that
   need not be. To hash a kernel means to copy it, so nothing is hashed where no group can be large enough. */
static ax_status give_alike(ax_assembly *a, wanted *w, candidate *all, uint32_t listed) {
  uint32_t count = 0;
  if (listed < least_alike) return AX_OK;
  for (uint32_t i = 0; i < listed; i++) AX_TRY(keep_candidate(w, all[i], all, &count));
  qsort(all, count, sizeof all[0], by_hashes);
  for (uint32_t first = 0, end; first < count; first = end) {
    uint32_t alike = 1;
    for (end = first + 1; end < count && all[end].shared == all[first].shared; end++) alike += all[end].own != all[end - 1].own;
    for (uint32_t i = first; alike >= least_alike && i < end; i++) AX_TRY(give(a, w, &all[i]));
  }
  return AX_OK;
}

static ax_status list_kernels(ax_assembly *a, wanted *w, candidate *candidates, uint32_t *candidate_count) {
  for (uint32_t i = 0; i < a->instr_count; i = after(&a->instrs[i], i)) {
    ax_instr *instr = &a->instrs[i];
    for (uint32_t k = 0; k < row_members(instr); k++)
      if (is_kernel(instr, k)) w->kernels[w->count++] = instr->rows->rows->members[k].kernel.kernel;
    if (instr->kind == AX_INSTR_KERNEL) {
      candidates[(*candidate_count)++] = (candidate){.instr = instr, .at = w->count};
      if ((w->kernels[w->count++] = shared_kernel(a, instr, a->ops[i]->kernel.kernel)) == NULL) return ax_out_of_memory(0);
    }
    for (int first = 0; combines(instr) && first <= widens(a, instr); first++)
      if ((w->kernels[w->count++] = ax_combine_kernel(a, instr->push, first)) == NULL)
        return ax_out_of_memory(0);
    if (combines(instr) && instr->push->at_once && (w->kernels[w->count++] = ax_combine_all_kernel(a, instr->push)) == NULL)
      return ax_out_of_memory(0);
  }
  return AX_OK;
}

static ax_status list_all(ax_assembly *a, wanted *w) {
  uint32_t count = 0;
  candidate *candidates = ax_arena_alloc(&a->scratch, (a->instr_count + (size_t)1) * sizeof candidates[0]);
  if (candidates == NULL) return ax_out_of_memory(a->instr_count * sizeof candidates[0]);
  AX_TRY(list_kernels(a, w, candidates, &count));
  return give_alike(a, w, candidates, count);
}

ax_status ax_instrs_codegen(ax_assembly *a) {
  wanted w = {0};
  if (!allocate_wanted(a, &w)) return ax_out_of_memory(a->instr_count * sizeof w.code[0]);
  AX_TRY(ax_find_fused_loops(a, w.fused_loops, w.loops, &w.fused_loop_count));
  AX_TRY(list_all(a, &w));
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
