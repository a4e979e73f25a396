/* ormqr: a T[.., r, n], taus T[.., k], c T[.., p, q] -> T[.., p, q]         k <= min(r, n), T f32, f64 or complex
   q c or c q, q the product of the reflectors that a and taus say as the results of geqrf do, or its adjoint; it is not made.
   Parameters: left: q c; else c q. transpose: q^H for q.
   Errors: other dtypes; more taus than rows or columns; leading dimensions that differ; a c without r rows, or, not left, columns.
   Linear in c; transposed, the same with q's transpose, by conjugates of complex numbers. The tangents by a and taus are those of
   householder_product. Batched and cut along leading dimensions, and along the dimension of c that q does not act on.
   Compiled: LAPACK's ormqr, a matrix at a time. */
#include <stdio.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/householder.h"
#include "prim/prims.h"

typedef struct ormqr_params {
  bool left, transpose;
} ormqr_params;

static ax_status infer(const ax_infer_args *args) {
  const ormqr_params *p = args->params;
  const ax_type *a = &args->in[0], *c = &args->in[2];
  AX_TRY(ax_infer_reflectors(args));
  const int64_t given = c->dims[c->rank - (p->left ? 2 : 1)], rows = a->dims[a->rank - 2];
  if (given != rows)
    return ax_error(AX_INVALID_ARGUMENT, "the third operand has %lld %s, and the reflectors %lld elements", (long long)given,
                    p->left ? "rows" : "columns", (long long)rows);
  args->out[0] = ax_array_type(c->dtype, AX_LIST(c->rank, c->dims));
  return AX_OK;
}

static const char *form_of_q(const ax_matrix_call *call) {
  return call->transposed ? "N" : ax_is_complex(call->dtype) ? "C" : "T";
}

/* c lies row by row: LAPACK sees its transpose, and q's transpose acts on the other side, which is the adjoint of q's conjugate. */
static void multiply_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int columns = (int)call->n, rows = (int)call->m, k = (int)call->k, ld = ax_leading(columns);
  const int64_t elems = call->left ? call->m : call->n;
  const int lda = ax_leading(elems);
  void *taus = ax_work_behind(call, work, elems * call->columns);
  int info = 0;
  ax_matrix_turn(work, matrix[0], elems, call->columns, call->dtype);
  memcpy(taus, matrix[1], (size_t)k * ax_dtype_bytes(call->dtype));
  ax_matrix_conjugate(call->dtype, work, elems * call->columns + k);
  memcpy(matrix[3], matrix[2], (size_t)(call->m * call->n) * ax_dtype_bytes(call->dtype));
  call->lapack->ormqr(call->left ? "R" : "L", form_of_q(call), &columns, &rows, &k, work, &lda, taus, matrix[3], &ld,
                      ax_work_behind(call, taus, call->k), &call->lwork, &info, 1, 1);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const ormqr_params *p = params;
  const int64_t m = out->dims[out->rank - 2], n = out->dims[out->rank - 1], k = in[1].dims[in[1].rank - 1];
  const int rows = (int)m, columns = (int)n, reflectors = (int)k, ld = ax_leading(n), lda = ax_leading(p->left ? m : n), ask = -1;
  const double elems = (double)(p->left ? m : n);
  ax_lapack_size work = {1, 0};
  int info = 0;
  routine->name = "ormqr";
  routine->code = multiply_one;
  routine->call.m = m, routine->call.n = n, routine->call.k = k, routine->call.columns = in->dims[in->rank - 1];
  routine->call.left = p->left, routine->call.transposed = p->transpose;
  routine->call.lapack->ormqr(p->left ? "R" : "L", form_of_q(&routine->call), &columns, &rows, &reflectors, NULL, &lda, NULL, NULL,
                              &ld, &work, &ask, &info, 1, 1);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = ((p->left ? m : n) * routine->call.columns + k + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 200 + 3 * elems * (double)k + 2 * (double)(m * n) * (double)k / ax_matrix_rate(in->dtype, 60);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

static void jvp(const ax_jvp_args *args) {
  const ormqr_params *p = args->eqn->params;
  ax_value by_q = ax_zero, by_c = ax_zero;
  args->out[0] = ax_bind1(args->eqn->prim, p, args->in, 3);
  if (!ax_is_zero(args->tangent_in[2]))
    by_c = ax_bind1(args->eqn->prim, p, (ax_value[]){args->in[0], args->in[1], args->tangent_in[2]}, 3);
  if (!ax_is_zero(args->tangent_in[0]) || !ax_is_zero(args->tangent_in[1])) {
    const ax_reflectors r = ax_reflectors_of(args->in[0], args->in[1], args->tangent_in[0], args->tangent_in[1]);
    by_q = ax_reflectors_tangent(&r, args->in[2], p->left, p->transpose);
  }
  args->tangent_out[0] = ax_add_any(by_q, by_c);
}

static void transpose(const ax_transpose_args *args) {
  ormqr_params p = *(const ormqr_params *)args->eqn->params;
  if (args->linear[0] || args->linear[1]) {
    ax_reject(args->eqn->prim, "it is linear in its last operand alone");
    return;
  }
  if (ax_is_zero(args->cotangent[0])) return;
  p.transpose = !p.transpose; /* the adjoint, and the transpose is the conjugate of what it gives for conjugates */
  const ax_value c = ax_conjugated(args->cotangent[0]);
  args->out[2] = ax_conjugated(ax_bind1(args->eqn->prim, &p, (ax_value[]){args->in[0], args->in[1], c}, 3));
}

static void shard(const ax_shard_args *args) {
  const ormqr_params *p = args->eqn->params;
  const ax_type *c = &args->types[args->eqn->in[2]];
  const uint32_t free = c->rank - (p->left ? 1 : 2), factor = ax_factor(args, c->dims[free], AX_FACTOR_ALONG);
  ax_factor_of(&args->in[2], free, factor);
  ax_factor_of(&args->out[0], free, factor);
  ax_shard_batches(args);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ormqr_params *p = eqn->params;
  const ax_type *types = hlo->program->types, in_types[] = {types[eqn->in[0]], types[eqn->in[1]], types[eqn->in[2]]};
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_bool(&config, "left", p->left);
  ax_hlo_add_bool(&config, "transpose", p->transpose);
  out[0] = in[2];
  if (ax_type_elems(&in_types[1]) == 0 || ax_type_elems(&in_types[2]) == 0) return AX_OK;
  out[0] = ax_hlo_lapack(hlo, "ormqr", &config, in, in_types, 3, &types[eqn->out], 1);
  return AX_OK;
}

static const ax_param params[] = {{"left", AX_PARAM_BOOL, offsetof(ormqr_params, left)},
                                  {"transpose", AX_PARAM_BOOL, offsetof(ormqr_params, transpose)}};

const ax_prim ax_prim_ormqr = {
    .name = "ormqr", .kind = AX_LOCAL, .in_count = 3, .out_count = 1, .linear = AX_LINEAR_LAST, .kinds = AX_KINDS_SUM,
    AX_PARAMS(params, ormqr_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower,
    .complex = lower, .hlo = hlo,
};

ax_value ax_ormqr(ax_value a, ax_value taus, ax_value c, bool left, bool transpose) {
  const ormqr_params p = {left, transpose};
  return ax_bind1(&ax_prim_ormqr, &p, (ax_value[]){a, taus, c}, 3);
}
