/* The functions of the transport, and its beginning and end. */
#include "processes/mpi.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "processes/load.h"
#include "processes/moves.h"
#include "processes/together.h"

static ax_mpi *opened; /* guarded by `ax_mpi_calls` */

/* The caller holds nothing, and is the only one who polls. */
static void hand_over(ax_mpi *m, ax_mpi_found f) {
  for (ax_delivery *next; f.first != NULL; f.first = next) {
    next = f.first->next;
    f.first->next = NULL;
    m->transport.deliver(m->transport.deliver_context, f.first);
  }
  for (ax_transfer *next; f.done != NULL; f.done = next) {
    next = f.done->next;
    ax_transfer_end(f.done);
  }
  for (uint32_t p = 0; f.ended && m->transport.released != NULL && p < m->place.size; p++)
    if (m->peers[p] == AX_PEER_ENDED) m->transport.released(m->transport.deliver_context, p);
}

static ax_status poll(ax_transport *transport, bool *any) {
  ax_mpi *m = (ax_mpi *)transport;
  *any = false;
  if (atomic_flag_test_and_set_explicit(&m->polling, memory_order_acquire)) return AX_OK;
  ax_status status = AX_OK;
  /* Another thread may be in MPI for long: it makes a runtime, and waits for others. */
  const bool calls = ax_mpi_wants_calls(m) && pthread_mutex_trylock(&ax_mpi_calls) == 0;
  if (calls) status = ax_mpi_move(m, any);
  else ax_mpi_move_near(m, any);
  const ax_mpi_found f = m->found;
  m->found = (ax_mpi_found){0};
  if (calls) pthread_mutex_unlock(&ax_mpi_calls);
  hand_over(m, f);
  atomic_flag_clear_explicit(&m->polling, memory_order_release);
  ax_mpi_pump(m);
  return status != AX_OK ? status : ax_mpi_failure(m);
}

/* --- Sending and fetching: nothing is held --- */

/* *what: the message that names it. Once it is in the table, another thread may end it, because its receiver is gone. */
static ax_status add_transfer(ax_mpi *m, const ax_transfer *like, const ax_envelope *envelope, ax_wire *what) {
  ax_transfer *held;
  pthread_mutex_lock(&m->tables);
  ax_status status = ax_transfers_add(&m->outgoing, like, UINT32_MAX, &held);
  if (status == AX_OK)
    *what = (ax_wire){.type = AX_WIRE_ENVELOPE, .ticket = held->ticket, .address = (uint64_t)(uintptr_t)held->memory,
                      .loan = held->loan, .envelope = *envelope};
  pthread_mutex_unlock(&m->tables);
  return status;
}

/* Takes it out of its table: what would have named it could not be sent. */
static void take_back(ax_mpi *m, uint64_t ticket) {
  pthread_mutex_lock(&m->tables);
  ax_transfer *held = ax_transfers_find(&m->outgoing, ticket);
  if (held != NULL) ax_mpi_take_out(m, held);
  pthread_mutex_unlock(&m->tables);
  if (held == NULL) return;
  held->done = NULL;
  ax_transfer_end(held);
}

static ax_status name_long(ax_mpi *m, uint32_t to, const ax_wire *what) {
  ax_status status = ax_mpi_tell(m, to, what, NULL);
  if (status != AX_OK) take_back(m, what->ticket);
  else ax_mpi_pump(m);
  if (m->peers[to] == AX_PEER_GONE) m->unswept = true; /* nobody will ask for it */
  return status;
}

static ax_status send_long(ax_mpi *m, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                           void *context) {
  void *copy = sent == NULL ? ax_copies_take(&m->copies, envelope->bytes) : NULL;
  ax_wire what;
  if (sent == NULL && copy == NULL) return ax_out_of_memory(envelope->bytes);
  if (copy != NULL) memcpy(copy, payload, envelope->bytes);
  const ax_transfer like = {.run = envelope->run, .bytes = envelope->bytes, .memory = (char *)(copy != NULL ? copy : payload),
                            .copy = copy, .copies = &m->copies, .done = sent, .context = context, .peer = to};
  ax_status status = add_transfer(m, &like, envelope, &what);
  if (status == AX_OK) return name_long(m, to, &what);
  ax_copies_give(&m->copies, copy);
  return status;
}

