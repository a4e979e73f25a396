/* Work in parts that several threads do at once. */
#ifndef AX_RUN_SHARE_H
#define AX_RUN_SHARE_H

#include "run/execution.h"

/* Calls part(context, worker slot, i) once for each i below the count, in any order, some of them on other threads; the worker
   slot is that of the thread that does the part. Returns when all are done, with the status of one that failed. */
AX_MUST_USE ax_status ax_share_parts(ax_execution *run, ax_worker_slot *worker_slot, ax_part_of_work *part, const void *context,
                                     uint32_t count);
/* Says whether an instruction is worth doing in parts that other threads share. */
bool ax_share_worth(ax_execution *run, const ax_instr *instr);
/* Does parts of work that other threads share. False: there are none. */
bool ax_share_help(ax_execution *run, ax_worker_slot *worker_slot);

#endif
