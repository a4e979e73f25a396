/* Steps that only compute, load and store are deferred as long as more of them follow. Then they become one program. Its inputs are
   the memory that they load and values made before; its results are the values that they store and values used later:

     load a ; load b ; c = a b ; add c to o     ->     { (o, a, b) -> o + a b }, run on the memory of o, a and b, the result in that
                                                       of o

   Slices, integers and hints run in between, as they touch no memory; views must be known when the segment is run. A segment ends
   at an act, at a jump or its target, at a step that needs a deferred value, and at a load or store of memory that a deferred step
   may touch by another view.

   Moves at the end of a loop's round become part of the segment where they move its results: these are made at the move's
   destination. */
#include "kernel/image/segment.h"

#include <string.h>

#include "array/straight.h"
#include "kernel/step.h"
#include "prim/bind.h"

enum {
  least_bytes = 256, /* that are worth a segment where nothing is computed */
  long_time = 1000,  /* ns of a segment */
  most_steps = 256   /* of a segment: each new step is compared with all deferred ones */
};

/* --- Which steps --- */

/* NULL: it is no access to memory. */
static const ax_step_access *access_of(const ax_core_code_step *step) {
  return step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
}
static bool touches_memory(const ax_core_code_step *step) { return access_of(step) != NULL; }
static bool loads(const ax_core_code_step *step) { return access_of(step) != NULL && access_of(step)->reads; }
static bool stores(const ax_core_code_step *step) { return access_of(step) != NULL && access_of(step)->writes; }

static bool may_be_put_off(const ax_segments *s, const ax_core_code_step *step) {
  if (step->kind == AX_STEP_EVAL) {
    const ax_prim *prim = step->eqn->prim;
    return prim->kind == AX_LOCAL && prim->effects == 0 && !ax_scalar_step_known(s->body->code, step);
  }
  if (!touches_memory(step)) return false;
  if (ax_step_is_masked(step->eqn)) return false;
  return ax_slot_is_dense(&s->body->slots[step->in[0]]);
}

/* A result of an alias is its operand's memory. */
static uint32_t memory_of(const ax_segments *s, uint32_t slot) {
  const ax_machine *machine = s->image->machine;
  uint32_t root = s->body->slots[slot].root, operands = machine->operand_count;
  for (uint32_t a = 0; a < machine->params->aliases.count; a++)
    if (root == operands + machine->params->aliases.v[a][1]) return (uint32_t)machine->params->aliases.v[a][0];
  return root;
}

/* --- What is put off --- */

static bool makes(const ax_core_code_step *step, uint32_t slot) {
  for (uint32_t k = 0; k < step->out_count; k++)
    if (step->out[k] == slot) return true;
  return false;
}

static bool is_made(const ax_segments *s, uint32_t slot) {
  for (uint32_t i = 0; i < s->count; i++)
    if (makes(s->steps[i], slot)) return true;
  return false;
}

static bool needs_it(const ax_segments *s, const ax_core_code_step *step) {
  for (uint32_t i = 0; i < step->in_count; i++)
    if (is_made(s, step->in[i])) return true;
  return false;
}

/* Says that a deferred step touches the same memory by another view, and one of the two writes. */
static bool conflicts(const ax_segments *s, const ax_core_code_step *step) {
  for (uint32_t i = 0; i < s->count; i++) {
    const ax_core_code_step *other = s->steps[i];
    if (!touches_memory(other) || (!stores(other) && !stores(step))) continue;
    if (other->in[0] != step->in[0] && memory_of(s, other->in[0]) == memory_of(s, step->in[0])) return true;
  }
  return false;
}

static ax_status put_off(ax_segments *s, const ax_core_code_step *step) {
  AX_TRY(ax_grow(&s->steps, sizeof s->steps[0], s->count, 1, &s->capacity));
  s->steps[s->count++] = step;
  return AX_OK;
}

