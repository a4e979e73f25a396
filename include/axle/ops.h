/* Operations on the values of a trace. Each adds an equation to the trace in progress on this thread and returns its result;
   errors poison the result and are reported when the trace finishes (see program.h).

   Functions of two operands broadcast as NumPy does: shapes are aligned at the last dimension, and a dimension of 1 stretches.
   dtypes are never converted silently: both operands have one dtype T. "T numeric" means that T is an integer or a float. Names and
   semantics are those of jax.lax.

   Complex numbers (c64, c128) are taken, where T numeric, T float or any T is said, by add to div, max, min (by the real part, then the
   imaginary one), pow, integer_pow, neg, abs (whose result is real), sign, the functions from exp to rsqrt and from exp2 to atanh but
   cbrt, eq, ne, select_n, conversions, everything that only moves elements, scatters, sort, sums, products and extremes (reductions,
   cumulative operations, windows, dot_general, convolutions), loops, branches, calls of the host, and all collectives. Everything
   else refuses them by name. C17's complex numbers are those of memory: the real part first.

   Operands that spread differently over mesh axes (ax_spread) are made to agree by implicit casts, axis by axis: where one varies
   all are made to vary; where one is reduced or unreduced, those that are invariant become reduced. Operations take unreduced
   operands where they are linear in them: all operands of add, sub, neg, concatenate, pad, reduce_sum and the operations that only
   move elements, and the cases of select_n; one of mul and dot_general; the first of div (floats) and dynamic_slice, and the first
   two of dynamic_update_slice. Operands that are unreduced by max (by min) are taken by the operations that only move elements, and
   by max and reduce_max (min and reduce_min). The number 0 may stand beside an unreduced operand, because it adds nothing to the
   sum: ax_where(mask, x, ax_real(0)). All other unreduced operands are errors that name the axis.

   A single dimension, and each of a reduction's axes, may count from the end: -1 is the last. In lists with one entry for each
   dimension (permutation, broadcast_dimensions, starts, limits), and in those of dot_general, dimensions count from 0 only.
   Errors of every function: shapes or dtypes other than those said, a dimension outside the rank, a negative size, a rank above
   AX_MAX_RANK, more elements than an int64_t counts. */
#ifndef AXLE_OPS_H
#define AXLE_OPS_H

#include "axle/program.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Constants --- */
/* T[dims], every element `value`; rank 0 and dims NULL for a scalar. Float dtypes round it to nearest. Errors (kept by the trace):
   a value the dtype cannot hold: for an integer dtype a fraction, NaN or a number out of its range, for bool all but 0 and 1, for a
   float dtype a finite value beyond its largest. ax_full takes whole numbers below 2^53 in size for integer dtypes, ax_full_i64
   any. */
ax_value ax_full(ax_dtype dtype, uint32_t rank, const int64_t *dims, double value);
ax_value ax_full_i64(ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t value);
/* An array of the dtype and shape of x, every element `value`. */
ax_value ax_full_like(ax_value x, double value);
/* An array of this type from dense row-major memory, ax_constant(&type, data); `data` is copied, and may be NULL when there are no
   elements. */
ax_value ax_constant(const ax_type *type, ax_dtype element, const void *data, size_t bytes);

/* --- Pointwise --- */
ax_value ax_add(ax_value a, ax_value b); /* T numeric */
ax_value ax_sub(ax_value a, ax_value b);
ax_value ax_mul(ax_value a, ax_value b);
ax_value ax_div(ax_value a, ax_value b); /* integers: rounded towards 0; x/0 has all bits set */
ax_value ax_rem(ax_value a, ax_value b); /* exact, with the sign of a, as fmod and % of C; integers: x rem 0 is x. As jax.lax.rem */
ax_value ax_max(ax_value a, ax_value b); /* NaN if either is */
ax_value ax_min(ax_value a, ax_value b);
ax_value ax_pow(ax_value a, ax_value b); /* T float */
ax_value ax_neg(ax_value x);             /* T numeric, as the two below */
ax_value ax_abs(ax_value x);
ax_value ax_sign(ax_value x);
ax_value ax_floor(ax_value x); /* T float, as those below up to erf */
ax_value ax_ceil(ax_value x);
ax_value ax_round(ax_value x); /* to the nearest whole number; of two equally near ones, to the even one. As jnp.round */
ax_value ax_exp(ax_value x);
ax_value ax_log(ax_value x);
ax_value ax_log1p(ax_value x);
ax_value ax_expm1(ax_value x);
ax_value ax_sin(ax_value x);
ax_value ax_cos(ax_value x);
ax_value ax_tanh(ax_value x);
ax_value ax_logistic(ax_value x); /* 1 / (1 + exp(-x)) */
ax_value ax_sqrt(ax_value x);
ax_value ax_rsqrt(ax_value x);
ax_value ax_erf(ax_value x);
/* As the functions of these names in jax.lax; angles are in radians. T float. */
ax_value ax_exp2(ax_value x); /* 2^x */
ax_value ax_cbrt(ax_value x); /* the real root, also of numbers below 0 */
ax_value ax_tan(ax_value x);
ax_value ax_asin(ax_value x); /* NaN outside -1 .. 1, as acos and atanh */
ax_value ax_acos(ax_value x);
ax_value ax_atan(ax_value x);
ax_value ax_atan2(ax_value y, ax_value x); /* the angle of the point (x, y), from -pi to pi */
ax_value ax_sinh(ax_value x);
ax_value ax_cosh(ax_value x);
ax_value ax_asinh(ax_value x);
ax_value ax_acosh(ax_value x); /* NaN below 1 */
ax_value ax_atanh(ax_value x);
ax_value ax_erfc(ax_value x); /* 1 - erf(x), exact where erf is near 1 */
/* As the functions of these names in jax.lax, exact to the last places near zeros too, but those of digamma below 0.
   T float. */
ax_value ax_erf_inv(ax_value x); /* infinite at 1 and -1, NaN beyond */
ax_value ax_lgamma(ax_value x);  /* log |gamma(x)|; infinite at 0, -1, -2 .. */
ax_value ax_digamma(ax_value x); /* its derivative */
ax_value ax_polygamma(ax_value n, ax_value x); /* the n-th derivative of digamma, n whole; its derivative is by x alone */
ax_value ax_zeta(ax_value s, ax_value q);      /* the sum of (q + k)^-s over k >= 0; its derivative is by q alone */
ax_value ax_bessel_i0e(ax_value x);            /* e^-|x| I0(x), as the next with I1 */
ax_value ax_bessel_i1e(ax_value x);
/* Complex numbers (c64, c128). The parts of z; x + i y of two floats, both f32 or both f64; the conjugate, of f32 and f64 as a
   complex number. As jax.lax.real, imag, complex and conj. Derivatives are those of JAX (docs/jax.md). */
ax_value ax_real_part(ax_value z);
ax_value ax_imag_part(ax_value z);
ax_value ax_complex(ax_value x, ax_value y);
ax_value ax_conj(ax_value z);
/* Sets how accurately y is computed, and returns y, which is the result of one of the functions from exp to erfc but atan2, made in the trace
   in progress. `ulps` is the largest error allowed, in units of the result's last place, or AX_ACCURACY_HIGHEST: the least error
   that there is. Without a call, and with AX_ACCURACY_DEFAULT, the error is at most 4 units (f32, f64). docs/primitives.md has the
   errors of each function; f32 at its highest accuracy takes about five times as long. The equation keeps the accuracy
   (accuracy=highest), and transforms hand it on, also to the cosine in sin's derivative. StableHLO has it as result_accuracy,
   except for erf and its like, whose ops have no such attribute. As the parameter `accuracy` of jax.lax.tanh and its like, without absolute and
   relative tolerances. Errors: y is no such result; `ulps` is less than the least error for the dtype, or negative. */
