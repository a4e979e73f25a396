/* The families of programs that scaling.c measures: of each a program of any size.

   The derivative is taken inside the trace, by ax_value_and_grad; the time of the function it traces is the trace's, the rest is
   the derivative's. */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "serve.h"
#include "transformer.h"

void *family_room(int64_t count, size_t bytes) {
  void *memory = calloc((size_t)count, bytes);
  if (memory == NULL) abort();
  return memory;
}

/* --- The derivative, timed --- */

static void timed_loss(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  double start = bench_seconds();
  s->loss(in, out, s->loss_context);
  s->inner += bench_seconds() - start;
}

static void value_and_grad(subject *s, const ax_value *in, uint32_t in_count, ax_value *out) {
  double start = bench_seconds();
  ax_value_and_grad(AX_CLOSURE(timed_loss, in_count, 1, s), AX_FIRST(s->wrt_count), in, out);
  s->whole += bench_seconds() - start;
}

void family_gradients(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  value_and_grad(s, in, s->job.in_count, out);
}

/* --- Inputs --- */

/* So many inputs of one shape, over "d" if there is a mesh, and results that lie as `out_spec` says. */
static void shape(subject *s, ax_function body, int64_t in_count, int64_t out_count, const int64_t *dims, uint32_t rank,
                  const char *out_spec) {
  ax_type *types = family_room(in_count, sizeof types[0]);
  const char **specs = family_room(in_count + out_count, sizeof specs[0]);
  for (int64_t i = 0; i < in_count; i++) {
    types[i] = ax_array_type(AX_F32, AX_LIST(rank, dims));
    specs[i] = "d";
  }
  for (int64_t i = 0; i < out_count; i++) specs[in_count + i] = out_spec;
  s->job = (job_function){body, s, s->job.mesh, (uint32_t)in_count, (uint32_t)out_count, types, specs, specs + in_count};
}

#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

void family_differentiated(subject *s, ax_function loss, uint32_t in_count, uint32_t rank, const int64_t *dims) {
  s->loss = loss;
  s->loss_context = s;
  s->wrt_count = in_count;
  shape(s, family_gradients, in_count, 1 + in_count, dims, rank, "");
}

static void differentiated(subject *s, ax_function loss, uint32_t in_count, const int64_t *dims, uint32_t rank) {
  family_differentiated(s, loss, in_count, rank, dims);
}

/* --- The families. n: equations, layers, parameters, steps or collectives --- */

static ax_value chained(const subject *s, ax_value x, ax_value y) {
  for (int64_t i = 0; i < s->n; i++) x = i % 2 == 0 ? ax_mul(x, y) : ax_add(x, y);
  return x;
}

static void chain_body(const ax_value *in, ax_value *out, void *context) { out[0] = chained(context, in[0], in[1]); }
static void chain(subject *s) { shape(s, chain_body, 2, 1, DIMS(1024), ""); }

static void chain_loss(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_reduce_sum(chained(context, in[0], in[1]), AX_ALL_DIMS, false);
}
static void chain_grad(subject *s) { differentiated(s, chain_loss, 2, DIMS(1024)); }

static void products_loss(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) x = ax_matmul(x, in[1]);
  out[0] = ax_reduce_sum(x, AX_ALL_DIMS, false);
}
static void products_grad(subject *s) { differentiated(s, products_loss, 2, DIMS(64, 64)); }

static void layernorm_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  const int64_t last = -1;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) {
    ax_value centred = ax_sub(x, ax_expand_dims(ax_reduce_mean(x, AX_LIST(1, &last), false), -1));
    ax_value variance = ax_expand_dims(ax_reduce_mean(ax_mul(centred, centred), AX_LIST(1, &last), false), -1);
    x = ax_mul(ax_mul(centred, ax_rsqrt(ax_add(variance, ax_full_like(variance, 1e-5)))), in[1]);
  }
  out[0] = x;
}
static void layernorm(subject *s) { shape(s, layernorm_body, 2, 1, DIMS(64, 256), ""); }

static ax_value times(double factor, ax_value x) { return ax_mul(ax_full_like(x, factor), x); }

