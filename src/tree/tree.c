/* Trees: creation, filling, reading and copying, a leaf at a time. A function that changes all leaves makes all new arrays first,
   so that a failure changes nothing. */
#include "tree/tree.h"

#include <stdio.h>
#include <string.h>

#include "array/executable.h"
#include "tree/init.h"
#include "tree/pattern.h"

/* --- Made and released --- */

void ax_tree_release(ax_tree *tree) {
  if (tree == NULL) return;
  for (uint32_t i = 0; i < tree->def->count; i++) {
    if (tree->arrays != NULL) ax_array_release(tree->arrays[i]);
    if (tree->layouts != NULL) ax_layout_release(tree->layouts[i]);
  }
  ax_free(tree->arrays);
  ax_free(tree->layouts);
  ax_treedef_release(tree->def);
  ax_runtime_drop(tree->runtime);
  ax_free(tree);
}

static ax_status describe_leaves(ax_tree *tree, const ax_mesh *mesh) {
  const ax_treedef *def = tree->def;
  tree->layouts = ax_calloc(def->count + 1, sizeof tree->layouts[0]);
  tree->arrays = ax_tree_make_room(tree);
  if (tree->layouts == NULL || tree->arrays == NULL) return ax_out_of_memory(def->count * sizeof tree->layouts[0]);
  for (uint32_t i = 0; i < def->count; i++) {
    ax_status status = ax_layout_describe("tree", tree->runtime, mesh, def->specs[i], &def->types[i], &tree->layouts[i]);
    if (status != AX_OK) return ax_error_context(status, "tree_create: %s: ", def->names[i]);
  }
  return AX_OK;
}

ax_status ax_tree_create(ax_runtime *runtime, const ax_mesh *mesh, ax_treedef *def, ax_tree **out) {
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(def, "treedef"));
  ax_tree *tree = ax_calloc(1, sizeof *tree);
  if (tree == NULL) return ax_out_of_memory(sizeof *tree);
  tree->def = ax_treedef_retain(def);
  tree->runtime = ax_runtime_hold(runtime);
  ax_status status = describe_leaves(tree, mesh);
  if (status == AX_OK) *out = tree;
  else ax_tree_release(tree);
  return status;
}

const ax_treedef *ax_tree_def(const ax_tree *tree) { return tree != NULL ? tree->def : NULL; }

ax_array **ax_tree_make_room(const ax_tree *tree) { return ax_calloc(tree->def->count + 1, sizeof(ax_array *)); }

ax_status ax_tree_replace(ax_tree *tree, ax_array **arrays, ax_status status) {
  for (uint32_t i = 0; arrays != NULL && i < tree->def->count; i++) {
    ax_array *other = tree->arrays[i];
    if (status == AX_OK) tree->arrays[i] = arrays[i];
    ax_array_release(status == AX_OK ? other : arrays[i]);
  }
  ax_free(arrays);
  return status;
}

/* --- All leaves --- */

static ax_status init_leaf(const ax_tree *tree, const ax_rules *rules, uint64_t seed, uint32_t i, ax_array **out) {
  const ax_treedef *def = tree->def;
  const ax_rule *rule = ax_rules_find(rules, def->names[i]);
  if (rule == NULL) return ax_error(AX_INVALID_ARGUMENT, "no pattern matches it; \"*: zeros\" would");
  size_t bytes = (size_t)ax_type_elems(&def->types[i]) * ax_dtype_bytes(def->types[i].dtype);
  void *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  ax_fill_key key = ax_fill_key_fold_in(ax_fill_key_of(seed), i);
  ax_status status = ax_init_fill(rule->value.start, rule->value.length, &def->types[i], key, data);
  if (status == AX_OK) status = ax_array_of_data(tree->runtime, tree->layouts[i], data, out);
  ax_free(data);
  return status;
}

