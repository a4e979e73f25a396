/* Open addressing, at most five eighths full. The lowest bit of a key's second word says that the state is on the way. */
#include "check/known.h"

#include <string.h>

static void make_key(const uint64_t hash[2], uint64_t key[2]) {
  key[0] = hash[0];
  key[1] = hash[1] & ~(uint64_t)1;
  if (key[0] == 0 && key[1] == 0) key[0] = 1;
}

static uint64_t find(const ax_known_states *k, const uint64_t key[2]) {
  uint64_t slot = key[0] & (k->capacity - 1);
  while ((k->keys[slot][0] != 0 || k->keys[slot][1] != 0) &&
         (k->keys[slot][0] != key[0] || (k->keys[slot][1] & ~(uint64_t)1) != key[1]))
    slot = (slot + 1) & (k->capacity - 1);
  return slot;
}

static ax_status grow(ax_known_states *k) {
  ax_known_states larger = {.capacity = k->capacity == 0 ? 1024 : 2 * k->capacity, .count = k->count};
  size_t bytes;
  if (!ax_mul_size(larger.capacity, sizeof larger.keys[0], &bytes)) return ax_out_of_memory(0);
  larger.keys = ax_calloc(larger.capacity, sizeof larger.keys[0]);
  if (larger.keys == NULL) return ax_out_of_memory(bytes);
  for (uint64_t s = 0; s < k->capacity; s++) {
    if (k->keys[s][0] == 0 && k->keys[s][1] == 0) continue;
    uint64_t key[2] = {k->keys[s][0], k->keys[s][1] & ~(uint64_t)1};
    memcpy(larger.keys[find(&larger, key)], k->keys[s], sizeof larger.keys[0]);
  }
  ax_free(k->keys);
  *k = larger;
  return AX_OK;
}

ax_status ax_known_states_add(ax_known_states *k, const uint64_t hash[2], uint64_t *slot, bool *is_new) {
  uint64_t key[2];
  if (8 * (k->count + 1) > 5 * k->capacity) AX_TRY(grow(k));
  make_key(hash, key);
  *slot = find(k, key);
  *is_new = k->keys[*slot][0] == 0 && k->keys[*slot][1] == 0;
  if (!*is_new) return AX_OK;
  k->keys[*slot][0] = key[0];
  k->keys[*slot][1] = key[1] | 1;
  k->count++;
  return AX_OK;
}

bool ax_known_states_on_way(const ax_known_states *k, uint64_t slot) { return (k->keys[slot][1] & 1) != 0; }

void ax_known_states_leave(ax_known_states *k, const uint64_t hash[2]) {
  uint64_t key[2];
  make_key(hash, key);
  k->keys[find(k, key)][1] &= ~(uint64_t)1;
}

void ax_known_states_clear(ax_known_states *k) {
  if (k->capacity > 0) memset(k->keys, 0, k->capacity * sizeof k->keys[0]);
  k->count = 0;
}

void ax_known_states_deinit(ax_known_states *k) {
  ax_free(k->keys);
  *k = (ax_known_states){0};
}
