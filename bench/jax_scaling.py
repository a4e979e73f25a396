"""The families of scaling.c in JAX: family(n) -> (a function to compile, the shapes of its arguments)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, PartitionSpec as P

import jax_models


def shapes(count, *dims):
    return [jax.ShapeDtypeStruct(dims, np.float32)] * count


def chained(n, x, y):
    for i in range(n):
        x = x * y if i % 2 == 0 else x + y
    return x


def chain(n):
    return jax.jit(lambda x, y: chained(n, x, y)), shapes(2, 1024)


def chain_grad(n):
    return jax.jit(jax.value_and_grad(lambda x, y: jnp.sum(chained(n, x, y)), (0, 1))), shapes(2, 1024)


def products_grad(n):
    def loss(x, w):
        for _ in range(n):
            x = x @ w
        return jnp.sum(x)

    return jax.jit(jax.value_and_grad(loss, (0, 1))), shapes(2, 64, 64)


def layernorm(n):
    def body(x, gain):
        for _ in range(n):
            centred = x - jnp.mean(x, -1, keepdims=True)
            x = centred * lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * gain
        return x

    return jax.jit(body), shapes(2, 64, 256)


def sgd(n):
    return jax.jit(lambda w, g: [x - 0.1 * y for x, y in zip(w, g)]), [shapes(n, 16, 16)] * 2


def adam(n):
    def one(w, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * (g * g)
        return w - 0.01 * m / (jnp.sqrt(v) + 1e-8), m, v

    return jax.jit(lambda *arrays: [one(*four) for four in zip(*arrays)]), [shapes(n, 16, 16)] * 4


def training(n):
    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    def steps(w1, w2, x, y):
        w = [w1, w2]
        for _ in range(n):
            _, slopes = jax.value_and_grad(loss)(w, x, y)
            w = [a - 0.1 * g for a, g in zip(w, slopes)]
        return w

    return jax.jit(steps), shapes(4, 32, 32)


def on_mesh(body, in_specs, out_specs):
    return jax.jit(shard_map(body, mesh=Mesh(np.array(jax.devices()), ("d",)), in_specs=in_specs, out_specs=out_specs))


def psums_in_sequence(n):
    def body(x, y):
        for _ in range(n):
            x = lax.psum(x, "d") * y
        return x

    return on_mesh(body, (P("d"), P("d")), P("d")), shapes(2, 64)


def psums_side_by_side(n):
    return on_mesh(lambda xs: [lax.psum(x, "d") for x in xs], P("d"), P()), [shapes(n, 64)]


def transformer(n):
    model = jax_models.transformer(n)
    mesh = Mesh(np.array(jax.devices()).reshape(model.mesh[0]), model.mesh[1])
    shape_of = lambda arrays: {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in arrays.items()}
    f = shard_map(jax.value_and_grad(model.loss), mesh=mesh, in_specs=(model.weight_specs, model.data_specs),
                  out_specs=(P(), model.weight_specs))
    return jax.jit(f), [shape_of(part) for part in model.make(np.random.default_rng(1))]


def equal_layers(n, kept):
    """One function for all layers, which is traced and lowered once; or its equations again and again."""

    def layer(h, gain, w1, w2):
        normed = h * lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-5) * gain
        return h + jnp.tanh(normed @ w1) @ w2

    one = jax.jit(layer) if kept else layer

    def loss(gains, w1s, w2s, h):
        for weights in zip(gains, w1s, w2s):
            h = one(h, *weights)
        return jnp.mean(h * h)

    return jax.jit(jax.value_and_grad(loss, (0, 1, 2))), [shapes(n, 64), shapes(n, 64, 256), shapes(n, 256, 64), shapes(1, 32, 64)[0]]


def layers_called(n):
    return equal_layers(n, True)


def layers_written_out(n):
    return equal_layers(n, False)


def scan_carries(n):
    def loss(carries):
        carries, _ = lax.scan(lambda c, _: ([jnp.tanh(x) for x in c], None), carries, None, length=4)
        return jnp.sum(sum(carries))

    return jax.jit(jax.value_and_grad(loss)), [shapes(n, 4)]


def is_large(x):
    return jnp.sum(x) > 1e9


def step(pair):
    return jnp.tanh(pair[0]) * pair[1], pair[1]


def nested_scans(n):
    def level(pair, depth):
        if depth == 0:
            return step(pair)
        pair = pair[0] * pair[1], pair[1]
        return lax.scan(lambda c, _: (level(c, depth - 1), None), pair, None, length=2)[0]

    return jax.jit(lambda x, y: level((x, y), n)[0]), shapes(2, 4)


def conds(n):
    def longer(pair):
        made = step(pair)
        return made[0] + pair[0], made[1]

    def loss(x, y):
        pair = x, y
        for _ in range(n):
            pair = lax.cond(is_large(pair[0]), longer, step, pair)
        return jnp.sum(pair[0])

    return jax.jit(jax.value_and_grad(loss, (0, 1))), shapes(2, 4)


def fan(n):
    def loss(x):
        y = jnp.tanh(x)
        return jnp.sum(sum(jnp.tanh(float(i) * y) for i in range(n)))

    return jax.jit(jax.value_and_grad(loss)), shapes(1, 4)


def ppermutes(n):
    random = np.random.default_rng(1)

    def body(x, y):
        for _ in range(n):
            x = lax.ppermute(x, "d", list(enumerate(random.permutation(8).tolist()))) * y
        return x

    return on_mesh(body, (P("d"), P("d")), P("d")), shapes(2, 64)


def heads(n):
    def loss(q, k, v):
        total = 0
        for i in range(n):
            part = slice(8 * i, 8 * i + 8)
            shares = jax.nn.softmax(q[:, part] @ k[:, part].T, -1)
            total = total + jnp.sum(jnp.tanh(shares @ v[:, part]))
        return total

    return jax.jit(jax.value_and_grad(loss, (0, 1, 2))), shapes(3, 32, 8 * n)


def mlp_widths(n):
    def loss(weights, x):
        for w, b in weights:
            x = jnp.tanh(x @ w + b)
        return jnp.sum(x * x)

    width = lambda i: 64 + 3 * (i % 100)
    weights = [(shapes(1, width(i), width(i + 1))[0], shapes(1, width(i + 1))[0]) for i in range(n)]
    return jax.jit(jax.value_and_grad(loss)), [weights, shapes(1, 32, 64)[0]]


def adam_shapes(n):
    return adam(n)[0], [[shapes(1, 1 + i % 97, 3 + i % 89)[0] for i in range(n)]] * 4


FAMILIES = {f.__name__: f for f in (chain, chain_grad, products_grad, layernorm, sgd, adam, training, psums_in_sequence,
                                    psums_side_by_side, transformer, layers_called, layers_written_out, scan_carries, nested_scans,
                                    conds, fan, ppermutes, heads, mlp_widths, adam_shapes)}
