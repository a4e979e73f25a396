/* See compiled.h. */
#include "code/compiled.h"

#include "base/shared.h"
#include "ir/path.h"

void ax_compiled_deinit(ax_compiled *c, ax_compiler *jit) {
  if (jit != NULL) ax_jit_drop(jit, &c->jit_use);
  else ax_free(c->jit_use.objects);
  for (uint32_t i = 0; i < c->lent_count; i++) ax_shared_release(c->lent[i].owner); /* in the plan's memory */
  ax_plan_destroy(c->plan);
  ax_free(c->constants);
  ax_free(c->map);
  *c = (ax_compiled){0};
}

/* --- Text --- */

static const char *const instr_names[] = {
    [AX_INSTR_KERNEL] = "kernel",   [AX_INSTR_ROWS] = "rows",   [AX_INSTR_GEMM] = "gemm",     [AX_INSTR_EVAL] = "eval",
    [AX_INSTR_ROUTINE] = "routine", [AX_INSTR_CHECK] = "check", [AX_INSTR_CALL] = "call",     [AX_INSTR_RAGGED] = "ragged",
    [AX_INSTR_CORES] = "cores",     [AX_INSTR_PUSH] = "push",   [AX_INSTR_SEND] = "send",     [AX_INSTR_RECEIVE] = "receive",
    [AX_INSTR_CLEAR] = "clear",     [AX_INSTR_POINT] = "point", [AX_INSTR_WAIT] = "wait",     [AX_INSTR_SIGNAL] = "signal",
    [AX_INSTR_LOOP] = "loop",
    [AX_INSTR_ENTER] = "enter",     [AX_INSTR_NEXT] = "next",   [AX_INSTR_TEST] = "test",     [AX_INSTR_BRANCH] = "branch",
    [AX_INSTR_JUMP] = "jump",       [AX_INSTR_END] = "end"};

static uint32_t most_times(const ax_event *event) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < event->count; i++) most = event->times[i] > most ? event->times[i] : most;
  return most;
}

static void push_text(ax_text *text, const ax_push *push) {
  ax_text_add(text, " event %u", push->event);
  if (push->way == AX_PUSH_AS_WHOLE) ax_text_add(text, " as a whole");
  if (push->way == AX_PUSH_IN_BATCHES) ax_text_add(text, " in batches of %u", push->batch > 0 ? push->batch : push->members);
}

ax_axis_set ax_instr_skipped(const ax_compiled *c, const ax_instr *instr) {
  if (c->map == NULL || c->code_count == 0 || instr->skip == 0) return instr->skip; /* sets of axes, until the list is finished */
  return c->owned[__builtin_ctzll(instr->skip)].axes;
}

static void instr_text(ax_text *text, const ax_compiled *c, const ax_instr *instr, uint32_t i) {
  const bool named = instr->kind == AX_INSTR_ROUTINE && instr->routine != NULL && instr->routine->name != NULL;
  ax_text_add(text, "%4u %-7s", i, named ? instr->routine->name : instr_names[instr->kind]);
  ax_axis_set on = ax_all_axes(&c->plan->mesh) & ~ax_instr_skipped(c, instr);
  ax_text_add(text, " on %s", ax_axis_set_string(on, &c->plan->mesh));
  if (instr->kind == AX_INSTR_WAIT || instr->kind == AX_INSTR_SIGNAL)
    ax_text_add(text, " event %u region %u%+lld times %u%s%s", instr->sync.event, instr->sync.region, (long long)instr->sync.delta,
                c->events != NULL ? most_times(&c->events[instr->sync.event]) : 0, instr->sync.away != NULL ? " away" : "",
                instr->sync.parks ? " parks" : "");
  if (instr->kind == AX_INSTR_PUSH && instr->push != NULL) push_text(text, instr->push);
  if (instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_NEXT || instr->kind == AX_INSTR_TEST || instr->kind == AX_INSTR_JUMP)
    ax_text_add(text, " to %u", instr->target);
  for (uint32_t k = 0; k < instr->ref_count; k++)
    if (instr->refs[k].space != AX_NONE) ax_text_add(text, " s%u+%lld", instr->refs[k].space, (long long)instr->refs[k].offset);
  if (instr->eqn != NULL) {
    ax_text_add(text, "   ; ");
    ax_origin_text(text, instr->eqn);
  }
  ax_text_add(text, "\n");
}

void ax_instrs_text(ax_text *text, const ax_compiled *c, const ax_instr *instrs, uint32_t count) {
  static const char *const kinds[] = {"const", "input", "output", "kept", "scratch", "pointers"};
  for (uint32_t s = 0; s < c->space_count; s++)
    ax_text_add(text, "s%u: %s %u, %lld bytes per %s\n", s, kinds[c->spaces[s].kind], c->spaces[s].index,
                (long long)c->spaces[s].bytes, ax_axis_set_string(c->sets[c->spaces[s].set].axes, &c->plan->mesh));
  for (uint32_t i = 0; i < count; i++) instr_text(text, c, &instrs[i], i);
}
