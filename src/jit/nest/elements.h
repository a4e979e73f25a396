/* Places of a few elements that a fused loop holds element by element (fused_loop.h): the state of a pendulum, a quaternion, a matrix
   of 2 x 2. As vectors they would be read and written in parts, which a processor waits for after it wrote them in other parts:

     y = y + h * [y[1], -sin(y[0])]       y0, y1 = y0 + h * y1, y1 - h * sin(y0)

   Kernels that touch them do their steps one after another, in one step (ax_kernel_unroll). */
#ifndef AX_JIT_NEST_ELEMENTS_H
#define AX_JIT_NEST_ELEMENTS_H

#include "jit/nest/fused_loop.h"

/* A place of which some operand moves with a loop is not held, since its registers have numbers. In: the places that are in memory as
   it is, and the steps that are done often. Out: the places held so, and a fused loop that is the same but for the kernels of steps
   that touch them, which are other ones in `changed`. */
AX_MUST_USE ax_status ax_fused_loop_by_elements(ax_arena *arena, const ax_fused_loop *fused_loop, const bool *in_memory,
                                                const bool *often, bool *held, bool *changed, ax_fused_loop **out);

#endif
