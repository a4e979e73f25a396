/* Small programs of one device for b9: loops, cells, steps of training. bench/jax_ops.py has the same in JAX. */
#include <math.h>
#include <string.h>

#include "axle/transform.h"
#include "ops.h"

static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }
static ax_value integer(int64_t value) { return ax_full_i64(AX_S32, AX_DIMS(), value); }
static ax_value sum_all(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value mean_all(ax_value x) { return ax_reduce_mean(x, AX_ALL_DIMS, false); }

/* --- Loops --- */

static AX_BODY(one_more) { out[0] = ax_add(ax_mul(in[0], ax_full_like(in[0], 0.5)), ax_full_like(in[0], 1)); }
static AX_BODY(trivial_scan_body) { ax_scan(AX_FN(one_more, 1, 1), 1, op_int(context, 0), false, in, out); }
static void trivial_scan(op_case *c) { /* STEPS N */
  OP_IN(c, AX_F32, op_int(c, 1));
  c->body = trivial_scan_body;
  c->parts = (double)op_int(c, 0);
}

static AX_BODY(below) { out[0] = ax_lt(in[0], integer(op_int(context, 0))); }
static AX_BODY(counted) {
  out[0] = ax_add(in[0], integer(1));
  one_more(in + 1, out + 1, context);
}
static AX_BODY(trivial_while_body) {
  ax_value from[] = {integer(0), in[0]}, to[2];
  ax_while(AX_CLOSURE(below, 2, 1, context), AX_FN(counted, 2, 2), from, to);
  out[0] = to[1];
}
static void trivial_while(op_case *c) {
  trivial_scan(c);
  c->body = trivial_while_body;
}

static AX_BODY(halved) { out[0] = scaled(in[0], 0.5); }
static AX_BODY(tripled) { out[0] = ax_add(scaled(in[0], 3), ax_full_like(in[0], 1)); }
static AX_BODY(choosing) {
  ax_value first = ax_reshape(ax_slice(in[0], AX_DIMS(0), AX_DIMS(1), NULL), AX_DIMS());
  ax_if(ax_gt(first, ax_full_like(first, 1)), AX_FN(halved, 1, 1), AX_FN(tripled, 1, 1), in, out);
}
static AX_BODY(cond_scan_body) { ax_scan(AX_FN(choosing, 1, 1), 1, op_int(context, 0), false, in, out); }
static void cond_scan(op_case *c) {
  trivial_scan(c);
  c->body = cond_scan_body;
}

static AX_BODY(running) {
  out[0] = ax_add(in[0], in[1]);
  out[1] = out[0];
}
static AX_BODY(cumsum_body) {
  const int64_t width = op_int(context, 1);
  ax_value from[] = {ax_full(AX_F32, AX_LIST(1, &width), 0), in[0]}, to[2];
  ax_scan(AX_FN(running, 2, 2), 1, op_int(context, 0), false, from, to);
  out[0] = to[1];
}
static void cumsum(op_case *c) { /* STEPS WIDTH */
  OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 1));
  c->body = cumsum_body;
}

/* (i, table): row i becomes half of it and one. */
static AX_BODY(renew) {
  const ax_value at[] = {in[0], integer(0)};
  ax_value row = ax_dynamic_slice(in[1], at, AX_DIMS(1, ax_typeof(in[1]).dims[1]));
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_dynamic_update_slice(in[1], ax_add(scaled(row, 0.5), ax_full_like(row, 1)), at);
}
static AX_BODY(dus_scan_body) {
  ax_value from[] = {integer(0), in[0]}, to[2];
  ax_scan(AX_FN(renew, 2, 2), 2, op_int(context, 0), false, from, to);
  out[0] = to[1];
}
static void dus_scan(op_case *c) { /* ROWS WIDTH */
  cumsum(c);
  c->body = dus_scan_body;
}

static AX_BODY(take_row) {
  const ax_value at[] = {in[0], integer(0)};
  ax_value row = ax_dynamic_slice(in[2], at, AX_DIMS(1, ax_typeof(in[2]).dims[1]));
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_add(in[1], row);
  out[2] = in[2];
}
static AX_BODY(ds_scan_body) {
  const int64_t dims[] = {1, op_int(context, 1)};
  ax_value from[] = {integer(0), ax_full(AX_F32, AX_LIST(2, dims), 0), in[0]}, to[3];
  ax_scan(AX_FN(take_row, 3, 3), 3, op_int(context, 0), false, from, to);
  out[0] = to[1];
}
static void ds_scan(op_case *c) {
  cumsum(c);
  c->body = ds_scan_body;
}

