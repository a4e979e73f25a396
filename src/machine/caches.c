#include "machine/caches.h"

#include <pthread.h>
#include <stdatomic.h>

static int64_t fact(const ax_description *m, ax_fact f) { return (int64_t)m->facts[f].value; }

static int64_t power_of_two_in(int64_t bytes) {
  int64_t power = 1;
  while (2 * power <= bytes) power *= 2;
  return power;
}

/* Without a third cache, the second one is the last. */
ax_caches ax_caches_of(const ax_description *m) {
  enum { believed = 16 << 20, most_share = 4 << 20 }; /* a core's */
  const bool third = fact(m, AX_FACT_L3) > 0;
  const int64_t cores = fact(m, third ? AX_FACT_L3_CORES : AX_FACT_L2_CORES), told = fact(m, third ? AX_FACT_L3 : AX_FACT_L2);
  ax_caches c = {.first = power_of_two_in(fact(m, AX_FACT_L1)),
                 .second = fact(m, AX_FACT_L2) / fact(m, AX_FACT_L2_CORES),
                 .last = ax_least(told, believed * cores)};
  c.shared = c.last / 4 * 3;
  c.kept = third ? c.second + ax_least(c.last / cores, most_share) : c.second;
  c.far_rows = c.last / 8 * 3;
  c.far_factor = c.last / 2;
  c.streamed = c.last;
  c.streamed_turned = c.last / 16 * 5;
  return c;
}

/* --- This machine's --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ax_caches here;
static const ax_caches *_Atomic ready;

static const ax_caches *ask(void) {
  ax_description machine;
  for (int f = AX_FACT_LINE; f <= AX_FACT_THREADS; f++) machine.facts[f] = ax_machine_know((ax_fact)f);
  pthread_mutex_lock(&lock);
  if (atomic_load(&ready) == NULL) {
    here = ax_caches_of(&machine);
    atomic_store(&ready, &here);
  }
  pthread_mutex_unlock(&lock);
  return &here;
}

static ax_caches assumed;
static pthread_once_t assumed_once = PTHREAD_ONCE_INIT;
static _Thread_local bool assumes;

static void make_assumed(void) {
  const ax_description machine = ax_machine_assumed(AX_SOURCE_ASSUMED);
  assumed = ax_caches_of(&machine);
}

bool ax_caches_assume(bool on) {
  const bool before = assumes;
  assumes = on;
  if (assumes) pthread_once(&assumed_once, make_assumed);
  return before;
}

bool ax_machine_is_described(void) { return assumes; }

const ax_caches *ax_caches_here(void) {
  if (assumes) return &assumed;
  const ax_caches *known = atomic_load_explicit(&ready, memory_order_acquire);
  return known != NULL ? known : ask();
}

void ax_caches_forget(void) { atomic_store(&ready, NULL); }
