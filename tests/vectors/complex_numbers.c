/* Complex numbers: see complex_numbers.py. */
#include "axle/linalg.h"
#include "axle/numpy.h"
#include "vectors.h"

#define COMPLEX "c64 c128"
#define FLOAT "f32 f64"

static ax_value power_5(ax_value x) { return ax_integer_pow(x, 5); }
static ax_value power_m3(ax_value x) { return ax_integer_pow(x, -3); }
static ax_dtype dtype_of(ax_value x) { return ax_typeof(x).dtype; }
static ax_dtype part_of(ax_value x) { return dtype_of(x) == AX_C64 ? AX_F32 : AX_F64; }
static ax_value imaginary_unit(ax_value like) {
  return ax_complex(ax_full(part_of(like), DIMS(), 0), ax_full(part_of(like), DIMS(), 1));
}

BODY(of_parts) {
  ax_value z = ax_complex(in[0], in[1]);
  out[0] = ax_mul(z, ax_exp(z));
  out[1] = ax_real_part(z);
}

BODY(convert) {
  out[0] = ax_convert_element_type(ax_real_part(in[0]), dtype_of(in[0]));
  out[1] = ax_convert_element_type(in[0], AX_C64);
  out[2] = ax_convert_element_type(in[0], AX_C128);
  out[3] = ax_convert_element_type(in[0], AX_BOOL);
}

BODY(to_real) {
  out[0] = ax_convert_element_type(in[0], AX_F32);
  out[1] = ax_convert_element_type(in[0], AX_S32);
}

BODY(iota) { out[0] = ax_mul(ax_iota(dtype_of(in[0]), DIMS(3, 4), 1), in[0]); }

BODY(moves) {
  out[0] = ax_reshape(in[0], DIMS(4, 6));
  out[1] = ax_slice(ax_transpose(in[0], LIST(1, 0)), LIST(0, 0), LIST(8, 3), LIST(2, 1));
  out[2] = ax_rev(in[0], DIMS(1));
  out[3] = ax_broadcast_to(ax_slice_in_dim(in[0], 0, 1, 1, 1), DIMS(3, 5));
  out[4] = ax_slice(in[0], LIST(1, 2), LIST(3, 7), LIST(1, 3));
}

BODY(joined) {
  ax_value first = ax_reshape(ax_slice(in[1], LIST(0, 0), LIST(1, 1), NULL), DIMS());
  out[0] = ax_concatenate(AX_VALUES(in[0], in[1]), 1);
  out[1] = ax_pad(in[0], first, LIST(1, -1), LIST(2, 1), LIST(0, 1));
}

BODY(chosen) { out[0] = ax_where(ax_lt(ax_real_part(in[0]), ax_imag_part(in[1])), in[0], in[1]); }

BODY(sliced) {
  ax_value at[2][2] = {{ax_full(AX_S32, DIMS(), 1), ax_full(AX_S32, DIMS(), 2)}, {ax_full(AX_S32, DIMS(), 1), ax_full(AX_S32, DIMS(), 3)}};
  out[0] = ax_dynamic_slice(in[0], at[0], LIST(2, 2));
  out[1] = ax_dynamic_update_slice(in[0], in[1], at[1]);
}

BODY(gathered) {
  out[0] = ax_take(in[0], in[1], 0);
  out[1] = ax_take_with(in[0], ax_add(in[1], ax_integer(3)), 0, &(ax_index_options){.mode = AX_INDEX_FILL});
}

BODY(scattered) {
  out[0] = ax_at_add(in[0], in[2], in[1], 0, NULL);
  out[1] = ax_at_set(in[0], ax_slice_in_dim(in[2], 0, 1, 1, 0), ax_slice_in_dim(in[1], 0, 1, 1, 0), 0, NULL);
}

BODY(sums) {
  out[0] = ax_reduce_sum(in[0], DIMS(1), false);
  out[1] = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
  out[2] = ax_cumsum(in[0], 1, false);
  out[3] = ax_cumsum(in[0], 0, true);
}

BODY(prods) {
  out[0] = ax_reduce_prod(in[0], DIMS(1), false);
  out[1] = ax_reduce_prod(in[0], AX_ALL_DIMS, false);
  out[2] = ax_cumprod(in[0], 1, false);
}

BODY(window) { out[0] = ax_reduce_window_sum(in[0], DIMS(2, 3), &(ax_window_options){.strides = {DIMS(1, 2)}}); }

