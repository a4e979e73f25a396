/* Rows looked up and rows updated along one axis: convenient forms of gather and the scatters. */
#include "prim/composite.h"
#include "ops/indexed.h"

/* The operands of one of these functions. */
typedef struct rows {
  const char *name;
  ax_type x, indices;
  int64_t axis;
} rows;

static bool rows_init(rows *r, const char *name, ax_value x, ax_value indices, int64_t axis) {
  *r = (rows){.name = name, .axis = axis};
  if (!ax_operand(name, x, &r->x) || !ax_operand(name, indices, &r->indices)) return false;
  ax_dtype_kind kind = ax_dtype_get(r->indices.dtype)->kind;
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)
    ax_reject_as(name, "the indices are %s; they must be integers", ax_operand_string(&r->indices));
  else if (ax_dimension(name, "the axis", &r->axis, r->x.rank) && r->x.dims[r->axis] == 0)
    ax_reject_as(name, "dimension %lld of %s has nothing in it", (long long)r->axis, ax_operand_string(&r->x));
  return !ax_failed();
}

/* Indices I[i..] -> I[i.., 1]; where they are not clipped, negative ones count from the end. */
static ax_value single_numbers(const rows *r, ax_value indices, ax_index_mode mode) {
  ax_type type = r->indices;
  int64_t size = r->x.dims[r->axis];
  bool is_signed = ax_dtype_get(type.dtype)->kind == AX_KIND_SIGNED;
  if (type.rank == AX_MAX_RANK) return ax_reject_as(r->name, "the rank would exceed %d", AX_MAX_RANK);
  if (is_signed && mode != AX_INDEX_CLIP) {
    ax_dtype wide = size > INT32_MAX ? AX_S64 : AX_S32;
    if (ax_dtype_bytes(type.dtype) < ax_dtype_bytes(wide)) indices = ax_convert_element_type(indices, wide);
    indices = ax_where(ax_lt(indices, ax_integer(0)), ax_add(indices, ax_integer(size)), indices);
  }
  return ax_expand_dims(indices, type.rank);
}

/* --- Rows --- */

/* The window is a row: all of x but for the axis, where it has one; its dimensions stand around those of the indices. */
typedef struct row_lists {
  int64_t window[AX_MAX_RANK], axis[1];
} row_lists;

static row_lists lists_of(const rows *r) {
  row_lists lists = {.axis = {r->axis}};
  for (uint32_t d = 0; d + 1 < r->x.rank; d++) lists.window[d] = d < r->axis ? d : d + r->indices.rank;
  return lists;
}

static bool fits(const rows *r) {
  if (r->x.rank - 1 + r->indices.rank <= AX_MAX_RANK) return true;
  ax_reject_as(r->name, "the rank would exceed %d", AX_MAX_RANK);
  return false;
}

static ax_value take(const char *name, ax_value x, ax_value indices, int64_t axis, const ax_index_options *options) {
  rows r;
  int64_t sizes[AX_MAX_RANK];
  if (!rows_init(&r, name, x, indices, axis) || !fits(&r)) return ax_poison;
  const row_lists lists = lists_of(&r);
  for (uint32_t d = 0; d < r.x.rank; d++) sizes[d] = d == r.axis ? 1 : r.x.dims[d];
  const ax_gather_dims dims = {
      .offset_dims = {r.x.rank - 1, lists.window}, .collapsed_slice_dims = {1, lists.axis}, .start_index_map = {1, lists.axis}};
  return ax_gather(x, single_numbers(&r, indices, options->mode), sizes, &dims, options);
}

ax_value ax_take(ax_value x, ax_value indices, int64_t axis) {
  return take("take", x, indices, axis, &(ax_index_options){.mode = AX_INDEX_CLIP});
}

ax_value ax_take_with(ax_value x, ax_value indices, int64_t axis, const ax_index_options *options) {
  const ax_index_options none = {0};
  return take("take_with", x, indices, axis, options != NULL ? options : &none);
}

/* --- One element for each index --- */

