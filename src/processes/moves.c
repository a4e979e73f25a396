#include "processes/moves.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "processes/load.h"

enum { tag_messages = 0, tag_payloads = 1, small_bytes = 512, most_kept = 64, idle_rounds = 64, near_idle_rounds = 4096 };
static const double look_seconds = 0.1;

pthread_mutex_t ax_mpi_calls = PTHREAD_MUTEX_INITIALIZER;

/* --- Failures --- */

static void set_failure(ax_mpi *m, const char *reason) {
  pthread_mutex_lock(&m->tables); /* two threads may find one at the same time: by MPI, and in shared memory */
  if (!atomic_load_explicit(&m->failed, memory_order_relaxed)) {
    snprintf(m->reason, sizeof m->reason, "%s", reason);
    atomic_store_explicit(&m->failed, true, memory_order_release);
  }
  pthread_mutex_unlock(&m->tables);
}

ax_status ax_mpi_failure(const ax_mpi *m) {
  if (!atomic_load_explicit(&m->failed, memory_order_acquire)) return AX_OK;
  return ax_error(AX_UNAVAILABLE, "%s", m->reason);
}

ax_status ax_mpi_check(const ax_mpi *m, uint32_t peer) {
  if (!atomic_load_explicit(&m->failed, memory_order_acquire)) return AX_OK;
  if (m->stopped) return ax_mpi_failure(m);
  return m->peers[peer] == AX_PEER_GONE ? ax_error(AX_UNAVAILABLE, "process %u is gone", peer) : AX_OK;
}

static bool is_lost(const ax_mpi *m, uint32_t peer) { return m->stopped || m->peers[peer] == AX_PEER_GONE; }

static void set_peer(ax_mpi *m, uint32_t peer, ax_peer_state state) {
  if (atomic_exchange(&m->peers[peer], (uint8_t)state) == AX_PEER_HERE) m->here--;
}

static void lose(ax_mpi *m, uint32_t peer, const char *why) {
  char text[AX_MPI_TEXT + 64];
  snprintf(text, sizeof text, "process %u is gone: %s", peer, why);
  set_failure(m, text);
  set_peer(m, peer, AX_PEER_GONE);
  if (ax_node_has(m->node, peer)) ax_node_lose(m->node, peer);
  m->unswept = true;
}

/* The process has not called MPI_Finalize, which the library would wait for in that of the others: some do not know that it is gone,
   and Open MPI 5 knows and waits sometimes. */
static void lose_early(ax_mpi *m, uint32_t peer, const char *why) {
  ax_mpi_leave_unfinished();
  lose(m, peer, why);
}

static void stop(ax_mpi *m, const char *why) {
  set_failure(m, why);
  pthread_mutex_lock(&m->tables); /* threads that look at loans have it */
  m->stopped = m->unswept = true;
  pthread_mutex_unlock(&m->tables);
  if (m->node != NULL) ax_node_close(m->node);
}

/* An error of MPI, in talking to a process, or to any (AX_NONE). If a process that is gone explains it, the others can be talked
   to. */
static void fail(ax_mpi *m, int code, uint32_t peer) {
  char text[AX_MPI_TEXT];
  m->shim->describe(code, text);
  const int gone = m->shim->lost(m->communicator);
  if (gone >= 0) lose_early(m, (uint32_t)gone, text);
  if (peer == AX_NONE ? gone < 0 : m->peers[peer] != AX_PEER_GONE) stop(m, text);
}

/* --- Messages: buffers and the queue --- */

static ax_mpi_message *take_pooled(ax_mpi *m, bool small) {
  pthread_mutex_lock(&m->tables);
  ax_mpi_message *one = m->pools[!small];
  if (one != NULL) {
    m->pools[!small] = one->next;
    m->pooled[!small]--;
  }
  pthread_mutex_unlock(&m->tables);
  return one;
}

/* Libraries send this much at once, and more after a handshake of their own, which takes longer than two or three messages do. */
static const size_t eager_bytes = AX_WIRE_LONGEST;

static size_t head_bytes(uint32_t type) { return type == AX_WIRE_ENVELOPE ? sizeof(ax_wire) : AX_WIRE_SHORT; }

