"""Runs models of JAX's libraries by Axle, from the text of their modules, beside XLA on CPU, and says which do not agree.

  import_models.py [--axle build/axle] [--only REGEX] [--form text|bytecode|vhlo|oldest|export|platforms|all] [--keep FOLDER]

Models are those of models_*.py, of Flax Linen, Flax NNX, Equinox and Haiku: results, gradients, and steps of training by optax's SGD with
momentum and by AdamW; and solvers and samplers of diffrax and numpyro. On one device; and steps on eight, laid out by jit, as Shardy's module and as GSPMD's, and by shard_map.
Results agree within 32 epsilons of the dtype, of the largest element, or within eight times what XLA's own results move by when each
argument is changed by one epsilon.
"""

import argparse
import importlib
import os
import re
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import models_numerics  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from agree import disagreement, moved  # noqa: E402
from forms import FORMS, laid, lower  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

LIBRARIES = {"Linen": "models_linen", "NNX": "models_nnx", "Equinox": "models_equinox", "Haiku": "models_haiku"}
NAMES = ["MLP", "CNN", "ResNet-18", "transformer", "LSTM", "GRU", "MoE", "U-Net"]
KINDS = ["results", "gradients", "a step of SGD", "a step of AdamW", "AdamW by jit, Shardy", "AdamW by jit, GSPMD", "SGD by shard_map, Shardy",
         "SGD by shard_map, GSPMD"]  # fmt: skip
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
key = np.array([3, 7], np.uint32)
SGD = optax.sgd(0.05, momentum=0.9, nesterov=True)
# AdamW's update is about the sign of a gradient that is small beside eps: this eps is above what rounding makes of none.
ADAMW = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 10), eps=1e-3, weight_decay=0.1))


class Numbers:
    def __init__(self):
        self.r = np.random.default_rng(11)

    def floats(self, *shape):
        return self.r.standard_normal(shape).astype(np.float32)

    def integers(self, below, *shape):
        return self.r.integers(0, below, shape).astype(np.int32)


class Model:
    def __init__(self, library, name):
        n = Numbers()
        module = importlib.import_module(LIBRARIES[library])
        self.params, self.apply, self.inputs = module.MODELS[name](n)
        self.constrain = getattr(module, "constrain", None)
        result = jax.eval_shape(self.apply, self.params, key, *self.inputs)[0]
        self.classes = len(result.shape) < 4
        self.wanted = n.integers(result.shape[-1], *result.shape[:-1]) if self.classes else n.floats(*result.shape)

    def loss(self, params, key, wanted, *inputs):
        result, rest = self.apply(params, key, *inputs)
        if self.classes:
            return optax.softmax_cross_entropy_with_integer_labels(result, wanted).mean(), rest
        return jnp.mean((result - wanted) ** 2), rest

    def gradients(self, params, key, wanted, *inputs):
        return jax.value_and_grad(self.loss, has_aux=True)(params, key, wanted, *inputs)

    def step(self, optimizer, mean=lambda a: a):
        def step(params, state, key, wanted, *inputs):
            (value, rest), slope = mean(self.gradients(params, key, wanted, *inputs))
            change, state = optimizer.update(slope, state, params)
            return optax.apply_updates(params, change), state, value, rest

        return step

    def state(self, optimizer):
        state = jax.tree.map(np.asarray, optimizer.init(self.params))
        r = np.random.default_rng(2)  # as in the middle of training
        return jax.tree.map(lambda a: (0.01 * r.random(a.shape)).astype(a.dtype) if a.dtype.kind == "f" else a + 2, state)


def of_array(a):
    """Weights lie along their last dimension, where it can be cut."""
    return NamedSharding(mesh, P(*[None] * (a.ndim - 1), "model") if a.ndim > 0 and a.shape[-1] % 2 == 0 else P())


def by_jit(model):
    batch = NamedSharding(mesh, P("data"))
    args = (model.params, model.state(ADAMW), key, model.wanted, *model.inputs)
    weights = jax.tree.map(of_array, args[:2])
    shardings = (*weights, NamedSharding(mesh, P()), batch, *[batch] * len(model.inputs))
    step = laid(model.step(ADAMW), in_shardings=shardings, out_shardings=(*weights, None, None))
    return step, args


