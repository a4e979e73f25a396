/* Rows of elements combined: bit by bit what the reference evaluator makes of each pair, of numbers where arithmetic goes wrong, in
   rows of all lengths around a register's, and of rows that are met twice. */
#include "ops/combine.h"

#include <stdlib.h>
#include <string.h>

#include "machine/features.h"
#include "machine/float_mode.h"
#include "ops/pointwise.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

static const ax_scalar operations[] = {AX_SCALAR_ADD, AX_SCALAR_MUL, AX_SCALAR_MIN, AX_SCALAR_MAX};

static void combine_one(ax_scalar operation, ax_tensor *to, int64_t at, const ax_tensor *from, int64_t of) {
  const ax_number x[] = {ax_number_load(to->dtype, to->data, at), ax_number_load(from->dtype, from->data, of)};
  ax_number_store(to->dtype, to->data, at, ax_scalar_eval(operation, to->dtype, x, 0));
}

/* `count` rows are combined with rows of a table of `width` columns, at random places. */
static void check(ax_scalar operation, ax_dtype dtype, ax_combine *combine, int64_t width, int64_t count, test_random *random) {
  enum { rows = 5, most = 64 };
  const int64_t pitch = width * (int64_t)ax_dtype_bytes(dtype);
  ax_tensor *from = test_edge_tensor(random, TEST_TYPE(dtype, count, width)),
            *to = test_edge_tensor(random, TEST_TYPE(dtype, rows, width)),
            *wanted = test_tensor(TEST_TYPE(dtype, rows, width), NULL);
  int64_t place[most], row[most];
  memcpy(wanted->data, to->data, test_tensor_bytes(to));
  for (int64_t i = 0; i < count; i++) {
    place[i] = test_random_below(random, rows), row[i] = count % 3 == 0 ? i : test_random_below(random, count); /* some in a run */
    for (int64_t c = 0; c < width; c++) combine_one(operation, wanted, place[i] * width + c, from, row[i] * width + c);
  }
  combine(operation, dtype, &(ax_combined){to->data, from->data, pitch, pitch, place, row, count, width, count % 2 == 0});
  if (!test_same_tensors(to, wanted))
    fail_msg("%s of %s: %lld rows of %lld", ax_scalar_name(operation), ax_dtype_name(dtype), (long long)count, (long long)width);
  test_release((ax_tensor *[]){from, to, wanted}, 3);
}

static void rows_of_strange_numbers(void **state) {
  test_random random = {1};
  const ax_float_mode caller = ax_float_mode_enter(*state != NULL);
  for (size_t o = 0; o < AX_COUNT(operations); o++)
    for (int dtype = AX_S8; dtype < AX_KEY; dtype++) {
      for (uint32_t bytes = 16; bytes <= AX_REGISTER_BYTES; bytes *= 2) {
        ax_combine *combine = ax_combiner_of(operations[o], (ax_dtype)dtype, bytes);
        for (int64_t width = 1; width < 150 && combine != NULL; width++)
          check(operations[o], (ax_dtype)dtype, combine, width, 1 + width % 23, &random);
      }
    }
  ax_float_mode_leave(caller);
}

/* Rows of all lengths, at random places: the last row of those at one place stays, and nothing beside it is touched. */
static void copies(void **state) {
  enum { rows = 5, count = 11, beside = 3 };
  static const ax_dtype dtypes[] = {AX_S8, AX_BF16, AX_F32, AX_F64};
  test_random random = {4};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (int64_t width = 1; width < 150; width++) {
      ax_combine *combine = ax_combiner(AX_SCALAR_NONE, dtypes[d]);
      const int64_t bytes = (int64_t)ax_dtype_bytes(dtypes[d]), pitch = (width + beside) * bytes;
      ax_tensor *from = test_edge_tensor(&random, TEST_TYPE(dtypes[d], count, width)),
                *to = test_edge_tensor(&random, TEST_TYPE(dtypes[d], rows, width + beside)),
                *wanted = test_tensor(TEST_TYPE(dtypes[d], rows, width + beside), NULL);
      int64_t place[count], row[count];
      assert_non_null(combine);
      memcpy(wanted->data, to->data, test_tensor_bytes(to));
      for (int i = 0; i < count; i++) {
        place[i] = test_random_below(&random, rows), row[i] = test_random_below(&random, count);
        memcpy((char *)wanted->data + place[i] * pitch, (char *)from->data + row[i] * width * bytes, (size_t)(width * bytes));
      }
      const ax_combined all = {to->data, from->data, pitch, width * bytes, place, row, count, width, width % 2 == 0};
      combine(AX_SCALAR_NONE, dtypes[d], &all);
      assert_memory_equal(to->data, wanted->data, test_tensor_bytes(to));
      test_release((ax_tensor *[]){from, to, wanted}, 3);
    }
}

