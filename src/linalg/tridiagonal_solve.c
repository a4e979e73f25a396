/* tridiagonal_solve: dl T[.., n], d T[.., n], du T[.., n], b T[.., n, m] -> x T[.., n, m]         T f32, f64 or complex
   a x = b, a having d on its diagonal, dl, without its first element, below it, and du, without its last, above it. With partial
   pivoting. NaN where a is singular.
   Errors: other dtypes; diagonals of different shapes; leading dimensions or rows of b that differ.
   Linear in b; transposed, the same with a's transpose. The tangent is the solution for db - da x. Batched and cut along leading
   dimensions, and along the columns of b.
   Compiled: LAPACK's gtsv, a matrix at a time. */
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *d = &args->in[0], *b = &args->in[3];
  for (uint32_t i = 0; i < 4; i++) AX_TRY(ax_infer_matrix(args, i, i < 3 ? 1 : 2));
  for (uint32_t i = 1; i < 3; i++)
    if (args->in[i].rank != d->rank || memcmp(args->in[i].dims, d->dims, d->rank * sizeof d->dims[0]) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "the three diagonals need one shape");
  if (b->rank != d->rank + 1 || memcmp(b->dims, d->dims, d->rank * sizeof d->dims[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the dimensions of the last operand but its last must be those of the diagonals");
  args->out[0] = ax_array_type(b->dtype, AX_LIST(b->rank, b->dims));
  return AX_OK;
}

/* matrix: dl, d, du, b; x. The workspace has the diagonals and b column by column; LAPACK writes into all. */
static void solve_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int n = (int)call->m, columns = (int)call->n, ld = ax_leading(n);
  void *diagonal[3] = {work, ax_work_behind(call, work, n), ax_work_behind(call, work, 2 * call->m)};
  void *b = ax_work_behind(call, work, 3 * call->m);
  int info = 0;
  for (int i = 0; i < 3; i++) memcpy(diagonal[i], matrix[i], (size_t)n * ax_dtype_bytes(call->dtype));
  ax_matrix_turn(b, matrix[3], call->m, call->n, call->dtype);
  call->lapack->gtsv(&n, &columns, ax_work_behind(call, diagonal[0], 1), diagonal[1], diagonal[2], b, &ld, &info);
  ax_matrix_turn(matrix[4], b, call->n, call->m, call->dtype);
  if (info != 0) ax_matrix_nan(call->dtype, matrix[4], call->m * call->n);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t m = out->dims[out->rank - 2], n = out->dims[out->rank - 1];
  (void)params;
  routine->name = "gtsv";
  routine->code = solve_one;
  routine->batch_rank = out->rank - 2;
  routine->call.m = m, routine->call.n = n;
  routine->work_bytes = (3 * m + m * n) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 100 + 10 * (double)m + 5 * (double)(m * n);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- Derivatives --- */

/* Without its first row and a zero row behind (up), or without its last and a zero row before. */
static ax_value rows_moved(ax_value x, int64_t dimension, bool up) {
  const ax_type type = ax_typeof(x);
  int64_t low[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0}, none[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  low[dimension] = up ? -1 : 1, high[dimension] = up ? 1 : -1;
  return ax_pad(x, ax_integer(0), AX_LIST(type.rank, low), AX_LIST(type.rank, high), AX_LIST(type.rank, none));
}

static ax_value bind(const ax_value *diagonals, ax_value b) {
  return ax_bind1(&ax_prim_tridiagonal_solve, NULL, (ax_value[]){diagonals[0], diagonals[1], diagonals[2], b}, 4);
}

static ax_value scaled(ax_value diagonal, ax_value x) {
  return ax_is_zero(diagonal) ? ax_zero : ax_mul(ax_expand_dims(diagonal, -1), x);
}

static void jvp(const ax_jvp_args *args) {
  const ax_value *da = args->tangent_in, x = args->out[0] = bind(args->in, args->in[3]);
  const ax_type type = ax_typeof(x);
  args->tangent_out[0] = ax_zero;
  if (ax_failed() || type.dims[type.rank - 2] == 0) return;
  const int64_t rows = type.rank - 2;
  ax_value moved = scaled(da[1], x);
  if (!ax_is_zero(da[0])) moved = ax_add_any(moved, scaled(da[0], rows_moved(x, rows, false)));
  if (!ax_is_zero(da[2])) moved = ax_add_any(moved, scaled(da[2], rows_moved(x, rows, true)));
  const ax_value right = ax_is_zero(moved) ? da[3] : ax_add_any(da[3], ax_neg(moved));
  if (!ax_is_zero(right)) args->tangent_out[0] = bind(args->in, right);
}

static void transpose(const ax_transpose_args *args) {
  if (args->linear[0] || args->linear[1] || args->linear[2]) {
    ax_reject(args->eqn->prim, "it is not linear in the diagonals");
    return;
  }
  const ax_type type = ax_typeof(args->in[1]);
  if (ax_is_zero(args->cotangent[0]) || ax_failed()) return;
  const int64_t along = type.rank - 1;
  ax_value diagonals[] = {args->in[2], args->in[1], args->in[0]};
  if (type.dims[along] > 0)
    diagonals[0] = rows_moved(args->in[2], along, false), diagonals[2] = rows_moved(args->in[0], along, true);
  args->out[3] = bind(diagonals, args->cotangent[0]);
}

static void shard(const ax_shard_args *args) {
  const ax_type *b = &args->types[args->eqn->in[3]];
  for (uint32_t d = 0; d < b->rank; d++) {
    if (d + 2 == b->rank) continue;
    const uint32_t factor = ax_factor(args, b->dims[d], AX_FACTOR_ALONG);
    for (uint32_t i = d + 1 == b->rank ? 3 : 0; i < 4; i++) ax_factor_of(&args->in[i], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_type types[5];
  for (uint32_t i = 0; i < 4; i++) types[i] = hlo->program->types[eqn->in[i]];
  types[4] = ax_array_type(AX_S32, AX_LIST(types[3].rank - 2, types[3].dims));
  out[0] = in[3];
  if (ax_type_elems(&types[3]) == 0) return AX_OK;
  const uint32_t made = ax_hlo_lapack(hlo, "gtsv", NULL, in, types, 4, types, 5);
  out[0] = ax_hlo_or_nan(hlo, made + 4, made + 3, &types[3], types[3].rank - 2);
  return AX_OK;
}

const ax_prim ax_prim_tridiagonal_solve = {
    .name = "tridiagonal_solve", .kind = AX_LOCAL, .in_count = 4, .out_count = 1, .linear = AX_LINEAR_LAST, .kinds = AX_KINDS_SUM,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = ax_batch_systems, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .complex = lower,
    .hlo = hlo,
};

ax_value ax_tridiagonal_solve(ax_value dl, ax_value d, ax_value du, ax_value b) { return bind((ax_value[]){dl, d, du}, b); }
