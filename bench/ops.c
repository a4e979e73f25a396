/* build/bench/ours ops WORKERS: reads a case a line ("reduce sum f32 0 4096 4096"), answers "ready BYTES_IN BYTES_OUT FLOPS DTYPE
   SUM", where SUM adds up the sizes of all results' elements, each times a weight that its place gives it, and then each empty line
   with a time, until the next case. bench/jax_ops.py does the same with JAX.

   build/bench/ours ops_traced: the same cases are said again, each before it is traced, and nothing is compiled or run. A case that
   cannot be traced ends the process (tests/bench_test.sh).

   build/bench/ours ops_simulated MACHINE: answers each case with the time that simulated time says of it on one device of the
   machine. */
#include "ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/simulate.h"
#include "axle/transform.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

static void complain(const char *what, const char *word) {
  fprintf(stderr, "%s: %s\n", what, word);
  exit(2);
}

/* --- Cases from words --- */

ax_dtype op_dtype(const char *word) {
  for (int d = 0; d < AX_DTYPE_COUNT; d++)
    if (strcmp(ax_dtype_name((ax_dtype)d), word) == 0) return (ax_dtype)d;
  complain("no dtype", word);
  return AX_F32;
}

int64_t op_int(const op_case *c, uint32_t word) {
  if (word >= c->word_count) complain("a case wants more words than it has, its first being", c->words[0]);
  return atoll(c->words[word]);
}

void op_input(op_case *c, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  const ax_type type = ax_array_type(dtype, AX_LIST(rank, dims)); /* before realloc, since `dims` may be those of another input */
  c->types = realloc(c->types, (c->in_count + 1) * sizeof c->types[0]);
  if (c->types == NULL) complain("out of memory for", "types");
  c->types[c->in_count++] = type;
}

ax_value op_number(ax_dtype dtype, double value) { return ax_full(dtype, AX_DIMS(), value); }

void op_product(op_case *c, ax_dtype dtype, double m, double n, double k) {
  c->flops += 2 * m * n * k;
  c->dtype = dtype;
}

/* The words from `first` on, as dimensions. */
static uint32_t dims_from(const op_case *c, uint32_t first, int64_t *dims) {
  uint32_t rank = 0;
  for (uint32_t w = first; w < c->word_count; w++) dims[rank++] = op_int(c, w);
  return rank;
}

static void one_input(op_case *c, uint32_t dtype_word, uint32_t dims_word, ax_function body) {
  int64_t dims[OP_MOST_WORDS];
  op_input(c, op_dtype(c->words[dtype_word]), dims_from(c, dims_word, dims), dims);
  c->body = body;
}

/* --- Reductions, softmax, layernorm --- */

static AX_BODY(reduce_body) { /* KIND DTYPE AXES|all DIM.. */
  const op_case *c = context;
  int64_t axes[AX_MAX_RANK];
  uint32_t count = 0;
  for (const char *a = c->words[2]; *a >= '0' && *a <= '9'; a++) axes[count++] = *a - '0';
  bool all = strcmp(c->words[2], "all") == 0;
  if (strcmp(c->words[0], "sum") == 0)
    out[0] = all ? ax_reduce_sum(in[0], AX_ALL_DIMS, false) : ax_reduce_sum(in[0], AX_LIST(count, axes), false);
  else if (strcmp(c->words[0], "max") == 0)
    out[0] = all ? ax_reduce_max(in[0], AX_ALL_DIMS, false) : ax_reduce_max(in[0], AX_LIST(count, axes), false);
  else out[0] = all ? ax_reduce_mean(in[0], AX_ALL_DIMS, false) : ax_reduce_mean(in[0], AX_LIST(count, axes), false);
}
static void reduce(op_case *c) { one_input(c, 1, 3, reduce_body); }

static AX_BODY(argmax_body) { out[0] = ax_argmax(in[0], op_int(context, 1), AX_S32); } /* DTYPE AXIS DIM.. */
static void argmax(op_case *c) { one_input(c, 0, 2, argmax_body); }

static AX_BODY(cumulative_body) { out[0] = ax_cumsum(in[0], op_int(context, 1), false); } /* DTYPE AXIS DIM.. */
static void cumulative(op_case *c) { one_input(c, 0, 2, cumulative_body); }

