/* Ordinary differential equations by adaptive steps of Dormand and Prince, as jax.experimental.ode.odeint: y and its adjoint are one
   vector each; a scan over the times, in it a while over steps. */
#include <math.h>
#include <string.h>

#include "axle/numpy.h"
#include "axle/solvers.h"
#include "axle/transform.h"
#include "lib/checked.h"

static const char name[] = "odeint";

enum { stages = 7, powers = 5 };

/* Dormand and Prince 1980, RK5(4)7M: times and factors of the stages; of the solution of order 5 less that of order 4; and of a
   value in the middle of the step (Shampine 1986). The solution of order 5 is the last stage's point. */
static const double stage_time[stages] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
static const double stage_factor[stages][stages - 1] = {{0},
                                                        {1. / 5},
                                                        {3. / 40, 9. / 40},
                                                        {44. / 45, -56. / 15, 32. / 9},
                                                        {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                                                        {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                                                        {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
static const double error_factor[stages] = {
    35. / 384 - 1951. / 21600, 0,       500. / 1113 - 22642. / 50085, 125. / 192 - 451. / 720, -2187. / 6784 + 12231. / 42400,
    11. / 84 - 649. / 6300,    -1. / 60};
static const double middle_factor[stages] = {6025192743. / 30085553152 / 2,     0,
                                             51252292925. / 65400821598 / 2,    -2691868925. / 45128329728 / 2,
                                             187940372067. / 1594534317056 / 2, -1776094331. / 19743644256 / 2,
                                             11237099. / 235043384 / 2};

/* An equation, and how closely it is solved. */
typedef struct ode {
  ax_fn f; /* (y.., t, args..) -> dy.. */
  ax_dtype dtype;
  double rtol, atol, hmax;
  int64_t mxstep;
  uint32_t count;       /* arrays of y */
  const ax_type *types; /* theirs */
  const ax_value *args; /* inside the function that solves it */
  int depth;            /* how often derivatives backwards may still be taken */
} ode;

static uint32_t arg_count(const ode *o) { return o->f.in_count - o->count - 1; }

/* --- y as one vector --- */

static ax_value join(const ode *o, const ax_value *parts) {
  ax_value *flat = ax_trace_alloc(o->count * sizeof flat[0]);
  if (flat == NULL) return ax_poison;
  for (uint32_t i = 0; i < o->count; i++) flat[i] = (ax_reshape)(parts[i], 1, (int64_t[]){ax_type_elems(&o->types[i])});
  return o->count == 1 ? flat[0] : (ax_concatenate)(o->count, flat, 0);
}

/* Of a vector, or of rows that are vectors: times[0] is their number. */
static void split(const ode *o, ax_value y, const int64_t *times, ax_value *out) {
  int64_t at = 0, axis = times != NULL;
  for (uint32_t i = 0; i < o->count; i++) {
    const ax_type *type = &o->types[i];
    int64_t dims[AX_MAX_RANK + 1] = {times != NULL ? *times : 0}, count = ax_type_elems(type);
    memcpy(dims + axis, type->dims, type->rank * sizeof dims[0]);
    out[i] = (ax_reshape)(ax_slice_in_dim(y, at, at + count, 1, axis), type->rank + (uint32_t)axis, dims);
    at += count;
  }
}

static ax_value derivative(const ode *o, ax_value y, ax_value t) {
  ax_value *in = ax_trace_alloc(o->f.in_count * sizeof in[0]);
  if (in == NULL) return ax_poison;
  split(o, y, NULL, in);
  in[o->count] = t;
  for (uint32_t i = 0; i < arg_count(o); i++) in[o->count + 1 + i] = o->args[i];
  const ax_value *made = ax_builder_call(o->f, in);
  for (uint32_t i = 0; made != NULL && i < o->count; i++) {
    ax_type type;
    if (!ax_operand(name, made[i], &type)) return ax_poison;
    if (type.dtype != o->dtype || type.rank != o->types[i].rank ||
        memcmp(type.dims, o->types[i].dims, type.rank * sizeof type.dims[0]) != 0)
      return ax_reject_as(name, "f: result %u is %s; y is %s", i, ax_operand_string(&type), ax_operand_string(&o->types[i]));
  }
  return made != NULL && !ax_failed() ? join(o, made) : ax_poison;
}

/* --- A step --- */

static ax_value weighted(const ax_value *k, const double *factors, int count) {
  ax_value sum = ax_poison;
  bool any = false;
  for (int i = 0; i < count; i++) {
    if (factors[i] == 0) continue;
    ax_value part = ax_mul(k[i], ax_real(factors[i]));
    sum = any ? ax_add(sum, part) : part;
    any = true;
  }
  return sum;
}

static ax_value length(ax_value x) { return ax_sqrt(ax_reduce_sum(ax_square(x), AX_ALL_DIMS, false)); }

/* Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, II.4. */
static ax_value first_step(const ode *o, ax_value t, ax_value y, ax_value f) {
  ax_value scale = ax_add(ax_mul(ax_abs(y), ax_real(o->rtol)), ax_real(o->atol));
  ax_value d0 = length(ax_div(y, scale)), d1 = length(ax_div(f, scale));
  ax_value small = ax_or(ax_lt(d0, ax_real(1e-5)), ax_lt(d1, ax_real(1e-5)));
  ax_value h0 = ax_where(small, ax_real(1e-6), ax_div(ax_mul(d0, ax_real(0.01)), ax_where(small, ax_real(1), d1)));
  ax_value f1 = derivative(o, ax_add(y, ax_mul(h0, f)), ax_add(t, h0));
  ax_value d2 = ax_div(length(ax_div(ax_sub(f1, f), scale)), h0), most = ax_max(d1, d2);
  ax_value still = ax_and(ax_le(d1, ax_real(1e-15)), ax_le(d2, ax_real(1e-15)));
  ax_value by_curve = ax_pow(ax_div(ax_real(0.01), ax_where(still, ax_real(1), most)), ax_real(1. / 5));
  ax_value h1 = ax_where(still, ax_max(ax_mul(h0, ax_real(1e-3)), ax_real(1e-6)), by_curve);
  return ax_min(ax_mul(h0, ax_real(100)), h1);
}

static ax_value clipped(const ode *o, ax_value dt) {
  dt = ax_max(dt, ax_real(0));
  return isfinite(o->hmax) ? ax_min(dt, ax_real(o->hmax)) : dt;
}

/* How large the error is beside what it may be. */
static ax_value error_ratio(const ode *o, ax_value error, ax_value y, ax_value next) {
  ax_value bound = ax_add(ax_mul(ax_max(ax_abs(y), ax_abs(next)), ax_real(o->rtol)), ax_real(o->atol));
  return ax_sqrt(ax_reduce_mean(ax_square(ax_div(error, bound)), AX_ALL_DIMS, false));
}

static ax_value next_step(const ode *o, ax_value dt, ax_value ratio) {
  ax_value none = ax_eq(ratio, ax_real(0)),
           least = ax_where(ax_lt(ratio, ax_real(1)), ax_real(1), (ax_full)(o->dtype, 0, NULL, 0.2));
  ax_value wanted = ax_mul(ax_pow(ax_where(none, ax_real(1), ratio), ax_real(-1. / 5)), ax_real(0.9));
  ax_value factor = ax_where(none, ax_real(10), ax_min(ax_max(wanted, least), ax_real(10)));
  return clipped(o, ax_mul(dt, factor));
}

/* The polynomial of degree 4 through both ends with their slopes, and the middle; the highest power first. */
static ax_value polynomial(ax_value y, ax_value next, ax_value middle, ax_value slope, ax_value next_slope, ax_value dt) {
  static const double factors[powers - 2][5] = {{-8, -8, 16, -2, 2}, {18, 14, -32, 5, -3}, {-11, -5, 16, -4, 1}};
  const ax_value of[] = {y, next, middle, ax_mul(dt, slope), ax_mul(dt, next_slope)};
  ax_value out[powers];
  for (int p = 0; p < powers - 2; p++) out[p] = weighted(of, factors[p], 5);
  out[powers - 2] = of[3];
  out[powers - 1] = y;
  return (ax_stack)(powers, out, 0);
}

enum { at_y, at_slope, at_t, at_dt, at_last, at_polynomial, at_steps, carries };

typedef struct run { /* to a time */
  const ode *o;
  ax_value target;
} run;

static AX_BODY(not_there) {
  const run *r = context;
  out[0] = ax_and(ax_lt(in[at_t], r->target), ax_gt(in[at_dt], ax_real(0)));
  if (r->o->mxstep > 0) out[0] = ax_and(out[0], ax_lt(in[at_steps], ax_integer(r->o->mxstep)));
}

static AX_BODY(take_step) {
  const ode *o = ((const run *)context)->o;
  const ax_value y = in[at_y], t = in[at_t], dt = in[at_dt];
  ax_value k[stages] = {in[at_slope]}, next = y;
  for (int i = 1; i < stages; i++) {
    next = ax_add(y, ax_mul(dt, weighted(k, stage_factor[i], i)));
    k[i] = derivative(o, next, ax_add(t, ax_mul(dt, ax_real(stage_time[i]))));
  }
  ax_value ratio = error_ratio(o, ax_mul(dt, weighted(k, error_factor, stages)), y, next), good = ax_le(ratio, ax_real(1));
  ax_value middle = ax_add(y, ax_mul(dt, weighted(k, middle_factor, stages)));
  const ax_value taken[] = {next, k[stages - 1], ax_add(t, dt), ax_poison, t, polynomial(y, next, middle, k[0], k[stages - 1], dt)};
  for (int i = 0; i < at_steps; i++) out[i] = i == at_dt ? next_step(o, dt, ratio) : ax_where(good, taken[i], in[i]);
  out[at_steps] = ax_add(in[at_steps], ax_integer(1));
}

/* carries.., a time -> carries.., y there */
static AX_BODY(go_to) {
  const ode *o = context;
  run r = {o, in[carries]};
  ax_value start[carries];
  memcpy(start, in, sizeof start);
  start[at_steps] = (ax_full)(AX_S64, 0, NULL, 0);
  (ax_while)(AX_CLOSURE(not_there, carries, 1, &r), AX_CLOSURE(take_step, carries, carries, &r), carries, start, carries, out);
  if (ax_failed()) return;
  ax_value part = ax_div(ax_sub(r.target, out[at_last]), ax_sub(out[at_t], out[at_last])), sum = ax_poison;
  for (int p = 0; p < powers; p++) {
    ax_value term = (ax_squeeze)(ax_slice_in_dim(out[at_polynomial], p, p + 1, 1, 0), 1, (int64_t[]){0});
    sum = p == 0 ? term : ax_add(ax_mul(sum, part), term);
  }
  out[carries] = sum;
}

static ax_value at_time(ax_value ts, int64_t i) { return (ax_squeeze)(ax_slice_in_dim(ts, i, i + 1, 1, 0), 1, (int64_t[]){0}); }

/* y0 as a vector, at all times: T[n, size]. */
static ax_value integrate(const ode *o, ax_value y0, ax_value ts, int64_t times) {
  ax_value first = ax_expand_dims(y0, 0), t0 = at_time(ts, 0), slope = derivative(o, y0, t0);
  if (times == 1 || ax_failed()) return first;
  ax_value same[powers] = {y0, y0, y0, y0, y0};
  ax_value in[] = {y0,
                   slope,
                   t0,
                   clipped(o, first_step(o, t0, y0, slope)),
                   t0,
                   (ax_stack)(powers, same, 0),
                   (ax_full)(AX_S64, 0, NULL, 0),
                   ax_slice_in_dim(ts, 1, times, 1, 0)};
  ax_value out[carries + 1];
  (ax_scan)(AX_CLOSURE(go_to, carries + 1, carries + 1, o), carries, -1, false, carries + 1, in, carries + 1, out);
  return ax_failed() ? ax_poison : (ax_concatenate)(2, (ax_value[]){first, out[carries]}, 0);
}

/* --- Derivatives backwards --- */

static void solve(const ode *o, const ax_value *in, ax_value *out);

static AX_BODY(ahead) { /* y0.., ts, args.. -> ys.. */
  ode o = *(const ode *)context;
  const int64_t times = ax_typeof(in[o.count]).dims[0];
  o.args = in + o.count + 1;
  split(&o, integrate(&o, join(&o, in), in[o.count], times), &times, out);
}

/* -> ys.., and the residuals: ys.., ts, args.. */
static AX_BODY(forward) {
  const ode *o = context;
  ahead(in, out, context);
  for (uint32_t i = 0; i < o->count; i++) out[o->count + i] = out[i];
  for (uint32_t i = o->count; i < o->f.in_count; i++) out[o->count + i] = in[i];
}

/* In reversed time, s = -t: (y.., adjoint.., t's.., args'.., s, args..) -> their derivatives. */
static AX_BODY(adjoint) {
  const ode *o = context;
  const uint32_t n = o->count, all = o->f.in_count;
  const ax_value *y = in, *cotangent = in + n, s = in[n + all], *args = in + n + all + 1;
  ax_value *at = ax_trace_alloc((all + n) * sizeof at[0]);
  if (at == NULL) return;
  memcpy(at, y, n * sizeof at[0]);
  at[n] = ax_neg(s);
  memcpy(at + n + 1, args, arg_count(o) * sizeof at[0]);
  (ax_vjp)(o->f, AX_FIRST(all), all, at, n, cotangent, n, at + all, all, out + n);
  for (uint32_t i = 0; i < n; i++) out[i] = ax_neg(at[all + i]);
}

typedef struct back {
  const ode *o;
  const ax_type *types; /* of y.., of its cotangents.., of t's, of the args' */
  const ax_value *args;
} back;

/* From a time to the one before it: (y's adjoint.., t's, args'..; y.., its cotangents.., those at the time before.., both times)
   -> (y's adjoint.., t's, args'..; the cotangent of the time) */
static AX_BODY(go_back) {
  const back *b = context;
  const ode *o = b->o;
  const uint32_t n = o->count, all = o->f.in_count, args = arg_count(o), state = n + all;
  const ax_value *y = in + all, *g = y + n, *g_before = g + n, t = in[all + 3 * n], t_before = in[all + 3 * n + 1];
  ax_value *f_in = ax_trace_alloc((all + 2 * (state + 1 + args)) * sizeof f_in[0]), sum = ax_poison;
  if (f_in == NULL) return;
  memcpy(f_in, y, n * sizeof f_in[0]);
  f_in[n] = t;
  memcpy(f_in + n + 1, b->args, args * sizeof f_in[0]);
  const ax_value *slope = ax_builder_call(o->f, f_in);
  for (uint32_t i = 0; slope != NULL && i < n; i++) sum = i == 0 ? ax_vdot(slope[i], g[i]) : ax_add(sum, ax_vdot(slope[i], g[i]));
  if (slope == NULL) return;
  ax_value *begin = f_in + all, *made = begin + state + 1 + args;
  memcpy(begin, y, n * sizeof begin[0]);
  memcpy(begin + n, in, all * sizeof begin[0]);
  begin[2 * n] = ax_sub(in[n], sum);
  begin[state] = (ax_stack)(2, (ax_value[]){ax_neg(t), ax_neg(t_before)}, 0);
  memcpy(begin + state + 1, b->args, args * sizeof begin[0]);
  ode reversed = *o;
  reversed.f = AX_CLOSURE(adjoint, state + 1 + args, state, o);
  reversed.count = state;
  reversed.types = b->types;
  reversed.depth = o->depth - 1;
  solve(&reversed, begin, made);
  for (uint32_t i = 0; i < all && !ax_failed(); i++) {
    out[i] = (ax_squeeze)(ax_slice_in_dim(made[n + i], 1, 2, 1, 0), 1, (int64_t[]){0});
    if (i < n) out[i] = ax_add(out[i], g_before[i]);
  }
  out[all] = sum;
}

/* (ys.., ts, args.., the cotangents of ys..) -> those of y0.., ts, args.. */
static AX_BODY(backward) {
  const ode *o = context;
  const uint32_t n = o->count, all = o->f.in_count, args = arg_count(o), sliced = 3 * n + 2;
  const ax_value *ys = in, ts = in[n], *g = in + all;
  const int64_t times = ax_typeof(ts).dims[0];
  ax_type *types = ax_trace_alloc((n + all) * sizeof types[0]);
  ax_value *room = ax_trace_alloc(2 * (all + sliced + 1) * sizeof room[0]), *scanned = room + all, *made = room + all + sliced;
  if (types == NULL || room == NULL) return;
  back b = {o, types, in + n + 1};
  for (uint32_t i = 0; i < n; i++) {
    types[i] = types[n + i] = o->types[i];
    room[i] = (ax_squeeze)(ax_slice_in_dim(g[i], times - 1, times, 1, 0), 1, (int64_t[]){0});
    scanned[i] = ax_slice_in_dim(ys[i], 1, times, 1, 0);
    scanned[n + i] = ax_slice_in_dim(g[i], 1, times, 1, 0);
    scanned[2 * n + i] = ax_slice_in_dim(g[i], 0, times - 1, 1, 0);
  }
  types[2 * n] = (ax_type){.form = AX_ARRAY, .dtype = o->dtype};
  room[n] = (ax_full)(o->dtype, 0, NULL, 0);
  for (uint32_t i = 0; i < args; i++) {
    types[2 * n + 1 + i] = ax_typeof(b.args[i]);
    room[n + 1 + i] = ax_full_like(b.args[i], 0);
  }
  scanned[3 * n] = ax_slice_in_dim(ts, 1, times, 1, 0);
  scanned[3 * n + 1] = ax_slice_in_dim(ts, 0, times - 1, 1, 0);
  if (ax_failed()) return;
  (ax_scan)(AX_CLOSURE(go_back, all + sliced, all + 1, &b), all, -1, true, all + sliced, room, all + 1, made);
  for (uint32_t i = 0; i < all && !ax_failed(); i++) out[i] = made[i];
  if (!ax_failed()) out[n] = (ax_concatenate)(2, (ax_value[]){ax_expand_dims(made[n], 0), made[all]}, 0);
}

static void solve(const ode *o, const ax_value *in, ax_value *out) {
  const uint32_t n = o->count, all = o->f.in_count;
  if (o->depth == 0)
    ahead(in, out, (void *)(uintptr_t)o);
  else
    (ax_custom_vjp)(AX_CLOSURE(ahead, all, n, o), AX_CLOSURE(forward, all, n + all, o), AX_CLOSURE(backward, all + n, all, o), all,
                    in, n, out);
}

/* --- The function --- */

static bool take_operands(ode *o, const ax_value *in, ax_type *types) {
  for (uint32_t i = 0; i < o->f.in_count; i++) {
    if (!ax_operand(name, in[i], &types[i])) return false;
    if (!ax_is_float(types[i].dtype) || types[i].dtype != types[0].dtype)
      return ax_reject_as(name, "operand %u is %s; all must be of one dtype, a float", i, ax_operand_string(&types[i])), false;
  }
  const ax_type *ts = &types[o->count];
  if (ts->rank != 1 || ts->dims[0] == 0)
    return ax_reject_as(name, "the times are %s; they must be a vector, not empty", ax_operand_string(ts)), false;
  o->dtype = types[0].dtype;
  o->types = types;
  return true;
}

void(ax_odeint)(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out,
                const ax_odeint_options *options) {
  const ax_odeint_options given = options != NULL ? *options : (ax_odeint_options){0};
  ode o = {.f = f, .count = f.out_count, .mxstep = given.mxstep, .depth = 2};
  if (!ax_lists_fit(name, in_count, f.in_count, out_count, f.out_count, out)) return;
  in = ax_take_operands(in, f.in_count, out, f.out_count);
  ax_type *types = ax_trace_alloc(f.in_count * sizeof types[0]);
  if (types == NULL || ax_failed()) return;
  if (f.out_count == 0 || f.in_count <= f.out_count) {
    (void)ax_reject_as(name, "f takes %u values and gives %u; it must take y, the time and further operands, and give what y is",
                       f.in_count, f.out_count);
    return;
  }
  if (!(given.rtol >= 0) || !(given.atol >= 0) || !(given.hmax >= 0) || given.mxstep < 0) {
    (void)ax_reject_as(name, "rtol, atol, mxstep and hmax must not be below 0");
    return;
  }
  o.rtol = given.rtol > 0 ? given.rtol : 1.4e-8;
  o.atol = given.atol > 0 ? given.atol : 1.4e-8;
  o.hmax = given.hmax > 0 ? given.hmax : INFINITY;
  if (take_operands(&o, in, types)) solve(&o, in, out);
}
