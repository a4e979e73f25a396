/* Bad input, through the public functions alone: each time a status, a message with the shapes, dtypes, names and the equation in
   it, outputs that are NULL, and nothing left behind (the leak checker sees to that). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"
#include "xform/evaluate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- Traces that must be refused --- */

typedef struct refusal {
  ax_function function;
  int which;
  const char *message; /* a part of it */
} refusal;

static const ax_type in_types[] = {
    {.dtype = AX_F32, .rank = 1, .dims = {8}},    {.dtype = AX_F32, .rank = 2, .dims = {8, 4}},
    {.dtype = AX_S32, .rank = 1, .dims = {8}},    {.dtype = AX_F32, .rank = 2, .dims = {3, 5}},
    {.dtype = AX_BOOL, .rank = 1, .dims = {8}},   {.dtype = AX_F32},
};

static void refuse(const refusal *refusals, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int which = refusals[i].which;
    ax_program *program = (ax_program *)(void *)&which;
    ax_status status = ax_trace(AX_CLOSURE(refusals[i].function, COUNT(in_types), 1, &which), in_types, &program);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), refusals[i].message) == NULL)
      fail_msg("%zu: %s, \"%s\" instead of \"%s\"", i, ax_status_name(status), ax_message(), refusals[i].message);
    assert_null(program);
  }
}

static void mismatched(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], ints = in[2], odd = in[3], bools = in[4];
  const int64_t zero[] = {0}, one[] = {1}, both[] = {0, 1}, high[] = {9, 9}, strides[] = {0};
  switch (*(const int *)context) {
    case 0: out[0] = ax_add(v, odd); break;
    case 1: out[0] = ax_mul(v, ints); break;
    case 2: out[0] = ax_exp(ints); break;
    case 3: out[0] = ax_matmul(m, odd); break;
    case 4: out[0] = ax_dot_general(m, odd, AX_LIST(1, one), AX_LIST(1, zero), AX_DIMS(), AX_DIMS()); break;
    case 5: out[0] = ax_dot_general(m, ints, AX_LIST(1, zero), AX_LIST(1, zero), AX_DIMS(), AX_DIMS()); break;
    case 6: out[0] = ax_concatenate(AX_VALUES(m, odd), 0); break;
    case 7: out[0] = ax_concatenate(AX_VALUES(v, ints), 0); break;
    case 8: out[0] = ax_select_n(v, v, v); break;
    case 9: out[0] = ax_select_n(bools, v, ints); break;
    case 10: out[0] = ax_reshape(m, AX_DIMS(31)); break;
    case 11: out[0] = ax_transpose(m, AX_DIMS(0, 0)); break;
    case 12: out[0] = ax_broadcast_in_dim(v, AX_DIMS(7, 4), zero); break;
    case 13: out[0] = ax_slice(m, both, high, NULL); break;
    case 14: out[0] = ax_slice(v, zero, one, strides); break;
    case 15: out[0] = ax_reduce_sum(m, AX_DIMS(2), false); break;
    case 16: out[0] = ax_argmax(v, 3, AX_S32); break;
    case 40: out[0] = ax_argmin(m, 0, AX_F32); break;
    case 41: out[0] = ax_reduce_prod(bools, AX_ALL_DIMS, false); break;
    case 42: out[0] = ax_reduce_and(m, AX_ALL_DIMS, false); break;
    case 17: out[0] = ax_dynamic_slice(m, AX_VALUES(v, v), AX_DIMS(1, 1)); break;
    case 18: out[0] = ax_and(v, v); break;
    case 19: out[0] = ax_add(bools, bools); break;
    case 20: out[0] = ax_convert_element_type(v, (ax_dtype)99); break;
    case 21: out[0] = ax_full(AX_F32, AX_LIST(17, high), 0); break;
    case 22: out[0] = ax_constant(NULL, high); break;
    case 23: out[0] = ax_constant(&in_types[0], NULL); break;
    case 24: out[0] = ax_accurate(ax_neg(v), AX_ACCURACY_HIGHEST); break;
    case 25: out[0] = ax_accurate(v, AX_ACCURACY_HIGHEST); break;
    case 26: out[0] = ax_accurate(ax_tanh(v), -2); break;
    case 27: out[0] = ax_accurate(ax_rsqrt(ax_convert_element_type(v, AX_F64)), 1); break;
    default: out[0] = ax_full((ax_dtype)55, AX_DIMS(), 0); break;
  }
}

static void bitwise(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], ints = in[2], bools = in[4];
  switch (*(const int *)context) {
    case 0: out[0] = ax_xor(v, v); break;
    case 1: out[0] = ax_shift_left(bools, bools); break;
    case 2: out[0] = ax_shift_right_logical(ints, v); break;
    case 3: out[0] = ax_clz(bools); break;
    case 4: out[0] = ax_bitcast_convert_type(bools, AX_U8); break;
    case 5: out[0] = ax_bitcast_convert_type(m, AX_F64); break;
    case 6: out[0] = ax_bitcast_convert_type(m, (ax_dtype)99); break;
    case 7: out[0] = ax_is_finite(ints); break;
    case 8: out[0] = ax_nextafter(v, m); break;
    case 9: out[0] = ax_reduce_precision(v, 0, 3); break;
    case 10: out[0] = ax_reduce_precision(v, 3, -1); break;
    case 11: out[0] = ax_reduce_precision(ints, 3, 1); break;
    case 12: out[0] = ax_population_count(v); break;
    case 13: out[0] = ax_round_nearest_afz(ints); break;
    case 14: out[0] = ax_asin(ints); break;
    case 15: out[0] = ax_atan2(v, ints); break;
    case 16: out[0] = ax_lgamma(ints); break;
    case 17: out[0] = ax_zeta(v, ints); break;
    default: out[0] = ax_accurate(ax_sinh(v), -3); break;
  }
}

static void bits(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {bitwise, 0, "xor f32[8] f32[8]: needs bool or an integer dtype, got f32"},
      {bitwise, 1, "shift_left bool[8] bool[8]: needs an integer dtype, got bool"},
      {bitwise, 2, "shift_right_logical s32[8] f32[8]: operand dtypes differ: s32 and f32"},
      {bitwise, 3, "clz bool[8]: needs an integer dtype, got bool"},
      {bitwise, 4, "the bits of bool are no number's: bool to u8"},
      {bitwise, 5, "2 elements of f32 make one of f64: the last dimension of f32[8,4] is not 2"},
      {bitwise, 6, "no such dtype: 99"},
      {bitwise, 7, "is_finite s32[8]: needs a float dtype, got s32"},
      {bitwise, 8, "nextafter f32[8] f32[8,4]: the shapes do not broadcast to one"},
      {bitwise, 9, "exponent_bits is 0: at least 1 is needed"},
      {bitwise, 10, "mantissa_bits is -1: at least 0 are needed"},
      {bitwise, 11, "reduce_precision s32[8]: needs a float dtype, got s32"},
      {bitwise, 12, "population_count f32[8]: needs an integer dtype, got f32"},
      {bitwise, 13, "round_nearest_afz s32[8]: needs a float dtype, got s32"},
      {bitwise, 14, "asin s32[8]: needs a float dtype, got s32"},
      {bitwise, 15, "atan2 f32[8] s32[8]: operand dtypes differ: f32 and s32"},
      {bitwise, 16, "lgamma s32[8]: needs a float dtype, got s32"},
      {bitwise, 17, "zeta f32[8] s32[8]: operand dtypes differ: f32 and s32"},
      {bitwise, 18, "an accuracy of -3 units of the last place"},
  };
  refuse(refusals, COUNT(refusals));
}

static void windowed(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], ints = in[2], bools = in[4];
  const ax_value x = ax_reshape(m, AX_DIMS(2, 4, 4)), w = ax_reshape(v, AX_DIMS(1, 4, 2)), one = ax_reshape(v, AX_DIMS(4, 1, 2));
  const int64_t zero[] = {0, 0}, two[] = {2, 2}, cut[] = {-5, -5};
  switch (*(const int *)context) {
    case 0: out[0] = ax_conv(x, m, NULL, NULL); break;
    case 1: out[0] = ax_conv(x, one, NULL, NULL); break;
    case 2: out[0] = ax_conv(x, w, zero, NULL); break;
    case 3: out[0] = ax_conv(x, w, NULL, "WIDE"); break;
    case 4:
      out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.low = {1, cut}, .high = {1, zero}});
      break;
    case 5:
      out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.low = {1, two}, .padding = "SAME"});
      break;
    case 6: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.lhs = "NC"}); break;
    case 7: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.lhs = "NCW", .rhs = "OIH"}); break;
    case 8: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.lhs = "NCC"}); break;
    case 9: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.feature_group_count = 3}); break;
    case 10: out[0] = ax_conv_general_dilated(x, one, &(ax_conv_options){.feature_group_count = 4, .batch_group_count = 2}); break;
    case 11: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.batch_group_count = 2}); break;
    case 12:
      out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.rhs_dilation = {1, zero}});
      break;
    case 13: out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.preferred_element_type = AX_S32}); break;
    case 14: out[0] = ax_conv(x, ax_reshape(ints, AX_DIMS(1, 4, 2)), NULL, NULL); break;
    case 15:
      out[0] = ax_conv_general_dilated(x, w, &(ax_conv_options){.low = {AX_DIMS(INT64_MAX)}});
      break;
    case 16: out[0] = ax_reduce_window_sum(m, zero, NULL); break;
    case 17: out[0] = ax_reduce_window_max(bools, two, NULL); break;
    case 18:
      out[0] = ax_reduce_window_min(m, two, &(ax_window_options){.strides = {2, zero}});
      break;
    case 19:
      out[0] = ax_reduce_window_min(m, two, (&(ax_window_options){.low = {2, cut}, .high = {2, cut}}));
      break;
    case 20:
      out[0] = ax_reduce_window_sum(m, two, (&(ax_window_options){.low = {2, two}, .padding = "VALID"}));
      break;
    case 21: out[0] = ax_reduce_window_sum(m, NULL, NULL); break;
    case 22: out[0] = ax_max_pool(m, AX_LIST(2, two), NULL, NULL); break;
    case 23: out[0] = ax_avg_pool(ax_reshape(ints, AX_DIMS(1, 8, 1)), AX_LIST(1, two), NULL, NULL); break;
    case 24: out[0] = ax_rev(m, AX_DIMS(0, 0)); break;
    default: out[0] = ax_rev(m, AX_DIMS(2)); break;
  }
}

static void neural(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], ints = in[2], odd = in[3], bools = in[4], none = {0};
  const ax_value q = ax_reshape(m, AX_DIMS(2, 4, 4)), k = ax_reshape(m, AX_DIMS(4, 2, 4));
  switch (*(const int *)context) {
    case 0: out[0] = ax_silu(ints); break;
    case 1: out[0] = ax_celu(v, 0); break;
    case 2: out[0] = ax_glu(odd, 1); break;
    case 3: out[0] = ax_softmax_where(m, v, AX_DIMS(0)); break;
    case 4: out[0] = ax_logsumexp_where(m, v, none, AX_DIMS(0), false); break;
    case 5: out[0] = ax_layer_norm(m, ints, none, AX_DIMS(-1), 1e-6); break;
    case 6: out[0] = ax_rms_norm(m, none, AX_DIMS(2), 1e-6); break;
    case 7: out[0] = ax_standardize(bools, NULL); break;
    case 8: out[0] = ax_dot_product_attention(q, q, k, NULL); break;
    case 9: out[0] = ax_dot_product_attention(k, q, q, NULL); break;
    case 10: out[0] = ax_dot_product_attention(q, k, k, &(ax_attention_options){.mask = v}); break;
    case 11: out[0] = ax_dot_product_attention(q, k, k, &(ax_attention_options){.local_window = {AX_DIMS(1)}}); break;
    default: out[0] = ax_dot_product_attention(q, k, k, &(ax_attention_options){.key_value_seq_lengths = ints}); break;
  }
}

static void like_numpy(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], ints = in[2], odd = in[3], bools = in[4], none = {0};
  ax_value many[8] = {v};
  switch (*(const int *)context) {
    case 0: out[0] = ax_linspace(AX_S32, ax_integer(0), ax_integer(1), 5, true); break;
    case 1: out[0] = ax_linspace(AX_F32, v, ax_real(1), -1, true); break;
    case 2: out[0] = ax_arange(AX_F32, 0, 1, 0); break;
    case 3: out[0] = ax_arange(AX_S32, 0, 3, 0.5); break;
    case 4: out[0] = ax_eye(AX_F32, -1, 2, 0); break;
    case 5: out[0] = ax_tril(v, 0); break;
    case 6: out[0] = ax_diagonal(m, 0, 1, -1); break;
    case 7: out[0] = ax_tile(v, AX_DIMS(-2)); break;
    case 8: out[0] = ax_roll(m, AX_DIMS(1), AX_DIMS(0, 1)); break;
    case 9: out[0] = ax_rot90(v, 1, 0, 1); break;
    case 10: out[0] = ax_hstack(AX_VALUES(v, ints)); break;
    case 11: ax_array_split(m, 0, 0, many), out[0] = many[0]; break;
    case 12: out[0] = ax_inner(m, v); break;
    case 13: out[0] = ax_cross(m, m, 1); break;
    case 14: out[0] = ax_convolve(v, v, "wide"); break;
    case 15: out[0] = ax_correlate(v, m, NULL); break;
    case 16: out[0] = ax_var(ints, AX_ALL_DIMS, 0, false); break;
    case 17: out[0] = ax_reduce_mean_where(m, ints, AX_ALL_DIMS, false); break;
    case 18: out[0] = ax_quantile(m, ax_real(2), AX_DIMS(0), NULL, false); break;
    case 19: out[0] = ax_quantile(m, ax_real(0.5), AX_DIMS(0), "mean", false); break;
    case 20: out[0] = ax_median(m, AX_DIMS(0, -2), false); break;
    case 21: out[0] = ax_searchsorted(m, v, false); break;
    case 22: out[0] = ax_bincount(v, none, 4); break;
    case 23: out[0] = ax_histogram(v, m, none); break;
    case 24: out[0] = ax_interp(v, v, ax_reshape(odd, AX_DIMS(15))); break;
    case 25: ax_unique(v, -1, ax_integer(0), many), out[0] = many[0]; break;
    case 26: out[0] = ax_image_resize(m, AX_DIMS(2, 2), "area", true); break;
    case 27: out[0] = ax_image_resize(m, AX_DIMS(2), "linear", true); break;
    default: out[0] = ax_nan_to_num(bools, 0, 0, 0); break;
  }
}

