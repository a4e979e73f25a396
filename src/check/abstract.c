/* Values for all inputs. */
#include "check/abstract.h"

#include <string.h>

#include "ir/number.h"

/* --- Values --- */

ax_abstract *ax_abstract_retain(ax_abstract *value) {
  if (value != NULL) value->references++;
  return value;
}

void ax_abstract_release(ax_abstract *value) {
  if (value == NULL || --value->references > 0) return;
  ax_tensor_release(value->tensor);
  ax_free(value->ids);
  ax_free(value);
}

static ax_status create(ax_abstract **out) {
  *out = ax_calloc(1, sizeof **out);
  if (*out == NULL) return ax_out_of_memory(sizeof **out);
  (*out)->references = 1;
  return AX_OK;
}

ax_status ax_abstract_range(uint64_t count, ax_interval range, ax_abstract **out) {
  AX_TRY(create(out));
  (*out)->count = count;
  (*out)->range = range;
  return AX_OK;
}

ax_status ax_abstract_own(ax_tensor *tensor, ax_abstract **out) {
  AX_TRY(create(out));
  (*out)->count = (uint64_t)ax_dims_elems(tensor->rank, tensor->dims);
  (*out)->tensor = tensor;
  return AX_OK;
}

ax_status ax_abstract_tensor(const ax_tensor *tensor, ax_abstract **out) {
  ax_tensor *copy;
  *out = NULL;
  AX_TRY(ax_tensor_copy(tensor, &copy));
  const ax_status status = ax_abstract_own(copy, out);
  if (status != AX_OK) ax_tensor_release(copy);
  return status;
}

ax_status ax_abstract_ids(ax_symbols *symbols, uint64_t count, ax_abstract **out) {
  AX_TRY(create(out));
  (*out)->serial = ax_symbols_serial(symbols);
  (*out)->count = count;
  (*out)->ids = ax_alloc((count + 1) * sizeof(*out)->ids[0]);
  if ((*out)->ids != NULL) return AX_OK;
  ax_abstract_release(*out);
  *out = NULL;
  return ax_out_of_memory(count);
}

ax_status ax_abstract_view(const ax_view *view, ax_abstract **out) {
  AX_TRY(create(out));
  (*out)->is_view = true;
  (*out)->view = *view;
  return AX_OK;
}

bool ax_abstract_has_ids(const ax_abstract *value, ax_dtype dtype) {
  return ax_is_counted(dtype) && !value->is_view && value->count <= AX_MOST_SYMBOLS &&
         (value->tensor != NULL || value->ids != NULL);
}

static int64_t integer_of(ax_dtype dtype, const void *data, uint64_t at) {
  return ax_number_load(dtype, data, (int64_t)at).i; /* unsigned ones of less than 64 bits too */
}

ax_status ax_abstract_id(ax_symbols *symbols, const ax_abstract *value, ax_dtype dtype, uint64_t element, uint32_t *out) {
  if (value->ids == NULL) return ax_symbols_constant(symbols, dtype, integer_of(dtype, value->tensor->data, element), out);
  *out = value->ids[element];
  return AX_OK;
}

ax_interval ax_abstract_bounds(const ax_symbols *symbols, const ax_abstract *value) {
  if (value->tensor == NULL && value->ids == NULL) return value->range;
  const ax_dtype dtype = value->tensor != NULL ? value->tensor->dtype : AX_S64;
  ax_interval all = ax_interval_of_dtype(dtype);
  if (!ax_is_counted(dtype)) return all;
  for (uint64_t i = 0; i < value->count; i++) {
    const int64_t one = value->tensor != NULL ? integer_of(dtype, value->tensor->data, i) : 0;
    const ax_interval range = value->tensor != NULL ? (ax_interval){one, one} : ax_symbols_range(symbols, value->ids[i]);
    all = i == 0 ? range : ax_interval_hull(all, range);
  }
  return all;
}

ax_status ax_abstract_settle(const ax_symbols *symbols, const ax_type *type, ax_abstract **value) {
  ax_abstract *of = *value;
  ax_tensor *tensor;
  for (uint64_t i = 0; i < of->count; i++)
    if (!ax_interval_is_one(ax_symbols_range(symbols, of->ids[i]))) return AX_OK;
  AX_TRY(ax_tensor_create(type, &tensor));
  for (uint64_t i = 0; i < of->count; i++)
    ax_number_store(type->dtype, tensor->data, (int64_t)i, (ax_number){.i = ax_symbols_range(symbols, of->ids[i]).low});
  const ax_status status = ax_abstract_own(tensor, value);
  if (status == AX_OK)
    ax_abstract_release(of);
  else
    ax_tensor_release(tensor), *value = of;
  return status;
}

/* --- Two paths meet --- */

static bool same_view(const ax_abstract *a, const ax_abstract *b) {
  const ax_view *x = &a->view, *y = &b->view;
  if (x->region != y->region || x->offset != y->offset || x->type.rank != y->type.rank || a->nowhere != b->nowhere ||
      a->shift_count != b->shift_count || memcmp(x->type.dims, y->type.dims, x->type.rank * sizeof x->type.dims[0]) != 0 ||
      memcmp(x->strides, y->strides, x->type.rank * sizeof x->strides[0]) != 0)
    return false;
  for (uint32_t k = 0; k < a->shift_count; k++)
    if (a->shifts[k].part != b->shifts[k].part || a->shifts[k].constant != b->shifts[k].constant ||
        a->shifts[k].stride != b->shifts[k].stride)
      return false;
  return true;
}

static ax_status join_ids(ax_symbols *symbols, ax_dtype dtype, const ax_abstract *a, const ax_abstract *b, ax_abstract *out) {
  for (uint64_t i = 0; i < out->count; i++) {
    uint32_t x, y;
    AX_TRY(ax_abstract_id(symbols, a, dtype, i, &x));
    AX_TRY(ax_abstract_id(symbols, b, dtype, i, &y));
    out->ids[i] = x;
    if (x == y) continue;
    const ax_interval hull = ax_interval_hull(ax_symbols_range(symbols, x), ax_symbols_range(symbols, y));
    AX_TRY(ax_symbols_fresh(symbols, dtype, hull, &out->ids[i]));
  }
  return AX_OK;
}

ax_status ax_abstract_join(ax_symbols *symbols, const ax_type *type, ax_abstract *a, ax_abstract *b, ax_abstract **out) {
  *out = NULL;
  if (a == b || (a->is_view && b->is_view && same_view(a, b))) {
    *out = ax_abstract_retain(a);
    return AX_OK;
  }
  if (a->is_view || b->is_view) return AX_OK;
  if (!ax_abstract_has_ids(a, type->dtype) || !ax_abstract_has_ids(b, type->dtype))
    return ax_abstract_range(a->count, ax_interval_hull(ax_abstract_bounds(symbols, a), ax_abstract_bounds(symbols, b)), out);
  AX_TRY(ax_abstract_ids(symbols, a->count, out));
  return join_ids(symbols, type->dtype, a, b, *out);
}
