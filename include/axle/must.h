/* For programs that end at the first error: small ones, tests, examples. A library hands the status on instead. */
#ifndef AXLE_MUST_H
#define AXLE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "axle/status.h"

/* Ends the program with the message when the call that gave `status` failed. Any thread. */
static inline void ax_must(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "%s\n", ax_message());
  exit(1);
}

#endif
