/* Programs as text that reads like a jaxpr; parse.c reads it back. README.md has the grammar.

     { axes data=4 ; lambda a:f32[8,4]{V:data} b:f32[8,4]{V:data}. let
         c:f32[8,4]{V:data} = add a b
         d:f32[8,4] = psum[axes=(data,)] c
       in (d,) }

   Scalar constants stand where they are used, so they are no lines of their own. A program that occurs more than once in a long one
   is written once, as @a { .. }, and then called @a. Everything else is written out in full: two
   programs have the same text exactly when ax_program_equal holds. */
#include <inttypes.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/repeats.h"
#include "ir/text.h"

enum {
  line_columns = 100,
  most_written_out = 10000 /* equations of a program; of a longer one, a program that occurs in it more than once is written once */
};

/* Additional text that is shown. */
typedef enum style {
  PLAIN,
  LOCATIONS,
  SHARDINGS /* in types, of values that a constraint alone takes; these are not shown then */
} style;
/* What all parts of one text share. */
typedef struct page {
  style style;
  ax_repeats repeats; /* empty: all is written out */
} page;
static void program_text(ax_text *text, const ax_program *program, const ax_mesh *outer, int indent, page *page);

static void new_line(ax_text *text, int indent) { ax_text_add(text, "\n%*s", indent, ""); }

static size_t column(const ax_text *text) {
  size_t length = 0;
  while (length < text->length && text->data[text->length - length - 1] != '\n') length++;
  return length;
}

/* Adds `item` (and empties it), on a new line when this one would become too long. */
static void add_wrapped(ax_text *text, ax_text *item, int indent) {
  if (item->failed) text->failed = true;
  if (item->length > 0) {
    if (column(text) + 1 + item->length > line_columns)
      new_line(text, indent);
    else
      ax_text_add(text, " ");
    ax_text_add_bytes(text, item->data, item->length);
  }
  ax_text_deinit(item);
}

/* --- Parameters --- */

/* Tuples are Python's: (), (1,), (1, 2). */
static const char *tuple_end(uint32_t count) { return count == 1 ? ",)" : ")"; }
static const char *comma(uint32_t index) { return index > 0 ? ", " : ""; }

static void axis_text(ax_text *text, const ax_axis *axis) {
  ax_text_add(text, "%s%s=%" PRId64 "%s", axis->automatic ? "auto " : "", axis->name, axis->size, axis->unchecked ? "?" : "");
}

void ax_mesh_text(ax_text *text, const ax_mesh *mesh) {
  for (uint32_t i = 0; i < mesh->count; i++) {
    ax_text_add(text, "%s", i ? ", " : "(");
    axis_text(text, &mesh->axis[i]);
  }
  ax_text_add(text, mesh->count == 0 ? "()" : "%s", tuple_end(mesh->count));
}

static void dims_text(ax_text *text, const ax_dims *dims) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < dims->count; i++) ax_text_add(text, "%s%" PRId64, comma(i), dims->v[i]);
  ax_text_add(text, "%s", tuple_end(dims->count));
}

static void axes_text(ax_text *text, const ax_axes *axes) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < axes->count; i++) ax_text_add(text, "%s%s", comma(i), axes->name[i]);
  ax_groups_text(text, &axes->groups);
  ax_text_add(text, "%s", tuple_end(axes->groups.count == 0 ? axes->count : 2));
}

static void pairs_text(ax_text *text, const ax_pairs *pairs) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < pairs->count; i++)
    ax_text_add(text, "%s(%" PRId64 ", %" PRId64 ")", comma(i), pairs->v[i][0], pairs->v[i][1]);
  ax_text_add(text, "%s", tuple_end(pairs->count));
}

static void specs_text(ax_text *text, const ax_specs *specs, const ax_mesh *mesh) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < specs->count; i++) {
    ax_text_add(text, "%s", comma(i));
    ax_spec_text(text, &specs->v[i], mesh);
  }
  ax_text_add(text, "%s", tuple_end(specs->count));
}

static void types_text(ax_text *text, const ax_types *types) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < types->count; i++) {
    ax_text_add(text, "%s", comma(i));
    ax_type_text(text, &types->v[i], NULL);
  }
  ax_text_add(text, "%s", tuple_end(types->count));
}

