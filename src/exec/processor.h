/* Which processor a thread runs on, and going to another.

   On a busy machine the system wakes a helper where whoever woke it runs, for want of an idle processor, and leaves both there for
   long: they then take turns, and two threads are slower than one. Helpers therefore go elsewhere when they find themselves on the
   processor of the thread they help. */
#ifndef AX_EXEC_PROCESSOR_H
#define AX_EXEC_PROCESSOR_H

enum { AX_NO_PROCESSOR = -1 };

/* AX_NO_PROCESSOR: the system does not say. Takes a few nanoseconds. */
int ax_processor(void);
/* If this thread runs on that processor, and may run on others: it goes to one of those, where it shares with whoever runs there,
   and may run on all as before. Takes tens of microseconds then. */
void ax_processor_leave(int processor);

#endif
