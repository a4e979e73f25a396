/* The transport by MPI over a library inside the test: every case, and every fault, in one process. Programs under mpirun
   (tests/mpi) run it over real ones. */
#include "processes/mpi.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fake_mpi.h"

/* --- Worlds --- */

static ax_delivery *came[512];
static uint32_t came_count;
static int ended;

static void keep(void *context, ax_delivery *delivery) {
  (void)context;
  came[came_count++] = delivery;
}
static void end(void *context) { ended += *(int *)context; }

static ax_status open_all(int ranks, ax_transport **all) {
  reset(ranks);
  came_count = 0;
  ended = 0;
  for (int r = 0; r < ranks; r++) all[r] = NULL;
  for (int r = 0; r < ranks; r++) {
    communicators[r] = r;
    AX_TRY(ax_mpi_create_over(&shim, &communicators[r], &all[r]));
    all[r]->deliver = keep;
  }
  return AX_OK;
}

static void *destroy(void *transport) {
  ((ax_transport *)transport)->functions->destroy(transport);
  return NULL;
}

/* Collective: by a thread for each. Nothing of the library's is left. */
static void close_all(int ranks, ax_transport **all) {
  pthread_t threads[most_ranks];
  while (came_count > 0) ax_delivery_free(came[--came_count]);
  for (int r = 0; r < ranks; r++) assert_int_equal(pthread_create(&threads[r], NULL, destroy, all[r]), 0);
  for (int r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
}
static void close_clean(int ranks, ax_transport **all) {
  close_all(ranks, all);
  for (int i = 0; i < most_requests; i++) assert_false(fake.posts[i].used);
}

static bool poll(ax_transport *t) {
  bool any;
  assert_int_equal(t->functions->poll(t, &any), AX_OK);
  return any;
}
static ax_status send(ax_transport *t, uint32_t to, ax_envelope envelope, const void *payload, ax_on_done *sent, void *context) {
  return t->functions->send(t, to, &envelope, payload, sent, context);
}

static char data[3 * AX_SHORT_PAYLOAD], into[2][sizeof data];
static int one = 1, ten = 10, hundred = 100;

/* More than the ring has buffers, of sizes that the library sends at once and later. */
static void short_payloads_come_in_order(void **state) {
  (void)state;
  ax_transport *two[2];
  assert_int_equal(open_all(2, two), AX_OK);
  for (uint32_t i = 0; i < 40; i++)
    assert_int_equal(send(two[0], 1, (ax_envelope){.bytes = i * 200, .place = i}, memset(data, (int)i, i * 200), NULL, NULL),
                     AX_OK);
  while (poll(two[1]) || poll(two[0])) continue;
  assert_int_equal(came_count, 40);
  for (uint32_t i = 0; i < 40; i++) {
    assert_int_equal(came[i]->envelope.place, i);
    if (i == 0) assert_null(came[i]->payload);
    else assert_int_equal(((char *)came[i]->payload)[i * 200 - 1], i);
  }
  close_clean(2, two);
}

static int unsent_to(int rank) {
  int count = 0;
  for (int i = 0; i < most_requests; i++) {
    const post *p = &fake.posts[i];
    count += p->used && !p->receive && !p->complete && p->to == rank;
  }
  return count;
}

/* Each poll tests what the library has not sent yet: that is bounded, by process, so one that does not receive holds nothing up that is
   for another. Order stays. */
static void few_sends_are_pending(void **state) {
  enum { many = 500 };
  ax_transport *three[3];
  (void)state;
  assert_int_equal(open_all(3, three), AX_OK);
  fake.keeps = true;
  for (uint32_t i = 0; i < many; i++)
    assert_int_equal(send(three[0], 1, (ax_envelope){.place = i, .bytes = 8}, &(uint64_t){i}, NULL, NULL), AX_OK);
  assert_int_equal(send(three[0], 2, (ax_envelope){.bytes = sizeof data}, data, end, &one), AX_OK);
  poll(three[0]);
  assert_true(unsent_to(1) > 1 && unsent_to(1) <= 100);
  poll(three[2]);
  assert_int_equal(came_count, 1);
  assert_int_equal(three[2]->functions->fetch(three[2], came[0], into[0], end, &ten), AX_OK);
  while (poll(three[2]) || poll(three[0])) assert_true(unsent_to(1) <= 100);
  assert_int_equal(ended, 11);
  for (bool any = true; any;) {
    any = poll(three[1]);
    any = poll(three[0]) || any;
    assert_true(unsent_to(1) <= 100);
  }
  assert_int_equal(came_count, 1 + many);
  for (uint32_t i = 0; i < many; i++) assert_int_equal(came[1 + i]->envelope.place, i);
  fake.keeps = false;
  close_clean(3, three);
}

/* From 1 to 0, as each of them knows it. */
static void are_on_their_way(ax_transport **two, uint64_t coming, uint64_t going) {
  ax_process_seen seen[2] = {0};
  for (uint32_t r = 0; r < 2; r++) two[r]->look_at(two[r], 1 - r, &seen[r]);
  assert_true(seen[0].coming == coming && seen[0].going == 0);
  assert_true(seen[1].coming == 0 && seen[1].going == going);
}

static void long_payloads_are_fetched(void **state) {
  (void)state;
  ax_transport *two[2];
  assert_int_equal(open_all(2, two), AX_OK);
  memset(data, 5, sizeof data);
  assert_int_equal(send(two[1], 0, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  assert_int_equal(send(two[1], 0, (ax_envelope){.run = 7, .bytes = sizeof data}, data, NULL, NULL), AX_OK); /* a copy of its own */
  poll(two[0]);
  poll(two[1]);
  assert_int_equal(came_count, 2);
  assert_null(came[0]->payload);
  assert_int_equal(ended, 0);
  memset(data, 6, sizeof data);
  are_on_their_way(two, 0, 0);
  for (int i = 0; i < 2; i++) assert_int_equal(two[0]->functions->fetch(two[0], came[i], into[i], end, &ten), AX_OK);
  are_on_their_way(two, 2 * sizeof data, 0);
  fake.holds = true;
  while (poll(two[1]) || poll(two[0])) continue;
  are_on_their_way(two, 2 * sizeof data, 2 * sizeof data);
  assert_int_equal(ended, 0);
  fake.holds = false;
  while (poll(two[1]) || poll(two[0])) continue;
  are_on_their_way(two, 0, 0);
  assert_int_equal(ended, 21);
  assert_int_equal(into[0][sizeof data - 1], 6);
  assert_int_equal(into[1][sizeof data - 1], 5);
  close_clean(2, two);
}

/* All processes make as many writes, whatever they have; and what was sent before is out of this process's hands. */
static void files_are_written_in_pieces(void **state) {
  (void)state;
  ax_transport *two[2];
  const size_t more = 5, most = 2 * (size_t)AX_MPI_PIECE + 1;
  assert_int_equal(open_all(2, two), AX_OK);
  memset(&fake_file, 0, sizeof fake_file);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7, .bytes = 100}, data, NULL, NULL), AX_OK);
  assert_int_equal(two[0]->write_file(two[0], "some.npy", 128, data, AX_MPI_PIECE + more, most), AX_OK);
  assert_true(fake_file.opens == 1 && fake_file.writes == 3 && fake_file.closes == 1 && fake_file.unsent == 0);
  assert_true(fake_file.place[0] == 128 && fake_file.bytes[0] == AX_MPI_PIECE);
  assert_true(fake_file.place[1] == 128 + (uint64_t)AX_MPI_PIECE && fake_file.bytes[1] == more);
  assert_true(fake_file.bytes[2] == 0);
  fake_file.writes = 0;
  fake_file.write_fails = 3; /* the others go on, and so does this one */
  assert_int_equal(two[0]->write_file(two[0], "some.npy", 0, data, most, most), AX_IO_ERROR);
  assert_string_equal(ax_message(), "MPI: the fault 3");
  assert_true(fake_file.writes == 3 && fake_file.closes == 2);
  fake_file.open_fails = 4;
  assert_int_equal(two[0]->write_file(two[0], "some.npy", 0, data, 1, 1), AX_IO_ERROR);
  assert_string_equal(ax_message(), "MPI: the fault 4");
  assert_true(fake_file.writes == 3 && fake_file.closes == 2);
  while (poll(two[1]) || poll(two[0])) continue;
  close_clean(2, two);
}

