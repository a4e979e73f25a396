/* Whether fusing kernels pays: asked of kernels of a few nodes. */
#include "plan/fuse_worth.h"

#include "support/arena.h"
#include "support/cmocka.h"

static ax_position along(int dim, int64_t coef, int64_t offset) {
  return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
}

/* Over i < 10, j < 20; slot 0 is x[10, 20], slot 1 is y[10, 20]. */
static ax_loop_kernel *over_rows(void) {
  const int64_t dims[] = {10, 20};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  ax_kernel_slot(k, AX_F32, 2, dims);
  ax_kernel_slot(k, AX_F32, 2, dims);
  return k;
}

static ax_ex load(ax_loop_kernel *k, int64_t offset) {
  const ax_position at[] = {along(0, 1, 0), along(1, 1, offset)};
  return ax_kernel_load_where(k, 0, at, offset == 0 ? AX_NONE : ax_kernel_inside(k, 1, 1, offset, 20));
}

static ax_loop_kernel *store(ax_loop_kernel *k, ax_ex expr) {
  const ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  ax_kernel_store(k, 1, at, expr, AX_SCALAR_NONE);
  return k;
}

static ax_ex op(ax_loop_kernel *k, ax_scalar scalar, ax_ex a, ax_ex b) { return ax_kernel_op(k, scalar, AX_F32, a, b, AX_NONE); }

static bool is_cheap(const ax_loop_kernel *k) {
  assert_true(ax_kernel_is_cheap(k) == ax_store_is_cheap(k, &k->stores[0]));
  return ax_kernel_is_cheap(k);
}

static void a_load_alone_is_cheap(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  assert_true(is_cheap(store(k, load(k, 0))));
  k = over_rows();
  assert_false(is_cheap(store(k, op(k, AX_SCALAR_NEG, load(k, 0), AX_NONE))));
}

static bool is_light(const ax_loop_kernel *k) { return ax_store_light_loads(k, &k->stores[0]) == 1; }

static void a_load_and_a_sign_are_light(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  assert_true(is_light(store(k, op(k, AX_SCALAR_NEG, load(k, 0), AX_NONE))));
  k = over_rows();
  assert_true(is_light(store(k, op(k, AX_SCALAR_MUL, load(k, 0), ax_kernel_const(k, AX_F32, 0x40000000)))));
  k = over_rows();
  assert_false(is_light(store(k, load(k, 0)))); /* which is cheap */
  k = over_rows();
  assert_false(is_light(store(k, op(k, AX_SCALAR_NEG, op(k, AX_SCALAR_NEG, load(k, 0), AX_NONE), AX_NONE))));
  k = over_rows();
  assert_false(is_light(store(k, op(k, AX_SCALAR_EXP, load(k, 0), AX_NONE))));
  k = over_rows();
  assert_false(is_light(store(k, op(k, AX_SCALAR_ADD, load(k, 0), load(k, 1)))));
}

/* x[i, j] - y[i, j], times a number, and so on; or of the same array, from row to row. */
static ax_loop_kernel *difference(uint32_t more) {
  const ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  ax_loop_kernel *k = over_rows();
  ax_ex x = op(k, AX_SCALAR_SUB, load(k, 0), ax_kernel_load(k, 1, at));
  for (uint32_t i = 0; i < more; i++) x = op(k, AX_SCALAR_MUL, x, ax_kernel_const(k, AX_F32, 0x40400000 + i));
  return store(k, x);
}

static void differences_are_light(void **state) {
  (void)state;
  for (uint32_t more = 0; more < 5; more++) {
    const ax_loop_kernel *k = difference(more);
    assert_int_equal(ax_store_light_loads(k, &k->stores[0]), more <= 2 ? 2 : 0);
  }
  ax_loop_kernel *k = over_rows();
  k = store(k, op(k, AX_SCALAR_ADD, op(k, AX_SCALAR_EXP, load(k, 0), AX_NONE), load(k, 0)));
  assert_int_equal(ax_store_light_loads(k, &k->stores[0]), 0);
}

