/* The time of a run, about: for searches, which ask for thousands. One device stands for all. A collective takes what its fastest
   algorithm takes alone, and those of one group go one after the other. Those of different groups go on at once, but links of one
   kind, as those to the network, carry the bytes of one after those of the other.
   Messages between two devices, outside of collectives, take no time. A loop is gone through three times, and its other rounds are
   taken to be like the third. */
#ifndef AX_SIM_ESTIMATE_H
#define AX_SIM_ESTIMATE_H

#include "axle/simulate.h"
#include "plan/plan.h"
#include "sim/kept_times.h"
#include "sim/work.h"

typedef struct ax_sim_estimate { /* seconds */
  double seconds;
  double computing, exchanging; /* parts of it: a device computes; it waits for a collective */
  double launching;             /* part of computing: beginning kernels, which takes the same however little they do */
} ax_sim_estimate;

/* Of work whose operations and transfers have their times already (algorithms.h). launch: seconds of beginning a kernel. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_work_estimate(const ax_sim_work *work, double launch, ax_sim_estimate *out);
/* times: of this machine's collectives, used and added to; NULL: none are kept. Statuses: as ax_simulate. AX_ABSENT: a plan with
   kernels, whose times data decide. */
AX_MUST_USE ax_status ax_plan_estimate(const ax_plan *plan, const ax_cluster *machine, ax_kept_times *times, ax_sim_estimate *out);

#endif
