/* The processor that a thread runs on, and moving to another one. If no processor is idle, the system
   wakes a helper on the processor of the thread that woke it, and leaves both there for long. Then they take turns, and two threads
   are slower than one. So a helper that finds itself on the processor of the thread it helps moves to another. */
#ifndef AX_MACHINE_PROCESSOR_H
#define AX_MACHINE_PROCESSOR_H

#include "base/base.h"

enum { AX_NO_PROCESSOR = -1 };

/* The number of the processor; AX_NO_PROCESSOR: the system does not say. Takes a few nanoseconds. */
int ax_processor(void);
/* Moves this thread away from that processor, if it is there and may run elsewhere. Afterwards it may run on all processors as
   before. A move takes tens of microseconds. */
void ax_processor_leave(int processor);
/* Lets other threads of the same real-time priority run, if this one has such a priority. */
void ax_processor_share(void);

/* A turn of a loop that waits for another thread, the `turn`th. A thread of real-time priority lets others of the same have the
   processor now and then: what it waits for would get none otherwise. Another thread keeps it, since one that yields goes behind
   all others of a busy machine, and the system gives what is woken a processor anyway. */
static inline void ax_wait_turn(uint32_t turn) {
  if (turn % 64 == 63) ax_processor_share();
  else ax_relax();
}

#endif
