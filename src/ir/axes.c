/* Meshes, sets of their axes, and specs, which say by which axes an array is cut: from texts, and as texts. */
#include "ir/program.h"

#include <stdlib.h>
#include <string.h>

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

bool ax_priority_read(const char *digits, size_t length, uint16_t *out) {
  uint32_t number = 0;
  for (size_t i = 0; i < length && number <= AX_LAST_PRIORITY; i++) number = 10 * number + (uint32_t)(digits[i] - '0');
  *out = (uint16_t)number;
  return number <= AX_LAST_PRIORITY;
}

/* The last entry's " p1" is taken off it. */
static ax_status take_priority(const char *text, const char *item, size_t *length, ax_spec *spec) {
  size_t digits = *length;
  while (digits > 0 && item[digits - 1] >= '0' && item[digits - 1] <= '9') digits--;
  const bool said = digits < *length && digits > 2 && item[digits - 1] == 'p' && item[digits - 2] == ' ';
  if (!said || item[*length + strspn(item + *length, " ")] != '\0') return AX_OK;
  if (!ax_priority_read(item + digits, *length - digits, &spec->priority))
    return ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": a priority is a number up to %d", text, AX_LAST_PRIORITY);
  for (*length = digits - 1; *length > 0 && item[*length - 1] == ' ';) --*length;
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
    AX_TRY(take_priority(text, item, &length, &spec));
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
  if (out->open == 0 && out->priority == 0) return AX_OK;
  const bool open = out->open != 0;
  *out = (ax_spec){0};
  return open ? ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": \"?\" leaves a dimension to the partitioner, which only constraints do", text)
              : ax_error(AX_INVALID_ARGUMENT, "spec \"%s\": a priority tells the partitioner when it comes, which only constraints do", text);
}

ax_axis_set ax_spec_set(const ax_spec *spec) {
  ax_axis_set set = 0;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    for (uint32_t i = 0; i < spec->count[d]; i++) set |= (ax_axis_set)1 << spec->axis[d][i];
  return set;
}

bool ax_spec_equal(const ax_spec *a, const ax_spec *b) {
  if (a->open != b->open || a->priority != b->priority || memcmp(a->count, b->count, sizeof a->count) != 0) return false;
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
  if (spec->priority > 0) ax_text_add(text, "p%u", spec->priority);
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
