/* Groups are first listed whole, as places on the grid's mesh: `member` has all places once, group after group. Then the axes along
   which members of one group differ are found, and whether the groups are these axes. */
#include "prim/hlo_groups.h"

#include <inttypes.h>
#include <string.h>

#include "prim/bind.h"

typedef enum crossing { REPLICAS, PARTITIONS, REPLICAS_OF_ALL_PARTITIONS, FLATTENED } crossing;

static bool is_set(const ax_hlo_operation *op, const char *name) {
  const ax_hlo_attribute *found = ax_hlo_find(op, name);
  return found != NULL && (found->kind == AX_HLO_UNIT || found->integer != 0);
}

static int64_t channel_of(const ax_hlo_operation *op) {
  const ax_hlo_attribute *handle = ax_hlo_find(op, "channel_handle"), *id = ax_hlo_find(op, "channel_id");
  const ax_hlo_attribute *number = handle != NULL ? ax_hlo_item(handle, "handle") : id;
  return number != NULL ? number->integer : 0;
}

static crossing crossing_of(const ax_hlo_operation *op, ax_hlo_numbering numbering) {
  const bool channel = channel_of(op) > 0;
  if (numbering == AX_HLO_BY_CHANNEL) return channel ? PARTITIONS : REPLICAS;
  if (is_set(op, "use_global_device_ids")) return FLATTENED;
  return channel ? REPLICAS_OF_ALL_PARTITIONS : REPLICAS;
}

/* --- Numbers as they are written --- */

typedef struct matrix { /* of integers, a row for each group */
  int64_t rows, columns;
  const ax_hlo_attribute *from;
} matrix;

