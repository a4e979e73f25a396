/* See crossing.h.

     payload      what the member has for this process: its operand (peers ONE), its part (PAIRS), or its pieces for the members
                  that the process has, one after the other, each dense; one piece if all get the same
     envelope     place: the exchange's id; group, member; words[0]: the round, which is how often the member has entered the region
                  around the push; words[1]: 1 if it is a total; words[2]: 0, or what coalesced.h says

   Large sums are split: each process adds a share of the elements, of all members in their order, and gives the total of that share
   to the other processes. So each process adds as much as if it were alone, divided by their number, and the bits are the same.

     process 0    adds elements 0 to 499 of all members      --- total --->  takes them
     process 1    takes elements 0 to 499 <--- total ---     adds elements 500 to 999 of all members */
#include "run/crossing.h"

#include <string.h>

#include "processes/ways.h"
#include "run/crossing_group.h"
#include "run/pieces.h"
#include "run/scheduler.h"

/* --- Groups --- */

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
  const int64_t units = (push->run + unit - 1) / unit, count = ax_crossing_parties(g),
                i = party - &crossing->parties[crossing->begin[g->group]];
  if (!g->split) return (ax_elems){0, push->run};
  const int64_t end = units * (i + 1) / count * unit;
  return (ax_elems){units * i / count * unit, end < push->run ? end : push->run};
}

static int64_t bytes_for(const ax_crossing_group *g, const ax_party *party) {
  const ax_push *push = g->instr->push;
  const ax_elems share = share_of(g, party);
  return push->outer_rank == 0 ? ax_pieces_for(push, party) * (share.end - share.begin) * push->item
                               : ax_pieces_for(push, party) * ax_part_elems(push) * push->item;
}

/* The next thing that a member does is to wait for the result. */
static bool is_awaited_at_once(const ax_instr *push) {
  const ax_instr *next = push + 1;
  while (next->kind == AX_INSTR_SIGNAL) next++;
  return next->kind == AX_INSTR_WAIT && next->sync.first == push->push->first;
}

/* What is longer is read sooner where it lies than a copy of it. */
static bool leaves_copies(const ax_crossing_group *g) {
  const ax_exchange *x = g->instr->push->exchange;
  return x->combine != AX_SCALAR_NONE && !x->alone && !g->split && g->ghosts > 0 && g->bytes <= AX_SHARES_LEAST &&
         !is_awaited_at_once(g->instr);
}

/* The first party from the i-th on to which a member of this process sends its contribution alone; the number of parties: none. */
static uint32_t next_alone(const ax_crossing_group *g, uint32_t i, uint32_t member) {
  const ax_push *push = g->instr->push;
  for (; i < ax_crossing_parties(g); i++) {
    const ax_party *party = ax_crossing_party(g, i);
    if (party == g->own || g->coalesced.forms[i].most > 0) continue;
    if (!ax_party_has(push->crossing, party, member) && ax_crossing_reaches(push, member, party)) break;
  }
  return i;
}

/* The party to which the only member here sends its contribution alone; AX_NONE if there are several members, or parties, or none. */
static uint32_t only_party(const ax_remote *r, const ax_crossing_group *g) {
  const ax_crossing *crossing = g->instr->push->crossing;
  const uint32_t member = crossing->held[g->own->first], count = ax_crossing_parties(g), first = next_alone(g, 0, member);
  const bool is_here = ax_device_is_here(r->run->compiled->map, crossing->first[g->group * crossing->members + member]);
  return g->own->count == 1 && is_here && first < count && next_alone(g, first + 1, member) == count ? first : AX_NONE;
}