/* Both broadcast to one shape but for the axis. */
static bool broadcast_beside(rows *r, ax_value *x, ax_value *indices) {
  int64_t to_x[AX_MAX_RANK], to_indices[AX_MAX_RANK];
  bool fits = r->x.rank == r->indices.rank;
  for (uint32_t d = 0; d < r->x.rank && fits; d++) {
    int64_t a = r->x.dims[d], b = r->indices.dims[d];
    fits = d == r->axis || a == b || a == 1 || b == 1;
    to_x[d] = d == r->axis || a != 1 ? a : b;
    to_indices[d] = d == r->axis || b != 1 ? b : a;
  }
  if (!fits) {
    ax_reject_as(r->name, "indices %s do not go with %s: all dimensions but %lld must be the same, or 1",
                 ax_operand_string(&r->indices), ax_operand_string(&r->x), (long long)r->axis);
    return false;
  }
  *x = ax_broadcast_to(*x, AX_LIST(r->x.rank, to_x));
  *indices = ax_broadcast_to(*indices, AX_LIST(r->x.rank, to_indices));
  r->x = ax_typeof(*x);
  return !ax_failed();
}

ax_value ax_take_along_axis(ax_value x, ax_value indices, int64_t axis, const ax_index_options *options) {
  const ax_index_options none = {0};
  rows r;
  int64_t sizes[AX_MAX_RANK], others[AX_MAX_RANK];
  if (!rows_init(&r, "take_along_axis", x, indices, axis) || !broadcast_beside(&r, &x, &indices)) return ax_poison;
  for (uint32_t d = 0; d < r.x.rank; d++) sizes[d] = d == r.axis || r.x.dims[d] > 0;
  for (uint32_t d = 0; d + 1 < r.x.rank; d++) others[d] = d < r.axis ? d : d + 1;
  const ax_gather_dims dims = {.collapsed_slice_dims = {1, &r.axis},
                               .start_index_map = {1, &r.axis},
                               .operand_batching_dims = {r.x.rank - 1, others},
                               .start_indices_batching_dims = {r.x.rank - 1, others}};
  return ax_gather(x, single_numbers(&r, indices, options != NULL ? options->mode : none.mode), sizes, &dims, options);
}

/* --- Rows updated --- */

typedef ax_value (*updater)(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                            const ax_index_options *options);

/* The updates are broadcast to [before.., i.., after..]. */
static ax_value update(const char *name, updater scatter, ax_value x, ax_value indices, ax_value updates, int64_t axis,
                       const ax_index_options *options) {
  rows r;
  ax_type given;
  int64_t wanted[AX_MAX_RANK];
  if (!rows_init(&r, name, x, indices, axis) || !fits(&r)) return ax_poison;
  updates = ax_as(name, updates, r.x.dtype);
  if (ax_failed() || !ax_operand(name, updates, &given)) return ax_poison;
  const row_lists lists = lists_of(&r);
  const uint32_t rank = r.x.rank - 1 + r.indices.rank;
  for (uint32_t d = 0; d < r.indices.rank; d++) wanted[r.axis + d] = r.indices.dims[d];
  for (uint32_t d = 0; d + 1 < r.x.rank; d++) wanted[lists.window[d]] = r.x.dims[d < r.axis ? d : d + 1];
  const ax_type type = ax_array_type(r.x.dtype, AX_LIST(rank, wanted));
  if (given.dtype != r.x.dtype)
    return ax_reject_as(name, "updates are %s, the operand is %s", ax_operand_string(&given), ax_operand_string(&r.x));
  bool fits = given.rank <= rank;
  for (uint32_t d = 0; d < given.rank && fits; d++) fits = given.dims[d] == 1 || given.dims[d] == wanted[rank - given.rank + d];
  if (!fits) return ax_reject_as(name, "updates %s do not broadcast to %s", ax_operand_string(&given), ax_operand_string(&type));
  const ax_scatter_dims dims = {.update_window_dims = {r.x.rank - 1, lists.window}, .inserted_window_dims = {1, lists.axis},
                                .scatter_dims_to_operand_dims = {1, lists.axis}};
  ax_index_mode mode = options != NULL ? options->mode : AX_INDEX_FILL;
  return scatter(x, single_numbers(&r, indices, mode), ax_broadcast_to(updates, AX_LIST(rank, wanted)), &dims, options);
}

ax_value ax_at_set(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options) {
  return update("at_set", ax_scatter, x, indices, updates, axis, options);
}
ax_value ax_at_add(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options) {
  return update("at_add", ax_scatter_add, x, indices, updates, axis, options);
}
ax_value ax_at_mul(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options) {
  return update("at_mul", ax_scatter_mul, x, indices, updates, axis, options);
}
ax_value ax_at_min(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options) {
  return update("at_min", ax_scatter_min, x, indices, updates, axis, options);
}
ax_value ax_at_max(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options) {
  return update("at_max", ax_scatter_max, x, indices, updates, axis, options);
}
