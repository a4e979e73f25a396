/* See processor.h. The system moves a thread at once if its processor is no longer among those allowed. */
#include "machine/processor.h"

#ifdef __linux__
#include <sched.h>

#include "machine/processor_set.h"

int ax_processor(void) { return sched_getcpu(); }

void ax_processor_leave(int processor) {
  ax_processor_set all, others;
  if (processor < 0 || processor >= AX_MOST_PROCESSORS || sched_getcpu() != processor || !ax_processor_set_of_thread(&all)) return;
  others = all;
  others.words[processor / 64] &= ~((uint64_t)1 << processor % 64);
  if (ax_processor_set_count(&others) == 0 || !ax_processor_set_bind(&others)) return;
  (void)ax_processor_set_bind(&all);
}

void ax_processor_share(void) {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; /* of this thread */
  if (policy == SCHED_FIFO || policy == SCHED_RR) sched_yield();
}

#else

int ax_processor(void) { return AX_NO_PROCESSOR; }
void ax_processor_leave(int processor) { (void)processor; }
void ax_processor_share(void) {}

#endif
