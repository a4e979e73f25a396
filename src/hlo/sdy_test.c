/* Shardy's texts: what each says, and what is refused. */
#include "hlo/sdy.h"

#include <string.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_hlo_slice slice(const char *text) { return (ax_hlo_slice){text, strlen(text)}; }

static void test_meshes(void **state) {
  ax_arena arena = {0};
  ax_sdy_mesh m;
  (void)state;
  TEST_OK(ax_sdy_read_mesh(slice("#sdy.mesh<[\"a b\"=4, \"2\"=2], device_ids=[0, 1, 2, 3, 4, 5, 7, 6]>"), &arena, &m));
  assert_int_equal(m.mesh.count, 2);
  assert_string_equal(m.mesh.axis[0].name, "a_b");
  assert_string_equal(m.mesh.axis[1].name, "a2");
  assert_int_equal(m.mesh.axis[0].size, 4);
  assert_int_equal(m.id_count, 8);
  assert_int_equal(m.ids[6], 7);
  TEST_OK(ax_sdy_read_mesh(slice("<[\"x\"=2], device_ids=[0, 1]>"), &arena, &m));
  assert_null(m.ids); /* in order */
  TEST_OK(ax_sdy_read_mesh(slice("<[], device_ids=[3]>"), &arena, &m));
  assert_int_equal(m.mesh.count, 0);
  TEST_FAILS(ax_sdy_read_mesh(slice("<[\"x\"]>"), &arena, &m), AX_PARSE_ERROR, "where = is expected");
  TEST_FAILS(ax_sdy_read_mesh(slice("<[\"x\"=99999999999999999999]>"), &arena, &m), AX_PARSE_ERROR, "a smaller number");
  TEST_FAILS(ax_sdy_read_mesh(slice("<[\"x\"=2, \"x\"=2]>"), &arena, &m), AX_INVALID_ARGUMENT, "named twice");
  TEST_FAILS(ax_sdy_read_mesh(slice("<[\"x\"=2"), &arena, &m), AX_PARSE_ERROR, "ends where ] is expected");
  ax_arena_deinit(&arena);
}

static void test_shardings(void **state) {
  ax_arena arena = {0};
  ax_sdy_named_mesh named = {.name = slice("m")};
  ax_sdy_sharding s;
  (void)state;
  TEST_OK(ax_sdy_read_mesh(slice("<[\"a\"=4, \"b\"=6]>"), &arena, &named.mesh));
  TEST_OK(ax_sdy_read_sharding(slice("#sdy.sharding<@m, [{\"b\", \"a\", ?}p2, {?}, {}], replicated={}>"), &named, 1, &arena, &s));
  assert_int_equal(s.spec.rank, 3);
  assert_int_equal(s.spec.count[0], 2);
  assert_int_equal(s.spec.axis[0][0], 1);
  assert_int_equal(s.spec.open, 2);
  assert_int_equal(s.spec.priority, 2);
  TEST_OK(ax_sdy_read_sharding(slice("<@m, [{?}p1, {\"b\"}p7, {\"a\"}p3]>"), &named, 1, &arena, &s));
  assert_int_equal(s.spec.priority, 3); /* the first of those of dimensions with axes */
  TEST_OK(ax_sdy_read_sharding(slice("<@m, [{\"b\"}p7, {\"a\"}]>"), &named, 1, &arena, &s));
  assert_int_equal(s.spec.priority, 0);
  TEST_FAILS(ax_sdy_read_sharding(slice("<@m, [{\"b\"}p65536]>"), &named, 1, &arena, &s), AX_INVALID_ARGUMENT, "a number up to 65535");
  /* b is 2 by 3; the second mention finds the cut */
  TEST_OK(ax_sdy_read_sharding(slice("<@m, [{\"b\":(2)3}, {\"b\":(1)2, \"a\"}]>"), &named, 1, &arena, &s));
  assert_int_equal(s.mesh.mesh.count, 3);
  assert_int_equal(s.mesh.mesh.axis[1].size, 2);
  assert_int_equal(s.mesh.mesh.axis[2].size, 3);
  assert_int_equal(s.spec.axis[0][0], 2);
  assert_int_equal(s.spec.axis[1][0], 1);
  assert_int_equal(s.spec.axis[1][1], 0);
  TEST_OK(ax_sdy_read_sharding(slice("<@m, [], unreduced={\"b\"}>"), &named, 1, &arena, &s));
  assert_int_equal(s.unreduced, 2);
  TEST_FAILS(ax_sdy_read_sharding(slice("<@m, [{\"b\":(4)2}]>"), &named, 1, &arena, &s), AX_ABSENT, "(4)2 is no part of the axis \"b\"");
  TEST_FAILS(ax_sdy_read_sharding(slice("<@n, []>"), &named, 1, &arena, &s), AX_INVALID_ARGUMENT, "there is no mesh @n");
  ax_arena_deinit(&arena);
}

static void test_lists(void **state) {
  static const char *const wanted[] = {"<@m, [{\"a\"}, {}]>", "<@m, [{\"x, ]\"}]>", "<@m, []>"};
  const char *at = NULL;
  ax_hlo_slice item;
  ax_arena arena = {0};
  ax_sdy_mesh mesh;
  ax_axis_set set;
  (void)state;
  uint32_t count = 0;
  for (; ax_sdy_next(slice("#sdy.sharding_per_value<[<@m, [{\"a\"}, {}]>, <@m, [{\"x, ]\"}]>, <@m, []>]>"), &at, &item); count++)
    assert_true(ax_hlo_slice_is(item, wanted[count]));
  assert_int_equal(count, 3);
  at = NULL;
  assert_false(ax_sdy_next(slice("[]"), &at, &item));
  at = NULL;
  assert_false(ax_sdy_next(slice(""), &at, &item));
  TEST_OK(ax_sdy_read_mesh(slice("<[\"a\"=4, \"b\"=6, \"c\"=2]>"), &arena, &mesh));
  TEST_OK(ax_sdy_read_axes(slice("#sdy<manual_axes{\"a\", \"c\"}>"), &mesh, &set));
  assert_int_equal(set, 5);
  TEST_OK(ax_sdy_read_axes(slice("{}"), &mesh, &set));
  assert_int_equal(set, 0);
  TEST_FAILS(ax_sdy_read_axes(slice("{\"b\":(2)3}"), &mesh, &set), AX_ABSENT, "parts of axes cannot be taken by hand");
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_meshes), cmocka_unit_test(test_shardings), cmocka_unit_test(test_lists)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
