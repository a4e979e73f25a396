/* Reads that give the same again leave a history as it is, so that an agent that reads a count until it is enough has come no
   further. */
#include "check/history.h"

uint64_t ax_history_hash(const ax_history *h) {
  uint64_t sum = 0; /* in whatever order */
  for (uint32_t r = 0; r < h->read_count; r++) sum += h->reads[r];
  return h->acts == 0 && sum == 0 ? 0 : ax_hash_word(h->acts, sum);
}

static void add_read(ax_history *h, uint64_t read) {
  for (uint32_t r = 0; r < h->read_count; r++)
    if (h->reads[r] == read) return;
  if (h->read_count < AX_COUNT(h->reads)) h->reads[h->read_count++] = read;
}

ax_history ax_history_add(const ax_history *before, const ax_act *act, const ax_touches *pool, int64_t count) {
  ax_history h = *before;
  if (act->kind == AX_ACT_READ) {
    add_read(&h, ax_hash_word(act->object, (uint64_t)count));
    return h;
  }
  h = (ax_history){.acts = ax_hash_word(ax_hash_word(ax_history_hash(before) + 1, (uint64_t)act->kind << 32 | act->object),
                                        (uint64_t)act->amount)};
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    const ax_touch *touch = &pool->touches[t];
    h.acts = ax_hash_word(h.acts, (uint64_t)touch->region << 2 | (uint64_t)touch->write << 1 | touch->scope);
    h.acts = ax_hash_bytes(h.acts, pool->runs + touch->first, touch->count * sizeof pool->runs[0]);
  }
  return h;
}
