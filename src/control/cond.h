/* The inside of cond: its parameters, and the rules that stand in cond_transform.c. */
#ifndef AX_CONTROL_COND_H
#define AX_CONTROL_COND_H

#include "ir/prim.h"

typedef struct ax_cond_params {
  ax_programs branches;
} ax_cond_params;

void ax_cond_jvp(const ax_jvp_args *args);
void ax_cond_linearize(const ax_jvp_args *args);
void ax_cond_transpose(const ax_transpose_args *args);
void ax_cond_batch(const ax_batch_args *args);
ax_status ax_cond_prune(const ax_prune_args *args);

#endif
