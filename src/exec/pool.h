/* Pooled memory: what is freed is kept for the next who asks for so much, because touching fresh memory costs a hundred times what
   copying does.

     pockets   two chains of small blocks of each size for each of the threads there are likely to be, taken from and added to
               without a lock, so
               that threads that run small programs at once do not wait for each other
     the rest  free blocks by size, under a lock: one by one, or chains that pockets had no room for and take back whole

   A thread finds its pocket by its identity. Another that shares it, and finds it in use, goes to the rest. */
#ifndef AX_EXEC_POOL_H
#define AX_EXEC_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

enum {
  AX_POCKETS = 16,
  AX_POCKET_SIZES = 11, /* 64 bytes to 64 KiB, by powers of two */
  AX_POCKET_BYTES = 16 << 10,
  AX_POCKET_LEAST = 2,
  AX_POCKET_MOST = 64, /* of a chain; its blocks, though it be longer or shorter for that */
  AX_POOL_STEPS = 64,  /* sizes for each power of two, where that is more than 64 KiB */
  AX_POOL_SIZES = 64 * AX_POOL_STEPS
};

typedef struct ax_pool_block { /* at the beginning of free memory */
  struct ax_pool_block *next, *chain; /* chain: the first of the next one, if this is the first of one */
  size_t bytes;
} ax_pool_block;

typedef struct ax_pocket {
  _Alignas(64) _Atomic(bool) busy; /* somebody is at it */
  uint32_t count[AX_POCKET_SIZES]; /* in `open` */
  ax_pool_block *open[AX_POCKET_SIZES], *full[AX_POCKET_SIZES]; /* chains; NULL: none */
} ax_pocket;

typedef struct ax_pool {
  ax_pocket pockets[AX_POCKETS];
  _Alignas(64) pthread_mutex_t lock; /* of what follows */
  ax_pool_block *blocks[AX_POOL_SIZES], *chains[AX_POCKET_SIZES];
  size_t bytes_now, bytes_peak; /* free or not; and the most so far */
} ax_pool;

/* Of cleared memory. */
void ax_pool_init(ax_pool *pool);
void ax_pool_deinit(ax_pool *pool); /* what was not freed is not its own any more */

/* Memory aligned to 64 bytes. `bytes` is the same when it is freed. */
AX_MUST_USE ax_status ax_pool_alloc(ax_pool *pool, size_t bytes, void **out);
void ax_pool_free(ax_pool *pool, void *memory, size_t bytes);
/* Gives free memory back to the system. */
void ax_pool_trim(ax_pool *pool);
void ax_pool_count(ax_pool *pool, size_t *now, size_t *peak);

/* One of `count`, a power of two: nearly always another for another thread. */
uint32_t ax_thread_place(uint32_t count);

#endif
