/* Texts of Shardy's attributes. They are short and have one grammar, so they are read here as they are needed, by a cursor. */
#include "hlo/sdy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/reader.h"
#include "ir/program.h"

typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) c->at++;
}

static bool take(cursor *c, const char *mark) {
  const size_t length = strlen(mark);
  skip(c);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, mark, length) != 0) return false;
  c->at += length;
  return true;
}

static ax_status expected(const cursor *c, const char *what) {
  const size_t left = (size_t)(c->end - c->at);
  if (left == 0) return ax_error(AX_PARSE_ERROR, "a layout of sdy ends where %s is expected", what);
  return ax_error(AX_PARSE_ERROR, "a layout of sdy has '%.*s' where %s is expected", (int)(left < 24 ? left : 24), c->at, what);
}

static ax_status want(cursor *c, const char *mark) { return take(c, mark) ? AX_OK : expected(c, mark); }

static ax_status want_number(cursor *c, int64_t *out) {
  skip(c);
  if (c->at == c->end || !ax_hlo_is_digit(*c->at)) return expected(c, "a number");
  for (*out = 0; c->at < c->end && ax_hlo_is_digit(*c->at); c->at++) {
    if (*out > (INT64_MAX - 9) / 10) return expected(c, "a smaller number");
    *out = *out * 10 + (*c->at - '0');
  }
  return AX_OK;
}

static ax_status want_quoted(cursor *c, ax_hlo_slice *out) {
  AX_TRY(want(c, "\""));
  out->start = c->at;
  while (c->at < c->end && *c->at != '"') c->at++;
  out->length = (size_t)(c->at - out->start);
  return want(c, "\"");
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* The word in front of what an attribute's text begins with: #sdy.sharding, mesh, #sdy<manual_axes. */
static void skip_to(cursor *c, const char *marks) {
  while (c->at < c->end && strchr(marks, *c->at) == NULL) c->at++;
}

/* --- Meshes --- */

/* A name that Axle takes: letters, digits and _. */
static ax_status axis_name(ax_hlo_slice text, char out[AX_MAX_NAME]) {
  const bool digit = text.length > 0 && ax_hlo_is_digit(text.start[0]);
  const size_t first = digit || text.length == 0 || (text.length == 1 && text.start[0] == '_') ? 1 : 0;
  if (text.length + first >= AX_MAX_NAME)
    return ax_error(AX_ABSENT, "the axis \"%.*s\" has a name of %zu bytes, and %d are the most", (int)text.length, text.start,
                    text.length, AX_MAX_NAME - 2);
  memset(out, 0, AX_MAX_NAME);
  if (first > 0) out[0] = 'a';
  for (size_t i = 0; i < text.length; i++)
    out[first + i] = is_letter(text.start[i]) || ax_hlo_is_digit(text.start[i]) ? text.start[i] : '_';
  return AX_OK;
}

static ax_status read_axis(cursor *c, ax_mesh *mesh) {
  ax_hlo_slice name;
  AX_TRY(want_quoted(c, &name));
  if (mesh->count == AX_MAX_AXES) return ax_error(AX_ABSENT, "a mesh of more than %d axes", AX_MAX_AXES);
  ax_axis *axis = &mesh->axis[mesh->count++];
  AX_TRY(axis_name(name, axis->name));
  AX_TRY(want(c, "="));
  return want_number(c, &axis->size);
}

/* [0, 2, 1, 3]. Each number stands there once, and there are as many as places. */
static ax_status check_ids(const int64_t *ids, int64_t count) {
  bool *seen = ax_calloc((size_t)count, sizeof seen[0]), good = seen != NULL;
  if (seen == NULL) return ax_out_of_memory((size_t)count);
  for (int64_t i = 0; i < count && good; i++) {
    good = ids[i] < count && !seen[ids[i]];
    if (good) seen[ids[i]] = true;
  }
  ax_free(seen);
  return good ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "a mesh's device_ids must be 0 to %" PRId64 ", each once", count - 1);
}

