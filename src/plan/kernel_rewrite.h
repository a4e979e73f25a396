/* Kernels made from kernels: the rewrites that fusion does once it has decided what to fuse.

   They do not look at a plan. A kernel comes with the buffer of each slot, and a rewrite only compares buffers and asks for
   views of them. Inputs are not changed; the result is a new kernel in `arena`. `out->kernel` NULL: there is no such kernel,
   because a position does not fit one ax_position, or it would have more than AX_MOST_SLOTS slots or AX_MOST_EXPRS nodes. The
   status is AX_OUT_OF_MEMORY or AX_OK. */
#ifndef AX_PLAN_KERNEL_REWRITE_H
#define AX_PLAN_KERNEL_REWRITE_H

#include "plan/kernel.h"

enum { AX_MOST_SLOTS = 24, AX_MOST_EXPRS = 160 }; /* of a kernel made here */

/* Makes a view: the memory of `buffer`, or its beginning, with other dimensions. AX_NONE: out of memory. */
typedef struct ax_views {
  uint32_t (*make)(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims);
  void *context;
} ax_views;

/* Replaces every load of the consumer's slot `slot` by the value that the producer stores with `store`, which must not reduce.
   The slot may have other dimensions than the stored array, and begin `offset` elements into it; the load's address then tells
   which step of the producer it needs (plan/index_map.h). The producer's loads may need views of their own. */
AX_MUST_USE ax_status ax_kernel_inline(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer,
                                       uint32_t slot, int64_t offset, const ax_views *views, ax_bound *out);
/* Joins two kernels over the same index space: at each point first's work, then second's. If second loads a buffer that first
   stores to, it gets the value from first; it must load the same element in the same step. */
AX_MUST_USE ax_status ax_kernel_merge(ax_arena *arena, const ax_bound *first, const ax_bound *second, ax_bound *out);
/* The kernel over other dimensions, with as many steps in the same order. It must not reduce. */
AX_MUST_USE ax_status ax_kernel_redimension(ax_arena *arena, const ax_bound *kernel, uint32_t rank, const int64_t *dims,
                                            const ax_views *views, ax_bound *out);
/* The steps of the kernel in which loop index `dim` is in begin .. begin + extent. It must not reduce. */
AX_MUST_USE ax_status ax_kernel_piece(ax_arena *arena, const ax_bound *kernel, uint32_t dim, int64_t begin, int64_t extent,
                                      ax_bound *out);
/* A kernel of the first `kept` dimensions, none of them reduced over, that does in each step all steps of the others, one after
   another, with the same slots. NULL: more than `most` of these, or none; sums of narrow floats, which are not rounded in each
   step; or what the rewrites above do not have. */
AX_MUST_USE ax_status ax_kernel_unroll(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t kept, int64_t most,
                                       ax_loop_kernel **out);
/* Without the stores for which dropped[i] is true (NULL: none), and without the nodes and slots that no remaining store needs. */
AX_MUST_USE ax_status ax_kernel_prune(ax_arena *arena, const ax_bound *kernel, const bool *dropped, ax_bound *out);
/* needed: by node. Marks the operands of a node; of all marked nodes, and so on. */
void ax_kernel_need(const ax_loop_kernel *kernel, ax_ex node, bool *needed);
void ax_kernel_needs(const ax_loop_kernel *kernel, bool *needed);
/* Whether pruning would change nothing. */
bool ax_kernel_is_pruned(const ax_loop_kernel *kernel);

#endif