static void constants_cost_nothing(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  ax_ex x = ax_kernel_const(k, AX_F32, 0x3f800000);
  for (int i = 0; i < 10; i++) x = op(k, AX_SCALAR_EXP, x, AX_NONE); /* the compiler computes them */
  assert_true(is_cheap(store(k, x)));
}

static void a_little_work_on_indices_is_cheap(void **state) {
  (void)state;
  for (int work = 1; work <= 3; work++) {
    ax_loop_kernel *k = over_rows();
    ax_ex x = ax_kernel_index(k, 0);
    for (int i = 0; i < work; i++) x = ax_kernel_op(k, AX_SCALAR_XOR, AX_S64, x, ax_kernel_const(k, AX_S64, i + 1), AX_NONE);
    assert_int_equal(is_cheap(store(k, x)), work <= 2);
  }
}

/* From one element to the next such numbers grow by as much. */
static void counting_costs_nothing(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  const ax_ex row = ax_kernel_index(k, 0), column = ax_kernel_index(k, 1), many = ax_kernel_const(k, AX_S64, 256);
  ax_ex x = ax_kernel_op(k, AX_SCALAR_MUL, AX_S64, row, many, AX_NONE);
  for (int i = 0; i < 5; i++) x = ax_kernel_op(k, AX_SCALAR_SUB, AX_S64, x, column, AX_NONE);
  assert_true(is_cheap(store(k, ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S32, x, AX_NONE, AX_NONE))));
  k = over_rows();
  x = ax_kernel_index(k, 0);
  for (int i = 0; i < 3; i++) x = ax_kernel_op(k, AX_SCALAR_MUL, AX_S64, x, ax_kernel_index(k, 1), AX_NONE);
  assert_false(is_cheap(store(k, x)));
}

/* Of loads with guards one is done. */
static void pieces_put_together_are_cheap_while_they_are_few(void **state) {
  (void)state;
  for (int pieces = 1; pieces <= 5; pieces++) {
    ax_loop_kernel *k = over_rows();
    ax_ex x = load(k, -1);
    for (int i = 2; i <= pieces; i++) {
      const ax_ex guard = ax_kernel_inside(k, 1, 1, -i, 20);
      x = ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, guard, load(k, -i), x);
    }
    assert_int_equal(is_cheap(store(k, x)), pieces <= 4);
  }
}

static void a_reduction_is_not_cheap(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  store(k, load(k, 0))->reduce_rank = 1;
  assert_false(ax_kernel_is_cheap(k));
}

static void look_ups(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  const ax_ex three = ax_kernel_const(k, AX_S64, 3);
  ax_position at[] = {along(-1, 0, 0), along(1, 1, 0)};
  store(k, load(k, 0));
  assert_int_equal(ax_kernel_looks_up(k), 0);
  at[0].dynamic = three, at[0].limit = 9; /* of all elements the same row */
  store(k, ax_kernel_load(k, 0, at));
  assert_int_equal(ax_kernel_looks_up(k), 0);
  const ax_ex load_at[] = {load(k, 3), load(k, 7)};
  at[0].dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, load_at[0], AX_NONE, AX_NONE); /* another one for each element */
  store(k, ax_kernel_load(k, 0, at));
  assert_int_equal(ax_kernel_looks_up(k), 1);
  const ax_position first[] = {along(0, 1, 0), along(-1, 0, 0)};
  at[0].dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, ax_kernel_load(k, 1, first), AX_NONE, AX_NONE);
  at[0].limit = 7; /* another place than the first's; for each row one */
  store(k, ax_kernel_load(k, 0, at));
  assert_int_equal(ax_kernel_looks_up(k), 1);
}

static void loads_of_a_slot(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  const ax_ex x = load(k, 0);
  store(k, x);
  assert_true(ax_kernel_loads_apart(k, 0));
  assert_false(ax_kernel_loads_apart(k, 1)); /* none */
  assert_true(ax_kernel_is_guard(k, ax_kernel_inside(k, 1, 1, 3, 20)) && !ax_kernel_is_guard(k, x));
  assert_false(ax_kernel_guards(k, 0));
  store(k, load(k, 2));
  assert_false(ax_kernel_loads_apart(k, 0));
  assert_true(ax_kernel_guards(k, 0) && !ax_kernel_guards(k, 1));
}

