/* Products of every dtype, at each width of register, in every orientation, against sums in f64 or modulo 2^32; and that what a
   result is follows from k alone: not from the tile it is made in, nor from strides. Factors stand right before the end of their
   memory. All of it a second time by the processor's tiles, which are computed in C on processors that have none. */
#include "product/product.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ir/number.h"
#include "machine/float_mode.h"
#include "product/table.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tiles.h"

enum { by_tiles = 1 << AX_FEATURE_AMX_BF16 | 1 << AX_FEATURE_AMX_INT8, slow_pairs = 1 << AX_FEATURE_FAST_AVX512_BF16 };
static const uint32_t widths[] = {64, 32, 16};
static const ax_dtype all_dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S32, AX_U32, AX_S8, AX_U8},
                      tiled_dtypes[] = {AX_BF16, AX_S8, AX_U8};
/* What is tested: all dtypes at all widths without tiles, and then those that tiles are for. */
static const ax_dtype *dtypes = all_dtypes;
static bool catches; /* this processor has no tiles */
static size_t dtype_count = AX_COUNT(all_dtypes), width_count = AX_COUNT(widths);

typedef struct factors {
  ax_product product;
  ax_dtype result;
  char *a, *b, *c;
} factors;

static char *numbers(test_random *random, ax_dtype dtype, int64_t count) {
  char *made = ax_alloc((size_t)count * ax_dtype_bytes(dtype));
  assert_non_null(made);
  for (int64_t i = 0; i < count; i++) {
    ax_number x;
    if (ax_is_float(dtype)) x.f = test_random_uniform(random, -1, 1);
    else x.u = test_random_bits(random);
    ax_number_store(dtype, made, i, x);
  }
  return made;
}

/* way: bit 0, a lies transposed; bit 1, b does. */
static factors make(test_random *random, ax_dtype dtype, int64_t m, int64_t n, int64_t k, int way, bool add) {
  factors f = {.product = {.dtype = dtype, .m = m, .n = n, .k = k, .a_row = way & 1 ? 1 : k, .a_column = way & 1 ? m : 1,
                           .b_row = way & 2 ? 1 : n, .b_column = way & 2 ? k : 1, .c_row = n, .add = add}};
  assert_true(ax_product_result(dtype, &f.result));
  f.a = numbers(random, dtype, m * k);
  f.b = numbers(random, dtype, k * n);
  f.c = numbers(random, f.result, m * n);
  return f;
}

static void release(factors *f) {
  ax_free(f->a);
  ax_free(f->b);
  ax_free(f->c);
}

static void run(const ax_product *product, uint32_t width, const char *a, const char *b, char *c) {
  ax_product far = *product, *p = &far;
  far.far = product->m % 2 == 1; /* of which no result may know, nor of what comes next */
  far.far_b = product->n % 2 == 1;
  if (product->n % 3 != 0) far.next_a = a;
  if (product->k % 3 != 0) far.next_b = b;
  ax_product_way way = ax_product_choose(p, width);
  void *work = way.work_bytes > 0 ? ax_alloc(way.work_bytes) : NULL;
  if (work != NULL) memset(work, 0xff, way.work_bytes); /* NaN */
  if (catches) assert_true(test_tiles_catch());
  ax_product_run(p, &way, a, b, c, work);
  ax_free(work);
  assert_false(test_tiles_taken());
}

