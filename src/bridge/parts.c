#include "bridge/parts.h"

#include <string.h>

#include "axle/ops.h"
#include "bridge/shardy_calls.h"
#include "mesh/constraint.h"
#include "mesh/shard_map.h"

bool ax_hlo_parts_here(const ax_hlo_devices *devices) {
  return devices->parts_wanted && devices->main == (const void *)ax_builder_current();
}

const ax_hlo_parts *ax_hlo_parts_of(const ax_hlo_devices *devices, ax_value x) {
  for (const ax_hlo_parts *p = devices->parts; p != NULL; p = p->next)
    if (p->of.trace == x.trace && p->of.id == x.id) return p;
  return NULL;
}

const ax_hlo_parts *ax_hlo_parts_for(const ax_hlo_devices *devices, ax_value x, const ax_sdy_sharding *layout, ax_axis_set by_hand) {
  const ax_hlo_parts *p = ax_hlo_parts_here(devices) ? ax_hlo_parts_of(devices, x) : NULL;
  if (p == NULL || !ax_mesh_equal(&p->mesh, &layout->mesh.mesh, false) || (p->axes & ~by_hand) != 0) return NULL;
  if (p->summed) return (layout->unreduced & by_hand) == p->axes ? p : NULL;
  return layout->unreduced == 0 && (ax_spec_set(&layout->spec) & p->axes) == 0 ? p : NULL;
}

ax_status ax_hlo_parts_note(ax_hlo_devices *devices, const ax_hlo_parts *parts) {
  ax_hlo_parts *own = ax_arena_copy(devices->arena, parts, sizeof *parts);
  if (own == NULL) return ax_out_of_memory(sizeof *own);
  own->next = devices->parts;
  devices->parts = own;
  return AX_OK;
}

ax_status ax_hlo_parts_carry(ax_hlo_devices *devices, ax_value from, const ax_sdy_sharding *layout, ax_value to) {
  const ax_hlo_parts *p = ax_hlo_parts_for(devices, from, layout, ~(ax_axis_set)0);
  if (p == NULL || ax_failed()) return AX_OK;
  ax_hlo_parts own = *p;
  own.of = to;
  own.spec = ax_hlo_parts_spec(p->axes, &layout->spec);
  own.stacked = ax_lay_out(p->stacked, &own.mesh, &own.spec);
  return ax_failed() ? AX_OK : ax_hlo_parts_note(devices, &own);
}

ax_spec ax_hlo_parts_spec(ax_axis_set axes, const ax_spec *spec) {
  ax_spec out = {.rank = spec->rank + 1, .open = (uint16_t)(spec->open << 1), .priority = spec->priority};
  for (uint8_t a = 0; a < AX_MAX_AXES; a++)
    if ((axes >> a & 1) != 0) out.axis[0][out.count[0]++] = a;
  for (uint32_t d = 0; d < spec->rank && d + 1 < AX_MAX_RANK; d++) {
    out.count[d + 1] = spec->count[d];
    memcpy(out.axis[d + 1], spec->axis[d], sizeof spec->axis[d]);
  }
  return out;
}

ax_status ax_hlo_parts_type(const ax_mesh *mesh, ax_axis_set axes, ax_type *type) {
  if (type->rank == AX_MAX_RANK)
    return ax_error(AX_ABSENT, "an array of %d dimensions has parts: those of all devices have one more", AX_MAX_RANK);
  memmove(type->dims + 1, type->dims, type->rank * sizeof type->dims[0]);
  type->dims[0] = ax_axis_set_size(axes, mesh);
  type->rank++;
  return AX_OK;
}

/* --- The entry function --- */

ax_status ax_hlo_layout_of(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, ax_sdy_sharding *out,
                           bool *said) {
  const ax_hlo_attribute *found = ax_hlo_frontend(attributes, count, "xla.sdy.sharding");
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(attributes[i].name, "sdy.sharding")) found = &attributes[i];
  *out = (ax_sdy_sharding){0};
  *said = found != NULL;
  if (!*said) return AX_OK;
  const char *at = NULL;
  ax_hlo_slice text = found->text, item;
  static const char per_value[] = "#sdy.sharding_per_value";
  if (text.length > sizeof per_value && memcmp(text.start, per_value, sizeof per_value - 1) == 0 && ax_sdy_next(text, &at, &item)) text = item;
  AX_TRY(ax_sdy_read_sharding(text, devices->meshes, devices->mesh_count, devices->arena, out));
  if (ax_axis_set_size(out->unreduced, &out->mesh.mesh) == 1) out->unreduced = 0; /* one device has all */
  return AX_OK;
}

