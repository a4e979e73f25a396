/* Shared by ax_kernel_call and ax_mpmd_map: tracing the bodies over refs, joining the values they capture, and binding the
   equation. */
#ifndef AX_KERNEL_CALL_H
#define AX_KERNEL_CALL_H

#include "kernel/scratch.h"
#include "prim/region.h"

typedef struct ax_kernel_trace {
  const char *function; /* the public function that the user called, for messages */
  ax_kernel_params params;
  const ax_fn *bodies;
  const ax_mesh *axes; /* of each body: its environment */
  const ax_type *const *refs; /* of each body: the types of its refs; scratch is added */
  ax_body *maps; /* the index maps that `params` counts, as they were traced; or NULL */
  uint32_t in_count;
  const ax_value *in;
  ax_value *out;
} ax_kernel_trace;

/* Takes the options that kernels of both kinds have. False: the trace has failed. */
bool ax_take_kernel_options(const char *function, const ax_kernel_options *options, ax_kernel_params *params);
/* How many operands a kernel's caller gives: in_count, or if that is only the room of a list (AX_ROOM), as many as the body takes
   beside results and scratch. */
uint32_t ax_kernel_operands(uint32_t in_count, const ax_fn *body, uint32_t out_count, const ax_kernel_options *options);
/* The results' types; false: the trace has failed. */
bool ax_take_kernel_outs(const char *function, uint32_t count, const ax_type *outs, ax_types *taken);
/* The axes in scope, unchecked, and those of the cores. AX_INVALID_ARGUMENT: a name that is in scope; too many. */
AX_MUST_USE ax_status ax_kernel_axes(const ax_mesh *cores, ax_mesh *out);
/* Traces params.bodies.count bodies and binds the equation. */
void ax_kernel_bind(ax_kernel_trace *trace);

#endif
