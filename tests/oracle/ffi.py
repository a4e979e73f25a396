"""Runs handlers of XLA's FFI by Axle beside XLA on CPU, from the same modules, and says which do not agree.

  ffi.py [--build build]

It compiles ffi.cc with the headers that jaxlib brings, holds src/ffi/abi.h against them (ffi_abi.cc), and runs each case three times: by
JAX, by libaxle in this process, and by `axle run --ffi` in another. Then jaxlib's own handlers of LAPACK, out of its capsules. Errors of
handlers must be the same text. What Axle writes of a module with calls, XLA runs.
"""

import argparse
import ctypes
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.lib import _jax  # noqa: E402
from jaxlib import lapack  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).parent
r = np.random.default_rng(7)


def F(*shape):
    return r.standard_normal(shape).astype(np.float32)


# --- libaxle ---


class HostArray(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 16), ("data", ctypes.c_void_p), ("view", ctypes.c_bool),
                ("refused_call", ctypes.c_char_p), ("refused_dtype", ctypes.c_int), ("refused_element", ctypes.c_int), ("refused_bytes", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("dim_count", ctypes.c_uint32), ("dims", ctypes.c_void_p), ("type_count", ctypes.c_uint32), ("types", ctypes.c_void_p),
                ("custom_calls", ctypes.c_void_p)]


class Handlers(ctypes.Structure):
    _fields_ = [("instantiate", ctypes.c_void_p), ("prepare", ctypes.c_void_p), ("initialize", ctypes.c_void_p), ("execute", ctypes.c_void_p)]


class Axle:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.ax_message.restype = ctypes.c_char_p
        self.lib.ax_dtype_name.restype = ctypes.c_char_p
        names = {"bool": "bool", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
        names |= {f"int{b}": f"s{b}" for b in (8, 16, 32, 64)} | {f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)}
        names |= {f"float{b}": f"f{b}" for b in (16, 32, 64)}
        numbers = {self.lib.ax_dtype_name(i).decode(): i for i in range(1, 40)}
        self.number = {np.dtype(k): numbers[v] for k, v in names.items()}
        self.dtype = {v: k for k, v in self.number.items()}
        self.calls = self.make("ax_custom_calls_create")
        self.runtime = self.make("ax_runtime_create", ctypes.byref((ctypes.c_char * 256)()))

    def do(self, name, *args):
        if getattr(self.lib, name)(*args) != 0:
            raise RuntimeError(self.lib.ax_message().decode())

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.do(name, *args, ctypes.byref(out))
        return out

    def program(self, module):
        text = module if isinstance(module, bytes) else module.encode()
        options = Options(custom_calls=self.calls)
        return self.make("ax_program_from_stablehlo_with", text, ctypes.c_size_t(len(text)), b"m.mlir", ctypes.byref(options))

    def executable(self, module):
        program = self.program(module)
        made = self.make("ax_compile", self.runtime, program, None)
        self.lib.ax_program_release(program)
        return made

    def host(self, array):
        made = HostArray(dtype=self.number[array.dtype], rank=array.ndim, data=array.ctypes.data, view=True)
        made.dims[: array.ndim] = array.shape
        return made

    def run(self, executable, args, count):
        arrays = [np.array(a, order="C") for a in args]
        given = (HostArray * max(len(arrays), 1))(*[self.host(a) for a in arrays])
        out = (HostArray * max(count, 1))()
        self.do("ax_run_host", executable, ctypes.c_uint32(len(arrays)), given, ctypes.c_uint32(count), out)
        results = []
        for o in out[:count]:
            dtype, shape = self.dtype[o.dtype], tuple(o.dims[: o.rank])
            results.append(np.frombuffer(ctypes.string_at(o.data, dtype.itemsize * int(np.prod(shape))), dtype).reshape(shape).copy())
        for i in range(count):
            self.lib.ax_host_array_release(ctypes.byref(out[i]))
        return results

    def stablehlo(self, module):
        program = self.program(module)
        out = ctypes.c_char_p()
        self.do("ax_program_stablehlo", program, ctypes.byref(out))
        return out.value.decode()


