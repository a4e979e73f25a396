/* schur: x T[.., n, n] -> t T[.., n, n], with compute_schur_vectors also q T[.., n, n]         T f32, f64 or complex
   x = q t q^H, q^H q = 1. t is upper triangular, but of a real x with blocks of 2 by 2 on its diagonal, each for two eigenvalues
   that are complex and conjugate. NaN where x has NaN or infinities.
   Parameters: compute_schur_vectors.
   Errors: other dtypes; matrices that are not square.
   The tangent: with g = q^H dx q and o = q^H dq, which is skew, dt = g + t o - o t, dq = q o. dt is zero below t's blocks. With
   t = v diag(d) v^-1, v triangular but for the blocks, o is there what v k v^-1 is: below the blocks
   k[i, j] = (v^-1 g v)[i, j] / (d[j] - d[i]), and k is 0 elsewhere. Of complex numbers o's diagonal may be any imaginary numbers;
   it is 0, so that vectors turn as little as they can, and LAPACK's phases may move otherwise. In a block of 2 by 2, whose two
   diagonal elements are equal, o is such that they stay so. Not finite where eigenvalues are equal, or a block's elements beside
   the diagonal have the sum 0.
   Batched and cut along leading dimensions.
   Compiled: LAPACK's gees, a matrix at a time. */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct schur_params {
  bool compute_schur_vectors;
} schur_params;

static uint32_t count_outs(const void *params) { return ((const schur_params *)params)->compute_schur_vectors ? 2 : 1; }

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  for (uint32_t k = 0; k < count_outs(args->params); k++) args->out[k] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* values: 2 n elements. Of real numbers they take the eigenvalues' two parts, of complex ones the eigenvalues, and real numbers
   that LAPACK works with besides. work: call->lwork elements; with `lwork` -1 that number. */
static int decompose(const ax_matrix_call *call, void *x, void *q, void *values, void *work, const int *lwork) {
  const int n = (int)call->n, ld = ax_leading(n);
  const char *job = call->vectors ? "V" : "N";
  ax_lapack_size none; /* LAPACK may write a number into it where it is asked */
  void *behind = *lwork == -1 ? &none : ax_work_behind(call, values, n);
  int info = 0, chosen = 0;
  if (ax_is_complex(call->dtype))
    call->lapack->complex_gees(job, "N", NULL, &n, x, &ld, &chosen, values, q, &ld, work, lwork, behind, NULL, &info, 1, 1);
  else
    call->lapack->gees(job, "N", NULL, &n, x, &ld, &chosen, values, behind, q, &ld, work, lwork, NULL, &info, 1, 1);
  return info;
}