static ax_status read_matrix(const ax_hlo_operation *op, const char *name, matrix *out) {
  const ax_hlo_attribute *found = ax_hlo_find(op, name);
  *out = (matrix){.from = found};
  if (found == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", name);
  if (found->kind != AX_HLO_ELEMENTS || found->type == NULL || found->type->rank != 2 || found->type->dtype != AX_S64)
    return ax_error(AX_INVALID_ARGUMENT,
                    "the attribute %s must be a matrix of integers, as dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", name);
  out->rows = found->type->dims[0], out->columns = found->type->dims[1];
  return AX_OK;
}

static int64_t entry(const matrix *m, int64_t row, int64_t column) {
  const int64_t *numbers = m->from->data;
  return numbers[m->from->splat ? 0 : row * m->columns + column];
}

/* --- Places --- */

typedef struct table { /* groups of places; the arrays are owned */
  int64_t devices, partitions, replicas;
  int64_t *member;     /* devices of them */
  int64_t *end;        /* by group; up to `devices` of them */
  int64_t count, used; /* groups; members */
  bool *seen;          /* by place */
  int64_t *place;      /* by partition's number; NULL: the same */
} table;

static void table_deinit(table *t) {
  ax_free(t->member);
  ax_free(t->end);
  ax_free(t->seen);
  ax_free(t->place);
}

static ax_status table_init(table *t, const ax_hlo_grid *grid) {
  *t = (table){.devices = ax_mesh_devices(&grid->mesh), .replicas = grid->replicas};
  t->partitions = t->devices / t->replicas;
  const size_t count = (size_t)t->devices;
  t->member = ax_alloc(count * sizeof t->member[0]);
  t->end = ax_alloc(count * sizeof t->end[0]);
  t->seen = ax_calloc(count, sizeof t->seen[0]);
  if (grid->ids != NULL) t->place = ax_alloc(count * sizeof t->place[0]);
  if (t->member == NULL || t->end == NULL || t->seen == NULL || (grid->ids != NULL && t->place == NULL))
    return ax_out_of_memory(count * sizeof t->member[0]);
  for (size_t i = 0; i < count && grid->ids != NULL; i++) t->place[grid->ids[i]] = (int64_t)i;
  return AX_OK;
}

static ax_status check_number(int64_t number, int64_t count, const char *what) {
  if (number >= 0 && number < count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s %" PRId64 " is none of the %" PRId64 " there are", what, number, count);
}

static int64_t place_of(const table *t, int64_t replica, int64_t partition) {
  return replica * t->partitions + (t->place != NULL ? t->place[partition] : partition);
}

static ax_status add_place(table *t, int64_t place) {
  if (t->seen[place]) return ax_error(AX_INVALID_ARGUMENT, "device %" PRId64 " is in two groups, or twice in one", place);
  t->seen[place] = true;
  t->member[t->used++] = place;
  return AX_OK;
}

static void end_group(table *t) {
  if (t->used > (t->count > 0 ? t->end[t->count - 1] : 0)) t->end[t->count++] = t->used;
}

/* Adds the devices that number `number` means: for `other`, a replica or partition that the numbers leave open. */
static ax_status add_number(table *t, crossing how, int64_t number, int64_t other) {
  if (how == FLATTENED) {
    AX_TRY(check_number(number, t->devices, "device"));
    return add_place(t, place_of(t, number / t->partitions, number % t->partitions));
  }
  if (how == PARTITIONS) {
    AX_TRY(check_number(number, t->partitions, "partition"));
    return add_place(t, place_of(t, other, number));
  }
  AX_TRY(check_number(number, t->replicas, "replica"));
  return add_place(t, place_of(t, number, other));
}

static int64_t numbers_of(const table *t, crossing how) {
  return how == FLATTENED ? t->devices : how == PARTITIONS ? t->partitions : t->replicas;
}

/* One row of numbers, or all numbers there are. */
static ax_status add_row(table *t, crossing how, const matrix *m, int64_t row, int64_t other) {
  if (m->rows == 0 || m->columns == 0) {
    for (int64_t k = 0; k < numbers_of(t, how); k++) AX_TRY(add_number(t, how, k, other));
    return AX_OK;
  }
  for (int64_t k = 0; k < m->columns; k++)
    if (entry(m, row, k) != -1) AX_TRY(add_number(t, how, entry(m, row, k), other));
  return AX_OK;
}

static ax_status fill(table *t, crossing how, const matrix *m) {
  const int64_t rows = m->rows == 0 || m->columns == 0 ? 1 : m->rows;
  const int64_t others = how == FLATTENED ? 1 : how == PARTITIONS ? t->replicas : t->partitions;
  if (how == REPLICAS_OF_ALL_PARTITIONS) {
    for (int64_t row = 0; row < rows; row++, end_group(t))
      for (int64_t other = 0; other < others; other++) AX_TRY(add_row(t, how, m, row, other));
    return AX_OK;
  }
  for (int64_t other = 0; other < others; other++)
    for (int64_t row = 0; row < rows; row++, end_group(t)) AX_TRY(add_row(t, how, m, row, other));
  return AX_OK;
}

static void fill_up(table *t) {
  for (int64_t place = 0; place < t->devices; place++) {
    if (t->seen[place]) continue;
    t->member[t->used++] = place;
    end_group(t);
  }
}

/* --- Axes --- */

static ax_axis_set by_hand(const ax_mesh *mesh) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (ax_mesh_find_manual(axes, mesh->axis[i].name) >= 0) set |= (ax_axis_set)1 << i;
  return set;
}

static ax_axis_set differing(const ax_mesh *mesh, int64_t a, int64_t b) {
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (ax_mesh_coordinate(mesh, a, i) != ax_mesh_coordinate(mesh, b, i)) set |= (ax_axis_set)1 << i;
  return set;
}

static ax_status check_by_hand(const ax_mesh *mesh, ax_axis_set set) {
  const ax_axis_set missing = set & ~by_hand(mesh);
  if (missing == 0) return AX_OK;
  return ax_error(AX_ABSENT, "it exchanges along %s, and no manual computation around it takes these axes",
                  ax_axis_set_string(missing, mesh));
}

static int64_t begin_of(const table *t, int64_t group) { return group > 0 ? t->end[group - 1] : 0; }

/* The order of the axes in which the first group's members are numbered row-major: the last axis is the one along which the second
   member lies, and so on. False: there is none. */
static bool find_order(const table *t, const ax_mesh *mesh, ax_axis_set set, ax_axes *out) {
  uint32_t order[AX_MAX_AXES], count = 0;
  int64_t stride = 1;
  for (ax_axis_set left = set; left != 0; count++) {
    uint32_t axis = 0;
    if (stride >= t->end[0]) return false;
    const ax_axis_set step = differing(mesh, t->member[0], t->member[stride]);
    while (axis < mesh->count && step != (ax_axis_set)1 << axis) axis++;
    if (axis == mesh->count || (left >> axis & 1) == 0) return false;
    left &= ~step;
    order[count] = axis;
    stride *= mesh->axis[axis].size;
  }
  *out = (ax_axes){.count = count};
  for (uint32_t i = 0; i < count; i++) memcpy(out->name[i], mesh->axis[order[count - 1 - i]].name, AX_MAX_NAME);
  return stride == t->end[0];
}

/* Whether each group is all places along the names, in their order. */
static bool are_axes(const table *t, const ax_mesh *mesh, const ax_axes *names, int64_t size) {
  for (int64_t g = 0; g < t->count; g++) {
    const int64_t *member = t->member + begin_of(t, g);
    if (t->end[g] - begin_of(t, g) != size) return false;
    for (int64_t k = 0; k < size; k++)
      if (ax_axes_device(names, mesh, member[0], k) != member[k]) return false;
    if (ax_axes_index(names, mesh, member[0]) != 0) return false;
  }
  return true;
}

/* --- Groups that are no axes --- */

/* The groups of the places that differ from place 0 along the names alone, as " {0,1} {2,3}"; whether all other places have the same
   ones. `first`: by member, where its group begins in t->member. */
static bool add_lists(const table *t, const ax_mesh *mesh, const ax_axes *names, int64_t *first, ax_text *text) {
  for (int64_t g = 0; g < t->count; g++) {
    const int64_t begin = begin_of(t, g);
    if (ax_axes_device(names, mesh, t->member[begin], 0) != 0) continue;
    for (int64_t k = begin; k < t->end[g]; k++) {
      const int64_t index = ax_axes_index(names, mesh, t->member[k]);
      first[index] = begin;
      ax_text_add(text, k == begin ? " {%" PRId64 : ",%" PRId64, index);
    }
    ax_text_add(text, "}");
  }
  for (int64_t g = 0; g < t->count; g++) {
    const int64_t begin = begin_of(t, g), like = first[ax_axes_index(names, mesh, t->member[begin])];
    for (int64_t k = begin; k < t->end[g]; k++)
      if (ax_axes_index(names, mesh, t->member[like + k - begin]) != ax_axes_index(names, mesh, t->member[k]) ||
          first[ax_axes_index(names, mesh, t->member[k])] != like)
        return false;
  }
  return true;
}

static ax_status listed(const table *t, const ax_mesh *mesh, ax_axis_set set, ax_text *text, bool *same) {
  const ax_axes names = ax_axis_set_names(set, mesh);
  const size_t bytes = (size_t)ax_axis_set_size(set, mesh) * sizeof(int64_t);
  int64_t *first = ax_alloc(bytes);
  if (first == NULL) return ax_out_of_memory(bytes);
  ax_text_add(text, "%s", ax_axes_listed(&names).text);
  *same = add_lists(t, mesh, &names, first, text);
  ax_free(first);
  return AX_OK;
}

/* Moves the text into the trace's memory. */
static ax_status keep_text(ax_text *text, const char **out) {
  char *copy = text->failed ? NULL : ax_trace_alloc(text->length + 1);
  const bool failed = text->failed;
  if (copy != NULL) memcpy(copy, text->data != NULL ? text->data : "", text->length + 1);
  *out = copy;
  ax_text_deinit(text);
  return failed ? ax_out_of_memory(0) : AX_OK;
}

/* As few axes as have the groups, else all that there are. */
static ax_status name_groups(const table *t, const ax_mesh *mesh, ax_text *text) {
  ax_axis_set set = 0;
  ax_axes names;
  bool same = false;
  for (int64_t g = 0; g < t->count; g++)
    for (int64_t k = begin_of(t, g); k < t->end[g]; k++) set |= differing(mesh, t->member[begin_of(t, g)], t->member[k]);
  AX_TRY(check_by_hand(mesh, set));
  if (set != 0 && find_order(t, mesh, set, &names) && are_axes(t, mesh, &names, t->end[0])) {
    ax_text_add(text, "%s", ax_axes_listed(&names).text);
    return AX_OK;
  }
  const ax_axis_set most = by_hand(mesh);
  if (most == 0) return ax_error(AX_INVALID_ARGUMENT, "no manual computation is around it");
  for (ax_axis_set tried = set != 0 ? set : most;; tried = most) {
    text->length = 0;
    AX_TRY(listed(t, mesh, tried, text, &same));
    if (same) return AX_OK;
    if (tried == most) break;
  }
  return ax_error(AX_ABSENT, "its groups differ along axes that the manual computation around it leaves free");
}

static ax_status need_grid(const ax_hlo_read_args *args) {
  if (args->devices->grid != NULL) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "it stands outside of manual computations in a module whose arrays have layouts");
}

