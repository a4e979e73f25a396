#include "machine/rates.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "machine/caches.h"

static double value(const ax_description *m, ax_fact fact) { return m->facts[fact].value; }

/* How many times as long it takes as on the machine of which nothing is known. */
static double times_as_long(const ax_description *m, ax_fact fact) { return ax_machine_record(fact)->assumed / value(m, fact); }

/* Integers compute as fast as floats of their size; those of 8 bits in products four at a time, as the fact says. */
static ax_fact fact_of(ax_dtype dtype) {
  switch ((int)dtype) {
    case AX_S8:
    case AX_U8: return AX_FACT_S8;
    case AX_BF16: return AX_FACT_BF16;
    case AX_F16: return AX_FACT_F16;
    case AX_S64:
    case AX_U64:
    case AX_F64: return AX_FACT_F64;
    default: return AX_FACT_F32;
  }
}

/* Threads beyond the cores that the process may run on share a core's units. */
ax_rates ax_rates_of(const ax_description *m, uint32_t threads) {
  const ax_caches caches = ax_caches_of(m);
  const ax_known held = m->facts[AX_FACT_L3_HOLDS];
  const double usable = fmax(1, value(m, AX_FACT_USABLE_CORES)), cores = fmin(threads, usable),
               sharing = value(m, AX_FACT_L3) > 0 ? value(m, AX_FACT_L3_CORES) : value(m, AX_FACT_L2_CORES);
  ax_rates r = {.read = fmin(cores * value(m, AX_FACT_READ), value(m, AX_FACT_READ_ALL)),
                .write = fmin(cores * value(m, AX_FACT_WRITE), value(m, AX_FACT_WRITE_ALL)),
                .near = cores * value(m, AX_FACT_L2_READ),
                .shared = cores * value(m, AX_FACT_L3_READ),
                .near_bytes = cores * (double)caches.second,
                .shared_bytes = ceil(cores / sharing) * (held.source == AX_SOURCE_ASSUMED ? (double)caches.shared : held.value),
                .exchange = value(m, AX_FACT_EXCHANGE),
                .computing = times_as_long(m, AX_FACT_MIXED),
                .dividing = times_as_long(m, AX_FACT_QUOTIENTS),
                .sharing = 1 / times_as_long(m, AX_FACT_EXCHANGE)};
  r.host = (ax_link_rates){value(m, AX_FACT_MESSAGE), value(m, AX_FACT_HANDSHAKE), value(m, AX_FACT_MESSAGE_BYTES),
                           value(m, AX_FACT_TRANSFER), AX_HOST_SHORT};
  r.network = (ax_link_rates){value(m, AX_FACT_NETWORK_MESSAGE), value(m, AX_FACT_NETWORK_HANDSHAKE),
                              value(m, AX_FACT_NETWORK_MESSAGE_BYTES), value(m, AX_FACT_NETWORK_TRANSFER), AX_NETWORK_SHORT};
  for (int d = 0; d < AX_DTYPE_COUNT; d++) r.flops[d] = cores * value(m, fact_of((ax_dtype)d));
  return r;
}

ax_rates ax_rates_measured(uint32_t threads) {
  ax_description machine;
  for (int f = 0; f < AX_FACT_COUNT; f++) machine.facts[f] = ax_machine_know((ax_fact)f);
  return ax_rates_of(&machine, threads);
}

double ax_rates_moving(const ax_rates *r, double read, double written) {
  const double bytes = read + written;
  if (bytes <= r->near_bytes) return bytes / r->near;
  return bytes <= r->shared_bytes ? bytes / r->shared : read / r->read + written / r->write;
}

double ax_link_seconds(const ax_link_rates *link, double bytes) {
  return bytes > link->most_short ? link->handshake + bytes / link->transfer : link->message + bytes / link->message_bytes;
}

double ax_rates_computing(const ax_rates *r, double flops, ax_dtype dtype) { return flops / r->flops[dtype]; }

/* --- For plans --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ax_rates planned;
static const ax_rates *_Atomic ready;

static const ax_rates *ask(void) {
  ax_description machine;
  for (int f = AX_FACT_LINE; f <= AX_FACT_THREADS; f++) machine.facts[f] = ax_machine_expect((ax_fact)f);
  for (int f = AX_FACT_READ; f < AX_FACT_COUNT; f++) machine.facts[f] = ax_machine_expect((ax_fact)f);
  machine.facts[AX_FACT_USABLE_CORES].value = 1; /* one thread needs no more, and to count them takes long */
  pthread_mutex_lock(&lock);
  if (atomic_load(&ready) == NULL) {
    planned = ax_rates_of(&machine, 1);
    atomic_store(&ready, &planned);
  }
  pthread_mutex_unlock(&lock);
  return &planned;
}

static ax_rates assumed;
static pthread_once_t assumed_once = PTHREAD_ONCE_INIT;

static void make_assumed(void) {
  ax_description machine = ax_machine_assumed(AX_SOURCE_ASSUMED);
  machine.facts[AX_FACT_USABLE_CORES].value = 1;
  assumed = ax_rates_of(&machine, 1);
}

const ax_rates *ax_rates_planned(void) {
  if (ax_machine_is_described()) {
    pthread_once(&assumed_once, make_assumed);
    return &assumed;
  }
  const ax_rates *known = atomic_load_explicit(&ready, memory_order_acquire);
  return known != NULL ? known : ask();
}

void ax_rates_forget(void) { atomic_store(&ready, NULL); }
