/* Committed arrays and others: on which devices a run goes on, where its results lie, and what is refused. */
#include <string.h>

#include "axle/ops.h"
#include "axle/sharding.h"
#include "axle/tree.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { elems = 8 };

static const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {elems}};
static const float data[elems] = {1, 2, 3, 4, 5, 6, 7, 8};

static ax_runtime *runtime;

static int begin(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  return 0;
}

static int end(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

/* On devices first, first + by, ..; as many as the mesh has. mesh NULL: one. */
static ax_sharding *sharding_on(const char *mesh_text, const char *spec, int64_t first, int64_t by) {
  int64_t ids[16];
  ax_mesh mesh;
  ax_sharding *made;
  if (mesh_text == NULL) {
    TEST_OK(ax_sharding_single(first, &made));
    return made;
  }
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  const uint32_t count = (uint32_t)ax_mesh_devices(&mesh);
  for (uint32_t i = 0; i < count; i++) ids[i] = first + (int64_t)i * by;
  TEST_OK(ax_sharding_named(&mesh, spec, &(ax_sharding_options){.devices = {count, ids}}, &made));
  return made;
}

static ax_array *put_on(const char *mesh, const char *spec, int64_t first, int64_t by) {
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(elems), data);
  ax_sharding *sharding = sharding_on(mesh, spec, first, by);
  ax_array *array;
  TEST_OK(ax_device_put_as(runtime, sharding, &host, &array));
  ax_sharding_release(sharding);
  return array;
}

static ax_array *put_anywhere(void) {
  ax_array *array;
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, data, &array));
  return array;
}

static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[1]);
  out[1] = in[2];
}

/* Of x + y, z; on a mesh, NULL: none. */
static ax_executable *compile(const char *mesh_text, const char *shardings) {
  const ax_type types[] = {type, type, type};
  ax_compile_options options = {.names = {AX_NAMES("x", "y", "z")}, .shardings = shardings};
  ax_mesh mesh;
  ax_executable *e;
  if (mesh_text != NULL) {
    TEST_OK(ax_mesh_parse(mesh_text, &mesh));
    options.mesh = &mesh;
  }
  TEST_OK(ax_jit(runtime, AX_FN(sum, 3, 2), types, &options, &e));
  return e;
}

static void expect_on(const ax_array *array, bool committed, uint32_t count, const int64_t *ids) {
  ax_sharding *sharding;
  float got[elems];
  assert_int_equal(ax_array_is_committed(array), committed);
  TEST_OK(ax_array_sharding(array, &sharding));
  assert_int_equal(ax_sharding_device_count(sharding), count);
  for (uint32_t p = 0; p < count; p++) assert_int_equal(ax_sharding_device(sharding, p), ids[p]);
  TEST_OK(ax_array_read(array, got, sizeof got));
  for (int i = 0; i < elems; i++) TEST_NEAR(got[i], 2 * data[i], 0);
  ax_sharding_release(sharding);
}

/* Runs on x, y and z, which it releases, and looks at the sum. */
static void expect_sum(ax_executable *e, ax_array *x, ax_array *y, ax_array *z, bool committed, uint32_t count,
                       const int64_t *ids) {
  ax_array *in[] = {x, y, z}, *out[2];
  TEST_OK(ax_run(e, in, out));
  expect_on(out[0], committed, count, ids);
  for (int i = 0; i < 3; i++) ax_array_release(in[i]);
  for (int k = 0; k < 2; k++) ax_array_release(out[k]);
}

static void refuse(ax_executable *e, ax_array *x, ax_array *y, ax_array *z, const char *message) {
  ax_array *in[] = {x, y, z}, *out[2];
  TEST_FAILS(ax_run(e, in, out), AX_INVALID_ARGUMENT, message);
  TEST_FAILS(ax_run_start(e, in, out), AX_INVALID_ARGUMENT, message);
  for (int i = 0; i < 3; i++) ax_array_release(in[i]);
}

/* --- What is committed --- */

static void who_is_committed(void **state) {
  (void)state;
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(elems), data);
  ax_executable *free_one = compile(NULL, NULL), *meshed = compile("d=4", "d -> d");
  ax_mesh mesh;
  ax_array *array, *moved;
  ax_sharding *single = sharding_on(NULL, NULL, 0, 0);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  assert_false(ax_array_is_committed(NULL));
  array = put_anywhere();
  assert_false(ax_array_is_committed(array));
  TEST_OK(ax_array_reshard(array, single, &moved));
  assert_true(ax_array_is_committed(moved));
  ax_array_release(moved);
  ax_array_release(array);
  TEST_OK(ax_device_put(runtime, &mesh, "", &host, &array));
  assert_true(ax_array_is_committed(array));
  ax_array_release(array);
  TEST_OK(ax_executable_put(free_one, 0, data, &array));
  assert_false(ax_array_is_committed(array));
  ax_array_release(array);
  TEST_OK(ax_executable_put(meshed, 0, data, &array));
  assert_true(ax_array_is_committed(array));
  ax_array_release(array);
  ax_sharding_release(single);
  ax_executable_release(free_one);
  ax_executable_release(meshed);
}

