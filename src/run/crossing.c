/* See crossing.h.

     payload      what the member has for this process: its operand (peers ONE), its part (PAIRS), or its pieces for the members that
                  the process has, one after the other, each dense; one piece if all get the same
     envelope     place: the exchange's id; group, member; words[0]: the round, which is how often the member has entered the region
                  around the push */
#include "run/crossing.h"

#include <string.h>

#include "run/pieces.h"
#include "run/push.h"
#include "run/scheduler.h"

/* A round that is open: results may be written. */
typedef struct opened {
  struct opened *next;
  uint64_t round;
  uint32_t missing;    /* ghosts whose contributions have not been put */
  ax_activation view;  /* the member that opened it, as it was: it may have gone on since */
  bool *put;           /* by member: it is a ghost, and its contribution has been put */
  int64_t iteration[];
} opened;

typedef struct ax_crossing_group {
  const ax_instr *instr; /* the push */
  uint32_t group;
  uint32_t ghosts;       /* members elsewhere that push something into what this process has */
  uint32_t counter;      /* that the members signal */
  uint64_t latest;       /* round that was opened last */
  opened *rounds;
  ax_delivery *waiting;  /* contributions whose time has not come */
} ax_crossing_group;

/* --- Groups --- */

static const ax_party *own_party(const ax_remote *r, const ax_crossing *crossing, uint32_t group) {
  return ax_party_of(crossing, group, r->run->compiled->map->process);
}

static bool reaches(const ax_push *push, uint32_t member, const ax_party *party) {
  return ax_reaches(push->exchange, push->crossing, push->targets, member, party);
}

static void describe(ax_remote *r, const ax_instr *instr, uint32_t group) {
  const ax_push *push = instr->push;
  const ax_crossing *crossing = push->crossing;
  ax_crossing_group *g = &r->groups[push->crossing_first + crossing->index[group]];
  const ax_party *own = own_party(r, crossing, group);
  *g = (ax_crossing_group){.instr = instr, .group = group};
  for (uint32_t m = 0; m < crossing->members; m++) g->ghosts += !ax_party_has(crossing, own, m) && reaches(push, m, own);
  g->counter = push->first + push->counter[crossing->here[group * crossing->members + crossing->held[own->first]]];
}

ax_status ax_crossing_init(ax_remote *r) {
  const ax_compiled *c = r->run->compiled;
  r->groups = ax_calloc(c->crossing_groups, sizeof r->groups[0]);
  r->push_count = c->plan != NULL ? c->plan->exchange_count : 0;
  r->pushes = ax_calloc(r->push_count, sizeof r->pushes[0]);
  if (r->groups == NULL || r->pushes == NULL) return ax_out_of_memory(c->crossing_groups * sizeof r->groups[0]);
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_instr *instr = &c->codes[0].instrs[i];
    if (instr->kind != AX_INSTR_PUSH || instr->push->crossing == NULL) continue;
    r->pushes[instr->push->exchange->id] = instr->push;
    for (uint32_t g = 0; g < instr->push->crossing->groups; g++)
      if (instr->push->crossing->index[g] != AX_NONE) describe(r, instr, g);
  }
  return AX_OK;
}

static void empty(ax_crossing_group *g) {
  for (opened *next, *one = g->rounds; one != NULL; one = next) {
    next = one->next;
    ax_free(one);
  }
  ax_deliveries_free(&g->waiting);
  g->rounds = NULL;
  g->latest = 0;
}

void ax_crossing_reset(ax_remote *r) {
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) empty(&r->groups[i]);
  atomic_store(&r->open, 0);
}

void ax_crossing_deinit(ax_remote *r) {
  if (r->groups != NULL) ax_crossing_reset(r);
  ax_free(r->groups);
  ax_free(r->pushes);
}

static ax_crossing_group *group_of(ax_remote *r, const ax_activation *activation, const ax_instr *instr) {
  const ax_crossing *crossing = instr->push->crossing;
  return &r->groups[instr->push->crossing_first + crossing->index[crossing->group[activation->device]]];
}

/* --- A contribution: that of a member of this process, or that of a ghost, from a message --- */

typedef struct contribution {
  const ax_push *push;
  uint32_t number;              /* the member */
  const char *src;
  const int64_t *stride;        /* elements between rows of a part, by dimension around a run */
  int64_t piece;                /* elements between the pieces for successive peers: by their numbers, or as they are here */
  bool dense;                   /* pieces are those for the members here, one after the other */
} contribution;

/* Puts all rows of a part. */
static void put_part(const ax_push *push, ax_kernel_code code, const ax_push_rows *rows) {
  ax_push_put_rows(push, code, rows, 0, ax_dims_elems(push->outer_rank, push->exchange->dims));
}

