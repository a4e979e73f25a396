/* The verifier of instruction lists. It checks anew the promises of instr.h, as far as the passes have come.

     flat           one END, at the end; jumps stay inside their region, or leave it for the next instruction behind it; regions are
                    entered at their beginning; loops and branches are nested
     synchronised   every awaited signal is given, in the region that the wait counts, before the wait or in the iteration before
     placed         operands lie inside their spaces; an allocation lies in one place; every read finds the value last written
                    there; the contents of scratch memory are gone once an activation may have parked
     numbered       counters and tables of counters are those of their events
     pushes         pushes agree with their operations' exchanges, and their members exist; each way of putting pieces has what it
                    relies on (verify_pushes.c)
     finished       `scratch` is set wherever scratch memory is needed, now or later

   The contents of memory are found by walking the list once, as an activation would that takes every case of a branch and every
   loop. The body of each loop is walked a second time, for values that one iteration leaves to the next. A loop in a loop is not
   repeated again, so the cost is the length of the list times the depth of its loops.

   Only a defect of Axle itself breaks any of this, so the status is AX_INTERNAL. */
#include <string.h>

#include "assemble/occupancy.h"
#include "assemble/verify.h"
#include "ir/prim.h"

typedef struct verifier {
  const ax_assembly *a;
  ax_instrs_properties has;
  ax_arena arena;
  uint32_t *region;    /* by position: the innermost region around it */
  uint32_t *end;       /* by position of a LOOP: that of its NEXT */
  uint32_t *signalled; /* by event: the position of its signal; AX_NONE */
  int64_t *home;       /* by allocation: its address, counted through all spaces; -1: none */
  int64_t *begin;      /* by space: its beginning in the same count */
  ax_occupancy memory; /* by allocation */
  const uint32_t
      *known[8]; /* tables of counters already checked, by count and first counter */
  uint32_t known_count[8], known_next;
  uint32_t fused_loop_end; /* earlier instructions are inside a fused loop that was reached */
} verifier;

static const ax_instr *at(const verifier *v, uint32_t i) { return &v->a->instrs[i]; }

static bool is_sync(const ax_instr *instr) { return instr->kind == AX_INSTR_WAIT || instr->kind == AX_INSTR_SIGNAL; }

/* --- Structure --- */

static ax_status walk_region(verifier *v, uint32_t *i, uint32_t region);

/* Says that only waits and signals stand between `from` and `target`. */
static bool comes_next(const verifier *v, uint32_t from, uint32_t target) {
  if (target <= from || target >= v->a->instr_count) return false;
  for (uint32_t k = from + 1; k < target; k++)
    if (!is_sync(at(v, k))) return false;
  return true;
}

static ax_status wrong_target(const ax_instr *instr, uint32_t target) {
  return ax_error(AX_INTERNAL, "jumps to %u, out of its place (%d)", target, (int)instr->kind);
}

/* Checks a region. Instructions before its ENTER belong to the region around it. *i: the instruction before; then the one that
   ends the region. */
static ax_status walk_inside(verifier *v, uint32_t *i, uint32_t parent, ax_instr_kind end) {
  uint32_t entry = *i + 1;
  const ax_assembly *a = v->a;
  while (entry < a->instr_count && is_sync(at(v, entry))) v->region[entry++] = parent;
  if (entry >= a->instr_count || at(v, entry)->kind != AX_INSTR_ENTER) return ax_error(AX_INTERNAL, "no region is entered");
  uint32_t region = at(v, entry)->region;
  if (region == 0 || region >= a->region_count) return ax_error(AX_INTERNAL, "enters region %u of %u", region, a->region_count);
  if (a->regions[region].begin != entry || a->regions[region].parent != parent)
    return ax_error(AX_INTERNAL, "enters region %u, which begins at %u in %u", region, a->regions[region].begin,
                    a->regions[region].parent);
  v->region[entry] = region;
  *i = entry + 1;
  AX_TRY(walk_region(v, i, region));
  return at(v, *i)->kind == end ? AX_OK : ax_error(AX_INTERNAL, "region %u ends with %d", region, (int)at(v, *i)->kind);
}

