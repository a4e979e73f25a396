/* Types and parameters, read back as print.c writes them. */
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/parse.h"
#include "ir/prim.h"

enum { most_literal_bytes = 1 << 30 };

/* --- Types --- */

static ax_status parse_axis_set(ax_parser *parser, const ax_mesh *axes, ax_axis_set used, ax_axis_set *out) {
  bool more = true;
  while (more) {
    ax_lexeme name;
    ax_axis_set bit = 0;
    AX_TRY(ax_expect_name(parser, "the name of an axis", &name));
    for (uint32_t i = 0; i < axes->count; i++)
      if (ax_token_is(&name, axes->axis[i].name)) bit = (ax_axis_set)1 << i;
    if (bit == 0)
      return ax_lexer_error(&parser->lexer, &name, "axis \"%.*s\" is not bound; bound are %s", ax_token_shown(&name),
                            name.start, ax_bound_string(axes));
    if ((bit & ax_checked_axes(axes)) == 0)
      return ax_lexer_error(&parser->lexer, &name, "axis \"%.*s\" is %s: types do not name it", ax_token_shown(&name),
                            name.start, (bit & ax_manual_axes(axes)) == 0 ? "automatic" : "unchecked");
    if (((*out | used) & bit) != 0)
      return ax_lexer_error(&parser->lexer, &name, "axis \"%.*s\" is named twice", ax_token_shown(&name), name.start);
    *out |= bit;
    AX_TRY(ax_accept(parser, ",", &more));
  }
  return AX_OK;
}

/* {V:data,model R:x Umax:y} */
static ax_status parse_axis_sets(ax_parser *parser, const ax_mesh *axes, ax_type *type) {
  bool end = false;
  while (!end) {
    ax_axis_set used = type->spread.varying | type->spread.reduced | type->spread.unreduced, *set = NULL;
    if (ax_next_is(parser, "V")) set = &type->spread.varying;
    if (ax_next_is(parser, "R")) set = &type->spread.reduced;
    for (ax_unreduced_kind kind = AX_UNREDUCED_SUM; kind <= AX_UNREDUCED_MIN; kind++)
      if (ax_next_is(parser, ax_unreduced_names[kind])) {
        set = &type->spread.unreduced;
        if (*set == 0) type->spread.kind = kind;
      }
    if (set == NULL || *set != 0) return ax_unexpected(parser, "V:, R: and U:, Umax: or Umin:, each once");
    AX_TRY(ax_lexer_next(&parser->lexer));
    AX_TRY(ax_expect(parser, ":"));
    AX_TRY(parse_axis_set(parser, axes, used, set));
    AX_TRY(ax_accept(parser, "}", &end));
  }
  return AX_OK;
}

static ax_status parse_dims(ax_parser *parser, ax_type *type) {
  bool more = true;
  int64_t bytes = (int64_t)ax_dtype_bytes(type->dtype);
  AX_TRY(ax_accept(parser, "]", &more));
  for (more = !more; more;) {
    ax_lexeme at = parser->lexer.token;
    int64_t dim;
    AX_TRY(ax_expect_integer(parser, &dim));
    if (type->rank == AX_MAX_RANK) return ax_lexer_error(&parser->lexer, &at, "more than %d dimensions", AX_MAX_RANK);
    if (dim < 0 || (dim > 0 && !ax_mul_i64(bytes, dim, &bytes)))
      return ax_lexer_error(&parser->lexer, &at, dim < 0 ? "a dimension is negative" : "the array is too large");
    type->dims[type->rank++] = dim;
    AX_TRY(ax_expect_more(parser, "]", &more));
  }
  return AX_OK;
}

