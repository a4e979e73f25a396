/* Dtypes, meshes and types. All are plain values: copy them freely; nothing here owns memory or blocks. */
#ifndef AXLE_TYPE_H
#define AXLE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/line.h"
#include "axle/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

enum {
  AX_MAX_RANK = 16, /* dimensions of an array */
  AX_MAX_AXES = 16, /* of a mesh, and of an axis environment: shard_maps and vmaps inside one another together */
  AX_MAX_NAME = 32  /* bytes of an axis's name, the NUL included; letters, digits and _, not "_" alone and no digit first */
};

typedef enum ax_dtype {
  AX_NO_DTYPE = 0,
  AX_BOOL, /* one byte, 0 or 1 */
  AX_S2,   /* integers of 2 and 4 bits: one byte each, whose upper bits are 0 and not looked at */
  AX_S4,
  AX_S8,
  AX_S16,
  AX_S32,
  AX_S64,
  AX_U2,
  AX_U4,
  AX_U8,
  AX_U16,
  AX_U32,
  AX_U64,
  AX_F4E2M1FN, /* floats of 4 and 8 bits, one byte each; their names say the bits of exponent and mantissa, and are ml_dtypes' */
  AX_F8E3M4,
  AX_F8E4M3,
  AX_F8E4M3B11FNUZ,
  AX_F8E4M3FN,
  AX_F8E4M3FNUZ,
  AX_F8E5M2,
  AX_F8E5M2FNUZ,
  AX_F8E8M0FNU,
  AX_BF16,
  AX_F16,
  AX_F32,
  AX_F64,
  AX_C64,  /* complex numbers: the real part, then the imaginary one, each f32, as `float _Complex` in C */
  AX_C128, /* the same of f64 */
  AX_KEY,  /* keys of random numbers (axle/random.h): two words of 32 bits, the first one first. They have no arithmetic, no order, and
              are converted to nothing */
  AX_F6E2M3FN, /* floats of 6 bits, as those of 4 and 8 */
  AX_F6E3M2FN,
  AX_DTYPE_COUNT
} ax_dtype;

/* Bytes of one element; 0 for AX_NO_DTYPE. */
size_t ax_dtype_bytes(ax_dtype dtype);
/* "f32", ...; "?" for an unknown one. Static. */
const char *ax_dtype_name(ax_dtype dtype);

/* A named axis of devices. `unchecked` axes do not take part in the varying/invariant types. An `automatic` axis of a shard_map's
   mesh is one that its body does not take by hand (ax_mesh_manual): no collective and no type names it, and the partitioner decides
   which values it cuts. */
typedef struct ax_axis {
  char name[AX_MAX_NAME];
  int64_t size;
  bool unchecked, automatic;
} ax_axis;

/* Axes in order, major first: device id = the row-major index of its coordinates. Also the axis environment of a program. */
typedef struct ax_mesh {
  uint32_t count;
  ax_axis axis[AX_MAX_AXES];
} ax_mesh;

/* Parses "data=4,model=2" ("" is the mesh of one device).
   AX_INVALID_ARGUMENT: bad syntax, a size below 1, a name twice, too many axes, more than 2^31 devices. A mesh filled by hand may
   have the same faults; functions with a status refuse it, and those without answer as if the mesh were empty. */
AX_MUST_USE ax_status ax_mesh_parse(const char *text, ax_mesh *out);
/* The product of the sizes: 1 for a mesh without axes; 0 where there are more than AX_MAX_AXES, a size is below 1 or the product
   beyond int64_t. */
int64_t ax_mesh_devices(const ax_mesh *mesh);
/* Index of the axis called `name`, or -1: also where there are more than AX_MAX_AXES. */
int ax_mesh_find(const ax_mesh *mesh, const char *name);

/* The mesh of which a shard_map takes the named axes by hand, "data,model": the others become automatic. As the `axis_names` of
   jax.shard_map.
   AX_INVALID_ARGUMENT: an unsound mesh; a name that it has not, or twice; groups. */
AX_MUST_USE ax_status ax_mesh_manual(const ax_mesh *mesh, const char *names, ax_mesh *out);

/* One bit an axis of the program's axis environment. */
typedef uint64_t ax_axis_set;

