/* How exact sums are: long and odd ones, along rows, columns and everything, and products, against the same in f64 with the error
   of each addition carried along. The bounds are those of include/axle/ops.h. */
#include <math.h>
#include <stdio.h>

#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { very_long = 1 << 21 };

typedef struct sum_case {
  ax_type type;
  int64_t axes[AX_MAX_RANK];
  uint32_t axis_count;
  bool product; /* of the operand with itself, in place of its sum; along its only dimension */
} sum_case;

static void body(const ax_value *in, ax_value *out, void *context) {
  const sum_case *c = context;
  out[0] = c->product ? ax_matmul(in[0], in[0]) : ax_reduce_sum(in[0], AX_LIST(c->axis_count, c->axes), false);
}

/* Half the distance from 1 to the next number. */
static double unit(ax_dtype dtype) {
  return ldexp(1, dtype == AX_F64 ? -53 : dtype == AX_F32 ? -24 : dtype == AX_F16 ? -11 : -8);
}

typedef struct exact_sum { /* Neumaier's */
  double sum, low, absolute;
  int64_t count;
} exact_sum;

static void add(exact_sum *s, double x) {
  double t = s->sum + x;
  s->low += fabs(s->sum) >= fabs(x) ? s->sum - t + x : x - t + s->sum;
  s->sum = t;
  s->absolute += fabs(x);
  s->count++;
}

static exact_sum exactly(const sum_case *c, const ax_tensor *x, int64_t result) {
  exact_sum s = {0};
  int64_t strides[AX_MAX_RANK], base = 0, length = 1;
  bool reduced[AX_MAX_RANK] = {false};
  for (uint32_t i = 0; i < c->axis_count; i++) reduced[c->axes[i]] = true;
  int64_t pitch = 1;
  for (uint32_t d = x->rank; d-- > 0; pitch *= x->dims[d]) strides[d] = pitch;
  for (uint32_t d = x->rank; d-- > 0;) {
    if (reduced[d]) length *= x->dims[d];
    else base += result % x->dims[d] * strides[d], result /= x->dims[d];
  }
  if (length > very_long) { /* all are the same */
    double value = test_get(x, base), term = c->product ? value * value : value;
    return (exact_sum){(double)length * term, 0, (double)length * fabs(term), length};
  }
  for (int64_t j = 0; j < length; j++) {
    int64_t at = base, rest = j;
    for (uint32_t d = x->rank; d-- > 0;)
      if (reduced[d]) at += rest % x->dims[d] * strides[d], rest /= x->dims[d];
    double value = test_get(x, at);
    add(&s, c->product ? value * value : value);
  }
  return s;
}

/* One program on one and on several threads: the same bits, and within the bound. */
static void check_values(const sum_case *c, ax_program *program, ax_runtime *const *runtimes, ax_tensor *x) {
  ax_tensor *y, *again;
  test_execute(runtimes[0], program, &x, &y);
  test_execute(runtimes[1], program, &x, &again);
  assert_memory_equal(y->data, again->data, test_tensor_bytes(y));
  double u = unit(c->type.dtype), sum_u = u < unit(AX_F32) ? u : unit(AX_F32);
  for (int64_t i = 0, count = test_elems(y); i < count; i += 1 + count / 50) {
    exact_sum s = exactly(c, x, i);
    double exact = s.sum + s.low, error = fabs(test_get(y, i) - exact);
    double most = u * fabs(exact) + (c->type.dtype == AX_F64 ? s.count : 25) * sum_u * s.absolute;
    if (error <= most) continue;
    print_error("result %lld of %lld: %.9g, not %.9g: off by %.3g, above %.3g\n", (long long)i, (long long)count, test_get(y, i),
                exact, error, most);
    fail();
  }
  test_release(&y, 1);
  test_release(&again, 1);
}

static void check(sum_case c) {
  ax_runtime *runtimes[2];
  test_random random = {3};
  ax_tensor *x;
  ax_program *program = test_trace(body, &c, &c.type, 1, 1);
  for (uint32_t i = 0; i < 2; i++) TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1 + 2 * i}, &runtimes[i]));
  if (ax_type_elems(&c.type) <= very_long) {
    x = test_random_tensor(&random, c.type, -1, 1);
    check_values(&c, program, runtimes, x);
  } else {
    TEST_OK(ax_tensor_create(&c.type, &x));
  }
  for (int64_t i = 0; i < test_elems(x); i++) test_set(x, i, 0.1); /* every addition errs to the same side */
  check_values(&c, program, runtimes, x);
  test_release(&x, 1);
  ax_program_release(program);
  for (uint32_t i = 0; i < 2; i++) ax_runtime_release(runtimes[i]);
}

