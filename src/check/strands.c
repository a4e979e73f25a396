/* Dependences between points of a grid that are in no order.

     grid (i, j), i AX_PARALLEL      strand 0      (0, 0) (0, 1) (0, 2)      each in its own order, with scratch, semaphores
                                     strand 1      (1, 0) (1, 1) (1, 2)      and slots of its own, all at the same time

   A *strand* is all points with the same numbers along the parallel dimensions. Two points of different strands are in no
   order, whatever their other numbers are: several cores may run them at the same time. So each strand has memory of its own:
   scratch, scopes, and the slots that the pipeline brings blocks into. All strands share the memory of operands and results,
   and scratch that is one for the whole device.

   R is a run in the grid's order, which is proved (prove.c): all runs in this order consist of the same acts with the same
   reads. An act is of a point, or of a copy that a point has started, or of the pipeline. The pipeline brings blocks in: a
   point that loads bytes from the slot reads the bytes that were copied there. It stores blocks of results: as a whole, for
   each strand that has a point of that block, as each strand has a slot of its own.

   Theorem. Say that
     1. of two accesses of different strands to one shared byte, none is a write;
     2. what a strand reads of its own memory was written last, in R, by the same strand or by the pipeline;
     3. a strand reads no shared byte that it has changed in a block and stored, if the next block that it stores is the same one:
        in the strand's own order the block stays in its slot, and is stored later;
     4. at each wait of a strand its own signals suffice, in R or in a run of the strand alone; at a read of a count no other
        strand has changed the count; and at the end each strand has waited for all that it has signalled. Likewise of phases of
        barriers.
   Then in each order of the strands, each strand does its acts of R with the same reads, and the results are those of R.
   Proof. By induction over a run of the strands. The next act of a strand follows from what the strand has read, so it is R's.
   Let it read a shared byte. By 1 the last write of the byte before it in R is by the same strand, or there is none, and no
   other strand ever writes it; by 3 that write has been done. A byte of the strand's own memory holds what the strand, or the
   pipeline for it, has written last, as in R. Its waits end, as counts are its own and suffice by 4. In the end each byte of a
   result was written by one strand alone, last by the write that is the last one in R.

   If 1 or 3 fails, two orders of the strands leave different writes in the byte, or give the read another value. If 2 fails,
   the read finds memory that was never set. If 4 fails, a strand waits for ever or leaves a count. Values are not compared: a
   read that nothing follows from, and two writes of the same number, are dependences too.

   The general run (all_inputs.c) has more touches. An act of it that may not come may have been the last to write, or may not;
   touches of one colour do not meet. So it has a dependence wherever some inputs may have one.

   Cost: in proportion to the touches of the record. */
#include "check/strand_access.h"

#include <string.h>

#include "kernel/machine/state.h"
#include "kernel/step.h"

/* --- The grid --- */

static bool is_parallel(const ax_kernel_params *p, uint32_t d) {
  return p->semantics.count > 0 && p->semantics.v[d] == AX_PARALLEL;
}

uint32_t ax_strands_count(const ax_machine *machine) {
  const ax_kernel_params *p = machine->params;
  uint64_t count = 1, points = 1;
  for (uint32_t d = 0; d < p->grid.count; d++) {
    points *= (uint64_t)p->grid.v[d];
    if (is_parallel(p, d)) count *= (uint64_t)p->grid.v[d];
  }
  return points > 0 && machine->codes[0]->point != NULL ? (uint32_t)count : 1;
}

uint32_t ax_strands_point(const ax_machine *machine, const int64_t *ids) {
  const ax_dims *grid = &machine->params->grid;
  int64_t point = 0;
  for (uint32_t d = 0; d < grid->count; d++) point = point * grid->v[d] + ids[d];
  return (uint32_t)point;
}

ax_point_label ax_strands_label(const ax_machine *machine, uint32_t core, uint32_t pc) {
  const ax_core_code_step *step = &machine->codes[machine->cores[core].body]->steps[pc];
  const ax_step *how = step->kind == AX_STEP_ACT ? step->eqn->prim->step : NULL;
  return (ax_point_label){
      .point = AX_NONE, .inside = step->in_point, .reads = how != NULL && how->access != NULL && how->access->reads};
}

