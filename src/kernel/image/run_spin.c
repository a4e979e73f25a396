/* Finds cores that go round in a loop for ever, so that a run of which nothing can come ends with a report.

   A core that has gone round a `while` often pauses: cores that are ready go first, so one that reads memory again and again does not keep
   those from running that would write it. Then it is *watched* for some rounds. What it holds (values, views, counters), and what it
   writes, are kept as they were; if all of it is the same at the same operation again, the core has gone round a *circle*. It is *quiet*
   then: it goes on to do the same until another core changes something.

     walk .. round, round, .. pause | watched: round, round = as before: quiet .. watched again at each turn, until it is another way

   If all cores that do not wait are quiet, and no other has run since, no core can ever do anything else: a deadlock. Of several quiet
   cores that must hold whatever their order. So memory has to be as before after each store of theirs, not only at the circle's end; and
   they may take and give counts (of locks), or read counts, but not both, as one may read what another has just taken. A core alone
   decides everything by itself, so only the end of its circle counts.

   A core is watched for 4 rounds mostly, each second time for 8, each fourth for 16, and so on: circles of any length are found, and
   loops that get on pay some thousandths. Acts for other cores and shared scopes are not looked into: a circle that has some is not
   reported. */
#include <string.h>

#include "kernel/image/run.h"
#include "kernel/image/segment.h"
#include "kernel/step.h"

enum { first_rounds = 4, most_ranges = 64, most_bytes = 1 << 16 };

const ax_image_op ax_image_pause = {.kind = AX_IMAGE_PAUSE};

typedef struct range { /* bytes that are written in the circle */
  char *at;
  size_t bytes, kept; /* kept: where in the watch's `bytes` they are as they were before the first write */
  bool counts;        /* of a semaphore or a barrier */
} range;

typedef struct watch {
  ax_row_walk *walk;
  uint32_t start; /* the operation that rounds are compared at */
  char *own;      /* what the core held there */
  range ranges[most_ranges];
  uint32_t range_count;
  char *bytes;
  size_t byte_count;
  bool takes, reads, stores; /* counts are changed; they are read; memory was another one in between */
} watch;

/* --- What a core holds: from its views to its counts of waits; its values --- */

static size_t first_bytes(const ax_image_body *body) { return body->roots_at - body->views_at; }

/* False: memory is gone. */
static bool begin(ax_row_walk *w, watch *v) {
  const ax_image_body *body = w->body;
  const char *core = (const char *)w->core;
  const size_t first = first_bytes(body), own = first + body->value_bytes;
  *v = (watch){.walk = w, .start = w->core->pc, .own = ax_alloc(own + most_bytes)};
  if (v->own == NULL) return false;
  v->bytes = v->own + own;
  memcpy(v->own, core + body->views_at, first);
  memcpy(v->own + first, core + body->values_at, body->value_bytes);
  return true;
}

static bool holds_the_same(const watch *v) {
  const ax_image_body *body = v->walk->body;
  const char *core = (const char *)v->walk->core;
  const size_t first = first_bytes(body);
  return memcmp(v->own, core + body->views_at, first) == 0 && memcmp(v->own + first, core + body->values_at, body->value_bytes) == 0;
}

/* --- What it writes --- */

static bool is_written_the_same(const watch *v, bool counts_too) {
  bool same = true;
  for (uint32_t i = 0; i < v->range_count && same; i++)
    same = (v->ranges[i].counts && !counts_too) || memcmp(v->ranges[i].at, v->bytes + v->ranges[i].kept, v->ranges[i].bytes) == 0;
  return same;
}

/* False: there is too much of it. */
static bool keep(watch *v, void *at, size_t bytes, bool counts) {
  for (uint32_t i = 0; i < v->range_count; i++)
    if (v->ranges[i].at == at && v->ranges[i].bytes == bytes) return true;
  if (v->range_count == most_ranges || bytes > most_bytes - v->byte_count) return false;
  v->ranges[v->range_count++] = (range){at, bytes, v->byte_count, counts};
  memcpy(v->bytes + v->byte_count, at, bytes);
  v->byte_count += bytes;
  return true;
}

