/* Layouts changed: all_gather_invariant joins blocks and brings parts together that no reduction between devices combines, a slice at the device's own index cuts them, all_to_all does both at once. */
#include "partition/reshard.h"

#include <string.h>

#include "axle/collectives.h"
#include "mesh/sharding.h"
#include "collectives/collective.h"
#include "prim/bind.h"
#include "prim/prims.h"

/* The axes of a dimension from the one numbered `from` on, as names. */
static ax_axes names_of(const ax_spec *spec, uint32_t dim, uint32_t from) {
  return ax_spec_names(spec, &ax_builder_current()->axes, dim, from);
}

static ax_value gather(ax_value x, const ax_axes *names, uint32_t dim) {
  const ax_axes_list list = ax_axes_listed(names);
  return ax_all_gather_invariant(x, list.text, dim, true);
}

/* --- Parts --- */

/* All parts over the axes, as rows. */
static ax_value parts_as_rows(ax_value x, const ax_axes *names) {
  const ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK + 1] = {1};
  if (ax_failed()) return ax_poison;
  const int64_t elems = ax_type_elems(&type);
  x = gather(ax_reshape(x, AX_DIMS(1, elems)), names, 0);
  if (ax_failed()) return ax_poison;
  dims[0] = ax_typeof(x).dims[0];
  memcpy(dims + 1, type.dims, type.rank * sizeof dims[0]);
  return ax_reshape(x, AX_LIST(type.rank + 1, dims));
}

static ax_value combined(ax_factor_kind kind, ax_value x, const ax_axes *names) {
  const ax_axes_list text = ax_axes_listed(names);
  switch (kind) {
    case AX_FACTOR_MAX: return ax_pmax(x, text.text);
    case AX_FACTOR_MIN: return ax_pmin(x, text.text);
    case AX_FACTOR_PROD: return ax_reduce_prod(parts_as_rows(x, names), AX_DIMS(0), false);
    case AX_FACTOR_AND: return ax_reduce_and(parts_as_rows(x, names), AX_DIMS(0), false);
    case AX_FACTOR_XOR: return ax_reduce_xor(parts_as_rows(x, names), AX_DIMS(0), false);
    case AX_FACTOR_OR: return ax_reduce_or(parts_as_rows(x, names), AX_DIMS(0), false);
    case AX_FACTOR_ALONG:
    case AX_FACTOR_SUM: break;
  }
  return ax_psum(x, text.text);
}

void ax_held_combine(ax_held *held) {
  if (held->parts == 0 || ax_failed()) return;
  const ax_spec none = {0}, *from = held->spec != NULL ? held->spec : &none, *to = held->combined != NULL ? held->combined : &none;
  ax_value x = held->value;
  ax_axis_set parts = held->parts & ~(ax_spec_set(to) & ~ax_spec_set(from));
  for (uint32_t d = 0; d < to->rank; d++) {
    const ax_axes names = names_of(to, d, from->count[d]);
    const ax_axes_list text = ax_axes_listed(&names);
    if (names.count > 0) x = ax_psum_scatter(x, text.text, d, true);
  }
  const ax_axes names = ax_axis_set_names(parts, &ax_builder_current()->axes);
  if (parts != 0) x = combined(held->combine, x, &names);
  held->value = x;
  held->spec = held->combined;
  held->parts = 0;
}

/* Gives all devices the first device's block: gathers the blocks as rows and takes the first row. */
static void settle(ax_held *held) {
  ax_held_combine(held);
  ax_type type = ax_typeof(held->value);
  if (held->uneven == 0 || ax_failed()) return;
  const int64_t elems = ax_type_elems(&type), first = 0;
  ax_axes names = ax_axis_set_names(held->uneven, &ax_builder_current()->axes);
  ax_value all = gather(ax_reshape(held->value, AX_LIST(1, &elems)), &names, 0);
  held->value = ax_reshape(ax_slice(all, &first, &elems, NULL), AX_LIST(type.rank, type.dims));
  held->uneven = 0;
}

struct ax_relaid {
  ax_laid *next;
  ax_spec spec;
  ax_value value;
};

/* Whether blocks have to be joined. */
static bool has_to_join(const ax_spec *from, const ax_spec *to) {
  for (uint32_t d = 0; from != NULL && d < from->rank; d++) {
    const uint32_t count = d < to->rank ? to->count[d] : 0;
    if (count < from->count[d] || memcmp(from->axis[d], to->axis[d], from->count[d]) != 0) return true;
  }
  return false;
}

static void note(ax_held *held, const ax_spec *spec) {
  ax_asked *asked = held->asked;
  if (asked == NULL || !has_to_join(held->spec, spec)) return;
  asked->several = asked->joined && (asked->several || !ax_spec_equal(&asked->as, spec));
  if (!asked->joined) asked->as = *spec;
  asked->joined = true;
}