static uint32_t strand_of(const ax_kernel_params *p, uint32_t point) {
  uint32_t strand = 0, weight = 1;
  for (uint32_t d = p->grid.count; d-- > 0;) {
    const uint32_t size = (uint32_t)p->grid.v[d];
    if (is_parallel(p, d)) strand += point % size * weight, weight *= size;
    point /= size;
  }
  return strand;
}

/* --- Acts and whose they are --- */

typedef struct copier { /* an agent that a core has started */
  uint32_t point;       /* that has; AX_NONE: the pipeline */
  uint32_t at;          /* where the core was in the grid */
  uint32_t read;        /* the step by which it has read; AX_NONE */
  uint32_t first;       /* of a store of a result's block: the points of that block, as far as they were not stored .. */
  uint32_t first_change, end_change; /* .. and what they have changed in it */
  bool stores;                       /* .. up to `at` */
} copier;

typedef struct memory { /* a region */
  bool own, written;    /* written: beyond its beginning */
  uint32_t strand;      /* the first that touches it */
  bool several;         /* others do too */
  uint32_t copy;        /* of slots of an operand: the copy that came last; AX_NONE */
  uint32_t stored;      /* of slots of a result: points below are stored */
  uint32_t changed;     /* likewise of changes */
  uint32_t *last;       /* of a result, by strand: the access that has stored a block last; AX_NONE. NULL: none has */
} memory;

typedef struct change { /* an act of a point that writes to the slot of a result */
  uint32_t step, point, touch;
} change;

typedef struct finder {
  const ax_machine *machine;
  const ax_kernel_params *params;
  const ax_act_record *record;
  const ax_point_label *labels;
  uint32_t strands;
  copier *copiers;  /* by agent */
  memory *memories; /* by region */
  uint32_t *slots;  /* by region: 1 + the operand or result whose blocks are in it */
  ax_touches touches;
  ax_strand_access *accesses;
  uint32_t access_capacity;
  change *changes; /* where results may be in the memory of operands */
  uint32_t change_count, change_capacity;
  uint32_t *points, *strand_of; /* by step; AX_NONE: it is of none */
  ax_dependences *out;
} finder;

static bool is_core(const finder *f, uint32_t agent) { return agent < f->machine->core_count; }

/* The point whose act it is; AX_NONE: of none. */
static uint32_t point_of(const finder *f, uint32_t step) {
  const uint32_t agent = f->record->steps[step].agent;
  if (!is_core(f, agent)) return f->copiers[agent].point;
  return f->labels[step].inside ? f->labels[step].point : AX_NONE;
}

static const ax_touch *touch_at(const finder *f, const ax_act *act, uint32_t k) {
  return &f->record->touches.touches[act->touch_first + k];
}

/* --- Memory --- */

static bool is_pinned(const ax_kernel_params *p, uint32_t i) {
  return p->blocks.v[i].space == AX_SPACE_HBM || p->blocks.v[i].space == AX_SPACE_ANY;
}

/* The operand or result that has its blocks in the k-th memory of the pipeline's scope; AX_NONE: its barriers. */
static uint32_t slot_of(const ax_kernel_params *p, uint32_t k) {
  for (uint32_t i = 0; i < p->blocks.count; i++)
    if (!is_pinned(p, i) && k-- == 0) return i;
  return AX_NONE;
}

/* Scratch that all cores of a device have together. */
static bool is_of_device(const ax_kernel_params *p, uint32_t scratch) {
  const ax_space space = p->scratch.v[scratch].space;
  if (p->scratch_cores.count > 0 && strcmp(p->scratch_cores.name[scratch], AX_SCRATCH_DEVICE) == 0) return true;
  return p->scratch.v[scratch].form == AX_REF && (space == AX_SPACE_HBM || space == AX_SPACE_ANY);
}

