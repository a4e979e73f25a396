"""Traces of what runs did, as files for Perfetto (ui.perfetto.dev) and chrome://tracing."""

import contextlib
import gzip
import pathlib
import shutil
import tempfile


@contextlib.contextmanager
def timeline(path):
    """Writes what each thread and device of Axle did in the block, and when, to a file of JSON: `with axle.timeline("step.json"): step(x)`.
    The same as jax.profiler.trace, which has Python's calls as well, in one file and without those. Runs in the block are waited for, and a
    program's first run there compiles it once more, to take notes."""
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
            yield
        (made,) = pathlib.Path(folder).rglob("perfetto_trace.json.gz")
        with gzip.open(made) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)