/* (w.., g..) -> w.. */
static void sgd_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  for (int64_t i = 0; i < s->n; i++) out[i] = ax_sub(in[i], times(0.1, in[s->n + i]));
}
static void sgd(subject *s) { shape(s, sgd_body, 2 * s->n, s->n, DIMS(16, 16), ""); }

/* (w.., m.., v.., g..) -> w.., m.., v.. */
static void adam_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  for (int64_t i = 0; i < n; i++) {
    ax_value w = in[i], g = in[3 * n + i];
    ax_value m = ax_add(times(0.9, in[n + i]), times(0.1, g));
    ax_value v = ax_add(times(0.999, in[2 * n + i]), times(0.001, ax_mul(g, g)));
    ax_value root = ax_sqrt(v);
    out[i] = ax_sub(w, ax_div(times(0.01, m), ax_add(root, ax_full_like(root, 1e-8))));
    out[n + i] = m;
    out[2 * n + i] = v;
  }
}
static void adam(subject *s) { shape(s, adam_body, 4 * s->n, 3 * s->n, DIMS(16, 16), ""); }

static void training_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value error = ax_sub(ax_matmul(ax_tanh(ax_matmul(in[2], in[0])), in[1]), in[3]);
  out[0] = ax_reduce_mean(ax_mul(error, error), AX_ALL_DIMS, false);
}

/* n steps, one after the other: (w1, w2, x, y) -> w1, w2 */
static void training_body(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  ax_value now[4] = {in[0], in[1], in[2], in[3]}, made[3];
  for (int64_t i = 0; i < s->n; i++) {
    value_and_grad(s, now, 4, made);
    for (int k = 0; k < 2; k++) now[k] = ax_sub(now[k], times(0.1, made[1 + k]));
  }
  out[0] = now[0];
  out[1] = now[1];
}
static void training(subject *s) {
  s->loss = training_loss;
  s->wrt_count = 2;
  shape(s, training_body, 4, 2, DIMS(32, 32), "");
}

static void sequence_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) x = ax_mul(ax_psum(x, "d"), in[1]);
  out[0] = x;
}
static void psums_in_sequence(subject *s) {
  s->job.mesh = "d=8";
  shape(s, sequence_body, 2, 1, DIMS(64), "d");
}

static void side_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  for (int64_t i = 0; i < s->n; i++) out[i] = ax_psum(in[i], "d");
}
static void psums_side_by_side(subject *s) {
  s->job.mesh = "d=8";
  shape(s, side_body, s->n, s->n, DIMS(64), "");
}

static void transformer(subject *s) {
  transformer_sizes *sizes = family_room(1, sizeof *sizes);
  *sizes = (transformer_sizes){s->n, 256, 8, 1024, 128, 32, 256};
  model *m = transformer_model(sizes);
  const char **out_specs = family_room(1 + m->weight_count, sizeof out_specs[0]);
  out_specs[0] = "";
  memcpy(out_specs + 1, m->specs, m->weight_count * sizeof out_specs[0]);
  s->loss = m->loss;
  s->loss_context = m;
  s->wrt_count = m->weight_count;
  s->job = (job_function){family_gradients, s, m->mesh, m->input_count, 1 + m->weight_count, m->types, m->specs, out_specs};
}

/* --- Loops and branches --- */

enum { steps_of_scan = 4 };

static ax_value total(const ax_value *values, int64_t count) {
  ax_value sum = values[0];
  for (int64_t i = 1; i < count; i++) sum = ax_add(sum, values[i]);
  return sum;
}

static ax_value half(ax_value x) { return times(0.5, x); }

static void each_carry(const ax_value *in, ax_value *out, void *context) {
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) out[i] = ax_tanh(in[i]);
}
static void next_carry(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  for (int64_t i = 0; i < n; i++) out[i] = i + 1 < n ? in[i + 1] : half(in[i]);
}

