"""Keys as a dtype (jax.random.key): made, split, moved, compared, in loops and batches, and drawn from. Inputs and results are their words."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case
from random_draws import key, keys, seed, without_x64

R = jax.random
wrap, data = R.wrap_key_data, R.key_data


def unit(k, *shape):
    return R.uniform(k, shape, jnp.float32)


def draws(k):
    k = wrap(k)
    return unit(k, 3), R.randint(k, (5,), 0, 100, jnp.int32), R.permutation(k, jnp.arange(7, dtype=jnp.int32)), R.bits(k, (2,), jnp.uint32)


def moves(k, at):
    k = wrap(k)  # key[3,2]
    moved = jnp.concatenate([k.T.reshape(6), lax.rev(k[:, 0], (0,)), jnp.broadcast_to(k[0, 1], (2,))])
    chosen = jnp.where(jnp.array([True, False, True]), k[:, 0], k[:, 1])
    return data(moved), data(chosen), data(moved.at[at].get(mode="fill")), data(moved[::4]), data(lax.full_like(chosen, 7))


def compares(k):
    k = wrap(k)
    other = jnp.concatenate([k[:2], k[:2]])
    return k == other, k != other


def updates(k, at):
    k = wrap(k)
    part = lax.dynamic_slice(k, (at,), (2,))
    return data(part), data(lax.dynamic_update_slice(k, k[:2], (at,))), data(k.at[at].set(k[0]))


def scans(k, ks):
    def step(carry, x):
        carry, use = R.split(carry)
        return carry, (R.fold_in(x, 3), unit(use, 2))

    last, (stacked, drawn) = lax.scan(step, wrap(k), wrap(ks))
    return data(last), data(stacked), drawn


def whiles(k):
    def step(carry):
        i, k, total = carry
        k, use = R.split(k)
        return i + 1, k, total ^ R.bits(use, (3,), jnp.uint32)

    _, k, total = lax.while_loop(lambda carry: carry[0] < 5, step, (jnp.int32(0), wrap(k), jnp.zeros(3, jnp.uint32)))
    return data(k), total


def conds(k, which):
    def one(use):
        return lax.cond(use > 0, lambda k: R.fold_in(k, 1), lambda k: R.split(k)[1], wrap(k))

    return data(one(which[0])), data(one(which[1])), data(jax.vmap(one)(which))


def batches(k):
    drawn = jax.vmap(jax.vmap(lambda k: unit(k, 2)), in_axes=1, out_axes=1)(wrap(k))
    split = jax.vmap(jax.vmap(lambda k: R.split(k, 2)), in_axes=1, out_axes=2)(wrap(k))
    return drawn, data(split)


def gradient(k, x):
    def step(carry, _):
        k, y = carry
        k, use = R.split(k)
        return (k, jnp.tanh(y * unit(use))), y

    (_, y), ys = lax.scan(step, (wrap(k), x), None, length=3)
    return y + ys.sum()


def shards(variant, ks):
    ks = wrap(ks)
    sent = lax.ppermute(ks, "d", [(i, (i + 1) % 4) for i in range(4)])
    split = lax.all_to_all(jnp.concatenate([ks, sent]), "d", 0, 0, tiled=True)
    return data(split), R.bits(R.fold_in(sent[0], lax.axis_index("d")), (2,), jnp.uint32)


def whichever(*numbers):
    return lambda random, variant: np.array(numbers, np.int32)


CASES = [
    Case("of_seed", "s32 u32 s64 u64", lambda seed: data(R.key(seed)), [seed]),
    Case("split", "u32", lambda k: data(R.split(wrap(k), (2, 3))), [key]),
    Case("fold_in", "u32", lambda k: data(R.fold_in(wrap(k), 77)), [key]),
    Case("draws", "u32", draws, [key]),
    Case("moves", "u32", moves, [keys(3, 2), whichever(1, 20, 0)]),
    Case("compares", "u32", compares, [keys(4)]),
    Case("updates", "u32", updates, [keys(4), lambda random, variant: np.array(2, np.int32)]),
    Case("scans", "u32", scans, [key, keys(4)]),
    Case("whiles", "u32", whiles, [key]),
    Case("conds", "u32", conds, [key, whichever(0, 1, 1)]),
    Case("batches", "u32", batches, [keys(2, 3)]),
    Case("choice", "u32", without_x64(lambda k, x: data(R.choice(wrap(k), wrap(x), (3,)))), [key, keys(5)]),
    Case("gradient", "f32", gradient, [key, lambda random, variant: np.array(1.5, np.float32)]),
    Case("shards", "d=4", shards, [keys(8)], specs="A > A A"),
]