static ax_status parse_array_type(ax_parser *parser, const ax_mesh *axes, ax_type *out) {
  ax_lexeme name = parser->lexer.token;
  bool sets = false;
  *out = (ax_type){0};
  if (name.kind != AX_TOKEN_NAME) return ax_unexpected(parser, "a type, as f32[8,4]");
  out->dtype = (ax_dtype)ax_dtype_find(name.start, name.length);
  if (out->dtype == AX_NO_DTYPE)
    return ax_lexer_error(&parser->lexer, &name, "unknown dtype \"%.*s\"", ax_token_shown(&name), name.start);
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_expect(parser, "["));
  AX_TRY(parse_dims(parser, out));
  if (axes != NULL) AX_TRY(ax_accept(parser, "{", &sets));
  return sets ? parse_axis_sets(parser, axes, out) : AX_OK;
}

static ax_status parse_token_type(ax_parser *parser, const ax_mesh *axes, ax_type *out) {
  bool sets;
  *out = (ax_type){.form = AX_TOKEN, .dtype = AX_BOOL};
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_accept(parser, "{", &sets));
  return sets ? parse_axis_sets(parser, axes, out) : AX_OK;
}

/* ref<f32[8,128] vmem> */
static ax_status parse_ref_type(ax_parser *parser, ax_type *out) {
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_expect(parser, "<"));
  AX_TRY(parse_array_type(parser, NULL, out));
  out->form = AX_REF;
  for (ax_space space = AX_SPACE_ANY; space < AX_SPACE_COUNT; space++)
    if (ax_next_is(parser, ax_space_names[space])) out->space = space;
  if (out->space == AX_SPACE_NONE) return ax_unexpected(parser, "a memory space: any, hbm, vmem, smem or registers");
  AX_TRY(ax_lexer_next(&parser->lexer));
  return ax_expect(parser, ">");
}

/* semaphore[2], dma_semaphore[], barrier[4] */
static ax_status parse_semaphore_type(ax_parser *parser, ax_form form, ax_type *out) {
  *out = (ax_type){.form = form, .dtype = AX_S32};
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_expect(parser, "["));
  return parse_dims(parser, out);
}

ax_status ax_parse_type(ax_parser *parser, const ax_mesh *axes, ax_type *out) {
  if (axes != NULL && ax_next_is(parser, "token")) return parse_token_type(parser, axes, out);
  if (ax_next_is(parser, "ref")) return parse_ref_type(parser, out);
  for (ax_form form = AX_SEMAPHORE; form <= AX_BARRIER; form++)
    if (ax_next_is(parser, ax_form_names[form])) return parse_semaphore_type(parser, form, out);
  if (!ax_next_is(parser, "future")) return parse_array_type(parser, axes, out);
  ax_lexeme at = parser->lexer.token;
  *out = (ax_type){0};
  if (axes == NULL) return ax_lexer_error(&parser->lexer, &at, "a literal is an array");
  AX_TRY(ax_lexer_next(&parser->lexer));
  AX_TRY(ax_expect(parser, "<"));
  AX_TRY(parse_array_type(parser, axes, out));
  out->form = AX_FUTURE;
  return ax_expect(parser, ">");
}

/* --- Meshes and specs --- */

static ax_status copy_axis_name(ax_parser *parser, char *out) {
  ax_lexeme name;
  AX_TRY(ax_expect_name(parser, "the name of an axis", &name));
  if (name.length >= AX_MAX_NAME || ax_token_is(&name, "_"))
    return ax_lexer_error(&parser->lexer, &name, "not a name for an axis: it has at most %d bytes and is not _",
                          AX_MAX_NAME - 1);
  memset(out, 0, AX_MAX_NAME);
  memcpy(out, name.start, name.length);
  return AX_OK;
}