/* --- replica_groups of named axes: #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [..]> --- */

static ax_status add_axis_ref(const ax_hlo_attribute *ref, const ax_mesh *mesh, ax_axes *names) {
  const ax_hlo_attribute *name = ax_hlo_item(ref, "name");
  if (name == NULL || name->text.length >= AX_MAX_NAME || names->count == AX_MAX_AXES)
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups has an axis without a name");
  memcpy(names->name[names->count], name->text.start, name->text.length);
  if (ax_mesh_find(mesh, names->name[names->count]) < 0)
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups has the axis \"%s\", which the mesh has not", names->name[names->count]);
  names->count++;
  return AX_OK;
}

/* A part of an axis along which groups lie: a coordinate's digit, (coordinate / below) mod size. */
typedef struct digit {
  uint32_t axis;
  int64_t below, size, stride; /* stride: of the axis among places */
} digit;

static ax_status read_digit(const ax_hlo_attribute *ref, const ax_mesh *mesh, digit *out) {
  const ax_hlo_attribute *part = ax_hlo_item(ref, "sub_axis_info");
  const ax_hlo_attribute *pre = part != NULL ? ax_hlo_item(part, "pre_size") : NULL, *size = part != NULL ? ax_hlo_item(part, "size") : NULL;
  ax_axes name = {0};
  int64_t taken = 1;
  AX_TRY(add_axis_ref(ref, mesh, &name));
  *out = (digit){.axis = (uint32_t)ax_mesh_find(mesh, name.name[0]), .below = 1, .stride = 1};
  out->size = mesh->axis[out->axis].size;
  for (uint32_t i = out->axis + 1; i < mesh->count; i++) out->stride *= mesh->axis[i].size;
  if (part == NULL) return AX_OK;
  const bool good = pre != NULL && size != NULL && pre->integer >= 1 && size->integer >= 1 && ax_mul_i64(pre->integer, size->integer, &taken);
  if (!good || out->size % taken != 0)
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups has a part that the axis \"%s\" has not", name.name[0]);
  out->below = out->size / taken, out->size = size->integer;
  return AX_OK;
}

