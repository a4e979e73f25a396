/* Small matrices in our own code: side by side, in registers of each width, they have the bits that each has alone, whatever they hold; and what
   is made is what it should be, for numbers of any size. */
#include "linalg/small.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/linalg.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

/* --- Bits --- */

enum { operands = 5, line = 64, most = AX_SMALL_ORDER * AX_SMALL_ORDER, at_once = 16 };

typedef struct layout { /* of a routine's operands and results */
  uint32_t count, in_count, numbers[operands];
  int64_t elems[operands];
} layout;

static const struct {
  ax_small which;
  uint32_t in_count, count;
} shapes[] = {{AX_SMALL_LU, 1, 3}, {AX_SMALL_CHOLESKY, 1, 2}, {AX_SMALL_TRIANGULAR_SOLVE, 2, 3},
              {AX_SMALL_LINEAR_SOLVE, 4, 5}, {AX_SMALL_GEQRF, 1, 3}, {AX_SMALL_HOUSEHOLDER_PRODUCT, 2, 3}, {AX_SMALL_QR, 1, 3}};

/* elems[k] < 0: pivots. */
static void list_elems(const ax_matrix_call *c, ax_small which, int64_t *elems) {
  const int64_t whole = c->m * c->n, k = ax_least(c->m, c->n), order = c->left ? c->m : c->n;
  const int64_t lists[AX_SMALL_COUNT][operands] = {{whole, whole, -k},
                                                   {c->n * c->n, c->n * c->n},
                                                   {order * order, whole, whole},
                                                   {c->m * c->m, c->m * c->m, -c->m, whole, whole},
                                                   {whole, whole, k},
                                                   {whole, c->k, whole},
                                                   {whole, c->m * c->columns, c->columns * c->n}};
  memcpy(elems, lists[which], sizeof lists[which]);
}

/* Numbers of very different sizes, some of them strange. */
static double number(test_random *random, ax_dtype dtype, bool strange) {
  const bool single = ax_part_dtype(dtype) == AX_F32;
  const double range = single ? 38 : 300, x = test_random_uniform(random, -2, 2);
  if (!strange) return x;
  switch (test_random_below(random, 12)) {
    case 0: return 0;
    case 1: return -0.0;
    case 2: return INFINITY;
    case 3: return NAN;
    case 4: return x * pow(10, test_random_uniform(random, -range, range));
    case 5: return single ? (double)FLT_MIN / 8 : DBL_MIN / 8;
    default: return x;
  }
}

static size_t bytes_of(ax_dtype dtype, int64_t elems) { return elems < 0 ? sizeof(int32_t) : ax_dtype_bytes(dtype); }

static void fill(test_random *random, const ax_matrix_call *call, int64_t elems, bool strange, char *to) {
  for (int64_t i = 0; i < llabs(elems); i++)
    if (elems < 0) ((int32_t *)to)[i] = (int32_t)test_random_below(random, call->m + 4) - 2; /* some are no rows */
    else ax_number_store(call->dtype, to, i, (ax_number){.f = number(random, call->dtype, strange), .imag = number(random, call->dtype, strange)});
}

/* NaN are equal. Of parts. */
static bool same(ax_dtype dtype, const void *x, const void *y) {
  return memcmp(x, y, ax_dtype_bytes(dtype)) == 0 || (isnan(ax_number_load(dtype, x, 0).f) && isnan(ax_number_load(dtype, y, 0).f));
}

static int64_t parts_of(ax_dtype dtype) { return ax_is_complex(dtype) ? 2 : 1; }

typedef struct memory { /* of the matrices, one after the other, and side by side */
  _Alignas(line) char alone[operands][at_once * most * 8 * 2], beside[operands][at_once * most * 8 * 2];
} memory;

static void move(memory *m, uint32_t k, int64_t elems, size_t bytes, int64_t lanes) {
  for (int64_t e = 0; e < elems; e++)
    for (int64_t l = 0; l < lanes; l++)
      memcpy(m->beside[k] + (size_t)(e * lanes + l) * bytes, m->alone[k] + (size_t)(l * elems + e) * bytes, bytes);
}

