/* Minima by quasi-Newton methods, as jax.scipy.optimize.minimize finds them: a direction, a step along it that satisfies the strong
   conditions of Wolfe, and what the step tells of the curvature. Nocedal and Wright: Numerical Optimization, algorithms 6.1 (BFGS),
   7.4 and 7.5 (L-BFGS), 3.5 and 3.6 (steps). */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "axle/solvers.h"
#include "axle/transform.h"
#include "ir/dtype.h"
#include "lib/checked.h"

static const char name[] = "minimize";

enum { running = -1 };

typedef struct minimizer {
  ax_fn f;
  ax_minimize_method method;
  double gtol, ftol;
  int64_t maxiter, line_search_maxiter, history, size;
  ax_dtype dtype;
} minimizer;

static ax_value number(const minimizer *m, double value) { return (ax_full)(m->dtype, 0, NULL, value); }
static ax_value count(int64_t value) { return (ax_full)(AX_S32, 0, NULL, (double)value); }

/* *value = f(x), *gradient = its gradient */
static void evaluate(const minimizer *m, ax_value x, ax_value *value, ax_value *gradient) {
  ax_value made[2] = {ax_poison, ax_poison};
  ax_type type;
  (ax_value_and_grad)(m->f, AX_FIRST(1), 1, &x, 2, made);
  *value = *gradient = ax_poison;
  if (ax_failed() || !ax_operand(name, made[0], &type)) return;
  if (type.dtype != m->dtype)
    (void)ax_reject_as(name, "f gives %s; its dtype must be that of x", ax_operand_string(&type));
  else
    *value = made[0], *gradient = made[1];
}

/* --- A step: a length a for which f(x + a p) is enough below f(x), and its slope enough flatter ---

   Lengths double until some interval from `low` to `high` has such a length in it; then it is cut until a length fits. `low` is the
   best length so far: f there is lower than at any tried before, and falls towards `high`. */

enum {
  a_try,
  a_low,
  a_high,
  a_last,
  f_low,
  f_high,
  f_last,
  slope_low,
  gradient_low,
  is_cut,
  is_found,
  rounds,
  evaluations,
  carries
};

static const double least_fall = 1e-4, most_slope = 0.9; /* c1 and c2 */
static const int64_t most_cuts = 30;

typedef struct line {
  const minimizer *m;
  ax_value x, p, f, slope; /* at 0 */
} line;

static double epsilon_of(const minimizer *m) { return ldexp(1, -(int)ax_dtype_get(m->dtype)->fraction); }

static AX_BODY(seeks) {
  const line *l = context;
  ax_value longest = ax_max(ax_abs(in[a_low]), ax_abs(in[a_high])), width = ax_abs(ax_sub(in[a_high], in[a_low]));
  ax_value wide = ax_gt(width, ax_mul(longest, ax_real(4 * epsilon_of(l->m))));
  ax_value most = ax_where(in[is_cut], count(most_cuts), count(l->m->line_search_maxiter));
  ax_value goes_on = ax_and(ax_lt(in[rounds], most), ax_or(wide, ax_not(in[is_cut])));
  out[0] = ax_and(goes_on, ax_not(in[is_found]));
}

/* Whether the length is in the interval, and no nearer to its ends than this share of it. */
static ax_value within(const ax_value *ends, ax_value a, double share) {
  ax_value margin = ax_mul(ax_abs(ax_sub(ends[a_high], ends[a_low])), ax_real(share));
  ax_value least = ax_add(ax_min(ends[a_low], ends[a_high]), margin), most = ax_sub(ax_max(ends[a_low], ends[a_high]), margin);
  return ax_and(ax_gt(a, least), ax_lt(a, most));
}

/* The minimum of the polynomial through low, with its slope, and high, and of degree 3 also through the end before. */
static ax_value of_parabola(const ax_value *at) {
  ax_value d = ax_sub(at[a_high], at[a_low]), rest = ax_sub(ax_sub(at[f_high], at[f_low]), ax_mul(at[slope_low], d));
  return ax_sub(at[a_low], ax_div(ax_mul(at[slope_low], ax_square(d)), ax_mul(rest, ax_real(2))));
}
static ax_value of_cubic(const ax_value *at) {
  const ax_value slope = at[slope_low], d = ax_sub(at[a_high], at[a_low]), e = ax_sub(at[a_last], at[a_low]);
  ax_value r = ax_div(ax_sub(ax_sub(at[f_high], at[f_low]), ax_mul(slope, d)), ax_square(d)); /* A d + B = r, A e + B = s */
  ax_value s = ax_div(ax_sub(ax_sub(at[f_last], at[f_low]), ax_mul(slope, e)), ax_square(e));
  ax_value A = ax_div(ax_sub(r, s), ax_sub(d, e)), B = ax_sub(r, ax_mul(A, d));
  ax_value root = ax_sqrt(ax_sub(ax_square(B), ax_mul(ax_mul(A, slope), ax_real(3))));
  return ax_add(at[a_low], ax_div(ax_sub(root, B), ax_mul(A, ax_real(3))));
}

