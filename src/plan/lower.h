/* Lowering, as rules see it: a primitive's `lower` rule adds operations on buffers to the plan. The plan's own types are known here
   by name only; a rule that fills one in includes plan/plan.h, and one that adds a message or a step plan/lowering.h. */
#ifndef AX_PLAN_LOWER_H
#define AX_PLAN_LOWER_H

#include "ir/program.h"
#include "plan/kernel.h"

/* plan/plan.h */
typedef struct ax_plan ax_plan;
typedef struct ax_block ax_block;
typedef struct ax_buffer ax_buffer;
typedef struct ax_gemm ax_gemm;
typedef struct ax_routine ax_routine;
typedef struct ax_exchange ax_exchange;

/* The state of lowering; rules use the functions below. */
struct ax_lower {
  ax_plan *plan;
  ax_block *block; /* operations go here */
  const ax_program *program;
  const ax_eqn *eqn;
  const ax_axis_set *differs; /* by value of `program`: the axes along which it differs */
  const uint32_t *map;           /* by value of `program`, of those lowered so far: its buffer; NULL: not known */
  const ax_eqn **made_by;        /* by value of `program`, likewise; NULL: an input */
  struct ax_flow *flow;              /* computes `differs` */
  ax_axis_set diverging;   /* axes along which devices may be at different places: inside a branch or loop that they choose */
  ax_loop_kernel *kernel;       /* being built, and its buffers by slot */
  uint32_t *buffers;
  uint32_t buffers_capacity;
  struct ax_complex_pair *parts; /* by buffer, while its block is lowered: the parts of a complex value (parts.c) */
  uint32_t parts_count, parts_capacity;
  uint32_t *operand, operand_capacity; /* by buffer, while a call is lowered: the first operand that it is; undefined for others */
};

/* A fresh buffer of `type` that varies over `axes`; a fresh buffer for result k of the equation, along the axes that the
   analysis found. */
AX_MUST_USE ax_status ax_lower_buffer(ax_lower *lower, const ax_type *type, ax_axis_set axes, uint32_t *out);
AX_MUST_USE ax_status ax_lower_result(ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t *out);
/* The same memory as another type of at most as many bytes, `offset` bytes into it, plus `step` bytes for each iteration of
   `loop`. */
AX_MUST_USE ax_status ax_lower_view(ax_lower *lower, uint32_t buffer, const ax_type *type, int64_t offset, uint32_t loop,
                                    int64_t step, uint32_t *out);
const ax_buffer *ax_lower_get(const ax_lower *lower, uint32_t buffer);
const ax_type *ax_lower_type(const ax_lower *lower, uint32_t buffer);
/* Whether a buffer is a constant of one element; *bits are its bits. */
bool ax_lower_constant(const ax_buffer *buffer, int64_t *bits);

/* The equation that made operand k, if it is one of `prim`; otherwise NULL. lower->map has the buffers of its operands. */
const ax_eqn *ax_lower_operand(const ax_lower *lower, const ax_eqn *eqn, uint32_t k, const ax_prim *prim);

/* A kernel: begin, load and combine (ax_kernel_* on lower->kernel), store, end. */
AX_MUST_USE ax_status ax_lower_kernel_begin(ax_lower *lower, uint32_t rank, uint32_t reduce_rank, const int64_t *dims);
ax_ex ax_lower_load(ax_lower *lower, uint32_t buffer, const ax_position *at);
ax_ex ax_lower_load_where(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex guard); /* as ax_kernel_load_where */
ax_ex ax_lower_load_scalar(ax_lower *lower, uint32_t buffer); /* of a rank-0 buffer */
void ax_lower_store(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex expr, ax_scalar reduce);
AX_MUST_USE ax_status ax_lower_kernel_end(ax_lower *lower);
/* dst = src, of the same shape and dtype. */
AX_MUST_USE ax_status ax_lower_copy(ax_lower *lower, uint32_t dst, uint32_t src);

/* Complex values (parts.c). The real part (0) or the imaginary part (1) of a buffer, as a buffer of their dtype; a buffer of real
   numbers itself is its real part. */
