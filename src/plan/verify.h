/* The state of the verifier while it walks over a plan, and checks that the rules of several kinds of operations share (plan/op.h).
   All return AX_INTERNAL with a message about the operation if an invariant does not hold. */
#ifndef AX_PLAN_VERIFY_H
#define AX_PLAN_VERIFY_H

#include "plan/plan.h"

typedef struct ax_plan_verifier {
  const ax_plan *plan;
  ax_arena arena;
  bool *written;      /* by allocation */
  bool *open;         /* by loop: being walked */
  int64_t *trips;     /* by loop: -1 for while loops, -2 for loops that are not in the plan, -3 for ids that two loops have */
  uint8_t *exchanges; /* by exchange: 1 started, 2 done */
  ax_status status;   /* of a visit */
} ax_plan_verifier;

/* There is such a buffer. */
AX_MUST_USE ax_status ax_verify_buffer(const ax_plan_verifier *v, uint32_t buffer);
/* A strided box of elements lies inside a buffer. */
AX_MUST_USE ax_status ax_verify_box(const ax_plan_verifier *v, uint32_t buffer, int64_t offset, uint32_t rank, const int64_t *dims,
                                    const int64_t *strides);
AX_MUST_USE ax_status ax_verify_scalar(const ax_plan_verifier *v, uint32_t buffer, ax_dtype dtype);
/* The operation may read or write the buffer here: views are used inside their loop, and values are written before they are read.
   Marks a buffer that is written as such. */
AX_MUST_USE ax_status ax_verify_touch(ax_plan_verifier *v, uint32_t buffer, bool writes);
/* All operations of a block, in order. */
AX_MUST_USE ax_status ax_verify_block(ax_plan_verifier *v, const ax_block *block);
/* The buffers of an operation, then the blocks inside it. */
AX_MUST_USE ax_status ax_verify_inside(ax_plan_verifier *v, ax_op *op);

#endif
