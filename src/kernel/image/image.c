/* An image is made of a machine for one device: the machine knows which instance of each ref a core has. Here each gets its place
   in a device's state, and each step of a body becomes an operation on slots whose places, shapes and strides are known.

     steps      0 EVAL   1 JUMP to 3   2 ..         an operation is made of each step, but for those that do nothing
     operations 0 EVAL   1 JUMP to 2   2 ..         (or that a segment holds); targets are renumbered at the end */
#include "kernel/image/image.h"

#include <string.h>

#include "array/straight.h"
#include "kernel/image/segment.h"
#include "kernel/machine/state.h"
#include "kernel/step.h"

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static size_t type_bytes(const ax_type *type) {
  size_t elems = (size_t)ax_type_elems(type);
  return type->form == AX_ARRAY || type->form == AX_REF ? elems * ax_dtype_bytes(type->dtype) : elems * sizeof(ax_run_object);
}

/* --- Slots --- */

static ax_view view_of_slot(const ax_image_slot *slot) {
  ax_view view = {.type = slot->type};
  memcpy(view.strides, slot->strides, sizeof view.strides);
  return view;
}

static void set_view(ax_image_body *body, uint32_t number, const ax_view *view, uint32_t root, bool whole) {
  ax_image_slot *slot = &body->slots[number];
  slot->source = AX_SLOT_VIEW;
  slot->type = view->type;
  slot->root = root;
  slot->whole = whole;
  memcpy(slot->strides, view->strides, sizeof slot->strides);
}

static void set_root(ax_image_body *body, uint32_t slot, uint32_t root) {
  const ax_view view = ax_dense_view(0, &body->code->types[slot]);
  set_view(body, slot, &view, root, true);
  body->view_of[slot] = body->view_count++;
}

static ax_status find_view(ax_image_body *body, const ax_core_code_step *step, uint32_t barrier_root) {
  const ax_step_view *how = ax_step_view_of(step->eqn);
  uint32_t out = step->out[0];
  if (step->eqn->prim->step->own_barrier) set_root(body, out, barrier_root);
  if (how == NULL) return AX_OK;
  const ax_image_slot *from = &body->slots[step->in[0]];
  ax_view view = view_of_slot(from);
  AX_TRY(how->shape(step->eqn, &body->code->types[out], &view));
  view.type = body->code->types[out];
  set_view(body, out, &view, from->root, from->whole && how->all);
  body->view_of[out] = how->offset != NULL ? body->view_count++ : body->view_of[step->in[0]]; /* it begins where that one does */
  body->slots[out].maker = step;
  body->slots[out].keeps_place = how->keeps_place != NULL && how->keeps_place(step->eqn, &from->type);
  return AX_OK;
}

