/* How values spread over the mesh: the common spread of operands, and the spread of results.

   Along each checked axis a value is invariant (I), varying (V), reduced (R) or unreduced (U) of a kind (ax_spread). Operands of
   one operation are brought together axis by axis:

     some are V      I and R are cast to V; U cannot be, and is refused
     some are U      I is cast to R; those that are U must be the ones the operation is linear in (ax_linearity); the result is U
     some are R      I is cast to R; the result is R
     all are I       so is the result

   Binding makes the casts (ax_spread_together); the rule (ax_spread_local) reports operands that did not become
   alike. */
#include "prim/prims.h"
#include "prim/rules.h"

/* --- Casting --- */

ax_value ax_vary_to(ax_value x, ax_axis_set varying) { return ax_spread_to(x, &(ax_spread){.varying = varying}); }

ax_value ax_spread_to(ax_value x, const ax_spread *wanted) {
  if (ax_failed()) return ax_poison;
  ax_spread on = ax_typeof(x).spread;
  ax_axis_set checked = ax_checked_axes(&ax_builder_current()->axes), reduced = on.reduced & wanted->varying & checked;
  ax_axis_set invariant = checked & ~(on.varying | on.reduced | on.unreduced);
  x = ax_cast(&ax_prim_pvary, x, wanted->varying & invariant);
  x = ax_cast(&ax_prim_reduced_vary_cast, x, reduced);
  return ax_cast(&ax_prim_preduced, x, wanted->reduced & invariant & ~wanted->varying);
}

void ax_spread_meet(ax_spread *all, const ax_spread *on) {
  all->varying |= on->varying;
  all->reduced |= on->reduced | on->unreduced;
}

const ax_value *ax_spread_together(const ax_value *in, uint32_t count) {
  if (count < 2) return in;
  const ax_spread first = ax_typeof(in[0]).spread;
  ax_spread all = {0};
  bool alike = true;
  ax_spread_meet(&all, &first);
  for (uint32_t i = 1; i < count; i++) {
    const ax_spread on = ax_typeof(in[i]).spread;
    alike = alike && on.varying == first.varying && on.reduced == first.reduced && on.unreduced == first.unreduced;
    ax_spread_meet(&all, &on);
  }
  if (alike) return in;
  ax_value *made = ax_trace_alloc(count * sizeof made[0]);
  for (uint32_t i = 0; made != NULL && i < count; i++) made[i] = ax_spread_to(in[i], &all);
  return made;
}

/* --- Checking --- */

ax_axis_state ax_spread_state(const ax_spread *on, uint32_t axis) {
  ax_axis_set bit = (ax_axis_set)1 << axis;
  if ((on->varying & bit) != 0) return AX_IS_VARYING;
  if ((on->reduced & bit) != 0) return AX_IS_REDUCED;
  return (on->unreduced & bit) != 0 ? AX_IS_UNREDUCED : AX_IS_INVARIANT;
}

const char *ax_state_name(const ax_spread *on, uint32_t axis) {
  static const char *const names[] = {[AX_IS_INVARIANT] = "invariant", [AX_IS_VARYING] = "varying", [AX_IS_REDUCED] = "reduced"};
  static const char *const unreduced[] = {
      [AX_UNREDUCED_SUM] = "unreduced", [AX_UNREDUCED_MAX] = "unreduced by max", [AX_UNREDUCED_MIN] = "unreduced by min"};
  ax_axis_state state = ax_spread_state(on, axis);
  return state == AX_IS_UNREDUCED ? unreduced[on->kind] : names[state];
}

const char *ax_reduce_advice(ax_unreduced_kind kind) {
  static const char *const names[] = {[AX_UNREDUCED_SUM] = "unreduced_psum makes it invariant and unreduced_psum_scatter varying",
                                      [AX_UNREDUCED_MAX] = "unreduced_pmax makes it invariant",
                                      [AX_UNREDUCED_MIN] = "unreduced_pmin makes it invariant"};
  return names[kind];
}

/* 'along "d" operand 0 is varying and operand 1 unreduced: what can be done' */
static ax_status refuse(const ax_infer_args *args, uint32_t axis, const char *advice) {
  enum { most_shown = 6 };
  ax_text text = {0};
  uint32_t shown = args->in_count < most_shown ? args->in_count : most_shown;
  for (uint32_t i = 0; i < shown; i++)
    ax_text_add(&text, "%soperand %u is %s",
                i == 0                    ? ""
                : i + 1 == args->in_count ? " and "
                                          : ", ",
                i, ax_state_name(&args->in[i].spread, axis));
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "along \"%s\" %s%s: %s", args->axes->axis[axis].name,
                              text.data != NULL ? text.data : "?", shown < args->in_count ? ", .." : "", advice);
  ax_text_deinit(&text);
  return status;
}

