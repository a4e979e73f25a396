/* Packing into memory that is there anyway, and in the order of sizes.

   ax_pack places items as they come alive, and so leaves gaps that the next large item does not fit. Placed by size, the large items
   lie as if they were alone, and small ones find room between them; a program's temporaries then need about as much as are alive at
   the same time, which no packing can go below. Neither order is best for all lists, so both are tried, and the shorter result is
   kept.

   Each place, and the block behind all places, has a list of its items by offset. An item is compared with all of them, so only the
   largest items are placed so. Those that are left, of long lists, come behind them, in the order of time. */
#include <stdlib.h>

#include "assemble/pack.h"

enum { most_compared = 512, most_places = 128 };

typedef struct fitter {
  const ax_packed *items;
  const ax_pack_place *places;
  uint32_t place_count;       /* of those that are tried */
  const uint32_t *place_order; /* their numbers, the smallest first */
  uint32_t *head;             /* by place, and then of the block: the item with the lowest offset; AX_NONE */
  uint32_t *next;             /* by item: the one in the same memory with the next offset */
  int64_t *offset;
  uint32_t *place;            /* by item: AX_NONE: in the block */
  int64_t bytes;              /* of the block */
} fitter;

typedef struct gap {
  uint32_t before; /* the item whose `next` becomes the new one; AX_NONE: the list's head does */
  int64_t offset, bytes;
} gap;

/* The smallest gap of a list that has room for an item while it is alive. bytes: of the whole memory. */
static gap find_gap(const fitter *f, uint32_t head, const ax_packed *item, int64_t bytes) {
  gap best = {AX_NONE, 0, INT64_MAX};
  bool found = false;
  int64_t end = 0;
  uint32_t before = AX_NONE;
  for (uint32_t i = head; i != AX_NONE; i = f->next[i]) {
    const ax_packed *other = &f->items[i];
    if (other->first > item->last || other->last < item->first) continue;
    end = ax_pack_aligned(end, item->bytes);
    const int64_t room = f->offset[i] - end;
    if (room >= item->bytes && room < best.bytes) {
      best = (gap){AX_NONE, end, room};
      found = true;
    }
    if (f->offset[i] + other->bytes > end) end = f->offset[i] + other->bytes;
  }
  end = ax_pack_aligned(end, item->bytes);
  if (!found) best = (gap){AX_NONE, end, bytes - end};
  for (uint32_t i = head; i != AX_NONE && f->offset[i] < best.offset; i = f->next[i]) before = i;
  best.before = before;
  return best;
}

static void put(fitter *f, uint32_t list, uint32_t item, const gap *at) {
  uint32_t *link = at->before == AX_NONE ? &f->head[list] : &f->next[at->before];
  f->next[item] = *link;
  *link = item;
  f->offset[item] = at->offset;
  f->place[item] = list < f->place_count ? f->place_order[list] : AX_NONE;
}

static void fit(fitter *f, uint32_t i) {
  const ax_packed *item = &f->items[i];
  for (uint32_t k = 0; k < f->place_count && !item->apart; k++) {
    const ax_pack_place *place = &f->places[f->place_order[k]];
    if (place->bytes < item->bytes || place->until <= item->last) continue;
    const gap at = find_gap(f, f->head[k], item, place->bytes);
    if (at.bytes < item->bytes) continue;
    put(f, k, i, &at);
    return;
  }
  const gap at = find_gap(f, f->head[f->place_count], item, INT64_MAX);
  put(f, f->place_count, i, &at);
  if (at.offset + item->bytes > f->bytes) f->bytes = at.offset + item->bytes;
}

/* --- Orders --- */

typedef struct ranked {
  double rank; /* the highest first */
  uint32_t item;
} ranked;

static int by_rank(const void *x, const void *y) {
  const ranked *a = x, *b = y;
  if (a->rank != b->rank) return a->rank > b->rank ? -1 : 1;
  return a->item < b->item ? -1 : a->item > b->item;
}

enum { BY_SIZE, FULLEST_FIRST, BY_SIZE_AND_TIME, BY_TIME, orders };

/* fullest: the time at which the most bytes are alive. */
static double rank_of(const ax_packed *item, int order, uint32_t fullest) {
  const double bytes = (double)item->bytes, time = (double)(item->last - item->first) + 1;
  const bool then = item->first <= fullest && fullest <= item->last;
  switch (order) {
    case BY_SIZE: return bytes;
    case FULLEST_FIRST: return then ? 0x1p60 + bytes : bytes;
    case BY_SIZE_AND_TIME: return bytes * time;
    default: return -(double)item->first;
  }
}

