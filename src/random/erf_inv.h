/* The inverse of erf, for normal draws. */
#ifndef AX_RANDOM_ERF_INV_H
#define AX_RANDOM_ERF_INV_H

#include "axle/program.h"

/* T[d..] -> T[d..], T float: y with erf(y) = x, by the polynomials that XLA has for it: f32, and floats of fewer bits through f32,
   as exact as those are. Infinite at -1 and 1, NaN beyond. For an x without tangents: derivatives of the
   polynomials are of no use where they meet. */
ax_value ax_draw_erf_inv(ax_value x);
/* The same with its derivative, for an x that is made of parameters. */
ax_value ax_draw_erf_inv_of(ax_value x);

#endif
