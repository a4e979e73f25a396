/* Accesses of strands to the same bytes.

   Bytes that the same touches are of are an atom (atoms.h), so that each atom has a few numbers instead of a list:

     own memory      who may have written last    one, or two of different strands: a third differs from one
     shared memory   who writes, who reads       likewise

   Touches of one colour do not meet. Where an atom has touches of several colours, they count as having none: some kernels
   over all inputs then have a dependence too many, and never one too few. */
#include <string.h>

#include "check/atoms.h"
#include "check/strand_access.h"

/* --- The list --- */

static const char *place_of(const ax_act_record *record, uint32_t step) {
  return step == AX_NONE ? NULL : record->steps[step].act.location;
}

static bool is_alike(const ax_act_record *record, const ax_dependence *a, const ax_dependence *b) {
  return a->fault == b->fault && a->object == b->object && a->region == b->region &&
         place_of(record, a->later) == place_of(record, b->later) && place_of(record, a->earlier) == place_of(record, b->earlier);
}

static bool is_told(const ax_dependences *list, const ax_act_record *record, const ax_dependence *made) {
  bool told = list->count >= list->most;
  for (uint32_t k = 0; k < list->count && !told; k++) told = is_alike(record, &list->items[k], made);
  return told;
}

ax_status ax_dependences_add(ax_dependences *list, const ax_act_record *record, ax_dependence made) {
  const bool told = is_told(list, record, &made);
  ax_status status = told ? AX_OK : ax_grow(&list->items, sizeof list->items[0], list->count, 1, &list->capacity);
  if (!told && status == AX_OK)
    list->items[list->count++] = made;
  else
    ax_free(made.bytes);
  return status;
}

void ax_dependences_deinit(ax_dependences *list) {
  for (uint32_t k = 0; k < list->count; k++) ax_free(list->items[k].bytes);
  ax_free(list->items);
  *list = (ax_dependences){0};
}

/* --- Atoms --- */

typedef struct pair_of { /* accesses of an atom: the first, and one of another strand; AX_NONE */
  uint32_t first, other;
  bool mixed; /* of several colours */
} pair_of;

typedef struct atom_state {
  pair_of writes, reads; /* of own memory: `writes` may be the last ones */
  uint32_t latest;       /* of shared memory: who has changed it last */
} atom_state;

typedef struct judge {
  const ax_act_record *record;
  const ax_touches *touches;
  const ax_strand_access *accesses;
  ax_atoms atoms;
  atom_state *states; /* by atom */
  ax_dependences *out;
} judge;

static uint32_t colour_of(const judge *j, uint32_t k) { return j->touches->touches[k].colour; }
/* It comes, to all of its bytes: of colours from 2 on are views that inputs move. */
static bool is_sure(const judge *j, uint32_t k) { return !j->accesses[k].may && colour_of(j, k) < 2; }

static void add_to(const judge *j, pair_of *pair, uint32_t k) {
  if (pair->first == AX_NONE) {
    *pair = (pair_of){k, AX_NONE, false};
    return;
  }
  pair->mixed = pair->mixed || colour_of(j, pair->first) != colour_of(j, k);
  if (pair->other == AX_NONE && j->accesses[pair->first].strand != j->accesses[k].strand) pair->other = k;
}

/* The one of the pair that is of another strand, and does not keep apart from it by its colour; AX_NONE. */
static uint32_t meets(const judge *j, const pair_of *pair, uint32_t k) {
  const uint32_t both[] = {pair->first, pair->other};
  for (uint32_t i = 0; i < AX_COUNT(both); i++) {
    if (both[i] == AX_NONE) continue;
    const ax_strand_access *was = &j->accesses[both[i]];
    const bool apart = !pair->mixed && colour_of(j, k) != 0 && colour_of(j, k) == colour_of(j, both[i]);
    if (was->strand != AX_NONE && was->strand != j->accesses[k].strand && !apart) return both[i];
  }
  return AX_NONE;
}

/* The bytes that two touches have both. */
static ax_status take_common(const judge *j, uint32_t a, uint32_t b, ax_dependence *out) {
  const ax_touches *pool = j->touches;
  const ax_touch *x = &pool->touches[a], *y = &pool->touches[b];
  out->bytes = ax_alloc(((size_t)x->count + y->count) * sizeof out->bytes[0]);
  if (out->bytes == NULL) return ax_out_of_memory(0);
  for (uint32_t p = 0, q = 0; p < x->count && q < y->count;) {
    const ax_bytes m = pool->runs[x->first + p], n = pool->runs[y->first + q];
    const ax_bytes both = {m.begin > n.begin ? m.begin : n.begin, m.end < n.end ? m.end : n.end};
    if (both.begin < both.end) out->bytes[out->byte_count++] = both;
    if (m.end < n.end)
      p++;
    else
      q++;
  }
  return AX_OK;
}

