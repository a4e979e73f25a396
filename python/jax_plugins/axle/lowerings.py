"""Rules by which JAX writes its primitives for the platform "axle": where JAX has rules of their own for processors, these, whenever they
are registered. They name LAPACK's routines (eig, schur, svd, lu, ..), which Axle has, and call Python. All others are JAX's for any
platform."""

from jax._src.interpreters import mlir


def register(platform):
    mlir._platform_specific_lowerings[platform] = mlir._platform_specific_lowerings["cpu"]
    if platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(platform)