/* --- Where a run goes on --- */

/* Without a mesh it goes wherever its arguments are, and what is not committed comes to them. */
static void without_a_mesh(void **state) {
  (void)state;
  ax_executable *e = compile(NULL, NULL);
  for (int round = 0; round < 2; round++) {
    expect_sum(e, put_anywhere(), put_anywhere(), put_anywhere(), false, 1, (int64_t[]){0});
    expect_sum(e, put_on(NULL, NULL, 0, 0), put_anywhere(), put_anywhere(), true, 1, (int64_t[]){0});
    expect_sum(e, put_anywhere(), put_on(NULL, NULL, 5, 0), put_anywhere(), true, 1, (int64_t[]){5});
    expect_sum(e, put_on("d=4", "d", 0, 1), put_on("d=4", "", 0, 1), put_anywhere(), true, 4, (int64_t[]){0, 1, 2, 3});
    expect_sum(e, put_on("a=2,b=2", "a+b", 4, 1), put_on("d=4", "d", 4, 1), put_anywhere(), true, 4, (int64_t[]){4, 5, 6, 7});
  }
  ax_executable_release(e);
}

static void on_a_mesh(void **state) {
  (void)state;
  ax_executable *e = compile("d=4", "d -> d");
  for (int round = 0; round < 2; round++) {
    expect_sum(e, put_anywhere(), put_anywhere(), put_anywhere(), true, 4, (int64_t[]){0, 1, 2, 3});
    expect_sum(e, put_on("d=4", "d", 0, 1), put_on("a=2,b=2", "b", 0, 1), put_on("d=4", "d", 0, 1), true, 4,
               (int64_t[]){0, 1, 2, 3});
    expect_sum(e, put_on("d=4", "d", 4, 1), put_anywhere(), put_anywhere(), true, 4, (int64_t[]){4, 5, 6, 7});
    expect_sum(e, put_on("d=4", "", 7, -2), put_on("d=4", "d", 7, -2), put_anywhere(), true, 4, (int64_t[]){7, 5, 3, 1});
  }
  ax_executable_release(e);
}

/* Results go on being arguments, and an argument that is a result keeps its own place. */
static void round_and_round(void **state) {
  (void)state;
  ax_executable *e = compile("d=2", "d; d; ? -> d; ?");
  ax_array *x = put_on("d=2", "d", 6, 1), *other = put_on("d=2", "", 6, 1), *first[2], *second[2];
  TEST_OK(ax_run(e, AX_ARRAYS(x, x, other), first));
  TEST_OK(ax_run_start(e, AX_ARRAYS(first[0], x, first[1]), second));
  assert_ptr_equal(second[1], other);
  ax_sharding *sharding;
  TEST_OK(ax_array_sharding(second[0], &sharding));
  assert_int_equal(ax_sharding_device(sharding, 1), 7);
  ax_sharding_release(sharding);
  for (int k = 0; k < 2; k++) {
    ax_array_release(first[k]);
    ax_array_release(second[k]);
  }
  ax_array_release(x);
  ax_array_release(other);
  ax_executable_release(e);
}

/* --- What is refused --- */

static void refused(void **state) {
  (void)state;
  ax_executable *e = compile("d=4", "d -> d"), *free_one = compile(NULL, NULL);
  refuse(
      e, put_on("d=4", "d", 0, 1), put_on(NULL, NULL, 5, 0), put_anywhere(),
      "run: incompatible devices: argument 0 (x), f32[8], which lies P(d) over (d=4,) on device ids [0, 1, 2, 3] of platform cpu, and argument 1 (y), "
      "f32[8], which lies P() over () on device ids [5] of platform cpu");
  refuse(e, put_on("d=4", "d", 0, 1), put_on("d=4", "d", 3, -1), put_on("d=2", "d", 0, 1),
         "[3, 2, 1, 0] of platform cpu; 1 more is not on the first one's devices");
  refuse(
      e, put_anywhere(), put_on("d=2", "d", 0, 1), put_anywhere(),
      "run: the program runs on 4 devices, (d=4,), and was given argument 1 (y), f32[8], which lies P(d) over (d=2,) on device ids [0, 1] of platform cpu");
  refuse(e, put_on(NULL, NULL, 0, 0), put_anywhere(), put_anywhere(),
         "the program runs on 4 devices, (d=4,), and was given argument 0 (x)");
  refuse(free_one, put_on(NULL, NULL, 0, 0), put_on(NULL, NULL, 1, 0), put_anywhere(),
         "argument 1 (y), f32[8], which lies P() over () on device ids [1]");
  refuse(free_one, put_on("d=2", "", 0, 1), put_on("d=2", "", 2, 1), put_anywhere(), "device ids [2, 3]");
  ax_executable_release(e);
  ax_executable_release(free_one);
}

