/* What operations on matrices share: each piece beside numbers that are known; and factorisations larger than LAPACK's blocks, whose
   factors have to give the matrix again. */
#include "linalg/matrices.h"

#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/transform.h"
#include "linalg/hessenberg.h"
#include "linalg/householder.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/tensor.h"

/* --- In memory --- */

static void turned_in_tiles(void **state) {
  (void)state;
  enum { m = 37, n = 18 };
  static double from[m * n], to[n * m];
  static float small_from[m * n], small_to[n * m];
  for (int i = 0; i < m * n; i++) small_from[i] = (float)(from[i] = i);
  ax_matrix_turn(to, from, m, n, AX_F64);
  ax_matrix_turn(small_to, small_from, m, n, AX_F32);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      assert_true(to[j * m + i] == from[i * n + j]);
      assert_true(small_to[j * m + i] == small_from[i * n + j]);
    }
}

static void workspace(void **state) {
  (void)state;
  const ax_matrix_call call = {.dtype = AX_F32};
  const ax_lapack_size exact = {.first = 100};
  const float asked = 16777216; /* LAPACK may have meant one more, which f32 has not */
  ax_lapack_size large = {0};
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  memcpy(&large, &asked, sizeof asked);
  assert_int_equal(ax_lapack_asked(AX_F64, &exact), 100);
  assert_int_equal(ax_lapack_asked(AX_C128, &exact), 100);
  assert_true(ax_lapack_asked(AX_F32, &large) > 16777216 && ax_lapack_asked(AX_C64, &large) > 16777216);
  assert_int_equal(ax_leading(0), 1);
  assert_int_equal(ax_leading(5), 5);
  assert_ptr_equal(ax_work_behind(&call, x, 3), x + 3);
  assert_true(ax_matrix_finite(&call, x, 8));
  x[7] = INFINITY;
  assert_true(ax_matrix_finite(&call, x, 7));
  assert_false(ax_matrix_finite(&call, x, 8));
  ax_matrix_unit(&call, x, 2, 3);
  assert_memory_equal(x, ((float[]){1, 0, 0, 0, 1, 0}), 6 * sizeof(float));
  ax_matrix_nan(AX_F32, x, 2);
  assert_true(isnan(x[0]) && isnan(x[1]) && x[2] == 0);
}

/* --- In programs --- */

static AX_BODY(pieces) { /* x f64[2,3], v f64[2], order s32[3] */
  const ax_value x = in[0], v = in[1], square = ax_matrix_part(x, 0, 2, 0, 2);
  out[0] = ax_matrix_lower(x, 0);
  out[1] = ax_matrix_upper(x, 1);
  out[2] = ax_matrix_diagonal(x, 2, 5, 7);
  out[3] = ax_vector_to_diagonal(v);
  out[4] = ax_diagonal_to_vector(square);
  out[5] = ax_matrix_padded(square, 3, 2);
  out[6] = ax_matrix_beside(square, ax_expand_dims(v, -1));
  out[7] = ax_matrix_above(square, ax_expand_dims(v, 0));
  out[8] = ax_matrix_columns(x, in[2]);
  out[9] = ax_matrix_part(x, 1, 1, 1, 2);
  out[10] = square;
  (void)ax_matrix_symmetrized("test", &out[10]);
  out[11] = ax_matrix_eye(x, 2, 3);
}

