/* Well-typed steps: operations of each device, casts, collectives, and collectives under way. */
#include "support/typed.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"

int64_t typed_below(typed_maker *m, int64_t n) { return test_random_below(&m->random, n); }
static int64_t below(typed_maker *m, int64_t n) { return typed_below(m, n); }
static ax_spread spread_of(ax_value x) { return ax_typeof(x).spread; }
static bool same(ax_value a, ax_value b) { return a.trace == b.trace && a.id == b.id; }
static ax_axis_set all_axes(const typed_maker *m) { return ((ax_axis_set)1 << m->mesh.count) - 1; }
static ax_value number(const typed_maker *m, double value) { return ax_full(m->dtype, AX_DIMS(), value); }
static ax_value scaled(const typed_maker *m, ax_value x, double by) { return m->dtype == AX_F32 ? ax_mul(x, number(m, by)) : x; }

void typed_hold(typed_maker *m, ax_value own, ax_value whole) {
  uint32_t at = m->count < TYPED_MOST ? m->count++ : (uint32_t)below(m, TYPED_MOST);
  m->pool[at] = (typed_held){own, m->unreduced ? whole : own};
}

const char *typed_names(const typed_maker *m, ax_axis_set set, char *text) {
  char *end = text;
  *end = 0;
  for (uint32_t a = 0; a < m->mesh.count; a++)
    if (set >> a & 1) end += sprintf(end, "%s%s", end > text ? "," : "", m->mesh.axis[a].name);
  return text;
}

ax_axis_set typed_axes(typed_maker *m, ax_axis_set of) {
  of &= all_axes(m) & ~m->apart;
  if (of == 0) return 0;
  ax_axis_set set;
  do set = (ax_axis_set)below(m, (int64_t)all_axes(m) + 1) & of;
  while (set == 0);
  return set;
}

ax_value typed_vary(const typed_maker *m, ax_value x, ax_axis_set set) {
  char text[TYPED_TEXT];
  ax_spread on = spread_of(x);
  ax_axis_set reduced = set & on.reduced, invariant = set & ~(on.varying | on.reduced | on.unreduced);
  if (reduced != 0) x = ax_reduced_vary_cast(x, typed_names(m, reduced, text));
  return invariant != 0 ? ax_pvary(x, typed_names(m, invariant, text)) : x;
}

static ax_value combine(ax_value x, const char *axes, ax_unreduced_kind kind) {
  return kind == AX_UNREDUCED_SUM ? ax_psum(x, axes) : kind == AX_UNREDUCED_MAX ? ax_pmax(x, axes) : ax_pmin(x, axes);
}

ax_value typed_combined(const typed_maker *m, ax_value x) {
  char text[TYPED_TEXT];
  ax_spread on = spread_of(x);
  return on.unreduced == 0 ? x : combine(x, typed_names(m, on.unreduced, text), on.kind);
}

typed_held typed_some(typed_maker *m, ax_axis_set not_unreduced) {
  for (int i = 0; i < 12 && m->count > 0; i++) {
    typed_held held = m->pool[below(m, m->count)];
    if ((spread_of(held.own).unreduced & (not_unreduced | m->apart)) == 0) return held;
  }
  const int64_t dims[] = {TYPED_LENGTH};
  ax_value x = scaled(m, ax_iota(m->dtype, AX_LIST(1, dims), 0), 0.05);
  return (typed_held){x, x};
}

/* --- Exact scalars: what decides where devices go --- */

ax_value typed_index(typed_maker *m, ax_axis_set not_varying) {
  char text[TYPED_TEXT];
  ax_axis_set free = all_axes(m) & ~not_varying, set = free & (ax_axis_set)below(m, (int64_t)all_axes(m) + 1);
  ax_value x = ax_full(AX_S32, AX_DIMS(), (double)below(m, 4));
  int64_t which = below(m, 4);
  if (which == 1 && set != 0) x = ax_axis_index(typed_names(m, set, text));
  if (which >= 2 && (spread_of(m->scalar[which - 2]).varying & not_varying) == 0) x = m->scalar[which - 2];
  if (below(m, 3) == 0 && (spread_of(m->scalar[0]).varying & not_varying) == 0) x = ax_add(x, m->scalar[0]);
  set = m->started ? 0 : typed_axes(m, all_axes(m));
  if (set != 0 && below(m, 3) == 0)
    x = below(m, 2) != 0 ? ax_pmax(x, typed_names(m, set, text)) : ax_psum(x, typed_names(m, set, text));
  return ax_clamp(ax_integer(0), x, ax_integer(3));
}

