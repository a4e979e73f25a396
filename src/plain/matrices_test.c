/* Matrices of many sizes, dtypes and kinds by the rules: what is put together from the parts is the matrix, vectors are at right angles, and
   what is unique is what Axle's own primitives give. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/matrices.h"
#include "plain/plain.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

/* Results of a body: `residuals` numbers that are small, then results that are unique. */
typedef struct subject {
  const char *name;
  ax_function body;
  uint32_t residuals, others;
  bool square; /* it takes square matrices alone */
  bool none;   /* where a number is not finite all results are NaN */
} subject;

static ax_value largest(ax_value x) { return ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false); }
static ax_value eye_like(ax_value x) {
  const ax_type type = ax_typeof(x);
  return ax_matrix_eye(x, type.dims[type.rank - 2], type.dims[type.rank - 1]);
}
/* How far columns are from right angles. */
static ax_value off_unit(ax_value q) {
  const ax_value g = ax_matmul(ax_matrix_adjoint(q), q);
  return largest(ax_sub(g, eye_like(g)));
}
static ax_value off(ax_value got, ax_value wanted) {
  const ax_value size = ax_add(largest(wanted), ax_real(1e-30));
  return ax_div(largest(ax_sub(got, wanted)), size);
}
static ax_value columns_of(ax_value x, ax_value order) {
  const ax_type type = ax_typeof(x);
  return ax_take_along_axis(x, ax_broadcast_to(ax_expand_dims(order, -2), AX_LIST(type.rank, type.dims)), -1, NULL);
}
static ax_value rows_of(ax_value x, ax_value order) { return ax_matrix_transpose(columns_of(ax_matrix_transpose(x), order)); }

static AX_BODY(lu) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], k = m < n ? m : n;
  ax_value f[3];
  (void)context;
  ax_lu(in[0], AX_LIST(3, f));
  const ax_value low = ax_matrix_lower(ax_matrix_part(f[0], 0, m, 0, k), -1), l = ax_add(low, eye_like(low));
  out[0] = off(ax_matmul(l, ax_matrix_upper(ax_matrix_part(f[0], 0, k, 0, n), 0)), rows_of(in[0], f[2]));
  out[1] = f[1];
}

static AX_BODY(solve) {
  ax_value f[3];
  (void)context;
  const ax_value a = ax_add(in[0], ax_mul(eye_like(in[0]), ax_real(40))), b = ax_matmul(a, in[0]), c = ax_matmul(ax_matrix_transpose(a), in[0]);
  ax_lu(a, AX_LIST(3, f));
  out[0] = off(ax_linear_solve(a, f[0], f[1], b, false), in[0]);
  out[1] = off(ax_linear_solve(a, f[0], f[1], c, true), in[0]);
}

static AX_BODY(qr) {
  ax_value f[2];
  const bool full = context != NULL;
  ax_qr(in[0], full, false, AX_LIST(2, f));
  out[0] = off(ax_matmul(f[0], f[1]), in[0]);
  out[1] = off_unit(f[0]);
}

static AX_BODY(full_qr) { qr(in, out, out); (void)context; }

static AX_BODY(pivoted_qr) {
  ax_value f[3];
  (void)context;
  ax_qr(in[0], false, true, AX_LIST(3, f));
  out[0] = off(ax_matmul(f[0], f[1]), columns_of(in[0], f[2]));
  out[1] = off_unit(f[0]);
}

static AX_BODY(eigh) {
  const ax_value x = ax_add(in[0], ax_matrix_adjoint(in[0]));
  ax_value f[2];
  (void)context;
  ax_eigh(x, true, false, AX_LIST(2, f));
  out[0] = off(ax_mul(f[0], ax_matrix_as(ax_expand_dims(f[1], -2), x)), ax_matmul(x, f[0]));
  out[1] = off_unit(f[0]);
  out[2] = f[1];
}

