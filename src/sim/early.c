#include "sim/early.h"

ax_sim_early *ax_sim_early_find(const ax_sim_early_pool *pool, uint32_t first, int64_t key) {
  for (uint32_t at = first; at != 0; at = pool->all[at - 1].next)
    if (pool->all[at - 1].key == key) return &pool->all[at - 1];
  return NULL;
}

ax_status ax_sim_early_keep(ax_sim_early_pool *pool, uint32_t *first, int64_t key, ax_sim_early **out) {
  ax_sim_early *known = ax_sim_early_find(pool, *first, key);
  if (known == NULL) {
    uint32_t made = pool->free;
    if (made != 0) {
      pool->free = pool->all[made - 1].next;
    } else {
      AX_TRY(ax_grow(&pool->all, sizeof pool->all[0], pool->count, 1, &pool->capacity));
      made = ++pool->count;
    }
    known = &pool->all[made - 1];
    *known = (ax_sim_early){.key = key, .next = *first};
    *first = made;
  }
  known->count++;
  if (out != NULL) *out = known;
  return AX_OK;
}

int64_t ax_sim_early_take(ax_sim_early_pool *pool, uint32_t *first, int64_t key) {
  for (uint32_t *at = first; *at != 0; at = &pool->all[*at - 1].next) {
    ax_sim_early *early = &pool->all[*at - 1];
    if (early->key != key) continue;
    const uint32_t taken = *at;
    *at = early->next;
    early->next = pool->free;
    pool->free = taken;
    return early->count;
  }
  return 0;
}

void ax_sim_early_deinit(ax_sim_early_pool *pool) {
  ax_free(pool->all);
  *pool = (ax_sim_early_pool){0};
}
