/* Messages between two devices while they run. A link is a queue with one sender and one receiver, and a counter of what was sent,
   on which the receiver waits: so the queue itself needs no lock, and a message that never comes is a deadlock like others. */
#ifndef AX_EXEC_MAIL_H
#define AX_EXEC_MAIL_H

#include "exec/scheduler.h"

/* What a SEND instruction does. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_mail_send(ax_execution *run, const ax_activation *activation, const ax_instr *instr);
/* What a RECEIVE does: *parked: the message is not there yet, and the activation is parked. AX_INVALID_ARGUMENT: it is of another
   dtype or shape. */
AX_MUST_USE ax_status ax_mail_receive(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation,
                                      const ax_instr *instr, uint32_t f, bool *parked);
/* After a run that went well. AX_INVALID_ARGUMENT: a message that nobody has received. */
AX_MUST_USE ax_status ax_mail_check(const ax_execution *run);

/* A link's queue: made with the run, emptied for the next call. */
AX_MUST_USE ax_status ax_mail_init(ax_execution *run);
void ax_mail_empty(ax_execution *run);
void ax_mail_deinit(ax_execution *run);

#endif
