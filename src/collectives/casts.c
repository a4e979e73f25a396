/* The casts: they change the type by which a value spreads over axes, and leave each device's data unchanged.

     cast                     from         to           its transpose
     pvary                    invariant    varying      psum
     preduced                 invariant    reduced      psum, from unreduced to invariant
     vary_unreduced_cast      varying      unreduced    reduced_vary_cast; to unreduced by max or min none is needed, as the
                                                        cotangents of parts vary
     reduced_vary_cast        reduced      varying      vary_unreduced_cast
     reduced_invariant_cast   reduced      invariant    the cotangent on the first member and zeros on the others: parts of it
     unreduced_vary_cast      unreduced    varying      for max and min none is needed; for sums the first member's cotangent, as
                                                        all parts must have the same cotangent

     cast: T[d..]{from: axes, ..} -> T[d..]{to: axes, ..}

   A varying value is each device's own. An invariant one is the same on all, and so is its cotangent. A reduced one is the same on
   all too, but its cotangent stays on the devices as parts that add up to it. An unreduced one is a sum (or the largest, or the
   smallest) that has not been computed yet: each device holds a part. So a cast to unreduced makes parts of the value, and a cast
   from invariant to reduced postpones the sum of the cotangents.
   Parameters: axes; for vary_unreduced_cast also kind, one of sum, max and min, by which the parts are combined.
   Errors: an unknown axis or one named twice; an operand that is not in the state to cast from along each of the axes; to
   unreduced: bool, and a value unreduced by another kind along other axes.
   Linear. On unchecked axes the casts do nothing.
   Batching: over a named axis that is among the axes, that axis is left out.
   pcast applies the cast from the operand's state to the named one, or two casts if none leads there directly. */
#include <string.h>

#include "collectives/collective.h"
#include "prim/composite.h"
#include "prim/prims.h"

typedef struct cast_params {
  ax_axes axes;
  ax_unreduced_kind kind; /* of vary_unreduced_cast; the others have only axes */
} cast_params;

static ax_axis_state from_state(const ax_prim *prim) {
  if (prim == &ax_prim_vary_unreduced_cast) return AX_IS_VARYING;
  if (prim == &ax_prim_unreduced_vary_cast) return AX_IS_UNREDUCED;
  return prim == &ax_prim_pvary || prim == &ax_prim_preduced ? AX_IS_INVARIANT : AX_IS_REDUCED;
}

static ax_axis_state to_state(const ax_prim *prim) {
  if (prim == &ax_prim_vary_unreduced_cast) return AX_IS_UNREDUCED;
  if (prim == &ax_prim_reduced_invariant_cast) return AX_IS_INVARIANT;
  return prim == &ax_prim_preduced ? AX_IS_REDUCED : AX_IS_VARYING;
}

/* --- infer, spread --- */

