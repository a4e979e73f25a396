/* The map of tangents that custom_vjp leaves to be transposed. */
#ifndef AX_CONTROL_CUSTOM_LINEAR_H
#define AX_CONTROL_CUSTOM_LINEAR_H

#include "prim/rebuild.h"

/* Binds the map whose transpose is `backward`: in: residuals, then tangents; out: tangents. */
void ax_custom_linear_bind(const ax_program *backward, uint32_t residuals, const ax_value *in, ax_value *out);
/* AX_ABSENT: the program has such a map, left to be run and not to be transposed. Names the function that it is of. */
AX_MUST_USE ax_status ax_custom_linear_check(const ax_program *program);
/* (residuals.., cotangents..) -> (cotangents..) batched: inputs as in_dim says; want[k]: where result k must have its batch
   dimension, or -1: it is the sum over the batch, for what it belongs to is in all members. */
AX_MUST_USE ax_status ax_custom_batch_backward(const ax_batch_args *args, const ax_program *backward, const int *in_dim,
                                               const int *want, ax_program **out);

#endif
