/* ragged_all_to_all: operand T[B.., L.., N, A..], output T[B.., L.., M, A..], input_offsets, send_sizes, output_offsets,
                      recv_sizes I[B.., L.., K] -> T[B.., L.., M, A..], all {V: axes, v..}
     output, with slices of the members' operands put in it: of K = n c slices that a member has, c go to each member in order.
     Slice i goes to member i / c; it is operand[input_offsets[i] : input_offsets[i] + send_sizes[i]], and lies from
     output_offsets[i] on in the output of the member it goes to. recv_sizes[i]: how many rows come as slice i % c from member i /
     c.

        member 0   operand a b b   offsets 0 1   sizes 1 2   output_offsets 0 0   recv_sizes 1 1       a c 0 0
        member 1   operand c d .           0 1         1 1                  1 2              2 1  -->  b b d 0

   Parameters: axes; batch, the number of dimensions B, of exchanges apart from each other; local, for each dimension of L, of
   members that live on one device since their axis was batched, how many devices lie along the axes behind that one; back: the
   transpose. Then operand is T[.., M, A..] and output T[.., N, A..], and the rows that slices became are added to those they were,
   in the order of members and slices.
   Errors: an unknown axis or one named twice; operands that do not vary over a checked axis; shapes other than those said, offsets
   and sizes that are no integers, K = 0 or that does not divide by n; groups of several sizes; back, T other than f32, f64 and
   complex numbers.
   Errors of a run, which name device, slice, offset and size: a negative offset or size; a slice that leaves the operand or the
   output; slices that lie on each other in one output; a size that is not the one in recv_sizes.
   Linear in operand and output together. The transpose takes rows back and adds them to zeros, since slices of an operand may lie
   on each other; output's cotangent is zero where something came, which the same exchange of flags says. Batching: one more
   dimension of B; over a named axis, of L. */
#include "plan/ragged.h"

#include <string.h>

#include "collectives/ragged.h"
#include "plan/lowering.h"
#include "plan/plan.h"
#include "prim/prims.h"

enum {
  OPERAND = AX_RAGGED_OPERAND,
  OUTPUT = AX_RAGGED_OUTPUT,
  INPUT_OFFSETS = AX_RAGGED_INPUT_OFFSETS,
  SEND_SIZES = AX_RAGGED_SEND_SIZES,
  OUTPUT_OFFSETS = AX_RAGGED_OUTPUT_OFFSETS,
  RECV_SIZES = AX_RAGGED_RECV_SIZES,
  OPERANDS = AX_RAGGED_OPERANDS
};
static const char *const operand_names[] = {"operand", "output", "input_offsets", "send_sizes", "output_offsets", "recv_sizes"};

/* --- infer --- */

static uint32_t outer_rank(const ax_ragged_params *params) { return (uint32_t)params->batch + params->local.count; }

static ax_status refuse(const ax_infer_args *args, uint32_t k, const char *wanted) {
  return ax_error(AX_INVALID_ARGUMENT, "%s is %s; it must be %s", operand_names[k], ax_type_string(&args->in[k], args->axes),
                  wanted);
}

static ax_status check_tables(const ax_infer_args *args, uint32_t outer) {
  const ax_type *first = &args->in[INPUT_OFFSETS];
  for (uint32_t k = INPUT_OFFSETS; k < OPERANDS; k++) {
    const ax_type *in = &args->in[k];
    ax_dtype_kind kind = ax_dtype_get(in->dtype)->kind;
    if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED) return refuse(args, k, "of integers");
    if (in->rank != outer + 1 || in->dims[outer] < 1) return refuse(args, k, "a row of at least one");
    if (!ax_same_shape(in, first)) return refuse(args, k, "as long as input_offsets");
    if (memcmp(in->dims, args->in[OPERAND].dims, outer * sizeof in->dims[0]) != 0) return refuse(args, k, "batched as operand");
  }
  return AX_OK;
}