/* --- Operations of each device --- */

ax_value typed_rolled(ax_value x, int64_t by) {
  if (by == 0) return x;
  return ax_concatenate(AX_VALUES(ax_slice_in_dim(x, by, AX_END, 1, 0), ax_slice_in_dim(x, 0, by, 1, 0)), 0);
}

static ax_value turned(ax_value x) {
  return ax_reshape(ax_transpose(ax_reshape(x, AX_DIMS(4, 6)), AX_DIMS(1, 0)), AX_DIMS(TYPED_LENGTH));
}

static ax_value reduced_rows(ax_value x, int64_t how, int64_t axis) {
  x = ax_reshape(x, AX_DIMS(4, 6));
  ax_value row = how == 0   ? ax_reduce_sum(x, AX_LIST(1, &axis), true)
                 : how == 1 ? ax_reduce_max(x, AX_LIST(1, &axis), true)
                            : ax_reduce_min(x, AX_LIST(1, &axis), true);
  return ax_reshape(ax_broadcast_to(row, AX_DIMS(4, 6)), AX_DIMS(TYPED_LENGTH));
}

typedef struct operation { /* what is drawn at random, once for both of a value held twice */
  int64_t which, by, axis, how;
  ax_value index;
} operation;

enum { moves = 6 };
/* What only moves elements: of values of any spread. */
static ax_value moved(const operation *o, ax_value x, ax_value y) {
  switch (o->which) {
    case 0: return typed_rolled(x, 1 + o->by);
    case 1: return turned(x);
    case 2: return ax_concatenate(AX_VALUES(ax_slice_in_dim(x, 0, 12, 1, 0), ax_slice_in_dim(y, 12, AX_END, 1, 0)), 0);
    case 3: return ax_dynamic_slice_in_dim(ax_concatenate(AX_VALUES(x, y), 0), o->index, TYPED_LENGTH, 0);
    case 4: return ax_where(ax_lt(o->index, ax_full(AX_S32, AX_DIMS(), 2)), x, y);
    default:
      return ax_dynamic_update_slice_in_dim(x, ax_slice_in_dim(y, 3, 9, 1, 0), ax_add(o->index, ax_full(AX_S32, AX_DIMS(), 7)), 0);
  }
}

/* Of values unreduced by sum: x and y alike; z reduced, invariant, or varying along other axes. */
static ax_value linear(const typed_maker *m, const operation *o, ax_value x, ax_value y, ax_value z) {
  switch (o->which) {
    case 0: return scaled(m, ax_add(x, y), 0.6);
    case 1: return ax_sub(x, y);
    case 2: return ax_neg(x);
    case 3: return scaled(m, reduced_rows(x, 0, o->axis), 0.25);
    case 4: return ax_mul(x, scaled(m, z, 0.5));
    case 5: return m->dtype == AX_F32 ? ax_div(x, ax_add(ax_square(ax_tanh(z)), number(m, 1.5))) : ax_mul(z, x);
    case 6: return ax_convert_element_type(ax_convert_element_type(x, m->dtype == AX_F32 ? AX_F64 : AX_S64), m->dtype);
    default:
      return scaled(
          m,
          ax_reshape(ax_matmul(ax_reshape(x, AX_DIMS(4, 6)), ax_broadcast_to(ax_slice_in_dim(z, 0, 6, 1, 0), AX_DIMS(6, 6))),
                     AX_DIMS(TYPED_LENGTH)),
          0.2);
  }
}

/* Of values unreduced by max or min. */
static ax_value ordered(const operation *o, ax_value x, ax_value y, ax_unreduced_kind kind) {
  if (o->which == 0) return reduced_rows(x, (int64_t)kind, o->axis);
  return kind == AX_UNREDUCED_MAX ? ax_max(x, y) : ax_min(x, y);
}

