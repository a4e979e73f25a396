/* A state: made, cloned, hashed, asked. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/number.h"
#include "kernel/machine/alike.h"
#include "kernel/machine/state.h"

/* --- Actors --- */

static ax_actor through = {.through = true, .started = true}; /* stands for every copy that is through */

ax_actor *ax_state_actor(const ax_state *state, uint32_t agent) { return agent < state->actor_count ? state->actors[agent] : NULL; }

ax_status ax_state_add_actor(ax_state *state, uint32_t agent, ax_actor **out) {
  if (agent >= state->actor_count) {
    AX_TRY(ax_grow(&state->actors, sizeof state->actors[0], state->actor_count, agent + 1 - state->actor_count,
                   &state->actor_capacity));
    while (state->actor_count <= agent) state->actors[state->actor_count++] = NULL;
  }
  ax_actor *actor = state->actors[agent] = ax_calloc(1, sizeof *actor);
  if (actor == NULL) return ax_out_of_memory(sizeof *actor);
  actor->references = 1;
  *out = actor;
  return AX_OK;
}

static void release_frame(ax_core_frame *frame, const ax_core_code *code) {
  for (uint32_t i = 0; frame->slot != NULL && i < code->slot_count; i++) ax_cell_release(frame->slot[i]);
  ax_free(frame->slot);
  ax_free(frame->counter);
  ax_free(frame->occurrence);
  ax_free(frame->waited);
  ax_free(frame->group);
  ax_free(frame->group_end);
  ax_stored_deinit(&frame->stored);
}

static void release_actor(const ax_state *state, ax_actor *actor) {
  if (actor == NULL || actor == &through || --actor->references > 0) return;
  if (actor->kind == AX_AGENT_CORE) release_frame(&actor->frame, state->machine->codes[state->machine->cores[actor->core].body]);
  if (actor->kind == AX_AGENT_COPY) {
    ax_cell_release(actor->transfer.data);
    ax_free(actor->transfer.set);
  }
  ax_free(actor);
}

void ax_state_end_copy(ax_state *state, uint32_t agent) {
  release_actor(state, state->actors[agent]);
  state->actors[agent] = &through;
}

/* --- Places --- */

ax_view ax_dense_view(uint32_t region, const ax_type *type) {
  ax_view view = {.region = region, .type = *type};
  int64_t stride = type->form == AX_REF ? (int64_t)ax_dtype_bytes(type->dtype) : 1;
  for (uint32_t d = type->rank; d-- > 0;) {
    view.strides[d] = stride;
    stride *= type->dims[d];
  }
  return view;
}

static ax_status make_objects(ax_state *state, uint32_t number, int64_t arrivals) {
  ax_state_place *place = &state->places[number];
  int64_t count = ax_type_elems(&place->type);
  for (int64_t i = 0; i < count; i++) {
    uint32_t object;
    const ax_name_key key = {.kind = AX_NAME_OBJECT, .core = number, .index = (uint32_t)i};
    AX_TRY(ax_names_number(state->machine->names, &key, &object));
    if (i == 0) place->first_object = object;
    if (object >= state->object_count) {
      AX_TRY(ax_grow(&state->objects, sizeof state->objects[0], state->object_count, object + 1 - state->object_count,
                     &state->object_capacity));
      memset(state->objects + state->object_count, 0, (object + 1 - state->object_count) * sizeof state->objects[0]);
      state->object_count = object + 1;
    }
    state->objects[object] = (ax_state_object){.arrivals = arrivals, .region = number};
  }
  return AX_OK;
}

ax_status ax_state_make_place(ax_state *state, uint32_t number, const ax_type *type, int64_t arrivals, uint32_t device) {
  if (number >= state->place_count) {
    AX_TRY(ax_grow(&state->places, sizeof state->places[0], state->place_count, number + 1 - state->place_count,
                   &state->place_capacity));
    memset(state->places + state->place_count, 0, (number + 1 - state->place_count) * sizeof state->places[0]);
    state->place_count = number + 1;
  }
  ax_state_place *place = &state->places[number];
  *place = (ax_state_place){.type = *type, .device = device, .made = true, .alive = true};
  if (type->form != AX_REF) return make_objects(state, number, arrivals);
  return ax_bank_create((uint64_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype), &place->memory);
}

