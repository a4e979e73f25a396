/* Something that all processes do together: a run, a move of arrays, or only to agree. Each has the same number of it
   (processes.h). Messages for it come on any thread that polls, and wait in an inbox until a thread that does it handles them.

     begin                      the number is known; messages come
     send, fetch, take, until   what is done
     end                        each says how it has ended, and waits until all have; it ends the same in all (ending.h)

   Processes may do different things at the same number, because their programs differ. Each message and each end carries a digest
   of what its sender does. If they differ, the first process and the first that does something else find the first line in which
   their descriptions differ, and it fails everywhere with both lines. */
#ifndef AX_PROCESSES_TOGETHER_H
#define AX_PROCESSES_TOGETHER_H

#include "base/base.h"
#include "processes/ending.h"
#include "processes/stall.h"

/* What a process does. Borrowed until the end. */
typedef struct ax_doing {
  uint64_t check; /* the digest; 0: it has failed before, so there is nothing to be compared */
  void (*describe)(const void *context, ax_text *text); /* in lines */
  const void *context;
  const char *what; /* for reports of waiting: "ax_run"; static; NULL: "a call" */
} ax_doing;

typedef struct ax_together {
  ax_receiver receiver;
  ax_ending ending;
  ax_stall stall;
  ax_doing doing;
  bool alone;                   /* only one thread sends; set by its owner after the begin */
  ax_delivery *_Atomic newest;  /* the inbox: what has come, last come first. The lock of the processes is held to put something there */
  struct ax_fetching *fetching; /* long payloads on their way here; guarded by the same lock */
  ax_delivery *text;            /* what another process does; only where it is compared with what this one does */
  ax_delivery *difference;      /* the message with both lines */
} ax_together;

AX_MUST_USE ax_status ax_together_init(ax_together *together, ax_processes *processes);
void ax_together_deinit(ax_together *together);
AX_MUST_USE ax_status ax_together_create(ax_processes *processes, ax_together **out);
void ax_together_destroy(ax_together *together); /* NULL is allowed */

/* Begins the next thing that this process does. It cannot fail, and must come before what can: all others begin it too. */
void ax_together_begin(ax_together *together, const ax_doing *doing);
/* Sends a message of it, as ax_processes_send. */
AX_MUST_USE ax_status ax_together_send(ax_together *together, uint32_t to, ax_envelope *envelope, const void *payload,
                                       ax_on_done *sent, void *context);
/* The same; the payload is memory of the caller's that is freed when it has been sent, and on failure. */
AX_MUST_USE ax_status ax_together_send_owned(ax_together *together, uint32_t to, ax_envelope *envelope, void *payload);
/* The same for a long payload that is lent. */
AX_MUST_USE ax_status ax_together_lend(ax_together *together, uint32_t to, ax_envelope *envelope, const void *payload,
                                       ax_loan *loan);
/* Fetches the long payload of a message, which belongs to it from here on. It comes to the inbox once more, with its payload. */
AX_MUST_USE ax_status ax_together_fetch(ax_together *together, ax_delivery *delivery);
/* Takes all messages out of the inbox, as a list, in the order in which they came. */
ax_delivery *ax_together_take(ax_together *together);
static inline bool ax_together_has_come(const ax_together *together) { return atomic_load(&together->newest) != NULL; }
/* AX_UNAVAILABLE: a process has released the runtime, and will never come to this. Nothing is being handled meanwhile; what waits in the
   inbox is heard first. */
AX_MUST_USE ax_status ax_together_check_released(ax_together *together);
/* Says whether a message that is counted is of what this process does too. AX_INVALID_ARGUMENT: it is not. */
AX_MUST_USE ax_status ax_together_count(ax_together *together, const ax_delivery *delivery);
/* Handles a message of another kind, which belongs to it from here on. */
AX_MUST_USE ax_status ax_together_handle(ax_together *together, ax_delivery *delivery);
/* No message waits in the inbox, and no long payload is on its way to it. */
bool ax_together_is_empty(ax_together *together);
/* Nothing can go on in this process until a message comes. Returns true if nothing ever will. */
bool ax_together_idle(ax_together *together);

/* A loop that waits. */
typedef struct ax_waiting {
  bool (*reached)(void *context);
  bool (*handle)(void *context); /* handles what is in the inbox; true: there was something */
  void *context;
  ax_stall_list *list; /* for reports: where it waits; NULL: for those that are not done */
} ax_waiting;
/* Tells others, after so many rounds of waiting, what is then worth a message: that this process is idle, how it has ended. */
AX_MUST_USE ax_status ax_together_tell(ax_together *together, uint32_t round);
enum { AX_TELL_AFTER = 512 }; /* rounds of waiting: only then is it worth a message */
enum { AX_AT_ONCE = 64 }; /* rounds of waiting without a pause */
/* Gives the processor to others more and more: other processes may be waiting for it. */
void ax_together_pause(uint32_t round);
/* For a round in which nothing has come: the wait may be long enough to be reported. */
void ax_together_look(ax_together *together, uint32_t round, ax_stall_list *list, void *context);
/* Reports those that are not done. */
void ax_together_list(ax_together *together, ax_stall_report *report);
/* Moves messages and handles them until it is reached. */
AX_MUST_USE ax_status ax_together_until(ax_together *together, const ax_waiting *waiting);
/* Ends it. status: how it has ended here, with a message. Gives how it has ended everywhere. `handle` as above. */
AX_MUST_USE ax_status ax_together_end(ax_together *together, ax_status status, bool (*handle)(void *context), void *context);

/* Does nothing but to end the same in all processes: as the first of them that fails. Also if some other process is at something
   that it does not do, since it has failed before: then that fails. */
AX_MUST_USE ax_status ax_agree(ax_processes *processes, const ax_doing *doing, ax_status status);
/* For other things that are no runs: gives the processes' spare, which no other thread has until it is given back. */
ax_together *ax_together_borrow(ax_processes *processes);
void ax_together_give_back(ax_processes *processes);

#endif
