/* StableHLO's sorts by the comparators that are recognised, whole and of the first elements alone, and the composite chlo.top_k: the
   order that each comparator defines, stable, found here by inserting element after element. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "ops/sort.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

typedef struct comparator {
  const char *direction, *type;
  bool total;
} comparator;
static const comparator of_floats[] = {
    {"GT", "TOTALORDER", true}, {"LT", "TOTALORDER", true}, {"GT", "FLOAT", false}, {"LT", "FLOAT", false}};
static const comparator of_parts = {"LT", "TOTALORDER", true};
static const comparator of_signed[] = {{"GT", "SIGNED", true}, {"LT", "SIGNED", true}};
static const comparator of_unsigned[] = {{"GT", "UNSIGNED", true}, {"LT", "UNSIGNED", true}};

typedef struct element {
  ax_dtype dtype;
  const char *name;
  const comparator *by;
  int count;
} element;
static const element elements[] = {{AX_F32, "f32", of_floats, 4},   {AX_BF16, "bf16", of_floats, 4},   {AX_F64, "f64", of_floats, 4},
                                   {AX_F16, "f16", of_floats, 4},   {AX_S32, "i32", of_signed, 2},     {AX_S8, "i8", of_signed, 2},
                                   {AX_U32, "ui32", of_unsigned, 2}, {AX_BOOL, "i1", of_unsigned, 2}};

enum { rows = 3, columns = 90 };

/* Of two parts: less, equal or greater, where NaN is the greatest. */
static int beside(double a, double b) { return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b); }

static bool before_by_parts(const ax_tensor *x, int64_t a, int64_t b) {
  const int real = beside(test_get(x, 2 * a), test_get(x, 2 * b));
  return real < 0 || (real == 0 && beside(test_get(x, 2 * a + 1), test_get(x, 2 * b + 1)) < 0);
}

/* What the comparator says of a and b; of numbers that are none, which it says nothing of, that they come last. */
static bool before(const comparator *by, const ax_tensor *x, int64_t a, int64_t b) {
  const bool greater = by->direction[0] == 'G';
  if (ax_is_complex(x->dtype)) return before_by_parts(x, a, b);
  if (by->total) {
    const uint64_t p = ax_total_key(x->dtype, x->data, a), q = ax_total_key(x->dtype, x->data, b);
    return greater ? p > q : p < q;
  }
  const double p = test_get(x, a), q = test_get(x, b);
  if (isnan(p) || isnan(q)) return isnan(q) && !isnan(p);
  return greater ? p > q : p < q;
}

static void order_of(const comparator *by, const ax_tensor *x, int64_t row, int64_t *places) {
  for (int64_t i = 0; i < columns; i++) {
    int64_t at = i;
    for (; at > 0 && before(by, x, row * columns + i, row * columns + places[at - 1]); at--) places[at] = places[at - 1];
    places[at] = i;
  }
}

/* out: the first `wanted` elements of each row, and where they were. */
static void expect_order(const char *name, const comparator *by, const ax_tensor *x, ax_tensor *const *out, int64_t wanted) {
  for (int64_t row = 0; row < rows; row++) {
    int64_t places[columns];
    order_of(by, x, row, places);
    for (int64_t i = 0; i < wanted; i++) {
      const int64_t from = row * columns + places[i], at = row * wanted + i;
      const size_t bytes = ax_dtype_bytes(x->dtype);
      if ((int64_t)test_get(out[1], at) != places[i])
        fail_msg("%s %s %s, row %lld: %g at %lld, not %lld", name, by->direction, by->type, (long long)row, test_get(out[1], at),
                 (long long)i, (long long)places[i]);
      assert_memory_equal((const char *)out[0]->data + (size_t)at * bytes, (const char *)x->data + (size_t)from * bytes, bytes);
    }
  }
}

