/* psum: T[d..]{V: axes, ..} -> T[d..]{..}            y = sum over the group's members of x
         T[d..]{U: axes, ..} -> T[d..]{..}
   pmax, pmin: the same with the largest and the smallest, from Umax and Umin.
   Parameters: axes. With groups the result differs from group to group, and stays varying over the axes.
   Errors: an unknown axis or one named twice; an operand that does not vary over all checked axes named, nor is unreduced over all
   of them by this combination; bool.
   Numerics: members are combined in index order, so the result does not depend on the order of arrival; bf16/f16 in f32, and sums
   of floats over more than 128 members in f64, rounded once.
   psum is linear. Transpose: on a checked axis the result is one value for all, whose cotangent reaches each member's x: pvary,
   or preduced where the operand was unreduced.
   On an unchecked axis every device holds its own copy of the result, with its own cotangent: psum again.
   The derivative of pmax is shared equally by the members that hold the largest value, as reduce_max's is (jax.lax has none).
   Batching: over a named axis that is among the axes, psum is a sum over the batch dimension. */
#include <math.h>
#include <string.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/composite.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef struct psum_params {
  ax_axes axes;
} psum_params;

static ax_status infer(const ax_infer_args *args) {
  if (args->in[0].dtype == AX_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool; convert_element_type gives one");
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_scalar combination(const ax_prim *prim) {
  if (prim == &ax_prim_pmax) return AX_SCALAR_MAX;
  return prim == &ax_prim_pmin ? AX_SCALAR_MIN : AX_SCALAR_ADD;
}

static ax_status eval(const ax_eval_args *args) {
  ax_scalar op = combination(args->eqn->prim);
  const ax_tensor *first = args->out[0];
  int64_t elems = ax_dims_elems(first->rank, first->dims);
  if (args->lanes == 1) memmove(first->data, args->in[0]->data, (size_t)elems * ax_dtype_bytes(first->dtype));
  for (int64_t i = 0; i < elems && args->lanes > 1; i++) {
    ax_number total = ax_combine_members(op, args->in, args->lanes, i);
    for (uint32_t lane = 0; lane < args->lanes; lane++) ax_number_store(first->dtype, args->out[lane]->data, i, total);
  }
  return AX_OK;
}

/* d pmax(x) = psum(dx where x is the largest) / how many are. Linear in dx. */
static void extreme_jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_value x = ax_own_parts(args->in[0]), y = ax_bind1(eqn->prim, eqn->params, args->in, 1);
  args->out[0] = y;
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0])) return;
  ax_value holds = ax_convert_element_type(ax_eq(x, y), ax_typeof(x).dtype);
  ax_value count = ax_bind1(&ax_prim_psum, eqn->params, &holds, 1);
  ax_value held = ax_mul(args->tangent_in[0], holds);
  args->tangent_out[0] = ax_div(ax_bind1(&ax_prim_psum, eqn->params, &held, 1), count);
}

static void transpose(const ax_transpose_args *args) {
  psum_params checked, unchecked;
  ax_value cotangent = args->cotangent[0];
  if (((const psum_params *)args->eqn->params)->axes.groups.count > 0) { /* every member's result has a cotangent of its own */
    args->out[0] = ax_bind1(&ax_prim_psum, args->eqn->params, &cotangent, 1);
    return;
  }
  ax_axes_split(args->eqn->params, &checked.axes, &unchecked.axes);
  if (unchecked.axes.count > 0) cotangent = ax_bind1(&ax_prim_psum, &unchecked, &cotangent, 1);
  const ax_prim *cast = ax_was_unreduced(args) ? &ax_prim_preduced : &ax_prim_pvary;
  if (checked.axes.count > 0) cotangent = ax_bind1(cast, &checked, &cotangent, 1);
  args->out[0] = cotangent;
}

static void ungroup(const ax_ungroup_args *args) {
  args->out[0] = ax_ungrouped_combine(combination(args->eqn->prim), args->axes, args->in[0]);
}

static void batch(const ax_batch_args *args) {
  const ax_prim *prim = args->eqn->prim;
  psum_params rest;
  ax_value x = args->in[0];
  int dim = args->in_dim[0];
  if (ax_axes_without(args->eqn->params, args->axis, &rest.axes)) {
    x = ax_combine_batch(combination(prim), x, dim, args->size);
    dim = -1;
  }
  args->out[0] = rest.axes.count > 0 ? ax_bind1(prim, &rest, &x, 1) : x;
  args->out_dim[0] = dim;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  const psum_params *params = eqn->params;
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ONE, .combine = combination(eqn->prim)};
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(&params->axes, &lower->plan->mesh, &set));
  if (ax_axis_set_size(set, &lower->plan->mesh) == 1) { /* a group of one: its sum is what it has */
    out[0] = in[0];
    return AX_OK;
  }
  ax_exchange_whole(&exchange, ax_type_elems(type));
  return ax_lower_combine(lower, &exchange, in[0], type, lower->differs[eqn->out], &out[0]);
}