static ax_value put_together(const ax_value *f, ax_value x, int64_t k) {
  const ax_value u = ax_slice_in_dim(f[0], 0, k, 1, -1), vt = ax_slice_in_dim(f[2], 0, k, 1, -2);
  return ax_matmul(ax_mul(u, ax_matrix_as(ax_expand_dims(f[1], -2), x)), vt);
}

static AX_BODY(svd) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], k = m < n ? m : n;
  ax_value f[3];
  ax_svd(in[0], context != NULL, true, AX_LIST(3, f));
  out[0] = off(put_together(f, in[0], k), in[0]);
  out[1] = off_unit(f[0]), out[2] = off_unit(ax_matrix_adjoint(f[2]));
  out[3] = f[1];
}

static AX_BODY(full_svd) { svd(in, out, out); (void)context; }

/* q^H x q is what the form says. */
static AX_BODY(hessenberg) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[type.rank - 1];
  ax_value f[2];
  (void)context;
  ax_hessenberg(in[0], AX_LIST(2, f));
  ax_value q = eye_like(in[0]);
  if (n > 1) {
    const ax_value rest = ax_householder_product(ax_matrix_part(f[0], 1, n - 1, 0, n - 1), f[1]);
    q = ax_add(ax_matrix_within(rest, 1, 1, n), ax_matrix_padded(ax_matrix_eye(in[0], 1, 1), n, n));
  }
  out[0] = off(ax_matmul(ax_matmul(q, ax_matrix_upper(f[0], -1)), ax_matrix_adjoint(q)), in[0]);
  out[1] = off_unit(q);
}

static AX_BODY(tridiagonal) {
  ax_value f[4];
  const ax_value x = ax_add(in[0], ax_matrix_adjoint(in[0]));
  ax_tridiagonal(x, context == NULL, AX_LIST(4, f));
  out[0] = off(ax_reduce_sum(f[1], AX_ALL_DIMS, false), ax_matrix_reals(ax_reduce_sum(ax_diagonal_to_vector(x), AX_ALL_DIMS, false)));
  out[1] = f[1];
}

static AX_BODY(cholesky) {
  const ax_value x = ax_add(ax_matmul(in[0], ax_matrix_adjoint(in[0])), eye_like(in[0])), l = ax_cholesky(x, false);
  (void)context;
  out[0] = off(ax_matmul(l, ax_matrix_adjoint(l)), x);
  out[1] = l;
}

/* How much of a triangle stands where Schur's form has nothing; of a real one's blocks, which have a and a on the diagonal and
   elements of opposite signs beside it, also how many are others. */
static ax_value off_form(ax_value t) {
  const ax_type type = ax_typeof(t);
  const int64_t n = type.dims[type.rank - 1];
  const bool real = !ax_is_complex(type.dtype);
  ax_value sum = ax_reduce_sum(ax_abs(ax_matrix_lower(t, real ? -2 : -1)), AX_ALL_DIMS, false), part[4];
  if (!real || n == 1) return sum;
  for (int i = 0; i < 4; i++) part[i] = ax_diagonal_to_vector(ax_matrix_part(t, i / 2, n - 1, i % 2, n - 1));
  const ax_value block = ax_ne(part[2], ax_integer(0)), opposite = ax_lt(ax_mul(ax_sign(part[1]), ax_sign(part[2])), ax_integer(0));
  const ax_value other = ax_and(block, ax_or(ax_ne(part[0], part[3]), ax_not(opposite)));
  const ax_value touches = ax_and(ax_slice_in_dim(block, 1, n - 1, 1, -1), ax_slice_in_dim(block, 0, n - 2, 1, -1));
  sum = ax_add(sum, ax_reduce_sum(ax_convert_element_type(other, type.dtype), AX_ALL_DIMS, false));
  return n == 2 ? sum : ax_add(sum, ax_reduce_sum(ax_convert_element_type(touches, type.dtype), AX_ALL_DIMS, false));
}