/* Leaves of the bytes what the touch has not. */
static ax_status take_off(const judge *j, const ax_touch *touch, ax_dependence *d) {
  ax_bytes *rest = ax_alloc(((size_t)d->byte_count + touch->count) * sizeof rest[0]);
  uint32_t count = 0;
  if (rest == NULL) return ax_out_of_memory(0);
  for (uint32_t k = 0; k < d->byte_count; k++) {
    ax_bytes left = d->bytes[k];
    for (uint32_t r = touch->first; r < touch->first + touch->count && left.begin < left.end; r++) {
      const ax_bytes off = j->touches->runs[r];
      if (off.end <= left.begin || off.begin >= left.end) continue;
      if (left.begin < off.begin) rest[count++] = (ax_bytes){left.begin, off.begin};
      left.begin = off.end < left.end ? off.end : left.end;
    }
    if (left.begin < left.end) rest[count++] = left;
  }
  ax_free(d->bytes);
  d->bytes = rest, d->byte_count = count;
  return AX_OK;
}

/* Of own memory, what others have written since is not what is read. */
static ax_status find_bytes(const judge *j, uint32_t earlier, uint32_t later, ax_dependence *d) {
  ax_status status = take_common(j, earlier, later, d);
  for (uint32_t k = earlier + 1; k < later && status == AX_OK && d->fault == AX_STRAND_READS; k++) {
    const ax_touch *touch = &j->touches->touches[k];
    if (touch->region == d->region && touch->write && is_sure(j, k)) status = take_off(j, touch, d);
  }
  return status;
}

static ax_status report(judge *j, ax_strand_fault fault, uint32_t earlier, uint32_t later) {
  const ax_strand_access *a = &j->accesses[earlier], *b = &j->accesses[later];
  ax_dependence made = {.fault = fault,
                        .earlier = a->step,
                        .earlier_point = a->point,
                        .later = b->step,
                        .later_point = b->point,
                        .region = j->touches->touches[later].region,
                        .object = AX_NONE};
  if (is_told(j->out, j->record, &made)) return AX_OK;
  const ax_status status = find_bytes(j, earlier, later, &made);
  if (status == AX_OK) return ax_dependences_add(j->out, j->record, made);
  ax_free(made.bytes);
  return status;
}

static ax_status judge_own(judge *j, atom_state *s, uint32_t k) {
  const ax_strand_access *a = &j->accesses[k];
  const bool write = j->touches->touches[k].write;
  if ((!write || a->reads) && a->strand != AX_NONE) {
    const uint32_t from = meets(j, &s->writes, k);
    if (from != AX_NONE) AX_TRY(report(j, AX_STRAND_READS, from, k));
  }
  if (!write) return AX_OK;
  const bool surely = is_sure(j, k);
  if (surely || (s->writes.first != AX_NONE && j->accesses[s->writes.first].strand == AX_NONE)) s->writes.first = AX_NONE;
  if (surely || a->strand != AX_NONE) add_to(j, &s->writes, k);
  return AX_OK;
}

/* Whether it is of a block that its strand, were it alone, would still have in its slot at access `by`. */
static bool is_kept(const judge *j, uint32_t k, uint32_t by) {
  uint32_t at = j->accesses[k].store;
  while (at != AX_NONE && j->accesses[at].next != AX_NONE) {
    const uint32_t next = j->accesses[at].next;
    const bool known = !j->accesses[at].may && !j->accesses[next].may; /* which blocks they are */
    if (known && j->atoms.of_touch[at] != j->atoms.of_touch[next]) return false;
    if (next > by) return true;
    at = next;
  }
  return false;
}

static ax_status judge_shared(judge *j, atom_state *s, uint32_t k) {
  const bool write = j->touches->touches[k].write;
  uint32_t with = meets(j, &s->writes, k);
  if (with == AX_NONE && write) with = meets(j, &s->reads, k);
  if (with != AX_NONE) AX_TRY(report(j, AX_STRAND_MEETS, with, k));
  const bool kept = with == AX_NONE && !write && s->latest != AX_NONE && is_kept(j, s->latest, k);
  if (kept) AX_TRY(report(j, AX_STRAND_KEEPS, s->latest, k));
  if (write && !j->accesses[k].is_store) s->latest = k; /* a block that is stored tells what was changed in it */
  add_to(j, write ? &s->writes : &s->reads, k);
  return AX_OK;
}

ax_status ax_strands_judge_memory(const ax_act_record *record, const ax_touches *touches, const ax_strand_access *accesses,
                                  ax_dependences *out) {
  judge j = {.record = record, .touches = touches, .accesses = accesses, .out = out};
  const ax_act_record of = {.objects = record->objects, .touches = *touches};
  ax_status status = ax_atoms_find(&of, &j.atoms);
  if (status == AX_OK) j.states = ax_alloc(((size_t)j.atoms.count + 1) * sizeof j.states[0]);
  if (status == AX_OK && j.states == NULL) status = ax_out_of_memory(0);
  for (uint32_t a = 0; a < j.atoms.count && status == AX_OK; a++)
    j.states[a] = (atom_state){{AX_NONE, AX_NONE, false}, {AX_NONE, AX_NONE, false}, AX_NONE};
  for (uint32_t k = 0; k < touches->touch_count && status == AX_OK; k++) {
    const uint32_t p = j.atoms.of_touch[k];
    for (uint32_t i = j.atoms.first[p]; i < j.atoms.first[p + 1] && status == AX_OK; i++) {
      atom_state *s = &j.states[j.atoms.items[i]];
      status = accesses[k].own ? judge_own(&j, s, k) : judge_shared(&j, s, k);
    }
  }
  ax_free(j.states);
  ax_atoms_deinit(&j.atoms);
  return status;
}
