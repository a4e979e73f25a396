#include "processes/message_ring.h"

#include <string.h>

enum { align = 16, to_begin = UINT32_MAX };

typedef _Atomic uint32_t word; /* 0: nothing is there yet; to_begin: the next message is at the beginning; else its bytes */

static word *word_at(const ax_message_ring *ring, uint64_t at) {
  return (word *)(ring->memory + AX_MESSAGE_RING_HEAD + at % ring->capacity);
}
static _Atomic uint64_t *read_so_far(const ax_message_ring *ring) { return (_Atomic uint64_t *)(void *)ring->memory; }
static uint64_t taken_by(size_t bytes) { return (align + bytes + align - 1) / align * align; }

void ax_message_ring_clear(void *memory) { memset(memory, 0, AX_MESSAGE_RING_HEAD + align); }

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

bool ax_message_ring_write(ax_message_ring *ring, const void *head, size_t head_bytes, const void *body, size_t body_bytes) {
  const uint64_t bytes = taken_by(head_bytes + body_bytes), with_word = bytes + align;
  if (ring->at % ring->capacity + with_word > ring->capacity && !go_to_begin(ring, with_word)) return false;
  if (!has_room(ring, with_word)) return false;
  word *first = word_at(ring, ring->at);
  char *data = (char *)first + align;
  memcpy(data, head, head_bytes);
  if (body_bytes > 0) memcpy(data + head_bytes, body, body_bytes);
  ring->at += bytes;
  atomic_store_explicit(word_at(ring, ring->at), 0, memory_order_relaxed);
  atomic_store_explicit(first, (uint32_t)(head_bytes + body_bytes), memory_order_release);
  return true;
}

const char *ax_message_ring_peek(ax_message_ring *ring, size_t *bytes) {
  uint32_t length = atomic_load_explicit(word_at(ring, ring->at), memory_order_acquire);
  if (length == to_begin) {
    ring->at += ring->capacity - ring->at % ring->capacity;
    length = atomic_load_explicit(word_at(ring, ring->at), memory_order_acquire);
  }
  *bytes = length;
  return length == 0 ? NULL : (const char *)word_at(ring, ring->at) + align;
}

void ax_message_ring_next(ax_message_ring *ring, size_t bytes) {
  ring->at += taken_by(bytes);
  atomic_store_explicit(read_so_far(ring), ring->at, memory_order_release);
}
