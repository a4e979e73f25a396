/* sharding_constraint: T[d..] -> T[d..]         the operand, laid out on the mesh by the spec; a dimension `?` stays open
   Parameters: mesh; specs: one, which may have a priority, P(data)p1: layouts of lower numbers go through the program first. If a shard_map around it has left axes of these names automatic, the mesh's axes are those;
   otherwise they are new ones.
   Errors: a spec with more entries than the operand has dimensions; an axis name that is in scope and not automatic; some of the
   axes automatic, and others not.
   Linear: the cotangent is laid out as the value is.
   The value stays the same: the partitioner (partition.c) changes layouts here, and carries the layout to the operations before
   and after it (propagate.c). */
#include "mesh/constraint.h"

#include "axle/transform.h"
#include "mesh/shard_map.h"
#include "mesh/sharding.h"
#include "mesh/shardy.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "prim/rules.h"

bool ax_constraint_is_around(const ax_constraint_params *params, const ax_mesh *axes) {
  return params->mesh.count > 0 ? ax_mesh_is_around(&params->mesh, axes) : ax_manual_axes(axes) != ax_all_axes(axes);
}

static ax_status infer(const ax_infer_args *args) {
  const ax_constraint_params *params = args->params;
  ax_type block;
  if (params->specs.count != 1) return ax_error(AX_INVALID_ARGUMENT, "%u specs, not 1", params->specs.count);
  AX_TRY(ax_mesh_check(&params->mesh));
  const bool around = ax_mesh_is_around(&params->mesh, args->axes);
  for (uint32_t i = 0; i < params->mesh.count && !around; i++) AX_TRY(ax_mesh_check_new(&params->mesh.axis[i], args->axes));
  AX_TRY(ax_shard_padded(&args->in[0], &params->specs.v[0], &params->mesh, &block));
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_value bind(const ax_constraint_params *params, ax_value x) {
  return ax_bind1(&ax_prim_sharding_constraint, params, &x, 1);
}

static void transpose(const ax_transpose_args *args) { args->out[0] = bind(args->eqn->params, args->cotangent[0]); }

/* The batch dimension is cut by the axes that split the batch (vmap's spmd_axis_name), as far as the mesh has them. If there are
   none, the dimension stays open. */
static void batch(const ax_batch_args *args) {
  ax_constraint_params params = *(const ax_constraint_params *)args->eqn->params;
  const ax_spec *old = &params.specs.v[0];
  ax_spec spec = {.priority = old->priority};
  uint32_t at = (uint32_t)args->in_dim[0];
  if (at >= AX_MAX_RANK || (old->rank > at && old->rank == AX_MAX_RANK)) {
    ax_reject(args->eqn->prim, "the spec would have more than %d entries", AX_MAX_RANK);
    return;
  }
  for (uint32_t d = 0; d < old->rank; d++) {
    uint32_t to = d < at ? d : d + 1;
    spec.open |= (uint16_t)((old->open >> d & 1u) << to);
    spec.count[to] = old->count[d];
    for (uint32_t i = 0; i < old->count[d]; i++) spec.axis[to][i] = old->axis[d][i];
    spec.rank = to + 1;
  }
  const ax_axes *split = ax_batching_here().split;
  for (uint32_t i = 0; split != NULL && i < split->count; i++) {
    const int axis = ax_mesh_find(&params.mesh, split->name[i]);
    if (axis < 0 || (ax_spec_set(&spec) >> axis & 1) != 0) continue;
    spec.axis[at][spec.count[at]++] = (uint8_t)axis;
  }
  if (spec.count[at] == 0) spec.open |= (uint16_t)(1u << at);
  if (spec.rank <= at) spec.rank = at + 1;
  params.specs.v = &spec;
  args->out[0] = bind(&params, args->in[0]);
  args->out_dim[0] = args->in_dim[0];
}

static const ax_param params[] = {
    {"mesh", AX_PARAM_MESH, offsetof(ax_constraint_params, mesh)},
    {"specs", AX_PARAM_SPECS, offsetof(ax_constraint_params, specs)},
};

const ax_prim ax_prim_sharding_constraint = {
    .name = "sharding_constraint",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, ax_constraint_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = ax_eval_same,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_pointwise,
    .lower = ax_lower_same, .complex = ax_complex_whole, .keys = ax_keys_whole,
    .hlo = ax_constraint_hlo,
};

/* --- The functions --- */

/* Drops the entries `_` at the end of a spec, so that equal layouts have equal specs and equal programs are found to be equal. */
static void shorten(ax_spec *spec, uint32_t rank) {
  while (spec->rank > 0 && spec->rank <= rank && spec->count[spec->rank - 1] == 0 && (spec->open >> (spec->rank - 1) & 1) == 0)
    spec->rank--;
}

/* Inside a shard_map that leaves some axes automatic, the caller may give its whole mesh. Then the axes that are taken by hand are
   dropped from the constraint's mesh, except those that the spec names: these are an error, which binding reports. */
static void drop_manual_axes(ax_mesh *mesh, ax_spec *spec) {
  const ax_mesh *axes = &ax_builder_current()->axes, whole = *mesh;
  bool automatic = false;
  for (uint32_t i = 0; i < whole.count; i++)
    automatic = automatic || (ax_mesh_find(axes, whole.axis[i].name) >= 0 && ax_mesh_find_manual(axes, whole.axis[i].name) < 0);
  if (!automatic) return;
  mesh->count = 0;
  for (uint32_t i = 0; i < whole.count; i++) {
    if (ax_mesh_find_manual(axes, whole.axis[i].name) >= 0 && (ax_spec_set(spec) >> i & 1) == 0) continue;
    mesh->axis[mesh->count++] = whole.axis[i];
  }
  ax_spec_renumber(spec, &whole, mesh);
}

ax_value ax_lay_out(ax_value x, const ax_mesh *mesh, const ax_spec *spec) {
  ax_spec own = *spec;
  ax_constraint_params params = {.mesh = ax_mesh_plain(mesh), .specs = {1, &own}};
  drop_manual_axes(&params.mesh, &own);
  shorten(&own, ax_typeof(x).rank);
  return bind(&params, x);
}

ax_value ax_with_sharding(ax_value x, const ax_mesh *mesh, const char *spec) {
  static const char name[] = "with_sharding";
  ax_spec parsed;
  if (!ax_check_operands(name, &x, 1)) return ax_poison;
  if (mesh == NULL || spec == NULL) return ax_reject_as(name, "there is no %s", mesh == NULL ? "mesh" : "spec");
  ax_status status = ax_mesh_check(mesh);
  if (status == AX_OK) status = ax_spec_parse_open(spec, mesh, &parsed);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", name));
    return ax_poison;
  }
  return ax_lay_out(x, mesh, &parsed);
}

