/* Random numbers on the values of a trace, as jax.random makes them with its default generator (threefry2x32,
   jax_threefry_partitionable): the same key gives the same bits, on any number of devices.

   A key is key[], as jax.random.key gives it, or its two words, u32[2], as jax.random.PRNGKey does: an array like others, that programs
   take, return, store, batch and cut. A function here takes one key of either form, and keys made of it have its form; ax_vmap runs it
   on many, key[..] or u32[.., 2]. A key is used once: two draws from one key give the same numbers, so split it, or fold a number into
   it. There is no other state: no call changes a key.

     ax_value keys = ax_random_split(ax_random_typed_key(0), AX_DIMS(2)); // key[2]
     ax_value x = ax_random_normal(ax_at(keys, 0, 0), AX_F32, AX_DIMS(8, 16));

   AX_KEY is a dtype of its own. Operations that move elements take it: ax_reshape, ax_transpose, ax_broadcast_in_dim, ax_slice, ax_pad,
   ax_rev, ax_concatenate, ax_select_n, ax_gather, ax_scatter, the dynamic slices, and what is made of them; ax_eq and ax_ne; calls, loops
   and conditionals, collectives that add nothing, shard_map. All others refuse it by name. It has no tangents. On the host an element
   is two uint32_t, the first word first; NumPy's files have none. ax_full gives each word the number.

   An element of a result depends on the key, the shape and its own place alone. Over a mesh each device makes its own part.

   Functions say the dtype and the shape of their result, then parameters. Parameters are numbers, or arrays of that dtype whose shapes
   broadcast to the result's; where a shape is given as AX_DIMS(), it is that of the parameters. Results are those of JAX bit for bit
   where they are integers or made by exact operations, and otherwise to within the roundings of the functions of mathematics that
   they are made of. In bf16 and f16 each operation is rounded, also where XLA leaves that out. XLA on CPUs rounds the product and the
   sum by which uniform comes to bounds other than 0 and 1 once; AX_CONTRACTION_FUSED (AXLE_CONTRACTION=fused) gives those bits.

   Errors of every function: a key other than key[] and u32[2], another dtype than said, shapes that do not broadcast to the result's. */
#ifndef AXLE_RANDOM_H
#define AXLE_RANDOM_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Keys --- */
/* -> u32[2]. seed: an integer scalar, or a C number, which has 64 bits. As jax.random.PRNGKey, with jax_enable_x64 for C numbers
   beyond 32 bits. */
ax_value ax_random_key(ax_value seed);
/* -> key[]: the same key as a key. As jax.random.key. */
ax_value ax_random_typed_key(ax_value seed);
/* key[d..] -> u32[d.., 2]: the words of keys; u32[d.., 2] itself. As jax.random.key_data. Errors besides: another array. */
ax_value ax_random_key_data(ax_value keys);
/* u32[d.., 2] -> key[d..]: keys with these words. As jax.random.wrap_key_data. Errors besides: other words. */
ax_value ax_random_wrap_key_data(ax_value words);
/* -> key[dims..] of a key[], u32[dims.., 2] of a u32[2]: as many keys, independent of each other. As jax.random.split. */
ax_value ax_random_split(ax_value key, uint32_t rank, const int64_t *dims);
/* -> a key of the form of the one given: that of this number, an integer scalar, of which 32 bits count. As jax.random.fold_in. */
ax_value ax_random_fold_in(ax_value key, ax_value data);

/* --- Bits --- */
/* -> T[dims]: integers, all as likely. T u8, u16, u32 or u64. As jax.random.bits. */
ax_value ax_random_bits(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);
/* u32[d..] four times -> u32[d..] twice: for each key of two words and each count of two words, 64 random bits (axle help
   threefry2x32). Operands broadcast. As jax's threefry2x32_p. */
void ax_threefry2x32(ax_value key0, ax_value key1, ax_value count0, ax_value count1, uint32_t out_count, ax_value *out);

