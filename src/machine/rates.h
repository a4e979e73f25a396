/* Times that follow from speeds: the seconds in which some threads together move bytes and compute. Bounds and estimates for people
   are made of measured speeds. Plans are made of speeds that are given or assumed, since two measurements differ and a plan would
   too. */
#ifndef AX_MACHINE_RATES_H
#define AX_MACHINE_RATES_H

#include "axle/type.h"
#include "machine/machine.h"

/* The most bytes that a message carries at once between processes of one host, and of two; a longer one is fetched. */
enum { AX_HOST_SHORT = 16 << 10, AX_NETWORK_SHORT = 8 << 10 };

/* Messages between two processes. */
typedef struct ax_link_rates {
  double message, handshake;      /* seconds of a message without bytes; that a long one takes besides its bytes */
  double message_bytes, transfer; /* bytes a second of short messages, and of long ones */
  double most_short;              /* bytes of a short one */
} ax_link_rates;

typedef struct ax_rates {
  double read, write;              /* bytes a second, from memory and to it */
  double near, shared;             /* bytes a second, from second caches and from last ones */
  double near_bytes, shared_bytes; /* what the threads' caches of these levels hold */
  double flops[AX_DTYPE_COUNT];    /* operations a second, by the dtype of their operands */
  /* How many times as long this machine takes as the one on which times of plans were fitted (all facts assumed): to compute, and
     to divide and take roots, and to hand work from one core to another, which goes by lines that they exchange. */
  double computing, dividing, sharing;
  double exchange; /* seconds until a line that one core wrote is read by another */
  ax_link_rates host, network; /* between processes of one host, and of two */
} ax_rates;

/* The rates of so many threads on a machine whose facts are known, at most one a core. */
ax_rates ax_rates_of(const ax_description *machine, uint32_t threads);
/* The same on this machine, as measured: takes 0.1 s at the first call, unless speeds are kept (kept_speeds.h) or given. */
ax_rates ax_rates_measured(uint32_t threads);
/* The rates of one thread, for plans: nothing is measured. They are assumed while plans of described machines are made
   (ax_caches_assume). The pointer is valid for the process. */
const ax_rates *ax_rates_planned(void);
void ax_rates_forget(void); /* see ax_machine_pretend */

/* Seconds to read and write so many bytes, which are touched together: at the speed of the level that holds them all. A cache is
   written no faster than it is read. */
double ax_rates_moving(const ax_rates *rates, double read, double written);
double ax_link_seconds(const ax_link_rates *link, double bytes); /* of one message */
double ax_rates_computing(const ax_rates *rates, double flops, ax_dtype dtype); /* seconds */

#endif
