"""What the command `axle` says of functions of JAX: whether their kernels and messages are synchronised, and how long they would take elsewhere."""

import pathlib
import subprocess
import tempfile

import numpy as np

from jax_plugins.axle.command import COMMAND


class CommandError(RuntimeError):
    """The command refused the program, or found something wrong in it. The text is what it wrote."""


def _run(subcommand, f, args, kwargs, options, values=False):
    """f: a function, or one that jax.jit has made. values: the command is given those of the arguments."""
    import jax

    lowered = (f if hasattr(f, "lower") else jax.jit(f)).lower(*args, **kwargs)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "module.mlir"
        file.write_text(lowered.as_text("stablehlo", debug_info=True))  # with the lines of Python
        given = _inputs(lowered, args, kwargs, folder) if values else []
        if subcommand == "simulate" and "unreduced={" in file.read_text():  # as the plugin compiles what keeps sums in parts
            given.append("--late-sums")
        made = subprocess.run([COMMAND, subcommand, file, *options, *given], capture_output=True, text=True)
    if made.returncode != 0:
        raise CommandError((made.stdout + made.stderr).strip())
    return made.stdout


def _inputs(lowered, args, kwargs, folder):
    """Options for the arguments that have values, which are written to the folder. The module lacks those that are not used."""
    import jax

    leaves, options = jax.tree.leaves((args, kwargs)), []
    kept = sorted(lowered._lowering.compile_args.get("kept_var_idx", range(len(leaves))))
    for place, leaf in enumerate(leaves[i] for i in kept):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            continue
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        value = np.asarray(leaf)
        if value.dtype.kind == "V" or value.dtype.name not in np.sctypeDict:  # bfloat16 and other floats that files of NumPy have not
            value = value.astype(np.float32)
        np.save(f"{folder}/{place}.npy", value)
        options.append(f"--in={place}={folder}/{place}.npy")
    return [*options, "--convert"] if options else options


def check(f, *args, **kwargs):
    """Goes through a run of f(*args, **kwargs) by the rules of Axle's programs, and returns what is proved of it, as text: that no device waits
    for ever, and that what kernels send and receive is synchronised. Arguments may be jax.ShapeDtypeStruct: values are then made up.
    CommandError, with the lines of Python: what is wrong, or cannot be decided."""
    return _run("check", f, args, kwargs, [], values=True)


def simulate(f, *args, cluster="tpu-like-torus", timeline=None, **kwargs):
    """How long f(*args, **kwargs) would take on a machine that is described, as text. Nothing is run, and arguments may be jax.ShapeDtypeStruct,
    with shardings. cluster: a machine's name ("tpu-like-torus", "tpu-like-cube", "h200-switch", "cpu") or the file of a
    description. timeline: a file to write what each device does when to, .svg or .json (for Perfetto). CommandError: it cannot be said."""
    options = ["--machine", str(cluster)] + ([f"--timeline={timeline}"] if timeline is not None else [])
    return _run("simulate", f, args, kwargs, options)
