/* Each process has a queue of what others have for it: messages, and the ends of sends and fetches. One lock guards all queues. */
#include "processes/within.h"

#include <pthread.h>
#include <sched.h>
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
  uint32_t from, to;
  bool lent, reading; /* reading: its receiver has begun to read it where it was lent */
  bool seen;          /* its receiver looks at the memory itself, until it releases it */
  size_t bytes;
  const void *payload;
  void *copy; /* NULL: the payload is the sender's */
  ax_on_done *sent;
  void *context;
  struct held *next;
} held;

typedef struct queue {
  item *first, *last;
  uint32_t lent; /* how many payloads the process lends */
} queue;

typedef struct hub {
  pthread_mutex_t lock;
  uint32_t count, users; /* users: transports that have not been destroyed */
  uint32_t gone;         /* AX_NONE: none is */
  held *held;
  uint64_t tickets; /* given so far */
  queue queues[];
} hub;

enum { most_lent = 2 }; /* by a process at a time; others are copied. Few, so that tests come to that */

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
  h->queues[process].first = h->queues[process].last = NULL;
  pthread_mutex_unlock(&h->lock);
  return first;
}

static ax_status is_gone(uint32_t process) { return ax_error(AX_UNAVAILABLE, "process %u is gone", process); }

/* --- Polling --- */

static void give(ax_transport *transport, ax_delivery *delivery) {
  const bool is_short = delivery->ticket == 0 && transport->take_here != NULL;
  if (is_short && transport->take_here(transport->deliver_context, delivery->from, &delivery->envelope, delivery->payload))
    ax_delivery_free(delivery);
  else
    transport->deliver(transport->deliver_context, delivery);
}

static ax_status poll(ax_transport *transport, bool *any) {
  within *w = (within *)transport;
  *any = false;
  if (atomic_flag_test_and_set(&w->polling)) return AX_OK;
  for (item *next, *one = take_all(w->hub, transport->process); one != NULL; one = next) {
    next = one->next;
    *any = true;
    if (one->delivery != NULL) give(transport, one->delivery);
    else one->done(one->context);
    ax_free(one);
  }
  atomic_flag_clear(&w->polling);
  pthread_mutex_lock(&w->hub->lock);
  const uint32_t gone = w->hub->gone;
  pthread_mutex_unlock(&w->hub->lock);
  return gone == AX_NONE || gone == transport->process ? AX_OK : is_gone(gone);
}

/* --- Sending --- */

/* lent, or with `sent`: the payload stays where it is. Otherwise it is copied. */
static ax_status keep_payload(uint32_t from, uint32_t to, const ax_envelope *envelope, const void *payload, bool lent, ax_on_done *sent,
                      void *context, held **out) {
  const bool copies = !lent && sent == NULL;
  held *one = *out = ax_calloc(1, sizeof *one);
  void *copy = one != NULL && copies ? ax_alloc(envelope->bytes) : NULL;
  if (one == NULL || (copies && copy == NULL)) {
    ax_free(one);
    *out = NULL;
    return ax_out_of_memory(envelope->bytes);
  }
  if (copy != NULL) memcpy(copy, payload, envelope->bytes);
  *one = (held){.run = envelope->run,
                .from = from,
                .to = to,
                .lent = lent,
                .bytes = envelope->bytes,
                .payload = copy != NULL ? copy : payload,
                .copy = copy,
                .sent = sent,
                .context = context};
  return AX_OK;
}

/* loan: NULL, or it gets the ticket of what is lent, before the message can be seen. */
static ax_status deliver_to(hub *h, uint32_t to, ax_delivery *delivery, held *one, ax_loan *loan) {
  pthread_mutex_lock(&h->lock);
  ax_status status = h->gone == to || h->gone == delivery->from ? is_gone(h->gone) : add(h, to, delivery);
  if (status == AX_OK && one != NULL) {
    delivery->ticket = one->ticket = ++h->tickets;
    if (one->ticket % 2 == 0) delivery->address = (uint64_t)(uintptr_t)one->payload; /* so that both ways are tried */
    one->next = h->held;
    h->held = one;
  }
  if (status == AX_OK && loan != NULL) {
    *loan = (ax_loan){.to = to, .ticket = one->ticket};
    delivery->loan = one->ticket;
  }
  pthread_mutex_unlock(&h->lock);
  return status;
}

static void unlink_held(hub *h, const held *one) {
  held **link = &h->held;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  h->queues[one->from].lent -= one->lent;
}

static held *find_held(const hub *h, uint64_t ticket) {
  held *one = h->held;
  while (one != NULL && one->ticket != ticket) one = one->next;
  return one;
}