/* --- Making --- */

static ax_status make_static_place(ax_state *state, uint32_t number, ax_tensor *const *in) {
  const ax_machine *machine = state->machine;
  const struct ax_ref_place *at = &machine->places[number];
  uint32_t operands = machine->operand_count, outs = machine->params->outs.count, consts = (uint32_t)machine->params->consts;
  if (at->ref < operands + outs) {
    ax_tensor *tensor = at->ref < operands ? in[(size_t)(consts + at->ref) * machine->device_count + at->device] : NULL;
    ax_type type = tensor != NULL ? ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims))
                                  : machine->params->outs.v[at->ref - operands];
    type.form = AX_REF;
    type.space = AX_SPACE_HBM;
    AX_TRY(ax_state_make_place(state, number, &type, 0, at->device));
    ax_bank *memory = state->places[number].memory;
    if (tensor != NULL) memcpy(memory->data, tensor->data, memory->bytes);
    if (tensor != NULL) memset(memory->set, 1, memory->bytes);
    return AX_OK;
  }
  if (number >= machine->first_barrier) {
    const ax_type one = {.form = AX_SEMAPHORE, .dtype = AX_S32};
    return ax_state_make_place(state, number, &one, 0, at->device);
  }
  uint32_t scratch = at->ref - operands - outs;
  return ax_state_make_place(state, number, &machine->params->scratch.v[scratch],
                             ax_arrivals_of(&machine->params->arrivals, scratch), at->device);
}

static ax_status tensor_cell(const ax_tensor *tensor, ax_cell **out) {
  ax_type type = ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims));
  AX_TRY(ax_cell_tensor(&type, out));
  ax_tensor_assign((*out)->tensor, tensor);
  return AX_OK;
}

static ax_status make_frame(ax_state *state, uint32_t c, ax_tensor *const *in) {
  const ax_machine *machine = state->machine;
  const ax_core *core = &machine->cores[c];
  const ax_core_code *code = machine->codes[core->body];
  uint32_t consts = (uint32_t)machine->params->consts;
  ax_actor *actor;
  AX_TRY(ax_state_add_actor(state, c, &actor));
  *actor = (ax_actor){.references = 1, .kind = AX_AGENT_CORE, .started = true, .core = c};
  ax_core_frame *frame = &actor->frame;
  frame->begun = machine->begins == 0;
  frame->slot = ax_calloc(code->slot_count + 1, sizeof frame->slot[0]);
  frame->counter = ax_calloc(code->loop_count + 1, sizeof frame->counter[0]);
  frame->occurrence = ax_calloc(code->step_count + 1, sizeof frame->occurrence[0]);
  if (frame->slot == NULL || frame->counter == NULL || frame->occurrence == NULL)
    return ax_out_of_memory(code->slot_count * sizeof frame->slot[0]);
  for (uint32_t i = 0; i < consts; i++) AX_TRY(tensor_cell(in[(size_t)i * machine->device_count + core->device], &frame->slot[i]));
  for (uint32_t r = 0; r < machine->ref_count; r++) {
    const ax_view view = ax_dense_view(ax_machine_place(machine, core, r), &code->types[consts + r]);
    AX_TRY(ax_cell_view(&view, &frame->slot[consts + r]));
  }
  for (uint32_t i = 0; i < code->constant_count; i++) {
    const ax_literal *literal = code->constants[i].literal;
    const ax_tensor value = {.dtype = literal->type.dtype, .rank = literal->type.rank, .data = literal->data};
    ax_tensor shaped = value;
    memcpy(shaped.dims, literal->type.dims, sizeof shaped.dims);
    AX_TRY(tensor_cell(&shaped, &frame->slot[code->constants[i].slot]));
  }
  return AX_OK;
}

