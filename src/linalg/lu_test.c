/* Large factors of lu, which are made by halves: what they give beside the matrix, the sizes of l, matrices without full rank. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/blocked.h"
#include "ops/sort.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_value largest(ax_value x) { return ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false); }

/* x -> |l u - p x|, |l|, how many pivots stand before their row, l and u, pivots */
static AX_BODY(checked) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], k = m < n ? m : n;
  ax_value f[3];
  ax_lu(in[0], AX_LIST(3, f));
  const ax_value order = ax_broadcast_to(ax_expand_dims(f[2], -1), AX_LIST(type.rank, type.dims));
  const ax_value low = ax_matrix_lower(ax_matrix_part(f[0], 0, m, 0, k), -1), l = ax_add(low, ax_matrix_eye(low, m, k));
  const ax_value u = ax_matrix_upper(ax_matrix_part(f[0], 0, k, 0, n), 0);
  const ax_type pivots = ax_typeof(f[1]);
  if (ax_failed()) return;
  const ax_value rows = ax_iota(AX_S32, AX_LIST(pivots.rank, pivots.dims), pivots.rank - 1);
  out[0] = largest(ax_sub(ax_matmul(l, u), ax_taken_in_order(in[0], order, type.rank - 2)));
  out[1] = largest(low);
  out[2] = ax_reduce_sum(ax_convert_element_type(ax_lt(f[1], rows), AX_S32), AX_ALL_DIMS, false);
  out[3] = f[0], out[4] = f[1];
}

static void one_matrix(ax_runtime *runtime, ax_type type, int64_t zeros) {
  test_random random = {13};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1), *out[5];
  const int64_t n = type.dims[type.rank - 1];
  assert_true(ax_is_blocked_lu(type.dtype, type.dims[type.rank - 2], n));
  for (int64_t at = 0; at < test_elems(x); at++) /* columns of zeros, and one that is another's double */
    if (zeros > 0 && (at % n < zeros || at % n == 300)) test_set(x, at, at % n == 300 ? 2 * test_get(x, at - 1) : 0);
  ax_program *program = test_trace(checked, NULL, &type, 1, 5);
  test_execute(runtime, program, &x, out);
  const double tolerance = type.dtype == AX_F32 ? 1e-4 : 1e-12;
  if (!(test_get(out[0], 0) < tolerance)) fail_msg("%d columns: off by %g", (int)n, test_get(out[0], 0));
  assert_true(test_get(out[1], 0) <= 1);
  assert_true(test_get(out[2], 0) == 0);
  test_release(out, 5);
  ax_tensor_release(x);
  ax_program_release(program);
}

static void by_halves(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{512, 512}, {513, 700}, {700, 513}, {512, 1200}, {1300, 512}};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    one_matrix(runtime, TEST_TYPE(AX_F64, sizes[i][0], sizes[i][1]), 0);
    one_matrix(runtime, TEST_TYPE(AX_F32, sizes[i][0], sizes[i][1]), 0);
    one_matrix(runtime, TEST_TYPE(AX_F64, sizes[i][0], sizes[i][1]), 70);
  }
  one_matrix(runtime, TEST_TYPE(AX_F64, 2, 515, 512), 0);
  ax_runtime_release(runtime);
}

/* With any number of threads the same bits. */
static AX_BODY(factors) {
  ax_value f[3];
  ax_lu(in[0], AX_LIST(3, f));
  out[0] = f[0], out[1] = f[1];
}

static void every_way(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 520, 513);
  test_random random = {21};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1);
  ax_program *program = test_trace(factors, NULL, &type, 1, 2);
  TEST_EVERY_WAY(program, &x, 1e-9);
  ax_tensor_release(x);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_halves), cmocka_unit_test(every_way)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
