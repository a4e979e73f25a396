/* Cores between acts, in the general run: what frame.c does on values that are known.

   The run that was recorded has the order. Before each of its steps the core walks to where it stood then. A branch that depends on
   inputs is walked along each of its ways, one after the other, as acts that may come (general_branches.c); so the run's own acts in such
   a branch are passed over, and come with the others before the core's next act outside.

       run            .. wait |      store (of one way)      | signal ..
       general run    .. wait |                  store load  | signal ..        all ways */
#include "check/general.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/number.h"
#include "kernel/step.h"
#include "prim/prims.h"

ax_status ax_general_refuse(const ax_core_code_step *step, const char *format, ...) {
  char why[160], text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  return ax_error(AX_ABSENT, "%s: %s", ax_step_text(step, text, sizeof text), why);
}

const ax_core_code *ax_general_code(const ax_general *g, uint32_t core) { return g->machine->codes[g->machine->cores[core].body]; }

typedef struct walk {
  ax_general *g;
  uint32_t number;
  ax_general_core *core;
  const ax_core_code *code;
} walk;

static walk walk_of(ax_general *g, uint32_t core) { return (walk){g, core, &g->cores[core], ax_general_code(g, core)}; }

static void set_slot(walk *w, uint32_t slot, ax_abstract *value) {
  ax_abstract_release(w->core->slot[slot]);
  w->core->slot[slot] = value;
}

/* A value that two ways left differently, and that is neither, is not there. */
static ax_status need(walk *w, const ax_core_code_step *step, uint32_t operand, ax_abstract **out) {
  *out = w->core->slot[step->in[operand]];
  return *out != NULL ? AX_OK : ax_general_refuse(step, "which memory it is of depends on inputs");
}

/* --- Values --- */

enum { most_here = 64 };

static ax_status evaluate(walk *w, const ax_core_code_step *step) {
  ax_abstract *in[most_here], *out[most_here] = {NULL};
  if (step->in_count > most_here || step->out_count > most_here) return ax_general_refuse(step, "it has too many operands");
  for (uint32_t i = 0; i < step->in_count; i++) AX_TRY(need(w, step, i, &in[i]));
  const ax_abstract_site site = {w->g->symbols, w->g->machine, &w->g->machine->cores[w->number], w->code};
  const ax_status status = ax_abstract_eval(&site, step, in, out);
  for (uint32_t k = 0; k < step->out_count; k++) {
    if (status == AX_OK)
      set_slot(w, step->out[k], out[k]);
    else
      ax_abstract_release(out[k]);
  }
  return status;
}

bool ax_general_known(const ax_general *g, uint32_t core, uint32_t slot, int64_t *out) {
  const ax_abstract *value = g->cores[core].slot[slot];
  if (value == NULL || value->tensor == NULL) return false;
  *out = ax_number_load(value->tensor->dtype, value->tensor->data, 0).i;
  return true;
}

void ax_general_label(ax_general *g, uint32_t core) {
  int64_t ids[AX_MAX_RANK];
  const ax_dims *grid = &g->machine->params->grid;
  if (!g->strands) return;
  const uint32_t *point = ax_general_code(g, core)->point;
  bool known = true;
  g->wide.label = ax_strands_label(g->machine, core, g->cores[core].pc);
  g->wide.label.may = g->may > 0;
  for (uint32_t d = 0; d < grid->count && known; d++) known = ax_general_known(g, core, point[d], &ids[d]);
  if (known) g->wide.label.point = ax_strands_point(g->machine, ids);
}

/* --- Views --- */

static void note_outside(ax_general *g, const ax_core_code_step *step, const ax_view *of) {
  char text[160];
  if (g->outside[0] != '\0' || of->region >= g->run->objects.region_count) return;
  snprintf(g->outside, sizeof g->outside, "%s of %s", ax_step_text(step, text, sizeof text),
           g->run->objects.regions[of->region].name);
}

/* Of 2 x + 1 only odd numbers count: its bounds are such. */
static void skip_between(const ax_symbols *symbols, uint32_t id, ax_interval *range, uint32_t *bits) {
  int64_t rest;
  ax_symbols_multiple(symbols, id, bits, &rest);
  const int64_t below = ((int64_t)1 << *bits) - 1;
  range->low += (rest - range->low) & below;
  range->high -= (range->high - rest) & below;
}