/* An argument that is only passed on, as z is, takes part as those do that devices compute with. */
static void passed_on(void **state) {
  (void)state;
  ax_executable *e = compile("d=4", "d; d; ? -> d; ?"), *free_one = compile(NULL, NULL);
  refuse(e, put_on("d=4", "d", 0, 1), put_anywhere(), put_on("d=2", "d", 8, 1),
         "argument 2 (z), f32[8], which lies P(d) over (d=2,) on device ids [8, 9]");
  refuse(e, put_anywhere(), put_anywhere(), put_on("d=2", "d", 8, 1),
         "the program runs on 4 devices, (d=4,), and was given argument 2 (z)");
  refuse(free_one, put_on(NULL, NULL, 3, 0), put_anywhere(), put_on(NULL, NULL, 5, 0),
         "argument 2 (z), f32[8], which lies P() over () on device ids [5]");
  expect_sum(e, put_anywhere(), put_anywhere(), put_on("d=4", "", 4, 1), true, 4, (int64_t[]){4, 5, 6, 7});
  expect_sum(free_one, put_anywhere(), put_anywhere(), put_on("d=4", "d", 4, 1), true, 4, (int64_t[]){4, 5, 6, 7});
  ax_executable_release(e);
  ax_executable_release(free_one);
}

static void with_constant(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t length = elems;
  out[0] = in[0];
  out[1] = ax_mul(ax_add(ax_iota(AX_F32, AX_LIST(1, &length), 0), ax_real(1)), ax_real(2));
}

static void second_of_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[1], in[1]);
}

/* Results that depend on no argument lie where the committed arguments do. An argument that nothing depends on says nothing. */
static void constants_and_unused(void **state) {
  (void)state;
  ax_executable *e, *unused;
  TEST_OK(ax_jit(runtime, AX_FN(with_constant, 1, 2), &type, NULL, &e));
  TEST_OK(ax_jit(runtime, AX_FN(second_of_two, 2, 1), AX_TYPES(type, type), NULL, &unused));
  for (int round = 0; round < 2; round++) {
    ax_array *x[] = {put_anywhere(), put_on("d=4", "d", 4, 1), put_on(NULL, NULL, 3, 0)}, *out[2];
    static const int64_t ids[3][4] = {{0}, {4, 5, 6, 7}, {3}};
    for (int i = 0; i < 3; i++) {
      TEST_OK(ax_run(e, &x[i], out));
      assert_ptr_equal(out[0], x[i]);
      expect_on(out[1], i > 0, i == 1 ? 4 : 1, ids[i]);
      ax_array_release(out[0]);
      ax_array_release(out[1]);
    }
    TEST_OK(ax_run(unused, AX_ARRAYS(x[1], x[2]), out));
    expect_on(out[0], true, 1, ids[2]);
    ax_array_release(out[0]);
    for (int i = 0; i < 3; i++) ax_array_release(x[i]);
  }
  ax_executable_release(e);
  ax_executable_release(unused);
}

/* Trees say it in leaves. */
static void leaves(void **state) {
  (void)state;
  ax_treedef *def;
  ax_tree *tree;
  ax_executable *e = compile("d=4", "d -> d");
  ax_array *x = put_on("d=4", "d", 0, 1), *y = put_on("d=4", "d", 4, 1), *z = put_anywhere();
  TEST_OK(ax_treedef_parse("layer/{w,b}: f32[8]; x: f32[8]", &def));
  TEST_OK(ax_tree_create(runtime, NULL, def, &tree));
  TEST_OK(ax_tree_set(tree, x, "layer/w"));
  TEST_OK(ax_tree_set(tree, y, "layer/b"));
  TEST_OK(ax_tree_set(tree, z, "x"));
  ax_treedef *results;
  ax_tree *out;
  TEST_OK(ax_treedef_parse("{a,b}: f32[8]", &results));
  TEST_OK(ax_tree_create(runtime, NULL, results, &out));
  TEST_FAILS(ax_tree_run(e, &tree, &out), AX_INVALID_ARGUMENT,
             "tree_run: incompatible devices: layer/w of tree 0, f32[8], which lies P(d)");
  ax_tree_release(tree);
  ax_tree_release(out);
  ax_treedef_release(def);
  ax_treedef_release(results);
  ax_array_release(x);
  ax_array_release(y);
  ax_array_release(z);
  ax_executable_release(e);
}

