/* linear_solve: a T[.., n, n], lu T[.., n, n], pivots s32[.., n], b T[.., n, m] -> x T[.., n, m]         T f32, f64 or
                                                                                      complex
   a x = b, or a^T x = b, by the factors of a, which are those of lu. a itself says the derivatives.
   Parameters: transpose_a.
   Errors: other dtypes; an a that is not square; leading dimensions that differ; sizes that do not fit.
   Linear in b; transposed, the same with a's transpose. The tangent is the solution for db - da x; the factors have none of their
   own. Batched and cut along leading dimensions, and along the columns of b.
   Compiled: exchanges of rows, and BLAS's trsm or trsv twice, a matrix at a time, or some of many right sides; of matrices of at
   most 64 rows with at most 64 right sides our own code (small.h), of real ones of 512 rows or more, with 64 right sides or more,
   triangular_solve by blocks twice. */
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/blocked.h"
#include "linalg/matrices.h"
#include "linalg/small.h"
#include "linalg/triangular_solve.h"
#include "ops/sort.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef struct solve_params {
  bool transpose_a;
} solve_params;

static bool same_dims(const ax_type *x, const ax_type *y, uint32_t count) {
  return memcmp(x->dims, y->dims, count * sizeof x->dims[0]) == 0;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_type *a = &args->in[0], *lu = &args->in[1], *pivots = &args->in[2], *b = &args->in[3];
  for (uint32_t i = 0; i < 4; i++)
    if (i != 2) AX_TRY(ax_infer_matrix(args, i, 2));
  AX_TRY(ax_infer_square(a));
  if (pivots->dtype != AX_S32)
    return ax_error(AX_INVALID_ARGUMENT, "the pivots are of %s; they must be of s32", ax_dtype_name(pivots->dtype));
  if (a->rank != lu->rank || !same_dims(a, lu, a->rank) || pivots->rank != a->rank - 1 || !same_dims(a, pivots, a->rank - 1))
    return ax_error(AX_INVALID_ARGUMENT, "the factors are not those of the matrices: their shapes differ");
  if (a->rank != b->rank || !same_dims(a, b, a->rank - 2))
    return ax_error(AX_INVALID_ARGUMENT, "the operands need the same leading dimensions");
  if (b->dims[b->rank - 2] != a->dims[a->rank - 1])
    return ax_error(AX_INVALID_ARGUMENT, "the last operand has %lld rows, and the matrices %lld", (long long)b->dims[b->rank - 2],
                    (long long)a->dims[a->rank - 1]);
  args->out[0] = ax_array_type(b->dtype, AX_LIST(b->rank, b->dims));
  return AX_OK;
}

/* --- One matrix. Row by row, x l^T = b is what l x = b is column by column. --- */

static void exchange(const ax_matrix_call *call, char *x, const int32_t *pivots, int64_t row) {
  const size_t bytes = ax_dtype_bytes(call->dtype), next = (size_t)call->n * bytes, width = (size_t)(call->to - call->from) * bytes;
  const int64_t with = pivots[row] < 0 ? 0 : pivots[row] < call->m ? pivots[row] : call->m - 1;
  char kept[512], *a = x + (size_t)row * next, *b = x + (size_t)with * next;
  if (with == row) return;
  for (size_t at = 0; at < width; at += sizeof kept) {
    const size_t piece = width - at < sizeof kept ? width - at : sizeof kept;
    memcpy(kept, a + at, piece);
    memcpy(a + at, b + at, piece);
    memcpy(b + at, kept, piece);
  }
}

static void solve_triangle(const ax_matrix_call *call, const void *lu, char *x, bool lower) {
  ax_matrix_call triangle = *call;
  triangle.left = true, triangle.lower = triangle.unit = lower;
  ax_solve_by_blas(&triangle, lu, x);
}

/* matrix: a, lu, pivots, b; x */
static void solve_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int32_t *pivots = matrix[2];
  const size_t bytes = ax_dtype_bytes(call->dtype), row = (size_t)call->n * bytes, first = (size_t)call->from * bytes;
  const char *b = (const char *)matrix[3] + first;
  char *x = (char *)matrix[4] + first;
  (void)work;
  for (int64_t i = 0; i < call->m; i++) memcpy(x + (size_t)i * row, b + (size_t)i * row, (size_t)(call->to - call->from) * bytes);
  for (int64_t i = 0; i < call->m && !call->transposed; i++) exchange(call, x, pivots, i);
  solve_triangle(call, matrix[1], x, !call->transposed);
  solve_triangle(call, matrix[1], x, call->transposed);
  for (int64_t i = call->m - 1; i >= 0 && call->transposed; i--) exchange(call, x, pivots, i);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t m = out->dims[out->rank - 2], n = out->dims[out->rank - 1];
  routine->name = "getrs";
  routine->code = solve_one;
  routine->call.m = m, routine->call.n = n;
  routine->call.transposed = ((const solve_params *)params)->transpose_a;
  routine->right_sides = n;
  routine->time = 200 + (double)(m * n) + 2 * (double)(m * n) * (double)m / ax_matrix_rate(in->dtype, 40);
  ax_small_code(routine, AX_SMALL_LINEAR_SOLVE);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }

