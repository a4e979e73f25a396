/* Parameters of scan, and its rules in scan_transform.c. */
#ifndef AX_CONTROL_SCAN_H
#define AX_CONTROL_SCAN_H

#include "ir/equation.h"
#include "prim/settle.h"

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

/* The type of a slice of an operand of this type. */
ax_type ax_scan_slice_type(const ax_type *type);

/* --- A scan being traced: ax_scan calls a function between opening and closing a round, a block of C stands there itself. --- */
typedef struct ax_scan_tracing {
  ax_scan_params params;   /* length, reverse, num_carry: given; the rest is that of the last round */
  ax_type *types;          /* of the body's operands; the carries' grow. The caller's */
  ax_body_options options; /* owner, part, function (its counts): given */
  ax_settling settling;
  ax_body body; /* of the last round: ax_body_deinit */
} ax_scan_tracing;
/* `site`: the same for one loop in each trace of the code around it, and different for other loops. False: the trace has failed. */
bool ax_scan_begin(ax_scan_tracing *t, ax_function site);
/* A round: begins the body's trace and gives its operands; ends it with its results. settling.changed: another is needed.
   ax_settle_end is called after the last. */
AX_MUST_USE ax_status ax_scan_open(ax_scan_tracing *t, ax_value **in);
AX_MUST_USE ax_status ax_scan_close(ax_scan_tracing *t, ax_value *outs);
/* in: the carries' starts, then the sliced operands; out: the carries, then the stacked results. */
void ax_scan_bind(const ax_scan_tracing *t, const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count);

#endif
