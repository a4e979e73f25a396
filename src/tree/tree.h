/* A tree's inside. */
#ifndef AX_TREE_TREE_H
#define AX_TREE_TREE_H

#include "exec/array.h"
#include "tree/treedef.h"

struct ax_tree {
  ax_treedef *def;     /* retained */
  ax_runtime *runtime; /* held */
  ax_layout **layouts; /* by leaf: how what is put into it lies */
  ax_array **arrays;   /* by leaf: owned; NULL: it holds nothing */
};

/* An array a leaf, all NULL. NULL: no memory. */
ax_array **ax_tree_make_room(const ax_tree *tree);
/* Releases what the leaves hold and gives them these arrays; frees the list. Or, unless `status` is AX_OK, releases these. Returns
   status. */
ax_status ax_tree_replace(ax_tree *tree, ax_array **arrays, ax_status status);
/* What a leaf holds, copied into an empty host array. `who` begins messages. AX_INVALID_ARGUMENT: nothing. */
AX_MUST_USE ax_status ax_tree_leaf_to_host(const ax_tree *tree, const char *who, uint32_t leaf, ax_host_array *out);

#endif
