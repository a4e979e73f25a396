/* See arrivals.h.

     payload of a message         s64[n], by member that the receiver has, in ascending order: the byte at which its rows begin;
                                  then the rows of each, from a multiple of 8 bytes on
     envelope                     place: the instruction; group, member; words[0]: the round */
#include "run/arrivals.h"

#include <string.h>

#include "run/compute.h"
#include "run/scheduler.h"

typedef struct arrival { /* of one round */
  struct arrival *next;
  uint64_t round;
  uint32_t left; /* members here that have not taken their rows */
  ax_delivery *delivery;
} arrival;

typedef struct ax_giver {
  arrival *first, *last; /* in the order of rounds */
  ax_in_order messages;
} ax_giver;

static uint32_t giver_number(const ax_ragged_instr *ragged, uint32_t group, uint32_t member) {
  return ragged->first_givers + ragged->crossing->index[group] * ragged->crossing->members + member;
}

static const ax_party *party_here(const ax_execution *run, const ax_ragged_instr *ragged, uint32_t group) {
  return ax_party_of(ragged->crossing, group, run->compiled->map->process);
}

/* --- All givers --- */

ax_status ax_arrivals_init(ax_remote *r) {
  const uint32_t count = r->run->compiled->giver_count;
  r->givers = ax_calloc(count, sizeof r->givers[0]);
  return r->givers != NULL ? AX_OK : ax_out_of_memory(count * sizeof r->givers[0]);
}

static void empty(ax_giver *giver) {
  for (arrival *next, *one = giver->first; one != NULL; one = next) {
    next = one->next;
    ax_delivery_free(one->delivery);
    ax_free(one);
  }
  ax_in_order_empty(&giver->messages);
  *giver = (ax_giver){0};
}

void ax_arrivals_reset(ax_remote *r) {
  for (uint32_t i = 0; i < r->run->compiled->giver_count; i++) empty(&r->givers[i]);
}

void ax_arrivals_deinit(ax_remote *r) {
  if (r->givers != NULL) ax_arrivals_reset(r);
  ax_free(r->givers);
}

/* --- Sending --- */

static int64_t aligned(int64_t bytes) { return (bytes + 7) / 8 * 8; }

static ax_giving giving_of(const ax_activation *activation, const ax_instr *instr) {
  const ax_ragged_instr *ragged = instr->ragged;
  return (ax_giving){.shape = &ragged->ragged->shape,
                     .device = ragged->number[activation->device],
                     .received = ax_address(activation, &instr->refs[1]),
                     .packed = ax_address(activation, &instr->refs[2]),
                     .back = ragged->ragged->back,
                     .operand = ax_address(activation, &instr->refs[0])};
}

/* Puts the table of beginnings and all rows into `payload`; NULL: only counts. Returns the bytes. */
static int64_t write_payload(const ax_giving *giving, const uint32_t *takers, uint32_t count, char *payload) {
  int64_t at = (int64_t)(count * sizeof at);
  for (uint32_t i = 0; i < count; i++) {
    if (payload != NULL) memcpy(payload + i * sizeof at, &at, sizeof at);
    at = aligned(at + ax_ragged_give(giving, takers[i], payload != NULL ? payload + at : NULL));
  }
  return at;
}

static ax_status send_to(ax_execution *run, const ax_activation *activation, const ax_instr *instr, const ax_party *party) {
  const ax_ragged_instr *ragged = instr->ragged;
  const ax_giving giving = giving_of(activation, instr);
  const uint32_t *takers = &ragged->crossing->held[party->first];
  const int64_t bytes = write_payload(&giving, takers, party->count, NULL);
  char *payload = ax_calloc((size_t)bytes, 1);
  if (payload == NULL) return ax_out_of_memory((size_t)bytes);
  (void)write_payload(&giving, takers, party->count, payload);
  ax_envelope envelope = {.kind = AX_MESSAGE_ROWS, .place = (uint32_t)(instr - activation->code->instrs), .member = giving.device,
                          .group = ragged->crossing->group[activation->device], .bytes = (uint64_t)bytes};
  envelope.words[0] = (uint64_t)activation->entered[instr->region];
  return ax_remote_send_owned(run->remote, party->process, &envelope, payload);
}

ax_status ax_arrivals_send(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_crossing *crossing = instr->ragged->crossing;
  const uint32_t group = crossing->group[activation->device], number = instr->ragged->number[activation->device];
  if (!ax_device_is_here(run->compiled->map, crossing->first[group * crossing->members + number])) return AX_OK;
  for (uint32_t i = crossing->begin[group]; i < crossing->begin[group + 1]; i++)
    if (!ax_party_has(crossing, &crossing->parties[i], number)) AX_TRY(send_to(run, activation, instr, &crossing->parties[i]));
  return AX_OK;
}

/* --- What comes --- */

/* The exchange that a message is for. NULL: it is for none, so its process runs something else. */
static const ax_ragged_instr *exchange_named(const ax_execution *run, const ax_envelope *envelope) {
  const ax_code *code = &run->compiled->codes[0];
  if (envelope->place >= code->instr_count || code->instrs[envelope->place].kind != AX_INSTR_RAGGED) return NULL;
  const ax_ragged_instr *ragged = code->instrs[envelope->place].ragged;
  const ax_crossing *crossing = ragged->step == AX_RAGGED_TAKE ? ragged->crossing : NULL;
  if (crossing == NULL || envelope->group >= crossing->groups || envelope->member >= crossing->members) return NULL;
  const ax_party *own = party_here(run, ragged, envelope->group);
  if (own == NULL || ax_party_has(crossing, own, envelope->member)) return NULL;
  return envelope->bytes >= own->count * sizeof(int64_t) ? ragged : NULL;
}

