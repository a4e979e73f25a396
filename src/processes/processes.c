#include "processes/processes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "processes/stall.h"
#include "processes/together.h"

/* --- Deliveries --- */

static ax_receiver *receiver_of(const ax_processes *p, uint64_t number) {
  ax_receiver *receiver = p->receivers;
  while (receiver != NULL && receiver->number != number) receiver = receiver->next;
  return receiver;
}

static void note_heard(ax_heard *heard, const ax_envelope *envelope) {
  heard->messages++;
  if (envelope->run > heard->number) heard->number = envelope->run;
  if (envelope->kind == AX_MESSAGE_WAITS) heard->waits = envelope->run, heard->waits_for = envelope->member;
  else if (ax_message_is_counted(envelope->kind)) heard->waits = 0;
}

/* The lock is held while the receiver gets the message, so that it does not end meanwhile. */
static void deliver(void *context, ax_delivery *delivery) {
  ax_processes *p = context;
  pthread_mutex_lock(&p->lock);
  note_heard(&p->heard[delivery->from], &delivery->envelope);
  p->taken[delivery->from].number = 0;
  ax_receiver *receiver = receiver_of(p, delivery->envelope.run);
  if (delivery->envelope.kind >= AX_MESSAGE_WAITS) ax_delivery_free(delivery);
  else if (receiver != NULL) receiver->deliver(receiver->context, delivery);
  else if (delivery->envelope.run > p->begun) ax_deliveries_add(&p->early, delivery);
  else ax_delivery_free(delivery); /* for something that has ended */
  pthread_mutex_unlock(&p->lock);
}

/* For which receiver this thread polls, and of which processes. */
static _Thread_local struct {
  const ax_processes *processes;
  ax_receiver *receiver; /* NULL: for none */
} polls_for;

/* A message of a number like the one before says nothing new. One thread polls at a time. */
static void note_taken(ax_processes *p, uint32_t from, const ax_envelope *envelope) {
  ax_taken *taken = &p->taken[from];
  if (taken->number == envelope->run) {
    const uint64_t count = atomic_load_explicit(&taken->count, memory_order_relaxed) + 1;
    atomic_store_explicit(&taken->count, count, memory_order_relaxed);
    return;
  }
  pthread_mutex_lock(&p->lock);
  note_heard(&p->heard[from], envelope);
  pthread_mutex_unlock(&p->lock);
  taken->number = envelope->run;
}

/* The receiver is this thread's own, so it does not end meanwhile. */
static bool take_here(void *context, uint32_t from, const ax_envelope *envelope, const void *payload) {
  ax_processes *p = context;
  ax_receiver *receiver = polls_for.receiver;
  if (receiver == NULL || polls_for.processes != p || receiver->number != envelope->run || receiver->take_here == NULL) return false;
  if (!receiver->take_here(receiver->context, from, envelope, payload)) return false;
  note_taken(p, from, envelope);
  return true;
}

static void lingers(void *context, const char *where, uint64_t what, uint32_t process) { ax_stall_linger(context, where, what, process); }

static void released(void *context, uint32_t process) {
  ax_processes *p = context;
  if (!atomic_exchange(&p->released[process], true)) atomic_fetch_add(&p->released_count, 1);
}

void ax_processes_begin(ax_processes *p, ax_receiver *receiver) {
  pthread_mutex_lock(&p->lock);
  receiver->number = ++p->begun;
  receiver->next = p->receivers;
  p->receivers = receiver;
  for (ax_delivery *before = NULL, *next, *one = p->early.first; one != NULL; one = next) {
    next = one->next;
    if (one->envelope.run == receiver->number) receiver->deliver(receiver->context, ax_deliveries_take(&p->early, before));
    else before = one;
  }
  pthread_mutex_unlock(&p->lock);
}

uint64_t ax_processes_begun(ax_processes *p) {
  pthread_mutex_lock(&p->lock);
  const uint64_t begun = p->begun;
  pthread_mutex_unlock(&p->lock);
  return begun;
}

void ax_processes_end(ax_processes *p, ax_receiver *receiver) {
  pthread_mutex_lock(&p->lock);
  ax_receiver **link = &p->receivers;
  while (*link != receiver) link = &(*link)->next;
  *link = receiver->next;
  p->last = receiver->what;
  p->left = p->stalls.clock(p->stalls.context_of_clock);
  pthread_mutex_unlock(&p->lock);
}

/* --- The transport --- */

static ax_status note(ax_processes *p, ax_status status) {
  if (status != AX_UNAVAILABLE) return status;
  pthread_mutex_lock(&p->lock);
  if (p->lost == AX_OK) snprintf(p->message, sizeof p->message, "%s", ax_message());
  p->lost = status;
  atomic_store(&p->is_lost, true);
  pthread_mutex_unlock(&p->lock);
  return status;
}

static ax_status check(ax_processes *p) {
  char message[sizeof p->message];
  if (!atomic_load_explicit(&p->is_lost, memory_order_acquire)) return AX_OK;
  pthread_mutex_lock(&p->lock);
  const ax_status lost = p->lost;
  memcpy(message, p->message, sizeof message);
  pthread_mutex_unlock(&p->lock);
  return lost == AX_OK ? AX_OK : ax_error(lost, "%s", message);
}

