/* Equations solved by iteration: solvers.py says the same in JAX. */
#include "axle/solvers.h"

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "vectors/vectors.h"

#define WIDE "f32 f64"

static double tol(ax_value x) { return ax_typeof(x).dtype == AX_F64 ? 1e-14 : 1e-7; }

static ax_value scaled_eye(ax_value m, double factor) {
  const ax_type type = ax_typeof(m);
  return ax_mul(ax_eye(type.dtype, type.dims[0], type.dims[0], 0), ax_real(factor));
}
static ax_value definite(ax_value m) { return ax_add(ax_matmul(m, ax_transpose(m, DIMS(1, 0))), scaled_eye(m, 4)); }
static ax_value general(ax_value m) { return ax_add(m, scaled_eye(m, 6)); }

/* The matrix that a function of the enclosing trace has made. */
BODY(product) { out[0] = ax_matmul(*(const ax_value *)context, in[0]); }
BODY(over_diagonal) { out[0] = ax_div(in[0], ax_diag(*(const ax_value *)context, 0)); }

BODY(cg) {
  ax_value a = definite(in[0]);
  (ax_cg)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &(ax_krylov_options){.tol = tol(in[1])});
}
BODY(bicgstab) {
  ax_value a = general(in[0]);
  (ax_bicgstab)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &(ax_krylov_options){.tol = tol(in[1])});
}
BODY(gmres) {
  ax_value a = general(in[0]);
  (ax_gmres)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &(ax_krylov_options){.tol = tol(in[1])});
}
BODY(gmres_restarted) {
  ax_value a = general(in[0]);
  (ax_gmres)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &(ax_krylov_options){.tol = tol(in[1]), .restart = 3});
}
BODY(bicgstab_m) {
  ax_value a = general(in[0]);
  const ax_krylov_options options = {.tol = tol(in[1]), .M = AX_CLOSURE(over_diagonal, 1, 1, &a)};
  (ax_bicgstab)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &options);
}
BODY(gmres_m) {
  ax_value a = general(in[0]);
  const ax_krylov_options options = {.tol = tol(in[1]), .M = AX_CLOSURE(over_diagonal, 1, 1, &a)};
  (ax_gmres)(AX_CLOSURE(product, 1, 1, &a), 1, in + 1, 1, out, &options);
}

BODY(coupling) {
  const ax_value m = *(const ax_value *)context;
  out[0] = ax_add(ax_mul(in[0], ax_real(5)), ax_matmul(m, in[1]));
  out[1] = ax_add(ax_matmul(ax_transpose(m, DIMS(1, 0)), in[0]), ax_mul(in[1], ax_real(5)));
}
BODY(cg_start) {
  const ax_value x0[] = {ax_mul(in[1], ax_real(0.5)), in[2]};
  (ax_cg)(AX_CLOSURE(coupling, 2, 2, in), 2, in + 1, 2, out, &(ax_krylov_options){.tol = tol(in[1]), .x0 = {2, x0}});
}

BODY(cg_row) { (ax_cg)(AX_CLOSURE(product, 1, 1, context), 1, in, 1, out, &(ax_krylov_options){.tol = tol(in[0])}); }
BODY(cg_batch) {
  ax_value a = definite(in[0]);
  (ax_vmap)(AX_CLOSURE(cg_row, 1, 1, &a), 1, in + 1, 1, out, NULL);
}
BODY(gmres_batch) { (ax_vmap)(AX_FN(gmres, 2, 1), 2, in, 1, out, NULL); }

BODY(cubes) {
  ax_value x;
  cg(in, &x, context);
  out[0] = ax_reduce_sum(ax_integer_pow(x, 3), AX_ALL_DIMS, false);
}
BODY(cg_second) { (ax_grad)(AX_FN(cubes, 2, 1), AX_FIRST(1), 2, in, 1, out); }

/* --- A triangle, by substitution --- */

typedef struct substitution {
  ax_value lower, b;
  int64_t size;
  bool backwards;
} substitution;

