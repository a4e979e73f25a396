/* kernel_call: C.., T.. -> R..       runs programs on the cores of each device, over memory: bodies[i]: (C.., refs of T.., of R..,
                                      of scratch) -> ()

     operand T[d..] --block of the grid's point--> ref --body--> ref --> block of the result R[e..]

   Parameters: name; consts: so many operands are values that bodies captured; cores: of each body, the type of core that it runs
   on; core_axes: how many axes of cores each body's environment ends with; threads: those of them whose cores have their memory
   together; grid, semantics: its sizes, and 1 for dimensions whose points may go on at once; blocks: the refs of operands and
   results; blocked, index_maps, block_shapes: which of them are cut into blocks, where the block of a point of the grid is, in
   blocks, and its shape; outs; scratch, arrivals: as run_scoped's; scratch_cores: the type of core that has it, "each" or "device";
   aliases (operand, result) that are one memory; target: what there is of memory; metadata, compiler_params: carried along;
   interpret; debug; collective_id: whose barrier semaphore; flops, bytes, transcendentals: estimates; bodies.
   One body: it runs once for each point of the grid. Several bodies: all at once on each device, over operands and results as they
   are, with no grid. A body's environment is the equation's, all of its axes unchecked, and then axes of cores.
   Errors: bodies that take other than values captured and refs, or give results; counts that do not match; blocks that do not fit
   their operands; an index map that takes or gives other than s32[] for each dimension; core axes of one name and two sizes;
   aliases of other types; collectives, shard_maps or kernels in a body; program_id of a dimension that the grid has not; a slice of
   a ref that is known to leave it; unreduced operands; memory, or semaphores, beyond what the target has.
   Varying: results vary over what any operand varies over, and over the axes that bodies name. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/kernel_call.h"
#include "kernel/scratch.h"
#include "kernel/step.h"
#include "kernel/target.h"
#include "prim/prims.h"
#include "prim/region.h"

static uint32_t count_outs(const void *params) { return ((const ax_kernel_params *)params)->outs.count; }

/* --- What bodies do outside --- */

typedef struct seen {
  ax_axis_set devices;   /* the axes of devices */
  ax_axis_set exchanged; /* those over which it signals or copies */
  bool host;             /* it calls the host */
} seen;

static void look(const ax_program *program, seen *s) {
  const ax_program *nested;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_axis_set set;
    const ax_core_params *to = ax_step_target(eqn);
    if (to != NULL && to->logical) s->exchanged |= s->devices;
    else if (to != NULL && ax_axes_resolve(&to->axes, &program->axes, &set) == AX_OK) s->exchanged |= set & s->devices;
    s->host = s->host || (eqn->prim->kind == AX_COLLECTIVE && (eqn->prim->effects & AX_EFFECT_STATE) != 0);
    for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++) look(nested, s);
  }
}

static ax_axis_set devices_of(const ax_kernel_params *params, uint32_t b) {
  return ((ax_axis_set)1 << (params->bodies.v[b]->axes.count - (uint32_t)params->core_axes.v[b])) - 1;
}

static seen look_at_all(const ax_kernel_params *params) {
  seen s = {0};
  for (uint32_t b = 0; b < params->bodies.count; b++) {
    s.devices = devices_of(params, b);
    look(params->bodies.v[b], &s);
  }
  return s;
}

ax_axis_set ax_kernel_exchanges(const ax_kernel_params *params) { return look_at_all(params).exchanged; }

static uint32_t outside(const void *params, ax_axis_set *axes) {
  const seen s = look_at_all(params);
  *axes = s.exchanged;
  return (s.exchanged != 0 ? AX_EFFECT_EXCHANGE : 0) | (s.host ? AX_EFFECT_STATE : 0);
}

ax_axis_set ax_kernel_named(const ax_kernel_params *params) {
  ax_axis_set named = look_at_all(params).exchanged;
  for (uint32_t b = 0; b < params->bodies.count; b++) named |= params->bodies.v[b]->named & devices_of(params, b);
  return named;
}

