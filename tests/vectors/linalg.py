"""Linear algebra: factorisations, triangular systems, and what is made of them."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg
from jax import lax
from jax._src.lax import linalg as routines

from case import Case, is_complex, real

FLOAT, COMPLEX, NUMBER = "f32 f64", "c64 c128", "f32 f64 c64 c128"


def uniform(random, variant, low, high, dims):
    """Of complex numbers both parts."""
    x = random.uniform(low, high, dims)
    return x + 1j * random.uniform(low, high, dims) if is_complex(variant.dtype) else x


def definite(n, *batch):
    """Positive definite, and not symmetric to the last bit."""

    def make(random, variant):
        x = uniform(random, variant, -1, 1, (*batch, n, n))
        return (x @ x.swapaxes(-1, -2).conj() + n * jnp.eye(n) / 2).astype(variant.dtype)

    return make


def dominant(n, *batch):
    """With a large diagonal."""
    return lambda random, variant: (uniform(random, variant, -1, 1, (*batch, n, n)) + 2 * jnp.eye(n)).astype(variant.dtype)


def dominant_wide(random, variant):
    return (uniform(random, variant, -1, 1, (3, 5)) + 2 * jnp.eye(3, 5)).astype(variant.dtype)


def far(*dims):
    """Far from 0."""
    return lambda random, variant: uniform(random, variant, 3, 5, dims).astype(variant.dtype)


def without(row):
    """x without a row: singular."""
    return lambda x: x * (jnp.arange(x.shape[-1]) != row)[:, None]


def alike(m, n):
    """Of rank 1."""
    return lambda random, variant: (uniform(random, variant, 1, 2, (m, 1)) * uniform(random, variant, 1, 2, (1, n))).astype(variant.dtype)


def large(size, *dims):
    return lambda random, variant: (size * uniform(random, variant, -1, 1, dims)).astype(variant.dtype)


def schur_sizes(x):
    """Which phase a complex vector has depends on the processor that LAPACK runs on."""
    t, q = lax.linalg.schur(x)
    return jnp.abs(t), jnp.abs(q), q @ t @ q.swapaxes(-1, -2).conj()


def least(a, b, rcond):
    x, residuals, rank, s = jnp.linalg.lstsq(a, b, rcond=rcond)
    return x, residuals, rank.astype("int32"), s


def eig(**options):
    """Values and vectors, with derivatives of both."""
    return lambda x: lax.linalg.eig(x, enable_eigvec_derivs=True, **options)


def solves(**options):
    return lambda a, b: lax.linalg.triangular_solve(a, b, **options)


CASES = [
    Case("cholesky", NUMBER, lambda x: lax.linalg.cholesky(x), [definite(5)]),
    Case("cholesky_batch", NUMBER, lambda x: lax.linalg.cholesky(x), [definite(3, 2, 2)]),
    Case("cholesky_lower", NUMBER, lambda x: jnp.tril(lax.linalg.cholesky(x, symmetrize_input=False)), [dominant(4)], modes="v"),
    Case("cholesky_indefinite", NUMBER, lambda x: lax.linalg.cholesky(x), [real(2, 3, 3)], modes="v"),
    Case("cholesky_one", FLOAT, lambda x: lax.linalg.cholesky(x * x + 1), [real(1, 1)]),
    Case("cholesky_none", NUMBER, lambda x: lax.linalg.cholesky(x), [real(2, 0, 0)], modes="v"),
    Case("solve_lower", NUMBER, solves(left_side=True, lower=True), [dominant(5), real(5, 3)]),
    Case("solve_upper", NUMBER, solves(left_side=True), [dominant(3), real(3, 5)]),
    Case("solve_transposed", NUMBER, solves(left_side=True, lower=True, transpose_a=True), [dominant(4, 2), real(2, 4, 2)]),
    Case("solve_right", NUMBER, solves(lower=True), [dominant(4), real(2, 4)]),
    Case("solve_right_transposed", NUMBER, solves(transpose_a=True, conjugate_a=True), [dominant(3, 2), real(2, 6, 3)]),
    Case("solve_unit", NUMBER, solves(left_side=True, lower=True, unit_diagonal=True), [dominant(4), real(4, 4)]),
    Case("lu", NUMBER, lambda x: lax.linalg.lu(x), [real(5, 5)]),
    Case("lu_batch", NUMBER, lambda x: lax.linalg.lu(x), [real(2, 3, 3)]),
    Case("lu_wide", NUMBER, lambda x: lax.linalg.lu(x), [real(3, 5)]),
    Case("lu_tall", NUMBER, lambda x: lax.linalg.lu(x), [real(5, 3)]),
    Case("lu_singular", NUMBER, lambda x: lax.linalg.lu(x * 0), [real(3, 3)], modes="v"),
    Case("qr", NUMBER, lambda x: lax.linalg.qr(x, full_matrices=False), [real(5, 3)]),
    Case("qr_full", NUMBER, lambda x: lax.linalg.qr(x), [real(2, 4, 3)]),
    Case("qr_wide", NUMBER, lambda x: lax.linalg.qr(x), [dominant_wide]),
    Case("qr_pivoting", NUMBER, lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False), [real(4, 3)]),
    Case("qr_none", NUMBER, lambda x: lax.linalg.qr(x), [real(3, 0)], modes="v"),
    Case("geqrf", NUMBER, lambda x: routines.geqrf(x), [real(2, 4, 3)], modes="v"),
    Case("geqp3", NUMBER, lambda x: routines.geqp3(x, jnp.array([0, 1, 0], "int32")), [real(4, 3)], modes="v"),
    Case("householder_product", NUMBER, lambda a, taus: lax.linalg.householder_product(a, taus), [real(2, 4, 3), real(2, 2)], modes="v"),
    Case("ormqr", NUMBER, lambda a, taus, c: lax.linalg.ormqr(a, taus, c), [real(4, 3), real(3), real(4, 2)], modes="v"),
    Case("ormqr_right", NUMBER, lambda a, taus, c: lax.linalg.ormqr(a, taus, c, left=False, transpose=True), [real(2, 3, 3), real(2, 2), real(2, 4, 3)], modes="v"),
    Case("eigh", NUMBER, lambda x: lax.linalg.eigh(x), [real(4, 4)]),
    Case("eigh_batch", NUMBER, lambda x: lax.linalg.eigh(x, lower=False), [real(2, 3, 3)]),
    Case("eigh_upper", NUMBER, lambda x: lax.linalg.eigh(x, lower=False, symmetrize_input=False), [real(4, 4)], modes="v"),
    Case("eigh_nan", NUMBER, lambda x: lax.linalg.eigh(x * jnp.nan), [real(3, 3)], modes="v"),
    Case("eigvalsh", NUMBER, lambda x: jnp.linalg.eigvalsh(x), [real(2, 3, 3)]),
    Case("eig", NUMBER, eig(), [real(4, 4)]),
    Case("eig_batch", NUMBER, eig(), [real(2, 3, 3)]),
    Case("eig_right", NUMBER, eig(compute_left_eigenvectors=False), [real(5, 5)]),
    Case("eig_left", NUMBER, eig(compute_right_eigenvectors=False), [real(3, 3)]),
    Case("eig_nan", NUMBER, lambda x: eig()(x * jnp.nan), [real(3, 3)], modes="v"),
    Case("eigvals", NUMBER, jnp.linalg.eigvals, [real(2, 4, 4)]),
    Case("svd", NUMBER, lambda x: lax.linalg.svd(x, full_matrices=False), [real(4, 3)]),
    Case("svd_wide", NUMBER, lambda x: lax.linalg.svd(x, full_matrices=False), [real(2, 2, 4)]),
    Case("svd_square", NUMBER, lambda x: lax.linalg.svd(x), [real(3, 3)]),
    Case("svd_full", NUMBER, lambda x: lax.linalg.svd(x), [real(4, 3)], modes="v"),
    Case("svd_values", NUMBER, lambda x: lax.linalg.svd(x, compute_uv=False), [real(4, 3)]),
    Case("svd_nan", NUMBER, lambda x: lax.linalg.svd(x * jnp.nan), [real(2, 3)], modes="v"),
    Case("svd_none", NUMBER, lambda x: lax.linalg.svd(x), [real(3, 0)], modes="v"),
    Case("tridiagonal_solve", NUMBER, lax.linalg.tridiagonal_solve, [real(5), far(5), real(5), real(5, 2)]),
    Case("tridiagonal_solve_batch", NUMBER, lax.linalg.tridiagonal_solve, [real(2, 3), far(2, 3), real(2, 3), real(2, 3, 1)]),
    Case("tridiagonal_solve_singular", NUMBER, lambda dl, d, du, b: lax.linalg.tridiagonal_solve(dl * 0, d * 0, du, b), [real(3), real(3), real(3), real(3, 2)], modes="v"),
    Case("tridiagonal", NUMBER, lambda x: lax.linalg.tridiagonal(x), [real(4, 4)], modes="v"),
    Case("tridiagonal_upper", NUMBER, lambda x: lax.linalg.tridiagonal(x, lower=False), [real(2, 3, 3)], modes="v"),
    Case("hessenberg", NUMBER, lambda x: lax.linalg.hessenberg(x), [real(2, 4, 4)], modes="v"),
    Case("schur", FLOAT, lambda x: lax.linalg.schur(x), [real(4, 4)], modes="v"),
    Case("schur_alone", FLOAT, lambda x: lax.linalg.schur(x, compute_schur_vectors=False), [real(2, 3, 3)], modes="v"),
    Case("schur_complex", COMPLEX, schur_sizes, [real(2, 4, 4)], modes="v"),
    Case("schur_complex_alone", COMPLEX, lambda x: jnp.abs(lax.linalg.schur(x, compute_schur_vectors=False)[0]), [real(2, 3, 3)], modes="v"),
    Case("linear_solve", NUMBER, jnp.linalg.solve, [dominant(4), real(4, 3)]),
    Case("linear_solve_vector", NUMBER, jnp.linalg.solve, [dominant(3, 2), real(3)]),
    Case("linear_solve_batches", NUMBER, jnp.linalg.solve, [dominant(3, 2, 1), real(2, 3, 2)]),
    Case("linear_solve_together", NUMBER, jnp.linalg.solve, [dominant(3), real(2, 2, 3, 2)]),
    Case("linear_solve_none", NUMBER, jnp.linalg.solve, [real(0, 0), real(0, 2)], modes="v"),
    Case("cholesky_solve", NUMBER, lambda a, b: jax.scipy.linalg.cho_solve((a, True), b), [dominant(4), real(4, 2)]),
    Case("cholesky_solve_upper", NUMBER, lambda a, b: jax.scipy.linalg.cho_solve((a, False), b), [dominant(3, 2), real(3)]),
    Case("lu_solve", NUMBER, lambda lu, b: jax.scipy.linalg.lu_solve((lu, jnp.array([2, 3, 2, 3], "int32")), b), [dominant(4), real(4, 2)]),
    Case("lu_solve_transposed", NUMBER, lambda lu, b: jax.scipy.linalg.lu_solve((lu, jnp.array([2, 3, 2, 3], "int32")), b, trans=1), [dominant(4), real(4)]),
    Case("lstsq", NUMBER, lambda a, b: least(a, b, None), [real(5, 3), real(5, 2)]),
    Case("lstsq_wide", NUMBER, lambda a, b: least(a, b, 0.1), [real(3, 4), real(3)], modes="v"),
    Case("lstsq_alike", NUMBER, lambda a, b: jnp.linalg.lstsq(a, b, rcond=0.1)[0], [alike(4, 3), real(4)], modes="v"),
    Case("inv", NUMBER, jnp.linalg.inv, [dominant(3, 2)]),
    Case("pinv", NUMBER, jnp.linalg.pinv, [real(4, 3)]),
    Case("pinv_wide", NUMBER, jnp.linalg.pinv, [real(2, 2, 3)]),
    Case("pinv_alike", NUMBER, lambda a: jnp.linalg.pinv(a, rtol=0.1), [alike(4, 3)]),
    Case("pinvh", NUMBER, lambda a: jnp.linalg.pinv((a + a.swapaxes(-1, -2).conj()) / 2, hermitian=True), [real(2, 3, 3)]),
    Case("pinvh_alike", NUMBER, lambda a: jnp.linalg.pinv(a @ a.T.conj() - 4 * jnp.diag(jnp.arange(3) < 1).astype(a.dtype), rtol=0.1, hermitian=True), [alike(3, 1)], modes="v"),
    Case("tensorinv", NUMBER, lambda a: jnp.linalg.tensorinv(a.reshape(2, 3, 1, 6), 2), [dominant(6)]),
    Case("tensorsolve", NUMBER, lambda a, b: jnp.linalg.tensorsolve(a.reshape(2, 2, 4), b), [dominant(4), real(2, 2)]),
    Case("vecdot", NUMBER, lambda a, b: jnp.linalg.vecdot(a, b, axis=-2), [real(2, 4, 3), real(4, 1)]),
    Case("svdvals", NUMBER, jnp.linalg.svdvals, [real(2, 3, 2)]),
    Case("cond", NUMBER, jnp.linalg.cond, [real(2, 4, 3)]),
    Case("cond_least_2", NUMBER, lambda x: jnp.linalg.cond(x, -2), [real(3, 4)]),
    Case("cond_orders", NUMBER, lambda x: tuple(jnp.linalg.cond(x, p) for p in (1, -1, jnp.inf, -jnp.inf, "fro")), [dominant(3, 2)]),
    Case("cond_singular", FLOAT, lambda x: tuple(jnp.linalg.cond(x * 0 + jnp.array([0, jnp.nan], x.dtype)[:, None, None], p) for p in (-2, 1)), [real(2, 3, 3)], modes="v"),
    Case("det_1", NUMBER, jnp.linalg.det, [real(2, 1, 1)]),
    Case("det_2", NUMBER, jnp.linalg.det, [real(2, 2, 2)]),
    Case("det_3", NUMBER, jnp.linalg.det, [real(3, 3)]),
    Case("det", NUMBER, jnp.linalg.det, [real(2, 5, 5)]),
    Case("det_singular", NUMBER, lambda x: jnp.linalg.det(without(1)(x)), [real(4, 4)]),
    Case("det_none", NUMBER, jnp.linalg.det, [real(2, 0, 0)], modes="v"),
    Case("slogdet", NUMBER, lambda x: tuple(jnp.linalg.slogdet(x)), [real(2, 4, 4)]),
    Case("slogdet_singular", NUMBER, lambda x: tuple(jnp.linalg.slogdet(without(0)(x))), [real(3, 3)], modes="v"),
    Case("matrix_rank", NUMBER, lambda x: jnp.linalg.matrix_rank(without(2)(x)).astype("int32"), [real(2, 4, 4)], modes="v"),
    Case("matrix_rank_alike", NUMBER, lambda x: jnp.linalg.matrix_rank(x, rtol=0.01).astype("int32"), [alike(3, 4)], modes="v"),
    Case("matrix_power", NUMBER, lambda x: jnp.linalg.matrix_power(x, 5), [real(2, 3, 3)]),
    Case("matrix_power_inverse", NUMBER, lambda x: jnp.linalg.matrix_power(x, -2), [dominant(3)]),
    Case("matrix_power_zero", NUMBER, lambda x: jnp.linalg.matrix_power(x, 0) + x * 0, [real(2, 2)], modes="v"),
    Case("expm", NUMBER, jax.scipy.linalg.expm, [real(4, 4)]),
    Case("expm_large", FLOAT, jax.scipy.linalg.expm, [large(8, 3, 3)]),
    Case("expm_large_complex", COMPLEX, jax.scipy.linalg.expm, [large(8, 3, 3)]),
    Case("expm_batch", NUMBER, lambda x: jax.scipy.linalg.expm(x * jnp.array([0.001, 1, 1.75])[:, None, None].astype(x.dtype)), [real(3, 2, 2)]),
    Case("expm_too_large", NUMBER, lambda x: jax.scipy.linalg.expm(x * 1e9), [real(2, 2)], modes="v"),
    Case("multi_dot", NUMBER, lambda a, b, c, d: jnp.linalg.multi_dot([a, b, c, d]), [real(2), real(2, 5), real(5, 3), real(3, 4)]),
    Case("norm", NUMBER, lambda x: jnp.linalg.norm(x), [real(3, 4)]),
    Case("norm_rows", NUMBER, lambda x: jnp.linalg.norm(x, axis=1, keepdims=True), [real(3, 4)]),
    Case("vector_norm_1", NUMBER, lambda x: jnp.linalg.vector_norm(x, ord=1, axis=0), [real(3, 4)]),
    Case("vector_norm_3", NUMBER, lambda x: jnp.linalg.vector_norm(x, ord=3), [real(3, 4)]),
    Case("vector_norm_0", NUMBER, lambda x: jnp.linalg.vector_norm(without(1)(x), ord=0), [real(3, 3)], modes="v"),
    Case("vector_norm_largest", NUMBER, lambda x: jnp.linalg.vector_norm(x, ord=jnp.inf, axis=1), [real(3, 4)]),
    Case("vector_norm_smallest", NUMBER, lambda x: jnp.linalg.vector_norm(x, ord=-jnp.inf, axis=1), [real(3, 4)]),
    Case("matrix_norm", NUMBER, lambda x: jnp.linalg.matrix_norm(x), [real(2, 3, 4)]),
    Case("matrix_norm_nuclear", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord="nuc"), [real(2, 3, 4)]),
    Case("matrix_norm_1", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=1), [real(2, 3, 4)]),
    Case("matrix_norm_least_1", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=-1), [real(3, 4)]),
    Case("matrix_norm_2", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=2, keepdims=True), [real(2, 3, 4)]),
    Case("matrix_norm_least_2", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=-2), [real(3, 4)]),
    Case("matrix_norm_rows", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=jnp.inf), [real(2, 3, 4)]),
    Case("matrix_norm_least_rows", NUMBER, lambda x: jnp.linalg.matrix_norm(x, ord=-jnp.inf), [real(2, 3, 4)]),
]  # fmt: skip
