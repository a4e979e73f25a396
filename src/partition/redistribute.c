/* A round is a matching of senders and receivers. The pieces of intervals in order need as many rounds as a device has peers,
   since each shares a peer with pieces before it on one side only: so the lowest round that neither peer is in yet will do. */
#include "partition/redistribute.h"

#include <string.h>

#include "axle/collectives.h"
#include "ops/window.h"
#include "prim/bind.h"
#include "prim/shape.h"

void ax_redistribution_deinit(ax_redistribution *t) {
  ax_free(t->all);
  t->all = NULL;
  t->count = t->capacity = 0;
}

static ax_status add(ax_redistribution *t, const ax_moved_piece *more) {
  ax_moved_piece *last = t->count > 0 ? &t->all[t->count - 1] : NULL;
  if (last != NULL && last->source == more->source && last->from == more->from && last->to == more->to &&
      last->first + last->count == more->first && last->place + last->count == more->place) {
    last->count += more->count;
    return AX_OK;
  }
  AX_TRY(ax_grow(&t->all, sizeof t->all[0], t->count, 1, &t->capacity));
  t->all[t->count++] = *more;
  return AX_OK;
}

ax_status ax_redistribution_need(ax_redistribution *t, uint32_t source, int64_t to, int64_t first, int64_t end, int64_t place) {
  const ax_piece_source *s = &t->sources[source];
  for (int64_t e = first, next; e < end; e = next) {
    const int64_t from = s->whole ? to : e / s->block, begin = s->whole ? 0 : from * s->block;
    next = s->whole || end < begin + s->block ? end : begin + s->block;
    const ax_moved_piece more = {
        .source = source, .from = from, .to = to, .first = e - begin, .count = next - e, .place = place + (e - first)};
    AX_TRY(add(t, &more));
  }
  return AX_OK;
}

/* --- Rounds --- */

static int64_t distance_of(const ax_redistribution *t, const ax_moved_piece *x) { return (x->from - x->to + t->parts) % t->parts; }

/* Rounds by distance and offset, in which every device does the same. False: these are more than `most` exchanges, or there is more
   than one piece for a device in one of them, or what they put lies on each other. */
static bool arrange_alike(ax_redistribution *t, uint32_t most) {
  uint32_t exchanges = 0;
  int64_t last[AX_MOST_ROUNDS];
  t->round_count = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    ax_moved_piece *x = &t->all[i];
    const int64_t distance = distance_of(t, x), offset = x->place - x->first;
    uint32_t r = 0;
    while (r < t->round_count &&
           (t->rounds[r].source != x->source || t->rounds[r].distance != distance || t->rounds[r].offset != offset))
      r++;
    if (r == AX_MOST_ROUNDS || (r < t->round_count && last[r] == x->to)) return false;
    ax_piece_round *round = &t->rounds[r];
    if (r == t->round_count) {
      *round = (ax_piece_round){x->source, x->from == x->to, distance, offset, 0, x->place, x->place + x->count};
      t->round_count++;
      exchanges += !round->local;
      if (exchanges > most) return false;
    }
    if (x->place < round->low) round->low = x->place;
    if (x->place + x->count > round->end) round->end = x->place + x->count;
    last[r] = x->to;
    x->round = r;
  }
  for (uint32_t r = 0; r < t->round_count; r++)
    for (uint32_t q = 0; q < r; q++)
      if (t->rounds[q].low < t->rounds[r].end && t->rounds[r].low < t->rounds[q].end) return false;
  return true;
}

/* The round of this source and color. AX_NONE: there are too many. */
static uint32_t round_of(ax_redistribution *t, const ax_moved_piece *x, uint32_t color, uint8_t *color_of) {
  const bool local = x->from == x->to;
  for (uint32_t r = 0; r < t->round_count; r++)
    if (t->rounds[r].source == x->source && t->rounds[r].local == local && color_of[r] == color) return r;
  if (t->round_count == AX_MOST_ROUNDS) return AX_NONE;
  color_of[t->round_count] = (uint8_t)color;
  t->rounds[t->round_count] = (ax_piece_round){.source = x->source, .local = local};
  return t->round_count++;
}

