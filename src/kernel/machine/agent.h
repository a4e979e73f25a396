/* The making of acts, for agent.c and agent_memory.c. */
#ifndef AX_KERNEL_MACHINE_AGENT_H
#define AX_KERNEL_MACHINE_AGENT_H

#include "ir/number.h"
#include "kernel/machine/state.h"

/* The next act of an agent, with the values that both peek and step need. */
typedef struct ax_about {
  ax_state *state;
  uint32_t agent;
  ax_actor *actor;
  const ax_core_code_step *step; /* of a core */
  ax_act act;
  ax_act_fault *fault;
} ax_about;

static inline ax_cell *ax_about_cell(const ax_about *a, uint32_t operand) { return a->actor->frame.slot[a->step->in[operand]]; }
static inline const ax_view *ax_about_view(const ax_about *a, uint32_t operand) { return &ax_about_cell(a, operand)->view; }

static inline int64_t ax_about_integer(const ax_about *a, uint32_t operand) {
  const ax_tensor *tensor = ax_about_cell(a, operand)->tensor;
  return ax_number_load(tensor->dtype, tensor->data, 0).i;
}

static inline const ax_state_place *ax_about_place_of(const ax_about *a, const ax_view *view) {
  return &a->state->places[view->region];
}

/* Whether there is such memory now; a fault where there is not. */
bool ax_about_usable(ax_about *a, const ax_view *view, const char *whose);
AX_MUST_USE ax_status ax_about_touch(ax_about *a, const ax_view *view, const unsigned char *mask, bool write);
/* Checks that the bytes that are read have been written; a fault where they have not. */
AX_MUST_USE ax_status ax_about_check_set(ax_about *a, const ax_view *view, const unsigned char *mask);

/* --- For the rules of steps (step.h) --- */

/* The same place of the core that the last operands mean. A core that there is not is a fault. */
AX_MUST_USE ax_status ax_about_away(ax_about *a, const ax_core_params *to, uint32_t *place);
/* The object that a view of rank 0 is of. to: of another core, as it says with the last operands; NULL: of this one. A fault where
   there is none. */
AX_MUST_USE ax_status ax_about_object(ax_about *a, const ax_view *at, const ax_core_params *to, uint32_t *out);
/* Another core's scope may not have begun, or be over: its semaphores are touched as its memory is. The own ones need no more than
   the order of the program. */
AX_MUST_USE ax_status ax_about_touch_object(ax_about *a, const ax_core_params *to, uint32_t object);
/* Gives the agent that is the core's `ordinal`-th copy, or its `ordinal`-th travelling signal. */
AX_MUST_USE ax_status ax_about_sent_agent(const ax_about *a, bool signal, uint32_t ordinal, uint32_t *out);
void ax_object_arrive(ax_state_object *barrier);
int64_t ax_view_bytes(const ax_view *view);
/* Whether the copy that the step starts stores a block of a result, of a kernel over a grid: its slot then begins anew. */
bool ax_copy_leaves_unset(const ax_machine *machine, const ax_core_code_step *step);

/* Accesses: loads, stores, and what both make. */
AX_MUST_USE ax_status ax_about_memory(ax_about *a);
AX_MUST_USE ax_status ax_do_memory(ax_about *a);
/* Stores that are not committed (commits.c): remembers the act's; looks for a fault of the copy that the step starts; forgets the
   bytes that one of the core's own copies, to `by`, writes over. */
AX_MUST_USE ax_status ax_about_stored(ax_about *a);
AX_MUST_USE ax_status ax_about_committed(ax_about *a);
AX_MUST_USE ax_status ax_about_overwritten(ax_about *a, const ax_view *by);
/* Adds the touches of a step that is part of an addition: they say so (sums.c). */
AX_MUST_USE ax_status ax_about_sum(ax_about *a);
/* What the step adds to the elements of its view; NULL: it is no sum. */
const ax_cell *ax_about_term(const ax_about *a);

#endif