/* A message with the next bytes of a payload, as many as fit. */
static ax_status make_part(ax_mpi *m, uint32_t to, const ax_wire *what, const char **payload, size_t *left, ax_mpi_message **out) {
  const size_t head = head_bytes(what->type), room = eager_bytes - head, bytes = *left < room ? *left : room;
  const bool small = bytes <= small_bytes;
  ax_mpi_message *one = *out = take_pooled(m, small);
  if (one == NULL) one = *out = ax_alloc(sizeof *one + (small ? small_bytes : eager_bytes));
  if (one == NULL) return ax_out_of_memory(sizeof *one + bytes);
  one->next = NULL;
  one->to = to;
  one->fetch = 0;
  one->small = small;
  one->bytes = (uint32_t)(head + bytes);
  memcpy(&one->wire, what, head);
  if (bytes > 0) memcpy((char *)&one->wire + head, *payload, bytes);
  *payload += bytes;
  *left -= bytes;
  return AX_OK;
}

ax_status ax_mpi_message_make(ax_mpi *m, uint32_t to, const ax_wire *what, const void *payload, ax_mpi_message **out) {
  static const ax_wire rest = {.type = AX_WIRE_REST};
  const char *next = payload != NULL ? payload : "";
  size_t left = payload != NULL ? what->envelope.bytes : 0;
  ax_mpi_message **link = out;
  ax_status status = make_part(m, to, what, &next, &left, link);
  while (status == AX_OK && left > 0) {
    link = &(*link)->next;
    status = make_part(m, to, &rest, &next, &left, link);
  }
  if (status == AX_OK) return AX_OK;
  *link = NULL;
  for (ax_mpi_message *one = *out, *after; one != NULL; one = after) {
    after = one->next;
    ax_mpi_message_free(m, one);
  }
  *out = NULL;
  return status;
}

void ax_mpi_message_free(ax_mpi *m, ax_mpi_message *one) {
  pthread_mutex_lock(&m->tables);
  const bool keep = m->pooled[!one->small] < most_kept;
  if (keep) {
    one->next = m->pools[!one->small];
    m->pools[!one->small] = one;
    m->pooled[!one->small]++;
  }
  pthread_mutex_unlock(&m->tables);
  if (!keep) ax_free(one);
}

void ax_mpi_message_push(ax_mpi *m, ax_mpi_message *one) {
  pthread_mutex_lock(&m->tables);
  if (m->first == NULL) m->first = one;
  else m->last->next = one;
  while (one->next != NULL) one = one->next;
  m->last = one;
  pthread_mutex_unlock(&m->tables);
}

static ax_mpi_message *pop(ax_mpi *m) {
  pthread_mutex_lock(&m->tables);
  ax_mpi_message *one = m->first;
  if (one != NULL) m->first = one->next;
  pthread_mutex_unlock(&m->tables);
  return one;
}

ax_status ax_mpi_tell(ax_mpi *m, uint32_t to, const ax_wire *what, const void *payload) {
  ax_mpi_message *one;
  if (ax_node_has(m->node, to))
    return ax_node_send(m->node, to, what, head_bytes(what->type), payload, payload != NULL ? what->envelope.bytes : 0);
  AX_TRY(ax_mpi_message_make(m, to, what, payload, &one));
  ax_mpi_message_push(m, one);
  return AX_OK;
}

void ax_mpi_end_loans(ax_mpi *m, const ax_transfer *list) {
  for (; list != NULL; list = list->next)
    if (list->loan != 0 && !m->stopped) ax_loans_end(&m->loans, list->loan);
}

void ax_mpi_take_out(ax_mpi *m, ax_transfer *transfer) {
  ax_transfers_remove(transfer->incoming ? &m->incoming : &m->outgoing, transfer);
  transfer->next = NULL;
  ax_mpi_end_loans(m, transfer);
}

/* --- Requests: `ax_mpi_calls` is held from here on --- */

static ax_status make_room(ax_mpi *m, uint32_t more) {
  AX_TRY(ax_grow(&m->requests, m->shim->request_bytes, m->pending, more, &m->requests_capacity));
  return ax_grow(&m->owners, sizeof m->owners[0], m->pending, more, &m->owners_capacity);
}

static void *request_of(ax_mpi *m, uint32_t i) { return m->requests + (size_t)i * m->shim->request_bytes; }
static void *next_request(ax_mpi *m) { return request_of(m, m->pending); }