static AX_BODY(schur) {
  ax_value f[2], alone;
  (void)context;
  ax_schur(in[0], true, AX_LIST(2, f));
  ax_schur(in[0], false, AX_LIST(1, &alone));
  out[0] = off(ax_matmul(ax_matmul(f[1], f[0]), ax_matrix_adjoint(f[1])), in[0]);
  out[1] = off_unit(f[1]);
  out[2] = ax_add(off_form(f[0]), off_form(alone));
}

/* Of length 1, the largest element real. */
static ax_value off_length(ax_value v) {
  const ax_value sizes = ax_abs(v), is_largest = ax_eq(sizes, ax_reduce_max(sizes, AX_DIMS(-2), true));
  const ax_value lengths = ax_reduce_sum(ax_square(sizes), AX_DIMS(-2), true);
  return ax_add(largest(ax_sub(lengths, ax_integer(1))), largest(ax_where(is_largest, ax_imag_part(v), ax_integer(0))));
}

/* Eigenvalues have no order: they are compared by one of their coordinates, turned a little. */
static AX_BODY(eig) {
  ax_value f[3];
  (void)context;
  ax_eig(in[0], true, true, AX_LIST(3, f));
  const ax_value w = f[0], x = ax_matrix_as(in[0], w), columns = ax_expand_dims(w, -2);
  out[0] = off(ax_mul(f[2], columns), ax_matmul(x, f[2]));
  out[1] = off(ax_mul(f[1], ax_conj(columns)), ax_matmul(ax_matrix_adjoint(x), f[1]));
  out[2] = ax_add(off_length(f[1]), off_length(f[2]));
  out[3] = ax_sort(ax_add(ax_mul(ax_real_part(w), ax_real(0.6)), ax_mul(ax_imag_part(w), ax_real(0.8))), -1);
}

static AX_BODY(eigenvalues) {
  ax_value w;
  (void)context;
  ax_eig(in[0], false, false, AX_LIST(1, &w));
  const ax_value sum = ax_reduce_sum(ax_diagonal_to_vector(in[0]), AX_DIMS(-1), false), got = ax_reduce_sum(w, AX_DIMS(-1), false);
  const ax_value apart = ax_sub(ax_matrix_reals(got), ax_matrix_reals(sum));
  out[0] = ax_div(largest(apart), ax_add(largest(in[0]), ax_real(1e-30)));
}

static const subject subjects[] = {
    {"lu", lu, 1, 1, false, false},
    {"linear_solve", solve, 2, 0, true, false},
    {"qr", qr, 2, 0, false, false},
    {"full qr", full_qr, 2, 0, false, false},
    {"pivoted qr", pivoted_qr, 2, 0, false, false},
    {"eigh", eigh, 2, 1, true, true},
    {"svd", svd, 3, 1, false, true},
    {"full svd", full_svd, 3, 1, false, true},
    {"hessenberg", hessenberg, 2, 0, true, false},
    {"tridiagonal", tridiagonal, 1, 1, true, false},
    {"cholesky", cholesky, 1, 1, true, false},
    {"schur", schur, 3, 0, true, true},
    {"eig", eig, 3, 1, true, true},
    {"eigenvalues", eigenvalues, 1, 0, true, true},
};

/* --- Matrices --- */

typedef enum kind { RANDOM, ZERO, UNIT, RANK_TWO, GRADED, KINDS } kind;

static ax_tensor *matrices(test_random *random, ax_type type, kind kind) {
  ax_tensor *x = test_random_tensor(random, type, -1, 1);
  const int64_t n = type.dims[type.rank - 1], m = type.dims[type.rank - 2], parts = ax_is_complex(type.dtype) ? 2 : 1;
  for (int64_t at = 0; at < test_elems(x); at++) {
    const int64_t element = at / parts, i = element / n % m, j = element % n;
    double value = test_get(x, at);
    if (kind == ZERO) value = 0;
    if (kind == UNIT) value = i == j && at % parts == 0;
    if (kind == RANK_TWO) value = at % parts == 0 ? (double)((i + 1) % 5) * (double)(j + 1) + (double)((i * 3) % 7) : 0;
    if (kind == GRADED) value *= pow(4, -(double)(i + j));
    test_set(x, at, value);
  }
  return x;
}

