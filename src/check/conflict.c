/* Conflicts, without comparing all with all.

   The bytes of a record fall into *atoms* (atoms.h): a touch is of some of them, each as a whole. Each atom is followed through the
   record. "Is needed for" is transitive, as every run that has the one has the other before. So it is enough to look at neighbours: a
   read and the last write, a write and the reads since, or the write before if there are none. Where these are in order by need, so
   is every pair.

   Reads of an atom without a write between them are a *group*: nothing has to say which of them is first. Where there are locks, so
   are additions (act.h) within sections of a lock that exclude each other. Each access comes after all of the group before its own:

       write | read read read | add add | write            groups of an atom, as the record has them

   Acts of one agent are in order. So of the group before only each agent's last access is looked at, and of a group only each
   agent's first: there are at most as many pairs as agents of the two groups, multiplied, however often each of them comes.

   Touches of one colour do not conflict (act.h), so accesses of one colour, reads and writes, are a group as well. A read that joins
   reads of other colours leaves the group without one; the next write begins another.

   Additions commute if each is whole, which is watched: after a load nothing but the store of the same addition comes, before the
   agent does anything to a lock. A group has additions of one kind (ax_update): a maximum between two sums does not commute. Sums
   of floats commute if all terms are multiples of one power of 2, and the sum of all, without signs, is below that power times
   2^bits: then each sum in each order is a number of the dtype. Maxima and minima of floats commute if no term is NaN, whose bits
   could be of either of two, and no two are zeros that differ in their sign: the rest is in one order, and equal numbers have
   equal bits. None of this matters while one agent alone makes the group, as its acts are in order. */
#include "check/conflict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/atoms.h"
#include "check/locks.h"

typedef struct access { /* of a step, to an atom */
  uint32_t atom, step;
  bool write, plain;    /* plain: it is no addition, or more */
  uint32_t colour;      /* of its touches, where they have the same one; 0 */
  uint32_t loads, adds; /* of an addition: touches; AX_NONE */
  uint32_t next;        /* of its group; AX_NONE */
} access;

typedef struct seat { /* where an agent's last access to an atom is */
  uint32_t atom, agent, access; /* access AX_NONE: the seat is free */
  uint32_t group;               /* the atom's, when it was */
} seat;

typedef enum group_kind { GROUP_WRITE, GROUP_READS, GROUP_SUMS } group_kind;

typedef struct atom_state { /* heads of lists in `accesses`; AX_NONE */
  uint32_t group, before; /* the accesses since the last change of kind, and those before: of each agent the last */
  uint32_t number, agents; /* of the group: how many came before; who made it */
  group_kind kind;
  uint32_t colour; /* that all of the group have; 0: they have none, or several */
  bool bad; /* of SUMS: additions that do not commute */
  uint64_t held; /* of SUMS: locks that all of them hold */
  uint32_t open; /* the step that has loaded and not stored yet; AX_NONE */
  uint8_t bits, update, zeros;
  int32_t least; /* of floats: what all terms are multiples of, and their sum */
  double most;
} atom_state;

typedef struct finder {
  const ax_game *g;
  bool all;
  ax_locks *locks; /* NULL: none */
  ax_pair_list *out;
  ax_atoms places;
  atom_state *atoms; /* by atom */
  access *accesses;
  uint32_t access_count, access_capacity;
  seat *seats; /* by hash of atom and agent; seat_slots: a power of two */
  uint32_t seat_count, seat_slots;
  access *here; /* of the step that is looked at */
  uint32_t here_count, here_capacity;
} finder;

/* --- Pairs --- */

static const ax_touches *pool_of(const finder *f) { return &f->g->record->touches; }

ax_status ax_pairs_add(ax_pair_list *list, ax_pair pair) {
  AX_TRY(ax_grow(&list->items, sizeof list->items[0], list->count, 1, &list->capacity));
  list->items[list->count++] = pair;
  return AX_OK;
}

static ax_status add_pair(finder *f, uint32_t earlier, uint32_t later, ax_conflict conflict) {
  if (ax_game_step(f->g, earlier)->agent == ax_game_step(f->g, later)->agent) return AX_OK;
  return ax_pairs_add(f->out, (ax_pair){earlier, later, conflict});
}

