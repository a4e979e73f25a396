/* Layouts changed: all_gather_invariant joins blocks, a slice at the device's own index cuts them, all_to_all does both at once. */
#include "mesh/reshard.h"

#include <string.h>

#include "axle/collectives.h"
#include "prim/collective.h"

/* The axes of a dimension from the one numbered `from` on, as names. */
static ax_axes names_of(const ax_spec *spec, uint32_t dim, uint32_t from) {
  const ax_mesh *mesh = &ax_builder_current()->axes;
  ax_axes names = {0};
  for (uint32_t i = from; i < spec->count[dim]; i++)
    memcpy(names.name[names.count++], mesh->axis[spec->axis[dim][i]].name, AX_MAX_NAME);
  return names;
}

static ax_value gather(ax_value x, const ax_axes *names, uint32_t dim) {
  const ax_axes_list list = ax_axes_listed(names);
  return ax_all_gather_invariant(x, list.text, dim, true);
}

/* The first device's block for all: gathered as rows, of which the first is taken. */
static void settle(ax_held *held) {
  ax_type type = ax_typeof(held->value);
  if (held->uneven == 0 || ax_failed()) return;
  const int64_t elems = ax_type_elems(&type), first = 0;
  ax_axes names = ax_axis_set_names(held->uneven, &ax_builder_current()->axes);
  ax_value all = gather(ax_reshape(held->value, 1, &elems), &names, 0);
  held->value = ax_reshape(ax_slice(all, &first, &elems, NULL), type.rank, type.dims);
  held->uneven = 0;
}

ax_value ax_held_whole(ax_held *held) {
  settle(held);
  if (held->whole.trace != 0) return held->whole;
  ax_value x = held->value;
  for (uint32_t d = 0; held->spec != NULL && d < held->spec->rank; d++) {
    ax_axes names = names_of(held->spec, d, 0);
    if (names.count > 0) x = gather(x, &names, d);
  }
  return held->whole = x;
}

/* From one layout to another: along dimension d, `stay[d]` axes stay. */
typedef struct change {
  const ax_spec *from, *to;
  uint32_t stay[AX_MAX_RANK];
  bool cut[AX_MAX_RANK], joined[AX_MAX_RANK]; /* done already */
  ax_axis_set gathered;                       /* over these blocks are joined */
} change;

static change compare(const ax_spec *from, const ax_spec *to) {
  change c = {.from = from, .to = to};
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    while (c.stay[d] < from->count[d] && c.stay[d] < to->count[d] &&
           from->axis[d][c.stay[d]] == to->axis[d][c.stay[d]])
      c.stay[d]++;
    for (uint32_t i = c.stay[d]; i < from->count[d]; i++) c.gathered |= (ax_axis_set)1 << from->axis[d][i];
  }
  return c;
}

static bool cuts(const change *c, uint32_t d) { return !c->cut[d] && c->to->count[d] > c->stay[d]; }
static bool joins(const change *c, uint32_t d) { return !c->joined[d] && c->from->count[d] > c->stay[d]; }

/* The parts of dimension d, which is not joined before. */
static ax_value cut(change *c, ax_value x, uint32_t d) {
  ax_axes names = names_of(c->to, d, c->stay[d]);
  c->cut[d] = true;
  return ax_own_part(x, &names, d);
}

static bool can_cut_first(const change *c, uint32_t d) {
  for (uint32_t i = c->stay[d]; i < c->to->count[d]; i++)
    if (c->gathered >> c->to->axis[d][i] & 1) return false;
  return cuts(c, d) && !joins(c, d);
}

/* What is joined along dimension d and cut along another by the same axes in the same order. */
static ax_value exchange(change *c, ax_value x, uint32_t d) {
  ax_axes names = names_of(c->from, d, c->stay[d]);
  for (uint32_t other = 0; other < AX_MAX_RANK && joins(c, d) && !cuts(c, d); other++) {
    ax_axes wanted = names_of(c->to, other, c->stay[other]);
    if (!cuts(c, other) || joins(c, other) || !ax_axes_equal(&names, &wanted)) continue;
    const ax_axes_list list = ax_axes_listed(&names);
    x = ax_all_to_all(x, list.text, other, d, true);
    c->joined[d] = c->cut[other] = true;
  }
  return x;
}

/* Every block is joined, and nothing is cut before. */
static bool goes_by_whole(const change *c) {
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (c->stay[d] > 0 || c->cut[d]) return false;
  return true;
}

ax_value ax_held_as(ax_held *held, const ax_spec *spec) {
  const ax_spec none = {0}, *from = held->spec != NULL ? held->spec : &none;
  settle(held);
  if (ax_spec_equal(from, spec)) return held->value;
  if (ax_spec_set(spec) == 0) return ax_held_whole(held);
  bool gathered = held->whole.trace != 0;
  change c = compare(gathered ? &none : from, spec);
  ax_value x = gathered ? held->whole : held->value;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (can_cut_first(&c, d)) x = cut(&c, x, d);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) x = exchange(&c, x, d);
  bool whole = goes_by_whole(&c);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    if (!joins(&c, d)) continue;
    ax_axes names = names_of(c.from, d, c.stay[d]);
    x = gather(x, &names, d);
  }
  if (whole) held->whole = x;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (cuts(&c, d)) x = cut(&c, x, d);
  return x;
}