/* Groups along axes, or parts of axes, in their order. */
static ax_status fill_along(table *t, const ax_hlo_attribute *axes, const ax_mesh *mesh) {
  digit digits[AX_MAX_AXES];
  int64_t members = 1;
  if (axes == NULL || axes->kind != AX_HLO_ARRAY || axes->count == 0 || axes->count > AX_MAX_AXES)
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups must have axes");
  for (uint32_t i = 0; i < axes->count; i++) {
    AX_TRY(read_digit(&axes->items[i], mesh, &digits[i]));
    if (!ax_mul_i64(members, digits[i].size, &members) || members > t->devices)
      return ax_error(AX_INVALID_ARGUMENT, "replica_groups has more places along its axes than there are");
  }
  for (int64_t place = 0; place < t->devices; place++) {
    bool first = true;
    for (uint32_t i = 0; i < axes->count; i++)
      first = first && ax_mesh_coordinate(mesh, place, digits[i].axis) / digits[i].below % digits[i].size == 0;
    for (int64_t k = 0; k < members && first; k++) {
      int64_t member = place, rest = k;
      for (uint32_t i = axes->count; i-- > 0; rest /= digits[i].size)
        member += rest % digits[i].size * digits[i].below * digits[i].stride;
      AX_TRY(check_number(member, t->devices, "place"));
      AX_TRY(add_place(t, member));
    }
    if (first) end_group(t);
  }
  return AX_OK;
}

