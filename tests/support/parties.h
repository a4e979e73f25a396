/* A job done by several processes, each of which is a thread. */
#ifndef AX_TESTS_SUPPORT_PARTIES_H
#define AX_TESTS_SUPPORT_PARTIES_H

#include <stdio.h>
#include <string.h>

#include "processes/processes.h"
#include "processes/within.h"
#include "support/cmocka.h"

enum { MOST_PARTIES = 8 };

typedef struct party {
  ax_transport *transport;
  ax_status (*job)(ax_processes *processes);
  pthread_t thread;
  ax_status status;
  char message[512];
} party;

static inline void *be_party(void *context) {
  party *p = context;
  ax_processes *processes;
  p->status = ax_processes_create(p->transport, NULL, 0, &processes);
  if (p->status == AX_OK) p->status = p->job(processes);
  snprintf(p->message, sizeof p->message, "%s", p->status != AX_OK ? ax_message() : "");
  ax_processes_destroy(processes);
  return NULL;
}

/* It must end the same in all. message: room for 512 bytes. */
static inline ax_status in_parties(uint32_t count, ax_status (*job)(ax_processes *processes), char *message) {
  ax_transport *transports[MOST_PARTIES];
  party parties[MOST_PARTIES];
  assert_int_equal(ax_within_create(count, transports), AX_OK);
  for (uint32_t p = 0; p < count; p++) {
    parties[p] = (party){.transport = transports[p], .job = job};
    assert_int_equal(pthread_create(&parties[p].thread, NULL, be_party, &parties[p]), 0);
  }
  for (uint32_t p = 0; p < count; p++) pthread_join(parties[p].thread, NULL);
  for (uint32_t p = 1; p < count; p++) {
    assert_string_equal(parties[p].message, parties[0].message);
    assert_int_equal(parties[p].status, parties[0].status);
  }
  if (message != NULL) strcpy(message, parties[0].message);
  return parties[0].status;
}

#endif
