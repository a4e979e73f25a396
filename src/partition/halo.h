/* The elements that a block of window positions sees along one dimension (ir/prim.h: ax_reach), and the exchanges that bring
   them from the devices that hold them. */
#ifndef AX_PARTITION_HALO_H
#define AX_PARTITION_HALO_H

#include "ir/prim.h"
#include "ir/program.h"

typedef struct ax_halo {
  ax_reach reach;
  int64_t parts;            /* devices along the axes that cut the dimension */
  int64_t size, block;      /* elements of the dimension, and of one block; the last blocks may end in padding */
  int64_t positions, count; /* window positions in all, and in one block */
} ax_halo;

ax_halo ax_halo_of(const ax_reach *reach, int64_t size, int64_t positions, int64_t parts);
/* Counts the elements along the dimension that a device receives, and the exchanges that bring them. False: there are too many
   exchanges, and the device had better have the whole dimension. */
bool ax_halo_received(const ax_halo *halo, int64_t *elements, int64_t *exchanges);
/* The elements that ax_halo_bring returns along the dimension: (count - 1) * stride + extent; or count, where nothing but these is seen
   and the others were left out. */
int64_t ax_halo_length(const ax_halo *halo, bool whole);
/* Returns the elements that this device's positions see, dilated by the reach's base: ax_halo_length along dimension d. x: this
   device's block along the named axes, or all of the dimension if `whole`. fill: the scalar that stands where there is no element;
   poison if those places are never used. */
ax_value ax_halo_bring(const ax_halo *halo, ax_value x, const ax_axes *names, uint32_t d, bool whole, ax_value fill);

#endif