/* Strides of a part whose rows lie one after the other. Returns its elements. */
static int64_t dense_strides(const ax_push *push, int64_t *stride) {
  int64_t elems = push->run;
  for (uint32_t k = push->outer_rank; k-- > 0; elems *= push->exchange->dims[k]) stride[k] = elems;
  return elems;
}

/* Puts it into the results of all members here. view: a member of the group, as it was when the round began. */
static void put(const ax_remote *r, const contribution *c, const ax_activation *view, const ax_instr *instr) {
  const ax_push *push = c->push;
  const ax_exchange *x = push->exchange;
  const ax_party *own = own_party(r, push->crossing, push->crossing->group[view->device]);
  const int64_t step = c->number * x->dst_step * push->out_item;
  const ax_kernel_code code = ax_push_code(push, x->combine != AX_SCALAR_NONE && c->number > 0);
  if (x->alone && c->number != x->source) return;
  if (x->peers == AX_PEERS_ONE) {
    char *dst = (char *)ax_address(view, &instr->refs[1]) + step;
    put_part(push, code, &(ax_push_rows){c->src, dst, c->stride, x->dst_stride, push->out_item});
    return;
  }
  for (uint32_t i = 0; i < own->count; i++) {
    const uint32_t peer = push->crossing->held[own->first + i];
    if (x->peers == AX_PEERS_PAIRS && push->targets[c->number] != peer) continue;
    const char *src = c->src + (c->dense ? i : peer) * c->piece * push->item;
    char *dst = ax_push_result(view, instr, peer) + step;
    put_part(push, code, &(ax_push_rows){src, dst, c->stride, x->dst_stride, push->out_item});
  }
}

/* --- Sending --- */

/* How many pieces a member sends to a process. */
static uint32_t pieces_for(const ax_push *push, const ax_party *party) {
  return push->exchange->peers == AX_PEERS_ALL && push->exchange->src_step != 0 ? party->count : 1;
}

static ax_status send_to(ax_remote *r, const ax_activation *activation, const ax_instr *instr, const ax_party *party) {
  const ax_push *push = instr->push;
  const ax_exchange *x = push->exchange;
  const char *src = ax_address(activation, &instr->refs[0]);
  int64_t stride[AX_MAX_RANK];
  const int64_t elems = dense_strides(push, stride);
  const uint32_t pieces = pieces_for(push, party);
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = x->id, .group = push->crossing->group[activation->device],
                          .member = push->number[activation->device], .bytes = (uint64_t)(pieces * elems * push->item)};
  envelope.words[0] = (uint64_t)activation->entered[instr->region];
  if (pieces == 1 && push->outer_rank == 0) {
    const uint32_t peer = x->peers == AX_PEERS_ALL ? push->crossing->held[party->first] : 0;
    return ax_remote_send(r, party->process, &envelope, src + peer * x->src_step * push->item);
  }
  char *payload = ax_alloc(envelope.bytes);
  if (payload == NULL) return ax_out_of_memory(envelope.bytes);
  for (uint32_t i = 0; i < pieces; i++) {
    const int64_t peer = x->peers == AX_PEERS_ALL ? push->crossing->held[party->first + i] : 0;
    put_part(push, NULL, &(ax_push_rows){src + peer * x->src_step * push->item, payload + i * elems * push->item, x->src_stride, stride,
                                         push->item}); /* copied */
  }
  ax_status status = ax_remote_send(r, party->process, &envelope, payload);
  ax_free(payload);
  return status;
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
  opened *one = ax_calloc(1, sizeof *one + loops * sizeof one->iteration[0] + members);
  if (one == NULL) return ax_out_of_memory(loops * sizeof one->iteration[0]);
  *one = (opened){.next = g->rounds, .round = round, .missing = g->ghosts, .view = *activation};
  memcpy(one->iteration, activation->iteration, loops * sizeof one->iteration[0]);
  one->view.iteration = one->iteration;
  one->put = (bool *)(one->iteration + loops);
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
  ax_free(one);
}

/* Says whether a contribution may be put: its round is open, and in a sum it is its turn. */
static bool may_be_put(const ax_execution *run, const ax_crossing_group *g, const ax_delivery *delivery, opened **round) {
  const ax_push *push = g->instr->push;
  *round = find_round(g, delivery->envelope.words[0]);
  if (*round == NULL) return false;
  if (push->exchange->combine == AX_SCALAR_NONE) return true;
  const uint64_t turn = (delivery->envelope.words[0] - 1) * push->members + delivery->envelope.member;
  return atomic_load(&run->counters[g->counter].count) == turn;
}

static bool is_long(const ax_delivery *delivery) { return delivery->envelope.bytes > 0 && delivery->payload == NULL; }

