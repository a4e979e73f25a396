/* Test data from a seed: the same numbers on every machine. */
#ifndef AX_TESTS_SUPPORT_RANDOM_H
#define AX_TESTS_SUPPORT_RANDOM_H

#include "support/tensor.h"

typedef struct test_random {
  uint64_t state; /* any seed */
} test_random;

uint64_t test_random_bits(test_random *random); /* splitmix64 */
double test_random_uniform(test_random *random, double low, double high);
int64_t test_random_below(test_random *random, int64_t count); /* 0 .. count - 1 */

/* Uniform in [low, high), converted: floats rounded, integers truncated, bools != 0. ax_tensor_release. */
ax_tensor *test_random_tensor(test_random *random, ax_type type, double low, double high);
/* Mostly values where arithmetic goes wrong: floats 0, -0, 1, inf, nan, subnormal, largest, ...; integers 0, -1, limits, ... */
ax_tensor *test_edge_tensor(test_random *random, ax_type type);

#endif
