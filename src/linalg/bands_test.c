/* Factors and systems whose matrices are cut over devices: beside those of whole matrices, and beside the mathematics; fewer bytes
   than a gathered matrix has; derivatives; what fails, and numbers that are not read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/linalg.h"
#include "axle/ops.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "linalg/matrices.h"
#include "support/cmocka.h"
#include "support/layouts.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_runtime *runtime;

/* Fails unless devices exchange what bands need. */
static void in_bands(const ax_program *program, const test_layout *at) {
  ax_program *laid = test_laid_out(program, at), *partitioned;
  TEST_OK(ax_program_partition(laid, &partitioned));
  if (test_count_prim(partitioned, "pbroadcast") + test_count_prim(partitioned, "psum") == 0)
    fail_msg("%s, %s: not in bands", at->mesh, at->specs);
  ax_program_release(laid), ax_program_release(partitioned);
}

static double tolerance_of(ax_dtype dtype) { return ax_part_dtype(dtype) == AX_F32 ? 2e-4 : 1e-11; }

static ax_value off(ax_value x, ax_value y) {
  const ax_value apart = ax_sub(x, y);
  return ax_reduce_max(ax_matrix_reals(ax_mul(apart, ax_conjugated(apart))), AX_ALL_DIMS, false);
}

/* --- Cholesky --- */

static AX_BODY(positive) { /* x x^H + n, of x T[b.., n, n] */
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[type.rank - 1];
  out[0] = ax_add(ax_matmul(in[0], ax_matrix_adjoint(in[0])), ax_mul(ax_matrix_eye(in[0], n, n), ax_integer(n)));
}

static ax_tensor *positive_tensor(ax_type type, uint64_t seed) {
  test_random random = {seed};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1), *out;
  ax_program *program = test_trace(positive, NULL, &type, 1, 1);
  test_execute(runtime, program, &x, &out);
  ax_tensor_release(x);
  ax_program_release(program);
  return out;
}

static AX_BODY(factored) { out[0] = ax_cholesky(in[0], false); }

static const test_layout square[] = {
    {"a=2", "a -> a"},           {"a=2", "_,a -> _,a"},     {"a=3", "a -> a"},         {"a=3", "_,a -> _,a"},
    {"a=4", "a -> _"},           {"a=4", "_,a -> a"},       {"a=8", "a -> a"},         {"a=8", "_,a -> _,a"},
    {"a=2,b=2", "a,b -> a,b"},   {"a=2,b=4", "b,a -> b,a"}, {"a=3,b=2", "a,b -> b,a"}, {"a=2,b=2", "a+b -> a+b"},
    {"a=3,b=2", "_,b+a -> _,b"}, {"a=16", "a -> a"},        {"a=16", "_,a -> _,a"},    {"a=4,b=2", "b,a -> _"},
};

static void cholesky(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F64, AX_F32, AX_C64};
  static const int64_t sizes[] = {513, 512, 515};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t s = 0; s < AX_COUNT(sizes); s++) {
      const ax_type type = TEST_TYPE(dtypes[d], sizes[s], sizes[s]);
      ax_tensor *x = positive_tensor(type, 5 + s);
      ax_program *program = test_trace(factored, NULL, &type, 1, 1);
      for (size_t i = 0; i < AX_COUNT(square); i++)
        if (s == 0 || i % 3 == d) in_bands(program, &square[i]), test_same_laid_out(runtime, program, &square[i], &x, tolerance_of(dtypes[d]));
      ax_program_release(program);
      ax_tensor_release(x);
    }
}

static void cholesky_of_batches(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=2,b=2", "b,a -> b,a"}, {"a=3", "_,_,a -> _,_,a"}, {"a=2,b=2,c=2", "c,a,b -> c,a,b"}};
  const ax_type type = TEST_TYPE(AX_F64, 3, 514, 514);
  ax_tensor *x = positive_tensor(type, 9);
  ax_program *program = test_trace(factored, NULL, &type, 1, 1);
  for (size_t i = 0; i < AX_COUNT(at); i++) test_same_laid_out(runtime, program, &at[i], &x, 1e-11);
  ax_program_release(program);
  ax_tensor_release(x);
}

/* What is above the diagonal is not read. Where x is not positive definite, or has a NaN, all of the lower triangle is NaN. */
static void cholesky_fails(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 513, 513);
  ax_program *program = test_trace(factored, NULL, &type, 1, 1);
  static const int64_t places[][2] = {{0, 512}, {260, 261}, {512, 512}, {0, 0}, {270, 270}, {400, 2}};
  for (size_t p = 0; p < AX_COUNT(places); p++)
    for (size_t i = 0; i < AX_COUNT(square); i += 1 + (p > 2)) {
      ax_tensor *x = positive_tensor(type, 3);
      test_set(x, places[p][0] * 513 + places[p][1], p == 3 || p == 4 ? -1 : NAN);
      test_same_laid_out(runtime, program, &square[i], &x, 1e-11);
      ax_tensor_release(x);
    }
  ax_program_release(program);
}