static ax_status find_slots(ax_image *image, ax_image_body *body, uint32_t b, const ax_image_memory *memory) {
  const ax_machine *machine = image->machine;
  const ax_core_code *code = machine->codes[b];
  uint32_t consts = (uint32_t)machine->params->consts;
  body->slots = ax_arena_alloc(&image->arena, code->slot_count * sizeof body->slots[0]);
  body->view_of = ax_arena_alloc(&image->arena, code->slot_count * sizeof body->view_of[0]);
  body->scopes = ax_arena_alloc(&image->arena, (code->step_count + 1) * sizeof body->scopes[0]);
  if (body->slots == NULL || body->view_of == NULL || body->scopes == NULL)
    return ax_out_of_memory(code->slot_count * sizeof body->slots[0]);
  for (uint32_t i = 0; i < code->slot_count; i++) body->slots[i].type = code->types[i];
  for (uint32_t i = 0; i < consts; i++) body->slots[i].source = AX_SLOT_OPERAND, body->slots[i].at = memory->of_operand[i];
  for (uint32_t r = 0; r < machine->ref_count; r++) set_root(body, consts + r, r);
  for (uint32_t i = 0; i < code->constant_count; i++) {
    ax_image_slot *slot = &body->slots[code->constants[i].slot];
    slot->source = AX_SLOT_CONSTANT;
    slot->constant = code->constants[i].literal->data;
  }
  body->root_count = machine->ref_count + 1;
  for (uint32_t i = 0; i < code->step_count; i++) {
    const ax_core_code_step *step = &code->steps[i];
    if (step->kind == AX_STEP_VIEW) AX_TRY(find_view(body, step, machine->ref_count));
    if (step->kind != AX_STEP_OPEN) continue;
    body->scopes[body->scope_count++] = (ax_image_scope){.params = step->eqn->params, .first_root = body->root_count};
    for (uint32_t k = 0; k < step->out_count; k++) set_root(body, step->out[k], body->root_count++);
  }
  for (uint32_t i = 0; i < code->slot_count; i++) {
    ax_image_slot *slot = &body->slots[i];
    slot->bytes = type_bytes(&slot->type);
    if (slot->source != AX_SLOT_OWN) continue;
    if (slot->type.form != AX_ARRAY) return ax_error(AX_ABSENT, "a kernel in which memory is chosen while it runs");
    slot->at = body->value_bytes;
    body->value_bytes += round_up(slot->bytes > 0 ? slot->bytes : 1, slot->bytes > 16 ? 64 : 8);
    if (slot->bytes > 16) slot->at = round_up(slot->at, 64), body->value_bytes = slot->at + round_up(slot->bytes, 64);
  }
  return AX_OK;
}

/* --- Operations --- */

bool ax_image_is_nothing(const ax_core_code_step *step) {
  if (step->kind != AX_STEP_ACT) return false;
  const ax_step *rules = step->eqn->prim->step;
  return rules->access == NULL && rules->run == NULL;
}

static ax_image_kind kind_of(const ax_core_code *code, const ax_core_code_step *step) {
  static const ax_image_kind kinds[] = {
      [AX_STEP_MOVE] = AX_IMAGE_MOVE,   [AX_STEP_JUMP] = AX_IMAGE_JUMP,       [AX_STEP_SWITCH] = AX_IMAGE_SWITCH,
      [AX_STEP_TEST] = AX_IMAGE_TEST,   [AX_STEP_BEGIN] = AX_IMAGE_BEGIN,     [AX_STEP_NEXT] = AX_IMAGE_NEXT,
      [AX_STEP_STACK] = AX_IMAGE_STACK, [AX_STEP_ADVANCE] = AX_IMAGE_ADVANCE, [AX_STEP_OPEN] = AX_IMAGE_OPEN,
      [AX_STEP_CLOSE] = AX_IMAGE_CLOSE, [AX_STEP_END] = AX_IMAGE_END};
  if (step->kind == AX_STEP_EVAL) return ax_scalar_step_known(code, step) ? AX_IMAGE_SCALAR : AX_IMAGE_EVAL;
  if (step->kind == AX_STEP_VIEW) return AX_IMAGE_SLICE;
  if (step->kind == AX_STEP_ACT) return ax_step_access_of(step->eqn) != NULL ? AX_IMAGE_ACCESS : AX_IMAGE_ACT;
  return kinds[step->kind];
}

static ax_status add_op(ax_image_body *body, const ax_image_op *op) {
  AX_TRY(ax_grow(&body->ops, sizeof body->ops[0], body->op_count, 1, &body->op_capacity));
  body->ops[body->op_count++] = *op;
  return AX_OK;
}

static bool crosses(const ax_core_code_step *step) {
  for (uint32_t k = 0; k < step->in_count; k++)
    for (uint32_t before = 0; before < k; before++)
      if (step->out[before] == step->in[k]) return true;
  return false;
}

static uint32_t scope_of(const ax_image_body *body, const ax_core_code_step *step) {
  const ax_run_scoped_params *params = step->eqn->params;
  uint32_t count = params->scratch.count,
           root = count > 0 ? body->slots[step->kind == AX_STEP_OPEN ? step->out[0] : step->in[0]].root : 0, s = 0;
  while (body->scopes[s].params != params || (count > 0 && body->scopes[s].first_root != root)) s++;
  return s;
}