static void check_result(const factors *f, const char *before, int64_t i, int64_t j) {
  const ax_product *p = &f->product;
  ax_number old = ax_number_load(f->result, before, i * p->n + j), now = ax_number_load(f->result, f->c, i * p->n + j);
  double sum = p->add ? old.f : 0, size = fabs(sum);
  uint32_t bits = p->add ? (uint32_t)old.u : 0;
  for (int64_t x = 0; x < p->k; x++) {
    ax_number a = ax_number_load(p->dtype, f->a, i * p->a_row + x * p->a_column),
              b = ax_number_load(p->dtype, f->b, x * p->b_row + j * p->b_column);
    if (ax_is_float(p->dtype)) sum += a.f * b.f, size += fabs(a.f * b.f);
    else bits += (uint32_t)a.u * (uint32_t)b.u;
  }
  double most = (size * (f->result == AX_F64 ? 0x1p-53 : 0x1p-24) + 0x1p-149) * ((double)p->k + 2);
  bool right = ax_is_float(p->dtype) ? fabs(now.f - sum) <= most
                                     : (uint32_t)now.u == bits;
  if (!right)
    fail_msg("%s [%lld,%lld,%lld] at %lld,%lld: %.9g, not %.9g", ax_dtype_name(p->dtype), (long long)p->m, (long long)p->n,
             (long long)p->k, (long long)i, (long long)j, now.f, sum);
}

static void check(test_random *random, ax_dtype dtype, int64_t m, int64_t n, int64_t k, int way, uint32_t width) {
  factors f = make(random, dtype, m, n, k, way, way & 4);
  size_t bytes = (size_t)(m * n) * ax_dtype_bytes(f.result);
  char *before = ax_alloc(bytes);
  memcpy(before, f.c, bytes);
  run(&f.product, width, f.a, f.b, f.c);
  int64_t step = 1 + m * n * k / 200000;
  for (int64_t at = 0; at < m * n; at += step) check_result(&f, before, at / n, at % n);
  check_result(&f, before, m - 1, n - 1);
  ax_free(before);
  release(&f);
}

/* Around the sizes of tiles, panels and blocks. */
static void sizes(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 29, 31, 32, 33, 48, 63, 64, 65, 100, 383, 385, 771};
  test_random random = {1};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count; d++)
      for (int i = 0; i < 250; i++) {
        int64_t m = extents[test_random_below(&random, AX_COUNT(extents))],
                n = extents[test_random_below(&random, AX_COUNT(extents))];
        int64_t k = extents[test_random_below(&random, AX_COUNT(extents))];
        if (m * n * k > 1 << 22) k = 1 + k % 16;
        check(&random, dtypes[d], m, n, k, i, widths[w]);
      }
}

/* More columns than are packed at a time, and rows that are copied because they would meet in the cache; few rows, and few
   columns. */
static void large(void **state) {
  (void)state;
  test_random random = {2};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count; d++)
      for (int way = 0; way < 4; way++) {
        check(&random, dtypes[d], 31, 1100, 1024, way, widths[w]);
        check(&random, dtypes[d], 70, 300, 1024, way, widths[w]);
        check(&random, dtypes[d], 29, 200, 2048, way, widths[w]);
        check(&random, dtypes[d], 5, 4100, 400, way, widths[w]);
        check(&random, dtypes[d], 27, 1300, 99, way, widths[w]);
        check(&random, dtypes[d], 515, 1 + way, 777, way, widths[w]);
      }
}

/* Some columns, which few rows do not read in long runs, have the bits of the whole. */
static void check_columns(test_random *random, ax_dtype dtype, int64_t m, int64_t n, int64_t k, int way, uint32_t width) {
  factors f = make(random, dtype, m, n, k, way, false);
  const int64_t bytes = (int64_t)ax_dtype_bytes(dtype), column = test_random_below(random, n / 2);
  char *again = ax_calloc((size_t)(m * n), (size_t)bytes);
  run(&f.product, width, f.a, f.b, f.c);
  ax_product some = f.product;
  some.n = 1 + test_random_below(random, 100);
  run(&some, width, f.a, f.b + column * some.b_column * bytes, again + column * bytes);
  for (int64_t row = 0; row < m; row++)
    assert_memory_equal(again + (row * n + column) * bytes, f.c + (row * n + column) * bytes, (size_t)(some.n * bytes));
  ax_free(again);
  release(&f);
}