/* wanted: NULL where nothing is compared with Axle's own. */
static void run_both(const subject *s, ax_type type, ax_tensor *x, ax_tensor **got, ax_tensor **wanted) {
  ax_program *program = test_trace(s->body, NULL, &type, 1, s->residuals + s->others), *plain;
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
  TEST_OK(test_try(plain, &x, got));
  if (wanted != NULL) TEST_OK(test_try(program, &x, wanted));
  ax_program_release(program), ax_program_release(plain);
}

static void check(const subject *s, ax_type type, kind kind) {
  test_random random = {(uint64_t)type.dims[0] * 31 + (uint64_t)kind};
  ax_tensor *x = matrices(&random, type, kind), *got[4], *wanted[4] = {NULL};
  const uint32_t count = s->residuals + s->others;
  const int64_t n = type.dims[type.rank - 1], m = type.dims[type.rank - 2];
  const double tolerance = (ax_part_dtype(type.dtype) == AX_F32 ? 0x1p-23 : 0x1p-52) * 16 * (double)(m + n);
  run_both(s, type, x, got, kind == RANDOM && s->others > 0 ? wanted : NULL);
  for (uint32_t k = 0; k < s->residuals; k++)
    if (!(test_get(got[k], 0) <= tolerance))
      fail_msg("%s of %s, kind %d: residual %u is %g", s->name, ax_type_string(&type, NULL), (int)kind, k, test_get(got[k], 0));
  for (uint32_t k = s->residuals; k < count && kind == RANDOM; k++) {
    double size = 0;
    for (int64_t i = 0; i < test_elems(wanted[k]); i++) size = fmax(size, fabs(test_get(wanted[k], i)));
    for (int64_t i = 0; i < test_elems(wanted[k]); i++)
      if (!(fabs(test_get(got[k], i) - test_get(wanted[k], i)) <= tolerance * size))
        fail_msg("%s of %s: result %u is %g at %d, not %g", s->name, ax_type_string(&type, NULL), k, test_get(got[k], i), (int)i, test_get(wanted[k], i));
  }
  test_release(got, count), test_release(wanted, count), ax_tensor_release(x);
}

static void of_shapes(const subject *s, const int64_t (*shapes)[2], size_t count, kind kind, ax_dtype dtype) {
  for (size_t j = 0; j < count; j++)
    if (!s->square || shapes[j][0] == shapes[j][1]) check(s, TEST_TYPE(dtype, shapes[j][0], shapes[j][1]), kind);
}

/* Programs take some time to compile: each size in f64, one matrix and a batch in all. */
static void of_many_sizes(void **state) {
  static const ax_dtype dtypes[] = {AX_F64, AX_C64, AX_F32, AX_C128};
  static const int64_t shapes[][2] = {{1, 1}, {2, 2}, {7, 7}, {5, 3}, {3, 6}, {6, 1}}, one[][2] = {{8, 8}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(subjects); i++) {
    of_shapes(&subjects[i], shapes, AX_COUNT(shapes), RANDOM, AX_F64);
    for (size_t d = 0; d < AX_COUNT(dtypes); d++) of_shapes(&subjects[i], one, 1, RANDOM, dtypes[d]);
    check(&subjects[i], TEST_TYPE(AX_C128, 2, 3, 4, 4), RANDOM);
    check(&subjects[i], TEST_TYPE(AX_F32, 2, 5, 5), RANDOM);
  }
}

