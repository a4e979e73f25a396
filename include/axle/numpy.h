/* Functions of jax.numpy that axle/ops.h has not: made of its operations. Each adds equations to the trace in progress; errors
   poison the result (axle/ops.h). Values and derivatives are JAX's. Operands broadcast, lists of dimensions and errors are as in
   axle/ops.h. */
#ifndef AXLE_NUMPY_H
#define AXLE_NUMPY_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- New arrays --- */
/* T[num, s..]: equal steps from start to stop, T[s..] or numbers; T float. The last is `stop` if endpoint, else one step before
   it. As jnp.linspace. */
ax_value ax_linspace(ax_dtype dtype, ax_value start, ax_value stop, int64_t num, bool endpoint);
/* T[n]: start, start + step, .. up to before stop. Integers: start and step are whole. As jnp.arange. */
ax_value ax_arange(ax_dtype dtype, double start, double stop, double step);
ax_value ax_eye(ax_dtype dtype, int64_t n, int64_t m, int64_t k); /* T[n, m]: 1 where column - row is k, else 0; as jnp.eye */
ax_value ax_tri(ax_dtype dtype, int64_t n, int64_t m, int64_t k); /* T[n, m]: 1 where column - row <= k; as jnp.tri */
/* Vectors T[n], or scalars, each repeated along the dimensions of the others: out[i] is T[n0, n1, ..], and with ij false the first
   two dimensions change places. As jnp.meshgrid, indexing "ij" or "xy". */
void ax_meshgrid(uint32_t count, const ax_value *xs, bool ij, uint32_t out_count, ax_value *out);

/* --- Triangles and diagonals; any T --- */
ax_value ax_tril(ax_value x, int64_t k); /* T[.., n, m]: 0 where column - row > k; as jnp.tril */
ax_value ax_triu(ax_value x, int64_t k); /* T[.., n, m]: 0 where column - row < k; as jnp.triu */
/* T[n] -> a square matrix with x on the diagonal where column - row is k; T[n, m] -> that diagonal. As jnp.diag. */
ax_value ax_diag(ax_value x, int64_t k);
/* The diagonals along two axes where the second index less the first is offset: these axes drop out, and the diagonal is the last
   dimension. As jnp.diagonal. ax_matrix_trace: their sums, T numeric, as jnp.trace. */
ax_value ax_diagonal(ax_value x, int64_t offset, int64_t axis1, int64_t axis2);
ax_value ax_matrix_trace(ax_value x, int64_t offset, int64_t axis1, int64_t axis2);

/* --- Elements in other places; any T --- */
/* x repeated reps[d] times along each dimension; missing ones, of x or of reps, are 1 at the front. As jnp.tile. */
ax_value ax_tile(ax_value x, uint32_t count, const int64_t *reps);
ax_value ax_repeat_elements(ax_value x, int64_t repeats, int64_t axis); /* each element so often, one after the other; as
                                                                           jnp.repeat */
/* Moved by shifts[i] along axes[i], round the end; AX_ALL_DIMS: one shift, along x as a vector. As jnp.roll. */
ax_value ax_roll(ax_value x, uint32_t shift_count, const int64_t *shifts, uint32_t count, const int64_t *axes);
ax_value ax_flip(ax_value x, uint32_t count, const int64_t *axes); /* in reverse order along these; as jnp.flip */
ax_value ax_fliplr(ax_value x); /* along dimension 1 */
ax_value ax_flipud(ax_value x); /* along dimension 0 */
ax_value ax_rot90(ax_value x, int64_t k, int64_t axis1, int64_t axis2); /* turned k times from axis1 to axis2; as jnp.rot90 */
ax_value ax_hstack(uint32_t count, const ax_value *xs); /* along dimension 1, vectors and scalars along 0; as jnp.hstack */
ax_value ax_vstack(uint32_t count, const ax_value *xs); /* along dimension 0; vectors are rows; as jnp.vstack */
ax_value ax_dstack(uint32_t count, const ax_value *xs); /* along dimension 2, which is added; as jnp.dstack */
ax_value ax_column_stack(uint32_t count, const ax_value *xs); /* as hstack; vectors are columns; as jnp.column_stack */
/* x cut along the axis in `sections` parts, the first of which may be longer by one. As jnp.array_split. */
void ax_array_split(ax_value x, int64_t sections, int64_t axis, uint32_t out_count, ax_value *out);
/* The first of the choices whose condition, bool, holds; else `otherwise`, which may be a number. All broadcast. As jnp.select. */
ax_value ax_select(uint32_t count, const ax_value *conditions, uint32_t choice_count, const ax_value *choices, ax_value otherwise);

