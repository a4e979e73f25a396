/* The order of operations in a block: what does not depend on a collective's result comes before what does.

   Each operation gets a phase: the number of collectives on the longest way to it. A stable sort by phase keeps program order
   otherwise, so dependencies hold. A device then starts every collective it can before it waits for one, and the collectives
   overlap with the rest; and devices do not wait, with their gradients in hand, for one that waits for the loss.

     loss = psum(l)        phase 0 (start), its readers 1               g = grad ...    phase 0
     report = loss / n     phase 1                                      G = psum(g)     phase 0 (start)
     g = grad ...          phase 0             becomes                  report, w - G   phase 1                      */
#include <string.h>

#include "loop/passes.h"

typedef struct scheduler {
  ax_plan *plan;
  uint32_t *ready; /* by root: the phase in which its last writer's value may be read */
  uint32_t *used;  /* by root: the latest phase of an operation that touches it, which a later writer may not precede */
  uint32_t phase;  /* of the operation being looked at */
  bool exchanges;  /* it holds, or is, the start of an exchange */
  bool ordered;    /* it holds, or is, an operation of an equation with order or state: those stay in program order */
} scheduler;

static uint32_t root_of(const scheduler *s, uint32_t buffer) { return s->plan->buffers[buffer].root; }

static void need(void *context, uint32_t buffer, bool writes) {
  scheduler *s = context;
  uint32_t root = root_of(s, buffer), least = writes ? s->used[root] : s->ready[root];
  if (least > s->phase) s->phase = least;
}

static void note(void *context, uint32_t buffer, bool writes) {
  scheduler *s = context;
  uint32_t root = root_of(s, buffer), readable = s->phase + (s->exchanges ? 1 : 0);
  if (writes && readable > s->ready[root]) s->ready[root] = readable;
  if (s->phase > s->used[root]) s->used[root] = s->phase;
}

static void walk(scheduler *s, ax_op *op, void (*visit)(void *, uint32_t, bool)) {
  ax_op_visit(op, visit, s);
  if (op->kind == AX_OP_START) s->exchanges = true;
  if (op->eqn != NULL && (op->eqn->prim->effects & (AX_EFFECT_ORDER | AX_EFFECT_STATE)) != 0) s->ordered = true;
  if (op->kind == AX_OP_DONE) visit(s, op->exchange->out, false);
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++)
    for (uint32_t i = 0; i < ax_op_block(op, k)->count; i++) walk(s, &ax_op_block(op, k)->ops[i], visit);
}

static ax_status sort_block(scheduler *s, ax_block *block);

static ax_status sort_inside(scheduler *s, ax_op *op) {
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(sort_block(s, ax_op_block(op, k)));
  return AX_OK;
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
  s->ready[root_of(s, buffer)] = s->used[root_of(s, buffer)] = 0;
}

/* `ready` and `used` are clear before and after. phases: cleared, one an operation. Gives the last phase. */
static uint32_t find_phases(scheduler *s, ax_block *block, uint32_t *phases) {
  uint32_t last = 0, least = 0; /* least: the phase of the last operation that stays in order */
  for (uint32_t i = 0; i < block->count; i++) {
    s->phase = 0;
    s->exchanges = s->ordered = false;
    walk(s, &block->ops[i], need);
    if (s->ordered && s->phase < least) s->phase = least;
    if (s->ordered) least = s->phase;
    phases[i] = s->phase;
    walk(s, &block->ops[i], note);
    if (phases[i] > last) last = phases[i];
  }
  for (uint32_t i = 0; i < block->count; i++) walk(s, &block->ops[i], forget);
  return last;
}

static ax_status sort_block(scheduler *s, ax_block *block) {
  ax_arena scratch = {0};
  for (uint32_t i = 0; i < block->count; i++) AX_TRY(sort_inside(s, &block->ops[i]));
  uint32_t *phases = ax_arena_alloc(&scratch, block->count * sizeof phases[0]);
  ax_status status = phases != NULL ? by_phase(block, phases, find_phases(s, block, phases), &scratch)
                                    : ax_out_of_memory(block->count * sizeof phases[0]);
  ax_arena_deinit(&scratch);
  return status;
}

ax_status ax_plan_schedule(ax_plan *plan) {
  ax_arena tables = {0};
  scheduler s = {.plan = plan};
  s.ready = ax_arena_alloc(&tables, plan->buffer_count * sizeof s.ready[0]);
  s.used = ax_arena_alloc(&tables, plan->buffer_count * sizeof s.used[0]);
  ax_status status = s.ready != NULL && s.used != NULL ? sort_block(&s, &plan->block)
                                                       : ax_out_of_memory(plan->buffer_count * sizeof s.ready[0]);
  ax_arena_deinit(&tables);
  return status;
}
