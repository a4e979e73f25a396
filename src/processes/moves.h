/* What moves messages between this process and MPI, for mpi.c: buffers, the queue of what is to be sent, requests, what has
   come. */
#ifndef AX_PROCESSES_MOVES_H
#define AX_PROCESSES_MOVES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "processes/copies.h"
#include "processes/mpi/shim.h"
#include "processes/node.h"
#include "processes/transfers.h"
#include "processes/transport.h"
#include "processes/watch.h"

enum { AX_MPI_RING = 16, AX_MPI_MOST_SENDS = 64 };

typedef enum ax_wire_type {
  AX_WIRE_ENVELOPE = 1,
  AX_WIRE_REST,
  AX_WIRE_FETCH,
  AX_WIRE_FORGOTTEN,
  AX_WIRE_READ,
  AX_WIRE_END,
  AX_WIRE_LEFT
} ax_wire_type;

/* What travels first. Only an envelope has all of it, and the beginning of its short payload after it. What does not fit into one
   message follows in messages of type AX_WIRE_REST, before anything else to that process. */
typedef struct ax_wire {
  uint32_t type, slot; /* slot: of the receiver's transfer, which the tag is made of */
  uint64_t ticket;     /* of the sender's transfer */
  uint64_t pieces;     /* of a payload that is fetched */
  uint64_t address;    /* where the sender has its long payload; for processes of its node */
  uint64_t loan;       /* 0: it stays there until it has been read */
  ax_envelope envelope;
} ax_wire;
enum { AX_WIRE_SHORT = offsetof(ax_wire, envelope), AX_WIRE_LONGEST = 4000 };

/* A delivery whose payload has come in part. */
typedef struct ax_mpi_partial {
  ax_delivery *delivery; /* NULL: there is none */
  size_t filled;
} ax_mpi_partial;

/* A message that this process sends, from the call on until MPI has taken it. */
typedef struct ax_mpi_message {
  struct ax_mpi_message *next;
  uint32_t to, bytes;
  uint64_t fetch; /* not 0: the ticket of the transfer whose receives are posted before this is sent */
  bool small;     /* which pool it is of */
  ax_wire wire; /* with what follows it */
} ax_mpi_message;

/* What a request that is not complete is for. Both NULL: it is complete. */
typedef struct ax_mpi_owner {
  ax_mpi_message *message;
  ax_transfer *transfer;
} ax_mpi_owner;

/* Messages to one process. Each poll tests all that MPI has not sent yet, so it gets AX_MPI_MOST_SENDS at most, and others wait here. */
typedef struct ax_mpi_outbox {
  ax_mpi_message *first, *last; /* first NULL: none waits */
  uint32_t sending;             /* that MPI has, and has not sent yet */
} ax_mpi_outbox;

typedef struct ax_mpi_slot {
  _Alignas(16) char data[AX_WIRE_LONGEST];
  _Alignas(8) char request[AX_MPI_REQUEST_BYTES];
  bool posted, arrived; /* arrived: it has been received, and not yet been read */
  ax_mpi_arrival arrival;
} ax_mpi_slot;

/* What a poll has found, which is handed over after `ax_mpi_calls` is released. */
typedef struct ax_mpi_found {
  ax_delivery *first, *last;
  ax_transfer *done;
  bool ended; /* a process has sent its last message */
} ax_mpi_found;

typedef enum ax_peer_state { AX_PEER_HERE, AX_PEER_ENDED, AX_PEER_GONE } ax_peer_state;

typedef struct ax_mpi {
  ax_transport transport;
  const ax_mpi_shim *shim;
  ax_mpi_communicator *communicator;
  ax_mpi_place place;
  struct ax_mpi *next; /* open transports */

  atomic_flag polling;
  atomic_bool failed;  /* `reason` is set, and does not change any more */
  atomic_bool stopped; /* nothing of this transport calls MPI any more */
  char reason[AX_MPI_TEXT + 64];

  /* `tables` guards these. It is held for a few instructions, and taken after `ax_mpi_calls` by those who take both. */
  pthread_mutex_t tables;
  ax_mpi_message *_Atomic first; /* the queue; read without the lock to see whether there is anything in it */
  ax_mpi_message *last;
  ax_mpi_message *pools[2]; /* free buffers: small, large */
  uint32_t pooled[2];
  ax_transfers outgoing, incoming;
  ax_loans loans;   /* those of `outgoing` that are lent */
  ax_copies copies; /* has a lock of its own, taken last */

  /* `ax_mpi_calls` guards these; `peers`, `partial` and `found` are guarded by `polling` for those who poll without it. */
  ax_mpi_slot *ring;
  uint32_t head;
  char *requests;
  ax_mpi_owner *owners;
  int *results; /* of test_some: indices, then errors */
  uint32_t pending, requests_capacity, owners_capacity, results_capacity;
  _Atomic uint8_t *peers; /* ax_peer_state; read by senders too */
  ax_mpi_partial *partial; /* of each process */
  ax_mpi_outbox *outboxes; /* likewise */
  uint32_t waiting;        /* messages in all of them */
  _Atomic uint32_t here;   /* how many others are */
  bool closing;           /* what comes is not delivered any more */
  atomic_bool unswept;    /* transfers of a process that is gone have not ended yet */
  ax_mpi_found found;
  ax_node_watch *watch;  /* of the processes of this node */
  ax_node *node;         /* messages between them that need no MPI; NULL: all do */
  bool node_reads;       /* all processes of this node read each other's memory */
  bool all_near;         /* and no other process is elsewhere, so nothing goes by MPI */
  uint32_t idle;    /* rounds in which nothing came */
  uint32_t suspect; /* a process that has ended, perhaps after its last message; AX_NONE: none */
  double looked;    /* when */
} ax_mpi;

