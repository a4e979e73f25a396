/* Dtypes, meshes, specs and types: the one table of dtypes, and text for messages. */
#include "ir/program.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static const ax_dtype_info dtypes[AX_DTYPE_COUNT] = {
    [AX_NO_DTYPE] = {"?", "?", NULL, 0, AX_KIND_BOOL},
    [AX_BOOL] = {"bool", "i1", "|b1", 1, AX_KIND_BOOL},
    [AX_S8] = {"s8", "i8", "|i1", 1, AX_KIND_SIGNED},
    [AX_S16] = {"s16", "i16", "<i2", 2, AX_KIND_SIGNED},
    [AX_S32] = {"s32", "i32", "<i4", 4, AX_KIND_SIGNED},
    [AX_S64] = {"s64", "i64", "<i8", 8, AX_KIND_SIGNED},
    [AX_U8] = {"u8", "ui8", "|u1", 1, AX_KIND_UNSIGNED},
    [AX_U16] = {"u16", "ui16", "<u2", 2, AX_KIND_UNSIGNED},
    [AX_U32] = {"u32", "ui32", "<u4", 4, AX_KIND_UNSIGNED},
    [AX_U64] = {"u64", "ui64", "<u8", 8, AX_KIND_UNSIGNED},
    [AX_BF16] = {"bf16", "bf16", NULL, 2, AX_KIND_FLOAT},
    [AX_F16] = {"f16", "f16", "<f2", 2, AX_KIND_FLOAT},
    [AX_F32] = {"f32", "f32", "<f4", 4, AX_KIND_FLOAT},
    [AX_F64] = {"f64", "f64", "<f8", 8, AX_KIND_FLOAT},
};

const ax_dtype_info *ax_dtype_get(ax_dtype dtype) {
  return (unsigned)dtype < AX_DTYPE_COUNT ? &dtypes[dtype] : &dtypes[AX_NO_DTYPE];
}
size_t ax_dtype_bytes(ax_dtype dtype) { return ax_dtype_get(dtype)->bytes; }
const char *ax_dtype_name(ax_dtype dtype) { return ax_dtype_get(dtype)->name; }
/* All floats that there are answer alike. */
bool ax_is_differentiable(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_FLOAT; }
bool ax_is_float(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_FLOAT; }
bool ax_rounds(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_FLOAT; }

int ax_dtype_find(const char *name, size_t length) {
  for (int i = 1; i < AX_DTYPE_COUNT; i++)
    if (strlen(dtypes[i].name) == length && memcmp(dtypes[i].name, name, length) == 0) return i;
  return AX_NO_DTYPE;
}

/* --- Types --- */

ax_type ax_array_type(ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_type type = {0};
  if (rank > AX_MAX_RANK || dtype < AX_NO_DTYPE || dtype >= AX_DTYPE_COUNT) return type;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) return (ax_type){0};
    type.dims[i] = dims[i];
  }
  type.dtype = dtype;
  type.rank = rank;
  return type;
}

int64_t ax_dims_elems(uint32_t rank, const int64_t *dims) {
  int64_t elems = 1;
  for (uint32_t i = 0; i < rank; i++) elems *= dims[i];
  return elems;
}

int64_t ax_type_elems(const ax_type *type) {
  int64_t elems = 1;
  if (type->rank > AX_MAX_RANK) return 0;
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < 0 || !ax_mul_i64(elems, type->dims[i], &elems)) return 0;
  return elems;
}

bool ax_is_memory(ax_form form) { return form >= AX_REF && form <= AX_BARRIER; }

static bool is_known_form(const ax_type *type) {
  switch (type->form) {
    case AX_ARRAY:
    case AX_FUTURE: return type->space == AX_SPACE_NONE;
    case AX_TOKEN: return type->dtype == AX_BOOL && type->rank == 0 && type->space == AX_SPACE_NONE;
    case AX_REF: return type->space > AX_SPACE_NONE && type->space < AX_SPACE_COUNT;
    case AX_SEMAPHORE:
    case AX_DMA_SEMAPHORE:
    case AX_BARRIER: return type->dtype == AX_S32 && type->space == AX_SPACE_NONE;
  }
  return false;
}

const char *ax_form_advice(const ax_type *type) {
  switch (type->form) {
    case AX_FUTURE: return "which done must end first";
    case AX_TOKEN: return "which only precv takes";
    case AX_REF: return "memory, and no value: ref_load gives what is in it";
    case AX_SEMAPHORE:
    case AX_DMA_SEMAPHORE:
    case AX_BARRIER: return "no value: kernels signal it and wait for it";
    case AX_ARRAY: break;
  }
  return "an array";
}

