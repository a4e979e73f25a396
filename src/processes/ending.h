/* How something that all processes do together ends: each has done its part, or one has failed, or none can go on.

   Each process says when it is done, and how. It is over everywhere once all have said so, so it fails everywhere or nowhere, with
   the same message.

   A few processes tell each other. Of many, each that has ended well tells the next one in a tree, once all below it have, and from
   the first one the word that it is over goes down the tree again. Numbers to the base 4 are the tree: above a process is the one whose
   last digit that is not 0 is 0 instead, so that neighbours, which share a node, are near each other in it.

     0  <- 1, 2, 3, 4, 8, 12, 16, ..     4 <- 5, 6, 7     16 <- 17, 18, 19, 20, 24, 28

   If anything else happens all tell each other: a process that fails tells all, one that finds that others did something else or have
   not come for long does, and so does each that is told by one of them. So all know of each how it ended, or who has not come.

   A failure that the program itself brings about has a place, and there may be several: whichever comes first in the program is
   that of all. So a process that has found one goes on, as within one process, until none can (run/check.h).

   A process is idle if nothing can go on in it until a message comes. If all are idle and no message is on its way, none can ever
   go on: a deadlock. That is found without any time-out. Each process counts the messages that it has sent and received and tells
   process 0 when it is idle. Once all have told, and as many were received as were sent, process 0 asks all of them again. If all
   are still idle with the same counts, no message was on its way when the second round began (Mattern's four counters), and process
   0 says so to all.

     process 1    idle (sent 3, received 2) --+             +-- still idle, 3, 2 --+
     process 0                               all, 5 = 5 -> probe                  same -> stuck
     process 2    idle (sent 2, received 3) --+             +-- still idle, 2, 3 --+ */
#ifndef AX_PROCESSES_ENDING_H
#define AX_PROCESSES_ENDING_H

#include "processes/processes.h"

typedef struct ax_counts_told { /* what a process said last */
  bool idle;
  uint64_t sent, received;
} ax_counts_told;

enum { AX_ENDING_FEW = 8 }; /* so many tell each other at once: a tree would take longer */
enum { AX_ENDING_LONG = 8192 }; /* rounds of waiting (together.h), some 0.2 s: only then do many tell each other */

enum { AX_PLACE_WORDS = 34 };
typedef struct ax_place { /* of a failure in the program: it comes before another one if the first word that differs is less */
  uint32_t count;         /* 0: it has none */
  uint64_t words[AX_PLACE_WORDS];
} ax_place;

typedef struct ax_ended { /* what a process said at its end */
  bool done;
  ax_status status;
  uint64_t check;
  ax_place place; /* of its failure */
  char *message;  /* owned; NULL: none */
} ax_ended;

typedef struct ax_ending {
  ax_processes *processes;
  uint64_t number;
  uint64_t check; /* a digest of what this process does; 0: nothing to be compared */
  ax_place place; /* of this process's failure; set by its owner before it is said */
  _Atomic uint64_t sent, received; /* by this process; counted by its owner */
  _Atomic bool idle;               /* this process is; set by its owner */
  _Atomic bool stuck;              /* no process can go on */
  _Atomic bool failed;             /* some other process has failed, or has done something else */
  _Atomic uint32_t done;           /* processes that are done */
  pthread_mutex_t lock;            /* guards the following fields */
  ax_ended *ended;                 /* by process */
  uint32_t well;                   /* processes just below this one in the tree that have ended well, with all below them */
  uint64_t check_below;            /* what these did; 0: nothing to be compared */
  bool tells_all;                  /* this process tells, or has told, all others how it ends */
  ax_counts_told told;             /* what this process told last */
  ax_counts_told *all, *again;     /* process 0: by process; in answer to the probe that is out */
  uint64_t probe;                  /* its number; 0: there was none */
  uint32_t answers;                /* that are missing */
  bool told_again;                 /* a process has told something new since the probe went out */
} ax_ending;

AX_MUST_USE ax_status ax_ending_init(ax_ending *ending, ax_processes *processes);
void ax_ending_deinit(ax_ending *ending);
/* Begins anew. `number` and `check` are set once they are known, before any message is sent or handled. */
void ax_ending_reset(ax_ending *ending);
/* Handles a message of the kinds DONE to OVER, which stays the caller's. */
AX_MUST_USE ax_status ax_ending_handle(ax_ending *ending, const ax_delivery *delivery);
/* Tells process 0 that this one is idle, if it has not told with the same counts. */
AX_MUST_USE ax_status ax_ending_tell(ax_ending *ending);
/* Called after a long wait: all tell each other how they have ended, if they do not do so anyway. */
AX_MUST_USE ax_status ax_ending_tell_all(ax_ending *ending);
/* Says that this process is done. message: if it has failed. */
AX_MUST_USE ax_status ax_ending_say(ax_ending *ending, ax_status status, const char *message);
static inline bool ax_ending_over(const ax_ending *ending) {
  return atomic_load(&ending->done) == ending->processes->rule.processes;
}
/* Once it is over: how, the same in all processes. The failure of the process with the least number; of failures with places, the
   first in the program; of a deadlock, what all that were in it have said. */
AX_MUST_USE ax_status ax_ending_result(ax_ending *ending);

#endif