static ax_value scanned(const subject *s, ax_function body, const ax_value *in, bool all) {
  ax_value *made = family_room(s->n, sizeof made[0]);
  ax_scan(AX_CLOSURE(body, (uint32_t)s->n, (uint32_t)s->n, (void *)s), (uint32_t)s->n, steps_of_scan, false, in, made);
  ax_value sum = ax_reduce_sum(total(made, all ? s->n : 1), AX_ALL_DIMS, false);
  free(made);
  return sum;
}
static void scan_carries_loss(const ax_value *in, ax_value *out, void *context) { out[0] = scanned(context, each_carry, in, true); }
static void scan_shift_loss(const ax_value *in, ax_value *out, void *context) { out[0] = scanned(context, next_carry, in, false); }
static void scan_carries(subject *s) { differentiated(s, scan_carries_loss, (uint32_t)s->n, DIMS(4)); }
static void scan_shift(subject *s) { differentiated(s, scan_shift_loss, (uint32_t)s->n, DIMS(4)); }

/* One scan of a long body. */
static void long_step(const ax_value *in, ax_value *out, void *context) {
  out[0] = chained(context, in[0], in[1]);
  out[1] = in[1];
}
static void scan_chain_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  ax_scan(AX_CLOSURE(long_step, 2, 2, context), 2, steps_of_scan, false, in, made);
  out[0] = ax_reduce_sum(made[0], AX_ALL_DIMS, false);
}
static void scan_chain(subject *s) { differentiated(s, scan_chain_loss, 2, DIMS(4)); }

/* n scans, whiles or conds, one after the other. */
static void short_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_tanh(in[0]), in[1]);
  out[1] = in[1];
}
static void longer_step(const ax_value *in, ax_value *out, void *context) {
  short_step(in, out, context);
  out[0] = ax_add(out[0], in[0]);
}
static void is_large(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_full(AX_F32, AX_DIMS(), 1e9));
}
static void scans_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value now[2] = {in[0], in[1]};
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) ax_scan(AX_FN(short_step, 2, 2), 2, steps_of_scan, false, now, now);
  out[0] = ax_reduce_sum(now[0], AX_ALL_DIMS, false);
}
static void scans(subject *s) { differentiated(s, scans_loss, 2, DIMS(4)); }
static void whiles_body(const ax_value *in, ax_value *out, void *context) {
  ax_value now[2] = {in[0], in[1]};
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) ax_while(AX_FN(is_large, 2, 1), AX_FN(short_step, 2, 2), now, now);
  out[0] = now[0];
}
static void whiles(subject *s) { shape(s, whiles_body, 2, 1, DIMS(4), ""); }
static void conds_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value now[2] = {in[0], in[1]}, large;
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) {
    is_large(now, &large, NULL);
    ax_switch(ax_convert_element_type(large, AX_S32), AX_FNS(AX_FN(short_step, 2, 2), AX_FN(longer_step, 2, 2)), now, now);
  }
  out[0] = ax_reduce_sum(now[0], AX_ALL_DIMS, false);
}
static void conds(subject *s) { differentiated(s, conds_loss, 2, DIMS(4)); }

/* One cond of n branches. */
static void nth_branch(const ax_value *in, ax_value *out, void *context) {
  out[0] = times(*(const double *)context, ax_tanh(in[0]));
}
static void branches_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_fn *of = family_room(n, sizeof of[0]);
  double *factors = family_room(n, sizeof factors[0]);
  for (int64_t i = 0; i < n; i++) {
    factors[i] = 1 + (double)i;
    of[i] = AX_CLOSURE(nth_branch, 1, 1, &factors[i]);
  }
  ax_value index = ax_convert_element_type(ax_reduce_sum(in[0], AX_ALL_DIMS, false), AX_S32), made;
  ax_switch(index, AX_LIST((uint32_t)n, of), in, &made);
  out[0] = ax_reduce_sum(made, AX_ALL_DIMS, false);
  free(of), free(factors);
}
static void branches(subject *s) { differentiated(s, branches_loss, 1, DIMS(4)); }

/* A cond of two long branches: n residuals of one, of the other none. */
static void long_branch(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) out[0] = ax_tanh(ax_mul(out[0], in[1]));
}
static void short_branch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
}
static void long_cond_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value large, made;
  is_large(in, &large, NULL);
  ax_switch(ax_convert_element_type(large, AX_S32), AX_FNS(AX_FN(short_branch, 2, 1), AX_CLOSURE(long_branch, 2, 1, context)), in,
            &made);
  out[0] = ax_reduce_sum(made, AX_ALL_DIMS, false);
}
static void long_cond(subject *s) { differentiated(s, long_cond_loss, 2, DIMS(4)); }

