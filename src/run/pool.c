/* See pool.h. */
#include "run/pool.h"

#include <string.h>

#include "machine/caches.h"
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif

enum {
  least_power = 6,      /* of sizes, */
  finer_power = 10,     /* of those from which on there are steps between powers of two, */
  small_power = 16      /* and of the largest that pockets keep: AX_POOL_SMALL */
};

static void free_bytes(void *memory, size_t bytes) {
  (void)bytes;
  ax_free(memory);
}

static const ax_pool_source from_system = {ax_alloc_array, free_bytes, false};

/* --- Sizes --- */

/* Returns the number of the size class, and rounds *bytes up to the most bytes of it: at most a sixteenth more from 1 KiB on, a
   sixty-fourth from 64 KiB on. */
static uint32_t round_to_size(size_t *bytes) {
  uint32_t power = *bytes <= (size_t)1 << least_power ? least_power : 64 - (uint32_t)__builtin_clzll(*bytes - 1);
  size_t top = (size_t)1 << power; /* `bytes` is more than half of it */
  if (power <= finer_power) {
    *bytes = top;
    return power - least_power;
  }
  const bool small = power <= small_power;
  const uint32_t each = small ? AX_SMALL_STEPS : AX_POOL_STEPS, from = small ? finer_power - least_power + 1 : AX_POCKET_SIZES;
  const size_t step = top / (2 * each);
  const uint32_t steps = (uint32_t)((*bytes + step - 1) / step); /* each < steps <= 2 each */
  *bytes = steps * step;
  return from + (power - 1 - (small ? finer_power : small_power)) * each + steps - each - 1;
}

/* --- Pockets --- */

/* The number of blocks in a full chain. */
static uint32_t chain_blocks(uint32_t index) {
  enum { powers = finer_power - least_power + 1 };
  const uint32_t power = index < powers ? least_power + index : finer_power + 1 + (index - powers) / AX_SMALL_STEPS;
  const uint32_t fit = AX_POCKET_BYTES >> power;
  return fit > AX_POCKET_MOST ? AX_POCKET_MOST : fit < AX_POCKET_LEAST ? AX_POCKET_LEAST : fit;
}

/* Says whether the pocket was busy, and makes it so. Like a mutex, it needs no atomic exchange in a process of one thread. */
static bool make_busy(ax_pocket *pocket) {
  if (!SINGLE_THREADED) return atomic_exchange_explicit(&pocket->busy, true, memory_order_acquire);
  const bool was = atomic_load_explicit(&pocket->busy, memory_order_relaxed);
  atomic_store_explicit(&pocket->busy, true, memory_order_relaxed);
  return was;
}

