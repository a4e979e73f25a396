"""jax_cases.py: what the cases of jax_ops.py and jax_nets.py share: inputs, the table of families, and steps of training."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp

F32 = jnp.float32
DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "bf16": jnp.bfloat16, "f16": jnp.float16, "s8": jnp.int8, "s32": jnp.int32, "s64": jnp.int64, "bool": jnp.bool_}
FAMILIES = {}


class Case:
    """Inputs as (dtype, shape); `carried` first of these are donated and renewed by the last results. Those of s32 are indices `below` so many, where that is given."""

    def __init__(self, function, inputs, carried=0, parts=1, below=0):
        self.function, self.inputs, self.carried, self.parts, self.below = function, inputs, carried, parts, below


def family(make):
    FAMILIES[make.__name__] = make
    return make


def ints(words):
    return tuple(int(w) for w in words)


def unary_of(dtype, dims, function):
    return Case(function, [(dtype, ints(dims))])


def scaled(x, by):
    return x * x.dtype.type(by)


def step_of(loss, weights, first=0):
    wrt = tuple(range(first, first + weights))

    def step(*args):
        value, slopes = jax.value_and_grad(loss, wrt)(*args)
        return (value,) + tuple(args[i] - scaled(g, 0.1) for i, g in zip(wrt, slopes))

    return step


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[1], dtype=logits.dtype), 1))
