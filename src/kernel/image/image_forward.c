/* Copy elision for stores: a store writes at once to the destination of the copy that follows it. The copy *forwards* its
   destination to the segment before it, so that a pipeline's results are made in place, and the copy only signals:

     segment: v[slot] = f(x) ; copy v[slot] -> y[block]       ->       segment: y[block] = f(x) ; copy: signals only

   Between the store and the copy stand only steps that touch no memory, so the early store is as good as one at the time of the
   copy. The core neither waits nor looks at a semaphore in between. So another core that accesses y[block] before the copy is
   ordered with both in the same way, or it is in a race. A scope of this core alone may be opened in between, as for the semaphore
   of ax_copy.

   The scratch then does not hold the stored values. So this is done for a ref only where no other step can notice:
     all reads of it, anywhere, are copies as above, each of everything that the segment before has stored by the same view;
     no copy writes to it.
   Masked and partial stores, sums, and values that a loop leaves in scratch for later are therefore copied as usual. Whether the
   segment touches the destination in another way is decided by addresses when it runs (run_step.c). */
#include <string.h>

#include "kernel/image/image.h"
#include "kernel/image/segment.h"
#include "kernel/step.h"

enum { most_between = 1024 }; /* steps that are looked through for one copy */

typedef struct finder {
  ax_image *image;
  bool **forwarded; /* by body, then step: a copy that could forward */
  bool *banned;     /* by the image's roots */
} finder;

static bool *banned(const finder *f, uint32_t b, uint32_t root) { return &f->banned[ax_image_root_number(f->image, b, root)]; }

/* --- The same view --- */

static bool same_value(const ax_image_body *body, uint32_t a, uint32_t b) {
  const ax_image_slot *x = &body->slots[a], *y = &body->slots[b];
  if (a == b) return true;
  return x->source == AX_SLOT_CONSTANT && y->source == AX_SLOT_CONSTANT && x->type.dtype == y->type.dtype && x->bytes == y->bytes &&
         memcmp(x->constant, y->constant, x->bytes) == 0;
}

/* Says that two steps make the same view of the same view: they do the same, with the same operands behind it. */
static bool same_step(const ax_image_body *body, const ax_core_code_step *a, const ax_core_code_step *b) {
  if (a->eqn->prim != b->eqn->prim || a->in_count != b->in_count || !ax_params_equal(a->eqn->prim, a->eqn->params, b->eqn->params))
    return false;
  for (uint32_t i = 1; i < a->in_count; i++)
    if (!same_value(body, a->in[i], b->in[i])) return false;
  return true;
}

static const ax_core_code_step *earlier(const ax_core_code_step *a, const ax_core_code_step *b) { return a < b ? a : b; }

/* Opens a scope of this core alone, without waiting for others. */
static bool opens_alone(const ax_core_code_step *step) {
  return step->kind == AX_STEP_OPEN && ((const ax_run_scoped_params *)step->eqn->params)->along.count == 0;
}

/* Says that the steps from `first` to the copy run in line, and none of them writes `slot` again. */
static bool stays(const ax_image_body *body, const ax_core_code_step *first, const ax_core_code_step *copy, uint32_t slot) {
  const ax_core_code *code = body->code;
  if (copy - first > most_between) return false;
  for (const ax_core_code_step *step = first; step < copy; step++) {
    if (step > first && body->is_target[step - code->steps]) return false;
    if (step->kind != AX_STEP_EVAL && step->kind != AX_STEP_VIEW && step->kind != AX_STEP_ACT && !opens_alone(step)) return false;
    for (uint32_t k = 0; step > first && k < step->out_count; k++)
      if (step->out[k] == slot) return false;
  }
  return !body->is_target[copy - code->steps];
}

/* Says that view `a` at `store` and view `b` at `copy` are the same elements. */
static bool same_view(const ax_image_body *body, uint32_t a, uint32_t b, const ax_core_code_step *store,
                      const ax_core_code_step *copy) {
  const ax_image_slot *slots = body->slots;
  const ax_core_code_step *first = store, *x, *y;
  for (uint32_t p = a, q = b; p != q; p = x->in[0], q = y->in[0]) {
    x = slots[p].maker, y = slots[q].maker;
    if (x == NULL || y == NULL || !same_step(body, x, y)) return false;
    first = earlier(first, earlier(x, y));
  }
  for (; a != b; a = slots[a].maker->in[0], b = slots[b].maker->in[0])
    for (uint32_t i = 1; i < slots[a].maker->in_count; i++)
      if (!stays(body, first, copy, slots[a].maker->in[i])) return false;
  return stays(body, first, copy, a);
}

/* --- Copies that could forward --- */

static bool only_stores(const ax_core_code_step *step) {
  const ax_step_access *access = step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
  return access != NULL && access->writes && !access->reads;
}

/* The last step before the copy that stores all of a view. */
static const ax_core_code_step *store_of(const ax_core_code *code, uint32_t view, const ax_core_code_step *copy) {
  for (const ax_core_code_step *step = copy; step > code->steps && copy - step < most_between;)
    if (only_stores(--step) && step->in[0] == view) return step;
  return NULL;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t slot) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == slot) return true;
  return false;
}

