/* Helpers shared by the transforms of functions inside a trace: the function becomes a program, and the transformed program is
   called in the trace. */
#ifndef AX_XFORM_IN_TRACE_H
#define AX_XFORM_IN_TRACE_H

#include "prim/region.h"
#include "xform/xform.h"

typedef struct ax_traced {
  const char *what; /* the function that the user called: messages begin with it */
  ax_fn function;
  const ax_value *in;     /* the operands, a copy in the trace's memory */
  ax_type *types;         /* the operands' types, on which the function is traced */
  uint32_t *by, by_count; /* numbers of the operands that derivatives are taken by, ascending; none for vmap */
  ax_body body;           /* the program (captured.., x..) -> (y..) */
} ax_traced;

/* Copies the operands and poisons out[0 .. out_count), which may be the same array. False: the trace has failed. Call
   ax_traced_deinit in either case. */
bool ax_traced_init(ax_traced *f, const char *what, ax_fn function, const ax_value *in, ax_value *out, uint32_t out_count);
/* The lists of a transform: the operands, and room for results. */
typedef struct ax_in_and_out {
  uint32_t in_count;
  const ax_value *in;
  uint32_t out_count;
  ax_value *out;
} ax_in_and_out;
/* Begins one that takes derivatives: checks and copies the operands, and chooses those of `wrt`. False, and ax_traced_deinit: as
   above. */
bool ax_traced_begin(ax_traced *f, const char *what, ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in);
/* Makes room for results poison. False: there are not as many, and the trace has failed; `out` has `count` entries at most. */
bool ax_traced_results(const char *what, uint32_t count, uint32_t needed, ax_value *out);
/* Chooses the operands that derivatives are taken by: at least one, all floats. by_count is right on failure too, if it can be
   known. */
bool ax_traced_choose(ax_traced *f, ax_args wrt);
bool ax_traced_trace(ax_traced *f, const ax_mesh *axes); /* axes NULL: those of the trace in progress */
void ax_traced_deinit(ax_traced *f);
/* The chosen operands as inputs of the program. */
ax_args ax_traced_inputs(const ax_traced *f);
/* Calls the transformed program, which it consumes, on (captured.., x.., more..). If `status` is an error it fails the trace with
   that instead. */
void ax_traced_call(const ax_traced *f, ax_status status, ax_program *transformed, const ax_value *more, uint32_t more_count,
                    ax_value *out, uint32_t out_count);

/* Fails the trace, in the name of `what`. */
void ax_trace_fails(const char *what, ax_status status);
const ax_mesh *ax_axes_here(void);

/* Makes a value given as the tangent or cotangent of an operand or result fit its type: a number becomes an array; another value is
   made to vary as `type` does. Along axes that are not in `own` it may vary or not. False: the value does not have that type; the
   trace has failed. */
bool ax_fit_tangent(const char *what, const char *of, const char *kind, uint32_t index, const ax_type *type, ax_axis_set own,
                    ax_value *value);

/* A function linearized in a trace, which owns it: the linear map from the tangents of some operands to those of
   the results, at one point. */
typedef struct ax_linearized {
  ax_program *tangent;    /* (residual.., dx..) -> (dy.. of floats) */
  ax_program *transposed; /* (residual.., ct of dy..) -> (ct of dx..); NULL until it is first needed */
  const ax_value *residuals;
  uint32_t residual_count, operand_count, result_count;
  const uint32_t *operands; /* numbers of the operands that have tangents */
  const ax_type *results;   /* types of all results of the function */
} ax_linearized;

/* linear.c: linearizes the traced function here. Returns its results, or NULL. The map owns its programs until
   ax_linearized_deinit. */
ax_value *ax_linearized_init(ax_linearized *map, const ax_traced *f);
void ax_linearized_deinit(ax_linearized *map);

#endif