/* (i, keys, values, q): q is written into both at i, and attends over all of it. */
static AX_BODY(kv_step) {
  const ax_value at[] = {in[0], integer(0)};
  ax_value keys = ax_dynamic_update_slice(in[1], in[3], at), values = ax_dynamic_update_slice(in[2], scaled(in[3], 0.5), at);
  ax_value shares = ax_softmax(ax_matmul(in[3], ax_transpose(keys, AX_DIMS(1, 0))), -1);
  out[0] = ax_add(in[0], integer(1));
  out[1] = keys;
  out[2] = values;
  out[3] = ax_tanh(ax_matmul(shares, values));
}
static AX_BODY(kv_scan_body) {
  ax_value from[] = {integer(0), in[0], in[1], in[2]}, to[4];
  ax_scan(AX_FN(kv_step, 4, 4), 4, op_int(context, 0), false, from, to);
  out[0] = to[3];
}
static void kv_scan(op_case *c) { /* STEPS WIDTH */
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 1));
  OP_IN(c, AX_F32, 1, op_int(c, 1));
  c->body = kv_scan_body;
  c->moved = 2 * 4.0 * (double)op_int(c, 0) * (double)op_int(c, 0) * (double)op_int(c, 1);
}

static ax_value shifted(ax_value x, int64_t by, int64_t dimension) { /* zeros come in */
  ax_type t = ax_typeof(x);
  int64_t low[2] = {0}, high[2] = {0};
  low[dimension] = by;
  high[dimension] = -by;
  const int64_t interior[2] = {0};
  return ax_pad(x, ax_full(t.dtype, AX_DIMS(), 0), AX_LIST(t.rank, low), AX_LIST(t.rank, high), AX_LIST(t.rank, interior));
}
static AX_BODY(diffuse1) {
  out[0] = ax_add(scaled(in[0], 0.5), scaled(ax_add(shifted(in[0], 1, 0), shifted(in[0], -1, 0)), 0.25));
}
static AX_BODY(stencil1_body) { ax_scan(AX_FN(diffuse1, 1, 1), 1, op_int(context, 0), false, in, out); }
static void stencil1(op_case *c) { /* STEPS N */
  OP_IN(c, AX_F32, op_int(c, 1));
  c->body = stencil1_body;
  c->moved = (double)op_int(c, 0) * 8 * (double)op_int(c, 1);
}
static AX_BODY(diffuse2) {
  ax_value padded = ax_pad(in[0], op_number(AX_F32, 0), AX_DIMS(1, 1), AX_DIMS(1, 1), AX_DIMS(0, 0));
  ax_type t = ax_typeof(in[0]);
  static const int64_t at[4][2] = {{0, 1}, {2, 1}, {1, 0}, {1, 2}};
  ax_value sum = scaled(in[0], 0.5);
  for (int i = 0; i < 4; i++)
    sum = ax_add(sum, scaled(ax_slice(padded, at[i], AX_DIMS(at[i][0] + t.dims[0], at[i][1] + t.dims[1]), NULL), 0.125));
  out[0] = sum;
}
static AX_BODY(stencil2_body) { ax_scan(AX_FN(diffuse2, 1, 1), 1, op_int(context, 0), false, in, out); }
static void stencil2(op_case *c) { /* STEPS M N */
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2));
  c->body = stencil2_body;
  c->moved = (double)op_int(c, 0) * 8 * (double)op_int(c, 1) * (double)op_int(c, 2);
}

