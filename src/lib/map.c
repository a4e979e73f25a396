/* map, and scan with several steps in one round: scans of bodies that are put together.

   map            without batches a scan that carries nothing; with batches of b a scan over x[n / b, b, ..], whose body is the
                  function batched, and the function batched for the n % b slices left
   scan_unrolled  a scan over xs[n / u, u, ..] whose body makes u steps, and the n % u steps left after it: the last ones, reversed
                  those at the front. Nothing is moved for that, as the parts lie one after the other */
#include "axle/transform.h"
#include "prim/composite.h"

/* The types of operands that are looped over, and their length, -1 before. grouped: they are to have a dimension more. False: the
   trace has failed. */
static bool lengths(const char *function, uint32_t count, const ax_value *xs, bool grouped, ax_type *types, int64_t *length) {
  for (uint32_t i = 0; i < count; i++) {
    if (!ax_operand(function, xs[i], &types[i])) return false;
    if (types[i].rank == 0 || (grouped && types[i].rank == AX_MAX_RANK)) {
      (void)ax_reject_as(function, "xs %u is %s: %s", i, ax_operand_string(&types[i]),
                         types[i].rank == 0 ? "there is nothing to loop over" : "in groups its rank would be too large");
      return false;
    }
    if (*length == -1) *length = types[i].dims[0];
    if (types[i].dims[0] == *length) continue;
    (void)ax_reject_as(function, "xs %u has the length %lld, not %lld", i, (long long)types[i].dims[0], (long long)*length);
    return false;
  }
  return true;
}

/* x[from .. from + count, ..] as [count / size, size, ..]. */
static ax_value in_groups(ax_value x, const ax_type *type, int64_t from, int64_t count, int64_t size) {
  int64_t dims[AX_MAX_RANK + 1] = {count / size, size};
  for (uint32_t d = 1; d < type->rank; d++) dims[d + 1] = type->dims[d];
  return ax_reshape(ax_slice_in_dim(x, from, from + count, 1, 0), AX_LIST(type->rank + 1, dims));
}

/* [n, size, ..] -> [n size, ..]. */
static ax_value out_of_groups(ax_value x) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  int64_t dims[AX_MAX_RANK];
  dims[0] = type.dims[0] * type.dims[1];
  for (uint32_t d = 2; d < type.rank; d++) dims[d - 1] = type.dims[d];
  return ax_reshape(x, AX_LIST(type.rank - 1, dims));
}

/* --- map --- */

static void map_all(const ax_value *in, ax_value *out, void *context) {
  const ax_fn *f = context;
  ax_vmap(*f, AX_LIST(f->in_count, in), AX_LIST(f->out_count, out), NULL);
}

static void map_batches(ax_fn f, int64_t size, int64_t length, const ax_type *types, const ax_value *in, ax_value *out) {
  const int64_t rest = length % size, whole = length - rest;
  ax_value *xs = ax_trace_alloc((f.in_count + (size_t)f.out_count) * sizeof xs[0]), *last = xs + f.in_count;
  for (uint32_t i = 0; xs != NULL && i < f.in_count; i++) xs[i] = in_groups(in[i], &types[i], 0, whole, size);
  if (xs == NULL || ax_failed()) return;
  if (whole > 0 || rest == 0) {
    ax_scan(AX_CLOSURE(map_all, f.in_count, f.out_count, &f), 0, whole / size, false, AX_LIST(f.in_count, xs),
            AX_LIST(f.out_count, out));
    for (uint32_t k = 0; k < f.out_count; k++) out[k] = out_of_groups(out[k]);
  }
  if (rest == 0 || ax_failed()) return;
  for (uint32_t i = 0; i < f.in_count; i++) xs[i] = ax_slice_in_dim(in[i], whole, length, 1, 0);
  map_all(xs, last, &f);
  for (uint32_t k = 0; k < f.out_count; k++) out[k] = whole > 0 ? ax_concatenate(AX_VALUES(out[k], last[k]), 0) : last[k];
}

void(ax_map)(ax_fn f, int64_t batch_size, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  static const char name[] = "map";
  int64_t length = -1;
  if (!ax_lists_fit(name, in_count, f.in_count, out_count, f.out_count, out)) return;
  in = ax_take_operands(in, f.in_count, out, f.out_count);
  ax_type *types = ax_trace_alloc(f.in_count * sizeof types[0]);
  if (types == NULL || !lengths(name, f.in_count, in, batch_size > 0, types, &length)) return;
  if (length < 0 || batch_size < 0) {
    (void)ax_reject_as(name, length < 0 ? "there is no operand to loop over" : "the batch size is %lld", (long long)batch_size);
    return;
  }
  ax_value *made = ax_trace_alloc(f.out_count * sizeof made[0]);
  if (made == NULL) return;
  if (batch_size == 0)
    ax_scan(f, 0, length, false, AX_LIST(f.in_count, in), AX_LIST(f.out_count, made));
  else
    map_batches(f, batch_size, length, types, in, made);
  for (uint32_t k = 0; k < f.out_count && !ax_failed(); k++) out[k] = made[k];
}

/* --- scan_unrolled --- */

typedef struct unrolled {
  const char *name;
  ax_fn body;
  uint32_t carries, xs, ys;
  int64_t steps;
  bool reverse;
} unrolled;

