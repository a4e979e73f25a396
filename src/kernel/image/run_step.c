/* A core's operations, one after the other, until it waits or is through. Those that others may notice are in run_act.c. */
#include <stdio.h>
#include <string.h>

#include "array/straight.h"
#include "kernel/image/run.h"
#include "kernel/image/segment.h"
#include "kernel/step.h"

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

static ax_status compute(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  const void *in[3] = {NULL};
  for (uint32_t i = 0; i < step->in_count; i++) in[i] = ax_core_value(w->core, &w->body->slots[step->in[i]]);
  if (ax_scalar_step_do(w->op->scalar, w->body->code, step, w->core->place, in,
                        ax_core_value(w->core, &w->body->slots[step->out[0]])))
    return AX_OK;
  return evaluate(w);
}

/* --- Views --- */

/* A view that begins elsewhere than the one it is of. */
static ax_status slice(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *from = &w->body->slots[step->in[0]];
  int64_t offset = w->core->views[w->body->view_of[step->in[0]]], starts[AX_MAX_RANK];
  char text[160];
  for (uint32_t i = 1; i < step->in_count; i++) starts[i - 1] = ax_walk_integer(w, i);
  ax_status status = w->op->rules->view->offset(step->eqn, &from->type, from->strides, starts, &offset);
  if (status != AX_OK) return ax_walk_fault(w, "%s %s", ax_step_text(step, text, sizeof text), ax_message());
  w->core->views[w->body->view_of[step->out[0]]] = offset;
  return AX_OK;
}

static void same_view(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  w->core->views[w->body->view_of[step->out[0]]] = step->in_count > 0 ? w->core->views[w->body->view_of[step->in[0]]] : 0;
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

/* --- Segments --- */

static void *place_of(const ax_row_walk *w, uint32_t slot) {
  const ax_image_slot *of = &w->body->slots[slot];
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
  if (params->predicate &&
      ax_integer_at(slots[copy->in[predicate]].type.dtype, ax_core_value(w->core, &slots[copy->in[predicate]])) == 0)
    return NULL;
  char *to = ax_core_view(w->core, copy->in[1]);
  for (uint32_t i = 0; i < segment->in_count; i++)
    if (meets(to, bytes, in[i], slots[segment->in[i]].bytes)) return NULL;
  for (uint32_t k = 0; k < segment->out_count; k++)
    if (k != forwards && meets(to, bytes, out[k], slots[segment->out[k]].bytes)) return NULL;
  return to;
}

static ax_status run_segment(const ax_row_walk *w) {
  const ax_segment *segment = w->op->segment;
  void *in[AX_IMAGE_MOST], *out[AX_IMAGE_MOST];
  for (uint32_t i = 0; i < segment->in_count; i++) in[i] = place_of(w, segment->in[i]);
  for (uint32_t k = 0; k < segment->out_count; k++) out[k] = place_of(w, segment->out[k]);
  if (w->op->forwards > 0) {
    void *to = destination(w, in, out, w->op->forwards - 1);
    w->core->forwarded = to != NULL;
    if (to != NULL) out[w->op->forwards - 1] = to;
  }
  return ax_straight_run(segment->straight, in, out, w->core->segments);
}

/* --- Control --- */

/* All are read before any is written. Only where a value that is read is one of those written before does that need room. */
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

static void slice_xs(const ax_row_walk *w) {
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

static void begin_loop(const ax_row_walk *w) {
  const ax_core_code_step *step = w->op->step;
  w->core->counters[step->loop] = 0;
  for (uint32_t k = 0; k < step->out_count; k++)
    memset(ax_core_value(w->core, &w->body->slots[step->out[k]]), 0, w->body->slots[step->out[k]].bytes);
}

static uint32_t chosen(const ax_row_walk *w) {
  int64_t index = ax_walk_integer(w, 0), last = (int64_t)w->op->step->target_count - 1;
  return w->op->targets[index < 0 ? 0 : index > last ? last : index];
}

/* An operation that nobody notices. */
static ax_status do_silent(const ax_row_walk *w, uint32_t *pc) {
  const ax_image_op *op = w->op;
  ax_run_core *core = w->core;
  ++*pc;
  switch (op->kind) {
    case AX_IMAGE_EVAL: return evaluate(w);
    case AX_IMAGE_SCALAR: return compute(w);
    case AX_IMAGE_SEGMENT: return run_segment(w);
    case AX_IMAGE_SLICE: return slice(w);
    case AX_IMAGE_VIEW: same_view(w); return AX_OK;
    case AX_IMAGE_ACCESS: return access_memory(w);
    case AX_IMAGE_MOVE: return move(w);
    case AX_IMAGE_JUMP: *pc = op->target; return AX_OK;
    case AX_IMAGE_SWITCH: *pc = chosen(w); return AX_OK;
    case AX_IMAGE_TEST:
      if (ax_walk_integer(w, 0) == 0) *pc = op->target;
      return AX_OK;
    case AX_IMAGE_BEGIN: begin_loop(w); return AX_OK;
    case AX_IMAGE_NEXT:
      if (core->counters[op->step->loop] >= op->step->length) *pc = op->target;
      else slice_xs(w);
      return AX_OK;
    case AX_IMAGE_STACK: stack_ys(w); return AX_OK;
    case AX_IMAGE_ADVANCE:
      core->counters[op->step->loop]++;
      *pc = op->target;
      return AX_OK;
    default: return AX_OK;
  }
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

ax_walked ax_core_walk(const ax_image *image, const ax_cores_runner *runner, ax_run_core *core) {
  ax_row_walk w = {.image = image, .runner = runner, .core = core, .body = core->body};
  ax_run_group *group = core->device->group;
  ax_status status = AX_OK;
  uint32_t pc = core->pc;
  for (;;) {
    w.op = &w.body->ops[pc];
    if (w.op->kind < AX_IMAGE_OPEN) {
      status = do_silent(&w, &pc);
      if (status == AX_OK) continue;
      core->pc = pc;
      pthread_mutex_lock(&group->lock);
      break;
    }
    core->pc = pc;
    pthread_mutex_lock(&group->lock);
    if (w.op->kind == AX_IMAGE_END) return AX_WALKED_THROUGH;
    if (ax_core_makes_way(&w)) return AX_WALKED_WAITS;
    bool waits = false;
    status = ax_walk_act(&w, &waits);
    if (status != AX_OK) break;
    if (waits) return AX_WALKED_WAITS;
    pthread_mutex_unlock(&group->lock);
    pc++;
  }
  note_failure(&w, status);
  return AX_WALKED_FAILED;
}