static void try_module(const element *e, const comparator *by, const char *module, int64_t wanted, const char *made_by) {
  test_random random = {5};
  ax_tensor *x = test_random_tensor(&random, TEST_TYPE(e->dtype, rows, columns), e->by == of_unsigned ? 0 : -9, 9), *out[2];
  ax_program *program;
  ax_runtime *runtime;
  char *text;
  if (e->by == of_floats)
    for (int64_t i = 0; i < 60; i++) test_set(x, 4 * i + 1, i % 5 == 0 ? NAN : i % 5 == 1 ? -0.0 : i % 5 == 2 ? 0 : i % 5 == 3 ? -HUGE_VAL : 3);
  if (e->by == of_floats && by->total) test_set(x, 7, -NAN);
  if (ax_program_from_stablehlo(module, strlen(module), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), module);
  TEST_OK(ax_program_print(program, &text));
  if (strstr(text, made_by) == NULL || strstr(text, "while") != NULL || strstr(text, "scan") != NULL) fail_msg("no %s:\n%s", made_by, text);
  ax_free(text);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, &x, out);
  expect_order(e->name, by, x, out, wanted);
  test_release(&x, 1);
  test_release(out, 2);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

#define IOTA "  %%i = stablehlo.iota dim = 1 : tensor<3x90xi32>\n"
#define COMPARED "    %%1 = stablehlo.compare %s, %%a, %%b, %s : (tensor<%s>, tensor<%s>) -> tensor<i1>\n"

static void each(int64_t wanted, void (*write)(char *text, size_t size, const char *t, const comparator *by), const char *made_by) {
  char module[3000];
  for (size_t e = 0; e < AX_COUNT(elements); e++)
    for (int b = 0; b < elements[e].count; b++) {
      write(module, sizeof module, elements[e].name, &elements[e].by[b]);
      try_module(&elements[e], &elements[e].by[b], module, wanted, made_by);
    }
}

static void write_sort(char *text, size_t size, const char *t, const comparator *by) {
  snprintf(text, size,
           "func.func @main(%%x: tensor<3x90x%s>) -> (tensor<3x90x%s>, tensor<3x90xi32>) {\n" IOTA
           "  %%0:2 = \"stablehlo.sort\"(%%x, %%i) <{dimension = 1 : i64, is_stable = true}> ({\n"
           "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>, %%c: tensor<i32>, %%d: tensor<i32>):\n" COMPARED
           "    stablehlo.return %%1 : tensor<i1>\n"
           "  }) : (tensor<3x90x%s>, tensor<3x90xi32>) -> (tensor<3x90x%s>, tensor<3x90xi32>)\n"
           "  return %%0#0, %%0#1 : tensor<3x90x%s>, tensor<3x90xi32>\n}\n",
           t, t, t, t, by->direction, by->type, t, t, t, t, t);
}

static void write_first(char *text, size_t size, const char *t, const comparator *by) {
  snprintf(text, size,
           "func.func @main(%%x: tensor<3x90x%s>) -> (tensor<3x7x%s>, tensor<3x7xi32>) {\n" IOTA
           "  %%n = stablehlo.constant dense<-1> : tensor<i32>\n  %%z = stablehlo.slice %%x [0:1, 0:1] : (tensor<3x90x%s>) -> tensor<1x1x%s>\n"
           "  %%s = stablehlo.reshape %%z : (tensor<1x1x%s>) -> tensor<%s>\n"
           "  %%0:2 = stablehlo.custom_call @ApproxTopK(%%x, %%i, %%s, %%n) {called_computations = [@before], mhlo.backend_config = {"
           "reduction_dim = 1 : i64, top_k = 7 : i64}} : (tensor<3x90x%s>, tensor<3x90xi32>, tensor<%s>, tensor<i32>) -> "
           "(tensor<3x7x%s>, tensor<3x7xi32>)\n  return %%0#0, %%0#1 : tensor<3x7x%s>, tensor<3x7xi32>\n}\n"
           "func.func private @before(%%a: tensor<%s>, %%b: tensor<%s>, %%c: tensor<i32>, %%d: tensor<i32>) -> tensor<i1> {\n" COMPARED
           "    return %%1 : tensor<i1>\n}\n",
           t, t, t, t, t, t, t, t, t, t, t, t, by->direction, by->type, t, t);
}

