/* Meshes, sets of their axes, and specs. */
#include <string.h>

#include "base/base.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* x is checked, u is unchecked, a is automatic. */
static ax_mesh three(void) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("x=2,u=3,a=4", &mesh));
  mesh.axis[1].unchecked = true;
  mesh.axis[2].automatic = true;
  return mesh;
}

static void types_name_checked_axes_only(void **state) {
  (void)state;
  const ax_mesh mesh = three(), plain = ax_mesh_plain(&mesh);
  assert_int_equal(ax_checked_axes(&mesh), 1);
  assert_int_equal(ax_manual_axes(&mesh), 3);
  assert_int_equal(ax_checked_axes(&plain), 7);
  assert_int_equal(ax_mesh_find_manual(&mesh, "u"), 1);
  assert_int_equal(ax_mesh_find_manual(&mesh, "a"), -1);
}

static void meshes_are_equal_with_or_without_flags(void **state) {
  (void)state;
  const ax_mesh mesh = three(), plain = ax_mesh_plain(&mesh);
  assert_true(ax_mesh_equal(&mesh, &plain, false));
  assert_false(ax_mesh_equal(&mesh, &plain, true));
}

static void a_mesh_made_by_hand_is_checked(void **state) {
  (void)state;
  ax_mesh mesh = three();
  TEST_OK(ax_mesh_check(&mesh));
  strcpy(mesh.axis[1].name, "x");
  TEST_FAILS(ax_mesh_check(&mesh), AX_INVALID_ARGUMENT, "axis \"x\" is named twice");
  strcpy(mesh.axis[1].name, "_");
  TEST_FAILS(ax_mesh_check(&mesh), AX_INVALID_ARGUMENT, "axis 1 of the mesh: \"_\" is not a name");
  mesh = three();
  mesh.axis[0].size = 0;
  TEST_FAILS(ax_mesh_check(&mesh), AX_INVALID_ARGUMENT, "a size of at least 1, not 0");
  mesh.axis[0].size = INT64_C(1) << 31;
  TEST_FAILS(ax_mesh_check(&mesh), AX_INVALID_ARGUMENT, "more than 2^31 devices");
}

static void a_name_is_a_word(void **state) {
  (void)state;
  assert_true(ax_is_name("data_1", 6) && ax_is_name("_x", 2));
  assert_false(ax_is_name("1x", 2) || ax_is_name("_", 1) || ax_is_name("", 0) || ax_is_name("a-b", 3));
}

static void names_become_a_set_and_back(void **state) {
  (void)state;
  const ax_mesh mesh = three();
  ax_axes names;
  ax_axis_set set;
  TEST_OK(ax_axes_parse("u,x", NULL, &names));
  TEST_OK(ax_axes_resolve(&names, &mesh, &set));
  assert_int_equal(set, 3);
  const ax_axes back = ax_axis_set_names(set, &mesh); /* in the mesh's order */
  assert_string_equal(ax_axes_listed(&back).text, "x,u");
  assert_string_equal(ax_axes_listed(&names).text, "u,x");
  assert_false(ax_axes_equal(&names, &back));
  assert_int_equal(ax_axis_set_size(set, &mesh), 6);
}

static void names_that_stand_for_no_axis_are_refused(void **state) {
  (void)state;
  const ax_mesh mesh = three(), none = {0};
  const ax_axes unknown = {1, {"y"}, {0}}, automatic = {1, {"a"}, {0}}, twice = {2, {"x", "x"}, {0}};
  ax_axis_set set;
  TEST_FAILS(ax_axes_resolve(&unknown, &mesh, &set), AX_INVALID_ARGUMENT, "axis \"y\" is not bound; bound are x (2), u (3), a (4)");
  TEST_FAILS(ax_axes_resolve(&unknown, &none, &set), AX_INVALID_ARGUMENT, "and none is here");
  TEST_FAILS(ax_axes_resolve(&automatic, &mesh, &set), AX_INVALID_ARGUMENT, "axis \"a\" is automatic here");
  TEST_FAILS(ax_axes_resolve(&twice, &mesh, &set), AX_INVALID_ARGUMENT, "axis \"x\" is named twice");
  assert_string_equal(ax_bound_string(&none), "none");
}

static void a_set_is_carried_to_another_mesh_by_names(void **state) {
  (void)state;
  ax_mesh other;
  const ax_mesh mesh = three();
  TEST_OK(ax_mesh_parse("a=4,y=5,x=2", &other));
  assert_int_equal(ax_axis_set_on(5, &mesh, &other), 5); /* x and a, the other way round */
  assert_int_equal(ax_axis_set_on(2, &mesh, &other), 0);
}

static void a_nested_environment_begins_with_the_one_around(void **state) {
  (void)state;
  const ax_mesh mesh = three(), none = {0};
  ax_mesh shorter = mesh, manual = mesh, longer = mesh, renamed = mesh;
  shorter.count = 2;
  manual.axis[2].automatic = false;
  longer.axis[longer.count++] = (ax_axis){.name = "z", .size = 7};
  renamed.axis[0].size = 9;
  assert_true(ax_axes_begin_with(&mesh, &mesh) && ax_axes_begin_with(&longer, &mesh) && ax_axes_begin_with(&none, &mesh));
  assert_true(ax_axes_begin_with(&manual, &mesh)); /* a shard_map inside has taken it by hand */
  assert_false(ax_axes_begin_with(&mesh, &manual) || ax_axes_begin_with(&shorter, &mesh) || ax_axes_begin_with(&renamed, &mesh));
}

