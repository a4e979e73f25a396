/* Families whose kernels differ from one another, and loops that a model writes out: what a user's program has and a chain of equal
   operations has not. */
#include <stdlib.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "families.h"

static int64_t size_of(const void *context) { return ((const subject *)context)->n; }

static ax_value sum_of(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* A generator of numbers that are the same in each run. */
static int64_t below(uint64_t *state, int64_t limit) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)(*state >> 33) % limit;
}

/* h = tanh(h w + x_t u), n steps written out. (w, u, x) */
static void rnn_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value h = in[2];
  for (int64_t i = 0; i < size_of(context); i++) {
    ax_value x = ax_slice_in_dim(in[2], i % 16, i % 16 + 1, 1, 0);
    h = ax_tanh(ax_add(ax_matmul(h, in[0]), ax_matmul(x, in[1])));
  }
  out[0] = sum_of(h);
}
static void rnn(subject *s) { family_differentiated(s, rnn_loss, 3, 2, (const int64_t[]){16, 16}); }

/* n look-ups in one table, by rows that the one before decides. (table) */
static void lookups_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value all = ax_slice_in_dim(in[0], 0, 4, 1, 0);
  for (int64_t i = 0; i < size_of(context); i++) {
    ax_value index = ax_convert_element_type(ax_reduce_sum(all, AX_DIMS(1), false), AX_S32);
    all = ax_add(ax_take(in[0], index, 0), ax_tanh(all));
  }
  out[0] = sum_of(all);
}
static void lookups(subject *s) { family_differentiated(s, lookups_loss, 1, 2, (const int64_t[]){32, 8}); }

/* n parts of other sizes of one array, each with its arithmetic. (x) */
static void mixed_shapes_loss(const ax_value *in, ax_value *out, void *context) {
  uint64_t state = 1;
  for (int64_t i = 0; i < size_of(context); i++) {
    const int64_t rows = 1 + below(&state, 32), columns = 1 + below(&state, 32);
    ax_value part = ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(rows, columns), NULL);
    ax_value made = sum_of(ax_mul(ax_tanh(part), part));
    out[0] = i == 0 ? made : ax_add(out[0], made);
  }
}
static void mixed_shapes(subject *s) { family_differentiated(s, mixed_shapes_loss, 1, 2, (const int64_t[]){32, 32}); }

/* The gradient of the sum of a gradient, over a chain of n operations. (x, y) */
static void long_chain(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  for (int64_t i = 0; i < size_of(context); i++) x = i % 2 == 0 ? ax_mul(x, in[1]) : ax_sin(x);
  out[0] = sum_of(x);
}
static void grad_of_grad_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  ax_grad(AX_CLOSURE(long_chain, 2, 1, context), AX_FIRST(2), in, made);
  out[0] = sum_of(ax_mul(made[0], made[1]));
}
static void grad_of_grad(subject *s) { family_differentiated(s, grad_of_grad_loss, 2, 1, (const int64_t[]){64}); }

static void vmap_of_grad_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  ax_vmap(AX_GRAD(AX_FIRST(2), AX_CLOSURE(long_chain, 2, 1, context)), in, made, NULL);
  out[0] = sum_of(ax_mul(made[0], made[1]));
}
static void vmap_of_grad(subject *s) { family_differentiated(s, vmap_of_grad_loss, 2, 2, (const int64_t[]){8, 16}); }

/* n heads of attention, each on its columns of three arrays. (q, k, v): f32[32,8n] */
static void heads_loss(const ax_value *in, ax_value *out, void *context) {
  for (int64_t i = 0; i < size_of(context); i++) {
    ax_value part[3];
    for (int k = 0; k < 3; k++) part[k] = ax_slice_in_dim(in[k], 8 * i, 8 * i + 8, 1, 1);
    ax_value scores = ax_matmul(part[0], ax_transpose(part[1], AX_DIMS(1, 0)));
    ax_value made = sum_of(ax_tanh(ax_matmul(ax_softmax(scores, -1), part[2])));
    out[0] = i == 0 ? made : ax_add(out[0], made);
  }
}
static void heads(subject *s) { family_differentiated(s, heads_loss, 3, 2, (const int64_t[]){32, 8 * s->n}); }