static ax_value bounded(const typed_maker *m, ax_value x) { return m->dtype == AX_F32 ? ax_tanh(x) : x; }

static ax_value any(const typed_maker *m, const operation *o, ax_value x, ax_value y) {
  switch (o->which) {
    case 0: return scaled(m, ax_add(x, y), 0.6);
    case 1: return ax_sub(x, y);
    case 2: return bounded(m, ax_mul(x, y));
    case 3: return bounded(m, scaled(m, reduced_rows(x, 0, o->axis), 0.5));
    case 4: return m->smooth ? bounded(m, x) : ax_max(x, y);
    case 5: return m->smooth ? ax_square(bounded(m, x)) : reduced_rows(x, 1 + o->how, o->axis);
    case 6: return m->smooth ? ax_neg(x) : ax_where(ax_lt(x, y), x, y);
    default: return m->dtype == AX_S32 ? ax_and(x, ax_not(y)) : ax_logistic(ax_cumsum(x, 0, o->how != 0));
  }
}

/* A value that is unreduced exactly as x is, so that the two may be added; x itself, moved, where there is no other. */
static typed_held alike(typed_maker *m, typed_held x) {
  ax_spread on = spread_of(x.own);
  for (int i = 0; i < 8; i++) {
    typed_held y = typed_some(m, 0);
    ax_spread other = spread_of(y.own);
    if (other.unreduced == on.unreduced && other.kind == on.kind &&
        ((other.varying & on.unreduced) | (on.varying & other.unreduced)) == 0)
      return y;
  }
  int64_t by = 1 + below(m, 5);
  ax_value own = typed_rolled(x.own, by);
  return (typed_held){own, same(x.own, x.whole) ? own : typed_rolled(x.whole, by)};
}

/* A value that is the same on all devices along these axes. */
static typed_held fixed(typed_maker *m, ax_axis_set along) {
  for (int i = 0; i < 8; i++) {
    typed_held z = typed_some(m, all_axes(m));
    if ((spread_of(z.own).varying & along) == 0 && (spread_of(z.whole).varying & along) == 0) return z;
  }
  ax_value x = ax_full(m->dtype, AX_DIMS(TYPED_LENGTH), 3);
  return (typed_held){x, x};
}

static void local(typed_maker *m) {
  typed_held x = typed_some(m, 0), y = alike(m, x), z = x;
  ax_spread on = spread_of(x.own);
  bool twice = !same(x.own, x.whole) || !same(y.own, y.whole), moving = below(m, 3) == 0;
  operation o = {.by = below(m, TYPED_LENGTH - 1), .axis = below(m, 2), .how = below(m, 2)};
  ax_value own, whole = ax_real(0);
  if (moving) {
    o.which = below(m, moves);
    o.index = typed_index(m, on.unreduced);
    own = moved(&o, x.own, y.own);
    if (twice) whole = moved(&o, x.whole, y.whole);
  } else if (on.unreduced == 0) {
    o.which = below(m, 8);
    own = any(m, &o, x.own, y.own);
    if (twice) whole = any(m, &o, x.whole, y.whole);
  } else if (on.kind == AX_UNREDUCED_SUM) {
    o.which = below(m, 8);
    z = fixed(m, on.unreduced);
    own = linear(m, &o, x.own, y.own, z.own);
    whole = linear(m, &o, x.whole, y.whole, z.whole);
    twice = true;
  } else {
    o.which = below(m, 3);
    if (o.which == 2) y = fixed(m, on.unreduced);
    own = ordered(&o, x.own, y.own, on.kind);
    whole = ordered(&o, x.whole, y.whole, on.kind);
    twice = true;
  }
  typed_hold(m, own, twice ? whole : own);
}

/* --- Casts --- */

static ax_unreduced_kind some_kind(typed_maker *m) { return m->smooth ? AX_UNREDUCED_SUM : (ax_unreduced_kind)below(m, 3); }