static bool all_elements_equal(const ax_literal *literal, int64_t elems) {
  size_t bytes = ax_dtype_bytes(literal->type.dtype);
  return elems < 2 || memcmp(literal->data, (const char *)literal->data + bytes, (size_t)(elems - 1) * bytes) == 0;
}

void ax_literal_text(ax_text *text, const ax_literal *literal) {
  const ax_type *type = &literal->type;
  int64_t elems = ax_type_elems(type), spans[AX_MAX_RANK + 1]; /* elements in one index of a dimension */
  spans[type->rank] = 1;
  for (uint32_t d = type->rank; d-- > 0;) spans[d] = spans[d + 1] * type->dims[d];
  bool once = elems > 0 && all_elements_equal(literal, elems);
  if (once) ax_element_text(text, type->dtype, literal->data, 0);
  for (int64_t i = 0; !once && i < elems; i++) {
    ax_text_add(text, "%s", i > 0 ? ", " : "");
    for (uint32_t d = 0; d < type->rank; d++) ax_text_add(text, i % spans[d] == 0 ? "[" : "");
    ax_element_text(text, type->dtype, literal->data, i);
    for (uint32_t d = 0; d < type->rank; d++) ax_text_add(text, (i + 1) % spans[d] == 0 ? "]" : "");
  }
  ax_text_add(text, elems == 0 ? "[]:" : ":");
  ax_type_text(text, type, NULL);
}

static void programs_text(ax_text *text, const ax_programs *programs, const ax_mesh *axes, int indent, page *page) {
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < programs->count; i++) {
    new_line(text, indent + 2);
    program_text(text, programs->v[i], axes, indent + 2, page);
    ax_text_add(text, ",");
  }
  if (programs->count > 0) new_line(text, indent);
  ax_text_add(text, ")");
}

/* NULL: it has none of this kind. */
static const void *param_of(const ax_eqn *eqn, ax_param_kind kind) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == kind) return ax_param_at(eqn, &eqn->prim->params[i]);
  return NULL;
}

static const ax_mesh *mesh_of(const ax_eqn *eqn) {
  static const ax_mesh none;
  const ax_mesh *mesh = param_of(eqn, AX_PARAM_MESH);
  return mesh != NULL ? mesh : &none;
}

static void accuracy_text(ax_text *text, int64_t accuracy) {
  if (accuracy == AX_ACCURACY_HIGHEST) ax_text_add(text, "highest");
  else ax_text_add(text, "%" PRId64, accuracy);
}

/* Texts leave it out. */
static bool is_default(const ax_eqn *eqn, const ax_param *param) {
  return param->kind == AX_PARAM_ACCURACY && *(const int64_t *)ax_param_at(eqn, param) == AX_ACCURACY_DEFAULT;
}

static void param_text(ax_text *text, const ax_program *program, const ax_eqn *eqn, const ax_param *param, int indent,
                       page *page) {
  static const ax_mesh none;
  const void *field = ax_param_at(eqn, param);
  switch (param->kind) {
    case AX_PARAM_I64: ax_text_add(text, "%" PRId64, *(const int64_t *)field); break;
    case AX_PARAM_BOOL: ax_text_add(text, *(const bool *)field ? "true" : "false"); break;
    case AX_PARAM_DTYPE: ax_text_add(text, "%s", ax_dtype_name(*(const ax_dtype *)field)); break;
    case AX_PARAM_DIMS: dims_text(text, field); break;
    case AX_PARAM_AXES:
    case AX_PARAM_NAMES: axes_text(text, field); break;
    case AX_PARAM_PAIRS: pairs_text(text, field); break;
    case AX_PARAM_PROGRAM: program_text(text, *(ax_program *const *)field, &program->axes, indent, page); break;
    case AX_PARAM_SCALARS: program_text(text, *(ax_program *const *)field, &none, indent, page); break;
    case AX_PARAM_PROGRAMS: programs_text(text, field, &program->axes, indent, page); break;
    case AX_PARAM_LITERAL: ax_literal_text(text, field); break;
    case AX_PARAM_MESH: ax_mesh_text(text, field); break;
    case AX_PARAM_SPECS: specs_text(text, field, mesh_of(eqn)); break;
    case AX_PARAM_KIND: ax_text_add(text, "%s", ax_kind_names[*(const ax_unreduced_kind *)field]); break;
    case AX_PARAM_TEXT: ax_quoted_text(text, *(const char *const *)field); break;
    case AX_PARAM_TYPES: types_text(text, field); break;
    case AX_PARAM_ACCURACY: accuracy_text(text, *(const int64_t *)field); break;
    case AX_PARAM_CALLBACK: ax_quoted_text(text, (*(ax_callback *const *)field)->name); break;
  }
}

