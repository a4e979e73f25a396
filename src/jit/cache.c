/* A hash table over a list of entries; each entry holds a deep copy of its kernel or fused loop, since the caller's arena may
   go. */
#include "jit/cache.h"

#include <string.h>

void ax_cache_deinit(ax_cache *cache) {
  ax_free(cache->entries);
  ax_free(cache->table);
  ax_arena_deinit(&cache->arena);
}

static bool same(const ax_cached *entry, const ax_cached *wanted) {
  if (entry->hash != wanted->hash || (entry->fused_loop != NULL) != (wanted->fused_loop != NULL)) return false;
  return wanted->fused_loop != NULL ? ax_fused_loop_equal(entry->fused_loop, wanted->fused_loop)
                                    : ax_kernel_equal(entry->kernel, wanted->kernel);
}

/* The place of an equal one, or the free place for it. */
static uint32_t *find(const ax_cache *cache, const ax_cached *wanted) {
  for (uint64_t at = wanted->hash;; at++) {
    uint32_t *place = &cache->table[at & (cache->table_size - 1)];
    if (*place == 0 || same(&cache->entries[*place - 1], wanted)) return place;
  }
}

static void rebuild(ax_cache *cache) {
  memset(cache->table, 0, cache->table_size * sizeof cache->table[0]);
  for (uint32_t i = 0; i < cache->count; i++) {
    uint64_t at = cache->entries[i].hash;
    while (cache->table[at & (cache->table_size - 1)] != 0) at++;
    cache->table[at & (cache->table_size - 1)] = i + 1;
  }
}

/* Keeps the table at most half full, one more entry included. */
static ax_status reserve(ax_cache *cache) {
  AX_TRY(ax_grow(&cache->entries, sizeof cache->entries[0], cache->count, 1, &cache->capacity));
  if (2 * (cache->count + 1) <= cache->table_size) return AX_OK;
  uint32_t size = cache->table_size == 0 ? 64 : 2 * cache->table_size;
  uint32_t *table = ax_alloc(size * sizeof table[0]);
  if (table == NULL) return ax_out_of_memory(size * sizeof table[0]);
  ax_free(cache->table);
  cache->table = table;
  cache->table_size = size;
  rebuild(cache);
  return AX_OK;
}

static ax_status get(ax_cache *cache, ax_cached wanted, uint32_t *entry) {
  AX_TRY(reserve(cache));
  uint32_t *place = find(cache, &wanted);
  if (*place == 0) {
    if (wanted.kernel != NULL) wanted.kernel = ax_kernel_copy(&cache->arena, wanted.kernel);
    if (wanted.fused_loop != NULL) wanted.fused_loop = ax_fused_loop_copy(&cache->arena, wanted.fused_loop);
    if (wanted.kernel == NULL && wanted.fused_loop == NULL) return ax_out_of_memory(0);
    cache->entries[cache->count++] = wanted;
    *place = cache->count;
  }
  *entry = *place - 1;
  return AX_OK;
}

ax_status ax_cache_get(ax_cache *cache, const ax_loop_kernel *kernel, uint32_t *entry) {
  return get(cache, (ax_cached){.kernel = kernel, .hash = ax_kernel_hash(kernel)}, entry);
}

ax_status ax_cache_get_fused_loop(ax_cache *cache, const ax_fused_loop *fused_loop, uint32_t *entry) {
  return get(cache, (ax_cached){.fused_loop = fused_loop, .hash = ax_fused_loop_hash(fused_loop)}, entry);
}

void ax_cache_truncate(ax_cache *cache, uint32_t count) {
  if (cache->count == count) return;
  cache->count = count;
  rebuild(cache);
}

void ax_cache_sweep(ax_cache *cache, const ax_objects *objects) {
  uint32_t left = 0;
  while (left < cache->count && ax_objects_have(objects, cache->entries[left].object)) left++;
  if (left > 0 && left == cache->count) return; /* all stay where they are */
  ax_arena arena = {0};
  left = 0;
  for (uint32_t i = 0; i < cache->count; i++) {
    ax_cached entry = cache->entries[i];
    if (!ax_objects_have(objects, entry.object)) continue;
    if (entry.kernel != NULL) entry.kernel = ax_kernel_copy(&arena, entry.kernel);
    if (entry.fused_loop != NULL) entry.fused_loop = ax_fused_loop_copy(&arena, entry.fused_loop);
    if (entry.kernel != NULL || entry.fused_loop != NULL) cache->entries[left++] = entry;
  }
  ax_arena_deinit(&cache->arena);
  cache->arena = arena;
  cache->count = left;
  if (left > 0) {
    rebuild(cache);
    return;
  }
  ax_cache_deinit(cache);
  *cache = (ax_cache){0};
}