BODY(substitute) {
  const substitution *s = context;
  ax_value i = s->backwards ? ax_sub(ax_integer(s->size - 1), in[0]) : in[0];
  ax_value line = ax_dynamic_at(s->lower, i, s->backwards ? 1 : 0), left = ax_sub(ax_dynamic_at(s->b, i, 0), ax_vdot(line, in[1]));
  out[0] = ax_dynamic_at_set(in[1], ax_div(left, ax_dynamic_at(line, i, 0)), i, 0);
}
static void run_substitution(substitution s, const ax_value *in, ax_value *out) {
  s.b = in[0];
  ax_value start[] = {ax_full_like(in[0], 0)};
  (ax_fori_loop)(ax_integer(0), ax_integer(s.size), AX_CLOSURE(substitute, 2, 1, &s), 1, start, 1, out);
}
BODY(forwards) { run_substitution(*(const substitution *)context, in, out); }
BODY(backwards) {
  substitution s = *(const substitution *)context;
  s.backwards = true;
  run_substitution(s, in, out);
}
BODY(triangle) {
  ax_value lower = ax_add(ax_tril(in[0], 0), scaled_eye(in[0], 3));
  substitution s = {.lower = ax_stop_gradient(lower), .size = 6};
  const ax_linear_solve_options options = {.transpose_solve = AX_CLOSURE(backwards, 1, 1, &s)};
  (ax_custom_linear_solve)(AX_CLOSURE(product, 1, 1, &lower), AX_CLOSURE(forwards, 1, 1, &s), 1, in + 1, 1, out, &options);
}

/* The same by triangular_solve, of several right sides. */
BODY(by_triangle) { out[0] = ax_triangular_solve(*(const ax_value *)context, in[0], true, true, false, false, false); }
BODY(by_transpose) { out[0] = ax_triangular_solve(*(const ax_value *)context, in[0], true, true, true, false, false); }
BODY(triangle_complex) {
  ax_value lower = ax_add(ax_tril(in[0], 0), scaled_eye(in[0], 3)), stopped = ax_stop_gradient(lower);
  const ax_linear_solve_options options = {.transpose_solve = AX_CLOSURE(by_transpose, 1, 1, &stopped)};
  (ax_custom_linear_solve)(AX_CLOSURE(product, 1, 1, &lower), AX_CLOSURE(by_triangle, 1, 1, &stopped), 1, in + 1, 1, out, &options);
}

/* --- Roots --- */

BODY(curve) {
  const ax_value *p = context, x = in[0];
  ax_value bent = ax_tanh(ax_matmul(p[0], x));
  out[0] = ax_sub(ax_add(ax_mul(x, ax_real(4)), bent), p[1]);
}
/* The y for which g(y) = b, by the columns of g. */
static void by_jacobian(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)context;
  ax_value jacobian;
  (ax_jacfwd)(g, AX_FIRST(1), 1, b, 1, &jacobian);
  out[0] = ax_solve(jacobian, b[0]);
}
BODY(newton_round) { /* i, x */
  const ax_fn *f = context;
  ax_value jacobian, y;
  (ax_jacfwd)(*f, AX_FIRST(1), 1, in + 1, 1, &jacobian);
  f->function(in + 1, &y, f->context);
  out[0] = ax_sub(in[1], ax_solve(jacobian, y));
}
BODY(newton) { (ax_fori_loop)(ax_integer(0), ax_integer(9), AX_CLOSURE(newton_round, 2, 1, context), 1, in, 1, out); }
BODY(root_curved) {
  const ax_fn f = AX_CLOSURE(curve, 1, 1, in);
  const ax_value guess = ax_mul(in[1], ax_real(0.25));
  (ax_custom_root)(f, AX_CLOSURE(newton, 1, 1, &f), AX_TANGENT_SOLVE(by_jacobian, NULL), 1, &guess, 1, out);
}
BODY(root_curved_batch) {
  const ax_vmap_options rows = {.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}};
  (ax_vmap)(AX_FN(root_curved, 2, 1), 2, in, 1, out, &rows);
}