/* --- Fourier transforms along a dimension of any size, or of several; c64 of f32 and c64, c128 of f64 and c128 (`axle help fft`). Errors:
   other dtypes; a dimension without elements. --- */
ax_value ax_fft(ax_value x, int64_t axis);  /* y[k] = sum over j of x[j] exp(-2 pi i j k / n); as jnp.fft.fft */
ax_value ax_ifft(ax_value x, int64_t axis); /* its inverse, with exp(2 pi i j k / n) / n; as jnp.fft.ifft */
/* Of n real numbers the first n / 2 + 1 of fft's, which the others are conjugates of; as jnp.fft.rfft. And back, n of them; n 0: twice
   the number given, less 2; imaginary parts that real numbers do not have are ignored. As jnp.fft.irfft; an error besides: an operand
   that has not n / 2 + 1. */
ax_value ax_rfft(ax_value x, int64_t axis);
ax_value ax_irfft(ax_value x, int64_t n, int64_t axis);
/* Along several dimensions; rfftn and irfftn: the last of these has the real numbers, n of them as above. As jnp.fft.fftn, .. */
ax_value ax_fftn(ax_value x, uint32_t count, const int64_t *axes);
ax_value ax_ifftn(ax_value x, uint32_t count, const int64_t *axes);
ax_value ax_rfftn(ax_value x, uint32_t count, const int64_t *axes);
ax_value ax_irfftn(ax_value x, int64_t n, uint32_t count, const int64_t *axes);
/* T[n], or T[n / 2 + 1]: the frequencies of fft, or rfft, of n samples `spacing` apart; T f32 or f64, n below 2^31. As
   jnp.fft.fftfreq. */
ax_value ax_fftfreq(ax_dtype dtype, int64_t n, double spacing);
ax_value ax_rfftfreq(ax_dtype dtype, int64_t n, double spacing);
/* Any T: frequency 0 from the first place to the middle, and back. As jnp.fft.fftshift. */
ax_value ax_fftshift(ax_value x, uint32_t count, const int64_t *axes);
ax_value ax_ifftshift(ax_value x, uint32_t count, const int64_t *axes);

/* --- By element --- */
ax_value ax_clip(ax_value x, ax_value low, ax_value high); /* min(max(x, low), high), T numeric; derivatives are shared at a bound;
                                                              as jnp.clip */
/* bool: |a - b| <= atol + rtol |b|, or equal; T float or complex. As jnp.isclose. */
ax_value ax_isclose(ax_value a, ax_value b, double rtol, double atol, bool equal_nan);
/* T float: NaN and infinities replaced by these numbers; an infinite one: by the greatest or least of T. As jnp.nan_to_num. */
ax_value ax_nan_to_num(ax_value x, double nan, double posinf, double neginf);
/* Differences of neighbours along the axis, n times; T numeric. As jnp.diff. */
ax_value ax_diff(ax_value x, int64_t n, int64_t axis);

