/* Reference evaluation: every device's value of every equation, in lock step, by the primitives' eval rules. It is slow and simple;
   tests compare compiled programs with it. */
#ifndef AX_XFORM_EVALUATE_H
#define AX_XFORM_EVALUATE_H

#include "axle/exec.h"
#include "prim/region.h" /* ax_tensor_*, ax_evaluate_lanes: what eval rules of regions call */

/* Evaluates a program without axes, which has one lane (a lane is one device's share of the evaluation). out: out_count tensors
   owned by the caller; all NULL on failure. */
AX_MUST_USE ax_status ax_evaluate(const ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* The same for programs that call the host. hooks: the functions that callbacks name, and one that receives printed text. */
AX_MUST_USE ax_status ax_evaluate_on(const ax_hooks *hooks, const ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* The same with subnormal numbers kept or flushed; the two above take the default. AX_INVALID_ARGUMENT: what ax_subnormals_flush
   says. */
AX_MUST_USE ax_status ax_evaluate_with(ax_subnormals subnormals, const ax_hooks *hooks, const ax_program *program,
                                       ax_tensor *const *in, ax_tensor **out);

#endif
