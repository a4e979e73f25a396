/* Parts that are named by a text, as NumPy writes them: a slice for the strides, a reversal where a step is negative, and a reshape
   that drops and adds dimensions. Each of them is there only where it does something. */
#include <stdio.h>
#include <string.h>

#include "ir/index_text.h"
#include "prim/composite.h"
#include "prim/prims.h"

static bool read(const char *name, const char *text, const ax_type *type, ax_index_part *part) {
  const ax_status status = ax_index_read(text, type, part);
  if (status == AX_OK) return true;
  char what[512];
  snprintf(what, sizeof what, "%s", ax_message());
  ax_reject_as(name, "%s: %s", ax_operand_string(type), what);
  return false;
}

/* The slice that has the part's elements, in ascending order. */
typedef struct box {
  uint32_t rank, turned_count;
  int64_t start[AX_MAX_RANK], limit[AX_MAX_RANK], stride[AX_MAX_RANK], dims[AX_MAX_RANK];
  int64_t turned[AX_MAX_RANK]; /* the dimensions that the part has in descending order */
  bool is_whole, is_dense, is_empty;
} box;

static box box_of(const ax_type *type, const ax_index_part *part) {
  box b = {.rank = type->rank, .is_whole = true, .is_dense = true};
  for (uint32_t d = 0; d < type->rank; d++) {
    const ax_index_range *range = &part->along[d];
    const int64_t stride = range->step < 0 ? -range->step : range->step;
    const int64_t length = range->count > 0 ? (range->count - 1) * stride : 0;
    b.start[d] = range->step < 0 ? range->start - length : range->start;
    b.limit[d] = range->count > 0 ? b.start[d] + length + 1 : b.start[d];
    b.stride[d] = stride;
    b.dims[d] = range->count;
    if (range->step < 0) b.turned[b.turned_count++] = d;
    b.is_whole &= range->count == type->dims[d];
    b.is_dense &= stride == 1;
    b.is_empty |= range->count == 0;
  }
  return b;
}

static ax_value reshaped(ax_value x, const ax_dims *to) {
  const ax_type type = ax_typeof(x), wanted = ax_array_type(type.dtype, AX_LIST(to->count, to->v));
  return ax_same_shape(&type, &wanted) ? x : ax_reshape(x, AX_LIST(to->count, to->v));
}

ax_value ax_index(ax_value x, const char *text) {
  static const char name[] = "index";
  ax_index_part part;
  ax_type type;
  if (!ax_operand(name, x, &type) || !read(name, text, &type, &part)) return ax_poison;
  const box b = box_of(&type, &part);
  if (!b.is_whole) x = ax_slice(x, b.start, b.limit, b.stride);
  if (b.turned_count > 0) x = ax_rev(x, AX_LIST(b.turned_count, b.turned));
  return reshaped(x, &part.result);
}

/* x with `update`, of the box's dimensions, in the box. One that has strides is spread over an array like x, and chosen there. */
static ax_value put(ax_value x, const ax_type *type, ax_value update, const box *b) {
  ax_dtype index = AX_S32;
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] > INT32_MAX) index = AX_S64;
  if (b->is_dense) {
    ax_value starts[AX_MAX_RANK];
    for (uint32_t d = 0; d < type->rank; d++) starts[d] = ax_full_i64(index, AX_DIMS(), b->start[d]);
    return ax_dynamic_update_slice(x, update, starts);
  }
  int64_t high[AX_MAX_RANK], interior[AX_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; d++) {
    high[d] = type->dims[d] - b->limit[d];
    interior[d] = b->stride[d] - 1;
  }
  ax_value inside = ax_full(AX_BOOL, AX_LIST(b->rank, b->dims), 1), outside = ax_full(AX_BOOL, AX_DIMS(), 0);
  ax_value mask = ax_pad(inside, outside, b->start, high, interior);
  ax_value zero = ax_full(type->dtype, AX_DIMS(), 0);
  return ax_where(mask, ax_pad(update, zero, b->start, high, interior), x);
}

ax_value ax_index_set(ax_value x, const char *text, ax_value part) {
  static const char name[] = "index_set";
  ax_index_part at;
  ax_type types[2];
  if (!ax_operand(name, x, &types[0]) || !read(name, text, &types[0], &at)) return ax_poison;
  if (ax_is_number(part)) part = ax_as(name, part, types[0].dtype);
  if (!ax_operands(name, 2, (ax_value[]){x, part}, types)) return ax_poison;
  const ax_type wanted = ax_array_type(types[0].dtype, AX_LIST(at.result.count, at.result.v));
  bool fits = types[1].rank <= wanted.rank;
  for (uint32_t d = 0; d < types[1].rank && fits; d++) {
    const int64_t size = types[1].dims[d];
    fits = size == 1 || size == wanted.dims[wanted.rank - types[1].rank + d];
  }
  if (!fits)
    return ax_reject_as(name, "%s does not broadcast to the part, which is %s", ax_operand_string(&types[1]),
                        ax_operand_string(&wanted));
  const box b = box_of(&types[0], &at);
  if (b.is_empty) return x;
  ax_dims inner = {.count = b.rank};
  memcpy(inner.v, b.dims, sizeof inner.v);
  ax_value update = reshaped(ax_broadcast_to(part, AX_LIST(wanted.rank, wanted.dims)), &inner);
  if (b.turned_count > 0) update = ax_rev(update, AX_LIST(b.turned_count, b.turned));
  return put(x, &types[0], update, &b);
}
