/* A folder that is the user's alone, and whole files in it, which other processes read and replace at the same time. What is there
   by anybody else's doing is not looked at: the folder and its files belong to the user and nobody else can write them.

   Files are replaced, never changed: who has one open reads it to its end. Only what is appended to may be cut off anywhere. */
#ifndef AX_JIT_OBJECT_FOLDER_H
#define AX_JIT_OBJECT_FOLDER_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"

typedef struct ax_folder {
  int fd;
} ax_folder;

/* Makes the folder where there is none, and those it is in, with mode 0700. AX_INVALID_ARGUMENT: it cannot be used; the message
   says why. */
AX_MUST_USE ax_status ax_folder_open(const char *path, ax_folder *out);
void ax_folder_close(ax_folder *folder);

/* The whole file of at most `most` bytes, owned by the caller, ax_free. `use`: if it was last written or used more than an hour
   ago, it counts as written now. NULL: there is none, or it cannot be had. */
void *ax_folder_read(const ax_folder *folder, const char *name, size_t most, bool use, size_t *bytes);
/* False, and nothing changed: there is no room, or no right to write. Readers find the file as it was or as it is to be. */
bool ax_folder_write(const ax_folder *folder, const char *name, const struct iovec *parts, int count);
bool ax_folder_append(const ax_folder *folder, const char *name, const void *data, size_t bytes);
void ax_folder_remove(const ax_folder *folder, const char *name);

/* Taken without waiting: -1 when another has it. */
int ax_folder_lock(const ax_folder *folder, const char *name);
void ax_folder_unlock(int lock);

typedef struct ax_folder_file {
  char name[64]; /* longer ones are passed over */
  uint64_t bytes;
  int64_t seconds, nanoseconds; /* when it was last written, or used */
} ax_folder_file;
/* All the files, in no order. `*files` is owned by the caller, ax_free. */
AX_MUST_USE ax_status ax_folder_list(const ax_folder *folder, ax_folder_file **files, uint32_t *count);

/* What temporary files' names begin with; one that is old was left behind. */
#define AX_FOLDER_TEMPORARY "new-"

#endif
