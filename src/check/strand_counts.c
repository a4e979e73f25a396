/* What strands do to semaphores and barriers: each has counts and phases of its own (strands.c). */
#include <string.h>

#include "base/table.h"
#include "check/strand_access.h"

typedef enum strand_end { STRAND_UNKNOWN, STRAND_ENDS, STRAND_STUCK } strand_end;

typedef struct tally {                  /* of a strand, at a semaphore or a barrier */
  uint32_t object, strand, last, point; /* the act that was last there, and its point */
  bool barrier;
  int64_t in, out; /* signals and waits; arrivals, and those that phases took that were waited for */
} tally;

typedef struct counter {
  const ax_act_record *record;
  const uint32_t *points, *strands; /* by step */
  bool several;                     /* devices */
  tally *tallies;
  uint32_t tally_count, tally_capacity;
  ax_table table;  /* of tallies */
  int64_t *totals; /* by object: signals less waits of all strands */
  bool *told;      /* by object: it has a dependence */
  uint8_t *stuck;  /* by strand: strand_end */
  ax_dependences *out;
} counter;

typedef struct tally_key {
  uint32_t object, strand;
  bool barrier;
} tally_key;

static bool is_tally(const void *context, uint32_t number, const void *sought) {
  const tally *t = &((const counter *)context)->tallies[number];
  const tally_key *key = sought;
  return t->object == key->object && t->strand == key->strand && t->barrier == key->barrier;
}

static uint32_t *place_of(const counter *f, const tally_key *key) {
  const uint64_t hash = ax_hash_word(AX_HASH_SEED, (uint64_t)key->object << 33 | (uint64_t)key->strand << 1 | key->barrier);
  return ax_table_slot(&f->table, hash, is_tally, f, key);
}

static ax_status tally_of(counter *f, tally_key key, tally **out) {
  bool emptied;
  AX_TRY(ax_table_room(&f->table, f->tally_count, &emptied));
  for (uint32_t k = 0; emptied && k < f->tally_count; k++)
    *place_of(f, &(tally_key){f->tallies[k].object, f->tallies[k].strand, f->tallies[k].barrier}) = k + 1;
  uint32_t *slot = place_of(f, &key);
  if (*slot == 0) {
    AX_TRY(ax_grow(&f->tallies, sizeof f->tallies[0], f->tally_count, 1, &f->tally_capacity));
    f->tallies[f->tally_count] = (tally){.object = key.object, .strand = key.strand, .barrier = key.barrier};
    *slot = ++f->tally_count;
  }
  *out = &f->tallies[*slot - 1];
  return AX_OK;
}

/* The last act of another strand at the object. */
static const tally *tally_of_other(const counter *f, const tally *mine) {
  const tally *found = NULL;
  for (uint32_t k = 0; k < f->tally_count; k++) {
    const tally *t = &f->tallies[k];
    if (t->object != mine->object || t->barrier != mine->barrier || t->strand == mine->strand) continue;
    if (found == NULL || t->last > found->last) found = t;
  }
  return found;
}

/* One for each object. */
static ax_status add_fault(counter *f, ax_strand_fault fault, const tally *mine) {
  if (f->told[mine->object]) return AX_OK;
  f->told[mine->object] = true;
  const tally *other = tally_of_other(f, mine);
  return ax_dependences_add(f->out, f->record,
                            (ax_dependence){.fault = fault,
                                            .later = mine->last,
                                            .later_point = mine->point,
                                            .earlier = other != NULL ? other->last : AX_NONE,
                                            .earlier_point = other != NULL ? other->point : AX_NONE,
                                            .region = AX_NONE,
                                            .object = mine->object,
                                            .barrier = mine->barrier});
}

/* --- A strand alone --- */

typedef struct game {
  const counter *f;
  uint32_t strand;
  uint32_t *at, *next; /* by agent: the step that it does next, AX_NONE: none. By step: the one after */
  bool *started;
  int64_t *count, *arrivals, *phases; /* by object */
} game;

static bool can(const game *g, uint32_t agent) {
  const ax_act *act = &g->f->record->steps[g->at[agent]].act;
  if (!g->started[agent]) return false;
  if (act->kind == AX_ACT_WAIT) return g->count[act->object] >= act->amount;
  if (act->kind == AX_ACT_AWAIT)
    return g->arrivals[act->object] >= (g->phases[act->object] + 1) * (int64_t)g->f->record->objects.barriers[act->object].arrivals;
  return true; /* of groups of copies: what a copy has done is seen by a wait for bytes, or not at all */
}

static void go_on(game *g, uint32_t agent) {
  const ax_act *act = &g->f->record->steps[g->at[agent]].act;
  if (act->kind == AX_ACT_START)
    g->started[act->object] = true;
  else if (act->kind == AX_ACT_SIGNAL)
    g->count[act->object] += act->amount;
  else if (act->kind == AX_ACT_WAIT)
    g->count[act->object] -= act->amount;
  else if (act->kind == AX_ACT_ARRIVE)
    g->arrivals[act->object]++;
  else if (act->kind == AX_ACT_AWAIT)
    g->phases[act->object]++;
  g->at[agent] = g->next[g->at[agent]];
}