static void numpy_functions(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {like_numpy, 0, "linspace: the operand is s32[]; it must be of floats"},
      {like_numpy, 1, "linspace: there cannot be -1 numbers"},
      {like_numpy, 2, "arange: no numbers lead from 0 to 1 in steps of 0"},
      {like_numpy, 3, "arange: 0 and 0.5 are no whole numbers, as s32 wants"},
      {like_numpy, 4, "eye: there is no matrix of -1 times 2"},
      {like_numpy, 5, "tril: the operand is f32[8]; it needs two dimensions"},
      {like_numpy, 6, "diagonal: dimension 1 is named twice"},
      {like_numpy, 7, "tile: dimension 0 cannot be repeated -2 times"},
      {like_numpy, 8, "roll"},
      {like_numpy, 9, "rot90: the second axis"},
      {like_numpy, 10, "hstack: operands 0 and 1 are f32[8] and s32[8]; they need one dtype"},
      {like_numpy, 11, "array_split: there cannot be 0 parts"},
      {like_numpy, 12, "inner: the last dimensions of f32[8,4] and f32[8] differ"},
      {like_numpy, 13, "cross: dimension 1 of f32[8,4] is not 3"},
      {like_numpy, 14, "convolve: the mode is \"wide\""},
      {like_numpy, 15, "correlate: f32[8] and f32[8,4] must be vectors with elements"},
      {like_numpy, 16, "var: the operand is s32[8]; it must be of floats"},
      {like_numpy, 17, "reduce_mean_where: `where` is s32[8]; it must be of bool"},
      {like_numpy, 18, "quantile: q is 2"},
      {like_numpy, 19, "quantile: there is no method \"mean\""},
      {like_numpy, 20, "median: dimension 0 is named twice"},
      {like_numpy, 21, "searchsorted: the sorted operand is f32[8,4]; it must be a vector"},
      {like_numpy, 22, "bincount: the operand is f32[8]; it must be a vector of integers"},
      {like_numpy, 23, "histogram: the edges are f32[8,4]"},
      {like_numpy, 24, "interp: xp and fp are f32[8] and f32[15]"},
      {like_numpy, 25, "unique: there cannot be -1 values"},
      {like_numpy, 26, "image_resize: there is no method \"area\""},
      {like_numpy, 27, "image_resize: 1 dimensions are given for f32[8,4]"},
      {like_numpy, 28, "nan_to_num: the operand is bool[8]; it must be of floats"},
  };
  refuse(refusals, COUNT(refusals));
}

static void neural_networks(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {neural, 0, "silu: the operand is s32[8]; it must be of floats"},
      {neural, 1, "celu: alpha is 0"},
      {neural, 2, "glu: dimension 1 of f32[3,5] is odd"},
      {neural, 3, "softmax_where: `where` is f32[8]; it must be of bool"},
      {neural, 4, "logsumexp_where: b is f32[8], which does not broadcast to f32[8,4]"},
      {neural, 5, "layer_norm: scale is s32[8]; it must be of f32"},
      {neural, 6, "2"},
      {neural, 7, "standardize: the operand is bool[8]; it must be of floats"},
      {neural, 8, "dot_product_attention: query, key and value are f32[2,4,4], f32[2,4,4] and f32[4,2,4]"},
      {neural, 9, "the query has 2 heads, which is no multiple of the key's 4"},
      {neural, 10, "the mask is f32[8]; it must be of bool"},
      {neural, 11, "local_window has 1 entries, not 2"},
      {neural, 12, "key_value_seq_lengths is s32[8]; it must be s32[1]"},
  };
  refuse(refusals, COUNT(refusals));
}

static void windows(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {windowed, 0, "f32[2,4,4] and f32[8,4]: operands must have one rank"},
      {windowed, 1, "the left operand has 4 features in 1 groups; the right takes 1, not 4"},
      {windowed, 2, "the stride of dimension 2 is 0"},
      {windowed, 3, "the padding is \"WIDE\""},
      {windowed, 4, "cut more than dimension 2 of the left operand has, 4"},
      {windowed, 5, "padding is \"SAME\", and low or high is given too"},
      {windowed, 6, "lhs is \"NC\": it must have 3 different letters"},
      {windowed, 7, "lhs is \"NCW\": it has no spatial dimension H"},
      {windowed, 8, "lhs is \"NCC\": it must have 3 different letters"},
      {windowed, 9, "feature_group_count 3 does not divide the 4 features of the left operand"},
      {windowed, 10, "one of them 1"},
      {windowed, 11, "batch_group_count 2 does not divide the 1 features of the result"},
      {windowed, 12, "the window dilation of dimension 2 is 0"},
      {windowed, 13, "a result of dtype s32 is asked for"},
      {windowed, 14, "operand dtypes differ: f32 and s32"},
      {windowed, 15, "the padding or a dilation of dimension 2 is too large"},
      {windowed, 16, "the window of dimension 0 is 0: at least 1 is needed"},
      {windowed, 17, "needs a numeric dtype, got bool"},
      {windowed, 18, "the stride of dimension 0 is 0"},
      {windowed, 19, "cut more than dimension 0 of the operand has, 8"},
      {windowed, 20, "padding is \"VALID\", and low or high is given too"},
      {windowed, 21, "there is no window"},
      {windowed, 22, "max_pool: a window of 2 dimensions for f32[8,4]"},
      {windowed, 23, "avg_pool: the operand is s32[1,8,1]; it must be a float"},
      {windowed, 24, "dimensions has 0 twice"},
      {windowed, 25, "rev"},
  };
  refuse(refusals, COUNT(refusals));
}

static void shapes_and_dtypes(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {mismatched, 0, "add f32[8] f32[3,5]: "},
      {mismatched, 1, "mul f32[8] s32[8]: "},
      {mismatched, 2, "exp s32[8]: "},
      {mismatched, 3, "f32[8,4]"},
      {mismatched, 4, "dot_general f32[8,4] f32[3,5]: "},
      {mismatched, 5, "dot_general f32[8,4] s32[8]: "},
      {mismatched, 6, "concatenate f32[8,4] f32[3,5]: "},
      {mismatched, 7, "concatenate f32[8] s32[8]: "},
      {mismatched, 8, "select_n f32[8] f32[8] f32[8]: "},
      {mismatched, 9, "select_n bool[8] f32[8] s32[8]: "},
      {mismatched, 10, "reshape f32[8,4]: "},
      {mismatched, 11, "transpose f32[8,4]: "},
      {mismatched, 12, "broadcast_in_dim f32[8]: "},
      {mismatched, 13, "slice f32[8,4]: "},
      {mismatched, 14, "slice f32[8]: "},
      {mismatched, 15, "reduce_sum"},
      {mismatched, 16, "argmax"},
      {mismatched, 40, "argmin f32[8,4]: the index dtype f32 is no integer"},
      {mismatched, 41, "reduce_prod bool[8]: needs a numeric dtype, got bool"},
      {mismatched, 42, "reduce_and f32[8,4]: needs bool or an integer dtype, got f32"},
      {mismatched, 17, "dynamic_slice"},
      {mismatched, 18, "and f32[8] f32[8]: "},
      {mismatched, 19, "add bool[8] bool[8]: "},
      {mismatched, 20, "convert_element_type"},
      {mismatched, 21, "rank"},
      {mismatched, 22, "constant: there is no type"},
      {mismatched, 23, "constant: there is no data"},
      {mismatched, 24, "accurate: its operand is neg, and no result of exp, tanh"},
      {mismatched, 25, "accurate: its operand is no equation's result"},
      {mismatched, 26, "an accuracy of -2 units of the last place"},
      {mismatched, 27, "rsqrt of f64 is within 1.5 units of the last place at best, not 1"},
      {mismatched, 28, "constant"},
  };
  refuse(refusals, COUNT(refusals));
}

/* --- Windows at indices --- */

static void indexed(const ax_value *in, ax_value *out, void *context) {
  const ax_value v = in[0], m = in[1], odd = in[3], bools = in[4];
  const ax_value ids = ax_expand_dims(in[2], 1), one = ax_full(AX_S32, AX_DIMS(), 0);
  const ax_gather_dims rows = {.offset_dims = {AX_DIMS(1)}, .collapsed_slice_dims = {AX_DIMS(0)}, .start_index_map = {AX_DIMS(0)}};
  const ax_scatter_dims to_rows = {
      .update_window_dims = {AX_DIMS(1)}, .inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}};
  ax_gather_dims other = rows;
  ax_value sorted[2] = {{0}};
  const int64_t row[] = {1, 4};
  switch (*(const int *)context) {
    case 0: out[0] = ax_gather(m, v, row, &rows, NULL); break;
    case 1: out[0] = ax_gather(m, one, row, &rows, NULL); break;
    case 2: out[0] = ax_gather(m, ids, row, NULL, NULL); break;
    case 3: out[0] = ax_gather(m, ids, AX_DIMS(1, 5), &rows, NULL); break;
    case 4: out[0] = ax_gather(m, ids, AX_DIMS(2, 4), &rows, NULL); break;
    case 5: other.start_index_map = (ax_dim_list){AX_DIMS(0, 1)}, out[0] = ax_gather(m, ids, row, &other, NULL); break;
    case 6: other.offset_dims = (ax_dim_list){AX_DIMS(2)}, out[0] = ax_gather(m, ids, row, &other, NULL); break;
    case 7:
      other.offset_dims = (ax_dim_list){AX_DIMS(1, 0)}, other.collapsed_slice_dims.count = 0,
      out[0] = ax_gather(m, ids, row, &other, NULL);
      break;
    case 8:
      other.operand_batching_dims = (ax_dim_list){AX_DIMS(0)}, other.offset_dims.count = 0,
      out[0] = ax_gather(m, ids, row, &other, NULL);
      break;
    case 9: out[0] = ax_gather(m, ids, row, &rows, &(ax_index_options){.mode = (ax_index_mode)7}); break;
    case 10:
      out[0] = ax_gather(in[2], ids, AX_DIMS(1),
                         &(ax_gather_dims){.collapsed_slice_dims = {AX_DIMS(0)}, .start_index_map = {AX_DIMS(0)}},
                         &(ax_index_options){.fill_value = ax_real(0.5)});
      break;
    case 11: out[0] = ax_gather(m, ids, row, &rows, &(ax_index_options){.fill_value = v}); break;
    case 12: out[0] = ax_scatter_add(m, ids, ax_full(AX_F32, AX_DIMS(8, 5), 0), &to_rows, NULL); break;
    case 13: out[0] = ax_scatter(m, ids, ax_full(AX_F32, AX_DIMS(7, 4), 0), &to_rows, NULL); break;
    case 14: out[0] = ax_scatter_max(m, ids, ax_full(AX_S32, AX_DIMS(8, 4), 0), &to_rows, NULL); break;
    case 15:
      out[0] = ax_scatter_add(
          bools, ids, bools, &(ax_scatter_dims){.inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}},
          NULL);
      break;
    case 16: out[0] = ax_scatter_min(m, ids, m, NULL, NULL); break;
    case 17: out[0] = ax_scatter(m, ids, v, &to_rows, NULL); break;
    case 18: out[0] = ax_take_with(m, v, 0, NULL); break;
    case 19: out[0] = ax_take_along_axis(m, in[2], 0, NULL); break;
    case 20: out[0] = ax_take_along_axis(odd, ax_full(AX_S32, AX_DIMS(3, 4), 0), 0, NULL); break;
    case 21: out[0] = ax_at_add(m, in[2], odd, 0, NULL); break;
    case 22: out[0] = ax_at_set(m, in[2], v, 2, NULL); break;
    case 23: out[0] = ax_take(ax_full(AX_F32, AX_DIMS(2, 0), 0), in[2], 1); break;
    case 24: out[0] = ax_at_set(m, in[2], in[2], 0, NULL); break;
    case 25: out[0] = ax_sort(m, 2); break;
    case 26: ax_sort_together(AX_VALUES(m, odd), 0, 1, sorted), out[0] = sorted[0]; break;
    case 27: ax_sort_together(AX_VALUES(m, m), 0, 3, sorted), out[0] = sorted[0]; break;
    case 28: ax_top_k(m, 5, sorted), out[0] = sorted[0]; break;
    case 29: ax_sort_together(AX_VALUES(), 0, 0, sorted), out[0] = sorted[0]; break;
    default: out[0] = ax_argsort(in[5], 0); break;
  }
}

static void at_indices(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {indexed, 0, "gather f32[8,4] f32[8]: the indices are f32; they must be integers"},
      {indexed, 1, "gather f32[8,4] s32[]: the indices are a scalar"},
      {indexed, 2, "gather: there are no dimension numbers"},
      {indexed, 3, "a window of 5 does not fit dimension 1, of 4"},
      {indexed, 4, "dimension 0 is collapsed, so a window has 1 of it, not 2"},
      {indexed, 5, "an index has 1 numbers, but start_index_map has 2 entries"},
      {indexed, 6, "offset_dims has 2, which is outside rank 2"},
      {indexed, 7, "offset_dims must be ascending, but 1 comes before 0"},
      {indexed, 8, "collapsed_slice_dims and operand_batching_dims both have 0"},
      {indexed, 9, "gather: there is no mode 7"},
      {indexed, 10, "gather: s32 cannot hold 0.5"},
      {indexed, 11, "gather: the fill value is not a number"},
      {indexed, 12, "a window of 5 does not fit dimension 1, of 4"},
      {indexed, 13, "updates f32[7,4] have 7 where dimension 0 of the indices has 8"},
      {indexed, 14, "updates are s32, the operand f32"},
      {indexed, 15, "scatter_add bool[8] s32[8,1] bool[8]: needs a numeric dtype, got bool"},
      {indexed, 16, "scatter_min: there are no dimension numbers"},
      {indexed, 17, "updates f32[8] have rank 1; with the indices' 1 dimensions and the window's 1 it must be 2"},
      {indexed, 18, "take_with: the indices are f32[8]; they must be integers"},
      {indexed, 19, "take_along_axis: indices s32[8] do not go with f32[8,4]"},
      {indexed, 20, "take_along_axis: indices s32[3,4] do not go with f32[3,5]: all dimensions but 0 must be the same, or 1"},
      {indexed, 21, "at_add: updates f32[3,5] do not broadcast to f32[8,4]"},
      {indexed, 22, "at_set: the axis is 2, but there are 2 dimensions"},
      {indexed, 23, "take: dimension 1 of f32[2,0] has nothing in it"},
      {indexed, 24, "at_set: updates are s32[8], the operand is f32[8,4]"},
      {indexed, 25, "sort: dimension is 2, but there are 2 dimensions"},
      {indexed, 26, "operand 1, f32[3,5], has not the shape of f32[8,4]"},
      {indexed, 27, "of 2 operands 3 cannot be keys"},
      {indexed, 28, "there are 4 along the last dimension, of which 5 cannot be taken"},
      {indexed, 29, "sort"},
      {indexed, 30, "argsort: dimension is 0, but there are 0 dimensions"},
  };
  refuse(refusals, COUNT(refusals));
}

static void matrices(const ax_value *in, ax_value *out, void *context) {
  const ax_value m = in[1], square = ax_full(AX_F32, AX_DIMS(3, 3), 1), many = ax_full(AX_F32, AX_DIMS(2, 3, 3), 1);
  switch (*(const int *)context) {
    case 0: out[0] = ax_cholesky(m, true); break;
    case 1: out[0] = ax_cholesky(in[0], false); break;
    case 2: out[0] = ax_cholesky(ax_full(AX_BF16, AX_DIMS(3, 3), 1), true); break;
    case 3: out[0] = ax_cholesky(ax_real(1), true); break;
    case 4: out[0] = ax_triangular_solve(square, in[3], false, true, false, false, false); break;
    case 5: out[0] = ax_triangular_solve(square, m, true, true, false, false, false); break;
    case 6: out[0] = ax_triangular_solve(m, m, true, true, false, false, false); break;
    case 7: out[0] = ax_triangular_solve(many, square, true, true, false, false, false); break;
    case 8: out[0] = ax_lu_pivots_to_permutation(in[2], 7); break;
    case 9: out[0] = ax_lu_pivots_to_permutation(in[0], 9); break;
    default: out[0] = ax_triangular_solve(square, ax_full(AX_F64, AX_DIMS(3, 3), 1), true, true, false, false, false); break;
  }
}