BODY(cubic) { /* x + x^3 - 1 - a^2 */
  const ax_value a = *(const ax_value *)context;
  out[0] = ax_sub(ax_sub(ax_add(in[0], ax_integer_pow(in[0], 3)), ax_real(1)), ax_square(a));
}
BODY(halve) { /* i, low, high */
  ax_value middle = ax_mul(ax_add(in[1], in[2]), ax_real(0.5)), y;
  cubic(&middle, &y, context);
  ax_value above = ax_gt(y, ax_real(0));
  out[0] = ax_where(above, in[1], middle);
  out[1] = ax_where(above, middle, in[2]);
}
BODY(bisect) {
  const ax_value ends[] = {ax_full_like(in[0], 0), ax_mul(in[0], ax_real(2))};
  ax_value found[2];
  (ax_fori_loop)(ax_integer(0), ax_integer(80), AX_CLOSURE(halve, 3, 2, context), 2, ends, 2, found);
  out[0] = found[0];
}
static void over_slope(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)context;
  ax_value one = ax_full_like(b[0], 1), slope;
  g.function(&one, &slope, g.context);
  out[0] = ax_div(b[0], slope);
}
BODY(root) {
  const ax_value guess = ax_add(ax_mul(ax_square(in[0]), ax_real(0.5)), ax_real(1.5));
  (ax_custom_root)(AX_CLOSURE(cubic, 1, 1, in), AX_CLOSURE(bisect, 1, 1, in), AX_TANGENT_SOLVE(over_slope, NULL), 1,
                   &guess, 1, out);
}
BODY(root_batch) { (ax_vmap)(AX_FN(root, 1, 1), 1, in, 1, out, NULL); }

BODY(wide_root) {
  const ax_value guess = ax_full(ax_typeof(in[0]).dtype, DIMS(), 3); /* the same on all devices, which the root is not */
  (ax_custom_root)(AX_CLOSURE(cubic, 1, 1, in), AX_CLOSURE(bisect, 1, 1, in), AX_TANGENT_SOLVE(over_slope, NULL), 1,
                   &guess, 1, out);
}
BODY(root_wide) { (ax_vmap)(AX_FN(wide_root, 1, 1), 1, in, 1, out, NULL); }

BODY(sum_of_sines) {
  root_batch(in, out, context);
  out[0] = ax_reduce_sum(ax_sin(out[0]), AX_ALL_DIMS, false);
}
BODY(root_second) { (ax_grad)(AX_FN(sum_of_sines, 1, 1), AX_FIRST(1), 1, in, 1, out); }
BODY(square_of_root) {
  root(in, out, context);
  out[0] = ax_square(out[0]);
}
BODY(slope_of_square) { (ax_grad)(AX_FN(square_of_root, 1, 1), AX_FIRST(1), 1, in, 1, out); }
BODY(root_third) { (ax_grad)(AX_FN(slope_of_square, 1, 1), AX_FIRST(1), 1, in, 1, out); }

BODY(waves) { /* (x, y), with k and c */
  const ax_value *p = context, k = p[0], c = p[1], x = in[0], y = in[1];
  out[0] = ax_sub(ax_add(ax_mul(x, ax_real(3)), ax_mul(ax_sin(ax_at(y, 0, 0)), k)), c);
  ax_value wave = ax_mul(ax_cos(ax_vdot(x, k)), ax_real(0.5));
  out[1] = ax_sub(ax_add(ax_mul(y, ax_real(5)), wave), ax_slice_in_dim(k, 0, 2, 1, 0));
}
BODY(wave_round) { /* i, x, y */
  ax_value y[2];
  waves(in + 1, y, context);
  out[0] = ax_sub(in[1], ax_div(y[0], ax_real(3)));
  out[1] = ax_sub(in[2], ax_div(y[1], ax_real(5)));
}
BODY(still_waves) { (ax_fori_loop)(ax_integer(0), ax_integer(60), AX_CLOSURE(wave_round, 3, 2, context), 2, in, 2, out); }
static void wave_tangents(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)context;
  (ax_gmres)(g, 2, b, 2, out, &(ax_krylov_options){.tol = 1e-14});
}
BODY(root_arrays) {
  const ax_value guess[] = {in[1], ax_slice_in_dim(in[0], 0, 2, 1, 0)};
  (ax_custom_root)(AX_CLOSURE(waves, 2, 2, in), AX_CLOSURE(still_waves, 2, 2, in), AX_TANGENT_SOLVE(wave_tangents, NULL), 2,
                   guess, 2, out);
}

/* --- Minima --- */

BODY(rosenbrock) {
  const int64_t n = ax_typeof(in[0]).dims[0];
  ax_value next = ax_slice_in_dim(in[0], 1, n, 1, 0), x = ax_slice_in_dim(in[0], 0, n - 1, 1, 0);
  ax_value away = ax_mul(ax_square(ax_sub(next, ax_square(x))), ax_real(100));
  out[0] = ax_reduce_sum(ax_add(away, ax_square(ax_sub(ax_real(1), x))), AX_ALL_DIMS, false);
}
enum { place, value, gradient, status, rounds, evaluations, FOUND };