static AX_BODY(cumulate_body) { /* KIND DTYPE AXIS DIM.. */
  const int64_t axis = op_int(context, 2);
  const char *kind = ((const op_case *)context)->words[0];
  if (strcmp(kind, "sum") == 0) out[0] = ax_cumsum(in[0], axis, false);
  else if (strcmp(kind, "prod") == 0) out[0] = ax_cumprod(in[0], axis, false);
  else if (strcmp(kind, "max") == 0) out[0] = ax_cummax(in[0], axis, false);
  else if (strcmp(kind, "logsumexp") == 0) out[0] = ax_cumlogsumexp(in[0], axis, false);
  else out[0] = ax_cumsum(in[0], axis, true);
}
static void cumulate(op_case *c) { one_input(c, 1, 3, cumulate_body); }

static AX_BODY(softmax_body) { out[0] = ax_softmax(in[0], -1); } /* DTYPE DIM.. */
static void softmax(op_case *c) { one_input(c, 0, 1, softmax_body); }
static AX_BODY(log_softmax_body) { out[0] = ax_log_softmax(in[0], -1); }
static void log_softmax(op_case *c) { one_input(c, 0, 1, log_softmax_body); }

static AX_BODY(layernorm_body) {
  const int64_t last = -1;
  ax_value d = ax_sub(in[0], ax_reduce_mean(in[0], AX_LIST(1, &last), true)),
           variance = ax_reduce_mean(ax_square(d), AX_LIST(1, &last), true);
  out[0] = ax_mul(d, ax_rsqrt(ax_add(variance, ax_full_like(variance, 1e-5))));
}
static void layernorm(op_case *c) { one_input(c, 0, 1, layernorm_body); }

static AX_BODY(summed) {
  ax_value y;
  layernorm_body(in, &y, context);
  out[0] = ax_reduce_sum(ax_mul(y, in[1]), AX_ALL_DIMS, false);
}
static AX_BODY(layernorm_grad_body) { ax_grad(AX_CLOSURE(summed, 2, 1, context), AX_FIRST(1), in, out); }
static void layernorm_grad(op_case *c) {
  one_input(c, 0, 1, layernorm_grad_body);
  op_input(c, c->types[0].dtype, c->types[0].rank, c->types[0].dims);
}

/* DTYPE ROWS CLASSES: the mean cross entropy of labels, and its gradient. */
static AX_BODY(entropy) {
  ax_value logs = ax_log_softmax(in[0], -1), label = ax_expand_dims(in[1], 1);
  out[0] = ax_neg(ax_reduce_mean(ax_take_along_axis(logs, label, 1, NULL), AX_ALL_DIMS, false));
}
static AX_BODY(cross_entropy_grad_body) { ax_value_and_grad(AX_CLOSURE(entropy, 2, 1, context), AX_FIRST(1), in, out); }
static void cross_entropy_grad(op_case *c) {
  one_input(c, 0, 1, cross_entropy_grad_body);
  OP_IN(c, AX_S32, op_int(c, 1));
  c->below = op_int(c, 2);
  c->out_count = 2;
}

/* --- Shapes --- */

static AX_BODY(transpose_body) { /* DTYPE PERMUTATION DIM.. */
  const op_case *c = context;
  int64_t permutation[AX_MAX_RANK] = {0};
  for (uint32_t d = 0; c->words[1][d] != '\0'; d++) permutation[d] = c->words[1][d] - '0';
  out[0] = ax_transpose(in[0], permutation);
}
static void transpose(op_case *c) { one_input(c, 0, 2, transpose_body); }

static AX_BODY(addrow_body) { out[0] = ax_add(in[0], in[1]); }
static void addrow(op_case *c) {
  one_input(c, 0, 1, addrow_body);
  OP_IN(c, c->types[0].dtype, op_int(c, 2));
}
static AX_BODY(addcol_body) { out[0] = ax_add(in[0], ax_expand_dims(in[1], 1)); }
static void addcol(op_case *c) {
  one_input(c, 0, 1, addcol_body);
  OP_IN(c, c->types[0].dtype, op_int(c, 1));
}
static AX_BODY(outer_body) {
  const int64_t dims[] = {op_int(context, 1), op_int(context, 2)};
  out[0] = ax_mul(ax_broadcast_in_dim(in[0], AX_LIST(2, dims),
                                      AX_DIMS(0)), ax_broadcast_in_dim(in[1], AX_LIST(2, dims), AX_DIMS(1)));
}
static void outer(op_case *c) { /* DTYPE M N */
  ax_dtype dtype = op_dtype(c->words[0]);
  OP_IN(c, dtype, op_int(c, 1));
  OP_IN(c, dtype, op_int(c, 2));
  c->body = outer_body;
}