/* --- Derivatives --- */

static ax_value solve(const ax_eqn *eqn, const ax_value *factors, ax_value b) {
  return ax_bind1(eqn->prim, eqn->params, (ax_value[]){factors[0], factors[1], factors[2], b}, 4);
}

static void jvp(const ax_jvp_args *args) {
  const bool transposed = ((const solve_params *)args->eqn->params)->transpose_a;
  const ax_value x = args->out[0] = solve(args->eqn, args->in, args->in[3]);
  ax_value right = args->tangent_in[3];
  if (!ax_is_zero(args->tangent_in[0])) {
    const ax_value da = transposed ? ax_matrix_transpose(args->tangent_in[0]) : args->tangent_in[0];
    right = ax_add_any(right, ax_neg(ax_matmul(da, x)));
  }
  args->tangent_out[0] = ax_is_zero(right) ? ax_zero : solve(args->eqn, args->in, right);
}

static void transpose(const ax_transpose_args *args) {
  const solve_params p = {!((const solve_params *)args->eqn->params)->transpose_a};
  if (args->linear[0] || args->linear[1]) {
    ax_reject(args->eqn->prim, "it is not linear in the matrices");
    return;
  }
  if (ax_is_zero(args->cotangent[0])) return;
  args->out[3] = ax_bind1(args->eqn->prim, &p, (ax_value[]){args->in[0], args->in[1], args->in[2], args->cotangent[0]}, 4);
}

static void shard(const ax_shard_args *args) {
  const ax_type *b = &args->types[args->eqn->in[3]];
  const uint32_t columns = b->rank - 1, factor = ax_factor(args, b->dims[columns], AX_FACTOR_ALONG);
  ax_factor_of(&args->in[3], columns, factor);
  ax_factor_of(&args->out[0], columns, factor);
  ax_shard_batches(args);
}

/* --- hlo: two triangular systems --- */

ax_value ax_solve_by_factors(ax_value lu, ax_value pivots, ax_value b, bool transposed) {
  const ax_type type = ax_typeof(b);
  if (ax_failed()) return ax_poison;
  ax_value order = ax_lu_pivots_to_permutation(pivots, type.dims[type.rank - 2]), x = b;
  if (transposed) order = ax_argsort(order, -1);
  order = ax_broadcast_to(ax_expand_dims(order, -1), AX_LIST(type.rank, type.dims));
  if (!transposed) x = ax_taken_in_order(x, order, type.rank - 2);
  x = ax_triangular_solve(lu, x, true, !transposed, transposed, false, !transposed);
  x = ax_triangular_solve(lu, x, true, transposed, transposed, false, transposed);
  return transposed ? ax_taken_in_order(x, order, type.rank - 2) : x;
}

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  return ax_solve_by_factors(in[1], in[2], in[3], ((const solve_params *)eqn->params)->transpose_a);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->out];
  if (ax_is_blocked(x->dtype, x->dims[x->rank - 2], x->dims[x->rank - 1])) return ax_lower_expanded(lower, eqn, expand, in, out);
  return ax_lower_by(lower, eqn, rule, in, out);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  out[0] = in[3];
  if (ax_type_elems(&hlo->program->types[eqn->out]) == 0) return AX_OK;
  return ax_hlo_expanded(hlo, eqn, expand, in, out);
}

static const ax_param params[] = {{"transpose_a", AX_PARAM_BOOL, offsetof(solve_params, transpose_a)}};

const ax_prim ax_prim_linear_solve = {
    .name = "linear_solve", .kind = AX_LOCAL, .in_count = 4, .out_count = 1, .linear = AX_LINEAR_LAST, .kinds = AX_KINDS_SUM,
    AX_PARAMS(params, solve_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = ax_batch_systems, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .complex = lower,
    .hlo = hlo,
};

ax_value ax_linear_solve(ax_value a, ax_value lu, ax_value pivots, ax_value b, bool transpose_a) {
  return ax_bind1(&ax_prim_linear_solve, &(solve_params){transpose_a}, (ax_value[]){a, lu, pivots, b}, 4);
}
