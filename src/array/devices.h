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

/* The layouts of a call's results, if its committed arguments are on certain devices. An executable has a list of them, which calls
   share. */
typedef struct ax_assigned {
  struct ax_assigned *next;
  ax_layout *like;    /* retained: the layout of an argument on these devices; NULL: no argument is committed, or all are on devices
                         0, 1, .. */
  ax_layout **made;   /* by result of the plan */
  ax_layout **passed; /* by result of the program, if it is an unchanged argument: the layout that it must have; NULL: any, or it is
                         made */
} ax_assigned;

/* Initialises the first entry, executable->assigned, for devices 0, 1, .. The executable's signature is complete. */
AX_MUST_USE ax_status ax_assigned_init(ax_executable *executable);
void ax_assigned_deinit(ax_executable *executable);

/* The caller's names of arguments, for messages: `write` adds one to the text. ax_argument_text with NULL adds "argument 3 (x)",
   with the name in the compile options. */
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
