/* Sorts by their definition: of few and of many elements, of all widths of keys, stable, with NaN last. */
#include "ops/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine/features.h"
#include "ops/sort_network.h"
#include "plan/passes.h"
#include "plan/plan.h"

#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static AX_BODY(both) {
  (void)context;
  out[0] = ax_sort(in[0], 0);
  out[1] = ax_argsort(in[0], 0);
}

static const ax_tensor *sorted; /* by by_key */

/* Equal elements stay in the order of their places. */
static int by_key(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  const uint64_t p = ax_sort_key(sorted->dtype, sorted->data, x), q = ax_sort_key(sorted->dtype, sorted->data, y);
  return p != q ? (p < q ? -1 : 1) : x < y ? -1 : x > y;
}

/* Elements from -range to range, so that some are equal. */
static void check(ax_dtype dtype, int64_t count, double range) {
  const ax_type type = TEST_TYPE(dtype, count);
  test_random random = {(uint64_t)count};
  ax_program *program = test_trace(both, NULL, &type, 1, 2);
  ax_tensor *in = test_random_tensor(&random, type, -range, range), *out[2];
  int64_t *places = malloc((size_t)count * sizeof places[0]);
  ax_runtime *runtime;
  if (dtype == AX_F64 || dtype == AX_F32) test_set(in, count / 2, 0.0 / 0.0);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, &in, out);
  for (int64_t i = 0; i < count; i++) places[i] = i;
  sorted = in;
  qsort(places, (size_t)count, sizeof places[0], by_key);
  for (int64_t i = 0; i < count; i++) {
    if (test_get(out[1], i) != (double)places[i])
      fail_msg("%s: of %lld, place %lld is %g, not %lld", ax_dtype_name(dtype), (long long)count, (long long)i, test_get(out[1], i),
               (long long)places[i]);
    assert_true(ax_sort_key(dtype, out[0]->data, i) == ax_sort_key(dtype, in->data, places[i]));
  }
  free(places);
  test_release(&in, 1);
  test_release(out, 2);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

static void few_elements(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S64, AX_BF16, AX_U8};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) check(dtypes[i], 20, 5);
}

/* Beyond 24 elements they are counted, digit by digit; beyond some 12000 by longer digits. */
static void many_elements(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S64, AX_BF16, AX_S16};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) check(dtypes[i], 3000, 100);
  check(AX_F32, 20000, 1e6);
  check(AX_F64, 20000, 1e6);
}

/* Chunks of numbers of all kinds, each beside the keys of others: equal ones, zeros of both signs, infinities and NaNs. */
static void chunks(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_S32, AX_F64, AX_F16, AX_S8, AX_U8, AX_S16, AX_U16, AX_U32, AX_S64, AX_U64};
  static const double strange[] = {0, -0.0, 1e-40, -1e-40, HUGE_VAL, -HUGE_VAL, NAN, -NAN, -7};
  const int64_t count = 2 * AX_SORT_CHUNK;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_dtype dtype = dtypes[d];
    test_random random = {7};
    ax_tensor *x = test_random_tensor(&random, TEST_TYPE(dtype, count), -5, 5);
    for (size_t i = 0; i < AX_COUNT(strange) && ax_is_float(dtype); i++) test_set(x, 3 * (int64_t)i, strange[i]);
    for (int64_t i = 0; i < count; i++)
      for (int64_t at = 0; at <= AX_SORT_CHUNK; at += AX_SORT_CHUNK / 4) {
        const uint64_t key = ax_total_key(dtype, x->data, i);
        bool above = false;
        for (int64_t k = at; k < at + AX_SORT_CHUNK; k++) above = above || ax_total_key(dtype, x->data, k) > key;
        assert_int_equal(ax_sort_any_above(dtype, x->data, at, key), above);
      }
    test_release(&x, 1);
  }
}

static AX_BODY(all_greatest) {
  ax_top_k(in[0], 6, AX_LIST(2, out));
  (void)context;
}

/* Compiled and by the reference: the total order of floats, NaN first and -NaN last. */
static void greatest_in_total_order(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  static const double values[] = {-HUGE_VAL, -0.0, -NAN, NAN, 0.0, HUGE_VAL}, places[] = {3, 5, 4, 1, 0, 2};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type type = TEST_TYPE(dtypes[d], 6);
    ax_program *program = test_trace(all_greatest, NULL, &type, 1, 2);
    ax_tensor *in = test_tensor(type, values), *out[2][2];
    test_execute(runtime, program, &in, out[0]);
    TEST_OK(test_try(program, &in, out[1]));
    for (int i = 0; i < 2; i++)
      for (int64_t k = 0; k < 6; k++) assert_true(test_get(out[i][1], k) == places[k]);
    for (int i = 0; i < 2; i++) test_release(out[i], 2);
    test_release(&in, 1);
    ax_program_release(program);
  }
  ax_runtime_release(runtime);
}

