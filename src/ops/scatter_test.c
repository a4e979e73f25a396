/* Rows added to a table's by number, whatever parts threads do them in: exactly, of small whole numbers, with numbers that are
   outside of the table. And rows combined in all ways: bit by bit as by the reference evaluator, of numbers where arithmetic goes
   wrong. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "plan/passes.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

typedef struct example {
  ax_dtype dtype;
  int64_t rows, width, count, axis; /* of the table [rows, width], or, along axis 1, [width, rows]; how many are added */
} example;

static void add_rows(const ax_value *in, ax_value *out, void *context) {
  const example *x = context;
  out[0] = ax_at_add(in[0], in[1], in[2], x->axis, NULL);
}

static void check(example x) {
  const bool across = x.axis == 1;
  const ax_type types[] = {TEST_TYPE(x.dtype, across ? x.width : x.rows, across ? x.rows : x.width), TEST_TYPE(AX_S32, x.count),
                           TEST_TYPE(x.dtype, across ? x.width : x.count, across ? x.count : x.width)};
  test_random random = {(uint64_t)(x.rows + x.width)};
  ax_program *program = test_trace(add_rows, &x, types, 3, 1);
  ax_tensor *in[3], *wanted = test_tensor(types[0], NULL), *out;
  for (int i = 0; i < 3; i++) {
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++)
      test_set(in[i], k, i == 1 ? (double)test_random_below(&random, x.rows + 5) : (double)test_random_below(&random, 5) - 2);
  }
  for (int64_t k = 0; k < test_elems(wanted); k++) test_set(wanted, k, test_get(in[0], k));
  for (int64_t k = 0; k < x.count; k++) {
    const int64_t row = (int64_t)test_get(in[1], k);
    for (int64_t c = 0; c < x.width && row < x.rows; c++) {
      const int64_t to = across ? c * x.rows + row : row * x.width + c, from = across ? c * x.count + k : k * x.width + c;
      test_set(wanted, to, test_get(wanted, to) + test_get(in[2], from));
    }
  }
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 3}, &runtime));
  test_execute(runtime, program, in, &out);
  ax_runtime_release(runtime);
  for (int64_t k = 0; k < test_elems(out); k++)
    if (test_get(out, k) != test_get(wanted, k))
      fail_msg("%lld of %lld rows of %lld along %lld: element %lld is %g, not %g", (long long)x.count, (long long)x.rows,
               (long long)x.width, (long long)x.axis, (long long)k, test_get(out, k), test_get(wanted, k));
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 3);
  test_release(&wanted, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

static void in_parts(void **state) {
  static const int64_t widths[] = {1, 2, 4, 8, 16, 33, 64, 100, 1000, 4096, 5000};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(widths); i++)
    for (int64_t axis = 0; axis < 2; axis++) {
      const int64_t count = widths[i] < 100 ? 6000 : 400000 / widths[i];
      check((example){dtypes[i % 3], 700, widths[i], count, axis});
      check((example){AX_F32, 3, widths[i], count, axis});
    }
  check((example){AX_F32, 600000, 1, 20000, 0}); /* in several parts, as no cache of one core has the table */
}

static void of_other_dtypes(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_S64, AX_U32, AX_BF16, AX_F16, AX_S8};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) check((example){dtypes[i], 50, 33, 100, 0});
}

typedef struct pairs { /* rows of `width` added to those of a table [rows, columns, width] at two numbers each */
  ax_dtype dtype, index_dtype;
  const char *mode;
  int64_t rows, columns, width, count;
} pairs;

static void add_to(ax_tensor *table, int64_t place, const ax_tensor *updates, int64_t row, int64_t width) {
  for (int64_t c = 0; c < width; c++) test_set(table, place * width + c, test_get(table, place * width + c) + test_get(updates, row * width + c));
}

static int64_t within(int64_t x, int64_t extent) { return x < 0 ? 0 : x >= extent ? extent - 1 : x; }

