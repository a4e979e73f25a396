/* Linear systems by conjugate gradients, BiCGSTAB and GMRES, as jax.scipy.sparse.linalg solves them: loops in the solver of a
   custom_linear_solve. A vector is a list of arrays, as b is. */
#include <math.h>
#include <string.h>

#include "axle/numpy.h"
#include "axle/solvers.h"
#include "axle/transform.h"
#include "ir/dtype.h"
#include "lib/checked.h"

typedef struct krylov {
  const char *name;
  ax_fn A, M; /* M.function NULL: x itself */
  ax_value_list x0;
  double tol, atol;
  int64_t maxiter, restart;
  uint32_t count; /* arrays of a vector */
  ax_dtype dtype;
} krylov;

/* --- Vectors --- */

static ax_value *new_vector(const krylov *s) { return ax_trace_alloc(s->count * sizeof(ax_value)); }

static ax_value number(const krylov *s, double value) { return (ax_full)(s->dtype, 0, NULL, value); }

static ax_value dot(const krylov *s, const ax_value *x, const ax_value *y) {
  ax_value sum = ax_vdot(x[0], y[0]);
  for (uint32_t i = 1; i < s->count; i++) sum = ax_add(sum, ax_vdot(x[i], y[i]));
  return sum;
}

/* out = x + a y; out may be one of them. */
static void add_scaled(const krylov *s, const ax_value *x, ax_value a, const ax_value *y, ax_value *out) {
  for (uint32_t i = 0; i < s->count; i++) out[i] = ax_add(x[i], ax_mul(a, y[i]));
}

static void sub_scaled(const krylov *s, const ax_value *x, ax_value a, const ax_value *y, ax_value *out) {
  for (uint32_t i = 0; i < s->count; i++) out[i] = ax_sub(x[i], ax_mul(a, y[i]));
}

static void choose(const krylov *s, ax_value which, const ax_value *x, const ax_value *y, ax_value *out) {
  for (uint32_t i = 0; i < s->count; i++) out[i] = ax_where(which, x[i], y[i]);
}

/* A or M of x. Results that are not as x fail the trace. */
static void apply(const krylov *s, ax_fn f, const char *what, const ax_value *x, ax_value *out) {
  for (uint32_t i = 0; i < s->count; i++) out[i] = f.function == NULL ? x[i] : ax_poison;
  if (f.function == NULL || ax_failed()) return;
  const ax_value *made = ax_builder_call(f, x);
  for (uint32_t i = 0; made != NULL && i < s->count; i++) {
    ax_type type, wanted = ax_typeof(x[i]);
    if (!ax_operand(s->name, made[i], &type)) return;
    if (type.dtype != wanted.dtype || type.rank != wanted.rank ||
        memcmp(type.dims, wanted.dims, type.rank * sizeof type.dims[0]) != 0) {
      (void)ax_reject_as(s->name, "%s: result %u is %s; x is %s", what, i, ax_operand_string(&type), ax_operand_string(&wanted));
      return;
    }
    out[i] = made[i];
  }
}

/* out = b - A x */
static void residual(const krylov *s, const ax_value *b, const ax_value *x, ax_value *out) {
  ax_value *made = new_vector(s);
  if (made == NULL) return;
  apply(s, s->A, "A", x, made);
  for (uint32_t i = 0; i < s->count; i++) out[i] = ax_sub(b[i], made[i]);
}

static void begin(const krylov *s, const ax_value *b, ax_value *x) {
  for (uint32_t i = 0; i < s->count; i++) x[i] = s->x0.count > 0 ? ax_stop_gradient(s->x0.v[i]) : ax_full_like(b[i], 0);
}

static ax_value square_bound(const krylov *s, const ax_value *b) {
  return ax_max(ax_mul(dot(s, b, b), ax_real(s->tol * s->tol)), ax_real(s->atol * s->atol));
}

typedef struct loop { /* a solver's loop, and what it uses from around it */
  const krylov *s;
  ax_value bound;        /* the square at which it is done; of gmres the length */
  const ax_value *other; /* bicgstab: the residual at first; gmres: b */
  ax_value inner_bound;
} loop;

/* --- Conjugate gradients. Carried: x, r, p, gamma = r M r, how many rounds --- */