static ax_value cut(const ax_value *at, ax_value has_last) {
  ax_value cubic = of_cubic(at), parabola = of_parabola(at), middle = ax_mul(ax_add(at[a_low], at[a_high]), ax_real(0.5));
  ax_value a = ax_where(within(at, parabola, 0.1), parabola, middle);
  return ax_where(ax_and(has_last, within(at, cubic, 0.2)), cubic, a);
}

static AX_BODY(try_length) {
  const line *l = context;
  const ax_value a = in[a_try], was_cut = in[is_cut], first = ax_eq(in[rounds], count(0));
  ax_value f, g;
  evaluate(l->m, ax_add(l->x, ax_mul(a, l->p)), &f, &g);
  if (ax_failed()) return;
  ax_value slope = ax_vdot(g, l->p), bound = ax_add(l->f, ax_mul(ax_mul(a, l->slope), ax_real(least_fall)));
  ax_value fell = ax_and(ax_le(f, bound), ax_or(ax_lt(f, in[f_low]), ax_and(first, ax_not(was_cut)))); /* false of NaN */
  ax_value flat = ax_le(ax_abs(slope), ax_mul(ax_neg(l->slope), ax_real(most_slope)));
  ax_value as_low = ax_le(f, ax_add(l->f, ax_mul(ax_abs(l->f), ax_real(2 * epsilon_of(l->m)))));
  fell = ax_or(fell, ax_and(flat, as_low)); /* where roundings hide how far f falls, its slope tells (Hager and Zhang 2005) */
  ax_value towards = ax_where(was_cut, ax_sub(in[a_high], in[a_low]), number(l->m, 1));
  ax_value rises = ax_and(fell, ax_ge(ax_mul(slope, towards), ax_real(0))); /* so the minimum is between low and a */
  const ax_value from[] = {in[a_low], in[f_low]}, tried[] = {a, f};
  for (int i = 0; i < 2; i++) { /* a becomes low, or else high; the end that goes is the last one */
    ax_value low = in[a_low + i * (f_low - a_low)], high = in[a_high + i * (f_high - a_high)];
    out[a_last + i * (f_last - a_last)] = ax_where(ax_and(fell, ax_not(rises)), low, high);
    out[a_high + i * (f_high - a_high)] = ax_where(fell, ax_where(rises, from[i], high), tried[i]);
    out[a_low + i * (f_low - a_low)] = ax_where(fell, tried[i], low);
  }
  out[slope_low] = ax_where(fell, slope, in[slope_low]);
  out[gradient_low] = ax_where(fell, g, in[gradient_low]);
  out[is_found] = ax_and(fell, flat);
  out[is_cut] = ax_or(was_cut, ax_or(ax_not(fell), rises));
  out[a_try] = ax_where(out[is_cut], cut(out, was_cut), ax_mul(a, ax_real(2)));
  out[rounds] = ax_where(ax_ne(out[is_cut], was_cut), count(0), ax_add(in[rounds], ax_integer(1)));
  out[evaluations] = ax_add(in[evaluations], ax_integer(1));
}

/* From `first` on. found: carries of the loop. */
static void seek(const minimizer *m, const line *l, ax_value gradient, ax_value first, ax_value evaluated, ax_value *found) {
  const ax_value zero = number(m, 0), no = (ax_full)(AX_BOOL, 0, NULL, 0);
  const ax_value start[] = {
      [a_try] = first, [a_low] = zero,      [a_high] = zero,          [a_last] = zero,           [f_low] = l->f,
      [f_high] = l->f, [f_last] = l->f,     [slope_low] = l->slope,   [gradient_low] = gradient, [is_cut] = no,
      [is_found] = no, [rounds] = count(0), [evaluations] = evaluated};
  (ax_while)(AX_CLOSURE(seeks, carries, 1, l), AX_CLOSURE(try_length, carries, carries, l), carries, start, carries, found);
}

/* --- Curvature. BFGS: the inverse H of the matrix of second derivatives, and f before. L-BFGS: the last steps s, the changes y of
   the gradient, 1 / y s, 0 where there was no step yet; and the scale y s / y y --- */

enum { at_x, at_f, at_gradient, at_status, at_rounds, at_evaluations, results, own = results };
enum { at_inverse = own, at_f_before, bfgs_carries };
enum { at_steps = own, at_changes, at_inverses, at_scale, lbfgs_carries };

