/* The inside of a tree. */
#ifndef AX_TREE_TREE_H
#define AX_TREE_TREE_H

#include "array/array.h"
#include "tree/treedef.h"

struct ax_tree {
  ax_treedef *def;     /* retained */
  ax_runtime *runtime; /* held */
  ax_layout **layouts; /* by leaf: the layout of the array it holds */
  ax_array **arrays;   /* by leaf: owned; NULL: it holds nothing */
};

/* A list with an entry for each leaf, all NULL. NULL: no memory. */
ax_array **ax_tree_make_room(const ax_tree *tree);
/* Releases the leaves' arrays and puts `arrays` in their place. If `status` is an error it releases `arrays` instead. Frees the
   list in either case; returns status. */
ax_status ax_tree_replace(ax_tree *tree, ax_array **arrays, ax_status status);
/* Copies a leaf's array into an empty host array. `who` begins messages. AX_INVALID_ARGUMENT: the leaf holds nothing. */
AX_MUST_USE ax_status ax_tree_leaf_to_host(const ax_tree *tree, const char *who, uint32_t leaf, ax_host_array *out);

#endif