/* Conjugate gradients of a matrix that is a stencil: no matrix is stored. */
static ax_value laplacian(ax_value p) {
  const int64_t m = ax_typeof(p).dims[0], n = ax_typeof(p).dims[1];
  ax_value padded = ax_pad(p, op_number(AX_F32, 0), AX_DIMS(1, 1), AX_DIMS(1, 1), AX_DIMS(0, 0)), rest = scaled(p, 4.1);
  static const int64_t at[4][2] = {{0, 1}, {2, 1}, {1, 0}, {1, 2}};
  for (int i = 0; i < 4; i++) rest = ax_sub(rest, ax_slice(padded, at[i], AX_DIMS(at[i][0] + m, at[i][1] + n), NULL));
  return rest;
}
static ax_value dot_of(ax_value x, ax_value y) { return ax_reduce_sum(ax_mul(x, y), AX_ALL_DIMS, false); }
static ax_value nonzero(ax_value x) { return ax_add(x, ax_full_like(x, 1e-20)); }
static AX_BODY(stencil_cg_step) { /* x, r, p, rr */
  ax_value ap = laplacian(in[2]), alpha = ax_div(in[3], nonzero(dot_of(in[2], ap)));
  ax_value r = ax_sub(in[1], ax_mul(alpha, ap)), rr = dot_of(r, r);
  out[0] = ax_add(in[0], ax_mul(alpha, in[2]));
  out[1] = r;
  out[2] = ax_add(r, ax_mul(ax_div(rr, nonzero(in[3])), in[2]));
  out[3] = rr;
}
static AX_BODY(stencil_cg_body) {
  ax_value first[] = {ax_full_like(in[0], 0), in[0], in[0], dot_of(in[0], in[0])}, last[4];
  ax_scan(AX_FN(stencil_cg_step, 4, 4), 4, op_int(context, 0), false, first, last);
  out[0] = last[0];
}
static void stencil_cg(op_case *c) { /* STEPS M N */
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2));
  c->body = stencil_cg_body;
}

/* Conjugate gradients: 20 steps with a matrix that is made symmetric and positive. */
static AX_BODY(cg_step) { /* x, r, p, rr, a */
  ax_value ap = ax_matmul(in[4], in[2]), alpha = ax_div(in[3], nonzero(ax_matmul(in[2], ap)));
  ax_value x = ax_add(in[0], ax_mul(alpha, in[2])), r = ax_sub(in[1], ax_mul(alpha, ap)), rr = ax_matmul(r, r);
  out[0] = x;
  out[1] = r;
  out[2] = ax_add(r, ax_mul(ax_div(rr, nonzero(in[3])), in[2]));
  out[3] = rr;
  out[4] = in[4];
}
static AX_BODY(cg_body) {
  ax_type t = ax_typeof(in[0]);
  ax_value a = ax_add(in[0], ax_transpose(in[0], AX_DIMS(1, 0)));
  ax_value row = ax_iota(AX_S32, AX_LIST(2, t.dims), 0), column = ax_iota(AX_S32, AX_LIST(2, t.dims), 1);
  a = ax_add(a, ax_where(ax_eq(row, column), ax_full_like(a, 4 * (double)t.dims[0]), ax_full_like(a, 0)));
  ax_value from[] = {ax_full_like(in[1], 0), in[1], in[1], ax_matmul(in[1], in[1]), a}, to[5];
  ax_scan(AX_FN(cg_step, 5, 5), 5, 20, false, from, to);
  out[0] = to[0];
}
static void cg(op_case *c) { /* N */
  double n = (double)op_int(c, 0);
  OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 0));
  OP_IN(c, AX_F32, op_int(c, 0));
  c->body = cg_body;
  c->moved = 22 * 4 * n * n;
}

/* --- Cells --- */

static AX_BODY(rnn_step) { out[0] = ax_tanh(ax_add(ax_matmul(in[0], in[1]), in[2])); out[1] = in[1]; }
static AX_BODY(rnn_body) { /* x, w, u */
  ax_type t = ax_typeof(in[0]);
  ax_value from[] = {ax_full(AX_F32, AX_DIMS(t.dims[1], t.dims[2]), 0), scaled(in[2], 0.01),
                     ax_matmul(in[0], scaled(in[1], 0.01))},
           to[2];
  ax_scan(AX_FN(rnn_step, 3, 2), 2, t.dims[0], false, from, to);
  out[0] = to[0];
}
static AX_BODY(rnn_loss) {
  ax_value y;
  rnn_body(in, &y, context);
  out[0] = sum_all(y);
}
static AX_BODY(rnn_grad_body) { ax_grad(AX_CLOSURE(rnn_loss, 3, 1, context), AX_FIRST(3), in, out); }
static void rnn(op_case *c) { /* fwd|grad STEPS BATCH WIDTH */
  bool grad = strcmp(c->words[0], "grad") == 0;
  int64_t steps = op_int(c, 1), batch = op_int(c, 2), width = op_int(c, 3);
  OP_IN(c, AX_F32, steps, batch, width);
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, width, width);
  for (int i = 0; i < (grad ? 6 : 2); i++) op_product(c, AX_F32, (double)(steps * batch), (double)width, (double)width);
  c->body = grad ? rnn_grad_body : rnn_body;
  c->out_count = grad ? 3 : 1;
}