void ax_held_set(ax_held *held, ax_value value, const ax_spec *spec) {
  *held = (ax_held){.value = value, .type = held->type, .spec = spec};
}

/* --- Padding --- */

static bool divides(const ax_held *held, const ax_spec *spec, uint32_t d) {
  return ax_shard_divides(held->type, spec, &ax_builder_current()->axes, d);
}

/* Cuts off the padding of dimension d, whose blocks have been joined. */
static ax_value without_padding(const ax_held *held, ax_value x, uint32_t d) {
  return divides(held, held->spec, d) ? x : ax_slice_in_dim(x, 0, held->type->dims[d], 1, d);
}

/* Pads dimension d, which is whole, to the size that blocks of this layout need. The padding repeats the last element, so
   results computed from it are the last element's results, and it brings in no new NaN. */
static ax_value with_padding(const ax_held *held, ax_value x, const ax_spec *spec, uint32_t d) {
  if (divides(held, spec, d) || ax_failed()) return x;
  const int64_t parts = ax_shard_parts(spec, &ax_builder_current()->axes, d), size = held->type->dims[d];
  ax_type type = ax_typeof(x);
  int64_t same[AX_MAX_RANK];
  for (uint32_t e = 0; e < type.rank; e++) same[e] = e;
  type.dims[d] = parts - size % parts;
  ax_value last = ax_slice_in_dim(x, size - 1, size, 1, d), more = ax_broadcast_in_dim(last, AX_LIST(type.rank, type.dims), same);
  return ax_concatenate(AX_VALUES(x, more), d);
}

static ax_value whole_of(ax_held *held) {
  settle(held);
  if (held->whole.trace != 0) return held->whole;
  ax_value x = held->value;
  for (uint32_t d = 0; held->spec != NULL && d < held->spec->rank; d++) {
    ax_axes names = names_of(held->spec, d, 0);
    if (names.count > 0) x = without_padding(held, gather(x, &names, d), d);
  }
  return held->whole = x;
}

ax_value ax_held_whole(ax_held *held) {
  note(held, &(ax_spec){0});
  return whole_of(held);
}

/* A change from one layout to another. Along dimension d the first `stay[d]` axes stay. */
typedef struct change {
  const ax_held *held;
  const ax_spec *from, *to;
  uint32_t stay[AX_MAX_RANK];
  bool cut[AX_MAX_RANK], joined[AX_MAX_RANK]; /* done already */
  ax_axis_set gathered;                       /* axes over which blocks are joined */
} change;

/* Finds the axes that stay. Blocks of a padded dimension begin elsewhere once it is cut in another way, so none of its axes
   stays. */
static change compare(const ax_held *held, const ax_spec *from, const ax_spec *to) {
  change c = {.held = held, .from = from, .to = to};
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    bool same = from->count[d] == to->count[d] && memcmp(from->axis[d], to->axis[d], from->count[d]) == 0;
    bool stays = same || (divides(held, from, d) && divides(held, to, d));
    while (stays && c.stay[d] < from->count[d] && c.stay[d] < to->count[d] &&
           from->axis[d][c.stay[d]] == to->axis[d][c.stay[d]])
      c.stay[d]++;
    for (uint32_t i = c.stay[d]; i < from->count[d]; i++) c.gathered |= (ax_axis_set)1 << from->axis[d][i];
  }
  return c;
}

static bool cuts(const change *c, uint32_t d) { return !c->cut[d] && c->to->count[d] > c->stay[d]; }
static bool joins(const change *c, uint32_t d) { return !c->joined[d] && c->from->count[d] > c->stay[d]; }

/* Cuts dimension d, which needs no joining any more, and takes this device's part. */
static ax_value cut(change *c, ax_value x, uint32_t d) {
  ax_axes names = names_of(c->to, d, c->stay[d]);
  c->cut[d] = true;
  return ax_own_part(with_padding(c->held, x, c->to, d), &names, d);
}

static bool can_cut_first(const change *c, uint32_t d) {
  for (uint32_t i = c->stay[d]; i < c->to->count[d]; i++)
    if (c->gathered >> c->to->axis[d][i] & 1) return false;
  return cuts(c, d) && !joins(c, d);
}

/* Changes blocks along dimension d to blocks along another dimension by one all_to_all, if the same axes in the same order leave
   d and come to the other. */
