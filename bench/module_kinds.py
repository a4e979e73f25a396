"""Modules of so many operations, for b21: what each kind asks of the reader and of the compiler is another thing."""

POINTWISE = ["sine", "cosine", "tanh", "negate"]
VECTOR = "tensor<64xf32>"


def function(name, lines, result, private=False):
    argument = f"%0: {VECTOR}"
    return f"  func.func {'private ' if private else ''}@{name}({argument}) -> {VECTOR} {{\n" + "\n".join(lines) + f"\n    return {result} : {VECTOR}\n  }}\n"


def pointwise(count, first=0):
    return [f"    %{i + 1} = stablehlo.{POINTWISE[(first + i) % 4]} %{i} : {VECTOR}" for i in range(count)]


def sums(count, constant):
    lines = []
    for i in range(count // 2):
        lines.append(f"    %c{i} = stablehlo.constant dense<{constant(i)}> : {VECTOR}")
        lines.append(f"    %{i + 1} = stablehlo.add %{i}, %c{i} : {VECTOR}")
    return function("main", lines, f"%{count // 2}")


def chain(count):
    return function("main", pointwise(count), f"%{count}")


def functions(count):
    calls = [f"    %{i + 1} = call @f{i}(%{i}) : ({VECTOR}) -> {VECTOR}" for i in range(count // 10)]
    parts = [function(f"f{i}", pointwise(9, i), "%9", private=True) for i in range(count // 10)]
    return function("main", calls, f"%{count // 10}") + "".join(parts)


def slices(count):
    longer = "tensor<66xf32>"
    lines = ["    %z = stablehlo.constant dense<0.0> : tensor<f32>"]
    for i in range(count // 2):
        lines.append(f"    %p{i} = stablehlo.pad %{i}, %z, low = [1], high = [1], interior = [0] : ({VECTOR}, tensor<f32>) -> {longer}")
        lines.append(f"    %{i + 1} = stablehlo.slice %p{i} [{i % 3}:{64 + i % 3}] : ({longer}) -> {VECTOR}")
    return function("main", lines, f"%{count // 2}")


KINDS = {
    "in a chain": chain,
    "sums with numbers": lambda count: sums(count, lambda i: i + 0.5),
    "in functions of nine": functions,
    "slices of pads": slices,
    "sums with constants of 64 numbers": lambda count: sums(count, lambda i: [(i * 7 + k * 13) % 101 / 16 for k in range(64)]),
}
BESIDE = (100, 1000)  # XLA takes minutes for ten times that, or fails
ALONE = (10_000, 100_000)


def write(folder, bytecode):
    """Writes each module as text, and as what bytecode(text) gives. Gives (kind, operations, form, name of the file)."""
    written = []
    for number, (kind, make) in enumerate(KINDS.items()):
        for count in BESIDE + ALONE:
            text = "module {\n" + make(count) + "}\n"
            (folder / f"kind_{number}_{count}.mlir").write_text(text)
            written.append((kind, count, "text", f"kind_{number}_{count}.mlir"))
            (folder / f"kind_{number}_{count}.mlirbc").write_bytes(bytecode(text))
            written.append((kind, count, "bytecode", f"kind_{number}_{count}.mlirbc"))
    return written
