/* Acts: what an agent does next, whether it can, and doing it.

     core    load, store, swap, add   LOCAL      signal  SIGNAL     wait   WAIT     read   READ     arrive  ARRIVE    barrier wait
                                                                                    AWAIT
             copy_start  START        copy_wait  WAIT of bytes      wait for groups: one JOIN for each copy of them
     copy    0: LOCAL, reads the source     1: SIGNAL sent      2: LOCAL, writes the destination     3: SIGNAL received     4:
                                                                ARRIVE
             those that it was not asked for are left out
     signal  of a machine whose signals travel: SIGNAL; the core that sends it to another device STARTs it
     beginning   a LOCAL that has all memory of its device begin; cores of it JOIN that first
     end     JOIN of each core of the device, then a LOCAL that reads the results */
#include <stdio.h>
#include <string.h>

#include "kernel/machine/agent.h"
#include "kernel/step.h"

/* --- Operands --- */

int64_t ax_view_bytes(const ax_view *view) { return ax_type_elems(&view->type) * (int64_t)ax_dtype_bytes(view->type.dtype); }

ax_status ax_about_away(ax_about *a, const ax_core_params *to, uint32_t *place) {
  int64_t coordinates[AX_MAX_AXES];
  uint32_t count = ax_core_operands(to);
  char text[160];
  for (uint32_t i = 0; i < count; i++) coordinates[i] = ax_about_integer(a, a->step->in_count - count + i);
  ax_status status = ax_state_away(a->state, a->actor->core, to, coordinates, *place, place);
  if (status != AX_INVALID_ARGUMENT) return status;
  return ax_state_fault(a->state, a->fault, AX_FINDING_OUT_OF_BOUNDS, AX_NONE, "%s: %s", ax_step_text(a->step, text, sizeof text),
                        ax_message());
}

ax_status ax_about_object(ax_about *a, const ax_view *at, const ax_core_params *to, uint32_t *out) {
  uint32_t place = at->region;
  if (to != NULL) AX_TRY(ax_about_away(a, to, &place));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  ax_view there = *at;
  there.region = place;
  if (ax_about_usable(a, &there, "")) *out = a->state->places[place].first_object + (uint32_t)at->offset;
  return AX_OK;
}

/* --- Semaphores and barriers --- */

ax_status ax_about_touch_object(ax_about *a, const ax_core_params *to, uint32_t object) {
  const ax_state_object *there = &a->state->objects[object];
  if ((to->axes.count == 0 && !to->logical) || there->region < a->state->machine->place_count) return AX_OK;
  const uint64_t at = object - a->state->places[there->region].first_object;
  AX_TRY(ax_touches_add(&a->state->pool, there->region, false, false, 1, &(ax_bytes){at, at + 1}));
  a->act.touch_count++;
  return AX_OK;
}

ax_status ax_about_sent_agent(const ax_about *a, bool signal, uint32_t ordinal, uint32_t *out) {
  const ax_machine *machine = a->state->machine;
  const ax_name_key key = {.kind = AX_NAME_AGENT, .core = a->actor->core, .site = signal, .index = ordinal};
  AX_TRY(ax_names_number(machine->names, &key, out));
  *out += ax_machine_agents(machine);
  return AX_OK;
}

static ax_status about_signal(ax_about *a) {
  const ax_state_copy *t = &a->actor->transfer;
  a->act = (ax_act){.kind = AX_ACT_SIGNAL,
                    .object = t->received,
                    .amount = t->amount,
                    .what = "signal arrives at",
                    .location = t->step->location,
                    .span = t->step->span};
  return ax_about_touch_object(a, t->step->eqn->params, t->received);
}

static void do_signal(ax_about *a) {
  a->state->objects[a->act.object].count += a->act.amount;
  ax_state_end_copy(a->state, a->agent);
}

void ax_object_arrive(ax_state_object *object) {
  if (++object->arrived < object->arrivals) return;
  object->arrived = 0;
  object->phase++;
}

/* --- Cores: scopes --- */