static void check_pairs(pairs p) {
  char text[1024];
  const char *t = ax_dtype_name(p.dtype), *n = ax_dtype_name(p.index_dtype);
  const bool clips = strcmp(p.mode, "clip") == 0;
  const long long rows = p.rows, columns = p.columns, width = p.width, count = p.count;
  snprintf(text, sizeof text,
           "{ lambda x:%s[%lld,%lld,%lld] i:%s[%lld,2] u:%s[%lld,%lld]. let y:%s[%lld,%lld,%lld] = scatter_add[update_window_dims=(1,) "
           "inserted_window_dims=(0, 1) scatter_dims_to_operand_dims=(0, 1) operand_batching_dims=() scatter_indices_batching_dims=() "
           "mode=\"%s\" indices_are_sorted=false unique_indices=false] x i u in (y,) }",
           t, rows, columns, width, n, count, t, count, width, t, rows, columns, width, p.mode);
  ax_program *program = test_parsed(text);
  test_random random = {(uint64_t)(p.rows + p.width)};
  ax_tensor *in[] = {test_tensor(TEST_TYPE(p.dtype, p.rows, p.columns, p.width), NULL), test_tensor(TEST_TYPE(p.index_dtype, p.count, 2), NULL),
                     test_tensor(TEST_TYPE(p.dtype, p.count, p.width), NULL)};
  ax_tensor *wanted = test_tensor(TEST_TYPE(p.dtype, p.rows, p.columns, p.width), NULL), *out;
  for (int64_t k = 0; k < 2 * p.count; k++) test_set(in[1], k, (double)test_random_below(&random, (k % 2 == 0 ? p.rows : p.columns) + 9) - 4);
  for (int64_t k = 0; k < p.count * p.width; k++) test_set(in[2], k, (double)test_random_below(&random, 5) - 2);
  for (int64_t k = 0; k < p.count; k++) {
    const int64_t a = (int64_t)test_get(in[1], 2 * k), b = (int64_t)test_get(in[1], 2 * k + 1), row = within(a, p.rows), column = within(b, p.columns);
    if (clips || (a == row && b == column)) add_to(wanted, row * p.columns + column, in[2], k, p.width);
  }
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 3}, &runtime));
  test_execute(runtime, program, in, &out);
  ax_runtime_release(runtime);
  for (int64_t k = 0; k < test_elems(out); k++)
    if (test_get(out, k) != test_get(wanted, k))
      fail_msg("%s at %s, %s, rows of %lld: element %lld is %g, not %g", t, n, p.mode, width, (long long)k, test_get(out, k), test_get(wanted, k));
  test_release(in, 3);
  test_release(&wanted, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

/* Some in one part, some in several, as tables fit caches or do not. */
static void at_two_numbers(void **state) {
  static const char *const modes[] = {"fill", "clip"};
  static const ax_dtype dtypes[] = {AX_F32, AX_S32, AX_BF16}, index_dtypes[] = {AX_S32, AX_S64, AX_U8};
  (void)state;
  for (int mode = 0; mode < 2; mode++)
    for (int d = 0; d < 3; d++)
      for (int i = 0; i < 3; i++) {
        check_pairs((pairs){dtypes[d], index_dtypes[i], modes[mode], 30, 40, 1, 5003});
        check_pairs((pairs){dtypes[d], index_dtypes[i], modes[mode], 30, 40, 33, 5003});
      }
  for (int mode = 0; mode < 2; mode++) {
    check_pairs((pairs){AX_F32, AX_S32, modes[mode], 1000, 2000, 1, 30003});
    check_pairs((pairs){AX_F32, AX_S64, modes[mode], 1000, 2000, 1, 30003});
    check_pairs((pairs){AX_S32, AX_S32, modes[mode], 1000, 700, 3, 30003});
  }
}

/* Into how many parts rows of a table are cut. */
static uint32_t parts_of(int64_t rows, int64_t width, int64_t count) {
  example x = {.dtype = AX_F32, .axis = 0};
  const ax_type types[] = {TEST_TYPE(AX_F32, rows, width), TEST_TYPE(AX_S32, count), TEST_TYPE(AX_F32, count, width)};
  ax_program *program = test_trace(add_rows, &x, types, 3, 1);
  ax_plan *plan;
  uint32_t parts = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  for (uint32_t i = 0; i < plan->block.count; i++)
    if (plan->block.ops[i].kind == AX_OP_ROUTINE) parts = plan->block.ops[i].routine->parts;
  ax_plan_destroy(plan);
  ax_program_release(program);
  return parts;
}

/* Each part goes over all updates, which come from memory again if no cache holds them. */
static void few_parts_of_much(void **state) {
  (void)state;
  assert_int_equal(parts_of(1000, 64, 10000), 4);
  assert_int_equal(parts_of(4096, 17, 300000), 4);
  assert_int_equal(parts_of(4096, 16, 300000), 1);
  assert_int_equal(parts_of(4096, 17, 1000000), 1);
  assert_int_equal(parts_of(1000000, 16, 1000000), 2);
  assert_int_equal(parts_of(1000, 512, 30000), 2);
  assert_int_equal(parts_of(4096, 4, 1000000), 1);
}

/* --- All combinations --- */

typedef struct combination {
  ax_value (*at)(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);
  ax_index_mode mode;
  int64_t axis;
} combination;

static AX_BODY(combine_rows) {
  const combination *c = context;
  out[0] = c->at(in[0], in[1], in[2], c->axis, &(ax_index_options){.mode = c->mode});
}

/* Rows of `width`, some of them met several times, some of them outside of the table. */
static void check_combination(combination c, ax_dtype dtype, int64_t width, test_random *random) {
  enum { rows = 9, count = 40 };
  const bool across = c.axis == 1;
  const ax_type types[] = {TEST_TYPE(dtype, across ? width : rows, across ? rows : width), TEST_TYPE(AX_S32, count),
                           TEST_TYPE(dtype, across ? width : count, across ? count : width)};
  ax_program *program = test_trace(combine_rows, &c, types, 3, 1);
  ax_tensor *in[] = {test_edge_tensor(random, types[0]), test_tensor(types[1], NULL), test_edge_tensor(random, types[2])};
  for (int64_t k = 0; k < count; k++) test_set(in[1], k, (double)test_random_below(random, 3 * rows) - rows);
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 3);
  ax_program_release(program);
}

