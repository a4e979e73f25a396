/* Powers whose exponent is a number with a shorter way: see known_power.c. */
#ifndef AX_OPS_KNOWN_POWER_H
#define AX_OPS_KNOWN_POWER_H

#include "prim/rules.h"

/* The rewrite rule of pow. */
bool ax_rewrite_power(const ax_rewrite_args *args);

#endif
