/* A transport over another one that lets messages and payloads wait for a random number of polls. Those of one sender keep their order,
   as a transport promises; others overtake each other. What is read where it lies is read slowly, so that its owner has to wait. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/cmocka.h"
#include "support/processes.h"
#include "support/random.h"

typedef struct payload { /* that has been fetched, unknown yet to who waits for it */
  ax_on_done *fetched;
  void *context;
  struct delays *delays;
  struct payload *next;
} payload;

typedef struct delays {
  ax_transport transport;
  ax_transport *inner;
  pthread_mutex_t lock;     /* guards the following fields */
  test_random random;
  ax_deliveries held[TEST_MOST_PROCESSES]; /* by sender */
  payload *payloads;
  atomic_flag polling;
} delays;

enum { one_in = 3 };

static void hold(void *context, ax_delivery *delivery) {
  delays *d = context;
  pthread_mutex_lock(&d->lock);
  ax_deliveries_add(&d->held[delivery->from], delivery);
  pthread_mutex_unlock(&d->lock);
}

static void hold_payload(void *context) {
  payload *p = context;
  pthread_mutex_lock(&p->delays->lock);
  p->next = p->delays->payloads;
  p->delays->payloads = p;
  pthread_mutex_unlock(&p->delays->lock);
}

/* The first that is held of a sender, now and then. */
static ax_delivery *take(delays *d, uint32_t from) {
  pthread_mutex_lock(&d->lock);
  ax_delivery *one = test_random_below(&d->random, one_in) == 0 ? ax_deliveries_take(&d->held[from], NULL) : NULL;
  pthread_mutex_unlock(&d->lock);
  return one;
}

static payload *take_payload(delays *d) {
  pthread_mutex_lock(&d->lock);
  payload *one = test_random_below(&d->random, one_in) == 0 ? d->payloads : NULL;
  if (one != NULL) d->payloads = one->next;
  pthread_mutex_unlock(&d->lock);
  return one;
}

static ax_status poll(ax_transport *transport, bool *any) {
  delays *d = (delays *)transport;
  *any = false;
  if (atomic_flag_test_and_set(&d->polling)) return AX_OK;
  ax_status status = d->inner->functions->poll(d->inner, any);
  for (uint32_t p = 0; p < transport->processes; p++)
    for (ax_delivery *one; (one = take(d, p)) != NULL; *any = true) transport->deliver(transport->deliver_context, one);
  for (payload *one; (one = take_payload(d)) != NULL; *any = true) {
    one->fetched(one->context);
    free(one);
  }
  atomic_flag_clear(&d->polling);
  return status;
}

static ax_status send(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *data, ax_on_done *sent,
                      void *context) {
  ax_transport *inner = ((delays *)transport)->inner;
  return inner->functions->send(inner, to, envelope, data, sent, context);
}

static ax_status lend(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *data, ax_loan *loan) {
  ax_transport *inner = ((delays *)transport)->inner;
  return inner->functions->lend(inner, to, envelope, data, loan);
}

static bool is_returned(ax_transport *transport, const ax_loan *loan) {
  ax_transport *inner = ((delays *)transport)->inner;
  return inner->functions->is_returned(inner, loan);
}

static ax_status settle(ax_transport *transport, ax_loan *loan) {
  ax_transport *inner = ((delays *)transport)->inner;
  return inner->functions->settle(inner, loan);
}

static ax_status fetch(ax_transport *transport, const ax_delivery *delivery, void *into, ax_on_done *fetched, void *context) {
  delays *d = (delays *)transport;
  payload *one = malloc(sizeof *one);
  assert_non_null(one);
  *one = (payload){fetched, context, d, NULL};
  ax_status status = d->inner->functions->fetch(d->inner, delivery, into, hold_payload, one);
  if (status != AX_OK) free(one);
  return status;
}

/* Now and then, for as long as others need to come to something else. */
static void linger(delays *d) {
  enum { seldom = 8, most = 40 };
  pthread_mutex_lock(&d->lock);
  const int64_t times = test_random_below(&d->random, seldom) == 0 ? test_random_below(&d->random, most) : 0;
  pthread_mutex_unlock(&d->lock);
  for (int64_t i = 0; i < times; i++) sched_yield();
}

static ax_status read(ax_transport *transport, const ax_delivery *delivery, size_t offset, void *into, size_t bytes) {
  delays *d = (delays *)transport;
  ax_status status = d->inner->functions->read(d->inner, delivery, offset, into, bytes);
  linger(d);
  return status;
}

static const void *see(ax_transport *transport, const ax_delivery *delivery) {
  delays *d = (delays *)transport;
  const void *payload = d->inner->functions->see(d->inner, delivery);
  linger(d);
  return payload;
}

static ax_status release(ax_transport *transport, const ax_delivery *delivery) {
  delays *d = (delays *)transport;
  linger(d);
  return d->inner->functions->release(d->inner, delivery);
}

static void forget(ax_transport *transport, uint64_t run) {
  ax_transport *inner = ((delays *)transport)->inner;
  inner->functions->forget(inner, run);
}

static void let_go(delays *d) {
  for (uint32_t p = 0; p < d->transport.processes; p++) ax_deliveries_free(&d->held[p]);
  for (payload *next, *one = d->payloads; one != NULL; one = next) {
    next = one->next;
    one->fetched(one->context); /* a run that failed left it; it is freed by this */
    free(one);
  }
  d->payloads = NULL;
}

static void destroy(ax_transport *transport) {
  delays *d = (delays *)transport;
  let_go(d);
  d->inner->functions->destroy(d->inner); /* which hands over what has come since */
  let_go(d);
  pthread_mutex_destroy(&d->lock);
  free(d);
}

ax_transport *test_delay(ax_transport *inner, uint64_t seed) {
  static const ax_transport_functions functions = {send, lend, is_returned, settle, fetch, read, see, release, poll, forget, destroy};
  delays *d = calloc(1, sizeof *d);
  assert_non_null(d);
  d->transport = (ax_transport){.functions = &functions, .process = inner->process, .processes = inner->processes};
  d->inner = inner;
  d->random = (test_random){seed};
  pthread_mutex_init(&d->lock, NULL);
  atomic_flag_clear(&d->polling);
  inner->deliver = hold;
  inner->deliver_context = d;
  return &d->transport;
}
