"""Python functions in programs: jax.pure_callback, io_callback, jax.debug.callback and what is made of them.

JAX writes such a call as a custom call. Here it is one of this package: it names the function by a number, and the plugin calls `_handler`,
which is a handler of XLA's FFI made by ctypes. It is called on one of Axle's threads, or on the one that runs the program; ctypes takes
Python's lock for it, and Axle holds no lock of its own meanwhile.

Numbers are drawn at random, so that a module that was compiled in another process never names a function of this one.
"""

import ctypes
import functools
import math
import secrets
import threading
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p

import ml_dtypes
import numpy as np
from jax._src import callback as jax_callback
from jax._src import core, dtypes, ffi, sharding_impls
from jax._src import mesh as mesh_lib
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
from jax.interpreters import mlir as public_mlir

from jax_plugins.axle import custom_calls

TARGET = "axle_python_callback"

_functions = {}
_lock = threading.Lock()


class Function:
    """Keeps a function known under its number. jaxlib holds it as it holds Python functions of its own: as long as the program lives, and
    runs of it that are not over."""

    def __init__(self, function):
        self.number = secrets.randbits(63)
        self.function = function
        with _lock:
            _functions[self.number] = functools.partial(self.run, function)

    @staticmethod
    def run(function, operands, results):
        """With the memory of both. Copies: the function may keep what it gets, and the memory is the program's. It may be called on the thread
        that runs the program, but is no part of what that thread does: the mesh that is set there is not the function's."""
        operands = [x.copy() for x in operands]
        if mesh_lib.get_concrete_mesh().empty and mesh_lib.get_abstract_mesh().empty:
            made = function(*operands)
        else:
            with sharding_impls._internal_use_concrete_mesh(mesh_lib.empty_concrete_mesh), mesh_lib.use_abstract_mesh(mesh_lib.empty_abstract_mesh):
                made = function(*operands)
        for to, result in zip(results, made):
            np.copyto(to, result)

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __del__(self):
        with _lock:
            _functions.pop(self.number, None)


# --- What a handler is given: XLA_FFI_CallFrame ---

_DTYPES = {number: np.dtype(dtype) for number, dtype in {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16, 8: np.uint32, 9: np.uint64,
    10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64, 16: ml_dtypes.bfloat16, 18: np.complex128,
    19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e4m3fn, 23: ml_dtypes.float8_e4m3b11fnuz, 24: ml_dtypes.float8_e5m2fnuz,
    25: ml_dtypes.float8_e4m3fnuz, 28: ml_dtypes.float8_e4m3, 29: ml_dtypes.float8_e3m4, 33: ml_dtypes.float8_e8m0fnu}.items()}
_METADATA, _INTERNAL = 1, 13


class _Buffer(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
                ("dims", POINTER(c_int64))]


class _Values(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("count", c_int64), ("kinds", c_void_p), ("values", POINTER(POINTER(_Buffer)))]


class _Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_uint64))]


class _Attributes(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("count", c_int64), ("kinds", c_void_p), ("names", c_void_p),
                ("values", POINTER(POINTER(_Scalar)))]


class _Version(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("major", c_int), ("minor", c_int)]


class _Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _Extension(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class _Api(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("version", _Version), ("internal", c_void_p), ("error_create", c_void_p)]


class _ErrorArgs(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("message", c_char_p), ("code", c_int)]


class _Frame(Structure):
    _fields_ = [("size", c_size_t), ("extension", POINTER(_Extension)), ("api", POINTER(_Api)), ("context", c_void_p), ("stage", c_int),
                ("operands", _Values), ("results", _Values), ("attributes", _Attributes)]


@functools.lru_cache(64)
def _bytes(count):
    return c_char * count


def memory_at(address, bytes):
    return _bytes(bytes).from_address(address)


def _memory(buffer):
    """A view of the buffer's memory."""
    dims = buffer.dims[: buffer.rank]
    dtype = _DTYPES[buffer.dtype]
    count = math.prod(dims)
    return np.ndarray(dims, dtype, memory_at(buffer.data, count * dtype.itemsize) if count > 0 else None)


def _call(frame):
    run = _functions[frame.attributes.values[0].contents.value[0]]
    run(*[[_memory(values.values[i].contents) for i in range(values.count)] for values in (frame.operands, frame.results)])


def _error(frame, message):
    text = message.encode()
    args = _ErrorArgs(ctypes.sizeof(_ErrorArgs), None, text, _INTERNAL)
    return ctypes.CFUNCTYPE(c_void_p, c_void_p)(frame.api.contents.error_create)(ctypes.addressof(args))


@ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
def _handler(pointer):
    frame = pointer.contents
    try:
        if frame.extension and frame.extension.contents.kind == _METADATA:
            version = frame.extension.contents.metadata.contents.version
            version.major, version.minor = frame.api.contents.version.major, frame.api.contents.version.minor
            return None
        _call(frame)
    except BaseException as error:  # must not leave the function: there is no Python above it
        return _error(frame, f"{type(error).__name__}: {error}")
    return None


# --- Writing the call ---

# Elements of less than a byte come and go as the next larger ones, since XLA's FFI has other forms of them than NumPy.
_WIDE = {"int2": np.int8, "int4": np.int8, "uint1": np.uint8, "int1": np.int8, "uint2": np.uint8, "uint4": np.uint8,
         "float4_e2m1fn": np.float32, "float6_e2m3fn": np.float32, "float6_e3m2fn": np.float32}


def _wide(dtype):
    return np.dtype(_WIDE.get(np.dtype(dtype).name, dtype)) if isinstance(dtype, np.dtype) else dtype


def _convert(value, aval):
    return hlo.convert(ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(np.dtype(aval.dtype))), value)


