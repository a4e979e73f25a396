/* See crossing.h.

     payload      what the member has for this process: its operand (peers ONE), its part (PAIRS), or its pieces for the members
                  that the process has, one after the other, each dense; one piece if all get the same
     envelope     place: the exchange's id; group, member; words[0]: the round, which is how often the member has entered the region
                  around the push; words[1]: 1 if it is a total

   Large sums are split: each process adds a share of the elements, of all members in their order, and gives the total of that share
   to the other processes. So each process adds as much as if it were alone, divided by their number, and the bits are the same.

     process 0    adds elements 0 to 499 of all members      --- total --->  takes them
     process 1    takes elements 0 to 499 <--- total ---     adds elements 500 to 999 of all members */
#include "run/crossing.h"

#include <string.h>

#include "processes/ways.h"
#include "run/contribution.h"
#include "run/lent.h"
#include "run/pieces.h"
#include "run/scheduler.h"

/* A round that is open: results may be written. */
typedef struct opened {
  struct opened *next;
  uint64_t round;
  uint32_t missing;    /* ghosts whose contributions have not been put; of a split sum, totals too, and one for this process */
  uint32_t totals;     /* of them, totals of other processes */
  bool added;          /* this process has added its share */
  ax_lent lent;        /* its total */
  ax_activation view;  /* the member that opened it, as it was: it may have gone on since */
  bool *put;           /* by member: it is a ghost, and its contribution has been put */
  int64_t iteration[];
} opened;

typedef struct ax_crossing_group {
  const ax_instr *instr; /* the push */
  uint32_t group;
  uint32_t ghosts;       /* members elsewhere that push something into what this process has */
  uint32_t counter;      /* that the members signal */
  bool split;
  const ax_party *own;   /* the members here */
  ax_elems share;        /* of the elements: what is put here of each contribution */
  uint64_t latest;       /* round that was opened last */
  opened *rounds;
  opened *spare;         /* one that is over, for the next; NULL: none */
  ax_delivery *waiting;  /* contributions whose time has not come */
  _Atomic uint32_t waiting_count;
  uint32_t to_fetch;          /* of these, payloads that have to be fetched */
} ax_crossing_group;

/* --- Groups --- */

static bool reaches(const ax_push *push, uint32_t member, const ax_party *party) {
  return ax_reaches(push->exchange, push->crossing, push->targets, member, party);
}

static uint32_t crossing_parties(const ax_crossing_group *g) {
  const ax_crossing *crossing = g->instr->push->crossing;
  return crossing->begin[g->group + 1] - crossing->begin[g->group];
}

/* A sum of many elements over several processes, of which each member is in one. */
static bool is_split(const ax_push *push, uint32_t group) {
  enum { least_bytes = AX_HOSTILE ? 8 : AX_SHARES_LEAST };
  const ax_crossing *crossing = push->crossing;
  uint32_t held = 0;
  for (uint32_t i = crossing->begin[group]; i < crossing->begin[group + 1]; i++) held += crossing->parties[i].count;
  return push->exchange->combine != AX_SCALAR_NONE && push->exchange->peers == AX_PEERS_ONE && !push->exchange->alone &&
         push->outer_rank == 0 && held == crossing->members &&
         crossing->begin[group + 1] - crossing->begin[group] > 1 && push->run * push->item >= least_bytes;
}

/* All elements, or those that the process adds. */
static ax_elems share_of(const ax_crossing_group *g, const ax_party *party) {
  enum { unit = AX_HOSTILE ? 1 : 64 }; /* shares begin at whole lines */
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  const int64_t units = (push->run + unit - 1) / unit, count = crossing_parties(g),
                i = party - &crossing->parties[crossing->begin[g->group]];
  if (!g->split) return (ax_elems){0, push->run};
  const int64_t end = units * (i + 1) / count * unit;
  return (ax_elems){units * i / count * unit, end < push->run ? end : push->run};
}