static ax_status parse_axis(ax_parser *parser, ax_mesh *mesh) {
  ax_lexeme at = parser->lexer.token;
  ax_axis axis = {0};
  AX_TRY(copy_axis_name(parser, axis.name));
  axis.automatic = strcmp(axis.name, "auto") == 0 && !ax_next_is(parser, "="); /* which may be an axis's name too */
  if (axis.automatic) AX_TRY(copy_axis_name(parser, axis.name));
  AX_TRY(ax_expect(parser, "="));
  AX_TRY(ax_expect_integer(parser, &axis.size));
  if (!axis.automatic) AX_TRY(ax_accept(parser, "?", &axis.unchecked));
  if (mesh->count == AX_MAX_AXES) return ax_lexer_error(&parser->lexer, &at, "more than %d axes", AX_MAX_AXES);
  if (ax_mesh_find(mesh, axis.name) >= 0)
    return ax_lexer_error(&parser->lexer, &at, "axis \"%s\" is named twice", axis.name);
  int64_t devices = ax_mesh_devices(mesh);
  if (axis.size < 1) return ax_lexer_error(&parser->lexer, &at, "axis \"%s\" needs a size of at least 1", axis.name);
  if (!ax_mul_i64(devices, axis.size, &devices) || devices > (int64_t)1 << 31)
    return ax_lexer_error(&parser->lexer, &at, "more than 2^31 devices");
  mesh->axis[mesh->count++] = axis;
  return AX_OK;
}

ax_status ax_parse_axes(ax_parser *parser, const char *end, bool commas, ax_mesh *out) {
  bool more;
  *out = (ax_mesh){0};
  AX_TRY(ax_accept(parser, end, &more));
  for (more = !more; more;) {
    AX_TRY(parse_axis(parser, out));
    if (commas) {
      AX_TRY(ax_expect_more(parser, end, &more));
    } else {
      AX_TRY(ax_accept(parser, end, &more));
      more = !more;
    }
  }
  return AX_OK;
}

static ax_status parse_spec_axis(ax_parser *parser, const ax_mesh *mesh, ax_spec *spec, uint32_t dim) {
  ax_lexeme at = parser->lexer.token;
  char name[AX_MAX_NAME];
  AX_TRY(copy_axis_name(parser, name));
  int axis = ax_mesh_find(mesh, name);
  if (axis < 0) return ax_lexer_error(&parser->lexer, &at, "axis \"%s\" is not one of the mesh", name);
  if (ax_spec_set(spec) >> axis & 1) return ax_lexer_error(&parser->lexer, &at, "axis \"%s\" is used twice", name);
  spec->axis[dim][spec->count[dim]++] = (uint8_t)axis;
  return AX_OK;
}

/* p1 behind a spec. */
static ax_status parse_priority(ax_parser *parser, ax_spec *spec) {
  const ax_lexeme at = parser->lexer.token;
  if (at.kind != AX_TOKEN_NAME || at.length < 2 || at.start[0] != 'p' || strspn(at.start + 1, "0123456789") < at.length - 1) return AX_OK;
  if (!ax_priority_read(at.start + 1, at.length - 1, &spec->priority))
    return ax_lexer_error(&parser->lexer, &at, "a priority is a number up to %d", AX_LAST_PRIORITY);
  return ax_lexer_next(&parser->lexer);
}

/* P(data+model, _, ?)p1 */
static ax_status parse_spec(ax_parser *parser, const ax_mesh *mesh, ax_spec *spec) {
  bool more;
  AX_TRY(ax_expect(parser, "P"));
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(ax_accept(parser, ")", &more));
  for (more = !more; more;) {
    const bool open = ax_next_is(parser, "?");
    bool plus = true;
    if (spec->rank == AX_MAX_RANK) return ax_unexpected(parser, "a spec of no more entries");
    if (open) spec->open |= (uint16_t)(1u << spec->rank);
    if (open || ax_next_is(parser, "_")) {
      AX_TRY(ax_lexer_next(&parser->lexer));
      plus = false;
    }
    while (plus) {
      AX_TRY(parse_spec_axis(parser, mesh, spec, spec->rank));
      AX_TRY(ax_accept(parser, "+", &plus));
    }
    spec->rank++;
    AX_TRY(ax_expect_more(parser, ")", &more));
  }
  return parse_priority(parser, spec);
}

/* --- Literals --- */