static ax_status read_ids(cursor *c, ax_arena *arena, ax_sdy_mesh *out) {
  const int64_t devices = ax_mesh_devices(&out->mesh);
  uint32_t count = 0;
  AX_TRY(want(c, "["));
  if (devices > c->end - c->at) return expected(c, "as many ids as the mesh has places");
  int64_t *ids = ax_arena_alloc(arena, (size_t)devices * sizeof ids[0]);
  if (ids == NULL) return ax_out_of_memory((size_t)devices * sizeof ids[0]);
  do {
    if (count == devices) return expected(c, "']'");
    AX_TRY(want_number(c, &ids[count++]));
  } while (take(c, ","));
  AX_TRY(want(c, "]"));
  if (out->mesh.count == 0) return AX_OK; /* one device, whichever it is */
  if (count != devices) return expected(c, "as many ids as the mesh has places");
  AX_TRY(check_ids(ids, devices));
  bool in_order = true;
  for (uint32_t i = 0; i < count; i++) in_order = in_order && ids[i] == i;
  if (!in_order) out->ids = ids, out->id_count = count;
  return AX_OK;
}

/* [axes], device_ids=[..]> */
static ax_status read_mesh(cursor *c, ax_arena *arena, ax_sdy_mesh *out) {
  AX_TRY(want(c, "<"));
  AX_TRY(want(c, "["));
  if (!take(c, "]")) {
    do AX_TRY(read_axis(c, &out->mesh));
    while (take(c, ","));
    AX_TRY(want(c, "]"));
  }
  AX_TRY(ax_mesh_check(&out->mesh));
  if (take(c, ",")) {
    AX_TRY(want(c, "device_ids"));
    AX_TRY(want(c, "="));
    AX_TRY(read_ids(c, arena, out));
  }
  return want(c, ">");
}

ax_status ax_sdy_read_mesh(ax_hlo_slice text, ax_arena *arena, ax_sdy_mesh *out) {
  cursor c = {text.start, text.start + text.length};
  *out = (ax_sdy_mesh){0};
  skip_to(&c, "<");
  return read_mesh(&c, arena, out);
}

/* --- Shardings --- */

/* Cuts axis `at` of the mesh into parts before, in and behind (pre)size, as far as these have more than one place. *part: the one
   in the middle. Other numbers of axes in `spec` move on. */
static ax_status cut_axis(ax_sdy_sharding *s, uint32_t at, int64_t pre, int64_t size, uint32_t *part) {
  ax_mesh *mesh = &s->mesh.mesh;
  const ax_axis whole = mesh->axis[at];
  int64_t taken;
  if (pre < 1 || size < 1 || !ax_mul_i64(pre, size, &taken) || whole.size % taken != 0)
    return ax_error(AX_ABSENT, "(%" PRId64 ")%" PRId64 " is no part of the axis \"%s\" that goes with the others", pre, size,
                    whole.name);
  const int64_t sizes[] = {pre, size, whole.size / taken};
  uint32_t added = 0;
  for (int k = 0; k < 3; k++) added += sizes[k] > 1 || k == 1;
  if (mesh->count + added - 1 > AX_MAX_AXES) return ax_error(AX_ABSENT, "a mesh of more than %d axes", AX_MAX_AXES);
  memmove(&mesh->axis[at + added], &mesh->axis[at + 1], (mesh->count - at - 1) * sizeof whole);
  mesh->count += added - 1;
  for (uint32_t d = 0; d < s->spec.rank; d++)
    for (uint32_t k = 0; k < s->spec.count[d]; k++)
      if (s->spec.axis[d][k] > at) s->spec.axis[d][k] = (uint8_t)(s->spec.axis[d][k] + added - 1);
  for (int k = 0, to = (int)at; k < 3; k++) {
    if (sizes[k] == 1 && k != 1) continue;
    ax_axis *axis = &mesh->axis[to];
    *axis = whole;
    axis->size = sizes[k];
    if ((size_t)snprintf(axis->name, sizeof axis->name, "%.24s__%u", whole.name, (unsigned)to) >= sizeof axis->name)
      return ax_error(AX_ABSENT, "the axis \"%s\" has too long a name to be cut up", whole.name);
    if (k == 1) *part = (uint32_t)to;
    to++;
  }
  return AX_OK;
}

/* Where the parts of an axis stand that has been cut up: those whose names begin with its. */
typedef struct parts {
  uint32_t first, count;
} parts;

