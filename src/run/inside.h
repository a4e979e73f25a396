/* Says whether a thread is inside a run of a runtime: it makes the call that runs, performs a run that was started, or helps in
   one. Code of the user may be called there, by callbacks and by the release of objects when the run ends. That code must not wait
   for the run, which waits for it. */
#ifndef AX_RUN_INSIDE_H
#define AX_RUN_INSIDE_H

#include <stdbool.h>

#include "run/executor.h"

/* On the stack of one thread: the runs that it is inside of, the innermost first. */
typedef struct ax_inside {
  const ax_executor *executor; /* only its address is compared: its runtime may be gone when the run has ended */
  struct ax_inside *outer;
} ax_inside;

/* The thread is inside a run from here to its ax_inside_leave. */
void ax_inside_enter(ax_inside *inside, const ax_executor *executor);
void ax_inside_leave(const ax_inside *inside);
/* Says whether this thread is inside a run of the executor. */
bool ax_inside_run(const ax_executor *executor);
/* Says whether it is inside two, as a callback's own call is. */
bool ax_inside_nested(const ax_executor *executor);

#endif