static ax_status walk_loop(verifier *v, uint32_t *i, uint32_t region) {
  uint32_t begin = *i, test = AX_NONE;
  const ax_instr *loop = at(v, begin);
  if (loop->loop >= v->a->plan->loop_count) return ax_error(AX_INTERNAL, "loop %u of %u", loop->loop, v->a->plan->loop_count);
  if (loop->trips < 0) {
    AX_TRY(walk_inside(v, i, region, AX_INSTR_TEST));
    test = *i;
  }
  AX_TRY(walk_inside(v, i, region, AX_INSTR_NEXT));
  const ax_instr *next = at(v, *i);
  if (next->loop != loop->loop || next->trips != loop->trips)
    return ax_error(AX_INTERNAL, "loop %u ends as loop %u", loop->loop, next->loop);
  if (!comes_next(v, begin, next->target)) return wrong_target(next, next->target);
  if (!comes_next(v, *i, loop->target)) return wrong_target(loop, loop->target);
  if (test != AX_NONE && at(v, test)->target != loop->target) return wrong_target(at(v, test), at(v, test)->target);
  v->end[begin] = *i;
  return AX_OK;
}

static ax_status walk_branch(verifier *v, uint32_t *i, uint32_t region) {
  const ax_instr *branch = at(v, *i);
  uint32_t begin = *i, first = AX_NONE;
  if (branch->branch.count == 0) return ax_error(AX_INTERNAL, "a branch without cases");
  for (uint32_t k = 0; k < branch->branch.count; k++) {
    uint32_t before = *i;
    AX_TRY(walk_inside(v, i, region, AX_INSTR_JUMP));
    if (!comes_next(v, before, branch->branch.targets[k])) return wrong_target(branch, branch->branch.targets[k]);
    if (first == AX_NONE) first = at(v, *i)->target;
    if (at(v, *i)->target != first) return wrong_target(at(v, *i), at(v, *i)->target);
  }
  v->end[begin] = *i;
  return comes_next(v, *i, first) ? AX_OK : wrong_target(at(v, *i), first);
}

/* Walks from *i to the instruction that ends the region (TEST, NEXT, JUMP or END), at which *i stays. */
static ax_status walk_region(verifier *v, uint32_t *i, uint32_t region) {
  for (; *i < v->a->instr_count; ++*i) {
    v->region[*i] = region;
    switch (at(v, *i)->kind) {
      case AX_INSTR_LOOP: AX_TRY(walk_loop(v, i, region)); break;
      case AX_INSTR_BRANCH: AX_TRY(walk_branch(v, i, region)); break;
      case AX_INSTR_ENTER: return ax_error(AX_INTERNAL, "instruction %u enters region %u", *i, at(v, *i)->region);
      case AX_INSTR_TEST:
      case AX_INSTR_NEXT:
      case AX_INSTR_JUMP:
      case AX_INSTR_END: return AX_OK;
      default: break;
    }
    v->region[*i] = region; /* the end of a loop or branch is in the region of its beginning */
  }
  return ax_error(AX_INTERNAL, "the list has no end");
}

/* The bits that `skip` may have: axes of the mesh, or, once owners are numbered, one for each set of owners. */
static ax_axis_set skippable(const ax_compiled *c) {
  if (c->map == NULL || c->code_count == 0) return ax_all_axes(&c->plan->mesh);
  return c->owned_count < 64 ? ((ax_axis_set)1 << c->owned_count) - 1 : ~(ax_axis_set)0;
}

static ax_status check_structure(verifier *v) {
  uint32_t i = 0, last = v->a->instr_count - 1;
  AX_TRY(walk_region(v, &i, 0));
  if (i != last || at(v, i)->kind != AX_INSTR_END) return ax_error(AX_INTERNAL, "ends at %u of %u", i, last);
  for (i = 0; i <= last; i++)
    if ((at(v, i)->skip & ~skippable(v->a->compiled)) != 0)
      return ax_error(AX_INTERNAL, "instruction %u: skipped along axes that the mesh has not", i);
  for (i = 0; i < v->a->access_count; i++)
    if (v->a->accesses[i].position > last || v->a->ops[v->a->accesses[i].position] == NULL)
      return ax_error(AX_INTERNAL, "access %u is of instruction %u, which touches nothing", i, v->a->accesses[i].position);
  return AX_OK;
}

/* --- Waits --- */

static ax_status add_signal(verifier *v, uint32_t event, uint32_t position) {
  if (event >= v->a->event_count) return ax_error(AX_INTERNAL, "event %u of %u", event, v->a->event_count);
  if (v->signalled[event] != AX_NONE)
    return ax_error(AX_INTERNAL, "event %u is signalled at %u already", event, v->signalled[event]);
  v->signalled[event] = position;
  return AX_OK;
}