ax_status ax_processes_send(ax_processes *p, uint32_t to, const ax_envelope *envelope, const void *payload, ax_on_done *sent,
                            void *context) {
  return note(p, p->transport->functions->send(p->transport, to, envelope, payload, sent, context));
}

ax_status ax_processes_lend(ax_processes *p, uint32_t to, const ax_envelope *envelope, const void *payload, ax_loan *loan) {
  return note(p, p->transport->functions->lend(p->transport, to, envelope, payload, loan));
}

ax_status ax_processes_insist(ax_processes *p, uint32_t to, const ax_envelope *envelope, const void *payload) {
  enum { tries = 1000 };
  ax_status status = ax_processes_send(p, to, envelope, payload, NULL, NULL);
  for (uint32_t t = 1; t < tries && status == AX_OUT_OF_MEMORY; t++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    status = ax_processes_send(p, to, envelope, payload, NULL, NULL);
  }
  return status;
}

ax_status ax_processes_poll(ax_processes *p, bool *any) {
  AX_TRY(note(p, p->transport->functions->poll(p->transport, any)));
  return *any ? AX_OK : check(p);
}

ax_status ax_processes_poll_for(ax_processes *p, ax_receiver *receiver, bool *any) {
  polls_for.processes = p;
  polls_for.receiver = receiver;
  const ax_status status = ax_processes_poll(p, any);
  polls_for.receiver = NULL;
  return status;
}

/* --- The object --- */

static ax_status copy_list(ax_processes *p, const uint32_t *of, uint32_t count) {
  for (uint32_t d = 0; d < count; d++)
    if (of[d] >= p->transport->processes)
      return ax_error(AX_INVALID_ARGUMENT, "processes: device %u is given to process %u of %u", d, of[d], p->transport->processes);
  if (count == 0) return AX_OK;
  p->of = ax_alloc(count * sizeof p->of[0]);
  if (p->of == NULL) return ax_out_of_memory(count * sizeof p->of[0]);
  memcpy(p->of, of, count * sizeof p->of[0]);
  return AX_OK;
}

static ax_status create(ax_transport *transport, const uint32_t *of, uint32_t count, ax_processes **out) {
  ax_processes *p = *out = ax_calloc(1, sizeof *p);
  if (p == NULL) return ax_out_of_memory(sizeof *p);
  p->transport = transport;
  pthread_mutex_init(&p->lock, NULL);
  pthread_mutex_init(&p->in_turn, NULL);
  p->stalls.clock = ax_stall_clock;
  p->left = ax_stall_clock(NULL);
  ax_stall_begin(&p->lingers);
  transport->deliver = deliver;
  transport->take_here = take_here;
  transport->lingers = lingers;
  transport->deliver_context = p;
  p->heard = ax_calloc(transport->processes, sizeof p->heard[0]);
  p->taken = ax_calloc(transport->processes, sizeof p->taken[0]);
  p->released = ax_calloc(transport->processes, sizeof p->released[0]);
  if (p->released != NULL) transport->released = released;
  ax_status status = p->heard == NULL || p->taken == NULL || p->released == NULL ? ax_out_of_memory(transport->processes * sizeof p->heard[0]) : copy_list(p, of, count);
  p->rule = (ax_process_rule){transport->process, transport->processes, count, p->of};
  if (p->of != NULL) p->digest = ax_hash_bytes(ax_hash_word(AX_HASH_SEED, count), p->of, count * sizeof p->of[0]);
  return status == AX_OK ? ax_together_create(p, &p->spare) : status;
}

ax_status ax_processes_create(ax_transport *transport, const uint32_t *of, uint32_t count, ax_processes **out) {
  ax_status status = ax_transport_agree(transport, create(transport, of, count, out));
  if (status == AX_OK) return AX_OK;
  if (*out != NULL) ax_processes_destroy(*out);
  else transport->functions->destroy(transport);
  *out = NULL;
  return status;
}

ax_heard ax_processes_heard(ax_processes *p, uint32_t process) {
  pthread_mutex_lock(&p->lock);
  ax_heard heard = p->heard[process];
  heard.messages = ax_processes_came(p, process);
  pthread_mutex_unlock(&p->lock);
  return heard;
}

/* Where ends go by a tree, those that wait for the word of one end may not have heard of this process. */
static void say_how_far(ax_processes *p) {
  const ax_envelope envelope = {.run = p->begun, .kind = AX_MESSAGE_LEAVES};
  const uint32_t count = p->rule.processes;
  for (uint32_t q = 0; count > AX_ENDING_FEW && p->begun > 0 && q < count; q++)
    if (q != p->rule.process) (void)!ax_processes_insist(p, q, &envelope, NULL); /* one that is gone needs no word */
}

void ax_processes_destroy(ax_processes *p) {
  if (p == NULL) return;
  say_how_far(p);
  p->transport->functions->destroy(p->transport);
  ax_deliveries_free(&p->early);
  ax_together_destroy(p->spare);
  pthread_mutex_destroy(&p->lock);
  pthread_mutex_destroy(&p->in_turn);
  ax_free(p->heard);
  ax_free((void *)p->taken);
  ax_free((void *)p->released);
  ax_free(p->of);
  ax_free(p);
}
