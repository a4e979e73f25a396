/* What an operation has to read, write and compute, whoever runs it: counted once, for simulated time, profiles and bounds. */
#ifndef AX_PLAN_AMOUNT_H
#define AX_PLAN_AMOUNT_H

#include "plan/plan.h"

typedef struct ax_amount {
  double read, written; /* bytes; loads of one slot are of its elements once, however many there are */
  double flops;         /* operations on floats, a multiplication and an addition two; a conversion is none */
  ax_dtype dtype;       /* of these */
} ax_amount;

ax_amount ax_kernel_amount(const ax_loop_kernel *kernel);
/* Of one run of the operation on one device. What is neither a kernel nor a product: the bytes of all that it touches, and no
   operations. */
ax_amount ax_op_amount(const ax_plan *plan, const ax_op *op);

#endif