static ax_status find_signals(verifier *v) {
  const ax_assembly *a = v->a;
  v->signalled = ax_arena_alloc(&v->arena, a->event_count * sizeof v->signalled[0]);
  if (v->signalled == NULL) return ax_out_of_memory(a->event_count * sizeof v->signalled[0]);
  if (a->event_count > 0) memset(v->signalled, 0xff, a->event_count * sizeof v->signalled[0]);
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (at(v, i)->kind == AX_INSTR_SIGNAL) AX_TRY(add_signal(v, at(v, i)->sync.event, i));
  for (uint32_t i = 0; i < a->access_count; i++)
    if (a->accesses[i].exchange != NULL) AX_TRY(add_signal(v, a->accesses[i].event, a->accesses[i].position));
  return AX_OK;
}

static bool is_inside(const verifier *v, uint32_t region, uint32_t around) {
  while (region != around && region != 0) region = v->a->regions[region].parent;
  return region == around;
}

/* If the wait is in the region that it counts, either the signal of this round comes before it, or it waits for that of the last
   round. */
static ax_status check_wait(const verifier *v, uint32_t i) {
  const ax_instr *wait = at(v, i);
  if (wait->sync.event >= v->a->event_count)
    return ax_error(AX_INTERNAL, "awaits event %u of %u", wait->sync.event, v->a->event_count);
  uint32_t signal = v->signalled[wait->sync.event];
  if (signal == AX_NONE) return ax_error(AX_INTERNAL, "awaits event %u, which nobody signals", wait->sync.event);
  if (wait->sync.region != v->region[signal])
    return ax_error(AX_INTERNAL, "counts region %u, but event %u is signalled in %u", wait->sync.region, wait->sync.event,
                    v->region[signal]);
  int64_t delta = is_inside(v, v->region[i], wait->sync.region) && signal > i ? -1 : 0;
  if (wait->sync.delta == delta) return AX_OK;
  return ax_error(AX_INTERNAL, "awaits event %u, signalled at %u, with delta %d", wait->sync.event, signal, (int)wait->sync.delta);
}

/* --- Memory --- */

/* How member k uses memory. An operand that an earlier member wrote is not read from before. */
static ax_op_use operand_of_rows(const ax_buffer *buffers, const ax_rows *rows, uint32_t k) {
  uint32_t member = 0, first = 0;
  while (k - first >= ax_op_slots(&rows->members[member])) first += ax_op_slots(&rows->members[member++]);
  ax_op_use o = ax_op_slot(&rows->members[member], k - first);
  for (uint32_t m = 0; m < member; m++)
    for (uint32_t i = 0; i < ax_op_slots(&rows->members[m]); i++) {
      const ax_op_use earlier = ax_op_slot(&rows->members[m], i);
      if (earlier.writes && buffers[earlier.buffer].allocation == buffers[o.buffer].allocation) o.reads = false;
    }
  return o;
}

static ax_op_use operand_of(const ax_assembly *a, const ax_instr *instr, const ax_op *op, uint32_t k) {
  switch (instr->kind) {
    case AX_INSTR_KERNEL:
    case AX_INSTR_GEMM: return ax_op_slot(op, k);
    case AX_INSTR_ROWS: return operand_of_rows(a->plan->buffers, op->rows, k);
    case AX_INSTR_CALL:
    case AX_INSTR_EVAL:
      return k < op->eqn->in_count ? (ax_op_use){op->eval.in[k], true, false}
                                   : (ax_op_use){op->eval.out[k - op->eqn->in_count], false, true};
    case AX_INSTR_ROUTINE:
      return k < op->routine->in_count ? (ax_op_use){op->routine->buffers[k], true, false}
                                       : (ax_op_use){op->routine->buffers[k], op->routine->updates, true};
    case AX_INSTR_CHECK: return (ax_op_use){op->check.buffers[k], true, false};
    case AX_INSTR_RAGGED: {
      ax_ragged_buffer list[AX_RAGGED_MOST];
      (void)ax_ragged_buffers(op->ragged, op->step, list);
      return (ax_op_use){list[k].buffer, list[k].reads, list[k].writes};
    }
    case AX_INSTR_CORES: {
      const ax_cores_buffer b = ax_cores_buffer_at(op->cores, op->cores_step, k);
      return (ax_op_use){b.buffer, b.reads, b.writes};
    }
    case AX_INSTR_PUSH:
    case AX_INSTR_CLEAR: {
      uint32_t buffers[AX_EXCHANGE_BUFFERS];
      const bool last = k + 1 == ax_exchange_buffers(a, op->exchange, buffers);
      return (ax_op_use){buffers[k], !last && instr->kind == AX_INSTR_PUSH, last};
    }
    case AX_INSTR_SEND: return (ax_op_use){op->message->buffer, true, false};
    case AX_INSTR_RECEIVE: return (ax_op_use){op->message->buffer, false, true};
    case AX_INSTR_TEST: return (ax_op_use){op->loop.condition, true, false};
    default: return (ax_op_use){op->branch.index, true, false};
  }
}

