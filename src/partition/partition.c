/* The partitioner: a program becomes one shard_map over its mesh.

     a = mul x x                                  shard_map[data=4] x w {
     b = shard_map[data=4] a w { body }             a = mul x x                    of blocks of x, as the body takes blocks of a
     c = add b b                            -->     .. body ..
                                                    c = add b b                    of blocks
                                                  }

   Propagation finds the layouts of values from those that shard_maps and sharding_constraints give, inputs included (propagate.c).
   An equation outside shard_maps runs on blocks if its operands or results are cut (operation.c); otherwise every device runs it on
   whole arrays. A value keeps its layout until an equation needs it in another one. Then collectives and slices, which show in the
   program, change the layout (reshard.h). Programs in control flow are rebuilt for the layouts that they take and give (rebuild.c).

   A shard_map may leave axes automatic (shard_map.c). The whole mesh has its mesh as any other. Propagation goes through such a
   shard_map and lays out the values in its body over the automatic axes; they go in and out as blocks over both kinds of axes
   (rebuild.c). A shard_map inside it that takes some of these axes by hand adds nothing to the mesh.

   The mesh has a level for each depth of shard_maps inside one another (whole_mesh.c). Along the axes of deeper levels, values of
   outer bodies are the same everywhere.

   If one of the shard_maps is unchecked, so is the resulting one. A result that differs over more axes than its spec names is then
   taken from the first device, as the unchecked shard_map alone would do. */
#include "partition/partition.h"

#include "partition/partitioner.h"
#include "mesh/sharding.h"
#include "prim/prims.h"
#include "prim/bind.h"

static ax_value input(const ax_partitioner *p, ax_builder *builder, const ax_type *whole, const ax_spec *spec) {
  ax_type block;
  ax_status status = ax_shard_type(whole, spec, &p->mesh, &block);
  if (status != AX_OK) ax_fail(status);
  block.spread.varying = ax_spec_set(spec) & ax_checked_axes(&p->mesh);
  return ax_failed() ? ax_poison : ax_builder_input(builder, &block);
}

/* The layout of an input or result: NULL, which is whole, if `spec` does not divide it. */
static const ax_spec *divided(const ax_partitioner *p, const ax_type *type, const ax_spec *spec) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (!ax_shard_divides(type, spec, &p->mesh, d)) return NULL;
  return spec;
}

/* The body in a trace of its own, and the layouts of its inputs and results. */
static ax_status make_body(ax_partitioner *p, const ax_program *program, ax_spec *in_specs, ax_spec *out_specs, ax_program **out) {
  const ax_scope outside = {0};
  ax_builder builder;
  ax_builder_begin(&builder, &p->mesh);
  ax_propagate(p, &outside, program);
  ax_held *held = ax_held_alloc(p, program);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  for (uint32_t i = 0; i < program->in_count && !ax_failed(); i++) {
    held[i].spec = divided(p, &program->types[i], ax_propagated_at(p, &outside, program, i));
    if (held[i].spec != NULL) in_specs[i] = *held[i].spec;
    held[i].value = input(p, &builder, &program->types[i], &in_specs[i]);
  }
  if (!ax_failed()) ax_rebuild(p, &outside, program, held);
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) {
    ax_held *result = &held[program->outs[k]];
    ax_held_combine(result);
    bool even = divided(p, result->type, result->spec) == result->spec;
    outs[k] = even ? result->value : ax_held_whole(result);
    if (even && result->spec != NULL) out_specs[k] = *result->spec;
  }
  return ax_builder_finish(&builder, outs, ax_failed() ? 0 : program->out_count, out, NULL, NULL);
}

/* The whole program: its inputs, one equation, its results. */
static ax_status wrap(ax_partitioner *p, const ax_program *program, ax_program *body, ax_spec *in_specs, ax_spec *out_specs,
                      ax_program **out) {
  ax_shard_map_params params = {.mesh = ax_mesh_plain(&p->mesh),
                                .unchecked = p->unchecked,
                                .in_specs = {program->in_count, in_specs},
                                .out_specs = {program->out_count, out_specs},
                                .body = body};
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  ax_value *in = ax_trace_alloc(program->in_count * sizeof in[0]);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++) in[i] = ax_builder_input(&builder, &program->types[i]);
  if (!ax_failed()) ax_bind(&ax_prim_shard_map, &params, in, program->in_count, outs, program->out_count);
  return ax_builder_finish(&builder, outs, outs != NULL ? program->out_count : 0, out, NULL, NULL);
}

