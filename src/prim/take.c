/* take: rows looked up one after the other, in a scan over the indices: each costs the row, and so does its gradient, which is added to a
   table of zeros in place. */
#include "prim/composite.h"
#include "prim/shape.h"

typedef struct table {
  ax_value x;
  int64_t axis;
} table;

static void look_up(const ax_value *in, ax_value *out, void *context) {
  const table *t = context;
  out[0] = ax_dynamic_at(t->x, in[0], t->axis);
}

/* Rows [n, rows..] of indices [i..] -> [before.., i.., after..], where `axis` dimensions of a row come before. */
static ax_value put_in_place(ax_value rows, const ax_type *indices, int64_t axis) {
  ax_type type = ax_typeof(rows);
  int64_t order[AX_MAX_RANK], dims[AX_MAX_RANK];
  uint32_t rank = 0;
  if (ax_failed()) return ax_poison;
  for (uint32_t d = 0; d < type.rank; d++) order[d] = d < axis ? d + 1 : d == axis ? 0 : d;
  rows = ax_transpose(rows, order);
  for (uint32_t d = 0; d < axis; d++) dims[rank++] = type.dims[d + 1];
  for (uint32_t d = 0; d < indices->rank; d++) dims[rank++] = indices->dims[d];
  for (uint32_t d = (uint32_t)axis + 1; d < type.rank; d++) dims[rank++] = type.dims[d];
  return ax_reshape(rows, rank, dims);
}

ax_value ax_take(ax_value x, ax_value indices, int64_t axis) {
  static const char name[] = "take";
  ax_type types[2];
  if (!ax_operand(name, x, &types[0]) || !ax_operand(name, indices, &types[1])) return ax_poison;
  ax_dtype_kind kind = ax_dtype_get(types[1].dtype)->kind;
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)
    return ax_reject_as(name, "the indices are %s; they must be integers", ax_operand_string(&types[1]));
  if (!ax_dimension(name, "the axis", &axis, types[0].rank)) return ax_poison;
  if (types[0].dims[axis] == 0)
    return ax_reject_as(name, "dimension %lld of %s has nothing in it", (long long)axis, ax_operand_string(&types[0]));
  if (types[0].rank - 1 + types[1].rank > AX_MAX_RANK) return ax_reject_as(name, "the rank would exceed %d", AX_MAX_RANK);
  if (types[1].rank == 0) return ax_dynamic_at(x, indices, axis);
  table t = {x, axis};
  int64_t count = ax_type_elems(&types[1]);
  ax_value flat = ax_reshape(indices, 1, &count), rows = ax_poison;
  ax_scan(AX_CLOSURE(look_up, 1, 1, &t), 0, count, false, &flat, &rows);
  return put_in_place(rows, &types[1], axis);
}
