"""Windows at indices: gather and the scatters, rows looked up and updated; indices inside and outside, twice the same, in every mode."""

import jax
import jax.numpy as jnp
from jax import lax

from case import Case, edge, index, real, ties

MOVE = "f32 f64 bf16 f16 s8 s16 s32 s64 u8 u16 u32 u64 bool"
NUMBER = "f32 f64 bf16 f16 s8 s32 s64 u8 u16 u64"
FLOAT = "f32 f64 bf16"

# x, indices, offset, collapsed, map, batching, index batching, slice sizes, the windows' shape
FORMS = [
    ((7,), (4, 1), (), (0,), (0,), (), (), (1,), (4,)),
    ((5, 6), (3, 1), (1,), (0,), (0,), (), (), (1, 6), (3, 6)),
    ((5, 6), (4, 2), (0, 2), (), (1, 0), (), (), (3, 2), (3, 4, 2)),
    ((4, 5, 3), (2, 3, 2), (1, 3), (1,), (1, 0), (), (), (2, 1, 3), (2, 2, 3, 3)),
    ((3, 6), (3, 5, 1), (), (1,), (1,), (0,), (0,), (1, 1), (3, 5)),
    ((5, 3, 2), (2, 4, 3, 1), (3,), (0,), (0,), (1,), (2,), (1, 1, 2), (2, 4, 3, 2)),
    ((4, 3), (2, 0), (1, 2), (), (), (), (), (4, 3), (2, 4, 3)),
    ((4, 3), (0, 1), (1,), (0,), (0,), (), (), (1, 3), (0, 3)),
]
LINEAR = [lax.scatter, lax.scatter_add]
OTHERS = [lax.scatter_mul, lax.scatter_min, lax.scatter_max]


def gather_numbers(form):
    return lax.GatherDimensionNumbers(*form[2:7])


def scatter_numbers(form):
    return lax.ScatterDimensionNumbers(*form[2:7])


def gathers(form):
    def run(x, i):
        fill = 1 if x.dtype == jnp.bool_ else 3
        return tuple(
            lax.gather(x, i, gather_numbers(form), form[7], mode=mode, fill_value=value)
            for mode, value in (("fill", None), ("clip", None), ("fill", fill))
        )

    return run


def scatters(form, functions):
    return lambda x, i, u: tuple(f(x, i, u, scatter_numbers(form), mode=mode) for f in functions for mode in ("drop", "clip"))


def into(form, *extra):
    """Indices of which some are outside, on both sides."""
    return index(max(form[0]) + 1, *extra, *form[1], above=-2)


def extremes(x, i, u):
    return tuple(f(x, i, u, scatter_numbers(FORMS[3]), mode="drop") for f in (lax.scatter_min, lax.scatter_max))


def unique(x, i, u):
    numbers = scatter_numbers(FORMS[1])
    i = jnp.asarray([[4], [1], [7]], jnp.int32)
    return tuple(f(x, i, u, numbers, mode="drop", unique_indices=True, indices_are_sorted=False) for f in (lax.scatter, lax.scatter_mul))


def batches(function, form, axes):
    return lambda *operands: jax.vmap(function(form), axes)(*operands)


def scatter_apply(x, i):
    """Elements met twice get f twice."""
    form = FORMS[3]
    return lax.scatter_apply(x, i, lambda v: 2 * v + 1, scatter_numbers(form), update_shape=form[8], mode="drop")


def batched_scatters(form):
    return scatters(form, LINEAR)


def take_modes(x, i):
    return tuple(jnp.take(x, i, axis, mode=mode) for axis in (0, 1, -1) for mode in ("fill", "clip"))


def along(x, i, j):
    return (
        jnp.take_along_axis(x, i, 0, mode="fill"),
        jnp.take_along_axis(x, j, 1, mode="fill"),
        jnp.take_along_axis(x, j, -2, mode="fill", fill_value=2),
    )


