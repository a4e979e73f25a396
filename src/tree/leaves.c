/* Leaves in a trace: finding them by name, mapping a function over them, summing them. */
#include "tree/leaves.h"

#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "prim/region.h"
#include "prim/bind.h"
#include "tree/treedef.h"

/* --- By name --- */

ax_value ax_leaf(const ax_treedef *def, const ax_value *leaves, const char *name, ...) {
  char written[AX_MAX_LEAF_NAME] = "";
  va_list arguments;
  ax_status status = ax_require(def, "treedef");
  if (status == AX_OK) status = ax_require(leaves, "list of leaves");
  if (status == AX_OK) status = ax_require(name, "name of a leaf");
  if (status == AX_OK) {
    va_start(arguments, name);
    int length = vsnprintf(written, sizeof written, name, arguments);
    va_end(arguments);
    uint32_t leaf = length >= 0 && (size_t)length < sizeof written ? ax_treedef_leaf(def, written, (size_t)length) : AX_NONE;
    if (leaf != AX_NONE) return leaves[leaf];
    status = ax_treedef_no_leaf(def, "leaf", written);
  }
  ax_fail(status);
  return ax_poison;
}

const ax_value *ax_leaves(const ax_treedef *def, const ax_value *leaves, const char *node) {
  ax_status status = ax_require(def, "treedef");
  if (status == AX_OK) status = ax_require(leaves, "list of leaves");
  if (status == AX_OK) status = ax_require(node, "name of a node");
  uint32_t leaf = status == AX_OK ? ax_treedef_first(def, node) : AX_NONE;
  if (leaf != AX_NONE) return leaves + leaf;
  if (status == AX_OK) status = ax_error(AX_INVALID_ARGUMENT, "leaves: no leaf is below \"%.*s\"", AX_MAX_LEAF_NAME, node);
  ax_fail(status);
  return leaves != NULL ? leaves : &ax_poison;
}

/* --- All of them --- */

/* Whether there is room for as many results as there are leaves. Otherwise the trace has failed, and all entries that `out` has are
   poison. */
static bool out_fits(const char *who, uint32_t count, uint32_t out_count, ax_value *out) {
  if (ax_list_fits(who, "there are", "value", out_count, count)) return true;
  ax_poison_list(out_count, count, out);
  return false;
}

void (ax_tree_map)(ax_value (*f)(ax_value), uint32_t count, const ax_value *x, uint32_t out_count, ax_value *out) {
  for (uint32_t i = 0; out_fits("tree_map", count, out_count, out) && i < count; i++) out[i] = f(x[i]);
}

void (ax_tree_zip)(ax_value (*f)(ax_value, ax_value), uint32_t count, const ax_value *a, uint32_t b_count, const ax_value *b,
                   uint32_t out_count, ax_value *out) {
  bool fits = out_fits("tree_zip", count, out_count, out) && ax_list_fits("tree_zip", "a has", "value", b_count, count);
  for (uint32_t i = 0; fits && i < count; i++) out[i] = f(a[i], b[i]);
}

ax_value (ax_tree_reduce)(ax_value (*f)(ax_value, ax_value), uint32_t count, const ax_value *x) {
  if (count == 0) return ax_reject_as("tree_reduce", "there is no leaf");
  ax_value all = x[0];
  for (uint32_t i = 1; i < count; i++) all = f(all, x[i]);
  return all;
}

void (ax_tree_scale)(ax_value factor, uint32_t count, const ax_value *x, uint32_t out_count, ax_value *out) {
  if (!out_fits("tree_scale", count, out_count, out)) return;
  ax_value by_dtype[AX_DTYPE_COUNT] = {0}; /* the factor in each leaf's dtype, made once */
  for (uint32_t i = 0; i < count; i++) {
    ax_dtype dtype = ax_typeof(x[i]).dtype;
    if (ax_failed()) {
      out[i] = ax_poison;
      continue;
    }
    if (by_dtype[dtype].trace == 0)
      by_dtype[dtype] = ax_is_number(factor) ? ax_as("tree_scale", factor, dtype) : ax_convert_element_type(factor, dtype);
    out[i] = ax_mul(x[i], by_dtype[dtype]);
  }
}

/* --- Norms --- */

ax_axis_set ax_parts_axes(ax_value x, const char *spec) {
  ax_axis_set set = ax_typeof(x).spread.varying;
  if (ax_failed()) return 0;
  const ax_mesh *scope = &ax_builder_current()->axes;
  for (const char *word = spec; word != NULL && *word != '\0';) {
    char name[AX_MAX_NAME] = "";
    size_t bytes = strcspn(word, ",+");
    memcpy(name, word, bytes < sizeof name ? bytes : sizeof name - 1);
    int axis = ax_mesh_find(scope, name);
    if (axis >= 0 && scope->axis[axis].unchecked) set |= (ax_axis_set)1 << axis;
    word += bytes + (word[bytes] != '\0');
  }
  return set;
}

