/* Copy elision for loads: finds scratch that needs no memory of its own. If scratch is filled only by copies from memory that no
   core writes, a view of it can point to the copy's source instead. Such scratch *aliases its source*. Examples are the blocks of
   a pipeline's operands, and parts that travel round a ring of devices.

     copy x[block] -> v[slot]       v[slot] is an alias of x[block]
     load v[slot]                   loads x[block]
     copy v[slot] -> w[slot]        w[slot] is an alias of x[block] too, also on another device

   Scratch that aliases its source is divided into units of equal size; each copy fills one unit. A table behind its memory holds
   the address of each unit's source. The conditions for a ref:
     no core stores to it;
     each copy to it fills one whole unit from a source that lies dense;
     the source is an operand that no core writes, or a ref that aliases its own source;
     no copy to it may come from a device of another process;
     each load and each copy from it stays within one unit.
   Operands stay unchanged until all cores of the kernel have ended (plan/cores.h). */
#include "kernel/image/image.h"

#include "kernel/step.h"

typedef struct finding {
  bool banned;
  size_t unit, bytes; /* bytes: of all of it */
} finding;

typedef struct finder {
  ax_image *image;
  finding *of; /* by the image's roots */
  bool changed;
} finder;

static finding *find(const finder *f, uint32_t b, uint32_t root) {
  return &f->of[ax_image_root_number(f->image, b, root)];
}

/* The view that a view was made of; AX_NONE. */
static uint32_t parent_of(const ax_image_slot *slot) { return slot->maker != NULL ? slot->maker->in[0] : AX_NONE; }

/* The view, or one that it is of, is a unit. */
static bool is_in_unit(const ax_image_body *body, uint32_t slot, size_t unit, bool is_one) {
  const ax_image_slot *slots = body->slots;
  for (; slot != AX_NONE; slot = parent_of(&slots[slot])) {
    if (slots[slot].bytes == unit && ax_slot_is_dense(&slots[slot])) break;
    if (is_one) return false;
  }
  for (; slot != AX_NONE && ax_slot_is_dense(&slots[slot]); slot = parent_of(&slots[slot])) {
    if (slots[slot].whole) return true;
    if (!slots[slot].keeps_place) return false;
  }
  return false;
}

static void ban(finder *f, finding *one) {
  f->changed = f->changed || !one->banned;
  one->banned = true;
}

static bool is_scratch(const finder *f, uint32_t root) {
  return root >= f->image->machine->operand_count + f->image->machine->params->outs.count;
}

/* Excludes roots that are stored to, and finds the size of the units that copies fill. */
static void look_at_writes(finder *f, uint32_t b, const ax_core_code_step *step) {
  const ax_image_body *body = &f->image->bodies[b];
  const ax_step_access *access = ax_step_access_of(step->eqn);
  if (access != NULL && access->writes) ban(f, find(f, b, body->slots[step->in[0]].root));
  if (!ax_step_copies(step->eqn)) return;
  const ax_image_slot *to = &body->slots[step->in[1]];
  finding *one = find(f, b, to->root);
  const ax_copy_params *params = step->eqn->params;
  const bool from_away = f->image->crosses && ax_core_operands(&params->to) > 0;
  if (from_away || !is_scratch(f, to->root) || to->bytes == 0 || (one->unit != 0 && one->unit != to->bytes) ||
      !ax_slot_is_dense(&body->slots[step->in[0]]) || !is_in_unit(body, step->in[1], to->bytes, true))
    ban(f, one);
  one->unit = to->bytes;
}

static void look_at_reads(finder *f, uint32_t b, const ax_core_code_step *step) {
  const ax_image_body *body = &f->image->bodies[b];
  const bool copies = ax_step_copies(step->eqn);
  if (!copies && !ax_step_reads(step->eqn, 0)) return;
  finding *from = find(f, b, body->slots[step->in[0]].root);
  if (from->unit != 0 && !is_in_unit(body, step->in[0], from->unit, false)) ban(f, from);
  if (!copies) return;
  bool of_scratch = is_scratch(f, body->slots[step->in[0]].root);
  if (from->banned || (of_scratch && from->unit == 0)) ban(f, find(f, b, body->slots[step->in[1]].root));
}

static void each_act(finder *f, void (*look)(finder *f, uint32_t b, const ax_core_code_step *step)) {
  for (uint32_t b = 0; b < f->image->machine->params->bodies.count; b++) {
    const ax_core_code *code = f->image->bodies[b].code;
    for (uint32_t i = 0; i < code->step_count; i++)
      if (code->steps[i].kind == AX_STEP_ACT) look(f, b, &code->steps[i]);
  }
}

static ax_status begin(finder *f) {
  ax_image *image = f->image;
  f->of = ax_arena_alloc(&image->arena, image->root_total * sizeof f->of[0]);
  if (f->of == NULL) return ax_out_of_memory(image->root_total * sizeof f->of[0]);
  for (uint32_t k = 0; k < image->machine->params->outs.count; k++) f->of[image->machine->operand_count + k].banned = true;
  for (uint32_t a = 0; a < image->machine->params->aliases.count; a++)
    f->of[image->machine->params->aliases.v[a][0]].banned = true; /* written as a result */
  return AX_OK;
}

static ax_status note_units(finder *f, uint32_t b) {
  ax_image_body *body = &f->image->bodies[b];
  body->unit = ax_arena_alloc(&f->image->arena, body->root_count * sizeof body->unit[0]);
  if (body->unit == NULL) return ax_out_of_memory(body->root_count * sizeof body->unit[0]);
  for (uint32_t i = 0; i < body->code->slot_count; i++) {
    const ax_image_slot *slot = &body->slots[i];
    if (slot->source == AX_SLOT_VIEW && slot->maker == NULL) find(f, b, slot->root)->bytes = slot->bytes;
  }
  for (uint32_t i = 0; i < body->code->slot_count; i++) {
    ax_image_slot *slot = &body->slots[i];
    if (slot->source != AX_SLOT_VIEW || slot->type.form != AX_REF || !is_scratch(f, slot->root)) continue;
    const finding *of = find(f, b, slot->root);
    if (of->banned || of->unit == 0) continue;
    body->unit[slot->root] = slot->unit = of->unit;
    slot->table_at = (of->bytes + 63) / 64 * 64;
  }
  return AX_OK;
}

ax_status ax_image_alias(ax_image *image) {
  finder f = {.image = image};
  AX_TRY(begin(&f));
  each_act(&f, look_at_writes);
  do {
    f.changed = false;
    each_act(&f, look_at_reads);
  } while (f.changed);
  for (uint32_t b = 0; b < image->machine->params->bodies.count; b++) AX_TRY(note_units(&f, b));
  return AX_OK;
}
