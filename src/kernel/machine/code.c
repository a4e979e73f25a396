#include "kernel/machine/code.h"

#include <stdio.h>
#include <string.h>

#include "control/scan.h"
#include "ir/region_link.h"
#include "kernel/step.h"
#include "prim/prims.h"

static ax_status inline_program(ax_core_code *code, const ax_program *program, const uint32_t *in, uint32_t *out);

/* --- Slots and steps --- */

static ax_status new_slot(ax_core_code *code, const ax_type *type, uint32_t *slot) {
  AX_TRY(ax_grow(&code->types, sizeof code->types[0], code->slot_count, 1, &code->slot_capacity));
  code->types[code->slot_count] = *type;
  *slot = code->slot_count++;
  return AX_OK;
}

static ax_status add_step(ax_core_code *code, ax_core_code_step step, uint32_t *number) {
  AX_TRY(ax_grow(&code->steps, sizeof code->steps[0], code->step_count, 1, &code->step_capacity));
  if (number != NULL) *number = code->step_count;
  step.in_point = code->ids != NULL;
  step.around = code->around;
  code->steps[code->step_count++] = step;
  return AX_OK;
}

static ax_status copy_slots(ax_core_code *code, const uint32_t *slots, uint32_t count, uint32_t **out) {
  *out = ax_arena_copy(&code->arena, slots, count * sizeof slots[0]);
  return *out != NULL || count == 0 ? AX_OK : ax_out_of_memory(count * sizeof slots[0]);
}

static ax_status alloc_slots(ax_core_code *code, uint32_t count, uint32_t **out) {
  *out = ax_arena_alloc(&code->arena, (count + 1) * sizeof(uint32_t));
  return *out != NULL ? AX_OK : ax_out_of_memory(count * sizeof(uint32_t));
}

/* Moves that change nothing are left out. */
static ax_status add_move(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, const uint32_t *out,
                          uint32_t count) {
  ax_core_code_step step = {.kind = AX_STEP_MOVE, .eqn = from->eqn, .program = from->program};
  AX_TRY(alloc_slots(code, count, &step.in));
  AX_TRY(alloc_slots(code, count, &step.out));
  for (uint32_t k = 0; k < count; k++) {
    if (in[k] == out[k]) continue;
    step.in[step.in_count++] = in[k];
    step.out[step.out_count++] = out[k];
  }
  return step.in_count > 0 ? add_step(code, step, NULL) : AX_OK;
}

/* --- Regions: their links (ir/region_link.h) say what their programs take and give --- */

/* The slots of program k's inputs. Carries are in the slots of the results, slices and the program's own in new ones. */
static ax_status input_slots(ax_core_code *code, const ax_core_code_step *from, uint32_t k, const uint32_t *in, const uint32_t *out,
                             uint32_t **slots) {
  const ax_program *held = ax_eqn_program(from->eqn, k);
  AX_TRY(alloc_slots(code, held->in_count, slots));
  for (uint32_t i = 0; i < held->in_count; i++) {
    const ax_region_link link = ax_region_link_in(from->eqn, k, i);
    if (link.carry != AX_NONE) (*slots)[i] = out[link.carry];
    else if (link.how == AX_LINK_SAME) (*slots)[i] = in[link.number];
    else AX_TRY(new_slot(code, &held->types[i], &(*slots)[i]));
  }
  return AX_OK;
}

/* Carries start: the operands go to their slots. */
static ax_status move_starts(ax_core_code *code, const ax_core_code_step *from, uint32_t k, const uint32_t *in,
                             const uint32_t *out) {
  const uint32_t in_count = ax_eqn_program(from->eqn, k)->in_count;
  uint32_t *starts, *carries, count = 0;
  AX_TRY(alloc_slots(code, in_count, &starts));
  AX_TRY(alloc_slots(code, in_count, &carries));
  for (uint32_t i = 0; i < in_count; i++) {
    const ax_region_link link = ax_region_link_in(from->eqn, k, i);
    if (link.carry == AX_NONE) continue;
    starts[count] = in[link.number];
    carries[count++] = out[link.carry];
  }
  return add_move(code, from, starts, carries, count);
}

/* The outputs of program k that are results as they are. */
static ax_status move_results(ax_core_code *code, const ax_core_code_step *from, uint32_t k, const uint32_t *results,
                              const uint32_t *out) {
  const uint32_t out_count = ax_eqn_program(from->eqn, k)->out_count;
  uint32_t *given, *to, count = 0;
  AX_TRY(alloc_slots(code, out_count, &given));
  AX_TRY(alloc_slots(code, out_count, &to));
  for (uint32_t j = 0; j < out_count; j++) {
    const ax_region_link link = ax_region_link_out(from->eqn, k, j);
    if (link.how != AX_LINK_SAME) continue;
    given[count] = results[j];
    to[count++] = out[link.number];
  }
  return add_move(code, from, given, to, count);
}

