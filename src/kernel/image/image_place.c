/* Where the operands and results of operations are: found once, so that a core only adds its own addresses.

     an integer     bytes into the core's values: small constants and operands are kept there too
     memory         a view, by its number among the core's views, and the root that it is of
     a slice        known before; or bytes to add to the view that it is of, for each start that is only known then

   An act is a core's *own* if no other core can notice it: the semaphores and barriers that it changes or waits for are this core's
   alone, and no act of another core names them. It needs no lock. */
#include "kernel/image/image.h"

#include "kernel/image/segment.h"
#include "kernel/machine/state.h"
#include "kernel/step.h"

enum { in_line = 1 << 12 }; /* bytes that are moved at most where an operation stands, without a call for it */

/* --- Integers that each core keeps --- */

static bool is_kept_integer(const ax_image_slot *slot, ax_slot_source source) {
  return slot->source == source && ax_image_is_integer(&slot->type);
}

/* Those of operands have their places at once, those of constants when an operation needs them. */
static ax_status keep_operands(ax_image *image, ax_image_body *body) {
  size_t operands = 0, constants = 0;
  for (uint32_t i = 0; i < body->code->slot_count; i++) {
    operands += is_kept_integer(&body->slots[i], AX_SLOT_OPERAND);
    constants += is_kept_integer(&body->slots[i], AX_SLOT_CONSTANT);
  }
  body->kept_operands = ax_arena_alloc(&image->arena, (operands + 1) * sizeof body->kept_operands[0]);
  body->kept = ax_arena_alloc(&image->arena, (constants + 1) * sizeof body->kept[0]);
  if (body->kept_operands == NULL || body->kept == NULL) return ax_out_of_memory(constants * sizeof body->kept[0]);
  for (uint32_t i = 0; i < body->code->slot_count; i++) {
    ax_image_slot *slot = &body->slots[i];
    if (!is_kept_integer(slot, AX_SLOT_OPERAND)) continue;
    slot->is_kept = true;
    slot->kept = body->value_bytes;
    body->value_bytes += sizeof body->kept[0];
    body->kept_operands[body->kept_operand_count++] = (ax_image_kept){.memory = slot->at, .at = slot->kept, .bytes = slot->bytes};
  }
  body->kept_at = body->value_bytes;
  return AX_OK;
}

ax_status ax_image_places_init(ax_image *image, ax_image_body *body) {
  const size_t slots = body->code->slot_count + (size_t)1;
  body->value_bytes = (body->value_bytes + 7) / 8 * 8;
  AX_TRY(keep_operands(image, body));
  body->first_views = ax_arena_alloc(&image->arena, slots * sizeof body->first_views[0]);
  body->view_is_known = ax_arena_alloc(&image->arena, slots * sizeof body->view_is_known[0]);
  if (body->first_views == NULL || body->view_is_known == NULL) return ax_out_of_memory(slots * sizeof body->first_views[0]);
  for (uint32_t i = 0; i < body->code->slot_count; i++)
    if (body->slots[i].source == AX_SLOT_VIEW && body->slots[i].maker == NULL) body->view_is_known[body->view_of[i]] = true;
  return AX_OK;
}

/* Equal constants are kept once; only the last ones are looked through, as few numbers stand in most bodies. */
static void keep_constant(ax_image_body *body, ax_image_slot *slot) {
  enum { most_looked_at = 32 };
  uint64_t bits = 0;
  uint32_t k = body->kept_count;
  memcpy(&bits, slot->constant, slot->bytes);
  while (k > 0 && body->kept_count - k < most_looked_at && body->kept[k - 1] != bits) k--;
  if (k == 0 || body->kept[k - 1] != bits) {
    body->kept[k = body->kept_count++] = bits;
    body->value_bytes += sizeof bits;
    k++;
  }
  slot->is_kept = true;
  slot->kept = body->kept_at + (k - 1) * sizeof bits;
}

static ax_image_place place_of(ax_image_body *body, uint32_t number) {
  ax_image_slot *slot = &body->slots[number];
  if (slot->source == AX_SLOT_VIEW) return (ax_image_place){.at = body->view_of[number], .root = slot->root};
  if (is_kept_integer(slot, AX_SLOT_CONSTANT) && !slot->is_kept) keep_constant(body, slot);
  return (ax_image_place){.at = slot->is_kept ? slot->kept : slot->at, .narrow = slot->type.dtype == AX_BOOL};
}