static ax_status parse_real(ax_parser *parser, ax_dtype dtype, void *data, int64_t index) {
  ax_lexeme at = parser->lexer.token;
  char word[128];
  if (!ax_is_literal(&at)) return ax_unexpected(parser, "a number");
  if (!ax_token_word(&at, word) || !ax_element_parse(word, dtype, data, index))
    return ax_lexer_error(&parser->lexer, &at, "\"%.*s\" is not a number of dtype %s", ax_token_shown(&at), at.start,
                          ax_dtype_name(dtype));
  return ax_lexer_next(&parser->lexer);
}

/* Both parts of a complex number, (1.0,-2.0), or the real part alone. */
static ax_status parse_element(ax_parser *parser, ax_literal *literal, int64_t index) {
  const ax_dtype dtype = literal->type.dtype, part = ax_part_dtype(dtype);
  if (!ax_is_complex(dtype)) return parse_real(parser, dtype, literal->data, index);
  if (!ax_next_is(parser, "(")) {
    memset((char *)literal->data + (size_t)index * ax_dtype_bytes(dtype), 0, ax_dtype_bytes(dtype));
    return parse_real(parser, part, literal->data, 2 * index);
  }
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(parse_real(parser, part, literal->data, 2 * index));
  AX_TRY(ax_expect(parser, ","));
  AX_TRY(parse_real(parser, part, literal->data, 2 * index + 1));
  return ax_expect(parser, ")");
}

/* Dimension `dim` at element *index. */
static ax_status parse_elements(ax_parser *parser, ax_literal *literal, uint32_t dim, int64_t *index) {
  if (dim == literal->type.rank) return parse_element(parser, literal, (*index)++);
  AX_TRY(ax_expect(parser, "["));
  for (int64_t i = 0; i < literal->type.dims[dim]; i++) {
    if (i > 0) AX_TRY(ax_expect(parser, ","));
    AX_TRY(parse_elements(parser, literal, dim + 1, index));
  }
  return ax_expect(parser, "]");
}

/* Passes over the elements to the type after them; `count`: how many there are, so that no more memory is taken than text was
   given. */
static ax_status skip_elements(ax_parser *parser, int64_t *count) {
  bool inside = false; /* of the brackets around a complex number's parts, which are one element */
  for (*count = 0; !ax_next_is(parser, ":");) {
    const ax_lexeme *token = &parser->lexer.token;
    const bool opens = ax_next_is(parser, "("), closes = ax_next_is(parser, ")");
    bool mark = ax_next_is(parser, "[") || ax_next_is(parser, "]") || ax_next_is(parser, ",") || (opens && !inside) || (closes && inside);
    if (!mark && !ax_is_literal(token)) return ax_unexpected(parser, "a number, or : and the type after the numbers");
    *count += opens || (!mark && !inside);
    inside = opens || (inside && !closes);
    AX_TRY(ax_lexer_next(&parser->lexer));
  }
  return ax_lexer_next(&parser->lexer);
}

static ax_status fill_literal(ax_parser *parser, ax_literal *literal, bool array, int64_t elems) {
  int64_t index = 0;
  if (array && elems > 0) return parse_elements(parser, literal, 0, &index);
  if (array) {
    AX_TRY(ax_expect(parser, "["));
    return ax_expect(parser, "]");
  }
  AX_TRY(parse_element(parser, literal, 0));
  size_t bytes = ax_dtype_bytes(literal->type.dtype);
  for (int64_t i = 1; i < elems; i++) memcpy((char *)literal->data + (size_t)i * bytes, literal->data, bytes);
  return AX_OK;
}