static ax_status check_arrays(const ax_infer_args *args, const ax_ragged_params *params, uint32_t outer) {
  const ax_type *operand = &args->in[OPERAND], *output = &args->in[OUTPUT];
  if (operand->rank <= outer) return refuse(args, OPERAND, "of rows");
  if (output->dtype != operand->dtype || output->rank != operand->rank) return refuse(args, OUTPUT, "of operand's dtype and rank");
  for (uint32_t d = 0; d < operand->rank; d++)
    if (d != outer && output->dims[d] != operand->dims[d]) return refuse(args, OUTPUT, "of rows like operand's");
  const ax_dtype part = ax_part_dtype(operand->dtype);
  if (params->back && part != AX_F32 && part != AX_F64) return refuse(args, OPERAND, "f32, f64 or of complex numbers");
  return AX_OK;
}

/* devices: of a group. */
static ax_status check_params(const ax_ragged_params *params, int64_t devices) {
  if (params->batch < 0 || params->batch > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "batch is %lld", (long long)params->batch);
  for (uint32_t k = 0; k < params->local.count; k++) {
    int64_t at = params->local.v[k], before = k > 0 ? params->local.v[k - 1] : devices;
    if (at < 1 || before % at != 0 || params->axes.groups.count > 0)
      return ax_error(AX_INVALID_ARGUMENT, "local says %lld of %lld devices", (long long)at, (long long)before);
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_ragged_params *params = args->params;
  int64_t members;
  AX_TRY(ax_collective_size(args, &params->axes, &members));
  AX_TRY(check_params(params, members));
  uint32_t outer = outer_rank(params);
  AX_TRY(check_arrays(args, params, outer));
  AX_TRY(check_tables(args, outer));
  for (uint32_t k = 0; k < params->local.count; k++)
    if (!ax_mul_i64(members, args->in[OPERAND].dims[params->batch + k], &members)) return refuse(args, OPERAND, "of fewer members");
  int64_t slices = args->in[INPUT_OFFSETS].dims[outer];
  if (members == 0 || slices % members != 0)
    return ax_error(AX_INVALID_ARGUMENT, "input_offsets has %lld entries, which do not divide among the %lld members",
                    (long long)slices, (long long)members);
  args->out[0] = args->in[OUTPUT];
  return AX_OK;
}

static ax_status spread(const ax_infer_args *args) {
  ax_axis_set set;
  ax_spread all;
  AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
  AX_TRY(ax_spread_join(args, ~(ax_axis_set)0, &all));
  for (uint32_t axis = 0; axis < args->axes->count; axis++) {
    if ((set & ax_checked_axes(args->axes) & ~all.varying) >> axis & 1)
      return ax_error(AX_INVALID_ARGUMENT, "the operands are %s over {%s}; %s makes them varying", ax_state_name(&all, axis),
                      args->axes->axis[axis].name, ax_spread_state(&all, axis) == AX_IS_REDUCED ? "reduced_vary_cast" : "pvary");
  }
  args->out[0].spread = all;
  return AX_OK;
}

/* --- The shape, as members see it --- */

/* devices: of a group. */
static ax_status describe(ax_arena *arena, const ax_ragged_params *params, int64_t devices, const ax_type *operand,
                          const ax_type *output, int64_t slices, ax_ragged_shape *shape) {
  uint32_t outer = outer_rank(params);
  const int64_t *local = operand->dims + params->batch;
  if (params->back) {
    const ax_type *rows = operand;
    operand = output;
    output = rows;
  }
  *shape = (ax_ragged_shape){.batch = ax_dims_elems((uint32_t)params->batch, operand->dims),
                             .local = ax_dims_elems(params->local.count, local),
                             .devices = devices,
                             .from_rows = operand->dims[outer],
                             .to_rows = output->dims[outer],
                             .row_elems = ax_dims_elems(operand->rank - outer - 1, operand->dims + outer + 1),
                             .dtype = operand->dtype};
  shape->members = shape->devices * shape->local;
  shape->each = slices / shape->members;
  return ax_ragged_number(arena, params->local.count, params->local.v, local, shape);
}

/* --- eval --- */

typedef struct lanes {
  const ax_eval_args *args;
  ax_ragged_shape shape;
  ax_piece **packed;     /* by lane */
  ax_piece *received;
  int64_t (*work)[2];
} lanes;

static const void *operand_of(const void *context, uint32_t device) { return ((const lanes *)context)->args->in[device]->data; }

static ax_counts counts_of(const ax_eval_args *args, uint32_t k, uint32_t lane) {
  const ax_tensor *tensor = args->in[k * args->lanes + lane];
  return (ax_counts){tensor->dtype, tensor->data};
}

static ax_status take(lanes *all, uint32_t lane) {
  const ax_eval_args *args = all->args;
  const ax_ragged_params *params = args->eqn->params;
  const ax_ragged_shape *shape = &all->shape;
  size_t part = (size_t)(shape->batch * shape->local * shape->local * shape->each);
  ax_taking taking = {.shape = shape,
                      .device = lane,
                      .received = all->received,
                      .packed = all->packed[lane],
                      .expected = counts_of(args, RECV_SIZES, lane),
                      .agree = true,
                      .back = params->back,
                      .work = all->work,
                      .operand = operand_of,
                      .context = all,
                      .out = args->out[lane]->data};
  ax_fault fault;
  ax_text text = {0};
  for (uint32_t e = 0; e < args->lanes && part > 0; e++)
    memcpy(all->received + e * part, all->packed[e] + lane * part, part * sizeof all->received[0]);
  ax_tensor_assign(args->out[lane], args->in[OUTPUT * args->lanes + lane]);
  if (ax_ragged_take(&taking, &fault)) return AX_OK;
  ax_fault_text(&text, &fault, shape, args->axes, args->device[fault.sent.device], args->device[fault.other.device],
                args->device[lane]);
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "ragged_all_to_all: %s", text.data);
  ax_text_deinit(&text);
  return status;
}

