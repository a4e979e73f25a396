/* A rough cost of a plan: nanoseconds, and the number of segments (from wait to wait) that they are in, loops multiplied out. It
   is good enough to tell microseconds from milliseconds. */
#include "assemble/assembly.h"

typedef struct cost {
  double time, segments;
} cost;

static cost block_cost(const ax_plan *plan, const ax_block *block);

double ax_plan_op_time(const ax_plan *plan, const ax_op *op) {
  switch (op->kind) {
    case AX_OP_KERNEL: return 20 + ax_kernel_time(op->kernel.kernel);
    case AX_OP_ROWS: return 20 + ax_rows_time(op->rows);
    case AX_OP_GEMM: return 200 + ax_gemm_time(op->gemm);
    case AX_OP_EVAL:
      return ax_op_is_ordered(op) || op->eval.callback != NULL ? 20000 : 1000; /* the time of a callback is unknown */
    case AX_OP_ROUTINE: return 100 + op->routine->time;
    case AX_OP_CHECK: return 20 + 0.1 * (double)ax_buffer_bytes(&plan->buffers[op->check.buffers[0]]);
    case AX_OP_RAGGED:
      return 50 + (op->step == AX_RAGGED_TAKE ? 0.2 * (double)ax_type_elems(&plan->buffers[op->ragged->out].type) : 0);
    case AX_OP_CORES: return op->cores_step == AX_CORES_RUN ? 500 + op->cores->time : 100;
    case AX_OP_START: return 30 + 0.2 * (double)ax_type_elems(&plan->buffers[op->exchange->in].type);
    case AX_OP_SEND:
    case AX_OP_RECEIVE: return 100 + 0.1 * (double)ax_buffer_bytes(&plan->buffers[op->message->buffer]);
    default: return 0;
  }
}

static bool waits(const ax_op *op) { return op->kind == AX_OP_START || op->kind == AX_OP_RECEIVE || ax_op_takes_turns(op); }

static cost op_cost(const ax_plan *plan, const ax_op *op) {
  double times = (double)ax_axis_set_size(op->axes, &plan->mesh);
  if (op->kind == AX_OP_BRANCH) return block_cost(plan, &op->branch.blocks[0]);
  if (op->kind != AX_OP_LOOP) return (cost){times * ax_plan_op_time(plan, op), waits(op) ? times : 0};
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

/* Waking a thread takes some microseconds, and passing an activation from one to another about one. */
bool ax_worth_threads(const ax_compiled *c) {
  cost whole = block_cost(c->plan, &c->plan->block);
  return whole.time > 12000 && whole.time / (whole.segments + c->devices) > 1200;
}