/* --- Products; T numeric --- */
ax_value ax_outer(ax_value a, ax_value b); /* T[m], T[n] -> T[m, n]; other shapes as vectors; as jnp.outer */
ax_value ax_inner(ax_value a, ax_value b); /* sums over the last dimension of both; of a scalar, the product; as jnp.inner */
ax_value ax_vdot(ax_value a, ax_value b); /* the sum of all products of elements, of complex a's conjugates; as jnp.vdot */
/* Sums of products along the axis of both, of complex a's conjugates; the other dimensions broadcast. As jnp.vecdot. */
ax_value ax_vecdot(ax_value a, ax_value b, int64_t axis);
/* Sums over a_axes[i] and b_axes[i] together: a's other dimensions, then b's. As jnp.tensordot. */
ax_value ax_tensordot(ax_value a, ax_value b, uint32_t a_count, const int64_t *a_axes, uint32_t b_count, const int64_t *b_axes);
ax_value ax_kron(ax_value a, ax_value b); /* every element of a times all of b, of one rank; as jnp.kron */
ax_value ax_cross(ax_value a, ax_value b, int64_t axis); /* the vector product along an axis of 3; they broadcast; as jnp.cross */
/* T[n], T[m]: sums of products of one with the other slid over it; convolve reverses it, correlate takes v's conjugates. mode: "full", "same", "valid";
   NULL: "full" of convolve, "valid" of correlate. As jnp.convolve and jnp.correlate. */
ax_value ax_convolve(ax_value a, ax_value v, const char *mode);
ax_value ax_correlate(ax_value a, ax_value v, const char *mode);

/* --- Statistics; T float; but for extremes, quantiles and histograms also complex, where variances are floats --- */
/* The mean of (x - mean)^2, where the number of elements is counted less ddof; NaN where that is not positive. As jnp.var;
   ax_std: its square root. bf16 and f16: in f32, rounded once. */
ax_value ax_var(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims);
ax_value ax_std(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims);
/* Reductions over the elements where `where`, bool, which broadcasts to x, holds: 0, NaN, the least or greatest T over none. As
   jnp.sum(x, where=..) and so on. sum, max and min: T numeric. */