ax_status ax_tree_init(ax_tree *tree, const char *rules, uint64_t seed) {
  ax_rules parsed;
  AX_TRY(ax_require(tree, "tree"));
  ax_status status = ax_rules_parse(rules, "tree_init", true, &parsed);
  ax_array **arrays = ax_tree_make_room(tree);
  if (status == AX_OK && arrays == NULL) status = ax_out_of_memory(0);
  for (uint32_t i = 0; i < tree->def->count && status == AX_OK; i++) {
    status = init_leaf(tree, &parsed, seed, i, &arrays[i]);
    if (status != AX_OK) status = ax_error_context(status, "tree_init: %s: ", tree->def->names[i]);
  }
  ax_rules_deinit(&parsed);
  return ax_tree_replace(tree, arrays, status);
}

static ax_status copy_leaf(const ax_tree *from, const ax_tree *to, uint32_t i, ax_array **out) {
  const char *name = to->def->names[i];
  const ax_type *type = &to->def->types[i];
  uint32_t leaf = ax_treedef_leaf(from->def, name, strlen(name));
  ax_host_array host;
  if (leaf == AX_NONE) return ax_error(AX_INVALID_ARGUMENT, "tree_copy: the tree that is copied has no leaf \"%s\"", name);
  if (!ax_type_equal(&from->def->types[leaf], type))
    return ax_error(AX_INVALID_ARGUMENT, "tree_copy: %s is %s, but %s in the tree it is copied into", name,
                    ax_type_string(&from->def->types[leaf], NULL), ax_type_string(type, NULL));
  AX_TRY(ax_tree_leaf_to_host(from, "tree_copy", leaf, &host));
  ax_status status = ax_array_of_data(to->runtime, to->layouts[i], host.data, out);
  ax_host_array_release(&host);
  return status;
}

ax_status ax_tree_copy(const ax_tree *from, ax_tree *to) {
  AX_TRY(ax_require(from, "tree"));
  AX_TRY(ax_require(to, "tree"));
  for (uint32_t i = 0; i < from->def->count; i++)
    if (ax_treedef_leaf(to->def, from->def->names[i], strlen(from->def->names[i])) == AX_NONE)
      return ax_error(AX_INVALID_ARGUMENT, "tree_copy: there is no leaf \"%s\" to copy into", from->def->names[i]);
  ax_array **arrays = ax_tree_make_room(to);
  ax_status status = arrays == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; i < to->def->count && status == AX_OK; i++) status = copy_leaf(from, to, i, &arrays[i]);
  return ax_tree_replace(to, arrays, status);
}

/* --- One leaf --- */

/* The leaf that a format and its arguments name. */
static ax_status find(const ax_tree *tree, const char *who, const char *format, va_list arguments, uint32_t *leaf) {
  char name[AX_MAX_LEAF_NAME] = "";
  AX_TRY(ax_require(tree, "tree"));
  AX_TRY(ax_require(format, "name of a leaf"));
  int length = vsnprintf(name, sizeof name, format, arguments);
  *leaf = length >= 0 && (size_t)length < sizeof name ? ax_treedef_leaf(tree->def, name, (size_t)length) : AX_NONE;
  return *leaf != AX_NONE ? AX_OK : ax_treedef_no_leaf(tree->def, who, name);
}

static ax_status blame(const ax_tree *tree, uint32_t leaf, const char *who, ax_status status) {
  return status != AX_OK && status != AX_OUT_OF_MEMORY ? ax_error_context(status, "%s: %s: ", who, tree->def->names[leaf]) : status;
}

static void hold(ax_tree *tree, uint32_t leaf, ax_array *array) {
  ax_array_release(tree->arrays[leaf]);
  tree->arrays[leaf] = array;
}

static ax_status put(ax_tree *tree, const char *who, uint32_t leaf, const void *data) {
  ax_array *array;
  ax_status status = ax_array_of_data(tree->runtime, tree->layouts[leaf], data, &array);
  if (status == AX_OK) hold(tree, leaf, array);
  return blame(tree, leaf, who, status);
}