static ax_status fill(ax_state *state, ax_tensor *const *in) {
  const ax_machine *machine = state->machine;
  for (uint32_t p = 0; p < machine->place_count; p++) AX_TRY(make_static_place(state, p, in));
  for (uint32_t c = 0; c < machine->core_count; c++) AX_TRY(make_frame(state, c, in));
  for (uint32_t d = 0; d < machine->device_count; d++) {
    ax_actor *actor;
    AX_TRY(ax_state_add_actor(state, machine->core_count + d, &actor));
    *actor = (ax_actor){.references = 1, .kind = AX_AGENT_END, .started = true, .device = d};
  }
  for (uint32_t d = 0; d < machine->begins; d++) {
    ax_actor *actor;
    AX_TRY(ax_state_add_actor(state, machine->core_count + machine->device_count + d, &actor));
    *actor = (ax_actor){.references = 1, .kind = AX_AGENT_BEGIN, .started = true, .device = d};
  }
  return AX_OK;
}

ax_status ax_state_create(const ax_machine *machine, ax_tensor *const *in, ax_state **out) {
  *out = NULL;
  ax_state *state = ax_calloc(1, sizeof *state);
  if (state == NULL) return ax_out_of_memory(sizeof *state);
  state->machine = machine;
  ax_status status = fill(state, in);
  if (status == AX_OK)
    *out = state;
  else
    ax_state_release(state);
  return status;
}

void ax_state_release(ax_state *state) {
  if (state == NULL) return;
  for (uint32_t a = 0; a < state->actor_count; a++) release_actor(state, state->actors[a]);
  for (uint32_t p = 0; p < state->place_count; p++) ax_bank_release(state->places[p].memory);
  ax_free(state->actors);
  ax_free(state->places);
  ax_free(state->objects);
  ax_touches_deinit(&state->pool);
  ax_free(state);
}

/* --- Cloning --- */

/* A copy of `count` elements, with room for one at least. */
static ax_status copy_array(void *out, const void *from, size_t count, size_t bytes) {
  void *copy = ax_alloc((count + 1) * bytes);
  if (copy == NULL) return ax_out_of_memory(count * bytes);
  if (count > 0) memcpy(copy, from, count * bytes);
  memcpy(out, &copy, sizeof copy);
  return AX_OK;
}

static ax_status clone_frame(const ax_state *state, const ax_actor *from, ax_actor *to) {
  const ax_core_code *code = state->machine->codes[state->machine->cores[from->core].body];
  ax_core_frame *frame = &to->frame;
  const ax_core_frame *old = &from->frame;
  frame->slot = NULL, frame->counter = NULL, frame->occurrence = NULL, frame->waited = NULL, frame->group = NULL,
  frame->group_end = NULL, frame->stored = (ax_stored){0};
  AX_TRY(copy_array(&frame->counter, old->counter, code->loop_count, sizeof old->counter[0]));
  AX_TRY(copy_array(&frame->occurrence, old->occurrence, code->step_count, sizeof old->occurrence[0]));
  AX_TRY(copy_array(&frame->waited, old->waited, old->waited_count, sizeof old->waited[0]));
  AX_TRY(copy_array(&frame->group, old->group, old->grouped, sizeof old->group[0]));
  AX_TRY(copy_array(&frame->group_end, old->group_end, old->groups, sizeof old->group_end[0]));
  AX_TRY(ax_stored_copy(&old->stored, &frame->stored));
  frame->waited_capacity = old->waited_count + 1, frame->grouped_capacity = old->grouped + 1,
  frame->groups_capacity = old->groups + 1;
  AX_TRY(copy_array(&frame->slot, old->slot, code->slot_count, sizeof old->slot[0]));
  for (uint32_t i = 0; i < code->slot_count; i++) ax_cell_retain(frame->slot[i]);
  return AX_OK;
}

/* On failure *out is what there is so far, to be released. */
static ax_status copy_actor(const ax_state *state, const ax_actor *from, ax_actor **out) {
  ax_actor *actor = *out = ax_alloc(sizeof *actor);
  if (actor == NULL) return ax_out_of_memory(sizeof *actor);
  *actor = *from;
  actor->references = 1;
  if (from->kind == AX_AGENT_CORE) return clone_frame(state, from, actor);
  if (from->kind != AX_AGENT_COPY) return AX_OK;
  ax_cell_retain(actor->transfer.data);
  actor->transfer.set = NULL;
  if (from->transfer.set == NULL) return AX_OK;
  return copy_array(&actor->transfer.set, from->transfer.set,
                    (size_t)ax_type_elems(&from->transfer.from.type) * ax_dtype_bytes(from->transfer.from.type.dtype), 1);
}