static AX_BODY(concat_body) { out[0] = ax_concatenate(AX_LIST(2, in), op_int(context, 1)); } /* DTYPE AXIS DIM.. */
static void concat(op_case *c) {
  one_input(c, 0, 2, concat_body);
  op_input(c, c->types[0].dtype, c->types[0].rank, c->types[0].dims);
}
static AX_BODY(slice_body) { /* DTYPE START STRIDE M N: of the last dimension, and the first row left out */
  const op_case *c = context;
  const int64_t start[] = {1, op_int(c, 1)}, limit[] = {op_int(c, 3), op_int(c, 4)}, strides[] = {1, op_int(c, 2)};
  out[0] = ax_slice(in[0], start, limit, strides);
}
static void slice(op_case *c) {
  one_input(c, 0, 3, slice_body);
  double bytes = (double)ax_type_elems(&c->types[0]) * (double)ax_dtype_bytes(c->types[0].dtype), stride = (double)op_int(c, 2);
  c->moved = bytes * (stride < 16 ? 1 : 16 / stride) + bytes / stride;
}
static AX_BODY(pad_body) { /* DTYPE LOW HIGH INTERIOR M N: all dimensions */
  const op_case *c = context;
  const int64_t low[] = {op_int(c, 1), op_int(c, 1)}, high[] = {op_int(c, 2), op_int(c, 2)},
                interior[] = {op_int(c, 3), op_int(c, 3)};
  out[0] = ax_pad(in[0], op_number(op_dtype(c->words[0]), 0), low, high, interior);
}
static void pad(op_case *c) { one_input(c, 0, 4, pad_body); }
static AX_BODY(rev_body) { out[0] = ax_rev(in[0], AX_DIMS(op_int(context, 1))); } /* DTYPE AXIS DIM.. */
static void rev(op_case *c) { one_input(c, 0, 2, rev_body); }
static AX_BODY(select_body) { out[0] = ax_where(ax_gt(in[0], in[1]), in[0], ax_mul(in[1], ax_full_like(in[1], 2))); }
static void select_case(op_case *c) { /* DTYPE N */
  one_input(c, 0, 1, select_body);
  OP_IN(c, c->types[0].dtype, op_int(c, 1));
}

/* KIND DTYPE COUNT ROWS WIDTH: so many rows are combined with rows of a table, or replace them. */
static AX_BODY(at_body) {
  const char *kind = ((const op_case *)context)->words[0];
  out[0] = strcmp(kind, "add") == 0   ? ax_at_add(in[0], in[1], in[2], 0, NULL)
           : strcmp(kind, "mul") == 0 ? ax_at_mul(in[0], in[1], in[2], 0, NULL)
           : strcmp(kind, "min") == 0 ? ax_at_min(in[0], in[1], in[2], 0, NULL)
           : strcmp(kind, "max") == 0 ? ax_at_max(in[0], in[1], in[2], 0, NULL)
                                      : ax_at_set(in[0], in[1], in[2], 0, NULL);
}
static void at(op_case *c) {
  ax_dtype dtype = op_dtype(c->words[1]);
  OP_IN(c, dtype, op_int(c, 3), op_int(c, 4));
  OP_IN(c, AX_S32, op_int(c, 2));
  OP_IN(c, dtype, op_int(c, 2), op_int(c, 4));
  c->below = op_int(c, 3);
  c->body = at_body;
}

/* --- Elementwise --- */

typedef struct named {
  const char *name;
  ax_value (*function)(ax_value);
} named;

