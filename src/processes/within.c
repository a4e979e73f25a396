/* Each process has a queue of what others have for it: messages, and the ends of sends and fetches. One lock guards all queues. */
#include "processes/within.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"

typedef struct item { /* a delivery, or a call of `done` */
  ax_delivery *delivery;
  ax_on_done *done;
  void *context;
  struct item *next;
} item;

/* A long payload that has not been fetched, nor forgotten. */
typedef struct held {
  uint64_t ticket;
  uint64_t run;
  uint32_t from;
  size_t bytes;
  const void *payload;
  void *copy; /* NULL: the payload is the sender's */
  ax_on_done *sent;
  void *context;
  struct held *next;
} held;

typedef struct queue {
  item *first, *last;
} queue;

typedef struct hub {
  pthread_mutex_t lock;
  uint32_t count, users; /* users: transports that have not been destroyed */
  uint32_t gone;         /* AX_NONE: none is */
  held *held;
  uint64_t tickets; /* given so far */
  queue queues[];
} hub;

typedef struct within {
  ax_transport transport;
  hub *hub;
  atomic_flag polling;
} within;

static hub *hub_of(const ax_transport *transport) { return ((const within *)transport)->hub; }

/* --- Queues: the lock is held --- */

static item *make_item(ax_delivery *delivery, ax_on_done *done, void *context) {
  item *new = ax_calloc(1, sizeof *new);
  if (new != NULL) *new = (item){delivery, done, context, NULL};
  return new;
}

static void append(hub *h, uint32_t to, item *new) {
  queue *q = &h->queues[to];
  if (q->first == NULL) q->first = new;
  else q->last->next = new;
  q->last = new;
}

static ax_status add(hub *h, uint32_t to, ax_delivery *delivery) {
  item *new = make_item(delivery, NULL, NULL);
  if (new == NULL) return ax_out_of_memory(sizeof *new);
  append(h, to, new);
  return AX_OK;
}

static item *take_all(hub *h, uint32_t process) {
  pthread_mutex_lock(&h->lock);
  item *first = h->queues[process].first;
  h->queues[process] = (queue){NULL, NULL};
  pthread_mutex_unlock(&h->lock);
  return first;
}

static ax_status is_gone(uint32_t process) { return ax_error(AX_UNAVAILABLE, "process %u is gone", process); }

/* --- Sending --- */

static ax_status hold(uint32_t from, const ax_envelope *envelope, const void *payload, ax_on_done *sent, void *context,
                      held **out) {
  held *one = *out = ax_calloc(1, sizeof *one);
  void *copy = one != NULL && sent == NULL ? ax_alloc(envelope->bytes) : NULL;
  if (one == NULL || (sent == NULL && copy == NULL)) {
    ax_free(one);
    *out = NULL;
    return ax_out_of_memory(envelope->bytes);
  }
  if (copy != NULL) memcpy(copy, payload, envelope->bytes);
  *one = (held){.run = envelope->run,
                .from = from,
                .bytes = envelope->bytes,
                .payload = copy != NULL ? copy : payload,
                .copy = copy,
                .sent = sent,
                .context = context};
  return AX_OK;
}

/* loan: NULL, or it gets the ticket, before the message can be seen. */
static ax_status deliver_to(hub *h, uint32_t to, ax_delivery *delivery, held *one, ax_loan *loan) {
  pthread_mutex_lock(&h->lock);
  ax_status status = h->gone == to || h->gone == delivery->from ? is_gone(h->gone) : add(h, to, delivery);
  if (status == AX_OK && one != NULL) {
    delivery->ticket = one->ticket = ++h->tickets;
    if (one->ticket % 2 == 0) delivery->address = (uint64_t)(uintptr_t)one->payload; /* so that both ways are tried */
    one->next = h->held;
    h->held = one;
  }
  if (status == AX_OK && loan != NULL) *loan = (ax_loan){.to = to, .ticket = one->ticket};
  pthread_mutex_unlock(&h->lock);
  return status;
}

static void unlink_held(hub *h, const held *one) {
  held **link = &h->held;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
}

static held *find_held(const hub *h, uint64_t ticket) {
  held *one = h->held;
  while (one != NULL && one->ticket != ticket) one = one->next;
  return one;
}