static void describe(ax_remote *r, const ax_instr *instr, uint32_t group) {
  const ax_push *push = instr->push;
  const ax_crossing *crossing = push->crossing;
  ax_crossing_group *g = &r->groups[push->crossing_first + crossing->index[group]];
  const ax_party *own = ax_own_party(r, crossing, group);
  *g = (ax_crossing_group){.instr = instr, .group = group, .split = is_split(push, group)};
  g->own = own;
  g->share = share_of(g, own);
  for (uint32_t m = 0; m < crossing->members; m++) g->ghosts += !ax_party_has(crossing, own, m) && reaches(push, m, own);
  g->counter = push->first + push->counter[crossing->here[group * crossing->members + crossing->held[own->first]]];
}

ax_status ax_crossing_init(ax_remote *r) {
  const ax_compiled *c = r->run->compiled;
  r->groups = ax_calloc(c->crossing_groups, sizeof r->groups[0]);
  r->push_count = c->plan != NULL ? c->plan->exchange_count : 0;
  r->pushes = ax_calloc(r->push_count, sizeof r->pushes[0]);
  r->lent = ax_calloc(c->devices, sizeof r->lent[0]);
  if (r->groups == NULL || r->pushes == NULL || r->lent == NULL) return ax_out_of_memory(c->crossing_groups * sizeof r->groups[0]);
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_instr *instr = &c->codes[0].instrs[i];
    if (instr->kind != AX_INSTR_PUSH || instr->push->crossing == NULL) continue;
    r->pushes[instr->push->exchange->id] = instr->push;
    for (uint32_t g = 0; g < instr->push->crossing->groups; g++)
      if (instr->push->crossing->index[g] != AX_NONE) describe(r, instr, g);
  }
  return AX_OK;
}

static void free_round(opened *one) {
  ax_lent_deinit(&one->lent);
  ax_free(one);
}

static void empty(ax_crossing_group *g) {
  if (g->spare != NULL) free_round(g->spare);
  g->spare = NULL;
  for (opened *next, *one = g->rounds; one != NULL; one = next) {
    next = one->next;
    free_round(one);
  }
  ax_deliveries_free(&g->waiting);
  g->rounds = NULL;
  g->to_fetch = 0;
  atomic_store(&g->waiting_count, 0);
  g->latest = 0;
}

void ax_crossing_reset(ax_remote *r) {
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) empty(&r->groups[i]);
  for (uint32_t d = 0; d < r->run->compiled->devices; d++) r->lent[d].count = 0, r->lent[d].times = 0;
  atomic_store(&r->open, 0);
}

void ax_crossing_deinit(ax_remote *r) {
  if (r->groups != NULL && r->lent != NULL) ax_crossing_reset(r);
  for (uint32_t d = 0; r->lent != NULL && d < r->run->compiled->devices; d++) ax_lent_deinit(&r->lent[d]);
  ax_free(r->lent);
  ax_free(r->groups);
  ax_free(r->pushes);
}

static ax_crossing_group *group_of(ax_remote *r, const ax_activation *activation, const ax_instr *instr) {
  const ax_crossing *crossing = instr->push->crossing;
  return &r->groups[instr->push->crossing_first + crossing->index[crossing->group[activation->device]]];
}

/* --- Sending --- */

static int64_t bytes_for(const ax_crossing_group *g, const ax_party *party) {
  const ax_push *push = g->instr->push;
  const ax_elems share = share_of(g, party);
  return push->outer_rank == 0 ? ax_pieces_for(push, party) * (share.end - share.begin) * push->item
                               : ax_pieces_for(push, party) * ax_part_elems(push) * push->item;
}

static ax_status send_to(ax_remote *r, const ax_activation *activation, const ax_instr *instr, const ax_party *party) {
  const ax_push *push = instr->push;
  const ax_crossing_group *g = group_of(r, activation, instr);
  const char *src = ax_address(activation, &instr->refs[0]);
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = g->group,
                          .member = push->number[activation->device], .bytes = (uint64_t)bytes_for(g, party)};
  envelope.words[0] = (uint64_t)activation->entered[instr->region];
  if (ax_pieces_for(push, party) == 1 && push->outer_rank == 0) {
    const char *piece = ax_piece_for(push, src, party, 0) + share_of(g, party).begin * push->item;
    return push->lends ? ax_lent_send(&r->lent[activation->device], r, party->process, &envelope, piece)
                       : ax_remote_send(r, party->process, &envelope, piece);
  }
  char *payload;
  AX_TRY(ax_pieces_gather(push, src, party, &payload));
  return ax_remote_send_owned(r, party->process, &envelope, payload);
}

