/* Under mpirun, with any number of processes: every case of the transport in which nothing goes wrong. Linked with no MPI.
     messages        all cases but one
     messages big    2 processes or more: a payload that no int counts, 2.5 GiB; no part of the suite */
#include <sys/wait.h>
#include <unistd.h>

#include "processes/node.h"
#include "world.h"

static void send_to(world *w, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent, void *context) {
  CHECK(w->transport->functions->send(w->transport, to, envelope, payload, sent, context) == AX_OK);
}

/* Everybody sends short messages of all sizes to everybody else: they come in order, whole. */
static void short_payloads_come_in_order(void) {
  enum { rounds = 300 };
  static char data[AX_SHORT_PAYLOAD];
  uint32_t next[64] = {0};
  world w;
  open_world(&w);
  CHECK(w.count <= 64);
  for (uint32_t i = 0; i < rounds; i++)
    for (uint32_t p = 0; p < w.count; p++) {
      const ax_envelope envelope = {.run = 7, .bytes = i * 7919 % (AX_SHORT_PAYLOAD + 1), .place = i, .words = {1, 2, 3}};
      if (p == w.me) continue;
      fill(data, envelope.bytes, i + w.me);
      send_to(&w, p, &envelope, data, NULL, NULL);
    }
  for (uint32_t i = 0; i < rounds * (w.count - 1); i++) {
    ax_delivery *one = next_delivery(&w);
    CHECK(one->envelope.place == next[one->from]++);
    CHECK(one->envelope.words[2] == 3);
    CHECK((one->payload == NULL) == (one->envelope.bytes == 0));
    CHECK(is_filled(one->payload, one->envelope.bytes, one->envelope.place + one->from));
    ax_delivery_free(one);
  }
  close_world(&w);
}

/* Long payloads, lent and copied, are received where the receiver says, in another order than they were sent. */
static void long_payloads_are_fetched(void) {
  static const size_t sizes[] = {
      AX_SHORT_PAYLOAD + 1, AX_SHORT_PAYLOAD - 1, AX_SHORT_PAYLOAD, (1 << 20) + 3, 64 << 10, 5 << 20, 9999};
  enum { count = AX_COUNT(sizes), most = 5 << 20 };
  world w;
  open_world(&w);
  _Atomic uint32_t sent = 0, fetched = 0;
  uint32_t lent = 0;
  char *data[count], *into[64 * count];
  for (uint32_t i = 0; i < count; i++) {
    data[i] = malloc(sizes[i]);
    fill(data[i], sizes[i], i + w.me);
    for (uint32_t p = 0; p < w.count; p++) {
      const ax_envelope envelope = {.run = 9, .bytes = sizes[i], .place = i};
      const bool copied = (i + p) % 3 == 0;
      if (p == w.me) continue;
      lent += !copied;
      send_to(&w, p, &envelope, data[i], copied ? NULL : count_up, copied ? NULL : &sent);
    }
  }
  ax_delivery *came[64 * count];
  const uint32_t all = count * (w.count - 1);
  uint32_t long_ones = 0;
  for (uint32_t i = 0; i < all; i++) {
    ax_delivery *one = came[i] = next_delivery(&w);
    into[i] = NULL;
    if (one->envelope.bytes > AX_NODE_PAYLOAD) CHECK(one->payload == NULL);
    if (one->envelope.bytes <= AX_SHORT_PAYLOAD || one->payload != NULL)
      CHECK(is_filled(one->payload, one->envelope.bytes, one->envelope.place + one->from));
  }
  for (uint32_t i = all; i-- > 0;) {
    if (came[i]->payload != NULL || came[i]->envelope.bytes == 0) continue;
    into[i] = malloc(came[i]->envelope.bytes);
    long_ones++;
    CHECK(w.transport->functions->fetch(w.transport, came[i], into[i], count_up, &fetched) == AX_OK);
  }
  poll_until(&w, &fetched, long_ones);
  poll_until(&w, &sent, lent);
  CHECK(sent == lent && fetched == long_ones);
  for (uint32_t i = 0; i < all; i++) {
    if (into[i] != NULL) CHECK(is_filled(into[i], came[i]->envelope.bytes, came[i]->envelope.place + came[i]->from));
    free(into[i]);
    ax_delivery_free(came[i]);
  }
  close_world(&w);
  for (uint32_t i = 0; i < count; i++) free(data[i]);
}

/* A payload that its sender forgets: `sent` is called at once, and its receiver's `fetched` too, when it learns of it. */
static void forgotten_payloads_end(void) {
  enum { bytes = 3 * AX_SHORT_PAYLOAD };
  static char data[bytes], into[bytes];
  world w;
  open_world(&w);
  _Atomic uint32_t forgotten = 0, sent = 0, fetched = 0;
  const uint32_t to = (w.me + 1) % w.count;
  if (w.count > 1) {
    send_to(&w, to, &(ax_envelope){.run = 5, .bytes = bytes}, data, count_up, &forgotten);
    send_to(&w, to, &(ax_envelope){.run = 6, .bytes = bytes}, data, count_up, &sent);
    w.transport->functions->forget(w.transport, 5);
    CHECK(forgotten == 1 && sent == 0);
    for (int i = 0; i < 2; i++) {
      ax_delivery *one = next_delivery(&w);
      CHECK(w.transport->functions->fetch(w.transport, one, into, count_up, &fetched) == AX_OK);
      ax_delivery_free(one);
    }
    poll_until(&w, &fetched, 2);
    poll_until(&w, &sent, 1);
    CHECK(forgotten == 1);
    send_to(&w, to, &(ax_envelope){.run = 7, .bytes = bytes}, data, NULL, NULL); /* nobody fetches it */
  }
  close_world(&w);
}

