/* Balancing: what it says of a matrix is true, what is triangular in some order becomes so, and scales are for the rest alone. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "plain/balance.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { N = 6, BATCH = 4 };

static AX_BODY(balance) {
  const ax_plain_balanced made = ax_plain_balance(in[0]);
  (void)context;
  out[0] = made.matrices, out[1] = made.scales, out[2] = made.places;
}

/* Full; lower; block of rows and columns 1 and 4 beside what is triangular in some order; nothing but a diagonal. */
static bool is_there(int64_t kind, int64_t i, int64_t j) {
  static const int order[N] = {3, 0, 5, 2, 1, 4}; /* row i comes there; 1 and 4 are places 0 and 1 */
  if (kind == 0) return true;
  if (kind == 1) return i >= j;
  if (kind == 2) return order[i] <= order[j] || (order[i] < 2 && order[j] < 2);
  return i == j;
}

static int64_t element(int64_t b, int64_t i, int64_t j) { return (b * N + i) * N + j; }

static void check(ax_dtype dtype) {
  const ax_type type = TEST_TYPE(dtype, BATCH, N, N);
  const int64_t parts = ax_is_complex(dtype) ? 2 : 1;
  test_random random = {3};
  ax_program *program = test_trace(balance, NULL, &type, 1, 3);
  ax_tensor *x = test_random_tensor(&random, type, 1, 2), *got[3];
  for (int64_t at = 0; at < BATCH * N * N; at++)
    for (int64_t part = 0; part < parts; part++) {
      const int64_t i = at / N % N, j = at % N;
      test_set(x, at * parts + part, is_there(at / (N * N), i, j) ? ldexp(test_get(x, at * parts + part), (int)(3 * (i - j))) : 0);
    }
  TEST_OK(test_try(program, &x, got));
  for (int64_t b = 0; b < BATCH; b++) {
    bool met[N] = {false};
    for (int64_t i = 0; i < N; i++) {
      const int64_t to = (int64_t)test_get(got[2], b * N + i);
      assert_true(to >= 0 && to < N && !met[to]);
      met[to] = true;
      for (int64_t j = 0; j < N; j++) {
        const int64_t there = (int64_t)test_get(got[2], b * N + j);
        const double by = test_get(got[1], b * N + there) / test_get(got[1], b * N + to);
        for (int64_t part = 0; part < parts; part++)
          assert_true(test_get(got[0], element(b, to, there) * parts + part) == by * test_get(x, element(b, i, j) * parts + part));
        if (b > 0 && to > there && !(b == 2 && to < 2)) assert_true(test_get(got[0], element(b, to, there) * parts) == 0);
      }
      if (b == 1 || b == 3 || (b == 2 && to > 1)) assert_true(test_get(got[1], b * N + to) == 1);
      if (b == 0 && i > 0) assert_true(test_get(got[1], b * N + to) != test_get(got[1], b * N));
    }
  }
  test_release(got, 3), ax_tensor_release(x);
  ax_program_release(program);
}

static void balances(void **state) {
  (void)state;
  check(AX_F32);
  check(AX_C128);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(balances)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