/* The process of the first device that is this member sends for it. */
static ax_status send_all(ax_remote *r, const ax_activation *activation, const ax_instr *instr) {
  const ax_push *push = instr->push;
  const ax_crossing *crossing = push->crossing;
  const uint32_t group = crossing->group[activation->device], number = push->number[activation->device];
  if (!ax_device_is_here(r->run->compiled->map, crossing->first[group * crossing->members + number])) return AX_OK;
  for (uint32_t i = crossing->begin[group]; i < crossing->begin[group + 1]; i++) {
    const ax_party *party = &crossing->parties[i];
    if (!ax_party_has(crossing, party, number) && reaches(push, number, party)) AX_TRY(send_to(r, activation, instr, party));
  }
  return AX_OK;
}

/* --- Rounds: with the groups' lock held --- */

static opened *find_round(const ax_crossing_group *g, uint64_t round) {
  opened *one = g->rounds;
  while (one != NULL && one->round != round) one = one->next;
  return one;
}

/* Opens the round for the first member that comes. Later ones find it open, or already closed again. */
static ax_status open_round(ax_remote *r, ax_crossing_group *g, const ax_activation *activation, uint64_t round) {
  const uint32_t loops = r->run->compiled->loop_count + 1;
  if (round <= g->latest) return AX_OK;
  g->latest = round;
  if (g->ghosts == 0) return AX_OK;
  const uint32_t members = g->instr->push->members;
  const size_t bytes = sizeof(opened) + loops * sizeof(int64_t) + members;
  opened *one = g->spare != NULL ? g->spare : ax_calloc(1, bytes);
  if (one == NULL) return ax_out_of_memory(bytes);
  g->spare = NULL;
  *one = (opened){.next = g->rounds, .round = round, .missing = g->ghosts, .view = *activation, .lent = one->lent};
  if (g->split) one->totals = crossing_parties(g) - 1;
  if (g->split) one->missing += one->totals + 1;
  memcpy(one->iteration, activation->iteration, loops * sizeof one->iteration[0]);
  one->view.iteration = one->iteration;
  one->put = (bool *)(one->iteration + loops);
  memset(one->put, 0, members);
  g->rounds = one;
  atomic_fetch_add(&r->open, 1);
  return AX_OK;
}

static void close_round(ax_remote *r, ax_crossing_group *g, opened *one) {
  if (--one->missing > 0) return;
  atomic_fetch_sub(&r->open, 1);
  opened **link = &g->rounds;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  if (g->spare == NULL) g->spare = one;
  else free_round(one);
}

static bool is_total(const ax_delivery *delivery) { return delivery->envelope.words[1] != 0; }

/* Says whether a contribution may be put: its round is open, and in a sum it is its turn. */
static bool may_be_put(const ax_execution *run, const ax_crossing_group *g, const ax_delivery *delivery, opened **round) {
  const ax_push *push = g->instr->push;
  *round = find_round(g, delivery->envelope.words[0]);
  if (*round == NULL) return false;
  if (push->exchange->combine == AX_SCALAR_NONE || is_total(delivery)) return true;
  const uint64_t turn = (delivery->envelope.words[0] - 1) * push->members + delivery->envelope.member;
  return atomic_load(&run->counters[g->counter].count) == turn;
}

static bool has_to_be_fetched(const ax_delivery *delivery) {
  return delivery->envelope.bytes > 0 && delivery->payload == NULL && delivery->address == 0;
}

/* In a sum it is the turn of a member here, and nothing else can be done until then. */
static bool is_turn_of_own(const ax_execution *run, const ax_crossing_group *g) {
  const ax_push *push = g->instr->push;
  if (push->exchange->combine == AX_SCALAR_NONE || g->split || g->to_fetch > 0) return false;
  const uint64_t member = atomic_load(&run->counters[g->counter].count) % push->members;
  return push->crossing->here[g->group * push->members + member] != AX_NONE;
}