/* On one line, or a line each when there is a program among them. */
static void params_text(ax_text *text, const ax_program *program, const ax_eqn *eqn, int indent, page *page) {
  bool lines = false, none = true;
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    const ax_param_kind kind = eqn->prim->params[i].kind;
    lines |= kind == AX_PARAM_PROGRAM || kind == AX_PARAM_SCALARS || kind == AX_PARAM_PROGRAMS;
    none &= is_default(eqn, &eqn->prim->params[i]);
  }
  if (none) return;
  ax_text_add(text, "[");
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    const ax_param *param = &eqn->prim->params[i];
    if (is_default(eqn, param)) continue;
    if (lines)
      new_line(text, indent + 2);
    else if (i > 0)
      ax_text_add(text, " ");
    ax_text_add(text, "%s=", param->name);
    param_text(text, program, eqn, param, indent + 2, page);
  }
  if (lines) new_line(text, indent);
  ax_text_add(text, "]");
}

/* --- Equations and programs --- */

void ax_operand_text(ax_text *text, const ax_program *program, uint32_t id) {
  const ax_literal *literal = ax_value_literal(program, id);
  if (literal != NULL) {
    ax_literal_text(text, literal);
    return;
  }
  char name[16];
  ax_label_name(program->labels[id], name);
  ax_text_add(text, "%s", name);
}

/* An operation that has a mesh and specs says how its operand lies. */
static bool says_how(const ax_eqn *eqn) { return eqn->prim->kind == AX_LOCAL && param_of(eqn, AX_PARAM_MESH) != NULL; }

/* By value: the equation that says how it lies and alone takes it. What such an equation gives is no such value. NULL: no
   memory. */
static const ax_eqn **find_said(const ax_program *program) {
  const ax_eqn **said = ax_calloc((size_t)program->value_count + 1, sizeof said[0]);
  uint32_t *uses = ax_calloc((size_t)program->value_count + 1, sizeof uses[0]);
  for (uint32_t e = 0; said != NULL && uses != NULL && e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    for (uint32_t i = 0; i < eqn->in_count; i++) uses[eqn->in[i]]++;
    if (says_how(eqn) && program->types[eqn->out].spread.varying == 0) said[eqn->in[0]] = eqn;
  }
  for (uint32_t k = 0; said != NULL && uses != NULL && k < program->out_count; k++) uses[program->outs[k]]++;
  for (uint32_t v = 0; said != NULL && uses != NULL && v < program->value_count; v++)
    if (said[v] != NULL && (uses[v] != 1 || ax_value_literal(program, v) != NULL)) said[v] = NULL;
  for (uint32_t v = 0; said != NULL && v < program->value_count; v++)
    if (said[v] != NULL) said[said[v]->out] = NULL;
  ax_free(uses);
  return said;
}

/* said: of the value; NULL: nothing. */
static void binder_text(ax_text *text, const ax_program *program, uint32_t id, const ax_eqn *said) {
  char name[16];
  ax_label_name(program->labels[said != NULL ? said->out : id] & ~AX_LITERAL, name);
  ax_text_add(text, "%s:", name);
  if (said == NULL) ax_type_text(text, &program->types[id], &program->axes);
  else ax_sharded_type_text(text, &program->types[id], ((const ax_specs *)param_of(said, AX_PARAM_SPECS))->v, mesh_of(said));
}

static void eqn_text(ax_text *text, const ax_program *program, const ax_eqn *eqn, const ax_eqn *const *said, int indent,
                     page *page) {
  for (uint32_t i = 0; i < eqn->out_count; i++) {
    binder_text(text, program, eqn->out + i, said != NULL ? said[eqn->out + i] : NULL);
    ax_text_add(text, " ");
  }
  ax_text_add(text, "= %s", eqn->prim->name);
  if (eqn->prim->param_count > 0) params_text(text, program, eqn, indent, page);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    ax_text_add(text, " ");
    ax_operand_text(text, program, eqn->in[i]);
  }
  if (page->style != LOCATIONS || eqn->location == NULL) return;
  ax_text_add(text, " @\"");
  for (const char *c = eqn->location; *c != '\0'; c++) ax_text_add(text, "%c", *c == '"' || (unsigned char)*c < ' ' ? '?' : *c);
  ax_text_add(text, "\"");
}

