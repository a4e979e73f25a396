"""Exchanges that data direct. XLA:CPU has no ragged_all_to_all: here it is a gather of everybody's rows, with the derivatives of that.
The vectors are those of JAX 0.12, for its pbroadcast with a source that the program finds."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jax._src.lax import parallel

from case import Case, real, shards

MESHES = "d=2 d=4 d=8 a=4,b=2:a,b a=4,b=2:b,a a=4,b=2:b a=4,b=2:a"
FEW = "d=4 a=4,b=2:b,a a=4,b=2:a"
FOURS = "d=4 a=4,b=2:a"  # of four members
GROUPS = [[0, 2], [3, 1]]
ROWS, SPARE = 5, 3  # of an operand; of an output, besides those that may come


def exchange(operand, output, input_offsets, send_sizes, output_offsets, axes, groups=None):
    """As lax.ragged_all_to_all, which says in recv_sizes what senders know as well."""
    everybody = lambda x: lax.all_gather(x, axes, axis_index_groups=groups)
    rows, starts, sizes, places = map(everybody, (operand, input_offsets, send_sizes, output_offsets))
    count, each = rows.shape[0], starts.shape[1] // rows.shape[0]
    me = lax.axis_index(axes)
    if groups is not None:
        me = jnp.array([next(g.index(i) for g in groups if i in g) for i in range(sum(map(len, groups)))])[me]
    mine = lambda table: lax.dynamic_slice_in_dim(table, me * each, each, 1).reshape(-1).astype(jnp.int32)
    starts, sizes, places = map(mine, (starts, sizes, places))
    row = jnp.arange(output.shape[0])[:, None]
    here = (places <= row) & (row < places + sizes)
    which = jnp.argmax(here, 1)
    at = which // each * operand.shape[0] + row[:, 0] - places[which] + starts[which]
    came = here.any(1).reshape(-1, *[1] * (output.ndim - 1))
    return jnp.where(came, rows.reshape(-1, *operand.shape[1:])[jnp.where(here.any(1), at, 0)], output)


def ragged(v, operand, output, starts, sizes, places, comes):
    return exchange(operand, output, starts, sizes, places, v.axes)


def in_groups(v, operand, output, starts, sizes, places, comes):
    return exchange(operand, output, starts, sizes, places, v.axes, GROUPS)


def in_scan(v, operand, output, starts, sizes, places, comes):
    def step(carry, _):
        x, y = carry
        return (jnp.sin(x), ragged(v, x, jnp.cos(y), starts, sizes, places, comes)), None

    return lax.scan(step, (operand, output), None, length=3)[0]


def mapped(in_axes, out_axes=0):
    return lambda v, *operands: jax.vmap(lambda *one: ragged(v, *one), in_axes=in_axes, out_axes=out_axes)(*operands)


def own_axis(operand, output, starts, sizes, places, comes):
    return jax.vmap(lambda *one: exchange(*one[:5], "i"), axis_name="i")(operand, output, starts, sizes, places)


DYNAMIC = hasattr(parallel, "pbroadcast_dynamic_p")  # JAX 0.12, whose own lowering for platforms without a broadcast CPU is not told of
if DYNAMIC:
    mlir.register_lowering(parallel.pbroadcast_dynamic_p, parallel._pbroadcast_dynamic_fallback_lowering, platform="cpu")


def masked(v, x, source):
    return lax.pcast(lax.psum(jnp.where(lax.axis_index(v.axes) == source, x, 0), v.axes), v.axes, to="varying")


def told(v, x, source):
    """lax.pbroadcast with a source that the program finds; before JAX 0.12 what it comes to. 0.12 fails to transpose it."""
    return lax.pbroadcast(x, v.axes, source) if DYNAMIC else masked(v, x, source)


def masked_scan(v, x, source):
    return lax.scan(lambda c, _: (masked(v, jnp.sin(c) * x, source), None), x, None, length=3)[0]


# --- Inputs: what one member sends fits what another receives, so all four tables come from one layout. ---


def lay_out(random, members, each):
    """(input_offsets, send_sizes, output_offsets, recv_sizes) of exchanges of `members`: [members, members * each]."""
    slices = members * each
    starts, sizes, places = (np.zeros((members, slices), int) for _ in range(3))
    sizes[:] = random.integers(0, 3, sizes.shape)
    starts[:] = random.integers(0, ROWS - sizes + 1)
    for receiver in range(members):
        end, spare = 0, SPARE
        for slice_ in random.permutation(slices):  # in any order, with gaps
            sender, column = slice_ // each, receiver * each + slice_ % each
            gap = random.integers(0, spare + 1)
            places[sender, column] = end + gap
            end, spare = end + gap + sizes[sender, column], spare - gap
    comes = sizes.reshape(members, members, each).transpose(1, 0, 2).reshape(members, slices)
    return starts, sizes, places, comes


def table(k, each=1, groups=None, batch=0, dtype=np.int32):
    """Table k of the layout: all four draw the same numbers. Exchanges over some of the axes are apart from each other."""

    def make(random, variant):
        again = np.random.default_rng(random.bit_generator.seed_seq)
        mesh, axes = variant.mesh or {"i": 4}, variant.axes or ("i",)
        device = np.arange(np.prod(list(mesh.values()))).reshape(tuple(mesh.values()))
        names = list(mesh)
        rest = [name for name in names if name not in axes]
        apart = device.transpose([names.index(name) for name in (*rest, *axes)]).reshape(-1, np.prod([mesh[name] for name in axes]))
        result = None
        for together in apart:
            for group in [together[g] for g in groups] if groups else [together]:
                drawn = np.stack([lay_out(again, len(group), each)[k] for _ in range(batch or 1)], 1)  # [members, batch, slices]
                if result is None:
                    result = np.zeros((device.size, *drawn.shape[1:]), dtype)
                result[group] = drawn
        slices = result.shape[-1]
        return result.reshape(-1, slices) if batch or not variant.mesh else result.reshape(-1)

    return make


def tables(*args, **options):
    return [table(k, *args, **options) for k in range(4)]


def rows_of(each=1, members=None):
    return lambda v: 2 * each * (members or v.members) + SPARE


def source(random, variant):
    return np.asarray(random.integers(0, variant.members), np.int32)


def over(name, function, variants=FEW, inputs=None, specs="A A A A A A > A", **more):
    return Case(name, variants, function, inputs or [shards(ROWS, 2), shards(rows_of(), 2), *tables()], specs=specs, **more)


CASES = [
    over("ragged", ragged, MESHES),
    over("ragged_several", ragged, inputs=[shards(ROWS, 2), shards(rows_of(3), 2), *tables(3, dtype=np.int64)]),
    over("ragged_rows", ragged, "d=8", [shards(ROWS), shards(rows_of()), *tables(dtype=np.uint8)]),
    over("ragged_s8", ragged, "d=4", [shards(ROWS, 2, 2, dtype=np.int8), shards(rows_of(), 2, 2, dtype=np.int8), *tables()]),
    over("ragged_bf16", ragged, "d=4", [shards(ROWS, 2, dtype=ml_dtypes.bfloat16), shards(rows_of(), 2, dtype=ml_dtypes.bfloat16), *tables()], modes="vj"),
    over("ragged_f64", ragged, "a=4,b=2:a", [shards(ROWS, 2, dtype=np.float64), shards(rows_of(), 2, dtype=np.float64), *tables()]),
    over("ragged_groups", in_groups, FOURS, [shards(ROWS, 2), shards(rows_of(1, 2), 2), *tables(groups=GROUPS)], unchecked=True),
    over("ragged_groups_several", in_groups, FOURS, [shards(ROWS, 2), shards(rows_of(2, 2), 2), *tables(2, groups=GROUPS)], unchecked=True),
    over("ragged_scan", in_scan, specs="A A A A A A > A A"),
    over("ragged_vmap", mapped((2, 1, None, None, None, None), 1), inputs=[shards(ROWS, 2, 3), shards(rows_of(), 3, 2), *tables()]),
    over("ragged_vmap_all", mapped(0), inputs=[shards(3, ROWS, 2), shards(3, rows_of(), 2), *tables(batch=3)]),
    over("ragged_vmap_tables", mapped((None, None, 0, 0, 0, 0)), inputs=[shards(ROWS, 2), shards(rows_of(), 2), *tables(batch=3)]),
    Case("ragged_own_axis", "f32 f64", own_axis, [real(4, ROWS, 2), real(4, rows_of(1, 4), 2), *tables()]),
    over("pbroadcast_dynamic", told, MESHES, [shards(2, 3), source], "A . > A", modes="vj"),
    over("pbroadcast_dynamic_s32", told, FEW, [shards(2, 3, dtype=np.int32), source], "A . > A"),
    over("pbroadcast_dynamic_vmap", lambda v, x, s: jax.vmap(lambda row: told(v, row, s), in_axes=1, out_axes=1)(x), FEW, [shards(2, 3), source],
         "A . > A", modes="vj"),
    over("pbroadcast_dynamic_masked", masked, FEW, [shards(2, 3), source], "A . > A"),
    over("pbroadcast_dynamic_scan", masked_scan, FEW, [shards(2, 3), source], "A . > A"),
]  # fmt: skip