/* More columns than one block has. */
static void of_several_blocks(void **state) {
  static const int64_t shapes[][2] = {{100, 100}, {130, 70}, {70, 150}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(subjects); i++) of_shapes(&subjects[i], shapes, AX_COUNT(shapes), RANDOM, i % 2 == 0 ? AX_F64 : AX_C64);
}

/* eigh of so many rows that it goes by QR steps, alone and in a batch. */
static void eigh_by_steps(void **state) {
  static const subject s = {"eigh", eigh, 2, 1, true, true};
  (void)state;
  check(&s, TEST_TYPE(AX_F64, 256, 256), RANDOM);
  check(&s, TEST_TYPE(AX_C64, 2, 256, 256), RANK_TWO);
}

/* Without full rank, with equal eigenvalues, of numbers of many sizes. */
static void of_other_kinds(void **state) {
  static const int64_t shapes[][2] = {{7, 7}, {6, 4}, {4, 6}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(subjects); i++)
    for (kind kind = ZERO; kind < KINDS; kind++) of_shapes(&subjects[i], shapes, AX_COUNT(shapes), kind, i % 2 == 0 ? AX_F64 : AX_C64);
}

/* Where a number is not finite no result hides it, and loops end. */
static void not_finite(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(subjects); i++)
    for (int what = 0; what < 2; what++) {
      const ax_type type = TEST_TYPE(AX_F64, 5, 5);
      test_random random = {4};
      ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got[4];
      test_set(x, 12, what == 0 ? NAN : INFINITY);
      run_both(&subjects[i], type, x, got, NULL);
      for (uint32_t k = 0; k < subjects[i].residuals; k++)
        if (isfinite(test_get(got[k], 0)) && (k == 0 || subjects[i].none)) fail_msg("%s, %s: residual %u is %g", subjects[i].name, what == 0 ? "NaN" : "infinity", k, test_get(got[k], 0));
      test_release(got, subjects[i].residuals + subjects[i].others);
      ax_tensor_release(x);
    }
}

/* --- Numbers near the limits of f32 --- */

static AX_BODY(values) {
  ax_value f[3];
  (void)context;
  ax_eigh(in[0], true, false, AX_LIST(2, f));
  out[0] = f[1];
  ax_svd(in[0], false, true, AX_LIST(3, f));
  out[1] = f[1];
}

/* Sums and squares of the largest numbers are not finite, and roundings of the least are subnormal. */
static void large_and_small(void **state) {
  static const double sizes[] = {1e38, 1, 1e-37};
  const ax_type type = TEST_TYPE(AX_F32, 2, 2);
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    const double wanted = sqrt(10) * sizes[i], elements[] = {3, 1, 1, -3};
    ax_program *program = test_trace(values, NULL, &type, 1, 2), *plain;
    ax_tensor *x = test_tensor(type, NULL), *got[2];
    for (int64_t at = 0; at < 4; at++) test_set(x, at, elements[at] * sizes[i]);
    TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
    TEST_OK(test_try(plain, &x, got));
    for (int64_t at = 0; at < 2; at++) {
      assert_true(fabs(test_get(got[0], at) - (at == 0 ? -wanted : wanted)) <= 1e-6 * wanted);
      assert_true(fabs(test_get(got[1], at) - wanted) <= 1e-6 * wanted);
    }
    test_release(got, 2), ax_tensor_release(x);
    ax_program_release(program), ax_program_release(plain);
  }
}

static AX_BODY(angles) {
  const bool singular = context != NULL;
  ax_value f[3];
  if (singular) ax_svd(in[0], false, true, AX_LIST(3, f));
  else ax_eigh(in[0], true, false, AX_LIST(2, f));
  out[0] = off_unit(singular ? ax_matrix_adjoint(f[2]) : f[0]);
}