static bool has_parts(const ax_hlo_attribute *from) {
  const ax_hlo_attribute *axes = ax_hlo_item(from, "axes");
  for (uint32_t i = 0; axes != NULL && axes->kind == AX_HLO_ARRAY && i < axes->count; i++)
    if (ax_hlo_item(&axes->items[i], "sub_axis_info") != NULL) return true;
  return false;
}

static ax_status read_mesh_axes(const ax_hlo_read_args *args, const ax_hlo_attribute *from, ax_text *text, int64_t *size) {
  const ax_hlo_attribute *axes = ax_hlo_item(from, "axes");
  ax_axes names = {0};
  ax_axis_set set;
  if (axes == NULL || axes->kind != AX_HLO_ARRAY || axes->count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups must have axes");
  for (uint32_t i = 0; i < axes->count; i++) AX_TRY(add_axis_ref(&axes->items[i], &args->devices->grid->mesh, &names));
  AX_TRY(ax_axes_resolve(&names, &args->devices->grid->mesh, &set));
  AX_TRY(check_by_hand(&args->devices->grid->mesh, set));
  *size = ax_axis_set_size(set, &args->devices->grid->mesh);
  ax_text_add(text, "%s", ax_axes_listed(&names).text);
  return AX_OK;
}

/* --- The questions --- */

static ax_status read_table(const ax_hlo_read_args *args, ax_hlo_numbering numbering, table *t) {
  const ax_hlo_attribute *given = ax_hlo_find(args->op, "replica_groups");
  matrix m;
  AX_TRY(table_init(t, args->devices->grid));
  if (given != NULL && given->kind == AX_HLO_DICTIONARY) return fill_along(t, ax_hlo_item(given, "axes"), &args->devices->grid->mesh);
  AX_TRY(read_matrix(args->op, "replica_groups", &m));
  return fill(t, crossing_of(args->op, numbering), &m);
}

static ax_status read_groups(const ax_hlo_read_args *args, ax_hlo_numbering numbering, ax_text *text, int64_t *size) {
  const ax_hlo_attribute *given = ax_hlo_find(args->op, "replica_groups");
  table t = {0};
  AX_TRY(need_grid(args));
  if (given != NULL && given->kind == AX_HLO_DICTIONARY && !has_parts(given)) return read_mesh_axes(args, given, text, size);
  ax_status status = read_table(args, numbering, &t);
  if (status == AX_OK) fill_up(&t);
  if (status == AX_OK) status = name_groups(&t, &args->devices->grid->mesh, text);
  if (status == AX_OK) *size = t.end[0];
  table_deinit(&t);
  return status;
}

ax_status ax_hlo_read_groups(const ax_hlo_read_args *args, ax_hlo_numbering numbering, const char **names, int64_t *size) {
  ax_text text = {0};
  int64_t members = 1;
  ax_status status = read_groups(args, numbering, &text, &members);
  if (status == AX_OK) status = keep_text(&text, names);
  ax_text_deinit(&text);
  if (size != NULL) *size = members;
  return status;
}

static ax_status list_peers(const table *t, ax_hlo_peers *out) {
  enum { most = 1 << 24 };
  if (out->columns * t->devices > most) return ax_error(AX_ABSENT, "lists of %" PRId64 " members for each device", out->columns);
  const size_t bytes = (size_t)(t->devices * out->columns) * sizeof out->place[0];
  out->place = ax_alloc(bytes);
  if (out->place == NULL) return ax_out_of_memory(bytes);
  for (int64_t i = 0; i < t->devices * out->columns; i++) out->place[i] = -1;
  for (int64_t g = 0; g < t->count; g++)
    for (int64_t k = begin_of(t, g); k < t->end[g]; k++)
      for (int64_t c = 0; c < out->columns && begin_of(t, g) + c < t->end[g]; c++)
        out->place[t->member[k] * out->columns + c] = t->member[begin_of(t, g) + c];
  return AX_OK;
}

ax_status ax_hlo_read_peers(const ax_hlo_read_args *args, ax_hlo_numbering numbering, bool only_first, ax_hlo_peers *out) {
  table t = {0};
  *out = (ax_hlo_peers){.columns = 1};
  AX_TRY(need_grid(args));
  ax_status status = read_table(args, numbering, &t);
  out->devices = t.devices;
  for (int64_t g = 0; g < t.count && !only_first; g++)
    if (t.end[g] - begin_of(&t, g) > out->columns) out->columns = t.end[g] - begin_of(&t, g);
  if (status == AX_OK) status = list_peers(&t, out);
  table_deinit(&t);
  return status;
}

/* --- Pairs --- */

/* The place that each place sends to, -1: none. */
static ax_status fill_targets(const table *t, const matrix *m, bool partitions, int64_t *target) {
  const int64_t others = partitions ? t->replicas : t->partitions, count = partitions ? t->partitions : t->replicas;
  for (int64_t k = 0; k < t->devices; k++) target[k] = -1;
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t other = 0; other < others; other++) {
      int64_t place[2];
      for (int side = 0; side < 2; side++) {
        const int64_t number = entry(m, row, side);
        AX_TRY(check_number(number, count, partitions ? "partition" : "replica"));
        place[side] = partitions ? place_of(t, other, number) : place_of(t, number, other);
      }
      if (target[place[0]] >= 0 || t->seen[place[1]])
        return ax_error(AX_INVALID_ARGUMENT, "two pairs have one source, or one target");
      t->seen[place[1]] = true;
      target[place[0]] = place[1];
    }
  return AX_OK;
}