AX_MUST_USE ax_status ax_lower_part(ax_lower *lower, uint32_t buffer, int part, uint32_t *out);
/* Says whether the parts of a complex buffer are known in this block, so that they need not be taken out of its memory. */
bool ax_lower_has_parts(const ax_lower *lower, uint32_t buffer);
/* The memory of a complex buffer as an array of pairs of reals: a dimension of 2 behind its own, whose rank is below AX_MAX_RANK. Its type
   is *pairs. */
AX_MUST_USE ax_status ax_lower_as_pairs(ax_lower *lower, uint32_t buffer, ax_type *pairs, uint32_t *out);
/* The memory of a c64 buffer as an array of its shape of words of 8 bytes (u64), for operations that only move elements. */
AX_MUST_USE ax_status ax_lower_as_words(ax_lower *lower, uint32_t buffer, uint32_t *out);
/* A buffer of `type`, which is complex and varies over `axes`, of these two parts. */
AX_MUST_USE ax_status ax_lower_of_parts(ax_lower *lower, const ax_type *type, ax_axis_set axes, const uint32_t *part, uint32_t *out);
/* The memory of a complex buffer as real numbers, one after another; any other buffer itself. */
AX_MUST_USE ax_status ax_lower_as_reals(ax_lower *lower, uint32_t buffer, uint32_t *out);

AX_MUST_USE ax_status ax_lower_gemm(ax_lower *lower, const ax_gemm *gemm);
/* How many parts a routine of so many nanoseconds has, each long enough for a thread: from 1 to 64, and no more than `most`. */
uint32_t ax_routine_parts(double time, int64_t most);
/* Copies *routine and its data, which has `bytes` bytes. */
AX_MUST_USE ax_status ax_lower_routine(ax_lower *lower, const ax_routine *routine, size_t bytes);
/* *started is the plan's copy of the exchange. ax_lower_done must be called for it once, in the same block. */
AX_MUST_USE ax_status ax_lower_start(ax_lower *lower, const ax_exchange *exchange, ax_exchange **started);
AX_MUST_USE ax_status ax_lower_done(ax_lower *lower, ax_exchange *started);
/* Runs the equation by its eval rule, and makes buffers for its results. For LOCAL primitives that have no better lowering;
   AX_ABSENT for others. */
AX_MUST_USE ax_status ax_lower_eval(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* Runs the equation by its eval rule, once for each coordinate along `names` and along axes where an operand differs, on the
   first device that has this coordinate. */
AX_MUST_USE ax_status ax_lower_host_call(ax_lower *lower, const ax_eqn *eqn, const ax_axes *names, const uint32_t *in,
                                         uint32_t *out);

/* Inlines a body here: in and out are buffers. */
AX_MUST_USE ax_status ax_lower_program(ax_lower *lower, const ax_program *program, const uint32_t *in, uint32_t *out);
/* The same for a body that several equations may call: it is lowered once, and copied here (fragment.c). */
AX_MUST_USE ax_status ax_lower_call(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out);
/* The same for a body that is computed again: its operations wait for all its operands, so that they are not done too early. */
AX_MUST_USE ax_status ax_lower_call_late(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out);
/* Opens a loop of `trips` steps, or a while loop (-1). Operations go to its body until ax_lower_loop_end; in a while loop, those
   before ax_lower_loop_test are the test. `axes`: along which the number of steps may differ. *id is for views. */
AX_MUST_USE ax_status ax_lower_loop_begin(ax_lower *lower, int64_t trips, ax_axis_set axes, ax_block **outer, uint32_t *id);
AX_MUST_USE ax_status ax_lower_loop_test(ax_lower *lower, ax_block *outer, uint32_t condition);
void ax_lower_loop_end(ax_lower *lower, ax_block *outer);
/* Opens a branch of `count` blocks; ax_lower_branch_case directs the operations that follow into block k. */
AX_MUST_USE ax_status ax_lower_branch_begin(ax_lower *lower, uint32_t index, uint32_t count, ax_axis_set axes,
                                            ax_block **outer);
void ax_lower_branch_case(ax_lower *lower, ax_block *outer, uint32_t k);
void ax_lower_branch_end(ax_lower *lower, ax_block *outer);

#endif
