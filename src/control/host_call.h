/* Primitives that call the host (io_callback, debug_print): which devices call, and batching. The first parameter of such a
   primitive is axes. It is called once for each coordinate along these axes and along those that an operand differs along, by the
   first device with the coordinate. A trace names all axes in scope. So along axes that the partitioner adds, operands do not
   differ and devices do not diverge. */
#ifndef AX_CONTROL_HOST_CALL_H
#define AX_CONTROL_HOST_CALL_H

#include "prim/rules.h"

/* All axes of the trace in progress. False: the trace has failed. */
bool ax_host_call_axes(ax_axes *out);
/* Results vary over the axes named, and over those that an operand varies over. */
AX_MUST_USE ax_status ax_host_call_spread(const ax_infer_args *args);
void ax_host_call_differs(const ax_differs_args *args);
/* eval: calls for one lane. Its results hold for all devices with its coordinates. */
typedef ax_status (*ax_host_call)(const ax_eval_args *args, uint32_t lane);
AX_MUST_USE ax_status ax_host_call_eval(const ax_eval_args *args, ax_host_call call);
/* Batching: calls for one batch element after the other; ordered calls are refused. */
void ax_host_call_batch(const ax_batch_args *args);
/* The function that an equation calls; NULL: none. Borrowed. */
ax_callback *ax_host_call_callback(const ax_eqn *eqn);
/* The same for any primitive with these parameters. */
void ax_batch_one_by_one(const ax_batch_args *args, const void *params);
ax_status ax_host_call_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
