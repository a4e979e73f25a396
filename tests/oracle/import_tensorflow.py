"""Runs functions and Keras models of TensorFlow by Axle, from the StableHLO that its compiler hands out, beside TensorFlow itself, and says which
do not agree.

  import_tensorflow.py [--axle build/axle] [--only REGEX] [--keep FOLDER]

Results, gradients and steps of training, as text and as bytecode. Results agree within 64 epsilons of the dtype, of the largest
element, or within eight times what TensorFlow's own move by when each floating-point argument is changed by one epsilon.
"""

import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from agree import disagreement, distance, judge, main, shaken  # noqa: E402
from keras import layers as L  # noqa: E402

keras.utils.set_random_seed(5)
r = np.random.default_rng(7)


def floats(*shape):
    return r.standard_normal(shape).astype(np.float32)


def integers(below, *shape):
    return r.integers(0, below, shape).astype(np.int32)


def networks():
    image, sequence = keras.Input((16, 16, 3)), keras.Input((7, 8))
    attended = L.MultiHeadAttention(2, 4)(sequence, sequence, use_causal_mask=True)
    residual = L.Conv2D(8, 3, padding="same")(image)
    residual = L.Add()([L.Conv2D(8, 3, padding="same")(L.ReLU()(L.BatchNormalization()(residual))), residual])
    return {
        "MLP": (keras.Sequential([keras.Input((16,)), L.Dense(32, "gelu"), L.LayerNormalization(), L.Dense(4, "softmax")]), [floats(3, 16)]),
        "CNN": (keras.Sequential([keras.Input((28, 28, 1)), L.Conv2D(6, 5, padding="same", activation="tanh"), L.AveragePooling2D(2), L.Conv2D(8, 3, 2), L.MaxPooling2D(2), L.Flatten(), L.Dense(10)]), [floats(2, 28, 28, 1)]),
        "residual net": (keras.Model(image, L.Dense(5)(L.GlobalAveragePooling2D()(residual))), [floats(2, 16, 16, 3)]),
        "attention": (keras.Model(sequence, L.Dense(4)(L.LayerNormalization()(L.Add()([attended, sequence])))), [floats(2, 7, 8)]),
        "LSTM": (keras.Sequential([keras.Input((7, 8)), L.LSTM(16, return_sequences=True), L.LSTM(8), L.Dense(3)]), [floats(2, 7, 8)]),
        "GRU": (keras.Sequential([keras.Input((7, 8)), L.Bidirectional(L.GRU(6)), L.Dense(3)]), [floats(2, 7, 8)]),
        "words": (keras.Sequential([keras.Input((9,), dtype="int32"), L.Embedding(20, 8), L.GlobalAveragePooling1D(), L.Dense(3)]), [integers(20, 4, 9)]),
        "upwards": (keras.Sequential([keras.Input((8, 8, 4)), L.DepthwiseConv2D(3, padding="same"), L.Conv2DTranspose(3, 4, 2, padding="same"), L.UpSampling2D()]), [floats(2, 8, 8, 4)]),
        "signals": (keras.Sequential([keras.Input((20, 3)), L.Conv1D(8, 5, dilation_rate=2, padding="causal", activation="silu"), L.MaxPooling1D(2), L.GlobalMaxPooling1D()]), [floats(2, 20, 3)]),
        "volumes": (keras.Sequential([keras.Input((6, 6, 6, 2)), L.Conv3D(4, 3, activation="relu"), L.AveragePooling3D(2)]), [floats(1, 6, 6, 6, 2)]),
    }  # fmt: skip


def of_model(model, args, kind):
    weights = [np.asarray(w) for w in model.trainable_variables]
    fixed = [np.asarray(w) for w in model.non_trainable_variables if w.dtype == "float32"]
    others = [w for w in model.non_trainable_variables if w.dtype != "float32"]

    def result(weights, fixed, args, training=False):
        rest = iter(fixed)
        state = [next(rest) if w.dtype == "float32" else tf.zeros(w.shape, w.dtype) for w in model.non_trainable_variables]
        return model.stateless_call(weights, state, *args, training=training)[0]

    def step(*all):
        weights, fixed, args = all[: len(model.trainable_variables)], all[len(model.trainable_variables) : len(all) - 1], all[-1:]
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_mean(result(weights, fixed, args) ** 2)
        slopes = tape.gradient(loss, weights)
        return [loss, *[w - 10.0 * tf.convert_to_tensor(g) for w, g in zip(weights, slopes)]]  # the gradient is what counts

    def forward(*all):
        n = len(model.trainable_variables)
        return result(all[:n], all[n:-1], all[-1:])

    del others
    return (step if kind == "a step" else forward), [*weights, *fixed, *args]