static ax_status infer(const ax_infer_args *args) {
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_status unreduced_infer(const ax_infer_args *args) {
  const ax_spread *on = &args->in[0].spread;
  const cast_params *params = args->params;
  if (args->in[0].dtype == AX_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool; convert_element_type gives one");
  if (on->unreduced != 0 && on->kind != params->kind)
    return ax_error(AX_INVALID_ARGUMENT, "the operand is unreduced by %s over %s, and cannot be by %s over other axes",
                    ax_kind_names[on->kind], ax_axis_set_string(on->unreduced, args->axes), ax_kind_names[params->kind]);
  return infer(args);
}

/* Advises the user how to bring an operand in `state` into the state that the cast takes. */
static const char *advice(const ax_prim *prim, ax_axis_state state, ax_unreduced_kind kind) {
  ax_axis_state from = from_state(prim);
  if (state == AX_IS_UNREDUCED) return ax_reduce_advice(kind);
  if (state == AX_IS_REDUCED) return "reduced_vary_cast makes it varying";
  if (state == AX_IS_INVARIANT) return from == AX_IS_VARYING ? "pvary makes it varying" : "preduced makes it reduced";
  return from == AX_IS_INVARIANT ? "psum, pmax, pmin and all_gather_invariant make it invariant"
                                 : "all_gather_reduced makes reduced values";
}

static ax_status check_axis(const ax_infer_args *args, uint32_t axis) {
  static const char *const names[] = {"invariant", "varying", "reduced", "unreduced"};
  const ax_spread *on = &args->in[0].spread;
  ax_axis_state from = from_state(args->prim), state = ax_spread_state(on, axis);
  if (state == from) return AX_OK;
  if (state == AX_IS_VARYING && args->prim == &ax_prim_pvary)
    return ax_error(AX_INVALID_ARGUMENT, "the operand varies over %s already",
                    ax_axis_set_string((ax_axis_set)1 << axis, args->axes));
  return ax_error(AX_INVALID_ARGUMENT, "the operand is %s along \"%s\", not %s; %s", ax_state_name(on, axis),
                  args->axes->axis[axis].name, names[from], advice(args->prim, state, on->kind));
}

static ax_status spread(const ax_infer_args *args) {
  ax_spread on = args->in[0].spread;
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
  set &= ax_checked_axes(args->axes);
  for (uint32_t axis = 0; set >> axis != 0; axis++)
    if ((set >> axis & 1) != 0) AX_TRY(check_axis(args, axis));
  on.varying &= ~set, on.reduced &= ~set, on.unreduced &= ~set;
  ax_axis_state to = to_state(args->prim);
  if (to == AX_IS_VARYING) on.varying |= set;
  if (to == AX_IS_REDUCED) on.reduced |= set;
  if (to == AX_IS_UNREDUCED) on.unreduced |= set;
  if (to == AX_IS_UNREDUCED && set != 0) on.kind = ((const cast_params *)args->params)->kind;
  if (on.unreduced == 0) on.kind = AX_UNREDUCED_SUM;
  args->out[0].spread = on;
  return AX_OK;
}

/* --- jvp --- */

/* Tangents of a value unreduced by max or min vary, so the cast leaves them as they are. */
static void unreduced_jvp(const ax_jvp_args *args) {
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
  ax_type type = ax_typeof(to_state(args->eqn->prim) == AX_IS_UNREDUCED ? args->out[0] : args->in[0]);
  args->tangent_out[0] = args->tangent_in[0];
  if (type.spread.kind == AX_UNREDUCED_SUM && !ax_is_zero(args->tangent_in[0]))
    args->tangent_out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->tangent_in, 1);
}

/* --- transpose: on unchecked axes the cotangent is each device's own before and after --- */

static void cast_back(const ax_transpose_args *args, const ax_prim *prim) {
  cast_params checked = {.kind = AX_UNREDUCED_SUM}, unchecked;
  ax_axes_split(args->eqn->params, &checked.axes, &unchecked.axes);
  args->out[0] = checked.axes.count > 0 ? ax_bind1(prim, &checked, args->cotangent, 1) : args->cotangent[0];
}

static void sum_transpose(const ax_transpose_args *args) { cast_back(args, &ax_prim_psum); }
static void reduced_transpose(const ax_transpose_args *args) { cast_back(args, &ax_prim_vary_unreduced_cast); }

/* x on the first member along the checked axes, zeros on the others; x where there is no such axis. */
static ax_value first_alone(const ax_axes *names, ax_value x, ax_axes *checked) {
  ax_axes unchecked;
  ax_axes_split(names, checked, &unchecked);
  return checked->count > 0 ? ax_once(x, checked) : x;
}

static void invariant_transpose(const ax_transpose_args *args) {
  cast_params checked = {.kind = AX_UNREDUCED_SUM};
  args->out[0] = first_alone(args->eqn->params, args->cotangent[0], &checked.axes);
  if (checked.axes.count > 0) args->out[0] = ax_bind1(&ax_prim_vary_unreduced_cast, &checked, args->out, 1);
}

static void parts_transpose(const ax_transpose_args *args) {
  ax_axes checked;
  args->out[0] = args->cotangent[0];
  if (args->in_types[0].spread.kind != AX_UNREDUCED_SUM) return;
  args->out[0] = first_alone(args->eqn->params, args->cotangent[0], &checked);
  if (checked.count == 0) return;
  args->out[0] = ax_bind1(&ax_prim_psum, &checked, args->out, 1);
  args->out[0] = ax_bind1(&ax_prim_preduced, &checked, args->out, 1);
}

static void unreduced_transpose(const ax_transpose_args *args) {
  if (((const cast_params *)args->eqn->params)->kind == AX_UNREDUCED_SUM)
    cast_back(args, &ax_prim_reduced_vary_cast);
  else
    args->out[0] = args->cotangent[0];
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  cast_params rest = {0};
  memcpy(&rest, args->eqn->params, args->eqn->prim->params_bytes);
  ax_axes_without(args->eqn->params, args->axis, &rest.axes);
  args->out[0] = rest.axes.count > 0 ? ax_bind1(args->eqn->prim, &rest, args->in, 1) : args->in[0];
  args->out_dim[0] = args->in_dim[0];
}

/* --- The records --- */

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(cast_params, axes)},
                                  {"kind", AX_PARAM_KIND, offsetof(cast_params, kind)}};

