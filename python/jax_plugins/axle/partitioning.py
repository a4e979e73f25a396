"""Functions with a rule of their own for devices: jax.experimental.custom_partitioning. The rule is asked once it is known how the program lays
out the function's arguments and results, which only the plugin can tell. So such a program is compiled in three steps:

  as JAX lowers it   the function as it is, in a function of the module that is called; layouts of arguments and results are asked for
  asked              the plugin tells them (inspect_array_sharding), and the compilation ends there
  compiled           the call is of a manual computation now, of what the rule gives for these layouts
"""

import dataclasses
import itertools
import weakref

import numpy as np
from jax._src import compiler, core, custom_partitioning, sharding_impls
from jax._src.interpreters import mlir
from jax._src.lib import _jax, xla_client
from jax._src.lib.mlir import ir, passmanager
from jax._src.lib.mlir.dialects import func, hlo, sdy
from jax.sharding import Mesh, NamedSharding

_MARK = "axle.partitioned_by"  # of a call: the number of its site
_sites = weakref.WeakValueDictionary()  # of modules that live
_numbers = itertools.count()


class Told(Exception):
    """All layouts are known that were asked for."""


@dataclasses.dataclass(eq=False)
class Site:
    """A call of such a function in a module."""

    rule: custom_partitioning._ShardingCallbackInfo
    in_avals: list
    out_avals: list
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))
    told: dict = dataclasses.field(default_factory=dict)  # by place among arguments, then results: xla_client.HloSharding
    beside: list = dataclasses.field(default_factory=list)  # all sites of the module that is asked about
    mesh: Mesh | None = None  # that the rule has given back
    kept: list = dataclasses.field(default_factory=list)  # that the module has as pointers

    def is_known(self):
        return len(self.told) == len(self.in_avals) + len(self.out_avals)


# --- As JAX lowers it ---


def _mesh_of(context):
    """The mesh by whose names a rule speaks, and the devices; None: there is one device, or each of them has its own part already."""
    if isinstance(context, sharding_impls.SPMDAxisContext):
        by_hand = set(context.manual_axes) == set(context.mesh.axis_names)
        return context.mesh, None if by_hand else context.mesh._flat_devices_tuple
    mesh = custom_partitioning.mesh_lib.thread_resources.env.physical_mesh
    if not isinstance(context, sharding_impls.ShardingContext):
        return mesh, None
    if context.abstract_mesh is not None:
        mesh = Mesh(np.array(context.device_assignment).reshape(context.abstract_mesh.axis_sizes), context.abstract_mesh.axis_names)
    return mesh, context.device_assignment


def _site(ctx, call, mesh, devices, partition, decode_shardings, in_tree, out_tree, static_args):
    def named(sharding, rank):
        if mesh.empty or not decode_shardings:
            return sharding_impls.GSPMDSharding(devices, sharding)
        spec = sharding_impls.parse_flatten_op_sharding(sharding, mesh)[0]
        return NamedSharding(mesh, sharding_impls.PartitionSpec(*spec, *[None] * (rank - len(spec))))

    def noted(*args):
        made = partition(*args)
        site().mesh = made[0]
        return made

    rule = custom_partitioning._ShardingCallbackInfo(None, noted, named, in_tree, out_tree, None, ctx.module_context, mesh, static_args)
    made = Site(rule, list(call.in_avals), list(call.out_avals))
    site = weakref.ref(made)
    _sites[made.number] = made
    ctx.module_context.add_keepalive(made)
    return made


def _ask(site, place, value):
    def tell(sharding):
        site.told[place] = sharding
        if all(s.is_known() for s in site.beside):
            raise Told

    key = xla_client.encode_inspect_sharding_callback(tell)
    site.kept.append(tell)
    op = hlo.CustomCallOp(
        [value.type], [value], call_target_name=ir.StringAttr.get("InspectSharding"), has_side_effect=ir.BoolAttr.get(True),
        api_version=mlir.i32_attr(1), called_computations=ir.ArrayAttr.get([]), backend_config=ir.StringAttr.get(key))
    op.attributes[_MARK] = mlir.i64_attr(site.number)


def _call_of(value):
    """The call whose result it is, perhaps with its layout said."""
    op = value.owner
    while op.name == "sdy.sharding_constraint":
        op = op.operands[0].owner
    return op


def _lower(ctx, *values, call, partition, decode_shardings, in_tree, out_tree, static_args, **_):
    mesh, devices = _mesh_of(ctx.module_context.axis_context)
    if partition is None or not devices or len(devices) == 1 or not call.out_avals:
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *values)
    results = mlir.core_call_lowering(ctx, *values, name="custom_partitioning", call_jaxpr=call)
    site = _site(ctx, call, mesh, devices, partition, decode_shardings, in_tree, out_tree, static_args)
    _call_of(results[0]).attributes[_MARK] = mlir.i64_attr(site.number)
    for place, value in enumerate([*values, *results]):
        _ask(site, place, value)
    return results


# --- What the rule gives ---


def _shape(aval):
    return xla_client.Shape.array_shape(np.dtype(aval.dtype), aval.shape)


