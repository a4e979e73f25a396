/* Rows of ragged exchanges between processes. A member cannot reach into another process for the rows that it takes, so the members
   there send them, once they have the tables that say which (ax_ragged_give):

     sender      tables received  ->  for each process with members of the group that is not its own: their rows ----+
     taker       tables received  ->  waits for each member elsewhere  <---------------------------------------------+
                                  ->  takes rows, in the order of members and slices: from memory, or from what came

   A message says where the rows of each member that the process has begin; then come the rows. What one member sends is kept in the
   order of rounds, which are the times that members have entered the region around the exchange. The rows of a round go when all
   members here have taken theirs. */
#ifndef AX_RUN_ARRIVALS_H
#define AX_RUN_ARRIVALS_H

#include "run/remote.h"

AX_MUST_USE ax_status ax_arrivals_init(ax_remote *remote);
void ax_arrivals_deinit(ax_remote *remote);
void ax_arrivals_reset(ax_remote *remote);
/* What a member elsewhere has sent. Consumes the message. */
AX_MUST_USE ax_status ax_arrivals_take(ax_execution *run, ax_delivery *delivery);

/* The functions below are for a TAKE whose exchange crosses to other processes. Sends the rows that members elsewhere take from
   this activation. Nothing, if another process has the first device that is this member. */
AX_MUST_USE ax_status ax_arrivals_send(ax_execution *run, const ax_activation *activation, const ax_instr *instr);
/* Says whether the rows of all members elsewhere have come. Otherwise the activation is parked. */
bool ax_arrivals_await(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                       uint32_t f);
/* Gives where the rows for this activation begin, by member; NULL for members of this process. They stay until _leave. */
void ax_arrivals_find(ax_execution *run, const ax_activation *activation, const ax_instr *instr, const char **rows);
void ax_arrivals_leave(ax_execution *run, const ax_activation *activation, const ax_instr *instr);

/* For reports: the device whose rows the parked activation f waits for. */
uint32_t ax_arrivals_missing(const ax_execution *run, uint32_t f);

#endif
