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

ax_status ax_hlo_combine_rows(const ax_hlo_read_args *args, ax_value x, ax_value *out) {
  const ax_dtype dtypes[] = {ax_typeof(x).dtype, ax_typeof(x).dtype};
  ax_program *function;
  ax_hlo_body body;
  ax_fn each;
  AX_TRY(ax_hlo_body_of(args, 0, 1, &body, &each));
  if (each.in_count != 2) return ax_error(AX_INVALID_ARGUMENT, "its body must take two elements");
  AX_TRY(ax_scalars_trace("all_reduce", "body", each, dtypes, &function));
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