static void describe(finder *f, uint32_t region) {
  const ax_machine *machine = f->machine;
  const uint32_t behind = f->record->objects.regions[region].behind, base = behind > 0 ? behind - 1 : region;
  f->memories[region] = (memory){.own = true, .strand = AX_NONE, .copy = AX_NONE};
  if (base < machine->place_count) {
    const uint32_t ref = machine->places[base].ref, first = machine->operand_count + machine->params->outs.count;
    f->memories[region].own = ref >= first && (ref == machine->ref_count || !is_of_device(f->params, ref - first));
    return;
  }
  if (base - machine->place_count >= ax_names_count(machine->names, AX_NAME_PLACE)) return; /* of a branch: no run has it */
  const ax_name_key *key = ax_names_key(machine->names, AX_NAME_PLACE, base - machine->place_count);
  if (machine->codes[machine->cores[key->core].body]->steps[key->site].in_point) return;
  const uint32_t i = slot_of(f->params, key->index);
  f->slots[region] = i == AX_NONE ? 0 : i + 1;
}

static bool is_result(const finder *f, uint32_t region) { return f->slots[region] > f->machine->operand_count; }
static bool is_operand(const finder *f, uint32_t region) { return f->slots[region] > 0 && !is_result(f, region); }

/* Which memory it matters of in which order strands come. */
static void look_over(finder *f) {
  const ax_act_record *r = f->record;
  for (uint32_t s = 0; s < r->step_count; s++) {
    const ax_act *act = &r->steps[s].act;
    const uint32_t agent = r->steps[s].agent, point = point_of(f, s);
    if (act->kind == AX_ACT_START && is_core(f, agent)) {
      f->copiers[act->object].point = point;
      f->copiers[act->object].at = f->labels[s].point;
    }
    for (uint32_t k = 0; k < act->touch_count; k++) {
      memory *m = &f->memories[touch_at(f, act, k)->region];
      const bool write = touch_at(f, act, k)->write && !touch_at(f, act, k)->scope;
      m->written = m->written || (write && (point != AX_NONE || !m->own));
      if (point == AX_NONE) continue;
      const uint32_t strand = strand_of(f->params, point);
      m->several = m->several || (m->strand != AX_NONE && m->strand != strand);
      m->strand = strand;
    }
  }
}

static bool matters(const memory *m) { return m->written && (m->several || !m->own); }

/* --- Accesses --- */

/* The touch of the record, or of these bytes alone. */
static ax_status add_access(finder *f, uint32_t step, uint32_t point, const ax_touch *touch, const ax_bytes *runs, uint32_t count) {
  const ax_touches *pool = &f->record->touches;
  const uint32_t number = f->touches.touch_count, agent = f->record->steps[step].agent;
  if (count == 0) return AX_OK;
  AX_TRY(ax_grow(&f->accesses, sizeof f->accesses[0], number, 1, &f->access_capacity));
  f->accesses[number] = (ax_strand_access){.step = step,
                                           .point = point,
                                           .strand = point == AX_NONE ? AX_NONE : strand_of(f->params, point),
                                           .own = f->memories[touch->region].own,
                                           .reads = is_core(f, agent) && f->labels[step].reads,
                                           .may = f->labels[step].may,
                                           .store = AX_NONE,
                                           .next = AX_NONE};
  if (runs == pool->runs + touch->first && count == touch->count) return ax_touches_copy(&f->touches, pool, touch);
  return ax_touches_add(&f->touches, touch->region, touch->write, touch->scope, count, runs);
}

static ax_status add_touch(finder *f, uint32_t step, uint32_t point, const ax_touch *touch) {
  return add_access(f, step, point, touch, f->record->touches.runs + touch->first, touch->count);
}

static uint64_t bytes_of(const ax_touches *pool, const ax_touch *touch) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < touch->count; k++) bytes += pool->runs[touch->first + k].end - pool->runs[touch->first + k].begin;
  return bytes;
}

