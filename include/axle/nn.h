/* Functions of neural networks, as those of jax.nn and flax.linen: made of the operations of axle/ops.h, which also has softmax,
   log_softmax, relu, softplus, gelu, one_hot and pooling. Each adds equations to the trace in progress; errors poison the result
   (axle/ops.h). Values and derivatives are JAX's. T float; numbers (alpha, slope, ..) are rounded to T. */
#ifndef AXLE_NN_H
#define AXLE_NN_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Activations: T[d..] -> T[d..], each element by itself --- */
ax_value ax_relu6(ax_value x); /* min(max(x, 0), 6); its derivative is 0 at 0 and 6 */
ax_value ax_elu(ax_value x, double alpha); /* x above 0, else alpha (e^x - 1) */
ax_value ax_selu(ax_value x); /* elu, scaled so that layers keep mean and variance */
ax_value ax_celu(ax_value x, double alpha); /* max(x, 0) + alpha (e^(min(x, 0) / alpha) - 1); alpha is not 0 */
ax_value ax_silu(ax_value x); /* x / (1 + e^-x), also called swish */
ax_value ax_mish(ax_value x); /* x tanh(softplus(x)) */
ax_value ax_leaky_relu(ax_value x, double negative_slope); /* x from 0 on, else negative_slope x */
ax_value ax_hard_tanh(ax_value x); /* x between -1 and 1, else the nearer of them */
ax_value ax_hard_sigmoid(ax_value x); /* relu6(x + 3) / 6 */
ax_value ax_hard_silu(ax_value x); /* x hard_sigmoid(x) */
ax_value ax_log_sigmoid(ax_value x); /* log(1 / (1 + e^-x)), without overflow */
ax_value ax_squareplus(ax_value x, double b); /* (x + sqrt(x^2 + b)) / 2 */
ax_value ax_soft_sign(ax_value x); /* x / (|x| + 1) */
ax_value ax_sparse_plus(ax_value x); /* 0 up to -1, (x + 1)^2 / 4 up to 1, then x */
ax_value ax_sparse_sigmoid(ax_value x); /* min(max(x + 1, 0), 2) / 2, the derivative of sparse_plus */
ax_value ax_log1mexp(ax_value x); /* log(1 - e^-x) for x >= 0, accurate near 0 and far from it */
/* T[.., 2n, ..] -> T[.., n, ..]: the first half along the axis, times logistic of the second. An error: an odd size. */
ax_value ax_glu(ax_value x, int64_t axis);

/* --- Softmax of some elements. `where`: bool, broadcasts to x; {0}: all elements. --- */
/* The softmax over these dimensions together, of the elements where `where` holds; all others become 0 (log_softmax: -inf). As
   jax.nn.softmax and log_softmax with `where`. */
ax_value ax_softmax_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes);
ax_value ax_log_softmax_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes);
/* log(sum(b exp(x))) over the elements where `where` holds, without overflow; b: T, broadcasts to x; {0}: 1. NaN where the sum is
   negative, -inf where it is 0. As jax.nn.logsumexp with b and `where`. */
ax_value ax_logsumexp_where(ax_value x, ax_value b, ax_value where, uint32_t count, const int64_t *axes, bool keepdims);

/* --- Normalisation --- */
typedef struct ax_standardize_options { /* {0}, as NULL: the last dimension, all elements, epsilon 1e-5 */
  ax_dim_list axes;
  ax_value mean, variance; /* broadcast to x; {0}: those of x */
  ax_value where;          /* bool, broadcasts to x: the elements that count; {0}: all */
  double epsilon;          /* added to the variance; 0: 1e-5 */
  bool stable;             /* the variance is the mean of (x - mean)^2; otherwise mean(x^2) - mean^2, at least 0 */
} ax_standardize_options;
/* T[d..] -> T[d..]: (x - mean) / sqrt(variance + epsilon). As jax.nn.standardize. */
ax_value ax_standardize(ax_value x, const ax_standardize_options *options);
/* T[d..] -> T[d..]: (x - mean) / sqrt(variance + epsilon) * scale + bias over these dimensions. scale and bias: T, broadcast to x;
   {0}: 1 and 0. bf16 and f16 are computed in f32 and rounded once; the variance is mean(x^2) - mean^2, at least 0. As
   flax.linen.LayerNorm, whose epsilon is 1e-6. */
