/* Cases for b9 of what is no arithmetic of floats alone: Fourier transforms, random numbers, matrices factored, orders, further
   functions, complex numbers. bench/jax_language.py has the same in JAX. */
#include <string.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "axle/random.h"
#include "ops.h"

static bool is(const op_case *c, uint32_t word, const char *name) { return strcmp(c->words[word], name) == 0; }

/* The words from `first` on, as dimensions. */
static uint32_t dims_of(const op_case *c, uint32_t first, int64_t *dims) {
  for (uint32_t w = first; w < c->word_count; w++) dims[w - first] = op_int(c, w);
  return c->word_count - first;
}

/* The operand of that many words before its dimensions. */
static void operand(op_case *c, ax_dtype dtype, uint32_t words) {
  int64_t dims[OP_MOST_WORDS];
  const uint32_t rank = dims_of(c, words, dims);
  op_input(c, dtype, rank, dims);
}

static ax_value times(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }

/* --- Fourier transforms: the parts of the result --- */

static AX_BODY(fft_body) {
  const op_case *c = context;
  const int64_t rank = (int64_t)c->types[0].rank;
  ax_value z;
  if (is(c, 0, "rfft")) z = ax_rfft(in[0], -1);
  else if (is(c, 0, "fft2")) z = ax_fftn(ax_complex(in[0], in[1]), AX_DIMS(rank - 2, rank - 1));
  else z = is(c, 0, "fft") ? ax_fft(ax_complex(in[0], in[1]), -1) : ax_ifft(ax_complex(in[0], in[1]), -1);
  out[0] = ax_real_part(z);
  out[1] = ax_imag_part(z);
}
static void fft(op_case *c) { /* fft|ifft|fft2|rfft DTYPE DIM..: the dtype of the parts */
  for (int i = 0; i < (is(c, 0, "rfft") ? 1 : 2); i++) operand(c, op_dtype(c->words[1]), 2);
  c->body = fft_body;
  c->out_count = 2;
}

/* --- Random numbers --- */

static AX_BODY(draw_body) {
  const op_case *c = context;
  int64_t n[OP_MOST_WORDS];
  const uint32_t rank = dims_of(c, 2, n);
  const ax_dtype dtype = op_dtype(c->words[1]);
  const ax_value key = ax_random_key(in[0]), one = op_number(dtype, 1);
  if (is(c, 0, "bits")) out[0] = ax_convert_element_type(ax_random_bits(key, AX_U32, AX_LIST(rank, n)), AX_F32);
  if (is(c, 0, "uniform")) out[0] = ax_random_uniform(key, dtype, AX_LIST(rank, n), op_number(dtype, 0), one);
  if (is(c, 0, "normal")) out[0] = ax_random_normal(key, dtype, AX_LIST(rank, n));
  if (is(c, 0, "exponential")) out[0] = ax_random_exponential(key, dtype, AX_LIST(rank, n));
  if (is(c, 0, "gumbel")) out[0] = ax_random_gumbel(key, dtype, AX_LIST(rank, n), AX_RANDOM_LOW);
  if (is(c, 0, "bernoulli")) out[0] = ax_random_bernoulli(key, AX_LIST(rank, n), op_number(AX_F32, 0.3), AX_RANDOM_LOW);
  if (is(c, 0, "randint"))
    out[0] = ax_random_randint(key, AX_S32, AX_LIST(rank, n), op_number(AX_S32, 0), op_number(AX_S32, 1000));
  if (is(c, 0, "gamma")) out[0] = ax_random_gamma(key, dtype, AX_LIST(rank, n), op_number(dtype, 2.5));
  if (is(c, 0, "permutation")) out[0] = ax_random_permutation(key, ax_iota(AX_S32, AX_LIST(rank, n), 0), 0, false);
}
static void draw(op_case *c) { /* NAME DTYPE DIM.. */
  op_input(c, AX_S32, 0, NULL);
  c->body = draw_body;
}

/* --- Matrices --- */

enum { batch_word = 2, size_word };

static ax_value positive(ax_value x) { /* symmetric, positive definite */
  const ax_type t = ax_typeof(x);
  const ax_value eye = ax_eye(t.dtype, t.dims[2], t.dims[2], 0);
  return ax_add(times(ax_add(x, ax_swapaxes(x, 1, 2)), 0.5), times(eye, 2 * (double)t.dims[2]));
}
static AX_BODY(matrix_body) {
  const op_case *c = context;
  ax_value made[3];
  if (is(c, 0, "cholesky")) out[0] = ax_cholesky(positive(in[0]), false);
  if (is(c, 0, "lu")) ax_lu(positive(in[0]), AX_LIST(3, made)), out[0] = made[0];
  if (is(c, 0, "qr")) ax_qr(in[0], false, false, AX_LIST(2, made)), out[0] = made[1];
  if (is(c, 0, "qr_both")) ax_qr(in[0], false, false, AX_LIST(2, made)), out[0] = ax_matmul(made[0], made[1]);
  if (is(c, 0, "eigh")) ax_eigh(positive(in[0]), true, false, AX_LIST(2, made)), out[0] = made[1];
  if (is(c, 0, "svd")) ax_svd(in[0], true, false, AX_LIST(1, out));
  if (is(c, 0, "solve")) out[0] = ax_solve(positive(in[0]), in[0]);
  if (is(c, 0, "inv")) out[0] = ax_inv(positive(in[0]));
  if (is(c, 0, "triangular")) out[0] = ax_triangular_solve(positive(in[0]), in[0], true, true, false, false, false);
  if (is(c, 0, "slogdet")) ax_slogdet(positive(in[0]), AX_LIST(2, made)), out[0] = made[1];
  if (is(c, 0, "expm")) out[0] = ax_expm(times(in[0], 1 / (double)op_int(c, size_word)));
}
static void matrix(op_case *c) { /* NAME DTYPE BATCH N */
  OP_IN(c, op_dtype(c->words[1]), op_int(c, batch_word), op_int(c, size_word), op_int(c, size_word));
  c->body = matrix_body;
}

