/* For small programs, tests and examples, which end at the first error and print. A library hands the status on instead. */
#ifndef AXLE_MUST_H
#define AXLE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "axle/host.h"
#include "axle/status.h"

/* Ends the program with the message when the call that gave `status` failed. Any thread. */
static inline void ax_must(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "%s\n", ax_message());
  exit(1);
}

/* Prints a line: the label, then the elements in row-major order, six digits each. */
static inline void ax_print(const char *label, const ax_host_array *array) {
  int64_t count = 1;
  for (uint32_t d = 0; d < array->rank; d++) count *= array->dims[d];
  fputs(label, stdout);
  for (int64_t i = 0; i < count; i++) printf(" %.6g", ax_host_at(array, i));
  putchar('\n');
}

#endif
