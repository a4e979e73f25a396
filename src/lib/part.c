/* Parts along one dimension, at places known while tracing or computed: convenient forms of slice and dynamic_slice. */
#include "collectives/collective.h"
#include "prim/composite.h"
#include "prim/shape.h"

/* --- At places known while tracing --- */

static ax_value range(ax_value x, const ax_type *type, uint32_t dimension, int64_t start, int64_t limit, int64_t stride) {
  int64_t starts[AX_MAX_RANK] = {0}, limits[AX_MAX_RANK], strides[AX_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; d++) limits[d] = type->dims[d], strides[d] = 1;
  starts[dimension] = start;
  limits[dimension] = limit;
  strides[dimension] = stride;
  return ax_slice(x, starts, limits, strides);
}

ax_value ax_slice_in_dim(ax_value x, int64_t start, int64_t limit, int64_t stride, int64_t dimension) {
  static const char name[] = "slice_in_dim";
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the dimension", &dimension, type.rank)) return ax_poison;
  int64_t size = type.dims[dimension], from = start < 0 ? start + size : start;
  int64_t to = limit == AX_END ? size : limit < 0 ? limit + size : limit;
  if (from < 0 || to < from || to > size)
    return ax_reject_as(name, "%lld to %lld is not a range of dimension %lld of %s", (long long)start,
                        (long long)(limit == AX_END ? size : limit), (long long)dimension, ax_operand_string(&type));
  if (stride < 1) return ax_reject_as(name, "the stride is %lld; it must be at least 1", (long long)stride);
  return range(x, &type, (uint32_t)dimension, from, to, stride);
}

ax_value ax_at(ax_value x, int64_t index, int64_t dimension) {
  static const char name[] = "at";
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the dimension", &dimension, type.rank)) return ax_poison;
  int64_t size = type.dims[dimension], at = index < 0 ? index + size : index;
  if (at < 0 || at >= size)
    return ax_reject_as(name, "the index is %lld, but dimension %lld of %s has %lld", (long long)index, (long long)dimension,
                     ax_operand_string(&type), (long long)size);
  return ax_drop_dim(range(x, &type, (uint32_t)dimension, at, at + 1, 1), dimension);
}

void (ax_split)(ax_value x, uint32_t count, const int64_t *sizes, int64_t dimension, uint32_t out_count, ax_value *out) {
  static const char name[] = "split";
  ax_type type;
  int64_t sum = 0;
  ax_poison_list(out_count, count, out);
  if (!ax_list_fits(name, "there are", "part", out_count, count)) return;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the dimension", &dimension, type.rank)) return;
  if (count > 0 && sizes == NULL) ax_reject_as(name, "there are no sizes");
  for (uint32_t i = 0; i < count && !ax_failed(); i++)
    if (sizes[i] < 0 || sizes[i] > type.dims[dimension] - sum)
      ax_reject_as(name, "part %u, of %lld, is not inside dimension %lld of %s: the parts before it have %lld", i,
                   (long long)sizes[i], (long long)dimension, ax_operand_string(&type), (long long)sum);
    else sum += sizes[i];
  if (!ax_failed() && sum != type.dims[dimension])
    ax_reject_as(name, "the parts have %lld in all, but dimension %lld of %s has %lld", (long long)sum, (long long)dimension,
              ax_operand_string(&type), (long long)type.dims[dimension]);
  if (ax_failed()) return;
  sum = 0;
  for (uint32_t i = 0; i < count; sum += sizes[i++]) out[i] = range(x, &type, (uint32_t)dimension, sum, sum + sizes[i], 1);
}

/* --- At computed places --- */

/* Starts for each dimension: the index along one, zeros of its dtype along the others. */
static bool starts_at(const char *name, ax_value index, int64_t dimension, uint32_t rank, ax_value *starts) {
  if (ax_is_number(index) && ax_number_real(index) < 0) {
    ax_reject_as(name, "the index is %.17g; it does not count from the end, as that of at and slice_in_dim does",
                 ax_number_real(index));
    return false;
  }
  index = ax_as(name, index, AX_S32);
  ax_type type = ax_typeof(index);
  ax_dtype_kind kind = ax_dtype_get(type.dtype)->kind;
  if (ax_failed()) return false;
  if (type.form != AX_ARRAY || type.rank != 0 || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)) {
    ax_reject_as(name, "the index is %s; it must be an integer scalar", ax_operand_string(&type));
    return false;
  }
  ax_value zero = rank > 1 ? ax_full(type.dtype, AX_DIMS(), 0) : ax_poison;
  for (uint32_t d = 0; d < rank; d++) starts[d] = d == dimension ? index : zero;
  return true;
}