enum { AX_ACCURACY_DEFAULT = 0, AX_ACCURACY_HIGHEST = -1 };
ax_value ax_accurate(ax_value y, int64_t ulps);
ax_value ax_integer_pow(ax_value x, int64_t exponent); /* T numeric; a negative exponent: T float */
ax_value ax_eq(ax_value a, ax_value b);                /* -> bool, as the five below; any T; with a NaN only ne is true */
ax_value ax_ne(ax_value a, ax_value b);
ax_value ax_lt(ax_value a, ax_value b);
ax_value ax_le(ax_value a, ax_value b);
ax_value ax_gt(ax_value a, ax_value b);
ax_value ax_ge(ax_value a, ax_value b);
ax_value ax_and(ax_value a, ax_value b); /* T bool or integer */
ax_value ax_or(ax_value a, ax_value b);
ax_value ax_not(ax_value x);
/* Any T.  which: bool, of the cases' shape or a scalar -> case_false where false, case_true where true. */
ax_value ax_select_n(ax_value which, ax_value case_false, ax_value case_true);
ax_value ax_where(ax_value condition, ax_value x, ax_value y); /* broadcasts; x where condition holds */
/* Any dtype to any. Floats are rounded towards zero and clamped to the integer dtype's range. To bool, every value other than 0
   becomes true. */
ax_value ax_convert_element_type(ax_value x, ax_dtype dtype);
ax_value ax_stop_gradient(ax_value x); /* x, whose derivative is zero */
/* Bits.  T bool or integer (xor), integer. Shifts by a negative amount, or by as many bits as there are, give 0, arithmetic ones
   copies of the first bit. As those of jax.lax. */
ax_value ax_xor(ax_value a, ax_value b);
ax_value ax_shift_left(ax_value x, ax_value amount);
ax_value ax_shift_right_logical(ax_value x, ax_value amount);    /* zeros come in */
ax_value ax_shift_right_arithmetic(ax_value x, ax_value amount); /* copies of the first bit come in, also where T has no sign */
ax_value ax_population_count(ax_value x);                        /* how many bits are 1 */
ax_value ax_clz(ax_value x);                                     /* how many bits are 0 before the first 1 */
ax_value ax_ctz(ax_value x);                                     /* how many bits are 0 after the last 1 */
/* The bits of x as numbers of another dtype; bool only to bool. Where that has n times fewer bytes, T[d..] -> U[d.., n], the lowest
   bits first; where it has n times more, T[d.., n] -> U[d..]. Its derivative is zero. As jax.lax.bitcast_convert_type. */
ax_value ax_bitcast_convert_type(ax_value x, ax_dtype dtype);
ax_value ax_is_finite(ax_value x); /* T float -> bool: neither NaN nor infinite */
/* T float. The next number from x towards y, and y where they are equal; NaN if either is. Subnormal numbers count in every mode.
   Its derivative is that of x. As jax.lax.nextafter. */
ax_value ax_nextafter(ax_value x, ax_value y);
/* T float. x as a float with so many bits of exponent and of fraction has it, rounded to the nearest, of two to the even one; beyond
   its range infinite, below its normal numbers 0. Bits that T has not are not added. As jax.lax.reduce_precision. Errors:
   exponent_bits below 1, mantissa_bits below 0. */
ax_value ax_reduce_precision(ax_value x, int64_t exponent_bits, int64_t mantissa_bits);
/* T float. To the nearest whole number; of two equally near ones, to the one away from zero. As round of C, and as jax.lax.round,
   whose default that is. */
ax_value ax_round_nearest_afz(ax_value x);
/* out[i] is xs[i], of any types. Nothing is simplified across it: equations on a result are not merged with those on the operand, and
   where one result is used, all operands are computed. As jax.lax.optimization_barrier. */
void ax_optimization_barrier(uint32_t count, const ax_value *xs, uint32_t out_count, ax_value *out);
ax_value ax_square(ax_value x);        /* T numeric */
/* a % b of Python: the remainder with the sign of b. T numeric; integers: a mod 0 is 0. As jnp.remainder. */
ax_value ax_mod(ax_value a, ax_value b);
/* a // b of Python: rounded down. T numeric; by 0: the result of ax_div. As jnp.floor_divide. */
ax_value ax_floor_divide(ax_value a, ax_value b);
/* T numeric; the operands broadcast, and some may be numbers. min(max(x, low), high), as jax.lax.clamp: where x equals a bound, the
   derivatives by all three operands are zero. */
ax_value ax_clamp(ax_value low, ax_value x, ax_value high);

/* --- Shape; any T --- */
/* The same number of elements, in row-major order; one dimension may be -1, the size that the others leave. */
ax_value ax_reshape(ax_value x, uint32_t rank, const int64_t *dims);
/* Dimensions in another order: the result's dimension i is x's dimension permutation[i]. */
ax_value ax_transpose(ax_value x, uint32_t count, const int64_t *permutation);
/* T[s..] -> T[dims]: x's dimension i becomes the result's dimension broadcast_dimensions[i], whose size it has, or 1, and then x is
   repeated along it. The list is strictly increasing. As jax.lax.broadcast_in_dim. */
ax_value ax_broadcast_in_dim(ax_value x, uint32_t rank, const int64_t *dims, uint32_t count, const int64_t *broadcast_dimensions);
/* The elements from start to below limit along each dimension, every stride-th; the lists have one entry a dimension, and strides
   may be NULL (all 1). */
ax_value ax_slice(ax_value x, uint32_t start_count, const int64_t *start, uint32_t limit_count, const int64_t *limit,
                  uint32_t stride_count, const int64_t *strides);
/* x with elements `value`, T[], added along each dimension: `low` before the first element, `high` after the last, and `interior`
   between any two. low and high may be negative: so many elements are cut off. interior >= 0. */
ax_value ax_pad(ax_value x, ax_value value, uint32_t low_count, const int64_t *low, uint32_t high_count, const int64_t *high,
                uint32_t interior_count, const int64_t *interior);
ax_value ax_rev(ax_value x, uint32_t count, const int64_t *dimensions); /* in reverse order along these; as jax.lax.rev */
/* The operands one after the other along `dimension`: ax_concatenate(AX_VALUES(a, b), 0). At least one operand; their other
   dimensions are the same. */
ax_value ax_concatenate(uint32_t count, const ax_value *xs, int64_t dimension);
/* T[dims], T numeric: each element its index along `dimension`. */
ax_value ax_iota(ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t dimension);
/* The slice of these sizes that begins at `starts`: one integer scalar a dimension, clamped so that the slice lies inside. */
ax_value ax_dynamic_slice(ax_value x, uint32_t start_count, const ax_value *starts, uint32_t size_count, const int64_t *sizes);
/* x with `update` put at `starts`, which are clamped likewise. */
ax_value ax_dynamic_update_slice(ax_value x, ax_value update, uint32_t start_count, const ax_value *starts);
/* Adds a dimension of 1, which is number `dimension` of the result. */
ax_value ax_expand_dims(ax_value x, int64_t dimension);

ax_value ax_broadcast_to(ax_value x, uint32_t rank, const int64_t *dims); /* repeated, as NumPy broadcasts, to T[dims]; as
                                                                             jnp.broadcast_to */
/* x without these dimensions, each named once, whose sizes must be 1; NULL: without all dimensions of 1. As jnp.squeeze. */
ax_value ax_squeeze(ax_value x, uint32_t count, const int64_t *dimensions);
ax_value ax_moveaxis(ax_value x, int64_t source, int64_t destination); /* dimension `source` becomes number `destination`; as
                                                                          jnp.moveaxis */
ax_value ax_swapaxes(ax_value x, int64_t a, int64_t b);                /* dimensions a and b change places; as jnp.swapaxes */
ax_value ax_matrix_transpose(ax_value x); /* T[.., m, n] -> T[.., n, m]; as jnp.matrix_transpose, x.mT. An error: rank below 2 */
/* The operands, at least one and all of one shape, one after the other along a new dimension, which is number `dimension` of the
   result. As jnp.stack. */