/* Few rows of so large a factor that it is read in long runs, or turned, some steps at a time. */
static void few_rows(void **state) {
  (void)state;
  static const ax_dtype in_place[] = {AX_F32, AX_F64, AX_S32};
  test_random random = {8};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < (w == 0 ? AX_COUNT(in_place) : 1); d++) {
      check(&random, in_place[d], 5, 8200, 400, 4 * (int)(w % 2), widths[w]);
      check(&random, in_place[d], w == 0 ? 27 : 7, 4097, 771, 1, widths[w]);
      check(&random, in_place[d], 1 + (int64_t)w, 2050, 399, (int)d, widths[w]);
      for (int way = 1; way <= 7; way += 2) /* the transposed product has few */
        check(&random, in_place[d], w == 0 ? 40003 : 40000, 1 + (int64_t)d, 33, way, widths[w]);
      for (int64_t m = 3; m < 64; m += m < 23 ? 5 : 14) {
        check(&random, in_place[d], m, 1029 + m % 3, 391, 4 + (int)(m % 2), widths[w]);
        check_columns(&random, in_place[d], m, 1029 + m, 391, (int)(m % 2), widths[w]);
        if (m < 17) check_columns(&random, in_place[d], m, 700 + m, 385 + 16 * m, 2 + (int)(m % 2), widths[w]);
      }
    }
}

/* More rows than stay packed for all columns, at the widest registers there are: others make them the same way. */
static void passes(void **state) {
  (void)state;
  test_random random = {6};
  for (size_t d = 0; d < dtype_count; d++)
    for (int way = 0; way < 2; way++) check(&random, dtypes[d], 2701, 350, 400, way, widths[0]);
}

/* All numbers are one of the extremes of 8 bits, and sums are longer than 32 bits hold. */
static void extremes(void **state) {
  (void)state;
  static const struct {
    ax_dtype dtype;
    int a, b;
  } cases[] = {{AX_S8, -128, -128}, {AX_S8, -128, 127}, {AX_S8, 127, -128}, {AX_U8, 255, 255}, {AX_U8, 128, 255}};
  static const int64_t shapes[][3] = {{15, 33, 140001}, {40, 3, 140002}, {2, 18, 70003}, {33, 40, 5}};
  test_random random = {13};
  for (size_t w = 0; w < width_count; w++)
    for (size_t i = 0; i < AX_COUNT(cases) * AX_COUNT(shapes); i++) {
      const int64_t *s = shapes[i % AX_COUNT(shapes)];
      const int a = cases[i / AX_COUNT(shapes)].a, b = cases[i / AX_COUNT(shapes)].b;
      factors f = make(&random, cases[i / AX_COUNT(shapes)].dtype, s[0], s[1], s[2], (int)i, false);
      memset(f.a, a, (size_t)(s[0] * s[2]));
      memset(f.b, b, (size_t)(s[1] * s[2]));
      run(&f.product, widths[w], f.a, f.b, f.c);
      for (int64_t at = 0; at < s[0] * s[1]; at++)
        assert_int_equal((uint32_t)ax_number_load(f.result, f.c, at).u, (uint32_t)s[2] * (uint32_t)(a * b));
      release(&f);
    }
}

/* Any tile of a product, and any strides, give the bits of the whole. */
static void tiles(void **state) {
  (void)state;
  enum { m = 61, n = 131, k = 901 };
  test_random random = {3};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count; d++)
      for (int way = 0; way < 4; way++) {
        factors f = make(&random, dtypes[d], m, n, k, way, false);
        size_t bytes = ax_dtype_bytes(dtypes[d]), made = ax_dtype_bytes(f.result);
        char *again = ax_calloc(m * n, made);
        run(&f.product, widths[w], f.a, f.b, f.c);
        for (int i = 0; i < 60; i++) {
          int64_t row = test_random_below(&random, m), column = test_random_below(&random, n);
          ax_product tile = f.product;
          tile.m = 1 + test_random_below(&random, m - row);
          tile.n = 1 + test_random_below(&random, n - column);
          run(&tile, widths[w], f.a + row * tile.a_row * (int64_t)bytes, f.b + column * tile.b_column * (int64_t)bytes,
              again + (row * n + column) * (int64_t)made);
          for (int64_t r = row; r < row + tile.m; r++)
            assert_memory_equal(again + (r * n + column) * (int64_t)made, f.c + (r * n + column) * (int64_t)made,
                                (size_t)tile.n * made);
        }
        ax_free(again);
        release(&f);
      }
}