static AX_BODY(cg_goes_on) {
  const loop *l = context;
  const krylov *s = l->s;
  const ax_value *r = in + s->count, gamma = in[3 * s->count], k = in[3 * s->count + 1];
  ax_value left = s->M.function == NULL ? gamma : dot(s, r, r);
  out[0] = ax_and(ax_gt(left, l->bound), ax_lt(k, ax_integer(s->maxiter)));
}

static AX_BODY(cg_round) {
  const krylov *s = ((const loop *)context)->s;
  const uint32_t n = s->count;
  const ax_value *x = in, *r = in + n, *p = in + 2 * n, gamma = in[3 * n];
  ax_value *Ap = new_vector(s), *z = new_vector(s);
  if (Ap == NULL || z == NULL) return;
  apply(s, s->A, "A", p, Ap);
  ax_value alpha = ax_div(gamma, dot(s, p, Ap));
  add_scaled(s, x, alpha, p, out);
  sub_scaled(s, r, alpha, Ap, out + n);
  apply(s, s->M, "M", out + n, z);
  out[3 * n] = dot(s, out + n, z);
  add_scaled(s, z, ax_div(out[3 * n], gamma), p, out + 2 * n);
  out[3 * n + 1] = ax_add(in[3 * n + 1], ax_integer(1));
}

static AX_BODY(cg_solve) {
  const krylov *s = context;
  const uint32_t n = s->count, carried = 3 * n + 2;
  loop l = {.s = s, .bound = square_bound(s, in)};
  ax_value *carry = ax_trace_alloc(2 * carried * sizeof carry[0]);
  if (carry == NULL) return;
  begin(s, in, carry);
  residual(s, in, carry, carry + n);
  apply(s, s->M, "M", carry + n, carry + 2 * n);
  carry[3 * n] = dot(s, carry + n, carry + 2 * n);
  carry[3 * n + 1] = (ax_full)(AX_S64, 0, NULL, 0);
  (ax_while)(AX_CLOSURE(cg_goes_on, carried, 1, &l), AX_CLOSURE(cg_round, carried, carried, &l), carried, carry, carried,
             carry + carried);
  for (uint32_t i = 0; i < n; i++) out[i] = carry[carried + i];
}

/* --- BiCGSTAB. Carried: x, r, p, q = A M p, alpha, omega, rho, how many rounds, which is below 0 after a breakdown --- */

static AX_BODY(bicgstab_goes_on) {
  const loop *l = context;
  const krylov *s = l->s;
  const ax_value *r = in + s->count, k = in[4 * s->count + 3];
  out[0] = ax_and(ax_and(ax_gt(dot(s, r, r), l->bound), ax_lt(k, ax_integer(s->maxiter))), ax_ge(k, ax_integer(0)));
}

static AX_BODY(bicgstab_round) {
  const loop *l = context;
  const krylov *s = l->s;
  const uint32_t n = s->count;
  const ax_value *x = in, *r = in + n, *p = in + 2 * n, *q = in + 3 * n, *numbers = in + 4 * n, *first = l->other;
  ax_value *room = ax_trace_alloc(7 * n * sizeof room[0]), *p_hat = room, *half = room + n, *half_hat = room + 2 * n,
           *t = room + 3 * n;
  ax_value *x_half = room + 4 * n, *x_whole = room + 5 * n, *r_whole = room + 6 * n;
  if (room == NULL) return;
  ax_value rho = dot(s, first, r), beta = ax_mul(ax_div(rho, numbers[2]), ax_div(numbers[0], numbers[1]));
  sub_scaled(s, p, numbers[1], q, half);
  add_scaled(s, r, beta, half, out + 2 * n);
  apply(s, s->M, "M", out + 2 * n, p_hat);
  apply(s, s->A, "A", p_hat, out + 3 * n);
  ax_value alpha = ax_div(rho, dot(s, first, out + 3 * n));
  sub_scaled(s, r, alpha, out + 3 * n, half);
  ax_value early = ax_lt(dot(s, half, half), l->bound);
  apply(s, s->M, "M", half, half_hat);
  apply(s, s->A, "A", half_hat, t);
  ax_value omega = ax_div(dot(s, t, half), dot(s, t, t));
  add_scaled(s, x, alpha, p_hat, x_half);
  add_scaled(s, x_half, omega, half_hat, x_whole);
  sub_scaled(s, half, omega, t, r_whole);
  choose(s, early, x_half, x_whole, out);
  choose(s, early, half, r_whole, out + n);
  ax_value stuck = ax_or(ax_or(ax_eq(omega, ax_real(0)), ax_eq(alpha, ax_real(0))), ax_eq(rho, ax_real(0)));
  out[4 * n] = alpha, out[4 * n + 1] = omega, out[4 * n + 2] = rho;
  out[4 * n + 3] = ax_where(stuck, ax_integer(-1), ax_add(numbers[3], ax_integer(1)));
}