/* waiting, forms: of this group; they become those of the next. */
static void describe(ax_remote *r, const ax_instr *instr, uint32_t group, ax_deliveries **waiting, ax_coalesced_form **forms) {
  const ax_push *push = instr->push;
  const ax_crossing *crossing = push->crossing;
  ax_crossing_group *g = &r->groups[push->crossing_first + crossing->index[group]];
  const ax_party *own = ax_own_party(r, crossing, group);
  *g = (ax_crossing_group){.instr = instr, .group = group, .own = own, .split = is_split(push, group), .waiting = *waiting};
  g->share = share_of(g, own);
  g->bytes = (size_t)bytes_for(g, own);
  g->coalesced = (ax_coalesced){.push = push, .group = group, .own = own, .forms = *forms};
  for (uint32_t i = 0; i < ax_crossing_parties(g); i++) {
    const ax_party *party = &crossing->parties[crossing->begin[group] + i];
    ax_coalesced_choose(r, &g->coalesced, i, share_of(g, party), (size_t)bytes_for(g, party));
    g->lends = g->lends || (party != own && (*forms)[i].most == 0);
  }
  *waiting += ax_crossing_parties(g);
  *forms += ax_crossing_parties(g);
  for (uint32_t m = 0; m < crossing->members; m++) g->ghosts += !ax_party_has(crossing, own, m) && ax_crossing_reaches(push, m, own);
  g->leaves = leaves_copies(g);
  g->only = only_party(r, g);
  g->counter = push->first + push->counter[crossing->here[group * crossing->members + crossing->held[own->first]]];
}

static const ax_crossing *crossing_at(const ax_compiled *c, uint32_t i) {
  const ax_instr *instr = &c->codes[0].instrs[i];
  return instr->kind == AX_INSTR_PUSH ? instr->push->crossing : NULL;
}

static size_t count_parties(const ax_compiled *c) {
  size_t count = 0;
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_crossing *crossing = crossing_at(c, i);
    for (uint32_t g = 0; crossing != NULL && g < crossing->groups; g++)
      if (crossing->index[g] != AX_NONE) count += crossing->begin[g + 1] - crossing->begin[g];
  }
  return count;
}

ax_status ax_crossing_init(ax_remote *r) {
  const ax_compiled *c = r->run->compiled;
  const size_t parties = count_parties(c);
  r->groups = ax_calloc(c->crossing_groups, sizeof r->groups[0]);
  r->push_count = c->plan != NULL ? c->plan->exchange_count : 0;
  r->pushes = ax_calloc(r->push_count, sizeof r->pushes[0]);
  r->lent = ax_calloc(c->devices, sizeof r->lent[0]);
  ax_deliveries *waiting = r->waiting = ax_calloc(parties, sizeof waiting[0]);
  ax_coalesced_form *forms = r->forms = ax_calloc(parties, sizeof forms[0]);
  if (r->groups == NULL || r->pushes == NULL || r->lent == NULL || waiting == NULL || forms == NULL)
    return ax_out_of_memory(c->crossing_groups * sizeof r->groups[0]);
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_instr *instr = &c->codes[0].instrs[i];
    const ax_crossing *crossing = crossing_at(c, i);
    if (crossing != NULL) r->pushes[instr->push->exchange->id] = instr->push;
    for (uint32_t g = 0; crossing != NULL && g < crossing->groups; g++)
      if (crossing->index[g] != AX_NONE) describe(r, instr, g, &waiting, &forms);
  }
  return AX_OK;
}

static void free_round(ax_open_round *one) {
  ax_lent_deinit(&one->lent);
  ax_free(one);
}

/* g->instr NULL: there was no memory to describe it. */
static void empty(ax_crossing_group *g) {
  if (g->spare != NULL) free_round(g->spare);
  g->spare = NULL;
  for (ax_open_round *next, *one = g->rounds; one != NULL; one = next) {
    next = one->next;
    free_round(one);
  }
  ax_coalesced_empty(&g->coalesced);
  for (uint32_t i = 0; g->instr != NULL && i < ax_crossing_parties(g); i++) ax_deliveries_free(&g->waiting[i]);
  g->rounds = NULL;
  g->to_fetch = g->left = 0;
  atomic_store(&g->waiting_count, 0);
  g->latest = 0;
}

void ax_crossing_reset(ax_remote *r) {
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) empty(&r->groups[i]);
  for (uint32_t d = 0; d < r->run->compiled->devices; d++) r->lent[d].count = 0, r->lent[d].times = 0;
  atomic_store(&r->open, 0);
  atomic_store(&r->held_back, 0);
}

