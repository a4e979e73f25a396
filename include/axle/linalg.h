/* Linear algebra on the values of a trace. Operands are batches of matrices, T[.., m, n]: leading dimensions are the batch. T is
   f32, f64, c64 or c128; R is the dtype of its real parts, T itself where it is real, and C the complex dtype of such parts. a^H is
   a's adjoint: the transpose, of complex numbers their conjugates'. Names and semantics are those of jax.lax.linalg,
   jax.numpy.linalg and jax.scipy.linalg.

   A matrix is factored on one thread, and the matrices of a batch by many; ax_lu of 512 rows and columns or more, and systems of as
   many rows with 64 right sides or more, take several (real ones). Over a mesh the batch may be cut, and so may one matrix:
   its rows or columns by ax_cholesky and ax_triangular_solve from 512 rows on, its many rows by ax_qr, and right sides of systems
   (docs/sharding.md). All others gather it.
   Factorisations are LAPACK's, by OpenBLAS, which is opened when a program that needs it is compiled: AX_UNAVAILABLE if it cannot be.

   Errors of every function: another dtype, fewer dimensions than those said, sizes that do not fit, more than 2^31 - 1 rows or
   columns. */
#ifndef AXLE_LINALG_H
#define AXLE_LINALG_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Factorisations --- */
/* T[.., n, n] -> T[.., n, n]: the lower triangular l with l l^H = x, zero above its diagonal. With symmetrize_input the mean of x
   and its adjoint is factored; without it x's lower triangle alone is read. A matrix that is not positive definite gives NaN in its
   lower triangle. As jax.lax.linalg.cholesky. */
ax_value ax_cholesky(ax_value x, bool symmetrize_input);

/* T[.., m, n] -> T[.., m, n], s32[.., k], s32[.., m], k = min(m, n): l and u in one array, pivots, permutation. x's rows in the order
   of the permutation are l u: l, m by k, has ones on its diagonal and stands below that of the first result; u, k by n, stands on and
   above it. The pivots say the same as exchanges: row i with row pivots[i], one after the other. As jax.lax.linalg.lu. */
void ax_lu(ax_value x, uint32_t out_count, ax_value *out);
/* s32[.., k] -> s32[.., permutation_size]: the exchanges of ax_lu as a permutation. An error besides: permutation_size below k. As
   jax.lax.linalg.lu_pivots_to_permutation. */
ax_value ax_lu_pivots_to_permutation(ax_value pivots, int64_t permutation_size);

/* T[.., m, n] -> q T[.., m, k], r T[.., k, n]: x = q r, q's columns at right angles and of length 1, r zero below its diagonal, on
   which numbers are real, and may be negative. k is m, or without full_matrices min(m, n). With pivoting also p s32[.., n]: x's
   columns in the order p are q r, and the numbers on r's diagonal descend but for their signs. As jax.lax.linalg.qr. */
void ax_qr(ax_value x, bool full_matrices, bool pivoting, uint32_t out_count, ax_value *out);
/* T[.., m, n] -> form T[.., m, n], taus T[.., k], k = min(m, n): r of x = q r on and above the diagonal of the form; below it and in
   the taus the reflectors whose product q is. As jax.lax.linalg.geqrf. ax_geqp3: of x's columns in an order that it chooses, form,
   order s32[.., n], which counts from 1, and taus; columns where the operand `order`, s32[.., n], is not 0 come first. As LAPACK's. */
void ax_geqrf(ax_value x, uint32_t out_count, ax_value *out);
void ax_geqp3(ax_value x, ax_value order, uint32_t out_count, ax_value *out);
/* a T[.., m, n], taus T[.., k], k <= n <= m -> T[.., m, n]: the first columns of the product of the reflectors in a's lower triangle.
   As jax.lax.linalg.householder_product. */
