/* cholesky: x T[.., n, n] -> l T[.., n, n]         lower triangular with l l^T = x, T f32, f64
   or complex, with l^H for l^T. Only the lower triangle of x is read, and of its diagonal the real parts; above its diagonal l is
   zero.
   Where x is not positive definite, the lower triangle of l is NaN.
   Errors: other dtypes; matrices that are not square.
   The tangent is l (phi(l^-1 dx l^-H)), phi the lower triangle with half the diagonal, dx symmetric by its lower triangle. Batched and
   cut along leading dimensions.
   Sharding: matrices of 512 rows or more are cut along rows, columns or both, and each device computes its own blocks: band after
   band, the blocks that the others need are sent once, about half the matrix. Smaller ones are gathered.
   Compiled: LAPACK's potrf, a matrix at a time. Real matrices of at most 64 rows and columns are done by our own code (small.h). */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "linalg/bands.h"
#include "linalg/matrices.h"
#include "linalg/small.h"
#include "ops/pointwise.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(&args->in[0]));
  args->out[0] = ax_array_type(args->in[0].dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
  return AX_OK;
}

/* --- eval: row by row --- */

static ax_number at(const ax_tensor *tensor, int64_t index) { return ax_number_load(tensor->dtype, tensor->data, index); }

/* sum - a conj(b) */
static ax_number less_product(ax_dtype wide, ax_number sum, ax_number a, ax_number b) {
  b.imag = -b.imag;
  const ax_number product = ax_scalar_eval(AX_SCALAR_MUL, wide, (ax_number[]){a, b}, 0);
  return ax_scalar_eval(AX_SCALAR_SUB, wide, (ax_number[]){sum, product}, 0);
}

/* The matrix that begins at element `from`. False: it is not positive definite. */
static bool factor(const ax_tensor *x, const ax_tensor *l, int64_t from, int64_t n) {
  const ax_dtype wide = ax_widest_dtype(x->dtype);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      ax_number sum = at(x, from + i * n + j);
      for (int64_t k = 0; k < j; k++) sum = less_product(wide, sum, at(l, from + i * n + k), at(l, from + j * n + k));
      if (i == j && !(sum.f > 0)) return false;
      sum = i == j ? (ax_number){.f = sqrt(sum.f)}
                   : ax_scalar_eval(AX_SCALAR_DIV, wide, (ax_number[]){sum, at(l, from + j * n + j)}, 0);
      ax_number_store(l->dtype, l->data, from + i * n + j, sum);
    }
  return true;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0], *l = args->out[0];
  const int64_t n = x->dims[x->rank - 1], count = ax_dims_elems(x->rank - 2, x->dims);
  for (int64_t b = 0; b < count; b++) {
    if (factor(x, l, b * n * n, n)) continue;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) ax_number_store(l->dtype, l->data, b * n * n + i * n + j, (ax_number){.f = NAN, .imag = NAN});
  }
  return AX_OK;
}

/* --- Derivatives --- */

