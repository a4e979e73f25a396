/* Helpers shared by counting loops of functions and of blocks of C. Messages are in the name of `function`. */
#ifndef AX_CONTROL_FORI_LOOP_H
#define AX_CONTROL_FORI_LOOP_H

#include "prim/bind.h"

/* For bounds that are numbers: finds the first index, as a value of the trace, and the number of indices. False: the trace has
   failed. */
bool ax_fori_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length);
/* For bounds that are not both numbers: checks them, and gives a bound that is a number the other's dtype. False: the trace has
   failed. */
bool ax_fori_values(const char *function, ax_value *bounds);
/* The index after this one. */
ax_value ax_fori_next(const char *function, ax_value index);

#endif
