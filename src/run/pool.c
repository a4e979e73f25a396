/* See pool.h. */
#include "run/pool.h"

#include <string.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif

enum { least_power = 6, most_power_of_two = 16 };

static void free_bytes(void *memory, size_t bytes) {
  (void)bytes;
  ax_free(memory);
}

static const ax_pool_source from_system = {ax_alloc, free_bytes, false};

/* --- Sizes --- */

/* Returns the number of the size class, and rounds *bytes up to it. Up to 64 KiB the classes are powers of two; above, there are
   AX_POOL_STEPS between each and the next, so that at most a sixty-fourth is wasted. */
static uint32_t round_to_size(size_t *bytes) {
  uint32_t power = *bytes <= (size_t)1 << least_power ? least_power : 64 - (uint32_t)__builtin_clzll(*bytes - 1);
  size_t top = (size_t)1 << power, step = top / (2 * AX_POOL_STEPS); /* `bytes` is more than half of `top` */
  uint32_t steps = power <= most_power_of_two ? 2 * AX_POOL_STEPS : (uint32_t)((*bytes + step - 1) / step);
  *bytes = power <= most_power_of_two ? top : steps * step;
  return power * AX_POOL_STEPS + (steps - 1) % AX_POOL_STEPS;
}

/* --- Pockets --- */

/* The number of blocks in a full chain. */
static uint32_t chain_blocks(uint32_t index) {
  const uint32_t fit = AX_POCKET_BYTES >> (least_power + index);
  return fit > AX_POCKET_MOST ? AX_POCKET_MOST : fit < AX_POCKET_LEAST ? AX_POCKET_LEAST : fit;
}

/* Says whether the pocket was busy, and makes it so. Like a mutex, it needs no atomic exchange in a process of one thread. */
static bool make_busy(ax_pocket *pocket) {
  if (!SINGLE_THREADED) return atomic_exchange_explicit(&pocket->busy, true, memory_order_acquire);
  const bool was = atomic_load_explicit(&pocket->busy, memory_order_relaxed);
  atomic_store_explicit(&pocket->busy, true, memory_order_relaxed);
  return was;
}

/* Opens this thread's pocket for blocks of a size; no other thread uses it until it is closed. NULL: the blocks are too large,
   or another thread is using the pocket. */
static ax_pocket *open_pocket(ax_pool *pool, uint32_t index) {
  if (index >= AX_POCKET_SIZES) return NULL;
  ax_pocket *pocket = &pool->pockets[ax_thread_place(AX_POCKETS)];
  return make_busy(pocket) ? NULL : pocket;
}

static void close_pocket(ax_pocket *pocket) { atomic_store_explicit(&pocket->busy, false, memory_order_release); }

/* Returns NULL if there is none. */
static ax_pool_block *take_from_pocket(ax_pocket *pocket, uint32_t index) {
  if (pocket->open[index] == NULL && pocket->full[index] != NULL) {
    pocket->open[index] = pocket->full[index];
    pocket->count[index] = chain_blocks(index);
    pocket->full[index] = NULL;
  }
  ax_pool_block *block = pocket->open[index];
  if (block == NULL) return NULL;
  pocket->open[index] = block->next;
  pocket->count[index]--;
  return block;
}

/* Returns a full chain for which there is no room; NULL: there is room. */
static ax_pool_block *put_in_pocket(ax_pocket *pocket, uint32_t index, ax_pool_block *block) {
  ax_pool_block *over = NULL;
  if (pocket->count[index] == chain_blocks(index)) {
    over = pocket->full[index];
    pocket->full[index] = pocket->open[index];
    pocket->open[index] = NULL;
    pocket->count[index] = 0;
  }
  block->next = pocket->open[index];
  pocket->open[index] = block;
  pocket->count[index]++;
  return over;
}

/* --- The rest --- */

/* A chain is broken up, for good, if there are no single blocks. */
static ax_pool_block *take_from_rest(ax_pool *pool, uint32_t size, uint32_t index) { /* with the lock held */
  if (pool->blocks[size] == NULL && index < AX_POCKET_SIZES && pool->chains[index] != NULL) {
    pool->blocks[size] = pool->chains[index];
    pool->chains[index] = pool->chains[index]->chain;
  }
  ax_pool_block *block = pool->blocks[size];
  if (block != NULL) pool->blocks[size] = block->next;
  return block;
}

/* Takes a block of the rest. If there are chains, a whole one goes into the pocket. If there is no block, the new one is
   counted. pocket: NULL, or open and empty. */
static ax_pool_block *take_or_count(ax_pool *pool, ax_pocket *pocket, uint32_t size, uint32_t index, size_t bytes) {
  ax_pool_block *block;
  pthread_mutex_lock(&pool->lock);
  if (pocket != NULL && pool->chains[index] != NULL) {
    pocket->full[index] = pool->chains[index];
    pool->chains[index] = pool->chains[index]->chain;
    block = take_from_pocket(pocket, index);
  } else {
    block = take_from_rest(pool, size, index);
  }
  if (block == NULL) {
    pool->bytes_now += bytes;
    if (pool->bytes_now > pool->bytes_peak) pool->bytes_peak = pool->bytes_now;
  }
  pthread_mutex_unlock(&pool->lock);
  return block;
}

