/* What the positions in a block see of a dimension that windows go over (ir/prim.h: ax_reach), brought there from the blocks that
   have it. */
#ifndef AX_PARTITION_HALO_H
#define AX_PARTITION_HALO_H

#include "ir/program.h"

typedef struct ax_halo {
  ax_reach reach;
  int64_t parts;            /* devices along the axes */
  int64_t size, block;      /* of the dimension, and of its blocks: the last ones may end in padding */
  int64_t positions, count; /* in all, and in a block */
} ax_halo;

ax_halo ax_halo_of(const ax_reach *reach, int64_t size, int64_t positions, int64_t parts);
/* How many elements along the dimension a device receives, and by how many exchanges. False: by so many that it had better have
   all. */
bool ax_halo_received(const ax_halo *halo, int64_t *elements, int64_t *exchanges);
/* x: this device's block along the named axes; or, where `whole`, all of the dimension. Gives what the positions in its block see,
   dilated by the reach's base: (count - 1) * stride + extent elements along dimension d. fill: a scalar; poison where nobody
   looks. */
ax_value ax_halo_bring(const ax_halo *halo, ax_value x, const ax_axes *names, uint32_t d, bool whole, ax_value fill);

#endif
