/* Kernels made from kernels, remembered: fusing equal layers, steps or parameters is computed for the first of them and looked
   up for the others.

   A pool holds each kernel once, however many operations use it; kernels in it are not changed. The result of a rewrite
   (kernel_rewrite.h) depends only on the kernels and on which of their slots share a buffer, and is remembered. If a rewrite
   takes other views of buffers, which only the plan knows, it is computed anew each time. Kernels that no operation uses are
   freed when the pool has become large; until then they may be asked for again. */
#ifndef AX_PLAN_REWRITES_H
#define AX_PLAN_REWRITES_H

#include "ir/memo.h"
#include "plan/kernel_rewrite.h"

typedef struct ax_pooled_kernel {
  ax_loop_kernel *kernel;
  ax_arena own;      /* of a kernel made here */
  size_t bytes;      /* of it */
  uint32_t uses;
  ax_loop_kernel *kept;   /* its copy for good, once there is one */
} ax_pooled_kernel;

typedef struct ax_kernel_pool { /* zero to start */
  ax_memo memo;
  ax_arena scratch; /* of one rewrite */
  ax_pooled_kernel **all;
  uint32_t count, capacity;
  size_t bytes, most_bytes;
} ax_kernel_pool;

void ax_kernel_pool_deinit(ax_kernel_pool *pool);
/* The one that equals `kernel`, which outlives the pool: one use more. NULL: no memory. */
ax_pooled_kernel *ax_kernel_pool_find(ax_kernel_pool *pool, ax_loop_kernel *kernel);
void ax_kernel_pool_release(ax_pooled_kernel *pooled); /* one use less; NULL is allowed */

/* The result of a rewrite, counted as one use, and the buffers of its slots. `pooled` NULL: there is none. */
typedef struct ax_rewritten {
  ax_pooled_kernel *pooled;
  uint32_t buffers[AX_MOST_SLOTS];
} ax_rewritten;
/* As those of kernel_rewrite.h. Kernels are of the pool; `store` is the producer's by number; `dropped` has AX_MAX_SLOTS entries
   at most. */
AX_MUST_USE ax_status ax_pool_inline(ax_kernel_pool *pool, const ax_bound *producer, uint32_t store, const ax_bound *consumer,
                                     uint32_t slot, int64_t offset, const ax_views *views, ax_rewritten *out);
AX_MUST_USE ax_status ax_pool_merge(ax_kernel_pool *pool, const ax_bound *first, const ax_bound *second, ax_rewritten *out);
AX_MUST_USE ax_status ax_pool_redimension(ax_kernel_pool *pool, const ax_bound *kernel, uint32_t rank, const int64_t *dims,
                                          const ax_views *views, ax_rewritten *out);
AX_MUST_USE ax_status ax_pool_prune(ax_kernel_pool *pool, const ax_bound *kernel, const bool *dropped, ax_rewritten *out);

#endif
