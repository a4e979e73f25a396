/* Gamma numbers of a large parameter a, near their mean: series and fractions there take some square roots of a terms, and lose digits to
   x^a. Temme's expansion (SIAM J. Math. Anal. 10, 1979; DLMF 8.12) takes a fixed number, all in f64 on whole arrays:

     mu = x / a - 1          eta^2 / 2 = mu - log(1 + mu), of mu's sign
     the share below x       erfc(-eta sqrt(a / 2)) / 2 - exp(-a eta^2 / 2) s / sqrt(2 pi a)
     s                       c0(eta) + c1(eta) / a + c2(eta) / a^2 + ..

   Operands are f64 of one shape; where ax_large_gamma_has is false, results mean nothing, but are finite. */
#ifndef AX_OPS_LARGE_GAMMA_H
#define AX_OPS_LARGE_GAMMA_H

#include "axle/ops.h"

ax_value ax_large_gamma_has(ax_value a, ax_value x); /* pred: a is large, and x near it */
ax_value ax_large_gamma_share(ax_value a, ax_value x, bool below); /* of the numbers below x, or above it */
ax_value ax_large_gamma_density(ax_value a, ax_value x);
/* How x moves with a where the share below it stays: -(dP/da) / p. */
ax_value ax_large_gamma_move(ax_value a, ax_value x);

#endif