ax_status ax_type_check(const ax_type *type, const ax_mesh *axes) {
  if (!is_known_form(type) || type->dtype <= AX_NO_DTYPE || type->dtype >= AX_DTYPE_COUNT || type->rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "not a type (no dtype, rank above %d, or a negative dimension)", AX_MAX_RANK);
  int64_t bytes = (int64_t)ax_dtype_bytes(type->dtype);
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] < 0 || (type->dims[d] > 0 && !ax_mul_i64(bytes, type->dims[d], &bytes)))
      return ax_error(AX_INVALID_ARGUMENT, "%s has a negative dimension or is too large", ax_type_string(type, axes));
  const ax_spread *on = &type->spread;
  ax_axis_set all = on->varying | on->reduced | on->unreduced;
  bool overlap = (on->varying & on->reduced) != 0 || ((on->varying | on->reduced) & on->unreduced) != 0;
  if (ax_is_memory(type->form) && all != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s spreads over axes, but memory is a device's own", ax_type_string(type, axes));
  if (overlap || (all & ~ax_checked_axes(axes)) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s has axis sets that overlap or are not of the environment", ax_type_string(type, axes));
  bool known = on->kind == AX_UNREDUCED_SUM || on->kind == AX_UNREDUCED_MAX || on->kind == AX_UNREDUCED_MIN;
  if (!known || (on->kind != AX_UNREDUCED_SUM && on->unreduced == 0))
    return ax_error(AX_INVALID_ARGUMENT, "%s is unreduced of a kind that is none, or has a kind without being unreduced",
                    ax_type_string(type, axes));
  return AX_OK;
}

bool ax_same_shape(const ax_type *a, const ax_type *b) {
  return a->rank == b->rank && a->rank <= AX_MAX_RANK && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool ax_spread_equal(const ax_spread *a, const ax_spread *b) {
  return a->varying == b->varying && a->reduced == b->reduced && a->unreduced == b->unreduced && a->kind == b->kind;
}

bool ax_type_equal(const ax_type *a, const ax_type *b) {
  return a->form == b->form && a->space == b->space && a->dtype == b->dtype && ax_same_shape(a, b) &&
         ax_spread_equal(&a->spread, &b->spread);
}

ax_type ax_tangent(const ax_type *type) {
  ax_type tangent = *type;
  tangent.form = AX_ARRAY;
  if (type->spread.kind == AX_UNREDUCED_SUM) return tangent;
  tangent.spread.varying |= type->spread.unreduced;
  tangent.spread.unreduced = 0;
  tangent.spread.kind = AX_UNREDUCED_SUM;
  return tangent;
}

ax_type ax_dual(const ax_type *type) {
  ax_type dual = ax_tangent(type);
  ax_axis_set reduced = dual.spread.reduced;
  dual.spread.reduced = dual.spread.unreduced;
  dual.spread.unreduced = reduced;
  return dual;
}

void ax_spread_vary(ax_spread *spread, ax_axis_set axes) {
  spread->varying |= axes & ~spread->unreduced;
  spread->reduced &= ~spread->varying;
}

void ax_spread_keep_checked(ax_spread *spread, const ax_mesh *axes) {
  const ax_axis_set checked = ax_checked_axes(axes);
  spread->varying &= checked;
  spread->reduced &= checked;
  spread->unreduced &= checked;
  if (spread->unreduced == 0) spread->kind = AX_UNREDUCED_SUM;
}

ax_axis_set ax_spread_differs(const ax_spread *spread) { return spread->varying | spread->unreduced; }

static void add_set(ax_text *text, const char *lead, ax_axis_set set, const ax_mesh *axes) {
  const char *separator = lead;
  for (uint32_t i = 0; axes != NULL && i < axes->count; i++)
    if (set >> i & 1) {
      ax_text_add(text, "%s%s", separator, axes->axis[i].name);
      separator = ",";
    }
}

const char *const ax_unreduced_names[] = {[AX_UNREDUCED_SUM] = "U", [AX_UNREDUCED_MAX] = "Umax", [AX_UNREDUCED_MIN] = "Umin"};

const char *const ax_kind_names[] = {[AX_UNREDUCED_SUM] = "sum", [AX_UNREDUCED_MAX] = "max", [AX_UNREDUCED_MIN] = "min"};

static void add_spread(ax_text *text, const ax_spread *on, const ax_mesh *axes) {
  char lead[8];
  const char *unreduced = on->kind <= AX_UNREDUCED_MIN ? ax_unreduced_names[on->kind] : "U?";
  if ((on->varying | on->reduced | on->unreduced) == 0) return;
  ax_text_add(text, "{");
  add_set(text, "V:", on->varying, axes);
  add_set(text, on->varying != 0 ? " R:" : "R:", on->reduced, axes);
  snprintf(lead, sizeof lead, "%s%s:", (on->varying | on->reduced) != 0 ? " " : "", unreduced);
  add_set(text, lead, on->unreduced, axes);
  ax_text_add(text, "}");
}

const char *const ax_space_names[AX_SPACE_COUNT] = {
    [AX_SPACE_NONE] = "none", [AX_SPACE_ANY] = "any", [AX_SPACE_HBM] = "hbm", [AX_SPACE_VMEM] = "vmem", [AX_SPACE_SMEM] = "smem",
    [AX_SPACE_REGISTERS] = "registers",
};

const char *const ax_form_names[] = {
    [AX_ARRAY] = "", [AX_FUTURE] = "future", [AX_TOKEN] = "token", [AX_REF] = "ref", [AX_SEMAPHORE] = "semaphore",
    [AX_DMA_SEMAPHORE] = "dma_semaphore", [AX_BARRIER] = "barrier",
};

void ax_type_text(ax_text *text, const ax_type *type, const ax_mesh *axes) {
  bool brackets = type->form == AX_FUTURE || type->form == AX_REF, has_dtype = type->form == AX_ARRAY || brackets;
  if (type->form <= AX_BARRIER) ax_text_add(text, "%s%s", ax_form_names[type->form], brackets ? "<" : "");
  if (has_dtype) ax_text_add(text, "%s", ax_dtype_name(type->dtype));
  for (uint32_t i = 0; type->form != AX_TOKEN && i < type->rank; i++)
    ax_text_add(text, "%s%lld", i ? "," : "[", (long long)type->dims[i]);
  if (type->form != AX_TOKEN) ax_text_add(text, type->rank == 0 ? "[]" : "]");
  if (type->form == AX_REF) ax_text_add(text, " %s", type->space < AX_SPACE_COUNT ? ax_space_names[type->space] : "?");
  add_spread(text, &type->spread, axes);
  if (brackets) ax_text_add(text, ">");
}

enum { ring_slots = 8, ring_bytes = 512 };
static _Thread_local char ring[ring_slots][ring_bytes];
static _Thread_local unsigned ring_next;

static const char *into_ring(ax_text *text) {
  char *slot = ring[ring_next++ % ring_slots];
  snprintf(slot, ring_bytes, "%s", text->data != NULL && !text->failed ? text->data : "?");
  ax_text_deinit(text);
  return slot;
}

const char *ax_type_string(const ax_type *type, const ax_mesh *axes) {
  ax_text text = {0};
  ax_type_text(&text, type, axes);
  return into_ring(&text);
}

const char *ax_axis_set_string(ax_axis_set set, const ax_mesh *axes) {
  ax_text text = {0};
  ax_text_add(&text, "{");
  add_set(&text, "", set, axes);
  ax_text_add(&text, "}");
  return into_ring(&text);
}

const char *ax_bound_string(const ax_mesh *axes) {
  ax_text text = {0};
  for (uint32_t i = 0; i < axes->count; i++)
    ax_text_add(&text, "%s%s (%lld)", i > 0 ? ", " : "", axes->axis[i].name, (long long)axes->axis[i].size);
  if (axes->count == 0) ax_text_add(&text, "none");
  return into_ring(&text);
}

/* --- Meshes --- */

bool ax_is_name(const char *text, size_t length) {
  if (length == 0 || length >= AX_MAX_NAME || (text[0] >= '0' && text[0] <= '9')) return false;
  if (length == 1 && text[0] == '_') return false;
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
  }
  return true;
}

/* The next item up to `separator`, blanks trimmed; advances the cursor past it. False at the end. */
static bool next_item(const char **cursor, char separator, const char **item, size_t *length) {
  const char *start = *cursor;
  if (*start == '\0') return false;
  const char *end = strchr(start, separator);
  size_t count = end != NULL ? (size_t)(end - start) : strlen(start);
  *cursor = end != NULL ? end + 1 : start + count;
  while (count > 0 && *start == ' ') start++, count--;
  while (count > 0 && start[count - 1] == ' ') count--;
  *item = start;
  *length = count;
  return true;
}

/* How much of a user's word a message quotes. */
static int shown(size_t length) { return length < 64 ? (int)length : 64; }

ax_status ax_mesh_parse(const char *text, ax_mesh *out) {
  ax_mesh mesh = {0};
  *out = mesh;
  AX_TRY(ax_require(text, "text of a mesh"));
  const char *cursor = text, *item;
  size_t length;
  while (next_item(&cursor, ',', &item, &length)) {
    const char *equals = memchr(item, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - item) : 0;
    if (name_length >= AX_MAX_NAME)
      return ax_error(AX_INVALID_ARGUMENT, "mesh \"%s\": the name \"%.*s\" has more than %d bytes", text, shown(name_length), item,
                      AX_MAX_NAME - 1);
    if (!ax_is_name(item, name_length))
      return ax_error(AX_INVALID_ARGUMENT, "mesh \"%s\": expected name=size, got \"%.*s\"", text, shown(length), item);
    if (mesh.count == AX_MAX_AXES)
      return ax_error(AX_INVALID_ARGUMENT, "mesh \"%s\": more than %d axes", text, AX_MAX_AXES);
    ax_axis *axis = &mesh.axis[mesh.count];
    memcpy(axis->name, item, name_length);
    char *end;
    axis->size = strtoll(equals + 1, &end, 10);
    if (end == equals + 1)
      return ax_error(AX_INVALID_ARGUMENT, "mesh \"%s\": axis \"%s\" needs a size of at least 1", text, axis->name);
    if (end != item + length)
      return ax_error(AX_INVALID_ARGUMENT, "mesh \"%s\": expected ',' after \"%.*s\", got \"%.*s\"", text,
                      shown((size_t)(end - item)), item, shown((size_t)(item + length - end)), end);
    mesh.count++;
  }
  ax_status status = ax_mesh_check(&mesh);
  if (status != AX_OK) return ax_error_context(status, "mesh \"%s\": ", text);
  *out = mesh;
  return AX_OK;
}

ax_status ax_mesh_check(const ax_mesh *mesh) {
  int64_t devices = 1;
  if (mesh->count > AX_MAX_AXES)
    return ax_error(AX_INVALID_ARGUMENT, "a mesh of %u axes; %d are the most", mesh->count, AX_MAX_AXES);
  for (uint32_t i = 0; i < mesh->count; i++) {
    const ax_axis *axis = &mesh->axis[i];
    if (!ax_is_name(axis->name, strnlen(axis->name, AX_MAX_NAME)))
      return ax_error(AX_INVALID_ARGUMENT, "axis %u of the mesh: \"%.*s\" is not a name", i, AX_MAX_NAME, axis->name);
    if (ax_mesh_find(mesh, axis->name) != (int)i)
      return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is named twice", axis->name);
    if (axis->size < 1)
      return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" needs a size of at least 1, not %lld", axis->name, (long long)axis->size);
    if (!ax_mul_i64(devices, axis->size, &devices) || devices > (int64_t)1 << 31)
      return ax_error(AX_INVALID_ARGUMENT, "more than 2^31 devices");
  }
  return AX_OK;
}

