/* The walk: what has nothing to replace stays the same program; equations in loops, branches and shard_maps are found. */
#include "plain/plain.h"

#include "axle/linalg.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static const ax_plain_lacks no_lapack = {.lapack = true};

static AX_BODY(positive) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[type.rank - 1];
  out[0] = ax_add(ax_matmul(in[0], ax_conj(ax_matrix_transpose(in[0]))), ax_mul(ax_one_hot(ax_iota(AX_S32, AX_DIMS(n), 0), n, type.dtype), ax_integer(n)));
}

static AX_BODY(factor_step) {
  ax_value p;
  positive(in, &p, NULL);
  out[0] = ax_cholesky(p, false);
}
static AX_BODY(stays) { out[0] = in[0]; }

/* In a scan, and in a branch of it. */
static AX_BODY(step) {
  ax_value l;
  ax_if(ax_gt(ax_at(ax_at(ax_real_part(in[0]), 0, 0), 0, 0), ax_integer(0)), AX_FN(factor_step, 1, 1), AX_FN(stays, 1, 1), AX_LIST(1, in), AX_LIST(1, &l));
  out[0] = ax_div(ax_cholesky(ax_matmul(l, ax_conj(ax_matrix_transpose(l))), true), ax_integer(2));
}
static AX_BODY(nested) {
  ax_value first;
  factor_step(in, &first, NULL);
  ax_scan(AX_FN(step, 1, 1), 1, 3, false, AX_LIST(1, &first), AX_LIST(1, out));
}

static AX_BODY(real_alone) { out[0] = ax_cholesky(in[0], true); }

static void same_program(void **state) {
  (void)state;
  const ax_type real = TEST_TYPE(AX_F64, 3, 3), complex = TEST_TYPE(AX_C128, 3, 3);
  ax_program *program = test_trace(real_alone, NULL, &real, 1, 1), *plain;
  TEST_OK(ax_plain_program(program, &no_lapack, &plain)); /* which StableHLO has */
  assert_ptr_equal(plain, program);
  ax_program_release(plain), ax_program_release(program);
  program = test_trace(nested, NULL, &complex, 1, 1);
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){0}, &plain));
  assert_ptr_equal(plain, program);
  ax_program_release(plain), ax_program_release(program);
}

static void in_nested_programs(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_C128, 4, 4);
  test_random random = {3};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1), *wanted, *got;
  ax_program *program = test_trace(nested, NULL, &type, 1, 1), *plain;
  TEST_OK(ax_plain_program(program, &no_lapack, &plain));
  assert_true(plain != program);
  TEST_OK(test_try(program, &x, &wanted));
  TEST_OK(test_try(plain, &x, &got));
  TEST_TENSORS_NEAR(got, wanted, 1e-13);
  ax_tensor_release(got);
  test_run(plain, &x, &got);
  TEST_TENSORS_NEAR(got, wanted, 1e-13);
  ax_tensor_release(x), ax_tensor_release(wanted), ax_tensor_release(got);
  ax_program_release(program), ax_program_release(plain);
}

/* On each device of a mesh a matrix of its own: what loops carry varies over it. */
static AX_BODY(on_each) {
  const ax_value x = ax_squeeze(in[0], AX_DIMS(0));
  ax_value f[3], v[2], s[3];
  (void)context;
  ax_lu(x, AX_LIST(3, f)), ax_eigh(x, true, true, AX_LIST(2, v)), ax_svd(x, false, true, AX_LIST(3, s));
  out[0] = ax_expand_dims(f[0], 0), out[1] = ax_expand_dims(v[1], 0), out[2] = ax_expand_dims(s[1], 0);
}

static void in_a_shard_map(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 2, 3, 3);
  const test_map map = {.mesh = "d=2", .in_specs = {"d"}, .out_specs = {"d", "d", "d"}, .body = on_each};
  test_random random = {5};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got[3], *wanted[3];
  ax_program *program = test_trace_map(&map, &type), *plain;
  TEST_OK(ax_plain_program(program, &no_lapack, &plain));
  assert_int_equal(test_count_prim(plain, "lu") + test_count_prim(plain, "eigh") + test_count_prim(plain, "svd") + test_count_prim(plain, "geqrf"), 0);
  assert_int_equal(test_count_prim(plain, "shard_map"), 1);
  TEST_OK(test_try(plain, &x, got));
  TEST_OK(test_try(program, &x, wanted));
  for (int k = 0; k < 3; k++) TEST_TENSORS_NEAR(got[k], wanted[k], 1e-13);
  test_release(got, 3), test_release(wanted, 3), ax_tensor_release(x);
  ax_program_release(program), ax_program_release(plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_program), cmocka_unit_test(in_nested_programs), cmocka_unit_test(in_a_shard_map)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
