/* What optimisers need of leaves besides the public functions. */
#ifndef AX_TREE_LEAVES_H
#define AX_TREE_LEAVES_H

#include "axle/optimizer.h"

/* The sum over the devices that hold different parts of x: along the axes over which `like` varies, which x does too at most. */
ax_value ax_sum_of_parts(ax_value x, ax_value like);
/* The sum of a leaf's squares on this device; bf16 and f16 in f32. */
ax_value ax_sum_of_squares(ax_value x);
/* Whether a schedule is one number, which then need not be rounded to f32 for leaves of f64. */
bool ax_schedule_is_constant(const ax_schedule *schedule);

#endif
