/* Exchanges whose groups have members in several processes.

   Each process does the exchange for the results that its own devices have. What a member pushes goes to every process that has
   other members of the group and not this one: of a large sum, the share that the process adds. There the member is a ghost, and
   its contribution is put by whoever handles the message. Contributions are combined in the order of members, ghosts among them,
   so sums have the same bits however devices are spread.

   A ghost must not write into results that are still being read. The members of this process wait for the readers before they push
   (assemble/synchronise.c), so the first of them to come opens the exchange for this round: its contribution, and those of ghosts,
   may be put from then on. What comes earlier waits in the group's lists. Short contributions of several members go in one message
   (coalesced.h).

   A member here whose turn in a sum has not come leaves a copy in these lists too, if it is short, and goes on: else the devices of
   the last process would stand still until those of all before it have come. If all that it does next is to wait for the sum, it may
   as well wait for its turn. */
#ifndef AX_RUN_CROSSING_H
#define AX_RUN_CROSSING_H

#include "run/remote.h"

AX_MUST_USE ax_status ax_crossing_init(ax_remote *remote);
void ax_crossing_deinit(ax_remote *remote);
void ax_crossing_reset(ax_remote *remote);
/* Sends what is held back of rounds to which not all members here have come. For processes that wait, and for the end. AX_OUT_OF_MEMORY;
   AX_UNAVAILABLE. */
AX_MUST_USE ax_status ax_crossing_flush(ax_remote *remote);
/* For reports: calls `list` for each device of another process that has not pushed what a counter awaits in a round. count: how
   many are listed already; returns how many there are then. */
uint32_t ax_crossing_missing(ax_text *text, const ax_execution *run, uint32_t counter, uint64_t round,
                             void (*list)(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count), uint32_t count);
/* The devices here are through, but devices elsewhere never push what results miss: always AX_DEADLOCK, and says which. */
AX_MUST_USE ax_status ax_crossing_report(ax_remote *remote);
/* For reports of long waits: the exchanges whose results miss what devices elsewhere push. No thread handles messages meanwhile. */
void ax_crossing_list(const ax_remote *remote, ax_stall_report *report);
/* A PUSH of a member of this process. As ax_push_do. */
AX_MUST_USE ax_status ax_crossing_push(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation,
                                       const ax_instr *instr, uint32_t f, bool *parked);
/* What a member elsewhere has pushed. Consumes the message. */
AX_MUST_USE ax_status ax_crossing_take(ax_execution *run, ax_delivery *delivery);
/* The same at once, for a contribution whose time has come, and whose payload is there for the time of the call. On a run of one thread; if
   it fails, the run ends. Returns false: the message is to be taken. */
bool ax_crossing_take_here(ax_execution *run, const ax_delivery *delivery);

#endif