/* Parts of what varies. */
static void to_unreduced(typed_maker *m) {
  static const char *const names[] = {"unreduced", "unreduced_max", "unreduced_min"};
  char text[TYPED_TEXT];
  ax_axis_set set = typed_axes(m, all_axes(m));
  typed_held x = typed_some(m, set);
  ax_spread on = spread_of(x.own);
  ax_unreduced_kind kind = on.unreduced != 0 ? on.kind : some_kind(m);
  if (set == 0) return;
  typed_names(m, set, text);
  ax_value own = typed_vary(m, x.own, set), whole = typed_vary(m, x.whole, set);
  own = below(m, 2) != 0 ? ax_vary_unreduced_cast(own, text, kind) : ax_pcast(own, text, names[kind]);
  whole = combine(whole, text, kind);
  if (kind == AX_UNREDUCED_SUM) own = scaled(m, own, 0.5), whole = scaled(m, whole, 0.5);
  typed_hold(m, own, whole);
}

static void from_unreduced(typed_maker *m) {
  char text[TYPED_TEXT];
  typed_held x = typed_some(m, 0);
  ax_spread on = spread_of(x.own);
  ax_axis_set set = typed_axes(m, on.unreduced);
  if (set == 0) return;
  typed_names(m, set, text);
  int64_t n = ax_axis_size(text), which = below(m, 3);
  if (on.kind != AX_UNREDUCED_SUM && which == 0 && set == on.unreduced) { /* the parts, as they are */
    ax_value own = ax_pcast(x.own, text, "varying");
    typed_hold(m, own, own);
  } else if (on.kind == AX_UNREDUCED_SUM && which == 0 && TYPED_LENGTH % n == 0) {
    int64_t part = TYPED_LENGTH / n;
    ax_value own = below(m, 2) != 0 ? ax_unreduced_psum_scatter(x.own, text, 0, true) : ax_psum_scatter(x.own, text, 0, true);
    ax_value first = ax_mul(ax_axis_index(text), ax_full(AX_S32, AX_DIMS(), (double)part));
    ax_value whole = ax_dynamic_slice_in_dim(typed_vary(m, x.whole, set), first, part, 0);
    own = ax_reshape(ax_broadcast_to(own, AX_DIMS(n, part)), AX_DIMS(TYPED_LENGTH));
    typed_hold(m, own, ax_reshape(ax_broadcast_to(whole, AX_DIMS(n, part)), AX_DIMS(TYPED_LENGTH)));
  } else if (which == 1) {
    ax_value own = on.kind == AX_UNREDUCED_SUM   ? ax_unreduced_psum(x.own, text)
                   : on.kind == AX_UNREDUCED_MAX ? ax_unreduced_pmax(x.own, text)
                                                 : ax_unreduced_pmin(x.own, text);
    typed_hold(m, own, x.whole);
  } else {
    typed_hold(m, combine(x.own, text, on.kind), x.whole);
  }
}

static void cast(typed_maker *m) {
  char text[TYPED_TEXT];
  typed_held x = typed_some(m, 0);
  ax_spread on = spread_of(x.own);
  ax_axis_set invariant = all_axes(m) & ~(on.varying | on.reduced | on.unreduced) & (ax_axis_set)below(m, (int64_t)all_axes(m) + 1),
              reduced;
  reduced = on.reduced & (ax_axis_set)below(m, (int64_t)all_axes(m) + 1);
  if (!m->unreduced || below(m, 6) == 0) {
    if (invariant == 0) return;
    ax_value own = below(m, 2) != 0 ? ax_pvary(x.own, typed_names(m, invariant, text))
                                    : ax_pcast(x.own, typed_names(m, invariant, text), "varying");
    typed_hold(m, own, m->unreduced ? typed_vary(m, x.whole, invariant) : own);
  } else if (below(m, 3) == 0) {
    to_unreduced(m);
  } else if (below(m, 2) == 0) {
    from_unreduced(m);
  } else if (reduced != 0) { /* what varies is a value on each device, whose cotangents are added: so is the whole then */
    const bool varies = below(m, 2) != 0;
    ax_value own = ax_pcast(x.own, typed_names(m, reduced, text), varies ? "varying" : "invariant");
    typed_hold(m, own, varies ? typed_vary(m, x.whole, reduced) : x.whole);
  } else if (invariant != 0) {
    ax_value own = below(m, 2) != 0 ? ax_preduced(x.own, typed_names(m, invariant, text))
                                    : ax_pcast(x.own, typed_names(m, invariant, text), "reduced");
    typed_hold(m, own, x.whole);
  }
}

