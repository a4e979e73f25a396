/* Reading collectives: what the bodies of all_reduce and reduce_scatter do; tables by device. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "collectives/collective.h"
#include "prim/hlo_groups.h"
#include "prim/scalars.h"

ax_combining ax_hlo_combining_of(const ax_hlo_read_args *args, ax_dtype dtype) {
  static const struct {
    const char *op;
    ax_combining numbers, bools;
  } known[] = {{"stablehlo.add", ax_psum, ax_pmax},   {"stablehlo.maximum", ax_pmax, ax_pmax}, {"stablehlo.or", NULL, ax_pmax},
               {"stablehlo.multiply", NULL, ax_pmin}, {"stablehlo.minimum", ax_pmin, ax_pmin}, {"stablehlo.and", NULL, ax_pmin}};
  const ax_hlo_slice op = ax_hlo_body_operation(args->op, 0);
  for (size_t i = 0; i < AX_COUNT(known); i++)
    if (ax_hlo_slice_is(op, known[i].op)) return dtype == AX_BOOL ? known[i].bools : known[i].numbers;
  return NULL;
}

/* Neighbours are combined, which halves the rows; a last one without neighbour waits. */
static ax_value combine(const ax_program *body, ax_value x) {
  for (int64_t rows = ax_typeof(x).dims[0]; rows > 1 && !ax_failed(); rows = (rows + 1) / 2) {
    const int64_t paired = rows / 2 * 2;
    const ax_value pair[] = {ax_slice_in_dim(x, 0, paired, 2, 0), ax_slice_in_dim(x, 1, paired, 2, 0)};
    ax_value made[2];
    ax_scalars_call(body, pair, &made[0]);
    if (paired < rows) made[1] = ax_slice_in_dim(x, paired, rows, 1, 0);
    x = paired < rows ? (ax_concatenate)(2, made, 0) : made[0];
  }
  return ax_failed() ? ax_poison : ax_drop_dim(x, 0);
}

/* has bool[n]: the first rows that there are. Of two neighbours the first is kept where the second one is not there. */
static ax_value combine_those(const ax_program *body, ax_value x, ax_value has) {
  for (int64_t rows = ax_typeof(x).dims[0]; rows > 1 && !ax_failed(); rows = (rows + 1) / 2) {
    const int64_t paired = rows / 2 * 2;
    const ax_value pair[] = {ax_slice_in_dim(x, 0, paired, 2, 0), ax_slice_in_dim(x, 1, paired, 2, 0)};
    const ax_value second = ax_slice_in_dim(has, 1, paired, 2, 0);
    const ax_type type = ax_typeof(pair[0]);
    const int64_t front[] = {0};
    ax_value made[2], there[] = {ax_slice_in_dim(has, 0, paired, 2, 0), {0}};
    ax_scalars_call(body, pair, &made[0]);
    made[0] = ax_where((ax_broadcast_in_dim)(second, AX_LIST(type.rank, type.dims), AX_LIST(1, front)), made[0], pair[0]);
    if (paired < rows) made[1] = ax_slice_in_dim(x, paired, rows, 1, 0), there[1] = ax_slice_in_dim(has, paired, rows, 1, 0);
    x = paired < rows ? (ax_concatenate)(2, made, 0) : made[0];
    has = paired < rows ? (ax_concatenate)(2, there, 0) : there[0];
  }
  return ax_failed() ? ax_poison : ax_drop_dim(x, 0);
}

/* The operation's body on two elements of the dtype. */
static ax_status trace_body(const ax_hlo_read_args *args, ax_dtype dtype, ax_program **out) {
  const ax_dtype dtypes[] = {dtype, dtype};
  ax_hlo_body body;
  ax_fn each;
  AX_TRY(ax_hlo_body_of(args, 0, 1, &body, &each));
  if (each.in_count != 2) return ax_error(AX_INVALID_ARGUMENT, "its body must take two elements");
  return ax_scalars_trace("all_reduce", "body", each, dtypes, out);
}

ax_status ax_hlo_combine_uneven(const ax_hlo_read_args *args, ax_value x, ax_value *out) {
  const ax_mesh *mesh = &args->devices->grid->mesh;
  const ax_axes names = ax_axis_set_names(ax_all_axes(mesh), mesh);
  ax_hlo_peers peers;
  ax_program *body;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (ax_mesh_find_manual(&ax_builder_current()->axes, mesh->axis[i].name) < 0)
      return ax_error(AX_ABSENT, "its groups have several sizes, and the axis \"%s\" is free", mesh->axis[i].name);
  AX_TRY(trace_body(args, ax_typeof(x).dtype, &body));
  ax_status status = ax_hlo_read_peers(args, AX_HLO_BY_IDS, false, &peers);
  for (int64_t d = 0; d < peers.devices && status == AX_OK; d++) /* a device that no group has */
    if (peers.place[d * peers.columns] < 0) peers.place[d * peers.columns] = d;
  const int64_t dims[] = {peers.devices, peers.columns};
  const ax_type type = (ax_array_type)(AX_S64, AX_LIST(2, dims));
  if (status == AX_OK) {
    const ax_value own = ax_hlo_own_row(args, &type, peers.place), all = ax_all_gather(x, ax_axes_listed(&names).text, 0, false);
    const ax_value rows = ax_take(all, ax_max(own, ax_integer(0)), 0);
    *out = combine_those(body, rows, ax_ge(own, ax_integer(0)));
  }
  ax_free(peers.place);
  ax_program_release(body);
  return status;
}

ax_status ax_hlo_combine_rows(const ax_hlo_read_args *args, ax_value x, ax_value *out) {
  ax_program *function;
  AX_TRY(trace_body(args, ax_typeof(x).dtype, &function));
  *out = combine(function, x);
  ax_program_release(function);
  return AX_OK;
}

ax_value ax_hlo_own_row(const ax_hlo_read_args *args, const ax_type *type, const int64_t *table) {
  const ax_mesh *mesh = &args->devices->grid->mesh;
  const ax_axes names = ax_axis_set_names(ax_all_axes(mesh), mesh);
  const ax_value rows = (ax_constant)(type, AX_S64, table, (size_t)ax_type_elems(type) * sizeof table[0]);
  return ax_take(rows, ax_axis_index(ax_axes_listed(&names).text), 0);
}