/* --- Many threads --- */

typedef struct sender {
  world *w;
  uint32_t thread;
  _Atomic uint32_t *sent;
} sender;

enum { threads = 3, each = 400, long_every = 50, long_bytes = 20000 };
static char lent[long_bytes];

static void *send_many(void *context) {
  const sender *s = context;
  static const char short_one[100] = {42};
  for (uint32_t i = 0; i < each; i++)
    for (uint32_t p = 0; p < s->w->count; p++) {
      const bool is_long = i % long_every == 0;
      const ax_envelope envelope = {.run = 1, .bytes = is_long ? long_bytes : i % 100, .group = s->thread, .place = i};
      if (p != s->w->me) send_to(s->w, p, &envelope, is_long ? lent : short_one, count_up, s->sent);
    }
  return NULL;
}

/* Fetches long ones as they come, and checks the order of each thread's. */
typedef struct many {
  world *w;
  uint32_t next[64][threads];
  _Atomic uint32_t came, fetched;
  char *into;
} many;

static void take(void *context, ax_delivery *delivery) {
  many *m = context;
  CHECK(delivery->envelope.place == m->next[delivery->from][delivery->envelope.group]++);
  if (delivery->envelope.bytes > 0 && delivery->payload == NULL)
    CHECK(m->w->transport->functions->fetch(m->w->transport, delivery, m->into, count_up, &m->fetched) == AX_OK);
  else CHECK(delivery->envelope.bytes == 0 || *(char *)delivery->payload == 42);
  ax_delivery_free(delivery);
  atomic_fetch_add(&m->came, 1);
}

static void *poll_many(void *context) {
  many *m = context;
  const uint32_t others = m->w->count - 1;
  poll_until(m->w, &m->came, others * threads * each);
  poll_until(m->w, &m->fetched, others * threads * (each / long_every));
  return NULL;
}

static void many_threads_send_and_poll(void) {
  world w;
  static many m;
  open_world(&w);
  m = (many){.w = &w, .into = malloc(long_bytes)};
  w.transport->deliver = take;
  w.transport->deliver_context = &m;
  _Atomic uint32_t sent = 0;
  sender senders[threads];
  pthread_t ids[threads + 1];
  for (uint32_t t = 0; t < threads; t++) {
    senders[t] = (sender){&w, t, &sent};
    CHECK(pthread_create(&ids[t], NULL, send_many, &senders[t]) == 0);
  }
  CHECK(pthread_create(&ids[threads], NULL, poll_many, &m) == 0);
  poll_many(&m);
  for (uint32_t t = 0; t <= threads; t++) pthread_join(ids[t], NULL);
  poll_until(&w, &sent, (w.count - 1) * threads * each);
  close_world(&w);
  free(m.into);
}

/* --- Two transports, and places --- */

static void transports_do_not_mix(void) {
  world a, b;
  open_world(&a);
  open_world(&b);
  const uint32_t to = (a.me + 1) % a.count;
  const ax_mpi_place *place = ax_mpi_place_of(a.transport);
  CHECK(place->rank == a.me && place->size == a.count && place->node_rank < place->node_size && place->node_size <= a.count);
  if (a.count > 1) {
    send_to(&a, to, &(ax_envelope){.run = 1}, NULL, NULL, NULL);
    send_to(&b, to, &(ax_envelope){.run = 2}, NULL, NULL, NULL);
    ax_delivery *second = next_delivery(&b), *first = next_delivery(&a);
    CHECK(first->envelope.run == 1 && second->envelope.run == 2);
    ax_delivery_free(first);
    ax_delivery_free(second);
  }
  close_world(&b);
  close_world(&a);
}

static void a_big_payload_comes_in_pieces(void) {
  const size_t bytes = ((size_t)5 << 29) + 12345;
  char *data = malloc(bytes);
  world w;
  open_world(&w);
  _Atomic uint32_t sent = 0, fetched = 0;
  if (w.me == 0) {
    fill(data, bytes, 3);
    send_to(&w, 1, &(ax_envelope){.bytes = bytes}, data, count_up, &sent);
    poll_until(&w, &sent, 1);
  } else if (w.me == 1) {
    ax_delivery *one = next_delivery(&w);
    CHECK(w.transport->functions->fetch(w.transport, one, data, count_up, &fetched) == AX_OK);
    poll_until(&w, &fetched, 1);
    CHECK(is_filled(data, bytes, 3));
    ax_delivery_free(one);
  }
  close_world(&w);
  free(data);
}

/* A child that a process forks is none of MPI's: its exit says nothing to the others. */
static void a_child_may_exit(void) {
  world w;
  open_world(&w);
  const pid_t child = fork();
  if (child == 0) exit(0);
  CHECK(child > 0 && waitpid(child, NULL, 0) == child);
  const uint32_t to = (w.me + 1) % w.count;
  if (w.count > 1) {
    send_to(&w, to, &(ax_envelope){.run = 1}, NULL, NULL, NULL);
    ax_delivery_free(next_delivery(&w));
  }
  close_world(&w);
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "big") == 0) {
    a_big_payload_comes_in_pieces();
    return 0;
  }
  short_payloads_come_in_order();
  long_payloads_are_fetched();
  forgotten_payloads_end();
  many_threads_send_and_poll();
  transports_do_not_mix();
  a_child_may_exit();
  printf("passed with %s\n", ax_mpi_library());
  return 0;
}
