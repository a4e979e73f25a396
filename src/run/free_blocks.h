/* For pool.c: free large blocks, by size. Sizes are numbered from the smallest to the largest.

     spare     blocks of arrays, taken by their size. All are listed by the time of their being freed too, so that what has been of no
               use for longest can go back to the system
     fitting   blocks of memory that is needed only while a run is going on. A block serves any size that it is large enough for, so
               that programs of many sizes in turn need no more of them than one program */
#ifndef AX_RUN_FREE_BLOCKS_H
#define AX_RUN_FREE_BLOCKS_H

#include "base/base.h"

enum { AX_LARGE_SIZES = 47 * 64, AX_LARGE_WORDS = AX_LARGE_SIZES / 64, AX_HUGE_BLOCK = 32 << 20 };

typedef struct ax_pool_block { /* at the beginning of free memory */
  struct ax_pool_block *next, *chain; /* chain: the next chain, in the first block of each */
  size_t bytes;
  struct ax_pool_block *previous, *older, *newer; /* spare blocks; `next` and `previous`: of its size */
  uint32_t size;                                  /* likewise: its number */
} ax_pool_block;

typedef struct ax_spare { /* zero to start */
  ax_pool_block *blocks[AX_LARGE_SIZES]; /* those freed last come first */
  ax_pool_block *oldest, *newest;
  size_t bytes, huge; /* of all; of those of AX_HUGE_BLOCK bytes or more */
} ax_spare;

void ax_spare_put(ax_spare *spare, uint32_t size, ax_pool_block *block);
/* A block of this size with as many bytes. NULL: none of those that were looked at has. */
ax_pool_block *ax_spare_take(ax_spare *spare, uint32_t size, size_t bytes);
/* Any of this size; NULL: there is none. */
ax_pool_block *ax_spare_take_any(ax_spare *spare, uint32_t size);
/* Takes the oldest ones, until no more than `bytes` are left. Returns a list of them, linked by `next`. */
ax_pool_block *ax_spare_take_oldest(ax_spare *spare, size_t bytes);
/* The same of huge ones alone, until no more than `bytes` of all are left or there are no more of them. */
ax_pool_block *ax_spare_take_huge(ax_spare *spare, size_t bytes);

typedef struct ax_fitting { /* zero to start */
  ax_pool_block *blocks[AX_LARGE_SIZES];
  uint64_t any[AX_LARGE_WORDS]; /* a bit for each size that has blocks */
  size_t bytes;                 /* of all */
} ax_fitting;

void ax_fitting_put(ax_fitting *fitting, uint32_t size, ax_pool_block *block);
/* The smallest block of this size or a larger one. NULL: there is none. */
ax_pool_block *ax_fitting_take(ax_fitting *fitting, uint32_t size);
/* The largest block of a smaller size, likewise; of AX_LARGE_SIZES: the largest of all. */
ax_pool_block *ax_fitting_take_below(ax_fitting *fitting, uint32_t size);

#endif
