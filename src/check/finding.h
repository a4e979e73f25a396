/* A finding of the checker, with the schedule that shows it. */
#ifndef AX_CHECK_FINDING_H
#define AX_CHECK_FINDING_H

#include "kernel/machine/act.h"

/* A schedule: the agent that does each step. Zero-initialise to start. */
typedef struct ax_interleaving {
  uint32_t *agents;
  uint32_t count, capacity;
} ax_interleaving;
AX_MUST_USE ax_status ax_interleaving_add(ax_interleaving *schedule, uint32_t agent);
/* Text: agents by number, in order; `7x3` is three steps of agent 7. *out: owned by the caller, ax_free. */
AX_MUST_USE ax_status ax_interleaving_print(const ax_interleaving *schedule, char **out);
/* Reads the text of ax_interleaving_print, and appends to `out`. AX_PARSE_ERROR: the text is no schedule; the message says
   where. */
AX_MUST_USE ax_status ax_interleaving_parse(const char *text, ax_interleaving *out);
void ax_interleaving_deinit(ax_interleaving *schedule);

/* A run, or its beginning: the acts that were done, and the next act of each agent that is not through. Borrowed. */
typedef struct ax_act_run {
  const ax_act_objects *objects;
  const ax_touches *touches;
  const ax_act_step *steps, *pending;
  uint32_t step_count, pending_count;
} ax_act_run;
ax_act_run ax_act_record_run(const ax_act_record *record);

typedef struct ax_act_finding {
  ax_finding_kind kind;
  uint32_t agent, position;       /* the agent, and the number of its act, from 0; AX_NONE: no agent */
  uint32_t other, other_position; /* the other of a race */
  uint32_t object;                /* a semaphore or barrier; of faults a region; AX_NONE */
  int64_t amount; /* BARRIER: the phase that is complete too early; 0: a phase is left half done. LEAK: the count. RESULTS: their
                     number */
  bool certain;   /* the schedule leads there even if other findings are races */
  bool reordered; /* it is about another order of the schedule's acts: the schedule does one of the two acts that race (orders.c) */
  bool at_least;  /* RESULTS, ROUNDING: not all was searched, but so many states */
  uint64_t searched;
  bool endless;   /* DEADLOCK: some agents can go on, but not to an end */
  ax_act_fault fault;
  ax_interleaving schedule; /* from the beginning to where it shows */
  char *text;           /* lines without the last newline; the first names the finding */
} ax_act_finding;

/* Makes a finding of this kind, without agents and objects, and certain. */
ax_act_finding ax_act_finding_of(ax_finding_kind kind);

typedef struct ax_act_findings {
  ax_act_finding *items;
  uint32_t count, capacity;
} ax_act_findings;
/* Appends; the list owns the finding's memory from now on, also on failure. */
AX_MUST_USE ax_status ax_act_findings_add(ax_act_findings *findings, ax_act_finding finding);
void ax_act_findings_deinit(ax_act_findings *findings);

/* Fills in `text`, of a finding whose schedule has led to the run. */
AX_MUST_USE ax_status ax_act_finding_explain(ax_act_finding *finding, const ax_act_run *run);

/* Bytes of a region: `scratch[0:2, 8:16]` where they are a block of it, else runs of bytes. */
void ax_act_region_print(const ax_act_region *region, const ax_bytes *runs, uint32_t count, ax_text *text);
/* An act in a few words: what it says of itself, or `wait free >= 2`. */
void ax_act_print(const ax_act_objects *objects, const ax_act *act, ax_text *text);

/* A run as a picture: a column for each agent, a row for each step, and where all stand at the end. Long runs are shortened in the
   middle; of many agents those are shown that the finding (NULL: none) is about, and those that do most. *out: ax_free. */
AX_MUST_USE ax_status ax_act_run_print(const ax_act_run *run, const ax_act_finding *finding, char **out);
/* The same as SVG. */
AX_MUST_USE ax_status ax_act_run_svg(const ax_act_run *run, const ax_act_finding *finding, char **out);

#endif
