/* Leaves that a mesh cuts, where an optimiser has to know which dimension is cut. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "tree/moments.h"

ax_axis_set ax_cut_axes(const ax_leaf_cut *cut, uint32_t d) {
  const ax_mesh *scope = &ax_builder_current()->axes;
  const char *word = cut->spec;
  ax_axis_set set = 0;
  for (uint32_t at = 0; *word != '\0' && at <= d;) {
    char name[AX_MAX_NAME] = "";
    size_t bytes = strcspn(word, ",+");
    memcpy(name, word, bytes < sizeof name ? bytes : sizeof name - 1);
    int axis = at == d ? ax_mesh_find(scope, name) : -1;
    if (axis >= 0) set |= (ax_axis_set)1 << axis;
    at += word[bytes] == ',';
    word += bytes + (word[bytes] != '\0');
  }
  return set & cut->axes;
}

bool ax_is_cut_as_said(const ax_leaf_cut *cut, const ax_type *part, const char *why) {
  ax_axis_set all = 0;
  bool fits = part->rank == cut->whole->rank;
  for (uint32_t d = 0; fits && d < part->rank; d++) {
    ax_axis_set axes = ax_cut_axes(cut, d);
    all |= axes;
    fits = part->dims[d] * ax_axis_set_size(axes, &ax_builder_current()->axes) == cut->whole->dims[d];
  }
  if (fits && all == cut->axes) return true;
  return ax_reject_as("optimizer_update", "%s: a parameter is %s, which is not %s as the spec \"%s\" cuts it", why,
                      ax_type_string(part, &ax_builder_current()->axes), ax_type_string(cut->whole, NULL), cut->spec),
         false;
}

/* The entry of a spec for dimension d, as a list of axes: "a+b" is "a,b". */
static void axes_named(const char *spec, uint32_t d, char *out, size_t bytes) {
  for (; d > 0 && *spec != '\0'; d--) spec += strcspn(spec, ",") + (spec[strcspn(spec, ",")] != '\0');
  const size_t length = strcspn(spec, ",");
  memcpy(out, spec, length < bytes ? length : bytes - 1);
  for (char *c = out; (c = strchr(c, '+')) != NULL;) *c = ',';
}

ax_value ax_whole_of(const ax_leaf_cut *cut, ax_value part) {
  for (uint32_t d = 0; d < cut->whole->rank && !ax_failed(); d++) {
    char names[AX_MAX_AXES * (AX_MAX_NAME + 1)] = "";
    axes_named(cut->spec, d, names, sizeof names);
    if (ax_cut_axes(cut, d) != 0) part = ax_all_gather_invariant(part, names, d, true);
  }
  return part;
}

ax_value ax_part_of(const ax_leaf_cut *cut, ax_value whole, const ax_type *part) {
  for (uint32_t d = 0; d < part->rank && !ax_failed(); d++) {
    char names[AX_MAX_AXES * (AX_MAX_NAME + 1)] = "";
    axes_named(cut->spec, d, names, sizeof names);
    if (ax_cut_axes(cut, d) == 0) continue;
    const ax_value own = ax_convert_element_type(ax_axis_index(names), AX_S64);
    const ax_value start = ax_mul(own, ax_full_i64(AX_S64, AX_DIMS(), part->dims[d]));
    whole = ax_dynamic_slice_in_dim(whole, start, part->dims[d], d);
  }
  return whole;
}