bool ax_mesh_equal(const ax_mesh *a, const ax_mesh *b, bool flags_too) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const ax_axis *x = &a->axis[i], *y = &b->axis[i];
    if (strcmp(x->name, y->name) != 0 || x->size != y->size ||
        (flags_too && (x->unchecked != y->unchecked || x->automatic != y->automatic)))
      return false;
  }
  return true;
}

int64_t ax_mesh_devices(const ax_mesh *mesh) {
  int64_t devices = 1;
  if (mesh->count > AX_MAX_AXES) return 0;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (mesh->axis[i].size < 1 || !ax_mul_i64(devices, mesh->axis[i].size, &devices)) return 0;
  return devices;
}

int ax_mesh_find(const ax_mesh *mesh, const char *name) {
  const size_t length = strnlen(name, AX_MAX_NAME); /* an axis filled by hand may lack the end of its name */
  if (mesh->count > AX_MAX_AXES || length == AX_MAX_NAME) return -1;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (memcmp(mesh->axis[i].name, name, length + 1) == 0) return (int)i;
  return -1;
}

int ax_mesh_find_manual(const ax_mesh *mesh, const char *name) {
  const int axis = ax_mesh_find(mesh, name);
  return axis >= 0 && mesh->axis[axis].automatic ? -1 : axis;
}

