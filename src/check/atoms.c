/* Which bytes are alike is found by 128-bit sums over the footprints that are open, as a line is swept over a region. */
#include "check/atoms.h"

#include <stdlib.h>
#include <string.h>

#include "base/table.h"

typedef struct footprint {
  uint32_t region, touch; /* touch: one that has these bytes */
  uint64_t sum[2];
} footprint;

typedef struct edge { /* where bytes of a footprint begin or end */
  uint32_t region, footprint;
  uint64_t at;
  bool end;
} edge;

typedef struct within { /* an atom is in a footprint */
  uint32_t footprint, atom;
} within;

typedef struct finder {
  const ax_act_record *record;
  ax_atoms *out;
  footprint *footprints;
  uint32_t footprint_count, footprint_capacity;
  uint32_t *slots, slot_count; /* footprints by hash; slot_count: a power of two */
  within *withins;
  uint32_t within_count, within_capacity;
  uint32_t atom_capacity;
  uint64_t (*atom_sums)[2];
  ax_table atom_table; /* of atoms, by their sums */
} finder;

/* --- Footprints --- */

static const ax_touches *pool_of(const finder *f) { return &f->record->touches; }

static bool same_bytes(const ax_touches *pool, const ax_touch *a, const ax_touch *b) {
  return a->region == b->region && a->count == b->count &&
         memcmp(pool->runs + a->first, pool->runs + b->first, a->count * sizeof pool->runs[0]) == 0;
}

static ax_status number_footprints(finder *f) {
  const ax_touches *pool = pool_of(f);
  for (f->slot_count = 64; f->slot_count < 2 * (uint64_t)pool->touch_count; f->slot_count *= 2) continue;
  f->slots = ax_alloc(f->slot_count * sizeof f->slots[0]);
  f->out->of_touch = ax_alloc(pool->touch_count * sizeof f->out->of_touch[0]);
  if (f->slots == NULL || f->out->of_touch == NULL) return ax_out_of_memory(0);
  memset(f->slots, 0xff, f->slot_count * sizeof f->slots[0]);
  for (uint32_t t = 0; t < pool->touch_count; t++) {
    const ax_touch *touch = &pool->touches[t];
    if (touch->region >= f->record->objects.region_count)
      return ax_error(AX_INVALID_ARGUMENT, "touch %u: there is no region %u", t, touch->region);
    uint64_t hash =
        ax_hash_bytes(ax_hash_word(AX_HASH_SEED, touch->region), pool->runs + touch->first, touch->count * sizeof(ax_bytes));
    uint32_t slot = (uint32_t)hash & (f->slot_count - 1);
    while (f->slots[slot] != AX_NONE && !same_bytes(pool, &pool->touches[f->footprints[f->slots[slot]].touch], touch))
      slot = (slot + 1) & (f->slot_count - 1);
    if (f->slots[slot] == AX_NONE) {
      AX_TRY(ax_grow(&f->footprints, sizeof f->footprints[0], f->footprint_count, 1, &f->footprint_capacity));
      uint64_t state = f->footprint_count;
      footprint *made = &f->footprints[f->footprint_count];
      *made = (footprint){.region = touch->region, .touch = t};
      made->sum[0] = ax_next_random(&state);
      made->sum[1] = ax_next_random(&state);
      f->slots[slot] = f->footprint_count++;
    }
    f->out->of_touch[t] = f->slots[slot];
  }
  return AX_OK;
}

/* --- Atoms --- */

static int by_place(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->region != y->region) return x->region < y->region ? -1 : 1;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (int)y->end - (int)x->end; /* a footprint's run may begin where its last one ends */
}

static ax_status list_edges(finder *f, edge **out, uint32_t *count) {
  const ax_touches *pool = pool_of(f);
  size_t total = 0;
  for (uint32_t p = 0; p < f->footprint_count; p++) total += 2 * (size_t)pool->touches[f->footprints[p].touch].count;
  edge *edges = *out = ax_alloc(total * sizeof edges[0]);
  if (edges == NULL || total > UINT32_MAX) return ax_out_of_memory(total * sizeof edges[0]);
  *count = 0;
  for (uint32_t p = 0; p < f->footprint_count; p++) {
    const ax_touch *touch = &pool->touches[f->footprints[p].touch];
    for (uint32_t k = touch->first; k < touch->first + touch->count; k++) {
      edges[(*count)++] = (edge){touch->region, p, pool->runs[k].begin, false};
      edges[(*count)++] = (edge){touch->region, p, pool->runs[k].end, true};
    }
  }
  if (*count > 0) qsort(edges, *count, sizeof edges[0], by_place);
  return AX_OK;
}