static void forgotten_payloads_end_at_both_ends(void **state) {
  (void)state;
  ax_transport *two[2];
  assert_int_equal(open_all(2, two), AX_OK);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 8, .bytes = sizeof data}, data, end, &ten), AX_OK);
  two[0]->functions->forget(two[0], 7);
  assert_int_equal(ended, 1);
  poll(two[1]);
  for (int i = 0; i < 2; i++) assert_int_equal(two[1]->functions->fetch(two[1], came[i], into[i], end, &hundred), AX_OK);
  while (poll(two[0]) || poll(two[1])) continue;
  assert_int_equal(ended, 211);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 9, .bytes = sizeof data}, data, NULL, NULL), AX_OK); /* never fetched */
  close_clean(2, two);
}

/* The library names the process: what was lent to it comes back, and the others go on. */
static void a_lost_process_is_named(void **state) {
  (void)state;
  ax_transport *three[3];
  bool any;
  assert_int_equal(open_all(3, three), AX_OK);
  assert_int_equal(send(three[0], 2, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  assert_int_equal(send(three[2], 0, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &hundred), AX_OK);
  poll(three[0]);
  assert_int_equal(three[0]->functions->fetch(three[0], came[0], into[0], end, &ten), AX_OK);
  fake.broken = fake.gone = 2;
  assert_int_equal(send(three[0], 2, (ax_envelope){.run = 7}, NULL, NULL, NULL), AX_OK); /* it is not known yet */
  assert_int_equal(three[0]->functions->poll(three[0], &any), AX_UNAVAILABLE);
  assert_string_equal(ax_message(), "process 2 is gone: the fault 17");
  assert_int_equal(ended, 11);
  assert_int_equal(send(three[0], 2, (ax_envelope){.run = 7}, NULL, NULL, NULL), AX_UNAVAILABLE);
  assert_string_equal(ax_message(), "process 2 is gone");
  assert_int_equal(send(three[0], 1, (ax_envelope){.run = 8, .bytes = 4}, data, NULL, NULL), AX_OK);
  poll(three[1]);
  assert_int_equal(came_count, 2);
  assert_int_equal(three[0]->functions->fetch(three[0], came[0], into[0], end, &ten), AX_UNAVAILABLE);
  fake.leave(); /* process 2 does not come to the end */
  close_all(3, three);
}

/* A fault that no lost process explains: nothing of the transport is used any more. */
static void another_fault_ends_all(void **state) {
  (void)state;
  ax_transport *two[2];
  bool any;
  assert_int_equal(open_all(2, two), AX_OK);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  fake.broken = 1;
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7}, NULL, NULL, NULL), AX_OK);
  assert_int_equal(two[0]->functions->poll(two[0], &any), AX_UNAVAILABLE);
  assert_string_equal(ax_message(), "the fault 17");
  assert_int_equal(ended, 1);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7}, NULL, NULL, NULL), AX_UNAVAILABLE);
  fake.leave();
  close_all(2, two);
}