ax_mesh ax_mesh_plain(const ax_mesh *mesh) {
  ax_mesh plain = *mesh;
  for (uint32_t i = 0; i < AX_MAX_AXES; i++) plain.axis[i].unchecked = plain.axis[i].automatic = false;
  return plain;
}

ax_status ax_mesh_manual(const ax_mesh *mesh, const char *names, ax_mesh *out) {
  ax_axes manual;
  ax_axis_set set;
  *out = (ax_mesh){0};
  AX_TRY(ax_require(mesh, "mesh"));
  AX_TRY(ax_mesh_check(mesh));
  AX_TRY(ax_axes_parse(names, NULL, &manual));
  ax_mesh made = ax_mesh_plain(mesh);
  AX_TRY(ax_axes_resolve(&manual, &made, &set));
  for (uint32_t i = 0; i < made.count; i++) made.axis[i].automatic = (set >> i & 1) == 0;
  *out = made;
  return AX_OK;
}

int64_t ax_mesh_coordinate(const ax_mesh *mesh, int64_t device, uint32_t axis) {
  for (uint32_t i = mesh->count; i-- > axis + 1;) device /= mesh->axis[i].size;
  return device % mesh->axis[axis].size;
}

/* --- Axis sets --- */

/* " {0,1} {2,3}", up to the end of the text. */
static ax_status parse_groups(const char *names, const char *cursor, ax_group_list *list) {
  while (*cursor != '\0') {
    AX_TRY(ax_group_list_open(list));
    for (bool more = true; more;) {
      char *end;
      cursor++; /* past the bracket or the comma */
      long long member = strtoll(cursor, &end, 10);
      if (end == cursor)
        return ax_error(AX_INVALID_ARGUMENT, "axes \"%.200s\": expected the number of a member at \"%.20s\"", names, cursor);
      AX_TRY(ax_group_list_add(list, member));
      for (cursor = end; *cursor == ' ';) cursor++;
      more = *cursor == ',';
    }
    if (*cursor != '}') return ax_error(AX_INVALID_ARGUMENT, "axes \"%.200s\": expected , or } at \"%.20s\"", names, cursor);
    for (cursor++; *cursor == ' ';) cursor++;
    if (*cursor != '{' && *cursor != '\0')
      return ax_error(AX_INVALID_ARGUMENT, "axes \"%.200s\": expected a group, as {0,1}, at \"%.20s\"", names, cursor);
  }
  return AX_OK;
}