static ax_status eval_in(lanes *all, ax_arena *arena) {
  const ax_eval_args *args = all->args;
  const ax_tensor *operand = args->in[0], *output = args->in[args->lanes], *offsets = args->in[INPUT_OFFSETS * args->lanes];
  const ax_type in = ax_array_type(operand->dtype, AX_LIST(operand->rank, operand->dims)),
                out = ax_array_type(output->dtype, AX_LIST(output->rank, output->dims));
  int64_t slices = offsets->dims[offsets->rank - 1];
  AX_TRY(describe(arena, args->eqn->params, args->lanes, &in, &out, slices, &all->shape));
  size_t table = (size_t)(all->shape.batch * all->shape.local * slices);
  all->packed = ax_arena_alloc(arena, args->lanes * sizeof all->packed[0]);
  all->received = ax_arena_alloc(arena, table * sizeof all->received[0]);
  all->work = ax_arena_alloc(arena, (size_t)slices * sizeof all->work[0]);
  if (all->packed == NULL || all->received == NULL || all->work == NULL) return ax_out_of_memory(table);
  for (uint32_t lane = 0; lane < args->lanes; lane++) {
    all->packed[lane] = ax_arena_alloc(arena, table * sizeof all->received[0]);
    if (all->packed[lane] == NULL) return ax_out_of_memory(table);
    const ax_counts from = counts_of(args, INPUT_OFFSETS, lane), size = counts_of(args, SEND_SIZES, lane),
                    to = counts_of(args, OUTPUT_OFFSETS, lane);
    ax_ragged_pack(&all->shape, &from, &size, &to, all->packed[lane]);
  }
  for (uint32_t lane = 0; lane < args->lanes; lane++) AX_TRY(take(all, lane));
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  ax_arena arena = {0};
  ax_status status = eval_in(&(lanes){.args = args}, &arena);
  ax_arena_deinit(&arena);
  return status;
}

/* --- differs --- */

static void differs(const ax_differs_args *args) {
  ax_differs_add(args);
  for (uint32_t k = 1; k < OPERANDS; k++) args->out[0] |= args->in[k];
}

/* --- Binding --- */

ax_value ax_ragged_bind(const ax_ragged_params *params, const ax_value *in) {
  ax_value operands[OPERANDS];
  ax_axis_set set = 0;
  if (!ax_check_operands(ax_prim_ragged_all_to_all.name, in, OPERANDS)) return ax_poison;
  if (ax_axes_resolve(&params->axes, &ax_builder_current()->axes, &set) != AX_OK) return ax_poison;
  for (uint32_t k = 0; k < OPERANDS; k++) {
    const ax_type type = ax_typeof(in[k]);
    if ((set & type.spread.reduced) != 0)
      return ax_reject(&ax_prim_ragged_all_to_all, "%s, %s, is reduced over %s; reduced_vary_cast makes it varying",
                       operand_names[k], ax_type_string(&type, &ax_builder_current()->axes),
                       ax_axis_set_string(set & type.spread.reduced, &ax_builder_current()->axes));
    operands[k] = (set & type.spread.unreduced) != 0 ? in[k] : ax_vary_to(in[k], set);
  }
  return ax_bind1(&ax_prim_ragged_all_to_all, params, operands, OPERANDS);
}

