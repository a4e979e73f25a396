/* StableHLO text. The generic form has one grammar for every op:

     %5, %6 = "name"(%1, %2) ({ ^bb0(%7: type): ops "stablehlo.return"(%8) : (type) -> () }, {..}) {attributes} : (types) -> types

   The end of the text shows how far an op is written: if it is "}", a region has just ended, so the next region begins with a
   comma. SSA ids are never used twice in a module. */
#include "hlo/hlo.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/number.h"
#include "ir/prim.h"

/* --- Types and lists --- */

ax_type ax_hlo_physical(const ax_type *type) {
  ax_type words = *type;
  if (!ax_is_key(type->dtype)) return words;
  words.dtype = AX_U32;
  words.dims[words.rank++] = 2;
  return words;
}

void ax_hlo_type(ax_text *text, const ax_type *type) {
  if (type->form == AX_TOKEN) {
    ax_text_add(text, "!stablehlo.token");
    return;
  }
  ax_text_add(text, type->form == AX_FUTURE ? "!stablehlo.future<tensor<" : "tensor<");
  for (uint32_t d = 0; d < type->rank; d++) ax_text_add(text, "%" PRId64 "x", type->dims[d]);
  if (ax_is_key(type->dtype)) ax_text_add(text, "2x"); /* the words of a key */
  ax_text_add(text, type->form == AX_FUTURE ? "%s>>" : "%s>", ax_dtype_get(type->dtype)->hlo);
}

static void add_types(ax_text *text, const ax_type *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(text, "%s", i > 0 ? ", " : "");
    ax_hlo_type(text, &types[i]);
  }
}

static void add_ids(ax_text *text, const uint32_t *ids, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, "%s%%%u", i > 0 ? ", " : "", ids[i]);
}

/* Adds "(types) -> type" for one result, and "(types) -> (types)" for any other number of results. */
static void add_signature(ax_text *text, const ax_type *in, uint32_t in_count, const ax_type *out, uint32_t out_count) {
  ax_text_add(text, "(");
  add_types(text, in, in_count);
  ax_text_add(text, out_count == 1 ? ") -> " : ") -> (");
  add_types(text, out, out_count);
  ax_text_add(text, out_count == 1 ? "" : ")");
}

static void add_indent(ax_hlo *hlo) { ax_text_add(&hlo->text, "%*s", (int)(2 * hlo->indent), ""); }

/* --- Ops --- */

uint32_t ax_hlo_begin(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, uint32_t out_count) {
  uint32_t first = hlo->next;
  hlo->next += out_count;
  if (hlo->indent == hlo->watched) hlo->watched_ops++;
  add_indent(hlo);
  for (uint32_t i = 0; i < out_count; i++) ax_text_add(&hlo->text, "%s%%%u", i > 0 ? ", " : "", first + i);
  ax_text_add(&hlo->text, "%s\"%s\"(", out_count > 0 ? " = " : "", name);
  add_ids(&hlo->text, in, in_count);
  ax_text_add(&hlo->text, ")");
  return first;
}

static bool after_region(const ax_hlo *hlo) {
  return hlo->text.length > 0 && hlo->text.data[hlo->text.length - 1] == '}';
}

uint32_t ax_hlo_region_begin(ax_hlo *hlo, const ax_type *arg_types, uint32_t arg_count) {
  uint32_t first = hlo->next;
  hlo->next += arg_count;
  ax_text_add(&hlo->text, after_region(hlo) ? ", {\n" : " ({\n");
  add_indent(hlo);
  hlo->indent++;
  ax_text_add(&hlo->text, "^bb0");
  for (uint32_t i = 0; i < arg_count; i++) {
    ax_text_add(&hlo->text, "%s%%%u: ", i > 0 ? ", " : "(", first + i);
    ax_hlo_type(&hlo->text, &arg_types[i]);
  }
  ax_text_add(&hlo->text, arg_count > 0 ? "):\n" : ":\n");
  return first;
}

void ax_hlo_region_end(ax_hlo *hlo, const uint32_t *results, const ax_type *types, uint32_t count) {
  ax_hlo_op(hlo, "stablehlo.return", results, types, count, NULL, NULL, 0);
  hlo->indent--;
  add_indent(hlo);
  ax_text_add(&hlo->text, "}");
}