static void of_strange_numbers(void **state) {
  typedef ax_value way(ax_value, ax_value, ax_value, int64_t, const ax_index_options *);
  way *const ways[] = {(ax_at_add), (ax_at_mul), (ax_at_min), (ax_at_max), (ax_at_set)};
  static const ax_index_mode modes[] = {AX_INDEX_FILL, AX_INDEX_CLIP, AX_INDEX_PROMISE_IN_BOUNDS};
  static const int64_t widths[] = {1, 7, 33, 4, 200};
  test_random random = {3};
  (void)state;
  for (size_t w = 0; w < AX_COUNT(ways); w++)
    for (int dtype = w < 2 ? AX_S8 : AX_BOOL; dtype < (w < 4 ? AX_KEY : AX_DTYPE_COUNT); dtype++) /* keys are put alone */
      for (int k = 0; k < 6; k++)
        check_combination((combination){ways[w], modes[k % 3], k % 2}, (ax_dtype)dtype,
                          widths[(dtype + k) % (int)AX_COUNT(widths)], &random);
}

/* --- Batches --- */

typedef struct batch { /* `count` windows of `width` in each of `tables` tables [7, 5, width], at so many numbers each */
  const char *way, *mode;
  ax_dtype dtype;
  bool tables_inside; /* the indices are [count, tables, numbers], and not [tables, count, numbers] */
  int numbers;
  int64_t tables, count, width;
} batch;

static void check_batch(batch b, test_random *random) {
  enum { rows = 7, columns = 5 };
  char text[1024];
  const char *t = ax_dtype_name(b.dtype);
  const long long first = b.tables_inside ? b.count : b.tables, second = b.tables_inside ? b.tables : b.count, tables = b.tables, width = b.width;
  snprintf(text, sizeof text,
           "{ lambda x:%s[%lld,7,5,%lld] i:s32[%lld,%lld,%d] u:%s[%lld,%lld,%lld]. let y:%s[%lld,7,5,%lld] = %s[update_window_dims=(2,) "
           "inserted_window_dims=(1, 2) scatter_dims_to_operand_dims=%s operand_batching_dims=(0,) scatter_indices_batching_dims=(%d,) "
           "mode=\"%s\" indices_are_sorted=false unique_indices=false] x i u in (y,) }",
           t, tables, width, first, second, b.numbers, t, first, second, width, t, tables, width, b.way, b.numbers == 2 ? "(1, 2)" : "(1,)",
           b.tables_inside ? 1 : 0, b.mode);
  ax_program *program = test_parsed(text);
  const ax_type types[] = {TEST_TYPE(b.dtype, b.tables, rows, columns, b.width), TEST_TYPE(AX_S32, first, second, b.numbers),
                           TEST_TYPE(b.dtype, first, second, b.width)};
  ax_tensor *in[] = {test_edge_tensor(random, types[0]), test_tensor(types[1], NULL), test_edge_tensor(random, types[2])};
  for (int64_t k = 0; k < test_elems(in[1]); k++) test_set(in[1], k, (double)test_random_below(random, rows + 4) - 2);
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 3);
  ax_program_release(program);
}