/* Whether members along the names send to the same members wherever they are. */
static bool send_alike(const table *t, const ax_mesh *mesh, const ax_axes *names, const int64_t *target) {
  for (int64_t place = 0; place < t->devices; place++) {
    const int64_t like = ax_axes_device(names, mesh, 0, ax_axes_index(names, mesh, place));
    const int64_t to = target[like] < 0 ? -1 : ax_axes_device(names, mesh, place, ax_axes_index(names, mesh, target[like]));
    if (target[place] != to) return false;
  }
  return true;
}

static ax_status name_pairs(const table *t, const ax_mesh *mesh, const int64_t *target, ax_axes *names) {
  ax_axis_set set = 0;
  for (int64_t place = 0; place < t->devices; place++)
    if (target[place] >= 0) set |= differing(mesh, place, target[place]);
  AX_TRY(check_by_hand(mesh, set));
  const ax_axis_set most = by_hand(mesh);
  if (most == 0) return ax_error(AX_INVALID_ARGUMENT, "no manual computation is around it");
  *names = ax_axis_set_names(set != 0 ? set : most, mesh);
  if (send_alike(t, mesh, names, target)) return AX_OK;
  *names = ax_axis_set_names(most, mesh);
  if (send_alike(t, mesh, names, target)) return AX_OK;
  return ax_error(AX_ABSENT, "its pairs differ along axes that the manual computation around it leaves free");
}