/* Where the bytes of `part`, of a slot, come from: the k-th byte that a copy writes is the k-th that it has read. */
static ax_status find_sources(const ax_touches *pool, const ax_touch *part, const ax_touch *from, const ax_touch *to,
                              ax_bytes **out, uint32_t *count) {
  uint32_t source = from->first, target = to->first, wanted = part->first, capacity = 0;
  uint64_t done_source = 0, done_target = 0; /* of the present runs */
  *out = NULL, *count = 0;
  while (target < to->first + to->count && wanted < part->first + part->count) {
    const ax_bytes s = pool->runs[source], t = pool->runs[target], w = pool->runs[wanted];
    const uint64_t rest_s = s.end - s.begin - done_source, rest_t = t.end - t.begin - done_target,
                   rest = rest_s < rest_t ? rest_s : rest_t;
    const ax_bytes here = {t.begin + done_target, t.begin + done_target + rest};
    const uint64_t low = w.begin > here.begin ? w.begin : here.begin, high = w.end < here.end ? w.end : here.end;
    if (low < high) {
      const uint64_t at = s.begin + done_source + (low - here.begin);
      AX_TRY(ax_grow(out, sizeof(*out)[0], *count, 1, &capacity));
      if (*count > 0 && (*out)[*count - 1].end == at)
        (*out)[*count - 1].end += high - low;
      else
        (*out)[(*count)++] = (ax_bytes){at, at + (high - low)};
    }
    if (w.end <= here.end) {
      wanted++;
      continue;
    }
    done_source += rest, done_target += rest;
    if (done_source == s.end - s.begin) source++, done_source = 0;
    if (done_target == t.end - t.begin) target++, done_target = 0;
  }
  return AX_OK;
}

/* A point loads from a slot of an operand: it reads what a copy has brought there, if that can be written. */
static ax_status add_sources(finder *f, uint32_t step, uint32_t point, const ax_touch *part) {
  const uint32_t copy = f->memories[part->region].copy;
  if (copy == AX_NONE) return AX_OK;
  const ax_touches *pool = &f->record->touches;
  const ax_act *wrote = &f->record->steps[copy].act, *read = &f->record->steps[f->copiers[f->record->steps[copy].agent].read].act;
  const ax_touch *to = touch_at(f, wrote, 0), *from = touch_at(f, read, 0);
  const bool exact =
      read->touch_count == 1 && wrote->touch_count == 1 && from->colour == 0 && bytes_of(pool, from) == bytes_of(pool, to);
  if (exact && matters(&f->memories[from->region])) {
    ax_bytes *runs;
    uint32_t count;
    ax_status status = find_sources(pool, part, from, to, &runs, &count);
    if (status == AX_OK) status = add_access(f, step, point, from, runs, count);
    ax_free(runs);
    return status;
  }
  for (uint32_t k = 0; k < read->touch_count && !exact; k++)
    if (matters(&f->memories[touch_at(f, read, k)->region])) AX_TRY(add_touch(f, step, point, touch_at(f, read, k)));
  return AX_OK;
}

static ax_status add_of_point(finder *f, uint32_t step, uint32_t point, const ax_touch *touch) {
  if (touch->write && is_result(f, touch->region) && f->params->aliases.count > 0) {
    AX_TRY(ax_grow(&f->changes, sizeof f->changes[0], f->change_count, 1, &f->change_capacity));
    f->changes[f->change_count++] = (change){step, point, (uint32_t)(touch - f->record->touches.touches)};
  }
  if (matters(&f->memories[touch->region])) AX_TRY(add_touch(f, step, point, touch));
  const bool loads = !touch->write || (is_core(f, f->record->steps[step].agent) && f->labels[step].reads);
  return loads && is_operand(f, touch->region) ? add_sources(f, step, point, touch) : AX_OK;
}

