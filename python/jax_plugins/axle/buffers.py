"""Python functions that get the memory of arguments and results: jax.experimental.buffer_callback. As callbacks.py has other functions, but
nothing is copied; the arrays are good until the function returns."""

import numpy as np
from jax._src import buffer_callback, ffi, tree_util, util
from jax._src.interpreters import mlir
from jax.errors import JaxRuntimeError

from jax_plugins.axle import callbacks


class Buffer:
    """An argument, which is not to be written, or a result."""

    def __init__(self, array, writeable):
        self._array = array
        array.flags.writeable = self.writeable = writeable

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)

    def __array__(self, dtype=None, copy=None):
        same = dtype is None or np.dtype(dtype) == self.dtype
        if same and not copy:
            return self._array
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return self._array.astype(dtype or self.dtype)

    def __dlpack__(self, **options):
        array = self._array
        if not self.writeable:  # NumPy exports what may be written alone; who takes it knows by `writeable` that this must not be
            array = np.frombuffer(_memory_of(array), array.dtype).reshape(array.shape)
        return array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def _memory_of(array):
    return callbacks.memory_at(array.ctypes.data, array.nbytes)


class ExecutionContext:
    stage = buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        raise JaxRuntimeError("INVALID_ARGUMENT: XLA FFI GPU context is not available: Axle's devices are processors")


class _Function(callbacks.Function):
    @staticmethod
    def run(function, operands, results):
        function(ExecutionContext(), *[Buffer(x, False) for x in operands], *[Buffer(y, True) for y in results])


def _lower(ctx, *args, callback, in_tree, out_tree, has_side_effect, input_output_aliases, **_):
    def call(context, *buffers):
        operands, results = util.split_list(buffers, [in_tree.num_leaves])
        args_in, kwargs_in = tree_util.tree_unflatten(in_tree, operands)
        if callback(context, tree_util.tree_unflatten(out_tree, results), *args_in, **kwargs_in) is not None:
            raise ValueError("buffer_callback callback must not return any values.")

    function = _Function(call)
    ctx.module_context.add_host_callback(function)
    lower = ffi.ffi_lowering(callbacks.TARGET, has_side_effect=has_side_effect, operand_output_aliases=dict(input_output_aliases))
    return lower(ctx, *args, index=np.uint64(function.number))


def register(platform):
    others = mlir._lowerings[buffer_callback.buffer_callback_p]

    def lower(ctx, *args, **params):
        ours = tuple(ctx.module_context.platforms) == (platform,)
        return _lower(ctx, *args, **params) if ours else others.rule(ctx, *args, **params)

    mlir.register_lowering(buffer_callback.buffer_callback_p, lower)
