/* What the transforms on functions inside a trace share: the function on its way to a program and back into the trace. */
#ifndef AX_XFORM_IN_TRACE_H
#define AX_XFORM_IN_TRACE_H

#include "prim/region.h"
#include "xform/xform.h"

typedef struct ax_traced {
  const char *what; /* the function that the user called: messages begin with it */
  ax_fn function;
  const ax_value *in;     /* the operands, a copy in the trace's memory */
  ax_type *types;         /* theirs; the function is traced on them */
  uint32_t *by, by_count; /* the operands that derivatives are taken by, ascending; none for vmap */
  ax_body body;           /* the program (captured.., x..) -> (y..) */
} ax_traced;

/* Takes the operands and poisons out[0 .. out_count), which may be the same array. False: the trace has failed. ax_traced_deinit in
   any case. */
bool ax_traced_init(ax_traced *f, const char *what, ax_fn function, const ax_value *in, ax_value *out, uint32_t out_count);
/* Chooses those that derivatives are taken by, floats all and one at least. by_count is right on failure too, if it can be
   known. */
bool ax_traced_choose(ax_traced *f, ax_args wrt);
bool ax_traced_trace(ax_traced *f, const ax_mesh *axes); /* axes NULL: those of the trace in progress */
void ax_traced_deinit(ax_traced *f);
/* Those chosen, as inputs of the program. */
ax_args ax_traced_inputs(const ax_traced *f);
/* Calls the transformed program, which it consumes, on (captured.., x.., more..); or fails the trace with `status`. */
void ax_traced_call(const ax_traced *f, ax_status status, ax_program *transformed, const ax_value *more, uint32_t more_count,
                    ax_value *out, uint32_t out_count);

/* Fails the trace in `what`'s name. */
void ax_trace_fails(const char *what, ax_status status);
const ax_mesh *ax_axes_here(void);

/* What was given as the tangent, or cotangent, of an operand or result with this number: a number as an array of it; another value
   as varying as
   `type`. Along axes that are not in `own` it may vary as it likes. False: the trace has failed, as it is not of that type. */
bool ax_fit_tangent(const char *what, const char *of, const char *kind, uint32_t index, const ax_type *type, ax_axis_set own,
                    ax_value *value);

/* linear.c: linearizes the traced function here. Gives its results, or NULL; the map owns its programs: ax_linearized_deinit. */
ax_value *ax_linearized_init(ax_linearized *map, const ax_traced *f);
void ax_linearized_deinit(ax_linearized *map);

#endif
