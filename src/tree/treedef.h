/* The inside of a treedef, and the steps that make one: begin, add each leaf, finish. */
#ifndef AX_TREE_TREEDEF_H
#define AX_TREE_TREEDEF_H

#include <pthread.h>
#include <stdatomic.h>

#include "axle/tree.h"
#include "base/base.h"

/* The meaning of a name, found by its hash: a leaf, or a node with leaves below it. */
typedef struct ax_tree_name {
  const char *start; /* NULL: an empty place */
  uint32_t length, leaf; /* AX_NONE: a node */
  uint32_t first;        /* the first of the leaves that the name means */
} ax_tree_name;

/* The numbers of the leaves that a list of patterns selects, kept for the next call. */
typedef struct ax_selection {
  struct ax_selection *next;
  const char *patterns;
  ax_args args;
} ax_selection;

struct ax_treedef {
  atomic_uint references;
  uint32_t count;
  ax_arena arena; /* owns all text */
  const char **names, **specs;
  ax_type *types;
  uint32_t name_capacity, spec_capacity, type_capacity;
  ax_tree_name *table; /* open addressing; its size is a power of 2 */
  uint32_t table_size, table_count;
  char *all_specs;
  pthread_mutex_t lock; /* guards all below */
  ax_arena selected;
  ax_selection *selections;
};

AX_MUST_USE ax_status ax_treedef_begin(ax_treedef **out);
/* Adds a leaf: the text is copied. AX_INVALID_ARGUMENT: the errors of a leaf that ax_treedef_parse lists. */
AX_MUST_USE ax_status ax_treedef_add(ax_treedef *def, const char *name, size_t name_length, const ax_type *type, const char *spec,
                                     size_t spec_length);
/* Ends the treedef with the status of adding its leaves. On failure it is released and *out is NULL. */
AX_MUST_USE ax_status ax_treedef_finish(ax_treedef *def, ax_status status, ax_treedef **out);

/* The number of the leaf with this name; AX_NONE: there is none. */
uint32_t ax_treedef_leaf(const ax_treedef *def, const char *name, size_t length);
/* The first leaf with this name, or below the node with this name; AX_NONE: there is none. */
uint32_t ax_treedef_first(const ax_treedef *def, const char *name);
/* Makes the error "who: there is no leaf "layers/0/W"; the nearest: "layers/0/w", .." */
AX_MUST_USE ax_status ax_treedef_no_leaf(const ax_treedef *def, const char *who, const char *name);

#endif
