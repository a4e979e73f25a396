/* lu: x T[.., m, n] -> lu T[.., m, n], pivots s32[.., k]         k = min(m, n), T f32, f64 or complex
   With partial pivoting, of complex numbers by |real| + |imaginary|: x's rows, row i exchanged with row pivots[i], one after the
   other, are l u. l, m by k, stands below the diagonal of the first result, its own diagonal being ones; u, k by n, stands on and
   above it. A column without a nonzero pivot leaves a zero on u's diagonal.
   Errors: other dtypes; fewer than two dimensions.
   The tangent is l tril(g, -1) + triu(g) u with g = l^-1 p dx u^-1, p the permutation, l and u made square; pivots have none. Batched
   and cut along leading dimensions.
   Compiled: LAPACK's getrf, a matrix at a time. Real matrices of at most 64 rows and columns are done by our own code (small.h).
   Real matrices of 512 rows and columns or more are factored by halves of their columns,
   with triangular_solve and a product between, so that threads share them, and getrf of 64 columns at the end. */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/blocked.h"
#include "linalg/matrices.h"
#include "linalg/small.h"
#include "ops/pointwise.h"
#include "ops/sort.h"
#include "prim/expand.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[1] = ax_array_type(AX_S32, AX_LIST(x->rank - 1, x->dims));
  args->out[1].dims[x->rank - 2] = m < n ? m : n;
  return AX_OK;
}

/* --- eval --- */

typedef struct factors { /* one matrix's */
  const ax_tensor *lu;
  int64_t from, m, n;
  int32_t *pivots;
} factors;

static ax_number at(const factors *f, int64_t i, int64_t j) {
  return ax_number_load(f->lu->dtype, f->lu->data, f->from + i * f->n + j);
}
static void put(const factors *f, int64_t i, int64_t j, ax_number value) {
  ax_number_store(f->lu->dtype, f->lu->data, f->from + i * f->n + j, value);
}
static ax_number of_two(const factors *f, ax_scalar op, ax_number a, ax_number b) {
  return ax_scalar_eval(op, ax_widest_dtype(f->lu->dtype), (ax_number[]){a, b}, 0);
}
static double size_at(const factors *f, int64_t i, int64_t j) {
  const ax_number x = at(f, i, j);
  return fabs(x.f) + (ax_is_complex(f->lu->dtype) ? fabs(x.imag) : 0);
}

static void exchange_rows(const factors *f, int64_t i, int64_t with) {
  for (int64_t j = 0; j < f->n; j++) {
    const ax_number kept = at(f, i, j);
    put(f, i, j, at(f, with, j));
    put(f, with, j, kept);
  }
}

static void eliminate(const factors *f, int64_t k) {
  int64_t best = k;
  for (int64_t i = k + 1; i < f->m; i++)
    if (size_at(f, i, k) > size_at(f, best, k)) best = i;
  f->pivots[k] = (int32_t)best;
  if (best != k) exchange_rows(f, k, best);
  if (size_at(f, k, k) == 0) return;
  for (int64_t i = k + 1; i < f->m; i++) {
    put(f, i, k, of_two(f, AX_SCALAR_DIV, at(f, i, k), at(f, k, k)));
    for (int64_t j = k + 1; j < f->n; j++)
      put(f, i, j, of_two(f, AX_SCALAR_SUB, at(f, i, j), of_two(f, AX_SCALAR_MUL, at(f, i, k), at(f, k, j))));
  }
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0];
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = m < n ? m : n, count = ax_dims_elems(x->rank - 2, x->dims);
  ax_tensor_assign(args->out[0], x);
  for (int64_t b = 0; b < count; b++) {
    const factors f = {args->out[0], b * m * n, m, n, (int32_t *)args->out[1]->data + b * k};
    for (int64_t i = 0; i < k; i++) eliminate(&f, i);
  }
  return AX_OK;
}

/* --- Derivatives --- */

