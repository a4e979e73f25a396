#!/usr/bin/env python3
"""Arrays of Axle and of NumPy (and JAX, where it is installed) given to one another by DLPack, through the library's functions.
   tests/oracle/dlpack.py LIBRARY      build/libaxle.so"""
import ctypes
import sys

import numpy as np

axle = ctypes.CDLL(sys.argv[1])
versioned = b"dltensor_versioned"
used = b"used_dltensor_versioned"
unversioned, used_unversioned = b"dltensor", b"used_dltensor"
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
axle.ax_message.restype = ctypes.c_char_p


def must(status):
    if status != 0:
        raise RuntimeError(axle.ax_message().decode())


class Array:
    """An array of Axle's, as other libraries see it."""

    def __init__(self, handle):
        self.handle = handle

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        tensor = ctypes.c_void_p()
        if max_version is None:  # the other one knows no versions
            must(axle.ax_array_to_dlpack_unversioned(self.handle, ctypes.byref(tensor)))
            return api.PyCapsule_New(tensor, unversioned, None)
        must(axle.ax_array_to_dlpack(self.handle, ctypes.byref(tensor)))
        return api.PyCapsule_New(tensor, versioned, None)

    def release(self):
        axle.ax_array_release(self.handle)


def take(runtime, other):
    capsule = other.__dlpack__(max_version=(1, 0))
    handle = ctypes.c_void_p()
    with_version = api.PyCapsule_IsValid(capsule, versioned)
    function = axle.ax_array_from_dlpack if with_version else axle.ax_array_from_dlpack_unversioned
    must(function(runtime, ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, versioned if with_version else unversioned)), ctypes.byref(handle)))
    api.PyCapsule_SetName(capsule, used if with_version else used_unversioned)
    return Array(handle)


runtime = ctypes.c_void_p()
must(axle.ax_runtime_create(None, ctypes.byref(runtime)))
kinds = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128]
for kind in kinds:
    x = (np.arange(24).reshape(2, 3, 4) % 7).astype(kind)
    for view in (x, x.T, x[:, ::2], x[..., 0], x[:0], np.array(x[0, 0, 0])):
        array = take(runtime, view)
        back = np.from_dlpack(array)
        array.release()
        assert back.dtype == view.dtype and back.shape == view.shape and (back == view).all(), (kind, view.strides)
    array = take(runtime, x)
    assert np.from_dlpack(array).__array_interface__["data"][0] == x.__array_interface__["data"][0], "the memory is one"
    array.release()
try:
    import jax.numpy as jnp
except ImportError:
    jnp = None
if jnp is not None:
    for kind in (jnp.float32, jnp.bfloat16, jnp.int8, jnp.float8_e4m3fn):
        x = jnp.arange(6).reshape(2, 3).astype(kind)
        array = take(runtime, x)
        assert (jnp.from_dlpack(array) == x).all(), kind
        array.release()
axle.ax_runtime_release(runtime)
print(f"{len(kinds)} kinds of elements by NumPy" + (", and by JAX" if jnp is not None else ""))
