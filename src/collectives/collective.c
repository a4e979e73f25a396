/* Rules and helpers of the collectives. Names of axes stay names until infer or lower needs the set. */
#include "collectives/collective.h"

#include <string.h>

#include "ops/pointwise.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"

/* --- infer --- */

ax_status ax_collective_size(const ax_infer_args *args, const ax_axes *names, int64_t *size) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(names, args->axes, &set));
  *size = ax_axis_set_size(set, args->axes);
  if (names->groups.count == 0) return AX_OK;
  const ax_groups *groups = &names->groups;
  *size = ax_group_size(groups, 0);
  for (uint32_t g = 1; g < groups->count; g++)
    if (ax_group_size(groups, g) != *size)
      return ax_error(
          AX_INVALID_ARGUMENT, "group 0 has %lld members and group %u has %u; here groups must be of one size, %s",
          (long long)*size, g, ax_group_size(groups, g),
          args->prim == &ax_prim_ragged_all_to_all ? "as each member gets as many slices" : "which the result's shape depends on");
  return AX_OK;
}

ax_status ax_require_dimension(const char *what, int64_t dimension, const ax_infer_args *args) {
  if (dimension >= 0 && dimension < args->in[0].rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s is %lld, but the operand has rank %u", what, (long long)dimension,
                  args->in[0].rank);
}

ax_status ax_grow_dimension(ax_type *result, int64_t dimension, int64_t size) {
  const int64_t dim = result->dims[dimension];
  if (ax_mul_i64(dim, size, &result->dims[dimension])) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%lld times the group's %lld members is too large", (long long)dim, (long long)size);
}

ax_status ax_cut_dimension(ax_type *result, int64_t dimension, int64_t size, const ax_infer_args *args) {
  int64_t *dim = &result->dims[dimension];
  if (*dim % size != 0) {
    ax_axis_set set;
    AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld of size %lld does not divide by the %lld members along %s",
                    (long long)dimension, (long long)*dim, (long long)size, ax_axis_set_string(set, args->axes));
  }
  *dim /= size;
  return AX_OK;
}

/* --- spread --- */

/* The result of groups differs from group to group, whatever else. */
static bool grouped(const void *params) { return ((const ax_axes *)params)->groups.count > 0; }

/* 'the operand f32[4]{V:a U:b} is varying along "a" and unreduced along "b"; it must be in one state along all the axes' */
static ax_status mixed(const ax_type *type, ax_axis_set set, const ax_mesh *axes) {
  ax_text text = {0};
  for (uint32_t axis = 0; set >> axis != 0; axis++)
    if ((set >> axis & 1) != 0)
      ax_text_add(&text, "%s%s along \"%s\"", text.length > 0 ? " and " : "", ax_state_name(&type->spread, axis),
                  axes->axis[axis].name);
  ax_status status = ax_error(AX_INVALID_ARGUMENT,
                              "the operand %s is %s; along all axes named it must be in one state, as the casts (pcast) make it",
                              ax_type_string(type, axes), text.data != NULL ? text.data : "?");
  ax_text_deinit(&text);
  return status;
}

/* The state of the operand along all of `set`, which are checked axes. */
static ax_status state_along(const ax_type *type, ax_axis_set set, const ax_mesh *axes, ax_axis_state *out) {
  *out = AX_IS_VARYING; /* along no checked axis each device has its own */
  bool first = true;
  for (uint32_t axis = 0; set >> axis != 0; axis++) {
    if ((set >> axis & 1) == 0) continue;
    ax_axis_state state = ax_spread_state(&type->spread, axis);
    if (!first && state != *out) return mixed(type, set, axes);
    *out = state;
    first = false;
  }
  return AX_OK;
}

bool ax_collective_state(const char *who, const ax_type *type, const ax_axes *names, ax_axis_set *set, ax_axis_state *out) {
  if (ax_failed()) return false;
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_status status = ax_axes_resolve(names, axes, set);
  *set &= status == AX_OK ? ax_checked_axes(axes) : 0;
  if (status == AX_OK) status = state_along(type, *set, axes, out);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", who));
  return status == AX_OK;
}

static uint32_t lowest(ax_axis_set set) { return (uint32_t)__builtin_ctzll(set); }

