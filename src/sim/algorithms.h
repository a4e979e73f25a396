/* Chooses the algorithm of each collective, and with it how far devices are alike. */
#ifndef AX_SIM_ALGORITHMS_H
#define AX_SIM_ALGORITHMS_H

#include "sim/engine.h"
#include "sim/kept_times.h"

/* Makes the procedures of all transfers and posts: by options->algorithm those that it can do; the others, and all of them for
   AX_ALGORITHM_BEST, by the fastest algorithm. The choice is the same whether every device is simulated or not. The place may be
   folded differently afterwards. known: zero to start; what comes of the choice, if that was tried out (`ops` NULL: it was not).
   AX_OUT_OF_MEMORY, AX_DEADLOCK. */
AX_MUST_USE ax_status ax_algorithms_choose(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options,
                                           ax_sim_engine_result *known);

/* No device is an image of another. */
void ax_sim_work_unfold(ax_sim_place *place);
/* Folds the place as far as all transfers allow. Returns how many messages that makes, about. */
double ax_sim_work_fold(const ax_sim_work *work, ax_sim_place *place);

/* Messages of all transfers, each once, if none were repeated. */
double ax_sim_work_messages(const ax_sim_work *work, const ax_sim_place *place);

/* Adds to an error of the algorithm that is asked for which others would make few messages, if there are any. */
AX_MUST_USE ax_status ax_algorithms_refuse(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options);

/* Times each collective by the algorithm that is fastest alone, without a trial; procedures are left unmade. times: what is known, and
   gets what is not; NULL: none are kept. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_algorithms_time_alone(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options,
                                               ax_kept_times *times);

#endif