/* A start that depends on inputs: where it leaves the operand, the kernel has a fault of its own; beyond that it is within bounds. */
static ax_status add_shift(walk *w, const ax_core_code_step *step, uint32_t d, const ax_view *of, ax_abstract *view) {
  const ax_ref_slice_params *params = step->eqn->params;
  const int64_t size = params->sizes.v[d], stride = params->strides.count > 0 ? params->strides.v[d] : 1;
  const ax_abstract *start = w->core->slot[step->in[1 + d]];
  if (size == 0) return AX_OK; /* of nothing */
  if (start->ids == NULL || view->shift_count == AX_MOST_SHIFTS) return ax_general_refuse(step, "its start cannot be followed");
  const int64_t last = of->type.dims[d] - 1 - (size - 1) * stride;
  ax_shift shift = {.stride = of->strides[d]};
  ax_interval range;
  AX_TRY(ax_symbols_guarded(w->g->symbols, start->ids[0], w->g->guards, w->g->guard_count, &range));
  AX_TRY(ax_symbols_split(w->g->symbols, start->ids[0], &shift.part, &shift.constant));
  if (range.low <= range.high && (range.low < 0 || range.high > last)) note_outside(w->g, step, of);
  if (range.low < 0) range.low = 0;
  if (range.high > last) range.high = last;
  skip_between(w->g->symbols, start->ids[0], &range, &shift.bits);
  shift.low = range.low, shift.high = range.high;
  if (range.low > range.high)
    view->nowhere = true;
  else
    view->shifts[view->shift_count++] = shift;
  return AX_OK;
}

static ax_status slice_view(walk *w, const ax_core_code_step *step, const ax_abstract *from, ax_abstract *view) {
  const ax_step_view *how = ax_step_view_of(step->eqn);
  const ax_view of = from->view;
  int64_t starts[AX_MAX_RANK];
  if (how->offset == NULL) return AX_OK;
  for (uint32_t d = 0; d + 1 < step->in_count; d++) {
    ax_abstract *start;
    AX_TRY(need(w, step, 1 + d, &start));
    if (ax_general_known(w->g, w->number, step->in[1 + d], &starts[d])) continue;
    starts[d] = 0;
    if (step->eqn->prim != &ax_prim_ref_slice) return ax_general_refuse(step, "its start cannot be followed");
    AX_TRY(add_shift(w, step, d, &of, view));
  }
  const ax_status status = how->offset(step->eqn, &of.type, of.strides, starts, &view->view.offset);
  if (status != AX_INVALID_ARGUMENT) return status;
  note_outside(w->g, step, &of); /* only a way that the run did not take has it: the run has no fault */
  view->nowhere = true;
  return AX_OK;
}

static ax_status make_view(walk *w, const ax_core_code_step *step) {
  const ax_core *core = &w->g->machine->cores[w->number];
  ax_view view = {0};
  ax_abstract *from = NULL, *made;
  if (step->eqn->prim->step->own_barrier)
    view = ax_dense_view(w->g->machine->first_barrier + core->device, &w->code->types[step->out[0]]);
  if (ax_step_view_of(step->eqn) != NULL) {
    AX_TRY(need(w, step, 0, &from));
    view = from->view;
    AX_TRY(ax_step_view_of(step->eqn)->shape(step->eqn, &w->code->types[step->out[0]], &view));
  }
  AX_TRY(ax_abstract_view(&view, &made));
  if (from != NULL) {
    made->nowhere = from->nowhere;
    made->shift_count = from->shift_count;
    memcpy(made->shifts, from->shifts, from->shift_count * sizeof from->shifts[0]);
  }
  const ax_status status = from != NULL ? slice_view(w, step, from, made) : AX_OK;
  if (status == AX_OK)
    set_slot(w, step->out[0], made);
  else
    ax_abstract_release(made);
  return status;
}

/* --- Control --- */

static void move(walk *w, const ax_core_code_step *step) {
  ax_abstract **slot = w->core->slot, *held[most_here];
  for (uint32_t from = 0; from < step->in_count; from += most_here) {
    const uint32_t count = step->in_count - from < most_here ? step->in_count - from : most_here;
    for (uint32_t k = 0; k < count; k++) held[k] = ax_abstract_retain(slot[step->in[from + k]]);
    for (uint32_t k = 0; k < count; k++) set_slot(w, step->out[from + k], held[k]);
  }
}