/* A scan over n arrays, which gives n. */
static void each_slice(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  out[0] = in[0];
  for (int64_t i = 0; i < n; i++) {
    out[0] = ax_add(out[0], in[1 + i]);
    out[1 + i] = ax_tanh(in[1 + i]);
  }
}
static void scan_slices_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value *all = family_room(2 * (n + 1), sizeof all[0]), *made = all + n + 1;
  all[0] = ax_full(AX_F32, AX_DIMS(2), 0);
  for (int64_t i = 0; i < n; i++) all[1 + i] = in[i];
  ax_scan(AX_CLOSURE(each_slice, 1 + (uint32_t)n, 1 + (uint32_t)n, context), 1, -1, false, all, made);
  for (int64_t i = 0; i < n; i++) made[0] = ax_add(made[0], ax_reduce_sum(made[1 + i], AX_DIMS(0), false));
  out[0] = ax_reduce_sum(made[0], AX_ALL_DIMS, false);
  free(all);
}
static void scan_slices(subject *s) { differentiated(s, scan_slices_loss, (uint32_t)s->n, DIMS(4, 2)); }

static void calls_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value now[2] = {in[0], in[1]};
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) ax_closed_call(AX_FN(short_step, 2, 2), now, now);
  out[0] = ax_reduce_sum(now[0], AX_ALL_DIMS, false);
}
static void calls(subject *s) { differentiated(s, calls_loss, 2, DIMS(4)); }

/* Programs inside one another, n deep. `kind`: 0 scans, 1 conds, 2 whiles, 3 all in turn */
typedef struct nest {
  int kind;
  int64_t depth;
} nest;
static void nested_level(const ax_value *in, ax_value *out, void *context) {
  const nest *outer = context;
  nest inner = {outer->kind, outer->depth - 1};
  ax_value pair[] = {ax_mul(in[0], in[1]), in[1]}, large;
  short_step(in, out, NULL);
  if (outer->depth == 0) return;
  switch (outer->kind == 3 ? (int)(outer->depth % 3) : outer->kind) {
    case 0: ax_scan(AX_CLOSURE(nested_level, 2, 2, &inner), 2, 2, false, pair, out); break;
    case 1:
      is_large(in, &large, NULL);
      ax_switch(ax_convert_element_type(large, AX_S32), AX_FNS(AX_FN(short_step, 2, 2), AX_CLOSURE(nested_level, 2, 2, &inner)),
                pair, out);
      break;
    default: ax_while(AX_CLOSURE(is_large, 2, 1, &inner), AX_CLOSURE(nested_level, 2, 2, &inner), pair, out);
  }
}
static void nested_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  ax_value made[2];
  nested_level(in, made, &(nest){(int)(intptr_t)s->loss_context, s->n});
  out[0] = made[0];
}
static void nested(subject *s, int kind) {
  s->loss_context = (void *)(intptr_t)kind;
  shape(s, nested_body, 2, 1, DIMS(4), "");
}
static void nested_scans(subject *s) { nested(s, 0); }
static void nested_conds(subject *s) { nested(s, 1); }
static void nested_whiles(subject *s) { nested(s, 2); }
static void nested_mix(subject *s) { nested(s, 3); }

static void nested_loss(const ax_value *in, ax_value *out, void *context) {
  subject s = *(const subject *)context;
  s.loss_context = (void *)(intptr_t)(s.wrt_count == 1 ? 0 : 1);
  nested_body(in, out, &s);
  out[0] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}
static void nested_scans_grad(subject *s) {
  differentiated(s, nested_loss, 2, DIMS(4));
  s->wrt_count = 1;
  s->job.out_count = 2;
}
static void nested_conds_grad(subject *s) { differentiated(s, nested_loss, 2, DIMS(4)); }