void ax_crossing_deinit(ax_remote *r) {
  if (r->groups != NULL && r->lent != NULL) ax_crossing_reset(r);
  for (uint32_t d = 0; r->lent != NULL && d < r->run->compiled->devices; d++) ax_lent_deinit(&r->lent[d]);
  ax_free(r->waiting);
  ax_free(r->forms);
  ax_free(r->lent);
  ax_free(r->groups);
  ax_free(r->pushes);
}

static ax_crossing_group *group_of(ax_remote *r, const ax_activation *activation, const ax_instr *instr) {
  const ax_crossing *crossing = instr->push->crossing;
  return &r->groups[instr->push->crossing_first + crossing->index[crossing->group[activation->device]]];
}

/* --- Sending --- */

/* Its contribution alone, to the i-th party. */
static ax_status send_to(ax_remote *r, const ax_crossing_group *g, const ax_activation *activation, uint32_t i, bool lends) {
  const ax_instr *instr = g->instr;
  const ax_coalesced_form *form = &g->coalesced.forms[i];
  const ax_party *party = ax_crossing_party(g, i);
  const ax_push *push = instr->push;
  const char *src = ax_address(activation, &instr->refs[0]);
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = g->group,
                          .member = push->number[activation->device], .bytes = form->bytes};
  envelope.words[0] = (uint64_t)activation->entered[instr->region];
  if (ax_pieces_for(push, party) == 1 && push->outer_rank == 0) {
    const char *piece = ax_piece_for(push, src, party, 0) + form->range.begin * push->item;
    return lends ? ax_lent_send(&r->lent[activation->device], r, party->process, &envelope, piece)
                 : ax_remote_send(r, party->process, &envelope, piece);
  }
  char *payload;
  AX_TRY(ax_pieces_gather(push, src, party, &payload));
  return ax_remote_send_owned(r, party->process, &envelope, payload);
}

/* The process of the first device that is this member sends for it.

   An operand that no other device writes is lent. If others may write it, they do so only when they know that this device has
   pushed: from its own signal, which then waits until the operand has been read, or from whoever needs what it has pushed. So it can be
   lent to one process, but not to two, of which one would be done while the other still reads. */
static ax_status send_alone(ax_remote *r, const ax_crossing_group *g, const ax_activation *activation) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  const uint32_t number = push->number[activation->device], count = ax_crossing_parties(g);
  if (g->only != AX_NONE) return send_to(r, g, activation, g->only, true);
  if (!ax_device_is_here(r->run->compiled->map, crossing->first[g->group * crossing->members + number])) return AX_OK;
  uint32_t first = next_alone(g, 0, number), next;
  for (uint32_t i = first; i < count; i = next) {
    next = next_alone(g, i + 1, number);
    AX_TRY(send_to(r, g, activation, i, push->lends || (i == first && next == count)));
  }
  return AX_OK;
}

/* With those of others. The groups' lock is held. */
static ax_status send_with_others(ax_remote *r, ax_crossing_group *g, const ax_activation *activation) {
  const uint32_t number = g->instr->push->number[activation->device];
  const uint64_t round = (uint64_t)activation->entered[g->instr->region];
  const char *src = ax_address(activation, &g->instr->refs[0]);
  for (uint32_t i = 0; g->coalesced.messages > 0 && i < ax_crossing_parties(g); i++)
    if (g->coalesced.forms[i].most > 0) AX_TRY(ax_coalesced_add(r, &g->coalesced, i, number, round, src));
  return AX_OK;
}

ax_status ax_crossing_flush(ax_remote *r) {
  ax_status status = AX_OK;
  ax_remote_lock(r);
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups && status == AX_OK && atomic_load(&r->held_back) > 0; i++)
    status = ax_coalesced_flush(r, &r->groups[i].coalesced);
  ax_remote_unlock(r);
  return status;
}

/* --- Rounds: with the groups' lock held --- */

/* Others only read it. */
static void count_open(ax_remote *r, int more) {
  const uint32_t open = atomic_load_explicit(&r->open, memory_order_relaxed) + (uint32_t)more;
  atomic_store_explicit(&r->open, open, memory_order_release);
}