static bool is_nan(ax_dtype dtype, uint16_t bits) { return (bits & 0x7fff) > (dtype == AX_F16 ? 0x7c00 : 0x7f80); }

/* Each number of 16 bits with others, of which some are near it in size. */
static void all_numbers_of_16_bits(void **state) {
  enum { all = 1 << 16 };
  static uint16_t a[all], b[all], to[all], wanted[all];
  static const int64_t first = 0;
  test_random random = {2};
  (void)state;
  for (size_t o = 0; o < AX_COUNT(operations); o++)
    for (ax_dtype dtype = AX_BF16; dtype <= AX_F16; dtype = dtype == AX_BF16 ? AX_F16 : AX_F32)
      for (int round = 0; round < 6; round++) {
        ax_combine *combine = ax_combiner(operations[o], dtype);
        if (combine == NULL) continue;
        for (int i = 0; i < all; i++) {
          const uint64_t bits = test_random_bits(&random);
          a[i] = (uint16_t)i, b[i] = (uint16_t)(round < 3 ? bits : a[i] ^ (bits & 0x83ff));
          const ax_number x[] = {ax_number_load(dtype, a, i), ax_number_load(dtype, b, i)};
          ax_number_store(dtype, wanted, i, ax_scalar_eval(operations[o], dtype, x, 0));
        }
        memcpy(to, a, sizeof to);
        combine(operations[o], dtype, &(ax_combined){(char *)to, (const char *)b, 0, 0, &first, &first, 1, all, false});
        for (int i = 0; i < all; i++)
          if (to[i] != wanted[i] && !(is_nan(dtype, wanted[i]) && is_nan(dtype, to[i])))
            fail_msg("%s of %s: %04x and %04x make %04x, not %04x", ax_scalar_name(operations[o]), ax_dtype_name(dtype), a[i], b[i],
                     to[i], wanted[i]);
      }
}

static void widest_registers(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= AX_REGISTER_BYTES; bytes *= 2) {
    const bool there = bytes == 16 || ax_machine_has(bytes == 32 ? AX_FEATURE_AVX2 : AX_FEATURE_AVX512);
    ax_combine *combine = ax_combiner_of(AX_SCALAR_ADD, AX_BF16, bytes);
    assert_true((combine != NULL) == there);
    for (uint32_t narrower = 16; there && narrower < bytes; narrower *= 2)
      assert_true(combine != ax_combiner_of(AX_SCALAR_ADD, AX_BF16, narrower));
    if (there && (bytes == AX_REGISTER_BYTES || ax_combiner_of(AX_SCALAR_ADD, AX_BF16, 2 * bytes) == NULL))
      assert_true(ax_combiner(AX_SCALAR_ADD, AX_BF16) == combine);
  }
}

/* --- Short rows --- */

typedef struct layout { /* numbers of a place, and from a row to the next; elements; whether numbers beside their limits are the nearest */
  uint32_t numbers;
  int64_t at_step, count, from_step, pitch[2];
  bool clips;
} layout;

