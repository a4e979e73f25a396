/* For small programs, tests and examples: ends the program at its first error; prints arrays. A library returns the status to its
   caller instead. */
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

/* Prints a line: the label, then the elements in row-major order; floats with six digits, integers and bools as they are (u64
   beyond 2^63 and s64 beyond 2^53 rounded to a double), keys as nan. An array without data, as a failed call leaves it, prints as
   "nothing", and so does one whose dtype, rank or dimensions are invalid. */
static inline void ax_print(const char *label, const ax_host_array *array) {
  const ax_type type = (ax_array_type)(array->dtype, array->rank, array->dims);
  const int64_t count = ax_type_elems(&type);
  fputs(label, stdout);
  if (type.dtype == AX_NO_DTYPE || (array->data == NULL && count > 0)) {
    puts(" nothing");
    return;
  }
  for (int64_t i = 0; array->data != NULL && i < count; i++)
    printf(array->dtype <= AX_U64 ? " %.0f" : " %.6g", ax_host_at(array, i));
  putchar('\n');
}

#endif