/* --- Slices --- */

static bool is_known(const ax_image_body *body, uint32_t slot, int64_t *out) {
  const ax_image_slot *of = &body->slots[slot];
  int32_t value;
  if (of->source != AX_SLOT_CONSTANT) return false;
  memcpy(&value, of->constant, sizeof value);
  *out = value;
  return true;
}

/* Starts that are known, and inside, go into the base. */
static ax_status find_offset(ax_image *image, ax_image_body *body, ax_image_op *op) {
  const ax_core_code_step *step = op->step;
  const ax_image_slot *of = &body->slots[step->in[0]];
  int64_t last[AX_MAX_RANK], start;
  if (op->rules->view->lasts == NULL) return AX_OK;
  op->rules->view->lasts(step->eqn, &of->type, last);
  ax_image_offset *offset = ax_arena_alloc(&image->arena, sizeof *offset + (step->in_count - 1) * sizeof offset->start[0]);
  if (offset == NULL) return ax_out_of_memory(sizeof *offset);
  for (uint32_t d = 0; d + 1 < step->in_count; d++)
    if (is_known(body, step->in[d + 1], &start) && start >= 0 && start <= last[d]) offset->base += start * of->strides[d];
    else offset->start[offset->count++] = (ax_image_start){op->in[d + 1], last[d], of->strides[d]};
  op->offset = offset;
  return AX_OK;
}

/* --- Copies --- */

static bool is_dense_copy(const ax_image_body *body, const ax_core_code_step *step) {
  return ax_slot_is_dense(&body->slots[step->in[0]]) && ax_slot_is_dense(&body->slots[step->in[1]]);
}

/* --- Other cores --- */

static const ax_core_params *other_core(const ax_image_op *op) {
  const ax_core_params *to = op->kind == AX_IMAGE_ACT ? ax_step_target(op->step->eqn) : NULL;
  return to != NULL && ax_core_operands(to) > 0 ? to : NULL;
}

static bool same_axes(const ax_core_params *a, const ax_core_params *b) {
  return a->logical == b->logical && ax_axes_equal(&a->axes, &b->axes);
}

static ax_status find_targets(ax_image_body *body, ax_image_op *op) {
  const ax_core_params *to = other_core(op);
  if (to == NULL || ax_core_operands(to) > AX_COUNT(((struct ax_run_target *)NULL)->coordinate)) return AX_OK;
  while (op->meant < body->target_count && !same_axes(body->targets[op->meant], to)) op->meant++;
  if (op->meant++ < body->target_count) return AX_OK;
  AX_TRY(ax_grow(&body->targets, sizeof body->targets[0], body->target_count, 1, &body->target_capacity));
  body->targets[body->target_count++] = to;
  return AX_OK;
}

/* --- Kinds that do the usual things in line --- */

static ax_image_kind usual_integers(const ax_image_op *op) {
  static const struct { ax_scalar scalar; ax_image_kind kind; } usual[] = {
      {AX_SCALAR_ADD, AX_IMAGE_ADD}, {AX_SCALAR_SUB, AX_IMAGE_SUB}, {AX_SCALAR_MUL, AX_IMAGE_MUL}, {AX_SCALAR_AND, AX_IMAGE_AND},
      {AX_SCALAR_LT, AX_IMAGE_LT},   {AX_SCALAR_GE, AX_IMAGE_GE},   {AX_SCALAR_EQ, AX_IMAGE_EQ}};
  if (op->step->in_count == 1 && (op->scalar == AX_SCALAR_CONVERT || op->scalar >= AX_SCALAR_COUNT)) return AX_IMAGE_SAME;
  if (op->step->in_count != 2 || op->in[0].narrow || op->in[1].narrow) return op->kind;
  for (size_t i = 0; i < AX_COUNT(usual); i++)
    if (op->scalar == (uint32_t)usual[i].scalar) return usual[i].kind;
  return op->kind;
}

