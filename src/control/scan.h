/* The inside of scan: its parameters, and the rules that stand in scan_transform.c. */
#ifndef AX_CONTROL_SCAN_H
#define AX_CONTROL_SCAN_H

#include "ir/prim.h"

typedef struct ax_scan_params {
  int64_t length;
  bool reverse;
  int64_t num_consts, num_carry;
  ax_program *body;
} ax_scan_params;

void ax_scan_jvp(const ax_jvp_args *args);
void ax_scan_linearize(const ax_jvp_args *args);
void ax_scan_transpose(const ax_transpose_args *args);
void ax_scan_batch(const ax_batch_args *args);
ax_status ax_scan_prune(const ax_prune_args *args);

#endif
