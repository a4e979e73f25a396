/* The operations of a core that other cores can notice. Scopes are here, and what the rules of steps (kernel/steps) are made of:
   semaphores, barriers, other cores. All of it is done with the group's lock held, except moving the bytes of copies.

   A scope has the same memory each time it is opened. So a scope that several cores share is opened again only when all have left
   it. */
#include <string.h>

#include "kernel/image/run.h"
#include "kernel/step.h"

/* --- Objects --- */

static bool is_given(const ax_run_core *core, const ax_run_object *object) {
  return core->awaits_phase ? object->phase >= core->amount : object->count >= core->amount;
}

/* What a wait takes when it is given. */
static void take(ax_run_core *core, ax_run_object *object) {
  if (core->awaits_phase) core->waited[object->number]++;
  else object->count -= core->amount;
}

/* In the order in which the cores came: of several that want what one can have, the others go on waiting. */
void ax_walk_let_go(const ax_row_walk *w, ax_run_object *object) {
  ax_run_core **at = &object->waiting;
  while (*at != NULL) {
    ax_run_core *core = *at;
    if (!is_given(core, object)) {
      at = &core->next;
      continue;
    }
    *at = core->next;
    core->next = NULL;
    core->awaited = NULL;
    take(core, object);
    core->pc++;
    ax_group_ready(w->core->device->group, w->runner, core);
  }
}

void ax_walk_arrive(const ax_row_walk *w, ax_run_object *object) {
  if (++object->arrived < object->arrivals) return;
  object->arrived = 0;
  object->phase++;
  if (object->waiting != NULL) ax_walk_let_go(w, object);
}

static void stand_in(ax_run_core **list, ax_run_core *core) {
  while (*list != NULL) list = &(*list)->next;
  core->next = NULL;
  *list = core;
}

static void wait_for(const ax_row_walk *w, ax_run_object *object, int64_t amount, bool phase, bool *waits) {
  ax_run_core *core = w->core;
  core->amount = amount;
  core->awaits_phase = phase;
  *waits = !is_given(core, object);
  if (!*waits) {
    take(core, object);
    return;
  }
  core->awaited = object;
  stand_in(&object->waiting, core);
}

ax_status ax_walk_stand_for(const ax_row_walk *w, ax_run_object *object, int64_t amount, bool *waits) {
  char text[160];
  if (amount < 0)
    return ax_walk_fault(w, "%s: the amount is %lld", ax_step_text(w->op->step, text, sizeof text), (long long)amount);
  wait_for(w, object, amount, false, waits);
  return AX_OK;
}

void ax_walk_wait_phase(const ax_row_walk *w, bool *waits) {
  ax_run_object *object = ax_walk_object(w, w->core, 0);
  wait_for(w, object, w->core->waited[object->number] + 1, true, waits);
}

/* --- Elsewhere --- */

static ax_status find_core(const ax_row_walk *w, const ax_core_params *to, ax_core_meant *out) {
  const ax_image *image = w->image;
  const ax_run_core *core = w->core;
  const ax_mesh *mesh = &w->op->step->program->axes;
  uint32_t count = ax_core_operands(to), first = w->op->step->in_count - count, body = image->machine->cores[core->number].body;
  int64_t per_device = ax_mesh_devices(mesh) / ax_mesh_devices(image->axes), devices = ax_mesh_devices(image->axes),
          place = core->place;
  char text[160];
  for (uint32_t i = 0; i < count; i++) {
    int64_t coordinate = ax_walk_integer(w, first + i), size = devices, stride = 1;
    uint32_t axis = to->logical ? 0 : (uint32_t)ax_mesh_find(mesh, to->axes.name[i]);
    if (!to->logical) size = mesh->axis[axis].size;
    if (coordinate < 0 || coordinate >= size)
      return to->logical ? ax_walk_fault(w, "%s: there is no device %lld: there are %lld",
                                         ax_step_text(w->op->step, text, sizeof text), (long long)coordinate, (long long)devices)
                         : ax_walk_fault(w, "%s: coordinate %lld along \"%s\", which has %lld",
                                         ax_step_text(w->op->step, text, sizeof text), (long long)coordinate, to->axes.name[i],
                                         (long long)size);
    for (uint32_t a = axis + 1; a < mesh->count; a++) stride *= mesh->axis[a].size;
    place = to->logical ? coordinate * per_device + place % per_device
                        : place + (coordinate - ax_mesh_coordinate(mesh, place, axis)) * stride;
  }
  out->member = image->members > 1 ? (uint32_t)ax_axes_index(&image->names, image->axes, place / per_device) : 0;
  out->number = image->machine->first_core[body] + (uint32_t)(place % per_device);
  char *state = core->device->group->states[out->member];
  out->here = state != NULL ? (void *)(state + image->core_at[out->number]) : NULL;
  return AX_OK;
}

