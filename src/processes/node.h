/* What the processes of one node do without MPI: messages through rings in memory that they share (message_ring.h), and reading
   each other's memory. */
#ifndef AX_PROCESSES_NODE_H
#define AX_PROCESSES_NODE_H

#include "base/base.h"
#include "machine/rates.h"
#include "processes/loans.h"
#include "processes/shared_memory.h"
#include "processes/watch.h"

/* What each process tells the others of its node. */
typedef struct ax_node_word {
  ax_node_watch_name name;
  uint64_t shares;         /* 0: it has got no shared memory */
  uint64_t address, value; /* what another process reads at this address if it reads the memory of the right one */
  ax_shared_memory_name memory;
} ax_node_word;

/* Bytes of shared memory for each of `count` processes: the slots of its loans, and the rings that others write to it. 0: they are
   too many. */
size_t ax_node_part_bytes(uint32_t count);
/* Empties them, before others are told of it. */
void ax_node_part_clear(void *part, uint32_t count);
/* What this process tells. shares: its part is there, and empty. The word must be told to all before ax_node_create. */
ax_node_word ax_node_word_of_me(uint32_t process, bool shares);

typedef struct ax_node ax_node;
/* parts, words: of each, in one order. NULL if not all share memory. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_node_create(void *const *parts, const ax_node_word *words, uint32_t count, uint32_t process,
                                     ax_node **out);
void ax_node_destroy(ax_node *node); /* NULL is allowed */

/* Any thread. Whether a process is another one of this node. */
bool ax_node_has(const ax_node *node, uint32_t process); /* node NULL: false */
/* Any thread. Sends a message of a head (a multiple of 4 bytes, at most AX_HEAD_BYTES) and a body of at most AX_NODE_PAYLOAD bytes; one
   that finds no room is copied, and goes with a later poll. AX_OUT_OF_MEMORY. AX_UNAVAILABLE: after ax_node_close. */
enum { AX_NODE_PAYLOAD = AX_HOST_SHORT, AX_NODE_LONGEST = AX_NODE_PAYLOAD + 512 };
AX_MUST_USE ax_status ax_node_send(ax_node *node, uint32_t to, const void *head, size_t head_bytes, const void *body,
                                   size_t body_bytes);
bool ax_node_is_sending(const ax_node *node); /* some message has found no room yet */
/* One thread at a time. Sends what has found no room, and handles what has come, in the order of each sender. A message that could
   not be handled comes again, and its sender's others with it; the status is the first of these. */
typedef struct ax_node_message {
  const void *head; /* aligned to 8 bytes */
  size_t head_bytes;
  const char *body;
  size_t body_bytes;
  bool goes_on; /* set by who handles it: something can go on now, and what else has come from its sender is left to the next poll */
} ax_node_message;
typedef ax_status ax_on_node_message(void *context, uint32_t from, ax_node_message *message);
AX_MUST_USE ax_status ax_node_poll(ax_node *node, ax_on_node_message *handle, void *context, bool *any);
void ax_node_flush(ax_node *node);                  /* any thread: sends what has found no room, as far as there is room now */
void ax_node_lose(ax_node *node, uint32_t process); /* it is gone: what is sent to it is dropped */
void ax_node_close(ax_node *node);                  /* from here on nothing touches the shared memory */

/* The slots of the loans of a process: this one, or another of this node. */
ax_loan_slot *ax_node_loans(const ax_node *node, uint32_t process);

/* Whether this process can read the memory of another one, and reads it. AX_UNAVAILABLE: that process is gone, or cannot be read any
   more. *there false: it has given that memory back to the system, and nothing is read. */
bool ax_node_reads(const ax_node *node, uint32_t process);
AX_MUST_USE ax_status ax_node_read(const ax_node *node, uint32_t process, uint64_t address, void *into, size_t bytes, bool *there);
/* Where this process sees memory of another one. NULL: it does not, and has to read it. */
const void *ax_node_see(const ax_node *node, uint32_t process, uint64_t address, size_t bytes);

#endif
