/* The steps of a core between two acts: it computes, jumps and makes views. Other agents cannot notice them. */
#include <stdio.h>
#include <string.h>

#include "ir/number.h"
#include "kernel/machine/state.h"
#include "kernel/step.h"

typedef struct walk {
  ax_state *state;
  ax_actor *actor;
  const ax_core_code *code;
  const ax_core *core;
  ax_act_fault *fault;
} walk;

ax_status ax_state_fault(ax_state *state, ax_act_fault *fault, ax_finding_kind kind, uint32_t region, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(state->fault, sizeof state->fault, format, args);
  va_end(args);
  *fault = (ax_act_fault){.kind = kind, .region = region, .text = state->fault};
  return AX_OK;
}

static void set_slot(walk *w, uint32_t slot, ax_cell *cell) {
  ax_cell_release(w->actor->frame.slot[slot]);
  w->actor->frame.slot[slot] = cell;
}

static int64_t integer_in(const walk *w, uint32_t slot) {
  const ax_tensor *tensor = w->actor->frame.slot[slot]->tensor;
  return ax_number_load(tensor->dtype, tensor->data, 0).i;
}

/* --- Equations on values --- */

enum { most_here = 64 };

static ax_status evaluate(walk *w, const ax_core_code_step *step) {
  ax_tensor *in_here[most_here], *out_here[most_here], **in = in_here, **out = out_here;
  ax_cell *made[most_here] = {NULL}, **cells = made;
  if (step->in_count > most_here || step->out_count > most_here)
    return ax_error(AX_ABSENT, "an equation of more than %d operands in a kernel", most_here);
  for (uint32_t i = 0; i < step->in_count; i++) in[i] = w->actor->frame.slot[step->in[i]]->tensor;
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < step->out_count && status == AX_OK; k++) {
    status = ax_cell_tensor(&w->code->types[step->out[k]], &cells[k]);
    if (status == AX_OK) out[k] = cells[k]->tensor;
  }
  const ax_eval_args args = {.eqn = step->eqn,
                             .axes = &step->program->axes,
                             .lanes = 1,
                             .device = &w->core->place,
                             .in = in,
                             .out = out,
                             .hooks = w->state->machine->hooks};
  if (status == AX_OK) status = step->eqn->prim->eval(&args);
  if (status == AX_OK && w->state->weighs && step->in_count == 2 && step->out_count == 1)
    status = ax_terms_eval(step->eqn->prim, (ax_cell *[]){w->actor->frame.slot[step->in[0]], w->actor->frame.slot[step->in[1]]},
                           cells[0]);
  const ax_machine *machine = w->state->machine;
  if (status == AX_OK && machine->computes != NULL)
    status = machine->computes(machine->computes_context, w->actor->core, step->program, step->eqn);
  for (uint32_t k = 0; k < step->out_count; k++) {
    if (status == AX_OK)
      set_slot(w, step->out[k], cells[k]);
    else
      ax_cell_release(cells[k]);
  }
  return status;
}

/* --- Views --- */

bool ax_view_reshape(const ax_view *from, const ax_type *to, ax_view *out) {
  uint32_t i = 0, j = 0;
  *out = *from;
  out->type = *to;
  if (ax_type_elems(to) == 0) return true; /* nothing lies anywhere */
  while (i < from->type.rank || j < to->rank) {
    int64_t a = i < from->type.rank ? from->type.dims[i] : 1, b = j < to->rank ? to->dims[j] : 1;
    uint32_t i0 = i, j0 = j;
    i += i < from->type.rank, j += j < to->rank;
    while (a != b) {
      if (a < b && i < from->type.rank)
        a *= from->type.dims[i++];
      else if (j < to->rank)
        b *= to->dims[j++];
      else
        return false;
    }
    for (uint32_t d = i0; d + 1 < i; d++)
      if (from->type.dims[d] != 1 && from->strides[d] != from->strides[d + 1] * from->type.dims[d + 1]) return false;
    int64_t stride = i > i0 ? from->strides[i - 1] : 0;
    for (uint32_t d = j; d-- > j0;) {
      out->strides[d] = stride;
      stride *= to->dims[d];
    }
  }
  return true;
}

/* A view of the operand. Leaving the operand is a fault. */
static ax_status view_of(walk *w, const ax_core_code_step *step, ax_view *view) {
  const ax_step_view *how = ax_step_view_of(step->eqn);
  const ax_view of = w->actor->frame.slot[step->in[0]]->view;
  int64_t starts[AX_MAX_RANK];
  char text[160];
  *view = of;
  AX_TRY(how->shape(step->eqn, &w->code->types[step->out[0]], view));
  if (how->offset == NULL) return AX_OK;
  for (uint32_t i = 1; i < step->in_count; i++) starts[i - 1] = integer_in(w, step->in[i]);
  ax_status status = how->offset(step->eqn, &of.type, of.strides, starts, &view->offset);
  if (status != AX_INVALID_ARGUMENT) return status;
  return ax_state_fault(w->state, w->fault, AX_FINDING_OUT_OF_BOUNDS, of.region, "%s %s", ax_step_text(step, text, sizeof text),
                        ax_message());
}

static ax_status make_view(walk *w, const ax_core_code_step *step) {
  ax_view view = {0};
  if (step->eqn->prim->step->own_barrier)
    view = ax_dense_view(w->state->machine->first_barrier + w->core->device, &w->code->types[step->out[0]]);
  if (ax_step_view_of(step->eqn) != NULL) AX_TRY(view_of(w, step, &view));
  if (w->fault->kind != AX_FINDING_NONE) return AX_OK;
  ax_cell *cell;
  AX_TRY(ax_cell_view(&view, &cell));
  set_slot(w, step->out[0], cell);
  return AX_OK;
}

