"""Computations of libraries that are no networks: ordinary differential equations by diffrax, steps of samplers by numpyro. CASES: name to
a function and its arguments; of the libraries that are there."""

import os

os.environ["EQX_ON_ERROR"] = "nan"  # what goes wrong is NaN, and no call of Python
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CASES = {}


def add_equations():
    import diffrax

    term = diffrax.ODETerm(lambda t, y, k: jnp.stack([y[1], -k * jnp.sin(y[0])]))  # a pendulum
    control = diffrax.PIDController(1e-4, 1e-4)
    args = (np.float32([0.5, 0.1]), np.float32(2))

    def explicit(y, k):
        save = diffrax.SaveAt(ts=jnp.linspace(0, 3, 7))
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 3.0, 0.1, y, args=k, stepsize_controller=control, saveat=save).ys

    def fixed(y, k):
        """In steps of one size: how a controller's steps change has gradients, too, and they are of roundings."""
        return jnp.sum(diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 3.0, 0.1, y, args=k).ys ** 2)

    def implicit(y, k):
        return diffrax.diffeqsolve(term, diffrax.Kvaerno3(), 0.0, 1.0, 0.1, y, args=k, stepsize_controller=control).ys

    CASES["diffrax Tsit5"] = (explicit, args)
    CASES["diffrax Tsit5, gradients"] = (jax.grad(fixed, (0, 1)), args)
    CASES["diffrax Kvaerno3"] = (implicit, args)


def add_samplers():
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMC, NUTS

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ w, numpyro.sample("s", dist.HalfNormal(1.0))), obs=y)

    r = np.random.default_rng(0)
    x = r.standard_normal((20, 3)).astype(np.float32)
    y = (x @ np.float32([1, -1, 0.5]) + 0.1 * r.standard_normal(20)).astype(np.float32)

    def chain(kernel):
        def run(key, x, y):
            state = kernel.init(jax.random.wrap_key_data(key), 3, None, (x, y), {})
            state, _ = lax.scan(lambda s, _: (kernel.sample(s, (x, y), {}), None), state, None, length=3)
            return state.z, state.potential_energy

        return run

    for name, kernel in [("HMC", HMC(model, trajectory_length=1.0)), ("NUTS", NUTS(model))]:
        CASES[f"numpyro {name}"] = (chain(kernel), (np.uint32([1, 2]), x, y))


for add in (add_equations, add_samplers):
    try:
        add()
    except ImportError as error:
        print(f"left out: {error}")