ax_status ax_parse_literal(ax_parser *parser, ax_literal *out) {
  ax_lexer start = parser->lexer, after;
  bool array = ax_next_is(parser, "[");
  int64_t given;
  AX_TRY(skip_elements(parser, &given));
  ax_lexeme type_at = parser->lexer.token;
  AX_TRY(ax_parse_type(parser, NULL, &out->type));
  if (out->type.form != AX_ARRAY) return ax_lexer_error(&parser->lexer, &type_at, "a literal is an array");
  after = parser->lexer;
  int64_t elems = ax_type_elems(&out->type);
  if (array ? given != elems : elems == 0)
    return ax_lexer_error(&parser->lexer, &type_at, "%lld numbers are given for %s", (long long)given,
                          ax_type_string(&out->type, NULL));
  size_t bytes = (size_t)elems * ax_dtype_bytes(out->type.dtype);
  if (bytes > most_literal_bytes) return ax_lexer_error(&parser->lexer, &type_at, "too large to be a literal");
  out->owner = NULL;
  out->data = ax_arena_alloc(&parser->arena, bytes);
  if (out->data == NULL) return ax_out_of_memory(bytes);
  parser->lexer = start;
  AX_TRY(fill_literal(parser, out, array, elems));
  AX_TRY(ax_expect(parser, ":"));
  parser->lexer = after;
  return AX_OK;
}

/* --- Parameters --- */

static ax_status parse_bool(ax_parser *parser, bool *out) {
  *out = ax_next_is(parser, "true");
  if (!*out && !ax_next_is(parser, "false")) return ax_unexpected(parser, "true or false");
  return ax_lexer_next(&parser->lexer);
}

static ax_status parse_dtype(ax_parser *parser, ax_dtype *out) {
  ax_lexeme name;
  AX_TRY(ax_expect_name(parser, "a dtype", &name));
  *out = (ax_dtype)ax_dtype_find(name.start, name.length);
  if (*out != AX_NO_DTYPE) return AX_OK;
  return ax_lexer_error(&parser->lexer, &name, "unknown dtype \"%.*s\"", ax_token_shown(&name), name.start);
}

static ax_status parse_pair(ax_parser *parser, int64_t *pair) {
  bool comma;
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(ax_expect_integer(parser, &pair[0]));
  AX_TRY(ax_expect(parser, ","));
  AX_TRY(ax_expect_integer(parser, &pair[1]));
  AX_TRY(ax_accept(parser, ",", &comma));
  return ax_expect(parser, ")");
}

typedef struct place { /* of a parameter being read */
  const ax_mesh *axes; /* the environment */
  const ax_mesh *mesh; /* the mesh parameter, once read */
  bool unify;         /* ax_prim.unify */
} place;

/* One item of the tuple `field`. */
static ax_status parse_item(ax_parser *parser, const place *place, ax_param_kind kind, void *field, ax_list *list) {
  ax_dims *dims = field;
  if (kind == AX_PARAM_DIMS) {
    if (dims->count == AX_MAX_RANK) return ax_unexpected(parser, "no more numbers");
    return ax_expect_integer(parser, &dims->v[dims->count++]);
  }
  size_t bytes = kind == AX_PARAM_PAIRS   ? 2 * sizeof(int64_t)
                 : kind == AX_PARAM_SPECS ? sizeof(ax_spec)
                 : kind == AX_PARAM_TYPES ? sizeof(ax_type)
                                          : sizeof(ax_program *);
  void *item = ax_list_add(parser, list, bytes);
  if (item == NULL) return ax_out_of_memory(bytes);
  if (kind == AX_PARAM_PAIRS) return parse_pair(parser, item);
  if (kind == AX_PARAM_SPECS) return parse_spec(parser, place->mesh, item);
  if (kind == AX_PARAM_TYPES) return ax_parse_type(parser, NULL, item);
  return ax_parse_nested(parser, place->axes, place->unify, item);
}

/* {0, 1} {2, 3} behind the names of axes. */
static ax_status parse_groups(ax_parser *parser, ax_group_list *list) {
  while (ax_next_is(parser, "{")) {
    AX_TRY(ax_lexer_next(&parser->lexer));
    AX_TRY(ax_group_list_open(list));
    for (bool more = true; more;) {
      const ax_lexeme at = parser->lexer.token;
      int64_t member;
      AX_TRY(ax_expect_integer(parser, &member));
      ax_status status = ax_group_list_add(list, member);
      if (status != AX_OK) return ax_lexer_place(&parser->lexer, &at, status);
      AX_TRY(ax_expect_more(parser, "}", &more));
    }
  }
  return AX_OK;
}

