"""More models and programs of JAX for b22: classes that jax_modules.py's first ones lack. Weights are f32 where nothing else is said."""

import jax
import jax.numpy as jnp
from jax import lax


def S(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


INT, HALF = jnp.int32, jnp.bfloat16


def stepped(cost, count):
    """A step of gradient descent on the first `count` arguments."""

    def step(*args):
        value, slopes = jax.value_and_grad(lambda weights: cost(*weights, *args[count:]))(args[:count])
        return value, *(w - (0.01 * g).astype(w.dtype) for w, g in zip(args, slopes))

    return step


def adam(cost, count):
    """A step of Adam: weights, means, squares, then data."""

    def step(*args):
        weights, means, squares, data = args[:count], args[count : 2 * count], args[2 * count : 3 * count], args[3 * count :]
        value, slopes = jax.value_and_grad(lambda weights: cost(*weights, *data))(weights)
        means = [0.9 * m + 0.1 * g for m, g in zip(means, slopes)]
        squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, slopes)]
        return value, *(w - 0.001 * m / (jnp.sqrt(jnp.abs(s)) + 1e-8) for w, m, s in zip(weights, means, squares)), *means, *squares

    return step


def entropy(scores, labels):
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, scores.shape[-1]) * jax.nn.log_softmax(scores.astype(jnp.float32)), -1))


def conv(x, k, stride=1, groups=1):
    return lax.conv_general_dilated(x, k, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)


def layer_norm(x, scale):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (y * scale).astype(x.dtype)


def batch_norm(x, scale):
    return jax.nn.standardize(x, (0, 1, 2)) * scale


# --- Attention and language ---


