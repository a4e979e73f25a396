/* Index maps: from axes to parts, and from parts to offsets. Copies use the longest runs that are dense on both sides. */
#include "mesh/sharding.h"

#include <stdio.h>
#include <string.h>

int64_t ax_shard_parts(const ax_spec *spec, const ax_mesh *mesh, uint32_t dim) {
  int64_t parts = 1;
  for (uint32_t i = 0; i < spec->count[dim]; i++) parts *= mesh->axis[spec->axis[dim][i]].size;
  return parts;
}

/* The part of dimension `dim` that `device` holds. */
static int64_t part_of(const ax_spec *spec, const ax_mesh *mesh, uint32_t dim, int64_t device) {
  int64_t part = 0;
  for (uint32_t i = 0; i < spec->count[dim]; i++) {
    uint32_t axis = spec->axis[dim][i];
    part = part * mesh->axis[axis].size + ax_mesh_coordinate(mesh, device, axis);
  }
  return part;
}

/* "P(data, _)" in a message. What the type varies over are axes around the mesh, which it has no names for. */
static ax_status refuse(const ax_type *type, const ax_spec *spec, const ax_mesh *mesh, const char *why) {
  const ax_type array = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims));
  ax_text text = {0};
  ax_spec_text(&text, spec, mesh);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "the spec %s %s %s", text.data != NULL ? text.data : "?", why,
                              ax_type_string(&array, mesh));
  ax_text_deinit(&text);
  return status;
}

bool ax_shard_divides(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, uint32_t dim) {
  return spec == NULL || dim >= spec->rank || whole->dims[dim] % ax_shard_parts(spec, mesh, dim) == 0;
}

ax_status ax_shard_padded(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, ax_type *out) {
  *out = *whole;
  if (spec->rank > whole->rank) return refuse(whole, spec, mesh, "has more entries than there are dimensions in");
  for (uint32_t d = 0; d < spec->rank; d++) {
    int64_t parts = ax_shard_parts(spec, mesh, d), rest = whole->dims[d] % parts;
    out->dims[d] = whole->dims[d] / parts + (rest > 0);
  }
  return AX_OK;
}

ax_status ax_shard_type(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, ax_type *out) {
  AX_TRY(ax_shard_padded(whole, spec, mesh, out));
  if (spec->open != 0) return refuse(whole, spec, mesh, "leaves a dimension open of");
  if (spec->priority != 0) return refuse(whole, spec, mesh, "has a priority, which only constraints have, for");
  for (uint32_t d = 0; d < spec->rank; d++) {
    if (ax_shard_divides(whole, spec, mesh, d)) continue;
    char why[96];
    snprintf(why, sizeof why, "cuts dimension %u in %lld parts, which do not divide", d, (long long)ax_shard_parts(spec, mesh, d));
    return refuse(whole, spec, mesh, why);
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
  for (uint32_t d = 0; d < block->rank; d++) offset[d] = block->dims[d] * part_of(spec, mesh, d, device);
}

int64_t ax_shard_count(const ax_spec *spec, const ax_mesh *mesh) { return ax_axis_set_size(ax_spec_set(spec), mesh); }

int64_t ax_shard_device(const ax_spec *spec, const ax_mesh *mesh, int64_t number) {
  ax_axis_set named = ax_spec_set(spec);
  int64_t device = 0, stride = 1; /* of the axis: how far apart neighbours along it are */
  for (uint32_t axis = mesh->count; axis-- > 0; stride *= mesh->axis[axis].size) {
    if ((named >> axis & 1) == 0) continue;
    device += number % mesh->axis[axis].size * stride;
    number /= mesh->axis[axis].size;
  }
  return device;
}

int64_t ax_shard_number(const ax_spec *spec, const ax_mesh *mesh, const int64_t *part) {
  ax_axis_set named = ax_spec_set(spec);
  int64_t coordinate[AX_MAX_AXES] = {0}, number = 0;
  for (uint32_t d = 0; d < spec->rank; d++) {
    int64_t rest = part[d];
    for (uint32_t i = spec->count[d]; i-- > 0;) { /* the last axis of a dimension is the minor one */
      uint32_t axis = spec->axis[d][i];
      coordinate[axis] = rest % mesh->axis[axis].size;
      rest /= mesh->axis[axis].size;
    }
  }
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    if (named >> axis & 1) number = number * mesh->axis[axis].size + coordinate[axis];
  return number;
}

/* --- Copying blocks --- */

/* The dense runs of what the blocks share: the last dimensions that are whole in both, and the one before them. */
void ax_shard_copy(const ax_type *from, const int64_t *from_offset, const void *source, const ax_type *to, const int64_t *to_offset,
                   void *target) {
  int64_t begin[AX_MAX_RANK] = {0}, size[AX_MAX_RANK] = {0}, index[AX_MAX_RANK] = {0};
  for (uint32_t d = 0; d < from->rank; d++) {
    int64_t from_end = from_offset[d] + from->dims[d], to_end = to_offset[d] + to->dims[d];
    begin[d] = from_offset[d] > to_offset[d] ? from_offset[d] : to_offset[d];
    size[d] = (from_end < to_end ? from_end : to_end) - begin[d];
    if (size[d] <= 0) return;
  }
  uint32_t lead = from->rank;
  while (lead > 0 && size[lead - 1] == from->dims[lead - 1] && size[lead - 1] == to->dims[lead - 1]) lead--;
  if (lead > 0) lead--;
  int64_t rows = ax_dims_elems(lead, size);
  size_t item = ax_dtype_bytes(from->dtype), run = (size_t)ax_dims_elems(from->rank - lead, size + lead) * item;
  for (int64_t row = 0; row < rows; row++) {
    int64_t s = 0, t = 0;
    for (uint32_t d = 0; d < from->rank; d++) {
      s = s * from->dims[d] + begin[d] - from_offset[d] + index[d];
      t = t * to->dims[d] + begin[d] - to_offset[d] + index[d];
    }
    memcpy((char *)target + (size_t)t * item, (const char *)source + (size_t)s * item, run);
    for (uint32_t d = lead; d-- > 0 && ++index[d] == size[d];) index[d] = 0;
  }
}

static const int64_t origin[AX_MAX_RANK];

void ax_shard_read(const ax_type *whole, const void *from, const int64_t *offset, const ax_type *block, void *to) {
  ax_shard_copy(whole, origin, from, block, offset, to);
}

void ax_shard_write(const ax_type *block, const void *from, const int64_t *offset, const ax_type *whole, void *to) {
  ax_shard_copy(block, offset, from, whole, origin, to);
}
