/* Processes of one node, as threads of the test that share memory of the test: messages, queues, reading memory, who is gone. */
#include "processes/node.h"

#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"

enum { most = 3, line = 64, beside = 8 }; /* beside: bytes by which parts lie beside a cache's lines, as those of MPI do */

typedef struct node_of_test {
  uint32_t count;
  char *memory;
  void *parts[most];
  ax_node_word words[most];
  ax_node *nodes[most];
} node_of_test;

static const uint32_t process_of[most] = {2, 5, 7}; /* among those of several nodes */

static void make(node_of_test *t, uint32_t count) {
  const size_t bytes = ax_node_part_bytes(count);
  t->count = count;
  t->memory = aligned_alloc(line, count * bytes + line);
  assert_non_null(t->memory);
  memset(t->memory, 0x77, count * bytes + line);
  for (uint32_t i = 0; i < count; i++) {
    t->parts[i] = t->memory + beside + i * bytes;
    ax_node_part_clear(t->parts[i], count);
    t->words[i] = ax_node_word_of_me(process_of[i], true);
  }
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(ax_node_create(t->parts, t->words, count, process_of[i], &t->nodes[i]), AX_OK);
    assert_non_null(t->nodes[i]);
    for (uint32_t k = 0; k < count; k++) assert_int_equal((uintptr_t)ax_node_loans(t->nodes[i], process_of[k]) % line, 0);
  }
  for (size_t i = beside; i < line; i++) assert_int_equal(t->memory[count * bytes + i], 0x77); /* what is behind them is left alone */
}
static void destroy(node_of_test *t) {
  for (uint32_t i = 0; i < t->count; i++) ax_node_destroy(t->nodes[i]);
  free(t->memory);
}

typedef struct expected {
  uint32_t from, next;
  int refuse; /* this often */
} expected;

static char body_of_test[AX_NODE_PAYLOAD];

static ax_status check(void *context, uint32_t from, ax_node_message *message) {
  expected *e = context;
  if (e->refuse > 0) {
    e->refuse--;
    return ax_out_of_memory(1);
  }
  assert_int_equal(from, e->from);
  assert_int_equal(message->head_bytes, 2 * sizeof e->next);
  assert_int_equal(((const uint32_t *)message->head)[0], 17);
  assert_int_equal(((const uint32_t *)message->head)[1], e->next++);
  assert_int_equal(message->body_bytes, sizeof body_of_test);
  assert_memory_equal(message->body, body_of_test, sizeof body_of_test);
  return AX_OK;
}

static void send_numbers(ax_node *node, uint32_t to, uint32_t count) {
  for (size_t i = 0; i < sizeof body_of_test; i++) body_of_test[i] = (char)(i * 5);
  for (uint32_t i = 0; i < count; i++)
    assert_int_equal(ax_node_send(node, to, (uint32_t[]){17, i}, 2 * sizeof i, body_of_test, sizeof body_of_test), AX_OK);
}

/* More than the ring holds, so most of them wait in the queue. A message that could not be handled comes again. */
static void messages_come_in_order(void **state) {
  (void)state;
  enum { messages = 100 };
  node_of_test t;
  expected e = {.from = 2, .refuse = 3};
  bool any;
  make(&t, 3);
  send_numbers(t.nodes[0], 7, messages);
  assert_true(ax_node_is_sending(t.nodes[0]));
  while (e.next < messages) {
    assert_int_equal(ax_node_poll(t.nodes[0], check, NULL, &any), AX_OK);
    any = false;
    const bool refuses = e.refuse > 0;
    assert_int_equal(ax_node_poll(t.nodes[2], check, &e, &any), refuses ? AX_OUT_OF_MEMORY : AX_OK);
    assert_int_equal(any, !refuses);
  }
  assert_false(ax_node_is_sending(t.nodes[0]));
  destroy(&t);
}

static ax_status count_one(void *context, uint32_t from, ax_node_message *message) {
  (void)from;
  ++*(uint32_t *)context;
  message->goes_on = true;
  return AX_OK;
}

/* What can go on after a message does so before the next one of its sender is looked at. */
static void messages_that_let_go_on_come_alone(void **state) {
  (void)state;
  node_of_test t;
  uint32_t count = 0;
  bool any = false;
  make(&t, 3);
  send_numbers(t.nodes[0], 7, 2);
  send_numbers(t.nodes[1], 7, 2);
  for (uint32_t polls = 1; polls <= 3; polls++) {
    assert_int_equal(ax_node_poll(t.nodes[2], count_one, &count, &any), AX_OK);
    assert_int_equal(count, polls < 3 ? 2 * polls : 4);
  }
  destroy(&t);
}