/* Which generator. DEFAULT: that of XLA on CPUs, Philox. */
typedef enum ax_rng_algorithm { AX_RNG_DEFAULT, AX_RNG_THREE_FRY, AX_RNG_PHILOX } ax_rng_algorithm;
/* key u32[4] or u64[2], of Philox u64[3] as well -> a key for the next call, as the one given; T[dims]: integers, all as likely. T u8,
   u16, u32 or u64. A key is another one than above: it holds a count, which goes on. As jax.lax.rng_bit_generator on CPUs; but of a batch of keys each gives its
   own bits, where JAX uses the first alone. Errors besides: another key; an algorithm that there is not. */
void ax_rng_bit_generator(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_rng_algorithm algorithm, uint32_t out_count,
                          ax_value *out);

/* --- All as likely --- */
/* -> T[dims]: from minval to maxval, without maxval. T float, of 8 bits and more. As jax.random.uniform. */
ax_value ax_random_uniform(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value minval, ax_value maxval);
/* -> T[dims]: integers from minval to below maxval; minval where there is none. T an integer of 8 bits and more; the number one beyond
   its greatest is a maxval too. As jax.random.randint. */
ax_value ax_random_randint(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value minval, ax_value maxval);
/* How many bits a draw is made of. LOW: those of one float, as uniform. HIGH: those of two. HIGHEST: 64 for an f32, HIGH for others. */
typedef enum ax_random_mode { AX_RANDOM_LOW, AX_RANDOM_HIGH, AX_RANDOM_HIGHEST } ax_random_mode;
/* -> bool[dims]: true with probability p, a float; a number counts as f32. mode: LOW or HIGH. As jax.random.bernoulli. */
ax_value ax_random_bernoulli(ax_value key, uint32_t rank, const int64_t *dims, ax_value p, ax_random_mode mode);
/* -> T[dims]: 1 or -1, T numeric. As jax.random.rademacher, with jax_enable_x64 if T or its parts have 64 bits, and else without. */
ax_value ax_random_rademacher(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);

/* --- Which of several, and in which order --- */
/* logits T[d..], T float -> s32[dims]: one of the n indices along the axis, i with probability softmax(logits)[i]. dims end in d..
   without the axis, and are that if AX_DIMS(). Without `replace` the draws of the dimensions before are all different. As
   jax.random.categorical. Errors besides: n is 0; more draws without `replace` than n. */
ax_value ax_random_categorical(ax_value key, ax_value logits, int64_t axis, uint32_t rank, const int64_t *dims, bool replace,
                               ax_random_mode mode);
/* T[.., n, ..] -> T[.., dims.., ..]: parts of x along the axis; a number n stands for 0 .. n - 1, as s32. Without `replace` each part
   is drawn once at most. p: floats[n], the probabilities of the parts, or {0}: all as likely; mode: of the noise by which parts are
   drawn with p and without `replace`. As jax.random.choice. Errors besides: n is 0; more draws without `replace` than n. */
ax_value ax_random_choice(ax_value key, ax_value x, uint32_t rank, const int64_t *dims, bool replace, ax_value p, int64_t axis,
                          ax_random_mode mode);
/* T[d..] -> T[d..]: the parts of x along the axis in another order, all orders as likely; independent: each row along the axis in its
   own. A number n stands for 0 .. n - 1, as s32. As jax.random.permutation. */
ax_value ax_random_permutation(ax_value key, ax_value x, int64_t axis, bool independent);

