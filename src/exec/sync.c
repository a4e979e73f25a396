/* Where frames must wait for each other. Only memory that one frame writes and another touches matters:

     read after write    a read of what another frame wrote waits for the write's event
     write after read    a write waits until all frames that read the old value are done; in a loop, those of the iteration before

   The count to wait for follows from how often this frame has entered the region where the event is signalled: what stands
   earlier in that region has happened as often as it was entered, what stands later once less. A read in a region that only some
   of the group enter is reported done at the region's exit, which all pass. */
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"

typedef struct insertion {
  uint32_t position, event, region;
  uint32_t access, waiter_region; /* of a wait: what it waits for, and where it stands */
  uint8_t order; /* signals before a position, waits before it, signals after it */
  ax_axis_set axes;
  int64_t delta;
} insertion;
enum { order_signal_before, order_wait, order_signal_after };

typedef struct synchroniser {
  ax_assembly *a;
  insertion *items;
  uint32_t count, capacity;
  ax_axis_set *group;      /* by root: see group_axes */
  uint32_t *first, *next; /* accesses of a root are linked: first[root], next[access] */
} synchroniser;

static bool inside(const ax_assembly *a, uint32_t position, uint32_t region) {
  return position >= a->regions[region].begin && position < a->regions[region].end;
}

/* Some loop holds both, so the later one also comes before the earlier one. */
static bool share_loop(const ax_assembly *a, uint32_t region, uint32_t other) {
  for (uint32_t r = region; r != 0; r = a->regions[r].parent) {
    if (!a->regions[r].is_loop) continue;
    /* the test and the body of a while loop are two regions of one loop: they share its exit */
    for (uint32_t o = other; o != 0; o = a->regions[o].parent)
      if (a->regions[o].is_loop && a->regions[o].exit == a->regions[r].exit && a->regions[o].parent == a->regions[r].parent)
        return true;
  }
  return false;
}

/* --- Events --- */

/* What a group is for a root: its own axes, less those along which an exchange writes into other members' copies. */
static ax_axis_set group_axes(const synchroniser *s, uint32_t root) {
  ax_axis_set axes = s->a->plan->buffers[root].axes;
  for (uint32_t i = s->first[root]; i != AX_NONE; i = s->next[i]) {
    const ax_exchange *exchange = s->a->accesses[i].exchange;
    if (exchange != NULL && exchange->peers != AX_PEERS_ONE) axes &= ~exchange->axes;
  }
  return axes;
}

static ax_status add_item(synchroniser *s, const insertion *item) {
  AX_TRY(ax_grow(&s->items, sizeof s->items[0], s->count, 1, &s->capacity));
  s->items[s->count++] = *item;
  return AX_OK;
}

/* Members meet in an exchange, so those who write this root by one are in this region equally often. */
static bool exchanged_in(const synchroniser *s, uint32_t root, uint32_t region) {
  for (uint32_t i = s->first[root]; i != AX_NONE; i = s->next[i])
    if (s->a->accesses[i].exchange != NULL && inside(s->a, s->a->accesses[i].position, region)) return true;
  return false;
}

/* A read is done, for its group, where all of the group pass. */
static void hoist(const synchroniser *s, ax_access *access) {
  const ax_assembly *a = s->a;
  uint32_t region = access->done_region;
  while (region != 0 && (a->regions[region].axes & ~s->group[access->root]) != 0 && !exchanged_in(s, access->root, region)) {
    access->done_before = true;
    access->done_position = a->regions[region].exit;
    region = access->done_region = a->regions[region].parent;
  }
}

static ax_status event_of(synchroniser *s, ax_access *access) {
  ax_assembly *a = s->a;
  if (access->event != AX_NONE) return AX_OK;
  ax_axis_set group = s->group[access->root];
  if (!access->writes) hoist(s, access);
  AX_TRY(ax_grow(&a->events, sizeof a->events[0], a->event_count, 1, &a->event_capacity));
  access->event = a->event_count++;
  ax_event event = {.axes = group, .times = ax_axis_set_size(access->axes & ~group, &a->plan->mesh)};
  a->events[access->event] = event;
  if (access->exchange != NULL) return AX_OK; /* the push signals it */
  return add_item(s, &(insertion){.position = access->done_position, .event = access->event, .axes = access->axes,
                                  .region = access->done_region,
                                  .order = access->done_before ? order_signal_before : order_signal_after});
}

/* --- Waits --- */

/* Whether frames that have waited as `item` says need not wait for `access` with `delta` at `waiter`: what they waited for comes
   later than it, in the same iteration or in a later one, and is signalled by the same frames. An item that stands after the
   waiter in a loop's body has been waited for in the iteration before. A region between the two has been entered since. */