def functions():
    x, y, n = floats(4, 6), floats(4, 6), integers(4, 5)
    return {
        "sorts": (lambda a: (tf.sort(a, 1), tf.argsort(a, 0, stable=True), tf.math.top_k(a, 3)), [x]),
        "sums along": (lambda a: (tf.cumsum(a, 1, exclusive=True, reverse=True), tf.math.cumprod(a, 0), tf.math.cumulative_logsumexp(a, 1)), [x]),
        "gathers": (lambda a, i: (tf.gather(a, i), tf.gather_nd(a, tf.stack([i, i], 1)), tf.gather(a, i, axis=1), tf.one_hot(i, 4)), [x, n]),
        "scatters": (lambda a, i, b: (tf.tensor_scatter_nd_add(a, i[:, None], b), tf.scatter_nd(i[:, None], b, (4, 6)), tf.math.unsorted_segment_sum(b, i, 4), tf.math.unsorted_segment_max(b, i, 4)), [x, n, floats(5, 6)]),
        "functions": (lambda a: (tf.math.erf(a), tf.math.lgamma(abs(a) + 0.1), tf.math.digamma(abs(a) + 0.5), tf.math.expm1(a), tf.math.atan2(a, a + 1), tf.nn.softplus(a), tf.nn.selu(a), tf.math.igamma(abs(a) + 0.5, abs(a)), tf.math.betainc(abs(a) + 1, abs(a) + 2, 0.3), tf.math.zeta(abs(a) + 2, abs(a) + 1), tf.math.ndtri(tf.sigmoid(a)), tf.math.bessel_i1e(a)), [x]),
        "rounding": (lambda a: (tf.round(a), tf.floor(a), tf.math.mod(a, 0.7), tf.math.floordiv(a, 0.7), tf.sign(a), tf.cast(a, tf.int32), tf.clip_by_value(a, -1, 1)), [3 * x]),
        "integers": (lambda a, b: (a // b, a % b, tf.bitwise.bitwise_and(a, b), tf.bitwise.left_shift(a, 2), tf.bitwise.invert(a), -a // b, tf.cast(a, tf.uint8) + 200, tf.bitwise.right_shift(-a, 1)), [integers(100, 4, 6), integers(9, 4, 6) + 1]),
        "shapes": (lambda a: (tf.roll(a, 2, 1), tf.reverse(a, [0]), tf.pad(a, [[1, 0], [2, 1]], "REFLECT"), tf.linalg.band_part(a, 1, 0), tf.tile(a, [2, 3]), tf.transpose(a), a[1:, ::2], tf.strided_slice(a, [3, 5], [0, 0], [-1, -2]), tf.concat([a, a], 1), tf.space_to_batch(a[None, :, :, None], [2, 3], [[0, 0], [0, 0]])), [x]),
        "extremes": (lambda a: (tf.reduce_max(a, 1), tf.argmax(a, 1), tf.argmin(a, 0), tf.reduce_logsumexp(a), tf.math.reduce_std(a, 0), tf.reduce_prod(a, 1), tf.math.l2_normalize(a, 1)), [x]),
        "booleans": (lambda a, b: (tf.where(a > b, a, b), tf.reduce_any(a > b, 1), tf.reduce_all(a > -9), tf.math.is_nan(a), tf.math.count_nonzero(a > 0, 1), (a > 0) ^ (b > 0)), [x, y]),
        "products": (lambda a, b, c: (a @ tf.transpose(b), tf.einsum("ij,kj->ik", a, b), tf.linalg.matmul(c, c, transpose_b=True), tf.tensordot(a, b, 2), tf.linalg.matvec(a, b[0]), tf.linalg.trace(c)), [x, y, floats(2, 5, 5)]),
        "narrow": (lambda a, b: (tf.cast(a, tf.bfloat16) @ tf.cast(tf.transpose(b), tf.bfloat16), tf.nn.softmax(tf.cast(a, tf.float16))), [x, y]),
        "doubles": (lambda a: (tf.exp(a), tf.reduce_sum(a, 1)), [x.astype(np.float64)]),
        "complex": (lambda a: (tf.abs(tf.signal.fft(tf.complex(a, a + 1))), tf.abs(tf.signal.rfft(a)), tf.math.angle(tf.complex(a, a + 1)), tf.signal.irfft(tf.complex(a, 0 * a))), [x]),
        "solves": (lambda a: (tf.linalg.cholesky(a @ tf.transpose(a) + 4 * tf.eye(4)), tf.linalg.inv(a[:, :4] + 4 * tf.eye(4)), tf.linalg.triangular_solve(tf.linalg.band_part(a[:, :4], -1, 0) + 4 * tf.eye(4), a), abs(tf.linalg.qr(a)[1]), tf.linalg.svd(a, compute_uv=False), tf.linalg.eigvalsh(a @ tf.transpose(a))), [x]),
        "random": (lambda s: (tf.random.stateless_uniform((4, 5), s), tf.random.stateless_normal((7,), s), tf.random.stateless_uniform((6,), s, 0, 100, tf.int32)), [np.array([3, 8], np.int32)]),
        "loops": (lambda a: (tf.while_loop(lambda i, v: tf.reduce_sum(v) < 100, lambda i, v: (i + 1, v * 1.5 + 1), [0, a]), tf.scan(lambda c, v: c * 0.5 + v, a), tf.map_fn(lambda v: v * tf.reduce_sum(v), a), tf.cond(tf.reduce_sum(a) > 0, lambda: a, lambda: -a)), [x]),
        "switches": (lambda a, i: tf.switch_case(i[0], [lambda: a, lambda: a * 2, lambda: tf.sin(a)]), [x, np.array([2], np.int32)]),
        "images": (lambda a: (tf.image.resize(a, (7, 9)), tf.image.resize(a, (3, 4), "nearest"), tf.nn.depth_to_space(a, 2), tf.image.adjust_contrast(a, 2.0), tf.nn.local_response_normalization(a)), [floats(1, 5, 6, 4)]),
        "convolutions": (lambda a, k: (tf.nn.conv2d(a, k, [1, 2, 1, 1], "SAME", dilations=[1, 1, 2, 1]), tf.nn.max_pool2d(a, 3, 2, "SAME"), tf.nn.avg_pool2d(a, 2, 1, "VALID")), [floats(2, 8, 9, 3), floats(3, 2, 3, 4)]),
        "second derivatives": (lambda a: tf.hessians(tf.reduce_sum(tf.sin(a) * a**3), a), [floats(5)]),
        "losses": (lambda a, i: (tf.nn.sparse_softmax_cross_entropy_with_logits(i, a), tf.nn.sigmoid_cross_entropy_with_logits(tf.sigmoid(a), a), tf.nn.ctc_loss(i[None, :2], a[:, None], [2], [4], logits_time_major=True)), [x, integers(4, 4) + 1]),
    }  # fmt: skip


def leaves(tree):
    return [np.asarray(a) for a in tf.nest.flatten(tree)]


def moved(f, args, want):
    """As agree.moved."""
    random, most = np.random.default_rng(3), 0
    for _ in range(3):
        got = leaves(f(*[tf.constant(shaken(random, a)) for a in args]))
        most = max([most, *(distance(g, w) for g, w in zip(got, want))])
    return most


def cases(only):
    for name, (model, args) in networks().items():
        for kind in ("results", "a step"):
            if re.search(only, f"{name}, {kind}"):
                yield f"{name}, {kind}", *of_model(model, args, kind)
    for name, (f, args) in functions().items():
        if re.search(only, name):
            yield name, f, args


LEAST = 70  # modules that TensorFlow 2.21 writes of all cases, and some more


def run(options, name, f, args):
    """The number of modules, and of those that disagree."""
    given = [tf.constant(a) for a in args]
    try:
        compiled = tf.function(f, jit_compile=True)
        want = leaves(compiled(*given))
        ir = compiled.experimental_get_compiler_ir(*given)
        modules = [("text", ir(stage="stablehlo")), ("bytecode", ir(stage="stablehlo_serialized"))]
    except Exception as error:  # noqa: BLE001 - what TensorFlow cannot write is no fault of the reader
        print(f"{name}: not written: {str(error).splitlines()[0][:140]}", flush=True)
        return 0, 0
    near = lambda: max(64, 8 * moved(compiled, args, want))  # noqa: E731
    return judge(options.keep, name, modules, lambda module: disagreement(options.axle, module, args, want, near))


main("TensorFlow", cases, run, LEAST)