ax_value ax_reduce_sum_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_reduce_mean_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_reduce_max_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_reduce_min_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_var_where(ax_value x, ax_value where, uint32_t count, const int64_t *axes, double ddof, bool keepdims);
/* Reductions over the elements that are not NaN: 0 over none, and of the others NaN. As jnp.nansum and so on. */
ax_value ax_nansum(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_nanmean(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_nanmax(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_nanmin(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_nanvar(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims);
ax_value ax_nanstd(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims);
/* The mean, each element with its weight, T, which broadcasts to x. As jnp.average. */
ax_value ax_average(ax_value x, ax_value weights, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_ptp(ax_value x, uint32_t count, const int64_t *axes, bool keepdims); /* the greatest less the least; T numeric */
/* T[v, n], n observations of v variables (rowvar false: T[n, v]), or T[n] -> T[v, v], or T[]: covariances, with n - ddof for n. As
   jnp.cov, whose ddof is 1. ax_corrcoef: divided by both standard deviations, as jnp.corrcoef. */
ax_value ax_cov(ax_value x, bool rowvar, double ddof);
ax_value ax_corrcoef(ax_value x, bool rowvar);
/* The element that the share q, 0 .. 1, of the others along these dimensions is below: q is a number, or U[k], U float, whose
   results stand along a new dimension in front. method, where q falls between two elements: "linear" (also NULL), "lower",
   "higher", "midpoint", "nearest"; or "inverted_cdf". NaN where there is one. As jnp.quantile; percentile: q in 0 .. 100; median:
   q of 0.5, midpoint; nanquantile and nanmedian, q a number: of the elements that are not NaN. */
ax_value ax_quantile(ax_value x, ax_value q, uint32_t count, const int64_t *axes, const char *method, bool keepdims);
ax_value ax_percentile(ax_value x, ax_value q, uint32_t count, const int64_t *axes, const char *method, bool keepdims);
ax_value ax_median(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_nanquantile(ax_value x, double q, uint32_t count, const int64_t *axes, const char *method, bool keepdims);
ax_value ax_nanmedian(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);

/* --- Search and counts --- */
/* T[n] ascending, values T[d..] -> s32[d..]: where each value may be put so that the order stays; before equal elements, or with
   right behind them. NaN is the greatest. As jnp.searchsorted. Up to 128 elements are all compared, of more half is left at each
   step. */
ax_value ax_searchsorted(ax_value sorted, ax_value values, bool right);
/* T[d..], bins T[n], which ascend or descend -> s32[d..]: the number of the bin; bins are closed at their right end if right, else
   at their left. As jnp.digitize. */
ax_value ax_digitize(ax_value x, ax_value bins, bool right);
/* integers [n] -> U[length]: how often each index is there, s32, or the sums of its weights, U[n]; {0}: no weights. An index
   below 0 counts as 0, one from length on is dropped. As jnp.bincount. */
ax_value ax_bincount(ax_value x, ax_value weights, int64_t length);
/* T[b + 1] edges of b equal bins from the least to the greatest element. As jnp.histogram_bin_edges. T float. */
ax_value ax_histogram_bin_edges(ax_value x, int64_t bins);
/* T[d..], edges T[b + 1], ascending -> T[b]: how many elements are in each bin, or the sums of their weights, T[d..]; {0}: none.
   The last bin has its right edge too. As jnp.histogram's first result. T float. */
ax_value ax_histogram(ax_value x, ax_value edges, ax_value weights);
/* x T[d..] -> values at x of the line through (xp, fp), T[n] both, xp ascending; beyond it, its ends. T float. As jnp.interp. */
ax_value ax_interp(ax_value x, ax_value xp, ax_value fp);
/* out[0] T[size]: x's different values, ascending, filled up with fill_value, a number; {0}: the least; out[1] s32[size]: the first
   place of each in x as a vector, and where filled up that of the least; out[2] s32[n]: for each element of x the place of its
   value; out[3] s32[size]: how often each value is there. NaN is one value. As jnp.unique with `size` and all results. Errors
   besides: an x of no elements. */
void ax_unique(ax_value x, int64_t size, ax_value fill_value, uint32_t out_count, ax_value *out);
/* out[d] s32[size]: index d of the elements that are not 0, in order, filled up with fill_value. As jnp.nonzero with `size`. */
void ax_nonzero(ax_value x, int64_t size, int64_t fill_value, uint32_t out_count, ax_value *out);

/* --- Images; T float, "nearest" any T --- */
/* x resized to these dimensions, one each of x. method: "nearest", "linear", "cubic", "lanczos3", "lanczos5"; antialias: where the
   image becomes smaller, each element is a mean of more. As jax.image.resize, whose antialias is true. */
ax_value ax_image_resize(ax_value x, uint32_t rank, const int64_t *dims, const char *method, bool antialias);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_meshgrid(xs, ij, out) AX_LINED_VOID(meshgrid, AX_EXACTLY(xs), ij, AX_COUNTED(ax_value, out))
#define ax_tile(x, reps) AX_LINED(tile, x, AX_EXACTLY(reps))
#define ax_roll(x, shifts, axes) AX_LINED(roll, x, AX_COUNTED(int64_t, shifts), AX_EXACTLY(axes))
#define ax_flip(x, axes) AX_LINED(flip, x, AX_EXACTLY(axes))
#define ax_hstack(xs) AX_LINED(hstack, AX_EXACTLY(xs))
#define ax_vstack(xs) AX_LINED(vstack, AX_EXACTLY(xs))
#define ax_dstack(xs) AX_LINED(dstack, AX_EXACTLY(xs))
#define ax_column_stack(xs) AX_LINED(column_stack, AX_EXACTLY(xs))
#define ax_array_split(x, sections, axis, out) AX_LINED_VOID(array_split, x, sections, axis, AX_COUNTED(ax_value, out))
#define ax_select(conditions, choices, otherwise) \
  AX_LINED(select, AX_EXACTLY(conditions), AX_COUNTED(ax_value, choices), AX_X(otherwise))
#define ax_tensordot(a, b, a_axes, b_axes) AX_LINED(tensordot, a, b, AX_EXACTLY(a_axes), AX_COUNTED(int64_t, b_axes))
#define ax_var(x, axes, ddof, keepdims) AX_LINED(var, x, AX_EXACTLY(axes), ddof, keepdims)
#define ax_std(x, axes, ddof, keepdims) AX_LINED(std, x, AX_EXACTLY(axes), ddof, keepdims)
#define ax_reduce_sum_where(x, where, axes, keepdims) AX_LINED(reduce_sum_where, x, where, AX_EXACTLY(axes), keepdims)
#define ax_reduce_mean_where(x, where, axes, keepdims) AX_LINED(reduce_mean_where, x, where, AX_EXACTLY(axes), keepdims)
#define ax_reduce_max_where(x, where, axes, keepdims) AX_LINED(reduce_max_where, x, where, AX_EXACTLY(axes), keepdims)
#define ax_reduce_min_where(x, where, axes, keepdims) AX_LINED(reduce_min_where, x, where, AX_EXACTLY(axes), keepdims)
#define ax_var_where(x, where, axes, ddof, keepdims) AX_LINED(var_where, x, where, AX_EXACTLY(axes), ddof, keepdims)
#define ax_nansum(x, axes, keepdims) AX_LINED(nansum, x, AX_EXACTLY(axes), keepdims)
#define ax_fftn(x, axes) AX_LINED(fftn, x, AX_COUNTED(int64_t, axes))
#define ax_ifftn(x, axes) AX_LINED(ifftn, x, AX_COUNTED(int64_t, axes))
#define ax_rfftn(x, axes) AX_LINED(rfftn, x, AX_COUNTED(int64_t, axes))
#define ax_irfftn(x, n, axes) AX_LINED(irfftn, x, n, AX_COUNTED(int64_t, axes))
#define ax_fftshift(x, axes) AX_LINED(fftshift, x, AX_COUNTED(int64_t, axes))
#define ax_ifftshift(x, axes) AX_LINED(ifftshift, x, AX_COUNTED(int64_t, axes))
#define ax_nanmean(x, axes, keepdims) AX_LINED(nanmean, x, AX_EXACTLY(axes), keepdims)
#define ax_nanmax(x, axes, keepdims) AX_LINED(nanmax, x, AX_EXACTLY(axes), keepdims)
#define ax_nanmin(x, axes, keepdims) AX_LINED(nanmin, x, AX_EXACTLY(axes), keepdims)
#define ax_nanvar(x, axes, ddof, keepdims) AX_LINED(nanvar, x, AX_EXACTLY(axes), ddof, keepdims)
#define ax_nanstd(x, axes, ddof, keepdims) AX_LINED(nanstd, x, AX_EXACTLY(axes), ddof, keepdims)
#define ax_average(x, weights, axes, keepdims) AX_LINED(average, x, weights, AX_EXACTLY(axes), keepdims)
#define ax_ptp(x, axes, keepdims) AX_LINED(ptp, x, AX_EXACTLY(axes), keepdims)
#define ax_quantile(x, q, axes, method, keepdims) AX_LINED(quantile, x, AX_X(q), AX_EXACTLY(axes), method, keepdims)
#define ax_percentile(x, q, axes, method, keepdims) AX_LINED(percentile, x, AX_X(q), AX_EXACTLY(axes), method, keepdims)
#define ax_median(x, axes, keepdims) AX_LINED(median, x, AX_EXACTLY(axes), keepdims)
#define ax_nanquantile(x, q, axes, method, keepdims) AX_LINED(nanquantile, x, q, AX_EXACTLY(axes), method, keepdims)
#define ax_nanmedian(x, axes, keepdims) AX_LINED(nanmedian, x, AX_EXACTLY(axes), keepdims)
#define ax_unique(x, size, fill_value, out) AX_LINED_VOID(unique, x, size, AX_X(fill_value), AX_COUNTED(ax_value, out))
#define ax_nonzero(x, size, fill_value, out) AX_LINED_VOID(nonzero, x, size, fill_value, AX_COUNTED(ax_value, out))
#define ax_image_resize(x, dims, method, antialias) AX_LINED(image_resize, x, AX_EXACTLY(dims), method, antialias)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_fft(...) AX_LINED(fft, __VA_ARGS__)
#define ax_ifft(...) AX_LINED(ifft, __VA_ARGS__)
#define ax_rfft(...) AX_LINED(rfft, __VA_ARGS__)
#define ax_irfft(...) AX_LINED(irfft, __VA_ARGS__)
#define ax_fftfreq(...) AX_LINED(fftfreq, __VA_ARGS__)
#define ax_rfftfreq(...) AX_LINED(rfftfreq, __VA_ARGS__)
#define ax_linspace(dtype, start, stop, ...) AX_LINED(linspace, dtype, AX_X(start), AX_X(stop), __VA_ARGS__)
#define ax_arange(...) AX_LINED(arange, __VA_ARGS__)
#define ax_eye(...) AX_LINED(eye, __VA_ARGS__)
#define ax_tri(...) AX_LINED(tri, __VA_ARGS__)
#define ax_tril(...) AX_LINED(tril, __VA_ARGS__)
#define ax_triu(...) AX_LINED(triu, __VA_ARGS__)
#define ax_diag(...) AX_LINED(diag, __VA_ARGS__)
#define ax_diagonal(...) AX_LINED(diagonal, __VA_ARGS__)
#define ax_matrix_trace(...) AX_LINED(matrix_trace, __VA_ARGS__)
#define ax_repeat_elements(...) AX_LINED(repeat_elements, __VA_ARGS__)
#define ax_fliplr(...) AX_LINED(fliplr, __VA_ARGS__)
#define ax_flipud(...) AX_LINED(flipud, __VA_ARGS__)
#define ax_rot90(...) AX_LINED(rot90, __VA_ARGS__)
#define ax_clip(x, low, high) AX_LINED(clip, x, AX_X(low), AX_X(high))
#define ax_isclose(a, b, ...) AX_LINED(isclose, AX_X(a), AX_X(b), __VA_ARGS__)
#define ax_nan_to_num(...) AX_LINED(nan_to_num, __VA_ARGS__)
#define ax_diff(...) AX_LINED(diff, __VA_ARGS__)
#define ax_outer(...) AX_LINED(outer, __VA_ARGS__)
#define ax_inner(...) AX_LINED(inner, __VA_ARGS__)
#define ax_vdot(...) AX_LINED(vdot, __VA_ARGS__)
#define ax_vecdot(...) AX_LINED(vecdot, __VA_ARGS__)
#define ax_kron(...) AX_LINED(kron, __VA_ARGS__)
#define ax_cross(...) AX_LINED(cross, __VA_ARGS__)
#define ax_convolve(...) AX_LINED(convolve, __VA_ARGS__)
#define ax_correlate(...) AX_LINED(correlate, __VA_ARGS__)
#define ax_cov(...) AX_LINED(cov, __VA_ARGS__)
#define ax_corrcoef(...) AX_LINED(corrcoef, __VA_ARGS__)
#define ax_searchsorted(...) AX_LINED(searchsorted, __VA_ARGS__)
#define ax_digitize(...) AX_LINED(digitize, __VA_ARGS__)
#define ax_bincount(...) AX_LINED(bincount, __VA_ARGS__)
#define ax_histogram_bin_edges(...) AX_LINED(histogram_bin_edges, __VA_ARGS__)
#define ax_histogram(...) AX_LINED(histogram, __VA_ARGS__)
#define ax_interp(...) AX_LINED(interp, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