/* (data, model {0, 1} {2, 3}); names alone may be followed by a comma. */
static ax_status parse_names(ax_parser *parser, ax_axes *axes) {
  ax_group_list list = {0};
  bool more;
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(ax_accept(parser, ")", &more));
  for (more = !more; more;) {
    if (axes->count == AX_MAX_AXES) return ax_unexpected(parser, "no more axes");
    AX_TRY(copy_axis_name(parser, axes->name[axes->count++]));
    if (ax_next_is(parser, "{")) break;
    AX_TRY(ax_expect_more(parser, ")", &more));
  }
  if (!more) return AX_OK;
  ax_status status = parse_groups(parser, &list);
  if (status == AX_OK) status = ax_group_list_close(&list, &parser->arena, &axes->groups);
  ax_group_list_deinit(&list);
  return status == AX_OK ? ax_expect(parser, ")") : status;
}

static ax_status parse_tuple(ax_parser *parser, const place *place, ax_param_kind kind, void *field) {
  ax_list list = {0};
  bool more;
  AX_TRY(ax_expect(parser, "("));
  AX_TRY(ax_accept(parser, ")", &more));
  more = !more;
  while (more) {
    AX_TRY(parse_item(parser, place, kind, field, &list));
    AX_TRY(ax_expect_more(parser, ")", &more));
  }
  if (kind == AX_PARAM_PAIRS) *(ax_pairs *)field = (ax_pairs){list.count, list.items};
  if (kind == AX_PARAM_SPECS) *(ax_specs *)field = (ax_specs){list.count, list.items};
  if (kind == AX_PARAM_TYPES) *(ax_types *)field = (ax_types){list.count, list.items};
  if (kind == AX_PARAM_PROGRAMS) *(ax_programs *)field = (ax_programs){list.count, list.items};
  return AX_OK;
}

static ax_status parse_kind(ax_parser *parser, ax_unreduced_kind *out) {
  for (*out = AX_UNREDUCED_SUM; *out <= AX_UNREDUCED_MIN; ++*out)
    if (ax_next_is(parser, ax_kind_names[*out])) return ax_lexer_next(&parser->lexer);
  return ax_unexpected(parser, "sum, max or min");
}

/* "..", whose bytes the parser keeps. */
static ax_status parse_text(ax_parser *parser, const char **out) {
  const ax_lexeme at = parser->lexer.token;
  if (at.kind != AX_TOKEN_STRING) return ax_unexpected(parser, "a text, as \"x={}\"");
  char *bytes = ax_arena_alloc(&parser->arena, at.length);
  if (bytes == NULL) return ax_out_of_memory(at.length);
  const char *wrong = ax_quoted_parse(at.start + 1, at.length - 2, bytes);
  if (wrong != NULL) return ax_lexer_error(&parser->lexer, &at, "%s", wrong);
  *out = bytes;
  return ax_lexer_next(&parser->lexer);
}

/* The name of a callback, which has no function yet. */
static ax_status parse_callback(ax_parser *parser, ax_callback **out) {
  const ax_lexeme at = parser->lexer.token;
  const char *name;
  AX_TRY(parse_text(parser, &name));
  ax_callback **kept = ax_list_add(parser, &parser->callbacks, sizeof *kept);
  if (kept == NULL) return ax_out_of_memory(sizeof *kept);
  ax_status status = ax_callback_make(name, strlen(name), kept);
  if (status != AX_OK) return ax_lexer_place(&parser->lexer, &at, status);
  ax_callback *made = *kept, *found = parser->hooks != NULL ? ax_callbacks_find(parser->hooks->callbacks, name) : NULL;
  if (found != NULL) {
    *kept = ax_callback_retain(found);
    ax_callback_release(made);
  }
  *out = *kept;
  return AX_OK;
}