ax_value ax_stack(uint32_t count, const ax_value *xs, int64_t dimension);
/* x cut along the dimension in parts of these sizes, which make up all of it: out[i] is part i. As jax.lax.split. */
void ax_split(ax_value x, uint32_t count, const int64_t *sizes, int64_t dimension, uint32_t out_count, ax_value *out);

/* --- Parts, as NumPy writes them; any T --- */
/* NumPy's x[text]: ax_index(x, "1:-1, :, 3"). One entry for each dimension, from the first on; those without an entry are
   taken whole. An entry is
     3, -1          one index, from the end below 0; the dimension is dropped
     1:-1, ::2, :   start:stop:step; each may be left out. Below 0 a bound counts from the end; bounds beyond the array are moved
                    to its ends. A step below 0 goes backwards: "::-1" turns the dimension round
     ...            as many whole dimensions as the other entries leave; once
     None           a new dimension of 1; also `newaxis`
   Errors (with the character of the text): a text that is no index, a step of 0, an index outside, more entries than dimensions. */
ax_value ax_index(ax_value x, const char *text);
/* x with that part replaced by `part`, which broadcasts to it, or by a number. As jnp's x.at[..].set(part). */
ax_value ax_index_set(ax_value x, const char *text, ax_value part);

/* --- Parts along one dimension; any T --- */
/* start to limit, each counted from the end when negative, every stride-th element (stride >= 1). As jax.lax.slice_in_dim. */
#define AX_END INT64_MAX /* a limit: to the end */
ax_value ax_slice_in_dim(ax_value x, int64_t start, int64_t limit, int64_t stride, int64_t dimension);
/* T[.., n, ..] -> T[.., ..]: the part at `index`, from the end when negative, without the dimension. As jax.lax.index_in_dim
   without keepdims. */
ax_value ax_at(ax_value x, int64_t index, int64_t dimension);
/* The part at an index that is computed. The index is an integer scalar, clamped so that the part lies inside: a negative one
   becomes 0 and does not count from the end, as in ax_dynamic_slice and unlike jax.lax. It may also be a C number, but not a
   negative one. ax_dynamic_at: T[.., n, ..] -> T[.., ..], the part, as jax.lax.dynamic_index_in_dim without keepdims.
   ax_dynamic_at_set: x with `row` as this part, T[.., ..] or a number for all of its elements, as
   jax.lax.dynamic_update_index_in_dim. Errors besides: a dimension of 0. */
ax_value ax_dynamic_at(ax_value x, ax_value index, int64_t dimension);
ax_value ax_dynamic_at_set(ax_value x, ax_value row, ax_value index, int64_t dimension);
/* ax_dynamic_slice_in_dim: the part of `size` elements from `start` on along the dimension. ax_dynamic_update_slice_in_dim: x with
   `update` from `start` on, which has x's shape, but may be shorter along the dimension. `start` is clamped as above. */
ax_value ax_dynamic_slice_in_dim(ax_value x, ax_value start, int64_t size, int64_t dimension);
ax_value ax_dynamic_update_slice_in_dim(ax_value x, ax_value update, ax_value start, int64_t dimension);

/* --- Indices; any T --- */
/* How an index is treated whose window is not inside the operand. FILL: a read gives the fill value, a write is dropped. CLIP: the
   nearest window inside is used. PROMISE_IN_BOUNDS: the caller promises that there is no such index; if there is one after all, its
   result is unspecified, but no memory outside the operands is touched. */
typedef enum ax_index_mode { AX_INDEX_FILL, AX_INDEX_CLIP, AX_INDEX_PROMISE_IN_BOUNDS } ax_index_mode;
typedef struct ax_index_options { /* {0}, as NULL: fill, nothing promised */
  ax_index_mode mode;
  bool indices_are_sorted, unique_indices; /* promises: the indices ascend; no two windows overlap. Derivatives of some scatters
                                              need the second */
  ax_value fill_value; /* a number, for ax_gather with AX_INDEX_FILL; {0}: NaN, the least signed or the greatest unsigned integer,
                          true */
} ax_index_options;
/* The dimensions that the windows of a gather have in its operands and its result: ax_gather says what each list means. As
   jax.lax.GatherDimensionNumbers. */
typedef struct ax_gather_dims {
  ax_dim_list offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
} ax_gather_dims;
/* T[d..], indices I[b.., n], I an integer dtype -> T[b.. and w..]: for each b.. a window of slice_sizes (one a dimension of x).
   Along x's dimension start_index_map[k] it begins at the k-th of the n numbers, along all others at 0. The result has the window's
   dimensions, but for those of 1 that are collapsed or batching, at offset_dims, and b.. at the others. An operand_batching
   dimension moves with the dimension of the indices that stands at its place in start_indices_batching_dims. As jax.lax.gather.
   Errors besides: lists that are no dimensions, are not ascending (start_index_map need not be), or have one in common; a
   window that is larger than x, or not of 1 where it is collapsed or batching; an unreduced x, unless the fill value is 0.
   Derivatives: through x. */
ax_value ax_gather(ax_value x, ax_value indices, uint32_t count, const int64_t *slice_sizes, const ax_gather_dims *dims,
                   const ax_index_options *options);

/* The dimensions that the windows of a scatter have in its operands: ax_scatter says what each list means. As
   jax.lax.ScatterDimensionNumbers. */
typedef struct ax_scatter_dims {
  ax_dim_list update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, operand_batching_dims,
      scatter_indices_batching_dims;
} ax_scatter_dims;
/* x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]: x with the window of each b.. written at its place (scatter), or
   combined with the elements there: added, multiplied, or the smaller or larger of both (min and max: NaN if either is). Windows
   that overlap are applied in the order of b..: the last one written stays, and sums are made in that order on any number of
   threads. Dimensions are as ax_gather's under other names; updates have the window's dimensions at update_window_dims. With
   AX_INDEX_FILL, windows that are not inside x are dropped. As jax.lax.scatter, scatter_add, ... T numeric for add and mul.
   Derivatives: through x and updates. As in JAX, two need unique_indices: that of mul through updates, and the transpose of
   ax_scatter itself, where a function that is transposed as a linear one (ax_program_transpose) calls it. */
ax_value ax_scatter(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims, const ax_index_options *options);
ax_value ax_scatter_add(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);
ax_value ax_scatter_mul(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);
ax_value ax_scatter_min(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);
ax_value ax_scatter_max(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);
/* x with the updates subtracted. As jax.lax.scatter_sub. */
ax_value ax_scatter_sub(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);
/* x with f of the elements that updates of this shape would meet, once for each that does. f: T[] -> T[]; it is also computed of
   other elements. Derivatives forwards; also backwards with unique_indices. As jax.lax.scatter_apply. Errors besides: an f of other
   counts or types. */
ax_value ax_scatter_apply(ax_value x, ax_value indices, ax_fn f, uint32_t count, const int64_t *update_shape,
                          const ax_scatter_dims *dims, const ax_index_options *options);

/* The parts of x at the indices, integers I[i..], along dimension `axis`: [b.., n, a..] -> [b.., i.., a..]. It is one operation,
   however many indices there are. ax_take clamps indices as ax_dynamic_at does. ax_take_with treats indices outside as the options
   say; in all modes but AX_INDEX_CLIP a negative index counts from the end. As jnp.take(mode="clip"), and jnp.take. An error
   besides: a dimension of 0. */
ax_value ax_take(ax_value x, ax_value indices, int64_t axis);
ax_value ax_take_with(ax_value x, ax_value indices, int64_t axis, const ax_index_options *options);
/* One element for each index: [b.., n, a..], I[b.., m, a..] -> [b.., m, a..]. Dimensions other than the axis may be 1 in x or in
   the indices, and stretch. As jnp.take_along_axis, with the options as above. */