/* Some rows at a time, of a factor that was packed once: the bits of the whole. */
static void packed(void **state) {
  (void)state;
  enum { m = 75 };
  static const int64_t sizes[][2] = {{131, 901}, {33, 64}, {512, 64}, {5, 300}, {16, 7}, {200, 1}};
  test_random random = {7};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count; d++)
      for (int i = 0; i < 4 * (int)AX_COUNT(sizes); i++) {
        factors f = make(&random, dtypes[d], m, sizes[i / 4][0], sizes[i / 4][1], i, false);
        const ax_product_way way = ax_product_choose(&f.product, widths[w]);
        const size_t bytes = ax_product_packed_bytes(&way), made = ax_dtype_bytes(f.result) * (size_t)f.product.n;
        char *again = ax_calloc(m, made), *b = bytes > 0 ? ax_alloc(bytes) : NULL,
             *work = way.work_bytes > 0 ? ax_alloc(way.work_bytes) : NULL;
        run(&f.product, widths[w], f.a, f.b, f.c);
        if (b != NULL) ax_product_pack(&f.product, &way, f.b, b);
        ax_product some = f.product;
        for (int64_t row = 0; row < m; row += some.m) {
          some.m = 1 + test_random_below(&random, m - row);
          const char *a = f.a + row * some.a_row * (int64_t)ax_dtype_bytes(dtypes[d]);
          if (b != NULL) ax_product_run_packed(&some, &way, a, b, again + row * (int64_t)made, work);
          else ax_product_run(&some, &way, a, f.b, again + row * (int64_t)made, work);
        }
        assert_memory_equal(again, f.c, m * made);
        ax_free(again), ax_free(b), ax_free(work);
        release(&f);
      }
}

/* Tiles, from the beginning of a panel on, of a factor that was packed whole: the bits of the product that packs for itself,
   whatever its way is. */
static void tiles_of_packed(void **state) {
  (void)state;
  static const int64_t sizes[][3] = {{75, 131, 901}, {1, 200, 64}, {2, 1100, 64}, {5, 300, 7},
                                     {33, 64, 385},  {9, 65, 1},   {16, 17, 300}, {300, 5, 129}};
  test_random random = {9};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count; d++)
      for (int i = 0; i < 4 * (int)AX_COUNT(sizes); i++) {
        const int64_t m = sizes[i / 4][0], n = sizes[i / 4][1];
        factors f = make(&random, dtypes[d], m, n, sizes[i / 4][2], i, false);
        const ax_product_way all = ax_product_choose_packed(&f.product, n, widths[w]);
        const int64_t width = ax_product_panel_columns(&all), number = (int64_t)ax_dtype_bytes(dtypes[d]),
                      made = (int64_t)ax_dtype_bytes(f.result);
        char *again = ax_calloc((size_t)(m * n), (size_t)made), *b = ax_alloc(ax_product_packed_bytes(&all));
        run(&f.product, widths[w], f.a, f.b, f.c);
        ax_product_pack(&f.product, &all, f.b, b);
        for (int64_t column = 0, columns; column < n; column += columns) {
          columns = (1 + test_random_below(&random, 3)) * width;
          if (columns > n - column) columns = n - column;
          for (int64_t row = 0, rows; row < m; row += rows) {
            rows = 1 + test_random_below(&random, m - row);
            ax_product some = f.product;
            some.m = rows;
            some.n = columns;
            const ax_product_way way = ax_product_choose_packed(&some, n, widths[w]);
            char *work = way.work_bytes > 0 ? ax_alloc(way.work_bytes) : NULL;
            ax_product_run_packed(&some, &way, f.a + row * some.a_row * number, b + ax_product_panel_at(&way, column),
                                  again + (row * n + column) * made, work);
            ax_free(work);
          }
        }
        assert_memory_equal(again, f.c, (size_t)(m * n * made));
        ax_free(again), ax_free(b);
        release(&f);
      }
}