/* A view that begins where its operand or its root does. */
static bool begins_there(const ax_core_code_step *step) {
  if (step->kind != AX_STEP_VIEW || step->eqn->prim->step->grid_number) return false;
  const ax_step_view *view = ax_step_view_of(step->eqn);
  return view == NULL || view->offset == NULL;
}

ax_status ax_image_add_step(ax_image *image, ax_image_body *body, const ax_core_code_step *step) {
  ax_image_op op = {.kind = kind_of(body->code, step), .step = step};
  bool known;
  if (ax_image_is_nothing(step) || begins_there(step)) return AX_OK;
  if (step->eqn != NULL) op.rules = step->eqn->prim->step;
  if (step->kind == AX_STEP_VIEW && op.rules->grid_number)
    return ax_error(AX_ABSENT, "%s of a grid that is no loop of the kernel", step->eqn->prim->name);
  op.masked = op.kind == AX_IMAGE_ACCESS && ax_step_is_masked(step->eqn);
  if (step->kind == AX_STEP_MOVE)
    for (uint32_t k = 0; k < step->in_count; k++)
      if (body->slots[step->in[k]].source == AX_SLOT_VIEW)
        return ax_error(AX_ABSENT, "a kernel in which memory is chosen while it runs");
  if (op.kind == AX_IMAGE_EVAL && (step->in_count > AX_IMAGE_MOST || step->out_count > AX_IMAGE_MOST))
    return ax_error(AX_ABSENT, "an equation of more than %d operands or results in a kernel", AX_IMAGE_MOST);
  if (op.kind == AX_IMAGE_NEXT || op.kind == AX_IMAGE_ADVANCE) op.scalar = step->loop, op.length = step->length;
  if (op.kind == AX_IMAGE_SCALAR) op.scalar = ax_scalar_step_number(body->code, step);
  op.crosses = step->kind == AX_STEP_MOVE && crosses(step);
  if (step->kind == AX_STEP_OPEN || step->kind == AX_STEP_CLOSE) op.scope = scope_of(body, step);
  AX_TRY(ax_image_find_places(image, body, &op, &known));
  return known ? AX_OK : add_op(body, &op);
}

static ax_status add_steps(ax_image *image, ax_image_body *body, ax_segments *segments, uint32_t *op_of) {
  const ax_core_code *code = body->code;
  for (uint32_t i = 0; i < code->step_count; i++)
    if (body->hoisted[i]) AX_TRY(ax_image_add_step(image, body, &code->steps[i]));
  for (uint32_t i = 0; i < code->step_count; i++) {
    bool taken = false;
    if (body->is_target[i]) AX_TRY(ax_segments_flush(segments));
    op_of[i] = body->op_count;
    if (body->hoisted[i]) continue;
    AX_TRY(ax_segments_take(segments, &code->steps[i], &taken));
    if (!taken) AX_TRY(ax_image_add_step(image, body, &code->steps[i]));
  }
  return AX_OK;
}

static ax_status make_ops(ax_image *image, ax_image_body *body, struct ax_runtime *compile) {
  const ax_core_code *code = body->code;
  uint32_t *op_of = ax_alloc((code->step_count + 1) * sizeof op_of[0]);
  body->is_target = ax_arena_alloc(&image->arena, (code->step_count + (size_t)1) * sizeof body->is_target[0]);
  ax_segments segments = {.image = image};
  ax_status status = op_of != NULL && body->is_target != NULL ? ax_segments_init(&segments, image, body, compile)
                                                        : ax_out_of_memory(code->step_count * sizeof op_of[0]);
  if (status == AX_OK) {
    ax_image_find_targets(code, body->is_target);
    status = add_steps(image, body, &segments, op_of);
  }
  if (status == AX_OK) status = ax_image_join(image, body, op_of, segments.uses);
  ax_segments_deinit(&segments);
  ax_free(op_of);
  return status;
}

/* --- The state --- */