/* --- As a program --- */

typedef struct draft {
  ax_segments *s;
  ax_segment segment;
  uint32_t *in_place;     /* by result */
  const ax_core_code_step *move; /* taken in, or NULL */
  uint32_t *made_of;      /* by result: the slot whose value it is */
} draft;

static bool is_in(const uint32_t *list, uint32_t count, uint32_t slot, uint32_t *at) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == slot) {
      if (at != NULL) *at = i;
      return true;
    }
  return false;
}

static void need(draft *d, uint32_t slot) {
  if (d->s->body->slots[slot].source == AX_SLOT_CONSTANT || d->s->known[slot] ||
      is_in(d->segment.in, d->segment.in_count, slot, NULL))
    return;
  d->segment.in[d->segment.in_count++] = slot;
}

static void give(draft *d, uint32_t to, uint32_t of) {
  uint32_t at;
  if (is_in(d->segment.out, d->segment.out_count, to, &at)) {
    d->made_of[at] = of;
    return;
  }
  d->made_of[d->segment.out_count] = of;
  d->segment.out[d->segment.out_count++] = to;
}

static uint32_t used_inside(const draft *d, uint32_t slot) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->s->count; i++)
    for (uint32_t k = 0; k < d->s->steps[i]->in_count; k++) count += d->s->steps[i]->in[k] == slot;
  for (uint32_t k = 0; d->move != NULL && k < d->move->in_count; k++) count += d->move->in[k] == slot;
  return count;
}

/* Finds the inputs: slots that are read before they are made or stored. Finds the results: slots that are stored, moved or used
   later. */
static void find_ends(draft *d) {
  ax_segments *s = d->s;
  for (uint32_t i = 0; i < s->count; i++) {
    const ax_core_code_step *step = s->steps[i];
    bool memory = touches_memory(step);
    for (uint32_t k = 0; k < step->in_count; k++)
      if (k > 0 || !memory || loads(step)) need(d, step->in[k]);
    for (uint32_t k = 0; k < step->out_count; k++) d->s->known[step->out[k]] = true;
    if (!memory || !stores(step)) continue;
    d->s->known[step->in[0]] = true;
    give(d, step->in[0], step->in[0]);
  }
  for (uint32_t k = 0; d->move != NULL && k < d->move->in_count; k++) {
    need(d, d->move->in[k]);
    give(d, d->move->out[k], d->move->in[k]);
  }
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t k = 0; k < s->steps[i]->out_count; k++) {
      uint32_t slot = s->steps[i]->out[k];
      if (s->uses[slot] > used_inside(d, slot)) give(d, slot, slot);
    }
  for (uint32_t i = 0; i < s->count; i++) { /* as it was, for the next */
    for (uint32_t k = 0; k < s->steps[i]->out_count; k++) s->known[s->steps[i]->out[k]] = false;
    if (touches_memory(s->steps[i])) s->known[s->steps[i]->in[0]] = false;
  }
  for (uint32_t k = 0; k < d->segment.out_count; k++)
    if (!is_in(d->segment.in, d->segment.in_count, d->segment.out[k], &d->in_place[k])) d->in_place[k] = AX_NONE;
}

static ax_type plain_type(const ax_type *type) { return ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)); }

static ax_value value_of(const draft *d, uint32_t slot) {
  const ax_image_slot *of = &d->s->body->slots[slot];
  const ax_type type = plain_type(&of->type);
  return of->source == AX_SLOT_CONSTANT ? ax_constant(&type, of->constant) : d->s->value[slot];
}