/* --- Collectives --- */

typedef enum exchange_kind {
  PSUM,
  PMEAN,
  PMAX,
  PMIN,
  GATHER,
  GATHER_INVARIANT,
  GATHER_REDUCED,
  SCATTER,
  TO_ALL,
  SWAP,
  PERMUTE,
  SHUFFLE,
  SHIFT,
  BROADCAST,
  ARGMAX,
  ARGMIN,
  RAGGED,
  MESSAGE,
  EXCHANGES
} exchange_kind;

typedef struct exchange {
  exchange_kind kind;
  char axes[TYPED_TEXT];
  int64_t n, offset; /* members of a group; any number below n */
  bool tiled, wrap, sums;
  uint32_t pair_count;
  int64_t pair[32][2], target[32]; /* a permutation of the members, and some pairs of it */
} exchange;

static ax_value gathered(const exchange *e, ax_value x) {
  if (e->kind == GATHER_REDUCED) return ax_all_gather_reduced(x, e->axes, 0, e->tiled);
  return e->kind == GATHER ? ax_all_gather(x, e->axes, 0, e->tiled) : ax_all_gather_invariant(x, e->axes, 0, e->tiled);
}

/* A part of x to each member, of `offset` elements or fewer, in the place of what stood there. */
static ax_value ragged(const exchange *e, ax_value x) {
  const int64_t part = TYPED_LENGTH / e->n, size = e->offset < part ? e->offset : part;
  ax_value offsets = ax_mul(ax_iota(AX_S32, AX_DIMS(e->n), 0), ax_full(AX_S32, AX_DIMS(), (double)part)),
           sizes = ax_full(AX_S32, AX_DIMS(e->n), (double)size);
  ax_value place = ax_broadcast_to(ax_mul(ax_axis_index(e->axes), ax_full(AX_S32, AX_DIMS(), (double)part)), AX_DIMS(e->n));
  return ax_ragged_all_to_all(x, turned(x), offsets, sizes, place, sizes, e->axes);
}

static ax_value sent(const exchange *e, ax_value x) {
  ax_type type = ax_typeof(x);
  return ax_precv(ax_psend(x, e->axes, e->pair_count, e->pair), ax_array_type(type.dtype, AX_LIST(type.rank, type.dims)), e->axes,
                  e->pair_count, e->pair);
}

static ax_value exchanged(const typed_maker *m, const exchange *e, ax_value x) {
  const int64_t n = e->n, first = 0;
  switch (e->kind) {
    case PSUM: return scaled(m, ax_psum(x, e->axes), 0.5);
    case PMEAN: return ax_pmean(x, e->axes);
    case PMAX: return ax_pmax(x, e->axes);
    case PMIN: return ax_pmin(x, e->axes);
    case GATHER:
    case GATHER_INVARIANT:
    case GATHER_REDUCED:
      x = ax_reshape(gathered(e, x), AX_DIMS(n, TYPED_LENGTH));
      return e->sums ? scaled(m, ax_reduce_sum(x, AX_LIST(1, &first), false), 0.4) : ax_at(x, e->offset, 0);
    case SCATTER:
      x = e->tiled ? ax_psum_scatter(x, e->axes, 0, true)
                   : ax_psum_scatter(ax_reshape(x, AX_DIMS(n, TYPED_LENGTH / n)), e->axes, 0, false);
      return scaled(m, ax_reshape(ax_broadcast_to(x, AX_DIMS(n, TYPED_LENGTH / n)), AX_DIMS(TYPED_LENGTH)), 0.5);
    case TO_ALL:
      if (e->tiled) return ax_all_to_all(x, e->axes, 0, 0, true);
      return ax_reshape(ax_all_to_all(ax_reshape(x, AX_DIMS(n, TYPED_LENGTH / n)), e->axes, 0, e->wrap, false),
                        AX_DIMS(TYPED_LENGTH));
    case SWAP: return ax_reshape(ax_pswapaxes(ax_reshape(x, AX_DIMS(n, TYPED_LENGTH / n)), e->axes, 0), AX_DIMS(TYPED_LENGTH));
    case SHUFFLE: return ax_pshuffle(x, e->axes, AX_LIST((uint32_t)n, e->target));
    case ARGMAX: return ax_pargmax(x, e->axes);
    case ARGMIN: return ax_pargmin(x, e->axes);
    case RAGGED: return ragged(e, x);
    case MESSAGE: return sent(e, x);
    case PERMUTE: return ax_ppermute(x, e->axes, e->pair_count, e->pair);
    case SHIFT: return ax_pshift(x, e->axes, e->offset == 0 ? -1 : e->offset, e->wrap);
    default: return ax_pbroadcast(x, e->axes, e->offset);
  }
}

