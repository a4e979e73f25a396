/* Questions of the fusion pass (fuse.c) about kernels alone: whether fusing them pays, not whether it is allowed. */
#ifndef AX_PLAN_FUSE_WORTH_H
#define AX_PLAN_FUSE_WORTH_H

#include "plan/plan.h"

/* Whether computing a stored element costs no more than a load. It may be a load and nothing else, a little work on indices, or
   anything on constants, which the compiler computes. */
bool ax_store_is_cheap(const ax_loop_kernel *kernel, const ax_store *store);
/* The loads of what takes next to no time when it is computed again, in kernels that wait for memory: one and one sum, product or
   sign, or two and up to three of these, all in the order in which it is stored. 0: it takes more. */
uint32_t ax_store_light_loads(const ax_loop_kernel *kernel, const ax_store *store);
/* Whether all stores are cheap. Reductions are not, because a reader cannot compute one in place of a load. */
bool ax_kernel_is_cheap(const ax_loop_kernel *kernel);
/* Whether a store copies elements that lie apart (a column of a matrix, say), and the consumer walks along the copy, which it
   sees as `slot`, many times; or short rows that lie apart, whatever way the consumer walks. Then the copy pays: the elements are brought
   together once. */
bool ax_copy_gathers(const ax_loop_kernel *producer, const ax_store *store, const ax_loop_kernel *consumer, uint32_t slot);
/* Whether the producer takes rows of a few elements from places that are computed, and the consumer computes functions of each element. Rows
   elsewhere are computed one by one, and fill registers less than half; brought together, they are whole registers. */
bool ax_rows_fill_little(const ax_loop_kernel *producer, const ax_store *store, const ax_loop_kernel *consumer);
/* Whether no two nodes load the same element of the slot: there is one, or along a dimension each is at a place of its own, as with the columns of
   indices. */
bool ax_kernel_loads_apart(const ax_loop_kernel *kernel, uint32_t slot);
/* Whether a node is a condition on indices alone; whether some load from the slot has one. */
bool ax_kernel_is_guard(const ax_loop_kernel *kernel, ax_ex node);
bool ax_kernel_guards(const ax_loop_kernel *kernel, uint32_t slot);
/* Whether any load has one, as those of a kernel that pads, or that chooses among parts. */
bool ax_kernel_chooses(const ax_loop_kernel *kernel);
/* How many nodes load from places that are computed, others for the elements of a row, as from tables: one element by one. */
uint32_t ax_kernel_looks_up(const ax_loop_kernel *kernel);

/* Whether both kernels walk memory in the same order. If one goes along rows of an array and the other along columns of another,
   a joint walk goes against one of them. */
bool ax_kernels_walk_alike(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* Whether a kernel goes along the rows of one array and across those of another, as transposes do. */
bool ax_kernel_turns(const ax_loop_kernel *kernel);
int64_t ax_kernel_turned_elems(const ax_loop_kernel *kernel); /* how many elements, of the smallest of these arrays; 0: it does not */
/* Whether both kernels make columns of one array of a few columns, whose rows one that makes them all would write whole. */
bool ax_bounds_fill_rows(const ax_bound *a, const ax_bound *b);
/* Whether one kernel reduces long rows to few results, which is done in blocks (plan/blocks.h), and the other stores each
   element, which blocks do not allow. */
bool ax_kernels_need_blocks(const ax_loop_kernel *a, const ax_loop_kernel *b);
bool ax_kernels_same_space(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* Whether both together touch no more buffers than a kernel may. */
bool ax_bounds_fit(const ax_bound *a, const ax_bound *b);

#endif