/* --- Orders: of numbers all over the dtype's, each once --- */

enum { axis_word = 2, order_dims };

static AX_BODY(order_body) {
  const op_case *c = context;
  const int64_t axis = op_int(c, axis_word);
  const ax_value x = ax_convert_element_type(in[0], op_dtype(c->words[1]));
  ax_value made[2];
  if (is(c, 0, "sort")) out[0] = ax_sort(x, axis);
  if (is(c, 0, "argsort")) out[0] = ax_argsort(x, axis);
  if (is(c, 0, "top_k")) ax_top_k(x, 8, AX_LIST(2, made)), out[0] = made[0];
  if (is(c, 0, "median")) out[0] = ax_median(x, AX_DIMS(axis), false);
  if (is(c, 0, "searchsorted")) out[0] = ax_searchsorted(ax_sort(x, axis), x, false);
}
static void order(op_case *c) { /* NAME DTYPE AXIS DIM.. */
  operand(c, AX_S32, order_dims);
  c->below = 1 << 23;
  c->body = order_body;
}

/* --- Further functions, of numbers from 1/8 to 7/8 --- */

static ax_value acosh_above(ax_value x) { return (ax_acosh)(ax_add(x, ax_full_like(x, 1))); }
static ax_value bits_counted(ax_value x) {
  return ax_convert_element_type(ax_population_count(ax_bitcast_convert_type(x, AX_S32)), ax_typeof(x).dtype);
}
static ax_value mixed(ax_value x) {
  const ax_value bits = ax_bitcast_convert_type(x, AX_S32), seven = ax_full_like(bits, 7);
  const ax_value y = ax_xor(ax_shift_left(bits, seven), ax_shift_right_logical(bits, seven));
  return ax_convert_element_type(ax_and(y, ax_full_like(y, 0xffff)), ax_typeof(x).dtype);
}
static AX_BODY(special_body) { /* NAME DTYPE N */
  static const struct {
    const char *name;
    ax_value (*function)(ax_value);
  } all[] = {{"tan", ax_tan},         {"asin", ax_asin},       {"acos", ax_acos},       {"atan", ax_atan},
             {"sinh", ax_sinh},       {"cosh", ax_cosh},       {"asinh", ax_asinh},     {"acosh", acosh_above},
             {"atanh", ax_atanh},     {"exp2", ax_exp2},       {"cbrt", ax_cbrt},       {"erfc", ax_erfc},
             {"erf_inv", ax_erf_inv}, {"lgamma", ax_lgamma},   {"digamma", ax_digamma}, {"bessel_i0e", ax_bessel_i0e},
             {"floor", ax_floor},     {"popcount", bits_counted}, {"mixed", mixed}};
  const op_case *c = context;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i].name, c->words[0]) == 0) out[0] = all[i].function(times(in[0], 0.5));
}
static void special(op_case *c) {
  operand(c, op_dtype(c->words[1]), 2);
  c->body = special_body;
}

/* --- Complex numbers: the size of the result's parts --- */

static AX_BODY(complex_body) { /* mul|div|exp|matmul DTYPE DIM.. */
  const op_case *c = context;
  const ax_value a = ax_complex(in[0], in[1]), b = ax_complex(in[1], in[0]);
  const ax_value z = is(c, 0, "mul")   ? ax_mul(a, ax_mul(a, b))
                     : is(c, 0, "div") ? ax_div(a, b)
                     : is(c, 0, "exp") ? ax_exp(a)
                                       : ax_matmul(a, b);
  out[0] = ax_real_part(z);
  out[1] = ax_imag_part(z);
}
static void complex_case(op_case *c) {
  for (int i = 0; i < 2; i++) operand(c, op_dtype(c->words[1]), 2);
  const int64_t n = c->types[0].dims[0];
  if (is(c, 0, "matmul")) op_product(c, c->types[0].dtype, (double)(4 * n), (double)n, (double)n);
  c->body = complex_body;
  c->out_count = 2;
}

const op_family op_language_families[] = {
    {"fft", fft}, {"draw", draw}, {"matrix", matrix}, {"order", order}, {"special", special}, {"complex", complex_case}, {NULL, NULL},
};
