/* Spells short sums out, where results are many short rows: the kernel that is left has no sum.

     y[r, i] = sum over j < 3 of a[i, j] x[r, j]      y[r, i] = a[i, 0] x[r, 0] + a[i, 1] x[r, 1] + a[i, 2] x[r, 2]

   So points are turned, colours mixed, small matrices multiplied: as a sum each number of a row would be made by itself, from
   memory that is stepped over row by row. Without one, registers take several rows at once (jit/emit/narrow.c), and fusion takes
   what comes before and after into the same kernel. Terms are added in the order in which a sum adds them. */
#include "plan/kernel_rewrite.h"
#include "plan/passes.h"

static bool is_worth(const ax_loop_kernel *k) {
  enum { most_terms = 8, most_nodes = 64, short_row = 16, least_results = 1024 };
  const uint32_t kept = k->rank - k->reduce_rank;
  if (k->reduce_rank == 0 || kept == 0 || k->store_count != 1) return false;
  const int64_t terms = ax_dims_elems(k->reduce_rank, k->dims + kept);
  return terms > 0 && terms <= most_terms && terms * k->expr_count <= most_nodes && k->dims[kept - 1] <= short_row &&
         ax_dims_elems(kept, k->dims) >= least_results;
}

static ax_status unroll_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    ax_loop_kernel *made;
    if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || !is_worth(op->kernel.kernel)) continue;
    const uint32_t kept = op->kernel.kernel->rank - op->kernel.kernel->reduce_rank;
    AX_TRY(ax_kernel_unroll(&plan->drafts, op->kernel.kernel, kept, INT64_MAX, &made));
    if (made != NULL) op->kernel.kernel = made;
  }
  return AX_OK;
}

ax_status ax_plan_unroll(ax_plan *plan) { return ax_blocks_visit(&plan->block, unroll_block, plan); }
