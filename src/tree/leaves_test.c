/* Leaves in a trace: by name, mapped, their norm, shard_map by treedefs. */
#include "tree/leaves.h"

#include <math.h>
#include <string.h>

#include "axle/axle.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/tensor.h"
#include "tree/treedef.h"

static ax_treedef *def;

static int setup(void **state) {
  (void)state;
  TEST_OK(ax_treedef_parse("params/{0,1}/w: f32[2] @ d; params/b: f32[]; x: f32[2] @ d", &def));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ax_treedef_release(def);
  return 0;
}

static ax_program *traced(ax_function f, uint32_t out_count) {
  return test_trace(f, NULL, ax_treedef_types(def), ax_treedef_count(def), out_count);
}

/* The results on leaves {1, 2}, {3, 4}, 5, {6, 7}. */
static void run(ax_function f, uint32_t out_count, ax_tensor **out) {
  const double values[4][2] = {{1, 2}, {3, 4}, {5}, {6, 7}};
  ax_tensor *in[4];
  ax_program *program = traced(f, out_count);
  for (uint32_t i = 0; i < 4; i++) in[i] = test_tensor(*ax_treedef_type(def, i), values[i]);
  test_run(program, in, out);
  test_release(in, 4);
  ax_program_release(program);
}

static void by_name(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value *params = ax_leaves(def, in, "params");
  out[0] = ax_add(ax_leaf(def, in, "params/%d/w", 1), ax_leaf(def, in, "x"));
  out[1] = ax_neg(params[2]);
  out[2] = ax_leaves(def, in, "params/1")[0];
}

static ax_value twice(ax_value x) { return ax_add(x, x); }

static void mapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_tree_map(twice, AX_LIST(4, in), out);
  ax_tree_zip(ax_add, AX_LIST(4, out), in, out);
  ax_tree_scale(ax_real(0.5), AX_LIST(4, out), out);
  out[4] = ax_tree_reduce(ax_add, AX_LIST(4, out));
  out[5] = ax_global_norm(AX_LIST(4, in));
}

static void functions(void **state) {
  (void)state;
  ax_tensor *out[6];
  run(by_name, 3, out);
  assert_true(test_get(out[0], 0) == 9 && test_get(out[0], 1) == 11 && test_get(out[1], 0) == -5 && test_get(out[2], 1) == 4);
  test_release(out, 3);
  run(mapped, 6, out);
  assert_true(test_get(out[0], 1) == 3 && test_get(out[2], 0) == 7.5 && test_get(out[4], 0) == 22.5 && test_get(out[4], 1) == 27);
  TEST_NEAR(test_get(out[5], 0), sqrt(140), 1e-6);
  test_release(out, 6);
}

/* The norm of parts is that of the whole; what is the same everywhere counts once. */
static void norm_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_global_norm(AX_LIST(4, in));
}

static void norm_on_mesh(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  ax_treedef *result;
  TEST_OK(ax_mesh_parse("d=2,e=3", &mesh));
  TEST_OK(ax_treedef_parse("norm: f32[]", &result));
  ax_tree_shard_map(&mesh, def, result, AX_FN(norm_body, 0, 0), in, out);
  ax_treedef_release(result);
}

static void norm_of_parts(void **state) {
  (void)state;
  ax_tensor *out;
  run(norm_on_mesh, 1, &out);
  TEST_NEAR(test_get(out, 0), sqrt(140), 1e-6);
  test_release(&out, 1);
}

/* --- Refused --- */

static void no_such_leaf(const ax_value *in, ax_value *out, void *context) { out[0] = ax_leaf(def, in, context, ""); }
static void no_such_node(const ax_value *in, ax_value *out, void *context) { out[0] = *ax_leaves(def, in, context); }
static void norm_of_none(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_global_norm(AX_LIST(0, in));
}
static void norm_of_integers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_global_norm(AX_VALUES(in[0], ax_convert_element_type(in[0], AX_S32)));
}
static void reduce_none(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tree_reduce(ax_add, AX_LIST(0, in));
}
static void wrong_counts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh = {0};
  ax_tree_shard_map(&mesh, def, def, AX_FN(norm_body, 4, 1), in, out);
}
static void wrong_axes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh = {0};
  ax_tree_shard_map(&mesh, def, def, AX_FN(mapped, 4, 4), in, out);
}

