/* See processor.h. The system moves a thread at once if its processor is no longer among those allowed. */
#include "machine/processor.h"

#include <unistd.h>

uint32_t ax_processor_count(void) {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}

#ifdef __linux__
#include <sched.h>

int ax_processor(void) { return sched_getcpu(); }

/* The C library's fixed set holds 1,024 processors. With more of them the call fails, and the thread stays. */
void ax_processor_leave(int processor) {
  cpu_set_t all, others;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getcpu() != processor) return;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  (void)sched_setaffinity(0, sizeof all, &all);
}

#else

int ax_processor(void) { return AX_NO_PROCESSOR; }
void ax_processor_leave(int processor) { (void)processor; }

#endif
