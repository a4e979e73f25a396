/* Under mpirun, 2 processes or more: one ends too early.
     ends exit    process 1 calls exit: the others are told which one is gone, and go on among themselves
     ends kill    process 1 is killed: the others are told, or the launcher ends them all, as those of MPICH and Open MPI do
                  unless they are told otherwise */
#include <signal.h>

#include "world.h"

enum { bytes = 3 * AX_SHORT_PAYLOAD };
static char data[bytes];

static ax_status poll_until_failure(world *w) {
  ax_status status = AX_OK;
  for (bool any; status == AX_OK; sched_yield()) status = w->transport->functions->poll(w->transport, &any);
  return status;
}

/* What was lent to the process that is gone comes back, and nothing more can be sent to it. */
static void check_lost(world *w, const _Atomic uint32_t *sent) {
  bool any;
  CHECK(poll_until_failure(w) == AX_UNAVAILABLE);
  CHECK(strstr(ax_message(), "process 1 is gone") != NULL);
  while (*sent < 1) CHECK(w->transport->functions->poll(w->transport, &any) == AX_UNAVAILABLE);
  CHECK(w->transport->functions->send(w->transport, 1, &(ax_envelope){.run = 1}, NULL, NULL, NULL) == AX_UNAVAILABLE);
  CHECK(strstr(ax_message(), "process 1 is gone") != NULL);
}

/* Those that are left send each other a payload. */
static void go_on(world *w) {
  _Atomic uint32_t sent = 0, fetched = 0;
  static char into[bytes];
  bool any;
  const ax_envelope envelope = {.run = 3, .bytes = bytes};
  for (uint32_t p = 0; p < w->count; p++)
    if (p != w->me && p != 1)
      CHECK(w->transport->functions->send(w->transport, p, &envelope, data, count_up, &sent) == AX_OK);
  while (sent < w->count - 2 || fetched < w->count - 2) {
    CHECK(w->transport->functions->poll(w->transport, &any) == AX_UNAVAILABLE);
    ax_delivery *one = w->first;
    if (one == NULL) continue;
    if ((w->first = one->next) == NULL) w->last = &w->first;
    if (one->envelope.run == 3) CHECK(w->transport->functions->fetch(w->transport, one, into, count_up, &fetched) == AX_OK);
    ax_delivery_free(one);
  }
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  world w;
  open_world(&w);
  _Atomic uint32_t sent = 0;
  if (w.me == 1) {
    ax_delivery_free(next_delivery(&w)); /* all have begun */
    if (strcmp(arguments[1], "kill") == 0) raise(SIGKILL);
    exit(0);
  }
  CHECK(w.transport->functions->send(w.transport, 1, &(ax_envelope){.run = 2, .bytes = bytes}, data, count_up, &sent) == AX_OK);
  check_lost(&w, &sent);
  go_on(&w);
  const bool first = w.me == 0;
  close_world(&w);
  if (first) puts("the others were told"), fflush(stdout);
  return 0;
}
