"""Computes what the tests of trees compare with: initialisers by JAX, optimisers and schedules by optax.

  make_trees.py [--seed N] [--only KIND] FOLDER        writes FOLDER/trees.npz; tests/vectors holds those of seed 0. JAX 0.10, optax 0.2.8

schedule.NAME: the values at steps 0 .. COUNTS. optimizer.NAME.DTYPE.KIND.LEAF: `in`, the parameters before; `gradient`, one for each of STEPS steps;
`out`, the parameters after each; of those in EMA `ema`, the state of optax.ema of these.

train.KIND.LEAF: an MLP's, trained with a batch (x, y) and a loss for each step.

init.RULE.DTYPE: jax.nn.initializers' RULE with fold_in(key(SEED), leaf), where leaf is the rule's place in INITIALIZERS.
bf16 is stored as '<V2'.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false"
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

import jax  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

from case import DTYPES  # noqa: E402

SEED, SHAPE = 20261120, (3, 5, 7)
init = jax.nn.initializers
INITIALIZERS = {
    "zeros": init.zeros, "ones": init.ones, "constant(1.1)": init.constant(1.1), "uniform": init.uniform(), "normal(2.5)": init.normal(2.5),
    "truncated_normal(0.3)": init.truncated_normal(0.3), "lecun_uniform": init.lecun_uniform(), "lecun_normal": init.lecun_normal(),
    "glorot_uniform": init.glorot_uniform(), "glorot_normal": init.glorot_normal(), "he_uniform": init.he_uniform(), "he_normal": init.he_normal(),
}  # fmt: skip


COUNTS, STEPS = 40, 25
SCHEDULES = {
    "constant": lambda: optax.constant_schedule(0.3),
    "linear": lambda: optax.linear_schedule(0.1, 0.7, 17, 5),
    "polynomial": lambda: optax.polynomial_schedule(0.9, 0.05, 3, 20, 2),
    "polynomial_fraction": lambda: optax.polynomial_schedule(0.9, 0.05, 0.7, 20, 2),
    "cosine": lambda: optax.cosine_decay_schedule(0.7, 31, 0.1),
    "cosine_exponent": lambda: optax.cosine_decay_schedule(0.7, 31, 0.0, 2.5),
    "exponential": lambda: optax.exponential_decay(0.8, 7, 0.6),
    "exponential_staircase": lambda: optax.exponential_decay(0.8, 7, 0.6, 3, True, 0.2),
    "warmup_cosine": lambda: optax.warmup_cosine_decay_schedule(0.01, 0.6, 8, 33, 0.02),
    "piecewise": lambda: optax.piecewise_constant_schedule(0.5, {6: 0.3, 19: 2.0, 30: 0.1}),
    "join": lambda: optax.join_schedules([optax.linear_schedule(0, 0.4, 9), optax.constant_schedule(0.4), optax.exponential_decay(0.4, 5, 0.5)], [9, 21]),
}  # fmt: skip
SHAPES = {"bias": (7,), "scale": (), "w": (5, 3)}  # by name, as optax takes them
not_bias = {name: name != "bias" for name in SHAPES}
is_bias = {name: name == "bias" for name in SHAPES}
frozen = lambda inner: optax.masked(inner, not_bias)  # biases stay
EMA = {"adam_ema": 0.9, "sgd_everything": 0.8}  # decays of means of the parameters


def shampoo(rate, eps, block=128, b2=0.0, momentum=0.0, nesterov=False, weight_decay=0.0):
    """arXiv:1802.09568 in NumPy's f64, of vectors and matrices in even blocks; biases do not decay."""

    def cuts(length):
        size = -(-length // -(-length // block))
        return [slice(at, min(at + size, length)) for at in range(0, length, size)]

    def power(x, exponent):
        w, v = np.linalg.eigh(x)
        return v * (np.maximum(w, 0) + eps) ** exponent @ v.T

    def direction(g, sums):
        matrix, made = g.reshape(-1, g.shape[-1]) if g.ndim > 1 else g.reshape(-1, 1), np.zeros(g.size)
        made = made.reshape(matrix.shape)
        for at in [(rows, columns) for rows in cuts(matrix.shape[0]) for columns in cuts(matrix.shape[1])]:
            x, place = matrix[at], (at[0].start, at[1].start)
            left, right = sums.get(place, (0, 0))
            sums[place] = left, right = [(b2 or 1) * old + (1 - b2) * new for old, new in ((left, x @ x.T), (right, x.T @ x))]
            made[at] = power(left, -0.25) @ x @ power(right, -0.25) if g.ndim > 1 else power(left, -0.5) @ x
        return made.reshape(g.shape)

    def update(gradients, state, params):
        updates = {}
        for leaf, g in gradients.items():
            sums, trace = state[leaf]
            step = direction(np.float64(g), sums)
            state[leaf] = sums, (trace := step + momentum * trace)
            step = step + momentum * trace if nesterov else trace
            decayed = step + (weight_decay if leaf != "bias" else 0) * np.float64(params[leaf])
            updates[leaf] = np.asarray(-rate * decayed, np.asarray(params[leaf]).dtype)
        return updates, state

    return optax.GradientTransformation(lambda params: {leaf: ({}, 0) for leaf in params}, update)


OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.1),
    "sgd_momentum": lambda: optax.sgd(0.03, momentum=0.9),
    "sgd_nesterov": lambda: optax.chain(optax.clip_by_block_rms(0.8), optax.sgd(0.03, momentum=0.85, nesterov=True)),
    "sgd_clipped": lambda: optax.chain(optax.clip_by_global_norm(1.5), optax.sgd(0.1)),
    "adam": lambda: optax.adam(0.02),
    "adam_root": lambda: optax.chain(optax.clip(0.6), optax.adam(SCHEDULES["exponential"](), b1=0.8, b2=0.99, eps=1e-5, eps_root=1e-7)),
    "adamw": lambda: optax.adamw(0.02),
    "adamw_all": lambda: optax.chain(optax.clip_by_global_norm(2.0), optax.adamw(SCHEDULES["warmup_cosine"](), weight_decay=0.1, mask=not_bias)),
    "lamb": lambda: optax.lamb(0.02, weight_decay=0.01, mask=not_bias),
    "lion": lambda: optax.lion(0.02),
    "rmsprop": lambda: optax.rmsprop(0.02),
    "rmsprop_momentum": lambda: optax.rmsprop(0.02, decay=0.8, eps=1e-5, momentum=0.7, nesterov=True),
    "adagrad": lambda: optax.adagrad(0.1),
    "adafactor": lambda: optax.adafactor(0.05, min_dim_size_to_factor=3),
    "adafactor_whole": lambda: optax.adafactor(SCHEDULES["exponential"](), factored=False, multiply_by_parameter_scale=False, clipping_threshold=None),
    "adafactor_all": lambda: optax.chain(optax.clip_by_global_norm(2.0), optax.adafactor(0.05, min_dim_size_to_factor=2, decay_rate=0.6, momentum=0.8, weight_decay_rate=0.01, weight_decay_mask=not_bias, clipping_threshold=0.7)),
    "novograd": lambda: optax.novograd(0.02),
    "novograd_all": lambda: optax.novograd(0.02, b1=0.8, b2=0.5, eps=1e-4, eps_root=1e-5, weight_decay=0.05),
    "adamw_accumulated": lambda: optax.MultiSteps(optax.chain(optax.clip_by_global_norm(0.8), optax.adamw(SCHEDULES["warmup_cosine"]())), 4),
    "adam_ema": lambda: optax.adam(0.02),
    "adam_frozen": lambda: optax.chain(frozen(optax.chain(optax.clip_by_global_norm(1.5), optax.adam(0.02))), optax.masked(optax.set_to_zero(), is_bias)),
    "sgd_everything": lambda: optax.MultiSteps(optax.chain(frozen(optax.sgd(0.05, momentum=0.7)), optax.masked(optax.set_to_zero(), is_bias)), 3),
    "shampoo": lambda: shampoo(0.1, 1e-3),
    "shampoo_blocks": lambda: shampoo(0.1, 1e-2, block=2, momentum=0.9),
    "shampoo_all": lambda: optax.chain(optax.clip_by_global_norm(2.0), shampoo(0.02, 1e-2, block=4, b2=0.9, momentum=0.7, nesterov=True, weight_decay=0.05)),
}  # fmt: skip