static int by_atom(const void *a, const void *b) {
  const access *x = a, *y = b;
  return x->atom < y->atom ? -1 : x->atom > y->atom;
}

static access access_of(const finder *f, uint32_t atom, uint32_t step, uint32_t touch) {
  const ax_touch *t = &pool_of(f)->touches[touch];
  const bool sum = t->sum.bits != 0;
  return (access){.atom = atom,
                  .step = step,
                  .write = t->write,
                  .plain = !sum,
                  .colour = t->colour,
                  .loads = sum && !t->write ? touch : AX_NONE,
                  .adds = sum && t->write ? touch : AX_NONE,
                  .next = AX_NONE};
}

/* Two accesses of one act to an atom become one. */
static void merge(access *a, const access *b) {
  a->plain = a->plain || b->plain || (a->loads != AX_NONE && b->loads != AX_NONE) || (a->adds != AX_NONE && b->adds != AX_NONE);
  a->write = a->write || b->write;
  if (a->colour != b->colour) a->colour = 0;
  if (a->loads == AX_NONE) a->loads = b->loads;
  if (a->adds == AX_NONE) a->adds = b->adds;
}

/* The atoms that a step touches, each once. */
static ax_status gather(finder *f, uint32_t step) {
  const ax_act *act = &f->g->record->steps[step].act;
  f->here_count = 0;
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    if (ax_touch_leaves(&pool_of(f)->touches[t])) continue;
    const uint32_t p = f->places.of_touch[t], first = f->places.first[p], count = f->places.first[p + 1] - first;
    AX_TRY(ax_grow(&f->here, sizeof f->here[0], f->here_count, count, &f->here_capacity));
    for (uint32_t k = first; k < first + count; k++) f->here[f->here_count++] = access_of(f, f->places.items[k], step, t);
  }
  if (act->touch_count < 2) return AX_OK;
  if (f->here_count > 0) qsort(f->here, f->here_count, sizeof f->here[0], by_atom);
  uint32_t kept = 0;
  for (uint32_t k = 0; k < f->here_count; k++) {
    if (kept > 0 && f->here[kept - 1].atom == f->here[k].atom)
      merge(&f->here[kept - 1], &f->here[k]);
    else
      f->here[kept++] = f->here[k];
  }
  f->here_count = kept;
  return AX_OK;
}

static ax_status remember(finder *f, const access *a) {
  AX_TRY(ax_grow(&f->accesses, sizeof f->accesses[0], f->access_count, 1, &f->access_capacity));
  f->accesses[f->access_count] = *a;
  f->accesses[f->access_count].next = f->atoms[a->atom].group;
  f->atoms[a->atom].group = f->access_count++;
  return AX_OK;
}

static seat *seat_at(const finder *f, uint32_t atom, uint32_t agent) {
  uint32_t k = (uint32_t)ax_hash_word(AX_HASH_SEED, (uint64_t)atom << 32 | agent) & (f->seat_slots - 1);
  while (f->seats[k].access != AX_NONE && (f->seats[k].atom != atom || f->seats[k].agent != agent))
    k = (k + 1) & (f->seat_slots - 1);
  return &f->seats[k];
}

static ax_status grow_seats(finder *f) {
  seat *old = f->seats;
  const uint32_t old_slots = f->seat_slots;
  if (2 * ((uint64_t)f->seat_count + 1) <= old_slots) return AX_OK;
  f->seat_slots = old_slots == 0 ? 64 : 2 * old_slots;
  f->seats = ax_alloc(f->seat_slots * sizeof f->seats[0]);
  if (f->seats == NULL) {
    f->seats = old;
    return ax_out_of_memory(0);
  }
  for (uint32_t k = 0; k < f->seat_slots; k++) f->seats[k].access = AX_NONE;
  for (uint32_t k = 0; k < old_slots; k++)
    if (old[k].access != AX_NONE) *seat_at(f, old[k].atom, old[k].agent) = old[k];
  ax_free(old);
  return AX_OK;
}

