/* Groups of devices by axes of a mesh, of StableHLO and of VHLO: dictionaries, as the text has them.

     #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>]>

   StableHLO has strings and lists where VHLO has attributes. */
#include <string.h>

#include "hlo/bytecode.h"

static ax_status begin(ax_hlo_bytecode *b, const char *name, uint32_t room, ax_hlo_attribute **items, ax_hlo_attribute *out) {
  AX_TRY(ax_hlo_make(b, room, sizeof **items, items));
  *out = (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY, .text = {name, strlen(name)}, .items = *items};
  return AX_OK;
}

static void add(ax_hlo_attribute *items, const char *name, const ax_hlo_attribute *item, ax_hlo_attribute *out) {
  items[out->count] = *item;
  items[out->count++].name = (ax_hlo_slice){name, strlen(name)};
}

static ax_status add_name(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *items, ax_hlo_attribute *out) {
  const ax_hlo_attribute *found;
  ax_hlo_attribute name = {.kind = AX_HLO_STRING};
  if (vhlo) {
    AX_TRY(ax_hlo_read_attribute(b, from, &found));
    name.text = found->text;
  } else {
    AX_TRY(ax_hlo_read_string(b, from, &name.text));
  }
  add(items, "name", &name, out);
  return AX_OK;
}

static ax_status add_size(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *name, ax_hlo_attribute *items,
                          ax_hlo_attribute *out) {
  ax_hlo_attribute size = {.kind = AX_HLO_INTEGER};
  AX_TRY(ax_hlo_read_signed(b, from, &size.integer));
  add(items, name, &size, out);
  return AX_OK;
}

/* What stands behind a flag: a byte of StableHLO's, a number of VHLO's. */
static ax_status add_flagged(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, const char *name, ax_hlo_attribute *items,
                             ax_hlo_attribute *out) {
  const ax_hlo_attribute *found;
  unsigned char byte = 0;
  uint64_t flag = 0;
  if (vhlo)
    AX_TRY(ax_hlo_read_number(b, from, &flag));
  else
    AX_TRY(ax_hlo_read_byte(b, from, &byte));
  if (flag == 0 && byte == 0) return AX_OK;
  AX_TRY(ax_hlo_read_attribute(b, from, &found));
  add(items, name, found, out);
  return AX_OK;
}

static ax_status read_sub_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  (void)vhlo;
  AX_TRY(begin(b, "", 2, &items, out));
  AX_TRY(add_size(b, from, "pre_size", items, out));
  return add_size(b, from, "size", items, out);
}

static ax_status read_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  AX_TRY(begin(b, "stablehlo.axis_ref", 2, &items, out));
  AX_TRY(add_name(b, from, vhlo, items, out));
  return add_flagged(b, from, vhlo, "sub_axis_info", items, out);
}

static ax_status read_mesh_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  AX_TRY(begin(b, "stablehlo.mesh_axis", 2, &items, out));
  AX_TRY(add_name(b, from, vhlo, items, out));
  return add_size(b, from, "size", items, out);
}

static ax_status read_mesh(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *out) {
  const ax_hlo_attribute *found;
  ax_hlo_attribute *items;
  AX_TRY(begin(b, "stablehlo.mesh", 2, &items, out));
  AX_TRY(ax_hlo_read_attribute(b, from, &found));
  add(items, "axes", found, out);
  if (!vhlo) return add_flagged(b, from, vhlo, "device_ids", items, out);
  AX_TRY(ax_hlo_read_optional(b, from, &found));
  if (found != NULL) add(items, "device_ids", found, out);
  return AX_OK;
}

static ax_status read_groups(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, ax_hlo_attribute *out) {
  const ax_hlo_attribute *found;
  ax_hlo_attribute *items, axes = {0};
  AX_TRY(begin(b, "stablehlo.replica_group_mesh_axes", 2, &items, out));
  AX_TRY(ax_hlo_read_attribute(b, from, &found));
  ax_hlo_attribute mesh = *found;
  if (mesh.kind == AX_HLO_STRING) mesh.kind = AX_HLO_SYMBOL;
  add(items, "mesh", &mesh, out);
  if (!vhlo) {
    AX_TRY(ax_hlo_read_array(b, from, &axes));
    found = &axes;
  } else {
    AX_TRY(ax_hlo_read_attribute(b, from, &found));
  }
  add(items, "axes", found, out);
  return AX_OK;
}

ax_status ax_hlo_read_mesh_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, uint64_t code, bool *known,
                                     ax_hlo_attribute *out) {
  enum { stablehlo_first = 18, vhlo_first = 21 };
  static ax_status (*const stablehlo[])(ax_hlo_bytecode *, ax_hlo_bytes *, bool, ax_hlo_attribute *) = {
      read_groups, read_sub_axis, read_axis, read_mesh_axis, read_mesh};
  static ax_status (*const versioned[])(ax_hlo_bytecode *, ax_hlo_bytes *, bool, ax_hlo_attribute *) = {
      read_sub_axis, read_axis, read_groups, read_mesh_axis, read_mesh};
  const uint64_t first = vhlo ? vhlo_first : stablehlo_first;
  *known = code >= first && code - first < AX_COUNT(stablehlo);
  if (!*known) return AX_OK;
  return (vhlo ? versioned : stablehlo)[code - first](b, from, vhlo, out);
}