/* --- jvp --- */

static void jvp(const ax_jvp_args *args) {
  const ax_ragged_params *params = args->eqn->params;
  ax_value in[OPERANDS];
  memcpy(in, args->in, sizeof in);
  args->out[0] = ax_ragged_bind(params, in);
  if (ax_is_zero(args->tangent_in[OPERAND]) && ax_is_zero(args->tangent_in[OUTPUT])) {
    args->tangent_out[0] = ax_zero;
    return;
  }
  for (uint32_t k = OPERAND; k <= OUTPUT; k++) in[k] = ax_instantiate(args->tangent_in[k], args->in[k]);
  args->tangent_out[0] = ax_ragged_bind(params, in);
}

/* --- transpose --- */

/* Rows of t, which slices became, added up where they were: in f32, and rounded once, of narrow floats. */
static ax_value taken_back(const ax_ragged_params *params, const ax_value *tables, ax_value t, const ax_type *wanted) {
  ax_ragged_params back = *params;
  ax_type type = *wanted;
  ax_value in[OPERANDS];
  memcpy(in, tables, sizeof in);
  back.back = true;
  if (ax_is_narrow_float(type.dtype)) type.dtype = AX_F32;
  in[OPERAND] = ax_convert_element_type(t, type.dtype);
  in[OUTPUT] = ax_zeros_of(&type);
  return ax_convert_element_type(ax_ragged_bind(&back, in), wanted->dtype);
}

/* t, and zeros where something came: flags of all rows, exchanged like them, say where. */
static ax_value left_alone(const ax_ragged_params *params, const ax_value *tables, ax_value t, const ax_type *operand) {
  ax_type rows = ax_typeof(t), flags = *operand;
  uint32_t rank = outer_rank(params) + 1;
  int64_t where[AX_MAX_RANK];
  ax_value in[OPERANDS];
  memcpy(in, tables, sizeof in);
  flags.dtype = AX_BOOL;
  flags.rank = rank;
  in[OPERAND] = ax_full(AX_BOOL, AX_LIST(rank, flags.dims), 1);
  in[OUTPUT] = ax_full(AX_BOOL, AX_LIST(rank, rows.dims), 0);
  for (uint32_t d = 0; d < rank; d++) where[d] = d;
  ax_value came = ax_broadcast_in_dim(ax_ragged_bind(params, in), AX_LIST(rows.rank, rows.dims), where);
  return ax_select_n(came, t, ax_zeros_of(&rows));
}

static void transpose(const ax_transpose_args *args) {
  const ax_ragged_params *params = args->eqn->params;
  const ax_type *operand = &args->in_types[OPERAND];
  ax_value t = args->cotangent[0], in[OPERANDS];
  if (ax_failed()) return;
  memcpy(in, args->in, sizeof in);
  if (params->back) {
    ax_ragged_params forth = *params;
    forth.back = false;
    in[OPERAND] = t;
    in[OUTPUT] = ax_zero_cotangent(operand);
    if (args->linear[OPERAND]) args->out[OPERAND] = ax_ragged_bind(&forth, in);
    if (args->linear[OUTPUT]) args->out[OUTPUT] = t;
    return;
  }
  if (args->linear[OPERAND]) args->out[OPERAND] = taken_back(params, in, t, operand);
  if (args->linear[OUTPUT]) args->out[OUTPUT] = left_alone(params, in, t, operand);
}

/* --- batch --- */

/* The batched axis, which is among the axes: its members live on one device from now on, in a dimension among those that do
   already, as they stood. Gives that dimension. */