/* Takes a contribution that may be put, or a long one of an open round, which has to be fetched first. NULL: there is none. */
static ax_delivery *take_waiting(const ax_execution *run, ax_crossing_group *g, opened **round) {
  if (g->waiting == NULL || is_turn_of_own(run, g)) return NULL;
  for (ax_delivery **link = &g->waiting; *link != NULL; link = &(*link)->next) {
    ax_delivery *one = *link;
    if (!may_be_put(run, g, one, round) && !(has_to_be_fetched(one) && *round != NULL)) continue;
    *link = one->next;
    one->next = NULL;
    g->to_fetch -= has_to_be_fetched(one);
    atomic_fetch_sub(&g->waiting_count, 1);
    return one;
  }
  return NULL;
}

/* --- Totals of split sums --- */

static char *total_at(const opened *round, const ax_crossing_group *g, ax_elems share) {
  return (char *)ax_address(&round->view, &g->instr->refs[1]) + share.begin * g->instr->push->out_item;
}
static size_t total_bytes(const ax_crossing_group *g, ax_elems share) {
  return (size_t)((share.end - share.begin) * g->instr->push->out_item);
}

/* Sends the total of this process to the others. It is not written before the round is over. */
static ax_status send_total(ax_remote *r, const ax_crossing_group *g, opened *round) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  const ax_party *own = g->own;
  for (uint32_t i = crossing->begin[g->group]; i < crossing->begin[g->group + 1]; i++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = g->group, .words = {round->round, 1},
                            .member = (uint32_t)(own - crossing->parties), .bytes = total_bytes(g, g->share)};
    if (&crossing->parties[i] != own)
      AX_TRY(ax_lent_send(&round->lent, r, crossing->parties[i].process, &envelope, total_at(round, g, g->share)));
  }
  return AX_OK;
}

static ax_status take_total(ax_remote *r, const ax_crossing_group *g, const opened *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  const ax_elems share = share_of(g, &push->crossing->parties[delivery->envelope.member]);
  char *into = total_at(round, g, share);
  if (delivery->address == 0) {
    if (delivery->payload != NULL) memcpy(into, delivery->payload, total_bytes(g, share));
    return AX_OK;
  }
  AX_TRY(ax_remote_read(r, delivery, 0, into, total_bytes(g, share)));
  return ax_remote_release(r, delivery);
}

/* The groups' lock is held: if this process has added its share, and has all other totals, the last member's signal follows. */
static ax_status end_round(ax_remote *r, ax_crossing_group *g, opened *round) {
  if (!round->added || round->totals > 0) return AX_OK;
  pthread_mutex_unlock(&r->groups_lock);
  ax_status status = ax_lent_settle(&round->lent, r);
  if (status == AX_OK) ax_scheduler_signal(r->run, g->counter, 1);
  pthread_mutex_lock(&r->groups_lock);
  if (status == AX_OK) close_round(r, g, round);
  return status;
}

/* A member, or a ghost, has been put. */
static ax_status signal_put(ax_remote *r, ax_crossing_group *g, opened *round, uint32_t member) {
  if (!g->split || member + 1 < g->instr->push->members) {
    ax_scheduler_signal(r->run, g->counter, 1);
    return AX_OK;
  }
  AX_TRY(send_total(r, g, round));
  pthread_mutex_lock(&r->groups_lock);
  round->added = true;
  ax_status status = end_round(r, g, round);
  pthread_mutex_unlock(&r->groups_lock);
  return status;
}

/* --- Ghosts --- */

static ax_status put_ghost(ax_remote *r, ax_crossing_group *g, opened *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  const uint32_t member = delivery->envelope.member;
  ax_contribution c = {.push = push, .number = member, .src = delivery->payload, .range = g->share, .dense = true};
  if (ax_pieces_for(push, g->own) > 1) c.piece = ax_part_elems(push);
  if (delivery->address == 0) {
    ax_contribution_put(r, &c, &round->view, g->instr);
  } else {
    AX_TRY(ax_contribution_read(r, &c, &round->view, g->instr, delivery));
    AX_TRY(ax_remote_release(r, delivery));
  }
  return signal_put(r, g, round, member);
}

