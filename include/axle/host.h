/* Host arrays: dense, row-major arrays in the program's own memory. Files are read into them and written from them (axle/npy.h);
   they are put on devices, read back and handed to a run (axle/exec.h).

   A host array owns its data, or is a view of other memory, which must live as long as the view is used. Plain values: no function
   here takes a lock; only one thread may use an array at a time. */
#ifndef AXLE_HOST_H
#define AXLE_HOST_H

#include "axle/type.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* The arguments of an ax_host_view that was refused, besides rank and dims. A function that is given the view reports why. */
typedef struct ax_refused_view {
  const char *call;        /* "prog.c:12: host_view", static; without the line where that is not known; NULL: nothing was refused */
  ax_dtype dtype, element; /* the array's, and that of the memory */
  size_t bytes;            /* of the memory */
} ax_refused_view;

/* Zero-initialise to start, ax_host_array_release to end. */
typedef struct ax_host_array {
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
  void *data; /* product(dims) elements, the last dimension contiguous; from Axle's allocator when Axle filled it */
  bool view;  /* `data` is not owned, and stays when the array is released */
  ax_refused_view refused; /* dtype is AX_NO_DTYPE then */
} ax_host_array;

/* A view of memory in a shape of its own: ax_host_view(AX_F32, AX_DIMS(64, 10), x). Functions that take a const ax_host_array only
   read `data`. Where the dtype or the dimensions are invalid, or the memory is not of that dtype or too short (AX_MEMORY), the view
   has no dtype, and every function refuses it and says why, with the line of ax_host_view. */
ax_host_array ax_host_view(ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_dtype element, const void *data, size_t bytes);
/* AX_HOST(x): a view of a C array of up to 8 dimensions, or of a number, with the dtype and the dimensions that it has in C:
     float x[64][10];     AX_HOST(x) is f32[64,10]
   A pointer does not compile: AX_HOST_AT(p, 64, 10) says the dimensions of what it points to. Both are values whose address can be
   taken (&AX_HOST(x)), and live as long as the block they stand in. No compiler warns of a view that is returned while its memory,
   a variable of the function, is gone: such a function returns an array that owns its data, as ax_run_host gives it. */
#ifndef __cplusplus
#define ax_host_view(dtype, dims, data) \
  ax_lined_view((ax_host_view)(dtype, AX_COUNTED(int64_t, dims), AX_MEMORY(data)), AX_CALL("host_view"))
static inline ax_host_array ax_lined_view(ax_host_array view, const char *call) {
  if (view.dtype == AX_NO_DTYPE) view.refused.call = call;
  return view;
}
#define AX_HOST_AT(pointer, ...)                                                                                             \
  (*(ax_host_array[1]){__extension__({                                                                                       \
    _Static_assert(AX_IS_KNOWN(AX_ELEMENT(pointer)), "AX_HOST_AT takes a pointer to numbers of a dtype, which void and "     \
                                                     "unsigned char are not: ax_host_view takes the dtype");                 \
    ax_lined_view((ax_host_view)(AX_ELEMENT(pointer), AX_DIMS(__VA_ARGS__), AX_MEMORY(pointer)), AX_CALL("AX_HOST_AT"));     \
  })})
#define AX_HOST(x)                                                                                                           \
  (*(ax_host_array[1]){__extension__({                                                                                       \
    typedef __typeof__(x) ax_inside_0;                                                                                       \
    ax_host_array ax_host_of_c = {.view = true};                                                                             \
    AX_INSIDE(0, 1) AX_INSIDE(1, 2) AX_INSIDE(2, 3) AX_INSIDE(3, 4) AX_INSIDE(4, 5) AX_INSIDE(5, 6) AX_INSIDE(6, 7)          \
    AX_INSIDE(7, 8) _Static_assert(AX_IS_KNOWN(AX_C_DTYPE(*(ax_inside_8 *)0)),                                               \
                                   "AX_HOST(x) takes an array of numbers, or a number; for what a pointer points to there "  \
                                   "is AX_HOST_AT(pointer, dimensions)");                                                    \
    ax_host_of_c.data =                                                                                                      \
        (void *)(uintptr_t)&__builtin_choose_expr(AX_IS_KNOWN(AX_C_DTYPE(*(ax_inside_8 *)0)), (x), *(char *)0);              \
    ax_host_of_c.dtype = AX_C_DTYPE(*(ax_inside_8 *)0);                                                                      \
    ax_host_of_c;                                                                                                            \
  })})
/* The type inside an array, and the dimension that is so taken off; of anything else the type itself. Up to rank 8. */
#define AX_INSIDE(outer, inner)                                                                                              \
  typedef __typeof__(*__builtin_choose_expr(AX_IS_ARRAY(*(ax_inside_##outer *)0), *(ax_inside_##outer *)0,                   \
                                            (ax_inside_##outer *)0)) ax_inside_##inner;                                      \
  if (AX_IS_ARRAY(*(ax_inside_##outer *)0))                                                                                  \
    ax_host_of_c.dims[ax_host_of_c.rank++] = (int64_t)(sizeof(ax_inside_##outer) / sizeof(ax_inside_##inner));
#define AX_C_DTYPE(x)                                                                                                        \
  _Generic(x, _Bool: AX_BOOL, signed char: AX_S8, short: AX_S16, int: AX_S32, long: AX_S64, long long: AX_S64,               \
           unsigned char: AX_U8, unsigned short: AX_U16, unsigned: AX_U32, unsigned long: AX_U64, unsigned long long: AX_U64, \
           float: AX_F32, double: AX_F64, float _Complex: AX_C64, double _Complex: AX_C128, default: AX_NO_DTYPE)
/* A bare _Generic, since clang repeats any other condition in front of the sentence. */
#define AX_IS_KNOWN(dtype) _Generic((char(*)[1 + ((dtype) != AX_NO_DTYPE)])0, char(*)[2]: 1, default: 0)
#endif
/* Host arrays as a count and a list: AX_HOST_ARRAYS(a, b) is `2, (ax_host_array[]){a, b}`. */
#ifndef __cplusplus
#define AX_HOST_ARRAYS(...) (uint32_t)(sizeof((ax_host_array[]){__VA_ARGS__}) / sizeof(ax_host_array)), ((ax_host_array[]){__VA_ARGS__})
#endif
typedef struct ax_host_array_list { /* in structs of options: {AX_HOST_ARRAYS(a, b)} */
  uint32_t count;
  const ax_host_array *v;
} ax_host_array_list;
/* Element `index`, counted row-major, of whatever dtype: as a double; integers beyond 2^53 are rounded. NaN if there is no such
   element, it is a key, the array has no data, or its dtype, rank or dimensions are invalid. */
double ax_host_at(const ax_host_array *array, int64_t index);
/* Frees the data, unless the array is a view, and clears the array. NULL and a cleared array are allowed. */
void ax_host_array_release(ax_host_array *array);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