static ax_status send(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                      void *context) {
  ax_mpi *m = (ax_mpi *)transport;
  AX_TRY(ax_mpi_check(m, to));
  const size_t short_bytes = ax_node_has(m->node, to) ? AX_NODE_PAYLOAD : AX_SHORT_PAYLOAD;
  if (envelope->bytes > short_bytes) return send_long(m, to, envelope, payload, sent, context);
  AX_TRY(ax_mpi_tell(m, to, &(ax_wire){.type = AX_WIRE_ENVELOPE, .envelope = *envelope}, payload));
  ax_mpi_pump(m);
  if (sent != NULL) sent(context);
  return AX_OK;
}

/* --- Lending --- */

static uint64_t begin_loan(ax_mpi *m) {
  pthread_mutex_lock(&m->tables);
  const uint64_t loan = m->stopped ? 0 : ax_loans_begin(&m->loans);
  pthread_mutex_unlock(&m->tables);
  return loan;
}

static ax_status lend(ax_transport *transport, uint32_t to, const ax_envelope *envelope, const void *payload, ax_loan *out) {
  ax_mpi *m = (ax_mpi *)transport;
  ax_wire what;
  *out = (ax_loan){.to = to};
  AX_TRY(ax_mpi_check(m, to));
  const uint64_t loan = m->node_reads && ax_node_has(m->node, to) ? begin_loan(m) : 0;
  if (loan == 0) return send_long(m, to, envelope, payload, NULL, NULL);
  const ax_transfer like = {.run = envelope->run, .bytes = envelope->bytes, .memory = (char *)payload, .copies = &m->copies,
                            .loan = loan, .peer = to};
  ax_status status = add_transfer(m, &like, envelope, &what);
  if (status != AX_OK) {
    pthread_mutex_lock(&m->tables);
    ax_mpi_end_loans(m, &like);
    pthread_mutex_unlock(&m->tables);
    return status;
  }
  out->ticket = what.ticket;
  status = name_long(m, to, &what);
  if (status != AX_OK) out->ticket = 0;
  return status;
}

/* How a loan stands, and what is lent. */
static ax_loan_state look_at_loan(ax_mpi *m, const ax_loan *loan, ax_transfer *out) {
  pthread_mutex_lock(&m->tables);
  const ax_transfer *held = ax_transfers_find(&m->outgoing, loan->ticket);
  ax_loan_state state = held == NULL || m->stopped ? AX_LOAN_OVER : ax_loan_look(m->loans.slots, held->loan);
  if (held != NULL) *out = *held;
  pthread_mutex_unlock(&m->tables);
  return state;
}

static bool is_returned(ax_transport *transport, const ax_loan *loan) {
  ax_transfer held;
  return look_at_loan((ax_mpi *)transport, loan, &held) == AX_LOAN_OVER;
}

/* *left: it is not lent any more, but the receiver will read the copy. */
static ax_status move(ax_mpi *m, const ax_transfer *lent, bool *left) {
  char *copy = ax_copies_take(&m->copies, lent->bytes);
  *left = false;
  if (copy != NULL) memcpy(copy, lent->memory, lent->bytes);
  pthread_mutex_lock(&m->tables);
  ax_transfer *held = ax_transfers_find(&m->outgoing, lent->ticket);
  if (held != NULL && !m->stopped && ax_loan_move(m->loans.slots, lent->loan, (uint64_t)(uintptr_t)copy)) {
    held->memory = held->copy = copy;
    *left = copy != NULL;
  }
  const bool is_read = held == NULL || m->stopped || ax_loan_look(m->loans.slots, lent->loan) != AX_LOAN_MOVED;
  pthread_mutex_unlock(&m->tables);
  if (!*left) ax_copies_give(&m->copies, copy);
  return copy != NULL || is_read ? AX_OK : ax_out_of_memory(lent->bytes);
}

static void end_loan(ax_mpi *m, const ax_loan *loan) {
  pthread_mutex_lock(&m->tables);
  ax_transfer *held = ax_transfers_find(&m->outgoing, loan->ticket);
  if (held != NULL) ax_mpi_take_out(m, held);
  pthread_mutex_unlock(&m->tables);
  if (held != NULL) ax_transfer_end(held);
}

enum { rounds_to_tell = 64 };