static ax_status add_objects(ax_image *image, size_t at, const ax_type *type, int64_t arrivals) {
  int64_t count = ax_type_elems(type);
  bool barriers = type->form == AX_BARRIER;
  if (count == 0) return AX_OK;
  AX_TRY(ax_grow(&image->objects, sizeof image->objects[0], image->object_count, 1, &image->object_capacity));
  image->objects[image->object_count++] = (ax_image_objects){at, count, arrivals, barriers};
  if (barriers) image->barrier_total += (uint32_t)count;
  return AX_OK;
}

/* unit: bytes of a unit of scratch that aliases its source; 0: it has memory of its own. */
static ax_status take_room(ax_image *image, const ax_type *type, int64_t arrivals, size_t unit, size_t *at) {
  *at = image->bytes = round_up(image->bytes, 64);
  image->bytes += type_bytes(type);
  if (unit > 0) {
    ax_image_table table = {
        .root_at = *at, .table_at = round_up(image->bytes, 64), .unit = unit, .count = (int64_t)(type_bytes(type) / unit)};
    AX_TRY(ax_grow(&image->tables, sizeof image->tables[0], image->table_count, 1, &image->table_capacity));
    image->tables[image->table_count++] = table;
    image->bytes = table.table_at + (size_t)table.count * sizeof(char *);
  }
  return type->form == AX_REF ? AX_OK : add_objects(image, *at, type, arrivals);
}

static size_t take(size_t *bytes, size_t count, size_t each) {
  size_t at = *bytes = round_up(*bytes, 64);
  *bytes += count * each;
  return at;
}

/* Barriers come last, as how many there are is known when all scopes are placed; so what a core has is laid out after that. */
static void lay_out_core(const ax_image *image, ax_image_body *body) {
  size_t bytes = sizeof(ax_run_core);
  body->views_at = take(&bytes, body->view_count, sizeof(int64_t));
  body->counters_at = take(&bytes, body->code->loop_count, sizeof(int64_t));
  body->occurrences_at = take(&bytes, body->scope_count, sizeof(uint32_t));
  body->waited_at = take(&bytes, image->barrier_total, sizeof(int64_t));
  body->roots_at = take(&bytes, body->root_count, sizeof(void *));
  body->targets_at = take(&bytes, body->target_count, sizeof(ax_run_targets));
  body->values_at = take(&bytes, body->value_bytes, 1);
  body->segments_at = take(&bytes, ax_segments_bytes(body), 1);
  body->core_bytes = round_up(bytes, 64);
}

static ax_status place_scope(ax_image *image, uint32_t c, uint32_t s) {
  const ax_machine *machine = image->machine;
  ax_image_body *body = &image->bodies[machine->cores[c].body];
  ax_image_scope *scope = &body->scopes[s];
  uint32_t leader = ax_machine_leader(image->machine, c, &scope->params->along, &scope->users);
  scope->shared = scope->users > 1;
  if (leader != c) {
    memcpy(&image->roots[c][scope->first_root], &image->roots[leader][scope->first_root],
           scope->params->scratch.count * sizeof image->roots[c][0]);
    image->shared_scopes[c][s] = image->shared_scopes[leader][s];
    return AX_OK;
  }
  for (uint32_t k = 0; k < scope->params->scratch.count; k++) {
    ax_image_root *root = &image->roots[c][scope->first_root + k];
    root->memory = AX_NONE;
    AX_TRY(take_room(image, &scope->params->scratch.v[k], ax_arrivals_of(&scope->params->arrivals, k),
                     body->unit != NULL ? body->unit[scope->first_root + k] : 0, &root->at));
  }
  if (!scope->shared) return AX_OK;
  image->shared_scopes[c][s] = take(&image->bytes, 1, sizeof(ax_run_scope));
  AX_TRY(ax_grow(&image->scopes, sizeof image->scopes[0], image->scope_count, 1, &image->scope_capacity));
  image->scopes[image->scope_count++] = image->shared_scopes[c][s];
  return AX_OK;
}

