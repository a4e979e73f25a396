/* Results that no cache holds are stored past the caches. An ordinary store first fetches its cache line, only to overwrite it;
   that is a third of the memory traffic of y = x + 1.

   Two kinds are stored as usual, because the line is in a cache already or should stay there: arrays that are overwritten in
   place, and allocations that the next member of a group of rows reads (plan/rows.c). Other operations may use the same kernel,
   so the pass changes a copy. */
#include "machine/caches.h"
#include "plan/fuse_worth.h"
#include "plan/passes.h"

enum { few_parts = 8 };

static uint32_t allocation_of(const ax_plan *plan, const ax_bound *bound, uint32_t slot) {
  return plan->buffers[bound->buffers[slot]].allocation;
}

typedef struct touching {
  const ax_plan *plan;
  uint32_t allocation, count;
} touching;

static void count_read(void *context, uint32_t buffer, bool writes) {
  touching *t = context;
  t->count += !writes && t->plan->buffers[buffer].allocation == t->allocation;
}

/* Whether the kernel stores a large array, or a large share of one; several kernels store an array that is put together from
   parts. `times`: how often the kernel is done. */
static bool stores_much(const ax_plan *plan, const ax_bound *bound, int64_t times) {
  const ax_loop_kernel *k = bound->kernel;
  const ax_buffer *allocation = &plan->buffers[allocation_of(plan, bound, k->stores[0].slot)];
  double bytes = (double)ax_dtype_bytes(k->slots[k->stores[0].slot].dtype) * (double)times,
         whole = (double)ax_buffer_bytes(allocation);
  const int64_t least = ax_kernel_turns(k) ? ax_caches_here()->streamed_turned : ax_caches_here()->streamed;
  for (uint32_t d = 0; d < k->rank; d++) bytes *= (double)k->dims[d];
  return !allocation->updated && whole >= (double)least && bytes * few_parts >= whole;
}

/* `op`: the kernel's operation, or the group that it is a member of. Nothing in `op` may read the stored allocation; other members
   may write other parts of it. */
static ax_status stream(ax_plan *plan, const ax_op *op, ax_bound *bound, int64_t times) {
  if (bound->kernel->reduce_rank > 0 || bound->kernel->store_count != 1 || !stores_much(plan, bound, times)) return AX_OK;
  touching t = {.plan = plan, .allocation = allocation_of(plan, bound, bound->kernel->stores[0].slot)};
  ax_op_visit(op, count_read, &t);
  if (t.count != 0) return AX_OK;
  ax_loop_kernel *copy = ax_arena_copy(&plan->arena, bound->kernel, sizeof *copy);
  if (copy == NULL) return ax_out_of_memory(sizeof *copy);
  copy->streams = true;
  bound->kernel = copy;
  return AX_OK;
}

static bool moves(const ax_loop_kernel *k) { return k->exprs[k->stores[0].expr].op == AX_LEAF_LOAD; }

/* In a group the operands of rows are in a cache. Narrow floats take longer to compute than to store, so streaming them would
   only wait for memory, unless they are only moved. */
static ax_status stream_group(ax_plan *plan, ax_op *op) {
  enum { least_bytes = 4 };
  const ax_rows_slot *slots = op->rows->slots;
  for (uint32_t m = 0; m < op->rows->count; m++) {
    ax_op *member = &op->rows->members[m];
    const bool is_kernel = member->kind == AX_OP_KERNEL;
    const uint32_t slot = is_kernel ? member->kernel.kernel->stores[0].slot : 0;
    const bool local = slots[slot].row_bytes != 0; /* only a block of its rows is ever held */
    slots += ax_op_slots(member);
    if (!is_kernel || local) continue;
    const ax_loop_kernel *k = member->kernel.kernel;
    if (moves(k) || ax_dtype_bytes(k->slots[slot].dtype) >= least_bytes) AX_TRY(stream(plan, op, &member->kernel, op->rows->outer));
  }
  return AX_OK;
}

static ax_status stream_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    if (op->kind == AX_OP_KERNEL) AX_TRY(stream(plan, op, &op->kernel, 1));
    if (op->kind == AX_OP_ROWS) AX_TRY(stream_group(plan, op));
  }
  return AX_OK;
}

ax_status ax_plan_stream(ax_plan *plan) { return ax_blocks_visit(&plan->block, stream_block, plan); }
