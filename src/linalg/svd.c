/* svd: x T[.., m, n] -> s R[.., k], with compute_uv also u T[.., m, c], vt T[.., r, n]         k = min(m, n), T f32, f64 or
                                                                                 complex, R that of T's real parts
   x = u diag(s) vt, u^H u = 1, vt vt^H = 1, s descends and is not negative. c and r are k; with full_matrices c = m and r = n. NaN
   where x has NaN or infinities.
   Parameters: full_matrices, compute_uv.
   Errors: other dtypes; fewer than two dimensions.
   With g = u^H dx v: ds is the real part of the diagonal of g, du = u (f (g s + s g^H)) + (1 - u u^H) dx v / s, dv = v (f (s g +
   g^H s)) + (1 - v v^H) dx^H u / s, f[i, j] = 1 / (s[j]^2 - s[i]^2), 0 on the diagonal; du has also u i im(diag(g)) / s. Not finite
   where singular values are equal, or 0. The columns that full_matrices adds stay at right angles to the others and turn as little
   as they can: du2 = -u du^H u2. Batched and cut along
   leading dimensions.
   Compiled: LAPACK's gesdd, a matrix at a time; without vectors, where none are used. */
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct svd_params {
  bool full_matrices, compute_uv;
} svd_params;

static uint32_t count_outs(const void *params) { return ((const svd_params *)params)->compute_uv ? 3 : 1; }

static ax_status infer(const ax_infer_args *args) {
  const svd_params *p = args->params;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = ax_least(m, n);
  args->out[0] = ax_matrix_parts_type(x, 1);
  args->out[0].dims[x->rank - 2] = k;
  if (!p->compute_uv) return AX_OK;
  for (uint32_t i = 1; i < 3; i++) args->out[i] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[1].dims[x->rank - 1] = p->full_matrices ? m : k;
  args->out[2].dims[x->rank - 2] = p->full_matrices ? n : k;
  return AX_OK;
}

/* --- One matrix: the workspace has x, u and vt column by column, then LAPACK's --- */

typedef struct space {
  int64_t u_columns, vt_rows;
  void *x, *u, *vt, *rest, *reals;
  int *numbers;
} space;

/* Real numbers that LAPACK works with besides. */
static int64_t reals(const ax_matrix_call *call) {
  const int64_t less = call->k, more = call->m > call->n ? call->m : call->n;
  const int64_t by_less = 5 * less * less + 5 * less, by_more = 2 * more * less + 2 * less * less + less;
  if (!ax_is_complex(call->dtype)) return 0;
  return !call->vectors ? 7 * less : by_less > by_more ? by_less : by_more;
}

static space space_of(const ax_matrix_call *call, void *work) {
  space s = {.u_columns = call->full ? call->m : call->k, .vt_rows = call->full ? call->n : call->k, .x = work};
  s.u = ax_work_behind(call, s.x, call->m * call->n);
  s.vt = ax_work_behind(call, s.u, call->vectors ? call->m * s.u_columns : 0);
  s.rest = ax_work_behind(call, s.vt, call->vectors ? s.vt_rows * call->n : 0);
  s.reals = ax_work_behind(call, s.rest, call->lwork);
  s.numbers = ax_parts_behind(call, s.reals, reals(call));
  return s;
}

/* lwork: call->lwork, or -1: rest is where the number goes that LAPACK asks for. */
static int decompose(const ax_matrix_call *call, const space *s, void *values, const int *lwork) {
  const int m = (int)call->m, n = (int)call->n, ld = ax_leading(m), ldvt = ax_leading(s->vt_rows);
  const char *job = !call->vectors ? "N" : call->full ? "A" : "S";
  int info = 0;
  if (ax_is_complex(call->dtype))
    call->lapack->complex_gesdd(job, &m, &n, s->x, &ld, values, s->u, &ld, s->vt, &ldvt, s->rest, lwork, s->reals, s->numbers,
                                &info, 1);
  else
    call->lapack->gesdd(job, &m, &n, s->x, &ld, values, s->u, &ld, s->vt, &ldvt, s->rest, lwork, s->numbers, &info, 1);
  return info;
}

/* Of matrices without rows or columns, which LAPACK leaves alone. */
static void factor_none(const ax_matrix_call *call, void *const *matrix, const space *s) {
  if (!call->vectors) return;
  ax_matrix_unit(call, matrix[2], call->m, s->u_columns);
  ax_matrix_unit(call, matrix[3], s->vt_rows, call->n);
}