ax_status ax_walk_find_core(const ax_row_walk *w, const ax_core_params *to, ax_core_meant *out) {
  const uint32_t count = ax_core_operands(to), first = w->op->step->in_count - count;
  AX_TRY(find_core(w, to, out));
  if (w->op->meant == 0) return AX_OK;
  const int32_t a = (int32_t)ax_walk_integer(w, first), b = count > 1 ? (int32_t)ax_walk_integer(w, first + 1) : 0;
  *ax_run_target_of(w->core, w->op, a, b) = (struct ax_run_target){true, {a, b}, out->member, out->number, out->here};
  return AX_OK;
}

/* --- Scopes --- */

/* New objects: of one core alone, or by the first of those that have them together. */
static void begin_objects(const ax_row_walk *w, const ax_image_scope *scope, bool mine) {
  for (uint32_t k = 0; k < scope->params->scratch.count; k++) {
    const ax_type *type = &scope->params->scratch.v[k];
    if (type->form == AX_REF) continue;
    ax_run_object *objects = w->core->roots[scope->first_root + k];
    for (int64_t i = 0; i < ax_type_elems(type); i++) {
      if (mine) objects[i].count = objects[i].arrived = objects[i].phase = 0;
      if (type->form == AX_BARRIER) w->core->waited[objects[i].number] = 0;
    }
  }
}

static ax_run_scope *shared_scope(const ax_row_walk *w) {
  return (void *)(w->core->device->state + w->image->shared_scopes[w->core->number][w->op->scope]);
}

void ax_walk_open(const ax_row_walk *w, bool *waits) {
  const ax_image_scope *scope = &w->body->scopes[w->op->scope];
  if (!scope->shared) {
    begin_objects(w, scope, true);
    return;
  }
  ax_run_scope *shared = shared_scope(w);
  int64_t before = (int64_t)w->core->occurrences[w->op->scope] * scope->users;
  *waits = shared->closed < before;
  if (*waits) {
    stand_in(&shared->waiting, w->core);
    return;
  }
  begin_objects(w, scope, shared->opened == before);
  shared->opened++;
}

void ax_walk_close(const ax_row_walk *w) {
  const ax_image_scope *scope = &w->body->scopes[w->op->scope];
  if (!scope->shared) return;
  w->core->occurrences[w->op->scope]++;
  ax_run_scope *shared = shared_scope(w);
  if (++shared->closed % scope->users != 0) return;
  ax_run_core *all = shared->waiting;
  shared->waiting = NULL;
  ax_group_ready(w->core->device->group, w->runner, all);
}

/* --- All --- */

/* Says that a core that reads a semaphore must let others go first: a loop of reads may only end when another core has
   signalled. */
static bool reads_again(const ax_row_walk *w) {
  bool first = w->op->makes_way && !w->core->made_way;
  w->core->made_way = first;
  return first;
}

bool ax_core_makes_way(ax_row_walk *w) {
  ax_run_group *group = w->core->device->group;
  const bool over = group->status != AX_OK; /* the core that would have signalled may have failed */
  if (group->ready == 0 && w->runner->away == 0 && !over) return false;
  if (over || reads_again(w)) {
    ax_group_ready(group, w->runner, w->core);
    return true;
  }
  if (w->runner->seed == 0 || group->ready == 0) return false;
  group->random = (group->random + w->runner->seed) * 6364136223846793005u + 1442695040888963407u;
  if ((group->random >> 33) % 4 != 0) return false;
  ax_group_ready(group, w->runner, w->core);
  return true;
}