/* Adds an access to the atom's group, in place of its agent's last one there; *first: there is none. */
static ax_status join_group(finder *f, const access *a, bool *first) {
  atom_state *atom = &f->atoms[a->atom];
  const uint32_t agent = ax_game_step(f->g, a->step)->agent;
  AX_TRY(grow_seats(f));
  seat *mine = seat_at(f, a->atom, agent);
  *first = mine->access == AX_NONE || mine->group != atom->number;
  if (!*first) {
    f->accesses[mine->access].step = a->step;
    return AX_OK;
  }
  f->seat_count += mine->access == AX_NONE;
  *mine = (seat){a->atom, agent, f->access_count, atom->number};
  atom->agents++;
  return remember(f, a);
}

static const ax_touch_sum *part_of(const finder *f, const access *a) {
  return &pool_of(f)->touches[a->loads != AX_NONE ? a->loads : a->adds].sum;
}

static group_kind kind_of(const finder *f, const access *a) {
  if (f->locks != NULL && !a->plain && f->locks->held[a->step] != 0) return GROUP_SUMS;
  return a->write ? GROUP_WRITE : GROUP_READS;
}

/* Whether the sum of all terms so far, this one among them, is a number of the dtype in any order. */
static bool is_exact(atom_state *atom, const ax_touch_sum *term) {
  if (term->least < atom->least) atom->least = term->least;
  atom->most = (atom->most + term->most) * (1 + 0x1p-50);
  const int bits = atom->least + (int)term->bits;
  return atom->most < ldexp(1, bits < term->top ? bits : term->top);
}

/* Whether floats so far come to the same in any order. */
static bool commutes(atom_state *atom, const ax_touch_sum *term) {
  if (!ax_update_is_extreme(term->update)) return is_exact(atom, term);
  atom->zeros |= term->zeros;
  return atom->zeros != 3 && !isinf(term->most);
}

/* Part of an addition, within a section. first: in its group. Only the first load's value counts: others are sums. */
static void note_sum(finder *f, const access *a, bool first) {
  atom_state *atom = &f->atoms[a->atom];
  const ax_touch *touches = pool_of(f)->touches;
  const bool loads = a->loads != AX_NONE, adds = a->adds != AX_NONE;
  bool good = loads == (atom->open == AX_NONE);
  if (good && !loads)
    good = ax_game_step(f->g, atom->open)->agent == ax_game_step(f->g, a->step)->agent &&
           f->locks->stretch[atom->open] == f->locks->stretch[a->step];
  atom->open = adds ? AX_NONE : a->step;
  if (part_of(f, a)->bits != AX_SUM_WRAPS) {
    if (loads && first) good = commutes(atom, &touches[a->loads].sum) && good;
    if (adds) good = commutes(atom, &touches[a->adds].sum) && good;
  }
  atom->bad = atom->bad || !good;
}

/* Where several agents make a group of additions, these have to commute. `ends`: no other comes. */
static void judge_sums(finder *f, const atom_state *atom, bool ends) {
  if (atom->group == AX_NONE || atom->kind != GROUP_SUMS || atom->agents < 2) return;
  f->locks->refused = f->locks->refused || atom->bad || (ends && atom->open != AX_NONE);
  if (atom->bits == AX_SUM_WRAPS) return;
  f->locks->floats = f->locks->floats || !ax_update_is_extreme(atom->update);
  f->locks->extremes = f->locks->extremes || ax_update_is_extreme(atom->update);
}