/* Opens the round for the first member that comes. Later ones find it open, or already closed again. */
static ax_status open_round(ax_remote *r, ax_crossing_group *g, const ax_activation *activation, uint64_t round) {
  const uint32_t loops = r->run->compiled->loop_count + 1;
  if (round <= g->latest) return AX_OK;
  g->latest = round;
  if (g->ghosts == 0) return AX_OK;
  const uint32_t members = g->instr->push->members;
  const size_t bytes = sizeof(ax_open_round) + loops * sizeof(int64_t) + members;
  ax_open_round *one = g->spare != NULL ? g->spare : ax_calloc(1, bytes);
  if (one == NULL) return ax_out_of_memory(bytes);
  g->spare = NULL;
  one->next = g->rounds;
  one->round = round;
  one->totals = g->split ? ax_crossing_parties(g) - 1 : 0;
  one->missing = g->ghosts + (g->split ? one->totals + 1 : 0);
  one->added = false;
  one->view = *activation;
  memcpy(one->iteration, activation->iteration, loops * sizeof one->iteration[0]);
  one->view.iteration = one->iteration;
  one->put = (bool *)(one->iteration + loops);
  memset(one->put, 0, members);
  g->rounds = one;
  count_open(r, 1);
  return AX_OK;
}

static void close_round(ax_remote *r, ax_crossing_group *g, ax_open_round *one) {
  if (--one->missing > 0) return;
  count_open(r, -1);
  ax_open_round **link = &g->rounds;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  if (g->spare == NULL) g->spare = one;
  else free_round(one);
}

/* --- Totals of split sums --- */

static char *total_at(const ax_open_round *round, const ax_crossing_group *g, ax_elems share) {
  return (char *)ax_address(&round->view, &g->instr->refs[1]) + share.begin * g->instr->push->out_item;
}
static size_t total_bytes(const ax_crossing_group *g, ax_elems share) {
  return (size_t)((share.end - share.begin) * g->instr->push->out_item);
}

/* Sends the total of this process to the others. It is not written before the round is over. */
static ax_status send_total(ax_remote *r, const ax_crossing_group *g, ax_open_round *round) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  for (uint32_t i = crossing->begin[g->group]; i < crossing->begin[g->group + 1]; i++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = g->group, .words = {round->round, 1},
                            .member = (uint32_t)(g->own - crossing->parties), .bytes = total_bytes(g, g->share)};
    if (&crossing->parties[i] != g->own)
      AX_TRY(ax_lent_send(&round->lent, r, crossing->parties[i].process, &envelope, total_at(round, g, g->share)));
  }
  return AX_OK;
}

/* Whoever lent it waits until it is released, also where reading it has failed. */
static ax_status released(ax_remote *r, const ax_delivery *delivery, ax_status status) {
  ax_message_copy kept;
  if (status == AX_OK) return ax_remote_release(r, delivery);
  ax_message_keep(&kept);
  (void)!ax_remote_release(r, delivery);
  ax_message_put_back(&kept);
  return status;
}

static ax_status take_total(ax_remote *r, const ax_crossing_group *g, const ax_open_round *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  const ax_elems share = share_of(g, &push->crossing->parties[delivery->envelope.member]);
  char *into = total_at(round, g, share);
  if (delivery->address == 0) {
    if (delivery->payload != NULL) memcpy(into, delivery->payload, total_bytes(g, share));
    return AX_OK;
  }
  return released(r, delivery, ax_remote_read(r, delivery, 0, into, total_bytes(g, share)));
}

/* The groups' lock is held: if this process has added its share, and has all other totals, the last member's signal follows. */
static ax_status end_round(ax_remote *r, ax_crossing_group *g, ax_open_round *round) {
  if (!round->added || round->totals > 0) return AX_OK;
  ax_remote_unlock(r);
  ax_status status = ax_lent_settle(&round->lent, r);
  if (status == AX_OK) ax_scheduler_signal(r->run, g->counter, 1);
  ax_remote_lock(r);
  if (status == AX_OK) close_round(r, g, round);
  return status;
}

