/* Questions of the passes fuse and rows about two kernels and the arrays that they touch: whether they may be one, and whether that
   saves anything. */
#ifndef AX_PLAN_FUSE_PAIRS_H
#define AX_PLAN_FUSE_PAIRS_H

#include "plan/plan.h"

/* Whether both touch an allocation of which each sees at least `least` elements. */
bool ax_kernels_share(const ax_plan *plan, const ax_bound *a, const ax_bound *b, int64_t least);
/* Whether two kernels over one index space, a first, can take turns element by element. Of what a writes, b may read only the
   element that a writes in the same step. b must write nothing that a reads or writes; but both may write columns of one array,
   if the columns differ. */
bool ax_kernels_agree(const ax_plan *plan, const ax_bound *a, const ax_bound *b);
/* Whether kernel b, whose only reader will take it in, should not join a. If it did, its result would be stored, and loaded by
   the reader; that pays only if a and b touch the same memory. If a is a reduction, they must share an array with at least an
   eighth as many elements as a has steps: a matrix that b makes of two vectors is better made by its reader. Otherwise they must
   touch the same bytes: kernels that look up rows of two tables by different columns of one array of numbers share nothing. */
bool ax_kernel_stays_apart(const ax_plan *plan, const ax_bound *a, const ax_bound *b);
/* Whether two reductions read much, and not the same. One after the other each goes along its own rows; together they would save nothing, and
   parts of an array that lie a power of two apart would put each other out of the first cache. */
bool ax_reductions_have_nothing_in_common(const ax_plan *plan, const ax_bound *a, const ax_bound *b);
/* Whether a kernel stores as much as no cache near a core holds. */
bool ax_kernel_makes_much(const ax_plan *plan, const ax_bound *kernel);
/* Whether kernel b loads what kernel a stores. */
bool ax_kernel_feeds(const ax_bound *a, const ax_bound *b);

#endif