/* As the reference evaluator does them, one after the other. */
static void combine_each(ax_scalar operation, ax_tensor *to, const ax_tensor *from, const ax_short_rows *r) {
  for (int64_t i = 0; i < r->rows; i++) {
    int64_t place = 0;
    bool inside = true;
    for (uint32_t k = 0; k < r->numbers; k++) {
      const int64_t start = r->at[i * r->at_step + k], nearest = start < 0 ? 0 : start > r->limit[k] ? r->limit[k] : start;
      inside = inside && (r->clips || nearest == start);
      place += nearest * r->pitch[k];
    }
    for (int64_t c = 0; inside && c < r->count; c++) {
      if (operation != AX_SCALAR_NONE) combine_one(operation, to, place + c, from, i * r->from_step + c);
      else memcpy((char *)to->data + (place + c) * (int64_t)ax_dtype_bytes(to->dtype),
                  (char *)from->data + (i * r->from_step + c) * (int64_t)ax_dtype_bytes(to->dtype), ax_dtype_bytes(to->dtype));
    }
  }
}

/* Rows of strange numbers at places of which some are met twice, and some are outside. */
static void check_short(ax_scalar operation, ax_dtype dtype, const layout *l, test_random *random) {
  enum { rows = 37, limit = 4 };
  const int64_t elems = limit * (l->pitch[0] + l->pitch[1]) + l->count;
  ax_tensor *from = test_edge_tensor(random, TEST_TYPE(dtype, rows * l->from_step + l->count)),
            *to = test_edge_tensor(random, TEST_TYPE(dtype, elems)), *wanted = test_tensor(TEST_TYPE(dtype, elems), NULL);
  int32_t at[rows * 3];
  for (int i = 0; i < rows * 3; i++) at[i] = i % 11 == 5 ? (i % 2 ? INT32_MIN : INT32_MAX) : (int32_t)test_random_below(random, limit + 3) - 1;
  memcpy(wanted->data, to->data, test_tensor_bytes(to));
  const ax_short_rows r = {.to = to->data, .from = from->data, .at = at, .at_step = l->at_step, .from_step = l->from_step,
                           .limit = {limit, limit}, .pitch = {l->pitch[0], l->pitch[1]}, .rows = rows, .count = l->count,
                           .numbers = l->numbers, .clips = l->clips, .far = l->clips};
  combine_each(operation, wanted, from, &r);
  ax_combine_short_rows(operation, dtype, &r);
  if (!test_same_tensors(to, wanted))
    fail_msg("%s of %s: rows of %lld at %u numbers", ax_scalar_name(operation), ax_dtype_name(dtype), (long long)l->count, l->numbers);
  test_release((ax_tensor *[]){from, to, wanted}, 3);
}

static void short_rows(void **state) {
  static const ax_scalar all[] = {AX_SCALAR_NONE, AX_SCALAR_ADD, AX_SCALAR_MUL, AX_SCALAR_MIN, AX_SCALAR_MAX};
  test_random random = {5};
  const ax_float_mode caller = ax_float_mode_enter(*state != NULL);
  for (size_t o = 0; o < AX_COUNT(all); o++)
    for (int dtype = AX_S8; dtype < AX_KEY; dtype++)
      for (int64_t count = 1; count <= 16; count++)
        for (uint32_t numbers = 1; numbers <= 2; numbers++)
          for (int kind = 0; kind < 4; kind++) { /* next to each other or not, clipped or not */
            const bool apart = kind & 1;
            const layout l = {numbers, numbers + apart, count, count + apart, {numbers == 2 ? 7 : count + apart, 1 + apart}, kind & 2};
            if (ax_has_short_rows(all[o], (ax_dtype)dtype, count, numbers)) check_short(all[o], (ax_dtype)dtype, &l, &random);
          }
  ax_float_mode_leave(caller);
}