ax_value ax_sum_of_parts(ax_value x, ax_axis_set set) {
  char names[AX_MAX_AXES * (AX_MAX_NAME + 1)];
  size_t length = 0;
  if (ax_failed() || set == 0) return x;
  ax_axes axes = ax_axis_set_names(set, &ax_builder_current()->axes);
  for (uint32_t i = 0; i < axes.count; i++)
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? "," : "", axes.name[i]);
  return ax_psum(x, names);
}

ax_value ax_sum_of_squares(ax_value x) {
  ax_dtype dtype = ax_typeof(x).dtype;
  if (ax_is_narrow_float(dtype)) x = ax_convert_element_type(x, AX_F32);
  return ax_reduce_sum(ax_mul(x, x), AX_ALL_DIMS, false);
}

/* The sum over leaves that differ along the same axes. */
typedef struct group {
  ax_value sum;
  ax_axis_set axes;
} group;

/* Leaves that differ along the same axes are added before devices add what they have: one psum for each set of axes there is,
   few. */
static ax_value sum_all(ax_dtype dtype, uint32_t count, const ax_value *leaves, const ax_axis_set *axes, group *groups) {
  uint32_t group_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    ax_value squares = ax_convert_element_type(ax_sum_of_squares(leaves[i]), dtype);
    uint32_t g = 0;
    while (g < group_count && groups[g].axes != axes[i]) g++;
    if (g == group_count) groups[group_count++] = (group){squares, axes[i]};
    else groups[g].sum = ax_add(groups[g].sum, squares);
  }
  ax_value sum = ax_sum_of_parts(groups[0].sum, groups[0].axes);
  for (uint32_t g = 1; g < group_count; g++) sum = ax_add(sum, ax_sum_of_parts(groups[g].sum, groups[g].axes));
  return sum;
}

ax_value ax_norm_of_parts(const char *who, uint32_t count, const ax_value *leaves, const ax_axis_set *axes) {
  ax_dtype dtype = AX_F32;
  if (count == 0) return ax_reject_as(who, "there is no leaf");
  for (uint32_t i = 0; i < count; i++) {
    ax_type type = ax_typeof(leaves[i]);
    if (ax_failed()) return ax_poison;
    if (!ax_is_float(type.dtype))
      return ax_reject_as(who, "leaf %u is %s: only floats have a norm", i, ax_type_string(&type, NULL));
    if (type.dtype == AX_F64) dtype = AX_F64;
  }
  group *groups = ax_trace_alloc((size_t)count * sizeof groups[0]);
  return groups != NULL ? ax_sqrt(sum_all(dtype, count, leaves, axes, groups)) : ax_poison;
}

ax_value (ax_global_norm)(uint32_t count, const ax_value *leaves) {
  if (!ax_check_operands("global_norm", leaves, count)) return ax_poison;
  ax_axis_set *axes = ax_trace_alloc(((size_t)count + 1) * sizeof axes[0]);
  for (uint32_t i = 0; i < count && axes != NULL; i++) axes[i] = ax_parts_axes(leaves[i], NULL);
  return axes != NULL ? ax_norm_of_parts("global_norm", count, leaves, axes) : ax_poison;
}

/* --- All in one --- */

ax_value (ax_tree_ravel)(uint32_t count, const ax_value *leaves) {
  ax_value *flat = ax_trace_alloc(count * sizeof flat[0]);
  if (flat == NULL || !ax_check_operands("tree_ravel", leaves, count)) return ax_poison;
  if (count == 0) return ax_reject_as("tree_ravel", "there is no leaf");
  for (uint32_t i = 0; i < count; i++) {
    ax_type type = ax_typeof(leaves[i]), first = ax_typeof(leaves[0]);
    if (type.dtype != first.dtype)
      return ax_reject_as("tree_ravel", "leaf %u is %s, but leaf 0 is %s: they must be of one dtype", i,
                          ax_type_string(&type, NULL), ax_type_string(&first, NULL));
    flat[i] = ax_reshape(leaves[i], AX_DIMS(-1));
  }
  return ax_concatenate(AX_LIST(count, flat), 0);
}

void (ax_tree_unravel)(ax_value flat, uint32_t count, const ax_value *like, uint32_t out_count, ax_value *out) {
  if (!out_fits("tree_unravel", count, out_count, out)) return;
  int64_t start = 0;
  const ax_type *types = ax_types_of("tree_unravel", like, count), all = ax_typeof(flat);
  for (uint32_t i = 0; i < count; i++) out[i] = ax_poison;
  for (uint32_t i = 0; types != NULL && !ax_failed() && i < count; i++) {
    int64_t elems = ax_type_elems(&types[i]), limit = start + elems;
    if (all.rank != 1 || limit > all.dims[0])
      (void)ax_reject_as("tree_unravel", "leaf %u, %s, would end at element %lld of %s", i, ax_type_string(&types[i], NULL),
                         (long long)limit, ax_type_string(&all, NULL));
    else out[i] = ax_reshape(ax_slice_in_dim(flat, start, limit, 1, 0), AX_LIST(types[i].rank, types[i].dims));
    start = limit;
  }
}
