/* Lowering shard_map: operands laid out as the body wants them, the body inlined, its results recorded with their layout.

   A whole-program value is stored in blocks, one for each coordinate along the axes of its spec, so consecutive shard_maps that
   agree on a spec hand over blocks as they are. */
#include "loop/lower.h"
#include "mesh/shard_map.h"

/* Where this device's block begins along dimension d: an s64 node. */
static ax_ex block_start(ax_kernel *kernel, const ax_mesh *mesh, const ax_spec *spec, uint32_t d, int64_t block) {
  ax_ex index = ax_kernel_const(kernel, AX_S64, 0);
  for (uint32_t i = 0; i < spec->count[d]; i++) {
    uint32_t axis = spec->axis[d][i];
    ax_ex size = ax_kernel_const(kernel, AX_S64, mesh->axis[axis].size);
    index = ax_kernel_op(kernel, AX_SCALAR_MUL, AX_S64, index, size, AX_NONE);
    index = ax_kernel_op(kernel, AX_SCALAR_ADD, AX_S64, index, ax_kernel_axis(kernel, axis), AX_NONE);
  }
  return ax_kernel_op(kernel, AX_SCALAR_MUL, AX_S64, index, ax_kernel_const(kernel, AX_S64, block), AX_NONE);
}

/* Each device's block of a whole array. */
static ax_status cut(ax_lower *lower, uint32_t whole, const ax_spec *spec, const ax_type *block, uint32_t *out) {
  ax_type type = ax_lower_get(lower, whole)->type;
  ax_at at[AX_MAX_RANK], identity[AX_MAX_RANK];
  AX_TRY(ax_lower_buffer(lower, block, ax_spec_set(spec), out));
  AX_TRY(ax_lower_kernel_begin(lower, block->rank, 0, block->dims));
  ax_at_identity(identity, block->rank);
  ax_at_identity(at, block->rank);
  for (uint32_t d = 0; d < block->rank; d++) {
    if (spec->count[d] == 0) continue;
    at[d].dynamic = block_start(lower->kernel, &lower->plan->mesh, spec, d, block->dims[d]);
    at[d].limit = type.dims[d] - block->dims[d];
  }
  ax_ex x = ax_lower_load(lower, whole, at);
  ax_lower_store(lower, *out, identity, x, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status lower_operand(ax_lower *lower, uint32_t buffer, const ax_spec *spec, const ax_type *block, uint32_t *out) {
  if (ax_spec_equal(&ax_lower_get(lower, buffer)->spec, spec)) /* a view, because inside it is an array like any other */
    return ax_lower_view(lower, buffer, block, 0, AX_NONE, 0, out);
  AX_TRY(ax_lower_whole(lower, buffer, &buffer));
  if (ax_spec_set(spec) == 0) return ax_lower_view(lower, buffer, block, 0, AX_NONE, 0, out);
  return cut(lower, buffer, spec, block, out);
}

/* A result that is the same on more devices than its spec says is stored once for each block; of one that differs on more (which
   only an unchecked body may give) the first device's is taken. */
static ax_status lower_result(ax_lower *lower, uint32_t buffer, const ax_spec *spec, const ax_type *block, uint32_t *out) {
  ax_axis_set axes = ax_spec_set(spec);
  if (ax_lower_get(lower, buffer)->axes == axes) {
    AX_TRY(ax_lower_view(lower, buffer, block, 0, AX_NONE, 0, out));
  } else {
    AX_TRY(ax_lower_buffer(lower, block, axes, out));
    AX_TRY(ax_lower_copy(lower, *out, buffer));
  }
  lower->plan->buffers[*out].spec = *spec;
  return AX_OK;
}

ax_status ax_shard_map_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  uint32_t *shards = ax_arena_alloc(&lower->plan->arena, eqn->in_count * sizeof shards[0]);
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, eqn->out_count * sizeof results[0]);
  if (shards == NULL || results == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < eqn->in_count; i++)
    AX_TRY(lower_operand(lower, in[i], &params->in_specs.v[i], &body->types[i], &shards[i]));
  AX_TRY(ax_lower_program(lower, body, shards, results));
  for (uint32_t i = 0; i < eqn->out_count; i++)
    AX_TRY(lower_result(lower, results[i], &params->out_specs.v[i], &body->types[body->outs[i]], &out[i]));
  return AX_OK;
}
