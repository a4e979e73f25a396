/* Queries of a treedef: its leaves by number, name and pattern, and its text. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "ir/program.h"
#include "tree/pattern.h"
#include "tree/treedef.h"

uint32_t ax_treedef_count(const ax_treedef *def) { return def != NULL ? def->count : 0; }
const char *ax_treedef_name(const ax_treedef *def, uint32_t i) { return i < ax_treedef_count(def) ? def->names[i] : NULL; }
const ax_type *ax_treedef_type(const ax_treedef *def, uint32_t i) { return i < ax_treedef_count(def) ? &def->types[i] : NULL; }
const char *ax_treedef_spec(const ax_treedef *def, uint32_t i) { return i < ax_treedef_count(def) ? def->specs[i] : NULL; }
const ax_type *ax_treedef_types(const ax_treedef *def) { return def != NULL ? def->types : NULL; }
const char *ax_treedef_specs(const ax_treedef *def) { return def != NULL ? def->all_specs : ""; }

int64_t ax_treedef_find(const ax_treedef *def, const char *name, ...) {
  char written[AX_MAX_LEAF_NAME];
  va_list arguments;
  if (def == NULL || name == NULL) return -1;
  va_start(arguments, name);
  int length = vsnprintf(written, sizeof written, name, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof written) return -1;
  uint32_t leaf = ax_treedef_leaf(def, written, (size_t)length);
  return leaf != AX_NONE ? (int64_t)leaf : -1;
}

/* --- Selections --- */

static bool kept(const ax_treedef *def, const char *patterns, ax_args *out) {
  for (const ax_selection *s = def->selections; s != NULL; s = s->next)
    if (strcmp(s->patterns, patterns) == 0) {
      *out = s->args;
      return true;
    }
  return false;
}

/* Keeps the numbers of the leaves picked[i], of which there are out->count. */
static ax_status keep_list(ax_treedef *def, const char *patterns, const bool *picked, ax_args *out) {
  uint32_t *list = ax_arena_alloc(&def->selected, out->count * sizeof list[0]), count = 0;
  const char *copy = ax_arena_copy(&def->selected, patterns, strlen(patterns) + 1);
  ax_selection *selection = ax_arena_alloc(&def->selected, sizeof *selection);
  if (list == NULL || copy == NULL || selection == NULL) return ax_out_of_memory(out->count * sizeof list[0]);
  for (uint32_t i = 0; i < def->count; i++)
    if (picked[i]) list[count++] = i;
  out->list = list;
  *selection = (ax_selection){def->selections, copy, *out};
  def->selections = selection;
  return AX_OK;
}

/* A run of leaves needs no list. */
static ax_status select_new(ax_treedef *def, const char *patterns, ax_args *out) {
  ax_rules rules = {0};
  bool *picked = ax_calloc(def->count + 1, sizeof picked[0]);
  uint32_t first = AX_NONE, last = 0, count = 0;
  ax_status status = picked == NULL ? ax_out_of_memory(def->count) : ax_rules_parse(patterns, "treedef_select", false, &rules);
  for (uint32_t i = 0; i < def->count && status == AX_OK; i++) {
    if (!(picked[i] = ax_rules_pick(&rules, def->names[i]))) continue;
    if (count++ == 0) first = i;
    last = i;
  }
  if (status == AX_OK && count == 0)
    status = ax_error(AX_INVALID_ARGUMENT, "treedef_select: no leaf is meant by \"%s\"; the first of %u is \"%s\"", patterns,
                      def->count, def->count > 0 ? def->names[0] : "");
  if (status == AX_OK) {
    *out = (ax_args){NULL, last - first + 1 == count ? first : 0, count};
    if (last - first + 1 != count) status = keep_list(def, patterns, picked, out);
  }
  ax_rules_deinit(&rules);
  ax_free(picked);
  return status;
}

ax_args ax_treedef_select(const ax_treedef *def, const char *patterns) {
  ax_args args = {0};
  ax_treedef *own = (ax_treedef *)def; /* the kept selections are no visible change */
  ax_status status = ax_require(def, "treedef");
  if (status == AX_OK) status = ax_require(patterns, "list of patterns");
  if (status == AX_OK) {
    pthread_mutex_lock(&own->lock);
    if (!kept(def, patterns, &args)) status = select_new(own, patterns, &args);
    pthread_mutex_unlock(&own->lock);
  }
  if (status == AX_OK) return args;
  ax_fail(status);
  return AX_REFUSED_ARGS;
}

/* --- Names that are not there --- */

ax_status ax_treedef_no_leaf(const ax_treedef *def, const char *who, const char *name) {
  ax_nearest nearest = {0};
  ax_text text = {0};
  for (uint32_t i = 0; i < def->count; i++) ax_nearest_offer(&nearest, name, def->names[i], def->names[i]);
  ax_text_add(&text, "%s: there is no leaf \"%s\"", who, name);
  ax_nearest_text(&text, &nearest);
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s", text.data);
  ax_text_deinit(&text);
  return status;
}

/* --- Text --- */

static void leaf_text(ax_text *text, const ax_treedef *def, uint32_t i, int widest) {
  ax_text_add(text, "%s:%*s", def->names[i], widest + 1 - (int)strlen(def->names[i]), "");
  ax_type_text(text, &def->types[i], NULL);
  ax_text_add(text, "%s%s\n", def->specs[i][0] != '\0' ? " @ " : "", def->specs[i]);
}

ax_status ax_treedef_text(const ax_treedef *def, char **out) {
  ax_text text = {0};
  size_t widest = 0;
  double elems = 0, bytes = 0;
  *out = NULL;
  AX_TRY(ax_require(def, "treedef"));
  for (uint32_t i = 0; i < def->count; i++) {
    double here = (double)ax_type_elems(&def->types[i]);
    if (strlen(def->names[i]) > widest) widest = strlen(def->names[i]);
    elems += here;
    bytes += here * (double)ax_dtype_bytes(def->types[i].dtype);
  }
  for (uint32_t i = 0; i < def->count; i++) leaf_text(&text, def, i, (int)widest);
  ax_text_add(&text, "# %u leaves, %.0f elements, %.0f bytes\n", def->count, elems, bytes);
  return ax_text_finish(&text, out);
}