static void one_routine(test_random *random, memory *m, ax_matrix_call call, size_t at, uint32_t bytes) {
  const ax_small which = shapes[at].which;
  ax_matrix_routine routine = {.call = call};
  const ax_dtype part = ax_part_dtype(call.dtype);
  const int64_t lanes = line / (int64_t)ax_dtype_bytes(part), parts = parts_of(call.dtype);
  const bool strange = test_random_below(random, 2) == 1;
  int64_t elems[operands];
  void *beside[operands];
  ax_small_code(&routine, which);
  assert_true(routine.code != NULL && (routine.lanes != NULL || ax_is_complex(call.dtype)));
  ax_matrix_code *const widest = routine.code; /* whose bits all have */
  if (!ax_small_by(&routine, which, bytes)) return; /* no such registers */
  list_elems(&call, which, elems);
  for (uint32_t k = 0; k < shapes[at].in_count; k++) {
    const size_t size = bytes_of(call.dtype, elems[k]);
    for (int64_t l = 0; l < lanes; l++) fill(random, &call, elems[k], strange, m->alone[k] + (size_t)(l * llabs(elems[k])) * size);
    move(m, k, elems[k] < 0 ? -elems[k] : parts * elems[k], elems[k] < 0 ? size : ax_dtype_bytes(part), lanes);
  }
  for (uint32_t k = 0; k < shapes[at].count; k++)
    beside[k] = k == shapes[at].in_count && routine.overwritten != AX_NONE ? m->beside[routine.overwritten] : m->beside[k];
  routine.lanes(&call, beside, NULL);
  for (int64_t l = 0; l < lanes; l++) {
    void *alone[operands];
    for (uint32_t k = 0; k < shapes[at].count; k++) alone[k] = m->alone[k] + (size_t)(l * llabs(elems[k])) * bytes_of(call.dtype, elems[k]);
    (l % 2 == 0 ? routine.code : widest)(&call, alone, NULL);
    for (uint32_t k = shapes[at].in_count; k < shapes[at].count; k++)
      for (int64_t e = 0; e < (elems[k] < 0 ? -elems[k] : parts * elems[k]); e++) {
        const size_t size = bytes_of(part, elems[k]);
        const char *one = (const char *)alone[k] + (size_t)e * size, *other = (const char *)beside[k] + (size_t)(e * lanes + l) * size;
        if (elems[k] < 0 ? memcmp(one, other, size) == 0 : same(part, one, other)) continue;
        fail_msg("routine %d of %s, %d by %d, registers of %u bytes: part %d of result %u of matrix %d differs", (int)which,
                 ax_dtype_name(call.dtype), (int)call.m, (int)call.n, bytes, (int)e, k, (int)l);
      }
  }
}

static ax_matrix_call call_of(test_random *random, ax_small which) {
  const bool large = test_random_below(random, 8) == 0;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128};
  ax_matrix_call c = {.dtype = dtypes[test_random_below(random, AX_COUNT(dtypes))],
                      .m = 1 + test_random_below(random, large ? AX_SMALL_ORDER : 9),
                      .n = 1 + test_random_below(random, large ? AX_SMALL_ORDER : 9)};
  c.left = test_random_below(random, 2) == 0, c.lower = test_random_below(random, 2) == 0, c.unit = test_random_below(random, 2) == 0;
  c.transposed = test_random_below(random, 2) == 0, c.conjugated = test_random_below(random, 2) == 0;
  if (which == AX_SMALL_CHOLESKY) c.m = c.n;
  if (which == AX_SMALL_HOUSEHOLDER_PRODUCT && c.m < c.n) c.m = c.n;
  c.k = which == AX_SMALL_HOUSEHOLDER_PRODUCT ? test_random_below(random, c.n + 1) : ax_least(c.m, c.n);
  c.columns = c.m > c.n && c.left ? c.m : c.k;
  return c;
}

static void side_by_side(void **state) {
  (void)state;
  enum { calls = 400 };
  test_random random = {31};
  memory *m = aligned_alloc(line, sizeof *m);
  assert_non_null(m);
  for (size_t at = 0; at < AX_COUNT(shapes); at++)
    for (int i = 0; i < calls; i++) {
      const ax_matrix_call call = call_of(&random, shapes[at].which);
      for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) one_routine(&random, m, call, at, bytes);
    }
  free(m);
}

