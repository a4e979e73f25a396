/* A ring of messages in memory that two processes share: one writes, the other reads, and neither waits for the other or locks.

     memory   | read so far |  ... free ...  | 88 bytes | 4000 bytes | 0 |  ... free ...  |
              a line of its own              ^ next to be read       ^ next to be written

   Each message begins at a line of the caches, with a word that says how long its two parts are: a short one is one line, and nobody who
   looks for the next touches it. The writer sets it last, and has set the word behind the message to 0 before, so the reader needs no
   other word to see what is there. The body of a longer one begins at a line too, since what begins in the middle of one takes longer to
   copy. A message that does not fit before the end of the ring begins at its beginning again; the word then says so.

     | word | head | body |          | word | head | .. | body ..      .. |     lines of 64 bytes
*/
#ifndef AX_PROCESSES_MESSAGE_RING_H
#define AX_PROCESSES_MESSAGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AX_MESSAGE_RING_HEAD = 64 };

/* What a ring takes of shared memory, aligned to 64 bytes. capacity: bytes for messages, a multiple of 64; the longest message has
   at most a half of it less 192 bytes. */
static inline size_t ax_message_ring_bytes(uint32_t capacity) { return AX_MESSAGE_RING_HEAD + capacity; }
/* Empties the memory of a ring, before any other process uses it. */
void ax_message_ring_clear(void *memory);

/* One side of a ring: its own memory. Used by one thread at a time. */
typedef struct ax_message_ring {
  char *memory;
  uint32_t capacity;
  uint32_t place; /* of the next message, in the capacity */
  uint64_t at;    /* bytes that this side has written or read */
  uint64_t read;  /* by the other side, when the writer looked last */
} ax_message_ring;

static inline ax_message_ring ax_message_ring_of(void *memory, uint32_t capacity) {
  return (ax_message_ring){.memory = memory, .capacity = capacity};
}

/* Whether a message has come, for the side that reads: all that a look for the next one costs. */
static inline bool ax_message_ring_has_come(const ax_message_ring *ring) {
  return atomic_load_explicit((_Atomic uint32_t *)(void *)(ring->memory + AX_MESSAGE_RING_HEAD + ring->place), memory_order_relaxed) != 0;
}
/* A message: a head of 1 to AX_MESSAGE_RING_LONGEST_HEAD bytes, and a body. */
enum { AX_MESSAGE_RING_LONGEST_HEAD = 254 };
typedef struct ax_ring_message {
  const void *head, *body;
  uint32_t head_bytes, body_bytes;
} ax_ring_message;
/* Returns false if there is no room for it now. */
bool ax_message_ring_write(ax_message_ring *ring, const ax_ring_message *message);
/* The next message, whose parts stay until ax_message_ring_next. Returns false if there is none. */
bool ax_message_ring_peek(ax_message_ring *ring, ax_ring_message *out);
void ax_message_ring_next(ax_message_ring *ring, const ax_ring_message *message);

#endif
