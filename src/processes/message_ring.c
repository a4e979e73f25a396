#include "processes/message_ring.h"

#include <string.h>

enum { line = 64, before = 8, in_one_line = line - before, to_begin = UINT32_MAX }; /* bytes: of a cache's line; of a message, before its
                                                                                          head; of a message of one line, behind that */

/* 0: nothing is there yet; to_begin: the next message is at the beginning; else the bytes of its body, and above them those of its head */
typedef _Atomic uint32_t word;
enum { bits_of_body = 24 };

static word *word_at(const ax_message_ring *ring, uint64_t place) {
  return (word *)(void *)(ring->memory + AX_MESSAGE_RING_HEAD + place);
}
static _Atomic uint64_t *read_so_far(const ax_message_ring *ring) { return (_Atomic uint64_t *)(void *)ring->memory; }
static uint32_t in_lines(uint32_t bytes) { return (bytes + line - 1) / line * line; }
/* Where the body of a message begins, from its first line on. */
static uint32_t body_at(uint32_t head_bytes, uint32_t body_bytes) {
  return head_bytes + body_bytes <= in_one_line ? before + head_bytes : in_lines(before + head_bytes);
}
static uint32_t taken_by(uint32_t head_bytes, uint32_t body_bytes) { return in_lines(body_at(head_bytes, body_bytes) + body_bytes); }

/* A message never ends at the end of the ring, for the word behind it. */
static void go_on(ax_message_ring *ring, uint64_t bytes) {
  ring->at += bytes;
  ring->place += (uint32_t)bytes;
}
static void go_round(ax_message_ring *ring) {
  ring->at += ring->capacity - ring->place;
  ring->place = 0;
}

void ax_message_ring_clear(void *memory) { memset(memory, 0, AX_MESSAGE_RING_HEAD + line); }

static bool has_room(ax_message_ring *ring, uint64_t bytes) {
  if (ring->at + bytes - ring->read <= ring->capacity) return true;
  ring->read = atomic_load_explicit(read_so_far(ring), memory_order_acquire);
  return ring->at + bytes - ring->read <= ring->capacity;
}

/* With the word behind it, a message lies in one piece. */
static bool begin_again(ax_message_ring *ring, uint64_t bytes) {
  if (!has_room(ring, ring->capacity - ring->place + bytes)) return false;
  atomic_store_explicit(word_at(ring, 0), 0, memory_order_relaxed);
  atomic_store_explicit(word_at(ring, ring->place), to_begin, memory_order_release);
  go_round(ring);
  return true;
}

/* Most heads, and many bodies, are a few bytes: a call takes longer. */
static inline void copy(char *to, const char *from, size_t bytes) {
  if (bytes > 16 || bytes < 4) {
    if (bytes > 0) memcpy(to, from, bytes);
  } else if (bytes >= 8) {
    uint64_t first, last;
    memcpy(&first, from, 8), memcpy(&last, from + bytes - 8, 8);
    memcpy(to, &first, 8), memcpy(to + bytes - 8, &last, 8);
  } else {
    uint32_t first, last;
    memcpy(&first, from, 4), memcpy(&last, from + bytes - 4, 4);
    memcpy(to, &first, 4), memcpy(to + bytes - 4, &last, 4);
  }
}

/* The line that the reader looks at is written last: whoever waits for the others would lose it to the reader meanwhile. */
bool ax_message_ring_write(ax_message_ring *ring, const ax_ring_message *m) {
  const uint32_t at = body_at(m->head_bytes, m->body_bytes), bytes = taken_by(m->head_bytes, m->body_bytes);
  const uint64_t with_word = (uint64_t)bytes + line;
  if (ring->place + with_word > ring->capacity && !begin_again(ring, with_word)) return false;
  if (!has_room(ring, with_word)) return false;
  word *first = word_at(ring, ring->place);
  go_on(ring, bytes);
  if (at >= line) copy((char *)first + at, m->body, m->body_bytes);
  atomic_store_explicit(word_at(ring, ring->place), 0, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  copy((char *)first + before, m->head, m->head_bytes);
  if (at < line) copy((char *)first + at, m->body, m->body_bytes);
  atomic_store_explicit(first, m->head_bytes << bits_of_body | m->body_bytes, memory_order_release);
  return true;
}

bool ax_message_ring_peek(ax_message_ring *ring, ax_ring_message *out) {
  uint32_t length = atomic_load_explicit(word_at(ring, ring->place), memory_order_acquire);
  if (length == to_begin) {
    go_round(ring);
    length = atomic_load_explicit(word_at(ring, 0), memory_order_acquire);
  }
  if (length == 0) return false;
  const char *first = (const char *)word_at(ring, ring->place);
  out->head_bytes = length >> bits_of_body;
  out->body_bytes = length & ((1u << bits_of_body) - 1);
  out->head = first + before;
  out->body = first + body_at(out->head_bytes, out->body_bytes);
  return true;
}

void ax_message_ring_next(ax_message_ring *ring, const ax_ring_message *message) {
  go_on(ring, taken_by(message->head_bytes, message->body_bytes));
  atomic_store_explicit(read_so_far(ring), ring->at, memory_order_release);
}
