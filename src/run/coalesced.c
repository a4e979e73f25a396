#include "run/coalesced.h"

#include <string.h>

#include "processes/ways.h"

enum { most_contributions = AX_HOSTILE ? 3 : 1 << 16 }; /* hostile builds have several messages for few members */

typedef struct message {
  uint32_t expected;   /* contributions */
  uint32_t come, gone; /* those that it holds, and those that have been sent before all had come */
  uint32_t *member;    /* by place: the member whose contribution it holds; AX_NONE: it holds none */
  char *payload;       /* contributions, by place */
} message;

typedef struct ax_coalesced_round {
  struct ax_coalesced_round *next;
  uint64_t round;
  uint32_t left; /* messages of which something has not been sent */
  message messages[];
} ax_coalesced_round;

/* --- Forms --- */

/* Whether this process sends all its members to the party. Other processes may have some of them too. */
static bool sends_all(const ax_remote *r, const ax_coalesced *g, const ax_party *party) {
  const ax_crossing *crossing = g->push->crossing;
  for (uint32_t i = 0; i < g->own->count; i++) {
    const uint32_t member = crossing->held[g->own->first + i];
    if (!ax_device_is_here(r->run->compiled->map, crossing->first[g->group * crossing->members + member])) return false;
    if (ax_party_has(crossing, party, member)) return false;
  }
  return true;
}

static const ax_party *party_at(const ax_coalesced *g, uint32_t i) {
  const ax_crossing *crossing = g->push->crossing;
  return &crossing->parties[crossing->begin[g->group] + i];
}
static uint32_t party_count(const ax_coalesced *g) {
  const ax_crossing *crossing = g->push->crossing;
  return crossing->begin[g->group + 1] - crossing->begin[g->group];
}

static size_t payload_bytes(size_t bytes, uint64_t count) { return count * (bytes + sizeof(uint32_t)); }

void ax_coalesced_choose(const ax_remote *r, ax_coalesced *g, uint32_t i, ax_elems range, size_t bytes) {
  const ax_exchange *x = g->push->exchange;
  ax_coalesced_form *form = &g->forms[i];
  *form = (ax_coalesced_form){.bytes = bytes, .range = range, .first = g->messages};
  const uint32_t fit = ax_coalesced_most(bytes);
  if (x->peers == AX_PEERS_PAIRS || x->alone || g->own->count < 2 || fit == 0 || !sends_all(r, g, party_at(g, i))) return;
  form->most = fit < most_contributions ? fit : most_contributions;
  g->messages += (g->own->count + form->most - 1) / form->most;
  g->places += g->own->count;
  g->room += payload_bytes(bytes, g->own->count);
}

/* --- Rounds --- */

static ax_coalesced_round *find_round(const ax_coalesced *g, uint64_t round) {
  ax_coalesced_round *one = g->rounds;
  while (one != NULL && one->round != round) one = one->next;
  return one;
}

/* The messages to one party. */
static void divide(const ax_coalesced *g, const ax_coalesced_form *form, message *m, uint32_t *member, char *payload) {
  for (uint32_t at = 0; at < g->own->count; at += form->most, m++) {
    const uint32_t rest = g->own->count - at, expected = rest < form->most ? rest : form->most;
    *m = (message){.expected = expected, .member = member + at, .payload = payload + payload_bytes(form->bytes, at)};
  }
}

/* One block: the messages, the members by place, the payloads. */
static ax_coalesced_round *make_round(const ax_coalesced *g) {
  const size_t head = sizeof(ax_coalesced_round) + g->messages * sizeof(message), table = g->places * sizeof(uint32_t);
  ax_coalesced_round *one = ax_alloc(head + table + g->room);
  if (one == NULL) return NULL;
  uint32_t *member = (uint32_t *)((char *)one + head);
  char *payload = (char *)one + head + table;
  memset(member, 0xff, table);
  for (uint32_t i = 0; i < party_count(g); i++) {
    if (g->forms[i].most == 0) continue;
    divide(g, &g->forms[i], &one->messages[g->forms[i].first], member, payload);
    member += g->own->count;
    payload += payload_bytes(g->forms[i].bytes, g->own->count);
  }
  return one;
}

static ax_status open_round(ax_coalesced *g, uint64_t round, ax_coalesced_round **out) {
  ax_coalesced_round *one = *out = g->spare != NULL ? g->spare : make_round(g);
  if (one == NULL) return ax_out_of_memory(g->room);
  g->spare = NULL;
  for (uint32_t i = 0; i < g->messages; i++) one->messages[i].come = one->messages[i].gone = 0;
  one->next = g->rounds;
  one->round = round;
  one->left = g->messages;
  g->rounds = one;
  return AX_OK;
}

static void close_round(ax_coalesced *g, ax_coalesced_round *one) {
  ax_coalesced_round **link = &g->rounds;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  if (g->spare == NULL) g->spare = one;
  else ax_free(one);
}

void ax_coalesced_empty(ax_coalesced *g) {
  for (ax_coalesced_round *next; g->rounds != NULL; g->rounds = next) {
    next = g->rounds->next;
    ax_free(g->rounds);
  }
  ax_free(g->spare);
  g->spare = NULL;
}