/* Short loads and stores of values of the core's own. */
static void find_usual_access(const ax_image_body *body, ax_image_op *op) {
  const ax_step_access *access = op->rules->access;
  const ax_image_slot *of = &body->slots[op->step->in[0]];
  if (op->masked || access->combine != NULL || access->reads == access->writes || !ax_slot_is_dense(of) || of->bytes > in_line) return;
  const ax_image_slot *value = &body->slots[access->writes ? op->step->in[access->value] : op->step->out[0]];
  if (value->source != AX_SLOT_OWN || of->bytes == 0) return;
  op->kind = access->writes ? AX_IMAGE_STORE : AX_IMAGE_LOAD;
  op->bytes = of->bytes;
}

/* --- All --- */

static bool has_places(const ax_image_op *op) {
  return op->kind == AX_IMAGE_SCALAR || op->kind == AX_IMAGE_SLICE || op->kind == AX_IMAGE_ACT || op->kind == AX_IMAGE_ACCESS ||
         op->kind == AX_IMAGE_TEST || op->kind == AX_IMAGE_SWITCH || op->kind == AX_IMAGE_MOVE;
}

/* ends: of a segment, which say what they are. */
static ax_status list_places(ax_image *image, ax_image_body *body, const uint32_t *slots, uint32_t count, bool ends, const ax_image_place **out) {
  ax_image_place *places = ax_arena_alloc(&image->arena, (count + (size_t)1) * sizeof places[0]);
  if (places == NULL) return ax_out_of_memory(count * sizeof places[0]);
  for (uint32_t k = 0; k < count; k++) {
    const ax_image_slot *slot = &body->slots[slots[k]];
    places[k] = place_of(body, slots[k]);
    places[k].is_view = ends && slot->source == AX_SLOT_VIEW && slot->unit == 0;
    places[k].is_other = ends && !places[k].is_view && slot->source != AX_SLOT_OWN && !slot->is_kept;
  }
  *out = places;
  return AX_OK;
}

static bool is_small_move(const ax_image_body *body, const ax_core_code_step *step) {
  bool small = step->in_count <= AX_IMAGE_MOST;
  for (uint32_t k = 0; k < step->in_count; k++) {
    const ax_image_slot *from = &body->slots[step->in[k]];
    small = small && from->bytes <= sizeof(uint64_t) && (from->source == AX_SLOT_OWN || from->is_kept);
  }
  return small;
}

ax_status ax_image_find_places(ax_image *image, ax_image_body *body, ax_image_op *op, bool *known) {
  const ax_core_code_step *step = op->step;
  *known = false;
  if (!has_places(op)) return AX_OK;
  AX_TRY(list_places(image, body, step->in, step->in_count, false, &op->in));
  AX_TRY(list_places(image, body, step->out, step->out_count, false, &op->out));
  if (op->kind == AX_IMAGE_SCALAR) op->kind = usual_integers(op);
  if (op->kind == AX_IMAGE_ACCESS) find_usual_access(body, op);
  if (op->kind == AX_IMAGE_MOVE) op->small = is_small_move(body, step);
  if (op->kind == AX_IMAGE_ACT && step->in_count > 1) op->bytes = body->slots[step->in[1]].bytes;
  op->makes_way = op->kind == AX_IMAGE_ACT && op->rules->reads_count;
  if (op->kind == AX_IMAGE_ACT && ax_step_copies(step->eqn)) {
    op->far = body->slots[step->in[1]].root < image->machine->operand_count + image->machine->params->outs.count;
    op->dense = is_dense_copy(body, step);
  }
  if (op->kind == AX_IMAGE_ACT) AX_TRY(find_targets(body, op));
  if (op->kind != AX_IMAGE_SLICE) return AX_OK;
  AX_TRY(find_offset(image, body, op));
  *known = op->offset != NULL && op->offset->count == 0 && body->view_is_known[op->in[0].at];
  if (!*known) return AX_OK;
  body->view_is_known[op->out[0].at] = true;
  body->first_views[op->out[0].at] = body->first_views[op->in[0].at] + op->offset->base;
  return AX_OK;
}

static bool is_plain_copy(const ax_image_body *body, const ax_image_op *op) {
  if (op->kind != AX_IMAGE_ACT || !op->dense || op->forwarded || op->bytes > in_line) return false;
  return body->slots[op->step->in[0]].unit == 0 && body->slots[op->step->in[1]].unit == 0;
}

