/* Common refinements: the sizes of the axes, and which of them each axis of the two is made of. */
#include "mesh/refine.h"

#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct row {
  const char *a, *b;
  int64_t sizes[5];            /* of the refinement, up to 0; none: there is no refinement */
  const char *a_runs, *b_runs; /* "01 2": a's first axis is axes 0 and 1 */
} row;

static const row rows[] = {
    {"a=4,b=2", "c=8", {4, 2}, "0 1", "01"},
    {"a=4,b=2", "c=2,d=4", {2, 2, 2}, "01 2", "0 12"},
    {"a=2,b=6", "c=4,d=3", {2, 2, 3}, "0 12", "01 2"},
    {"a=2,b=1,c=2", "d=4", {2, 1, 2}, "0 1 2", "02"},
    {"a=1,b=4", "c=4,d=1", {1, 4, 1}, "0 1", "1 2"},
    {"a=2", "b=1,c=1,d=2", {1, 1, 2}, "2", "0 1 2"},
    {"a=3,b=2", "c=2,d=3", {0}, NULL, NULL},
    {"a=4", "b=8", {0}, NULL, NULL},
    {"a=4,b=2", "c=4", {0}, NULL, NULL},
};

static void check_runs(const ax_mesh *refined, const ax_mesh *mesh, const char *wanted) {
  ax_axis_list runs[AX_MAX_AXES];
  char text[64];
  size_t length = 0;
  ax_mesh_runs(refined, 0, mesh, runs);
  for (uint32_t i = 0; i < mesh->count; i++) {
    if (i > 0) text[length++] = ' ';
    for (uint32_t k = 0; k < runs[i].count; k++) text[length++] = (char)('0' + runs[i].axis[k]);
  }
  text[length] = '\0';
  assert_string_equal(text, wanted);
}

static void test_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_mesh a, b, refined, turned;
    TEST_OK(ax_mesh_parse(rows[i].a, &a));
    TEST_OK(ax_mesh_parse(rows[i].b, &b));
    assert_int_equal(ax_mesh_refine(&a, &b, &refined), rows[i].a_runs != NULL);
    assert_int_equal(ax_mesh_refine(&b, &a, &turned), rows[i].a_runs != NULL);
    if (rows[i].a_runs == NULL) continue;
    assert_int_equal(refined.count, turned.count);
    for (uint32_t k = 0; k < refined.count; k++) {
      assert_int_equal(refined.axis[k].size, rows[i].sizes[k]);
      assert_int_equal(turned.axis[k].size, rows[i].sizes[k]);
    }
    assert_int_equal(rows[i].sizes[refined.count], 0);
    check_runs(&refined, &a, rows[i].a_runs);
    check_runs(&refined, &b, rows[i].b_runs);
  }
}

/* Sixteen axes of two against one axis: no more than there may be. With an axis of one beside, too many. */
static void test_most_axes(void **state) {
  (void)state;
  ax_mesh many = {.count = AX_MAX_AXES}, one = {.count = 1}, more, refined;
  for (uint32_t i = 0; i < AX_MAX_AXES; i++) many.axis[i] = (ax_axis){.name = {(char)('a' + i)}, .size = 2};
  one.axis[0] = (ax_axis){.name = "z", .size = 1 << AX_MAX_AXES};
  more = one;
  more.axis[more.count++] = (ax_axis){.name = "y", .size = 1};
  assert_true(ax_mesh_refine(&many, &one, &refined));
  assert_int_equal(refined.count, AX_MAX_AXES);
  assert_false(ax_mesh_refine(&many, &more, &refined));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_most_axes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