def capsule_pointer(capsule):
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


# --- Cases: a function of JAX and its arguments ---

CASES = {}


def add(name, f, *args):
    CASES[name] = (f, args)


def call(target, shapes, *args, **attributes):
    options = {k[1:]: attributes.pop(k) for k in list(attributes) if k.startswith("_")}
    return jax.ffi.ffi_call(target, shapes, **options)(*args, **attributes)


def like(x, dtype=None):
    return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)


S = jax.ShapeDtypeStruct
add("rms_norm", lambda x: call("RmsNorm", like(x), x, eps=np.float32(1e-5)), F(4, 33))
add("rms_norm in a loop", lambda x: jax.lax.fori_loop(0, 5, lambda i, c: call("RmsNorm", like(c), c + 1, eps=np.float32(1e-5)), x), F(4, 33))
add("rms_norm in a branch", lambda x: jax.lax.cond(x[0, 0] > 9, lambda c: c, lambda c: call("RmsNorm", like(c), c, eps=np.float32(0.5)), x), F(4, 33))
for mode in ("sequential", "broadcast_all"):
    add(f"rms_norm under vmap, {mode}",
        jax.vmap(lambda x, mode=mode: call("RmsNorm", like(x), x, eps=np.float32(1e-5), _vmap_method=mode)), F(3, 4, 5))
for dtype in """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2 complex64
    complex128""".split():
    d = np.dtype(getattr(ml_dtypes, dtype, dtype))
    add(f"turn {dtype}", lambda x: call("Turn", (like(x), S((), np.int32)), x), (r.standard_normal((3, 4)) * 3).astype(np.float32).astype(d))
add("turn nothing", lambda x: call("Turn", (like(x), S((), np.int32)), x), F(0, 4))
add("turn a scalar", lambda x: call("Turn", (like(x), S((), np.int32)), x), np.float32(2))
attributes = dict(b=True, i8=np.int8(-8), i16=np.int16(-16), i32=np.int32(-32), i64=-64, u8=np.uint8(200), u16=np.uint16(60000), u32=np.uint32(2**32 - 1),
                  u64=np.uint64(2**40 + 1), f32=np.float32(0.1), f64=0.1, text='a "quoted" \\ text\n', inner=dict(deep=7, other="x"),
                  i32s=np.array([1, -2, 3], np.int32), f64s=np.array([0.1, -1e300, np.inf]), u8s=np.array([255, 0], np.uint8))
add("attributes", lambda: call("Attributes", S((23,), np.float64), **attributes))
add("sums of 3 in 2", lambda x, y, z: call("Sums", (like(x), like(y)), x, y, z), F(5), F(5), F(5))
add("sums of 20 in 20", lambda *x: call("Sums", [like(a) for a in x], *x), *[F(6) for _ in range(20)])
add("sums of none", lambda: call("Sums", S((3,), np.float32)))
add("state", lambda x: call("Polynomial", like(x), x, coefficients=np.array([1, 2, 0.5], np.float32)), F(9))
add("two states", lambda x: call("Polynomial", like(x), x, coefficients=np.array([1, 2], np.float32))
    - call("Polynomial", like(x), x, coefficients=np.array([3], np.float32)), F(9))