BODY(both) { out[0] = ax_add(ax_mul(in[0], in[1]), ax_add(in[0], in[1])); }
BODY(reduced) { ax_reduce(AX_LIST(1, in), AX_VALUES(ax_real(1)), AX_FN(both, 2, 1), DIMS(0), AX_LIST(1, out)); }

BODY(matmul) { out[0] = ax_matmul(in[0], in[1]); }
BODY(einsum) { out[0] = ax_einsum("bij,bkj->bik", AX_VALUES(in[0], ax_conj(in[1]))); }
BODY(conv) { out[0] = ax_conv(in[0], in[1], DIMS(1, 2), "SAME"); }
BODY(sorted) { out[0] = ax_sort(ax_complex(ax_round(ax_real_part(in[0])), ax_round(ax_imag_part(in[0]))), 1); }

BODY(step) {
  const ax_value *w = context;
  out[0] = ax_add(ax_mul(in[0], *w), in[1]);
  out[1] = ax_conj(in[0]);
}
BODY(scan) {
  ax_value w = in[1], operands[] = {ax_full(dtype_of(in[0]), DIMS(), 0), in[0]};
  ax_scan(AX_CLOSURE(step, 2, 2, &w), 1, -1, false, operands, AX_LIST(2, out));
}

BODY(more) { out[0] = ax_lt(in[0], ax_integer(3)); }
BODY(once) {
  const ax_value *x = context;
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = ax_add(ax_mul(in[1], *x), ax_integer(1));
}
BODY(loop) {
  ax_value x = in[0], made[2];
  ax_while(AX_FN(more, 2, 1), AX_CLOSURE(once, 2, 2, &x), AX_VALUES(ax_full(AX_S32, DIMS(), 0), x), made);
  out[0] = made[1];
}

BODY(squared) { out[0] = ax_mul(in[0], in[0]); }
BODY(conjugated) { out[0] = ax_conj(in[0]); }
BODY(cond) {
  ax_value first = ax_reshape(ax_slice_in_dim(ax_real_part(in[0]), 0, 1, 1, 0), DIMS());
  ax_if(ax_gt(first, ax_integer(0)), AX_FN(squared, 1, 1), AX_FN(conjugated, 1, 1), AX_LIST(1, in), AX_LIST(1, out));
}

BODY(inner) {
  ax_value first = ax_reshape(ax_slice_in_dim(in[0], 0, 1, 1, 0), DIMS());
  out[0] = ax_mul(ax_matmul(in[0], in[1]), ax_convert_element_type(ax_abs(first), dtype_of(in[0])));
}
BODY(batched) { ax_vmap(AX_FN(inner, 2, 1), AX_LIST(2, in), AX_LIST(1, out), &(ax_vmap_options){.in_axes = {2, (int64_t[]){1, AX_NOT_MAPPED}}}); }

BODY(energy) {
  ax_value size = ax_abs(ax_mul(in[0], in[1])), wave = ax_real_part(ax_mul(ax_exp(in[0]), in[1]));
  out[0] = ax_reduce_sum(ax_add(ax_mul(size, size), wave), AX_ALL_DIMS, false);
}
BODY(gradient) { ax_grad(AX_FN(energy, 2, 1), AX_FIRST(2), AX_LIST(2, in), AX_LIST(2, out)); }

BODY(sine_times) { out[0] = ax_mul(ax_sin(in[0]), in[0]); }
BODY(holomorphic) {
  ax_value one = ax_full_like(in[0], 1), y;
  ax_vjp(AX_FN(sine_times, 1, 1), AX_FIRST(1), AX_LIST(1, in), &one, &y, AX_LIST(1, out));
}

BODY(log_size) {
  ax_value size = ax_abs(in[0]);
  out[0] = ax_reduce_sum(ax_log(ax_add(ax_mul(size, size), ax_integer(1))), AX_ALL_DIMS, false);
}
BODY(slope) { ax_grad(AX_FN(log_size, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out)); }
BODY(second) {
  ax_value turned = ax_mul(in[0], imaginary_unit(in[0])), y;
  ax_jvp(AX_FN(slope, 1, 1), AX_FIRST(1), AX_LIST(1, in), &turned, &y, AX_LIST(1, out));
}

