/* Places, their digits, and arrays for them, against going through all steps. */
#include "plan/index_map.h"
#include "support/arena.h"
#include "support/cmocka.h"
#include "support/random.h"

enum { many = 20000 };

static int64_t value(const ax_affine *address, uint32_t rank, const int64_t *i) {
  int64_t sum = address->offset;
  for (uint32_t d = 0; d < rank; d++) sum += address->coef[d] * i[d];
  return sum;
}

static bool next_step(uint32_t rank, const int64_t *dims, int64_t *i) {
  for (uint32_t d = rank; d-- > 0; i[d] = 0)
    if (++i[d] < dims[d]) return true;
  return false;
}

static uint32_t some_dims(test_random *random, int64_t *dims) {
  uint32_t rank = (uint32_t)test_random_below(random, 5);
  for (uint32_t d = 0; d < rank; d++) dims[d] = 1 + test_random_below(random, 4);
  return rank;
}

/* A view of an array read in some order: digits of a reshape, reversed, shifted, with dimensions that are not there. */
static ax_affine some_address(test_random *random, uint32_t rank, const int64_t *loop) {
  ax_affine address = {0};
  int64_t pitch = 1 + (test_random_below(random, 3) == 0 ? test_random_below(random, 3) : 0);
  uint32_t order[8];
  for (uint32_t d = 0; d < rank; d++) order[d] = d;
  for (uint32_t d = rank; d > 1; d--) {
    uint32_t other = (uint32_t)test_random_below(random, d), kept = order[d - 1];
    if (test_random_below(random, 2) == 0) order[d - 1] = order[other], order[other] = kept;
  }
  for (uint32_t k = rank; k-- > 0;) {
    uint32_t d = order[k];
    if (test_random_below(random, 6) == 0) continue;
    address.coef[d] = pitch;
    if (test_random_below(random, 4) == 0) address.offset += pitch * (loop[d] - 1), address.coef[d] = -pitch;
    pitch *= loop[d] + (test_random_below(random, 5) == 0);
  }
  if (test_random_below(random, 3) == 0) address.offset += test_random_below(random, 7);
  return address;
}

static void check_digits(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                         const ax_digits *found, uint32_t count) {
  int64_t i[8] = {0};
  for (uint32_t g = 0, d = 0; g < count; g++) {
    assert_int_equal(found[g].first, d);
    d = found[g].last + 1;
    if (g + 1 == count) assert_int_equal(d, rank);
  }
  do {
    int64_t sum = 0;
    for (uint32_t g = 0; g < count; g++) {
      int64_t size = 1, weight = 1, number = value(&found[g].number, loop_rank, i);
      for (uint32_t d = found[g].first; d <= found[g].last; d++) size *= dims[d];
      for (uint32_t d = found[g].last + 1; d < rank; d++) weight *= dims[d];
      assert_true(number >= 0 && number < size);
      sum += number * weight;
    }
    assert_int_equal(sum, value(address, loop_rank, i));
  } while (next_step(loop_rank, loop, i));
}

static void check_array(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                        const ax_position *at) {
  int64_t i[8] = {0};
  do {
    int64_t sum = 0;
    for (uint32_t d = 0; d < rank; d++) {
      int64_t position = at[d].offset + (at[d].dim >= 0 ? at[d].coef * i[at[d].dim] : 0);
      assert_true(position >= 0 && position < dims[d]);
      sum = sum * dims[d] + position;
    }
    assert_int_equal(sum, value(address, loop_rank, i));
  } while (next_step(loop_rank, loop, i));
}

static int64_t last_of(const ax_affine *address, uint32_t rank, const int64_t *loop) {
  int64_t last = address->offset;
  for (uint32_t d = 0; d < rank; d++)
    if (address->coef[d] > 0) last += address->coef[d] * (loop[d] - 1);
  return last;
}

