/* axis_index: -> s32[]{V: axes}                     this member's number: row-major over the axes in the order named
   Parameters: axes. Errors: an unknown axis or one named twice.
   No operands and an integer: nothing to differentiate. Batching: over a named axis that is among the axes, 0 .. size. */
#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

typedef struct axis_index_params {
  ax_axes axes;
} axis_index_params;

static ax_status infer(const ax_infer_args *args) {
  args->out[0] = ax_array_type(AX_S32, AX_DIMS());
  return AX_OK;
}

static ax_status spread(const ax_infer_args *args) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(args->params, args->axes, &set));
  args->out[0].spread.varying = set & ax_checked_axes(args->axes);
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  for (uint32_t lane = 0; lane < args->lanes; lane++) {
    ax_number index = {.i = ax_axes_index(args->eqn->params, args->axes, args->device[lane])};
    ax_number_store(AX_S32, args->out[lane]->data, 0, index);
  }
  return AX_OK;
}

static ax_value number_along(const ax_axes *names) { return ax_bind1(&ax_prim_axis_index, names, NULL, 0); }

static ax_value times(ax_value x, int64_t factor) { return ax_mul(x, ax_full(AX_S32, AX_DIMS(), (double)factor)); }

static void batch(const ax_batch_args *args) {
  const axis_index_params *params = args->eqn->params;
  ax_axes major, minor;
  if (!ax_axes_around(&params->axes, args->axis, &major, &minor)) {
    args->out[0] = number_along(&params->axes);
    args->out_dim[0] = -1;
    return;
  }
  ax_value index = ax_iota(AX_S32, AX_LIST(1, &args->size), 0);
  if (major.count > 0) index = ax_add(times(number_along(&major), args->size), index);
  if (minor.count > 0) index = ax_add(times(index, ax_axes_members(&minor)), number_along(&minor));
  args->out[0] = index;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const axis_index_params *params = eqn->params;
  const ax_mesh *mesh = &lower->plan->mesh;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, 0, 0, NULL));
  ax_loop_kernel *kernel = lower->kernel;
  ax_ex index = ax_kernel_const(kernel, AX_S64, 0);
  for (uint32_t i = 0; i < params->axes.count; i++) {
    int axis = ax_mesh_find(mesh, params->axes.name[i]);
    if (axis < 0) return ax_error(AX_INTERNAL, "axis \"%s\" is not in the mesh", params->axes.name[i]);
    ax_ex size = ax_kernel_const(kernel, AX_S64, mesh->axis[axis].size);
    ax_ex outer = ax_kernel_op(kernel, AX_SCALAR_MUL, AX_S64, index, size, AX_NONE);
    ax_ex coordinate = ax_kernel_axis(kernel, (uint32_t)axis);
    index = i == 0 ? coordinate : ax_kernel_op(kernel, AX_SCALAR_ADD, AX_S64, outer, coordinate, AX_NONE);
  }
  ax_ex narrow = ax_kernel_op(kernel, AX_SCALAR_CONVERT, AX_S32, index, AX_NONE, AX_NONE);
  ax_lower_store(lower, out[0], NULL, narrow, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* op(a, number), on u32 scalars. */
static uint32_t hlo_with(ax_hlo *hlo, const char *op, uint32_t a, int64_t number) {
  ax_type type = ax_array_type(AX_U32, AX_DIMS());
  uint32_t bits = (uint32_t)number, in[] = {a, ax_hlo_splat(hlo, &type, &bits)};
  return ax_hlo_op(hlo, op, in, 2, NULL, &type, 1);
}

/* The device's coordinate along an axis is  id / (sizes of the axes inside it) % size;  the number is put together from those. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const axis_index_params *params = eqn->params;
  ax_type type = ax_array_type(AX_U32, AX_DIMS());
  ax_hlo_attributes by_hand = {.hlo = hlo};
  ax_hlo_add_string(&by_hand, "mhlo.sharding", "{manual}"); /* XLA refuses one of which it does not find out by its uses */
  uint32_t device = ax_hlo_op(hlo, "stablehlo.partition_id", NULL, 0, &by_hand, &type, 1), index = AX_NONE;
  for (uint32_t i = 0; i < params->axes.count; i++) {
    int axis = ax_mesh_find(&hlo->axes, params->axes.name[i]);
    if (axis < 0) return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is not in the module's mesh", params->axes.name[i]);
    int64_t inside = 1, size = hlo->axes.axis[axis].size;
    for (uint32_t a = (uint32_t)axis + 1; a < hlo->axes.count; a++) inside *= hlo->axes.axis[a].size;
    uint32_t outer = inside > 1 ? hlo_with(hlo, "stablehlo.divide", device, inside) : device;
    uint32_t coordinate = hlo_with(hlo, "stablehlo.remainder", outer, size);
    if (index != AX_NONE) {
      uint32_t both[] = {hlo_with(hlo, "stablehlo.multiply", index, size), coordinate};
      coordinate = ax_hlo_op(hlo, "stablehlo.add", both, 2, NULL, &type, 1);
    }
    index = coordinate;
  }
  if (index == AX_NONE) index = hlo_with(hlo, "stablehlo.multiply", device, 0);
  out[0] = ax_hlo_op(hlo, "stablehlo.convert", &index, 1, NULL, &hlo->program->types[eqn->out], 1);
  return AX_OK;
}