static AX_BODY(lstm_step) { /* h, c, u, x */
  ax_value all = ax_add(ax_matmul(in[0], in[2]), in[3]), gate[4];
  int64_t batch = ax_typeof(in[0]).dims[0], width = ax_typeof(in[0]).dims[1];
  for (int i = 0; i < 4; i++) gate[i] = ax_slice(all, AX_DIMS(0, i * width), AX_DIMS(batch, (i + 1) * width), NULL);
  out[1] = ax_add(ax_mul(ax_logistic(gate[1]), in[1]), ax_mul(ax_logistic(gate[0]), ax_tanh(gate[2])));
  out[0] = ax_mul(ax_logistic(gate[3]), ax_tanh(out[1]));
  out[2] = in[2];
}
static AX_BODY(lstm_body) {
  ax_type t = ax_typeof(in[0]);
  ax_value zero = ax_full(AX_F32, AX_DIMS(t.dims[1], t.dims[2]), 0);
  ax_value from[] = {zero, zero, scaled(in[2], 0.01), ax_matmul(in[0], scaled(in[1], 0.01))}, to[3];
  ax_scan(AX_FN(lstm_step, 4, 3), 3, t.dims[0], false, from, to);
  out[0] = to[0];
}
static AX_BODY(lstm_loss) {
  ax_value y;
  lstm_body(in, &y, context);
  out[0] = sum_all(y);
}
static AX_BODY(lstm_grad_body) { ax_grad(AX_CLOSURE(lstm_loss, 3, 1, context), AX_FIRST(3), in, out); }
static void lstm(op_case *c) {
  bool grad = strcmp(c->words[0], "grad") == 0;
  int64_t steps = op_int(c, 1), batch = op_int(c, 2), width = op_int(c, 3);
  OP_IN(c, AX_F32, steps, batch, width);
  for (int i = 0; i < 2; i++) OP_IN(c, AX_F32, width, 4 * width);
  for (int i = 0; i < (grad ? 6 : 2); i++) op_product(c, AX_F32, (double)(steps * batch), 4.0 * (double)width, (double)width);
  c->body = grad ? lstm_grad_body : lstm_body;
  c->out_count = grad ? 3 : 1;
}

/* --- Training --- */

/* (w1, w2, w3, x, y): three layers of one width. */
static AX_BODY(mlp_loss) {
  ax_value h = in[3];
  for (int i = 0; i < 2; i++) h = ax_relu(ax_matmul(h, scaled(in[i], 0.01)));
  out[0] = mean_all(ax_square(ax_sub(ax_matmul(h, scaled(in[2], 0.01)), in[4])));
}
static AX_BODY(mlp_sgd_body) {
  ax_value_and_grad(AX_CLOSURE(mlp_loss, 5, 1, context), AX_FIRST(3), in, out);
  for (int i = 0; i < 3; i++) out[1 + i] = ax_sub(in[i], scaled(out[1 + i], 0.1));
}
static void mlp(op_case *c) { /* fwd|sgd DTYPE BATCH WIDTH */
  ax_dtype dtype = op_dtype(c->words[1]);
  bool step = strcmp(c->words[0], "sgd") == 0;
  int64_t batch = op_int(c, 2), width = op_int(c, 3);
  for (int i = 0; i < 3; i++) OP_IN(c, dtype, width, width);
  for (int i = 0; i < 2; i++) OP_IN(c, dtype, batch, width);
  for (int i = 0; i < (step ? 8 : 3); i++) op_product(c, dtype, (double)batch, (double)width, (double)width);
  c->body = step ? mlp_sgd_body : mlp_loss;
  c->out_count = step ? 4 : 1;
}