static AX_BODY(bicgstab_solve) {
  const krylov *s = context;
  const uint32_t n = s->count, carried = 4 * n + 4;
  ax_value *carry = ax_trace_alloc(2 * carried * sizeof carry[0]);
  if (carry == NULL) return;
  begin(s, in, carry);
  residual(s, in, carry, carry + n);
  loop l = {.s = s, .bound = square_bound(s, in), .other = carry + n};
  for (uint32_t i = 0; i < 2 * n; i++) carry[2 * n + i] = carry[n + i % n];
  for (uint32_t i = 0; i < 3; i++) carry[4 * n + i] = number(s, 1);
  carry[4 * n + 3] = (ax_full)(AX_S64, 0, NULL, 0);
  (ax_while)(AX_CLOSURE(bicgstab_goes_on, carried, 1, &l), AX_CLOSURE(bicgstab_round, carried, carried, &l), carried, carry,
             carried, carry + carried);
  for (uint32_t i = 0; i < n; i++) out[i] = carry[carried + i];
}

/* --- GMRES. A search makes an orthonormal basis V of M A's powers of the residual, and H, by which M A V[k] = V H[k]. Rotations make
   H a triangle R as it grows; then |g[k]| is how far the best x in the basis is off. Carried by a search: V, R, g, cosines and
   sines of the rotations, how many vectors --- */

static ax_value one_of(ax_value x, ax_value k) { return (ax_squeeze)(ax_dynamic_slice_in_dim(x, k, 1, 0), 1, (int64_t[]){0}); }
static ax_value with_one(ax_value x, ax_value value, ax_value k) {
  return ax_dynamic_update_slice_in_dim(x, ax_expand_dims(value, 0), k, 0);
}

/* For each vector of the basis, its product with w: T[restart + 1]. */
static ax_value against(const krylov *s, const ax_value *basis, const ax_value *w) {
  ax_value sum = ax_poison;
  for (uint32_t i = 0; i < s->count; i++) {
    int64_t axes[AX_MAX_RANK], of_w[AX_MAX_RANK];
    const uint32_t rank = ax_typeof(w[i]).rank;
    for (uint32_t d = 0; d < rank; d++) axes[d] = d + 1, of_w[d] = d;
    ax_value part = (ax_tensordot)(basis[i], w[i], rank, axes, rank, of_w);
    sum = i == 0 ? part : ax_add(sum, part);
  }
  return sum;
}

/* out = w + the sum of the basis by these factors, of its first vectors. */
static void add_basis(const krylov *s, const ax_value *w, ax_value factors, const ax_value *basis, ax_value *out) {
  const int64_t zero = 0, size = ax_typeof(factors).dims[0];
  for (uint32_t i = 0; i < s->count; i++)
    out[i] = ax_add(w[i], (ax_tensordot)(factors, ax_slice_in_dim(basis[i], 0, size, 1, 0), 1, &zero, 1, &zero));
}

typedef struct rotations {
  ax_value cosines, sines;
} rotations;

static AX_BODY(rotate) { /* (i, h) -> h */
  const rotations *by = context;
  const ax_value i = in[0], h = in[1], next = ax_add(i, ax_integer(1));
  ax_value c = one_of(by->cosines, i), s = one_of(by->sines, i), a = one_of(h, i), b = one_of(h, next);
  ax_value made = with_one(h, ax_add(ax_mul(c, a), ax_mul(s, b)), i);
  out[0] = with_one(made, ax_sub(ax_mul(c, b), ax_mul(s, a)), next);
}

static AX_BODY(search_goes_on) {
  const loop *l = context;
  const ax_value *numbers = in + l->s->count, k = numbers[4];
  out[0] = ax_and(ax_lt(k, ax_integer(l->s->restart)), ax_gt(ax_abs(one_of(numbers[1], k)), l->inner_bound));
}

