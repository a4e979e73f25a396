/* Agents that do what is written down: a system without a kernel, to test the checker with, and to go through what a record says.

   Data are hashes: what is written follows from who writes, and from all that this agent has read before. So results differ when
   reads do. */
#ifndef AX_CHECK_SCRIPT_H
#define AX_CHECK_SCRIPT_H

#include "check/explore.h"

typedef struct ax_script_act {
  ax_act act;    /* touches: of the script's pool */
  uint32_t skip; /* acts that are left out after this one where what the agent has read is odd */
} ax_script_act;

typedef struct ax_script_agent {
  ax_script_act *acts;
  uint32_t count, capacity;
} ax_script_agent;

/* Zero-initialise to start; objects first, then acts. */
typedef struct ax_script {
  ax_act_objects objects;
  ax_touches touches;
  ax_script_agent *agents; /* as many as objects has */
  uint32_t agent_count, agent_capacity;
  uint64_t *first_word; /* by region: where its bytes are in a state; made by ax_script_system */
} ax_script;
AX_MUST_USE ax_status ax_script_add(ax_script *script, uint32_t agent, ax_act act, uint32_t skip);
/* What the agents of a record did, and would do next. */
AX_MUST_USE ax_status ax_script_of_record(const ax_act_record *record, ax_script *out);
/* The script must outlive it, unchanged. */
AX_MUST_USE ax_status ax_script_system(ax_script *script, ax_system *out);
void ax_script_deinit(ax_script *script);

#endif
