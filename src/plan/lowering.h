/* The part of lowering that needs the plan's own types: messages and steps, for the rules that add them, and what the files of
   lowering share. */
#ifndef AX_PLAN_LOWERING_H
#define AX_PLAN_LOWERING_H

#include "plan/lower.h"
#include "plan/plan.h"

/* --- For rules --- */

/* kind: AX_OP_SEND or AX_OP_RECEIVE. The message is copied. */
AX_MUST_USE ax_status ax_lower_message(ax_lower *lower, ax_op_kind kind, const ax_mail *message);
/* A step of a ragged exchange. `ragged` is the plan's and is not copied. */
AX_MUST_USE ax_status ax_lower_ragged(ax_lower *lower, ax_ragged *ragged, ax_ragged_step step);
/* A step of a kernel. `cores` is the plan's (ax_plan_keep_cores). */
AX_MUST_USE ax_status ax_lower_cores(ax_lower *lower, ax_cores *cores, ax_cores_step step);

/* --- For lower.c --- */

/* Adds the checks of an equation (check.c). Its operations are those of the block from `first` on. */
AX_MUST_USE ax_status ax_lower_checks(ax_lower *lower, const ax_eqn *eqn, uint32_t first, const uint32_t *in, const uint32_t *out);

/* --- For fragment.c --- */

/* Adds an operation, unchanged, at the end of the block at work. */
AX_MUST_USE ax_status ax_lower_append(ax_lower *lower, const ax_op *op);

#endif
