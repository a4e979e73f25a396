/* From a program to a plan, and the passes over plans. */
#ifndef AX_LOOP_PASSES_H
#define AX_LOOP_PASSES_H

#include "loop/plan.h"

/* The plan of what each device of the program's axes runs. Input i is stored, and result k wanted, once for each coordinate along
   in_axes[i] and out_axes[k]; NULL: once. `reference`: every LOCAL primitive by its eval rule. */
AX_MUST_USE ax_status ax_plan_create(ax_program *program, const ax_axis_set *in_axes, const ax_axis_set *out_axes, bool reference,
                                     ax_plan **out);
/* The passes below, in this order. */
AX_MUST_USE ax_status ax_plan_optimise(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_turn_products(ax_plan *plan); /* loop/products.c */
AX_MUST_USE ax_status ax_plan_schedule(ax_plan *plan);      /* loop/schedule.c */
AX_MUST_USE ax_status ax_plan_update_in_place(ax_plan *plan); /* loop/updates.c */
AX_MUST_USE ax_status ax_plan_fuse(ax_plan *plan);          /* loop/fuse.c */
AX_MUST_USE ax_status ax_plan_cut(ax_plan *plan);           /* loop/cut.c */

#endif
