/* Products of Householder reflectors in derivatives, and factorisations that give them. */
#include "linalg/householder.h"

#include <string.h>

#include "axle/linalg.h"

ax_status ax_infer_reflectors(const ax_infer_args *args) {
  const ax_type *a = &args->in[0], *taus = &args->in[1];
  for (uint32_t i = 0; i < args->in_count; i++) {
    const ax_type *x = &args->in[i];
    const uint32_t own = i == 1 ? 1 : 2;
    AX_TRY(ax_infer_matrix(args, i, own));
    if (a->rank < 2 || x->rank - own != a->rank - 2 || memcmp(x->dims, a->dims, (a->rank - 2) * sizeof a->dims[0]) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "the operands need the same leading dimensions");
  }
  const int64_t k = taus->dims[taus->rank - 1], m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  if (k <= m && k <= n) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%lld by %lld numbers do not hold %lld reflectors", (long long)m, (long long)n,
                  (long long)k);
}

/* --- geqp3: of complex numbers it has a second workspace --- */

int64_t ax_pivoted_work(const ax_matrix_call *call) { return call->lwork + (ax_is_complex(call->dtype) ? call->n : 0); }

void ax_pivoted(const ax_matrix_call *call, void *a, int32_t *order, void *taus, void *work, const int *lwork) {
  const int m = (int)call->m, n = (int)call->n, ld = ax_leading(m);
  int info = 0;
  if (ax_is_complex(call->dtype))
    call->lapack->complex_geqp3(&m, &n, a, &ld, order, taus, work, lwork, ax_work_behind(call, work, call->lwork), &info);
  else
    call->lapack->geqp3(&m, &n, a, &ld, order, taus, work, lwork, &info);
}

static ax_value turned(ax_value x) { return ax_matrix_adjoint(x); }

/* v, or its tangent: `diagonal` is 1 or 0. */
static ax_value vectors(ax_value a, int64_t m, int64_t k, bool diagonal) {
  const ax_value below = ax_matrix_lower(ax_matrix_part(a, 0, m, 0, k), -1);
  return diagonal ? ax_add(below, ax_matrix_eye(a, m, k)) : below;
}

/* (1 + d s)^-1 x */
static ax_value unit_solve(ax_value d, ax_value s, ax_value x) {
  return ax_triangular_solve(ax_mul(ax_expand_dims(d, -1), s), x, true, false, false, false, true);
}

ax_reflectors ax_reflectors_of(ax_value a, ax_value taus, ax_value a_tangent, ax_value taus_tangent) {
  const ax_type type = ax_typeof(a), taus_type = ax_typeof(taus);
  ax_reflectors r = {ax_poison, ax_poison, ax_poison, ax_poison};
  if (ax_failed()) return r;
  const int64_t m = type.dims[type.rank - 2], k = taus_type.dims[taus_type.rank - 1];
  r.v = vectors(a, m, k, true);
  r.v_tangent = vectors(ax_instantiate(a_tangent, a), m, k, false);
  const ax_value dd = ax_instantiate(taus_tangent, taus), s = ax_matrix_upper(ax_matmul(turned(r.v), r.v), 1);
  const ax_value product = ax_matmul(turned(r.v_tangent), r.v), ds = ax_matrix_upper(ax_add(product, turned(product)), 1);
  r.t = unit_solve(taus, s, ax_vector_to_diagonal(taus));
  /* (1 + d s) dt = dd (1 - s t) - d ds t */
  const ax_value by_taus = ax_mul(ax_expand_dims(dd, -1), ax_sub(ax_matrix_eye(a, k, k), ax_matmul(s, r.t)));
  const ax_value by_s = ax_mul(ax_expand_dims(taus, -1), ax_matmul(ds, r.t));
  r.t_tangent = unit_solve(taus, s, ax_sub(by_taus, by_s));
  return r;
}

/* a b c x, or x a b c */
static ax_value times(ax_value a, ax_value b, ax_value c, ax_value x, bool left) {
  return left ? ax_matmul(a, ax_matmul(b, ax_matmul(c, x))) : ax_matmul(ax_matmul(ax_matmul(x, a), b), c);
}

ax_value ax_reflectors_tangent(const ax_reflectors *r, ax_value x, bool left, bool transposed) {
  const ax_value t = transposed ? turned(r->t) : r->t, dt = transposed ? turned(r->t_tangent) : r->t_tangent;
  const ax_value vt = turned(r->v);
  const ax_value outer = ax_add(times(r->v_tangent, t, vt, x, left), times(r->v, t, turned(r->v_tangent), x, left));
  return ax_neg(ax_add(outer, times(r->v, dt, vt, x, left)));
}

/* --- Factorisations --- */

