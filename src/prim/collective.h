/* What the collective primitives share. A collective's parameters begin with its axes. */
#ifndef AX_PRIM_COLLECTIVE_H
#define AX_PRIM_COLLECTIVE_H

#include "prim/rules.h"

/* The set of params->axes, whether the operand varies over all checked ones of them, and the group's size. */
AX_MUST_USE ax_status ax_collective_axes(const ax_infer_args *args, const ax_axes *names, ax_axis_set *set, int64_t *size);
/* Refuses an operand that is invariant over a checked axis it must vary over. */
AX_MUST_USE ax_status ax_require_varying(const ax_type *operand, ax_axis_set set, const ax_mesh *axes);
/* x made to vary over `axes` as a collective wants it, and the names parsed; false and the trace failed otherwise. */
bool ax_collective_operand(const ax_prim *prim, ax_value *x, const char *axes, ax_axes *out);
/* The names without `axis`; true when it was among them. */
bool ax_axes_without(const ax_axes *names, const char *axis, ax_axes *out);
/* A part of an exchange that is one dense run of `elems`. */
void ax_exchange_whole(ax_exchange *exchange, int64_t elems);
/* Start, then done at once. */
AX_MUST_USE ax_status ax_lower_exchange(ax_lower *lower, const ax_exchange *exchange);
/* vary rules: the results do not / do differ along the axes of the collective, otherwise as the operand. */
void ax_vary_drop(const ax_vary_args *args);
void ax_vary_add(const ax_vary_args *args);
/* A collective whose operand can be batched anywhere without changing its parameters. */

#endif