/* --- infer: the parameters --- */

/* "operand 2", "result 0": of a number among both. */
static const char *side(const ax_infer_args *args, uint32_t *i) {
  const ax_kernel_params *params = args->params;
  uint32_t operands = args->in_count - (uint32_t)params->consts;
  if (*i < operands) return "operand";
  *i -= operands;
  return "result";
}

static const ax_type *whole_of(const ax_infer_args *args, uint32_t i) {
  const ax_kernel_params *params = args->params;
  uint32_t operands = args->in_count - (uint32_t)params->consts;
  return i < operands ? &args->in[params->consts + i] : &params->outs.v[i - operands];
}

static ax_status check_counts(const ax_infer_args *args) {
  const ax_kernel_params *params = args->params;
  if (params->consts < 0 || params->consts > args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "%lld captured values of %u operands", (long long)params->consts, args->in_count);
  if (params->bodies.count == 0 || params->bodies.count > AX_MAX_AXES)
    return ax_error(AX_INVALID_ARGUMENT, "%u bodies; there are 1 to %d", params->bodies.count, AX_MAX_AXES);
  if (params->cores.count != params->bodies.count || params->core_axes.count != params->bodies.count)
    return ax_error(AX_INVALID_ARGUMENT, "%u core types and %u numbers of core axes for %u bodies", params->cores.count,
                    params->core_axes.count, params->bodies.count);
  uint32_t both = args->in_count - (uint32_t)params->consts + params->outs.count;
  if (params->blocks.count != both)
    return ax_error(AX_INVALID_ARGUMENT, "%u blocks for %u operands and results", params->blocks.count, both);
  if (params->bodies.count > 1 && (params->grid.count > 0 || params->blocked.count > 0))
    return ax_error(AX_INVALID_ARGUMENT, "a grid or blocks, and %u bodies: several take operands as they are",
                    params->bodies.count);
  if (params->semantics.count != 0 && params->semantics.count != params->grid.count)
    return ax_error(AX_INVALID_ARGUMENT, "%u semantics for a grid of %u dimensions", params->semantics.count, params->grid.count);
  for (uint32_t d = 0; d < params->grid.count; d++)
    if (params->grid.v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u of the grid is %lld", d, (long long)params->grid.v[d]);
  for (uint32_t d = 0; d < params->semantics.count; d++)
    if (params->semantics.v[d] != AX_ARBITRARY && params->semantics.v[d] != AX_PARALLEL)
      return ax_error(AX_INVALID_ARGUMENT, "the semantics of dimension %u of the grid are %lld", d,
                      (long long)params->semantics.v[d]);
  return AX_OK;
}

static ax_status check_results(const ax_infer_args *args) {
  static const ax_mesh none;
  const ax_types *outs = &((const ax_kernel_params *)args->params)->outs;
  for (uint32_t k = 0; k < outs->count; k++) {
    ax_status status = ax_type_check(&outs->v[k], &none);
    if (status != AX_OK) return ax_error_context(status, "result %u: ", k);
    if (outs->v[k].form != AX_ARRAY)
      return ax_error(AX_INVALID_ARGUMENT, "result %u is %s, not an array", k, ax_type_string(&outs->v[k], NULL));
  }
  return AX_OK;
}

static ax_status check_aliases(const ax_infer_args *args) {
  const ax_kernel_params *params = args->params;
  int64_t operands = args->in_count - params->consts;
  for (uint32_t a = 0; a < params->aliases.count; a++) {
    int64_t from = params->aliases.v[a][0], to = params->aliases.v[a][1];
    if (from < 0 || from >= operands || to < 0 || to >= params->outs.count)
      return ax_error(AX_INVALID_ARGUMENT, "alias %u is of operand %lld and result %lld; there are %lld and %u", a, (long long)from,
                      (long long)to, (long long)operands, params->outs.count);
    for (uint32_t b = 0; b < a; b++)
      if (params->aliases.v[b][0] == from || params->aliases.v[b][1] == to)
        return ax_error(AX_INVALID_ARGUMENT, "aliases %u and %u are of one %s", b, a,
                        params->aliases.v[b][0] == from ? "operand" : "result");
    const ax_type *in = whole_of(args, (uint32_t)from), *out = &params->outs.v[to];
    if (in->dtype != out->dtype || !ax_same_shape(in, out))
      return ax_error(AX_INVALID_ARGUMENT, "operand %lld is %s and result %lld is %s: they cannot be one memory", (long long)from,
                      ax_type_string(in, args->axes), (long long)to, ax_type_string(out, args->axes));
  }
  return AX_OK;
}

/* --- infer: blocks --- */

/* A captured value as a map takes it. */
static ax_status check_captured(const ax_infer_args *args, const ax_program *map, uint32_t number) {
  const ax_type *type = &map->types[((const ax_kernel_params *)args->params)->grid.count + number], *given = &args->in[number];
  if (type->form == given->form && type->dtype == given->dtype && ax_same_shape(type, given)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "takes %s, but the captured value %u is %s", ax_type_string(type, &map->axes), number,
                  ax_type_string(given, args->axes));
}

static ax_status check_index_map(const ax_infer_args *args, const ax_program *map, uint32_t rank) {
  const ax_kernel_params *params = args->params;
  ax_status status = AX_OK;
  const uint32_t consts = ax_map_takes_consts(params, map) ? (uint32_t)params->consts : 0;
  if (map->in_count != params->grid.count + consts || map->out_count != rank)
    status = ax_error(AX_INVALID_ARGUMENT, "takes %u values and gives %u, not %u, for the grid, and %u, for the dimensions",
                      map->in_count, map->out_count, params->grid.count, rank);
  for (uint32_t i = 0; status == AX_OK && i < map->in_count + map->out_count; i++) {
    bool in = i < map->in_count;
    if (in && i >= params->grid.count) {
      status = check_captured(args, map, i - params->grid.count);
      continue;
    }
    uint32_t number = in ? i : i - map->in_count;
    const ax_type *type = &map->types[in ? i : map->outs[number]];
    if (type->form != AX_ARRAY || type->dtype != AX_S32 || type->rank != 0)
      status = ax_error(AX_INVALID_ARGUMENT, "%s %u is %s, not s32[]", in ? "takes what" : "result", number,
                        ax_type_string(type, &map->axes));
  }
  if (status == AX_OK && map->effects != 0) status = ax_error(AX_INVALID_ARGUMENT, "does more than compute: it has effects");
  return status;
}

/* The ref has the dimensions of the block but some of size 1: each is the first that it may be. */
static bool is_squeezed(const ax_type *ref, const ax_type *block) {
  uint32_t d = 0;
  for (uint32_t b = 0; b < block->rank; b++) {
    if (d < ref->rank && ref->dims[d] == block->dims[b]) d++;
    else if (block->dims[b] != 1) return false;
  }
  return d == ref->rank;
}

static ax_status check_block(const ax_infer_args *args, uint32_t i, int64_t blocked) {
  const ax_kernel_params *params = args->params;
  const ax_type *ref = &params->blocks.v[i], *whole = whole_of(args, i);
  if (ref->form != AX_REF) return ax_error(AX_INVALID_ARGUMENT, "its block is %s, not a ref", ax_type_string(ref, NULL));
  if (ref->space == AX_SPACE_REGISTERS)
    return ax_error(AX_INVALID_ARGUMENT, "its block is %s: registers are scratch", ax_type_string(ref, NULL));
  if (blocked < 0) {
    if (ref->dtype == whole->dtype && ax_same_shape(ref, whole)) return AX_OK;
    return ax_error(AX_INVALID_ARGUMENT, "it is %s and has no blocks, but bodies get %s", ax_type_string(whole, args->axes),
                    ax_type_string(ref, NULL));
  }
  const ax_type *shape = &params->block_shapes.v[blocked];
  int64_t map = params->blocked.v[blocked][1];
  if (shape->form != AX_ARRAY || shape->dtype != whole->dtype || ref->dtype != whole->dtype || shape->rank != whole->rank)
    return ax_error(AX_INVALID_ARGUMENT, "blocks %s, of which bodies get %s, are not of %s", ax_type_string(shape, NULL),
                    ax_type_string(ref, NULL), ax_type_string(whole, args->axes));
  for (uint32_t d = 0; d < shape->rank; d++)
    if (shape->dims[d] < 1)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u of its blocks is %lld", d, (long long)shape->dims[d]);
  if (ref->rank > shape->rank || ax_type_elems(ref) != ax_type_elems(shape) || !is_squeezed(ref, shape))
    return ax_error(AX_INVALID_ARGUMENT, "bodies get %s, which is no block %s", ax_type_string(ref, NULL),
                    ax_type_string(shape, NULL));
  if (ref->space != AX_SPACE_VMEM && ref->space != AX_SPACE_SMEM)
    return ax_error(AX_INVALID_ARGUMENT, "bodies get %s: what is pinned outside of vmem and smem has no blocks",
                    ax_type_string(ref, NULL));
  if (map < 0 || map >= params->index_maps.count)
    return ax_error(AX_INVALID_ARGUMENT, "there is no index map %lld", (long long)map);
  ax_status status = check_index_map(args, params->index_maps.v[map], shape->rank);
  return status == AX_OK ? AX_OK : ax_error_context(status, "its index map ");
}

static ax_status check_blocks(const ax_infer_args *args) {
  const ax_kernel_params *params = args->params;
  if (params->block_shapes.count != params->blocked.count)
    return ax_error(AX_INVALID_ARGUMENT, "%u shapes for %u blocks", params->block_shapes.count, params->blocked.count);
  uint32_t next = 0;
  for (uint32_t i = 0; i < params->blocks.count; i++) {
    bool blocked = next < params->blocked.count && params->blocked.v[next][0] == i;
    ax_status status = check_block(args, i, blocked ? (int64_t)next : -1);
    uint32_t number = i;
    if (status != AX_OK) {
      const char *what = side(args, &number);
      return ax_error_context(status, "%s %u: ", what, number);
    }
    next += blocked;
  }
  if (next == params->blocked.count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "blocks of number %lld: there is none, or not in this order",
                  (long long)params->blocked.v[next][0]);
}

/* --- infer: scratch and cores --- */

static bool names_core(const ax_kernel_params *params, const char *name) {
  for (uint32_t b = 0; b < params->cores.count; b++)
    if (strcmp(params->cores.name[b], name) == 0) return true;
  return strcmp(name, AX_SCRATCH_EACH) == 0 || strcmp(name, AX_SCRATCH_DEVICE) == 0;
}

static ax_status check_scratch(const ax_kernel_params *params) {
  AX_TRY(ax_scratch_check(&params->scratch, &params->arrivals));
  if (params->scratch_cores.count == 0) return AX_OK;
  if (params->scratch_cores.count != params->scratch.count)
    return ax_error(AX_INVALID_ARGUMENT, "%u core types for %u scratch", params->scratch_cores.count, params->scratch.count);
  for (uint32_t i = 0; i < params->scratch.count; i++)
    if (!names_core(params, params->scratch_cores.name[i]))
      return ax_error(AX_INVALID_ARGUMENT, "scratch %u is of the core type \"%s\", which no body runs on", i,
                      params->scratch_cores.name[i]);
  return AX_OK;
}

/* Says that `axes` begins with the axes around the kernel. These are unchecked in a kernel, since no value there is typed to
   spread. */
static bool begins_as(const ax_mesh *axes, const ax_mesh *around) {
  for (uint32_t i = 0; i < around->count; i++) {
    const ax_axis *mine = &axes->axis[i], *other = &around->axis[i];
    if (strcmp(mine->name, other->name) != 0 || mine->size != other->size || mine->automatic != other->automatic ||
        mine->unchecked == other->automatic)
      return false;
  }
  return true;
}

static ax_status check_cores(const ax_infer_args *args, uint32_t b) {
  const ax_kernel_params *params = args->params;
  const ax_mesh *axes = &params->bodies.v[b]->axes;
  int64_t cores = params->core_axes.v[b];
  if (cores < 0 || axes->count != args->axes->count + cores || !begins_as(axes, args->axes))
    return ax_error(AX_INVALID_ARGUMENT, "its axes are %s; they are to be those around, %s, unchecked, and %lld of cores",
                    ax_bound_string(axes), ax_bound_string(args->axes), (long long)cores);
  for (uint32_t i = args->axes->count; i < axes->count; i++) {
    if (!axes->axis[i].unchecked || axes->axis[i].automatic)
      return ax_error(AX_INVALID_ARGUMENT, "its core axis \"%s\" is not unchecked", axes->axis[i].name);
    for (uint32_t o = 0; o < b; o++) {
      const ax_mesh *other = &params->bodies.v[o]->axes;
      int at = ax_mesh_find(other, axes->axis[i].name);
      if (at >= 0 && other->axis[at].size != axes->axis[i].size)
        return ax_error(AX_INVALID_ARGUMENT, "conflicting size for axis %s: %lld and %lld", axes->axis[i].name,
                        (long long)other->axis[at].size, (long long)axes->axis[i].size);
    }
  }
  return AX_OK;
}

static ax_status check_threads(const ax_infer_args *args) {
  const ax_kernel_params *params = args->params;
  for (uint32_t t = 0; t < params->threads.count; t++) {
    bool found = false;
    for (uint32_t b = 0; b < params->bodies.count && !found; b++)
      found = ax_mesh_find(&params->bodies.v[b]->axes, params->threads.name[t]) >= (int)args->axes->count;
    if (!found)
      return ax_error(AX_INVALID_ARGUMENT, "no body has the core axis \"%s\", which is to be one of threads",
                      params->threads.name[t]);
  }
  return AX_OK;
}

/* --- infer: bodies --- */

static ax_status check_input(const ax_infer_args *args, const ax_program *body, uint32_t i) {
  const ax_kernel_params *params = args->params;
  uint32_t consts = (uint32_t)params->consts, both = consts + params->blocks.count;
  const ax_type *type = &body->types[i];
  if (i < consts) {
    ax_type plain = args->in[i];
    plain.spread = (ax_spread){0};
    return ax_region_check_type(&plain, type, &body->axes, "captured value", i, "is", "it takes");
  }
  if (type->form == AX_ARRAY)
    return ax_error(AX_INVALID_ARGUMENT, "kernels take refs, but input %u of it is %s", i, ax_type_string(type, &body->axes));
  if (i >= both)
    return ax_region_check_type(&params->scratch.v[i - both], type, &body->axes, "scratch", i - both, "is", "it takes");
  ax_type wanted = params->blocks.v[i - consts];
  uint32_t number = i - consts;
  if (params->bodies.count > 1) wanted.space = type->space; /* each mesh has a space of its own for them */
  const char *what = side(args, &number);
  return ax_region_check_type(&wanted, type, &body->axes, what, number, "has", "it takes");
}

static ax_status refuse(const ax_eqn *eqn, const char *why) {
  return ax_error(AX_INVALID_ARGUMENT, "%s stands in it: %s", eqn->prim->name, why);
}

static ax_status check_program(const ax_infer_args *args, uint32_t grid, const ax_program *program);

/* grid: the dimensions that program_id may ask for. */
static ax_status check_eqn(const ax_infer_args *args, uint32_t grid, const ax_program *program, const ax_eqn *eqn) {
  const ax_program *nested;
  if (eqn->prim == args->prim) return refuse(eqn, "kernels hold no kernels");
  if (eqn->prim == &ax_prim_shard_map) return refuse(eqn, "a kernel is of one device");
  if ((eqn->prim->effects & (AX_EFFECT_EXCHANGE | AX_EFFECT_MESSAGE)) != 0)
    return refuse(eqn, "between devices kernels copy and signal");
  ax_step_check_args of = {.program = program, .eqn = eqn, .devices = args->axes->count, .grid = grid};
  if (eqn->prim->step != NULL && eqn->prim->step->check != NULL) AX_TRY(eqn->prim->step->check(&of));
  for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(check_program(args, of.grid, nested));
  return AX_OK;
}

static ax_status check_program(const ax_infer_args *args, uint32_t grid, const ax_program *program) {
  for (uint32_t i = 0; i < program->eqn_count; i++) AX_TRY(check_eqn(args, grid, program, &program->eqns[i]));
  return AX_OK;
}

static ax_status check_body(const ax_infer_args *args, uint32_t b) {
  const ax_kernel_params *params = args->params;
  const ax_program *body = params->bodies.v[b];
  AX_TRY(check_cores(args, b));
  uint32_t count = (uint32_t)params->consts + params->blocks.count + params->scratch.count;
  if (body->in_count != count)
    return ax_error(AX_INVALID_ARGUMENT,
                    "it takes %u operands; there are %lld captured values, %u refs of operands and results and %u scratch",
                    body->in_count, (long long)params->consts, params->blocks.count, params->scratch.count);
  if (body->out_count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "it gives %u results; a kernel stores its results, and gives none", body->out_count);
  for (uint32_t i = 0; i < count; i++) AX_TRY(check_input(args, body, i));
  return check_program(args, ((const ax_kernel_params *)args->params)->grid.count, body);
}

static ax_status infer(const ax_infer_args *args) {
  const ax_kernel_params *params = args->params;
  AX_TRY(check_counts(args));
  AX_TRY(check_results(args));
  AX_TRY(check_aliases(args));
  AX_TRY(check_blocks(args));
  AX_TRY(check_scratch(params));
  for (uint32_t b = 0; b < params->bodies.count; b++) {
    ax_status status = check_body(args, b);
    if (status == AX_OK) continue;
    return params->bodies.count > 1 ? ax_error_context(status, "body %u, of \"%s\": ", b, params->cores.name[b])
                                    : ax_error_context(status, "the body: ");
  }
  AX_TRY(check_threads(args));
  AX_TRY(ax_target_check(params));
  if (params->interpret && ax_kernel_plain(params) != AX_OK)
    return ax_error_context(AX_INVALID_ARGUMENT, "interpret runs a kernel as a plain program: ");
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = params->outs.v[k];
  return AX_OK;
}

static ax_status spread(const ax_infer_args *args) {
  ax_spread all = {0};
  for (uint32_t i = 0; i < args->in_count; i++) {
    const ax_spread *on = &args->in[i].spread;
    if (on->unreduced != 0)
      return ax_error(AX_INVALID_ARGUMENT, "operand %u is %s, unreduced over %s; %s", i, ax_type_string(&args->in[i], args->axes),
                      ax_axis_set_string(on->unreduced, args->axes), ax_reduce_advice(on->kind));
    ax_spread_meet(&all, on);
  }
  all.varying |= ax_kernel_named(args->params) & ax_checked_axes(args->axes);
  all.reduced &= ~all.varying;
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k].spread = all;
  return AX_OK;
}

