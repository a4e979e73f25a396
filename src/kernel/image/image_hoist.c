/* Integers and views in loops that follow from constants, integer operands and the core's own place are the same each time that the core
   comes to them. They are made once, before all else:

     loop { right = (index + 1) rem 8 ; block = o[right] ; .. }     ->     right = .. ; block = .. ; loop { .. }

   That is done for a slice only if its starts are known to be inside, by bounds (prim/intervals.h): one that is outside is an error where
   it is, and none where the core does not come. */
#include "kernel/image/image.h"
#include "kernel/step.h"
#include "prim/intervals.h"
#include "prim/prims.h"

typedef struct hoister {
  const ax_image_body *body;
  uint32_t *makers;     /* by slot: how many steps make it */
  uint32_t *maker;      /* by slot: the last of them */
  bool *same;           /* by slot: each core has the same in it every time */
  ax_interval *bounds;  /* by slot: of such an integer */
  bool *movable;        /* by step: it makes such a slot of such ones */
  bool *in_loop;        /* by step */
} hoister;

static bool is_integer_step(const hoister *h, const ax_core_code_step *step) {
  return step->kind == AX_STEP_EVAL && ax_scalar_step_known(h->body->code, step);
}

static bool is_view_step(const ax_core_code_step *step) { return step->kind == AX_STEP_VIEW && ax_step_view_of(step->eqn) != NULL; }

/* --- What is the same --- */

static ax_interval bounds_of(const hoister *h, const ax_core_code_step *step) {
  const ax_dtype dtype = h->body->slots[step->out[0]].type.dtype;
  ax_interval in[3];
  ax_dtype dtypes[3];
  if (step->eqn->prim == &ax_prim_axis_index) {
    ax_axis_set set;
    const ax_mesh *mesh = &step->program->axes;
    if (ax_axes_resolve(ax_param_at(step->eqn, &step->eqn->prim->params[0]), mesh, &set) != AX_OK) return ax_interval_of_dtype(dtype);
    return (ax_interval){0, ax_axis_set_size(set, mesh) - 1};
  }
  for (uint32_t i = 0; i < step->in_count; i++) {
    in[i] = h->bounds[step->in[i]];
    dtypes[i] = h->body->slots[step->in[i]].type.dtype;
  }
  return ax_interval_of_eqn(step->eqn, dtypes, in, dtype);
}

static bool is_inside(const hoister *h, const ax_core_code_step *step) {
  const ax_step_view *how = ax_step_view_of(step->eqn);
  int64_t last[AX_MAX_RANK];
  if (how->offset == NULL) return true;
  if (how->lasts == NULL) return false;
  how->lasts(step->eqn, &h->body->slots[step->in[0]].type, last);
  for (uint32_t d = 0; d + 1 < step->in_count; d++)
    if (!ax_interval_is_within(h->bounds[step->in[d + 1]], (ax_interval){0, last[d]})) return false;
  return true;
}

static void begin_slot(hoister *h, uint32_t number) {
  const ax_image_slot *slot = &h->body->slots[number];
  const bool integer = ax_image_is_integer(&slot->type);
  h->bounds[number] = ax_interval_of_dtype(integer ? slot->type.dtype : AX_S32);
  h->same[number] = slot->source == AX_SLOT_VIEW ? slot->maker == NULL : integer && slot->source != AX_SLOT_OWN;
  if (!integer || slot->source != AX_SLOT_CONSTANT) return;
  const int64_t value = ax_image_integer(slot->constant, &(ax_image_place){.narrow = slot->type.dtype == AX_BOOL});
  h->bounds[number] = (ax_interval){value, value};
}

static void find_same(hoister *h) {
  const ax_core_code *code = h->body->code;
  for (uint32_t i = 0; i < code->slot_count; i++) begin_slot(h, i);
  for (uint32_t i = 0; i < code->step_count; i++)
    for (uint32_t k = 0; k < code->steps[i].out_count; k++) {
      h->makers[code->steps[i].out[k]]++;
      h->maker[code->steps[i].out[k]] = i;
    }
  for (uint32_t i = 0; i < code->step_count; i++) {
    const ax_core_code_step *step = &code->steps[i];
    const bool integer = is_integer_step(h, step);
    if ((!integer && !is_view_step(step)) || h->makers[step->out[0]] != 1) continue;
    bool same = true;
    for (uint32_t k = 0; k < step->in_count; k++) same = same && h->same[step->in[k]];
    if (!same || (!integer && !is_inside(h, step))) continue;
    h->same[step->out[0]] = h->movable[i] = true;
    if (integer) h->bounds[step->out[0]] = bounds_of(h, step);
  }
}

/* --- What stands in a loop, and what that needs --- */

static void find_loops(hoister *h) {
  const ax_core_code *code = h->body->code;
  uint32_t first = code->step_count; /* of the loops that end after the present step: the first step */
  for (uint32_t i = code->step_count; i-- > 0;) {
    const ax_core_code_step *step = &code->steps[i];
    const bool jumps = step->kind == AX_STEP_JUMP || step->kind == AX_STEP_ADVANCE;
    if (jumps && step->target <= i && step->target < first) first = step->target;
    h->in_loop[i] = first <= i;
    if (first == i) first = code->step_count;
  }
}

static void choose(hoister *h, bool *out) {
  const ax_core_code *code = h->body->code;
  for (uint32_t i = code->step_count; i-- > 0;) {
    out[i] = h->movable[i] && (out[i] || h->in_loop[i]);
    for (uint32_t k = 0; out[i] && k < code->steps[i].in_count; k++) {
      const uint32_t slot = code->steps[i].in[k];
      if (h->makers[slot] == 1) out[h->maker[slot]] = true;
    }
  }
}

ax_status ax_image_hoist(ax_image *image, ax_image_body *body) {
  const size_t slots = body->code->slot_count + (size_t)1, steps = body->code->step_count + (size_t)1;
  hoister h = {.body = body,
               .makers = ax_calloc(slots, sizeof h.makers[0]),
               .maker = ax_calloc(slots, sizeof h.maker[0]),
               .same = ax_calloc(slots, sizeof h.same[0]),
               .bounds = ax_calloc(slots, sizeof h.bounds[0]),
               .movable = ax_calloc(steps, sizeof h.movable[0]),
               .in_loop = ax_calloc(steps, sizeof h.in_loop[0])};
  body->hoisted = ax_arena_alloc(&image->arena, steps * sizeof body->hoisted[0]);
  ax_status status = h.makers != NULL && h.maker != NULL && h.same != NULL && h.bounds != NULL && h.movable != NULL &&
                             h.in_loop != NULL && body->hoisted != NULL
                         ? AX_OK
                         : ax_out_of_memory(slots * sizeof h.bounds[0]);
  if (status == AX_OK) {
    find_same(&h);
    find_loops(&h);
    choose(&h, body->hoisted);
  }
  void *const all[] = {h.makers, h.maker, h.same, h.bounds, h.movable, h.in_loop};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_free(all[i]);
  return status;
}
