/* Calls of a body: rules shared by closed_call and checkpoint. They bind the primitive of the equation they are given. */
#ifndef AX_CONTROL_CLOSED_CALL_H
#define AX_CONTROL_CLOSED_CALL_H

#include "prim/rebuild.h"

/* The first part of the parameters of both. */
typedef struct ax_closed_call_params {
  ax_program *body;
} ax_closed_call_params;

/* --- Rules: those of the body --- */

uint32_t ax_called_outs(const void *params);
ax_status ax_called_infer(const ax_infer_args *args);
ax_status ax_called_eval(const ax_eval_args *args);
void ax_called_differs(const ax_differs_args *args);
void ax_called_jvp(const ax_jvp_args *args);
void ax_called_transpose(const ax_transpose_args *args);
void ax_called_batch(const ax_batch_args *args);

/* rewrite: the equations of a body, on the operands from number `first` on, in the place of the equation. */
void ax_called_in_place(const ax_rewrite_args *args, uint32_t first, const ax_program *body);

/* --- Binding --- */

/* Binds an equation with `params` and this body in the place of theirs. Returns its results; NULL: the trace has failed. */
ax_value *ax_called_bind(const ax_prim *prim, const void *params, ax_program *body, const ax_value *in);
/* linearize: binds the equation with the first half as its body, and one with tangent_params and the second half. */
void ax_called_halves(const ax_tangents *t, ax_program *primal, ax_program *tangent, uint32_t residuals,
                      const void *tangent_params);
/* The public function: traces `function` as the body of an equation with `params`, and binds it. */
void ax_called_function(const ax_prim *prim, const void *params, ax_fn function, const ax_value *in, ax_value *out);

#endif