static AX_BODY(logreg_loss) { /* w, x, y */
  ax_value z = ax_matmul(in[1], scaled(in[0], 0.1));
  out[0] = mean_all(ax_sub(ax_softplus(z), ax_mul(in[2], z)));
}
static AX_BODY(logreg_grad_body) { ax_grad(AX_CLOSURE(logreg_loss, 3, 1, context), AX_FIRST(1), in, out); }
static void logreg(op_case *c) { /* fwd|grad N D */
  OP_IN(c, AX_F32, op_int(c, 2));
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2));
  OP_IN(c, AX_F32, op_int(c, 1));
  c->body = strcmp(c->words[0], "grad") == 0 ? logreg_grad_body : logreg_loss;
}

/* Adam over COUNT parameters of N elements: w.., m.., v.. donated, g.. given. */
static AX_BODY(adam_body) {
  uint32_t n = (uint32_t)op_int(context, 0);
  for (uint32_t i = 0; i < n; i++) {
    ax_value g = in[3 * n + i], m = ax_add(scaled(in[n + i], 0.9), scaled(g, 0.1)),
             v = ax_add(scaled(in[2 * n + i], 0.999), scaled(ax_square(g), 0.001));
    out[i] = ax_sub(in[i], ax_div(scaled(m, 0.01), ax_add(ax_sqrt(v), ax_full_like(v, 1e-8))));
    out[n + i] = m;
    out[2 * n + i] = v;
  }
}
static void adam(op_case *c) {
  uint32_t n = (uint32_t)op_int(c, 0);
  for (uint32_t i = 0; i < 4 * n; i++) OP_IN(c, AX_F32, op_int(c, 1));
  c->body = adam_body;
  c->out_count = c->carried = 3 * n;
  c->moved = 7 * 4.0 * n * (double)op_int(c, 1);
}

/* Rows of a table looked up by vmap of dynamic_slice. */
static AX_BODY(row_of) {
  const ax_value at[] = {in[1], integer(0)};
  ax_value row = ax_dynamic_slice(in[0], at, AX_DIMS(1, ax_typeof(in[0]).dims[1]));
  out[0] = ax_reshape(row, AX_LIST(1, &ax_typeof(in[0]).dims[1]));
}
static AX_BODY(embed_fwd_body) {
  ax_vmap(AX_FN(row_of, 2, 1), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}});
}
static AX_BODY(embed_loss) {
  ax_value rows;
  embed_fwd_body(in, &rows, context);
  out[0] = sum_all(ax_square(rows));
}
static AX_BODY(embed_grad_body) { ax_grad(AX_CLOSURE(embed_loss, 2, 1, context), AX_FIRST(1), in, out); }
static void embed(op_case *c) { /* fwd|grad N VOCABULARY WIDTH */
  bool grad = strcmp(c->words[0], "grad") == 0;
  OP_IN(c, AX_F32, op_int(c, 2), op_int(c, 3));
  OP_IN(c, AX_S32, op_int(c, 1));
  c->below = op_int(c, 2);
  c->body = grad ? embed_grad_body : embed_fwd_body;
  c->moved = 4.0 * (double)op_int(c, 3) * (double)((grad ? 1 : 2) * op_int(c, 1) + (grad ? op_int(c, 2) : 0));
}

/* --- Attention, a decoder's layer, a convolution as products --- */

static ax_value attend(ax_value q, ax_value k, ax_value v) { /* [heads, length, key] */
  double root = sqrt((double)ax_typeof(q).dims[2]);
  ax_value shares = ax_softmax(scaled(ax_einsum("hqd,hkd->hqk", AX_VALUES(q, k)), 1 / root), -1);
  return ax_einsum("hqk,hkd->hqd", AX_VALUES(shares, v));
}
static AX_BODY(attention_body) { out[0] = attend(in[0], in[1], in[2]); }
static AX_BODY(attention_loss) { out[0] = sum_all(ax_square(attend(in[0], in[1], in[2]))); }
static AX_BODY(attention_grad_body) { ax_grad(AX_CLOSURE(attention_loss, 3, 1, context), AX_FIRST(3), in, out); }
static void attention(op_case *c) { /* fwd|grad DTYPE HEADS LENGTH KEY */
  ax_dtype dtype = op_dtype(c->words[1]);
  bool grad = strcmp(c->words[0], "grad") == 0;
  int64_t heads = op_int(c, 2), length = op_int(c, 3), key = op_int(c, 4);
  for (int i = 0; i < 3; i++) OP_IN(c, dtype, heads, length, key);
  for (int i = 0; i < (grad ? 6 : 2); i++) op_product(c, dtype, (double)(heads * length), (double)length, (double)key);
  c->body = grad ? attention_grad_body : attention_body;
  c->out_count = grad ? 3 : 1;
}