static parts parts_of(const ax_mesh *mesh, const char *name) {
  parts found = {0};
  const size_t length = strlen(name);
  for (uint32_t i = 0; i < mesh->count; i++) {
    const char *own = mesh->axis[i].name;
    if (strcmp(own, name) != 0 && (strncmp(own, name, length) != 0 || strncmp(own + length, "__", 2) != 0)) continue;
    if (found.count++ == 0) found.first = i;
    if (strcmp(own, name) == 0) return (parts){i, 1};
  }
  return found;
}

/* "data", or "data":(1)2, a part of it. The axes' numbers go to `axes`. */
static ax_status read_axis_ref(cursor *c, ax_sdy_sharding *s, uint8_t *axes, uint8_t *count) {
  ax_hlo_slice quoted;
  char name[AX_MAX_NAME];
  int64_t pre = 1, size = 0;
  AX_TRY(want_quoted(c, &quoted));
  AX_TRY(axis_name(quoted, name));
  const bool cut = take(c, ":");
  if (cut) {
    AX_TRY(want(c, "("));
    AX_TRY(want_number(c, &pre));
    AX_TRY(want(c, ")"));
    AX_TRY(want_number(c, &size));
  }
  const parts whole = parts_of(&s->mesh.mesh, name);
  if (whole.count == 0) return ax_error(AX_INVALID_ARGUMENT, "the mesh has no axis \"%s\"", name);
  if (*count + whole.count > AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "a dimension is cut by more axes than there are");
  if (!cut) { /* all parts of it */
    for (uint32_t k = 0; k < whole.count; k++) axes[(*count)++] = (uint8_t)(whole.first + k);
    return AX_OK;
  }
  uint32_t at = whole.first; /* the part that has all of (pre)size in it */
  while (at + 1 < whole.first + whole.count && pre >= s->mesh.mesh.axis[at].size && pre % s->mesh.mesh.axis[at].size == 0)
    pre /= s->mesh.mesh.axis[at++].size;
  uint32_t part = at;
  if (pre == 1 && size == s->mesh.mesh.axis[at].size) {
    axes[(*count)++] = (uint8_t)at;
    return AX_OK;
  }
  AX_TRY(cut_axis(s, at, pre, size, &part));
  axes[(*count)++] = (uint8_t)part;
  return AX_OK;
}

/* A layout has one priority: the least of its dimensions with axes. */
static void take_priority(ax_sdy_sharding *s, uint16_t priority) {
  if (!s->any_axes || priority < s->spec.priority) s->spec.priority = priority;
  s->any_axes = true;
}

/* {"data", "model", ?}p1 */
static ax_status read_dimension(cursor *c, ax_sdy_sharding *s) {
  int64_t priority = 0;
  const uint32_t d = s->spec.rank;
  if (d == AX_MAX_RANK) return ax_error(AX_ABSENT, "a layout of more than %d dimensions", AX_MAX_RANK);
  s->spec.rank++;
  AX_TRY(want(c, "{"));
  if (!take(c, "}")) {
    bool open = false;
    do {
      open = take(c, "?");
      if (!open) AX_TRY(read_axis_ref(c, s, s->spec.axis[d], &s->spec.count[d]));
    } while (!open && take(c, ","));
    if (open && s->spec.count[d] == 0) s->spec.open |= (uint16_t)(1u << d);
    AX_TRY(want(c, "}"));
  }
  if (take(c, "p")) AX_TRY(want_number(c, &priority));
  if (priority > AX_LAST_PRIORITY) return ax_error(AX_INVALID_ARGUMENT, "a layout's priority is a number up to %d", AX_LAST_PRIORITY);
  if (s->spec.count[d] > 0) take_priority(s, (uint16_t)priority);
  return AX_OK;
}

/* {"data", "model"} */
static ax_status read_set(cursor *c, ax_sdy_sharding *s, ax_axis_set *out) {
  uint8_t axes[AX_MAX_AXES], count = 0;
  *out = 0;
  AX_TRY(want(c, "{"));
  if (take(c, "}")) return AX_OK;
  do AX_TRY(read_axis_ref(c, s, axes, &count));
  while (take(c, ","));
  for (uint8_t k = 0; k < count; k++) *out |= (ax_axis_set)1 << axes[k];
  return want(c, "}");
}

