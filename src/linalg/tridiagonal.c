/* tridiagonal: x T[.., n, n] -> form T[.., n, n], d R[.., n], e R[.., n - 1], taus T[.., n - 1]         T f32, f64 or complex, R
                                                                                             that of T's real parts
   q^H x q = t for a symmetric x, or Hermitian one, whose lower or upper triangle is read: t is tridiagonal, and real, with the
   diagonal d and e beside it, which stand in the form too. The rest of that triangle and the taus are the reflectors whose product
   q is; the other triangle is x's.
   Parameters: lower: which triangle.
   Errors: other dtypes; matrices that are not square, or without rows.
   The tangent is that of hessenberg, of the symmetric matrix whose triangle is read: t is its h. The upper triangle gives what the
   lower one of the matrix with rows and columns in reverse gives. Not finite where e has a 0.
   Batched and cut along leading dimensions.
   Compiled: LAPACK's sytrd, or hetrd, a matrix at a time. */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/hessenberg.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct tridiagonal_params {
  bool lower;
} tridiagonal_params;

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  const int64_t n = x->dims[x->rank - 1];
  if (n == 0) return ax_error(AX_INVALID_ARGUMENT, "the matrices have no rows");
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  for (uint32_t k = 1; k < 4; k++) {
    args->out[k] = k == 3 ? ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims)) : ax_matrix_parts_type(x, 1);
    args->out[k].dims[x->rank - 2] = k == 1 ? n : n - 1;
  }
  return AX_OK;
}

/* matrix: x; form, d, e, taus */
static void reduce_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int n = (int)call->n;
  int info = 0;
  ax_matrix_turn(work, matrix[0], n, n, call->dtype);
  call->lapack->sytrd(call->lower ? "L" : "U", &n, work, &n, matrix[2], matrix[3], matrix[4],
                      ax_work_behind(call, work, call->n * call->n), &call->lwork, &info, 1);
  ax_matrix_turn(matrix[1], work, n, n, call->dtype);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t n = in->dims[in->rank - 1];
  const int order = (int)n, ask = -1;
  const double x = (double)n;
  ax_lapack_size work = {1, 0};
  int info = 0;
  (void)out;
  routine->name = ax_is_complex(in->dtype) ? "hetrd" : "sytrd";
  routine->code = reduce_one;
  routine->call.n = n;
  routine->call.lower = ((const tridiagonal_params *)params)->lower;
  routine->call.lapack->sytrd("L", &order, NULL, &order, NULL, NULL, NULL, &work, &ask, &info, 1);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (n * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 300 + 10 * x * x + x * x * x / ax_matrix_rate(in->dtype, 10);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- Derivatives --- */

static ax_value reversed(ax_value x) { return ax_rev(x, AX_DIMS(-2, -1)); }
static ax_value reversed_vector(ax_value x) { return ax_is_zero(x) ? x : ax_rev(x, AX_DIMS(-1)); }

/* A matrix with e one row below its diagonal. */
static ax_value below_diagonal(ax_value e, int64_t n) { return ax_matrix_within(ax_vector_to_diagonal(e), 1, 0, n); }

typedef struct tangents {
  ax_value reflectors, d, e, taus; /* reflectors: the form's, below its subdiagonal */
} tangents;

/* x_tangent: of the whole symmetric matrix. */
static tangents of_lower(ax_value form, ax_value d, ax_value e, ax_value taus, ax_value x_tangent, int64_t n) {
  const ax_value below = below_diagonal(e, n), h = ax_add(ax_vector_to_diagonal(d), ax_add(below, ax_matrix_transpose(below)));
  const ax_hessenberg_tangents t = ax_hessenberg_tangents_of(ax_matrix_as(h, form), form, taus, x_tangent);
  const ax_value beside = n > 1 ? ax_diagonal_to_vector(ax_matrix_part(t.h, 1, n - 1, 0, n - 1)) : ax_zero;
  return (tangents){t.form, ax_matrix_reals(ax_diagonal_to_vector(t.h)), n > 1 ? ax_matrix_reals(beside) : ax_zero, t.taus};
}

static tangents of_upper(ax_value form, ax_value d, ax_value e, ax_value taus, ax_value x_tangent, int64_t n) {
  const tangents t = of_lower(reversed(form), ax_rev(d, AX_DIMS(-1)), ax_rev(e, AX_DIMS(-1)), ax_rev(taus, AX_DIMS(-1)),
                              reversed(x_tangent), n);
  return (tangents){ax_is_zero(t.reflectors) ? ax_zero : reversed(t.reflectors), ax_rev(t.d, AX_DIMS(-1)), reversed_vector(t.e),
                    reversed_vector(t.taus)};
}

/* d, e and the reflectors in their triangle; in the other one x. */
static ax_value form_tangent(const tangents *t, ax_value dx, bool lower, int64_t n) {
  const ax_value other = lower ? ax_matrix_upper(dx, 1) : ax_matrix_lower(dx, -1);
  const ax_value form = ax_add(other, ax_matrix_as(ax_vector_to_diagonal(t->d), dx));
  if (n == 1) return form;
  const ax_value below = ax_matrix_as(below_diagonal(t->e, n), dx), beside = lower ? below : ax_matrix_transpose(below);
  return ax_add(form, ax_add(t->reflectors, beside));
}

static void jvp(const ax_jvp_args *args) {
  const tridiagonal_params *p = args->eqn->params;
  const ax_value dx = args->tangent_in[0];
  const ax_value *out = args->out;
  ax_bind(args->eqn->prim, p, args->in, 1, args->out, 4);
  for (uint32_t k = 0; k < 4; k++) args->tangent_out[k] = ax_zero;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_is_zero(dx) || ax_failed() || ax_type_elems(&type) == 0) return;
  const int64_t n = type.dims[type.rank - 1];
  const ax_value whole = ax_matrix_of_triangle(dx, p->lower);
  const tangents t = (p->lower ? of_lower : of_upper)(out[0], out[1], out[2], out[3], whole, n);
  args->tangent_out[0] = form_tangent(&t, dx, p->lower, n);
  args->tangent_out[1] = t.d, args->tangent_out[2] = t.e, args->tangent_out[3] = t.taus;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out], *x = &types[0];
  const ax_type results[] = {types[0], types[1], types[2], types[3], ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims))};
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < 4; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
    return AX_OK;
  }
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_short(&config, "uplo", ((const tridiagonal_params *)eqn->params)->lower ? 'L' : 'U', "ui8");
  const uint32_t made = ax_hlo_lapack(hlo, "sytrd", &config, in, x, 1, results, 5);
  for (uint32_t k = 0; k < 4; k++) out[k] = ax_hlo_or_nan(hlo, made + 4, made + k, &types[k], x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"lower", AX_PARAM_BOOL, offsetof(tridiagonal_params, lower)}};

const ax_prim ax_prim_tridiagonal = {
    .name = "tridiagonal", .kind = AX_LOCAL, .in_count = 1, .out_count = 4,
    AX_PARAMS(params, tridiagonal_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp,
    .linearize = jvp, .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing,
    .shard = ax_shard_batches, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_tridiagonal)(ax_value x, bool lower, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("tridiagonal", 1, 1, out_count, 4, out)) return;
  ax_bind(&ax_prim_tridiagonal, &(tridiagonal_params){lower}, &x, 1, out, 4);
}