def _ask_rule(site):
    """The module of each device's part, and the layouts of arguments and results that it is for."""
    count, several = len(site.in_avals), len(site.out_avals) > 1
    shapes, told = [_shape(a) for a in (*site.in_avals, *site.out_avals)], [site.told[i] for i in range(len(site.told))]
    results = shapes[count:], told[count:]
    result_shape = xla_client.Shape.tuple_shape(results[0]) if several else results[0][0]
    result = xla_client.HloSharding.tuple_sharding(result_shape, results[1]) if several else results[1][0]
    key = str(id(site.rule)).encode()
    custom_partitioning._sharding_callbacks[key] = site.rule
    code, in_shardings, out_sharding = custom_partitioning._custom_partitioning_partition(shapes[:count], told[:count], result_shape, result, key)
    return code, in_shardings, out_sharding.tuple_elements() if several else [out_sharding]


def _layouts(site, shardings, avals):
    specs = [sharding_impls.parse_flatten_op_sharding(s, site.mesh)[0] for s in shardings]
    return sharding_impls.SdyArrayList(tuple(NamedSharding(site.mesh, spec)._to_sdy_sharding(a.ndim) for spec, a in zip(specs, avals))).build({})


def _add_manual(module, site, like):
    """A function of the module that takes and gives what the function `like` does, and is a manual computation. Its name."""
    code, in_shardings, out_shardings = _ask_rule(site)
    table = ir.SymbolTable(module.operation)
    local = mlir.merge_mlir_modules(module, "partitioned_part", ir.Module.parse(code, module.context), table)
    body = table[local].type
    with ir.Location.unknown(module.context), ir.InsertionPoint(module.body):
        made = func.FuncOp("partitioned", like.type, visibility="private")
        with ir.InsertionPoint(made.add_entry_block()):
            manual = sdy.ManualComputationOp(
                like.type.results, list(made.arguments), _layouts(site, in_shardings, site.in_avals), _layouts(site, out_shardings, site.out_avals),
                sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in site.mesh.axis_names]))
            block = ir.Block.create_at_start(manual.body, body.inputs, [ir.Location.unknown()] * len(body.inputs))
            with ir.InsertionPoint(block):
                sdy.ReturnOp(func.CallOp(body.results, ir.FlatSymbolRefAttr.get(local), list(block.arguments)).results)
            func.ReturnOp(manual.results)
    return table.insert(made).value


# --- Compiling ---


def _operations(module):
    """All of them, functions' and regions' alike."""
    rest = [module.operation]
    while rest:
        op = rest.pop()
        yield op
        rest.extend(reversed([inner.operation for region in op.regions for block in region for inner in block]))


def _is_question(op):
    return op.name == "stablehlo.custom_call" and ir.StringAttr(op.attributes["call_target_name"]).value == "InspectSharding"


def _sites_of(module):
    marked = [op for op in _operations(module) if op.name == "func.call" and _MARK in op.attributes]
    sites = [_sites.get(ir.IntegerAttr(op.attributes[_MARK]).value) for op in marked]
    return {op: site for op, site in zip(marked, sites) if site is not None}


def _ask_plugin(compile, backend, module, devices, options, sites):
    asked = ir.Module.parse(module.operation.get_asm(binary=True), module.context)
    for op in [op for op in _operations(asked) if _is_question(op) and _MARK not in op.attributes]:
        op.erase()  # the user's own: they are told once, of what is compiled
    for site in sites:
        site.told.clear()
        site.beside = sites
    try:
        compile(backend, asked, devices, options, [])
    except _jax.JaxRuntimeError:
        if not all(site.is_known() for site in sites):
            raise
    finally:
        for site in sites:
            site.beside = []


def _partition(compile, backend, module, devices, options):
    """Puts the manual computations in the place of the calls."""
    calls = _sites_of(module)
    if not calls:
        return
    _ask_plugin(compile, backend, module, devices, options, list(calls.values()))
    for op in [op for op in _operations(module) if _is_question(op) and _MARK in op.attributes]:
        op.erase()
    for op, site in calls.items():
        if site.is_known() and not any(s.is_manual() for s in site.told.values()):
            like = ir.SymbolTable(module.operation)[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(_add_manual(module, site, like), module.context)
    passmanager.PassManager.parse("builtin.module(sdy-lift-inlined-meshes)").run(module.operation)


def register(platform):
    primitive = custom_partitioning.custom_partitioning_p
    others, compile = mlir._lowerings[primitive], compiler.backend_compile_and_load

    def lower(ctx, *args, **params):
        ours = tuple(ctx.module_context.platforms) == (platform,)
        return _lower(ctx, *args, **params) if ours else others.rule(ctx, *args, **params)

    def compile_and_load(backend, module, executable_devices, options, host_callbacks):
        if _sites and backend.platform == platform:
            with module.context:
                _partition(compile, backend, module, executable_devices, options)
        return compile(backend, module, executable_devices, options, host_callbacks)

    mlir.register_lowering(primitive, lower, cacheable=False)
    compiler.backend_compile_and_load = compile_and_load