/* The kind of a value. A future is an array that a collective under way will give; a token holds nothing and shows that a message
   was sent (both in axle/collectives.h). A token's dtype is AX_BOOL and its rank 0. The others exist only in kernels
   (axle/kernel.h): memory that is read and written; and arrays of semaphores, of semaphores that copies signal, and of barriers,
   whose dtype is AX_S32. */
typedef enum ax_form { AX_ARRAY, AX_FUTURE, AX_TOKEN, AX_REF, AX_SEMAPHORE, AX_DMA_SEMAPHORE, AX_BARRIER } ax_form;

/* The memory space of a ref. A kernel's target gives each space's name, capacity and alignment on a machine (ax_target_parse). */
typedef enum ax_space {
  AX_SPACE_NONE,      /* of types that are no ref, and of semaphores and barriers */
  AX_SPACE_ANY,       /* wherever its maker put it */
  AX_SPACE_HBM,       /* the device's large memory; GMEM on GPUs */
  AX_SPACE_VMEM,      /* a core's own fast memory for arrays; SMEM on GPUs, where the warpgroups of a block have it together */
  AX_SPACE_SMEM,      /* a core's memory for scalars, which addresses are computed from */
  AX_SPACE_REGISTERS, /* accumulators */
  AX_SPACE_COUNT
} ax_space;
#define AX_SPACE_GMEM AX_SPACE_HBM

/* The operation that combines the devices' parts of an unreduced value. */
typedef enum ax_unreduced_kind { AX_UNREDUCED_SUM, AX_UNREDUCED_MAX, AX_UNREDUCED_MIN } ax_unreduced_kind;

/* How a value spreads over the mesh: an axis is in one of the sets at most. Along an axis of `varying` devices may hold different
   values. Along one of `unreduced` each holds a part, and the value is the parts combined by `kind`. Along one of `reduced` all
   hold the same, and their cotangents are the parts of one. Along all others the value is invariant: the same on all devices. */
typedef struct ax_spread {
  ax_axis_set varying, reduced, unreduced;
  ax_unreduced_kind kind; /* AX_UNREDUCED_SUM when `unreduced` is empty */
} ax_spread;

/* The type of a value on one device, and how the value spreads over the mesh. */
typedef struct ax_type {
  ax_form form;
  ax_space space; /* of an AX_REF; AX_SPACE_NONE for all others */
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
  ax_spread spread;
} ax_type;

/* An invariant array type; `dims` has `rank` entries and may be NULL when rank is 0. An unknown dtype, a rank above AX_MAX_RANK
   or a negative dimension makes a type with AX_NO_DTYPE, which every function refuses. */
ax_type ax_array_type(ax_dtype dtype, uint32_t rank, const int64_t *dims);
/* Lists. A function takes a list as a count and a pointer, count first, and in C one argument stands for both:
     AX_DIMS(2, 3)    `2, (int64_t[]){2, 3}`; AX_DIMS() is a list of none. Likewise AX_VALUES, AX_TYPES, AX_ARRAYS and the like
     AX_LIST(n, p)    n entries at p
   A function that knows how many entries it needs (its header calls the count in_count, out_count and the like) also takes
     x                a C array or the address of a variable: an error where the compiler knows it to have fewer entries than are
                      needed; those behind them are not looked at
     p                a pointer to what the compiler does not know: nothing is checked
   Functions whose list alone says how many entries there are, such as ax_reshape, take AX_DIMS, AX_LIST and the like only; a bare x
   does not compile.
   The compiler knows how many entries arrays have, also arrays whose length is found as the program runs (`ax_value g[n]`). Of what
   is inside an array (g + 1), and of memory from malloc, it may know that when it optimises, and does not at -O0. AX_LIST(n, p) is
   believed: a wrong n is a fault of the program, as it is for memcpy.
   Lists that are written out live as long as the block they stand in. C++ has no macros that make lists: they are {2, 3} there, and
   the like (docs/cxx.md). AX_ALL_DIMS is the list that stands for all dimensions.
   A count is exact, or AX_ROOM(n), as the macros give it for x: n entries, of which the first are used.
   In structs of options a list is a struct of both, made of the same macros in braces, {AX_DIMS(2, 3)} or {AX_LIST(n, p)}, whose
   count is exact. {0} says nothing: the default holds. Otherwise another number of entries than is needed is an error of the call
   that takes the options. */