/* The colors that a device's pieces of a source have taken: as their sender, as their receiver, and of those that it keeps, which no
   other device takes part in. */
typedef enum piece_role { SENDS, RECEIVES, KEEPS, PIECE_ROLES } piece_role;

static int64_t role_count(const ax_redistribution *t) { return (int64_t)t->source_count * PIECE_ROLES * t->parts; }

static uint64_t *colors_of(const ax_redistribution *t, uint64_t *taken, uint32_t source, piece_role role, int64_t device) {
  return &taken[((int64_t)source * PIECE_ROLES + role) * t->parts + device];
}

/* Gives each piece the lowest color that is free. taken: role_count of them. */
static ax_status arrange_in_order(ax_redistribution *t, uint64_t *taken) {
  uint8_t color_of[AX_MOST_ROUNDS];
  memset(taken, 0, (size_t)role_count(t) * sizeof taken[0]);
  t->round_count = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    ax_moved_piece *x = &t->all[i];
    const bool local = x->from == x->to;
    uint64_t *from = colors_of(t, taken, x->source, local ? KEEPS : SENDS, x->from),
             *to = colors_of(t, taken, x->source, local ? KEEPS : RECEIVES, x->to);
    const uint64_t free_colors = ~(*from | *to);
    if (free_colors == 0) return AX_ABSENT;
    const uint32_t color = (uint32_t)__builtin_ctzll(free_colors);
    *from |= (uint64_t)1 << color;
    *to |= (uint64_t)1 << color;
    x->round = round_of(t, x, color, color_of);
    if (x->round == AX_NONE) return AX_ABSENT;
    if (x->count > t->rounds[x->round].longest) t->rounds[x->round].longest = x->count;
  }
  return AX_OK;
}

static uint32_t exchanges_of(const ax_redistribution *t) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < t->round_count; r++) count += !t->rounds[r].local;
  return count;
}

ax_status ax_redistribution_arrange(ax_redistribution *t) {
  uint64_t *taken = ax_calloc((size_t)role_count(t) + 1, sizeof taken[0]);
  if (taken == NULL) return ax_out_of_memory(0);
  ax_status status = arrange_in_order(t, taken);
  const uint32_t least = status == AX_OK ? exchanges_of(t) : AX_MOST_ROUNDS;
  t->uniform = arrange_alike(t, least + 1);
  if (!t->uniform && status == AX_OK) status = arrange_in_order(t, taken);
  ax_free(taken);
  return t->uniform ? AX_OK : status;
}

void ax_redistribution_received(const ax_redistribution *t, int64_t *elements, int64_t *exchanges) {
  *elements = 0;
  *exchanges = exchanges_of(t);
  for (uint32_t r = 0; r < t->round_count; r++)
    if (!t->rounds[r].local) *elements += t->uniform ? t->rounds[r].end - t->rounds[r].low : t->rounds[r].longest;
}

/* --- Binding --- */

typedef struct bringing {
  const ax_redistribution *t;
  const char *axes;
  uint32_t d;
  ax_value fill, device; /* device: its number along the axes, as s64 */
} bringing;

/* x with `low` elements of `value` before it along the dimension, and `high` behind it. */
static ax_value widened(const bringing *b, ax_value x, ax_value value, int64_t low, int64_t high) {
  int64_t front[AX_MAX_RANK] = {0}, behind[AX_MAX_RANK] = {0}, between[AX_MAX_RANK] = {0};
  if (low == 0 && high == 0) return x;
  front[b->d] = low, behind[b->d] = high;
  return ax_pad(x, value, front, behind, between);
}

/* Sends x along the round's pieces. Devices that get none have zeros. */
static ax_value sent(const bringing *b, uint32_t r, ax_value x) {
  const ax_redistribution *t = b->t;
  uint32_t count = 0;
  if (t->rounds[r].local) return x;
  int64_t(*pairs)[2] = ax_trace_alloc((size_t)t->parts * sizeof pairs[0]);
  if (pairs == NULL) return ax_poison;
  for (uint32_t i = 0; i < t->count; i++)
    if (t->all[i].round == r) pairs[count][0] = t->all[i].from, pairs[count++][1] = t->all[i].to;
  return ax_ppermute(x, b->axes, count, (const int64_t(*)[2])pairs);
}

