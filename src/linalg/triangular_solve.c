/* triangular_solve: a T[.., n, n], b T[.., n, m] -> x T[.., n, m]         op(a) x = b, or x op(a) = b, T f32, f64
                                                                     or complex
   a is triangular: lower says which triangle is read; with unit_diagonal its diagonal counts as ones and is not read. op(a) is a, or
   its transpose (transpose_a). left_side: op(a) stands on the left; else on the right, and b and x are T[.., m, n]. with
   conjugate_a it is the conjugate of that, which changes nothing in real numbers. Zeros on the diagonal give infinities and NaN.
   Parameters: left_side, lower, transpose_a, conjugate_a, unit_diagonal.
   Errors: other dtypes; an a that is not square; leading dimensions that differ; sizes that do not fit.
   Linear in b; transposed, the same with op(a)'s transpose. Batched and cut along leading dimensions, and where op(a) does not act.
   Sharding: triangles of 512 rows or more are also cut along their rows, as are b and x where op(a) acts, and along their columns:
   band after band, b's solved rows are sent, and no part of a. Smaller ones are gathered.
   Compiled: BLAS's trsm, or for at most three right sides its trsv, a matrix at a time, or some of many right sides. Triangles of
   at most 64 rows with at most 64 right sides are solved by our own code (small.h). Real ones of 512 rows or more, with 64 right
   sides or more, are solved block by block, with products between, so that threads share them. */
#include <stdio.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "linalg/bands.h"
#include "linalg/blocked.h"
#include "linalg/matrices.h"
#include "linalg/small.h"
#include "linalg/triangular_solve.h"
#include "ops/pointwise.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef ax_triangular_solve_params solve_params;