/* Closes the gaps that requests which are complete have left. */
static void compact(ax_mpi *m) {
  const size_t bytes = m->shim->request_bytes;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->pending; i++) {
    if (m->owners[i].message == NULL && m->owners[i].transfer == NULL) continue;
    if (kept < i) memcpy(request_of(m, kept), request_of(m, i), bytes);
    m->owners[kept++] = m->owners[i];
  }
  m->pending = kept;
}

uint32_t ax_mpi_pieces(uint64_t bytes) { return (uint32_t)((bytes + AX_MPI_PIECE - 1) / AX_MPI_PIECE); }

static size_t piece_bytes(const ax_transfer *one, uint32_t piece) {
  const uint64_t rest = one->bytes - (uint64_t)piece * AX_MPI_PIECE;
  return rest < AX_MPI_PIECE ? (size_t)rest : AX_MPI_PIECE;
}

/* Room for the requests is there. */
static void post_payload(ax_mpi *m, ax_transfer *one, uint32_t slot_of_receiver) {
  const uint32_t tag = tag_payloads + slot_of_receiver, count = ax_mpi_pieces(one->bytes);
  one->pieces = count;
  for (uint32_t p = 0; p < count; p++) {
    bool done = false;
    char *data = one->memory + (size_t)p * AX_MPI_PIECE;
    int code = one->incoming ? m->shim->irecv(m->communicator, data, piece_bytes(one, p), (int)one->peer, tag, next_request(m))
                             : m->shim->isend(m->communicator, data, piece_bytes(one, p), one->peer, tag, next_request(m), &done);
    if (code != 0) {
      fail(m, code, one->peer);
      return;
    }
    if (done) one->pieces--;
    else m->owners[m->pending++] = (ax_mpi_owner){.transfer = one};
  }
}

static ax_status transmit(ax_mpi *m, ax_mpi_message *one) {
  ax_transfer *fetch = NULL;
  bool done = true;
  if (one->fetch != 0) {
    pthread_mutex_lock(&m->tables);
    fetch = ax_transfers_find(&m->incoming, one->fetch);
    pthread_mutex_unlock(&m->tables);
  }
  AX_TRY(make_room(m, 1 + (fetch != NULL ? ax_mpi_pieces(fetch->bytes) : 0)));
  if (fetch != NULL && !is_lost(m, one->to)) post_payload(m, fetch, ax_transfer_slot(fetch->ticket));
  if (is_lost(m, one->to)) {
    m->unswept = true; /* the message may be the envelope of a long payload */
  } else {
    int code = m->shim->isend(m->communicator, &one->wire, one->bytes, one->to, tag_messages, next_request(m), &done);
    if (code != 0) fail(m, code, one->to);
  }
  if (done) {
    ax_mpi_message_free(m, one);
    return AX_OK;
  }
  m->owners[m->pending++] = (ax_mpi_owner){.message = one};
  m->outboxes[one->to].sending++;
  return AX_OK;
}

static void hold_back(ax_mpi *m, ax_mpi_message *one) {
  ax_mpi_outbox *box = &m->outboxes[one->to];
  one->next = NULL;
  if (box->first == NULL) box->first = one;
  else box->last->next = one;
  box->last = one;
  m->waiting++;
}

static bool is_full(const ax_mpi *m, uint32_t to) { return m->outboxes[to].sending >= AX_MPI_MOST_SENDS && !is_lost(m, to); }

static ax_status send_waiting(ax_mpi *m) {
  for (uint32_t p = 0; p < m->place.size && m->waiting > 0; p++) {
    ax_mpi_outbox *box = &m->outboxes[p];
    for (ax_mpi_message *one; (one = box->first) != NULL && !is_full(m, p);) {
      ax_mpi_message *next = one->next;
      AX_TRY(transmit(m, one));
      box->first = next;
      m->waiting--;
    }
  }
  return AX_OK;
}

static ax_status flush(ax_mpi *m) {
  AX_TRY(send_waiting(m));
  for (ax_mpi_message *one; m->first != NULL && (one = pop(m)) != NULL;) {
    ax_status status = AX_OK;
    if (m->outboxes[one->to].first != NULL || is_full(m, one->to)) hold_back(m, one);
    else status = transmit(m, one);
    if (status == AX_OK) continue;
    pthread_mutex_lock(&m->tables); /* tried again by the next poll */
    if ((one->next = m->first) == NULL) m->last = one;
    m->first = one;
    pthread_mutex_unlock(&m->tables);
    return status;
  }
  return AX_OK;
}

