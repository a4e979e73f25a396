/* From a program to a plan, and the passes over plans. */
#ifndef AX_PLAN_PASSES_H
#define AX_PLAN_PASSES_H

#include "plan/plan.h"

/* Makes the plan of each device of the program's axes. Input i is stored, and result k wanted, once for each coordinate along
   in_axes[i] and out_axes[k]. NULL: along the axes over which they vary or are unreduced. `options` NULL: all 0. */
AX_MUST_USE ax_status ax_plan_create(ax_program *program, const ax_axis_set *in_axes, const ax_axis_set *out_axes,
                                     const ax_plan_options *options, ax_plan **out);

/* --- Assumptions of passes. A property is a promise about the whole plan. A pass that `needs` it relies on it, one that `makes`
   it establishes it, and after one that `breaks` it no pass may rely on it. In debug builds the properties that should hold are
   checked after each pass. --- */
typedef enum ax_plan_property {
  AX_PLAN_SEPARATE = 1 << 0,   /* no operation is a group of rows: kernels and products stand in their blocks by themselves */
  AX_PLAN_UNPACKED = 1 << 1,   /* right factors of products are matrices, none lies in panels */
  AX_PLAN_CACHED = 1 << 2,     /* kernels store through the caches, none past them */
  AX_PLAN_UNCUT = 1 << 3       /* kernels are whole: none is cut into ranges for threads */
} ax_plan_property;
typedef uint32_t ax_plan_properties; /* a set */
/* The properties of a plan right after lowering. */
enum { AX_PLAN_LOWERED = AX_PLAN_SEPARATE | AX_PLAN_UNPACKED | AX_PLAN_CACHED | AX_PLAN_UNCUT };

typedef struct ax_plan_pass {
  const char *name; /* also of its file and its function: src/plan/NAME.c, ax_plan_NAME */
  ax_status (*run)(ax_plan *plan);
  ax_plan_properties needs, makes, breaks;
} ax_plan_pass;
/* The passes, in their order. Each changes the plan in place, since a plan is made for one executable. docs/passes.md says what
   each is for. */
extern const ax_plan_pass ax_plan_passes[];
extern const uint32_t ax_plan_pass_count;

/* Checks a list of passes. AX_INTERNAL: a pass needs a property that does not hold at its place; the message names the pass, the
   property and the pass that broke it. */
AX_MUST_USE ax_status ax_plan_passes_check(const ax_plan_pass *passes, uint32_t count);
/* Runs a list that ax_plan_passes_check has accepted, all of it or up to the pass named `last` (NULL: all). In debug builds the
   verifiers follow each pass. *found: whether there was a pass of that name; found may be NULL. */
AX_MUST_USE ax_status ax_plan_run_passes(ax_plan *plan, const ax_plan_pass *passes, uint32_t count, const char *last, bool *found);
/* The same for ax_plan_passes, or for the list in plan->options if there is one. */
AX_MUST_USE ax_status ax_plan_optimise(ax_plan *plan, const char *last, bool *found);

AX_MUST_USE ax_status ax_plan_products(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_order(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_scatter(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_recompute(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_update(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_pieces(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_unroll(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_fuse(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_maps(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_turn(ax_plan *plan);
/* For passes: ax_plan_fuse of the blocks that have these lists of operations, `count` of them. */
AX_MUST_USE ax_status ax_plan_fuse_again(ax_plan *plan, const ax_op *const *lists, uint32_t count);
AX_MUST_USE ax_status ax_plan_invariants(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_hoist(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_cut(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_coalesce(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_accumulate(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_alternate(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_rows(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_panels(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_overwrite(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_stream(ax_plan *plan);
AX_MUST_USE ax_status ax_plan_contract(ax_plan *plan);

/* AX_INTERNAL: an invariant of plans does not hold, which says that a pass is wrong (plan/verify.c). */
AX_MUST_USE ax_status ax_plan_verify(const ax_plan *plan);
/* The same of properties. */
AX_MUST_USE ax_status ax_plan_verify_properties(const ax_plan *plan, ax_plan_properties properties);
/* In debug builds the verifier, in the name of the pass that has run; otherwise nothing. */
AX_MUST_USE ax_status ax_plan_check(const ax_plan *plan, const char *pass);

#endif