/* All bytes from a view's first element to its last. */
static bool keep_view(watch *v, uint32_t number) {
  const ax_image_slot *slot = &v->walk->body->slots[number];
  const ax_run_core *core = v->walk->core;
  size_t bytes = (size_t)ax_dtype_bytes(slot->type.dtype);
  if (slot->bytes == 0) return true;
  if (slot->unit > 0) return keep(v, ax_core_unit(core, slot, core->views[v->walk->body->view_of[number]]), sizeof(char *), false);
  for (uint32_t d = 0; d < slot->type.rank; d++) bytes += (size_t)((slot->type.dims[d] - 1) * slot->strides[d]);
  return keep(v, ax_core_view(core, number), bytes, false);
}

static bool keep_objects(watch *v, ax_run_object *objects, int64_t count) {
  bool kept = count <= most_ranges;
  for (int64_t i = 0; i < count && kept; i++) kept = keep(v, &objects[i], offsetof(ax_run_object, waiting), true);
  return kept;
}

static bool keep_scope(watch *v, const ax_image_scope *scope) {
  bool kept = !scope->shared;
  for (uint32_t k = 0; k < scope->params->scratch.count && kept; k++) {
    const ax_type *type = &scope->params->scratch.v[k];
    if (type->form != AX_REF) kept = keep_objects(v, v->walk->core->roots[scope->first_root + k], ax_type_elems(type));
  }
  return kept;
}

static bool keep_act(watch *v, const ax_image_op *op) {
  const ax_core_params *to = ax_step_target(op->step->eqn);
  bool kept = (to == NULL || ax_core_operands(to) == 0) && !op->forwarded;
  if (op->rules->reads_count) v->reads = true;
  for (uint32_t k = 0; k < op->step->in_count && kept && !op->rules->reads_count; k++) {
    const ax_form form = v->walk->body->slots[op->step->in[k]].type.form;
    if (form != AX_SEMAPHORE && form != AX_DMA_SEMAPHORE && form != AX_BARRIER) continue;
    v->takes = true;
    kept = keep_objects(v, ax_walk_object(v->walk, v->walk->core, k), 1);
  }
  return kept && (!ax_step_copies(op->step->eqn) || keep_view(v, op->step->in[1]));
}

static bool keep_results(watch *v, const ax_image_op *op) {
  bool kept = op->forwards == 0;
  for (uint32_t k = 0; k < op->segment->out_count && kept; k++)
    if (v->walk->body->slots[op->segment->out[k]].source == AX_SLOT_VIEW) kept = keep_view(v, op->segment->out[k]);
  return kept;
}

/* Before an operation. False: it may do something that is not known here. */
static bool look_at(watch *v, const ax_image_op *op) {
  switch (op->kind) {
    case AX_IMAGE_EVAL: return op->step->eqn->prim->effects == 0;
    case AX_IMAGE_SEGMENT: return keep_results(v, op);
    case AX_IMAGE_ACCESS:
    case AX_IMAGE_STORE: return !op->rules->access->writes || keep_view(v, op->step->in[0]);
    case AX_IMAGE_OPEN:
    case AX_IMAGE_CLOSE: return keep_scope(v, &v->walk->body->scopes[op->scope]);
    case AX_IMAGE_ACT: return keep_act(v, op);
    case AX_IMAGE_END:
    case AX_IMAGE_PAUSE: return false;
    default: return true;
  }
}

/* --- A circle --- */

/* A quiet core that comes to a lock while another has it goes round the same circle behind that, most likely. After how many rounds it is
   watched again differs from time to time, as otherwise two cores could have the lock in turn at each other's watch. */
static uint32_t soon(const ax_run_group *group) { return 1 + (uint32_t)(group->changes % 61); }

/* Goes on for that many rounds. *closed: it has gone round a circle, of *rounds. Else it is one that it does not close soon, or at all;
   `walked` is as of ax_core_goes_round. */
