/* The bytes that an operation reads and writes and the operations that it computes, on whatever it runs. Simulated time,
   profiles and bounds share these numbers. */
#ifndef AX_PLAN_AMOUNT_H
#define AX_PLAN_AMOUNT_H

#include "plan/plan.h"

typedef struct ax_amount {
  double read, written; /* bytes; a slot's elements count once, however many loads touch them */
  double flops;         /* operations on floats; a fused multiply-add is two, a conversion none */
  ax_dtype dtype;       /* of the flops */
  double product;       /* those of them that products take */
  /* Nanoseconds of all but products' flops, on one core of the kind that times of plans were fitted on, roughly, the bytes at hand;
     and those of them that divisions and roots take, of which processors make more or fewer beside what else they compute. */
  double core_ns, dividing_ns;
  double turning_ns; /* and those of moving lines of caches in another order than as they lie, which a faster core does not shorten */
  double chain_ns;   /* of one element of a kernel, from its loads to its stores: operations that take each other's results. Roughly */
} ax_amount;

/* Seconds of core_ns on a core that takes so many times as long to compute, and to divide. */
static inline double ax_amount_seconds(const ax_amount *a, double computing, double dividing) {
  return 1e-9 * ((a->core_ns - a->dividing_ns - a->turning_ns) * computing + a->dividing_ns * dividing + a->turning_ns);
}

ax_amount ax_kernel_amount(const ax_loop_kernel *kernel);
/* One run of the operation on one device. Kinds that have no rule for it: the bytes of all buffers that they touch,
   and no flops. */
ax_amount ax_op_amount(const ax_plan *plan, const ax_op *op);
ax_amount ax_op_touched(const ax_plan *plan, const ax_op *op); /* the bytes alone, of all buffers that it touches */

#endif
