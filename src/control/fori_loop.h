/* Helpers shared by counting loops of functions and of blocks of C. Messages are in the name of `function`. */
#ifndef AX_CONTROL_FORI_LOOP_H
#define AX_CONTROL_FORI_LOOP_H

#include "prim/bind.h"

/* Says whether a loop between these bounds is a scan: each is a number, or a value of the trace that is known while it is traced,
   as it is made of scalar constants. */
bool ax_fori_known(ax_value lower, ax_value upper);
/* For such bounds: checks them, and finds the first index, as a value of the trace, and the number of indices. False: the trace has
   failed. */
bool ax_fori_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length);
/* For other bounds: checks them, and gives a bound that is a number the other's dtype. False: the trace has failed. */
bool ax_fori_values(const char *function, ax_value *bounds);
/* The index after this one. */
ax_value ax_fori_next(const char *function, ax_value index);

#endif