static const ax_minimize_options closely_bfgs = {.gtol = 1e-9}, closely_lbfgs = {.method = AX_LBFGS, .gtol = 1e-9, .ftol = 1e-300},
                                 closely_few = {.method = AX_LBFGS, .gtol = 1e-9, .ftol = 1e-300, .history = 5};
BODY(valley) {
  ax_value found[FOUND], x = ax_mul(in[0], ax_real(0.2));
  const ax_value usual[] = {ax_full(AX_F64, DIMS(1), -1.2), ax_full(AX_F64, DIMS(1), 1)};
  if (ax_typeof(x).dims[0] == 2) x = ax_add((ax_concatenate)(2, usual, 0), x);
  (ax_minimize)(AX_FN(rosenbrock, 1, 1), x, FOUND, found, context);
  out[0] = found[place];
}
BODY(bfgs_valley) { valley(in, out, (void *)(uintptr_t)&closely_bfgs); }
BODY(lbfgs_valley) { valley(in, out, (void *)(uintptr_t)&closely_lbfgs); }
BODY(lbfgs_few) { valley(in, out, (void *)(uintptr_t)&closely_few); }
BODY(tied_valley) {
  ax_value y;
  rosenbrock(in, &y, NULL);
  out[0] = ax_add(y, ax_reduce_sum(ax_square(ax_sub(in[0], *(const ax_value *)context)), AX_ALL_DIMS, false));
}
BODY(tied) {
  ax_value found[FOUND];
  (ax_minimize)(AX_CLOSURE(tied_valley, 1, 1, in), in[0], FOUND, found, &closely_bfgs);
  out[0] = found[place];
}
BODY(bfgs_batch) { (ax_vmap)(AX_FN(tied, 1, 1), 1, in, 1, out, NULL); }

BODY(quadratic) {
  const ax_value *p = context;
  out[0] = ax_sub(ax_mul(ax_vdot(in[0], ax_matmul(p[0], in[0])), ax_real(0.5)), ax_vdot(p[1], in[0]));
}
static void least_of_bowl(const ax_value *in, ax_value *found, const ax_minimize_options *options) {
  const ax_value p[] = {definite(in[0]), in[1]};
  (ax_minimize)(AX_CLOSURE(quadratic, 1, 1, p), in[2], FOUND, found, options);
}
BODY(bowl) {
  ax_value found[FOUND];
  least_of_bowl(in, found, context);
  for (int k = 0; k < 3; k++) out[k] = found[k];
}
BODY(bfgs_bowl) { bowl(in, out, (void *)(uintptr_t)&closely_bfgs); }
BODY(lbfgs_bowl) { bowl(in, out, (void *)(uintptr_t)&closely_lbfgs); }

BODY(steep) {
  ax_value y;
  quadratic(in, &y, context);
  out[0] = ax_add(y, ax_mul(ax_reduce_sum(ax_integer_pow(in[0], 4), AX_ALL_DIMS, false), ax_real(0.25)));
}
BODY(slope_of_steep) { (ax_grad)(AX_CLOSURE(steep, 1, 1, context), AX_FIRST(1), 1, in, 1, out); }
BODY(least_of_steep) {
  ax_value found[FOUND];
  (ax_minimize)(AX_CLOSURE(steep, 1, 1, context), in[0], FOUND, found, &(ax_minimize_options){.gtol = 1e-12});
  out[0] = found[place];
}
BODY(bfgs_root) {
  const ax_value p[] = {definite(in[0]), in[1]}, guess = ax_full_like(in[1], 0);
  (ax_custom_root)(AX_CLOSURE(slope_of_steep, 1, 1, p), AX_CLOSURE(least_of_steep, 1, 1, p), AX_TANGENT_SOLVE(by_jacobian, NULL), 1,
                   &guess, 1, out);
}
/* x - c log x, from where steps go beyond 0: it is NaN there. */
BODY(to_edge) {
  const ax_value c = *(const ax_value *)context;
  out[0] = ax_reduce_sum(ax_sub(in[0], ax_mul(c, ax_log(in[0]))), AX_ALL_DIMS, false);
}
static void least_to_edge(const ax_value *in, ax_value *out, const ax_minimize_options *options) {
  ax_value found[FOUND];
  (ax_minimize)(AX_CLOSURE(to_edge, 1, 1, in), ax_full_like(in[0], 30), FOUND, found, options);
  out[0] = found[place];
}
BODY(bfgs_edge) { least_to_edge(in, out, &closely_bfgs); }
BODY(lbfgs_edge) { least_to_edge(in, out, &closely_lbfgs); }