#define AX_ALL_DIMS 0, NULL
#define AX_ROOM(count) (UINT32_C(0x80000000) | (uint32_t)(count))
#define AX_ANY_ROOM UINT32_MAX /* as many as are needed */
typedef struct ax_dim_list { /* in structs of options: {AX_DIMS(0, 2)} */
  uint32_t count;
  const int64_t *v;
} ax_dim_list;
#ifndef __cplusplus
#define AX_DIMS(...) (uint32_t)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1), ((int64_t[]){0, __VA_ARGS__} + 1)
#define AX_PAIRS(...) (uint32_t)(sizeof((int64_t[][2]){__VA_ARGS__}) / sizeof(int64_t[2])), ((const int64_t[][2]){__VA_ARGS__})
#define AX_LIST(count, list) (uint32_t)(count), (list)
/* The list of a function that takes no bare x, as its macro takes it: AX_DIMS and the like have become a count and a list. */
#define AX_EXACTLY(count, list) count, list
/* A list as a function's macro takes it, x or the others, becomes a count and a pointer. A list that is a member of a struct ends
   with the member. */
#define AX_COUNTED(type, ...) AX_COUNTED_(__VA_ARGS__, AX_COUNTED_BOTH, AX_COUNTED_LIST, )(type, __VA_ARGS__)
#define AX_COUNTED_(list_or_count, list, which, ...) which
#define AX_COUNTED_BOTH(type, count, list) count, list
#define AX_COUNTED_LIST(type, list) ax_room(AX_LIST_BYTES(list), sizeof(type)), (list)
static inline uint32_t ax_room(size_t bytes, size_t each) {
  return bytes / each < 0x7fffffff ? AX_ROOM(bytes / each) : AX_ANY_ROOM; /* bytes: SIZE_MAX where they are not known */
}
/* The bytes of an array; of what a pointer points to, those that the compiler knows of, or SIZE_MAX. */
#define AX_LIST_BYTES(x) (AX_IS_ARRAY(x) ? sizeof(__typeof__(x)) : __builtin_object_size((x), 1))
#define AX_IS_ARRAY(x) (!__builtin_types_compatible_p(__typeof__(x), __typeof__(((void)0, (x)))))
/* AX_TYPE(AX_F32, 8, 4) is f32[8,4], AX_TYPE(AX_F32) a scalar. */
#define AX_TYPE(...) ax_listed_type((uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
/* AX_TYPES(AX_TYPE(AX_F32, 8), AX_TYPE(AX_S32)): types of operands, a count and a list. */
#define AX_TYPES(...) (uint32_t)(sizeof((ax_type[]){{0}, __VA_ARGS__}) / sizeof(ax_type) - 1), ((ax_type[]){{0}, __VA_ARGS__} + 1)
static inline ax_type ax_listed_type(uint32_t count, const int64_t *dtype_and_dims) {
  return ax_array_type((ax_dtype)dtype_and_dims[0], count - 1, dtype_and_dims + 1);
}
#endif
/* Memory of the caller's is an address, and what the compiler knows of it: in C the macros of functions that take `data` find
   the dtype of its elements and the bytes that are there. An array of another C type than the dtype's, or of fewer bytes than
   are needed, is an error of the call. Signed and unsigned integers of one size may stand for each other. What a `void *`, or an
   `unsigned char *`, points to may be of any dtype, and what a pointer points to of any length, unless the compiler knows it, as of
   lists above; bf16 and f16 are read and written as uint16_t, floats of a byte and short integers as uint8_t or int8_t.
   An array that is a member of a struct ends with the member; of a pointer into the member, &s.member[0], only the end of the whole
   variable is known.
   element: AX_NO_DTYPE is not known; bytes: SIZE_MAX is not known. */