ax_value ax_take_along_axis(ax_value x, ax_value indices, int64_t axis, const ax_index_options *options);
/* x [b.., n, a..] whose parts at indices I[i..] along the axis are overwritten by the updates, or added to, multiplied, or
   replaced by the smaller or larger of both. Updates broadcast to [b.., i.., a..], or are a number. Options are as above; without
   them, updates of parts outside are dropped. As x.at[.., indices].set(updates), add, multiply, min, max. */
ax_value ax_at_set(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);
ax_value ax_at_add(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);
ax_value ax_at_mul(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);
ax_value ax_at_min(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);
ax_value ax_at_max(ax_value x, ax_value indices, ax_value updates, int64_t axis, const ax_index_options *options);

/* --- Order; any T. Ascending along a dimension: false before true, NaN last, -0 as 0. Equal elements keep their order. --- */
ax_value ax_sort(ax_value x, int64_t dimension); /* the elements in ascending order; as jnp.sort */
ax_value ax_argsort(ax_value x, int64_t dimension); /* s32: the places that the elements come from; as jnp.argsort. Errors besides:
                                                       more than s32 counts */
/* Sorts several operands alike: out[i] has the elements of xs[i] in the order that the first num_keys operands decide; a later key
   decides where earlier ones are equal. Operands have any dtypes and one shape. As jax.lax.sort. Errors besides: num_keys below 1
   or above count. */
void ax_sort_together(uint32_t count, const ax_value *xs, int64_t dimension, uint32_t num_keys, uint32_t out_count,
                      ax_value *out);
/* The same in the order that a function says. less: 2 count scalars, one of each operand for an element, then one of each for another,
   to a bool scalar: whether the first goes before the second. Elements that it puts in no order, or in both, keep theirs. It takes
   log2(n) (log2(n) + 1) / 2 passes; ax_sort_together, whose orders are known, is faster. All derivatives. As XLA's Sort with a
   comparator. Errors besides: less of other counts or types; more than 2^30 elements along the dimension. */
void ax_sort_by(uint32_t count, const ax_value *xs, int64_t dimension, ax_fn less, uint32_t out_count, ax_value *out);
/* out[0]: the k greatest along the last dimension, descending, T[.., k]; out[1]: s32, where they are. Floats are in total
   order (NaN greatest, -NaN least, 0 above -0); equal elements keep their order. As jax.lax.top_k. Errors besides: k below 0 or above the dimension. */
void ax_top_k(ax_value x, int64_t k, uint32_t out_count, ax_value *out);

/* --- Reductions: over the dimensions AX_DIMS(..), or AX_ALL_DIMS; keepdims: those stay, with size 1. T numeric, except where a
   function says otherwise --- */
/* The error of a sum of floats (and of means, and of all functions made of sums) does not grow with the number of terms. With u =
   2^-24 for f32, bf16 and f16, each result is off by at most 25 u times the sum of absolute values, before it is rounded to bf16
   or f16: up to 16 numbers in a row, and the few sums of those, are added in f32; larger numbers of sums are added in f64 and
   rounded once. In f64 the error does grow: the bound is n 2^-53 times the sum of absolute values of n numbers.
   Products of matrices and convolutions add up to 768 numbers in a row, and then these sums in a row. If a result of f32 or f64 is
   made of more than 16,384 numbers, the sums of runs of some 4,096 are added as if exactly. So a result is off by some 2 u times
   the sum of absolute values where numbers differ; by up to 100 u where all are the same, so that all additions err to one side;
   and never by more than 400 u. u is 2^-53 in f64.
   The order of additions is decided when a program is compiled, by shapes, by the other computations of the same pass and by the
   width of the machine's registers: an executable adds in the same order in every run, under every policy, with any number of
   workers. Another program, or the same with other arguments donated, may add in another, within these bounds. The reference
   evaluator adds in f64, in index order, and rounds once.
   A sum begins with 0, as XLA's do, so that a sum whose terms are all -0 is 0. */
