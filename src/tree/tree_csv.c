/* Leaves from tables of numbers. All leaves that change are read before the first one is put in its place. */
#include <string.h>

#include "bridge/npy.h"
#include "tree/pattern.h"
#include "tree/tree.h"

typedef struct csv_source {
  const char *path;
  ax_host_array table;
  ax_rules rules;
  bool *decides; /* by rule: whether it is the first that matches some leaf */
} csv_source;

/* A rule's value as a text of its own; the caller frees it. NULL: no memory. */
static char *value_of(const ax_rule *rule) {
  char *text = ax_alloc(rule->value.length + 1);
  if (text == NULL) return NULL;
  memcpy(text, rule->value.start, rule->value.length);
  text[rule->value.length] = '\0';
  return text;
}

/* The part of the table that `text` names, as the leaf's array. */
static ax_status make_array(const ax_tree *tree, const csv_source *source, uint32_t leaf, const char *text, ax_array **out) {
  const ax_type *wanted = &tree->def->types[leaf];
  ax_host_array part;
  AX_TRY(ax_csv_take_part(source->path, &source->table, text, wanted->dtype, &part));
  const ax_type type = ax_array_type(part.dtype, AX_LIST(part.rank, part.dims));
  ax_status status = ax_type_equal(&type, wanted)
                         ? ax_array_of_data(tree->runtime, tree->layouts[leaf], part.data, out)
                         : ax_error(AX_INVALID_ARGUMENT, "the leaf is %s, but \"%s\" of %s is %s", ax_type_string(wanted, NULL),
                                    text, source->path, ax_type_string(&type, NULL));
  ax_host_array_release(&part);
  return status;
}

/* The array that the leaf is to hold: a part of the table, or what it holds already. */
static ax_status read_leaf(const ax_tree *tree, const csv_source *source, uint32_t leaf, ax_array **out) {
  const ax_rule *rule = ax_rules_find(&source->rules, tree->def->names[leaf]);
  if (rule == NULL) {
    *out = ax_array_retain(tree->arrays[leaf]);
    return AX_OK;
  }
  source->decides[rule - source->rules.list] = true;
  char *text = value_of(rule);
  if (text == NULL) return ax_out_of_memory(rule->value.length);
  ax_status status = make_array(tree, source, leaf, text, out);
  ax_free(text);
  return status != AX_OK ? ax_error_context(status, "tree_read_csv: %s: ", tree->def->names[leaf]) : AX_OK;
}

static ax_status check_rules(const csv_source *source) {
  const ax_rules *rules = &source->rules;
  for (uint32_t i = 0; i < rules->count; i++)
    if (!source->decides[i])
      return ax_error(AX_INVALID_ARGUMENT, "tree_read_csv: the pattern \"%.*s\" decides for no leaf",
                      (int)rules->list[i].pattern.length, rules->list[i].pattern.start);
  return rules->count > 0 ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "tree_read_csv: there are no parts to read");
}

static ax_status read_leaves(ax_tree *tree, csv_source *source) {
  ax_array **arrays = ax_tree_make_room(tree);
  source->decides = ax_calloc(source->rules.count + 1, sizeof source->decides[0]);
  ax_status status = arrays == NULL || source->decides == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; i < tree->def->count && status == AX_OK; i++) status = read_leaf(tree, source, i, &arrays[i]);
  if (status == AX_OK) status = check_rules(source);
  ax_free(source->decides);
  return ax_tree_replace(tree, arrays, status);
}

ax_status ax_tree_read_csv(ax_tree *tree, const char *path, const char *parts) {
  csv_source source = {.path = path};
  AX_TRY(ax_require(tree, "tree"));
  ax_status status = ax_rules_parse(parts, "tree_read_csv", true, &source.rules);
  if (status == AX_OK) status = ax_csv_read(path, &source.table);
  if (status == AX_OK) status = read_leaves(tree, &source);
  ax_host_array_release(&source.table);
  ax_rules_deinit(&source.rules);
  return status;
}