static ax_status send(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                      void *context) {
  const bool is_long = envelope->bytes > AX_SHORT_PAYLOAD;
  ax_delivery *delivery;
  held *one = NULL;
  AX_TRY(ax_delivery_make(envelope, transport->process, !is_long, payload, &delivery));
  ax_status status = is_long ? keep_payload(transport->process, to, envelope, payload, false, sent, context, &one) : AX_OK;
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

static bool may_lend(hub *h, uint32_t process) {
  pthread_mutex_lock(&h->lock);
  const bool may = h->queues[process].lent < most_lent;
  h->queues[process].lent += may;
  pthread_mutex_unlock(&h->lock);
  return may;
}

static void end_lending(hub *h, uint32_t process) {
  pthread_mutex_lock(&h->lock);
  h->queues[process].lent--;
  pthread_mutex_unlock(&h->lock);
}

static ax_status lend(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_loan *loan) {
  hub *h = hub_of(transport);
  ax_delivery *delivery;
  held *one = NULL;
  *loan = (ax_loan){.to = to};
  AX_TRY(ax_delivery_make(envelope, transport->process, false, NULL, &delivery));
  const bool lends = may_lend(h, transport->process);
  ax_status status = keep_payload(transport->process, to, envelope, payload, lends, NULL, NULL, &one);
  if (status == AX_OK) status = deliver_to(h, to, delivery, one, lends ? loan : NULL);
  if (status == AX_OK) return AX_OK;
  if (lends) end_lending(h, transport->process);
  if (one != NULL) ax_free(one->copy);
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

/* The lock is held. */
static ax_status move(hub *h, held *one) {
  one->copy = ax_alloc(one->bytes);
  if (one->copy != NULL) {
    one->payload = memcpy(one->copy, one->payload, one->bytes);
    return AX_OK;
  }
  ax_status status = ax_out_of_memory(one->bytes);
  unlink_held(h, one);
  ax_free(one);
  return status;
}

/* Returns true if its owner must wait, because its receiver reads it. */
static bool settle_now(hub *h, const ax_loan *loan, ax_status *status) {
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, loan->ticket);
  const bool waits = one != NULL && one->reading && (one->seen || h->gone != one->to);
  if (one != NULL && one->reading && !waits) {
    unlink_held(h, one);
    ax_free(one);
  } else if (one != NULL && !waits && one->copy == NULL) {
    *status = move(h, one);
  }
  pthread_mutex_unlock(&h->lock);
  return waits;
}

static ax_status settle(ax_transport *transport, ax_loan *loan) {
  ax_status status = AX_OK;
  while (loan->ticket != 0 && settle_now(hub_of(transport), loan, &status)) {
    bool any;
    (void)!poll(transport, &any);
    if (!any) sched_yield();
  }
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
  held *one = find_held(h, delivery->ticket);
  const bool gone = one != NULL && h->gone == one->from;
  if (one != NULL && !gone) {
    one->reading = one->lent && one->copy == NULL;
    memcpy(into, (const char *)one->payload + offset, bytes);
  }
  pthread_mutex_unlock(&h->lock);
  return gone ? is_gone(delivery->from) : AX_OK;
}

/* Every other one of those that have an address and need no word to their owner: so all ways are tried. */
static const void *see(ax_transport *transport, const ax_delivery *delivery) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, delivery->ticket);
  const bool sees = one != NULL && h->gone != one->from && one->ticket % 4 == 0 && (one->lent || one->sent == NULL);
  if (sees) {
    one->reading = one->lent && one->copy == NULL;
    one->seen = true;
  }
  const void *payload = sees ? one->payload : NULL;
  pthread_mutex_unlock(&h->lock);
  return payload;
}

static ax_status release(ax_transport *transport, const ax_delivery *delivery) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  held *one = find_held(h, delivery->ticket);
  const bool tells = one != NULL && one->sent != NULL;
  item *left = tells ? make_item(NULL, one->sent, one->context) : NULL;
  const bool released = one != NULL && (!tells || left != NULL);
  if (released) unlink_held(h, one);
  if (left != NULL) append(h, one->from, left);
  pthread_mutex_unlock(&h->lock);
  if (one == NULL) return AX_OK;
  if (!released) return ax_out_of_memory(sizeof *left);
  ax_free(one->copy);
  ax_free(one);
  return AX_OK;
}

/* The lock is held, as for the next one. While another process looks at a payload, its owner does not forget it: where processes are
   threads, the memory might be given back. */
static bool is_seen(const hub *h, uint32_t process, uint64_t run) {
  for (const held *one = h->held; one != NULL; one = one->next)
    if (one->run == run && one->from == process && one->seen) return true;
  return false;
}

static held *take_out(hub *h, uint32_t process, uint64_t run) {
  held *taken = NULL;
  for (held **link = &h->held; *link != NULL;) {
    held *one = *link;
    if (one->run != run || one->from != process) {
      link = &one->next;
      continue;
    }
    *link = one->next;
    h->queues[process].lent -= one->lent;
    one->next = taken;
    taken = one;
  }
  return taken;
}

static void forget(ax_transport *transport, uint64_t run) {
  hub *h = hub_of(transport);
  pthread_mutex_lock(&h->lock);
  while (is_seen(h, transport->process, run)) {
    pthread_mutex_unlock(&h->lock);
    sched_yield();
    pthread_mutex_lock(&h->lock);
  }
  held *mine = take_out(h, transport->process, run);
  pthread_mutex_unlock(&h->lock);
  for (held *next; mine != NULL; mine = next) {
    next = mine->next;
    if (mine->sent != NULL) mine->sent(mine->context);
    ax_free(mine->copy);
    ax_free(mine);
  }
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
  static const ax_transport_functions functions = {send, lend, is_returned, settle, fetch, read, see, release, poll, forget, destroy};
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