static bool has_sum(const void *context, uint32_t atom, const void *sum) {
  return memcmp(((const finder *)context)->atom_sums[atom], sum, 2 * sizeof(uint64_t)) == 0;
}

static uint32_t *slot_of_atom(const finder *f, const uint64_t sum[2]) { return ax_table_slot(&f->atom_table, sum[0], has_sum, f, sum); }

static ax_status grow_atoms(finder *f) {
  bool emptied;
  AX_TRY(ax_table_room(&f->atom_table, f->out->count, &emptied));
  for (uint32_t a = 0; emptied && a < f->out->count; a++) *slot_of_atom(f, f->atom_sums[a]) = a + 1;
  return ax_grow(&f->atom_sums, sizeof f->atom_sums[0], f->out->count, 1, &f->atom_capacity);
}

/* The bytes from here on are in the open footprints. */
static ax_status add_atom(finder *f, const uint64_t sum[2], const uint32_t *open, uint32_t open_count) {
  AX_TRY(grow_atoms(f));
  uint32_t *slot = slot_of_atom(f, sum);
  if (*slot != 0) return AX_OK;
  memcpy(f->atom_sums[f->out->count], sum, 2 * sizeof sum[0]);
  *slot = f->out->count + 1;
  AX_TRY(ax_grow(&f->withins, sizeof f->withins[0], f->within_count, open_count, &f->within_capacity));
  for (uint32_t k = 0; k < open_count; k++) f->withins[f->within_count++] = (within){open[k], f->out->count};
  f->out->count++;
  return AX_OK;
}

static ax_status sweep(finder *f, const edge *edges, uint32_t count) {
  uint32_t *open = ax_alloc(f->footprint_count * sizeof open[0]), *place = ax_alloc(f->footprint_count * sizeof place[0]);
  uint32_t open_count = 0;
  uint64_t sum[2] = {0, 0};
  ax_status status = open == NULL || place == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t k = 0; k < count && status == AX_OK; k++) {
    const edge *e = &edges[k];
    sum[0] += e->end ? 0 - f->footprints[e->footprint].sum[0] : f->footprints[e->footprint].sum[0];
    sum[1] += e->end ? 0 - f->footprints[e->footprint].sum[1] : f->footprints[e->footprint].sum[1];
    if (!e->end) {
      place[e->footprint] = open_count;
      open[open_count++] = e->footprint;
    } else {
      uint32_t last = open[--open_count];
      open[place[e->footprint]] = last;
      place[last] = place[e->footprint];
    }
    if (open_count > 0 && e->at != edges[k + 1].at) status = add_atom(f, sum, open, open_count);
  }
  ax_free(open);
  ax_free(place);
  return status;
}

static int by_footprint(const void *a, const void *b) {
  const within *x = a, *y = b;
  if (x->footprint != y->footprint) return x->footprint < y->footprint ? -1 : 1;
  return x->atom < y->atom ? -1 : x->atom > y->atom;
}

static ax_status find_atoms(finder *f) {
  edge *edges = NULL;
  uint32_t count = 0;
  ax_status status = list_edges(f, &edges, &count);
  if (status == AX_OK) status = sweep(f, edges, count);
  ax_free(edges);
  AX_TRY(status);
  if (f->within_count > 0) qsort(f->withins, f->within_count, sizeof f->withins[0], by_footprint);
  f->out->first = ax_calloc((size_t)f->footprint_count + 1, sizeof f->out->first[0]);
  f->out->items = ax_alloc(((size_t)f->within_count + 1) * sizeof f->out->items[0]);
  if (f->out->first == NULL || f->out->items == NULL) return ax_out_of_memory(0);
  for (uint32_t k = 0; k < f->within_count; k++) f->out->items[k] = f->withins[k].atom;
  for (uint32_t k = 0; k < f->within_count; k++) f->out->first[f->withins[k].footprint + 1]++;
  for (uint32_t p = 0; p < f->footprint_count; p++) f->out->first[p + 1] += f->out->first[p];
  return AX_OK;
}

ax_status ax_atoms_find(const ax_act_record *record, ax_atoms *out) {
  *out = (ax_atoms){0};
  finder f = {.record = record, .out = out};
  ax_status status = number_footprints(&f);
  if (status == AX_OK) status = find_atoms(&f);
  void *memory[] = {f.footprints, f.slots, f.withins, f.atom_sums};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  ax_table_deinit(&f.atom_table);
  if (status != AX_OK) ax_atoms_deinit(out);
  return status;
}

void ax_atoms_deinit(ax_atoms *atoms) {
  ax_free(atoms->of_touch);
  ax_free(atoms->first);
  ax_free(atoms->items);
  *atoms = (ax_atoms){0};
}