/* Guards MPI: one for all transports, because a library may allow only one thread at a time (MPI_THREAD_SERIALIZED). */
extern pthread_mutex_t ax_mpi_calls;

/* --- Opening (opening.c), holding `ax_mpi_calls`. All processes of the communicator do it together --- */

/* AX_OUT_OF_MEMORY, AX_UNAVAILABLE: the same in all processes, with the message of the first that has failed; unless it is MPI that
   fails. */
AX_MUST_USE ax_status ax_mpi_open(const ax_mpi_shim *shim, const void *communicator, ax_mpi **out);
/* Gives all processes the status of the first that has not AX_OK, and its message. Returns a code of MPI, of which *status is made if
   it is not 0. */
int ax_mpi_agree(const ax_mpi_shim *shim, ax_mpi_communicator *communicator, const ax_mpi_place *place, ax_status *status);
void ax_mpi_free(ax_mpi *m); /* this process's memory; NULL is allowed */

/* --- Any thread, holding nothing --- */

/* AX_UNAVAILABLE: the process is gone, or MPI does not work any more. */
AX_MUST_USE ax_status ax_mpi_check(const ax_mpi *m, uint32_t peer);
AX_MUST_USE ax_status ax_mpi_failure(const ax_mpi *m); /* AX_UNAVAILABLE: something has failed */
/* Sends a message with a copy of the payload, if that is not NULL: to a process of this node, or by MPI. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_mpi_tell(ax_mpi *m, uint32_t to, const ax_wire *what, const void *payload);
/* Takes a transfer out of its table; its loan is over. `tables` is held, as for the next one. */
void ax_mpi_take_out(ax_mpi *m, ax_transfer *transfer);
void ax_mpi_end_loans(ax_mpi *m, const ax_transfer *list); /* of transfers that have been taken out */
/* A message with a copy of the payload, if it is not NULL, and the messages that have the rest of it. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_mpi_message_make(ax_mpi *m, uint32_t to, const ax_wire *what, const void *payload, ax_mpi_message **out);
void ax_mpi_message_free(ax_mpi *m, ax_mpi_message *one); /* without its rest */
void ax_mpi_message_push(ax_mpi *m, ax_mpi_message *one); /* into the queue, with its rest */
/* Sends what is in the queue, unless another thread holds `ax_mpi_calls`: then that one does. */
void ax_mpi_pump(ax_mpi *m);
uint32_t ax_mpi_pieces(uint64_t bytes); /* of a long payload */

/* --- Holding `ax_mpi_calls` --- */

/* Sends and receives what can be, without waiting. What it finds is in m->found, for the caller to hand over. AX_OUT_OF_MEMORY:
   nothing is lost, and the next call goes on. */
AX_MUST_USE ax_status ax_mpi_move(ax_mpi *m, bool *any);
/* For the thread that polls: there may be something to do for which MPI is called, or for which nobody may call it meanwhile. */
bool ax_mpi_wants_calls(const ax_mpi *m);
/* As much of that as needs no MPI, without holding `ax_mpi_calls`: messages through shared memory. What needs MPI comes again. */
void ax_mpi_move_near(ax_mpi *m, bool *any);
void ax_mpi_start_receiving(ax_mpi *m);
void ax_mpi_stop_receiving(ax_mpi *m);
void ax_mpi_tell_others(ax_mpi *m, ax_wire_type type); /* into the queue */
/* MPI_Finalize has been called, and MPI still works: the others are told. */
void ax_mpi_leave(ax_mpi *m);

#endif