/* Few and many windows of each table, single elements and rows; some batches in several parts. */
static void in_batches(void **state) {
  static const char *const ways[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"};
  static const ax_dtype dtypes[] = {AX_F32, AX_F16, AX_BF16, AX_S32, AX_F64, AX_C64, AX_U8};
  test_random random = {11};
  (void)state;
  for (int way = 0; way < 5; way++)
    for (int d = 0; d < 7; d++)
      for (int k = (way + d) % 4; k < 8; k += 4) { /* each of 4 with each dtype and one way or another */
        batch b = {ways[way], (k + d) % 2 == 0 ? "fill" : "clip", dtypes[d], k % 2 == 1, 1 + k / 2 % 2, 6, d % 3 == 0 ? 3 : 9, k < 4 ? 1 : 4};
        check_batch(b, &random);
      }
  for (int k = 0; k < 4; k++) {
    check_batch((batch){ways[1 + k], "fill", AX_F32, k % 2 == 1, 1 + k / 2, 40, 270, 1}, &random);
    check_batch((batch){"scatter_add", "clip", AX_F32, k % 2 == 1, 1 + k / 2, 30, 270, 4}, &random);
  }
}

/* One window, or a few, in each of several tables, which are found by going through all of its places. */
static void few_in_each(void **state) {
  static const char *const ways[] = {"scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter"};
  test_random random = {7};
  (void)state;
  for (int way = 0; way < 5; way++)
    for (int dtype = way < 2 ? AX_S8 : AX_BOOL; dtype < (way < 4 ? AX_KEY : AX_DTYPE_COUNT); dtype++)
      for (int k = 0; k < 4; k++)
        check_batch((batch){ways[way], k % 2 == dtype % 2 ? "fill" : "clip", (ax_dtype)dtype, k % 2 == 1, 2, 33, k < 2 ? 1 : 2 * k - 1, k % 2 == 0 ? 1 : 5}, &random);
}

/* As the gradient of take_along_axis: a number for each of two batching dimensions, which stand in the other order there, if `turned`. */
static void check_along_axis(ax_dtype index_dtype, const char *mode, bool turned, test_random *random) {
  enum { batch = 6, rows = 5, places = 8 };
  static const double numbers[] = {0, 3, 7, 8, -1, 127, -128, 3e9, -3e9, 9e18, -9e18, 1.8e19};
  char text[1024];
  const long long first = turned ? rows : batch, second = turned ? batch : rows;
  snprintf(text, sizeof text,
           "{ lambda x:f32[6,5,8] i:%s[%lld,%lld,1] u:f32[%lld,%lld]. let y:f32[6,5,8] = scatter_add[update_window_dims=() "
           "inserted_window_dims=(2,) scatter_dims_to_operand_dims=(2,) operand_batching_dims=(0, 1) "
           "scatter_indices_batching_dims=%s mode=\"%s\" indices_are_sorted=false unique_indices=false] x i u in (y,) }",
           ax_dtype_name(index_dtype), first, second, first, second, turned ? "(1, 0)" : "(0, 1)", mode);
  ax_program *program = test_parsed(text);
  ax_tensor *in[] = {test_edge_tensor(random, TEST_TYPE(AX_F32, batch, rows, places)), test_tensor(TEST_TYPE(index_dtype, first, second, 1), NULL),
                     test_edge_tensor(random, TEST_TYPE(AX_F32, first, second))};
  const double most = index_dtype == AX_S8 ? 128 : index_dtype == AX_U8 ? 256 : index_dtype == AX_S32 ? 0x1p31 : index_dtype == AX_S64 ? 0x1p63 : 0x1p64;
  const bool is_signed = ax_dtype_get(index_dtype)->kind == AX_KIND_SIGNED;
  for (int64_t k = 0; k < batch * rows; k++) {
    const double number = numbers[test_random_below(random, AX_COUNT(numbers))];
    test_set(in[1], k, number < most && (number >= 0 || (is_signed && number >= -most)) ? number : 1);
  }
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 3);
  ax_program_release(program);
}

static void along_an_axis(void **state) {
  static const ax_dtype dtypes[] = {AX_S8, AX_U8, AX_S32, AX_S64, AX_U64};
  static const char *const modes[] = {"fill", "clip", "promise_in_bounds"};
  test_random random = {5};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t m = 0; m < AX_COUNT(modes); m++)
      for (int turned = 0; turned < 2; turned++) check_along_axis(dtypes[d], modes[m], turned, &random);
}