/* --- Distributions of floats: -> T[dims], T float of 8 bits and more. As those of these names in jax.random --- */
/* Mean 0, deviation 1. T may be complex: both parts are normal, and the mean of |x|^2 is 1. */
ax_value ax_random_normal(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);
ax_value ax_random_truncated_normal(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value lower, ax_value upper);
ax_value ax_random_lognormal(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value sigma); /* exp(sigma normal) */
ax_value ax_random_exponential(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims); /* density e^-x */
ax_value ax_random_laplace(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);     /* e^-|x| / 2 */
ax_value ax_random_logistic(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);    /* e^-x / (1 + e^-x)^2 */
ax_value ax_random_cauchy(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims);      /* 1 / (pi (1 + x^2)) */
ax_value ax_random_gumbel(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_random_mode mode); /* e^-(x + e^-x) */
ax_value ax_random_maxwell(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims); /* the length of three normal numbers */
/* loc + scale x, x a maxwell number of either sign. As jax.random.double_sided_maxwell with parameters that are scalars: where they are
   not, JAX adds their dimensions to the shape. */
ax_value ax_random_double_sided_maxwell(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value loc, ax_value scale);
ax_value ax_random_pareto(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value b); /* b / x^(b + 1), x >= 1 */
ax_value ax_random_rayleigh(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value scale);
ax_value ax_random_weibull_min(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value scale, ax_value concentration);
ax_value ax_random_triangular(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value left, ax_value mode, ax_value right);
ax_value ax_random_wald(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value mean); /* scale 1 */
/* By which factor of a covariance numbers are correlated. CHOLESKY: the least work. SVD, EIGH: matrices without an inverse too. */
typedef enum ax_random_method { AX_RANDOM_CHOLESKY, AX_RANDOM_SVD, AX_RANDOM_EIGH } ax_random_method;
/* mean T[.., n], cov T[.., n, n], positive definite, T f32 or f64 -> T[dims.., n]: normal, by the factor of cov that method names:
   those of ax_svd and ax_eigh with the square roots of their values. As jax.random.multivariate_normal. */
ax_value ax_random_multivariate_normal(ax_value key, uint32_t rank, const int64_t *dims, ax_value mean, ax_value cov,
                                       ax_random_method method);
/* -> T[dims.., n, m], T f32 or f64: matrices with orthonormal columns, or if n < m rows, all as likely; m 0: n. As
   jax.random.orthogonal. Errors besides: n below 1, m below 0. */
ax_value ax_random_orthogonal(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t n, int64_t m);

/* --- Gamma numbers and what is made of them: -> T[dims], T float of 8 bits and more. As those of these names in jax.random. Derivatives
   by the parameters are those at which a draw keeps the share of draws below it. Draws are made again until they are accepted: where
   roundings decide otherwise than in JAX, another draw is. --- */
ax_value ax_random_gamma(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a); /* x^(a - 1) e^-x / gamma(a) */
ax_value ax_random_loggamma(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a); /* the logarithms of those */
ax_value ax_random_beta(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value a, ax_value b);
ax_value ax_random_chisquare(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value df);
ax_value ax_random_f(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value dfnum, ax_value dfden);
ax_value ax_random_t(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value df);
ax_value ax_random_generalized_normal(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value p); /* e^-|x|^p */
/* alpha T[.., n] -> T[dims.., n]: n shares whose sum is 1. As jax.random.dirichlet. */
ax_value ax_random_dirichlet(ax_value key, uint32_t rank, const int64_t *dims, ax_value alpha);
/* -> T[dims.., d]: points of which all in the unit ball of d dimensions, by the norm of order p, a scalar, are as likely. As
   jax.random.ball. */
ax_value ax_random_ball(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t d, ax_value p);

/* --- Distributions of whole numbers, without derivatives --- */
/* -> T[dims], T an integer: how many trials it takes to the first success, of probability p, a float; a number counts as f32. As
   jax.random.geometric. */
ax_value ax_random_geometric(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value p);
/* -> T[dims], T an integer: how many events come where lam are expected, floats; a number counts as f32. -1 of a lam that is negative or
   NaN. As jax.random.poisson. */
ax_value ax_random_poisson(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value lam);
/* -> T[dims], T float: how many of n trials succeed, each with probability p. NaN of an n that is negative or NaN, and of a p below 0,
   above 1 or NaN. As jax.random.binomial. */
