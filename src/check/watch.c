#include "check/watch.h"

#include <string.h>

#include "kernel/machine/state.h"

/* --- What there is, with names for people --- */

static ax_status keep(ax_watch *watch, ax_text *text, const char **out) {
  *out = text->failed ? NULL : ax_arena_copy(&watch->names, text->data, text->length + 1);
  ax_text_deinit(text);
  return *out != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status add_agent(ax_watch *watch, const ax_state *state, uint32_t number) {
  const ax_machine *machine = watch->machine;
  uint32_t first_copy = ax_machine_agents(machine), core = number;
  ax_act_agent agent = {.initial = number < first_copy};
  const ax_name_key *sent = number >= first_copy ? ax_names_key(machine->names, AX_NAME_AGENT, number - first_copy) : NULL;
  if (sent != NULL) core = sent->core, agent.signal = sent->site == 1;
  agent.device = core < machine->core_count ? machine->cores[core].device : (number - machine->core_count) % machine->device_count;
  ax_text text = {0};
  ax_actor_text(&text, state, number);
  AX_TRY(keep(watch, &text, &agent.name));
  return ax_act_objects_add_agent(&watch->objects, agent);
}

/* Type and name of a place, from what it is in the program. */
static const ax_type *describe_place(const ax_watch *watch, uint32_t number, uint32_t *device, ax_text *name) {
  static const ax_type one = {.form = AX_SEMAPHORE, .dtype = AX_S32};
  const ax_machine *machine = watch->machine;
  uint32_t operands = machine->operand_count, outs = machine->params->outs.count;
  if (number >= machine->place_count) {
    const ax_name_key *key = ax_names_key(machine->names, AX_NAME_PLACE, number - machine->place_count);
    const ax_core_code_step *step = &machine->codes[machine->cores[key->core].body]->steps[key->site];
    *device = machine->cores[key->core].device;
    ax_text_add(name, "scoped %u", key->index);
    if (step->location != NULL) ax_text_add(name, " (%s)", step->location);
    if (key->occurrence > 0) ax_text_add(name, ", time %u", key->occurrence + 1);
    return &((const ax_run_scoped_params *)step->eqn->params)->scratch.v[key->index];
  }
  const struct ax_ref_place *place = &machine->places[number];
  *device = place->device;
  if (number >= machine->first_barrier) {
    ax_text_add(name, "barrier_semaphore");
    return &one;
  }
  if (place->ref < operands + outs)
    ax_text_add(name, place->ref < operands ? "operand %u" : "result %u",
                place->ref < operands ? place->ref : place->ref - operands);
  else
    ax_text_add(name, "scratch %u", place->ref - operands - outs);
  if (place->instance > 0) ax_text_add(name, ", instance %u", place->instance);
  return &machine->codes[place->body == AX_NONE ? 0 : place->body]->types[(uint32_t)machine->params->consts + place->ref];
}

static ax_status add_region(ax_watch *watch, uint32_t number) {
  ax_text name = {0};
  ax_act_region region = {0};
  const ax_type *type = describe_place(watch, number, &region.device, &name);
  AX_TRY(keep(watch, &name, &region.name));
  if (type->form == AX_REF) {
    region.elem_bytes = (uint32_t)ax_dtype_bytes(type->dtype);
    region.bytes = (uint64_t)ax_type_elems(type) * region.elem_bytes;
    region.rank = type->rank;
    if (type->rank > AX_REGION_RANK) region.elem_bytes = region.rank = 0;
    for (uint32_t d = 0; d < region.rank; d++) region.dims[d] = type->dims[d];
  } else
    region.bytes = (uint64_t)ax_type_elems(type); /* a byte stands for a semaphore or barrier */
  return ax_act_objects_add_region(&watch->objects, region);
}

static ax_status add_object(ax_watch *watch, const ax_state *state, uint32_t number) {
  const ax_name_key *key = ax_names_key(watch->machine->names, AX_NAME_OBJECT, number);
  ax_text name = {0};
  uint32_t device;
  const ax_type *type = describe_place(watch, key->core, &device, &name);
  if (type->rank > 0) ax_text_add(&name, "[%u]", key->index);
  const char *text;
  AX_TRY(keep(watch, &name, &text));
  int64_t arrivals = type->form == AX_BARRIER && number < state->object_count ? state->objects[number].arrivals : 1;
  AX_TRY(ax_act_objects_add_semaphore(&watch->objects, (ax_act_semaphore){.name = text, .device = device}));
  return ax_act_objects_add_barrier(&watch->objects,
                                    (ax_act_barrier){.name = text, .device = device, .arrivals = (uint32_t)arrivals});
}

/* Everything that has got a number. */
static ax_status describe(ax_watch *watch, const ax_state *state) {
  const ax_machine *machine = watch->machine;
  uint32_t agents = ax_machine_agents(machine) + ax_names_count(machine->names, AX_NAME_AGENT);
  while (watch->objects.agent_count < agents) AX_TRY(add_agent(watch, state, watch->objects.agent_count));
  while (watch->objects.region_count < machine->place_count + ax_names_count(machine->names, AX_NAME_PLACE))
    AX_TRY(add_region(watch, watch->objects.region_count));
  while (watch->objects.semaphore_count < ax_names_count(machine->names, AX_NAME_OBJECT))
    AX_TRY(add_object(watch, state, watch->objects.semaphore_count));
  return AX_OK;
}

/* --- As a system --- */

static ax_status create(void *context, void **out) {
  ax_watch *watch = context;
  ax_state *state;
  *out = NULL;
  AX_TRY(ax_state_create(watch->machine, watch->in, &state));
  *out = state;
  return describe(watch, state);
}

static ax_status clone_state(void *context, const void *state, void **out) {
  (void)context;
  ax_state *copy;
  ax_status status = ax_state_clone(state, &copy);
  *out = copy;
  return status;
}

static void release(void *context, void *state) {
  (void)context;
  ax_state_release(state);
}

static uint32_t agents_of(void *context, const void *state) {
  (void)context;
  return ax_state_agents(state);
}

/* Touches of the state are copied, as the state may be gone before the next peek. */
static ax_status take_touches(ax_watch *watch, const ax_touches *from, ax_act *act) {
  watch->last.touch_count = watch->last.run_count = 0;
  for (uint32_t i = 0; i < act->touch_count; i++)
    AX_TRY(ax_touches_copy(&watch->last, from, &from->touches[act->touch_first + i]));
  act->touch_first = 0;
  return AX_OK;
}

static ax_status peek(void *context, void *state, uint32_t agent, ax_act *act, bool *enabled) {
  ax_watch *watch = context;
  ax_act_fault fault;
  AX_TRY(ax_state_peek(state, agent, act, enabled, &fault));
  AX_TRY(take_touches(watch, ax_state_touched(state), act));
  return describe(watch, state);
}

/* Where a core stands before its next step; AX_NONE: it has not begun. */
static uint32_t place_of(const ax_watch *watch, const ax_state *state, uint32_t agent) {
  if (agent >= watch->machine->core_count || !state->actors[agent]->frame.begun) return AX_NONE;
  return state->actors[agent]->frame.pc;
}

/* Before the step is done. */
static ax_point_label label_of(const ax_watch *watch, const ax_state *state, uint32_t agent, uint32_t pc) {
  const ax_machine *machine = watch->machine;
  int64_t ids[AX_MAX_RANK];
  if (!watch->labels_steps || pc == AX_NONE) return (ax_point_label){.point = AX_NONE};
  ax_point_label label = ax_strands_label(machine, agent, pc);
  const uint32_t *point = machine->codes[machine->cores[agent].body]->point;
  for (uint32_t d = 0; d < machine->params->grid.count; d++) {
    const ax_cell *cell = state->actors[agent]->frame.slot[point[d]];
    if (cell == NULL) return label;
    ids[d] = *(const int32_t *)cell->tensor->data;
  }
  label.point = ax_strands_point(machine, ids);
  return label;
}

static ax_status note_step(ax_watch *watch, const ax_state *state, uint32_t agent, uint32_t before, const ax_point_label *label) {
  if (!watch->notes_steps) return AX_OK;
  if (watch->labels_steps) {
    AX_TRY(ax_grow(&watch->labels, sizeof watch->labels[0], watch->note_count, 1, &watch->label_capacity));
    watch->labels[watch->note_count] = *label;
  }
  AX_TRY(ax_grow(&watch->notes, sizeof watch->notes[0], watch->note_count, 1, &watch->note_capacity));
  watch->notes[watch->note_count++] = (ax_step_note){before, before != AX_NONE && place_of(watch, state, agent) == before};
  return AX_OK;
}

static ax_status step(void *context, void *state, uint32_t agent, ax_act_fault *fault) {
  ax_watch *watch = context;
  const uint32_t before = place_of(watch, state, agent);
  const ax_point_label label = label_of(watch, state, agent, watch->notes_steps ? before : AX_NONE);
  AX_TRY(ax_state_step(state, agent, fault));
  AX_TRY(note_step(watch, state, agent, before, &label));
  if (fault->kind != AX_FINDING_NONE) {
    ax_text text = {0};
    ax_text_add(&text, "%s", fault->text);
    AX_TRY(keep(watch, &text, &fault->text));
  }
  return describe(watch, state);
}

static void hash(void *context, const void *state, uint64_t out[2]) {
  (void)context;
  ax_state_hash(state, out);
}

static bool has_like(void *context, uint32_t agent) {
  const ax_watch *watch = context;
  return watch->alike.any && agent < watch->machine->core_count && watch->alike.several[agent];
}

static uint64_t hash_agent(void *context, const void *state, uint32_t agent) {
  (void)context;
  return ax_state_hash_agent(state, agent);
}

static uint64_t outcome(void *context, const void *state) {
  (void)context;
  return ax_state_outcome(state);
}

static bool rounded(void *context, const void *state, const void *other) {
  (void)context;
  return ax_state_is_rounded(state, other);
}

static ax_status run_again(ax_state *state, const ax_interleaving *run) {
  for (uint32_t k = 0; k < run->count; k++) {
    ax_act act;
    ax_act_fault fault = {.region = AX_NONE};
    bool enabled;
    AX_TRY(ax_state_peek(state, run->agents[k], &act, &enabled, &fault));
    AX_TRY(ax_state_step(state, run->agents[k], &fault));
  }
  return AX_OK;
}

static ax_status weigh(void *context, const ax_interleaving *run, void **out) {
  ax_watch *watch = context;
  ax_state *state;
  *out = NULL;
  AX_TRY(ax_state_create(watch->machine, watch->in, &state));
  ax_state_weigh(state);
  const ax_status status = run_again(state, run);
  if (status == AX_OK)
    *out = state;
  else
    ax_state_release(state);
  return status;
}

static int64_t semaphore(void *context, const void *state, uint32_t number) {
  (void)context;
  const ax_state *s = state;
  return number < s->object_count ? s->objects[number].count : 0;
}

static int64_t arrivals(void *context, const void *state, uint32_t number) {
  (void)context;
  const ax_state *s = state;
  return number < s->object_count ? s->objects[number].phase * s->objects[number].arrivals + s->objects[number].arrived : 0;
}

static size_t bytes(void *context, const void *state) {
  (void)context;
  return ax_state_bytes(state);
}

ax_status ax_watch_init(ax_watch *watch, ax_machine *machine, ax_tensor *const *in) {
  *watch = (ax_watch){.machine = machine, .in = in, .labels_steps = ax_strands_count(machine) > 1};
  return AX_OK;
}

uint32_t *ax_watch_rotation(const ax_watch *watch) {
  const ax_machine *machine = watch->machine;
  uint32_t agents = ax_machine_agents(machine), each = machine->core_count / machine->device_count;
  uint32_t *to = ax_alloc(agents * sizeof to[0]);
  if (to == NULL) return NULL;
  for (uint32_t i = 0; i < machine->core_count; i++) to[i] = (i + each) % machine->core_count;
  for (uint32_t i = machine->core_count; i < agents; i++) {
    uint32_t first = machine->core_count + (i - machine->core_count) / machine->device_count * machine->device_count;
    to[i] = first + (i - first + 1) % machine->device_count;
  }
  return to;
}

ax_status ax_watch_join_alike(ax_watch *watch) {
  AX_TRY(ax_alike_find(watch->machine, &watch->alike));
  watch->machine->alike = watch->alike.any ? &watch->alike : NULL;
  return AX_OK;
}

uint32_t ax_watch_core(const ax_watch *watch, uint32_t agent) {
  const ax_machine *machine = watch->machine;
  const uint32_t first_copy = ax_machine_agents(machine);
  if (agent < machine->core_count) return agent;
  const ax_name_key *sent =
      agent >= first_copy && agent != AX_NONE ? ax_names_key(machine->names, AX_NAME_AGENT, agent - first_copy) : NULL;
  return sent != NULL ? sent->core : AX_NONE;
}

bool ax_watch_is_end(const ax_watch *watch, uint32_t agent) {
  const ax_machine *machine = watch->machine;
  return agent >= machine->core_count && agent < machine->core_count + machine->device_count;
}

void ax_watch_deinit(ax_watch *watch) {
  watch->machine->alike = NULL;
  ax_alike_deinit(&watch->alike);
  ax_act_objects_deinit(&watch->objects);
  ax_touches_deinit(&watch->last);
  ax_free(watch->notes);
  ax_free(watch->labels);
  ax_arena_deinit(&watch->names);
}

ax_system ax_watch_system(ax_watch *watch) {
  return (ax_system){.context = watch,
                     .objects = &watch->objects,
                     .touches = &watch->last,
                     .create = create,
                     .clone = clone_state,
                     .release = release,
                     .agents = agents_of,
                     .peek = peek,
                     .step = step,
                     .hash = hash,
                     .has_like = has_like,
                     .hash_agent = hash_agent,
                     .outcome = outcome,
                     .rounded = rounded,
                     .weigh = weigh,
                     .semaphore = semaphore,
                     .arrivals = arrivals,
                     .bytes = bytes};
}