#ifndef __cplusplus
#define AX_MEMORY(data) AX_ELEMENT(data), (data), AX_BYTES(data)
/* The bytes that a caller says memory has, or those that the compiler knows of if these are fewer. */
#define AX_WITHIN(data, bytes) ax_at_most((bytes), AX_BYTES(data))
static inline size_t ax_at_most(size_t bytes, size_t most) { return bytes < most ? bytes : most; }
/* The bytes up to the end of the variable that `data` lies in: a row, a[0] of float a[4][4], has all rows from there on. A member
   of a struct, s.member, has its own bytes alone. Compilers cannot tell &s.member[0] from &a[0][0], so it has the variable's. */
#define AX_BYTES(data)                                                                                                   \
  __builtin_choose_expr(AX_IS_ARRAY(data),                                                                               \
                        ax_array_bytes(sizeof(__typeof__(data)), __builtin_object_size(&AX_ARRAY_OF(data)[0], 1),        \
                                       __builtin_object_size(&AX_ARRAY_OF(data), 1), __builtin_object_size((data), 0)),  \
                        __builtin_object_size((data), 0))
/* size: of its type, which is known also of an array whose length is found as the program runs; own: the array's; around: those of
   the array that it is a row of, or else its own. */
static inline size_t ax_array_bytes(size_t size, size_t own, size_t around, size_t variable) {
  return variable == SIZE_MAX ? size : around == own ? own : variable;
}
#define AX_ARRAY_OF(x) __builtin_choose_expr(AX_IS_ARRAY(x), (x), *(char(*)[1])0)
/* The dtype of an array's elements, or of what a pointer points to. */
#define AX_ELEMENT(data)                                                                                                     \
  _Generic((data), AX_OF(_Bool, AX_BOOL), AX_OF(signed char, AX_S8), AX_OF(short, AX_S16), AX_OF(int, AX_S32),               \
           AX_OF(long, AX_S64), AX_OF(long long, AX_S64), AX_OF(unsigned short, AX_U16), AX_OF(unsigned, AX_U32),            \
           AX_OF(unsigned long, AX_U64), AX_OF(unsigned long long, AX_U64), AX_OF(float, AX_F32), AX_OF(double, AX_F64),     \
           AX_OF(float _Complex, AX_C64), AX_OF(double _Complex, AX_C128),                                                   \
           default: AX_NO_DTYPE)
#define AX_OF(type, dtype) type *: dtype, const type *: dtype, type(*)[]: dtype, const type(*)[]: dtype
#endif
/* Number of elements: 1 for a scalar; 0 where the rank is above AX_MAX_RANK, a dimension negative or the number beyond int64_t. */
int64_t ax_type_elems(const ax_type *type);
/* False also of types whose rank is above AX_MAX_RANK. */
bool ax_type_equal(const ax_type *a, const ax_type *b);

/* How the dimensions of an array are laid over a mesh: dimension d is split over axes `axis[d][0..count[d])`, major first.
   Written as text: one entry a dimension, separated by commas; an entry is `_` (not split), an axis name, or axis names joined
   by `+`. Missing trailing entries are `_`; "" is fully replicated. Where ax_with_sharding and its like take one, an entry may be
   `?`, and the text may end in a priority, as in "data,_ p1". */
typedef struct ax_spec {
  uint8_t count[AX_MAX_RANK];
  uint8_t axis[AX_MAX_RANK][AX_MAX_AXES];
  uint32_t rank; /* entries given */
  uint16_t open; /* bit d: dimension d is left open: `?`, which only ax_with_sharding and its like take */
  uint16_t priority; /* layouts of priority 0 go through the program first, those of 1 go where these left it to them, and so on;
                        as open, only ax_with_sharding and its like take others than 0 */
} ax_spec;

/* AX_INVALID_ARGUMENT: an axis that the mesh has not, an axis used twice, more than AX_MAX_RANK entries, an unsound mesh.
   Whether the spec has more entries than an array dimensions is seen where it meets the array. */
AX_MUST_USE ax_status ax_spec_parse(const char *text, const ax_mesh *mesh, ax_spec *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts */
#define ax_array_type(dtype, dims) (ax_array_type)(dtype, AX_EXACTLY(dims))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_mesh_parse(...) AX_LINED_STATUS(mesh_parse, __VA_ARGS__)
#define ax_mesh_manual(...) AX_LINED_STATUS(mesh_manual, __VA_ARGS__)
#define ax_spec_parse(...) AX_LINED_STATUS(spec_parse, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