ax_value ax_skew_part(ax_value g) {
  const ax_value below = ax_matrix_lower(g, -1), skew = ax_sub(below, turned(below));
  const ax_type type = ax_typeof(g);
  if (ax_failed() || !ax_is_complex(type.dtype)) return skew;
  return ax_add(skew, ax_mul(ax_matrix_imaginary(g), ax_matrix_diagonal(g, type.dims[type.rank - 1], 1, 0)));
}

/* The factors of the first k columns: v, r and y = -t v1^T, v1 being v's first k rows, so that q's first k columns are 1 + v y. */
typedef struct factored {
  int64_t m, n, k;
  ax_value v, v1, q, r, y;
} factored;

static factored factored_of(ax_value form, ax_value taus) {
  const ax_type type = ax_typeof(form);
  factored f = {.v = ax_poison};
  if (ax_failed()) return f;
  f.m = type.dims[type.rank - 2], f.n = type.dims[type.rank - 1], f.k = f.m < f.n ? f.m : f.n;
  f.v = vectors(form, f.m, f.k, true);
  f.v1 = ax_matrix_part(f.v, 0, f.k, 0, f.k);
  f.r = ax_matrix_upper(ax_matrix_part(form, 0, f.k, 0, f.k), 0);
  const ax_value s = ax_matrix_upper(ax_matmul(turned(f.v), f.v), 1);
  f.y = ax_neg(ax_matmul(unit_solve(taus, s, ax_vector_to_diagonal(taus)), turned(f.v1)));
  f.q = ax_add(ax_matrix_eye(form, f.m, f.k), ax_matmul(f.v, f.y));
  return f;
}

/* x y^-1; where the diagonal of y is 0 there is no reflector, and no row of v depends on the column. */
static ax_value by_y(const factored *f, ax_value taus, ax_value x) {
  const ax_value none = ax_matrix_as(ax_eq(taus, ax_integer(0)), taus);
  const ax_value y = ax_add(f->y, ax_vector_to_diagonal(none));
  return ax_triangular_solve(y, x, false, false, false, false, false);
}

/* dq = d(v y): with w = v1^-1 dq1 = (v1^-1 dv1) y + dy, and v1^-1 dv1 strictly lower. */
static void reflectors_by_q(const factored *f, ax_value taus, ax_value dq, ax_value *dv, ax_value *dtaus) {
  const ax_value top = ax_matrix_part(dq, 0, f->k, 0, f->k);
  const ax_value w = ax_triangular_solve(f->v1, top, true, true, false, false, true);
  const ax_value lower = ax_matrix_lower(by_y(f, taus, w), -1), dy = ax_sub(w, ax_matmul(lower, f->y));
  *dtaus = ax_neg(ax_diagonal_to_vector(dy));
  *dv = ax_matmul(f->v1, lower);
  if (f->m == f->k) return;
  const int64_t rest = f->m - f->k;
  const ax_value v2 = ax_matrix_part(f->v, f->k, rest, 0, f->k), dq2 = ax_matrix_part(dq, f->k, rest, 0, f->k);
  *dv = ax_matrix_above(*dv, by_y(f, taus, ax_sub(dq2, ax_matmul(v2, dy))));
}

void ax_reflectors_turned(ax_value form, ax_value taus, ax_value skew, ax_value *form_tangent, ax_value *taus_tangent) {
  const factored f = factored_of(form, taus);
  *form_tangent = *taus_tangent = ax_poison;
  if (!ax_failed()) reflectors_by_q(&f, taus, ax_matmul(f.q, skew), form_tangent, taus_tangent);
}

void ax_reflectors_factored(ax_value form, ax_value taus, ax_value a_tangent, ax_value *form_tangent, ax_value *taus_tangent) {
  const factored f = factored_of(form, taus);
  *form_tangent = *taus_tangent = ax_poison;
  if (ax_failed()) return;
  const ax_value q_turned = turned(f.q);
  const ax_value solved = ax_triangular_solve(f.r, ax_matrix_part(a_tangent, 0, f.m, 0, f.k), false, false, false, false, false);
  const ax_value g = ax_matmul(q_turned, solved), skew = ax_skew_part(g);
  const ax_value dq = ax_add(ax_matmul(f.q, ax_sub(skew, g)), solved);
  ax_value dv, dr = ax_matmul(ax_sub(g, skew), f.r);
  reflectors_by_q(&f, taus, dq, &dv, taus_tangent);
  dr = ax_matrix_upper(dr, 0);
  *form_tangent = ax_add(ax_matrix_padded(dr, f.m, f.k), dv);
  if (f.n == f.k) return;
  const ax_value r2 = ax_matrix_part(form, 0, f.k, f.k, f.n - f.k), da2 = ax_matrix_part(a_tangent, 0, f.m, f.k, f.n - f.k);
  const ax_value dr2 = ax_sub(ax_matmul(q_turned, da2), ax_matmul(skew, r2));
  *form_tangent = ax_matrix_beside(*form_tangent, dr2);
}