void ax_hlo_end(ax_hlo *hlo, const char *attributes, const ax_type *in_types, uint32_t in_count,
                const ax_type *out_types, uint32_t out_count) {
  if (after_region(hlo)) ax_text_add(&hlo->text, ")");
  if (attributes != NULL) {
    ax_text_add(&hlo->text, " {");
    ax_text_add_bytes(&hlo->text, attributes, strlen(attributes)); /* constants may be long */
    ax_text_add(&hlo->text, "}");
  }
  ax_text_add(&hlo->text, " : ");
  add_signature(&hlo->text, in_types, in_count, out_types, out_count);
  ax_text_add(&hlo->text, "\n");
}

uint32_t ax_hlo_op(ax_hlo *hlo, const char *name, const uint32_t *in, const ax_type *in_types, uint32_t in_count,
                   const char *attributes, const ax_type *out_types, uint32_t out_count) {
  uint32_t first = ax_hlo_begin(hlo, name, in, in_count, out_count);
  ax_hlo_end(hlo, attributes, in_types, in_count, out_types, out_count);
  return first;
}

ax_status ax_hlo_attributes_end(ax_text *attributes) {
  bool failed = attributes->failed;
  ax_text_deinit(attributes);
  return failed ? ax_out_of_memory(0) : AX_OK;
}

/* --- Constants --- */

/* Adds a finite value in 2, 7, 12 or 17 digits, the first of these that reads back as the same number. MLIR wants a point after the
   first digit, whatever sign the locale has for it. */
static void add_float(ax_text *text, ax_dtype dtype, double value) {
  char digits[64];
  for (int precision = 1; precision <= 16; precision += 5) {
    snprintf(digits, sizeof digits, "%.*e", precision, value);
    double again = ax_number_round(dtype, (ax_number){.f = strtod(digits, NULL)}).f;
    if (again == value) break;
  }
  size_t whole = digits[0] == '-' ? 2 : 1, fraction = whole + strcspn(digits + whole, "0123456789");
  ax_text_add(text, "%.*s.%s", (int)whole, digits, digits + fraction);
}

static void add_element(ax_text *text, ax_dtype dtype, const void *data, int64_t index) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  ax_number number = ax_number_load(dtype, data, index);
  uint64_t bits = 0;
  switch (info->kind) {
    case AX_KIND_BOOL:
      ax_text_add(text, number.u != 0 ? "true" : "false");
      break;
    case AX_KIND_SIGNED:
      ax_text_add(text, "%" PRId64, number.i);
      break;
    case AX_KIND_UNSIGNED:
      ax_text_add(text, "%" PRIu64, number.u);
      break;
    case AX_KIND_KEY: break; /* they are written as words */
    case AX_KIND_COMPLEX:
      ax_text_add(text, "(");
      add_element(text, ax_part_dtype(dtype), data, 2 * index);
      ax_text_add(text, ", ");
      add_element(text, ax_part_dtype(dtype), data, 2 * index + 1);
      ax_text_add(text, ")");
      break;
    case AX_KIND_FLOAT:
      memcpy(&bits, (const char *)data + (size_t)index * info->bytes, info->bytes);
      if (isfinite(number.f))
        add_float(text, dtype, number.f);
      else
        ax_text_add(text, "0x%0*" PRIX64, (int)info->bytes * 2, bits);
      break;
  }
}

/* Adds "[[a, b], [c, d]]": dimension `dim` and those inside it, which hold `count` elements from number `first` on. */
static void add_nested(ax_text *text, const ax_type *type, const void *data, uint32_t dim, int64_t first,
                       int64_t count) {
  if (dim == type->rank) {
    add_element(text, type->dtype, data, first);
    return;
  }
  int64_t step = count / type->dims[dim];
  ax_text_add(text, "[");
  for (int64_t i = 0; i < type->dims[dim]; i++) {
    ax_text_add(text, "%s", i > 0 ? ", " : "");
    add_nested(text, type, data, dim + 1, first + i * step, step);
  }
  ax_text_add(text, "]");
}

/* Adds "0x3F80..": the bytes as they lie in memory, which MLIR takes to be little-endian. */
static void add_bytes(ax_text *text, const void *data, size_t bytes) {
  static const char digit[] = "0123456789ABCDEF";
  const unsigned char *from = data;
  ax_text_add(text, "\"0x");
  for (size_t i = 0; i < bytes; i++) {
    char pair[] = {digit[from[i] >> 4], digit[from[i] & 15]};
    ax_text_add_bytes(text, pair, 2);
  }
  ax_text_add(text, "\"");
}

static uint32_t add_constant(ax_hlo *hlo, const ax_type *type, ax_text *value) {
  ax_text_add(value, "> : ");
  ax_hlo_type(value, type);
  uint32_t id = ax_hlo_op(hlo, "stablehlo.constant", NULL, NULL, 0, value->data, type, 1);
  hlo->text.failed = hlo->text.failed || value->failed;
  ax_text_deinit(value);
  return id;
}

