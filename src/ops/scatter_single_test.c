/* Which scatters are slices that are overwritten, and that these give what scatters do: of windows inside, partly outside and far
   outside of the array, for each mode, also in loops whose carry they update. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "ops/scatter.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

/* Windows [1, wide] of x [6, 7]; `count` of them. */
static ax_program *putting(const char *prim, const char *t, const char *n, const char *mode, int count, int wide) {
  char text[700];
  snprintf(text, sizeof text,
           "{ lambda x:%s[6,7] i:%s[%d,2] u:%s[%d,%d]. let y:%s[6,7] = %s[update_window_dims=(1,) inserted_window_dims=(0,) "
           "scatter_dims_to_operand_dims=(0, 1) operand_batching_dims=() scatter_indices_batching_dims=() mode=\"%s\" "
           "indices_are_sorted=false unique_indices=false] x i u in (y,) }",
           t, n, count, t, count, wide, t, prim, mode);
  return test_parsed(text);
}

static bool has_one(const char *prim, const char *t, const char *n, int count) {
  ax_program *program = putting(prim, t, n, "fill", count, 3);
  const bool puts = ax_scatter_has_one(&program->eqns[0], program->types);
  ax_program_release(program);
  return puts;
}

static void which_have_one(void **state) {
  (void)state;
  assert_true(has_one("scatter", "f32", "s32", 1));
  assert_true(has_one("scatter", "c64", "s64", 1));
  assert_false(has_one("scatter", "f32", "s32", 2));
  assert_false(has_one("scatter", "f32", "u8", 1)); /* whose limit may be beyond its numbers */
  assert_true(has_one("scatter_add", "f32", "s32", 1));
  assert_false(has_one("scatter_mul", "c64", "s32", 1));
  assert_false(has_one("scatter_max", "bool", "s32", 1));
  assert_false(has_one("scatter_add", "f32", "s32", 2));
}

static void windows_anywhere(void **state) {
  (void)state;
  static const char *const prims[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"},
                           *const modes[] = {"fill", "clip", "promise_in_bounds"}, *const dtypes[] = {"f32", "c128", "bf16", "s8", "bool"},
                           *const indices[] = {"s32", "s64"};
  static const double at[][2] = {{0, 0}, {5, 4}, {2, 5}, {6, 0}, {-1, 2}, {3, -1}, {-2147483648.0, 2147483647}};
  test_random random = {3};
  for (size_t m = 0; m < AX_COUNT(modes); m++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t a = 0; a < AX_COUNT(at); a++) {
        const char *of_bools[] = {"scatter", "scatter_min", "scatter_max"};
        const char *prim = d == 1 ? "scatter" : d == 4 ? of_bools[(m + a) % 3] : prims[(m + d + a) % AX_COUNT(prims)];
        ax_program *program = putting(prim, dtypes[d], indices[a % 2], modes[m], 1, a % 3 == 2 ? 1 : 3);
        const ax_type *types = program->types;
        ax_tensor *in[] = {test_edge_tensor(&random, types[0]), test_tensor(types[1], at[a]), test_edge_tensor(&random, types[2])};
        TEST_EVERY_WAY(program, in, 0);
        test_release(in, 3);
        ax_program_release(program);
      }
}

static AX_BODY(put_in_carry) {
  const ax_value i = in[0], x = in[1], four = ax_full(AX_S32, AX_DIMS(), 4), at = ax_reshape(ax_sub(ax_mul(i, four), four), AX_DIMS(1));
  const ax_value one = ax_dynamic_slice_in_dim(x, i, 1, 0);
  (void)context;
  out[0] = (ax_at_set)(x, at, ax_add(one, one), 0, &(ax_index_options){.mode = AX_INDEX_FILL});
}

static AX_BODY(puts_in_loop) {
  (void)context;
  (ax_fori_loop)(ax_integer(0), ax_integer(6), (ax_fn){put_in_carry, 2, 1, NULL}, 1, in, 1, out);
}

static void in_loops(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_C64, AX_S16};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type type = TEST_TYPE(dtypes[d], 17);
    test_random random = {5};
    ax_program *program = test_trace(puts_in_loop, NULL, &type, 1, 1);
    ax_tensor *x = test_random_tensor(&random, type, -9, 9);
    TEST_EVERY_WAY(program, &x, 0);
    ax_tensor_release(x);
    ax_program_release(program);
  }
}

/* The inner loop carries x along and changes it never; the outer one overwrites it behind each. The bounds are a value, so that both are
   whiles. */
static AX_BODY(add_element) {
  const ax_value one = ax_dynamic_slice_in_dim(in[1], in[0], 1, 0);
  (void)context;
  out[0] = in[1];
  out[1] = ax_add(ax_mul(in[2], in[2]), one);
}

static AX_BODY(sum_and_put) {
  const ax_value i = in[0], x = in[1], end = in[2], carries[] = {x, ax_sub(ax_dynamic_slice_in_dim(x, i, 1, 0), ax_dynamic_slice_in_dim(x, i, 1, 0))};
  ax_value sum[2];
  (void)context;
  (ax_fori_loop)(ax_integer(0), i, (ax_fn){add_element, 3, 2, NULL}, 2, carries, 2, sum);
  out[0] = (ax_at_set)(sum[0], ax_reshape(i, AX_DIMS(1)), sum[1], 0, &(ax_index_options){.mode = AX_INDEX_FILL});
  out[1] = end;
}

static AX_BODY(sums_in_loops) {
  ax_value results[2];
  (void)context;
  (ax_fori_loop)(ax_integer(0), in[1], (ax_fn){sum_and_put, 3, 2, NULL}, 2, in, 2, results);
  out[0] = results[0];
  out[1] = in[0];
}

static void of_what_inner_loops_read(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_C64};
  static const double count = 15;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type types[] = {TEST_TYPE(dtypes[d], 17), ax_array_type(AX_S32, AX_DIMS())};
    test_random random = {5};
    ax_program *program = test_trace(sums_in_loops, NULL, types, 2, 2);
    ax_tensor *in[] = {test_random_tensor(&random, types[0], -0.25, 0.25), test_tensor(types[1], &count)};
    TEST_EVERY_WAY(program, in, 1e-5);
    test_release(in, 2);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(which_have_one), cmocka_unit_test(windows_anywhere), cmocka_unit_test(in_loops),
                                     cmocka_unit_test(of_what_inner_loops_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
