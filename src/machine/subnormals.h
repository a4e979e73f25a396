/* Whether subnormal numbers are kept or flushed: what the caller, the environment and the default say. */
#ifndef AX_MACHINE_SUBNORMALS_H
#define AX_MACHINE_SUBNORMALS_H

#include <stdbool.h>

#include "axle/exec.h"

/* *flush: the choice asked for; where that is AX_SUBNORMALS_DEFAULT, AXLE_SUBNORMALS; without it, flushed.
   AX_INVALID_ARGUMENT: no such choice, or AXLE_SUBNORMALS is none of "keep" and "flush". */
AX_MUST_USE ax_status ax_subnormals_flush(ax_subnormals asked, bool *flush);
/* Reads "keep" or "flush". False: the word is neither. */
bool ax_subnormals_find(const char *word, ax_subnormals *out);

#endif
