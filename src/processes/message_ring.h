/* A ring of messages in memory that two processes share: one writes, the other reads, and neither waits for the other or locks.

     memory   | read so far |  ... free ...  | 88 bytes | 4000 bytes | 0 |  ... free ...  |
              a line of its own              ^ next to be read       ^ next to be written

   Each message begins at a line of the caches, with a word that says how long it is: a short one is one line, and nobody who looks for the
   next touches it. The writer sets it last, and has set the word behind the message to 0
   before, so the reader needs no other word to see what is there. A message that does not fit before the end of the ring begins at
   its beginning again; the word then says so. */
#ifndef AX_PROCESSES_MESSAGE_RING_H
#define AX_PROCESSES_MESSAGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AX_MESSAGE_RING_HEAD = 64 };

/* What a ring takes of shared memory, aligned to 64 bytes. capacity: bytes for messages, a multiple of 64; the longest message has
   at most a half of it less 128 bytes. */
static inline size_t ax_message_ring_bytes(uint32_t capacity) { return AX_MESSAGE_RING_HEAD + capacity; }
/* Empties the memory of a ring, before any other process uses it. */
void ax_message_ring_clear(void *memory);

/* One side of a ring: its own memory. Used by one thread at a time. */
typedef struct ax_message_ring {
  char *memory;
  uint32_t capacity;
  uint64_t at;   /* bytes that this side has written or read */
  uint64_t read; /* by the other side, when the writer looked last */
} ax_message_ring;

static inline ax_message_ring ax_message_ring_of(void *memory, uint32_t capacity) {
  return (ax_message_ring){.memory = memory, .capacity = capacity};
}

/* Writes a message of two parts. Returns false if there is no room for it now. */
bool ax_message_ring_write(ax_message_ring *ring, const void *head, size_t head_bytes, const void *body, size_t body_bytes);
/* The next message, which stays until ax_message_ring_next. NULL: there is none. */
const char *ax_message_ring_peek(ax_message_ring *ring, size_t *bytes);
void ax_message_ring_next(ax_message_ring *ring, size_t bytes);

#endif
