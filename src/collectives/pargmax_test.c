/* pargmax and pargmin: ties, NaNs and infinities of every dtype against their definition, over devices, several axes and a named
   axis of vmap; and what is refused. */
#include <math.h>

#include "axle/collectives.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/sample.h"
#include "support/tensor.h"

enum { members = 6, elems = 4 };
/* By member: a tie, NaNs that come second, the first member's, the last's. */
static const double of_floats[members][elems] = {{1, 5, 7, -2},   {3, NAN, 1, -2},       {3, 9, 1, -2},
                                                 {0, NAN, 7, -2}, {-INFINITY, 1, 2, -3}, {3, 1, 2, INFINITY}};
static const int64_t floats_most[elems] = {1, 1, 0, 5}, floats_least[elems] = {4, 1, 1, 4};
static const double of_bools[members][elems] = {{0, 1, 0, 1}, {0, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 0, 0}};
static const int64_t bools_most[elems] = {2, 0, 0, 0}, bools_least[elems] = {0, 1, 0, 5};
static const double of_numbers[members][elems] = {{3, 100, 0, 7}, {9, 0, 0, 7}, {2, 1, 0, 7},
                                                  {9, 100, 0, 7}, {2, 0, 0, 6}, {5, 5, 1, 7}};
static const int64_t numbers_most[elems] = {1, 0, 5, 0}, numbers_least[elems] = {2, 1, 0, 4};

static void both(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_pargmax(in[0], context);
  out[1] = ax_pargmin(in[0], context);
}

static void over_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=6", &mesh));
  ax_shard_map(&mesh, "d -> ", AX_CLOSURE(both, 1, 2, "d"), in, out);
}

static void over_two_axes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  ax_shard_map_unchecked(&mesh, "a+b -> ", AX_CLOSURE(both, 1, 2, "a,b"), in, out);
}

static void over_a_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_CLOSURE(both, 1, 2, "d"), in, out,
          &(ax_vmap_options){.axis_name = "d", .out_axes = {AX_DIMS(AX_NOT_MAPPED, AX_NOT_MAPPED)}});
}

static void check(ax_function function, ax_dtype dtype, const double data[members][elems], const int64_t *most,
                  const int64_t *least) {
  const bool batch = function == over_a_batch;
  const ax_type type = TEST_TYPE(dtype, members, elems);
  ax_program *program = test_trace(function, NULL, &type, 1, 2);
  ax_tensor *in = test_tensor(type, data[0]), *out[2];
  test_run(program, &in, out);
  for (int k = 0; k < 2; k++) {
    assert_int_equal(out[k]->dtype, AX_S32);
    assert_int_equal(out[k]->rank, batch ? 1 : 2);
    for (int64_t i = 0; i < elems; i++)
      if (test_get(out[k], i) != (double)(k == 0 ? most : least)[i])
        fail_msg("%s, element %lld, %s: %g", ax_dtype_name(dtype), (long long)i, k == 0 ? "most" : "least", test_get(out[k], i));
  }
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, 2);
  ax_program_release(program);
}

static void first_of_extremes(void **state) {
  (void)state;
  const ax_function ways[] = {over_devices, over_two_axes, over_a_batch};
  const ax_dtype dtypes[] = {AX_F64, AX_F32, AX_F16, AX_BF16, AX_S8, AX_S16, AX_S32, AX_S64, AX_U8, AX_U16, AX_U32, AX_U64};
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
      if (d < 4) check(ways[w], dtypes[d], of_floats, floats_most, floats_least);
      check(ways[w], dtypes[d], of_numbers, numbers_most, numbers_least);
    }
    check(ways[w], AX_BOOL, of_bools, bools_most, bools_least);
  }
}

/* Invariant over the axes, and without a tangent. */
static void types(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program, *jvp;
  ax_type type = TEST_TYPE(AX_F32, elems);
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  type.spread.varying = 3;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(both, 1, 2, "b"), &type, &program));
  assert_int_equal(ax_program_out_type(program, 0)->spread.varying, 1);
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  TEST_OK(ax_program_verify(jvp));
  ax_program_release(program);
  ax_program_release(jvp);
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(both, 1, 2, "c"), &type, &program), AX_INVALID_ARGUMENT,
             "pargmax: axis \"c\" is not bound; bound are a (2), b (3)");
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(both, 1, 2, "b {0,1} {2}"), &type, &program), AX_INVALID_ARGUMENT,
             "pargmax: it takes no groups");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_of_extremes), cmocka_unit_test(types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