/* Of one matrix the right sides stand side by side, or there is one: the bits are still those of many matrices. */
static void right_sides(void **state) {
  (void)state;
  static const int64_t sides[] = {1, 2, 3, 8, 16, 17};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128};
  enum { solve = 2, by_factors = 3 }; /* of `shapes` */
  test_random random = {77};
  memory *m = aligned_alloc(line, sizeof *m);
  assert_non_null(m);
  for (int64_t order = 1; order <= AX_SMALL_ORDER; order += order < 20 ? 1 : 11)
    for (size_t s = 0; s < AX_COUNT(sides); s++)
      for (size_t d = 0; d < AX_COUNT(dtypes); d++)
        for (int flags = 0; flags < 8; flags++) {
          const bool left = flags & 1;
          const ax_matrix_call call = {.dtype = dtypes[d],
                                       .m = left ? order : sides[s],
                                       .n = left ? sides[s] : order,
                                       .left = left,
                                       .lower = flags & 2,
                                       .transposed = flags & 4,
                                       .conjugated = test_random_below(&random, 2) == 0,
                                       .unit = test_random_below(&random, 3) == 0};
          for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) one_routine(&random, m, call, solve, bytes);
          if (left) one_routine(&random, m, call, by_factors, 64);
        }
  free(m);
}

/* --- In programs: what is made, and that it does not depend on how many there are --- */

static ax_value off(ax_value x, ax_value y) { return ax_reduce_max(ax_abs(ax_sub(x, y)), AX_ALL_DIMS, false); }

static AX_BODY(errors) { /* a, b -> how far off is what is made: systems with a, a^T and a^H; q, r; the factor of a a^H + 1, and its systems */
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[type.rank - 1];
  const bool complex = ax_is_complex(type.dtype);
  const ax_value a = in[0], b = in[1], eye = ax_matrix_eye(a, n, n), transposed = ax_matrix_transpose(a), adjoint = ax_matrix_adjoint(a);
  ax_value qr[2];
  out[0] = off(ax_matmul(a, ax_matrix_solve(a, b, false)), b);
  out[1] = off(ax_matmul(transposed, ax_matrix_solve(a, b, true)), b);
  ax_qr(a, false, false, AX_LIST(2, qr));
  out[2] = off(ax_matmul(qr[0], qr[1]), a);
  out[3] = off(ax_matmul(ax_matrix_adjoint(qr[0]), qr[0]), ax_add(eye, ax_mul(a, ax_full_like(a, 0))));
  const ax_value l = ax_cholesky(ax_add(ax_matmul(a, adjoint), eye), false);
  out[4] = off(ax_matmul(l, ax_matrix_adjoint(l)), ax_add(ax_matmul(a, adjoint), eye));
  out[5] = off(ax_matmul(ax_matrix_adjoint(l), ax_triangular_solve(l, b, true, true, true, complex, false)), b);
  const ax_value c = ax_matrix_transpose(b);
  out[6] = off(ax_matmul(ax_triangular_solve(l, c, false, true, false, false, false), l), c);
  out[7] = off(ax_matmul(ax_triangular_solve(l, c, false, true, true, false, false), ax_matrix_transpose(l)), c);
  out[8] = off(ax_matmul(ax_triangular_solve(l, c, false, true, true, complex, false), ax_matrix_adjoint(l)), c);
}

enum { results = 9 };

static void of_batch(ax_runtime *runtime, ax_dtype dtype, int64_t count, int64_t n) {
  test_random random = {(uint64_t)(count * 100 + n)};
  const ax_type types[] = {TEST_TYPE(dtype, count, n, n), TEST_TYPE(dtype, count, n, 3)};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *out[results];
  const double tolerance = ax_part_dtype(dtype) == AX_F32 ? 3e-5 : 1e-13;
  for (int64_t i = 0; i < test_elems(in[0]); i++) /* of a large diagonal, so that no system is hard */
    if (i % (n * n) % (n + 1) == 0) test_set(in[0], i, test_get(in[0], i) + (double)n);
  ax_program *program = test_trace(errors, NULL, types, 2, results);
  test_execute(runtime, program, in, out);
  for (int k = 0; k < results; k++)
    if (!(test_get(out[k], 0) <= tolerance * (double)(k == 4 ? n * n : n)))
      fail_msg("%d matrices of %s, %d by %d: result %d is off by %g", (int)count, ax_dtype_name(dtype), (int)n, (int)n, k, test_get(out[k], 0));
  test_release(out, results);
  test_release(in, 2);
  ax_program_release(program);
}