static ax_value norm(ax_value x) {
  const int64_t last = -1;
  return ax_mul(x, ax_rsqrt(ax_add(ax_reduce_mean(ax_square(x), AX_LIST(1, &last), true), op_number(AX_F32, 1e-5))));
}
static ax_value heads_of(ax_value x, int64_t heads) { /* [b*t, w] of [b, t] as [b*h, t, k] */
  ax_type t = ax_typeof(x);
  ax_value split = ax_reshape(x, AX_DIMS(t.dims[0], t.dims[1], heads, t.dims[2] / heads));
  return ax_reshape(ax_transpose(split, AX_DIMS(0, 2, 1, 3)), AX_DIMS(t.dims[0] * heads, t.dims[1], t.dims[2] / heads));
}
static AX_BODY(decoder_loss) { /* x[b,t,w], wq, wk, wv, wo, w1[w,4w], w2[4w,w] */
  enum { heads = 4 };
  ax_type t = ax_typeof(in[0]);
  ax_value x = in[0], h = norm(x), part[3];
  for (int i = 0; i < 3; i++) part[i] = heads_of(ax_matmul(h, scaled(in[1 + i], 0.01)), heads);
  ax_value seen = ax_reshape(attend(part[0], part[1], part[2]), AX_DIMS(t.dims[0], heads, t.dims[1], t.dims[2] / heads));
  seen = ax_reshape(ax_transpose(seen, AX_DIMS(0, 2, 1, 3)), AX_LIST(3, t.dims));
  x = ax_add(x, ax_matmul(seen, scaled(in[4], 0.01)));
  x = ax_add(x, ax_matmul(ax_gelu(ax_matmul(norm(x), scaled(in[5], 0.01))), scaled(in[6], 0.01)));
  out[0] = mean_all(ax_square(x));
}
static AX_BODY(decoder_sgd_body) {
  ax_value_and_grad(AX_CLOSURE(decoder_loss, 7, 1, context), AX_RANGE(1, 6), in, out);
  for (int i = 0; i < 6; i++) out[1 + i] = ax_sub(in[1 + i], scaled(out[1 + i], 0.1));
}
static void decoder(op_case *c) { /* fwd|sgd BATCH LENGTH WIDTH */
  bool step = strcmp(c->words[0], "sgd") == 0;
  int64_t batch = op_int(c, 1), length = op_int(c, 2), width = op_int(c, 3);
  double rows = (double)(batch * length), w = (double)width, times = step ? 3 : 1;
  OP_IN(c, AX_F32, batch, length, width);
  for (int i = 0; i < 4; i++) OP_IN(c, AX_F32, width, width);
  OP_IN(c, AX_F32, width, 4 * width);
  OP_IN(c, AX_F32, 4 * width, width);
  op_product(c, AX_F32, times * rows, w, 12 * w);
  op_product(c, AX_F32, times * rows, 2 * (double)length, w);
  c->body = step ? decoder_sgd_body : decoder_loss;
  c->out_count = step ? 7 : 1;
}

static AX_BODY(conv_body) {
  out[0] = ax_conv_general_dilated(in[0], in[1], &(ax_conv_options){.lhs = "NHWC", .rhs = "HWIO", .padding = "SAME"});
}
static void conv3(op_case *c) { /* BATCH HEIGHT WIDTH FEATURES */
  int64_t b = op_int(c, 0), h = op_int(c, 1), w = op_int(c, 2), f = op_int(c, 3);
  OP_IN(c, AX_F32, b, h, w, f);
  OP_IN(c, AX_F32, 3, 3, f, f);
  op_product(c, AX_F32, (double)(b * h * w), (double)f, 9.0 * (double)f);
  c->body = conv_body;
}