static ax_status infer(const ax_infer_args *args) {
  const solve_params *p = args->params;
  const ax_type *a = &args->in[0], *b = &args->in[1];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(a));
  if (a->rank != b->rank || memcmp(a->dims, b->dims, (a->rank - 2) * sizeof a->dims[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the operands need the same leading dimensions");
  const int64_t n = a->dims[a->rank - 1], given = b->dims[b->rank - (p->left_side ? 2 : 1)];
  if (given != n)
    return ax_error(AX_INVALID_ARGUMENT, "the second operand has %lld %s, and the triangle %lld", (long long)given,
                    p->left_side ? "rows" : "columns", (long long)n);
  args->out[0] = ax_array_type(b->dtype, AX_LIST(b->rank, b->dims));
  return AX_OK;
}

/* --- eval: one vector after the other --- */

static ax_number at(const ax_tensor *tensor, int64_t index) { return ax_number_load(tensor->dtype, tensor->data, index); }

static ax_number of_two(ax_scalar op, ax_dtype wide, ax_number a, ax_number b) {
  return ax_scalar_eval(op, wide, (ax_number[]){a, b}, 0);
}

static ax_number element_of(const solve_params *p, const ax_tensor *a, int64_t index) {
  ax_number x = at(a, index);
  if (p->conjugate_a) x.imag = -x.imag;
  return x;
}

/* Solves for the n elements of x from `from` on, `step` apart, which hold b. */
static void solve_vector(const solve_params *p, const ax_tensor *a, int64_t matrix, const ax_tensor *x, int64_t from, int64_t step,
                         int64_t n) {
  const bool flipped = p->transpose_a != !p->left_side, ascends = p->lower != flipped;
  const ax_dtype wide = ax_widest_dtype(x->dtype);
  for (int64_t count = 0; count < n; count++) {
    const int64_t i = ascends ? count : n - 1 - count;
    ax_number sum = at(x, from + i * step);
    for (int64_t other = 0; other < count; other++) {
      const int64_t j = ascends ? other : n - 1 - other;
      const ax_number factor = element_of(p, a, matrix + (flipped ? j * n + i : i * n + j));
      sum = of_two(AX_SCALAR_SUB, wide, sum, of_two(AX_SCALAR_MUL, wide, factor, at(x, from + j * step)));
    }
    if (!p->unit_diagonal) sum = of_two(AX_SCALAR_DIV, wide, sum, element_of(p, a, matrix + i * n + i));
    ax_number_store(x->dtype, x->data, from + i * step, sum);
  }
}

static ax_status eval(const ax_eval_args *args) {
  const solve_params *p = args->eqn->params;
  const ax_tensor *a = args->in[0];
  ax_tensor *x = args->out[0];
  const int64_t n = a->dims[a->rank - 1], count = ax_dims_elems(a->rank - 2, a->dims);
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1], vectors = p->left_side ? columns : rows;
  ax_tensor_assign(x, args->in[1]);
  for (int64_t b = 0; b < count; b++)
    for (int64_t v = 0; v < vectors; v++)
      solve_vector(p, a, b * n * n, x, b * rows * columns + (p->left_side ? v : v * n), p->left_side ? columns : 1, n);
  return AX_OK;
}

/* --- Derivatives: of op(a) x = b, op(a) dx = db - op(da) x --- */

static ax_value solve(const ax_eqn *eqn, ax_value a, ax_value b) {
  const ax_value in[] = {a, b};
  return ax_bind1(eqn->prim, eqn->params, in, 2);
}

/* The part by da; in the order of the two products that takes less. */
static ax_value tangent_of_triangle(const ax_jvp_args *args, ax_value x) {
  const solve_params *p = args->eqn->params;
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[type.rank - (p->left_side ? 2 : 1)], vectors = type.dims[type.rank - (p->left_side ? 1 : 2)];
  const int64_t k = p->unit_diagonal ? 1 : 0;
  ax_value da = args->tangent_in[0];
  da = ax_neg(p->lower ? ax_matrix_lower(da, -k) : ax_matrix_upper(da, k));
  if (p->transpose_a) da = ax_matrix_transpose(da);
  if (p->conjugate_a) da = ax_conjugated(da);
  if (p->left_side)
    return n > vectors ? solve(args->eqn, args->in[0], ax_matmul(da, x)) : ax_matmul(solve(args->eqn, args->in[0], da), x);
  return n > vectors ? solve(args->eqn, args->in[0], ax_matmul(x, da)) : ax_matmul(x, solve(args->eqn, args->in[0], da));
}

static void jvp(const ax_jvp_args *args) {
  const ax_value x = args->out[0] = solve(args->eqn, args->in[0], args->in[1]);
  ax_value by_a = ax_zero, by_b = ax_zero;
  if (!ax_is_zero(args->tangent_in[0])) by_a = tangent_of_triangle(args, x);
  if (!ax_is_zero(args->tangent_in[1])) by_b = solve(args->eqn, args->in[0], args->tangent_in[1]);
  args->tangent_out[0] = ax_add_any(by_a, by_b);
}

static void transpose(const ax_transpose_args *args) {
  solve_params p = *(const solve_params *)args->eqn->params;
  if (args->linear[0]) {
    ax_reject(args->eqn->prim, "it is not linear in the triangle");
    return;
  }
  if (ax_is_zero(args->cotangent[0])) return;
  p.transpose_a = !p.transpose_a;
  args->out[1] = ax_bind1(args->eqn->prim, &p, (ax_value[]){args->in[0], args->cotangent[0]}, 2);
}

/* One triangle for all of the batch: the batch becomes more vectors. */
static void batch_vectors(const ax_batch_args *args) {
  const solve_params *p = args->eqn->params;
  ax_type type = ax_typeof(args->in[1]);
  if (ax_failed()) return;
  const int at = (int)type.rank - (p->left_side ? 1 : 2);
  const ax_value b = ax_move_dim(args->in[1], args->in_dim[1], at);
  type = ax_typeof(b);
  if (ax_failed()) return;
  ax_dims joined = {.count = type.rank - 1};
  const uint32_t into = p->left_side ? type.rank - 2 : type.rank - 3; /* of the joined dimensions: the batch and the vectors */
  for (uint32_t d = 0; d < joined.count; d++) joined.v[d] = type.dims[d < into ? d : d + 1];
  joined.v[into] = type.dims[into] * type.dims[into + 1];
  const ax_value x = solve(args->eqn, args->in[0], ax_reshape(b, AX_LIST(joined.count, joined.v)));
  args->out[0] = ax_reshape(x, AX_LIST(type.rank, type.dims));
  args->out_dim[0] = at;
}

static void batch(const ax_batch_args *args) {
  if (args->in_dim[0] < 0) batch_vectors(args);
  else ax_batch_matrices(args);
}

static void shard(const ax_shard_args *args) {
  const solve_params *p = args->eqn->params;
  const ax_type *b = &args->types[args->eqn->in[1]];
  const uint32_t vectors = b->rank - (p->left_side ? 1 : 2), factor = ax_factor(args, b->dims[vectors], AX_FACTOR_ALONG);
  ax_factor_of(&args->in[1], vectors, factor);
  ax_factor_of(&args->out[0], vectors, factor);
  ax_shard_batches(args);
  const ax_type *a = &args->types[args->eqn->in[0]];
  const int64_t n = a->dims[a->rank - 1];
  if (n < AX_LEAST_IN_BANDS) return;
  const uint32_t rows = ax_factor(args, n, AX_FACTOR_ALONG), solved = b->rank - (p->left_side ? 2 : 1);
  ax_factor_of(&args->in[0], a->rank - 2, rows);
  ax_factor_of(&args->in[1], solved, rows);
  ax_factor_of(&args->out[0], solved, rows);
  ax_factor_of(&args->in[0], a->rank - 1, ax_factor(args, n, AX_FACTOR_ALONG));
}

/* --- lower --- */

enum { few_vectors = 3 }; /* for which BLAS's routine of one vector takes less than that of many */

/* Solves for one vector of n numbers, `step` apart, which hold b. BLAS takes a as its transpose. The conjugate of that it has
   only transposed back, so the vector is conjugated instead. */
static void solve_one_vector(const ax_matrix_call *call, const void *a, char *x, int n, int step) {
  const bool flipped = call->transposed == call->left, adjoint = call->transposed && call->conjugated;
  const size_t next = (size_t)step * ax_dtype_bytes(call->dtype);
  for (size_t i = 0; i < (size_t)n && adjoint && flipped; i++) ax_matrix_conjugate(call->dtype, x + i * next, 1);
  call->lapack->trsv(call->lower ? "U" : "L",
                     flipped   ? "N"
                     : adjoint ? "C"
                               : "T",
                     call->unit ? "U" : "N", &n, a, &n, x, &step, 1, 1, 1);
  for (size_t i = 0; i < (size_t)n && adjoint && flipped; i++) ax_matrix_conjugate(call->dtype, x + i * next, 1);
}

/* Row by row, x op(a) = b is what op(a) x = b is column by column, and a lower triangle an upper one. */
void ax_solve_by_blas(const ax_matrix_call *call, const void *a, char *x) {
  const int count = (int)(call->to - call->from), ld = (int)call->n, n = (int)(call->left ? call->m : call->n);
  const size_t next = (call->left ? 1 : (size_t)call->n) * ax_dtype_bytes(call->dtype);
  const float one_f32[] = {1, 0};
  const double one_f64[] = {1, 0};
  const void *one = ax_part_dtype(call->dtype) == AX_F32 ? (const void *)one_f32 : one_f64;
  const char *op = !call->transposed ? "N" : call->conjugated ? "C" : "T";
  for (size_t v = 0; count <= few_vectors && v < (size_t)count; v++)
    solve_one_vector(call, a, x + v * next, n, call->left ? ld : 1);
  if (count > few_vectors)
    call->lapack->trsm(call->left ? "R" : "L", call->lower ? "U" : "L", op, call->unit ? "U" : "N", call->left ? &count : &n,
                       call->left ? &n : &count, one, a, &n, x, &ld, 1, 1, 1, 1);
}

static void solve_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const size_t bytes = ax_dtype_bytes(call->dtype), row = (size_t)call->n * bytes;
  const int64_t count = call->to - call->from, rows = call->left ? call->m : count;
  const size_t first = (size_t)call->from * (call->left ? bytes : row), width = call->left ? (size_t)count * bytes : row;
  const char *b = (const char *)matrix[1] + first;
  char *x = (char *)matrix[2] + first;
  (void)work;
  for (int64_t i = 0; i < rows; i++) memcpy(x + (size_t)i * row, b + (size_t)i * row, width);
  ax_solve_by_blas(call, matrix[0], x);
}