static void trace_step(draft *d, const ax_core_code_step *step) {
  ax_value in[AX_IMAGE_MOST], out[AX_IMAGE_MOST];
  const ax_step_access *access = access_of(step);
  if (access == NULL) {
    for (uint32_t k = 0; k < step->in_count; k++) in[k] = value_of(d, step->in[k]);
    ax_bind(step->eqn->prim, step->eqn->params, in, step->in_count, out, step->out_count);
    for (uint32_t k = 0; k < step->out_count; k++) d->s->value[step->out[k]] = out[k];
    return;
  }
  ax_value was = d->s->value[step->in[0]];
  if (step->out_count > 0) d->s->value[step->out[0]] = was;
  if (access->writes) d->s->value[step->in[0]] = ax_step_stored(access, was, value_of(d, step->in[access->value]));
}

static void trace_segment(const ax_value *in, ax_value *out, void *context) {
  draft *d = context;
  for (uint32_t i = 0; i < d->segment.in_count; i++) d->s->value[d->segment.in[i]] = in[i];
  for (uint32_t i = 0; i < d->s->count && !ax_failed(); i++) trace_step(d, d->s->steps[i]);
  for (uint32_t k = 0; k < d->segment.out_count; k++) out[k] = value_of(d, d->made_of[k]);
}

static ax_status compile(draft *d) {
  ax_arena *arena = &d->s->image->arena;
  ax_type *types = ax_arena_alloc(arena, (d->segment.in_count + (size_t)1) * sizeof types[0]);
  ax_program *program;
  if (types == NULL) return ax_out_of_memory(d->segment.in_count * sizeof types[0]);
  for (uint32_t i = 0; i < d->segment.in_count; i++) types[i] = plain_type(&d->s->body->slots[d->segment.in[i]].type);
  AX_TRY(ax_trace(AX_CLOSURE(trace_segment, d->segment.in_count, d->segment.out_count, d), types, &program));
  ax_status status = ax_straight_create(d->s->compile, program, d->in_place, &d->segment.straight);
  ax_program_release(program);
  d->segment.is_long = d->segment.straight != NULL && ax_straight_time(d->segment.straight) > long_time;
  return status;
}

static ax_status make_draft(draft *d) {
  ax_arena *arena = &d->s->image->arena;
  uint32_t most = 1;
  for (uint32_t i = 0; i < d->s->count; i++) most += d->s->steps[i]->in_count + d->s->steps[i]->out_count;
  if (d->move != NULL) most += 2 * d->move->in_count;
  uint32_t **const lists[] = {&d->segment.in, &d->segment.out, &d->in_place, &d->made_of};
  for (size_t i = 0; i < AX_COUNT(lists); i++)
    if ((*lists[i] = ax_arena_alloc(arena, most * sizeof(uint32_t))) == NULL) return ax_out_of_memory(most * sizeof(uint32_t));
  find_ends(d);
  if (d->segment.in_count > AX_IMAGE_MOST || d->segment.out_count > AX_IMAGE_MOST) return AX_OK;
  return compile(d);
}

/* --- Operations --- */

static bool is_worth_it(const ax_segments *s) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const ax_core_code_step *step = s->steps[i];
    if (step->kind == AX_STEP_EVAL || access_of(step)->combine != NULL) return true;
    bytes += s->body->slots[step->in[0]].bytes;
  }
  return s->count > 1 && bytes >= least_bytes;
}

static ax_status add_segment(ax_segments *s, const ax_segment *segment) {
  ax_image_body *body = s->body;
  ax_segment *kept = ax_arena_copy(&s->image->arena, segment, sizeof *segment);
  ax_status status = kept != NULL
                         ? ax_grow(&body->segments, sizeof body->segments[0], body->segment_count, 1, &body->segment_capacity)
                         : ax_out_of_memory(sizeof *segment);
  if (status == AX_OK) body->segments[body->segment_count++] = kept;
  else ax_straight_release(segment->straight);
  if (status != AX_OK) return status;
  AX_TRY(ax_grow(&body->ops, sizeof body->ops[0], body->op_count, 1, &body->op_capacity));
  body->ops[body->op_count++] = (ax_image_op){.kind = AX_IMAGE_SEGMENT, .step = s->steps[0], .segment = kept};
  return AX_OK;
}

