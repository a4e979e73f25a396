/* See pool.h. */
#include "exec/pool.h"

#include <string.h>

enum { least_power = 6, most_power_of_two = 16 };

/* --- Sizes --- */

/* Up to 64 KiB the powers of two, then so many between each and the next that at most a sixty-fourth is wasted. Gives the number
   of the size, and rounds *bytes up to it. */
static uint32_t round_to_size(size_t *bytes) {
  uint32_t power = *bytes <= (size_t)1 << least_power ? least_power : 64 - (uint32_t)__builtin_clzll(*bytes - 1);
  size_t top = (size_t)1 << power, step = top / (2 * AX_POOL_STEPS); /* more than half of `top` is wanted */
  uint32_t steps = power <= most_power_of_two ? 2 * AX_POOL_STEPS : (uint32_t)((*bytes + step - 1) / step);
  *bytes = power <= most_power_of_two ? top : steps * step;
  return power * AX_POOL_STEPS + (steps - 1) % AX_POOL_STEPS;
}

/* --- Pockets --- */

uint32_t ax_thread_place(uint32_t count) {
  uint64_t mixed = (uint64_t)(uintptr_t)pthread_self() * 0x9e3779b97f4a7c15ull; /* neighbours differ in low bits, which this spreads */
  return (uint32_t)(mixed >> 32) & (count - 1);
}

/* Where this thread keeps blocks of a size; NULL: they are too large. */
static _Atomic(ax_pool_block *) *pocket_of(ax_pool *pool, uint32_t size) {
  uint32_t index = size / AX_POOL_STEPS - least_power;
  return index < AX_POCKET_SIZES ? pool->pockets[ax_thread_place(AX_POCKETS)].block[index] : NULL;
}

static ax_pool_block *take_from_pocket(_Atomic(ax_pool_block *) *pocket) {
  ax_pool_block *block = NULL;
  for (int i = 0; pocket != NULL && i < AX_POCKET_BLOCKS && block == NULL; i++)
    if (atomic_load_explicit(&pocket[i], memory_order_relaxed) != NULL)
      block = atomic_exchange_explicit(&pocket[i], NULL, memory_order_acquire);
  return block;
}

static bool put_in_pocket(_Atomic(ax_pool_block *) *pocket, ax_pool_block *block) {
  for (int i = 0; pocket != NULL && i < AX_POCKET_BLOCKS; i++) {
    ax_pool_block *none = NULL;
    if (atomic_load_explicit(&pocket[i], memory_order_relaxed) != NULL) continue;
    if (atomic_compare_exchange_strong_explicit(&pocket[i], &none, block, memory_order_release, memory_order_relaxed)) return true;
  }
  return false;
}

/* --- The rest --- */

static ax_pool_block *take_or_count(ax_pool *pool, uint32_t size, size_t bytes) {
  pthread_mutex_lock(&pool->lock);
  ax_pool_block *block = pool->blocks[size];
  if (block != NULL) {
    pool->blocks[size] = block->next;
  } else {
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
  uint32_t size = round_to_size(&rounded);
  ax_pool_block *block = take_from_pocket(pocket_of(pool, size));
  if (block == NULL) block = take_or_count(pool, size, rounded);
  *out = block != NULL ? block : ax_alloc(rounded);
  if (*out != NULL && AX_HOSTILE) memset(*out, 0xff, rounded);
  if (*out != NULL) return AX_OK;
  uncount(pool, rounded);
  return ax_out_of_memory(bytes);
}

void ax_pool_free(ax_pool *pool, void *memory, size_t bytes) {
  if (memory == NULL) return;
  ax_pool_block *block = memory;
  block->bytes = bytes;
  uint32_t size = round_to_size(&block->bytes);
  if (put_in_pocket(pocket_of(pool, size), block)) return;
  pthread_mutex_lock(&pool->lock);
  block->next = pool->blocks[size];
  pool->blocks[size] = block;
  pthread_mutex_unlock(&pool->lock);
}

/* --- All of it --- */

static void release(ax_pool *pool, ax_pool_block *block) { /* with the lock held */
  pool->bytes_now -= block->bytes;
  ax_free(block);
}

static void release_all(ax_pool *pool) { /* likewise */
  for (uint32_t i = 0; i < AX_POCKETS; i++)
    for (uint32_t size = 0; size < AX_POCKET_SIZES; size++)
      for (ax_pool_block *block; (block = take_from_pocket(pool->pockets[i].block[size])) != NULL;) release(pool, block);
  for (uint32_t size = 0; size < AX_POOL_SIZES; size++)
    while (pool->blocks[size] != NULL) {
      ax_pool_block *block = pool->blocks[size];
      pool->blocks[size] = block->next;
      release(pool, block);
    }
}

void ax_pool_init(ax_pool *pool) { pthread_mutex_init(&pool->lock, NULL); }

/* In a process forked from the one that made it, another thread may have held the lock for ever: nothing is locked here. */
void ax_pool_deinit(ax_pool *pool) { release_all(pool); }

void ax_pool_trim(ax_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  release_all(pool);
  pthread_mutex_unlock(&pool->lock);
}

void ax_pool_count(ax_pool *pool, size_t *now, size_t *peak) {
  pthread_mutex_lock(&pool->lock);
  *now = pool->bytes_now;
  *peak = pool->bytes_peak;
  pthread_mutex_unlock(&pool->lock);
}
