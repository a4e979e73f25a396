/* Declarations shared by kernel_call's files. */
#ifndef AX_KERNEL_KERNEL_CALL_H
#define AX_KERNEL_KERNEL_CALL_H

#include "kernel/kernel.h"
#include "prim/rules.h"

/* Axes of devices along which bodies do different things: those they name, and those over which they signal or copy.
   (kernel_call.c) */
ax_axis_set ax_kernel_named(const ax_kernel_params *params);

/* --- Rules --- */
/* kernel_call_lower.c */
AX_MUST_USE ax_status ax_kernel_call_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* kernel_transform.c: by the kernel as a plain program; lower_plain where that is what runs, with or without points side by side. */
AX_MUST_USE ax_status ax_kernel_call_eval(const ax_eval_args *args);
void ax_kernel_call_jvp(const ax_jvp_args *args);
void ax_kernel_call_linearize(const ax_jvp_args *args);
void ax_kernel_call_transpose(const ax_transpose_args *args);
typedef enum ax_plain_manner {
  AX_PLAIN_IN_ORDER, /* one point after the other */
  AX_PLAIN_FAST,
  AX_PLAIN_CHECKED   /* fast; out has one more, whether it is right (`checked`, discharge.h) */
} ax_plain_manner;
AX_MUST_USE ax_status ax_kernel_call_lower_plain(ax_lower *lower, const ax_eqn *eqn, ax_plain_manner manner, const uint32_t *in,
                                                 uint32_t *out);
AX_MUST_USE ax_status ax_kernel_call_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* kernel_batch.c */
void ax_kernel_call_batch(const ax_batch_args *args);
/* kernel_prune.c */
AX_MUST_USE ax_status ax_kernel_call_prune(const ax_prune_args *args);
/* kernel_rename.c */
AX_MUST_USE ax_status ax_kernel_call_rename(const ax_rename_args *args, ax_program **out);

#endif
