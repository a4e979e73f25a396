/* Failing each allocation in turn. */
#ifndef AX_TESTS_SUPPORT_OOM_H
#define AX_TESTS_SUPPORT_OOM_H

#include "axle/status.h"

/* Calls `work` with the first allocation failing, then the second, and so on until none fails. Each call must return
   AX_OUT_OF_MEMORY (AX_OK the last), and leave nothing allocated. Returns how many allocations there were. */
int test_each_allocation(ax_status (*work)(void *context), void *context);

#endif