/* Where eigenvalues are equal, or columns nearly 0, what is to be turned away is noise: sweeps that went on would add theirs to the vectors. */
static void noise_ends_sweeps(void **state) {
  const int64_t n = 33;
  (void)state;
  for (int singular = 0; singular < 2; singular++) {
    const ax_type type = TEST_TYPE(AX_C64, 33, 33);
    test_random random = {3};
    ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got;
    for (int64_t at = 0; at < 2 * n * n; at++) {
      const int64_t i = at / 2 / n, j = at / 2 % n;
      const double noise = 1e-7 * test_get(x, at), one = i == j && at % 2 == 0;
      test_set(x, at, singular ? ldexp(test_get(x, at), (int)(96 - 6 * i)) : one + noise);
    }
    ax_program *program = test_trace(angles, singular ? (void *)&n : NULL, &type, 1, 1), *plain;
    TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
    TEST_OK(test_try(plain, &x, &got));
    if (!(test_get(got, 0) <= 40 * 0x1p-23)) fail_msg("%s: %g from right angles", singular ? "svd" : "eigh", test_get(got, 0));
    ax_tensor_release(x), ax_tensor_release(got);
    ax_program_release(program), ax_program_release(plain);
  }
}

static AX_BODY(order_of_columns) {
  ax_value f[3];
  (void)context;
  ax_qr(in[0], false, true, AX_LIST(3, f));
  out[0] = f[2];
}

/* Squares of numbers that are small beside 1, or beside those of another column, are 0 in f32. */
static void pivots_of_small_numbers(void **state) {
  const ax_type type = TEST_TYPE(AX_F32, 5, 5);
  ax_program *program = test_trace(order_of_columns, NULL, &type, 1, 1), *plain;
  (void)state;
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
  for (int graded = 0; graded < 2; graded++) {
    test_random random = {7};
    ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got, *wanted;
    for (int64_t at = 0; at < 25; at++) test_set(x, at, ldexp(test_get(x, at), graded ? (int)(at % 5) * 50 - 100 : -90));
    TEST_OK(test_try(plain, &x, &got));
    TEST_OK(test_try(program, &x, &wanted));
    for (int64_t at = 0; at < 5; at++) assert_true(test_get(got, at) == test_get(wanted, at));
    ax_tensor_release(x), ax_tensor_release(got), ax_tensor_release(wanted);
  }
  ax_program_release(program), ax_program_release(plain);
}

/* --- Matrices whose eigenvalues are hard to find, in one batch --- */

enum { SIDE = 7 };
typedef enum hard { JORDAN, CYCLE, COMPANION, SCALED, TURNS, BROKEN, HARD } hard;

/* One chain of equal values; a permutation, whose steps lead nowhere without other shifts; a polynomial with the zeros 1, 2 ..;
   rows and columns of sizes from 1 to 10^18; equal pairs of complex values, linked; and one that is not finite. */
static double hard_element(hard kind, int64_t i, int64_t j, double random) {
  static const double polynomial[SIDE] = {28, -322, 1960, -6769, 13132, -13068, 5040};
  switch (kind) {
    case JORDAN: return i == j ? 2 : j == i + 1;
    case CYCLE: return j == (i + 1) % SIDE;
    case COMPANION: return i == 0 ? polynomial[j] : i == j + 1;
    case SCALED: return random * pow(10, 3 * (double)(i - j));
    case TURNS: return i / 2 == j / 2 ? (i == j) + 2 * (double)(j - i) : j == i + 2;
    default: return i == 3 && j == 4 ? NAN : random;
  }
}

static ax_value largest_of_each(ax_value x) { return ax_reduce_max(ax_abs(x), AX_DIMS(-2, -1), false); }

