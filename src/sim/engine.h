/* Time goes on: devices walk through their work, transfers through their procedures, messages through links.

   Model
     - a device computes one operation after the other; a transfer is begun in no time, and goes on by itself;
     - a message is sent `overhead` seconds after it could be, one after the other of a chain; is on all links of its way at once,
     and there
       `latency` after the last of them has carried it;
     - a link carries what it gets in the order of coming; messages that come at the same instant share it, and are through
     together; on a torus those of one chain do, and those of the next chain come behind them. So who is
       first never depends on a device's number, and devices that are alike (place.h) stay alike.

   Time is counted in ticks, whole numbers of a power of two of seconds, as short as the run allows: so sums of times are exact, and
   what comes at the same instant does so however it was added up.

   Each image is gone through by itself, event by event. Where transfers come back to a state they have been in, but for the time
   and the number of steps, what lies between is repeated as often as it can be, at once (steady.c). */
#ifndef AX_SIM_ENGINE_H
#define AX_SIM_ENGINE_H

#include "sim/work.h"

typedef struct ax_sim_op_time {
  double start, end, busy, runs; /* busy and runs: of all images */
} ax_sim_op_time; /* seconds */

typedef struct ax_sim_engine_span {
  ax_simulated_span span; /* device: an image */
  uint32_t cause;         /* the span that it waited for; AX_NONE: none */
} ax_sim_engine_span;

/* Zero to start. */
typedef struct ax_sim_engine_result {
  double seconds, messages, events; /* messages: of the images */
  ax_sim_op_time *ops;                  /* by operation */
  double *link_bytes;               /* by link */
  ax_sim_engine_span *spans;            /* as they ended */
  uint32_t span_count, span_capacity, last; /* last: the span that ended last; AX_NONE */
  bool all_spans;
} ax_sim_engine_result;

/* Where a run is given up. */
typedef struct ax_sim_limits {
  double messages; /* at most so many that are simulated one by one */
  double
      all; /* that there are if none is repeated; where that is too many, a run is given up that repeats none in its first eighth; 0: not known */
  double seconds;  /* of simulated time: whoever compares runs need not know by how much one is slower; 0: none */
} ax_sim_limits;

/* AX_DEADLOCK: a device waits for a message that no device sends. repeats: repeated rounds are simulated once. AX_INVALID_ARGUMENT:
   more messages than the limit. A run that reaches the limit of seconds ends there: out->seconds is INFINITY. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_engine_run(const ax_sim_work *work, const ax_sim_place *place, ax_sim_limits limits, bool repeats,
                                        ax_sim_engine_result *out);
void ax_sim_engine_result_deinit(ax_sim_engine_result *result);

#endif
