/* Trees in .npz files: one member for each leaf, under its name. */
#include <string.h>

#include "array/joint.h"
#include "array/runtime.h"
#include "axle/npy.h"
#include "axle/processes.h"
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

static ax_status put_members(ax_tree *tree, const ax_npz *npz, const char *path, ax_array **arrays) {
  uint32_t count = tree->def->count, *members = ax_alloc((count + 1) * sizeof members[0]);
  ax_status status = members == NULL || arrays == NULL ? ax_out_of_memory(0) : match(tree, npz, path, members);
  for (uint32_t i = 0; i < count && status == AX_OK; i++)
    status = ax_array_of_data(tree->runtime, tree->layouts[i], ax_npz_array(npz, members[i])->data, &arrays[i]);
  ax_free(members);
  return status;
}

/* --- Several processes --- */

typedef struct filing { /* what they compare */
  const char *what, *path;
} filing;

static void describe(const void *context, ax_text *text) {
  const filing *f = context;
  ax_text_add(text, "%s %s", f->what, f->path);
}

static bool is_leaf_spread(const ax_tree *tree, uint32_t leaf) {
  const ax_array *array = tree->arrays[leaf];
  return (array != NULL ? array->layout : tree->layouts[leaf])->map != NULL;
}

static bool is_spread(const ax_tree *tree) {
  for (uint32_t i = 0; i < tree->def->count; i++)
    if (is_leaf_spread(tree, i)) return true;
  return false;
}

/* Ends in all processes as in the first that has failed. */
static ax_status agree(const ax_tree *tree, const char *what, const char *path, ax_status status) {
  const filing f = {what, path};
  const uint64_t check = ax_hash_bytes(ax_hash_bytes(13, what, strlen(what)), path, strlen(path));
  ax_joint joint;
  ax_joint_begin(&joint, tree->runtime, is_spread(tree), &(ax_doing){check | 1, describe, &f, "the writing or reading of a tree"});
  return ax_joint_end(&joint, status);
}

/* --- Files --- */

ax_status ax_tree_read_npz(ax_tree *tree, const char *path) {
  ax_npz *npz;
  AX_TRY(ax_require(tree, "tree"));
  AX_TRY(ax_require(path, "path"));
  ax_array **arrays = ax_tree_make_room(tree);
  ax_status status = ax_npz_read(path, &npz);
  if (status == AX_OK) status = put_members(tree, npz, path, arrays);
  ax_npz_release(npz);
  return ax_tree_replace(tree, arrays, agree(tree, "reads a tree from", path, status));
}

/* Leaves that each process has whole, which only process 0 writes. */
static ax_status take_own(const ax_tree *tree, ax_host_array *hosts) {
  for (uint32_t i = 0; i < tree->def->count; i++) {
    if (tree->arrays[i] == NULL || !is_leaf_spread(tree, i)) AX_TRY(ax_tree_leaf_to_host(tree, "tree_write_npz", i, &hosts[i]));
  }
  return AX_OK;
}

/* Collective, and so only once all processes have come so far. */
static ax_status gather_spread(const ax_tree *tree, ax_host_array *hosts) {
  for (uint32_t i = 0; i < tree->def->count; i++)
    if (is_leaf_spread(tree, i)) AX_TRY(ax_array_gather(tree->arrays[i], 0, &hosts[i]));
  return AX_OK;
}

static ax_status write_all(const ax_tree *tree, const char *path, ax_host_array *hosts) {
  const uint32_t count = tree->def->count;
  ax_status status = hosts != NULL ? take_own(tree, hosts) : ax_out_of_memory(count * sizeof hosts[0]);
  AX_TRY(agree(tree, "writes a tree into", path, status));
  AX_TRY(gather_spread(tree, hosts));
  const bool writes = !is_spread(tree) || ax_process_index(tree->runtime) == 0;
  if (writes) status = ax_npz_write(path, AX_LIST(count, tree->def->names), hosts);
  return agree(tree, "has written a tree into", path, status);
}

ax_status ax_tree_write_npz(const ax_tree *tree, const char *path) {
  AX_TRY(ax_require(tree, "tree"));
  AX_TRY(ax_require(path, "path"));
  uint32_t count = tree->def->count;
  ax_host_array *hosts = ax_calloc(count + 1, sizeof hosts[0]);
  ax_status status = write_all(tree, path, hosts);
  for (uint32_t i = 0; i < count && hosts != NULL; i++) ax_host_array_release(&hosts[i]);
  ax_free(hosts);
  return status;
}
