/* The messages of a collective, step by step: senders, receivers and sizes.

   A procedure has one chain of phases, or several that go on side by side. A phase is so many equal steps. In a step a member sends its
   messages, all of the same size, and is through when it has those that are for it; the next step begins then. Combining received
   data takes no time of its own.

     all-reduce by ring of n:    one phase of 2(n-1) steps: B/n bytes to the next member
     all-reduce by tree of 5:    1 > 0, 3 > 2;  2 > 0;  4 > 0;  and back:  0 > 4;  0 > 2;  0 > 1, 2 > 3        a phase each

   Most moves are the same for every member, which is what lets devices be folded (place.h): `ax_sim_procedure_keep` says what of it
   must stay. */
#ifndef AX_SIM_PROCEDURE_H
#define AX_SIM_PROCEDURE_H

#include "plan/plan.h"
#include "sim/place.h"

typedef enum ax_collective_kind {
  AX_COLLECTIVE_ALL_REDUCE,
  AX_COLLECTIVE_REDUCE_SCATTER,
  AX_COLLECTIVE_ALL_GATHER,
  AX_COLLECTIVE_ALL_TO_ALL,
  AX_COLLECTIVE_BROADCAST,
  AX_COLLECTIVE_PERMUTE
} ax_collective_kind;

typedef enum ax_sim_move {
  AX_MOVE_MEMBER, /* to the member `shift` further on, modulo their number */
  AX_MOVE_WINDING, /* to the next of the winding ring (place.h), or, with `shift` -1, to the one before */
  AX_MOVE_CYCLE,  /* to the member `shift` further on along one cycle of the group */
  AX_MOVE_APART,  /* `shift`, as digits, is added to those of the member, each modulo its own: all members but oneself are met */
  AX_MOVE_UP,     /* of a binomial tree around `root`, level `shift`: to the parent */
  AX_MOVE_DOWN,
  AX_MOVE_STAR,   /* from the root to the member `shift` further on */
  AX_MOVE_PAIRS,
  /* With processes (nodes), where a member is one of a process: */
  AX_MOVE_PROCESSES, /* as APART, from process to process: all others are met, each in the member of the same number there */
  AX_MOVE_TOTALS,    /* as PROCESSES, of the first member of each process alone */
  AX_MOVE_WITHIN,    /* as APART, within the process */
  AX_MOVE_FORTH,     /* the first member of process `shift` to that of the next */
  AX_MOVE_BACK,      /* .. to that of the one before */
  AX_MOVE_OUT,       /* the first member of each process to the others in it */
  AX_MOVE_SWITCH     /* to the switch and back, with all members at it: those of a node, or, with `shift` 1, one of each node */
} ax_sim_move;

typedef struct ax_sim_phase {
  ax_sim_move move;
  uint32_t cycle;
  bool varied;    /* each step shifts by one more */
  int64_t shift;
  int64_t repeat; /* steps */
  int64_t fan;    /* messages that a sender sends in a step, each shifted by one more */
  double bytes;   /* of a message: a whole number */
  /* SWITCH: what comes back; how many times as long the links take as bytes alone would; switches on the way up */
  double back, slower;
  int64_t depth;
  int64_t key;    /* counts steps of the phases before it, where senders differ from step to step: of messages that come early */
} ax_sim_phase;

typedef struct ax_sim_chain {
  uint32_t phase_count, phase_capacity;
  ax_sim_phase *phases; /* on the heap */
  int64_t keys;
} ax_sim_chain;

/* What switches do for a collective: for sums, and for copies to all, how many times as long links take as they do for other bytes.
   0: they do not do it. */
typedef struct ax_sim_switches {
  double sums, copies;
  int64_t radix; /* 0: all members are at one switch */
  double before, latency, bandwidth; /* of a device's messages there: seconds before they go, and then; bytes a second, if all devices send */
} ax_sim_switches;

