/* A rough cost of a plan: nanoseconds, and the number of segments (from wait to wait) that they are in, loops multiplied out. It
   is good enough to tell microseconds from milliseconds. */
#include "assemble/assembly.h"
#include "machine/rates.h"
#include "plan/op.h"

typedef struct cost {
  double time, segments;
} cost;

static cost block_cost(const ax_plan *plan, const ax_block *block);

static bool waits(const ax_op *op) { return ax_op_rules_of(op)->waits || ax_op_takes_turns(op); }

static cost op_cost(const ax_plan *plan, const ax_op *op) {
  double times = (double)ax_axis_set_size(op->axes, &plan->mesh);
  if (op->kind == AX_OP_BRANCH) return block_cost(plan, &op->branch.blocks[0]);
  if (op->kind != AX_OP_LOOP) return (cost){times * ax_op_time(plan, op), waits(op) ? times : 0};
  double trips = op->loop.trips < 0 ? 10 : (double)op->loop.trips;
  cost test = block_cost(plan, &op->loop.test), body = block_cost(plan, &op->loop.body);
  return (cost){trips * (test.time + body.time), trips * (test.segments + body.segments)};
}

static cost block_cost(const ax_plan *plan, const ax_block *block) {
  cost sum = {0, 0};
  for (uint32_t i = 0; i < block->count; i++) {
    cost one = op_cost(plan, &block->ops[i]);
    sum.time += one.time;
    sum.segments += one.segments;
  }
  return sum;
}

double ax_plan_time(const ax_plan *plan) { return block_cost(plan, &plan->block).time; }

static void note_unforeseen(void *context, ax_op *op) {
  bool *foreseen = context;
  if (op->kind == AX_OP_LOOP && op->loop.trips < 0) *foreseen = false;
}

bool ax_plan_is_foreseen(const ax_plan *plan) {
  bool foreseen = true;
  ax_block_walk(&plan->block, note_unforeseen, &foreseen);
  return foreseen;
}

/* Says whether one activation does so much for others at once that it is worth calling threads for that alone. */
bool ax_worth_help(const ax_assembly *a) {
  enum { worth_bytes = 1 << 20 };
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_push *push = a->instrs[i].kind == AX_INSTR_PUSH ? a->instrs[i].push : NULL;
    bool combines = push != NULL && push->at_last_arrival && push->elems >= 2 * AX_PUSH_BLOCK_LEAST;
    bool for_all = combines || (push != NULL && push->way == AX_PUSH_IN_BATCHES);
    if (for_all && push->elems * push->item * push->members >= worth_bytes) return true;
  }
  return false;
}

/* Waking a thread takes some microseconds, and passing an activation from one to another about one. */
bool ax_worth_threads(const ax_compiled *c) {
  const cost whole = block_cost(c->plan, &c->plan->block);
  const double time = whole.time / ax_rates_planned()->sharing;
  return time > 12000 && time / (whole.segments + c->devices) > 1200;
}
