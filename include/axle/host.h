/* Host arrays: dense, row-major arrays in the program's own memory. Files are read into them and written from them (axle/npy.h);
   they are put on devices, read back and handed to a run (axle/exec.h).

   A host array owns its data, or is a view of other memory, which must live as long as the view is used. Plain values: no function
   here takes a lock; only one thread may use an array at a time. */
#ifndef AXLE_HOST_H
#define AXLE_HOST_H

#include "axle/type.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Zero-initialise to start, ax_host_array_release to end. */
typedef struct ax_host_array {
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
  void *data; /* product(dims) elements, the last dimension contiguous; from Axle's allocator when Axle filled it */
  bool view;  /* `data` is not owned, and stays when the array is released */
} ax_host_array;

/* A view of a C array: ax_host_view(AX_F32, AX_DIMS(64, 10), x). Functions that take a const ax_host_array only read `data`. Where
   the dtype or the dimensions are invalid the view has no dtype, and every function refuses it. */
ax_host_array ax_host_view(ax_dtype dtype, uint32_t rank, const int64_t *dims, const void *data);
/* Host arrays as a count and a list: AX_HOST_ARRAYS(a, b) is `2, (ax_host_array[]){a, b}`. */
#ifndef __cplusplus
#define AX_HOST_ARRAYS(...) (uint32_t)(sizeof((ax_host_array[]){__VA_ARGS__}) / sizeof(ax_host_array)), ((ax_host_array[]){__VA_ARGS__})
#endif
/* Element `index`, counted row-major, of whatever dtype: as a double; integers beyond 2^53 are rounded. NaN if there is no such
   element, the array has no data, or its dtype, rank or dimensions are invalid. */
double ax_host_at(const ax_host_array *array, int64_t index);
/* Frees the data, unless the array is a view, and clears the array. NULL and a cleared array are allowed. */
void ax_host_array_release(ax_host_array *array);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