enum { AX_MAX_CHAINS = 2 * AX_MAX_SIDES };
typedef struct ax_sim_procedure {
  ax_collective_kind kind;
  ax_algorithm algorithm;
  ax_sim_group group;
  int64_t per_process; /* devices of a node, which is a process; 0: the machine has no nodes */
  int64_t per_switch;  /* devices with a switch in common, before the network between nodes; 0: all have */
  ax_sim_switches inside, between; /* the switches of a node, or of all; those between nodes */
  double bytes;  /* of a member's operand */
  int64_t root;
  const int64_t *source, *target; /* PERMUTE: by member; -1: none. Borrowed */
  uint32_t chain_count;
  ax_sim_chain chains[AX_MAX_CHAINS];
} ax_sim_procedure;

/* Whether two collectives are the same, whatever algorithms they go by. */
bool ax_sim_procedure_same(const ax_sim_procedure *a, const ax_sim_procedure *b);
/* The shift, as digits, that leads from a member to another: what AX_MOVE_APART adds. */
int64_t ax_sim_group_apart(const ax_sim_group *group, int64_t from, int64_t to);

/* Whether a cycle of the group leads from process to process; the machine has processes. */
static inline bool ax_sim_procedure_crosses(const ax_sim_procedure *procedure, const ax_sim_cycle *cycle) {
  return cycle->stride >= procedure->per_process;
}
/* In how many processes the group is; 0: not equally in each, or there are none on this machine. */
int64_t ax_sim_procedure_processes(const ax_sim_procedure *procedure);
/* A chain over processes goes in so many blocks; bytes of block k. */
int64_t ax_sim_procedure_blocks(const ax_sim_procedure *procedure);
double ax_sim_procedure_block(const ax_sim_procedure *procedure, int64_t k);

/* Adds a phase that has steps and messages. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_chain_add(ax_sim_chain *chain, ax_sim_phase phase);
/* Doubling along a cycle, of parts of so many bytes: a scatter, or, back, a gather. ax_sim_levels: its steps, ceil(log2 n). */
AX_MUST_USE ax_status ax_sim_chain_double(ax_sim_chain *chain, uint32_t cycle, int64_t size, double part, bool back);
int64_t ax_sim_levels(int64_t members);
/* Makes the chains from kind, group, bytes and the other fields of the kind. False in *done: the algorithm cannot do this kind.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_procedure_make(ax_sim_procedure *procedure, ax_algorithm algorithm, bool *done);
void ax_sim_procedure_deinit(ax_sim_procedure *procedure);
/* Folds the place less, so that the procedure is the same for all devices of one image. */
void ax_sim_procedure_keep(const ax_sim_procedure *procedure, ax_sim_place *place);
/* Bytes that a device sends, the mean; and messages, the mean; of steps that are all the same those of a few, or, whole, all of them. */
double ax_sim_procedure_bytes(const ax_sim_procedure *procedure);
double ax_sim_procedure_work(const ax_sim_procedure *procedure, bool whole);
/* How long a procedure takes where all begin at once and links are idle, as if members did each step together. */
typedef struct ax_sim_alone {
  double seconds;
  double waiting;                  /* part of it: links carry no bytes */
  double busy[AX_MAX_LINK_KINDS];  /* by kind of link: seconds in which the busiest carries bytes */
} ax_sim_alone;
/* AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_procedure_estimate(const ax_sim_procedure *procedure, const ax_sim_place *place, ax_sim_alone *out);

/* In a step of the phase: how many messages a device sends and gets, and to whom number `k` of step `r` goes. */
int64_t ax_sim_procedure_sends(const ax_sim_procedure *procedure, const ax_sim_phase *phase, int64_t device);
int64_t ax_sim_procedure_receives(const ax_sim_procedure *procedure, const ax_sim_phase *phase, int64_t device);
int64_t ax_sim_procedure_target(const ax_sim_procedure *procedure, const ax_sim_phase *phase, int64_t r, int64_t k, int64_t device);

#endif
