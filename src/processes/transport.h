/* Messages between the processes that one mesh is spread over.

   A transport moves messages; it knows nothing of runs or devices. There are two: by MPI (mpi.h), and within one program, for tests
   (within.h). A message is an envelope and a payload of any number of bytes. Messages from one process to another are delivered in
   the order in which they were sent.

   A short payload, of at most AX_SHORT_PAYLOAD bytes or what else the transport sends at once, travels with its envelope. A long
   one stays with its sender until the receiver has said where it goes, so it is received in its place and never copied in between.

     sender      send ----- envelope, short payload ------> deliver
                 send ----- envelope ---------------------> deliver .. fetch
                            <------------------------------
                 sent  ---- long payload -----------------> fetched

   A process may be able to read the memory of another one on its machine. Then it reads long payloads where they lie, and needs no
   memory of its own for them. A sender that will soon need its memory again lends it: the payload is copied only if nobody has
   begun to read it by the time that the sender settles the loan.

   Threads. Any thread may call any function. Nothing here blocks. Messages move only while some thread polls; one thread at a time
   does, and a poll by another one returns at once. The functions that a poll calls (deliver, sent, fetched) may send and fetch, but
   not poll. */
#ifndef AX_PROCESSES_TRANSPORT_H
#define AX_PROCESSES_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/status.h"
#include "machine/rates.h"

enum { AX_SHORT_PAYLOAD = AX_NETWORK_SHORT };

typedef struct ax_envelope {
  uint64_t run;  /* the number of the run that the message is for; 0: for no run */
  uint64_t bytes; /* of the payload */
  uint64_t check; /* a digest of what its sender does (together.h) */
  uint64_t words[3]; /* the rest is its reader's */
  uint32_t kind, place, group, member;
} ax_envelope;

/* A message that has come. It belongs to who it was delivered to, who ends with ax_delivery_free. */
typedef struct ax_delivery {
  ax_envelope envelope;
  uint32_t from;            /* process */
  void *payload;            /* NULL: there is none, or it is long and has not been fetched */
  uint64_t ticket;          /* the transport's */
  uint64_t address;         /* of a long payload, at its sender, if this process can read it there; 0: it cannot */
  uint64_t loan;            /* the transport's; 0: what lies there is not lent */
  uint32_t size;            /* which memory it has, of those that are kept (transport.c) */
  bool fetched;             /* it comes again, with its long payload (together.h) */
  struct ax_delivery *next; /* for lists of its owner */
} ax_delivery;
/* short_payload: a copy of the payload goes with it; NULL: room for it. For transports. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_delivery_make(const ax_envelope *envelope, uint32_t from, bool short_payload, const void *payload,
                                       ax_delivery **out);
/* It has a payload, which is long and has not come. */
static inline bool ax_delivery_is_away(const ax_delivery *delivery) {
  return delivery->envelope.bytes > 0 && delivery->payload == NULL;
}
void ax_delivery_free(ax_delivery *delivery); /* NULL is allowed; with its payload, if that is set */
/* Between these two a process keeps the memory of some short deliveries for the next. For transports. */
void ax_deliveries_use(void);
void ax_deliveries_leave(void);
/* A list of deliveries, linked by `next`. Zero-initialise to start. */
typedef struct ax_deliveries {
  ax_delivery *first, *last; /* first NULL: it is empty, and `last` means nothing */
} ax_deliveries;
/* Adds one behind `before`, which is in the list (NULL: as the first); or behind all others. */
void ax_deliveries_insert(ax_deliveries *list, ax_delivery *before, ax_delivery *delivery);
void ax_deliveries_add(ax_deliveries *list, ax_delivery *delivery);
/* Takes out the one behind `before` (NULL: the first). NULL: there is none. */
ax_delivery *ax_deliveries_take(ax_deliveries *list, ax_delivery *before);
void ax_deliveries_free(ax_deliveries *list); /* frees all, and leaves the list empty */

/* A long payload that is lent to its receiver. */
typedef struct ax_loan {
  uint32_t to;
  uint64_t ticket; /* the transport's; 0: the payload was copied, and nothing is to be settled */
} ax_loan;

typedef void ax_on_done(void *context);
typedef struct ax_transport ax_transport;