/* Infinities and NaN go where they belong: what fills up a tile touches nothing. */
static void not_finite(void **state) {
  (void)state;
  enum { m = 5, n = 19, k = 35 };
  test_random random = {4};
  for (size_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < dtype_count && ax_is_float(dtypes[d]); d++)
      for (int way = 0; way < 4; way++) {
        factors f = make(&random, dtypes[d], m, n, k, way, false);
        ax_number_store(dtypes[d], f.a, 2 * f.product.a_row + 7 * f.product.a_column, (ax_number){.f = INFINITY});
        ax_number_store(dtypes[d], f.b, 3 * f.product.b_row + 18 * f.product.b_column, (ax_number){.f = NAN});
        run(&f.product, widths[w], f.a, f.b, f.c);
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < n; j++) {
            double x = ax_number_load(f.result, f.c, i * n + j).f;
            assert_true(j == 18 ? isnan(x) : i == 2 ? isinf(x) : isfinite(x));
          }
        release(&f);
      }
}

static void make_small(test_random *random, char *numbers, int64_t count, int halvings) {
  for (int64_t i = 0; i < count; i++) {
    double x = ldexp(ax_number_load(AX_BF16, numbers, i).f, -halvings - (int)test_random_below(random, 10));
    ax_number_store(AX_BF16, numbers, i, (ax_number){.f = x});
  }
}

/* bf16 down to the least there are, whose products and sums are subnormal: none of them counts as 0. The second product is one of
   many columns, for which rows are packed once. */
static void small_numbers(void **state) {
  (void)state;
  static const struct { int64_t m, n, k, step; } cases[] = {{29, 35, 70, 1}, {40, 500, 768, 37}};
  test_random random = {5};
  for (size_t w = 0; w < width_count; w++)
    for (int range = 0; range < 36; range++)
      for (size_t i = 0; i < AX_COUNT(cases); i++) {
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k;
        factors f = make(&random, AX_BF16, m, n, k, range, false);
        make_small(&random, f.a, i == 0 ? m * k : m / 2 * k, range % 6 * 26);
        make_small(&random, f.b, n * k, range / 6 * 26);
        run(&f.product, widths[w], f.a, f.b, f.c);
        for (int64_t at = 0; at < m * n; at += cases[i].step) check_result(&f, f.c, at / n, at % n);
        release(&f);
      }
}

/* Sums that are rounded as they are made are the sums, rounded: whole, and from a factor that was packed before. Rows of the result
   are apart. */
static void rounded(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 2, 3, 5, 15, 16, 17, 31, 33, 64, 65, 100, 383, 771, 2100};
  test_random random = {14};
  for (size_t w = 0; w < width_count; w++)
    for (int i = 0; i < 300; i++) {
      const int64_t m = extents[test_random_below(&random, AX_COUNT(extents))], n = extents[test_random_below(&random, AX_COUNT(extents))];
      int64_t k = extents[test_random_below(&random, AX_COUNT(extents))];
      if (m * n * k > 1 << 23) k = 1 + k % 40;
      factors f = make(&random, AX_BF16, m, n, k, i, false);
      const int64_t apart = n + i % 3;
      uint16_t *made = ax_calloc((size_t)(m * apart), sizeof *made), *again = ax_calloc((size_t)(m * apart), sizeof *again);
      run(&f.product, widths[w], f.a, f.b, f.c);
      ax_product p = f.product;
      p.rounds = true;
      p.c_row = apart;
      run(&p, widths[w], f.a, f.b, (char *)made);
      const ax_product_way way = ax_product_choose_packed(&p, n, widths[w]);
      char *b = ax_alloc(ax_product_packed_bytes(&way)), *work = ax_alloc(way.work_bytes);
      ax_product_pack(&p, &way, f.b, b);
      ax_product_run_packed(&p, &way, f.a, b, again, work);
      assert_memory_equal(made, again, (size_t)(m * apart) * sizeof *made);
      for (int64_t at = 0; at < m * apart; at++)
        assert_int_equal(made[at], at % apart < n ? ax_bf16_of(((const float *)(const void *)f.c)[at / apart * n + at % apart]) : 0);
      ax_free(made), ax_free(again), ax_free(b), ax_free(work);
      release(&f);
    }
}

