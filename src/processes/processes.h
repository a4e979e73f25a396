/* The processes that a runtime's meshes are spread over: the transport between them, and the receivers of what comes.

   Everything that processes do together has a number: runs, and the calls by which they agree or move arrays. All processes do
   these in the same order, so each counts by itself. A message names the number that it belongs to; it is kept until that has begun
   here.

   Any thread may call any function. */
#ifndef AX_PROCESSES_PROCESSES_H
#define AX_PROCESSES_PROCESSES_H

#include <pthread.h>
#include <stdatomic.h>

#include "processes/map.h"
#include "processes/transport.h"

typedef enum ax_message_kind {
  AX_MESSAGE_PART,   /* what a member of an exchange pushes (run/crossing.h) */
  AX_MESSAGE_LETTER, /* of a link between two devices (run/mail.h) */
  AX_MESSAGE_CORES,  /* what a core does on a device of another process (run/cores_crossing.h) */
  AX_MESSAGE_ROWS,   /* that members of a ragged exchange take (run/arrivals.h) */
  AX_MESSAGE_TURN,   /* which ordered calls of the host have been made, and their results (run/turns.h) */
  AX_MESSAGE_DONE,   /* how something ends, and that none can go on (ending.h) */
  AX_MESSAGE_IDLE,
  AX_MESSAGE_PROBE,
  AX_MESSAGE_ANSWER,
  AX_MESSAGE_STUCK,
  AX_MESSAGE_WELL, /* a part of the processes has ended well, and all have (ending.h) */
  AX_MESSAGE_OVER,
  AX_MESSAGE_TEXT, /* what differs between processes (together.h) */
  AX_MESSAGE_DIFFERENCE,
  AX_MESSAGE_WAITS, /* its sender waits long (stall.h); no receiver gets it, nor the next */
  AX_MESSAGE_LEAVES /* its sender has ended all up to the number, and releases the runtime */
} ax_message_kind;
/* Messages of what is done itself: those before are told from those about how it goes, and are counted (ending.h). */
static inline bool ax_message_is_counted(uint32_t kind) { return kind < AX_MESSAGE_DONE; }

typedef struct ax_receiver {
  uint64_t number;
  const char *what; /* for reports: "ax_run" */
  void (*deliver)(void *context, ax_delivery *delivery); /* on a thread that polls; must not block */
  /* On a thread that polls for this receiver. As that of a transport; NULL: it takes none. */
  bool (*take_here)(void *context, uint32_t from, const ax_envelope *envelope, const void *payload);
  void *context;
  struct ax_receiver *next;
} ax_receiver;

typedef struct ax_heard { /* of another process, for reports (stall.h) */
  uint64_t messages, seen; /* that have come; that had come at the last look */
  uint64_t number;         /* the greatest that one was for */
  uint64_t waits;          /* it has said that it waits long in what has this number, since this process reported last; 0: no */
  uint32_t waits_for;      /* and for this process */
  double at;               /* when a look found more than before */
} ax_heard;

typedef struct ax_taken { /* of messages of another process that were taken where they lay: written by the thread that polls, without the lock */
  atomic_uint_least64_t count; /* that `heard` does not have */
  uint64_t number;             /* for which `heard` says all that they would; 0: none */
} ax_taken;

typedef struct ax_stalls { /* settings of reports (stall.h) */
  double seconds;          /* 0: there are none */
  void (*write)(const char *lines, void *context);
  void *context;
  double (*clock)(void *context); /* seconds since any moment */
  void *context_of_clock;
} ax_stalls;

typedef struct ax_stall { /* of one wait (stall.h) */
  atomic_flag looking;    /* one thread at a time looks */
  bool begun, told;       /* told: the others, for the next report */
  uint64_t moves;         /* as they were in the last look */
  double since, look, tell, report; /* when it began; when to do so next */
} ax_stall;

typedef struct ax_processes {
  ax_transport *transport;
  ax_process_rule rule;
  uint32_t *of;              /* a copy of the rule's list; NULL: devices are in blocks */
  uint64_t digest;           /* of the rule's list, which all must have */
  pthread_mutex_t lock;      /* guards the following fields */
  uint64_t begun;            /* numbers given so far */
  ax_heard *heard;           /* by process */
  ax_taken *taken;           /* likewise; not guarded */
  const char *last;          /* what all did together last, and when it was over; NULL: nothing yet */
  double left;
  ax_receiver *receivers;
  ax_deliveries early;       /* messages for numbers that have not begun here, in the order in which they came */
  atomic_bool is_lost;       /* `lost` is not AX_OK; read without the lock */
  ax_status lost;            /* AX_OK, or why the transport cannot be used any more */
  char message[256];
  struct ax_together *spare; /* for what is done together besides runs, one at a time: so that no memory is needed to begin */
  pthread_mutex_t in_turn;   /* guards it */
  atomic_uint_least64_t runs, failures; /* that all have done together so far: runs; runs and others that have failed */
  ax_stalls stalls;
  ax_stall lingers;          /* of waiting for others in the end, and until they have read what was lent to them */
  atomic_bool *released;     /* by process: it has released the runtime, and all that it sent has been delivered */
  atomic_uint released_count;
} ax_processes;

/* Consumes the transport, whatever the status. of: by device, its process; NULL, with count 0: devices are in blocks.
   AX_INVALID_ARGUMENT: a process that there is not. AX_OUT_OF_MEMORY. Over MPI all fail if one does. */
AX_MUST_USE ax_status ax_processes_create(ax_transport *transport, const uint32_t *of, uint32_t count, ax_processes **out);
void ax_processes_destroy(ax_processes *processes); /* NULL is allowed */

/* Gives the receiver the next number, and all messages for it from here on. */
void ax_processes_begin(ax_processes *processes, ax_receiver *receiver);
/* How many numbers this process has given. */
uint64_t ax_processes_begun(ax_processes *processes);
ax_heard ax_processes_heard(ax_processes *processes, uint32_t process); /* so far */
/* How many messages of another process have come. */
static inline uint64_t ax_processes_came(const ax_processes *processes, uint32_t process) {
  return processes->heard[process].messages + atomic_load_explicit(&processes->taken[process].count, memory_order_relaxed);
}
/* Messages for it are dropped from here on. No thread is delivering to it once this returns. */
void ax_processes_end(ax_processes *processes, ax_receiver *receiver);
/* As those of the transport. A process that was lost once stays so. */
AX_MUST_USE ax_status ax_processes_send(ax_processes *processes, uint32_t to, const ax_envelope *envelope, const void *payload,
                                        ax_on_done *sent, void *context);
AX_MUST_USE ax_status ax_processes_lend(ax_processes *processes, uint32_t to, const ax_envelope *envelope, const void *payload,
                                        ax_loan *loan);
/* Sends what the receiver waits for: tries again for a second while there is no memory. The payload is copied. */
AX_MUST_USE ax_status ax_processes_insist(ax_processes *processes, uint32_t to, const ax_envelope *envelope, const void *payload);
AX_MUST_USE ax_status ax_processes_poll(ax_processes *processes, bool *any);
/* The same by a thread that can take messages for a receiver at once. */
AX_MUST_USE ax_status ax_processes_poll_for(ax_processes *processes, ax_receiver *receiver, bool *any);

#endif