/* --- Triangular systems --- */

typedef struct system_params {
  bool left, lower, transposed, conjugated, unit;
} system_params;

static AX_BODY(solved) {
  const system_params *p = context;
  out[0] = ax_triangular_solve(in[0], in[1], p->left, p->lower, p->transposed, p->conjugated, p->unit);
}

/* Of the triangle that is not read, and of a diagonal of ones, a has NaN. */
static ax_tensor *triangle(ax_dtype dtype, int64_t n, const system_params *p) {
  test_random random = {17};
  ax_tensor *a = test_random_tensor(&random, TEST_TYPE(dtype, n, n), -1, 1);
  const int64_t parts = ax_is_complex(dtype) ? 2 : 1;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t part = 0; part < parts; part++) {
        const int64_t at = (i * n + j) * parts + part;
        const bool read = i == j ? !p->unit : (i > j) == p->lower;
        test_set(a, at, !read ? NAN : test_get(a, at) / (double)n + (i == j && part == 0 ? 2 : 0));
      }
  return a;
}

static void one_system(ax_dtype dtype, const system_params *p, int64_t n, const test_layout *at) {
  const ax_type types[] = {TEST_TYPE(dtype, n, n), p->left ? TEST_TYPE(dtype, n, 5) : TEST_TYPE(dtype, 5, n)};
  test_random random = {23};
  ax_tensor *in[] = {triangle(dtype, n, p), test_random_tensor(&random, types[1], -1, 1)};
  ax_program *program = test_trace(solved, (void *)(uintptr_t)p, types, 2, 1);
  in_bands(program, at);
  test_same_laid_out(runtime, program, at, in, tolerance_of(dtype));
  ax_program_release(program);
  test_release(in, 2);
}

static void triangular_systems(void **state) {
  (void)state;
  static const test_layout left[] = {{"a=2", "a; a -> a"},           {"a=3", "_,a; _ -> _"},       {"a=4", "a; _ -> a"},
                                {"a=2,b=2", "a,b; a -> a"},     {"a=2,b=2", "a; a,b -> a,b"}, {"a=8", "a; _,a -> a"},
                                {"a=3,b=2", "a,b; _,b -> _,b"}, {"a=16", "_,a; a -> a"},      {"a=4,b=2", "b,a; a -> _"}},
                      right[] = {{"a=2", "a; _,a -> _,a"},       {"a=3", "_,a; _ -> _"},       {"a=4", "a; _ -> _,a"},
                                 {"a=2,b=2", "a,b; _,a -> _,a"}, {"a=2,b=2", "a; b,a -> b,a"}, {"a=8", "a; a -> _,a"},
                                 {"a=3,b=2", "a,b; b -> b"},     {"a=16", "_,a; _,a -> _,a"},  {"a=4,b=2", "b,a; _,a -> _"}};
  static const ax_dtype dtypes[] = {AX_F64, AX_F32, AX_C64};
  for (int bits = 0; bits < 32; bits += AX_HOSTILE ? 3 : 1) {
    const system_params p = {bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1, bits >> 4 & 1};
    for (size_t i = 0; i < AX_COUNT(left); i++) {
      const ax_dtype dtype = p.conjugated ? AX_C64 : dtypes[(i + (size_t)bits) % AX_COUNT(dtypes)];
      one_system(dtype, &p, i % 2 == 0 ? 513 : 515, p.left ? &left[i] : &right[i]);
    }
  }
}

/* --- QR --- */

static AX_BODY(orthogonal) { /* -> q, r; |q^H q - 1|^2, |q r - x|^2 */
  ax_value made[2];
  ax_qr(in[0], false, false, made);
  const ax_type type = ax_typeof(made[0]);
  const int64_t k = type.dims[type.rank - 1];
  out[0] = made[0], out[1] = made[1];
  out[2] = off(ax_matmul(ax_matrix_adjoint(made[0]), made[0]), ax_matrix_eye(made[0], k, k));
  out[3] = off(ax_matmul(made[0], made[1]), in[0]);
}

static const test_layout tall[] = {
    {"a=2", "a -> a; _; ?; ?"}, {"a=3", "a -> a; ?; ?; ?"},       {"a=4", "a -> _; _; ?; ?"},
    {"a=8", "a -> a; _; ?; ?"}, {"a=2,b=2", "a,b -> a; _; ?; ?"}, {"a=2,b=4", "b+a -> b+a; _; ?; ?"},
};

