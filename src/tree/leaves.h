/* Functions on leaves for optimisers, besides the public ones. */
#ifndef AX_TREE_LEAVES_H
#define AX_TREE_LEAVES_H

#include "axle/optimizer.h"

/* The axes along which devices hold different parts of x: those that x varies over, and the unchecked axes that its spec names,
   since types say nothing about unchecked axes. spec NULL: none. */
ax_axis_set ax_parts_axes(ax_value x, const char *spec);
/* The sum of x over devices along these axes. */
ax_value ax_sum_of_parts(ax_value x, ax_axis_set axes);
/* ax_global_norm of leaves that differ along axes[i]; in the name of `who`. */
ax_value ax_norm_of_parts(const char *who, uint32_t count, const ax_value *leaves, const ax_axis_set *axes);
/* The sum of a leaf's squares on this device; bf16 and f16 in f32. */
ax_value ax_sum_of_squares(ax_value x);
/* Says whether a schedule is one number, which need not be rounded to f32 for leaves of f64. */
bool ax_schedule_is_constant(const ax_schedule *schedule);

#endif
