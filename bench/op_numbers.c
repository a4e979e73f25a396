/* Cases for b9 whose numbers are far from 1 (masks of -1e9, exponentials that underflow), convolutions of one and three dimensions,
   and look-ups in many tables. bench/jax_ops.py has the same in JAX. */
#include <math.h>
#include <string.h>

#include "axle/transform.h"
#include "ops.h"

static const double masked_out = -1e9; /* where attention must not look, as models write it */

static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }
static ax_value square_sum(ax_value x) { return ax_reduce_sum(ax_square(x), AX_ALL_DIMS, false); }
static bool is_grad(const op_case *c) { return strcmp(c->words[0], "grad") == 0; }

/* --- Masks --- */

static AX_BODY(causal_body) { /* q, k, v: [heads, length, key] */
  const int64_t length = ax_typeof(in[0]).dims[1], dims[] = {length, length};
  const double root = sqrt((double)ax_typeof(in[0]).dims[2]);
  ax_value scores = scaled(ax_einsum("hqd,hkd->hqk", AX_VALUES(in[0], in[1])), 1 / root);
  ax_value past = ax_ge(ax_iota(AX_S32, AX_LIST(2, dims), 0), ax_iota(AX_S32, AX_LIST(2, dims), 1));
  ax_value seen = ax_where(past, scores, op_number(ax_typeof(scores).dtype, masked_out));
  out[0] = ax_einsum("hqk,hkd->hqd", AX_VALUES(ax_softmax(seen, -1), in[2]));
  (void)context;
}
static AX_BODY(causal_loss) {
  ax_value y;
  causal_body(in, &y, context);
  out[0] = square_sum(y);
}
static AX_BODY(causal_grad) { ax_grad(AX_CLOSURE(causal_loss, 3, 1, context), AX_FIRST(3), in, out); }
static void causal(op_case *c) { /* fwd|grad DTYPE HEADS LENGTH KEY */
  const ax_dtype dtype = op_dtype(c->words[1]);
  const int64_t heads = op_int(c, 2), length = op_int(c, 3), key = op_int(c, 4);
  for (int i = 0; i < 3; i++) OP_IN(c, dtype, heads, length, key);
  for (int i = 0; i < (is_grad(c) ? 6 : 2); i++) op_product(c, dtype, (double)(heads * length), (double)length, (double)key);
  c->body = is_grad(c) ? causal_grad : causal_body;
  c->out_count = is_grad(c) ? 3 : 1;
}

/* The softmax of rows of which the first has one element that counts, and each more than the one before, to all in the last. */
static AX_BODY(masked_softmax_body) {
  const ax_type t = ax_typeof(in[0]);
  ax_value row = ax_iota(AX_S32, AX_LIST(2, t.dims), 0), column = ax_iota(AX_S32, AX_LIST(2, t.dims), 1);
  ax_value counts = ax_le(scaled(column, (double)t.dims[0]), scaled(row, (double)t.dims[1]));
  out[0] = ax_softmax(ax_where(counts, in[0], op_number(t.dtype, masked_out)), -1);
  (void)context;
}
static void masked_softmax(op_case *c) { /* DTYPE ROWS COLUMNS */
  OP_IN(c, op_dtype(c->words[0]), op_int(c, 1), op_int(c, 2));
  c->body = masked_softmax_body;
}

/* --- Large and small numbers --- */

static AX_BODY(far_body) {
  const op_case *c = context;
  ax_value x = scaled(in[0], (double)op_int(c, 2));
  out[0] = strcmp(c->words[0], "exp") == 0 ? ax_exp(x) : ax_logistic(x);
}
static void far(op_case *c) { /* exp|logistic DTYPE FACTOR N: of inputs times FACTOR */
  OP_IN(c, op_dtype(c->words[1]), op_int(c, 3));
  c->body = far_body;
}

static AX_BODY(logsumexp_body) { out[0] = ax_logsumexp(in[0], AX_DIMS(op_int(context, 1)), false); }
static void logsumexp(op_case *c) { /* DTYPE AXIS M N */
  OP_IN(c, op_dtype(c->words[0]), op_int(c, 2), op_int(c, 3));
  c->body = logsumexp_body;
}