/* Whether operand i of `count` may be unreduced where others are, and whether it must be. */
static bool may_be_unreduced(ax_linearity linear, uint32_t i, uint32_t count) {
  if (linear == AX_LINEAR_FIRST) return i == 0;
  if (linear == AX_LINEAR_FIRST_TWO) return i < 2;
  if (linear == AX_LINEAR_OUTER) return i != 1;
  if (linear == AX_LINEAR_LAST) return i + 1 == count;
  return linear == AX_LINEAR_REST ? i > 0 : linear != AX_LINEAR_NOT;
}
static bool must_be_unreduced(ax_linearity linear, uint32_t i, uint32_t count) {
  return linear != AX_LINEAR_ONE && linear != AX_LINEAR_SOME && may_be_unreduced(linear, i, count);
}

static const char *unreduced_advice(ax_linearity linear) {
  static const char *const advice[] = {
      [AX_LINEAR_ALL] =
          "all operands must be unreduced, or none: vary_unreduced_cast makes a part of what varies, unreduced_psum makes the sum",
      [AX_LINEAR_ONE] = "one operand may be unreduced, if the others are reduced or invariant; unreduced_psum makes the sum",
      [AX_LINEAR_FIRST] =
          "the first operand may be unreduced, if the others are reduced or invariant; unreduced_psum makes the sum",
      [AX_LINEAR_FIRST_TWO] =
          "the first two operands must be unreduced, or none, and the others reduced or invariant; unreduced_psum makes the sum",
      [AX_LINEAR_OUTER] =
          "the operand and the updates must be unreduced, or neither, and the indices reduced or invariant; unreduced_psum makes "
          "the sum",
      [AX_LINEAR_REST] =
          "the cases must all be unreduced, or none, and what chooses reduced or invariant; unreduced_psum makes the sum",
      [AX_LINEAR_LAST] =
          "the last operand may be unreduced, if the others are reduced or invariant; unreduced_psum makes the sum",
      [AX_LINEAR_SOME] = "an unreduced operand goes with unreduced and reduced ones",
  };
  return advice[linear];
}

/* Along an axis over which some are unreduced and none varies. */
static ax_status check_unreduced(const ax_infer_args *args, uint32_t axis) {
  ax_linearity linear = args->prim->linear;
  uint32_t count = 0;
  bool wrong = false;
  for (uint32_t i = 0; i < args->in_count; i++) {
    ax_axis_state state = ax_spread_state(&args->in[i].spread, axis);
    bool unreduced = state == AX_IS_UNREDUCED;
    if (state == AX_IS_INVARIANT) return refuse(args, axis, "preduced makes what is invariant reduced");
    count += unreduced;
    wrong = wrong || (unreduced ? !may_be_unreduced(linear, i, args->in_count) : must_be_unreduced(linear, i, args->in_count));
  }
  return wrong || (linear == AX_LINEAR_ONE && count > 1) ? refuse(args, axis, unreduced_advice(linear)) : AX_OK;
}

static ax_status check_axis(const ax_infer_args *args, uint32_t axis, const ax_spread *all) {
  ax_axis_state state = ax_spread_state(all, axis);
  if (state == AX_IS_UNREDUCED) return check_unreduced(args, axis);
  for (uint32_t i = 0; i < args->in_count; i++) {
    ax_axis_state own = ax_spread_state(&args->in[i].spread, axis);
    if (own == state) continue;
    if (own == AX_IS_UNREDUCED)
      return refuse(args, axis,
                    "what is unreduced does not go with what varies; unreduced_psum_scatter and unreduced_psum make the sum, "
                    "vary_unreduced_cast makes a part of what varies");
    return refuse(args, axis, state == AX_IS_REDUCED ? "preduced makes what is invariant reduced"
                              : own == AX_IS_REDUCED ? "reduced_vary_cast makes what is reduced vary"
                                                     : "pvary makes what is invariant vary");
  }
  return AX_OK;
}

