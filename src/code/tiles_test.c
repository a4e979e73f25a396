/* Tiles of products: all of them together are the product, each begins at an edge, and the room of a product is enough for a thread that
   makes it alone and for as many threads as it was made for. */
#include "code/tiles.h"

#include "code/split.h"
#include "support/cmocka.h"

static ax_gemm product(int64_t batch, int64_t m, int64_t n, int64_t k) {
  ax_gemm g = {.dtype = AX_F32, .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n, .batch_rank = batch > 0};
  g.batch[0] = batch;
  g.a_stride[0] = m * k;
  g.b_stride[0] = k * n;
  g.c_stride[0] = m * n;
  return g;
}

static void check_extent(int64_t extent, int64_t edge, int64_t count) {
  assert_true(edge > 0);
  assert_int_equal(ax_tile_begin(extent, edge, 0, count), 0);
  assert_int_equal(ax_tile_begin(extent, edge, count, count), extent);
  for (int64_t i = 0; i < count; i++) {
    assert_true(ax_tile_begin(extent, edge, i, count) <= ax_tile_begin(extent, edge, i + 1, count));
    assert_true(ax_tile_begin(extent, edge, i, count) % edge == 0 || ax_tile_begin(extent, edge, i, count) == extent);
  }
}

static void check_room(const ax_gemm *g, const ax_tiling *t, uint32_t threads) {
  const int64_t count = g->batch_rank > 0 ? g->batch[0] : 1;
  const size_t room = ax_gemm_room_bytes(g, threads);
  ax_tile_room one;
  ax_gemm_tile_room(g, g->m, g->n, count, &one);
  assert_true(one.bytes <= room);
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t c = 0; c < t->columns; c++) {
      const int64_t rows = ax_tile_begin(g->m, t->row_edge, r + 1, t->rows) - ax_tile_begin(g->m, t->row_edge, r, t->rows);
      const int64_t columns = ax_tile_begin(g->n, t->column_edge, c + 1, t->columns) - ax_tile_begin(g->n, t->column_edge, c, t->columns);
      if (rows == 0 || columns == 0) continue;
      ax_gemm_tile_room(g, rows, columns, (count + t->groups - 1) / t->groups, &one);
      assert_true(one.packed_at <= one.sums_at && one.sums_at <= one.bytes);
      if (t->rows * t->columns * t->groups > 1) assert_true(one.bytes <= room / threads / 64 * 64);
    }
}

static void products_are_cut(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{0, 600, 600, 600}, {0, 1, 4096, 512}, {0, 4096, 10, 64}, {3, 256, 512, 128}, {128, 64, 64, 64}, {0, 2, 3, 5}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (uint32_t threads = 2; threads <= 7; threads++) {
      const ax_gemm g = product(sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3]);
      if (ax_gemm_parts(&g) == 1) continue; /* one thread makes it */
      const ax_product whole = ax_gemm_product(&g, g.m, g.n);
      const ax_product_way way = ax_gemm_way(&g, &whole);
      ax_tiling t = ax_gemm_tiling(&g, way.plain, threads);
      ax_gemm_edges(&g, &way, &t);
      assert_true(t.rows > 0 && t.columns > 0 && t.groups > 0);
      check_extent(g.m, t.row_edge, t.rows);
      check_extent(g.n, t.column_edge, t.columns);
      check_room(&g, &t, threads);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_cut)};
  return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