static void pieces_of_matrices(void **state) {
  (void)state;
  static const double expected[12][6] = {{1, 0, 0, 4, 5, 0}, {0, 2, 3, 0, 0, 6}, {5, 7, 7, 5},       {8, 0, 0, 9},       {1, 5},
                                         {1, 2, 4, 5, 0, 0}, {1, 2, 8, 4, 5, 9}, {1, 2, 4, 5, 8, 9}, {3, 1, 2, 6, 4, 5}, {5, 6},
                                         {1, 3, 3, 5},       {1, 0, 0, 0, 1, 0}};
  const ax_type types[] = {TEST_TYPE(AX_F64, 2, 3), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_S32, 3)};
  ax_tensor *in[] = {test_tensor(types[0], (double[]){1, 2, 3, 4, 5, 6}), test_tensor(types[1], (double[]){8, 9}),
                     test_tensor(types[2], (double[]){2, 0, 1})};
  ax_tensor *out[12];
  ax_program *program = test_trace(pieces, NULL, types, 3, 12);
  test_run(program, in, out);
  for (uint32_t k = 0; k < 12; k++)
    for (int64_t i = 0; i < test_elems(out[k]); i++)
      if (test_get(out[k], i) != expected[k][i]) fail_msg("piece %u, element %d: %g", k, (int)i, test_get(out[k], i));
  test_release(out, 12);
  test_release(in, 3);
  ax_program_release(program);
}

/* The product of the reflectors of geqrf's form is q, and so is what their derivative is taken of: 1 - v t v^T. */
static AX_BODY(reflected) { /* x f64[4,3] -> q, and the same by v and t */
  ax_value factors[2];
  ax_geqrf(in[0], factors);
  const ax_reflectors r = ax_reflectors_of(factors[0], factors[1], ax_zero, ax_zero);
  out[0] = ax_householder_product(factors[0], factors[1]);
  out[1] = ax_sub(ax_matrix_eye(in[0], 4, 3), ax_matrix_part(ax_matmul(ax_matmul(r.v, r.t), ax_matrix_transpose(r.v)), 0, 4, 0, 3));
  out[2] = ax_reflectors_tangent(&r, in[0], true, false); /* of nothing */
}

static void reflectors(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 4, 3);
  test_random random = {.state = 3};
  ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1)}, *out[3];
  ax_program *program = test_trace(reflected, NULL, &type, 1, 3);
  test_run(program, in, out);
  TEST_TENSORS_NEAR(out[0], out[1], 1e-14);
  for (int64_t i = 0; i < 12; i++) assert_true(test_get(out[2], i) == 0);
  test_release(out, 3);
  test_release(in, 1);
  ax_program_release(program);
}

/* Reflectors that turn a product by a skew matrix: the tangent of their product, from theirs, is the product times it. */
static AX_BODY(turned_reflectors) { /* x, o c128[5,5] -> how far off */
  ax_value factors[2], form, taus;
  (void)context;
  ax_geqrf(in[0], factors);
  const ax_value skew = ax_sub(in[1], ax_matrix_adjoint(in[1])), eye = ax_matrix_eye(in[0], 5, 5);
  ax_reflectors_turned(factors[0], factors[1], skew, &form, &taus);
  const ax_reflectors r = ax_reflectors_of(factors[0], factors[1], form, taus);
  const ax_value q = ax_householder_product(factors[0], factors[1]);
  out[0] = ax_reduce_max(ax_abs(ax_sub(ax_reflectors_tangent(&r, eye, true, false), ax_matmul(q, skew))), AX_ALL_DIMS, false);
}