#define CAST_RECORD(name_, keys_, tokens_, param_count_, params_bytes_, infer_, jvp_, transpose_) \
  const ax_prim ax_prim_##name_ = {                                                        \
      .name = #name_,                                                                      \
      .kind = AX_COLLECTIVE,                                                               \
      .cheap = true,                                                                       \
      .tokens = tokens_,                                                                   \
      .linear = AX_LINEAR_ALL,                                                             \
      .kinds = AX_KINDS_ALL,                                                               \
      .in_count = 1,                                                                       \
      .out_count = 1,                                                                      \
      .params = params,                                                                    \
      .param_count = param_count_,                                                         \
      .params_bytes = params_bytes_,                                                       \
      .infer = infer_,                                                                     \
      .spread = spread,                                                                    \
      .eval = ax_eval_same,                                                                \
      .differs = ax_differs_union,                                                         \
      .jvp = jvp_,                                                                         \
      .linearize = jvp_,                                                                   \
      .transpose = transpose_,                                                             \
      .batch = batch,                                                                      \
      .simplify = ax_simplify_nothing,                                                     \
      .shard = ax_shard_pointwise,                                                         \
      .lower = ax_lower_same,                                                              \
      .complex = ax_complex_whole,                                                         \
      .keys = keys_,                                                                       \
      .hlo = ax_hlo_same,                                                                  \
  }
CAST_RECORD(pvary, ax_keys_whole, true, 1, sizeof(ax_axes), infer, ax_jvp_linear, sum_transpose);
CAST_RECORD(preduced, ax_keys_whole, false, 1, sizeof(ax_axes), infer, ax_jvp_linear, sum_transpose);
CAST_RECORD(vary_unreduced_cast, NULL, false, 2, sizeof(cast_params), unreduced_infer, unreduced_jvp, unreduced_transpose);
CAST_RECORD(reduced_vary_cast, ax_keys_whole, false, 1, sizeof(ax_axes), infer, ax_jvp_linear, reduced_transpose);
CAST_RECORD(reduced_invariant_cast, ax_keys_whole, false, 1, sizeof(ax_axes), infer, ax_jvp_linear, invariant_transpose);
CAST_RECORD(unreduced_vary_cast, NULL, false, 1, sizeof(ax_axes), infer, unreduced_jvp, parts_transpose);

ax_value ax_cast(const ax_prim *prim, ax_value x, ax_axis_set axes) {
  if (axes == 0 || ax_failed()) return x;
  const ax_axes names = ax_axis_set_names(axes, &ax_builder_current()->axes);
  return ax_bind1(prim, &names, &x, 1);
}

ax_value ax_cast_unreduced(ax_value x, ax_axis_set axes, ax_unreduced_kind kind) {
  if (axes == 0 || ax_failed()) return x;
  const cast_params params = {ax_axis_set_names(axes, &ax_builder_current()->axes), kind};
  return ax_bind1(&ax_prim_vary_unreduced_cast, &params, &x, 1);
}

ax_value ax_own_parts(ax_value x) {
  ax_spread on = ax_typeof(x).spread;
  return on.kind == AX_UNREDUCED_SUM ? x : ax_cast(&ax_prim_unreduced_vary_cast, x, on.unreduced);
}

/* --- The functions --- */

static ax_value cast(const ax_prim *prim, ax_value x, const char *axes, ax_unreduced_kind kind) {
  cast_params params = {.kind = kind};
  if (!ax_collective_names(prim->name, axes, &params.axes)) return ax_poison;
  return params.axes.count > 0 ? ax_bind1(prim, &params, &x, 1) : x;
}

ax_value ax_pvary(ax_value x, const char *axes) { return cast(&ax_prim_pvary, x, axes, 0); }
ax_value ax_preduced(ax_value x, const char *axes) { return cast(&ax_prim_preduced, x, axes, 0); }
ax_value ax_vary_unreduced_cast(ax_value x, const char *axes, ax_unreduced_kind kind) {
  if (kind < AX_UNREDUCED_SUM || kind > AX_UNREDUCED_MIN)
    return ax_reject(&ax_prim_vary_unreduced_cast, "kind %d is none of AX_UNREDUCED_SUM, AX_UNREDUCED_MAX and AX_UNREDUCED_MIN",
                     (int)kind);
  return cast(&ax_prim_vary_unreduced_cast, x, axes, kind);
}
ax_value ax_reduced_vary_cast(ax_value x, const char *axes) { return cast(&ax_prim_reduced_vary_cast, x, axes, 0); }