/* The beginning of some item's life at which the most bytes of the compared ones are alive. ordered: these items. */
static uint32_t find_fullest(const ax_packed *items, const ranked *ordered, uint32_t count) {
  int64_t most = -1;
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t time = items[ordered[i].item].first;
    int64_t now = 0;
    for (uint32_t k = 0; k < count; k++) {
      const ax_packed *other = &items[ordered[k].item];
      if (other->first <= time && time <= other->last) now += other->bytes;
    }
    if (now <= most) continue;
    most = now;
    at = time;
  }
  return at;
}

/* Places the items of `order`, of which there are `count`, and then those that are not compared. */
static ax_status try_order(fitter *f, const ranked *order, uint32_t count, uint32_t all) {
  const uint32_t left = all - count;
  int64_t more = 0;
  for (uint32_t k = 0; k <= f->place_count; k++) f->head[k] = AX_NONE;
  f->bytes = 0;
  for (uint32_t i = 0; i < count; i++) fit(f, order[i].item);
  if (left == 0) return AX_OK;
  ax_packed *rest = ax_alloc(left * sizeof rest[0]);
  if (rest == NULL) return ax_out_of_memory(left * sizeof rest[0]);
  for (uint32_t i = 0; i < left; i++) rest[i] = f->items[order[count + i].item];
  ax_status status = ax_pack(rest, left, &more);
  f->bytes = ax_pack_aligned(f->bytes, more);
  for (uint32_t i = 0; status == AX_OK && i < left; i++) {
    f->offset[order[count + i].item] = f->bytes + rest[i].offset;
    f->place[order[count + i].item] = AX_NONE;
  }
  f->bytes += more;
  ax_free(rest);
  return status;
}

static void take_over(const fitter *f, ax_packed *items, uint32_t count, int64_t *bytes) {
  for (uint32_t i = 0; i < count; i++) {
    items[i].offset = f->offset[i];
    items[i].place = f->place[i];
  }
  *bytes = f->bytes;
}

/* ordered: room for all items. */
static ax_status try_all(fitter *f, ax_packed *items, uint32_t count, ranked *ordered, int64_t *bytes) {
  const uint32_t compared = count < most_compared ? count : most_compared;
  for (uint32_t i = 0; i < count; i++) ordered[i] = (ranked){rank_of(&items[i], BY_SIZE, 0), i};
  qsort(ordered, count, sizeof ordered[0], by_rank); /* the largest are compared in any order */
  const uint32_t fullest = find_fullest(items, ordered, compared);
  for (int order = 0; order < orders && *bytes > 0; order++) {
    for (uint32_t i = 0; i < compared; i++) ordered[i].rank = rank_of(&items[ordered[i].item], order, fullest);
    qsort(ordered, compared, sizeof ordered[0], by_rank);
    AX_TRY(try_order(f, ordered, compared, count));
    if (f->bytes < *bytes) take_over(f, items, count, bytes);
  }
  return AX_OK;
}

static ranked *order_places(const ax_pack_place *places, uint32_t count) {
  ranked *order = ax_alloc((count + (size_t)1) * sizeof order[0]);
  for (uint32_t i = 0; order != NULL && i < count; i++) order[i] = (ranked){(double)places[i].bytes, i};
  if (order != NULL && count > 0) qsort(order, count, sizeof order[0], by_rank);
  return order;
}

ax_status ax_pack_into(ax_packed *items, uint32_t count, const ax_pack_place *places, uint32_t place_count, int64_t *bytes) {
  uint32_t numbers[most_places], tried = place_count < most_places ? place_count : most_places;
  fitter f = {.items = items, .places = places, .place_count = tried, .place_order = numbers};
  AX_TRY(ax_pack(items, count, bytes));
  for (uint32_t i = 0; i < count; i++) items[i].place = AX_NONE;
  if (count == 0) return AX_OK;
  ranked *order = order_places(places, place_count), *ordered = ax_alloc(count * sizeof ordered[0]);
  f.head = ax_alloc(((size_t)tried + 1) * sizeof f.head[0]);
  f.next = ax_alloc(2 * (size_t)count * sizeof f.next[0]);
  f.offset = ax_alloc(count * sizeof f.offset[0]);
  ax_status status = AX_OK;
  if (order == NULL || ordered == NULL || f.head == NULL || f.next == NULL || f.offset == NULL) {
    status = ax_out_of_memory(count * sizeof ordered[0]);
  } else {
    f.place = f.next + count;
    for (uint32_t k = 0; k < tried; k++) numbers[k] = order[tried - 1 - k].item; /* of the largest, the smallest first */
    status = try_all(&f, items, count, ordered, bytes);
  }
  ax_free(order);
  ax_free(ordered);
  ax_free(f.head);
  ax_free(f.next);
  ax_free(f.offset);
  return status;
}