def attention(q, k, v):
    """bf16, scores in f32, a causal mask: b t h d."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    mask = lax.broadcasted_iota(INT, scores.shape[-2:], 0) >= lax.broadcasted_iota(INT, scores.shape[-2:], 1)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)).astype(q.dtype), v)


def rotated(x, places):
    angles = places[:, None].astype(jnp.float32) * 10000.0 ** (-jnp.arange(0, x.shape[-1] // 2) / (x.shape[-1] // 2))
    a, b = jnp.split(x, 2, -1)
    sin, cos = jnp.sin(angles)[None, :, None].astype(x.dtype), jnp.cos(angles)[None, :, None].astype(x.dtype)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def block(x, scale, qkv, out, gate, up, down, heads=4):
    b, t, _ = x.shape
    q, k, v = jnp.split((layer_norm(x, scale) @ qkv).reshape(b, t, heads, -1), 3, -1)
    places = jnp.arange(t)
    x = x + attention(rotated(q, places), rotated(k, places), v).reshape(b, t, -1) @ out
    y = layer_norm(x, scale)
    return x + (jax.nn.silu(y @ gate) * (y @ up)) @ down


def llama_shapes(dtype, width=256, layers=4):
    shapes = [(width, 3 * width), (width, width), (width, 2 * width), (width, 2 * width), (2 * width, width)]
    return [S(512, width, dtype=dtype), S(layers, width), *(S(layers, *s, dtype=dtype) for s in shapes)]


def llama(words, *rest):
    """Layers by a scan over stacked weights, as large models have it."""
    *layers, tokens = rest
    x, _ = lax.scan(lambda x, layer: (block(x, *layer), None), words[tokens], tuple(layers))
    return (x @ words.T).astype(jnp.float32)


def decode(words, scale, qkv, out, up, down, keys, values, token, place):
    """One token, with a cache of what came before."""
    b, heads, wide = token.shape[0], keys.shape[3], keys.shape[4]
    x = words[token]
    for i in range(keys.shape[0]):
        q, k, v = jnp.split((layer_norm(x, scale[i]) @ qkv[i]).reshape(b, heads, -1), 3, -1)
        keys = lax.dynamic_update_slice(keys, k[None, :, None], (i, 0, place, 0, 0))
        values = lax.dynamic_update_slice(values, v[None, :, None], (i, 0, place, 0, 0))
        scores = jnp.einsum("bhd,bthd->bht", q, keys[i]) * wide**-0.5
        scores = jnp.where(jnp.arange(keys.shape[2]) <= place, scores, -jnp.inf)
        x = x + jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), values[i]).reshape(b, -1) @ out[i]
        x = x + jax.nn.gelu(layer_norm(x, scale[i]) @ up[i]) @ down[i]
    return jnp.argmax(x @ words.T, -1), keys, values


def embedded(table, tokens, targets):
    return jnp.mean((jnp.take(table, tokens, axis=0).sum(1) - targets) ** 2)


def dropped(w1, w2, x, labels, key):
    h = jax.nn.relu(x @ w1)
    h = jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, h.shape), h / 0.9, 0)
    return entropy(h @ w2, labels)


def vit(patch, places, scale, qkv, out, gate, up, down, head, images, labels):
    x = conv_patches(images, patch) + places
    for i in range(scale.shape[0]):
        x = block(x, scale[i], qkv[i], out[i], gate[i], up[i], down[i])
    return entropy(x.mean(1) @ head, labels)


def conv_patches(images, patch):
    size = patch.shape[0]
    y = lax.conv_general_dilated(images, patch, (size, size), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y.reshape(y.shape[0], -1, y.shape[-1])


# --- Images ---


def residual(*args):
    *weights, x, labels = args
    weights = iter(weights)
    x = jax.nn.relu(batch_norm(conv(x, next(weights)), next(weights)))
    for features in (32, 32, 64, 64):
        stride = 1 if features == x.shape[-1] else 2
        y = jax.nn.relu(batch_norm(conv(x, next(weights), stride), next(weights)))
        y = batch_norm(conv(y, next(weights)), next(weights))
        x = jax.nn.relu(y + (x if stride == 1 else conv(x, next(weights), 2)))
    return entropy(x.mean((1, 2)) @ next(weights), labels)


def residual_shapes():
    shapes, last = [S(3, 3, 3, 32), S(32)], 32
    for features in (32, 32, 64, 64):
        shapes += [S(3, 3, last, features), S(features), S(3, 3, features, features), S(features)]
        shapes += [S(1, 1, last, features)] if features != last else []
        last = features
    return [*shapes, S(64, 10)]


def mobile(*args):
    *weights, x, labels = args
    weights = iter(weights)
    x = jax.nn.relu6(batch_norm(conv(x, next(weights), 2), next(weights)))
    for stride in (1, 2, 1):
        x = jax.nn.relu6(batch_norm(conv(x, next(weights), stride, x.shape[-1]), next(weights)))
        x = jax.nn.relu6(batch_norm(conv(x, next(weights)), next(weights)))
    return entropy(x.mean((1, 2)) @ next(weights), labels)


def mobile_shapes():
    shapes, last = [S(3, 3, 3, 32), S(32)], 32
    for features in (64, 128, 128):
        shapes += [S(3, 3, 1, last), S(last), S(1, 1, last, features), S(features)]
        last = features
    return [*shapes, S(128, 10)]


def unet(k1, k2, k3, k4, k5, x, noise):
    a = jax.nn.silu(grouped(conv(x, k1)))
    b = jax.nn.silu(grouped(conv(a, k2, 2)))
    b = jax.nn.silu(grouped(conv(b, k3)))
    up = lax.conv_transpose(b, k4, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.mean((conv(jnp.concatenate([a, up], -1), k5) - noise) ** 2)


def grouped(x, groups=8):
    y = x.reshape(*x.shape[:-1], groups, -1)
    return jax.nn.standardize(y, (1, 2, 4)).reshape(x.shape)


def average_pools(k1, k2, w, x, labels):
    pool = lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4  # noqa: E731
    x = pool(jnp.tanh(conv(x, k1)))
    x = pool(jnp.tanh(conv(x, k2)))
    return entropy(x.reshape(x.shape[0], -1) @ w, labels)


# --- Recurrent ---


def gru(w, u, xs, start, targets):
    def cell(h, x):
        a, b = jnp.split(x @ w, [2 * h.shape[-1]], -1)
        c, d = jnp.split(h @ u, [2 * h.shape[-1]], -1)
        r, z = jnp.split(jax.nn.sigmoid(a + c), 2, -1)
        h = (1 - z) * jnp.tanh(b + r * d) + z * h
        return h, h

    return jnp.mean((lax.scan(cell, start, xs)[1] - targets) ** 2)


def linear_recurrence(a, b, c, x):
    """A state space model: by an associative scan."""
    decay = jax.nn.sigmoid(a)
    u = x[..., None] * b
    both = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])  # noqa: E731
    _, h = lax.associative_scan(both, (jnp.broadcast_to(decay, u.shape), u), axis=1)
    return jnp.mean(jnp.sum(h * c, -1) ** 2)


def filtered(f, h, start, spread, ys):
    """Kalman's filter."""

    def step(carry, y):
        x, p = carry
        x, p = f @ x, f @ p @ f.T + jnp.eye(x.shape[0])
        s = h @ p @ h.T + jnp.eye(h.shape[0])
        gain = jnp.linalg.solve(s, h @ p).T
        x = x + gain @ (y - h @ x)
        return (x, p - gain @ h @ p), x

    return lax.scan(step, (start, spread @ spread.T), ys)[1]


