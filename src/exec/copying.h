/* Elements copied from where an array's blocks lie into something dense: a block of another layout, a slice, the whole. Large
   copies are shared out to the runtime's threads. */
#ifndef AX_EXEC_COPYING_H
#define AX_EXEC_COPYING_H

#include "axle/exec.h"

/* Where elements come from; host data is the one block of a layout that cuts nothing. Borrowed. */
typedef struct ax_blocks {
  const ax_type *type; /* of a block */
  const ax_spec *spec;
  const ax_mesh *mesh;
  unsigned char *const *part; /* by block */
} ax_blocks;

/* Fills `data`, dense and row-major, which holds what begins at `offset` in the whole array. */
void ax_blocks_copy(ax_runtime *runtime, const ax_blocks *from, const ax_type *to, const int64_t *offset, void *data);

#endif