/* Scans inside one another on a mesh: each begins with a constant, which only the innermost makes vary. */
typedef struct fresh {
  int64_t depth;
  ax_value x;
} fresh;
static void fresh_level(const ax_value *in, ax_value *out, void *context) {
  const fresh *outer = context;
  fresh inner = {outer->depth - 1, outer->x};
  out[0] = ax_mul(in[0], outer->x);
  if (outer->depth == 0) return;
  ax_value start = ax_full(AX_F32, AX_DIMS(4), 0.5), made;
  ax_scan(AX_CLOSURE(fresh_level, 1, 1, &inner), 1, 2, false, &start, &made);
  out[0] = ax_add(made, in[0]);
}
static void fresh_body(const ax_value *in, ax_value *out, void *context) {
  fresh_level(in, out, &(fresh){((const subject *)context)->n, in[0]});
}
static void nested_fresh(subject *s) {
  s->job.mesh = "d=8";
  shape(s, fresh_body, 1, 1, DIMS(32), "d");
}

/* --- Widths: results, arguments, values that many read, operations of many operands --- */

static void outputs_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  for (int64_t i = 0; i < n; i++) out[i] = times((double)i, in[0]);
}
static void outputs(subject *s) { shape(s, outputs_body, 1, s->n, DIMS(4), ""); }

/* The same value, n times, and inputs that go out as they are. */
static void same_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value y = half(in[0]);
  for (int64_t i = 0; i < n; i++) out[i] = i % 2 == 0 ? y : in[i];
}
static void same_outputs(subject *s) { shape(s, same_body, s->n, s->n, DIMS(4), ""); }

static void arguments_loss(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_reduce_sum(total(in, ((const subject *)context)->n), AX_ALL_DIMS, false);
}
static void arguments(subject *s) { differentiated(s, arguments_loss, (uint32_t)s->n, DIMS(4)); }

static void fan_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value *read = family_room(n, sizeof read[0]), y = ax_tanh(in[0]);
  for (int64_t i = 0; i < n; i++) read[i] = ax_tanh(times((double)i, y));
  out[0] = ax_reduce_sum(total(read, n), AX_ALL_DIMS, false);
  free(read);
}
static void fan(subject *s) { differentiated(s, fan_loss, 1, DIMS(4)); }

/* A product of n factors of which each is a product of matrices, which stops fusion. */
static void products_fan_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value *made = family_room(n, sizeof made[0]);
  for (int64_t i = 0; i < n; i++) made[i] = ax_matmul(times((double)i, in[0]), in[1]);
  out[0] = ax_reduce_sum(total(made, n), AX_ALL_DIMS, false);
  free(made);
}
static void products_fan(subject *s) { differentiated(s, products_fan_loss, 2, DIMS(16, 16)); }

static void concatenation_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  out[0] = ax_reduce_sum(ax_tanh(ax_concatenate(AX_LIST((uint32_t)n, in), 0)), AX_ALL_DIMS, false);
}
static void concatenation(subject *s) { differentiated(s, concatenation_loss, (uint32_t)s->n, DIMS(4)); }

/* Each operation of another shape. */
static void slices_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  for (int64_t i = 0; i < n; i++) out[i] = half(ax_slice(in[0], AX_DIMS(i / 2), AX_DIMS(n), NULL));
}
static void slices(subject *s) {
  shape(s, slices_body, 1, s->n, DIMS(s->n), "");
}
static void updates_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value x = in[0], start = ax_full_i64(AX_S32, AX_DIMS(), 0);
  for (int64_t i = 0; i < n; i++)
    x = ax_dynamic_update_slice(x, ax_slice(in[1], AX_DIMS(i / 2), AX_DIMS(n), NULL), &start);
  out[0] = x;
}
static void updates(subject *s) { shape(s, updates_body, 2, 1, DIMS(s->n), ""); }
static void rows_loss(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  ax_value *made = family_room(n, sizeof made[0]);
  for (int64_t i = 0; i < n; i++) {
    ax_value start = ax_convert_element_type(ax_reduce_sum(i > 0 ? made[i - 1] : in[0], AX_ALL_DIMS, false), AX_S32);
    made[i] = ax_dynamic_slice(in[0], &start, AX_DIMS(4));
  }
  out[0] = ax_reduce_sum(total(made, n), AX_ALL_DIMS, false);
  free(made);
}
static void rows(subject *s) { differentiated(s, rows_loss, 1, DIMS(64)); }

/* --- Collectives, each another one --- */