ax_value ax_householder_product(ax_value a, ax_value taus);
/* a T[.., r, n], taus T[.., k], c T[.., p, q] -> T[.., p, q]: the product of the reflectors, r by r, or its adjoint, times c
   (left), or c times it. It is not made. As jax.lax.linalg.ormqr. */
ax_value ax_ormqr(ax_value a, ax_value taus, ax_value c, bool left, bool transpose);
/* T[.., n, n] -> v T[.., n, n], w R[.., n]: eigenvalues in ascending order and eigenvectors, v's columns, of length 1, of symmetric
   matrices, or Hermitian ones. symmetrize_input: of the mean of x and its adjoint; without it x's lower triangle alone is read, or
   its upper one. NaN where x is not finite. Derivatives of vectors are not finite where values are equal. As jax.lax.linalg.eigh.
   ax_eigvalsh: the values alone; as jnp.linalg.eigvalsh. */
void ax_eigh(ax_value x, bool lower, bool symmetrize_input, uint32_t out_count, ax_value *out);
ax_value ax_eigvalsh(ax_value x, bool lower, bool symmetrize_input);
/* T[.., n, n] -> w C[.., n], and where they are asked for vl C[.., n, n] and vr C[.., n, n]: eigenvalues and the left and right
   eigenvectors of any matrices: x vr = vr diag(w), vl^H x = diag(w) vl^H. Their columns are of length 1, with a real largest
   element. NaN where x is not finite. Derivatives of vectors keep these two; they are not finite where values are equal. As
   jax.lax.linalg.eig, with enable_eigvec_derivs. ax_eigvals: the values alone; as jnp.linalg.eigvals. */
void ax_eig(ax_value x, bool compute_left_eigenvectors, bool compute_right_eigenvectors, uint32_t out_count, ax_value *out);
ax_value ax_eigvals(ax_value x);
/* T[.., m, n] -> u T[.., m, k], s R[.., k], vt T[.., k, n], k = min(m, n): x = u diag(s) vt; s descends and is not negative; u's
   columns and vt's rows are at right angles and of length 1. full_matrices: u T[.., m, m] and vt T[.., n, n]. Without compute_uv: s
   alone. NaN where x is not finite. Derivatives of vectors are not finite where values are equal, or 0. As jax.lax.linalg.svd,
   which has no derivatives of full matrices. */
void ax_svd(ax_value x, bool full_matrices, bool compute_uv, uint32_t out_count, ax_value *out);
ax_value ax_svdvals(ax_value x); /* T[.., m, n] -> R[.., k]: the singular values alone; as jnp.linalg.svdvals */
/* T[.., n, n] -> t T[.., n, n], q T[.., n, n]: x = q t q^H, q^H q = 1, t upper triangular, but of real numbers with blocks of 2 by
   2 on its diagonal, each for two conjugate eigenvalues. Without compute_schur_vectors: t alone. NaN where x is not finite.
   Derivatives are not finite where eigenvalues are equal; of complex vectors, which may be multiplied by any numbers of size 1,
   they are those by which vectors turn least. As jax.lax.linalg.schur, which has no derivatives. */
void ax_schur(ax_value x, bool compute_schur_vectors, uint32_t out_count, ax_value *out);
/* T[.., n, n] -> form T[.., n, n], taus T[.., n - 1]: q^H x q = h, zero below its first subdiagonal; h on and above that of the
   form, q's reflectors below it and in the taus. An error besides: n = 0. Derivatives are not finite where h has a 0 below its
   diagonal. As jax.lax.linalg.hessenberg, which has no derivatives. */
void ax_hessenberg(ax_value x, uint32_t out_count, ax_value *out);
/* T[.., n, n] -> form T[.., n, n], d R[.., n], e R[.., n - 1], taus T[.., n - 1]: q^H x q, tridiagonal and real, of a symmetric x,
   or Hermitian one, of which one triangle is read: its diagonal and the one beside it; q's reflectors are in the form and the taus.
   An error besides: n = 0. Derivatives are not finite where e has a 0. As jax.lax.linalg.tridiagonal, which has no derivatives. */
