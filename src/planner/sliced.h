/* Loops as other systems write them: a counter, and arrays that go from step to step unchanged, of which each step takes the slice that the
   counter says. Here a scan slices its operands itself, so that it is seen which arrays have a layer in each slice, and gradients are
   stacked.

     w: f32[8,4], h, 0 = scan { (w, h, i) -> (w, h + w[i], i + 1) }      becomes      h = scan over w { (h, u: f32[4]) -> h + u } */
#ifndef AX_PLANNER_SLICED_H
#define AX_PLANNER_SLICED_H

#include "ir/program.h"

/* The program with such loops at its top rewritten, and calls of functions in their steps inlined; it computes the same. `*out` is owned by
   the caller. */
AX_MUST_USE ax_status ax_program_slice_loops(const ax_program *program, ax_program **out);

#endif