static ax_tensor *zeros(ax_type type) {
  ax_tensor *x;
  TEST_OK(ax_tensor_create(&type, &x));
  memset(x->data, 0, test_tensor_bytes(x));
  return x;
}

static void batches(void **state) {
  (void)state;
  static const int64_t counts[] = {1, 2, 4, 5, 15, 16, 17, 37};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t i = 0; i < AX_COUNT(counts); i++)
    for (int64_t n = 1; n <= 65; n += n < 6 ? 1 : 15) {
      of_batch(runtime, AX_F32, counts[i], n);
      of_batch(runtime, AX_F64, counts[i], n);
      of_batch(runtime, AX_C64, counts[i], n);
      of_batch(runtime, AX_C128, counts[i], n);
    }
  ax_runtime_release(runtime);
}

/* --- Sizes of numbers: squares of columns are neither too large nor too small --- */

static AX_BODY(columns) { /* x -> r of its factors */
  ax_value qr[2];
  ax_qr(in[0], false, false, AX_LIST(2, qr));
  out[0] = qr[1];
}

static void of_any_size(void **state) {
  (void)state;
  static const double sizes[] = {1e-37, 1e-36, 1e-33, 1e-30, 1e-20, 1, 1e20, 1e30, 6e37};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  const ax_type type = TEST_TYPE(AX_F32, AX_COUNT(sizes), 2, 1);
  ax_tensor *x = zeros(type), *r;
  for (int64_t i = 0; i < (int64_t)AX_COUNT(sizes); i++) test_set(x, 2 * i, 3 * sizes[i]), test_set(x, 2 * i + 1, -4 * sizes[i]);
  ax_program *program = test_trace(columns, NULL, &type, 1, 1);
  test_execute(runtime, program, &x, &r);
  for (int64_t i = 0; i < (int64_t)AX_COUNT(sizes); i++)
    if (fabs(test_get(r, i) + 5 * sizes[i]) > 4e-7 * 5 * sizes[i]) fail_msg("-5 * %g, not %g", sizes[i], test_get(r, i));
  ax_tensor_release(x);
  ax_tensor_release(r);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* A reflector is made wherever something stands below, however small; infinities leave no numbers. */
static void of_two_sizes(void **state) {
  (void)state;
  static const double pairs[][2] = {{1, 1e-37}, {1, 1e-23}, {1, 1e-10}, {-2, 1e-30}, {1, 0}, {-3, -0.0}, {0, 2}, {INFINITY, 1}, {0, 0}};
  static const double expected[] = {-1, -1, -1, 2, 1, -3, -2, NAN, 0};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  const ax_type type = TEST_TYPE(AX_F32, AX_COUNT(pairs), 2, 1);
  ax_tensor *x = zeros(type), *r;
  for (int64_t i = 0; i < test_elems(x); i++) test_set(x, i, pairs[i / 2][i % 2]);
  ax_program *program = test_trace(columns, NULL, &type, 1, 1);
  test_execute(runtime, program, &x, &r);
  for (int64_t i = 0; i < (int64_t)AX_COUNT(pairs); i++) {
    const bool wanted = isnan(expected[i]) ? !isfinite(test_get(r, i)) : test_get(r, i) == expected[i];
    if (!wanted) fail_msg("of %g and %g: %g", pairs[i][0], pairs[i][1], test_get(r, i));
  }
  ax_tensor_release(x);
  ax_tensor_release(r);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(side_by_side), cmocka_unit_test(right_sides),  cmocka_unit_test(batches),
      cmocka_unit_test(of_any_size),  cmocka_unit_test(of_two_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
