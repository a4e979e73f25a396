/* Results of sample instances compared: bit by bit where a primitive says so, within its tolerance otherwise. */
#ifndef AX_TESTS_SUPPORT_COMPARE_H
#define AX_TESTS_SUPPORT_COMPARE_H

#include "support/sample.h"

/* Whether `got` is `wanted`, as the instance's sample allows: the same bits (any NaN is any NaN); or within its ulps; or, where it
   sums, within the rounding of sums of `condition`, the same results in f64 from absolute values (NULL: not allowed). Blames the
   instance, for `what`. */
void test_compare(const test_instance *instance, const char *what, const ax_tensor *got, const ax_tensor *wanted,
                  const ax_tensor *condition);
/* As f64, without signs. Integers stay as they are. */
ax_tensor *test_absolute(const ax_tensor *tensor);

#endif
