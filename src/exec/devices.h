/* On which devices a call runs: those that its committed arguments lie on, whose ids go into the results' layouts; else the first
   there are.

   A mesh numbers places. Which device stands at which is said by arrays (axle/sharding.h), and arrays that were put somewhere have
   to agree about it: a program runs on one list of devices. It changes names alone: devices share their memory, and nothing that a
   run does depends on their ids.

   A program without a mesh says nothing of devices: it takes arguments from any, is computed once, and its results are whole on
   each of these. */
#ifndef AX_EXEC_DEVICES_H
#define AX_EXEC_DEVICES_H

#include "exec/array.h"

/* How results lie, for arguments on these devices. */
typedef struct ax_assigned {
  struct ax_assigned *next;
  ax_layout *like; /* retained: of an argument on them; NULL: 0, 1, .. and nobody said so */
  ax_layout **made;   /* by the plan's results */
  ax_layout **passed; /* by the program's results, of those that are an argument which is to lie so; NULL for all others */
} ax_assigned;

/* That of an executable whose results are described: on devices 0, 1, .. */
AX_MUST_USE ax_status ax_assigned_init(ax_executable *executable);
void ax_assigned_deinit(ax_executable *executable);

/* How messages call an argument: adds to the text. NULL: "argument 3", and its name in the options. */
typedef struct ax_naming {
  void (*write)(ax_text *text, const void *context, uint32_t argument);
  const void *context;
} ax_naming;
void ax_argument_text(ax_text *text, const ax_executable *executable, const ax_naming *naming, uint32_t argument);

/* Arguments of the right types. AX_INVALID_ARGUMENT: committed ones lie on different devices, or on another number of them than the
   program's mesh has; the first of them and how many more. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_assigned_find(ax_executable *executable, ax_array *const *in, const char *who, const ax_naming *naming,
                                       const ax_assigned **out);

#endif
