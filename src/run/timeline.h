/* The timeline of a run: which instruction each thread did when, and for which device. It is kept for executables compiled with
   ax_compile_options.timeline; other runs do not look at the clock. */
#ifndef AX_RUN_TIMELINE_H
#define AX_RUN_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

struct ax_execution;
struct ax_runner;
struct ax_worker_slot;

typedef struct ax_span { /* an instruction that computed or moved something */
  int64_t begin, end;    /* nanoseconds of the monotonic clock */
  uint32_t activation, instr, worker_slot;
} ax_span;

/* For the run that ended last. */
typedef struct ax_timeline {
  ax_span *spans; /* in the order in which they began; NULL: no run has ended */
  uint32_t count;
  bool whole;     /* no span was left out */
} ax_timeline;

int64_t ax_timeline_now(void);
/* Adds a span from `begin` until now. It is left out if the thread has too many already, or without memory. */
void ax_timeline_add(struct ax_execution *run, struct ax_worker_slot *worker_slot, uint32_t activation, uint32_t instr,
                     int64_t begin);
/* Called when the run is over: its spans become the latest timeline. */
void ax_timeline_keep(struct ax_runner *runner, struct ax_execution *run);

#endif