/* Takes a contribution that may be put, or a long one of an open round, which has to be fetched first. NULL: there is none. */
static ax_delivery *take_waiting(const ax_execution *run, ax_crossing_group *g, opened **round) {
  for (ax_delivery **link = &g->waiting; *link != NULL; link = &(*link)->next) {
    ax_delivery *one = *link;
    if (!may_be_put(run, g, one, round) && !(is_long(one) && *round != NULL)) continue;
    *link = one->next;
    one->next = NULL;
    return one;
  }
  return NULL;
}

/* --- Ghosts --- */

static void put_ghost(ax_remote *r, const ax_crossing_group *g, const opened *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  int64_t stride[AX_MAX_RANK];
  contribution c = {.push = push, .number = delivery->envelope.member, .src = delivery->payload, .stride = stride, .dense = true};
  const int64_t elems = dense_strides(push, stride);
  c.piece = push->exchange->peers == AX_PEERS_ALL && push->exchange->src_step != 0 ? elems : 0;
  put(r, &c, &round->view, g->instr);
}

/* Puts all contributions whose time has come. */
static ax_status put_waiting(ax_remote *r, ax_crossing_group *g) {
  ax_status status = AX_OK;
  pthread_mutex_lock(&r->groups_lock);
  opened *round;
  for (ax_delivery *one; status == AX_OK && (one = take_waiting(r->run, g, &round)) != NULL;) {
    pthread_mutex_unlock(&r->groups_lock);
    const bool fetches = is_long(one);
    const uint32_t member = one->envelope.member;
    if (fetches) {
      status = ax_remote_fetch(r, one);
    } else {
      put_ghost(r, g, round, one);
      ax_delivery_free(one);
      ax_scheduler_signal(r->run, g->counter, 1);
    }
    pthread_mutex_lock(&r->groups_lock);
    if (!fetches) round->put[member] = true;
    if (!fetches) close_round(r, g, round);
  }
  pthread_mutex_unlock(&r->groups_lock);
  return status;
}

/* The group that a message is for. NULL: it names none, or is not as long as it must be, so that process runs something else. */
static ax_crossing_group *group_named(ax_remote *r, const ax_envelope *envelope) {
  int64_t stride[AX_MAX_RANK];
  const ax_push *push = envelope->place < r->push_count ? r->pushes[envelope->place] : NULL;
  if (push == NULL || envelope->group >= push->crossing->groups || push->crossing->index[envelope->group] == AX_NONE) return NULL;
  const uint32_t pieces = pieces_for(push, own_party(r, push->crossing, envelope->group));
  if (envelope->member >= push->members || envelope->bytes != (uint64_t)(pieces * dense_strides(push, stride) * push->item))
    return NULL;
  return &r->groups[push->crossing_first + push->crossing->index[envelope->group]];
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
  pthread_mutex_unlock(&r->groups_lock);
  return put_waiting(r, g);
}

/* --- Reports --- */

static bool has_come(const ax_crossing_group *g, uint64_t round, uint32_t member) {
  const opened *open = find_round(g, round);
  for (const ax_delivery *one = g->waiting; one != NULL; one = one->next)
    if (one->envelope.words[0] == round && one->envelope.member == member) return true;
  return open != NULL ? open->put[member] : round <= g->latest;
}

/* As the device for which its process sends. */
static uint32_t list_missing(ax_text *text, const ax_remote *r, const ax_crossing_group *g, uint64_t round,
                             void (*list)(ax_text *, const ax_execution *, uint32_t, uint32_t), uint32_t count) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  const ax_party *own = own_party(r, crossing, g->group);
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

/* --- Members of this process --- */

ax_status ax_crossing_push(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                           uint32_t f, bool *parked) {
  const ax_push *push = instr->push;
  ax_remote *r = run->remote;
  ax_crossing_group *g = group_of(r, activation, instr);
  const uint32_t number = push->number[activation->device];
  const uint64_t round = (uint64_t)activation->entered[instr->region];
  *parked = false;
  if (!activation->sent) {
    activation->sent = true; /* it may come here again, when its turn has come */
    pthread_mutex_lock(&r->groups_lock);
    ax_status status = open_round(r, g, activation, round);
    pthread_mutex_unlock(&r->groups_lock);
    if (status == AX_OK) status = send_all(r, activation, instr);
    if (status == AX_OK) status = put_waiting(r, g);
    AX_TRY(status);
  }
  if (push->exchange->combine != AX_SCALAR_NONE) {
    *parked = !ax_scheduler_await(run, worker_slot, f, g->counter, (round - 1) * push->members + number, false);
    if (*parked) return AX_OK;
  }
  activation->sent = false;
  const contribution c = {.push = push, .number = number, .src = ax_address(activation, &instr->refs[0]),
                          .stride = push->exchange->src_stride, .piece = push->exchange->src_step};
  put(r, &c, activation, instr);
  ax_scheduler_signal(run, g->counter, 1);
  return push->exchange->combine != AX_SCALAR_NONE ? put_waiting(r, g) : AX_OK;
}
