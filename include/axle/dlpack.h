/* Arrays shared with other libraries by DLPack: NumPy, PyTorch, JAX and others take and give its tensors. Nothing is copied where
   both sides can use the memory as it is.

   In Python a tensor travels in a capsule called "dltensor_versioned", which an object's __dlpack__ gives (tests/oracle/dlpack.py). The structs
   are DLPack's (https://dmlc.github.io/dlpack): a tensor of another library's header is the same memory. */
#ifndef AXLE_DLPACK_H
#define AXLE_DLPACK_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

enum { AX_DLPACK_MAJOR = 1, AX_DLPACK_MINOR = 1 };

typedef struct ax_dlpack_device { /* DLDevice */
  int32_t type;                   /* 1: the host's memory */
  int32_t id;
} ax_dlpack_device;

typedef enum ax_dlpack_code { /* DLDataTypeCode */
  AX_DLPACK_INT = 0,
  AX_DLPACK_UINT = 1,
  AX_DLPACK_FLOAT = 2,
  AX_DLPACK_BFLOAT = 4,
  AX_DLPACK_COMPLEX = 5,
  AX_DLPACK_BOOL = 6,
  AX_DLPACK_F8E3M4 = 7,
  AX_DLPACK_F8E4M3 = 8,
  AX_DLPACK_F8E4M3B11FNUZ = 9,
  AX_DLPACK_F8E4M3FN = 10,
  AX_DLPACK_F8E4M3FNUZ = 11,
  AX_DLPACK_F8E5M2 = 12,
  AX_DLPACK_F8E5M2FNUZ = 13,
  AX_DLPACK_F8E8M0FNU = 14,
  AX_DLPACK_F6E2M3FN = 15,
  AX_DLPACK_F6E3M2FN = 16,
  AX_DLPACK_F4E2M1FN = 17
} ax_dlpack_code;

typedef struct ax_dlpack_type { /* DLDataType */
  uint8_t code;                 /* ax_dlpack_code */
  uint8_t bits;                 /* of an element */
  uint16_t lanes;               /* 1 */
} ax_dlpack_type;

typedef struct ax_dlpack_tensor { /* DLTensor */
  void *data;
  ax_dlpack_device device;
  int32_t rank;
  ax_dlpack_type type;
  int64_t *dims;
  int64_t *strides; /* in elements; NULL: dense, row-major */
  uint64_t byte_offset;
} ax_dlpack_tensor;

enum { AX_DLPACK_READ_ONLY = 1, AX_DLPACK_COPIED = 2, AX_DLPACK_PADDED = 4 }; /* flags; PADDED: elements of less than 8 bits have a byte each */

typedef struct ax_dlpack { /* DLManagedTensorVersioned */
  struct {
    uint32_t major, minor;
  } version;
  void *context;
  void (*deleter)(struct ax_dlpack *tensor); /* called once, by whoever has the tensor last; NULL: nothing is to be done */
  uint64_t flags;
  ax_dlpack_tensor tensor;
} ax_dlpack;

typedef struct ax_dlpack_unversioned { /* DLManagedTensor, of versions before 1: JAX gives these */
  ax_dlpack_tensor tensor;
  void *context;
  void (*deleter)(struct ax_dlpack_unversioned *tensor);
} ax_dlpack_unversioned;

/* The array as a tensor, which only is to be read, since an array does not change; waits until it is ready. The memory stays until the
   tensor's deleter is called, also if the array is released, or donated: that run has a copy then. Equivalent to x.__dlpack__(max_version=(1, 0)).
   `*out` is the caller's: it calls the deleter, or gives the tensor to a library that does. NULL on failure.
   AX_INVALID_ARGUMENT: an array of several parts (ax_array_part_count; ax_array_on_device gives one of them), a donated one. AX_OUT_OF_MEMORY. Or
   what its run failed with. Any thread. */
AX_MUST_USE ax_status ax_array_to_dlpack(const ax_array *array, ax_dlpack **out);
/* An array, on device 0, of a tensor in the host's memory, which is taken over: its deleter is called when no array needs the memory any more, on
   any thread, or at once where the elements are copied. They are where they are not dense and row-major, or not aligned to an element.
   Equivalent to jax.dlpack.from_dlpack. No other code may write to the memory until the deleter is called.
   `*out` is owned by the caller, NULL on failure; then the tensor is still the caller's.
   AX_INVALID_ARGUMENT: another major version; another device's memory; a rank beyond AX_MAX_RANK or a negative dimension. AX_ABSENT: elements
   that Axle has not. AX_OUT_OF_MEMORY. Any thread. */
AX_MUST_USE ax_status ax_array_from_dlpack(ax_runtime *runtime, ax_dlpack *tensor, ax_array **out);
/* The same by tensors without a version, of capsules called "dltensor", for libraries that know no others. These tensors cannot say that they are only to
   be read: no code may write to one that is given. */
AX_MUST_USE ax_status ax_array_to_dlpack_unversioned(const ax_array *array, ax_dlpack_unversioned **out);
AX_MUST_USE ax_status ax_array_from_dlpack_unversioned(ax_runtime *runtime, ax_dlpack_unversioned *tensor, ax_array **out);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_array_to_dlpack(...) AX_LINED_STATUS(array_to_dlpack, __VA_ARGS__)
#define ax_array_from_dlpack(...) AX_LINED_STATUS(array_from_dlpack, __VA_ARGS__)
#define ax_array_to_dlpack_unversioned(...) AX_LINED_STATUS(array_to_dlpack_unversioned, __VA_ARGS__)
#define ax_array_from_dlpack_unversioned(...) AX_LINED_STATUS(array_from_dlpack_unversioned, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
