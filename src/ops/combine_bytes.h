/* Numbers of one byte that processors do not compute with: floats of 4, 6 and 8 bits, and integers of fewer than 8. */
#ifndef AX_OPS_COMBINE_BYTES_H
#define AX_OPS_COMBINE_BYTES_H

#include "ops/combine.h"

/* An ax_combine, as ax_combiner gives it out for these, by a table of the results of all pairs, which the first call for a combination and a dtype makes, in some milliseconds. */
void ax_combine_bytes(ax_scalar combine, ax_dtype dtype, const ax_combined *rows);

#endif
