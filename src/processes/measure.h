/* Measures messages between processes, by the transport that runs use: for the description of a machine (`axle devices`). */
#ifndef AX_PROCESSES_MEASURE_H
#define AX_PROCESSES_MEASURE_H

#include "machine/rates.h"
#include "processes/transport.h"

/* The sizes that are measured: without bytes to speak of; the longest short one, and twice as much, which some
   transports send at once too (transport.h); long ones; and one that no cache holds. */
enum { AX_MEASURED_SIZES = 6 };
extern const uint64_t ax_measured_sizes[AX_MEASURED_SIZES];

/* Seconds of a message, the least of several series. */
typedef struct ax_measured {
  double one_by_one[AX_MEASURED_SIZES];  /* a message goes round: each process sends it on when it has it */
  double all_at_once[AX_MEASURED_SIZES]; /* each sends to the next, and waits for what comes */
} ax_measured;
/* Measures among processes 0, stride, 2 stride, .., so many of them. All processes of the transport must call it, with the same numbers;
   they must not use it for anything else, before or meanwhile. Those that take no part return at once. What process 0 measures is in
   *out. AX_OUT_OF_MEMORY; what the transport says. */
AX_MUST_USE ax_status ax_messages_measure(ax_transport *transport, uint32_t processes, uint32_t stride, ax_measured *out);

/* The speeds that such times come to, of a link whose short messages have at most so many bytes. */
ax_link_rates ax_measured_rates(const ax_measured *of, double most_short);

#endif
