/* What the programs under mpirun share: a transport, what has been delivered to it, and waiting that leaves the cores to others. */
#ifndef TESTS_MPI_WORLD_H
#define TESTS_MPI_WORLD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "processes/load.h"
#include "processes/mpi.h"

/* A process that finds something wrong says so and ends all of them, by ending without MPI_Finalize. */
#define CHECK(condition)                                                                                   \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      fprintf(stderr, "%s:%d: not so: %s; the last message: %s\n", __FILE__, __LINE__, #condition, ax_message()); \
      abort();                                                                                             \
    }                                                                                                      \
  } while (0)

typedef struct world {
  ax_transport *transport;
  uint32_t me, count;
  ax_delivery *first, **last; /* in the order in which they came; whoever polls adds to it */
  _Atomic uint32_t came;
} world;

static void keep(void *context, ax_delivery *delivery) {
  world *w = context;
  *w->last = delivery;
  w->last = &delivery->next;
  atomic_fetch_add(&w->came, 1);
}

AX_UNUSED static void open_world_over(world *w, const void *communicator) {
  memset(w, 0, sizeof *w);
  w->last = &w->first;
  CHECK(ax_mpi_create(communicator, &w->transport) == AX_OK);
  w->transport->deliver = keep;
  w->transport->deliver_context = w;
  w->me = w->transport->process;
  w->count = w->transport->processes;
}

AX_UNUSED static void open_world(world *w) { open_world_over(w, NULL); }

AX_UNUSED static void close_world(world *w) {
  for (ax_delivery *next; w->first != NULL; w->first = next) {
    next = w->first->next;
    ax_delivery_free(w->first);
  }
  w->transport->functions->destroy(w->transport);
}

/* The first of those that came; the caller's. No other thread polls. */
AX_UNUSED static ax_delivery *next_delivery(world *w) {
  bool any;
  while (w->first == NULL) {
    CHECK(w->transport->functions->poll(w->transport, &any) == AX_OK);
    if (!any) sched_yield();
  }
  ax_delivery *one = w->first;
  w->first = one->next;
  if (w->first == NULL) w->last = &w->first;
  return one;
}

AX_UNUSED static void count_up(void *context) { atomic_fetch_add((_Atomic uint32_t *)context, 1); }

AX_UNUSED static void poll_until(world *w, const _Atomic uint32_t *counter, uint32_t wanted) {
  bool any;
  while (atomic_load(counter) < wanted) {
    CHECK(w->transport->functions->poll(w->transport, &any) == AX_OK);
    if (!any) sched_yield();
  }
}

/* Every byte depends on its place, and on a seed. */
AX_UNUSED static void fill(char *data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i++) data[i] = (char)(seed + i * 7 + (i >> 8));
}
AX_UNUSED static bool is_filled(const char *data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i++)
    if (data[i] != (char)(seed + i * 7 + (i >> 8))) return false;
  return true;
}

#endif