def storable(array):
    array = np.asarray(array)
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def initial_values():
    arrays = {}
    with jax.enable_x64(True):
        for dtype in ("f32", "f64", "bf16", "f16"):
            for leaf, (rule, function) in enumerate(INITIALIZERS.items()):
                key = jax.random.fold_in(jax.random.key(SEED), leaf)
                arrays[f"init.{rule}.{dtype}"] = storable(function(key, SHAPE, DTYPES[dtype]))
    return arrays


def schedules():
    return {f"schedule.{name}": np.array([make()(jax.numpy.int32(count)) for count in range(COUNTS)], np.float32) for name, make in SCHEDULES.items()}


def optimizers(seed):
    arrays = {}
    for number, (name, make) in enumerate(OPTIMIZERS.items()):
        for dtype in {"adamw": ("f32", "f64", "bf16"), "shampoo": ("f32", "f64", "bf16")}.get(name, ("f32",)):
            random = np.random.default_rng([seed, number])
            with jax.enable_x64(dtype == "f64"):
                draw = lambda: {leaf: np.asarray(random.normal(size=shape), DTYPES[dtype]) for leaf, shape in SHAPES.items()}
                optimizer = make()
                params = draw()
                gradients, after = [draw() for _ in range(STEPS)], []
                state = optimizer.init(params)
                for leaf in SHAPES:
                    arrays[f"optimizer.{name}.{dtype}.in.{leaf}"] = storable(params[leaf])
                means, mean, mean_state = [], optax.ema(EMA.get(name, 0)), None
                mean_state = mean.init(params)
                for gradient in gradients:
                    updates, state = optimizer.update(gradient, state, params)
                    params = optax.apply_updates(params, updates)
                    after.append(params)
                    if not hasattr(state, "mini_step") or state.mini_step == 0:  # a step is done
                        mean_state = mean.update(params, mean_state)[1]
                    means.append(mean_state.ema)
                for leaf in SHAPES if name in EMA else ():
                    if name == "adam_ema" or leaf != "bias":
                        arrays[f"optimizer.{name}.{dtype}.ema.{leaf}"] = storable(np.stack([np.asarray(each[leaf]) for each in means]))
                for leaf in SHAPES:
                    arrays[f"optimizer.{name}.{dtype}.gradient.{leaf}"] = storable(np.stack([each[leaf] for each in gradients]))
                    arrays[f"optimizer.{name}.{dtype}.out.{leaf}"] = storable(np.stack([np.asarray(each[leaf]) for each in after]))
    return arrays