def _widened(value, aval):
    wide = aval.update(dtype=_wide(aval.dtype))
    return (value if wide.dtype == aval.dtype else _convert(value, wide)), wide


def _narrowed(value, aval):
    return value if _wide(aval.dtype) == aval.dtype else _convert(value, aval)


def _checked(callback, operand_avals, result_avals):
    """The function with its results as arrays of the types that were said."""
    narrow = [(i, aval.dtype) for i, aval in enumerate(operand_avals) if _wide(aval.dtype) != aval.dtype]

    def call(*arguments):
        if narrow:
            arguments = list(arguments)
        for i, dtype in narrow:
            arguments[i] = arguments[i].astype(dtype)
        results = callback(*arguments)
        if len(results) != len(result_avals):
            raise RuntimeError(
                f"Mismatched number of outputs from callback. Expected: {len(result_avals)}, Actual: {len(results)}")
        made = []
        for i, (result, aval) in enumerate(zip(results, result_avals)):
            if not (type(result) is np.ndarray and result.dtype == aval.dtype):
                result = dtypes.canonicalize_value(np.asarray(result))
            made.append(result)
            if result.shape != aval.shape:
                raise RuntimeError(f"Incorrect output shape for return value #{i}: Expected: {aval.shape}, Actual: {result.shape}")
            if result.dtype != aval.dtype:
                raise RuntimeError(f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: {result.dtype}")
        return made

    return call


def _emit(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect, returns_token=True, partitioned=False,
          sharding=None):
    """As jax._src.callback.emit_python_callback, for Axle."""
    del returns_token
    module = ctx.module_context
    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values.")
    function = Function(_checked(callback, operand_avals, result_avals))
    module.add_host_callback(function)  # JAX waits for what such programs do, too, and does not keep them on disk
    operands, avals_in = zip(*map(_widened, operands, ctx.avals_in)) if operands else ((), ())
    ctx = ctx.replace(avals_in=list(avals_in), avals_out=[aval.update(dtype=_wide(aval.dtype)) for aval in ctx.avals_out])
    narrow = list(result_avals)
    if token:
        operands = [token, *operands]
        ctx = ctx.replace(avals_in=[core.abstract_token, *ctx.avals_in], avals_out=[core.abstract_token, *ctx.avals_out])
        if isinstance(sharding, sharding_impls.SdyArrayList) and result_avals:
            # As JAX has it: the token has a layout, too.
            sharding = sharding_impls.SdyArrayList((
                sharding_impls.SdyArray(mesh_shape=(), dim_shardings=(), logical_device_ids=sharding.shardings[0].logical_device_ids),
                *sharding.shardings))
    call = ffi.build_ffi_lowering_function(TARGET, has_side_effect=has_side_effect)(ctx, *operands, index=np.uint64(function.number))
    if partitioned:  # each device calls it, with its own part of each operand
        call.attributes["axle.blocks"] = ir.BoolAttr.get(True)
    if sharding is not None:
        mlir.set_sharding(module, call, sharding)
    results = list(call.results)
    if token:
        token, *results = results
    return [_narrowed(result, aval) for result, aval in zip(results, narrow)], token, callback


def register(capsule, platform):
    api = custom_calls.of(capsule)
    custom_calls.register_call(api, TARGET, {"execute": ctypes.cast(_handler, c_void_p).value}, 1)
    others = jax_callback.emit_python_callback

    def emit(ctx, *args, **options):
        if tuple(ctx.module_context.platforms) == (platform,):
            return _emit(ctx, *args, **options)
        return others(ctx, *args, **options)

    jax_callback.emit_python_callback = emit
    public_mlir.emit_python_callback = emit