static void at_random(void **state) {
  (void)state;
  test_random random = {5};
  uint32_t told = 0, apart = 0, arrays = 0;
  for (int n = 0; n < many; n++) {
    int64_t loop[8], dims[8], made[AX_MAX_RANK];
    uint32_t loop_rank = some_dims(&random, loop), rank = some_dims(&random, dims), count, made_rank;
    ax_affine address = some_address(&random, loop_rank, loop), again;
    ax_digits found[AX_MAX_RANK];
    ax_position at[AX_MAX_RANK];
    bool inside = last_of(&address, loop_rank, loop) < ax_dims_elems(rank, dims);
    assert_int_equal(ax_affine_digits(&address, loop_rank, loop, rank, dims, found, &count), inside);
    if (inside) {
      check_digits(&address, loop_rank, loop, rank, dims, found, count);
      told++;
      apart += count == rank && rank > 1;
    }
    if (ax_affine_array(&address, loop_rank, loop, 1 + last_of(&address, loop_rank, loop) + test_random_below(&random, 20),
                        &made_rank, made, at)) {
      check_array(&address, loop_rank, loop, made_rank, made, at);
      assert_true(ax_affine_of(made_rank, made, at, &again));
      arrays++;
    }
  }
  assert_true(told > many / 20 && apart > many / 50 && arrays > many / 2); /* the numbers above mean something */
}

/* Digits are told apart where they can be. */
static void apart(void **state) {
  (void)state;
  const int64_t rows[] = {6, 4}, halves[] = {3, 2, 4}, all[] = {24}, turned[] = {4, 6};
  ax_digits found[AX_MAX_RANK];
  uint32_t count;
  const ax_affine matrix = {.coef = {4, 1}}, split = {.coef = {8, 4, 1}}, line = {.coef = {1}}, other = {.coef = {6, 1}};
  assert_true(ax_affine_digits(&matrix, 2, rows, 2, rows, found, &count) && count == 2);
  assert_true(ax_affine_digits(&split, 3, halves, 2, rows, found, &count) && count == 2); /* 6 in 3 and 2 */
  assert_int_equal(found[0].number.coef[0], 2);
  assert_true(ax_affine_digits(&matrix, 2, rows, 3, halves, found, &count) && count == 2); /* 3 and 2 as 6 */
  assert_true(ax_affine_digits(&line, 1, all, 2, rows, found, &count) && count == 1);
  assert_true(ax_affine_digits(&other, 2, turned, 2, rows, found, &count) && count == 1); /* 4 by 6 as 6 by 4 */
}

/* --- By hand --- */