static ax_status make(ax_partitioner *p, const ax_program *program, ax_program **out) {
  ax_program *body = NULL;
  AX_TRY(ax_whole_mesh_make(p));
  ax_spec *specs = ax_calloc((size_t)program->in_count + program->out_count + 1, sizeof specs[0]);
  if (specs == NULL) return ax_out_of_memory(0);
  ax_status status = make_body(p, program, specs, specs + program->in_count, &body);
  if (status == AX_OK) status = wrap(p, program, body, specs, specs + program->in_count, out);
  ax_program_release(body);
  ax_free(specs);
  return status;
}

static bool is_one_shard_map(const ax_program *program) {
  const ax_eqn *eqn = program->eqns;
  if (program->eqn_count != 1 || eqn->prim != &ax_prim_shard_map || eqn->in_count != program->in_count ||
      eqn->out_count != program->out_count)
    return false;
  const ax_mesh *mesh = &((const ax_shard_map_params *)eqn->params)->mesh;
  if (ax_manual_axes(mesh) != ax_all_axes(mesh)) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (eqn->in[i] != i) return false;
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (program->outs[k] != eqn->out + k) return false;
  return true;
}

static void deinit(ax_partitioner *p) {
  for (uint32_t i = 0; i < p->level_count; i++) {
    ax_free(p->levels[i].maps);
    ax_free(p->levels[i].cuts);
  }
  ax_free(p->levels);
  ax_factoring_deinit(&p->factoring);
  ax_memo_deinit(&p->memo);
  ax_arena_deinit(&p->arena);
}

/* Whether there is nothing to do: the program has no shard_map, or is a single one that takes its whole mesh by hand. */
static bool is_partitioned(const ax_partitioner *p, const ax_program *program) {
  if (p->ungroups) return !p->grouped;
  return p->level_count == 0 || (p->level_count == 1 && is_one_shard_map(program));
}

static ax_status partition(ax_partitioner *p, const ax_program *program, ax_program **out) {
  *out = NULL;
  ax_status status = ax_whole_mesh_find(p, program);
  if (status == AX_OK && is_partitioned(p, program)) *out = ax_program_retain((ax_program *)program);
  else if (status == AX_OK) status = make(p, program, out);
  deinit(p);
#ifndef NDEBUG
  if (status == AX_OK) status = ax_program_verify(*out);
  if (status != AX_OK) {
    ax_program_release(*out);
    *out = NULL;
  }
#endif
  return status;
}

static ax_status partition_whole(const ax_program *program, bool plain, ax_program **out) {
  ax_partitioner p = {.plain = plain};
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  if (program->axes.count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "partition: a per-device program, over the axes %s: put it in a shard_map",
                    ax_axis_set_string(ax_all_axes(&program->axes), &program->axes));
  return partition(&p, program, out);
}

ax_status ax_program_partition(const ax_program *program, ax_program **out) { return partition_whole(program, false, out); }
ax_status ax_program_partition_plain(const ax_program *program, ax_program **out) { return partition_whole(program, true, out); }

ax_status ax_program_ungroup(const ax_program *program, ax_program **out) {
  ax_partitioner p = {.ungroups = true};
  return partition(&p, program, out);
}

ax_partitioned ax_partitioned_of(ax_program *program) {
  static const ax_mesh one_device;
  const ax_eqn *eqn = program->eqns;
  if (program->eqn_count != 1 || eqn->prim != &ax_prim_shard_map) return (ax_partitioned){.body = program, .mesh = &one_device};
  const ax_shard_map_params *params = eqn->params;
  return (ax_partitioned){params->body, &params->mesh, params->in_specs.v, params->out_specs.v};
}