/* Members, or ghosts, have been put. last: of `count` that follow one another. */
static ax_status signal_put(ax_remote *r, ax_crossing_group *g, ax_open_round *round, uint32_t last, uint32_t count) {
  const bool is_total = g->split && last + 1 == g->instr->push->members;
  if (count > is_total) ax_scheduler_signal(r->run, g->counter, count - is_total);
  if (!is_total) return AX_OK;
  AX_TRY(send_total(r, g, round));
  ax_remote_lock(r);
  round->added = true;
  ax_status status = end_round(r, g, round);
  ax_remote_unlock(r);
  return status;
}

/* --- Ghosts --- */

/* One that came alone. */
static ax_status put_ghost(ax_remote *r, ax_crossing_group *g, ax_open_round *round, const ax_delivery *delivery) {
  const ax_push *push = g->instr->push;
  const uint32_t member = delivery->envelope.member;
  ax_contribution c = {.push = push, .own = g->own, .number = member, .src = delivery->payload, .range = g->share, .dense = true};
  if (ax_pieces_for(push, g->own) > 1) c.piece = ax_part_elems(push);
  if (delivery->address != 0) c.src = ax_remote_see(r, delivery);
  ax_status status = AX_OK;
  if (c.src != NULL || delivery->envelope.bytes == 0) ax_contribution_put(&c, &round->view, g->instr);
  else status = ax_contribution_read(r, &c, &round->view, g->instr, delivery);
  if (delivery->address != 0) status = released(r, delivery, status);
  return status == AX_OK ? signal_put(r, g, round, member, 1) : status;
}

/* How many contributions of a message may be put now: of a sum, those that follow one another. */
static uint32_t count_next(const ax_crossing_group *g, const ax_delivery *delivery) {
  const uint32_t left = (uint32_t)delivery->envelope.words[2], first = delivery->envelope.member;
  uint32_t count = 1;
  if (g->instr->push->exchange->combine == AX_SCALAR_NONE) return left;
  while (count < left && ax_coalesced_member(delivery, g->bytes, count) == first + count) count++;
  return count;
}

static ax_status put_next(ax_remote *r, ax_crossing_group *g, ax_open_round *round, const ax_delivery *delivery, uint32_t count) {
  const ax_push *push = g->instr->push;
  ax_contribution c = {.push = push, .own = g->own, .range = g->share, .dense = true};
  if (ax_pieces_for(push, g->own) > 1) c.piece = ax_part_elems(push);
  for (uint32_t i = 0; i < count; i++) {
    c.number = ax_coalesced_member(delivery, g->bytes, i);
    c.src = ax_coalesced_at(delivery, g->bytes, i);
    ax_contribution_put(&c, &round->view, g->instr);
  }
  return signal_put(r, g, round, c.number, count);
}

/* The lock is held again: `count` contributions have been put. */
static void note_put(ax_remote *r, ax_crossing_group *g, ax_open_round *round, const ax_delivery *delivery, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    round->put[ax_is_coalesced(delivery) ? ax_coalesced_member(delivery, g->bytes, i) : delivery->envelope.member] = true;
  round->missing -= count - 1;
  close_round(r, g, round);
}

/* The functions below do what has to be done with a message, which they consume. The lock is held, and released for a while. */

static ax_status put_total(ax_remote *r, ax_crossing_group *g, ax_open_round *round, ax_delivery *delivery) {
  ax_remote_unlock(r);
  ax_status status = take_total(r, g, round, delivery);
  ax_delivery_free(delivery);
  ax_remote_lock(r);
  if (status != AX_OK) return status;
  round->missing--;
  round->totals--;
  return end_round(r, g, round);
}

/* What cannot be put yet waits again. */
static ax_status put_contributions(ax_remote *r, ax_crossing_group *g, ax_open_round *round, ax_delivery *delivery) {
  const bool coalesced = ax_is_coalesced(delivery);
  ax_remote_unlock(r);
  const uint32_t count = coalesced ? count_next(g, delivery) : 1;
  ax_status status = coalesced ? put_next(r, g, round, delivery, count) : put_ghost(r, g, round, delivery);
  ax_remote_lock(r);
  if (status == AX_OK) note_put(r, g, round, delivery, count);
  if (status == AX_OK && coalesced && ax_coalesced_advance(delivery, g->bytes, count)) ax_crossing_wait(g, delivery);
  else ax_delivery_free(delivery);
  return status;
}

