/* Reference evaluation: every device's value of every equation, in lock step, by the primitives' eval rules. Slow and plain:
   what the fast path is compared with. */
#ifndef AX_XFORM_EVALUATE_H
#define AX_XFORM_EVALUATE_H

#include "ir/program.h"

/* Dense tensors on the heap, data included; reference counts are not needed: each has one owner. */
AX_MUST_USE ax_status ax_tensor_create(const ax_type *type, ax_tensor **out);
void ax_tensor_release(ax_tensor *tensor); /* NULL is allowed */
AX_MUST_USE ax_status ax_tensor_copy(const ax_tensor *tensor, ax_tensor **out);

/* A program without axes, on one lane. out: out_count tensors owned by the caller; all NULL on failure. */
AX_MUST_USE ax_status ax_evaluate(const ax_program *program, ax_tensor *const *in, ax_tensor **out);

/* For region rules: runs `program` on `lanes` devices. in[operand * lanes + lane] are borrowed; out[result * lanes + lane]
   are new tensors owned by the caller (all NULL on failure). AX_DEADLOCK: a collective that only some of its group reach. */
typedef struct ax_evaluator ax_evaluator;
AX_MUST_USE ax_status ax_evaluate_lanes(ax_evaluator *driver, const ax_program *program, uint32_t lanes,
                                        const int64_t *device, ax_tensor *const *in, ax_tensor **out);

#endif