static void of_everything(void **state) {
  (void)state;
  static const int64_t lengths[] = {1, 7, 1 << 10, (1 << 10) + 1, 99991, (1 << 17) + 1, (1 << 20) + 3};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  for (size_t d = 0; d < 4; d++)
    for (size_t i = 0; i < AX_COUNT(lengths); i++) {
      if (dtypes[d] != AX_F32 && lengths[i] > 100000) continue; /* the longest are more than f16 can hold */
      check((sum_case){TEST_TYPE(dtypes[d], lengths[i]), {0}, 1, false});
      check((sum_case){TEST_TYPE(dtypes[d], lengths[i]), {0}, 1, true});
    }
  check((sum_case){TEST_TYPE(AX_F32, 1 << 24), {0}, 1, false});
  check((sum_case){TEST_TYPE(AX_F32, 1 << 24), {0}, 1, true});
}

/* Every way in which a loop nest sums. */
static void along_dimensions(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16};
  for (size_t d = 0; d < 3; d++) {
    ax_dtype t = dtypes[d];
    check((sum_case){TEST_TYPE(t, 5, 70001), {1}, 1, false});
    check((sum_case){TEST_TYPE(t, 100003, 3), {0}, 1, false});
    check((sum_case){TEST_TYPE(t, 100003, 16), {0}, 1, false});
    check((sum_case){TEST_TYPE(t, 20001, 100), {0}, 1, false});
    check((sum_case){TEST_TYPE(t, 3001, 700), {0}, 1, false});
    check((sum_case){TEST_TYPE(t, 31, 17, 1001), {0, 2}, 2, false});
    check((sum_case){TEST_TYPE(t, 301, 17, 101), {0, 1}, 2, false});
    check((sum_case){TEST_TYPE(t, 9, 9, 9), {0, 1, 2}, 3, false});
  }
}

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

/* Matrices over a long dimension: the libraries add blocks of it in an order of theirs, and the blocks' sums do not get worse. */
static void of_matrices(void **state) {
  (void)state;
  enum { m = 3, n = 2 };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64};
  static const int64_t lengths[] = {1 << 16, 200003, 1 << 20};
  for (size_t c = 0; c < 6; c++) {
    ax_dtype t = dtypes[c % 2];
    int64_t k = lengths[c / 2];
    ax_type types[] = {TEST_TYPE(t, m, k), TEST_TYPE(t, k, n)};
    ax_program *program = test_trace(product, NULL, types, 2, 1);
    ax_runtime *runtime;
    ax_tensor *in[2], *out;
    TEST_OK(ax_runtime_create(NULL, &runtime));
    for (uint32_t i = 0; i < 2; i++) {
      TEST_OK(ax_tensor_create(&types[i], &in[i]));
      for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, 0.1);
    }
    test_execute(runtime, program, in, &out);
    double x = test_get(in[0], 0), exact = x * x * (double)k;
    for (int64_t i = 0; i < m * n; i++) TEST_NEAR(test_get(out, i) / exact, 1, (t == AX_F32 ? 64 : 4096) * unit(t));
    test_release(in, 2);
    test_release(&out, 1);
    ax_runtime_release(runtime);
    ax_program_release(program);
  }
}

static void along_middle(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_dot_general(in[0], in[1], AX_DIMS(2), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0));
}

/* Batches and large results, which are not cut along k when they are lowered: numbers of one sign, whose sums in f32 would lose
   some with each block. */
static void of_long_products(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{3, 4, 60013, 5}, {2, 70, 20000, 33}, {1, 700, 40000, 500}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64};
  for (size_t c = 0; c < 6; c++) {
    const int64_t *size = sizes[c / 2], batch = size[0], m = size[1], k = size[2], n = size[3];
    const ax_dtype t = dtypes[c % 2];
    ax_type types[] = {TEST_TYPE(t, batch, m, k), TEST_TYPE(t, batch, k, n)};
    ax_program *program = test_trace(along_middle, NULL, types, 2, 1);
    ax_tensor *in[2], *out[2];
    test_random random = {5};
    for (uint32_t i = 0; i < 2; i++) in[i] = test_random_tensor(&random, types[i], 0.5, 1.5);
    for (uint32_t i = 0; i < 2; i++) {
      ax_runtime *runtime;
      TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1 + 2 * i}, &runtime));
      test_execute(runtime, program, in, &out[i]);
      ax_runtime_release(runtime);
    }
    assert_memory_equal(out[0]->data, out[1]->data, test_tensor_bytes(out[0]));
    for (int64_t e = 0; e < batch * m * n; e += 1 + batch * m * n / 50) {
      const int64_t row = e / n, column = e % n, b = row / m;
      exact_sum s = {0};
      for (int64_t j = 0; j < k; j++) {
        const double x = test_get(in[0], row * k + j), y = test_get(in[1], (b * k + j) * n + column);
        add(&s, x * y);
        s.low += fma(x, y, -(x * y));
      }
      const double off = fabs(test_get(out[0], e) - s.sum - s.low) / s.absolute / unit(t);
      if (off > 6)
        fail_msg("%lld by %lld by %lld of %s: off by %.3g units", (long long)m, (long long)k, (long long)n, ax_dtype_name(t), off);
    }
    test_release(in, 2);
    test_release(out, 2);
    ax_program_release(program);
  }
}

