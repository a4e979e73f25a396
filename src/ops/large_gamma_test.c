/* Gamma numbers of large parameters, beside sums of their series and fractions with 60 digits; and the functions that use them, on both
   sides of where they do. */
#include "ops/large_gamma.h"

#include <math.h>

#include "axle/special.h"
#include "axle/transform.h"
#include "support/cmocka.h"

#include "support/tensor.h"

static const struct {
  double a, x, below, above, density, move;
} known[] = {
    {20000, 20000, 0.50094031623374932, 0.49905968376625068, 0.0028209361638136125, 1.0000083333749988},
    {20000, 20141, 0.84062813112647829, 0.15937186887352171, 0.0017080327556613803, 1.0035251079950247},
    {20000, 19300, 2.773750727879669e-7, 0.99999972262492721, 1.0429660054448149e-8, 0.98230036905180419},
    {20000, 21990, 1, 1.2848279557833153e-42, 1.169103534355616e-43, 1.0481861829769849},
    {100000, 100000, 0.50042052211036518, 0.49957947788963482, 0.0012615652097053006, 1.0000016666683333},
    {100000, 99000, 0.00075741992117476797, 0.99924258007882523, 8.3026392372621925e-6, 0.99498490779812499},
    {1e6, 1e6, 0.50013298076087259, 0.49986701923912741, 0.00039894224715624403, 1.0000001666666833},
    {1e6, 1002000, 0.97719590410123014, 0.022804095898769863, 5.4026860136788029e-5, 1.0009995008324179},
    {1e6, 998500, 0.066753172831609871, 0.93324682716839013, 0.00012956614480359094, 0.99924979126010487},
    {3e7, 3e7, 0.50002427885401765, 0.49997572114598235, 7.2836561837148155e-5, 1.0000000055555556},
    {3e7, 30010000, 0.96604472409942301, 0.033955275900576992, 1.3757558546025767e-5, 1.0001666537077153},
};
enum { COUNT = AX_COUNT(known), RESULTS = 8 };

static AX_BODY(all) {
  out[0] = ax_large_gamma_share(in[0], in[1], true);
  out[1] = ax_large_gamma_share(in[0], in[1], false);
  out[2] = ax_large_gamma_density(in[0], in[1]);
  out[3] = ax_large_gamma_move(in[0], in[1]);
  out[4] = ax_igamma(in[0], in[1]);
  out[5] = ax_igammac(in[0], in[1]);
  out[6] = ax_random_gamma_grad(in[0], in[1]);
  out[7] = ax_neg(ax_div(ax_igamma_grad_a(in[0], in[1]), out[2]));
}

/* With the error of an exponent of some hundreds. */
static void close_to(double made, double expected, const char *what, double a, double x) {
  if (!(fabs(made - expected) <= 4e-13 * fabs(expected))) fail_msg("%s of %g, %g: %.17g, not %.17g", what, a, x, made, expected);
}

static void of(uint32_t count, const double *a, const double *x, ax_tensor **out) {
  const ax_type types[] = {TEST_TYPE(AX_F64, count), TEST_TYPE(AX_F64, count)};
  ax_tensor *in[2];
  ax_program *program;
  program = test_trace(all, NULL, types, 2, RESULTS);
  for (int k = 0; k < 2; k++) {
    TEST_OK(ax_tensor_create(&types[k], &in[k]));
    for (uint32_t i = 0; i < count; i++) test_set(in[k], i, k == 0 ? a[i] : x[i]);
  }
  test_run(program, in, out);
  for (int k = 0; k < 2; k++) ax_tensor_release(in[k]);
  ax_program_release(program);
}

static void as_with_more_digits(void **state) {
  double a[COUNT], x[COUNT];
  ax_tensor *out[RESULTS];
  (void)state;
  for (int i = 0; i < COUNT; i++) a[i] = known[i].a, x[i] = known[i].x;
  of(COUNT, a, x, out);
  for (int i = 0; i < COUNT; i++) {
    const double expected[] = {known[i].below, known[i].above, known[i].density, known[i].move,
                               known[i].below, known[i].above, known[i].move,    known[i].move};
    static const char *const names[] = {"share below", "share above", "density", "move", "igamma", "igammac", "random_gamma_grad", "igamma_grad_a"};
    for (int k = 0; k < RESULTS; k++) close_to(test_get(out[k], i), expected[k], names[k], a[i], x[i]);
  }
  for (int k = 0; k < RESULTS; k++) ax_tensor_release(out[k]);
}