ax_value ax_reduce_sum(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* over nothing: 0 */
ax_value ax_reduce_mean(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* T float */
ax_value ax_reduce_max(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* over nothing: the least T */
ax_value ax_reduce_min(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* over nothing: the greatest T */
/* Products of bf16, f16 and f32 are made in f64 and rounded once. */
ax_value ax_reduce_prod(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* over nothing: 1 */
/* T bool: true where any is, over nothing false; T an integer: bit by bit. */
ax_value ax_reduce_or(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
/* T bool: true where an odd number is; T an integer: bit by bit. As jax.lax.reduce_xor. */
ax_value ax_reduce_xor(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
/* T bool: true where all are, also over nothing; T an integer: bit by bit. */
ax_value ax_reduce_and(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
/* Combines the elements of several arrays of one shape over the axes: n operands T_k[d..], n starts T_k[] to n results T_k[the
   dimensions that are left]. body: 2n scalars, what is combined so far and then the next elements, to n scalars of the same dtypes;
   it must be associative, and need not be commutative: elements are combined in row-major order, in groups that are chosen when a
   program is compiled; the start comes first, once. Over nothing a result is its start. A body that is one operation of the
   reductions above, from its neutral element, is that reduction. As jax.lax.reduce; derivatives also in the starts.
   Errors besides: bodies that capture values of the trace, and other than operations on scalars in them (calls are fine). */
void ax_reduce(uint32_t count, const ax_value *operands, uint32_t start_count, const ax_value *starts, ax_fn body,
               uint32_t axis_count, const int64_t *axes, uint32_t out_count, ax_value *out);
/* log(sum(exp(x))) without overflow; -inf over nothing and where all are -inf. T float or complex. As jax.nn.logsumexp. */
ax_value ax_logsumexp(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
/* Each element becomes the sum, product, largest, smallest or logsumexp of the elements up to it along the axis; reverse: of those
   from it on. T numeric; float for cumlogsumexp. Integers wrap; sums of bf16 and f16 are made in f32; NaN wins in cummax and cummin.
   Sums have the errors of reduce_sum. All derivatives: at equal elements those of cummax and cummin are shared as by
   jax.lax.associative_scan of max and min. As jax.lax.cumsum, cumprod, cummax, cummin and cumlogsumexp. */
ax_value ax_cumsum(ax_value x, int64_t axis, bool reverse);
ax_value ax_cumprod(ax_value x, int64_t axis, bool reverse);
ax_value ax_cummax(ax_value x, int64_t axis, bool reverse);
ax_value ax_cummin(ax_value x, int64_t axis, bool reverse);
ax_value ax_cumlogsumexp(ax_value x, int64_t axis, bool reverse);
/* The index of the largest element along the axis, which drops out of the shape; of equal elements, the first; NaN counts as
   largest. Any T. The axis's size is not 0, and index_dtype is an integer dtype that can hold it. As jax.lax.argmax. */
ax_value ax_argmax(ax_value x, int64_t axis, ax_dtype index_dtype);
/* The same of the smallest element: false before true, and NaN counts as smallest. As jax.lax.argmin. */
ax_value ax_argmin(ax_value x, int64_t axis, ax_dtype index_dtype);

/* bool[]: |a - b| <= atol + rtol |b| for every element, as jnp.allclose: a NaN is close to nothing. T float or complex; broadcasts. */
ax_value ax_allclose(ax_value a, ax_value b, double rtol, double atol);

/* --- Products; T numeric --- */
/* Contracts lhs_contract[i] with rhs_contract[i], pairs lhs_batch[i] with rhs_batch[i]. Result: batch dimensions, then lhs's
   others, then rhs's others. A product of narrower floats than f32 is computed in f32 and rounded once. Products with vectors and of tiny
   matrices are sums as those of reduce_sum, of factors rounded to f32 first. Other products add up to 65,536 terms in this way:
   blocks of at most 384 (768 of bf16) in a row, each multiplication and its addition rounded as one where the processor can, and
   then the blocks' sums in a row. A longer sum is made of several such sums, added as reduce_sum adds; so is a shorter one that
   would otherwise give work to few threads only. Integers wrap. */
ax_value ax_dot_general(ax_value lhs, ax_value rhs, uint32_t lhs_contract_count, const int64_t *lhs_contract,
                        uint32_t rhs_contract_count, const int64_t *rhs_contract, uint32_t lhs_batch_count,
                        const int64_t *lhs_batch, uint32_t rhs_batch_count, const int64_t *rhs_batch);
ax_value ax_matmul(ax_value a, ax_value b); /* as NumPy's, ranks >= 1 */
/* "ij,jk->ik": a letter names a dimension of each operand that has it; the products of all operands' elements, summed over the
   letters that the result has not. As jnp.einsum: without "->" the result has the letters that are seen once, sorted, after the
   ellipsis; "..." stands for the dimensions that have no letter, aligned at their last; a letter twice in one operand is its
   diagonal; a dimension of 1 stretches. Blanks do not count. Any number of operands (at least one) of one dtype; they are
   multiplied two at a time, in the order that takes the fewest multiplications for up to eight, and in a good one for more. Errors
   besides: letters that do not fit an operand, sizes of a letter that differ, more than 64 different dimensions, or no order in
   which every product on the way has at most AX_MAX_RANK dimensions. */
ax_value ax_einsum(const char *subscripts, uint32_t count, const ax_value *xs);

/* --- Windows; T numeric --- */
/* Options of a convolution. Lists have one entry a spatial dimension, in the order in which rhs has them: .strides =
   {AX_DIMS(2, 2)}. {0}: 0 each for low and high, 1 each for the others. */
typedef struct ax_conv_options {
  /* A letter for each dimension: lhs and out have N (batch) and C (features), rhs has O (features of the result) and I (of lhs, or
     of one group of them); all other letters are spatial dimensions, the same in all three. NULL: "NCHW", "OIHW", and out as lhs,
     with as many letters behind the first two as there are spatial dimensions. As jax.lax's dimension_numbers. */
  const char *lhs, *rhs, *out;
  ax_dim_list strides, low, high, lhs_dilation, rhs_dilation; /* low and high: zeros added; negative: elements cut off */
  const char *padding; /* "SAME", "SAME_LOWER" or "VALID", in the place of low and high */
  int64_t feature_group_count, batch_group_count; /* 0: 1 */
  ax_dtype preferred_element_type; /* of the result, and of products where it is the wider: a float for floats; 0: that of the
                                      operands */
} ax_conv_options;
/* The convolution of lhs with a kernel, rhs: each element of the result is the sum of the products of the kernel with the window of
   lhs at its place, over all features; the kernel is not reversed. lhs: T[N, C, s..], rhs: T[O, I, k..], in the order of dimensions
   that options gives; any number of spatial dimensions. options NULL: {0}. As jax.lax.conv_general_dilated.
   Sums are as dot_general's: products are added up place by place of the kernel. Errors: those of `axle help conv_general_dilated`;
   letters that do not fit; lists of another number of entries than there are spatial dimensions; padding said twice; a dtype asked
   for that is a float where the operands are not, or the other way round. */
ax_value ax_conv_general_dilated(ax_value lhs, ax_value rhs, const ax_conv_options *options);
/* The same for images: lhs NCHW, rhs OIHW -> NCHW, as jax.lax.conv. strides NULL: 1 each; padding: "SAME", "SAME_LOWER", "VALID" or
   NULL, which is "VALID". */
ax_value ax_conv(ax_value lhs, ax_value rhs, uint32_t count, const int64_t *strides, const char *padding);

/* Options of reductions over windows. Lists have one entry a dimension. {0}: 0 each for low and high, 1 each for the others. */
typedef struct ax_window_options {
  ax_dim_list strides, low, high, base_dilation, window_dilation; /* low and high: padding that does not change the result;
                                                                     negative: elements cut off */
  const char *padding; /* "SAME", "SAME_LOWER" or "VALID", in the place of low and high */
} ax_window_options;
/* The sum, largest or smallest of each window: T[d..] -> T[n..]. window: its size, one entry a dimension. As jax.lax.reduce_window
   with add, max or min and its neutral value. Among equal elements the first in row-major order has the derivative, as in JAX.
   Errors besides: a window, stride or dilation below 1; lists of another number of entries than x has dimensions; padding said
   twice, or none of the three. */
ax_value ax_reduce_window_sum(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options);
ax_value ax_reduce_window_max(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options);
ax_value ax_reduce_window_min(ax_value x, uint32_t count, const int64_t *window, const ax_window_options *options);
/* For each window its element of `tangents` at the place where the operand is largest, or smallest: float T[d..], T[d..] -> T[n..];
   and the converse, zeros to which each window's element of `source`, T[n..], is added at that place: T[d..]. They are the derivatives
   of ax_reduce_window_max and _min, forwards and backwards, linear in their first operand. As JAX's select_and_gather_add and
   select_and_scatter_add with ge or le. Errors as above. */
ax_value ax_select_and_gather_add(ax_value tangents, ax_value operand, bool largest, uint32_t count, const int64_t *window,
                                  const ax_window_options *options);
ax_value ax_select_and_scatter_add(ax_value source, ax_value operand, bool largest, uint32_t count, const int64_t *window,
                                   const ax_window_options *options);
/* The same of any function, of several operands of one shape: n operands T_k[d..], n starts T_k[] -> n results T_k[n..]. body: 2n
   scalars, what stands before and then what follows, to n scalars; it must be associative. The places of a window are combined in
   row-major order behind the start, which also fills places without an element: padding, and those that base_dilation adds. It takes
   some 2 log2(size) applications along each dimension. All derivatives. As jax.lax.reduce_window. Errors besides: those of
   ax_reduce. */
void ax_reduce_window(uint32_t count, const ax_value *operands, uint32_t start_count, const ax_value *starts, ax_fn body,
                      uint32_t window_count, const int64_t *window, uint32_t out_count, ax_value *out, const ax_window_options *options);
/* Pooling of T[N, s.., C] over its `count` spatial dimensions. strides NULL: 1 each; padding: as ax_conv's. avg_pool: T float,
   divided by the number of the window's places, those of padding included. As flax.linen.max_pool and avg_pool. */
ax_value ax_max_pool(ax_value x, uint32_t window_count, const int64_t *window, uint32_t stride_count, const int64_t *strides,
                     const char *padding);
ax_value ax_avg_pool(ax_value x, uint32_t window_count, const int64_t *window, uint32_t stride_count, const int64_t *strides,
                     const char *padding);

/* --- Composites; T float. As those of jax.nn --- */
ax_value ax_softmax(ax_value x, int64_t axis); /* T[d..] -> T[d..]: along the axis, exp(x) over the sum of exp(x) */
ax_value ax_log_softmax(ax_value x, int64_t axis); /* its logarithm, without overflow */
/* Integers [d..] -> dtype[d.., classes]: 1 at the index, 0 elsewhere; all 0 for an index outside. */
ax_value ax_one_hot(ax_value indices, int64_t classes, ax_dtype dtype);
ax_value ax_relu(ax_value x); /* max(x, 0); or T an integer */
ax_value ax_softplus(ax_value x); /* log(1 + e^x), without overflow; its derivative is the logistic function, at 0 too */
ax_value ax_gelu(ax_value x); /* the tanh approximation, jax.nn.gelu's default */

/* --- Control flow; in blocks of C: axle/bodies.h. Functions may use values of the enclosing trace; their collectives are real
   ones. `in` has an entry for each operand of the function, `out` one for each result: lists that are too short are errors
   (axle/type.h). `in` and `out` may be one array. --- */
/* Calls the function and keeps it as one equation of the program, as jax.jit does inside a trace. Functions whose traces are equal
   programs from the same lines, such as equal layers of a model, are transformed, lowered and exported once for all of them. A call
   runs as fast as the equations written out. */
void ax_closed_call(ax_fn function, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* Runs `then` where the predicate, a bool scalar, holds, and `otherwise` where it does not. Both functions take `in` and return
   values of the same types. As jax.lax.cond. An error besides: a function that communicates along checked axes over which the
   predicate varies. */
void ax_if(ax_value predicate, ax_fn then, ax_fn otherwise, uint32_t in_count, const ax_value *in, uint32_t out_count,
           ax_value *out);
/* Runs branches[index]. index: an s32 scalar, clamped to 0 .. count - 1; count is 1 at least; otherwise as ax_if. As
   jax.lax.switch. */
void ax_switch(ax_value index, uint32_t count, const ax_fn *branches, uint32_t in_count, const ax_value *in, uint32_t out_count,
               ax_value *out);
/* Runs the body once for each slice of the arrays xs along dimension 0, in order; reverse: from the last to the first. Carries go
   from one run to the next; the ys of all runs are stacked along a new dimension 0. body: (carry.., x..) -> (carry.., y..): the
   first carry_count of each are carries. in: initial carries, then xs; out: final carries, then ys. length: the number of runs; it
   may be -1 when there are xs. All derivatives. As jax.lax.scan. */
void ax_scan(ax_fn body, uint32_t carry_count, int64_t length, bool reverse, uint32_t in_count, const ax_value *in,
             uint32_t out_count, ax_value *out);
/* The same with `unroll` steps in each round of the loop, and the steps left over after it; unroll >= length: no loop at all. Less is
   spent on rounds, and operations of neighbouring steps meet; the program is longer. Results are the same, but that long sums may be
   added up in another order. As jax.lax.scan with unroll. An error besides: unroll < 1. */
void ax_scan_unrolled(ax_fn body, uint32_t carry_count, int64_t length, bool reverse, int64_t unroll, uint32_t in_count,
                      const ax_value *in, uint32_t out_count, ax_value *out);
/* Combines the elements of arrays along an axis up to each place; reverse: from each place on. combine: (a.., b..) -> c.., with n
   parts each, where the parts of a stand before those of b, or in reverse behind them; it must be associative. It is applied to many
   places at once: its operands are arrays of the operands' rank and dtypes, of some size along the axis, and so are its results.
   in: n arrays of one size along the axis, which may count from the end; out: n arrays of their types. It takes some 2 log2(size)
   applications to 2 size elements. All derivatives. As jax.lax.associative_scan. Errors besides: combine with other than 2n inputs
   and n outputs; results of other types than its operands. */
void ax_associative_scan(ax_fn combine, int64_t axis, bool reverse, uint32_t in_count, const ax_value *in, uint32_t out_count,
                         ax_value *out);
/* f of each slice of the arrays `in` along dimension 0, one after the other; results are stacked along a new dimension 0. All
   derivatives. batch_size: of so many slices at a time, by ax_vmap; 0: one at a time. As jax.lax.map. Errors: no operand; operands
   of different lengths; those of a batched f. */
void ax_map(ax_fn f, int64_t batch_size, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* Runs the body as long as the condition of the carries, which is tested before each run, holds. condition: carry.. -> bool
   scalar; body: carry.. -> carry...
   in: initial carries; out: final ones. Forward derivatives only. As jax.lax.while_loop. An error besides: communication along
   checked axes over which the condition varies. */
void ax_while(ax_fn condition, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);
/* Runs the body for each index from lower to below upper. body: (index, carry..) -> (carry..); in: initial carries; out: final
   ones. If both bounds are C numbers, the loop is a scan: it has all derivatives, and the index is an s32, or an s64 if need be. So
   it is if a bound is a value of the trace that is made of scalar constants alone (ax_full of a count, or half of it). If a bound is
   another value, the loop is a while: it has forward derivatives only. The index has the dtype of a bound that is a value, an integer
   one. Two values have the same dtype. As jax.lax.fori_loop. */
void ax_fori_loop(ax_value lower, ax_value upper, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count,
                  ax_value *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts, memory with its dtype (axle/type.h) */
#define ax_constant(type, data) AX_LINED(constant, type, AX_MEMORY(data))
#define ax_full(dtype, dims, value) AX_LINED(full, dtype, AX_EXACTLY(dims), value)
#define ax_full_i64(dtype, dims, value) AX_LINED(full_i64, dtype, AX_EXACTLY(dims), value)
#define ax_iota(dtype, dims, dimension) AX_LINED(iota, dtype, AX_EXACTLY(dims), dimension)
#define ax_reshape(x, dims) AX_LINED(reshape, x, AX_EXACTLY(dims))
#define ax_broadcast_to(x, dims) AX_LINED(broadcast_to, x, AX_EXACTLY(dims))
#define ax_squeeze(x, dimensions) AX_LINED(squeeze, x, AX_EXACTLY(dimensions))
#define ax_rev(x, dimensions) AX_LINED(rev, x, AX_EXACTLY(dimensions))
#define ax_concatenate(xs, dimension) AX_LINED(concatenate, AX_EXACTLY(xs), dimension)
#define ax_stack(xs, dimension) AX_LINED(stack, AX_EXACTLY(xs), dimension)
#define ax_split(x, sizes, dimension, out) AX_LINED_VOID(split, x, AX_EXACTLY(sizes), dimension, AX_COUNTED(ax_value, out))
#define ax_sort_by(xs, dimension, less, out) \
  AX_LINED_VOID(sort_by, AX_COUNTED(ax_value, xs), dimension, less, AX_COUNTED(ax_value, out))
#define ax_sort_together(xs, dimension, num_keys, out) \
  AX_LINED_VOID(sort_together, AX_EXACTLY(xs), dimension, num_keys, AX_COUNTED(ax_value, out))
#define ax_optimization_barrier(xs, out) AX_LINED_VOID(optimization_barrier, AX_EXACTLY(xs), AX_COUNTED(ax_value, out))
#define ax_reduce_sum(x, axes, keepdims) AX_LINED(reduce_sum, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_mean(x, axes, keepdims) AX_LINED(reduce_mean, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_max(x, axes, keepdims) AX_LINED(reduce_max, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_min(x, axes, keepdims) AX_LINED(reduce_min, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_prod(x, axes, keepdims) AX_LINED(reduce_prod, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_or(x, axes, keepdims) AX_LINED(reduce_or, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_xor(x, axes, keepdims) AX_LINED(reduce_xor, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce_and(x, axes, keepdims) AX_LINED(reduce_and, x, AX_EXACTLY(axes), keepdims)
#define ax_reduce(operands, starts, body, axes, out) \
  AX_LINED_VOID(reduce, AX_COUNTED(ax_value, operands), AX_COUNTED(ax_value, starts), body, AX_EXACTLY(axes), AX_COUNTED(ax_value, out))
#define ax_logsumexp(x, axes, keepdims) AX_LINED(logsumexp, x, AX_EXACTLY(axes), keepdims)
#define ax_einsum(subscripts, xs) AX_LINED(einsum, subscripts, AX_COUNTED(ax_value, xs))

#define ax_transpose(x, permutation) AX_LINED(transpose, x, AX_COUNTED(int64_t, permutation))
#define ax_broadcast_in_dim(x, dims, broadcast_dimensions) \
  AX_LINED(broadcast_in_dim, x, AX_COUNTED(int64_t, dims), AX_COUNTED(int64_t, broadcast_dimensions))
#define ax_slice(x, start, limit, strides) \
  AX_LINED(slice, x, AX_COUNTED(int64_t, start), AX_COUNTED(int64_t, limit), AX_COUNTED(int64_t, strides))
#define ax_pad(x, value, low, high, interior) \
  AX_LINED(pad, x, AX_X(value), AX_COUNTED(int64_t, low), AX_COUNTED(int64_t, high), AX_COUNTED(int64_t, interior))
#define ax_dynamic_slice(x, starts, sizes) AX_LINED(dynamic_slice, x, AX_COUNTED(ax_value, starts), AX_COUNTED(int64_t, sizes))
#define ax_dynamic_update_slice(x, update, starts) AX_LINED(dynamic_update_slice, x, update, AX_COUNTED(ax_value, starts))
#define ax_reduce_window(operands, starts, body, window, out, ...) \
  AX_LINED_VOID(reduce_window, AX_COUNTED(ax_value, operands), AX_COUNTED(ax_value, starts), body, AX_COUNTED(int64_t, window), \
                AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_reduce_window_sum(x, window, ...) AX_LINED(reduce_window_sum, x, AX_COUNTED(int64_t, window), __VA_ARGS__)
#define ax_reduce_window_max(x, window, ...) AX_LINED(reduce_window_max, x, AX_COUNTED(int64_t, window), __VA_ARGS__)
#define ax_reduce_window_min(x, window, ...) AX_LINED(reduce_window_min, x, AX_COUNTED(int64_t, window), __VA_ARGS__)
#define ax_select_and_gather_add(tangents, operand, largest, window, ...) \
  AX_LINED(select_and_gather_add, tangents, operand, largest, AX_COUNTED(int64_t, window), __VA_ARGS__)
#define ax_select_and_scatter_add(source, operand, largest, window, ...) \
  AX_LINED(select_and_scatter_add, source, operand, largest, AX_COUNTED(int64_t, window), __VA_ARGS__)
#define ax_max_pool(x, window, strides, padding) \
  AX_LINED(max_pool, x, AX_COUNTED(int64_t, window), AX_COUNTED(int64_t, strides), padding)
#define ax_avg_pool(x, window, strides, padding) \
  AX_LINED(avg_pool, x, AX_COUNTED(int64_t, window), AX_COUNTED(int64_t, strides), padding)
#define ax_conv(lhs, rhs, strides, padding) AX_LINED(conv, lhs, rhs, AX_COUNTED(int64_t, strides), padding)
#define ax_scatter_apply(x, indices, f, update_shape, ...) \
  AX_LINED(scatter_apply, x, indices, f, AX_COUNTED(int64_t, update_shape), __VA_ARGS__)
#define ax_gather(x, indices, slice_sizes, ...) AX_LINED(gather, x, indices, AX_COUNTED(int64_t, slice_sizes), __VA_ARGS__)
#define ax_dot_general(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch) \
  AX_LINED(dot_general, lhs, rhs, AX_COUNTED(int64_t, lhs_contract), AX_COUNTED(int64_t, rhs_contract), \
           AX_COUNTED(int64_t, lhs_batch), AX_COUNTED(int64_t, rhs_batch))
#define ax_top_k(x, k, out) AX_LINED_VOID(top_k, x, k, AX_COUNTED(ax_value, out))
#define ax_closed_call(function, in, out) AX_LINED_VOID(closed_call, function, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_if(predicate, then, otherwise, in, out) \
  AX_LINED_VOID(if, predicate, then, otherwise, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_switch(index, branches, in, out) \
  AX_LINED_VOID(switch, index, AX_COUNTED(ax_fn, branches), AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_scan(body, carry_count, length, reverse, in, out) \
  AX_LINED_VOID(scan, body, carry_count, length, reverse, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_associative_scan(combine, axis, reverse, in, out) \
  AX_LINED_VOID(associative_scan, combine, axis, reverse, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_scan_unrolled(body, carry_count, length, reverse, unroll, in, out) \
  AX_LINED_VOID(scan_unrolled, body, carry_count, length, reverse, unroll, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_map(f, batch_size, in, out) AX_LINED_VOID(map, f, batch_size, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_while(condition, body, in, out) \
  AX_LINED_VOID(while, condition, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_fori_loop(lower, upper, body, in, out) \
  AX_LINED_VOID(fori_loop, AX_X(lower), AX_X(upper), body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_full_like(...) AX_LINED(full_like, __VA_ARGS__)
#define ax_add(a, b) AX_LINED(add, AX_X(a), AX_X(b))
#define ax_sub(a, b) AX_LINED(sub, AX_X(a), AX_X(b))
#define ax_mul(a, b) AX_LINED(mul, AX_X(a), AX_X(b))
#define ax_div(a, b) AX_LINED(div, AX_X(a), AX_X(b))
#define ax_rem(a, b) AX_LINED(rem, AX_X(a), AX_X(b))
#define ax_max(a, b) AX_LINED(max, AX_X(a), AX_X(b))
#define ax_min(a, b) AX_LINED(min, AX_X(a), AX_X(b))
#define ax_pow(a, b) AX_LINED(pow, AX_X(a), AX_X(b))
#define ax_neg(...) AX_LINED(neg, __VA_ARGS__)
#define ax_abs(...) AX_LINED(abs, __VA_ARGS__)
#define ax_sign(...) AX_LINED(sign, __VA_ARGS__)
#define ax_floor(...) AX_LINED(floor, __VA_ARGS__)
#define ax_ceil(...) AX_LINED(ceil, __VA_ARGS__)
#define ax_round(...) AX_LINED(round, __VA_ARGS__)
#define ax_exp(...) AX_LINED(exp, __VA_ARGS__)
#define ax_log(...) AX_LINED(log, __VA_ARGS__)
#define ax_log1p(...) AX_LINED(log1p, __VA_ARGS__)
#define ax_expm1(...) AX_LINED(expm1, __VA_ARGS__)
#define ax_sin(...) AX_LINED(sin, __VA_ARGS__)
#define ax_cos(...) AX_LINED(cos, __VA_ARGS__)
#define ax_tanh(...) AX_LINED(tanh, __VA_ARGS__)
#define ax_logistic(...) AX_LINED(logistic, __VA_ARGS__)
#define ax_sqrt(...) AX_LINED(sqrt, __VA_ARGS__)
#define ax_rsqrt(...) AX_LINED(rsqrt, __VA_ARGS__)
#define ax_erf(...) AX_LINED(erf, __VA_ARGS__)
#define ax_exp2(...) AX_LINED(exp2, __VA_ARGS__)
#define ax_cbrt(...) AX_LINED(cbrt, __VA_ARGS__)
#define ax_tan(...) AX_LINED(tan, __VA_ARGS__)
#define ax_asin(...) AX_LINED(asin, __VA_ARGS__)
#define ax_acos(...) AX_LINED(acos, __VA_ARGS__)
#define ax_atan(...) AX_LINED(atan, __VA_ARGS__)
#define ax_sinh(...) AX_LINED(sinh, __VA_ARGS__)
#define ax_cosh(...) AX_LINED(cosh, __VA_ARGS__)
#define ax_asinh(...) AX_LINED(asinh, __VA_ARGS__)
#define ax_acosh(...) AX_LINED(acosh, __VA_ARGS__)
#define ax_atanh(...) AX_LINED(atanh, __VA_ARGS__)
#define ax_erfc(...) AX_LINED(erfc, __VA_ARGS__)
#define ax_atan2(y, x) AX_LINED(atan2, AX_X(y), AX_X(x))
#define ax_erf_inv(...) AX_LINED(erf_inv, __VA_ARGS__)
#define ax_lgamma(...) AX_LINED(lgamma, __VA_ARGS__)
#define ax_digamma(...) AX_LINED(digamma, __VA_ARGS__)
#define ax_polygamma(n, x) AX_LINED(polygamma, AX_X(n), AX_X(x))
#define ax_zeta(s, q) AX_LINED(zeta, AX_X(s), AX_X(q))
#define ax_bessel_i0e(...) AX_LINED(bessel_i0e, __VA_ARGS__)
#define ax_bessel_i1e(...) AX_LINED(bessel_i1e, __VA_ARGS__)
#define ax_real_part(...) AX_LINED(real_part, __VA_ARGS__)
#define ax_imag_part(...) AX_LINED(imag_part, __VA_ARGS__)
#define ax_complex(x, y) AX_LINED(complex, AX_X(x), AX_X(y))
#define ax_conj(...) AX_LINED(conj, __VA_ARGS__)
#define ax_accurate(...) AX_LINED(accurate, __VA_ARGS__)
#define ax_integer_pow(...) AX_LINED(integer_pow, __VA_ARGS__)
#define ax_eq(a, b) AX_LINED(eq, AX_X(a), AX_X(b))
#define ax_ne(a, b) AX_LINED(ne, AX_X(a), AX_X(b))
#define ax_lt(a, b) AX_LINED(lt, AX_X(a), AX_X(b))
#define ax_le(a, b) AX_LINED(le, AX_X(a), AX_X(b))
#define ax_gt(a, b) AX_LINED(gt, AX_X(a), AX_X(b))
#define ax_ge(a, b) AX_LINED(ge, AX_X(a), AX_X(b))
#define ax_and(a, b) AX_LINED(and, AX_X(a), AX_X(b))
#define ax_or(a, b) AX_LINED(or, AX_X(a), AX_X(b))
#define ax_not(...) AX_LINED(not, __VA_ARGS__)
#define ax_select_n(...) AX_LINED(select_n, __VA_ARGS__)
#define ax_where(condition, x, y) AX_LINED(where, condition, AX_X(x), AX_X(y))
#define ax_convert_element_type(...) AX_LINED(convert_element_type, __VA_ARGS__)
#define ax_stop_gradient(...) AX_LINED(stop_gradient, __VA_ARGS__)
#define ax_xor(a, b) AX_LINED(xor, AX_X(a), AX_X(b))
#define ax_shift_left(x, amount) AX_LINED(shift_left, AX_X(x), AX_X(amount))
#define ax_shift_right_logical(x, amount) AX_LINED(shift_right_logical, AX_X(x), AX_X(amount))
#define ax_shift_right_arithmetic(x, amount) AX_LINED(shift_right_arithmetic, AX_X(x), AX_X(amount))
#define ax_population_count(...) AX_LINED(population_count, __VA_ARGS__)
#define ax_clz(...) AX_LINED(clz, __VA_ARGS__)
#define ax_ctz(...) AX_LINED(ctz, __VA_ARGS__)
#define ax_bitcast_convert_type(...) AX_LINED(bitcast_convert_type, __VA_ARGS__)
#define ax_is_finite(...) AX_LINED(is_finite, __VA_ARGS__)
#define ax_nextafter(x, y) AX_LINED(nextafter, AX_X(x), AX_X(y))
#define ax_reduce_precision(...) AX_LINED(reduce_precision, __VA_ARGS__)
#define ax_round_nearest_afz(...) AX_LINED(round_nearest_afz, __VA_ARGS__)
#define ax_conv_general_dilated(...) AX_LINED(conv_general_dilated, __VA_ARGS__)
#define ax_expand_dims(...) AX_LINED(expand_dims, __VA_ARGS__)
#define ax_argmax(...) AX_LINED(argmax, __VA_ARGS__)
#define ax_argmin(...) AX_LINED(argmin, __VA_ARGS__)
#define ax_matmul(...) AX_LINED(matmul, __VA_ARGS__)
#define ax_softmax(...) AX_LINED(softmax, __VA_ARGS__)
#define ax_log_softmax(...) AX_LINED(log_softmax, __VA_ARGS__)
#define ax_one_hot(...) AX_LINED(one_hot, __VA_ARGS__)
#define ax_softplus(...) AX_LINED(softplus, __VA_ARGS__)
#define ax_relu(...) AX_LINED(relu, __VA_ARGS__)
#define ax_gelu(...) AX_LINED(gelu, __VA_ARGS__)
#define ax_scatter(...) AX_LINED(scatter, __VA_ARGS__)
#define ax_scatter_add(...) AX_LINED(scatter_add, __VA_ARGS__)
#define ax_scatter_mul(...) AX_LINED(scatter_mul, __VA_ARGS__)
#define ax_scatter_min(...) AX_LINED(scatter_min, __VA_ARGS__)
#define ax_scatter_max(...) AX_LINED(scatter_max, __VA_ARGS__)
#define ax_scatter_sub(...) AX_LINED(scatter_sub, __VA_ARGS__)
#define ax_sort(...) AX_LINED(sort, __VA_ARGS__)
#define ax_argsort(...) AX_LINED(argsort, __VA_ARGS__)
#define ax_take(...) AX_LINED(take, __VA_ARGS__)
#define ax_take_with(...) AX_LINED(take_with, __VA_ARGS__)
#define ax_take_along_axis(...) AX_LINED(take_along_axis, __VA_ARGS__)
#define ax_at_set(x, indices, updates, ...) AX_LINED(at_set, x, indices, AX_X(updates), __VA_ARGS__)
#define ax_at_add(x, indices, updates, ...) AX_LINED(at_add, x, indices, AX_X(updates), __VA_ARGS__)
#define ax_at_mul(x, indices, updates, ...) AX_LINED(at_mul, x, indices, AX_X(updates), __VA_ARGS__)
#define ax_at_min(x, indices, updates, ...) AX_LINED(at_min, x, indices, AX_X(updates), __VA_ARGS__)
#define ax_at_max(x, indices, updates, ...) AX_LINED(at_max, x, indices, AX_X(updates), __VA_ARGS__)
#define ax_cumsum(...) AX_LINED(cumsum, __VA_ARGS__)
#define ax_cumprod(...) AX_LINED(cumprod, __VA_ARGS__)
#define ax_cummax(...) AX_LINED(cummax, __VA_ARGS__)
#define ax_cummin(...) AX_LINED(cummin, __VA_ARGS__)
#define ax_cumlogsumexp(...) AX_LINED(cumlogsumexp, __VA_ARGS__)
#define ax_mod(a, b) AX_LINED(mod, AX_X(a), AX_X(b))
#define ax_floor_divide(a, b) AX_LINED(floor_divide, AX_X(a), AX_X(b))
#define ax_square(...) AX_LINED(square, __VA_ARGS__)
#define ax_allclose(a, b, ...) AX_LINED(allclose, AX_X(a), AX_X(b), __VA_ARGS__)
#define ax_clamp(low, x, high) AX_LINED(clamp, AX_X(low), AX_X(x), AX_X(high))
#define ax_moveaxis(...) AX_LINED(moveaxis, __VA_ARGS__)
#define ax_swapaxes(...) AX_LINED(swapaxes, __VA_ARGS__)
#define ax_matrix_transpose(...) AX_LINED(matrix_transpose, __VA_ARGS__)
#define ax_index(...) AX_LINED(index, __VA_ARGS__)
#define ax_index_set(x, text, part) AX_LINED(index_set, x, text, AX_X(part))
#define ax_slice_in_dim(...) AX_LINED(slice_in_dim, __VA_ARGS__)
#define ax_at(...) AX_LINED(at, __VA_ARGS__)
#define ax_dynamic_at(x, index, dimension) AX_LINED(dynamic_at, x, AX_X(index), dimension)
#define ax_dynamic_at_set(x, row, index, dimension) AX_LINED(dynamic_at_set, x, AX_X(row), AX_X(index), dimension)
#define ax_dynamic_slice_in_dim(x, start, ...) AX_LINED(dynamic_slice_in_dim, x, AX_X(start), __VA_ARGS__)
#define ax_dynamic_update_slice_in_dim(x, update, start, ...) AX_LINED(dynamic_update_slice_in_dim, x, update, AX_X(start), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