/* --- Convolutions of one and three dimensions, features last, padded "SAME" --- */

enum { conv_rank_word = 2, conv_batch_word };

static AX_BODY(convolution_body) {
  const op_case *c = context;
  const bool one = op_int(c, conv_rank_word) == 1;
  const ax_conv_options options = {.lhs = one ? "NWC" : "NDHWC", .rhs = one ? "WIO" : "DHWIO", .padding = "SAME"};
  out[0] = ax_conv_general_dilated(in[0], in[1], &options);
}
static AX_BODY(convolution_loss) {
  ax_value y;
  convolution_body(in, &y, context);
  out[0] = square_sum(y);
}
static AX_BODY(convolution_grad) { ax_grad(AX_CLOSURE(convolution_loss, 2, 1, context), AX_FIRST(2), in, out); }
static void convolution(op_case *c) { /* fwd|grad DTYPE 1|3 BATCH SIDE.. IN OUT WINDOW */
  const ax_dtype dtype = op_dtype(c->words[1]);
  const uint32_t rank = op_int(c, conv_rank_word) == 1 ? 1 : 3, side = conv_batch_word + 1, features = side + rank;
  const int64_t from = op_int(c, features), to = op_int(c, features + 1), window = op_int(c, features + 2);
  int64_t x[5] = {op_int(c, conv_batch_word)}, kernel[5];
  for (uint32_t i = 0; i < rank; i++) x[1 + i] = op_int(c, side + i), kernel[i] = window;
  x[1 + rank] = kernel[rank] = from;
  kernel[rank + 1] = to;
  op_input(c, dtype, rank + 2, x);
  op_input(c, dtype, rank + 2, kernel);
  const double places = (double)ax_type_elems(&c->types[0]) / (double)from, taps = pow((double)window, rank);
  op_product(c, dtype, (is_grad(c) ? 3 : 1) * places, (double)to, taps * (double)from);
  c->body = is_grad(c) ? convolution_grad : convolution_body;
  c->out_count = is_grad(c) ? 2 : 1;
}

/* --- Look-ups in many tables, as a recommender makes them for its features --- */

enum { most_tables = 64 };

static ax_value looked_up(const op_case *c, const ax_value *in) { /* tables.., ids[tables, batch]; the rows side by side */
  const int64_t tables = op_int(c, 1), batch = op_int(c, 4);
  ax_value rows[most_tables];
  for (int64_t i = 0; i < tables; i++) {
    ax_value ids = ax_reshape(ax_slice(in[tables], AX_DIMS(i, 0), AX_DIMS(i + 1, batch), NULL), AX_DIMS(batch));
    rows[i] = ax_take(in[i], ids, 0);
  }
  return ax_concatenate(AX_LIST((uint32_t)tables, rows), 1);
}
static AX_BODY(tables_body) { out[0] = looked_up(context, in); }
static AX_BODY(tables_loss) { out[0] = square_sum(looked_up(context, in)); }
static AX_BODY(tables_grad) {
  const uint32_t count = (uint32_t)op_int(context, 1);
  ax_grad(AX_CLOSURE(tables_loss, count + 1, 1, context), AX_FIRST(count), in, out);
}
static void tables(op_case *c) { /* fwd|grad TABLES ROWS WIDTH BATCH */
  const int64_t count = op_int(c, 1), rows = op_int(c, 2), width = op_int(c, 3), batch = op_int(c, 4);
  for (int64_t i = 0; i < count && i < most_tables; i++) OP_IN(c, AX_F32, rows, width);
  OP_IN(c, AX_S32, count, batch);
  c->below = rows;
  c->body = is_grad(c) ? tables_grad : tables_body;
  c->out_count = is_grad(c) ? (uint32_t)count : 1;
  c->moved = 4.0 * (double)(count * width) * (double)(is_grad(c) ? rows + batch : 2 * batch);
}

const op_family op_number_families[] = {
    {"causal", causal},
    {"masked_softmax", masked_softmax},
    {"far", far},
    {"logsumexp", logsumexp},
    {"convolution", convolution},
    {"tables", tables},
    {NULL, NULL},
};
