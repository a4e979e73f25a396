/* What primitives that call the host share (io_callback, debug_print): who calls, and their batching. Such a primitive's first
   parameter is axes along which it is called: once for each coordinate along them, and along those that an operand differs along,
   by the first device that has it. A trace names all axes in scope, so that nothing differs, and nobody goes another way, along
   those that the partitioner adds. */
#ifndef AX_CONTROL_HOST_CALL_H
#define AX_CONTROL_HOST_CALL_H

#include "prim/rules.h"

/* All axes of the trace in progress; false: the trace has failed. */
bool ax_host_call_axes(ax_axes *out);
/* Results vary over the axes named, and where operands do. */
AX_MUST_USE ax_status ax_host_call_spread(const ax_infer_args *args);
void ax_host_call_differs(const ax_differs_args *args);
/* eval: calls for one lane. Its results are those of all devices that have its coordinates. */
typedef ax_status (*ax_host_call)(const ax_eval_args *args, uint32_t lane);
AX_MUST_USE ax_status ax_host_call_eval(const ax_eval_args *args, ax_host_call call);
/* Batching: one element after the other; ordered calls are refused. */
void ax_host_call_batch(const ax_batch_args *args);
/* The same of any primitive with these parameters. */
void ax_batch_one_by_one(const ax_batch_args *args, const void *params);
ax_status ax_host_call_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
