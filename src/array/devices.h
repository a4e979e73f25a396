/* The devices that a call runs on: those of its committed arguments, or else the first ones. Their ids go into the results'
   layouts.

   A mesh numbers places, and an array says which device is at each place (axle/sharding.h). Committed arrays must agree about it,
   since a program runs on one list of devices. Devices are names here: all share one memory, and nothing that a run does depends on
   their ids.

   A program without a mesh names no devices. It takes arguments from any, is computed once, and its results are whole on each of
   the call's devices. */
#ifndef AX_ARRAY_DEVICES_H
#define AX_ARRAY_DEVICES_H

#include "array/array.h"

/* The layouts of results, for arguments on these devices. */
typedef struct ax_assigned {
  struct ax_assigned *next;
  ax_layout *like; /* retained: the layout of an argument on them; NULL: devices 0, 1, .., and not committed */
  ax_layout **made;   /* by result of the plan */
  ax_layout **passed; /* by result of the program: the layout of one that is an argument and has to lie so; NULL for all others */
} ax_assigned;

/* Initialises that of an executable whose results are described, for devices 0, 1, .. */
AX_MUST_USE ax_status ax_assigned_init(ax_executable *executable);
void ax_assigned_deinit(ax_executable *executable);

/* Adds the name of an argument to a message. NULL: "argument 3", and its name in the options. */
typedef struct ax_naming {
  void (*write)(ax_text *text, const void *context, uint32_t argument);
  const void *context;
} ax_naming;
void ax_argument_text(ax_text *text, const ax_executable *executable, const ax_naming *naming, uint32_t argument);

/* Finds the layouts for arguments of the right types. AX_INVALID_ARGUMENT: committed ones lie on different devices, or on
   another number of devices than the program's mesh has; the message names the first and counts the others. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_assigned_find(ax_executable *executable, ax_array *const *in, const char *who, const ax_naming *naming,
                                       const ax_assigned **out);

#endif
