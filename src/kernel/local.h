/* Shared by the primitives that stand in bodies of kernels. They are a core's own steps, which the machine runs (machine.c), so
   they have no rules to run, derive, batch or lower them by themselves. Also the checks of their operands. */
#ifndef AX_KERNEL_LOCAL_H
#define AX_KERNEL_LOCAL_H

#include "ir/prim.h"
#include "kernel/step.h"
#include "prim/rules.h"

/* --- Rules --- */
enum { AX_KERNEL_STEP = AX_EFFECT_STATE | AX_EFFECT_ORDER }; /* the effects of all that touches memory or waits */
ax_status ax_step_spread(const ax_infer_args *args); /* nothing in a kernel is typed to spread */
ax_status ax_step_eval(const ax_eval_args *args);    /* AX_INVALID_ARGUMENT: "ref_load stands outside of a kernel" */
void ax_step_jvp(const ax_jvp_args *args);           /* and so on: AX_ABSENT, as these are the kernel's to answer */
void ax_step_transpose(const ax_transpose_args *args);
void ax_step_batch(const ax_batch_args *args);
ax_status ax_step_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
#define AX_STEP_RULES                                                                                            \
  .kind = AX_LOCAL, .memory = true, .spread = ax_step_spread, .eval = ax_step_eval, .differs = ax_differs_union, \
  .jvp = ax_step_jvp, .linearize = ax_step_jvp, .transpose = ax_step_transpose, .batch = ax_step_batch,          \
  .simplify = ax_simplify_nothing, .shard = ax_shard_whole, .lower = ax_step_lower, .hlo = ax_absent_hlo
/* Likewise for steps that hold a body. */
#define AX_STEP_REGION_RULES                                                                                      \
  .kind = AX_REGION, .memory = true, .in_count = -1, .out_count = -1, .count_outs = count_outs,                   \
  .spread = ax_step_spread, .eval = ax_step_eval, .jvp = ax_step_jvp, .linearize = ax_step_jvp,                   \
  .transpose = ax_step_transpose, .batch = ax_step_batch, .simplify = ax_simplify_nothing,                        \
  .prune = ax_prune_nothing, .shard = ax_shard_whole, .lower = ax_step_lower, .hlo = ax_absent_hlo

/* --- infer: operand i is what it is to be. AX_INVALID_ARGUMENT: "operand 1 is f32[2], where a semaphore is needed". --- */
AX_MUST_USE ax_status ax_step_count(const ax_infer_args *args, uint32_t from, uint32_t to); /* how many operands there may be */
AX_MUST_USE ax_status ax_step_memory(const ax_infer_args *args, uint32_t i);                /* memory of any form */
AX_MUST_USE ax_status ax_step_ref(const ax_infer_args *args, uint32_t i);
AX_MUST_USE ax_status ax_step_one(const ax_infer_args *args, uint32_t i, ax_form form); /* of rank 0: one semaphore */
AX_MUST_USE ax_status ax_step_scalar(const ax_infer_args *args, uint32_t i, ax_dtype dtype, const char *what);
/* An array of this dtype and the shape of `like`. */
AX_MUST_USE ax_status ax_step_array(const ax_infer_args *args, uint32_t i, ax_dtype dtype, const ax_type *like, const char *what);
/* `to` and its coordinates, which are the operands from `first` on. */
AX_MUST_USE ax_status ax_step_core(const ax_infer_args *args, const ax_core_params *to, uint32_t first);

/* --- The functions --- */
/* The type of an operand that is memory; AX_NO_DTYPE, and the trace has failed, for anything else. */
ax_type ax_memory_type(const char *function, ax_value memory);
/* `to` as parameters, its coordinates appended to in[*count]; false: the trace has failed. There is room for AX_MAX_AXES. */
bool ax_take_core(const char *function, const ax_target_core *to, ax_core_params *out, ax_value *in, uint32_t *count);
/* A value of the ref's shape and dtype, of a number or a scalar of the dtype too; poison: the trace has failed. */
ax_value ax_of_shape(const char *function, ax_value value, const ax_type *ref);
/* A step without results. */
void ax_step_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t count);

#endif