# --- Sorting, searching, routing ---


def beams(scores, tokens):
    value, index = lax.top_k(jax.nn.log_softmax(scores).reshape(scores.shape[0], -1), 8)
    beam, word = index // scores.shape[-1], index % scores.shape[-1]
    return value, jnp.concatenate([jnp.take_along_axis(tokens, beam[..., None], 1), word[..., None]], -1)


def nucleus(scores, key):
    order = jnp.argsort(-scores, -1)
    ordered = jnp.take_along_axis(scores, order, -1)
    mass = jnp.cumsum(jax.nn.softmax(ordered), -1)
    pick = jax.random.categorical(jax.random.wrap_key_data(key), jnp.where(mass < 0.9, ordered, -jnp.inf))
    return jnp.take_along_axis(order, pick[:, None], -1)


def sorted_pairs(keys, values):
    keys, values = lax.sort((keys, values), num_keys=1)
    return keys, jnp.cumsum(values)


def clusters(points, centres):
    def step(_, centres):
        far = jnp.sum(points**2, -1)[:, None] - 2 * points @ centres.T + jnp.sum(centres**2, -1)
        nearest = jnp.argmin(far, -1)
        sums = jax.ops.segment_sum(points, nearest, centres.shape[0])
        counts = jax.ops.segment_sum(jnp.ones(points.shape[0]), nearest, centres.shape[0])
        return sums / jnp.maximum(counts, 1)[:, None]

    return lax.fori_loop(0, 5, step, centres)


def messages(w1, w2, x, senders, receivers):
    """A graph network of two rounds."""
    for w in (w1, w2):
        sums = jax.ops.segment_sum(x[senders] @ w, receivers, x.shape[0])
        x = jax.nn.relu(x + sums)
    return jnp.mean(x**2)


def dispatched(gate, up, down, x):
    """Experts with places for a number of tokens each, as Switch has them."""
    experts, room = gate.shape[-1], 64
    p = jax.nn.softmax(x @ gate)
    e = jnp.argmax(p, -1)
    hot = jax.nn.one_hot(e, experts, dtype=INT)
    place = jnp.sum(jnp.cumsum(hot, 0) * hot, -1) - 1
    sent = jnp.zeros((experts, room, x.shape[-1])).at[e, place].set(x, mode="drop")
    done = jnp.einsum("xtf,xfd->xtd", jax.nn.gelu(jnp.einsum("xtd,xdf->xtf", sent, up)), down)
    back = done.at[e, place].get(mode="fill", fill_value=0)
    return jnp.mean((back * jnp.take_along_axis(p, e[:, None], -1) - x) ** 2)


# --- Numbers ---


def spectral(u):
    k = jnp.fft.rfftfreq(u.shape[1]) ** 2 + jnp.fft.fftfreq(u.shape[0])[:, None] ** 2
    return lax.fori_loop(0, 4, lambda _, u: jnp.fft.irfft2(jnp.fft.rfft2(u) * jnp.exp(-k), u.shape), u)


def spectrogram(x):
    frames = x[jnp.arange(0, x.shape[0] - 1024, 256)[:, None] + jnp.arange(1024)] * jnp.hanning(1024)
    return jnp.log(jnp.abs(jnp.fft.rfft(frames)) + 1e-6)