static void linear_algebra(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {matrices, 0, "cholesky f32[8,4]: the matrices are 8 by 4; they must be square"},
      {matrices, 1, "cholesky f32[8]: operand 0 is no matrix: it needs at least 2 dimensions"},
      {matrices, 2, "cholesky bf16[3,3]: operand 0 is of bf16; it must be of f32, f64 or complex numbers"},
      {matrices, 3, "a number has no dtype here; ax_full gives it one"},
      {matrices, 4, "triangular_solve f32[3,3] f32[3,5]: the second operand has 5 columns, and the triangle 3"},
      {matrices, 5, "the second operand has 8 rows, and the triangle 3"},
      {matrices, 6, "the matrices are 8 by 4; they must be square"},
      {matrices, 7, "the operands need the same leading dimensions"},
      {matrices, 8, "lu_pivots_to_permutation s32[8]: a permutation of 7 has no room for 8 pivots"},
      {matrices, 9, "the pivots are f32; they must be s32"},
      {matrices, 10, "the operands need one dtype"},
  };
  refuse(refusals, COUNT(refusals));
}

static void drawn(const ax_value *in, ax_value *out, void *context) {
  const ax_value key = ax_random_key(ax_integer(1)), none = {0}, keys = ax_random_split(key, AX_DIMS(2));
  const ax_value state = ax_full(AX_U32, AX_DIMS(4), 0);
  ax_value words[2];
  switch (*(const int *)context) {
    case 0: out[0] = ax_random_key(in[0]); break;
    case 1: out[0] = ax_random_key(ax_real(0.5)); break;
    case 2: out[0] = ax_random_fold_in(key, in[5]); break;
    case 3: out[0] = ax_random_split(in[2], AX_DIMS(2)); break;
    case 4: out[0] = ax_random_normal(keys, AX_F32, AX_DIMS(2)); break;
    case 5: out[0] = ax_random_bits(key, AX_S32, AX_DIMS(2)); break;
    case 6: out[0] = ax_random_bits(key, AX_U32, AX_DIMS(2, -1)); break;
    case 7: ax_threefry2x32(in[2], in[2], in[2], in[2], AX_LIST(2, words)); break;
    case 8: out[0] = ax_random_uniform(key, AX_S32, AX_DIMS(2), ax_real(0), ax_real(1)); break;
    case 9: out[0] = ax_random_uniform(key, AX_F32, AX_DIMS(4, 7), in[0], ax_real(1)); break;
    case 10: out[0] = ax_random_uniform(key, AX_F64, AX_DIMS(8), in[0], ax_real(1)); break;
    case 11: out[0] = ax_random_randint(key, AX_F32, AX_DIMS(2), ax_integer(0), ax_integer(1)); break;
    case 12: out[0] = ax_random_randint(key, AX_U8, AX_DIMS(2), ax_integer(0), ax_integer(257)); break;
    case 13: out[0] = ax_random_randint(key, AX_S32, AX_DIMS(8), in[0], ax_integer(257)); break;
    case 14: out[0] = ax_random_bernoulli(key, AX_DIMS(8), in[2], AX_RANDOM_LOW); break;
    case 15: out[0] = ax_random_bernoulli(key, AX_DIMS(8), ax_real(0.5), AX_RANDOM_HIGHEST); break;
    case 16: out[0] = ax_random_gumbel(key, AX_F32, AX_DIMS(8), (ax_random_mode)3); break;
    case 17: out[0] = ax_random_categorical(key, in[2], 0, AX_DIMS(), true, AX_RANDOM_LOW); break;
    case 18: out[0] = ax_random_categorical(key, in[1], 1, AX_DIMS(7), true, AX_RANDOM_LOW); break;
    case 19: out[0] = ax_random_categorical(key, in[1], 1, AX_DIMS(5, 8), false, AX_RANDOM_LOW); break;
    case 20: out[0] = ax_random_categorical(key, in[1], 2, AX_DIMS(), true, AX_RANDOM_LOW); break;
    case 21: out[0] = ax_random_choice(key, in[1], AX_DIMS(9), false, none, 0, AX_RANDOM_LOW); break;
    case 22: out[0] = ax_random_choice(key, in[1], AX_DIMS(9), true, in[0], 1, AX_RANDOM_LOW); break;
    case 23: out[0] = ax_random_choice(key, ax_integer(0), AX_DIMS(1), true, none, 0, AX_RANDOM_LOW); break;
    case 24: out[0] = ax_random_choice(key, ax_integer(-2), AX_DIMS(1), true, none, 0, AX_RANDOM_LOW); break;
    case 25: out[0] = ax_random_permutation(key, in[1], 3, false); break;
    case 26: out[0] = ax_random_pareto(key, AX_F32, AX_DIMS(8), in[2]); break;
    case 27: out[0] = ax_random_triangular(key, AX_F32, AX_DIMS(), in[0], in[3], ax_real(1)); break;
    case 28: out[0] = ax_random_geometric(key, AX_S32, AX_DIMS(8), in[2]); break;
    case 29: out[0] = ax_random_rademacher(key, AX_BOOL, AX_DIMS(8)); break;
    case 30: out[0] = ax_random_multivariate_normal(key, AX_DIMS(), in[0], in[1], AX_RANDOM_CHOLESKY); break;
    case 31: ax_rng_bit_generator(key, AX_U32, AX_DIMS(2), AX_RNG_PHILOX, words); break;
    case 32: ax_rng_bit_generator(state, AX_S32, AX_DIMS(2), AX_RNG_PHILOX, words); break;
    case 33: ax_rng_bit_generator(state, AX_U32, AX_DIMS(2, -1), AX_RNG_PHILOX, words); break;
    case 34: ax_rng_bit_generator(state, AX_U32, AX_DIMS(2), (ax_rng_algorithm)3, words); break;
    case 35: out[0] = ax_random_gamma(key, AX_F32, AX_DIMS(8), in[2]); break;
    case 36: out[0] = ax_random_beta(key, AX_F32, AX_DIMS(), in[0], in[3]); break;
    case 37: out[0] = ax_random_dirichlet(key, AX_DIMS(), in[5]); break;
    case 38: out[0] = ax_random_dirichlet(key, AX_DIMS(7), in[1]); break;
    case 39: out[0] = ax_random_ball(key, AX_F32, AX_DIMS(7), 0, ax_real(2)); break;
    case 40: out[0] = ax_random_ball(key, AX_F32, AX_DIMS(7), 3, in[0]); break;
    case 41: out[0] = ax_random_poisson(key, AX_F32, AX_DIMS(7), ax_real(2)); break;
    case 42: out[0] = ax_random_poisson(key, AX_S32, AX_DIMS(8), in[2]); break;
    case 43: out[0] = ax_random_binomial(key, AX_S32, AX_DIMS(8), ax_integer(3), ax_real(0.5)); break;
    case 44: out[0] = ax_random_multinomial(key, AX_DIMS(8), in[2], in[1]); break;
    case 45: out[0] = ax_random_multinomial(key, AX_DIMS(8), ax_integer(3), in[5]); break;
    case 46: out[0] = ax_random_randint(key, AX_C64, AX_DIMS(2), ax_integer(0), ax_integer(1)); break;
    case 47: out[0] = ax_random_exponential(key, AX_C64, AX_DIMS(2)); break;
    case 48: out[0] = ax_random_normal(key, AX_S32, AX_DIMS(2)); break;
    case 49: out[0] = ax_random_multivariate_normal(key, AX_DIMS(), in[0], in[1], (ax_random_method)3); break;
    case 50: out[0] = ax_random_orthogonal(key, AX_F32, AX_DIMS(2), 0, 3); break;
    case 51: out[0] = ax_random_orthogonal(key, AX_F32, AX_DIMS(2), 3, -1); break;
    case 52: out[0] = ax_random_orthogonal(key, AX_F16, AX_DIMS(2), 3, 3); break;
    default: out[0] = ax_random_orthogonal(key, AX_S32, AX_DIMS(2), 3, 3); break;
  }
}

static void random_numbers(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {drawn, 0, "random_key: the seed is f32[8]; it must be an integer scalar"},
      {drawn, 1, "random_key: u64 cannot hold 0.5, a number among operands of that dtype"},
      {drawn, 2, "random_fold_in: the number is f32[]; it must be an integer scalar"},
      {drawn, 3, "random_split: the key is s32[8]; it must be key[] or u32[2]"},
      {drawn, 4, "random_normal: the key is u32[2,2]; it must be key[] or u32[2]: ax_vmap takes many keys"},
      {drawn, 5, "random_bits u32[2]: needs u8, u16, u32 or u64, got s32"},
      {drawn, 6, "random_bits u32[2]: dimension 1 of the result is negative: -1"},
      {drawn, 7, "threefry2x32 s32[8] s32[8] s32[8] s32[8]: operand 0 is of s32; it must be of u32"},
      {drawn, 8, "random_uniform: s32 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction"},
      {drawn, 9, "random_uniform: parameter 0 is f32[8], which does not broadcast to f32[4,7]"},
      {drawn, 10, "random_uniform: parameter 0 is f32[8]; it must be of f64"},
      {drawn, 11, "random_randint: f32 is no dtype for this draw; it must be an integer of 8 bits at least"},
      {drawn, 12, "random_randint: u8 cannot hold 257"},
      {drawn, 13, "random_randint: a bound is f32[8]; it must be of s32"},
      {drawn, 14, "random_bernoulli: s32 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction"},
      {drawn, 15, "random_bernoulli: mode 2 is neither low nor high"},
      {drawn, 16, "random_gumbel: there is no mode 3"},
      {drawn, 17, "random_categorical: s32 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction"},
      {drawn, 18, "random_categorical: the shape of s32[7] does not end in that of the logits, f32[8,4], without dimension 1"},
      {drawn, 19, "random_categorical: 5 of 4 cannot be drawn without replacement"},
      {drawn, 20, "random_categorical: the axis is 2, but there are 2 dimensions"},
      {drawn, 21, "random_choice: 9 of 8 cannot be drawn without replacement"},
      {drawn, 22, "random_choice: the probabilities are f32[8]; they must be floats, one for each of 4"},
      {drawn, 23, "random_choice: s32[0] has nothing to choose from"},
      {drawn, 24, "random_choice: there cannot be -2 of anything"},
      {drawn, 25, "random_permutation: the axis is 3, but there are 2 dimensions"},
      {drawn, 26, "random_pareto: parameter 0 is s32[8]; it must be of f32"},
      {drawn, 27, "parameter 0 is f32[8], which does not broadcast to f32[3,5], the shape of the others"},
      {drawn, 28, "random_geometric: the probability is s32[8]; it must be a float"},
      {drawn, 29, "random_rademacher: bool is no dtype for this draw; it must be a number of 8 bits at least"},
      {drawn, 30, "random_multivariate_normal: the mean is f32[8] and the covariance f32[8,4]; they must be T[.., n] and T[.., n, n]"},
      {drawn, 31, "rng_bit_generator: the key is u32[2]; it must be u32[4] or u64[2], or u64[3] of Philox"},
      {drawn, 32, "rng_bit_generator: s32 is no dtype of bits; it must be u8, u16, u32 or u64"},
      {drawn, 33, "rng_bit_generator: dimension 1 is -1"},
      {drawn, 34, "rng_bit_generator: there is no algorithm 3"},
      {drawn, 35, "random_gamma: parameter 0 is s32[8]; it must be of f32"},
      {drawn, 36, "random_beta: parameter 0 is f32[8], which does not broadcast to f32[3,5], the shape of the others"},
      {drawn, 37, "random_dirichlet: the parameters are f32[]; they must have a dimension"},
      {drawn, 38, "random_dirichlet: parameter 0 is f32[8], which does not broadcast to f32[7]"},
      {drawn, 39, "random_ball: a ball of 0 dimensions is none"},
      {drawn, 40, "random_ball: p is f32[8]; it must be a scalar of f32"},
      {drawn, 41, "random_poisson: f32 is no dtype for this draw; it must be an integer of 8 bits at least"},
      {drawn, 42, "random_poisson: the rate is s32[8]; it must be a float"},
      {drawn, 43, "random_binomial: s32 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction"},
      {drawn, 44, "random_multinomial: the number of trials is s32[8]; it must be of f32"},
      {drawn, 45, "random_multinomial: the probabilities are f32[]; they must have a dimension"},
      {drawn, 46, "random_randint: c64 is no dtype for this draw; it must be an integer of 8 bits at least"},
      {drawn, 47, "random_exponential: c64 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction"},
      {drawn, 48, "random_normal: s32 is no dtype for this draw; it must be a float of 8 bits at least, with a fraction, or complex"},
      {drawn, 49, "random_multivariate_normal: there is no method 3"},
      {drawn, 50, "random_orthogonal: n is 0 and m 3; they must be at least 1 and 0"},
      {drawn, 51, "random_orthogonal: n is 3 and m -1; they must be at least 1 and 0"},
      {drawn, 52, "qr f16[2,3,3]: "},
      {drawn, 53, "random_orthogonal: s32 is no dtype for this draw"},
  };
  refuse(refusals, COUNT(refusals));
}

/* Keys are moved and compared, and nothing else. */
static void on_keys(const ax_value *in, ax_value *out, void *context) {
  const ax_value key = ax_random_typed_key(ax_integer(1)), keys = ax_random_split(key, AX_DIMS(4)), zero = ax_full(AX_S32, AX_DIMS(), 0);
  ax_value both[] = {keys, keys};
  switch (*(const int *)context) {
    case 0: out[0] = ax_add(keys, keys); break;
    case 1: out[0] = ax_add(keys, ax_integer(1)); break;
    case 2: out[0] = ax_lt(keys, keys); break;
    case 3: out[0] = ax_eq(keys, ax_integer(0)); break;
    case 4: out[0] = ax_eq(keys, ax_random_key_data(keys)); break;
    case 5: out[0] = ax_convert_element_type(keys, AX_U64); break;
    case 6: out[0] = ax_convert_element_type(in[2], AX_KEY); break;
    case 7: out[0] = ax_bitcast_convert_type(keys, AX_U32); break;
    case 8: out[0] = ax_iota(AX_KEY, AX_DIMS(3), 0); break;
    case 9: out[0] = ax_full(AX_KEY, AX_DIMS(3), 0.5); break;
    case 10: out[0] = ax_reduce_max(keys, AX_DIMS(0), false); break;
    case 11: out[0] = ax_sort(keys, 0); break;
    case 12: ax_sort_together(AX_LIST(2, both), 0, 1, AX_LIST(2, both)); break;
    case 13: out[0] = ax_and(keys, keys); break;
    case 14: out[0] = ax_scatter_add(keys, ax_broadcast_to(zero, AX_DIMS(1, 1)), ax_slice_in_dim(keys, 0, 1, 1, 0),
                                     &(ax_scatter_dims){.inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}}, NULL); break;
    case 15: out[0] = ax_random_normal(keys, AX_F32, AX_DIMS(2)); break;
    case 16: out[0] = ax_random_split(keys, AX_DIMS(2)); break;
    case 17: out[0] = ax_random_typed_key(key); break;
    case 18: out[0] = ax_random_fold_in(key, key); break;
    case 19: out[0] = ax_random_wrap_key_data(in[2]); break;
    case 20: out[0] = ax_random_wrap_key_data(keys); break;
    case 21: out[0] = ax_random_key_data(in[0]); break;
    case 22: out[0] = ax_random_rademacher(key, AX_KEY, AX_DIMS(2)); break;
    case 23: out[0] = ax_cumsum(keys, 0, false); break;
    case 24: out[0] = ax_argmax(keys, 0, AX_S32); break;
    case 25: out[0] = ax_matmul(keys, keys); break;
    default: out[0] = ax_random_typed_key(ax_real(0.5)); break;
  }
}

