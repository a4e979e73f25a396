/* A kernel of a loop's body, done for all steps of the loop at once: the step is its first dimension.

     in step t:  for i0<33                              for i0<100 i1<33
       e0:s32 = load s0[]          (t: a counter)         e0:f32 = load s0[i0, i1]
       e1:f32 = load s1[e0, i0]                    ->     e1:f32 = exp e0
       s2[i0] = exp e1                                    s1[i0, i1] = e1

   Like the rewrites of kernel_rewrite.h, it does not look at a plan. */
#ifndef AX_PLAN_OVER_STEPS_H
#define AX_PLAN_OVER_STEPS_H

#include "plan/kernel_rewrite.h"

/* What a slot of the kernel is to the loop. */
typedef enum ax_step_use {
  AX_STEP_SAME,     /* the same array in each step */
  AX_STEP_OWN,      /* an array of each step: `buffer` has the step as its first dimension, then those of more than one element */
  AX_STEP_OWN_BACK, /* likewise, the last step's first */
  AX_STEP_NUMBER,   /* a scalar that is first + each * step, an integer */
  AX_STEP_CONSTANT  /* a scalar that is the same number in each step, the bits of which are `first` */
} ax_step_use;
typedef struct ax_step_slot {
  ax_step_use use;
  uint32_t buffer;
  int64_t first, each;
} ax_step_slot;

/* slots: by slot of the kernel. dropped: by store, those that are not made; NULL: all are. The result's nodes and stores are all there, in
   their order, but for those. out->kernel NULL: there is no such kernel, since a store's place is not one number in each step, or for want
   of room, as in kernel_rewrite.h. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_kernel_over_steps(ax_arena *arena, const ax_bound *kernel, int64_t steps, const ax_step_slot *slots,
                                           const bool *dropped, const ax_views *views, ax_bound *out);
/* Whether a value that such a kernel computes is a number or a constant by its step alone: then *out says which, but for the buffer. */
bool ax_over_steps_known(const ax_loop_kernel *kernel, ax_ex node, ax_step_slot *out);

#endif