static AX_BODY(three_greatest) {
  ax_top_k(in[0], 3, AX_LIST(2, out));
  (void)context;
}

/* The greatest lie before, in and behind whole chunks; of equal ones the first counts. */
static void greatest_of_long_rows(void **state) {
  (void)state;
  enum { columns = 3 * AX_SORT_CHUNK + 9, tie = 190 };
  static const int64_t at[][3] = {{0, 70, 200}, {200, 70, 1}, {130, 131, 199}, {5, 4, 3}};
  static const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_S32, AX_F64, AX_F16, AX_U8};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t r = 0; r < AX_COUNT(at); r++) {
      const ax_type type = TEST_TYPE(dtypes[d], columns);
      ax_program *program = test_trace(three_greatest, NULL, &type, 1, 2);
      double values[columns] = {[tie] = 7};
      for (int i = 0; i < 3; i++) values[at[r][i]] = 9 - i;
      ax_tensor *in = test_tensor(type, values), *out[2];
      test_execute(runtime, program, &in, out);
      for (int i = 0; i < 2; i++) assert_int_equal((int64_t)test_get(out[1], i), at[r][i]);
      assert_int_equal((int64_t)test_get(out[1], 2), at[r][2] < tie ? at[r][2] : tie);
      test_release(&in, 1);
      test_release(out, 2);
      ax_program_release(program);
    }
  ax_runtime_release(runtime);
}

/* --- The greatest of rows of any length and order --- */

static AX_BODY(some_greatest) {
  ax_top_k(in[0], *(const int64_t *)context, AX_LIST(2, out));
}

/* Greater elements first; equal ones in the order of their places. */
static int by_total_key(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  const uint64_t p = ax_total_key(sorted->dtype, sorted->data, x), q = ax_total_key(sorted->dtype, sorted->data, y);
  return p != q ? (p > q ? -1 : 1) : x < y ? -1 : x > y;
}

static void expect_greatest(ax_runtime *runtime, ax_tensor *x, int64_t k) {
  const int64_t n = x->dims[1];
  const ax_type type = TEST_TYPE(x->dtype, x->dims[0], n);
  ax_program *program = test_trace(some_greatest, &k, &type, 1, 2);
  ax_tensor *out[2];
  int64_t *places = malloc((size_t)n * sizeof places[0]);
  test_execute(runtime, program, &x, out);
  sorted = x;
  for (int64_t row = 0; row < x->dims[0]; row++) {
    for (int64_t i = 0; i < n; i++) places[i] = row * n + i;
    qsort(places, (size_t)n, sizeof places[0], by_total_key);
    for (int64_t i = 0; i < k; i++) {
      if ((int64_t)test_get(out[1], row * k + i) != places[i] - row * n)
        fail_msg("%s, %lld of %lld: place %lld is %g, not %lld", ax_dtype_name(x->dtype), (long long)k, (long long)n, (long long)i,
                 test_get(out[1], row * k + i), (long long)(places[i] - row * n));
      assert_true(ax_total_key(x->dtype, out[0]->data, row * k + i) == ax_total_key(x->dtype, x->data, places[i]));
    }
  }
  free(places);
  test_release(out, 2);
  ax_program_release(program);
}

/* Elements as they come, up, down, up in equal steps, and all equal. */
static void greatest_in_any_order(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_S32, AX_F64, AX_F16, AX_U8, AX_S8, AX_S64, AX_BOOL, AX_F8E4M3FN};
  static const int64_t sizes[][2] = {{1, 1}, {9, 1}, {25, 25}, {70, 3}, {1000, 1}, {1000, 7}, {1000, 600}, {5000, 40}, {5000, 1500}};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t s = 0; s < AX_COUNT(sizes); s++)
      for (int way = 0; way < 5; way++) {
        const int64_t n = sizes[s][0], count = 2 * n;
        test_random random = {(uint64_t)(7 * n + way)};
        ax_tensor *x = test_random_tensor(&random, TEST_TYPE(dtypes[d], 2, n), -100, 100);
        for (int64_t i = 0; i < count && way > 0; i++)
          test_set(x, i, way == 1 ? (double)(i % n) / 8 - 60 : way == 2 ? 60 - (double)(i % n) / 8 : way == 3 ? (double)(i % n / 90) : 3);
        if (ax_is_float(dtypes[d]) && n > 9) test_set(x, n / 2, NAN), test_set(x, n / 3, -NAN);
        expect_greatest(runtime, x, sizes[s][1]);
        test_release(&x, 1);
      }
  ax_runtime_release(runtime);
}

/* --- Short rows by themselves --- */