/* @name, where the program occurs more than once. True: its text stands where the name was met first. */
static bool is_named(ax_text *text, const ax_program *program, page *page) {
  ax_repeat *repeat = ax_repeats_of(&page->repeats, program);
  char name[16];
  if (repeat == NULL || repeat->occurrences == 1) return false;
  const bool known = repeat->name > 0;
  if (!known) repeat->name = ++page->repeats.names;
  ax_label_name(repeat->name - 1, name);
  ax_text_add(text, known ? "@%s" : "@%s ", name);
  return known;
}

static void head_text(ax_text *text, const ax_program *program, const ax_eqn *const *said, const ax_mesh *outer, int indent) {
  ax_text item = {0};
  ax_text_add(text, "{ ");
  if (!ax_mesh_equal(outer, &program->axes, true)) {
    ax_text_add(text, "axes ");
    for (uint32_t i = 0; i < program->axes.count; i++) {
      axis_text(text, &program->axes.axis[i]);
      ax_text_add(text, " ");
    }
    ax_text_add(text, "; ");
  }
  ax_text_add(text, "lambda");
  for (uint32_t i = 0; i < program->in_count; i++) {
    binder_text(&item, program, i, said != NULL ? said[i] : NULL);
    add_wrapped(text, &item, indent + 4);
  }
  ax_text_add(text, program->in_count > 0 ? ". let" : " . let");
}

/* `outer`: the environment around; axes are written where they differ from it. */
static void program_text(ax_text *text, const ax_program *program, const ax_mesh *outer, int indent, page *page) {
  ax_text item = {0};
  bool any = false;
  if (is_named(text, program, page)) return;
  const ax_eqn **said = page->style == SHARDINGS ? find_said(program) : NULL;
  head_text(text, program, said, outer, indent);
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (ax_eqn_literal(eqn) != NULL || (said != NULL && eqn->in_count > 0 && said[eqn->in[0]] == eqn)) continue;
    any = true;
    new_line(text, indent + 4);
    eqn_text(text, program, eqn, said, indent + 4, page);
  }
  if (any)
    new_line(text, indent + 2);
  else
    ax_text_add(text, " ");
  ax_text_add(text, "in");
  for (uint32_t i = 0; i < program->out_count; i++) {
    ax_text_add(&item, i == 0 ? "(" : "");
    ax_operand_text(&item, program, program->outs[i]);
    ax_text_add(&item, "%s", i + 1 < program->out_count ? "," : tuple_end(program->out_count));
    add_wrapped(text, &item, indent + 5);
  }
  ax_text_add(text, program->out_count > 0 ? " }" : " () }");
  ax_free(said);
}

/* Only the text that says no more than equality looks at has to be the same for equal programs. */
static ax_status find_repeats(const ax_program *program, page *page) {
  if (program->nesting == 0) return AX_OK;
  AX_TRY(ax_repeats_find(program, page->style != PLAIN, &page->repeats));
  if (ax_repeats_of(&page->repeats, program)->equations <= most_written_out) ax_repeats_deinit(&page->repeats);
  return AX_OK;
}

static ax_status print(const ax_program *program, style style, char **out) {
  const ax_mesh none = {0};
  ax_text text = {0};
  locale_t saved;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  page page = {.style = style};
  AX_TRY(find_repeats(program, &page));
  const ax_status status = ax_text_locale_enter(&saved);
  if (status == AX_OK) {
    program_text(&text, program, &none, 0, &page);
    ax_text_add(&text, "\n");
    ax_text_locale_leave(saved);
  }
  ax_repeats_deinit(&page.repeats);
  AX_TRY(status);
  return ax_text_finish(&text, out);
}

ax_status ax_program_print(const ax_program *program, char **out) { return print(program, PLAIN, out); }

ax_status ax_program_print_locations(const ax_program *program, char **out) { return print(program, LOCATIONS, out); }

ax_status ax_program_print_shardings(const ax_program *program, char **out) { return print(program, SHARDINGS, out); }
