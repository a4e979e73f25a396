/* Which algorithm each collective takes, and how far devices are alike then. */
#ifndef AX_SIM_ALGORITHMS_H
#define AX_SIM_ALGORITHMS_H

#include "sim/engine.h"

/* Makes the procedures of all transfers and posts: by options->algorithm what that does; the rest, and all of AX_ALGORITHM_BEST, as
   takes the least time. The choice is the same whether every device is gone through or not. The place is left folded in some way.
   AX_OUT_OF_MEMORY, AX_DEADLOCK. */
AX_MUST_USE ax_status ax_algorithms_choose(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options);

/* No device is an image of another. */
void ax_sim_work_unfold(ax_sim_place *place);
/* Folds the place as far as all transfers allow. Returns how many messages that makes, about. */
double ax_sim_work_fold(const ax_sim_work *work, ax_sim_place *place);

#endif