/* Slice number `at` of an array, along its first dimension. */
static ax_status slice_of(walk *w, const ax_abstract *whole, const ax_type *type, uint64_t at, ax_abstract **out) {
  const uint64_t count = (uint64_t)ax_type_elems(type);
  if (whole->tensor != NULL) {
    ax_tensor part = *whole->tensor;
    part.rank = type->rank;
    memcpy(part.dims, type->dims, sizeof part.dims);
    part.data = (char *)whole->tensor->data + at * count * ax_dtype_bytes(type->dtype);
    return ax_abstract_tensor(&part, out);
  }
  if (whole->ids == NULL) return ax_abstract_range(count, whole->range, out);
  AX_TRY(ax_abstract_ids(w->g->symbols, count, out));
  if (count > 0) memcpy((*out)->ids, whole->ids + at * count, count * sizeof whole->ids[0]);
  return ax_abstract_settle(w->g->symbols, type, out);
}

static ax_status slice_xs(walk *w, const ax_core_code_step *step) {
  const int64_t i = w->core->counter[step->loop];
  for (uint32_t k = 0; k < step->in_count; k++) {
    ax_abstract *whole, *slice;
    AX_TRY(need(w, step, k, &whole));
    AX_TRY(slice_of(w, whole, &w->code->types[step->out[k]], (uint64_t)(step->reverse ? step->length - 1 - i : i), &slice));
    set_slot(w, step->out[k], slice);
  }
  return AX_OK;
}

/* Of what a loop stacks, only bounds are followed. */
static ax_status stack_ys(walk *w, const ax_core_code_step *step, bool begins) {
  for (uint32_t k = 0; k < step->out_count; k++) {
    const ax_type *type = &w->code->types[step->out[k]];
    ax_interval range = ax_interval_of_dtype(type->dtype);
    ax_abstract *made, *slice;
    if (begins && ax_is_counted(type->dtype)) range = (ax_interval){0, 0};
    if (!begins) {
      AX_TRY(need(w, step, k, &slice));
      range = ax_interval_hull(ax_abstract_bounds(w->g->symbols, w->core->slot[step->out[k]]),
                               ax_abstract_bounds(w->g->symbols, slice));
    }
    AX_TRY(ax_abstract_range((uint64_t)ax_type_elems(type), range, &made));
    set_slot(w, step->out[k], made);
  }
  return AX_OK;
}

static bool is_act(const ax_core_code_step *step) {
  if (step->kind == AX_STEP_OPEN || step->kind == AX_STEP_CLOSE || step->kind == AX_STEP_END) return true;
  return step->kind == AX_STEP_ACT && step->eqn->prim->step->role == AX_STEP_MAKES_ACT;
}

/* One step that others do not notice, which is no branch on inputs. */
static ax_status walk_step(walk *w, const ax_core_code_step *step) {
  enum { most_walked = 1 << 20 };
  int64_t index;
  if (w->g->may > 0 && w->g->walked++ > most_walked) return ax_general_refuse(step, "branches on inputs hold too many steps");
  w->core->pc++;
  switch (step->kind) {
    case AX_STEP_EVAL:
      return evaluate(w, step);
    case AX_STEP_VIEW:
      return make_view(w, step);
    case AX_STEP_ACT:
      if (step->eqn->prim == &ax_prim_commit_smem && w->g->may == 0) w->core->stored.count = 0;
      return AX_OK;
    case AX_STEP_MOVE:
      move(w, step);
      return AX_OK;
    case AX_STEP_JUMP:
      w->core->pc = step->target;
      return AX_OK;
    case AX_STEP_SWITCH:
      if (ax_general_depends(w->g, w->number, step, &index)) return ax_general_walk_ways(w->g, w->number, step);
      w->core->pc = step->targets[index < 0 ? 0 : index >= step->target_count ? step->target_count - 1 : index];
      return AX_OK;
    case AX_STEP_TEST:
      if (ax_general_depends(w->g, w->number, step, &index)) return ax_general_walk_loop(w->g, w->number, step);
      if (index == 0) w->core->pc = step->target;
      return AX_OK;
    case AX_STEP_BEGIN:
      w->core->counter[step->loop] = 0;
      return stack_ys(w, step, true);
    case AX_STEP_NEXT:
      if (w->core->counter[step->loop] < step->length) return slice_xs(w, step);
      w->core->pc = step->target;
      return AX_OK;
    case AX_STEP_STACK:
      return stack_ys(w, step, false);
    case AX_STEP_ADVANCE:
      w->core->counter[step->loop]++;
      w->core->pc = step->target;
      return AX_OK;
    default:
      return AX_OK;
  }
}

