/* Arrays on devices, from .npy files and into them: of a file each process reads, or writes, what its own devices have.

     f32[4,6] as P(_, x) over x=2:      0 0 0 1 1 1
     a block is a box of the array,     0 0 0 1 1 1     in the file it is four runs of three elements
     in the file a number of runs       0 0 0 1 1 1
                                        0 0 0 1 1 1 */
#ifndef AX_BRIDGE_ARRAY_NPY_H
#define AX_BRIDGE_ARRAY_NPY_H

#include "array/array.h"
#include "bridge/npy.h"

/* Where a box of a dense row-major array lies in it: runs of equal length. */
typedef struct ax_box_runs {
  size_t bytes;  /* of a run */
  int64_t count; /* of runs; 0: the box is empty */
  uint32_t lead; /* a run for each index of the first `lead` dimensions */
} ax_box_runs;
ax_box_runs ax_box_runs_of(const ax_type *whole, const ax_type *box);
/* Moves a box of a file to memory, or back: calls move for each run, with the run's place in the file, whose array begins at `at`,
   and in memory, where the box is dense. */
typedef ax_status ax_run_mover(void *context, uint64_t place, char *data, size_t bytes);
AX_MUST_USE ax_status ax_box_move(const ax_type *whole, const ax_type *box, const int64_t *start, uint64_t at, void *data,
                                  ax_run_mover *move, void *context);

/* Makes an array with this layout of an open file. AX_INVALID_ARGUMENT: its array has another type. AX_IO_ERROR; AX_OUT_OF_MEMORY.
   This process's own: others are not told. */
AX_MUST_USE ax_status ax_npy_load(ax_npy_file *file, ax_layout *layout, ax_array **out);
/* The same for a path, and collective where the layout is spread. */
AX_MUST_USE ax_status ax_npy_load_path(const char *path, ax_layout *layout, ax_array **out);

#endif
