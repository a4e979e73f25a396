/* One run of a compiled program: activations, counters of events, memory. It is kept for the next call (runner.h). */
#ifndef AX_RUN_EXECUTION_H
#define AX_RUN_EXECUTION_H

#include "run/counter.h"
#include "run/pace.h"
#include "run/runner.h"

typedef enum activation_state { ACTIVATION_ACTIVE, ACTIVATION_PARKED, ACTIVATION_DONE } activation_state;

typedef struct ax_activation {
  const ax_code *code;
  uint32_t pc, device;
  activation_state state;
  bool sent;               /* it has sent its parts of the exchange where it stands to other processes (crossing.c) */
  bool lending;            /* there: it waits until others have read these, or copies are made (lent.h) */
  bool found;              /* it ended at an instruction that has a finding */
  bool counted;            /* it holds a block of large scratch memory, or is about to */
  uint32_t home;           /* worker slot of the thread that ran it last */
  ax_axis_set passes;      /* it passes over instructions whose `skip` has one of these: axes on which its coordinate is not 0 */
  void *scratch;           /* its block while it runs, or is parked where it keeps it */
  unsigned char *const *part; /* the run's table of parts */
  uint64_t turn;           /* ordered calls, of all devices, before its next one */
  int64_t *entered;        /* by region */
  int64_t *iteration;      /* by loop */
  const int64_t *coordinates;
} ax_activation;

enum { AX_PLACED_PARTS = 512 }; /* most parts of a share in which each thread takes those near its own place */

struct ax_worker_slot;
typedef ax_status ax_part_of_work(const void *context, struct ax_worker_slot *worker_slot,
                                  uint32_t part); /* worker slot: that of the thread that does the part */

/* Work in parts that several threads do: the thread whose worker slot it is in, and idle threads (run/share.c). */
typedef struct ax_share {
  ax_part_of_work *part;
  const void *context;
  _Atomic uint32_t count;  /* number of parts */
  _Atomic bool open;       /* other threads may join */
  _Atomic uint32_t taken;  /* parts taken, or more if threads found none left */
  _Atomic uint64_t gone[AX_PLACED_PARTS / 64]; /* for at most AX_PLACED_PARTS parts: a bit for each that was taken */
  _Atomic uint32_t helpers; /* threads that looked at it and have not left */
  _Atomic bool awaited;     /* the owner sleeps until all helpers have left */
  pthread_cond_t left;      /* used with the run's lock */
  _Atomic ax_status status; /* of a part that failed; AX_OK if none has */
  _Atomic int processor;    /* on which the owner was last seen */
  uint32_t activation, instr;    /* for the timeline: the instruction whose work it is */
} ax_share;

/* A thread at work on a run has a worker slot. It holds ready activations that ran there last, the work that the thread shares,
   and a free block of scratch memory. */
typedef struct ax_worker_slot {
  _Atomic bool taken;
  _Atomic uint32_t finished; /* number of activations that ended here; other threads read it */
  pthread_mutex_t lock;    /* guards the queue */
  uint32_t first, last;    /* the queue, linked by parking.next */
  _Atomic uint32_t count;
  void *scratch;
  void *rows;              /* memory for a block of rows (run/rows.c); NULL until it is needed */
  struct ax_span *spans;   /* see timeline.h */
  uint32_t span_count, span_capacity;
  bool spans_lost;
  ax_share share;
  char apart[64];          /* keeps slots on different cache lines */
} ax_worker_slot;

/* The finding of an activation: of a CHECK that did not pass, of the TAKE of a ragged exchange, or of reference code that
   failed. */
typedef struct ax_finding {
  uint32_t activation;
  ax_status status; /* that the run fails with; AX_OK: no finding */
  ax_fault fault;   /* for a TAKE */
  int64_t nans, infinities, first; /* first: element of the result */
} ax_finding;

enum { AX_STRIPES = 64 };

/* Memory in which members of a group leave what one of them puts; its owner is the run until that is put. */
typedef struct ax_stage {
  void *memory; /* NULL: none now */
  size_t bytes;
} ax_stage;

/* The memory of a kept space. */
typedef struct ax_kept_space {
  void *memory;   /* NULL: none now */
  void *placed;   /* memory at which the run's table of parts points */
  size_t bytes;
  bool borrowed;  /* from call to call the run does not hold it */
} ax_kept_space;

/* Each thread has a queue. A run on one thread locks nothing, and a scheduling policy may choose which activation runs next
   (scheduler.c). */