static ax_value in_blocks(const ax_eqn *eqn, const ax_value *in) { return ax_blocked_solve(eqn->params, in[0], in[1]); }

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const solve_params *p = eqn->params;
  const ax_type *x = &lower->program->types[eqn->out];
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  if (ax_is_blocked(x->dtype, p->left_side ? rows : columns, p->left_side ? columns : rows))
    return ax_lower_expanded(lower, eqn, in_blocks, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  const ax_type *b = ax_lower_type(lower, in[1]);
  const int64_t m = b->dims[b->rank - 2], n = b->dims[b->rank - 1];
  const double order = (double)(p->left_side ? m : n), elems = (double)m * (double)n;
  ax_matrix_routine routine = {.name = "trsm",
                               .code = solve_one,
                               .call = {.dtype = b->dtype,
                                        .m = m,
                                        .n = n,
                                        .left = p->left_side,
                                        .lower = p->lower,
                                        .transposed = p->transpose_a,
                                        .conjugated = p->conjugate_a,
                                        .unit = p->unit_diagonal},
                               .batch_rank = b->rank - 2,
                               .right_sides = p->left_side ? n : m,
                               .time = 100 + elems + elems * order / ax_matrix_rate(b->dtype, 40)};
  AX_TRY(ax_lapack_of(b->dtype, &routine.call.lapack));
  ax_small_code(&routine, AX_SMALL_TRIANGULAR_SOLVE);
  return ax_lower_matrices(lower, &routine, in, 2, out, 1);
}