static void nothing(void *context) { (void)context; }

static ax_status send(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                      void *context) {
  const bool is_long = envelope->bytes > AX_SHORT_PAYLOAD;
  ax_delivery *delivery;
  held *one = NULL;
  AX_TRY(ax_delivery_make(envelope, transport->process, !is_long, payload, &delivery));
  ax_status status = is_long ? hold(transport->process, envelope, payload, sent, context, &one) : AX_OK;
  if (status == AX_OK) status = deliver_to(hub_of(transport), to, delivery, one, NULL);
  if (status == AX_OK) {
    if (!is_long && sent != NULL) sent(context);
    return AX_OK;
  }
  if (one != NULL) ax_free(one->copy);
  ax_free(one);
  ax_delivery_free(delivery);
  return status;
}

/* --- Lending --- */

static ax_status lend(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_loan *loan) {
  ax_delivery *delivery;
  held *one = NULL;
  AX_TRY(ax_delivery_make(envelope, transport->process, false, NULL, &delivery));
  ax_status status = hold(transport->process, envelope, payload, nothing, NULL, &one);
  if (status == AX_OK) status = deliver_to(hub_of(transport), to, delivery, one, loan);
  if (status == AX_OK) return AX_OK;
  ax_free(one);
  ax_delivery_free(delivery);
  return status;
}

static bool is_returned(ax_transport *transport, const ax_loan *loan) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  const bool returned = find_held(h, loan->ticket) == NULL;
  pthread_mutex_unlock(&h->lock);
  return returned;
}

static ax_status settle(ax_transport *transport, ax_loan *loan) {
  hub *h = hub_of(transport);
  ax_status status = AX_OK;
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, loan->ticket);
  if (one != NULL) {
    one->copy = ax_alloc(one->bytes);
    if (one->copy != NULL) memcpy(one->copy, one->payload, one->bytes);
    one->payload = one->copy;
    one->sent = NULL;
    if (one->copy == NULL) {
      status = ax_out_of_memory(one->bytes);
      unlink_held(h, one);
      ax_free(one);
    }
  }
  pthread_mutex_unlock(&h->lock);
  return status;
}

/* --- Fetching --- */

/* The lock is held. Both sides are told, or nothing has happened. one NULL: the sender has forgotten it. */
static ax_status hand_over(hub *h, uint32_t to, held *one, void *into, ax_on_done *fetched, void *context) {
  if (one != NULL && h->gone == one->from) return is_gone(h->gone);
  item *came = make_item(NULL, fetched, context), *left = one != NULL ? make_item(NULL, one->sent, one->context) : NULL;
  if (came == NULL || (one != NULL && left == NULL)) {
    ax_free(came);
    ax_free(left);
    return ax_out_of_memory(sizeof *came);
  }
  append(h, to, came);
  if (one == NULL) return AX_OK;
  memcpy(into, one->payload, one->bytes);
  unlink_held(h, one);
  if (one->sent != NULL) append(h, one->from, left);
  else ax_free(left);
  return AX_OK;
}

static ax_status fetch(ax_transport *transport, const ax_delivery *delivery, void *into, ax_on_done *fetched, void *context) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, delivery->ticket);
  ax_status status = hand_over(h, transport->process, one, into, fetched, context);
  pthread_mutex_unlock(&h->lock);
  if (status != AX_OK || one == NULL) return status;
  ax_free(one->copy);
  ax_free(one);
  return AX_OK;
}

static ax_status read(ax_transport *transport, const ax_delivery *delivery, size_t offset, void *into, size_t bytes) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  const held *one = find_held(h, delivery->ticket);
  const bool gone = one != NULL && h->gone == one->from;
  if (one != NULL && !gone) memcpy(into, (const char *)one->payload + offset, bytes);
  pthread_mutex_unlock(&h->lock);
  return gone ? is_gone(delivery->from) : AX_OK;
}

