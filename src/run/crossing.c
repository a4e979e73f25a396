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

/* What a device has lent in the exchange that it is in. */
typedef struct ax_lent {
  ax_loan *loans;
  uint32_t count, capacity;
  int64_t bytes; /* of each */
  double since;
} ax_lent;

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
  for (uint32_t d = 0; d < r->run->compiled->devices; d++) r->lent[d].count = 0; /* of a run that failed: forgotten */
  atomic_store(&r->open, 0);
}

void ax_crossing_deinit(ax_remote *r) {
  if (r->groups != NULL && r->lent != NULL) ax_crossing_reset(r);
  for (uint32_t d = 0; r->lent != NULL && d < r->run->compiled->devices; d++) ax_free(r->lent[d].loans);
  ax_free(r->lent);
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
  uint32_t number;       /* the member */
  const char *src;       /* NULL: it is read where it lies */
  const int64_t *stride; /* elements between rows of a part, by dimension around a run; NULL: they lie one after the other */
  int64_t piece;         /* elements between the pieces for successive peers: by their numbers, or as they are here */
  bool dense;            /* pieces are those for the members here, one after the other */
} contribution;

/* Where it is put. */
typedef struct targets {
  const ax_push *push;
  const ax_instr *instr;
  const ax_activation *view; /* a member of the group, as it was when the round began */
  const ax_party *own;       /* the members here */
  ax_kernel_code code;
  uint32_t count;
  int64_t step; /* bytes from the beginning of a result to the part of this contribution */
} targets;

static targets targets_of(const ax_remote *r, const contribution *c, const ax_activation *view, const ax_instr *instr) {
  const ax_push *push = c->push;
  const ax_exchange *x = push->exchange;
  const ax_party *own = own_party(r, push->crossing, push->crossing->group[view->device]);
  const uint32_t count = x->peers == AX_PEERS_ONE ? 1 : own->count;
  return (targets){.push = push, .instr = instr, .view = view, .own = own,
                   .code = ax_push_code(push, x->combine != AX_SCALAR_NONE && c->number > 0),
                   .count = x->alone && c->number != x->source ? 0 : count, .step = c->number * x->dst_step * push->out_item};
}

static uint32_t peer_at(const targets *t, uint32_t i) { return t->push->crossing->held[t->own->first + i]; }

/* NULL: what the i-th member here has gets nothing of it. */
static char *target(const targets *t, const contribution *c, uint32_t i) {
  const ax_push *push = t->push;
  if (push->exchange->peers == AX_PEERS_ONE) return (char *)ax_address(t->view, &t->instr->refs[1]) + t->step;
  if (push->exchange->peers == AX_PEERS_PAIRS && push->targets[c->number] != peer_at(t, i)) return NULL;
  return ax_push_result(t->view, t->instr, peer_at(t, i)) + t->step;
}

/* The elements of a part, whose rows lie one after the other. */
static int64_t part_elems(const ax_push *push) { return ax_dims_elems(push->outer_rank, push->exchange->dims) * push->run; }

/* Puts it into the results of all members here. */
static void put(const ax_remote *r, const contribution *c, const ax_activation *view, const ax_instr *instr) {
  const targets t = targets_of(r, c, view, instr);
  const ax_push *push = c->push;
  const int64_t rows = ax_dims_elems(push->outer_rank, push->exchange->dims);
  for (uint32_t i = 0; i < t.count; i++) {
    char *dst = target(&t, c, i);
    const int64_t piece = push->exchange->peers == AX_PEERS_ONE ? 0 : c->dense ? i : peer_at(&t, i);
    if (dst == NULL) continue;
    ax_push_put_rows(push, t.code,
                     &(ax_push_rows){c->src + piece * c->piece * push->item, dst, c->stride, push->exchange->dst_stride,
                                     push->out_item},
                     0, rows);
  }
}

/* --- Contributions that are read where they lie, block by block: each is put while the caches have it --- */

enum { block_bytes = 64 << 10 };

typedef struct reading {
  ax_remote *remote;
  const ax_delivery *delivery;
  const contribution *from;
  const targets *to;
  uint32_t begin, end; /* the targets that get this piece */
  char *block;         /* memory for a block */
} reading;

static ax_status read_elems(const reading *d, int64_t piece, int64_t elem, void *into, int64_t count) {
  const int64_t item = d->from->push->item;
  return ax_remote_read(d->remote, d->delivery, (size_t)((piece * d->from->piece + elem) * item), into, (size_t)(count * item));
}

/* Elements first to first + count - 1 of a row. */
static ax_status put_of_row(const reading *d, int64_t piece, int64_t row, int64_t first, int64_t count) {
  const ax_push *push = d->from->push;
  const ax_push_rows where = {.dst_stride = push->exchange->dst_stride};
  AX_TRY(read_elems(d, piece, row * push->run + first, d->block, count));
  for (uint32_t i = d->begin; i < d->end; i++) {
    char *dst = target(d->to, d->from, i);
    if (dst == NULL) continue;
    dst += (ax_push_row_offset(push, &where, row) + first) * push->out_item;
    ax_push_put_run(push, d->to->code, d->block, dst, 0, count);
  }
  return AX_OK;
}