static void uncount(ax_pool *pool, size_t bytes) {
  pthread_mutex_lock(&pool->lock);
  pool->bytes_now -= bytes;
  pthread_mutex_unlock(&pool->lock);
}

ax_status ax_pool_alloc(ax_pool *pool, size_t bytes, void **out) {
  if (bytes > SIZE_MAX / 4) return ax_out_of_memory(bytes);
  size_t rounded = bytes;
  const uint32_t size = round_to_size(&rounded), index = size / AX_POOL_STEPS - least_power;
  ax_pocket *pocket = open_pocket(pool, index);
  ax_pool_block *block = pocket != NULL ? take_from_pocket(pocket, index) : NULL;
  if (block == NULL) block = take_or_count(pool, pocket, size, index, rounded);
  if (pocket != NULL) close_pocket(pocket);
  *out = block != NULL ? block : pool->source->alloc(rounded);
  if (*out != NULL && AX_HOSTILE) memset(*out, 0xff, rounded);
  if (*out != NULL) return AX_OK;
  uncount(pool, rounded);
  return ax_out_of_memory(bytes);
}

static void put_chain(ax_pool *pool, uint32_t index, ax_pool_block *chain) {
  pthread_mutex_lock(&pool->lock);
  chain->chain = pool->chains[index];
  pool->chains[index] = chain;
  pthread_mutex_unlock(&pool->lock);
}

/* --- Forks --- */

static atomic_uint forks; /* between the process that loaded the library and this one */
static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void count_forks(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

/* Free blocks say which is next, so to free one is to write in it: what lies there is the parent's. */
static bool is_of_parent(const ax_pool *pool) {
  return pool->source->shared && atomic_load_explicit(&forks, memory_order_relaxed) != pool->forks;
}

/* --- Freeing --- */

void ax_pool_free(ax_pool *pool, void *memory, size_t bytes) {
  if (memory == NULL || is_of_parent(pool)) return;
  ax_pool_block *block = memory;
  block->bytes = bytes;
  const uint32_t size = round_to_size(&block->bytes), index = size / AX_POOL_STEPS - least_power;
  ax_pocket *pocket = open_pocket(pool, index);
  if (pocket != NULL) {
    ax_pool_block *over = put_in_pocket(pocket, index, block);
    close_pocket(pocket);
    if (over != NULL) put_chain(pool, index, over);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  block->next = pool->blocks[size];
  pool->blocks[size] = block;
  pthread_mutex_unlock(&pool->lock);
}

/* --- All of it --- */

static void release(ax_pool *pool, ax_pool_block **blocks) { /* with the lock held */
  for (ax_pool_block *block; (block = *blocks) != NULL;) {
    *blocks = block->next;
    pool->bytes_now -= block->bytes;
    pool->source->free(block, block->bytes);
  }
}

static void release_pocket(ax_pool *pool, ax_pocket *pocket) { /* likewise, and open */
  for (uint32_t index = 0; index < AX_POCKET_SIZES; index++) {
    release(pool, &pocket->open[index]);
    release(pool, &pocket->full[index]);
    pocket->count[index] = 0;
  }
}

static void release_rest(ax_pool *pool) { /* likewise */
  for (uint32_t size = 0; size < AX_POOL_SIZES; size++) release(pool, &pool->blocks[size]);
  for (uint32_t index = 0; index < AX_POCKET_SIZES; index++)
    while (pool->chains[index] != NULL) {
      ax_pool_block *chain = pool->chains[index];
      pool->chains[index] = chain->chain;
      release(pool, &chain);
    }
}

void ax_pool_init(ax_pool *pool) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, count_forks);
  pool->source = &from_system;
  pool->forks = atomic_load(&forks);
  pthread_mutex_init(&pool->lock, NULL);
}

/* In a process forked from the one that made the pool, another thread may have held the lock for ever, so the lock is not taken
   here. A pocket that was in use at the fork may list a block twice, and is left. */
void ax_pool_deinit(ax_pool *pool) {
  if (is_of_parent(pool)) return;
  for (uint32_t i = 0; i < AX_POCKETS; i++)
    if (!atomic_load_explicit(&pool->pockets[i].busy, memory_order_relaxed)) release_pocket(pool, &pool->pockets[i]);
  release_rest(pool);
}

/* A pocket in use keeps its blocks. */
void ax_pool_trim(ax_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  for (uint32_t i = 0; i < AX_POCKETS; i++) {
    if (make_busy(&pool->pockets[i])) continue;
    release_pocket(pool, &pool->pockets[i]);
    close_pocket(&pool->pockets[i]);
  }
  release_rest(pool);
  pthread_mutex_unlock(&pool->lock);
}

void ax_pool_count(ax_pool *pool, size_t *now, size_t *peak) {
  pthread_mutex_lock(&pool->lock);
  *now = pool->bytes_now;
  *peak = pool->bytes_peak;
  pthread_mutex_unlock(&pool->lock);
}