/* The number of the round whose places begin behind `at`, and before those of all others that do; AX_NONE: none does. */
static uint32_t next_round(const ax_redistribution *t, int64_t at) {
  uint32_t next = AX_NONE;
  for (uint32_t r = 0; r < t->round_count; r++)
    if (t->rounds[r].low >= at && t->rounds[r].end > t->rounds[r].low &&
        (next == AX_NONE || t->rounds[r].low < t->rounds[next].low))
      next = r;
  return next;
}

/* Concatenates what comes, each at its place. */
static ax_value joined(const bringing *b, const ax_value *values, ax_value zero) {
  const ax_redistribution *t = b->t;
  ax_value parts[AX_MOST_ROUNDS];
  uint32_t count = 0, r;
  int64_t at = 0;
  for (; (r = next_round(t, at)) != AX_NONE && !ax_failed(); at = t->rounds[r].end) {
    const ax_piece_round *round = &t->rounds[r];
    ax_value x = ax_window_part(values[round->source], b->d, round->low - round->offset, round->end - round->low, 1);
    parts[count++] = widened(b, sent(b, r, x), zero, round->low - at, 0);
  }
  if (ax_failed()) return ax_poison;
  if (count == 0) parts[count++] = ax_window_part(values[0], b->d, 0, 0, 1); /* no device needs an element */
  return widened(b, count > 1 ? ax_concatenate(AX_LIST(count, parts), b->d) : parts[0], zero, 0, t->length - at);
}

/* This device's entry of a table by device. */
static ax_value own_entry(const bringing *b, const int64_t *table) {
  bool same = true;
  for (int64_t i = 1; i < b->t->parts; i++) same = same && table[i] == table[0];
  if (same) return ax_integer(table[0]);
  const ax_type type = ax_array_type(AX_S64, AX_DIMS(b->t->parts));
  return ax_reshape(
      ax_dynamic_slice_in_dim((ax_constant)(&type, AX_S64, table, (size_t)b->t->parts * sizeof table[0]), b->device, 1, 0),
      AX_DIMS());
}

/* A round of pieces of one size: where each device cuts its piece out of its block, the place at which each device puts the one that it
   gets, how far the piece moves against that place, and which of its elements count. */
typedef struct placing {
  int64_t *start, *at, *shift, *low, *end;
  int64_t farthest; /* of the shifts, in either direction */
  bool all;         /* all elements count on all devices */
} placing;

static int64_t clamped(int64_t x, int64_t low, int64_t high) { return ax_most(ax_least(x, high), low); }

/* Pieces lie inside blocks and inside what is made. If both can be with the same elements in front of those that are needed, nothing
   moves. */
static void place(const ax_redistribution *t, const ax_moved_piece *x, int64_t block, int64_t longest, placing *p) {
  const int64_t ahead = ax_most(ax_most(x->place - (t->length - longest), x->first - (block - longest)), 0);
  const int64_t start = clamped(x->first - ahead, 0, block - longest), at = clamped(x->place - ahead, 0, t->length - longest);
  p->start[x->from] = start;
  p->at[x->to] = at;
  p->shift[x->to] = (x->place - at) - (x->first - start);
  p->low[x->to] = x->place - at;
  p->end[x->to] = x->place - at + x->count;
  p->farthest = ax_most(p->farthest, p->shift[x->to] < 0 ? -p->shift[x->to] : p->shift[x->to]);
}

