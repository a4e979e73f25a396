"""Functions with a rule of their own for devices: jax.experimental.custom_partitioning. On Axle they are the functions that they are, and are
cut up as all others; the rule, which says how they could be, is not asked."""

from jax._src import core, custom_partitioning
from jax._src.interpreters import mlir


def register(platform):
    primitive = custom_partitioning.custom_partitioning_p
    others = mlir._lowerings[primitive]

    def lower(ctx, *args, call, **params):
        if tuple(ctx.module_context.platforms) != (platform,):
            return others.rule(ctx, *args, call=call, **params)
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *args)

    mlir.register_lowering(primitive, lower)