/* The tangents of h, of which the form has a part, and of the reflectors, whose product stays unitary. */
static AX_BODY(hessenberg_parts) { /* x, dx c128[5,5] -> how far dh is from that of q^H x q, and q^H dq from skew */
  ax_value f[2];
  (void)context;
  ax_hessenberg(in[0], f);
  const ax_hessenberg_tangents t = ax_hessenberg_tangents_of(ax_matrix_upper(f[0], -1), f[0], f[1], in[1]);
  const ax_reflectors r = ax_reflectors_of(ax_matrix_part(f[0], 1, 4, 0, 4), f[1], ax_matrix_part(t.form, 1, 4, 0, 4), t.taus);
  const ax_value inner = ax_householder_product(ax_matrix_part(f[0], 1, 4, 0, 4), f[1]), eye = ax_matrix_eye(in[0], 4, 4);
  const ax_value dq = ax_matrix_within(ax_reflectors_tangent(&r, eye, true, false), 1, 1, 5);
  const ax_value q = ax_add(ax_matrix_within(inner, 1, 1, 5), ax_matrix_padded(ax_matrix_eye(in[0], 1, 1), 5, 5));
  const ax_value qh = ax_matrix_adjoint(q), half = ax_matmul(ax_matrix_adjoint(dq), ax_matmul(in[0], q));
  const ax_value other = ax_matmul(qh, ax_add(ax_matmul(in[1], q), ax_matmul(in[0], dq)));
  out[0] = ax_reduce_max(ax_abs(ax_sub(t.h, ax_add(half, other))), AX_ALL_DIMS, false);
  const ax_value turn = ax_matmul(qh, dq);
  out[1] = ax_reduce_max(ax_abs(ax_add(turn, ax_matrix_adjoint(turn))), AX_ALL_DIMS, false);
}

static void tangents_of_reflectors(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_C128, 5, 5), types[] = {type, type};
  test_random random = {.state = 8};
  ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1), test_random_tensor(&random, type, -1, 1)}, *out[3];
  ax_program *programs[] = {test_trace(turned_reflectors, NULL, types, 2, 1), test_trace(hessenberg_parts, NULL, types, 2, 2)};
  test_run(programs[0], in, out);
  test_run(programs[1], in, out + 1);
  for (uint32_t k = 0; k < 3; k++)
    if (!(test_get(out[k], 0) < 1e-12)) fail_msg("residual %u: %g", k, test_get(out[k], 0));
  test_release(out, 3);
  test_release(in, 2);
  for (uint32_t k = 0; k < 2; k++) ax_program_release(programs[k]);
}

/* --- Large matrices: what the factors give, less the matrix, and q^T q less 1 --- */

enum { ORDER = 70, COLUMNS = 40 };

static ax_value turned(ax_value x) { return ax_matrix_transpose(x); }
static ax_value off(ax_value x, ax_value y) { return ax_reduce_max(ax_abs(ax_sub(x, y)), AX_ALL_DIMS, false); }
static ax_value skewed(ax_value q) { return off(ax_matmul(turned(q), q), ax_matrix_eye(q, COLUMNS, COLUMNS)); }

static AX_BODY(large) { /* tall f64[70,40], square f64[40,40] */
  const ax_value tall = in[0], x = in[1], symmetric = ax_add(x, turned(x));
  ax_value f[4]; /* as a user says it: more room than there are results */
  ax_qr(tall, false, false, f);
  out[0] = off(ax_matmul(f[0], f[1]), tall), out[1] = skewed(f[0]);
  ax_qr(tall, false, true, f);
  out[2] = off(ax_matmul(f[0], f[1]), ax_matrix_columns(tall, f[2])), out[3] = skewed(f[0]);
  ax_svd(tall, false, true, f);
  out[4] = off(ax_matmul(ax_mul(f[0], f[1]), f[2]), tall), out[5] = skewed(turned(f[2]));
  ax_eigh(symmetric, true, true, f);
  out[6] = off(ax_matmul(symmetric, f[0]), ax_mul(f[0], f[1])), out[7] = skewed(f[0]);
  ax_schur(x, true, f);
  out[8] = off(ax_matmul(ax_matmul(f[1], f[0]), turned(f[1])), x), out[9] = skewed(f[1]);
  ax_lu(ax_stop_gradient(x), f);
  out[10] = off(ax_matmul(x, ax_linear_solve(x, f[0], f[1], turned(tall), false)), turned(tall));
  out[11] = off(ax_matmul(turned(x), ax_linear_solve(x, f[0], f[1], turned(tall), true)), turned(tall));
}

/* The same of complex numbers; eigenvalues of any matrices, by both kinds of vectors. */
static ax_value skewed_unit(ax_value q) { return off(ax_matmul(ax_matrix_adjoint(q), q), ax_matrix_eye(q, COLUMNS, COLUMNS)); }