/* From varying to the state `to`; from unreduced, where the collective makes the sum, to that too. */
static ax_status spread(const ax_infer_args *args, bool makes_sum, ax_axis_state to) {
  const ax_type *operand = &args->in[0];
  ax_axis_set set;
  ax_axis_state from;
  ax_spread out;
  AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
  AX_TRY(state_along(operand, set & ax_checked_axes(args->axes), args->axes, &from));
  AX_TRY(ax_spread_join(args, ~set, &out));
  set &= ax_checked_axes(args->axes);
  const char *advice = from == AX_IS_INVARIANT                 ? "pvary makes it varying"
                       : from == AX_IS_REDUCED                 ? "reduced_vary_cast makes it varying"
                       : from == AX_IS_UNREDUCED && !makes_sum ? ax_reduce_advice(operand->spread.kind)
                                                               : NULL;
  if (advice != NULL) return ax_error(AX_INVALID_ARGUMENT, "the operand %s is %s over %s; %s", ax_type_string(operand, args->axes),
                                      ax_state_name(&operand->spread, lowest(set)), ax_axis_set_string(set, args->axes), advice);
  if (from == AX_IS_UNREDUCED && grouped(args->params))
    return ax_error(AX_INVALID_ARGUMENT,
                    "the operand %s is unreduced over %s, and its parts are combined over all members, not over groups",
                    ax_type_string(operand, args->axes), ax_axis_set_string(set, args->axes));
  if (to == AX_IS_VARYING || grouped(args->params)) out.varying |= set;
  if (to == AX_IS_REDUCED) out.reduced |= set;
  args->out[0].spread = out;
  return AX_OK;
}

ax_status ax_spread_drop(const ax_infer_args *args) { return spread(args, false, AX_IS_INVARIANT); }
ax_status ax_spread_keep(const ax_infer_args *args) { return spread(args, false, AX_IS_VARYING); }
ax_status ax_spread_reduced(const ax_infer_args *args) { return spread(args, false, AX_IS_REDUCED); }
ax_status ax_spread_sum(const ax_infer_args *args) { return spread(args, true, AX_IS_INVARIANT); }
ax_status ax_spread_scatter(const ax_infer_args *args) { return spread(args, true, AX_IS_VARYING); }

bool ax_was_unreduced(const ax_transpose_args *args) {
  ax_axis_set set;
  if (ax_failed() || ax_axes_resolve(args->eqn->params, &ax_builder_current()->axes, &set) != AX_OK) return false;
  return (args->in_types[0].spread.unreduced & set) != 0;
}

/* --- eval --- */

ax_strided ax_tensor_part(const ax_tensor *tensor, int64_t dim, int64_t start) {
  ax_strided part = ax_strided_dense(tensor);
  part.offset = start * part.strides[dim];
  return part;
}

/* bf16 and f16 are combined in f32 and rounded once; so are sums over many members, in f64: one after the other they would get
   worse with every member. */
ax_dtype ax_combined_in(ax_scalar op, ax_dtype dtype, int64_t members) {
  enum { many_members = 128 };
  if (op == AX_SCALAR_ADD && ax_rounds(dtype) && members > many_members) return ax_widest_dtype(dtype);
  return ax_is_narrow_float(dtype) ? AX_F32 : dtype;
}

ax_number ax_combine_members(ax_scalar op, ax_tensor *const *members, uint32_t count, int64_t i) {
  ax_dtype dtype = members[0]->dtype, wide = ax_combined_in(op, dtype, count);
  ax_number total = ax_number_load(dtype, members[0]->data, i);
  for (uint32_t m = 1; m < count; m++) {
    ax_number pair[] = {total, ax_number_load(dtype, members[m]->data, i)};
    total = ax_number_round(wide, ax_scalar_eval(op, wide, pair, 0));
  }
  return total;
}

/* --- differs --- */

static ax_axis_set named_axes(const ax_differs_args *args) {
  ax_axis_set set = 0;
  ax_status status = ax_axes_resolve(args->eqn->params, &args->program->axes, &set);
  assert(status == AX_OK); /* infer has resolved them */
  (void)status;
  return set;
}

void ax_differs_drop(const ax_differs_args *args) {
  if (grouped(args->eqn->params)) ax_differs_add(args);
  else args->out[0] = args->in[0] & ~named_axes(args);
}

void ax_differs_add(const ax_differs_args *args) {
  args->out[0] = named_axes(args);
  if (args->eqn->in_count > 0) args->out[0] |= args->in[0];
}

/* --- Names --- */

static void add_name(ax_axes *names, const char *name) { memcpy(names->name[names->count++], name, AX_MAX_NAME); }