static ax_status release(ax_transport *transport, const ax_delivery *delivery) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, delivery->ticket);
  item *left = one != NULL && one->sent != NULL ? make_item(NULL, one->sent, one->context) : NULL;
  const bool released = one != NULL && (one->sent == NULL || left != NULL);
  if (released) unlink_held(h, one);
  if (left != NULL) append(h, one->from, left);
  pthread_mutex_unlock(&h->lock);
  if (one == NULL) return AX_OK;
  if (!released) return ax_out_of_memory(sizeof *left);
  ax_free(one->copy);
  ax_free(one);
  return AX_OK;
}

static void forget(ax_transport *transport, uint64_t run) {
  hub *h = hub_of(transport);
  held *mine = NULL;
  pthread_mutex_lock(&h->lock);
  for (held **link = &h->held; *link != NULL;) {
    held *one = *link;
    if (one->run != run || one->from != transport->process) {
      link = &one->next;
      continue;
    }
    *link = one->next;
    one->next = mine;
    mine = one;
  }
  pthread_mutex_unlock(&h->lock);
  for (held *next; mine != NULL; mine = next) {
    next = mine->next;
    if (mine->sent != NULL) mine->sent(mine->context);
    ax_free(mine->copy);
    ax_free(mine);
  }
}

/* --- Polling --- */

static ax_status poll(ax_transport *transport, bool *any) {
  within *w = (within *)transport;
  *any = false;
  if (atomic_flag_test_and_set(&w->polling)) return AX_OK;
  for (item *next, *one = take_all(w->hub, transport->process); one != NULL; one = next) {
    next = one->next;
    *any = true;
    if (one->delivery != NULL) transport->deliver(transport->deliver_context, one->delivery);
    else one->done(one->context);
    ax_free(one);
  }
  atomic_flag_clear(&w->polling);
  pthread_mutex_lock(&w->hub->lock);
  const uint32_t gone = w->hub->gone;
  pthread_mutex_unlock(&w->hub->lock);
  return gone == AX_NONE || gone == transport->process ? AX_OK : is_gone(gone);
}

/* --- The hub --- */

static void free_hub(hub *h) {
  for (uint32_t p = 0; p < h->count; p++)
    for (item *next, *one = h->queues[p].first; one != NULL; one = next) {
      next = one->next;
      ax_delivery_free(one->delivery);
      ax_free(one);
    }
  for (held *next, *one = h->held; one != NULL; one = next) {
    next = one->next;
    ax_free(one->copy);
    ax_free(one);
  }
  pthread_mutex_destroy(&h->lock);
  ax_free(h);
}

/* What has come is handed over: payloads that were fetched have owners. */
static void destroy(ax_transport *transport) {
  hub *h = hub_of(transport);
  bool any;
  if (transport->deliver != NULL) (void)!poll(transport, &any);
  pthread_mutex_lock(&h->lock);
  const bool last = --h->users == 0;
  pthread_mutex_unlock(&h->lock);
  if (last) free_hub(h);
  ax_free(transport);
  ax_deliveries_leave();
}

void ax_within_lose(ax_transport *transport, uint32_t gone) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  h->gone = gone;
  pthread_mutex_unlock(&h->lock);
}

ax_status ax_within_create(uint32_t count, ax_transport **out) {
  static const ax_transport_functions functions = {send, lend, is_returned, settle, fetch, read, release, poll, forget, destroy};
  hub *h = ax_calloc(1, sizeof *h + count * sizeof h->queues[0]);
  bool complete = h != NULL;
  for (uint32_t p = 0; p < count; p++) {
    within *w = ax_calloc(1, sizeof *w);
    out[p] = (ax_transport *)w;
    complete = complete && w != NULL;
    if (w == NULL) continue;
    w->transport = (ax_transport){.functions = &functions, .process = p, .processes = count};
    w->hub = h;
    atomic_flag_clear(&w->polling);
  }
  if (!complete) {
    for (uint32_t p = 0; p < count; p++) {
      ax_free(out[p]);
      out[p] = NULL;
    }
    ax_free(h);
    return ax_out_of_memory(count * sizeof(within));
  }
  pthread_mutex_init(&h->lock, NULL);
  h->count = h->users = count;
  for (uint32_t p = 0; p < count; p++) ax_deliveries_use(); /* each is destroyed by itself */
  h->gone = AX_NONE;
  return AX_OK;
}
