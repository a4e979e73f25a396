/* Rows of views: pieces that lie dense on both sides, in row-major order of the elements. */
#include <string.h>

#include "kernel/run.h"

/* The last dimensions that lie in one piece in both: how many, and their bytes. */
static uint32_t dense_tail(const ax_type *type, const int64_t *a, const int64_t *b, int64_t *bytes) {
  uint32_t dense = 0;
  *bytes = (int64_t)ax_dtype_bytes(type->dtype);
  while (dense < type->rank) {
    uint32_t d = type->rank - 1 - dense;
    if (type->dims[d] != 1 && (a[d] != *bytes || b[d] != *bytes)) break;
    *bytes *= type->dims[d];
    dense++;
  }
  return dense;
}

static void dense_strides(const ax_type *type, int64_t *out) {
  int64_t stride = (int64_t)ax_dtype_bytes(type->dtype);
  for (uint32_t d = type->rank; d-- > 0; stride *= type->dims[d]) out[d] = stride;
}

void ax_rows_copy(const ax_type *type, const int64_t *from_strides, const void *from, const int64_t *to_strides, void *to) {
  int64_t bytes, index[AX_MAX_RANK] = {0};
  const char *source = from;
  char *target = to;
  if (ax_type_elems(type) == 0) return;
  uint32_t outer = type->rank - dense_tail(type, from_strides, to_strides, &bytes);
  for (;;) {
    memmove(target, source, (size_t)bytes);
    uint32_t d = outer;
    while (d-- > 0) {
      source += from_strides[d], target += to_strides[d];
      if (++index[d] < type->dims[d]) break;
      source -= from_strides[d] * type->dims[d], target -= to_strides[d] * type->dims[d];
      index[d] = 0;
    }
    if (d == AX_NONE) return; /* below 0 */
  }
}

/* Element by element: to or from dense memory. */
static void masked(const ax_type *type, const int64_t *strides, char *view, const unsigned char *mask, char *dense, bool takes) {
  size_t bytes = ax_dtype_bytes(type->dtype);
  int64_t elems = ax_type_elems(type), index[AX_MAX_RANK] = {0};
  for (int64_t i = 0; i < elems; i++, dense += bytes) {
    if (mask[i] != 0) memcpy(takes ? dense : view, takes ? view : dense, bytes);
    for (uint32_t d = type->rank; d-- > 0;) {
      view += strides[d];
      if (++index[d] < type->dims[d]) break;
      view -= strides[d] * type->dims[d];
      index[d] = 0;
    }
  }
}

void ax_rows_take(const ax_type *type, const int64_t *strides, const void *view, const unsigned char *mask, void *to) {
  int64_t dense[AX_MAX_RANK];
  dense_strides(type, dense);
  if (mask != NULL) masked(type, strides, (char *)(uintptr_t)view, mask, to, true);
  else ax_rows_copy(type, strides, view, dense, to);
}

void ax_rows_put(const ax_type *type, const int64_t *strides, void *view, const unsigned char *mask, const void *from) {
  int64_t dense[AX_MAX_RANK];
  dense_strides(type, dense);
  if (mask != NULL) masked(type, strides, view, mask, (char *)(uintptr_t)from, false);
  else ax_rows_copy(type, dense, from, strides, view);
}