def lorenz(x):
    def slope(x):
        a, b, c = x[..., 0], x[..., 1], x[..., 2]
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], -1)

    def step(x, _):
        k1 = slope(x)
        k2 = slope(x + 0.005 * k1)
        k3 = slope(x + 0.005 * k2)
        k4 = slope(x + 0.01 * k3)
        return x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, x, None, 200)[0]


def bundle(w, xs):
    """Jacobians of a small net at many points."""
    net = lambda x: jnp.tanh(jnp.tanh(x @ w) @ w)  # noqa: E731
    return jax.vmap(jax.jacfwd(net))(xs)


def newton(w, x, y):
    cost = lambda w: jnp.mean(jnp.log1p(jnp.exp(-y * (x @ w)))) + 0.01 * w @ w  # noqa: E731
    step = lambda _, w: w - jnp.linalg.solve(jax.hessian(cost)(w), jax.grad(cost)(w))  # noqa: E731
    return lax.fori_loop(0, 5, step, w)


def conjugate(b):
    def times(x):
        p = jnp.pad(x, 1)
        return 4.1 * x - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]

    def step(carry):
        x, r, p, rr, i = carry
        q = times(p)
        a = rr / jnp.vdot(p, q)
        x, r = x + a * p, r - a * q
        new = jnp.vdot(r, r)
        return x, r, r + new / rr * p, new, i + 1

    start = (jnp.zeros_like(b), b, b, jnp.vdot(b, b), 0)
    return lax.while_loop(lambda c: (c[3] > 1e-10) & (c[4] < 50), step, start)[0]


def options(key):
    """Prices of paths, by Monte Carlo."""
    steps = jax.random.normal(jax.random.wrap_key_data(key), (64, 8192)) * 0.02 + 0.0001
    paths = jnp.exp(jnp.cumsum(steps, 0))
    return jnp.mean(jnp.maximum(paths.max(0) - 1.1, 0)), jnp.mean(jnp.maximum(paths.mean(0) - 1, 0))


def quantised(x, w, scale):
    q = jnp.clip(jnp.round(x / 0.01), -127, 127).astype(jnp.int8)
    return lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=INT).astype(jnp.float32) * scale


def warped(image, dx, dy):
    """An image sampled at moved places, between pixels."""
    rows, columns = image.shape
    r, c = jnp.mgrid[0:rows, 0:columns]
    return jax.scipy.ndimage.map_coordinates(image, [r + dy, c + dx], order=1, mode="nearest")


def transported(cost):
    """Sinkhorn's iteration, in logarithms."""

    def step(_, fg):
        f, g = fg
        f = -jax.nn.logsumexp(-cost + g[None], 1)
        return f, -jax.nn.logsumexp(-cost + f[:, None], 0)

    return lax.fori_loop(0, 10, step, (jnp.zeros(cost.shape[0]), jnp.zeros(cost.shape[1])))