static AX_BODY(unary_body) { /* NAME DTYPE N */
  static const named all[] = {
      {"exp", ax_exp},     {"log", ax_log},   {"log1p", ax_log1p}, {"expm1", ax_expm1},       {"sin", ax_sin},
      {"cos", ax_cos},     {"tanh", ax_tanh}, {"erf", ax_erf},     {"logistic", ax_logistic}, {"sqrt", ax_sqrt},
      {"rsqrt", ax_rsqrt}, {"gelu", ax_gelu}, {"neg", ax_neg},     {"abs", ax_abs},         {"sign", ax_sign},
      {"relu", ax_relu}};
  const op_case *c = context;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i].name, c->words[0]) == 0) out[0] = all[i].function(in[0]);
}
static void unary(op_case *c) { one_input(c, 1, 2, unary_body); }

static AX_BODY(binary_body) { /* NAME DTYPE N */
  const op_case *c = context;
  const char *name = c->words[0];
  out[0] = strcmp(name, "add") == 0   ? ax_add(in[0], in[1])
           : strcmp(name, "mul") == 0 ? ax_mul(in[0], in[1])
           : strcmp(name, "div") == 0 ? ax_div(in[0], in[1])
           : strcmp(name, "max") == 0 ? ax_max(in[0], in[1])
           : strcmp(name, "min") == 0 ? ax_min(in[0], in[1])
                                      : ax_pow(in[0], in[1]);
}
static void binary(op_case *c) {
  one_input(c, 1, 2, binary_body);
  op_input(c, c->types[0].dtype, c->types[0].rank, c->types[0].dims);
}

/* DTYPE N: and, or, not, products, maxima and sizes of integers. */
static AX_BODY(bits_body) {
  ax_value x = in[0], y = in[1];
  for (int i = 0; i < 4; i++) {
    x = ax_and(ax_or(x, y), ax_not(ax_mul(x, y)));
    y = ax_add(ax_max(x, y), ax_full_like(x, 3));
  }
  out[0] = ax_abs(ax_sub(x, y));
}
static void bits(op_case *c) {
  one_input(c, 0, 1, bits_body);
  OP_IN(c, c->types[0].dtype, op_int(c, 1));
}

static AX_BODY(poly_body) { /* DTYPE N: twenty multiplications and additions each */
  ax_value y = in[0];
  for (int i = 0; i < 20; i++) y = ax_add(ax_mul(y, in[0]), ax_full_like(y, 1));
  out[0] = y;
}
static void poly(op_case *c) { one_input(c, 0, 1, poly_body); }

static AX_BODY(convert_body) { out[0] = ax_convert_element_type(in[0], op_dtype(((const op_case *)context)->words[1])); }
static void convert(op_case *c) { one_input(c, 0, 2, convert_body); } /* FROM TO N */

/* --- Products --- */

