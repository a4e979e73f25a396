/* Parameters of while, and its rules in while_transform.c. */
#ifndef AX_CONTROL_WHILE_H
#define AX_CONTROL_WHILE_H

#include "ir/equation.h"
#include "prim/settle.h"

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

/* --- A while being traced, as ax_scan_tracing. A round: the condition is opened and closed, then the body. --- */
typedef struct ax_while_tracing {
  const char *owner, *part; /* for messages; static */
  uint32_t count;           /* of the carries */
  ax_type *types;           /* of the carries; they grow. The caller's */
  ax_settling settling;
  ax_body cond, body; /* of the last round */
} ax_while_tracing;
bool ax_while_begin(ax_while_tracing *t, ax_function site);
AX_MUST_USE ax_status ax_while_open_test(ax_while_tracing *t, ax_value **in);
AX_MUST_USE ax_status ax_while_close_test(ax_while_tracing *t, ax_value *outs);
AX_MUST_USE ax_status ax_while_open(ax_while_tracing *t, ax_value **in);
AX_MUST_USE ax_status ax_while_close(ax_while_tracing *t, ax_value *outs);
void ax_while_bind(const ax_while_tracing *t, const ax_value *in, ax_value *out);
void ax_while_deinit(ax_while_tracing *t);

#endif
