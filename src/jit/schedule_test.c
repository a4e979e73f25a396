/* Which shape sums over rows are made in: by what is added up and how much is read. */
#include "jit/schedule.h"

#include "base/base.h"
#include "support/cmocka.h"

/* y[j] = the sum, or another reduction, over i of x[i, j]. */
static ax_nest_shape shape_of(ax_dtype dtype, ax_scalar reduce, int64_t rows, int64_t columns, uint32_t vector_bytes) {
  ax_arena arena = {0};
  ax_schedule *schedule;
  const int64_t dims[] = {columns, rows}, from[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  const uint32_t in = ax_kernel_slot(k, dtype, 2, from), out = ax_kernel_slot(k, dtype, 1, dims);
  const ax_position at[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  ax_kernel_store(k, out, &at[1], ax_kernel_load(k, in, at), reduce);
  assert_false(k->failed);
  assert_int_equal(ax_schedule_create(&arena, k, vector_bytes, &schedule), AX_OK);
  const ax_nest_shape shape = schedule->shape;
  ax_arena_deinit(&arena);
  return shape;
}

static void sums_over_rows(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    const int64_t columns = 4 * (bytes / 4);
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 100, columns, bytes), AX_NEST_TILE);
    assert_int_equal(shape_of(AX_BF16, AX_SCALAR_ADD, 100, columns, bytes), AX_NEST_TILE);
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 16, columns, bytes), AX_NEST_BLOCK);      /* nothing is widened */
    assert_int_equal(shape_of(AX_F64, AX_SCALAR_ADD, 100, columns / 2, bytes), AX_NEST_BLOCK); /* nor here, */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_MAX, 100, columns, bytes), AX_NEST_BLOCK);     /* nor here */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 1 << 16, columns, bytes), AX_NEST_BLOCK); /* memory takes longer */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 100, 16 * columns, bytes), AX_NEST_TILE);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_over_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
