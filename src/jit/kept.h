/* Compiled code kept in a folder for later processes: the code cache. A kernel's key is a digest of its structure and of what the
   code is made for and by (target.h). Kernels that were compiled together are one object and one file, a *batch*:

     <32 digits>   header | keys | object     named by the digest of its keys, so a program that starts again finds all its kernels
   in one index         which batch each key is in, 32 bytes each, appended to; for programs that need kernels of several batches

   A batch says in its header what the digest of all its bytes is. One that is damaged, cut off, or of another version is not looked
   at, and removed. The index is a hint: what it leads to is checked like anything else, and it is made again when it is damaged.
   Nothing here fails a compile: what cannot be read is compiled, what cannot be written is not kept.

   When all batches are larger together than they may be, those go that have not been used for longest, until a quarter of the room
   is free. How large they are is known from the index, so that nobody looks through the folder before. */
#ifndef AX_JIT_KEPT_H
#define AX_JIT_KEPT_H

#include "base/digest.h"
#include "jit/object/folder.h"
#include "jit/object/object.h"

typedef enum ax_kept_state { AX_KEPT_UNTRIED, AX_KEPT_OPEN, AX_KEPT_UNUSABLE } ax_kept_state;

/* Not locked: ax_compiler does that. */
typedef struct ax_kept {
  char *path; /* NULL: nothing is kept */
  uint64_t most_bytes;
  ax_kept_state state;
  ax_folder folder;
  uint64_t total; /* of all batches, as far as the index said and this process knows */
  bool index_is_whole;
  char trouble[256]; /* why the folder is not used; "" otherwise, and once it was told */
} ax_kept;

/* The path is copied; NULL: nothing is kept. most_bytes 0: 256 MiB. */
AX_MUST_USE ax_status ax_kept_init(ax_kept *kept, const char *path, uint64_t most_bytes);
void ax_kept_deinit(ax_kept *kept);

/* Loads what there is of the kernels with these keys, all different: functions[i] becomes that of keys[i], or stays NULL. What the
   functions are in is added to `objects`. */
void ax_kept_find(ax_kept *kept, const ax_digest *keys, uint32_t count, ax_object_find *find, ax_object_function *functions,
                  ax_objects *objects);
/* Keeps the object whose functions are AX_KERNEL_PREFIX 0, 1, ..., for keys[0], keys[1], ... */
void ax_kept_put(ax_kept *kept, const ax_digest *keys, uint32_t count, const void *object, size_t bytes);

#endif
