/* Comparisons of integers whose outcome their bounds say: see known_comparison.c. */
#ifndef AX_OPS_KNOWN_COMPARISON_H
#define AX_OPS_KNOWN_COMPARISON_H

#include "prim/rules.h"

/* The rewrite rule of eq, ne, lt, le, gt and ge. */
bool ax_rewrite_comparison(const ax_rewrite_args *args);

#endif