static bool covers(const synchroniser *s, const insertion *item, const insertion *wait) {
  const ax_assembly *a = s->a;
  if (item->order != order_wait || item == wait || item->waiter_region != wait->waiter_region || item->region != wait->region ||
      (wait->axes & ~item->axes) != 0)
    return false;
  int64_t delta = item->delta;
  if (item->position > wait->position) {
    if (item->region != item->waiter_region || !a->regions[item->region].is_loop) return false;
    delta--;
  } else if (item->position <= a->regions[item->region].begin && a->regions[item->region].begin < wait->position) {
    return false;
  }
  const ax_access *known = &a->accesses[item->access], *access = &a->accesses[wait->access];
  if ((access->axes & ~known->axes) != 0 || (s->group[known->root] & ~s->group[access->root]) != 0) return false;
  if (delta != wait->delta) return delta > wait->delta;
  if (item->event == wait->event) return item->position <= wait->position;
  return !access->done_before && !known->done_before && known->done_position >= access->done_position;
}

/* Waits that others cover go, one at a time; then the signals nobody waits for. */
static void drop_covered(synchroniser *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    bool covered = false;
    for (uint32_t j = 0; s->items[i].order == order_wait && j < s->count && !covered; j++)
      covered = covers(s, &s->items[j], &s->items[i]);
    if (covered) s->items[i--] = s->items[--s->count];
  }
  for (uint32_t i = 0; i < s->count; i++) {
    bool awaited = s->items[i].order == order_wait;
    for (uint32_t j = 0; j < s->count && !awaited; j++)
      awaited = s->items[j].order == order_wait && s->items[j].event == s->items[i].event;
    if (!awaited) s->items[i--] = s->items[--s->count];
  }
}

static ax_status wait_for(synchroniser *s, const ax_access *waiter, ax_access *access) {
  const ax_assembly *a = s->a;
  if (!access->writes && access->event == AX_NONE) hoist(s, access);
  bool later = access->done_before ? access->done_position > waiter->position : access->done_position >= waiter->position;
  int64_t delta = later && inside(a, waiter->position, access->done_region) ? -1 : 0;
  AX_TRY(event_of(s, access));
  ax_axis_set nobody = s->group[access->root] & ~access->axes; /* groups in which no frame does it */
  return add_item(s, &(insertion){.position = waiter->position, .order = order_wait, .event = access->event,
                                  .access = (uint32_t)(access - a->accesses), .waiter_region = waiter->region,
                                  .region = access->done_region, .delta = delta, .axes = waiter->axes & ~nobody});
}

static bool before(const ax_assembly *a, const ax_access *first, const ax_access *second) {
  return first->position < second->position || share_loop(a, first->region, second->region);
}

static ax_status order_access(synchroniser *s, ax_access *access) {
  const ax_assembly *a = s->a;
  ax_axis_set stored = a->plan->buffers[access->root].axes;
  for (uint32_t i = s->first[access->root]; i != AX_NONE; i = s->next[i]) {
    ax_access *other = &a->accesses[i];
    if (other->writes == access->writes || other->position == access->position || !before(a, other, access)) continue;
    const ax_access *write = access->writes ? access : other, *read = access->writes ? other : access;
    if (write->exchange == NULL && (read->axes & ~stored) == 0) continue; /* the frame that wrote it reads it */
    AX_TRY(wait_for(s, access, other));
  }
  return AX_OK;
}

/* --- Rebuilding the list --- */

static int by_position(const void *x, const void *y) {
  const insertion *a = x, *b = y;
  if (a->position != b->position) return a->position < b->position ? -1 : 1;
  return (int)a->order - (int)b->order;
}

/* Waiting for results of an exchange, or for readers, is where frames are parked; an owner's own results are there already. */
static bool is_hard(const ax_assembly *a, const insertion *item) {
  const ax_access *access = &a->accesses[item->access];
  return item->order == order_wait && (!access->writes || access->exchange != NULL);
}

static ax_instr made_of(const ax_assembly *a, const insertion *item) {
  bool wait = item->order == order_wait;
  ax_instr instr = {.kind = wait ? AX_INSTR_WAIT : AX_INSTR_SIGNAL, .skip = ax_all_axes(&a->plan->mesh) & ~item->axes};
  instr.sync.event = item->event;
  instr.sync.region = item->region;
  instr.sync.delta = item->delta;
  instr.sync.hard = is_hard(a, item);
  instr.sync.times = a->events[item->event].times;
  if (item->position < a->instr_count && a->ops[item->position] != NULL) {
    instr.eqn = a->ops[item->position]->eqn;
    instr.program = a->ops[item->position]->program;
  }
  return instr;
}

