/* Axes of layouts and factors of dimensions, one to the other and back; groups that lie along axes. */
#include <string.h>

#include "partition/partitioner.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_mesh mesh;

static ax_spec spec_of(const char *text) {
  ax_spec spec;
  TEST_OK(ax_mesh_parse("a=2,b=3,c=4", &mesh));
  TEST_OK(ax_spec_parse(text, &mesh, &spec));
  return spec;
}

/* --- Factors --- */

/* A dimension of 24 that is 2 x 12 (a reshape has cut it), then one of 8. */
static const ax_factors factors = {.count = 3, .size = {2, 12, 8}};
static const ax_factored tensor = {.count = {2, 1}, .factor = {{0, 1}, {2}}};

static ax_type type(void) { return ax_array_type(AX_F32, AX_DIMS(24, 8)); }

/* The axes that cut each factor: "a, bc, ." */
static void reads(const char *spec_text, const char *wanted) {
  const ax_spec spec = spec_of(spec_text);
  const ax_type whole = type();
  ax_cuts cuts = {0};
  ax_text text = {0};
  ax_cuts_read(&mesh, &factors, &tensor, &whole, &spec, &cuts);
  for (uint32_t f = 0; f < 3; f++) {
    ax_text_add(&text, "%s%s", f > 0 ? ", " : "", cuts.by[f].count == 0 ? "." : "");
    for (uint32_t k = 0; k < cuts.by[f].count; k++) ax_text_add(&text, "%s", mesh.axis[cuts.by[f].axis[k]].name);
  }
  assert_string_equal(text.data, wanted);
  ax_text_deinit(&text);
}

static void the_first_axes_cut_the_first_factor(void **state) {
  (void)state;
  reads("a+b", "a, b, .");
  reads("a", "a, ., .");
  reads("_,c", "., ., c");
}

/* 3 does not divide 2, so the axes behind it cut nothing. */
static void what_does_not_divide_a_factor_cuts_none_behind_it(void **state) {
  (void)state;
  reads("b+a", "., ., .");
}

/* A dimension that is one factor may end in padding. */
static void a_dimension_of_one_factor_need_not_be_divided(void **state) {
  (void)state;
  const ax_type whole = type();
  reads("_,b", "., ., b");
  assert_true(ax_factor_is_all(&factors, &tensor, &whole, 1));
  assert_false(ax_factor_is_all(&factors, &tensor, &whole, 0));
}

static void writes(ax_cuts cuts, const char *wanted) {
  const ax_spec expected = spec_of(wanted), spec = ax_cuts_write(&mesh, &factors, &tensor, 2, &cuts);
  assert_true(ax_spec_equal(&spec, &expected));
}

static void a_factor_is_cut_where_those_before_it_are_single(void **state) {
  (void)state;
  ax_cuts cuts = {0};
  cuts.by[1] = (ax_axis_list){1, {1}};
  cuts.by[2] = (ax_axis_list){1, {2}};
  writes(cuts, "_,c"); /* the first factor is whole, so the second cannot be cut */
  cuts.by[0] = (ax_axis_list){1, {0}};
  writes(cuts, "a+b,c");
}

static void windows_flow_where_positions_are_as_long_as_elements(void **state) {
  (void)state;
  const ax_factors one = {.count = 1, .size = {4}};
  ax_factored windows = {.count = {1}, .factor = {{0}}, .reached = 1, .reach = {{.stride = 2, .base = 1}}};
  const ax_type eight = ax_array_type(AX_F32, AX_DIMS(8)), many = ax_array_type(AX_F32, AX_DIMS(17));
  assert_true(ax_factor_flows(&one, &windows, &eight, 0));
  assert_false(ax_factor_flows(&one, &windows, &many, 0));
  assert_true(ax_factor_is_all(&one, &windows, &eight, 0));
  windows.reached = 0;
  assert_true(ax_factor_flows(&one, &windows, &many, 0));
}

static void dimensions_of_a_layout_move(void **state) {
  (void)state;
  const ax_spec spec = spec_of("a,b+c"), behind = spec_of("_,a,b+c"), before = spec_of("b+c");
  const ax_spec up = ax_spec_moved(&spec, 1), down = ax_spec_moved(&spec, -1);
  assert_true(ax_spec_equal(&up, &behind) && up.rank == 3);
  assert_true(ax_spec_equal(&down, &before) && down.rank == 1);
}

/* --- Groups --- */