/* w less its part in the basis, twice, since once leaves what rounding left; that part. */
static ax_value orthogonalise(const krylov *s, const ax_value *basis, ax_value *w) {
  ax_value h = ax_poison;
  for (int round = 0; round < 2; round++) {
    ax_value part = against(s, basis, w);
    add_basis(s, w, ax_neg(part), basis, w);
    h = round == 0 ? part : ax_add(h, part);
  }
  return h;
}

static AX_BODY(search_round) {
  const loop *l = context;
  const krylov *s = l->s;
  const uint32_t n = s->count;
  const ax_value *basis = in, R = in[n], g = in[n + 1], k = in[n + 4], next = ax_add(k, ax_integer(1));
  ax_value *v = new_vector(s), *w = new_vector(s), *Av = new_vector(s);
  if (v == NULL || w == NULL || Av == NULL) return;
  for (uint32_t i = 0; i < n; i++) v[i] = one_of(basis[i], k);
  apply(s, s->A, "A", v, Av);
  apply(s, s->M, "M", Av, w);
  ax_value before = ax_sqrt(dot(s, w, w)), h = orthogonalise(s, basis, w), length = ax_sqrt(dot(s, w, w));
  ax_value in_basis = ax_le(length, ax_mul(before, ax_real(ldexp(1, -ax_float_form_of(s->dtype).fraction))));
  length = ax_where(in_basis, ax_real(0), length);
  ax_value scale = ax_where(in_basis, ax_real(0), ax_div(ax_real(1), ax_where(in_basis, ax_real(1), length)));
  for (uint32_t i = 0; i < n; i++) out[i] = with_one(basis[i], ax_mul(w[i], scale), next);
  rotations by = {in[n + 2], in[n + 3]};
  ax_value start[] = {with_one(h, length, next)}, rotated[1];
  (ax_fori_loop)((ax_full)(AX_S64, 0, NULL, 0), k, AX_CLOSURE(rotate, 2, 1, &by), 1, start, 1, rotated);
  ax_value a = one_of(rotated[0], k), long_side = ax_sqrt(ax_add(ax_square(a), ax_square(length))),
           flat = ax_eq(long_side, ax_real(0));
  ax_value divisor = ax_where(flat, ax_real(1), long_side);
  ax_value cosine = ax_where(flat, ax_real(1), ax_div(a, divisor)), sine = ax_div(length, divisor), at = one_of(g, k);
  out[n] =
      ax_dynamic_update_slice_in_dim(R, ax_expand_dims(with_one(with_one(rotated[0], long_side, k), number(s, 0), next), 1), k, 1);
  out[n + 1] = with_one(with_one(g, ax_mul(cosine, at), k), ax_neg(ax_mul(sine, at)), next);
  out[n + 2] = with_one(by.cosines, cosine, k);
  out[n + 3] = with_one(by.sines, sine, k);
  out[n + 4] = next;
}

typedef struct triangle {
  ax_value R, g;
  int64_t size;
} triangle;

static AX_BODY(substitute) { /* (i, y) -> y, from the last row to the first */
  const triangle *t = context;
  ax_value row_number = ax_sub(ax_integer(t->size - 1), in[0]), row = one_of(t->R, row_number);
  ax_value pivot = one_of(row, row_number), none = ax_eq(pivot, ax_real(0));
  ax_value value = ax_div(ax_sub(one_of(t->g, row_number), ax_vdot(row, in[1])), ax_where(none, ax_real(1), pivot));
  out[0] = with_one(in[1], ax_where(none, ax_real(0), value), row_number);
}

/* The factors of the basis: R y = g in the rows that the search has filled. */
static ax_value factors_of(const krylov *s, const ax_value *numbers) {
  const int64_t size = s->restart;
  ax_value filled = ax_lt((ax_iota)(AX_S64, 1, &size, 0), numbers[4]);
  triangle t = {ax_slice_in_dim(numbers[0], 0, size, 1, 0),
                ax_where(filled, ax_slice_in_dim(numbers[1], 0, size, 1, 0), ax_real(0)), size};
  ax_value start[] = {(ax_full)(s->dtype, 1, &size, 0)}, y[1];
  (ax_fori_loop)(ax_integer(0), ax_integer(size), AX_CLOSURE(substitute, 2, 1, &t), 1, start, 1, y);
  return y[0];
}

