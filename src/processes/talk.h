/* What processes do together by messages that each takes one after the other, on one thread: a move of an array, what each gives.

     begin      what this process sends at first
     take       a message that has come, with its payload; it may send more
     is_done    it has all that it waits for */
#ifndef AX_PROCESSES_TALK_H
#define AX_PROCESSES_TALK_H

#include "processes/together.h"

typedef struct ax_talk {
  ax_status (*begin)(ax_together *together, void *context);
  ax_status (*take)(ax_together *together, void *context, const ax_delivery *delivery);
  bool (*is_done)(const ax_together *together, const void *context);
  ax_status (*lacks)(const void *context); /* an error of what never comes: AX_DEADLOCK */
} ax_talk;

/* Does it, and ends the same in all processes. status: if this process has failed before, it only says so. */
AX_MUST_USE ax_status ax_talk_hold(const ax_talk *talk, ax_processes *processes, const ax_doing *doing, ax_status status,
                                   void *context);

#endif