/* The first five that do not match, by number and name, and how many more. */
static void named(void **state) {
  (void)state;
  const ax_type types[] = {type, type, type};
  ax_executable *e, *again, *other;
  ax_array *x = put_anywhere();
  float one = 1;
  ax_array *scalar, *out[2];
  TEST_OK(ax_device_put_data(runtime, NULL, "", &(ax_type){.dtype = AX_F32}, &one, &scalar));
  TEST_OK(ax_jit(runtime, AX_FN(sum, 3, 2), types, &(ax_compile_options){.names = {AX_NAMES("a", NULL, "c")}}, &e));
  TEST_OK(ax_jit(runtime, AX_FN(sum, 3, 2), types, &(ax_compile_options){.names = {AX_NAMES("a", NULL, "c")}}, &again));
  TEST_OK(ax_jit(runtime, AX_FN(sum, 3, 2), types, NULL, &other));
  assert_ptr_equal(e, again);
  assert_ptr_not_equal(e, other);
  TEST_FAILS(
      ax_run(e, AX_ARRAYS(scalar, scalar, x), out), AX_INVALID_ARGUMENT,
      "run: 2 of 3 arguments do not match:\n  argument 0 (a): the program takes f32[8], got f32[]\n  argument 1: the program takes f32[8], got f32[]");
  ax_array_release(x);
  ax_array_release(scalar);
  ax_executable_release(e);
  ax_executable_release(again);
  ax_executable_release(other);
}

/* Layouts that are the same are one; arguments that lie as is wanted by another name are not copied. */
static void same_by_meaning(void **state) {
  (void)state;
  ax_executable *e = compile("d=4", "d -> d");
  ax_array *first = put_on("d=4", "d", 0, 1);
  const ax_counters before = ax_runtime_counters(runtime);
  ax_array *again = put_on("d=4", "d", 0, 1);
  assert_ptr_equal(first->layout, again->layout);
  assert_ptr_equal(first->layout, e->wanted[0]);
  ax_counters now = ax_runtime_counters(runtime);
  assert_int_equal(now.layouts_made, before.layouts_made);
  assert_int_equal(now.layouts_found, before.layouts_found + 1);
  ax_sharding *tiled;
  TEST_OK(ax_sharding_tiled("{devices=[4]<=[4]}", NULL, &tiled));
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(elems), data);
  ax_array *by_tiles, *cut;
  TEST_OK(ax_device_put_as(runtime, tiled, &host, &by_tiles));
  cut = put_on("one=1,a=2,b=2", "one+a+b", 0, 1);
  expect_sum(e, first, again, by_tiles, true, 4, (int64_t[]){0, 1, 2, 3});
  expect_sum(e, put_on("d=4", "d", 0, 1), cut, put_on("d=4,one=1", "d+one", 0, 1), true, 4, (int64_t[]){0, 1, 2, 3});
  now = ax_runtime_counters(runtime);
  assert_int_equal(now.arguments_copied, before.arguments_copied);
  expect_sum(e, put_on("d=4", "d", 0, 1), put_on("a=2,b=2", "b+a", 0, 1), put_on("d=4", "d", 0, 1), true, 4,
             (int64_t[]){0, 1, 2, 3});
  now = ax_runtime_counters(runtime);
  assert_int_equal(now.arguments_copied, before.arguments_copied); /* other devices have the blocks, but they are there */
  expect_sum(e, put_on("d=4", "", 0, 1), put_anywhere(), put_on("d=4", "d", 0, 1), true, 4, (int64_t[]){0, 1, 2, 3});
  assert_int_equal(ax_runtime_counters(runtime).arguments_copied, before.arguments_copied); /* blocks are pieces of the whole */
  ax_sharding_release(tiled);
  ax_executable_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_is_committed),     cmocka_unit_test(without_a_mesh), cmocka_unit_test(on_a_mesh),
      cmocka_unit_test(round_and_round),      cmocka_unit_test(refused),        cmocka_unit_test(passed_on),
      cmocka_unit_test(constants_and_unused), cmocka_unit_test(leaves),         cmocka_unit_test(named),
      cmocka_unit_test(same_by_meaning),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