/* Program k inlined, its results moved to where the equation's are. */
static ax_status inline_held(ax_core_code *code, const ax_core_code_step *from, uint32_t k, const uint32_t *in,
                             const uint32_t *out) {
  const ax_program *held = ax_eqn_program(from->eqn, k);
  uint32_t *slots, *results;
  AX_TRY(input_slots(code, from, k, in, out, &slots));
  AX_TRY(alloc_slots(code, held->out_count, &results));
  AX_TRY(inline_program(code, held, slots, results));
  return move_results(code, from, k, results, out);
}

/* The first operand says which program. */
static ax_status inline_switch(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, const uint32_t *out) {
  const uint32_t count = ax_region_link_programs(from->eqn);
  ax_core_code_step step = *from;
  uint32_t at, *ends;
  step.kind = AX_STEP_SWITCH;
  step.in_count = 1;
  step.target_count = count;
  AX_TRY(copy_slots(code, in, 1, &step.in));
  AX_TRY(alloc_slots(code, count, &step.targets));
  AX_TRY(alloc_slots(code, count, &ends));
  AX_TRY(add_step(code, step, &at));
  for (uint32_t b = 0; b < count; b++) {
    step.targets[b] = code->step_count;
    AX_TRY(inline_held(code, from, b, in, out));
    AX_TRY(add_step(code, (ax_core_code_step){.kind = AX_STEP_JUMP, .eqn = from->eqn, .program = from->program}, &ends[b]));
  }
  for (uint32_t b = 0; b < count; b++) code->steps[ends[b]].target = code->step_count;
  return AX_OK;
}

/* The first program says whether the second is run again. */
static ax_status inline_until(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, const uint32_t *out) {
  uint32_t *slots, holds, test;
  AX_TRY(move_starts(code, from, 1, in, out));
  const uint32_t head = code->step_count;
  AX_TRY(input_slots(code, from, 0, in, out, &slots));
  AX_TRY(inline_program(code, ax_eqn_program(from->eqn, 0), slots, &holds));
  ax_core_code_step step = {.kind = AX_STEP_TEST, .eqn = from->eqn, .program = from->program, .in_count = 1};
  AX_TRY(copy_slots(code, &holds, 1, &step.in));
  AX_TRY(add_step(code, step, &test));
  AX_TRY(inline_held(code, from, 1, in, out));
  step = (ax_core_code_step){.kind = AX_STEP_JUMP, .eqn = from->eqn, .program = from->program, .target = head};
  AX_TRY(add_step(code, step, NULL));
  code->steps[test].target = code->step_count;
  return AX_OK;
}

/* Picks the slots of the inputs or outputs of a loop's program that are slices. whole: the slots of the whole arrays, where `slots`
   is by operand or result; otherwise those of the slices, where `slots` is by input or output. */
static ax_status pick_slices(ax_core_code *code, const ax_eqn *eqn, bool of_outputs, bool whole, const uint32_t *slots,
                             uint32_t **picked, uint32_t *count) {
  const ax_program *body = ax_eqn_program(eqn, 0);
  const uint32_t most = of_outputs ? body->out_count : body->in_count;
  *count = 0;
  AX_TRY(alloc_slots(code, most, picked));
  for (uint32_t i = 0; i < most; i++) {
    const ax_region_link link = of_outputs ? ax_region_link_out(eqn, 0, i) : ax_region_link_in(eqn, 0, i);
    if (link.how == AX_LINK_SLICE) (*picked)[(*count)++] = slots[whole ? link.number : i];
  }
  return AX_OK;
}

static ax_status inline_scan(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, const uint32_t *out) {
  const ax_scan_params *params = from->eqn->params;
  uint32_t *slots, *results, head;
  const ax_core_code_step step = {.eqn = from->eqn,
                                  .program = from->program,
                                  .loop = code->loop_count++,
                                  .length = params->length,
                                  .reverse = params->reverse};
  ax_core_code_step begin = step, next = step, stack = step, advance = step;
  begin.kind = AX_STEP_BEGIN, next.kind = AX_STEP_NEXT, stack.kind = AX_STEP_STACK, advance.kind = AX_STEP_ADVANCE;
  AX_TRY(input_slots(code, from, 0, in, out, &slots));
  AX_TRY(alloc_slots(code, params->body->out_count, &results));
  AX_TRY(pick_slices(code, from->eqn, false, true, in, &next.in, &next.in_count));
  AX_TRY(pick_slices(code, from->eqn, false, false, slots, &next.out, &next.out_count));
  AX_TRY(pick_slices(code, from->eqn, true, true, out, &begin.out, &begin.out_count));
  AX_TRY(move_starts(code, from, 0, in, out));
  AX_TRY(add_step(code, begin, NULL));
  AX_TRY(add_step(code, next, &head));
  AX_TRY(inline_program(code, params->body, slots, results));
  AX_TRY(pick_slices(code, from->eqn, true, false, results, &stack.in, &stack.in_count));
  stack.out = begin.out;
  stack.out_count = begin.out_count;
  if (stack.in_count > 0) AX_TRY(add_step(code, stack, NULL));
  AX_TRY(move_results(code, from, 0, results, out));
  advance.target = head;
  AX_TRY(add_step(code, advance, NULL));
  code->steps[head].target = code->step_count;
  return AX_OK;
}