/* The place that element k of the scope has, this time. */
static ax_status scope_place(const ax_about *a, uint32_t opened, uint32_t k, uint32_t *out) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  const ax_machine *machine = a->state->machine;
  int64_t users;
  const uint32_t leader = ax_machine_leader(machine, a->actor->core, &params->along, &users);
  const ax_name_key key = {
      .kind = AX_NAME_PLACE, .core = leader, .site = opened, .occurrence = a->actor->frame.occurrence[opened], .index = k};
  AX_TRY(ax_names_number(machine->names, &key, out));
  *out += machine->place_count;
  return AX_OK;
}

/* The scope of cores that share it ends with the last of them: each one's leaving is a touch that writes nothing (act.h). */
static ax_status about_scope(ax_about *a) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  bool opens = a->step->kind == AX_STEP_OPEN, shared = params->along.count > 0;
  uint32_t opened = opens ? a->actor->frame.pc : a->step->target;
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    uint32_t place;
    const ax_type *type = &params->scratch.v[k];
    ax_bytes whole = {0, (uint64_t)ax_type_elems(type) * (type->form == AX_REF ? ax_dtype_bytes(type->dtype) : 1)};
    if (shared && (opens || type->form != AX_REF)) continue;
    AX_TRY(scope_place(a, opened, k, &place));
    if (whole.end == 0) continue;
    AX_TRY(ax_touches_add(&a->state->pool, place, !shared, true, 1, &whole));
    a->act.touch_count++;
  }
  return AX_OK;
}

static ax_status open_scope(ax_about *a) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  ax_state *state = a->state;
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    uint32_t place;
    AX_TRY(scope_place(a, a->actor->frame.pc, k, &place));
    if (place >= state->place_count || !state->places[place].made)
      AX_TRY(ax_state_make_place(state, place, &params->scratch.v[k], ax_arrivals_of(&params->arrivals, k),
                                 state->machine->cores[a->actor->core].device));
    state->places[place].users++;
    const ax_view whole = ax_dense_view(place, &params->scratch.v[k]);
    ax_cell **slot = &a->actor->frame.slot[a->step->out[k]];
    ax_cell_release(*slot);
    *slot = NULL;
    AX_TRY(ax_cell_view(&whole, slot));
  }
  return AX_OK;
}

static ax_status close_scope(ax_about *a) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  int64_t users;
  (void)ax_machine_leader(a->state->machine, a->actor->core, &params->along, &users);
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    uint32_t number;
    AX_TRY(scope_place(a, a->step->target, k, &number));
    ax_state_place *place = &a->state->places[number];
    if (place->users++ < 2 * users - 1) continue; /* as many come as go */
    place->alive = false;
    ax_bank_release(place->memory);
    place->memory = NULL;
  }
  a->actor->frame.occurrence[a->step->target]++;
  return AX_OK;
}

/* --- Cores --- */

/* "load" of ref_load, "signal" of semaphore_signal: the object says the rest. */
static const char *short_name(const char *name) {
  static const char *const said[] = {"ref_", "semaphore_"};
  for (size_t i = 0; i < AX_COUNT(said); i++)
    if (strncmp(name, said[i], strlen(said[i])) == 0) return name + strlen(said[i]);
  return name;
}

static ax_status about_core(ax_about *a) {
  const ax_machine *machine = a->state->machine;
  const ax_core *core = &machine->cores[a->actor->core];
  if (!a->actor->frame.begun) {
    a->act = (ax_act){.kind = AX_ACT_JOIN,
                      .object = machine->core_count + machine->device_count + core->device,
                      .amount = 1,
                      .what = "the kernel begins"};
    return AX_OK;
  }
  AX_TRY(ax_core_frame_advance(a->state, a->agent, a->fault));
  a->act.kind = AX_ACT_LOCAL;
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  a->step = &a->state->machine->codes[core->body]->steps[a->actor->frame.pc];
  if (a->step->kind == AX_STEP_END) {
    a->act.kind = AX_ACT_NONE;
    a->actor->through = true;
    a->actor->hash = 0;
    return AX_OK;
  }
  a->act.what = short_name(a->step->eqn->prim->name);
  a->act.location = a->step->location;
  a->act.span = a->step->span;
  if (a->step->kind != AX_STEP_ACT) return about_scope(a);
  const ax_step *step = a->step->eqn->prim->step;
  return step->access != NULL ? ax_about_memory(a) : step->about(a);
}