def updates(x, i, u):
    x = jnp.asarray(x)
    return x.at[i].set(u), x.at[i].add(u[0, 0]), x.at[:, i].min(u[0, 0, 0]), x.at[..., i].max(1)


def slices(x, i, j):
    i, j = jnp.asarray(i), jnp.asarray(j)
    one = lambda row, a, b: lax.dynamic_slice(row, (a, b), (2, 3), allow_negative_indices=False)
    return jax.vmap(one)(x, i, j), jax.vmap(one, (None, 0, None))(x[0], i, j[0]), jax.vmap(one, (0, None, 0))(x, i[1], j)


def update_slices(x, u, i, j):
    i, j = jnp.asarray(i), jnp.asarray(j)
    one = lambda row, part, a, b: lax.dynamic_update_slice(row, part, (a, b), allow_negative_indices=False)
    return jax.vmap(one)(x, u, i, j), jax.vmap(one, (None, None, 0, None))(x[0], u[0], i, j[0]), jax.vmap(one, (0, None, 0, 0))(x, u[1], i, j)


def embedding(table, ids):
    rows = jnp.take(table, ids, 0, mode="clip")
    return jnp.tanh(rows).sum((0, 1))


def sorts(x):
    return jnp.sort(x, 0), jnp.sort(x, 1), lax.sort(x, 2)


def argsorts(x):
    return jnp.argsort(x, 0, stable=True).astype(jnp.int32), jnp.argsort(x, -1, stable=True).astype(jnp.int32)


def together(x, i, y):
    return (
        *lax.sort((i, x, y), dimension=0, num_keys=2, is_stable=True),
        *lax.sort((x, y), dimension=1, num_keys=1, is_stable=True),
    )


def sorts_by(x, i, y):
    """By size; by two keys, the first descending; by what holds for equal elements in either order."""
    fallen = lax.sort((-i, x, y), dimension=0, num_keys=2, is_stable=True)
    return lax.sort((jnp.abs(x), x), dimension=1, num_keys=1, is_stable=True)[1], -fallen[0], *fallen[1:], lax.sort((-i, y), dimension=0, num_keys=1, is_stable=True)[1]


def sorts_by_mapped(x):
    by_size = lambda row: lax.sort((jnp.abs(row), row), num_keys=1, is_stable=True)[1]
    return jax.vmap(by_size, 1)(x), by_size(x[0][:1]), by_size(x[0][:0])


def largest(x):
    return *lax.top_k(x, 3), *lax.top_k(x, 0), *lax.top_k(x[0], 5)


