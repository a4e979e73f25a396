/* Parameters of cond, and its rules in cond_transform.c. */
#ifndef AX_CONTROL_COND_H
#define AX_CONTROL_COND_H

#include "ir/equation.h"
#include "prim/region.h"

typedef struct ax_cond_params {
  ax_programs branches;
} ax_cond_params;

void ax_cond_jvp(const ax_jvp_args *args);
void ax_cond_linearize(const ax_jvp_args *args);
void ax_cond_transpose(const ax_transpose_args *args);
void ax_cond_batch(const ax_batch_args *args);
ax_status ax_cond_prune(const ax_prune_args *args);

/* --- A cond being traced: each branch is opened and closed, in any order, between which a function is called or a block of C
   stands. --- */
typedef struct ax_cond_tracing {
  const char *owner;        /* for messages; static */
  const char *const *names; /* likewise, of the branches; NULL: by number */
  uint32_t branch_count, in_count, out_count;
  ax_type *in_types;
  ax_axis_set index_varying;
  ax_spread *out_spread; /* what results come to */
  ax_body *bodies;
  ax_value *captures; /* of all branches, in the order they were first met */
  uint32_t capture_count;
  uint32_t **place; /* by branch and capture of its own: which of these it is */
} ax_cond_tracing;
/* index: an s32 scalar; in: in_count operands. False: the trace has failed. */
bool ax_cond_begin(ax_cond_tracing *t, ax_value index, const ax_value *in);
AX_MUST_USE ax_status ax_cond_open(ax_cond_tracing *t, uint32_t b, ax_value **in);
AX_MUST_USE ax_status ax_cond_close(ax_cond_tracing *t, uint32_t b, ax_value *outs);
/* After all of them, whose results are of the same forms, dtypes and shapes: makes them alike. */
AX_MUST_USE ax_status ax_cond_join(ax_cond_tracing *t);
void ax_cond_bind(const ax_cond_tracing *t, ax_value index, const ax_value *in, ax_value *out);
void ax_cond_deinit(ax_cond_tracing *t);

#endif