static ax_status place_roots(ax_image *image, const ax_image_memory *memory) {
  const ax_machine *machine = image->machine;
  uint32_t consts = (uint32_t)machine->params->consts, operands = machine->operand_count, outs = machine->params->outs.count;
  size_t *place_at = ax_arena_alloc(&image->arena, machine->place_count * sizeof place_at[0]);
  image->roots = ax_arena_alloc(&image->arena, machine->core_count * sizeof image->roots[0]);
  image->shared_scopes = ax_arena_alloc(&image->arena, machine->core_count * sizeof image->shared_scopes[0]);
  image->core_at = ax_arena_alloc(&image->arena, machine->core_count * sizeof image->core_at[0]);
  if (place_at == NULL || image->roots == NULL || image->shared_scopes == NULL || image->core_at == NULL)
    return ax_out_of_memory(0);
  for (uint32_t p = 0; p < machine->place_count; p++) {
    const struct ax_ref_place *at = &machine->places[p];
    if (at->ref < operands + outs) continue;
    const ax_type one = {.form = AX_SEMAPHORE, .dtype = AX_S32};
    uint32_t scratch = at->ref - operands - outs;
    bool barrier = p >= machine->first_barrier;
    const size_t *unit = image->bodies[0].unit;
    if (barrier) AX_TRY(take_room(image, &one, 1, 0, &place_at[p]));
    else
      AX_TRY(take_room(image, &machine->params->scratch.v[scratch], ax_arrivals_of(&machine->params->arrivals, scratch),
                       unit != NULL ? unit[at->ref] : 0, &place_at[p]));
  }
  for (uint32_t c = 0; c < machine->core_count; c++) {
    const ax_core *core = &machine->cores[c];
    ax_image_body *body = &image->bodies[core->body];
    image->roots[c] = ax_arena_alloc(&image->arena, body->root_count * sizeof image->roots[c][0]);
    image->shared_scopes[c] = ax_arena_alloc(&image->arena, (body->scope_count + 1) * sizeof image->shared_scopes[c][0]);
    if (image->roots[c] == NULL || image->shared_scopes[c] == NULL) return ax_out_of_memory(0);
    for (uint32_t r = 0; r < machine->ref_count; r++)
      image->roots[c][r] = r < operands           ? (ax_image_root){memory->of_operand[consts + r], 0}
                           : r < operands + outs ? (ax_image_root){memory->of_result[r - operands], 0}
                                                 : (ax_image_root){AX_NONE, place_at[ax_machine_place(machine, core, r)]};
    image->roots[c][machine->ref_count] = (ax_image_root){AX_NONE, place_at[machine->first_barrier]};
    for (uint32_t s = 0; s < body->scope_count; s++) AX_TRY(place_scope(image, c, s));
  }
  return AX_OK;
}

static ax_status lay_out(ax_image *image, const ax_image_memory *memory) {
  const ax_machine *machine = image->machine;
  image->memory_count = memory->count;
  image->bytes = sizeof(ax_run_group) + image->members * sizeof(char *);
  image->device_at = take(&image->bytes, 1, sizeof(ax_run_device) + memory->count * sizeof(void *));
  AX_TRY(place_roots(image, memory));
  for (uint32_t b = 0; b < machine->params->bodies.count; b++) lay_out_core(image, &image->bodies[b]);
  for (uint32_t c = 0; c < machine->core_count; c++)
    image->core_at[c] = take(&image->bytes, image->bodies[machine->cores[c].body].core_bytes, 1);
  image->bytes = round_up(image->bytes, 64);
  return AX_OK;
}

/* --- Made, released --- */

/* Messages between processes name a barrier by its number among those of all members. */
static ax_status check_barriers(const ax_image *image) {
  const uint64_t all = (uint64_t)image->barrier_total * image->members;
  if (!image->crosses || all < AX_NONE) return AX_OK;
  return ax_error(AX_ABSENT, "the kernel %s has %llu barriers on %u devices, which are too many for devices of several processes",
                  image->machine->params->name, (unsigned long long)all, image->members);
}