/* False: no memory, the trace has failed. */
static bool placing_of(const ax_redistribution *t, uint32_t r, int64_t block, placing *p) {
  const ax_moved_piece *any = NULL;
  const int64_t n = t->parts;
  int64_t *tables = ax_trace_alloc(5 * (size_t)n * sizeof tables[0]), served = 0;
  if (tables == NULL) return false;
  *p = (placing){tables, tables + n, tables + 2 * n, tables + 3 * n, tables + 4 * n, 0, true};
  for (uint32_t i = 0; i < t->count && any == NULL; i++)
    if (t->all[i].round == r) any = &t->all[i];
  place(t, any, block, t->rounds[r].longest, p);
  for (int64_t i = 0; i < n; i++) { /* devices outside the round do what others do */
    p->start[i] = p->start[any->from], p->at[i] = p->at[any->to], p->shift[i] = p->shift[any->to];
    p->low[i] = p->end[i] = 0;
  }
  for (uint32_t i = 0; i < t->count; i++) {
    if (t->all[i].round != r) continue;
    place(t, &t->all[i], block, t->rounds[r].longest, p);
    served++;
    p->all = p->all && t->all[i].count == t->rounds[r].longest;
  }
  p->all = p->all && served == n;
  return true;
}

/* Puts a round's pieces into what is made, which has `margin` elements on either side. */
static ax_value with_round(const bringing *b, uint32_t r, placing *p, int64_t margin, ax_value block, ax_value made) {
  const int64_t longest = b->t->rounds[r].longest;
  const ax_type type = ax_typeof(block);
  if (ax_failed()) return ax_poison;
  for (int64_t i = 0; i < b->t->parts; i++) { /* from where the place is to where the piece is */
    p->at[i] += p->shift[i] + margin;
    p->low[i] -= p->shift[i];
    p->end[i] -= p->shift[i];
  }
  ax_value x = longest < type.dims[b->d] ? ax_dynamic_slice_in_dim(block, own_entry(b, p->start), longest, b->d) : block;
  x = sent(b, r, x);
  const bool whole = margin == 0 && longest == b->t->length;
  if (p->all && whole) return x;
  const ax_value at = own_entry(b, p->at);
  if (!p->all) {
    const ax_type piece = ax_typeof(x);
    if (ax_failed()) return ax_poison;
    const ax_value e = ax_iota(AX_S64, AX_LIST(piece.rank, piece.dims), b->d);
    const ax_value counts = ax_and(ax_ge(e, own_entry(b, p->low)), ax_lt(e, own_entry(b, p->end)));
    x = ax_where(counts, x, ax_dynamic_slice_in_dim(made, at, longest, b->d));
  }
  return whole ? x : ax_dynamic_update_slice_in_dim(made, x, at, b->d);
}

/* Each round overwrites what its pieces are of. Pieces that are partly outside of what is made are so in a margin. */
static ax_value placed(const bringing *b, const ax_value *values) {
  const ax_redistribution *t = b->t;
  ax_type type = ax_typeof(values[0]);
  placing *p = ax_trace_alloc((t->round_count + 1) * sizeof p[0]);
  int64_t margin = 0;
  for (uint32_t r = 0; r < t->round_count && p != NULL; r++) {
    const ax_type block = ax_typeof(values[t->rounds[r].source]);
    if (ax_failed() || !placing_of(t, r, block.dims[b->d], &p[r])) return ax_poison;
    margin = ax_most(margin, p[r].farthest);
  }
  if (p == NULL || ax_failed()) return ax_poison;
  type.dims[b->d] = t->length + 2 * margin;
  ax_value made = ax_broadcast_to(b->fill, AX_LIST(type.rank, type.dims));
  for (uint32_t r = 0; r < t->round_count && !ax_failed(); r++)
    made = with_round(b, r, &p[r], margin, values[t->rounds[r].source], made);
  return ax_failed() ? ax_poison : ax_window_part(made, b->d, margin, t->length, 1);
}

ax_value ax_redistribution_bring(const ax_redistribution *t, const ax_value *values, const char *axes, uint32_t d, ax_value fill) {
  bringing b = {.t = t, .axes = axes, .d = d, .fill = fill};
  const ax_type type = ax_typeof(values[0]);
  if (ax_failed()) return ax_poison;
  if (t->uniform) return joined(&b, values, ax_full(type.dtype, AX_DIMS(), 0));
  b.device = ax_convert_element_type(ax_axis_index(axes), AX_S64);
  return placed(&b, values);
}