ax_value ax_layer_norm(ax_value x, ax_value scale, ax_value bias, uint32_t count, const int64_t *axes, double epsilon);
/* The same without mean and bias: x / sqrt(mean(x^2) + epsilon) * scale. As flax.linen.RMSNorm. */
ax_value ax_rms_norm(ax_value x, ax_value scale, uint32_t count, const int64_t *axes, double epsilon);

/* --- Attention --- */
typedef struct ax_attention_options { /* {0}, as NULL: every query sees every key */
  ax_value bias;  /* T[b, n, t, s], each dimension that size or 1: added to the scaled scores; {0}: none */
  ax_value mask;  /* bool, as bias: true where the query sees the key */
  double scale;   /* of the scores; 0: 1 / sqrt(h) */
  bool is_causal; /* query i sees keys 0 .. i */
  ax_dim_list local_window;   /* {AX_DIMS(left, right)}: query i sees keys i - left .. i + right */
  ax_value query_seq_lengths; /* s32[b]: queries from there on give 0; {0}: all are there */
  ax_value key_value_seq_lengths; /* s32[b]: keys from there on are not seen; {0}: all are there */
} ax_attention_options;
/* query T[b, t, n, h], key and value T[b, s, k, h] -> T[b, t, n, h]: for each of n heads softmax(query key^T scale + bias) value,
   over the keys that the query sees. k divides n, and n / k heads in a row share keys and values (grouped and multi-query
   attention). b may be left out of all three. bf16 and f16: scores and softmax in f32. A query that sees nothing averages all
   values. As jax.nn.dot_product_attention, but for f64, where JAX takes the softmax in f32. Errors: other shapes, n that is no
   multiple of k. */
ax_value ax_dot_product_attention(ax_value query, ax_value key, ax_value value, const ax_attention_options *options);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_softmax_where(x, where, axes) AX_LINED(softmax_where, x, where, AX_EXACTLY(axes))
#define ax_log_softmax_where(x, where, axes) AX_LINED(log_softmax_where, x, where, AX_EXACTLY(axes))
#define ax_logsumexp_where(x, b, where, axes, keepdims) AX_LINED(logsumexp_where, x, b, where, AX_EXACTLY(axes), keepdims)
#define ax_layer_norm(x, scale, bias, axes, epsilon) AX_LINED(layer_norm, x, scale, bias, AX_EXACTLY(axes), epsilon)
#define ax_rms_norm(x, scale, axes, epsilon) AX_LINED(rms_norm, x, scale, AX_EXACTLY(axes), epsilon)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_relu6(...) AX_LINED(relu6, __VA_ARGS__)
#define ax_elu(...) AX_LINED(elu, __VA_ARGS__)
#define ax_selu(...) AX_LINED(selu, __VA_ARGS__)
#define ax_celu(...) AX_LINED(celu, __VA_ARGS__)
#define ax_silu(...) AX_LINED(silu, __VA_ARGS__)
#define ax_mish(...) AX_LINED(mish, __VA_ARGS__)
#define ax_leaky_relu(...) AX_LINED(leaky_relu, __VA_ARGS__)
#define ax_hard_tanh(...) AX_LINED(hard_tanh, __VA_ARGS__)
#define ax_hard_sigmoid(...) AX_LINED(hard_sigmoid, __VA_ARGS__)
#define ax_hard_silu(...) AX_LINED(hard_silu, __VA_ARGS__)
#define ax_log_sigmoid(...) AX_LINED(log_sigmoid, __VA_ARGS__)
#define ax_squareplus(...) AX_LINED(squareplus, __VA_ARGS__)
#define ax_soft_sign(...) AX_LINED(soft_sign, __VA_ARGS__)
#define ax_sparse_plus(...) AX_LINED(sparse_plus, __VA_ARGS__)
#define ax_sparse_sigmoid(...) AX_LINED(sparse_sigmoid, __VA_ARGS__)
#define ax_log1mexp(...) AX_LINED(log1mexp, __VA_ARGS__)
#define ax_glu(...) AX_LINED(glu, __VA_ARGS__)
#define ax_standardize(...) AX_LINED(standardize, __VA_ARGS__)
#define ax_dot_product_attention(...) AX_LINED(dot_product_attention, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