static AX_BODY(large_complex) { /* tall c128[70,40], square c128[40,40] */
  const ax_value tall = in[0], x = in[1], hermitian = ax_add(x, ax_matrix_adjoint(x));
  ax_value f[4];
  ax_qr(tall, false, false, f);
  out[0] = off(ax_matmul(f[0], f[1]), tall), out[1] = skewed_unit(f[0]);
  out[2] = off(ax_householder_product(tall, ax_full(AX_C128, AX_DIMS(0), 0)), ax_matrix_eye(tall, ORDER, COLUMNS));
  ax_qr(tall, false, true, f);
  out[3] = off(ax_matmul(f[0], f[1]), ax_matrix_columns(tall, f[2])), out[4] = skewed_unit(f[0]);
  ax_svd(tall, true, true, f);
  const ax_value first = ax_matrix_part(f[0], 0, ORDER, 0, COLUMNS);
  out[5] = off(ax_matmul(ax_mul(first, ax_matrix_as(f[1], x)), f[2]), tall), out[6] = skewed_unit(ax_matrix_adjoint(f[2]));
  ax_svd(tall, false, false, &f[2]);
  out[7] = off(f[2], f[1]);
  ax_eigh(hermitian, false, false, f);
  out[8] = off(ax_matmul(hermitian, f[0]), ax_mul(f[0], ax_matrix_as(f[1], x))), out[9] = skewed_unit(f[0]);
  ax_schur(x, true, f);
  out[10] = off(ax_matmul(ax_matmul(f[1], f[0]), ax_matrix_adjoint(f[1])), x), out[11] = skewed_unit(f[1]);
  ax_eig(x, true, true, f);
  out[12] = off(ax_matmul(x, f[2]), ax_mul(f[2], f[0]));
  out[13] = off(ax_matmul(ax_matrix_adjoint(x), f[1]), ax_mul(f[1], ax_conj(f[0])));
  ax_eig(ax_real_part(x), true, true, f);
  const ax_value real = ax_matrix_as(ax_real_part(x), x);
  out[14] = off(ax_matmul(real, f[2]), ax_mul(f[2], f[0]));
  out[15] = off(ax_matmul(ax_matrix_adjoint(real), f[1]), ax_mul(f[1], ax_conj(f[0])));
  ax_geqrf(tall, f);
  const ax_value made = ax_ormqr(f[0], f[1], tall, true, true); /* r above zeros */
  out[16] = off(made, ax_matrix_padded(ax_matrix_part(ax_matrix_upper(f[0], 0), 0, COLUMNS, 0, COLUMNS), ORDER, COLUMNS));
  out[17] = off(ax_ormqr(f[0], f[1], ax_matrix_adjoint(made), false, true), ax_matrix_adjoint(tall));
}

static void large_complex_matrices(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_C128, ORDER, COLUMNS), TEST_TYPE(AX_C128, COLUMNS, COLUMNS)};
  test_random random = {.state = 12};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *out[18];
  ax_program *program = test_trace(large_complex, NULL, types, 2, 18);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, out);
  for (uint32_t k = 0; k < 18; k++)
    if (!(test_get(out[k], 0) < 2e-13)) fail_msg("residual %u: %g", k, test_get(out[k], 0));
  ax_runtime_release(runtime);
  test_release(out, 18);
  test_release(in, 2);
  ax_program_release(program);
}

static void large_matrices(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, ORDER, COLUMNS), TEST_TYPE(AX_F64, COLUMNS, COLUMNS)};
  test_random random = {.state = 11};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *out[12];
  ax_program *program = test_trace(large, NULL, types, 2, 12);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, out);
  for (uint32_t k = 0; k < 12; k++)
    if (!(test_get(out[k], 0) < (k < 10 ? 1e-13 : 1e-11))) fail_msg("residual %u: %g", k, test_get(out[k], 0));
  ax_runtime_release(runtime);
  test_release(out, 12);
  test_release(in, 2);
  ax_program_release(program);
}