static void whole(void **state) {
  (void)state;
  each(columns, write_sort, " sort[");
}

static void first(void **state) {
  (void)state;
  each(7, write_first, " top_k[");
}

/* As XLA's clients send jax.lax.top_k. The decomposition is another function here, so that it shows when it is called. */
static void composite(void **state) {
  (void)state;
  char module[1000];
  for (size_t e = 0; e < AX_COUNT(elements); e++) {
    const char *t = elements[e].name;
    snprintf(module, sizeof module,
             "func.func @main(%%x: tensor<3x90x%s>) -> (tensor<3x7x%s>, tensor<3x7xi32>) {\n"
             "  %%0:2 = \"stablehlo.composite\"(%%x) {composite_attributes = {k = 7 : i64}, decomposition = @other, name = \"chlo.top_k\", "
             "version = 1 : i32} : (tensor<3x90x%s>) -> (tensor<3x7x%s>, tensor<3x7xi32>)\n"
             "  return %%0#0, %%0#1 : tensor<3x7x%s>, tensor<3x7xi32>\n}\n"
             "func.func private @other(%%x: tensor<3x90x%s>) -> (tensor<3x7x%s>, tensor<3x7xi32>) {\n"
             "  %%i = stablehlo.iota dim = 1 : tensor<3x7xi32>\n  %%0 = stablehlo.slice %%x [0:3, 0:7] : (tensor<3x90x%s>) -> tensor<3x7x%s>\n"
             "  return %%0, %%i : tensor<3x7x%s>, tensor<3x7xi32>\n}\n",
             t, t, t, t, t, t, t, t, t, t);
    try_module(&elements[e], &elements[e].by[0], module, 7, " top_k[");
  }
}

/* One part of a complex number as JAX compares it: with one zero and one NaN. `part` (r or i) and the number's name make the result's. */
#define PART(of, part, x)                                                                                                      \
  "    %p" part x " = stablehlo." of " %" x " : (tensor<complex<f32>>) -> tensor<f32>\n"                                       \
  "    %z" part x " = stablehlo.constant dense<0.0> : tensor<f32>\n"                                                           \
  "    %e" part x " = stablehlo.compare EQ, %p" part x ", %z" part x ", FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"    \
  "    %f" part x " = stablehlo.constant dense<0.0> : tensor<f32>\n"                                                           \
  "    %s" part x " = stablehlo.select %e" part x ", %f" part x ", %p" part x " : tensor<i1>, tensor<f32>\n"                   \
  "    %n" part x " = stablehlo.compare NE, %p" part x ", %p" part x ", FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"    \
  "    %q" part x " = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"                                                    \
  "    %" part x " = stablehlo.select %n" part x ", %q" part x ", %s" part x " : tensor<i1>, tensor<f32>\n"
#define TOTAL(direction, part, out) \
  "    %" out " = stablehlo.compare " direction ", %" part "a, %" part "b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
static const char by_parts[] =
    "func.func @main(%x: tensor<3x90xcomplex<f32>>) -> (tensor<3x90xcomplex<f32>>, tensor<3x90xi32>) {\n"
    "  %o = stablehlo.iota dim = 1 : tensor<3x90xi32>\n"
    "  %0:2 = \"stablehlo.sort\"(%x, %o) <{dimension = 1 : i64, is_stable = true}> ({\n"
    "  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>, %c: tensor<i32>, %d: tensor<i32>):\n"
    PART("real", "r", "a") PART("imag", "i", "a") PART("real", "r", "b") PART("imag", "i", "b")
    TOTAL("LT", "i", "1") TOTAL("LT", "r", "2") TOTAL("EQ", "r", "3")
    "    %4 = stablehlo.and %3, %1 : tensor<i1>\n    %5 = stablehlo.or %2, %4 : tensor<i1>\n    stablehlo.return %5 : tensor<i1>\n"
    "  }) : (tensor<3x90xcomplex<f32>>, tensor<3x90xi32>) -> (tensor<3x90xcomplex<f32>>, tensor<3x90xi32>)\n"
    "  return %0#0, %0#1 : tensor<3x90xcomplex<f32>>, tensor<3x90xi32>\n}\n";