static uint32_t operand_count(const ax_assembly *a, const ax_instr *instr, const ax_op *op) {
  switch (instr->kind) {
    case AX_INSTR_KERNEL: return op->kernel.kernel->slot_count;
    case AX_INSTR_ROWS: return op->rows->slot_count;
    case AX_INSTR_GEMM: return 3;
    case AX_INSTR_CALL:
    case AX_INSTR_EVAL: return op->eqn->in_count + op->eqn->out_count;
    case AX_INSTR_ROUTINE: return op->routine->in_count + op->routine->out_count;
    case AX_INSTR_CHECK: return op->check.count;
    case AX_INSTR_RAGGED: {
      ax_ragged_buffer list[AX_RAGGED_MOST];
      return ax_ragged_buffers(op->ragged, op->step, list);
    }
    case AX_INSTR_CORES: return ax_cores_buffer_count(op->cores, op->cores_step);
    case AX_INSTR_PUSH:
    case AX_INSTR_CLEAR: return ax_exchange_buffers(a, op->exchange, (uint32_t[AX_EXCHANGE_BUFFERS]){0});
    case AX_INSTR_SEND:
    case AX_INSTR_RECEIVE:
    case AX_INSTR_TEST:
    case AX_INSTR_BRANCH: return 1;
    default: return 0;
  }
}

/* The buffer is found by each device's pointer to a part of a source (pointers.c). */
static ax_status check_pointer(verifier *v, const ax_ref *ref, uint32_t buffer) {
  const ax_assembly *a = v->a;
  const ax_buffer *b = &a->plan->buffers[buffer];
  const ax_pointed *pointed = a->pointed != NULL ? &a->pointed[b->allocation] : NULL;
  if (pointed == NULL || !pointed->has_pointers || pointed->space != ref->space ||
      ref->first != a->compiled->spaces[ref->space].first)
    return ax_error(AX_INTERNAL, "b%u is not found by its pointers", buffer);
  if (ref->step != (b->loop != AX_NONE ? b->step : 0) || (ref->step != 0 && ref->loop != b->loop))
    return ax_error(AX_INTERNAL, "b%u is not found as its loop says", buffer);
  const ax_resident *memory = &a->residents[pointed->memory];
  const int64_t home = ref->offset - b->offset;
  if (home != memory->offset) return ax_error(AX_INTERNAL, "b%u is not where b%u is", buffer, pointed->memory);
  v->home[pointed->memory] = home + v->begin[memory->space];
  return AX_OK;
}

/* A POINT leads each device from a part to a part, no two from one to the same. */
static ax_status check_point(verifier *v, const ax_instr *instr) {
  const ax_assembly *a = v->a;
  const ax_point *point = instr->point;
  if (point == NULL || a->pointed == NULL || a->pointed[point->to].memory != point->memory)
    return ax_error(AX_INTERNAL, "points to another allocation");
  if (!a->pointed[point->to].has_pointers || point->to_pointers != a->compiled->spaces[a->pointed[point->to].space].first)
    return ax_error(AX_INTERNAL, "sets pointers that b%u has not", point->to);
  if (instr->skip != 0) return ax_error(AX_INTERNAL, "is passed over by devices that have pointers");
  bool *seen = point->next != NULL ? ax_arena_alloc(&v->arena, point->parts) : NULL;
  if (point->next != NULL && seen == NULL) return ax_out_of_memory(point->parts);
  for (uint32_t i = 0; i < point->parts && point->next != NULL; i++) {
    if (point->next[i] >= point->parts || seen[point->next[i]])
      return ax_error(AX_INTERNAL, "leads from part %u to part %u of %u", i, point->next[i], point->parts);
    seen[point->next[i]] = true;
  }
  return AX_OK;
}

