/* Helpers shared by the file formats: sources of bytes, and files that are written whole or not at all. */
#ifndef AX_BRIDGE_NPY_H
#define AX_BRIDGE_NPY_H

#include "axle/npy.h"
#include "base/base.h"

/* Bytes from a file, memory or a zip member. `left` is the number of bytes that the container claims. The claim may be false, so
   nothing larger than `proven` is allocated before that many bytes have been read. */
typedef struct ax_byte_source {
  const char *name; /* for messages */
  /* Puts 1 .. `bytes` bytes into `into` and their number into `*got`; 0 only at the end. */
  ax_status (*read)(void *user, const char *name, void *into, size_t bytes, size_t *got);
  void *user;
  uint64_t left, proven;
} ax_byte_source;

/* Reads one array that fills the source to its end. */
AX_MUST_USE ax_status ax_npy_read_source(ax_byte_source *source, ax_host_array *out);

/* The same formats from memory (borrowed for the call); `name` stands for the path in messages. */
AX_MUST_USE ax_status ax_npy_decode(const void *bytes, size_t count, const char *name, ax_host_array *out);
AX_MUST_USE ax_status ax_npz_decode(const void *bytes, size_t count, const char *name, ax_npz **out);
AX_MUST_USE ax_status ax_csv_decode(const void *bytes, size_t count, const char *name, ax_host_array *out);

/* A part of a table that ax_csv_read gave, as ax_csv_read_part gives it; `path` is for messages. *out is empty on failure. */
AX_MUST_USE ax_status ax_csv_take_part(const char *path, const ax_host_array *table, const char *part, ax_dtype dtype,
                                       ax_host_array *out);

/* A .npy file, open for reading. */
typedef struct ax_npy_file {
  const char *path;      /* borrowed */
  int file;
  ax_host_array array;   /* without data */
  uint64_t start;        /* where its elements begin: they fill the rest of the file */
  bool swapped, fortran; /* bytes of each element; dimensions */
} ax_npy_file;
/* AX_IO_ERROR: as ax_npy_read; also bytes that are missing, or too many. AX_OUT_OF_MEMORY. On failure nothing is open. */
AX_MUST_USE ax_status ax_npy_open(const char *path, ax_npy_file *out);
void ax_npy_close(ax_npy_file *file);
/* Makes `elems` elements that were read from the file, as they lie there, those of the array. */
void ax_npy_decode_elems(const ax_npy_file *file, void *data, int64_t elems);

/* Writes the bytes in front of an array's data in an .npy file, and returns their number. The array must have passed
   ax_host_array_check. */
enum { AX_NPY_HEADER_BYTES = 512 };
size_t ax_npy_header(const ax_host_array *array, char into[AX_NPY_HEADER_BYTES]);
/* AX_INVALID_ARGUMENT unless `array` can be written; `path` is for the message. `*bytes`: the size of its data. */
/* AX_INVALID_ARGUMENT: no file has this dtype: keys. */
AX_MUST_USE ax_status ax_npy_dtype_check(ax_dtype dtype, const char *path);
AX_MUST_USE ax_status ax_host_array_check(const ax_host_array *array, const char *path, size_t *bytes);

/* Finds the path that a write to `path` must replace: the target if `path` is a link, so that the link stays. `into` has PATH_MAX
   bytes. AX_IO_ERROR: a device, folder or pipe is there, which renaming would destroy. */
AX_MUST_USE ax_status ax_file_target(const char *path, char *into);

/* Creates a file beside `target`, under an unused name, with the user's usual permissions (which mkstemp's are not). -1, and errno:
   it cannot be. `name` has name_bytes bytes. */
int ax_file_beside(const char *target, char *name, size_t name_bytes);
/* Gives a file the permissions of the one at `target` that it will replace, if there is one. False, and errno: it cannot be. */
bool ax_file_keep_mode(int file, const char *target);

typedef struct ax_byte_span {
  const void *data;
  size_t bytes;
} ax_byte_span;
/* Writes a file that consists of the parts, one after the other. On failure a file at `path` stays as it was. */
AX_MUST_USE ax_status ax_file_write(const char *path, const ax_byte_span *parts, uint32_t count);

#endif