/* --- differs --- */

static void differs(const ax_differs_args *args) {
  ax_axis_set all = ax_kernel_named(args->eqn->params);
  for (uint32_t i = 0; i < args->eqn->in_count; i++) all |= args->in[i];
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = all;
}

/* Links inputs of bodies to operands: captured values are the operands themselves, all others are refs; index maps take grid
   indices, and perhaps captured values behind them. */
static ax_region_link links(const ax_region_link_args *args) {
  const ax_kernel_params *params = args->eqn->params;
  const bool map = args->program < params->index_maps.count;
  if (map && !args->is_output && args->number >= params->grid.count)
    return ax_region_link_to(AX_LINK_SAME, args->number - params->grid.count);
  const bool captured = !map && !args->is_output && args->number < (uint32_t)params->consts;
  return captured ? ax_region_link_to(AX_LINK_SAME, args->number) : ax_region_link_own();
}

/* --- The record --- */

static const ax_param params[] = {{"name", AX_PARAM_TEXT, offsetof(ax_kernel_params, name)},
                                  {"consts", AX_PARAM_I64, offsetof(ax_kernel_params, consts)},
                                  {"cores", AX_PARAM_NAMES, offsetof(ax_kernel_params, cores)},
                                  {"core_axes", AX_PARAM_DIMS, offsetof(ax_kernel_params, core_axes)},
                                  {"threads", AX_PARAM_NAMES, offsetof(ax_kernel_params, threads)},
                                  {"grid", AX_PARAM_DIMS, offsetof(ax_kernel_params, grid)},
                                  {"semantics", AX_PARAM_DIMS, offsetof(ax_kernel_params, semantics)},
                                  {"blocks", AX_PARAM_TYPES, offsetof(ax_kernel_params, blocks)},
                                  {"blocked", AX_PARAM_PAIRS, offsetof(ax_kernel_params, blocked)},
                                  {"index_maps", AX_PARAM_PROGRAMS, offsetof(ax_kernel_params, index_maps)},
                                  {"block_shapes", AX_PARAM_TYPES, offsetof(ax_kernel_params, block_shapes)},
                                  {"outs", AX_PARAM_TYPES, offsetof(ax_kernel_params, outs)},
                                  {"scratch", AX_PARAM_TYPES, offsetof(ax_kernel_params, scratch)},
                                  {"arrivals", AX_PARAM_PAIRS, offsetof(ax_kernel_params, arrivals)},
                                  {"scratch_cores", AX_PARAM_NAMES, offsetof(ax_kernel_params, scratch_cores)},
                                  {"aliases", AX_PARAM_PAIRS, offsetof(ax_kernel_params, aliases)},
                                  {"target", AX_PARAM_TEXT, offsetof(ax_kernel_params, target)},
                                  {"metadata", AX_PARAM_TEXT, offsetof(ax_kernel_params, metadata)},
                                  {"compiler_params", AX_PARAM_TEXT, offsetof(ax_kernel_params, compiler_params)},
                                  {"interpret", AX_PARAM_BOOL, offsetof(ax_kernel_params, interpret)},
                                  {"debug", AX_PARAM_BOOL, offsetof(ax_kernel_params, debug)},
                                  {"collective_id", AX_PARAM_I64, offsetof(ax_kernel_params, collective_id)},
                                  {"flops", AX_PARAM_I64, offsetof(ax_kernel_params, flops)},
                                  {"bytes", AX_PARAM_I64, offsetof(ax_kernel_params, bytes)},
                                  {"transcendentals", AX_PARAM_I64, offsetof(ax_kernel_params, transcendentals)},
                                  {"bodies", AX_PARAM_PROGRAMS, offsetof(ax_kernel_params, bodies)}};

const ax_prim ax_prim_kernel_call = {
    .name = "kernel_call",
    .kind = AX_REGION,
    .runs = AX_RUNS_POINTS,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    .outside = outside,
    AX_PARAMS(params, ax_kernel_params),
    .infer = infer,
    .spread = spread,
    .eval = ax_kernel_call_eval,
    .differs = differs,
    .links = links,
    .jvp = ax_kernel_call_jvp,
    .linearize = ax_kernel_call_linearize,
    .transpose = ax_kernel_call_transpose,
    .batch = ax_kernel_call_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_kernel_call_prune,
    .shard = ax_shard_whole,
    .rename = ax_kernel_call_rename,
    .lower = ax_kernel_call_lower,
    .hlo = ax_kernel_call_hlo,
};
