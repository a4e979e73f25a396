#include "processes/message_ring.h"

#include <string.h>

enum { line = 64, before = 8, to_begin = UINT32_MAX }; /* bytes: of a cache's line; of a message, before its data */

typedef _Atomic uint32_t word; /* 0: nothing is there yet; to_begin: the next message is at the beginning; else its bytes */

static word *word_at(const ax_message_ring *ring, uint64_t at) {
  return (word *)(ring->memory + AX_MESSAGE_RING_HEAD + at % ring->capacity);
}
static _Atomic uint64_t *read_so_far(const ax_message_ring *ring) { return (_Atomic uint64_t *)(void *)ring->memory; }
static uint64_t taken_by(size_t bytes) { return (before + bytes + line - 1) / line * line; }

void ax_message_ring_clear(void *memory) { memset(memory, 0, AX_MESSAGE_RING_HEAD + line); }

static bool has_room(ax_message_ring *ring, uint64_t bytes) {
  if (ring->at + bytes - ring->read <= ring->capacity) return true;
  ring->read = atomic_load_explicit(read_so_far(ring), memory_order_acquire);
  return ring->at + bytes - ring->read <= ring->capacity;
}

/* With the word behind it, a message lies in one piece. */
static bool go_to_begin(ax_message_ring *ring, uint64_t bytes) {
  const uint64_t left = ring->capacity - ring->at % ring->capacity;
  if (!has_room(ring, left + bytes)) return false;
  atomic_store_explicit(word_at(ring, 0), 0, memory_order_relaxed);
  atomic_store_explicit(word_at(ring, ring->at), to_begin, memory_order_release);
  ring->at += left;
  return true;
}

/* A message's bytes from `begin` to `end`, of two parts. */
static void copy_part(char *data, const void *head, size_t head_bytes, const void *body, size_t begin, size_t end) {
  const size_t middle = end < head_bytes ? end : head_bytes, from = begin > head_bytes ? begin : head_bytes;
  if (begin < middle) memcpy(data + begin, (const char *)head + begin, middle - begin);
  if (from < end) memcpy(data + from, (const char *)body + (from - head_bytes), end - from);
}

/* The line that the reader looks at is written last: whoever waits for the others would lose it to the reader meanwhile. */
bool ax_message_ring_write(ax_message_ring *ring, const void *head, size_t head_bytes, const void *body, size_t body_bytes) {
  const size_t all = head_bytes + body_bytes, in_first = all < line - before ? all : line - before;
  const uint64_t bytes = taken_by(all), with_word = bytes + line;
  if (ring->at % ring->capacity + with_word > ring->capacity && !go_to_begin(ring, with_word)) return false;
  if (!has_room(ring, with_word)) return false;
  word *first = word_at(ring, ring->at);
  char *data = (char *)first + before;
  ring->at += bytes;
  copy_part(data, head, head_bytes, body, in_first, all);
  atomic_store_explicit(word_at(ring, ring->at), 0, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  copy_part(data, head, head_bytes, body, 0, in_first);
  atomic_store_explicit(first, (uint32_t)all, memory_order_release);
  return true;
}

const char *ax_message_ring_peek(ax_message_ring *ring, size_t *bytes) {
  uint32_t length = atomic_load_explicit(word_at(ring, ring->at), memory_order_acquire);
  if (length == to_begin) {
    ring->at += ring->capacity - ring->at % ring->capacity;
    length = atomic_load_explicit(word_at(ring, ring->at), memory_order_acquire);
  }
  *bytes = length;
  return length == 0 ? NULL : (const char *)word_at(ring, ring->at) + before;
}

void ax_message_ring_next(ax_message_ring *ring, size_t bytes) {
  ring->at += taken_by(bytes);
  atomic_store_explicit(read_so_far(ring), ring->at, memory_order_release);
}
