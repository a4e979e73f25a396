/* Whether a thread is inside a run of a runtime: it makes the call that runs, performs a run that was started, or helps in one. A
   user's code may be called there, by callbacks and by what is released as the run ends, and must not be made to wait for the run
   that waits for it. */
#ifndef AX_EXEC_INSIDE_H
#define AX_EXEC_INSIDE_H

#include <stdbool.h>

#include "axle/exec.h"

/* Of one thread, on its stack: the runs that it is inside of, the innermost first. */
typedef struct ax_inside {
  const ax_runtime *runtime; /* compared alone: it may be gone when the run has ended */
  struct ax_inside *outer;
} ax_inside;

/* From here to the same thread's ax_inside_leave. */
void ax_inside_enter(ax_inside *inside, const ax_runtime *runtime);
void ax_inside_leave(const ax_inside *inside);
/* This thread is inside a run of the runtime. */
bool ax_inside_run(const ax_runtime *runtime);

#endif