static bool divides(const exchange *e) { return TYPED_LENGTH % e->n == 0; }

static void draw_pairs(typed_maker *m, exchange *e) {
  int64_t *target = e->target, count = 1 + below(m, e->n);
  for (int64_t i = 0; i < e->n; i++) target[i] = i;
  for (int64_t i = e->n; i > 1; i--) {
    int64_t k = below(m, i), kept = target[k];
    target[k] = target[i - 1], target[i - 1] = kept;
  }
  e->pair_count = (uint32_t)count;
  for (int64_t i = 0; i < count; i++) e->pair[i][0] = (i + e->offset) % e->n, e->pair[i][1] = target[i];
}

/* Groups of the n members along the axes, shuffled: of one size, or of any; n becomes the size, or that of all where there are
   several. */
static void draw_groups(typed_maker *m, exchange *e, bool even) {
  int64_t member[32], n = e->n, size = even ? 1 + below(m, n) : 0;
  while (even && n % size != 0) size--;
  for (int64_t i = 0; i < n; i++) member[i] = i;
  for (int64_t i = n; i > 1; i--) {
    int64_t k = below(m, i), kept = member[k];
    member[k] = member[i - 1], member[i - 1] = kept;
  }
  char *end = e->axes + strlen(e->axes);
  for (int64_t i = 0; i < n; i++) {
    bool begins = i == 0 || (even ? i % size == 0 : below(m, 2) == 0);
    end += sprintf(end, "%s%lld", !begins ? "," : i == 0 ? " {" : "} {", (long long)member[i]);
  }
  sprintf(end, "}");
  if (even) e->n = size;
  e->offset %= e->n;
}

/* Axes in any order, and the axis of a vmap among them. */
static void draw_axes(typed_maker *m, exchange *e, ax_axis_set set) {
  uint32_t axis[AX_MAX_AXES], count = 0;
  for (uint32_t a = 0; a < m->mesh.count; a++)
    if (set >> a & 1) axis[count++] = a;
  if (m->mapped != NULL && (count == 0 || below(m, 2) != 0)) axis[count++] = AX_MAX_AXES;
  char *end = e->axes;
  for (uint32_t left = count; left > 0; left--) {
    uint32_t k = (uint32_t)below(m, left);
    end += sprintf(end, "%s%s", left < count ? "," : "", axis[k] == AX_MAX_AXES ? m->mapped : m->mesh.axis[axis[k]].name);
    axis[k] = axis[left - 1];
  }
  e->n = ax_axis_size(e->axes);
  e->offset = below(m, e->n);
}

/* Which collectives may take x, unreduced along axes other than those of the exchange. */
static bool suits(const typed_maker *m, exchange_kind kind, const ax_spread *on) {
  bool unreduced = on->unreduced != 0, sum = !unreduced || on->kind == AX_UNREDUCED_SUM;
  if ((kind == PMAX || kind == PMIN) && m->smooth) return false;
  if (kind == PMAX) return !unreduced || on->kind == AX_UNREDUCED_MAX;
  if (kind == PMIN) return !unreduced || on->kind == AX_UNREDUCED_MIN;
  if (kind == PMEAN) return sum && m->dtype == AX_F32;
  if (kind == GATHER_REDUCED) return m->unreduced;
  if (kind == ARGMAX || kind == ARGMIN) return !unreduced && m->dtype == AX_S32;
  if (kind == RAGGED) return !unreduced;
  if (kind == MESSAGE) return !unreduced && m->messages && !m->smooth && !m->started && m->mapped == NULL;
  return (kind != PSUM && kind != SCATTER) || sum;
}

