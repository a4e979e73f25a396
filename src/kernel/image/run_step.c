/* A core's operations, one after the other, until it waits or is through. Those that others may notice are in run_act.c. */
#include <stdio.h>
#include <string.h>

#include "array/straight.h"
#include "kernel/image/run.h"
#include "kernel/image/segment.h"
#include "kernel/step.h"

/* What stands in the loop over operations: it is compiled a second time for cores that are watched, and a call would be half of its time. */
#define IN_LINE static inline __attribute__((always_inline))

ax_status ax_walk_fault(const ax_row_walk *w, const char *format, ...) {
  ax_text text = {0};
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  ax_core_text(&text, w->image, w->core);
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s: %s", text.data, what);
  ax_text_deinit(&text);
  return status;
}

/* --- Values --- */

static ax_tensor tensor_of(const ax_row_walk *w, uint32_t number) {
  const ax_image_slot *slot = &w->body->slots[number];
  ax_tensor tensor = {.dtype = slot->type.dtype, .rank = slot->type.rank, .data = ax_core_value(w->core, slot)};
  memcpy(tensor.dims, slot->type.dims, sizeof tensor.dims);
  return tensor;
}

static ax_status evaluate(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  ax_tensor in[AX_IMAGE_MOST], out[AX_IMAGE_MOST], *ins[AX_IMAGE_MOST], *outs[AX_IMAGE_MOST];
  for (uint32_t i = 0; i < step->in_count; i++) in[i] = tensor_of(w, step->in[i]), ins[i] = &in[i];
  for (uint32_t k = 0; k < step->out_count; k++) {
    out[k] = tensor_of(w, step->out[k]), outs[k] = &out[k];
    memset(out[k].data, 0, w->body->slots[step->out[k]].bytes); /* as rules are promised */
  }
  const ax_eval_args args = {.eqn = step->eqn,
                             .axes = &step->program->axes,
                             .lanes = 1,
                             .device = &w->core->place,
                             .in = ins,
                             .out = outs,
                             .hooks = w->image->machine->hooks};
  return step->eqn->prim->eval(&args);
}

/* --- Views --- */

/* With starts that may be outside. */
static ax_status slice_elsewhere(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *from = &w->body->slots[step->in[0]];
  int64_t offset = w->core->views[w->op->in[0].at], starts[AX_MAX_RANK];
  char text[160];
  for (uint32_t i = 1; i < step->in_count; i++) starts[i - 1] = ax_walk_integer(w, i);
  ax_status status = w->op->rules->view->offset(step->eqn, &from->type, from->strides, starts, &offset);
  if (status != AX_OK) return ax_walk_fault(w, "%s %s", ax_step_text(step, text, sizeof text), ax_message());
  w->core->views[w->op->out[0].at] = offset;
  return AX_OK;
}

/* --- Integers, in line --- */

/* 64 bits hold what two s32 give, which then wraps around. */
IN_LINE int64_t number_at(const ax_image_op *op, const char *values, uint32_t operand) {
  int32_t number;
  memcpy(&number, values + op->in[operand].at, sizeof number);
  return number;
}
IN_LINE void give_number(const ax_image_op *op, char *values, int64_t number) {
  const uint32_t low = (uint32_t)(uint64_t)number;
  memcpy(values + op->out[0].at, &low, sizeof low);
}
IN_LINE void give_truth(const ax_image_op *op, char *values, bool truth) { *(unsigned char *)(values + op->out[0].at) = truth; }

IN_LINE void give_same(const ax_image_op *op, char *values) {
  const int64_t number = ax_image_integer(values, &op->in[0]);
  if (op->out[0].narrow) give_truth(op, values, number != 0);
  else give_number(op, values, number);
}