/* A convolution with square windows, padded "SAME"; grad: both gradients of the sum of squares. */
static AX_BODY(any_conv_body) {
  const op_case *c = context;
  const bool last = strcmp(c->words[2], "nhwc") == 0;
  const int64_t stride = op_int(c, 9);
  out[0] = ax_conv_general_dilated(in[0], in[1],
                                   &(ax_conv_options){.lhs = last ? "NHWC" : "NCHW",
                                                      .rhs = last ? "HWIO" : "OIHW",
                                                      .out = last ? "NHWC" : "NCHW",
                                                      .strides = {AX_DIMS(stride, stride)},
                                                      .padding = "SAME",
                                                      .feature_group_count = op_int(c, 10)});
}
static AX_BODY(any_conv_loss) {
  ax_value y;
  any_conv_body(in, &y, context);
  out[0] = sum_all(ax_square(y));
}
static AX_BODY(any_conv_grad) { ax_grad(AX_CLOSURE(any_conv_loss, 2, 1, context), AX_FIRST(2), in, out); }
static void conv(op_case *c) { /* fwd|grad TYPE nhwc|nchw BATCH HEIGHT WIDTH IN OUT WINDOW STRIDE GROUPS */
  const bool last = strcmp(c->words[2], "nhwc") == 0, grad = strcmp(c->words[0], "grad") == 0;
  const ax_dtype dtype = op_dtype(c->words[1]);
  int64_t b = op_int(c, 3), h = op_int(c, 4), w = op_int(c, 5), in = op_int(c, 6), o = op_int(c, 7), k = op_int(c, 8),
          s = op_int(c, 9), each = in / op_int(c, 10);
  if (last) OP_IN(c, dtype, b, h, w, in);
  else OP_IN(c, dtype, b, in, h, w);
  if (last) OP_IN(c, dtype, k, k, each, o);
  else OP_IN(c, dtype, o, each, k, k);
  op_product(c, dtype, (grad ? 3 : 1) * (double)(b * ((h + s - 1) / s) * ((w + s - 1) / s)), (double)o, (double)(k * k * each));
  c->body = grad ? any_conv_grad : any_conv_body;
  c->out_count = grad ? 2 : 1;
}

/* Gradients of each example of a batch by itself: (w1, w2, x, y). */
static AX_BODY(example_loss) {
  ax_value logs = ax_log_softmax(ax_matmul(ax_tanh(ax_matmul(in[2], scaled(in[0], 0.1))), scaled(in[1], 0.1)), -1);
  out[0] = ax_neg(sum_all(ax_mul(logs, in[3])));
}
static AX_BODY(example_grad) { ax_grad(AX_CLOSURE(example_loss, 4, 1, context), AX_FIRST(2), in, out); }
static AX_BODY(perex_body) {
  ax_vmap(AX_CLOSURE(example_grad, 4, 2, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, AX_NOT_MAPPED, 0, 0)}});
}
static void perex(op_case *c) { /* BATCH IN HIDDEN OUT */
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2));
  OP_IN(c, AX_F32, op_int(c, 2), op_int(c, 3));
  OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 1));
  OP_IN(c, AX_F32, op_int(c, 0), op_int(c, 3));
  c->body = perex_body;
  c->out_count = 2;
}

static AX_BODY(onehot_body) { out[0] = ax_matmul(ax_one_hot(in[0], op_int(context, 1), AX_F32), in[1]); }
static void onehot_mm(op_case *c) { /* N CLASSES WIDTH */
  OP_IN(c, AX_S32, op_int(c, 0));
  OP_IN(c, AX_F32, op_int(c, 1), op_int(c, 2));
  op_product(c, AX_F32, (double)op_int(c, 0), (double)op_int(c, 1), (double)op_int(c, 2));
  c->below = op_int(c, 1);
  c->body = onehot_body;
}

const op_family op_model_families[] = {
    {"trivial_scan", trivial_scan},
    {"trivial_while", trivial_while},
    {"cond_scan", cond_scan},
    {"cumsum", cumsum},
    {"dus_scan", dus_scan},
    {"ds_scan", ds_scan},
    {"kv_scan", kv_scan},
    {"stencil1", stencil1},
    {"stencil2", stencil2},
    {"stencil_cg", stencil_cg},
    {"cg", cg},
    {"rnn", rnn},
    {"lstm", lstm},
    {"mlp", mlp},
    {"logreg", logreg},
    {"adam", adam},
    {"embed", embed},
    {"attention", attention},
    {"decoder", decoder},
    {"conv3", conv3},
    {"conv", conv},
    {"perex", perex},
    {"onehot_mm", onehot_mm},
    {NULL, NULL},
};