static void give_nan(const ax_matrix_call *call, void *const *matrix, const space *s) {
  ax_matrix_nan(ax_part_dtype(call->dtype), matrix[1], call->k);
  if (!call->vectors) return;
  ax_matrix_nan(call->dtype, matrix[2], call->m * s->u_columns);
  ax_matrix_nan(call->dtype, matrix[3], s->vt_rows * call->n);
}

/* matrix: x; s, u, vt */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const space s = space_of(call, work);
  int info = 1;
  if (call->k == 0) {
    factor_none(call, matrix, &s);
    return;
  }
  ax_matrix_turn(s.x, matrix[0], call->m, call->n, call->dtype);
  if (ax_matrix_finite(call, matrix[0], call->m * call->n)) info = decompose(call, &s, matrix[1], &call->lwork);
  if (info != 0) {
    give_nan(call, matrix, &s);
  } else if (call->vectors) {
    ax_matrix_turn(matrix[2], s.u, s.u_columns, call->m, call->dtype);
    ax_matrix_turn(matrix[3], s.vt, call->n, s.vt_rows, call->dtype);
  }
}

static int asked(const ax_matrix_call *call, int64_t vt_rows) {
  const int ask = -1;
  ax_lapack_size work = {1, 0};
  const space nowhere = {.vt_rows = vt_rows, .rest = &work};
  (void)decompose(call, &nowhere, NULL, &ask);
  return ax_lapack_asked(call->dtype, &work);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const svd_params *p = params;
  ax_matrix_call *call = &routine->call;
  (void)out;
  routine->name = "gesdd";
  routine->code = factor_one;
  call->m = in->dims[in->rank - 2], call->n = in->dims[in->rank - 1], call->k = ax_least(call->m, call->n);
  call->full = p->full_matrices, call->vectors = p->compute_uv;
  const space s = space_of(call, NULL);
  call->lwork = asked(call, s.vt_rows);
  const int64_t vectors = call->vectors ? call->m * s.u_columns + s.vt_rows * call->n : 0, elems = call->m * call->n;
  routine->work_bytes = (elems + vectors + call->lwork) * (int64_t)ax_dtype_bytes(in->dtype) +
                        reals(call) * (int64_t)ax_dtype_bytes(ax_part_dtype(in->dtype)) + 8 * call->k * (int64_t)sizeof(int);
  const double flops = (double)(elems + vectors) * (double)call->k;
  routine->time = 2000 + 30 * (double)(elems + vectors) + flops / ax_matrix_rate(in->dtype, 6 + (double)call->k / 50);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* Values alone, where no vectors are needed. */
static ax_status prune(const ax_prune_args *args) {
  const svd_params *p = args->eqn->params;
  const bool vectors = p->compute_uv && (args->out[1] || args->out[2]);
  args->in[0] = true;
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = k == 0 || vectors;
  if (args->params != NULL) *(svd_params *)args->params = (svd_params){p->full_matrices, vectors};
  return AX_OK;
}

/* --- Derivatives --- */

static ax_value turned(ax_value x) { return ax_matrix_adjoint(x); }

/* 1 / (s[j]^2 - s[i]^2), 0 on the diagonal. */
static ax_value apart(ax_value s, int64_t k) {
  const ax_value row = ax_expand_dims(s, -2), column = ax_expand_dims(s, -1), eye = ax_matrix_eye(s, k, k);
  const ax_value squares = ax_mul(ax_add(row, column), ax_sub(row, column));
  return ax_sub(ax_div(ax_real(1), ax_add(squares, eye)), eye);
}

/* (1 - u u^H) x / s */
static ax_value beside(ax_value u, ax_value x, ax_value s) {
  return ax_div(ax_sub(x, ax_matmul(u, ax_matmul(turned(u), x))), ax_expand_dims(s, -2));
}

/* u i im(diag(g)) / s; where a value is 0, as if it were 1 */
static ax_value turned_alone(ax_value u, ax_value g, ax_value s) {
  const ax_value around = ax_matrix_imaginary(ax_diagonal_to_vector(g));
  return ax_mul(u, ax_expand_dims(ax_div(around, ax_where(ax_eq(s, ax_integer(0)), ax_integer(1), s)), -2));
}

/* The tangent of all columns by that of the first k. */
static ax_value completed(ax_value all, ax_value first, ax_value dfirst, int64_t m, int64_t k) {
  const ax_value rest = ax_matrix_part(all, 0, m, k, m - k);
  return ax_matrix_beside(dfirst, ax_neg(ax_matmul(first, ax_matmul(turned(dfirst), rest))));
}

static void vectors_tangents(const ax_jvp_args *args, ax_value u, ax_value v, ax_value g, int64_t m, int64_t n) {
  const svd_params *p = args->eqn->params;
  const ax_value dx = args->tangent_in[0], s = ax_matrix_as(args->out[0], dx);
  const ax_value row = ax_expand_dims(s, -2), column = ax_expand_dims(s, -1);
  const int64_t k = ax_least(m, n);
  const ax_value f = ax_matrix_as(apart(args->out[0], k), dx), gs = ax_mul(g, row), sg = ax_mul(column, g);
  ax_value du = ax_matmul(u, ax_mul(f, ax_add(gs, turned(gs)))), dv = ax_matmul(v, ax_mul(f, ax_add(sg, turned(sg))));
  if (!ax_failed() && ax_is_complex(ax_typeof(dx).dtype)) du = ax_add(du, turned_alone(u, g, s));
  if (m > n) du = ax_add(du, beside(u, ax_matmul(dx, v), s));
  if (n > m) dv = ax_add(dv, beside(v, ax_matmul(turned(dx), u), s));
  if (p->full_matrices && m > n) du = completed(args->out[1], u, du, m, k);
  if (p->full_matrices && n > m) dv = completed(turned(args->out[2]), v, dv, n, k);
  args->tangent_out[1] = du;
  args->tangent_out[2] = turned(dv);
}

static void jvp(const ax_jvp_args *args) {
  const svd_params *p = args->eqn->params, with = {p->full_matrices, true};
  const uint32_t count = count_outs(p);
  const ax_type type = ax_typeof(args->in[0]);
  ax_value all[3];
  for (uint32_t i = 0; i < count; i++) args->tangent_out[i] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) {
    ax_bind(args->eqn->prim, p, args->in, 1, args->out, count);
    return;
  }
  ax_bind(args->eqn->prim, p->compute_uv ? &with : &(svd_params){false, true}, args->in, 1, all, 3);
  memcpy(args->out, all, count * sizeof all[0]);
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], k = ax_least(m, n);
  const ax_value u = ax_matrix_part(all[1], 0, m, 0, k), v = turned(ax_matrix_part(all[2], 0, k, 0, n));
  const ax_value g = ax_matmul(ax_matmul(turned(u), args->tangent_in[0]), v);
  args->tangent_out[0] = ax_matrix_reals(ax_diagonal_to_vector(g));
  if (p->compute_uv) vectors_tangents(args, u, v, g, m, n);
}