/* Acts that may come: loads and stores, and what general_ways.c takes. */
ax_status ax_general_walk_acts(ax_general *g, uint32_t core, uint32_t meeting) {
  walk w = walk_of(g, core);
  while (w.core->pc != meeting) {
    const ax_core_code_step *step = &w.code->steps[w.core->pc];
    if (!is_act(step)) {
      AX_TRY(walk_step(&w, step));
      continue;
    }
    const bool accesses = step->kind == AX_STEP_ACT && step->eqn->prim->step->access != NULL;
    ax_general_label(g, core);
    AX_TRY(accesses ? ax_general_access(g, core, step) : ax_general_way_act(g, core, step));
    w.core->pc++;
  }
  return AX_OK;
}

/* --- The run --- */

/* Walks to the act at `pc`. *passed: it is part of a branch on inputs, and comes later. */
static ax_status walk_to(walk *w, uint32_t pc, bool *passed) {
  *passed = false;
  for (;;) {
    const ax_core_code_step *step = &w->code->steps[w->core->pc];
    if (is_act(step)) {
      assert(w->core->pc == pc); /* all that decides on it is known, and the same */
      return w->core->pc == pc ? AX_OK : ax_general_refuse(step, "the run does not come to it");
    }
    *passed = ax_general_is_within(w->g, w->number, step, pc);
    if (*passed) return AX_OK;
    AX_TRY(walk_step(w, step));
  }
}

static ax_status same_act(ax_general *g, const ax_act *act, uint32_t agent) {
  AX_TRY(ax_wide_act(&g->wide, agent, act));
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++)
    AX_TRY(ax_wide_same(&g->wide, &g->run->touches, &g->run->touches.touches[t]));
  return AX_OK;
}

static ax_status core_step(ax_general *g, uint32_t core) {
  const ax_act_step *step = &g->run->steps[g->step];
  const ax_step_note *note = &g->notes[g->step];
  walk w = walk_of(g, core);
  bool passed;
  if (note->pc == AX_NONE) { /* it begins */
    w.core->acts++;
    return same_act(g, &step->act, core);
  }
  AX_TRY(walk_to(&w, note->pc, &passed));
  if (passed) { /* and with it the copy that it starts */
    if (step->act.kind == AX_ACT_START) g->dropped[step->act.object] = true;
    if (w.code->steps[note->pc].kind == AX_STEP_CLOSE) w.core->occurrence[w.code->steps[note->pc].target]++;
    return AX_OK;
  }
  const ax_core_code_step *code = &w.code->steps[w.core->pc];
  const bool accesses = code->kind == AX_STEP_ACT && code->eqn->prim->step->access != NULL;
  ax_general_label(g, core);
  AX_TRY(accesses ? ax_general_access(g, core, code) : ax_general_meet(g, core, code));
  if (!note->more) w.core->pc++;
  return AX_OK;
}

/* A core is waited for until it is through: it walks to its end, and has then done so many acts. */
static ax_status end_core(ax_general *g, uint32_t core, ax_act *act) {
  walk w = walk_of(g, core);
  bool passed;
  while (w.code->steps[w.core->pc].kind != AX_STEP_END) {
    AX_TRY(walk_to(&w, w.code->step_count - 1, &passed));
  }
  act->amount = w.core->acts;
  return AX_OK;
}

/* The beginning and the end of a device. The end reads the results. */
static ax_status device_step(ax_general *g, uint32_t agent) {
  ax_act act = g->run->steps[g->step].act;
  if (act.kind == AX_ACT_JOIN && act.object < g->machine->core_count) AX_TRY(end_core(g, act.object, &act));
  AX_TRY(same_act(g, &act, agent));
  for (uint32_t t = act.touch_first; t < act.touch_first + act.touch_count; t++) {
    const ax_touch *touch = &g->run->touches.touches[t];
    if (touch->write || ax_general_is_set(g, touch->region, g->run->touches.runs + touch->first, touch->count)) continue;
    return ax_error(AX_ABSENT, "%s: for some inputs it has bytes that nobody has written",
                    g->run->objects.regions[touch->region].name);
  }
  return AX_OK;
}

ax_status ax_general_go(ax_general *g) {
  const uint32_t cores = g->machine->core_count, first_copy = ax_machine_agents(g->machine);
  for (g->step = 0; g->step < g->run->step_count; g->step++) {
    const uint32_t agent = g->run->steps[g->step].agent;
    g->wide.label = (ax_point_label){.point = AX_NONE};
    if (g->dropped[agent]) continue;
    AX_TRY(agent < cores ? core_step(g, agent) : agent < first_copy ? device_step(g, agent) : ax_general_copy_acts(g, agent));
  }
  return ax_general_check_objects(g);
}