/* Columns 2 and 5, then the first of them in another row; and column 5 beside all. */
static void columns_are_apart(void **state) {
  (void)state;
  ax_loop_kernel *k = over_rows();
  ax_position at[] = {along(0, 1, 0), along(-1, 0, 2)};
  store(k, ax_kernel_load(k, 0, at));
  at[1].offset = 5;
  store(k, ax_kernel_load(k, 0, at));
  assert_true(ax_kernel_loads_apart(k, 0));
  at[0] = along(-1, 0, 0), at[1].offset = 2;
  store(k, ax_kernel_load(k, 0, at));
  assert_false(ax_kernel_loads_apart(k, 0));
  k = over_rows();
  at[0] = along(0, 1, 0), at[1].offset = 5;
  store(k, ax_kernel_load(k, 0, at));
  store(k, load(k, 0));
  assert_false(ax_kernel_loads_apart(k, 0));
}

/* Slot 2 of `k`: rows of so many columns, of which it makes one. */
static ax_loop_kernel *column(int64_t columns, int64_t at_column) {
  ax_loop_kernel *k = over_rows();
  const int64_t dims[] = {10, 20, columns};
  const ax_position at[] = {along(0, 1, 0), along(1, 1, 0), along(-1, 0, at_column)};
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 3, dims), at, load(k, 0), AX_SCALAR_NONE);
  return k;
}

static void columns_fill_rows(void **state) {
  (void)state;
  uint32_t first[] = {7, 8, 9}, second[] = {5, 6, 9}, other[] = {5, 6, 4};
  const ax_bound a = {column(3, 0), first}, b = {column(3, 2), second}, elsewhere = {column(3, 2), other};
  const ax_bound wide = {column(5, 0), first}, wide_too = {column(5, 2), second};
  assert_true(ax_bounds_fill_rows(&a, &b));
  assert_false(ax_bounds_fill_rows(&a, &elsewhere));
  assert_false(ax_bounds_fill_rows(&wide, &wide_too));
}

static void spaces_are_equal_by_their_sizes(void **state) {
  (void)state;
  const ax_loop_kernel *a = over_rows(), *same = over_rows(), *other = ax_kernel_create(&test_arena, 2, 0, (const int64_t[]){10, 21}),
                       *longer = ax_kernel_create(&test_arena, 3, 0, (const int64_t[]){10, 20, 1});
  assert_true(ax_kernels_same_space(a, same));
  assert_false(ax_kernels_same_space(a, other) || ax_kernels_same_space(a, longer));
}

/* Reads x in rows, and its transpose in columns. */
static ax_loop_kernel *walks(bool columns) {
  const int64_t dims[] = {10, 20}, turned[] = {20, 10};
  const ax_position at[] = {along(columns ? 1 : 0, 1, 0), along(columns ? 0 : 1, 1, 0)};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const uint32_t x = ax_kernel_slot(k, AX_F32, 2, columns ? turned : dims);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, columns ? turned : dims), at, ax_kernel_load(k, x, at), AX_SCALAR_NONE);
  return k;
}

/* A row of a matrix, or a column of it, that lies on its own then. */
static ax_loop_kernel *taken(bool column) {
  const int64_t dims[] = {64, 64};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 1, 0, dims);
  const ax_position at[] = {along(0, column ? 1 : 0, 0), along(0, column ? 0 : 1, 0)}, to = along(0, 1, 0);
  const ax_ex loaded = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, dims), at);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), &to, loaded, AX_SCALAR_NONE);
  return k;
}

/* `rows` rows of a vector of 64, which goes along dimension `dim`. */
static ax_loop_kernel *repeated(int64_t rows, int dim) {
  const int64_t dims[] = {rows, 64}, vector = 64;
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_position from = along(dim, 1, 0), at[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex loaded = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, &vector), &from);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, loaded, AX_SCALAR_NONE);
  return k;
}

