/* All schedules of a system of agents, by going through its states.

   The system is abstract: a kernel on the machine, or lists of acts. Two ways to go through it:

     AX_EXPLORE_ALL       every interleaving; each state once
     AX_EXPLORE_REDUCED   acts that commute with all that others can do are done at once, in one order (explore.c says why nothing is
                          missed) */
#ifndef AX_KERNEL_EXPLORE_H
#define AX_KERNEL_EXPLORE_H

#include "kernel/act.h"

/* States are the system's own. One thread. Acts given by `peek` are valid until the next `peek` of any state; their touches are in
   `touches`. */
typedef struct ax_system {
  void *context;
  const ax_act_objects *objects; /* may grow while it is explored */
  const ax_touches *touches;
  AX_MUST_USE ax_status (*create)(void *context, void **state); /* the first state */
  AX_MUST_USE ax_status (*clone)(void *context, const void *state, void **out);
  void (*release)(void *context, void *state);
  /* Agents so far: those that are not started yet have no acts (NONE, not enabled). */
  uint32_t (*agents)(void *context, const void *state);
  /* Its next act; computes silently up to it. NONE when it is through, or not started. */
  AX_MUST_USE ax_status (*peek)(void *context, void *state, uint32_t agent, ax_act *act, bool *enabled);
  /* Does its next act, which is enabled. A fault: what is wrong with the act. */
  AX_MUST_USE ax_status (*step)(void *context, void *state, uint32_t agent, ax_act_fault *fault);
  /* Equal states have equal hashes: where agents are and what they know, memory, semaphores, barriers. */
  void (*hash)(void *context, const void *state, uint64_t out[2]);
  uint64_t (*outcome)(void *context, const void *state);                      /* of a final state: the results alone */
  int64_t (*semaphore)(void *context, const void *state, uint32_t semaphore); /* its count */
  int64_t (*arrivals)(void *context, const void *state, uint32_t barrier);    /* at it, in all phases */
  size_t (*bytes)(void *context, const void *state);                          /* of memory that a state takes */
} ax_system;

#endif
