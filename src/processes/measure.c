/* See measure.h. */
#include "processes/measure.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "processes/shared_memory.h"

const uint64_t ax_measured_sizes[AX_MEASURED_SIZES] = {4, AX_SHORT_PAYLOAD, 2 * AX_SHORT_PAYLOAD, 64 << 10, 1 << 20, 16 << 20};
enum { LEAST, LONGEST_SHORT, SHORTEST_LONG = 3, LONG, LONGEST };

/* Messages are counted from the beginning on: those of the next round may come before this process is through with one. */
typedef struct measuring {
  ax_transport *transport;
  uint32_t next; /* the process that this one sends to */
  bool first;
  char *from, *into;
  uint64_t bytes;
  bool latest, more; /* what the last message says, and what the one said that went round last: a series follows */
  _Atomic uint32_t came, sent;
  uint32_t wanted;
  ax_status status;
} measuring;

static void count_up(void *counter) { atomic_fetch_add((_Atomic uint32_t *)counter, 1); }

static void take(void *context, ax_delivery *delivery) {
  measuring *m = context;
  m->latest = delivery->envelope.words[0] != 0;
  if (delivery->payload != NULL) count_up(&m->came);
  else if (m->transport->functions->fetch(m->transport, delivery, m->into, count_up, &m->came) != AX_OK) m->status = AX_UNAVAILABLE;
  ax_delivery_free(delivery);
}

static ax_status wait_for(measuring *m, const _Atomic uint32_t *counter) {
  enum { patience = 2000 }; /* polls */
  bool any;
  for (uint32_t idle = 1; atomic_load(counter) < m->wanted; idle++) {
    AX_TRY(m->transport->functions->poll(m->transport, &any));
    if (m->status != AX_OK) return ax_error(m->status, "a message that was measured has not come");
    if (idle % patience == 0) sched_yield(); /* there may be more processes than processors */
  }
  return AX_OK;
}

static ax_status send_one(measuring *m, bool more) {
  const ax_envelope envelope = {.run = 1, .bytes = m->bytes, .words = {more}};
  return m->transport->functions->send(m->transport, m->next, &envelope, m->from, count_up, &m->sent);
}

/* Each sends to the next; or one message goes round, which process 0 begins. */
static ax_status go_round(measuring *m, bool at_once, bool more) {
  m->wanted++;
  const bool sends_first = at_once || m->first;
  if (sends_first) AX_TRY(send_one(m, more));
  AX_TRY(wait_for(m, &m->came));
  m->more = m->latest; /* before this message goes on, none can follow it */
  if (!sends_first) AX_TRY(send_one(m, m->more));
  return wait_for(m, &m->sent);
}

static ax_status series(measuring *m, uint32_t rounds, bool at_once, double *seconds) {
  const double begin = ax_seconds();
  for (uint32_t i = 0; i < rounds; i++) AX_TRY(go_round(m, at_once, true));
  const double took = (ax_seconds() - begin) / rounds;
  if (took < *seconds) *seconds = took;
  return AX_OK;
}

/* Short series, and many of them: the least is one in which nothing else ran. Process 0 says before each, by a message that goes round,
   whether there is one more. */
static ax_status measure_size(measuring *m, uint32_t rounds, double *one_by_one, double *all_at_once) {
  static const double enough = 0.1; /* seconds */
  const double begin = ax_seconds();
  for (int s = 0;; s++) {
    AX_TRY(go_round(m, false, s < 2 || ax_seconds() - begin < enough));
    if (!m->more) return AX_OK;
    AX_TRY(series(m, rounds, s % 2, s % 2 ? all_at_once : one_by_one));
  }
}

static ax_status measure(measuring *m, uint32_t processes, ax_measured *out) {
  enum { most_rounds = 25, bytes_a_series = 32 << 20 };
  for (int size = 0; size < AX_MEASURED_SIZES; size++) {
    const uint64_t rounds = bytes_a_series / ax_measured_sizes[size];
    m->bytes = ax_measured_sizes[size];
    out->one_by_one[size] = out->all_at_once[size] = HUGE_VAL;
    AX_TRY(measure_size(m, rounds < most_rounds ? (uint32_t)rounds : most_rounds, &out->one_by_one[size], &out->all_at_once[size]));
    out->one_by_one[size] /= processes;
  }
  return AX_OK;
}

/* Where arrays lie. */
static char *allocate(size_t bytes) {
  char *memory = ax_shared_memory_alloc(bytes);
  if (memory == NULL) memory = ax_alloc(bytes);
  if (memory != NULL) memset(memory, 0, bytes);
  return memory;
}
static void release(char *memory, size_t bytes) {
  if (!ax_shared_memory_free(memory, bytes)) ax_free(memory);
}

ax_status ax_messages_measure(ax_transport *transport, uint32_t processes, uint32_t stride, ax_measured *out) {
  const size_t most = ax_measured_sizes[LONGEST];
  const uint32_t place = transport->process / stride;
  *out = (ax_measured){0};
  if (transport->process % stride != 0 || place >= processes) return AX_OK;
  measuring m = {.transport = transport, .next = (place + 1) % processes * stride, .first = place == 0, .from = allocate(most),
                 .into = allocate(most)};
  transport->deliver = take;
  transport->deliver_context = &m;
  ax_status status = m.from != NULL && m.into != NULL ? measure(&m, processes, out) : ax_out_of_memory(most);
  release(m.from, most);
  release(m.into, most);
  return status;
}

ax_link_rates ax_measured_rates(const ax_measured *of, double most_short) {
  const double fastest = 1e11; /* bytes a second that short ones carry: a disturbed measurement says more */
  const double *s = of->one_by_one, of_short = (double)(ax_measured_sizes[LONGEST_SHORT] - ax_measured_sizes[LEAST]);
  const bool disturbed = s[LONGEST] <= s[LONG]; /* the longest message alone says how fast they are, then */
  const double transfer = disturbed ? (double)ax_measured_sizes[LONGEST] / s[LONGEST]
                                    : (double)(ax_measured_sizes[LONGEST] - ax_measured_sizes[LONG]) / (s[LONGEST] - s[LONG]);
  const double handshake = s[SHORTEST_LONG] - (double)ax_measured_sizes[SHORTEST_LONG] / transfer;
  return (ax_link_rates){.message = s[LEAST], .message_bytes = of_short / fmax(of_short / fastest, s[LONGEST_SHORT] - s[LEAST]),
                         .most_short = most_short, .transfer = transfer, .handshake = fmax(s[LEAST], handshake)};
}
