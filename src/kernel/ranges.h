/* Between which numbers the integers of a kernel's body and index maps are, as far as that follows from the grid, from the lengths of loops
   and from constants (ranges.c): so it is known which blocks and slices are there whatever the data. */
#ifndef AX_KERNEL_RANGES_H
#define AX_KERNEL_RANGES_H

#include "ir/memo.h"
#include "kernel/kernel.h"
#include "prim/intervals.h"

typedef struct ax_ranges {
  ax_interval grid[AX_MAX_RANK]; /* of the point's number along each dimension */
  uint32_t rank;
  ax_memo memo; /* what is known of each program */
} ax_ranges;
/* Of all points of the grid. */
void ax_ranges_init(ax_ranges *ranges, const ax_dims *grid);

/* Goes over a program of the kernel whose first inputs are the numbers of the grid, if `map`, or over a body. out: by result; of any but
   integers without meaning. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_ranges_find(ax_ranges *ranges, const ax_program *program, bool map, ax_interval *out);
/* A value of such a program, wherever it is called. */
ax_interval ax_ranges_of(ax_ranges *ranges, const ax_program *program, uint32_t value);
/* The one program of a branch (AX_RUNS_ONE) that is ever taken; AX_NONE: that is not known. */
uint32_t ax_ranges_branch(ax_ranges *ranges, const ax_program *program, const ax_eqn *eqn);
/* Whether equation e of such a program makes a view that may leave what it is a view of. */
bool ax_ranges_is_late(ax_ranges *ranges, const ax_program *program, uint32_t e);
void ax_ranges_deinit(ax_ranges *ranges);

#endif
