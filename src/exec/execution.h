/* One run of an executable: activations, events' counters, memory. Kept by the executable for its next call. */
#ifndef AX_EXEC_EXECUTION_H
#define AX_EXEC_EXECUTION_H

#include "exec/counter.h"
#include "exec/exec.h"
#include "exec/policy.h"
#include "exec/workers.h"

typedef enum activation_state { ACTIVATION_ACTIVE, ACTIVATION_PARKED, ACTIVATION_DONE } activation_state;

typedef struct ax_activation {
  const ax_code *code;
  uint32_t pc, device;
  activation_state state;
  bool found;              /* it has ended at an instruction that found something, and the run with it */
  bool counted;            /* among those that hold a block of large scratch memory, or are about to */
  uint32_t home;           /* the worker slot of the thread that ran it last */
  ax_axis_set nonzero;     /* axes on which its coordinate is not 0 */
  void *scratch;           /* its block while it runs, or is parked where it must keep it */
  unsigned char *const *part; /* the run's */
  uint64_t turn;           /* ordered calls that come before its next one, of all devices */
  int64_t *entered;        /* by region */
  int64_t *iteration;      /* by loop */
  const int64_t *coordinates;
} ax_activation;

enum { AX_PLACED_PARTS = 512 }; /* of a share, of which each thread takes those near its own place */

struct ax_worker_slot;
typedef ax_status ax_part_of_work(const void *context, struct ax_worker_slot *worker_slot,
                                  uint32_t part); /* worker slot: of the thread that does it */

/* Work in parts that several threads do: by the thread whose worker slot it is, and by whoever is idle. exec/share.c */
typedef struct ax_share {
  ax_part_of_work *part;
  const void *context;
  _Atomic uint32_t count;  /* parts */
  _Atomic bool open;       /* others may join */
  _Atomic uint32_t taken;  /* parts, or more when threads come in vain */
  _Atomic uint64_t gone[AX_PLACED_PARTS / 64]; /* which of them, a bit each, where there are no more than that */
  _Atomic uint32_t helpers; /* threads that looked at it and have not left */
  _Atomic bool awaited;     /* the owner sleeps until helpers have left */
  pthread_cond_t left;      /* with the run's lock */
  _Atomic ax_status status; /* of a part that failed; AX_OK: none has */
  _Atomic int processor;    /* on which its owner was last seen */
  uint32_t activation, instr;    /* for the timeline: of whom it is */
} ax_share;

/* A thread at work on a run has a worker slot: activations that are ready and ran there last, its shared work, a free block of
   scratch memory. */
typedef struct ax_worker_slot {
  _Atomic bool taken;
  uint32_t finished;       /* activations that ended here */
  pthread_mutex_t lock;    /* of the queue */
  uint32_t first, last;    /* linked by parking.next */
  _Atomic uint32_t count;
  void *scratch;
  void *rows;              /* memory for a block of rows (exec/rows.c); NULL: none was needed here yet */
  struct ax_span *spans;   /* timeline.h */
  uint32_t span_count, span_capacity;
  bool spans_lost;
  ax_share share;
  char apart[64];          /* from the next one */
} ax_worker_slot;

/* What a CHECK that did not pass found, or the TAKE of a ragged exchange, where the activation stands. */
typedef struct ax_finding {
  uint32_t activation;
  ax_status status; /* that the run fails with; AX_OK: there is none */
  ax_fault fault;   /* of a TAKE */
  int64_t nans, infinities, first; /* first: element of the result */
} ax_finding;

enum { AX_STRIPES = 64 };

/* Each thread has a queue; where there is only one, nothing is locked, and a scheduling policy may say who runs next
   (scheduler.c). */
