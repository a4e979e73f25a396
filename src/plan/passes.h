/* From a program to a plan, and the passes over plans. */
#ifndef AX_PLAN_PASSES_H
#define AX_PLAN_PASSES_H

#include "plan/plan.h"

/* The plan of what each device of the program's axes runs. Input i is stored, and result k wanted, once for each coordinate along
   in_axes[i] and out_axes[k]; NULL: along the axes over which they vary or are unreduced. options NULL: all 0. */
AX_MUST_USE ax_status ax_plan_create(ax_program *program, const ax_axis_set *in_axes, const ax_axis_set *out_axes,
                                     const ax_plan_options *options, ax_plan **out);
/* The passes, in their order. Each changes the plan it is given; that of a program is made for one executable. */
typedef struct ax_plan_pass {
  const char *name;
  ax_status (*run)(ax_plan *plan);
} ax_plan_pass;
extern const ax_plan_pass ax_plan_passes[];
extern const uint32_t ax_plan_pass_count;
/* All of them, or up to the one named `last` when there is one; in debug builds the verifier follows each. *found says
   whether there was one of that name; found may be NULL. */
AX_MUST_USE ax_status ax_plan_optimise(ax_plan *plan, const char *last, bool *found);

AX_MUST_USE ax_status ax_plan_transpose_products(ax_plan *plan);   /* plan/products.c */
AX_MUST_USE ax_status ax_plan_order(ax_plan *plan);        /* plan/order.c */
AX_MUST_USE ax_status ax_plan_scatter(ax_plan *plan);         /* plan/scatter.c */
AX_MUST_USE ax_status ax_plan_update_in_place(ax_plan *plan); /* plan/updates.c */
AX_MUST_USE ax_status ax_plan_recompute(ax_plan *plan);       /* plan/recompute.c */
AX_MUST_USE ax_status ax_plan_take_apart(ax_plan *plan);      /* plan/pieces.c */
AX_MUST_USE ax_status ax_plan_fuse(ax_plan *plan);            /* plan/fuse.c */
AX_MUST_USE ax_status ax_plan_hoist(ax_plan *plan);           /* plan/hoist.c */
AX_MUST_USE ax_status ax_plan_cut(ax_plan *plan);             /* plan/cut.c */
AX_MUST_USE ax_status ax_plan_coalesce(ax_plan *plan);        /* plan/coalesce.c */
AX_MUST_USE ax_status ax_plan_accumulate(ax_plan *plan);      /* plan/accumulate.c */
AX_MUST_USE ax_status ax_plan_alternate(ax_plan *plan);       /* plan/alternate.c */
AX_MUST_USE ax_status ax_plan_rows(ax_plan *plan);            /* plan/rows.c */
AX_MUST_USE ax_status ax_plan_pack(ax_plan *plan);            /* plan/panels.c */
AX_MUST_USE ax_status ax_plan_stream(ax_plan *plan);          /* plan/stream.c */

/* AX_INTERNAL: an invariant of plans does not hold, which says that a pass is wrong (plan/verify.c). */
AX_MUST_USE ax_status ax_plan_verify(const ax_plan *plan);
/* In debug builds the verifier, in the name of the pass that has run; otherwise nothing. */
AX_MUST_USE ax_status ax_plan_check(const ax_plan *plan, const char *pass);

#endif