static ax_status fetch(ax_remote *r, ax_delivery *delivery) {
  ax_remote_unlock(r);
  ax_status status = ax_remote_fetch(r, delivery);
  ax_remote_lock(r);
  return status;
}

/* Puts all contributions whose time has come. The lock is held, and released. */
static ax_status put_ready_locked(ax_remote *r, ax_crossing_group *g) {
  ax_status status = AX_OK;
  ax_open_round *round = NULL;
  for (ax_delivery *one; status == AX_OK && (one = ax_crossing_take_ready(r->run, g, &round)) != NULL;)
    status = ax_has_to_be_fetched(one) ? fetch(r, one) : ax_is_total(one) ? put_total(r, g, round, one) : put_contributions(r, g, round, one);
  ax_remote_unlock(r);
  return status;
}

/* The same. Who adds a contribution counts it before it looks whether its time has come; who lets it come looks here afterwards. */
static ax_status put_ready(ax_remote *r, ax_crossing_group *g) {
  if (atomic_load(&g->waiting_count) == 0) return AX_OK;
  ax_remote_lock(r);
  return put_ready_locked(r, g);
}

/* The group that a message is for. NULL: it names none, or is not as long as it must be, so that process runs something else. */
static ax_crossing_group *group_named(ax_remote *r, const ax_delivery *delivery) {
  const ax_envelope *envelope = &delivery->envelope;
  const ax_push *push = envelope->place < r->push_count ? r->pushes[envelope->place] : NULL;
  if (push == NULL || envelope->group >= push->crossing->groups || push->crossing->index[envelope->group] == AX_NONE) return NULL;
  const ax_crossing *crossing = push->crossing;
  const uint32_t group = envelope->group;
  ax_crossing_group *g = &r->groups[push->crossing_first + crossing->index[group]];
  if (ax_party_of(crossing, group, delivery->from) == NULL) return NULL;
  if (ax_is_coalesced(delivery)) return ax_coalesced_is_right(delivery, g->bytes, push->members) ? g : NULL;
  if (envelope->words[1] == 0)
    return envelope->member < push->members && envelope->bytes == g->bytes ? g : NULL;
  if (!g->split || envelope->member < crossing->begin[group] || envelope->member >= crossing->begin[group + 1]) return NULL;
  return envelope->bytes == total_bytes(g, share_of(g, &crossing->parties[envelope->member])) ? g : NULL;
}

ax_status ax_crossing_take(ax_execution *run, ax_delivery *delivery) {
  ax_remote *r = run->remote;
  ax_crossing_group *g = group_named(r, delivery);
  if (g == NULL) {
    const uint32_t from = delivery->from;
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u sends what this program does not exchange", from);
  }
  ax_remote_lock(r);
  ax_crossing_wait(g, delivery);
  return put_ready_locked(r, g);
}

/* Code that combines wants operands that are aligned. Only a message of one line has its payload wherever its head ends. */
enum { alignment = 16, one_line = 64 };

static bool lies_well(const ax_push *push, const ax_delivery *delivery) {
  const bool is_copied = push->exchange->combine == AX_SCALAR_NONE && push->widen == NULL;
  return is_copied || (uintptr_t)delivery->payload % alignment == 0;
}

static ax_status put_aligned(ax_remote *r, ax_crossing_group *g, ax_open_round *round, const ax_delivery *delivery) {
  _Alignas(alignment) char aligned[one_line];
  ax_delivery here = *delivery;
  here.payload = memcpy(aligned, delivery->payload, delivery->envelope.bytes);
  return put_ghost(r, g, round, &here);
}