typedef struct ax_execution {
  struct ax_execution *next;
  ax_executable *executable;
  ax_activation *activations;
  ax_parking *parking; /* by activation */
  int64_t *words; /* the activations' arrays */
  ax_counter *counters;
  _Atomic uint32_t *arrived; /* by counter: members that came to a push `at_last_arrival` */
  struct ax_queue *queues; /* by link: of messages (mail.c) */
  unsigned char **part; /* by space, first + place: where it is; NULL: nowhere yet, or in another process */

  ax_job job; /* of the team, where it is threaded; of one activation, helpers are asked for when something is shared */
  bool threaded;                     /* several threads run it: so many */
  uint32_t threads;
  const ax_scheduling_policy *scheduling_policy;         /* NULL: who is ready first */
  uint32_t *ready, ready_first,
      ready_count; /* what it chooses of: an array of twice the activations, so that it seldom has to be moved */
  ax_worker_slot *worker_slots;
  uint32_t worker_slot_count;
  pthread_mutex_t stripes[AX_STRIPES]; /* who is parked on a counter: by its number */
  _Atomic uint32_t fresh;            /* activations from here on have not started */
  _Atomic uint32_t busy;             /* threads that run an activation or look for one */
  _Atomic uint32_t running;          /* activations that run: kept count of when scratch memory is large */
  _Atomic uint32_t scratch_out;      /* blocks that activations hold: likewise */
  _Atomic uint32_t shares;           /* that have parts nobody has taken yet */
  uint32_t alone;                    /* microseconds of small work for which no helper was called: see share.c */
  _Atomic uint32_t sleepers;         /* threads that wait for `change` */
  _Atomic bool over;                 /* written with the lock held */
  pthread_mutex_t lock;              /* of what follows; and for going to sleep */
  pthread_cond_t change;
  void *scratch;                     /* free blocks: each begins with the address of the next */
  _Atomic bool flown;                /* something has been in flight in this run */
  _Atomic uint32_t in_flight;        /* things under way outside, that will post; written with the lock held */
  struct ax_post { uint32_t counter, times; } *posts; /* one thread: what came from outside */
  uint32_t post_capacity;
  _Atomic uint32_t post_count;
  ax_finding finding;                /* the earliest, of activations that have ended at one */
  ax_status status;                  /* that of a finding from the first on, while other activations go on */
  char message[4096];
} ax_execution;

AX_MUST_USE ax_status ax_execution_create(ax_executable *executable, ax_execution **out);
void ax_execution_destroy(ax_executable *executable, ax_execution *run);
/* One that was kept, by this thread if there is one; NULL: none. */
ax_execution *ax_execution_take_idle(ax_executable *executable);
void ax_execution_keep(ax_executable *executable, ax_execution *run);
/* Points the activations at this call's arguments and resets everything but the activations, each of which is when it starts. */
void ax_execution_reset(ax_execution *run, ax_parts *const *inputs, ax_parts *const *outputs);
/* Activations run until all are done, or one fails, or none can go on: run->status. On the caller's thread, and others of the
   runtime's team when run->threaded; number: as a job's. */
void ax_execution_run(ax_execution *run, uint64_t number);

/* Counters may be signalled from outside of the run's threads: by a callback, or when a message comes. While something is in
   flight, activations that wait are no deadlock. Begun by an activation or before the run; posted by any thread, once for each time
   begun. */
AX_MUST_USE ax_status ax_execution_begin_flight(ax_execution *run);
void ax_execution_post(ax_execution *run, uint32_t counter, uint32_t times);

/* Activation f, which is parked, waits for a message. */
static inline bool ax_execution_awaits_message(const ax_execution *run, uint32_t f) {
  return run->executable->link_count > 0 && run->parking[f].counter >= run->executable->first_link;
}
/* ... or for its turn to make an ordered call. */
static inline bool ax_execution_awaits_turn(const ax_execution *run, uint32_t f) {
  return run->parking[f].counter == run->executable->turns;
}
/* "device 3 (data=1,model=1)" */
void ax_execution_device_text(ax_text *text, const ax_execution *run, uint32_t f);
/* The equation of an instruction: its primitive, operands and place. */
void ax_execution_equation_text(ax_text *text, const ax_execution *run, const ax_instr *instr);
/* Puts the equation and the device in front of the message of what activation f's instruction has failed with. */
AX_MUST_USE ax_status ax_execution_blame(const ax_execution *run, uint32_t f, const ax_instr *instr, ax_status status);
/* The report of a deadlock: every waiting device, where, and who never came. Sets run->status and message. */
void ax_execution_report_deadlock(ax_execution *run);

#endif