ax_status ax_image_place_ends(ax_image *image) {
  for (uint32_t b = 0; b < image->machine->params->bodies.count; b++) {
    ax_image_body *body = &image->bodies[b];
    for (uint32_t i = 0; i < body->op_count; i++) {
      ax_image_op *op = &body->ops[i];
      op->plain = is_plain_copy(body, op);
      if (op->kind != AX_IMAGE_SEGMENT) continue;
      AX_TRY(list_places(image, body, op->segment->in, op->segment->in_count, true, &op->in));
      AX_TRY(list_places(image, body, op->segment->out, op->segment->out_count, true, &op->out));
    }
  }
  return AX_OK;
}

/* --- Acts that other cores cannot notice --- */

static bool is_object(const ax_type *type) {
  return type->form == AX_SEMAPHORE || type->form == AX_DMA_SEMAPHORE || type->form == AX_BARRIER;
}

typedef struct owners {
  ax_image *image;
  bool *shared;    /* by the image's roots: several cores touch it */
  uint32_t *users; /* by place of the kernel's refs: cores that have it */
} owners;

static bool *shared_root(const owners *o, uint32_t b, uint32_t root) { return &o->shared[ax_image_root_number(o->image, b, root)]; }

static void find_shared_scratch(owners *o) {
  const ax_machine *machine = o->image->machine;
  for (uint32_t c = 0; c < machine->core_count; c++)
    for (uint32_t r = 0; r < machine->ref_count; r++) {
      const uint32_t place = ax_machine_place(machine, &machine->cores[c], r);
      if (++o->users[place] > 1) o->shared[r] = true;
    }
}

/* Also what an act that is for another core names, whichever of the two cores it belongs to. */
static void find_shared_objects(owners *o, uint32_t b) {
  const ax_image_body *body = &o->image->bodies[b];
  *shared_root(o, b, o->image->machine->ref_count) = true; /* the barrier semaphore */
  for (uint32_t s = 0; s < body->scope_count; s++)
    for (uint32_t k = 0; body->scopes[s].shared && k < body->scopes[s].params->scratch.count; k++)
      *shared_root(o, b, body->scopes[s].first_root + k) = true;
  for (uint32_t i = 0; i < body->op_count; i++) {
    const ax_image_op *op = &body->ops[i];
    for (uint32_t k = 0; other_core(op) != NULL && k < op->step->in_count; k++)
      if (is_object(&body->slots[op->step->in[k]].type)) *shared_root(o, b, op->in[k].root) = true;
  }
}

static bool is_own(const owners *o, uint32_t b, const ax_image_op *op) {
  const ax_image_body *body = &o->image->bodies[b];
  if (op->kind == AX_IMAGE_OPEN || op->kind == AX_IMAGE_CLOSE) return !body->scopes[op->scope].shared;
  if (op->kind != AX_IMAGE_ACT || other_core(op) != NULL || op->rules->reads_count) return false;
  for (uint32_t k = 0; k < op->step->in_count; k++) {
    const ax_image_slot *slot = &body->slots[op->step->in[k]];
    if ((is_object(&slot->type) || slot->unit > 0) && *shared_root(o, b, slot->root)) return false;
  }
  return true;
}

ax_status ax_image_find_own(ax_image *image) {
  const ax_machine *machine = image->machine;
  owners o = {.image = image,
              .shared = ax_arena_alloc(&image->arena, (image->root_total + (size_t)1) * sizeof o.shared[0]),
              .users = ax_arena_alloc(&image->arena, (machine->place_count + (size_t)1) * sizeof o.users[0])};
  if (o.shared == NULL || o.users == NULL) return ax_out_of_memory(image->root_total);
  find_shared_scratch(&o);
  for (uint32_t b = 0; b < machine->params->bodies.count; b++) find_shared_objects(&o, b);
  for (uint32_t b = 0; b < machine->params->bodies.count; b++)
    for (uint32_t i = 0; i < image->bodies[b].op_count; i++) image->bodies[b].ops[i].own = is_own(&o, b, &image->bodies[b].ops[i]);
  return AX_OK;
}