static ax_position along(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

static void an_address_adds_up_rows_and_columns(void **state) {
  (void)state;
  ax_affine address;
  const ax_position at[] = {along(0, 2, 1), along(1, 1, 3)}, moved[] = {along(0, 1, 0), {.dim = 1, .coef = 1, .dynamic = 0}};
  assert_true(ax_affine_of(2, (const int64_t[]){9, 10}, at, &address));
  assert_int_equal(address.offset, 13);
  assert_int_equal(address.coef[0], 20);
  assert_int_equal(address.coef[1], 1);
  assert_false(ax_affine_of(2, (const int64_t[]){9, 10}, moved, &address)); /* known at run time only */
}

/* Over i < 4 and j < 3: 6 i + j, in an array of eight rows of three, is [2 i, j]. */
static void an_address_has_positions_in_another_array(void **state) {
  (void)state;
  const ax_affine address = {.offset = 0, .coef = {6, 1}};
  const int64_t loop[] = {4, 3};
  ax_position at[2];
  assert_true(ax_affine_at(&address, 2, loop, 2, (const int64_t[]){8, 3}, at));
  assert_true(at[0].dim == 0 && at[0].coef == 2 && at[0].offset == 0);
  assert_true(at[1].dim == 1 && at[1].coef == 1 && at[1].offset == 0);
  assert_false(ax_affine_at(&address, 2, loop, 2, (const int64_t[]){6, 3}, at)); /* too small */
  assert_false(ax_affine_at(&address, 2, loop, 2, (const int64_t[]){6, 4}, at)); /* j runs over the end of a row */
}

static void a_position_has_one_index(void **state) {
  (void)state;
  const ax_affine address = {.coef = {3, 1}};
  ax_position at[1];
  ax_digits digits[1];
  uint32_t count;
  assert_false(ax_affine_at(&address, 2, (const int64_t[]){4, 3}, 1, (const int64_t[]){12}, at));
  assert_true(ax_affine_digits(&address, 2, (const int64_t[]){4, 3}, 1, (const int64_t[]){12}, digits, &count));
  assert_int_equal(count, 1);
  assert_true(digits[0].number.coef[0] == 3 && digits[0].number.coef[1] == 1);
}

/* --- Positions that nodes compute --- */

static ax_ex with(ax_loop_kernel *k, ax_scalar op, ax_ex a, int64_t number) {
  return ax_kernel_op(k, op, k->exprs[a].dtype, a, ax_kernel_const(k, k->exprs[a].dtype, number), AX_NONE);
}
static ax_ex as(ax_loop_kernel *k, ax_dtype dtype, ax_ex a) { return ax_kernel_op(k, AX_SCALAR_CONVERT, dtype, a, AX_NONE, AX_NONE); }

static void expect_settled(const ax_loop_kernel *k, ax_position at, int dim, int64_t coef, int64_t offset) {
  const ax_position made = ax_position_settled(k, &at);
  assert_int_equal(made.dynamic, AX_NONE);
  assert_int_equal(made.dim, dim);
  if (dim >= 0) assert_int_equal(made.coef, coef);
  assert_int_equal(made.offset, offset);
}
static void expect_left(const ax_loop_kernel *k, ax_position at) {
  const ax_position made = ax_position_settled(k, &at);
  assert_true(made.dynamic == at.dynamic && made.dim == at.dim && made.offset == at.offset && made.limit == at.limit);
}

/* i < 10 and j < 300, of which a byte does not hold all. */
static void indices_that_count(void **state) {
  (void)state;
  const int64_t dims[] = {10, 300};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_ex i = ax_kernel_index(k, 0), j = ax_kernel_index(k, 1), j32 = as(k, AX_S64, as(k, AX_S32, j));
  const ax_ex tripled = with(k, AX_SCALAR_ADD, with(k, AX_SCALAR_MUL, j32, 3), 7), minus = with(k, AX_SCALAR_ADD, i, -1);
  expect_settled(k, (ax_position){.dim = -1, .dynamic = j32, .limit = 299}, 1, 1, 0);
  expect_settled(k, (ax_position){.dim = -1, .offset = 5, .dynamic = tripled, .limit = 904}, 1, 3, 12);
  expect_settled(k, (ax_position){.dim = 0, .coef = 2, .offset = 1, .dynamic = ax_kernel_const(k, AX_S64, 4), .limit = 4}, 0, 2, 5);
  expect_left(k, (ax_position){.dim = -1, .dynamic = j32, .limit = 298});                               /* the last one is clamped */
  expect_left(k, (ax_position){.dim = -1, .dynamic = minus, .limit = 20});                              /* the first one is */
  expect_left(k, (ax_position){.dim = -1, .dynamic = as(k, AX_S64, as(k, AX_S8, j)), .limit = 1000});   /* it wraps */
  expect_left(k, (ax_position){.dim = 0, .coef = 1, .dynamic = j32, .limit = 299});                     /* two indices */
  expect_left(k, (ax_position){.dim = -1, .dynamic = ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, i, j, AX_NONE), .limit = 999});
  expect_left(k, (ax_position){.dim = -1, .dynamic = with(k, AX_SCALAR_MUL, j32, INT64_C(1) << 40), .limit = INT64_MAX});
}

/* Of both indices: 300 i + j goes over both as one; i + j and j - 300 i do not. */
static void numbers_of_two_indices(void **state) {
  (void)state;
  const int64_t dims[] = {10, 300};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_ex i = ax_kernel_index(k, 0), j = ax_kernel_index(k, 1), rows = with(k, AX_SCALAR_MUL, as(k, AX_S32, i), 300);
  const ax_ex both = ax_kernel_op(k, AX_SCALAR_SUB, AX_S32, as(k, AX_S32, j), rows, AX_NONE);
  ax_affine number;
  assert_true(ax_affine_node(k, with(k, AX_SCALAR_SUB, both, 7), &number));
  assert_true(number.coef[0] == -300 && number.coef[1] == 1 && number.offset == -7);
  assert_false(ax_affine_node(k, as(k, AX_U32, both), &number));                                 /* some are negative */
  assert_false(ax_affine_node(k, as(k, AX_S32, with(k, AX_SCALAR_MUL, i, INT32_MAX)), &number)); /* it wraps */
  assert_false(ax_affine_node(k, ax_kernel_op(k, AX_SCALAR_MUL, AX_S64, i, j, AX_NONE), &number));
  (void)ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, i, j, AX_NONE);
  assert_false(ax_kernel_counts_over(k, 1));
  (void)ax_kernel_op(k, AX_SCALAR_ADD, AX_S32, as(k, AX_S32, j), rows, AX_NONE);
  assert_true(ax_kernel_counts_over(k, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_random),
      cmocka_unit_test(apart),
      cmocka_unit_test(an_address_adds_up_rows_and_columns),
      cmocka_unit_test(an_address_has_positions_in_another_array),
      cmocka_unit_test(a_position_has_one_index),
      cmocka_unit_test_setup_teardown(indices_that_count, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(numbers_of_two_indices, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
