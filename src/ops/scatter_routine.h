/* What a scatter's routine works by, made of shapes alone (scatter_cut.c), and its work (scatter_routine.c). */
#ifndef AX_OPS_SCATTER_ROUTINE_H
#define AX_OPS_SCATTER_ROUTINE_H

#include "prim/shape.h"

typedef struct ax_scatter_loop { /* a dimension: strides in elements */
  int64_t extent, operand, updates, indices;
} ax_scatter_loop;

typedef struct ax_scattering {
  ax_scalar combine;
  ax_dtype dtype, index_dtype;
  bool clips, far; /* far: the updates lie in memory, as no cache holds them */
  int64_t bytes;
  uint32_t batch_rank, number_count, window_rank;
  ax_scatter_loop batch[AX_MAX_RANK], window[AX_MAX_RANK];
  int64_t limit[AX_MAX_RANK],
      pitch[AX_MAX_RANK]; /* by number of an index: the largest start of a window, and the distance between places */
  /* The dimension that is cut into parts: a batch dimension, or else a dimension of the operand: */
  int cut_batch, cut_window, cut_number; /* the window's dimension that moves along it and the index's number that moves the window
                                            there; -1: none */
  int64_t cut_extent;
  uint32_t parts;
  int window_of[AX_MAX_RANK]; /* by operand dimension, before windows are joined; -1: a batching dimension, or of size 1 */
} ax_scattering;

/* The work of one part. data: an ax_scattering; memories: those of the indices, of the updates and of the operand. */
ax_status ax_scatter_part(const void *data, void *const *memories, uint32_t part);

#endif
