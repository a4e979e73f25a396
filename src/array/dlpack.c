/* Tensors of DLPack. One that is made of an array retains the array's parts, so that they count as shared: a run to which the array is
   donated copies them. One that is taken becomes the memory of an array, lent by its deleter. */
#include "axle/dlpack.h"

#include <string.h>

#include "array/array.h"
#include "base/strided.h"

enum { host = 1 }; /* DLPack's number of the device */

static const struct kind {
  uint8_t code, bits;
} kinds[AX_DTYPE_COUNT] = {
    [AX_BOOL] = {AX_DLPACK_BOOL, 8},
    [AX_S2] = {AX_DLPACK_INT, 2},
    [AX_S4] = {AX_DLPACK_INT, 4},
    [AX_S8] = {AX_DLPACK_INT, 8},
    [AX_S16] = {AX_DLPACK_INT, 16},
    [AX_S32] = {AX_DLPACK_INT, 32},
    [AX_S64] = {AX_DLPACK_INT, 64},
    [AX_U2] = {AX_DLPACK_UINT, 2},
    [AX_U4] = {AX_DLPACK_UINT, 4},
    [AX_U8] = {AX_DLPACK_UINT, 8},
    [AX_U16] = {AX_DLPACK_UINT, 16},
    [AX_U32] = {AX_DLPACK_UINT, 32},
    [AX_U64] = {AX_DLPACK_UINT, 64},
    [AX_F4E2M1FN] = {AX_DLPACK_F4E2M1FN, 4},
    [AX_F6E2M3FN] = {AX_DLPACK_F6E2M3FN, 6},
    [AX_F6E3M2FN] = {AX_DLPACK_F6E3M2FN, 6},
    [AX_F8E3M4] = {AX_DLPACK_F8E3M4, 8},
    [AX_F8E4M3] = {AX_DLPACK_F8E4M3, 8},
    [AX_F8E4M3B11FNUZ] = {AX_DLPACK_F8E4M3B11FNUZ, 8},
    [AX_F8E4M3FN] = {AX_DLPACK_F8E4M3FN, 8},
    [AX_F8E4M3FNUZ] = {AX_DLPACK_F8E4M3FNUZ, 8},
    [AX_F8E5M2] = {AX_DLPACK_F8E5M2, 8},
    [AX_F8E5M2FNUZ] = {AX_DLPACK_F8E5M2FNUZ, 8},
    [AX_F8E8M0FNU] = {AX_DLPACK_F8E8M0FNU, 8},
    [AX_BF16] = {AX_DLPACK_BFLOAT, 16},
    [AX_F16] = {AX_DLPACK_FLOAT, 16},
    [AX_F32] = {AX_DLPACK_FLOAT, 32},
    [AX_F64] = {AX_DLPACK_FLOAT, 64},
    [AX_C64] = {AX_DLPACK_COMPLEX, 64},
    [AX_C128] = {AX_DLPACK_COMPLEX, 128},
};

/* --- Given --- */

typedef struct given {
  ax_dlpack tensor; /* first: its address is the tensor's */
  ax_parts *parts;  /* retained */
  int64_t dims[AX_MAX_RANK], strides[AX_MAX_RANK];
} given;

static void let_go(ax_dlpack *tensor) {
  given *g = tensor->context;
  ax_parts_release(g->parts);
  ax_free(g);
}

static void describe(given *g, const ax_type *type, void *data) {
  const struct kind kind = kinds[type->dtype];
  int64_t next = 1;
  for (uint32_t d = type->rank; d-- > 0; next *= type->dims[d]) g->dims[d] = type->dims[d], g->strides[d] = next;
  g->tensor = (ax_dlpack){
      .version = {AX_DLPACK_MAJOR, AX_DLPACK_MINOR},
      .context = g,
      .deleter = let_go,
      .flags = AX_DLPACK_READ_ONLY | (kind.bits < 8 ? AX_DLPACK_PADDED : 0),
      .tensor = {data, {host, 0}, (int32_t)type->rank, {kind.code, kind.bits, 1}, g->dims, g->strides, 0},
  };
}

ax_status (ax_array_to_dlpack)(const ax_array *array, ax_dlpack **out) {
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  if (layout->blocks != 1 || kinds[layout->type.dtype].bits == 0)
    return ax_error(AX_INVALID_ARGUMENT, "array_to_dlpack: %s in %u parts is no tensor", ax_type_string(&layout->type, NULL), layout->blocks);
  given *g = ax_calloc(1, sizeof *g);
  if (g == NULL) return ax_out_of_memory(sizeof *g);
  const ax_status status = ax_array_open(array);
  if (status != AX_OK) {
    ax_free(g);
    return status;
  }
  g->parts = ax_parts_retain(array->parts);
  describe(g, &layout->type, array->parts->part[0]);
  ax_array_close(array);
  *out = &g->tensor;
  return AX_OK;
}

/* --- Taken --- */

