/* Copies elements from the blocks of an array into dense memory: a block of another layout, a slice, or the whole. The runtime's
   threads share large copies. */
#ifndef AX_ARRAY_COPYING_H
#define AX_ARRAY_COPYING_H

#include "axle/exec.h"

/* The source of a copy. Host data is the one block of a layout that cuts nothing. Borrowed. */
typedef struct ax_blocks {
  const ax_type *type; /* type of a block */
  const ax_spec *spec;
  const ax_mesh *mesh;
  unsigned char *const *part; /* by block */
} ax_blocks;

/* Fills `data`, dense and row-major, with the box of type `to` that begins at `offset` in the whole array. */
void ax_blocks_copy(ax_runtime *runtime, const ax_blocks *from, const ax_type *to, const int64_t *offset, void *data);

#endif