static ax_status follow(finder *f, const access *a) {
  atom_state *atom = &f->atoms[a->atom];
  const group_kind kind = kind_of(f, a);
  const uint64_t held = kind == GROUP_SUMS ? f->locks->held[a->step] : 0;
  const ax_touch_sum part = kind == GROUP_SUMS ? *part_of(f, a) : (ax_touch_sum){0};
  bool same = atom->group != AX_NONE && kind == atom->kind && kind != GROUP_WRITE;
  if (kind == GROUP_SUMS) same = same && (atom->held & held) != 0 && atom->bits == part.bits && atom->update == part.update;
  const bool coloured = atom->group != AX_NONE && a->colour != 0 && a->colour == atom->colour && kind != GROUP_SUMS;
  if (coloured && kind == GROUP_WRITE) atom->kind = GROUP_WRITE;
  if (same && a->colour != atom->colour) atom->colour = 0;
  same = same || coloured;
  if (!same) {
    judge_sums(f, atom, true);
    *atom = (atom_state){.group = AX_NONE,
                         .before = atom->group,
                         .number = atom->number + 1,
                         .kind = kind,
                         .colour = a->colour,
                         .held = held,
                         .open = AX_NONE,
                         .bits = part.bits,
                         .update = part.update,
                         .least = AX_SUM_ZERO};
  }
  bool comes_first;
  AX_TRY(join_group(f, a, &comes_first));
  for (uint32_t r = comes_first ? atom->before : AX_NONE; r != AX_NONE; r = f->accesses[r].next)
    AX_TRY(add_pair(f, f->accesses[r].step, a->step, AX_CONFLICT_MEMORY));
  if (kind != GROUP_SUMS) return AX_OK;
  atom->held &= held;
  note_sum(f, a, !same);
  judge_sums(f, atom, false);
  return AX_OK;
}

static ax_status follow_all(finder *f, const access *a) {
  for (uint32_t r = f->atoms[a->atom].group; r != AX_NONE; r = f->accesses[r].next)
    if ((a->write || f->accesses[r].write) && (a->colour == 0 || a->colour != f->accesses[r].colour))
      AX_TRY(add_pair(f, f->accesses[r].step, a->step, AX_CONFLICT_MEMORY));
  return remember(f, a);
}

static ax_status pair_touches(finder *f) {
  f->atoms = ax_alloc((size_t)f->places.count * sizeof f->atoms[0]);
  if (f->atoms == NULL) return ax_out_of_memory(0);
  for (uint32_t k = 0; k < f->places.count; k++) f->atoms[k] = (atom_state){.group = AX_NONE, .before = AX_NONE, .open = AX_NONE};
  for (uint32_t s = 0; s < f->g->record->step_count; s++) {
    AX_TRY(gather(f, s));
    for (uint32_t k = 0; k < f->here_count; k++) AX_TRY(f->all ? follow_all(f, &f->here[k]) : follow(f, &f->here[k]));
  }
  for (uint32_t k = 0; k < f->places.count; k++) judge_sums(f, &f->atoms[k], true);
  return AX_OK;
}

/* Pairs each wait on a semaphore with the one before it by another agent, as for memory; pending waits come after the last done
   one. */
static ax_status pair_waits(finder *f) {
  const ax_act_record *r = f->g->record;
  uint32_t *last = ax_alloc(r->objects.semaphore_count * sizeof last[0]);
  if (last == NULL) return ax_out_of_memory(0);
  memset(last, 0xff, r->objects.semaphore_count * sizeof last[0]);
  ax_status status = AX_OK;
  for (uint32_t s = 0; s < r->step_count + r->pending_count && status == AX_OK; s++) {
    const ax_act *act = &ax_game_step(f->g, s)->act;
    if (act->kind != AX_ACT_WAIT || (f->locks != NULL && f->locks->is_lock[act->object])) continue;
    if (last[act->object] != AX_NONE) status = add_pair(f, last[act->object], s, AX_CONFLICT_WAITS);
    if (s < r->step_count) last[act->object] = s;
  }
  ax_free(last);
  return status;
}

/* The last read or change of a semaphore's count by each agent, for semaphores whose count is read. */
typedef struct latest {
  uint32_t agent, step, next;
  bool read;
} latest;

typedef struct counts {
  uint32_t *head; /* by semaphore: of a list in items; AX_NONE */
  latest *items;
  uint32_t count, capacity;
} counts;

/* In order with what other agents did last: a read with changes, a change with reads. */
static ax_status pair_count(finder *f, counts *c, uint32_t s) {
  const ax_act_step *step = &f->g->record->steps[s];
  bool read = step->act.kind == AX_ACT_READ;
  uint32_t *head = &c->head[step->act.object], mine = AX_NONE;
  for (uint32_t k = *head; k != AX_NONE; k = c->items[k].next) {
    if (c->items[k].read != read)
      AX_TRY(add_pair(f, c->items[k].step, s, AX_CONFLICT_COUNT));
    else if (c->items[k].agent == step->agent)
      mine = k;
  }
  if (mine == AX_NONE) {
    AX_TRY(ax_grow(&c->items, sizeof c->items[0], c->count, 1, &c->capacity));
    mine = c->count++;
    c->items[mine] = (latest){.agent = step->agent, .read = read, .next = *head};
    *head = mine;
  }
  c->items[mine].step = s;
  return AX_OK;
}