ax_value ax_random_binomial(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value n, ax_value p);
/* n T[..], p T[.., k], T float -> T[dims.., k]: how many of n trials have each outcome. As jax.random.multinomial, whose shape has k
   too. */
ax_value ax_random_multinomial(ax_value key, uint32_t rank, const int64_t *dims, ax_value n, ax_value p);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_random_split(key, dims) AX_LINED(random_split, key, AX_EXACTLY(dims))
#define ax_random_bits(key, dtype, dims) AX_LINED(random_bits, key, dtype, AX_EXACTLY(dims))
#define ax_threefry2x32(key0, key1, count0, count1, out) \
  AX_LINED_VOID(threefry2x32, AX_X(key0), AX_X(key1), AX_X(count0), AX_X(count1), AX_COUNTED(ax_value, out))
#define ax_rng_bit_generator(key, dtype, dims, algorithm, out) \
  AX_LINED_VOID(rng_bit_generator, key, dtype, AX_EXACTLY(dims), algorithm, AX_COUNTED(ax_value, out))
#define ax_random_uniform(key, dtype, dims, minval, maxval) \
  AX_LINED(random_uniform, key, dtype, AX_EXACTLY(dims), AX_X(minval), AX_X(maxval))
#define ax_random_randint(key, dtype, dims, minval, maxval) \
  AX_LINED(random_randint, key, dtype, AX_EXACTLY(dims), AX_X(minval), AX_X(maxval))
#define ax_random_bernoulli(key, dims, p, mode) AX_LINED(random_bernoulli, key, AX_EXACTLY(dims), AX_X(p), mode)
#define ax_random_rademacher(key, dtype, dims) AX_LINED(random_rademacher, key, dtype, AX_EXACTLY(dims))
#define ax_random_categorical(key, logits, axis, dims, replace, mode) \
  AX_LINED(random_categorical, key, logits, axis, AX_EXACTLY(dims), replace, mode)
#define ax_random_choice(key, x, dims, replace, p, axis, mode) \
  AX_LINED(random_choice, key, AX_X(x), AX_EXACTLY(dims), replace, p, axis, mode)

#define ax_random_normal(key, dtype, dims) AX_LINED(random_normal, key, dtype, AX_EXACTLY(dims))
#define ax_random_truncated_normal(key, dtype, dims, lower, upper) \
  AX_LINED(random_truncated_normal, key, dtype, AX_EXACTLY(dims), AX_X(lower), AX_X(upper))
#define ax_random_lognormal(key, dtype, dims, sigma) AX_LINED(random_lognormal, key, dtype, AX_EXACTLY(dims), AX_X(sigma))
#define ax_random_exponential(key, dtype, dims) AX_LINED(random_exponential, key, dtype, AX_EXACTLY(dims))
#define ax_random_laplace(key, dtype, dims) AX_LINED(random_laplace, key, dtype, AX_EXACTLY(dims))
#define ax_random_logistic(key, dtype, dims) AX_LINED(random_logistic, key, dtype, AX_EXACTLY(dims))
#define ax_random_cauchy(key, dtype, dims) AX_LINED(random_cauchy, key, dtype, AX_EXACTLY(dims))
#define ax_random_maxwell(key, dtype, dims) AX_LINED(random_maxwell, key, dtype, AX_EXACTLY(dims))
#define ax_random_double_sided_maxwell(key, dtype, dims, loc, scale) \
  AX_LINED(random_double_sided_maxwell, key, dtype, AX_EXACTLY(dims), AX_X(loc), AX_X(scale))
