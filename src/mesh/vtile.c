/* vtile: a function on the blocks of arrays, as in a shard_map, but computed by the devices that hold the arrays: an axis of the
   mesh is a vmapped dimension, and collectives over it stay within an array.

     operand f32[8,6], P(b, a) on a=2, b=4  --reshape, transpose-->  f32[2,4,2,3]  --vmap a, vmap b-->  blocks f32[2,3]
                                                                      a b ----- block
   Results go the same way back. */
#include <string.h>

#include "axle/ops.h"
#include "axle/pmap.h"
#include "mesh/shard_map.h"
#include "mesh/sharding.h"
#include "prim/region.h"

static const char owner[] = "vtile";

typedef struct tiling {
  const ax_mesh *mesh;
  ax_fn function;
  const ax_spec *in_specs, *out_specs;
} tiling;

/* An array cut by a spec, with each part of each dimension as a dimension of its own. The whole array has these parts in order:
   those of dimension 0 first, major first. The blocks have them in the order `sorted`: the mesh's axes in their order, then the
   rest of each dimension. */
typedef struct pieces {
  uint32_t count, rank; /* rank: of the whole */
  int64_t size[AX_MAX_RANK + AX_MAX_AXES], sorted[AX_MAX_RANK + AX_MAX_AXES];
  int64_t whole[AX_MAX_RANK];
} pieces;

static pieces pieces_of(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh) {
  pieces p = {.rank = whole->rank};
  uint32_t place_of_axis[AX_MAX_AXES], left[AX_MAX_RANK], sorted = 0;
  for (uint32_t j = 0; j < AX_MAX_AXES; j++) place_of_axis[j] = AX_NONE;
  for (uint32_t d = 0; d < whole->rank; d++) {
    for (uint32_t i = 0; i < spec->count[d]; i++) {
      place_of_axis[spec->axis[d][i]] = p.count;
      p.size[p.count++] = mesh->axis[spec->axis[d][i]].size;
    }
    left[d] = p.count;
    p.size[p.count++] = whole->dims[d] / ax_shard_parts(spec, mesh, d);
    p.whole[d] = whole->dims[d];
  }
  for (uint32_t j = 0; j < mesh->count; j++)
    if (place_of_axis[j] != AX_NONE) p.sorted[sorted++] = place_of_axis[j];
  for (uint32_t d = 0; d < whole->rank; d++) p.sorted[sorted++] = left[d];
  return p;
}

static bool check_rank(const pieces *p, const ax_type *whole) {
  if (p->count <= AX_MAX_RANK) return true;
  ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: %s in blocks has %u dimensions with the mesh's; %d are the most", owner,
                   ax_type_string(whole, &ax_builder_current()->axes), p->count, AX_MAX_RANK));
  return false;
}

static ax_value to_blocks(const tiling *t, ax_value x, const ax_spec *spec, uint32_t i) {
  ax_type whole = ax_typeof(x), block;
  if (ax_failed()) return ax_poison;
  ax_status status = ax_shard_type(&whole, spec, t->mesh, &block);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: operand %u: ", owner, i));
    return ax_poison;
  }
  const pieces p = pieces_of(&whole, spec, t->mesh);
  return check_rank(&p, &whole) ? ax_transpose(ax_reshape(x, AX_LIST(p.count, p.size)), p.sorted) : ax_poison;
}

/* x has the axes that the spec names in front. */
static ax_value from_blocks(const tiling *t, ax_value x, const ax_spec *spec, uint32_t k) {
  const uint32_t named = (uint32_t)__builtin_popcountll(ax_spec_set(spec));
  ax_type block = ax_typeof(x), whole;
  if (ax_failed()) return ax_poison;
  memmove(block.dims, block.dims + named, (block.rank -= named) * sizeof block.dims[0]);
  ax_status status = ax_unshard_type(&block, spec, t->mesh, &whole);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: result %u: ", owner, k));
    return ax_poison;
  }
  const pieces p = pieces_of(&whole, spec, t->mesh);
  int64_t back[AX_MAX_RANK];
  if (!check_rank(&p, &whole)) return ax_poison;
  for (uint32_t s = 0; s < p.count; s++) back[p.sorted[s]] = s;
  return ax_reshape(ax_transpose(x, back), AX_LIST(p.rank, p.whole));
}

/* --- vmap over vmap: axis `axis` of the mesh, and inside it those after it --- */

typedef struct level {
  const tiling *tiling;
  uint32_t axis;
} level;

static ax_dim_list axes_at(const ax_spec *specs, uint32_t count, uint32_t axis) {
  int64_t *axes = ax_trace_alloc(count * sizeof axes[0]);
  for (uint32_t i = 0; i < count && axes != NULL; i++) axes[i] = (ax_spec_set(&specs[i]) >> axis & 1) ? 0 : AX_NOT_MAPPED;
  return (ax_dim_list){count, axes};
}

static void over_axis(const ax_value *in, ax_value *out, void *context) {
  const level *l = context;
  const tiling *t = l->tiling;
  const uint32_t in_count = t->function.in_count, out_count = t->function.out_count;
  if (l->axis == t->mesh->count) {
    const ax_value *made = ax_builder_call(t->function, in);
    if (made != NULL && out_count > 0) memcpy(out, made, out_count * sizeof out[0]);
    return;
  }
  level inner = {t, l->axis + 1};
  const ax_vmap_options options = {.in_axes = axes_at(t->in_specs, in_count, l->axis),
                                   .out_axes = axes_at(t->out_specs, out_count, l->axis),
                                   .size = t->mesh->axis[l->axis].size,
                                   .axis_name = t->mesh->axis[l->axis].name};
  if (options.in_axes.v == NULL || options.out_axes.v == NULL) return;
  ax_vmap(AX_CLOSURE(over_axis, in_count, out_count, &inner), in, out, &options);
}

void (ax_vtile)(const ax_mesh *mesh, const char *specs, ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count,
                ax_value *out) {
  if (!ax_lists_fit(owner, in_count, f.in_count, out_count, f.out_count, out)) return;
  in = ax_take_operands(in, f.in_count, out, f.out_count);
  ax_spec *in_specs = ax_trace_alloc(f.in_count * sizeof in_specs[0]),
          *out_specs = ax_trace_alloc(f.out_count * sizeof out_specs[0]);
  ax_value *blocks = ax_trace_alloc(f.in_count * sizeof blocks[0]), *made = ax_trace_alloc(f.out_count * sizeof made[0]);
  if (in_specs == NULL || out_specs == NULL || blocks == NULL || made == NULL || !ax_check_operands(owner, in, f.in_count)) return;
  ax_status status = mesh != NULL ? ax_mesh_check(mesh) : ax_error(AX_INVALID_ARGUMENT, "there is no mesh");
  if (status == AX_OK) status = ax_parse_specs(specs, f.in_count, f.out_count, mesh, in_specs, out_specs, NULL);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", owner));
    return;
  }
  const tiling t = {mesh, f, in_specs, out_specs};
  for (uint32_t i = 0; i < f.in_count; i++) blocks[i] = to_blocks(&t, in[i], &in_specs[i], i);
  for (uint32_t k = 0; k < f.out_count; k++) made[k] = ax_poison;
  level outermost = {&t, 0};
  if (!ax_failed()) over_axis(blocks, made, &outermost);
  for (uint32_t k = 0; k < f.out_count && !ax_failed(); k++) out[k] = from_blocks(&t, made[k], &out_specs[k], k);
}
