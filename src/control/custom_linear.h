/* The linear map of tangents that custom_vjp leaves for transposition. */
#ifndef AX_CONTROL_CUSTOM_LINEAR_H
#define AX_CONTROL_CUSTOM_LINEAR_H

#include "prim/rebuild.h"

/* Binds the map whose transpose is `backward`: in: residuals, then tangents; out: tangents. */
void ax_custom_linear_bind(const ax_program *backward, uint32_t residuals, const ax_value *in, ax_value *out);
/* AX_ABSENT: the program still has such a map, which can be transposed but not run. The message names the function that it belongs
   to. */
AX_MUST_USE ax_status ax_custom_linear_check(const ax_program *program);
/* Batches (residuals.., cotangents..) -> (cotangents..), with inputs as in_dim says. want[k]: the batch dimension of result k; -1:
   the result is the sum over the batch, because its operand is the same for all members. */
AX_MUST_USE ax_status ax_custom_batch_backward(const ax_batch_args *args, const ax_program *backward, const int *in_dim,
                                               const int *want, ax_program **out);

#endif
