#include "mesh/sharding.h"

#include <stdio.h>
#include <string.h>

int64_t ax_shard_parts(const ax_spec *spec, const ax_mesh *mesh, uint32_t dim) {
  int64_t parts = 1;
  for (uint32_t i = 0; i < spec->count[dim]; i++) parts *= mesh->axis[spec->axis[dim][i]].size;
  return parts;
}

int64_t ax_shard_part(const ax_spec *spec, const ax_mesh *mesh, uint32_t dim, int64_t device) {
  int64_t part = 0;
  for (uint32_t i = 0; i < spec->count[dim]; i++) {
    uint32_t axis = spec->axis[dim][i];
    part = part * mesh->axis[axis].size + ax_mesh_coordinate(mesh, device, axis);
  }
  return part;
}

/* "P(data, _)" in a message. */
static ax_status refuse(const ax_type *type, const ax_spec *spec, const ax_mesh *mesh, const char *why) {
  ax_text text = {0};
  ax_spec_text(&text, spec, mesh);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "the spec %s %s %s", text.data != NULL ? text.data : "?", why,
                              ax_type_string(type, mesh));
  ax_text_deinit(&text);
  return status;
}

ax_status ax_shard_type(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, ax_type *out) {
  *out = *whole;
  if (spec->rank > whole->rank) return refuse(whole, spec, mesh, "has more entries than there are dimensions in");
  for (uint32_t d = 0; d < spec->rank; d++) {
    int64_t parts = ax_shard_parts(spec, mesh, d);
    if (whole->dims[d] % parts != 0) {
      char why[96];
      snprintf(why, sizeof why, "cuts dimension %u in %lld parts, which do not divide", d, (long long)parts);
      return refuse(whole, spec, mesh, why);
    }
    out->dims[d] = whole->dims[d] / parts;
  }
  return AX_OK;
}

ax_status ax_unshard_type(const ax_type *block, const ax_spec *spec, const ax_mesh *mesh, ax_type *out) {
  *out = *block;
  if (spec->rank > block->rank) return refuse(block, spec, mesh, "has more entries than there are dimensions in");
  for (uint32_t d = 0; d < spec->rank; d++)
    if (!ax_mul_i64(block->dims[d], ax_shard_parts(spec, mesh, d), &out->dims[d]))
      return refuse(block, spec, mesh, "makes too large an array of blocks");
  return AX_OK;
}

void ax_shard_offset(const ax_type *block, const ax_spec *spec, const ax_mesh *mesh, int64_t device, int64_t *offset) {
  for (uint32_t d = 0; d < block->rank; d++) offset[d] = block->dims[d] * ax_shard_part(spec, mesh, d, device);
}

int64_t ax_shard_count(const ax_spec *spec, const ax_mesh *mesh) {
  int64_t count = 1;
  for (uint32_t d = 0; d < spec->rank; d++) count *= ax_shard_parts(spec, mesh, d);
  return count;
}

int64_t ax_shard_index(const ax_spec *spec, const ax_mesh *mesh, int64_t device) {
  int64_t index = 0;
  for (uint32_t d = 0; d < spec->rank; d++)
    index = index * ax_shard_parts(spec, mesh, d) + ax_shard_part(spec, mesh, d, device);
  return index;
}

bool ax_shard_is_first(const ax_spec *spec, const ax_mesh *mesh, int64_t device) {
  ax_axis_set named = ax_spec_set(spec);
  for (uint32_t i = 0; i < mesh->count; i++)
    if (!(named >> i & 1) && ax_mesh_coordinate(mesh, device, i) != 0) return false;
  return true;
}

/* --- Copying blocks --- */

/* Calls for each dense run of the block: its position in the whole array and in the block, in elements. */
static void copy_runs(const ax_tensor *whole, const int64_t *offset, const ax_tensor *block, bool into_whole) {
  size_t bytes = ax_dtype_bytes(block->dtype);
  int64_t elems = ax_dims_elems(block->rank, block->dims), run = block->rank > 0 ? block->dims[block->rank - 1] : 1;
  int64_t index[AX_MAX_RANK] = {0};
  for (int64_t at = 0; at < elems; at += run) {
    int64_t from = 0;
    for (uint32_t d = 0; d < block->rank; d++) from = from * whole->dims[d] + offset[d] + index[d];
    char *outer = (char *)whole->data + (size_t)from * bytes, *inner = (char *)block->data + (size_t)at * bytes;
    memcpy(into_whole ? outer : inner, into_whole ? inner : outer, (size_t)run * bytes);
    for (uint32_t d = block->rank > 0 ? block->rank - 1 : 0; d-- > 0;) {
      if (++index[d] < block->dims[d]) break;
      index[d] = 0;
    }
  }
}

void ax_shard_read(const ax_tensor *whole, const int64_t *offset, ax_tensor *block) {
  copy_runs(whole, offset, block, false);
}

void ax_shard_write(ax_tensor *whole, const int64_t *offset, const ax_tensor *block) {
  copy_runs(whole, offset, block, true);
}