static ax_status pair_counts(finder *f) {
  const ax_act_record *r = f->g->record;
  counts c = {0};
  bool *read = ax_calloc(r->objects.semaphore_count, sizeof read[0]);
  c.head = ax_alloc(r->objects.semaphore_count * sizeof c.head[0]);
  ax_status status = read == NULL || c.head == NULL ? ax_out_of_memory(0) : AX_OK;
  if (status != AX_OK) goto cleanup;
  memset(c.head, 0xff, r->objects.semaphore_count * sizeof c.head[0]);
  for (uint32_t s = 0; s < r->step_count; s++)
    if (r->steps[s].act.kind == AX_ACT_READ) read[r->steps[s].act.object] = true;
  for (uint32_t s = 0; s < r->step_count && status == AX_OK; s++) {
    const ax_act *act = &r->steps[s].act;
    if ((act->kind == AX_ACT_READ || act->kind == AX_ACT_SIGNAL || act->kind == AX_ACT_WAIT) && read[act->object])
      status = pair_count(f, &c, s);
  }
cleanup:
  ax_free(read);
  ax_free(c.head);
  ax_free(c.items);
  return status;
}

static int by_steps(const void *a, const void *b) {
  const ax_pair *x = a, *y = b;
  if (x->earlier != y->earlier) return x->earlier < y->earlier ? -1 : 1;
  if (x->later != y->later) return x->later < y->later ? -1 : 1;
  return (int)x->conflict - (int)y->conflict;
}

static void sort_pairs(ax_pair_list *list) {
  if (list->count > 0) qsort(list->items, list->count, sizeof list->items[0], by_steps);
  uint32_t kept = 0;
  for (uint32_t k = 0; k < list->count; k++)
    if (kept == 0 || by_steps(&list->items[kept - 1], &list->items[k]) != 0) list->items[kept++] = list->items[k];
  list->count = kept;
}

ax_status ax_conflicts_find(const ax_game *game, bool all, ax_locks *locks, ax_pair_list *out) {
  finder f = {.g = game, .all = all, .locks = locks, .out = out};
  ax_status status = ax_atoms_find(game->record, &f.places);
  if (status == AX_OK) status = pair_touches(&f);
  if (status == AX_OK) status = pair_waits(&f);
  if (status == AX_OK) status = pair_counts(&f);
  if (status == AX_OK && locks != NULL) status = ax_locks_pair(locks, out);
  if (status == AX_OK) sort_pairs(out);
  ax_atoms_deinit(&f.places);
  void *memory[] = {f.atoms, f.accesses, f.seats, f.here};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  return status;
}

/* --- Two acts --- */

static bool overlap(const ax_bytes *a, uint32_t a_count, const ax_bytes *b, uint32_t b_count) {
  for (uint32_t i = 0, k = 0; i < a_count && k < b_count;) {
    if (a[i].end <= b[k].begin)
      i++;
    else if (b[k].end <= a[i].begin)
      k++;
    else
      return true;
  }
  return false;
}

bool ax_touches_conflict(const ax_touches *pool, const ax_act *a, const ax_touches *other_pool, const ax_act *b, bool *scope) {
  bool found = false;
  if (scope != NULL) *scope = false;
  for (uint32_t i = a->touch_first; i < a->touch_first + a->touch_count; i++)
    for (uint32_t k = b->touch_first; k < b->touch_first + b->touch_count; k++) {
      const ax_touch *x = &pool->touches[i], *y = &other_pool->touches[k];
      if (x->region != y->region || (!x->write && !y->write) || ax_touch_leaves(x) || ax_touch_leaves(y)) continue;
      if (x->colour != 0 && x->colour == y->colour) continue;
      if (!overlap(pool->runs + x->first, x->count, other_pool->runs + y->first, y->count)) continue;
      found = true;
      if (scope == NULL) return true;
      *scope = *scope || x->scope || y->scope;
    }
  return found;
}