/* --- What has come --- */

/* Adds the next bytes of the payload that comes from a process, and hands it on when it is whole. */
static void fill(ax_mpi *m, uint32_t from, const char *data, size_t bytes) {
  ax_mpi_partial *p = &m->partial[from];
  ax_delivery *one = p->delivery;
  if (one == NULL) return; /* nothing is delivered any more */
  if (bytes > 0) memcpy((char *)one->payload + p->filled, data, bytes);
  p->filled += bytes;
  if (one->payload != NULL && p->filled < one->envelope.bytes) return;
  p->delivery = NULL;
  if (m->found.first == NULL) m->found.first = one;
  else m->found.last->next = one;
  m->found.last = one;
}

static ax_status on_envelope(ax_mpi *m, uint32_t from, const ax_wire *what, const ax_node_message *message) {
  ax_mpi_partial *p = &m->partial[from];
  if (m->closing) return AX_OK;
  AX_TRY(ax_delivery_make(&what->envelope, from, what->ticket == 0, NULL, &p->delivery));
  p->delivery->ticket = what->ticket;
  if (ax_node_reads(m->node, from)) p->delivery->address = what->address;
  p->delivery->loan = what->loan;
  p->filled = 0;
  fill(m, from, message->body, message->body_bytes);
  return AX_OK;
}

/* Takes it out of its table. The poll calls `done`. */
static void end_transfer(ax_mpi *m, ax_transfer *one) {
  pthread_mutex_lock(&m->tables);
  ax_mpi_take_out(m, one);
  pthread_mutex_unlock(&m->tables);
  one->next = m->found.done;
  m->found.done = one;
}

/* NULL: it has been forgotten. From here on it cannot be. */
static ax_transfer *start_outgoing(ax_mpi *m, uint64_t ticket) {
  pthread_mutex_lock(&m->tables);
  ax_transfer *one = ax_transfers_find(&m->outgoing, ticket);
  if (one != NULL) one->started = true;
  pthread_mutex_unlock(&m->tables);
  return one;
}

/* Sends a payload, or the word that it was forgotten. */
static ax_status on_fetch(ax_mpi *m, const ax_wire *what, uint32_t from) {
  AX_TRY(make_room(m, (uint32_t)what->pieces));
  ax_transfer *one = start_outgoing(m, what->ticket);
  if (one == NULL) return ax_mpi_tell(m, from, &(ax_wire){.type = AX_WIRE_FORGOTTEN, .slot = what->slot}, NULL);
  post_payload(m, one, what->slot);
  if (one->pieces == 0) end_transfer(m, one);
  return AX_OK;
}

/* Ends the requests of a transfer of which nothing more will come, or go. */
static void end_requests(ax_mpi *m, const ax_transfer *one) {
  for (uint32_t i = 0; i < m->pending; i++) {
    if (m->owners[i].transfer != one) continue;
    if (one->incoming) m->shim->cancel(request_of(m, i));
    else m->shim->drop(request_of(m, i));
    m->owners[i] = (ax_mpi_owner){0};
  }
  compact(m);
}

/* The payload was forgotten where it lay: its receives are for nothing. */
static void on_forgotten(ax_mpi *m, const ax_wire *what) {
  pthread_mutex_lock(&m->tables);
  ax_transfer *one = m->incoming.slots[what->slot];
  pthread_mutex_unlock(&m->tables);
  if (one == NULL) return; /* its process was taken for gone */
  end_requests(m, one);
  end_transfer(m, one);
}

/* The payload was read where it lay. */
static void on_read(ax_mpi *m, const ax_wire *what) {
  ax_transfer *one = start_outgoing(m, what->ticket);
  if (one != NULL) end_transfer(m, one);
}

static ax_status on_message(void *context, uint32_t from, ax_node_message *message) {
  ax_mpi *m = context;
  const ax_wire *what = message->head;
  switch ((ax_wire_type)what->type) {
    case AX_WIRE_ENVELOPE: return on_envelope(m, from, what, message);
    case AX_WIRE_REST: fill(m, from, message->body, message->body_bytes); break;
    case AX_WIRE_FETCH: return on_fetch(m, what, from);
    case AX_WIRE_FORGOTTEN: on_forgotten(m, what); break;
    case AX_WIRE_READ: on_read(m, what); break;
    case AX_WIRE_END:
      set_peer(m, from, AX_PEER_ENDED);
      m->found.ended = true;
      break;
    case AX_WIRE_LEFT: lose(m, from, "it has called MPI_Finalize, or exited, before it released its part of the mesh"); break;
  }
  return AX_OK;
}