typedef struct ax_execution {
  struct ax_execution *next;
  const ax_compiled *compiled;
  ax_executor *executor;
  ax_activation *activations;
  ax_parking *parking; /* by activation */
  int64_t *words; /* memory of the activations' arrays */
  ax_counter *counters;
  _Atomic uint32_t *arrived; /* by counter: members that have come to a push that one of them does for all, or for several */
  ax_stage *stages;          /* by ax_push.stage + group */
  const ax_run_options *options; /* what this call gives to callbacks; NULL: nothing */
  struct ax_remote *remote;  /* what a run in several processes has besides (remote.h); NULL */
  ax_kept_space *kept;             /* by space, if it is kept */
  struct ax_queue *queues; /* by link: messages (mail.c) */
  unsigned char **part; /* by space, first + place: its address; NULL: not set yet */
  uint32_t *seen; /* if the code has POINTs: for pointers, likewise, the place of the part that the device sees */

  ax_job job; /* for the team, if the run is threaded; with one activation, helpers are asked for once work is shared */
  bool threaded;                     /* several threads may run it */
  uint32_t threads;
  const ax_scheduling_policy *scheduling_policy;         /* NULL: first ready, first run */
  uint32_t *ready, ready_first,
      ready_count; /* activations it chooses from: an array of twice their number, so that it is rarely moved */
  ax_worker_slot *worker_slots;
  uint32_t worker_slot_count;
  pthread_mutex_t stripes[AX_STRIPES]; /* guard the lists of parked activations, by the counter's number */
  _Atomic uint32_t fresh;            /* activations from this one on have not started */
  _Atomic uint32_t busy;             /* threads that run an activation or look for one */
  _Atomic uint32_t running;          /* running activations; counted if scratch memory is large */
  _Atomic uint32_t scratch_out;      /* scratch blocks held by activations; likewise */
  _Atomic uint32_t shares;           /* shares with parts that are not taken */
  uint32_t alone;                    /* microseconds of small work done without helpers: see share.c */
  ax_pace pace;                      /* of a run of one device that may call helpers */
  _Atomic uint32_t sleepers;         /* threads that wait for `change` */
  _Atomic bool over;                 /* written with `lock` held */
  pthread_mutex_t lock;              /* guards the following fields, and is held to go to sleep */
  pthread_cond_t change;
  void *scratch;                     /* free blocks; each begins with the address of the next */
  _Atomic bool flown;                /* some operation has been in flight in this run */
  _Atomic uint32_t in_flight;        /* operations outside that will post; written with `lock` held */
  struct ax_post { uint32_t counter, times; } *posts; /* runs on one thread: posts from outside */
  uint32_t post_capacity;
  _Atomic uint32_t post_count;
  ax_finding finding;                /* the earliest of all activations so far */
  ax_status status;                  /* set by the first finding, while other activations go on */
  char message[4096];
} ax_execution;

/* Creates a run of the runner's compiled program, on its executor. */
AX_MUST_USE ax_status ax_execution_create(const ax_runner *runner, ax_execution **out);
void ax_execution_destroy(ax_execution *run);
/* Gives back large memory of temporaries, after a call that did not fail. */
void ax_execution_give_back(ax_execution *run);
/* Takes a run that was kept, by this thread if there is one. NULL: there is none. */
ax_execution *ax_execution_take_idle(ax_runner *runner);
void ax_execution_keep(ax_runner *runner, ax_execution *run);
/* Points the activations at this call's arguments, borrows memory for temporaries, and resets the rest of the run. Activations
   themselves are reset when they start. */
AX_MUST_USE ax_status ax_execution_reset(ax_execution *run, ax_parts *const *inputs, ax_parts *const *outputs);
/* Runs the activations until all are done, one fails, or none can go on; sets run->status. It uses the caller's thread, and
   others of the runtime's team if run->threaded. number: as in ax_job. */
void ax_execution_run(ax_execution *run, uint64_t number);

/* An operation outside of the run's threads, such as a callback or an expected message, may signal a counter. As long as such an
   operation is in flight, waiting activations are no deadlock. An activation begins it, or the caller before the run. Any thread
   posts it, once for each time begun. */
AX_MUST_USE ax_status ax_execution_begin_flight(ax_execution *run);
void ax_execution_post(ax_execution *run, uint32_t counter, uint32_t times);

/* Says whether activation f, which is parked, waits for a message. */
static inline bool ax_execution_awaits_message(const ax_execution *run, uint32_t f) {
  return run->parking[f].counter - run->compiled->first_link < run->compiled->link_count;
}
/* Says whether it waits for rows of a ragged exchange that another process sends. */
static inline bool ax_execution_awaits_rows(const ax_execution *run, uint32_t f) {
  return run->parking[f].counter - run->compiled->first_giver < run->compiled->giver_count;
}
/* Says whether it waits for its turn to make an ordered call, or for the results of one that another process makes. */
static inline bool ax_execution_awaits_turn(const ax_execution *run, uint32_t f) {
  const uint32_t turns = run->compiled->turns, counter = run->parking[f].counter;
  return turns != AX_NONE && (counter == turns || (run->remote != NULL && counter == turns + 1));
}
/* Says whether it waits for cores of other processes (cores_crossing.h). */
static inline bool ax_execution_awaits_cores(const ax_execution *run, uint32_t f) {
  return run->activations[f].code->instrs[run->activations[f].pc].kind == AX_INSTR_CORES;
}
/* "device 3 (data=1,model=1)"; of another process: "device 3 (data=1,model=1) of process 1" */
void ax_execution_device_name(ax_text *text, const ax_execution *run, uint32_t device);
/* That of an activation. */
void ax_execution_device_text(ax_text *text, const ax_execution *run, uint32_t f);
/* Adds the equation of an instruction: its primitive, operands and place. */
void ax_execution_equation_text(ax_text *text, const ax_execution *run, const ax_instr *instr);
/* Puts the equation and the device in front of the message of activation f's failed instruction. */
AX_MUST_USE ax_status ax_execution_blame(const ax_execution *run, uint32_t f, const ax_instr *instr, ax_status status);
/* Reports a deadlock: each waiting device with its place, and the devices that never came. Sets run->status and message. */
void ax_execution_report_deadlock(ax_execution *run);

/* For reports of long waits: adds the places where devices wait for others of other processes, and those processes. Nothing goes on
   meanwhile. */
struct ax_stall_report;
void ax_execution_list_stalls(const ax_execution *run, struct ax_stall_report *report);
/* Adds the place of an instruction, at which a counter's signals of a round are awaited. */
void ax_execution_list_stall(const ax_execution *run, const ax_instr *instr, uint32_t counter, uint64_t round,
                             struct ax_stall_report *report);

#endif