bool ax_axes_around(const ax_axes *names, const char *axis, ax_axes *before, ax_axes *after) {
  bool found = false;
  *before = *after = (ax_axes){0};
  for (uint32_t i = 0; i < names->count; i++) {
    if (axis != NULL && strcmp(names->name[i], axis) == 0)
      found = true;
    else
      add_name(found ? after : before, names->name[i]);
  }
  return found;
}

bool ax_axes_without(const ax_axes *names, const char *axis, ax_axes *out) {
  ax_axes after;
  bool found = ax_axes_around(names, axis, out, &after);
  out->groups = names->groups; /* of all the names: who has groups is batched over none of them (xform/batch.c) */
  for (uint32_t i = 0; i < after.count; i++) add_name(out, after.name[i]);
  return found;
}

void ax_axes_split(const ax_axes *names, ax_axes *checked, ax_axes *unchecked) {
  *checked = *unchecked = (ax_axes){0};
  if (ax_failed()) return;
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(axes, names->name[i]);
    if (axis >= 0) add_name(axes->axis[axis].unchecked ? unchecked : checked, names->name[i]);
  }
}

int64_t ax_axes_members(const ax_axes *names) {
  int64_t members = 1;
  if (ax_failed()) return members;
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(axes, names->name[i]);
    if (axis >= 0) members *= axes->axis[axis].size;
  }
  return names->groups.count > 0 ? ax_group_size(&names->groups, 0) : members;
}

/* --- Building equations --- */

bool ax_collective_names(const char *who, const char *axes, ax_axes *out) {
  *out = (ax_axes){0};
  if (ax_failed()) return false;
  ax_axis_set set;
  ax_status status = ax_axes_parse(axes, &ax_builder_current()->arena, out);
  if (status == AX_OK) status = ax_axes_resolve(out, &ax_builder_current()->axes, &set);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", who));
  return status == AX_OK;
}

bool ax_ungrouped_names(const char *who, const char *axes, ax_axes *out) {
  if (!ax_collective_names(who, axes, out)) return false;
  if (out->groups.count > 0) ax_reject_as(who, "it takes no groups: it is over all members along its axes");
  return !ax_failed();
}

bool ax_collective_operand(const ax_prim *prim, ax_value *x, const char *axes, ax_axes *out) {
  ax_axis_set set;
  if (!ax_collective_names(prim->name, axes, out)) return false;
  const ax_status status = ax_axes_resolve(out, &ax_builder_current()->axes, &set);
  if (status != AX_OK) { /* no memory: the names are known, and their groups sound */
    ax_fail(status);
    return false;
  }
  ax_spread on = ax_typeof(*x).spread;
  if ((set & (on.reduced | on.unreduced)) == 0) *x = ax_vary_to(*x, set);
  uint32_t id = ax_value_id(*x);
  if (id == AX_NONE) return false;
  *x = (ax_value){ax_builder_current()->serial, id}; /* a value of this trace, as what a group of one gives is (start.c) */
  return true;
}

bool ax_insist(const char *who, ax_value x, const char *axes, ax_axis_state wanted) {
  ax_axes names;
  ax_axis_set set;
  ax_axis_state state;
  ax_type type = ax_typeof(x);
  if (!ax_collective_names(who, axes, &names) || !ax_collective_state(who, &type, &names, &set, &state)) return false;
  bool fits = wanted == AX_IS_UNREDUCED ? state == AX_IS_UNREDUCED : state == AX_IS_VARYING || state == AX_IS_INVARIANT;
  if (set == 0 || fits) return true;
  const ax_mesh *mesh = &ax_builder_current()->axes;
  ax_reject_as(who, "the operand %s is not %s over %s; %s", ax_type_string(&type, mesh),
               wanted == AX_IS_UNREDUCED ? "unreduced" : "varying", ax_axis_set_string(set, mesh),
               wanted == AX_IS_UNREDUCED ? "vary_unreduced_cast makes what varies unreduced"
               : state == AX_IS_REDUCED  ? "reduced_vary_cast makes it varying"
                                         : ax_reduce_advice(type.spread.kind));
  return false;
}

ax_value ax_split_dim(ax_value x, int64_t d, int64_t major) {
  ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK + 1];
  if (ax_failed()) return ax_poison;
  for (uint32_t i = 0; i < type.rank; i++) dims[i < d ? i : i + 1] = type.dims[i];
  dims[d] = major;
  dims[d + 1] = type.dims[d] / major;
  return ax_reshape(x, AX_LIST(type.rank + 1, dims));
}