static void keys(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {on_keys, 0, "add key[4] key[4]: operand 0 is key[4], and add takes no keys: they have no arithmetic, no order and no other dtype. "
                   "ax_random_key_data gives their words"},
      {on_keys, 1, "add: a number stands among keys, and is none"},
      {on_keys, 2, "lt key[4] key[4]: operand 0 is key[4], and lt takes no keys"},
      {on_keys, 3, "eq: a number stands among keys, and is none"},
      {on_keys, 4, "key[4]"},
      {on_keys, 5, "convert_element_type key[4]: operand 0 is key[4], and convert_element_type takes no keys"},
      {on_keys, 6, "convert_element_type s32[8]: result 0 is key[8], and convert_element_type takes no keys"},
      {on_keys, 7, "bitcast_convert_type key[4]: operand 0 is key[4], and bitcast_convert_type takes no keys"},
      {on_keys, 8, "iota: result 0 is key[3], and iota takes no keys"},
      {on_keys, 9, "full: key cannot hold 0.5"},
      {on_keys, 10, "reduce_max key[4]: operand 0 is key[4], and reduce_max takes no keys"},
      {on_keys, 11, "sort key[4]: operand 0 is key[4], and sort takes no keys"},
      {on_keys, 12, "and sort takes no keys"},
      {on_keys, 13, "and key[4] key[4]: operand 0 is key[4], and and takes no keys"},
      {on_keys, 14, "operand 0 is key[4], and scatter_add takes no keys"},
      {on_keys, 15, "random_normal: the key is key[4]; it must be key[] or u32[2]: ax_vmap takes many keys"},
      {on_keys, 16, "random_split: the key is key[4]; it must be key[] or u32[2]: ax_vmap takes many keys"},
      {on_keys, 17, "random_typed_key: the seed is key[]; it must be an integer scalar"},
      {on_keys, 18, "random_fold_in: the number is key[]; it must be an integer scalar"},
      {on_keys, 19, "random_wrap_key_data: the words are s32[8]; they must be u32[.., 2]"},
      {on_keys, 20, "random_wrap_key_data: the words are key[4]; they must be u32[.., 2]"},
      {on_keys, 21, "random_key_data: the keys are f32[8]; they must be key[..] or u32[.., 2]"},
      {on_keys, 22, "random_rademacher: key is no dtype for this draw; it must be a number of 8 bits at least"},
      {on_keys, 23, "takes no keys"},
      {on_keys, 24, "takes no keys"},
      {on_keys, 25, "takes no keys"},
      {on_keys, 26, "random_typed_key: u64 cannot hold 0.5, a number among operands of that dtype"},
  };
  refuse(refusals, COUNT(refusals));
}

/* Keys that StableHLO has no words for, and keys that are parts. */
static AX_BODY(turned) { out[0] = ax_rev(in[0], AX_DIMS(0)); }
static void keys_not_exported(void **state) {
  (void)state;
  static const char filled[] = "{ lambda k:key[3] i:s32[2,1]. let g:key[2] = gather[offset_dims=() collapsed_slice_dims=(0) start_index_map=(0) "
                               "operand_batching_dims=() start_indices_batching_dims=() mode=\"fill\" indices_are_sorted=false "
                               "unique_indices=false slice_sizes=(1) fill_value=7:key[]] k i in (g) }";
  static const char parts[] = "{ axes d=2 ; lambda k:key[3]{U:d}. let in (k,) }";
  int64_t ones[AX_MAX_RANK];
  for (int d = 0; d < AX_MAX_RANK; d++) ones[d] = 1;
  const ax_type deep = ax_array_type(AX_KEY, AX_LIST(AX_MAX_RANK, ones));
  ax_program *program;
  char *text;
  TEST_OK(ax_trace(AX_FN(turned, 1, 1), &deep, &program));
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT, "rev: StableHLO has keys with one more dimension, and their rank is 16 already");
  assert_null(text);
  ax_program_release(program);
  TEST_FAILS(ax_program_parse(parts, strlen(parts), "text", &program), AX_PARSE_ERROR, "is unreduced, and keys are no parts that could be combined");
  assert_null(program);
  TEST_OK(ax_program_parse(filled, strlen(filled), "text", &program));
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT, "gather: no StableHLO for the fill_value, a key of two different words");
  assert_null(text);
  ax_program_release(program);
}

/* Their derivatives do not exist, and their files do not either. */
static AX_BODY(first_bit) { out[0] = ax_convert_element_type(ax_random_bits(in[0], AX_U32, AX_DIMS()), AX_F32); }
static AX_BODY(by_key) {
  ax_grad(AX_FN(first_bit, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out));
}
static void derivatives_of_keys(void **state) {
  (void)state;
  const ax_type key = ax_array_type(AX_KEY, AX_DIMS());
  const uint32_t words[2] = {1, 2};
  const ax_host_array one = ax_host_view(AX_KEY, AX_DIMS(), words);
  ax_program *program = NULL;
  TEST_FAILS(ax_trace(AX_FN(by_key, 1, 1), &key, &program), AX_INVALID_ARGUMENT, "key[]");
  assert_null(program);
  TEST_FAILS(ax_npy_write("key.npy", &one), AX_INVALID_ARGUMENT, "NumPy's files have no keys");
}

static void factorisations(const ax_value *in, ax_value *out, void *context) {
  const ax_value m = in[1], square = ax_full(AX_F32, AX_DIMS(3, 3), 1), taus = ax_full(AX_F32, AX_DIMS(3), 1);
  const ax_value pivots = ax_full(AX_S32, AX_DIMS(3), 0), many = ax_full(AX_F32, AX_DIMS(2, 3, 3), 1), none = ax_full(AX_F32, AX_DIMS(0, 0), 1);
  ax_value made[4];
  out[0] = m;
  switch (*(const int *)context) {
    case 0: ax_qr(in[0], true, false, AX_LIST(2, made)); break;
    case 1: ax_qr(m, true, false, AX_LIST(3, made)); break;
    case 2: ax_qr(ax_full(AX_F16, AX_DIMS(3, 3), 1), true, false, AX_LIST(2, made)); break;
    case 3: ax_eigh(m, true, true, AX_LIST(2, made)); break;
    case 4: ax_eigh(ax_full(AX_S32, AX_DIMS(3, 3), 1), true, true, AX_LIST(2, made)); break;
    case 5: ax_svd(in[0], false, true, AX_LIST(3, made)); break;
    case 6: ax_svd(m, false, false, AX_LIST(3, made)); break;
    case 7: ax_geqp3(m, pivots, AX_LIST(3, made)); break;
    case 8: ax_geqp3(square, taus, AX_LIST(3, made)); break;
    case 9: out[0] = ax_householder_product(ax_full(AX_F32, AX_DIMS(3, 4), 1), taus); break;
    case 10: out[0] = ax_householder_product(many, taus); break;
    case 11: out[0] = ax_ormqr(square, in[0], square, true, false); break;
    case 12: out[0] = ax_ormqr(square, taus, m, true, false); break;
    case 13: ax_schur(m, true, AX_LIST(2, made)); break;
    case 14: ax_hessenberg(none, AX_LIST(2, made)); break;
    case 15: ax_tridiagonal(none, true, AX_LIST(4, made)); break;
    case 16: out[0] = ax_linear_solve(square, square, taus, square, false); break;
    case 17: out[0] = ax_linear_solve(square, many, pivots, square, false); break;
    case 18: out[0] = ax_linear_solve(square, square, pivots, m, false); break;
    case 19: out[0] = ax_linear_solve(square, square, pivots, many, false); break;
    case 20: out[0] = ax_tridiagonal_solve(taus, taus, in[0], square); break;
    case 21: out[0] = ax_tridiagonal_solve(taus, taus, taus, m); break;
    case 23: ax_eig(m, true, true, AX_LIST(3, made)); break;
    case 24: ax_eig(square, true, true, AX_LIST(2, made)); break;
    case 25: ax_eig(ax_full(AX_S32, AX_DIMS(3, 3), 1), false, false, AX_LIST(1, made)); break;
    case 26: out[0] = ax_eigvals(in[0]); break;
    case 27: out[0] = ax_eigvalsh(m, true, true); break;
    case 28: out[0] = ax_linear_solve(square, square, pivots, ax_full(AX_C64, AX_DIMS(3, 3), 1), false); break;
    default: out[0] = ax_tridiagonal_solve(taus, taus, ax_full(AX_F64, AX_DIMS(3), 1), square); break;
  }
}

static void matrix_functions(const ax_value *in, ax_value *out, void *context) {
  const ax_value m = in[1], square = ax_full(AX_F32, AX_DIMS(3, 3), 1), many = ax_full(AX_F32, AX_DIMS(2, 3, 3), 1);
  const ax_value half = ax_full(AX_F16, AX_DIMS(3, 3), 1);
  ax_value made[4];
  out[0] = m;
  switch (*(const int *)context) {
    case 0: out[0] = ax_solve(m, m); break;
    case 1: out[0] = ax_solve(square, in[0]); break;
    case 2: out[0] = ax_solve(many, ax_full(AX_F32, AX_DIMS(5, 3, 1), 1)); break;
    case 3: out[0] = ax_solve(square, half); break;
    case 4: out[0] = ax_inv(half); break;
    case 5: out[0] = ax_cholesky_solve(in[0], in[0], true); break;
    case 6: out[0] = ax_lu_solve(square, in[2], square, false); break;
    case 7: ax_lstsq(m, square, -1, AX_LIST(4, made)); break;
    case 8: ax_lstsq(m, in[0], -1, AX_LIST(3, made)); break;
    case 9: out[0] = ax_pinv(in[0], -1); break;
    case 10: out[0] = ax_det(m); break;
    case 11: ax_slogdet(m, AX_LIST(2, made)); break;
    case 12: out[0] = ax_matrix_rank(in[2], -1); break;
    case 13: out[0] = ax_matrix_power(m, 2); break;
    case 14: out[0] = ax_matrix_power(ax_full(AX_S32, AX_DIMS(2, 2), 1), -1); break;
    case 15: out[0] = ax_expm(m); break;
    case 16: out[0] = ax_multi_dot(AX_VALUES(m)); break;
    case 17: out[0] = ax_multi_dot(AX_VALUES(m, square)); break;
    case 18: out[0] = ax_multi_dot(AX_VALUES(square, many)); break;
    case 19: out[0] = ax_norm(in[2], AX_ALL_DIMS, false); break;
    case 20: out[0] = ax_matrix_norm(in[0], NULL, false); break;
    case 21: out[0] = ax_matrix_norm(half, "nuc", false); break;
    case 23: out[0] = ax_cond(m, "1"); break;
    case 24: out[0] = ax_cond(square, "3"); break;
    case 25: out[0] = ax_cond(ax_full(AX_F32, AX_DIMS(0, 3), 1), NULL); break;
    case 26: out[0] = ax_pinvh(m, -1); break;
    case 27: out[0] = ax_svdvals(in[0]); break;
    case 28: out[0] = ax_tensorinv(many, 1); break;
    case 29: out[0] = ax_tensorinv(square, 0); break;
    case 30: out[0] = ax_tensorsolve(many, square); break;
    case 31: out[0] = ax_tensorsolve(half, ax_full(AX_F16, AX_DIMS(3), 1)); break;
    case 32: out[0] = ax_vecdot(m, square, 0); break;
    default: out[0] = ax_matrix_norm(m, "3", false); break;
  }
}

static void matrix_functions_refused(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {matrix_functions, 0, "solve: the matrices of f32[8,4] must be square"},
      {matrix_functions, 1, "solve: f32[3,3] and f32[8] do not fit"},
      {matrix_functions, 2, "solve: f32[2,3,3] and f32[5,3,1] do not fit"},
      {matrix_functions, 3, "solve: operands 0 and 1 are f32[3,3] and f16[3,3]; they need one dtype"},
      {matrix_functions, 4, "inv: f16[3,3] must be of f32, f64 or complex numbers"},
      {matrix_functions, 5, "cholesky_solve: f32[8] is no matrix"},
      {matrix_functions, 6, "lu_solve: s32[8] are no pivots of f32[3,3]"},
      {matrix_functions, 7, "lstsq: f32[8,4] and f32[3,3] do not fit"},
      {matrix_functions, 8, "lstsq"},
      {matrix_functions, 9, "pinv: f32[8] is no matrix"},
      {matrix_functions, 10, "det: the matrices of f32[8,4] must be square"},
      {matrix_functions, 11, "slogdet: the matrices of f32[8,4] must be square"},
      {matrix_functions, 12, "matrix_rank: s32[8] must be of f32, f64 or complex numbers"},
      {matrix_functions, 13, "matrix_power: f32[8,4] holds no square matrices"},
      {matrix_functions, 14, "matrix_power: s32[2,2] must be of f32, f64 or complex numbers"},
      {matrix_functions, 15, "expm: the matrices of f32[8,4] must be square"},
      {matrix_functions, 16, "multi_dot: there are 1 matrices; it takes 2 to 50"},
      {matrix_functions, 17, "multi_dot: f32[8,4] and f32[3,3] do not fit"},
      {matrix_functions, 18, "multi_dot: operand 1, f32[2,3,3], is no matrix"},
      {matrix_functions, 19, "norm: the operand is s32[8]; it must be of floats"},
      {matrix_functions, 20, "matrix_norm: f32[8] is no matrix"},
      {matrix_functions, 21, "matrix_norm: f16[3,3] must be of f32, f64 or complex numbers"},
      {matrix_functions, 22, "matrix_norm: the order is \"3\"; it must be \"fro\""},
      {matrix_functions, 23, "cond: the matrices of f32[8,4] must be square"},
      {matrix_functions, 24, "matrix_norm: the order is \"3\"; it must be \"fro\""},
      {matrix_functions, 25, "cond: the matrices of f32[0,3] have no elements"},
      {matrix_functions, 26, "pinvh: the matrices of f32[8,4] must be square"},
      {matrix_functions, 27, "svdvals: f32[8] is no matrix"},
      {matrix_functions, 28, "tensorinv: f32[2,3,3] has 2 elements in the first 1 dimensions and 9 in the others"},
      {matrix_functions, 29, "tensorinv: ind is 0, of f32[3,3]"},
      {matrix_functions, 30, "tensorsolve: f32[2,3,3] does not begin with the dimensions of f32[3,3]"},
      {matrix_functions, 31, "tensorsolve: f16[3,3] must be of f32, f64 or complex numbers"},
      {matrix_functions, 32, "vecdot: f32[8,4] and f32[3,3] have not as many elements along the axis"},
  };
  refuse(refusals, COUNT(refusals));
}