static void by_vectors(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
  out[1] = ax_dot_general(in[1], in[0], AX_DIMS(0), AX_DIMS(1), AX_DIMS(), AX_DIMS());
}

/* Many rows of few numbers, from either side. */
static void of_short_rows(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32};
  for (int64_t k = 3; k <= 33; k += 5)
    for (size_t d = 0; d < 6; d++) {
      const int64_t m = (1 << (16 + d / 3)) / k + 5;
      ax_type types[] = {TEST_TYPE(dtypes[d % 3], m, k), TEST_TYPE(dtypes[d % 3], k)};
      ax_program *program = test_trace(by_vectors, NULL, types, 2, 2);
      ax_runtime *runtime;
      ax_tensor *in[2], *out[2];
      TEST_OK(ax_runtime_create(NULL, &runtime));
      for (uint32_t i = 0; i < 2; i++) {
        TEST_OK(ax_tensor_create(&types[i], &in[i]));
        for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, (double)(e * 7 % 13) - 5);
      }
      test_execute(runtime, program, in, out);
      for (int64_t row = 0; row < m; row++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++) sum += test_get(in[0], row * k + j) * test_get(in[1], j);
        assert_true(test_get(out[0], row) == sum && test_get(out[1], row) == sum); /* of small integers: exact */
      }
      test_release(in, 2);
      test_release(out, 2);
      ax_runtime_release(runtime);
      ax_program_release(program);
    }
}

static void sum_over_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}

static void over_devices(void **state) {
  (void)state;
  static const int64_t counts[] = {100, 1000, 1 << 16};
  static const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_F64};
  for (size_t c = 0; c < 9; c++) {
    char mesh[32];
    ax_dtype t = dtypes[c % 3];
    int64_t count = counts[c / 3];
    snprintf(mesh, sizeof mesh, "d=%lld", (long long)count);
    ax_type type = TEST_TYPE(t, count);
    ax_program *program = test_trace_map(&(test_map){mesh, {"d"}, {""}, .body = sum_over_devices}, &type);
    ax_runtime *runtime;
    ax_tensor *in, *out;
    TEST_OK(ax_runtime_create(NULL, &runtime));
    TEST_OK(ax_tensor_create(&type, &in));
    for (int64_t e = 0; e < count; e++) test_set(in, e, 0.1);
    test_execute(runtime, program, &in, &out);
    double exact = test_get(in, 0) * (double)count, most = t == AX_F64 ? (double)count * unit(t) : unit(t) + 100 * unit(AX_F32);
    if (t == AX_F32 && count > 128) most = 2 * unit(t);
    TEST_NEAR(test_get(out, 0) / exact, 1, most);
    test_release(&in, 1);
    test_release(&out, 1);
    ax_runtime_release(runtime);
    ax_program_release(program);
  }
}

/* --- Sums of -0 alone are 0, since a sum begins with 0 --- */

static void rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_DIMS(1), false);
}
static void columns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
}
static void with_ones(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_type type = ax_typeof(in[0]);
  out[0] = ax_matmul(in[0], ax_full(type.dtype, AX_DIMS(type.dims[1], 3), 1));
}
static void windows(const ax_value *in, ax_value *out, void *context) {
  const int64_t *size = context;
  out[0] = ax_reduce_window_sum(in[0], AX_DIMS(1, *size), NULL);
}

static void of_negative_zeros(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  static const int64_t lengths[] = {1, 2, 3, 7, 16, 17, 100, 1000};
  static const ax_function functions[] = {rows, columns, with_ones, windows};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t t = 0; t < 4; t++)
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
      for (size_t f = 0; f < 4; f++) {
        const int64_t n = lengths[l], rows_count = f == 1 ? n : 5, width = f == 1 ? 5 : n;
        const ax_type type = TEST_TYPE(dtypes[t], rows_count, width);
        ax_program *program;
        ax_tensor *in, *out;
        TEST_OK(ax_trace(AX_CLOSURE(functions[f], 1, 1, (void *)(uintptr_t)&n), &type, &program));
        TEST_OK(ax_tensor_create(&type, &in));
        for (int64_t e = 0; e < rows_count * width; e++) test_set(in, e, -0.0);
        test_execute(runtime, program, &in, &out);
        for (int64_t e = 0; e < test_elems(out); e++)
          if (test_get(out, e) != 0 || signbit(test_get(out, e)))
            fail_msg("function %zu, dtype %s, %lld terms: a sum of -0 is %g", f, ax_dtype_name(dtypes[t]), (long long)n, test_get(out, e));
        test_release(&in, 1);
        test_release(&out, 1);
        ax_program_release(program);
      }
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_negative_zeros), cmocka_unit_test(of_everything), cmocka_unit_test(along_dimensions),
                                     cmocka_unit_test(of_matrices),   cmocka_unit_test(of_long_products),
                                     cmocka_unit_test(of_short_rows), cmocka_unit_test(over_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
