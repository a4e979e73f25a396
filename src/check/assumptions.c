#include "check/assumptions.h"

static bool common_bytes(ax_bytes a, ax_bytes b, ax_bytes *out) {
  *out = (ax_bytes){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
  return out->begin < out->end;
}

static bool is_contended_memory(const ax_assumptions *a, const ax_touches *pool, const ax_act *act) {
  ax_bytes common;
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    const ax_touch *touch = &pool->touches[t];
    for (uint32_t b = 0; b < a->byte_count; b++) {
      if (a->bytes[b].region != touch->region) continue;
      for (uint32_t r = touch->first; r < touch->first + touch->count; r++)
        if (common_bytes(pool->runs[r], a->bytes[b].bytes, &common)) return true;
    }
  }
  return false;
}

bool ax_assumptions_dropped(const ax_assumptions *a, const ax_touches *pool, const ax_act *act) {
  if (act->kind == AX_ACT_SIGNAL && a->semaphores[act->object].read) return true;
  if (act->kind == AX_ACT_READ || act->kind == AX_ACT_SEEN) return true;
  if (act->kind == AX_ACT_WAIT && (a->semaphores[act->object].several || a->semaphores[act->object].read)) return true;
  return a->byte_count > 0 && is_contended_memory(a, pool, act);
}

ax_status ax_assumptions_grow(ax_assumptions *a, const ax_act_objects *objects) {
  if (a->semaphore_count < objects->semaphore_count)
    AX_TRY(ax_grow(&a->semaphores, sizeof a->semaphores[0], a->semaphore_count, objects->semaphore_count - a->semaphore_count,
                   &a->semaphore_capacity));
  if (a->region_count < objects->region_count)
    AX_TRY(ax_grow(&a->regions, sizeof a->regions[0], a->region_count, objects->region_count - a->region_count, &a->region_capacity));
  while (a->semaphore_count < objects->semaphore_count) a->semaphores[a->semaphore_count++] = (ax_semaphore_use){.waiter = AX_NONE};
  while (a->region_count < objects->region_count) a->regions[a->region_count++] = (ax_region_use){.agent = AX_NONE};
  return AX_OK;
}

void ax_assumptions_note(ax_assumptions *a, uint32_t agent, bool alike, const ax_act *act, const ax_touches *pool) {
  if (act->kind == AX_ACT_WAIT) {
    ax_semaphore_use *use = &a->semaphores[act->object];
    if (use->waiter == AX_NONE) use->waiter = agent;
    if ((use->waiter != agent || alike) && !use->several) use->several = a->refuted = true;
  }
  if ((act->kind == AX_ACT_READ || act->kind == AX_ACT_SEEN) && !a->semaphores[act->object].read)
    a->semaphores[act->object].read = a->refuted = true;
  if (act->kind == AX_ACT_READ && !a->reads) a->reads = a->again = a->refuted = true;
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    ax_region_use *use = &a->regions[pool->touches[t].region];
    if (use->agent == AX_NONE) use->agent = agent;
    if ((use->agent != agent || alike) && !use->several) use->several = a->refuted = true;
  }
}

static ax_status contend_bytes(ax_assumptions *a, uint32_t region, ax_bytes bytes) {
  for (uint32_t c = 0; c < a->byte_count; c++)
    if (a->bytes[c].region == region && a->bytes[c].bytes.begin <= bytes.begin && bytes.end <= a->bytes[c].bytes.end) return AX_OK;
  AX_TRY(ax_grow(&a->bytes, sizeof a->bytes[0], a->byte_count, 1, &a->byte_capacity));
  a->bytes[a->byte_count++] = (ax_contended_bytes){region, bytes};
  a->refuted = true;
  return AX_OK;
}

static ax_status contend_touches(ax_assumptions *a, const ax_touches *pool, const ax_touch *x, const ax_touch *y) {
  ax_bytes common;
  for (uint32_t p = 0, q = 0; p < x->count && q < y->count;) {
    const ax_bytes m = pool->runs[x->first + p], n = pool->runs[y->first + q];
    if (common_bytes(m, n, &common)) AX_TRY(contend_bytes(a, x->region, common));
    if (m.end < n.end)
      p++;
    else
      q++;
  }
  return AX_OK;
}

ax_status ax_assumptions_contend(ax_assumptions *a, const ax_touches *pool, const ax_act *act, const ax_act *other) {
  for (uint32_t i = act->touch_first; i < act->touch_first + act->touch_count; i++)
    for (uint32_t k = other->touch_first; k < other->touch_first + other->touch_count; k++) {
      const ax_touch *x = &pool->touches[i], *y = &pool->touches[k];
      if (x->region == y->region && (x->write || y->write)) AX_TRY(contend_touches(a, pool, x, y));
    }
  return AX_OK;
}

void ax_assumptions_deinit(ax_assumptions *a) {
  ax_free(a->semaphores);
  ax_free(a->regions);
  ax_free(a->bytes);
  *a = (ax_assumptions){0};
}