static void tall_qr(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F64, AX_F32, AX_C64};
  static const int64_t sizes[][2] = {{160, 8}, {131, 8}, {65, 8}, {40, 8}, {9, 8}, {64, 1}};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t s = 0; s < AX_COUNT(sizes); s++) {
      const ax_type type = TEST_TYPE(dtypes[d], sizes[s][0], sizes[s][1]);
      test_random random = {31 + s};
      ax_tensor *x = test_random_tensor(&random, type, -1, 1);
      ax_program *program = test_trace(orthogonal, NULL, &type, 1, 4);
      for (size_t i = 0; i < AX_COUNT(tall); i++) test_same_laid_out(runtime, program, &tall[i], &x, ax_part_dtype(dtypes[d]) == AX_F32 ? 1e-5 : 1e-13);
      ax_program_release(program);
      ax_tensor_release(x);
    }
}

/* The columns of q for which r has a zero on its diagonal may be any, but orthogonal ones. A NaN leaves columns before it alone,
   and what is NaN uncut is NaN. */
static void qr_of_singular(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 131, 8);
  ax_program *program = test_trace(orthogonal, NULL, &type, 1, 4);
  for (int kind = 0; kind < 3; kind++)
    for (size_t i = 0; i < AX_COUNT(tall); i++) {
      test_random random = {7};
      ax_tensor *x = test_random_tensor(&random, type, -1, 1), *out[4], *whole[4];
      for (int64_t row = 0; row < 131; row++)
        for (int64_t column = 0; column < 8; column++) {
          const int64_t at = row * 8 + column;
          if (kind == 0 || (kind == 1 && column == 3)) test_set(x, at, 0);
          if (kind == 1 && column == 5) test_set(x, at, 2 * test_get(x, row * 8));
        }
      if (kind == 2) test_set(x, 100 * 8 + 4, NAN);
      ax_program *laid = test_laid_out(program, &tall[i]);
      test_execute(runtime, laid, &x, out);
      test_execute(runtime, program, &x, whole);
      for (int k = 2; k < 4 && kind < 2; k++)
        if (!(test_get(out[k], 0) < 1e-26)) fail_msg("%s, kind %d: %d: %g", tall[i].specs, kind, k, test_get(out[k], 0));
      for (int64_t at = 0; at < 64 && kind == 2; at++) {
        const double r = test_get(out[1], at), uncut = test_get(whole[1], at);
        if (at % 8 < 4 ? !test_near(r, uncut, 1e-13) : isnan(uncut) && !isnan(r))
          fail_msg("%s: r[%d,%d] is %g, not %g", tall[i].specs, (int)at / 8, (int)at % 8, r, uncut);
      }
      ax_program_release(laid);
      test_release(out, 4), test_release(whole, 4);
      ax_tensor_release(x);
    }
  ax_program_release(program);
}

static void qr_of_batches(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=2,b=2", "b,a -> b,a; b; ?; ?"}, {"a=3", "_,a -> _,a; _; ?; ?"}};
  const ax_type type = TEST_TYPE(AX_C64, 3, 50, 6);
  test_random random = {4};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1);
  ax_program *program = test_trace(orthogonal, NULL, &type, 1, 4);
  for (size_t i = 0; i < AX_COUNT(at); i++) test_same_laid_out(runtime, program, &at[i], &x, 1e-5);
  ax_program_release(program);
  ax_tensor_release(x);
}

/* --- All together --- */

/* x f64[514,514], b f64[514,3], t f64[260,6]: the sum of the squares of x^-1 b, and of sines of q and r of t */
static AX_BODY(loss) {
  const ax_value l = ax_cholesky(in[0], false);
  const ax_value y = ax_triangular_solve(l, in[1], true, true, false, false, false);
  const ax_value z = ax_triangular_solve(l, y, true, true, true, false, false);
  ax_value made[2];
  ax_qr(in[2], false, false, made);
  out[0] = ax_add(ax_reduce_sum(ax_mul(z, z), AX_ALL_DIMS, false), ax_reduce_sum(ax_sin(made[1]), AX_ALL_DIMS, false));
  out[0] = ax_add(out[0], ax_reduce_sum(ax_mul(made[0], ax_cos(in[2])), AX_ALL_DIMS, false));
}
static AX_BODY(gradients) { ax_grad(AX_FN(loss, 3, 1), AX_FIRST(3), in, out); }