static ax_status make(ax_image *image, const ax_image_memory *memory, struct ax_runtime *compile) {
  const ax_machine *machine = image->machine;
  uint32_t bodies = machine->params->bodies.count;
  image->bodies = ax_arena_alloc(&image->arena, bodies * sizeof image->bodies[0]);
  if (image->bodies == NULL) return ax_out_of_memory(bodies * sizeof image->bodies[0]);
  image->root_total = machine->ref_count;
  for (uint32_t b = 0; b < bodies; b++) {
    ax_image_body *body = &image->bodies[b];
    body->code = machine->codes[b];
    AX_TRY(find_slots(image, body, b, memory));
    body->first_own = image->root_total;
    image->root_total += body->root_count - machine->ref_count;
    AX_TRY(ax_image_places_init(image, body));
    AX_TRY(ax_image_hoist(image, body));
    AX_TRY(make_ops(image, body, compile));
  }
  if (compile != NULL) {
    AX_TRY(ax_image_alias(image));
    AX_TRY(ax_image_forward(image));
  }
  AX_TRY(ax_image_place_ends(image));
  AX_TRY(lay_out(image, memory));
  AX_TRY(ax_image_find_own(image));
  AX_TRY(ax_image_find_threads(image));
  return check_barriers(image);
}

ax_status ax_image_create(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, const ax_axes *names, bool crosses,
                          const ax_image_memory *memory, const ax_hooks *hooks, struct ax_runtime *compile, ax_image **out) {
  *out = NULL;
  ax_image *image = ax_calloc(1, sizeof *image);
  if (image == NULL) return ax_out_of_memory(sizeof *image);
  image->axes = axes;
  image->names = *names;
  image->crosses = crosses;
  ax_axis_set set;
  ax_status status = ax_axes_resolve(names, axes, &set);
  if (status == AX_OK) image->members = (uint32_t)ax_axis_set_size(set, axes);
  if (status == AX_OK) status = ax_machine_create(eqn, in, axes, 1, &image->device, hooks, &image->machine);
  if (status == AX_OK) status = make(image, memory, compile);
  if (status == AX_OK)
    *out = image;
  else
    ax_image_release(image);
  return status;
}

void ax_image_release(ax_image *image) {
  if (image == NULL) return;
  for (uint32_t b = 0; image->bodies != NULL && b < image->machine->params->bodies.count; b++) {
    ax_segments_release(&image->bodies[b]);
    ax_free(image->bodies[b].ops);
    ax_free(image->bodies[b].targets);
  }
  ax_machine_release(image->machine);
  ax_free(image->objects);
  ax_free(image->tables);
  ax_free(image->scopes);
  ax_arena_deinit(&image->arena);
  ax_free(image);
}

/* --- Who writes operands --- */

static void note_written(const ax_image_body *body, uint32_t operands, bool *out) {
  for (uint32_t i = 0; i < body->op_count; i++) {
    const ax_image_op *op = &body->ops[i];
    for (uint32_t k = 0; k < op->step->in_count && op->step->kind == AX_STEP_ACT; k++) {
      if (!ax_step_writes(op->step->eqn, k)) continue;
      uint32_t root = body->slots[op->step->in[k]].root;
      if (root < operands) out[root] = true;
    }
  }
}

ax_status ax_image_written(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, bool *out) {
  const ax_kernel_params *params = eqn->params;
  const ax_axes none = {0};
  ax_image *image;
  uint32_t *zeros = ax_calloc(eqn->in_count + params->outs.count + 1, sizeof zeros[0]);
  if (zeros == NULL) return ax_out_of_memory(eqn->in_count * sizeof zeros[0]);
  const ax_image_memory memory = {zeros, zeros, 1};
  ax_status status = ax_image_create(eqn, in, axes, &none, false, &memory, NULL, NULL, &image);
  for (uint32_t b = 0; status == AX_OK && b < params->bodies.count; b++)
    note_written(&image->bodies[b], image->machine->operand_count, out);
  if (status == AX_OK) ax_image_release(image);
  ax_free(zeros);
  return status;
}
