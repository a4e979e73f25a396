/* Large triangular systems, which are solved by blocks where they have many right sides: beside the same systems with few at a time,
   and beside the right sides. Systems with few right sides: beside the reference. */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/blocked.h"
#include "linalg/triangular_solve.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { sides = 101 };

static ax_value solved(const ax_triangular_solve_params *p, ax_value a, ax_value b) {
  return ax_triangular_solve(a, b, p->left_side, p->lower, p->transpose_a, p->conjugate_a, p->unit_diagonal);
}

/* a, b -> x; x from a half of b at a time, which is too few for blocks */
static AX_BODY(both_ways) {
  const ax_triangular_solve_params *p = context;
  const int64_t along = p->left_side ? -1 : -2, half = sides / 2;
  const ax_value first = ax_slice_in_dim(in[1], 0, half, 1, along), rest = ax_slice_in_dim(in[1], half, sides, 1, along);
  const ax_value x[] = {solved(p, in[0], first), solved(p, in[0], rest)};
  const ax_type type = ax_typeof(in[1]);
  out[0] = solved(p, in[0], in[1]);
  out[1] = ax_failed() ? ax_poison : ax_concatenate(AX_LIST(2, x), along + (int64_t)type.rank);
}

/* Of the triangle that is not read, and of a diagonal of ones, a has NaN. */
static ax_tensor *triangles(ax_type type, const ax_triangular_solve_params *p) {
  test_random random = {3};
  ax_tensor *a = test_random_tensor(&random, type, -1, 1);
  const int64_t n = type.dims[type.rank - 1], parts = ax_is_complex(type.dtype) ? 2 : 1;
  for (int64_t at = 0; at < test_elems(a); at++) {
    const int64_t i = at / parts / n % n, j = at / parts % n;
    const bool read = i == j ? !p->unit_diagonal : (i > j) == p->lower;
    test_set(a, at, !read ? NAN : test_get(a, at) / (double)n + (i == j && at % parts == 0 ? 2 : 0));
  }
  return a;
}

static void one_system(ax_runtime *runtime, const ax_triangular_solve_params *p, ax_dtype dtype, int64_t n, bool batched) {
  const ax_type types[2][2] = {
      {TEST_TYPE(dtype, n, n), p->left_side ? TEST_TYPE(dtype, n, sides) : TEST_TYPE(dtype, sides, n)},
      {TEST_TYPE(dtype, 2, n, n), p->left_side ? TEST_TYPE(dtype, 2, n, sides) : TEST_TYPE(dtype, 2, sides, n)}};
  test_random random = {5};
  assert_true(ax_is_blocked(dtype, n, sides) && !ax_is_blocked(dtype, n, sides / 2 + 1));
  ax_tensor *in[] = {triangles(types[batched][0], p), test_random_tensor(&random, types[batched][1], -1, 1)}, *out[2];
  ax_program *program = test_trace(both_ways, (void *)(uintptr_t)p, types[batched], 2, 2);
  test_execute(runtime, program, in, out);
  for (int64_t i = 0; i < test_elems(out[0]); i++) assert_false(isnan(test_get(out[0], i)));
  TEST_TENSORS_NEAR(out[0], out[1], dtype == AX_F32 ? 2e-6 : 4e-15);
  test_release(out, 2), test_release(in, 2);
  ax_program_release(program);
}

static void by_blocks(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (int bits = 0; bits < 16; bits++) {
    const ax_triangular_solve_params p = {
        .left_side = bits & 1, .lower = bits >> 1 & 1, .transpose_a = bits >> 2 & 1, .unit_diagonal = bits >> 3 & 1};
    one_system(runtime, &p, AX_F64, bits % 3 == 0 ? 512 : 515, false);
    one_system(runtime, &p, AX_F32, bits % 3 == 1 ? 640 : 513, bits % 2 == 0);
  }
  ax_runtime_release(runtime);
}

/* --- Few right sides --- */

static AX_BODY(one_way) { out[0] = solved(context, in[0], in[1]); }