static void columns_are_brought_together_for_who_reads_them_often(void **state) {
  const ax_loop_kernel *column = taken(true), *row = taken(false), *often = repeated(64, 1), *seldom = repeated(4, 1), *turned = repeated(64, 0);
  (void)state;
  assert_true(ax_copy_gathers(column, &column->stores[0], often, 0));
  assert_false(ax_copy_gathers(row, &row->stores[0], often, 0));
  assert_false(ax_copy_gathers(column, &column->stores[0], seldom, 0));
  assert_false(ax_copy_gathers(column, &column->stores[0], turned, 0));
}

/* The first `row` of each of 64 rows of `pitch` elements. */
static ax_loop_kernel *rows_taken(int64_t row, int64_t pitch) {
  const int64_t dims[] = {64, row}, whole[] = {64, pitch};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex loaded = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, whole), at);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, loaded, AX_SCALAR_NONE);
  return k;
}

/* Distances: all pairs of so many rows and the 64, summed along a row. */
static ax_loop_kernel *paired(int64_t times, int64_t row) {
  const int64_t dims[] = {times, 64, row}, rows[] = {64, row};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 3, 1, dims);
  const ax_position at[] = {along(1, 1, 0), along(2, 1, 0)}, to[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, rows), at);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), to, ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, x, AX_NONE), AX_SCALAR_ADD);
  return k;
}

static bool gathers_rows(int64_t row, int64_t pitch, int64_t times) {
  const ax_loop_kernel *rows = rows_taken(row, pitch);
  return ax_copy_gathers(rows, &rows->stores[0], paired(times, row), 0);
}

static void short_rows_are_brought_together_for_who_reads_them_often(void **state) {
  (void)state;
  assert_true(gathers_rows(8, 512, 64) && gathers_rows(3, 24, 64) && gathers_rows(64, 128, 64));
  assert_false(gathers_rows(8, 512, 4));   /* seldom read */
  assert_false(gathers_rows(8, 12, 64));   /* not apart */
  assert_false(gathers_rows(80, 512, 64)); /* long */
  assert_false(gathers_rows(8, 8, 64));    /* all */
}

/* `count` rows of a table, those of so many numbers. */
static ax_loop_kernel *looked_up(int64_t count, int64_t row, ax_dtype dtype) {
  const int64_t dims[] = {count, row}, table[] = {100, row};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_position number = along(0, 1, 0), at[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex which = ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 1, dims), &number);
  const ax_position from[] = {{.dim = -1, .dynamic = which, .limit = 99}, along(1, 1, 0)};
  const ax_ex loaded = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, table), from);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, loaded, AX_SCALAR_NONE);
  return k;
}

static ax_loop_kernel *computed(int64_t count, int64_t row, ax_dtype dtype, ax_scalar op) {
  const int64_t dims[] = {count, row};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, dims), at);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, ax_kernel_op(k, op, dtype, x, AX_NONE, AX_NONE), AX_SCALAR_NONE);
  return k;
}

static bool fill_little(int64_t count, int64_t row, ax_dtype dtype, ax_scalar op) {
  const ax_loop_kernel *rows = looked_up(count, row, dtype);
  return ax_rows_fill_little(rows, &rows->stores[0], computed(count, row, dtype, op));
}

static void functions_of_short_rows_are_computed_when_they_are_together(void **state) {
  (void)state;
  assert_true(fill_little(5000, 2, AX_F32, AX_SCALAR_TANH) && fill_little(5000, 7, AX_F32, AX_SCALAR_EXP) && fill_little(5000, 3, AX_F64, AX_SCALAR_SIN));
  assert_false(fill_little(5000, 8, AX_F32, AX_SCALAR_TANH) || fill_little(5000, 4, AX_F64, AX_SCALAR_TANH));
  assert_false(fill_little(5000, 2, AX_F32, AX_SCALAR_NEG) || fill_little(5000, 2, AX_F32, AX_SCALAR_SQRT));
  assert_false(fill_little(1000, 2, AX_F32, AX_SCALAR_TANH) || fill_little(5000, 1, AX_F32, AX_SCALAR_TANH));
  const ax_loop_kernel *plain = computed(5000, 2, AX_F32, AX_SCALAR_NEG), *rows = looked_up(5000, 2, AX_F32);
  assert_false(ax_rows_fill_little(plain, &plain->stores[0], computed(5000, 2, AX_F32, AX_SCALAR_TANH)));
  assert_false(ax_rows_fill_little(rows, &rows->stores[0], computed(5001, 2, AX_F32, AX_SCALAR_TANH)));
}

