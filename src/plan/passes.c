/* The passes over plans, as a contents page; and what they may assume of each other (ax_plan_property).

   A plan may be run after any of them, so each may be left out. Their order is mostly a matter of speed and memory: docs/passes.md
   says what each gains by standing where it stands. What is forced is said in the table, as data. */
#include "plan/passes.h"

#include <string.h>

const ax_plan_pass ax_plan_passes[] = {
    {"products", ax_plan_products, .needs = AX_PLAN_UNPACKED}, /* (A B)' becomes B' A' */
    {"order", .run = ax_plan_order},                           /* operations that need no collective's result go first */
    {"scatter", .run = ax_plan_scatter},                /* parts added to sums, instead of tables of zeros with a part in them */
    {"recompute", .run = ax_plan_recompute},            /* values that are cheaper to compute again than to hold */
    {"update", .run = ax_plan_update},                  /* parts of values overwritten in place */
    {"pieces", .run = ax_plan_pieces},                  /* readers of a concatenation or padding read its pieces */
    {"unroll", .run = ax_plan_unroll},                  /* short sums of many short rows, term by term */
    {"invariants", .run = ax_plan_invariants},          /* costly work that each step of a loop would repeat, before the loop */
    {"fuse", ax_plan_fuse, .needs = AX_PLAN_SEPARATE},  /* fewer passes over memory */
    {"maps", ax_plan_maps, .needs = AX_PLAN_SEPARATE},  /* loops of which no step needs another, as a dimension of their kernels */
    {"turn", .run = ax_plan_turn},                      /* what sums would read across its rows, again and again */
    {"hoist", .run = ax_plan_hoist},                    /* whatever else each step of a loop would repeat */
    {"cut", ax_plan_cut, .breaks = AX_PLAN_UNCUT},      /* parts for threads; long reductions in blocks */
    {"coalesce", .run = ax_plan_coalesce},              /* results into donated memory, carries in place */
    {"accumulate", .run = ax_plan_accumulate},          /* products that add themselves to a value */
    {"alternate", .run = ax_plan_alternate},            /* carries that change places with their next values, instead of copies */
    {"rows", ax_plan_rows, .breaks = AX_PLAN_SEPARATE}, /* kernels over the same rows, few rows at a time */
    {"panels", ax_plan_panels,
     .breaks = AX_PLAN_UNPACKED},            /* right factors that loops do not change, and constant ones, packed once */
    {"overwrite", .run = ax_plan_overwrite}, /* temporaries overwritten by what is computed from them */
    {"stream", ax_plan_stream, .breaks = AX_PLAN_CACHED}, /* large results stored past the caches */
    {"contract", .run = ax_plan_contract},                /* x y + z rounded once, where that is asked for */
};
const uint32_t ax_plan_pass_count = AX_COUNT(ax_plan_passes);

/* --- Properties --- */

static bool is_separate(const ax_op *op) { return op->kind != AX_OP_ROWS; }
static bool is_unpacked(const ax_op *op) { return op->kind != AX_OP_GEMM || !op->gemm->packed; }
static bool is_uncut(const ax_op *op) { return op->kind != AX_OP_KERNEL || op->kernel.kernel->parts == 1; }
static bool is_cached(const ax_op *op) { return op->kind != AX_OP_KERNEL || !op->kernel.kernel->streams; }

static const struct named_property {
  ax_plan_property property;
  const char *name;
  bool (*holds)(const ax_op *op); /* of one operation, and of a member of a group */
} named[] = {
    {AX_PLAN_SEPARATE, "separate", is_separate},
    {AX_PLAN_UNPACKED, "unpacked", is_unpacked},
    {AX_PLAN_CACHED, "cached", is_cached},
    {AX_PLAN_UNCUT, "uncut", is_uncut},
};

typedef struct search { /* of an operation that breaks one */
  const struct named_property *property;
  bool found;
} search;

static void look_at(void *context, ax_op *op) {
  search *s = context;
  uint32_t count;
  const ax_op *members = ax_op_members(op, &count);
  s->found = s->found || !s->property->holds(op);
  for (uint32_t k = 0; k < count; k++) s->found = s->found || !s->property->holds(&members[k]);
}

ax_status ax_plan_verify_properties(const ax_plan *plan, ax_plan_properties properties) {
  for (size_t i = 0; i < AX_COUNT(named); i++) {
    search s = {&named[i], false};
    if ((properties & named[i].property) == 0) continue;
    ax_block_walk(&plan->block, look_at, &s);
    if (s.found) return ax_error(AX_INTERNAL, "the plan is not '%s' any more, as is said of it", named[i].name);
  }
  return AX_OK;
}

static ax_plan_properties after(ax_plan_properties before, const ax_plan_pass *pass) {
  return (before | pass->makes) & ~pass->breaks;
}

static const char *breaker_of(const ax_plan_pass *passes, uint32_t before, ax_plan_property property) {
  while (before-- > 0)
    if ((passes[before].breaks & property) != 0) return passes[before].name;
  return "lowering";
}

ax_status ax_plan_passes_check(const ax_plan_pass *passes, uint32_t count) {
  ax_plan_properties now = AX_PLAN_LOWERED;
  for (uint32_t i = 0; i < count; now = after(now, &passes[i++]))
    for (size_t p = 0; p < AX_COUNT(named); p++)
      if ((passes[i].needs & ~now & named[p].property) != 0)
        return ax_error(AX_INTERNAL, "pass %s needs a plan that is '%s', which it is not after %s", passes[i].name, named[p].name,
                        breaker_of(passes, i, named[p].property));
  return AX_OK;
}

/* --- Running them --- */

ax_status ax_plan_check(const ax_plan *plan, const char *pass) {
#ifndef NDEBUG
  ax_status status = ax_plan_verify(plan);
  return status == AX_INTERNAL ? ax_error_context(status, "after %s: ", pass) : status;
#else
  (void)plan, (void)pass;
  return AX_OK;
#endif
}

static ax_status check_properties(const ax_plan *plan, ax_plan_properties properties, const char *pass) {
#ifndef NDEBUG
  ax_status status = ax_plan_verify_properties(plan, properties);
  return status == AX_INTERNAL ? ax_error_context(status, "after %s: ", pass) : status;
#else
  (void)plan, (void)properties, (void)pass;
  return AX_OK;
#endif
}

ax_status ax_plan_run_passes(ax_plan *plan, const ax_plan_pass *passes, uint32_t count, const char *last, bool *found) {
  ax_plan_properties now = AX_PLAN_LOWERED;
  bool here = false;
#ifndef NDEBUG
  AX_TRY(ax_plan_passes_check(passes, count));
#endif
  for (uint32_t i = 0; i < count && !here; i++) {
    AX_TRY(passes[i].run(plan));
    AX_TRY(ax_plan_check(plan, passes[i].name));
    now = after(now, &passes[i]);
    AX_TRY(check_properties(plan, now, passes[i].name));
    here = last != NULL && strcmp(passes[i].name, last) == 0;
  }
  if (found != NULL) *found = here;
  return AX_OK;
}

ax_status ax_plan_optimise(ax_plan *plan, const char *last, bool *found) {
  const ax_plan_options *options = &plan->options;
  if (options->passes != NULL) return ax_plan_run_passes(plan, options->passes, options->pass_count, last, found);
  return ax_plan_run_passes(plan, ax_plan_passes, ax_plan_pass_count, last, found);
}
