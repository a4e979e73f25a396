import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_enable_x64", True)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

N, STEPS, CG_STEPS, DT, H = 32, 200, 12, 0.005, 1 / 33
mesh = jax.make_mesh((4, 2), ("y", "x"), axis_types=(AxisType.Auto,) * 2)


def pad(f, axis, name, low_wall=0.0, high_wall=0.0):
    """Neighbours' edges on both sides of `axis`; at the domain's border the values at the walls."""
    n, i = lax.axis_size(name), lax.axis_index(name)
    first = lax.slice_in_dim(f, 0, 1, axis=axis)
    last = lax.slice_in_dim(f, f.shape[axis] - 1, f.shape[axis], axis=axis)
    low = lax.ppermute(last, name, [(k, k + 1) for k in range(n - 1)])
    high = lax.ppermute(first, name, [(k + 1, k) for k in range(n - 1)])
    low = jnp.where(i == 0, low_wall, low)
    high = jnp.where(i == n - 1, high_wall, high)
    return jnp.concatenate([low, f, high], axis=axis)


def slopes(fy, fx):
    return (fy[2:] - fy[:-2]) / (2 * H), (fx[:, 2:] - fx[:, :-2]) / (2 * H)


def laplacian(fy, fx):
    return (fy[2:] + fy[:-2] + fx[:, 2:] + fx[:, :-2] - 4 * fy[1:-1]) / H**2


def minus_laplacian(psi):
    return -laplacian(pad(psi, 0, "y"), pad(psi, 1, "x"))


def velocity(psi):
    """u and v, of which psi is the stream function."""
    psi_y, psi_x = slopes(pad(psi, 0, "y"), pad(psi, 1, "x"))
    return psi_y, -psi_x


def dot(a, b):
    return lax.psum(jnp.vdot(a, b), ("y", "x"))


def solve_poisson(omega, psi):
    """psi whose negative Laplacian is omega, by conjugate gradients from the psi of the step before."""

    def step(_, carry):
        psi, r, p, rr = carry
        q = minus_laplacian(p)
        alpha = rr / dot(p, q)
        r = r - alpha * q
        rr_new = dot(r, r)
        return psi + alpha * p, r, r + rr_new / rr * p, rr_new

    r = omega - minus_laplacian(psi)
    return lax.fori_loop(0, CG_STEPS, step, (psi, r, r, dot(r, r)))[0]


def advance(omega, psi, lid, nu):
    """One step of the vorticity equation. No slip at the walls (Thom's formula), and the upper one moves."""
    u, v = velocity(psi)
    wall = -2 * psi / H**2
    omega_y = pad(omega, 0, "y", wall[:1], wall[-1:] - 2 * lid / H)
    omega_x = pad(omega, 1, "x", wall[:, :1], wall[:, -1:])
    by_y, by_x = slopes(omega_y, omega_x)
    return omega + DT * (nu * laplacian(omega_y, omega_x) - u * by_x - v * by_y)


@jax.shard_map(
    mesh=mesh, in_specs=(P("y", "x"), P(), P()), out_specs=(P(), (P(), P(), P("y", "x"), P("y", "x")))
)
def simulate(still, lid, nu):
    def step(state, _):
        omega = advance(*state, lid, nu)
        psi = solve_poisson(omega, state[1])
        u, v = velocity(psi)
        energy = 0.5 * H**2 * (dot(u, u) + dot(v, v))
        enstrophy = 0.5 * H**2 * dot(omega, omega)
        return (omega, psi), (energy, enstrophy)

    (omega, psi), (energy, enstrophy) = lax.scan(step, (still, still), length=STEPS)
    return energy[-1], (energy, enstrophy, omega, psi)


still = jnp.zeros((N, N))
run = jax.jit(jax.value_and_grad(simulate, argnums=(1, 2), has_aux=True))
(_, (energy, enstrophy, omega, psi)), (by_lid, by_nu) = run(still, 1.0, 0.01)

print("kinetic energy", energy[49::50])
print("enstrophy", enstrophy[49::50])
print(f"least psi {psi.min():.6g} at", *np.unravel_index(psi.argmin(), psi.shape))
print("psi[16, 12:16]", psi[16, 12:16])
print("omega[31, 12:16]", omega[31, 12:16])
print(f"d energy / d lid's speed {by_lid:.6g}")
print(f"d energy / d viscosity {by_nu:.6g}")