static ax_status inline_scope(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, uint32_t *out) {
  const ax_run_scoped_params *params = from->eqn->params;
  uint32_t count = params->scratch.count, *body_in, *results, opened;
  ax_core_code_step open = *from;
  open.kind = AX_STEP_OPEN;
  open.out_count = count;
  AX_TRY(alloc_slots(code, from->eqn->in_count + count, &body_in));
  AX_TRY(alloc_slots(code, from->eqn->out_count, &results));
  memcpy(body_in, in, from->eqn->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < count; i++) AX_TRY(new_slot(code, &params->scratch.v[i], &body_in[from->eqn->in_count + i]));
  AX_TRY(copy_slots(code, body_in + from->eqn->in_count, count, &open.out));
  AX_TRY(add_step(code, open, &opened));
  AX_TRY(inline_program(code, params->body, body_in, results));
  AX_TRY(add_move(code, from, results, out, from->eqn->out_count));
  ax_core_code_step close = *from;
  close.kind = AX_STEP_CLOSE;
  close.target = opened;
  close.in = open.out;
  close.in_count = count;
  return add_step(code, close, NULL);
}

/* program_id is the slot that the number came in. */
static ax_status inline_point(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, uint32_t *out) {
  const ax_grid_point_params *params = from->eqn->params;
  const uint32_t *around = code->ids;
  code->ids = code->point = in;
  ax_status status = inline_program(code, params->body, in + params->grid.count, out);
  code->ids = around;
  return status;
}

static ax_status inline_kind(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, uint32_t *out) {
  const ax_prim *prim = from->eqn->prim;
  const ax_program *held = ax_eqn_program(from->eqn, 0);
  if (prim->runs == AX_RUNS_ONE) return inline_switch(code, from, in, out);
  if (prim->runs == AX_RUNS_UNTIL) return inline_until(code, from, in, out);
  if (prim == &ax_prim_scan) return inline_scan(code, from, in, out);
  if (ax_step_scope(from->eqn) != NULL) return inline_scope(code, from, in, out);
  if (ax_step_grid_point(from->eqn) != NULL) return inline_point(code, from, in, out);
  bool call = (prim->runs == AX_RUNS_EACH || prim->runs == AX_RUNS_FIRST) && held != NULL &&
              held->in_count == from->eqn->in_count && held->out_count == from->eqn->out_count &&
              (held->axes.count == 0 || ax_mesh_equal(&held->axes, &from->program->axes, true));
  if (call && (prim->runs == AX_RUNS_FIRST || ax_eqn_program(from->eqn, 1) == NULL)) return inline_held(code, from, 0, in, out);
  return ax_error(AX_ABSENT, "a core cannot run %s: it is for devices", prim->name);
}

static ax_status inline_region(ax_core_code *code, const ax_core_code_step *from, const uint32_t *in, uint32_t *out) {
  const ax_eqn *around = code->around;
  if (from->eqn->location != NULL || from->eqn->line > 0) code->around = from->eqn;
  const ax_status status = inline_kind(code, from, in, out);
  code->around = around;
  return status;
}

/* --- Equations --- */

static ax_step_kind kind_of(const ax_step *step) {
  if (step == NULL) return AX_STEP_EVAL;
  return step->role == AX_STEP_MAKES_VIEW ? AX_STEP_VIEW : AX_STEP_ACT;
}

