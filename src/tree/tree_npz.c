/* Trees in .npz files: one member for each leaf, under its name. */
#include <string.h>

#include "axle/npy.h"
#include "ir/program.h"
#include "tree/tree.h"

enum { most_named = 5 };

/* Mismatches as text: the first few, then the number of the others. */
typedef struct complaints {
  ax_text text;
  uint32_t count;
} complaints;

static bool complain(complaints *c) { return c->count++ < most_named; }

static ax_status conclude(complaints *c, const char *path) {
  ax_status status = AX_OK;
  if (c->text.failed) status = ax_out_of_memory(0);
  else if (c->count > most_named)
    status =
        ax_error(AX_INVALID_ARGUMENT, "%s does not fit the tree:%s\n  ... and %u more", path, c->text.data, c->count - most_named);
  else if (c->count > 0) status = ax_error(AX_INVALID_ARGUMENT, "%s does not fit the tree:%s", path, c->text.data);
  ax_text_deinit(&c->text);
  return status;
}

/* members: by leaf, the place of its member in the file. */
static ax_status match(const ax_tree *tree, const ax_npz *npz, const char *path, uint32_t *members) {
  const ax_treedef *def = tree->def;
  complaints c = {0};
  for (uint32_t i = 0; i < def->count; i++) members[i] = AX_NONE;
  for (uint32_t m = 0; m < ax_npz_count(npz); m++) {
    const char *name = ax_npz_name(npz, m);
    const ax_host_array *array = ax_npz_array(npz, m);
    uint32_t leaf = ax_treedef_leaf(def, name, strlen(name));
    ax_type type = ax_array_type(array->dtype, AX_LIST(array->rank, array->dims));
    if (leaf == AX_NONE) {
      if (complain(&c)) ax_text_add(&c.text, "\n  \"%.200s\" is no leaf", name);
      continue;
    }
    members[leaf] = m;
    if (!ax_type_equal(&type, &def->types[leaf]) && complain(&c))
      ax_text_add(&c.text, "\n  %s is %s, but %s in the file", name, ax_type_string(&def->types[leaf], NULL),
                  ax_type_string(&type, NULL));
  }
  for (uint32_t i = 0; i < def->count; i++)
    if (members[i] == AX_NONE && complain(&c)) ax_text_add(&c.text, "\n  the leaf \"%s\" is missing", def->names[i]);
  return conclude(&c, path);
}

static ax_status put_members(ax_tree *tree, const ax_npz *npz, const char *path) {
  uint32_t count = tree->def->count, *members = ax_alloc((count + 1) * sizeof members[0]);
  ax_array **arrays = ax_tree_make_room(tree);
  ax_status status = members == NULL || arrays == NULL ? ax_out_of_memory(0) : match(tree, npz, path, members);
  for (uint32_t i = 0; i < count && status == AX_OK; i++)
    status = ax_array_of_data(tree->runtime, tree->layouts[i], ax_npz_array(npz, members[i])->data, &arrays[i]);
  ax_free(members);
  return ax_tree_replace(tree, arrays, status);
}

ax_status ax_tree_read_npz(ax_tree *tree, const char *path) {
  ax_npz *npz;
  AX_TRY(ax_require(tree, "tree"));
  AX_TRY(ax_npz_read(path, &npz));
  ax_status status = put_members(tree, npz, path);
  ax_npz_release(npz);
  return status;
}

ax_status ax_tree_write_npz(const ax_tree *tree, const char *path) {
  AX_TRY(ax_require(tree, "tree"));
  uint32_t count = tree->def->count;
  ax_host_array *hosts = ax_calloc(count + 1, sizeof hosts[0]);
  ax_status status = hosts == NULL ? ax_out_of_memory(count * sizeof hosts[0]) : AX_OK;
  for (uint32_t i = 0; i < count && status == AX_OK; i++) status = ax_tree_leaf_to_host(tree, "tree_write_npz", i, &hosts[i]);
  if (status == AX_OK) status = ax_npz_write(path, AX_LIST(count, tree->def->names), hosts);
  for (uint32_t i = 0; i < count && hosts != NULL; i++) ax_host_array_release(&hosts[i]);
  ax_free(hosts);
  return status;
}