static ax_status settle(ax_transport *transport, ax_loan *loan) {
  ax_mpi *m = (ax_mpi *)transport;
  ax_transfer held;
  bool any, left = false;
  uint32_t round = 0;
  ax_status status = AX_OK;
  for (ax_loan_state state; loan->ticket != 0 && (state = look_at_loan(m, loan, &held)) != AX_LOAN_OVER && !left && status == AX_OK;) {
    if (state == AX_LOAN_LENT) {
      status = move(m, &held, &left);
    } else {
      (void)!poll(transport, &any); /* it sees whether the reader is gone */
      if (!any) ax_together_pause(round++);
      if (!any && round % rounds_to_tell == 0 && transport->lingers != NULL)
        transport->lingers(transport->deliver_context, "with an operand that is being read", loan->ticket, loan->to);
    }
  }
  if (!left) end_loan(m, loan);
  return status;
}

/* --- Reading where it lies --- */

/* How a loan stands; one that nobody had begun to read is READING from here on. */
static ax_loan_state begin_to_read(ax_mpi *m, const ax_delivery *delivery, uint64_t *address) {
  ax_loan_state state = AX_LOAN_OVER;
  pthread_mutex_lock(&m->tables);
  if (!m->stopped) state = ax_loan_read(ax_node_loans(m->node, delivery->from), delivery->loan, address);
  pthread_mutex_unlock(&m->tables);
  return state;
}

static ax_status read(ax_transport *transport, const ax_delivery *delivery, size_t offset, void *into, size_t bytes) {
  ax_mpi *m = (ax_mpi *)transport;
  uint64_t address = delivery->address;
  bool there;
  AX_TRY(ax_mpi_check(m, delivery->from));
  if (delivery->loan != 0 && begin_to_read(m, delivery, &address) == AX_LOAN_OVER) return AX_OK; /* forgotten */
  AX_TRY(ax_node_read(m->node, delivery->from, address + offset, into, bytes, &there));
  if (there || delivery->loan == 0 || begin_to_read(m, delivery, &address) == AX_LOAN_OVER) return AX_OK;
  return ax_error(AX_UNAVAILABLE, "the memory of process %u cannot be read", delivery->from);
}

static const void *see(ax_transport *transport, const ax_delivery *delivery) {
  ax_mpi *m = (ax_mpi *)transport;
  uint64_t address = delivery->address;
  if (ax_mpi_check(m, delivery->from) != AX_OK) return NULL; /* `read` says so */
  if (delivery->loan != 0 && begin_to_read(m, delivery, &address) == AX_LOAN_OVER) return NULL;
  return ax_node_see(m->node, delivery->from, address, delivery->envelope.bytes);
}

/* What was read where it was lent is returned by a word in shared memory. */
static bool give_back(ax_mpi *m, const ax_delivery *delivery) {
  pthread_mutex_lock(&m->tables);
  ax_loan_slot *loans = delivery->loan != 0 && !m->stopped ? ax_node_loans(m->node, delivery->from) : NULL;
  const bool reading = loans != NULL && ax_loan_look(loans, delivery->loan) == AX_LOAN_READING;
  if (reading) ax_loan_return(loans, delivery->loan);
  pthread_mutex_unlock(&m->tables);
  return reading;
}

static ax_status release(ax_transport *transport, const ax_delivery *delivery) {
  ax_mpi *m = (ax_mpi *)transport;
  AX_TRY(ax_mpi_check(m, delivery->from));
  if (give_back(m, delivery)) return AX_OK;
  return ax_mpi_tell(m, delivery->from, &(ax_wire){.type = AX_WIRE_READ, .ticket = delivery->ticket}, NULL);
}

static ax_status read_whole(ax_transport *transport, const ax_delivery *delivery, void *into, ax_on_done *fetched, void *context) {
  AX_TRY(read(transport, delivery, 0, into, delivery->envelope.bytes));
  AX_TRY(release(transport, delivery));
  fetched(context);
  return AX_OK;
}

static ax_status fetch(ax_transport *transport, const ax_delivery *delivery, void *into, ax_on_done *fetched, void *context) {
  ax_mpi *m = (ax_mpi *)transport;
  const ax_transfer like = {.run = delivery->envelope.run, .bytes = delivery->envelope.bytes, .memory = into, .done = fetched,
                            .context = context, .peer = delivery->from, .incoming = true, .started = true};
  const ax_wire what = {.type = AX_WIRE_FETCH, .ticket = delivery->ticket, .pieces = ax_mpi_pieces(like.bytes)};
  ax_mpi_message *one;
  ax_transfer *coming = NULL;
  AX_TRY(ax_mpi_check(m, delivery->from));
  if (delivery->address != 0) return read_whole(transport, delivery, into, fetched, context);
  AX_TRY(ax_mpi_message_make(m, delivery->from, &what, NULL, &one));
  pthread_mutex_lock(&m->tables);
  ax_status status = ax_transfers_add(&m->incoming, &like, m->place.greatest_tag, &coming);
  pthread_mutex_unlock(&m->tables);
  if (status != AX_OK) {
    ax_mpi_message_free(m, one);
    return status;
  }
  one->fetch = coming->ticket;
  one->wire.slot = ax_transfer_slot(coming->ticket);
  ax_mpi_message_push(m, one);
  ax_mpi_pump(m);
  return AX_OK;
}

