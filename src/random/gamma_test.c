/* How gamma draws move with their parameter: against differences of the share of gamma numbers below x, summed here term by term. The
   loops of draws that are accepted or not: alone, in batches, over devices. */
#include <math.h>

#include "axle/axle.h"
#include "axle/special.h"
#include "random/rejection.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* P(a, x), by its power series. */
static long double share_below(long double a, long double x) {
  long double term = expl(a * logl(x) - x - lgammal(a + 1)), sum = term;
  for (int k = 1; k < 4000; k++) sum += term *= x / (a + k);
  return sum;
}

static double expected(double a, double x) {
  const long double h = 1e-5L * a, slope = (share_below(a + h, x) - share_below(a - h, x)) / (2 * h);
  return (double)(-slope / expl((a - 1) * logl(x) - x - lgammal(a)));
}

static AX_BODY(grad_of) { out[0] = ax_random_gamma_grad(in[0], in[1]); }

static void derivative(void **state) {
  (void)state;
  static const double a[] = {0.05, 0.3, 0.5, 1, 1, 2.5, 3, 10, 60, 60, 300}, x[] = {0.01, 0.9, 3, 0.2, 5, 2.4, 9, 4, 50, 80, 310};
  enum { POINTS = sizeof a / sizeof a[0] };
  const ax_host_array in[] = {ax_host_view(AX_F64, AX_DIMS(POINTS), a), ax_host_view(AX_F64, AX_DIMS(POINTS), x)};
  ax_host_array out;
  TEST_OK(ax_apply(NULL, AX_FN(grad_of, 2, 1), in, &out));
  for (int i = 0; i < POINTS; i++) {
    const double found = ((const double *)out.data)[i], wanted = expected(a[i], x[i]);
    if (!(fabs(found - wanted) <= 1e-7 * fabs(wanted))) fail_msg("at %g and %g: %.12g instead of %.12g", a[i], x[i], found, wanted);
  }
  ax_host_array_release(&out);
}

/* Where there is no draw there is no derivative, and no loop without end. */
static void edges(void **state) {
  (void)state;
  static const double a[] = {-1, 0, NAN, 2, 2, 2, 1e9}, x[] = {1, 1, 1, -1, NAN, 0, 1e9};
  const ax_host_array in[] = {ax_host_view(AX_F64, AX_DIMS(7), a), ax_host_view(AX_F64, AX_DIMS(7), x)};
  ax_host_array out;
  TEST_OK(ax_apply(NULL, AX_FN(grad_of, 2, 1), in, &out));
  const double *found = out.data;
  for (int i = 0; i < 5; i++) assert_true(isnan(found[i]));
  assert_true(found[5] == 0 && isfinite(found[6]));
  ax_host_array_release(&out);
}

/* --- The loop of draws that are accepted or not --- */

enum { DRAWS = 100 };

/* Uniform numbers below 1/4, ten times as large. */
static AX_BODY(next_small) {
  const ax_draw *draw = context;
  const ax_value keys = ax_draw_keys_of(draw, in[0], 2), u = ax_draw_unit_of(draw, keys, 1);
  ax_draw_accept(in, out, ax_at(keys, 0, 0), ax_mul(u, ax_real(10)), ax_lt(u, ax_real(0.25)));
}

static AX_BODY(small) {
  ax_draw draw = {.name = "test", .key = in[0], .dtype = AX_F32, .shape = {.count = 1, .v = {DRAWS}}};
  out[0] = ax_draw_until_accepted(&draw, ax_full(AX_BOOL, AX_DIMS(), 1), AX_CLOSURE(next_small, 3, 3, &draw));
  out[1] = ax_draw_any(ax_lt(out[0], ax_draw_filled(&draw, 0)));
}

static void accepted_draws(void **state) {
  (void)state;
  static const uint32_t key[] = {1, 2};
  const ax_host_array in = ax_host_view(AX_U32, AX_DIMS(2), key);
  ax_host_array out[2];
  double sum = 0;
  TEST_OK(ax_apply(NULL, AX_FN(small, 1, 2), &in, out));
  for (int i = 0; i < DRAWS; i++) {
    const double x = (double)((const float *)out[0].data)[i];
    assert_true(x >= 0 && x < 2.5);
    sum += x;
  }
  assert_true(fabs(sum / DRAWS - 1.25) < 0.3 && !*(const bool *)out[1].data);
  for (int i = 0; i < 2; i++) ax_host_array_release(&out[i]);
}

/* --- Loops of a batch, and over devices: each key gives the numbers that it gives alone --- */

enum { KEYS = 5, EACH = 12, KINDS = 5 };

static AX_BODY(of_key) {
  const ax_value rates = ax_add(ax_mul(ax_iota(AX_F32, AX_DIMS(EACH), 0), ax_real(3)), ax_real(0.5)); /* on both sides of 10 */
  out[0] = ax_random_gamma(in[0], AX_F32, AX_DIMS(EACH), ax_real(0.3));
  out[1] = ax_convert_element_type(ax_random_poisson(in[0], AX_S32, AX_DIMS(EACH), rates), AX_F32);
  out[2] = ax_random_binomial(in[0], AX_F32, AX_DIMS(EACH), rates, ax_real(0.4));
  out[3] = ax_random_beta(in[0], AX_F32, AX_DIMS(EACH), rates, ax_real(2));
  out[4] = ax_convert_element_type(ax_random_gamma(in[0], AX_BF16, AX_DIMS(EACH), ax_real(2)), AX_F32);
}

static AX_BODY(of_batch) { ax_vmap(AX_FN(of_key, 1, KINDS), AX_LIST(1, in), AX_LIST(KINDS, out), NULL); }

static AX_BODY(of_devices) {
  of_key(in, out, NULL);
  for (int k = 0; k < KINDS; k++) out[k] = ax_with_sharding(out[k], context, "d");
}

static void same_alone_in_batches_and_over_devices(void **state) {
  (void)state;
  static const uint32_t keys[KEYS][2] = {{0, 1}, {0, 2}, {7, 7}, {UINT32_MAX, 0}, {9, 0x80000000}};
  const ax_host_array all = ax_host_view(AX_U32, AX_DIMS(KEYS, 2), keys);
  ax_host_array together[KINDS], alone[KINDS], cut[KINDS];
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_OK(ax_apply(NULL, AX_FN(of_batch, 1, KINDS), &all, together));
  for (int i = 0; i < KEYS; i++) {
    const ax_host_array key = ax_host_view(AX_U32, AX_DIMS(2), keys[i]);
    TEST_OK(ax_apply(NULL, AX_FN(of_key, 1, KINDS), &key, alone));
    TEST_OK(ax_apply(NULL, AX_CLOSURE(of_devices, 1, KINDS, &mesh), &key, cut));
    for (int k = 0; k < KINDS; k++) {
      assert_memory_equal((const float *)together[k].data + i * EACH, alone[k].data, EACH * sizeof(float));
      assert_memory_equal(cut[k].data, alone[k].data, EACH * sizeof(float));
      for (int e = 0; e < EACH; e++) assert_true(((const float *)alone[k].data)[e] >= 0);
      ax_host_array_release(&alone[k]);
      ax_host_array_release(&cut[k]);
    }
  }
  for (int k = 0; k < KINDS; k++) ax_host_array_release(&together[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(derivative), cmocka_unit_test(edges), cmocka_unit_test(accepted_draws),
                                     cmocka_unit_test(same_alone_in_batches_and_over_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
