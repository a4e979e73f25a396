/* The timeline of a run: what each thread did, and for which device, from when to when. Kept for executables compiled with
   ax_compile_options.timeline; the others do not look at the clock. */
#ifndef AX_EXEC_TIMELINE_H
#define AX_EXEC_TIMELINE_H

#include "exec/execution.h"

typedef struct ax_span { /* an instruction that computed or moved something */
  int64_t begin, end;    /* nanoseconds of the monotonic clock */
  uint32_t activation, instr, worker_slot;
} ax_span;

/* Of the run that ended last. */
typedef struct ax_timeline {
  ax_span *spans; /* as they began */
  uint32_t count;
  bool whole;     /* none was left out */
} ax_timeline;

int64_t ax_timeline_now(void);
/* From `begin` until now. Beyond so many a thread, and without memory, it is left out. */
void ax_timeline_add(ax_execution *run, ax_worker_slot *worker_slot, uint32_t activation, uint32_t instr, int64_t begin);
/* The run is over: its spans are the executable's latest. */
void ax_timeline_keep(ax_execution *run);

#endif
