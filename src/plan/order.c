/* The order of operations in a block: operations that do not depend on a collective's result come before those that do.

   Each operation gets a phase: the number of collectives on the longest way to it. A stable sort by phase keeps program order
   otherwise, so dependencies hold. An operation behind a control dependence (a body that is computed again) has at least the
   phase in which all buffers of that dependence can be read, so values that are made again to save memory are made late.
   Operations do not move across messages: each operation with messages begins a phase, as late as the latest phase before it. So
   a device starts every collective it can before it waits for one, and collectives overlap with other work. No device that has
   its gradients ready waits for another one that waits for the loss.

     loss = psum(l)        phase 0 (start), its readers 1               g = grad ...    phase 0
     report = loss / n     phase 1                                      G = psum(g)     phase 0 (start)
     g = grad ...          phase 0             becomes                  report, w - G   phase 1 */
#include <string.h>

#include "plan/passes.h"

typedef struct opening { /* of a control dependence: its phase in a block */
  const ax_block *block;
  uint32_t phase;
} opening;

typedef struct scheduler {
  ax_plan *plan;
  const ax_block *block;
  opening *openings; /* by control dependence: in the block that asked last */
  uint32_t *ready; /* by allocation: the phase in which its last writer's value may be read */
  uint32_t *used;  /* by allocation: the latest phase of an operation that touches it, which a later writer may not precede */
  uint32_t phase;  /* of the operation being looked at */
  bool exchanges;  /* it holds, or is, the start of an exchange */
  bool ordered;    /* it holds, or is, an operation of an equation with order or state: those stay in program order */
} scheduler;

static uint32_t allocation_of(const scheduler *s, uint32_t buffer) { return s->plan->buffers[buffer].allocation; }

static void need(void *context, uint32_t buffer, bool writes) {
  scheduler *s = context;
  uint32_t allocation = allocation_of(s, buffer), least = writes ? s->used[allocation] : s->ready[allocation];
  if (least > s->phase) s->phase = least;
}

static void note(void *context, uint32_t buffer, bool writes) {
  scheduler *s = context;
  uint32_t allocation = allocation_of(s, buffer), readable = s->phase + (s->exchanges ? 1 : 0);
  if (writes && readable > s->ready[allocation]) s->ready[allocation] = readable;
  if (s->phase > s->used[allocation]) s->used[allocation] = s->phase;
}

static void need_op(void *context, ax_op *op) {
  ax_op_visit(op, need, context);
  if (op->kind == AX_OP_DONE) need(context, op->exchange->out, false);
}

/* Notes whether the operation exchanges and whether it is ordered, before the blocks inside it are noted. */
static void describe_op(void *context, ax_op *op) {
  scheduler *s = context;
  if (op->kind == AX_OP_START) s->exchanges = true;
  if (ax_op_is_ordered(op)) s->ordered = true;
}

static void note_op(void *context, ax_op *op) {
  ax_op_visit(op, note, context);
  if (op->kind == AX_OP_DONE) note(context, op->exchange->out, false);
}

/* A counting sort: stable, and as long as the block. */
static ax_status by_phase(ax_block *block, const uint32_t *phases, uint32_t last, ax_arena *scratch) {
  if (last == 0) return AX_OK;
  ax_op *sorted = ax_arena_alloc(scratch, block->count * sizeof sorted[0]);
  uint32_t *next = ax_arena_alloc(scratch, (last + 2) * sizeof next[0]); /* by phase: where its next operation goes */
  if (sorted == NULL || next == NULL) return ax_out_of_memory(block->count * sizeof sorted[0]);
  for (uint32_t i = 0; i < block->count; i++) next[phases[i] + 1]++;
  for (uint32_t phase = 0; phase <= last; phase++) next[phase + 1] += next[phase];
  for (uint32_t i = 0; i < block->count; i++) sorted[next[phases[i]]++] = block->ops[i];
  memcpy(block->ops, sorted, block->count * sizeof sorted[0]);
  return AX_OK;
}

static void forget(void *context, uint32_t buffer, bool writes) {
  scheduler *s = context;
  (void)writes;
  s->ready[allocation_of(s, buffer)] = s->used[allocation_of(s, buffer)] = 0;
}

/* The phase from which a control dependence is open, asked for the first time when all that it waits for has been looked at. */
static uint32_t opens(scheduler *s, const ax_control_dependence *control_dependence) {
  opening *at = &s->openings[control_dependence->number];
  if (at->block == s->block) return at->phase;
  uint32_t phase = control_dependence->outer != NULL ? opens(s, control_dependence->outer) : 0;
  for (uint32_t i = 0; i < control_dependence->count; i++)
    if (s->ready[allocation_of(s, control_dependence->buffers[i])] > phase)
      phase = s->ready[allocation_of(s, control_dependence->buffers[i])];
  *at = (opening){s->block, phase};
  return phase;
}

/* `ready` and `used` are clear before and after. phases: cleared, one an operation. Gives the last phase. */
static uint32_t find_phases(scheduler *s, ax_block *block, uint32_t *phases) {
  uint32_t last = 0, least = 0; /* least: the phase of the last operation that stays in order */
  uint32_t fence = 0;           /* that of the last with messages */
  s->block = block;
  for (uint32_t i = 0; i < block->count; i++) {
    s->phase = block->ops[i].control_dependence != NULL ? opens(s, block->ops[i].control_dependence) : 0;
    s->exchanges = s->ordered = false;
    ax_op_walk(&block->ops[i], describe_op, s);
    ax_op_walk(&block->ops[i], need_op, s);
    if (s->ordered && s->phase < least) s->phase = least;
    if (s->phase < fence) s->phase = fence;
    if (ax_op_has_messages(&block->ops[i])) fence = s->phase = s->phase < last ? last : s->phase;
    if (s->ordered) least = s->phase;
    phases[i] = s->phase;
    ax_op_walk(&block->ops[i], note_op, s);
    if (phases[i] > last) last = phases[i];
  }
  for (uint32_t i = 0; i < block->count; i++) ax_op_visit_all(&block->ops[i], forget, s);
  return last;
}

static ax_status sort_block(void *context, ax_block *block, bool is_body) {
  ax_arena scratch = {0};
  (void)is_body;
  uint32_t *phases = ax_arena_alloc(&scratch, block->count * sizeof phases[0]);
  ax_status status = phases != NULL ? by_phase(block, phases, find_phases(context, block, phases), &scratch)
                                    : ax_out_of_memory(block->count * sizeof phases[0]);
  ax_arena_deinit(&scratch);
  return status;
}

ax_status ax_plan_order(ax_plan *plan) {
  ax_arena tables = {0};
  scheduler s = {.plan = plan};
  s.ready = ax_arena_alloc(&tables, plan->buffer_count * sizeof s.ready[0]);
  s.used = ax_arena_alloc(&tables, plan->buffer_count * sizeof s.used[0]);
  s.openings = ax_arena_alloc(&tables, plan->control_dependence_count * sizeof s.openings[0]);
  ax_status status = s.ready != NULL && s.used != NULL && s.openings != NULL ? ax_blocks_visit(&plan->block, sort_block, &s)
                                                       : ax_out_of_memory(plan->buffer_count * sizeof s.ready[0]);
  ax_arena_deinit(&tables);
  return status;
}