static void who_is_there(void **state) {
  (void)state;
  node_of_test t;
  make(&t, 3);
  for (uint32_t p = 0; p < 10; p++) {
    assert_int_equal(ax_node_has(t.nodes[1], p), p == 2 || p == 7);
    assert_int_equal(ax_node_reads(t.nodes[1], p), p == 2 || p == 7);
  }
  assert_false(ax_node_has(NULL, 0));
  destroy(&t);
}

/* Nothing is sent to one that is gone, and nothing touches the memory once it is closed. */
static void the_end(void **state) {
  (void)state;
  node_of_test t;
  make(&t, 2);
  send_numbers(t.nodes[0], 5, 50);
  ax_node_lose(t.nodes[0], 5);
  assert_false(ax_node_is_sending(t.nodes[0]));
  send_numbers(t.nodes[0], 5, 50);
  assert_false(ax_node_is_sending(t.nodes[0]));
  send_numbers(t.nodes[1], 2, 50);
  ax_node_close(t.nodes[1]);
  assert_false(ax_node_is_sending(t.nodes[1]));
  memset(t.memory, 0x11, ax_node_part_bytes(2));
  assert_int_equal(ax_node_send(t.nodes[1], 2, "text", 4, NULL, 0), AX_UNAVAILABLE);
  assert_int_equal(t.memory[AX_NODE_LONGEST], 0x11);
  destroy(&t);
}

/* Not all share memory, they are too many, or there is one alone: then there is none of it. */
static void none(void **state) {
  (void)state;
  node_of_test t;
  ax_node *node;
  make(&t, 2);
  t.words[1].shares = 0;
  assert_int_equal(ax_node_create(t.parts, t.words, 2, 2, &node), AX_OK);
  assert_null(node);
  assert_int_equal(ax_node_create(t.parts, t.words, 1, 2, &node), AX_OK);
  assert_null(node);
  assert_int_equal(ax_node_part_bytes(100000), 0);
  destroy(&t);
}

/* Another process, in fact: a child whose memory is as this one's was. */
static void memory_is_read(void **state) {
  (void)state;
  static char lent[300000], got[sizeof lent];
  node_of_test t;
  int tell[2];
  bool there;
  memset(lent, 3, sizeof lent);
  assert_int_equal(pipe(tell), 0);
  const pid_t child = fork();
  if (child == 0) {
    memset(lent, 4, sizeof lent);
    if (write(tell[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  assert_int_equal(read(tell[0], got, 1), 1);
  make(&t, 2);
  t.words[1].name.pid = child;
  ax_node_destroy(t.nodes[0]);
  assert_int_equal(ax_node_create(t.parts, t.words, 2, 2, &t.nodes[0]), AX_OK);
  assert_true(ax_node_reads(t.nodes[0], 5));
  memset(lent, 5, sizeof lent);
  assert_int_equal(ax_node_read(t.nodes[0], 5, (uint64_t)(uintptr_t)lent + 1, got, sizeof lent - 1, &there), AX_OK);
  for (size_t i = 0; i < sizeof lent - 1; i++) assert_int_equal(got[i], 4);
  assert_int_equal(ax_node_read(t.nodes[0], 5, 4096, got, 1, &there), AX_OK);
  assert_false(there);
  t.words[1].value++; /* another process has that number by now */
  ax_node_destroy(t.nodes[0]);
  assert_int_equal(ax_node_create(t.parts, t.words, 2, 2, &t.nodes[0]), AX_OK);
  assert_false(ax_node_reads(t.nodes[0], 5));
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_int_equal(ax_node_read(t.nodes[0], 5, (uint64_t)(uintptr_t)lent, got, 1, &there), AX_UNAVAILABLE);
  assert_non_null(strstr(ax_message(), "process 5 is gone"));
  destroy(&t);
  close(tell[0]);
  close(tell[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_come_in_order), cmocka_unit_test(who_is_there), cmocka_unit_test(the_end),
      cmocka_unit_test(none),                   cmocka_unit_test(memory_is_read), cmocka_unit_test(messages_that_let_go_on_come_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
