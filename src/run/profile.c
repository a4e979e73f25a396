/* See profile.h. */
#include "run/profile.h"

typedef struct covered { /* time covered by an instruction's spans so far */
  int64_t until;
  uint32_t activation; /* of the latest span */
} covered;

/* Spans are in the order in which they began, so the time covered by an instruction's earlier spans ends with the latest of
   their ends. Threads that help with a call have spans of their own, for the same activation and at the same time. */
static void add_spans(const ax_timeline *timeline, ax_profile_row *rows, covered *by) {
  for (uint32_t i = 0; i < timeline->count; i++) {
    const ax_span *span = &timeline->spans[i];
    covered *c = &by[span->instr];
    ax_profile_row *row = &rows[span->instr];
    int64_t from = span->begin > c->until ? span->begin : c->until;
    if (row->calls == 0 || span->begin >= c->until || span->activation != c->activation) row->calls++;
    c->activation = span->activation;
    if (span->end <= from) continue;
    row->seconds += 1e-9 * (double)(span->end - from);
    c->until = span->end;
  }
}

ax_status ax_runner_profile(ax_runner *runner, ax_profile_row **rows, uint32_t *count) {
  *rows = NULL;
  *count = 0;
  const ax_compiled *c = runner->compiled;
  if (!c->timed) return ax_error(AX_INVALID_ARGUMENT, "profile: the executable was compiled without a timeline");
  const uint32_t instrs =
      c->codes[0].instr_count; /* the END is no row; a program that computes nothing has no other instruction, and notes no run */
  ax_profile_row *made = ax_calloc(instrs, sizeof made[0]);
  covered *by = ax_calloc(instrs, sizeof by[0]);
  ax_status status = made != NULL && by != NULL ? AX_OK : ax_out_of_memory(instrs * sizeof made[0]);
  if (status == AX_OK) {
    pthread_mutex_lock(&runner->lock);
    if (runner->timeline.spans == NULL && instrs > 1) status = ax_error(AX_INVALID_ARGUMENT, "profile: there was no run yet");
    else add_spans(&runner->timeline, made, by);
    pthread_mutex_unlock(&runner->lock);
  }
  for (uint32_t i = 0; status == AX_OK && i < instrs; i++) made[i].op = c->ops[i];
  ax_free(by);
  if (status != AX_OK) {
    ax_free(made);
    return status;
  }
  *rows = made;
  *count = instrs;
  return AX_OK;
}
