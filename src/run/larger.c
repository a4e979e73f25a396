/* A hash table with open addressing, at most half full: a block lies in the slot of its hash, or in the next free slot behind
   that. When a block is taken out, those behind it move up, so that every block is found before the first empty slot. */
#include "run/larger.h"

static uint32_t slot_of(const ax_larger *larger, const void *memory) {
  return (uint32_t)ax_hash_word(AX_HASH_SEED, (uintptr_t)memory) & (larger->size - 1);
}

/* Where the block is, or the empty slot where it would be. */
static uint32_t find(const ax_larger *larger, const void *memory) {
  uint32_t at = slot_of(larger, memory);
  while (larger->slots[at].memory != NULL && larger->slots[at].memory != memory) at = (at + 1) & (larger->size - 1);
  return at;
}

static bool grow(ax_larger *larger) {
  enum { least = 16 };
  ax_larger more = {.size = larger->size == 0 ? least : 2 * larger->size, .count = larger->count};
  more.slots = ax_calloc(more.size, sizeof more.slots[0]);
  if (more.slots == NULL) return false;
  for (uint32_t i = 0; i < larger->size; i++)
    if (larger->slots[i].memory != NULL) more.slots[find(&more, larger->slots[i].memory)] = larger->slots[i];
  ax_free(larger->slots);
  *larger = more;
  return true;
}

bool ax_larger_put(ax_larger *larger, void *memory, size_t bytes) {
  if (2 * (larger->count + 1) > larger->size && !grow(larger)) return false;
  larger->slots[find(larger, memory)] = (ax_larger_block){memory, bytes};
  larger->count++;
  return true;
}

size_t ax_larger_take(ax_larger *larger, const void *memory) {
  if (larger->count == 0) return 0;
  const uint32_t mask = larger->size - 1;
  uint32_t hole = find(larger, memory);
  const size_t bytes = larger->slots[hole].bytes;
  if (larger->slots[hole].memory == NULL) return 0;
  for (uint32_t at = (hole + 1) & mask; larger->slots[at].memory != NULL; at = (at + 1) & mask) {
    const uint32_t wanted = slot_of(larger, larger->slots[at].memory);
    if (((at - wanted) & mask) < ((at - hole) & mask)) continue; /* it would lie before its hash's slot */
    larger->slots[hole] = larger->slots[at];
    hole = at;
  }
  larger->slots[hole] = (ax_larger_block){NULL, 0};
  larger->count--;
  return bytes;
}

void ax_larger_deinit(ax_larger *larger) {
  ax_free(larger->slots);
  *larger = (ax_larger){0};
}
