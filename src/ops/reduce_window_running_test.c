/* Cumulative operations, and windows that see all elements up to their place, or from it on: against their definition, exactly, in
   rows of any length and number, whole and in chunks; in one pass; and the gradient of a running sum. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct example {
  ax_dtype dtype;
  int64_t outer, length, inner;
  enum { SUM, WINDOW_MAX, WINDOW_MIN, MAX, MIN, PRODUCT, KINDS } kind;
  bool reverse;
} example;

static const char *const kind_names[] = {"sum", "max of windows", "min of windows", "max", "min", "product"};

/* A producer that fuses: twice the element; of a product, which would grow, its sign. */
static ax_value produced(const example *e, ax_value x) {
  if (e->kind != PRODUCT) return ax_mul(x, ax_integer(2));
  return ax_where(ax_lt(x, ax_integer(0)), ax_full_like(x, -1), ax_full_like(x, 1));
}

static AX_BODY(run) {
  const example *e = context;
  const int64_t beyond = e->length + 2; /* longer windows see no more */
  const int64_t low = e->reverse ? 0 : beyond - 1, high = e->reverse ? beyond - 1 : 0;
  const ax_window_options options = {.low = {AX_DIMS(0, low, 0)}, .high = {AX_DIMS(0, high, 0)}};
  ax_value x = produced(e, in[0]);
  switch (e->kind) {
    case SUM: out[0] = ax_cumsum(x, 1, e->reverse); break;
    case WINDOW_MAX: out[0] = ax_reduce_window_max(x, AX_DIMS(1, beyond, 1), &options); break;
    case WINDOW_MIN: out[0] = ax_reduce_window_min(x, AX_DIMS(1, beyond, 1), &options); break;
    case MAX: out[0] = ax_cummax(x, 1, e->reverse); break;
    case MIN: out[0] = ax_cummin(x, 1, e->reverse); break;
    default: out[0] = ax_cumprod(x, 1, e->reverse); break;
  }
}

static double combined(const example *e, double a, double b) {
  if (e->kind == SUM) return a + b;
  if (e->kind == PRODUCT) return a * b;
  return (e->kind == MAX || e->kind == WINDOW_MAX) == (a > b) ? a : b;
}

static void compare(const example *e, const ax_tensor *x, const ax_tensor *y) {
  for (int64_t row = 0; row < e->outer * e->inner; row++) {
    double sum = 0;
    for (int64_t n = 0; n < e->length; n++) {
      const int64_t at = (row / e->inner * e->length + (e->reverse ? e->length - 1 - n : n)) * e->inner + row % e->inner;
      const double here = e->kind != PRODUCT ? 2 * test_get(x, at) : test_get(x, at) < 0 ? -1 : 1;
      sum = n == 0 ? here : combined(e, sum, here);
      if (test_get(y, at) != sum)
        fail_msg("%s of %s [%lld,%lld,%lld]%s at %lld: %g, not %g", kind_names[e->kind],
                 ax_dtype_name(e->dtype), (long long)e->outer, (long long)e->length, (long long)e->inner, e->reverse ? " back" : "",
                 (long long)at, test_get(y, at), sum);
    }
  }
}

static ax_tensor *numbers(const example *e, test_random *random) {
  ax_tensor *x = test_tensor(ax_array_type(e->dtype, AX_DIMS(e->outer, e->length, e->inner)), NULL);
  const bool wide = ax_dtype_bytes(e->dtype) >= 4;
  for (int64_t i = 0; i < test_elems(x); i++) {
    const int64_t place = (i / e->inner % e->length + i % e->inner) % 7; /* narrow numbers have these sums */
    test_set(x, i, wide ? (double)test_random_below(random, 9) - 4 : place == 3 ? 1 : place == 5 ? -1 : 0);
  }
  return x;
}

static void try_one(const example *e, test_random *random, bool every_way) {
  const ax_type type = ax_array_type(e->dtype, AX_DIMS(e->outer, e->length, e->inner));
  ax_tensor *x = numbers(e, random), *y;
  ax_program *program = test_trace(run, (void *)e, &type, 1, 1);
  test_run(program, &x, &y);
  compare(e, x, y);
  test_release(&y, 1);
  TEST_OK(test_try(program, &x, &y));
  compare(e, x, y);
  test_release(&y, 1);
  if (every_way) TEST_EVERY_WAY(program, &x, 0);
  test_release(&x, 1);
  ax_program_release(program);
}

static void one_example(uint64_t seed, bool show) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S8, AX_S32, AX_S64};
  test_random random = {seed};
  example e = {.dtype = dtypes[test_random_below(&random, 7)], .kind = (int)test_random_below(&random, KINDS)};
  e.outer = 1 + test_random_below(&random, 4), e.length = 1 + test_random_below(&random, test_random_below(&random, 2) ? 20 : 600);
  e.inner = test_random_below(&random, 2) ? 1 : 1 + test_random_below(&random, test_random_below(&random, 2) ? 8 : 300);
  e.reverse = test_random_below(&random, 2);
  if (show) printf("[%lld,%lld,%lld]\n", (long long)e.outer, (long long)e.length, (long long)e.inner);
  try_one(&e, &random, seed % 16 == 1);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(100, one_example);
}

