/* Groups of exchanges that cross processes, in a run. For crossing.c and crossing_reports.c. */
#ifndef AX_RUN_CROSSING_GROUP_H
#define AX_RUN_CROSSING_GROUP_H

#include "run/coalesced.h"
#include "run/lent.h"

/* A round that is open: results may be written. */
typedef struct ax_open_round {
  struct ax_open_round *next;
  uint64_t round;
  uint32_t missing;    /* ghosts whose contributions have not been put, and members here who have left theirs; of a split sum, totals too,
                          and one for this process */
  uint32_t totals;     /* of them, totals of other processes */
  bool added;          /* this process has added its share */
  ax_lent lent;        /* its total */
  ax_activation view;  /* the member that opened it, as it was: it may have gone on since */
  bool *put;           /* by member: it is a ghost, or has left a copy, and its contribution has been put */
  int64_t iteration[];
} ax_open_round;

typedef struct ax_crossing_group {
  const ax_instr *instr; /* the push */
  uint32_t group;
  uint32_t ghosts;       /* members elsewhere that push something into what this process has */
  uint32_t counter;      /* that the members signal */
  bool split;
  const ax_party *own;   /* the members here */
  ax_elems share;        /* of the elements: what is put here of each contribution */
  size_t bytes;          /* of that */
  uint64_t latest;       /* round that was opened last */
  ax_open_round *rounds;
  ax_open_round *spare;         /* one that is over, for the next; NULL: none */
  ax_coalesced coalesced;
  bool lends;            /* some contributions go alone, and may be lent */
  uint32_t only;         /* the only party to which the only member here sends its contribution alone; AX_NONE: there are several, or none */
  bool leaves;           /* a member here whose turn has not come leaves a copy, and goes on */
  ax_deliveries *waiting; /* by party: messages with contributions whose time has not come, in the order of rounds; those of rounds
                             that have been opened in any order */
  _Atomic uint32_t waiting_count;
  uint32_t to_fetch;     /* of these, payloads that have to be fetched */
  uint32_t left;         /* of these, copies that members here have left */
} ax_crossing_group;

static inline uint32_t ax_crossing_parties(const ax_crossing_group *g) {
  const ax_crossing *crossing = g->instr->push->crossing;
  return crossing->begin[g->group + 1] - crossing->begin[g->group];
}
static inline const ax_party *ax_crossing_party(const ax_crossing_group *g, uint32_t i) {
  const ax_crossing *crossing = g->instr->push->crossing;
  return &crossing->parties[crossing->begin[g->group] + i];
}
static inline bool ax_crossing_reaches(const ax_push *push, uint32_t member, const ax_party *party) {
  return ax_reaches(push->exchange, push->crossing, push->targets, member, party);
}
/* NULL: it is not open. The groups' lock is held. */
static inline ax_open_round *ax_crossing_round(const ax_crossing_group *g, uint64_t round) {
  ax_open_round *one = g->rounds;
  while (one != NULL && one->round != round) one = one->next;
  return one;
}
/* Whether a message has a payload that this process cannot read where it lies. */
static inline bool ax_has_to_be_fetched(const ax_delivery *delivery) { return ax_delivery_is_away(delivery) && delivery->address == 0; }
/* Whether a message is a total of a split sum. */
static inline bool ax_is_total(const ax_delivery *delivery) { return delivery->envelope.words[1] != 0; }

/* --- Contributions whose time has not come (crossing_waiting.c). The groups' lock is held --- */

/* Says whether a contribution may be put: its round is open, which becomes *round (NULL: it is not), and in a sum it is its turn. */
bool ax_crossing_may_be_put(const ax_execution *run, const ax_crossing_group *group, const ax_delivery *delivery, ax_open_round **round);
/* Keeps a message until it may be put. */
void ax_crossing_wait(ax_crossing_group *group, ax_delivery *delivery);
/* Takes a message of which something may be put, or a long one of an open round, which has to be fetched first. NULL: there is
   none. */
ax_delivery *ax_crossing_take_ready(const ax_execution *run, ax_crossing_group *group, ax_open_round **round);

#endif
