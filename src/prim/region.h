/* Helpers shared by the primitives that hold programs (cond, scan, while, shard_map): tracing a C function as a body, checking
   bodies, running them, and transforming them.

   A body's inputs are the values it captured from the enclosing trace, then its operands. Its axis environment is that of the
   equation (with the mesh's axes added for shard_map), or empty. */
#ifndef AX_PRIM_REGION_H
#define AX_PRIM_REGION_H

#include "ir/transform.h"
#include "prim/bind.h"

/* --- Tracing --- */

typedef struct ax_body {
  ax_program *program; /* (captured.., in..) -> (out..) */
  ax_value *captured;  /* handles of the enclosing trace */
  uint32_t captured_count;
} ax_body;
void ax_body_deinit(ax_body *body);

typedef struct ax_body_options {
  const ax_mesh *axes; /* NULL: those of the enclosing trace */
  const char *owner, *part; /* owner and role of the body for messages: "scan", "body" */
  ax_fn function;
  const ax_type *in; /* types of its operands */
  const ax_spread *out_spread; /* results are also made to vary, or be reduced, over these axes (ax_spread_to); NULL: results stay
                                  as they are */
  ax_axis_set out_invariant;   /* axes over which reduced results are made invariant */
  ax_axis_set capture_varying; /* axes over which captured values are made to vary */
  struct ax_loop_notes *notes; /* NULL: those of the enclosing trace (prim/settle.h) */
} ax_body_options;
AX_MUST_USE ax_status ax_body_trace(const ax_body_options *options, ax_body *out);
/* The two halves of ax_body_trace, between which the caller traces. open begins the trace and returns the operands,
   function.in_count of them, in the trace's memory; NULL: the trace has failed. close ends the trace, also after a failure, with
   the results; NULL: it has failed. Both get the same options. */
AX_MUST_USE ax_status ax_body_open(const ax_body_options *options, ax_value **in);
AX_MUST_USE ax_status ax_body_close(const ax_body_options *options, ax_value *outs, ax_body *out);
/* The types of a function's operands, in the trace's memory. NULL: the trace has failed. */
ax_type *ax_types_of(const char *function, const ax_value *in, uint32_t count);

/* A program built by hand: begin, inputs, operations, finish. Values of enclosing traces may not be used. The array of handles
   lives as long as the trace; NULL on failure, which finish reports. */
ax_value *ax_region_begin(ax_builder *builder, const ax_mesh *axes, const ax_type *in, uint32_t in_count);
AX_MUST_USE ax_status ax_region_finish(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out);

/* --- Transforming. A failure also fails the trace in progress if the comment mentions the trace. --- */

/* A program with inputs of types `in` around `program`: its input i is in[in_at[i]], and only its results numbered out_from[0 ..
   out_count) are kept. */
AX_MUST_USE ax_status ax_region_rearrange(const ax_program *program, const ax_type *in, uint32_t in_count,
                                          const uint32_t *in_at, const uint32_t *out_from, uint32_t out_count,
                                          ax_program **out);
/* The same, if in[in_at[i]] has the type of the program's input i, and every new input is one of them. */
AX_MUST_USE ax_status ax_region_permute(const ax_program *program, const uint32_t *in_at, const uint32_t *out_from,
                                        uint32_t out_count, ax_program **out);

/* --- Checking --- */

/* Refuses a body whose axis environment is not `axes`. */
AX_MUST_USE ax_status ax_region_check_axes(const ax_program *body, const ax_mesh *axes, const char *what);
/* Refuses a type that is not the one wanted: "carry 1 starts as f32[2], but the body takes f32[3]", in that wording. */
AX_MUST_USE ax_status ax_region_check_type(const ax_type *type, const ax_type *wanted, const ax_mesh *axes,
                                           const char *what, uint32_t index, const char *is, const char *but);
/* Refuses tokens among inputs first .. first + count of a body that runs repeatedly with the same inputs. `what` names the body. */
AX_MUST_USE ax_status ax_region_check_tokens(const ax_program *body, uint32_t first, uint32_t count, const char *what);
/* Refuses references to kernels' memory among operands first .. first + count, which change from one iteration to the next. */
AX_MUST_USE ax_status ax_region_check_memory(const ax_infer_args *args, uint32_t first, uint32_t count, const char *what);
/* Refuses communication over any axis of `set` in the body: devices that take different ways would not all reach it. Messages
   between two devices are allowed, as each side is on its own. */
AX_MUST_USE ax_status ax_region_check_silent(const ax_program *body, ax_axis_set set, const ax_mesh *axes,
                                             const char *what);

/* --- Running --- */

/* Tensors of the reference evaluator: on the heap, with their data, one owner each. Defined in xform/. */
AX_MUST_USE ax_status ax_tensor_create(const ax_type *type, ax_tensor **out);
void ax_tensor_release(ax_tensor *tensor); /* NULL is allowed */
AX_MUST_USE ax_status ax_tensor_copy(const ax_tensor *tensor, ax_tensor **out);

/* Runs `program` on `lanes` devices. in[operand * lanes + lane] are borrowed. out[result * lanes + lane] are new tensors owned by
   the caller, all NULL on failure. AX_DEADLOCK: only some of a group reach a collective. Defined in xform/. */
typedef struct ax_evaluator ax_evaluator;
AX_MUST_USE ax_status ax_evaluate_lanes(ax_evaluator *driver, const ax_program *program, uint32_t lanes,
                                        const int64_t *device, ax_tensor *const *in, ax_tensor **out);

/* Sends or receives a message on link `number`, over the axes named. The eval rules of single-sided communication call them for
   their one lane. Defined in xform/apart.c. AX_INVALID_ARGUMENT: the message is not of the tensor's dtype and shape. AX_DEADLOCK:
   no message ever comes. */
AX_MUST_USE ax_status ax_evaluate_send(const ax_eval_args *args, const ax_axes *names, int64_t number, int64_t to,
                                       const ax_tensor *tensor);
AX_MUST_USE ax_status ax_evaluate_receive(const ax_eval_args *args, const ax_axes *names, int64_t number, int64_t from,
                                          ax_tensor *out);

/* Runs a body on the lanes lane[0 .. count) of those in `args`. Input i of lane l is in[i][l]; result k replaces out[k][l], which
   is released. */
AX_MUST_USE ax_status ax_region_eval(const ax_eval_args *args, const ax_program *body, const uint32_t *lane,
                                     uint32_t count, ax_tensor *const *const *in, ax_tensor **const *out);
/* After an error: releases the tensors in args->out. Returns `status`. */
ax_status ax_region_eval_end(const ax_eval_args *args, ax_arena *scratch, ax_status status);

/* --- Lowering --- */

/* Copies results[k] into carries[k] at the end of an iteration. A result that is itself a carry goes through a temporary. */
AX_MUST_USE ax_status ax_region_lower_carries(ax_lower *lower, const uint32_t *carries, uint32_t *results, uint32_t count);

/* --- Variation --- */

/* Finds the sets of a body's results from those of its inputs. False: no memory. */
bool ax_region_differs(const ax_differs_args *args, const ax_program *body, const ax_axis_set *in, ax_axis_set *out);
/* Scratch for a differs rule; NULL: no memory. */
ax_axis_set *ax_differs_alloc(const ax_differs_args *args, size_t count);

#endif
