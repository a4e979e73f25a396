/* Functions of scalars that an operation applies to elements: what a reduction combines by, what an order compares by. Such a
   function is held as a program without axes, of pointwise operations on scalars and constants alone (AX_PARAM_SCALARS). So an
   operation that holds one is as local as any other: each device applies it to its own elements, in any axis environment. */
#ifndef AX_PRIM_SCALARS_H
#define AX_PRIM_SCALARS_H

#include "ir/prim.h"
#include "prim/bind.h"

/* Traces `body` on scalars of these dtypes; calls in it are written out. *out is the caller's. AX_INVALID_ARGUMENT: the body
   captures values of the trace in progress, or is what ax_scalars_check refuses. `function` and `part` are for messages. */
AX_MUST_USE ax_status ax_scalars_trace(const char *function, const char *part, ax_fn body, const ax_dtype *in, ax_program **out);
/* Refuses a program that is no function of scalars: "the body: scan is no operation on scalars". */
AX_MUST_USE ax_status ax_scalars_check(const ax_program *body, const char *part);
/* Says whether the body is one operation on its two inputs, in either order, and which one; NULL: it is not. */
const ax_prim *ax_scalars_operation(const ax_program *body);

/* Applies the function to the elements of arrays, all of one shape: adds equations to the trace in progress. */
void ax_scalars_call(const ax_program *body, const ax_value *in, ax_value *out);

/* The function run by the rules that evaluate: cells of one element each. */
typedef struct ax_scalars_run {
  const ax_program *body;
  ax_tensor *value; /* by value of the body: scalars; the caller writes those of the inputs, 0 .. in_count */
} ax_scalars_run;
AX_MUST_USE ax_status ax_scalars_open(ax_arena *arena, const ax_program *body, ax_scalars_run *out);
/* Computes all values from the inputs'. Result k is in value[body->outs[k]]. */
AX_MUST_USE ax_status ax_scalars_step(const ax_scalars_run *run);

#endif
