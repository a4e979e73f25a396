/* Agents that do fixed lists of acts: a system without a kernel, to test the checker and to replay a record.

   Data are hashes: a written value depends on the writer and on all values that it has read before. So results differ when reads
   do. */
#ifndef AX_CHECK_SCRIPT_H
#define AX_CHECK_SCRIPT_H

#include "check/explore.h"

typedef struct ax_script_act {
  ax_act act;    /* touches: of the script's pool */
  uint32_t skip; /* acts that are skipped after this one if the hash of the agent's reads is odd */
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
/* Makes the script of a record: the acts that its agents did, and would do next. */
AX_MUST_USE ax_status ax_script_of_record(const ax_act_record *record, ax_script *out);
/* The script must outlive it, unchanged. */
AX_MUST_USE ax_status ax_script_system(ax_script *script, ax_system *out);
void ax_script_deinit(ax_script *script);

#endif