BODY(bfgs_tangent) {
  ax_value found[FOUND];
  const ax_value bowl_in[] = {in[0], in[1], ax_full_like(in[1], 0)};
  least_of_bowl(bowl_in, found, &closely_bfgs);
  out[0] = found[place];
}
static void bowl_of_jax(const ax_value *in, ax_value *out, ax_minimize_options options) {
  ax_value found[FOUND];
  const ax_value p[] = {ax_mul(definite(in[0]), ax_real(0.125)), in[1]};
  options.gtol = ax_typeof(in[2]).dtype == AX_F32 ? 1e-3 : 1e-6;
  (ax_minimize)(AX_CLOSURE(quadratic, 1, 1, p), in[2], FOUND, found, &options);
  out[0] = found[place], out[1] = found[value], out[2] = found[status];
}
BODY(bfgs_of_jax) { bowl_of_jax(in, out, (ax_minimize_options){0}); }
BODY(lbfgs_of_jax) { bowl_of_jax(in, out, (ax_minimize_options){.method = AX_LBFGS, .ftol = 1e-300}); }

static void status_of(ax_fn f, const ax_value *in, ax_value *out, ax_minimize_options options) {
  ax_value found[FOUND];
  (ax_minimize)(f, in[0], FOUND, found, &options);
  out[0] = found[status];
}
BODY(sum) { out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false); }
BODY(quartic) { out[0] = ax_add(ax_reduce_sum(ax_integer_pow(in[0], 4), AX_ALL_DIMS, false), ax_real(1)); }
BODY(bfgs_maxiter) { status_of(AX_FN(rosenbrock, 1, 1), in, out, (ax_minimize_options){.maxiter = 3}); }
BODY(lbfgs_maxiter) { status_of(AX_FN(rosenbrock, 1, 1), in, out, (ax_minimize_options){.method = AX_LBFGS, .maxiter = 3}); }
BODY(bfgs_endless) { status_of(AX_FN(sum, 1, 1), in, out, (ax_minimize_options){0}); }
BODY(lbfgs_endless) { status_of(AX_FN(sum, 1, 1), in, out, (ax_minimize_options){.method = AX_LBFGS}); }
BODY(lbfgs_stands) {
  status_of(AX_FN(quartic, 1, 1), in, out, (ax_minimize_options){.method = AX_LBFGS, .gtol = 1e-30, .ftol = 1e-4});
}

/* --- Ordinary differential equations --- */

static ax_odeint_options closely(ax_value y) {
  const double each = ax_typeof(y).dtype == AX_F64 ? 1e-10 : 1e-5;
  return (ax_odeint_options){.rtol = each, .atol = each};
}
BODY(decay) { out[0] = ax_neg(ax_mul(ax_mul(in[2], in[0]), ax_cos(in[1]))); }
BODY(odeint) {
  const ax_odeint_options options = closely(in[0]);
  (ax_odeint)(AX_FN(decay, 3, 1), 3, in, 1, out, &options);
}
BODY(swing) {
  const ax_value angle = in[0], speed = in[1], t = in[2], friction = in[3], force = in[4];
  ax_value push = ax_mul(ax_at(force, 0, 0), ax_cos(ax_mul(ax_at(force, 1, 0), t)));
  out[0] = speed;
  out[1] = ax_add(ax_sub(ax_neg(ax_sin(angle)), ax_mul(friction, speed)), push);
}
BODY(odeint_pendulum) {
  const ax_odeint_options options = closely(in[0]);
  (ax_odeint)(AX_FN(swing, 5, 2), 5, in, 2, out, &options);
}

/* Solutions are as near as the solvers' bounds say; elements beside the largest. Minima are where all elements of the gradient are
   below 1e-9; the least curvature of these valleys is more than 0.1. JAX's, that both
   gradients are below 1e-3 or 1e-6, with curvatures of 0.5 and more. */
