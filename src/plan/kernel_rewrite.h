/* Kernels made from kernels: what fusion does once it has decided what to fuse.

   Nothing here looks at a plan. A kernel comes with the buffer that each slot stands for, and buffers are only told apart, or seen
   under other dimensions. What comes in is left as it is; what comes out is a new kernel in `arena`. `out->kernel` is NULL when
   there is none: a position that one ax_position cannot express, more slots than AX_MOST_SLOTS or more nodes than AX_MOST_EXPRS.
   The status is AX_OUT_OF_MEMORY or AX_OK. */
#ifndef AX_PLAN_KERNEL_REWRITE_H
#define AX_PLAN_KERNEL_REWRITE_H

#include "plan/kernel.h"

enum { AX_MOST_SLOTS = 24, AX_MOST_EXPRS = 160 }; /* of a kernel made here */

/* Makes a buffer that is the same memory as `buffer`, or the beginning of it, with other dimensions; AX_NONE: no memory. */
typedef struct ax_views {
  uint32_t (*make)(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims);
  void *context;
} ax_views;

/* `consumer` with every load of its slot `slot` replaced by what the producer stores by `store`: an element, not reduced, of the
   producer's own index space. The slot may have other dimensions than what is stored, and begin `offset` elements into it: which
   steps of the producer a load is of then follows from where it lies (plan/index_map.h). What they load may need views of its
   own. */
AX_MUST_USE ax_status ax_kernel_inline(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer,
                                       uint32_t slot, int64_t offset, const ax_views *views, ax_bound *out);
/* Both kernels, over the same index space, as one that does first's work and then second's at each point. What second loads of a
   buffer that first stores to, it takes from first: it must do so at the very element. */
AX_MUST_USE ax_status ax_kernel_merge(ax_arena *arena, const ax_bound *first, const ax_bound *second, ax_bound *out);
/* A kernel that does not reduce, over other dimensions with as many steps in the same order. */
AX_MUST_USE ax_status ax_kernel_redimension(ax_arena *arena, const ax_bound *kernel, uint32_t rank, const int64_t *dims,
                                            const ax_views *views, ax_bound *out);
/* The steps of a kernel that does not reduce in which loop index `dim` is `begin` or one of the `extent` from there on. */
AX_MUST_USE ax_status ax_kernel_piece(ax_arena *arena, const ax_bound *kernel, uint32_t dim, int64_t begin, int64_t extent,
                                      ax_bound *out);
/* Without the stores for which dropped[i] (NULL: none), the nodes nobody uses then, and the slots nobody touches. */
AX_MUST_USE ax_status ax_kernel_prune(ax_arena *arena, const ax_bound *kernel, const bool *dropped, ax_bound *out);
/* needed: by node; marks what those that are marked are made of. */
void ax_kernel_needs(const ax_loop_kernel *kernel, bool *needed);
/* Whether pruning would change nothing. */
bool ax_kernel_is_pruned(const ax_loop_kernel *kernel);

#endif