ax_value ax_fold_dims(ax_value x, int64_t d) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  int64_t folded = type.dims[d] * type.dims[d + 1];
  for (uint32_t i = (uint32_t)d + 1; i + 1 < type.rank; i++) type.dims[i] = type.dims[i + 1];
  type.dims[d] = folded;
  return ax_reshape(x, AX_LIST(type.rank - 1, type.dims));
}

ax_value ax_drop_dim(ax_value x, int64_t d) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  for (uint32_t i = (uint32_t)d; i + 1 < type.rank; i++) type.dims[i] = type.dims[i + 1];
  return ax_reshape(x, AX_LIST(type.rank - 1, type.dims));
}

ax_value ax_own_part(ax_value x, const ax_axes *names, int64_t dimension) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  ax_dtype dtype = type.dims[dimension] > INT32_MAX ? AX_S64 : AX_S32;
  int64_t part = type.dims[dimension] / ax_axes_members(names);
  ax_value index = ax_convert_element_type(ax_bind1(&ax_prim_axis_index, names, NULL, 0), dtype);
  ax_value starts[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++)
    starts[d] = d == dimension ? ax_mul(index, ax_full(dtype, AX_DIMS(), (double)part)) : ax_full(dtype, AX_DIMS(), 0);
  type.dims[dimension] = part;
  return ax_dynamic_slice(x, starts, type.dims);
}

/* The sum of `size` times x: integers wrap, as adding them up would. */
static ax_value times(ax_value x, int64_t size) {
  ax_dtype dtype = ax_typeof(x).dtype;
  if (ax_rounds(dtype)) return ax_mul(x, ax_full_like(x, (double)size));
  return ax_mul(x, ax_convert_element_type(ax_full_i64(AX_S64, AX_DIMS(), size), dtype));
}

ax_value ax_combine_batch(ax_scalar op, ax_value x, int64_t dim, int64_t size) {
  if (dim < 0) return op == AX_SCALAR_ADD ? times(x, size) : x;
  if (op == AX_SCALAR_ADD) return ax_reduce_sum(x, AX_LIST(1, &dim), false);
  return op == AX_SCALAR_MAX ? ax_reduce_max(x, AX_LIST(1, &dim), false) : ax_reduce_min(x, AX_LIST(1, &dim), false);
}

int64_t ax_axis_size(const char *axes) {
  ax_axes names;
  if (!ax_collective_names("axis_size", axes, &names)) return 1; /* which may be divided by */
  if (!ax_groups_even(&names.groups)) ax_reject_as("axis_size", "the groups of \"%.200s\" are of several sizes", axes);
  return ax_axes_members(&names);
}

/* --- lower --- */

void ax_exchange_whole(ax_exchange *exchange, int64_t elems) {
  exchange->rank = 1;
  exchange->dims[0] = elems;
  exchange->src_stride[0] = exchange->dst_stride[0] = 1;
}

/* One more dimension of a part, outside those there are: merged with the outermost of them where both sides are contiguous. */
static void add_outer(ax_exchange *part, int64_t dim, int64_t src_stride, int64_t dst_stride) {
  if (dim == 1) return;
  uint32_t last = part->rank - 1; /* kept in reverse while it is built: the outermost is last */
  if (part->rank > 0 && src_stride == part->src_stride[last] * part->dims[last] &&
      dst_stride == part->dst_stride[last] * part->dims[last]) {
    part->dims[last] *= dim;
    return;
  }
  part->dims[part->rank] = dim;
  part->src_stride[part->rank] = src_stride;
  part->dst_stride[part->rank++] = dst_stride;
}

static void reverse(int64_t *v, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    int64_t kept = v[i];
    v[i] = v[count - 1 - i];
    v[count - 1 - i] = kept;
  }
}

void ax_exchange_parts(ax_exchange *exchange, uint32_t rank, const int64_t *part, const int64_t *in, int64_t split,
                       const int64_t *out, int64_t concat) {
  int64_t src_stride = 1, dst_stride = 1;
  exchange->rank = 0;
  exchange->src_step = exchange->dst_step = 0;
  for (uint32_t d = rank; d-- > 0;) {
    if (d == split) exchange->src_step = part[d] * src_stride;
    if (d == concat) exchange->dst_step = part[d] * dst_stride;
    add_outer(exchange, part[d], src_stride, dst_stride);
    src_stride *= in[d];
    dst_stride *= out[d];
  }
  if (exchange->rank == 0) ax_exchange_whole(exchange, 1);
  reverse(exchange->dims, exchange->rank);
  reverse(exchange->src_stride, exchange->rank);
  reverse(exchange->dst_stride, exchange->rank);
}