/* False: there is no axis to exchange along. */
static bool communicated(typed_maker *m, typed_held *out) {
  ax_axis_set set = typed_axes(m, all_axes(m));
  if (set == 0 && m->mapped == NULL) return false;
  exchange e = {0};
  draw_axes(m, &e, set);
  typed_held x = typed_some(m, set);
  ax_spread on = spread_of(x.own);
  do e.kind = (exchange_kind)below(m, EXCHANGES);
  while (!suits(m, e.kind, &on));
  e.tiled = below(m, 2) != 0, e.wrap = below(m, 2) != 0;
  e.sums = below(m, 2) != 0 && (on.unreduced == 0 || on.kind == AX_UNREDUCED_SUM);
  bool reduces = e.kind <= PMIN, groups = reduces || e.kind == GATHER || e.kind == SCATTER || e.kind == TO_ALL;
  if ((e.kind == SCATTER || e.kind == TO_ALL || e.kind == SWAP || e.kind == RAGGED) && !divides(&e)) e.kind = GATHER;
  if (groups && below(m, 4) == 0 && on.unreduced == 0) draw_groups(m, &e, !reduces || below(m, 2) != 0);
  if (e.kind == PERMUTE || e.kind == SHUFFLE || e.kind == MESSAGE) draw_pairs(m, &e);
  if (e.kind == MESSAGE || e.kind == RAGGED) set |= all_axes(m);
  if ((spread_of(x.own).unreduced & set) != 0) x = fixed(m, 0);
  bool twice = m->unreduced && !same(x.own, x.whole);
  out->own = exchanged(m, &e, typed_vary(m, x.own, set));
  out->whole = twice ? exchanged(m, &e, typed_vary(m, x.whole, set)) : out->own;
  return true;
}

/* --- Collectives under way --- */

/* Some steps, and a collective last. */
static ax_value expression(typed_maker *m, bool whole) {
  typed_maker inner = *m;
  typed_held last;
  inner.started = true;
  inner.future_count = 0;
  typed_steps(&inner, (int)typed_below(&inner, 3));
  communicated(&inner, &last);
  return whole ? last.whole : last.own;
}

static bool start(typed_maker *m) {
  if (m->future_count == TYPED_FUTURES || (typed_axes(m, all_axes(m)) == 0 && m->mapped == NULL)) return false;
  typed_held *future = &m->future[m->future_count++];
  const typed_slip slip = m->slip != NULL ? *m->slip : (typed_slip){0};
  future->own = ax_start(expression(m, false));
  if (m->slip != NULL && m->unreduced) *m->slip = slip;
  future->whole = m->unreduced ? ax_start(expression(m, true)) : future->own;
  test_random_bits(&m->random);
  return true;
}

static void end(typed_maker *m, uint32_t which) {
  typed_held future = m->future[which];
  m->future[which] = m->future[--m->future_count];
  ax_value own = ax_done(future.own);
  typed_hold(m, own, same(future.own, future.whole) ? own : ax_done(future.whole));
}

void typed_end_futures(typed_maker *m) {
  while (m->future_count > 0) end(m, (uint32_t)below(m, m->future_count));
}

/* --- Without regard to types --- */

static typed_held any_held(typed_maker *m) { return m->pool[below(m, m->count)]; }

static void reckless_local(typed_maker *m) {
  typed_held x = any_held(m), y = any_held(m), z = any_held(m);
  operation o = {
      .which = below(m, 8), .by = below(m, TYPED_LENGTH - 1), .axis = below(m, 2), .how = below(m, 2), .index = typed_index(m, 0)};
  ax_unreduced_kind kind = (ax_unreduced_kind)below(m, 3);
  switch (below(m, 4)) {
    case 0: typed_hold(m, moved(&o, x.own, y.own), moved(&o, x.whole, y.whole)); break;
    case 1: typed_hold(m, any(m, &o, x.own, y.own), any(m, &o, x.whole, y.whole)); break;
    case 2: typed_hold(m, ordered(&o, x.own, y.own, kind), ordered(&o, x.whole, y.whole, kind)); break;
    default: typed_hold(m, linear(m, &o, x.own, y.own, z.own), linear(m, &o, x.whole, y.whole, z.whole)); break;
  }
}