void ax_tridiagonal(ax_value x, bool lower, uint32_t out_count, ax_value *out);

/* --- Systems of equations --- */
/* a T[.., n, n], lu T[.., n, n] and pivots s32[.., n] as ax_lu gives them for a, b T[.., n, m] -> T[.., n, m]: the x with a x = b, or
   with a's transpose for a. Derivatives are those of the solution, by a and b; they use the same factors. As
   jax.lax.custom_linear_solve by lu_solve. */
ax_value ax_linear_solve(ax_value a, ax_value lu, ax_value pivots, ax_value b, bool transpose_a);
/* a T[.., n, n], b T[.., n, m] -> T[.., n, m]: the x with a x = b (left_side), or, b and x being T[.., m, n], with x a = b. a is
   triangular: lower says which triangle is read. transpose_a: a's transpose takes its place; conjugate_a: its conjugate, which is
   itself in real numbers; unit_diagonal: its diagonal counts as ones. a and b have the same leading dimensions. A zero on the diagonal
   gives infinities and NaN. As jax.lax.linalg.triangular_solve. */
ax_value ax_triangular_solve(ax_value a, ax_value b, bool left_side, bool lower, bool transpose_a, bool conjugate_a,
                             bool unit_diagonal);
/* dl T[.., n], d T[.., n], du T[.., n], b T[.., n, m] -> T[.., n, m]: the x with a x = b, where a has d on its diagonal, dl[1 ..] below
   and du[.. n - 1] above it. NaN where a is singular. As jax.lax.linalg.tridiagonal_solve. */
ax_value ax_tridiagonal_solve(ax_value dl, ax_value d, ax_value du, ax_value b);

/* a T[.., n, n], b T[.., n, m], or T[n] -> as b: the x with a x = b, by ax_lu. Leading dimensions broadcast. A singular a gives
   infinities and NaN. As jnp.linalg.solve. */
ax_value ax_solve(ax_value a, ax_value b);
/* The same where a has been factored. factor: the l with l l^H = a (lower; ax_cholesky), or the u with u^H u = a; as
   jax.scipy.linalg.cho_solve. lu, pivots: the first results of ax_lu for a; transpose_a: a's transpose takes its place; as
   jax.scipy.linalg.lu_solve, with trans 0 or 1. Derivatives are those by the factors. */
ax_value ax_cholesky_solve(ax_value factor, ax_value b, bool lower);
ax_value ax_lu_solve(ax_value lu, ax_value pivots, ax_value b, bool transpose_a);
/* a T[m, n], b T[m, k] or T[m] -> x T[n, k] or T[n], residuals R[k] or R[1], rank s32[], s R[min(m, n)]: the x of the least |a x -
   b|, and among these of the least |x|; the squares of |a x - b|, by column; how many of the singular values s, which are rcond
   times the largest or more, count. rcond below 0: the dtype's epsilon times the larger of m and n. As jnp.linalg.lstsq. */
void ax_lstsq(ax_value a, ax_value b, double rcond, uint32_t out_count, ax_value *out);

/* --- Inverses, determinants and functions of matrices --- */
ax_value ax_inv(ax_value a); /* T[.., n, n] -> T[.., n, n]; as jnp.linalg.inv */
/* T[.., m, n] -> T[.., n, m]: the Moore-Penrose inverse. Singular values up to rtol times the largest count as 0; rtol below 0: ten
   times the dtype's epsilon times the larger of m and n. As jnp.linalg.pinv. */
ax_value ax_pinv(ax_value a, double rtol);
/* The same of symmetric matrices, or Hermitian ones, T[.., n, n], by their eigenvalues, whose sizes are the singular values. The
   mean of a and its adjoint is inverted. As jnp.linalg.pinv with hermitian. */