/* Opens this thread's pocket; no other thread uses it until it is closed. NULL: another thread is using it. */
static ax_pocket *open_pocket(ax_pool *pool) {
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
static ax_pool_block *take_from_rest(ax_pool *pool, uint32_t index) { /* with the lock held */
  if (pool->blocks[index] == NULL && pool->chains[index] != NULL) {
    pool->blocks[index] = pool->chains[index];
    pool->chains[index] = pool->chains[index]->chain;
  }
  ax_pool_block *block = pool->blocks[index];
  if (block != NULL) pool->blocks[index] = block->next;
  return block;
}

static void count(ax_pool *pool, size_t bytes) { /* likewise */
  pool->bytes_now += bytes;
  if (pool->bytes_now > pool->bytes_peak) pool->bytes_peak = pool->bytes_now;
}

/* Takes a block of the rest. If there are chains, a whole one goes into the pocket. If there is no block, the new one is
   counted. pocket: NULL, or open and empty. */
static ax_pool_block *take_or_count(ax_pool *pool, ax_pocket *pocket, uint32_t index, size_t bytes) {
  ax_pool_block *block;
  pthread_mutex_lock(&pool->lock);
  if (pocket != NULL && pool->chains[index] != NULL) {
    pocket->full[index] = pool->chains[index];
    pool->chains[index] = pool->chains[index]->chain;
    block = take_from_pocket(pocket, index);
  } else {
    block = take_from_rest(pool, index);
  }
  if (block == NULL) count(pool, bytes);
  pthread_mutex_unlock(&pool->lock);
  return block;
}

static void uncount(ax_pool *pool, size_t bytes) {
  pthread_mutex_lock(&pool->lock);
  pool->bytes_now -= bytes;
  pthread_mutex_unlock(&pool->lock);
}

static void *alloc_small(ax_pool *pool, size_t bytes) {
  const uint32_t index = round_to_size(&bytes);
  ax_pocket *pocket = open_pocket(pool);
  ax_pool_block *block = pocket != NULL ? take_from_pocket(pocket, index) : NULL;
  if (block == NULL) block = take_or_count(pool, pocket, index, bytes);
  if (pocket != NULL) close_pocket(pocket);
  void *memory = block != NULL ? block : pool->source->alloc(bytes);
  if (memory == NULL) uncount(pool, bytes);
  return memory;
}

/* --- Large blocks --- */

static void put_fitting(ax_pool *pool, ax_pool_block *block) { /* with the lock held */
  size_t bytes = block->bytes;
  ax_fitting_put(&pool->fitting, round_to_size(&bytes) - AX_POCKET_SIZES, block);
}

static size_t in_lines(size_t bytes) { return (bytes + AX_LINE_BYTES - 1) / AX_LINE_BYTES * AX_LINE_BYTES; }

/* A block that fits, which the table of larger ones then has, if it is larger; NULL. */
static ax_pool_block *take_large(ax_pool *pool, uint32_t size, size_t exact) { /* likewise */
  ax_pool_block *block = ax_spare_take(&pool->spare, size, exact);
  if (block == NULL || block->bytes == exact || ax_larger_put(&pool->larger, block, block->bytes)) return block;
  ax_spare_put(&pool->spare, size, block);
  return NULL;
}

static void use(ax_use *use, size_t bytes) { /* likewise */
  use->now += bytes;
  if (use->now > use->most) use->most = use->now;
}

static void use_fresh(ax_pool *pool, ax_use *counts, size_t bytes) {
  pthread_mutex_lock(&pool->lock);
  use(counts, bytes);
  pthread_mutex_unlock(&pool->lock);
}

static void release(ax_pool *pool, ax_pool_block **blocks) { /* counted already */
  for (ax_pool_block *block; (block = *blocks) != NULL;) {
    *blocks = block->next;
    pool->source->free(block, block->bytes);
  }
}

static size_t bytes_of(const ax_pool_block *blocks) {
  size_t bytes = 0;
  for (const ax_pool_block *block = blocks; block != NULL; block = block->next) bytes += block->bytes;
  return bytes;
}

static ax_pool_block *take_largest(ax_fitting *fitting, size_t most) { /* with the lock held. Until no more bytes are left */
  ax_pool_block *taken = NULL;
  while (fitting->bytes > most) {
    ax_pool_block *block = ax_fitting_take_below(fitting, AX_LARGE_SIZES);
    block->next = taken;
    taken = block;
  }
  return taken;
}

/* Fresh memory; if there is none, free large blocks make room for it. */
static void *alloc_fresh(ax_pool *pool, size_t bytes) {
  void *memory = pool->source->alloc(bytes);
  if (memory != NULL || pool->source->shared) return memory;
  pthread_mutex_lock(&pool->lock);
  ax_pool_block *spare = ax_spare_take_oldest(&pool->spare, 0), *fitting = take_largest(&pool->fitting, 0);
  pool->bytes_now -= bytes_of(spare) + bytes_of(fitting);
  pthread_mutex_unlock(&pool->lock);
  if (spare == NULL && fitting == NULL) return NULL;
  release(pool, &spare);
  release(pool, &fitting);
  return pool->source->alloc(bytes);
}

/* A fresh block, which is counted already. */
static void *make_large(ax_pool *pool, size_t bytes, bool is_larger) {
  void *memory = alloc_fresh(pool, bytes);
  bool noted = memory != NULL;
  if (noted && is_larger) {
    pthread_mutex_lock(&pool->lock);
    noted = ax_larger_put(&pool->larger, memory, bytes);
    pthread_mutex_unlock(&pool->lock);
  }
  if (noted) return memory;
  if (memory != NULL) pool->source->free(memory, bytes);
  uncount(pool, bytes);
  return NULL;
}

/* Ends what alloc_large and borrow_large begin, with the lock held: gives the free block that they found, or one of so many fresh bytes, for which
   `gone` make room. */
static void *give_large(ax_pool *pool, ax_use *counts, ax_pool_block *block, ax_pool_block *gone, size_t bytes, bool is_larger) {
  pool->bytes_now -= bytes_of(gone);
  if (block == NULL) count(pool, bytes);
  else use(counts, bytes);
  pthread_mutex_unlock(&pool->lock);
  release(pool, &gone);
  if (block != NULL) return block;
  void *memory = make_large(pool, bytes, is_larger);
  if (memory != NULL) use_fresh(pool, counts, bytes);
  return memory;
}

/* Free huge blocks that are too many once so many fresh bytes are in use. */
static ax_pool_block *take_huge(ax_pool *pool, size_t bytes) { /* with the lock held */
  const size_t in_use = pool->large.now + bytes, most = pool->large.most > in_use ? pool->large.most : in_use;
  return pool->source->shared ? NULL : ax_spare_take_huge(&pool->spare, most - in_use + AX_POOL_SPARE);
}

static ax_pool_block *put_before(ax_pool_block *block, ax_pool_block *list) { /* block NULL: there is none */
  if (block == NULL) return list;
  block->next = list;
  return block;
}

static void *alloc_large(ax_pool *pool, size_t bytes) {
  const size_t exact = in_lines(bytes);
  size_t most = bytes;
  const uint32_t size = round_to_size(&most) - AX_POCKET_SIZES;
  pthread_mutex_lock(&pool->lock);
  ax_pool_block *block = take_large(pool, size, exact);
  ax_pool_block *small = block == NULL ? ax_spare_take_any(&pool->spare, size) : NULL;
  const size_t taken = block != NULL ? block->bytes : small != NULL ? most : exact;
  ax_pool_block *gone = block == NULL ? put_before(small, take_huge(pool, taken)) : NULL;
  return give_large(pool, &pool->large, block, gone, taken, taken != exact);
}

/* As many bytes as its size has at most. If no free block is large enough, one that is too small makes room. */
static void *borrow_large(ax_pool *pool, size_t bytes) {
  const uint32_t size = round_to_size(&bytes) - AX_POCKET_SIZES;
  pthread_mutex_lock(&pool->lock);
  ax_pool_block *block = ax_fitting_take(&pool->fitting, size);
  if (block != NULL && block->bytes != bytes && !ax_larger_put(&pool->larger, block, block->bytes)) {
    put_fitting(pool, block);
    block = NULL;
  }
  ax_pool_block *small = block == NULL ? put_before(ax_fitting_take_below(&pool->fitting, size), NULL) : NULL;
  return give_large(pool, &pool->borrowed, block, small, bytes, false);
}

static ax_status given(void *memory, size_t bytes, void **out) {
  *out = memory;
  if (memory == NULL) return ax_out_of_memory(bytes);
  if (AX_HOSTILE) memset(memory, 0xff, bytes);
  return AX_OK;
}

ax_status ax_pool_alloc(ax_pool *pool, size_t bytes, void **out) {
  if (bytes > SIZE_MAX / 4) return ax_out_of_memory(bytes);
  return given(bytes <= AX_POOL_SMALL ? alloc_small(pool, bytes) : alloc_large(pool, bytes), bytes, out);
}

ax_status ax_pool_borrow(ax_pool *pool, size_t bytes, void **out) {
  if (bytes <= AX_POOL_SMALL || bytes > SIZE_MAX / 4) return ax_pool_alloc(pool, bytes, out);
  return given(borrow_large(pool, bytes), bytes, out);
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

static void put_in_rest(ax_pool *pool, uint32_t size, ax_pool_block *block) { /* with the lock held */
  block->next = pool->blocks[size];
  pool->blocks[size] = block;
}

/* Of memory that other processes map nothing is given back to keep within the limit. */
static void free_large(ax_pool *pool, uint32_t size, void *memory, size_t bytes) {
  ax_pool_block *block = memory, *over = NULL;
  pthread_mutex_lock(&pool->lock);
  const size_t larger = ax_larger_take(&pool->larger, memory);
  block->bytes = larger != 0 ? larger : in_lines(bytes);
  pool->large.now -= block->bytes;
  ax_spare_put(&pool->spare, size - AX_POCKET_SIZES, block);
  if (!pool->source->shared) over = ax_spare_take_oldest(&pool->spare, pool->large.most + AX_POOL_SPARE);
  pool->bytes_now -= bytes_of(over);
  pthread_mutex_unlock(&pool->lock);
  release(pool, &over);
}

void ax_pool_free(ax_pool *pool, void *memory, size_t bytes) {
  if (memory == NULL || is_of_parent(pool)) return;
  ax_pool_block *block = memory;
  size_t most = bytes;
  const uint32_t size = round_to_size(&most);
  if (bytes > AX_POOL_SMALL) {
    free_large(pool, size, memory, bytes);
    return;
  }
  block->bytes = most;
  ax_pocket *pocket = open_pocket(pool);
  if (pocket == NULL) {
    pthread_mutex_lock(&pool->lock);
    put_in_rest(pool, size, block);
    pthread_mutex_unlock(&pool->lock);
    return;
  }
  ax_pool_block *over = put_in_pocket(pocket, size, block);
  close_pocket(pocket);
  if (over != NULL) put_chain(pool, size, over);
}

void ax_pool_give_back(ax_pool *pool, void *memory, size_t bytes) {
  if (bytes <= AX_POOL_SMALL || memory == NULL || is_of_parent(pool)) {
    ax_pool_free(pool, memory, bytes);
    return;
  }
  ax_pool_block *block = memory, *over = NULL;
  (void)round_to_size(&bytes);
  pthread_mutex_lock(&pool->lock);
  const size_t larger = ax_larger_take(&pool->larger, memory);
  block->bytes = larger != 0 ? larger : bytes;
  pool->borrowed.now -= bytes;
  put_fitting(pool, block);
  if (!pool->source->shared) over = take_largest(&pool->fitting, pool->borrowed.most + AX_POOL_SPARE);
  pool->bytes_now -= bytes_of(over);
  pthread_mutex_unlock(&pool->lock);
  release(pool, &over);
}

/* --- All of it --- */

static void release_all(ax_pool *pool, ax_pool_block **blocks) { /* with the lock held */
  pool->bytes_now -= bytes_of(*blocks);
  release(pool, blocks);
}

static void release_pocket(ax_pool *pool, ax_pocket *pocket) { /* likewise, and open */
  for (uint32_t index = 0; index < AX_POCKET_SIZES; index++) {
    release_all(pool, &pocket->open[index]);
    release_all(pool, &pocket->full[index]);
    pocket->count[index] = 0;
  }
}

static void release_rest(ax_pool *pool) { /* likewise */
  ax_pool_block *blocks = ax_spare_take_oldest(&pool->spare, 0);
  release_all(pool, &blocks);
  blocks = take_largest(&pool->fitting, 0);
  release_all(pool, &blocks);
  for (uint32_t index = 0; index < AX_POCKET_SIZES; index++) {
    release_all(pool, &pool->blocks[index]);
    for (ax_pool_block *chain; (chain = pool->chains[index]) != NULL; release_all(pool, &chain)) pool->chains[index] = chain->chain;
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
  ax_larger_deinit(&pool->larger);
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