/* The number along the mesh's axes from `first` to before `end`, of those that are taken by hand; others count as 0. u32[] */
static ax_value place_along(const ax_mesh *mesh, uint32_t first, uint32_t end) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_value number = ax_full(AX_U32, AX_DIMS(), 0);
  int64_t stride = 1;
  for (uint32_t i = end; i-- > first; stride *= mesh->axis[i].size) {
    if (ax_mesh_find_manual(axes, mesh->axis[i].name) < 0) continue;
    const ax_value index = ax_convert_element_type(ax_axis_index(mesh->axis[i].name), AX_U32);
    const ax_value step = ax_full_i64(AX_U32, AX_DIMS(), stride);
    number = ax_add(number, ax_mul(index, step));
  }
  return number;
}

/* The devices there are: on one, and outside of manual computations over one, it is number 0. */
static ax_status read_number(const ax_hlo_read_args *args, bool replicas) {
  const ax_hlo_grid *grid = args->devices->grid;
  const uint32_t with_replicas = grid != NULL && grid->replicas > 1;
  if (args->op->result_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it has one result");
  if (grid == NULL && args->devices->replicas * args->devices->partitions > 1)
    return ax_error(AX_ABSENT,
                    "it stands outside of manual computations in a module whose arrays have layouts: there is no one device");
  if (grid == NULL || replicas) {
    args->out[0] = with_replicas ? place_along(&grid->mesh, 0, 1) : ax_full(AX_U32, AX_DIMS(), 0);
    return AX_OK;
  }
  args->out[0] = place_along(&grid->mesh, with_replicas, grid->mesh.count);
  if (grid->ids == NULL) return AX_OK;
  const int64_t count = ax_mesh_devices(&grid->mesh);
  const ax_type type = (ax_array_type)(AX_S64, AX_LIST(1, &count));
  const ax_value ids = (ax_constant)(&type, AX_S64, grid->ids, (size_t)count * sizeof grid->ids[0]);
  args->out[0] = ax_convert_element_type(ax_take(ids, args->out[0], 0), AX_U32);
  return AX_OK;
}
static ax_status partition_read(const ax_hlo_read_args *args) { return read_number(args, false); }
static ax_status replica_read(const ax_hlo_read_args *args) { return read_number(args, true); }

static const ax_hlo_reader readers[] = {{"stablehlo.partition_id", partition_read}, {"stablehlo.replica_id", replica_read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(axis_index_params, axes)}};

const ax_prim ax_prim_axis_index = {
    .name = "axis_index", .kind = AX_COLLECTIVE, .in_count = 0, .out_count = 1,
    AX_PARAMS(params, axis_index_params),
    .infer = infer, .spread = spread, .eval = eval, .differs = ax_differs_add, .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = batch,
    .simplify = ax_simplify_nothing, .shard = ax_shard_whole, .lower = lower, .reads = readers, .hlo = hlo,
};

ax_value ax_axis_index(const char *axes) {
  axis_index_params params;
  if (!ax_collective_names("axis_index", axes, &params.axes)) return ax_poison;
  return ax_bind1(&ax_prim_axis_index, &params, NULL, 0);
}