static void reckless_cast(typed_maker *m) {
  static const char *const to[] = {"unreduced", "unreduced_max", "unreduced_min", "varying", "invariant", "reduced"};
  char text[TYPED_TEXT];
  ax_axis_set set = 1 + (ax_axis_set)below(m, (int64_t)all_axes(m));
  typed_held x = any_held(m);
  ax_spread on = spread_of(x.own);
  int64_t which = below(m, AX_COUNT(to));
  typed_names(m, set, text);
  ax_value own = below(m, 2) == 0 || which >= 3 ? ax_pcast(x.own, text, to[which])
                                                : ax_vary_unreduced_cast(x.own, text, (ax_unreduced_kind)which);
  ax_value whole = (on.unreduced & set) != 0 ? own : x.whole;
  typed_hold(m, own, which < 3 ? combine(typed_vary(m, whole, set), text, (ax_unreduced_kind)which) : whole);
}

static void reckless_exchange(typed_maker *m) {
  exchange e = {0};
  ax_axis_set set = 1 + (ax_axis_set)below(m, (int64_t)all_axes(m));
  draw_axes(m, &e, set);
  typed_held x = any_held(m);
  ax_axis_set unreduced = spread_of(x.own).unreduced & set;
  do e.kind = (exchange_kind)below(m, EXCHANGES);
  while ((e.kind == PMEAN && m->dtype != AX_F32) || ((e.kind == SCATTER || e.kind == TO_ALL || e.kind == SWAP) && !divides(&e)) ||
         e.kind >= ARGMAX);
  e.tiled = below(m, 2) != 0, e.wrap = below(m, 2) != 0, e.sums = below(m, 2) != 0;
  if (e.kind == PERMUTE || e.kind == SHUFFLE) draw_pairs(m, &e);
  if (e.kind <= PMIN && below(m, 4) == 0) draw_groups(m, &e, false);
  ax_value own = exchanged(m, &e, x.own);
  if (unreduced == 0) typed_hold(m, own, exchanged(m, &e, typed_vary(m, x.whole, set)));
  else
    typed_hold(m, own,
               e.kind == PSUM    ? scaled(m, x.whole, 0.5)
               : e.kind == PMEAN ? scaled(m, x.whole, 1 / (double)e.n)
               : e.kind <= PMIN  ? x.whole
                                 : own);
}

static void reckless_region(typed_maker *m) {
  m->heedless = true;
  typed_region(m);
  m->heedless = false;
}

void typed_reckless(typed_maker *m) {
  int64_t choice = below(m, 8);
  if (choice < 3) reckless_local(m);
  else if (choice < 5) reckless_cast(m);
  else if (choice < 7 || m->depth == 0 || m->started) reckless_exchange(m);
  else reckless_region(m);
}

/* --- Steps --- */

static void step(typed_maker *m) {
  typed_held made;
  typed_slip *slip = m->slip;
  if (slip != NULL && !slip->made && slip->countdown-- <= 0 && slip->make(m, slip->context)) {
    slip->made = true;
    return;
  }
  int64_t choice = below(m, 20);
  if (choice < 7) local(m);
  else if (choice < (m->unreduced ? 12 : 8)) cast(m);
  else if (choice < 16 && communicated(m, &made)) typed_hold(m, made.own, made.whole);
  else if (choice < 18 && !m->started && m->future_count > 0 && below(m, 2) != 0) end(m, (uint32_t)below(m, m->future_count));
  else if (choice < 18 && !m->started && start(m)) return;
  else if (m->depth > 0 && !m->started) typed_region(m);
  else local(m);
}

void typed_steps(typed_maker *m, int count) {
  for (int i = 0; i < count; i++) step(m);
}