static uint32_t make_local(ax_ragged_params *params, const char *axis, int64_t size) {
  ax_axes before, after;
  uint32_t k = 0;
  ax_axes_around(&params->axes, axis, &before, &after);
  int64_t behind = ax_axes_members(&after);
  for (; k < params->local.count && params->local.v[k] >= behind * size; k++) params->local.v[k] /= size;
  memmove(&params->local.v[k + 1], &params->local.v[k], (params->local.count - k) * sizeof params->local.v[0]);
  params->local.v[k] = behind;
  params->local.count++;
  const ax_axes all = params->axes;
  ax_axes_without(&all, axis, &params->axes);
  return (uint32_t)params->batch + k;
}

static void batch(const ax_batch_args *args) {
  ax_ragged_params params = *(const ax_ragged_params *)args->eqn->params;
  ax_axes before, after;
  ax_value in[OPERANDS];
  uint32_t dim = 0;
  if (ax_axes_around(&params.axes, args->axis, &before, &after)) dim = make_local(&params, args->axis, args->size);
  else params.batch++;
  for (uint32_t k = 0; k < OPERANDS; k++)
    in[k] = ax_move_dim(ax_batch_front(args->in[k], args->in_dim[k], args->size), 0, (int)dim);
  args->out[0] = ax_ragged_bind(&params, in);
  args->out_dim[0] = (int)dim;
}

/* --- lower --- */

static ax_status table_buffer(ax_lower *lower, ax_dtype dtype, int64_t elems, ax_axis_set axes, uint32_t *out) {
  const ax_type type = ax_array_type(dtype, AX_LIST(1, &elems));
  return ax_lower_buffer(lower, &type, axes, out);
}

/* Each member sends a byte to all. A member that has received all bytes knows that all members have come this far. */
static ax_status meet(ax_lower *lower, const ax_ragged *ragged) {
  ax_exchange exchange = {
      .names = ragged->names, .peers = AX_PEERS_ONE, .in = ragged->taken, .out = ragged->released, .dst_step = 1};
  ax_exchange_whole(&exchange, 1);
  return ax_lower_exchange(lower, &exchange);
}

/* A device that has packed its table has its operand ready, so a device that has received all tables knows that all operands are
   ready. No device reuses its operand's memory before all members have taken their rows from it. */
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_ragged_params *params = eqn->params;
  ax_plan *plan = lower->plan;
  const ax_type *types = lower->program->types;
  const ax_type *offsets = &types[eqn->in[INPUT_OFFSETS]];
  ax_ragged *ragged = ax_arena_alloc(&plan->arena, sizeof *ragged);
  if (ragged == NULL) return ax_out_of_memory(sizeof *ragged);
  AX_TRY(ax_axes_resolve(&params->axes, &plan->mesh, &ragged->axes));
  AX_TRY(describe(&plan->arena, params, ax_axis_set_size(ragged->axes, &plan->mesh), &types[eqn->in[OPERAND]],
                  &types[eqn->in[OUTPUT]], offsets->dims[offsets->rank - 1], &ragged->shape));
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_copy(lower, out[0], in[OUTPUT]));
  const ax_ragged_shape *shape = &ragged->shape;
  ax_axis_set axes = lower->differs[eqn->out] | ragged->axes;
  int64_t part = shape->batch * shape->local * shape->local * shape->each * AX_PIECE_WORDS;
  ragged->names = params->axes;
  ragged->back = params->back;
  ragged->agree = !plan->options.unchecked_ragged;
  memcpy(ragged->in, in, sizeof ragged->in);
  ragged->out = out[0];
  AX_TRY(table_buffer(lower, AX_S64, part * shape->devices, axes, &ragged->table));
  AX_TRY(table_buffer(lower, AX_S64, 2 * shape->members * shape->each, axes, &ragged->work));
  ragged->received = ragged->table;
  ragged->taken = ragged->released = ragged->base = AX_NONE;
  AX_TRY(ax_lower_ragged(lower, ragged, AX_RAGGED_PACK));
  if (shape->devices == 1) return ax_lower_ragged(lower, ragged, AX_RAGGED_TAKE);
  AX_TRY(table_buffer(lower, AX_S64, part * shape->devices, axes, &ragged->received));
  AX_TRY(table_buffer(lower, AX_U8, 1, axes, &ragged->taken));
  AX_TRY(table_buffer(lower, AX_U8, shape->devices, axes, &ragged->released));
  ax_exchange tables = {.names = params->axes,
                        .peers = AX_PEERS_ALL,
                        .in = ragged->table,
                        .out = ragged->received,
                        .src_step = part,
                        .dst_step = part};
  ax_exchange_whole(&tables, part);
  AX_TRY(ax_lower_exchange(lower, &tables));
  AX_TRY(ax_lower_ragged(lower, ragged, AX_RAGGED_TAKE));
  AX_TRY(meet(lower, ragged));
  return ax_lower_ragged(lower, ragged, AX_RAGGED_RELEASE);
}

