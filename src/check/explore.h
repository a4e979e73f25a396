/* All schedules of a system of agents, by going through its states.

   The system is abstract: a kernel on the machine, or lists of acts (script.h). */
#ifndef AX_CHECK_EXPLORE_H
#define AX_CHECK_EXPLORE_H

#include "check/finding.h"
#include "check/prove.h"

/* States are the system's own. One thread. What `peek` gives is valid until the next call; its touches are in `touches`. */
typedef struct ax_system {
  void *context;
  const ax_act_objects *objects; /* may grow while it is explored */
  const ax_touches *touches;
  AX_MUST_USE ax_status (*create)(void *context, void **state); /* the first state */
  AX_MUST_USE ax_status (*clone)(void *context, const void *state, void **out);
  void (*release)(void *context, void *state); /* NULL: nothing */
  /* Agents so far. */
  uint32_t (*agents)(void *context, const void *state);
  /* Its next act; computes silently up to it. NONE when it is through, or not started. */
  AX_MUST_USE ax_status (*peek)(void *context, void *state, uint32_t agent, ax_act *act, bool *enabled);
  /* Does its next act, which is enabled. *fault, which is NONE before: the act's fault. */
  AX_MUST_USE ax_status (*step)(void *context, void *state, uint32_t agent, ax_act_fault *fault);
  /* Equal states have equal hashes: agents' places and values, memory, semaphores, barriers. */
  void (*hash)(void *context, const void *state, uint64_t out[2]);
  /* Of a system with agents that are alike, where any of them may take the place of any other in any state, to the same end: equal
     states may differ in who of them is where. Whether there are others like the agent; and a hash that tells it from all agents of
     the state but those that are like it and stand where it does. NULL: no agents are alike. */
  bool (*has_like)(void *context, uint32_t agent);
  uint64_t (*hash_agent)(void *context, const void *state, uint32_t agent);
  uint64_t (*outcome)(void *context, const void *state);                      /* of a final state: the results alone */
  bool (*rounded)(void *context, const void *state, const void *other);       /* whether such differ as floats do whose additions
                                                                                 are in another order; NULL: never */
  /* Makes the state at the end of a run, for `rounded`: it knows how large the terms of its sums were. NULL: any state does. */
  AX_MUST_USE ax_status (*weigh)(void *context, const ax_interleaving *run, void **state);
  int64_t (*semaphore)(void *context, const void *state, uint32_t semaphore); /* its count */
  int64_t (*arrivals)(void *context, const void *state, uint32_t barrier);    /* at it, in all phases */
  size_t (*bytes)(void *context, const void *state);                          /* of memory that a state takes */
} ax_system;

/* Runs the system: by the schedule first (NULL: none), then, if it is to finish, agents in turn, until none can go on or, as they
   read counts, they go round in circles. The record is filled in; its strings are the system's. AX_INVALID_ARGUMENT: an agent of
   the schedule cannot go on, or the run has no end within `most_steps` (0: 2^24). */
AX_MUST_USE ax_status ax_system_record(const ax_system *system, const ax_interleaving *schedule, bool finish, uint64_t most_steps,
                                       ax_act_record *out);

/* Gives the number of the schedule's steps that can be done: all, or those before an agent that cannot go on. After a race a run
   may differ from the one that the schedule was made of: an agent reads unset memory, and stops there. */
AX_MUST_USE ax_status ax_system_follow(const ax_system *system, const ax_interleaving *schedule, uint32_t *count);

typedef enum ax_explore_mode {
  AX_EXPLORE_ALL,    /* every interleaving; each state once */
  AX_EXPLORE_REDUCED /* acts that commute with all acts of others are done at once, in one order; explore.c proves that nothing is
                        missed */
} ax_explore_mode;

typedef struct ax_explore_options {
  ax_explore_mode mode;
  uint64_t most_states; /* 0: 10^7 */
  double most_seconds;  /* 0: no limit */
  bool
      results_suffice; /* some runs at random come first, with what is certain from each of them (prove.h). Once there are several results, the rest is looked at in part: as many
                           states as there were by then, ten times, and 50,000 more */
} ax_explore_options;

typedef struct ax_exploration {
  bool bounded; /* stopped at a limit: there may be more findings */
  uint64_t states, transitions, passes;
  size_t bytes;       /* at most, of states known and states on the way */
  size_t known_bytes; /* of these, of states known */
  double seconds;
  ax_act_findings findings; /* each kind at each place once; the first few */
  uint32_t kinds;           /* bit k: there are findings of kind k */
  ax_race_list races;       /* all of them */
  uint64_t *outcomes;       /* of runs that end well, sorted, each once */
  uint32_t outcome_count, outcome_capacity;
} ax_exploration;

AX_MUST_USE ax_status ax_explore(const ax_system *system, const ax_explore_options *options, ax_exploration *out);
void ax_exploration_deinit(ax_exploration *exploration);

#endif