static ax_status check_ref(verifier *v, const ax_ref *ref, uint32_t buffer) {
  const ax_compiled *c = v->a->compiled;
  const ax_buffer *b = &v->a->plan->buffers[buffer], *allocation = &v->a->plan->buffers[b->allocation];
  if (ref->space < c->space_count && c->spaces[ref->space].kind == AX_SPACE_POINTERS) return check_pointer(v, ref, buffer);
  if (ref->space >= c->space_count) return ax_error(AX_INTERNAL, "b%u is in space %u of %u", buffer, ref->space, c->space_count);
  const ax_part_space *space = &c->spaces[ref->space];
  int64_t home = ref->offset - b->offset;
  if (ref->first != space->first || ref->place == NULL || ref->step != (b->loop != AX_NONE ? b->step : 0) ||
      (ref->step != 0 && ref->loop != b->loop))
    return ax_error(AX_INTERNAL, "b%u is not found as its space says", buffer);
  if (space->kind != AX_SPACE_SCRATCH && space->kind != AX_SPACE_CONST && c->sets[space->set].axes != allocation->axes)
    return ax_error(AX_INTERNAL, "b%u is in space %u, of other axes", buffer, ref->space);
  if (home < 0 || home + ax_buffer_bytes(allocation) > space->bytes)
    return ax_error(AX_INTERNAL, "b%u is at %lld of the %lld bytes of space %u", buffer, (long long)home, (long long)space->bytes,
                    ref->space);
  home += v->begin[ref->space];
  if (v->home[b->allocation] >= 0 && v->home[b->allocation] != home)
    return ax_error(AX_INTERNAL, "b%u is in two places", b->allocation);
  v->home[b->allocation] = home;
  return AX_OK;
}

/* Says that the operand is a local allocation, which has no memory but a block of rows. */
static bool is_local(const ax_instr *instr, uint32_t k) {
  return instr->kind == AX_INSTR_ROWS && instr->rows->rows->slots[k].row_bytes != 0;
}

/* The operand as it was before the code of a kernel moved it (codegen.c). */
static ax_ref placed_ref(const ax_instr *instr, uint32_t k) {
  ax_ref ref = instr->refs[k];
  if (instr->kind == AX_INSTR_KERNEL && instr->kernel.later != NULL) ref.offset -= instr->kernel.later[k];
  return ref;
}

/* Where the room of an instruction begins, in the count through all spaces; -1: it has none. */
static int64_t room_of(const verifier *v, const ax_instr *instr) {
  if (!ax_instr_has_room(instr) || instr->room == NULL) return -1;
  return v->begin[instr->room->ref.space] + instr->room->ref.offset;
}

static ax_status check_room(const verifier *v, const ax_instr *instr) {
  if (room_of(v, instr) < 0) return AX_OK;
  const ax_work_room *room = instr->room;
  const ax_part_space *space = &v->a->compiled->spaces[room->ref.space];
  if ((space->kind != AX_SPACE_SCRATCH && space->kind != AX_SPACE_OUTPUT) || room->ref.first != space->first || room->ref.loop != 0 ||
      room->ref.step != 0 || room->ref.offset < 0 || room->ref.offset + (int64_t)room->bytes > space->bytes)
    return ax_error(AX_INTERNAL, "works at %lld of space %u", (long long)room->ref.offset, room->ref.space);
  return AX_OK;
}

static ax_status check_refs(verifier *v, uint32_t i) {
  const ax_instr *instr = at(v, i);
  const ax_op *op = v->a->ops[i];
  if (instr->kind == AX_INSTR_POINT) return check_point(v, instr);
  uint32_t count = op != NULL ? operand_count(v->a, instr, op) : 0;
  if (instr->ref_count != count) return ax_error(AX_INTERNAL, "has %u operands, not %u", instr->ref_count, count);
  for (uint32_t k = 0; k < count; k++)
    if (!is_local(instr, k)) {
      const ax_ref ref = placed_ref(instr, k);
      AX_TRY(check_ref(v, &ref, operand_of(v->a, instr, op, k).buffer));
    }
  return check_room(v, instr);
}

static ax_status same_aliased_allocation(void *context, uint32_t before, uint32_t who) {
  (void)context;
  if (before == who) return AX_OK;
  if (before == AX_NONE) return ax_error(AX_INTERNAL, "reads b%u where nothing was written, or nothing is any more", who);
  return ax_error(AX_INTERNAL, "reads b%u where b%u is by now", who, before);
}

static ax_status any_aliased_allocation(void *context, uint32_t before, uint32_t who) {
  (void)context, (void)before, (void)who;
  return AX_OK;
}

