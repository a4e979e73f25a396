/* Functions of matrices at the edge of what there is, beside what they are in mathematics; and what is refused. Values beside JAX's:
   tests/vectors/linalg.c. */
#include <math.h>

#include "axle/axle.h"
#include "axle/linalg.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/tensor.h"

/* --- Exponentials: of a turn by x, and of x over and over on the diagonal beside ones --- */

static AX_BODY(turns) { /* x f64[] -> e^[[0, -x], [x, 0]] and its derivative */
  const ax_value none = ax_full(AX_F64, AX_DIMS(), 0), rows[] = {ax_stack(AX_VALUES(none, ax_neg(in[0])), 0),
                                                                 ax_stack(AX_VALUES(in[0], none), 0)};
  (void)context;
  out[0] = ax_expm(ax_stack(AX_LIST(2, rows), 0));
}
static AX_BODY(turns_faster) {
  const ax_value one = ax_full(AX_F64, AX_DIMS(), 1);
  (void)context;
  ax_jvp(AX_FN(turns, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, &one), AX_LIST(1, out), AX_LIST(1, out + 1));
}

static void exponentials(void **state) {
  (void)state;
  static const double angles[] = {0, 1e-9, 0.3, 5, 5.5, 10.7, 11, 50, 3000};
  const ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program = test_trace(turns_faster, NULL, &type, 1, 2);
  for (size_t i = 0; i < AX_COUNT(angles); i++) {
    const double x = angles[i], c = cos(x), s = sin(x), value[] = {c, -s, s, c}, derivative[] = {-s, -c, c, -s};
    ax_tensor *in = test_tensor(type, &x), *out[2];
    test_run(program, &in, out);
    for (int64_t k = 0; k < 4; k++) {
      TEST_NEAR(test_get(out[0], k), value[k], 2e-15 * (1 + x));
      TEST_NEAR(test_get(out[1], k), derivative[k], 2e-15 * (1 + x));
    }
    test_release(out, 2);
    ax_tensor_release(in);
  }
  ax_program_release(program);
}

/* --- Matrices that have no inverse, nothing in them, or determinants that need an order --- */

static AX_BODY(edges) { /* x f64[4,4], all ones */
  const ax_value x = in[0], none = ax_full(AX_F64, AX_DIMS(0, 0), 1), flat = ax_full(AX_F64, AX_DIMS(0, 3), 1);
  (void)context;
  out[0] = ax_det(x);
  out[1] = ax_convert_element_type(ax_matrix_rank(x, -1), AX_F64);
  out[2] = ax_det(none);
  out[3] = ax_reduce_sum(ax_expm(ax_mul(x, ax_integer(0))), AX_ALL_DIMS, false);
  out[4] = ax_convert_element_type(ax_matrix_rank(flat, -1), AX_F64);
  out[5] = ax_reduce_sum(ax_pinv(x, -1), AX_ALL_DIMS, false);
  out[6] = ax_vector_norm(none, INFINITY, AX_ALL_DIMS, false);
  out[7] = ax_matrix_norm(x, "2", false);
  out[8] = ax_reduce_sum(ax_pinv(flat, -1), AX_ALL_DIMS, false);
  out[9] = ax_det(ax_mul(x, ax_matrix_power(ax_diag(ax_arange(AX_F64, 1, 5, 1), 0), 2)));
  out[10] = ax_reduce_sum(ax_expm(none), AX_ALL_DIMS, false);
  out[11] = ax_matrix_norm(ax_full(AX_F64, AX_DIMS(3, 0), 1), "1", false);
  out[12] = ax_matrix_norm(flat, "inf", false);
  out[13] = ax_matrix_norm(flat, "2", false);
}

static void at_the_edges(void **state) {
  (void)state;
  static const double expected[] = {0, 1, 1, 4, 0, 1, 0, 4, 0, 576, 0, 0, 0, 0};
  const ax_type type = TEST_TYPE(AX_F64, 4, 4);
  ax_tensor *in = test_tensor(type, (double[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), *out[AX_COUNT(expected)];
  ax_program *program = test_trace(edges, NULL, &type, 1, AX_COUNT(expected));
  test_run(program, &in, out);
  for (size_t k = 0; k < AX_COUNT(expected); k++) TEST_NEAR(test_get(out[k], 0), expected[k], 1e-14);
  test_release(out, AX_COUNT(expected));
  ax_tensor_release(in);
  ax_program_release(program);
}

/* --- Second derivatives --- */

static AX_BODY(logarithm) { /* of the determinant of x x^T + 1, f64[3,3] */
  ax_value parts[2];
  (void)context;
  ax_slogdet(ax_add(ax_matmul(in[0], ax_matrix_transpose(in[0])), ax_eye(AX_F64, 3, 3, 0)), AX_LIST(2, parts));
  out[0] = parts[1];
}
static AX_BODY(by_factors) { /* the same by Cholesky's factor */
  const ax_value l = ax_cholesky(ax_add(ax_matmul(in[0], ax_matrix_transpose(in[0])), ax_eye(AX_F64, 3, 3, 0)), true);
  (void)context;
  out[0] = ax_mul(ax_reduce_sum(ax_log(ax_diagonal(l, 0, 0, 1)), AX_ALL_DIMS, false), ax_integer(2));
}
static AX_BODY(by_determinant) { /* of four rows, so that it is a factorisation's */
  const ax_value x = ax_pad(in[0], ax_integer(0), AX_DIMS(0, 0), AX_DIMS(1, 1), AX_DIMS(0, 0));
  (void)context;
  out[0] = ax_log(ax_det(ax_add(ax_matmul(x, ax_matrix_transpose(x)), ax_eye(AX_F64, 4, 4, 0))));
}
static AX_BODY(bends) {
  (void)context;
  ax_hessian(AX_FN(logarithm, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out));
  ax_hessian(AX_FN(by_factors, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out + 1));
  ax_hessian(AX_FN(by_determinant, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out + 2));
}

static void second_derivatives(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 3, 3);
  test_random random = {.state = 5};
  ax_tensor *in = test_random_tensor(&random, type, -1, 1), *out[3];
  ax_program *program = test_trace(bends, NULL, &type, 1, 3);
  test_run(program, &in, out);
  TEST_TENSORS_NEAR(out[0], out[1], 1e-13);
  TEST_TENSORS_NEAR(out[0], out[2], 1e-13);
  test_release(out, 3);
  ax_tensor_release(in);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exponentials), cmocka_unit_test(at_the_edges),
                                     cmocka_unit_test(second_derivatives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