/* --- Sending --- */

/* Moves the contributions together, and lists their members behind them. */
static void pack(message *m, size_t bytes) {
  uint32_t count = 0;
  for (uint32_t place = 0; count < m->come; place++) {
    if (m->member[place] == AX_NONE) continue;
    if (count != place) memmove(m->payload + count * bytes, m->payload + place * bytes, bytes);
    m->member[count++] = m->member[place];
  }
  memcpy(m->payload + count * bytes, m->member, count * sizeof m->member[0]);
}

static ax_status send(ax_remote *r, const ax_coalesced *g, uint32_t i, ax_coalesced_round *round, message *m) {
  pack(m, g->forms[i].bytes);
  const uint32_t count = m->come;
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .place = g->push->exchange->id, .group = g->group, .member = m->member[0],
                          .words = {round->round, 0, count}, .bytes = payload_bytes(g->forms[i].bytes, count)};
  memset(m->member, 0xff, m->expected * sizeof m->member[0]);
  m->come = 0;
  m->gone += count;
  round->left -= m->gone == m->expected;
  ax_status status = ax_remote_send(r, party_at(g, i)->process, &envelope, m->payload);
  atomic_fetch_sub(&r->held_back, count);
  return status;
}

/* The place of a member among those here. */
static uint32_t place_of(const ax_coalesced *g, uint32_t member) {
  const uint32_t *held = &g->push->crossing->held[g->own->first];
  uint32_t low = 0, high = g->own->count - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (held[middle] < member) low = middle + 1;
    else high = middle;
  }
  return low;
}

ax_status ax_coalesced_add(ax_remote *r, ax_coalesced *g, uint32_t i, uint32_t member, uint64_t round, const char *src) {
  const ax_coalesced_form *form = &g->forms[i];
  const uint32_t place = place_of(g, member), in_message = place % form->most;
  ax_coalesced_round *one = find_round(g, round);
  if (one == NULL) AX_TRY(open_round(g, round, &one));
  message *m = &one->messages[form->first + place / form->most];
  ax_pieces_write(g->push, src, party_at(g, i), form->range, m->payload + in_message * form->bytes);
  m->member[in_message] = member;
  m->come++;
  atomic_fetch_add(&r->held_back, 1);
  if (m->come + m->gone < m->expected) return AX_OK;
  ax_status status = send(r, g, i, one, m);
  if (one->left == 0) close_round(g, one);
  return status;
}

static ax_status flush_round(ax_remote *r, const ax_coalesced *g, ax_coalesced_round *round) {
  for (uint32_t i = 0; i < party_count(g); i++) {
    const ax_coalesced_form *form = &g->forms[i];
    const uint32_t count = form->most > 0 ? (g->own->count + form->most - 1) / form->most : 0;
    for (uint32_t k = form->first; k < form->first + count; k++)
      if (round->messages[k].come > 0) AX_TRY(send(r, g, i, round, &round->messages[k]));
  }
  return AX_OK;
}

/* What it holds lacks other contributions, so no round is over. */
ax_status ax_coalesced_flush(ax_remote *r, ax_coalesced *g) {
  for (ax_coalesced_round *one = g->rounds; one != NULL; one = one->next) AX_TRY(flush_round(r, g, one));
  return AX_OK;
}

/* --- What comes --- */

static uint32_t total(const ax_delivery *delivery, size_t bytes) {
  return (uint32_t)(delivery->envelope.bytes / payload_bytes(bytes, 1));
}
static uint32_t first_left(const ax_delivery *delivery, size_t bytes) {
  return total(delivery, bytes) - (uint32_t)delivery->envelope.words[2];
}

static uint32_t listed(const ax_delivery *delivery, size_t bytes, uint32_t place) {
  uint32_t member;
  memcpy(&member, (const char *)delivery->payload + total(delivery, bytes) * bytes + place * sizeof member, sizeof member);
  return member;
}

bool ax_coalesced_is_right(const ax_delivery *delivery, size_t bytes, uint32_t members) {
  const ax_envelope *e = &delivery->envelope;
  if (e->words[2] > members || e->bytes != payload_bytes(bytes, e->words[2]) || ax_delivery_is_away(delivery)) return false;
  for (uint32_t k = 0; k < e->words[2]; k++)
    if (listed(delivery, bytes, k) >= members || (k > 0 && listed(delivery, bytes, k) <= listed(delivery, bytes, k - 1))) return false;
  return e->member == listed(delivery, bytes, 0);
}

uint32_t ax_coalesced_member(const ax_delivery *delivery, size_t bytes, uint32_t i) {
  return listed(delivery, bytes, first_left(delivery, bytes) + i);
}

const char *ax_coalesced_at(const ax_delivery *delivery, size_t bytes, uint32_t i) {
  return (const char *)delivery->payload + (first_left(delivery, bytes) + i) * bytes;
}

bool ax_coalesced_advance(ax_delivery *delivery, size_t bytes, uint32_t count) {
  delivery->envelope.words[2] -= count;
  if (delivery->envelope.words[2] == 0) return false;
  delivery->envelope.member = ax_coalesced_member(delivery, bytes, 0);
  return true;
}