add("tasks", lambda x: call("Square", like(x), x), F(1000))
add("a future of another thread", lambda x: call("Later", like(x), x, fails=False), F(1000))
add("in place", lambda x: call("Bump", like(x), x, _input_output_aliases={0: 0}) + x, F(7))
add("with an effect", lambda x: call("Bump", like(x), x, _has_side_effect=True, _input_output_aliases={0: 0}), F(7))
add("layouts", lambda x: call("Number", like(x), x, _input_layouts=[(0, 2, 1)], _output_layouts=(1, 0, 2)), F(2, 3, 4))
add("in place, in columns", lambda x: call("Bump", like(x), x, _input_output_aliases={0: 0}, _input_layouts=[(1, 0)], _output_layouts=(1, 0)), F(2, 3))
for code in (1, 3, 5, 8, 9, 11, 12, 13, 14, 15):
    add(f"error {code}", lambda x, code=code: call("Fail", like(x), x, code=np.int32(code), message=f"error {code} of the handler"), F(3))
add("error of a future", lambda x: call("Later", like(x), x, fails=True), F(3))
add("error of decoding", lambda x: call("RmsNorm", like(x), x, eps=0.5), F(3))
add("error of instantiate", lambda x: call("Polynomial", like(x), x, coefficients=np.array([], np.float32)), F(9))
add("half, of the first kind", None, F(2, 3))
add("scratch", lambda x: call("Scratch", like(x), x), F(6))
WANTED = {"scratch": lambda x: x * np.arange(6, dtype=np.float32)}  # XLA on CPUs has no scratch

spd = (lambda a: a @ np.swapaxes(a, -1, -2) + 3 * np.eye(5, dtype=np.float32))(F(2, 5, 5))
LAPACK = {
    "cholesky": (jnp.linalg.cholesky, spd),
    "cholesky f64": (jnp.linalg.cholesky, spd.astype(np.float64)),
    "cholesky of none": (jnp.linalg.cholesky, -spd),
    "lu": (lambda a: jax.lax.linalg.lu(a), F(2, 5, 4)),
    "qr": (lambda a: jnp.linalg.qr(a), F(2, 5, 4)),
    "svd": (lambda a: jnp.linalg.svd(a), F(2, 5, 4)),
    "eigh": (lambda a: jnp.linalg.eigh(a), spd),
    "eig": (lambda a: jnp.linalg.eig(a), F(5, 5)),
    "schur": (lambda a: jax.scipy.linalg.schur(a), F(5, 5)),
    "triangular_solve": (lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), spd[0], F(5, 2)),
    "solve c64": (jnp.linalg.solve, (F(5, 5) + 1j * F(5, 5)).astype(np.complex64), F(5, 2).astype(np.complex64)),
    "hessenberg": (lambda a: jax.scipy.linalg.hessenberg(a, calc_q=True), F(5, 5)),
    "tridiagonal_solve": (lambda d, b: jax.lax.linalg.tridiagonal_solve(d, d + 3, d, b), F(5), F(5, 2)),
}

HALF = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "Half"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
EXECUTES = "RmsNorm Turn Attributes Sums Fail Square Later Bump Number Scratch".split()
TYPE_ID = "_ZN10Polynomial2idE"


def differs(got, want):
    if len(got) != len(want):
        return f"{len(got)} results, and not {len(want)}"
    for g, w in zip(got, want):
        if g.dtype != w.dtype or g.shape != w.shape or g.tobytes() != np.ascontiguousarray(w).tobytes():
            return f"{g.dtype}{list(g.shape)} {g.ravel()[:4]} and not {w.dtype}{list(w.shape)} {w.ravel()[:4]}"
    return None


def attempt(function):
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 - the text is compared
        return None, str(error)