/* Unreduced operands are all of one kind, and of one the operation has a meaning for. */
static ax_status check_kinds(const ax_infer_args *args, ax_unreduced_kind *kind) {
  bool any = false, floats = true;
  for (uint32_t i = 0; i < args->in_count; i++) {
    const ax_spread *on = &args->in[i].spread;
    if (on->unreduced == 0) continue;
    if (any && on->kind != *kind)
      return ax_error(AX_INVALID_ARGUMENT, "the operands are unreduced by %s and by %s, over %s; %s", ax_kind_names[*kind],
                      ax_kind_names[on->kind], ax_axis_set_string(on->unreduced, args->axes), ax_reduce_advice(on->kind));
    *kind = on->kind;
    any = true;
    floats = floats && ax_rounds(args->in[i].dtype);
  }
  uint32_t kinds = args->prim->kinds;
  if (!any || (kinds >> *kind & 1) != 0 || (*kind == AX_UNREDUCED_SUM && (kinds & AX_KINDS_FLOAT_SUM) != 0 && floats)) return AX_OK;
  for (uint32_t i = 0; i < args->in_count; i++)
    if (args->in[i].spread.unreduced != 0)
      return ax_error(AX_INVALID_ARGUMENT,
                      "operand %u is unreduced by %s over %s, and %s of the parts is no part of what it is of the whole; %s", i,
                      ax_kind_names[*kind], ax_axis_set_string(args->in[i].spread.unreduced, args->axes), args->prim->name,
                      ax_reduce_advice(*kind));
  return AX_OK;
}

ax_status ax_spread_join(const ax_infer_args *args, ax_axis_set axes, ax_spread *out) {
  ax_spread all = {0}, common = {.varying = axes, .reduced = axes, .unreduced = axes};
  for (uint32_t i = 0; i < args->in_count; i++) {
    const ax_spread *on = &args->in[i].spread;
    all.varying |= on->varying & axes, common.varying &= on->varying;
    all.reduced |= on->reduced & axes, common.reduced &= on->reduced;
    all.unreduced |= on->unreduced, common.unreduced &= on->unreduced;
  }
  if (all.unreduced != 0) AX_TRY(check_kinds(args, &all.kind));
  all.unreduced &= axes & ~all.varying;
  all.reduced &= ~(all.varying | all.unreduced);
  ax_axis_set differ = (all.varying & ~common.varying) | (all.reduced & ~common.reduced) | all.unreduced;
  for (uint32_t axis = 0; differ >> axis != 0; axis++)
    if ((differ >> axis & 1) != 0) AX_TRY(check_axis(args, axis, &all));
  if (all.unreduced == 0) all.kind = AX_UNREDUCED_SUM;
  *out = all;
  return AX_OK;
}

ax_status ax_spread_local(const ax_infer_args *args) {
  ax_spread out;
  AX_TRY(ax_spread_join(args, ~(ax_axis_set)0, &out));
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k].spread = out;
  return AX_OK;
}

ax_status ax_spread_each(const ax_infer_args *args) {
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k].spread = args->in[k].spread;
  return AX_OK;
}

ax_status ax_spread_body(const ax_infer_args *args) { return (void)args, AX_OK; }

/* --- What is the same on all devices, as a value of any type --- */

ax_value ax_once(ax_value x, const ax_axes *names) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  ax_value index = ax_bind1(&ax_prim_axis_index, names, NULL, 0);
  ax_value zeros = ax_full(type.dtype, AX_LIST(type.rank, type.dims), 0), is_first = ax_eq(index, ax_full(AX_S32, AX_DIMS(), 0));
  return ax_select_n(is_first, zeros, x);
}

static ax_value place(ax_value x, const ax_spread *on) {
  x = ax_spread_to(x, &(ax_spread){.varying = on->varying | on->unreduced, .reduced = on->reduced});
  return ax_cast_unreduced(x, on->unreduced, on->kind);
}

ax_value ax_placed(ax_value x, const ax_spread *on) {
  if (ax_failed()) return ax_poison;
  const ax_axes names = ax_axis_set_names(on->unreduced, &ax_builder_current()->axes);
  return place(names.count > 0 && on->kind == AX_UNREDUCED_SUM ? ax_once(x, &names) : x, on);
}

ax_value ax_filled(const ax_type *type, double value) {
  ax_value x = ax_full(type->dtype, AX_LIST(type->rank, type->dims), value);
  return value == 0 ? place(x, &type->spread) : ax_placed(x, &type->spread);
}