static uint32_t carry_count(const minimizer *m) { return m->method == AX_BFGS ? bfgs_carries : lbfgs_carries; }

static void begin_curvature(const minimizer *m, ax_value *state) {
  if (m->method == AX_BFGS) {
    ax_value length = ax_sqrt(ax_vdot(state[at_gradient], state[at_gradient]));
    state[at_inverse] = ax_eye(m->dtype, m->size, m->size, 0);
    state[at_f_before] = ax_add(state[at_f], ax_mul(length, ax_real(0.5)));
  } else {
    state[at_steps] = state[at_changes] = (ax_full)(m->dtype, 2, (int64_t[]){m->history, m->size}, 0);
    state[at_inverses] = (ax_full)(m->dtype, 1, (int64_t[]){m->history}, 0);
    state[at_scale] = number(m, 1);
  }
}

static AX_BODY(from_last_step) { /* q; s, y, 1 / y s -> q; alpha */
  out[1] = ax_mul(ax_vdot(in[1], in[0]), in[3]);
  out[0] = ax_sub(in[0], ax_mul(out[1], in[2]));
}
static AX_BODY(from_first_step) { /* q; s, y, 1 / y s, alpha -> q */
  ax_value beta = ax_mul(ax_vdot(in[2], in[0]), in[3]);
  out[0] = ax_add(in[0], ax_mul(ax_sub(in[4], beta), in[1]));
}

static ax_value direction(const minimizer *m, const ax_value *state) {
  if (m->method == AX_BFGS) return ax_neg(ax_matmul(state[at_inverse], state[at_gradient]));
  ax_value in[] = {ax_neg(state[at_gradient]), state[at_steps], state[at_changes], state[at_inverses], ax_poison}, made[2];
  (ax_scan)(AX_FN(from_last_step, 4, 2), 1, -1, true, 4, in, 2, made);
  in[0] = ax_mul(made[0], state[at_scale]), in[4] = made[1];
  (ax_scan)(AX_FN(from_first_step, 5, 1), 1, -1, false, 5, in, 1, made);
  return made[0];
}

static ax_value outer(ax_value x, ax_value y) { return ax_mul(ax_expand_dims(x, 1), ax_expand_dims(y, 0)); }

/* x without its first row, and one more behind. */
static ax_value with_last(ax_value x, ax_value row) {
  const ax_value parts[] = {ax_slice_in_dim(x, 1, ax_typeof(x).dims[0], 1, 0), ax_expand_dims(row, 0)};
  return (ax_concatenate)(2, parts, 0);
}

/* After a step s, by which the gradient has changed by y; as it was where that tells nothing. */
static void learn(const minimizer *m, const ax_value *state, ax_value s, ax_value y, ax_value *out) {
  const ax_value product = ax_vdot(y, s), inverse = ax_div(ax_real(1), product);
  const ax_value tells = ax_and(ax_gt(product, ax_real(0)), ax_is_finite(inverse));
  if (m->method == AX_BFGS) {
    const ax_value H = state[at_inverse], Hy = ax_matmul(H, y), cross = outer(s, Hy);
    ax_value factor = ax_add(ax_mul(ax_square(inverse), ax_vdot(y, Hy)), inverse);
    ax_value both = ax_mul(ax_add(cross, (ax_transpose)(cross, 2, (int64_t[]){1, 0})), inverse);
    out[at_inverse] = ax_where(tells, ax_add(ax_sub(H, both), ax_mul(outer(s, s), factor)), H);
    out[at_f_before] = state[at_f];
  } else {
    out[at_steps] = ax_where(tells, with_last(state[at_steps], s), state[at_steps]);
    out[at_changes] = ax_where(tells, with_last(state[at_changes], y), state[at_changes]);
    out[at_inverses] = ax_where(tells, with_last(state[at_inverses], inverse), state[at_inverses]);
    out[at_scale] = ax_where(tells, ax_div(product, ax_vdot(y, y)), state[at_scale]);
  }
}

/* --- Rounds --- */

static ax_value is_flat(const minimizer *m, ax_value gradient) {
  if (m->size == 0) return (ax_full)(AX_BOOL, 0, NULL, 1);
  return ax_lt(ax_reduce_max(ax_abs(gradient), AX_ALL_DIMS, false), ax_real(m->gtol));
}

static ax_value status_of(const minimizer *m, ax_value gradient, ax_value done, ax_value gain, ax_value found) {
  ax_value status = ax_where(ax_ge(done, ax_integer(m->maxiter)), count(AX_MINIMIZE_MAXITER), count(running));
  if (m->method == AX_LBFGS) status = ax_where(ax_lt(gain, ax_real(m->ftol)), count(AX_MINIMIZE_NO_PROGRESS), status);
  status = ax_where(found, status, count(AX_MINIMIZE_NO_STEP));
  return ax_where(is_flat(m, gradient), count(AX_MINIMIZE_CONVERGED), status);
}

