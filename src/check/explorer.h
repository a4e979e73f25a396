/* What a search of all schedules knows while it goes on: explore.c searches, explore_states.c looks at each state, and
   explore_findings.c keeps what is found. Where counts are read (assumed.reads), histories tell states apart. */
#ifndef AX_CHECK_EXPLORER_H
#define AX_CHECK_EXPLORER_H

#include "check/assumptions.h"
#include "check/ends.h"
#include "check/explore.h"
#include "check/history.h"
#include "check/known.h"
#include "check/orders.h"

typedef struct ax_explorer_choice {
  uint32_t agent;
  bool holds; /* the agent does not go on, and is held instead */
} ax_explorer_choice;

typedef struct ax_explorer_node {
  void *state;
  uint64_t hash[2];
  uint32_t held;               /* AX_NONE: nobody */
  uint32_t first, count, next; /* its choices, the last on the stack */
  uint32_t came;               /* whose step led here; AX_NONE: nobody's */
  ax_history before;           /* of `came`: before that step */
  size_t bytes;                /* of the state */
  bool alone;                  /* the one step is the only choice taken so far */
} ax_explorer_node;

typedef struct ax_next_act { /* of an agent */
  uint32_t agent;
  ax_act act; /* touches in the explorer's pool */
  bool enabled;
} ax_next_act;

typedef struct ax_explorer {
  const ax_system *s;
  const ax_explore_options *options;
  ax_exploration *out;
  ax_known_states known;
  ax_explorer_node *nodes;
  uint32_t depth, node_capacity;
  ax_explorer_choice *choices;
  uint32_t choice_count, choice_capacity;
  uint32_t *done; /* by agent: acts done on the way */
  uint32_t done_count, done_capacity, history_capacity;
  ax_next_act *acts; /* of the state that was entered last, of agents that are not through */
  uint32_t act_count, act_capacity;
  ax_touches pool;
  ax_assumptions assumed;
  ax_known_states told; /* findings, by what they are */
  uint32_t deadlocks;
  size_t way_bytes; /* of states on the way */
  double begin;
  ax_history *history; /* by agent, as `done` */
  ax_known_states runs; /* complete runs, by their histories */
  ax_orders orders;     /* what these come to in other orders */
  ax_interleaving other; /* to a second result */
  void *end;             /* a state with the first; NULL */
  ax_interleaving end_way; /* to it */
  bool beyond_rounding;  /* others differ from it by more than the order of additions */
  const ax_interleaving *scouted; /* to the state that is looked at, of a run at random; NULL: nodes are the way */
  uint64_t scout_steps;  /* that games of proofs of such runs have played */
  uint64_t second_at;    /* states, when a second result was found; 0: there is one */
  ax_ends ends;          /* where runs may go in circles: of this pass */
  bool circles;          /* they do */
  uint64_t first;        /* the first state's hash */
  bool stopped;          /* at a limit */
} ax_explorer;

static inline bool ax_explorer_notes_ends(const ax_explorer *e) { return e->circles || e->assumed.reads; }

/* --- explore_states.c --- */

/* Each agent's next act in a state; assumptions that one of them contradicts are dropped. */
AX_MUST_USE ax_status ax_explorer_peek(ax_explorer *e, void *state);
/* The same; races, misuse of barriers and copies that nobody awaits are told. */
AX_MUST_USE ax_status ax_explorer_look(ax_explorer *e, void *state);
/* The state that was looked at last, where nobody can go on. */
AX_MUST_USE ax_status ax_explorer_look_at_end(ax_explorer *e, void *state);
/* The results of a run that ended well. */
AX_MUST_USE ax_status ax_explorer_add_outcome(ax_explorer *e, const void *state);

/* --- explore_findings.c --- */

/* The steps to the present state. */
AX_MUST_USE ax_status ax_explorer_way(const ax_explorer *e, ax_interleaving *out);
/* Adds a finding that the present state shows, after a step of agent `last` (AX_NONE: none); *is_new: it was not told before. */
AX_MUST_USE ax_status ax_explorer_tell(ax_explorer *e, ax_act_finding finding, uint32_t last, bool *is_new);
/* What a run at random proves of others that begin like it. */
AX_MUST_USE ax_status ax_explorer_prove_scout(ax_explorer *e, const ax_interleaving *schedule);
/* What only the whole search shows, and the words of all findings. */
AX_MUST_USE ax_status ax_explorer_tell_whole(ax_explorer *e);

#endif