/* Gives the result of the segment that the copy takes; AX_NONE. */
static uint32_t result_taken(const finder *f, uint32_t b, const ax_segment *segment, const ax_core_code_step *copy) {
  const ax_image_body *body = &f->image->bodies[b];
  const ax_image_slot *from = &body->slots[copy->in[0]];
  for (uint32_t k = 0; k < segment->out_count; k++) {
    const ax_image_slot *of = &body->slots[segment->out[k]];
    if (of->source != AX_SLOT_VIEW || of->root != from->root || has(segment->in, segment->in_count, segment->out[k])) continue;
    const ax_core_code_step *store = store_of(body->code, segment->out[k], copy);
    if (store != NULL && same_view(body, segment->out[k], copy->in[0], store, copy)) return k;
  }
  return AX_NONE;
}

/* It stays on this core's device, what it takes and where it goes lie dense, and whether it is made is known before the segment
   is. */
static bool may_forward(const finder *f, uint32_t b, const ax_segment *segment, const ax_core_code_step *copy) {
  const ax_image_body *body = &f->image->bodies[b];
  const ax_machine *machine = f->image->machine;
  const ax_copy_params *params = copy->eqn->params;
  const ax_image_slot *from = &body->slots[copy->in[0]], *to = &body->slots[copy->in[1]];
  uint32_t outer = machine->operand_count + machine->params->outs.count,
           predicate = 2u + params->received + params->sent + params->barrier;
  if (ax_core_operands(&params->to) > 0 || from->root < outer || to->root >= outer || from->unit > 0 || to->unit > 0 ||
      from->bytes == 0)
    return false;
  if (params->predicate && has(segment->out, segment->out_count, copy->in[predicate])) return false;
  return ax_slot_is_dense(from) && ax_slot_is_dense(to);
}

static void find_copies(finder *f, uint32_t b) {
  ax_image_body *body = &f->image->bodies[b];
  for (uint32_t i = 0; i + 1 < body->op_count; i++) {
    ax_image_op *op = &body->ops[i];
    if (op->kind != AX_IMAGE_SEGMENT) continue;
    op->copy =
        body->ops[i + 1].kind == AX_IMAGE_OPEN && opens_alone(body->ops[i + 1].step) ? i + 2 : i + 1; /* an END is behind each */
    const ax_core_code_step *copy = body->ops[op->copy].step;
    if (body->ops[op->copy].kind != AX_IMAGE_ACT || !ax_step_copies(copy->eqn) || !may_forward(f, b, op->segment, copy)) continue;
    op->forwards = result_taken(f, b, op->segment, copy) + 1; /* AX_NONE: 0 */
    f->forwarded[b][copy - body->code->steps] = op->forwards > 0;
  }
}

/* --- Who could tell --- */

static void look_at_reads(finder *f, uint32_t b) {
  const ax_image_body *body = &f->image->bodies[b];
  const ax_core_code *code = body->code;
  for (uint32_t i = 0; i < code->step_count; i++) {
    const ax_core_code_step *step = &code->steps[i];
    if (step->kind != AX_STEP_ACT) continue;
    const bool copies = ax_step_copies(step->eqn);
    if (ax_step_reads(step->eqn, 0) && !(copies && f->forwarded[b][i])) *banned(f, b, body->slots[step->in[0]].root) = true;
    if (copies) *banned(f, b, body->slots[step->in[1]].root) = true;
  }
}

static void settle(finder *f, uint32_t b) {
  ax_image_body *body = &f->image->bodies[b];
  for (uint32_t i = 0; i < body->op_count; i++) {
    ax_image_op *op = &body->ops[i];
    if (op->forwards == 0) continue;
    if (*banned(f, b, body->slots[body->ops[op->copy].step->in[0]].root)) op->forwards = 0;
    else body->ops[op->copy].forwarded = true;
  }
}

/* --- All --- */

ax_status ax_image_forward(ax_image *image) {
  uint32_t bodies = image->machine->params->bodies.count;
  finder f = {.image = image,
              .forwarded = ax_arena_alloc(&image->arena, bodies * sizeof f.forwarded[0]),
              .banned = ax_arena_alloc(&image->arena, image->root_total * sizeof f.banned[0])};
  if (f.forwarded == NULL || f.banned == NULL) return ax_out_of_memory(bodies * sizeof f.forwarded[0]);
  for (uint32_t b = 0; b < bodies; b++) {
    const size_t steps = image->bodies[b].code->step_count;
    f.forwarded[b] = ax_arena_alloc(&image->arena, (steps + 1) * sizeof f.forwarded[b][0]);
    if (f.forwarded[b] == NULL) return ax_out_of_memory(steps);
  }
  for (uint32_t b = 0; b < bodies; b++) find_copies(&f, b);
  for (uint32_t b = 0; b < bodies; b++) look_at_reads(&f, b);
  for (uint32_t b = 0; b < bodies; b++) settle(&f, b);
  return AX_OK;
}