/* Whether some agent cannot go on in the end: each on its device waits on its own semaphores, so that any order will do. */
static bool play(game *g) {
  const ax_act_objects *o = &g->f->record->objects;
  bool any = true, left = false;
  for (uint32_t s = g->f->record->step_count; s-- > 0;) {
    if (g->f->strands[s] != g->strand) continue;
    const uint32_t agent = g->f->record->steps[s].agent;
    g->next[s] = g->at[agent];
    g->at[agent] = s;
  }
  for (uint32_t a = 0; a < o->agent_count; a++) g->started[a] = o->agents[a].initial;
  while (any) {
    any = false;
    for (uint32_t a = 0; a < o->agent_count; a++)
      for (; g->at[a] != AX_NONE && can(g, a); any = true) go_on(g, a);
  }
  for (uint32_t a = 0; a < o->agent_count; a++) left = left || g->at[a] != AX_NONE;
  return left;
}

/* Signals of several devices may come in another order than in R. Then the strand is run by itself. */
static ax_status gets_stuck(counter *f, uint32_t strand, bool *out) {
  const ax_act_objects *o = &f->record->objects;
  game g = {.f = f, .strand = strand};
  *out = f->stuck[strand] == STRAND_STUCK;
  if (f->stuck[strand] != STRAND_UNKNOWN) return AX_OK;
  g.at = ax_alloc(((size_t)o->agent_count + 1) * sizeof g.at[0]);
  g.next = ax_alloc(((size_t)f->record->step_count + 1) * sizeof g.next[0]);
  g.started = ax_calloc((size_t)o->agent_count + 1, sizeof g.started[0]);
  g.count = ax_calloc(3 * ((size_t)o->semaphore_count + 1), sizeof g.count[0]);
  const bool there = g.at != NULL && g.next != NULL && g.started != NULL && g.count != NULL;
  if (there) {
    memset(g.at, 0xff, o->agent_count * sizeof g.at[0]);
    g.arrivals = g.count + o->semaphore_count + 1, g.phases = g.arrivals + o->semaphore_count + 1;
    *out = play(&g);
    f->stuck[strand] = *out ? STRAND_STUCK : STRAND_ENDS;
  }
  void *memory[] = {g.at, g.next, g.started, g.count};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  return there ? AX_OK : ax_out_of_memory(0);
}

/* --- The run --- */

static ax_status count_step(counter *f, uint32_t step) {
  const ax_act *act = &f->record->steps[step].act;
  const bool barrier = act->kind == AX_ACT_ARRIVE || act->kind == AX_ACT_AWAIT;
  const uint32_t point = f->points[step];
  if (point == AX_NONE || (!barrier && act->kind != AX_ACT_SIGNAL && act->kind != AX_ACT_WAIT && act->kind != AX_ACT_READ))
    return AX_OK;
  tally *mine;
  AX_TRY(tally_of(f, (tally_key){act->object, f->strands[step], barrier}, &mine));
  mine->last = step, mine->point = point;
  if (act->kind == AX_ACT_READ)
    return mine->in - mine->out == f->totals[act->object] ? AX_OK : add_fault(f, AX_STRAND_COUNTS, mine);
  const bool waits = act->kind == AX_ACT_WAIT || act->kind == AX_ACT_AWAIT;
  const int64_t amount = !barrier ? act->amount : waits ? (int64_t)f->record->objects.barriers[act->object].arrivals : 1;
  if (!barrier) f->totals[act->object] += waits ? -amount : amount;
  if (waits)
    mine->out += amount;
  else
    mine->in += amount;
  if (mine->out <= mine->in) return AX_OK;
  bool stuck = true;
  if (f->several) AX_TRY(gets_stuck(f, mine->strand, &stuck));
  return stuck ? add_fault(f, AX_STRAND_WAITS, mine) : AX_OK;
}

/* What is left over all strands is a leak, and none of these. */
static ax_status count_ends(counter *f) {
  for (uint32_t k = 0; k < f->tally_count; k++) {
    const tally *t = &f->tallies[k];
    const bool left =
        t->barrier ? t->in % f->record->objects.barriers[t->object].arrivals != 0 : t->in > t->out && f->totals[t->object] == 0;
    if (left) AX_TRY(add_fault(f, AX_STRAND_LEAVES, t));
  }
  return AX_OK;
}

ax_status ax_strands_judge_counts(const ax_act_record *record, const uint32_t *points, const uint32_t *strands,
                                  uint32_t strand_count, bool several, ax_dependences *out) {
  counter f = {.record = record, .points = points, .strands = strands, .several = several, .out = out};
  const ax_act_objects *o = &record->objects;
  f.totals = ax_calloc((size_t)o->semaphore_count + 1, sizeof f.totals[0]);
  f.told = ax_calloc((size_t)o->semaphore_count + 1, sizeof f.told[0]);
  f.stuck = ax_calloc((size_t)strand_count + 1, sizeof f.stuck[0]);
  ax_status status = f.totals == NULL || f.told == NULL || f.stuck == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t s = 0; s < record->step_count && status == AX_OK; s++) status = count_step(&f, s);
  if (status == AX_OK) status = count_ends(&f);
  void *memory[] = {f.totals, f.told, f.stuck, f.tallies};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  ax_table_deinit(&f.table);
  return status;
}