/* Halves between two bf16 go to the even one, infinities stay, NaN stays NaN, and subnormal numbers stay such. */
static void rounds_to_nearest(void **state) {
  (void)state;
  for (size_t w = 0; w < width_count; w++) {
    const ax_product_kernels *k = ax_product_kernels_of(AX_BF16, widths[w]);
    test_random random = {15};
    float sums[37];
    uint16_t made[37];
    for (int i = 0; i < 4000; i++) {
      for (size_t j = 0; j < AX_COUNT(sums); j++) {
        uint32_t bits = (uint32_t)test_random_bits(&random);
        if (j % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;
        if (j % 11 == 0) bits |= 0x7f800000u;
        if (j % 7 == 0) bits &= 0x807fffffu;
        memcpy(&sums[j], &bits, sizeof bits);
      }
      const int64_t count = 1 + i % (int)AX_COUNT(sums);
      k->round(&(ax_rounding){.sums = (const char *)sums, .to = (char *)made, .rows = 1, .count = count});
      for (int64_t j = 0; j < count; j++) {
        uint16_t wanted;
        ax_number_store(AX_BF16, (char *)&wanted, 0, (ax_number){.f = (double)sums[j]});
        if (isnan(sums[j])) assert_true((made[j] & 0x7f80) == 0x7f80 && (made[j] & 0x7f) != 0);
        else assert_int_equal(made[j], wanted);
        assert_int_equal(made[j], ax_bf16_of(sums[j]));
      }
    }
  }
}

/* bf16 by way of f32 in registers of 64 bytes, as on Intel's processors. */
static void without_pairs(void **state) {
  (void)state;
  test_random random = {.state = 5};
  ax_product_hidden |= slow_pairs;
  for (int64_t k = 1; k < 140; k += 23)
    for (int64_t m = 1; m < 40; m += 13)
      for (int way = 0; way < 8; way++) check(&random, AX_BF16, m, 3 * m + k, k, way, 64);
  check(&random, AX_BF16, 70, 300, 1024, 2, 64);
  check(&random, AX_BF16, 5, 4100, 400, 0, 64);
  check(&random, AX_BF16, 515, 2, 777, 1, 64);
  ax_product_hidden &= ~(uint32_t)slow_pairs;
}

static float half_at(const char *numbers, int64_t at) { return (float)ax_number_load(AX_BF16, numbers, at).f; }

/* A group of 32 products as the processor's manual adds them to a sum. */
static float add_group(float sum, const factors *f, int64_t i, int64_t j, int64_t from, int64_t until) {
  const ax_product *p = &f->product;
  float chains[2] = {0};
  for (int64_t x = from; x < until; x++) {
    const float a = half_at(f->a, i * p->a_row + x * p->a_column), b = half_at(f->b, x * p->b_row + j * p->b_column);
    chains[x % 2] = fmaf(a, b, chains[x % 2]);
  }
  return sum + (chains[0] + chains[1]);
}

static float sum_in_order(const factors *f, int64_t i, int64_t j, int64_t block) {
  float all = 0;
  for (int64_t from = 0; from < f->product.k; from += block) {
    float sum = 0;
    for (int64_t x = from; x < from + block && x < f->product.k; x += 32)
      sum = add_group(sum, f, i, j, x, x + 32 < f->product.k ? x + 32 : f->product.k);
    all = from == 0 ? sum : all + sum;
  }
  return all;
}

/* Tiles, few columns, few rows by a transposed b, and numbers that tiles do not take: one order for all. Each time with rows that
   are packed, or that tiles take where they lie if nothing need be careful. */
static void check_order(void) {
  static const int64_t sizes[][3] = {{33, 40, 64}, {50, 3, 100}, {2, 70, 95}, {16, 1, 31}, {70, 65, 1700}, {4, 40, 1}, {64, 40, 96}, {45, 40, 2112}};
  test_random random = {11};
  for (int i = 0; i < 8 * (int)AX_COUNT(sizes); i++) {
    const int64_t m = sizes[i / 8][0], n = sizes[i / 8][1];
    factors f = make(&random, AX_BF16, m, n, sizes[i / 8][2], i, false);
    if (i & 4) ax_number_store(AX_BF16, f.a, 0, (ax_number){.f = 0x1p-130}); /* subnormal */
    const ax_product_way way = ax_product_choose(&f.product, 64);
    run(&f.product, 64, f.a, f.b, f.c);
    for (int64_t at = 0; at < m * n; at += 1 + m * n / 300) {
      const float wanted = sum_in_order(&f, at / n, at % n, way.block), made = ((const float *)(const void *)f.c)[at];
      assert_memory_equal(&made, &wanted, sizeof wanted);
    }
    release(&f);
  }
}

static void order_of_tiles(void **state) {
  (void)state;
  check_order();
  const ax_float_mode caller = ax_float_mode_enter(true);
  check_order();
  ax_float_mode_leave(caller);
}

static void other_dtypes(void **state) {
  (void)state;
  ax_dtype made;
  assert_false(ax_product_result(AX_BOOL, &made));
  assert_false(ax_product_result(AX_S64, &made));
  assert_false(ax_product_result(AX_S16, &made));
}

#if defined(__x86_64__)
#include <cpuid.h>
static bool has_tiles(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned tiles = 1u << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles) != 0;
}
#else
static bool has_tiles(void) { return false; }
#endif