static ax_status put_here(ax_remote *r, ax_crossing_group *g, ax_open_round *round, const ax_delivery *delivery) {
  AX_TRY(ax_together_count(&r->together, delivery));
  AX_TRY(lies_well(g->instr->push, delivery) ? put_ghost(r, g, round, delivery) : put_aligned(r, g, round, delivery));
  note_put(r, g, round, delivery, 1);
  return put_ready(r, g);
}

bool ax_crossing_take_here(ax_execution *run, const ax_delivery *delivery) {
  ax_remote *r = run->remote;
  ax_open_round *round;
  const ax_push *push = delivery->envelope.place < r->push_count ? r->pushes[delivery->envelope.place] : NULL;
  if (push == NULL || ax_is_coalesced(delivery) || ax_is_total(delivery) || delivery->envelope.check != r->together.doing.check) return false;
  ax_crossing_group *g = group_named(r, delivery);
  if (g == NULL || g->split || !ax_crossing_may_be_put(run, g, delivery, &round)) return false;
  if (!lies_well(push, delivery) && delivery->envelope.bytes > one_line) return false;
  ax_status status = put_here(r, g, round, delivery);
  if (status != AX_OK) ax_scheduler_stop(run, status, ax_message());
  return true;
}

/* --- Members of this process --- */

static ax_open_round *round_of(ax_remote *r, const ax_crossing_group *g, uint64_t round) {
  ax_remote_lock(r);
  ax_open_round *one = ax_crossing_round(g, round);
  ax_remote_unlock(r);
  return one;
}

/* A device that has lent something waits until that is over. *parked: it does. */
static ax_status await_loans(ax_remote *r, ax_worker_slot *worker_slot, ax_activation *activation, uint32_t f, bool *parked) {
  if (r->lent[activation->device].count == 0) return AX_OK;
  activation->lending = true;
  AX_TRY(ax_lent_await(r, worker_slot, activation->device, f, parked));
  if (!*parked) activation->lending = false;
  return AX_OK;
}

/* last: of `count` members that follow one another. */
static ax_status signal_own(ax_remote *r, ax_crossing_group *g, uint64_t round, uint32_t last, uint32_t count) {
  AX_TRY(signal_put(r, g, g->split ? round_of(r, g, round) : NULL, last, count));
  return g->instr->push->exchange->combine != AX_SCALAR_NONE ? put_ready(r, g) : AX_OK;
}

static void put_own(const ax_crossing_group *g, ax_activation *activation) {
  const ax_push *push = g->instr->push;
  const char *src = ax_address(activation, &g->instr->refs[0]);
  const ax_contribution c = {.push = push, .own = g->own, .number = push->number[activation->device], .stride = push->exchange->src_stride,
                             .range = g->share, .piece = push->exchange->src_step, .src = src + g->share.begin * push->item};
  activation->sent = false;
  ax_contribution_put(&c, activation, g->instr);
}

/* Puts what the members behind this one have that are parked at this push, without a gap; they need not come here again. *first: a list
   of them, to be resumed. Returns how many. None if they may have to wait for what they have lent. */
static uint32_t put_followers(ax_execution *run, const ax_crossing_group *g, uint32_t number, uint64_t round, uint32_t *first) {
  const ax_push *push = g->instr->push;
  uint32_t count = 0, last = AX_NONE;
  if (push->exchange->combine == AX_SCALAR_NONE || g->lends) return 0;
  for (; number + count + 1 < push->members; count++) {
    const uint32_t f = ax_scheduler_unpark(run, g->counter, (round - 1) * push->members + number + count + 1);
    if (f == AX_NONE) break;
    put_own(g, &run->activations[f]);
    run->activations[f].pc++; /* past the push */
    if (last == AX_NONE) *first = f;
    else run->parking[last].next = f;
    last = f;
  }
  if (last != AX_NONE) run->parking[*first].last = last;
  return count;
}

/* Puts what this member has, whose turn has come, and what those behind it have. */
static ax_status put_together(ax_execution *run, ax_crossing_group *g, ax_activation *activation, uint32_t number, uint64_t round) {
  uint32_t first = AX_NONE;
  put_own(g, activation);
  const uint32_t more = put_followers(run, g, number, round, &first);
  ax_status status = signal_own(run->remote, g, round, number + more, 1 + more);
  ax_scheduler_resume(run, first);
  return status;
}

