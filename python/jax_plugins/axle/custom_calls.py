"""Gives to the plugin what JAX and its users register for custom calls: handlers of XLA's FFI, functions of the older kinds, and types.

JAX has a list of them for each platform, and a function that is told each one. The plugin has PJRT's extensions for that, which are reached
as memory here: a list of structs of C (pjrt_c_api_gpu_extension.h, pjrt_c_api_ffi_extension.h).
"""

import ctypes
import re
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p

from jaxlib import cpu_sparse, lapack, xla_client

_CUSTOM_CALLS, _FFI = 0, 5  # kinds of extensions

# Routines of LAPACK that Axle has itself, which runs them on several threads; jaxlib's take the others.
_OWN = re.compile("lapack_[sdcz](potrf|getrf|geqrf|geqp3|orgqr|ungqr|ormqr|unmqr|gesdd|syevd|heevd|geev|gees|gehrd|sytrd|hetrd|trsm|gtsv)_ffi")


class _Extension(Structure):
    pass


_Extension._fields_ = [("size", c_size_t), ("kind", c_int), ("next", POINTER(_Extension))]


class _Api(Structure):  # how it begins, and up to what errors are asked for
    _fields_ = [("size", c_size_t), ("extensions", POINTER(_Extension)), ("version_size", c_size_t), ("version_extensions", c_void_p),
                ("major", c_int), ("minor", c_int), ("error_destroy", c_void_p), ("error_message", c_void_p)]


class _ErrorArgs(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("error", c_void_p), ("text", c_void_p), ("length", c_size_t)]


class _CallArgs(Structure):
    _fields_ = [("size", c_size_t), ("target", c_char_p), ("target_length", c_size_t), ("api_version", c_int), ("instantiate", c_void_p),
                ("prepare", c_void_p), ("initialize", c_void_p), ("execute", c_void_p)]


class _TypeInfo(Structure):
    _fields_ = [("deleter", c_void_p), ("serialize", c_void_p), ("deserialize", c_void_p)]


class _ForeignTypeInfo(Structure):  # XLA_FFI_TypeInfo
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("deleter", c_void_p)]


class _TypeArgs(Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("name", c_char_p), ("name_length", c_size_t), ("number", c_int64),
                ("info", POINTER(_TypeInfo))]


def _pointer(capsule):
    if capsule is None:
        return None
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return get(capsule, get_name(capsule))


def _functions(api, kind, count):
    """The addresses of the functions that an extension has."""
    extension = api.extensions
    while extension:
        if extension.contents.kind == kind:
            first = ctypes.addressof(extension.contents) + ctypes.sizeof(_Extension)
            return (c_void_p * count).from_address(first)
        extension = extension.contents.next
    raise RuntimeError(f"the plugin has no extension {kind}")


def _checked(api, error):
    if not error:
        return
    args = _ErrorArgs(ctypes.sizeof(_ErrorArgs), None, error, None, 0)
    ctypes.CFUNCTYPE(None, c_void_p)(api.error_message)(ctypes.addressof(args))
    message = ctypes.string_at(args.text, args.length).decode()
    ctypes.CFUNCTYPE(None, c_void_p)(api.error_destroy)(ctypes.addressof(args))
    raise ValueError(message)


def _call(api, function, args):
    _checked(api, ctypes.CFUNCTYPE(c_void_p, c_void_p)(function)(ctypes.addressof(args)))


def register_call(api, name, stages, api_version):
    """stages: addresses by "instantiate", "prepare", "initialize" and "execute"; the last is there."""
    text = name.encode()
    args = _CallArgs(ctypes.sizeof(_CallArgs), text, len(text), api_version,
                     *(stages.get(stage) for stage in ("instantiate", "prepare", "initialize", "execute")))
    _call(api, _functions(api, _CUSTOM_CALLS, 1)[0], args)


def register_type(api, name, number, deleter):
    """The type's number, which is `number` unless that is 0."""
    text = name.encode()
    info = _TypeInfo(deleter, None, None)
    args = _TypeArgs(ctypes.sizeof(_TypeArgs), None, text, len(text), number, ctypes.pointer(info))
    _call(api, _functions(api, _FFI, 3)[0], args)
    return args.number


def of(capsule):
    """The plugin's table of functions."""
    return _Api.from_address(_pointer(capsule))


def register(capsule, platform):
    api = of(capsule)

    def on_target(name, function, platform, api_version=0, traits=0):
        if _OWN.fullmatch(name):
            return
        stages = function if isinstance(function, dict) else {"execute": function}
        register_call(api, name, {stage: _pointer(f) for stage, f in stages.items()}, api_version)

    def on_type(name, registration):
        parts = registration if isinstance(registration, dict) else {"type_id": registration}
        identity = c_int64.from_address(_pointer(parts["type_id"]))
        info = _pointer(parts.get("type_info"))
        deleter = _ForeignTypeInfo.from_address(info).deleter if info else None
        identity.value = register_type(api, name, identity.value, deleter)

    for name, function, version in (*lapack.registrations()["cpu"], *cpu_sparse.registrations()["cpu"]):
        on_target(name, function, platform, version)
    # Of jaxlib's own: those that call Python need what only XLA's runtime has (callbacks.py is in their place).
    sink = xla_client.custom_call_targets("Host").get("dce_sink")
    if sink is not None:
        on_target("dce_sink", sink, platform, 1 if isinstance(sink, dict) else 0)
    xla_client.register_custom_call_handler(platform, on_target)
    xla_client.register_custom_type_handler(platform, on_type)
