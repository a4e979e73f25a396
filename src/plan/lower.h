/* Lowering, as rules see it: a primitive's `lower` rule adds operations on buffers to the plan (plan.h). */
#ifndef AX_PLAN_LOWER_H
#define AX_PLAN_LOWER_H

#include "ir/flow.h"
#include "plan/plan.h"

/* The state of lowering; rules use the functions below. */
typedef struct ax_lower {
  ax_plan *plan;
  ax_block *block; /* operations go here */
  const ax_program *program;
  const ax_eqn *eqn;
  const ax_axis_set *differs; /* of each value of `program` */
  ax_flow *flow;              /* that says so */
  ax_axis_set diverging;   /* axes along which devices may be in different places: inside a branch or loop they choose */
  ax_loop_kernel *kernel;       /* being built, and its buffers by slot */
  uint32_t *buffers;
  uint32_t buffers_capacity;
  uint32_t *operand, operand_capacity; /* by buffer, of a call being lowered: the first operand that it is; not set for others */
} ax_lower;

/* --- For rules --- */

/* A fresh buffer of `type` that varies over `axes`; or, for result k of the equation being lowered, as analysed. */
AX_MUST_USE ax_status ax_lower_buffer(ax_lower *lower, const ax_type *type, ax_axis_set axes, uint32_t *out);
AX_MUST_USE ax_status ax_lower_result(ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t *out);
/* The same memory under another type of as many bytes or fewer, `offset` bytes in; plus step bytes an iteration of `loop`. */
AX_MUST_USE ax_status ax_lower_view(ax_lower *lower, uint32_t buffer, const ax_type *type, int64_t offset, uint32_t loop,
                                    int64_t step, uint32_t *out);
const ax_buffer *ax_lower_get(const ax_lower *lower, uint32_t buffer);

/* A kernel: begin, load and combine (ax_kernel_* on lower->kernel), store, end. */
AX_MUST_USE ax_status ax_lower_kernel_begin(ax_lower *lower, uint32_t rank, uint32_t reduce_rank, const int64_t *dims);
ax_ex ax_lower_load(ax_lower *lower, uint32_t buffer, const ax_position *at);
ax_ex ax_lower_load_where(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex guard); /* as ax_kernel_load_where */
ax_ex ax_lower_load_scalar(ax_lower *lower, uint32_t buffer); /* of a rank-0 buffer */
void ax_lower_store(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex expr, ax_scalar reduce);
AX_MUST_USE ax_status ax_lower_kernel_end(ax_lower *lower);
/* dst = src, of the same shape and dtype. */
AX_MUST_USE ax_status ax_lower_copy(ax_lower *lower, uint32_t dst, uint32_t src);

AX_MUST_USE ax_status ax_lower_gemm(ax_lower *lower, const ax_gemm *gemm);
/* *routine is copied, its data too (`bytes` of them). */
AX_MUST_USE ax_status ax_lower_routine(ax_lower *lower, const ax_routine *routine, size_t bytes);
/* *started is a copy, the plan's; it is done once, in the block where it was started. */
AX_MUST_USE ax_status ax_lower_start(ax_lower *lower, const ax_exchange *exchange, ax_exchange **started);
AX_MUST_USE ax_status ax_lower_done(ax_lower *lower, ax_exchange *started);
/* kind: AX_OP_SEND or AX_OP_RECEIVE. The message is copied. */
AX_MUST_USE ax_status ax_lower_message(ax_lower *lower, ax_op_kind kind, const ax_mail *message);
/* A step of a ragged exchange, which is the plan's. */
AX_MUST_USE ax_status ax_lower_ragged(ax_lower *lower, ax_ragged *ragged, ax_ragged_step step);
/* A step of a kernel, which is the plan's (ax_plan_keep_cores). */
AX_MUST_USE ax_status ax_lower_cores(ax_lower *lower, ax_cores *cores, ax_cores_step step);
/* Runs the equation by its eval rule; allocates the results. The shared rule for LOCAL primitives without a better one;
   AX_ABSENT for others. */
AX_MUST_USE ax_status ax_lower_eval(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* Runs the equation by its eval rule, once for each coordinate along the names and where an operand differs, by the first device
   that has it. */
AX_MUST_USE ax_status ax_lower_host_call(ax_lower *lower, const ax_eqn *eqn, const ax_axes *names, const uint32_t *in,
                                         uint32_t *out);

/* A body, inlined here: in and out are buffers. */
AX_MUST_USE ax_status ax_lower_program(ax_lower *lower, const ax_program *program, const uint32_t *in, uint32_t *out);
/* The same of a body that other equations may call too: lowered once, and copied here (fragment.c). */
AX_MUST_USE ax_status ax_lower_call(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out);
/* The same of one that is done again: its operations wait for all its operands. */
AX_MUST_USE ax_status ax_lower_call_late(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out);
/* Opens a loop (trips -1: while); operations go to its body until ax_lower_loop_end. Of a while loop, operations before
   ax_lower_loop_test are the test. `*id` is for views; `axes`: along which the trip count may differ. */
AX_MUST_USE ax_status ax_lower_loop_begin(ax_lower *lower, int64_t trips, ax_axis_set axes, ax_block **outer, uint32_t *id);
AX_MUST_USE ax_status ax_lower_loop_test(ax_lower *lower, ax_block *outer, uint32_t condition);
void ax_lower_loop_end(ax_lower *lower, ax_block *outer);
/* Opens a branch of `count` blocks; ax_lower_branch_case(k) directs operations into block k. */
AX_MUST_USE ax_status ax_lower_branch_begin(ax_lower *lower, uint32_t index, uint32_t count, ax_axis_set axes,
                                            ax_block **outer);
void ax_lower_branch_case(ax_lower *lower, ax_block *outer, uint32_t k);
void ax_lower_branch_end(ax_lower *lower, ax_block *outer);

/* --- For lower.c --- */

/* The checks of an equation that was lowered to the operations of the block from `first` on (check.c). */
AX_MUST_USE ax_status ax_lower_checks(ax_lower *lower, const ax_eqn *eqn, uint32_t first, const uint32_t *in, const uint32_t *out);

/* --- For fragment.c --- */

/* A constant of one element: its bits. */
bool ax_lower_constant(const ax_buffer *buffer, int64_t *bits);
/* An operation, as it is, at the end of the block at work. */
AX_MUST_USE ax_status ax_lower_append(ax_lower *lower, const ax_op *op);

#endif
