/* A product that is only transposed afterwards is computed transposed: (A B)' = B' A'. Gradients of weights come like this. */
#include <string.h>

#include "plan/passes.h"

static bool is_plain(const ax_plan *plan, uint32_t buffer, const uint32_t *reads, const uint32_t *writes) {
  return plan->buffers[buffer].allocation == buffer && ax_is_passed_on(plan, reads, writes, buffer);
}

static bool is_dense_matrix(const ax_plan *plan, const ax_gemm *gemm) {
  const ax_type *type = &plan->buffers[gemm->c].type;
  return gemm->batch_rank == 0 && !gemm->accumulate && gemm->c_offset == 0 && gemm->ldc == gemm->n && type->rank == 2 &&
         type->dims[0] == gemm->m && type->dims[1] == gemm->n;
}

/* to[i, j] = from[j, i] */
static bool is_transpose(const ax_position *at) {
  return at[0].dim == 1 && at[1].dim == 0 && at[0].coef == 1 && at[1].coef == 1 && at[0].offset == 0 && at[1].offset == 0 &&
         at[0].dynamic == AX_NONE && at[1].dynamic == AX_NONE;
}

static ax_gemm transposed(const ax_gemm *gemm, uint32_t to) {
  ax_gemm made = *gemm;
  made.transpose_a = !gemm->transpose_b;
  made.transpose_b = !gemm->transpose_a;
  made.m = gemm->n;
  made.n = gemm->m;
  made.lda = gemm->ldb;
  made.ldb = gemm->lda;
  made.ldc = gemm->m;
  made.a = gemm->b;
  made.b = gemm->a;
  made.a_offset = gemm->b_offset;
  made.b_offset = gemm->a_offset;
  memcpy(made.a_term, gemm->b_term, sizeof made.a_term);
  memcpy(made.b_term, gemm->a_term, sizeof made.b_term);
  made.c = to;
  return made;
}

typedef struct transposer {
  ax_plan *plan;
  uint32_t *reads, *writes; /* by allocation: see ax_plan_count */
  uint32_t *copied;         /* by buffer: 1 + the position, in the block looked at last, of an operation that copies it; or 0 */
} transposer;

/* The position of the operation of the block that copies `from`; AX_NONE. What another block left in the table is found out. */
static uint32_t copy_of(const transposer *t, const ax_block *block, uint32_t from, uint32_t *to, const ax_position **at) {
  uint32_t position = t->copied[from], source;
  if (position == 0 || position > block->count) return AX_NONE;
  bool copies = ax_op_is_copy(&block->ops[position - 1], to, &source, at) && source == from;
  return copies ? position - 1 : AX_NONE;
}

static void transpose_product(const transposer *t, ax_block *block, ax_op *op) {
  const ax_plan *plan = t->plan;
  uint32_t from = op->gemm->c, to;
  const ax_position *at;
  if (!is_dense_matrix(plan, op->gemm) || !is_plain(plan, from, t->reads, t->writes)) return;
  uint32_t position = copy_of(t, block, from, &to, &at);
  if (position == AX_NONE || !is_transpose(at)) return;
  const ax_buffer *target = &plan->buffers[to];
  if (target->allocation != to || target->kind != AX_BUFFER_TEMP || t->writes[to] != 1 || target->axes != plan->buffers[from].axes)
    return;
  *op->gemm = transposed(op->gemm, to);
  block->ops[position].kind = AX_OP_NONE;
}

static ax_status transpose_block(void *context, ax_block *block, bool is_body) {
  const transposer *t = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    uint32_t to, from;
    const ax_position *at;
    if (ax_op_is_copy(&block->ops[i], &to, &from, &at)) t->copied[from] = i + 1;
  }
  for (uint32_t i = 0; i < block->count; i++)
    if (block->ops[i].kind == AX_OP_GEMM) transpose_product(t, block, &block->ops[i]);
  ax_block_sweep(block);
  return AX_OK;
}

ax_status ax_plan_products(ax_plan *plan) {
  ax_arena scratch = {0};
  size_t bytes = plan->buffer_count * sizeof(uint32_t);
  transposer t = {plan, ax_arena_alloc(&scratch, bytes), ax_arena_alloc(&scratch, bytes), ax_arena_alloc(&scratch, bytes)};
  bool there = t.reads != NULL && t.writes != NULL && t.copied != NULL;
  if (there) ax_plan_count(plan, t.reads, t.writes);
  ax_status status = there ? ax_blocks_visit(&plan->block, transpose_block, &t) : ax_out_of_memory(bytes);
  ax_arena_deinit(&scratch);
  return status;
}
