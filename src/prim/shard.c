/* Factors, by which an operation tells the partitioner which of its dimensions can be cut together. */
#include "prim/prims.h"
#include "prim/rules.h"

void ax_shard_whole(const ax_shard_args *args) { (void)args; }

uint32_t ax_factor(const ax_shard_args *args, int64_t size, ax_factor_kind kind) {
  ax_factors *f = args->factors;
  f->size[f->count] = size;
  f->kind[f->count] = kind;
  f->exchanged[f->count] = 0;
  return f->count++;
}

void ax_factor_of(ax_factored *tensor, int64_t d, uint32_t factor) { tensor->factor[d][tensor->count[d]++] = (uint8_t)factor; }

void ax_factor_reaches(ax_factored *tensor, int64_t d, uint32_t factor, ax_reach reach) {
  ax_factor_of(tensor, d, factor);
  tensor->reached |= 1u << d;
  tensor->reach[d] = reach;
}

void ax_shard_pointwise(const ax_shard_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_type *result = &args->types[eqn->out];
  for (uint32_t d = 0; d < result->rank; d++) {
    uint32_t factor = ax_factor(args, result->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->out[0], d, factor);
    for (uint32_t i = 0; i < eqn->in_count; i++)
      if (args->types[eqn->in[i]].rank == result->rank) ax_factor_of(&args->in[i], d, factor);
  }
}

void ax_shard_kept(const ax_shard_args *args, uint64_t changed) {
  const ax_type *result = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < result->rank; d++) {
    if (changed >> d & 1) continue;
    const uint32_t factor = ax_factor(args, result->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

ax_value ax_block_start(const ax_block_args *args, uint32_t k, uint32_t d, ax_dtype dtype) {
  return ax_spec_start(&args->specs[k], d, args->blocks[k].dims[d], dtype);
}

ax_value ax_spec_start(const ax_spec *spec, uint32_t d, int64_t size, ax_dtype dtype) {
  const ax_axes names = ax_spec_names(spec, &ax_builder_current()->axes, d, 0);
  if (names.count == 0) return ax_as("shard", ax_integer(0), dtype);
  const ax_axes_list list = ax_axes_listed(&names);
  return ax_convert_element_type(ax_mul(ax_convert_element_type(ax_axis_index(list.text), AX_S64), ax_integer(size)), dtype);
}

ax_value ax_spec_unpadded(const ax_spec *spec, uint32_t d, const ax_type *block, int64_t size) {
  const ax_value within = ax_iota(AX_S64, AX_LIST(block->rank, block->dims), d);
  return ax_lt(ax_add(within, ax_spec_start(spec, d, block->dims[d], AX_S64)), ax_integer(size));
}

ax_axes ax_block_axes(const ax_block_args *args, uint32_t k, uint32_t d, bool *padded) {
  const ax_mesh *mesh = &ax_builder_current()->axes;
  const ax_spec *spec = &args->in_specs[k];
  int64_t size = ax_typeof(args->in[k]).dims[d];
  for (uint32_t i = 0; i < spec->count[d]; i++) size *= mesh->axis[spec->axis[d][i]].size;
  *padded = size != args->types[args->eqn->in[k]].dims[d];
  return ax_spec_names(spec, mesh, d, 0);
}

ax_value ax_block_unpadded(const ax_block_args *args, uint32_t k, const ax_dims *dims) {
  const ax_type block = ax_typeof(args->in[k]), *whole = &args->types[args->eqn->in[k]];
  ax_value there = ax_broadcast_in_dim(ax_full(AX_BOOL, AX_DIMS(), 1), AX_LIST(block.rank, block.dims), NULL);
  for (uint32_t i = 0; i < dims->count && !ax_failed(); i++) {
    const uint32_t d = (uint32_t)dims->v[i];
    bool padded;
    (void)ax_block_axes(args, k, d, &padded);
    if (padded) there = ax_and(there, ax_spec_unpadded(&args->in_specs[k], d, &block, whole->dims[d]));
  }
  return there;
}
