"""Equations solved by iteration: jax.scipy.sparse.linalg, jax.lax.custom_linear_solve and custom_root, jax.scipy.optimize.minimize and
jax.experimental.ode."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import scipy.optimize
from jax.experimental.ode import odeint
from jax._src.scipy.optimize._lbfgs import _minimize_lbfgs
from jax.scipy.optimize import minimize
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

from case import Case, positive, real

WIDE = "f32 f64"


def tol(x):
    return 1e-14 if x.dtype == jnp.float64 else 1e-7


def one(name, function, *inputs, variants=WIDE, **more):
    return Case(name, variants, function, list(inputs), **more)


def definite(m):
    return m @ m.T + 4 * jnp.eye(m.shape[0], dtype=m.dtype)


def general(m):
    return m + 6 * jnp.eye(m.shape[0], dtype=m.dtype)


def by(solver, matrix, **options):
    def solve(m, b):
        a = matrix(m)
        return solver(lambda x: a @ x, b, tol=tol(b), **options)[0]

    return solve


def preconditioned(solver):
    def solve(m, b):
        a = general(m)
        return solver(lambda x: a @ x, b, tol=tol(b), M=lambda x: x / jnp.diag(a))[0]

    return solve


def coupled(m, b, c):
    """Two unknown arrays of several shapes; the matrix is symmetric and definite."""

    def matvec(v):
        x, y = v
        return 5 * x + m @ y, m.T @ x + 5 * y

    return cg(matvec, (b, c), tol=tol(b), x0=(0.5 * b, c))[0]


def batched(m, b):
    a = definite(m)
    return jax.vmap(lambda row: cg(lambda x: a @ x, row, tol=tol(b))[0])(b)


def batched_matrices(m, b):
    return jax.vmap(lambda one, row: gmres(lambda x: general(one) @ x, row, tol=tol(b))[0])(m, b)


def second(m, b):
    """A gradient, whose own derivatives solve again."""
    return jax.grad(lambda m: jnp.sum(by(cg, definite)(m, b) ** 3))(m)


def triangle(m, b):
    """By substitution in a loop with a bound that is not known; its transpose from the other end."""
    lower = jnp.tril(m) + 3 * jnp.eye(m.shape[0], dtype=m.dtype)
    stopped = jax.lax.stop_gradient(lower)
    n = m.shape[0]

    def forwards(_, b):
        return jax.lax.fori_loop(0, n, lambda i, x: x.at[i].set((b[i] - stopped[i] @ x) / stopped[i, i]), jnp.zeros_like(b))

    def backwards(_, b):
        step = lambda i, x: x.at[n - 1 - i].set((b[n - 1 - i] - stopped[:, n - 1 - i] @ x) / stopped[n - 1 - i, n - 1 - i])
        return jax.lax.fori_loop(0, n, step, jnp.zeros_like(b))

    return jax.lax.custom_linear_solve(lambda x: lower @ x, b, forwards, backwards)


def complex_triangle(m, b):
    lower = jnp.tril(m) + 3 * jnp.eye(m.shape[0], dtype=m.dtype)
    stopped = jax.lax.stop_gradient(lower)
    solve = lambda trans: lambda _, b: jax.scipy.linalg.solve_triangular(stopped, b, trans=trans, lower=True)
    return jax.lax.custom_linear_solve(lambda x: lower @ x, b, solve("N"), solve("T"))


def newton_root(rounds):
    """Newton's method on arrays of one vector, by the Jacobian."""

    def solve(f, x):
        return jax.lax.fori_loop(0, rounds, lambda _, x: x - jnp.linalg.solve(jax.jacobian(f)(x), f(x)), x)

    return solve


def by_jacobian(g, b):
    return jnp.linalg.solve(jax.jacobian(g)(b), b)


def bisect(f, guess):
    """Between 0 and twice the guess; its rounds have no derivative."""

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        above = f(middle) > 0
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    return jax.lax.fori_loop(0, 80, halve, (jnp.zeros_like(guess), 2 * guess))[0]


def cube_root(a):
    """x + x^3 = 1 + a^2, of a scalar."""
    return jax.lax.custom_root(lambda x: x + x**3 - 1 - a * a, 1.5 + 0.5 * a * a, bisect, lambda g, b: b / g(jnp.ones_like(b)))


def curved(m, b):
    def f(x):
        return 4 * x + jnp.tanh(m @ x) - b

    return jax.lax.custom_root(f, 0.25 * b, newton_root(9), by_jacobian)


