"""Axle as a platform of JAX: a compiler and runtime for processors, for 1 or many thousands of devices in one process.

JAX finds this package by itself and calls `initialize`. The platform is called "axle"; with AXLE_PLATFORM=cpu in the environment it takes
the place of JAX's own platform "cpu".

  JAX_PLATFORMS=axle AXLE_DEVICES=8 python train.py
"""

import os
import pathlib

from jax._src import xla_bridge

from jax_plugins.axle import buffers, callbacks, custom_calls, partitioning
from jax_plugins.axle.programs import CommandError, check, simulate
from jax_plugins.axle.traces import timeline
from jax_plugins.axle.version import __version__

LIBRARY = pathlib.Path(__file__).resolve().parent / "libaxle_pjrt.so"

_options = {}


def platform():
    """The name under which JAX knows Axle in this process."""
    return "cpu" if os.environ.get("AXLE_PLATFORM") == "cpu" else "axle"


def devices(count=None):
    """Axle's devices. With `count` there are that many, 1 to 65,536: to be said before JAX is first asked for devices or computes
    something; else AXLE_DEVICES says it, or there is one."""
    import jax

    if count is not None:
        if platform() in xla_bridge._backends and len(jax.devices(platform())) != count:
            raise RuntimeError(f"JAX has started with {len(jax.devices(platform()))} devices of Axle; say axle.devices({count}) before that")
        _options["num_devices"] = int(count)
    return jax.devices(platform())


def _count():
    """As options: what was said here, else, unless the environment says it, what the script says for JAX's own CPU devices."""
    import jax

    count = jax.config.jax_num_cpu_devices
    return _options or ({"num_devices": count} if count > 0 and not os.environ.get("AXLE_DEVICES") else {})


def _make_client():
    name = platform()
    client = xla_bridge.make_pjrt_c_api_client(name, _count())
    # JAX puts the arguments of Python functions on the first device of "cpu". If XLA's is not started (JAX_PLATFORMS=axle), that is Axle,
    # whose devices are processors; if it is, it takes its place here.
    xla_bridge._backends.setdefault("cpu", client)
    return client


def initialize():
    """Called by JAX as it starts."""
    name = platform()
    # Above XLA's "cpu", which is 0, and below accelerators: whoever has no such thing gets Axle without asking for it.
    api = xla_bridge.register_plugin(name, priority=10, library_path=str(LIBRARY), factory=_make_client)
    custom_calls.register(api, name)
    callbacks.register(api, name)
    buffers.register(name)
    partitioning.register(name)
    if name != "cpu":
        from jax_plugins.axle import lowerings

        lowerings.register(name)