/* Of a block that is stored: what its strand has changed in it. store: the access that stores it. */
static ax_status add_changes(finder *f, uint32_t step, uint32_t store, const ax_touch *to) {
  const ax_touches *pool = &f->record->touches;
  const copier *c = &f->copiers[f->record->steps[step].agent];
  const ax_act *read = &f->record->steps[c->read].act;
  const ax_touch *from = touch_at(f, read, 0);
  const bool exact = read->touch_count == 1 && to->colour == 0 && bytes_of(pool, from) == bytes_of(pool, to);
  for (uint32_t k = c->first_change; k < c->end_change; k++) {
    const change *made = &f->changes[k];
    const ax_touch *part = &pool->touches[made->touch];
    if (f->slots[part->region] != f->slots[from->region] || strand_of(f->params, made->point) != f->accesses[store].strand)
      continue;
    ax_bytes *runs = NULL;
    uint32_t count = 0;
    const bool known = exact && part->region == from->region;
    ax_status status = known ? find_sources(pool, part, to, from, &runs, &count) : AX_OK;
    const uint32_t number = f->touches.touch_count;
    if (status == AX_OK)
      status = known ? add_access(f, made->step, made->point, to, runs, count) : add_touch(f, made->step, made->point, to);
    ax_free(runs);
    AX_TRY(status);
    if (f->touches.touch_count > number) f->accesses[number].store = store;
  }
  return AX_OK;
}

/* Notes which store of a strand comes after which. */
static ax_status add_store_of(finder *f, uint32_t step, uint32_t point, const ax_touch *touch) {
  const uint32_t number = f->touches.touch_count;
  memory *m = &f->memories[touch->region];
  AX_TRY(add_touch(f, step, point, touch));
  if (m->last == NULL) {
    m->last = ax_alloc((size_t)f->strands * sizeof m->last[0]);
    if (m->last == NULL) return ax_out_of_memory((size_t)f->strands * sizeof m->last[0]);
    memset(m->last, 0xff, (size_t)f->strands * sizeof m->last[0]);
  }
  uint32_t *last = &m->last[f->accesses[number].strand];
  f->accesses[number].is_store = true;
  if (*last != AX_NONE) f->accesses[*last].next = number;
  *last = number;
  return f->params->aliases.count > 0 ? add_changes(f, step, number, touch) : AX_OK;
}

/* A block of a result is stored, for the points since the last one was: by each of their strands. Of those two are told. */
static ax_status add_store(finder *f, uint32_t step, const copier *c, const ax_touch *touch) {
  AX_TRY(add_store_of(f, step, c->first, touch));
  const uint32_t strand = strand_of(f->params, c->first);
  for (uint32_t point = c->first + 1; point <= c->at; point++)
    if (strand_of(f->params, point) != strand) return add_store_of(f, step, point, touch);
  return AX_OK;
}

/* An act of the pipeline. */
static ax_status add_of_pipeline(finder *f, uint32_t step, const ax_touch *touch) {
  const uint32_t agent = f->record->steps[step].agent;
  copier *c = &f->copiers[agent];
  memory *m = &f->memories[touch->region];
  const bool copies = !is_core(f, agent);
  if (copies && !touch->write && c->read == AX_NONE) {
    c->read = step;
    c->stores = is_result(f, touch->region) && c->at != AX_NONE;
    c->first = m->stored;
    if (c->stores) {
      c->first_change = m->changed, c->end_change = f->change_count;
      m->stored = c->at + 1, m->changed = f->change_count;
    }
  } else if (copies && touch->write && c->stores && !m->own)
    return c->first <= c->at ? add_store(f, step, c, touch) : AX_OK;
  else if (copies && touch->write && is_operand(f, touch->region))
    m->copy = step;
  return touch->write && m->own && matters(m) ? add_touch(f, step, AX_NONE, touch) : AX_OK;
}

static ax_status add_step(finder *f, uint32_t step) {
  const ax_act *act = &f->record->steps[step].act;
  const uint32_t agent = f->record->steps[step].agent, point = point_of(f, step);
  const bool started = !is_core(f, agent) && !f->record->objects.agents[agent].initial;
  for (uint32_t k = 0; k < act->touch_count; k++) {
    const ax_touch *touch = touch_at(f, act, k);
    if (touch->scope) continue;
    if (point != AX_NONE)
      AX_TRY(add_of_point(f, step, point, touch));
    else if (started || is_core(f, agent))
      AX_TRY(add_of_pipeline(f, step, touch));
  }
  return AX_OK;
}

/* --- All of it --- */

/* For a store of a result's block: the last act by which the strand of `point` has written to the slot; the store itself,
   if it has not. */
