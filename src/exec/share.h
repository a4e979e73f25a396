/* Work in parts that several threads do at once. */
#ifndef AX_EXEC_SHARE_H
#define AX_EXEC_SHARE_H

#include "exec/execution.h"

/* part(context, worker slot, 0 .. count - 1), each once, in any order, some of them on other threads; worker slot: of the thread
   that does the part. Returns when all are done, with the status of one that failed. */
AX_MUST_USE ax_status ax_share_parts(ax_execution *run, ax_worker_slot *worker_slot, ax_part_of_work *part, const void *context,
                                     uint32_t count);
/* Whether an instruction is to be done in parts that are shared. */
bool ax_share_worth(ax_execution *run, const ax_instr *instr);
/* Does parts of what others share. False: there are none. */
bool ax_share_help(ax_execution *run, ax_worker_slot *worker_slot);

#endif