/* From here on the processor's tiles are used, or those made in C. False: the kernels need other instructions that this processor
   does not have. */
static bool begin_tiles(void) {
  ax_product_hidden = 0;
  if (ax_product_amx_pairs() == NULL || !ax_machine_has(AX_FEATURE_AVX512) || !ax_machine_has(AX_FEATURE_AVX512_VNNI)) return false;
  catches = !ax_machine_has(AX_FEATURE_AMX_BF16) || !ax_machine_has(AX_FEATURE_AMX_INT8);
  if (catches && (has_tiles() || !test_tiles_catch())) return false; /* leave was refused: some instructions run, and some do not */
  ax_product_added = by_tiles;
  dtypes = tiled_dtypes, dtype_count = AX_COUNT(tiled_dtypes), width_count = 1;
  return true;
}

static ax_tile narrow_tile;
static void note_narrow(const ax_tile *tile) { narrow_tile = *tile; }

/* Returns the narrow tile of a product of `rows` rows of k numbers, `apart` numbers apart, by four columns. */
static ax_tile narrow_of(int64_t rows, int64_t k, int64_t apart, bool far) {
  const ax_product p = {.dtype = AX_F32, .m = rows, .n = 4, .k = k, .a_row = apart, .a_column = 1, .b_row = 4, .b_column = 1,
                        .c_row = 4, .far = far};
  static char numbers[1 << 10];
  ax_product_way way = ax_product_choose(&p, 64);
  ax_product_kernels noting = *way.kernels;
  assert_true(way.narrow && !way.packs_b);
  noting.narrow = note_narrow;
  way.kernels = &noting;
  ax_product_run(&p, &way, numbers, numbers, numbers, NULL);
  return narrow_tile;
}

/* Rows of narrow products are prefetched from memory line by line, as they lie: all lines of the next rows that are made at once,
   which the square by square reading would come to in another order. */