static void jvp(const ax_jvp_args *args) {
  const ax_value l = args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed()) return;
  const ax_type type = ax_typeof(l);
  const ax_value right = ax_triangular_solve(l, ax_matrix_of_triangle(args->tangent_in[0], true), false, true, true, true, false);
  const ax_value both = ax_triangular_solve(l, right, true, true, false, false, false);
  const ax_value half = ax_matrix_diagonal(l, type.dims[type.rank - 1], 0.5, 1);
  args->tangent_out[0] = ax_matmul(l, ax_mul(ax_matrix_lower(both, 0), half));
}

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  ax_shard_batches(args);
  for (uint32_t d = x->rank - 2; d < x->rank && x->dims[d] >= AX_LEAST_IN_BANDS; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* --- lower --- */

/* OpenBLAS goes on from a NaN on the diagonal. */
static bool is_factor(const ax_matrix_call *call, const void *l, int info) {
  for (int64_t i = 0; info == 0 && i < call->n; i++)
    if (isnan(ax_number_load(call->dtype, l, i * (call->n + 1)).f)) return false;
  return info == 0;
}

/* Row by row, a lower triangle is what an upper one is column by column; of complex numbers the matrix is then the conjugate, and
   the factor still the same, as conj(l l^H) = (l^T)^H l^T. */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const size_t bytes = ax_dtype_bytes(call->dtype), row = (size_t)call->n * bytes;
  const int n = (int)call->n;
  char *l = matrix[1];
  int info = 0;
  (void)work;
  for (size_t i = 0; i < (size_t)n; i++) {
    memcpy(l + i * row, (const char *)matrix[0] + i * row, (i + 1) * bytes);
    memset(l + i * row + (i + 1) * bytes, 0, row - (i + 1) * bytes);
  }
  call->lapack->potrf("U", &n, l, &n, &info, 1);
  if (is_factor(call, l, info)) return;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) ax_number_store(call->dtype, l, i * n + j, (ax_number){.f = NAN, .imag = NAN});
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  const ax_type *x = ax_lower_type(lower, in[0]);
  const double n = (double)x->dims[x->rank - 1];
  ax_matrix_routine routine = {.name = "potrf",
                               .code = factor_one,
                               .call = {.dtype = x->dtype, .n = x->dims[x->rank - 1]},
                               .batch_rank = x->rank - 2,
                               .time = 50 + 10 * n + n * n + n * n * n / ax_matrix_rate(x->dtype, 130)};
  AX_TRY(ax_lapack_of(x->dtype, &routine.call.lapack));
  ax_small_code(&routine, AX_SMALL_CHOLESKY);
  return ax_lower_matrices(lower, &routine, in, 1, out, 1);
}

/* StableHLO's own operation takes Hermitian matrices alone; LAPACK's does not read the imaginary parts of the diagonal. */
static ax_status hlo_complex(ax_hlo *hlo, const ax_type *x, const uint32_t *in, uint32_t *out) {
  const ax_type results[] = {*x, ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims))};
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_short(&config, "uplo", 'L', "ui8");
  const uint32_t made = ax_hlo_lapack(hlo, "potrf", &config, in, x, 1, results, 2);
  out[0] = ax_hlo_or_nan(hlo, made + 1, made, x, x->rank - 2);
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &hlo->program->types[eqn->out];
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_bool(&attributes, "lower", true);
  if (ax_is_complex(x->dtype) && ax_type_elems(x) > 0)
    AX_TRY(hlo_complex(hlo, x, in, out));
  else
    AX_TRY(ax_hlo_simple(hlo, eqn, "stablehlo.cholesky", in, &attributes, out));
  out[0] = ax_hlo_matrix_lower(hlo, out[0], x, 0);
  return AX_OK;
}

/* The upper factor is the lower one's adjoint; the triangle that is not read becomes the other one's first. */
static ax_status read(const ax_hlo_read_args *args) {
  bool lower;
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  AX_TRY(ax_hlo_bool_or(args->op, "lower", false, &lower));
  const ax_value l = ax_cholesky(lower ? args->in[0] : ax_conjugated(ax_matrix_transpose(args->in[0])), false);
  args->out[0] = lower ? l : ax_conjugated(ax_matrix_transpose(l));
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.cholesky", read}, {0}};

const ax_prim ax_prim_cholesky = {
    .name = "cholesky", .kind = AX_LOCAL, .in_count = 1, .out_count = 1,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = shard,
    .block = ax_cholesky_block, .lower = lower, .complex = lower, .reads = readers, .hlo = hlo,
};

ax_value ax_cholesky(ax_value x, bool symmetrize_input) {
  if (symmetrize_input && !ax_matrix_symmetrized("cholesky", &x)) return ax_poison;
  return ax_bind1(&ax_prim_cholesky, NULL, &x, 1);
}
