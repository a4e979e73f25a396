/* A kernel as the checker sees it: the machine's states as a system (explore.h). */
#ifndef AX_CHECK_WATCH_H
#define AX_CHECK_WATCH_H

#include "check/explore.h"
#include "check/strands.h"
#include "kernel/machine/alike.h"

typedef struct ax_step_note { /* of a step of a run: where its core stood in its code */
  uint32_t pc;   /* AX_NONE: it is no core's, or the core has begun by it */
  bool more;     /* the core stands there still */
} ax_step_note;

typedef struct ax_watch {
  ax_machine *machine;
  ax_alike alike; /* none at first */
  ax_tensor *const *in; /* as of ax_state_create; borrowed */
  ax_act_objects objects; /* all objects; each number of a semaphore or barrier is in both lists */
  ax_arena names;
  ax_touches last; /* by the act peeked at last */
  bool notes_steps;
  ax_step_note *notes; /* of all steps that were done while notes_steps was set */
  uint32_t note_count, note_capacity;
  bool labels_steps;      /* the kernel's grid is cut into strands */
  ax_point_label *labels; /* of the same steps, if so */
  uint32_t label_capacity;
} ax_watch;

AX_MUST_USE ax_status ax_watch_init(ax_watch *watch, ax_machine *machine, ax_tensor *const *in);
/* The core that started a copy; the core itself; AX_NONE: of beginnings and ends of devices. */
uint32_t ax_watch_core(const ax_watch *watch, uint32_t agent);
/* Whether the agent is the end of a device. */
bool ax_watch_is_end(const ax_watch *watch, uint32_t agent);
void ax_watch_deinit(ax_watch *watch);
/* From now on states that differ in who of several cores that do the same is where are one. All states must be gone. */
AX_MUST_USE ax_status ax_watch_join_alike(ax_watch *watch);
/* Devices moved on by one, all the way round: cores of the next device take the places of this one's (ax_proof_options.symmetry). NULL:
   there is no memory. ax_free. */
uint32_t *ax_watch_rotation(const ax_watch *watch);
/* Lives as long as the watch, which must not move. */
ax_system ax_watch_system(ax_watch *watch);

#endif
