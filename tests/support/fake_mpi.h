/* A library of MPI inside one program: its ranks are of one process. Its caller lets one thread in at a time. */
#ifndef AX_TESTS_SUPPORT_FAKE_MPI_H
#define AX_TESTS_SUPPORT_FAKE_MPI_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/base.h"
#include "processes/mpi/shim.h"
#include "processes/watch.h"
#include "support/cmocka.h"


enum { most_ranks = 3, most_requests = 1024, eager_bytes = 4096 };

typedef struct post { /* a message that has not been received, or a receive without a message */
  bool used, receive, complete, started;
  int order;
  const char *data;
  char *copy; /* of an eager message */
  void *into;
  size_t bytes;
  int from, to; /* from: of a receive, perhaps AX_MPI_ANY */
  uint32_t tag;
  ax_mpi_arrival arrival;
} post;

static struct {
  post posts[most_requests];
  int orders, ranks;
  int broken, gone; /* sending to rank `broken` fails; `gone`: what the library says about it. -1: none */
  bool keeps;       /* no send is complete before its message is received */
  bool holds;       /* nothing long is complete */
  int agreements, bad_agreement; /* in this one, from 1 on, another process does not stand well; 0: in none */
  void (*leave)(void);
} fake;

static int communicators[most_ranks]; /* their ranks */
static int rank_of(const ax_mpi_communicator *communicator) { return *(const int *)(const void *)communicator; }

static void reset(int ranks) {
  void (*leave)(void) = fake.leave;
  for (int i = 0; i < most_requests; i++) free(fake.posts[i].copy); /* to those that left */
  memset(&fake, 0, sizeof fake);
  fake.leave = leave;
  fake.ranks = ranks;
  fake.broken = fake.gone = -1;
}

static int add_post(post what, void *request) {
  int i = 0;
  while (i < most_requests && fake.posts[i].used) i++;
  assert_true(i < most_requests);
  what.used = true;
  what.order = fake.orders++;
  fake.posts[i] = what;
  memcpy(request, &i, sizeof i);
  return i;
}

static bool fits(const post *message, const post *receive) {
  return message->used && receive->used && !message->receive && receive->receive && !message->started && !receive->started &&
         message->to == receive->to && message->tag == receive->tag &&
         (receive->from == AX_MPI_ANY || receive->from == message->from);
}

/* The first, in the order in which they were posted, that fits. */
static post *partner(const post *one) {
  post *best = NULL;
  for (int i = 0; i < most_requests; i++) {
    post *other = &fake.posts[i];
    if ((one->receive ? fits(other, one) : fits(one, other)) && (best == NULL || other->order < best->order)) best = other;
  }
  return best;
}

static void free_post(post *one) {
  free(one->copy);
  *one = (post){0};
}

static void match(post *one) {
  post *other = partner(one);
  if (other == NULL) return;
  post *message = one->receive ? other : one, *receive = one->receive ? one : other;
  assert_true(message->bytes <= receive->bytes);
  memcpy(receive->into, message->copy != NULL ? message->copy : message->data, message->bytes);
  receive->arrival = (ax_mpi_arrival){.from = message->from, .bytes = message->bytes};
  message->started = receive->started = receive->complete = true;
  if (message->copy != NULL) free_post(message); /* its request was complete before */
  else message->complete = true;
}

static void fake_describe(int code, char text[AX_MPI_TEXT]) { snprintf(text, AX_MPI_TEXT, "the fault %d", code); }
static int fake_start(bool *started, ax_mpi_threads *threads) {
  *started = false;
  *threads = AX_MPI_SERIALIZED;
  return 0;
}
static bool fake_finished(void) { return false; }
static int fake_before_finalize(void (*leave)(void)) {
  fake.leave = leave;
  return 0;
}

static pid_t child; /* 0: none */

static int fake_open(const void *communicator, ax_mpi_communicator **out, ax_mpi_place *place) {
  *out = (ax_mpi_communicator *)(uintptr_t)communicator;
  *place = (ax_mpi_place){.rank = (uint32_t)rank_of(*out), .size = (uint32_t)fake.ranks, .node_size = 1, .greatest_tag = 40};
  if (child != 0 && place->rank == 0) place->node_size = 2;
  return 0;
}
/* Ranks open one after the other, so each agrees with itself. */
static int fake_agree(ax_mpi_communicator *communicator, ax_mpi_standing *standing) {
  standing->process = (uint32_t)rank_of(communicator);
  if (++fake.agreements == fake.bad_agreement) *standing = (ax_mpi_standing){AX_OUT_OF_MEMORY, 2, "no memory"};
  return 0;
}
/* Each is alone on its node; where there is a child, it is rank 1 of rank 0's. */
static int fake_gather_on_node(ax_mpi_communicator *communicator, const void *mine, size_t bytes, void *all) {
  memcpy(all, mine, bytes);
  if (child == 0 || rank_of(communicator) != 0 || bytes != sizeof(ax_node_watch_name)) return 0;
  ax_node_watch_name *name = (ax_node_watch_name *)all + 1;
  memcpy(name, mine, bytes);
  name->pid = child;
  name->process = 1;
  return 0;
}
static int fake_share(ax_mpi_communicator *communicator, size_t bytes, void **parts) {
  (void)communicator, (void)bytes, (void)parts;
  return 17; /* all goes by messages (node_test.c has what is shared) */
}
static int fake_close(ax_mpi_communicator *communicator) {
  (void)communicator;
  return 0;
}
static void fake_abandon(ax_mpi_communicator *communicator) { (void)communicator; }

