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

/* Loaded objects, by number. An object without users is idle. Zero-initialise to start. */
typedef struct ax_held_object {
  ax_object_file object;  /* memory NULL: the number is free */
  uint32_t users;
  uint32_t next;     /* free number: 1 + the next free one; object just loaded: 1 + the one loaded before it; 0: none */
  uint64_t dropped;  /* time of its last drop, on ax_objects.clock */
} ax_held_object;

typedef struct ax_objects {
  ax_held_object *all;
  uint32_t count, capacity, free;
  uint32_t fresh;    /* 1 + the object loaded last; the caller sets it to 0 before loading */
  uint64_t clock;
  size_t bytes, idle_bytes; /* of all objects; of the idle ones */
} ax_objects;

/* As ax_object_load; adds the object, which is idle at first. */
AX_MUST_USE ax_status ax_objects_load(ax_objects *objects, const void *data, size_t bytes, ax_object_find *find, const char *prefix,
                                      uint32_t count, ax_object_function *functions);
/* The number of the object, among those just loaded, that holds this function. AX_NONE: there is none. */
uint32_t ax_objects_of(const ax_objects *objects, ax_object_function function);
void ax_objects_use(ax_objects *objects, uint32_t number);
void ax_objects_drop(ax_objects *objects, uint32_t number);
/* Unloads idle objects, those dropped first before the others, until at most `most_idle` bytes of them are left. If there is no
   memory for a list of them, none is unloaded. */
void ax_objects_trim(ax_objects *objects, size_t most_idle);
void ax_objects_trim_all(ax_objects *objects); /* unloads all idle objects; allocates nothing */
bool ax_objects_have(const ax_objects *objects, uint32_t number); /* false: it has been unloaded */
void ax_objects_deinit(ax_objects *objects);

#endif
