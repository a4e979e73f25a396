#include "support/jobs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/runtime.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/spreads.h"

typedef struct party {
  test_job *job;
  const void *context;
  const test_spread *spread;
  ax_transport *transport;
  pthread_t thread;
  ax_status status;
  char message[8192];
} party;

static void *be_party(void *context) {
  party *p = context;
  ax_runtime *runtime;
  const ax_runtime_options options = {.workers = p->spread->workers};
  p->status = ax_runtime_create_over(&options, p->transport, p->spread->listed, p->spread->of, &runtime);
  if (p->status == AX_OK) p->status = p->job(runtime, p->context);
  snprintf(p->message, sizeof p->message, "%s", p->status != AX_OK ? ax_message() : "");
  ax_runtime_release(runtime);
  return NULL;
}

ax_status test_in_all(const test_spread *spread, test_job *job, const void *context, char *message) {
  static party parties[TEST_MOST_PROCESSES];
  ax_transport *transports[TEST_MOST_PROCESSES];
  assert_int_equal(ax_within_create(spread->processes, transports), AX_OK);
  for (uint32_t p = 0; p < spread->processes; p++) {
    if (spread->delays) transports[p] = test_delay(transports[p], spread->seed + p);
    parties[p] = (party){.job = job, .context = context, .spread = spread, .transport = transports[p]};
    assert_int_equal(pthread_create(&parties[p].thread, NULL, be_party, &parties[p]), 0);
  }
  for (uint32_t p = 0; p < spread->processes; p++) pthread_join(parties[p].thread, NULL);
  for (uint32_t p = 1; p < spread->processes; p++) {
    if (parties[p].status != parties[0].status || strcmp(parties[p].message, parties[0].message) != 0)
      fail_msg("process 0: %s\nprocess %u: %s", parties[0].message, p, parties[p].message);
  }
  if (message != NULL) strcpy(message, parties[0].message);
  else if (parties[0].status != AX_OK) print_error("%s\n", parties[0].message);
  return parties[0].status;
}

static const uint32_t none_in_two[] = {1, 1, 0, 1, 1, 3, 1, 1};
const test_spread test_spreads[] = {
    {.processes = 1, .workers = 1},
    {.processes = 2, .workers = 1},
    {.processes = 3, .workers = 2},
    {.processes = 8, .workers = 1},
    {.processes = 2, .workers = 1, .listed = 8, .of = test_alternating},
    {.processes = 3, .workers = 1, .listed = 8, .of = test_scattered},
    {.processes = 4, .workers = 1, .listed = 8, .of = none_in_two}, /* process 2 has device 2, which is process 0's: none */
};

/* --- Out of memory in one process --- */

static _Thread_local bool hostile;
static long until_failure, asked;
static _Atomic long live;

static void *allocate(void *user, size_t bytes, size_t align) {
  void *memory = NULL;
  (void)user;
  if (hostile) asked++;
  if ((hostile && until_failure-- == 0) || posix_memalign(&memory, align, bytes) != 0) return NULL;
  live++;
  return memory;
}
static void release(void *user, void *memory) {
  (void)user;
  live -= memory != NULL;
  free(memory);
}

void test_be_hostile(bool is_hostile) { hostile = is_hostile; }

void test_each_allocation_in_one(test_job *job, const void *context, long step, void (*after)(ax_status status)) {
  const ax_allocator counted = {allocate, release, NULL};
  char message[8192];
  ax_status status = AX_OUT_OF_MEMORY;
  ax_set_allocator(&counted);
  for (long nth = 0, done = 0; done < 3; nth += step) { /* what must not fail is tried again */
    until_failure = nth;
    asked = live = 0;
    status = test_in_all(&test_spreads[1], job, context, message);
    if (status != AX_OK && (status != AX_OUT_OF_MEMORY || strstr(message, "process 1: ") == NULL))
      fail_msg("allocation %ld: %s", nth, message);
    if (after != NULL) after(status);
    if (live != 0) fail_msg("allocation %ld: %ld are left", nth, (long)live);
    done = asked <= nth ? done + 1 : 0;
  }
  ax_set_allocator(NULL);
  assert_int_equal(status, AX_OK);
}
