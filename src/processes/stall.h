/* What is said when this process waits long for others that are alive but do not come: they compute, sleep or are stopped, in code
   of the user's or in what all do together. That is no failure, so nothing fails because of it. After some seconds, and again
   whenever the time has doubled, one line says where this process waits, for whom, and what those did last:

     axle: process 0 and 2 more wait in psum f32[4] over x (equation 0, train.c:40) for process 3, which has sent nothing since it
     left ax_run 12 s ago; it is stopped (pid 4711)

   No thread is kept for it. Loops that wait look at the clock now and then, once they give the processor to others between two
   polls.

   A process that waits is not to blame for those that wait for it. Before it reports, in half the time, it tells the others that it
   waits, and for whom. So a report names those of whom that is not known, or all if there are none such; and of several processes
   that wait for the same one, the first reports for all. What was told counts for one report, so that none is left out for ever
   because of what was so earlier.

     what is known of a process            from
     the last thing that it did            all do the same things in the same order: what this process did before this one
     what it has come to, and when it      its messages: their count, as seen in each look
       sent something
     whether it is stopped                 the system, on the same machine (watch.h) */
#ifndef AX_PROCESSES_STALL_H
#define AX_PROCESSES_STALL_H

#include "base/base.h"
#include "processes/processes.h"

typedef struct ax_stall_report {
  const ax_processes *processes;
  uint64_t number; /* of what is waited in; 0: of nothing that has one */
  double now;
  uint32_t first;  /* process that is waited for; AX_NONE: none yet */
  ax_text text;    /* lines */
} ax_stall_report;
/* Adds a line. where: "in psum f32[4] over x"; awaited: by process, whether it is waited for. */
void ax_stall_add(ax_stall_report *report, const char *where, const bool *awaited);
/* Adds lines for all places at which this process waits. */
typedef void ax_stall_list(void *context, ax_stall_report *report);

void ax_stall_begin(ax_stall *stall); /* a wait begins */
/* Called again and again by loops that wait. moves: a count that grows while what is waited for goes on; then the wait begins
   anew. */
void ax_stall_look(ax_stall *stall, ax_processes *processes, uint64_t number, uint64_t moves, ax_stall_list *list, void *context);

/* The same for one process that is waited for with no number: until it has released the runtime, or has read what was lent to it. where,
   what: as the transport has them. */
void ax_stall_linger(ax_processes *processes, const char *where, uint64_t what, uint32_t process);

/* The settings of a runtime, but for the clock: `seconds` and `write` as ax_runtime_options.watch_seconds and .watch.
   AX_INVALID_ARGUMENT, with no reports: what the environment's AXLE_WATCH_SECONDS says is no number of seconds. */
AX_MUST_USE ax_status ax_stall_set(ax_stalls *stalls, double seconds, void (*write)(const char *line, void *context), void *context);
/* Seconds as the system counts them without looking at a clock: some milliseconds late. */
double ax_stall_clock(void *context);

#endif