static void factorisations_refused(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {factorisations, 0, "qr f32[8]: operand 0 is no matrix: it needs at least 2 dimensions"},
      {factorisations, 1, "qr"},
      {factorisations, 2, "qr f16[3,3]: operand 0 is of f16; it must be of f32, f64 or complex numbers"},
      {factorisations, 3, "eigh f32[8,4]: the matrices are 8 by 4; they must be square"},
      {factorisations, 4, "eigh s32[3,3]: operand 0 is of s32; it must be of f32, f64 or complex numbers"},
      {factorisations, 5, "svd f32[8]: operand 0 is no matrix: it needs at least 2 dimensions"},
      {factorisations, 6, "svd"},
      {factorisations, 7, "geqp3 f32[8,4] s32[3]: the order needs a number for each column, and the same leading dimensions"},
      {factorisations, 8, "geqp3 f32[3,3] f32[3]: the order is of f32; it must be of s32"},
      {factorisations, 9, "householder_product f32[3,4] f32[3]: there are more columns than rows, 4 and 3"},
      {factorisations, 10, "householder_product f32[2,3,3] f32[3]: the operands need the same leading dimensions"},
      {factorisations, 11, "ormqr f32[3,3] f32[8] f32[3,3]: 3 by 3 numbers do not hold 8 reflectors"},
      {factorisations, 12, "ormqr f32[3,3] f32[3] f32[8,4]: the third operand has 8 rows, and the reflectors 3 elements"},
      {factorisations, 13, "schur f32[8,4]: the matrices are 8 by 4; they must be square"},
      {factorisations, 14, "hessenberg f32[0,0]: the matrices have no rows"},
      {factorisations, 15, "tridiagonal f32[0,0]: the matrices have no rows"},
      {factorisations, 16, "linear_solve f32[3,3] f32[3,3] f32[3] f32[3,3]: the pivots are of f32; they must be of s32"},
      {factorisations, 17, "the factors are not those of the matrices: their shapes differ"},
      {factorisations, 18, "the last operand has 8 rows, and the matrices 3"},
      {factorisations, 19, "the operands need the same leading dimensions"},
      {factorisations, 20, "tridiagonal_solve f32[3] f32[3] f32[8] f32[3,3]: the three diagonals need one shape"},
      {factorisations, 21, "the dimensions of the last operand but its last must be those of the diagonals"},
      {factorisations, 22, "the operands need one dtype"},
      {factorisations, 23, "eig f32[8,4]: the matrices are 8 by 4; they must be square"},
      {factorisations, 24, "eig"},
      {factorisations, 25, "eig s32[3,3]: operand 0 is of s32; it must be of f32, f64 or complex numbers"},
      {factorisations, 26, "eigvals: f32[8] is no matrix"},
      {factorisations, 27, "eigvalsh: the matrices of f32[8,4] must be square"},
      {factorisations, 28, "the operands need one dtype"},
  };
  refuse(refusals, COUNT(refusals));
}

/* Derivatives that JAX refuses too. */
static void overwritten(const ax_value *in, ax_value *out, void *context) {
  const ax_scatter_dims rows = {.inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}};
  const ax_value ids = ax_full(AX_S32, AX_DIMS(8, 1), 0);
  (void)context;
  out[0] = ax_reduce_sum(ax_scatter_mul(ax_full_like(in[0], 1), ids, in[0], &rows, NULL), AX_ALL_DIMS, false);
}

static void refused_derivatives(void **state) {
  ax_program *program, *gradient;
  (void)state;
  TEST_OK(ax_trace(AX_FN(overwritten, 1, 1), in_types, &program));
  TEST_FAILS(ax_program_grad(program, AX_FIRST(1), &gradient), AX_ABSENT, "only where unique_indices is promised");
  ax_program_release(program);
}

/* --- Control flow --- */

static void to_f16(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_convert_element_type(in[0], AX_F16);
}

static void same(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void sets_nothing(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

static void adds_odd_ones(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], *(const ax_value *)context);
}

static void controlled(const ax_value *in, ax_value *out, void *context) {
  ax_value index = ax_full(AX_S32, AX_DIMS(), 0), odd = in[3], results[2];
  const ax_fn uneven[] = {AX_FN(same, 1, 1), AX_CLOSURE(adds_odd_ones, 1, 1, &odd)};
  switch (*(const int *)context) {
    case 0: ax_scan(AX_FN(to_f16, 1, 1), 1, 3, false, in, out); break;
    case 1: ax_scan(AX_CLOSURE(adds_odd_ones, 1, 1, &odd), 1, 3, false, in, out); break;
    case 2: ax_scan(AX_FN(same, 3, 1), 1, -1, false, AX_VALUES(in[0], in[1], in[3]), results); break;
    case 3: ax_switch(index, AX_FNS(AX_FN(same, 1, 1), AX_FN(to_f16, 1, 1)), in, out); break;
    case 4: ax_switch(in[0], AX_FNS(AX_FN(same, 1, 1), AX_FN(same, 1, 1)), in, out); break;
    case 5: ax_while(AX_FN(same, 1, 1), AX_FN(same, 1, 1), in, out); break;
    case 6: ax_switch(index, AX_LIST(2, uneven), in, out); break;
    case 7: ax_scan(AX_FN(sets_nothing, 1, 1), 1, 3, false, in, out); break;
    case 9: ax_associative_scan(AX_FN(same, 1, 1), 0, false, in, out); break;
    case 10: ax_associative_scan(AX_FN(to_f16, 2, 1), 0, false, in, out); break;
    case 11: ax_associative_scan(AX_FN(same, 4, 2), 0, false, AX_VALUES(in[0], in[3]), results); break;
    case 12: ax_associative_scan(AX_FN(same, 2, 1), 1, false, in, out); break;
    case 13: ax_associative_scan(AX_FN(sets_nothing, 2, 1), 0, false, in, out); break;
    case 14: out[0] = ax_cumlogsumexp(in[2], 0, false); break;
    case 15: out[0] = ax_cumprod(in[4], 0, false); break;
    case 16: out[0] = ax_cummax(in[0], 1, false); break;
    default: ax_scan(AX_FN(same, 1, 1), 1, -7, false, in, out); break;
  }
}

static void control_flow(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {controlled, 0, "scan f32[8]: carry 0 is f32[8], but the body returns f16[8]"},
      {controlled, 1, "add f32[8] f32[3,5]: "},
      {controlled, 2, "scan: xs 1 has the length 3, not 8"},
      {controlled, 3, "result 0 is f16[8], but of"},
      {controlled, 4, "the index is f32[8]"},
      {controlled, 5, "the condition gives f32[8], not bool[]"},
      {controlled, 6, "add f32[8] f32[3,5]: "},
      {controlled, 7, "out[0] was never set"},
      {controlled, 8, "length"},
      {controlled, 9, "associative_scan: combine takes 1 operands and gives 1 results; it must take two for each result"},
      {controlled, 10, "associative_scan: combine: result 0 is f16[4]; the operands are f32[4]"},
      {controlled, 11, "associative_scan: operand 1 is f32[3,5]; along dimension 0 it must have 8 elements, as operand 0"},
      {controlled, 12, "associative_scan: the axis is 1, but there are 1 dimensions"},
      {controlled, 13, "out[0] was never set"},
      {controlled, 14, "needs a float dtype, got s32"},
      {controlled, 15, "needs a numeric dtype, got bool"},
      {controlled, 16, "cummax: the axis is 1, but there are 1 dimensions"},
  };
  refuse(refusals, COUNT(refusals));
}

static void some_composite(const ax_value *in, ax_value *out, void *context) {
  ax_value zero = ax_full(AX_F32, AX_DIMS(), 0);
  const ax_fn f = AX_FN(same, 2, 1), one = AX_FN(same, 1, 1);
  ax_value pair[2];
  switch (*(const int *)context) {
    case 0: ax_reduce_window(in, &zero, one, AX_DIMS(2), out, NULL); break;
    case 1: ax_reduce_window(in, in + 1, f, AX_DIMS(2), out, NULL); break;
    case 2: ax_reduce_window(in, &zero, f, AX_DIMS(0), out, NULL); break;
    case 3: ax_reduce_window(in, &zero, f, AX_DIMS(2), out, &(ax_window_options){.strides = {AX_DIMS(0)}}); break;
    case 4: ax_reduce_window(in, &zero, f, AX_DIMS(2, 2), out, NULL); break;
    case 5: ax_reduce_window(AX_VALUES(in[0], in[3]), AX_VALUES(zero, zero), AX_FN(same, 4, 2), AX_DIMS(2), out, NULL); break;
    case 8: out[0] = ax_fft(in[2], 0); break;
    case 9: out[0] = ax_rfft(ax_complex(in[0], in[0]), 0); break;
    case 10: out[0] = ax_irfft(in[0], 5, 0); break;
    case 11: out[0] = ax_ifft(in[0], 1); break;
    case 12: out[0] = ax_fft(ax_slice_in_dim(in[0], 0, 0, 1, 0), 0); break;
    case 13: out[0] = ax_fftfreq(AX_S32, 5, 1); break;
    case 14: out[0] = ax_igamma(in[2], in[2]); break;
    case 15: out[0] = ax_betainc(in[0], in[0], in[3]); break;
    case 16: out[0] = ax_xlogy(in[0], in[2]); break;
    case 17: out[0] = ax_random_gamma_grad(in[0], in[3]); break;
    case 18: ax_sort_by(AX_LIST(1, in), 0, one, AX_LIST(1, out)); break;
    case 19: ax_sort_by(AX_LIST(1, in), 0, f, AX_LIST(1, out)); break;
    case 20: ax_sort_by(AX_VALUES(in[0], in[3]), 0, AX_FN(same, 4, 1), AX_LIST(2, pair)), out[0] = pair[0]; break;
    case 21: ax_sort_by(AX_LIST(1, in), 1, f, AX_LIST(1, out)); break;
    case 22: out[0] = ax_select_and_gather_add(in[0], in[2], true, AX_DIMS(2), NULL); break;
    case 23: out[0] = ax_select_and_gather_add(in[3], in[0], true, AX_DIMS(2), NULL); break;
    case 24: out[0] = ax_select_and_scatter_add(in[0], in[0], false, AX_DIMS(2), NULL); break;
    case 6: out[0] = ax_scatter_sub(in[0], in[2], in[4], NULL, NULL); break;
    default: out[0] = ax_scatter_apply(in[0], in[2], f, AX_DIMS(8), NULL, NULL); break;
  }
}

static void composites(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {some_composite, 0, "reduce_window: the body takes 1 values and gives 1; it must take two for each that it gives"},
      {some_composite, 1, "reduce_window: start 0 is f32[8,4]; it must be f32[]"},
      {some_composite, 2, "reduce_window: the window has 0 places in dimension 0"},
      {some_composite, 3, "the stride of dimension 0 is 0"},
      {some_composite, 4, "reduce_window"},
      {some_composite, 5, "reduce_window: operand 1 is f32[3,5]; all must be of one shape, as f32[8]"},
      {some_composite, 6, "scatter_sub: the updates are bool[8]; they must be numeric"},
      {some_composite, 8, "fft: the operand is s32[8]; it must be of f32, f64 or complex numbers"},
      {some_composite, 9, "rfft: the operand is c64[8]; it must be of real numbers"},
      {some_composite, 10, "irfft: 5 real numbers are made of 3 complex ones, but the operand is f32[8]"},
      {some_composite, 11, "ifft: the axis is 1"},
      {some_composite, 12, "fft: dimension 0 of f32[0] has no elements"},
      {some_composite, 13, "the dtype f32 or f64"},
      {some_composite, 14, "igamma: the operand is s32[8]; it must be of floats"},
      {some_composite, 15, "betainc: the operands have no common shape"},
      {some_composite, 16, "xlogy"},
      {some_composite, 17, "random_gamma_grad: the operands have no common shape"},
      {some_composite, 18, "sort_by: less takes 1 values and gives 1; it must take two for each of 1 operands, and give one"},
      {some_composite, 19, "sort_by: less gives f32 for each pair of elements; it must give bool[]"},
      {some_composite, 20, "sort_by: operand 1 is f32[3,5]; all must be of one shape, as f32[8]"},
      {some_composite, 21, "sort_by: dimension"},
      {some_composite, 22, "select_and_gather_add: the operand is s32[8]; it must be of floats"},
      {some_composite, 23, "select_and_gather_add: the array of tangents is f32[3,5]; it must be f32[8]"},
      {some_composite, 24, "select_and_scatter_add: the source is f32[8]; it must be f32[7]"},
      {some_composite, 7, "scatter_apply: f takes 2 values and gives 1; it must take and give one"},
  };
  refuse(refusals, COUNT(refusals));
}

/* --- Solvers --- */

static void f32_and_f16(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_convert_element_type(ax_add(in[0], ax_mul(in[1], in[2])), AX_F16);
}

static void halves(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)g, (void)context;
  out[0] = ax_div(b[0], ax_real(2));
}
static void narrowed(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)g;
  to_f16(b, out, context);
}
static void first_of_f16(const ax_value *in, ax_value *out, void *context) {
  to_f16(in, out, context);
  out[0] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}

static void solved(const ax_value *in, ax_value *out, void *context) {
  const ax_fn keeps = AX_FN(same, 1, 1);
  const ax_tangent_solve divides = {halves, NULL};
  ax_value found[6], one[1];
  ax_value scalar = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
  switch (*(const int *)context) {
    case 0: ax_custom_linear_solve(AX_FN(same, 2, 1), keeps, in, out, NULL); break;
    case 1: ax_custom_linear_solve(keeps, AX_FN(same, 2, 1), in, out, NULL); break;
    case 2: ax_custom_linear_solve(AX_FN(to_f16, 1, 1), keeps, in, out, NULL); break;
    case 3: ax_custom_linear_solve(keeps, AX_FN(to_f16, 1, 1), in, out, NULL); break;
    case 4: ax_custom_linear_solve(keeps, keeps, in + 2, out, NULL); break;
    case 5: ax_cg(AX_FN(to_f16, 1, 1), in, out, NULL); break;
    case 6: ax_bicgstab(keeps, in + 2, out, NULL); break;
    case 7: ax_gmres(keeps, in, out, &(ax_krylov_options){.tol = -1}); break;
    case 8: ax_gmres(keeps, in, out, &(ax_krylov_options){.M = AX_FN(same, 2, 1)}); break;
    case 9: ax_cg(keeps, in, out, &(ax_krylov_options){.x0 = {1, in + 3}}); break;
    case 10: ax_odeint(keeps, in, out, NULL); break;
    case 11: ax_odeint(AX_FN(same, 2, 1), AX_VALUES(in[0], scalar), out, NULL); break;
    case 12: ax_odeint(AX_FN(f32_and_f16, 3, 1), AX_VALUES(in[0], in[0], scalar), out, NULL); break;
    case 13: ax_odeint(AX_FN(same, 2, 1), AX_VALUES(in[0], in[2]), out, NULL); break;
    case 14: ax_odeint(AX_FN(same, 2, 1), AX_VALUES(in[0], in[0]), out, &(ax_odeint_options){.mxstep = -1}); break;
    case 15: ax_custom_root(AX_FN(same, 2, 1), keeps, divides, in, out); break;
    case 16: ax_custom_root(keeps, AX_FN(same, 2, 1), divides, in, out); break;
    case 17: ax_custom_root(keeps, AX_FN(same, 2, 2), divides, in, out); break;
    case 18: ax_custom_root(AX_FN(to_f16, 1, 1), keeps, divides, in, out); break;
    case 19: ax_custom_root(keeps, AX_FN(to_f16, 1, 1), divides, in, out); break;
    case 20: ax_custom_root(keeps, keeps, AX_TANGENT_SOLVE(narrowed, NULL), in, out); break;
    case 21: ax_custom_root(keeps, keeps, (ax_tangent_solve){0}, in, out); break;
    case 22: ax_custom_root(keeps, keeps, divides, in + 2, out); break;
    case 23: ax_minimize(keeps, in[3], found, NULL); break;
    case 24: ax_minimize(keeps, in[2], found, NULL); break;
    case 25: ax_minimize(AX_FN(same, 2, 1), in[0], found, NULL); break;
    case 26: ax_minimize(AX_FN(first_of_f16, 1, 1), in[0], found, NULL); break;
    case 27: ax_minimize(keeps, in[0], found, NULL); break;
    case 28: ax_minimize(keeps, in[0], found, &(ax_minimize_options){.gtol = -1}); break;
    case 29: ax_minimize(keeps, in[0], found, &(ax_minimize_options){.method = (ax_minimize_method)2}); break;
    default: ax_minimize(keeps, in[0], one, NULL); break;
  }
}