ax_value ax_pinvh(ax_value a, double rtol);
/* T[d.., e..] -> T[e.., d..], with `ind` dimensions d, and as many elements in d as in e: the inverse for tensordot over `ind`
   dimensions. As jnp.linalg.tensorinv. ax_tensorsolve: a T[d.., e..], b T[d..] -> T[e..]: the x whose sums with a over all of e are
   b. As jnp.linalg.tensorsolve. */
ax_value ax_tensorinv(ax_value a, int64_t ind);
ax_value ax_tensorsolve(ax_value a, ax_value b);
/* T[.., n, n] -> T[..]: the determinant; as jnp.linalg.det, with derivatives where one singular value is 0. ax_slogdet: its sign,
   T[..], of complex numbers of size 1, which is 0 if it is 0, and the logarithm of its size, R[..]; as jnp.linalg.slogdet. */
ax_value ax_det(ax_value a);
void ax_slogdet(ax_value a, uint32_t out_count, ax_value *out);
/* T[.., m, n] -> s32[..]: how many singular values are above the tolerance; below 0: the dtype's epsilon times the larger of m and n
   times the largest singular value. As jnp.linalg.matrix_rank. */
ax_value ax_matrix_rank(ax_value x, double tolerance);
/* T[.., n, n], n at least 0: a multiplied with itself, or for a negative n its inverse; n = 0: ones on the diagonal. T numeric where n
   is not negative. As jnp.linalg.matrix_power. */
ax_value ax_matrix_power(ax_value a, int64_t n);
/* T[.., n, n]: 1 + a + a a / 2 + .., by Pade's approximant of a / 2^k and k products. NaN where k would be more than 17: where sums of
   sizes along columns are some 700 000, of f32 500 000. As jax.scipy.linalg.expm, which allows as much. */
ax_value ax_expm(ax_value a);
/* The product of matrices, of which the first and the last may be vectors, in the order of the fewest multiplications. T numeric. At
   least 2. As jnp.linalg.multi_dot. */
ax_value ax_multi_dot(uint32_t count, const ax_value *xs);

/* --- Norms, R[..]; T float or complex --- */
/* Over the dimensions AX_DIMS(..), or AX_ALL_DIMS: the root of the sum of squares; as jnp.linalg.norm without an order. ax_vector_norm:
   the root of order `ord` of the sum of sizes to that power; INFINITY: the largest, -INFINITY: the smallest, 0: how many are not 0. As
   jnp.linalg.vector_norm. */
ax_value ax_norm(ax_value x, uint32_t count, const int64_t *axes, bool keepdims);
ax_value ax_vector_norm(ax_value x, double ord, uint32_t count, const int64_t *axes, bool keepdims);
/* T[.., m, n] -> R[..]: "fro", or NULL: the root of the sum of squares; "nuc": the sum of singular values; "2", "-2": the largest
   and the smallest; "1", "-1": the largest and smallest sum of sizes along columns; "inf", "-inf": along rows. As
   jnp.linalg.matrix_norm, and jnp.linalg.norm of matrices. */
ax_value ax_matrix_norm(ax_value x, const char *ord, bool keepdims);
/* T[.., m, n] -> R[..]: the condition number, which is the norm of x times that of its inverse. "2", or NULL: the largest singular
   value over the smallest, and "-2" the other way; with other orders, those of ax_matrix_norm, x is square. Infinite where x is
   singular; with "-2" it is 0 there, and with "2" NaN where x is 0. An error besides: m or n is 0. As jnp.linalg.cond;
   jax.lax.cond is ax_if. */
