/* Special functions, members of the pointwise family (ops/pointwise.c): the inverse of erf, the logarithm of gamma and its derivatives,
   Bessel functions.

     op: T[d..] -> T[d..]        T float; zeta and polygamma: T[d..] T[d..] -> T[d..]

     op            result                                                              its tangent, with y the result
     erf_inv       the y with erf(y) = x; infinite at 1 and -1, NaN beyond             sqrt(pi) / 2 e^(y^2) dx
     lgamma        log |gamma(x)|; infinite at 0, -1, -2 ..                            digamma(x) dx
     digamma       the derivative of log gamma(x); NaN at 0, -1, -2 ..                 polygamma(1, x) dx
     polygamma     (n, x): the n-th derivative of digamma, for whole n >= 0            polygamma(n + 1, x) dx
     zeta          (s, q): the sum of (q + k)^-s over k >= 0, for s > 1                -s zeta(s + 1, q) dq
     bessel_i0e    e^-|x| I0(x), I0 the modified Bessel function                       (bessel_i1e(x) - sign(x) y) dx
     bessel_i1e    e^-|x| I1(x)                                                        (bessel_i0e(x) - (sign(x) + 1 / x) y) dx

   polygamma is infinite at 0, -1, -2 .. for odd n and NaN there for others; NaN where n is no whole number. zeta is infinite for s = 1
   and NaN below; for q <= 0 it has values where s is a whole number alone, and at 0, -1, -2 .. it is infinite if s is even.
   Results are exact to the last places near the zeros of lgamma, and of digamma above 0, too; near those of digamma below 0 within
   2^-60 (f64; of polygamma and zeta likewise, of the sizes that cancel). Beyond jax.lax, zeta has a derivative by q, and both polygamma and zeta are
   right for operands below -9.
   Errors: shapes or dtypes that differ; a dtype that is no float; a derivative of polygamma by n, of zeta by s.
   Sharding: cuts of every dimension are kept. */
#include <math.h>

#include "ops/pointwise.h"
#include "prim/expand.h"
#include "prim/prims.h"

static ax_value one_like(ax_value x) { return ax_full_like(x, 1); }

/* --- Derivatives --- */

static ax_value erf_inv_factor(ax_value x, ax_value y) {
  return (void)x, ax_mul(ax_exp(ax_mul(y, y)), ax_full_like(y, sqrt(3.14159265358979323846) / 2));
}
static ax_value lgamma_factor(ax_value x, ax_value y) { return (void)y, ax_digamma(x); }
static ax_value digamma_factor(ax_value x, ax_value y) { return (void)y, ax_polygamma(one_like(x), x); }
static ax_value i0e_factor(ax_value x, ax_value y) { return ax_sub(ax_bessel_i1e(x), ax_mul(ax_sign(x), y)); }

/* 1/2 at 0, where y / x is not known. */
static ax_value i1e_factor(ax_value x, ax_value y) {
  const ax_value least = ax_full_like(x, ldexp(1, -(int)ax_dtype_get(ax_typeof(x).dtype)->fraction));
  const ax_value some = ax_gt(ax_abs(x), least), safe = ax_select_n(some, least, x);
  const ax_value share = ax_mul(y, ax_add(ax_sign(safe), ax_div(one_like(safe), safe)));
  return ax_select_n(some, ax_full_like(x, 0.5), ax_sub(ax_bessel_i0e(safe), share));
}

static void erf_inv_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, erf_inv_factor); }
static void lgamma_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, lgamma_factor); }
static void digamma_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, digamma_factor); }
static void bessel_i0e_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, i0e_factor); }
static void bessel_i1e_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, i1e_factor); }

/* The derivative by the second operand, and none by the first. */
static void second_jvp(const ax_jvp_args *a, const char *first, ax_value (*factor)(ax_value a, ax_value b)) {
  a->out[0] = ax_bind1(a->eqn->prim, a->eqn->params, a->in, a->eqn->in_count);
  a->tangent_out[0] = ax_zero;
  if (!ax_is_zero(a->tangent_in[0])) {
    ax_fail(ax_error(AX_ABSENT, "%s has no derivative by %s", a->eqn->prim->name, first));
    a->tangent_out[0] = ax_poison;
  } else if (!ax_is_zero(a->tangent_in[1])) {
    a->tangent_out[0] = ax_mul(a->tangent_in[1], factor(a->in[0], a->in[1]));
  }
}

static ax_value polygamma_factor(ax_value n, ax_value x) { return ax_polygamma(ax_add(n, one_like(n)), x); }
static ax_value zeta_factor(ax_value s, ax_value q) { return ax_mul(ax_neg(s), ax_zeta(ax_add(s, one_like(s)), q)); }
static void polygamma_jvp(const ax_jvp_args *a) { second_jvp(a, "n", polygamma_factor); }
static void zeta_jvp(const ax_jvp_args *a) { second_jvp(a, "s", zeta_factor); }

/* --- StableHLO: ops of CHLO. It has no bessel_i0e, which is written by Chebyshev's polynomials. --- */

/* The sum of c(k) T(k)(t), with half of c(0), by Clenshaw's recurrence. */
static ax_value chebyshev(ax_value t, const double *c, int count) {
  ax_value twice = ax_add(t, t), next = ax_full_like(t, 0), sum = next, after = next;
  for (int k = count - 1; k >= 0; k--) {
    after = next;
    next = sum;
    sum = ax_add(ax_sub(ax_mul(twice, next), after), ax_full_like(t, c[k]));
  }
  return ax_mul(ax_sub(sum, after), ax_full_like(t, 0.5));
}

