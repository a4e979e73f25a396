/* Results that no cache holds are stored past the caches. An ordinary store of a line first fetches it, only for it to be overwritten; that is a third
   of the memory traffic of y = x + 1.

   Not where the line is in a cache already, as it has just been read: what is overwritten in place. Nor in groups of rows (loop/rows.c), whose next
   member reads what is stored. A kernel may be at work elsewhere too, so this one is a copy. */
#include "loop/passes.h"

enum { more_than_caches = 32 << 20, few_parts = 8 };

static uint32_t root_of(const ax_plan *plan, const ax_bound *bound, uint32_t slot) { return plan->buffers[bound->buffers[slot]].root; }

static bool reads_what_it_stores(const ax_plan *plan, const ax_bound *bound) {
  const ax_loop_kernel *k = bound->kernel;
  for (uint32_t i = 0; i < k->expr_count; i++)
    if (k->exprs[i].op == AX_LEAF_LOAD && root_of(plan, bound, k->exprs[i].slot) == root_of(plan, bound, k->stores[0].slot)) return true;
  return false;
}

/* All of the array, or a part of which there are few others: what is put together from parts is stored by several kernels. */
static bool stores_much(const ax_plan *plan, const ax_bound *bound) {
  const ax_loop_kernel *k = bound->kernel;
  const ax_buffer *root = &plan->buffers[root_of(plan, bound, k->stores[0].slot)];
  double bytes = (double)ax_dtype_bytes(k->slots[k->stores[0].slot].dtype), whole = (double)ax_buffer_bytes(root);
  for (uint32_t d = 0; d < k->rank; d++) bytes *= (double)k->dims[d];
  return !root->updated && whole >= more_than_caches && bytes * few_parts >= whole;
}

static ax_status stream_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_bound *bound = &block->ops[i].kernel;
    if (block->ops[i].kind != AX_OP_KERNEL || bound->kernel->reduce_rank > 0 || bound->kernel->store_count != 1) continue;
    if (!stores_much(plan, bound) || reads_what_it_stores(plan, bound)) continue;
    ax_loop_kernel *copy = ax_arena_copy(&plan->arena, bound->kernel, sizeof *copy);
    if (copy == NULL) return ax_out_of_memory(sizeof *copy);
    copy->streams = true;
    bound->kernel = copy;
  }
  return AX_OK;
}

ax_status ax_plan_stream(ax_plan *plan) { return ax_blocks_visit(&plan->block, stream_block, plan); }