static ax_status move_in(verifier *v, uint32_t allocation, ax_leaves leaves) {
  int64_t bytes = ax_buffer_bytes(&v->a->plan->buffers[allocation]);
  return ax_occupancy_move_in(&v->memory, v->home[allocation], v->home[allocation] + bytes, allocation, leaves, NULL);
}

/* An activation that goes on after it may have parked has other scratch memory. */
static ax_status forget_scratch(verifier *v) {
  const ax_compiled *c = v->a->compiled;
  int64_t begin = v->begin[c->scratch_space];
  return ax_occupancy_move_in(&v->memory, begin, begin + c->spaces[c->scratch_space].bytes, AX_NONE, any_aliased_allocation, NULL);
}

/* The work overwrites what is in its room, where no operand may be. */
static ax_status use_room(verifier *v, const ax_instr *instr) {
  const int64_t begin = room_of(v, instr);
  if (begin < 0) return AX_OK;
  return ax_occupancy_move_in(&v->memory, begin, begin + (int64_t)instr->room->bytes, AX_NONE, any_aliased_allocation, NULL);
}

static ax_status touch(verifier *v, uint32_t i) {
  const ax_instr *instr = at(v, i);
  if (ax_instr_parks(instr)) AX_TRY(forget_scratch(v));
  AX_TRY(use_room(v, instr));
  for (int writing = 0; writing <= 1; writing++)
    for (uint32_t k = 0; k < instr->ref_count; k++) {
      ax_op_use o = operand_of(v->a, instr, v->a->ops[i], k);
      uint32_t allocation = ax_memory_of_allocation(v->a, v->a->plan->buffers[o.buffer].allocation);
      if (is_local(instr, k)) continue;
      if (!writing && v->a->plan->buffers[allocation].kind == AX_BUFFER_CONST) continue; /* equal ones share one place and stay */
      if (writing ? o.writes : o.reads) AX_TRY(move_in(v, allocation, writing ? any_aliased_allocation : same_aliased_allocation));
    }
  return AX_OK;
}

/* Goes through instructions from .. to; if `again`, through the bodies of loops a second time. */
static ax_status go_through(verifier *v, uint32_t from, uint32_t to, bool again) {
  for (uint32_t i = from; i < to; i++) {
    const ax_instr *instr = at(v, i);
    ax_status status = AX_OK;
    if (instr->kind == AX_INSTR_LOOP) {
      uint32_t end = v->end[i];
      if (instr->trips != 0) AX_TRY(go_through(v, i + 1, end, again));
      if (instr->trips != 0 && instr->trips != 1 && again) AX_TRY(go_through(v, i + 1, end, false));
      i = end;
    } else {
      status = touch(v, i);
    }
    if (status == AX_OK) continue;
    return ax_error_context(status, "instruction %u%s%s ", i, instr->eqn != NULL ? ", of " : "",
                            instr->eqn != NULL ? instr->eqn->prim->name : "");
  }
  return AX_OK;
}

/* Collects the offsets where allocations begin and end. */
static ax_status draw_map(verifier *v) {
  const ax_compiled *c = v->a->compiled;
  uint32_t count = 0, allocations = v->a->plan->buffer_count;
  int64_t *offsets = ax_arena_alloc(&v->arena, (2 * ((size_t)allocations + v->a->instr_count) + 2) * sizeof offsets[0]);
  if (offsets == NULL) return ax_out_of_memory(2 * (size_t)allocations * sizeof offsets[0]);
  offsets[count++] = v->begin[c->scratch_space];
  offsets[count++] = v->begin[c->scratch_space] + c->spaces[c->scratch_space].bytes;
  for (uint32_t i = 0; i < allocations; i++) {
    if (v->home[i] < 0) continue;
    offsets[count++] = v->home[i];
    offsets[count++] = v->home[i] + ax_buffer_bytes(&v->a->plan->buffers[i]);
  }
  for (uint32_t i = 0; i < v->a->instr_count; i++) {
    if (room_of(v, at(v, i)) < 0) continue;
    offsets[count++] = room_of(v, at(v, i));
    offsets[count++] = room_of(v, at(v, i)) + (int64_t)at(v, i)->room->bytes;
  }
  return ax_occupancy_init(&v->memory, &v->arena, offsets, count);
}

