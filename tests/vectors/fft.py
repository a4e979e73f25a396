"""Fourier transforms of jnp.fft: lengths that are powers of two, have several factors, are prime, or have a large prime factor."""

import jax
import jax.numpy as jnp

from case import Case, real

BOTH = "f32 f64"


def complex_of(x):
    return jax.lax.complex(x, jnp.flip(x, -1) * 0.5)


def parts(*results):
    return tuple(part for y in results for part in (jnp.real(y), jnp.imag(y)))


def lengths(n, dims=None, axis=-1):
    """There and back, of real and of complex numbers."""

    def f(x):
        z = complex_of(x)
        return parts(jnp.fft.fft(z, axis=axis), jnp.fft.ifft(z, axis=axis), jnp.fft.fft(x, axis=axis), jnp.fft.rfft(x, axis=axis))

    return Case(f"fft{n}" + ("" if dims is None else "_middle"), BOTH, f, [real(*(dims or (2, n)))])


def back(n):
    return Case(f"irfft{n}", BOTH, lambda x: jnp.fft.irfft(complex_of(x), n), [real(3, n // 2 + 1)])


def several(x):
    z = complex_of(x)
    return parts(jnp.fft.fftn(z), jnp.fft.ifftn(z, axes=(0, 2)), jnp.fft.rfftn(x, axes=(2, 1)), jnp.fft.fft2(z)) + (jnp.fft.irfftn(z, (4, 6, 8)),)


def shifts(x):
    return jnp.fft.fftshift(x), jnp.fft.ifftshift(x, axes=1), jnp.fft.fftfreq(7, 0.5).astype(x.dtype) + x[0, 0], jnp.fft.rfftfreq(8).astype(x.dtype) + x[0, 0]


def spectrum(x):
    """Nothing but real numbers outside."""
    return jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2, -1), jax.vmap(lambda row: jnp.fft.irfft(jnp.fft.rfft(row) ** 2, row.size), in_axes=1)(x)


CASES = [
    *[lengths(n) for n in (1, 2, 3, 8, 15, 128, 131, 262, 384)],
    lengths(20, (3, 20, 2), 1),
    *[back(n) for n in (1, 2, 7, 12, 31, 256)],
    Case("fft_several", BOTH, several, [real(4, 6, 5)]),
    Case("fft_shifts", BOTH, shifts, [real(5, 4)]),
    Case("spectrum", BOTH, spectrum, [real(6, 10)]),
]  # fmt: skip
