/* Giles, Approximating the erfinv function (2010), with XLA's choices where the polynomials meet. These polynomials are not ax_erf_inv's:
   a key shall give the numbers that it gives in JAX, and XLA's f32 is off by up to 90 units of the last place at the sides, f64 by
   thousands. Of these 95 of 100 normal f32 numbers have JAX's bits (99 where products are contracted, as XLA does), and the others are
   within 3 units; of ax_erf_inv's fewer than half. */
#include "random/erf_inv.h"

#include <math.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/dtype.h"
#include "prim/bind.h"

/* w = -log(1 - x^2) is small in the middle, and grows at the sides. */
static ax_value depth_of(ax_value x) { return ax_neg(ax_log1p(ax_mul(x, ax_neg(x)))); }

/* Infinite where |x| is 1. */
static ax_value of_polynomial(ax_value x, ax_value p) {
  return ax_where(ax_eq(ax_abs(x), ax_real(1)), ax_mul(x, ax_real(INFINITY)), ax_mul(p, x));
}

static ax_value erf_inv_f32(ax_value x) {
  static const double middle[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                  -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static const double sides[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                 -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const ax_value depth = depth_of(x), near = ax_lt(depth, ax_real(5));
  const ax_value w = ax_where(near, ax_sub(depth, ax_real(2.5)), ax_sub(ax_sqrt(depth), ax_real(3)));
  ax_value p = ax_where(near, ax_full_like(w, middle[0]), ax_real(sides[0]));
  for (int i = 1; i < 9; i++) p = ax_add(ax_where(near, ax_full_like(w, middle[i]), ax_real(sides[i])), ax_mul(p, w));
  return of_polynomial(x, p);
}

enum { NEAR = 23, FAR = 19, FARTHEST = 17 }; /* coefficients of the three polynomials of f64 */

static const double in_middle[NEAR] = {
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18, 1.115787767802518096e-17,
    -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15, -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,  -0.00074070253416626697512,
    -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
static const double at_sides[FAR] = {
    2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
    0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
    0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
static const double at_ends[FARTHEST] = {
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
    7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
    2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
    4.8499064014085844221};

static ax_value erf_inv_f64(ax_value x) {
  const ax_value depth = depth_of(x), near = ax_lt(depth, ax_real(6.25)), far = ax_lt(depth, ax_real(16)), root = ax_sqrt(depth);
  const ax_value w = ax_where(near, ax_sub(depth, ax_real(3.125)), ax_sub(root, ax_where(far, ax_full_like(root, 3.25), ax_real(5))));
  ax_value p = ax_full_like(w, 0);
  for (int i = 0; i < NEAR; i++) {
    ax_value c = ax_full_like(w, in_middle[i]);
    if (i < FAR) c = ax_where(near, c, ax_real(at_sides[i]));
    if (i < FARTHEST) c = ax_where(far, c, ax_real(at_ends[i]));
    const ax_value next = i == 0 ? c : ax_add(c, ax_mul(p, w));
    p = i < FARTHEST ? next : ax_where(i < FAR ? far : near, next, p);
  }
  return of_polynomial(x, p);
}

ax_value ax_draw_erf_inv(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  if (type.dtype == AX_F64) return erf_inv_f64(x);
  return ax_convert_element_type(erf_inv_f32(ax_convert_element_type(x, AX_F32)), type.dtype);
}

/* --- With its derivative: sqrt(pi) / 2 exp(y^2) --- */

static void value_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_draw_erf_inv(in[0]);
}

static void rule_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_draw_erf_inv(in[0]);
  out[1] = ax_mul(in[1], ax_mul(ax_real(0.88622692545275801365), ax_exp(ax_square(out[0]))));
}

ax_value ax_draw_erf_inv_of(ax_value x) {
  ax_value y;
  (ax_custom_jvp)(AX_FN(value_of, 1, 1), AX_FN(rule_of, 2, 2), 1, &x, 1, &y);
  return y;
}