/* Long enough for chunks: with a rest, without one, of several rows, of columns. */
static void in_chunks(void **state) {
  static const int64_t sizes[][3] = {{1, 140001, 1}, {1, 163840, 1}, {3, 140000, 1}, {2, 139999, 1}, {1, 9000, 70}, {2, 40000, 3}};
  static const ax_dtype dtypes[] = {AX_F32, AX_S32, AX_F64, AX_BF16};
  test_random random = {3};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++)
    for (int k = 0; k < 4; k++)
      try_one(&(example){dtypes[(i + (size_t)k) % 4], sizes[i][0], sizes[i][1], sizes[i][2], (i + (size_t)k) % KINDS, k % 2 == 1}, &random,
              i == 0 && k < 2);
}

/* The text of a program's plan, before the passes. */
static char *plan_text(const ax_program *program) {
  ax_plan *plan = test_plan(program);
  ax_text text = {0};
  char *shown;
  ax_plan_text(&text, plan);
  TEST_OK(ax_text_finish(&text, &shown));
  ax_plan_destroy(plan);
  return shown;
}

static int count_of(const char *text, const char *what) {
  int count = 0;
  for (; (text = strstr(text, what)) != NULL; text++) count++;
  return count;
}

static AX_BODY(sum_of_sums) { out[0] = ax_reduce_sum(ax_mul(ax_cumsum(in[0], 0, false), in[1]), AX_ALL_DIMS, false); }
static AX_BODY(gradient) { ax_grad(AX_CLOSURE(sum_of_sums, 2, 1, context), AX_FIRST(1), in, out); }

/* The gradient of a running sum runs back, in one pass too. */
static void gradients(void **state) {
  enum { length = 1000 };
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(length)), ax_array_type(AX_F32, AX_DIMS(length))};
  test_random random = {5};
  const example e = {AX_F32, 1, length, 1, 0, true};
  ax_program *program = test_trace(gradient, NULL, types, 2, 1);
  ax_tensor *in[] = {numbers(&e, &random), numbers(&e, &random)}, *y;
  (void)state;
  in[0]->rank = in[1]->rank = 1, in[0]->dims[0] = in[1]->dims[0] = length;
  TEST_OK(test_try(program, in, &y));
  double sum = 0;
  for (int64_t i = length; i-- > 0;) {
    sum += test_get(in[1], i);
    assert_true(test_get(y, i) == sum);
  }
  char *text = plan_text(program);
  if (count_of(text, "running add") < 1 || count_of(text, "reduce add") > 1) fail_msg("%s", text);
  ax_free(text);
  test_release(in, 2);
  test_release(&y, 1);
  ax_program_release(program);
}

/* What reads the same rows, or the sums, in the same order is not taken for part of the run. */
static AX_BODY(beside) {
  ax_value sums = ax_cumsum(in[0], 1, false), back = ax_cumsum(in[0], 1, true), squares = ax_mul(in[0], in[0]);
  out[0] = ax_add(ax_mul(sums, squares), back);
  out[1] = ax_reduce_sum(in[0], AX_DIMS(1), false);
  out[2] = ax_reduce_max(sums, AX_DIMS(1), false);
  out[3] = squares;
}

static void with_neighbours(void **state) {
  const ax_type types[] = {ax_array_type(AX_F64, AX_DIMS(40, 300))};
  test_random random = {11};
  ax_program *program = test_trace(beside, NULL, types, 1, 4);
  ax_tensor *x = numbers(&(example){AX_F64, 1, 40, 300, 0, false}, &random);
  (void)state;
  x->rank = 2, x->dims[0] = 40, x->dims[1] = 300;
  TEST_EVERY_WAY(program, &x, 0);
  test_release(&x, 1);
  ax_program_release(program);
}

/* In a loop of small kernels, where arrays stay in registers. in: the index, the carry. */
static AX_BODY(step) { out[0] = ax_sub(ax_cumsum(in[1], 0, false), in[1]); }
static AX_BODY(steps) { ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(step, 2, 1, context), in, out); }

static void in_a_loop(void **state) {
  static const int64_t lengths[] = {5, 16, 37, 64};
  test_random random = {13};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(lengths); i++) {
    const ax_type type = ax_array_type(AX_F64, AX_DIMS(lengths[i]));
    ax_program *program = test_trace(steps, NULL, &type, 1, 1);
    ax_tensor *x = numbers(&(example){AX_F64, 1, lengths[i], 1, 0, false}, &random);
    x->rank = 1, x->dims[0] = lengths[i];
    TEST_EVERY_WAY(program, &x, 0);
    test_release(&x, 1);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(in_chunks), cmocka_unit_test(gradients),
                                     cmocka_unit_test(with_neighbours), cmocka_unit_test(in_a_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