ax_value ax_cond(ax_value x, const char *ord);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_lu(x, out) AX_LINED_VOID(lu, x, AX_COUNTED(ax_value, out))
#define ax_qr(x, full_matrices, pivoting, out) AX_LINED_VOID(qr, x, full_matrices, pivoting, AX_COUNTED(ax_value, out))
#define ax_geqrf(x, out) AX_LINED_VOID(geqrf, x, AX_COUNTED(ax_value, out))
#define ax_geqp3(x, order, out) AX_LINED_VOID(geqp3, x, order, AX_COUNTED(ax_value, out))
#define ax_eigh(x, lower, symmetrize_input, out) AX_LINED_VOID(eigh, x, lower, symmetrize_input, AX_COUNTED(ax_value, out))
#define ax_eig(x, compute_left_eigenvectors, compute_right_eigenvectors, out) \
  AX_LINED_VOID(eig, x, compute_left_eigenvectors, compute_right_eigenvectors, AX_COUNTED(ax_value, out))
#define ax_schur(x, compute_schur_vectors, out) AX_LINED_VOID(schur, x, compute_schur_vectors, AX_COUNTED(ax_value, out))
#define ax_hessenberg(x, out) AX_LINED_VOID(hessenberg, x, AX_COUNTED(ax_value, out))
#define ax_tridiagonal(x, lower, out) AX_LINED_VOID(tridiagonal, x, lower, AX_COUNTED(ax_value, out))
#define ax_lstsq(a, b, rcond, out) AX_LINED_VOID(lstsq, a, b, rcond, AX_COUNTED(ax_value, out))
#define ax_slogdet(a, out) AX_LINED_VOID(slogdet, a, AX_COUNTED(ax_value, out))
#define ax_multi_dot(xs) AX_LINED(multi_dot, AX_EXACTLY(xs))
#define ax_norm(x, axes, keepdims) AX_LINED(norm, x, AX_EXACTLY(axes), keepdims)
#define ax_vector_norm(x, ord, axes, keepdims) AX_LINED(vector_norm, x, ord, AX_EXACTLY(axes), keepdims)
#define ax_svd(x, full_matrices, compute_uv, out) AX_LINED_VOID(svd, x, full_matrices, compute_uv, AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_lu_pivots_to_permutation(...) AX_LINED(lu_pivots_to_permutation, __VA_ARGS__)
#define ax_eigvalsh(...) AX_LINED(eigvalsh, __VA_ARGS__)
#define ax_eigvals(...) AX_LINED(eigvals, __VA_ARGS__)
#define ax_cholesky(...) AX_LINED(cholesky, __VA_ARGS__)
#define ax_householder_product(...) AX_LINED(householder_product, __VA_ARGS__)
#define ax_ormqr(...) AX_LINED(ormqr, __VA_ARGS__)
#define ax_linear_solve(...) AX_LINED(linear_solve, __VA_ARGS__)
#define ax_tridiagonal_solve(...) AX_LINED(tridiagonal_solve, __VA_ARGS__)
#define ax_triangular_solve(...) AX_LINED(triangular_solve, __VA_ARGS__)
#define ax_solve(...) AX_LINED(solve, __VA_ARGS__)
#define ax_cholesky_solve(...) AX_LINED(cholesky_solve, __VA_ARGS__)
#define ax_lu_solve(...) AX_LINED(lu_solve, __VA_ARGS__)
#define ax_inv(...) AX_LINED(inv, __VA_ARGS__)
#define ax_pinv(...) AX_LINED(pinv, __VA_ARGS__)
#define ax_pinvh(...) AX_LINED(pinvh, __VA_ARGS__)
#define ax_svdvals(...) AX_LINED(svdvals, __VA_ARGS__)
#define ax_tensorinv(...) AX_LINED(tensorinv, __VA_ARGS__)
#define ax_tensorsolve(...) AX_LINED(tensorsolve, __VA_ARGS__)
#define ax_cond(...) AX_LINED(cond, __VA_ARGS__)
#define ax_det(...) AX_LINED(det, __VA_ARGS__)
#define ax_matrix_rank(...) AX_LINED(matrix_rank, __VA_ARGS__)
#define ax_matrix_power(...) AX_LINED(matrix_power, __VA_ARGS__)
#define ax_expm(...) AX_LINED(expm, __VA_ARGS__)
#define ax_matrix_norm(...) AX_LINED(matrix_norm, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
