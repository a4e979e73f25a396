/* Pooled memory: freed blocks are kept for the next allocation of their size, since touching fresh memory costs a hundred times as
   much as copying.

     pockets   for each of the threads there are likely to be: two chains of small blocks of each size, used without a lock, so that
               threads that run small programs at the same time do not wait for each other
     the rest  free blocks by size, under a lock: single blocks, and whole chains that pockets had no room for and take back

   Small blocks have the sizes of their classes. A large block has as many bytes as were asked for, to the line of a cache, since
   most programs ask for the same sizes again. Where a class has a free block that is too small, sizes differ from call to call: that
   block goes back to the system, and the new one has the most bytes of the class. So each class comes to hold what fits all of its
   sizes, as if blocks had been rounded up to begin with.

   Of large blocks that are free no more bytes are kept than were ever in use at a time, and AX_POOL_SPARE: beyond that those which have
   been free for longest go back to the system. So a program of which each call has the sizes of the one before touches no fresh
   memory, and programs of many sizes, one after the other, do not keep the memory of all. Where fresh memory is needed, huge blocks
   that are free make room for it, so that with them no more is held than was ever in use at a time, and AX_POOL_SPARE: a C library
   gives such blocks back at once.

   Memory is borrowed for as long as a run is going on. Large blocks of it serve any size for which they are large enough, and where
   none is, a smaller one goes back to the system: of the temporaries of many programs that run in turn those of the largest
   one are kept. Where several run at the same time, small ones may have the blocks of large ones; so of these, too, no more bytes are
   kept free than were ever asked for at a time, and AX_POOL_SPARE.

   A thread finds its pocket by its identity. If two threads share a pocket and it is in use, the second goes to the rest. */
#ifndef AX_RUN_POOL_H
#define AX_RUN_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "run/free_blocks.h"
#include "run/larger.h"

enum {
  AX_POCKETS = 16,
  AX_SMALL_STEPS = 16, /* sizes for each power of two from 1 KiB to 64 KiB; below, sizes are powers of two from 64 bytes on */
  AX_POCKET_SIZES = 5 + 6 * AX_SMALL_STEPS,
  AX_POCKET_BYTES = 16 << 10,
  AX_POCKET_LEAST = 2,
  AX_POCKET_MOST = 64, /* least and most blocks of a chain; in between, AX_POCKET_BYTES decides */
  AX_POOL_STEPS = 64, /* sizes for each power of two above 64 KiB: AX_LARGE_SIZES in all */
  AX_POOL_SMALL = 1 << 16, /* most bytes of a small block */
  AX_POOL_SPARE = 32 << 20 /* bytes of free large blocks that are kept in any case */
};

typedef struct ax_pocket {
  _Alignas(64) _Atomic(bool) busy; /* a thread is using it */
  uint32_t count[AX_POCKET_SIZES]; /* in `open` */
  ax_pool_block *open[AX_POCKET_SIZES], *full[AX_POCKET_SIZES]; /* chains; NULL: none */
} ax_pocket;

/* Where memory comes from: as ax_alloc and ax_free. */
typedef struct ax_pool_source {
  void *(*alloc)(size_t bytes);
  void (*free)(void *memory, size_t bytes);
  bool shared; /* other processes map it, those that are forked from this one among them: these leave it as it is */
} ax_pool_source;

typedef struct ax_use { /* bytes */
  size_t now, most; /* most: so far */
} ax_use;

typedef struct ax_pool {
  const ax_pool_source *source; /* set before the first block is taken */
  uint32_t forks;               /* as counted when the pool was made */
  ax_pocket pockets[AX_POCKETS];
  _Alignas(64) pthread_mutex_t lock; /* guards the following fields */
  ax_pool_block *blocks[AX_POCKET_SIZES], *chains[AX_POCKET_SIZES];
  ax_spare spare;               /* free large blocks */
  ax_use large;                 /* such blocks in use */
  ax_fitting fitting;           /* free large blocks that were borrowed */
  ax_use borrowed;              /* bytes that such blocks in use were asked for */
  ax_larger larger;             /* large blocks in use */
  size_t bytes_now, bytes_peak; /* allocated from the system, in use or free; its maximum so far */
} ax_pool;

/* Takes cleared memory. The source is the system (ax_alloc), unless it is set to another one. */
void ax_pool_init(ax_pool *pool);
void ax_pool_deinit(ax_pool *pool); /* blocks still in use are no longer the pool's */

/* Gives memory aligned as arrays are (ax_array_alignment). It must be freed with the same `bytes`. */
AX_MUST_USE ax_status ax_pool_alloc(ax_pool *pool, size_t bytes, void **out);
void ax_pool_free(ax_pool *pool, void *memory, size_t bytes);
/* The same for memory that is needed for a short time: it must be given back with the same `bytes`, before long. */
AX_MUST_USE ax_status ax_pool_borrow(ax_pool *pool, size_t bytes, void **out);
void ax_pool_give_back(ax_pool *pool, void *memory, size_t bytes);
/* Gives free memory back to the system. */
void ax_pool_trim(ax_pool *pool);
void ax_pool_count(ax_pool *pool, size_t *now, size_t *peak);

#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define AX_THREAD_POINTER() __builtin_thread_pointer() /* no call, unlike pthread_self */
#endif
#endif
#ifndef AX_THREAD_POINTER
#define AX_THREAD_POINTER() pthread_self()
#endif
/* A number below `count`, a power of two, that differs between threads in nearly all cases. */
static inline uint32_t ax_thread_place(uint32_t count) {
  /* the factor spreads addresses that differ in low bits */
  const uint64_t mixed = (uint64_t)(uintptr_t)AX_THREAD_POINTER() * 0x9e3779b97f4a7c15ull;
  return (uint32_t)(mixed >> 32) & (count - 1);
}

#endif