#define NEAR (1e-8 * 0x1p52)
static const vector_case solvers_cases[] = {
    {"cg", WIDE, .body = cg, .in = 2, .scaled = true, .ulps = 64},
    {"bicgstab", WIDE, .body = bicgstab, .in = 2, .scaled = true, .ulps = 64},
    {"gmres", WIDE, .body = gmres, .in = 2, .scaled = true, .ulps = 64},
    {"gmres_restarted", WIDE, .body = gmres_restarted, .in = 2, .scaled = true, .ulps = 64},
    {"cg_start", WIDE, .body = cg_start, .in = 3, .out = 2, .scaled = true, .ulps = 64},
    {"bicgstab_m", WIDE, .body = bicgstab_m, .in = 2, .scaled = true, .ulps = 64},
    {"gmres_m", WIDE, .body = gmres_m, .in = 2, .scaled = true, .ulps = 64},
    {"cg_batch", WIDE, .body = cg_batch, .in = 2, .scaled = true, .ulps = 64},
    {"gmres_batch", WIDE, .body = gmres_batch, .in = 2, .scaled = true, .ulps = 64},
    {"cg_second", "f64", .body = cg_second, .in = 2, .scaled = true, .ulps = 64},
    {"triangle", WIDE, .body = triangle, .in = 2, .scaled = true, .ulps = 64},
    {"triangle_complex", "c64 c128", .body = triangle_complex, .in = 2, .scaled = true, .ulps = 64},
    {"root", WIDE, .body = root, .in = 1, .scaled = true, .ulps = 64},
    {"root_curved", WIDE, .body = root_curved, .in = 2, .scaled = true, .ulps = 64},
    {"root_arrays", "f64", .body = root_arrays, .in = 2, .out = 2, .scaled = true, .ulps = 64},
    {"root_batch", WIDE, .body = root_batch, .in = 1, .scaled = true, .ulps = 64},
    {"root_curved_batch", WIDE, .body = root_curved_batch, .in = 2, .scaled = true, .ulps = 64},
    {"root_second", "f64", .body = root_second, .in = 1, .scaled = true, .ulps = 64},
    {"root_third", "f64", .body = root_third, .in = 1, .scaled = true, .ulps = 64},
    {"root_wide", "d=4", .body = root_wide, .in = 1, .specs = "A > A", .scaled = true, .ulps = 64},
    {"bfgs_2", "f64", .body = bfgs_valley, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_5", "f64", .body = bfgs_valley, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_12", "f64", .body = bfgs_valley, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_batch", "f64", .body = bfgs_batch, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"lbfgs_2", "f64", .body = lbfgs_valley, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"lbfgs_40", "f64", .body = lbfgs_few, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_bowl", "f64", .body = bfgs_bowl, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = NEAR},
    {"lbfgs_bowl", "f64", .body = lbfgs_bowl, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_edge", "f64", .body = bfgs_edge, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"lbfgs_edge", "f64", .body = lbfgs_edge, .in = 1, .modes = "v", .scaled = true, .ulps = NEAR},
    {"bfgs_root", "f64", .body = bfgs_root, .in = 2, .scaled = true, .ulps = NEAR},
    {"bfgs_tangent", "f64", .body = bfgs_tangent, .in = 2, .modes = "vj", .scaled = true, .ulps = NEAR},
    {"bfgs_of_jax", "f32", .body = bfgs_of_jax, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = 4e-3 * 0x1p23},
    {"lbfgs_of_jax", "f32", .body = lbfgs_of_jax, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = 4e-3 * 0x1p23},
    {"bfgs_of_jax64", "f64", .body = bfgs_of_jax, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = 4e-6 * 0x1p52},
    {"lbfgs_of_jax64", "f64", .body = lbfgs_of_jax, .in = 3, .out = 3, .modes = "v", .scaled = true, .ulps = 4e-6 * 0x1p52},
    {"bfgs_maxiter", WIDE, .body = bfgs_maxiter, .in = 1, .modes = "v"},
    {"lbfgs_maxiter", WIDE, .body = lbfgs_maxiter, .in = 1, .modes = "v"},
    {"bfgs_endless", WIDE, .body = bfgs_endless, .in = 1, .modes = "v"},
    {"lbfgs_endless", WIDE, .body = lbfgs_endless, .in = 1, .modes = "v"},
    {"lbfgs_stands", "f64", .body = lbfgs_stands, .in = 1, .modes = "v"},
    {"odeint", WIDE, .body = odeint, .in = 3, .modes = "vg", .scaled = true, .ulps = 2000},
    {"odeint_pendulum", "f64", .body = odeint_pendulum, .in = 5, .out = 2, .modes = "vg", .scaled = true, .ulps = 2000},
    {"odeint_once", "f64", .body = odeint, .in = 3, .modes = "vg", .scaled = true},
};

const VECTOR_GROUP(solvers);
