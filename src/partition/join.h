/* Arrays put one behind the other along a dimension that is cut: each device gets its elements straight from the blocks of those that have
   them. */
#ifndef AX_PARTITION_JOIN_H
#define AX_PARTITION_JOIN_H

#include "ir/prim.h"
#include "ir/program.h"

enum { AX_MOST_JOINED = 8 };

/* An array, or a part of it. */
typedef struct ax_joined_part {
  ax_value block;       /* this device's block of the array */
  int64_t size;         /* the array's elements along the dimension */
  int64_t first, count; /* the elements of the part */
  bool whole;           /* devices have the array whole along the dimension */
} ax_joined_part;

/* Returns this device's block of the parts put together along dimension d, which the named axes cut in `parts` blocks. Poison, with no
   failure: it would take too many exchanges. */
ax_value ax_join_blocks(const ax_joined_part *in, uint32_t count, const ax_axes *names, int64_t parts, uint32_t d);

#endif
