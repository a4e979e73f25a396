/* Messages between two devices of a run. A link is a queue with one sender and one receiver, and a counter of messages sent, on
   which the receiver waits. So the queue needs no lock, and a message that never comes is a deadlock like any other. */
#ifndef AX_RUN_MAIL_H
#define AX_RUN_MAIL_H

#include "processes/transport.h"
#include "run/scheduler.h"

/* Performs a SEND instruction. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_mail_send(ax_execution *run, const ax_activation *activation, const ax_instr *instr);
/* Takes a message that a device of another process has sent to one of this process. Consumes it. */
AX_MUST_USE ax_status ax_mail_take(ax_execution *run, ax_delivery *delivery);
/* Performs a RECEIVE. *parked: the message is not there yet, and the activation is parked. AX_INVALID_ARGUMENT: the message has
   another dtype or shape. */
AX_MUST_USE ax_status ax_mail_receive(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation,
                                      const ax_instr *instr, uint32_t f, bool *parked);
/* Checks a run that went well. AX_INVALID_ARGUMENT: a message was never received. */
AX_MUST_USE ax_status ax_mail_check(const ax_execution *run);

/* In several processes: how many others have links to devices of this one. Each of these says, behind all its messages, that no
   more come; then messages that no device has received are found (ax_remote.senders counts them down). */
uint32_t ax_mail_senders(const ax_execution *run);
/* Says so to the others, once the devices of this process are through. */
AX_MUST_USE ax_status ax_mail_close(ax_execution *run);

/* Makes the queues of the links, once for a run; they are emptied for the next call. */
AX_MUST_USE ax_status ax_mail_init(ax_execution *run);
void ax_mail_empty(ax_execution *run);
void ax_mail_deinit(ax_execution *run);

#endif