def train(seed):
    """Mean squared error of a layer of tanh and a linear one; adamw with a schedule, weight decay of weights alone and clipping."""
    random = np.random.default_rng([seed, 99])
    draw = lambda *shape: np.asarray(random.normal(size=shape), np.float32)
    params = {"b1": draw(8), "b2": draw(3), "w1": draw(6, 8), "w2": draw(8, 3)}
    x, y = draw(STEPS, 8, 6), draw(STEPS, 8, 3)
    schedule = optax.warmup_cosine_decay_schedule(0.002, 0.05, 5, STEPS, 0.001)
    mask = {name: name.startswith("w") for name in params}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01, mask=mask))

    def loss(params, x, y):
        hidden = jax.numpy.tanh(x @ params["w1"] + params["b1"])
        return jax.numpy.mean((hidden @ params["w2"] + params["b2"] - y) ** 2)

    arrays = {f"train.in.{leaf}": value for leaf, value in params.items()} | {"train.x": x, "train.y": y}
    state, losses, after = optimizer.init(params), [], []
    for step in range(STEPS):
        value, gradient = jax.value_and_grad(loss)(params, x[step], y[step])
        updates, state = optimizer.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        losses.append(value)
        after.append(params)
    arrays["train.loss"] = np.array(losses, np.float32)
    return arrays | {f"train.out.{leaf}": np.stack([np.asarray(each[leaf]) for each in after]) for leaf in params}


KINDS = {"init": lambda seed: initial_values(), "schedule": lambda seed: schedules(), "optimizer": optimizers, "train": train}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=KINDS, help="leaves the others as they are")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    arrays = {}
    if options.only:
        with np.load(options.folder / "trees.npz") as old:
            arrays = {name: old[name] for name in old.files if name.split(".")[0] != options.only}
    for kind in [options.only] if options.only else KINDS:
        arrays |= KINDS[kind](options.seed)
    np.savez_compressed(options.folder / "trees.npz", **arrays)
    print(f"trees: {len(arrays)} arrays")


if __name__ == "__main__":
    main()