/* --- hlo --- */

static uint32_t unit(ax_hlo *hlo, const ax_type *type) {
  const uint32_t same = ax_hlo_matrix_compare(hlo, type, "EQ", 0);
  return ax_hlo_op(hlo, "stablehlo.convert", &same, 1, NULL, type, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const svd_params *p = eqn->params, with = {p->full_matrices, true};
  const ax_type *x = &hlo->program->types[eqn->in[0]];
  const uint32_t count = count_outs(p);
  ax_type types[3] = {{0}}, results[5];
  AX_TRY(infer(&(ax_infer_args){.params = &with, .in = x, .in_count = 1, .out = types, .out_count = 3}));
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < count; k++) out[k] = k == 0 ? ax_hlo_zeros(hlo, &types[k]) : unit(hlo, &types[k]);
    return AX_OK;
  }
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_short(&config, "mode", !p->compute_uv ? 'N' : p->full_matrices ? 'A' : 'S', "ui8");
  results[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  memcpy(&results[1], types, sizeof types);
  results[4] = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims));
  const uint32_t made = ax_hlo_lapack(hlo, "gesdd", &config, in, results, 1, results, 5);
  for (uint32_t k = 0; k < count; k++) out[k] = ax_hlo_or_nan(hlo, made + 4, made + 1 + k, &types[k], x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"full_matrices", AX_PARAM_BOOL, offsetof(svd_params, full_matrices)},
                                  {"compute_uv", AX_PARAM_BOOL, offsetof(svd_params, compute_uv)}};

const ax_prim ax_prim_svd = {
    .name = "svd", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, svd_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .prune = prune, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

/* The primitive's results with the values first. */
void (ax_svd)(ax_value x, bool full_matrices, bool compute_uv, uint32_t out_count, ax_value *out) {
  const svd_params p = {full_matrices, compute_uv};
  if (!ax_lists_fit("svd", 1, 1, out_count, count_outs(&p), out)) return;
  ax_bind(&ax_prim_svd, &p, &x, 1, out, count_outs(&p));
  if (!compute_uv) return;
  const ax_value s = out[0];
  out[0] = out[1];
  out[1] = s;
}