def by_command(axle, library, module, args):
    """The first result, since axle run writes each to a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "m.mlir").write_text(module)
        line = [axle, "run", f"{folder}/m.mlir", "--out", f"0={folder}/o.npy"]
        for symbol in EXECUTES + ["Half"]:
            line += ["--ffi", f"{library}:{symbol}={symbol}"]
        line += ["--ffi", f"{library}:Evaluate=Polynomial", "--ffi", f"{library}:instantiate:MakePolynomial=Polynomial"]
        line += ["--ffi", f"{library}:type:{TYPE_ID}:PolynomialInfo"]
        for i, a in enumerate(args):
            np.save(f"{folder}/{i}.npy", a)
            line += ["--in", f"{i}={folder}/{i}.npy"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return np.load(f"{folder}/o.npy")


def register(axle, lib):
    for symbol in EXECUTES:
        pointer = ctypes.cast(getattr(lib, symbol), ctypes.c_void_p)
        jax.ffi.register_ffi_target(symbol, jax.ffi.pycapsule(getattr(lib, symbol)), platform="cpu")
        axle.do("ax_custom_call_register_ffi", axle.calls, symbol.encode(), ctypes.byref(Handlers(execute=pointer)))
    type_id, info = ctypes.addressof(ctypes.c_int64.in_dll(lib, TYPE_ID)), ctypes.addressof(ctypes.c_int64.in_dll(lib, "PolynomialInfo"))
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    jax.ffi.register_ffi_type("polynomial", {"type_id": capsule(type_id, None, None), "type_info": capsule(info, None, None)}, platform="cpu")
    axle.do("ax_custom_call_register_ffi_type", axle.calls, ctypes.c_void_p(type_id), ctypes.c_void_p(info))
    stages = {"instantiate": lib.MakePolynomial, "execute": lib.Evaluate}
    jax.ffi.register_ffi_target("Polynomial", {k: jax.ffi.pycapsule(v) for k, v in stages.items()}, platform="cpu")
    pointers = {k: ctypes.cast(v, ctypes.c_void_p) for k, v in stages.items()}
    axle.do("ax_custom_call_register_ffi", axle.calls, b"Polynomial", ctypes.byref(Handlers(**pointers)))
    axle.do("ax_custom_call_register_untyped", axle.calls, b"Half", lib.Half)


def check_case(axle, command, library, name, f, args):
    if f is None:
        module, want, failed = HALF, [args[0] / 2], None
    else:
        lowered = jax.jit(f).lower(*args)
        module = lowered.as_text()
        want, failed = attempt(lambda: [np.asarray(a) for a in jax.tree.leaves(lowered.compile()(*args))])
    if name in WANTED:
        want, failed = [WANTED[name](*args)], None
    count = len(want) if failed is None else 1
    got, said = attempt(lambda: axle.run(axle.executable(module), args, count))
    named = not any(np.asarray(a).dtype.kind == "V" or "float8" in np.asarray(a).dtype.name for a in args)  # .npy has a name for the dtype
    first, told = attempt(lambda: by_command(command, library, module, args)) if named else (None, None)
    if failed is not None:
        text = failed.split(": ", 1)[1].splitlines()[0] if ": " in failed else failed
        if said is None or text[:80] not in said:
            return f"XLA fails with '{text}', and Axle {'does not' if said is None else 'with ' + said}"
        return None if told is not None and text[:80] in told else f"axle run says {told}"
    if said is not None or told is not None:
        return f"fails: {said or told}"
    wrong = differs(got, want)
    if wrong is None and first is not None:
        wrong = differs([first], [want[0]])
    return wrong


def check_lapack(axle, name, f, args):
    """Jaxlib's handlers were registered, so that Axle's own functions are not taken: the same bits."""
    lowered = jax.jit(f).lower(*args)
    want = [np.asarray(a) for a in jax.tree.leaves(lowered.compile()(*args))]
    got, said = attempt(lambda: axle.run(axle.executable(lowered.as_text()), args, len(want)))
    if said is not None:
        return said
    for g, w in zip(got, want):
        if g.shape != w.shape or not np.allclose(g, w, rtol=1e-5, atol=1e-5, equal_nan=True):
            return differs([g], [w])
    return None


def check_forms(axle):
    """Attributes come through bytecode, and through an artifact of VHLO of the current version."""
    wrong = None
    for name in ("attributes", "state", "in place, in columns"):
        f, args = CASES[name]
        lowered = jax.jit(f).lower(*args)
        module = lowered.compiler_ir("stablehlo")
        want = [np.asarray(a) for a in jax.tree.leaves(lowered.compile()(*args))]
        code = io.BytesIO()
        module.operation.write_bytecode(code)
        for form in (code.getvalue(), stablehlo.serialize_portable_artifact_str(lowered.as_text(), stablehlo.get_current_version())):
            got, said = attempt(lambda: axle.run(axle.executable(form), args, len(want)))  # noqa: B023
            wrong = wrong or said or differs(got, want)
    return wrong


def check_written(axle):
    """XLA runs what Axle writes of modules with calls."""
    options = _jax.CompileOptions()
    options.executable_build_options.use_spmd_partitioning = True
    wrong = None
    for name in ("rms_norm", "rms_norm in a loop", "state", "layouts", "in place, in columns", "with an effect"):
        f, args = CASES[name]
        lowered = jax.jit(f).lower(*args)
        text = axle.stablehlo(lowered.as_text())
        made = jax.devices()[0].client.compile_and_load(text.encode(), _jax.DeviceList((jax.devices()[0],)), options)
        got = made.execute_sharded([jax.device_put(a) for a in args]).disassemble_into_single_device_arrays()[0][0]
        wrong = wrong or differs([np.asarray(got)], [np.asarray(lowered.compile()(*args))])
    return wrong


def measure(axle):
    """Microseconds of a run with a call of little, and of 1 MiB."""
    for elements in (6, 1 << 18):
        x = F(elements)
        lowered = jax.jit(lambda x: call("Bump", like(x), x)).lower(x)
        made, compiled = axle.executable(lowered.as_text()), lowered.compile()
        given = jax.device_put(x)
        times = []
        for run in (lambda: axle.run(made, [x], 1), lambda: compiled(given).block_until_ready()):
            run()
            begin = time.perf_counter()
            for _ in range(300):
                run()
            times.append((time.perf_counter() - begin) / 300 * 1e6)
        print(f"ffi: a run with one call of {elements} elements: Axle {times[0]:.1f} us with ctypes, JAX {times[1]:.1f} us")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    include = jax.ffi.include_dir()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cxx = [os.environ.get("CXX", "c++"), "-std=c++17", "-w", f"-I{include}"]
        subprocess.run([*cxx, f"-I{HERE}/../../src", "-fsyntax-only", HERE / "ffi_abi.cc"], check=True)
        library = f"{folder}/ffi.so"
        subprocess.run([*cxx, "-O1", "-fPIC", "-shared", HERE / "ffi.cc", "-o", library], check=True)
        axle = Axle(os.path.abspath(f"{options.build}/libaxle.so"))
        register(axle, ctypes.CDLL(library))
        for name, (f, args) in CASES.items():
            wrong = check_case(axle, f"{options.build}/axle", library, name, f, args)
            failed += wrong is not None
            if wrong is not None:
                print(f"ffi: {name}: {wrong}")
        lapack._lapack.initialize()
        for name, capsule, version in lapack.registrations()["cpu"]:
            if version == 1:
                stages = capsule if isinstance(capsule, dict) else {"execute": capsule}
                pointers = {k: capsule_pointer(v) for k, v in stages.items()}
                axle.do("ax_custom_call_register_ffi", axle.calls, name.encode(), ctypes.byref(Handlers(**pointers)))
        for name, (f, *args) in LAPACK.items():
            wrong = check_lapack(axle, name, f, args)
            failed += wrong is not None
            if wrong is not None:
                print(f"ffi: lapack {name}: {wrong}")
        for check in (check_forms, check_written):
            wrong = check(axle)
            failed += wrong is not None
            if wrong is not None:
                print(f"ffi: {check.__name__}: {wrong}")
        measure(axle)
    print(f"ffi: {len(CASES)} cases of handlers, {len(LAPACK)} of jaxlib's LAPACK, 6 modules written: {failed} disagree")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