static int fake_isend(ax_mpi_communicator *communicator, const void *data, size_t bytes, uint32_t to, uint32_t tag, void *request,
                      bool *done) {
  post what = {.data = data, .bytes = bytes, .from = rank_of(communicator), .to = (int)to, .tag = tag};
  if ((int)to == fake.broken) return 17;
  *done = bytes <= eager_bytes && !fake.keeps;
  if (*done) {
    what.copy = malloc(bytes);
    memcpy(what.copy, data, bytes);
  }
  match(&fake.posts[add_post(what, request)]);
  return 0;
}

static int fake_irecv(ax_mpi_communicator *communicator, void *data, size_t bytes, int from, uint32_t tag, void *request) {
  const post what = {.receive = true, .into = data, .bytes = bytes, .from = from, .to = rank_of(communicator), .tag = tag};
  match(&fake.posts[add_post(what, request)]);
  return 0;
}

static int fake_test(void *request, bool *done, ax_mpi_arrival *arrival) {
  int i;
  memcpy(&i, request, sizeof i);
  assert_true(i >= 0 && fake.posts[i].used);
  *done = fake.posts[i].complete && !(fake.holds && fake.posts[i].bytes > eager_bytes);
  if (!*done) return 0;
  *arrival = fake.posts[i].arrival;
  free_post(&fake.posts[i]);
  i = -1;
  memcpy(request, &i, sizeof i);
  return 0;
}

static int fake_test_some(uint32_t count, void *requests, uint32_t *complete, int *indices, int *errors) {
  *complete = 0;
  for (uint32_t r = 0; r < count; r++) {
    bool done = false;
    ax_mpi_arrival arrival;
    int i;
    memcpy(&i, (char *)requests + r * sizeof i, sizeof i);
    if (i >= 0) fake_test((char *)requests + r * sizeof i, &done, &arrival);
    if (!done) continue;
    errors[*complete] = 0;
    indices[(*complete)++] = (int)r;
  }
  return 0;
}

static int fake_cancel(void *request) {
  int i;
  memcpy(&i, request, sizeof i);
  assert_true(i >= 0 && fake.posts[i].used && fake.posts[i].receive);
  free_post(&fake.posts[i]);
  i = -1;
  memcpy(request, &i, sizeof i);
  return 0;
}
static void fake_drop(void *request) {
  int i = -1;
  memcpy(request, &i, sizeof i);
}
/* A file: what is done with it, and what fails. */
static struct {
  int opens, writes, closes, open_fails, write_fails, unsent;
  uint64_t place[8];
  size_t bytes[8];
} fake_file;

static int fake_open_file(ax_mpi_communicator *communicator, const char *path, ax_mpi_file **out) {
  (void)communicator;
  assert_string_equal(path, "some.npy");
  for (int i = 0; i < most_requests; i++) {
    const post *p = &fake.posts[i];
    fake_file.unsent += p->used && !p->receive && !p->complete;
  }
  fake_file.opens++;
  *out = (ax_mpi_file *)&fake_file;
  return fake_file.open_fails;
}

static int fake_write_file(ax_mpi_file *file, uint64_t place, const void *bytes, size_t count) {
  assert_ptr_equal(file, &fake_file);
  assert_non_null(bytes);
  fake_file.place[fake_file.writes] = place;
  fake_file.bytes[fake_file.writes++] = count;
  return fake_file.writes == 1 ? fake_file.write_fails : 0;
}

static int fake_close_file(ax_mpi_file *file) {
  assert_ptr_equal(file, &fake_file);
  fake_file.closes++;
  return 0;
}

static int fake_lost(ax_mpi_communicator *communicator) {
  (void)communicator;
  return fake.gone;
}

static const ax_mpi_shim shim = {.version = AX_MPI_SHIM_VERSION, .request_bytes = sizeof(int), .describe = fake_describe,
                                 .start = fake_start, .finished = fake_finished, .before_finalize = fake_before_finalize,
                                 .open = fake_open, .agree = fake_agree, .gather_on_node = fake_gather_on_node, .share = fake_share,
                                 .close = fake_close, .abandon = fake_abandon, .isend = fake_isend,
                                 .irecv = fake_irecv, .test = fake_test, .test_some = fake_test_some, .cancel = fake_cancel,
                                 .drop = fake_drop, .open_file = fake_open_file, .write_file = fake_write_file,
                                 .close_file = fake_close_file, .lost = fake_lost};

#endif