/* Columns of a table, met several times and some outside: by single elements, row by row. */
static void columns_at_many_numbers(void **state) {
  typedef ax_value way(ax_value, ax_value, ax_value, int64_t, const ax_index_options *);
  static way *const ways[] = {(ax_at_add), (ax_at_mul), (ax_at_min), (ax_at_max), (ax_at_set)};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S8, AX_BF16, AX_C64, AX_F16};
  static const int64_t counts[] = {9, 70};
  test_random random = {9};
  (void)state;
  for (size_t w = 0; w < AX_COUNT(ways); w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t k = 0; k < 2 * AX_COUNT(counts); k++) {
        const int64_t rows = 37, columns = 50, count = counts[k / 2];
        const combination c = {ways[w], k % 2 == 0 ? AX_INDEX_FILL : AX_INDEX_CLIP, 1};
        const ax_type types[] = {TEST_TYPE(dtypes[d], rows, columns), TEST_TYPE(AX_S32, count), TEST_TYPE(dtypes[d], rows, count)};
        ax_program *program = test_trace(combine_rows, (void *)&c, types, 3, 1);
        ax_tensor *in[] = {test_edge_tensor(&random, types[0]), test_tensor(types[1], NULL), test_edge_tensor(&random, types[2])};
        for (int64_t i = 0; i < count; i++) test_set(in[1], i, (double)test_random_below(&random, columns + 6) - 3);
        TEST_EVERY_WAY(program, in, 0);
        test_release(in, 3);
        ax_program_release(program);
      }
}

/* Windows down the columns that overlap: each place is met in the order of the indices. */
static void windows_that_overlap(void **state) {
  static const char *const ways[] = {"scatter", "scatter_add", "scatter_mul"}, *const modes[] = {"fill", "clip"};
  test_random random = {13};
  (void)state;
  for (int k = 0; k < 6; k++) {
    char text[1024];
    snprintf(text, sizeof text,
             "{ lambda x:f32[40,5] i:s32[90,2] u:f32[4,90]. let y:f32[40,5] = %s[update_window_dims=(0,) inserted_window_dims=(1,) "
             "scatter_dims_to_operand_dims=(0, 1) operand_batching_dims=() scatter_indices_batching_dims=() mode=\"%s\" "
             "indices_are_sorted=false unique_indices=false] x i u in (y,) }",
             ways[k / 2], modes[k % 2]);
    ax_program *program = test_parsed(text);
    ax_tensor *in[] = {test_edge_tensor(&random, TEST_TYPE(AX_F32, 40, 5)), test_tensor(TEST_TYPE(AX_S32, 90, 2), NULL),
                       test_edge_tensor(&random, TEST_TYPE(AX_F32, 4, 90))};
    for (int64_t i = 0; i < 180; i++) test_set(in[1], i, (double)test_random_below(&random, i % 2 == 0 ? 42 : 6) - 1);
    TEST_EVERY_WAY(program, in, 0);
    test_release(in, 3);
    ax_program_release(program);
  }
}

/* No element of none is met; and derivatives of what is met nowhere are 0. */
static void of_nothing(void **state) {
  static const char *const ways[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"};
  static const char *const modes[] = {"fill", "clip", "promise_in_bounds"};
  (void)state;
  for (size_t w = 0; w < AX_COUNT(ways); w++)
    for (size_t m = 0; m < AX_COUNT(modes); m++) {
      char text[1024];
      snprintf(text, sizeof text,
               "{ lambda x:f32[0,3] i:s32[4,1] u:f32[4,3]. let y:f32[0,3] = %s[update_window_dims=(1,) inserted_window_dims=(0,) "
               "scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=() mode=\"%s\" "
               "indices_are_sorted=false unique_indices=true] x i u in (y,) }",
               ways[w], modes[m]);
      ax_program *program = test_parsed(text), *tangents;
      ax_tensor *in[] = {test_tensor(TEST_TYPE(AX_F32, 0, 3), NULL), test_tensor(TEST_TYPE(AX_S32, 4, 1), NULL),
                         test_tensor(TEST_TYPE(AX_F32, 4, 3), NULL)};
      for (int64_t k = 0; k < 4; k++) test_set(in[1], k, (double)k - 1);
      TEST_EVERY_WAY(program, in, 0);
      TEST_OK(ax_program_jvp(program, AX_ARGS(0, 2), &tangents));
      ax_program_release(tangents);
      test_release(in, 3);
      ax_program_release(program);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_strange_numbers),
      cmocka_unit_test(in_parts),
      cmocka_unit_test(in_batches),
      cmocka_unit_test(few_parts_of_much),
      cmocka_unit_test(at_two_numbers),
      cmocka_unit_test(of_other_dtypes),
      cmocka_unit_test(of_nothing),
      cmocka_unit_test(columns_at_many_numbers),
      cmocka_unit_test(windows_that_overlap),
      cmocka_unit_test(few_in_each),
      cmocka_unit_test(along_an_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