static AX_BODY(each_alone) {
  ax_value f[2], e[3];
  (void)context;
  ax_schur(in[0], true, AX_LIST(2, f));
  ax_eig(in[0], true, true, AX_LIST(3, e));
  const ax_value w = ax_expand_dims(e[0], -2), x = ax_matrix_as(in[0], w), size = largest_of_each(in[0]), xh = ax_matrix_adjoint(x);
  out[0] = ax_div(largest_of_each(ax_sub(ax_matmul(ax_matmul(f[1], f[0]), ax_matrix_adjoint(f[1])), in[0])), size);
  out[1] = ax_div(largest_of_each(ax_sub(ax_mul(e[2], w), ax_matmul(x, e[2]))), size);
  out[2] = ax_div(largest_of_each(ax_sub(ax_mul(e[1], ax_conj(w)), ax_matmul(xh, e[1]))), size);
  out[3] = ax_reduce_sum(ax_square(ax_abs(e[2])), AX_DIMS(-2, -1), false);
}

static void hard_eigenvalues(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_C128};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type type = TEST_TYPE(dtypes[d], HARD, SIDE, SIDE);
    const int64_t parts = ax_is_complex(dtypes[d]) ? 2 : 1;
    const double tolerance = 64 * (ax_part_dtype(dtypes[d]) == AX_F32 ? 0x1p-23 : 0x1p-52);
    test_random random = {5};
    ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got[4];
    for (int64_t at = 0; at < test_elems(x); at++) {
      const int64_t element = at / parts;
      const hard kind = (hard)(element / (SIDE * SIDE));
      const double value = hard_element(kind, element / SIDE % SIDE, element % SIDE, test_get(x, at));
      test_set(x, at, at % parts == 0 || kind == SCALED ? value : 0);
    }
    ax_program *program = test_trace(each_alone, NULL, &type, 1, 4), *plain;
    TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
    TEST_OK(test_try(plain, &x, got));
    for (int k = 0; k < 4; k++)
      for (int64_t kind = 0; kind < HARD; kind++) {
        const double off = k < 3 ? test_get(got[k], kind) : test_get(got[k], kind) - SIDE;
        if (kind == BROKEN ? !isnan(off) : !(fabs(off) <= tolerance))
          fail_msg("%s, kind %d, result %d: %g", ax_type_string(&type, NULL), (int)kind, k, off);
      }
    test_release(got, 4), ax_tensor_release(x);
    ax_program_release(program), ax_program_release(plain);
  }
}

/* What each_alone gives of so many matrices of 3 x 3. */
static void run_each_alone(int count, const double (*elements)[9], ax_tensor **got) {
  const ax_type type = TEST_TYPE(AX_F32, count, 3, 3);
  ax_program *program = test_trace(each_alone, NULL, &type, 1, 4), *plain;
  ax_tensor *x = test_tensor(type, NULL);
  for (int at = 0; at < 9 * count; at++) test_set(x, at, elements[at / 9][at % 9]);
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
  TEST_OK(test_try(plain, &x, got));
  ax_tensor_release(x);
  ax_program_release(program), ax_program_release(plain);
}

/* Elements of many sizes make reflectors whose vectors are nearly unit vectors; as 1 they would end steps that lead on. */
static void small_reflectors(void **state) {
  static const double elements[][9] = {
      {6.5096681e-22, -4.7208725e-25, 1, -2.4947195e-29, -3.6468997e-22, 4.3455414e-26, -4.8997802e-30, 3.3553132e-23, -1.8472554e-25},
      {-1.6267421e-29, 7.1536874e-21, 0, -1.3708738e-34, -4.1487103e-09, -1, 4.9980314e-24, 6.6340274e-11, 0}};
  ax_tensor *got[4];
  (void)state;
  run_each_alone(2, elements, got);
  for (int at = 0; at < 2; at++) assert_true(test_get(got[0], at) <= 64 * 0x1p-23 && fabs(test_get(got[3], at) - 3) <= 64 * 0x1p-23);
  test_release(got, 4);
}