static ax_value dynamic_range(const char *name, ax_value x, const ax_type *type, ax_value start, int64_t size, int64_t dimension) {
  ax_value starts[AX_MAX_RANK];
  int64_t sizes[AX_MAX_RANK];
  if (!starts_at(name, start, dimension, type->rank, starts)) return ax_poison;
  for (uint32_t d = 0; d < type->rank; d++) sizes[d] = d == dimension ? size : type->dims[d];
  return ax_dynamic_slice(x, starts, sizes);
}

ax_value ax_dynamic_slice_in_dim(ax_value x, ax_value start, int64_t size, int64_t dimension) {
  static const char name[] = "dynamic_slice_in_dim";
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the dimension", &dimension, type.rank)) return ax_poison;
  if (size < 0 || size > type.dims[dimension])
    return ax_reject_as(name, "a part of %lld does not fit dimension %lld of %s", (long long)size, (long long)dimension,
                        ax_operand_string(&type));
  return dynamic_range(name, x, &type, start, size, dimension);
}

ax_value ax_dynamic_at(ax_value x, ax_value index, int64_t dimension) {
  static const char name[] = "dynamic_at";
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_dimension(name, "the dimension", &dimension, type.rank)) return ax_poison;
  if (type.dims[dimension] == 0)
    return ax_reject_as(name, "dimension %lld of %s has nothing in it", (long long)dimension, ax_operand_string(&type));
  return ax_drop_dim(dynamic_range(name, x, &type, index, 1, dimension), dimension);
}

/* `part` at `start` along the dimension; of x's shape along the others. */
static ax_value put(const char *name, ax_value x, const ax_type *type, ax_value part, ax_value start, int64_t dimension) {
  ax_value starts[AX_MAX_RANK];
  if (!starts_at(name, start, dimension, type->rank, starts)) return ax_poison;
  return ax_dynamic_update_slice(x, part, starts);
}

ax_value ax_dynamic_update_slice_in_dim(ax_value x, ax_value update, ax_value start, int64_t dimension) {
  static const char name[] = "dynamic_update_slice_in_dim";
  ax_type types[2];
  if (!ax_operands(name, 2, (ax_value[]){x, update}, types) || !ax_dimension(name, "the dimension", &dimension, types[0].rank))
    return ax_poison;
  bool fits = types[0].rank == types[1].rank;
  for (uint32_t d = 0; d < types[0].rank && fits; d++)
    fits = types[1].dims[d] == types[0].dims[d] || (d == dimension && types[1].dims[d] < types[0].dims[d]);
  if (!fits)
    return ax_reject_as(name, "the update is %s; it must be as %s, and not longer along dimension %lld",
                        ax_operand_string(&types[1]), ax_operand_string(&types[0]), (long long)dimension);
  return put(name, x, &types[0], update, start, dimension);
}

ax_value ax_dynamic_at_set(ax_value x, ax_value row, ax_value index, int64_t dimension) {
  static const char name[] = "dynamic_at_set";
  ax_type types[2], wanted;
  if (!ax_operand(name, x, &types[0]) || !ax_dimension(name, "the dimension", &dimension, types[0].rank)) return ax_poison;
  const ax_dims gone = {1, {dimension}};
  ax_dims left = ax_dims_left(&types[0], &gone);
  wanted = ax_array_type(types[0].dtype, AX_LIST(left.count, left.v));
  if (ax_is_number(row)) row = ax_broadcast_in_dim(ax_as(name, row, wanted.dtype), AX_LIST(left.count, left.v), NULL);
  if (!ax_operands(name, 2, (ax_value[]){x, row}, types)) return ax_poison;
  if (types[0].dims[dimension] == 0)
    return ax_reject_as(name, "dimension %lld of %s has nothing in it", (long long)dimension, ax_operand_string(&types[0]));
  if (!ax_same_shape(&types[1], &wanted))
    return ax_reject_as(name, "what is put is %s; along dimension %lld, %s consists of %s", ax_operand_string(&types[1]),
                        (long long)dimension, ax_operand_string(&types[0]), ax_operand_string(&wanted));
  return put(name, x, &types[0], ax_expand_dims(row, dimension), index, dimension);
}