static ax_status put_rows(const reading *d, int64_t piece, int64_t first, int64_t count) {
  const ax_push *push = d->from->push;
  AX_TRY(read_elems(d, piece, first * push->run, d->block, count * push->run));
  for (uint32_t i = d->begin; i < d->end; i++) {
    char *dst = target(d->to, d->from, i);
    const ax_push_rows rows = {d->block, dst, NULL, push->exchange->dst_stride, push->out_item};
    if (dst != NULL) ax_push_put_rows(push, d->to->code, &rows, first, first + count);
  }
  return AX_OK;
}

static ax_status put_piece(const reading *d, int64_t piece) {
  const ax_push *push = d->from->push;
  const int64_t row_bytes = push->run * push->item, rows = ax_dims_elems(push->outer_rank, push->exchange->dims);
  const int64_t at_once = row_bytes > 0 ? block_bytes / row_bytes : rows, elems_at_once = block_bytes / push->item;
  char *only = d->end - d->begin == 1 ? target(d->to, d->from, d->begin) : NULL;
  if (only != NULL && d->to->code == NULL && push->outer_rank == 0) return read_elems(d, piece, 0, only, push->run); /* no block */
  for (int64_t r = 0; r < rows && at_once > 0; r += at_once) AX_TRY(put_rows(d, piece, r, rows - r < at_once ? rows - r : at_once));
  for (int64_t r = 0; r < rows && at_once == 0; r++)
    for (int64_t e = 0; e < push->run; e += elems_at_once)
      AX_TRY(put_of_row(d, piece, r, e, push->run - e < elems_at_once ? push->run - e : elems_at_once));
  return AX_OK;
}

static ax_status put_read(ax_remote *r, const contribution *c, const ax_activation *view, const ax_instr *instr,
                          const ax_delivery *delivery) {
  const targets t = targets_of(r, c, view, instr);
  char *block = ax_alloc(block_bytes);
  ax_status status = block != NULL ? AX_OK : ax_out_of_memory(block_bytes);
  reading d = {r, delivery, c, &t, 0, t.count, block};
  if (c->piece == 0 && status == AX_OK) status = put_piece(&d, 0);
  for (uint32_t i = 0; c->piece != 0 && i < t.count && status == AX_OK; i++) {
    d.begin = i;
    d.end = i + 1;
    status = put_piece(&d, i);
  }
  ax_free(block);
  return status;
}

/* --- Lending: what a member of this process has is read where it is, until it goes on --- */

enum { least_lent = 32 << 10 }; /* a shorter payload is copied sooner than it is read */

static ax_status lend_to(ax_remote *r, uint32_t device, uint32_t to, ax_envelope *envelope, const char *payload) {
  ax_lent *lent = &r->lent[device];
  AX_TRY(ax_grow(&lent->loans, sizeof lent->loans[0], lent->count, 1, &lent->capacity));
  if (lent->count == 0) lent->since = ax_seconds();
  lent->bytes = (int64_t)envelope->bytes;
  AX_TRY(ax_remote_lend(r, to, envelope, payload, &lent->loans[lent->count]));
  lent->count += lent->loans[lent->count].ticket != 0;
  return AX_OK;
}

/* Waits for a reader about as long as copying takes: so the copy is made at most once, and nothing waits for what may never come. */
static ax_status settle(ax_remote *r, uint32_t device) {
  static const double seconds_at_least = 5e-6, bytes_per_second = 8e9;
  ax_lent *lent = &r->lent[device];
  ax_transport *transport = r->together.ending.processes->transport;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < lent->count; i++) {
    const double until = lent->since + seconds_at_least + (double)lent->bytes * (i + 1) / bytes_per_second;
    while (!transport->functions->is_returned(transport, &lent->loans[i]) && ax_seconds() < until) (void)ax_remote_poll(r);
    ax_status settled = transport->functions->settle(transport, &lent->loans[i]);
    if (status == AX_OK) status = settled;
  }
  lent->count = 0;
  return status;
}

/* --- Sending --- */

/* How many pieces a member sends to a process. */
static uint32_t pieces_for(const ax_push *push, const ax_party *party) {
  return push->exchange->peers == AX_PEERS_ALL && push->exchange->src_step != 0 ? party->count : 1;
}

static const char *piece_for(const ax_push *push, const char *src, const ax_party *party, uint32_t i) {
  const int64_t peer = push->exchange->peers == AX_PEERS_ALL ? push->crossing->held[party->first + i] : 0;
  return src + peer * push->exchange->src_step * push->item;
}

