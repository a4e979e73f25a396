/* What optimisers and executables need of leaves besides the public functions. */
#ifndef AX_TREE_LEAVES_H
#define AX_TREE_LEAVES_H

#include "axle/optimizer.h"
#include "base/base.h"

/* The sum over the devices that hold different parts of x: along the axes over which `like` varies, which x does too at most. */
ax_value ax_sum_of_parts(ax_value x, ax_value like);
/* The sum of a leaf's squares on this device; bf16 and f16 in f32. */
ax_value ax_sum_of_squares(ax_value x);
/* The body of leaves to leaves: counts that are not given are the treedefs'. AX_INVALID_ARGUMENT, in the name of `who`: others, a treedef
   that is missing. */
AX_MUST_USE ax_status ax_tree_body(const char *who, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn *body);
/* Whether a schedule is one number, which then need not be rounded to f32 for leaves of f64. */
bool ax_schedule_is_constant(const ax_schedule *schedule);

#endif