/* The lock is held again: what a message brought has been put. */
static ax_status note_put(ax_remote *r, ax_crossing_group *g, opened *round, bool total, uint32_t member) {
  round->missing -= total;
  round->totals -= total;
  if (total) return end_round(r, g, round);
  round->put[member] = true;
  close_round(r, g, round);
  return AX_OK;
}

/* Puts all contributions whose time has come. The lock is held, and released. */
static ax_status put_ready_locked(ax_remote *r, ax_crossing_group *g) {
  ax_status status = AX_OK;
  opened *round;
  for (ax_delivery *one; status == AX_OK && (one = take_waiting(r->run, g, &round)) != NULL;) {
    pthread_mutex_unlock(&r->groups_lock);
    const bool fetches = has_to_be_fetched(one), total = is_total(one);
    const uint32_t member = one->envelope.member;
    if (fetches) {
      status = ax_remote_fetch(r, one);
    } else {
      status = total ? take_total(r, g, round, one) : put_ghost(r, g, round, one);
      ax_delivery_free(one);
    }
    pthread_mutex_lock(&r->groups_lock);
    if (!fetches && status == AX_OK) status = note_put(r, g, round, total, member);
  }
  pthread_mutex_unlock(&r->groups_lock);
  return status;
}

/* The same. Who adds a contribution counts it before it looks whether its time has come; who lets it come looks here afterwards. */
static ax_status put_ready(ax_remote *r, ax_crossing_group *g) {
  if (atomic_load(&g->waiting_count) == 0) return AX_OK;
  pthread_mutex_lock(&r->groups_lock);
  return put_ready_locked(r, g);
}

/* The group that a message is for. NULL: it names none, or is not as long as it must be, so that process runs something else. */
static ax_crossing_group *group_named(ax_remote *r, const ax_envelope *envelope) {
  const ax_push *push = envelope->place < r->push_count ? r->pushes[envelope->place] : NULL;
  if (push == NULL || envelope->group >= push->crossing->groups || push->crossing->index[envelope->group] == AX_NONE) return NULL;
  const ax_crossing *crossing = push->crossing;
  const uint32_t group = envelope->group;
  ax_crossing_group *g = &r->groups[push->crossing_first + crossing->index[group]];
  if (envelope->words[1] == 0)
    return envelope->member < push->members && envelope->bytes == (uint64_t)bytes_for(g, g->own)
               ? g
               : NULL;
  if (!g->split || envelope->member < crossing->begin[group] || envelope->member >= crossing->begin[group + 1]) return NULL;
  return envelope->bytes == total_bytes(g, share_of(g, &crossing->parties[envelope->member])) ? g : NULL;
}

ax_status ax_crossing_take(ax_execution *run, ax_delivery *delivery) {
  ax_remote *r = run->remote;
  ax_crossing_group *g = group_named(r, &delivery->envelope);
  if (g == NULL) {
    const uint32_t from = delivery->from;
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u sends what this program does not exchange", from);
  }
  pthread_mutex_lock(&r->groups_lock);
  ax_deliveries_add(&g->waiting, delivery);
  atomic_fetch_add(&g->waiting_count, 1);
  g->to_fetch += has_to_be_fetched(delivery);
  return put_ready_locked(r, g);
}

/* --- Reports --- */

static bool has_come(const ax_crossing_group *g, uint64_t round, uint32_t member) {
  const opened *open = find_round(g, round);
  for (const ax_delivery *one = g->waiting; one != NULL; one = one->next)
    if (one->envelope.words[0] == round && one->envelope.member == member && !is_total(one)) return true;
  return open != NULL ? open->put[member] : round <= g->latest;
}

/* As the device for which its process sends. */
static uint32_t list_missing(ax_text *text, const ax_remote *r, const ax_crossing_group *g, uint64_t round,
                             void (*list)(ax_text *, const ax_execution *, uint32_t, uint32_t), uint32_t count) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  const ax_party *own = g->own;
  for (uint32_t m = 0; m < crossing->members; m++)
    if (!ax_party_has(crossing, own, m) && reaches(push, m, own) && !has_come(g, round, m))
      list(text, r->run, crossing->first[g->group * crossing->members + m], count++);
  return count;
}