#define ax_random_pareto(key, dtype, dims, b) AX_LINED(random_pareto, key, dtype, AX_EXACTLY(dims), AX_X(b))
#define ax_random_rayleigh(key, dtype, dims, scale) AX_LINED(random_rayleigh, key, dtype, AX_EXACTLY(dims), AX_X(scale))
#define ax_random_weibull_min(key, dtype, dims, scale, concentration) \
  AX_LINED(random_weibull_min, key, dtype, AX_EXACTLY(dims), AX_X(scale), AX_X(concentration))
#define ax_random_triangular(key, dtype, dims, left, mode, right) \
  AX_LINED(random_triangular, key, dtype, AX_EXACTLY(dims), AX_X(left), AX_X(mode), AX_X(right))
#define ax_random_wald(key, dtype, dims, mean) AX_LINED(random_wald, key, dtype, AX_EXACTLY(dims), AX_X(mean))
#define ax_random_geometric(key, dtype, dims, p) AX_LINED(random_geometric, key, dtype, AX_EXACTLY(dims), AX_X(p))
#define ax_random_poisson(key, dtype, dims, lam) AX_LINED(random_poisson, key, dtype, AX_EXACTLY(dims), AX_X(lam))
#define ax_random_binomial(key, dtype, dims, n, p) AX_LINED(random_binomial, key, dtype, AX_EXACTLY(dims), AX_X(n), AX_X(p))
#define ax_random_multinomial(key, dims, n, p) AX_LINED(random_multinomial, key, AX_EXACTLY(dims), AX_X(n), p)

#define ax_random_gumbel(key, dtype, dims, mode) AX_LINED(random_gumbel, key, dtype, AX_EXACTLY(dims), mode)
#define ax_random_gamma(key, dtype, dims, a) AX_LINED(random_gamma, key, dtype, AX_EXACTLY(dims), AX_X(a))
#define ax_random_loggamma(key, dtype, dims, a) AX_LINED(random_loggamma, key, dtype, AX_EXACTLY(dims), AX_X(a))
#define ax_random_beta(key, dtype, dims, a, b) AX_LINED(random_beta, key, dtype, AX_EXACTLY(dims), AX_X(a), AX_X(b))
#define ax_random_chisquare(key, dtype, dims, df) AX_LINED(random_chisquare, key, dtype, AX_EXACTLY(dims), AX_X(df))
#define ax_random_f(key, dtype, dims, dfnum, dfden) AX_LINED(random_f, key, dtype, AX_EXACTLY(dims), AX_X(dfnum), AX_X(dfden))
#define ax_random_t(key, dtype, dims, df) AX_LINED(random_t, key, dtype, AX_EXACTLY(dims), AX_X(df))
#define ax_random_generalized_normal(key, dtype, dims, p) AX_LINED(random_generalized_normal, key, dtype, AX_EXACTLY(dims), AX_X(p))
#define ax_random_dirichlet(key, dims, alpha) AX_LINED(random_dirichlet, key, AX_EXACTLY(dims), alpha)
#define ax_random_ball(key, dtype, dims, d, p) AX_LINED(random_ball, key, dtype, AX_EXACTLY(dims), d, AX_X(p))
#define ax_random_multivariate_normal(key, dims, mean, cov, method) \
  AX_LINED(random_multivariate_normal, key, AX_EXACTLY(dims), mean, cov, method)
#define ax_random_orthogonal(key, dtype, dims, n, m) AX_LINED(random_orthogonal, key, dtype, AX_EXACTLY(dims), n, m)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_random_key(seed) AX_LINED(random_key, AX_X(seed))
#define ax_random_typed_key(seed) AX_LINED(random_typed_key, AX_X(seed))
#define ax_random_key_data(keys) AX_LINED(random_key_data, keys)
#define ax_random_wrap_key_data(words) AX_LINED(random_wrap_key_data, words)
#define ax_random_permutation(key, x, ...) AX_LINED(random_permutation, key, AX_X(x), __VA_ARGS__)
#define ax_random_fold_in(key, data) AX_LINED(random_fold_in, key, AX_X(data))
#endif

#ifdef __cplusplus
}
#endif
#endif