/* @mesh, or a mesh itself. */
static ax_status read_its_mesh(cursor *c, const ax_sdy_named_mesh *meshes, uint32_t count, ax_arena *arena, ax_sdy_mesh *out) {
  if (!take(c, "@")) {
    AX_TRY(want(c, "mesh"));
    return read_mesh(c, arena, out);
  }
  const bool quoted = take(c, "\"");
  ax_hlo_slice name = {c->at, 0};
  while (c->at < c->end && (quoted ? *c->at != '"' : strchr(",> \n", *c->at) == NULL)) c->at++;
  name.length = (size_t)(c->at - name.start);
  if (quoted) AX_TRY(want(c, "\""));
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_same(meshes[i].name, name)) {
      *out = meshes[i].mesh;
      return AX_OK;
    }
  return ax_error(AX_INVALID_ARGUMENT, "there is no mesh @%.*s", (int)name.length, name.start);
}

/* No axis cuts an array twice. */
static ax_status check_once(const ax_sdy_sharding *s) {
  ax_axis_set seen = 0;
  for (uint32_t d = 0; d < s->spec.rank; d++)
    for (uint32_t k = 0; k < s->spec.count[d]; k++) {
      const ax_axis_set bit = (ax_axis_set)1 << s->spec.axis[d][k];
      if ((seen & bit) != 0)
        return ax_error(AX_INVALID_ARGUMENT, "a layout has the axis \"%s\" twice", s->mesh.mesh.axis[s->spec.axis[d][k]].name);
      seen |= bit;
    }
  return AX_OK;
}

static ax_status read_rest(cursor *c, ax_sdy_sharding *out) {
  ax_axis_set replicated;
  while (take(c, ",")) {
    const bool whole = take(c, "replicated");
    if (!whole) AX_TRY(want(c, "unreduced"));
    AX_TRY(want(c, "="));
    const uint32_t axes = out->mesh.mesh.count;
    AX_TRY(read_set(c, out, whole ? &replicated : &out->unreduced));
    if (!whole && out->mesh.mesh.count != axes) return ax_error(AX_ABSENT, "an array that is unreduced along parts of axes is not read");
  }
  return want(c, ">");
}

ax_status ax_sdy_read_sharding(ax_hlo_slice text, const ax_sdy_named_mesh *meshes, uint32_t count, ax_arena *arena,
                               ax_sdy_sharding *out) {
  cursor c = {text.start, text.start + text.length};
  *out = (ax_sdy_sharding){0};
  skip_to(&c, "<");
  AX_TRY(want(&c, "<"));
  AX_TRY(read_its_mesh(&c, meshes, count, arena, &out->mesh));
  out->whole = out->mesh.mesh;
  AX_TRY(want(&c, ","));
  AX_TRY(want(&c, "["));
  if (!take(&c, "]")) {
    do AX_TRY(read_dimension(&c, out));
    while (take(&c, ","));
    AX_TRY(want(&c, "]"));
  }
  AX_TRY(read_rest(&c, out));
  return check_once(out);
}

bool ax_sdy_next(ax_hlo_slice list, const char **at, ax_hlo_slice *item) {
  cursor c = {list.start, list.start + list.length};
  if (*at == NULL)
    skip_to(&c, "[");
  else
    c.at = *at;
  if (c.at == c.end || (!take(&c, *at == NULL ? "[" : ","))) return false;
  skip(&c);
  if (c.at == c.end || *c.at == ']') return false;
  item->start = c.at;
  int nested = 0;
  for (bool quoted = false; c.at < c.end; c.at++) {
    if (*c.at == '"') quoted = !quoted;
    if (quoted) continue;
    if (strchr("<[{", *c.at) != NULL)
      nested++;
    else if (strchr(">]}", *c.at) != NULL && --nested < 0)
      break;
    else if (*c.at == ',' && nested == 0)
      break;
  }
  item->length = (size_t)(c.at - item->start);
  *at = c.at;
  return true;
}

ax_status ax_sdy_read_axes(ax_hlo_slice text, const ax_sdy_mesh *mesh, ax_axis_set *out) {
  cursor c = {text.start, text.start + text.length};
  ax_sdy_sharding s = {.mesh = *mesh};
  *out = 0;
  skip_to(&c, "{");
  AX_TRY(read_set(&c, &s, out));
  if (s.mesh.mesh.count == mesh->mesh.count) return AX_OK;
  return ax_error(AX_ABSENT, "parts of axes cannot be taken by hand");
}
