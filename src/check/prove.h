/* All schedules of a kernel from one run of it, where that is enough: prove.c says when, and why. */
#ifndef AX_CHECK_PROVE_H
#define AX_CHECK_PROVE_H

#include "check/finding.h"

typedef struct ax_race { /* two acts that may be next at the same time; `agent` is the lower number */
  uint32_t agent, position, other, other_position;
  bool scope; /* one of them begins or ends a scope */
} ax_race;

typedef struct ax_race_list { /* each once, in order */
  ax_race *items;
  uint32_t count, capacity;
} ax_race_list;
AX_MUST_USE ax_status ax_races_add(ax_race_list *races, ax_race race);
void ax_races_sort(ax_race_list *races);

typedef struct ax_proof_options {
  bool all_races; /* every pair of acts that race; else, where there are any, at least one pair for each byte they are about */
  bool first_suffices; /* the search ends with the first thing that fails, of which there may be more; its schedule is not made short */
  /* By agent that exists from the beginning: the agent whose place it takes when all move on by one (a ring turned by one device);
     agents that are started follow. Then one of each class is held. A permutation that is no symmetry of the record is not used.
     NULL: none. */
  const uint32_t *symmetry;
} ax_proof_options;

typedef struct ax_proof {
  bool proved;                  /* nothing is wrong in any order of the agents */
  bool confluent;               /* this one run decides all; `why_not` otherwise */
  bool complete;                /* the run went on as far as it could */
  bool symmetric;               /* the symmetry was used */
  uint32_t locks;               /* that it does not matter who takes first; 0: none had to be looked at */
  bool exact;                   /* as floats that are added within sections are not rounded */
  bool extremes;                /* as floats whose maximum or minimum is taken there are no NaN, nor zeros of both signs */
  char *why_not;                /* NULL, or the reasons why runs differ, a line each */
  ax_act_findings findings;     /* of races the first few */
  uint32_t kinds;               /* bit k: there are findings of kind k */
  ax_race_list races;           /* that were found, all of them */
  uint64_t pairs, holds, steps; /* conflicts looked at; acts held; acts played */
  double seconds;
} ax_proof;

/* `options` NULL: none of them. AX_INVALID_ARGUMENT: the record is not a run. */
AX_MUST_USE ax_status ax_prove(const ax_act_record *record, const ax_proof_options *options, ax_proof *out);
void ax_proof_deinit(ax_proof *proof);

#endif
