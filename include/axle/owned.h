/* Variables that release what they hold at the end of their block, however it is left: at its end, by return, break, continue or
   goto. An object that is to live on is retained (ax_array_retain, ..) or moved: stored elsewhere, with the variable set to NULL.
   What other variables hold is released by hand.

     AX_OWNED(ax_runtime, runtime);
     AX_OWNED(ax_tree, params, state, batch);          // ax_tree *params = NULL, *state = NULL, *batch = NULL, all released
     AX_OWNED_HOST(x, y);                              // ax_host_array x = {0}, y = {0}

   A struct of yours whose fields hold such objects has one function that releases them all, and is then a variable like these:

     typedef struct table { ax_host_array x, y; } table;
     static void table_release(table *t) { ax_host_array_release(&t->x), ax_host_array_release(&t->y); }

     AX_OWNED_STRUCT(table, train, test);              // table train = {0}, test = {0}

   Variables end in the reverse order of their declarations, and hold NULL at first. To release an object earlier, or before another
   is stored in its variable, release it by hand and set the variable to NULL.
   For C with the attribute `cleanup`, which gcc and clang have. In C++ handles do the same (docs/cxx.md). */
#ifndef AXLE_OWNED_H
#define AXLE_OWNED_H

#include "axle/check.h"
#include "axle/exec.h"
#include "axle/npy.h"
#include "axle/sharding.h"
#include "axle/simulate.h"
#include "axle/stages.h"
#include "axle/tree.h"

#if defined(__GNUC__) && !defined(__cplusplus)

/* Up to eight variables of one type: ax_program, ax_lowered, ax_executable, ax_runtime, ax_array, ax_sharding, ax_callback,
   ax_treedef, ax_tree, ax_npz, ax_cluster, or ax_string (a char *, as ax_program_print gives it). Behind it stands a `;`. */
#define AX_OWNED(type, ...) \
  __attribute__((cleanup(type##_end_))) type##_owned_ AX_OWNED_COUNTED_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, )(NULL, __VA_ARGS__)
/* Up to eight structs of one type, TYPE. They are all zero at first, and TYPE_release(&variable) ends each of them, also one that is
   still all zero: release functions of the library take NULL, and a host array of zeros. TYPE_release is a function of yours, or
   this does not compile: void TYPE_release(TYPE *). To return such a struct, copy it and set the variable to zeros. */
#define AX_OWNED_STRUCT(type, ...)                                                                                           \
  _Static_assert(__builtin_types_compatible_p(__typeof__(type##_release), void(type *)), "void " #type "_release(" #type " *)"); \
  __attribute__((cleanup(type##_release))) type AX_OWNED_COUNTED_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, )({0}, __VA_ARGS__)
/* Up to eight host arrays. */
#define AX_OWNED_HOST(...) AX_OWNED_STRUCT(ax_host_array, __VA_ARGS__)
/* A C array of `count` host arrays, or of ax_array *, that are all released. */
#define AX_OWNED_HOSTS(name, count)  \
  ax_host_array name[count] = {{0}}; \
  __attribute__((cleanup(ax_hosts_end_), unused)) const ax_owned_list_ name##_owned_ = {(count), name}
#define AX_OWNED_ARRAYS(name, count) \
  ax_array *name[count] = {NULL};    \
  __attribute__((cleanup(ax_arrays_end_), unused)) const ax_owned_list_ name##_owned_ = {(count), name}

/* --- What the macros are made of --- */
#define AX_OWNED_COUNTED_(a, b, c, d, e, f, g, h, count, ...) AX_OWNED_##count##_
#define AX_OWNED_1_(none, a) a = none
#define AX_OWNED_2_(none, a, ...) a = none, AX_OWNED_1_(none, __VA_ARGS__)
#define AX_OWNED_3_(none, a, ...) a = none, AX_OWNED_2_(none, __VA_ARGS__)
#define AX_OWNED_4_(none, a, ...) a = none, AX_OWNED_3_(none, __VA_ARGS__)
#define AX_OWNED_5_(none, a, ...) a = none, AX_OWNED_4_(none, __VA_ARGS__)
#define AX_OWNED_6_(none, a, ...) a = none, AX_OWNED_5_(none, __VA_ARGS__)
#define AX_OWNED_7_(none, a, ...) a = none, AX_OWNED_6_(none, __VA_ARGS__)
#define AX_OWNED_8_(none, a, ...) a = none, AX_OWNED_7_(none, __VA_ARGS__)

typedef struct ax_owned_list_ {
  uint32_t count;
  void *first;
} ax_owned_list_;
static inline void ax_hosts_end_(const ax_owned_list_ *list) {
  for (uint32_t i = 0; i < list->count; i++) ax_host_array_release((ax_host_array *)list->first + i);
}
static inline void ax_arrays_end_(const ax_owned_list_ *list) {
  for (uint32_t i = 0; i < list->count; i++) ax_array_release(((ax_array **)list->first)[i]);
}
typedef ax_program *ax_program_owned_;
static inline void ax_program_end_(ax_program_owned_ *held) { ax_program_release(*held); }
typedef ax_lowered *ax_lowered_owned_;
static inline void ax_lowered_end_(ax_lowered_owned_ *held) { ax_lowered_release(*held); }
typedef ax_executable *ax_executable_owned_;
static inline void ax_executable_end_(ax_executable_owned_ *held) { ax_executable_release(*held); }
typedef ax_runtime *ax_runtime_owned_;
static inline void ax_runtime_end_(ax_runtime_owned_ *held) { ax_runtime_release(*held); }
typedef ax_array *ax_array_owned_;
static inline void ax_array_end_(ax_array_owned_ *held) { ax_array_release(*held); }
typedef ax_sharding *ax_sharding_owned_;
static inline void ax_sharding_end_(ax_sharding_owned_ *held) { ax_sharding_release(*held); }
typedef ax_callback *ax_callback_owned_;
static inline void ax_callback_end_(ax_callback_owned_ *held) { ax_callback_release(*held); }
typedef ax_treedef *ax_treedef_owned_;
static inline void ax_treedef_end_(ax_treedef_owned_ *held) { ax_treedef_release(*held); }
typedef ax_tree *ax_tree_owned_;
static inline void ax_tree_end_(ax_tree_owned_ *held) { ax_tree_release(*held); }
typedef ax_npz *ax_npz_owned_;
static inline void ax_npz_end_(ax_npz_owned_ *held) { ax_npz_release(*held); }
typedef ax_cluster *ax_cluster_owned_;
static inline void ax_cluster_end_(ax_cluster_owned_ *held) { ax_cluster_release(*held); }
typedef char *ax_string_owned_;
static inline void ax_string_end_(ax_string_owned_ *held) { ax_string_free(*held); }

#endif
#endif
