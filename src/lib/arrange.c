/* Moves, adds and drops dimensions, and joins arrays along an old or a new one. */
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/shape.h"

ax_value ax_moveaxis(ax_value x, int64_t source, int64_t destination) {
  static const char name[] = "moveaxis";
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the source", &source, type.rank) ||
      !ax_dimension(name, "the destination", &destination, type.rank))
    return ax_poison;
  return ax_move_dim(x, (int)source, (int)destination);
}

ax_value ax_swapaxes(ax_value x, int64_t a, int64_t b) {
  static const char name[] = "swapaxes";
  int64_t permutation[AX_MAX_RANK];
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the first dimension", &a, type.rank) ||
      !ax_dimension(name, "the second dimension", &b, type.rank))
    return ax_poison;
  for (uint32_t d = 0; d < type.rank; d++) permutation[d] = d;
  permutation[a] = b;
  permutation[b] = a;
  return ax_transpose(x, permutation);
}

ax_value ax_matrix_transpose(ax_value x) {
  static const char name[] = "matrix_transpose";
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (type.rank < 2) return ax_reject_as(name, "the operand is %s; it needs two dimensions", ax_operand_string(&type));
  return ax_swapaxes(x, -2, -1);
}

ax_value (ax_squeeze)(ax_value x, uint32_t count, const int64_t *dimensions) {
  static const char name[] = "squeeze";
  ax_dims gone = {0};
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (count > 0 && dimensions == NULL) return ax_reject_as(name, "there are no dimensions");
  for (uint32_t d = 0; d < type.rank && dimensions == NULL; d++)
    if (type.dims[d] == 1) gone.v[gone.count++] = d;
  for (uint32_t i = 0; i < count; i++) {
    int64_t dimension = dimensions[i];
    if (!ax_dimension(name, "a dimension", &dimension, type.rank)) return ax_poison;
    if (type.dims[dimension] != 1)
      return ax_reject_as(name, "dimension %lld of %s is not 1", (long long)dimension, ax_operand_string(&type));
    if (ax_dims_has(&gone, dimension)) return ax_reject_as(name, "dimension %lld is named twice", (long long)dimension);
    gone.v[gone.count++] = dimension;
  }
  ax_dims left = ax_dims_left(&type, &gone);
  return gone.count == 0 ? x : ax_reshape(x, AX_LIST(left.count, left.v));
}

ax_value (ax_stack)(uint32_t count, const ax_value *xs, int64_t dimension) {
  static const char name[] = "stack";
  if (ax_failed()) return ax_poison;
  if (count == 0) return ax_reject_as(name, "there is nothing to stack");
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  ax_value *rows = ax_trace_alloc(count * sizeof rows[0]);
  if (types == NULL || rows == NULL || !ax_operands(name, count, xs, types)) return ax_poison;
  if (types[0].rank == AX_MAX_RANK) return ax_reject_as(name, "the rank would exceed %d", AX_MAX_RANK);
  if (!ax_dimension(name, "the dimension", &dimension, types[0].rank + 1)) return ax_poison;
  for (uint32_t i = 1; i < count; i++)
    if (!ax_same_shape(&types[0], &types[i]))
      return ax_reject_as(name, "operands 0 and %u are %s and %s; they need one shape", i, ax_operand_string(&types[0]),
                          ax_operand_string(&types[i]));
  for (uint32_t i = 0; i < count; i++) rows[i] = ax_expand_dims(xs[i], dimension);
  return ax_concatenate(AX_LIST(count, rows), dimension);
}

ax_value (ax_broadcast_to)(ax_value x, uint32_t rank, const int64_t *dims) {
  static const char name[] = "broadcast_to";
  int64_t where[AX_MAX_RANK];
  ax_dims to;
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dims_take(&ax_prim_broadcast_in_dim, rank, dims, &to)) return ax_poison;
  ax_type wanted = ax_array_type(type.dtype, AX_LIST(rank, dims));
  bool fits = type.rank <= rank && wanted.dtype != AX_NO_DTYPE;
  for (uint32_t d = 0; d < type.rank && fits; d++) {
    where[d] = rank - type.rank + d;
    fits = type.dims[d] == 1 || type.dims[d] == dims[where[d]];
  }
  if (!fits) return ax_reject_as(name, "%s does not broadcast to %s", ax_operand_string(&type), ax_operand_string(&wanted));
  return ax_same_shape(&type, &wanted) ? x : ax_broadcast_in_dim(x, AX_LIST(rank, dims), where);
}