static ax_status keep_pairs(const ax_mesh *mesh, const ax_axes *names, const int64_t *target, ax_pairs *pairs) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(names, mesh, &set));
  const int64_t members = ax_axis_set_size(set, mesh);
  *pairs = (ax_pairs){.v = ax_trace_alloc((size_t)members * sizeof pairs->v[0])};
  for (int64_t k = 0; k < members && pairs->v != NULL; k++) {
    const int64_t from = ax_axes_device(names, mesh, 0, k);
    if (target[from] < 0) continue;
    pairs->v[pairs->count][0] = k;
    pairs->v[pairs->count++][1] = ax_axes_index(names, mesh, target[from]);
  }
  return AX_OK;
}

static ax_status read_pairs(const ax_hlo_read_args *args, table *t, int64_t **target, ax_text *text, ax_pairs *pairs) {
  const ax_mesh *mesh = &args->devices->grid->mesh;
  ax_axes names;
  matrix m;
  AX_TRY(table_init(t, args->devices->grid));
  AX_TRY(read_matrix(args->op, "source_target_pairs", &m));
  if (m.rows > 0 && m.columns != 2) return ax_error(AX_INVALID_ARGUMENT, "source_target_pairs must have two columns");
  *target = ax_alloc((size_t)t->devices * sizeof(*target)[0]);
  if (*target == NULL) return ax_out_of_memory((size_t)t->devices * sizeof(*target)[0]);
  AX_TRY(fill_targets(t, &m, channel_of(args->op) > 0, *target));
  AX_TRY(name_pairs(t, mesh, *target, &names));
  ax_text_add(text, "%s", ax_axes_listed(&names).text);
  return keep_pairs(mesh, &names, *target, pairs);
}

ax_status ax_hlo_read_pairs(const ax_hlo_read_args *args, const char **names, ax_pairs *pairs) {
  ax_text text = {0};
  table t = {0};
  int64_t *target = NULL;
  AX_TRY(need_grid(args));
  ax_status status = read_pairs(args, &t, &target, &text, pairs);
  if (status == AX_OK) status = keep_text(&text, names);
  ax_text_deinit(&text);
  ax_free(target);
  table_deinit(&t);
  return status;
}

ax_status ax_hlo_groups_uneven(const ax_hlo_read_args *args, ax_hlo_numbering numbering, bool *out) {
  table t = {0};
  *out = false;
  AX_TRY(need_grid(args));
  const ax_status status = read_table(args, numbering, &t);
  if (status == AX_OK) fill_up(&t);
  for (int64_t g = 1; g < t.count && status == AX_OK; g++) *out = *out || t.end[g] - begin_of(&t, g) != t.end[0];
  table_deinit(&t);
  return status;
}

/* --- Modules that do not say how many devices there are --- */

/* There is a device of this number. */
static void count_device(int64_t *count, int64_t number) {
  if (number >= *count && number < AX_HLO_MOST_DEVICES) *count = number + 1;
}

void ax_hlo_count_devices(const ax_hlo_operation *op, ax_hlo_numbering numbering, int64_t *replicas, int64_t *partitions) {
  matrix m;
  const bool pairs = ax_hlo_find(op, "source_target_pairs") != NULL;
  if (read_matrix(op, pairs ? "source_target_pairs" : "replica_groups", &m) != AX_OK) return;
  const crossing how = crossing_of(op, numbering);
  for (int64_t row = 0; row < m.rows; row++)
    for (int64_t k = 0; k < m.columns; k++)
      count_device(how == PARTITIONS || how == FLATTENED ? partitions : replicas, entry(&m, row, k));
}