/* --- Tangents of Schur's form: what defines them, of matrices of every small size ---

   Signs and phases of LAPACK's vectors jump, so differences of results say little where matrices are larger. */

static AX_BODY(schur) { /* x -> t, q */
  (void)context;
  ax_schur(in[0], true, AX_LIST(2, out));
}

/* Elements of t's tangent that would change its form: below its blocks, and differences along the diagonals of blocks. */
static ax_value out_of_form(ax_value t, ax_value dt, int64_t n) {
  const ax_value below = ax_eq(ax_matrix_lower(t, -1), ax_integer(0));
  const ax_value lowest = ax_where(below, ax_matrix_lower(dt, -1), ax_integer(0));
  if (n == 1) return lowest;
  const ax_value next = ax_ne(ax_diagonal_to_vector(ax_matrix_part(t, 1, n - 1, 0, n - 1)), ax_integer(0));
  const ax_value d = ax_diagonal_to_vector(dt);
  const ax_value apart = ax_sub(ax_slice_in_dim(d, 1, n, 1, -1), ax_slice_in_dim(d, 0, n - 1, 1, -1));
  const ax_value uneven = ax_vector_to_diagonal(ax_where(next, apart, ax_integer(0)));
  return ax_add(lowest, ax_matrix_within(uneven, 0, 0, n));
}

static AX_BODY(schur_tangents) { /* x, dx T[3,n,n] -> how far tangents are from x = q t q^H, q^H q = 1, and t's form */
  ax_value f[2], df[2];
  (void)context;
  ax_jvp(AX_FN(schur, 1, 2), AX_ALL_ARGS, AX_LIST(1, &in[0]), AX_LIST(1, &in[1]), AX_LIST(2, f), AX_LIST(2, df));
  const ax_type type = ax_typeof(in[0]);
  const ax_value qh = ax_matrix_adjoint(f[1]), dqh = ax_matrix_adjoint(df[1]), qt = ax_matmul(f[1], f[0]);
  const ax_value by_q = ax_add(ax_matmul(ax_matmul(df[1], f[0]), qh), ax_matmul(qt, dqh));
  out[0] = off(ax_add(by_q, ax_matmul(ax_matmul(f[1], df[0]), qh)), in[1]);
  out[1] = off(ax_matmul(qh, df[1]), ax_neg(ax_matmul(dqh, f[1])));
  out[2] = off(out_of_form(f[0], df[0], type.dims[2]), ax_integer(0));
}

static void tangents_of_schur(void **state) {
  (void)state;
  test_random random = {.state = 21};
  for (int64_t n = 1; n <= 17; n += n < 8 ? 1 : 3)
    for (int k = 0; k < 2; k++) {
      const ax_type type = TEST_TYPE(k == 0 ? AX_F64 : AX_C128, 3, n, n), types[] = {type, type};
      ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1), test_random_tensor(&random, type, -1, 1)}, *out[3];
      ax_program *program = test_trace(schur_tangents, NULL, types, 2, 3);
      test_run(program, in, out);
      for (uint32_t i = 0; i < 3; i++)
        if (!(test_get(out[i], 0) < 1e-9)) fail_msg("%d by %d, residual %u: %g", (int)n, (int)n, i, test_get(out[i], 0));
      test_release(out, 3);
      test_release(in, 2);
      ax_program_release(program);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(turned_in_tiles), cmocka_unit_test(workspace),
                                     cmocka_unit_test(pieces_of_matrices), cmocka_unit_test(reflectors),
                                     cmocka_unit_test(large_matrices), cmocka_unit_test(large_complex_matrices),
                                     cmocka_unit_test(tangents_of_schur), cmocka_unit_test(tangents_of_reflectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
