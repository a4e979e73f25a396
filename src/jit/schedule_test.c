/* Which shape sums over rows are made in: by what is added up and how much is read. And which short loops become longer, where
   squares are turned. */
#include "jit/nest/schedule.h"

#include "base/base.h"
#include "support/cmocka.h"

/* y[j] = the sum, or another reduction, over i of x[i, j]. */
static ax_nest_shape shape_of(ax_dtype dtype, ax_scalar reduce, int64_t rows, int64_t columns, uint32_t vector_bytes) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {columns, rows}, from[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  const uint32_t in = ax_kernel_slot(k, dtype, 2, from), out = ax_kernel_slot(k, dtype, 1, dims);
  const ax_position at[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  ax_kernel_store(k, out, &at[1], ax_kernel_load(k, in, at), reduce);
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, vector_bytes, &schedule), AX_OK);
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

/* y = x with its dimensions in reverse order, which are these of y: what its loops have become, "rows of V, squares along W", an
   inner extent in brackets. */
static void expect_turned(ax_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t ranged, uint32_t vector_bytes,
                          const char *wanted) {
  ax_arena arena = {0};
  ax_nest_schedule *s;
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  int64_t reversed[AX_MAX_RANK];
  ax_text text = {0};
  char *got;
  ax_loop_kernel *k = ax_kernel_create(&arena, rank, 0, dims);
  for (uint32_t d = 0; d < rank; d++) {
    from[d] = (ax_position){.dim = (int)(rank - 1 - d), .coef = 1, .dynamic = AX_NONE};
    reversed[d] = dims[rank - 1 - d];
  }
  ax_at_identity(to, rank);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, rank, dims), to, ax_kernel_load(k, ax_kernel_slot(k, dtype, rank, reversed), from),
                  AX_SCALAR_NONE);
  k->ranged = ranged;
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, vector_bytes, &s), AX_OK);
  const ax_loop *rows = &s->loops[s->vector], *last = &s->loops[s->loop_count - 1];
  if (s->shape == AX_NEST_TRANSPOSE)
    ax_text_add(&text, "%lld (%lld), %lld (%lld)", (long long)rows->extent, (long long)rows->inner, (long long)last->extent,
                (long long)last->inner);
  else ax_text_add(&text, "no squares");
  assert_int_equal(ax_text_finish(&text, &got), AX_OK);
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_arena_deinit(&arena);
}

static void short_rows_go_on_in_the_next_loop(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    expect_turned(AX_F32, 3, (int64_t[]){512, 512, 5}, 0, bytes, "2560 (5), 512 (0)");         /* what is written */
    expect_turned(AX_F32, 4, (int64_t[]){5, 100, 32, 7}, 1, bytes, "224 (7), 500 (5)");        /* and what is read */
    expect_turned(AX_F32, 3, (int64_t[]){512, 7, 512}, 0, bytes, "512 (0), 512 (0)");          /* both are long */
    expect_turned(AX_F64, 2, (int64_t[]){1000, 1000}, 0, bytes, "1000 (0), 1000 (0)");         /* there is no other loop */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_over_rows), cmocka_unit_test(short_rows_go_on_in_the_next_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