/* The conjugate of a, which BLAS has transposed alone, taken before. */
static ax_value with_conjugate(const ax_eqn *eqn, const ax_value *in) {
  solve_params p = *(const solve_params *)eqn->params;
  p.conjugate_a = false;
  return ax_bind1(eqn->prim, &p, (ax_value[]){ax_conj(in[0]), in[1]}, 2);
}

static bool conjugates_alone(const solve_params *p) { return p->conjugate_a && !p->transpose_a; }

static ax_status lower_complex(ax_lower *by, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return conjugates_alone(eqn->params) ? ax_lower_expanded(by, eqn, with_conjugate, in, out) : lower(by, eqn, in, out);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const solve_params *p = eqn->params;
  const bool is_complex = ax_is_complex(hlo->program->types[eqn->out].dtype);
  ax_hlo_attributes attributes = {.hlo = hlo};
  if (is_complex && conjugates_alone(p)) return ax_hlo_expanded(hlo, eqn, with_conjugate, in, out);
  ax_hlo_add_fields(&attributes, eqn->prim, p);
  ax_hlo_add_word(&attributes, "transpose_a", !p->transpose_a ? "NO_TRANSPOSE" : is_complex && p->conjugate_a ? "ADJOINT" : "TRANSPOSE");
  return ax_hlo_simple(hlo, eqn, "stablehlo.triangular_solve", in, &attributes, out);
}

static const ax_param params[] = {{"left_side", AX_PARAM_BOOL, offsetof(solve_params, left_side)},
                                  {"lower", AX_PARAM_BOOL, offsetof(solve_params, lower)},
                                  {"transpose_a", AX_PARAM_BOOL, offsetof(solve_params, transpose_a)},
                                  {"conjugate_a", AX_PARAM_BOOL, offsetof(solve_params, conjugate_a)},
                                  {"unit_diagonal", AX_PARAM_BOOL, offsetof(solve_params, unit_diagonal)}};

/* The word of transpose_a is two parameters; narrow floats are computed with in f32. */
static const ax_hlo_form form = {
    .op = "stablehlo.triangular_solve",
    .fields = AX_HLO_FIELDS({"left_side", "left_side"}, {"lower", "lower"}, {"unit_diagonal", "unit_diagonal"})};

static ax_status read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *transpose = ax_hlo_find(args->op, "transpose_a");
  solve_params p = {0};
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes two operands");
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_triangular_solve, &p));
  const bool adjoint = transpose != NULL && ax_hlo_slice_is(transpose->text, "ADJOINT");
  const bool transposed = adjoint || (transpose != NULL && ax_hlo_slice_is(transpose->text, "TRANSPOSE"));
  const ax_dtype dtype = ax_typeof(args->in[0]).dtype;
  ax_value a = args->in[0], b = args->in[1];
  if (ax_is_narrow_float(dtype)) a = ax_convert_element_type(a, AX_F32), b = ax_convert_element_type(b, AX_F32);
  args->out[0] = ax_convert_element_type(ax_triangular_solve(a, b, p.left_side, p.lower, transposed, adjoint, p.unit_diagonal), dtype);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.triangular_solve", read}, {0}};

const ax_prim ax_prim_triangular_solve = {
    .name = "triangular_solve", .kind = AX_LOCAL, .in_count = 2, .out_count = 1, .linear = AX_LINEAR_LAST, .kinds = AX_KINDS_SUM,
    AX_PARAMS(params, solve_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .block = ax_triangular_solve_block, .lower = lower,
    .complex = lower_complex,
    .form = &form, .reads = readers, .hlo = hlo,
};

ax_value ax_triangular_solve(ax_value a, ax_value b, bool left_side, bool lower, bool transpose_a, bool conjugate_a,
                             bool unit_diagonal) {
  const solve_params p = {left_side, lower, transpose_a, conjugate_a, unit_diagonal};
  return ax_bind1(&ax_prim_triangular_solve, &p, (ax_value[]){a, b}, 2);
}