uint32_t ax_hlo_splat(ax_hlo *hlo, const ax_type *type, const void *scalar) {
  const ax_type made = ax_hlo_physical(type);
  ax_text value = {0};
  ax_text_add(&value, "value = dense<");
  add_element(&value, made.dtype, scalar, 0);
  return add_constant(hlo, &made, &value);
}

/* Few elements are written as numbers, so that people can read them, and many as bytes. Bools are never written as bytes, because
   MLIR packs eight of them into one. */
uint32_t ax_hlo_dense(ax_hlo *hlo, const ax_type *type, const void *data) {
  enum { FEW = 64 };
  const ax_type made = ax_hlo_physical(type);
  ax_text value = {0};
  int64_t elems = ax_type_elems(&made);
  ax_text_add(&value, "value = dense<");
  if (elems > 0 && (elems <= FEW || made.dtype == AX_BOOL))
    add_nested(&value, &made, data, 0, 0, elems);
  else if (elems > 0)
    add_bytes(&value, data, (size_t)elems * ax_dtype_bytes(made.dtype));
  return add_constant(hlo, &made, &value);
}

/* --- Attributes --- */

void ax_hlo_i64_array(ax_text *text, const int64_t *v, uint32_t count) {
  ax_text_add(text, "array<i64");
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, "%s%" PRId64, i > 0 ? ", " : ": ", v[i]);
  ax_text_add(text, ">");
}

/* Adds one group of devices, "[0, 2, -1]", filled up with -1 to `size` entries. The devices are those that differ from `device`
   only along the axes: group number `group` of them, or all of them if `group` is AX_NONE. */
static void replica_group(ax_text *text, const ax_axes *names, const ax_mesh *axes, int64_t device, uint32_t group, int64_t size,
                          bool first) {
  const ax_groups *groups = &names->groups;
  const uint32_t *member = group != AX_NONE ? groups->member + ax_group_begin(groups, group) : NULL;
  int64_t count = member != NULL ? ax_group_size(groups, group) : size;
  ax_text_add(text, first ? "[" : ", [");
  for (int64_t k = 0; k < size; k++)
    ax_text_add(text, "%s%" PRId64, k > 0 ? ", " : "",
                k < count ? ax_axes_device(names, axes, device, member != NULL ? member[k] : k) : -1);
  ax_text_add(text, "]");
}

void ax_hlo_replica_groups(ax_text *text, const ax_axes *names, const ax_mesh *axes) {
  int64_t devices = ax_mesh_devices(axes), members = 1, size = 1;
  const ax_groups *groups = &names->groups;
  for (uint32_t i = 0; i < names->count; i++) members *= axes->axis[ax_mesh_find(axes, names->name[i])].size;
  if (groups->count == 0) size = members;
  for (uint32_t g = 0; g < groups->count; g++) size = ax_group_size(groups, g) > size ? ax_group_size(groups, g) : size;
  ax_text_add(text, "dense<[");
  for (int64_t device = 0; device < devices; device++) {
    if (ax_axes_index(names, axes, device) != 0) continue; /* its group was written with the first device in it */
    if (groups->count == 0) replica_group(text, names, axes, device, AX_NONE, size, device == 0);
    for (uint32_t g = 0; g < groups->count; g++) replica_group(text, names, axes, device, g, size, device == 0 && g == 0);
  }
  ax_text_add(text, "]> : tensor<%" PRId64 "x%" PRId64 "xi64>", devices / members * (groups->count > 0 ? groups->count : 1), size);
}

/* --- Equations --- */

/* Whether the equation takes or gives keys, whose words are one more dimension. */
static ax_status has_keys(const ax_program *program, const ax_eqn *eqn, bool *out) {
  for (uint32_t k = 0; k < eqn->in_count + eqn->out_count; k++) {
    const ax_type *type = &program->types[k < eqn->in_count ? eqn->in[k] : eqn->out + k - eqn->in_count];
    if (!ax_is_key(type->dtype)) continue;
    if (type->rank == AX_MAX_RANK)
      return ax_error(AX_ABSENT, "%s: StableHLO has keys with one more dimension, and their rank is %d already", eqn->prim->name,
                      AX_MAX_RANK);
    *out = true;
  }
  return AX_OK;
}

ax_status ax_hlo_eqn(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  bool keys = false;
  AX_TRY(has_keys(hlo->program, eqn, &keys));
  return (keys ? eqn->prim->keys : eqn->prim->hlo)(hlo, eqn, in, out);
}