static AX_BODY(matmul_body) { out[0] = ax_matmul(in[0], in[1]); }
static void matmul(op_case *c) { /* DTYPE M K N */
  ax_dtype dtype = op_dtype(c->words[0]);
  int64_t m = op_int(c, 1), k = op_int(c, 2), n = op_int(c, 3);
  OP_IN(c, dtype, m, k);
  OP_IN(c, dtype, k, n);
  op_product(c, dtype, (double)m, (double)n, (double)k);
  c->body = matmul_body;
}
static AX_BODY(matmul_nt_body) { out[0] = ax_matmul(in[0], ax_transpose(in[1], AX_DIMS(1, 0))); }
static void matmul_nt(op_case *c) {
  matmul(c);
  c->types[1] = ax_array_type(c->dtype, AX_DIMS(op_int(c, 3), op_int(c, 2)));
  c->body = matmul_nt_body;
}
static AX_BODY(matmul_tn_body) { out[0] = ax_matmul(ax_transpose(in[0], AX_DIMS(1, 0)), in[1]); }
static void matmul_tn(op_case *c) {
  matmul(c);
  c->types[0] = ax_array_type(c->dtype, AX_DIMS(op_int(c, 2), op_int(c, 1)));
  c->body = matmul_tn_body;
}
static AX_BODY(layer_body) { /* DTYPE M K N: relu(x w + b) */
  out[0] = ax_relu(ax_add(ax_matmul(in[0], in[1]), in[2]));
}
static void layer(op_case *c) {
  matmul(c);
  OP_IN(c, c->dtype, op_int(c, 3));
  c->body = layer_body;
}
static void bmm(op_case *c) { /* DTYPE B M K N */
  ax_dtype dtype = op_dtype(c->words[0]);
  int64_t b = op_int(c, 1), m = op_int(c, 2), k = op_int(c, 3), n = op_int(c, 4);
  OP_IN(c, dtype, b, m, k);
  OP_IN(c, dtype, b, k, n);
  op_product(c, dtype, (double)(b * m), (double)n, (double)k);
  c->body = matmul_body;
}
static void matvec(op_case *c) { /* DTYPE M K */
  ax_dtype dtype = op_dtype(c->words[0]);
  OP_IN(c, dtype, op_int(c, 1), op_int(c, 2));
  OP_IN(c, dtype, op_int(c, 2));
  op_product(c, dtype, (double)op_int(c, 1), 1, (double)op_int(c, 2));
  c->body = matmul_body;
}
static void vecmat(op_case *c) { /* DTYPE K N */
  ax_dtype dtype = op_dtype(c->words[0]);
  OP_IN(c, dtype, op_int(c, 1));
  OP_IN(c, dtype, op_int(c, 1), op_int(c, 2));
  op_product(c, dtype, 1, (double)op_int(c, 2), (double)op_int(c, 1));
  c->body = matmul_body;
}
static void vdot(op_case *c) { /* DTYPE K */
  ax_dtype dtype = op_dtype(c->words[0]);
  for (int i = 0; i < 2; i++) OP_IN(c, dtype, op_int(c, 1));
  op_product(c, dtype, 1, 1, (double)op_int(c, 1));
  c->body = matmul_body;
}
static AX_BODY(einsum_body) { out[0] = ax_einsum(((const op_case *)context)->words[1], AX_LIST(2, in)); }
static void einsum(op_case *c) { /* DTYPE SUBSCRIPTS letter=size.. as a16 */
  ax_dtype dtype = op_dtype(c->words[0]);
  double flops = 1;
  int64_t size[128] = {0}, dims[2][AX_MAX_RANK];
  uint32_t rank[2] = {0};
  for (uint32_t w = 2; w < c->word_count; w++) {
    size[(unsigned char)c->words[w][0] & 127] = atoll(c->words[w] + 1);
    flops *= (double)atoll(c->words[w] + 1);
  }
  int k = 0;
  for (const char *s = c->words[1]; *s != '-'; s++) {
    if (*s == ',') k = 1;
    else dims[k][rank[k]++] = size[(unsigned char)*s & 127];
  }
  for (k = 0; k < 2; k++) op_input(c, dtype, rank[k], dims[k]);
  op_product(c, dtype, flops, 1, 1);
  c->body = einsum_body;
}

static const op_family families[] = {
    {"reduce", reduce},
    {"argmax", argmax},
    {"cumulative", cumulative},
    {"cumulate", cumulate},
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"layernorm", layernorm},
    {"layernorm_grad", layernorm_grad},
    {"cross_entropy_grad", cross_entropy_grad},
    {"transpose", transpose},
    {"addrow", addrow},
    {"addcol", addcol},
    {"outer", outer},
    {"concat", concat},
    {"slice", slice},
    {"pad", pad},
    {"rev", rev},
    {"select", select_case},
    {"at", at},
    {"unary", unary},
    {"binary", binary},
    {"bits", bits},
    {"poly", poly},
    {"convert", convert},
    {"matmul", matmul},
    {"matmul_nt", matmul_nt},
    {"matmul_tn", matmul_tn},
    {"layer", layer},
    {"bmm", bmm},
    {"matvec", matvec},
    {"vecmat", vecmat},
    {"vdot", vdot},
    {"einsum", einsum},
    {NULL, NULL},
};

static bool find_family(const op_family *all, const char *name, op_case *c) {
  for (; all->name != NULL; all++) {
    if (strcmp(all->name, name) != 0) continue;
    all->make(c);
    return true;
  }
  return false;
}

/* --- Data --- */

/* The k-th input's i-th element, in both programs: between 1/4 and 7/4; integers 1 to 7; indices all over what they are below. */
static double element(uint32_t k, int64_t i) { return 0.25 + 1.5 * (double)((i * 7919 + (int64_t)k * 337) % 769) / 768; }
static int64_t whole(uint32_t k, int64_t i) { return 1 + (i * 31 + (int64_t)k * 5) % 7; }
static int64_t spread(int64_t i, int64_t below) { return (int64_t)((uint32_t)(i + 1) * 2654435761u >> 8) % below; }

