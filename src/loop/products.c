/* A product that is only transposed afterwards is computed transposed: (A B)' = B' A'. Gradients of weights come like this. */
#include "loop/passes.h"

static bool is_plain(const ax_plan *plan, uint32_t buffer, const uint32_t *reads, const uint32_t *writes) {
  return plan->buffers[buffer].kind == AX_BUFFER_TEMP && plan->buffers[buffer].root == buffer && reads[buffer] == 1 &&
         writes[buffer] == 1;
}

static bool is_dense_matrix(const ax_plan *plan, const ax_gemm *gemm) {
  const ax_type *type = &plan->buffers[gemm->c].type;
  return gemm->batch_rank == 0 && !gemm->accumulate && gemm->c_offset == 0 && gemm->ldc == gemm->n && type->rank == 2 &&
         type->dims[0] == gemm->m && type->dims[1] == gemm->n;
}

/* to[i, j] = from[j, i] */
static bool is_transpose(const ax_at *at) {
  return at[0].dim == 1 && at[1].dim == 0 && at[0].coef == 1 && at[1].coef == 1 && at[0].offset == 0 && at[1].offset == 0 &&
         at[0].dynamic == AX_NONE && at[1].dynamic == AX_NONE;
}

static ax_gemm turned(const ax_gemm *gemm, uint32_t to) {
  ax_gemm turn = *gemm;
  turn.transpose_a = !gemm->transpose_b;
  turn.transpose_b = !gemm->transpose_a;
  turn.m = gemm->n;
  turn.n = gemm->m;
  turn.lda = gemm->ldb;
  turn.ldb = gemm->lda;
  turn.ldc = gemm->m;
  turn.a = gemm->b;
  turn.b = gemm->a;
  turn.a_offset = gemm->b_offset;
  turn.b_offset = gemm->a_offset;
  turn.c = to;
  return turn;
}

static void turn_block(ax_plan *plan, ax_block *block, const uint32_t *reads, const uint32_t *writes) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) turn_block(plan, ax_op_block(op, k), reads, writes);
    if (op->kind != AX_OP_GEMM || !is_dense_matrix(plan, &op->gemm) || !is_plain(plan, op->gemm.c, reads, writes)) continue;
    for (uint32_t j = i + 1; j < block->count; j++) {
      uint32_t to, from;
      const ax_at *at;
      if (!ax_op_is_copy(&block->ops[j], &to, &from, &at) || from != op->gemm.c) continue;
      const ax_buffer *target = &plan->buffers[to];
      if (is_transpose(at) && target->root == to && target->kind == AX_BUFFER_TEMP && writes[to] == 1 &&
          target->axes == plan->buffers[from].axes) {
        op->gemm = turned(&op->gemm, to);
        ax_block_remove(block, j);
      }
      break;
    }
  }
}

ax_status ax_plan_turn_products(ax_plan *plan) {
  uint32_t *reads = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof reads[0]);
  uint32_t *writes = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof writes[0]);
  if (reads == NULL || writes == NULL) return ax_out_of_memory(plan->buffer_count * sizeof reads[0]);
  ax_plan_count(plan, reads, writes);
  turn_block(plan, &plan->block, reads, writes);
  return AX_OK;
}