static AX_BODY(gmres_goes_on) {
  const loop *l = context;
  const uint32_t n = l->s->count;
  out[0] = ax_and(ax_gt(in[2 * n], l->bound), ax_lt(in[2 * n + 1], ax_integer(l->s->maxiter)));
}

/* r = M (b - A x), and its length. */
static ax_value preconditioned(const krylov *s, const ax_value *b, const ax_value *x, ax_value *r) {
  ax_value *raw = new_vector(s);
  if (raw == NULL) return ax_poison;
  residual(s, b, x, raw);
  apply(s, s->M, "M", raw, r);
  return ax_sqrt(dot(s, r, r));
}

/* Carried: x, r, its length, how many searches. */
static AX_BODY(gmres_round) {
  loop *l = context;
  const krylov *s = l->s;
  const uint32_t n = s->count, carried = n + 5;
  const ax_value *x = in, *r = in + n, length = in[2 * n];
  const int64_t size = s->restart, more = size + 1, square[] = {more, size};
  ax_value *carry = ax_trace_alloc(2 * carried * sizeof carry[0]), zero = (ax_full)(AX_S64, 0, NULL, 0);
  if (carry == NULL) return;
  for (uint32_t i = 0; i < n; i++) {
    ax_type type = ax_typeof(r[i]);
    int64_t dims[AX_MAX_RANK + 1] = {more};
    memcpy(dims + 1, type.dims, type.rank * sizeof dims[0]);
    carry[i] = with_one((ax_full)(s->dtype, type.rank + 1, dims, 0), ax_div(r[i], length), zero);
  }
  carry[n] = (ax_full)(s->dtype, 2, square, 0);
  carry[n + 1] = with_one((ax_full)(s->dtype, 1, &more, 0), length, zero);
  carry[n + 2] = carry[n + 3] = (ax_full)(s->dtype, 1, &size, 0);
  carry[n + 4] = zero;
  (ax_while)(AX_CLOSURE(search_goes_on, carried, 1, l), AX_CLOSURE(search_round, carried, carried, l), carried, carry, carried,
             carry + carried);
  if (ax_failed()) return;
  add_basis(s, x, factors_of(s, carry + carried + n), carry + carried, out);
  out[2 * n] = preconditioned(s, l->other, out, out + n);
  out[2 * n + 1] = ax_add(in[2 * n + 1], ax_integer(1));
}

static AX_BODY(gmres_solve) {
  const krylov *s = context;
  const uint32_t n = s->count, carried = 2 * n + 2;
  ax_value *carry = ax_trace_alloc(2 * carried * sizeof carry[0]), *Mb = new_vector(s), b_length = ax_sqrt(dot(s, in, in));
  if (carry == NULL || Mb == NULL) return;
  apply(s, s->M, "M", in, Mb);
  loop l = {.s = s, .bound = ax_max(ax_mul(b_length, ax_real(s->tol)), ax_real(s->atol)), .other = in};
  ax_value none = ax_eq(b_length, ax_real(0));
  l.inner_bound = ax_mul(ax_sqrt(dot(s, Mb, Mb)),
                         ax_where(none, ax_real(1), ax_min(ax_div(l.bound, ax_where(none, ax_real(1), b_length)), ax_real(1))));
  begin(s, in, carry);
  carry[2 * n] = preconditioned(s, in, carry, carry + n);
  carry[2 * n + 1] = (ax_full)(AX_S64, 0, NULL, 0);
  (ax_while)(AX_CLOSURE(gmres_goes_on, carried, 1, &l), AX_CLOSURE(gmres_round, carried, carried, &l), carried, carry, carried,
             carry + carried);
  for (uint32_t i = 0; i < n; i++) out[i] = carry[carried + i];
}

/* --- The functions --- */

static AX_BODY(transposed) {
  const ax_fn *f = context;
  ax_value *zeros = ax_trace_alloc(2 * f->in_count * sizeof zeros[0]);
  if (zeros == NULL) return;
  for (uint32_t i = 0; i < f->in_count; i++) zeros[i] = ax_full_like(in[i], 0);
  (ax_vjp)(*f, AX_FIRST(f->in_count), f->in_count, zeros, f->in_count, in, f->in_count, zeros + f->in_count, f->in_count, out);
}