/* --- pcast --- */

/* The goal of pcast: a state, and for unreduced its kind. */
typedef struct aim {
  const char *name;
  ax_axis_state state;
  ax_unreduced_kind kind;
} aim;

static const aim aims[] = {{"varying", AX_IS_VARYING, AX_UNREDUCED_SUM},
                           {"reduced", AX_IS_REDUCED, AX_UNREDUCED_SUM},
                           {"unreduced", AX_IS_UNREDUCED, AX_UNREDUCED_SUM},
                           {"unreduced_max", AX_IS_UNREDUCED, AX_UNREDUCED_MAX},
                           {"unreduced_min", AX_IS_UNREDUCED, AX_UNREDUCED_MIN},
                           {"invariant", AX_IS_INVARIANT, AX_UNREDUCED_SUM}};

static ax_value no_cast(const ax_spread *on, uint32_t axis, const aim *to, const char *advice) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  return ax_reject_as("pcast", "no cast along \"%s\" from %s to %s; %s", axes->axis[axis].name, ax_state_name(on, axis), to->name,
                      advice);
}

/* From one state along all of `set`. To unreduced, each device's value is a part: of what all have alike, n parts would add up to n
   times that, while the largest of them is it. */
static ax_value pcast(ax_value x, ax_axis_set set, uint32_t axis, const aim *to) {
  ax_spread on = ax_typeof(x).spread;
  ax_axis_state from = ax_spread_state(&on, axis);
  bool same = from == to->state && (from != AX_IS_UNREDUCED || on.kind == to->kind);
  if (same) return no_cast(&on, axis, to, "it is that already");
  if (from == AX_IS_UNREDUCED) {
    if (to->state == AX_IS_VARYING && on.kind != AX_UNREDUCED_SUM) return ax_cast(&ax_prim_unreduced_vary_cast, x, set);
    return no_cast(&on, axis, to, ax_reduce_advice(on.kind));
  }
  if (to->state == AX_IS_INVARIANT) {
    if (from == AX_IS_REDUCED) return ax_cast(&ax_prim_reduced_invariant_cast, x, set);
    return no_cast(&on, axis, to, "psum, pmax, pmin and all_gather_invariant make values invariant");
  }
  if (to->state == AX_IS_REDUCED) {
    if (from == AX_IS_INVARIANT) return ax_cast(&ax_prim_preduced, x, set);
    return no_cast(&on, axis, to, "all_gather_reduced makes reduced values, and preduced of what psum makes is one");
  }
  if (to->state == AX_IS_UNREDUCED && from != AX_IS_VARYING && to->kind == AX_UNREDUCED_SUM)
    return no_cast(&on, axis, to,
                   "every device would add the same value; make it varying first if that is meant, by pvary or reduced_vary_cast");
  x = ax_vary_to(x, set);
  return to->state == AX_IS_UNREDUCED ? ax_cast_unreduced(x, set, to->kind) : x;
}

ax_value ax_pcast(ax_value x, const char *axes, const char *to) {
  ax_axes names;
  ax_axis_set set;
  ax_axis_state state;
  ax_type type;
  if (to == NULL) return ax_reject_as("pcast", "it is not said to what");
  if (!ax_operand("pcast", x, &type) || !ax_ungrouped_names("pcast", axes, &names)) return ax_poison;
  const aim *aim = NULL;
  for (size_t i = 0; i < AX_COUNT(aims); i++)
    if (strcmp(to, aims[i].name) == 0) aim = &aims[i];
  if (aim == NULL)
    return ax_reject_as(
        "pcast",
        "to \"%s\": expected \"varying\", \"reduced\", \"unreduced\", \"unreduced_max\", \"unreduced_min\" or \"invariant\"", to);
  if (!ax_collective_state("pcast", &type, &names, &set, &state)) return ax_poison;
  if (set == 0) return x;
  uint32_t axis = 0;
  while ((set >> axis & 1) == 0) axis++;
  return pcast(x, set, axis, aim);
}