/* Opens the round, and sends to other processes. */
static ax_status begin_push(ax_remote *r, ax_crossing_group *g, ax_activation *activation, uint64_t round) {
  activation->sent = true; /* it may come here again, when its turn has come */
  ax_remote_lock(r);
  ax_status status = open_round(r, g, activation, round);
  if (status == AX_OK) status = send_with_others(r, g, activation);
  ax_remote_unlock(r);
  if (status == AX_OK) status = send_alone(r, g, activation);
  return status == AX_OK ? put_ready(r, g) : status;
}

/* The groups' lock is held. Returns false if the round is over but for the members here. */
static bool reserve(const ax_crossing_group *g, uint64_t round) {
  ax_open_round *open = ax_crossing_round(g, round);
  if (open != NULL) open->missing++;
  return open != NULL;
}

/* Leaves a copy of what this member has, whose turn has not come, so that it may go on: as a message from this process to itself. *left
   false: it has to wait for its turn. An operand that others may write once this one has pushed is not lent meanwhile. */
static ax_status leave_copy(ax_remote *r, ax_crossing_group *g, ax_activation *activation, uint64_t round, bool *left) {
  const ax_push *push = g->instr->push;
  const ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = push->exchange->id, .group = g->group, .bytes = g->bytes,
                                .member = push->number[activation->device], .words = {round}};
  ax_delivery *copy;
  *left = g->leaves && (push->lends || r->lent[activation->device].count == 0);
  if (!*left) return AX_OK;
  ax_remote_lock(r);
  *left = reserve(g, round);
  ax_remote_unlock(r);
  if (!*left) return AX_OK;
  AX_TRY(ax_delivery_make(&envelope, g->own->process, true, NULL, &copy));
  ax_pieces_write(push, ax_address(activation, &g->instr->refs[0]), g->own, g->share, copy->payload);
  activation->sent = false;
  ax_remote_lock(r);
  ax_crossing_wait(g, copy);
  return put_ready_locked(r, g);
}

/* Waits until it is the turn of a member, or leaves a copy. */
static ax_status await_turn(ax_execution *run, ax_worker_slot *worker_slot, ax_crossing_group *g, ax_activation *activation, uint32_t f,
                            uint64_t round, bool *parked, bool *left) {
  const ax_push *push = g->instr->push;
  const uint64_t turn = (round - 1) * push->members + push->number[activation->device];
  if (atomic_load_explicit(&run->counters[g->counter].count, memory_order_acquire) >= turn) return AX_OK;
  AX_TRY(leave_copy(run->remote, g, activation, round, left));
  if (!*left) *parked = !ax_scheduler_await(run, worker_slot, f, g->counter, turn, false);
  return AX_OK;
}

ax_status ax_crossing_push(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                           uint32_t f, bool *parked) {
  const ax_push *push = instr->push;
  ax_remote *r = run->remote;
  ax_crossing_group *g = group_of(r, activation, instr);
  const uint32_t number = push->number[activation->device];
  const uint64_t round = (uint64_t)activation->entered[instr->region];
  bool left = false;
  *parked = false;
  if (activation->lending) { /* it has been parked until its loans were settled */
    activation->lending = false;
    return push->lends ? AX_OK : signal_own(r, g, round, number, 1);
  }
  if (!activation->sent) AX_TRY(begin_push(r, g, activation, round));
  if (push->exchange->combine != AX_SCALAR_NONE) AX_TRY(await_turn(run, worker_slot, g, activation, f, round, parked, &left));
  if (*parked) return AX_OK;
  if (left) return await_loans(r, worker_slot, activation, f, parked);
  if (!g->lends) return put_together(run, g, activation, number, round);
  put_own(g, activation);
  if (push->lends) AX_TRY(signal_own(r, g, round, number, 1));
  AX_TRY(await_loans(r, worker_slot, activation, f, parked));
  return push->lends || *parked ? AX_OK : signal_own(r, g, round, number, 1);
}