static uint16_t bf16_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t f16_bits(double x) { /* of 2^-14 <= x < 65504 */
  int exponent;
  double digits = rint(ldexp(frexp(x, &exponent), 11));
  return (uint16_t)((exponent + 13) * 1024 + (int)digits);
}

static double f16_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, digits = bits & 1023;
  return exponent == 31 ? (digits == 0 ? HUGE_VAL : NAN) : exponent == 0 ? ldexp(digits, -24) : ldexp(1024 + digits, exponent - 25);
}

static void fill(void *data, ax_dtype dtype, uint32_t k, int64_t elems, int64_t below) {
  for (int64_t i = 0; i < elems; i++) {
    double x = element(k, i);
    switch ((int)dtype) {
      case AX_F32: ((float *)data)[i] = (float)x; break;
      case AX_F64: ((double *)data)[i] = x; break;
      case AX_BF16: ((uint16_t *)data)[i] = bf16_bits((float)x); break;
      case AX_F16: ((uint16_t *)data)[i] = f16_bits(x); break;
      case AX_S8: ((int8_t *)data)[i] = (int8_t)whole(k, i); break;
      case AX_S32: ((int32_t *)data)[i] = (int32_t)(below > 0 ? spread(i, below) : whole(k, i)); break;
      case AX_S64: ((int64_t *)data)[i] = whole(k, i); break;
      default: complain("no data for", ax_dtype_name(dtype));
    }
  }
}

static double size_of(const void *data, ax_dtype dtype, int64_t i) {
  uint32_t bits = dtype == AX_BF16 ? (uint32_t)((const uint16_t *)data)[i] << 16 : 0;
  float narrow;
  memcpy(&narrow, &bits, sizeof narrow);
  switch ((int)dtype) {
    case AX_F32: return fabs((double)((const float *)data)[i]);
    case AX_F64: return fabs(((const double *)data)[i]);
    case AX_BF16: return fabs((double)narrow);
    case AX_F16: return f16_value(((const uint16_t *)data)[i]);
    case AX_S8: case AX_BOOL: return abs(((const int8_t *)data)[i]);
    case AX_S32: return fabs((double)((const int32_t *)data)[i]);
    case AX_S64: return fabs((double)((const int64_t *)data)[i]);
    default: complain("no sum for", ax_dtype_name(dtype));
  }
  return 0;
}

/* A weighted sum: elements that change places change it. */
static double sum_of(const void *data, ax_dtype dtype, int64_t elems) {
  enum { period = 1009 };
  double sum = 0;
  for (int64_t i = 0; i < elems; i++) sum += size_of(data, dtype, i) * (1 + (double)(i % period) / period);
  return sum;
}

static size_t bytes_of(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

static void *room(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
  if (memory == NULL) complain("out of memory for", "a case");
  return memory;
}

/* --- Serving --- */

typedef struct served {
  op_case c;
  job j;
  double in_bytes, out_bytes, sum;
  int64_t count;
} served;

/* The first run, and what its results add up to. */
static void try_out(served *s) {
  ax_array **out = room((s->j.out_count + 1) * sizeof out[0]);
  if (s->j.carried > 0) s->j.carried = 0;
  check(ax_run(s->j.executable, AX_LIST(s->j.in_count, s->j.arrays), AX_LIST(s->j.out_count, out)));
  for (uint32_t i = 0; i < s->j.out_count; i++) {
    const ax_type *type = ax_array_typeof(out[i]);
    size_t bytes = bytes_of(type);
    void *data = room(bytes);
    check(ax_array_read(out[i], data, bytes));
    s->sum += sum_of(data, type->dtype, ax_type_elems(type));
    s->out_bytes += (double)bytes;
    free(data);
    ax_array_release(out[i]);
  }
  free(out);
}

static ax_program *trace_case(op_case *c) {
  const job_function f = {c->body, c, NULL, c->in_count, c->out_count, c->types, NULL, NULL};
  return job_trace(&f);
}

static void set_up(served *s, ax_runtime *runtime) {
  op_case *c = &s->c;
  ax_program *program = trace_case(c);
  s->j = (job){.runtime = ax_runtime_retain(runtime), .in_count = c->in_count, .out_count = c->out_count, .carried = c->carried};
  s->j.arrays = calloc(c->in_count + c->out_count + 1, sizeof s->j.arrays[0]);
  check(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(c->carried)}, &s->j.executable));
  ax_program_release(program);
  ax_mesh mesh;
  check(ax_mesh_parse("", &mesh));
  for (uint32_t i = 0; i < c->in_count; i++) {
    void *data = room(bytes_of(&c->types[i]));
    fill(data, c->types[i].dtype, i, ax_type_elems(&c->types[i]), c->below);
    check(ax_device_put_data(runtime, &mesh, "", &c->types[i], data, &s->j.arrays[i]));
    s->in_bytes += (double)bytes_of(&c->types[i]);
    free(data);
  }
}

