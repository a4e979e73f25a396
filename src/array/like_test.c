/* Layouts that inputs take from arrays: computation follows data. */
#include "axle/ops.h"
#include "axle/sharding.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { side = 64 };

static const ax_type square = {.dtype = AX_F32, .rank = 2, .dims = {side, side}};
static float data[side * side];
static ax_runtime *runtime;
static ax_mesh mesh;

static int begin(void **state) {
  (void)state;
  for (int i = 0; i < side * side; i++) data[i] = (float)(i % 7) / 64;
  TEST_OK(ax_mesh_parse("i=8", &mesh));
  TEST_OK(ax_runtime_create(NULL, &runtime));
  return 0;
}

static int end(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

static ax_array *put(const ax_mesh *on, const char *spec) {
  ax_array *array;
  TEST_OK(ax_device_put_data(runtime, on, spec, &square, data, &array));
  return array;
}

static void layer(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_matmul(in[0], in[1]));
}

static ax_executable *compile(const ax_compile_options *options) {
  ax_executable *e;
  TEST_OK(ax_jit(runtime, AX_FN(layer, 2, 1), AX_TYPES(square, square), options, &e));
  return e;
}

/* The result's spec, as text; how many arguments the run copied, and what a device computes. The values are those of the program as
   it is. */
static void expect(ax_executable *e, ax_array *x, ax_array *w, const char *lies, uint64_t copied, double flops) {
  static float got[side * side], wanted[side * side];
  ax_executable *plain = compile(NULL);
  ax_array *here = put(NULL, ""), *out;
  TEST_OK(ax_run(plain, AX_ARRAYS(here, here), &out));
  TEST_OK(ax_array_read(out, wanted, sizeof wanted));
  ax_array_release(out);
  const uint64_t before = ax_runtime_counters(runtime).arguments_copied;
  TEST_OK(ax_run(e, AX_ARRAYS(x, w), &out));
  assert_int_equal(ax_runtime_counters(runtime).arguments_copied - before, copied);
  TEST_OK(ax_array_read(out, got, sizeof got));
  for (int i = 0; i < side * side; i++) TEST_NEAR(got[i], wanted[i], 1e-6);
  ax_sharding *sharding;
  char *text;
  TEST_OK(ax_array_sharding(out, &sharding));
  TEST_OK(ax_sharding_print(sharding, &text));
  assert_string_equal(text, lies);
  ax_string_free(text);
  ax_sharding_release(sharding);
  ax_cost cost;
  TEST_OK(ax_executable_cost(e, &cost));
  TEST_NEAR(cost.flops, flops, 0);
  ax_cost_release(&cost);
  ax_array_release(out);
  ax_array_release(here);
  ax_executable_release(plain);
}

/* x is cut, w is not. Without `like` each device computes all of it. */
static void test_follows(void **state) {
  (void)state;
  ax_array *x = put(&mesh, "i"), *w = put(&mesh, ""), *both[] = {x, w}, *cut[] = {x, NULL};
  ax_compile_options options[] = {
      {.like = {AX_LIST(2, both)}},
      {.like = {AX_LIST(2, cut)}},
      {.like = {AX_LIST(2, both)}, .mesh = &mesh, .shardings = "? -> ?"},
      {.like = {AX_LIST(2, both)}, .mesh = &mesh, .shardings = "i; ? -> i"},
  };
  for (size_t k = 0; k < AX_COUNT(options); k++) {
    ax_executable *e = compile(&options[k]);
    expect(e, x, w, "P(i) over (i=8,)", 0, 66048);
    ax_executable_release(e);
  }
  ax_executable *e = compile(NULL);
  expect(e, x, w, "P() over (i=8,)", 1, 528384);
  ax_executable_release(e);
  e = compile(
      &(ax_compile_options){.like = {AX_LIST(2, both)}, .mesh = &mesh, .shardings = "_,i; ? -> ?"}); /* what is said comes first */
  assert_int_equal(ax_executable_in_spec(e, 0)->count[0], 0);
  assert_int_equal(ax_executable_in_spec(e, 0)->count[1], 1);
  ax_executable_release(e);
  ax_array_release(x);
  ax_array_release(w);
}

