/* Arrays in files: NumPy's .npy and .npz, and tables of numbers as CSV.

   Arrays are host arrays (axle/host.h), or lie on devices (axle/exec.h). Every function may be called from any thread; two threads may read or
   write different files, or write the same one (the last rename wins). Reading trusts nothing in a file: sizes are checked
   against the bytes that are there before memory is taken for them. Writing goes to a temporary name in the same folder, which
   is then renamed: a failed write leaves the old file, and no new one. On failure outputs are empty (NULL, or all zero).

   Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef AXLE_NPY_H
#define AXLE_NPY_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Reads one array. Versions 1 to 3; either byte order; Fortran order is transposed to row-major. NumPy has no bf16: '<V2', as
   ml_dtypes writes it, is read as bf16. Floats of a byte and integers of less than 8 bits are '|V1' to it; their name comes with
   them as that of a field, as x.view([('f8e4m3fn', 'V1')]) has it, and y.view(ml_dtypes.float8_e4m3fn) takes it off again. In bools any byte but 0 becomes 1. `*out` is owned by the caller.
   AX_IO_ERROR: the file cannot be read, is malformed or cut short, has bytes after its array, or has a dtype Axle lacks.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_npy_read(const char *path, ax_host_array *out);

/* Writes `array` (borrowed) as version 1.0, row-major and little-endian, replacing a file at `path`; bf16 becomes '<V2', and
   dtypes that NumPy has no word for a field of '|V1' that is called as they are.
   AX_INVALID_ARGUMENT: no dtype, keys (AX_KEY), a bad rank or dimension, NULL data. AX_IO_ERROR: the file cannot be written, or
   `path` is something other than a file. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_npy_write(const char *path, const ax_host_array *array);

/* --- Arrays on devices. Each process of a mesh that is spread over several (axle/processes.h) reads and writes only the part of the
   file that its own devices' blocks are; the file is the same however they are spread, and may be read by another number of
   processes, in any layout. All processes must see it: it lies on a file system that they share. --- */

/* Gives the type of the array in a file, of which only the header is read. Errors as ax_npy_read. */
AX_MUST_USE ax_status ax_npy_type(const char *path, ax_type *out);
/* Reads an array onto the devices of a mesh, cut as the spec says, as ax_device_put of what ax_npy_read gives. Collective where the
   mesh has several devices. `*out` is owned by the caller, NULL on failure. Errors as theirs; also AX_INVALID_ARGUMENT: processes
   find arrays of different types. A file in Fortran's order is read whole by each process. */
AX_MUST_USE ax_status ax_array_from_npy(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const char *path, ax_array **out);
/* The same as an executable's input `index` wants to lie: as ax_executable_put. AX_INVALID_ARGUMENT: no such input; an array of another
   type. */
AX_MUST_USE ax_status ax_executable_put_npy(const ax_executable *executable, uint32_t index, const char *path, ax_array **out);
/* Writes an array as ax_npy_write does. Collective if the array is not whole in each process: process 0 creates the file and
   renames it when all have written what they have; if one fails, all do, and no file is left or replaced. What several processes
   have is written by the first of them. An array that each process has by itself is written by each that calls this, to a path of its
   own. AX_INVALID_ARGUMENT: a donated array. AX_IO_ERROR: as ax_npy_write; a process that does not find the file that process 0 has
   made. AX_OUT_OF_MEMORY. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_write_npy(const ax_array *array, const char *path);

/* The arrays of one .npz file, in memory, in the order of the file. */
typedef struct ax_npz ax_npz;

/* Reads every array, stored or deflated; members whose names do not end in ".npy" are passed over. Checksums are checked.
   `*out` is owned by the caller: ax_npz_release.
   AX_IO_ERROR: as ax_npy_read, for the archive and each array; a name twice; no array among the members. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_npz_read(const char *path, ax_npz **out);
uint32_t ax_npz_count(const ax_npz *npz);
/* Without ".npy"; borrowed. NULL when the index is out of range. */
const char *ax_npz_name(const ax_npz *npz, uint32_t index);
/* Borrowed; NULL when the index is out of range. */
const ax_host_array *ax_npz_array(const ax_npz *npz, uint32_t index);
/* Borrowed; NULL when there is none of this name (given without ".npy"). */
const ax_host_array *ax_npz_find(const ax_npz *npz, const char *name);
void ax_npz_release(ax_npz *npz); /* NULL is allowed */

/* Writes `count` arrays (borrowed) as members `names[i]`.npy, stored, replacing a file at `path`. Equal arguments make equal
   bytes. AX_INVALID_ARGUMENT: as ax_npy_write; an empty name, a name twice, one that is not UTF-8 or too long.
   AX_IO_ERROR: as ax_npy_write. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_npz_write(const char *path, uint32_t count, const char *const *names, uint32_t array_count,
                                   const ax_host_array *arrays);

/* Reads a table of numbers separated by commas, plain or gzipped, as f64[rows, columns]. Numbers are decimal, or nan or inf,
   whatever the locale; blanks around them, CRLF, a byte order mark and empty lines at the end are allowed; quotes are not.
   `*out` is owned by the caller.
   AX_IO_ERROR: the file cannot be read, is cut short or has no rows; or, with line and column: a field that is not a number or
   is beyond f64's range (so a header line), an empty line between rows, a row of another length. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_csv_read(const char *path, ax_host_array *out);
/* Reads a part of such a table, in any dtype. `part` is an index of [rows, columns] as text, as ax_index takes it. ":, :-1" is all
   columns but the last, as dtype[rows, columns - 1]; ":, -1" the last, as dtype[rows]; ":100" the first 100 rows; "..." the table.
   AX_IO_ERROR: also a number in the part that the dtype cannot hold (a fraction for integers), with its row and column.
   AX_INVALID_ARGUMENT: no dtype; a text that does not fit the table. */
AX_MUST_USE ax_status ax_csv_read_part(const char *path, const char *part, ax_dtype dtype, ax_host_array *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_npz_write(path, names, arrays) AX_LINED_STATUS(npz_write, path, AX_EXACTLY(names), AX_COUNTED(ax_host_array, arrays))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_npy_read(...) AX_LINED_STATUS(npy_read, __VA_ARGS__)
#define ax_npy_write(...) AX_LINED_STATUS(npy_write, __VA_ARGS__)
#define ax_npy_type(...) AX_LINED_STATUS(npy_type, __VA_ARGS__)
#define ax_array_from_npy(...) AX_LINED_STATUS(array_from_npy, __VA_ARGS__)
#define ax_executable_put_npy(...) AX_LINED_STATUS(executable_put_npy, __VA_ARGS__)
#define ax_array_write_npy(...) AX_LINED_STATUS(array_write_npy, __VA_ARGS__)
#define ax_npz_read(...) AX_LINED_STATUS(npz_read, __VA_ARGS__)
#define ax_csv_read_part(...) AX_LINED_STATUS(csv_read_part, __VA_ARGS__)
#define ax_csv_read(...) AX_LINED_STATUS(csv_read, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