/* Extremes of complex numbers: of the real parts, and of the imaginary parts that stand beside that. NaN in either part wins. */
static ax_value by_parts(const ax_eqn *eqn, const ax_value *in) {
  const double none = eqn->prim == &ax_prim_pmax ? -INFINITY : INFINITY;
  ax_value x = ax_real_part(in[0]), y = ax_imag_part(in[0]);
  x = ax_where(ax_eq(y, y), x, ax_real(NAN));
  ax_value most = ax_bind1(eqn->prim, eqn->params, &x, 1), beside = ax_where(ax_eq(x, most), y, ax_real(none));
  ax_value second = ax_bind1(eqn->prim, eqn->params, &beside, 1);
  return ax_complex(most, ax_where(ax_eq(most, most), second, most));
}

static ax_status extreme_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(&((const psum_params *)eqn->params)->axes, &lower->plan->mesh, &set));
  if (ax_axis_set_size(set, &lower->plan->mesh) > 1) return ax_lower_expanded(lower, eqn, by_parts, in, out);
  out[0] = in[0];
  return AX_OK;
}

/* stablehlo.all_reduce with the combination as its region. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  const bool has_region = eqn->prim == &ax_prim_psum || !ax_is_complex(hlo->program->types[eqn->out].dtype);
  if (!has_region) return ax_hlo_expanded(hlo, eqn, by_parts, in, out);
  ax_hlo_add_groups(&attributes, eqn->params);
  ax_hlo_add_unit(&attributes, "use_global_device_ids");
  out[0] = ax_hlo_combining(hlo, eqn, "stablehlo.all_reduce", combination(eqn->prim), in, &attributes);
  return AX_OK;
}

/* Operands are combined in the dtype of the results. */
static ax_status reduce_read(const ax_hlo_read_args *args, uint32_t k, const char *names) {
  const ax_dtype dtype = args->out_types[k].dtype;
  const ax_value x = ax_convert_element_type(args->in[k], dtype);
  const ax_combining known = ax_hlo_combining_of(args, dtype);
  bool uneven = false;
  if (known == NULL) AX_TRY(ax_hlo_groups_uneven(args, AX_HLO_BY_IDS, &uneven));
  if (uneven) return ax_hlo_combine_uneven(args, x, &args->out[k]);
  if (known == NULL) return ax_hlo_combine_rows(args, ax_all_gather(x, names, 0, false), &args->out[k]);
  args->out[k] = known(x, names);
  return AX_OK;
}

static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  if (args->op->operand_count != args->op->result_count) return ax_error(AX_INVALID_ARGUMENT, "it has a result for each operand");
  AX_TRY(ax_hlo_read_groups(args, AX_HLO_BY_IDS, &names, NULL));
  for (uint32_t k = 0; k < args->op->operand_count && !ax_failed(); k++) AX_TRY(reduce_read(args, k, names));
  return AX_OK;
}

/* The first of each group has the result, and the others have zeros. */
static ax_status first_read(const ax_hlo_read_args *args) {
  ax_hlo_peers peers;
  AX_TRY(read(args));
  AX_TRY(ax_hlo_read_peers(args, AX_HLO_BY_IDS, true, &peers));
  for (int64_t d = 0; d < peers.devices; d++) peers.place[d] = peers.place[d] == d;
  const ax_type type = (ax_array_type)(AX_S64, AX_LIST(1, &peers.devices));
  const ax_value first = ax_ne(ax_hlo_own_row(args, &type, peers.place), ax_integer(0));
  for (uint32_t k = 0; k < args->op->result_count; k++) args->out[k] = ax_where(first, args->out[k], ax_full_like(args->out[k], 0));
  ax_free(peers.place);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.all_reduce", read}, {"stablehlo.collective_reduce", first_read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(psum_params, axes)}};

#define REDUCE_RECORD(name_, kinds_, jvp_, ...) /* the transpose, and further slots */ \
  const ax_prim ax_prim_##name_ = {                    \
      .name = #name_,                                  \
      .kind = AX_COLLECTIVE,                           \
      .effects = AX_EFFECT_EXCHANGE,                   \
      .traffic = AX_TRAFFIC_COMBINED,                  \
      .linear = AX_LINEAR_ALL,                         \
      .kinds = kinds_,                                 \
      .in_count = 1,                                   \
      .out_count = 1,                                  \
      AX_PARAMS(params, psum_params),                  \
      .infer = infer,                                  \
      .spread = ax_spread_sum,                         \
      .eval = eval,                                    \
      .differs = ax_differs_drop,                      \
      .jvp = jvp_,                                     \
      .linearize = jvp_,                               \
      .transpose = __VA_ARGS__,                        \
      .batch = batch,                                  \
      .ungroup = ungroup,                              \
      .simplify = ax_simplify_nothing,                 \
      .shard = ax_shard_pointwise,                     \
      .lower = lower,                                  \
      .hlo = hlo,                                      \
  }