static AX_BODY(goes_on) { out[0] = ax_eq(in[at_status], ax_integer(running)); }

static AX_BODY(round_of) {
  const minimizer *m = context;
  const ax_value x = in[at_x], g = in[at_gradient];
  ax_value p = direction(m, in), slope = ax_vdot(g, p), falls = ax_lt(slope, ax_real(0)), first = number(m, 1), found[carries];
  p = ax_where(falls, p, ax_neg(g));
  slope = ax_where(falls, slope, ax_neg(ax_vdot(g, g)));
  if (m->method == AX_BFGS) { /* as far as the last step went down */
    ax_value guess = ax_div(ax_mul(ax_sub(in[at_f], in[at_f_before]), ax_real(2.02)), slope);
    first = ax_where(ax_and(ax_gt(guess, ax_real(0)), ax_lt(guess, first)), guess, first);
  }
  seek(m, &(line){m, x, p, in[at_f], slope}, g, first, in[at_evaluations], found);
  if (ax_failed()) return;
  ax_value step = ax_mul(found[a_low], p);
  out[at_x] = ax_add(x, step);
  out[at_f] = found[f_low];
  out[at_gradient] = found[gradient_low];
  out[at_rounds] = ax_add(in[at_rounds], ax_integer(1));
  out[at_evaluations] = found[evaluations];
  out[at_status] = status_of(m, out[at_gradient], out[at_rounds], ax_sub(in[at_f], out[at_f]), found[is_found]);
  learn(m, in, step, ax_sub(out[at_gradient], g), out);
}

static bool take_options(const ax_minimize_options *given, minimizer *m) {
  const double numbers[] = {given->gtol, given->ftol, (double)given->maxiter, (double)given->line_search_maxiter,
                            (double)given->history};
  if ((unsigned)given->method > AX_LBFGS) return ax_reject_as(name, "there is no method %d", (int)given->method), false;
  for (size_t i = 0; i < AX_COUNT(numbers); i++)
    if (!(numbers[i] >= 0))
      return ax_reject_as(name, "gtol, ftol, maxiter, line_search_maxiter and history must not be below 0"), false;
  m->method = given->method;
  m->gtol = given->gtol > 0 ? given->gtol : 1e-5;
  m->ftol = given->ftol > 0 ? given->ftol : 0x1p-52 * 1e7;
  m->maxiter = given->maxiter > 0 ? given->maxiter : 200 * m->size;
  m->line_search_maxiter = given->line_search_maxiter > 0 ? given->line_search_maxiter : given->method == AX_BFGS ? 10 : 20;
  m->history = given->history > 0 ? given->history : 10;
  return true;
}

static void minimize(const minimizer *m, ax_value x0, ax_value *out) {
  const uint32_t all = carry_count(m);
  ax_value *state = ax_trace_alloc(2 * all * sizeof state[0]);
  if (state == NULL) return;
  state[at_x] = x0;
  evaluate(m, x0, &state[at_f], &state[at_gradient]);
  if (ax_failed()) return;
  state[at_status] = ax_where(is_flat(m, state[at_gradient]), count(AX_MINIMIZE_CONVERGED), count(running));
  state[at_rounds] = count(0);
  state[at_evaluations] = count(1);
  begin_curvature(m, state);
  (ax_while)(AX_FN(goes_on, all, 1), AX_CLOSURE(round_of, all, all, m), all, state, all, state + all);
  for (uint32_t k = 0; k < results; k++) out[k] = state[all + k];
}

void(ax_minimize)(ax_fn f, ax_value x0, uint32_t out_count, ax_value *out, const ax_minimize_options *options) {
  minimizer m = {.f = f};
  ax_type type;
  if (!ax_list_fits(name, "the call gives", "result", out_count, results)) {
    ax_poison_list(out_count, results, out);
    return;
  }
  const ax_value *in = ax_take_operands(&x0, 1, out, results);
  if (ax_failed() || !ax_operand(name, in[0], &type)) return;
  if (!ax_is_float(type.dtype) || type.rank != 1) {
    (void)ax_reject_as(name, "x is %s; it must be a vector of floats", ax_operand_string(&type));
    return;
  }
  if (f.in_count != 1 || f.out_count != 1) {
    (void)ax_reject_as(name, "f takes %u values and gives %u; it must take x and give a number", f.in_count, f.out_count);
    return;
  }
  m.dtype = type.dtype, m.size = type.dims[0];
  if (take_options(options != NULL ? options : &(ax_minimize_options){0}, &m)) minimize(&m, in[0], out);
}
