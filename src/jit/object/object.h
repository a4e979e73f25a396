/* An object file in memory (ELF, relocatable, as LLVM writes it), made runnable: placed, relocated, and protected, so that what
   runs cannot be written. LLVM has no part in this: code that was made by an earlier process runs without it.

   The object is not believed: whatever is out of bounds, or of a kind that kernels have no use for, is an error. */
#ifndef AX_JIT_OBJECT_OBJECT_H
#define AX_JIT_OBJECT_OBJECT_H

#include "base/base.h"

/* Zero-initialise to start: nothing is loaded. */
typedef struct ax_object_file {
  void *memory;
  size_t bytes;
} ax_object_file;

/* The address of a function that the object calls and does not hold; NULL: there is none of this name. */
typedef void (*ax_object_function)(void);
typedef ax_object_function ax_object_find(const char *name);

/* Whether objects of this machine can be loaded. */
bool ax_object_supported(void);
/* Loads the object in data[bytes], which is aligned to 8 bytes and of no use afterwards. functions[i] becomes the address of the
   symbol of the name `prefix` followed by i. AX_INTERNAL: the object is damaged, lacks such a function, calls one that `find` does
   not know, or holds what kernels do not (data that is written, relocations of other kinds). AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_object_load(const void *data, size_t bytes, ax_object_find *find, const char *prefix, uint32_t count,
                                     ax_object_function *functions, ax_object_file *out);
void ax_object_unload(ax_object_file *object);

/* Objects that are unloaded together. Zero-initialise to start. */
typedef struct ax_objects {
  ax_object_file *all;
  uint32_t count, capacity;
} ax_objects;

/* As ax_object_load; the object is one more of them. */
AX_MUST_USE ax_status ax_objects_load(ax_objects *objects, const void *data, size_t bytes, ax_object_find *find, const char *prefix,
                                      uint32_t count, ax_object_function *functions);
void ax_objects_deinit(ax_objects *objects);

#endif