static void unsolved_backwards(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_custom_linear_solve(AX_FN(same, 1, 1), AX_FN(same, 1, 1), in, out, NULL);
  out[0] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}

static AX_BODY(squared_less) { out[0] = ax_sub(ax_square(in[0]), *(const ax_value *)context); }
static AX_BODY(root_of) { out[0] = ax_sqrt(*(const ax_value *)context); }
static void over_slope(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  (void)context;
  ax_value one = ax_full_like(b[0], 1), slope;
  g.function(&one, &slope, g.context);
  out[0] = ax_div(b[0], slope);
}
static void square_root(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_custom_root(AX_CLOSURE(squared_less, 1, 1, in), AX_CLOSURE(root_of, 1, 1, in), AX_TANGENT_SOLVE(over_slope, NULL), in, out);
}

/* A root has three derivatives, each checked here; the fourth is an error. */
static void derivatives_of_roots(void) {
  static const double at_4[] = {0.25, -1. / 32, 3. / 256};
  const ax_type in_types[] = {AX_TYPE(AX_F64)};
  ax_program *program, *next;
  TEST_OK(ax_trace(AX_FN(square_root, 1, 1), in_types, &program));
  for (int order = 0; order < 3; order++) {
    TEST_OK(ax_program_grad(program, AX_FIRST(1), &next));
    ax_program_release(program);
    program = next;
    ax_tensor *in = test_tensor(in_types[0], (const double[]){4}), *out;
    TEST_OK(ax_evaluate(program, &in, &out));
    assert_true(fabs(((const double *)out->data)[0] - at_4[order]) < 1e-15);
    ax_tensor_release(in);
    ax_tensor_release(out);
  }
  TEST_FAILS(ax_program_grad(program, AX_FIRST(1), &next), AX_INVALID_ARGUMENT, "derivatives are taken by a value f64[]");
  ax_program_release(program);
}

static void solvers(void **state) {
  (void)state;
  derivatives_of_roots();
  static const refusal refusals[] = {
      {solved, 0, "custom_linear_solve: matvec takes 2 values and gives 1; it must take and give what b is"},
      {solved, 1, "custom_linear_solve: solve takes 2 values and gives 1; it must take and give what b is, as many as matvec, 1"},
      {solved, 2, "result 0 is f16[8], but b is f32[8]"},
      {solved, 3, "result 0 is f16[8], but b is f32[8]"},
      {solved, 4, "b0 is s32["},
      {solved, 5, "cg: A: result 0 is f16[8]; x is f32[8]"},
      {solved, 6, "bicgstab: b0 is s32["},
      {solved, 7, "gmres: tol, atol, maxiter and restart must not be below 0"},
      {solved, 8, "gmres: M takes 2 values and gives 1; b has 1"},
      {solved, 9, "cg: x0 0 is f32[3,5], and b0 f32[8]"},
      {solved, 10, "odeint: f takes 1 values and gives 1; it must take y, the time and further operands"},
      {solved, 11, "odeint: the times are f32[]; they must be a vector"},
      {solved, 12, "odeint: f: result 0 is f16[8]; y is f32[8]"},
      {solved, 13, "odeint: operand 1 is s32["},
      {solved, 14, "odeint: rtol, atol, mxstep and hmax must not be below 0"},
      {solved, 15, "custom_root: f takes 2 values and gives 1; it must take and give what the guess is"},
      {solved, 16, "custom_root: solve takes 2 values and gives 1; it must take and give what the guess is"},
      {solved, 17, "custom_root: solve takes 2 values; f takes 1"},
      {solved, 18, "custom_root: f: result 0 is f16[8]; the guess is f32[8]"},
      {solved, 19, "custom_root: solve: result 0 is f16[8]; the guess is f32[8]"},
      {solved, 20, "custom_root: tangent_solve: result 0 is f16[8]; the guess is f32[8]"},
      {solved, 21, "custom_root: there is no tangent_solve"},
      {solved, 22, "custom_root: the guess 0 is s32["},
      {solved, 23, "minimize: x is f32[3,5]; it must be a vector of floats"},
      {solved, 24, "minimize: x is s32["},
      {solved, 25, "minimize: f takes 2 values and gives 1; it must take x and give a number"},
      {solved, 26, "minimize: f gives f16[]; its dtype must be that of x"},
      {solved, 27, "value_and_grad: "},
      {solved, 28, "minimize: gtol, ftol, maxiter, line_search_maxiter and history must not be below 0"},
      {solved, 29, "minimize: there is no method 2"},
      {solved, 30, "minimize: the call gives 6 results, but the list has 1"},
  };
  refuse(refusals, COUNT(refusals));
  const ax_type in_types[] = {AX_TYPE(AX_F32, 8)};
  ax_program *program, *gradient;
  TEST_OK(ax_trace(AX_FN(unsolved_backwards, 1, 1), in_types, &program));
  TEST_FAILS(ax_program_grad(program, AX_FIRST(1), &gradient), AX_ABSENT, "needs a solver of the transposed system: give transpose_solve");
  ax_program_release(program);
}

/* --- Meshes, axes, collectives --- */

typedef struct on_mesh {
  const char *mesh, *in_spec, *out_spec;
  ax_function body;
  int which;
  const char *message;
} on_mesh;

static void map_body(const ax_value *in, ax_value *out, void *context) {
  const on_mesh *m = context;
  int which = m->which;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  test_shard_map(&mesh, &m->in_spec, &m->out_spec, false, AX_CLOSURE(m->body, 1, 1, &which), in, out);
}

static void collected(const ax_value *in, ax_value *out, void *context) {
  static const int64_t twice_from[][2] = {{0, 1}, {0, 2}}, twice_to[][2] = {{0, 1}, {2, 1}}, outside[][2] = {{0, 4}};
  switch (*(const int *)context) {
    case 0: out[0] = ax_psum(in[0], "rows"); break;
    case 1: out[0] = ax_psum(in[0], "data,data"); break;
    case 2: out[0] = ax_ppermute(in[0], "data", 2, twice_from); break;
    case 3: out[0] = ax_ppermute(in[0], "data", 2, twice_to); break;
    case 4: out[0] = ax_ppermute(in[0], "data", 1, outside); break;
    case 5: out[0] = ax_psum_scatter(ax_reshape(in[0], AX_DIMS(2)), "data", 0, true); break;
    case 6: out[0] = ax_all_to_all(in[0], "data", 0, 5, true); break;
    case 7: out[0] = ax_all_gather(in[0], "data", 7, true); break;
    case 8: out[0] = ax_axis_index("model,rows"); break;
    case 9: out[0] = ax_mul(in[0], ax_full_like(in[0], (double)ax_axis_size("nowhere"))); break;
    case 10: out[0] = ax_pcast(in[0], "data", "varying"); break;
    case 11: out[0] = ax_pcast(in[0], "model", "sideways"); break;
    case 12: out[0] = ax_pmean(in[0], "rows"); break;
    case 13: out[0] = ax_psum(in[0], NULL); break;
    case 14: out[0] = ax_done(in[0]); break;
    default: out[0] = ax_psum(in[0], "a name that is much longer than the names of axes may be"); break;
  }
}

static void scalar_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
}

static void nested(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const on_mesh again = {"data=2", "data", "data", same, 0, NULL};
  map_body(in, out, (void *)&again);
}

static void refuse_on_mesh(const on_mesh *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ax_program *program = (ax_program *)(void *)&program;
    ax_status status = ax_trace(AX_CLOSURE(map_body, 1, 1, (void *)&cases[i]), in_types, &program);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), cases[i].message) == NULL)
      fail_msg("%zu: %s, \"%s\" instead of \"%s\"", i, ax_status_name(status), ax_message(), cases[i].message);
    assert_null(program);
  }
}

static void collectives(void **state) {
  (void)state;
  const char *const messages[] = {
      "\"rows\"",
      "data",
      "ppermute f32[2]{V:data}: ",
      "ppermute f32[2]{V:data}: ",
      "ppermute f32[2]{V:data}: ",
      "psum_scatter f32[2]{V:data}: dimension 0 of size 2 does not divide by the 4 members along {data}",
      "all_to_all",
      "all_gather",
      "\"rows\"",
      "\"nowhere\"",
      "data",
      "sideways",
      "pmean: axis \"rows\" is not bound",
      "psum: there is no name of an axis",
      "operand 0 is f32[2]{V:data}, no future",
      "a name that is much longer",
  };
  for (int i = 0; i < (int)COUNT(messages); i++)
    refuse_on_mesh(&(on_mesh){"data=4,model=2", "data", "data", collected, i, messages[i]}, 1);
}

static void specs(void **state) {
  (void)state;
  static const on_mesh cases[] = {
      {"data=4", "data", "", scalar_loss, 0, "out[0]: f32[]{V:data} varies over \"data\", but its spec P() promises it does not"},
      {"data=2,model=2", "data+model", "", same, 0, "varies over \"data\", \"model\", but its spec P() promises it does not"},
      {"data=3", "data", "data", same, 0, "f32[8]"},
      {"data=3,model=3", "data+model", "data", same, 0, "f32[8]"},
      {"data=4", "rows", "data", same, 0, "operand 0: "},
      {"data=4", "data", "columns", same, 0, "result 0: "},
      {"data=4", "data,_", "data", same, 0, "f32[8]"},
      {"data=4", "data+data", "data", same, 0, "operand 0: "},
      {"data=4", "data; data", "data", same, 0, "there are more operand specs than operands, of which there is 1"},
      {"data=4", "data", "data;", same, 0, "there are more result specs than results, of which there is 1"},
      {"data=4", "data", "_,data", same, 0, "f32[2]"},
      {"data=4", "data", "data", nested, 0, "the axis \"data\" is in use by a shard_map around this one"},
      {"data=4", "data", "data", sets_nothing, 0, "out[0] was never set"},
  };
  refuse_on_mesh(cases, COUNT(cases));
}

/* What a body does that takes data by hand of the mesh data=2,model=2,row=2. */
typedef struct by_hand {
  const char *names, *specs, *inner, *constraint; /* of the shard_map; of one in it, with the whole mesh; or of a value in it */
  ax_function body;                               /* or a collective, on the operand */
  const char *message;
} by_hand;

static void sum_over_model(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_psum(in[0], "data,model");
}
static void index_of_model(const ax_value *in, ax_value *out, void *context) {
  (void)context, (void)in, out[0] = ax_axis_index("model");
}
static void size_of_model(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_mul(in[0], ax_integer(ax_axis_size("model")));
}
static void vary_over_model(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_pvary(in[0], "model"); }
static void split_over_model(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(same, 1, 1), in, out, &(ax_vmap_options){.axis_name = "model"});
}
static void on_smaller_mesh(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  ax_must(ax_mesh_parse(context == NULL ? "model=4" : context, &mesh));
  ax_shard_map(&mesh, "model -> model", AX_FN(same, 1, 1), in, out);
}
static void on_mixed_mesh(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  on_smaller_mesh(in, out, (void *)(uintptr_t)"model=2,column=2");
}

static void hand_body(const ax_value *in, ax_value *out, void *context) {
  const by_hand *c = context;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("data=2,model=2,row=2", &mesh));
  if (c->inner != NULL) ax_shard_map_manual(&mesh, c->inner, "model -> model", AX_FN(same, 1, 1), in, out);
  else if (c->constraint != NULL) out[0] = ax_with_sharding(in[0], &mesh, c->constraint);
  else c->body(in, out, NULL);
}

static void hand_map(const ax_value *in, ax_value *out, void *context) {
  const by_hand *c = context;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("data=2,model=2,row=2", &mesh));
  ax_shard_map_manual(&mesh, c->names, c->specs, AX_CLOSURE(hand_body, 1, 1, context), in, out);
}

static void axes_by_hand(void **state) {
  (void)state;
  static const by_hand cases[] = {
      {"data", "model -> data", .body = same,
       .message = "operand 0: the spec names {model}, left automatic: a shard_map's specs name axes that its body takes"},
      {"data", "data -> data,model", .body = same, .message = "result 0: the spec names {model}, left automatic"},
      {"data,rows", "data -> data", .body = same,
       .message = "shard_map_manual: axis \"rows\" is not bound; bound are data (2), model (2), row (2)"},
      {"data,data", "data -> data", .body = same, .message = "shard_map_manual: axis \"data\" is named twice"},
      {"data", "data -> data", .body = sum_over_model,
       .message = "axis \"model\" is automatic here: a shard_map takes {data} by hand"},
      {"data,row", "data -> data", .body = index_of_model,
       .message = "axis \"model\" is automatic here: a shard_map takes {data,row} by hand"},
      {"data", "data -> data", .body = size_of_model, .message = "axis \"model\" is automatic here"},
      {"data", "data -> data", .body = vary_over_model, .message = "axis \"model\" is automatic here"},
      {"data", "data -> data", .body = split_over_model, .message = "\"model\""},
      {"data", "data -> data", .body = on_smaller_mesh,
       .message = "the axis \"model\" has size 4 here and 2 in the shard_map around, which leaves it automatic"},
      {"data", "data -> data", .body = on_mixed_mesh,
       .message = "the axis \"model\" is automatic in the shard_map around, and others of this mesh are not"},
      {"data", "data -> data", .inner = "data,model", .message = "the axis \"data\" is in use by a shard_map around this one"},
      {"data", "data -> data", .inner = "row", .message = "operand 0: the spec names {model}, left automatic"},
      {"data", "data -> data", .constraint = "data", .message = "the axis \"data\" is in use by a shard_map around this one"},
      {"data", "data -> data", .constraint = "model,row", .message = "f32[4]"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    ax_program *program = (ax_program *)(void *)&program;
    ax_status status = ax_trace(AX_CLOSURE(hand_map, 1, 1, (void *)&cases[i]), in_types, &program);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), cases[i].message) == NULL)
      fail_msg("%zu: %s, \"%s\" instead of \"%s\"", i, ax_status_name(status), ax_message(), cases[i].message);
    assert_null(program);
  }
}

static void meshes(void **state) {
  (void)state;
  ax_mesh mesh;
  static const char *const bad[] = {"data", "data=", "data=0", "data=-2", "data=2,data=2", "=4", "data=99999999999999999999",
                                    "a=65536,b=65536", "data=4 model=2", "a name that is much longer than axes may be=2"};
  for (size_t i = 0; i < COUNT(bad); i++)
    if (ax_mesh_parse(bad[i], &mesh) != AX_INVALID_ARGUMENT || ax_message()[0] == '\0') fail_msg("\"%s\" is a mesh", bad[i]);
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  ax_spec spec;
  static const char *const specs[] = {"rows", "data+data", "data,data", "data+", ",,,,,,,,,,,,,,,,,,,,", "+"};
  for (size_t i = 0; i < COUNT(specs); i++)
    if (ax_spec_parse(specs[i], &mesh, &spec) != AX_INVALID_ARGUMENT || ax_message()[0] == '\0')
      fail_msg("\"%s\" is a spec", specs[i]);
}