static ax_value tied(ax_value x) {
  ax_value real = ax_round(ax_real_part(x));
  return ax_complex(real, ax_imag_part(x));
}

BODY(larger) {
  ax_value x = tied(in[0]);
  out[0] = ax_max(x, tied(in[1]));
}
BODY(smaller) {
  ax_value x = tied(in[0]);
  out[0] = ax_min(x, tied(in[1]));
}
BODY(clamp) {
  ax_value low = ax_at(in[1], 0, 0), high = ax_at(in[1], 1, 0);
  out[0] = ax_clamp(low, in[0], high);
}
BODY(extremes) {
  ax_value x = tied(in[0]);
  out[0] = ax_reduce_max(x, DIMS(1), false);
  out[1] = ax_reduce_min(x, AX_ALL_DIMS, false);
  out[2] = ax_cummax(x, 1, false);
  out[3] = ax_cummin(x, 0, true);
}
BODY(window_extremes) {
  ax_value x = tied(in[0]);
  out[0] = ax_reduce_window_max(x, DIMS(2, 3), &(ax_window_options){.strides = {DIMS(1, 2)}});
  out[1] = ax_reduce_window_min(x, DIMS(3, 1), &(ax_window_options){.padding = "SAME"});
}
BODY(cumlogsumexp) { out[0] = ax_cumlogsumexp(in[0], 1, false); }
BODY(logsumexp) { out[0] = ax_logsumexp(in[0], DIMS(1), false); }
BODY(scattered_extremes) {
  ax_value x = tied(in[0]), u = tied(in[1]);
  out[0] = ax_at_mul(x, in[2], in[1], 0, NULL);
  out[1] = ax_at_max(x, in[2], u, 0, NULL);
  out[2] = ax_at_min(x, in[2], u, 0, NULL);
}
BODY(products) {
  out[0] = ax_vdot(in[0], in[0]);
  out[1] = ax_correlate(in[0], in[1], NULL);
  out[2] = ax_correlate(in[1], in[0], "full");
  out[3] = ax_convolve(in[0], in[1], NULL);
  out[4] = ax_inner(in[0], in[0]);
}
BODY(moments) {
  out[0] = ax_var(in[0], DIMS(1), 0, false);
  out[1] = ax_std(in[0], AX_ALL_DIMS, 1, false);
  out[2] = ax_reduce_mean(in[0], DIMS(0), false);
  out[3] = ax_average(in[0], in[0], DIMS(1), false);
}
BODY(covariances) {
  out[0] = ax_cov(in[0], true, 1);
  out[1] = ax_corrcoef(in[0], true);
}
BODY(close) {
  out[0] = ax_isclose(in[0], in[1], 0.1, 0.5, false);
  out[1] = ax_allclose(in[0], in[1], 1, 9);
}

static ax_value plus_diagonal(ax_value x, double by) {
  const ax_type type = ax_typeof(x);
  const int64_t n = type.dims[type.rank - 1];
  return ax_add(x, ax_mul(ax_eye(type.dtype, n, n, 0), ax_real(by)));
}
BODY(cholesky) {
  ax_value product = ax_matmul(in[0], ax_conj(ax_matrix_transpose(in[0])));
  out[0] = ax_cholesky(plus_diagonal(product, 3), true);
}
BODY(cholesky_lower) { out[0] = ax_cholesky(plus_diagonal(in[0], 9), false); }
BODY(cholesky_indefinite) { out[0] = ax_cholesky(plus_diagonal(in[0], -9), true); }
BODY(solve_lower) { out[0] = ax_triangular_solve(plus_diagonal(in[0], 3), in[1], true, true, false, false, false); }
BODY(solve_transposed) { out[0] = ax_triangular_solve(plus_diagonal(in[0], 3), in[1], true, false, true, false, false); }
BODY(solve_adjoint) { out[0] = ax_triangular_solve(plus_diagonal(in[0], 3), in[1], false, true, true, true, false); }
BODY(solve_conjugate) { out[0] = ax_triangular_solve(plus_diagonal(in[0], 3), in[1], true, true, false, true, true); }
BODY(lu) { ax_lu(in[0], AX_LIST(3, out)); }

