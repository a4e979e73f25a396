/* From a program to a plan, and the passes over plans. */
#ifndef AX_PLAN_PASSES_H
#define AX_PLAN_PASSES_H

#include "plan/plan.h"

/* The plan of what each device of the program's axes runs. Input i is stored, and result k wanted, once for each coordinate along
   in_axes[i] and out_axes[k]; NULL: along the axes over which they vary or are unreduced. options NULL: all 0. */
AX_MUST_USE ax_status ax_plan_create(ax_program *program, const ax_axis_set *in_axes, const ax_axis_set *out_axes,
                                     const ax_plan_options *options, ax_plan **out);

/* --- What a pass may assume, and what it leaves true. A property is a promise about the whole plan: a pass that `needs` it relies
   on it, one that `makes` it has seen to it, and after one that `breaks` it nobody may rely on it. In debug builds what holds is
   checked after each pass. --- */
typedef enum ax_plan_property {
  AX_PLAN_SEPARATE = 1 << 0,   /* no operation is a group of rows: kernels and products stand in their blocks by themselves */
  AX_PLAN_UNPACKED = 1 << 1,   /* right factors of products are matrices, none lies in panels */
  AX_PLAN_OVERWRITES = 1 << 2, /* products write their results, none adds to what is there */
  AX_PLAN_CACHED = 1 << 3,     /* kernels store through the caches, none past them */
  AX_PLAN_UNCUT = 1 << 4       /* kernels are whole: none is in parts for threads */
} ax_plan_property;
typedef uint32_t ax_plan_properties; /* a set */
/* What holds of a plan as it was lowered. */
enum { AX_PLAN_LOWERED = AX_PLAN_SEPARATE | AX_PLAN_UNPACKED | AX_PLAN_OVERWRITES | AX_PLAN_CACHED | AX_PLAN_UNCUT };

typedef struct ax_plan_pass {
  const char *name; /* also of its file and its function: src/plan/NAME.c, ax_plan_NAME */
  ax_status (*run)(ax_plan *plan);
  ax_plan_properties needs, makes, breaks;
} ax_plan_pass;
/* The passes, in their order. Each changes the plan it is given; that of a program is made for one executable. docs/passes.md says
   what each is for. */
extern const ax_plan_pass ax_plan_passes[];
extern const uint32_t ax_plan_pass_count;

/* AX_INTERNAL: a pass of the list needs what does not hold where it stands; the message names the pass, the property and who broke
   it. */
AX_MUST_USE ax_status ax_plan_passes_check(const ax_plan_pass *passes, uint32_t count);
/* All of a list that ax_plan_passes_check has found in order, or up to the one named `last` when there is one; in debug builds the
   verifiers follow each. *found says whether there was one of that name; found may be NULL. */
AX_MUST_USE ax_status ax_plan_run_passes(ax_plan *plan, const ax_plan_pass *passes, uint32_t count, const char *last, bool *found);
/* The same of ax_plan_passes; or, where plan->options say so, of another list. */
AX_MUST_USE ax_status ax_plan_optimise(ax_plan *plan, const char *last, bool *found);

AX_MUST_USE ax_status ax_plan_products(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_order(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_scatter(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_recompute(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_update(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_pieces(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_fuse(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_hoist(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_cut(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_coalesce(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_accumulate(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_alternate(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_rows(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_panels(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_stream(ax_plan *plan);

/* AX_INTERNAL: an invariant of plans does not hold, which says that a pass is wrong (plan/verify.c). */
AX_MUST_USE ax_status ax_plan_verify(const ax_plan *plan);
/* The same of properties. */
AX_MUST_USE ax_status ax_plan_verify_properties(const ax_plan *plan, ax_plan_properties properties);
/* In debug builds the verifier, in the name of the pass that has run; otherwise nothing. */
AX_MUST_USE ax_status ax_plan_check(const ax_plan *plan, const char *pass);

#endif
