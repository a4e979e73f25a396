/* Special functions of two and three operands, as those of jax.lax and jax.scipy.special; those of one are in axle/ops.h (ax_lgamma,
   ax_digamma, ax_erf_inv, ..). Each adds equations to the trace in progress; errors poison the result (axle/ops.h). T float, operands
   broadcast; numbers may stand for operands but the first. They are computed in f64, and rounded once. */
#ifndef AXLE_SPECIAL_H
#define AXLE_SPECIAL_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Integrals. By series and continued fractions, element by element until all have converged. Derivatives by every operand, once
   backwards and any number of times forwards. --- */
/* The share of gamma(a) numbers below x: 0 at 0, 1 at infinity and where a is 0; NaN for negative numbers. As lax.igamma,
   jax.scipy.special.gammainc. */
ax_value ax_igamma(ax_value a, ax_value x);
ax_value ax_igammac(ax_value a, ax_value x); /* the share above, 1 - igamma; as lax.igammac */
ax_value ax_igamma_grad_a(ax_value a, ax_value x); /* the derivative of ax_igamma by a; as lax.igamma_grad_a */
/* The derivative by a of the x below which a share of gamma(a) numbers lies, at that share. As lax.random_gamma_grad. */
ax_value ax_random_gamma_grad(ax_value a, ax_value x);
/* The share of beta(a, b) numbers below x, from 0 to 1; 1 where a is 0, 0 where b is; NaN elsewhere. As lax.betainc. */
ax_value ax_betainc(ax_value a, ax_value b, ax_value x);

/* --- Made of logarithms --- */
ax_value ax_betaln(ax_value a, ax_value b);  /* log of gamma(a) gamma(b) / gamma(a + b) */
ax_value ax_xlogy(ax_value x, ax_value y);   /* x log(y), 0 where x is 0 */
ax_value ax_xlog1py(ax_value x, ax_value y); /* x log(1 + y), 0 where x is 0 */
ax_value ax_entr(ax_value x);                /* -x log(x), 0 at 0 and -inf below */
ax_value ax_logit(ax_value x);               /* log(x / (1 - x)) */
ax_value ax_rel_entr(ax_value p, ax_value q); /* p log(p / q); 0 where p is 0 and q >= 0, inf where else one is not above 0 */
ax_value ax_kl_div(ax_value p, ax_value q);   /* rel_entr - p + q */
ax_value ax_ndtr(ax_value x);                 /* the share of normal numbers below x */

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_igamma(a, x) AX_LINED(igamma, a, AX_X(x))
#define ax_igammac(a, x) AX_LINED(igammac, a, AX_X(x))
#define ax_igamma_grad_a(a, x) AX_LINED(igamma_grad_a, a, AX_X(x))
#define ax_random_gamma_grad(a, x) AX_LINED(random_gamma_grad, a, AX_X(x))
#define ax_betainc(a, b, x) AX_LINED(betainc, a, AX_X(b), AX_X(x))
#define ax_betaln(a, b) AX_LINED(betaln, a, AX_X(b))
#define ax_xlogy(x, y) AX_LINED(xlogy, x, AX_X(y))
#define ax_xlog1py(x, y) AX_LINED(xlog1py, x, AX_X(y))
#define ax_entr(...) AX_LINED(entr, __VA_ARGS__)
#define ax_logit(...) AX_LINED(logit, __VA_ARGS__)
#define ax_rel_entr(p, q) AX_LINED(rel_entr, p, AX_X(q))
#define ax_kl_div(p, q) AX_LINED(kl_div, p, AX_X(q))
#define ax_ndtr(...) AX_LINED(ndtr, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