/* *moved: the move has been taken in. */
static ax_status flush(ax_segments *s, const ax_core_code_step *move, bool *moved) {
  ax_status status = AX_OK;
  *moved = false;
  if (s->compile != NULL && is_worth_it(s)) {
    draft d = {.s = s, .move = move};
    status = make_draft(&d);
    if (status == AX_OK && d.segment.straight != NULL) {
      *moved = move != NULL;
      status = add_segment(s, &d.segment);
      s->count = 0;
      return status;
    }
    if (status == AX_ABSENT) status = AX_OK;
  }
  for (uint32_t i = 0; i < s->count && status == AX_OK; i++) status = ax_image_add_step(s->image, s->body, s->steps[i]);
  s->count = 0;
  return status;
}

ax_status ax_segments_flush(ax_segments *s) {
  bool moved;
  return flush(s, NULL, &moved);
}

/* Says that the segment may take the move in: each source is made by the segment or is small, and no source is a destination of the
   move. */
static bool takes_move(const ax_segments *s, const ax_core_code_step *move) {
  bool any = false;
  for (uint32_t k = 0; k < move->in_count; k++) {
    bool made = is_made(s, move->in[k]);
    any = any || made;
    if (!made && s->body->slots[move->in[k]].bytes > least_bytes) return false;
    if (s->body->slots[move->in[k]].type.form != AX_ARRAY || is_in(move->out, move->out_count, move->in[k], NULL)) return false;
  }
  return any;
}

ax_status ax_segments_take(ax_segments *s, const ax_core_code_step *step, bool *taken) {
  *taken = false;
  if (step->kind == AX_STEP_MOVE) return flush(s, takes_move(s, step) ? step : NULL, taken);
  if (may_be_put_off(s, step)) {
    if (s->count == most_steps || (touches_memory(step) && conflicts(s, step))) AX_TRY(ax_segments_flush(s));
    *taken = true;
    return put_off(s, step);
  }
  if (ax_image_is_nothing(step)) {
    *taken = true;
    return AX_OK;
  }
  bool silent = step->kind == AX_STEP_VIEW || (step->kind == AX_STEP_EVAL && ax_scalar_step_known(s->body->code, step));
  return silent && !needs_it(s, step) ? AX_OK : ax_segments_flush(s);
}

/* --- Made, released --- */

ax_status ax_segments_init(ax_segments *s, ax_image *image, ax_image_body *body, struct ax_runtime *compile) {
  const ax_core_code *code = body->code;
  *s = (ax_segments){.image = image, .body = body, .compile = compile};
  s->uses = ax_calloc(code->slot_count + (size_t)1, sizeof s->uses[0]);
  s->value = ax_calloc(code->slot_count + (size_t)1, sizeof s->value[0]);
  s->known = ax_calloc(code->slot_count + (size_t)1, sizeof s->known[0]);
  if (s->uses == NULL || s->value == NULL || s->known == NULL) return ax_out_of_memory(code->slot_count * sizeof s->uses[0]);
  for (uint32_t i = 0; i < code->step_count; i++)
    for (uint32_t k = 0; k < code->steps[i].in_count; k++) s->uses[code->steps[i].in[k]]++;
  return AX_OK;
}

void ax_segments_deinit(ax_segments *s) {
  ax_free(s->uses);
  ax_free(s->value);
  ax_free(s->known);
  ax_free(s->steps);
}

size_t ax_segments_bytes(const ax_image_body *body) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < body->segment_count; i++) {
    size_t own = ax_straight_bytes(body->segments[i]->straight);
    bytes = own > bytes ? own : bytes;
  }
  return bytes;
}

void ax_segments_release(ax_image_body *body) {
  for (uint32_t i = 0; i < body->segment_count; i++) ax_straight_release(body->segments[i]->straight);
  ax_free(body->segments);
}