ax_status ax_axes_parse(const char *names, ax_arena *arena, ax_axes *out) {
  *out = (ax_axes){0};
  AX_TRY(ax_require(names, "name of an axis"));
  const char *cursor = names, *item, *groups = strchr(names, '{');
  size_t length, all = groups != NULL ? (size_t)(groups - names) : strlen(names);
  if (groups != NULL && arena == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "axis names \"%.200s\": there are no groups here", names);
  while (cursor < names + all && next_item(&cursor, ',', &item, &length)) {
    if (item + length > names + all) length = (size_t)(names + all - item);
    while (length > 0 && item[length - 1] == ' ') length--;
    if (length > 0 && strspn(item, "-0123456789") >= length)
      return ax_error(AX_INVALID_ARGUMENT,
                      "axis names \"%.200s\": %.*s is a dimension, which psum, pmean, pmax and pmin of arrays alone take", names,
                      shown(length), item);
    if (length >= AX_MAX_NAME)
      return ax_error(AX_INVALID_ARGUMENT, "axis names \"%.200s\": \"%.*s\" has more than %d bytes", names, shown(length), item,
                      AX_MAX_NAME - 1);
    if (!ax_is_name(item, length) || out->count == AX_MAX_AXES)
      return ax_error(AX_INVALID_ARGUMENT, "axis names \"%.200s\": expected name,name,...", names);
    memcpy(out->name[out->count++], item, length);
  }
  if (groups == NULL) return AX_OK;
  ax_group_list list = {0};
  ax_status status = parse_groups(names, groups, &list);
  if (status == AX_OK) return ax_group_list_close(&list, arena, &out->groups);
  ax_group_list_deinit(&list);
  return status;
}