/* The pieces, one after the other. They are the caller's to free. */
static ax_status gather(const ax_push *push, const char *src, const ax_party *party, uint32_t pieces, char **out) {
  const int64_t elems = part_elems(push), rows = ax_dims_elems(push->outer_rank, push->exchange->dims);
  int64_t stride[AX_MAX_RANK], elems_of_rows = push->run;
  for (uint32_t k = push->outer_rank; k-- > 0; elems_of_rows *= push->exchange->dims[k]) stride[k] = elems_of_rows;
  char *payload = *out = ax_alloc((size_t)(pieces * elems * push->item));
  if (payload == NULL) return ax_out_of_memory((size_t)(pieces * elems * push->item));
  for (uint32_t i = 0; i < pieces; i++)
    ax_push_put_rows(push, NULL,
                     &(ax_push_rows){piece_for(push, src, party, i), payload + i * elems * push->item, push->exchange->src_stride,
                                     stride, push->item},
                     0, rows);
  return AX_OK;
}

static ax_status send_to(ax_remote *r, const ax_activation *activation, const ax_instr *instr, const ax_party *party) {
  const ax_push *push = instr->push;
  const char *src = ax_address(activation, &instr->refs[0]);
  const uint32_t pieces = pieces_for(push, party);
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = push->crossing->group[activation->device],
                          .member = push->number[activation->device], .bytes = (uint64_t)(pieces * part_elems(push) * push->item)};
  envelope.words[0] = (uint64_t)activation->entered[instr->region];
  if (pieces == 1 && push->outer_rank == 0) {
    const char *piece = piece_for(push, src, party, 0);
    return envelope.bytes < least_lent ? ax_remote_send(r, party->process, &envelope, piece)
                                       : lend_to(r, activation->device, party->process, &envelope, piece);
  }
  char *payload;
  AX_TRY(gather(push, src, party, pieces, &payload));
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

static bool has_to_be_fetched(const ax_delivery *delivery) {
  return delivery->envelope.bytes > 0 && delivery->payload == NULL && delivery->address == 0;
}

/* Takes a contribution that may be put, or a long one of an open round, which has to be fetched first. NULL: there is none. */
static ax_delivery *take_waiting(const ax_execution *run, ax_crossing_group *g, opened **round) {
  for (ax_delivery **link = &g->waiting; *link != NULL; link = &(*link)->next) {
    ax_delivery *one = *link;
    if (!may_be_put(run, g, one, round) && !(has_to_be_fetched(one) && *round != NULL)) continue;
    *link = one->next;
    one->next = NULL;
    return one;
  }
  return NULL;
}

/* --- Ghosts --- */

static ax_status put_ghost(ax_remote *r, const ax_crossing_group *g, const opened *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  contribution c = {.push = push, .number = delivery->envelope.member, .src = delivery->payload, .dense = true};
  if (pieces_for(push, own_party(r, push->crossing, g->group)) > 1) c.piece = part_elems(push);
  if (delivery->address == 0) {
    put(r, &c, &round->view, g->instr);
    return AX_OK;
  }
  AX_TRY(put_read(r, &c, &round->view, g->instr, delivery));
  return ax_remote_release(r, delivery);
}

/* Puts all contributions whose time has come. */
static ax_status put_waiting(ax_remote *r, ax_crossing_group *g) {
  ax_status status = AX_OK;
  pthread_mutex_lock(&r->groups_lock);
  opened *round;
  for (ax_delivery *one; status == AX_OK && (one = take_waiting(r->run, g, &round)) != NULL;) {
    pthread_mutex_unlock(&r->groups_lock);
    const bool fetches = has_to_be_fetched(one);
    const uint32_t member = one->envelope.member;
    if (fetches) {
      status = ax_remote_fetch(r, one);
    } else {
      status = put_ghost(r, g, round, one);
      ax_delivery_free(one);
      if (status == AX_OK) ax_scheduler_signal(r->run, g->counter, 1);
    }
    pthread_mutex_lock(&r->groups_lock);
    if (fetches || status != AX_OK) continue;
    round->put[member] = true;
    close_round(r, g, round);
  }
  pthread_mutex_unlock(&r->groups_lock);
  return status;
}

/* The group that a message is for. NULL: it names none, or is not as long as it must be, so that process runs something else. */
static ax_crossing_group *group_named(ax_remote *r, const ax_envelope *envelope) {
  const ax_push *push = envelope->place < r->push_count ? r->pushes[envelope->place] : NULL;
  if (push == NULL || envelope->group >= push->crossing->groups || push->crossing->index[envelope->group] == AX_NONE) return NULL;
  const uint32_t pieces = pieces_for(push, own_party(r, push->crossing, envelope->group));
  if (envelope->member >= push->members || envelope->bytes != (uint64_t)(pieces * part_elems(push) * push->item))
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
  if (push->exchange->combine != AX_SCALAR_NONE) AX_TRY(put_waiting(r, g));
  return r->lent[activation->device].count > 0 ? settle(r, activation->device) : AX_OK;
}
