/* Rings: order and bytes of messages of all lengths, with one side slower than the other, around the end many times. */
#include "processes/message_ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

enum { capacity = 1024, longest = capacity / 2 - 192, messages = 5000 };

static char *make(void) {
  char *memory = aligned_alloc(64, ax_message_ring_bytes(capacity));
  assert_non_null(memory);
  memset(memory, 0x5a, ax_message_ring_bytes(capacity));
  ax_message_ring_clear(memory);
  return memory;
}

static size_t length_of(uint32_t i) { return 1 + (i * 2654435761u >> 7) % longest; }
static void fill(char *data, uint32_t i) {
  for (size_t k = 0; k < length_of(i); k++) data[k] = (char)(i * 31 + k * 7);
}

static uint32_t head_of(uint32_t i) { return 1 + (uint32_t)(length_of(i) - 1) / 3; }

static bool write_one(ax_message_ring *ring, uint32_t i) {
  char data[longest];
  fill(data, i);
  const uint32_t head = head_of(i);
  return ax_message_ring_write(ring, &(ax_ring_message){data, data + head, head, (uint32_t)length_of(i) - head});
}
/* A body that is not in its head's line begins at one. */
static bool read_one(ax_message_ring *ring, uint32_t i) {
  char expected[longest];
  ax_ring_message m;
  const bool any = ax_message_ring_peek(ring, &m);
  if (any) assert_true(ax_message_ring_has_come(ring));
  if (!any) return false;
  fill(expected, i);
  assert_int_equal(m.head_bytes, head_of(i));
  assert_int_equal(m.head_bytes + m.body_bytes, length_of(i));
  assert_memory_equal(m.head, expected, m.head_bytes);
  assert_memory_equal(m.body, expected + m.head_bytes, m.body_bytes);
  if (length_of(i) > 64 - 8) assert_int_equal((uintptr_t)m.body % 64, 0);
  ax_message_ring_next(ring, &m);
  return true;
}

static void *write_all(void *memory) {
  ax_message_ring ring = ax_message_ring_of(memory, capacity);
  for (uint32_t i = 0; i < messages; i++)
    while (!write_one(&ring, i)) sched_yield();
  return NULL;
}

static void what_is_written_is_read(void **state) {
  (void)state;
  pthread_t writer;
  char *memory = make();
  ax_message_ring ring = ax_message_ring_of(memory, capacity);
  assert_int_equal(pthread_create(&writer, NULL, write_all, memory), 0);
  for (uint32_t i = 0; i < messages; i++)
    while (!read_one(&ring, i)) sched_yield();
  pthread_join(writer, NULL);
  ax_ring_message m;
  assert_false(ax_message_ring_has_come(&ring));
  assert_false(ax_message_ring_peek(&ring, &m));
  free(memory);
}

/* In one thread: as full as can be, and empty, at every place. */
static void full_and_empty(void **state) {
  (void)state;
  char *memory = make();
  ax_message_ring out = ax_message_ring_of(memory, capacity), in = out;
  uint32_t written = 0, read = 0;
  test_random random = {17};
  for (uint32_t turn = 0; turn < 5000; turn++) {
    while (write_one(&out, written)) written++;
    assert_true(written > read);
    for (uint32_t most = test_random_below(&random, 6); most > 0 && read_one(&in, read); most--) read++;
    if (test_random_below(&random, 5) > 0) continue;
    while (read_one(&in, read)) read++;
    assert_int_equal(read, written);
  }
  free(memory);
}

/* Whatever is the place in an empty ring, the longest message fits. */
static void the_longest_always_fits(void **state) {
  (void)state;
  char data[longest] = {0};
  for (uint32_t first = 1; first < longest; first += 16)
    for (uint32_t head = 1; head <= AX_MESSAGE_RING_LONGEST_HEAD; head += 11) {
      char *memory = make();
      ax_message_ring out = ax_message_ring_of(memory, capacity), in = out;
      ax_ring_message m;
      for (int turn = 0; turn < 8; turn++) {
        const uint32_t body = turn % 2 == 0 ? first : longest - head;
        assert_true(ax_message_ring_write(&out, &(ax_ring_message){data, data, turn % 2 == 0 ? 1 : head, body}));
        assert_true(ax_message_ring_peek(&in, &m));
        ax_message_ring_next(&in, &m);
      }
      free(memory);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read),
      cmocka_unit_test(full_and_empty),
      cmocka_unit_test(the_longest_always_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