ax_status ax_state_own_actor(ax_state *state, uint32_t agent) {
  ax_actor *shared = ax_state_actor(state, agent), *own;
  if (shared == NULL || shared == &through) return AX_OK;
  shared->hash = 0;
  if (shared->references == 1) return AX_OK;
  ax_status status = copy_actor(state, shared, &own);
  if (status != AX_OK) {
    release_actor(state, own);
    return status;
  }
  shared->references--;
  state->actors[agent] = own;
  return AX_OK;
}

static ax_status clone_into(const ax_state *state, ax_state *clone) {
  clone->failed = state->failed;
  AX_TRY(copy_array(&clone->actors, state->actors, state->actor_count, sizeof state->actors[0]));
  clone->actor_capacity = state->actor_count + 1;
  clone->actor_count = state->actor_count;
  for (uint32_t a = 0; a < state->actor_count; a++)
    if (state->actors[a] != NULL && state->actors[a] != &through) state->actors[a]->references++;
  AX_TRY(copy_array(&clone->objects, state->objects, state->object_count, sizeof state->objects[0]));
  clone->object_count = state->object_count, clone->object_capacity = state->object_count + 1;
  AX_TRY(copy_array(&clone->places, state->places, state->place_count, sizeof state->places[0]));
  clone->place_count = state->place_count, clone->place_capacity = state->place_count + 1;
  for (uint32_t p = 0; p < clone->place_count; p++)
    if (clone->places[p].memory != NULL) clone->places[p].memory->references++;
  return AX_OK;
}

ax_status ax_state_clone(const ax_state *state, ax_state **out) {
  *out = NULL;
  ax_state *clone = ax_calloc(1, sizeof *clone);
  if (clone == NULL) return ax_out_of_memory(sizeof *clone);
  clone->machine = state->machine;
  ax_status status = clone_into(state, clone);
  if (status == AX_OK)
    *out = clone;
  else
    ax_state_release(clone);
  return status;
}

/* --- Hashes --- */

static uint64_t hash_view(uint64_t hash, const ax_view *view) {
  hash = ax_hash_word(hash, view->region);
  hash = ax_hash_word(hash, (uint64_t)view->offset);
  hash = ax_hash_bytes(hash, view->strides, view->type.rank * sizeof view->strides[0]);
  return ax_hash_bytes(hash, view->type.dims, view->type.rank * sizeof view->type.dims[0]);
}

static uint64_t hash_cell(ax_cell *cell) {
  if (cell == NULL) return 0;
  if (cell->hash != 0) return cell->hash;
  uint64_t hash = AX_HASH_SEED;
  if (cell->tensor != NULL)
    hash = ax_hash_bytes(hash, cell->tensor->data,
                         (size_t)ax_dims_elems(cell->tensor->rank, cell->tensor->dims) * ax_dtype_bytes(cell->tensor->dtype));
  else
    hash = hash_view(hash, &cell->view);
  return cell->hash = hash | 1;
}

static uint64_t hash_frame(const ax_state *state, const ax_actor *actor) {
  const ax_core_frame *frame = &actor->frame;
  const ax_core_code *code = state->machine->codes[state->machine->cores[actor->core].body];
  uint64_t hash = ax_hash_word(AX_HASH_SEED, (uint64_t)frame->pc << 32 | frame->copies << 1 | frame->begun);
  if (frame->signals > 0) hash = ax_hash_word(hash, frame->signals);
  const ax_alike *alike = state->machine->alike;
  const bool *own = alike != NULL && alike->several[actor->core] ? alike->own[state->machine->cores[actor->core].body] : NULL;
  for (uint32_t i = 0; i < code->slot_count; i++)
    hash = ax_hash_word(hash, own != NULL && own[i] ? frame->slot[i] != NULL : hash_cell(frame->slot[i]));
  hash = ax_hash_bytes(hash, frame->counter, code->loop_count * sizeof frame->counter[0]);
  hash = ax_hash_bytes(hash, frame->occurrence, code->step_count * sizeof frame->occurrence[0]);
  for (uint32_t i = 0; i < frame->waited_count; i++)
    hash = ax_hash_word(ax_hash_word(hash, frame->waited[i].object), (uint64_t)frame->waited[i].times);
  hash = ax_hash_bytes(hash, frame->group, frame->grouped * sizeof frame->group[0]);
  hash = ax_hash_bytes(hash, frame->group_end, frame->groups * sizeof frame->group_end[0]);
  hash = ax_stored_hash(&frame->stored, hash);
  return ax_hash_word(ax_hash_word(hash, frame->joined), frame->joined_read);
}

