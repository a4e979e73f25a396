/* Which products of few rows read b where it lies. The kernels are made up: 8 numbers of 4 bytes a register, 6 rows a tile. */
#include "product/few.h"

#include "machine/features.h"
#include "product/table.h"
#include "support/cmocka.h"

static void nothing(const ax_product_stream *stream) { (void)stream; }

static const ax_product_kernels kernels = {.lanes = 8, .most_rows = 6, .number_bytes = 4, .some = true, .stream = nothing};

/* 4 rows by a b of 1000 rows of 1000 numbers, 4 MB. */
static ax_product in_rows(void) { return (ax_product){.m = 4, .n = 1000, .k = 1000, .b_row = 1000, .b_column = 1}; }

static void long_rows_of_a_large_b_are_streamed(void **state) {
  (void)state;
  ax_product p = in_rows();
  assert_true(ax_few_streams(&p, &kernels));
  p.m = 30; /* five groups of rows */
  assert_true(ax_few_streams(&p, &kernels));
  p.m = 31; /* now packing b pays */
  assert_false(ax_few_streams(&p, &kernels));
  p.m = 0;
  assert_false(ax_few_streams(&p, &kernels));
}

static void a_b_that_does_not_lie_in_rows_is_not_streamed(void **state) {
  (void)state;
  ax_product p = in_rows();
  p.b_column = 2;
  assert_false(ax_few_streams(&p, &kernels));
}

static void a_small_b_is_not_streamed(void **state) {
  (void)state;
  ax_product p = in_rows();
  p.k = 262; /* 262 rows of 4000 bytes are less than 1 MiB, 263 more */
  assert_false(ax_few_streams(&p, &kernels));
  p.k = 263;
  assert_true(ax_few_streams(&p, &kernels));
}

static void short_rows_are_streamed_from_memory_alone(void **state) {
  (void)state;
  ax_product p = in_rows();
  p.n = 511; /* 2044 bytes: the processor prefetches them well from a cache */
  assert_false(ax_few_streams(&p, &kernels));
  p.far_b = true;
  assert_true(ax_few_streams(&p, &kernels));
  p.n = 127; /* 508 bytes */
  assert_false(ax_few_streams(&p, &kernels));
}

static void a_rest_of_columns_takes_kernels_for_it(void **state) {
  (void)state;
  ax_product_kernels whole = kernels, none = kernels;
  ax_product p = in_rows();
  whole.some = false;
  assert_true(ax_few_streams(&p, &whole)); /* 1000 is 125 registers */
  p.n = 999;
  assert_false(ax_few_streams(&p, &whole));
  assert_true(ax_few_streams(&p, &kernels));
  none.stream = NULL;
  assert_false(ax_few_streams(&p, &none));
}

static void some_rows_by_a_transposed_b_turn_it(void **state) {
  (void)state;
  ax_product p = {.m = 8, .n = 1000, .k = 1000, .b_row = 1, .b_column = 1000};
  assert_true(ax_few_turns(&p, &kernels));
  p.m = 4; /* narrow products make these */
  assert_false(ax_few_turns(&p, &kernels));
  p.m = 17; /* and for these b is packed */
  assert_false(ax_few_turns(&p, &kernels));
  p.m = 8, p.n = 127; /* eight panels have 128 columns */
  p.b_column = 10000;
  assert_false(ax_few_turns(&p, &kernels));
  p.n = 128;
  assert_true(ax_few_turns(&p, &kernels));
  p.b_column = 2000; /* 1.02 MB: less than 1 MiB */
  assert_false(ax_few_turns(&p, &kernels));
  p.b_column = 10000, p.b_row = 2; /* numbers of a column are apart */
  assert_false(ax_few_turns(&p, &kernels));
  p = (ax_product){.m = 8, .n = 300000, .k = 1, .b_row = 1, .b_column = 1}; /* one row lies in rows too */
  assert_false(ax_few_turns(&p, &kernels));
}

static ax_product tall(int64_t m, int64_t n, int64_t k) {
  return (ax_product){.dtype = AX_F32, .m = m, .n = n, .k = k, .a_row = 1, .a_column = m, .b_row = n, .b_column = 1, .c_row = n};
}

static bool streams_left(ax_product p) {
  const ax_product_way way = ax_product_choose(&p, 64);
  return way.turned && way.streams_b;
}

static void a_tall_a_that_lies_transposed_is_streamed(void **state) {
  (void)state;
  ax_product p = tall(1 << 20, 4, 40);
  assert_true(streams_left(p));
  p.a_row = 40, p.a_column = 1; /* it lies in rows */
  assert_false(streams_left(p));
  assert_false(streams_left(tall(1 << 20, 4, 1000))); /* several blocks of k */
  assert_false(streams_left(tall(1 << 20, 40, 40)));  /* many columns */
  assert_false(streams_left(tall(128, 4, 40)));       /* it is in a cache */
}

/* --- The kernels that there are --- */

static void kernels_fill_their_registers(const ax_product_kernels *k, int bytes) {
  assert_non_null(k);
  assert_int_equal(k->lanes * k->result_bytes, bytes);
  assert_true(k->most_rows > 0 && k->most_columns > 0 && k->tile != NULL && k->narrow != NULL);
  assert_true(k->unit >= 1 && (k->stream == NULL || k->in_place));
}

static void kernels_are_there_by_width_and_dtype(void **state) {
  (void)state;
  assert_non_null(ax_product_kernels_of(AX_F32, 16)); /* every processor has these registers */
  assert_null(ax_product_kernels_of(AX_BOOL, 64));
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S8, AX_U8, AX_S32, AX_U32};
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    for (uint32_t bytes = 16; bytes <= ax_machine_register_bytes(); bytes *= 2)
      kernels_fill_their_registers(ax_product_kernels_of(dtypes[i], bytes), (int)bytes);
}

/* --- Places in a packed b --- */

static void a_packed_b_goes_block_by_block_and_panel_by_panel(void **state) {
  (void)state;
  const ax_product_way way = {
      .kernels = &kernels, .blocks = 3, .block = 100, .block_bytes = 5000, .panel_bytes = 640, .packs_b = true};
  assert_int_equal(ax_product_packed_bytes(&way), 15000);
  assert_int_equal(ax_product_packed_at(&way, 0), 0);
  assert_int_equal(ax_product_packed_at(&way, 200), 10000);
  assert_int_equal(ax_product_panel_columns(&way), 16);
  assert_int_equal(ax_product_panel_at(&way, 48), 3 * 640);
  ax_product_way turned = way, in_place = way;
  turned.turned = true, in_place.packs_b = false;
  assert_int_equal(ax_product_packed_bytes(&turned) + ax_product_packed_bytes(&in_place), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_rows_of_a_large_b_are_streamed),
      cmocka_unit_test(a_b_that_does_not_lie_in_rows_is_not_streamed),
      cmocka_unit_test(a_small_b_is_not_streamed),
      cmocka_unit_test(short_rows_are_streamed_from_memory_alone),
      cmocka_unit_test(a_rest_of_columns_takes_kernels_for_it),
      cmocka_unit_test(some_rows_by_a_transposed_b_turn_it),
      cmocka_unit_test(a_tall_a_that_lies_transposed_is_streamed),
      cmocka_unit_test(kernels_are_there_by_width_and_dtype),
      cmocka_unit_test(a_packed_b_goes_block_by_block_and_panel_by_panel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