ax_axes_list ax_axes_listed(const ax_axes *axes) {
  ax_axes_list list;
  size_t length = 0;
  for (uint32_t i = 0; i < axes->count; i++) {
    if (i > 0) list.text[length++] = ',';
    size_t bytes = strlen(axes->name[i]);
    memcpy(list.text + length, axes->name[i], bytes);
    length += bytes;
  }
  list.text[length] = '\0';
  return list;
}

bool ax_axes_equal(const ax_axes *a, const ax_axes *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (strcmp(a->name[i], b->name[i]) != 0) return false;
  return ax_groups_equal(&a->groups, &b->groups);
}

ax_status ax_axes_resolve(const ax_axes *names, const ax_mesh *axes, ax_axis_set *out) {
  *out = 0;
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(axes, names->name[i]);
    if (axis < 0 && axes->count == 0)
      return ax_error(AX_INVALID_ARGUMENT,
                      "axis \"%s\" is not bound, and none is here: a shard_map binds its mesh's axes, a vmap its axis_name",
                      names->name[i]);
    if (axis < 0)
      return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is not bound; bound are %s", names->name[i], ax_bound_string(axes));
    if (axes->axis[axis].automatic)
      return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is automatic here: a shard_map takes %s by hand", names->name[i],
                      ax_axis_set_string(ax_manual_axes(axes), axes));
    if (*out >> axis & 1) return ax_error(AX_INVALID_ARGUMENT, "axis \"%s\" is named twice", names->name[i]);
    *out |= (ax_axis_set)1 << axis;
  }
  return names->groups.count == 0 ? AX_OK : ax_groups_check(&names->groups, ax_axis_set_size(*out, axes));
}

ax_axes ax_axis_set_names(ax_axis_set set, const ax_mesh *axes) {
  ax_axes names = {0};
  for (uint32_t i = 0; i < axes->count; i++)
    if (set >> i & 1) memcpy(names.name[names.count++], axes->axis[i].name, AX_MAX_NAME);
  return names;
}

ax_axes ax_spec_names(const ax_spec *spec, const ax_mesh *axes, uint32_t dim, uint32_t from) {
  ax_axes names = {0};
  for (uint32_t i = from; i < spec->count[dim]; i++)
    memcpy(names.name[names.count++], axes->axis[spec->axis[dim][i]].name, AX_MAX_NAME);
  return names;
}

int64_t ax_axis_set_size(ax_axis_set set, const ax_mesh *axes) {
  int64_t size = 1;
  for (uint32_t i = 0; i < axes->count; i++)
    if (set >> i & 1) size *= axes->axis[i].size;
  return size;
}

ax_axis_set ax_all_axes(const ax_mesh *axes) { return ((ax_axis_set)1 << axes->count) - 1; }

ax_axis_set ax_checked_axes(const ax_mesh *axes) {
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < axes->count; i++)
    if (!axes->axis[i].unchecked && !axes->axis[i].automatic) set |= (ax_axis_set)1 << i;
  return set;
}

ax_axis_set ax_manual_axes(const ax_mesh *axes) {
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < axes->count; i++)
    if (!axes->axis[i].automatic) set |= (ax_axis_set)1 << i;
  return set;
}

ax_axis_set ax_axis_set_on(ax_axis_set set, const ax_mesh *of, const ax_mesh *mesh) {
  ax_axis_set here = 0;
  for (uint32_t i = 0; set >> i != 0; i++) {
    const int axis = (set >> i & 1) != 0 ? ax_mesh_find(mesh, of->axis[i].name) : -1;
    if (axis >= 0) here |= (ax_axis_set)1 << axis;
  }
  return here;
}

int64_t ax_axes_index(const ax_axes *names, const ax_mesh *axes, int64_t device) {
  int64_t index = 0;
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(axes, names->name[i]);
    index = index * axes->axis[axis].size + ax_mesh_coordinate(axes, device, (uint32_t)axis);
  }
  return index;
}

int64_t ax_axes_device(const ax_axes *names, const ax_mesh *axes, int64_t device, int64_t index) {
  for (uint32_t i = names->count; i-- > 0;) {
    uint32_t axis = (uint32_t)ax_mesh_find(axes, names->name[i]);
    int64_t size = axes->axis[axis].size, step = 1; /* between neighbours along the axis */
    for (uint32_t a = axis + 1; a < axes->count; a++) step *= axes->axis[a].size;
    device += (index % size - ax_mesh_coordinate(axes, device, axis)) * step;
    index /= size;
  }
  return device;
}