/* e^-x I0(x) in x / 4 - 1 up to 8; sqrt(x) e^-x I0(x) in 16 / x - 1 above. */
static ax_value i0e_expanded(const ax_eqn *eqn, const ax_value *in) {
  static const double near[] = {
      0.67679527440947608,     -0.3046826723431984,     0.17162090152220878,     -0.094901097048047644,   0.049305284239670708,
      -0.023737414805899469,   0.010546460394594998,    -0.0043243099950505759,  0.0016394756169413358,   -0.00057637557453858237,
      0.00018850288509584166,  -5.7541950100821037e-5,  1.6448448070728897e-5,   -4.4167383584587506e-6,  1.1173875391201037e-6,
      -2.6707938539406117e-7,  6.0469950225419189e-8,   -1.300025009986248e-8,   2.6598237246823867e-9,   -5.1897956016352629e-10,
      9.6758090353732369e-11,  -1.7268262914415557e-11, 2.9550526631296398e-12,  -4.8564467831119295e-13, 7.6761854986049356e-14,
      -1.1685332877993452e-14, 1.715391285555133e-15,   -2.4312798465479547e-16, 3.3307945188222381e-17};
  static const double far[] = {
      0.80449041101410883,     0.0033691164782556941,   6.889758346916824e-5,    2.8913705208347565e-6,   2.0489185894690637e-7,
      2.2666689904981781e-8,   3.3962320257083863e-9,   4.9406023882249696e-10,  1.1889147107846438e-11,  -3.1499165279632414e-11,
      -1.3215811840447713e-11, -1.7941785315068061e-12, 7.1801244513836662e-13,  3.8527783827421427e-13,  1.5400862175214098e-14,
      -4.1505693472872221e-14, -9.5548466988283076e-15, 3.8116806693526224e-15,  1.7725601330565264e-15,  -3.4254856196772191e-16,
      -2.8276239805165835e-16, 3.4612228676974611e-17,  4.46562142029676e-17,    -4.8305044859441821e-18, -7.233180487874754e-18};
  const ax_dtype dtype = ax_typeof(in[0]).dtype, held = dtype == AX_F64 ? AX_F64 : AX_F32;
  const ax_value x = ax_abs(ax_convert_element_type(in[0], held)), eight = ax_full_like(x, 8);
  const ax_value below = ax_min(x, eight), above = ax_max(x, eight);
  const ax_value t = ax_sub(ax_mul(below, ax_full_like(x, 0.25)), one_like(x));
  const ax_value u = ax_sub(ax_div(ax_full_like(x, 16), above), one_like(x));
  const bool is_long = held == AX_F64;
  const ax_value first = chebyshev(t, near, is_long ? 29 : 18), second = ax_mul(chebyshev(u, far, is_long ? 25 : 7), ax_rsqrt(above));
  return (void)eqn, ax_convert_element_type(ax_select_n(ax_lt(x, eight), second, first), dtype);
}

static ax_status i0e_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, i0e_expanded, in, out);
}

/* --- The records --- */

#define CHLO(text) (&(const ax_hlo_form){.op = "chlo." text})
AX_POINTWISE(erf_inv, ERF_INV, CHLO("erf_inv"), 1, ax_infer_float, erf_inv_jvp, ax_absent_transpose);
AX_POINTWISE(lgamma, LGAMMA, CHLO("lgamma"), 1, ax_infer_float, lgamma_jvp, ax_absent_transpose);
AX_POINTWISE(digamma, DIGAMMA, CHLO("digamma"), 1, ax_infer_float, digamma_jvp, ax_absent_transpose);
AX_POINTWISE(polygamma, POLYGAMMA, CHLO("polygamma"), 2, ax_infer_float, polygamma_jvp, ax_absent_transpose);
AX_POINTWISE(zeta, ZETA, CHLO("zeta"), 2, ax_infer_float, zeta_jvp, ax_absent_transpose);
AX_POINTWISE_HLO(bessel_i0e, BESSEL_I0E, CHLO("bessel_i0e"), 1, ax_infer_float, bessel_i0e_jvp, ax_absent_transpose, i0e_hlo);
AX_POINTWISE(bessel_i1e, BESSEL_I1E, CHLO("bessel_i1e"), 1, ax_infer_float, bessel_i1e_jvp, ax_absent_transpose);

/* --- The functions --- */

ax_value ax_erf_inv(ax_value x) { return ax_bind1(&ax_prim_erf_inv, NULL, &x, 1); }
ax_value ax_lgamma(ax_value x) { return ax_bind1(&ax_prim_lgamma, NULL, &x, 1); }
ax_value ax_digamma(ax_value x) { return ax_bind1(&ax_prim_digamma, NULL, &x, 1); }
ax_value ax_polygamma(ax_value n, ax_value x) { return ax_bind_binary(&ax_prim_polygamma, n, x); }
ax_value ax_zeta(ax_value s, ax_value q) { return ax_bind_binary(&ax_prim_zeta, s, q); }
ax_value ax_bessel_i0e(ax_value x) { return ax_bind1(&ax_prim_bessel_i0e, NULL, &x, 1); }
ax_value ax_bessel_i1e(ax_value x) { return ax_bind1(&ax_prim_bessel_i1e, NULL, &x, 1); }