static ax_status check_memory(verifier *v) {
  const ax_assembly *a = v->a;
  const ax_compiled *c = a->compiled;
  size_t allocations = a->plan->buffer_count;
  int64_t all = 0;
  v->home = ax_arena_alloc(&v->arena, allocations * sizeof v->home[0]);
  v->begin = ax_arena_alloc(&v->arena, c->space_count * sizeof v->begin[0]);
  if (v->home == NULL || v->begin == NULL) return ax_out_of_memory(allocations * sizeof v->home[0]);
  if (allocations > 0) memset(v->home, 0xff, allocations * sizeof v->home[0]);
  for (uint32_t s = 0; s < c->space_count; s++) {
    v->begin[s] = all;
    all += c->spaces[s].bytes;
  }
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_status status = check_refs(v, i);
    if (status != AX_OK) return ax_error_context(status, "instruction %u: ", i);
  }
  AX_TRY(draw_map(v));
  for (uint32_t i = 0; i < allocations; i++)
    if (a->plan->buffers[i].kind != AX_BUFFER_TEMP && a->plan->buffers[i].allocation == i && v->home[i] >= 0)
      AX_TRY(move_in(v, i, any_aliased_allocation));
  AX_TRY(go_through(v, 0, a->instr_count, true));
  for (uint32_t k = 0; k < a->plan->out_count; k++)
    if (v->home[ax_memory_of_allocation(a, a->plan->buffers[a->plan->out[k]].allocation)] >= 0)
      AX_TRY(move_in(v, ax_memory_of_allocation(a, a->plan->buffers[a->plan->out[k]].allocation), same_aliased_allocation));
  return AX_OK;
}

/* --- Counters and exchanges --- */

/* Checks a table by device: each entry is below `count`, or AX_NONE. */
static ax_status check_table(verifier *v, const uint32_t *table, uint32_t count) {
  if (table == NULL) return ax_error(AX_INTERNAL, "there is no table of counters");
  for (uint32_t i = 0; i < AX_COUNT(v->known); i++)
    if (v->known[i] == table && v->known_count[i] == count) return AX_OK;
  for (uint32_t d = 0; d < v->a->compiled->devices; d++)
    if (table[d] >= count && table[d] != AX_NONE)
      return ax_error(AX_INTERNAL, "device %u has counter %u of %u", d, table[d], count);
  v->known[v->known_next] = table;
  v->known_count[v->known_next] = count;
  v->known_next = (v->known_next + 1) % AX_COUNT(v->known);
  return AX_OK;
}

static ax_status check_events(verifier *v) {
  const ax_compiled *c = v->a->compiled;
  for (uint32_t i = 0; i < c->event_count; i++) {
    const ax_event *event = &c->events[i];
    if (event->first > c->counter_count || event->count > c->counter_count - event->first || event->times == NULL)
      return ax_error(AX_INTERNAL, "event %u has counters %u to %u of %u", i, event->first, event->first + event->count,
                      c->counter_count);
    AX_TRY(check_table(v, event->signal, event->count));
  }
  return AX_OK;
}

static ax_status check_counters(verifier *v, const ax_instr *instr) {
  const ax_event *event = &v->a->compiled->events[instr->sync.event];
  if (instr->kind == AX_INSTR_WAIT || (v->has & AX_INSTRS_FINISHED) != 0) AX_TRY(check_table(v, instr->sync.counter, event->count));
  if ((v->has & AX_INSTRS_FINISHED) == 0 || (instr->sync.first == event->first && instr->sync.times == event->times)) return AX_OK;
  return ax_error(AX_INTERNAL, "its counters are not those of event %u", instr->sync.event);
}

static ax_status check_push(verifier *v, const ax_instr *instr, const ax_exchange *exchange) {
  const ax_compiled *c = v->a->compiled;
  const ax_push *push = instr->push;
  if (push == NULL || push->exchange != exchange) return ax_error(AX_INTERNAL, "pushes for another exchange");
  if (push->event >= c->event_count || push->in_set >= c->set_count || push->out_set >= c->set_count)
    return ax_error(AX_INTERNAL, "has event %u and sets %u, %u", push->event, push->in_set, push->out_set);
  if (push->members != ax_axis_set_size(exchange->axes, &v->a->plan->mesh))
    return ax_error(AX_INTERNAL, "has %u members", push->members);
  for (uint32_t i = 0; i < push->members; i++)
    if (push->place[i] >= c->sets[push->out_set].size || push->in_place[i] >= c->sets[push->in_set].size)
      return ax_error(AX_INTERNAL, "member %u is nowhere", i);
  return check_table(v, push->number, push->members);
}