/* Meshes are plain structs too. */
static const struct {
  ax_mesh mesh;
  const char *message;
} unsound_meshes[] = {
    {{.count = 99}, "a mesh of 99 axes; 16 are the most"},
    {{.count = 1, .axis = {{.name = "d"}}}, "axis \"d\" needs a size of at least 1, not 0"},
    {{.count = 1, .axis = {{.name = "d", .size = -4}}}, "axis \"d\" needs a size of at least 1, not -4"},
    {{.count = 2, .axis = {{.name = "d", .size = 2}, {.name = "d", .size = 2}}}, "axis \"d\" is named twice"},
    {{.count = 1, .axis = {{.name = "", .size = 2}}}, "axis 0 of the mesh: \"\" is not a name"},
    {{.count = 1, .axis = {{.name = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p',
                                     'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'}, .size = 2}}},
     "is not a name"},
    {{.count = 2, .axis = {{.name = "c", .size = 1 << 30}, {.name = "d", .size = 4}}}, "more than 2^31 devices"},
};

static void maps_over(const ax_value *in, ax_value *out, void *context) {
  const char *spec[] = {""};
  test_shard_map(context, spec, spec, false, AX_FN(same, 1, 1), in, out);
}

static void meshes_filled_by_hand(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (size_t i = 0; i < COUNT(unsound_meshes); i++) {
    ax_mesh mesh = unsound_meshes[i].mesh;
    const char *message = unsound_meshes[i].message;
    ax_array *x = NULL;
    ax_program *program = NULL;
    ax_spec spec;
    float data[8] = {0};
    TEST_FAILS(ax_device_put_data(runtime, &mesh, "d", &in_types[0], data, &x), AX_INVALID_ARGUMENT, message);
    TEST_FAILS(ax_trace_on(&mesh, AX_FN(same, 1, 1), in_types, &program), AX_INVALID_ARGUMENT, message);
    TEST_FAILS(ax_trace(AX_CLOSURE(maps_over, 1, 1, &mesh), in_types, &program), AX_INVALID_ARGUMENT, message);
    TEST_FAILS(ax_spec_parse("d", &mesh, &spec), AX_INVALID_ARGUMENT, message);
    assert_true(x == NULL && program == NULL);
  }
  ax_runtime_release(runtime);
}

/* --- Handles --- */

static ax_value kept;

static void keeps(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  kept = out[0] = ax_neg(in[0]);
}

static void uses_kept(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], kept);
}

static void returns_kept(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = kept;
}

static void uses_garbage(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], (ax_value){0x123456789abcdefu, 77});
}

static void uses_unset(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value unset = {0};
  out[0] = ax_add(in[0], unset);
}

/* From the body of a region that is over. */
static void escapes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(keeps, 1, 1), 1, 2, false, in, out);
  out[0] = ax_add(out[0], kept);
}

static void traces_another(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_program *inner;
  kept = in[0];
  assert_int_equal(ax_trace(AX_FN(uses_kept, 1, 1), in_types, &inner), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "a value of the trace around is used in a program of its own"));
  out[0] = ax_neg(in[0]);
}

static void handles(void **state) {
  (void)state;
  ax_program *program;
  static const refusal refusals[] = {
      {uses_kept, 0, "add: operand 1 is a value of trace's function, which has finished"},
      {returns_kept, 0, "out[0] is a value of trace's function, which has finished"},
      {escapes, 0, "add: operand 1 is a value of scan's body, which has finished"},
      {uses_garbage, 0, "a value of another program"},
      {uses_unset, 0, "is a value that was never set"},
      {sets_nothing, 0, "out[0] was never set"},
  };
  TEST_OK(ax_trace(AX_FN(keeps, 1, 1), in_types, &program));
  ax_program_release(program);
  refuse(refusals, COUNT(refusals));
  TEST_OK(ax_trace(AX_FN(traces_another, 1, 1), in_types, &program)); /* its own trace goes on */
  ax_program_release(program);
}

/* The first error is the one reported, whatever comes after it. */
static void fails_often(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value first = ax_add(in[0], in[3]), results[2];
  ax_value second = ax_matmul(first, in[2]), third = ax_reshape(in[0], AX_DIMS(5));
  ax_scan(AX_CLOSURE(adds_odd_ones, 1, 1, &third), 1, 3, false, &second, results);
  ax_grad(AX_FN(same, 1, 1), AX_FIRST(1), in, results);
  out[0] = ax_psum(ax_concatenate(AX_VALUES(first, second, results[0]), 0), "nowhere");
  assert_int_equal(ax_typeof(out[0]).dtype, AX_NO_DTYPE);
  assert_int_equal(ax_typeof(in[0]).dtype, AX_NO_DTYPE); /* a failed trace tells nothing more */
}

/* Types are plain structs: whoever fills one may err. */
static const ax_type unsound[] = {
    {.dtype = AX_F32, .rank = 99}, {.dtype = (ax_dtype)77, .rank = 1, .dims = {2}}, {.dtype = AX_F32, .rank = 1, .dims = {-2}},
    {.dtype = AX_F32, .rank = 3, .dims = {1 << 30, 1 << 30, 1 << 30}}};

static void the_first_error(void **state) {
  (void)state;
  static const refusal refusals[] = {{fails_often, 0, "add f32[8] f32[3,5]: "}};
  refuse(refusals, 1);
  static const ax_type bad = {.dtype = AX_NO_DTYPE};
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(same, 1, 1), &bad, &program), AX_INVALID_ARGUMENT, "input 0: not a type");
  ax_type rank = ax_array_type(AX_F32, AX_LIST(40, NULL)), negative = TEST_TYPE(AX_F32, -1);
  TEST_FAILS(ax_trace(AX_FN(same, 1, 1), &rank, &program), AX_INVALID_ARGUMENT, "input 0: not a type");
  TEST_FAILS(ax_trace(AX_FN(same, 1, 1), &negative, &program), AX_INVALID_ARGUMENT, "input 0: not a type");
  for (size_t i = 0; i < COUNT(unsound); i++)
    TEST_FAILS(ax_trace(AX_FN(same, 1, 1), &unsound[i], &program), AX_INVALID_ARGUMENT, "input 0: ");
  ax_type varying = {.dtype = AX_F32, .spread.varying = 4};
  TEST_FAILS(ax_trace(AX_FN(same, 1, 1), &varying, &program), AX_INVALID_ARGUMENT, "axis sets");
  TEST_FAILS(ax_trace(AX_FN(NULL, 1, 1), &varying, &program), AX_INVALID_ARGUMENT, "no function");
}

/* --- Outside any trace --- */

static void outside_a_trace(void **state) {
  (void)state;
  const int64_t dims[] = {2}, zero[] = {0}, pairs[][2] = {{0, 1}};
  const float data[] = {1, 2};
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_value x = {5, 0}, in[] = {x, x}, out[4];
  ax_mesh mesh;
  const char *spec[] = {"d", "d"};
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_value made[] = {
      ax_full(AX_F32, AX_LIST(1, dims), 1),
      ax_full_like(x, 1),
      ax_constant(&type, data),
      ax_add(x, x),
      ax_neg(x),
      ax_integer_pow(x, 2),
      ax_accurate(x, 1),
      ax_where(x, x, x),
      ax_convert_element_type(x, AX_F32),
      ax_reshape(x, AX_LIST(1, dims)),
      ax_transpose(x, zero),
      ax_broadcast_in_dim(x, AX_LIST(1, dims), zero),
      ax_slice(x, zero, dims, NULL),
      ax_concatenate(AX_LIST(2, in), 0),
      ax_iota(AX_S32, AX_LIST(1, dims), 0),
      ax_dynamic_slice(x, in, dims),
      ax_dynamic_update_slice(x, x, in),
      ax_gather(x, x, dims, &(ax_gather_dims){0}, NULL),
      ax_scatter(x, x, x, &(ax_scatter_dims){0}, NULL),
      ax_scatter_add(x, x, x, &(ax_scatter_dims){0}, NULL),
      ax_scatter_mul(x, x, x, &(ax_scatter_dims){0}, NULL),
      ax_scatter_min(x, x, x, &(ax_scatter_dims){0}, NULL),
      ax_scatter_max(x, x, x, &(ax_scatter_dims){0}, NULL),
      ax_sort(x, 0),
      ax_argsort(x, 0),
      ax_take(x, x, 0),
      ax_take_with(x, x, 0, NULL),
      ax_take_along_axis(x, x, 0, NULL),
      ax_at_set(x, x, x, 0, NULL),
      ax_at_add(x, x, ax_real(1), 0, NULL),
      ax_at_mul(x, x, x, 0, NULL),
      ax_at_min(x, x, x, 0, NULL),
      ax_at_max(x, x, x, 0, NULL),
      ax_reduce_sum(x, AX_LIST(1, zero), false),
      ax_cumlogsumexp(x, 0, false),
      ax_argmax(x, 0, AX_S32),
      ax_argmin(x, 0, AX_S32),
      ax_reduce_sum(x, AX_DIMS(0), false),
      ax_reduce_mean(x, AX_LIST(1, zero), false),
      ax_matmul(x, x),
      ax_dot_general(x, x, AX_LIST(1, zero), AX_LIST(1, zero), AX_DIMS(), AX_DIMS()),
      ax_softmax(x, 0),
      ax_log_softmax(x, -1),
      ax_one_hot(x, 3, AX_F32),
      ax_relu(x),
      ax_gelu(x),
      ax_psum(x, "d"),
      ax_pmean(x, "d"),
      ax_all_gather(x, "d", 0, true),
      ax_psum_scatter(x, "d", 0, false),
      ax_all_to_all(x, "d", 0, 0, true),
      ax_ppermute(x, "d", 1, pairs),
      ax_axis_index("d"),
      ax_top_level_all_gather(x, NULL, NULL),
      ax_pargmax(x, "d"),
      ax_pshuffle(x, "d", AX_LIST(2, dims)),
      ax_pswapaxes(x, "d", 0),
      ax_psum(ax_integer(1), "d"),
      ax_pbroadcast(x, "d", 0),
      ax_start(x),
      ax_start(ax_psum(x, "d")),
      ax_pvary(x, "d"),
      ax_pcast(x, "d", "varying"),
      ax_psum_start(x, "d"),
      ax_done(x),
  };
  for (size_t i = 0; i < COUNT(made); i++) assert_int_equal(made[i].trace, 0);
  assert_int_equal(ax_axis_size("d"), 1);
  assert_int_equal(ax_typeof(x).dtype, AX_NO_DTYPE);
  assert_non_null(strstr(ax_message(), "no trace is in progress"));
  ax_switch(x, AX_FNS(AX_FN(same, 1, 1), AX_FN(same, 1, 1)), in, out);
  ax_scan(AX_FN(same, 1, 1), 1, 3, false, in, out);
  ax_while(AX_FN(same, 1, 1), AX_FN(same, 1, 1), in, out);
  ax_associative_scan(AX_FN(same, 2, 1), 0, false, in, out);
  ax_grad(AX_FN(same, 1, 1), AX_FIRST(1), in, out);
  ax_value_and_grad(AX_FN(same, 1, 1), AX_FIRST(1), in, out);
  ax_jvp(AX_FN(same, 1, 1), AX_FIRST(1), in, in + 1, out, out + 1);
  ax_vmap(AX_FN(same, 1, 1), in, out, &(ax_vmap_options){0});
  test_shard_map(&mesh, spec, spec, false, AX_FN(same, 1, 1), in, out);
  assert_int_equal(out[0].trace, 0);
}

/* --- Transforms --- */

static void two_results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
  out[1] = in[1];
}

static void transforms(void **state) {
  (void)state;
  ax_program *program, *other, *out = NULL;
  const bool ints[] = {false, true};
  const int64_t far[] = {4, 0}, negative[] = {-3, 0}, unmapped[] = {AX_NOT_MAPPED, AX_NOT_MAPPED};
  ax_type types[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_S32, 8)};
  TEST_OK(ax_trace(AX_FN(two_results, 2, 2), types, &program));
  TEST_FAILS(ax_program_grad(program, AX_FIRST(1), &out), AX_INVALID_ARGUMENT, "f32[8]");
  assert_null(out);
  TEST_FAILS(ax_program_value_and_grad(program, AX_FIRST(1), &out), AX_INVALID_ARGUMENT, "f32[8]");
  TEST_FAILS(ax_program_jvp(program, test_args(ints, ax_program_in_count(program)), &out), AX_INVALID_ARGUMENT, "s32[8]");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {2, far}, .size = 3}, &out), AX_INVALID_ARGUMENT, "4");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {2, negative}, .size = 3}, &out), AX_INVALID_ARGUMENT, "-3");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = -3}, &out), AX_INVALID_ARGUMENT, "-3");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.out_axes = {2, unmapped}, .size = 3}, &out), AX_INVALID_ARGUMENT, "out");
  assert_null(out);
  TEST_FAILS(ax_program_vmap(NULL, &(ax_vmap_options){.size = 3}, &out), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_grad(NULL, AX_FIRST(1), &out), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_jvp(NULL, AX_ALL_ARGS, &out), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_transpose(NULL, AX_ALL_ARGS, &out), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_dce(NULL, &out), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_cse(NULL, &out), AX_INVALID_ARGUMENT, "no program");
  uint32_t residuals;
  TEST_FAILS(ax_program_linearize(NULL, AX_ALL_ARGS, &out, &other, &residuals), AX_INVALID_ARGUMENT, "no program");
  char *text = NULL;
  TEST_FAILS(ax_program_print(NULL, &text), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_verify(NULL), AX_INVALID_ARGUMENT, "no program");
  TEST_FAILS(ax_program_stablehlo(NULL, &text), AX_INVALID_ARGUMENT, "no program");
  assert_null(text);
  assert_null(ax_program_in_type(program, 2));
  assert_null(ax_program_out_type(program, 2));
  ax_program_release(program);
}

/* --- Programs as text --- */

static void texts(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "here.axle:1:1"},
      {"{ lambda a:f32[3]. let", "here.axle:1:"},
      {"{ lambda a:f32[3]. let\n    b:f32[4] = neg a\n  in (b,) }\n", "here.axle:2:"},
      {"{ lambda a:f32[3]. let\n    b:f32[3] = negate a\n  in (b,) }\n", "here.axle:2:16"},
      {"{ lambda a:f32[3] b:f32[4]. let\n    c:f32[3] = add a b\n  in (c,) }\n", "add f32[3] f32[4]: "},
      {"{ lambda a:f32[3]. let\n    b:f32[3] = neg c\n  in (b,) }\n", "here.axle:2:20"},
      {"{ axes data=4 ; lambda a:f32[3]{V:rows}. let in (a,) }\n", "here.axle:1:"},
      {"\x01\xff\x80\n", "here.axle:1:1"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    ax_program *program = (ax_program *)(void *)&program;
    ax_status status = ax_program_parse(cases[i].text, strlen(cases[i].text), "here.axle", &program);
    if (status != AX_PARSE_ERROR || strstr(ax_message(), cases[i].message) == NULL || strchr(ax_message(), '^') == NULL)
      fail_msg("%zu: %s, \"%s\" instead of \"%s\"", i, ax_status_name(status), ax_message(), cases[i].message);
    assert_null(program);
  }
}