ax_status (ax_tree_put)(ax_tree *tree, ax_dtype element, const void *data, size_t bytes, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  va_start(arguments, name);
  ax_status status = find(tree, "tree_put", name, arguments, &leaf);
  va_end(arguments);
  if (status != AX_OK) return status;
  if (data != NULL) status = ax_memory_check(tree->def->names[leaf], &tree->def->types[leaf], element, bytes);
  if (status != AX_OK) return ax_error_context(status, "tree_put: ");
  return put(tree, "tree_put", leaf, data);
}

static ax_status differs(const char *who, const ax_tree *tree, uint32_t leaf, const ax_type *got) {
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s is %s, not %s", who, tree->def->names[leaf],
                  ax_type_string(&tree->def->types[leaf], NULL), ax_type_string(got, NULL));
}

ax_status ax_tree_put_host(ax_tree *tree, const ax_host_array *host, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  va_start(arguments, name);
  ax_status status = find(tree, "tree_put_host", name, arguments, &leaf);
  va_end(arguments);
  if (status != AX_OK) return status;
  AX_TRY(ax_require(host, "host array"));
  status = ax_view_check(host);
  if (status != AX_OK) return ax_error_context(status, "tree_put_host: %s: ", tree->def->names[leaf]);
  ax_type type = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
  if (!ax_type_equal(&type, &tree->def->types[leaf])) return differs("tree_put_host", tree, leaf, &type);
  return put(tree, "tree_put_host", leaf, host->data);
}

static ax_status require_array(const ax_tree *tree, uint32_t leaf) {
  return tree->arrays[leaf] != NULL ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "the leaf holds nothing yet");
}

ax_status ax_tree_leaf_to_host(const ax_tree *tree, const char *who, uint32_t leaf, ax_host_array *out) {
  *out = (ax_host_array){0};
  ax_status status = require_array(tree, leaf);
  if (status == AX_OK) status = ax_array_to_host(tree->arrays[leaf], out);
  return blame(tree, leaf, who, status);
}

ax_status (ax_tree_read)(const ax_tree *tree, ax_dtype element, void *data, size_t bytes, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  va_start(arguments, name);
  ax_status status = find(tree, "tree_read", name, arguments, &leaf);
  va_end(arguments);
  if (status != AX_OK) return status;
  status = require_array(tree, leaf);
  if (status == AX_OK) status = (ax_array_read)(tree->arrays[leaf], element, data, bytes);
  return blame(tree, leaf, "tree_read", status);
}

ax_status ax_tree_to_host(const ax_tree *tree, ax_host_array *out, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  *out = (ax_host_array){0};
  va_start(arguments, name);
  ax_status status = find(tree, "tree_to_host", name, arguments, &leaf);
  va_end(arguments);
  return status == AX_OK ? ax_tree_leaf_to_host(tree, "tree_to_host", leaf, out) : status;
}

ax_array *ax_tree_get(const ax_tree *tree, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  va_start(arguments, name);
  ax_status status = find(tree, "tree_get", name, arguments, &leaf);
  va_end(arguments);
  return status == AX_OK ? tree->arrays[leaf] : NULL;
}

ax_status ax_tree_set(ax_tree *tree, ax_array *array, const char *name, ...) {
  uint32_t leaf;
  va_list arguments;
  va_start(arguments, name);
  ax_status status = find(tree, "tree_set", name, arguments, &leaf);
  va_end(arguments);
  if (status != AX_OK) return status;
  AX_TRY(ax_require(array, "array"));
  const ax_type *type = ax_array_typeof(array);
  if (!ax_type_equal(type, &tree->def->types[leaf])) return differs("tree_set", tree, leaf, type);
  hold(tree, leaf, ax_array_retain(array));
  return AX_OK;
}