static void complex_numbers(void **state) {
  (void)state;
  static const double parts[] = {0, -0.0, NAN, 1, -3, HUGE_VAL, -HUGE_VAL, 2};
  test_random random = {9};
  ax_tensor *x = test_tensor(TEST_TYPE(AX_C64, rows, columns), NULL), *out[2];
  ax_program *program;
  ax_runtime *runtime;
  for (int64_t i = 0; i < 2 * rows * columns; i++) test_set(x, i, parts[test_random_below(&random, AX_COUNT(parts))]);
  TEST_OK(ax_program_from_stablehlo(by_parts, strlen(by_parts), "m.mlir", &program));
  assert_int_equal(test_count_prim(program, "sort"), 1);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, &x, out);
  expect_order("c64", &of_parts, x, out, columns);
  test_release(&x, 1);
  test_release(out, 2);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

/* --- One operand alone: no second one is sorted with it --- */

static void alone_by(const char *t, ax_dtype dtype, const char *direction, const char *type) {
  char module[1000];
  test_random random = {11};
  ax_tensor *x = test_random_tensor(&random, TEST_TYPE(dtype, rows, columns), strcmp(type, "UNSIGNED") == 0 ? 0 : -9, 9), *out;
  const comparator by = {direction, type, false};
  const size_t bytes = ax_dtype_bytes(dtype);
  ax_program *program;
  ax_runtime *runtime;
  snprintf(module, sizeof module,
           "func.func @main(%%x: tensor<3x90x%s>) -> tensor<3x90x%s> {\n"
           "  %%0 = \"stablehlo.sort\"(%%x) <{dimension = 1 : i64, is_stable = true}> ({\n"
           "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n" COMPARED
           "    stablehlo.return %%1 : tensor<i1>\n"
           "  }) : (tensor<3x90x%s>) -> tensor<3x90x%s>\n  return %%0 : tensor<3x90x%s>\n}\n",
           t, t, t, t, direction, type, t, t, t, t, t);
  if (ax_is_float(dtype)) test_set(x, 20, NAN), test_set(x, 30, -0.0), test_set(x, 40, 0), test_set(x, 50, -HUGE_VAL);
  TEST_OK(ax_program_from_stablehlo(module, strlen(module), "m.mlir", &program));
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (strcmp(program->eqns[i].prim->name, "sort") == 0) assert_int_equal(program->eqns[i].in_count, 1);
  assert_int_equal(test_count_prim(program, "sort"), 1);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, &x, &out);
  for (int64_t row = 0; row < rows; row++) {
    int64_t places[columns];
    order_of(&by, x, row, places);
    for (int64_t i = 0; i < columns; i++)
      assert_memory_equal((const char *)out->data + (size_t)(row * columns + i) * bytes,
                          (const char *)x->data + (size_t)(row * columns + places[i]) * bytes, bytes);
  }
  test_release(&x, 1), test_release(&out, 1);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

static void alone(void **state) {
  (void)state;
  alone_by("i32", AX_S32, "GT", "SIGNED");
  alone_by("i8", AX_S8, "GT", "SIGNED");
  alone_by("ui16", AX_U16, "GT", "UNSIGNED");
  alone_by("ui64", AX_U64, "GT", "UNSIGNED");
  alone_by("f32", AX_F32, "LT", "FLOAT");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(first), cmocka_unit_test(composite),
                                     cmocka_unit_test(complex_numbers), cmocka_unit_test(alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
