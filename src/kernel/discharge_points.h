/* A kernel on its way to a plain program: what discharge.c, which goes over its points one by one, and discharge_strands.c, which batches
   those that need nothing of one another, have together. */
#ifndef AX_KERNEL_DISCHARGE_POINTS_H
#define AX_KERNEL_DISCHARGE_POINTS_H

#include "kernel/beside.h"
#include "kernel/discharge.h"

typedef struct ax_cut { /* an operand or a result, as bodies get it */
  const ax_content_view *whole, *block; /* block: the same where it is not cut */
  const ax_type *shape;  /* of blocks; NULL: it is not cut */
  const ax_program *map;
  ax_value starts[AX_MAX_RANK]; /* of the block of the point at hand */
  bool result;
} ax_cut;

typedef struct ax_discharged {
  ax_discharge d;
  const ax_kernel_params *params;
  const ax_value *consts;
  ax_cut *cuts; /* by operand and result */
  uint32_t operand_count, cut_count;
  const ax_content_view **scratch;
  uint32_t body; /* at hand */
  const bool *written; /* which of its inputs it writes */
  ax_carried by_core, by_point;
  ax_beside beside;
  const ax_value *strands; /* by dimension of the grid: the number, where points are side by side; NULL: none are */
} ax_discharged;

/* All points of a core, or, if k->strands is there, `points` of them. (discharge.c) */
void ax_discharge_points(ax_discharged *k, int64_t points);

/* The dimension of the grid that chooses its blocks along dimension `dim`, where points along it are side by side, each with the one
   block that is its own; AX_NONE. (discharge_strands.c) */
uint32_t ax_strand_of(const ax_discharged *k, const ax_cut *c, uint32_t dim);
/* Binds all points of the core, `points` in each strand, of which k->beside has at least two. */
void ax_discharge_strands(ax_discharged *k, int64_t points);

#endif