/* --- ungroup --- */

/* [B.., s c] of the group's s members -> [B.., n c] of all n: nothing for those that are in other groups. */
static ax_value for_all(ax_value table, ax_value places, int64_t size, int64_t members) {
  ax_type type = ax_typeof(table);
  if (ax_failed()) return ax_poison;
  uint32_t last = type.rank - 1;
  int64_t each = type.dims[last] / size;
  ax_type none = type;
  none.rank = last + 2;
  none.dims[last] = 1;
  none.dims[last + 1] = each;
  ax_value both[] = {ax_split_dim(table, last, size), ax_zeros_of(&none)};
  ax_value taken = ax_take(ax_concatenate(AX_LIST(2, both), last), places, last);
  type.dims[last] = members * each;
  return ax_reshape(taken, AX_LIST(type.rank, type.dims));
}

/* By member of all: its place in my group, or as many as there are. */
static ax_value places_in_group(const ax_axes *axes, uint32_t members) {
  const ax_axes_list all = ax_axes_listed(axes);
  const ax_type type = ax_array_type(AX_S32, AX_DIMS(members));
  uint32_t *group = ax_trace_alloc(members * sizeof group[0]), *number = ax_trace_alloc(members * sizeof number[0]);
  if (group == NULL || number == NULL) return ax_poison;
  ax_groups_numbers(&axes->groups, group, number);
  ax_value groups = ax_constant(&type, group), mine = ax_dynamic_at(groups, ax_axis_index(all.text), 0);
  return ax_where(ax_eq(groups, mine), ax_constant(&type, number), ax_integer(ax_group_size(&axes->groups, 0)));
}

/* Over all members, most of which have nothing for each other. */
static void ungroup(const ax_ungroup_args *args) {
  ax_ragged_params params = *(const ax_ragged_params *)args->eqn->params;
  const ax_axes *axes = args->axes;
  const int64_t size = ax_group_size(&axes->groups, 0), members = axes->groups.end[axes->groups.count - 1];
  ax_value in[OPERANDS], places = places_in_group(axes, (uint32_t)members);
  memcpy(in, args->in, sizeof in);
  for (uint32_t k = INPUT_OFFSETS; k < OPERANDS; k++) in[k] = for_all(in[k], places, size, members);
  params.axes = *axes;
  params.axes.groups = (ax_groups){0};
  args->out[0] = ax_ragged_bind(&params, in);
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(ax_ragged_params, axes)},
                                  {"batch", AX_PARAM_I64, offsetof(ax_ragged_params, batch)},
                                  {"local", AX_PARAM_DIMS, offsetof(ax_ragged_params, local)},
                                  {"back", AX_PARAM_BOOL, offsetof(ax_ragged_params, back)}};

const ax_prim ax_prim_ragged_all_to_all = {
    .name = "ragged_all_to_all",
    .kind = AX_COLLECTIVE,
    .effects = AX_EFFECT_EXCHANGE,
    .traffic = AX_TRAFFIC_PARTS,
    .in_count = OPERANDS,
    .out_count = 1,
    AX_PARAMS(params, ax_ragged_params),
    .infer = infer,
    .spread = spread,
    .eval = eval,
    .differs = differs,
    .jvp = jvp,
    .linearize = jvp,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .ungroup = ungroup,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = ax_ragged_hlo,
};

ax_value ax_ragged_all_to_all(ax_value operand, ax_value output, ax_value input_offsets, ax_value send_sizes,
                              ax_value output_offsets, ax_value recv_sizes, const char *axes) {
  ax_ragged_params params = {0};
  const ax_value in[OPERANDS] = {operand, output, input_offsets, send_sizes, output_offsets, recv_sizes};
  return ax_collective_names("ragged_all_to_all", axes, &params.axes) ? ax_ragged_bind(&params, in) : ax_poison;
}