/* Axes along which the layout says that all devices have the same. */
static ax_axis_set same_along(const ax_sdy_sharding *layout) {
  const ax_mesh *mesh = &layout->mesh.mesh;
  const ax_axis_set axes = ax_all_axes(mesh) & ~ax_spec_set(&layout->spec);
  return ax_axis_set_size(axes, mesh) > 1 ? axes : 0;
}

/* Axes along which an argument that comes as parts has them. */
static ax_axis_set parts_along(const ax_sdy_sharding *layout) {
  return layout->unreduced != 0 ? layout->unreduced : same_along(layout);
}

ax_status ax_hlo_parts_argument(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, bool by_device,
                                ax_type *type, ax_having *having) {
  ax_sdy_sharding layout;
  bool said;
  *having = AX_HAVE_ARRAY;
  AX_TRY(ax_hlo_layout_of(devices, attributes, count, &layout, &said));
  if (layout.unreduced != 0) *having = AX_HAVE_SUMMED;
  else if (said && by_device && same_along(&layout) != 0) *having = AX_HAVE_BY_DEVICE;
  if (*having == AX_HAVE_ARRAY) return AX_OK;
  return ax_hlo_parts_type(&layout.mesh.mesh, parts_along(&layout), type);
}

/* What the module's text shows of the parts. */
static ax_value shown(const ax_hlo_parts *parts) {
  if (parts->summed) return ax_reduce_sum(parts->stacked, AX_DIMS(0), false);
  const ax_type type = ax_typeof(parts->stacked);
  return ax_reshape(ax_slice_in_dim(parts->stacked, 0, 1, 1, 0), AX_LIST(type.rank - 1, type.dims + 1));
}

ax_status ax_hlo_parts_take(ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, ax_having having, ax_value *x) {
  ax_sdy_sharding layout;
  bool said;
  AX_TRY(ax_hlo_layout_of(devices, attributes, count, &layout, &said));
  ax_hlo_parts parts = {.mesh = layout.mesh.mesh, .axes = parts_along(&layout), .summed = having == AX_HAVE_SUMMED};
  parts.spec = ax_hlo_parts_spec(parts.axes, &layout.spec);
  parts.stacked = ax_lay_out(*x, &parts.mesh, &parts.spec);
  parts.of = *x = ax_lay_out(shown(&parts), &parts.mesh, &layout.spec);
  return ax_failed() ? AX_OK : ax_hlo_parts_note(devices, &parts);
}

ax_status ax_hlo_parts_give(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, ax_value *x,
                            ax_having *having) {
  ax_sdy_sharding layout;
  bool said;
  *having = AX_HAVE_ARRAY;
  AX_TRY(ax_hlo_layout_of(devices, attributes, count, &layout, &said));
  const ax_hlo_parts *p = ax_hlo_parts_of(devices, *x);
  const ax_mesh *mesh = &layout.mesh.mesh;
  if (p != NULL && (said ? !ax_mesh_equal(&p->mesh, mesh, false) || (p->summed && p->axes != layout.unreduced) : p->summed)) p = NULL;
  if (layout.unreduced == 0) {
    if (p == NULL || p->summed || (ax_spec_set(&layout.spec) & p->axes) != 0) return AX_OK;
    *having = AX_HAVE_BY_DEVICE;
    *x = ax_lay_out(p->stacked, &p->mesh, &p->spec);
    return AX_OK;
  }
  const ax_spec spec = ax_hlo_parts_spec(layout.unreduced, &layout.spec);
  ax_type type = ax_typeof(*x);
  *having = AX_HAVE_SUMMED;
  AX_TRY(ax_hlo_parts_type(mesh, layout.unreduced, &type));
  *x = ax_lay_out(p != NULL && p->summed ? p->stacked : ax_sum_parts(*x, type.dims[0]), mesh, &spec);
  return AX_OK;
}