/* --- Arrays --- */

static void arrays(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_mesh two, many;
  ax_array *x = NULL;
  float data[8] = {0};
  const ax_type type = TEST_TYPE(AX_F32, 6), bad = TEST_TYPE(AX_F32, -6), none = {0};
  TEST_OK(ax_mesh_parse("data=2,model=2", &two));
  TEST_OK(ax_mesh_parse("data=8", &many));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .max_devices = 4}, &runtime));
  TEST_FAILS(ax_device_put_data(runtime, &many, "", &type, data, &x), AX_INVALID_ARGUMENT,
             "the mesh has 8 devices, more than the 4 there are");
  TEST_FAILS(ax_device_put_data(runtime, &two, "data+model", &type, data, &x), AX_INVALID_ARGUMENT,
             "the spec P(data+model) cuts dimension 0 in 4 parts, which do not divide f32[6]");
  TEST_FAILS(ax_device_put_data(runtime, &two, "rows", &type, data, &x), AX_INVALID_ARGUMENT, "rows");
  TEST_FAILS(ax_device_put_data(runtime, &two, "_,data", &type, data, &x), AX_INVALID_ARGUMENT, "f32[6]");
  TEST_FAILS(ax_device_put_data(runtime, NULL, "data", &type, data, &x), AX_INVALID_ARGUMENT, "data");
  TEST_FAILS(ax_device_put_data(runtime, &two, NULL, &type, data, &x), AX_INVALID_ARGUMENT, "spec");
  TEST_FAILS(ax_device_put_data(runtime, &two, "", &type, NULL, &x), AX_INVALID_ARGUMENT, "data");
  TEST_FAILS(ax_device_put_data(runtime, &two, "", &bad, data, &x), AX_INVALID_ARGUMENT, "not a type");
  for (size_t i = 0; i < COUNT(unsound); i++)
    TEST_FAILS(ax_device_put_data(runtime, &two, "", &unsound[i], data, &x), AX_INVALID_ARGUMENT, "device_put_data: ");
  TEST_FAILS(ax_device_put_data(runtime, &two, "", &none, data, &x), AX_INVALID_ARGUMENT, "not a type");
  TEST_FAILS(ax_device_put_data(runtime, &two, "", NULL, data, &x), AX_INVALID_ARGUMENT, "no type");
  TEST_FAILS(ax_device_put_data(NULL, &two, "", &type, data, &x), AX_INVALID_ARGUMENT, "no runtime");
  const ax_type huge = TEST_TYPE(AX_F32, INT64_MAX / 2, 4);
  TEST_FAILS(ax_device_put_data(runtime, NULL, "", &huge, data, &x), AX_INVALID_ARGUMENT, "too large");
  assert_null(x);
  TEST_OK(ax_device_put_data(runtime, &two, "data", &type, data, &x));
  TEST_FAILS(ax_array_read(x, data, 5), AX_INVALID_ARGUMENT, "f32[6] takes 24 bytes, not 5");
  TEST_FAILS(ax_array_read(x, NULL, 24), AX_INVALID_ARGUMENT, "f32[6]");
  TEST_FAILS(ax_array_read(NULL, data, 24), AX_INVALID_ARGUMENT, "no array");
  ax_type shard;
  int64_t start[1];
  TEST_FAILS(ax_array_shard(x, 4, &shard, start), AX_INVALID_ARGUMENT, "device 4 of a mesh of 4");
  TEST_FAILS(ax_array_shard(x, -1, &shard, start), AX_INVALID_ARGUMENT, "device -1 of a mesh of 4");
  ax_array_release(x);
  ax_array_release(NULL);
  ax_runtime_release(runtime);
  ax_runtime_release(NULL);
}

/* --- Running --- */

static void add_all(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int i = 1; i < *(const int *)context; i++) out[0] = ax_add(out[0], in[i]);
}

typedef struct machine {
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x[8], *wrong;
  int count;
} machine;

static machine machine_create(int count, const bool *donate) {
  machine m = {.count = count};
  ax_type types[8], wrong = TEST_TYPE(AX_F64, 3, 2);
  const float data[] = {1, 2, 3, 4};
  const double other[6] = {0};
  ax_program *program;
  for (int i = 0; i < 8; i++) types[i] = TEST_TYPE(AX_F32, 4);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &m.runtime));
  TEST_OK(ax_trace(AX_CLOSURE(add_all, (uint32_t)count, 1, &count), types, &program));
  TEST_OK(ax_compile(m.runtime, program, &(ax_compile_options){.donate = test_args(donate, ax_program_in_count(program))},
                     &m.executable));
  ax_program_release(program);
  for (int i = 0; i < count; i++) TEST_OK(ax_device_put_data(m.runtime, NULL, "", &types[0], data, &m.x[i]));
  TEST_OK(ax_device_put_data(m.runtime, NULL, "", &wrong, other, &m.wrong));
  return m;
}

static void machine_release(machine *m) {
  for (int i = 0; i < m->count; i++) ax_array_release(m->x[i]);
  ax_array_release(m->wrong);
  ax_executable_release(m->executable);
  ax_runtime_release(m->runtime);
}

static void run_fails(const machine *m, ax_array *const *in, const char *message) {
  ax_array *y = m->wrong;
  TEST_FAILS(ax_run(m->executable, AX_LIST((uint32_t)m->count, in), &y), AX_INVALID_ARGUMENT, message);
  assert_null(y);
}

static void run_gives(const machine *m, ax_array *const *in, float last) {
  ax_array *y;
  float got[4];
  TEST_OK(ax_run(m->executable, AX_LIST((uint32_t)m->count, in), &y));
  TEST_OK(ax_array_read(y, got, sizeof got));
  assert_true(got[3] == last);
  ax_array_release(y);
}

static void arguments(void **state) {
  (void)state;
  machine m = machine_create(7, NULL);
  ax_array *in[8], *out[2] = {m.x[0], m.x[1]};
  for (int i = 0; i < 7; i++) in[i] = m.wrong;
  run_fails(&m, in, "run: 7 of 7 arguments do not match:\n  argument 0: the program takes f32[4], got f64[3,2]\n  argument 1: ");
  assert_non_null(strstr(ax_message(), "\n  argument 4: the program takes f32[4], got f64[3,2]\n  ... and 2 more"));
  assert_null(strstr(ax_message(), "argument 5"));
  memcpy(in, m.x, sizeof in);
  in[3] = NULL;
  run_fails(&m, in, "run: 1 of 7 arguments do not match:\n  argument 3: the program takes f32[4], got nothing");
  TEST_FAILS(ax_run(m.executable, AX_LIST(6, m.x), AX_LIST(1, out)), AX_INVALID_ARGUMENT,
             "run: the program takes 7 arguments, but the list has 6");
  assert_null(out[0]);
  out[0] = m.x[0];
  TEST_FAILS(ax_run(m.executable, AX_LIST(7, m.x), AX_LIST(2, out)), AX_INVALID_ARGUMENT,
             "run: the program gives 1 result, but the list has 2");
  assert_true(out[0] == NULL && out[1] == NULL);
  TEST_FAILS(ax_run(m.executable, NULL, out), AX_INVALID_ARGUMENT, "got nothing");
  TEST_FAILS(ax_run(NULL, m.x, AX_LIST(1, out)), AX_INVALID_ARGUMENT, "no executable");
  for (int i = 0; i < 7; i++) in[i] = m.x[0]; /* the same one several times is fine when nothing is donated */
  run_gives(&m, in, 28);
  run_gives(&m, m.x, 28);
  machine_release(&m);
}

static void donated(void **state) {
  (void)state;
  machine m = machine_create(3, (const bool[]){true, false, false});
  float data[4];
  ax_array *twice[] = {m.x[0], m.x[1], m.x[0]}, *same_undonated[] = {m.x[0], m.x[1], m.x[1]};
  run_fails(&m, twice, "argument 0 is donated, but the same array is argument 2 too");
  run_fails(&m, (ax_array *[]){m.x[1], m.x[1], m.x[2]}, "argument 0 is donated, but the same array is argument 1 too");
  run_gives(&m, same_undonated, 12); /* nothing was taken by the calls that failed */
  run_fails(&m, m.x, "argument 0: the program takes f32[4], got f32[4], which was donated to an earlier run");
  TEST_FAILS(ax_array_read(m.x[0], data, sizeof data), AX_INVALID_ARGUMENT, "donated");
  char *picture = NULL;
  if (ax_array_picture(m.x[0], &picture) == AX_OK) ax_string_free(picture);
  machine_release(&m);
  m = machine_create(2, (const bool[]){true, true});
  run_fails(&m, (ax_array *[]){m.x[1], m.x[1]}, "argument 0 is donated, but the same array is argument 1 too");
  run_gives(&m, m.x, 8);
  machine_release(&m);
  m = machine_create(3, (const bool[]){false, false, true});
  run_fails(&m, (ax_array *[]){m.x[1], m.x[1], m.x[1]}, "argument 2 is donated, but the same array is argument 0 too");
  machine_release(&m);
}

static void whole_mesh(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  const char *spec = "data";
  TEST_OK(ax_mesh_parse("data=8", &mesh));
  test_shard_map(&mesh, &spec, &spec, false, AX_FN(same, 1, 1), in, out);
}

static void compiling(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable = NULL;
  ax_mesh mesh;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .max_devices = 4}, &runtime));
  TEST_OK(ax_trace(AX_FN(whole_mesh, 1, 1), in_types, &program));
  TEST_FAILS(ax_compile(runtime, program, NULL, &executable), AX_INVALID_ARGUMENT,
             "the mesh has 8 devices, more than the 4 there are");
  assert_null(executable);
  ax_program_release(program);
  TEST_FAILS(ax_compile(runtime, NULL, NULL, &executable), AX_INVALID_ARGUMENT, "no program");
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  TEST_OK(ax_trace_on(&mesh, AX_FN(same, 1, 1), in_types, &program));
  TEST_FAILS(ax_compile(runtime, program, NULL, &executable), AX_INVALID_ARGUMENT, "data");
  TEST_FAILS(ax_compile(NULL, program, NULL, &executable), AX_INVALID_ARGUMENT, "no runtime");
  assert_null(executable);
  ax_program_release(program);
  ax_program_release(NULL);
  ax_executable_release(NULL);
  ax_runtime_release(runtime);
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.max_devices = -1}, &runtime), AX_INVALID_ARGUMENT, "max_devices");
  TEST_FAILS(ax_runtime_create(&(ax_runtime_options){.policy = (ax_policy)17}, &runtime), AX_INVALID_ARGUMENT, "policy");
  assert_null(runtime);
}

/* --- NULL in place of an object: a status, NULL, 0 or nothing; no crash --- */

static void no_objects(void **state) {
  (void)state;
  size_t now = 1, peak = 1;
  char *text = NULL;
  ax_type type;
  int64_t start[1];
  ax_spec spec;
  ax_program *program;
  assert_true(ax_program_retain(NULL) == NULL && ax_runtime_retain(NULL) == NULL && ax_array_retain(NULL) == NULL);
  assert_true(ax_program_in_count(NULL) == 0 && ax_program_out_count(NULL) == 0 && ax_npz_count(NULL) == 0);
  assert_true(ax_program_in_type(NULL, 0) == NULL && ax_program_out_type(NULL, 0) == NULL && ax_program_axes(NULL) == NULL);
  assert_true(ax_array_typeof(NULL) == NULL && ax_array_mesh(NULL) == NULL && ax_array_spec(NULL) == NULL);
  assert_true(ax_npz_name(NULL, 0) == NULL && ax_npz_array(NULL, 0) == NULL && ax_npz_find(NULL, "x") == NULL);
  assert_true(ax_program_equal(NULL, NULL));
  ax_runtime_memory(NULL, &now, &peak);
  assert_true(now == 0 && peak == 0);
  ax_runtime_trim(NULL);
  ax_npz_release(NULL);
  ax_string_free(NULL);
  TEST_FAILS(ax_executable_text(NULL, &text), AX_INVALID_ARGUMENT, "no executable");
  TEST_FAILS(ax_array_picture(NULL, &text), AX_INVALID_ARGUMENT, "no array");
  TEST_FAILS(ax_array_shard(NULL, 0, &type, start), AX_INVALID_ARGUMENT, "no array");
  TEST_FAILS(ax_spec_parse("", NULL, &spec), AX_INVALID_ARGUMENT, "no mesh");
  TEST_FAILS(ax_trace_on(NULL, AX_FN(same, 1, 1), in_types, &program), AX_INVALID_ARGUMENT, "no mesh");
  TEST_FAILS(ax_trace(AX_FN(same, 1, 1), NULL, &program), AX_INVALID_ARGUMENT, "no type of an input");
  assert_true(text == NULL && program == NULL);
  TEST_OK(ax_trace(AX_FN(same, 1, 1), in_types, &program));
  assert_false(ax_program_equal(program, NULL) || ax_program_equal(NULL, program));
  ax_program_release(program);
}

/* --- Dimensions from the end --- */

static void from_the_end(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_concatenate(AX_VALUES(in[1], in[1]), -1);
  out[1] = ax_iota(AX_S32, AX_DIMS(2, 3), -2);
}

static void negative_dimensions(void **state) {
  (void)state;
  static const char text[] = "{ lambda a:f32[8] b:f32[8,4] c:s32[8] d:f32[3,5] e:bool[8] f:f32[]. let\n"
                             "    g:f32[8,8] = concatenate[dimension=1] b b\n"
                             "    h:s32[2,3] = iota[dtype=s32 shape=(2, 3) dimension=0]\n"
                             "  in (g, h) }\n";
  ax_program *program, *wanted;
  TEST_OK(ax_trace(AX_FN(from_the_end, COUNT(in_types), 2), in_types, &program));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &wanted));
  assert_true(ax_program_equal(program, wanted));
  ax_program_release(program);
  ax_program_release(wanted);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_and_dtypes),
      cmocka_unit_test(bits),
      cmocka_unit_test(windows),
      cmocka_unit_test(neural_networks),
      cmocka_unit_test(numpy_functions),
      cmocka_unit_test(at_indices),
      cmocka_unit_test(linear_algebra), cmocka_unit_test(random_numbers), cmocka_unit_test(keys), cmocka_unit_test(derivatives_of_keys),
      cmocka_unit_test(keys_not_exported),
      cmocka_unit_test(factorisations_refused),
      cmocka_unit_test(matrix_functions_refused),
      cmocka_unit_test(refused_derivatives),
      cmocka_unit_test(control_flow), cmocka_unit_test(composites), cmocka_unit_test(solvers),
      cmocka_unit_test(collectives),
      cmocka_unit_test(specs),
      cmocka_unit_test(axes_by_hand),
      cmocka_unit_test(meshes),
      cmocka_unit_test(meshes_filled_by_hand),
      cmocka_unit_test(no_objects),
      cmocka_unit_test(negative_dimensions),
      cmocka_unit_test(handles),
      cmocka_unit_test(the_first_error),
      cmocka_unit_test(outside_a_trace),
      cmocka_unit_test(transforms),
      cmocka_unit_test(texts),
      cmocka_unit_test(arrays),
      cmocka_unit_test(arguments),
      cmocka_unit_test(donated),
      cmocka_unit_test(compiling),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