/* --- Specs --- */

static ax_status add_spec_axis(ax_spec *spec, const ax_mesh *mesh, const char *text, const char *name, size_t length) {
  uint32_t dim = spec->rank;
  char copy[AX_MAX_NAME] = {0};
  if (ax_is_name(name, length)) memcpy(copy, name, length);
  int axis = ax_mesh_find(mesh, copy);
  if (length == 0) return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": an entry is empty; \"_\" leaves a dimension whole", text);
  if (axis < 0)
    return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": unknown axis \"%.*s\"; the mesh has %s%s", text, shown(length), name,
                    ax_axis_set_string(ax_all_axes(mesh), mesh),
                    ax_is_name(name, length) ? "" : "; a spec is axes for each dimension, as \"data,_,model+pipe\"");
  if (ax_spec_set(spec) >> axis & 1)
    return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": axis \"%s\" is used twice", text, copy);
  spec->axis[dim][spec->count[dim]++] = (uint8_t)axis;
  return AX_OK;
}

ax_status ax_spec_parse_open(const char *text, const ax_mesh *mesh, ax_spec *out) {
  ax_spec spec = {0};
  *out = spec;
  AX_TRY(ax_require(text, "text of a spec"));
  AX_TRY(ax_require(mesh, "mesh"));
  AX_TRY(ax_mesh_check(mesh));
  const char *cursor = text, *item;
  size_t length;
  while (next_item(&cursor, ',', &item, &length)) {
    if (spec.rank == AX_MAX_RANK)
      return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": more than %d entries", text, AX_MAX_RANK);
    const bool open = length == 1 && item[0] == '?', none = open || (length == 1 && item[0] == '_');
    if (open) spec.open |= (uint16_t)(1u << spec.rank);
    for (size_t start = 0; !none && start <= length;) {
      const char *plus = start < length ? memchr(item + start, '+', length - start) : NULL;
      size_t end = plus != NULL ? (size_t)(plus - item) : length;
      AX_TRY(add_spec_axis(&spec, mesh, text, item + start, end - start));
      start = end + 1;
    }
    spec.rank++;
  }
  *out = spec;
  return AX_OK;
}

ax_status ax_spec_parse(const char *text, const ax_mesh *mesh, ax_spec *out) {
  AX_TRY(ax_spec_parse_open(text, mesh, out));
  if (out->open == 0) return AX_OK;
  *out = (ax_spec){0};
  return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": \"?\" leaves a dimension to the partitioner, which only constraints do", text);
}

ax_axis_set ax_spec_set(const ax_spec *spec) {
  ax_axis_set set = 0;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    for (uint32_t i = 0; i < spec->count[d]; i++) set |= (ax_axis_set)1 << spec->axis[d][i];
  return set;
}

bool ax_spec_equal(const ax_spec *a, const ax_spec *b) {
  if (a->open != b->open || memcmp(a->count, b->count, sizeof a->count) != 0) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    for (uint32_t i = 0; i < a->count[d]; i++)
      if (a->axis[d][i] != b->axis[d][i]) return false;
  return true;
}

void ax_spec_text(ax_text *text, const ax_spec *spec, const ax_mesh *mesh) {
  ax_text_add(text, "P(");
  for (uint32_t d = 0; d < spec->rank; d++) {
    ax_text_add(text, "%s", d ? ", " : "");
    if (spec->count[d] == 0) ax_text_add(text, spec->open >> d & 1 ? "?" : "_");
    for (uint32_t i = 0; i < spec->count[d]; i++)
      ax_text_add(text, "%s%s", i ? "+" : "", mesh->axis[spec->axis[d][i]].name);
  }
  ax_text_add(text, ")");
}

void ax_sharded_type_text(ax_text *text, const ax_type *type, const ax_spec *spec, const ax_mesh *mesh) {
  ax_text_add(text, "%s[", ax_dtype_name(type->dtype));
  for (uint32_t d = 0; d < type->rank; d++) {
    ax_text_add(text, "%s%lld", d > 0 ? "," : "", (long long)type->dims[d]);
    for (uint32_t i = 0; spec != NULL && d < spec->rank && i < spec->count[d]; i++)
      ax_text_add(text, "%s%s", i > 0 ? "+" : "@", mesh->axis[spec->axis[d][i]].name);
  }
  ax_text_add(text, "]");
}
