/* Kernels under random schedules. */
#ifndef AX_TESTS_SUPPORT_SCHEDULES_H
#define AX_TESTS_SUPPORT_SCHEDULES_H

#include "support/tensor.h"

/* Evaluates the program by reference; each kernel that it comes to is also run under `count` random schedules (which agent goes on
   is drawn among those that can, from `seed` on), of which each must end, without a fault, with what the machine's own order ends
   with: results, and what semaphores hold. Reading memory that nobody has written is a fault. */
void test_schedules(const ax_program *program, ax_tensor *const *in, ax_tensor **out, uint32_t count, uint64_t seed);
/* The same, told instead of failed: NULL, or what went wrong first ("deadlock ..", "a fault ..", "another outcome ..."); in a
   buffer of its own. */
const char *test_schedules_try(const ax_program *program, ax_tensor *const *in, ax_tensor **out, uint32_t count, uint64_t seed);

#endif