/* The first rows and columns of x, with zeros behind them up to `size` of each. */
static ax_value squared(ax_value x, int64_t rows, int64_t columns, int64_t size) {
  const ax_type type = ax_typeof(x);
  int64_t none[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  const ax_value part = ax_slice_in_dim(ax_slice_in_dim(x, 0, rows, 1, -2), 0, columns, 1, -1);
  high[type.rank - 2] = size - rows, high[type.rank - 1] = size - columns;
  return ax_pad(part, ax_integer(0), none, high, none);
}

/* u with ones on the diagonal of the rows that it lacks. */
static ax_value square_upper(ax_value lu, int64_t k, int64_t n) {
  const ax_value u = squared(ax_matrix_upper(lu, 0), k, n, n);
  if (k == n) return u;
  const int64_t low[] = {k, k}, none[] = {0, 0};
  return ax_add(u, ax_pad(ax_matrix_diagonal(lu, n - k, 1, 0), ax_integer(0), low, none, none));
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, args->eqn->params, args->in, 1, args->out, 2);
  args->tangent_out[0] = args->tangent_out[1] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed()) return;
  const ax_type type = ax_typeof(args->in[0]);
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], k = m < n ? m : n;
  if (ax_type_elems(&type) == 0) return;
  const ax_value l = ax_add(squared(ax_matrix_lower(args->out[0], -1), m, k, m), ax_matrix_diagonal(args->out[0], m, 1, 0));
  const ax_value u = square_upper(args->out[0], k, n);
  const ax_value rows = ax_lu_pivots_to_permutation(args->out[1], m);
  ax_dims along = {.count = type.rank};
  for (uint32_t d = 0; d < type.rank; d++) along.v[d] = d + 1 < type.rank ? d : 0;
  const ax_value places = ax_broadcast_in_dim(rows, AX_LIST(type.rank, type.dims), AX_LIST(type.rank - 1, along.v));
  const ax_value moved = ax_taken_in_order(args->tangent_in[0], places, type.rank - 2);
  const ax_value left = ax_triangular_solve(l, moved, true, true, false, false, true);
  const ax_value g = ax_triangular_solve(u, left, false, false, false, false, false);
  args->tangent_out[0] = ax_add(ax_matmul(l, ax_matrix_lower(g, -1)), ax_matmul(ax_matrix_upper(g, 0), u));
}

/* --- lower --- */

/* getrf takes columns, so the workspace has the matrix turned. */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int m = (int)call->m, n = (int)call->n;
  int32_t *pivots = matrix[2];
  int info = 0;
  ax_matrix_turn(work, matrix[0], call->m, call->n, call->dtype);
  call->lapack->getrf(&m, &n, work, &m, pivots, &info);
  ax_matrix_turn(matrix[1], work, call->n, call->m, call->dtype);
  for (int i = 0; i < (m < n ? m : n); i++) pivots[i]--;
}

static void in_blocks(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  (void)eqn;
  ax_blocked_lu(in[0], out);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *given = &lower->program->types[eqn->out];
  if (ax_is_blocked_lu(given->dtype, given->dims[given->rank - 2], given->dims[given->rank - 1]))
    return ax_lower_expanded_all(lower, eqn, in_blocks, in, out);
  for (uint32_t k = 0; k < 2; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  const ax_type *x = ax_lower_type(lower, in[0]);
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = m < n ? m : n;
  const double elems = (double)m * (double)n;
  ax_matrix_routine routine = {.name = "getrf",
                               .code = factor_one,
                               .call = {.dtype = x->dtype, .m = m, .n = n},
                               .batch_rank = x->rank - 2,
                               .work_bytes = m * n * (int64_t)ax_dtype_bytes(x->dtype),
                               .time = 100 + 3 * elems + elems * (double)k / ax_matrix_rate(x->dtype, 80)};
  AX_TRY(ax_lapack_of(x->dtype, &routine.call.lapack));
  ax_small_code(&routine, AX_SMALL_LU);
  return ax_lower_matrices(lower, &routine, in, 1, out, 2);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out], *x = &types[0];
  const ax_type info = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims)), results[] = {types[0], types[1], info};
  const int32_t one = 1;
  const uint32_t made = ax_hlo_lapack(hlo, "getrf", NULL, in, x, 1, results, 3);
  const uint32_t pivots[] = {made + 1, ax_hlo_splat(hlo, &types[1], &one)};
  out[0] = made;
  out[1] = ax_hlo_op(hlo, "stablehlo.subtract", pivots, 2, NULL, &types[1], 1);
  return AX_OK;
}

const ax_prim ax_prim_lu = {
    .name = "lu", .kind = AX_LOCAL, .in_count = 1, .out_count = 2,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_lu)(ax_value x, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("lu", 1, 1, out_count, 3, out)) return;
  ax_bind(&ax_prim_lu, NULL, &x, 1, out, 2);
  const ax_type type = ax_typeof(x);
  out[2] = ax_failed() ? ax_poison : ax_lu_pivots_to_permutation(out[1], type.dims[type.rank - 2]);
}
