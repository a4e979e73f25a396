/* Runs of executables whose arguments and results are the leaves of trees. Leaves that do not match are reported by name, before
   the run starts. */
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "tree/tree.h"

enum { most_named = 5 }; /* leaves that one message names */

/* The leaves of several trees, one tree after the other: the program's arguments, or its results, in order. */
typedef struct leaves {
  ax_tree *const *trees;
  uint32_t tree_count, count;
} leaves;

static ax_status take_leaves(ax_tree *const *trees, uint32_t tree_count, leaves *out) {
  uint64_t count = 0;
  if (tree_count > 0) AX_TRY(ax_require(trees, "list of trees"));
  for (uint32_t t = 0; t < tree_count; t++) {
    AX_TRY(ax_require(trees[t], "tree"));
    count += trees[t]->def->count;
  }
  if (count >= AX_NONE) return ax_error(AX_INVALID_ARGUMENT, "tree_run: more than 2^32 leaves");
  *out = (leaves){trees, tree_count, (uint32_t)count};
  return AX_OK;
}

/* Adds the number of leaves, and how the trees share it: "5 (2 + 3)". */
static void count_text(ax_text *text, const leaves *l) {
  ax_text_add(text, "%u", l->count);
  for (uint32_t t = 0; t < l->tree_count && l->tree_count > 1; t++)
    ax_text_add(text, "%s%u", t == 0 ? " (" : " + ", l->trees[t]->def->count);
  if (l->tree_count > 1) ax_text_add(text, ")");
}

static ax_status check_counts(const ax_executable *e, const leaves *in, const leaves *out) {
  ax_text text = {0};
  if (in->count == e->signature.in_count && out->count == e->signature.out_count) return AX_OK;
  count_text(&text, in);
  ax_text_add(&text, " and ");
  count_text(&text, out);
  ax_status status =
      text.failed
          ? ax_out_of_memory(0)
          : ax_error(AX_INVALID_ARGUMENT, "tree_run: the program takes %u arguments and gives %u results; the trees have %s leaves",
                     e->signature.in_count, e->signature.out_count, text.data);
  ax_text_deinit(&text);
  return status;
}

/* The reason why a leaf's array cannot be an argument; NULL: it can. */
static const char *fault_of(const ax_executable *e, ax_array *array) {
  if (array == NULL) return "holds nothing yet";
  if (ax_array_gone(array)) return "held what was donated to an earlier run";
  return array->layout->runtime != e->runtime ? "holds what is another runtime's" : NULL;
}

/* Returns whether leaf i of tree t fits as argument or result `number`. If not, adds the reason to the text, unless the text has
   the reasons of most_named leaves already: `wrong` leaves did not fit before. */
static bool fits(const ax_executable *e, const leaves *l, uint32_t t, uint32_t i, bool arguments, uint32_t number, ax_text *text,
                 uint32_t wrong) {
  const ax_type *is = &l->trees[t]->def->types[i];
  const ax_type *want = arguments ? ax_program_in_type(e->program, number) : ax_program_out_type(e->program, number);
  const char *what = arguments ? "argument" : "result", *name = l->trees[t]->def->names[i];
  bool alike = is->dtype == want->dtype && ax_same_shape(is, want);
  const char *fault = alike && arguments ? fault_of(e, l->trees[t]->arrays[i]) : NULL;
  if (alike && fault == NULL) return true;
  if (wrong >= most_named) return false;
  if (!alike)
    ax_text_add(text, "\n  %s of tree %u is %s, but %s %u is %s", name, t, ax_type_string(is, NULL), what, number,
                ax_type_string(want, NULL));
  else ax_text_add(text, "\n  %s of tree %u (%s %u) %s", name, t, what, number, fault);
  return false;
}

/* AX_INVALID_ARGUMENT: some leaves do not fit. The message counts them and names the first ones. */
static ax_status check_leaves(const ax_executable *e, const leaves *l, bool arguments) {
  ax_text text = {0};
  uint32_t wrong = 0, number = 0;
  for (uint32_t t = 0; t < l->tree_count; t++)
    for (uint32_t i = 0; i < l->trees[t]->def->count; i++, number++) wrong += !fits(e, l, t, i, arguments, number, &text, wrong);
  if (wrong == 0) return AX_OK;
  if (wrong > most_named) ax_text_add(&text, "\n  ... and %u more", wrong - most_named);
  ax_status status = text.failed ? ax_out_of_memory(0)
                                 : ax_error(AX_INVALID_ARGUMENT, "tree_run: %u of %u %s do not match:%s", wrong, l->count,
                                            arguments ? "arguments" : "results", text.data);
  ax_text_deinit(&text);
  return status;
}

