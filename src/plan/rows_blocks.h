/* Blocks of rows for a group of kernels and products (rows.c): how many rows are done at a time, where local allocations lie
   meanwhile, how many parts the rows are cut into, and whether all this pays. */
#ifndef AX_PLAN_ROWS_BLOCKS_H
#define AX_PLAN_ROWS_BLOCKS_H

#include "plan/rows_use.h"

enum {
  AX_ROWS_USES = 64, /* allocations that a group touches, at most */
  AX_ROWS_LEAST_SHARED =
      AX_HOSTILE ? 512 : 128 << 10, /* bytes of an allocation that several members touch: less is in the second cache anyway */
  AX_ROWS_NEAR_FACTORS = 320 << 10 /* bytes of all factors of products on the right that stay in the second cache with the rows */
};
/* Bytes of such factors that a core's part of the last cache holds: each block of rows goes through them. */
int64_t ax_rows_far_factors(void);

typedef struct ax_rows_group {
  ax_op members[AX_ROWS_MEMBERS];
  uint32_t count, use_count, slot_count;
  ax_rows_use uses[AX_ROWS_USES];
  int64_t outer, extent;
  int64_t factors; /* bytes of the products' factors on the right */
  uint32_t places[AX_ROWS_MEMBERS]; /* of the members, in the block */
} ax_rows_group;

typedef struct ax_rows_blocks {
  int64_t step;   /* rows at a time */
  uint32_t parts; /* for threads */
  int64_t bytes;  /* of all that is local, of one block */
  int64_t place[AX_ROWS_USES]; /* by use: where in these; -1: in memory */
} ax_rows_blocks;

static inline bool ax_rows_by_several(const ax_rows_use *u) { return (u->members & (u->members - 1)) != 0; }
bool ax_rows_has_products(const ax_rows_group *of);

/* reads, writes: by allocation, see ax_plan_count. False: it is not worth it. */
bool ax_rows_blocks_of(const ax_plan *plan, const uint32_t *reads, const uint32_t *writes, const ax_rows_group *of,
                       ax_rows_blocks *out);

#endif