/* highest, or so many units of the last place */
static ax_status parse_accuracy(ax_parser *parser, int64_t *out) {
  if (!ax_next_is(parser, "highest")) return ax_expect_integer(parser, out);
  *out = AX_ACCURACY_HIGHEST;
  return ax_lexer_next(&parser->lexer);
}

static ax_status parse_value(ax_parser *parser, place *place, ax_param_kind kind, void *field) {
  static const ax_mesh none;
  switch (kind) {
    case AX_PARAM_I64: return ax_expect_integer(parser, field);
    case AX_PARAM_ACCURACY: return parse_accuracy(parser, field);
    case AX_PARAM_BOOL: return parse_bool(parser, field);
    case AX_PARAM_DTYPE: return parse_dtype(parser, field);
    case AX_PARAM_KIND: return parse_kind(parser, field);
    case AX_PARAM_PROGRAM: return ax_parse_nested(parser, place->axes, place->unify, field);
    case AX_PARAM_SCALARS: return ax_parse_nested(parser, &none, false, field);
    case AX_PARAM_LITERAL: return ax_parse_literal(parser, field);
    case AX_PARAM_TEXT: return parse_text(parser, field);
    case AX_PARAM_CALLBACK: return parse_callback(parser, field);
    case AX_PARAM_AXES: return parse_names(parser, field);
    case AX_PARAM_NAMES:
      AX_TRY(parse_names(parser, field));
      return ((const ax_axes *)field)->groups.count == 0 ? AX_OK : ax_unexpected(parser, "names without groups");
    case AX_PARAM_MESH:
      place->mesh = field;
      AX_TRY(ax_expect(parser, "("));
      return ax_parse_axes(parser, ")", true, field);
    case AX_PARAM_SPECS:
      if (place->mesh == NULL) return ax_unexpected(parser, "the mesh before its specs");
      return parse_tuple(parser, place, kind, field);
    default: return parse_tuple(parser, place, kind, field);
  }
}

static ax_status find_param(ax_parser *parser, const ax_prim *prim, uint64_t given, uint32_t *out) {
  ax_lexeme name;
  AX_TRY(ax_expect_name(parser, "the name of a parameter", &name));
  for (*out = 0; *out < prim->param_count; ++*out)
    if (ax_token_is(&name, prim->params[*out].name)) break;
  if (*out == prim->param_count)
    return ax_lexer_error(&parser->lexer, &name, "%s has no parameter \"%.*s\"", prim->name, ax_token_shown(&name),
                          name.start);
  if (given >> *out & 1) return ax_lexer_error(&parser->lexer, &name, "\"%s\" is given twice", prim->params[*out].name);
  return ax_expect(parser, "=");
}

ax_status ax_parse_params(ax_parser *parser, const ax_prim *prim, const ax_mesh *axes, void *params) {
  ax_lexeme at = parser->lexer.token;
  place place = {axes, NULL, prim->unify};
  uint64_t given = 0;
  bool end = false, open;
  AX_TRY(ax_accept(parser, "[", &open));
  if (open) AX_TRY(ax_accept(parser, "]", &end));
  while (open && !end) {
    uint32_t i;
    AX_TRY(find_param(parser, prim, given, &i));
    AX_TRY(parse_value(parser, &place, prim->params[i].kind, (char *)params + prim->params[i].offset));
    given |= (uint64_t)1 << i;
    AX_TRY(ax_accept(parser, "]", &end));
  }
  for (uint32_t i = 0; i < prim->param_count; i++)
    if ((given >> i & 1) == 0 && prim->params[i].kind != AX_PARAM_ACCURACY)
      return ax_lexer_error(&parser->lexer, &at, "%s needs its parameter \"%s\"", prim->name, prim->params[i].name);
  return AX_OK;
}