static ax_status do_core(ax_about *a) {
  if (!a->actor->frame.begun) {
    a->actor->frame.begun = true;
    return AX_OK;
  }
  const ax_step *step = a->step->eqn->prim->step;
  bool more = false;
  ax_status status = a->step->kind == AX_STEP_OPEN    ? open_scope(a)
                     : a->step->kind == AX_STEP_CLOSE ? close_scope(a)
                     : step->access != NULL           ? ax_do_memory(a)
                                                      : step->act(a, &more);
  if (status == AX_OK && !more && a->fault->kind == AX_FINDING_NONE) a->actor->frame.pc++;
  return status;
}

/* --- Copies --- */

enum { copy_reads, copy_sent, copy_writes, copy_received, copy_arrives, copy_done };

static uint32_t stage_from(const ax_state_copy *t, uint32_t stage) {
  if (stage == copy_sent && t->sent == AX_NONE) stage++;
  if (stage == copy_received && t->received == AX_NONE) stage++;
  if (stage == copy_arrives && t->barrier == AX_NONE) stage++;
  return stage;
}

static ax_status about_transfer(ax_about *a) {
  const ax_state_copy *t = &a->actor->transfer;
  a->act.kind = AX_ACT_LOCAL;
  a->act.what = t->stage == copy_reads ? "copy reads" : t->stage == copy_writes ? "copy writes" : "copy signals";
  a->act.location = t->step->location;
  a->act.span = t->step->span;
  if ((t->stage == copy_reads || t->stage == copy_writes) && ax_view_bytes(&t->from) == 0)
    return AX_OK; /* of nothing: nobody can wait for it */
  if (t->stage == copy_reads && ax_about_usable(a, &t->from, "its source ")) return ax_about_touch(a, &t->from, NULL, false);
  if (t->stage == copy_writes && ax_about_usable(a, &t->to, "its destination ")) return ax_about_touch(a, &t->to, NULL, true);
  if (t->stage == copy_reads || t->stage == copy_writes) return AX_OK;
  a->act.kind = t->stage == copy_arrives ? AX_ACT_ARRIVE : AX_ACT_SIGNAL;
  a->act.object = t->stage == copy_sent ? t->sent : t->stage == copy_received ? t->received : t->barrier;
  a->act.amount = t->stage == copy_arrives ? 1 : ax_view_bytes(&t->from);
  const ax_copy_params *params = t->step->eqn->params;
  return t->stage == copy_received ? ax_about_touch_object(a, &params->to, a->act.object) : AX_OK;
}

bool ax_copy_leaves_unset(const ax_machine *machine, const ax_core_code_step *step) {
  return machine->codes[0]->point != NULL && !step->in_point && ((const ax_copy_params *)step->eqn->params)->grouped;
}

/* The slot that a copy has read may hold anything from now on. */
static ax_status unset_source(const ax_about *a) {
  const ax_view *from = &a->actor->transfer.from;
  ax_bank **memory = &a->state->places[from->region].memory;
  unsigned char *unset = ax_calloc((size_t)ax_view_bytes(from), 1);
  if (unset == NULL) return ax_out_of_memory((size_t)ax_view_bytes(from));
  const ax_status status = ax_bank_own(memory);
  if (status == AX_OK) ax_view_write(from, *memory, NULL, a->actor->transfer.data->tensor->data, unset);
  ax_free(unset);
  return status;
}