static double time_of(served *s, int64_t count) {
  double start = bench_seconds();
  job_run(&s->j, count);
  return bench_seconds() - start;
}

/* The case borrows its words from the line. */
static op_case read_case(char *line) {
  op_case c = {.out_count = 1, .dtype = AX_F32};
  const char *family = strtok(line, " \n");
  for (char *word; c.word_count < OP_MOST_WORDS && (word = strtok(NULL, " \n")) != NULL;) c.words[c.word_count++] = word;
  const op_family *const tables[] = {families, op_model_families, op_number_families,
                                     op_whole_families, op_net_families, op_step_families,
                                     op_language_families};
  bool found = false;
  for (size_t t = 0; t < sizeof tables / sizeof tables[0] && !found; t++) found = find_family(tables[t], family, &c);
  if (!found) complain("no such family", family);
  return c;
}

static void begin(served *s, char *line, ax_runtime *runtime) {
  *s = (served){.c = read_case(line)};
  set_up(s, runtime);
  if (s->c.carried == 0) try_out(s);
  double once = time_of(s, 1);
  if (once < 0.02) once = time_of(s, 2) / 2;
  for (s->count = 1; once < 0.02 && s->count < 1 << 20; s->count *= 2)
    if (time_of(s, s->count) >= 0.02) break;
  double bytes_in = s->in_bytes, bytes_out = s->out_bytes;
  if (s->c.moved > 0) bytes_out = bytes_out < s->c.moved ? bytes_out : s->c.moved, bytes_in = s->c.moved - bytes_out;
  printf("ready %.17g %.17g %.17g %s %.17g\n", bytes_in, bytes_out, s->c.flops, ax_dtype_name(s->c.dtype), s->sum);
  fflush(stdout);
}

void operations(char **arguments) {
  ax_runtime *runtime;
  served s = {0};
  char line[512];
  check(ax_runtime_create(&(ax_runtime_options){.workers = (uint32_t)atoi(arguments[0])}, &runtime));
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (line[0] == '\n' && s.j.executable != NULL) {
      bench_answer(time_of(&s, s.count) / ((double)s.count * (s.c.parts > 0 ? s.c.parts : 1)));
      continue;
    }
    if (s.j.executable != NULL) job_release(&s.j);
    free(s.c.types);
    begin(&s, line, runtime);
  }
}

void operations_traced(char **arguments) {
  char line[512];
  (void)arguments;
  while (fgets(line, sizeof line, stdin) != NULL) {
    fputs(line, stdout);
    fflush(stdout);
    op_case c = read_case(line);
    ax_program_release(trace_case(&c));
    free(c.types);
  }
}

/* On one device of the machine. */
static double simulated_seconds(const ax_cluster *machine, op_case *c) {
  ax_lowered *lowered;
  ax_simulation simulation;
  ax_program *program = trace_case(c);
  check(ax_program_lower(program, &(ax_compile_options){.donate = AX_FIRST(c->carried)}, &lowered));
  check(ax_simulate(lowered, machine, NULL, &simulation));
  const double seconds = simulation.seconds / (c->parts > 0 ? c->parts : 1);
  ax_simulation_release(&simulation);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return seconds;
}

void operations_simulated(char **arguments) {
  char line[512];
  ax_cluster *machine;
  check(ax_cluster_read(arguments[0], &machine));
  while (fgets(line, sizeof line, stdin) != NULL) {
    op_case c = read_case(line);
    bench_answer(simulated_seconds(machine, &c));
    free(c.types);
  }
  ax_cluster_release(machine);
}