IN_LINE ax_status slice(const ax_row_walk *w) {
  const ax_image_offset *offset = w->op->offset;
  ax_run_core *core = w->core;
  if (offset == NULL) return slice_elsewhere(w);
  int64_t at = core->views[w->op->in[0].at] + offset->base;
  for (uint32_t i = 0; i < offset->count; i++) {
    const int64_t start = ax_image_integer(core->values, &offset->start[i].from);
    if ((uint64_t)start > (uint64_t)offset->start[i].last) return slice_elsewhere(w);
    at += start * offset->start[i].stride;
  }
  core->views[w->op->out[0].at] = at;
  return AX_OK;
}

/* --- Memory --- */

static void *operand(const ax_row_walk *w, uint32_t number) {
  return ax_core_value(w->core, &w->body->slots[w->op->step->in[number]]);
}

static void load(const ax_row_walk *w, void *to, const unsigned char *mask, uint32_t other) {
  uint32_t ref = w->op->step->in[0];
  const ax_image_slot *slot = &w->body->slots[ref];
  if (mask != NULL) memcpy(to, operand(w, other), slot->bytes);
  ax_rows_take(&slot->type, slot->strides, ax_core_view(w->core, ref), mask, to);
}

static void store(const ax_row_walk *w, const unsigned char *mask, const void *from) {
  uint32_t ref = w->op->step->in[0];
  const ax_image_slot *slot = &w->body->slots[ref];
  ax_rows_put(&slot->type, slot->strides, ax_core_view(w->core, ref), mask, from);
}

/* Stores what the access makes of the elements there and its value. */
static ax_status combine(const ax_row_walk *w, const ax_step_access *access, const unsigned char *mask) {
  const ax_image_slot *slot = &w->body->slots[w->op->step->in[0]];
  char *memory = ax_alloc(2 * slot->bytes + 1);
  if (memory == NULL) return ax_out_of_memory(2 * slot->bytes);
  static const ax_mesh nowhere;
  ax_tensor in[2] = {{.dtype = slot->type.dtype, .rank = slot->type.rank, .data = memory}}, out;
  memcpy(in[0].dims, slot->type.dims, sizeof in[0].dims);
  in[1] = out = in[0];
  in[1].data = operand(w, access->value);
  out.data = memory + slot->bytes;
  ax_tensor *ins[] = {&in[0], &in[1]}, *outs[] = {&out};
  ax_eqn eqn = *w->op->step->eqn;
  eqn.prim = access->combine;
  eqn.params = NULL;
  eqn.in_count = 2; /* without a mask */
  const int64_t device = 0;
  const ax_eval_args args = {.eqn = &eqn, .axes = &nowhere, .lanes = 1, .device = &device, .in = ins, .out = outs};
  load(w, memory, NULL, 0);
  ax_status status = access->combine->eval(&args);
  if (status == AX_OK) store(w, mask, out.data);
  ax_free(memory);
  return status;
}

/* Loads into the result's slot, then stores; the value is in another slot. */
static ax_status access_memory(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  const ax_step_access *access = w->op->rules->access;
  const unsigned char *mask = w->op->masked ? operand(w, access->mask) : NULL;
  if (step->out_count > 0) load(w, ax_core_value(w->core, &w->body->slots[step->out[0]]), mask, access->other);
  if (access->combine != NULL) return combine(w, access, mask);
  if (access->writes) store(w, mask, operand(w, access->value));
  return AX_OK;
}

/* Short, dense, to or from the core's own values. */
IN_LINE void load_dense(const ax_row_walk *w) {
  memcpy(w->core->values + w->op->out[0].at, ax_core_view(w->core, w->op->step->in[0]), w->op->bytes);
}

IN_LINE void store_dense(const ax_row_walk *w) {
  memcpy(ax_core_view(w->core, w->op->step->in[0]), w->core->values + w->op->in[w->op->rules->access->value].at, w->op->bytes);
}

/* --- Segments --- */

IN_LINE void *place_of(const ax_row_walk *w, const ax_image_place *place, uint32_t slot) {
  const ax_image_slot *of = &w->body->slots[slot];
  if (place->is_view) return (char *)w->core->roots[place->root] + w->core->views[place->at];
  if (!place->is_other) return w->core->values + place->at;
  return of->source == AX_SLOT_VIEW ? ax_core_view(w->core, slot) : ax_core_value(w->core, of);
}

