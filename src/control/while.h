/* The inside of while: its parameters, and the rules that stand in while_transform.c. */
#ifndef AX_CONTROL_WHILE_H
#define AX_CONTROL_WHILE_H

#include "ir/prim.h"

typedef struct ax_while_params {
  ax_program *cond;
  int64_t cond_nconsts;
  ax_program *body;
  int64_t body_nconsts;
} ax_while_params;

void ax_while_jvp(const ax_jvp_args *args);
void ax_while_linearize(const ax_jvp_args *args);
void ax_while_transpose(const ax_transpose_args *args);
void ax_while_batch(const ax_batch_args *args);
ax_status ax_while_prune(const ax_prune_args *args);

#endif