static ax_status type_of(const ax_dlpack *tensor, ax_type *out) {
  const ax_dlpack_tensor *t = &tensor->tensor;
  *out = (ax_type){.dtype = AX_NO_DTYPE, .rank = (uint32_t)t->rank};
  if (tensor->version.major != AX_DLPACK_MAJOR)
    return ax_error(AX_INVALID_ARGUMENT, "array_from_dlpack: version %u of DLPack, and not 1", tensor->version.major);
  if (t->device.type != host) return ax_error(AX_INVALID_ARGUMENT, "array_from_dlpack: memory of DLPack's device type %d, and not the host's", t->device.type);
  if (t->rank < 0 || t->rank > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "array_from_dlpack: %d dimensions", t->rank);
  for (ax_dtype dtype = 0; dtype < AX_DTYPE_COUNT; dtype++) {
    const bool byte_each = kinds[dtype].bits >= 8 || (tensor->flags & AX_DLPACK_PADDED) != 0;
    if (kinds[dtype].bits != 0 && kinds[dtype].code == t->type.code && kinds[dtype].bits == t->type.bits && byte_each) out->dtype = dtype;
  }
  if (out->dtype == AX_NO_DTYPE || t->type.lanes != 1)
    return ax_error(AX_ABSENT, "array_from_dlpack: elements of code %d, %d bits and %d lanes", t->type.code, t->type.bits, t->type.lanes);
  for (int32_t d = 0; d < t->rank; d++) {
    out->dims[d] = t->dims[d];
    if (out->dims[d] < 0) return ax_error(AX_INVALID_ARGUMENT, "array_from_dlpack: dimension %d is %lld", d, (long long)out->dims[d]);
  }
  return AX_OK;
}

static bool is_dense(const ax_dlpack_tensor *t) {
  int64_t next = 1;
  for (int32_t d = t->rank; t->strides != NULL && d-- > 0;) {
    if (t->dims[d] != 1 && t->strides[d] != next) return false;
    next *= t->dims[d];
  }
  return true;
}

static void delete(void *context) {
  ax_dlpack *tensor = context;
  if (tensor->deleter != NULL) tensor->deleter(tensor);
}

static ax_status lend(ax_runtime *runtime, ax_dlpack *tensor, const ax_type *type, size_t bytes, ax_array **out) {
  const ax_part part = {(char *)tensor->tensor.data + tensor->tensor.byte_offset, bytes, delete, tensor, (tensor->flags & AX_DLPACK_READ_ONLY) != 0};
  return (ax_array_from_parts)(runtime, NULL, "", type, 1, &part, out);
}

static ax_status copy(ax_runtime *runtime, ax_dlpack *tensor, const ax_type *type, size_t bytes, ax_array **out) {
  const ax_dlpack_tensor *t = &tensor->tensor;
  const size_t size = ax_dtype_bytes(type->dtype);
  int64_t rows[AX_MAX_RANK], strides[AX_MAX_RANK], next = (int64_t)size;
  char *elements = ax_alloc(bytes);
  if (elements == NULL) return ax_out_of_memory(bytes);
  for (uint32_t d = type->rank; d-- > 0; next *= bytes > 0 ? type->dims[d] : 0)
    rows[d] = next; /* of no elements any dimension may be */
  for (uint32_t d = 0; d < type->rank; d++) strides[d] = t->strides != NULL ? t->strides[d] * (int64_t)size : rows[d];
  ax_strided_move(type->rank, type->dims, size, (ax_strided_place){elements, rows},
                  (ax_strided_place){(char *)t->data + t->byte_offset, strides});
  const ax_status status = (ax_device_put_data)(runtime, NULL, "", type, type->dtype, elements, bytes, out);
  ax_free(elements);
  if (status == AX_OK) delete(tensor);
  return status;
}

ax_status (ax_array_from_dlpack)(ax_runtime *runtime, ax_dlpack *tensor, ax_array **out) {
  ax_type type;
  int64_t elems = 1;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(tensor, "tensor"));
  AX_TRY(type_of(tensor, &type));
  for (uint32_t d = 0; d < type.rank; d++)
    if (!ax_mul_i64(elems, type.dims[d], &elems)) return ax_error(AX_INVALID_ARGUMENT, "array_from_dlpack: %s has too many elements", ax_type_string(&type, NULL));
  const size_t size = ax_dtype_bytes(type.dtype), bytes = (size_t)elems * size;
  const uintptr_t address = (uintptr_t)tensor->tensor.data + tensor->tensor.byte_offset;
  const bool as_is = bytes > 0 && is_dense(&tensor->tensor) && address % size == 0;
  return as_is ? lend(runtime, tensor, &type, bytes, out) : copy(runtime, tensor, &type, bytes, out);
}

/* --- Without a version: each is held by a tensor that has one --- */

static void delete_given(ax_dlpack_unversioned *tensor) {
  ax_dlpack *own = tensor->context;
  own->deleter(own);
  ax_free(tensor);
}

ax_status (ax_array_to_dlpack_unversioned)(const ax_array *array, ax_dlpack_unversioned **out) {
  ax_dlpack *own;
  *out = NULL;
  AX_TRY((ax_array_to_dlpack)(array, &own));
  ax_dlpack_unversioned *tensor = ax_alloc(sizeof *tensor);
  if (tensor == NULL) {
    own->deleter(own);
    return ax_out_of_memory(sizeof *tensor);
  }
  *tensor = (ax_dlpack_unversioned){own->tensor, own, delete_given};
  *out = tensor;
  return AX_OK;
}

static void delete_taken(ax_dlpack *own) {
  ax_dlpack_unversioned *tensor = own->context;
  if (tensor->deleter != NULL) tensor->deleter(tensor);
  ax_free(own);
}

ax_status (ax_array_from_dlpack_unversioned)(ax_runtime *runtime, ax_dlpack_unversioned *tensor, ax_array **out) {
  *out = NULL;
  AX_TRY(ax_require(tensor, "tensor"));
  ax_dlpack *own = ax_alloc(sizeof *own);
  if (own == NULL) return ax_out_of_memory(sizeof *own);
  *own = (ax_dlpack){.version = {AX_DLPACK_MAJOR, 0}, .context = tensor, .deleter = delete_taken, .flags = AX_DLPACK_READ_ONLY | AX_DLPACK_PADDED, .tensor = tensor->tensor};
  const ax_status status = (ax_array_from_dlpack)(runtime, own, out);
  if (status != AX_OK) ax_free(own);
  return status;
}