static bool take_vector(krylov *s, const ax_value *b, int64_t *unknowns) {
  *unknowns = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    ax_type type, first;
    if (!ax_operand(s->name, b[i], &type) || !ax_operand(s->name, b[0], &first)) return false;
    if (!ax_is_float(type.dtype) || type.dtype != first.dtype)
      return ax_reject_as(s->name, "b%u is %s; all of b must be of one dtype, a float", i, ax_operand_string(&type)), false;
    s->dtype = type.dtype;
    *unknowns += ax_type_elems(&type);
  }
  return true;
}

static bool take_options(krylov *s, const ax_krylov_options *options, const ax_value *b, int64_t unknowns) {
  const ax_krylov_options given = options != NULL ? *options : (ax_krylov_options){0};
  if (!(given.tol >= 0) || !(given.atol >= 0) || given.maxiter < 0 || given.restart < 0)
    return ax_reject_as(s->name, "tol, atol, maxiter and restart must not be below 0"), false;
  s->tol = given.tol > 0 ? given.tol : 1e-5;
  s->atol = given.atol;
  s->maxiter = given.maxiter > 0 ? given.maxiter : 10 * unknowns;
  s->restart = given.restart > 0 ? given.restart : 20;
  if (s->restart > unknowns) s->restart = unknowns;
  s->M = given.M;
  s->x0 = given.x0;
  if (s->M.function != NULL && (s->M.in_count != s->count || s->M.out_count != s->count))
    return ax_reject_as(s->name, "M takes %u values and gives %u; b has %u", s->M.in_count, s->M.out_count, s->count), false;
  if (s->x0.count != 0 && s->x0.count != s->count)
    return ax_reject_as(s->name, "x0 has %u values, and b %u", s->x0.count, s->count), false;
  for (uint32_t i = 0; i < s->x0.count; i++) {
    ax_type type, wanted = ax_typeof(b[i]);
    if (!ax_operand(s->name, s->x0.v[i], &type)) return false;
    if (type.dtype != wanted.dtype || type.rank != wanted.rank ||
        memcmp(type.dims, wanted.dims, type.rank * sizeof type.dims[0]) != 0)
      return ax_reject_as(s->name, "x0 %u is %s, and b%u %s", i, ax_operand_string(&type), i, ax_operand_string(&wanted)), false;
  }
  return true;
}

static void solve(const char *name, ax_function how, bool symmetric, ax_fn A, uint32_t in_count, const ax_value *b,
                  uint32_t out_count, ax_value *out, const ax_krylov_options *options) {
  krylov s = {.name = name, .A = A, .count = A.in_count};
  int64_t unknowns;
  if (!ax_lists_fit(name, in_count, A.in_count, out_count, A.out_count, out)) return;
  b = ax_take_operands(b, A.in_count, out, A.out_count);
  if (ax_failed()) return;
  if (A.in_count != A.out_count || A.in_count == 0) {
    (void)ax_reject_as(name, "A takes %u values and gives %u; it must take and give as many as b has", A.in_count, A.out_count);
    return;
  }
  if (!take_vector(&s, b, &unknowns) || !take_options(&s, options, b, unknowns)) return;
  if (unknowns == 0) {
    memcpy(out, b, s.count * sizeof out[0]);
    return;
  }
  krylov back = s;
  back.A = AX_CLOSURE(transposed, s.count, s.count, &s.A);
  if (s.M.function != NULL) back.M = AX_CLOSURE(transposed, s.count, s.count, &s.M);
  back.x0 = (ax_value_list){0};
  const ax_linear_solve_options solver = {.transpose_solve = AX_CLOSURE(how, s.count, s.count, &back), .symmetric = symmetric};
  (ax_custom_linear_solve)(A, AX_CLOSURE(how, s.count, s.count, &s), s.count, b, s.count, out, &solver);
}

void(ax_cg)(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out, const ax_krylov_options *options) {
  solve("cg", cg_solve, true, A, in_count, b, out_count, out, options);
}

void(ax_bicgstab)(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out,
                  const ax_krylov_options *options) {
  solve("bicgstab", bicgstab_solve, false, A, in_count, b, out_count, out, options);
}

void(ax_gmres)(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out, const ax_krylov_options *options) {
  solve("gmres", gmres_solve, false, A, in_count, b, out_count, out, options);
}
