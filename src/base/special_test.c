/* Special functions in long double beside exact values, which mpmath computed to 90 digits: near zeros and poles, far from them, and
   where one way of computing ends and the next begins. */
#include "base/special.h"

#include <float.h>
#include <math.h>

#include "support/cmocka.h"

typedef struct value {
  long double (*one)(long double), (*two)(long double, long double);
  long double a, b, exact;
} value;

static const value values[] = {
    {.one = ax_special_erf_inv, .a = 0x1.0000000000000p-1, .exact = 4.769362762044698733814e-1L},
    {.one = ax_special_erf_inv, .a = -0x1.999999999999ap-4, .exact = -8.885599049425769197428e-2L},
    {.one = ax_special_erf_inv, .a = 0x1.19799812dea11p-40, .exact = 8.862269254527579958241e-13L},
    {.one = ax_special_erf_inv, .a = 0x1.ff7ced916872bp-1, .exact = 2.326753765513524493866L},
    {.one = ax_special_erf_inv, .a = 0x1.fffffff800000p-1, .exact = 4.328028275800946455372L},
    {.one = ax_special_erf_inv, .a = 0x1.fffffffffffffp-1, .exact = 5.863584748755167927208L},
    {.one = ax_special_erf_inv, .a = -0x1.8000000000000p-1, .exact = -8.134198475976185416903e-1L},
    {.one = ax_special_erf_inv, .a = 0x1.0000000000000p-41, .exact = 4.030093466338976275661e-13L},
    {.one = ax_special_lgamma, .a = 0x1.0000000000000p-1, .exact = 5.723649429247000870717e-1L},
    {.one = ax_special_lgamma, .a = 0x1.0000000001000p+0, .exact = -5.249745890076017814838e-13L},
    {.one = ax_special_lgamma, .a = 0x1.ffffffffff000p+0, .exact = -3.845201127643793891685e-13L},
    {.one = ax_special_lgamma, .a = 0x1.56e1fc2f8f359p-997, .exact = 6.907755278982137051803e+2L},
    {.one = ax_special_lgamma, .a = 0x1.c000000000000p+1, .exact = 1.200973602347074224816L},
    {.one = ax_special_lgamma, .a = 0x1.e400000000000p+4, .exact = 7.210420474200799982361e+1L},
    {.one = ax_special_lgamma, .a = 0x1.2a05f20000000p+33, .exact = 2.2025850928881058147e+11L},
    {.one = ax_special_lgamma, .a = 0x1.23a516e82d9bap+1013, .exact = 7.01288453363183890964e+307L},
    {.one = ax_special_lgamma, .a = -0x1.0000000000000p-1, .exact = 1.265512123484645396489L},
    {.one = ax_special_lgamma, .a = -0x1.3a7fc9600f86cp+1, .exact = 5.619192358950096450913e-17L},
    {.one = ax_special_lgamma, .a = -0x1.a000000000000p+1, .exact = -6.231534513209986466254e-1L},
    {.one = ax_special_lgamma, .a = -0x1.9200000000000p+6, .exact = -3.649009683094273518228e+2L},
    {.one = ax_special_digamma, .a = 0x1.0000000000000p-1, .exact = -1.963510026021423479441L},
    {.one = ax_special_digamma, .a = 0x1.762d86356be3fp+0, .exact = -9.241265521729427516792e-17L},
    {.one = ax_special_digamma, .a = 0x1.762d86356be40p+0, .exact = 1.224537462200406903132e-16L},
    {.one = ax_special_digamma, .a = 0x1.8000000000000p+0, .exact = 3.648997397857652055902e-2L},
    {.one = ax_special_digamma, .a = 0x1.56e1fc2f8f359p-997, .exact = -9.999999999999999749409e+299L},
    {.one = ax_special_digamma, .a = 0x1.fff7ced916873p+3, .exact = 2.740948832464962771599L},
    {.one = ax_special_digamma, .a = 0x1.0800000000000p+4, .exact = 2.772751371622623497085L},
    {.one = ax_special_digamma, .a = 0x1.2a05f20000000p+33, .exact = 2.302585092989045684018e+1L},
    {.one = ax_special_digamma, .a = 0x1.7e43c8800759cp+996, .exact = 6.907755278982137052579e+2L},
    {.one = ax_special_digamma, .a = -0x1.0000000000000p-1, .exact = 3.648997397857652055902e-2L},
    {.one = ax_special_digamma, .a = -0x1.02172b05ee260p-1, .exact = 7.289763902976894944462e-17L},
    {.one = ax_special_digamma, .a = -0x1.a000000000000p+1, .exact = 4.466275872350279967125L},
    {.one = ax_special_digamma, .a = -0x1.9200000000000p+6, .exact = 4.615124601338064117341L},
    {.one = ax_special_digamma, .a = 0x1.6666666666666p+0, .exact = -6.138454458511623680064e-2L},
    {.one = ax_special_digamma, .a = 0x1.851eb851eb852p+0, .exact = 5.502211457955163892571e-2L},
    {.one = ax_special_bessel_i0e, .a = 0x1.4f8b588e368f1p-17, .exact = 9.999900000749995833343e-1L},
    {.one = ax_special_bessel_i0e, .a = 0x1.0000000000000p-1, .exact = 6.45035270449150068108e-1L},
    {.one = ax_special_bessel_i0e, .a = -0x1.ff5c28f5c28f6p+2, .exact = 1.435247653793348472868e-1L},
    {.one = ax_special_bessel_i0e, .a = 0x1.1000000000000p+3, .exact = 1.390018430548475968153e-1L},
    {.one = ax_special_bessel_i0e, .a = 0x1.3f33333333333p+5, .exact = 6.335803550042246303988e-2L},
    {.one = ax_special_bessel_i0e, .a = 0x1.4400000000000p+5, .exact = 6.288397125805981959181e-2L},
    {.one = ax_special_bessel_i0e, .a = 0x1.3880000000000p+13, .exact = 3.989472674604732106361e-3L},
    {.one = ax_special_bessel_i0e, .a = 0x1.7e43c8800759cp+996, .exact = 3.989422804014326674668e-151L},
    {.one = ax_special_bessel_i1e, .a = 0x1.4f8b588e368f1p-17, .exact = 4.999950000312498950679e-6L},
    {.one = ax_special_bessel_i1e, .a = 0x1.0000000000000p-1, .exact = 1.564208031848716971426e-1L},
    {.one = ax_special_bessel_i1e, .a = -0x1.ff5c28f5c28f6p+2, .exact = -1.342173395782809926119e-1L},
    {.one = ax_special_bessel_i1e, .a = 0x1.1000000000000p+3, .exact = 1.305493550945958550915e-1L},
    {.one = ax_special_bessel_i1e, .a = 0x1.3f33333333333p+5, .exact = 6.255897063316231314535e-2L},
    {.one = ax_special_bessel_i1e, .a = 0x1.4400000000000p+5, .exact = 6.210271053578732786571e-2L},
    {.one = ax_special_bessel_i1e, .a = 0x1.3880000000000p+13, .exact = 3.98927319598366226448e-3L},
    {.one = ax_special_bessel_i1e, .a = -0x1.7e43c8800759cp+996, .exact = -3.989422804014326674668e-151L},
    {.two = ax_special_zeta, .a = 0x1.000001ad7f29bp+0, .b = 0x1.0000000000000p+0, .exact = 1.000000057137700041824e+7L},
    {.two = ax_special_zeta, .a = 0x1.8000000000000p+0, .b = 0x1.0000000000000p-2, .exact = 1.021305536046660073888e+1L},
    {.two = ax_special_zeta, .a = 0x1.0000000000000p+1, .b = 0x1.0000000000000p+0, .exact = 1.644934066848226436472L},
    {.two = ax_special_zeta, .a = 0x1.4000000000000p+1, .b = 0x1.0624dd2f1a9fcp-10, .exact = 3.162277794035882188348e+7L},
    {.two = ax_special_zeta, .a = 0x1.bb2da8b0def32p+4, .b = 0x1.403a4d7115f1ap+8, .exact = 5.001884592339657293894e-69L},
    {.two = ax_special_zeta, .a = 0x1.0000000000000p+6, .b = 0x1.fc00000000000p+5, .exact = 6.668199646163796136197e-116L},
    {.two = ax_special_zeta, .a = 0x1.8000000000000p+1, .b = -0x1.0000000000000p-1, .exact = 4.143983221171599977982e-1L},
    {.two = ax_special_zeta, .a = 0x1.0000000000000p+1, .b = -0x1.4800000000000p+4, .exact = 9.821994344649879482074L},
    {.two = ax_special_zeta, .a = 0x1.8000000000000p+1, .b = -0x1.4400000000000p+4, .exact = -6.201139276237192105527e+1L},
    {.two = ax_special_zeta, .a = 17, .b = -85.5L, .exact = 6.97011091735215921995e-33L},
    {.two = ax_special_zeta, .a = 3, .b = -2.5L, .exact = 0.05410202582086370150187L},
    {.two = ax_special_zeta, .a = 0x1.8000000000000p+3, .b = -0x1.e000000000000p+1, .exact = 1.677724763928901380532e+7L},
    {.two = ax_special_polygamma, .a = 0x1.0000000000000p+0, .b = 0x1.0000000000000p-1, .exact = 4.934802200544679309417L},
    {.two = ax_special_polygamma, .a = 0x1.0000000000000p+0, .b = 0x1.0624dd2f1a9fcp-10, .exact = 1.000001642533195827345e+6L},
    {.two = ax_special_polygamma, .a = 0x1.0000000000000p+1, .b = 0x1.e800000000000p+4, .exact = -1.11080266893594173681e-3L},
    {.two = ax_special_polygamma, .a = 0x1.4000000000000p+4, .b = 0x1.0eebc11bf3d26p+8, .exact = -2.780898443783397779688e-32L},
    {.two = ax_special_polygamma, .a = 0x1.5400000000000p+7, .b = 0x1.9000000000000p+6, .exact = -8.884119378185605386698e-36L},
    {.two = ax_special_polygamma, .a = 0x1.0000000000000p+0, .b = -0x1.4800000000000p+4, .exact = 9.821994344649879482074L},
    {.two = ax_special_polygamma, .a = 0x1.0000000000000p+1, .b = -0x1.c000000000000p+0, .exact = -1.24213821354230581925e+2L},
    {.two = ax_special_polygamma, .a = 0x1.2000000000000p+3, .b = 0x1.86a0000000000p+16, .exact = 4.032181443023999999335e-41L},
    /* whole orders on both sides of 0, from sums of (q + k)^-s and mpmath's zeta(s, q) */
    {.two = ax_special_zeta, .a = 17, .b = 0.03125L, .exact = 3.86856262276681335906e+25L},
    {.two = ax_special_zeta, .a = 6, .b = 0.03125L, .exact = 1073741824.847269762963L},
    {.two = ax_special_zeta, .a = 7, .b = 0.03125L, .exact = 34359738368.81372740839L},
    {.two = ax_special_polygamma, .a = 1, .b = 0.03125L, .exact = 1025.572854478237708885L},
    {.two = ax_special_polygamma, .a = 11, .b = 0.03125L, .exact = 4.60209371150905893992e+25L},
    {.two = ax_special_zeta, .a = 12, .b = 0.75L, .exact = 31.5705093908321585615L},
    {.two = ax_special_zeta, .a = 5, .b = 0.75L, .exact = 4.283358575642394689122L},
    {.two = ax_special_zeta, .a = 2, .b = 0.75L, .exact = 2.541879647671606498398L},
    {.two = ax_special_polygamma, .a = 3, .b = 0.75L, .exact = 19.76331253485059976025L},
    {.two = ax_special_polygamma, .a = 1, .b = 0.75L, .exact = 2.541879647671606498398L},
    {.two = ax_special_zeta, .a = 7, .b = 1.9375L, .exact = 0.01037488439286639478359L},
    {.two = ax_special_zeta, .a = 12, .b = 1.9375L, .exact = 0.0003598545723884842024705L},
    {.two = ax_special_zeta, .a = 5, .b = 1.9375L, .exact = 0.04287378938442587727963L},
    {.two = ax_special_polygamma, .a = 11, .b = 1.9375L, .exact = 14364.24299511664621318L},
    {.two = ax_special_polygamma, .a = 5, .b = 1.9375L, .exact = 2.500560987086968365214L},
    {.two = ax_special_zeta, .a = 3, .b = 11.5L, .exact = 0.004123734525326108560156L},
    {.two = ax_special_zeta, .a = 17, .b = 11.5L, .exact = 1.242415312053775062988e-18L},
    {.two = ax_special_zeta, .a = 5, .b = 11.5L, .exact = 0.00001695890996070735787247L},
    {.two = ax_special_polygamma, .a = 1, .b = 11.5L, .exact = 0.09084666127454623433773L},
    {.two = ax_special_polygamma, .a = 8, .b = 11.5L, .exact = -0.00002294398408215362565952L},
    {.two = ax_special_zeta, .a = 5, .b = 12.0625L, .exact = 0.00001390087363279535646376L},
    {.two = ax_special_zeta, .a = 9, .b = 12.0625L, .exact = 3.827116544430458441914e-10L},
    {.two = ax_special_zeta, .a = 6, .b = 12.0625L, .exact = 9.588281293112174110734e-7L},
    {.two = ax_special_polygamma, .a = 3, .b = 12.0625L, .exact = 0.001289015161778368525283L},
    {.two = ax_special_polygamma, .a = 11, .b = 12.0625L, .exact = 0.000007057573802848526479894L},
    {.two = ax_special_zeta, .a = 9, .b = 3000.25L, .exact = 1.906467350870689502874e-29L},
    {.two = ax_special_zeta, .a = 4, .b = 3000.25L, .exact = 1.234876526041667086033e-11L},
    {.two = ax_special_zeta, .a = 3, .b = 3000.25L, .exact = 5.55648144286265494948e-8L},
    {.two = ax_special_polygamma, .a = 3, .b = 3000.25L, .exact = 7.4092591562500025162e-11L},
    {.two = ax_special_polygamma, .a = 5, .b = 3000.25L, .exact = 9.880658092678342158762e-17L},
    {.two = ax_special_zeta, .a = 17, .b = -0.25L, .exact = -17179869050.96719032736L},
    {.two = ax_special_zeta, .a = 12, .b = -0.25L, .exact = 16777247.57050939083216L},
    {.two = ax_special_zeta, .a = 4, .b = -0.25L, .exact = 259.29388542247509996L},
    {.two = ax_special_polygamma, .a = 3, .b = -0.25L, .exact = 1555.76331253485059976L},
    {.two = ax_special_polygamma, .a = 1, .b = -0.25L, .exact = 18.5418796476716064984L},
    {.two = ax_special_zeta, .a = 2, .b = -0.4921875L, .exact = 8.934231714414271897767L},
    {.two = ax_special_zeta, .a = 5, .b = -0.4921875L, .exact = -4.867355115619546885726L},
    {.two = ax_special_zeta, .a = 24, .b = -0.4921875L, .exact = 36047364.8865209386761L},
    {.two = ax_special_polygamma, .a = 3, .b = -0.4921875L, .exact = 193.8514349709354792526L},
    {.two = ax_special_polygamma, .a = 11, .b = -0.4921875L, .exact = 333252399798.6247063953L},
    {.two = ax_special_zeta, .a = 4, .b = -1.375L, .exact = 57.57614439312678716558L},
    {.two = ax_special_zeta, .a = 6, .b = -1.375L, .exact = 376.5771171966003261541L},
    {.two = ax_special_zeta, .a = 7, .b = -1.375L, .exact = -932.1465714688026840782L},
    {.two = ax_special_polygamma, .a = 4, .b = -1.375L, .exact = 2987.201797641612573572L},
    {.two = ax_special_polygamma, .a = 5, .b = -1.375L, .exact = 45189.25406359203913849L},
    {.two = ax_special_zeta, .a = 24, .b = -2.53125L, .exact = 82876229.79126644376425L},
    {.two = ax_special_zeta, .a = 33, .b = -2.53125L, .exact = 71104809457.15357747835L},
    {.two = ax_special_zeta, .a = 5, .b = -2.53125L, .exact = 20.58639388789831741269L},
    {.two = ax_special_polygamma, .a = 3, .b = -2.53125L, .exact = 202.364336078792528577L},
    {.two = ax_special_polygamma, .a = 8, .b = -2.53125L, .exact = -24939599.62290580138278L},
    {.two = ax_special_zeta, .a = 5, .b = -9.46875L, .exact = -20.58364620102408398666L},
    {.two = ax_special_zeta, .a = 9, .b = -9.46875L, .exact = -618.5416440864679124681L},
    {.two = ax_special_zeta, .a = 6, .b = -9.46875L, .exact = 138.9365146221250680147L},
    {.two = ax_special_polygamma, .a = 1, .b = -9.46875L, .exact = 9.865115402488068230701L},
    {.two = ax_special_polygamma, .a = 3, .b = -9.46875L, .exact = 202.4305500654450559051L},
    {.two = ax_special_zeta, .a = 9, .b = -12.625L, .exact = 6750.292071477662391785L},
    {.two = ax_special_zeta, .a = 4, .b = -12.625L, .exact = 57.62068302160488114429L},
    {.two = ax_special_zeta, .a = 24, .b = -12.625L, .exact = 16720591330.78912042103L},
    {.two = ax_special_polygamma, .a = 5, .b = -12.625L, .exact = 45190.02924943311790146L},
    {.two = ax_special_polygamma, .a = 1, .b = -12.625L, .exact = 11.48680711213904861517L},
    {.two = ax_special_zeta, .a = 7, .b = -100.28125L, .exact = -7173.83247254164961697L},
    {.two = ax_special_zeta, .a = 6, .b = -100.28125L, .exact = 2027.963893608929636585L},
    {.two = ax_special_zeta, .a = 17, .b = -100.28125L, .exact = -2319673812.43174791908L},
    {.two = ax_special_polygamma, .a = 1, .b = -100.28125L, .exact = 16.50699555965636627801L},
    {.two = ax_special_polygamma, .a = 5, .b = -100.28125L, .exact = 243355.6672330715563902L},
    {.two = ax_special_zeta, .a = 1.25L, .b = 0.625L, .exact = 5.648379789478188915014L},
    {.two = ax_special_zeta, .a = 2.75L, .b = 7.5L, .exact = 0.01889200391598004989887L},
    {.two = ax_special_zeta, .a = 19.5L, .b = 2.125L, .exact = 4.137491608145461873443e-7L},
    {.two = ax_special_zeta, .a = 300.5L, .b = 1.03125L, .exact = 0.00009641165806654446649276L},
};