/* Keeps a message whose payload is there, and lets those go on who wait for it. */
static ax_status keep(ax_execution *run, ax_delivery *delivery) {
  const ax_ragged_instr *ragged = run->compiled->codes[0].instrs[delivery->envelope.place].ragged;
  const uint32_t number = giver_number(ragged, delivery->envelope.group, delivery->envelope.member);
  ax_giver *giver = &run->remote->givers[number];
  arrival *one = ax_alloc(sizeof *one);
  if (one == NULL) {
    ax_delivery_free(delivery);
    return ax_out_of_memory(sizeof *one);
  }
  *one = (arrival){NULL, delivery->envelope.words[0], party_here(run, ragged, delivery->envelope.group)->count, delivery};
  ax_remote_lock(run->remote);
  if (giver->first == NULL) giver->first = one;
  else giver->last->next = one;
  giver->last = one;
  ax_remote_unlock(run->remote);
  ax_scheduler_signal(run, run->compiled->first_giver + number, 1);
  return AX_OK;
}

ax_status ax_arrivals_take(ax_execution *run, ax_delivery *delivery) {
  const ax_ragged_instr *ragged = exchange_named(run, &delivery->envelope);
  if (ragged == NULL) {
    const uint32_t from = delivery->from;
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u sends rows that this program does not exchange", from);
  }
  ax_giver *giver = &run->remote->givers[giver_number(ragged, delivery->envelope.group, delivery->envelope.member)];
  return ax_in_order_take(&giver->messages, run->remote, delivery, keep);
}

/* --- Members of this process --- */

bool ax_arrivals_await(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                       uint32_t f) {
  const ax_ragged_instr *ragged = instr->ragged;
  const uint32_t group = ragged->crossing->group[activation->device];
  const uint64_t round = (uint64_t)activation->entered[instr->region];
  const ax_party *own = party_here(run, ragged, group);
  for (uint32_t m = 0; m < ragged->crossing->members; m++) {
    if (ax_party_has(ragged->crossing, own, m)) continue;
    const uint32_t counter = run->compiled->first_giver + giver_number(ragged, group, m);
    if (!ax_scheduler_await(run, worker_slot, f, counter, round, false)) return false;
  }
  return true;
}

static arrival **find_round(ax_giver *giver, uint64_t round) {
  arrival **link = &giver->first;
  while ((*link)->round != round) link = &(*link)->next;
  return link;
}

static const char *rows_in(const arrival *one, uint32_t place) {
  const char *payload = one->delivery->payload;
  int64_t at;
  memcpy(&at, payload + place * sizeof at, sizeof at);
  return payload + at;
}

/* The place of a member among those here. */
static uint32_t place_of(const ax_crossing *crossing, const ax_party *own, uint32_t member) {
  uint32_t place = 0;
  while (crossing->held[own->first + place] != member) place++;
  return place;
}

void ax_arrivals_find(ax_execution *run, const ax_activation *activation, const ax_instr *instr, const char **rows) {
  const ax_ragged_instr *ragged = instr->ragged;
  const uint32_t group = ragged->crossing->group[activation->device];
  const ax_party *own = party_here(run, ragged, group);
  const uint32_t place = place_of(ragged->crossing, own, ragged->number[activation->device]);
  ax_remote_lock(run->remote);
  for (uint32_t m = 0; m < ragged->crossing->members; m++) {
    ax_giver *giver = &run->remote->givers[giver_number(ragged, group, m)];
    const bool is_here = ax_party_has(ragged->crossing, own, m);
    rows[m] = is_here ? NULL : rows_in(*find_round(giver, (uint64_t)activation->entered[instr->region]), place);
  }
  ax_remote_unlock(run->remote);
}

/* The last member to take its rows frees them. */
static void leave_one(ax_giver *giver, uint64_t round) {
  arrival **link = find_round(giver, round), *one = *link;
  if (--one->left > 0) return;
  *link = one->next;
  if (giver->last == one) giver->last = giver->first;
  while (giver->last != NULL && giver->last->next != NULL) giver->last = giver->last->next;
  ax_delivery_free(one->delivery);
  ax_free(one);
}

void ax_arrivals_leave(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_ragged_instr *ragged = instr->ragged;
  const uint32_t group = ragged->crossing->group[activation->device];
  const ax_party *own = party_here(run, ragged, group);
  ax_remote_lock(run->remote);
  for (uint32_t m = 0; m < ragged->crossing->members; m++)
    if (!ax_party_has(ragged->crossing, own, m))
      leave_one(&run->remote->givers[giver_number(ragged, group, m)], (uint64_t)activation->entered[instr->region]);
  ax_remote_unlock(run->remote);
}

/* --- Reports --- */

uint32_t ax_arrivals_missing(const ax_execution *run, uint32_t f) {
  const ax_activation *activation = &run->activations[f];
  const ax_ragged_instr *ragged = activation->code->instrs[activation->pc].ragged;
  const ax_crossing *crossing = ragged->crossing;
  const uint32_t group = crossing->group[activation->device];
  const uint32_t member = run->parking[f].counter - run->compiled->first_giver - giver_number(ragged, group, 0);
  return crossing->first[group * crossing->members + member];
}
