/* Under mpirun, 2 processes or more: one of them runs out of memory while all open a transport, or make a runtime. Each of its
   allocations fails in turn, and all must say so. */
#include "axle/exec.h"
#include "world.h"

/* --- Memory of which the nth piece is not there --- */

static _Atomic long until_failure, asked, live;

static void *allocate(void *user, size_t bytes, size_t align) {
  void *memory = NULL;
  (void)user;
  atomic_fetch_add(&asked, 1);
  if (atomic_fetch_sub(&until_failure, 1) == 0 || posix_memalign(&memory, align, bytes) != 0) return NULL;
  atomic_fetch_add(&live, 1);
  return memory;
}
static void release(void *user, void *memory) {
  (void)user;
  atomic_fetch_sub(&live, memory != NULL);
  free(memory);
}

/* --- What is opened --- */

static ax_status open_transport(void) {
  ax_transport *transport;
  ax_status status = ax_mpi_create(NULL, &transport);
  if (status == AX_OK) transport->functions->destroy(transport);
  return status;
}

static ax_status open_runtime(void) {
  ax_runtime *runtime;
  ax_status status = ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 2}, &runtime);
  if (status == AX_OK) ax_runtime_release(runtime);
  return status;
}

/* --- All together --- */

/* The most that any process says. */
static uint64_t most(uint64_t mine) {
  world w;
  open_world(&w);
  for (uint32_t p = 0; p < w.count; p++)
    if (p != w.me) CHECK(w.transport->functions->send(w.transport, p, &(ax_envelope){.words = {mine}}, NULL, NULL, NULL) == AX_OK);
  for (uint32_t i = 1; i < w.count; i++) {
    ax_delivery *one = next_delivery(&w);
    if (one->envelope.words[0] > mine) mine = one->envelope.words[0];
    ax_delivery_free(one);
  }
  close_world(&w);
  return mine;
}

/* `nth` -1: none fails. Returns how many allocations there were. */
static long attempt(ax_status (*open)(void), uint32_t victim, long nth, bool is_victim, long *failures) {
  char wanted[64];
  const long before = live;
  snprintf(wanted, sizeof wanted, "process %u: out of memory", victim);
  until_failure = is_victim ? nth : -1;
  asked = 0;
  ax_status status = open();
  const long count = asked;
  until_failure = -1;
  *failures += status != AX_OK;
  CHECK(status == AX_OK || (status == AX_OUT_OF_MEMORY && strncmp(ax_message(), wanted, strlen(wanted)) == 0));
  CHECK(live == before);
  return count;
}

/* All must have failed as often; that they do so at the same time they would show by waiting for ever. */
static void each_allocation_fails(ax_status (*open)(void), uint32_t me, uint32_t victim) {
  long failures = 0;
  (void)attempt(open, victim, -1, false, &failures); /* what is kept for later is made */
  CHECK(failures == 0);
  const long count = (long)most((uint64_t)attempt(open, victim, -1, false, &failures));
  for (long nth = 0; nth < count; nth++) attempt(open, victim, nth, me == victim, &failures);
  CHECK((uint64_t)failures == most((uint64_t)failures) && failures >= 8);
  if (me == 0) printf("%ld allocations of process %u, of which %ld are missed\n", count, victim, failures);
}

int main(void) {
  const ax_allocator hostile = {allocate, release, NULL};
  world w;
  until_failure = -1;
  ax_set_allocator(&hostile);
  open_world(&w);
  const uint32_t me = w.me, last = w.count - 1;
  close_world(&w);
  each_allocation_fails(open_transport, me, 0);
  each_allocation_fails(open_transport, me, last);
  each_allocation_fails(open_runtime, me, 0);
  each_allocation_fails(open_runtime, me, last);
  return 0;
}
