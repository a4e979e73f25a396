/* Tile assignments in XLA's notation: read, written, simplified and laid on a mesh. */
#include "mesh/tiles.h"

#include <stdio.h>

#include "support/cmocka.h"
#include "support/tensor.h"

/* The shortest form of a text. */
static void becomes(const char *text, const char *shortest) {
  ax_tiles tiles;
  ax_text out = {0};
  TEST_OK(ax_tiles_parse(text, &tiles));
  (void)ax_tiles_simplify(&tiles);
  ax_tiles_text(&out, &tiles);
  assert_string_equal(out.data, shortest);
  ax_text_deinit(&out);
  ax_tiles_deinit(&tiles);
}

static void a_text_has_a_shortest_form(void **state) {
  (void)state;
  becomes("{replicated}", "{replicated}");
  becomes("{ maximal device=3 }", "{maximal device=3}");
  becomes("{devices=[2,2]0,1,2,3}", "{devices=[2,2]<=[4]}");
  becomes("{devices=[2,2]0,2,1,3}", "{devices=[2,2]<=[2,2]T(1,0)}");
  becomes("{devices=[2,2]3,1,0,2}", "{devices=[2,2]3,1,0,2}");
  becomes("{devices=[2,2]<=[2,2]T(0,1)}", "{devices=[2,2]<=[4]}"); /* nothing is transposed */
}

/* Copies of a tile are a set: their order says nothing. */
static void copies_are_sorted(void **state) {
  (void)state;
  becomes("{devices=[2,2]1,0,3,2 last_tile_dim_replicate}", "{devices=[2,2]<=[4] last_tile_dim_replicate}");
}

static void a_number_is_a_sum_of_digits(void **state) {
  (void)state;
  const ax_tile_digits transposed = {.count = 2, .size = {2, 3}, .stride = {1, 2}};
  const int64_t wanted[] = {0, 2, 4, 1, 3, 5};
  for (int64_t k = 0; k < 6; k++) assert_int_equal(ax_digits_number(&transposed, k), wanted[k]);
}

static void tiles_and_copies_are_counted(void **state) {
  (void)state;
  ax_tiles tiles;
  TEST_OK(ax_tiles_parse("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", &tiles));
  assert_int_equal(tiles.rank, 2);
  assert_int_equal(tiles.copies, 2);
  assert_int_equal(ax_tiles_count(&tiles), 8);
  ax_tiles_deinit(&tiles);
  assert_int_equal(tiles.rank, 0);
}

static void lies(const char *text, const char *mesh_text, const char *spec_text) {
  ax_tiles tiles;
  ax_mesh mesh;
  ax_spec spec;
  ax_text out = {0};
  TEST_OK(ax_tiles_parse(text, &tiles));
  assert_true(ax_tiles_lay(&tiles, &mesh, &spec));
  ax_mesh_text(&out, &mesh);
  ax_text_add(&out, " ");
  ax_spec_text(&out, &spec, &mesh);
  char wanted[128];
  snprintf(wanted, sizeof wanted, "%s %s", mesh_text, spec_text);
  assert_string_equal(out.data, wanted);
  ax_text_deinit(&out);
  ax_tiles_deinit(&tiles);
}

static void tiles_lie_on_a_mesh_in_the_order_of_numbers(void **state) {
  (void)state;
  lies("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "(t0=4, t1=2)", "P(t0, _)");
  lies("{devices=[2,3]<=[3,2]T(1,0)}", "(t0=3, t1=2)", "P(t1, t0)");
  lies("{devices=[6]<=[3,2]T(1,0)}", "(t0=3, t1=2)", "P(t1+t0)");
}

/* Tiles 2 by 3 of numbers whose digits are 3 by 2: no axis ends where the first dimension does. */
static void digits_that_are_not_cut_at_tiles_have_no_mesh(void **state) {
  (void)state;
  ax_tiles tiles;
  ax_mesh mesh;
  ax_spec spec;
  TEST_OK(ax_tiles_parse("{devices=[2,3]<=[2,3]T(1,0)}", &tiles));
  assert_false(ax_tiles_lay(&tiles, &mesh, &spec));
  ax_tiles_deinit(&tiles);
}

static void wrong_texts_are_refused(void **state) {
  (void)state;
  ax_tiles tiles;
  TEST_FAILS(ax_tiles_parse("{devices=[2,2]0,1,2,2}", &tiles), AX_INVALID_ARGUMENT, "2");
  TEST_FAILS(ax_tiles_parse("{devices=[2,2]<=[5]}", &tiles), AX_INVALID_ARGUMENT, "5");
  TEST_FAILS(ax_tiles_parse("{devices=[2,2]<=[4]T(1)}", &tiles), AX_INVALID_ARGUMENT, "");
  TEST_FAILS(ax_tiles_parse("{manual}", &tiles), AX_ABSENT, "manual");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_text_has_a_shortest_form),
      cmocka_unit_test(copies_are_sorted),
      cmocka_unit_test(a_number_is_a_sum_of_digits),
      cmocka_unit_test(tiles_and_copies_are_counted),
      cmocka_unit_test(tiles_lie_on_a_mesh_in_the_order_of_numbers),
      cmocka_unit_test(digits_that_are_not_cut_at_tiles_have_no_mesh),
      cmocka_unit_test(wrong_texts_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