static bool is_waiting_of_run(const ax_transfer *one, const void *run) {
  return one->run == *(const uint64_t *)run && !one->started;
}

static void forget(ax_transport *transport, uint64_t run) {
  ax_mpi *m = (ax_mpi *)transport;
  pthread_mutex_lock(&m->tables);
  ax_transfer *list = ax_transfers_take(&m->outgoing, is_waiting_of_run, &run, NULL);
  ax_mpi_end_loans(m, list);
  pthread_mutex_unlock(&m->tables);
  for (ax_transfer *next; list != NULL; list = next) {
    next = list->next;
    ax_transfer_end(list);
  }
}

/* --- Files --- */

static bool is_sent(const ax_mpi *m) {
  return m->first == NULL && m->waiting == 0 && m->pending == 0 && !ax_node_is_sending(m->node);
}

/* Takes `ax_mpi_calls` when all is sent: the others must have it, since none polls while this thread waits for them in MPI. */
static void take_calls_when_sent(ax_mpi *m) {
  for (bool any;;) {
    pthread_mutex_lock(&ax_mpi_calls);
    if (m->stopped || is_sent(m)) return;
    pthread_mutex_unlock(&ax_mpi_calls);
    (void)!poll(&m->transport, &any);
  }
}

/* As often as the process with most bytes has to: each call is one of all processes. */
static int write_pieces(const ax_mpi *m, ax_mpi_file *file, uint64_t place, const char *data, size_t bytes, size_t most) {
  int failed = 0;
  for (size_t done = 0; done < most; done += AX_MPI_PIECE) {
    const size_t left = done < bytes ? bytes - done : 0, piece = left < AX_MPI_PIECE ? left : AX_MPI_PIECE;
    const int code = m->shim->write_file(file, place + (piece > 0 ? done : 0), piece > 0 ? data + done : data, piece);
    if (failed == 0) failed = code;
  }
  return failed;
}

static ax_status write_file(ax_transport *transport, const char *path, uint64_t place, const void *data, size_t bytes,
                            size_t most) {
  ax_mpi *m = (ax_mpi *)transport;
  ax_mpi_file *file;
  char text[AX_MPI_TEXT];
  take_calls_when_sent(m);
  if (m->stopped) {
    pthread_mutex_unlock(&ax_mpi_calls);
    return ax_mpi_failure(m);
  }
  int code = m->shim->open_file(m->communicator, path, &file);
  if (code == 0) {
    code = write_pieces(m, file, place, data, bytes, most);
    const int closed = m->shim->close_file(file);
    if (code == 0) code = closed;
  }
  if (code != 0) m->shim->describe(code, text);
  pthread_mutex_unlock(&ax_mpi_calls);
  return code == 0 ? AX_OK : ax_error(AX_IO_ERROR, "MPI: %s", text);
}

/* --- Opening and closing --- */

/* One round without deliveries, for those who wait. */
static void step(ax_mpi *m) {
  bool any = false;
  pthread_mutex_lock(&ax_mpi_calls);
  (void)!ax_mpi_move(m, &any); /* out of memory: the next round tries again */
  const ax_mpi_found f = m->found;
  m->found = (ax_mpi_found){0};
  pthread_mutex_unlock(&ax_mpi_calls);
  hand_over(m, f);
  if (!any) sched_yield();
}

static bool is_quiet(const ax_mpi *m) { return m->stopped || (is_sent(m) && m->incoming.used == 0); }

/* Nobody polls in shared memory meanwhile, nor later: MPI takes it away. A thread that is stuck in a poll is not waited for long. */
static void leave_one(ax_mpi *m) {
  const double end = ax_seconds() + 1;
  bool polls = true;
  while (ax_seconds() < end && (polls = atomic_flag_test_and_set_explicit(&m->polling, memory_order_acquire))) sched_yield();
  ax_mpi_leave(m);
  if (!polls) atomic_flag_clear_explicit(&m->polling, memory_order_release);
}