static void ppermutes_body(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  uint64_t state = 1;
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) {
    int64_t pairs[8][2];
    for (int64_t k = 0; k < 8; k++) pairs[k][0] = pairs[k][1] = k;
    for (int k = 7; k > 0; k--) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      int other = (int)((state >> 33) % (unsigned)(k + 1));
      int64_t swapped = pairs[k][1];
      pairs[k][1] = pairs[other][1];
      pairs[other][1] = swapped;
    }
    x = ax_mul(ax_ppermute(x, "d", 8, (const int64_t(*)[2])pairs), in[1]);
  }
  out[0] = x;
}
static void ppermutes(subject *s) {
  s->job.mesh = "d=8";
  shape(s, ppermutes_body, 2, 1, DIMS(64), "d");
}

/* Over subsets of eight axes. */
static void groups_body(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  for (int64_t i = 0; i < ((const subject *)context)->n; i++) {
    char axes[32] = "", *at = axes;
    for (int a = 0; a < 8; a++)
      if ((i % 255 + 1) >> a & 1) at += sprintf(at, "%s%c", at > axes ? "," : "", 'a' + a);
    x = ax_mul(ax_psum(x, axes), in[1]);
  }
  out[0] = x;
}
static void groups(subject *s) {
  s->job.mesh = "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2";
  shape(s, groups_body, 2, 1, DIMS(64), "d");
}

static void one_map(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(ax_tanh(in[0]), "d"), in[0]);
}
static void maps_loss(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  ax_value x = in[0];
  check(ax_mesh_parse("d=8", &mesh));
  for (int64_t i = 0; i < ((const subject *)context)->n; i++)
    ax_shard_map(&mesh, "d -> d", AX_FN(one_map, 1, 1), &x, &x);
  out[0] = ax_reduce_sum(x, AX_ALL_DIMS, false);
}
static void shard_maps(subject *s) { differentiated(s, maps_loss, 1, DIMS(64)); }

static void layers_called(subject *s) { family_layers(s, true, false); }
static void layers_written_out(subject *s) { family_layers(s, false, false); }
static void layers_called_on_mesh(subject *s) { family_layers(s, true, true); }
static void layers_written_out_on_mesh(subject *s) { family_layers(s, false, true); }

static const family families[] = {
    {"chain", chain},
    {"chain_grad", chain_grad},
    {"products_grad", products_grad},
    {"layernorm", layernorm},
    {"sgd", sgd},
    {"adam", adam},
    {"training", training},
    {"psums_in_sequence", psums_in_sequence},
    {"psums_side_by_side", psums_side_by_side},
    {"transformer", transformer},
    {"scan_carries", scan_carries},
    {"scan_shift", scan_shift},
    {"scan_chain", scan_chain},
    {"scans", scans},
    {"whiles", whiles},
    {"conds", conds},
    {"branches", branches},
    {"long_cond", long_cond},
    {"scan_slices", scan_slices},
    {"calls", calls},
    {"nested_scans", nested_scans},
    {"nested_conds", nested_conds},
    {"nested_whiles", nested_whiles},
    {"nested_mix", nested_mix},
    {"nested_scans_grad", nested_scans_grad},
    {"nested_conds_grad", nested_conds_grad},
    {"nested_fresh", nested_fresh},
    {"outputs", outputs},
    {"same_outputs", same_outputs},
    {"arguments", arguments},
    {"fan", fan},
    {"products_fan", products_fan},
    {"concatenation", concatenation},
    {"slices", slices},
    {"updates", updates},
    {"rows", rows},
    {"ppermutes", ppermutes},
    {"groups", groups},
    {"shard_maps", shard_maps},
    {"layers_called", layers_called},
    {"layers_written_out", layers_written_out},
    {"layers_called_on_mesh", layers_called_on_mesh},
    {"layers_written_out_on_mesh", layers_written_out_on_mesh},
    {NULL, NULL},
};

static bool make(const family *all, const char *name, subject *s) {
  while (all->name != NULL && strcmp(all->name, name) != 0) all++;
  if (all->name != NULL) all->make(s);
  return all->name != NULL;
}

bool family_make(const char *name, subject *s) {
  return make(families, name, s) || make(family_models, name, s) || make(family_kinds, name, s);
}
