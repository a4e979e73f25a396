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

   An object that lives on is given a reference of its own: `return ax_array_retain(y);`. gcc warns of `return y;`
   (-Wuse-after-free, in -Wall, with -O1 or more). No compiler warns of these: an object stored over another, which then is never
   released; one that two such variables hold with one reference, or that is released by hand as well; `*out = y;` without a
   reference; a goto or a case that jumps over the declaration.

   For C with the attribute `cleanup`, which gcc and clang have. In C++ handles do the same (docs/cxx.md). */
#ifndef AXLE_OWNED_H
#define AXLE_OWNED_H

#include "axle/check.h"
#include "axle/exec.h"
#include "axle/jitted.h"
#include "axle/npy.h"
#include "axle/sharding.h"
#include "axle/simulate.h"
#include "axle/stages.h"
#include "axle/tree.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#if defined(__GNUC__) && !defined(__cplusplus)

/* Up to eight variables of one type: ax_program, ax_lowered, ax_executable, ax_jitted, ax_runtime, ax_array, ax_sharding,
   ax_callback, ax_treedef, ax_tree, ax_npz, ax_cluster, or ax_string (a char *, as ax_program_print gives it). Behind it stands
   a `;`. */
#define AX_OWNED(type, ...) \
  type##_for_AX_OWNED_which_takes_objects_that_are_released_ __attribute__((cleanup(type##_end_for_AX_OWNED_)))  \
  AX_OWNED_COUNTED_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, )(0, __VA_ARGS__)
/* Up to eight structs of one type, TYPE. They are all zero at first, and TYPE_release(&variable) ends each of them, also one that
   is still all zero: release functions of the library take NULL, and a host array of zeros. TYPE_release is a function of yours, or
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

#include "axle/inside/owned.h"

#endif
#endif