static void retarget(ax_instr *instr, const uint32_t *moved) {
  switch (instr->kind) {
    case AX_INSTR_LOOP:
    case AX_INSTR_NEXT:
    case AX_INSTR_TEST:
    case AX_INSTR_JUMP: instr->target = moved[instr->target]; break;
    case AX_INSTR_BRANCH:
      for (uint32_t k = 0; k < instr->branch.count; k++) instr->branch.targets[k] = moved[instr->branch.targets[k]];
      break;
    default: break;
  }
}

static ax_status rebuild(synchroniser *s) {
  ax_assembly *a = s->a;
  uint32_t total = a->instr_count + s->count, n = 0, next = 0;
  ax_instr *instrs = ax_arena_alloc(&a->plan->arena, total * sizeof instrs[0]);
  const ax_op **ops = ax_alloc(total * sizeof ops[0]);
  uint32_t *moved = ax_arena_alloc(&a->plan->arena, (a->instr_count + 1) * sizeof moved[0]); /* with what is before it */
  uint32_t *placed = ax_arena_alloc(&a->plan->arena, (a->instr_count + 1) * sizeof placed[0]); /* itself */
  if (instrs == NULL || ops == NULL || moved == NULL || placed == NULL) {
    ax_free(ops);
    return ax_out_of_memory(total * sizeof instrs[0]);
  }
  if (s->count > 0) qsort(s->items, s->count, sizeof s->items[0], by_position);
  for (uint32_t p = 0; p < a->instr_count; p++) {
    moved[p] = n;
    for (; next < s->count && s->items[next].position == p && s->items[next].order != order_signal_after; next++) {
      ops[n] = NULL;
      instrs[n++] = made_of(a, &s->items[next]);
    }
    placed[p] = n;
    ops[n] = a->ops[p];
    instrs[n++] = a->instrs[p];
    for (; next < s->count && s->items[next].position == p; next++) {
      ops[n] = NULL;
      instrs[n++] = made_of(a, &s->items[next]);
    }
  }
  moved[a->instr_count] = placed[a->instr_count] = n;
  for (uint32_t i = 0; i < n; i++) retarget(&instrs[i], moved);
  for (uint32_t i = 0; i < a->access_count; i++) a->accesses[i].position = placed[a->accesses[i].position];
  for (uint32_t i = 0; i < a->region_count; i++) {
    a->regions[i].begin = placed[a->regions[i].begin];
    a->regions[i].end = moved[a->regions[i].end];
    a->regions[i].exit = moved[a->regions[i].exit];
  }
  ax_free(a->instrs);
  ax_free(a->ops);
  a->instrs = instrs; /* in the arena from here on: the executable's */
  a->instr_capacity = 0;
  a->ops = ops;
  a->instr_count = n;
  return AX_OK;
}

static ax_status synchronise(synchroniser *s) {
  ax_assembly *a = s->a;
  const ax_plan *plan = a->plan;
  a->shared = ax_arena_alloc(&a->plan->arena, plan->buffer_count + 1);
  s->first = ax_arena_alloc(&a->plan->arena, plan->buffer_count * sizeof s->first[0]);
  s->next = ax_arena_alloc(&a->plan->arena, a->access_count * sizeof s->next[0]);
  s->group = ax_arena_alloc(&a->plan->arena, plan->buffer_count * sizeof s->group[0]);
  if (s->group == NULL || a->shared == NULL || s->first == NULL || s->next == NULL) return ax_out_of_memory(0);
  memset(s->first, 0xff, plan->buffer_count * sizeof s->first[0]);
  for (uint32_t i = a->access_count; i-- > 0;) {
    const ax_access *access = &a->accesses[i];
    s->next[i] = s->first[access->root];
    s->first[access->root] = i;
    if (access->exchange != NULL || (access->axes & ~plan->buffers[access->root].axes) != 0) a->shared[access->root] = true;
  }
  for (uint32_t i = 0; i < plan->buffer_count; i++) s->group[i] = group_axes(s, i);
  for (uint32_t i = 0; i < a->access_count; i++)
    if (a->shared[a->accesses[i].root]) AX_TRY(order_access(s, &a->accesses[i]));
  for (uint32_t i = 0; i < a->access_count; i++) /* a push always has an event: combining counts on it */
    if (a->accesses[i].exchange != NULL) AX_TRY(event_of(s, &a->accesses[i]));
  drop_covered(s);
  return rebuild(s);
}

ax_status ax_synchronise(ax_assembly *a) {
  synchroniser s = {.a = a};
  ax_status status = synchronise(&s);
  ax_free(s.items);
  return status;
}