ax_status ax_lower_exchange(ax_lower *lower, const ax_exchange *exchange) {
  ax_exchange *started;
  AX_TRY(ax_lower_start(lower, exchange, &started));
  return ax_lower_done(lower, started);
}

static ax_status convert(ax_lower *lower, uint32_t dst, uint32_t src) {
  ax_type type = *ax_lower_type(lower, src);
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type.rank);
  return ax_lower_move(lower, type.rank, type.dims, dst, at, src, at);
}

ax_status ax_lower_is_same(const ax_lower *lower, const ax_axes *names, uint32_t in, bool *out) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(names, &lower->plan->mesh, &set));
  *out = ((ax_lower_get(lower, in)->axes | lower->diverging) & set) == 0;
  return AX_OK;
}

enum { most_same = 16 }; /* members whose combination is worth writing out */

/* Combines the values of members that all hold `in`, in the same order and dtype as an exchange. Each device that owns the buffer
   does it itself. */
static ax_status combine_same(ax_lower *lower, ax_scalar op, int64_t members, uint32_t in, const ax_type *type, uint32_t *out) {
  ax_dtype wide = ax_combined_in(op, type->dtype, members);
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_buffer(lower, type, ax_lower_get(lower, in)->axes, out));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex own = ax_lower_load(lower, in, at);
  if (wide != type->dtype) own = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, wide, own, AX_NONE, AX_NONE);
  ax_ex all = own;
  const int64_t times = op == AX_SCALAR_ADD ? members : 2; /* the largest of a value and itself is that, once more */
  for (int64_t m = 1; m < times; m++) all = ax_kernel_op(lower->kernel, op, wide, all, own, AX_NONE);
  if (wide != type->dtype) all = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, type->dtype, all, AX_NONE, AX_NONE);
  ax_lower_store(lower, *out, at, all, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

ax_status ax_lower_combine(ax_lower *lower, ax_exchange *exchange, uint32_t in, const ax_type *type, ax_axis_set axes,
                           uint32_t *out) {
  ax_type out_type = *type;
  ax_axis_set group;
  AX_TRY(ax_axes_resolve(&exchange->names, &lower->plan->mesh, &group));
  const int64_t members = ax_axis_set_size(group, &lower->plan->mesh);
  bool same;
  AX_TRY(ax_lower_is_same(lower, &exchange->names, in, &same));
  if (same && exchange->peers == AX_PEERS_ONE && members <= most_same)
    return combine_same(lower, exchange->combine, members, in, type, out);
  ax_dtype wide = ax_combined_in(exchange->combine, type->dtype, members);
  bool widens = wide != type->dtype;
  exchange->in = in;
  out_type.dtype = wide;
  AX_TRY(ax_lower_buffer(lower, &out_type, axes, &exchange->out));
  AX_TRY(ax_lower_exchange(lower, exchange));
  *out = exchange->out;
  if (!widens) return AX_OK;
  AX_TRY(ax_lower_buffer(lower, type, ax_lower_get(lower, exchange->out)->axes, out));
  return convert(lower, *out, exchange->out);
}

/* --- hlo --- */

void ax_hlo_add_channel(ax_hlo_attributes *to, uint32_t channel) {
  ax_hlo_attributes handle = {.hlo = to->hlo};
  ax_hlo_add_integer(&handle, "handle", channel);
  ax_hlo_add_integer(&handle, "type", 1);
  ax_hlo_add_group(to, "channel_handle", "stablehlo.channel_handle", &handle);
}

void ax_hlo_add_groups(ax_hlo_attributes *to, const ax_axes *names) {
  ax_hlo_add_replica_groups(to, names, &to->hlo->axes);
  ax_hlo_add_channel(to, ++to->hlo->channel);
}

uint32_t ax_hlo_combining(ax_hlo *hlo, const ax_eqn *eqn, const char *name, ax_scalar op, const uint32_t *in,
                          const ax_hlo_attributes *attributes) {
  const ax_type *y = &hlo->program->types[eqn->out];
  const uint32_t made = ax_hlo_begin(hlo, name, in, 1, y, 1);
  ax_hlo_combination(hlo, op, y->dtype);
  ax_hlo_end(hlo, attributes);
  return made;
}
