/* Jobs that all processes do, each with a runtime: processes are threads of this one. */
#ifndef AX_TESTS_SUPPORT_JOBS_H
#define AX_TESTS_SUPPORT_JOBS_H

#include "support/processes.h"

typedef ax_status test_job(ax_runtime *runtime, const void *context);

/* Does a job in all processes. It must end the same in all. message: room for 8192 bytes; NULL: it is printed. */
ax_status test_in_all(const test_spread *spread, test_job *job, const void *context, char *message);
/* Spreads of up to eight devices: in blocks, alternating, scattered, and with a process that has none. */
extern const test_spread test_spreads[];
enum { TEST_SPREADS = 7 };

/* Does a job in two processes again and again: the first allocation of a thread that is hostile fails, then the next, and so on. Each
   time the job must fail for that everywhere, or succeed, and leave nothing allocated; `after`, if it is not NULL, is called each
   time. */
void test_each_allocation_in_one(test_job *job, const void *context, long step, void (*after)(ax_status status));
void test_be_hostile(bool hostile); /* this thread */

/* Fails the job if the condition does not hold. */
#define TEST_HERE(condition) \
  do {                       \
    if (!(condition)) return ax_error(AX_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition); \
  } while (0)

#endif