/* On d=2, with results of `text`. */
static void on_two(const char *text, ax_function body, const ax_value *in, ax_value *out) {
  ax_mesh mesh;
  ax_treedef *results;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  TEST_OK(ax_treedef_parse(text, &results));
  ax_tree_shard_map(&mesh, def, results, AX_FN(body, 0, 0), in, out);
  ax_treedef_release(results);
}
static void give_b(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[2];
}
static void give_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
}
static void wrong_operand(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  on_two("s: f32[]", give_first, (ax_value[]){in[0], in[1], in[3], in[3]}, out);
}
static void wrong_block(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  on_two("x: f32[2] @ d", give_b, in, out);
}
static void still_varies(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  on_two("s: f32[]", give_first, in, out);
}

/* --- All in one --- */

static void there_and_back(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value flat = ax_tree_ravel(AX_LIST(3, in));
  out[0] = ax_reduce_sum(ax_mul(flat, ax_iota(AX_F32, AX_DIMS(11), 0)), AX_ALL_DIMS, false);
  ax_value padded = ax_concatenate(AX_VALUES(flat, ax_full(AX_F32, AX_DIMS(5), 7)), 0);
  ax_tree_unravel(padded, AX_LIST(3, in), out + 1);
}

static void raveled(void **state) {
  (void)state;
  float a[6], b[1] = {10}, c[4];
  for (int i = 0; i < 6; i++) a[i] = (float)i;
  for (int i = 0; i < 4; i++) c[i] = (float)(20 + i);
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(2, 3), a), ax_host_view(AX_F32, AX_DIMS(), b),
                              ax_host_view(AX_F32, AX_DIMS(4, 1), c)};
  ax_host_array out[4];
  TEST_OK(ax_apply(NULL, AX_FN(there_and_back, 3, 4), in, out));
  double sum = 60;
  for (int i = 0; i < 6; i++) sum += i * i;
  for (int i = 0; i < 4; i++) sum += (7 + i) * (20 + i);
  assert_true(ax_host_at(&out[0], 0) == sum);
  for (int k = 0; k < 3; k++) {
    assert_int_equal(out[1 + k].rank, in[k].rank);
    for (int64_t i = 0; !isnan(ax_host_at(&in[k], i)); i++) assert_true(ax_host_at(&out[1 + k], i) == ax_host_at(&in[k], i));
  }
  for (int k = 0; k < 4; k++) ax_host_array_release(&out[k]);
}

static void ravel_none(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_tree_ravel(AX_LIST(0, in)); }
static void ravel_mixed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tree_ravel(AX_VALUES(in[0], ax_iota(AX_S32, AX_DIMS(2), 0)));
}
static void unravel_short(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_tree_unravel(ax_full(AX_F32, AX_DIMS(1), 0), AX_VALUES(in[0], in[1]), out);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *name, *part;
  } cases[] = {
      {no_such_leaf, "params/2/w", "leaf: there is no leaf \"params/2/w\"; the nearest: \"params/0/w\", \"params/1/w\""},
      {no_such_leaf, NULL, "there is no name of a leaf"},
      {no_such_node, "opt", "leaves: no leaf is below \"opt\""},
      {no_such_node, "param", "leaves: no leaf is below \"param\""},
      {wrong_operand, "", "tree_shard_map: params/b is f32[], but its operand is f32[2]"},
      {wrong_block, "", "tree_shard_map: x is f32[2] @ d, on each device f32[1], but the body gives f32[]"},
      {still_varies, "", "tree_shard_map: s varies over {d}, which its spec \"\" does not name"},
      {norm_of_none, "", "global_norm: there is no leaf"},
      {norm_of_integers, "", "global_norm: leaf 1 is s32[2]: only floats have a norm"},
      {ravel_none, "", "tree_ravel: there is no leaf"},
      {ravel_mixed, "", "tree_ravel: leaf 1 is s32[2], but leaf 0 is "},
      {unravel_short, "", "tree_unravel: leaf "},
      {reduce_none, "", "tree_reduce: there is no leaf"},
      {wrong_counts, "", "tree_shard_map: the body takes 4 operands and gives 1 results, the treedefs have 4 and 4 leaves"},
      {wrong_axes, "", "tree_shard_map: params/0/w: spec \"d\": unknown axis \"d\""},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_program *program;
    ax_fn function = AX_CLOSURE(cases[i].function, 4, cases[i].function == wrong_counts || cases[i].function == wrong_axes ? 4 : 1,
                                (void *)cases[i].name);
    TEST_FAILS(ax_trace(function, ax_treedef_types(def), &program), AX_INVALID_ARGUMENT, cases[i].part);
  }
  ax_value one = {0};
  assert_int_equal(ax_leaf(NULL, &one, "w").trace, 0); /* outside of a trace, too */
  assert_non_null(ax_leaves(NULL, NULL, "w"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(raveled), cmocka_unit_test(norm_of_parts),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