/* x -> x sorted; and sorted together with other numbers, which a network does not do */
static AX_BODY(alone_and_together) {
  const int64_t dimension = *(const int64_t *)context;
  const ax_type type = ax_typeof(in[0]);
  ax_value both[] = {in[0], ax_iota(AX_S32, AX_LIST(type.rank, type.dims), dimension)}, sorted_both[2];
  out[0] = ax_sort(in[0], dimension);
  ax_sort_together(AX_LIST(2, both), dimension, 1, AX_LIST(2, sorted_both));
  out[1] = sorted_both[0];
}

static uint32_t networks_in(ax_program *program) {
  ax_plan *plan;
  uint32_t count = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    count += op->kind == AX_OP_ROUTINE && op->routine->name != NULL && strcmp(op->routine->name, "sort_network") == 0;
  }
  ax_plan_destroy(plan);
  return count;
}

static bool has_strange(const ax_tensor *x) {
  for (int64_t i = 0; i < test_elems(x); i++)
    if (isnan(test_get(x, i)) || (test_get(x, i) == 0 && signbit(test_get(x, i)))) return true;
  return false;
}

/* The network itself, in registers of each width: the same bits. It leaves alone rows with strange numbers. */
static void expect_network(const ax_tensor *x, const ax_tensor *wanted, int64_t dimension) {
  ax_sort_network network;
  const int64_t inner = dimension + 1 == x->rank ? 1 : x->dims[dimension + 1], rows = x->dims[0] * inner;
  const size_t all = test_tensor_bytes(x);
  assert_true(ax_sort_network_make(x->dtype, x->dims[dimension], inner, &network));
  for (uint32_t bytes = 16; bytes <= 64 && bytes <= ax_machine_register_bytes(); bytes *= 2) {
    char *got = calloc(all, 1);
    bool sorts = true;
    for (int64_t row = 0, next; row < rows; row = next) {
      next = row + ax_sort_network_rows(&network, row, rows);
      assert_true(next > row && next <= rows);
      sorts = ax_sort_network_run(&network, bytes, x->data, got, row, next - row) && sorts;
    }
    assert_int_equal(sorts, !ax_is_float(x->dtype) || !has_strange(x));
    if (sorts) assert_memory_equal(got, wanted->data, all);
    free(got);
  }
}

/* Few different numbers, so that many are equal; of floats both infinities, subnormal ones and, where `strange`, NaN and -0 in
   some rows. */
static void short_rows_of(ax_runtime *runtime, test_random *random, ax_dtype dtype, ax_type type, int64_t dimension, bool strange) {
  static const double values[] = {HUGE_VAL, -HUGE_VAL, 1e-40, -1e-40, 0, NAN, -0.0, -NAN};
  ax_tensor *x = test_random_tensor(random, type, ax_dtype_get(dtype)->kind == AX_KIND_UNSIGNED ? 0 : -9, 9), *out[2];
  const int64_t kinds = strange ? AX_COUNT(values) : 5;
  for (int64_t i = 0; i < test_elems(x) && ax_is_float(dtype); i++)
    if (test_random_below(random, 9) == 0) test_set(x, i, values[test_random_below(random, kinds)]);
    else test_set(x, i, round(test_get(x, i)) + (strange ? -0.0 : 0.0)); /* -0 + 0 is 0 */
  ax_program *program = test_trace(alone_and_together, &dimension, &type, 1, 2);
  test_execute(runtime, program, &x, out);
  if (memcmp(out[0]->data, out[1]->data, test_tensor_bytes(x)) != 0)
    fail_msg("%s, rows of %d along dimension %d: not as digits sort them", ax_dtype_name(dtype), (int)type.dims[dimension],
             (int)dimension);
  const bool by_network = type.dims[dimension] >= 2 && type.dims[dimension] <= AX_NETWORK_EXTENT;
  assert_int_equal(networks_in(program), by_network);
  if (by_network) expect_network(x, out[1], dimension);
  test_release(&x, 1), test_release(out, 2);
  ax_program_release(program);
}

static void short_rows(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_S8, AX_U8, AX_S16, AX_U16, AX_S32, AX_U32, AX_S64, AX_U64, AX_F16, AX_BF16, AX_F32, AX_F64};
  test_random random = {41};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (int64_t n = 1; n <= 70; n += n < 20 ? 1 : n < 60 ? 5 : 1)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
      const int64_t rows = 1 + test_random_below(&random, 150), inner = 2 + test_random_below(&random, 90);
      const bool strange = test_random_below(&random, 2) == 0;
      short_rows_of(runtime, &random, dtypes[d], TEST_TYPE(dtypes[d], rows, n), 1, strange);
      short_rows_of(runtime, &random, dtypes[d], TEST_TYPE(dtypes[d], 3, n, inner), 1, strange);
    }
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(few_elements),
      cmocka_unit_test(many_elements),
      cmocka_unit_test(chunks),
      cmocka_unit_test(greatest_in_total_order),
      cmocka_unit_test(greatest_of_long_rows),
      cmocka_unit_test(greatest_in_any_order),
      cmocka_unit_test(short_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