/* With what it copies: the same copy of a core may be another one where control flow differs, as after a count that was read. */
static uint64_t hash_transfer(uint64_t hash, const ax_state_copy *transfer) {
  hash = ax_hash_word(ax_hash_word(hash, transfer->stage), hash_cell(transfer->data));
  hash = hash_view(hash_view(hash, &transfer->from), &transfer->to);
  return ax_hash_word(ax_hash_word(ax_hash_word(hash, transfer->sent), transfer->received), transfer->barrier);
}

static uint64_t hash_actor(const ax_state *state, const ax_actor *actor) {
  uint64_t hash = ax_hash_word(ax_hash_word(AX_HASH_SEED, actor->kind), (uint64_t)actor->through);
  if (actor->through) return hash;
  if (actor->kind == AX_AGENT_CORE) return ax_hash_word(hash, hash_frame(state, actor));
  if (actor->kind == AX_AGENT_COPY) return hash_transfer(hash, &actor->transfer);
  if (actor->kind == AX_AGENT_SIGNAL)
    return ax_hash_word(ax_hash_word(hash, actor->transfer.received), (uint64_t)actor->transfer.amount);
  return ax_hash_word(hash, actor->stage);
}

static uint64_t actor_hash(const ax_state *state, uint32_t agent) {
  ax_actor *actor = state->actors[agent];
  if (actor->hash == 0) actor->hash = hash_actor(state, actor) | 1;
  return actor->hash;
}

static bool has_like(const ax_state *state, uint32_t agent) {
  const ax_machine *machine = state->machine;
  return machine->alike != NULL && agent < machine->core_count && machine->alike->several[agent];
}

uint64_t ax_state_hash_agent(const ax_state *state, uint32_t agent) {
  if (!has_like(state, agent)) return agent + 1;
  return ax_hash_word(ax_hash_word(AX_HASH_SEED, state->machine->alike->first[agent]), actor_hash(state, agent));
}

void ax_state_hash(const ax_state *state, uint64_t out[2]) {
  uint64_t sum[2] = {0, 0}; /* of cores that are alike: in no order */
  out[0] = AX_HASH_SEED;
  out[1] = ~AX_HASH_SEED;
  for (uint32_t a = 0; a < state->actor_count; a++) {
    if (state->actors[a] == NULL) continue;
    if (has_like(state, a)) {
      uint64_t random = ax_state_hash_agent(state, a);
      sum[0] += ax_next_random(&random);
      sum[1] += ax_next_random(&random);
      continue;
    }
    const uint64_t hash = actor_hash(state, a);
    out[0] = ax_hash_word(ax_hash_word(out[0], a), hash);
    out[1] = ax_hash_word(ax_hash_word(out[1], hash), a);
  }
  if (state->machine->alike != NULL) out[0] = ax_hash_word(out[0], sum[0]), out[1] = ax_hash_word(out[1], sum[1]);
  for (uint32_t p = 0; p < state->place_count; p++) {
    const ax_state_place *place = &state->places[p];
    if (!place->alive) continue;
    uint64_t hash = ax_hash_word(place->memory != NULL ? ax_bank_hash(place->memory) : 1, place->users);
    out[0] = ax_hash_word(ax_hash_word(out[0], p), hash);
    out[1] = ax_hash_word(ax_hash_word(out[1], hash), p);
  }
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t o = 0; o < state->object_count; o++) {
      const ax_state_object *object = &state->objects[o];
      out[i] = ax_hash_word(ax_hash_word(ax_hash_word(out[i], (uint64_t)object->count), (uint64_t)object->arrived),
                            (uint64_t)object->phase);
    }
}

