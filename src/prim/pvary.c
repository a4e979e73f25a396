/* pvary: T[d..] -> T[d..]{V: + axes}
   Parameters: axes. A change of type, not of value: what is the same on all devices is from here on treated as each device's own.
   Errors: an unknown axis; an axis the operand varies over already.
   Linear; the transpose is psum: the cotangents of a value used by all devices add up. On unchecked axes it does nothing.
   pcast names the kind of type to go to; to "varying" it is pvary, and no other cast exists yet. */
#include <string.h>

#include "prim/collective.h"
#include "prim/composite.h"
#include "prim/prims.h"

typedef struct pvary_params {
  ax_axes axes;
} pvary_params;

static ax_status infer(const ax_infer_args *args) {
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_status spread(const ax_infer_args *args) {
  ax_axis_set set;
  AX_TRY(ax_refuse_reductions(args));
  AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
  set &= ax_checked_axes(args->axes);
  if ((args->in[0].spread.varying & set) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the operand varies over %s already",
                    ax_axis_set_string(args->in[0].spread.varying & set, args->axes));
  args->out[0].spread = (ax_spread){.varying = args->in[0].spread.varying | set};
  return AX_OK;
}

/* psum over the checked axes only: on the others the cotangent is each device's own before and after. */
static void transpose(const ax_transpose_args *args) {
  pvary_params checked, unchecked;
  ax_axes_split(args->eqn->params, &checked.axes, &unchecked.axes);
  args->out[0] = args->cotangent[0];
  if (checked.axes.count > 0) args->out[0] = ax_bind1(&ax_prim_psum, &checked, args->cotangent, 1);
}

static void batch(const ax_batch_args *args) {
  pvary_params rest;
  ax_axes_without(args->eqn->params, args->axis, &rest.axes);
  args->out[0] = rest.axes.count > 0 ? ax_bind1(&ax_prim_pvary, &rest, args->in, 1) : args->in[0];
  args->out_dim[0] = args->in_dim[0];
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(pvary_params, axes)}};

const ax_prim ax_prim_pvary = {
    .name = "pvary", .kind = AX_COLLECTIVE, .cheap = true, .tokens = true, .in_count = 1, .out_count = 1,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(pvary_params),
    .infer = infer, .spread = spread, .eval = ax_eval_same, .differs = ax_differs_union, .jvp = ax_jvp_linear, .linearize = ax_jvp_linear,
    .transpose = transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = ax_absent_shard,
    .lower = ax_lower_same, .hlo = ax_hlo_same,
};

ax_value ax_pvary(ax_value x, const char *axes) {
  pvary_params params;
  if (!ax_collective_names("pvary", axes, &params.axes)) return ax_poison;
  return params.axes.count > 0 ? ax_bind1(&ax_prim_pvary, &params, &x, 1) : x;
}

ax_value ax_pcast(ax_value x, const char *axes, const char *to) {
  if (to == NULL) return ax_reject_as("pcast", "it is not said to what");
  ax_axes names;
  if (!ax_collective_names("pcast", axes, &names)) return ax_poison;
  if (strcmp(to, "varying") == 0) return ax_pvary(x, axes);
  if (strcmp(to, "reduced") == 0 || strcmp(to, "unreduced") == 0)
    ax_fail(ax_error(AX_ABSENT, "pcast: no cast to \"%s\" yet", to));
  else if (strcmp(to, "invariant") == 0)
    ax_reject_as("pcast", "it cannot make a value invariant; psum, pmax, pmin and all_gather_invariant do");
  else
    ax_reject_as("pcast", "to \"%s\": expected \"varying\"", to);
  return ax_poison;
}