/* Writes the arrays of all leaves into one list, in order. */
static void gather(const leaves *in, ax_array **arrays) {
  for (uint32_t t = 0; t < in->tree_count; t++) {
    uint32_t count = in->trees[t]->def->count;
    if (count > 0) memcpy(arrays, in->trees[t]->arrays, count * sizeof arrays[0]);
    arrays += count;
  }
}

/* Puts the results into the leaves, which own them from now on, in place of the arrays that they held. */
static void scatter(const leaves *out, ax_array **results) {
  for (uint32_t t = 0; t < out->tree_count; t++)
    for (uint32_t i = 0; i < out->trees[t]->def->count; i++) {
      ax_array_release(out->trees[t]->arrays[i]);
      out->trees[t]->arrays[i] = *results++;
    }
}

/* --- Why a run refused its arguments, by leaf --- */

typedef struct holder {
  const ax_array *array;
  uint32_t number; /* of the argument */
} holder;

static int by_array(const void *a, const void *b) {
  const holder *x = a, *y = b;
  if (x->array != y->array) return x->array < y->array ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Returns the name of the leaf that is argument `number`, and in *tree the number of its tree. */
static const char *leaf_of(const leaves *in, uint32_t number, uint32_t *tree) {
  for (*tree = 0; number >= in->trees[*tree]->def->count; ++*tree) number -= in->trees[*tree]->def->count;
  return in->trees[*tree]->def->names[number];
}

static void name_leaf(ax_text *text, const void *context, uint32_t argument) {
  uint32_t tree;
  const char *name = leaf_of(context, argument, &tree);
  ax_text_add(text, "%s of tree %u", name, tree);
}

/* The run has refused its arguments with `status`, in a message that numbers them. If the reason is that they lie on different
   devices, or that a donated array is in two leaves, puts a message with the leaves' names in its place. */
static ax_status explain(ax_executable *e, const leaves *in, ax_array *const *arrays, ax_status status) {
  const ax_assigned *assigned;
  AX_TRY(ax_assigned_find(e, arrays, "tree_run", &(ax_naming){name_leaf, in}, &assigned));
  holder *holders = ax_alloc((size_t)in->count * sizeof holders[0]);
  if (holders == NULL) return status;
  for (uint32_t i = 0; i < in->count; i++) holders[i] = (holder){arrays[i], i};
  qsort(holders, in->count, sizeof holders[0], by_array);
  for (uint32_t i = 1; i < in->count; i++) {
    uint32_t a = holders[i - 1].number, b = holders[i].number, tree_a, tree_b;
    if (holders[i].array != holders[i - 1].array || !(e->signature.in[a].donate || e->signature.in[b].donate)) continue;
    const bool first_given = e->signature.in[a].donate;
    const char *first = leaf_of(in, first_given ? a : b, &tree_a), *second = leaf_of(in, first_given ? b : a, &tree_b);
    status = ax_error(status, "tree_run: %s of tree %u is donated, but %s of tree %u holds the same array: %s", first, tree_a,
                      second, tree_b, ax_type_string(ax_array_typeof(holders[i].array), NULL));
    break;
  }
  ax_free(holders);
  return status;
}

/* --- Running --- */

typedef ax_status run_function(ax_executable *executable, uint32_t in_count, ax_array *const *in, uint32_t out_count,
                               ax_array **out);

static ax_status run(run_function *function, ax_executable *e, ax_tree *const *in_trees, uint32_t in_count,
                     ax_tree *const *out_trees, uint32_t out_count) {
  leaves in, out;
  AX_TRY(ax_require(e, "executable"));
  AX_TRY(ax_list_length("tree_run", "trees", in_count, &in_count));
  AX_TRY(ax_list_length("tree_run", "trees", out_count, &out_count));
  AX_TRY(take_leaves(in_trees, in_count, &in));
  AX_TRY(take_leaves(out_trees, out_count, &out));
  AX_TRY(check_counts(e, &in, &out));
  AX_TRY(check_leaves(e, &in, true));
  AX_TRY(check_leaves(e, &out, false));
  ax_array **arrays = ax_calloc((size_t)in.count + out.count + 1, sizeof arrays[0]);
  if (arrays == NULL) return ax_out_of_memory(((size_t)in.count + out.count) * sizeof arrays[0]);
  gather(&in, arrays);
  ax_status status = function(e, in.count, arrays, out.count, arrays + in.count);
  if (status == AX_OK) scatter(&out, arrays + in.count);
  if (status == AX_INVALID_ARGUMENT) status = explain(e, &in, arrays, status);
  ax_free(arrays);
  return status;
}

ax_status (ax_tree_run)(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count, ax_tree *const *out) {
  return run(ax_run, executable, in, in_count, out, out_count);
}

ax_status (ax_tree_run_start)(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count,
                            ax_tree *const *out) {
  return run(ax_run_start, executable, in, in_count, out, out_count);
}