/* Where its receiver can take it at once, a short message is not copied out of the ring. */
static bool is_taken_here(const ax_mpi *m, uint32_t from, const ax_node_message *message) {
  const ax_wire *what = message->head;
  if (what->type != AX_WIRE_ENVELOPE || what->ticket != 0 || message->body_bytes != what->envelope.bytes) return false;
  return !m->closing && m->found.first == NULL && m->transport.take_here != NULL &&
         m->transport.take_here(m->transport.deliver_context, from, &what->envelope, message->body);
}

/* For a thread that cannot call MPI now. Such messages are left where they are, and all from their sender with them. */
static ax_status on_message_near(void *context, uint32_t from, ax_node_message *message) {
  const ax_wire_type type = (ax_wire_type)((const ax_wire *)message->head)->type;
  const bool calls_mpi = type == AX_WIRE_FETCH || type == AX_WIRE_FORGOTTEN;
  if (calls_mpi) return AX_UNAVAILABLE;
  message->goes_on = is_taken_here(context, from, message);
  return message->goes_on ? AX_OK : on_message(context, from, message);
}

static void post(ax_mpi *m, ax_mpi_slot *s) {
  if (m->stopped) return;
  int code = m->shim->irecv(m->communicator, s->data, sizeof s->data, AX_MPI_ANY, tag_messages, s->request);
  s->posted = code == 0;
  if (code != 0) fail(m, code, AX_NONE);
}

/* Whether the receive has ended: with a message, or with an error. */
static bool has_ended(ax_mpi *m, ax_mpi_slot *s) {
  bool done = false;
  if (s->arrived || !s->posted || m->stopped) return s->arrived;
  int code = m->shim->test(s->request, &done, &s->arrival);
  s->posted = !done;
  s->arrived = done && code == 0;
  if (code != 0) fail(m, code, AX_NONE);
  return done;
}

static ax_status on_slot(ax_mpi *m, const ax_mpi_slot *s) {
  const size_t head = head_bytes(((const ax_wire *)(const void *)s->data)->type);
  return on_message(m, (uint32_t)s->arrival.from, &(ax_node_message){s->data, head, s->data + head, s->arrival.bytes - head, false});
}

/* Reads what has come, in turn, at most one round. */
static ax_status receive(ax_mpi *m, bool *any) {
  for (uint32_t i = 0; i < AX_MPI_RING; i++) {
    ax_mpi_slot *s = &m->ring[m->head];
    if (!has_ended(m, s)) return AX_OK;
    /* Out of memory: the next poll reads it again. */
    if (s->arrived) AX_TRY(on_slot(m, s));
    s->arrived = false;
    *any = true;
    m->head = (m->head + 1) % AX_MPI_RING;
    post(m, s);
  }
  return AX_OK;
}

/* --- What has ended --- */

static uint32_t peer_of(const ax_mpi_owner *o) { return o->message != NULL ? o->message->to : o->transfer->peer; }

static void complete(ax_mpi *m, ax_mpi_owner *o, int error) {
  if (error != 0) fail(m, error, peer_of(o));
  if (o->message != NULL) {
    m->outboxes[o->message->to].sending--;
    ax_mpi_message_free(m, o->message);
  } else if (--o->transfer->pieces == 0) {
    end_transfer(m, o->transfer);
  }
  *o = (ax_mpi_owner){0};
}

static ax_status test_pending(ax_mpi *m, bool *any) {
  uint32_t count;
  if (m->pending == 0 || m->stopped) return AX_OK;
  AX_TRY(ax_grow(&m->results, sizeof m->results[0], 0, 2 * m->pending, &m->results_capacity));
  int *indices = m->results, *errors = indices + m->pending;
  int code = m->shim->test_some(m->pending, m->requests, &count, indices, errors);
  if (code != 0) fail(m, code, AX_NONE);
  for (uint32_t i = 0; i < count; i++) complete(m, &m->owners[indices[i]], errors[i]);
  if (count > 0) compact(m);
  *any = *any || count > 0;
  return AX_OK;
}

