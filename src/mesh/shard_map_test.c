/* What shard_map asks of meshes and specs before it binds a body. */
#include "mesh/shard_map.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_mesh mesh_of(const char *text, const char *automatic) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  for (uint32_t a = 0; a < mesh.count; a++) mesh.axis[a].automatic = strstr(automatic, mesh.axis[a].name) != NULL;
  return mesh;
}

static void a_mesh_is_around_where_all_its_axes_are_automatic(void **state) {
  (void)state;
  const ax_mesh x = mesh_of("x=2", ""), xy = mesh_of("x=2,y=3", ""), wide = mesh_of("x=4", ""), none = mesh_of("", "");
  const ax_mesh all = mesh_of("y=3,x=2", "x y"), some = mesh_of("y=3,x=2", "x");
  assert_true(ax_mesh_is_around(&xy, &all) && ax_mesh_is_around(&x, &some));
  assert_false(ax_mesh_is_around(&xy, &some));
  assert_false(ax_mesh_is_around(&wide, &all));
  assert_false(ax_mesh_is_around(&none, &all));
}

static void a_new_axis_must_not_be_around(void **state) {
  (void)state;
  const ax_mesh around = mesh_of("x=2,y=3", "y"), fresh = mesh_of("z=2,x=2,y=3", ""), other = mesh_of("y=4", "");
  TEST_OK(ax_mesh_check_new(&fresh.axis[0], &around));
  TEST_FAILS(ax_mesh_check_new(&fresh.axis[1], &around), AX_INVALID_ARGUMENT, "\"x\" is in use by a shard_map around");
  TEST_FAILS(ax_mesh_check_new(&fresh.axis[2], &around), AX_INVALID_ARGUMENT, "others of this mesh are not");
  TEST_FAILS(ax_mesh_check_new(&other.axis[0], &around), AX_INVALID_ARGUMENT, "has size 4 here and 3");
}

static void a_spec_keeps_its_names_over_another_mesh(void **state) {
  (void)state;
  const ax_mesh from = mesh_of("x=2,y=3", ""), to = mesh_of("w=5,y=3,x=2", "");
  ax_spec spec;
  TEST_OK(ax_spec_parse("y+x,_,", &from, &spec));
  ax_spec_renumber(&spec, &from, &to);
  assert_int_equal(spec.count[0], 2);
  assert_int_equal(spec.axis[0][0], 1);
  assert_int_equal(spec.axis[0][1], 2);
}

/* --- Texts of specs --- */

static void every_operand_and_result_has_its_spec(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("x=2,y=3", "");
  ax_spec in[2], out[1];
  TEST_OK(ax_parse_specs("x; _,y -> y+x", 2, 1, &mesh, in, out, NULL));
  assert_true(in[0].rank == 1 && in[0].count[0] == 1 && in[0].axis[0][0] == 0);
  assert_true(in[1].rank == 2 && in[1].count[0] == 0 && in[1].axis[1][0] == 1);
  assert_true(out[0].count[0] == 2 && out[0].axis[0][0] == 1 && out[0].axis[0][1] == 0);
}

static void a_star_repeats_a_spec(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("x=2", "");
  ax_spec in[3], out[1];
  TEST_OK(ax_parse_specs("x*2; _ -> x", 3, 1, &mesh, in, out, NULL));
  assert_true(in[0].count[0] == 1 && in[1].count[0] == 1 && in[2].count[0] == 0);
}

static void a_single_spec_is_that_of_all(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("x=2", "");
  ax_spec in[2], out[2];
  TEST_OK(ax_parse_specs("x -> _", 2, 2, &mesh, in, out, NULL));
  assert_true(in[1].count[0] == 1 && out[1].rank == 1 && out[1].count[0] == 0);
}

static void what_is_left_open_is_said_apart(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("x=2", "");
  ax_spec in[2], out[1];
  ax_saying sayings[3];
  TEST_OK(ax_parse_specs("?; auto -> x", 2, 1, &mesh, in, out, sayings));
  assert_int_equal(sayings[0], AX_SAYS_NOTHING);
  assert_int_equal(sayings[1], AX_SAYS_AUTO);
  assert_int_equal(sayings[2], AX_SAYS_SPEC);
  TEST_FAILS(ax_parse_specs("?; x -> x", 2, 1, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "?");
}

static void wrong_specs_are_refused(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("x=2", "");
  ax_spec in[2], out[3];
  TEST_FAILS(ax_parse_specs(NULL, 1, 1, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "there are no specs");
  TEST_FAILS(ax_parse_specs("x", 1, 1, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "\"->\"");
  TEST_FAILS(ax_parse_specs("x -> x; x", 1, 3, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "2 result specs for 3 results");
  TEST_FAILS(ax_parse_specs("x; x -> x", 1, 1, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "more operand specs");
  TEST_FAILS(ax_parse_specs("x -> z", 1, 1, &mesh, in, out, NULL), AX_INVALID_ARGUMENT, "z");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mesh_is_around_where_all_its_axes_are_automatic),
      cmocka_unit_test(a_new_axis_must_not_be_around),
      cmocka_unit_test(a_spec_keeps_its_names_over_another_mesh),
      cmocka_unit_test(every_operand_and_result_has_its_spec),
      cmocka_unit_test(a_star_repeats_a_spec),
      cmocka_unit_test(what_is_left_open_is_said_apart),
      cmocka_unit_test(wrong_specs_are_refused),
      cmocka_unit_test(a_single_spec_is_that_of_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
