/* A folder that several processes of one user share without harm: machine code is kept in one (jit/kept.c). Because code from it is
   run, the folder and its files must belong to the user, and no other user may have the right to write them; otherwise they are not
   used.

   ax_folder_write replaces a file and never changes one, so a process that has the old file open can read it to its end. A file
   that ax_folder_append extends may end in the middle of a record, because a process can end while it appends. */
#ifndef AX_BASE_FOLDER_H
#define AX_BASE_FOLDER_H

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

/* Reads a whole file of at most `most` bytes; the caller owns the result, ax_free. `use`: the read counts as a use of the file. Its
   time is then set to now if it is more than an hour old, so that files not used for long can be removed first. NULL: there is no
   such file, or it cannot be read. */
void *ax_folder_read(const ax_folder *folder, const char *name, size_t most, bool use, size_t *bytes);
/* Both return false if there is no room, or no right to write. ax_folder_write replaces the file: readers find either the old
   file or the new one. */
bool ax_folder_write(const ax_folder *folder, const char *name, const struct iovec *parts, int count);
bool ax_folder_append(const ax_folder *folder, const char *name, const void *data, size_t bytes);
void ax_folder_remove(const ax_folder *folder, const char *name);

/* Locks the file `name`, which is made if need be, without waiting. Returns a descriptor for ax_folder_unlock. -1: another process
   holds the lock, or the file cannot be opened. */
int ax_folder_lock(const ax_folder *folder, const char *name);
void ax_folder_unlock(int lock);

typedef struct ax_folder_file {
  char name[64]; /* ax_folder_list leaves out files with longer names */
  uint64_t bytes;
  int64_t seconds, nanoseconds; /* when it was last written, or used */
} ax_folder_file;
/* All the files, in no order. `*files` is owned by the caller, ax_free. */
AX_MUST_USE ax_status ax_folder_list(const ax_folder *folder, ax_folder_file **files, uint32_t *count);

/* The names of temporary files begin with this. A temporary file that is old was left behind by a process that ended too early. */
#define AX_FOLDER_TEMPORARY "new-"

#endif
