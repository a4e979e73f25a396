/* Windows across blocks. Four devices, blocks of 4, windows of 3 at each position, padded by 1:

     device            0              1              2              3
     its block         a b c d        e f g h        i j k l        m n o p
     its positions see . a b c d e    d e f g h i    h i j k l m    l m n o p .
     from the left     -              d              h              l            one ppermute
     from the right    e              i              m              -            another

   What a device needs is brought by pieces (redistribute.h). If blocks of positions begin where blocks of elements do, all devices
   put it to the same places. Otherwise, as with strides that do not divide, or dimensions that are padded, each has places of its own.

   A position is one step of the window; a place is where an element stands, or a gap between dilated elements (ops/window.h). */
#include "partition/halo.h"

#include "axle/collectives.h"
#include "collectives/collective.h"
#include "prim/bind.h"
#include "prim/shape.h"
#include "ops/window.h"
#include "partition/redistribute.h"

ax_halo ax_halo_of(const ax_reach *reach, int64_t size, int64_t positions, int64_t parts) {
  return (ax_halo){.reach = *reach,
                   .parts = parts,
                   .size = size,
                   .block = (size + parts - 1) / parts,
                   .positions = positions,
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

/* Whether each device can leave out, before anything moves, the elements of its block that no position sees. */
static bool is_thinned(const ax_halo *h) {
  return h->reach.fill == AX_FILL_ANY && h->reach.extent == 1 && h->reach.base == 1 && h->reach.stride > 1 && h->parts > 1 &&
         h->reach.first >= 0 && h->block % h->reach.stride == 0;
}

/* The positions over every stride-th element. */
static ax_halo thinned(const ax_halo *h) {
  const int64_t stride = h->reach.stride, rest = h->reach.first % stride;
  ax_halo thin = *h;
  thin.reach.first /= stride;
  thin.reach.stride = 1;
  thin.size = (h->size - rest + stride - 1) / stride;
  thin.block /= stride;
  return thin;
}

int64_t ax_halo_length(const ax_halo *h, bool whole) { return !whole && is_thinned(h) ? h->count : seen_places(h); }

/* What all devices need, in rounds. AX_ABSENT: there are too many exchanges. */
static ax_status needs_of_all(const ax_halo *h, ax_redistribution *t) {
  for (int64_t i = 0; i < h->parts; i++) {
    int64_t end, first = needs(h, i, &end);
    if (first < end && (end - 1) / h->block - first / h->block > AX_MOST_EXCHANGES) return AX_ABSENT;
    AX_TRY(ax_redistribution_need(t, 0, i, first, end, first - first_element(h, i)));
  }
  return ax_redistribution_arrange(t);
}

static ax_redistribution redistribution_over(const ax_halo *h, const ax_piece_source *source) {
  return (ax_redistribution){.parts = h->parts, .length = seen_elements(h), .sources = source, .source_count = 1};
}

bool ax_halo_received(const ax_halo *h, int64_t *elements, int64_t *exchanges) {
  if (is_thinned(h)) {
    const ax_halo thin = thinned(h);
    return ax_halo_received(&thin, elements, exchanges);
  }
  const ax_piece_source source = {.block = h->block};
  ax_redistribution t = redistribution_over(h, &source);
  *elements = *exchanges = 0;
  if (h->parts == 1 || h->block == 0) return true;
  const ax_status status = needs_of_all(h, &t);
  if (status == AX_OK) ax_redistribution_received(&t, elements, exchanges);
  ax_redistribution_deinit(&t);
  if (status != AX_OK && status != AX_ABSENT) ax_fail(status);
  return status == AX_OK && *exchanges <= AX_MOST_EXCHANGES;
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

/* Gathers what this device sees out of the blocks of all. */
static ax_value brought(const halo_exchange *b, ax_value x) {
  const ax_piece_source source = {.block = b->h->block};
  ax_redistribution t = redistribution_over(b->h, &source);
  const ax_status status = needs_of_all(b->h, &t);
  if (status != AX_OK)
    ax_fail(status);
  else
    x = ax_redistribution_bring(&t, &x, b->axes, b->d, filling(b));
  if (status == AX_OK && t.uniform) x = filled(b, x);
  ax_redistribution_deinit(&t);
  return status == AX_OK ? x : ax_poison;
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
  if (!whole && is_thinned(h)) {
    const ax_halo thin = thinned(h);
    x = ax_window_part(x, d, h->reach.first % h->reach.stride, thin.block, h->reach.stride);
    return ax_halo_bring(&thin, x, names, d, false, fill);
  }
  const ax_axes_list list = ax_axes_listed(names);
  const ax_dtype dtype = ax_typeof(x).dtype;
  const halo_exchange b = {.h = h, .axes = list.text, .d = d, .zero = ax_full(dtype, AX_DIMS(), 0), .fill = fill};
  if (ax_failed()) return ax_poison;
  return dilated(&b, whole ? own_part(&b, x) : brought(&b, x));
}
