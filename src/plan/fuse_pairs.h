/* Questions of the passes fuse and rows about two kernels and the arrays that they touch: whether they may be one, and whether that
   saves anything. */
#ifndef AX_PLAN_FUSE_PAIRS_H
#define AX_PLAN_FUSE_PAIRS_H

#include "plan/plan.h"

/* Whether both touch an allocation of which each sees at least `least` elements. */
bool ax_kernels_share(const ax_plan *plan, const ax_bound *a, const ax_bound *b, int64_t least);
/* Whether two kernels over one index space, a first, can take turns element by element: b reads what a writes only at the very element,
   and writes nothing that a reads or writes, but other columns of an array that both put together. */
bool ax_kernels_agree(const ax_plan *plan, const ax_bound *a, const ax_bound *b);
/* Whether kernel b, whose only reader will take it in, should not join a. Its result would be stored beside a's and loaded by the
   reader, which saves nothing unless they share an array: with a reduction of an eighth of its steps (b may make a matrix of
   vectors, added to another matrix), else any element (b may look up rows of another table, at numbers beside a's). */
bool ax_kernel_stays_apart(const ax_plan *plan, const ax_bound *a, const ax_bound *b);
/* Whether a kernel stores as much as no cache near a core holds. */
bool ax_kernel_makes_much(const ax_plan *plan, const ax_bound *kernel);
/* Whether kernel b loads what kernel a stores. */
bool ax_kernel_feeds(const ax_bound *a, const ax_bound *b);

#endif