/* The library says nothing of a process that is killed; the system does. */
static void a_killed_process_is_named(void **state) {
  (void)state;
  ax_transport *two[2];
  bool any;
  if ((child = fork()) == 0) {
    for (;;) pause();
  }
  assert_int_equal(open_all(2, two), AX_OK);
  assert_int_equal(send(two[0], 1, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  assert_false(poll(two[0]));
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  child = 0;
  ax_status status = AX_OK;
  while (status == AX_OK) status = two[0]->functions->poll(two[0], &any);
  assert_int_equal(status, AX_UNAVAILABLE);
  assert_string_equal(ax_message(), "process 1 is gone: it has ended, and without a last message");
  assert_int_equal(ended, 1);
  fake.leave();
  close_all(2, two);
}

/* A process that leaves tells the others, and does not use MPI any more. */
static void who_finalizes_is_gone(void **state) {
  (void)state;
  ax_transport *two[2];
  bool any;
  assert_int_equal(open_all(2, two), AX_OK);
  fake.leave(); /* of both */
  for (int p = 0; p < 2; p++) {
    assert_int_equal(two[p]->functions->poll(two[p], &any), AX_UNAVAILABLE);
    assert_non_null(strstr(ax_message(), "MPI_Finalize"));
  }
  close_all(2, two);
}

/* Where one is gone, what the others have sent may be lost with it: closing does not wait for ever. */
static void who_never_closes_is_left(void **state) {
  (void)state;
  ax_transport *three[3];
  bool any;
  assert_int_equal(open_all(3, three), AX_OK);
  assert_int_equal(send(three[1], 0, (ax_envelope){.run = 7, .bytes = sizeof data}, data, end, &one), AX_OK);
  poll(three[1]);
  poll(three[0]);
  assert_int_equal(three[0]->functions->fetch(three[0], came[0], into[0], end, &ten), AX_OK);
  fake.broken = fake.gone = 2;
  assert_int_equal(send(three[0], 2, (ax_envelope){.run = 7}, NULL, NULL, NULL), AX_OK);
  assert_int_equal(three[0]->functions->poll(three[0], &any), AX_UNAVAILABLE);
  three[0]->functions->destroy(three[0]); /* process 1 neither sends the payload nor closes */
  assert_int_equal(ended, 0);
  fake.leave();
  close_all(2, three + 1);
}

/* --- Threads --- */

enum { senders = 3, each = 200 };

static void *send_many(void *context) {
  ax_transport *t = context;
  static _Atomic uint32_t names;
  const uint32_t name = names++ % senders;
  for (uint32_t i = 0; i < each; i++)
    assert_int_equal(send(t, 1, (ax_envelope){.group = name, .place = i}, NULL, NULL, NULL), AX_OK);
  return NULL;
}

static uint32_t next[senders], taken;
static void take(void *context, ax_delivery *delivery) {
  (void)context;
  assert_int_equal(delivery->envelope.place, next[delivery->envelope.group]++);
  taken++;
  ax_delivery_free(delivery);
}

/* What one thread sends stays in order, whoever else holds MPI. */
static void threads_keep_their_order(void **state) {
  (void)state;
  ax_transport *two[2];
  pthread_t threads[senders];
  assert_int_equal(open_all(2, two), AX_OK);
  two[1]->deliver = take;
  memset(next, 0, sizeof next);
  taken = 0;
  for (int t = 0; t < senders; t++) assert_int_equal(pthread_create(&threads[t], NULL, send_many, two[0]), 0);
  while (taken < senders * each) {
    poll(two[0]);
    if (!poll(two[1])) sched_yield();
  }
  for (int t = 0; t < senders; t++) pthread_join(threads[t], NULL);
  close_clean(2, two);
}

/* --- Memory --- */

static _Atomic int until_failure, live;

static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory = NULL;
  if (until_failure-- == 0 || posix_memalign(&memory, align, bytes) != 0) return NULL;
  live++;
  return memory;
}
static void release(void *user, void *memory) {
  (void)user;
  live--;
  free(memory);
}

/* Calls again what has failed for want of memory, as a caller may: nothing is lost. */
#define PERSIST(call)                                       \
  do {                                                      \
    ax_status status = (call);                              \
    if (status == AX_OUT_OF_MEMORY) status = (call);        \
    assert_int_equal(status, AX_OK);                        \
  } while (0)

/* What one process lacks fails in all. */
static void what_another_process_lacks_is_said(void **state) {
  (void)state;
  ax_transport *two[2] = {NULL, NULL};
  ax_status status = AX_OUT_OF_MEMORY;
  for (int bad = 1; status != AX_OK; bad++) {
    reset(2);
    fake.bad_agreement = bad;
    status = ax_mpi_create_over(&shim, &communicators[0], &two[0]);
    assert_true(bad < 9);
    if (status == AX_OK) continue;
    assert_int_equal(status, AX_OUT_OF_MEMORY);
    assert_string_equal(ax_message(), "process 2: no memory");
    assert_null(two[0]);
  }
  assert_int_equal(fake.agreements, 2);
  fake.bad_agreement = 0;
  assert_int_equal(ax_mpi_create_over(&shim, &communicators[1], &two[1]), AX_OK);
  fake.bad_agreement = fake.agreements + 1;
  assert_int_equal(ax_transport_agree(two[0], AX_OK), AX_OUT_OF_MEMORY);
  assert_string_equal(ax_message(), "process 2: no memory");
  assert_int_equal(ax_transport_agree(two[1], ax_error(AX_IO_ERROR, "no file")), AX_IO_ERROR);
  assert_string_equal(ax_message(), "process 1: no file");
  close_clean(2, two);
}

static void exchange(void) {
  ax_transport *two[2];
  bool any;
  reset(2);
  came_count = 0;
  ended = 0;
  for (int r = 0; r < 2; r++) {
    PERSIST(ax_mpi_create_over(&shim, &communicators[r], &two[r]));
    two[r]->deliver = keep;
  }
  PERSIST(send(two[0], 1, (ax_envelope){.run = 1, .bytes = AX_SHORT_PAYLOAD}, data, NULL, NULL)); /* in parts */
  PERSIST(send(two[0], 1, (ax_envelope){.run = 1, .bytes = sizeof data}, data, NULL, NULL));
  for (int i = 0; i < 3; i++)
    for (int r = 0; r < 2; r++) PERSIST(two[r]->functions->poll(two[r], &any));
  assert_int_equal(came_count, 2);
  PERSIST(two[1]->functions->fetch(two[1], came[1], into[0], end, &one));
  for (int i = 0; i < 3; i++)
    for (int r = 0; r < 2; r++) PERSIST(two[r]->functions->poll(two[r], &any));
  assert_int_equal(ended, 1);
  close_clean(2, two);
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  const ax_allocator hostile = {allocate, release, NULL};
  int nth = 0;
  do {
    until_failure = nth++;
    live = 0;
    ax_set_allocator(&hostile);
    exchange();
    ax_set_allocator(NULL);
    assert_int_equal(live, 0);
  } while (until_failure < 0); /* until none has failed */
  assert_true(nth > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_payloads_come_in_order),
      cmocka_unit_test(few_sends_are_pending),
      cmocka_unit_test(long_payloads_are_fetched),
      cmocka_unit_test(files_are_written_in_pieces),
      cmocka_unit_test(forgotten_payloads_end_at_both_ends),
      cmocka_unit_test(a_lost_process_is_named),
      cmocka_unit_test(another_fault_ends_all),
      cmocka_unit_test(a_killed_process_is_named),
      cmocka_unit_test(who_finalizes_is_gone),
      cmocka_unit_test(who_never_closes_is_left),
      cmocka_unit_test(threads_keep_their_order),
      cmocka_unit_test(what_another_process_lacks_is_said),
      cmocka_unit_test(each_allocation_may_fail),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  reset(0);
  return failed;
}
