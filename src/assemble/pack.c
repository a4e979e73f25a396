/* Packing: a walk over time, which takes memory when an item comes alive and gives it back when the item has died.

   The free gaps are a treap, a search tree by offset. Each node has a random priority that is at least its children's, so that the
   tree is about log n deep. Each node knows the largest gap at or below it, so that one descent finds the lowest gap that is large
   enough. No two gaps touch. The last gap has no end. */
#include "assemble/pack.h"

#include <stdlib.h>

typedef struct gap {
  int64_t offset, bytes;
  int64_t most[2]; /* room, of this one and those below; [1]: for items that begin at a page */
  uint64_t priority;
  uint32_t left, right; /* children, or AX_NONE; for an unused node, `left` is the next unused one */
} gap;

typedef struct packer {
  gap *gaps;
  uint32_t allocation, unused;
  uint64_t random; /* for priorities */
} packer;

enum { no_end = 62 }; /* the last gap ends at 2 to this power */

/* What a gap has for an item that is aligned to pages, or not. */
static int64_t room(const gap *g, bool paged) {
  return paged ? g->offset + g->bytes - ax_pack_aligned(g->offset, AX_PAGED_BYTES) : g->bytes;
}

static int64_t most_room(const packer *p, uint32_t node, bool paged) { return node == AX_NONE ? 0 : p->gaps[node].most[paged]; }

static void update(packer *p, uint32_t node) {
  gap *g = &p->gaps[node];
  for (int paged = 0; paged < 2; paged++) {
    const int64_t left = most_room(p, g->left, paged), right = most_room(p, g->right, paged), below = left > right ? left : right;
    g->most[paged] = room(g, paged);
    if (below > g->most[paged]) g->most[paged] = below;
  }
}

/* Splits a tree: gaps below `offset` go to `low`, the others to `high`. */
static void split(packer *p, uint32_t node, int64_t offset, uint32_t *low, uint32_t *high) {
  if (node == AX_NONE) {
    *low = *high = AX_NONE;
    return;
  }
  gap *g = &p->gaps[node];
  if (g->offset < offset) {
    *low = node;
    split(p, g->right, offset, &g->right, high);
  } else {
    *high = node;
    split(p, g->left, offset, low, &g->left);
  }
  update(p, node);
}

/* Joins two trees; all gaps of `low` are below all of `high`. */
static uint32_t join(packer *p, uint32_t low, uint32_t high) {
  if (low == AX_NONE) return high;
  if (high == AX_NONE) return low;
  bool above = p->gaps[low].priority >= p->gaps[high].priority;
  if (above) p->gaps[low].right = join(p, p->gaps[low].right, high);
  else p->gaps[high].left = join(p, low, p->gaps[high].left);
  update(p, above ? low : high);
  return above ? low : high;
}

static uint32_t new_gap(packer *p, int64_t offset, int64_t bytes) {
  uint32_t node = p->unused;
  p->unused = p->gaps[node].left;
  p->gaps[node] = (gap){.offset = offset, .bytes = bytes, .priority = ax_next_random(&p->random), .left = AX_NONE, .right = AX_NONE};
  update(p, node);
  return node;
}

static void drop_gap(packer *p, uint32_t node) {
  p->gaps[node].left = p->unused;
  p->unused = node;
}

/* The lowest gap that has room for so many bytes. */
static uint32_t lowest(const packer *p, int64_t bytes) {
  const bool paged = bytes >= AX_PAGED_BYTES;
  uint32_t node = p->allocation;
  while (most_room(p, p->gaps[node].left, paged) >= bytes || room(&p->gaps[node], paged) < bytes)
    node = most_room(p, p->gaps[node].left, paged) >= bytes ? p->gaps[node].left : p->gaps[node].right;
  return node;
}

static int64_t take(packer *p, int64_t bytes) {
  uint32_t node = lowest(p, bytes), low, high;
  const gap g = p->gaps[node];
  const int64_t offset = ax_pack_aligned(g.offset, bytes), before = offset - g.offset, rest = g.bytes - before - bytes;
  split(p, p->allocation, g.offset, &low, &high);
  split(p, high, g.offset + 1, &node, &high);
  drop_gap(p, node);
  if (before > 0) low = join(p, low, new_gap(p, g.offset, before));
  if (rest > 0) low = join(p, low, new_gap(p, offset + bytes, rest));
  p->allocation = join(p, low, high);
  return offset;
}

/* Gives memory back, merged with neighbouring gaps. */
static void give(packer *p, int64_t offset, int64_t bytes) {
  uint32_t low, high, node;
  split(p, p->allocation, offset, &low, &high);
  for (node = low; node != AX_NONE && p->gaps[node].right != AX_NONE;) node = p->gaps[node].right;
  if (node != AX_NONE && p->gaps[node].offset + p->gaps[node].bytes == offset) {
    split(p, low, p->gaps[node].offset, &low, &node);
    offset = p->gaps[node].offset;
    bytes += p->gaps[node].bytes;
    drop_gap(p, node);
  }
  for (node = high; node != AX_NONE && p->gaps[node].left != AX_NONE;) node = p->gaps[node].left;
  if (node != AX_NONE && p->gaps[node].offset == offset + bytes) {
    split(p, high, offset + bytes + 1, &node, &high);
    bytes += p->gaps[node].bytes;
    drop_gap(p, node);
  }
  p->allocation = join(p, join(p, low, new_gap(p, offset, bytes)), high);
}

static int by_first(const void *x, const void *y) {
  const ax_packed *a = *(ax_packed *const *)x, *b = *(ax_packed *const *)y;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a < b ? -1 : a > b;
}

static int at_last_arrival(const void *x, const void *y) {
  const ax_packed *a = *(ax_packed *const *)x, *b = *(ax_packed *const *)y;
  if (a->last != b->last) return a->last < b->last ? -1 : 1;
  return a < b ? -1 : a > b;
}

static void walk(packer *p, ax_packed **coming, ax_packed **going, uint32_t count, int64_t *bytes) {
  for (uint32_t i = 0, gone = 0; i < count; i++) {
    ax_packed *item = coming[i];
    for (; going[gone]->last < item->first; gone++)
      if (going[gone]->bytes > 0) give(p, going[gone]->offset, going[gone]->bytes);
    if (item->bytes > 0) item->offset = take(p, item->bytes);
    if (item->offset + item->bytes > *bytes) *bytes = item->offset + item->bytes;
  }
}

ax_status ax_pack(ax_packed *items, uint32_t count, int64_t *bytes) {
  packer p = {.allocation = AX_NONE, .unused = 0};
  *bytes = 0;
  p.gaps = ax_alloc(((size_t)count + 2) * sizeof p.gaps[0]);
  ax_packed **order = ax_alloc(((size_t)count + 1) * 2 * sizeof order[0]);
  ax_status status = p.gaps == NULL || order == NULL ? ax_out_of_memory(count * sizeof p.gaps[0]) : AX_OK;
  if (status == AX_OK && count > 0) {
    for (uint32_t i = 0; i < count + 2; i++) p.gaps[i].left = i + 1;
    for (uint32_t i = 0; i < count; i++) {
      items[i].offset = 0;
      order[i] = order[count + i] = &items[i];
    }
    qsort(order, count, sizeof order[0], by_first);
    qsort(order + count, count, sizeof order[0], at_last_arrival);
    p.allocation = new_gap(&p, 0, (int64_t)1 << no_end);
    walk(&p, order, order + count, count, bytes);
  }
  ax_free(p.gaps);
  ax_free(order);
  return status;
}