static void derivatives(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=2", "a; a; a -> a; a; a"},
                              {"a=4", "_,a; _; a -> _,a; _; a"},
                              {"a=2,b=2", "a,b; a; a+b -> a,b; a; a+b"},
                              {"a=3", "a; _; a -> _; _; _"}};
  const ax_type types[] = {TEST_TYPE(AX_F64, 514, 514), TEST_TYPE(AX_F64, 514, 3), TEST_TYPE(AX_F64, 260, 6)};
  test_random random = {41};
  ax_tensor *in[] = {positive_tensor(types[0], 6), test_random_tensor(&random, types[1], -1, 1),
                     test_random_tensor(&random, types[2], -1, 1)};
  ax_program *program = test_trace(gradients, NULL, types, 3, 3);
  for (size_t i = 0; i < AX_COUNT(at); i++) test_same_laid_out(runtime, program, &at[i], in, 1e-10);
  ax_program_release(program);
  test_release(in, 3);
}

/* Under every policy, with any number of workers: the same bits. */
static void every_way(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=3", "a; a; a -> ?"}, {"a=2,b=2", "a,b; a; a -> ?"}};
  const ax_type types[] = {TEST_TYPE(AX_F64, 514, 514), TEST_TYPE(AX_F64, 514, 3), TEST_TYPE(AX_F64, 260, 6)};
  test_random random = {43};
  ax_tensor *in[] = {positive_tensor(types[0], 8), test_random_tensor(&random, types[1], -1, 1),
                     test_random_tensor(&random, types[2], -1, 1)};
  ax_program *program = test_trace(loss, NULL, types, 3, 1);
  for (size_t i = 0; i < AX_COUNT(at); i++) {
    ax_program *laid = test_laid_out(program, &at[i]);
    TEST_EVERY_WAY(laid, in, 1e-9);
    ax_program_release(laid);
  }
  ax_program_release(program);
  test_release(in, 3);
}

/* --- What is sent --- */

static void fewer_bytes(void **state) {
  (void)state;
  enum { n = 1024 };
  static const struct {
    test_layout at;
    double most; /* in matrices; to gather one takes 1 - 1/devices */
  } factors[] = {{{"a=2", "_,a -> _,a"}, 0.251},
                 {{"a=2", "a -> a"}, 0.251},
                 {{"a=8", "a -> a"}, 0.4376},
                 {{"a=8", "_,a -> _,a"}, 0.4376},
                 {{"a=2,b=4", "a,b -> a,b"}, 0.563}},
    solutions[] = {{{"a=2", "a; a -> a"}, 0.02}, {{"a=8", "a; a -> a"}, 0.02}, {{"a=8", "_,a; _ -> _"}, 0.3}};
  const ax_type types[] = {TEST_TYPE(AX_F32, n, n), TEST_TYPE(AX_F32, n, 4)}, type = TEST_TYPE(AX_F32, 4096, 32);
  const double matrix = 4.0 * n * n;
  ax_program *cholesky_of = test_trace(factored, NULL, types, 1, 1), *qr_of = test_trace(orthogonal, NULL, &type, 1, 4);
  for (size_t i = 0; i < AX_COUNT(factors); i++) {
    const double bytes = test_received(cholesky_of, &factors[i].at);
    if (!(bytes <= factors[i].most * matrix)) fail_msg("cholesky, %s: %g matrices", factors[i].at.specs, bytes / matrix);
  }
  for (int bits = 0; bits < 8; bits++) {
    const system_params p = {true, bits & 1, bits >> 1 & 1, false, bits >> 2 & 1};
    ax_program *system = test_trace(solved, (void *)(uintptr_t)&p, types, 2, 1);
    for (size_t i = 0; i < AX_COUNT(solutions); i++) {
      const double bytes = test_received(system, &solutions[i].at);
      if (!(bytes <= solutions[i].most * matrix)) fail_msg("triangular_solve, %s: %g", solutions[i].at.specs, bytes / matrix);
    }
    ax_program_release(system);
  }
  const double bytes = test_received(qr_of, &(test_layout){"a=8", "a -> a; _; ?; ?"}), triangles = 4.0 * 32 * 32;
  if (!(bytes <= 16 * triangles)) fail_msg("qr: %g triangles", bytes / triangles);
  ax_program_release(cholesky_of), ax_program_release(qr_of);
}

static int set_up(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cholesky),       cmocka_unit_test(cholesky_of_batches),
                                     cmocka_unit_test(cholesky_fails), cmocka_unit_test(triangular_systems),
                                     cmocka_unit_test(tall_qr),        cmocka_unit_test(qr_of_singular),
                                     cmocka_unit_test(qr_of_batches),  cmocka_unit_test(derivatives),
                                     cmocka_unit_test(every_way),      cmocka_unit_test(fewer_bytes)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