REDUCE_RECORD(psum, AX_KINDS_SUM, ax_jvp_linear, transpose, .complex = ax_complex_parts, .reads = readers);
REDUCE_RECORD(pmax, AX_KINDS_MAX, extreme_jvp, ax_absent_transpose, .complex = extreme_complex);
REDUCE_RECORD(pmin, AX_KINDS_MIN, extreme_jvp, ax_absent_transpose, .complex = extreme_complex);

/* Combined in ascending order of members, however they are listed. */
static bool sort_groups(ax_axes *axes) {
  ax_groups *groups = &axes->groups;
  if (groups->count == 0 || ax_groups_sorted(groups, &ax_builder_current()->arena, groups)) return true;
  ax_fail(ax_out_of_memory(groups->end[groups->count - 1] * sizeof groups->member[0]));
  return false;
}

static ax_value reduce(const ax_prim *prim, ax_value x, const char *axes);

/* How many are true; whether any is, or all are: as bytes. */
static ax_value reduce_bools(const ax_prim *prim, ax_value x, const char *axes) {
  bool sums = prim == &ax_prim_psum;
  ax_value reduced = reduce(prim, ax_convert_element_type(x, sums ? AX_S32 : AX_U8), axes);
  return sums ? reduced : ax_ne(reduced, ax_integer(0));
}

static ax_value reduce(const ax_prim *prim, ax_value x, const char *axes) {
  psum_params params;
  int64_t count;
  if (ax_is_number(x)) return ax_reduce_number(prim->name, combination(prim), x, axes);
  if (!ax_failed() && ax_typeof(x).dtype == AX_BOOL) return reduce_bools(prim, x, axes);
  if (!ax_reduce_positional(prim->name, combination(prim), &x, &axes, &count)) return ax_poison;
  if (!ax_collective_operand(prim, &x, axes, &params.axes)) return ax_poison;
  if (!sort_groups(&params.axes)) return ax_poison;
  return params.axes.count > 0 ? ax_bind1(prim, &params, &x, 1) : x;
}

ax_value ax_unreduced_psum(ax_value x, const char *axes) {
  return ax_insist("unreduced_psum", x, axes, AX_IS_UNREDUCED) ? ax_psum(x, axes) : ax_poison;
}
ax_value ax_unreduced_pmax(ax_value x, const char *axes) {
  return ax_insist("unreduced_pmax", x, axes, AX_IS_UNREDUCED) ? ax_pmax(x, axes) : ax_poison;
}
ax_value ax_unreduced_pmin(ax_value x, const char *axes) {
  return ax_insist("unreduced_pmin", x, axes, AX_IS_UNREDUCED) ? ax_pmin(x, axes) : ax_poison;
}
ax_value ax_psum_invariant(ax_value x, const char *axes) {
  return ax_insist("psum_invariant", x, axes, AX_IS_VARYING) ? ax_psum(x, axes) : ax_poison;
}

ax_value ax_psum(ax_value x, const char *axes) { return reduce(&ax_prim_psum, x, axes); }
ax_value ax_pmax(ax_value x, const char *axes) { return reduce(&ax_prim_pmax, x, axes); }
ax_value ax_pmin(ax_value x, const char *axes) { return reduce(&ax_prim_pmin, x, axes); }

ax_value ax_pmean(ax_value x, const char *axes) {
  static const char name[] = "pmean";
  ax_type type;
  ax_axes names;
  int64_t count;
  if (ax_is_number(x)) return ax_reduce_number(name, AX_SCALAR_NONE, x, axes);
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (type.dtype == AX_BOOL) x = ax_convert_element_type(x, AX_S32);
  if (!ax_reduce_positional(name, AX_SCALAR_ADD, &x, &axes, &count) || !ax_collective_names(name, axes, &names)) return ax_poison;
  ax_value sum = ax_psum(x, axes);
  if (!ax_rounds(type.dtype)) {
    type.dtype = ax_dtype_bytes(type.dtype) == 8 ? AX_F64 : AX_F32;
    sum = ax_convert_element_type(sum, type.dtype);
  }
  if (ax_failed() || ax_groups_even(&names.groups))
    return ax_div(sum, ax_full_like(sum, (double)(count * ax_axes_members(&names))));
  return ax_div(sum, ax_convert_element_type(ax_own_group_size(&names), type.dtype));
}
