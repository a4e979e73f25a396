"""jax_nets.py: JAX's side of the cases of op_nets.c and op_steps.c: networks, and what goes step by step."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_cases import F32, Case, cross_entropy, family, ints, scaled, step_of

MASKED_OUT = -1e9


def of_mode(mode, loss, inputs, first, below=0):
    """A pass, or a step of everything from input `first` on."""
    return Case(loss if mode == "fwd" else step_of(loss, len(inputs) - first, first), inputs, below=below)


def f32s(*shapes):
    return [("f32", shape) for shape in shapes]


# --- What networks share ---


def layer_norm(x, gain, bias):
    d = x - jnp.mean(x, -1, keepdims=True)
    return d * lax.rsqrt(jnp.mean(jnp.square(d), -1, keepdims=True) + x.dtype.type(1e-5)) * gain + bias


def two_layers(x, w1, w2):
    return jax.nn.gelu(x @ scaled(w1, 0.03)) @ scaled(w2, 0.03)


def attend(x, wqkv, wo, heads, causal):
    b, t, w = x.shape
    q, k, v = (x @ scaled(wqkv, 0.03)).reshape(b, t, 3, heads, w // heads).transpose(2, 0, 3, 1, 4)
    scores = scaled(jnp.einsum("bhqd,bhkd->bhqk", q, k), 1 / np.sqrt(w // heads))
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, scores.dtype.type(MASKED_OUT))
    seen = jnp.einsum("bhqk,bhkd->bqhd", jax.nn.softmax(scores), v)
    return seen.reshape(b, t, w) @ scaled(wo, 0.03)


def transformer_weights(w):
    return [(w,), (w,), (w, 3 * w), (w, w), (w,), (w,), (w, 4 * w), (4 * w, w)]


def transformer_layer(x, w, heads, causal):
    x = x + attend(layer_norm(x, w[0], w[1]), w[2], w[3], heads, causal)
    return x + two_layers(layer_norm(x, w[4], w[5]), w[6], w[7])


# --- Networks ---


@family
def vit(mode, *words):
    batch, side, patch, width, heads, layers = ints(words)
    along = side // patch

    def loss(images, labels, into, places, *weights):
        patches = images.reshape(batch, along, patch, along, patch, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, along * along, patch * patch * 3)
        x = patches @ scaled(into, 0.03) + places
        for i in range(layers):
            x = transformer_layer(x, weights[8 * i:8 * i + 8], heads, False)
        return cross_entropy(jnp.mean(x, 1) @ scaled(weights[-1], 0.05), labels)

    shapes = [(patch * patch * 3, width), (along * along, width)] + transformer_weights(width) * layers + [(width, 10)]
    return of_mode(mode, loss, f32s((batch, side, side, 3)) + [("s32", (batch,))] + f32s(*shapes), 2, 10)


@family
def dropout(*words):
    batch, length, width, heads = ints(words)

    def dropped(x, mask):
        return x * jnp.where(mask > 0.4, F32(1 / 0.9), F32(0))

    def loss(x, mask1, mask2, *w):
        x = x + dropped(attend(layer_norm(x, w[0], w[1]), w[2], w[3], heads, True), mask1)
        x = x + dropped(two_layers(layer_norm(x, w[4], w[5]), w[6], w[7]), mask2)
        return jnp.mean(x * x)

    def step(*args):
        data, w, m, v = args[:3], args[3:11], args[11:19], args[19:]
        value, slopes = jax.value_and_grad(loss, tuple(range(3, 11)))(*data, *w)
        m = [a * F32(0.9) + g * F32(0.1) for a, g in zip(m, slopes)]
        v = [a * F32(0.999) + g * g * F32(0.001) for a, g in zip(v, slopes)]
        return (value, *(a - b * F32(0.01) / (jnp.sqrt(c) + F32(1e-8)) for a, b, c in zip(w, m, v)), *m, *v)

    return Case(step, f32s(*[(batch, length, width)] * 3, *transformer_weights(width) * 3))


@family
def mixer(mode, *words):
    batch, places, width, layers = ints(words)

    def loss(x, *weights):
        for i in range(layers):
            w = weights[8 * i:8 * i + 8]
            x = x + two_layers(layer_norm(x, w[0], w[1]).transpose(0, 2, 1), w[2], w[3]).transpose(0, 2, 1)
            x = x + two_layers(layer_norm(x, w[4], w[5]), w[6], w[7])
        return jnp.mean(x * x)

    layer = [(width,), (width,), (places, 2 * places), (2 * places, places), (width,), (width,), (width, 4 * width), (4 * width, width)]
    return of_mode(mode, loss, f32s((batch, places, width), *layer * layers), 1)


@family
def unet(mode, *words):
    batch, side, width = ints(words)

    def conv(x, w):
        w = scaled(w, 1 / (9 * w.shape[2]))
        return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def halved(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def doubled(x):
        return jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)

    def loss(images, targets, *w):
        whole = conv(conv(images, w[0]), w[1])
        half = conv(conv(halved(whole), w[2]), w[3])
        quarter = conv(conv(halved(half), w[4]), w[5])
        half = conv(jnp.concatenate([doubled(quarter), half], 3), w[6])
        whole = conv(jnp.concatenate([doubled(half), whole], 3), w[7])
        return jnp.mean(jnp.square(whole @ scaled(w[8], 0.03) - targets))

    pairs = [(3, width), (width, width), (width, 2 * width), (2 * width, 2 * width), (2 * width, 4 * width), (4 * width, 4 * width), (6 * width, 2 * width), (3 * width, width)]
    return of_mode(mode, loss, f32s(*[(batch, side, side, 3)] * 2, *[(3, 3, a, b) for a, b in pairs], (width, 3)), 2)


@family
def vae(mode, *words):
    batch, n, hidden, latent = ints(words)

    def loss(x, noise, w1, wm, wv, w3, w4):
        h = jnp.tanh(x @ scaled(w1, 0.003))
        mean, logs = h @ scaled(wm, 0.01), h @ scaled(wv, 0.001)
        z = mean + jnp.exp(logs * F32(0.5)) * noise
        logits = jnp.tanh(z @ scaled(w3, 0.01)) @ scaled(w4, 0.003)
        missed = jnp.sum(jax.nn.softplus(logits) - x * logits)
        return (missed + jnp.sum(mean * mean + jnp.exp(logs) - (logs + 1)) * F32(0.5)) / batch

    return of_mode(mode, loss, f32s((batch, n), (batch, latent), (n, hidden), (hidden, latent), (hidden, latent), (latent, hidden), (hidden, n)), 2)


@family
def graph(mode, *words):
    nodes, edges, width, layers = ints(words)

    def loss(h, source, *w):
        to = (source * 3 + jnp.arange(edges, dtype=jnp.int32)) % nodes
        for i in range(layers):
            sent = jnp.take(h @ scaled(w[2 * i + 1], 0.01), source, 0, mode="clip")
            h = jax.nn.relu(h @ scaled(w[2 * i], 0.01) + jax.ops.segment_sum(sent, to, nodes))
        return jnp.mean(h * h)

    return of_mode(mode, loss, f32s((nodes, width)) + [("s32", (edges,))] + f32s(*[(width, width)] * (2 * layers)), 2, nodes)


def gru(x, h, u):
    xr, xz, xn = jnp.split(x, 3, -1)
    hr, hz, hn = jnp.split(h @ u, 3, -1)
    made = jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
    return made + jax.nn.sigmoid(xz + hz) * (h - made)


@family
def seq2seq(mode, *words):
    length, batch, width, vocabulary = ints(words)

    def loss(source, target, table, wr, ur, ww, uw, classes):
        wr, ur, ww, uw = (scaled(w, 0.01) for w in (wr, ur, ww, uw))

        def read(h, x):
            h = gru(x, h, ur)
            return h, h

        def write(h, x):
            shares = jax.nn.softmax(jnp.einsum("bw,tbw->bt", h, states))
            h = gru(jnp.concatenate([x, jnp.einsum("bt,tbw->bw", shares, states)], 1) @ ww, h, uw)
            return h, h

        h, states = lax.scan(read, jnp.zeros((batch, width), F32), jnp.take(table, source, 0, mode="clip") @ wr)
        written = lax.scan(write, h, jnp.take(table, target, 0, mode="clip"))[1]
        return cross_entropy(written.reshape(length * batch, width) @ scaled(classes, 0.05), source.reshape(-1))

    w = (width, 3 * width)
    inputs = [("s32", (length, batch))] * 2 + f32s((vocabulary, width), w, w, (2 * width, 3 * width), w, (width, vocabulary))
    return of_mode(mode, loss, inputs, 2, vocabulary)


@family
def lm(mode, dtype, *words):
    length, batch, width, vocabulary = ints(words)

    def loss(text, table, w, u):
        u = scaled(u, 0.01)

        def step(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x + h @ u, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((batch, width), table.dtype)
        states = lax.scan(step, (zero, zero), jnp.take(table, text, 0, mode="clip") @ scaled(w, 0.01))[1]
        logits = scaled(jnp.einsum("nw,vw->nv", states.reshape(-1, width), table), 0.05)
        return cross_entropy(logits, text.reshape(-1))

    inputs = [("s32", (length, batch)), (dtype, (vocabulary, width)), (dtype, (width, 4 * width)), (dtype, (width, 4 * width))]
    return of_mode(mode, loss, inputs, 1, vocabulary)


@family
def density(mode, *words):
    batch, n, hidden, kinds, d = ints(words)

    def loss(x, y, w, ws, wm, wd):
        h = jnp.tanh(x @ scaled(w, 0.01))
        shares = jax.nn.log_softmax(h @ scaled(ws, 0.03))
        means, logs = (h @ scaled(wm, 0.01)).reshape(batch, kinds, d), (h @ scaled(wd, 0.001)).reshape(batch, kinds, d)
        off = (y[:, None] - means) * jnp.exp(-logs)
        return -jnp.mean(jax.nn.logsumexp(shares - jnp.sum(off * off * F32(0.5) + logs, 2), 1))

    return of_mode(mode, loss, f32s((batch, n), (batch, d), (n, hidden), (hidden, kinds), (hidden, kinds * d), (hidden, kinds * d)), 2)


@family
def quantised(*words):
    batch, width, layers = ints(words)

    def function(x, *weights):
        for w in weights:
            step = jnp.max(jnp.abs(x), 1, keepdims=True) / F32(127)
            sums = lax.dot(jnp.round(x / step).astype(jnp.int8), w, preferred_element_type=jnp.int32)
            x = jax.nn.relu(sums.astype(F32) * (step * F32(0.001)) - F32(0.25))
        return x

    return Case(function, f32s((batch, width)) + [("s8", (width, width))] * layers)


# --- Step by step ---


@family
def kalman(*words):
    steps, n, tracks = ints(words)

    def one(zs, f):
        f = jnp.eye(n, dtype=F32) * F32(0.5) + scaled(f, 0.25 / n)
        noise = jnp.eye(n, dtype=F32) * F32(0.01)

        def step(carry, z):
            x, p = carry
            x, p = f @ x, f @ p @ f.T + noise
            gain = p[0] / (p[0, 0] + F32(0.1))
            return (x + gain * (z - x[0]), p - gain[:, None] * p[0][None]), None

        return lax.scan(step, (jnp.zeros(n, F32), jnp.eye(n, dtype=F32)), zs)[0][0]

    function = one if tracks == 1 else jax.vmap(one, (0, None))
    return Case(function, f32s((steps,) if tracks == 1 else (tracks, steps), (n, n)))


@family
def flow(*words):
    steps, side, rounds = ints(words)

    def around(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + (jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1))

    def slope(x, axis):
        return (jnp.roll(x, -1, axis) - jnp.roll(x, 1, axis)) * F32(0.5)

    def advance(_, carry):
        w, stream = carry
        stream = lax.fori_loop(0, rounds, lambda _, s: (around(s) + w) * F32(0.25), stream)
        carried = slope(stream, 0) * slope(w, 1) - slope(stream, 1) * slope(w, 0)
        return w + (carried + (around(w) - w * 4) * F32(0.1)) * F32(0.05), stream

    def function(w):
        return lax.fori_loop(0, steps, advance, (w - 1, jnp.zeros_like(w)))[0]

    return Case(function, f32s((side, side)))


@family
def diffusion(*words):
    steps, batch, side, width = ints(words)

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def function(x, w1, time, w2, w3):
        w1, w2, w3 = scaled(w1, 0.03), scaled(w2, 0.1 / width), scaled(w3, 0.1 / width)

        def step(x, now):
            h = jax.nn.silu(conv(jax.nn.silu(conv(x, w1) + now), w2))
            return x * F32(1.01) - conv(h, w3) * F32(0.05), None

        return lax.scan(step, x, time)[0]

    return Case(function, f32s((batch, side, side, 3), (3, 3, 3, width), (steps, width), (3, 3, width, width), (3, 3, width, 3)))


@family
def beam(*words):
    steps, beams, width, vocabulary = ints(words)

    def function(table, u):
        u, table = scaled(u, 0.03 / np.sqrt(width)), scaled(table, 0.1)

        def step(carry, _):
            h, likely = carry
            logs = jax.nn.log_softmax(jnp.einsum("bw,vw->bv", h, table))
            likely, best = lax.top_k((logs + likely[:, None]).reshape(-1), beams)
            word = best % vocabulary
            return (jnp.tanh(h[best // vocabulary] @ u + table[word]), likely), word

        h, likely = lax.scan(step, (table[:beams], jnp.arange(beams, dtype=F32) * F32(-1e-3)), None, length=steps)[0]
        return likely, h

    return Case(function, f32s((vocabulary, width), (width, width)))


@family
def policy(*words):
    steps, batch, seen, hidden = ints(words)

    def loss(x, acts, rewards, w1, wp, wv):
        h = jnp.tanh(x @ scaled(w1, 0.01))
        logs, values = jax.nn.log_softmax(h @ scaled(wp, 0.03)), h @ scaled(wv, 1 / hidden)
        chosen = jnp.sum(logs * jax.nn.one_hot(acts, 8, dtype=F32), 2)
        after = jnp.concatenate([values[1:], jnp.zeros((1, batch), F32)])

        def back(advantage, delta):
            advantage = delta + advantage * F32(0.99 * 0.95)
            return advantage, advantage

        every = lax.scan(back, jnp.zeros(batch, F32), rewards + after * F32(0.99) - values, reverse=True)[1]
        aim, apart = lax.stop_gradient(every + values), every - jnp.mean(every)
        worth = lax.stop_gradient(apart * lax.rsqrt(jnp.mean(apart * apart) + F32(1e-8)))
        times = jnp.exp(chosen - lax.stop_gradient(chosen * F32(1.01)))
        gained = jnp.minimum(times * worth, jnp.clip(times, 0.8, 1.2) * worth)
        return jnp.mean(jnp.square(values - aim) * F32(0.5)) - jnp.mean(gained)

    inputs = f32s((steps, batch, seen)) + [("s32", (steps, batch))] + f32s((steps, batch), (seen, hidden), (hidden, 8), (hidden,))
    return of_mode("sgd", loss, inputs, 3, 8)