def two_arrays(k, c):
    """Of two arrays of several shapes."""

    def f(v):
        x, y = v
        return 3 * x + jnp.sin(y[0]) * k - c, 5 * y + 0.5 * jnp.cos(jnp.sum(x * k)) - k[:2]

    def solve(f, v):
        def round(_, v):
            fx, fy = f(v)
            return v[0] - fx / 3, v[1] - fy / 5

        return jax.lax.fori_loop(0, 60, round, v)

    def tangents(g, b):  # JAX 0.10 has no transpose of its gmres of two arrays
        flat, parts = jax.flatten_util.ravel_pytree(b)
        return parts(jnp.linalg.solve(jax.jacobian(lambda v: jax.flatten_util.ravel_pytree(g(parts(v)))[0])(flat), flat))

    return jax.lax.custom_root(f, (c, k[:2]), solve, tangents)


def root_second(a):
    return jax.grad(lambda a: jnp.sum(jnp.sin(jax.vmap(cube_root)(a))))(a)


def root_third(a):
    return jax.grad(jax.grad(lambda a: cube_root(a) ** 2))(a)


def cube_root_wide(_, a):
    """From one guess for all."""
    root = lambda a: jax.lax.custom_root(lambda x: x + x**3 - 1 - a * a, 3 + 0 * a, bisect, lambda g, b: b / g(jnp.ones_like(b)))
    return jax.vmap(root)(a)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bfgs(f, x, **options):
    """The place, its f and gradient; how it ended, as Axle numbers it: 3 where there was no step."""
    r = minimize(f, x, method="BFGS", options=options)
    return r.x, r.fun, r.jac, jnp.minimum(r.status, 3).astype(jnp.int32)


def lbfgs(f, x, **options):
    r = _minimize_lbfgs(f, x, **options)
    return r.x_k, r.f_k, r.g_k, jnp.array([0, 1, 9, 9, 2, 3])[r.status].astype(jnp.int32)


def least(f, x):
    """By SciPy: JAX's search for steps often ends early."""
    found = scipy.optimize.minimize(jax.value_and_grad(f), x, jac=True, method="BFGS", options={"gtol": 1e-11})
    return jnp.asarray(found.x)


def valley(x):
    start = jnp.array([-1.2, 1]) if x.size == 2 else 0
    return least(rosenbrock, start + 0.2 * x)


def bowl(m, b, x):
    place = jnp.linalg.solve(definite(m), b)
    return place, -0.5 * b @ place, jnp.zeros_like(b)


def steep(m, b):
    """The minimum of a function, as the root of its gradient."""
    a = definite(m)
    f = lambda x: 0.25 * jnp.sum(x**4) + 0.5 * x @ a @ x - b @ x
    return jax.lax.custom_root(jax.grad(f), jnp.zeros_like(b), newton_root(30), by_jacobian)


def bowl_of_jax(search):
    def ends(m, b, x):
        a = definite(m) / 8
        place, value, _, status = search(lambda x: 0.5 * x @ a @ x - b @ x, x, gtol=1e-3 if x.dtype == jnp.float32 else 1e-6)
        exact = jnp.linalg.solve(a, b)  # of inputs for which JAX gives up
        found = status == 0
        return jnp.where(found, place, exact), jnp.where(found, value, -0.5 * b @ exact), jnp.zeros_like(status)

    return ends


def ends(search, f, **options):
    return lambda x: search(f, x, **options)[3]


def valleys(x):
    """From several starts; the parameter of each is another."""
    return jnp.stack([least(lambda y: rosenbrock(y) + jnp.sum((y - row) ** 2), row) for row in x])


def close(y):
    return {"rtol": 1e-10, "atol": 1e-10} if y.dtype == jnp.float64 else {"rtol": 1e-5, "atol": 1e-5}


def times(*numbers):
    return lambda random, variant: jnp.array(numbers, variant.dtype)


def decay(y, t, k):
    return odeint(lambda y, t, k: -k * y * jnp.cos(t), y, t, k, **close(y))


def pendulum(angle, speed, t, friction, force):
    def f(state, t, friction, force):
        angle, speed = state
        return speed, -jnp.sin(angle) - friction * speed + force[0] * jnp.cos(force[1] * t)

    return odeint(f, (angle, speed), t, friction, force, **close(angle))