static void few_sides(ax_runtime *runtime, test_random *random, ax_dtype dtype, int64_t n, int64_t vectors, int flags) {
  const ax_triangular_solve_params p = {.left_side = flags & 1,
                                        .lower = flags & 2,
                                        .transpose_a = flags & 4,
                                        .conjugate_a = flags & 8,
                                        .unit_diagonal = test_random_below(random, 3) == 0};
  const int64_t count = 1 + test_random_below(random, 2);
  const ax_type types[] = {TEST_TYPE(dtype, count, n, n),
                           p.left_side ? TEST_TYPE(dtype, count, n, vectors) : TEST_TYPE(dtype, count, vectors, n)};
  ax_tensor *in[] = {triangles(types[0], &p), test_random_tensor(random, types[1], -1, 1)}, *out, *expected;
  ax_program *program = test_trace(one_way, (void *)(uintptr_t)&p, types, 2, 1);
  test_execute(runtime, program, in, &out);
  TEST_OK(test_try(program, in, &expected));
  for (int64_t i = 0; i < test_elems(out); i++)
    if (!(fabs(test_get(out, i) - test_get(expected, i)) <= (ax_part_dtype(dtype) == AX_F32 ? 1e-6 : 2e-15)))
      fail_msg("%s, %d rows, %d right sides, flags %d: part %d is %g, not %g", ax_dtype_name(dtype), (int)n, (int)vectors, flags,
               (int)i, test_get(out, i), test_get(expected, i));
  test_release(&out, 1), test_release(&expected, 1), test_release(in, 2);
  ax_program_release(program);
}

static void of_few_sides(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128};
  test_random random = {12};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (int64_t n = 1; n <= 130; n += n < 10 ? 1 : n < 60 ? 7 : n < 70 ? 1 : 13)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (int flags = 0; flags < 16; flags++) few_sides(runtime, &random, dtypes[d], n, 1 + (flags + n) % 5, flags);
  ax_runtime_release(runtime);
}

/* BLAS is called for one vector at a time, if they are few: the same as for all at once. */
static void by_vectors(void **state) {
  (void)state;
  enum { n = 70, vectors = 5 };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (int flags = 0; flags < 32; flags++) {
      const ax_triangular_solve_params p = {.left_side = flags & 1,
                                            .lower = flags & 2,
                                            .transpose_a = flags & 4,
                                            .conjugate_a = (flags & 12) == 12,
                                            .unit_diagonal = flags & 16};
      const int64_t m = p.left_side ? n : vectors, columns = p.left_side ? vectors : n;
      const size_t next = (p.left_side ? 1 : n) * ax_dtype_bytes(dtypes[d]); /* bytes from a vector to the next */
      const ax_type types[] = {TEST_TYPE(dtypes[d], n, n), TEST_TYPE(dtypes[d], m, columns)};
      ax_matrix_call call = {.dtype = dtypes[d],
                             .m = m,
                             .n = columns,
                             .left = p.left_side,
                             .lower = p.lower,
                             .transposed = p.transpose_a,
                             .conjugated = p.conjugate_a,
                             .unit = p.unit_diagonal,
                             .to = vectors};
      test_random random = {(uint64_t)flags}, again = random;
      ax_tensor *a = triangles(types[0], &p), *all = test_random_tensor(&random, types[1], -1, 1),
                *each = test_random_tensor(&again, types[1], -1, 1);
      TEST_OK(ax_lapack_of(call.dtype, &call.lapack));
      ax_solve_by_blas(&call, a->data, all->data);
      for (int64_t v = 0; v < vectors; v++) {
        call.from = v, call.to = v + 1;
        ax_solve_by_blas(&call, a->data, (char *)each->data + (size_t)v * next);
      }
      for (int64_t i = 0; i < test_elems(all); i++) assert_false(isnan(test_get(all, i)));
      TEST_TENSORS_NEAR(each, all, ax_part_dtype(call.dtype) == AX_F32 ? 1e-6 : 2e-15);
      test_release(&a, 1), test_release(&all, 1), test_release(&each, 1);
    }
}

/* a, b -> a x - b and a^T x - b by the factors of a */
static AX_BODY(residuals) {
  ax_value f[3];
  ax_lu(in[0], AX_LIST(3, f));
  const ax_value x = ax_linear_solve(in[0], f[0], f[1], in[1], false), y = ax_linear_solve(in[0], f[0], f[1], in[1], true);
  out[0] = ax_sub(ax_matmul(in[0], x), in[1]);
  out[1] = ax_sub(ax_matmul(ax_matrix_transpose(in[0]), y), in[1]);
}

/* With any number of threads the same bits. */
static void by_factors(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 513, 513), TEST_TYPE(AX_F64, 513, sides)};
  test_random random = {8};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *out[2];
  ax_program *program = test_trace(residuals, NULL, types, 2, 2);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, out);
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < test_elems(out[k]); i++)
      if (!(fabs(test_get(out[k], i)) < 1e-9)) fail_msg("residual %d: %g", k, test_get(out[k], i));
  TEST_EVERY_WAY(program, in, 1e-9);
  ax_runtime_release(runtime);
  test_release(out, 2), test_release(in, 2);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_blocks), cmocka_unit_test(of_few_sides), cmocka_unit_test(by_vectors),
                                     cmocka_unit_test(by_factors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
