/* The code cache: compiled code kept in a folder for later processes. A kernel's key is a digest of its structure, of the
   machine that its code is for, and of the code generator (target.h). Kernels that were compiled together are one object and one
   file, a *batch*:

     <32 digits>   header | keys | object     named by the digest of its keys: a program that starts again finds all at once
     index         the batch of each key, 32 bytes each, appended to; for programs that need kernels of several batches

   A batch's header holds the digest of all its bytes. A batch that is damaged, cut off, or of another version is not used, and
   is removed. The index is a hint: the batch it names is checked like any other, and a damaged index is made again. Nothing here
   fails a compile: code that cannot be read is compiled, and code that cannot be written is not kept.

   If all batches together are larger than the limit, those unused for longest are removed until a quarter of the room is free.
   The index says how large they are, so that the folder need not be listed before. */
#ifndef AX_JIT_KEPT_H
#define AX_JIT_KEPT_H

#include "base/digest.h"
#include "base/folder.h"
#include "jit/object/object.h"

typedef enum ax_kept_state { AX_KEPT_UNTRIED, AX_KEPT_OPEN, AX_KEPT_UNUSABLE } ax_kept_state;

/* Not locked: ax_compiler does that. */
typedef struct ax_kept {
  char *path; /* NULL: nothing is kept */
  uint64_t most_bytes;
  ax_kept_state state;
  ax_folder folder;
  uint64_t total; /* bytes of all batches, as far as the index and this process know */
  bool index_is_whole;
  char trouble[256]; /* why the folder is not used; "" if it is, and after ax_jit_trouble */
} ax_kept;

/* The path is copied; NULL: nothing is kept. most_bytes 0: 256 MiB. */
AX_MUST_USE ax_status ax_kept_init(ax_kept *kept, const char *path, uint64_t most_bytes);
void ax_kept_deinit(ax_kept *kept);

/* Loads the kernels with these keys, all different, that the folder has: functions[i] becomes the code of keys[i], or stays
   NULL. The memory of the code is added to `objects`. */
void ax_kept_find(ax_kept *kept, const ax_digest *keys, uint32_t count, ax_object_find *find, ax_object_function *functions,
                  ax_objects *objects);
/* Keeps an object. Its function AX_KERNEL_PREFIX 0 belongs to keys[0], 1 to keys[1], ... */
void ax_kept_put(ax_kept *kept, const ax_digest *keys, uint32_t count, const void *object, size_t bytes);

#endif