/* Far beyond what a series could sum: 1/2 + 1 / (3 sqrt(2 pi a)), and 1 + 1 / (6 a). */
static void at_the_mean(void **state) {
  const double a[] = {1e8, 1e10, 1e12, 1e15};
  ax_tensor *out[RESULTS];
  (void)state;
  of(AX_COUNT(a), a, a, out);
  for (int i = 0; i < (int)AX_COUNT(a); i++) {
    const double more = 1 / (3 * sqrt(2 * 3.14159265358979323846 * a[i]));
    close_to(test_get(out[4], i), 0.5 + more, "igamma", a[i], a[i]);
    close_to(test_get(out[5], i), 0.5 - more, "igammac", a[i], a[i]);
    close_to(test_get(out[6], i), 1 + 1 / (6 * a[i]), "random_gamma_grad", a[i], a[i]);
  }
  for (int k = 0; k < RESULTS; k++) ax_tensor_release(out[k]);
}

static AX_BODY(has) { out[0] = ax_convert_element_type(ax_large_gamma_has(in[0], in[1]), AX_F64); }

static void where_it_holds(void **state) {
  static const struct {
    double a, x, expected;
  } cases[] = {{2e4, 2e4, 1}, {19999, 2e4, 0}, {1e5, 1.1e5, 1}, {1e5, 111000, 0}, {1e5, 9e4, 1}, {1e5, 89000, 0}, {INFINITY, INFINITY, 0}, {NAN, 1, 0}, {2e4, NAN, 0}};
  enum { count = AX_COUNT(cases) };
  const ax_type types[] = {TEST_TYPE(AX_F64, count), TEST_TYPE(AX_F64, count)};
  ax_program *program = test_trace(has, NULL, types, 2, 1);
  ax_tensor *in[2], *out;
  (void)state;
  for (int k = 0; k < 2; k++) {
    TEST_OK(ax_tensor_create(&types[k], &in[k]));
    for (int i = 0; i < count; i++) test_set(in[k], i, k == 0 ? cases[i].a : cases[i].x);
  }
  test_run(program, in, &out);
  for (int i = 0; i < count; i++) assert_true(test_get(out, i) == cases[i].expected);
  for (int k = 0; k < 2; k++) ax_tensor_release(in[k]);
  ax_tensor_release(out);
  ax_program_release(program);
}

/* Where the expansion begins: both ways there give the same, up to what the logarithms of the other lose. */
static void nothing_jumps(void **state) {
  enum { pairs = 6 };
  const double below[pairs] = {19999.999999, 19999.999999, 19999.999999, 50000, 50000, 2e6}, at[pairs] = {19950, 20000, 20100, 45000 - 1e-9, 55000 + 1e-9, 2200000 + 1e-8};
  double a[2 * pairs], x[2 * pairs];
  ax_tensor *out[RESULTS];
  (void)state;
  for (int i = 0; i < pairs; i++) {
    a[2 * i] = below[i], x[2 * i] = at[i];
    a[2 * i + 1] = i < 3 ? 20000 : below[i];
    x[2 * i + 1] = i < 3 ? at[i] : at[i] + (at[i] < below[i] ? 2e-9 : -2e-8);
  }
  of(2 * pairs, a, x, out);
  for (int k = 4; k < 7; k++)
    for (int i = 0; i < pairs; i++) {
      const double here = test_get(out[k], 2 * i), there = test_get(out[k], 2 * i + 1);
      if (!(fabs(here - there) <= 1e-6 * fabs(there) + 1e-300)) fail_msg("result %d of %g, %g: %.17g and %.17g", k, a[2 * i], x[2 * i], here, there);
    }
  for (int k = 0; k < RESULTS; k++) ax_tensor_release(out[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_with_more_digits), cmocka_unit_test(at_the_mean), cmocka_unit_test(nothing_jumps),
                                     cmocka_unit_test(where_it_holds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