static uint32_t writer_of(const finder *f, uint32_t step, uint32_t point) {
  const ax_act_record *r = f->record;
  const uint32_t agent = step != AX_NONE ? r->steps[step].agent : 0;
  const copier *c = &f->copiers[agent];
  if (step == AX_NONE || is_core(f, agent) || !c->stores) return step;
  const uint32_t slot = touch_at(f, &r->steps[c->read].act, 0)->region, strand = strand_of(f->params, point);
  for (uint32_t s = c->read; s-- > 0;) {
    const uint32_t of = point_of(f, s);
    if (of == AX_NONE || of < c->first || of > c->at || strand_of(f->params, of) != strand) continue;
    for (uint32_t k = 0; k < r->steps[s].act.touch_count; k++)
      if (touch_at(f, &r->steps[s].act, k)->region == slot && touch_at(f, &r->steps[s].act, k)->write) return s;
  }
  return step;
}

static void find_writers(const finder *f, ax_dependence *d) {
  if (d->fault != AX_STRAND_MEETS) return;
  const ax_dependence found = *d;
  d->later = writer_of(f, found.later, found.later_point);
  d->earlier = writer_of(f, found.earlier, found.earlier_point);
  if (d->earlier <= d->later) return;
  const uint32_t step = d->earlier;
  d->earlier = d->later, d->later = step;
  d->earlier_point = found.later_point, d->later_point = found.earlier_point;
}

static ax_status go_through(finder *f) {
  const ax_act_objects *o = &f->record->objects;
  for (uint32_t a = 0; a < o->agent_count; a++) f->copiers[a] = (copier){.point = AX_NONE, .at = AX_NONE, .read = AX_NONE};
  for (uint32_t r = 0; r < o->region_count; r++) describe(f, r);
  look_over(f);
  for (uint32_t s = 0; s < f->record->step_count; s++) {
    f->points[s] = point_of(f, s);
    f->strand_of[s] = f->points[s] == AX_NONE ? AX_NONE : strand_of(f->params, f->points[s]);
    AX_TRY(add_step(f, s));
  }
  AX_TRY(ax_strands_judge_counts(f->record, f->points, f->strand_of, f->strands, f->machine->device_count > 1, f->out));
  return f->touches.touch_count > 0 ? ax_strands_judge_memory(f->record, &f->touches, f->accesses, f->out) : AX_OK;
}

ax_status ax_strands_find(const ax_machine *machine, const ax_act_record *record, const ax_point_label *labels, uint32_t most,
                          ax_act_findings *out) {
  ax_dependences found = {.most = most};
  const ax_act_objects *o = &record->objects;
  finder f = {.machine = machine,
              .params = machine->params,
              .record = record,
              .labels = labels,
              .strands = ax_strands_count(machine),
              .out = &found};
  f.copiers = ax_alloc(((size_t)o->agent_count + 1) * sizeof f.copiers[0]);
  f.memories = ax_calloc((size_t)o->region_count + 1, sizeof f.memories[0]);
  f.slots = ax_calloc((size_t)o->region_count + 1, sizeof f.slots[0]);
  f.points = ax_alloc(((size_t)record->step_count + 1) * sizeof f.points[0]);
  f.strand_of = ax_alloc(((size_t)record->step_count + 1) * sizeof f.strand_of[0]);
  const bool there = f.copiers != NULL && f.memories != NULL && f.slots != NULL && f.points != NULL && f.strand_of != NULL;
  ax_status status = there ? go_through(&f) : ax_out_of_memory(0);
  for (uint32_t k = 0; k < found.count && status == AX_OK; k++) {
    ax_act_finding made;
    find_writers(&f, &found.items[k]);
    status = ax_dependence_tell(machine, record, f.slots, &found.items[k], &made);
    if (status == AX_OK) status = ax_act_findings_add(out, made);
  }
  for (uint32_t r = 0; f.memories != NULL && r < o->region_count; r++) ax_free(f.memories[r].last);
  void *memory[] = {f.copiers, f.memories, f.slots, f.points, f.strand_of, f.accesses, f.changes};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  ax_touches_deinit(&f.touches);
  ax_dependences_deinit(&found);
  return status;
}