static void rows_and_columns_are_not_walked_together(void **state) {
  (void)state;
  assert_true(ax_kernels_walk_alike(walks(false), walks(false)) && ax_kernels_walk_alike(walks(true), walks(true)));
  assert_false(ax_kernels_walk_alike(walks(false), walks(true)));
}

static ax_loop_kernel *reduces(int64_t kept, int64_t length) {
  return ax_kernel_create(&test_arena, 2, 1, (const int64_t[]){kept, length});
}

static void long_rows_to_few_results_go_in_blocks(void **state) {
  (void)state;
  const ax_loop_kernel *whole = over_rows();
  assert_true(ax_kernels_need_blocks(reduces(15, 20000), whole) && ax_kernels_need_blocks(whole, reduces(15, 20000)));
  assert_false(ax_kernels_need_blocks(reduces(16, 20000), whole)); /* enough results for threads */
  assert_false(ax_kernels_need_blocks(reduces(15, 1 << 14), whole));
  assert_false(ax_kernels_need_blocks(reduces(15, 20000), reduces(15, 20000)));
  assert_false(ax_kernels_need_blocks(whole, whole));
}

/* Kernels of so many slots, whose buffers are numbered from `first` on. */
static ax_bound touching(uint32_t count, uint32_t first) {
  const int64_t dims[] = {4};
  ax_bound b = {ax_kernel_create(&test_arena, 1, 0, dims), ax_arena_alloc(&test_arena, count * sizeof(uint32_t))};
  for (uint32_t i = 0; i < count; i++) b.buffers[ax_kernel_slot(b.kernel, AX_F32, 1, dims)] = first + i;
  return b;
}

static void shared_buffers_count_once(void **state) {
  (void)state;
  const ax_bound a = touching(20, 100), shares = touching(10, 114), apart = touching(5, 200);
  assert_true(ax_bounds_fit(&a, &shares)); /* 6 are a's: 24 in all */
  assert_false(ax_bounds_fit(&a, &apart)); /* 25 */
}

/* y[i, j] = x[j, i] of square arrays. */
static void a_transpose_turns(void **state) {
  (void)state;
  const int64_t dims[] = {20, 20};
  const ax_position across[] = {along(1, 1, 0), along(0, 1, 0)};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const uint32_t from = ax_kernel_slot(k, AX_F32, 2, dims);
  ax_kernel_slot(k, AX_F32, 2, dims);
  assert_true(ax_kernel_turns(store(k, ax_kernel_load(k, from, across))));
  k = over_rows();
  assert_false(ax_kernel_turns(store(k, load(k, 0))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_transpose_turns, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_load_alone_is_cheap, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_load_and_a_sign_are_light, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(differences_are_light, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(columns_are_apart, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(columns_fill_rows, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(constants_cost_nothing, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_little_work_on_indices_is_cheap, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(counting_costs_nothing, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(pieces_put_together_are_cheap_while_they_are_few, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_reduction_is_not_cheap, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(look_ups, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(loads_of_a_slot, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(spaces_are_equal_by_their_sizes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(rows_and_columns_are_not_walked_together, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(columns_are_brought_together_for_who_reads_them_often, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(short_rows_are_brought_together_for_who_reads_them_often, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(functions_of_short_rows_are_computed_when_they_are_together, test_arena_start,
                                      test_arena_end),
      cmocka_unit_test_setup_teardown(long_rows_to_few_results_go_in_blocks, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(shared_buffers_count_once, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