/* The workspace has t and q column by column, the eigenvalues' two parts, and then LAPACK's. */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t n = call->n;
  void *q = ax_work_behind(call, work, n * n), *values = ax_work_behind(call, q, call->vectors ? n * n : 0);
  int info = 1;
  ax_matrix_turn(work, matrix[0], n, n, call->dtype);
  if (ax_matrix_finite(call, matrix[0], n * n))
    info = decompose(call, work, q, values, ax_work_behind(call, values, 2 * n), &call->lwork);
  for (uint32_t k = 0; k < (call->vectors ? 2u : 1u); k++) {
    if (info == 0)
      ax_matrix_turn(matrix[1 + k], k == 0 ? work : q, n, n, call->dtype);
    else
      ax_matrix_nan(call->dtype, matrix[1 + k], n * n);
  }
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t n = in->dims[in->rank - 1];
  const int ask = -1;
  const double x = (double)n;
  ax_lapack_size work = {1, 0};
  (void)out;
  routine->name = "gees";
  routine->code = factor_one;
  routine->call.n = n;
  routine->call.vectors = ((const schur_params *)params)->compute_schur_vectors;
  (void)decompose(&routine->call, NULL, NULL, NULL, &work, &ask);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes =
      ((routine->call.vectors ? 2 : 1) * n * n + 2 * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 1000 + 60 * x * x + x * x * x / ax_matrix_rate(in->dtype, 0.5);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- Derivatives --- */

typedef struct vectors { /* w t v = diag(d), w v = 1: complex, but of real numbers block by block */
  ax_value v, w, d;
} vectors;

/* Vectors x as blocks of a real t have them, [.., n - 1], at those elements of a matrix: of a block's four. */
static ax_value first(ax_value x, int64_t n) { return ax_matrix_within(ax_vector_to_diagonal(x), 0, 0, n); }
static ax_value second(ax_value x, int64_t n) { return ax_matrix_within(ax_vector_to_diagonal(x), 1, 1, n); }
static ax_value above(ax_value x, int64_t n) { return ax_matrix_within(ax_vector_to_diagonal(x), 0, 1, n); }
static ax_value below(ax_value x, int64_t n) { return ax_matrix_within(ax_vector_to_diagonal(x), 1, 0, n); }

/* The elements above the diagonal, or below it: [.., n - 1]. */
static ax_value beside(ax_value x, bool lower, int64_t n) {
  return ax_diagonal_to_vector(ax_matrix_part(x, lower ? 1 : 0, n - 1, lower ? 0 : 1, n - 1));
}

/* 1 where a block of a real t begins: [.., n - 1]. */
static ax_value blocks_of(ax_value t, int64_t n) {
  const ax_type type = ax_typeof(t);
  return ax_failed() ? ax_poison : ax_convert_element_type(ax_ne(beside(t, true, n), ax_integer(0)), type.dtype);
}

/* The eigenvectors of blocks [a b; c a] are (1, i r) and (1, -i r), r = sqrt(-c / b). */
static vectors of_blocks(ax_value t, ax_value blocks, int64_t n) {
  const ax_value is_block = ax_eq(blocks, ax_integer(1)), none = ax_integer(1), eye = ax_matrix_eye(t, n, n);
  const ax_value c = ax_where(is_block, ax_neg(beside(t, true, n)), none), b = ax_where(is_block, beside(t, false, n), none);
  const ax_value r = ax_sqrt(ax_div(c, b)), half = ax_mul(blocks, ax_real(0.5)), others = ax_sub(eye, second(blocks, n));
  const ax_value long_side = ax_mul(blocks, r), short_side = ax_div(half, r);
  const ax_value w = ax_add(ax_sub(others, first(half, n)), below(half, n));
  return (vectors){.v = ax_complex(ax_add(others, above(blocks, n)), ax_sub(below(long_side, n), second(long_side, n))),
                   .w = ax_complex(w, ax_sub(second(short_side, n), above(short_side, n)))};
}

/* Where row and column stand in one square of 2 `size` at the diagonal, the row in its first half and the column in its second. */
static ax_value corners(int64_t n, int64_t size) {
  const ax_value row = ax_iota(AX_S64, AX_DIMS(n, n), 0), column = ax_iota(AX_S64, AX_DIMS(n, n), 1);
  const ax_value by = ax_full_i64(AX_S64, AX_DIMS(), size), twice = ax_full_i64(AX_S64, AX_DIMS(), 2 * size);
  return ax_and(ax_eq(ax_div(row, twice), ax_div(column, twice)), ax_lt(ax_div(row, by), ax_div(column, by)));
}

/* x[i, j] / (d[j] - d[i]) at those places; 0 elsewhere */
static ax_value by_distance(ax_value x, ax_value d, ax_value places) {
  const ax_value distance = ax_sub(ax_expand_dims(d, -2), ax_expand_dims(d, -1));
  return ax_div(ax_where(places, x, ax_integer(0)), ax_where(places, distance, ax_integer(1)));
}

/* t is diagonal in squares of 1, then 2, 4 .. elements: 1 + x, x zero but in squares' corners, takes off what is there. */
static vectors vectors_of(ax_value t, vectors s, int64_t n) {
  ax_value rest = ax_matmul(ax_matmul(s.w, ax_matrix_as(t, s.v)), s.v);
  s.d = ax_diagonal_to_vector(rest);
  for (int64_t size = 1; size < n; size *= 2) {
    const ax_value x = by_distance(rest, s.d, corners(n, size));
    s.v = ax_add(s.v, ax_matmul(s.v, x));
    s.w = ax_sub(s.w, ax_matmul(x, s.w));
    rest = ax_add(rest, ax_matmul(rest, x));
    rest = ax_sub(rest, ax_matmul(x, rest));
  }
  return s;
}

static ax_value commuted(ax_value a, ax_value b) { return ax_sub(ax_matmul(a, b), ax_matmul(b, a)); }

/* o without what it has in the blocks. lower: the places below the blocks. */
static ax_value turn_of(const vectors *s, ax_value g, ax_value lower) {
  const ax_type type = ax_typeof(g);
  if (ax_failed()) return ax_poison;
  const ax_value k = by_distance(ax_matmul(ax_matmul(s->w, ax_matrix_as(g, s->v)), s->v), s->d, lower);
  const ax_value whole = ax_matmul(ax_matmul(s->v, k), s->w);
  const ax_value kept = ax_where(lower, ax_is_complex(type.dtype) ? whole : ax_real_part(whole), ax_integer(0));
  return ax_sub(kept, ax_matrix_adjoint(kept));
}

/* What o has in the blocks: 0 w; -w 0 changes the two diagonal elements by (b + c) w and its negative. dt: by the rest of o. */
static ax_value turn_in_blocks(ax_value t, ax_value blocks, ax_value dt, int64_t n) {
  const ax_value elements = ax_diagonal_to_vector(dt), is_block = ax_eq(blocks, ax_integer(1));
  const ax_value apart = ax_sub(ax_slice_in_dim(elements, 1, n, 1, -1), ax_slice_in_dim(elements, 0, n - 1, 1, -1));
  const ax_value twice = ax_mul(ax_add(beside(t, true, n), beside(t, false, n)), ax_integer(2));
  const ax_value w = ax_div(ax_where(is_block, apart, ax_integer(0)), ax_where(is_block, twice, ax_integer(1)));
  return ax_sub(below(w, n), above(w, n));
}

typedef struct tangents {
  ax_value t, o;
} tangents;

static tangents of_complex(ax_value t, ax_value g, int64_t n) {
  const ax_value eye = ax_matrix_eye(t, n, n), row = ax_iota(AX_S32, AX_DIMS(n, n), 0), column = ax_iota(AX_S32, AX_DIMS(n, n), 1);
  const vectors s = vectors_of(t, (vectors){.v = eye, .w = eye}, n);
  const ax_value o = turn_of(&s, g, ax_gt(row, column));
  return (tangents){ax_matrix_upper(ax_add(g, commuted(t, o)), 0), o};
}

static tangents of_real(ax_value t, ax_value g, int64_t n) {
  const ax_value blocks = blocks_of(t, n), row = ax_iota(AX_S32, AX_DIMS(n, n), 0), column = ax_iota(AX_S32, AX_DIMS(n, n), 1);
  const ax_value lower = ax_and(ax_gt(row, column), ax_eq(below(blocks, n), ax_integer(0)));
  const vectors s = vectors_of(t, of_blocks(t, blocks, n), n);
  const ax_value o = turn_of(&s, g, lower), dt = ax_add(g, commuted(t, o)), inner = turn_in_blocks(t, blocks, dt, n);
  const ax_value all = ax_add(dt, commuted(t, inner));
  return (tangents){ax_where(lower, ax_integer(0), all), ax_add(o, inner)};
}

static void jvp(const ax_jvp_args *args) {
  const schur_params *p = args->eqn->params, with = {true};
  const ax_type type = ax_typeof(args->in[0]);
  const uint32_t count = count_outs(p);
  ax_value made[2];
  for (uint32_t k = 0; k < count; k++) args->tangent_out[k] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) {
    ax_bind(args->eqn->prim, p, args->in, 1, args->out, count);
    return;
  }
  ax_bind(args->eqn->prim, &with, args->in, 1, made, 2);
  const ax_value t = made[0], q = made[1], g = ax_matmul(ax_matmul(ax_matrix_adjoint(q), args->tangent_in[0]), q);
  const int64_t n = type.dims[type.rank - 1];
  const tangents all = ax_is_complex(type.dtype) ? of_complex(t, g, n) : of_real(t, g, n);
  args->out[0] = t, args->tangent_out[0] = all.t;
  if (p->compute_schur_vectors) args->out[1] = q, args->tangent_out[1] = ax_matmul(q, all.o);
}

