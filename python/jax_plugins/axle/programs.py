"""What the command `axle` says of functions of JAX: whether their kernels and messages are synchronised, and how long they would take elsewhere."""

import pathlib
import subprocess
import tempfile

from jax_plugins.axle.command import COMMAND


class CommandError(RuntimeError):
    """The command refused the program, or found something wrong in it. The text is what it wrote."""


def _module(f, args, kwargs):
    """The function's module as StableHLO, with the lines of its Python. f: a function, or one that jax.jit has made."""
    import jax

    jitted = f if hasattr(f, "lower") else jax.jit(f)
    return jitted.lower(*args, **kwargs).as_text("stablehlo", debug_info=True)


def _run(subcommand, f, args, kwargs, options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "module.mlir"
        file.write_text(_module(f, args, kwargs))
        made = subprocess.run([COMMAND, subcommand, file, *options], capture_output=True, text=True)
    if made.returncode != 0:
        raise CommandError((made.stdout + made.stderr).strip())
    return made.stdout


def check(f, *args, **kwargs):
    """Goes through a run of f(*args, **kwargs) by the rules of Axle's programs, and returns what is proved of it, as text: that no device waits
    for ever, and that what kernels send and receive is synchronised. Arguments may be jax.ShapeDtypeStruct: values are then made up.
    CommandError, with the lines of Python: what is wrong, or cannot be decided."""
    return _run("check", f, args, kwargs, [])


def simulate(f, *args, cluster="tpu-like-torus", timeline=None, **kwargs):
    """How long f(*args, **kwargs) would take on a machine that is described, as text. Nothing is run, and arguments may be jax.ShapeDtypeStruct,
    with shardings. cluster: a machine's name ("tpu-like-torus", "tpu-like-cube", "h200-switch", "cpu") or the file of a
    description. timeline: a file to write what each device does when to, .svg or .json (for Perfetto). CommandError: it cannot be said."""
    options = ["--machine", str(cluster)] + ([f"--timeline={timeline}"] if timeline is not None else [])
    return _run("simulate", f, args, kwargs, options)