static ax_value plane(ax_value x) { return ax_complex(x, ax_mul(x, x)); }
static const char *axes(const void *context) { return ((const vector_variant *)context)->axes; }
BODY(psum) { out[0] = ax_psum(plane(in[0]), axes(context)); }
BODY(collectives) {
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  ax_value z = plane(in[0]);
  out[0] = ax_all_gather(z, axes(context), 0, true);
  out[1] = ax_psum_scatter(z, axes(context), 0, true);
  out[2] = ax_all_to_all(z, axes(context), 0, 0, true);
  out[3] = ax_ppermute(z, axes(context), 4, ring);
}

BODY(pmax) {
  ax_value z = ax_complex(ax_round(in[0]), in[0]);
  out[0] = ax_pmax(z, axes(context));
  out[1] = ax_pmin(z, axes(context));
}

static const vector_case complex_numbers_cases[] = {
    {"add_edges", COMPLEX, .binary = ax_add, .modes = "v"},
    {"sub_edges", COMPLEX, .binary = ax_sub, .modes = "v"},
    {"mul_edges", COMPLEX, .binary = ax_mul, .modes = "v"},
    {"neg_edges", COMPLEX, .unary = ax_neg, .modes = "v"},
    {"real_edges", COMPLEX, .unary = ax_real_part, .modes = "v"},
    {"imag_edges", COMPLEX, .unary = ax_imag_part, .modes = "v"},
    {"conj_edges", COMPLEX, .unary = ax_conj, .modes = "v"},
    {"abs_edges", COMPLEX, .unary = ax_abs, .modes = "v"},
    {"eq", COMPLEX, .binary = ax_eq, .modes = "v"},
    {"ne", COMPLEX, .binary = ax_ne, .modes = "v"},
    {"exp_edges", COMPLEX, .unary = ax_exp, .modes = "v"},
    {"log_edges", COMPLEX, .unary = ax_log, .modes = "v"},
    {"add", COMPLEX, .binary = ax_add},
    {"sub", COMPLEX, .binary = ax_sub},
    {"mul", COMPLEX, .binary = ax_mul},
    {"div", COMPLEX, .binary = ax_div, .scaled = true},
    {"pow", COMPLEX, .binary = ax_pow, .ulps = 64},
    {"neg", COMPLEX, .unary = ax_neg},
    {"abs", COMPLEX, .unary = ax_abs, .scaled = true},
    {"sign", COMPLEX, .unary = ax_sign, .modes = "v"},
    {"real", COMPLEX, .unary = ax_real_part},
    {"imag", COMPLEX, .unary = ax_imag_part},
    {"conj", COMPLEX, .unary = ax_conj},
    {"integer_pow", COMPLEX, .unary = power_5},
    {"integer_pow_m3", COMPLEX, .unary = power_m3, .scaled = true},
    {"complex", FLOAT, .binary = ax_complex},
    {"of_parts", FLOAT, .body = of_parts, .in = 2, .out = 2, .scaled = true},
    {"exp", COMPLEX, .unary = ax_exp},
    {"exp2", COMPLEX, .unary = ax_exp2},
    {"expm1", COMPLEX, .unary = ax_expm1, .scaled = true},
    {"log", COMPLEX, .unary = ax_log, .scaled = true},
    {"log1p", COMPLEX, .unary = ax_log1p, .scaled = true},
    {"sqrt", COMPLEX, .unary = ax_sqrt},
    {"rsqrt", COMPLEX, .unary = ax_rsqrt},
    {"sin", COMPLEX, .unary = ax_sin},
    {"cos", COMPLEX, .unary = ax_cos},
    {"tan", COMPLEX, .unary = ax_tan, .scaled = true},
    {"sinh", COMPLEX, .unary = ax_sinh},
    {"cosh", COMPLEX, .unary = ax_cosh},
    {"tanh", COMPLEX, .unary = ax_tanh, .scaled = true},
    {"asin", COMPLEX, .unary = ax_asin, .scaled = true},
    {"acos", COMPLEX, .unary = ax_acos, .scaled = true},
    {"atan", COMPLEX, .unary = ax_atan, .scaled = true},
    {"asinh", COMPLEX, .unary = ax_asinh, .scaled = true},
    {"acosh", COMPLEX, .unary = ax_acosh, .scaled = true, .modes = "v"},
    {"atanh", COMPLEX, .unary = ax_atanh, .scaled = true},
    {"logistic", COMPLEX, .unary = ax_logistic, .scaled = true},
    {"convert", COMPLEX, .body = convert, .out = 4},
    {"to_real", COMPLEX, .body = to_real, .out = 2, .modes = "v"},
    {"iota", COMPLEX, .body = iota},
    {"moves", COMPLEX, .body = moves, .out = 5},
    {"joined", COMPLEX, .body = joined, .in = 2, .out = 2},
    {"chosen", COMPLEX, .body = chosen, .in = 2},
    {"sliced", COMPLEX, .body = sliced, .in = 2, .out = 2},
    {"gathered", COMPLEX, .body = gathered, .in = 2, .out = 2},
    {"scattered", COMPLEX, .body = scattered, .in = 3, .out = 2},
    {"sums", COMPLEX, .body = sums, .out = 4, .scaled = true},
    {"prods", COMPLEX, .body = prods, .out = 3, .scaled = true},
    {"window", COMPLEX, .body = window, .scaled = true},
    {"reduced", COMPLEX, .body = reduced, .scaled = true, .modes = "v"},
    {"matmul", COMPLEX, .body = matmul, .in = 2, .scaled = true},
    {"einsum", COMPLEX, .body = einsum, .in = 2, .scaled = true},
    {"conv", COMPLEX, .body = conv, .in = 2, .scaled = true},
    {"sorted", COMPLEX, .body = sorted, .modes = "v"},
    {"scan", COMPLEX, .body = scan, .in = 2, .out = 2, .scaled = true},
    {"loop", COMPLEX, .body = loop, .modes = "vj", .scaled = true},
    {"cond", COMPLEX, .body = cond},
    {"batched", COMPLEX, .body = batched, .in = 2, .scaled = true},
    {"gradient", COMPLEX, .body = gradient, .in = 2, .out = 2, .modes = "v", .scaled = true},
    {"holomorphic", COMPLEX, .body = holomorphic, .modes = "v"},
    {"second", COMPLEX, .body = second, .modes = "v", .scaled = true},
    {"max", COMPLEX, .body = larger, .in = 2},
    {"min", COMPLEX, .body = smaller, .in = 2},
    {"atan2", COMPLEX, .binary = ax_atan2, .scaled = true},
    {"conj_of_real", FLOAT, .unary = ax_conj},
    {"clamp", COMPLEX, .body = clamp, .in = 2, .modes = "v"},
    {"extremes", COMPLEX, .body = extremes, .out = 4},
    {"window_extremes", COMPLEX, .body = window_extremes, .out = 2, .modes = "v"},
    {"cumlogsumexp", COMPLEX, .body = cumlogsumexp, .scaled = true},
    {"logsumexp", COMPLEX, .body = logsumexp, .scaled = true},
    {"scattered_extremes", COMPLEX, .body = scattered_extremes, .in = 3, .out = 3, .modes = "v"},
    {"products", COMPLEX, .body = products, .in = 2, .out = 5, .scaled = true},
    {"moments", COMPLEX, .body = moments, .out = 4, .scaled = true},
    {"covariances", COMPLEX, .body = covariances, .out = 2, .modes = "v", .scaled = true},
    {"close", COMPLEX, .body = close, .in = 2, .out = 2, .modes = "v"},
    {"cholesky", COMPLEX, .body = cholesky, .scaled = true},
    {"cholesky_lower", COMPLEX, .body = cholesky_lower, .modes = "v", .scaled = true},
    {"cholesky_indefinite", COMPLEX, .body = cholesky_indefinite, .modes = "v"},
    {"solve_lower", COMPLEX, .body = solve_lower, .in = 2, .scaled = true},
    {"solve_transposed", COMPLEX, .body = solve_transposed, .in = 2, .scaled = true},
    {"solve_adjoint", COMPLEX, .body = solve_adjoint, .in = 2, .scaled = true},
    {"solve_conjugate", COMPLEX, .body = solve_conjugate, .in = 2, .scaled = true},
    {"lu", COMPLEX, .body = lu, .out = 3, .scaled = true},
    {"lu_wide", COMPLEX, .body = lu, .out = 3, .scaled = true},
    {"lu_tall", COMPLEX, .body = lu, .out = 3, .scaled = true},
    {"psum", "d=4", "A > .", .body = psum},
    {"collectives", "d=4", "A > A A A A", .body = collectives, .out = 4, .scaled = true},
    {"pmax", "d=4", "A > A A", .body = pmax, .out = 2, .modes = "v"},
};

const VECTOR_GROUP(complex_numbers);
