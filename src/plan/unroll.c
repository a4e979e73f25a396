/* Spells short sums out, where results are many short rows: the kernel that is left has no sum.

     y[r, i] = sum over j < 3 of a[i, j] x[r, j]      y[r, i] = a[i, 0] x[r, 0] + a[i, 1] x[r, 1] + a[i, 2] x[r, 2]

   So points are turned, colours mixed, small matrices multiplied: as a sum each number of a row would be made by itself, from
   memory that is stepped over row by row. Without one, registers take several rows at once (jit/emit/narrow.c), and fusion takes
   what comes before and after into the same kernel. Terms are added in the order in which a sum adds them. */
#include "plan/fuse_worth.h"
#include "plan/kernel_rewrite.h"
#include "plan/passes.h"

/* Whether results are short rows by themselves, of less than a vector; not of bytes, whose shuffles take longer. */
static bool makes_short_rows(const ax_loop_kernel *k, int64_t terms) {
  enum { most_terms = 8, short_row = 12, least_bytes = 4 };
  const int64_t row = k->dims[k->rank - k->reduce_rank - 1];
  return terms <= most_terms && row > 1 && row <= short_row && ax_dtype_bytes(k->slots[k->stores[0].slot].dtype) >= least_bytes;
}

/* Functions that are called: columns would be put aside before each. */
static bool calls(const ax_loop_kernel *k) {
  for (ax_ex i = 0; i < k->expr_count; i++) {
    const ax_scalar op = k->exprs[i].op;
    if (ax_scalar_is_function(op) && op != AX_SCALAR_SQRT && op != AX_SCALAR_RSQRT && op != AX_SCALAR_EXP) return true;
  }
  return false;
}

static bool stores_to(const ax_plan *plan, const ax_op *op, uint32_t allocation) {
  for (uint32_t i = 0; op->kind == AX_OP_KERNEL && i < op->kernel.kernel->store_count; i++)
    if (plan->buffers[op->kernel.buffers[op->kernel.kernel->stores[i].slot]].allocation == allocation) return true;
  return false;
}

/* The operation that has made, shortly before, what the kernel at `at` of the block loads from a slot: fusion takes it in. AX_NONE: there is
   none. */
static uint32_t maker_of(const ax_plan *plan, const ax_block *block, uint32_t at, uint32_t slot) {
  enum { window = 24 };
  const uint32_t allocation = plan->buffers[block->ops[at].kernel.buffers[slot]].allocation;
  for (uint32_t i = at, left = window; i-- > 0 && left > 0; left--)
    if (stores_to(plan, &block->ops[i], allocation)) return i;
  return AX_NONE;
}

/* Whether a load goes along dimension `row` + 1 of its kernel in rows, one after another for each step of `row`; `*moves`: along it at all. */
static bool is_by_rows(const ax_loop_kernel *k, const ax_expr *load, int row, bool *moves) {
  const uint32_t rank = k->slots[load->slot].rank;
  bool by_row = false;
  *moves = false;
  for (uint32_t d = 0; d < rank; d++) {
    *moves = *moves || load->at[d].dim == row + 1;
    by_row = by_row || load->at[d].dim == row;
    if (load->at[d].dynamic != AX_NONE) return false;
  }
  return !*moves || (by_row && load->at[rank - 1].dim == row + 1 && load->at[rank - 1].coef == 1);
}

/* Whether what the kernel at `at` sums, and the kernels before it that make that element by element, take rows of their own for each result:
   not the same rows again and again, as distances of all pairs do. */
static bool takes_rows(const ax_plan *plan, const ax_block *block, uint32_t at, int row, uint32_t depth) {
  enum { most_depth = 6 };
  const ax_loop_kernel *k = block->ops[at].kernel.kernel;
  if (depth > most_depth || calls(k)) return false;
  for (ax_ex i = 0; i < k->expr_count; i++) {
    bool moves;
    if (k->exprs[i].op != AX_LEAF_LOAD) continue;
    if (!is_by_rows(k, &k->exprs[i], row, &moves)) return false;
    const uint32_t maker = moves ? maker_of(plan, block, at, k->exprs[i].slot) : AX_NONE;
    if (maker == AX_NONE) continue;
    if (!ax_kernels_same_space(block->ops[maker].kernel.kernel, k) || !takes_rows(plan, block, maker, row, depth + 1)) return false;
  }
  return true;
}

/* Whether each result is the sum of a short row, or of several that lie in the same way; not of what is in memory as it is, of which
   reductions load whole lines (jit/emit/columns.c). */
static bool takes_short_rows(const ax_plan *plan, const ax_block *block, uint32_t at, int64_t terms) {
  enum { most_terms = 6 };
  const ax_loop_kernel *k = block->ops[at].kernel.kernel;
  if (k->reduce_rank != 1 || terms > most_terms) return false;
  if (k->expr_count == 1 && maker_of(plan, block, at, k->exprs[0].slot) == AX_NONE) return false;
  return takes_rows(plan, block, at, (int)k->rank - 2, 0);
}

static bool is_worth(const ax_plan *plan, const ax_block *block, uint32_t at) {
  enum { most_nodes = 64, least_results = 1024 };
  const ax_loop_kernel *k = block->ops[at].kernel.kernel;
  const uint32_t kept = k->rank - k->reduce_rank;
  if (k->reduce_rank == 0 || kept == 0 || k->store_count != 1 || ax_dims_elems(kept, k->dims) < least_results) return false;
  const int64_t terms = ax_dims_elems(k->reduce_rank, k->dims + kept);
  return terms > 0 && terms * k->expr_count <= most_nodes &&
         (makes_short_rows(k, terms) || takes_short_rows(plan, block, at, terms));
}

static ax_status unroll_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    ax_loop_kernel *made;
    if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || !is_worth(plan, block, i)) continue;
    const uint32_t kept = op->kernel.kernel->rank - op->kernel.kernel->reduce_rank;
    AX_TRY(ax_kernel_unroll(&plan->drafts, op->kernel.kernel, kept, INT64_MAX, &made));
    if (made != NULL) op->kernel.kernel = made;
  }
  return AX_OK;
}

ax_status ax_plan_unroll(ax_plan *plan) { return ax_blocks_visit(&plan->block, unroll_block, plan); }