static ax_axes along(const char *names, ax_arena *arena) {
  ax_axes axes;
  TEST_OK(ax_mesh_parse("x=2,y=8", &mesh));
  TEST_OK(ax_axes_parse(names, arena, &axes));
  return axes;
}

/* The sizes of the axes that the mesh has then; "": there are none. */
static void is_cut(const char *names, const char *sizes) {
  ax_arena arena = {0};
  ax_mesh cut;
  ax_text text = {0};
  const ax_axes axes = along(names, &arena);
  if (ax_mesh_cut(&mesh, &axes, &cut))
    for (uint32_t i = 0; i < cut.count; i++) ax_text_add(&text, "%s%d", i > 0 ? " " : "", (int)cut.axis[i].size);
  ax_text_add(&text, "%s", "");
  assert_string_equal(text.data, sizes);
  ax_text_deinit(&text);
  ax_arena_deinit(&arena);
}

static void groups_cut_an_axis(void **state) {
  (void)state;
  is_cut("y {0,1} {2,3} {4,5} {6,7}", "2 4 2");
  is_cut("y {0,4} {1,5} {2,6} {3,7}", "2 2 4");
  is_cut("y {0,2,4,6} {1,3,5,7}", "2 4 2");
  is_cut("y {0,1,4,5} {2,3,6,7}", "2 2 2 2");
}

static void groups_that_follow_no_axis_cut_none(void **state) {
  (void)state;
  is_cut("y {0,1} {2,3,4} {5,6,7}", ""); /* two sizes */
  is_cut("y {1,0} {2,3} {4,5} {6,7}", ""); /* another order */
  is_cut("y {0,3} {1,2} {4,5} {6,7}", ""); /* no distance that divides */
  is_cut("y {0} {1} {2} {3} {4} {5} {6} {7}", "");
}

static void lies_along(const char *names, const char *wanted) {
  ax_arena arena = {0};
  const ax_axes axes = along(names, &arena);
  ax_axes out;
  const bool found = ax_groups_along(&mesh, &axes, &out);
  assert_int_equal(found, wanted != NULL);
  if (found) assert_string_equal(ax_axes_listed(&out).text, wanted);
  ax_arena_deinit(&arena);
}

static void groups_lie_along_whole_axes(void **state) {
  (void)state;
  lies_along("x,y {0,1,2,3,4,5,6,7} {8,9,10,11,12,13,14,15}", "y");
  lies_along("x,y {0,8} {1,9} {2,10} {3,11} {4,12} {5,13} {6,14} {7,15}", "x");
  lies_along("x,y {0,8} {1,10} {2,9} {3,11} {4,12} {5,13} {6,14} {7,15}", NULL);
  lies_along("x,y {0,1,2,3} {4,5,6,7} {8,9,10,11} {12,13,14,15}", NULL); /* half an axis */
}

/* --- Layouts as pointers --- */

static void equal_layouts_have_one_address(void **state) {
  (void)state;
  ax_partitioner p = {.unchecked = false};
  const ax_spec a = spec_of("a,b"), same = spec_of("a,b"), other = spec_of("a"), whole = spec_of("_,_");
  const ax_spec *one = ax_spec_unique(&p, &a);
  assert_ptr_equal(ax_spec_unique(&p, &same), one);
  assert_ptr_not_equal(ax_spec_unique(&p, &other), one);
  assert_null(ax_spec_unique(&p, &whole));
  const ax_spec *stacked = ax_spec_stacked(&p, one), behind = spec_of("_,a,b");
  assert_true(ax_spec_equal(stacked, &behind));
  assert_ptr_equal(ax_spec_unstacked(&p, stacked), one);
  const ax_spec along_first = spec_of("c");
  assert_null(ax_spec_unstacked(&p, ax_spec_unique(&p, &along_first))); /* its slices are whole */
  ax_memo_deinit(&p.memo);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_axes_cut_the_first_factor),
      cmocka_unit_test(what_does_not_divide_a_factor_cuts_none_behind_it),
      cmocka_unit_test(a_dimension_of_one_factor_need_not_be_divided),
      cmocka_unit_test(a_factor_is_cut_where_those_before_it_are_single),
      cmocka_unit_test(windows_flow_where_positions_are_as_long_as_elements),
      cmocka_unit_test(dimensions_of_a_layout_move),
      cmocka_unit_test(groups_cut_an_axis),
      cmocka_unit_test(groups_that_follow_no_axis_cut_none),
      cmocka_unit_test(groups_lie_along_whole_axes),
      cmocka_unit_test(equal_layouts_have_one_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
