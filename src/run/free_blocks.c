/* See free_blocks.h. */
#include "run/free_blocks.h"

enum { most_tried = 32 }; /* spare blocks of a size */

/* --- Spare blocks --- */

void ax_spare_put(ax_spare *spare, uint32_t size, ax_pool_block *block) {
  ax_pool_block *after = spare->blocks[size], *before = spare->newest;
  block->next = after;
  block->previous = NULL;
  block->size = size;
  if (after != NULL) after->previous = block;
  spare->blocks[size] = block;
  block->newer = NULL;
  block->older = before;
  if (before != NULL) before->newer = block;
  else spare->oldest = block;
  spare->newest = block;
  spare->bytes += block->bytes;
  if (block->bytes >= AX_HUGE_BLOCK) spare->huge += block->bytes;
}

static ax_pool_block *take_out(ax_spare *spare, ax_pool_block *block) {
  if (block->next != NULL) block->next->previous = block->previous;
  if (block->previous != NULL) block->previous->next = block->next;
  else spare->blocks[block->size] = block->next;
  if (block->newer != NULL) block->newer->older = block->older;
  else spare->newest = block->older;
  if (block->older != NULL) block->older->newer = block->newer;
  else spare->oldest = block->newer;
  spare->bytes -= block->bytes;
  if (block->bytes >= AX_HUGE_BLOCK) spare->huge -= block->bytes;
  return block;
}

ax_pool_block *ax_spare_take(ax_spare *spare, uint32_t size, size_t bytes) {
  ax_pool_block *block = spare->blocks[size];
  for (uint32_t tried = 0; block != NULL && tried < most_tried; tried++, block = block->next)
    if (block->bytes >= bytes) return take_out(spare, block);
  return NULL;
}

ax_pool_block *ax_spare_take_any(ax_spare *spare, uint32_t size) {
  return spare->blocks[size] != NULL ? take_out(spare, spare->blocks[size]) : NULL;
}

/* Those of `least` bytes or more. */
static ax_pool_block *take_oldest(ax_spare *spare, size_t bytes, size_t least) {
  ax_pool_block *taken = NULL;
  for (ax_pool_block *block = spare->oldest, *newer; block != NULL && spare->bytes > bytes; block = newer) {
    newer = block->newer;
    if (block->bytes < least) continue;
    (void)take_out(spare, block);
    block->next = taken;
    taken = block;
  }
  return taken;
}

ax_pool_block *ax_spare_take_oldest(ax_spare *spare, size_t bytes) { return take_oldest(spare, bytes, 0); }

ax_pool_block *ax_spare_take_huge(ax_spare *spare, size_t bytes) {
  const size_t others = spare->bytes - spare->huge;
  return spare->huge > 0 ? take_oldest(spare, others > bytes ? others : bytes, AX_HUGE_BLOCK) : NULL;
}

/* --- Blocks that fit --- */

void ax_fitting_put(ax_fitting *fitting, uint32_t size, ax_pool_block *block) {
  block->next = fitting->blocks[size];
  fitting->blocks[size] = block;
  fitting->any[size / 64] |= (uint64_t)1 << size % 64;
  fitting->bytes += block->bytes;
}

static ax_pool_block *take_of(ax_fitting *fitting, uint32_t size) {
  ax_pool_block *block = fitting->blocks[size];
  fitting->blocks[size] = block->next;
  if (block->next == NULL) fitting->any[size / 64] &= ~((uint64_t)1 << size % 64);
  fitting->bytes -= block->bytes;
  return block;
}

ax_pool_block *ax_fitting_take(ax_fitting *fitting, uint32_t size) {
  uint64_t looked_at = ~(uint64_t)0 << size % 64;
  for (uint32_t word = size / 64; word < AX_LARGE_WORDS; word++, looked_at = ~(uint64_t)0)
    if ((fitting->any[word] & looked_at) != 0)
      return take_of(fitting, word * 64 + (uint32_t)__builtin_ctzll(fitting->any[word] & looked_at));
  return NULL;
}

ax_pool_block *ax_fitting_take_below(ax_fitting *fitting, uint32_t size) {
  uint64_t looked_at = ((uint64_t)2 << (size - 1) % 64) - 1; /* of the word that has the size before */
  if (size == 0) return NULL;
  for (uint32_t word = (size - 1) / 64 + 1; word-- > 0; looked_at = ~(uint64_t)0)
    if ((fitting->any[word] & looked_at) != 0)
      return take_of(fitting, word * 64 + 63 - (uint32_t)__builtin_clzll(fitting->any[word] & looked_at));
  return NULL;
}