static void narrow_rows_come_in_order(void **state) {
  (void)state;
  const int64_t lanes = ax_product_kernels_of(AX_F32, 64)->lanes;
  assert_int_equal(narrow_of(1000, 64, 64, false).ahead, 0);
  for (int64_t k = lanes; k <= 384; k += 8) {
    const ax_tile touching = narrow_of(1000, k, k, true), apart = narrow_of(1000, k, 1000, true);
    assert_true(touching.ahead >= lanes * 4 * k && touching.run == lanes * 4 * k && touching.fetched == lanes * 4 * k);
    assert_true(apart.ahead >= lanes * 4000 && apart.ahead % 4000 == 0 && apart.run == 4 * k);
    assert_true(apart.fetched >= lanes * 4 * k && apart.fetched % 64 == 0);
    assert_true(touching.again >= 0 && touching.again < touching.ahead && apart.again < apart.ahead);
    assert_int_equal(touching.second, lanes * 4 * k > ax_caches_here()->first / 4);
  }
}

static void tiles_are_used(void **state) {
  (void)state;
  const uint64_t before = test_tiles_products();
  test_random random = {12};
  for (size_t d = 0; d < dtype_count; d++) check(&random, dtypes[d], 100, 100, 100, 0, 64);
  assert_int_equal(test_tiles_products() > before, catches);
}

/* A right factor that lies near is read where it lies by a few groups of rows, which would not make up for packing it. */
static void near_factors_stay(void **state) {
  (void)state;
  const ax_product_kernels *k = ax_product_kernels_of(AX_F32, 64);
  const int64_t rows = 4 * k->most_rows, n = 8 * k->lanes, numbers = ax_caches_here()->first / (4 * n) + 1;
  const ax_product near = {
      .dtype = AX_F32, .m = rows, .n = n, .k = numbers, .a_row = numbers, .a_column = 1, .b_row = n, .b_column = 1, .c_row = n};
  ax_product many = near, far = near, apart = near, turned = near;
  many.m = 40 * k->most_rows;
  far.far_b = true;
  apart.b_row = ax_caches_here()->second;
  turned.a_row = 1, turned.a_column = rows;
  if (!k->in_place || numbers > k->block_steps || ax_caches_here()->second < 8 * ax_caches_here()->first) skip();
  assert_true(ax_product_choose(&near, 64).plain && ax_product_choose(&turned, 64).plain);
  assert_true(ax_product_choose(&many, 64).packs_b && !ax_product_choose(&far, 64).plain && !ax_product_choose(&apart, 64).plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),
                                     cmocka_unit_test(large),
                                     cmocka_unit_test(near_factors_stay),
                                     cmocka_unit_test(passes),
                                     cmocka_unit_test(few_rows),
                                     cmocka_unit_test(extremes),
                                     cmocka_unit_test(tiles),
                                     cmocka_unit_test(packed),
                                     cmocka_unit_test(tiles_of_packed),
                                     cmocka_unit_test(not_finite),
                                     cmocka_unit_test(small_numbers),
                                     cmocka_unit_test(other_dtypes),
                                     cmocka_unit_test(without_pairs),
                                     cmocka_unit_test(narrow_rows_come_in_order),
                                     cmocka_unit_test(rounded),
                                     cmocka_unit_test(rounds_to_nearest)};
  const struct CMUnitTest tiled[] = {cmocka_unit_test(tiles_are_used), cmocka_unit_test(sizes),
                                     cmocka_unit_test(large),          cmocka_unit_test(passes),
                                     cmocka_unit_test(extremes),       cmocka_unit_test(tiles),
                                     cmocka_unit_test(packed),
                                     cmocka_unit_test(tiles_of_packed), cmocka_unit_test(not_finite),
                                     cmocka_unit_test(small_numbers),  cmocka_unit_test(order_of_tiles),
                                     cmocka_unit_test(rounded)};
  ax_product_hidden = by_tiles;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return failed != 0 || !begin_tiles() ? failed : cmocka_run_group_tests(tiled, NULL, NULL);
}