/* Results of the call: t, q, the eigenvalues or their two parts, how many were chosen, info. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const bool vectors = ((const schur_params *)eqn->params)->compute_schur_vectors;
  const ax_type *x = &hlo->program->types[eqn->in[0]], form = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  const ax_type values = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims)),
                info = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims));
  const uint32_t count = ax_is_complex(x->dtype) ? 5 : 6;
  const ax_type results[] = {form, form, values, count == 6 ? values : info, info, info};
  for (uint32_t k = 0; k < count_outs(eqn->params); k++) out[k] = in[0];
  if (ax_type_elems(x) == 0) return AX_OK;
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_short(&config, "mode", vectors ? 'V' : 'N', "ui8");
  ax_hlo_add_short(&config, "sort", 'N', "ui8");
  const uint32_t made = ax_hlo_lapack(hlo, "gees", &config, in, x, 1, results, count);
  for (uint32_t k = 0; k < count_outs(eqn->params); k++)
    out[k] = ax_hlo_or_nan(hlo, made + count - 1, made + k, &form, x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"compute_schur_vectors", AX_PARAM_BOOL, offsetof(schur_params, compute_schur_vectors)}};

const ax_prim ax_prim_schur = {
    .name = "schur", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, schur_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp,
    .linearize = jvp, .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing,
    .shard = ax_shard_batches, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_schur)(ax_value x, bool compute_schur_vectors, uint32_t out_count, ax_value *out) {
  const schur_params p = {compute_schur_vectors};
  if (ax_lists_fit("schur", 1, 1, out_count, count_outs(&p), out)) ax_bind(&ax_prim_schur, &p, &x, 1, out, count_outs(&p));
}