static ax_status check_turns(verifier *v, const ax_instr *instr) {
  const ax_compiled *c = v->a->compiled;
  if (instr->skip != 0) return ax_error(AX_INTERNAL, "is passed over by devices that are to count it");
  if (instr->call.turns == NULL || c->turns >= c->counter_count) return ax_error(AX_INTERNAL, "has no turns");
  return check_table(v, instr->call.turns->number, instr->call.turns->calls);
}

/* --- One instruction --- */

static ax_status check_instr(verifier *v, uint32_t i) {
  const ax_instr *instr = at(v, i);
  if (instr->kind == AX_INSTR_WAIT) AX_TRY(check_wait(v, i));
  if (is_sync(instr) && (v->has & AX_INSTRS_NUMBERED) != 0) AX_TRY(check_counters(v, instr));
  bool exchanges = instr->kind == AX_INSTR_PUSH || instr->kind == AX_INSTR_CLEAR;
  bool message = instr->kind == AX_INSTR_SEND || instr->kind == AX_INSTR_RECEIVE;
  if (message && (v->has & AX_INSTRS_LINKS) != 0) AX_TRY(check_table(v, instr->side->link, v->a->compiled->link_count));
  if (instr->kind == AX_INSTR_CALL && (v->has & AX_INSTRS_TURNS) != 0) AX_TRY(check_turns(v, instr));
  if (exchanges && (v->has & AX_INSTRS_PUSHES) != 0) AX_TRY(check_push(v, instr, v->a->ops[i]->exchange));
  if ((v->has & AX_INSTRS_FINISHED) == 0) return AX_OK;
  uint32_t space = v->a->compiled->scratch_space;
  bool scratch = i + 1 < v->a->instr_count && at(v, i + 1)->scratch;
  for (uint32_t k = 0; k < instr->ref_count; k++) scratch = scratch || instr->refs[k].space == space;
  if (scratch && v->a->compiled->spaces[space].bytes > 0 && !instr->scratch)
    return ax_error(AX_INTERNAL, "does not say that scratch memory is needed");
  if (instr->kind == AX_INSTR_LOOP && instr->fused_loop != NULL && instr->target > v->fused_loop_end)
    v->fused_loop_end = instr->target;
  if (instr->kind == AX_INSTR_LOOP && instr->fused_loop != NULL && instr->fused_loop->code == NULL)
    return ax_error(AX_INTERNAL, "has a fused loop without code");
  if (instr->kind == AX_INSTR_KERNEL && instr->kernel.code == NULL && i >= v->fused_loop_end)
    return ax_error(AX_INTERNAL, "has no code");
  if (i < v->fused_loop_end && is_sync(instr)) return ax_error(AX_INTERNAL, "waits or signals inside a fused loop");
  for (uint32_t k = 0; instr->kind == AX_INSTR_ROWS && k < instr->rows->rows->count; k++)
    if (instr->rows->rows->members[k].kind == AX_OP_KERNEL && instr->rows->code[k] == NULL)
      return ax_error(AX_INTERNAL, "has no code for kernel %u", k);
  return AX_OK;
}

static ax_status verify(verifier *v) {
  uint32_t count = v->a->instr_count;
  if (count == 0) return ax_error(AX_INTERNAL, "there are no instructions");
  v->region = ax_arena_alloc(&v->arena, count * sizeof v->region[0]);
  v->end = ax_arena_alloc(&v->arena, count * sizeof v->end[0]);
  if (v->region == NULL || v->end == NULL) return ax_out_of_memory(count * sizeof v->region[0]);
  AX_TRY(check_structure(v));
  if ((v->has & AX_INSTRS_SYNCHRONISED) != 0) AX_TRY(find_signals(v));
  if ((v->has & AX_INSTRS_NUMBERED) != 0) AX_TRY(check_events(v));
  for (uint32_t i = 0; i < count && (v->has & AX_INSTRS_SYNCHRONISED) != 0; i++) {
    ax_status status = check_instr(v, i);
    if (status != AX_OK) return ax_error_context(status, "instruction %u ", i);
  }
  if ((v->has & AX_INSTRS_PUSHES) != 0) AX_TRY(ax_pushes_verify(v->a, &v->arena));
  return (v->has & AX_INSTRS_PLACED) != 0 ? check_memory(v) : AX_OK;
}

ax_status ax_instrs_verify(const ax_assembly *a, ax_instrs_properties properties) {
  verifier v = {.a = a, .has = properties};
  ax_status status = verify(&v);
  ax_arena_deinit(&v.arena);
  return status;
}
