/* Helpers for the files of shapes, reductions and products. The checks of infer say which dimension, of which parameter, is
   wrong. */
#include <assert.h>
#include <string.h>

#include "plan/lower.h"
#include "prim/shape.h"


/* --- Lists of dimensions --- */

bool ax_dims_take(const ax_prim *prim, uint32_t count, const int64_t *v, ax_dims *out) {
  *out = (ax_dims){.count = count};
  if (count > AX_MAX_RANK) {
    ax_reject(prim, "rank %u is above %d", count, AX_MAX_RANK);
    return false;
  }
  if (count > 0 && v == NULL) {
    ax_reject(prim, "no dimensions are given for rank %u", count);
    return false;
  }
  if (count > 0) memcpy(out->v, v, count * sizeof v[0]);
  return !ax_failed();
}

bool ax_dims_insert(const ax_prim *prim, ax_dims *dims, uint32_t at, int64_t value) {
  if (dims->count == AX_MAX_RANK || at > dims->count) {
    ax_reject(prim, "the rank would exceed %d", AX_MAX_RANK);
    return false;
  }
  memmove(dims->v + at + 1, dims->v + at, (dims->count - at) * sizeof dims->v[0]);
  dims->v[at] = value;
  dims->count++;
  return true;
}

bool ax_dims_has(const ax_dims *dims, int64_t value) {
  for (uint32_t i = 0; i < dims->count; i++)
    if (dims->v[i] == value) return true;
  return false;
}

void ax_dims_shift(ax_dims *dims, int64_t at) {
  for (uint32_t i = 0; i < dims->count; i++)
    if (dims->v[i] >= at) dims->v[i]++;
}

ax_dims ax_dims_others(uint32_t rank, const ax_dims *a, const ax_dims *b) {
  ax_dims others = {0};
  for (uint32_t d = 0; d < rank; d++)
    if (!ax_dims_has(a, d) && (b == NULL || !ax_dims_has(b, d))) others.v[others.count++] = d;
  return others;
}

ax_dims ax_dims_left(const ax_type *x, const ax_dims *axes) {
  ax_dims left = ax_dims_others(x->rank, axes, NULL);
  for (uint32_t i = 0; i < left.count; i++) left.v[i] = x->dims[left.v[i]];
  return left;
}

/* --- For infer --- */

ax_status ax_infer_shape(ax_dtype dtype, const ax_dims *dims, ax_type *out) {
  if (ax_dtype_bytes(dtype) == 0) return ax_error(AX_INVALID_ARGUMENT, "not a dtype");
  for (uint32_t d = 0; d < dims->count; d++)
    if (dims->v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u of the result is negative: %lld", d, (long long)dims->v[d]);
  *out = ax_array_type(dtype, AX_LIST(dims->count, dims->v));
  return AX_OK;
}

ax_status ax_infer_distinct(const char *what, const ax_dims *dims, uint32_t rank) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < dims->count; i++) {
    int64_t d = dims->v[i];
    if (d < 0 || d >= rank)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %lld, which is outside rank %u", what, (long long)d, rank);
    if (seen >> d & 1) return ax_error(AX_INVALID_ARGUMENT, "%s has %lld twice", what, (long long)d);
    seen |= 1u << d;
  }
  return AX_OK;
}

ax_status ax_infer_one_each(const char *what, const ax_dims *dims, uint32_t rank) {
  if (dims->count == rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s has %u entries for an operand of rank %u", what, dims->count, rank);
}

/* --- Strided access --- */

void ax_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides) {
  int64_t stride = 1;
  for (uint32_t d = rank; d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
}

int64_t ax_strided_at(int64_t index, uint32_t rank, const int64_t *dims, const int64_t *strides) {
  int64_t at = 0;
  for (uint32_t d = rank; d-- > 1; index /= dims[d]) at += index % dims[d] * strides[d];
  return rank > 0 ? at + index * strides[0] : 0;
}

ax_strided ax_strided_dense(const ax_tensor *tensor) {
  ax_strided strided = {.data = tensor->data};
  ax_dense_strides(tensor->rank, tensor->dims, strided.strides);
  return strided;
}

void ax_strided_copy(uint32_t rank, const int64_t *dims, size_t element_bytes, const ax_strided *to,
                     const ax_strided *from) {
  int64_t elems = ax_dims_elems(rank, dims), bytes = (int64_t)element_bytes;
  for (int64_t i = 0; i < elems; i++)
    memcpy((char *)to->data + (to->offset + ax_strided_at(i, rank, dims, to->strides)) * bytes,
           (const char *)from->data + (from->offset + ax_strided_at(i, rank, dims, from->strides)) * bytes,
           element_bytes);
}

/* --- For lower --- */

ax_status ax_lower_move(ax_lower *lower, uint32_t rank, const int64_t *dims, uint32_t dst, const ax_position *dst_at,
                        uint32_t src, const ax_position *src_at) {
  ax_dtype from = ax_lower_type(lower, src)->dtype, to = ax_lower_type(lower, dst)->dtype;
  AX_TRY(ax_lower_kernel_begin(lower, rank, 0, dims));
  ax_ex x = ax_lower_load(lower, src, src_at);
  if (from != to) x = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, to, x, AX_NONE, AX_NONE);
  ax_lower_store(lower, dst, dst_at, x, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

ax_status ax_lower_fill(ax_lower *lower, uint32_t dst, ax_number value) {
  ax_type type = *ax_lower_type(lower, dst);
  ax_position at[AX_MAX_RANK];
  int64_t bits[2] = {0}; /* a complex result has no elements here: others are filled in parts */
  assert(!ax_is_complex(type.dtype) || ax_type_elems(&type) == 0);
  ax_number_store(type.dtype, bits, 0, value);
  ax_at_identity(at, type.rank);
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_lower_store(lower, dst, at, ax_kernel_const(lower->kernel, type.dtype, bits[0]), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

ax_status ax_lower_as_view(ax_lower *lower, const ax_eqn *eqn, uint32_t in, int64_t offset, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  return ax_lower_view(lower, in, type, offset * (int64_t)ax_dtype_bytes(type->dtype), AX_NONE, 0, out);
}
