#include "check/made_up.h"

#include <string.h>

#include "axle/axle.h"
#include "ir/number.h"

static ax_status copy_given(const ax_type *type, const ax_host_array *given, uint32_t index, ax_tensor *out) {
  ax_status status = ax_view_check(given);
  if (status != AX_OK) return ax_error_context(status, "input %u: ", index);
  ax_type have = ax_array_type(given->dtype, AX_LIST(given->rank, given->dims));
  if (have.dtype != type->dtype || !ax_same_shape(&have, type))
    return ax_error(AX_INVALID_ARGUMENT, "input %u is %s, not %s", index, ax_type_string(type, NULL), ax_type_string(&have, NULL));
  memcpy(out->data, given->data, (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype));
  return AX_OK;
}

/* The largest number of an integer dtype, if that is small; 1 of booleans; 0: the dtype has no integers. */
static uint64_t most_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const uint32_t bits = info->kind == AX_KIND_SIGNED ? info->bits - 1 : info->bits;
  if (info->kind != AX_KIND_SIGNED && info->kind != AX_KIND_UNSIGNED && info->kind != AX_KIND_BOOL) return 0;
  return ((uint64_t)1 << (bits < 30 ? bits : 30)) - 1;
}

static void number(ax_tensor *out, uint64_t elems, uint32_t index) {
  const uint64_t most = most_of(out->dtype);
  for (uint64_t i = 0; i < elems && most > 0; i++) /* counted from 1, and from 0 again behind the largest */
    ax_number_store(out->dtype, out->data, (int64_t)i, (ax_number){.i = (int64_t)((1 + index + i) % (most + 1))});
}

ax_status ax_made_up_input(const ax_type *type, const ax_host_array *given, uint32_t index, bool distinct, ax_tensor **out) {
  AX_TRY(ax_tensor_create(type, out));
  if (given != NULL) {
    const ax_status status = copy_given(type, given, index, *out);
    if (status == AX_OK) return AX_OK;
    ax_tensor_release(*out);
    *out = NULL;
    return status;
  }
  uint64_t random = index + 1;
  for (int64_t i = 0; i < ax_type_elems(type) && ax_is_float(type->dtype); i++)
    ax_number_store(type->dtype, (*out)->data, i, (ax_number){.f = (double)(int64_t)(ax_next_random(&random) % 17) / 4 - 2});
  if (distinct) number(*out, (uint64_t)ax_type_elems(type), index);
  return AX_OK;
}