/* To all digits of a double and some more; of digamma below 0, which has zeros there, those of 1. */
static void exact_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    const value *v = &values[i];
    const long double got = v->one != NULL ? v->one(v->a) : v->two(v->a, v->b);
    const long double scale = v->one == ax_special_digamma && v->a < 0 ? 1 : fabsl(v->exact);
    if (!(fabsl(got - v->exact) <= 0x1p-56L * scale))
      fail_msg("value %zu at %La, %La: %.20Lg instead of %.20Lg", i, v->a, v->b, got, v->exact);
  }
}

static void nan_at(long double got) { assert_true(isnan(got)); }
static void infinite_at(long double got, int sign) { assert_true(isinf(got) && !signbit(got) == (sign > 0)); }

static void ends(void **state) {
  (void)state;
  infinite_at(ax_special_erf_inv(1), 1);
  infinite_at(ax_special_erf_inv(-1), -1);
  nan_at(ax_special_erf_inv(1.5L));
  infinite_at(ax_special_lgamma(-3), 1);
  nan_at(ax_special_digamma(0));
  nan_at(ax_special_digamma(-3));
  infinite_at(ax_special_digamma(HUGE_VALL), 1);
  infinite_at(ax_special_zeta(1, 2), 1);
  nan_at(ax_special_zeta(0.5L, 2));
  infinite_at(ax_special_zeta(4, -2), 1);
  nan_at(ax_special_zeta(3, -2));
  nan_at(ax_special_zeta(2.5L, -1.5L));
  assert_true(ax_special_zeta(2, HUGE_VALL) == 0);
  nan_at(ax_special_polygamma(0.5L, 1));
  nan_at(ax_special_polygamma(-1, 1));
  infinite_at(ax_special_polygamma(1, 0), 1);
  assert_true(ax_special_bessel_i0e(HUGE_VALL) == 0 && ax_special_bessel_i0e(0) == 1);
  assert_true(signbit(ax_special_bessel_i1e(-0.0L)) && signbit(ax_special_bessel_i1e(-HUGE_VALL)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exact_values), cmocka_unit_test(ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