/* --- Control --- */

static void move(walk *w, const ax_core_code_step *step) {
  ax_cell **slot = w->actor->frame.slot, *held[most_here];
  for (uint32_t from = 0; from < step->in_count;
       from += most_here) { /* beyond so many nothing changes places: carries are moved from fresh values */
    uint32_t count = step->in_count - from < most_here ? step->in_count - from : most_here;
    for (uint32_t k = 0; k < count; k++) held[k] = ax_cell_retain(slot[step->in[from + k]]);
    for (uint32_t k = 0; k < count; k++) set_slot(w, step->out[from + k], held[k]);
  }
}

static int64_t slice_number(const walk *w, const ax_core_code_step *step) {
  int64_t i = w->actor->frame.counter[step->loop];
  return step->reverse ? step->length - 1 - i : i;
}

static ax_status slice_xs(walk *w, const ax_core_code_step *step) {
  for (uint32_t k = 0; k < step->in_count; k++) {
    const ax_tensor *whole = w->actor->frame.slot[step->in[k]]->tensor;
    const ax_type *type = &w->code->types[step->out[k]];
    size_t bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
    ax_cell *cell;
    AX_TRY(ax_cell_tensor(type, &cell));
    memcpy(cell->tensor->data, (const char *)whole->data + (size_t)slice_number(w, step) * bytes, bytes);
    set_slot(w, step->out[k], cell);
  }
  return AX_OK;
}

static ax_status begin_loop(walk *w, const ax_core_code_step *step) {
  w->actor->frame.counter[step->loop] = 0;
  for (uint32_t k = 0; k < step->out_count; k++) {
    ax_cell *cell;
    AX_TRY(ax_cell_tensor(&w->code->types[step->out[k]], &cell));
    set_slot(w, step->out[k], cell);
  }
  return AX_OK;
}

static ax_status stack_ys(walk *w, const ax_core_code_step *step) {
  for (uint32_t k = 0; k < step->in_count; k++) {
    const ax_tensor *slice = w->actor->frame.slot[step->in[k]]->tensor;
    ax_cell *whole = w->actor->frame.slot[step->out[k]], *own;
    AX_TRY(ax_cell_tensor(&w->code->types[step->out[k]], &own)); /* clones hold the old one */
    ax_tensor_assign(own->tensor, whole->tensor);
    size_t bytes = (size_t)ax_dims_elems(slice->rank, slice->dims) * ax_dtype_bytes(slice->dtype);
    memcpy((char *)own->tensor->data + (size_t)slice_number(w, step) * bytes, slice->data, bytes);
    set_slot(w, step->out[k], own);
  }
  return AX_OK;
}

static uint32_t chosen(const walk *w, const ax_core_code_step *step) {
  int64_t index = integer_in(w, step->in[0]);
  return step->targets[index < 0 ? 0 : index >= step->target_count ? step->target_count - 1 : index];
}

/* One step that nobody notices. */
static ax_status walk_step(walk *w, const ax_core_code_step *step) {
  ax_core_frame *frame = &w->actor->frame;
  frame->pc++;
  switch (step->kind) {
    case AX_STEP_EVAL: return evaluate(w, step);
    case AX_STEP_VIEW: return make_view(w, step);
    case AX_STEP_ACT: return step->eqn->prim->step->note != NULL ? step->eqn->prim->step->note(frame) : AX_OK;
    case AX_STEP_MOVE: move(w, step); return AX_OK;
    case AX_STEP_JUMP: frame->pc = step->target; return AX_OK;
    case AX_STEP_SWITCH: frame->pc = chosen(w, step); return AX_OK;
    case AX_STEP_TEST:
      if (integer_in(w, step->in[0]) == 0) frame->pc = step->target;
      return AX_OK;
    case AX_STEP_BEGIN: return begin_loop(w, step);
    case AX_STEP_NEXT:
      if (frame->counter[step->loop] < step->length) return slice_xs(w, step);
      frame->pc = step->target;
      return AX_OK;
    case AX_STEP_STACK: return stack_ys(w, step);
    case AX_STEP_ADVANCE:
      frame->counter[step->loop]++;
      frame->pc = step->target;
      return AX_OK;
    default: return AX_OK;
  }
}

static bool is_act(const ax_core_code_step *step) {
  if (step->kind == AX_STEP_OPEN || step->kind == AX_STEP_CLOSE || step->kind == AX_STEP_END) return true;
  return step->kind == AX_STEP_ACT && step->eqn->prim->step->role == AX_STEP_MAKES_ACT;
}

ax_status ax_core_frame_advance(ax_state *state, uint32_t agent, ax_act_fault *fault) {
  ax_actor *actor = state->actors[agent];
  const ax_core *core = &state->machine->cores[actor->core];
  walk w = {state, actor, state->machine->codes[core->body], core, fault};
  char text[160];
  while (fault->kind == AX_FINDING_NONE) {
    const ax_core_code_step *step = &w.code->steps[actor->frame.pc];
    if (is_act(step)) return AX_OK;
    actor->hash = 0;
    ax_status status = walk_step(&w, step);
    if (fault->kind != AX_FINDING_NONE) actor->frame.pc--; /* it stays before the faulty step */
    if (status != AX_OK) return ax_error_context(status, "%s: ", ax_step_text(step, text, sizeof text));
  }
  return AX_OK;
}
