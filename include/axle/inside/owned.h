/* The parts of the macros of axle/owned.h. */
#ifndef AXLE_INSIDE_OWNED_H
#define AXLE_INSIDE_OWNED_H

#include "axle/owned.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

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
#if !defined(__clang__) && __GNUC__ >= 12 /* gcc warns of an object that is used after its release; no function begin_ is called */
#define AX_OWNED_ENDED_BY_(release) __attribute__((malloc(release, 1)))
#else
#define AX_OWNED_ENDED_BY_(release)
#endif
#define AX_OWNED_END_(kind, type, release)                                                 \
  void kind##_end_(type *object) __asm__(#release);                                        \
  AX_OWNED_ENDED_BY_(kind##_end_) type *kind##_begin_(void);                               \
  typedef type *kind##_for_AX_OWNED_which_takes_objects_that_are_released_;                \
  static inline void kind##_end_for_AX_OWNED_(type **held) { kind##_end_(*held); }
AX_OWNED_END_(ax_program, ax_program, ax_program_release)
AX_OWNED_END_(ax_lowered, ax_lowered, ax_lowered_release)
AX_OWNED_END_(ax_executable, ax_executable, ax_executable_release)
AX_OWNED_END_(ax_jitted, ax_jitted, ax_jitted_release)
AX_OWNED_END_(ax_runtime, ax_runtime, ax_runtime_release)
AX_OWNED_END_(ax_array, ax_array, ax_array_release)
AX_OWNED_END_(ax_sharding, ax_sharding, ax_sharding_release)
AX_OWNED_END_(ax_callback, ax_callback, ax_callback_release)
AX_OWNED_END_(ax_treedef, ax_treedef, ax_treedef_release)
AX_OWNED_END_(ax_tree, ax_tree, ax_tree_release)
AX_OWNED_END_(ax_npz, ax_npz, ax_npz_release)
AX_OWNED_END_(ax_cluster, ax_cluster, ax_cluster_release)
AX_OWNED_END_(ax_string, char, ax_string_free)

#endif
