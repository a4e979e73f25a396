/* Calls that all processes make together, since they concern arrays or programs of which each has a part. A call may do nothing, or
   several things that have numbers of their own (processes/together.h): moves of arrays and a run. It ends the same in all
   processes, also where one fails, out of memory or for a wrong argument, before it comes to what the others are doing: then it
   takes part in that only to say so. */
#ifndef AX_ARRAY_JOINT_H
#define AX_ARRAY_JOINT_H

#include "array/array.h"
#include "processes/together.h"

typedef struct ax_joint {
  ax_processes *processes;       /* NULL: the call is this process's alone */
  ax_doing doing;                /* what is compared if the call does nothing else */
  uint64_t begun, runs, failures; /* as they were when it began */
} ax_joint;

/* Waits for runs that all processes make and that have been started, since calls are made in the order in which they are written.
   is_joint false, or one process: nothing is done. _enter does not wait: for these runs themselves. */
void ax_joint_enter(ax_joint *joint, ax_runtime *runtime, const ax_doing *doing);
void ax_joint_begin(ax_joint *joint, ax_runtime *runtime, bool is_joint, const ax_doing *doing);
/* Ends a call that does at most one thing, after which nothing fails; and a call that does several, and a run as the last. */
AX_MUST_USE ax_status ax_joint_end(const ax_joint *joint, ax_status status);
AX_MUST_USE ax_status ax_joint_end_run(const ax_joint *joint, ax_status status);

/* For descriptions: "f32[8,4] over (x=2), P(x)". */
void ax_layout_text(ax_text *text, const ax_layout *layout);

#endif