static void leave(void) {
  pthread_mutex_lock(&ax_mpi_calls);
  for (ax_mpi *m = opened; m != NULL; m = m->next) leave_one(m);
  pthread_mutex_unlock(&ax_mpi_calls);
}

static void unlink_opened(const ax_mpi *m) {
  ax_mpi **link = &opened;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
}

/* Where a process is gone, messages of the others may be lost with it: Open MPI 5 loses one now and then when a process calls _exit.
   What is awaited then may never come, and what is left behind is MPI's: memory that it may still write. */
static const double failed_seconds = 2;

static bool gives_up(const ax_mpi *m, double end) { return atomic_load(&m->failed) && ax_seconds() >= end; }

static void tell_awaited(const ax_mpi *m) {
  for (uint32_t p = 0; m->transport.lingers != NULL && p < m->place.size; p++) {
    if (p == m->place.rank || m->peers[p] != AX_PEER_HERE) continue;
    m->transport.lingers(m->transport.deliver_context, "in ax_runtime_release", 0, p);
    return;
  }
}

/* The last message from each process says that it is the last, so nothing is on its way when the communicator is freed. */
static void destroy(ax_transport *transport) {
  ax_mpi *m = (ax_mpi *)transport;
  m->closing = true;
  const double end = ax_seconds() + failed_seconds;
  while (!is_quiet(m) && !gives_up(m, end)) step(m);
  ax_mpi_tell_others(m, AX_WIRE_END);
  while (!m->stopped && (m->here > 0 || !is_sent(m)) && !gives_up(m, end)) {
    step(m);
    tell_awaited(m);
  }
  pthread_mutex_lock(&ax_mpi_calls);
  ax_mpi_stop_receiving(m);
  if (m->failed) m->shim->abandon(m->communicator);
  else m->shim->close(m->communicator);
  unlink_opened(m);
  pthread_mutex_unlock(&ax_mpi_calls);
  ax_mpi_free(m);
}

/* No message has been sent, so nobody waits for this process elsewhere. */
static ax_status agree(ax_transport *transport, ax_status status) {
  ax_mpi *m = (ax_mpi *)transport;
  pthread_mutex_lock(&ax_mpi_calls);
  (void)ax_mpi_agree(m->shim, m->communicator, &m->place, &status);
  pthread_mutex_unlock(&ax_mpi_calls);
  return status;
}

/* The list of the watch does not change; a process that ends meanwhile is not found. */
static void look_at(ax_transport *transport, uint32_t process, ax_process_seen *out) {
  ax_mpi *m = (ax_mpi *)transport;
  if (m->watch != NULL) out->pid = ax_node_watch_pid(m->watch, process, &out->stopped);
  pthread_mutex_lock(&m->tables);
  out->coming = ax_transfers_started(&m->incoming, process);
  out->going = ax_transfers_started(&m->outgoing, process);
  pthread_mutex_unlock(&m->tables);
}

ax_status ax_mpi_create_over(const ax_mpi_shim *shim, const void *communicator, ax_transport **out) {
  static const ax_transport_functions functions = {send, lend, is_returned, settle, fetch, read, see, release, poll, forget, destroy};
  *out = NULL;
  AX_TRY(ax_mpi_start(shim, leave));
  ax_mpi *m;
  pthread_mutex_lock(&ax_mpi_calls);
  ax_status status = ax_mpi_open(shim, communicator, &m);
  if (status == AX_OK) {
    m->transport.functions = &functions;
    m->transport.write_file = write_file;
    m->transport.look_at = look_at;
    m->transport.agree = agree;
    ax_mpi_start_receiving(m);
    m->next = opened;
    opened = m;
    *out = &m->transport;
  }
  pthread_mutex_unlock(&ax_mpi_calls);
  return status;
}

ax_status ax_mpi_create(const void *communicator, ax_transport **out) {
  const ax_mpi_shim *shim;
  *out = NULL;
  AX_TRY(ax_mpi_load(&shim));
  AX_TRY(ax_mpi_create_over(shim, communicator, out));
  if (communicator != NULL) return AX_OK;
  ax_status status = ax_mpi_check_world((*out)->processes);
  if (status == AX_OK) return AX_OK;
  destroy(*out);
  *out = NULL;
  return status;
}

const ax_mpi_place *ax_mpi_place_of(const ax_transport *transport) { return &((const ax_mpi *)transport)->place; }
