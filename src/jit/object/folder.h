/* A folder that belongs to the user alone, with whole files in it. Other processes read and replace them at the same time. The
   folder and its files must belong to the user, and no other user may have the right to write them; otherwise they are not used.

   Files are replaced, never changed: a process that has a file open reads it to its end. Only files that are appended to may be
   cut off anywhere. */
#ifndef AX_JIT_OBJECT_FOLDER_H
#define AX_JIT_OBJECT_FOLDER_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"

typedef struct ax_folder {
  int fd;
} ax_folder;

/* Opens the folder; makes it, and folders above it, with mode 0700 if they do not exist. AX_INVALID_ARGUMENT: it cannot be used;
   the message says why. */
AX_MUST_USE ax_status ax_folder_open(const char *path, ax_folder *out);
void ax_folder_close(ax_folder *folder);

/* Reads a whole file of at most `most` bytes; the caller owns the result, ax_free. `use`: a file last written or used more than
   an hour ago is marked as written now. NULL: there is no such file, or it cannot be read. */
void *ax_folder_read(const ax_folder *folder, const char *name, size_t most, bool use, size_t *bytes);
/* Both return false if there is no room, or no right to write. ax_folder_write replaces the file: readers find either the old
   file or the new one. */
bool ax_folder_write(const ax_folder *folder, const char *name, const struct iovec *parts, int count);
bool ax_folder_append(const ax_folder *folder, const char *name, const void *data, size_t bytes);
void ax_folder_remove(const ax_folder *folder, const char *name);

/* Takes a lock without waiting. -1: another process has it, or the file cannot be opened. */
int ax_folder_lock(const ax_folder *folder, const char *name);
void ax_folder_unlock(int lock);

typedef struct ax_folder_file {
  char name[64]; /* longer ones are passed over */
  uint64_t bytes;
  int64_t seconds, nanoseconds; /* when it was last written, or used */
} ax_folder_file;
/* All the files, in no order. `*files` is owned by the caller, ax_free. */
AX_MUST_USE ax_status ax_folder_list(const ax_folder *folder, ax_folder_file **files, uint32_t *count);

/* Temporary files' names begin with this. An old one was left behind by a process that ended. */
#define AX_FOLDER_TEMPORARY "new-"

#endif
