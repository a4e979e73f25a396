/* The passes over plans, as a contents page. */
#include "plan/passes.h"

#include <string.h>

const ax_plan_pass ax_plan_passes[] = {
    {"products", ax_plan_transpose_products},  /* (A B)' becomes B' A' */
    {"order", ax_plan_order},             /* what needs no collective's result first */
    {"scatter", ax_plan_scatter},         /* parts added to sums, instead of tables of zeros with a part in them */
    {"recompute", ax_plan_recompute},     /* what is cheaper to compute again than to hold */
    {"update", ax_plan_update_in_place},  /* parts of values overwritten where they are */
    {"pieces", ax_plan_take_apart},       /* readers of what is put together read its parts */
    {"fuse", ax_plan_fuse},               /* fewer passes over memory */
    {"hoist", ax_plan_hoist},             /* what each step of a loop would make again, before it */
    {"cut", ax_plan_cut},                 /* parts for threads; long reductions in blocks */
    {"coalesce", ax_plan_coalesce},       /* results into donated memory, carries in place */
    {"accumulate", ax_plan_accumulate},   /* products that add themselves to what is there */
    {"alternate", ax_plan_alternate},     /* carries that change places with what they become, instead of copies */
    {"rows", ax_plan_rows},               /* kernels over the same rows, few rows at a time */
    {"pack", ax_plan_pack},               /* right factors that loops do not change, and constant ones, packed once */
    {"stream", ax_plan_stream},           /* large results stored past the caches */
};
const uint32_t ax_plan_pass_count = AX_COUNT(ax_plan_passes);

ax_status ax_plan_check(const ax_plan *plan, const char *pass) {
#ifndef NDEBUG
  ax_status status = ax_plan_verify(plan);
  return status == AX_INTERNAL ? ax_error_context(status, "after %s: ", pass) : status;
#else
  (void)plan, (void)pass;
  return AX_OK;
#endif
}

ax_status ax_plan_optimise(ax_plan *plan, const char *last, bool *found) {
  bool here = false;
  for (uint32_t i = 0; i < ax_plan_pass_count && !here; i++) {
    AX_TRY(ax_plan_passes[i].run(plan));
    AX_TRY(ax_plan_check(plan, ax_plan_passes[i].name));
    here = last != NULL && strcmp(ax_plan_passes[i].name, last) == 0;
  }
  if (found != NULL) *found = here;
  return AX_OK;
}