static ax_walked go_round(watch *v, uint32_t most, uint32_t *rounds, bool *closed) {
  ax_row_walk *w = v->walk;
  const ax_image_op *ops = w->body->ops, *next = &ops[v->start];
  bool waits = false;
  *closed = false;
  *rounds = 0;
  while (*rounds < most && !*closed) {
    w->op = next;
    if (!look_at(v, w->op)) break;
    const ax_status status = ax_walk_do(w, &next, &waits);
    if (waits && w->core->quiet) w->core->rounds = soon(w->core->device->group);
    if (status != AX_OK || waits) return ax_walk_end(w, status);
    v->stores = v->stores || !is_written_the_same(v, false);
    if (w->op->kind != AX_IMAGE_JUMP || next > w->op) continue;
    w->core->rounds = AX_RUN_ROUNDS;
    ++*rounds;
    *closed = next == &ops[v->start] && holds_the_same(v) && is_written_the_same(v, true);
    if (*closed) w->core->circles = w->op;
  }
  w->core->pc = (uint32_t)(next - ops);
  ax_walk_hold(w);
  return AX_WALKED_GOES_ON;
}

/* --- All cores. With the lock held. --- */

static void stop_being_quiet(ax_run_core *core) {
  if (core->quiet) core->device->group->changes++;
  core->quiet = core->pauses_now = false;
}

/* The core has gone round a circle, in which nothing that other cores do has changed since there were `before` changes. */
static void note_quiet(const watch *v, ax_run_group *group, uint64_t before) {
  ax_run_core *core = v->walk->core;
  if (before != group->changes) return;
  if (group->quiet_since != before) group->quiet_since = before, group->quiet = 0, group->takes = group->reads = false;
  group->quiet += core->quiet_since != before;
  core->quiet_since = before;
  group->takes = group->takes || v->takes;
  group->reads = group->reads || v->reads;
}

static bool is_stuck(const ax_run_group *group) {
  const uint32_t going = group->ready + group->running;
  return group->quiet_since == group->changes && group->quiet == going && (going == 1 || !group->takes || !group->reads);
}

/* The same circle until it is no longer one, or others can go on. */
static ax_walked stay_quiet(watch *v, uint32_t most) {
  ax_run_core *core = v->walk->core;
  ax_run_group *group = core->device->group;
  for (bool closed;;) {
    const uint64_t before = group->changes;
    uint32_t rounds;
    const ax_walked walked = go_round(v, most, &rounds, &closed);
    if (walked != AX_WALKED_GOES_ON) closed = false;
    if (!closed || (v->stores && group->ready + group->running > 1)) {
      stop_being_quiet(core);
      return walked;
    }
    core->quiet = core->pauses_now = true;
    core->circle = most = rounds;
    note_quiet(v, group, before);
    if (group->status == AX_OK && is_stuck(group)) return ax_run_group_deadlock(v->walk->image, group), AX_WALKED_FAILED;
    if (group->ready > 0 || group->status != AX_OK) return AX_WALKED_GOES_ON;
    ax_walk_free(v->walk); /* others are running */
    ax_walk_hold(v->walk);
  }
}

ax_walked ax_core_goes_round(ax_row_walk *w) {
  ax_run_core *core = w->core;
  ax_run_group *group = core->device->group;
  ax_walked walked = AX_WALKED_GOES_ON;
  watch v;
  core->rounds = AX_RUN_ROUNDS;
  if (!core->pauses_now && group->ready > 0) { /* others go on first: one may have been given a lock that this core takes in each round */
    core->pauses_now = true;
    ax_group_ready(group, w->runner, core);
    return AX_WALKED_WAITS;
  }
  core->pauses_now = false;
  if (w->runner->away == 0 && group->status == AX_OK && begin(w, &v)) { /* messages from away may change what a core reads */
    const uint32_t nth = core->quiet ? 0 : ++core->pauses;
    if (!core->quiet) group->changes++;
    walked = stay_quiet(&v, core->quiet ? core->circle : first_rounds * (nth & (0 - nth)));
    ax_free(v.own);
  }
  if (walked != AX_WALKED_GOES_ON || (group->ready == 0 && w->runner->away == 0 && group->status == AX_OK)) return walked;
  core->made_way = core->made_way || w->runner->away > 0;
  ax_group_ready(group, w->runner, core);
  return AX_WALKED_WAITS;
}