uint32_t ax_crossing_missing(ax_text *text, const ax_execution *run, uint32_t counter, uint64_t round,
                             void (*list)(ax_text *, const ax_execution *, uint32_t, uint32_t), uint32_t count) {
  for (uint32_t i = 0; run->remote != NULL && i < run->compiled->crossing_groups; i++)
    if (run->remote->groups[i].counter == counter)
      count = list_missing(text, run->remote, &run->remote->groups[i], round, list, count);
  return count;
}

static void list_device(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count) {
  enum { most_listed = 16 };
  if (count < most_listed) ax_text_add(text, count == 0 ? " " : ", ");
  if (count < most_listed) ax_execution_device_name(text, run, device);
  if (count == most_listed) ax_text_add(text, " and more");
}

ax_status ax_crossing_report(ax_remote *r) {
  ax_text text = {0};
  ax_text_add(&text, "deadlock: devices are through, but others never come to:");
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) {
    const ax_crossing_group *g = &r->groups[i];
    for (const opened *one = g->rounds; one != NULL; one = one->next) {
      ax_text_add(&text, "\n  ");
      ax_execution_equation_text(&text, r->run, g->instr);
      ax_text_add(&text, "\n    never come:");
      (void)list_missing(&text, r, g, one->round, list_device, 0);
    }
  }
  ax_status status = ax_error(AX_DEADLOCK, "%s", text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  return status;
}

void ax_crossing_list(const ax_remote *r, ax_stall_report *report) {
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) {
    const ax_crossing_group *g = &r->groups[i];
    for (const opened *one = g->rounds; one != NULL; one = one->next)
      ax_execution_list_stall(r->run, g->instr, g->counter, one->round, report);
  }
}

/* --- Members of this process --- */

static int64_t offset_of(const ax_crossing_group *g) { return g->split ? g->share.begin : 0; }

static opened *round_of(ax_remote *r, const ax_crossing_group *g, uint64_t round) {
  pthread_mutex_lock(&r->groups_lock);
  opened *one = find_round(g, round);
  pthread_mutex_unlock(&r->groups_lock);
  return one;
}

ax_status ax_crossing_push(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                           uint32_t f, bool *parked) {
  const ax_push *push = instr->push;
  ax_remote *r = run->remote;
  ax_crossing_group *g = group_of(r, activation, instr);
  const uint32_t number = push->number[activation->device];
  const uint64_t round = (uint64_t)activation->entered[instr->region];
  *parked = false;
  if (activation->lending) { /* it has been parked until its loans were settled */
    activation->lending = false;
    return AX_OK;
  }
  if (!activation->sent) {
    activation->sent = true; /* it may come here again, when its turn has come */
    pthread_mutex_lock(&r->groups_lock);
    ax_status status = open_round(r, g, activation, round);
    pthread_mutex_unlock(&r->groups_lock);
    if (status == AX_OK) status = send_all(r, activation, instr);
    if (status == AX_OK) status = put_ready(r, g);
    AX_TRY(status);
  }
  if (push->exchange->combine != AX_SCALAR_NONE) {
    *parked = !ax_scheduler_await(run, worker_slot, f, g->counter, (round - 1) * push->members + number, false);
    if (*parked) return AX_OK;
  }
  activation->sent = false;
  const ax_contribution c = {.push = push, .number = number, .stride = push->exchange->src_stride,
                             .piece = push->exchange->src_step,
                             .range = g->share,
                             .src = (const char *)ax_address(activation, &instr->refs[0]) + offset_of(g) * push->item};
  ax_contribution_put(r, &c, activation, instr);
  AX_TRY(signal_put(r, g, g->split ? round_of(r, g, round) : NULL, number));
  if (push->exchange->combine != AX_SCALAR_NONE) AX_TRY(put_ready(r, g));
  if (r->lent[activation->device].count == 0) return AX_OK;
  activation->lending = true;
  AX_TRY(ax_lent_await(r, worker_slot, activation->device, f, parked));
  if (!*parked) activation->lending = false;
  return AX_OK;
}
