"""The forms that JAX gives the module of a function: texts, bytecode, artifacts of VHLO, files of jax.export."""

import io
import re

import jax
from jax import export
from jax._src.lib import _jax
from jaxlib.mlir.dialects import stablehlo

mlir = _jax.mlir


def laid(f, **shardings):
    """The function, with shardings of its arguments and results."""
    made = lambda *args: f(*args)  # noqa: E731
    made.jitted = jax.jit(f, keep_unused=True, **shardings)
    return made


def jitted(f):
    return getattr(f, "jitted", None) or jax.jit(f, keep_unused=True)


def lower(f, args):
    return jitted(f).lower(*args)


def bytecode(f, args):
    out = io.BytesIO()
    lower(f, args).compiler_ir("stablehlo").operation.write_bytecode(out)
    return out.getvalue()


def artifact(f, args):
    return mlir.serialize_portable_artifact(lower(f, args).as_text(), stablehlo.get_current_version())


def oldest(f, args):
    """The oldest of these versions of VHLO that has all that the module needs."""
    text = lower(f, args).as_text()
    for version in ("0.9.0", "0.14.0", "0.20.0", "1.0.0", "1.8.0", "1.14.0"):
        try:
            return mlir.serialize_portable_artifact(text, version)
        except Exception:  # noqa: BLE001 - of several kinds, by version
            pass
    return artifact(f, args)


def exported(f, args, platforms=("cpu",)):
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in custom_calls(f, args, platforms)]
    return bytes(export.export(jitted(f), platforms=platforms, disabled_checks=checks)(*args).serialize())


def custom_calls(f, args, platforms):
    """Targets that jax.export does not promise to keep; here writer and reader are of one day."""
    text = jitted(f).trace(*args).lower(lowering_platforms=platforms).as_text()
    return set(re.findall(r"custom_call @([\w.$]+)", text))


FORMS = {
    "text": lambda f, args: lower(f, args).as_text(),
    "bytecode": bytecode,
    "vhlo": artifact,
    "oldest": oldest,
    "export": exported,
    "platforms": lambda f, args: exported(f, args, ("tpu", "cpu", "cuda")),
}