/* The place of result k of a device. */
static uint32_t place_of_result(const ax_machine *machine, uint32_t k, uint32_t device) {
  return machine->first_place[(size_t)device * machine->params->bodies.count * machine->ref_count + machine->operand_count + k];
}

uint64_t ax_state_outcome(const ax_state *state) {
  const ax_machine *machine = state->machine;
  uint64_t hash = AX_HASH_SEED;
  for (uint32_t d = 0; d < machine->device_count; d++)
    for (uint32_t k = 0; k < machine->params->outs.count; k++)
      hash = ax_hash_word(hash, ax_bank_hash(state->places[place_of_result(machine, k, d)].memory));
  for (uint32_t o = 0; o < state->object_count; o++)
    hash = ax_hash_word(ax_hash_word(hash, (uint64_t)state->objects[o].count), (uint64_t)state->objects[o].arrived);
  return hash;
}

void ax_state_weigh(ax_state *state) { state->weighs = true; }

/* Of one result, of a state that may have weighed sums: all elements are floats that are as near as sums in other orders may be,
   seen from their own terms or from the largest element. */
static bool is_near(const ax_type *type, const ax_bank *a, const ax_bank *b) {
  enum { most_units = 16 };
  const int64_t count = ax_type_elems(type);
  double largest = 0, most = 0;
  if (memcmp(a->data, b->data, a->bytes) == 0) return true;
  if (!ax_is_float(type->dtype)) return false;
  for (int64_t i = 0; i < count; i++) {
    const double x = ax_number_load(type->dtype, a->data, i).f, y = ax_number_load(type->dtype, b->data, i).f;
    if (x == y || (x != x && y != y)) continue;
    if (!(fabs(x - y) <= DBL_MAX)) return false;
    if (fabs(x) > largest) largest = fabs(x);
    if (a->terms != NULL && ax_term_explains(type->dtype, a->terms[i], fabs(x - y))) continue;
    if (fabs(x - y) > most) most = fabs(x - y);
  }
  return most <= most_units * ldexp(largest, -ax_float_form_of(type->dtype).fraction);
}

bool ax_state_is_rounded(const ax_state *state, const ax_state *other) {
  const ax_machine *machine = state->machine;
  for (uint32_t d = 0; d < machine->device_count; d++)
    for (uint32_t k = 0; k < machine->params->outs.count; k++) {
      const uint32_t place = place_of_result(machine, k, d);
      if (!is_near(&machine->params->outs.v[k], state->places[place].memory, other->places[place].memory)) return false;
    }
  for (uint32_t o = 0; o < state->object_count; o++)
    if (state->objects[o].count != other->objects[o].count || state->objects[o].arrived != other->objects[o].arrived) return false;
  return true;
}

size_t ax_state_bytes(const ax_state *state) {
  size_t bytes = sizeof *state + state->actor_count * sizeof state->actors[0] + state->place_count * sizeof state->places[0] +
                 state->object_count * sizeof state->objects[0];
  for (uint32_t a = 0; a < state->actor_count; a++) {
    const ax_actor *actor = state->actors[a];
    if (actor == NULL || actor == &through) continue;
    bytes += sizeof *actor;
    if (actor->kind != AX_AGENT_CORE) continue;
    const ax_core_code *code = state->machine->codes[state->machine->cores[actor->core].body];
    bytes += code->slot_count * sizeof actor->frame.slot[0] + code->step_count * sizeof actor->frame.occurrence[0];
  }
  return bytes;
}

/* --- Asked --- */

ax_status ax_state_result(const ax_state *state, uint32_t k, uint32_t device, ax_tensor **out) {
  const ax_machine *machine = state->machine;
  const ax_bank *memory = state->places[place_of_result(machine, k, device)].memory;
  AX_TRY(ax_tensor_create(&machine->params->outs.v[k], out));
  memcpy((*out)->data, memory->data, memory->bytes);
  return AX_OK;
}

uint32_t ax_state_agents(const ax_state *state) { return state->actor_count; }
