/* The timeline of a run: which instruction each thread did when, and for which device. It is kept for executables compiled with
   ax_compile_options.timeline; other runs do not look at the clock. */
#ifndef AX_RUN_TIMELINE_H
#define AX_RUN_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/exec.h"
#include "base/base.h"

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

/* A process of several whose timelines are put together. */
typedef struct ax_timeline_process {
  uint32_t number;
  const char *host;
  int64_t start, end; /* of the run in all processes, by this one's clock */
  int64_t within;     /* how far its times may be wrong */
} ax_timeline_process;
/* Puts the parts of all processes together. */
void ax_timeline_join(ax_text *text, ax_timeline_form form, uint32_t count, const char *const *parts);

int64_t ax_timeline_now(void);
/* Adds a span from `begin` until now. It is left out if the thread has too many already, or without memory. */
void ax_timeline_add(struct ax_execution *run, struct ax_worker_slot *worker_slot, uint32_t activation, uint32_t instr,
                     int64_t begin);
/* Called when the run is over: its spans become the latest timeline. */
void ax_timeline_keep(struct ax_runner *runner, struct ax_execution *run);

#endif