/* n operations on any of the values before. (x) */
static void dag_loss(const ax_value *in, ax_value *out, void *context) {
  const int64_t n = size_of(context);
  uint64_t state = 1;
  ax_value *made = family_room(n + 1, sizeof made[0]);
  made[0] = in[0];
  for (int64_t i = 0; i < n; i++) {
    ax_value a = made[i - below(&state, i < 20 ? i + 1 : 20)], b = made[below(&state, i + 1)];
    switch (below(&state, 6)) {
      case 0: made[i + 1] = ax_mul(a, b); break;
      case 1: made[i + 1] = ax_sub(a, b); break;
      case 2: made[i + 1] = ax_tanh(a); break;
      case 3: made[i + 1] = ax_max(a, b); break;
      case 4: made[i + 1] = ax_mul(a, ax_full_like(a, 0.5 + (double)below(&state, 8))); break;
      default: made[i + 1] = ax_add(a, ax_broadcast_to(ax_reduce_sum(b, AX_DIMS(1), true), AX_DIMS(16, 32)));
    }
  }
  out[0] = sum_of(made[n]);
  for (int64_t i = 1; i < n; i++) out[0] = ax_add(out[0], sum_of(made[i]));
  free(made);
}
static void dag(subject *s) { family_differentiated(s, dag_loss, 1, 2, (const int64_t[]){16, 32}); }

/* n layers of other widths. (x) */
static void widths_loss(const ax_value *in, ax_value *out, void *context) {
  uint64_t state = 1;
  ax_value h = in[0];
  for (int64_t i = 0, before = 64, width; i < size_of(context); i++, before = width) {
    width = 8 + below(&state, 56);
    h = ax_tanh(ax_matmul(h, ax_slice(in[1], AX_DIMS(0, 0), AX_DIMS(before, width), NULL)));
  }
  out[0] = sum_of(h);
}
static void widths(subject *s) { family_differentiated(s, widths_loss, 2, 2, (const int64_t[]){64, 64}); }

/* So many inputs of types of their own, and the gradients by the first `wrt`. */
static void of_types(subject *s, ax_function loss, uint32_t count, uint32_t wrt, ax_type *types) {
  const char **specs = family_room((int64_t)count + wrt + 1, sizeof specs[0]);
  for (uint32_t i = 0; i < count + wrt + 1; i++) specs[i] = "";
  s->loss = loss;
  s->loss_context = s;
  s->wrt_count = wrt;
  s->job = (job_function){family_gradients, s, NULL, count, 1 + wrt, types, specs, specs};
}

/* A perceptron of n layers of other widths, each with weights of its own. (w, b, w, b, .. x) */
static void mlp_loss(const ax_value *in, ax_value *out, void *context) {
  const int64_t n = size_of(context);
  ax_value h = in[2 * n];
  for (int64_t i = 0; i < n; i++) h = ax_tanh(ax_add(ax_matmul(h, in[2 * i]), in[2 * i + 1]));
  out[0] = sum_of(ax_square(h));
}
static void mlp_widths(subject *s) {
  ax_type *types = family_room(2 * s->n + 1, sizeof types[0]);
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t before = 64 + 3 * (i % 100), after = 64 + 3 * ((i + 1) % 100);
    types[2 * i] = ax_array_type(AX_F32, AX_DIMS(before, after));
    types[2 * i + 1] = ax_array_type(AX_F32, AX_DIMS(after));
  }
  types[2 * s->n] = ax_array_type(AX_F32, AX_DIMS(32, 64));
  of_types(s, mlp_loss, (uint32_t)(2 * s->n + 1), (uint32_t)(2 * s->n), types);
}

/* Adam's step on n arrays of n shapes. (w.., m.., v.., g..) -> w.., m.., v.. */
static void adam_shapes_body(const ax_value *in, ax_value *out, void *context) {
  const int64_t n = size_of(context);
  for (int64_t i = 0; i < n; i++) {
    ax_value g = in[3 * n + i], m = ax_add(ax_mul(0.9, in[n + i]), ax_mul(0.1, g)),
             v = ax_add(ax_mul(0.999, in[2 * n + i]), ax_mul(0.001, ax_mul(g, g)));
    out[i] = ax_sub(in[i], ax_div(ax_mul(0.01, m), ax_add(ax_sqrt(v), 1e-8)));
    out[n + i] = m;
    out[2 * n + i] = v;
  }
}
static void adam_shapes(subject *s) {
  ax_type *types = family_room(4 * s->n, sizeof types[0]);
  for (int64_t i = 0; i < 4 * s->n; i++) types[i] = ax_array_type(AX_F32, AX_DIMS(1 + i % s->n % 97, 3 + i % s->n % 89));
  of_types(s, NULL, (uint32_t)(4 * s->n), 0, types);
  s->job.body = adam_shapes_body;
  s->job.out_count = (uint32_t)(3 * s->n);
}

const family family_models[] = {
    {"rnn", rnn},
    {"lookups", lookups},
    {"mixed_shapes", mixed_shapes},
    {"grad_of_grad", grad_of_grad},
    {"vmap_of_grad", vmap_of_grad},
    {"heads", heads},
    {"dag", dag},
    {"widths", widths},
    {"mlp_widths", mlp_widths},
    {"adam_shapes", adam_shapes},
    {NULL, NULL},
};