static bool same_carries(const unrolled *u, const ax_value *before, const ax_value *after) {
  for (uint32_t k = 0; k < u->carries; k++) {
    const ax_type a = ax_typeof(before[k]), b = ax_typeof(after[k]);
    bool same = a.form == b.form && a.dtype == b.dtype && a.rank == b.rank;
    for (uint32_t d = 0; same && d < a.rank; d++) same = a.dims[d] == b.dims[d];
    if (same || ax_failed()) continue;
    (void)ax_reject_as(u->name, "carry %u starts as %s, but the body makes %s of it", k, ax_operand_string(&a),
                       ax_operand_string(&b));
  }
  return !ax_failed();
}

/* (carry.., xs..) -> (carry.., ys..): u->steps steps, over xs that have as many slices. */
static void make_steps(const ax_value *in, ax_value *out, void *context) {
  const unrolled *u = context;
  const uint32_t in_count = u->carries + u->xs;
  ax_value *given = ax_trace_alloc(in_count * sizeof given[0]);
  ax_value *ys = ax_trace_alloc(u->ys * (size_t)u->steps * sizeof ys[0]);
  if (given == NULL || ys == NULL) return;
  for (uint32_t k = 0; k < u->carries; k++) given[k] = in[k];
  for (int64_t step = 0; step < u->steps; step++) {
    const int64_t at = u->reverse ? u->steps - 1 - step : step;
    for (uint32_t i = u->carries; i < in_count; i++) given[i] = ax_at(in[i], at, 0);
    const ax_value *made = ax_builder_call(u->body, given);
    if (made == NULL || !same_carries(u, given, made)) return;
    for (uint32_t k = 0; k < u->carries; k++) given[k] = made[k];
    for (uint32_t k = 0; k < u->ys; k++) ys[k * u->steps + at] = made[u->carries + k];
  }
  for (uint32_t k = 0; k < u->carries; k++) out[k] = given[k];
  for (uint32_t k = 0; k < u->ys; k++) out[u->carries + k] = ax_stack(AX_LIST((uint32_t)u->steps, ys + k * u->steps), 0);
}

/* in: the carries, and xs of `length` slices; carries and ys go to `out`. */
static void scan_steps(unrolled *u, int64_t length, const ax_type *types, const ax_value *in, ax_value *out) {
  const int64_t group = u->steps, rest = length % group, whole = length - rest, from = u->reverse ? rest : 0;
  const uint32_t in_count = u->carries + u->xs, out_count = u->carries + u->ys;
  ax_value *given = ax_trace_alloc(in_count * sizeof given[0]), *last = ax_trace_alloc(out_count * sizeof last[0]);
  if (given == NULL || last == NULL) return;
  for (uint32_t k = 0; k < u->carries; k++) given[k] = in[k];
  for (uint32_t i = 0; i < u->xs; i++) given[u->carries + i] = in_groups(in[u->carries + i], &types[i], from, whole, group);
  ax_scan(AX_CLOSURE(make_steps, in_count, out_count, u), u->carries, whole / group, u->reverse, AX_LIST(in_count, given),
          AX_LIST(out_count, out));
  for (uint32_t k = u->carries; k < out_count; k++) out[k] = out_of_groups(out[k]);
  if (rest == 0 || ax_failed()) return;
  for (uint32_t k = 0; k < u->carries; k++) given[k] = out[k];
  const int64_t start = u->reverse ? 0 : whole;
  for (uint32_t i = u->carries; i < in_count; i++) given[i] = ax_slice_in_dim(in[i], start, start + rest, 1, 0);
  u->steps = rest;
  make_steps(given, last, u);
  for (uint32_t k = 0; k < u->carries; k++) out[k] = last[k];
  for (uint32_t k = u->carries; k < out_count; k++)
    out[k] = u->reverse ? ax_concatenate(AX_VALUES(last[k], out[k]), 0) : ax_concatenate(AX_VALUES(out[k], last[k]), 0);
}

void(ax_scan_unrolled)(ax_fn body, uint32_t carry_count, int64_t length, bool reverse, int64_t unroll, uint32_t in_count,
                       const ax_value *in, uint32_t out_count, ax_value *out) {
  static const char name[] = "scan_unrolled";
  if (!ax_lists_fit(name, in_count, body.in_count, out_count, body.out_count, out)) return;
  in = ax_take_operands(in, body.in_count, out, body.out_count);
  if (carry_count > body.in_count || carry_count > body.out_count || unroll < 1) {
    (void)ax_reject_as(
        name, unroll < 1 ? "the number of steps in a round is %lld" : "there are %lld carries, more than operands or results",
        unroll < 1 ? (long long)unroll : (long long)carry_count);
    return;
  }
  unrolled u = {name, body, carry_count, body.in_count - carry_count, body.out_count - carry_count, unroll, reverse};
  ax_type *types = ax_trace_alloc(u.xs * sizeof types[0]);
  ax_value *made = ax_trace_alloc(body.out_count * sizeof made[0]);
  if (types == NULL || made == NULL || !lengths(name, u.xs, in + carry_count, unroll > 1, types, &length)) return;
  if (length < 0) {
    (void)ax_reject_as(name, "there is neither a length nor xs");
    return;
  }
  if (unroll > length) u.steps = length;
  if (u.steps < 2)
    ax_scan(body, carry_count, length, reverse, AX_LIST(body.in_count, in), AX_LIST(body.out_count, made));
  else if (u.steps == length)
    make_steps(in, made, &u);
  else
    scan_steps(&u, length, types, in, made);
  for (uint32_t k = 0; k < body.out_count && !ax_failed(); k++) out[k] = made[k];
}
