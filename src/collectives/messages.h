/* Messages between devices in StableHLO: send and recv that say their pairs of devices. */
#ifndef AX_COLLECTIVES_MESSAGES_H
#define AX_COLLECTIVES_MESSAGES_H

#include "hlo/read.h"
#include "ir/equation.h"

/* Read the operation at hand, without its tokens: a psend of each operand, a precv for each result. The channel is the link, so that
   messages over one channel alone follow each other. Errors: as ax_hlo_read_pairs; AX_INVALID_ARGUMENT: no channel. */
AX_MUST_USE ax_status ax_send_read(const ax_hlo_read_args *args);
AX_MUST_USE ax_status ax_recv_read(const ax_hlo_read_args *args);
/* The same between members of these axes, whatever pairs the operation says. */
AX_MUST_USE ax_status ax_send_along(const ax_hlo_read_args *args, const char *names, const ax_pairs *pairs);
AX_MUST_USE ax_status ax_recv_along(const ax_hlo_read_args *args, const char *names, const ax_pairs *pairs);

#endif