static ax_status inline_eqn(ax_core_code *code, const ax_program *program, const ax_eqn *eqn, uint32_t *map) {
  ax_core_code_step step = {.eqn = eqn, .program = program, .in_count = eqn->in_count, .out_count = eqn->out_count};
  const ax_program_id_params *number = ax_step_grid_number(eqn);
  if (number != NULL && code->ids != NULL) {
    map[eqn->out] = code->ids[number->dimension];
    return AX_OK;
  }
  AX_TRY(alloc_slots(code, eqn->in_count, &step.in));
  AX_TRY(alloc_slots(code, eqn->out_count, &step.out));
  for (uint32_t i = 0; i < eqn->in_count; i++) step.in[i] = map[eqn->in[i]];
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(new_slot(code, &program->types[eqn->out + k], &step.out[k]));
  memcpy(map + eqn->out, step.out, eqn->out_count * sizeof map[0]);
  if (ax_prim_is_literal(eqn->prim)) {
    AX_TRY(ax_grow(&code->constants, sizeof code->constants[0], code->constant_count, 1, &code->constant_capacity));
    code->constants[code->constant_count++] = (ax_core_code_constant){step.out[0], eqn->params};
    return AX_OK;
  }
  if (eqn->prim->kind == AX_REGION) return inline_region(code, &step, step.in, step.out);
  if ((eqn->prim->effects & AX_EFFECT_EXCHANGE) != 0)
    return ax_error(AX_ABSENT, "%s is for devices; cores meet by semaphores, barriers and copies", eqn->prim->name);
  step.kind = kind_of(eqn->prim->step);
  return add_step(code, step, NULL);
}

static ax_status inline_program(ax_core_code *code, const ax_program *program, const uint32_t *in, uint32_t *out) {
  uint32_t *map;
  AX_TRY(alloc_slots(code, program->value_count, &map));
  memcpy(map, in, program->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < program->eqn_count; i++) AX_TRY(inline_eqn(code, program, &program->eqns[i], map));
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = map[program->outs[k]];
  return AX_OK;
}

const char *ax_eqn_place(const ax_eqn *eqn, ax_arena *arena) {
  char text[32];
  if (eqn->location != NULL || eqn->line == 0) return eqn->location;
  const int length = snprintf(text, sizeof text, "line %u", eqn->line);
  return ax_arena_copy(arena, text, (size_t)length + 1);
}

/* Finds the location and the trace spans of each step. Spans follow the text: a loop's body is within the spans around the loop. */
static void locate(ax_core_code *code) {
  const char *open[16];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < code->step_count; i++) {
    ax_core_code_step *step = &code->steps[i];
    if (step->eqn == NULL) continue;
    const ax_step_span span = step->kind == AX_STEP_ACT ? step->eqn->prim->step->span : AX_SPAN_NONE;
    if (span == AX_SPAN_ENDS && depth > 0) depth--;
    step->location = ax_eqn_place(step->eqn, &code->arena);
    if (step->location == NULL && step->around != NULL) step->location = ax_eqn_place(step->around, &code->arena);
    step->span = depth == 0 ? NULL : open[(depth <= AX_COUNT(open) ? depth : AX_COUNT(open)) - 1];
    if (span != AX_SPAN_BEGINS) continue;
    if (depth < AX_COUNT(open)) open[depth] = ((const ax_trace_params *)step->eqn->params)->name;
    depth++;
  }
}

ax_status ax_core_code_create(ax_program *program, ax_core_code **out) {
  *out = NULL;
  ax_core_code *code = ax_calloc(1, sizeof *code);
  if (code == NULL) return ax_out_of_memory(sizeof *code);
  code->program = ax_program_retain(program);
  uint32_t *in, *results;
  ax_status status = alloc_slots(code, program->in_count, &in);
  if (status == AX_OK) status = alloc_slots(code, program->out_count, &results);
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) status = new_slot(code, &program->types[i], &in[i]);
  if (status == AX_OK) status = inline_program(code, program, in, results);
  if (status == AX_OK) status = add_step(code, (ax_core_code_step){.kind = AX_STEP_END}, NULL);
  if (status == AX_OK) status = ax_core_code_find_sums(code);
  if (status == AX_OK) locate(code);
  if (status == AX_OK)
    *out = code;
  else
    ax_core_code_release(code);
  return status;
}

void ax_core_code_release(ax_core_code *code) {
  if (code == NULL) return;
  ax_program_release((ax_program *)code->program);
  ax_free(code->steps);
  ax_free(code->types);
  ax_free(code->constants);
  ax_arena_deinit(&code->arena);
  ax_free(code);
}

const char *ax_step_text(const ax_core_code_step *step, char *text, size_t bytes) {
  const ax_eqn *eqn = step->eqn;
  const char *name = eqn != NULL ? eqn->prim->name : "the end";
  const char *what = step->kind == AX_STEP_OPEN ? "begin of run_scoped" : step->kind == AX_STEP_CLOSE ? "end of run_scoped" : name;
  snprintf(text, bytes, "%s%s%s", what, step->location != NULL ? ", " : "", step->location != NULL ? step->location : "");
  return text;
}