/* The mesh of input or result i: that of its array, or the one that the specs are over. */
static const ax_mesh *mesh_of(const ax_given *g, const ax_program *program, const ax_mesh *mesh, uint32_t i) {
  return g->like != NULL && i < program->in_count && g->like[i].mesh != NULL ? g->like[i].mesh : mesh;
}

static ax_value constrained(const ax_mesh *mesh, const ax_given *g, uint32_t i, ax_value x) {
  if (g->sayings[i] != AX_SAYS_SPEC || ax_failed()) return x;
  return bind(&(ax_constraint_params){.mesh = ax_mesh_plain(mesh), .specs = {1, &g->specs[i]}}, x);
}

ax_status ax_program_given(const ax_program *program, const ax_mesh *mesh, const ax_given *g, ax_program **made) {
  const uint32_t in_count = program->in_count, out_count = program->out_count;
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  ax_value *in = ax_trace_alloc(in_count * sizeof in[0]), *out = ax_trace_alloc(out_count * sizeof out[0]);
  for (uint32_t i = 0; in != NULL && i < in_count; i++) in[i] = ax_builder_input(&builder, &program->types[i]);
  for (uint32_t i = 0; in != NULL && i < in_count; i++) in[i] = constrained(mesh_of(g, program, mesh, i), g, i, in[i]);
  if (!ax_failed()) ax_call(program, AX_LIST(in_count, in), AX_LIST(out_count, out));
  for (uint32_t k = 0; !ax_failed() && k < out_count; k++) out[k] = constrained(mesh, g, in_count + k, out[k]);
  return ax_builder_finish(&builder, out, out != NULL ? out_count : 0, made, NULL, NULL);
}

