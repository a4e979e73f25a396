/* Rings: order and bytes of messages of all lengths, with one side slower than the other, around the end many times. */
#include "processes/message_ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

enum { capacity = 1024, longest = capacity / 2 - 128, messages = 5000 };

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

static bool write_one(ax_message_ring *ring, uint32_t i) {
  char data[longest];
  fill(data, i);
  const size_t head = length_of(i) / 3;
  return ax_message_ring_write(ring, data, head, data + head, length_of(i) - head);
}
static bool read_one(ax_message_ring *ring, uint32_t i) {
  char expected[longest];
  size_t bytes;
  const char *data = ax_message_ring_peek(ring, &bytes);
  if (data == NULL) return false;
  fill(expected, i);
  assert_int_equal(bytes, length_of(i));
  assert_memory_equal(data, expected, bytes);
  ax_message_ring_next(ring, bytes);
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
  size_t bytes;
  assert_null(ax_message_ring_peek(&ring, &bytes));
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
  for (size_t first = 1; first < longest; first += 16) {
    char *memory = make();
    ax_message_ring out = ax_message_ring_of(memory, capacity), in = out;
    size_t bytes;
    for (int turn = 0; turn < 8; turn++) {
      assert_true(ax_message_ring_write(&out, data, turn % 2 == 0 ? first : longest, NULL, 0));
      assert_non_null(ax_message_ring_peek(&in, &bytes));
      ax_message_ring_next(&in, bytes);
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
