/* What counting loops, of functions and of blocks of C, have in common. `function` is whose the messages are. */
#ifndef AX_CONTROL_FORI_LOOP_H
#define AX_CONTROL_FORI_LOOP_H

#include "prim/rules.h"

/* Of bounds that are numbers: the first index, in the trace, and how many there are. False: the trace has failed. */
bool ax_fori_numbers(const char *function, ax_value from, ax_value to, ax_value *start, int64_t *length);
/* Of bounds of which one is none: checks the two, and gives a number among them the other's dtype. False: the trace has failed. */
bool ax_fori_values(const char *function, ax_value *bounds);
/* The index after this one. */
ax_value ax_fori_next(const char *function, ax_value index);

#endif