/* --- Devices --- */

static void devices_are_numbered_along_named_axes(void **state) {
  (void)state;
  const ax_mesh mesh = three(); /* device 12 x + 4 u + a */
  const ax_axes names = {2, {"a", "x"}, {0}};
  assert_int_equal(ax_mesh_coordinate(&mesh, 23, 1), 2);
  assert_int_equal(ax_axes_index(&names, &mesh, 12 + 4 + 3), 7); /* a = 3, x = 1: 2 a + x */
  assert_int_equal(ax_axes_device(&names, &mesh, 4, 7), 12 + 4 + 3);
}

/* --- Specs --- */

static void specs_are_equal_but_for_whole_entries_at_their_end(void **state) {
  (void)state;
  const ax_mesh mesh = three();
  ax_spec a, b, c;
  TEST_OK(ax_spec_parse("x", &mesh, &a));
  TEST_OK(ax_spec_parse("x,_,_", &mesh, &b));
  TEST_OK(ax_spec_parse("_,x", &mesh, &c));
  assert_true(ax_spec_equal(&a, &b));
  assert_false(ax_spec_equal(&a, &c));
  assert_int_equal(ax_spec_set(&c), 1);
  TEST_OK(ax_spec_parse("u+a+x", &mesh, &c));
  const ax_axes last = ax_spec_names(&c, &mesh, 0, 1);
  assert_string_equal(ax_axes_listed(&last).text, "a,x");
}

static void open_entries_are_for_those_who_take_them(void **state) {
  (void)state;
  const ax_mesh mesh = three();
  ax_spec spec;
  TEST_OK(ax_spec_parse_open("x,?", &mesh, &spec));
  assert_int_equal(spec.open, 2);
  assert_true(ax_spec_parse("x,?", &mesh, &spec) == AX_INVALID_ARGUMENT);
}

static void priorities_stand_behind_a_spec(void **state) {
  (void)state;
  static const struct {
    const char *text, *shown;
  } cases[] = {{"x,_ p1", "P(x, _)p1"}, {"x p65535 ", "P(x)p65535"}, {"_ p2", "P(_)p2"}, {"?,u  p3", "P(?, u)p3"}, {"_ p0", "P(_)"}};
  const ax_mesh mesh = three();
  ax_spec spec, plain;
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_text text = {0};
    TEST_OK(ax_spec_parse_open(cases[i].text, &mesh, &spec));
    ax_spec_text(&text, &spec, &mesh);
    assert_string_equal(text.data, cases[i].shown);
    ax_text_deinit(&text);
  }
  uint16_t priority;
  assert_true(ax_priority_read("65535", 5, &priority) && priority == AX_LAST_PRIORITY);
  assert_true(ax_priority_read("0000000012x", 10, &priority) && priority == 12);
  assert_false(ax_priority_read("65536", 5, &priority) || ax_priority_read("99999999999999999999", 20, &priority));
  TEST_OK(ax_spec_parse_open("x p1", &mesh, &spec));
  TEST_OK(ax_spec_parse_open("x", &mesh, &plain));
  assert_false(ax_spec_equal(&spec, &plain));
  TEST_FAILS(ax_spec_parse("x p1", &mesh, &spec), AX_INVALID_ARGUMENT, "which only constraints do");
  TEST_FAILS(ax_spec_parse_open("x p65536", &mesh, &spec), AX_INVALID_ARGUMENT, "a priority is a number up to 65535");
  TEST_FAILS(ax_spec_parse_open("x p1,u", &mesh, &spec), AX_INVALID_ARGUMENT, "unknown axis \"x p1\"");
  TEST_FAILS(ax_spec_parse_open("p1", &mesh, &spec), AX_INVALID_ARGUMENT, "unknown axis \"p1\"");
  TEST_FAILS(ax_spec_parse_open("xp1", &mesh, &spec), AX_INVALID_ARGUMENT, "unknown axis \"xp1\"");
}

static void a_type_is_shown_with_its_layout(void **state) {
  (void)state;
  const ax_mesh mesh = three();
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(24, 5));
  ax_spec spec;
  ax_text text = {0};
  TEST_OK(ax_spec_parse("x+u", &mesh, &spec));
  ax_sharded_type_text(&text, &type, &spec, &mesh);
  ax_text_add(&text, " ");
  ax_sharded_type_text(&text, &type, NULL, &mesh);
  assert_string_equal(text.data, "f32[24@x+u,5] f32[24,5]");
  ax_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(types_name_checked_axes_only),
      cmocka_unit_test(meshes_are_equal_with_or_without_flags),
      cmocka_unit_test(a_mesh_made_by_hand_is_checked),
      cmocka_unit_test(a_name_is_a_word),
      cmocka_unit_test(names_become_a_set_and_back),
      cmocka_unit_test(names_that_stand_for_no_axis_are_refused),
      cmocka_unit_test(a_set_is_carried_to_another_mesh_by_names),
      cmocka_unit_test(a_nested_environment_begins_with_the_one_around),
      cmocka_unit_test(devices_are_numbered_along_named_axes),
      cmocka_unit_test(specs_are_equal_but_for_whole_entries_at_their_end),
      cmocka_unit_test(open_entries_are_for_those_who_take_them),
      cmocka_unit_test(priorities_stand_behind_a_spec),
      cmocka_unit_test(a_type_is_shown_with_its_layout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