def lives(grid):
    def step(_, g):
        around = sum(jnp.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((around == 3) | ((g == 1) & (around == 2))).astype(INT)

    return lax.fori_loop(0, 20, step, grid & 1)


TOKENS = S(4, 64, dtype=INT)
_residual, _mobile = residual_shapes(), mobile_shapes()
_dense = [S(784, 256), S(256, 10)]
_unet = [S(3, 3, 3, 32), S(3, 3, 32, 64), S(3, 3, 64, 64), S(3, 3, 64, 32), S(3, 3, 64, 3)]
_vit = [S(8, 8, 3, 128), S(16, 128), S(2, 128), S(2, 128, 384), S(2, 128, 128), S(2, 128, 256), S(2, 128, 256), S(2, 256, 128), S(128, 10)]
_decode = [S(512, 256), S(4, 256), S(4, 256, 768), S(4, 256, 256), S(4, 256, 1024), S(4, 1024, 256), S(4, 2, 256, 4, 64), S(4, 2, 256, 4, 64), S(2, dtype=INT), S(dtype=INT)]
MODELS = {
    "attention, bf16[4,256,4,64], causal": (attention, 3 * [S(4, 256, 4, 64, dtype=HALF)]),
    "its gradients": (jax.grad(lambda *a: attention(*a).astype(jnp.float32).sum(), (0, 1, 2)), 3 * [S(4, 256, 4, 64, dtype=HALF)]),
    "Llama of 4 layers of 256, bf16": (llama, [*llama_shapes(HALF), TOKENS]),
    "Llama, bf16, a step": (stepped(lambda *a: entropy(llama(*a[:-1]), a[-1]), 7), [*llama_shapes(HALF), TOKENS, TOKENS]),
    "Llama, f32, a step of Adam": (adam(lambda *a: entropy(llama(*a[:-1]), a[-1]), 7), [*(3 * llama_shapes(jnp.float32)), TOKENS, TOKENS]),
    "a token of 4 layers, 256 in the cache": (decode, _decode),
    "embedding 10,000 of 64, gradient": (stepped(embedded, 1), [S(10000, 64), S(256, 32, dtype=INT), S(256, 64)]),
    "MLP with dropout, a step of 128": (stepped(dropped, 2), [*_dense, S(128, 784), S(128, dtype=INT), S(2, dtype=jnp.uint32)]),
    "ViT of 2 layers of 128, a step of 16": (stepped(vit, 9), [*_vit, S(16, 32, 32, 3), S(16, dtype=INT)]),
    "ResNet-8 of 32 x 32, a step of 8": (stepped(residual, len(_residual)), [*_residual, S(8, 32, 32, 3), S(8, dtype=INT)]),
    "MobileNet of 64 x 64, a step of 4": (stepped(mobile, len(_mobile)), [*_mobile, S(4, 64, 64, 3), S(4, dtype=INT)]),
    "U-Net with transposed convolution, a step of 4": (stepped(unet, 5), [*_unet, S(4, 32, 32, 3), S(4, 32, 32, 3)]),
    "LeNet with average pools, a step of 32": (stepped(average_pools, 3), [S(5, 5, 1, 6), S(5, 5, 6, 16), S(784, 10), S(32, 28, 28, 1), S(32, dtype=INT)]),
    "GRU of 128, 64 steps of 16, a step": (stepped(gru, 2), [S(64, 384), S(128, 384), S(64, 16, 64), S(16, 128), S(64, 16, 128)]),
    "a state space model of 64 by 16, a step": (stepped(linear_recurrence, 3), [S(64, 16), S(64, 16), S(64, 16), S(4, 256, 64)]),
    "Kalman's filter of 8, 256 steps": (filtered, [S(8, 8), S(4, 8), S(8), S(8, 8), S(256, 4)]),
    "beam search, 4 x 8 beams of 4,096": (beams, [S(4, 8, 4096), S(4, 8, 32, dtype=INT)]),
    "nucleus sampling, 16 of 4,096": (nucleus, [S(16, 4096), S(2, dtype=jnp.uint32)]),
    "2^17 pairs sorted and summed": (sorted_pairs, [S(2**17), S(2**17)]),
    "k-means, 8,192 points of 16, 32 centres": (clusters, [S(8192, 16), S(32, 16)]),
    "a graph of 2,048 nodes, 8,192 edges, a step": (stepped(messages, 2), [S(64, 64), S(64, 64), S(2048, 64), S(8192, dtype=INT), S(8192, dtype=INT)]),
    "Switch of 8 experts, 256 tokens, a step": (stepped(dispatched, 3), [S(128, 8), S(8, 128, 256), S(8, 256, 128), S(256, 128)]),
    "diffusion by Fourier, 256 x 256": (spectral, [S(256, 256)]),
    "a spectrogram of 2^17": (spectrogram, [S(2**17)]),
    "Lorenz, 4,096 starts, 200 steps": (lorenz, [S(4096, 3)]),
    "Jacobians of 64 at 64 points": (bundle, [S(64, 64), S(64, 64)]),
    "Newton's steps of a logistic regression of 32": (newton, [S(32), S(1024, 32), S(1024)]),
    "conjugate gradients, 256 x 256": (conjugate, [S(256, 256)]),
    "prices by 8,192 paths of 64": (options, [S(2, dtype=jnp.uint32)]),
    "s8 products of 256, 512, 512": (quantised, [S(256, 512), S(512, 512, dtype=jnp.int8), S(512)]),
    "an image of 512 x 512 warped": (warped, [S(512, 512), S(512, 512), S(512, 512)]),
    "Sinkhorn, 512 x 512, 10 steps": (transported, [S(512, 512)]),
    "Life, 512 x 512, 20 steps": (lives, [S(512, 512, dtype=INT)]),
}