typedef struct ax_transport_functions {
  /* Begins to send a message to another process. `sent` NULL, or a short payload: the payload is copied before the call returns.
     Otherwise it must stay as it is until sent(context) is called, by a poll of any thread; it is called for short payloads too,
     before send returns or later. AX_OUT_OF_MEMORY. AX_UNAVAILABLE: that process is gone. On failure `sent` is not called. */
  ax_status (*send)(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                    void *context);
  /* Sends a message with a long payload that stays as it is until `settle`. Without a failure, that must follow. As `send`. */
  ax_status (*lend)(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_loan *loan);
  bool (*is_returned)(ax_transport *transport, const ax_loan *loan); /* `settle` will have nothing to copy */
  /* Copies the payload unless it is being read, or has been; then waits until it has been. The memory is the caller's again in any
     case. AX_OUT_OF_MEMORY: the receiver does not get it. */
  ax_status (*settle)(ax_transport *transport, ax_loan *loan);
  /* Receives the long payload of a message into memory that stays until fetched(context) is called, by a poll of any thread or
     before fetch returns. It is called too, with the memory undefined, if the payload does not come: because the sender is gone, or
     has forgotten it (what it sent before it forgot, such as the word that the run has failed, is delivered first).
     AX_OUT_OF_MEMORY; AX_UNAVAILABLE. */
  ax_status (*fetch)(ax_transport *transport, const ax_delivery *delivery, void *into, ax_on_done *fetched, void *context);
  /* Instead of `fetch`, for a payload with an address: copies bytes of it, and says that it has been read and may go.
     AX_UNAVAILABLE: its sender is gone. If the sender has forgotten it, the memory is undefined. */
  ax_status (*read)(ax_transport *transport, const ax_delivery *delivery, size_t offset, void *into, size_t bytes);
  /* The same without a copy: where this process sees the payload, as long as it has not released it. NULL: it has to be read. */
  const void *(*see)(ax_transport *transport, const ax_delivery *delivery);
  ax_status (*release)(ax_transport *transport, const ax_delivery *delivery); /* AX_OUT_OF_MEMORY; AX_UNAVAILABLE */
  /* Moves messages on, and delivers what has come. *any: something happened. AX_UNAVAILABLE: a process is gone, which the message
     names; AX_OUT_OF_MEMORY. */
  ax_status (*poll)(ax_transport *transport, bool *any);
  /* Ends all sends of a run whose long payloads were not fetched: `sent` is called for each. For runs that have failed. */
  void (*forget)(ax_transport *transport, uint64_t run);
  /* Waits until all messages that this process has sent are on their way, and frees the transport. Collective. */
  void (*destroy)(ax_transport *transport);
} ax_transport_functions;

/* What is known of a process besides its messages, for reports. */
typedef struct ax_process_seen {
  int32_t pid;  /* 0: nothing is known to the system */
  bool stopped; /* by a signal, or by a debugger */
  uint64_t coming, going; /* bytes of long payloads that have been asked for and have not ended: from there, and to there */
} ax_process_seen;

struct ax_transport {
  const ax_transport_functions *functions;
  uint32_t process, processes; /* this one's number, and how many there are */
  uint32_t beside;             /* how many of them are on this one's machine, itself included; 0: not known */
  /* Writes a file that is there, in which each process has bytes of its own at a place of its own. `most`: the most that any
     process has. All must call it, one time after the other, and it waits for them. AX_IO_ERROR. NULL: the transport has no files. */
  ax_status (*write_file)(ax_transport *transport, const char *path, uint64_t place, const void *data, size_t bytes, size_t most);
  /* Before the first message. Gives all processes the status of the first that has not AX_OK, and its message. All must call it, and
     it waits for them. AX_UNAVAILABLE. NULL: each process keeps its own. */
  ax_status (*agree)(ax_transport *transport, ax_status status);
  /* Set by the owner before the first poll. Gets each message that has come, which then belongs to it. */
  void (*deliver)(void *context, ax_delivery *delivery);
  void *deliver_context;
  /* Takes a message with a short payload where the transport has it, which is there for the time of the call. All that came before has
     been delivered. Returns false: the message is to be delivered too. NULL: not called. */
  bool (*take_here)(void *deliver_context, uint32_t from, const ax_envelope *envelope, const void *payload);
  /* `destroy` or `settle` still waits for a process; called over and over. where: "in ax_runtime_release"; what: 0, or the loan's
     ticket. NULL: not called. */
  void (*lingers)(void *deliver_context, const char *where, uint64_t what, uint32_t process);
  void (*released)(void *deliver_context, uint32_t process); /* all of its messages have been delivered, its last too. NULL: not called */
  void (*look_at)(ax_transport *transport, uint32_t process, ax_process_seen *out); /* NULL: nothing is known of others */
};

static inline ax_status ax_transport_agree(ax_transport *transport, ax_status status) {
  return transport->agree != NULL ? transport->agree(transport, status) : status;
}

#endif