def by_shard_map(model):
    whole = model.step(SGD, lambda tree: jax.tree.map(lambda a: lax.pmean(a, "data"), tree))

    def step(params, state, key, wanted, *inputs):
        key = jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key), lax.axis_index("data")))
        return whole(params, state, key, wanted, *inputs)

    specs = (P(), P(), P(), P("data"), *[P("data")] * len(model.inputs))
    step = jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    return step, (model.params, model.state(SGD), key, model.wanted, *model.inputs)


def case(model, kind):
    """The function and its arguments."""
    if model is None:
        return models_numerics.CASES[kind]
    data = (key, model.wanted, *model.inputs)
    if kind == "results":
        return lambda params, key, *inputs: model.apply(params, key, *inputs)[0], (model.params, key, *model.inputs)
    if kind == "gradients":
        return model.gradients, (model.params, *data)
    if "jit" in kind:
        return by_jit(model)
    if "shard_map" in kind:
        return by_shard_map(model)
    optimizer = SGD if "SGD" in kind else ADAMW
    return model.step(optimizer), (model.params, model.state(optimizer), *data)


def prepare(model, kind):
    jax.config.update("jax_use_shardy_partitioner", "GSPMD" not in kind)
    jax.clear_caches()
    if model is not None and model.constrain is not None:
        model.constrain[0] = (lambda a, *spec: lax.with_sharding_constraint(a, NamedSharding(mesh, P(*spec)))) if "jit" in kind else lambda a, *spec: a


def cases(only):
    """(name, library's model, kind) of those that match; a library that is not there is said."""
    for library in LIBRARIES:
        try:
            importlib.import_module(LIBRARIES[library])
        except ImportError as error:
            print(f"{library}: left out: {error}")
            continue
        for name in NAMES:
            kinds = [kind for kind in KINDS if re.search(only, f"{library} {name}, {kind}")]
            model = Model(library, name) if kinds else None
            yield from ((f"{library} {name}, {kind}", model, kind) for kind in kinds)
    yield from ((name, None, name) for name in models_numerics.CASES if re.search(only, name))


def compiled(f, args):
    """XLA's executable, its results, and how far a disagreement may be."""
    executable = lower(f, args).compile()
    want = [np.asarray(a) for a in jax.tree.leaves(executable(*args))]
    known = []

    def tolerance():
        if not known:
            known.append(max(32, 8 * moved(executable, args, want)))
        return known[0]

    return want, tolerance


def run(options, name, f, args, forms):
    """The number of modules, and of those that disagree."""
    failed = count = 0
    want, tolerance = compiled(f, args)
    for form in forms:
        try:
            module = FORMS[form](f, args)
        except Exception as error:  # noqa: BLE001 - what JAX cannot write is no fault of the reader
            print(f"{name}, {form}: not written: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        if options.keep:
            path = Path(options.keep) / f"{re.sub('[^a-zA-Z0-9]+', '_', name)}.{form}"
            path.write_bytes(module if isinstance(module, bytes) else module.encode())
        why = disagreement(options.axle, module, args, want, tolerance)
        count += 1
        failed += why is not None
        if why is not None:
            print(f"{name}, {form}: {why}", flush=True)
    return count, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--form", default="text", choices=[*FORMS, "all"])
    parser.add_argument("--keep", help="a folder for the modules")
    options = parser.parse_args()
    forms = FORMS if options.form == "all" else [options.form]
    count = failed = 0
    for name, model, kind in cases(options.only):
        prepare(model, kind)
        f, args = case(model, kind)
        try:
            counts = run(options, name, f, args, forms)
        except Exception as error:  # noqa: BLE001 - the library itself cannot, as Equinox's BatchNorm in a shard_map
            print(f"{name}: left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        count, failed = count + counts[0], failed + counts[1]
    print(f"{count} modules of models: {count - failed} agree, {failed} do not")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