CASES = [
    *(Case(f"gather{k}", MOVE if k == 3 else "f32", gathers(form), [real(*form[0]), into(form)]) for k, form in enumerate(FORMS)),
    Case("gather_u8", "f32 s32", gathers(FORMS[1]), [real(*FORMS[1][0]), index(255, *FORMS[1][1], dtype=jnp.uint8)]),
    Case("gather_s64", "f32 u8", gathers(FORMS[2]), [real(*FORMS[2][0]), index(1 << 40, *FORMS[2][1], above=-(1 << 40), dtype=jnp.int64)]),
    *(
        Case(f"scatter{k}", NUMBER if k == 3 else "f32", scatters(form, LINEAR), [ties(*form[0]), into(form), ties(*form[8])])
        for k, form in enumerate(FORMS)
    ),
    *(
        Case(f"scatter_others{k}", NUMBER if k == 3 else "f32", scatters(form, OTHERS), [real(*form[0]), into(form), real(*form[8])], modes="v")
        for k, form in enumerate(FORMS)
    ),
    Case("scatter_sub", "f32 s32", scatters(FORMS[3], [lax.scatter_sub]), [ties(*FORMS[3][0]), into(FORMS[3]), ties(*FORMS[3][8])]),
    Case("scatter_apply", "f32", scatter_apply, [ties(*FORMS[3][0]), into(FORMS[3])], modes="v"),
    Case("scatter_bool", "bool", scatters(FORMS[3], [lax.scatter, lax.scatter_min, lax.scatter_max]), [real(*FORMS[3][0]), into(FORMS[3]), real(*FORMS[3][8])]),
    Case("extremes", "f32 f64", extremes, [ties(4, 5, 3), into(FORMS[3]), ties(*FORMS[3][8])]),
    Case("unique", FLOAT, unique, [real(5, 6), index(1), real(3, 6)]),
    Case("gather_batch_x", "f32", batches(gathers, FORMS[3], (1, None)), [real(4, 2, 5, 3), into(FORMS[3])]),
    Case("gather_batch_i", "f32", batches(gathers, FORMS[3], (None, 0)), [real(4, 5, 3), into(FORMS[3], 2)]),
    Case("gather_batch", "f32", batches(gathers, FORMS[5], (0, 0)), [real(2, 5, 3, 2), into(FORMS[5], 2)]),
    Case("scatter_batch_u", "f32", batches(batched_scatters, FORMS[2], (None, None, 0)), [real(5, 6), into(FORMS[2]), ties(2, 3, 4, 2)]),
    Case("scatter_batch_i", "f32", batches(batched_scatters, FORMS[2], (None, 0, None)), [ties(5, 6), into(FORMS[2], 2), ties(3, 4, 2)]),
    Case("scatter_batch", "f32", batches(batched_scatters, FORMS[4], (2, 0, 0)), [ties(3, 6, 2), into(FORMS[4], 2), ties(2, 3, 5)]),
    Case("take_modes", "f32 bf16 s32 u8 bool", take_modes, [real(3, 4, 2), index(5, 2, 3, above=-5)]),
    Case("along", "f32 bf16 s32", along, [real(3, 4, 2), index(4, 5, 1, 2, above=-5), index(5, 1, 3, 1, above=-5)]),
    Case("updates", "f32 s32", updates, [ties(3, 4, 2), index(5, 2, 2, above=-5), ties(2, 2, 4, 2)], modes="v"),
    Case("slices", "f32 s32", slices, [real(3, 4, 5), index(4, 3, above=-1), index(4, 3, above=-1)]),
    Case("update_slices", "f32 s32", update_slices, [real(3, 4, 5), real(3, 2, 3), index(4, 3, above=-1), index(4, 3, above=-1)]),
    Case("sorts", MOVE, sorts, [real(4, 5, 3)]),
    Case("sorts_long", "f32 f64 bf16 s16 u64", lambda x: jnp.sort(x), [real(3000)]),
    Case("sorts_edge", NUMBER, lambda x: (jnp.sort(x), jnp.argsort(x, stable=True).astype(jnp.int32)), [edge(40)], modes="v"),
    Case("argsorts", MOVE, argsorts, [ties(6, 7)], modes="v"),
    Case("together", "f32 bf16 s32", together, [real(6, 5), index(3, 6, 5), real(6, 5)]),
    Case("sorts_batch", "f32", lambda x: (jax.vmap(lambda row: lax.sort(row, 0), 1)(x), jax.vmap(lambda a, b: lax.sort((a, b), num_keys=1), (0, None))(x, x[0])[1]),
         [real(4, 6)]),
    Case("sorts_by", "f32 s32", sorts_by, [ties(5, 13), index(3, 5, 13), real(5, 13)]),
    Case("sorts_by_long", "f32 bf16", lambda x: lax.sort((jnp.abs(x), x), num_keys=1, is_stable=True)[1], [real(1000)]),
    Case("sorts_by_mapped", "f32", sorts_by_mapped, [real(7, 6)]),
    Case("largest", "f32 f64 bf16 s32 u8", largest, [ties(4, 5)], modes="v"),
    Case("largest_slopes", "f32", lambda x: lax.top_k(x, 3)[0], [real(4, 5)]),
    Case("largest_edge", "f32 s32", lambda x: lax.top_k(x, 24), [edge(24)], modes="v"),
    Case("embedding", FLOAT, embedding, [real(11, 8), index(11, 5, 7)]),
]