/* Elements of zeros above the diagonal, or of nothing but a few: scales that went on growing made the other vector (1, 0). */
static void vectors_of_triangles(void **state) {
  static const double elements[][9] = {{1, 0, 0, 1, 1e-9, 0, 0.5, 0.25, 1e-5}, {1e-9, 0, 1, 1, 1, 1, 0, 0, 1e-12}, {3, 1e-4, 0, 2, 4, 0, 1, 0, 1e-12}};
  ax_tensor *got[4];
  (void)state;
  run_each_alone(3, elements, got);
  for (int k = 0; k < 3; k++)
    for (int at = 0; at < 3; at++) assert_true(test_get(got[k], at) <= 16 * 0x1p-23);
  test_release(got, 4);
}

static AX_BODY(values_in_order) {
  ax_value w;
  (void)context;
  ax_eig(in[0], false, false, AX_LIST(1, &w));
  out[0] = ax_sort(ax_add(ax_mul(ax_real_part(w), ax_real(0.6)), ax_mul(ax_imag_part(w), ax_real(0.8))), -1);
}

/* The same matrix in other units has the same eigenvalues, to as many digits, though its elements are of sizes from 10^-12 to
   10^12. */
static void other_units(void **state) {
  const ax_type type = TEST_TYPE(AX_F64, SIDE, SIDE);
  test_random random = {9};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1), *got[2];
  ax_program *program = test_trace(values_in_order, NULL, &type, 1, 1), *plain;
  (void)state;
  TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
  for (int units = 0; units < 2; units++) {
    TEST_OK(test_try(plain, &x, &got[units]));
    for (int at = 0; at < SIDE * SIDE; at++) test_set(x, at, ldexp(test_get(x, at), 7 * (at % SIDE - at / SIDE)));
  }
  TEST_TENSORS_NEAR(got[1], got[0], 1e-13);
  test_release(got, 2), ax_tensor_release(x);
  ax_program_release(program), ax_program_release(plain);
}

/* --- Systems of three diagonals --- */

static AX_BODY(solve_tridiagonal) {
  (void)context;
  out[0] = ax_tridiagonal_solve(in[0], in[1], in[2], in[3]);
}

static void tridiagonal_systems(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (int64_t n = 1; n < 16; n = 3 * n + 2)
      for (int singular = 0; singular < 2; singular++) {
        const ax_type line = TEST_TYPE(dtypes[d], 3, n), types[] = {line, line, line, TEST_TYPE(dtypes[d], 3, n, 2)};
        test_random random = {(uint64_t)n};
        ax_tensor *in[4], *got, *wanted;
        for (int i = 0; i < 4; i++) in[i] = test_random_tensor(&random, types[i], -1, 1);
        if (singular) /* a first row of zeros in one of the three */
          for (int i = 1; i < 3; i++) test_set(in[i], 0, 0), test_set(in[i], 1, 0);
        ax_program *program = test_trace(solve_tridiagonal, NULL, types, 4, 1), *plain;
        TEST_OK(ax_plain_program(program, &(ax_plain_lacks){.lapack = true}, &plain));
        TEST_OK(test_try(plain, in, &got));
        TEST_OK(test_try(program, in, &wanted));
        TEST_TENSORS_NEAR(got, wanted, ax_part_dtype(dtypes[d]) == AX_F32 ? 1e-3 : 1e-11);
        test_release(in, 4), ax_tensor_release(got), ax_tensor_release(wanted);
        ax_program_release(program), ax_program_release(plain);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_many_sizes), cmocka_unit_test(of_several_blocks),
      cmocka_unit_test(eigh_by_steps), cmocka_unit_test(of_other_kinds),
                                     cmocka_unit_test(not_finite), cmocka_unit_test(large_and_small), cmocka_unit_test(noise_ends_sweeps),
                                     cmocka_unit_test(pivots_of_small_numbers), cmocka_unit_test(hard_eigenvalues),
                                     cmocka_unit_test(small_reflectors), cmocka_unit_test(vectors_of_triangles), cmocka_unit_test(other_units),
                                     cmocka_unit_test(tridiagonal_systems)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