/* The same by stages, and found in the cache; by arrays on other devices and a mesh of other axes. */
static void test_stages_and_meshes(void **state) {
  (void)state;
  const int64_t ids[] = {15, 14, 13, 12, 11, 10, 9, 8};
  const ax_host_array host = ax_host_view(AX_F32, AX_LIST(2, square.dims), data);
  ax_mesh grid;
  ax_sharding *rows, *columns;
  TEST_OK(ax_mesh_parse("a=2,b=4", &grid));
  TEST_OK(ax_sharding_named(&mesh, "i", &(ax_sharding_options){.devices = {AX_LIST(8, ids)}}, &rows));
  TEST_OK(ax_sharding_named(&grid, "", &(ax_sharding_options){.devices = {AX_LIST(8, ids)}}, &columns));
  ax_array *in[2], *x = put(&mesh, "i"), *like[] = {x, NULL};
  TEST_OK(ax_device_put_as(runtime, rows, &host, &in[0]));
  TEST_OK(ax_device_put_as(runtime, columns, &host, &in[1]));
  ax_executable *e = compile(&(ax_compile_options){.like = {AX_LIST(2, in)}}),
                *first = compile(&(ax_compile_options){.like = {AX_LIST(2, like)}}), *second;
  expect(e, in[0], in[1], "P(a+b) over (a=2, b=4), devices 15 14 13 12 11 10 9 8", 0, 66048);
  ax_program *program;
  ax_lowered *lowered;
  TEST_OK(ax_trace(AX_FN(layer, 2, 1), AX_TYPES(square, square), &program));
  TEST_OK(ax_program_lower(program, &(ax_compile_options){.like = {AX_LIST(2, like)}}, &lowered));
  assert_int_equal(ax_lowered_in_spec(lowered, 0)->count[0], 1);
  TEST_OK(ax_lowered_compile(runtime, lowered, &second));
  assert_int_equal(ax_executable_in_spec(second, 0)->count[0], 1);
  ax_lowered_release(lowered);
  ax_program_release(program);
  ax_executable_release(e);
  ax_executable_release(first);
  ax_executable_release(second);
  for (int i = 0; i < 2; i++) ax_array_release(in[i]);
  ax_array_release(x);
  ax_sharding_release(rows);
  ax_sharding_release(columns);
}

/* Arrays that lie nowhere in particular, or on one device, leave the program as it is. */
static void test_says_nothing(void **state) {
  (void)state;
  ax_sharding *third;
  const ax_host_array host = ax_host_view(AX_F32, AX_LIST(2, square.dims), data);
  ax_array *here = put(NULL, ""), *there;
  TEST_OK(ax_sharding_single(3, &third));
  TEST_OK(ax_device_put_as(runtime, third, &host, &there));
  ax_executable *plain = compile(NULL);
  ax_array *const lists[][2] = {{here, NULL}, {here, there}, {NULL, NULL}};
  for (size_t k = 0; k < AX_COUNT(lists); k++) {
    ax_executable *e = compile(&(ax_compile_options){.like = {AX_LIST(2, lists[k])}});
    assert_ptr_equal(e, plain);
    ax_executable_release(e);
  }
  expect(plain, here, there, "P() over (), device 3", 0, 528384);
  ax_executable_release(plain);
  ax_array_release(here);
  ax_array_release(there);
  ax_sharding_release(third);
}

static void test_refused(void **state) {
  (void)state;
  const ax_type row = {.dtype = AX_F32, .rank = 1, .dims = {side}};
  ax_mesh four;
  ax_array *short_one;
  ax_executable *e;
  TEST_OK(ax_mesh_parse("i=4", &four));
  TEST_OK(ax_device_put_data(runtime, &mesh, "i", &row, data, &short_one));
  ax_array *x = put(&mesh, "i"), *w = put(&four, "");
  TEST_FAILS(
      ax_jit(runtime, AX_FN(layer, 2, 1), AX_TYPES(square, square), &(ax_compile_options){.like = {AX_ARRAYS(x, short_one)}}, &e),
      AX_INVALID_ARGUMENT, "compile: like: input 1 is f32[64,64], and the array f32[64]");
  TEST_FAILS(ax_jit(runtime, AX_FN(layer, 2, 1), AX_TYPES(square, square), &(ax_compile_options){.like = {AX_ARRAYS(x, w)}}, &e),
             AX_INVALID_ARGUMENT, "compile: like: the arrays of inputs 0 and 1 lie on different devices");
  ax_array_release(short_one);
  ax_array_release(x);
  ax_array_release(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_follows),
      cmocka_unit_test(test_stages_and_meshes),
      cmocka_unit_test(test_says_nothing),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