static ax_value exchange(change *c, ax_value x, uint32_t d) {
  ax_axes names = names_of(c->from, d, c->stay[d]);
  if (!divides(c->held, c->from, d)) return x;
  for (uint32_t other = 0; other < AX_MAX_RANK && joins(c, d) && !cuts(c, d); other++) {
    if (!divides(c->held, c->to, other)) continue;
    ax_axes wanted = names_of(c->to, other, c->stay[other]);
    if (!cuts(c, other) || joins(c, other) || !ax_axes_equal(&names, &wanted)) continue;
    const ax_axes_list list = ax_axes_listed(&names);
    x = ax_all_to_all(x, list.text, other, d, true);
    c->joined[d] = c->cut[other] = true;
  }
  return x;
}

/* Whether the change passes through the whole value: no axis stays, and nothing is cut before the blocks are joined. */
static bool goes_by_whole(const change *c) {
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (c->stay[d] > 0 || c->cut[d]) return false;
  return true;
}

static ax_value laid_anew(ax_held *held, const ax_spec *spec) {
  const ax_spec none = {0}, *from = held->spec != NULL ? held->spec : &none;
  bool gathered = held->whole.trace != 0;
  change c = compare(held, gathered ? &none : from, spec);
  ax_value x = gathered ? held->whole : held->value;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (can_cut_first(&c, d)) x = cut(&c, x, d);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) x = exchange(&c, x, d);
  bool whole = goes_by_whole(&c);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    if (!joins(&c, d)) continue;
    ax_axes names = names_of(c.from, d, c.stay[d]);
    x = gather(x, &names, d);
    if (c.stay[d] == 0) x = without_padding(held, x, d);
  }
  if (whole) held->whole = x;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (cuts(&c, d)) x = cut(&c, x, d);
  return x;
}

ax_value ax_held_as(ax_held *held, const ax_spec *spec) {
  const ax_spec none = {0};
  settle(held);
  note(held, spec);
  if (ax_spec_equal(held->spec != NULL ? held->spec : &none, spec)) return held->value;
  if (ax_spec_set(spec) == 0) return whole_of(held);
  for (const ax_laid *l = held->laid; l != NULL; l = l->next)
    if (ax_spec_equal(&l->spec, spec)) return l->value;
  const ax_value value = laid_anew(held, spec);
  ax_laid *made = ax_trace_alloc(sizeof *made);
  if (made == NULL) return ax_poison;
  *made = (ax_laid){held->laid, *spec, value};
  held->laid = made;
  return value;
}

/* --- A part of a sum --- */

static ax_value embedded(ax_value block, const ax_axes *names, uint32_t d, int64_t parts) {
  ax_type type = ax_typeof(block);
  if (ax_failed()) return ax_poison;
  const int64_t size = type.dims[d];
  const ax_value start = ax_mul(ax_bind1(&ax_prim_axis_index, names, NULL, 0), ax_integer(size));
  type.dims[d] = size * parts;
  return ax_dynamic_update_slice_in_dim(ax_full(type.dtype, AX_LIST(type.rank, type.dims), 0), block, start, d);
}

/* Puts the block between zeros along the dimensions that axes of `over` cut last. Returns those of them that are in use no more. */
static ax_axis_set embed(ax_held *held, ax_spec *spec, ax_axis_set over) {
  ax_axis_set gone = 0;
  for (uint32_t d = 0; d < spec->rank; d++) {
    uint32_t from = spec->count[d];
    int64_t parts = 1;
    if (!divides(held, spec, d)) continue;
    while (from > 0 && (over >> spec->axis[d][from - 1] & 1) != 0) {
      const uint8_t axis = spec->axis[d][--from];
      gone |= (ax_axis_set)1 << axis;
      parts *= ax_builder_current()->axes.axis[axis].size;
      spec->axis[d][from] = 0;
    }
    if (from == spec->count[d]) continue;
    const ax_axes names = names_of(held->spec, d, from);
    held->value = embedded(held->value, &names, d, parts);
    spec->count[d] = (uint8_t)from;
  }
  return gone;
}

ax_value ax_held_as_part(const ax_held *held, ax_axis_set over, const ax_spec *spec) {
  ax_held own = *held;
  own.asked = NULL, own.laid = NULL;
  if (own.uneven != 0 || own.combine != AX_FACTOR_SUM || (own.parts & ~over) != 0) settle(&own);
  ax_axis_set once = over & ~own.parts;
  if (own.parts != 0) own.whole = ax_poison;
  own.parts = 0;
  ax_spec left = own.spec != NULL ? *own.spec : (ax_spec){0};
  once &= ~embed(&own, &left, once);
  if (!ax_spec_equal(&left, own.spec != NULL ? own.spec : &(ax_spec){0})) own.whole = ax_poison;
  own.spec = &left;
  const ax_value x = ax_held_as(&own, spec);
  const ax_axes names = ax_axis_set_names(once, &ax_builder_current()->axes);
  return once != 0 && !ax_failed() ? ax_once(x, &names) : x;
}
