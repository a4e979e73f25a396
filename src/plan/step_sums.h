/* Values that the steps of a loop only add to: what the steps add, their shares, may be computed side by side.

     loop 0, 100 times                                  for i0<100:  b2[i0] = sin(b1[i0])
       b0 = b0 + sin(b1[t])                    ->       loop 0, 100 times
       t = t + 1                                          b0 = b0 + b2[t]

   So floats are added in the order of the steps. Where no order changes the result, as of integers and maxima, the shares are
   reduced. */
#ifndef AX_PLAN_STEP_SUMS_H
#define AX_PLAN_STEP_SUMS_H

#include "plan/blocks.h"

/* Operations are those of the body, by number. A sum is stored directly, or through a temporary that another store brings to
   it; its share is computed where it is joined, or by an operation before:

     s = s + f(t)                 c = s + f(t);  s = c                 f = reduce x[t];  s = s + f
     through: s                   through: c; copy: `s = c`            through: f; made_before */
typedef struct ax_step_sum {
  uint32_t op, store;        /* the store of what there was, joined with the share */
  ax_ex share;               /* a node of that kernel: what the step has to add .. */
  ax_ex where;               /* .. if this selection keeps it, and nothing if it keeps what there was; AX_NONE: always */
  ax_scalar join;            /* how it goes to what there was */
  ax_scalar reduce;          /* how shares are added up before that; AX_SCALAR_NONE: they are not, but go there in their order */
  uint32_t through;          /* the allocation that has the shares of all steps in the end */
  bool made_before;          /* it has the share, and the store above goes */
  uint32_t copy, copy_store; /* an operation and its store, which goes too; AX_NONE: there is none */
} ax_step_sum;

/* Whether the body, of kernels alone, only adds to the allocation, and reads it for nothing else. reads, writes:
   ax_plan_count's. */
bool ax_step_sum_find(const ax_plan *plan, const ax_block *body, uint32_t allocation, const uint32_t *reads, const uint32_t *writes,
                      ax_step_sum *out);
/* Makes the kernel one that stores what its step has to add, in place of the sum. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_step_sum_share(ax_arena *arena, ax_bound *kernel, const ax_step_sum *sum);
/* Whether the shares of so many steps are worth computing side by side. They must take more than adding them does, and than a
   step takes that fills vectors by itself. */
bool ax_step_sum_is_worth(const ax_plan *plan, const ax_block *body, int64_t trips, uint32_t allocation, const ax_step_sum *sum);

enum { AX_STEP_SUM_OPS = AX_BLOCKED_OPS + 1 };
/* Of a sum that is reduced: the operations that add up the shares of all steps, steps x (the sum's dimensions of more than one
   element), and join them with the sum; they are like `like`, a kernel. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_step_sum_reduce(ax_plan *plan, const ax_step_sum *sum, const ax_op *like, uint32_t allocation,
                                         uint32_t shares, ax_op out[AX_STEP_SUM_OPS], uint32_t *count);
/* Of a sum that is not: the kernel that joins the share of a step of the loop with the sum. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_step_sum_step(ax_plan *plan, const ax_step_sum *sum, uint32_t allocation, uint32_t shares, uint32_t loop,
                                       ax_bound *out);

#endif