static ax_status do_transfer(ax_about *a) {
  ax_state_copy *t = &a->actor->transfer;
  ax_state *state = a->state;
  size_t bytes = (size_t)ax_view_bytes(&t->from);
  if (t->stage == copy_reads) {
    const ax_type type = ax_array_type(AX_U8, AX_DIMS((int64_t)bytes));
    AX_TRY(ax_cell_tensor(&type, &t->data));
    t->set = ax_alloc(bytes);
    if (t->set == NULL) return ax_out_of_memory(bytes);
    if (bytes > 0) ax_view_read(&t->from, state->places[t->from.region].memory, NULL, t->data->tensor->data, t->set);
    if (bytes > 0 && state->weighs) AX_TRY(ax_terms_read(&t->from, state->places[t->from.region].memory, &t->data->terms));
    if (bytes > 0 && state->machine->strict && ax_copy_leaves_unset(state->machine, t->step)) AX_TRY(unset_source(a));
  } else if (t->stage == copy_writes && bytes > 0) {
    AX_TRY(ax_bank_own(&state->places[t->to.region].memory));
    if (state->weighs) AX_TRY(ax_terms_write(&t->to, state->places[t->to.region].memory, NULL, t->data->terms));
    ax_view_write(&t->to, state->places[t->to.region].memory, NULL, t->data->tensor->data, t->set);
  } else if (a->act.kind == AX_ACT_ARRIVE)
    ax_object_arrive(&state->objects[a->act.object]);
  else if (a->act.kind == AX_ACT_SIGNAL)
    state->objects[a->act.object].count += a->act.amount;
  t->stage = stage_from(t, t->stage + 1);
  if (t->stage == copy_done) ax_state_end_copy(state, a->agent);
  return AX_OK;
}

/* --- The beginning and the end of a device --- */

/* Whether a core has nothing more to do: it is through when it stands at the end, looked at or not. */
static ax_status settle(ax_state *state, uint32_t core) {
  ax_actor *actor = state->actors[core];
  if (actor->through || !actor->frame.begun) return AX_OK;
  ax_act_fault fault = {.kind = AX_FINDING_NONE};
  AX_TRY(ax_core_frame_advance(state, core, &fault));
  const ax_core_code *code = state->machine->codes[state->machine->cores[core].body];
  actor->through = fault.kind == AX_FINDING_NONE && code->steps[actor->frame.pc].kind == AX_STEP_END;
  if (actor->through) actor->hash = 0;
  return AX_OK;
}

/* All memory of its device begins, or scratch ends. */
static ax_status touch_scopes(ax_about *a, uint32_t device, bool scratch_alone) {
  const ax_machine *machine = a->state->machine;
  for (uint32_t p = 0; p < machine->first_barrier; p++) {
    const ax_state_place *place = &a->state->places[p];
    bool scratch = machine->places[p].ref >= machine->operand_count + machine->params->outs.count;
    if (machine->places[p].device != device || (scratch_alone && !scratch) || place->memory == NULL || place->memory->bytes == 0)
      continue;
    AX_TRY(ax_touches_add(&a->state->pool, p, true, true, 1, &(ax_bytes){0, place->memory->bytes}));
    a->act.touch_count++;
  }
  return AX_OK;
}

static ax_status about_begin(ax_about *a) {
  a->act.kind = AX_ACT_LOCAL;
  a->act.what = "the kernel begins";
  return touch_scopes(a, a->actor->device, false);
}

/* All cores are through: a scope that is not over is one that they share, and that some of them never came to. */
static ax_status check_scopes(ax_about *a, uint32_t device) {
  const ax_state *state = a->state;
  for (uint32_t p = state->machine->place_count; p < state->place_count && !state->failed; p++) {
    if (!state->places[p].alive || state->places[p].device != device) continue;
    return ax_state_fault(a->state, a->fault, AX_FINDING_AFTER_SCOPE, p, "not all cores that have %s together come to its scope",
                          ax_type_string(&state->places[p].type, NULL));
  }
  return AX_OK;
}