CASES = [
    one("cg", by(cg, definite), real(5, 5), real(5)),
    one("bicgstab", by(bicgstab, general), real(6, 6), real(6)),
    one("gmres", by(gmres, general), real(7, 7), real(7)),
    one("gmres_restarted", by(gmres, general, restart=3), real(8, 8), real(8)),
    one("cg_start", coupled, real(3, 4), real(3), real(4)),
    one("bicgstab_m", preconditioned(bicgstab), real(6, 6), real(6)),
    one("gmres_m", preconditioned(gmres), real(6, 6), real(6)),
    one("cg_batch", batched, real(4, 4), real(3, 4)),
    one("gmres_batch", batched_matrices, real(3, 4, 4), real(3, 4)),
    one("cg_second", second, real(4, 4), real(4), variants="f64"),
    one("triangle", triangle, real(6, 6), real(6)),
    one("triangle_complex", complex_triangle, real(5, 5), real(5, 2), variants="c64 c128"),
    one("root", cube_root, real()),
    one("root_curved", curved, real(4, 4), real(4)),
    one("root_arrays", two_arrays, real(3), real(3), variants="f64"),
    one("root_batch", jax.vmap(cube_root), real(5)),
    one("root_curved_batch", jax.vmap(curved, in_axes=(None, 0)), real(4, 4), real(3, 4)),
    one("root_second", root_second, real(3), variants="f64"),
    one("root_third", root_third, real(), variants="f64"),
    one("root_wide", cube_root_wide, real(4), variants="d=4", specs="A > A"),
    one("bfgs_2", valley, real(2), variants="f64", modes="v"),
    one("bfgs_5", valley, real(5), variants="f64", modes="v"),
    one("bfgs_12", valley, real(12), variants="f64", modes="v"),
    one("bfgs_batch", valleys, real(4, 3), variants="f64", modes="v"),
    one("lbfgs_2", valley, real(2), variants="f64", modes="v"),
    one("lbfgs_40", valley, real(40), variants="f64", modes="v"),
    one("bfgs_bowl", bowl, real(6, 6), real(6), real(6), variants="f64", modes="v"),
    one("lbfgs_bowl", bowl, real(6, 6), real(6), real(6), variants="f64", modes="v"),
    one("bfgs_edge", lambda c: c, positive(3), variants="f64", modes="v"),
    one("lbfgs_edge", lambda c: c, positive(3), variants="f64", modes="v"),
    one("bfgs_root", steep, real(4, 4), real(4), variants="f64"),
    one("bfgs_tangent", lambda m, b: jnp.linalg.solve(definite(m), b), real(4, 4), real(4), variants="f64", modes="vj"),
    one("bfgs_of_jax", bowl_of_jax(bfgs), real(6, 6), real(6), real(6), variants="f32", modes="v"),
    one("lbfgs_of_jax", bowl_of_jax(lambda *of, **options: lbfgs(*of, ftol=0, **options)), real(6, 6), real(6), real(6), variants="f32", modes="v"),
    one("bfgs_of_jax64", bowl_of_jax(bfgs), real(6, 6), real(6), real(6), variants="f64", modes="v"),
    one("lbfgs_of_jax64", bowl_of_jax(lambda *of, **options: lbfgs(*of, ftol=0, **options)), real(6, 6), real(6), real(6), variants="f64", modes="v"),
    one("bfgs_maxiter", ends(bfgs, rosenbrock, maxiter=3), real(4), variants=WIDE, modes="v"),
    one("lbfgs_maxiter", ends(lbfgs, rosenbrock, maxiter=3), real(4), variants=WIDE, modes="v"),
    one("bfgs_endless", ends(bfgs, jnp.sum), real(3), variants=WIDE, modes="v"),
    one("lbfgs_endless", ends(lbfgs, jnp.sum), real(3), variants=WIDE, modes="v"),
    one("lbfgs_stands", ends(lbfgs, lambda x: 1 + jnp.sum(x**4), gtol=1e-30, ftol=1e-4), real(3), variants="f64", modes="v"),
    one("odeint", decay, real(3), times(0, 0.5, 1, 2.5), real(), modes="vg"),
    one("odeint_pendulum", pendulum, real(2), real(2), times(-1, 0, 0.25, 3), real(), real(2), variants="f64", modes="vg"),
    one("odeint_once", decay, real(3), times(0.5), real(), variants="f64", modes="vg"),
]  # fmt: skip
