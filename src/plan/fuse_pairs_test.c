/* What two kernels touch: asked of copies between rows, columns and whole matrices. */
#include "plan/fuse_pairs.h"

#include "support/arena.h"
#include "support/cmocka.h"

enum { X, Y, Z, TABLE, VIEW, BUFFERS }; /* matrices [64, 3]; the last is of the same memory as X */

static ax_plan plan_of(ax_buffer *buffers) {
  for (uint32_t b = 0; b < BUFFERS; b++)
    buffers[b] = (ax_buffer){.kind = AX_BUFFER_TEMP,
                             .type = ax_array_type(AX_F32, AX_DIMS(b == VIEW ? 192 : 64, b == VIEW ? 1 : 3)),
                             .allocation = b == VIEW ? X : b,
                             .loop = AX_NONE};
  return (ax_plan){.buffers = buffers, .buffer_count = BUFFERS};
}

static ax_position along(int dim, int64_t offset) { return (ax_position){.dim = dim, .coef = dim < 0 ? 0 : 1, .offset = offset, .dynamic = AX_NONE}; }

/* Over `rank` of the dimensions: to[there] = from[at]. */
static ax_bound moved(uint32_t rank, uint32_t from, const ax_position *at, uint32_t to, const ax_position *there) {
  const int64_t dims[] = {64, 3};
  ax_bound made = {ax_kernel_create(&test_arena, rank, 0, dims), ax_arena_alloc(&test_arena, 2 * sizeof made.buffers[0])};
  const ax_ex value = ax_kernel_load(made.kernel, ax_kernel_slot(made.kernel, AX_F32, 2, dims), at);
  ax_kernel_store(made.kernel, ax_kernel_slot(made.kernel, AX_F32, 2, dims), there, value, AX_SCALAR_NONE);
  made.buffers[0] = from;
  made.buffers[1] = to;
  return made;
}

/* to[i, column] = from[i, of], for all 64 rows. */
static ax_bound copy(uint32_t from, int64_t of, uint32_t to, int64_t column) {
  const ax_position at[] = {along(0, 0), along(-1, of)}, there[] = {along(0, 0), along(-1, column)};
  return moved(1, from, at, to, there);
}

/* to = from, all of it. */
static ax_bound copy_all(uint32_t from, uint32_t to) {
  const ax_position at[] = {along(0, 0), along(1, 0)};
  return moved(2, from, at, to, at);
}

static bool agree(ax_bound a, ax_bound b) {
  ax_buffer buffers[BUFFERS];
  const ax_plan plan = plan_of(buffers);
  return ax_kernels_agree(&plan, &a, &b);
}

static void columns_of_one_array_may_be_stored_together(void **state) {
  (void)state;
  assert_true(agree(copy(X, 0, Z, 0), copy(Y, 1, Z, 2)));
  assert_false(agree(copy(X, 0, Z, 1), copy(Y, 1, Z, 1))); /* the same column twice: the second is to last */
}

static void what_is_read_is_written_by_nobody_else(void **state) {
  (void)state;
  assert_true(agree(copy_all(X, Y), copy_all(Y, Z)));      /* at the very element */
  assert_false(agree(copy(X, 0, Y, 0), copy(Y, 1, Z, 0))); /* at another one, or not all of it */
  assert_false(agree(copy_all(X, Z), copy_all(Y, X)));     /* what the first reads */
  assert_false(agree(copy_all(Y, X), copy_all(VIEW, Z)));  /* another view of what the first writes */
}

static void readers_of_what_a_kernel_stores(void **state) {
  const ax_bound a = copy_all(X, Y), b = copy_all(Y, Z), c = copy_all(X, Z);
  (void)state;
  assert_true(ax_kernel_feeds(&a, &b));
  assert_false(ax_kernel_feeds(&b, &a) || ax_kernel_feeds(&a, &c));
}

static void arrays_in_common(void **state) {
  ax_buffer buffers[BUFFERS];
  const ax_plan plan = plan_of(buffers);
  const ax_bound a = copy_all(X, Y), b = copy_all(VIEW, Z), c = copy_all(TABLE, Z);
  (void)state;
  assert_true(ax_kernels_share(&plan, &a, &b, 192));
  assert_false(ax_kernels_share(&plan, &a, &b, 193) || ax_kernels_share(&plan, &a, &c, 0));
  assert_true(ax_kernel_stays_apart(&plan, &a, &c));
  assert_false(ax_kernel_stays_apart(&plan, &a, &b));
}

/* to = the sum of all of from. */
static ax_bound sum_of(uint32_t from, int64_t rows, uint32_t to) {
  const int64_t dims[] = {rows, 1024};
  const ax_position at[] = {along(0, 0), along(1, 0)};
  ax_bound made = {ax_kernel_create(&test_arena, 2, 2, dims), ax_arena_alloc(&test_arena, 2 * sizeof made.buffers[0])};
  const ax_ex value = ax_kernel_load(made.kernel, ax_kernel_slot(made.kernel, AX_F32, 2, dims), at);
  ax_kernel_store(made.kernel, ax_kernel_slot(made.kernel, AX_F32, 0, NULL), NULL, value, AX_SCALAR_ADD);
  made.buffers[0] = from;
  made.buffers[1] = to;
  return made;
}

static void sums_of_different_parts(void **state) {
  ax_buffer buffers[BUFFERS];
  const ax_plan plan = plan_of(buffers);
  const ax_bound x = sum_of(X, 64, Y), part = sum_of(VIEW, 64, Z), table = sum_of(TABLE, 64, Z), copied = copy_all(X, TABLE);
  (void)state;
  for (uint32_t rows = 63; rows <= 64; rows++) { /* 252 and 256 KB */
    buffers[X].type = buffers[VIEW].type = buffers[TABLE].type = ax_array_type(AX_F32, AX_DIMS(rows, 1024));
    buffers[VIEW].offset = ax_buffer_bytes(&buffers[X]);
    assert_true(ax_reductions_have_nothing_in_common(&plan, &x, &part) == (rows == 64)); /* of one allocation */
    assert_true(ax_reductions_have_nothing_in_common(&plan, &x, &table) == (rows == 64));
    buffers[VIEW].offset = 4096;
    assert_false(ax_reductions_have_nothing_in_common(&plan, &x, &part)); /* some of it is the same */
    assert_false(ax_reductions_have_nothing_in_common(&plan, &x, &copied));
  }
}

static void what_no_near_cache_holds(void **state) {
  ax_buffer buffers[BUFFERS];
  const ax_plan plan = plan_of(buffers);
  const ax_bound a = copy_all(X, Y);
  (void)state;
  for (int large = 0; large < 2; large++) {
    buffers[Y].type = ax_array_type(AX_F32, AX_DIMS((64 << 10) - (large == 0)));
    assert_true(ax_kernel_makes_much(&plan, &a) == (large == 1));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(columns_of_one_array_may_be_stored_together, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_is_read_is_written_by_nobody_else, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(readers_of_what_a_kernel_stores, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_no_near_cache_holds, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(sums_of_different_parts, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(arrays_in_common, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