static ax_status about_end(ax_about *a) {
  const ax_machine *machine = a->state->machine;
  uint32_t bodies = machine->params->bodies.count, device = a->actor->device;
  uint32_t first = machine->first_core[device * bodies],
           end = device + 1 < machine->device_count ? machine->first_core[(device + 1) * bodies] : machine->core_count;
  a->act.what = "the end";
  if (first + a->actor->stage < end) {
    const ax_actor *core = a->state->actors[first + a->actor->stage];
    AX_TRY(settle(a->state, first + a->actor->stage));
    a->act.kind = AX_ACT_JOIN;
    a->act.object = first + a->actor->stage;
    a->act.amount = core->through ? core->acts : INT64_MAX;
    return AX_OK;
  }
  if (first + a->actor->stage > end) return AX_OK;
  a->act.kind = AX_ACT_LOCAL;
  for (uint32_t k = 0; k < machine->params->outs.count; k++) {
    uint32_t region = machine->first_place[(size_t)device * bodies * machine->ref_count + machine->operand_count + k];
    const ax_view whole = ax_dense_view(region, &a->state->places[region].type);
    AX_TRY(ax_about_touch(a, &whole, NULL, false));
    ax_bytes where;
    if (!machine->strict || a->state->failed || !ax_view_unset(&whole, a->state->places[region].memory, NULL, &where)) continue;
    AX_TRY(ax_state_fault(a->state, a->fault, AX_FINDING_UNSET_READ, region, "result %u has bytes that nobody has written", k));
    a->fault->bytes = where;
  }
  if (a->fault->kind == AX_FINDING_NONE) AX_TRY(check_scopes(a, device));
  return touch_scopes(a, device, true);
}

/* --- All --- */

static ax_status look(ax_about *a) {
  a->fault->kind = AX_FINDING_NONE;
  a->state->pool.touch_count = a->state->pool.run_count = 0;
  a->actor = ax_state_actor(a->state, a->agent);
  a->act = (ax_act){.kind = AX_ACT_NONE};
  if (a->actor == NULL || a->actor->through) return AX_OK;
  if (a->actor->kind == AX_AGENT_CORE) return about_core(a);
  if (a->actor->kind == AX_AGENT_BEGIN) return about_begin(a);
  if (a->actor->kind == AX_AGENT_SIGNAL) return about_signal(a);
  return a->actor->kind == AX_AGENT_COPY ? about_transfer(a) : about_end(a);
}

static bool is_enabled(const ax_about *a) {
  const ax_state_object *object =
      a->act.kind == AX_ACT_WAIT || a->act.kind == AX_ACT_AWAIT ? &a->state->objects[a->act.object] : NULL;
  if (a->act.kind == AX_ACT_NONE) return false;
  if (a->act.kind == AX_ACT_WAIT) return object->count >= a->act.amount;
  if (a->act.kind == AX_ACT_AWAIT) return object->phase >= a->act.amount;
  if (a->act.kind != AX_ACT_JOIN) return true;
  const ax_actor *other = ax_state_actor(a->state, a->act.object);
  return other->through || other->acts >= a->act.amount;
}

ax_status ax_state_peek(ax_state *state, uint32_t agent, ax_act *act, bool *enabled, ax_act_fault *fault) {
  ax_about a = {.state = state, .agent = agent, .fault = fault};
  AX_TRY(look(&a));
  *act = a.act;
  *enabled = is_enabled(&a);
  return AX_OK;
}

ax_status ax_state_step(ax_state *state, uint32_t agent, ax_act_fault *fault) {
  ax_about a = {.state = state, .agent = agent, .fault = fault};
  AX_TRY(ax_state_own_actor(state, agent));
  AX_TRY(look(&a));
  if (fault->kind != AX_FINDING_NONE && a.actor->kind != AX_AGENT_END) { /* it goes no further */
    a.actor->through = state->failed = true;
    a.actor->acts++; /* as it has been told of */
    return AX_OK;
  }
  ax_act_fault unset = *fault;
  if (a.act.kind == AX_ACT_NONE || !is_enabled(&a)) return ax_error(AX_INTERNAL, "agent %u cannot go on", agent);
  a.actor->acts++;
  ax_agent_kind kind = a.actor->kind;
  ax_status status = kind == AX_AGENT_CORE ? do_core(&a) : kind == AX_AGENT_COPY ? do_transfer(&a) : AX_OK;
  if (kind == AX_AGENT_SIGNAL) do_signal(&a);
  if (kind == AX_AGENT_BEGIN) a.actor->through = true;
  if (kind == AX_AGENT_CORE && fault->kind != AX_FINDING_NONE) a.actor->through = state->failed = true;
  if (kind == AX_AGENT_END) {
    a.actor->stage++;
    a.actor->through = a.act.kind == AX_ACT_LOCAL;
    *fault = unset;
  }
  return status;
}

const ax_touches *ax_state_touched(const ax_state *state) { return &state->pool; }
