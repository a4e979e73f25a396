/* The parts of a runtime that runs need: threads, memory, callbacks, and the scheduling policy of activations. */
#ifndef AX_RUN_EXECUTOR_H
#define AX_RUN_EXECUTOR_H

#include "axle/exec.h"
#include "ir/callback.h"
#include "processes/processes.h"
#include "run/policy.h"
#include "run/pool.h"
#include "run/workers.h"

typedef struct ax_executor {
  const ax_runtime_options *options;             /* of the runtime */
  const ax_scheduling_policy *scheduling_policy; /* for runs on one thread, in place of that of the options; NULL. For tests and
                                                    checkers */
  ax_hooks hooks;                                /* what a run calls of its host */
  ax_workers *workers;
  ax_processes *processes;                       /* over which meshes are spread; NULL: all devices are of this process */
  ax_pool pool;
} ax_executor;

#endif
