/* One trial: a program laid over a mesh; the memory of its run is counted, and the run simulated on the machine. */
#ifndef AX_PLANNER_TRIAL_H
#define AX_PLANNER_TRIAL_H

#include "axle/planner.h"
#include "sim/kept_times.h"

typedef struct ax_trial {
  double bytes;   /* of memory that a device's run takes, arguments included */
  double arguments, results; /* parts of that; of results those that do not lie in a donated argument's memory */
  double seconds; /* INFINITY: it was not simulated */
  double computing, exchanging; /* seconds on the critical path: of computing, and of waiting for collectives */
  double launching;             /* part of computing, where it is estimated: beginning kernels; otherwise 0 */
} ax_trial;

typedef struct ax_trial_options {
  const ax_cluster *machine;
  ax_runtime *runtime;
  ax_kept_times *times; /* of collectives on that machine; NULL: none are kept */
  ax_args donated; /* arguments whose memory results may take */
  double most;     /* bytes: a program that takes more is not simulated */
  bool exact;      /* as ax_simulate, if that does not take long; otherwise about (sim/estimate.h) */
  double end;      /* ax_seconds: when it is given up between its steps; 0: never */
} ax_trial_options;

/* specs: as ax_program_with_shardings takes them. AX_UNAVAILABLE: it was given up. */
AX_MUST_USE ax_status ax_trial_run(ax_program *program, const ax_mesh *mesh, const char *specs, const ax_trial_options *options,
                                   ax_trial *out);

#endif
