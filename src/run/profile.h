/* The time of a run, instruction by instruction. */
#ifndef AX_RUN_PROFILE_H
#define AX_RUN_PROFILE_H

#include "run/runner.h"

typedef struct ax_profile_row {
  const ax_op *op;  /* operation of the plan */
  uint32_t calls;   /* in one run, by all devices */
  double seconds;   /* during which a thread worked on it */
} ax_profile_row;

/* Gives a row for each instruction of a program compiled with ax_compile_options.timeline, for the run that ended last.
   *rows is the caller's: ax_free. AX_INVALID_ARGUMENT: no timeline, or no run. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_runner_profile(ax_runner *runner, ax_profile_row **rows, uint32_t *count);

#endif
