/* The runs of one compiled program. A run that is over is kept for a later call, with its activations, counters and memory. */
#ifndef AX_RUN_RUNNER_H
#define AX_RUN_RUNNER_H

#include <pthread.h>

#include "code/compiled.h"
#include "run/executor.h"
#include "run/parts.h"
#include "run/timeline.h"

enum { AX_IDLE_PLACES = 8 };
typedef struct ax_idle {
  _Alignas(64) _Atomic(struct ax_execution *) run; /* NULL: none */
} ax_idle;

typedef struct ax_runner {
  const ax_compiled *compiled;
  ax_executor *executor;
  ax_idle idle[AX_IDLE_PLACES]; /* runs kept for later calls; a thread looks first at a place of its own */
  pthread_mutex_t lock;         /* guards the following fields */
  struct ax_execution *more_idle;
  ax_timeline timeline; /* of the latest run, if compiled->timed */
} ax_runner;

/* Borrows both, which must outlive it. */
void ax_runner_init(ax_runner *runner, const ax_compiled *compiled, ax_executor *executor);
void ax_runner_deinit(ax_runner *runner);

struct ax_doing; /* processes/together.h */

/* Runs the program (run/executor.c). inputs, outputs: by those of the plan. number: as in ax_job. doing: for a program in several
   processes; else it is not looked at. options: for its callbacks; NULL: none.
   *began: a device may have written memory, whatever the status. */
AX_MUST_USE ax_status ax_execute(ax_runner *runner, ax_parts *const *inputs, ax_parts *const *outputs, uint64_t number,
                                 const struct ax_doing *doing, const ax_run_options *options, bool *began);

/* The timeline of the run that ended last as text; process: NULL, or which of several it is a part of. AX_INVALID_ARGUMENT: none is kept, there was no run, or no such form. The
   caller frees *out. */
AX_MUST_USE ax_status ax_runner_timeline(ax_runner *runner, ax_timeline_form form, const ax_timeline_process *process, char **out);
/* Tells its spans, with the runner's lock held. AX_INVALID_ARGUMENT: as above, except the form. AX_OUT_OF_MEMORY: not all were told. */
AX_MUST_USE ax_status ax_runner_visit_timeline(ax_runner *runner, ax_span_visitor see, void *context);
/* When its first span began and its last ended, by ax_timeline_now. False: there is none. */
bool ax_runner_timeline_reach(ax_runner *runner, int64_t *begin, int64_t *end);

#endif
