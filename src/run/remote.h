/* A run in several processes: what one process has of it besides the activations of its own devices.

   Threads of the run look into the inbox (processes/together.h) when they find no activation to run. So one that waits for another
   process moves messages, for all runs, and no thread is kept for it. crossing.h has the exchanges that cross, mail.h the messages
   between devices, cores_crossing.h kernels whose devices are of several processes. */
#ifndef AX_RUN_REMOTE_H
#define AX_RUN_REMOTE_H

#include "processes/together.h"
#include "run/execution.h"

struct ax_crossing_group;
struct ax_cores_group;
struct ax_giver;

typedef struct ax_remote {
  ax_execution *run;
  ax_together together;
  atomic_flag handling;        /* a thread handles messages */
  bool closed;                 /* what still comes for the run is dropped */
  bool taken;                  /* of a run of one thread: a message was taken where it lay during a poll */
  _Atomic uint32_t open;       /* rounds of exchanges that miss something from other processes */
  _Atomic uint32_t held_back;  /* contributions that wait for others, to be sent with them (coalesced.h) */
  _Atomic uint32_t senders;    /* processes whose devices may still send messages over links to devices here */
  pthread_mutex_t groups_lock; /* guards the groups, the givers and the results of calls */
  uint32_t push_count;
  const ax_push **pushes;      /* by exchange; NULL: it does not cross, or is none of the code's */
  struct ax_lent *lent;        /* by device: what it has lent in the exchange that it is in */
  struct ax_lent *_Atomic lenders; /* devices that wait until it is settled; changed under groups_lock */
  struct ax_cores_group *cores; /* by ax_cores_instr.crossing_first + number among the groups of this process */
  struct ax_crossing_group *groups; /* by ax_push.crossing_first + number among the groups of this process */
  ax_deliveries *waiting;            /* by party of these groups, one group after the other */
  struct ax_coalesced_form *forms;   /* likewise */
  ax_deliveries call_results;  /* of ordered calls, that no device has taken yet (turns.h) */
  struct ax_giver *givers;     /* rows of ragged exchanges that have come (arrivals.h) */
} ax_remote;

/* The groups' lock. A run of one thread has nobody to keep out: only its own thread handles messages, whichever thread polls. */
static inline void ax_remote_lock(ax_remote *remote) {
  if (remote->run->threaded) pthread_mutex_lock(&remote->groups_lock);
}
static inline void ax_remote_unlock(ax_remote *remote) {
  if (remote->run->threaded) pthread_mutex_unlock(&remote->groups_lock);
}

static inline ax_transport *ax_remote_transport(const ax_remote *remote) { return remote->together.ending.processes->transport; }

/* run->remote is NULL for a program whose devices are all of this process. */
AX_MUST_USE ax_status ax_remote_create(ax_execution *run);
void ax_remote_destroy(ax_execution *run);
/* Begins a run, and ends it: waits until all processes have ended theirs. *status: how it ended here, and how it has ended
   everywhere, with a message. */
void ax_remote_begin(ax_remote *remote, const ax_doing *doing);
AX_MUST_USE ax_status ax_remote_end(ax_remote *remote, ax_status status);

/* Moves messages, and handles those that have come for this run. Returns true if there were any. */
bool ax_remote_poll(ax_remote *remote);
/* An activation waits until a counter has come to `target`. Most of what is awaited comes soon: if this is the run's only thread, and it has
   nothing else to do, it polls a few times before the activation is parked and the process says that it is idle. Returns true if that was
   enough. */
bool ax_remote_await(ax_remote *remote, const ax_worker_slot *worker_slot, uint32_t counter, uint64_t target);
/* No thread of this process runs an activation any more: sends what has been held back. On failure the run ends. */
void ax_remote_flush(ax_remote *remote);
/* Nothing can go on in this process until a message comes. Returns true if nothing ever will. */
bool ax_remote_idle(ax_remote *remote);
/* Waits until messages have come, or something else has changed. */
void ax_remote_wait(ax_remote *remote, bool (*changed)(ax_execution *run));

/* Sends a message of the run; the payload is copied. */
AX_MUST_USE ax_status ax_remote_send(ax_remote *remote, uint32_t to, ax_envelope *envelope, const void *payload);
/* The same for a long payload that is lent, until the loan is settled. */
AX_MUST_USE ax_status ax_remote_lend(ax_remote *remote, uint32_t to, ax_envelope *envelope, const void *payload, ax_loan *loan);
/* The same, but the payload is memory of the caller's that is freed when it has been sent, and on failure. */
AX_MUST_USE ax_status ax_remote_send_owned(ax_remote *remote, uint32_t to, ax_envelope *envelope, void *payload);
/* For a long payload with an address, as those of a transport. */
AX_MUST_USE ax_status ax_remote_read(ax_remote *remote, const ax_delivery *delivery, size_t offset, void *into, size_t bytes);
const void *ax_remote_see(ax_remote *remote, const ax_delivery *delivery);
AX_MUST_USE ax_status ax_remote_release(ax_remote *remote, const ax_delivery *delivery);
/* Messages of one sender that are taken in the order in which they were sent, each with its payload. */
typedef struct ax_in_order {
  ax_deliveries held; /* behind one whose payload is being fetched */
  bool fetching;
} ax_in_order;
void ax_in_order_empty(ax_in_order *order);
/* Takes a message, or lets it wait; then those that have waited for it. `take` consumes a message. One thread at a time. */
AX_MUST_USE ax_status ax_in_order_take(ax_in_order *order, ax_remote *remote, ax_delivery *delivery,
                                       ax_status (*take)(ax_execution *run, ax_delivery *delivery));
/* Fetches the long payload of a message. The message comes to the inbox once more, with its payload. */
AX_MUST_USE ax_status ax_remote_fetch(ax_remote *remote, ax_delivery *delivery);

#endif