static bool meets(const char *a, size_t a_bytes, const char *b, size_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

/* Gives the destination of the copy that takes this segment's result, so that the result is made there. NULL: the copy is not done
   this time, or the segment touches that memory in another way. */
static void *destination(const ax_row_walk *w, void *const *in, void *const *out, uint32_t forwards) {
  const ax_segment *segment = w->op->segment;
  const ax_core_code_step *copy = w->body->ops[w->op->copy].step;
  const ax_copy_params *params = copy->eqn->params;
  const ax_image_slot *slots = w->body->slots;
  uint32_t predicate = 2u + params->received + params->sent + params->barrier;
  size_t bytes = slots[copy->in[1]].bytes;
  if (params->predicate && ax_image_integer(w->core->values, &w->body->ops[w->op->copy].in[predicate]) == 0) return NULL;
  char *to = ax_core_view(w->core, copy->in[1]);
  for (uint32_t i = 0; i < segment->in_count; i++)
    if (meets(to, bytes, in[i], slots[segment->in[i]].bytes)) return NULL;
  for (uint32_t k = 0; k < segment->out_count; k++)
    if (k != forwards && meets(to, bytes, out[k], slots[segment->out[k]].bytes)) return NULL;
  return to;
}

IN_LINE ax_status run_segment(ax_row_walk *w) {
  const ax_segment *segment = w->op->segment;
  if (segment->is_long) ax_walk_free(w);
  else ax_walk_free_if_wanted(w);
  void *in[AX_IMAGE_MOST], *out[AX_IMAGE_MOST];
  for (uint32_t i = 0; i < segment->in_count; i++) in[i] = place_of(w, &w->op->in[i], segment->in[i]);
  for (uint32_t k = 0; k < segment->out_count; k++) out[k] = place_of(w, &w->op->out[k], segment->out[k]);
  if (w->op->forwards > 0) {
    void *to = destination(w, in, out, w->op->forwards - 1);
    w->core->forwarded = to != NULL;
    if (to != NULL) out[w->op->forwards - 1] = to;
  }
  return ax_straight_run(segment->straight, in, out, w->core->segments);
}

/* --- Control --- */

/* All are read before any is written. Only where a value that is read is one of those written before does that need room. */
IN_LINE void move_small(const ax_row_walk *w) {
  const uint32_t count = w->op->step->in_count;
  uint64_t held[AX_IMAGE_MOST];
  char *values = w->core->values;
  for (uint32_t k = 0; k < count; k++) memcpy(&held[k], values + w->op->in[k].at, sizeof held[k]);
  for (uint32_t k = 0; k < count; k++) memcpy(values + w->op->out[k].at, &held[k], sizeof held[k]);
}

static ax_status move(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *slots = w->body->slots;
  if (!w->op->crosses) {
    for (uint32_t k = 0; k < step->in_count; k++)
      memcpy(ax_core_value(w->core, &slots[step->out[k]]), operand(w, k), slots[step->out[k]].bytes);
    return AX_OK;
  }
  size_t bytes = 0, at = 0;
  for (uint32_t k = 0; k < step->in_count; k++) bytes += slots[step->in[k]].bytes;
  char *held = ax_alloc(bytes + 1);
  if (held == NULL) return ax_out_of_memory(bytes);
  for (uint32_t k = 0; k < step->in_count; at += slots[step->in[k]].bytes, k++)
    memcpy(held + at, operand(w, k), slots[step->in[k]].bytes);
  at = 0;
  for (uint32_t k = 0; k < step->in_count; at += slots[step->in[k]].bytes, k++)
    memcpy(ax_core_value(w->core, &slots[step->out[k]]), held + at, slots[step->in[k]].bytes);
  ax_free(held);
  return AX_OK;
}

static size_t slice_at(const ax_row_walk *w, size_t bytes) {
  const ax_core_code_step *step = w->op->step;
  int64_t i = w->core->counters[step->loop];
  return (size_t)(step->reverse ? step->length - 1 - i : i) * bytes;
}

IN_LINE void slice_xs(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  for (uint32_t k = 0; k < step->in_count; k++) {
    const ax_image_slot *to = &w->body->slots[step->out[k]];
    memcpy(ax_core_value(w->core, to), (const char *)operand(w, k) + slice_at(w, to->bytes), to->bytes);
  }
}

static void stack_ys(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  for (uint32_t k = 0; k < step->in_count; k++) {
    size_t bytes = w->body->slots[step->in[k]].bytes;
    memcpy((char *)ax_core_value(w->core, &w->body->slots[step->out[k]]) + slice_at(w, bytes), operand(w, k), bytes);
  }
}

IN_LINE void begin_loop(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  w->core->counters[step->loop] = 0;
  for (uint32_t k = 0; k < step->out_count; k++)
    memset(ax_core_value(w->core, &w->body->slots[step->out[k]]), 0, w->body->slots[step->out[k]].bytes);
}

IN_LINE uint32_t chosen(const ax_row_walk *w) {
  int64_t index = ax_walk_integer(w, 0), last = (int64_t)w->op->step->target_count - 1;
  return w->op->targets[index < 0 ? 0 : index > last ? last : index];
}

/* An operation that nobody notices, and that may take long. */
static ax_status do_long(ax_row_walk *w) {
  ax_walk_free(w);
  switch (w->op->kind) {
    case AX_IMAGE_EVAL: return evaluate(w);
    case AX_IMAGE_ACCESS: return access_memory(w);
    case AX_IMAGE_MOVE: return move(w);
    case AX_IMAGE_BEGIN: begin_loop(w); return AX_OK;
    case AX_IMAGE_STACK: stack_ys(w); return AX_OK;
    default: return AX_OK;
  }
}

IN_LINE const ax_image_op *target_of(const ax_row_walk *w) { return &w->body->ops[w->op->target]; }

/* An operation that nobody notices. *next: the one after it. */
IN_LINE ax_status do_silent(ax_row_walk *w, const ax_image_op **next) {
  const ax_image_op *op = w->op;
  ax_run_core *core = w->core;
  char *values = core->values;
  *next = op + 1;
  switch (op->kind) {
    case AX_IMAGE_ADD: give_number(op, values, number_at(op, values, 0) + number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_SUB: give_number(op, values, number_at(op, values, 0) - number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_MUL: give_number(op, values, number_at(op, values, 0) * number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_AND: give_number(op, values, number_at(op, values, 0) & number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_LT: give_truth(op, values, number_at(op, values, 0) < number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_GE: give_truth(op, values, number_at(op, values, 0) >= number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_EQ: give_truth(op, values, number_at(op, values, 0) == number_at(op, values, 1)); return AX_OK;
    case AX_IMAGE_SAME: give_same(op, values); return AX_OK;
    case AX_IMAGE_LOAD: load_dense(w); return AX_OK;
    case AX_IMAGE_STORE: store_dense(w); return AX_OK;
    case AX_IMAGE_SCALAR: return ax_scalar_do(op, core->place, values) ? AX_OK : evaluate(w);
    case AX_IMAGE_SEGMENT: return run_segment(w);
    case AX_IMAGE_SLICE: return slice(w);
    case AX_IMAGE_JUMP:
      *next = target_of(w);
      ax_walk_free_if_wanted(w);
      if (*next <= op && --core->rounds == 0) {
        core->pc = (uint32_t)(*next - w->body->ops);
        *next = &ax_image_pause;
      }
      return AX_OK;
    case AX_IMAGE_SWITCH: *next = &w->body->ops[chosen(w)]; return AX_OK;
    case AX_IMAGE_TEST:
      if (ax_walk_integer(w, 0) == 0) *next = target_of(w);
      return AX_OK;
    case AX_IMAGE_NEXT:
      if (core->counters[op->scalar] >= op->length) *next = target_of(w);
      else slice_xs(w);
      return AX_OK;
    case AX_IMAGE_ADVANCE:
      *next = target_of(w);
      if (++core->counters[op->scalar] < op->length && (*next)->step->in_count == 0) ++*next; /* the NEXT has nothing more to do */
      ax_walk_free_if_wanted(w);
      return AX_OK;
    case AX_IMAGE_BEGIN:
      if (op->step->out_count > 0) return do_long(w);
      begin_loop(w);
      return AX_OK;
    case AX_IMAGE_MOVE:
      if (!op->small) return do_long(w);
      move_small(w);
      return AX_OK;
    default: return do_long(w);
  }
}

/* An operation that others may notice. */
IN_LINE ax_status do_act(ax_row_walk *w, bool *waits) {
  if (w->op->kind == AX_IMAGE_ACT) return w->op->rules->run(w, waits);
  if (w->op->kind == AX_IMAGE_OPEN) ax_walk_open(w, waits);
  else ax_walk_close(w);
  return AX_OK;
}

/* --- All --- */

/* The first that fails leaves its message, in words of its own where it has them. With the lock held. */
static void note_failure(ax_row_walk *w, ax_status status) {
  ax_run_group *group = w->core->device->group;
  char text[160];
  if (w->op->step->eqn != NULL && status != AX_INVALID_ARGUMENT)
    status = ax_error_context(status, "%s: ", ax_step_text(w->op->step, text, sizeof text));
  ax_run_group_fail(group, status);
}

ax_status ax_walk_do(ax_row_walk *w, const ax_image_op **next, bool *waits) {
  if (w->op->kind < AX_IMAGE_OPEN) return do_silent(w, next);
  w->own = w->op->own;
  if (!w->own) ax_walk_hold(w);
  *next = w->op + 1;
  ax_status status = do_act(w, waits);
  ax_walk_free_if_wanted(w);
  return status;
}

static inline ax_walked end_walk(ax_row_walk *w, ax_status status) {
  ax_walk_hold(w);
  w->core->pc = (uint32_t)(w->op - w->body->ops);
  if (status == AX_OK) return AX_WALKED_WAITS;
  note_failure(w, status);
  return AX_WALKED_FAILED;
}

ax_walked ax_walk_end(ax_row_walk *w, ax_status status) { return end_walk(w, status); }

ax_walked ax_core_walk(const ax_image *image, const ax_cores_runner *runner, ax_run_core *core) {
  const ax_image_op *ops = core->body->ops, *next = core->pauses_now ? &ax_image_pause : &ops[core->pc];
  ax_row_walk w = {.image = image, .runner = runner, .core = core, .body = core->body, .held = true};
  const bool chooses = runner->seed != 0; /* where a policy chooses, each act is a place to choose at */
  ax_status status = AX_OK;
  bool waits = false;
  for (;;) {
    w.op = next;
    if (w.op->kind < AX_IMAGE_OPEN) {
      status = do_silent(&w, &next);
      if (status == AX_OK) continue;
      break;
    }
    w.own = w.op->own && !chooses;
    if (!w.own) ax_walk_hold(&w);
    if (w.op->kind >= AX_IMAGE_END) {
      const ax_walked walked = w.op->kind == AX_IMAGE_PAUSE ? ax_core_goes_round(&w) : AX_WALKED_THROUGH;
      if (walked != AX_WALKED_GOES_ON) return walked;
      next = &ops[core->pc];
      continue;
    }
    waits = (w.op->makes_way || chooses) && ax_core_makes_way(&w);
    if (!waits) status = do_act(&w, &waits);
    if (status != AX_OK || waits) break;
    ax_walk_free_if_wanted(&w);
    next++;
  }
  return end_walk(&w, status);
}