/* Checks all specs before anything is built, so that messages name the argument or result by its number. Then shortens them. */
static ax_status check(const ax_program *program, const ax_mesh *mesh, const ax_given *g) {
  for (uint32_t i = 0; i < program->in_count + program->out_count; i++) {
    bool is_in = i < program->in_count;
    uint32_t number = is_in ? i : i - program->in_count;
    const ax_type *type = &program->types[is_in ? i : program->outs[number]];
    ax_type block;
    ax_status status =
        g->sayings[i] != AX_SAYS_SPEC ? AX_OK : ax_shard_padded(type, &g->specs[i], mesh_of(g, program, mesh, i), &block);
    if (status != AX_OK) return ax_error_context(status, "with_shardings: %s %u: ", is_in ? "argument" : "result", number);
    shorten(&g->specs[i], type->rank);
  }
  return AX_OK;
}

/* Gives each input that the text of specs leaves open the spec of its array, if `like` has one. Entries of `like` that are not used
   are emptied, so that g->like shows which specs are over their array's own mesh. */
static void fill_in(ax_given *g, ax_array_layout *like, uint32_t in_count) {
  for (uint32_t i = 0; i < in_count; i++) {
    if (g->sayings[i] != AX_SAYS_NOTHING) like[i].mesh = NULL;
    if (like[i].mesh == NULL) continue;
    g->specs[i] = *like[i].spec;
    g->sayings[i] = AX_SAYS_SPEC;
  }
  g->like = like;
}

static ax_status add_constraints(const ax_program *program, const ax_mesh *mesh, const char *specs,
                                 const ax_process_layout *processes, ax_given *g, ax_array_layout *like, ax_program **out) {
  const uint32_t in_count = program->in_count, out_count = program->out_count;
  if (g->specs == NULL || g->sayings == NULL || like == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < in_count + out_count; i++) g->sayings[i] = AX_SAYS_NOTHING;
  if (mesh != NULL) AX_TRY(ax_parse_specs(specs, in_count, out_count, mesh, g->specs, g->specs + in_count, g->sayings));
  fill_in(g, like, in_count);
  AX_TRY(check(program, mesh, g));
  if (mesh != NULL) AX_TRY(ax_given_choose(program, mesh, processes, g));
  return ax_program_given(program, mesh, g, out);
}

ax_status ax_program_laid_like(const ax_program *program, const ax_mesh *mesh, const char *specs,
                               const ax_process_layout *processes, const ax_array_layout *like, ax_program **out) {
  *out = NULL;
  if (mesh != NULL) AX_TRY(ax_mesh_check(mesh));
  const size_t count = (size_t)program->in_count + program->out_count;
  ax_given g = {ax_calloc(count + 1, sizeof g.specs[0]), ax_calloc(count + 1, sizeof g.sayings[0]), NULL};
  ax_array_layout *own = ax_calloc((size_t)program->in_count + 1, sizeof own[0]);
  for (uint32_t i = 0; own != NULL && like != NULL && i < program->in_count; i++) own[i] = like[i];
  ax_status status = add_constraints(program, mesh, specs, processes, &g, own, out);
  ax_free(g.specs);
  ax_free(g.sayings);
  ax_free(own);
  return status;
}

ax_status ax_program_with_shardings(const ax_program *program, const ax_mesh *mesh, const char *specs, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(mesh, "mesh"));
  return ax_program_laid_like(program, mesh, specs, NULL, NULL, out);
}