static bool is_of_lost(const ax_transfer *one, const void *m) { return is_lost(m, one->peer); }

/* Ends the transfers with processes that are gone. */
static void sweep(ax_mpi *m) {
  m->unswept = false;
  pthread_mutex_lock(&m->tables);
  ax_transfer *list = ax_transfers_take(&m->incoming, is_of_lost, m, NULL);
  list = ax_transfers_take(&m->outgoing, is_of_lost, m, list);
  ax_mpi_end_loans(m, list);
  pthread_mutex_unlock(&m->tables);
  for (ax_transfer *next; list != NULL; list = next) {
    next = list->next;
    end_requests(m, list);
    list->next = m->found.done;
    m->found.done = list;
  }
}

/* A process of this node that has ended without a last message is gone. What it sent before may still be on its way when it is
   first seen to have ended, so it is taken for gone a while later. */
static void look(ax_mpi *m) {
  const double now = ax_seconds();
  if (m->watch == NULL || now < m->looked + look_seconds) return;
  m->looked = now;
  if (m->suspect != AX_NONE && m->peers[m->suspect] == AX_PEER_HERE)
    lose_early(m, m->suspect, "it has ended, and without a last message");
  m->suspect = ax_node_watch_ended(m->watch);
}

/* --- Moving messages --- */

void ax_mpi_start_receiving(ax_mpi *m) {
  for (uint32_t i = 0; i < AX_MPI_RING; i++) post(m, &m->ring[i]);
}

ax_status ax_mpi_move(ax_mpi *m, bool *any) {
  AX_TRY(flush(m));
  if (m->node != NULL && !m->stopped) AX_TRY(ax_node_poll(m->node, on_message, m, any));
  const bool looks = !*any && ++m->idle % idle_rounds == 0;
  if (!m->all_near || m->pending > 0 || (looks && m->idle % near_idle_rounds == 0)) {
    AX_TRY(receive(m, any));
    AX_TRY(test_pending(m, any));
  }
  if (looks) look(m);
  if (m->unswept) sweep(m);
  return flush(m);
}

/* Where all are near and read each other's memory, only a look at the others wants it, now and then. */
bool ax_mpi_wants_calls(const ax_mpi *m) {
  return !m->all_near || m->first != NULL || m->unswept || (m->idle + 1) % idle_rounds == 0;
}

void ax_mpi_move_near(ax_mpi *m, bool *any) {
  if (m->node != NULL && !m->stopped) (void)!ax_node_poll(m->node, on_message_near, m, any);
  if (!*any) m->idle++;
}

void ax_mpi_tell_others(ax_mpi *m, ax_wire_type type) {
  for (uint32_t p = 0; p < m->place.size; p++)
    while (p != m->place.rank && m->peers[p] != AX_PEER_GONE && !m->stopped &&
           ax_mpi_tell(m, p, &(ax_wire){.type = type}, NULL) != AX_OK)
      sched_yield();
}

void ax_mpi_stop_receiving(ax_mpi *m) {
  for (uint32_t i = 0; i < AX_MPI_RING; i++) {
    if (m->ring[i].posted) m->shim->cancel(m->ring[i].request);
    m->ring[i].posted = false;
  }
}

void ax_mpi_leave(ax_mpi *m) {
  bool any = false;
  if (m->stopped) return;
  ax_mpi_tell_others(m, AX_WIRE_LEFT);
  const double end = ax_seconds() + 1; /* a process that is stuck does not take them */
  do {
    (void)!flush(m);
    if (m->node != NULL) ax_node_flush(m->node);
  } while (test_pending(m, &any) == AX_OK && !m->stopped &&
           (m->first != NULL || m->waiting > 0 || m->pending > 0 || ax_node_is_sending(m->node)) && ax_seconds() < end);
  ax_mpi_stop_receiving(m);
  stop(m, "MPI_Finalize was called before this process released its part of the mesh");
}

/* Nothing is held. */
void ax_mpi_pump(ax_mpi *m) {
  while (m->first != NULL && pthread_mutex_trylock(&ax_mpi_calls) == 0) {
    ax_status status = flush(m);
    pthread_mutex_unlock(&ax_mpi_calls);
    if (status != AX_OK) return; /* a poll will find it again, and report it */
    atomic_thread_fence(memory_order_seq_cst);
  }
}