/* Many elements at few places: in any order, rising and falling, of few values, strange ones, some outside. */
static void many_at_few_places(void **state) {
  enum { rows = 40003, limit = 60 };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32};
  static const ax_scalar extremes[] = {AX_SCALAR_MIN, AX_SCALAR_MAX};
  test_random random = {6};
  const ax_float_mode caller = ax_float_mode_enter(*state != NULL);
  for (int k = 0; k < 3 * 2 * 6; k++) {
    const ax_dtype dtype = dtypes[k % 3];
    const ax_scalar operation = extremes[k / 3 % 2];
    const int kind = k / 6;
    const ax_type type = TEST_TYPE(dtype, rows), places = TEST_TYPE(dtype, limit + 1);
    ax_tensor *from = kind < 2 ? test_edge_tensor(&random, type) : test_tensor(type, NULL), *to = test_edge_tensor(&random, places),
              *wanted = test_tensor(places, NULL);
    int32_t *at = malloc(rows * sizeof at[0]);
    assert_non_null(at);
    for (int i = 0; i < rows; i++) {
      at[i] = i % 97 == 5 ? (i % 2 ? INT32_MIN : INT32_MAX) : (int32_t)test_random_below(&random, limit + 3) - 1;
      const double any = (double)test_random_below(&random, 1 << 20), some = (double)test_random_below(&random, 3) - 1;
      if (kind >= 2) test_set(from, i, kind == 2 ? any - 500000 : kind == 3 ? i : kind == 4 ? some : i < rows / 2 ? any : -i);
    }
    for (int i = 0; i <= limit && kind >= 2; i++) test_set(to, i, i % 3);
    memcpy(wanted->data, to->data, test_tensor_bytes(to));
    const ax_short_rows r = {.to = to->data, .from = from->data, .at = at, .at_step = 1, .from_step = 1, .limit = {limit}, .pitch = {1},
                             .rows = rows, .count = 1, .numbers = 1, .clips = k % 2 == 0};
    combine_each(operation, wanted, from, &r);
    ax_combine_short_rows(operation, dtype, &r);
    if (!test_same_tensors(to, wanted)) fail_msg("%s of %s, %d", ax_scalar_name(operation), ax_dtype_name(dtype), kind);
    free(at);
    test_release((ax_tensor *[]){from, to, wanted}, 3);
  }
  ax_float_mode_leave(caller);
}

static void which_rows_are_short(void **state) {
  (void)state;
  assert_true(ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 1, 2) && ax_has_short_rows(AX_SCALAR_NONE, AX_BOOL, 3, 1));
  assert_true(ax_has_short_rows(AX_SCALAR_MAX, AX_F32, 16, 1) && !ax_has_short_rows(AX_SCALAR_MAX, AX_F64, 16, 1));
  assert_true(ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 5, 1) && ax_has_short_rows(AX_SCALAR_NONE, AX_C64, 8, 1));
  assert_false(ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 9, 1) || ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 2, 2));
  assert_false(ax_has_short_rows(AX_SCALAR_ADD, AX_C64, 5, 1) || ax_has_short_rows(AX_SCALAR_ADD, AX_S8, 5, 1));
  assert_false(ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 1, 3) || ax_has_short_rows(AX_SCALAR_ADD, AX_F32, 1, 0));
  assert_false(ax_has_short_rows(AX_SCALAR_ADD, AX_F16, 1, 1) || ax_has_short_rows(AX_SCALAR_NONE, AX_C128, 1, 1));
  assert_false(ax_has_short_rows(AX_SCALAR_MAX, AX_BOOL, 1, 1) || ax_has_short_rows(AX_SCALAR_AND, AX_S32, 1, 1));
}

static void only_of_numbers(void **state) {
  (void)state;
  assert_null(ax_combiner(AX_SCALAR_MAX, AX_BOOL));
  assert_null(ax_combiner(AX_SCALAR_AND, AX_F32));
}

int main(void) {
  static int flushed;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_strange_numbers),
      cmocka_unit_test_prestate(rows_of_strange_numbers, &flushed), /* where the thread flushes subnormal numbers */
      cmocka_unit_test(copies),
      cmocka_unit_test(all_numbers_of_16_bits),
      cmocka_unit_test(widest_registers),
      cmocka_unit_test(short_rows),
      cmocka_unit_test_prestate(short_rows, &flushed),
      cmocka_unit_test(many_at_few_places),
      cmocka_unit_test_prestate(many_at_few_places, &flushed),
      cmocka_unit_test(which_rows_are_short),
      cmocka_unit_test(only_of_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
