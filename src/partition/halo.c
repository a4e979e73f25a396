/* Windows across blocks. Four devices, blocks of 4, windows of 3 at each position, padded by 1:

     device            0              1              2              3
     its block         a b c d        e f g h        i j k l        m n o p
     its positions see . a b c d e    d e f g h i    h i j k l m    l m n o p .
     from the left     -              d              h              l            one ppermute
     from the right    e              i              m              -            another

   Devices send equal pieces: from its neighbour at distance k, a device gets all elements that any device needs from its neighbour
   at distance k. If blocks of positions begin where blocks of elements do (is_aligned), a piece goes to the same place on all
   devices. Otherwise, as with strides that do not divide, or dimensions that are padded, each device computes the place itself.

   A position is one step of the window; a place is where an element stands, or a gap between dilated elements (ops/window.h). */
#include "partition/halo.h"

#include "axle/collectives.h"
#include "collectives/collective.h"
#include "prim/bind.h"
#include "prim/shape.h"
#include "ops/window.h"

enum { most_distances = 16 };

ax_halo ax_halo_of(const ax_reach *reach, int64_t size, int64_t positions, int64_t parts) {
  return (ax_halo){.reach = *reach, .parts = parts, .size = size, .block = (size + parts - 1) / parts, .positions = positions,
                   .count = (positions + parts - 1) / parts};
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The element at, or the last one before, the first place that device i sees. */
static int64_t first_element(const ax_halo *h, int64_t i) {
  return floor_div(h->reach.first + i * h->count * h->reach.stride, h->reach.base);
}
/* The number of places that a device sees; and of elements, from the first on, that are enough for them on any device. */
static int64_t seen_places(const ax_halo *h) { return (h->count - 1) * h->reach.stride + h->reach.extent; }
static int64_t seen_elements(const ax_halo *h) { return (seen_places(h) + h->reach.base - 2) / h->reach.base + 1; }

/* Whether blocks of positions begin where blocks of elements do. */
static bool is_aligned(const ax_halo *h) { return h->parts == 1 || h->count * h->reach.stride == h->block * h->reach.base; }

/* The elements that device i needs, without padding: returns the first of them, *end is behind the last. They are equal if it needs
   none. */
static int64_t needs(const ax_halo *h, int64_t i, int64_t *end) {
  int64_t from = i * h->count, to = from + h->count < h->positions ? from + h->count : h->positions;
  int64_t first = first_element(h, i),
          last = floor_div(h->reach.first + (to - 1) * h->reach.stride + h->reach.extent - 1, h->reach.base);
  if (h->reach.base > 1 && first * h->reach.base < h->reach.first + from * h->reach.stride) first++;
  if (first < 0) first = 0;
  *end = last + 1 < h->size ? last + 1 : h->size;
  if (from >= to || *end < first) *end = first;
  return first;
}

/* The elements first <= e < end of a device's block, which it gives to the device that comes `distance` before it. */
typedef struct piece {
  int64_t distance, first, end;
} piece;

static piece piece_at(const ax_halo *h, int64_t distance) {
  piece p = {.distance = distance, .first = h->block};
  for (int64_t i = 0; i < h->parts; i++) {
    const int64_t begin = (i + distance) * h->block;
    int64_t end, first = needs(h, i, &end);
    if (i + distance < 0 || i + distance >= h->parts) continue;
    first = first > begin ? first - begin : 0;
    end = end < begin + h->block ? end - begin : h->block;
    if (first >= end) continue;
    if (first < p.first) p.first = first;
    if (end > p.end) p.end = end;
  }
  return p;
}

/* The least and the greatest distance to a device from which some device needs elements; below 0: to one before it. */
static void distances(const ax_halo *h, int64_t *low, int64_t *high) {
  *low = *high = 0;
  for (int64_t i = 0; i < h->parts; i++) {
    int64_t end, first = needs(h, i, &end);
    if (first == end) continue;
    int64_t from = first / h->block - i, to = (end - 1) / h->block - i;
    if (from < *low) *low = from;
    if (to > *high) *high = to;
  }
}

bool ax_halo_received(const ax_halo *h, int64_t *elements, int64_t *exchanges) {
  int64_t low, high;
  *elements = *exchanges = 0;
  if (h->parts == 1 || h->block == 0) return true;
  distances(h, &low, &high);
  for (int64_t k = low; k <= high; k++) {
    if (k == 0) continue;
    const piece p = piece_at(h, k);
    if (p.first >= p.end) continue;
    *elements += p.end - p.first;
    *exchanges += 1;
    if (*exchanges > most_distances) return false;
  }
  return true;
}

/* --- Binding --- */

/* The exchange of a halo along dimension d, while its equations are bound. */
typedef struct halo_exchange {
  const ax_halo *h;
  const char *axes;
  uint32_t d;
  ax_value zero, fill; /* scalars; fill: poison if the elements outside are never used */
} halo_exchange;

/* device * times + plus */
static ax_value multiply_add(ax_value device, int64_t times, int64_t plus) {
  return ax_add(ax_mul(device, ax_integer(times)), ax_integer(plus));
}

/* This device's number along the axes. */
static ax_value device_of(const halo_exchange *b) { return ax_convert_element_type(ax_axis_index(b->axes), AX_S64); }

/* first_element of this device, computed at run time. Division truncates, so `ahead` elements are added before it and taken off
   afterwards: the dividend is never negative. */
static ax_value first_of(const halo_exchange *b) {
  const ax_halo *h = b->h;
  const int64_t base = h->reach.base, ahead = first_element(h, 0) < 0 ? -first_element(h, 0) : 0;
  ax_value place = multiply_add(device_of(b), h->count * h->reach.stride, h->reach.first + ahead * base);
  return ax_sub(base == 1 ? place : ax_div(place, ax_integer(base)), ax_integer(ahead));
}

/* x with `low` elements of `value` before it, `high` behind it, and `interior` between any two of its own. */
static ax_value widened(const halo_exchange *b, ax_value x, ax_value value, int64_t low, int64_t high, int64_t interior) {
  int64_t front[AX_MAX_RANK] = {0}, behind[AX_MAX_RANK] = {0}, between[AX_MAX_RANK] = {0};
  if (low == 0 && high == 0 && interior == 0) return x;
  front[b->d] = low, behind[b->d] = high, between[b->d] = interior;
  return ax_pad(x, value, front, behind, between);
}

/* The value outside the array; any will do if these places are never used. */
static ax_value filling(const halo_exchange *b) { return b->fill.trace != 0 ? b->fill : b->zero; }

/* The piece that the device gets from its neighbour, or, at distance 0, takes of its own block. Devices without such a neighbour
   get zeros. */
static ax_value received(const halo_exchange *b, ax_value x, const piece *p) {
  const int64_t count = b->h->parts - (p->distance < 0 ? -p->distance : p->distance);
  x = ax_window_part(x, b->d, p->first, p->end - p->first, 1);
  if (p->distance == 0) return x;
  int64_t(*pairs)[2] = ax_trace_alloc((size_t)count * sizeof pairs[0]);
  if (pairs == NULL) return ax_poison;
  for (int64_t n = 0; n < count; n++) {
    pairs[n][1] = p->distance < 0 ? n - p->distance : n;
    pairs[n][0] = pairs[n][1] + p->distance;
  }
  return ax_ppermute(x, b->axes, (uint32_t)count, (const int64_t(*)[2])pairs);
}

/* Concatenates the pieces, which for aligned blocks lie at the same places on all devices. Zeros stand where no piece is. */
static ax_value joined(const halo_exchange *b, ax_value x, int64_t low, int64_t high) {
  const ax_halo *h = b->h;
  const int64_t begin = first_element(h, 0), length = seen_elements(h);
  ax_value *parts = ax_trace_alloc((size_t)(high - low + 1) * sizeof parts[0]);
  uint32_t count = 0;
  int64_t at = 0; /* where the pieces so far end */
  for (int64_t k = low; k <= high && parts != NULL && !ax_failed(); k++) {
    const piece p = piece_at(h, k);
    const int64_t place = k * h->block + p.first - begin;
    if (p.first >= p.end) continue;
    parts[count++] = widened(b, received(b, x, &p), b->zero, place - at, 0, 0);
    at = place + p.end - p.first;
  }
  if (parts == NULL || ax_failed()) return ax_poison;
  if (count == 0) parts[count++] = ax_window_part(x, b->d, 0, 0, 1); /* no device sees an element */
  return widened(b, count > 1 ? ax_concatenate(AX_LIST(count, parts), b->d) : parts[0], b->zero, 0, length - at, 0);
}

/* Puts each piece at the place where this device sees it, by a slice that begins elsewhere on each device. The pieces may overlap;
   then the elements of the later one are taken. */
static ax_value placed(const halo_exchange *b, ax_value x, int64_t low, int64_t high) {
  const ax_halo *h = b->h;
  const int64_t length = seen_elements(h);
  ax_value made = ax_poison, device = device_of(b), first = first_of(b);
  for (int64_t k = low; k <= high && !ax_failed(); k++) {
    piece p = piece_at(h, k);
    if (p.first >= p.end && k != 0) continue;
    if (p.first >= p.end) p = (piece){0, 0, 0};
    /* The index in the piece of the first element that this device sees. */
    ax_value at = ax_sub(first, multiply_add(device, h->block, k * h->block + p.first));
    ax_value y = widened(b, received(b, x, &p), b->zero, length, length, 0);
    y = ax_dynamic_slice_in_dim(y, ax_add(at, ax_integer(length)), length, b->d);
    ax_type type = ax_typeof(y);
    if (made.trace == 0 || ax_failed()) {
      made = y;
      continue;
    }
    ax_value index = ax_add(ax_iota(AX_S64, AX_LIST(type.rank, type.dims), b->d), at);
    made = ax_where(ax_and(ax_ge(index, ax_integer(0)), ax_lt(index, ax_integer(p.end - p.first))), y, made);
  }
  return made;
}

/* Puts `fill` before the array's first element and behind its last, where blocks may have padding. */
static ax_value filled(const halo_exchange *b, ax_value x) {
  const ax_halo *h = b->h;
  bool outside = first_element(h, 0) < 0 || first_element(h, h->parts - 1) + seen_elements(h) > h->size;
  /* Devices without a neighbour have received zeros. */
  bool is_there = h->reach.fill == AX_FILL_ZERO && is_aligned(h) && h->parts * h->block == h->size;
  ax_type type = ax_typeof(x);
  if (b->fill.trace == 0 || !outside || is_there || ax_failed()) return x;
  ax_value element = ax_add(ax_iota(AX_S64, AX_LIST(type.rank, type.dims), b->d), first_of(b));
  return ax_where(ax_and(ax_ge(element, ax_integer(0)), ax_lt(element, ax_integer(h->size))), x, b->fill);
}

/* Cuts the elements that this device sees out of x, which has all of the dimension. */
static ax_value own_part(const halo_exchange *b, ax_value x) {
  const ax_halo *h = b->h;
  const int64_t length = seen_elements(h), ahead = first_element(h, 0) < 0 ? -first_element(h, 0) : 0;
  const int64_t last = first_element(h, h->parts - 1) + length, behind = last > h->size ? last - h->size : 0;
  x = widened(b, x, filling(b), ahead, behind, 0);
  return ax_dynamic_slice_in_dim(x, ax_add(first_of(b), ax_integer(ahead)), length, b->d);
}

/* Spreads the elements apart by the reach's base, and cuts off the places in front of the first that this device sees. */
static ax_value dilated(const halo_exchange *b, ax_value x) {
  const ax_halo *h = b->h;
  const int64_t base = h->reach.base, length = seen_places(h);
  if (base == 1) return x;
  x = widened(b, x, filling(b), 0, base - 1, base - 1);
  if (h->count * h->reach.stride % base == 0 || h->parts == 1)
    return ax_window_part(x, b->d, h->reach.first - first_element(h, 0) * base, length, 1);
  ax_value start = multiply_add(device_of(b), h->count * h->reach.stride, h->reach.first);
  return ax_dynamic_slice_in_dim(x, ax_sub(start, ax_mul(first_of(b), ax_integer(base))), length, b->d);
}

ax_value ax_halo_bring(const ax_halo *h, ax_value x, const ax_axes *names, uint32_t d, bool whole, ax_value fill) {
  const ax_axes_list list = ax_axes_listed(names);
  const ax_dtype dtype = ax_typeof(x).dtype;
  const halo_exchange b = {.h = h, .axes = list.text, .d = d, .zero = ax_full(dtype, AX_DIMS(), 0), .fill = fill};
  int64_t low, high;
  if (ax_failed()) return ax_poison;
  if (whole) return dilated(&b, own_part(&b, x));
  distances(h, &low, &high);
  x = is_aligned(h) ? joined(&b, x, low, high) : placed(&b, x, low, high);
  return dilated(&b, filled(&b, x));
}
